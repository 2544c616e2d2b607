// One action at a time in one pre-warmer: what the frames init, run, unload and check ask for.
#pragma once

#include "answer.h"
#include "inbox.h"
#include "request.h"
#include "runs_socket.h"
#include "scratch.h"

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace gpuwhisk::proxy {

/** The end of a function that served runs by itself. */
struct Failed {
  uint32_t run; // The one that was under way; 0: none.
  Answer answer;
};

class Service {
public:
  /**
   * Starts the pre-warmer. Throws inject::Failure. `shared_objects`: the code must be one; otherwise it is for an
   * interpreter, which words its refusals itself. `scratch`: the folders that functions can fill.
   */
  Service(const inject::LaunchOptions &launch, bool shared_objects, inject::Policy policy,
          const std::vector<std::string> &scratch);

  // Each throws inject::Failure for what no payload may be.
  Answer init(std::string payload);
  Answer run(std::string_view payload);
  /** Makes the pre-warmer what it was before init. */
  Answer unload(std::string_view payload);
  /** Whether the pre-warmer is alive, and where it should be. */
  Answer check();

  /** Whether runs may come by the socket for runs: a function is loaded that serves them by itself. */
  bool serves() const { return serves_ && !lost_ && prewarmer_.serves(); }
  /**
   * Lets it do so until a frame for the proxy comes to `inbox`, which watches the worker; the function has stopped then,
   * and nothing is returned. Otherwise tells how it ended. A run that is cancelled has a second to end.
   */
  std::optional<Failed> attend(Inbox &inbox);

  pid_t pid() const { return prewarmer_.pid(); }
  /** How a CUDA context is kept: inject::Prewarmer::cuda. */
  std::string cuda() const { return prewarmer_.cuda(); }
  pid_t worker() const { return prewarmer_.worker(); }
  /** As inject::Prewarmer::unfit. */
  const std::string &unfit() const { return prewarmer_.unfit(); }
  /** As inject::Prewarmer::of_function. */
  bool of_function() const { return prewarmer_.of_function(); }
  /** Whether the pre-warmer's process lives; it can also end while it waits. */
  bool alive() const { return prewarmer_.alive(); }
  /** Whether the pre-warmer is lost: nothing can be asked for any more. */
  bool lost() const { return lost_; }
  /** Whether the pre-warmer's process was ended while a function ran, by what is outside, as for its memory. */
  bool killed() const { return killed_; }

private:
  Answer run_one(const Parts &given);
  Answer run_batch(const Parts &given);
  Answer inject(const inject::CallOptions *first);
  Failed fail(const inject::Ending &ending);
  Answer attempt(const std::function<inject::Outcome()> &work);
  Answer explain(const inject::Outcome &outcome) const;

  inject::Prewarmer prewarmer_;
  Scratch scratch_;
  inject::Policy policy_;
  RunsSocket runs_;
  bool shared_objects_, lost_ = false, killed_ = false;
  bool serves_ = true; // Until a function could not send its answer.
  std::optional<std::string> owner_; // The namespace whose code it has run.
  std::optional<Init> action_;
};

} // namespace gpuwhisk::proxy
