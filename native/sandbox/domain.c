// The Landlock domain of a sandbox that shares its PID namespace: what is in it traces nothing outside, and, where the
// kernel has scopes (version 6), signals nothing outside. Files are what the sandbox shows, and stay as they are.
#define _GNU_SOURCE
#include "sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

// As in linux/landlock.h of newer kernels.
enum { ACCESS_REFER = 1 << 13, SCOPE_ABSTRACT_SOCKETS = 1, SCOPE_SIGNALS = 2 };
struct ruleset_attribute {
  uint64_t files, network, scoped;
};

void enter_domain(void) {
  long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
  if (version < 0) fail("domain", errno, "Landlock");
  // A ruleset must handle something. Renames across folders are refused in any that handles files, if not allowed.
  struct ruleset_attribute handled = {.files = version >= 2 ? ACCESS_REFER : LANDLOCK_ACCESS_FS_MAKE_BLOCK};
  if (version >= 6) handled.scoped = SCOPE_ABSTRACT_SOCKETS | SCOPE_SIGNALS;
  // An older kernel knows fewer fields.
  size_t size = version >= 6 ? sizeof handled : sizeof handled.files;
  int ruleset = (int)syscall(SYS_landlock_create_ruleset, &handled, size, 0);
  if (ruleset < 0) fail("domain", errno, "landlock_create_ruleset");
  int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (root < 0) fail("domain", errno, "/");
  struct landlock_path_beneath_attr rule = {.allowed_access = handled.files, .parent_fd = root};
  if (syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0)
    fail("domain", errno, "landlock_add_rule");
  close(root);
  if (syscall(SYS_landlock_restrict_self, ruleset, 0) < 0) fail("domain", errno, "landlock_restrict_self");
  close(ruleset);
}
