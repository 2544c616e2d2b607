// What the stand-in's libraries and its daemon say to each other. One SOCK_SEQPACKET connection a client; a request is one
// datagram, a header and a body, and has one answer with the same id. SO_PEERCRED tells the daemon who asks. Launches do
// not travel here but through the client's channel (channel.h).
#ifndef GPUWHISK_CUDASIM_WIRE_H
#define GPUWHISK_CUDASIM_WIRE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GWSIM_VERSION 1
/** Where clients find the daemon: the path of its socket. */
#define GWSIM_SOCKET_VARIABLE "GPUWHISK_SIM_SOCKET"
/** A file in the pipe directory of a running MPS control daemon; a client that does not see it there is none of MPS. */
#define GWSIM_MPS_MARK "control"
#define GWSIM_DRIVER_VERSION "580.65.06-simulated"
#define GWSIM_CUDA_VERSION 13000

enum {
  GWSIM_MAX_DEVICES = 16,
  GWSIM_MAX_SLICES = 8,      // Of a device.
  GWSIM_MAX_PROFILES = 8,
  GWSIM_MAX_PLACEMENTS = 8,
  GWSIM_MAX_PROCESSES = 256, // In one answer.
  GWSIM_MAX_EVENTS = 64,     // In one answer; as many are kept.
  GWSIM_UUID_LENGTH = 48,
  GWSIM_PATH_LENGTH = 108,
};

enum gwsim_operation {
  GWSIM_HELLO = 1,           // gwsim_hello → gwsim_node; first on every connection. With a channel's descriptor for CUDA.
  // Looking (anybody).
  GWSIM_DEVICE,              // gwsim_target → gwsim_device
  GWSIM_STATUS,              // gwsim_target → gwsim_device_status
  GWSIM_PROCESSES,           // gwsim_target → gwsim_processes
  GWSIM_SLICES,              // gwsim_target → gwsim_slices
  GWSIM_PROFILES,            // gwsim_target → gwsim_profiles
  GWSIM_EVENTS,              // gwsim_events_request → gwsim_events; answered when there is one, or at the time limit
  GWSIM_MPS_CLIENTS,         // gwsim_mps_target → gwsim_processes
  // Changing: for the daemon's own user and for root.
  GWSIM_SET_MIG,             // gwsim_target, value: 0 or 1
  GWSIM_SET_COMPUTE_MODE,    // gwsim_target, value: enum gwsim_compute_mode
  GWSIM_CREATE_INSTANCE,     // gwsim_target, profile, value: start slot or -1 → gwsim_slice, without a compute instance
  GWSIM_DESTROY_INSTANCE,    // gwsim_target, instance
  GWSIM_CREATE_COMPUTE,      // gwsim_target, instance → gwsim_slice; one compute instance, over all of it
  GWSIM_DESTROY_COMPUTE,     // gwsim_target, instance
  GWSIM_MPS_START,           // gwsim_mps_start; the connection is the MPS daemon: with it ends the registration
  GWSIM_MPS_SET,             // gwsim_mps_set; on the connection of GWSIM_MPS_START
  GWSIM_MPS_TERMINATE,       // gwsim_mps_target, pid: its calls answer 810 from then on
  GWSIM_FAULT,               // gwsim_fault
  // CUDA: answered with a CUresult.
  GWSIM_CONTEXT_CREATE,      // gwsim_context_request → gwsim_context; the answer takes as long as making a context
  GWSIM_CONTEXT_DESTROY,     // gwsim_context
  GWSIM_ALLOCATE,            // gwsim_memory
  GWSIM_FREE,                // gwsim_memory
  GWSIM_MEMORY_INFO,         // gwsim_context → gwsim_memory_info
  GWSIM_ADVANCE,             // nothing; what is over by now is in the channel when the answer comes
  GWSIM_RING,                // nothing, and no answer: look into the channel
  GWSIM_IPC_PUBLISH,         // gwsim_ipc and the memory's file → gwsim_ipc with the key
  GWSIM_IPC_OPEN,            // gwsim_ipc, key → gwsim_ipc and the file
  GWSIM_IPC_WITHDRAW,        // gwsim_ipc, key
  GWSIM_CHECKPOINT,          // gwsim_checkpoint and a pidfd of the process → gwsim_checkpoint_state; passed on to its restorer
  GWSIM_CHECKPOINT_DONE,     // gwsim_checkpoint_state, by a restorer, without an answer: a command is carried out
};

