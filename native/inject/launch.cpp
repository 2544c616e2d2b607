#include "launch.h"

#include "failure.h"
#include "stops.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <cstddef>
#include <fcntl.h>
#include <iterator>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

namespace gpuwhisk::inject {

template <typename Content>
Shared<Content>::Shared(const char *name) : file_(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
  if (!file_) throw_errno("memfd_create");
  if (ftruncate(file(), bytes) < 0) throw_errno("ftruncate");
  void *mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file(), 0);
  if (mapped == MAP_FAILED) throw_errno("mmap");
  content_ = static_cast<Content *>(mapped);
}
template <typename Content> Shared<Content>::~Shared() {
  if (content_) munmap(content_, bytes);
}
template <typename Content>
Shared<Content>::Shared(Shared &&other) noexcept
    : file_(std::move(other.file_)), content_(std::exchange(other.content_, nullptr)) {}
template class Shared<gw_state>;
template class Shared<gw_mailbox>;

namespace {

constexpr int first_kept = 64; // Above every number that a pre-warmer is given.

std::vector<char *> pointers(std::vector<std::string> &texts) {
  std::vector<char *> all;
  for (std::string &text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

// Of what the sandbox lets a proxy do and no function: where code of a function runs before the pre-warmer has its filter.
bool deny_tracing() {
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ptrace, 2, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_userfaultfd, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
  };
  sock_fprog program{std::size(code), code};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
}

// In the child, after fork in a process with threads: only calls that are safe there.
[[noreturn]] void become(const LaunchOptions &options, char *const *arguments, char *const *environment, int control,
                         int state, int mailbox, int snapshot, int from, bool confined, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(GW_EXIT_SETUP);
  const int given[] = {open("/dev/null", O_RDONLY), options.output, options.errors, control, state, mailbox, snapshot, from};
  const int count = from < 0 ? GW_TEMPLATE_FD : GW_TEMPLATE_FD + 1;
  int copies[GW_TEMPLATE_FD + 1];
  for (int i = 0; i < count; i++) copies[i] = fcntl(given[i], F_DUPFD, first_kept);
  if (options.runs >= 0 && dup2(options.runs, GW_RUNS_FD) < 0) _exit(GW_EXIT_SETUP); // Its number may be one of those.
  for (int i = 0; i < count; i++)
    if (dup2(copies[i], i) < 0) _exit(GW_EXIT_SETUP);
  unsigned last = options.runs < 0 ? ~0U : GW_RUNS_FD - 1;
  if (syscall(SYS_close_range, static_cast<unsigned>(count), last, 0) < 0) _exit(GW_EXIT_SETUP);
  if (options.runs >= 0 && syscall(SYS_close_range, GW_RUNS_FD + 1, ~0U, 0) < 0) _exit(GW_EXIT_SETUP);
  setsid();
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  struct sigaction usual {};
  for (int signal = 1; signal < NSIG; signal++) sigaction(signal, &usual, nullptr);
  if (confined && !deny_tracing()) _exit(GW_EXIT_SETUP);
  execve(options.program.c_str(), arguments, environment);
  _exit(GW_EXIT_SETUP);
}

[[noreturn]] void fail_start(pid_t pid, const std::string &why) {
  end_process(pid);
  throw Failure("not-ready", "The pre-warmer did not become ready: " + why);
}

void receive_hello(Launched &launched, int control_socket, int64_t deadline_us) {
  pollfd channel{control_socket, POLLIN, 0};
  int count;
  do {
    int64_t left_ms = std::max<int64_t>(0, (deadline_us - now_us()) / 1000);
    count = poll(&channel, 1, static_cast<int>(left_ms));
  } while (count < 0 && errno == EINTR); // By a freeze, for instance.
  if (count < 0) throw_errno("poll");
  if (count == 0) fail_start(launched.pid, "no word from it in time.");
  iovec body{&launched.hello, sizeof launched.hello};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  msghdr message{};
  message.msg_iov = &body;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t length = recvmsg(control_socket, &message, MSG_CMSG_CLOEXEC);
  if (length != sizeof launched.hello) fail_start(launched.pid, "it ended before it was (see its standard error).");
  if (launched.hello.version != GW_VERSION) fail_start(launched.pid, "it speaks another version.");
  if (cmsghdr *header = CMSG_FIRSTHDR(&message); header && header->cmsg_type == SCM_RIGHTS) {
    int descriptor;
    std::memcpy(&descriptor, CMSG_DATA(header), sizeof descriptor);
    launched.userfault = Descriptor(descriptor);
  }
}

} // namespace

namespace {

struct Started {
  Launched launched;
  Descriptor control;
  int64_t deadline_us;
};

/** Starts `options.program`, and receives its first greeting. */
Started start(const LaunchOptions &options, std::unique_ptr<Template> from) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0) throw_errno("socketpair");
  Descriptor ours(ends[0]), theirs(ends[1]);
  Launched launched{0, Shared<gw_state>("gpuwhisk-state"), Shared<gw_mailbox>("gpuwhisk-mailbox"), Descriptor(),
                    Descriptor(memfd_create("gpuwhisk-snapshot", MFD_CLOEXEC | MFD_ALLOW_SEALING)), {}, std::move(from), "",
                    false};
  launched.loaded = !options.load.empty() || (launched.from && launched.from->image().loaded);
  if (!launched.snapshot) throw_errno("memfd_create");
  std::vector<std::string> words{options.program};
  words.insert(words.end(), options.arguments.begin(), options.arguments.end());
  std::vector<std::string> environment = options.environment;
  std::vector<char *> arguments = pointers(words), variables = pointers(environment);
  int64_t deadline_us = now_us() + options.timeout_ms * 1000LL;
  pid_t parent = getpid();
  int file = launched.from ? launched.from->file() : -1;
  launched.pid = fork();
  if (launched.pid < 0) throw_errno("fork");
  if (launched.pid == 0)
    become(options, arguments.data(), variables.data(), theirs.get(), launched.state.file(), launched.mailbox.file(),
           launched.snapshot.get(), file, launched.loaded, parent);
  theirs.reset();
  receive_hello(launched, ours.get(), deadline_us);
  return {std::move(launched), std::move(ours), deadline_us};
}

