// Making a restorer that stands a copy of a template.
#include "failure.h"
#include "launch.h"
#include "pagemap.h"
#include "remote.h"
#include "template.h"

#include "../restorer/places.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>

namespace gpuwhisk::inject {
namespace {

constexpr uint64_t area = offsetof(gw_mailbox, arguments);
constexpr size_t max_open = 200; // Files at a time.
constexpr int sequence_signature = 0x53053053;

[[noreturn]] void refuse(const std::string &why) { throw Failure("template", why); }

gw_call make_call(int64_t number, std::initializer_list<uint64_t> arguments) {
  gw_call call{};
  call.number = number;
  std::copy(arguments.begin(), arguments.end(), call.arguments);
  return call;
}

bool has_file(const Piece &piece) { return piece.kind == Piece::code || piece.kind == Piece::shared; }

/** The path of a piece of code, and how maps name the file. */
std::pair<std::string, std::string> file_of(const Piece &piece) {
  size_t end = piece.path.find('\0');
  return {piece.path.substr(0, end), piece.path.substr(end + 1)};
}

class Restoring {
public:
  Restoring(const Template &from, const Launched &launched, Stops &stops)
      : from_(from), image_(from.image()), launched_(launched), target_(launched.pid, start_ticks(launched.pid)),
        own_{launched.pid, launched.hello.script, launched.hello.script_end, launched.hello.mailbox, 0,
             launched.mailbox.get()},
        copied_{launched.pid, image_.hello.script, image_.hello.script_end, image_.hello.mailbox, 0, launched.mailbox.get()},
        by_own_(stops, own_), by_copied_(stops, copied_) {}

  void run() {
    check_files();
    leave_places();
    map_all();
    tell_kernel();
    clear();
    verify();
  }

private:
  /** The files of the template are those that lie here. */
  void check_files() {
    std::map<std::string, bool> seen;
    for (const Piece &piece : image_.pieces) {
      if (!has_file(piece)) continue;
      std::string path = file_of(piece).first;
      if (!seen.try_emplace(path).second) continue;
      struct stat file;
      bool same = stat(path.c_str(), &file) == 0 && static_cast<uint64_t>(file.st_size) == piece.size &&
                  file.st_mtim.tv_sec * 1'000'000'000LL + file.st_mtim.tv_nsec == piece.changed_ns;
      if (!same) refuse("The file " + path + " has changed.");
    }
  }

  // What the restorer has lies where nothing of the copy does, or goes.
  void leave_places() {
    std::vector<gw_call> calls;
    auto [sequences, length] = kernel_area(launched_.pid);
    constexpr uint64_t unregister = 1;
    if (length > 0) calls.push_back(make_call(SYS_rseq, {sequences, length, unregister, sequence_signature}));
    calls.push_back(make_call(SYS_mmap, {GW_TEMPLATE_PLACE, from_.bytes(), PROT_READ, MAP_SHARED | MAP_FIXED_NOREPLACE,
                                         GW_TEMPLATE_FD, 0}));
    uint64_t aside = GW_ASIDE_PLACE;
    for (const Mapping &mapping : parse_maps(target_.read_maps())) {
      if (mapping.name.starts_with("[vsyscall")) continue;
      if (mapping.name.starts_with("[v")) {
        uint64_t bytes = mapping.end - mapping.start;
        calls.push_back(make_call(SYS_mremap, {mapping.start, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, aside}));
        kernel_[mapping.name] = {aside, aside + bytes};
        aside += bytes;
      } else if (mapping.name == "[stack]" || mapping.name == "[heap]") {
        calls.push_back(make_call(SYS_munmap, {mapping.start, mapping.end - mapping.start}));
      } else {
        leftover_.push_back(mapping);
      }
    }
    all(by_own_, calls, "make room");
  }

  void map_all() {
    std::vector<gw_call> calls;
    constexpr uint64_t fixed = MAP_FIXED_NOREPLACE;
    for (const Piece &piece : image_.pieces) {
      uint64_t bytes = piece.end - piece.start, protection = static_cast<uint64_t>(piece.protection);
      switch (piece.kind) {
      case Piece::anonymous:
        if (fills(piece)) break;
        [[fallthrough]];
      case Piece::stack:
      case Piece::wiped: {
        uint64_t down = piece.kind == Piece::stack ? MAP_GROWSDOWN : 0;
        constexpr uint64_t empty = MAP_PRIVATE | MAP_ANONYMOUS | fixed;
        calls.push_back(make_call(SYS_mmap, {piece.start, bytes, protection, empty | down, ~0ULL, 0}));
        if (piece.kind == Piece::wiped) calls.push_back(make_call(SYS_madvise, {piece.start, bytes, MADV_WIPEONFORK}));
        break;
      }
      case Piece::kernel: {
        auto own = kernel_.find(piece.path);
        if (own == kernel_.end() || own->second.end - own->second.start != bytes) refuse("The kernel's own pages differ.");
        constexpr uint64_t to = MREMAP_MAYMOVE | MREMAP_FIXED;
        calls.push_back(make_call(SYS_mremap, {own->second.start, bytes, bytes, to, piece.start}));
        break;
      }
      case Piece::writable_state:
        calls.push_back(make_call(SYS_mmap, {piece.start, bytes, protection, MAP_SHARED | fixed, GW_STATE_FD, 0}));
        break;
      case Piece::mailbox:
        calls.push_back(make_call(SYS_mmap, {piece.start, bytes, protection, MAP_SHARED | fixed, GW_MAILBOX_FD, 0}));
        break;
      case Piece::code:
      case Piece::shared:
      case Piece::state:
        break;
      }
    }
    constexpr uint64_t future_write = 0x10;
    calls.push_back(make_call(SYS_fcntl, {GW_STATE_FD, F_ADD_SEALS, future_write})); // As in gw_open_channel.
    for (const Piece &piece : image_.pieces)
      if (piece.kind == Piece::state)
        calls.push_back(make_call(SYS_mmap, {piece.start, piece.end - piece.start, PROT_READ, MAP_SHARED | fixed,
                                             GW_STATE_FD, 0}));
    map_pages(calls);
    all(by_own_, calls, "map");
    map_files();
  }

