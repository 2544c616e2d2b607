// A process that is to be traced: its identity, and its files under /proc, which are opened once.
#pragma once

#include "descriptor.h"

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <sys/types.h>
#include <sys/uio.h>
#include <vector>

namespace gpuwhisk::inject {

/** The start time of a process, in clock ticks since boot: with the PID it names a process for good. Throws "gone". */
uint64_t start_ticks(pid_t pid);

/** What the kernel counts of a process. */
struct Counts {
  uint64_t faults = 0;       // Page faults, of all threads, ended ones too.
  uint64_t mapped_bytes = 0; // The size of all mappings together.
};

class Target {
public:
  /** Opens the process. Throws "gone" if there is none of that PID and start time. */
  Target(pid_t pid, uint64_t start);

  pid_t pid() const { return pid_; }
  /** Throws "gone" unless this is still the process it was opened as, and alive. */
  void check_identity() const;

  /** Reads or writes memory, also where the process itself may not write. Throws if any byte is out of reach. */
  void read(uint64_t address, void *to, size_t length) const;
  void write(uint64_t address, const void *from, size_t length) const;
  /** Writes many pieces, where the kernel lets us in few calls. */
  void write_all(const std::vector<iovec> &from, const std::vector<iovec> &to) const;
  /** As read, but false where that is not mapped. */
  bool try_read(uint64_t address, void *to, size_t length) const;

  /** The text of /proc/PID/maps, /proc/PID/status or another file there. */
  std::string read_maps() const;
  std::string read_status() const;
  std::string read_file(const char *name) const;
  /** The file /proc/PID/task/THREAD/status, open; and the text of one. */
  Descriptor open_thread_status(int thread) const;
  static std::string read_thread_status(const Descriptor &status);
  /** Throws "gone" as check_identity does. */
  Counts counts() const;
  /** The names in /proc/PID/fd and /proc/PID/task, as numbers. */
  std::set<int> descriptors() const;
  std::set<int> threads() const;
  bool has_thread(int thread) const;
  /** What a descriptor of the process refers to ("/path", "pipe:[123]"); empty if it is closed. */
  std::string descriptor_link(int descriptor) const;

  int folder() const { return folder_.get(); }
  int pagemap() const { return pagemap_.get(); }

private:
  pid_t pid_;
  uint64_t start_;
  Descriptor folder_, memory_, pagemap_, maps_, status_, stat_, fds_, tasks_;
};

} // namespace gpuwhisk::inject
