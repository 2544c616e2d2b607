#define _GNU_SOURCE
#include "guest.h"
#include "../../native/prewarmer/prewarmer.h"
#include "environment.h"
#include "runs.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
  struct gw_mailbox *mailbox;
  const char *(*entry)(const char *);
  const char *(*batch_entry)(const char *); // Takes several requests at once; NULL: the function has none.
  void (*free_result)(const char *);
  const char *last_result;
  void *library;
  char **environment; // As it was before the first function; its texts are the process's first ones.
  // Marks of launch cycles for kernel tokens, where their library is loaded; else NULL.
  void (*cycle_begin)(uint32_t batch);
  void (*cycle_end)(void);
} guest;

void gw_prepare_guest(struct gw_mailbox *mailbox) {
  guest.mailbox = mailbox;
  if (!dlopen(NULL, RTLD_NOW)) _exit(1);
  (void)dlsym(RTLD_DEFAULT, "gpuwhisk_main");
  *(void **)&guest.cycle_begin = dlsym(RTLD_DEFAULT, "gpuwhisk_tokens_cycle_begin");
  *(void **)&guest.cycle_end = dlsym(RTLD_DEFAULT, "gpuwhisk_tokens_cycle_end");
  (void)dlerror();
  size_t variables = 0;
  while (environ[variables]) variables++;
  guest.environment = calloc(variables + 1, sizeof *guest.environment);
  if (!guest.environment) _exit(1);
  memcpy(guest.environment, environ, variables * sizeof *guest.environment);
  setvbuf(stdout, NULL, _IOFBF, 1 << 16);
}

static int give_up(uint32_t status, const char *message) {
  guest.mailbox->status = status;
  snprintf(guest.mailbox->message, sizeof guest.mailbox->message, "%s", message ? message : "");
  return -1;
}

static void find_batch_entry(void *library) {
  static const char suffix[] = "_batch";
  char name[GW_ENTRY_BYTES + sizeof suffix];
  snprintf(name, sizeof name, "%.*s%s", GW_ENTRY_BYTES - 1, guest.mailbox->entry, suffix);
  *(void **)&guest.batch_entry = dlsym(library, name);
}

static int load(void) {
  int object = (int)guest.mailbox->code;
  char path[32];
  snprintf(path, sizeof path, "/proc/self/fd/%d", object);
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  const char *problem = library ? NULL : dlerror();
  close(object);
  if (!library) return give_up(GW_NOT_LOADED, problem);
  guest.library = library;
  *(void **)&guest.entry = dlsym(library, guest.mailbox->entry);
  if (!guest.entry) return give_up(GW_NO_ENTRY, dlerror());
  find_batch_entry(library);
  *(void **)&guest.free_result = dlsym(library, "gpuwhisk_free");
  return 0;
}

/** Returns the argument; `batch` becomes how many requests it is of, 0 for one that comes alone. */
static const char *set_environment(uint32_t *batch) {
  static const char batch_variable[] = "__OW_BATCH="; // Not for the function.
  char *next = guest.mailbox->arguments, *end = next + guest.mailbox->environment_length;
  for (; next < end; next += strlen(next) + 1) {
    if (strncmp(next, batch_variable, sizeof batch_variable - 1) == 0) {
      *batch = (uint32_t)strtoul(next + sizeof batch_variable - 1, NULL, 10);
      continue;
    }
    gw_set_variable(next);
  }
  return end;
}

static void call(const char *argument, uint32_t batch) {
  if (batch > 0 && !guest.batch_entry) {
    give_up(GW_NO_BATCH, "");
    return;
  }
  if (guest.last_result && guest.free_result) guest.free_result(guest.last_result);
  if (guest.cycle_begin) guest.cycle_begin(batch > 0 ? batch : 1);
  guest.last_result = batch > 0 ? guest.batch_entry(argument) : guest.entry(argument);
  if (guest.cycle_end) guest.cycle_end();
  fflush(NULL);
  if (!guest.last_result) {
    give_up(GW_NO_RESULT, "");
    return;
  }
  guest.mailbox->result = (uintptr_t)guest.last_result;
  guest.mailbox->result_length = strlen(guest.last_result);
}

static void call_as_addressed(void) {
  uint32_t batch = 0;
  const char *argument = set_environment(&batch);
  call(argument, batch);
}

// Where memory is not put back from outside: takes the function's code, device memory and environment away.
static void unload(void) {
  fflush(NULL);
  if (guest.last_result && guest.free_result) guest.free_result(guest.last_result);
  guest.last_result = NULL;
  guest.entry = NULL;
  guest.batch_entry = NULL;
  guest.free_result = NULL;
  const char *problem = "The function's code cannot be unloaded.";
  if (guest.library && dlclose(guest.library) != 0) {
    give_up(GW_NOT_UNLOADED, problem);
    return;
  }
  guest.library = NULL;
  clearenv();
  for (char **variable = guest.environment; *variable; variable++) putenv(*variable);
  if (gw_free_device(&problem) != 0) give_up(GW_NOT_UNLOADED, problem);
}

void gw_guest(void) {
  guest.mailbox->status = GW_DONE;
  if (guest.mailbox->request == GW_RESET_DEVICE) {
    int error = gw_reset_device();
    if (error) give_up(GW_NOT_RESET, "");
    return;
  }
  if (guest.mailbox->request == GW_UNLOAD) {
    unload();
    return;
  }
  if (guest.mailbox->request == GW_SERVE) {
    gw_serve_runs(guest.mailbox, call_as_addressed);
    return;
  }
  uint32_t batch = 0;
  const char *argument = set_environment(&batch);
  if (guest.mailbox->request & GW_LOAD && load() < 0) return;
  if (guest.mailbox->request & GW_CALL) call(argument, batch);
}