  /** Whether the template's file has all of a piece. */
  bool fills(const Piece &piece) const {
    auto run = std::ranges::lower_bound(image_.runs, piece.start, {}, &Pages::start);
    return run != image_.runs.end() && run->start == piece.start && run->end == piece.end;
  }

  // In the stack they are copied: below them it must be able to grow.
  void map_pages(std::vector<gw_call> &calls) const {
    auto piece = image_.pieces.begin();
    for (const Pages &run : image_.runs) {
      while (piece != image_.pieces.end() && piece->end <= run.start) ++piece;
      if (piece == image_.pieces.end() || piece->start > run.start || piece->end < run.end) refuse("Its pages lie nowhere.");
      uint64_t bytes = run.end - run.start, flags = MAP_PRIVATE | (fills(*piece) ? MAP_FIXED_NOREPLACE : MAP_FIXED);
      if (piece->kind == Piece::stack)
        calls.push_back(make_call(GW_COPY, {run.start, GW_TEMPLATE_PLACE + run.offset, bytes}));
      else
        calls.push_back(make_call(SYS_mmap, {run.start, bytes, static_cast<uint64_t>(piece->protection),
                                             flags, GW_TEMPLATE_FD, run.offset}));
    }
  }

  void map_files() {
    std::vector<std::string> paths;
    std::map<std::string, size_t> index;
    for (const Piece &piece : image_.pieces)
      if (has_file(piece) && index.try_emplace(file_of(piece).first, paths.size()).second)
        paths.push_back(file_of(piece).first);
    for (size_t first = 0; first < paths.size(); first += max_open) {
      size_t count = std::min(max_open, paths.size() - first);
      std::vector<uint64_t> open = open_files(paths, first, count);
      std::vector<gw_call> calls;
      for (const Piece &piece : image_.pieces) {
        if (!has_file(piece)) continue;
        size_t at = index[file_of(piece).first];
        if (at < first || at >= first + count) continue;
        uint64_t flags = MAP_FIXED_NOREPLACE | (piece.kind == Piece::shared ? MAP_SHARED : MAP_PRIVATE);
        calls.push_back(make_call(SYS_mmap, {piece.start, piece.end - piece.start, static_cast<uint64_t>(piece.protection),
                                             flags, open[at - first], piece.offset}));
      }
      for (uint64_t descriptor : open) calls.push_back(make_call(SYS_close, {descriptor}));
      all(by_own_, calls, "map files");
    }
  }

  std::vector<uint64_t> open_files(const std::vector<std::string> &paths, size_t first, size_t count) {
    std::vector<gw_call> calls;
    uint64_t at = 0;
    for (size_t i = first; i < first + count; i++) {
      const std::string &path = paths[i];
      if (at + path.size() + 1 > sizeof own_.shared->arguments) refuse("Its paths are too long.");
      std::memcpy(own_.shared->arguments + at, path.c_str(), path.size() + 1);
      constexpr uint64_t here = static_cast<uint64_t>(AT_FDCWD);
      calls.push_back(make_call(SYS_openat, {here, own_.mailbox + area + at, O_RDONLY | O_CLOEXEC, 0}));
      at += path.size() + 1;
    }
    all(by_own_, calls, "open files");
    std::vector<uint64_t> open;
    for (const gw_call &call : calls) open.push_back(static_cast<uint64_t>(call.result));
    return open;
  }

