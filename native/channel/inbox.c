// From bytes of the socket to frames.
#include "inbox.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { USUAL_SIZE = 64 * 1024, RUN = 3 };

static void resize(struct inbox *inbox, size_t size) {
  char *bytes = realloc(inbox->bytes, size);
  if (bytes == NULL) abort();
  inbox->bytes = bytes;
  inbox->size = size;
}

static size_t length_at(const char *header) {
  uint32_t length;
  memcpy(&length, header, sizeof length);
  return length;
}

/** Moves what is left to the front, and makes room for the whole of a frame that has begun. */
static void make_room(struct inbox *inbox) {
  size_t left = inbox->filled - inbox->taken;
  if (left > 0 && inbox->taken > 0) memmove(inbox->bytes, inbox->bytes + inbox->taken, left);
  inbox->taken = 0;
  inbox->filled = left;
  size_t wanted = USUAL_SIZE;
  if (left >= FRAME_HEADER) {
    size_t frame = FRAME_HEADER + length_at(inbox->bytes);
    if (frame > wanted && frame <= FRAME_HEADER + MAX_PAYLOAD) wanted = frame;
  }
  if (wanted > inbox->size || (left == 0 && inbox->size > USUAL_SIZE)) resize(inbox, wanted);
}

enum arrival inbox_fill(struct inbox *inbox, int fd, ssize_t (*reads)(int fd, void *to, size_t length)) {
  make_room(inbox);
  ssize_t got = reads(fd, inbox->bytes + inbox->filled, inbox->size - inbox->filled);
  if (got < 0) return got == -EAGAIN || got == -EINTR ? NOTHING_YET : PEER_GONE;
  if (got == 0) return PEER_GONE;
  inbox->filled += (size_t)got;
  return ARRIVED;
}

static ssize_t read_once(int fd, void *to, size_t length) {
  ssize_t got = read(fd, to, length);
  return got < 0 ? -errno : got;
}

enum arrival inbox_read(struct inbox *inbox, int fd) { return inbox_fill(inbox, fd, read_once); }

/** The end of the JSON object or array that begins at `at`; NULL if it does not end before `end`. */
static char *end_of_value(char *at, const char *end) {
  int depth = 0;
  for (bool quoted = false; at < end; at++) {
    if (quoted) {
      if (*at == '\\') at++;
      else if (*at == '"') quoted = false;
    } else if (*at == '"') quoted = true;
    else if (*at == '{' || *at == '[') depth++;
    else if ((*at == '}' || *at == ']') && --depth == 0) return at + 1;
  }
  return NULL;
}

/**
 * Tells the value of a run, which the action gets, from what is beside it, which hardly any action asks for: what is not
 * asked for need not be parsed.
 */
static void split_run(char *text, struct frame *frame) {
  static const char begin[] = "{\"value\":";
  size_t skipped = sizeof begin - 1;
  if (frame->bytes > MAX_SPLIT || frame->bytes <= skipped || memcmp(text, begin, skipped) != 0) return;
  char *value = text + skipped, *end = text + frame->bytes;
  if (*value != '{' && *value != '[') return;
  char *comma = end_of_value(value, end);
  if (comma == NULL || comma + 1 >= end || *comma != ',' || end[-1] != '}') return;
  *comma = '{';
  frame->rest = comma;
  frame->rest_bytes = (size_t)(end - comma);
  frame->text = value;
  frame->bytes = (size_t)(comma - value);
}

bool inbox_next(struct inbox *inbox, struct frame *frame, size_t *too_long) {
  *too_long = 0;
  char *header = inbox->bytes + inbox->taken;
  size_t left = inbox->filled - inbox->taken;
  if (left < FRAME_HEADER) return false;
  size_t length = length_at(header);
  if (length > MAX_PAYLOAD) {
    *too_long = length;
    return false;
  }
  if (left < FRAME_HEADER + length) return false;
  char *text = header + FRAME_HEADER;
  *frame = (struct frame){.type = (uint8_t)header[4], .text = text, .bytes = length};
  memcpy(&frame->id, header + 5, sizeof frame->id);
  inbox->taken += FRAME_HEADER + length;
  if (frame->type == RUN) split_run(text, frame);
  return true;
}
