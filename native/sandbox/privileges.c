// Who the sandbox runs as and what it may do.
#define _GNU_SOURCE
#include "sandbox.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { LAST_POSSIBLE_CAPABILITY = 63 };

static const struct {
  const char *word;
  int resource;
} limits[] = {{"nofile", RLIMIT_NOFILE}, {"nproc", RLIMIT_NPROC}, {"core", RLIMIT_CORE}, {"data", RLIMIT_DATA}, {"fsize", RLIMIT_FSIZE}};

void map_ids(const struct spec *spec, pid_t child) {
  char path[64], map[64];
  snprintf(map, sizeof map, "%u %u 1\n", spec->inner, spec->outer);
  // Without privileges a group may be mapped only once setgroups is given up.
  snprintf(path, sizeof path, "/proc/%d/setgroups", child);
  if (write_file(path, "deny") < 0 && errno != ENOENT) fail("user", errno, path);
  snprintf(path, sizeof path, "/proc/%d/gid_map", child);
  if (write_file(path, map) < 0) fail("user", errno, path);
  snprintf(path, sizeof path, "/proc/%d/uid_map", child);
  if (write_file(path, map) < 0) fail("user", errno, path);
}

void become_unprivileged(const struct spec *spec) {
  if (!spec->has_id) return;
  id_t id = spec->namespaces & CLONE_NEWUSER ? spec->inner : spec->outer;
  if (setresgid(id, id, id) < 0) fail("user", errno, "setresgid");
  if (setresuid(id, id, id) < 0) fail("user", errno, "setresuid");
}

static void set_limits(const struct spec *spec) {
  for (int i = 0; i < spec->count; i++) {
    const struct step *step = &spec->steps[i];
    if (step->op != OP_RLIMIT) continue;
    for (size_t j = 0; j < sizeof limits / sizeof *limits; j++) {
      if (strcmp(limits[j].word, step->args[0]) != 0) continue;
      struct rlimit current;
      rlim_t value = (rlim_t)number(step->args[1]);
      if (getrlimit(limits[j].resource, &current) < 0) fail("rlimit", errno, step->args[0]);
      if (current.rlim_max != RLIM_INFINITY && value > current.rlim_max) value = current.rlim_max;
      struct rlimit wanted = {value, value};
      if (setrlimit(limits[j].resource, &wanted) < 0) fail("rlimit", errno, step->args[0]);
    }
  }
}

void yield_to_platform(void) {
  struct sched_param none = {0};
  if (sched_setscheduler(0, SCHED_BATCH, &none) < 0) fail("scheduling", errno, "sched_setscheduler");
}

void drop_privileges(const struct spec *spec) {
  set_limits(spec);
  for (int capability = 0; capability <= LAST_POSSIBLE_CAPABILITY; capability++) {
    // EINVAL: past the kernel's last one. EPERM: none to drop from, and no_new_privs keeps it so.
    if (prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) < 0 && errno != EINVAL && errno != EPERM)
      fail("capabilities", errno, "dropping the bounding set");
  }
  // Locks out any way by which user 0 could regain capabilities; needs CAP_SETPCAP, which a plain user lacks.
  if (prctl(PR_SET_SECUREBITS, SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE, 0, 0, 0) < 0 &&
      errno != EPERM)
    fail("capabilities", errno, "securebits");
  struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0, 0, 0}};
  if (syscall(SYS_capset, &header, none) < 0) fail("capabilities", errno, "capset");
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) fail("no-new-privs", errno, "prctl");
  if (find_step(spec, OP_FILTER) == NULL) return;
  bool traces = find_step(spec, OP_TRACES) != NULL;
  install_filter(traces);
  if (find_step(spec, OP_WATCH) != NULL) forbid_uncounted_memory(traces);
}
