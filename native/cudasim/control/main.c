// For tests and manual trials: looks at the stand-in's devices and makes them fail. The daemon is the one that
// the environment names.
//
//   control status DEVICE                              one line of JSON
//   control fault DEVICE client|xid|lost|ecc|recover|clocks|leak [NUMBER [PID]]
//   control mps DIRECTORY DEVICE [PERCENT [LIMIT_MIB]] an MPS daemon without a control pipe, until standard input ends
//   control cut DEVICE PROFILE [START]                 a MIG instance; prints its uuid
#define _GNU_SOURCE
#include "../connection.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct gwsim_connection connection;

static void call(enum gwsim_operation operation, const void *body, size_t length, void *answer, size_t size) {
  int gone = 0;
  int status = gwsim_call(&connection, operation, body, length, answer, size, &gone);
  if (status == GWSIM_OK) return;
  static const char *const words[] = {"",       "invalid",       "not found", "in use",        "no room",
                                      "not supported", "lost", "no permission", "the daemon is gone"};
  fprintf(stderr, "control: %s\n", status > 0 && status <= GWSIM_DISCONNECTED ? words[status] : "refused");
  exit(1);
}

static void print_status(uint32_t device) {
  struct gwsim_target target = {.device = device};
  struct gwsim_device_status status;
  static struct gwsim_processes all;
  call(GWSIM_STATUS, &target, sizeof target, &status, sizeof status);
  call(GWSIM_PROCESSES, &target, sizeof target, &all, sizeof all);
  printf("{\"nowNs\":%llu,\"busyNs\":%llu,\"smNs\":%.0f,\"dramBytes\":%.0f,\"usedBytes\":%llu,\"contexts\":%u,"
         "\"lost\":%s,\"lastXid\":%u,\"processes\":[",
         (unsigned long long)status.now_ns, (unsigned long long)status.busy_ns, status.sm_ns, status.dram_bytes,
         (unsigned long long)status.used_bytes, status.contexts, status.lost ? "true" : "false", status.last_xid);
  for (uint32_t i = 0; i < all.count && i < GWSIM_MAX_PROCESSES; i++) {
    const struct gwsim_process *one = &all.processes[i];
    printf("%s{\"pid\":%d,\"usedBytes\":%llu,\"percent\":%u,\"mps\":%s,\"launches\":%llu,\"blocks\":%llu,\"busyNs\":%llu,"
           "\"smNs\":%.0f,\"faulted\":%u}",
           i == 0 ? "" : ",", one->pid, (unsigned long long)one->used_bytes, one->percent, one->is_mps ? "true" : "false",
           (unsigned long long)one->launches, (unsigned long long)one->blocks, (unsigned long long)one->busy_ns,
           one->sm_ns, one->faulted);
  }
  printf("]}\n");
}

static void make_fault(uint32_t device, const char *kind, uint64_t number, int32_t pid) {
  static const char *const kinds[] = {"", "client", "xid", "lost", "ecc", "recover", "clocks", "leak"};
  struct gwsim_fault fault = {.device = device, .xid = number, .pid = pid};
  for (uint32_t i = 1; i < sizeof kinds / sizeof *kinds; i++)
    if (strcmp(kinds[i], kind) == 0) fault.kind = i;
  call(GWSIM_FAULT, &fault, sizeof fault, NULL, 0);
}

static void be_mps(const char *directory, uint32_t device, uint32_t percent, uint64_t limit_mib) {
  struct gwsim_mps_start start = {.devices = 1U << device, .instance = -1};
  struct gwsim_mps_set set = {.percent = percent};
  char mark[GWSIM_PATH_LENGTH + 16];
  if (device >= GWSIM_MAX_DEVICES || strlen(directory) >= sizeof start.pipe_directory) exit(2);
  strcpy(start.pipe_directory, directory);
  snprintf(mark, sizeof mark, "%s/" GWSIM_MPS_MARK, directory);
  for (int i = 0; i < GWSIM_MAX_DEVICES; i++) set.limit_bytes[i] = limit_mib << 20;
  mkdir(directory, 0755);
  int file = open(mark, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
  if (file < 0) {
    perror(mark);
    exit(1);
  }
  close(file);
  call(GWSIM_MPS_START, &start, sizeof start, NULL, 0);
  call(GWSIM_MPS_SET, &set, sizeof set, NULL, 0);
  puts("ready");
  fflush(stdout);
  char ignored[64];
  while (read(STDIN_FILENO, ignored, sizeof ignored) > 0) continue;
  unlink(mark);
}

static void cut(uint32_t device, uint32_t profile, int32_t start) {
  struct gwsim_target target = {.device = device, .profile = profile, .value = 1};
  struct gwsim_slice slice;
  call(GWSIM_SET_MIG, &target, sizeof target, NULL, 0);
  target.value = start;
  call(GWSIM_CREATE_INSTANCE, &target, sizeof target, &slice, sizeof slice);
  target.instance = slice.instance;
  call(GWSIM_CREATE_COMPUTE, &target, sizeof target, &slice, sizeof slice);
  printf("%s\n", slice.uuid);
}

static uint64_t number(int count, char **words, int at, uint64_t otherwise) {
  return at < count ? strtoull(words[at], NULL, 10) : otherwise;
}

int main(int count, char **words) {
  struct gwsim_node node;
  const char *what = count > 2 ? words[1] : "";
  if (gwsim_connect(&connection, GWSIM_MONITOR, &node, NULL) != GWSIM_OK) {
    fputs("control: no daemon at " GWSIM_SOCKET_VARIABLE "\n", stderr);
    return 1;
  }
  if (strcmp(what, "status") == 0) print_status((uint32_t)number(count, words, 2, 0));
  else if (strcmp(what, "fault") == 0 && count > 3)
    make_fault((uint32_t)number(count, words, 2, 0), words[3], number(count, words, 4, 0),
               (int32_t)number(count, words, 5, 0));
  else if (strcmp(what, "mps") == 0 && count > 3)
    be_mps(words[2], (uint32_t)number(count, words, 3, 0), (uint32_t)number(count, words, 4, 100),
           number(count, words, 5, 0));
  else if (strcmp(what, "cut") == 0 && count > 3)
    cut((uint32_t)number(count, words, 2, 0), (uint32_t)number(count, words, 3, 0),
        count > 4 ? (int32_t)number(count, words, 4, 0) : -1);
  else {
    fputs("control: see native/cudasim/control/main.c\n", stderr);
    return 2;
  }
  return 0;
}