/** Status of an answer to all but the CUDA operations. */
enum gwsim_status {
  GWSIM_OK = 0,
  GWSIM_INVALID,             // No such device, profile, value.
  GWSIM_NOT_FOUND,
  GWSIM_IN_USE,              // Processes use it.
  GWSIM_INSUFFICIENT,        // No room for the instance, too many of something.
  GWSIM_NOT_SUPPORTED,       // By this model.
  GWSIM_LOST,                // The device fell off the bus.
  GWSIM_NO_PERMISSION,
  GWSIM_DISCONNECTED,        // Never sent: the daemon is gone.
};

struct gwsim_header {
  uint32_t operation;        // In an answer: the request's.
  uint32_t id;
  int32_t status;            // Of an answer.
  uint32_t length;           // Of the body, bytes.
};

/** A restorer is the thread of a CUDA process that carries out GWSIM_CHECKPOINT. */
enum gwsim_role { GWSIM_MONITOR = 0, GWSIM_CUDA = 1, GWSIM_RESTORER = 2 };

struct gwsim_hello {
  uint32_t version, role;
};

struct gwsim_node {
  uint32_t device_count;
  uint32_t launch_ns;        // What a launch takes of the caller's time.
  uint32_t module_us;        // Loading a module.
  uint32_t first_launch_us;  // The first launch of each function.
  double time_scale;         // Seconds of the simulated devices in one of the wall.
  uint64_t start_ns;         // CLOCK_MONOTONIC at the daemon's start.
};

struct gwsim_target {
  uint32_t device;           // Index.
  uint32_t profile;          // As nvidia-smi numbers them.
  uint32_t instance;         // Id of a GPU instance.
  int32_t value;
  uint32_t from;             // GWSIM_PROCESSES: leave out as many.
};

enum gwsim_compute_mode { GWSIM_DEFAULT_MODE = 0, GWSIM_PROHIBITED = 2, GWSIM_EXCLUSIVE_PROCESS = 3 }; // As in NVML.

struct gwsim_device {
  char uuid[GWSIM_UUID_LENGTH]; // GPU-…
  char name[64];             // The vendor's, with "(simulated)".
  char type[16];             // a100-40
  char bus_id[32];
  uint32_t index, sm_count;
  uint32_t major, minor;     // Compute capability.
  uint64_t memory_bytes, l2_bytes;
  double bandwidth;          // Of its memory, bytes/s.
  double pcie_bandwidth;     // Each way, bytes/s.
  uint32_t sm_clock_mhz, memory_clock_mhz, idle_w, power_limit_w;
  uint32_t mig_capable, mig_enabled, mig_resets; // Whether a change of the mode resets the device (Ampere).
  uint32_t has_gpm;          // Hopper and later.
  uint32_t compute_mode, lost;
};

/** Counters grow from the daemon's start; times are of the simulated device, ns. */
struct gwsim_device_status {
  uint64_t now_ns;
  uint64_t busy_ns;          // Some kernel ran.
  double sm_ns;              // SMs in use, times ns.
  double dram_bytes, host_to_device_bytes, device_to_host_bytes;
  uint64_t used_bytes;       // With contexts.
  uint32_t contexts, processes;
  uint32_t temperature_c, power_mw, sm_clock_mhz, memory_clock_mhz;
  uint32_t utilisation_percent;        // Of the last second.
  uint32_t memory_utilisation_percent;
  uint64_t clock_event_reasons;        // nvmlClocksEventReason… bits.
  uint32_t lost, last_xid;
};

struct gwsim_process {
  int32_t pid;               // As the daemon's PID namespace has it.
  uint32_t contexts, is_mps;
  int32_t instance;          // Id of its GPU instance, or -1.
  uint32_t percent;          // Active thread percentage.
  uint32_t faulted;          // The CUresult that all its calls answer, or 0.
  uint32_t uid;
  uint64_t used_bytes;       // With its contexts.
  uint64_t limit_bytes;      // Of pinned memory under MPS, or 0.
  uint64_t busy_ns, launches, blocks;
  double sm_ns, dram_bytes;
  uint64_t since_ns;         // CLOCK_MONOTONIC of its first context.
};

struct gwsim_processes {
  uint32_t count, total;
  struct gwsim_process processes[GWSIM_MAX_PROCESSES];
};

struct gwsim_slice {
  char uuid[GWSIM_UUID_LENGTH]; // MIG-…; empty without a compute instance.
  char profile[24];          // 3g.20gb
  uint32_t instance, profile_id, start_slot, slots, compute_slices, sm_count, has_compute;
  uint64_t memory_bytes, used_bytes;
  uint64_t busy_ns;
  double sm_ns, dram_bytes;
};

struct gwsim_slices {
  uint32_t count;
  struct gwsim_slice slices[GWSIM_MAX_SLICES];
};

