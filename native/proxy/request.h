// What the payloads of frames ask for, in the core's words.
#pragma once

#include "../inject/prewarmer.h"
#include "parts.h"

#include <string>
#include <string_view>
#include <vector>

namespace gpuwhisk::proxy {

/** What an init brings. */
struct Init {
  std::string code, owner; // `owner`: the namespace.
  inject::InjectOptions options;
  bool batches = true; // Until a shared object turns out to take one request at a time.
};

Init init_of(const Parts &given, bool shared_object, const inject::Policy &policy);

/** The call that a run asks for. Several requests are given as one JSON array. */
inject::CallOptions call_of(const Parts &given);

/** Whether the deadline of a run has passed. */
bool is_late(const Parts &given);

} // namespace gpuwhisk::proxy