  // Where the process's parts lie now, and what its thread has registered.
  void tell_kernel() {
    std::vector<gw_call> calls;
    char *given = own_.shared->arguments;
    uint64_t there = own_.mailbox + area;
    prctl_mm_map layout = image_.layout;
    constexpr size_t auxiliary = 1024, name = 8192, stack = 8448, handlers = 12288;
    if (image_.auxiliary.size() > name - auxiliary || image_.name.size() > 15) refuse("Its auxiliary vector is too long.");
    std::memcpy(given + auxiliary, image_.auxiliary.data(), image_.auxiliary.size());
    layout.auxv = reinterpret_cast<__u64 *>(there + auxiliary);
    layout.auxv_size = static_cast<uint32_t>(image_.auxiliary.size());
    layout.exe_fd = ~0U;
    std::memcpy(given, &layout, sizeof layout);
    std::memcpy(given + name, image_.name.c_str(), image_.name.size() + 1);
    std::memcpy(given + stack, &image_.signal_stack, sizeof image_.signal_stack);
    calls.push_back(make_call(SYS_prctl, {PR_SET_MM, PR_SET_MM_MAP, there, sizeof layout, 0}));
    calls.push_back(make_call(SYS_prctl, {PR_SET_NAME, there + name, 0, 0, 0}));
    if (image_.sequences_length > 0)
      calls.push_back(make_call(SYS_rseq, {image_.sequences, image_.sequences_length, 0, sequence_signature}));
    if (image_.robust_list != 0) calls.push_back(make_call(SYS_set_robust_list, {image_.robust_list, 24}));
    calls.push_back(make_call(SYS_set_tid_address, {0}));
    calls.push_back(make_call(SYS_sigaltstack, {there + stack, 0}));
    for (size_t i = 0; i < image_.handlers.size(); i++) {
      if (i + 1 == SIGKILL || i + 1 == SIGSTOP) continue;
      std::memcpy(given + handlers + i * sizeof(SignalAction), &image_.handlers[i], sizeof(SignalAction));
      calls.push_back(make_call(SYS_rt_sigaction, {i + 1, there + handlers + i * sizeof(SignalAction), 0, 8}));
    }
    all(by_own_, calls, "tell the kernel");
  }

  // By the copy's own code: the restorer's goes.
  void clear() {
    std::vector<gw_call> calls;
    for (const Mapping &mapping : leftover_)
      calls.push_back(make_call(SYS_munmap, {mapping.start, mapping.end - mapping.start}));
    for (uint64_t descriptor : {GW_STATE_FD, GW_MAILBOX_FD, GW_TEMPLATE_FD}) calls.push_back(make_call(SYS_close, {descriptor}));
    copied_.stack = (image_.worker.general.rsp - 1024) & ~uint64_t{15};
    all(by_copied_, calls, "clear");
  }

  /** The copy has the template's mappings, of the same files, and no other. */
  void verify() const {
    std::vector<Mapping> now = parse_maps(target_.read_maps()), wanted;
    from_.reveal(now, image_.layout.brk);
    std::erase_if(now, [](const Mapping &one) {
      return one.name.starts_with("[vsyscall") || one.start == GW_TEMPLATE_PLACE;
    });
    const std::string state = identity_at(launched_.state.get()), mailbox = identity_at(launched_.mailbox.get());
    for (const Piece &piece : image_.pieces) {
      Mapping mapping{piece, piece.protection, false, 0, "", ""};
      if (has_file(piece)) {
        mapping.file = file_of(piece).second;
        mapping.offset = piece.offset;
      }
      if (piece.kind == Piece::state || piece.kind == Piece::writable_state) mapping.file = state;
      if (piece.kind == Piece::mailbox) mapping.file = mailbox;
      mapping.shared = !mapping.file.empty() && piece.kind != Piece::code;
      wanted.push_back(mapping);
    }
    for (Mapping &mapping : now) {
      mapping.name = "";
      if (mapping.anonymous()) mapping.offset = 0;
    }
    now = coalesce(std::move(now));
    wanted = coalesce(std::move(wanted));
    if (now == wanted) return;
    auto [one, other] = std::ranges::mismatch(now, wanted);
    uint64_t at = one != now.end() ? one->start : other->start;
    char text[32];
    std::snprintf(text, sizeof text, "%lx", at);
    refuse(std::string("The copy has other mappings than the template, at ") + text + ".");
  }

  static void all(Remote &remote, std::vector<gw_call> &calls, const char *what) {
    remote.run(calls);
    for (const gw_call &call : calls) {
      if (call.result >= 0 || call.number == GW_COPY) continue;
      char text[160];
      std::snprintf(text, sizeof text, "The copy cannot %s: call %ld (%lx, %lx): %s.", what, call.number, call.arguments[0],
                    call.arguments[1], std::strerror(static_cast<int>(-call.result)));
      refuse(text);
    }
  }

  const Template &from_;
  const Image &image_;
  const Launched &launched_;
  Target target_;
  Resident own_, copied_;
  Remote by_own_, by_copied_;
  std::map<std::string, Range> kernel_;
  std::vector<Mapping> leftover_;
};

} // namespace

void restore_template(const Template &from, const Launched &launched, Stops &stops, const LaunchOptions &options) {
  const Image &image = from.image();
  if (image.environment != options.environment) refuse("The environment is another one.");
  if (image.arguments != options.arguments) refuse("The arguments are others.");
  if (image.pid != launched.pid) refuse("Its process id is another one.");
  if (image.hello.landlock != launched.hello.landlock) refuse("Landlock is another one.");
  stop_standing(launched, stops);
  Restoring(from, launched, stops).run();
  go_on_from(launched, image.worker);
}

} // namespace gpuwhisk::inject
