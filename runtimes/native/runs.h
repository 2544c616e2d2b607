// Runs that the loaded function is given by a socket of its own, GW_RUNS_FD, without the proxy (docs/runtime-protocol.md).
#ifndef GPUWHISK_RUNS_H
#define GPUWHISK_RUNS_H

#include "../../native/prewarmer/mailbox.h"

// Answers runs until the proxy asks for something or a run cannot be answered, which the proxy does then: `running` is the run,
// and status and result are those of a call. `call` calls the function with what the mailbox holds.
void gw_serve_runs(struct gw_mailbox *mailbox, void (*call)(void));

#endif
