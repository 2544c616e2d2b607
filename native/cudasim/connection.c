#define _GNU_SOURCE
#include "connection.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

enum { CONNECT_TIMEOUT_MS = 5000 };

static int send_request(const struct gwsim_connection *connection, enum gwsim_operation operation, uint32_t id,
                        const void *body, size_t length, int descriptor, int flags) {
  struct gwsim_header header = {(uint32_t)operation, id, 0, (uint32_t)length};
  struct iovec parts[] = {{&header, sizeof header}, {(void *)body, length}};
  struct msghdr message = {.msg_iov = parts, .msg_iovlen = length == 0 ? 1 : 2};
  char control[CMSG_SPACE(sizeof descriptor)] = {0};
  if (descriptor >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    struct cmsghdr *part = CMSG_FIRSTHDR(&message);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(sizeof descriptor);
    memcpy(CMSG_DATA(part), &descriptor, sizeof descriptor);
  }
  ssize_t sent;
  do sent = sendmsg(connection->descriptor, &message, flags | MSG_NOSIGNAL);
  while (sent < 0 && errno == EINTR);
  return sent < 0 ? -1 : 0;
}

/** The first descriptor that came with a message, or -1; others are closed. */
static int descriptor_in(struct msghdr *message) {
  int first = -1;
  for (struct cmsghdr *part = CMSG_FIRSTHDR(message); part != NULL; part = CMSG_NXTHDR(message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    for (size_t at = 0; at + sizeof(int) <= part->cmsg_len - CMSG_LEN(0); at += sizeof(int)) {
      int descriptor;
      memcpy(&descriptor, CMSG_DATA(part) + at, sizeof descriptor);
      if (first < 0) first = descriptor;
      else close(descriptor);
    }
  }
  return first;
}

// Answers of calls that were given up (their thread was ended) may still come: they are passed over.
static int receive_answer(const struct gwsim_connection *connection, uint32_t id, void *answer, size_t size,
                          int *descriptor, int *gone) {
  for (;;) {
    struct gwsim_header header;
    char control[CMSG_SPACE(sizeof(int))];
    struct iovec parts[] = {{&header, sizeof header}, {answer, size}};
    struct msghdr message = {.msg_iov = parts,
                             .msg_iovlen = size == 0 ? 1 : 2,
                             .msg_control = control,
                             .msg_controllen = sizeof control};
    if (size != 0) memset(answer, 0, size);
    ssize_t got = recvmsg(connection->descriptor, &message, MSG_CMSG_CLOEXEC);
    if (got < 0 && errno == EINTR) continue;
    int passed = got < 0 ? -1 : descriptor_in(&message);
    if (got < (ssize_t)sizeof header) {
      if (passed >= 0) close(passed);
      *gone = 1;
      return GWSIM_DISCONNECTED;
    }
    if (header.id == id) {
      if (descriptor != NULL) *descriptor = passed;
      else if (passed >= 0) close(passed);
      return header.status;
    }
    if (passed >= 0) close(passed);
  }
}

int gwsim_connect(struct gwsim_connection *connection, enum gwsim_role role, struct gwsim_node *node, int *channel) {
  return gwsim_connect_to(connection, getenv(GWSIM_SOCKET_VARIABLE), role, node, channel);
}

int gwsim_connect_to(struct gwsim_connection *connection, const char *path, enum gwsim_role role,
                     struct gwsim_node *node, int *channel) {
  connection->descriptor = -1;
  connection->last_id = 0;
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (path == NULL || path[0] == '\0' || strlen(path) >= sizeof address.sun_path) return GWSIM_NOT_FOUND;
  strcpy(address.sun_path, path);
  int descriptor = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return GWSIM_DISCONNECTED;
  struct timeval limit = {CONNECT_TIMEOUT_MS / 1000, 0}, none = {0, 0};
  setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  connection->descriptor = descriptor;
  struct gwsim_hello hello = {GWSIM_VERSION, role};
  int gone = 0, status = GWSIM_DISCONNECTED;
  if (connect(descriptor, (struct sockaddr *)&address, sizeof address) == 0 &&
      send_request(connection, GWSIM_HELLO, ++connection->last_id, &hello, sizeof hello, -1, 0) == 0)
    status = receive_answer(connection, connection->last_id, node, sizeof *node, channel, &gone);
  if (status != GWSIM_OK) gwsim_close(connection);
  else setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &none, sizeof none);
  return status;
}

int gwsim_call_with(struct gwsim_connection *connection, enum gwsim_operation operation, const void *body,
                    size_t length, void *answer, size_t answer_size, int *descriptor, int *gone) {
  uint32_t id = ++connection->last_id;
  if (send_request(connection, operation, id, body, length, descriptor == NULL ? -1 : *descriptor, 0) < 0) {
    *gone = 1;
    return GWSIM_DISCONNECTED;
  }
  return receive_answer(connection, id, answer, answer_size, descriptor, gone);
}

int gwsim_call(struct gwsim_connection *connection, enum gwsim_operation operation, const void *body, size_t length,
               void *answer, size_t answer_size, int *gone) {
  return gwsim_call_with(connection, operation, body, length, answer, answer_size, NULL, gone);
}

void gwsim_notify(const struct gwsim_connection *connection, enum gwsim_operation operation) {
  // Full: there is enough for the daemon to wake up to. Gone: the next call finds out.
  (void)send_request(connection, operation, 0, NULL, 0, -1, MSG_DONTWAIT);
}

int gwsim_is_gone(const struct gwsim_connection *connection) {
  struct pollfd poll_descriptor = {connection->descriptor, POLLRDHUP, 0};
  return poll(&poll_descriptor, 1, 0) > 0 && (poll_descriptor.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

void gwsim_close(struct gwsim_connection *connection) {
  if (connection->descriptor >= 0) close(connection->descriptor);
  connection->descriptor = -1;
}
