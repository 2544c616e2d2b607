#define _GNU_SOURCE
#include "state.h"

#include <errno.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "devices.h"

struct state *gwsim_state;

enum { LOCK_CHECK_MS = 100 };

static size_t state_bytes(void) { return (sizeof(struct state) + 0xfffff) & ~(size_t)0xfffff; }

char *heap_base(void) { return (char *)gwsim_state + state_bytes(); }
char *device_memory(void) { return heap_base() + HEAP_BYTES; }

int thread_id(void) {
  static __thread int id; // A child of fork does not come here.
  if (id == 0) id = (int)syscall(SYS_gettid);
  return id;
}

uint64_t clock_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void sleep_simulated_us(uint32_t microseconds) {
  uint64_t ns = (uint64_t)(microseconds * 1e3 / gwsim_state->node.time_scale);
  struct timespec left = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
  while (nanosleep(&left, &left) < 0 && errno == EINTR) continue;
}

// Whether the thread that holds the lock will never give it back: it is gone, or it is this one, which cannot have been
// here before unless it was put back to an earlier state.
static bool is_abandoned(uint32_t owner) {
  return (int)owner == thread_id() || (syscall(SYS_tgkill, getpid(), owner, 0) < 0 && errno == ESRCH);
}

// Others wait for the lock; then the thread that releases it must wake one.
#define AWAITED 0x80000000U

static bool take_from(uint32_t owner, uint32_t mine) {
  return __atomic_compare_exchange_n(&gwsim_state->lock, &owner, mine, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

void lock_state(void) { lock_state_until(UINT64_MAX); }

bool lock_state_until(uint64_t deadline_ns) {
  uint32_t *lock = &gwsim_state->lock, own = (uint32_t)thread_id(), mine = own;
  for (;;) {
    uint32_t owner = __atomic_load_n(lock, __ATOMIC_RELAXED), holder = owner & ~AWAITED;
    if (holder == 0) {
      if (take_from(owner, mine)) return true;
      continue;
    }
    if (holder != own) {
      if ((owner & AWAITED) == 0 && !take_from(owner, owner | AWAITED)) continue;
      mine = own | AWAITED; // There may be more who wait.
      struct timespec limit = {0, LOCK_CHECK_MS * 1000000L};
      bool late = syscall(SYS_futex, lock, FUTEX_WAIT, owner | AWAITED, &limit, NULL, 0) < 0 && errno == ETIMEDOUT;
      if (!late) continue;
    }
    if (is_abandoned(holder) && take_from(__atomic_load_n(lock, __ATOMIC_RELAXED) & AWAITED ? holder | AWAITED : holder, mine))
      return true;
    if (deadline_ns != UINT64_MAX && clock_ns() >= deadline_ns) return false;
  }
}

void unlock_state(void) {
  uint32_t was = __atomic_exchange_n(&gwsim_state->lock, 0, __ATOMIC_SEQ_CST);
  if ((was & AWAITED) != 0) syscall(SYS_futex, &gwsim_state->lock, FUTEX_WAKE, 1, NULL, NULL, 0);
}

CUresult call_daemon_with(enum gwsim_operation operation, const void *body, size_t length, void *answer,
                          size_t answer_size, int *file) {
  int gone = 0;
  int status = gwsim_call_with(&gwsim_state->connection, operation, body, length, answer, answer_size, file, &gone);
  if (!gone) return (CUresult)status;
  gwsim_state->gone = true;
  return CUDA_ERROR_UNKNOWN;
}

CUresult call_daemon(enum gwsim_operation operation, const void *body, size_t length, void *answer, size_t answer_size) {
  return call_daemon_with(operation, body, length, answer, answer_size, NULL);
}

CUresult check_ready(void) {
  struct state *state = gwsim_state;
  // A child has the mappings, but no driver works for it.
  if (state == NULL || state->pid != getpid()) return CUDA_ERROR_NOT_INITIALIZED;
  wait_for_unlock();
  if (state->gone) return CUDA_ERROR_UNKNOWN;
  return (CUresult)__atomic_load_n(&state->channel->faulted, __ATOMIC_ACQUIRE);
}

bool is_stream(CUstream stream) {
  uintptr_t first = (uintptr_t)gwsim_state->streams, at = (uintptr_t)stream;
  return at >= first && at < first + sizeof gwsim_state->streams && (at - first) % sizeof *stream == 0 &&
         stream->kind == STREAM;
}

bool is_event(CUevent event) {
  uintptr_t first = (uintptr_t)gwsim_state->events, at = (uintptr_t)event;
  return at >= first && at < first + sizeof gwsim_state->events && (at - first) % sizeof *event == 0 &&
         event->kind == EVENT;
}

bool is_context(CUcontext context) {
  uintptr_t first = (uintptr_t)gwsim_state->contexts, at = (uintptr_t)context;
  return at >= first && at < first + sizeof gwsim_state->contexts && (at - first) % sizeof *context == 0 &&
         context->kind == CONTEXT;
}

static struct state *map_state(int pid) {
  size_t bytes = state_bytes() + HEAP_BYTES + DEVICE_WINDOW;
  int file = memfd_create("gpuwhisk-cudasim", MFD_CLOEXEC);
  if (file < 0) return NULL;
  void *memory = MAP_FAILED;
  if (ftruncate(file, (off_t)bytes) == 0)
    memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
  close(file);
  if (memory == MAP_FAILED) return NULL;
  struct state *state = memory;
  state->pid = pid;
  return state;
}

static CUresult connect_state(struct state *state) {
  int channel = -1;
  int status = gwsim_connect(&state->connection, GWSIM_CUDA, &state->node, &channel);
  if (status == GWSIM_NOT_FOUND) return CUDA_ERROR_NO_DEVICE;
  if (status != GWSIM_OK) return CUDA_ERROR_DEVICE_UNAVAILABLE;
  if (channel < 0) return CUDA_ERROR_UNKNOWN;
  void *page = mmap(NULL, sizeof(struct gwsim_channel), PROT_READ | PROT_WRITE, MAP_SHARED, channel, 0);
  close(channel);
  if (page == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  state->channel = page;
  return see_devices(state);
}

EXPORT CUresult cuInit(unsigned int flags) {
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  int pid = getpid();
  if (gwsim_state != NULL) return gwsim_state->pid == pid ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
  struct state *state = map_state(pid);
  if (state == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult result = connect_state(state);
  struct state *none = NULL;
  if (result == CUDA_SUCCESS &&
      __atomic_compare_exchange_n(&gwsim_state, &none, state, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
    start_restorer();
    return CUDA_SUCCESS;
  }
  // Nothing to be seen; or another thread was faster.
  gwsim_close(&state->connection);
  if (state->channel != NULL) munmap(state->channel, sizeof *state->channel);
  munmap(state, state_bytes() + HEAP_BYTES + DEVICE_WINDOW);
  return result;
}

EXPORT CUresult cuDriverGetVersion(int *version) {
  if (version == NULL) return CUDA_ERROR_INVALID_VALUE;
  *version = GWSIM_CUDA_VERSION;
  return CUDA_SUCCESS;
}
