#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/** MAX_SPLIT: of a run that is told apart. */
enum { FRAME_HEADER = 9, MAX_PAYLOAD = 64 * 1024 * 1024, MAX_SPLIT = 16 * 1024 };

/** A frame of the runtime protocol; the text lies in the inbox. */
struct frame {
  uint8_t type;
  uint32_t id;
  const char *text;
  size_t bytes;
  /** Of a run, where it could be told apart: what is beside `value`, an object of its own; `text` is the value then. */
  const char *rest;
  size_t rest_bytes;
};

/** Bytes that have arrived and were not taken. */
struct inbox {
  char *bytes;
  size_t size, filled, taken;
};

enum arrival { ARRIVED, NOTHING_YET, PEER_GONE };

/** Reads once from `fd`, which does not wait. Ends the process where there is no memory. */
enum arrival inbox_read(struct inbox *inbox, int fd);
/** As inbox_read, by a function that reads as read(2) does, and returns -errno where it fails. */
enum arrival inbox_fill(struct inbox *inbox, int fd, ssize_t (*reads)(int fd, void *to, size_t length));

/** Takes the next whole frame. False: there is none, and `too_long` says the length of one that no protocol allows, else 0. */
bool inbox_next(struct inbox *inbox, struct frame *frame, size_t *too_long);
