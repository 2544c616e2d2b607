#include "cuda_calls.h"

#include <algorithm>
#include <cmath>

namespace gpuwhisk::sim {
namespace {

// CUresults.
enum : int32_t {
  success = 0,
  invalid_value = 1,
  out_of_memory = 2,
  device_unavailable = 46,
  invalid_device = 101,
  invalid_context = 201,
  mps_connection_failed = 805,
  mps_server_not_ready = 807,
  mps_max_clients_reached = 808,
  unknown_error = 999,
};

constexpr uint64_t granule_bytes = 512, mib = 1 << 20;
constexpr uint32_t max_contexts = 64; // Of a process.

uint64_t round_up(uint64_t bytes) { return (bytes + granule_bytes - 1) / granule_bytes * granule_bytes; }

uint64_t lesser_limit(uint64_t one, uint64_t other) { return one == 0 || (other != 0 && other < one) ? other : one; }

bool is_used_by_other_process(Node &node, const Gpu &gpu, const Client &client) {
  return std::ranges::any_of(node.clients, [&](const Client &other) {
    return other.pid != client.pid && std::ranges::any_of(other.contexts, [&](const auto &entry) {
             return entry.second.gpu == &gpu && entry.second.mps == nullptr;
           });
  });
}

bool is_held_by_mps(const Node &node, const Gpu &gpu) {
  return std::ranges::any_of(node.mps, [&](const MpsDaemon &daemon) { return (daemon.devices >> gpu.index() & 1) != 0; });
}

/** Another daemon's server is the one process that an exclusive device lets in. */
bool is_held_by_other_server(const Node &node, const MpsDaemon &daemon, const Gpu &gpu) {
  return std::ranges::any_of(node.mps, [&](const MpsDaemon &other) {
    return &other != &daemon && other.settings.has_server != 0 && other.instance == daemon.instance &&
           (other.devices >> gpu.index() & 1) != 0;
  });
}

/** Why a process may not become a client of an MPS server, or success. */
int32_t admit(Node &node, MpsDaemon &daemon, const Client &client, const Gpu &gpu, const Partition &partition,
              int32_t instance) {
  if ((daemon.devices >> gpu.index() & 1) == 0 || daemon.instance != instance) return mps_connection_failed;
  if (gpu.compute_mode == GWSIM_EXCLUSIVE_PROCESS && is_held_by_other_server(node, daemon, gpu)) return mps_connection_failed;
  std::vector<Context *> contexts = node.contexts_of(daemon);
  if (contexts.empty()) daemon.faulted = false;
  if (daemon.faulted) return mps_server_not_ready;
  // A server is its user's, unless it was started for all; another one's starts when it has no clients.
  if (!daemon.multi_user && !contexts.empty() && contexts.front()->client->uid != client.uid) return mps_server_not_ready;
  uint32_t most = std::max(1U, max_mps_clients * partition.sm_count / gpu.model().sm_count);
  auto present = std::ranges::count_if(
      contexts, [&](const Context *one) { return one->partition == &partition && !one->green; });
  return static_cast<uint32_t>(present) < most ? success : mps_max_clients_reached;
}

int32_t admit_alone(Node &node, const Client &client, const Gpu &gpu) {
  if (gpu.compute_mode == GWSIM_PROHIBITED) return device_unavailable;
  if (gpu.compute_mode != GWSIM_EXCLUSIVE_PROCESS) return success;
  return is_held_by_mps(node, gpu) || is_used_by_other_process(node, gpu, client) ? device_unavailable : success;
}

/** Percentage and limit of a client: it only lowers what the server has. The first client starts that. */
void set_share(Context &context, const MpsDaemon &daemon, const gwsim_context_request &request) {
  const gwsim_mps_set &server = daemon.settings.server;
  context.percent = request.percent == 0 ? server.percent : std::min(server.percent, request.percent);
  context.limit_bytes = lesser_limit(server.limit_bytes[context.gpu->index()], request.limit_bytes);
}

Context &add_context(Client &client, const Context &like) {
  Context &context = client.contexts[++client.last_context];
  context = like;
  context.id = client.last_context;
  context.since_ns = monotonic_ns();
  context.partition->used_bytes += context.own_bytes;
  context.partition->contexts++;
  return context;
}

Reply describe(const Context &context) {
  return reply_with(gwsim_context{context.id, context.sm_limit, context.was_mps, context.partition->memory_bytes});
}

/** It takes no memory of its own, and no time that matters. */
Reply create_green_context(Client &client, const gwsim_context_request &request) {
  auto parent = client.contexts.find(request.parent);
  if (parent == client.contexts.end()) return {invalid_context, {}, 0};
  if (client.contexts.size() >= max_contexts) return {out_of_memory, {}, 0};
  const Context &whole = parent->second;
  Context green{};
  green.client = &client;
  green.gpu = whole.gpu;
  green.instance = whole.instance;
  green.partition = whole.partition;
  green.mps = whole.mps;
  green.was_mps = whole.was_mps;
  green.green = true;
  green.percent = whole.percent;
  green.sm_limit = std::clamp(request.sms, 1U, whole.sm_limit);
  return describe(add_context(client, green));
}

Reply create_context(Node &node, Client &client, const gwsim_context_request &request) {
  if (request.parent != 0) return create_green_context(client, request);
  if (request.device >= node.gpus.size()) return {invalid_device, {}, 0};
  Gpu &gpu = *node.gpus[request.device];
  if (gpu.lost) return {unknown_error, {}, 0};
  Partition *partition = gpu.partition(request.instance);
  if (partition == nullptr) return {invalid_device, {}, 0};
  if (client.contexts.size() >= max_contexts) return {out_of_memory, {}, 0};
  std::string directory = text_of(request.pipe_directory);
  MpsDaemon *daemon = directory.empty() ? nullptr : node.find_mps(directory);
  int32_t refused = daemon != nullptr ? admit(node, *daemon, client, gpu, *partition, request.instance)
                                      : admit_alone(node, client, gpu);
  if (refused != success) return {refused, {}, 0};
  double own_mib = daemon != nullptr ? gpu.model().mps_context_mib : gpu.model().context_mib;
  if (node.options.context_mib >= 0) own_mib = node.options.context_mib;
  auto own_bytes = static_cast<uint64_t>(own_mib) * mib;
  if (own_bytes > partition->memory_bytes - partition->used_bytes) return {out_of_memory, {}, 0};

  Context context{};
  context.client = &client;
  context.gpu = &gpu;
  context.instance = request.instance;
  context.partition = partition;
  context.mps = daemon;
  context.was_mps = daemon != nullptr;
  if (daemon != nullptr) {
    daemon->start_server();
    set_share(context, *daemon, request);
  }
  context.sm_limit = std::max(1U, partition->sm_count * context.percent / 100);
  context.own_bytes = own_bytes;
  Reply reply = describe(add_context(client, context));
  reply.due_ns = monotonic_ns() + static_cast<uint64_t>(node.options.context_ms * 1e6 / node.options.time_scale);
  return reply;
}

int32_t allocate(Context &context, uint64_t bytes) {
  const Partition &partition = *context.partition;
  if (bytes == 0 || bytes > partition.memory_bytes) return bytes == 0 ? invalid_value : out_of_memory;
  uint64_t rounded = round_up(bytes);
  if (rounded > partition.memory_bytes - partition.used_bytes) return out_of_memory;
  if (context.limit_bytes != 0 && context.allocated_bytes + rounded > context.limit_bytes) return out_of_memory;
  context.partition->used_bytes += rounded;
  context.allocated_bytes += rounded;
  return success;
}

int32_t release(Context &context, uint64_t bytes) {
  if (bytes > context.allocated_bytes || round_up(bytes) > context.allocated_bytes) return invalid_value;
  context.partition->used_bytes -= round_up(bytes);
  context.allocated_bytes -= round_up(bytes);
  return success;
}

Reply describe_memory(const Context &context) {
  const Partition &partition = *context.partition;
  uint64_t free_bytes = partition.memory_bytes - partition.used_bytes;
  // As MPS says it: free is what the limit leaves, total is the device's.
  if (context.limit_bytes != 0) free_bytes = std::min(free_bytes, context.limit_bytes - context.allocated_bytes);
  return reply_with(gwsim_memory_info{free_bytes, partition.memory_bytes});
}

} // namespace

void destroy_context(Client &client, uint32_t id) {
  auto found = client.contexts.find(id);
  if (found == client.contexts.end()) return;
  Context &context = found->second;
  context.partition->used_bytes -= context.own_bytes + context.allocated_bytes;
  context.partition->contexts--;
  client.contexts.erase(found);
}

Reply answer_cuda(Node &node, Simulation &simulation, Client &client, gwsim_operation operation, std::string_view body) {
  if (operation == GWSIM_ADVANCE) return {};
  if (client.faulted != 0 && operation != GWSIM_CONTEXT_DESTROY) return {client.faulted, {}, 0};
  if (operation == GWSIM_CONTEXT_CREATE) return create_context(node, client, parse_body<gwsim_context_request>(body));
  // All requests about a context begin with its id.
  uint32_t id = parse_body<gwsim_context>(body).id;
  auto found = client.contexts.find(id);
  if (found == client.contexts.end()) return {invalid_context, {}, 0};
  Context &context = found->second;
  switch (operation) {
  case GWSIM_CONTEXT_DESTROY: {
    const void *group = group_of(context);
    bool alone = context.mps == nullptr && client.contexts.size() == 1;
    simulation.drop(client, id);
    destroy_context(client, id);
    if (alone) simulation.forget_group(group);
    return {};
  }
  case GWSIM_ALLOCATE:
    return {allocate(context, parse_body<gwsim_memory>(body).bytes), {}, 0};
  case GWSIM_FREE:
    return {release(context, parse_body<gwsim_memory>(body).bytes), {}, 0};
  case GWSIM_MEMORY_INFO:
    return describe_memory(context);
  default:
    return {invalid_value, {}, 0};
  }
}

} // namespace gpuwhisk::sim
