// What the launcher tells the platform, as frames on descriptor 3 (u32 LE length, u8 type, u32 LE id, payload).
#define _GNU_SOURCE
#include "sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

// Outside the range of the runtime protocol's types.
enum { FRAME_LAUNCHER = 240, HEADER_BYTES = 9, MAX_TEXT = 1024 };

static void send_frame(const char *text) {
  size_t length = strlen(text);
  uint8_t frame[HEADER_BYTES + MAX_TEXT] = {(uint8_t)length, (uint8_t)(length >> 8), 0, 0, FRAME_LAUNCHER};
  memcpy(frame + HEADER_BYTES, text, length);
  // If the platform is gone there is no reader, and the death signal is on its way. Without a socket this is one
  // of the platform's own calls, whose complaints it reads here.
  if (send(SOCKET_FD, frame, HEADER_BYTES + length, MSG_NOSIGNAL) < 0 && errno == EBADF)
    dprintf(STDERR_FILENO, "%s\n", text);
}

void fail(const char *measure, int error, const char *detail) {
  char text[MAX_TEXT];
  if (error != 0) {
    snprintf(text, sizeof text, "error\n%s\n%s: %s", measure, detail, strerror(error));
  } else {
    snprintf(text, sizeof text, "error\n%s\n%s", measure, detail);
  }
  send_frame(text);
  _exit(EXIT_SETUP_FAILED);
}

void report_ready(void) { send_frame("ready"); }

int write_file(const char *path, const char *text) {
  int file = open(path, O_WRONLY | O_CLOEXEC);
  if (file < 0) return -1;
  ssize_t written = write(file, text, strlen(text));
  int error = errno;
  close(file);
  errno = error;
  return written == (ssize_t)strlen(text) ? 0 : -1;
}
