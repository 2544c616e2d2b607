#define _GNU_SOURCE
#include "runs.h"

#include "../../native/channel/inbox.h"
#include "../../native/prewarmer/park.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>

enum { RUN = 3, RESULT = 4, LOG = 6, MAX_LOG = 64, PIECES = 3 };

struct span {
  const char *text;
  size_t bytes;
};

static struct inbox inbox;

static int64_t now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000LL + now.tv_nsec / 1000;
}

/** Takes a length and as many bytes from the front of a payload in parts. */
static bool take(struct span *payload, struct span *taken) {
  uint32_t length;
  if (payload->bytes < sizeof length) return false;
  memcpy(&length, payload->text, sizeof length);
  if (length > payload->bytes - sizeof length) return false;
  *taken = (struct span){payload->text + sizeof length, length};
  payload->text += sizeof length + length;
  payload->bytes -= sizeof length + length;
  return true;
}

static bool is(struct span name, const char *text) {
  return name.bytes == strlen(text) && memcmp(name.text, text, name.bytes) == 0;
}

static char *put(char *to, struct span text) {
  memcpy(to, text.text, text.bytes);
  to[text.bytes] = '\0';
  return to + text.bytes + 1;
}

/** Puts environment and argument of a run where the proxy puts those of a call. Returns what is wrong with it, or NULL. */
static const char *address(struct gw_mailbox *mailbox, struct span payload) {
  // Each part is longer in the payload than here.
  if (payload.bytes >= sizeof mailbox->arguments) return "The argument is larger than 8 MiB.";
  struct span name, bytes, value = {"", 0};
  char *next = mailbox->arguments;
  while (payload.bytes > 0) {
    if (!take(&payload, &name) || !take(&payload, &bytes)) return "The payload is no list of parts.";
    if (is(name, "value")) value = bytes;
    else if (is(name, "env") && memchr(bytes.text, '\0', bytes.bytes) == NULL) next = put(next, bytes);
  }
  mailbox->environment_length = (uint64_t)(next - mailbox->arguments);
  put(next, value);
  return NULL;
}

static void put_header(char *header, uint8_t type, uint32_t id, size_t length) {
  uint32_t bytes = (uint32_t)length;
  memcpy(header, &bytes, sizeof bytes);
  header[4] = (char)type;
  memcpy(header + 5, &id, sizeof id);
}

static bool send_all(struct iovec *piece, size_t count) {
  while (count > 0) {
    struct msghdr message = {.msg_iov = piece, .msg_iovlen = count};
    ssize_t sent = sendmsg(GW_RUNS_FD, &message, MSG_NOSIGNAL);
    if (sent < 0 && errno != EINTR) return false;
    for (size_t left = sent < 0 ? 0 : (size_t)sent; count > 0;) {
      if (left < piece->iov_len) {
        piece->iov_base = (char *)piece->iov_base + left;
        piece->iov_len -= left;
        break;
      }
      left -= piece->iov_len;
      piece++;
      count--;
    }
  }
  return true;
}

/** Sends the result that lies where the mailbox says. False: the proxy has to. */
static bool answer(const struct gw_mailbox *mailbox, uint32_t id, int64_t us) {
  size_t bytes = mailbox->result_length;
  if (bytes > MAX_PAYLOAD) return false;
  char result[FRAME_HEADER], log[FRAME_HEADER + MAX_LOG];
  put_header(result, RESULT, id, bytes);
  int length = snprintf(log + FRAME_HEADER, MAX_LOG, "{\"us\":%lld}", (long long)us);
  put_header(log, LOG, id, (size_t)length);
  struct iovec pieces[PIECES] = {{result, sizeof result},
                                 {(void *)(uintptr_t)mailbox->result, bytes},
                                 {log, FRAME_HEADER + (size_t)length}};
  return send_all(pieces, PIECES);
}

/** False: the proxy has to answer. */
static bool serve_run(struct gw_mailbox *mailbox, const struct frame *frame, void (*call)(void)) {
  int64_t started_us = now_us();
  uint32_t id = frame->id;
  __atomic_store_n(&mailbox->running, id, __ATOMIC_RELEASE);
  const char *wrong = address(mailbox, (struct span){frame->text, frame->bytes});
  if (wrong) {
    mailbox->status = GW_REFUSED;
    snprintf(mailbox->message, sizeof mailbox->message, "%s", wrong);
    return false;
  }
  mailbox->status = GW_DONE;
  call();
  if (mailbox->status != GW_DONE || !answer(mailbox, id, now_us() - started_us)) return false;
  __atomic_store_n(&mailbox->running, 0, __ATOMIC_RELEASE);
  return true;
}

void gw_serve_runs(struct gw_mailbox *mailbox, void (*call)(void)) {
  for (;;) {
    struct frame frame;
    size_t too_long;
    while (inbox_next(&inbox, &frame, &too_long))
      if (frame.type != RUN || !serve_run(mailbox, &frame, call)) return;
    if (too_long > 0) return;
    switch (inbox_fill(&inbox, GW_RUNS_FD, gw_read)) {
    case ARRIVED:
      break;
    case PEER_GONE:
      return;
    case NOTHING_YET: // A signal came.
      if (__atomic_load_n(&mailbox->yields, __ATOMIC_ACQUIRE)) return;
    }
  }
}
