// Memory in the buffers of a sandbox's sockets, as the kernel's socket diagnosis tells it: pages of no process, which the
// watch of supervise.c would not see otherwise.
#define _GNU_SOURCE
#include "sandbox.h"

#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { WAIT_MS = 500 };

int open_diagnosis(void) {
  int diagnosis = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
  if (diagnosis < 0 && (errno == EPROTONOSUPPORT || errno == EAFNOSUPPORT)) return -1;
  if (diagnosis < 0) fail("watch", errno, "socket diagnosis");
  struct timeval wait = {.tv_usec = WAIT_MS * 1000};
  if (setsockopt(diagnosis, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait) < 0) fail("watch", errno, "socket diagnosis");
  return diagnosis;
}

// What one socket holds. A local one that its peer has left holds what that peer sent, which no socket is charged with in
// sight: up to the peer's buffer, taken to be as large as its own.
static long held(const struct rtattr *attribute, int length, int memory, bool local) {
  const uint32_t *sizes = NULL;
  uint32_t queued = 0;
  bool ends = local;
  for (; RTA_OK(attribute, length); attribute = RTA_NEXT(attribute, length)) {
    if (attribute->rta_type == memory) sizes = RTA_DATA(attribute);
    else if (local && attribute->rta_type == UNIX_DIAG_PEER) ends = false;
    else if (local && attribute->rta_type == UNIX_DIAG_RQLEN)
      queued = ((const struct unix_diag_rqlen *)RTA_DATA(attribute))->udiag_rqueue;
    // Comes after the peer, which the kernel names also if it is closed.
    else if (local && attribute->rta_type == UNIX_DIAG_SHUTDOWN)
      ends = ends || (*(const uint8_t *)RTA_DATA(attribute) & 1) != 0;
  }
  if (sizes == NULL) return 0;
  long bytes = (long)sizes[SK_MEMINFO_RMEM_ALLOC] + sizes[SK_MEMINFO_BACKLOG];
  long sent = sizes[SK_MEMINFO_WMEM_ALLOC];
  if (sizes[SK_MEMINFO_WMEM_QUEUED] > sent) sent = sizes[SK_MEMINFO_WMEM_QUEUED];
  return bytes + sent + (queued > 0 && ends ? (long)sizes[SK_MEMINFO_SNDBUF] : 0);
}

// Sums up the answer to a request; 0 where the kernel has no diagnosis of such sockets.
static long sum(int diagnosis, int memory, bool local) {
  static char buffer[64 * 1024];
  size_t fixed = local ? sizeof(struct unix_diag_msg) : sizeof(struct inet_diag_msg);
  long bytes = 0;
  for (;;) {
    ssize_t got = recv(diagnosis, buffer, sizeof buffer, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return bytes;
    int left = (int)got;
    for (struct nlmsghdr *message = (struct nlmsghdr *)buffer; NLMSG_OK(message, left);
         message = NLMSG_NEXT(message, left)) {
      if (message->nlmsg_type == NLMSG_DONE || message->nlmsg_type == NLMSG_ERROR) return bytes;
      if (message->nlmsg_len < NLMSG_LENGTH(fixed)) continue;
      const struct rtattr *first = (const void *)((char *)NLMSG_DATA(message) + NLMSG_ALIGN(fixed));
      bytes += held(first, (int)(message->nlmsg_len - NLMSG_LENGTH(NLMSG_ALIGN(fixed))), memory, local);
    }
  }
}

long socket_bytes(int diagnosis) {
  struct {
    struct nlmsghdr header;
    struct unix_diag_req request;
  } local = {{.nlmsg_len = sizeof local, .nlmsg_type = SOCK_DIAG_BY_FAMILY, .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
             {.sdiag_family = AF_UNIX,
              .udiag_states = ~0U,
              .udiag_show = UDIAG_SHOW_MEMINFO | UDIAG_SHOW_RQLEN | UDIAG_SHOW_PEER}};
  long bytes = 0;
  if (send(diagnosis, &local, sizeof local, 0) == sizeof local) bytes += sum(diagnosis, UNIX_DIAG_MEMINFO, true);
  static const uint8_t families[] = {AF_INET, AF_INET6}, protocols[] = {IPPROTO_TCP, IPPROTO_UDP};
  for (int i = 0; i < 4; i++) {
    struct {
      struct nlmsghdr header;
      struct inet_diag_req_v2 request;
    } remote = {{.nlmsg_len = sizeof remote, .nlmsg_type = SOCK_DIAG_BY_FAMILY, .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
                {.sdiag_family = families[i / 2],
                 .sdiag_protocol = protocols[i % 2],
                 .idiag_ext = 1 << (INET_DIAG_SKMEMINFO - 1),
                 .idiag_states = ~0U}};
    if (send(diagnosis, &remote, sizeof remote, 0) == sizeof remote)
      bytes += sum(diagnosis, INET_DIAG_SKMEMINFO, false);
  }
  return bytes;
}
