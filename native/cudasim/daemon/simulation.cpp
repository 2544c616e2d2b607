#include "simulation.h"

#include "channel_owner.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace gpuwhisk::sim {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();
constexpr double instant_ns = 1e-3;   // Closer together is at once.
constexpr double copy_start_ns = 1500; // Before the first byte of a copy moves.
constexpr double greatest = 1e15;      // Of any declared cost.

bool is_copy(const gwsim_entry &entry) { return entry.type == GWSIM_TO_DEVICE || entry.type == GWSIM_TO_HOST; }

bool is_sound(double value) { return std::isfinite(value) && value >= 0 && value <= greatest; }

bool is_sound(const gwsim_entry &entry) {
  if (entry.stream >= GWSIM_STREAMS) return false;
  switch (entry.type) {
  case GWSIM_KERNEL:
    return entry.kernel.blocks <= 1ULL << 50 && is_sound(entry.kernel.ns_per_block) &&
           is_sound(entry.kernel.dram_bytes_per_block) && is_sound(entry.kernel.sensitivity) &&
           is_sound(entry.kernel.pressure);
  case GWSIM_TO_DEVICE:
  case GWSIM_TO_HOST:
    return entry.bytes <= 1ULL << 50;
  case GWSIM_RECORD:
  case GWSIM_WAIT:
    return entry.event.slot < GWSIM_EVENT_SLOTS;
  default:
    return false;
  }
}

Running describe(const gwsim_entry &entry, const Context &context) {
  double blocks = static_cast<double>(std::max<uint64_t>(entry.kernel.blocks, 1));
  double filled = std::ceil(blocks / std::max<uint32_t>(entry.kernel.blocks_per_sm, 1));
  Running kernel{};
  kernel.owner = &context;
  kernel.owner_cap = context.sm_limit;
  kernel.demand = std::min<double>(context.sm_limit, filled);
  kernel.filled = filled;
  kernel.work = std::max(1.0, filled * entry.kernel.ns_per_block);
  kernel.dram_bytes = blocks * entry.kernel.dram_bytes_per_block;
  kernel.sensitivity = entry.kernel.sensitivity;
  kernel.pressure = entry.kernel.pressure;
  return kernel;
}

/** Whether the default stream's order keeps `later` behind `earlier`. */
bool holds_up(const Queued &earlier, const Queued &later) {
  if (earlier.index > later.index || earlier.entry.context != later.entry.context) return false;
  return ((earlier.entry.flags & GWSIM_LEGACY) != 0 && (later.entry.flags & GWSIM_BLOCKING) != 0) ||
         ((earlier.entry.flags & GWSIM_BLOCKING) != 0 && (later.entry.flags & GWSIM_LEGACY) != 0);
}

} // namespace

Simulation::Simulation(Node &node, std::function<void(Client &, Gpu &)> on_fault)
    : node_(node), on_fault_(std::move(on_fault)) {}

size_t Simulation::pending(const Client &client) const {
  auto found = lanes_.find(const_cast<Client *>(&client));
  return found == lanes_.end() ? 0 : found->second.pending;
}

bool Simulation::submit(Client &client, const gwsim_entry &entry, double stamp_ns) {
  if (!is_sound(entry) || !client.contexts.contains(entry.context)) return false;
  Lane &lane = lanes_[&client];
  StreamQueue &queue = lane.streams[entry.stream];
  queue.slot = entry.stream;
  queue.operations.push_back({entry, lane.submitted++, std::max(stamp_ns, now_)});
  lane.pending++;
  lane.stirred = true;
  return true;
}

bool Simulation::is_ready(const Lane &lane, const StreamQueue &queue) const {
  const Queued &first = queue.operations.front();
  if (first.stamp_ns > now_ + instant_ns) return false;
  if (first.entry.type == GWSIM_WAIT) {
    auto recorded = lane.recorded.find(first.entry.event.slot);
    if (recorded == lane.recorded.end() || recorded->second < first.entry.event.generation) return false;
  }
  if ((first.entry.flags & (GWSIM_LEGACY | GWSIM_BLOCKING)) == 0) return true;
  return std::ranges::none_of(lane.streams, [&](const auto &other) {
    return &other.second != &queue && holds_up(other.second.operations.front(), first);
  });
}

