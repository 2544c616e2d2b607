// What a pre-warmer shares with its proxy: the state page and the mailbox.
#define _GNU_SOURCE
#include "park.h"
#include "prewarmer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
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
  gw_prepare_process();
  close(GW_STATE_FD);
  close(GW_MAILBOX_FD);
}

void gw_prepare_process(void) {
  // Not for processes that the warm-up or a function starts.
  if (fcntl(GW_CONTROL_FD, F_SETFD, FD_CLOEXEC) < 0 || fcntl(GW_SNAPSHOT_FD, F_SETFD, FD_CLOEXEC) < 0)
    gw_fail("FD_CLOEXEC", errno);
  if (fcntl(GW_RUNS_FD, F_GETFD) >= 0 && fcntl(GW_RUNS_FD, F_SETFD, FD_CLOEXEC) < 0) gw_fail("FD_CLOEXEC", errno);
  // A huge page would be written back whole for one byte.
  if (prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) < 0) gw_fail("PR_SET_THP_DISABLE", errno);
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) gw_fail("PR_SET_NO_NEW_PRIVS", errno);
  // For hosts with Yama; without it the kernel answers EINVAL.
  if (prctl(PR_SET_PTRACER, getppid(), 0, 0, 0) < 0 && errno != EINVAL) gw_fail("PR_SET_PTRACER", errno);
}

void gw_fill_hello(struct gw_hello *hello, const struct gw_channel *channel) {
  hello->version = GW_VERSION;
  hello->stands = 0;
  hello->stand_return = (uintptr_t)gw_wait_return;
  hello->park_return = (uintptr_t)gw_park_return;
  hello->enter = (uintptr_t)gw_enter;
  hello->enter_end = (uintptr_t)gw_enter_end;
  hello->script = (uintptr_t)gw_script;
  hello->script_end = (uintptr_t)gw_script_end;
  hello->mailbox = (uintptr_t)channel->mailbox;
  hello->writable_state = (uintptr_t)channel->writable_state;
}

void gw_stand(struct gw_hello *hello, const struct gw_channel *channel) {
  gw_fill_hello(hello, channel);
  hello->stands = 1;
  if (send(GW_CONTROL_FD, hello, sizeof *hello, MSG_NOSIGNAL) != (ssize_t)sizeof *hello) gw_fail("greet the proxy", errno);
  gw_wait(channel->state);
}

void gw_raise_ready(struct gw_channel *channel) {
  __atomic_store_n(&channel->writable_state->ready, GW_READY, __ATOMIC_RELEASE);
}
