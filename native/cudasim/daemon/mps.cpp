#include "mps.h"

#include <algorithm>
#include <bit>

namespace gpuwhisk::sim {
namespace {

// CUresults.
constexpr int32_t illegal_address = 700, mps_server_not_ready = 807, mps_terminated = 810, unknown = 999;
constexpr uint64_t xid_ecc = 48, xid_lost = 79;

uint32_t all_devices(const Node &node) { return (1U << node.gpus.size()) - 1; }

Client *client_on(Node &node, const Gpu &gpu, int32_t pid) {
  for (Client &client : node.clients) {
    if (pid != 0 && client.pid != pid) continue;
    if (std::ranges::any_of(client.contexts, [&](const auto &entry) { return entry.second.gpu == &gpu; })) return &client;
  }
  return nullptr;
}

void lose(Node &node, Gpu &gpu, const Strike &strike) {
  gpu.lost = true;
  gpu.last_xid = xid_lost;
  node.events.add(gpu.index(), GWSIM_EVENT_XID, xid_lost, -1, 0);
  for (Client &client : node.clients)
    if (std::ranges::any_of(client.contexts, [&](const auto &entry) { return entry.second.gpu == &gpu; }))
      strike(client, unknown);
}

void leak(Node &node, Gpu &gpu, int32_t pid, uint64_t bytes) {
  Client *client = client_on(node, gpu, pid);
  if (client == nullptr) throw Refusal{GWSIM_NOT_FOUND};
  auto here = [&](const auto &one) { return one.second.gpu == &gpu && !one.second.green; };
  auto found = std::ranges::find_if(client->contexts, here);
  if (found == client->contexts.end()) throw Refusal{GWSIM_NOT_FOUND};
  Context &context = found->second;
  if (bytes > context.partition->memory_bytes - context.partition->used_bytes) throw Refusal{GWSIM_INSUFFICIENT};
  context.own_bytes += bytes;
  context.partition->used_bytes += bytes;
}

} // namespace

Reply start_mps(Node &node, Client &connection, const gwsim_mps_start &request) {
  std::string directory = text_of(request.pipe_directory);
  bool for_instance = request.instance >= 0;
  if (directory.empty() || connection.mps != nullptr || request.devices == 0 ||
      (request.devices & ~all_devices(node)) != 0 || (for_instance && std::popcount(request.devices) != 1))
    throw Refusal{GWSIM_INVALID};
  if (for_instance && node.gpu(static_cast<uint32_t>(std::countr_zero(request.devices))).partition(request.instance) == nullptr)
    throw Refusal{GWSIM_NOT_FOUND};
  if (node.find_mps(directory) != nullptr) throw Refusal{GWSIM_IN_USE};
  MpsDaemon &daemon = node.mps.emplace_back();
  daemon.pipe_directory = directory;
  daemon.devices = request.devices;
  daemon.instance = request.instance;
  daemon.multi_user = request.multi_user != 0;
  connection.mps = &daemon;
  return {};
}

Reply set_mps(Client &connection, const gwsim_mps_set &request) {
  if (connection.mps == nullptr || request.percent > 100) throw Refusal{GWSIM_INVALID};
  MpsDaemon &daemon = *connection.mps;
  if (request.percent == 0) return reply_with(daemon.settings);
  if (request.of_server != 0) daemon.start_server();
  (request.of_server != 0 ? daemon.settings.server : daemon.settings.next) = request;
  return reply_with(daemon.settings);
}

Reply terminate_mps_client(Node &node, const gwsim_mps_target &request, const Strike &strike) {
  MpsDaemon *daemon = node.find_mps(text_of(request.pipe_directory));
  if (daemon == nullptr) throw Refusal{GWSIM_NOT_FOUND};
  std::vector<Context *> contexts = node.contexts_of(*daemon);
  auto found = std::ranges::find_if(contexts, [&](const Context *one) { return one->client->pid == request.pid; });
  if (found == contexts.end()) throw Refusal{GWSIM_NOT_FOUND};
  strike(*(*found)->client, mps_terminated);
  return {};
}

void end_mps(Node &node, MpsDaemon &daemon, const Strike &strike) {
  for (Context *context : node.contexts_of(daemon)) {
    strike(*context->client, mps_server_not_ready);
    context->mps = nullptr;
  }
  node.mps.remove_if([&](const MpsDaemon &one) { return &one == &daemon; });
}

void fault(Node &node, Client &client, Gpu &gpu, uint64_t xid, const Strike &strike) {
  gpu.last_xid = static_cast<uint32_t>(xid);
  MpsDaemon *server = nullptr;
  int32_t instance = -1;
  for (auto &[id, context] : client.contexts) {
    if (context.gpu != &gpu) continue;
    instance = context.instance;
    if (context.mps != nullptr) server = context.mps;
  }
  node.events.add(gpu.index(), GWSIM_EVENT_XID, xid, instance, client.pid);
  strike(client, illegal_address);
  if (server == nullptr) return;
  server->faulted = true;
  for (Context *context : node.contexts_of(*server))
    if (context->gpu == &gpu) strike(*context->client, illegal_address);
}

Reply inject_fault(Node &node, const gwsim_fault &request, const Strike &strike) {
  Gpu &gpu = node.gpu(request.device);
  switch (request.kind) {
  case GWSIM_FAULT_CLIENT: {
    Client *client = client_on(node, gpu, request.pid);
    if (client == nullptr) throw Refusal{GWSIM_NOT_FOUND};
    fault(node, *client, gpu, request.xid == 0 ? 31 : request.xid, strike);
    return {};
  }
  case GWSIM_FAULT_XID:
    gpu.last_xid = static_cast<uint32_t>(request.xid);
    node.events.add(gpu.index(), GWSIM_EVENT_XID, request.xid, -1, request.pid);
    return {};
  case GWSIM_FAULT_LOST:
    lose(node, gpu, strike);
    return {};
  case GWSIM_FAULT_ECC:
    node.events.add(gpu.index(), GWSIM_EVENT_ECC, 0, -1, 0);
    gpu.last_xid = xid_ecc;
    node.events.add(gpu.index(), GWSIM_EVENT_XID, xid_ecc, -1, 0);
    return {};
  case GWSIM_FAULT_RECOVER:
    gpu.lost = false;
    return {};
  case GWSIM_FAULT_CLOCKS:
    gpu.clock_event_reasons = request.xid;
    return {};
  case GWSIM_FAULT_LEAK:
    leak(node, gpu, request.pid, request.xid << 20);
    return {};
  default:
    throw Refusal{GWSIM_INVALID};
  }
}

} // namespace gpuwhisk::sim
