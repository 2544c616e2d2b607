// The way back: the pre-warmer is as it was before the injection, which is verified, and Ready; or it is killed.
#include "failure.h"
#include "prewarmer.h"
#include "watch.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace gpuwhisk::inject {
namespace {

constexpr int64_t device_limit_us = 1'000'000;
constexpr blkcnt_t max_kept_blocks = 128; // Of 512 bytes.

} // namespace

Outcome Prewarmer::unload(bool thorough) {
  if (!payload_) throw Failure("not-ready", "No function is loaded.");
  OneProcessor one;
  Outcome outcome;
  outcome.kind = "result";
  roll_back(outcome, thorough);
  return outcome;
}

// Back to the safe point. If that cannot be done the process is killed: nothing of the function stays.
void Prewarmer::roll_back(Outcome &outcome, bool thorough) {
  Watch watch(outcome.stages);
  try {
    run_->end_threads();
    if (!run_->replace_reason().empty()) throw Failure("unrestorable", run_->replace_reason());
    if (!snapshot_) throw Failure("unrestorable", "Its CUDA driver keeps state in the process's memory.");
    limit_memory(0);
    if (device_) {
      device_->save();
      watch.stage("checkpoint device");
      stop_drivers();
    }
    put_back(watch, thorough);
    if (device_) {
      release_drivers();
    } else if (launched_.hello.cuda == GW_CUDA_RESET) {
      reset_device();
      watch.stage("reset device");
      put_back(watch, thorough);
    }
    release();
    if (device_) device_->begin_restore();
    watch.stage("detach");
    payload_.reset();
    run_.reset();
  } catch (const Failure &failure) {
    end();
    outcome.ready = false;
    outcome.replace = failure.what();
  }
}

// The process's memory and state are those of the snapshot again; the device is not.
void Prewarmer::put_back(Watch &watch, bool thorough) {
  std::vector<gw_call> calls;
  // Timers and handlers first: a signal of theirs would end the copying.
  state_->plan(calls);
  // Without Landlock a function can write over code through /proc/self/mem, which no call tells.
  bool compare = thorough || run_->mapped() || !launched_.hello.traces_mappings || launched_.hello.landlock == 0;
  snapshot_->plan(calls, compare);
  remote_.run(calls);
  snapshot_->write_back();
  empty_mailbox();
  watch.stage("restore");
  snapshot_->verify();
  state_->verify();
  watch.stage("verify");
}

// What the function left there goes too. The few pages that every function uses stay, as zeros: taken away, each would
// come back with two page faults. The holes read as zeros, too.
void Prewarmer::empty_mailbox() {
  int file = launched_.mailbox.file();
  struct stat now;
  if (fstat(file, &now) < 0) throw_errno("fstat");
  if (now.st_blocks > max_kept_blocks) {
    if (fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, launched_.mailbox.bytes) < 0)
      throw_errno("empty the mailbox");
    return;
  }
  auto *mailbox = reinterpret_cast<char *>(launched_.mailbox.get());
  for (off_t end = 0;;) {
    off_t start = lseek(file, end, SEEK_DATA);
    if (start < 0 && errno == ENXIO) return; // Nothing more.
    if (start < 0 || (end = lseek(file, start, SEEK_HOLE)) < 0) throw_errno("empty the mailbox");
    std::memset(mailbox + start, 0, static_cast<size_t>(end - start));
  }
}

// By the pre-warmer's own code in its own memory, which is as it was: only what the driver keeps apart is the function's.
void Prewarmer::reset_device() {
  restore_context(resident_.worker, parked_);
  resident_.shared->request = GW_RESET_DEVICE;
  Ending ending =
      run_->go(launched_.hello.enter, launched_.hello.enter_end, launched_.hello.guest, now_us() + device_limit_us);
  stops_.rest();
  if (ending.kind != Ending::returned || resident_.shared->status != GW_DONE)
    throw Failure("unrestorable", "The device cannot be reset.");
}

} // namespace gpuwhisk::inject
