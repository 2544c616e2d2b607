// The greeting of a pre-warmer, with its userfaultfd.
#define _GNU_SOURCE
#include "prewarmer.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FEATURE_WRITE_PROTECT_ASYNC (1 << 15) // UFFD_FEATURE_WP_ASYNC, Linux 6.7
#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif

static int open_userfault(uint32_t *error) {
  long file = syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
  struct uffdio_api api = {.api = UFFD_API, .features = FEATURE_WRITE_PROTECT_ASYNC};
  if (file >= 0 && ioctl((int)file, UFFDIO_API, &api) == 0) return (int)file;
  *error = (uint32_t)errno;
  if (file >= 0) close((int)file);
  return -1;
}

void gw_say_hello(struct gw_hello *hello, const struct gw_channel *channel) {
  hello->checkpoint = gw_can_be_checkpointed();
  if (hello->checkpoint) hello->traces_mappings = 0; // Those of the driver's threads would not be told.
  gw_fill_hello(hello, channel);
  uint32_t error = 0;
  // GPUWHISK_NO_USERFAULT: as if the kernel had none, so that tests reach the other way.
  int userfault = getenv("GPUWHISK_NO_USERFAULT") ? (error = ENOSYS, -1) : open_userfault(&error);
  hello->userfault_error = (int32_t)error;
  struct iovec body = {hello, sizeof *hello};
  union {
    char bytes[CMSG_SPACE(sizeof(int))];
    struct cmsghdr aligned;
  } control = {0};
  struct msghdr message = {.msg_iov = &body, .msg_iovlen = 1};
  if (userfault >= 0) {
    message.msg_control = control.bytes;
    message.msg_controllen = sizeof control.bytes;
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    *header = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    memcpy(CMSG_DATA(header), &userfault, sizeof userfault);
  }
  if (sendmsg(GW_CONTROL_FD, &message, MSG_NOSIGNAL) != (ssize_t)sizeof *hello) gw_fail("greet the proxy", errno);
  if (userfault >= 0) close(userfault);
  close(GW_CONTROL_FD);
}
