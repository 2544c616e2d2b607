// System calls that the filters of functions deny, and the error of each. native/sandbox/filter.c applies to all
// functions, native/prewarmer/filter.c also to functions that are injected into a warm process. A changed filter
// requires a change of this table.

/** The error that a function gets. */
type Denial = 'EPERM' | 'ENOSYS' | 'EAFNOSUPPORT';

interface DeniedCall {
  /** Number of the call by `os.uname().machine`; absent if the machine has no such call. */
  x86_64?: number;
  aarch64?: number;
  error: Denial;
  /** Arguments for which the kernel itself would return another error, or none, unless it checks a privilege first. */
  args?: readonly number[];
}

const both = (number: number, error: Denial, args: readonly number[] = []): DeniedCall => ({
  x86_64: number,
  aarch64: number,
  error,
  args,
});
const call = (x86_64: number, aarch64: number, args: readonly number[] = []): DeniedCall => ({
  ...{ x86_64, aarch64, args },
  error: 'EPERM',
});
const newUser = 0x10000000;
const sharedFiles = 0x200;

/** Denied calls by name. */
export const deniedCalls: Readonly<Record<string, DeniedCall>> = {
  // mounts, namespaces
  mount: call(165, 40),
  umount2: call(166, 39),
  pivot_root: call(155, 41),
  chroot: call(161, 51),
  open_tree: both(428, 'EPERM', [-1, 0, 0xffffff]),
  move_mount: both(429, 'EPERM'),
  fsopen: both(430, 'EPERM'),
  fsconfig: both(431, 'EPERM', [-1, 99]),
  fsmount: both(432, 'EPERM'),
  fspick: both(433, 'EPERM'),
  mount_setattr: both(442, 'EPERM', [-1, 0, 0xffffff]),
  statmount: both(457, 'EPERM'),
  listmount: both(458, 'EPERM'),
  unshare: call(272, 97, [0]),
  setns: call(308, 268, [-1, 0]),
  'clone of a namespace': call(56, 220, [newUser | sharedFiles]),
  clone3: both(435, 'ENOSYS'),
  // other processes
  ptrace: call(101, 117, [0xffff]),
  process_vm_readv: call(310, 270, [0, 0, 0, 0, 0, 1]),
  process_vm_writev: call(311, 271, [0, 0, 0, 0, 0, 1]),
  kcmp: call(312, 272, [0, 0, 99]),
  pidfd_getfd: both(438, 'EPERM', [-1]),
  move_pages: call(279, 239, [0, 0, 0, 0, 0, 0xff]),
  migrate_pages: call(256, 238),
  perf_event_open: call(298, 241),
  userfaultfd: call(323, 282, [0xffff]),
  // the kernel
  bpf: call(321, 280, [9999]),
  io_uring_setup: both(425, 'EPERM', [0]),
  io_uring_enter: both(426, 'EPERM', [-1]),
  io_uring_register: both(427, 'EPERM', [-1]),
  memfd_secret: both(447, 'EPERM', [0xffff]),
  keyctl: call(250, 219, [9999]),
  add_key: call(248, 217),
  request_key: call(249, 218),
  kexec_load: call(246, 104),
  kexec_file_load: call(320, 294),
  init_module: call(175, 105),
  finit_module: call(313, 273),
  delete_module: call(176, 106),
  swapon: call(167, 224),
  swapoff: call(168, 225),
  reboot: call(169, 142),
  syslog: call(103, 116, [99]),
  acct: call(163, 89),
  quotactl: call(179, 60),
  settimeofday: call(164, 170),
  clock_settime: call(227, 112, [99]),
  clock_adjtime: call(305, 266, [99]),
  adjtimex: call(159, 171),
  open_by_handle_at: call(304, 265, [-1]),
  name_to_handle_at: call(303, 264, [-1]),
  lookup_dcookie: call(212, 18),
  fanotify_init: call(300, 262, [0xffff]),
  vhangup: call(153, 58),
  sethostname: call(170, 161, [0, 1]),
  setdomainname: call(171, 162, [0, 1]),
  iopl: { x86_64: 172, error: 'EPERM', args: [9] },
  ioperm: { x86_64: 173, error: 'EPERM' },
  modify_ldt: { x86_64: 154, error: 'EPERM', args: [99] },
  'a call of x32': { x86_64: 0x40000000 + 39, error: 'EPERM' },
  // calls denied by an argument
  'ioctl TIOCSTI': call(16, 29, [-1, 0x5412]),
  'socket AF_PACKET': { ...call(41, 198, [17, 3]), error: 'EAFNOSUPPORT' },
  'socket AF_VSOCK': { ...call(41, 198, [40, 1]), error: 'EAFNOSUPPORT' },
  'socket AF_ALG': { ...call(41, 198, [38, 5]), error: 'EAFNOSUPPORT' },
};

/** A Python action that makes the calls of its parameter `{name: {x86_64, aarch64, args}}` and returns their errors. */
export const callsAction = `import ctypes, errno, os, re
libc = ctypes.CDLL(None, use_errno=True)
def attempt(number, args):
  ctypes.set_errno(0)
  result = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(arg) for arg in args])
  return errno.errorcode[ctypes.get_errno()] if result == -1 else "done"
def main(given):
  machine = os.uname().machine
  mode = re.search(r"^Seccomp:\\s*(\\d)", open("/proc/self/status").read(), re.M).group(1)
  calls = {name: call for name, call in given["calls"].items() if machine in call}
  return {"mode": mode, "errors": {name: attempt(call[machine], call.get("args", [])) for name, call in calls.items()}}`;
