// The sandbox's view of the file system: a small tmpfs with read-only binds, then pivot_root into it.
#define _GNU_SOURCE
#include "sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/mount.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

// <sys/mount.h> and <linux/mount.h> cannot be included together in some C libraries.
int mount(const char *source, const char *target, const char *type, unsigned long flags, const void *data);
int umount2(const char *target, int flags);
enum { DETACH = 2 /* MNT_DETACH */ };
#ifndef MS_RDONLY
#include <linux/fs.h>
#endif
#ifndef AT_RECURSIVE
#define AT_RECURSIVE 0x8000
#endif
#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif
#ifndef SYS_open_tree
#define SYS_open_tree 428
#endif
#ifndef SYS_move_mount
#define SYS_move_mount 429
#endif
enum { TREE_CLONE = 1, TREE_CLOEXEC = O_CLOEXEC, MOVE_FROM_EMPTY_PATH = 4 };

// Laid out as struct mount_attr, which older headers lack.
struct attributes {
  uint64_t set, clear, propagation, user_namespace;
};
enum { ATTR_RDONLY = 1, ATTR_NOSUID = 2, ATTR_NODEV = 4 };

// The root as this process sees it.
static const char *root_of(const struct spec *spec) {
  return spec->entered ? "" : find_step(spec, OP_ROOT)->args[0];
}

static void inside(const struct spec *spec, const char *path, char *into) {
  if (snprintf(into, PATH_MAX, "%s%s", root_of(spec), path) >= PATH_MAX) fail("mount", ENAMETOOLONG, path);
}

