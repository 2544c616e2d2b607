#include "scratch.h"

#include "../inject/descriptor.h"
#include "../inject/failure.h"

#include <cerrno>
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

namespace gpuwhisk::proxy {
namespace {

using inject::Descriptor;
using inject::throw_errno;

constexpr int as_folder = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

Descriptor open_folder(int at, const char *name) {
  Descriptor folder(openat(at, name, as_folder));
  if (folder) return folder;
  // A function can take its own rights away.
  if (errno != EACCES || fchmodat(at, name, S_IRWXU, 0) < 0) throw_errno(std::string("open ") + name);
  folder = Descriptor(openat(at, name, as_folder));
  if (!folder) throw_errno(std::string("open ") + name);
  return folder;
}

std::set<std::string> names_in(int folder) {
  int own = openat(folder, ".", as_folder); // A position of its own; closedir closes it.
  DIR *listing = own < 0 ? nullptr : fdopendir(own);
  if (!listing) throw_errno("list a folder");
  std::set<std::string> names;
  while (const dirent *entry = readdir(listing)) names.insert(entry->d_name);
  closedir(listing);
  names.erase(".");
  names.erase("..");
  return names;
}

/** Removes an entry; false for a folder that is not empty. */
bool remove_entry(int folder, const std::string &name) {
  if (unlinkat(folder, name.c_str(), 0) == 0 || errno == ENOENT) return true;
  if (errno == EISDIR && unlinkat(folder, name.c_str(), AT_REMOVEDIR) == 0) return true;
  if (errno == ENOTEMPTY) return false;
  throw_errno("remove " + name);
}

// Goes down into what is not empty and up again by "..": however deep a tree is, one descriptor is open.
void empty_folder(const std::string &path, const std::set<std::string> &kept) {
  Descriptor folder = open_folder(AT_FDCWD, path.c_str());
  for (int depth = 0;;) {
    const std::string *below = nullptr;
    std::set<std::string> names = names_in(folder.get());
    for (const std::string &name : names)
      if ((depth > 0 || !kept.contains(name)) && !remove_entry(folder.get(), name)) below = &name;
    if (below) {
      folder = open_folder(folder.get(), below->c_str());
      if (fchmod(folder.get(), S_IRWXU) < 0) throw_errno("change the mode of " + *below);
      depth++;
    } else if (depth > 0) {
      folder = open_folder(folder.get(), "..");
      depth--;
    } else {
      return;
    }
  }
}

} // namespace

Scratch::Scratch(const std::vector<std::string> &folders) {
  for (const std::string &path : folders)
    folders_.push_back({path, names_in(open_folder(AT_FDCWD, path.c_str()).get())});
}

void Scratch::empty() const {
  for (const Folder &folder : folders_) empty_folder(folder.path, folder.kept);
}

} // namespace gpuwhisk::proxy
