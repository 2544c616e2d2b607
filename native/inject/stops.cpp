#include "stops.h"

#include "failure.h"

#include <cerrno>
#include <csignal>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gpuwhisk::inject {
namespace {

// A signal that nothing else in the process uses; its handler does nothing, it only ends waitpid.
const int wake_signal = SIGRTMIN + 7;
constexpr long wake_again_ns = 2'000'000; // A wake-up that came just before waitpid is lost: another follows.

void do_nothing(int) {}

} // namespace

int64_t now_us() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000LL + now.tv_nsec / 1000;
}

bool Stop::ended() const { return WIFEXITED(status) || WIFSIGNALED(status); }
int Stop::event() const { return WIFSTOPPED(status) ? status >> 16 : 0; }
bool Stop::at_call() const { return WIFSTOPPED(status) && WSTOPSIG(status) == (SIGTRAP | 0x80); }
int Stop::signal() const { return WIFSTOPPED(status) && event() == 0 && !at_call() ? WSTOPSIG(status) : 0; }
bool Stop::at_signal(int number) const { return signal() == number; }

Stops::Stops() {
  struct sigaction action {};
  action.sa_handler = do_nothing; // Without SA_RESTART.
  if (sigaction(wake_signal, &action, nullptr) < 0) throw_errno("sigaction");
  sigset_t wake;
  sigemptyset(&wake);
  sigaddset(&wake, wake_signal);
  pthread_sigmask(SIG_UNBLOCK, &wake, nullptr);
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = wake_signal;
  event._sigev_un._tid = static_cast<pid_t>(syscall(SYS_gettid));
  if (timer_create(CLOCK_MONOTONIC, &event, &timer_) < 0) throw_errno("timer_create");
}

Stops::~Stops() { timer_delete(timer_); }

void Stops::set_timer(int64_t deadline_us) {
  if (armed_us_ != 0 && armed_us_ <= deadline_us) return; // Too early, it is set again then.
  itimerspec when{};
  when.it_value = {deadline_us / 1'000'000, deadline_us % 1'000'000 * 1000};
  when.it_interval.tv_nsec = wake_again_ns;
  if (timer_settime(timer_, TIMER_ABSTIME, &when, nullptr) < 0) throw_errno("timer_settime");
  armed_us_ = deadline_us;
}

void Stops::rest() {
  itimerspec none{};
  if (timer_settime(timer_, 0, &none, nullptr) < 0) throw_errno("timer_settime");
  armed_us_ = 0;
}

std::optional<Stop> Stops::next(int64_t deadline_us, pid_t thread) {
  if (now_us() >= deadline_us) { // Where stops follow each other, waitpid is never interrupted.
    rest();
    return std::nullopt;
  }
  set_timer(deadline_us);
  for (;;) {
    Stop stop{};
    // __WNOTHREAD: children of other threads (of Node's, say) are not ours to collect.
    stop.thread = waitpid(thread, &stop.status, __WALL | __WNOTHREAD);
    if (stop.thread >= 0) return stop;
    if (errno == EINTR && now_us() >= deadline_us) {
      rest();
      return std::nullopt;
    }
    if (errno == EINTR && now_us() >= armed_us_) {
      armed_us_ = 0;
      set_timer(deadline_us);
      continue;
    }
    if (errno == ECHILD) throw Failure("gone", "The process has ended.");
    if (errno != EINTR) throw_errno("waitpid");
  }
}

} // namespace gpuwhisk::inject
