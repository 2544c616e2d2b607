#include "policy.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <sched.h>
#include <string>
#include <string_view>
#include <sys/mman.h>
#include <sys/syscall.h>

namespace gpuwhisk::inject {
namespace {

// Folders of libraries: a pre-warmer cannot write there (Landlock).
constexpr const char *library_folders[] = {"/usr/", "/lib/", "/lib64/", "/lib32/", "/opt/"};

bool is_payload(const Target &target, int descriptor, const struct stat &payload) {
  struct stat file;
  std::string path = "fd/" + std::to_string(descriptor);
  return fstatat(target.folder(), path.c_str(), &file, 0) == 0 && file.st_ino == payload.st_ino &&
         file.st_dev == payload.st_dev;
}

/** Whether it is a file of a folder: no memory file, no device. */
bool is_file(const Target &target, int descriptor) {
  struct stat file;
  std::string path = "fd/" + std::to_string(descriptor);
  return fstatat(target.folder(), path.c_str(), &file, 0) == 0 && S_ISREG(file.st_mode) &&
         !target.descriptor_link(descriptor).starts_with("/memfd:");
}

const Verdict refused_code{Verdict::refuse, EACCES, "executable memory"};
const Verdict made_code{Verdict::allow_and_replace, 0, "made code at run time", true};

Verdict decide_mapping(const Policy &policy, const Target &target, const user_regs_struct &registers,
                       const CallSite &site) {
  const Verdict no = refused_code, yes{Verdict::allow, 0, "", true};
  if (!(registers.rdx & PROT_EXEC)) return yes;
  if (registers.rdx & PROT_WRITE) return no;
  if (registers.r10 & MAP_ANONYMOUS) return policy.executable_memory ? made_code : no;
  int descriptor = static_cast<int>(registers.r8);
  // Another thread could exchange the descriptor between this check and the call.
  const Verdict known = site.alone ? yes : Verdict{Verdict::allow_and_replace, 0, "mapped code beside other threads", true};
  if (is_payload(target, descriptor, site.payload)) return known;
  std::string path = target.descriptor_link(descriptor);
  auto holds_it = [&](std::string_view folder) { return path.starts_with(folder); };
  if (std::ranges::any_of(library_folders, holds_it) || std::ranges::any_of(policy.library_folders, holds_it)) return known;
  if (is_file(target, descriptor)) return {Verdict::allow_and_replace, 0, "mapped code of its own", true};
  return no;
}

constexpr const char *started_process = "started a process", *changed_setting = "changed a setting of the process";

bool is_lasting_advice(uint64_t advice) { // As in filter.c.
  return advice == MADV_DONTFORK || advice == MADV_MERGEABLE || advice == MADV_WIPEONFORK;
}

/**
 * What a change of memory that comes from a template fails with; 0: it is made. Allocators then take another way: they clear
 * or copy the memory themselves.
 */
int refusal_of_template(const Policy &policy, const user_regs_struct &registers) {
  bool empties = registers.orig_rax == SYS_madvise &&
                 (registers.rdx == MADV_DONTNEED || registers.rdx == MADV_REMOVE || registers.rdx == 24 /* locked, too */);
  bool grows = registers.orig_rax == SYS_mremap && registers.rdx > registers.rsi;
  if (!empties && !grows) return 0;
  uint64_t start = registers.rdi, end = start + registers.rsi;
  bool is_there = std::ranges::any_of(policy.from_template,
                                      [&](const Range &range) { return range.start < end && start < range.end; });
  if (!is_there) return 0;
  return empties ? EINVAL : ENOMEM;
}

Verdict decide_fork(const user_regs_struct &registers) {
  // Beside a process in the same memory, nothing that is checked would have to stay so.
  bool shares = registers.orig_rax == SYS_clone && registers.rdi & CLONE_VM && !(registers.rdi & CLONE_VFORK);
  if (shares) return {Verdict::refuse, EPERM, "clone"};
  return {Verdict::allow_and_replace, 0, started_process};
}

// Groups are named after a process that is or was in them. `who`: the first argument of kill.
bool may_signal(const Target &target, const std::set<pid_t> &children, int64_t who, uint64_t signal) {
  if (who == target.pid()) return signal != SIGKILL && signal != SIGSTOP;
  return children.contains(static_cast<pid_t>(who)) || (who < -1 && children.contains(static_cast<pid_t>(-who)));
}

Verdict decide_signal(const Target &target, const CallSite &site, uint64_t who, uint64_t signal) {
  if (may_signal(target, site.children, static_cast<int>(who), signal)) return {Verdict::allow};
  return {Verdict::refuse, EPERM, "signal"};
}

} // namespace

Verdict decide(const Policy &policy, const Target &target, const user_regs_struct &registers, const CallSite &site) {
  switch (registers.orig_rax) {
  case SYS_mmap:
    return decide_mapping(policy, target, registers, site);
  case SYS_mprotect:
  case SYS_pkey_mprotect:
    if (!(registers.rdx & PROT_EXEC)) return {Verdict::allow, 0, "", true};
    return policy.executable_memory && !(registers.rdx & PROT_WRITE) ? made_code : refused_code;
  case SYS_madvise:
    if (int error = refusal_of_template(policy, registers)) return {Verdict::refuse, error};
    if (is_lasting_advice(registers.rdx)) return {Verdict::allow_and_replace, 0, changed_setting, true};
    return {Verdict::allow, 0, "", true};
  case SYS_mremap:
    if (int error = refusal_of_template(policy, registers)) return {Verdict::refuse, error};
    return {Verdict::allow, 0, "", true};
  case SYS_munmap:
  case SYS_brk:
    return {Verdict::allow, 0, "", true};
  case SYS_exit_group:
    return {Verdict::end, 0, "exit"};
  case SYS_exit:
    if (site.thread == site.worker) return {Verdict::end, 0, "exit of its thread"};
    return {Verdict::allow};
  case SYS_kill:
  case SYS_rt_sigqueueinfo:
    return decide_signal(target, site, registers.rdi, registers.rsi);
  case SYS_tkill:
    if (target.has_thread(static_cast<int>(registers.rdi)))
      return decide_signal(target, site, static_cast<uint64_t>(target.pid()), registers.rsi);
    return decide_signal(target, site, registers.rdi, registers.rsi);
  case SYS_tgkill:
  case SYS_rt_tgsigqueueinfo:
    return decide_signal(target, site, registers.rdi, registers.rdx);
  case SYS_execve:
  case SYS_execveat:
    return {Verdict::refuse, EPERM, "execve"};
  case SYS_fork:
  case SYS_vfork:
  case SYS_clone:
    return decide_fork(registers);
  case SYS_prlimit64:
    if (registers.rdi != 0 && static_cast<pid_t>(registers.rdi) != target.pid()) return {Verdict::refuse, EPERM, "prlimit"};
    return {Verdict::allow_and_replace, 0, changed_setting};
  case SYS_fcntl:
  case SYS_ioctl:
  case SYS_setrlimit:
  case SYS_chdir:
  case SYS_fchdir:
  case SYS_umask:
  case SYS_setpriority:
  case SYS_setsid:
  case SYS_setpgid:
  case SYS_ioprio_set:
  case SYS_sched_setaffinity:
  case SYS_sched_setscheduler:
  case SYS_sched_setparam:
  case SYS_sched_setattr:
  case SYS_timer_create:
  case SYS_set_tid_address:
    return {Verdict::allow_and_replace, 0, changed_setting};
  default:
    return {Verdict::refuse, EPERM, "system call"};
  }
}

int refusal_of_child(const Policy &policy, const Target &target, const user_regs_struct &registers,
                     const std::set<pid_t> &children) {
  auto signals = [&](uint64_t who, uint64_t signal) {
    bool own_group = registers.orig_rax == SYS_kill && static_cast<int>(who) == 0; // Of the function's session.
    return own_group || may_signal(target, children, static_cast<int>(who), signal) ? 0 : EPERM;
  };
  switch (registers.orig_rax) {
  case SYS_kill:
  case SYS_tkill:
  case SYS_rt_sigqueueinfo:
    return signals(registers.rdi, registers.rsi);
  case SYS_tgkill:
  case SYS_rt_tgsigqueueinfo:
    return signals(registers.rdi, registers.rdx);
  case SYS_prlimit64:
    return registers.rdi == 0 || children.contains(static_cast<pid_t>(registers.rdi)) ? 0 : EPERM;
  case SYS_madvise:
  case SYS_mremap:
    return refusal_of_template(policy, registers);
  default: // What the static filter lets through is the process's own affair.
    return 0;
  }
}

} // namespace gpuwhisk::inject
