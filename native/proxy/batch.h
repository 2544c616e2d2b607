// Several requests of a function as one run (docs/runtime-protocol.md, rule 3).
#pragma once

#include "answer.h"
#include "request.h"

#include <vector>

namespace gpuwhisk::proxy {

/** The requests of a batch. Throws inject::Failure if the run's value is no array. */
std::vector<std::string_view> requests_of(const Fields &given);

/** The answer to a batch, put together of the answers to its requests. */
class Entries {
public:
  void add(const Answer &one);
  /** All of them; an error if they are longer than a frame may be. */
  Answer answer() const;

private:
  std::string json_ = "[";
};

/** The answer to a batch of `count` requests that the function itself returned `result` for: an object or array of JSON. */
Answer entries_of(std::string_view result, size_t count);

} // namespace gpuwhisk::proxy
