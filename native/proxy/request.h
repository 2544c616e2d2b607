// What the payloads of frames ask for, in the core's words.
#pragma once

#include "../inject/prewarmer.h"

#include <map>
#include <string>
#include <string_view>

namespace gpuwhisk::proxy {

using Fields = std::map<std::string, std::string_view>;

/** The fields of a payload. Throws inject::Failure if it is no JSON object. */
Fields fields(std::string_view payload);

/** What a field says that is a string; otherwise nothing. */
std::string text(const Fields &fields, const char *name);

/** What an init brings. */
struct Init {
  std::string code, owner; // `owner`: the namespace.
  inject::InjectOptions options;
  bool batches = true; // Until a shared object turns out to take one request at a time.
};

/** Throws inject::Failure "payload", whose text is the answer, for code that cannot be read. */
Init init_of(const Fields &given, bool shared_object, const inject::Policy &policy);

inject::CallOptions call_of(const Fields &given);

/** Whether the deadline of a run has passed. */
bool is_late(const Fields &given);

} // namespace gpuwhisk::proxy
