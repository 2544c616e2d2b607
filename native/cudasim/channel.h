// The page that a CUDA client shares with the daemon: what it launches goes in through a ring, what is over comes out as
// numbers. Neither side waits for the other but on a full ring and for what is not over. Fields that both sides use are
// read and written with the __atomic built-ins; the daemon trusts none of them.
#ifndef GPUWHISK_CUDASIM_CHANNEL_H
#define GPUWHISK_CUDASIM_CHANNEL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
  GWSIM_STREAMS = 512,      // Of a process.
  GWSIM_EVENT_SLOTS = 8192, // Of a process.
  GWSIM_RING_ENTRIES = 4096,
};

enum gwsim_entry_type { GWSIM_KERNEL = 1, GWSIM_TO_DEVICE, GWSIM_TO_HOST, GWSIM_RECORD, GWSIM_WAIT };

enum {
  GWSIM_LEGACY = 1,    // In the default stream, which waits for the blocking ones, and they for it.
  GWSIM_BLOCKING = 2,
  GWSIM_UNCOUNTED = 4, // No launch in the accounts: a copy or a filling within the device.
  GWSIM_FAULTS = 8,    // The kernel ends in a fault.
};

struct gwsim_entry {
  uint32_t type, context, stream, flags;
  uint64_t sequence; // In its stream: 1, 2, …
  uint64_t stamp_ns; // CLOCK_MONOTONIC.
  union {
    struct {
      uint64_t blocks;
      double ns_per_block, dram_bytes_per_block;
      double sensitivity, pressure; // Factors on those of a kernel that fills as much.
      uint32_t blocks_per_sm;
    } kernel;
    uint64_t bytes; // Of a copy.
    struct {
      uint64_t generation;
      uint32_t slot;
    } event; // GWSIM_RECORD, GWSIM_WAIT
  };
};

struct gwsim_stream_state {
  uint64_t completed; // Sequence number; by the daemon.
  uint64_t awaited;   // A caller waits until `completed` is as great; by the client, and 0 by the daemon when it is.
  uint32_t wakes;     // Futex; grows when `completed` has reached `awaited`.
  uint32_t unused;
};

struct gwsim_event_state {
  uint64_t generation; // Last record of it that is over.
  uint64_t time_ns;    // When; of the simulated device.
};

struct gwsim_channel {
  uint32_t faulted;      // The CUresult that all calls answer; by the daemon.
  uint32_t asleep;       // The daemon looks into the ring only if it is told to (GWSIM_RING).
  uint32_t space_wanted; // The client waits for room in the ring.
  uint32_t space_wakes;  // Futex.
  uint64_t head;         // Entries that were put in; by the client.
  uint64_t tail;         // Entries that were taken out; by the daemon.
  struct gwsim_stream_state streams[GWSIM_STREAMS];
  struct gwsim_event_state events[GWSIM_EVENT_SLOTS];
  struct gwsim_entry ring[GWSIM_RING_ENTRIES];
};

#ifdef __cplusplus
}
#endif
#endif