void Simulation::start(Client &client, StreamQueue &queue) {
  const gwsim_entry &entry = queue.operations.front().entry;
  Context &context = client.contexts.at(entry.context);
  queue.runs = true;
  queue.rate = 0;
  if (is_copy(entry)) {
    queue.left = static_cast<double>(entry.bytes) + copy_start_ns * context.gpu->model().pcie_gb_s;
    return;
  }
  queue.left = 1;
  queue.kernel = describe(entry, context);
  if ((entry.flags & GWSIM_UNCOUNTED) == 0) {
    context.launches++;
    context.blocks += entry.kernel.blocks;
  }
  auto [load, made] =
      loads_.try_emplace(context.partition, *context.gpu, *context.partition, node_.options.turn_ms * 1e6);
  load->second.add(queue, context);
}

// Until nothing more begins: what takes no time may let others begin.
void Simulation::start_ready(Client &client, Lane &lane) {
  while (lane.stirred) {
    lane.stirred = false;
    for (auto next = lane.streams.begin(); next != lane.streams.end();) {
      auto current = next++;
      StreamQueue &queue = current->second;
      if (queue.runs || !is_ready(lane, queue)) continue;
      const gwsim_entry &entry = queue.operations.front().entry;
      if (entry.type == GWSIM_RECORD || entry.type == GWSIM_WAIT) finish(client, lane, queue);
      else start(client, queue);
    }
  }
}

// Removes an empty queue, so that `queue` is not to be used any more.
void Simulation::finish(Client &client, Lane &lane, StreamQueue &queue) {
  gwsim_entry entry = queue.operations.front().entry;
  if (entry.type == GWSIM_RECORD) {
    lane.recorded[entry.event.slot] = entry.event.generation;
    client.channel->record(entry.event.slot, entry.event.generation, now_);
  }
  queue.runs = false;
  queue.operations.pop_front();
  lane.pending--;
  lane.stirred = true;
  if (queue.operations.empty()) lane.streams.erase(entry.stream);
  client.channel->complete(entry.stream, entry.sequence);
}

void Simulation::set_copy_rates() {
  std::map<std::pair<const Gpu *, uint32_t>, std::vector<StreamQueue *>> engines;
  for (auto &[client, lane] : lanes_)
    for (auto &[slot, queue] : lane.streams) {
      if (!queue.runs || !is_copy(queue.operations.front().entry)) continue;
      const gwsim_entry &entry = queue.operations.front().entry;
      engines[{client->contexts.at(entry.context).gpu, entry.type}].push_back(&queue);
    }
  for (auto &[engine, queues] : engines)
    for (StreamQueue *queue : queues)
      queue->rate = engine.first->model().pcie_gb_s / static_cast<double>(queues.size());
}

void Simulation::settle() {
  for (auto &[client, lane] : lanes_) start_ready(*client, lane);
  set_copy_rates();
  std::erase_if(loads_, [](const auto &entry) { return entry.second.is_empty(); });
  for (auto &[partition, load] : loads_) load.settle(now_);
}

double Simulation::find_next() {
  double next = never;
  for (auto &[client, lane] : lanes_)
    for (auto &[slot, queue] : lane.streams) {
      if (queue.runs && queue.rate > 0) next = std::min(next, now_ + queue.left / queue.rate);
      double stamp_ns = queue.operations.front().stamp_ns;
      if (!queue.runs && stamp_ns > now_ + instant_ns) next = std::min(next, stamp_ns);
    }
  for (auto &[partition, load] : loads_) next = std::min(next, load.turn_end());
  return next;
}

void Simulation::elapse(double until_ns) {
  double elapsed_ns = until_ns - now_;
  for (auto &[partition, load] : loads_) load.account(elapsed_ns);
  for (auto &[client, lane] : lanes_)
    for (auto &[slot, queue] : lane.streams) {
      if (!queue.runs) continue;
      queue.left -= queue.rate * elapsed_ns;
      const gwsim_entry &entry = queue.operations.front().entry;
      if (!is_copy(entry)) continue;
      Gpu &gpu = *client->contexts.at(entry.context).gpu;
      (entry.type == GWSIM_TO_DEVICE ? gpu.to_device_bytes : gpu.to_host_bytes) += queue.rate * elapsed_ns;
    }
  now_ = until_ns;
}