Started start_copy(const LaunchOptions &options, Stops &stops) {
  auto from = std::make_unique<Template>(options.from_template);
  LaunchOptions restorer = options;
  restorer.program = options.restorer;
  restorer.arguments = from->image().places;
  Started started = start(restorer, std::move(from));
  try {
    if (!started.launched.hello.stands) throw Failure("template", "The restorer does not stand.");
    restore_template(*started.launched.from, started.launched, stops, options);
    receive_hello(started.launched, started.control.get(), started.deadline_us);
  } catch (...) {
    end_process(started.launched.pid);
    throw;
  }
  return started;
}

/** Starts a pre-warmer of which a template is made on the way. It goes on, also where none can be made. */
Started start_saving(const LaunchOptions &options, Stops &stops) {
  LaunchOptions standing = options;
  standing.environment.emplace_back("GPUWHISK_TEMPLATE=true");
  if (!options.load.empty()) standing.environment.emplace_back("GPUWHISK_LOAD=" + options.load);
  Started started = start(standing, nullptr);
  try {
    if (!started.launched.hello.stands) throw Failure("not-ready", "The pre-warmer does not stand for a template.");
    started.launched.unfit = save_template(started.launched, stops, options);
    receive_hello(started.launched, started.control.get(), started.deadline_us);
  } catch (...) {
    end_process(started.launched.pid);
    throw;
  }
  return started;
}

Started start_somehow(const LaunchOptions &options, Stops &stops) {
  if (!options.from_template.empty()) return start_copy(options, stops);
  if (!options.save_template.empty()) return start_saving(options, stops);
  return start(options, nullptr);
}

} // namespace

Launched launch(const LaunchOptions &options, Stops &stops) {
  Started started = start_somehow(options, stops);
  while (__atomic_load_n(&started.launched.state->ready, __ATOMIC_ACQUIRE) != GW_READY) {
    if (now_us() > started.deadline_us) fail_start(started.launched.pid, "no safe point in time.");
    usleep(200);
  }
  return std::move(started.launched);
}

void end_process(pid_t pid, const std::set<pid_t> &others) {
  if (kill(pid, SIGKILL) < 0 && errno != ESRCH) throw_errno("kill");
  for (pid_t other : others)
    if (kill(other, SIGKILL) < 0 && errno != ESRCH) throw_errno("kill");
  // Its traced threads are collected too: before them, its end is not reported. Nothing else is this thread's child.
  for (int status;;) {
    pid_t found = waitpid(-1, &status, __WALL | __WNOTHREAD);
    if (found < 0 && errno != EINTR) return;
    if (found > 0 && WIFSTOPPED(status)) kill(found, SIGKILL); // One that was just made, or is dying in any case.
  }
}

} // namespace gpuwhisk::inject
