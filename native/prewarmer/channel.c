// What a pre-warmer shares with its proxy: the state page, the mailbox, and the greeting.
#define _GNU_SOURCE
#include "park.h"
#include "prewarmer.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif
#define FEATURE_WRITE_PROTECT_ASYNC (1 << 15) // UFFD_FEATURE_WP_ASYNC, Linux 6.7
#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif

_Noreturn void gw_fail(const char *what, int error) {
  dprintf(2, "The pre-warmer cannot start: %s: %s\n", what, strerror(error));
  _exit(GW_EXIT_SETUP);
}

static void *map(int file, size_t bytes, int protection) {
  void *address = mmap(NULL, bytes, protection, MAP_SHARED, file, 0);
  if (address == MAP_FAILED) gw_fail("mmap", errno);
  return address;
}

void gw_open_channel(struct gw_channel *channel) {
  channel->writable_state = map(GW_STATE_FD, sizeof(struct gw_state), PROT_READ | PROT_WRITE);
  // With this seal a new mapping is never writable, nor can it be made so; the proxy takes the one above away.
  if (fcntl(GW_STATE_FD, F_ADD_SEALS, F_SEAL_FUTURE_WRITE) < 0) gw_fail("seal the state page", errno);
  channel->state = map(GW_STATE_FD, sizeof(struct gw_state), PROT_READ);
  channel->mailbox = map(GW_MAILBOX_FD, sizeof(struct gw_mailbox), PROT_READ | PROT_WRITE);
  // Not for processes that the warm-up or a function starts.
  if (fcntl(GW_CONTROL_FD, F_SETFD, FD_CLOEXEC) < 0 || fcntl(GW_SNAPSHOT_FD, F_SETFD, FD_CLOEXEC) < 0)
    gw_fail("FD_CLOEXEC", errno);
  if (fcntl(GW_RUNS_FD, F_GETFD) >= 0 && fcntl(GW_RUNS_FD, F_SETFD, FD_CLOEXEC) < 0) gw_fail("FD_CLOEXEC", errno);
  close(GW_STATE_FD);
  close(GW_MAILBOX_FD);
  // A huge page would be written back whole for one byte.
  if (prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) < 0) gw_fail("PR_SET_THP_DISABLE", errno);
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) gw_fail("PR_SET_NO_NEW_PRIVS", errno);
  // For hosts with Yama; without it the kernel answers EINVAL.
  if (prctl(PR_SET_PTRACER, getppid(), 0, 0, 0) < 0 && errno != EINVAL) gw_fail("PR_SET_PTRACER", errno);
}

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
  hello->version = GW_VERSION;
  hello->park_return = (uintptr_t)gw_park_return;
  hello->enter = (uintptr_t)gw_enter;
  hello->enter_end = (uintptr_t)gw_enter_end;
  hello->script = (uintptr_t)gw_script;
  hello->script_end = (uintptr_t)gw_script_end;
  hello->mailbox = (uintptr_t)channel->mailbox;
  hello->writable_state = (uintptr_t)channel->writable_state;
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

void gw_raise_ready(struct gw_channel *channel) {
  __atomic_store_n(&channel->writable_state->ready, GW_READY, __ATOMIC_RELEASE);
}
