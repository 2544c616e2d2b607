// Descriptors passed between the launcher and the sandbox's first process.
#define _GNU_SOURCE
#include "sandbox.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

void send_descriptors(int channel, const int *descriptors, int count) {
  size_t bytes = (size_t)count * sizeof *descriptors;
  char mark = 'd', space[CMSG_SPACE(MAX_SENT * sizeof *descriptors)] = {0};
  struct iovec body = {&mark, 1};
  struct msghdr message = {
      .msg_iov = &body, .msg_iovlen = 1, .msg_control = space, .msg_controllen = CMSG_SPACE(bytes)};
  struct cmsghdr *header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(bytes);
  memcpy(CMSG_DATA(header), descriptors, bytes);
  if (sendmsg(channel, &message, MSG_NOSIGNAL) != 1) _exit(EXIT_SETUP_FAILED); // The other side has failed and said so.
}

int receive_descriptors(int channel, int *descriptors, int count) {
  char mark, space[CMSG_SPACE(MAX_SENT * sizeof *descriptors)];
  struct iovec body = {&mark, 1};
  size_t most = CMSG_SPACE((size_t)count * sizeof *descriptors);
  struct msghdr message = {.msg_iov = &body, .msg_iovlen = 1, .msg_control = space, .msg_controllen = most};
  ssize_t got;
  do got = recvmsg(channel, &message, MSG_CMSG_CLOEXEC);
  while (got < 0 && errno == EINTR);
  struct cmsghdr *header = got == 1 ? CMSG_FIRSTHDR(&message) : NULL;
  if (header == NULL) _exit(EXIT_SETUP_FAILED);
  size_t bytes = header->cmsg_len - CMSG_LEN(0);
  // The control buffer is rounded up to what a few more would fit into.
  if (bytes > (size_t)count * sizeof *descriptors) _exit(EXIT_SETUP_FAILED);
  memcpy(descriptors, CMSG_DATA(header), bytes);
  return (int)(bytes / sizeof *descriptors);
}
