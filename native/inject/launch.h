// Starting a pre-warmer and waiting until it is Ready.
#pragma once

#include "../prewarmer/mailbox.h"
#include "descriptor.h"
#include "template.h"

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <sys/types.h>
#include <vector>

namespace gpuwhisk::inject {

struct LaunchOptions {
  std::string program;
  std::vector<std::string> arguments;
  std::vector<std::string> environment; // NAME=value: all that it gets.
  int output = 1, errors = 2;           // Descriptors that become its 1 and 2.
  std::vector<std::string> checkpoint; // A program that calls serve_checkpoints (device_checkpoint.h); empty: none is taken.
  int runs = -1;                        // The descriptor that becomes its GW_RUNS_FD; -1: none.
  int timeout_ms = 60'000;              // Until Ready.
  std::string save_template; // An empty file that takes a template of it on the way to Ready; "": none.
  std::string load;          // With save_template: a file with an init, whose code is loaded before that; "": none.
  uint64_t most_template_bytes = UINT64_MAX; // A larger one is not written.
  std::string from_template; // The template's file that it is made from, instead of starting it; "": none.
  std::string restorer;      // The program that becomes a copy.
};

/** A piece of memory shared with the pre-warmer, mapped here for writing. */
template <typename Content> class Shared {
public:
  explicit Shared(const char *name);
  ~Shared();
  Shared(Shared &&other) noexcept;
  Shared &operator=(Shared &&) = delete;
  Content *operator->() const { return content_; }
  Content *get() const { return content_; }
  int file() const { return file_.get(); }

  /** Whole pages: what lies after the content in the last one is mapped, too. */
  static constexpr size_t bytes = (sizeof(Content) + 4095) / 4096 * 4096;

private:
  Descriptor file_;
  Content *content_;
};

struct Launched {
  pid_t pid;
  Shared<gw_state> state;
  Shared<gw_mailbox> mailbox;
  Descriptor userfault, snapshot; // `snapshot`: an empty memory file, which it has as GW_SNAPSHOT_FD.
  gw_hello hello;
  std::unique_ptr<Template> from; // What it is a copy of.
  std::string unfit;              // Why no template was made of it, where one was asked for.
  bool loaded = false;            // It has a function loaded, or is the copy of one that had.
};

/**
 * Starts a pre-warmer as a child of the calling thread, which must be the one that will trace it: when that thread
 * ends, the pre-warmer does. Throws "not-ready" if it does not become Ready in time, and "template" if the template does not
 * fit.
 */
Launched launch(const LaunchOptions &options, Stops &stops);

/** Kills and reaps it with all that this thread traces, of which `others` are processes; nothing if they are gone. */
void end_process(pid_t pid, const std::set<pid_t> &others = {});

} // namespace gpuwhisk::inject
