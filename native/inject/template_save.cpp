// Making a template of a pre-warmer that stands.
#include "failure.h"
#include "launch.h"
#include "pagemap.h"
#include "remote.h"
#include "template.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <map>
#include <sstream>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>

namespace gpuwhisk::inject {
namespace {

constexpr uint64_t bridged_bytes = 8 * page_bytes; // Absent pages that are kept as zeros: a mapping less.
constexpr size_t part_bytes = 1 << 20;
constexpr int last_signal = 64;
constexpr uint64_t area = offsetof(gw_mailbox, arguments);

// As in runtimes/python/prewarmer.py.
constexpr std::string_view usual_readable[] = {"/usr", "/lib", "/lib32", "/lib64", "/bin", "/etc", "/opt", "/proc", "/sys"};
constexpr std::string_view usual_writable[] = {"/dev/null",      "/dev/zero",       "/dev/urandom", "/dev/random",
                                               "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia0", "."};

[[noreturn]] void refuse(const std::string &why) { throw Failure("template", why); }

void write_at(int file, const void *from, size_t length, uint64_t offset) {
  const auto *next = static_cast<const char *>(from);
  while (length > 0) {
    ssize_t count = pwrite(file, next, length, static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) throw_errno("write the template");
    next += count, offset += static_cast<uint64_t>(count), length -= static_cast<size_t>(count);
  }
}

uint64_t page_up(uint64_t value) { return (value + page_bytes - 1) & ~(page_bytes - 1); }

/** The flags of each mapping, by its start: of /proc/PID/smaps. */
std::map<uint64_t, std::string> mapping_flags(const Target &target) {
  std::map<uint64_t, std::string> flags;
  std::istringstream text(target.read_file("smaps"));
  uint64_t start = 0;
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with("VmFlags:")) flags[start] = line.substr(8) + " ";
    else if (size_t dash = line.find('-'); dash != line.npos && dash < line.find(' '))
      std::from_chars(line.data(), line.data() + dash, start, 16);
  }
  return flags;
}

/** What the kernel keeps of where a process has its parts: fields of proc(5)'s stat by their numbers. */
prctl_mm_map layout_of(const Target &target, uint64_t heap_end) {
  std::string text = target.read_file("stat");
  std::istringstream fields(text.substr(text.rfind(')') + 1));
  std::map<int, uint64_t> values;
  std::string word;
  for (int field = 3; fields >> word; field++) {
    uint64_t value = 0;
    std::from_chars(word.data(), word.data() + word.size(), value);
    values[field] = value;
  }
  prctl_mm_map layout{};
  layout.start_code = values[26];
  layout.end_code = values[27];
  layout.start_stack = values[28];
  layout.start_data = values[45];
  layout.end_data = values[46];
  layout.start_brk = values[47];
  layout.brk = heap_end;
  layout.arg_start = values[48];
  layout.arg_end = values[49];
  layout.env_start = values[50];
  layout.env_end = values[51];
  layout.exe_fd = ~0U;
  return layout;
}

class Saving {
public:
  Saving(const Launched &launched, Stops &stops)
      : launched_(launched), target_(launched.pid, start_ticks(launched.pid)),
        resident_{launched.hello.worker, launched.hello.script, launched.hello.script_end, launched.hello.mailbox, 0,
                  launched.mailbox.get()},
        remote_(stops, resident_) {}

  Image image(const std::vector<std::string> &arguments) {
    if (!has_pagemap_scan()) refuse("The kernel does not tell which pages are a mapping's own (PAGEMAP_SCAN).");
    if (!launched_.hello.traces_mappings || launched_.hello.cuda != GW_NO_CUDA) refuse("It has a CUDA context.");
    if (launched_.loaded) refuse_function();
    if (launched_.hello.landlock == 0) refuse("The kernel has no Landlock.");
    refuse_unfit();
    image_.hello = launched_.hello;
    image_.pid = launched_.pid;
    image_.loaded = launched_.loaded;
    save_context(launched_.pid, image_.worker);
    resident_.stack = (image_.worker.general.rsp - 1024) & ~uint64_t{15};
    std::tie(image_.sequences, image_.sequences_length) = kernel_area(launched_.pid);
    image_.robust_list = robust_list(launched_.pid);
    image_.layout = layout_of(target_, static_cast<uint64_t>(remote_.call("brk", SYS_brk, {0})));
    image_.auxiliary = target_.read_file("auxv");
    read_places(arguments);
    image_.name = target_.read_file("comm");
    if (image_.name.ends_with('\n')) image_.name.pop_back();
    read_signals();
    read_mappings();
    return std::move(image_);
  }

