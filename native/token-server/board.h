// The memory that the ticking thread shares with the JavaScript thread that decides: a header of 32-bit words, then
// columns of doubles, one place a client (gpu/src/tokens/token-machine.ts has the same names in the same order).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace gpuwhisk::tokens {

/** Words of the header. */
enum Word { TICK, STOPPED, DECIDED, HEADER_WORDS = 16 };

#define TOKEN_COLUMNS(X)                                                                                               \
  X(epoch) X(gpu) X(request) X(limit) X(maxTokens) X(violation) X(used) X(held) X(cycles) X(cycleMs) X(cycleBatch)     \
  X(runningMs) X(runningBatch) X(budget) X(soloRate) X(state)

enum class Column {
#define X(name) name,
  TOKEN_COLUMNS(X)
#undef X
};

inline constexpr const char *column_names[] = {
#define X(name) #name,
    TOKEN_COLUMNS(X)
#undef X
};

inline constexpr size_t column_count = sizeof column_names / sizeof column_names[0];

class Board {
public:
  Board(void *memory, size_t places) : memory_(static_cast<char *>(memory)), places_(places) {}

  static size_t bytes(size_t places) { return HEADER_WORDS * sizeof(int32_t) + column_count * places * sizeof(double); }
  size_t places() const { return places_; }

  std::atomic<int32_t> &word(Word word) const { return reinterpret_cast<std::atomic<int32_t> *>(memory_)[word]; }
  std::atomic<double> &at(Column column, size_t place) const {
    char *columns = memory_ + HEADER_WORDS * sizeof(int32_t);
    return reinterpret_cast<std::atomic<double> *>(columns)[static_cast<size_t>(column) * places_ + place];
  }

private:
  char *memory_;
  size_t places_;
};

static_assert(std::atomic<double>::is_always_lock_free && sizeof(std::atomic<double>) == sizeof(double));

} // namespace gpuwhisk::tokens
