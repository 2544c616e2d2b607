// What the library keeps. All of it lies in one shared mapping of a memory file named gpuwhisk-cudasim: a process whose
// memory is rolled back around a function leaves such mappings out, as it does those of a real driver. The shared object
// itself has one pointer to it. Handles are addresses of rows in it.
#ifndef GPUWHISK_CUDASIM_STATE_H
#define GPUWHISK_CUDASIM_STATE_H

#include "../channel.h"
#include "../connection.h"
#include "../include/cuda.h"

#include <stdbool.h>

#define EXPORT __attribute__((visibility("default")))

enum {
  MAX_CONTEXTS = 64,
  MAX_MODULES = 1024,
  MAX_BLOCKS = 65536,
  MAX_GRAPHS = 1024,
  MAX_MAPPINGS = 16384,
  THREAD_STREAMS = 64, // Of a context: default streams of its threads.
};

/** Where device memory seems to lie: no host mapping is there. */
#define DEVICE_BASE 0x600000000000ULL
#define DEVICE_WINDOW (512ULL << 30)
#define HEAP_BYTES (512ULL << 20)
/** Written as `kind` of rows in use, so that a handle of another kind is found out. */
enum kind { FREE_ROW = 0, CONTEXT = 0x43545854, MODULE = 0x4d4f4455, FUNCTION, STREAM, EVENT, GRAPH, EXECUTABLE, NODE };

struct device {
  struct gwsim_device facts;
  int32_t instance; // Id of the GPU instance that is seen, or -1.
  char uuid[GWSIM_UUID_LENGTH];
  uint32_t sm_count;
  uint64_t memory_bytes;
};

struct CUctx_st {
  enum kind kind;
  uint32_t id; // The daemon's.
  CUdevice device;
  unsigned flags, uses; // How often a primary one is retained.
  bool primary;
  struct CUctx_st *parent; // Of a green one: the primary one.
  uint32_t sm_count;
  CUstream legacy;
  struct {
    int thread;
    CUstream stream;
  } thread_streams[THREAD_STREAMS];
};

struct CUstream_st {
  enum kind kind;
  struct CUctx_st *context;
  uint32_t slot;
  uint32_t order; // GWSIM_LEGACY, GWSIM_BLOCKING or 0.
  uint64_t submitted;
  struct CUgraph_st *capture;
  bool is_origin;
};

struct CUevent_st {
  enum kind kind;
  uint32_t slot;
  unsigned flags;
  uint64_t generation; // Grows over all events that have had this slot.
  uint64_t recorded;   // Generation of this event's last record; 0: none.
  uint32_t stream;     // Of the last record.
  uint64_t sequence;
  struct CUgraph_st *capture;
};

enum { MAX_PARAMS = 64 };

struct CUfunc_st {
  enum kind kind;
  struct CUmod_st *module;
  struct CUfunc_st *next;
  char *name;
  uint32_t param_count;
  struct {
    uint32_t offset, size;
  } params[MAX_PARAMS];
  uint32_t param_bytes;
  // As declared (ptx.h).
  uint32_t threads, blocks_per_sm;
  double ns_per_block, dram_bytes_per_block, sensitivity, pressure;
  int scaled_by; // Index of the parameter that costs are multiplied by, or -1.
  int cpu;       // Of cpu_kernels.h, or -1.
  bool declared, launched, faults;
};

struct CUmod_st {
  enum kind kind;
  struct CUctx_st *context;
  struct CUfunc_st *functions;
  bool opaque; // Machine code: any name is taken for a function of it.
};

enum block_kind {
  PLAIN_BLOCK,
  MANAGED_BLOCK,  // The host has it mapped at the same address.
  PHYSICAL_BLOCK, // Has no address until it is mapped into a reserved one.
  RESERVED_BLOCK, // Addresses without memory.
  IMPORTED_BLOCK, // Another process's.
};

/** A piece of device memory, or of its addresses. */
struct block {
  uint64_t offset, bytes;
  struct CUctx_st *context;
  enum block_kind kind;
  uint32_t mappings; // Of a physical one.
  bool released;     // A physical one's handle is.
  uint64_t exported; // Key by which other processes may open it, or 0.
  bool kept;         // It was there at the mark.
};

/** Physical memory at a part of a reserved block. Free where `bytes` is 0. */
struct mapping {
  uint64_t offset, bytes, physical;
  bool accessible;
};

