#include "batch.h"

#include "../inject/failure.h"
#include "frames.h"
#include "json.h"

namespace gpuwhisk::proxy {

std::vector<std::string_view> requests_of(const Fields &given) {
  auto value = given.find("value");
  auto requests = value == given.end() ? std::nullopt : elements_of(value->second);
  if (!requests) throw inject::Failure("violation", "A batch is no array of requests.");
  return *requests;
}

void Entries::add(const Answer &one) {
  if (json_.size() > max_payload_bytes) return; // No answer will come of it.
  if (json_.size() > 1) json_ += ',';
  json_ += one.ok ? one.text : quote(one.text);
}

Answer Entries::answer() const {
  if (json_.size() < max_payload_bytes) return {true, json_ + ']'};
  return {false, "The action produced a response that is longer than " + std::to_string(max_payload_bytes) + " bytes."};
}

Answer entries_of(std::string_view result, size_t count) {
  auto results = elements_of(result);
  if (!results || results->size() != count)
    return {false, "The action was given " + std::to_string(count) + " requests and returned no array of as many results."};
  Entries entries;
  for (std::string_view one : *results) {
    if (one.front() == '{' || one.front() == '[') entries.add({true, std::string(one)});
    else entries.add({false, text_of(one).value_or(no_dictionary)});
  }
  return entries.answer();
}

} // namespace gpuwhisk::proxy
