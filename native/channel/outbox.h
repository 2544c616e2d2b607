#pragma once

#include <stddef.h>
#include <stdint.h>

/** Frames that wait to be sent. Their number is bounded by the runs that are under way. */
struct outbox {
  char *bytes;
  size_t size, filled, sent;
};

/** Where a payload of up to `bytes` and a zero after it can be written. Ends the process where there is no memory. */
char *outbox_reserve(struct outbox *outbox, size_t bytes);

/** Makes a frame of the `bytes` that were written where `outbox_reserve` said. */
void outbox_add(struct outbox *outbox, uint8_t type, uint32_t id, size_t bytes);

enum departure { SENT, MUST_WAIT, NOBODY_THERE };

/** Writes to `fd`, which does not wait, what it takes. */
enum departure outbox_flush(struct outbox *outbox, int fd);
