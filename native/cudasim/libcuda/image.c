// What a checkpoint holds: a copy of all that the library keeps, in private memory of the process. A process whose memory is
// put back to an earlier checkpoint has that one's copy, and a restore gives the device's state as of then.
#define _GNU_SOURCE
#include "devices.h"
#include "state.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define STATE_FROM offsetof(struct state, pid) /* The lock and the checkpoint's state are the restorer's. */
#define NUMBERS_FROM offsetof(struct gwsim_channel, streams)
#define NUMBERS_BYTES (offsetof(struct gwsim_channel, ring) - NUMBERS_FROM)

struct image {
  size_t bytes;
  struct state state;
  char numbers[NUMBERS_BYTES]; // Of the channel: what of each stream is over.
};

/** The copy; behind it, in whole pages, the heap and each block. */
static struct image *image;

static uint64_t whole(uint64_t bytes) { return (bytes + page_bytes() - 1) / page_bytes() * page_bytes(); }

// Pages that were never written are not in memory, and stay so.
static bool copy_pages(char *to, const char *from, uint64_t bytes) {
  static unsigned char present[16384];
  uint64_t page = page_bytes(), step = sizeof present * page;
  for (uint64_t at = 0; at < bytes; at += step) {
    uint64_t part = bytes - at < step ? bytes - at : step;
    if (mincore((void *)(from + at), part, present) < 0) return false;
    for (uint64_t i = 0; i * page < part; i++)
      if ((present[i] & 1) != 0) memcpy(to + at + i * page, from + at + i * page, page);
  }
  return true;
}

static bool is_zero(const char *page, uint64_t bytes) {
  return page[0] == 0 && memcmp(page, page + 1, bytes - 1) == 0;
}

static void copy_written_pages(char *to, const char *from, uint64_t bytes) {
  uint64_t page = page_bytes();
  for (uint64_t at = 0; at < bytes; at += page)
    if (!is_zero(from + at, page)) memcpy(to + at, from + at, page);
}

// As of NVIDIA's driver 570: neither managed memory nor memory of other processes. Here mapped physical memory, too, has
// files behind it that a copy would not keep.
static bool can_be_saved(void) {
  for (uint32_t i = 0; i < gwsim_state->block_count; i++) {
    const struct block *block = &gwsim_state->blocks[i];
    if (block->kind != PLAIN_BLOCK || block->exported != 0) return false;
  }
  return true;
}

static struct image *make_image(void) {
  size_t bytes = whole(sizeof(struct image)) + whole(gwsim_state->heap_used);
  for (uint32_t i = 0; i < gwsim_state->block_count; i++) bytes += whole(gwsim_state->blocks[i].bytes);
  struct image *made = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (made == MAP_FAILED) return NULL;
  made->bytes = bytes;
  memcpy((char *)&made->state + STATE_FROM, (char *)gwsim_state + STATE_FROM, sizeof made->state - STATE_FROM);
  memcpy(made->numbers, (char *)gwsim_state->channel + NUMBERS_FROM, NUMBERS_BYTES);
  char *next = (char *)made + whole(sizeof *made);
  bool copied = copy_pages(next, heap_base(), whole(gwsim_state->heap_used));
  next += whole(gwsim_state->heap_used);
  for (uint32_t i = 0; copied && i < gwsim_state->block_count; i++) {
    const struct block *block = &gwsim_state->blocks[i];
    copied = copy_pages(next, device_memory() + block->offset, whole(block->bytes));
    next += whole(block->bytes);
  }
  if (copied) return made;
  munmap(made, bytes);
  return NULL;
}

static void give_up_device(void) {
  for (int i = 0; i < MAX_CONTEXTS; i++) {
    struct gwsim_context request = {.id = gwsim_state->contexts[i].id};
    if (gwsim_state->contexts[i].kind == CONTEXT) call_daemon(GWSIM_CONTEXT_DESTROY, &request, sizeof request, NULL, 0);
  }
  gwsim_close(&gwsim_state->connection);
}

