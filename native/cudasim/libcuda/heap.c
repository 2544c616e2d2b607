// Memory in the library's own mapping: lists of free pieces by powers of two.
#include "state.h"

#include <string.h>

enum { SMALLEST_BITS = 4, CLASSES = 32 };

static int class_of(size_t bytes) {
  int bits = SMALLEST_BITS;
  while (((size_t)1 << bits) < bytes) bits++;
  return bits;
}

void *heap_take(size_t bytes) {
  if (bytes > HEAP_BYTES) return NULL;
  int bits = class_of(bytes == 0 ? 1 : bytes);
  void **list = &gwsim_state->free_lists[bits];
  void *memory = *list;
  size_t size = (size_t)1 << bits;
  if (memory != NULL) {
    memcpy(list, memory, sizeof *list);
  } else {
    if (gwsim_state->heap_used + size > HEAP_BYTES) return NULL;
    memory = heap_base() + gwsim_state->heap_used;
    gwsim_state->heap_used += size;
  }
  memset(memory, 0, bytes);
  return memory;
}

void heap_give(void *memory, size_t bytes) {
  if (memory == NULL) return;
  void **list = &gwsim_state->free_lists[class_of(bytes == 0 ? 1 : bytes)];
  memcpy(memory, list, sizeof *list);
  *list = memory;
}
