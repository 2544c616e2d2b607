// A process that is to become the copy of a template: it has entered its Landlock domain, and stands until its proxy has put
// the template's memory and state in the place of its own (native/inject/template_restore.cpp).
//
//   restorer [--read PATH]... [--write PATH]...
//
// It is linked statically, at an address where no interpreter lies: nothing of it is in the way of what is put there.
#define _GNU_SOURCE
#include "../prewarmer/park.h"
#include "../prewarmer/prewarmer.h"
#include "places.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MAX_PATHS = 256 };

static const char *readable[MAX_PATHS + 1], *writable[MAX_PATHS + 1];

static void add(const char **list, const char *value) {
  size_t count = 0;
  while (list[count]) count++;
  if (!value || count == MAX_PATHS) gw_fail("arguments", EINVAL);
  list[count] = value;
}

static void *map(uint64_t place, int file, size_t bytes, int protection) {
  void *address = mmap((void *)place, bytes, protection, MAP_SHARED | MAP_FIXED_NOREPLACE, file, 0);
  if (address == MAP_FAILED) gw_fail("mmap", errno);
  return address;
}

int main(int count, char **arguments) {
  (void)count;
  for (char **argument = arguments + 1; *argument; argument += 2) {
    if (strcmp(*argument, "--read") == 0) add(readable, argument[1]);
    else if (strcmp(*argument, "--write") == 0) add(writable, argument[1]);
    else gw_fail(*argument, EINVAL);
  }
  // Of these the copy has other mappings: the descriptors stay open for them.
  struct gw_channel channel;
  channel.state = map(GW_STATE_PLACE, GW_STATE_FD, sizeof(struct gw_state), PROT_READ);
  channel.mailbox = map(GW_MAILBOX_PLACE, GW_MAILBOX_FD, sizeof(struct gw_mailbox), PROT_READ | PROT_WRITE);
  channel.writable_state = NULL;
  gw_prepare_process();
  struct gw_hello hello = {.worker = (int32_t)syscall(SYS_gettid)};
  hello.landlock = gw_enter_landlock(readable, writable);
  gw_stand(&hello, &channel);
  gw_fail("return of the stand", ECANCELED); // It has no code any more when the copy goes on.
}
