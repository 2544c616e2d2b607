// A CUDA context made ahead, for functions to find, and given back clean after them.
#define _GNU_SOURCE
#include "prewarmer.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Of the driver API: what it takes to make a context, as cuda.h declares it.
typedef int result;
typedef struct context *context;
enum { SUCCESS = 0, NO_DEVICE = 100 };

static struct {
  result (*reset)(void);
  result (*current)(context *);
  result (*synchronize)(void);
  context made;
  int takes_checkpoints;
} driver;

/** The ledger of native/tokens, where that library is loaded: it must know that the memory is gone. */
static struct {
  int (*free_since)(uint64_t mark);
  uint64_t mark;
} ledger;

static result run_steps(void *library, const char **step) {
  result (*init)(unsigned) = dlsym(library, "cuInit");
  result (*device_of)(int *, int) = dlsym(library, "cuDeviceGet");
  result (*retain)(context *, int) = dlsym(library, "cuDevicePrimaryCtxRetain");
  result (*make_current)(context) = dlsym(library, "cuCtxSetCurrent");
  *step = "The library lacks what every driver has";
  if (!init || !device_of || !retain || !make_current) return -1;
  int device = 0;
  context primary = NULL;
  result error;
  *step = "cuInit";
  if ((error = init(0))) return error;
  *step = "cuDeviceGet";
  if ((error = device_of(&device, 0))) return error;
  *step = "cuDevicePrimaryCtxRetain";
  if ((error = retain(&primary, device))) return error;
  *step = "cuCtxSetCurrent";
  if ((error = make_current(primary))) return error;
  driver.made = primary;
  driver.current = dlsym(library, "cuCtxGetCurrent");
  driver.synchronize = dlsym(library, "cuCtxSynchronize");
  return SUCCESS;
}

int gw_make_cuda_context(void) {
  if (!getenv("GPUWHISK_CUDA")) return GW_NO_CUDA;
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (!library) return GW_NO_CUDA; // A machine without a driver.
  const char *step = "";
  result error = run_steps(library, &step);
  if (error == NO_DEVICE) return GW_NO_CUDA;
  if (error) {
    dprintf(2, "The pre-warmer has no CUDA context: %s: error %d\n", step, error);
    return GW_NO_CUDA;
  }
  const char *keep = getenv("GPUWHISK_CUDA_KEEP");
  int by_owner = keep && strcmp(keep, "owner") == 0;
  driver.takes_checkpoints = keep && strcmp(keep, "checkpoint") == 0 && dlsym(library, "cuCheckpointProcessLock");
  // The stand-in driver keeps its state apart from the process's memory, and takes back what was made since a mark.
  void (*mark)(void) = dlsym(library, "gpuwhisk_sim_mark");
  driver.reset = dlsym(library, "gpuwhisk_sim_reset");
  uint64_t (*ledger_mark)(void) = dlsym(RTLD_DEFAULT, "gpuwhisk_tokens_mark");
  int (*free_since)(uint64_t) = dlsym(RTLD_DEFAULT, "gpuwhisk_tokens_free_since");
  int has_reset = mark && driver.reset && !by_owner;
  if (ledger_mark && free_since && (has_reset || keep)) {
    ledger.free_since = free_since;
    ledger.mark = ledger_mark();
  }
  if (!has_reset) driver.reset = NULL;
  else mark();
  return has_reset ? GW_CUDA_RESET : GW_CUDA_KEPT;
}

int gw_can_free_device(void) { return ledger.free_since && driver.current && driver.synchronize; }

int gw_free_device(const char **problem) {
  context now = NULL;
  *problem = "The context has an error.";
  if (driver.synchronize() != SUCCESS) return -1;
  *problem = "The driver does not free the function's memory.";
  if (ledger.free_since(ledger.mark) < 0) return -1;
  *problem = "Another context is current.";
  if (driver.current(&now) != SUCCESS || now != driver.made) return -1;
  *problem = "The context has an error.";
  return driver.synchronize() == SUCCESS ? 0 : -1;
}

int gw_can_be_checkpointed(void) { return driver.takes_checkpoints; }

int gw_reset_device(void) {
  if (!driver.reset) return -1;
  // What the driver refuses to free is taken back by its reset, too.
  if (ledger.free_since) (void)ledger.free_since(ledger.mark);
  return driver.reset();
}
