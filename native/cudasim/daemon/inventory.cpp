#include "inventory.h"

#include <algorithm>

namespace gpuwhisk::sim {
namespace {

gwsim_device_status status_of(const Gpu &gpu, const Sampler &sampler, uint32_t processes) {
  gwsim_device_status answer{};
  Usage usage = gpu.usage();
  answer.now_ns = sampler.now_ns();
  answer.busy_ns = static_cast<uint64_t>(usage.busy_ns);
  answer.sm_ns = usage.sm_ns;
  answer.dram_bytes = usage.dram_bytes;
  answer.host_to_device_bytes = gpu.to_device_bytes;
  answer.device_to_host_bytes = gpu.to_host_bytes;
  answer.used_bytes = gpu.used_bytes();
  answer.contexts = gpu.contexts();
  answer.processes = processes;
  answer.lost = gpu.lost;
  answer.last_xid = gpu.last_xid;
  answer.clock_event_reasons = gpu.clock_event_reasons;
  sampler.fill(gpu, answer);
  return answer;
}

/** Of each process with contexts on the device: those, of one partition. */
std::vector<std::vector<const Context *>> processes_on(const Node &node, const Gpu &gpu) {
  std::vector<std::vector<const Context *>> processes;
  for (const Client &client : node.clients) {
    std::map<const Partition *, std::vector<const Context *>> by_partition;
    for (const auto &[id, context] : client.contexts)
      if (context.gpu == &gpu) by_partition[context.partition].push_back(&context);
    for (auto &[partition, contexts] : by_partition) processes.push_back(std::move(contexts));
  }
  return processes;
}

Reply list(const std::vector<std::vector<const Context *>> &processes, uint32_t from) {
  gwsim_processes answer{};
  answer.total = static_cast<uint32_t>(processes.size());
  for (size_t i = from; i < processes.size() && answer.count < GWSIM_MAX_PROCESSES; i++)
    answer.processes[answer.count++] = describe_process(processes[i]);
  return reply_with(answer, offsetof(gwsim_processes, processes) + answer.count * sizeof(gwsim_process));
}

} // namespace

gwsim_process describe_process(const std::vector<const Context *> &contexts) {
  const Context &first = *contexts.front();
  gwsim_process process{};
  process.pid = first.client->pid;
  process.uid = first.client->uid;
  process.contexts = static_cast<uint32_t>(contexts.size());
  process.is_mps = first.was_mps;
  process.instance = first.instance;
  process.percent = first.percent;
  process.faulted = static_cast<uint32_t>(first.client->faulted);
  process.limit_bytes = first.limit_bytes;
  process.since_ns = first.since_ns;
  for (const Context *context : contexts) {
    process.used_bytes += context->own_bytes + context->allocated_bytes;
    process.launches += context->launches;
    process.blocks += context->blocks;
    process.busy_ns += static_cast<uint64_t>(context->usage.busy_ns);
    process.sm_ns += context->usage.sm_ns;
    process.dram_bytes += context->usage.dram_bytes;
  }
  return process;
}

Reply answer_inventory(Node &node, const Sampler &sampler, gwsim_operation operation, std::string_view body) {
  if (operation == GWSIM_MPS_CLIENTS) {
    MpsDaemon *daemon = node.find_mps(text_of(parse_body<gwsim_mps_target>(body).pipe_directory));
    if (daemon == nullptr) throw Refusal{GWSIM_NOT_FOUND};
    std::map<std::pair<const Client *, const Gpu *>, std::vector<const Context *>> processes;
    for (const Context *context : node.contexts_of(*daemon)) processes[{context->client, context->gpu}].push_back(context);
    std::vector<std::vector<const Context *>> rows;
    for (auto &[key, contexts] : processes) rows.push_back(contexts);
    return list(rows, 0);
  }
  auto target = parse_body<gwsim_target>(body);
  Gpu &gpu = node.gpu(target.device);
  switch (operation) {
  case GWSIM_DEVICE:
    return reply_with(gpu.describe());
  case GWSIM_STATUS:
    return reply_with(status_of(gpu, sampler, static_cast<uint32_t>(processes_on(node, gpu).size())));
  case GWSIM_PROCESSES:
    return list(processes_on(node, gpu), target.from);
  case GWSIM_SLICES: {
    gwsim_slices answer{};
    for (const Instance &instance : gpu.instances()) answer.slices[answer.count++] = gpu.describe(instance);
    return reply_with(answer);
  }
  case GWSIM_PROFILES:
    return reply_with(gpu.describe_profiles());
  case GWSIM_SET_MIG:
    gpu.set_mig(target.value != 0);
    node.events.add(gpu.index(), GWSIM_EVENT_MIG, 0, -1, 0);
    return {};
  case GWSIM_SET_COMPUTE_MODE:
    gpu.set_compute_mode(target.value);
    return {};
  case GWSIM_CREATE_INSTANCE: {
    Instance &made = gpu.create_instance(target.profile, target.value);
    node.events.add(gpu.index(), GWSIM_EVENT_MIG, 0, static_cast<int32_t>(made.id), 0);
    return reply_with(gpu.describe(made));
  }
  case GWSIM_DESTROY_INSTANCE:
    gpu.destroy_instance(target.instance);
    node.events.add(gpu.index(), GWSIM_EVENT_MIG, 0, static_cast<int32_t>(target.instance), 0);
    return {};
  case GWSIM_CREATE_COMPUTE:
    return reply_with(gpu.describe(gpu.create_compute(target.instance)));
  case GWSIM_DESTROY_COMPUTE:
    gpu.destroy_compute(target.instance);
    return {};
  default:
    throw Refusal{GWSIM_INVALID};
  }
}

} // namespace gpuwhisk::sim
