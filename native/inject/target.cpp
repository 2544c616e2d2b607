#include "target.h"

#include "failure.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <charconv>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>

namespace gpuwhisk::inject {
namespace {

Descriptor open_at(int folder, const char *name, int flags) {
  Descriptor file(openat(folder, name, flags | O_CLOEXEC));
  if (!file) throw_errno(std::string("open /proc/PID/") + name);
  return file;
}

std::string read_whole(int file, const char *what) {
  std::string text(16384, '\0');
  size_t length = 0;
  for (;;) {
    if (length == text.size()) text.resize(text.size() * 2);
    ssize_t count = pread(file, text.data() + length, text.size() - length, static_cast<off_t>(length));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw_errno(std::string("read /proc/PID/") + what);
    if (count == 0) break;
    length += static_cast<size_t>(count);
  }
  text.resize(length);
  return text;
}

struct Stat {
  uint64_t start_ticks = 0;
  Counts counts;
};

// Fields by their numbers in proc(5). The second (the name) may itself hold blanks and brackets. State Z is a dead process.
Stat read_stat(int file) {
  char text[2048];
  ssize_t length = pread(file, text, sizeof text, 0);
  if (length < 0 && errno == ESRCH) throw Failure("gone", "The process has ended.");
  if (length < 0) throw_errno("read /proc/PID/stat");
  const char *end = text + length, *next = end;
  while (next > text && next[-1] != ')') --next;
  if (next == text || end - next < 2 || next[1] == 'Z' || next[1] == 'X')
    throw Failure("gone", "The process has ended.");
  Stat stat;
  for (int field = 3; field <= 23; field++) {
    next = std::find(next, end, ' ');
    if (next != end) ++next;
    uint64_t value = 0;
    std::from_chars(next, end, value);
    if (field == 10 || field == 12) stat.counts.faults += value; // Minor and major ones.
    if (field == 22) stat.start_ticks = value;
    if (field == 23) stat.counts.mapped_bytes = value;
  }
  return stat;
}

std::set<int> numbers_in(int folder, const char *what) {
  std::set<int> numbers;
  alignas(dirent64) char buffer[8192];
  if (lseek(folder, 0, SEEK_SET) < 0) throw_errno(what);
  for (;;) {
    long length = syscall(SYS_getdents64, folder, buffer, sizeof buffer);
    if (length < 0) throw_errno(what);
    if (length == 0) return numbers;
    for (long at = 0; at < length;) {
      const auto *entry = reinterpret_cast<const dirent64 *>(buffer + at);
      at += entry->d_reclen;
      int number = 0;
      const char *end = entry->d_name + std::strlen(entry->d_name);
      if (std::from_chars(entry->d_name, end, number).ptr == end) numbers.insert(number);
    }
  }
}

Descriptor open_folder(pid_t pid) {
  std::string path = "/proc/" + std::to_string(pid);
  Descriptor folder(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder && errno == ENOENT) throw Failure("gone", "There is no process " + std::to_string(pid) + ".");
  if (!folder) throw_errno("open " + path);
  return folder;
}

} // namespace

uint64_t start_ticks(pid_t pid) {
  Descriptor folder = open_folder(pid);
  return read_stat(open_at(folder.get(), "stat", O_RDONLY).get()).start_ticks;
}

Target::Target(pid_t pid, uint64_t start)
    : pid_(pid), start_(start), folder_(open_folder(pid)), memory_(open_at(folder(), "mem", O_RDWR)),
      pagemap_(open_at(folder(), "pagemap", O_RDONLY)), maps_(open_at(folder(), "maps", O_RDONLY)),
      status_(open_at(folder(), "status", O_RDONLY)), stat_(open_at(folder(), "stat", O_RDONLY)),
      fds_(open_at(folder(), "fd", O_RDONLY | O_DIRECTORY)), tasks_(open_at(folder(), "task", O_RDONLY | O_DIRECTORY)) {
  check_identity();
}

void Target::check_identity() const {
  if (read_stat(stat_.get()).start_ticks != start_)
    throw Failure("gone", "Process " + std::to_string(pid_) + " is another one than was registered.");
}

bool Target::try_read(uint64_t address, void *to, size_t length) const {
  auto *next = static_cast<char *>(to);
  while (length > 0) {
    ssize_t count = pread(memory_.get(), next, length, static_cast<off_t>(address));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    next += count, address += static_cast<uint64_t>(count), length -= static_cast<size_t>(count);
  }
  return true;
}

void Target::read(uint64_t address, void *to, size_t length) const {
  if (!try_read(address, to, length)) throw_errno("read the memory of the process");
}

void Target::write(uint64_t address, const void *from, size_t length) const {
  const auto *next = static_cast<const char *>(from);
  while (length > 0) {
    ssize_t count = pwrite(memory_.get(), next, length, static_cast<off_t>(address));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) throw_errno("write the memory of the process");
    next += count, address += static_cast<uint64_t>(count), length -= static_cast<size_t>(count);
  }
}

void Target::write_all(const std::vector<iovec> &from, const std::vector<iovec> &to) const {
  for (size_t at = 0; at < from.size();) {
    size_t count = std::min<size_t>(IOV_MAX, from.size() - at), length = 0;
    for (size_t i = at; i < at + count; i++) length += from[i].iov_len;
    // Without CAP_SYS_PTRACE, or where the process itself may not write, the slower way.
    if (process_vm_writev(pid_, &from[at], count, &to[at], count, 0) != static_cast<ssize_t>(length))
      for (size_t i = at; i < at + count; i++)
        write(reinterpret_cast<uint64_t>(to[i].iov_base), from[i].iov_base, from[i].iov_len);
    at += count;
  }
}

std::string Target::read_maps() const { return read_whole(maps_.get(), "maps"); }
std::string Target::read_status() const { return read_whole(status_.get(), "status"); }
Counts Target::counts() const { return read_stat(stat_.get()).counts; }
std::string Target::read_file(const char *name) const {
  return read_whole(open_at(folder(), name, O_RDONLY).get(), name);
}
Descriptor Target::open_thread_status(int thread) const {
  return open_at(tasks_.get(), (std::to_string(thread) + "/status").c_str(), O_RDONLY);
}
std::string Target::read_thread_status(const Descriptor &status) { return read_whole(status.get(), "task/TID/status"); }
std::set<int> Target::descriptors() const { return numbers_in(fds_.get(), "list the descriptors of the process"); }
std::set<int> Target::threads() const { return numbers_in(tasks_.get(), "list the threads of the process"); }

bool Target::has_thread(int thread) const {
  return faccessat(tasks_.get(), std::to_string(thread).c_str(), F_OK, 0) == 0;
}

std::string Target::descriptor_link(int descriptor) const {
  char link[4096];
  ssize_t length = readlinkat(fds_.get(), std::to_string(descriptor).c_str(), link, sizeof link);
  if (length < 0 && errno == ENOENT) return "";
  if (length < 0) throw_errno("read a descriptor of the process");
  return std::string(link, static_cast<size_t>(length));
}

} // namespace gpuwhisk::inject