/** What reset.c goes back to. */
struct mark {
  bool is_set;
  bool contexts[MAX_CONTEXTS], modules[MAX_MODULES], streams[GWSIM_STREAMS], events[GWSIM_EVENT_SLOTS];
  unsigned uses[MAX_CONTEXTS];
  uint32_t blocks;
  uint64_t heap_used;
};

struct state {
  uint32_t lock; // Id of the thread that has it, or 0.
  /** A CUprocessState, and a futex: all calls wait while it is not 0. This and the lock are of no checkpoint. */
  uint32_t checkpoint;
  int pid;
  struct gwsim_connection connection;
  struct gwsim_node node;
  struct gwsim_channel *channel;
  bool gone;     // The daemon is.
  bool warned;   // Of a kernel without a declared cost.
  int device_count;
  struct device devices[GWSIM_MAX_DEVICES];
  struct CUctx_st contexts[MAX_CONTEXTS];
  struct CUmod_st modules[MAX_MODULES];
  struct CUstream_st streams[GWSIM_STREAMS];
  struct CUevent_st events[GWSIM_EVENT_SLOTS];
  uint32_t block_count;
  struct block blocks[MAX_BLOCKS]; // By offset.
  struct mapping mappings[MAX_MAPPINGS];
  void *free_lists[32];            // Of heap.c.
  uint64_t heap_used;
  struct mark mark;
};

/** The one pointer; NULL before cuInit. */
extern struct state *gwsim_state;
/** Begins of the heap and of device memory as this process has them mapped. */
char *heap_base(void);
char *device_memory(void);

/** What every call begins with: whether the library is ready, and the context's fault. */
CUresult check_ready(void);
/** And that a context is current, which is stored. */
CUresult check_context(struct CUctx_st **context);

/** The lock over all tables. A thread that was ended, or rolled back, while it had it does not keep it. */
void lock_state(void);
void unlock_state(void);
/** False if another thread still has the lock at that time (CLOCK_MONOTONIC). */
bool lock_state_until(uint64_t deadline_ns);

/** A request to the daemon, under the lock. Returns a CUresult. */
CUresult call_daemon(enum gwsim_operation operation, const void *body, size_t length, void *answer, size_t answer_size);

/** The same, with a file's descriptor: passed on if it is not -1, and then what came with the answer, or -1. */
CUresult call_daemon_with(enum gwsim_operation operation, const void *body, size_t length, void *answer,
                          size_t answer_size, int *file);

bool is_stream(CUstream stream);
bool is_event(CUevent event);
bool is_context(CUcontext context);

/** Memory in the mapping, zeroed; NULL if there is none left. Under the lock. */
void *heap_take(size_t bytes);
void heap_give(void *memory, size_t bytes);

/** CLOCK_MONOTONIC, ns. */
uint64_t clock_ns(void);
/** Lets time of the simulated device go by. */
void sleep_simulated_us(uint32_t microseconds);
int thread_id(void);

// contexts.c
CUresult create_context(CUcontext *made, CUdevice device, unsigned flags, uint32_t affinity_sms, bool primary);
/** One that takes `sms` of another's SMs at most, and has its memory. Under the lock. */
CUresult create_green_context(CUcontext *made, CUcontext parent, uint32_t sms);
/** Under the lock. */
void destroy_context(struct CUctx_st *context);
void forget_stream(CUstream stream);

// streams.c
/** The stream that a call means, in the current context. `per_thread`: what 0 stands for. Takes the lock if need be. */
CUresult resolve_stream(CUstream given, bool per_thread, CUstream *stream);
CUstream make_stream(struct CUctx_st *context, uint32_t order);
/** Puts an operation into a stream; `*sequence` is its number there. Takes the lock. Waits for room in the ring. */
CUresult submit(CUstream stream, struct gwsim_entry *entry, uint64_t *sequence);
/** Until an operation of a stream is over. */
CUresult wait_for(uint32_t slot, uint64_t sequence);
/** The same, but no longer than until then (CLOCK_MONOTONIC): CUDA_ERROR_NOT_READY. */
CUresult wait_until(uint32_t slot, uint64_t sequence, uint64_t deadline_ns);
/** CUDA_ERROR_NOT_READY while it is not. */
CUresult query(uint32_t slot, uint64_t sequence);
CUresult wait_for_context(struct CUctx_st *context);
/** 906 where a stream of the context is being captured that the default stream waits for. */
CUresult check_not_capturing(struct CUctx_st *context);

