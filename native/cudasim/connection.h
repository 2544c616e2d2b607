// A client's connection to the daemon. Nothing is kept but the descriptor and a counter, which the caller stores.
#ifndef GPUWHISK_CUDASIM_CONNECTION_H
#define GPUWHISK_CUDASIM_CONNECTION_H

#include "wire.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gwsim_connection {
  int descriptor;      // -1: none.
  uint32_t last_id;
};

/**
 * Connects to the daemon that the environment names and says hello. With role GWSIM_CUDA `*channel` becomes the
 * descriptor of the channel. Returns GWSIM_OK, GWSIM_NOT_FOUND where none is named, or GWSIM_DISCONNECTED.
 */
int gwsim_connect(struct gwsim_connection *connection, enum gwsim_role role, struct gwsim_node *node, int *channel);

/** As gwsim_connect, to the daemon whose socket is at `path`; a null pointer names none. */
int gwsim_connect_to(struct gwsim_connection *connection, const char *path, enum gwsim_role role,
                     struct gwsim_node *node, int *channel);

/**
 * Sends a request and waits for its answer. Not for two threads at once. `answer` gets at most `answer_size` bytes, and is
 * zero beyond what came. Returns the answer's status, or GWSIM_DISCONNECTED with `*gone` set.
 */
int gwsim_call(struct gwsim_connection *connection, enum gwsim_operation operation, const void *body, size_t length,
               void *answer, size_t answer_size, int *gone);

/**
 * The same, with a file's descriptor: `*descriptor` goes with the request if it is not -1, and becomes what came with the
 * answer, which is the caller's, or -1.
 */
int gwsim_call_with(struct gwsim_connection *connection, enum gwsim_operation operation, const void *body,
                    size_t length, void *answer, size_t answer_size, int *descriptor, int *gone);

/** A request that has no answer. Never waits. */
void gwsim_notify(const struct gwsim_connection *connection, enum gwsim_operation operation);

/** Whether the daemon has closed the connection. Never waits. */
int gwsim_is_gone(const struct gwsim_connection *connection);

void gwsim_close(struct gwsim_connection *connection);

#ifdef __cplusplus
}
#endif
#endif