// Makes the folders between the root, which is there, and `path` inside of it.
static void make_parents(const struct spec *spec, char *path) {
  char *below = path + strlen(root_of(spec)) + 1;
  for (char *slash = strchr(below, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
    *slash = '\0';
    if (mkdir(path, 0755) < 0 && errno != EEXIST && errno != EROFS) fail("mount", errno, path);
    *slash = '/';
  }
}

// `tree`: the source's descriptor, or -1 where its path can be reached.
static void make_mount_point(const struct spec *spec, const char *source, int tree, char *target) {
  struct stat found, existing;
  if ((tree < 0 ? stat(source, &found) : fstat(tree, &found)) < 0) fail("mount", errno, source);
  if (stat(target, &existing) == 0) return;
  make_parents(spec, target);
  if (S_ISDIR(found.st_mode)) {
    if (mkdir(target, 0755) < 0 && errno != EEXIST) fail("mount", errno, target);
    return;
  }
  int file = open(target, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
  if (file < 0) fail("mount", errno, target);
  close(file);
}

static unsigned long flags_of(const char *path) {
  struct statvfs info;
  if (statvfs(path, &info) < 0) return 0;
  unsigned long flags = 0;
  if (info.f_flag & ST_NOSUID) flags |= MS_NOSUID;
  if (info.f_flag & ST_NODEV) flags |= MS_NODEV;
  if (info.f_flag & ST_NOEXEC) flags |= MS_NOEXEC;
  if (info.f_flag & ST_NOATIME) flags |= MS_NOATIME;
  if (info.f_flag & ST_RELATIME) flags |= MS_RELATIME;
  return flags;
}

static void restrict_mount(const char *path, uint64_t set, bool recursive) {
  struct attributes attributes = {.set = set};
  if (syscall(SYS_mount_setattr, AT_FDCWD, path, recursive ? AT_RECURSIVE : 0, &attributes, sizeof attributes) == 0)
    return;
  if (errno != ENOSYS && errno != EPERM) fail("mount", errno, path);
  // Before Linux 5.12. Flags that are set already may be locked, so they are repeated.
  unsigned long flags = MS_REMOUNT | MS_BIND | flags_of(path);
  if (set & ATTR_RDONLY) flags |= MS_RDONLY;
  if (set & ATTR_NOSUID) flags |= MS_NOSUID;
  if (set & ATTR_NODEV) flags |= MS_NODEV;
  if (mount(NULL, path, NULL, flags, NULL) < 0) fail("mount", errno, path);
}

// Nothing that the host mounts later appears below the target, though the source may get it.
static void bind_mount(const char *source, int tree, const char *target, bool recursive, const char *measure) {
  unsigned long whole = recursive ? MS_REC : 0;
  long moved = tree < 0 ? mount(source, target, NULL, MS_BIND | whole, NULL)
                        : syscall(SYS_move_mount, tree, "", AT_FDCWD, target, MOVE_FROM_EMPTY_PATH);
  if (moved < 0) fail(measure, errno, source);
  if (mount(NULL, target, NULL, MS_PRIVATE | whole, NULL) < 0) fail(measure, errno, target);
}

static bool is_whole(const struct step *bind) { return strcmp(bind->args[2], "ro") == 0; }

// A copy of the mount at `path`, attached nowhere; -1 and errno.
static int copy_mount(const char *path, bool recursive) {
  return (int)syscall(SYS_open_tree, AT_FDCWD, path, TREE_CLONE | TREE_CLOEXEC | (recursive ? AT_RECURSIVE : 0));
}

bool can_copy_mounts(void) {
  int tree = copy_mount("/", false);
  if (tree < 0) return false;
  close(tree);
  return true;
}

void send_binds(const struct spec *spec, int first, int channel) {
  for (int i = first; i < spec->count; i++) {
    const struct step *step = &spec->steps[i];
    if (step->op != OP_BIND) continue;
    int tree = copy_mount(step->args[0], is_whole(step));
    if (tree < 0) fail("mount", errno, step->args[0]);
    send_descriptors(channel, &tree, 1);
    close(tree);
  }
}

static void bind(const struct spec *spec, const struct step *step, int channel) {
  char target[PATH_MAX];
  inside(spec, step->args[1], target);
  const char *source = step->args[0], *mode = step->args[2];
  int tree = -1;
  if (spec->entered && receive_descriptors(channel, &tree, 1) != 1) fail("mount", 0, source);
  make_mount_point(spec, source, tree, target);
  bind_mount(source, tree, target, is_whole(step), "mount");
  if (tree >= 0) close(tree);
  if (is_whole(step)) restrict_mount(target, ATTR_RDONLY | ATTR_NOSUID | ATTR_NODEV, true);
  else if (strcmp(mode, "rw") == 0) restrict_mount(target, ATTR_NOSUID | ATTR_NODEV, false);
}

static void mount_tmpfs(const struct spec *spec, const struct step *step) {
  char target[PATH_MAX], options[128];
  inside(spec, step->args[0], target);
  make_parents(spec, target);
  if (mkdir(target, 0755) < 0 && errno != EEXIST) fail("mount", errno, target);
  const char *size = step->args[1], *inodes = step->args[2];
  if (strcmp(step->args[3], "own") == 0) {
    // Without root this process is in the user namespace already, where it is the inner user.
    uid_t owner = !spec->has_id ? geteuid() : geteuid() == 0 ? spec->outer : spec->inner;
    snprintf(options, sizeof options, "mode=700,uid=%u,gid=%u,size=%s,nr_inodes=%s", owner, owner, size, inodes);
  } else {
    snprintf(options, sizeof options, "mode=1777,size=%s,nr_inodes=%s", size, inodes);
  }
  if (mount("tmpfs", target, "tmpfs", MS_NOSUID | MS_NODEV, options) < 0) fail("mount", errno, target);
}

static void make_link(const struct spec *spec, const struct step *step) {
  char path[PATH_MAX];
  inside(spec, step->args[1], path);
  make_parents(spec, path);
  if (symlink(step->args[0], path) < 0) fail("mount", errno, path);
}

static void mask(const struct spec *spec, const struct step *step) {
  char path[PATH_MAX];
  struct stat found;
  inside(spec, step->args[0], path);
  if (lstat(path, &found) < 0) return; // Nothing there to hide.
  if (S_ISDIR(found.st_mode)) {
    // Writable for root, who may have to place binds in it.
    if (mount("tmpfs", path, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "size=256k,nr_inodes=1k,mode=555") < 0)
      fail("mount", errno, path);
  } else {
    bind_mount("/dev/null", -1, path, false, "mount");
  }
}

static void mount_proc(const struct spec *spec) {
  // Host-wide settings and state: read-only at least. The processes' own folders stay as they are.
  static const char *const fixed[] = {"bus", "fs", "irq", "sys", "sysrq-trigger"};
  static const char *const hidden[] = {"acpi", "kcore", "keys", "key-users", "latency_stats", "scsi",
                                       "timer_list", "timer_stats", "sched_debug", "kmsg", "config.gz"};
  char path[PATH_MAX];
  inside(spec, "/proc", path);
  make_parents(spec, path);
  if (mkdir(path, 0555) < 0 && errno != EEXIST) fail("proc", errno, path);
  const char *options = joins_others(spec) ? "hidepid=invisible" : NULL;
  if (mount("proc", path, "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, options) < 0) fail("proc", errno, "mounting /proc");
  size_t base = strlen(path);
  for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) {
    snprintf(path + base, sizeof path - base, "/%s", fixed[i]);
    if (access(path, F_OK) < 0) continue;
    bind_mount(path, -1, path, true, "proc");
    restrict_mount(path, ATTR_RDONLY | ATTR_NOSUID | ATTR_NODEV, true);
  }
  for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++) {
    char name[64];
    snprintf(name, sizeof name, "/proc/%s", hidden[i]);
    mask(spec, &(struct step){.op = OP_MASK, .args = {name}});
  }
}

// Puts back the spaces and the like that mountinfo has as octal numbers.
static void decode(char *path) {
  char *to = path;
  for (const char *at = path; *at != '\0'; to++) {
    unsigned code;
    if (at[0] == '\\' && sscanf(at + 1, "%3o", &code) == 1) {
      *to = (char)code;
      at += 4;
    } else {
      *to = *at++;
    }
  }
  *to = '\0';
}

// Unmounts what is mounted below a folder of the host, in this process's view only.
static void forget(const struct step *step) {
  size_t length = strlen(step->args[0]);
  char line[PATH_MAX * 2], path[PATH_MAX];
  FILE *mounts = fopen("/proc/self/mountinfo", "re");
  if (mounts == NULL) fail("mount", errno, "mountinfo");
  while (fgets(line, sizeof line, mounts) != NULL) {
    if (sscanf(line, "%*d %*d %*s %*s %4095s", path) != 1) continue;
    decode(path);
    if (strncmp(path, step->args[0], length) != 0 || path[length] != '/') continue;
    // The host may have unmounted it meanwhile.
    if (umount2(path, DETACH) < 0 && errno != EINVAL && errno != ENOENT) fail("mount", errno, path);
  }
  fclose(mounts);
}

static void make_root(const struct spec *spec) {
  const struct step *root = find_step(spec, OP_ROOT);
  if (root == NULL) fail("spec", 0, "a mount namespace without a root");
  // What the host unmounts while this waits for the rest of the spec is not to be kept mounted here (where mounts are
  // shared, as systemd makes them).
  if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0) fail("mount", errno, "keeping mounts from the host");
  if (mount("tmpfs", root->args[0], "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=1m,nr_inodes=8k") < 0)
    fail("mount", errno, "mounting the root");
}

void build_root(const struct spec *spec, int first, int channel) {
  if (first == 0) make_root(spec);
  for (int i = first; i < spec->count; i++) {
    if (spec->steps[i].op == OP_FORGET && !spec->enters_ahead) forget(&spec->steps[i]);
  }
  for (int i = first; i < spec->count; i++) {
    const struct step *step = &spec->steps[i];
    if (step->op == OP_BIND) bind(spec, step, channel);
    else if (step->op == OP_TMPFS) mount_tmpfs(spec, step);
    else if (step->op == OP_LINK) make_link(spec, step);
    else if (step->op == OP_PROC) mount_proc(spec);
    else if (step->op == OP_MASK) mask(spec, step);
  }
}

void enter_root(struct spec *spec) {
  if (spec->entered) return;
  if (chdir(find_step(spec, OP_ROOT)->args[0]) < 0) fail("mount", errno, "entering the root");
  // The old root is stacked on the new one's "." and detached from there: no folder for it is needed.
  if (syscall(SYS_pivot_root, ".", ".") < 0) fail("mount", errno, "pivot_root");
  if (umount2(".", DETACH) < 0) fail("mount", errno, "leaving the old root");
  if (chdir("/") < 0) fail("mount", errno, "entering the root");
  spec->entered = true;
}

void close_root(void) { restrict_mount("/", ATTR_RDONLY, false); }
