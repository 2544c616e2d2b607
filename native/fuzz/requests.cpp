// Payloads of init and run frames, as the proxy of pre-warmers reads them.
#include "../inject/failure.h"
#include "../proxy/batch.h"
#include "../proxy/request.h"

#include <cstdlib>

using namespace gpuwhisk;

namespace {

void demand(bool holds) {
  if (!holds) std::abort();
}

/** What is read is written the same, byte by byte. */
void check_written(std::string_view input, const proxy::Parts &parts) {
  std::string written;
  for (const auto &[name, bytes] : parts) proxy::append_part(written, name, bytes);
  demand(written == input);
}

void check_requests(const proxy::Parts &parts) {
  for (bool shared_object : {false, true}) {
    proxy::Init init = proxy::init_of(parts, shared_object, {});
    demand(init.options.load_timeout_us > 0);
    for (const std::string &pair : init.options.environment) demand(pair.find('\0') == std::string::npos);
  }
  demand(proxy::call_of(parts).timeout_us > 0);
  (void)proxy::is_late(parts);
}

void check_answers(const proxy::Parts &parts) {
  proxy::Entries entries;
  for (const auto &[name, bytes] : parts) entries.add({name.size() % 2 == 0, std::string(bytes)});
  proxy::Answer answer = entries.answer();
  demand(!answer.ok || proxy::parts_of(answer.text).size() == parts.size());
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string copy(reinterpret_cast<const char *>(data), size);
  copy.shrink_to_fit();
  proxy::Parts parts;
  try {
    parts = proxy::parts_of(copy);
  } catch (const inject::Failure &failure) {
    demand(failure.code == "violation");
    return 0;
  }
  check_written(copy, parts);
  check_requests(parts);
  check_answers(parts);
  return 0;
}
