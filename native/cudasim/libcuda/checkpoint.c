// Checkpoints of other processes: each call is a request to the daemon, on a connection of its own.
#define _GNU_SOURCE
#include "state.h"

#include <sys/syscall.h>
#include <unistd.h>

static CUresult ask(int pid, struct gwsim_checkpoint command, struct gwsim_checkpoint_state *answer) {
  if (gwsim_state == NULL || gwsim_state->pid != getpid()) return CUDA_ERROR_NOT_INITIALIZED;
  int process = pid <= 0 ? -1 : (int)syscall(SYS_pidfd_open, pid, 0);
  if (process < 0) return CUDA_ERROR_INVALID_VALUE;
  struct gwsim_connection connection;
  struct gwsim_node node;
  CUresult result = CUDA_ERROR_UNKNOWN;
  if (gwsim_connect(&connection, GWSIM_MONITOR, &node, NULL) == GWSIM_OK) {
    int gone = 0, file = process;
    int status = gwsim_call_with(&connection, GWSIM_CHECKPOINT, &command, sizeof command, answer, sizeof *answer, &file, &gone);
    if (!gone) result = (CUresult)status;
    gwsim_close(&connection);
  }
  close(process);
  return result;
}

static CUresult command(int pid, enum gwsim_checkpoint_command what, uint32_t timeout_ms) {
  struct gwsim_checkpoint_state answer;
  return ask(pid, (struct gwsim_checkpoint){(uint32_t)what, timeout_ms}, &answer);
}

EXPORT CUresult cuCheckpointProcessGetRestoreThreadId(int pid, int *tid) {
  if (tid == NULL) return CUDA_ERROR_INVALID_VALUE;
  struct gwsim_checkpoint_state answer;
  CUresult result = ask(pid, (struct gwsim_checkpoint){GWSIM_GET_STATE, 0}, &answer);
  if (result == CUDA_SUCCESS) *tid = answer.thread;
  return result;
}

EXPORT CUresult cuCheckpointProcessGetState(int pid, CUprocessState *state) {
  if (state == NULL) return CUDA_ERROR_INVALID_VALUE;
  struct gwsim_checkpoint_state answer;
  CUresult result = ask(pid, (struct gwsim_checkpoint){GWSIM_GET_STATE, 0}, &answer);
  if (result == CUDA_SUCCESS) *state = (CUprocessState)answer.state;
  return result;
}

EXPORT CUresult cuCheckpointProcessLock(int pid, CUcheckpointLockArgs *args) {
  return command(pid, GWSIM_LOCK, args == NULL ? 0 : args->timeoutMs);
}

EXPORT CUresult cuCheckpointProcessCheckpoint(int pid, CUcheckpointCheckpointArgs *args) {
  (void)args;
  return command(pid, GWSIM_SAVE, 0);
}

// Onto the devices that the process had.
EXPORT CUresult cuCheckpointProcessRestore(int pid, CUcheckpointRestoreArgs *args) {
  if (args != NULL && args->gpuPairsCount != 0) return CUDA_ERROR_NOT_SUPPORTED;
  return command(pid, GWSIM_RESTORE, 0);
}

EXPORT CUresult cuCheckpointProcessUnlock(int pid, CUcheckpointUnlockArgs *args) {
  (void)args;
  return command(pid, GWSIM_UNLOCK, 0);
}
