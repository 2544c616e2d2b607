// Waiting on a word of memory that other threads or processes change.
#pragma once

#include <climits>
#include <cstdint>
#include <ctime>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace gpuwhisk::tokens {

inline void futex_wake(void *word) { syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0); }

/** Returns when woken, when the word is not `value`, at a signal, or after `limit_ms`. */
inline void futex_wait(void *word, int32_t value, int limit_ms) {
  timespec limit{.tv_sec = limit_ms / 1000, .tv_nsec = limit_ms % 1000 * 1000000L};
  syscall(SYS_futex, word, FUTEX_WAIT, value, &limit, nullptr, 0);
}

} // namespace gpuwhisk::tokens