void Simulation::advance(double to_ns) {
  while (true) {
    settle();
    double next = find_next();
    elapse(std::max(now_, std::min(next, to_ns)));
    if (next > to_ns) return;
    std::vector<std::pair<Client *, Gpu *>> faults;
    for (auto &[partition, load] : loads_)
      if (load.turn_end() <= now_) load.end_turn(now_);
    for (auto &[client, lane] : lanes_) {
      for (auto following = lane.streams.begin(); following != lane.streams.end();) {
        auto current = following++;
        StreamQueue &queue = current->second;
        if (!queue.runs) {
          if (queue.operations.front().stamp_ns <= now_ + instant_ns) lane.stirred = true;
          continue;
        }
        if (queue.rate <= 0 || queue.left > queue.rate * instant_ns) continue;
        const gwsim_entry entry = queue.operations.front().entry;
        Context &context = client->contexts.at(entry.context);
        if (!is_copy(entry)) loads_.at(context.partition).remove(queue);
        if ((entry.flags & GWSIM_FAULTS) != 0) {
          queue.runs = false; // Its client is struck before anything of it could begin.
          faults.emplace_back(client, context.gpu);
        } else {
          finish(*client, lane, queue);
        }
      }
    }
    for (auto [client, gpu] : faults) on_fault_(*client, *gpu);
  }
}

bool Simulation::is_idle() const {
  return std::ranges::all_of(lanes_, [](const auto &lane) { return lane.second.pending == 0; });
}

double Simulation::next_event() {
  settle();
  return find_next();
}

double Simulation::solo_ns(const Queued &operation, const Context &context) const {
  const gwsim_entry &entry = operation.entry;
  const Model &model = context.gpu->model();
  if (is_copy(entry)) return static_cast<double>(entry.bytes) / model.pcie_gb_s + copy_start_ns;
  if (entry.type != GWSIM_KERNEL) return 0;
  Running kernel = describe(entry, context);
  return std::max(kernel.work / (kernel.demand * model.sm_speed), kernel.dram_bytes / context.partition->bandwidth);
}

double Simulation::earliest_end(const Client &client, uint32_t stream, uint64_t sequence) const {
  auto lane = lanes_.find(const_cast<Client *>(&client));
  if (lane == lanes_.end()) return never;
  auto queue = lane->second.streams.find(stream);
  if (queue == lane->second.streams.end()) return never;
  double end = now_;
  for (const Queued &operation : queue->second.operations) {
    if (operation.entry.sequence > sequence) break;
    double solo = solo_ns(operation, client.contexts.at(operation.entry.context));
    bool runs = queue->second.runs && &operation == &queue->second.operations.front();
    end += runs && operation.entry.type == GWSIM_KERNEL ? solo * std::max(0.0, queue->second.left) : runs ? 0 : solo;
  }
  return end;
}

std::vector<uint32_t> Simulation::busy_streams(const Client &client) const {
  std::vector<uint32_t> slots;
  auto lane = lanes_.find(const_cast<Client *>(&client));
  if (lane == lanes_.end()) return slots;
  for (const auto &[slot, queue] : lane->second.streams) slots.push_back(slot);
  return slots;
}

void Simulation::drop(const Client &client) {
  auto lane = lanes_.find(const_cast<Client *>(&client));
  if (lane == lanes_.end()) return;
  for (auto &[slot, queue] : lane->second.streams)
    for (auto &[partition, load] : loads_) load.remove(queue);
  lanes_.erase(lane);
}

void Simulation::drop(const Client &client, uint32_t context) {
  auto found = lanes_.find(const_cast<Client *>(&client));
  if (found == lanes_.end()) return;
  Lane &lane = found->second;
  for (auto next = lane.streams.begin(); next != lane.streams.end();) {
    auto current = next++;
    StreamQueue &queue = current->second;
    uint32_t current_slot = current->first;
    auto is_of_it = [&](const Queued &operation) { return operation.entry.context == context; };
    if (queue.runs && is_of_it(queue.operations.front())) {
      for (auto &[partition, load] : loads_) load.remove(queue);
      queue.runs = false;
    }
    uint64_t last = queue.operations.back().entry.sequence;
    lane.pending -= std::erase_if(queue.operations, is_of_it);
    if (!queue.operations.empty()) continue;
    lane.streams.erase(current);
    client.channel->complete(current_slot, last);
  }
  lane.stirred = true;
}

void Simulation::touch() {
  for (auto &[partition, load] : loads_) load.touch();
}

void Simulation::forget_group(const void *group) {
  for (auto &[partition, load] : loads_) load.forget_group(group);
}

} // namespace gpuwhisk::sim
