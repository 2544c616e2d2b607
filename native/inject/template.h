// A template: the memory and state of a pre-warmer that stands, alone and before any function, in one file. Copies of it go
// on from there, each in a process and a sandbox of its own, and share its pages until they write them.
#pragma once

#include "maps.h"
#include "stops.h"
#include "target.h"
#include "tracee.h"

#include "../prewarmer/mailbox.h"

#include <csignal>
#include <linux/prctl.h>
#include <string>
#include <vector>

namespace gpuwhisk::inject {

/** A mapping of the template. */
struct Piece : Range {
  enum Kind : uint32_t {
    anonymous, // Zeros, and what `runs` put there.
    stack,     // The same, which grows down.
    code,      // A file that the copy maps, too: `path`, `offset`, and what the file was.
    shared,    // The same, mapped with what others write there.
    wiped,     // Zeros in every copy, as in a forked process.
    kernel,    // The kernel's own pages (vDSO): `path` is their name.
    writable_state, state, mailbox
  };
  Kind kind;
  int protection = 0;
  uint64_t offset = 0;
  std::string path;
  uint64_t size = 0;
  int64_t changed_ns = 0;
};

/** Pages that come from the template's file. */
struct Pages : Range {
  uint64_t offset;
};

/** A handler of a signal, as the kernel has it. */
struct SignalAction {
  uint64_t function, flags, restorer, mask;
};

struct Image {
  gw_hello hello{};
  pid_t pid = 0;
  bool loaded = false; // With a function: a copy of it serves that function only.
  Context worker{};
  uint64_t sequences = 0, sequences_length = 0; // Of restartable sequences.
  uint64_t robust_list = 0;
  prctl_mm_map layout{};
  std::string auxiliary; // The vector that the kernel gave.
  std::string name;
  stack_t signal_stack{};
  std::vector<SignalAction> handlers; // By number less one.
  std::vector<std::string> environment, arguments;
  std::vector<std::string> places; // Arguments of the restorer: what the process may read and write.
  std::vector<Piece> pieces;
  std::vector<Pages> runs;
};

/** A template's file, open and mapped. */
class Template {
public:
  /** Throws "template" if the file is none. */
  explicit Template(const std::string &path);
  ~Template();
  Template(const Template &) = delete;
  Template &operator=(const Template &) = delete;

  const Image &image() const { return image_; }
  int file() const { return file_.get(); }
  uint64_t bytes() const { return bytes_; }
  const std::byte *at(uint64_t offset) const { return mapped_ + offset; }
  /** As maps name the file. */
  const std::string &identity() const { return identity_; }
  /**
   * Makes private mappings of the file what they stand for, memory without a file, and returns them. `heap_end`: of the copy,
   * now.
   */
  std::vector<Pages> reveal(std::vector<Mapping> &mappings, uint64_t heap_end) const;

private:
  Descriptor file_;
  uint64_t bytes_ = 0;
  std::byte *mapped_ = nullptr;
  std::string identity_;
  Image image_;
};

struct Launched;
struct LaunchOptions;

/**
 * Writes the template of a pre-warmer that stands into the file `options.save_template`, and lets it go on as a copy does.
 * Returns why a copy would not be the same, or "". Throws "template" if the process is of no use.
 */
std::string save_template(const Launched &launched, Stops &stops, const LaunchOptions &options);

/**
 * Makes a restorer that stands a copy, which goes on. Throws "template" with the reason; the process is of no use then.
 */
void restore_template(const Template &from, const Launched &launched, Stops &stops, const LaunchOptions &options);

/** How this process's maps name the file that is mapped at `address`. */
std::string identity_at(const void *address);

/** Seizes and stops the thread of a process that stands. Throws "template". */
void stop_standing(const Launched &launched, Stops &stops);
/** Has it go on from `context`, where it stood. */
void go_on_from(const Launched &launched, Context context);

/** The image as bytes, and back. Throws "template" if they are none. */
std::string encode(const Image &image);
Image decode(std::string_view bytes);

} // namespace gpuwhisk::inject
