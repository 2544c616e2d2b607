// The folders that a function can fill, and how they are emptied.
#pragma once

#include <set>
#include <string>
#include <vector>

namespace gpuwhisk::proxy {

class Scratch {
public:
  /** What is in `folders` now stays when they are emptied. Throws inject::Failure for one that cannot be listed. */
  explicit Scratch(const std::vector<std::string> &folders);

  /**
   * Removes what came since, links themselves and not what they point at. Nothing may be at work in the folders. Throws
   * inject::Failure for what cannot be removed.
   */
  void empty() const;

private:
  struct Folder {
    std::string path;
    std::set<std::string> kept;
  };
  std::vector<Folder> folders_;
};

} // namespace gpuwhisk::proxy
