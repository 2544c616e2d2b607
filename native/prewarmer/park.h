// The resident code that the proxy directs the worker to.
#ifndef GPUWHISK_PARK_H
#define GPUWHISK_PARK_H

#include "mailbox.h"

#include <sys/types.h>

// Waits on state->park until the end of days: the safe point. Does not return.
_Noreturn void gw_park(const struct gw_state *state);
// Waits there once; the proxy has it return.
void gw_wait(const struct gw_state *state);
// As read(2) of a socket, but returns -errno. Waits in ppoll: a blocked read wakes up, too, when the peer takes what was
// written.
ssize_t gw_read(int fd, void *to, size_t length);
extern const char gw_read_return[], gw_wait_return[], gw_park_return[], gw_enter[], gw_enter_end[], gw_script[], gw_script_end[];

#endif
