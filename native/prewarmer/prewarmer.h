// What every pre-warmer does on its way to Ready, in this order:
//
//   gw_open_channel      maps what it shares with the proxy
//   gw_enter_landlock    before any thread is made: the domain is the thread's and its children's
//   (its own warm-up: libraries, interpreter, device)
//   gw_stand             where a template is to be made: the copies go on from here, each in a process of its own
//   gw_install_filter    one static system call filter, on all threads
//   gw_say_hello         tells the proxy where things are
//   gw_raise_ready       and then gw_park (park.h), by the worker
//
// Each that can fail ends the process with a message on descriptor 2 (gw_fail).
#ifndef GPUWHISK_PREWARMER_H
#define GPUWHISK_PREWARMER_H

#include "mailbox.h"

struct gw_channel {
  struct gw_state *writable_state; // Until the proxy takes it away.
  const struct gw_state *state;    // A mapping that can never become writable.
  struct gw_mailbox *mailbox;
};

_Noreturn void gw_fail(const char *what, int error);

void gw_open_channel(struct gw_channel *channel);

// Settings of the process, and of its descriptors: part of gw_open_channel.
void gw_prepare_process(void);
// Tells the proxy where the resident code is and waits, with one thread and no filter yet. Returns in the copies.
void gw_stand(struct gw_hello *hello, const struct gw_channel *channel);
// Fills in what is the same for every pre-warmer: the resident code, the mailbox.
void gw_fill_hello(struct gw_hello *hello, const struct gw_channel *channel);

// Confines the process: it reads `readable`, also writes `writable` (both NULL-ended; absent paths are skipped), and
// can neither trace nor signal what lies outside. Returns the version of Landlock, 0 where the kernel has none.
int gw_enter_landlock(const char *const *readable, const char *const *writable);

// `trace_mappings`: the proxy is told of every call that changes mappings, and compares them only after one. For
// pre-warmers whose functions rarely make such calls.
void gw_install_filter(int trace_mappings);

// Fills in what is the same for every pre-warmer (the resident code, the mailbox, the userfaultfd) and sends it.
void gw_say_hello(struct gw_hello *hello, const struct gw_channel *channel);

// Makes the first visible device's primary context current in the calling thread, which has to be the one that runs
// functions, if the environment has GPUWHISK_CUDA. Says on descriptor 2 why a device that is there has none. Returns what
// hello.cuda is to say. Before gw_install_filter.
int gw_make_cuda_context(void);
// Whether that context's driver can take checkpoints of the process, and GPUWHISK_CUDA_KEEP says `checkpoint`. Its
// threads change mappings then, with no proxy attached: the filter must not ask one.
int gw_can_be_checkpointed(void);
// Has the driver give up what functions left on the device (GW_CUDA_RESET). Returns 0, or the driver's error.
int gw_reset_device(void);

// Whether a ledger of device memory is loaded (native/tokens), and GPUWHISK_CUDA_KEEP is set: then a function's memory can be
// freed, and the context kept for the next function of the same owner.
int gw_can_free_device(void);
// Frees it. Returns 0 if nothing is left, and the context works; otherwise what failed is in `problem`.
int gw_free_device(const char **problem);

void gw_raise_ready(struct gw_channel *channel);

#endif
