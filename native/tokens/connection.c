// Registering with the server: one message each way over a socket that is closed again. What comes back is not trusted:
// a page that could be cut off, or an answer of another form, is refused, and the program runs without limits.
#define _GNU_SOURCE
#include "tokens.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { ANSWER_TIMEOUT_MS = 1000 };

static bool wait_until_ready(int socket, short events, int64_t deadline_ns) {
  for (;;) {
    int64_t left_ms = (deadline_ns - monotonic_ns()) / 1000000;
    if (left_ms <= 0) return false;
    struct pollfd poll_for = {.fd = socket, .events = events};
    int ready = poll(&poll_for, 1, (int)left_ms);
    if (ready > 0) return true;
    if (ready == 0 || errno != EINTR) return false;
  }
}

static int reach(const char *path, int64_t deadline_ns) {
  int file = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (file < 0) return -1;
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  strncpy(address.sun_path, path, sizeof address.sun_path - 1);
  while (connect(file, (struct sockaddr *)&address, sizeof address) < 0) {
    // A full queue of a local socket is not waited for by the system.
    if ((errno == EAGAIN || errno == EINTR) && monotonic_ns() < deadline_ns && usleep(1000) == 0) continue;
    close(file);
    return -1;
  }
  return file;
}

/** The answer, with the one descriptor that came with it or -1. */
static bool receive(int socket, struct tokens_welcome *welcome, int *page_file) {
  union {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(4 * sizeof(int))];
  } control;
  struct iovec part = {.iov_base = welcome, .iov_len = sizeof *welcome};
  struct msghdr message = {
      .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
  ssize_t length = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  *page_file = -1;
  int files = 0;
  if (length >= 0)
    for (struct cmsghdr *part = CMSG_FIRSTHDR(&message); part != NULL; part = CMSG_NXTHDR(&message, part)) {
      if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
      for (size_t i = 0; i < (part->cmsg_len - CMSG_LEN(0)) / sizeof(int); i += 1) {
        int file;
        memcpy(&file, CMSG_DATA(part) + i * sizeof file, sizeof file);
        if (files++ == 0) *page_file = file;
        else close(file);
      }
    }
  return length == sizeof *welcome && files <= 1 && (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0 &&
         welcome->magic == TOKENS_MAGIC && welcome->version == TOKENS_VERSION;
}

/** Whether the page can be mapped for good: of the right size, and sealed against truncation. */
static bool is_sound(int file) {
  struct stat status;
  int seals = fcntl(file, F_GET_SEALS);
  return fstat(file, &status) == 0 && status.st_size == TOKENS_PAGE_BYTES && seals >= 0 && (seals & F_SEAL_SHRINK) != 0;
}

static bool map_over(struct account *account, int file, uint32_t process) {
  // Launches of other threads see the old page or the new one: the address never is without.
  void *mapped = mmap(account->page, TOKENS_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0);
  if (mapped == MAP_FAILED) return false;
  STORE(account->page->memory_used[process], ledger_bytes((uint32_t)(account - accounts)));
  STORE(account->process, (int)process);
  return true;
}

/** NULL if all went well. */
static const char *register_process(const char *ticket, struct account *account, int socket, int64_t deadline_ns,
                                    int *page_file) {
  struct tokens_hello hello = {.magic = TOKENS_MAGIC, .version = TOKENS_VERSION};
  strncpy(hello.ticket, ticket, sizeof hello.ticket - 1);
  struct tokens_welcome welcome;
  if (send(socket, &hello, sizeof hello, MSG_NOSIGNAL) != sizeof hello) return "the server does not listen";
  if (!wait_until_ready(socket, POLLIN, deadline_ns)) return "the server does not answer";
  if (!receive(socket, &welcome, page_file)) return "the server's answer makes no sense";
  if (welcome.status == TOKENS_BAD_TICKET) return "the server does not know the ticket";
  if (welcome.status == TOKENS_FULL) return "the server has no place left";
  if (welcome.status != TOKENS_WELCOME || welcome.process >= TOKENS_PROCESSES || *page_file < 0 || !is_sound(*page_file))
    return "the server's answer makes no sense";
  return map_over(account, *page_file, welcome.process) ? NULL : "the server's page cannot be mapped";
}

const char *connect_account(const char *socket_path, const char *ticket, struct account *account) {
  int64_t deadline_ns = monotonic_ns() + ANSWER_TIMEOUT_MS * (int64_t)1000000;
  int socket = reach(socket_path, deadline_ns);
  if (socket < 0) return "the server cannot be reached";
  int page_file = -1;
  const char *problem = register_process(ticket, account, socket, deadline_ns, &page_file);
  if (page_file >= 0) close(page_file);
  close(socket);
  return problem;
}