struct gwsim_profile {
  char name[24];
  uint32_t id, slots, compute_slices, sm_count, media_extensions;
  uint32_t maximum;          // Instances of it on an empty device.
  uint32_t remaining;        // That the free slots still take; 0 while MIG is off.
  uint32_t start_count, starts[GWSIM_MAX_PLACEMENTS];
  uint64_t memory_bytes;
};

struct gwsim_profiles {
  uint32_t count;
  struct gwsim_profile profiles[GWSIM_MAX_PROFILES];
};

enum gwsim_event_type { GWSIM_EVENT_XID = 1, GWSIM_EVENT_ECC = 2, GWSIM_EVENT_MIG = 3 };

struct gwsim_event {
  uint64_t number;           // 1, 2, …
  uint64_t time_ns;          // CLOCK_MONOTONIC.
  uint32_t device, type;
  uint64_t data;             // The Xid.
  int32_t instance;          // Or -1.
  int32_t pid;               // Or 0.
};

struct gwsim_events_request {
  uint64_t after;            // Only events with a greater number; ~0: from now on.
  uint32_t timeout_ms, devices; // Bits of the devices that are watched.
};

struct gwsim_events {
  uint64_t last;             // Number of the last event that there is.
  uint32_t count;
  struct gwsim_event events[GWSIM_MAX_EVENTS];
};

struct gwsim_mps_start {
  char pipe_directory[GWSIM_PATH_LENGTH];
  uint32_t devices;          // Bits, by index; exactly one where `instance` is given.
  int32_t instance;          // Id of a GPU instance, or -1.
  uint32_t multi_user;       // 1: its server is for all users; 0: for one at a time.
};

/** What an MPS server holds the clients to that connect from now on. */
struct gwsim_mps_set {
  uint32_t percent;          // 1–100; 0: nothing is set, only asked.
  uint32_t of_server;        // 1: of the server, which is started if none runs; 0: of the next one that starts.
  uint64_t limit_bytes[GWSIM_MAX_DEVICES]; // Pinned memory; 0: none.
};

struct gwsim_mps_settings {
  uint32_t has_server;       // A server runs: the first client or a command has started it.
  struct gwsim_mps_set next, server;
};

struct gwsim_mps_target {
  char pipe_directory[GWSIM_PATH_LENGTH];
  int32_t pid;
};

enum gwsim_fault_kind {
  GWSIM_FAULT_CLIENT = 1,    // As of a bad access of `pid`, or of the running client: 700 for all that share its MPS server.
  GWSIM_FAULT_XID,           // Only the event.
  GWSIM_FAULT_LOST,          // The device falls off the bus.
  GWSIM_FAULT_ECC,
  GWSIM_FAULT_RECOVER,       // A lost device is back, empty.
  GWSIM_FAULT_CLOCKS,        // `xid` are the reasons from now on; the SM clock halves while any is set.
  GWSIM_FAULT_LEAK,          // The driver holds `xid` MiB more for `pid`, as long as its context lives.
};

struct gwsim_fault {
  uint32_t device, kind;
  uint64_t xid;
  int32_t pid;
};

struct gwsim_context_request {
  uint32_t device;
  int32_t instance;          // Id of a GPU instance, or -1.
  char pipe_directory[GWSIM_PATH_LENGTH]; // Empty: no MPS daemon was seen there.
  uint32_t percent;          // That the client asks for, 1–100; 0: none.
  uint64_t limit_bytes;      // Of pinned memory that it asks for; 0: none.
  uint32_t parent, sms;      // A green context: of this one, with at most as many SMs; 0: none.
};

struct gwsim_context {
  uint32_t id;
  uint32_t sm_count;         // That its kernels may take.
  uint32_t is_mps;
  uint64_t memory_bytes;     // Of the device or instance.
};

struct gwsim_memory {
  uint32_t context;
  uint64_t bytes;
};

struct gwsim_ipc {
  uint32_t context;
  uint64_t key, bytes;
};

enum gwsim_checkpoint_command { GWSIM_GET_STATE = 0, GWSIM_LOCK, GWSIM_SAVE, GWSIM_RESTORE, GWSIM_UNLOCK };

struct gwsim_checkpoint {
  uint32_t command;
  uint32_t timeout_ms;       // Of GWSIM_LOCK; 0: none.
};

struct gwsim_checkpoint_state {
  uint32_t state;            // A CUprocessState.
  int32_t thread;            // Id of the restorer, in its own PID namespace.
};

struct gwsim_memory_info {
  uint64_t free_bytes, total_bytes;
};

#ifdef __cplusplus
}
#endif
#endif
