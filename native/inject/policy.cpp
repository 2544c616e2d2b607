#include "policy.h"

#include <cerrno>
#include <csignal>
#include <string>
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

Verdict decide_mapping(const Policy &policy, const Target &target, const user_regs_struct &registers,
                       const CallSite &site) {
  const Verdict no{Verdict::refuse, EACCES, "executable memory"}, yes{Verdict::allow, 0, "", true};
  if (!(registers.rdx & PROT_EXEC)) return yes;
  if (registers.rdx & PROT_WRITE) return no;
  if (registers.r10 & MAP_ANONYMOUS) return policy.executable_memory ? yes : no;
  if (!site.alone) return no; // Another thread could exchange the descriptor between this check and the call.
  int descriptor = static_cast<int>(registers.r8);
  if (is_payload(target, descriptor, site.payload)) return yes;
  std::string path = target.descriptor_link(descriptor);
  for (const char *folder : library_folders)
    if (path.starts_with(folder)) return yes;
  for (const std::string &folder : policy.library_folders)
    if (path.starts_with(folder)) return yes;
  return no;
}

Verdict decide_signal(const Target &target, uint64_t process, uint64_t signal) {
  bool own = static_cast<pid_t>(process) == target.pid();
  if (own && signal != SIGKILL && signal != SIGSTOP) return {Verdict::allow};
  return {Verdict::refuse, EPERM, "signal"};
}

} // namespace

Verdict decide(const Policy &policy, const Target &target, const user_regs_struct &registers, const CallSite &site) {
  switch (registers.orig_rax) {
  case SYS_mmap:
    return decide_mapping(policy, target, registers, site);
  case SYS_mprotect:
  case SYS_pkey_mprotect:
    if (!(registers.rdx & PROT_EXEC) || (policy.executable_memory && !(registers.rdx & PROT_WRITE)))
      return {Verdict::allow, 0, "", true};
    return {Verdict::refuse, EACCES, "executable memory"};
  case SYS_munmap:
  case SYS_mremap:
  case SYS_brk:
  case SYS_madvise:
    return {Verdict::allow, 0, "", true};
  case SYS_exit_group:
    return {Verdict::end, 0, "exit"};
  case SYS_exit:
    if (site.thread == site.worker) return {Verdict::end, 0, "exit of its thread"};
    return {Verdict::allow};
  case SYS_kill:
  case SYS_rt_sigqueueinfo:
    return decide_signal(target, registers.rdi, registers.rsi);
  case SYS_tkill:
    if (target.threads().contains(static_cast<int>(registers.rdi)))
      return decide_signal(target, static_cast<uint64_t>(target.pid()), registers.rsi);
    return {Verdict::refuse, EPERM, "signal"};
  case SYS_tgkill:
  case SYS_rt_tgsigqueueinfo:
    return decide_signal(target, registers.rdi, registers.rdx);
  case SYS_execve:
  case SYS_execveat:
    return {Verdict::refuse, EPERM, "execve"};
  case SYS_fork:
  case SYS_vfork:
  case SYS_clone:
    return {Verdict::refuse, EPERM, "fork"};
  case SYS_prlimit64:
    if (registers.rdi != 0 && static_cast<pid_t>(registers.rdi) != target.pid()) return {Verdict::refuse, EPERM, "prlimit"};
    return {Verdict::allow_and_replace, 0, "prlimit"};
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
    return {Verdict::allow_and_replace, 0, "a setting of the process"};
  default:
    return {Verdict::refuse, EPERM, "system call"};
  }
}

} // namespace gpuwhisk::inject