/** Whose memory it is that a context allocates: of a green one, its device's primary context. */
struct CUctx_st *memory_owner(struct CUctx_st *context);

// blocks.c; all under the lock.
/** The block that has all of these addresses, or NULL. */
struct block *block_with(CUdeviceptr pointer, uint64_t bytes);
/** Addresses for a block, the first that are free; NULL: there are none. */
struct block *add_block(uint64_t bytes, uint64_t alignment, struct CUctx_st *context, enum block_kind kind);
void remove_block(struct block *block);
/** Gives a block and its memory back. */
CUresult free_block(struct block *block);
void free_blocks_of(struct CUctx_st *context);

// memory.c
/** Where device memory lies in this process, if all of it is one allocation's; NULL otherwise. */
void *host_address(CUdeviceptr pointer, uint64_t bytes);
/** An allocation of a kind in a context: charged to it, and laid out. */
CUresult allocate(CUdeviceptr *pointer, uint64_t bytes, uint64_t alignment, struct CUctx_st *context, enum block_kind kind);
/** Frees at once what cuMemAlloc or cuMemAllocManaged made. */
CUresult give_back(CUdeviceptr pointer);
CUresult charge(struct CUctx_st *context, uint64_t bytes);
CUresult discharge(struct CUctx_st *context, uint64_t bytes);

// backing.c: what lies behind a range of device memory, in whole pages.
uint64_t page_bytes(void);
/** Puts a file of its own behind a range, with what it holds. `*file`, if asked for, is the caller's to close. */
bool back_anew(uint64_t offset, uint64_t bytes, int *file);
/** Puts zeros behind a range. */
bool back_empty(uint64_t offset, uint64_t bytes);
/** Shows the memory of a range in another place as well. */
bool show_at(uint64_t offset, uint64_t bytes, void *place);
bool back_with(uint64_t offset, uint64_t bytes, int file);

// ipc.c
/** Others can open it no longer. Under the lock. */
void withdraw(struct block *block);

// virtual.c; under the lock.
/** Whether reserved addresses have memory that may be used. */
bool is_mapped(uint64_t offset, uint64_t bytes);
void unmap_all(struct block *block);

// modules.c
void unload_modules_of(struct CUctx_st *context);
/** Under the lock. */
void unload_module(CUmodule module);

// graphs.c
enum node_type { NODE_KERNEL, NODE_TO_DEVICE, NODE_TO_HOST, NODE_WITHIN, NODE_FILL };
/** An operation as it is launched, and as a graph keeps it. */
struct CUgraphNode_st {
  enum kind kind;
  enum node_type type;
  struct CUgraphNode_st *next;
  struct gwsim_entry entry;
  CUfunction function;
  unsigned grid[3], block[3], shared;
  void **params; // Addresses of copies of the arguments, on the heap.
  char *param_data;
  CUdeviceptr to_device, from_device;
  void *to_host;
  const void *from_host;
  uint64_t bytes;
  uint32_t value, width;
};
/** Carries out an operation, or adds it to the graph that its stream is captured into. `*sequence` as submit(), or 0. */
CUresult carry_out(CUstream stream, struct CUgraphNode_st *operation, uint64_t *sequence);
/** What an operation does to memory. False: an address is none of its device's. */
bool check_effect(const struct CUgraphNode_st *operation);
void apply_effect(const struct CUgraphNode_st *operation);
void end_capture_of(CUstream stream);

// image.c: the checkpoint of a process, in memory of its own.
/** Copies what the library keeps into private memory, and gives up contexts, device memory and the connection. */
CUresult save_image(void);
/** The way back, as of the last image that the process's memory has; CUDA_ERROR_UNKNOWN: half done. */
CUresult restore_image(void);

// restorer.c
/** Starts the thread that carries out checkpoints for other processes; without one they answer 3 (not initialized). */
void start_restorer(void);
/** Waits while the process is locked, unless the caller is that thread. */
void wait_for_unlock(void);

// launch.c
void spin_until(uint64_t until_ns);
void warn_once(const struct CUfunc_st *function);

#endif
