// A walk over a folder that processes of others may change meanwhile: by descriptors, one name at a time, and never
// through a symbolic link or into another file system.
#ifndef TREE_WALK_H
#define TREE_WALK_H

#include <stdint.h>
#include <sys/types.h>

enum tree_task {
  TREE_REMOVE,  // the folder, and all below it
  TREE_MEASURE, // what is below it
  TREE_OWN      // gives the folder and all below it to a user
};

struct tree_walk {
  enum tree_task task;
  uid_t owner;         // TREE_OWN
  uint64_t most_files; // TREE_MEASURE stops above this number
  uint64_t bytes, files;
  // Of a removal: the folder itself, and the number of folders that were moved up into it.
  int top;
  uint64_t moved;
};

// Carries out the task; 0, or an errno. A folder that is not there is no error of a removal. ELOOP: folders nest deeper
// than the walk goes, which a removal has no bound on.
int walk_tree(struct tree_walk *walk, const char *path);

#endif
