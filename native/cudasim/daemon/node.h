// All that the daemon knows of its node: devices, MPS daemons, clients, what happened.
#ifndef GPUWHISK_CUDASIM_NODE_H
#define GPUWHISK_CUDASIM_NODE_H

#include "../wire.h"
#include "channel_owner.h"
#include "events.h"
#include "gpu.h"
#include "options.h"

#include <list>
#include <map>
#include <memory>
#include <vector>

namespace gpuwhisk::sim {

struct Client;

/** A running MPS control daemon and its server. */
struct MpsDaemon {
  std::string pipe_directory;
  uint32_t devices = 0; // Bits, by index.
  int32_t instance = -1;
  bool multi_user = false;
  /** What the next server starts with, and what the one that runs holds its clients to. */
  gwsim_mps_settings settings{0, {100, 0, {}}, {100, 0, {}}};

  /** Idempotent. */
  void start_server() {
    if (settings.has_server == 0) settings.server = settings.next;
    settings.has_server = 1;
  }
  /** A client's fault has hit all of them: no client is accepted until they are gone. */
  bool faulted = false;
};

/** A process's use of the memory and SMs of one partition. */
struct Context {
  uint32_t id = 0;
  Client *client = nullptr;
  Gpu *gpu = nullptr;
  int32_t instance = -1;
  Partition *partition = nullptr;
  MpsDaemon *mps = nullptr;
  bool was_mps = false;
  bool green = false; // A part of another one's SMs.
  uint32_t percent = 100, sm_limit = 0;
  uint64_t own_bytes = 0, allocated_bytes = 0;
  uint64_t limit_bytes = 0; // Of allocated_bytes; 0: none.
  uint64_t since_ns = 0;    // CLOCK_MONOTONIC.
  uint64_t launches = 0, blocks = 0;
  Usage usage;
};

/** What is connected: a monitor, an MPS daemon, or a process that uses CUDA. */
struct Client {
  int32_t pid = 0;
  uint32_t uid = 0;
  std::unique_ptr<Channel> channel; // Of a process that uses CUDA.
  uint32_t last_context = 0;
  std::map<uint32_t, Context> contexts;
  MpsDaemon *mps = nullptr; // That this connection is.
  int32_t faulted = 0;      // The CUresult that all its calls answer.
};

struct Node {
  explicit Node(const Options &options);

  const Options &options;
  std::vector<std::unique_ptr<Gpu>> gpus;
  std::list<MpsDaemon> mps;
  std::list<Client> clients;
  EventLog events;

  /** Throws Refusal. */
  Gpu &gpu(uint32_t index);
  MpsDaemon *find_mps(std::string_view pipe_directory);
  std::vector<Context *> contexts_of(const MpsDaemon &daemon);
};

/** CLOCK_MONOTONIC, ns. */
uint64_t monotonic_ns();

} // namespace gpuwhisk::sim

#endif