  /** Writes the pages of the image to their places. */
  void write_pages(const Image &image, int file) const {
    std::vector<char> part(part_bytes);
    for (const Pages &run : image.runs)
      for (uint64_t at = 0, length; at < run.end - run.start; at += length) {
        length = std::min<uint64_t>(part.size(), run.end - run.start - at);
        target_.read(run.start + at, part.data(), length);
        write_at(file, part.data(), length, run.offset + at);
      }
  }

private:
  // What a copy would lack.
  void refuse_unfit() const {
    if (size_t count = target_.threads().size(); count != 1) refuse("It has " + std::to_string(count) + " threads.");
    if (launched_.hello.worker != launched_.pid) refuse("It does not stand with its first thread.");
    const std::set<int> given{0, 1, 2, GW_CONTROL_FD, GW_SNAPSHOT_FD, GW_RUNS_FD};
    for (int descriptor : target_.descriptors())
      if (!given.contains(descriptor)) refuse("It has opened " + target_.descriptor_link(descriptor) + ".");
    if (!target_.read_file("timers").empty()) refuse("It has a timer.");
    // The pre-warmer has them from this process, as a copy will have.
    const Target own(getpid(), start_ticks(getpid()));
    const std::string folder = "/proc/" + std::to_string(launched_.pid) + "/cwd";
    bool same = target_.read_file("limits") == own.read_file("limits") && mask_of(target_) == mask_of(own) &&
                std::filesystem::read_symlink(folder) == std::filesystem::current_path();
    if (!same) refuse("It has changed its limits, its mask of file modes or its folder.");
  }

  // Of a process that has loaded a function: what it says of the load, and what a function may leave beside the process.
  void refuse_function() const {
    const char *said = resident_.shared->message;
    if (std::string why(said, strnlen(said, sizeof resident_.shared->message)); !why.empty()) refuse(why);
    std::string children = "task/" + std::to_string(launched_.pid) + "/children";
    if (!target_.read_file(children.c_str()).empty()) refuse("It has started a process.");
  }

  static std::string mask_of(const Target &target) {
    std::string status = target.read_status();
    size_t at = status.find("Umask:");
    return at == status.npos ? "" : status.substr(at, status.find('\n', at) - at);
  }

  // The pre-warmer has put them there, each NUL-ended; modules that it has imported may have changed them.
  void read_places(const std::vector<std::string> &arguments) {
    gw_mailbox &shared = *resident_.shared;
    uint64_t length = std::min<uint64_t>(shared.environment_length, sizeof shared.arguments);
    std::string_view text(shared.arguments, length);
    for (size_t end; (end = text.find('\0')) != text.npos; text.remove_prefix(end + 1))
      image_.places.emplace_back(text.substr(0, end));
    if (image_.places.size() % 2 != 0) refuse("It names a folder too few.");
    for (size_t i = 0; i < image_.places.size(); i += 2)
      if (!is_given(image_.places[i], image_.places[i + 1], arguments)) refuse("It names folders that it was not given.");
  }

  static bool is_given(const std::string &option, const std::string &path, const std::vector<std::string> &arguments) {
    bool usual = option == "--read" ? std::ranges::find(usual_readable, path) != std::end(usual_readable)
                                    : std::ranges::find(usual_writable, path) != std::end(usual_writable);
    if (usual) return option == "--read" || option == "--write";
    const std::string given[] = {option, path};
    return std::search(arguments.begin(), arguments.end(), std::begin(given), std::end(given)) != arguments.end();
  }

  void read_signals() {
    std::vector<gw_call> calls;
    for (uint64_t signal = 1; signal <= last_signal; signal++)
      calls.push_back({SYS_rt_sigaction, {signal, 0, resident_.mailbox + area + signal * sizeof(SignalAction), 8}, 0});
    calls.push_back({SYS_sigaltstack, {0, resident_.mailbox + area}, 0});
    uint64_t timer = resident_.mailbox + area + 4096;
    for (uint64_t which = 0; which < 3; which++) calls.push_back({SYS_getitimer, {which, timer + which * 32}, 0});
    remote_.run(calls);
    const char *given = resident_.shared->arguments;
    image_.handlers.resize(last_signal);
    std::memcpy(image_.handlers.data(), given + sizeof(SignalAction), last_signal * sizeof(SignalAction));
    std::memcpy(&image_.signal_stack, given, sizeof image_.signal_stack);
    for (size_t at = 4096; at < 4096 + 96; at++)
      if (given[at] != 0) refuse("It has a timer.");
  }

