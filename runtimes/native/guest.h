// The part of the native pre-warmer that handles functions: run by the worker when the proxy directs it here.
#ifndef GPUWHISK_GUEST_H
#define GPUWHISK_GUEST_H

#include "../../native/prewarmer/mailbox.h"

// Pays first-use costs of the dynamic linker and of standard output.
void gw_prepare_guest(struct gw_mailbox *mailbox);

// Does what the mailbox asks for: loads the shared object that arrives on the control socket, calls its
// function, serves runs by itself, or has the device reset.
void gw_guest(void);

#endif
