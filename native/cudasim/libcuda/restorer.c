// The thread that carries out checkpoints, as other processes ask for them by the daemon. It keeps nothing from one command
// to the next but its socket, so that a process can be put back to an earlier checkpoint while it waits.
#define _GNU_SOURCE
#include "state.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { STACK_BYTES = 256 << 10 };

static __thread bool is_restorer;

void wait_for_unlock(void) {
  uint32_t *checkpoint = &gwsim_state->checkpoint, now;
  if (is_restorer) return;
  while ((now = __atomic_load_n(checkpoint, __ATOMIC_ACQUIRE)) != CU_PROCESS_STATE_RUNNING)
    syscall(SYS_futex, checkpoint, FUTEX_WAIT, now, NULL, NULL, 0);
}

static void enter(CUprocessState state) { __atomic_store_n(&gwsim_state->checkpoint, (uint32_t)state, __ATOMIC_RELEASE); }

static CUresult wait_for_streams(uint64_t deadline_ns) {
  for (int i = 0; i < GWSIM_STREAMS; i++) {
    const struct CUstream_st *stream = &gwsim_state->streams[i];
    if (stream->kind != STREAM || stream->submitted == 0) continue;
    CUresult result = wait_until(stream->slot, stream->submitted, deadline_ns);
    if (result != CUDA_SUCCESS) return result;
  }
  return check_ready();
}

static bool is_idle(void) {
  for (int i = 0; i < GWSIM_STREAMS; i++) {
    const struct CUstream_st *stream = &gwsim_state->streams[i];
    if (stream->kind == STREAM && query(stream->slot, stream->submitted) != CUDA_SUCCESS) return false;
  }
  return true;
}

// Holds the lock over all tables until the process is unlocked: a call that has begun comes no further than to it.
static CUresult lock_process(uint32_t timeout_ms) {
  uint64_t deadline_ns = timeout_ms == 0 ? UINT64_MAX : clock_ns() + timeout_ms * 1000000ULL;
  for (;;) {
    CUresult result = wait_for_streams(deadline_ns);
    if (result != CUDA_SUCCESS) return result;
    if (!lock_state_until(deadline_ns)) return CUDA_ERROR_NOT_READY;
    if (is_idle()) break;
    unlock_state();
  }
  enter(CU_PROCESS_STATE_LOCKED);
  return CUDA_SUCCESS;
}

static CUresult unlock_process(void) {
  enter(CU_PROCESS_STATE_RUNNING);
  syscall(SYS_futex, &gwsim_state->checkpoint, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
  unlock_state();
  return CUDA_SUCCESS;
}

static CUresult carry_out_command(const struct gwsim_checkpoint *command) {
  CUresult result;
  switch (command->command) {
  case GWSIM_LOCK:
    return lock_process(command->timeout_ms);
  case GWSIM_SAVE:
    result = save_image();
    if (result == CUDA_SUCCESS) enter(CU_PROCESS_STATE_CHECKPOINTED);
    return result;
  case GWSIM_RESTORE:
    result = restore_image();
    if (result == CUDA_SUCCESS) enter(CU_PROCESS_STATE_LOCKED);
    else if (result == CUDA_ERROR_UNKNOWN) enter(CU_PROCESS_STATE_FAILED);
    return result;
  default:
    return unlock_process();
  }
}

static bool report(int daemon, CUresult result) {
  struct {
    struct gwsim_header header;
    struct gwsim_checkpoint_state now;
  } answer = {{GWSIM_CHECKPOINT_DONE, 0, (int32_t)result, sizeof answer.now}, {gwsim_state->checkpoint, thread_id()}};
  return send(daemon, &answer, sizeof answer, MSG_NOSIGNAL) == (ssize_t)sizeof answer;
}

static void *restore_for_others(void *argument) {
  int daemon = (int)(intptr_t)argument;
  is_restorer = true;
  bool present = report(daemon, CUDA_SUCCESS);
  while (present) {
    struct {
      struct gwsim_header header;
      struct gwsim_checkpoint command;
    } request;
    ssize_t got = recv(daemon, &request, sizeof request, 0);
    if (got < 0 && errno == EINTR) continue;
    present = got == (ssize_t)sizeof request && report(daemon, carry_out_command(&request.command));
  }
  close(daemon); // No call works any more.
  return NULL;
}

void start_restorer(void) {
  struct gwsim_connection connection;
  struct gwsim_node node;
  if (gwsim_connect(&connection, GWSIM_RESTORER, &node, NULL) != GWSIM_OK) return;
  pthread_t thread;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, STACK_BYTES);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before); // Signals are for the program's threads.
  int error = pthread_create(&thread, &attributes, restore_for_others, (void *)(intptr_t)connection.descriptor);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attributes);
  if (error != 0) gwsim_close(&connection);
}
