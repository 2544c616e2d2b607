// What the proxy and a pre-warmer agree on: C, and C++ in the proxy.
//
// Two pieces of memory are shared. The *state page* holds the Ready flag: the pre-warmer raises it, and the proxy
// then takes its every way to write there; from then on only the proxy does. The *mailbox* takes requests and results, and the
// lists of system calls that the proxy has the pre-warmer make; nothing in it is trusted by the proxy.
#ifndef GPUWHISK_MAILBOX_H
#define GPUWHISK_MAILBOX_H

#include <stdint.h>

// What a pre-warmer is started with. The snapshot is for the proxy, which maps it there, for reading only, and closes it. The
// template is there for what becomes a copy of one (native/restorer).
enum { GW_CONTROL_FD = 3, GW_STATE_FD = 4, GW_MAILBOX_FD = 5, GW_SNAPSHOT_FD = 6, GW_TEMPLATE_FD = 7 };
// The socket by which a loaded function is given runs without the proxy, where there is one. Above the numbers that files get
// and that a program closes in a loop for good measure.
enum { GW_RUNS_FD = 500 };
enum { GW_EXIT_SETUP = 125 }; // The exit status of a pre-warmer that cannot start.
enum { GW_VERSION = 6, GW_READY = 1, GW_BUSY = 2 };
enum { GW_MAX_CALLS = 1000, GW_ARGUMENTS_BYTES = 8 << 20, GW_ENTRY_BYTES = 256, GW_MESSAGE_BYTES = 2048 };

// The state page.
struct gw_state {
  uint32_t ready; // GW_READY: parked at the safe point.
  uint32_t park;  // The futex that the worker waits on; it is never woken.
};

// One system call for gw_script; or, with the number GW_COPY, a copy of bytes: to, from, length.
enum { GW_COPY = -1 };
struct gw_call {
  int64_t number;
  uint64_t arguments[6];
  int64_t result; // Negative: -errno.
};

enum { GW_LOAD = 1, GW_CALL = 2, GW_RESET_DEVICE = 4, GW_SERVE = 8, GW_UNLOAD = 16 }; // gw_mailbox.request; the last three alone
enum { // gw_mailbox.status
  GW_DONE = 0,
  GW_NOT_LOADED = 1,
  GW_NO_ENTRY = 2,
  GW_NO_RESULT = 3,
  GW_REFUSED = 4,
  GW_NOT_RESET = 5,
  GW_NO_BATCH = 6, // The function is loaded, and takes one request at a time.
  GW_NOT_UNLOADED = 7
};

// gw_hello.cuda
enum {
  GW_NO_CUDA = 0,
  GW_CUDA_KEPT = 1, // A context whose driver keeps state in the process's memory: nothing there can be put back.
  GW_CUDA_RESET = 2, // A context whose driver keeps its state apart, and gives up what a function left.
  GW_CUDA_OWNER = 3  // As GW_CUDA_KEPT; the guest can unload a function, for the next one of the same owner.
};

struct gw_mailbox {
  struct gw_call calls[GW_MAX_CALLS];
  uint32_t request, status;
  uint32_t running; // During GW_SERVE: the id of the run under way, or 0.
  uint32_t yields;  // During GW_SERVE: an interrupted read of GW_RUNS_FD ends it.
  uint64_t result, result_length; // Where the function's answer lies, or what the guest tells of its load.
  uint64_t environment_length;    // NAME=value texts, each NUL-ended, before the argument.
  int64_t code;                   // For GW_LOAD: the descriptor of the function's code, a sealed memory file.
  char entry[GW_ENTRY_BYTES];
  char message[GW_MESSAGE_BYTES]; // What went wrong, for a status that is not GW_DONE.
  char arguments[GW_ARGUMENTS_BYTES];
};

// Sent to the proxy over the control socket when the pre-warmer is ready, with the userfaultfd if there is one. The
// pre-warmer closes its end then: a function that shut it down, or set options of it, would leave that to the next one.
struct gw_hello {
  uint32_t version;
  int32_t worker;             // The thread that is parked, and that runs functions.
  int32_t landlock;           // Version of Landlock in force; 0: the kernel has none.
  int32_t traces_mappings;    // As for gw_install_filter.
  int32_t userfault_error;    // Why there is no userfaultfd (errno); 0: it comes along.
  int32_t cuda;               // A GW_CUDA_… value.
  int32_t checkpoint;         // The driver can take checkpoints of the process, which is allowed: the filter lets its threads map.
  int32_t stands;             // It is in gw_stand and not Ready: a template is made of it, or it becomes one's copy.
  uint64_t park_return;       // Where the parked thread's instruction pointer is.
  uint64_t enter;             // Calls the function in rbx, then stops (int3): gw_enter.
  uint64_t script;            // Goes through r12 entries of the list at rbx, then stops: gw_script.
  uint64_t enter_end, script_end; // The instruction pointers at those stops.
  uint64_t guest;             // void gw_guest(void): does what the mailbox asks for.
  uint64_t mailbox;           // Where it is mapped in the pre-warmer.
  uint64_t read_return;       // Where the instruction pointer is that waits for runs (gw_read); 0: it does not serve by itself.
  uint64_t stand_return;      // Where the instruction pointer of a thread is that stands.
  uint64_t writable_state;    // Where the state page still is writable: the proxy takes that mapping away.
};

#endif
