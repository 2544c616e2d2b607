// The pages of all places, each of which a client maps. Their addresses never change: the ticking thread may look at
// any of them at any time.
#pragma once

#include "../inject/descriptor.h"
#include "../tokens/page.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace gpuwhisk::tokens {

/** What a client's page says of its share. */
struct PageTerms {
  int64_t memory_cap;
  int64_t context_bytes;
  int64_t granted; // until the first tick
  uint8_t device[16];
};

class Pages {
public:
  /** Throws std::system_error. */
  explicit Pages(size_t places);
  ~Pages();
  Pages(const Pages &) = delete;
  Pages &operator=(const Pages &) = delete;

  size_t size() const { return files_.size(); }
  tokens_page &at(size_t place) const { return base_[place]; }
  /** Whether the place is taken; the ticking thread serves those. */
  bool is_taken(size_t place) const { return taken_[place].load(std::memory_order_acquire); }

  /** A new page in a free place, with nothing granted. Throws std::system_error. */
  void take(size_t place, const PageTerms &terms, int64_t now_ns);
  void release(size_t place);
  /** Of the client that has the place: its page is not asked, which the client may write. */
  uint64_t generation(size_t place) const { return current_[place].load(std::memory_order_relaxed); }
  /** The descriptor for clients. */
  int file(size_t place) const { return files_[place].get(); }

private:
  tokens_page *base_;
  std::vector<inject::Descriptor> files_;
  std::vector<std::atomic<bool>> taken_;
  std::vector<std::atomic<uint64_t>> current_;
  uint64_t generations_;
};

} // namespace gpuwhisk::tokens
