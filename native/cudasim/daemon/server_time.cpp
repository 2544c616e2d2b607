// When the daemon looks: at once if a client waits for work that is over, else periodically.
#include "server.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <sys/timerfd.h>

namespace gpuwhisk::sim {
namespace {

constexpr uint64_t idle_interval_ns = 1'000'000'000; // Sensors are read.
constexpr size_t max_queued = 4096; // Operations of a client; the others stay in its ring.
constexpr uint64_t busy_interval_ns = 1'000'000; // While anything runs, rings are looked into as often.
constexpr uint64_t doze_ns = 20'000'000; // After the last work: a program that launches little by little need not ring.

} // namespace

void Server::strike(Client &client, int32_t error) {
  if (client.faulted != 0) return;
  client.faulted = error;
  simulation_.drop(client);
  if (client.channel != nullptr) client.channel->fault(static_cast<uint32_t>(error));
}

void Server::drain(Session &session) {
  Client &client = *session.client;
  if (client.channel == nullptr) return;
  bool broken = false, took = false;
  gwsim_entry entry;
  while (simulation_.pending(client) < max_queued && client.channel->take(entry, &broken)) {
    took = true;
    auto since_start = static_cast<double>(static_cast<int64_t>(entry.stamp_ns - start_ns_));
    if (client.faulted == 0 && !simulation_.submit(client, entry, since_start * options_.time_scale)) broken = true;
  }
  took_ = took_ || took;
  if (took && simulation_.pending(client) < max_queued) client.channel->offer_space();
  // A client that writes nonsense gets a fault of its own.
  if (broken) strike(client, 700);
}

void Server::advance() {
  uint64_t wall_ns = monotonic_ns();
  double now = static_cast<double>(wall_ns - start_ns_) * options_.time_scale;
  for (Session &session : sessions_) drain(session);
  simulation_.advance(now);
  // Room that has come to be since.
  for (Session &session : sessions_) drain(session);
  sampler_.sample(node_.gpus, now);
}

uint64_t Server::wall_of(double simulated_ns) const {
  return start_ns_ + static_cast<uint64_t>(simulated_ns / options_.time_scale) + 1;
}

// The next event, or the soonest end of work that a client waits for if that is later: nothing is to be told before.
double Server::wake_for_waiters() {
  double soonest = std::numeric_limits<double>::infinity();
  for (const Client &client : node_.clients) {
    if (client.channel == nullptr) continue;
    for (uint32_t stream : simulation_.busy_streams(client))
      if (uint64_t awaited = client.channel->awaited(stream); awaited != 0)
        soonest = std::min(soonest, simulation_.earliest_end(client, stream, awaited));
  }
  return std::max(soonest, simulation_.next_event());
}

void Server::set_timer() {
  bool works = !simulation_.is_idle();
  if (works || took_) last_work_ns_ = monotonic_ns();
  took_ = false;
  bool idle = !works && monotonic_ns() - last_work_ns_ > doze_ns;
  for (Client &client : node_.clients) {
    if (client.channel == nullptr) continue;
    if (!idle) client.channel->wake_up();
    else if (!client.channel->fall_asleep()) idle = false;
  }
  uint64_t wake = monotonic_ns() + (idle ? idle_interval_ns : busy_interval_ns);
  if (double event = wake_for_waiters(); std::isfinite(event)) wake = std::min(wake, wall_of(event));
  for (const Pending &one : pending_) wake = std::min(wake, one.due_ns);
  wake = std::max<uint64_t>(wake, 1); // 0 would switch the timer off.
  itimerspec when{};
  when.it_value.tv_sec = static_cast<time_t>(wake / 1'000'000'000);
  when.it_value.tv_nsec = static_cast<long>(wake % 1'000'000'000);
  if (timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &when, nullptr) < 0) throw_errno("timerfd_settime");
}

} // namespace gpuwhisk::sim