  void read_mappings() {
    std::map<uint64_t, std::string> flags = mapping_flags(target_);
    const std::string state = identity_at(launched_.state.get()), mailbox = identity_at(launched_.mailbox.get());
    for (const Mapping &mapping : parse_maps(target_.read_maps())) {
      if (mapping.name.starts_with("[vsyscall")) continue;
      const std::string &own = flags[mapping.start];
      auto has = [&](const char *flag) { return own.find(flag) != own.npos; };
      if (has(" dc ") || has(" mg ") || has(" lo ")) refuse("It has advised on memory.");
      Piece piece{mapping, Piece::anonymous, mapping.protection, mapping.offset, mapping.name};
      if (mapping.name.starts_with("[v")) piece.kind = Piece::kernel;
      else if (mapping.shared && mapping.file == state)
        piece.kind = mapping.protection & PROT_WRITE ? Piece::writable_state : Piece::state;
      else if (mapping.shared && mapping.file == mailbox) piece.kind = Piece::mailbox;
      else if (mapping.foreign() || (mapping.shared && mapping.protection & PROT_WRITE))
        refuse("It shares memory: " + mapping.name + ".");
      else if (has(" wf ")) piece.kind = Piece::wiped;
      else if (mapping.anonymous() && !mapping.shared) add_anonymous(piece, mapping);
      else add_file(piece, mapping);
      image_.pieces.push_back(piece);
    }
  }

  void add_anonymous(Piece &piece, const Mapping &mapping) {
    if (mapping.name == "[stack]") piece.kind = Piece::stack;
    size_t first = image_.runs.size();
    for (Range present : present_pages(target_, mapping)) {
      bool follows = image_.runs.size() > first && present.start - image_.runs.back().end <= bridged_bytes;
      if (follows) image_.runs.back().end = present.end;
      else image_.runs.push_back({present, 0});
    }
  }

  // One with pages of its own comes from the template as a whole.
  void add_file(Piece &piece, const Mapping &mapping) {
    if (!mapping.shared && !private_copies(target_, mapping).empty()) {
      if (mapping.protection & PROT_EXEC) refuse("It has changed the code of " + mapping.name + ".");
      image_.runs.push_back({mapping, 0});
      return;
    }
    // The working folder of a copy is another one.
    if (launched_.loaded && mapping.name.starts_with(std::filesystem::current_path().string() + "/"))
      refuse("It has mapped " + mapping.name + ", a file of its own.");
    piece.kind = mapping.shared ? Piece::shared : Piece::code;
    struct stat file;
    if (mapping.name.ends_with(" (deleted)") || stat(mapping.name.c_str(), &file) < 0)
      refuse("It has mapped " + mapping.name + ".");
    piece.size = static_cast<uint64_t>(file.st_size);
    piece.changed_ns = file.st_mtim.tv_sec * 1'000'000'000LL + file.st_mtim.tv_nsec;
    // How maps name it, which a copy's are compared with.
    piece.path += '\0' + mapping.file;
  }

  const Launched &launched_;
  Target target_;
  Resident resident_;
  Remote remote_;
  Image image_;
};

void write_template(const Launched &launched, Stops &stops, const LaunchOptions &options) {
  Descriptor file(open(options.save_template.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file) throw_errno("open the template");
  Saving saving(launched, stops);
  Image image = saving.image(options.arguments);
  image.environment = options.environment;
  image.arguments = options.arguments;
  // Its size does not depend on the places of the pages.
  uint64_t length = encode(image).size(), offset = page_up(sizeof length + length);
  for (Pages &run : image.runs) {
    run.offset = offset;
    offset += run.end - run.start;
  }
  // Before it is written: pages that are the same file many times over take no memory, and would fill the disk.
  constexpr uint64_t mib = 1 << 20;
  if (offset > options.most_template_bytes)
    refuse("Its template has " + std::to_string((offset + mib - 1) / mib) + " MiB of at most " +
           std::to_string(options.most_template_bytes / mib) + ".");
  std::string bytes = encode(image);
  write_at(file.get(), &length, sizeof length, 0);
  write_at(file.get(), bytes.data(), bytes.size(), sizeof length);
  saving.write_pages(image, file.get());
}

} // namespace

void stop_standing(const Launched &launched, Stops &stops) {
  constexpr int64_t limit_us = 1'000'000;
  const pid_t pid = launched.pid;
  seize(pid);
  for (int64_t deadline = now_us() + limit_us;;) {
    interrupt(pid);
    std::optional<Stop> stop = stops.next(deadline, pid);
    if (!stop || stop->ended()) refuse("The pre-warmer does not stop.");
    user_regs_struct registers = get_registers(pid);
    if (registers.rip == launched.hello.stand_return && registers.orig_rax == SYS_futex) return;
    resume(pid, stop->signal());
    usleep(200); // It is about to be there.
  }
}

void go_on_from(const Launched &launched, Context context) {
  context.general.rax = 0; // The wait is over.
  context.general.orig_rax = ~0ULL;
  restore_context(launched.pid, context);
  detach(launched.pid);
}

std::string save_template(const Launched &launched, Stops &stops, const LaunchOptions &options) {
  stop_standing(launched, stops);
  Context standing;
  save_context(launched.pid, standing);
  std::string unfit;
  try {
    write_template(launched, stops, options);
  } catch (const Failure &failure) {
    if (failure.code != "template" && failure.code != "system") throw;
    unfit = failure.what();
  }
  go_on_from(launched, standing);
  return unfit;
}

} // namespace gpuwhisk::inject
