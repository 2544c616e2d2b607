// What a launched operation does: now, or as a part of the graph that its stream is captured into.
#include "cpu_kernels.h"
#include "graph_rows.h"
#include "state.h"

#include <string.h>

static uint64_t threads_of(const struct CUgraphNode_st *operation) {
  const unsigned *grid = operation->grid, *block = operation->block;
  return (uint64_t)grid[0] * grid[1] * grid[2] * block[0] * block[1] * block[2];
}

static bool effect(const struct CUgraphNode_st *operation, bool run) {
  const struct CUfunc_st *function = operation->function;
  char *to = NULL;
  const char *from = NULL;
  switch (operation->type) {
  case NODE_KERNEL:
    return function->cpu < 0 ||
           cpu_kernel(function->cpu, operation->function, threads_of(operation), operation->params, run);
  case NODE_TO_HOST:
    to = operation->to_host;
    from = host_address(operation->from_device, operation->bytes);
    break;
  case NODE_TO_DEVICE:
    to = host_address(operation->to_device, operation->bytes);
    from = operation->from_host;
    break;
  case NODE_WITHIN:
    to = host_address(operation->to_device, operation->bytes);
    from = host_address(operation->from_device, operation->bytes);
    break;
  case NODE_FILL:
    to = host_address(operation->to_device, operation->bytes);
    if (to == NULL || !run) return to != NULL;
    if (operation->width == 1) memset(to, (int)operation->value, operation->bytes);
    else
      for (uint64_t at = 0; at < operation->bytes; at += operation->width)
        memcpy(to + at, &operation->value, operation->width);
    return true;
  }
  if (to == NULL || from == NULL) return false;
  if (run) memmove(to, from, operation->bytes);
  return true;
}

bool check_effect(const struct CUgraphNode_st *operation) { return effect(operation, false); }
void apply_effect(const struct CUgraphNode_st *operation) { effect(operation, true); }

CUresult carry_out(CUstream stream, struct CUgraphNode_st *operation, uint64_t *sequence) {
  *sequence = 0;
  if (stream->capture != NULL) return add_to_graph(stream->capture, operation);
  if (stream->order == GWSIM_LEGACY) {
    CUresult result = check_not_capturing(stream->context);
    if (result != CUDA_SUCCESS) return result;
  }
  // A kernel that reaches beyond its memory is found out when it has run.
  bool sound = check_effect(operation);
  if (!sound) operation->entry.flags |= GWSIM_FAULTS;
  CUresult result = submit(stream, &operation->entry, sequence);
  if (result == CUDA_SUCCESS && sound) apply_effect(operation);
  return result;
}
