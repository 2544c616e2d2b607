// Shared objects as a tenant uploads them: what is read of one before it is loaded, and when a stack is named.
#include "../inject/elf_object.h"
#include "../inject/failure.h"

#include <cstring>
#include <vector>

using namespace gpuwhisk::inject;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  // The last bytes are the address to be named, so that a seed is an object as it is.
  uint64_t address = 0;
  std::memcpy(&address, data + size - std::min(size, sizeof address), std::min(size, sizeof address));
  std::vector<std::byte> copy(size); // Of just that size, for the sanitizer to see each step beyond it.
  if (size > 0) std::memcpy(copy.data(), data, size);
  try {
    check_object(copy);
  } catch (const Failure &failure) {
    if (failure.code != "payload") std::abort();
  }
  for (uint64_t offset : {address, address & 0xffff, uint64_t{0x1000}}) {
    std::string name = name_in_object(copy, offset);
    if (name.size() > 256 || name.find("+0x") == std::string::npos) std::abort();
  }
  return 0;
}