CUresult save_image(void) {
  if (!can_be_saved()) return CUDA_ERROR_NOT_SUPPORTED;
  image = make_image();
  if (image == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
  give_up_device();
  size_t page = sizeof *gwsim_state->channel;
  // A call that waits looks there until it sees that the process is locked.
  void *blank = mmap(gwsim_state->channel, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  bool cleared = madvise(heap_base(), HEAP_BYTES + DEVICE_WINDOW, MADV_REMOVE) == 0;
  return blank != MAP_FAILED && cleared ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN;
}

/** The daemon's ids of the contexts, as they are made again. */
struct remade {
  struct gwsim_connection connection;
  uint32_t ids[MAX_CONTEXTS];
};

static CUresult call_as(struct remade *remade, enum gwsim_operation operation, const void *body, size_t length,
                        void *answer, size_t answer_size) {
  int gone = 0;
  int status = gwsim_call(&remade->connection, operation, body, length, answer, answer_size, &gone);
  return gone ? CUDA_ERROR_DEVICE_UNAVAILABLE : (CUresult)status;
}

static CUresult remake_context(struct remade *remade, int index) {
  const struct CUctx_st *context = &image->state.contexts[index];
  const struct device *device = &image->state.devices[context->device];
  struct gwsim_context_request request = {.device = device->facts.index, .instance = device->instance};
  if (context->parent != NULL) {
    request.parent = remade->ids[context->parent - gwsim_state->contexts];
    request.sms = context->sm_count;
  }
  struct gwsim_context answer;
  CUresult result = call_as(remade, GWSIM_CONTEXT_CREATE, &request, sizeof request, &answer, sizeof answer);
  if (result == CUDA_SUCCESS) remade->ids[index] = answer.id;
  return result;
}

static CUresult remake_all(struct remade *remade) {
  CUresult result = CUDA_SUCCESS;
  for (int green = 0; green < 2; green++)
    for (int i = 0; i < MAX_CONTEXTS && result == CUDA_SUCCESS; i++) {
      const struct CUctx_st *context = &image->state.contexts[i];
      if (context->kind == CONTEXT && (context->parent != NULL) == green) result = remake_context(remade, i);
    }
  for (uint32_t i = 0; i < image->state.block_count && result == CUDA_SUCCESS; i++) {
    const struct block *block = &image->state.blocks[i];
    struct gwsim_memory request = {remade->ids[block->context - gwsim_state->contexts], block->bytes};
    result = call_as(remade, GWSIM_ALLOCATE, &request, sizeof request, NULL, 0);
  }
  return result;
}

static void put_back(const struct remade *remade) {
  memcpy((char *)gwsim_state + STATE_FROM, (char *)&image->state + STATE_FROM, sizeof image->state - STATE_FROM);
  gwsim_state->connection = remade->connection;
  for (int i = 0; i < MAX_CONTEXTS; i++) gwsim_state->contexts[i].id = remade->ids[i];
  memcpy((char *)gwsim_state->channel + NUMBERS_FROM, image->numbers, NUMBERS_BYTES);
  const char *next = (const char *)image + whole(sizeof *image);
  copy_written_pages(heap_base(), next, whole(gwsim_state->heap_used));
  next += whole(gwsim_state->heap_used);
  for (uint32_t i = 0; i < gwsim_state->block_count; i++) {
    const struct block *block = &gwsim_state->blocks[i];
    copy_written_pages(device_memory() + block->offset, next, whole(block->bytes));
    next += whole(block->bytes);
  }
}

CUresult restore_image(void) {
  if (image == NULL) return CUDA_ERROR_UNKNOWN;
  struct remade remade = {.connection.descriptor = -1};
  struct gwsim_node node;
  int channel = -1;
  if (gwsim_connect(&remade.connection, GWSIM_CUDA, &node, &channel) != GWSIM_OK || channel < 0)
    return CUDA_ERROR_DEVICE_UNAVAILABLE;
  CUresult result = remake_all(&remade);
  if (result == CUDA_SUCCESS) {
    void *place = image->state.channel;
    void *page = mmap(place, sizeof(struct gwsim_channel), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, channel, 0);
    if (page == MAP_FAILED) result = CUDA_ERROR_UNKNOWN;
    else put_back(&remade);
  }
  close(channel);
  if (result != CUDA_SUCCESS) {
    gwsim_close(&remade.connection);
    return result;
  }
  munmap(image, image->bytes);
  image = NULL;
  return CUDA_SUCCESS;
}
