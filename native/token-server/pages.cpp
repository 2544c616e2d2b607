#include "pages.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <system_error>
#include <unistd.h>

namespace gpuwhisk::tokens {
namespace {

[[noreturn]] void fail(const char *what) { throw std::system_error(errno, std::generic_category(), what); }

} // namespace

Pages::Pages(size_t places) : files_(places), taken_(places), current_(places) {
  void *mapped =
      mmap(nullptr, places * TOKENS_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) fail("map the clients' pages");
  base_ = static_cast<tokens_page *>(mapped);
  // A page of an earlier server must not be taken for one of this.
  if (getrandom(&generations_, sizeof generations_, 0) != sizeof generations_) {
    munmap(mapped, places * TOKENS_PAGE_BYTES);
    fail("getrandom");
  }
}

Pages::~Pages() { munmap(base_, files_.size() * TOKENS_PAGE_BYTES); }

void Pages::take(size_t place, const PageTerms &terms, int64_t now_ns) {
  inject::Descriptor file(memfd_create("gpuwhisk-tokens", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file) fail("memfd_create");
  if (ftruncate(file.get(), TOKENS_PAGE_BYTES) < 0) fail("size a client's page");
  // Nor can a client cut it off while it is read here.
  if (fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0) fail("seal a client's page");
  void *mapped = mmap(&base_[place], TOKENS_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file.get(), 0);
  if (mapped == MAP_FAILED) fail("map a client's page");
  tokens_page &page = base_[place];
  page.magic = TOKENS_MAGIC;
  page.generation = ++generations_;
  current_[place].store(generations_, std::memory_order_relaxed);
  page.memory_cap = terms.memory_cap;
  page.context_bytes = terms.context_bytes;
  page.granted = page.budget = terms.granted;
  page.tick_ns = now_ns;
  memcpy(page.device, terms.device, sizeof page.device);
  files_[place] = std::move(file);
  taken_[place].store(true, std::memory_order_release);
}

void Pages::release(size_t place) {
  taken_[place].store(false, std::memory_order_release);
  files_[place].reset();
}

} // namespace gpuwhisk::tokens
