// From frames to bytes of the socket.
#include "outbox.h"
#include "inbox.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { USUAL_SIZE = 64 * 1024 };

char *outbox_reserve(struct outbox *outbox, size_t bytes) {
  size_t wanted = outbox->filled + FRAME_HEADER + bytes + 1;
  if (wanted > outbox->size) {
    size_t size = outbox->size == 0 ? USUAL_SIZE : outbox->size;
    if (size < wanted) size = wanted;
    outbox->bytes = realloc(outbox->bytes, size);
    if (outbox->bytes == NULL) abort();
    outbox->size = size;
  }
  return outbox->bytes + outbox->filled + FRAME_HEADER;
}

void outbox_add(struct outbox *outbox, uint8_t type, uint32_t id, size_t bytes) {
  char *header = outbox->bytes + outbox->filled;
  uint32_t length = (uint32_t)bytes;
  memcpy(header, &length, sizeof length);
  header[4] = (char)type;
  memcpy(header + 5, &id, sizeof id);
  outbox->filled += FRAME_HEADER + bytes;
}

enum departure outbox_flush(struct outbox *outbox, int fd) {
  while (outbox->sent < outbox->filled) {
    ssize_t written = write(fd, outbox->bytes + outbox->sent, outbox->filled - outbox->sent);
    if (written >= 0) outbox->sent += (size_t)written;
    else if (errno == EAGAIN) return MUST_WAIT;
    else if (errno != EINTR) return NOBODY_THERE;
  }
  outbox->sent = outbox->filled = 0;
  if (outbox->size > USUAL_SIZE) {
    free(outbox->bytes);
    *outbox = (struct outbox){0};
  }
  return SENT;
}
