// The way back: the pre-warmer is as it was before the injection, which is verified, and Ready; or it is killed.
#include "failure.h"
#include "prewarmer.h"
#include "watch.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
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
  roll_back(outcome, thorough, false);
  return outcome;
}

// Back to the safe point. If that cannot be done the process is killed: nothing of the function stays.
void Prewarmer::roll_back(Outcome &outcome, bool thorough, bool failed) {
  Watch watch(outcome.stages);
  try {
    // Without a snapshot threads that appeared may be the driver's: none is ended, and all are told of.
    if (snapshot_ || failed) run_->end_threads();
    if (!run_->replace_reason().empty()) throw Failure("unrestorable", run_->replace_reason());
    limit_memory(0);
    if (snapshot_) put_all_back(watch, thorough);
    else if (state_ && !failed) unload_for_owner(watch);
    else if (launched_.loaded) throw Failure("unrestorable", "It is a copy of one function, and serves no other.");
    else throw Failure("unrestorable", "Its CUDA driver keeps state in the process's memory.");
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

void Prewarmer::put_all_back(Watch &watch, bool thorough) {
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
  if (ask_guest(GW_RESET_DEVICE) != GW_DONE) throw Failure("unrestorable", "The device cannot be reset.");
}

uint32_t Prewarmer::ask_guest(uint32_t request) {
  restore_context(resident_.worker, parked_);
  resident_.shared->request = request;
  Ending ending =
      run_->go(launched_.hello.enter, launched_.hello.enter_end, launched_.hello.guest, now_us() + device_limit_us);
  stops_.rest();
  if (ending.kind != Ending::returned) throw Failure("unrestorable", "The pre-warmer does not answer after the function.");
  return __atomic_load_n(&resident_.shared->status, __ATOMIC_RELAXED);
}

// Without a snapshot the function is unloaded by the pre-warmer's own code, and what it may have left is looked for from outside.
void Prewarmer::unload_for_owner(Watch &watch) {
  if (target_.threads() != state_->threads()) throw Failure("unrestorable", "The function left a thread behind.");
  if (ask_guest(GW_UNLOAD) != GW_DONE) {
    gw_mailbox &mailbox = *resident_.shared;
    throw Failure("unrestorable", std::string(mailbox.message, strnlen(mailbox.message, sizeof mailbox.message)));
  }
  empty_mailbox(); // Its zeros are the timers, too.
  uint64_t none = resident_.mailbox + offsetof(gw_mailbox, arguments);
  for (int timer : {ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF})
    remote_.call("setitimer", SYS_setitimer, {static_cast<uint64_t>(timer), none, 0});
  watch.stage("unload");
  state_->verify();
  const struct stat &code = payload_->identity();
  for (const Mapping &mapping : parse_maps(target_.read_maps()))
    if (mapping.file.ends_with(" " + std::to_string(code.st_ino)))
      throw Failure("unrestorable", "The function's code stays mapped.");
  watch.stage("verify");
}

} // namespace gpuwhisk::inject
