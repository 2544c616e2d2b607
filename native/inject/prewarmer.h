// A pre-warmer and its proxy's side: the four stages of an injection (FaaShare, section IV).
//
//   inject   safe-point handshake, attach and checkpoint, integrity, execution under the filter
//   call     the same function again, without injection: the proxy stays attached
//   unload   rollback, verify, detach: the pre-warmer is as it was, and Ready
//
// Whatever goes wrong in injected code ends in unload by itself. With a CUDA context whose driver keeps its state in the
// process's memory, and takes no checkpoints, nothing can be put back: that pre-warmer ends with its function (GW_CUDA_KEPT).
// All of it runs on one thread, the tracer.
#pragma once

#include "device_checkpoint.h"
#include "launch.h"
#include "process_state.h"
#include "run.h"
#include "snapshot.h"

#include <functional>
#include <map>
#include <memory>

namespace gpuwhisk::inject {

struct Stage {
  const char *name;
  int64_t us;
};

struct InjectOptions {
  std::string entry = "gpuwhisk_main";
  std::function<void(Bytes)> check;  // Throws "payload" for code that is not to be loaded at all.
  std::vector<std::string> environment; // NAME=value, set before the code is loaded.
  int64_t load_timeout_us = 10'000'000;
  int64_t memory_bytes = 0;          // Data the function may have, over what the pre-warmer has; 0: no limit.
  Policy policy;
};

struct CallOptions {
  std::string argument; // JSON
  std::vector<std::string> environment;
  int64_t timeout_us = 60'000'000;
};

/** What came of an injection or a call. */
struct Outcome {
  std::string kind;               // "result", "refused", "no-batch", "load", "signal", "exit", "timeout" or "gone"
  bool called = false;            // Whether the function was called, or only loaded.
  std::string result;             // For "result": what it returned, or what the guest tells of a load.
  std::string message;            // What happened, otherwise.
  std::vector<std::string> trace; // The function's own frames, innermost first.
  std::vector<Stage> stages;
  bool ready = true;              // Whether the pre-warmer can serve on; if not, `replace` says why.
  std::string replace;
  bool ok() const { return kind == "result"; }
};

class Watch;

class Prewarmer {
public:
  /** Starts one, and takes its snapshot when it is Ready. */
  explicit Prewarmer(const LaunchOptions &options);
  /** Kills it. */
  ~Prewarmer();
  Prewarmer(const Prewarmer &) = delete;
  Prewarmer &operator=(const Prewarmer &) = delete;

  pid_t pid() const { return launched_.pid; }
  bool alive() const;
  pid_t worker() const { return resident_.worker; }
  bool loaded() const { return payload_ != nullptr; }
  bool tracks_writes() const { return snapshot_ && snapshot_->tracks_writes(); }
  int landlock() const { return launched_.hello.landlock; }
  /** Why no template was made of it, where one was asked for; "" otherwise. */
  const std::string &unfit() const { return launched_.unfit; }
  /** Whether it has a function since before it was Ready: it serves that one, and is put back to nothing. */
  bool of_function() const { return launched_.loaded; }
  /**
   * How a CUDA context is kept from function to function: "checkpoint" (the driver's), "reset" (the stand-in's), "owner" (for
   * functions of one owner: their memory is not put back), "ends" (not at all), or "none" if there is no context.
   */
  const char *cuda() const;

  /**
   * Loads a function, and with `first` calls it in the same go. Throws "not-ready" or "payload" with the
   * pre-warmer untouched, "unrestorable" or "gone" if it must be replaced.
   */
  Outcome inject(Bytes code, const InjectOptions &options, const CallOptions *first);
  Outcome call(const CallOptions &options);
  /** `thorough`: all mappings, code and constants are compared, also if no call changed any; some ms. */
  Outcome unload(bool thorough = false);
  /** Whether the loaded function can be given runs by the socket GW_RUNS_FD, without the proxy. */
  bool serves() const { return loaded() && launched_.hello.read_return != 0; }
  /** Has the function serve runs by itself: it goes on until something is asked of it, or until it fails. */
  void serve();
  /** Waits for that. `asked` says whether there is a request; the thread that makes one sends the worker SIGSTOP. */
  Ending watch(const Vigil &vigil);
  /** Lets it serve on after an Ending::asked. */
  void serve_on();
  /** The id of the run under way, as the function says; 0: none. */
  uint32_t running() const;
  /**
   * Takes the function back after an Ending::asked: returned is where a call would have left it, anything else a failure.
   * Waits until `deadline_us` for a run to end.
   */
  Ending take_back(const Ending &asked, int64_t deadline_us);
  /** What such an ending comes to, as of a call. */
  Outcome conclude(const Ending &ending) { return conclude(ending, {}); }
  /**
   * Whether the process is alive and at its safe point, or where its proxy holds it. Throws "gone", "not-ready" or
   * "unrestorable" if not.
   */
  void check();

private:
  void end();
  void take_snapshot();
  void save_device(const LaunchOptions &options);
  void settle_device();
  void stop_drivers();
  void release_drivers();
  void attach();
  void await_stop(pid_t thread);
  bool at_safe_point();
  void release();
  void let_go();
  Outcome execute(uint32_t request, int64_t timeout_us, std::vector<Stage> stages);
  void address(const std::vector<std::string> *loading, const CallOptions *call);
  Outcome conclude(const Ending &ending, std::vector<Stage> stages);
  void read_result(Outcome &outcome);
  void roll_back(Outcome &outcome, bool thorough, bool failed);
  void put_all_back(Watch &watch, bool thorough);
  void put_back(Watch &watch, bool thorough);
  void unload_for_owner(Watch &watch);
  void empty_mailbox();
  void reset_device();
  uint32_t ask_guest(uint32_t request);
  void limit_memory(int64_t bytes);

  Stops stops_;
  Launched launched_;
  Target target_;
  Resident resident_;
  Remote remote_;
  std::set<int> threads_;
  // Threads that libraries have started stand still from the snapshot on: it would not have what they change, and while
  // nothing is attached the kernel refuses calls that a function has to ask for, of which a library may die.
  std::set<int> held_;
  // A driver that takes checkpoints needs its threads: they run while a function does, and go back with the process's memory.
  std::unique_ptr<DeviceCheckpoint> device_;
  std::map<int, Context> drivers_;
  Context parked_{};
  std::unique_ptr<Snapshot> snapshot_;
  std::vector<Range> from_template_; // Memory that comes from a template's file, where there is no snapshot.
  std::unique_ptr<ProcessState> state_;
  std::unique_ptr<Payload> payload_;
  std::unique_ptr<Run> run_;
  uint32_t requested_ = 0; // The mailbox's copy is the function's to change.
  bool limited_ = false, ended_ = false;
};

} // namespace gpuwhisk::inject
