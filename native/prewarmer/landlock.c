// The Landlock domain of a pre-warmer.
#define _GNU_SOURCE
#include "prewarmer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <linux/landlock.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

// As in linux/landlock.h of newer kernels.
enum { ALL_ACCESS_1 = (1 << 13) - 1, ACCESS_REFER = 1 << 13, ACCESS_TRUNCATE = 1 << 14, ACCESS_IOCTL = 1 << 15 };
enum { SCOPE_ABSTRACT_SOCKETS = 1, SCOPE_SIGNALS = 2 };
struct ruleset_attribute {
  uint64_t files, network, scoped;
};

enum { ACCESS_READ = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR };
enum { ON_FILES = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE |
                  ACCESS_TRUNCATE | ACCESS_IOCTL };

static void allow(int ruleset, const char *path, uint64_t access) {
  int folder = open(path, O_PATH | O_CLOEXEC);
  if (folder < 0) return; // Nothing to allow.
  struct stat status;
  if (fstat(folder, &status) < 0) gw_fail(path, errno);
  if (!S_ISDIR(status.st_mode)) access &= ON_FILES;
  struct landlock_path_beneath_attr rule = {.allowed_access = access, .parent_fd = folder};
  if (syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0) gw_fail(path, errno);
  // An inode of /proc goes when no process holds it, and the rule with it.
  if (strncmp(path, "/proc/", 6) != 0) close(folder);
}

int gw_enter_landlock(const char *const *readable, const char *const *writable) {
  long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
  if (version < 0 && (errno == ENOSYS || errno == EOPNOTSUPP)) return 0;
  if (version < 0) gw_fail("Landlock", errno);
  // GPUWHISK_LANDLOCK: as if the kernel had no later version, or none (0), so that tests reach the ways of older ones.
  const char *latest = getenv("GPUWHISK_LANDLOCK");
  if (latest && atol(latest) < version) version = atol(latest);
  if (version <= 0) return 0;
  struct ruleset_attribute handled = {.files = ALL_ACCESS_1};
  if (version >= 2) handled.files |= ACCESS_REFER;
  if (version >= 3) handled.files |= ACCESS_TRUNCATE;
  if (version >= 5) handled.files |= ACCESS_IOCTL;
  if (version >= 6) handled.scoped = SCOPE_ABSTRACT_SOCKETS | SCOPE_SIGNALS;
  // An older kernel knows fewer fields; the rest must be absent or zero.
  size_t size = version >= 6 ? sizeof handled : sizeof handled.files;
  int ruleset = (int)syscall(SYS_landlock_create_ruleset, &handled, size, 0);
  if (ruleset < 0) gw_fail("landlock_create_ruleset", errno);
  for (; *readable; readable++) allow(ruleset, *readable, ACCESS_READ);
  for (; *writable; writable++) allow(ruleset, *writable, handled.files);
  if (syscall(SYS_landlock_restrict_self, ruleset, 0) < 0) gw_fail("landlock_restrict_self", errno);
  close(ruleset);
  return (int)version;
}
