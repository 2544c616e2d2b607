#define _GNU_SOURCE
#include "walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_openat2
#define SYS_openat2 437
#endif

// A level holds a descriptor. A removal moves what is deeper up, so that it needs no more of them.
enum { MOST_LEVELS = 128, MOST_PASSES = 16, FOLDER = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK };

// As in linux/openat2.h, which older headers lack.
struct how_to_open {
  uint64_t flags, mode, resolve;
};
enum { NO_OTHER_MOUNT = 1, NO_SYMLINKS = 4, BENEATH = 8 };

static int open_folder(int parent, const char *name) {
#ifdef __linux__
  struct how_to_open how = {.flags = FOLDER, .resolve = NO_OTHER_MOUNT | NO_SYMLINKS | BENEATH};
  int folder = (int)syscall(SYS_openat2, parent, name, &how, sizeof how);
  // Older kernels and the filters of container engines do not know the call. A single name that is not followed leads
  // nowhere else, either, except into another file system.
  if (folder >= 0 || (errno != ENOSYS && errno != EPERM)) return folder;
#endif
  return openat(parent, name, FOLDER);
}

// What another process has moved, replaced or removed meanwhile is not there any more.
static bool is_gone(int error) { return error == ENOENT || error == ENOTDIR || error == ELOOP; }

static int visit(struct tree_walk *walk, int parent, const char *name, int level);

static int visit_content(struct tree_walk *walk, int folder, int level) {
  DIR *stream = fdopendir(folder);
  if (stream == NULL) {
    int error = errno;
    close(folder);
    return error;
  }
  int failed = 0;
  while (failed == 0) {
    errno = 0;
    struct dirent *entry = readdir(stream);
    if (entry == NULL) {
      failed = errno;
      break;
    }
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    failed = visit(walk, dirfd(stream), entry->d_name, level);
    if (walk->task == TREE_MEASURE && walk->files > walk->most_files) break;
  }
  closedir(stream);
  return failed;
}

static int move_up(struct tree_walk *walk, int parent, const char *name) {
  char to[64];
  for (int attempt = 0; attempt < MOST_PASSES; attempt++) {
    snprintf(to, sizeof to, ".moved-%d-%llu", (int)getpid(), (unsigned long long)++walk->moved);
    if (renameat(parent, name, walk->top, to) == 0 || is_gone(errno)) return 0;
    if (errno != EEXIST && errno != ENOTEMPTY) return errno;
  }
  return EEXIST;
}

static int remove_folder(struct tree_walk *walk, int parent, const char *name, int level) {
  if (level == MOST_LEVELS) return move_up(walk, parent, name);
  for (int pass = 0; pass < MOST_PASSES; pass++) {
    int folder = open_folder(parent, name);
    if (folder < 0) return is_gone(errno) ? 0 : errno;
    if (level == 0) walk->top = folder;
    uint64_t moved = walk->moved;
    int failed = visit_content(walk, folder, level + 1);
    if (failed != 0) return failed;
    if (unlinkat(parent, name, AT_REMOVEDIR) == 0 || is_gone(errno)) return 0;
    if (errno != ENOTEMPTY && errno != EEXIST) return errno;
    if (level == 0 && walk->moved != moved) pass = -1;
  }
  return ENOTEMPTY;
}

static int visit(struct tree_walk *walk, int parent, const char *name, int level) {
  if (walk->task == TREE_REMOVE) {
    if (unlinkat(parent, name, 0) == 0 || errno == ENOENT) return 0;
    // POSIX has EPERM for a folder, Linux EISDIR.
    if (errno != EISDIR && errno != EPERM) return errno;
    return remove_folder(walk, parent, name, level);
  }
  struct stat found;
  if (fstatat(parent, name, &found, AT_SYMLINK_NOFOLLOW) < 0) return level > 0 && is_gone(errno) ? 0 : errno;
  if (walk->task == TREE_OWN && fchownat(parent, name, walk->owner, walk->owner, AT_SYMLINK_NOFOLLOW) < 0)
    return is_gone(errno) ? 0 : errno;
  walk->files++;
  walk->bytes += (uint64_t)found.st_blocks * 512;
  if (!S_ISDIR(found.st_mode)) return 0;
  if (level == MOST_LEVELS) return ELOOP;
  int folder = open_folder(parent, name);
  if (folder < 0) return is_gone(errno) ? 0 : errno;
  return visit_content(walk, folder, level + 1);
}

int walk_tree(struct tree_walk *walk, const char *path) {
  // The folder that contains it is the platform's own.
  char above[PATH_MAX];
  const char *slash = strrchr(path, '/');
  if (slash == NULL || slash[1] == '\0' || strlen(path) >= sizeof above) return EINVAL;
  snprintf(above, sizeof above, "%.*s", slash == path ? 1 : (int)(slash - path), path);
  int parent = open(above, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (parent < 0) return walk->task == TREE_REMOVE && errno == ENOENT ? 0 : errno;
  int failed;
  if (walk->task == TREE_MEASURE) {
    // The folder may be a file system of its own, and is itself not counted.
    int folder = openat(parent, slash + 1, FOLDER);
    failed = folder < 0 ? errno : visit_content(walk, folder, 1);
  } else {
    failed = visit(walk, parent, slash + 1, 0);
  }
  close(parent);
  return failed;
}
