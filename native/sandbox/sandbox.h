// The sandbox launcher: one process per sandbox, between the platform and the runtime.
//
//   platform ── launcher ── init (PID 1 of the sandbox) ── runtime
//
// The launcher reads a spec in two messages from its descriptor 3 (each a u32 little-endian length, then
// NUL-terminated words, which spec.c lists), builds what it says, and stays until the sandbox has ended. The first
// message may come long before the second: the platform keeps spare launchers, which have joined their cgroup (it can
// take a grace period of the kernel, 10 ms and more) and made the namespaces, the network and the root that every
// sandbox has. The policy (which mounts, limits and ids) is the platform's; this program only carries it out.
#ifndef SANDBOX_H
#define SANDBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { CONTROL_FD = 0, SOCKET_FD = 3, RUNS_FD = 4, MAX_STEPS = 512, MAX_ARGS = 256, EXIT_SETUP_FAILED = 125, MAX_SENT = 2 };

// What the platform may write to descriptor 0 later. Its end means that the platform is gone.
enum { COMMAND_PAUSE = 'p', COMMAND_RESUME = 'r' };

enum operation {
  OP_MAKE_DIR,   // path
  OP_WRITE,      // path, text: before the sandbox's command starts
  OP_JOIN,       // cgroup v1 folder: the sandbox is started in it
  OP_JOIN_DIR,   // cgroup v2 folder: the sandbox is started in it
  OP_OOM_COUNT,  // file with an "oom_kill N" line
  OP_OOM_EVENT,  // cgroup v1 memory folder: end the sandbox when it runs out of memory
  OP_WATCH,      // bytes of resident memory at which the sandbox is killed
  OP_NAMESPACE,  // user mount pid ipc uts net cgroup
  OP_JOIN_PID,   // PID namespace of others to start in, a path; needs a control group, by which the sandbox ends
  OP_DOMAIN,     // a Landlock domain, for the command and all that it starts
  OP_ID,         // user and group inside, user and group outside
  OP_ROOT,       // an empty folder of the host to build the root on
  OP_FORGET,     // path of the host: what is mounted below is not kept while the spec is waited for outside of the root
  OP_OWN,        // path: made if absent and given to the outer id
  OP_TMPFS,      // path inside, size in bytes, inodes, own | shared: whose it is, the sandbox's user's or everybody's
  OP_BIND,       // source, path inside, ro | rw | dev
  OP_LINK,       // target, path inside
  OP_PROC,       // mount a new /proc; where the PID namespace is shared, one that shows the sandbox's own processes
  OP_MASK,       // path inside: hidden by something empty
  OP_VETH,       // name outside, address outside, address inside, prefix length
  OP_RLIMIT,     // name, value
  OP_FILTER,     // install the system call filter
  OP_TRACES,     // the filter lets the command trace processes: it gives those that run functions a filter of its own
  OP_CWD,        // path
  OP_HOSTNAME,   // name
  OP_KEEP_SOCKET, // the runtime keeps descriptor 3
  OP_KEEP_RUNS,  // and descriptor 4, a socket for runs
  OP_ENV         // NAME=value
};

struct step {
  enum operation op;
  const char *args[4];
};

struct spec {
  struct step steps[MAX_STEPS];
  int count;
  char *command[MAX_ARGS + 1];
  char *environment[MAX_ARGS + 1];
  int environment_count;
  // Gathered from the steps:
  int namespaces; // CLONE_NEW* flags
  uid_t inner, outer;
  bool has_id;
  // Whether the sandbox enters its root before it waits for the rest of its spec; what is bound later is sent to it.
  bool enters_ahead;
  bool entered;
  // The last message as it came.
  const char *message;
  uint32_t message_length;
};

// spec.c
// Reads one message and adds it to the spec; the one that ends with a command is the last.
void read_spec(struct spec *spec, int from);
// Passes on the message that was read last.
void forward_spec(const struct spec *spec, int to);
const struct step *find_step(const struct spec *spec, enum operation op);
// Whether the command's parent, the sandbox's first process, stays to reap what it leaves.
bool has_init(const struct spec *spec);
bool joins_others(const struct spec *spec);
long number(const char *text);

// report.c
// Tells the platform that `measure` failed and why (errno if `error` is not 0), and ends the process.
_Noreturn void fail(const char *measure, int error, const char *detail);
void report_ready(void);
// Writes text to an existing file; -1 and errno if it could not.
int write_file(const char *path, const char *text);

// descriptors.c
// Sends up to MAX_SENT descriptors with one byte; ends this process if the other side has ended.
void send_descriptors(int channel, const int *descriptors, int count);
// How many came, at most `count`; ends this process if the other side has ended.
int receive_descriptors(int channel, int *descriptors, int count);

// root.c
// Carries out the steps from `first`; the first call, with 0, makes the root. Once it is entered, what is bound comes over
// `channel`.
void build_root(const struct spec *spec, int first, int channel);
// Nothing of the host's view of the file system is kept, so that the host may unmount what it likes.
void enter_root(struct spec *spec);
// No more is made in the root.
void close_root(void);
// Whether this process may copy mounts that another process attaches: since Linux 5.2, with root.
bool can_copy_mounts(void);
// Sends copies of what the steps from `first` bind, as the host has them now.
void send_binds(const struct spec *spec, int first, int channel);

// network.c
void raise_loopback(void);
// Makes the pair, with its inner end in the network namespace of `child`; run by the launcher.
void build_network(const struct spec *spec, pid_t child);

// A pair whose ends both stay with the host, so that the host has `address`; replaces one of that name.
void make_host_link(const char *name, const char *peer_name, const char *address);
void remove_host_link(const char *name); // If there is one.

// privileges.c
void map_ids(const struct spec *spec, pid_t child);
void become_unprivileged(const struct spec *spec);
void drop_privileges(const struct spec *spec);
// A function that is handed work does not push the platform that hands it out off its processor (SCHED_BATCH).
void yield_to_platform(void);

// filter.c
void install_filter(bool traces);

// shared_memory.c
void forbid_uncounted_memory(bool traces);

// init.c
_Noreturn void run_init(const struct spec *spec, int launcher);

// domain.c
void enter_domain(void);

// group.c
void end_group(const struct spec *spec);

// holder.c
// Keeps a PID namespace until the platform ends; its PID 1 runs as `user`.
int hold(uid_t user);

// sockets.c
// A socket by which the sockets of this process's network are looked at; -1 where the kernel has none.
int open_diagnosis(void);
long socket_bytes(int diagnosis);

// supervise.c
// What the watch on a sandbox's memory looks at, where there is no control group to count it.
struct watched {
  int proc_folder;
  int diagnosis; // A socket of sockets.c; -1 where the sandbox shares the host's network.
  int tmpfs[8];
  int tmpfs_count;
};
void watch_tmpfs(const struct spec *spec, pid_t child, struct watched *watched);
int supervise(const struct spec *spec, pid_t child, const struct watched *watched);

#endif
