#include "graph_rows.h"
#include "state.h"

#include <string.h>

struct CUgraphExec_st {
  struct CUgraph_st graph;
};

static bool is_of_kind(const struct CUgraph_st *graph, enum kind kind) {
  const char *at = (const char *)graph;
  return at >= heap_base() && at < heap_base() + HEAP_BYTES && graph->kind == kind;
}

// All arguments of a kernel in one piece, and their addresses.
static bool copy_params(struct CUgraphNode_st *copy, const struct CUgraphNode_st *from) {
  const struct CUfunc_st *function = from->function;
  copy->params = NULL;
  copy->param_data = NULL;
  if (function == NULL || function->param_count == 0) return true;
  copy->param_data = heap_take(function->param_bytes);
  copy->params = heap_take(function->param_count * sizeof *copy->params);
  if (copy->param_data == NULL || copy->params == NULL) return false;
  for (uint32_t i = 0; i < function->param_count; i++) {
    copy->params[i] = copy->param_data + function->params[i].offset;
    memcpy(copy->params[i], from->params[i], function->params[i].size);
  }
  return true;
}

static CUresult append(struct CUgraph_st *graph, const struct CUgraphNode_st *operation) {
  struct CUgraphNode_st *node = heap_take(sizeof *node);
  if (node == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
  *node = *operation;
  if (!copy_params(node, operation)) return CUDA_ERROR_OUT_OF_MEMORY;
  node->kind = NODE;
  node->next = NULL;
  if (graph->last == NULL) graph->first = node;
  else graph->last->next = node;
  graph->last = node;
  graph->count++;
  return CUDA_SUCCESS;
}

CUresult add_to_graph(struct CUgraph_st *graph, const struct CUgraphNode_st *operation) {
  lock_state();
  CUresult result = append(graph, operation);
  unlock_state();
  return result;
}

static void give_up(struct CUgraph_st *graph, size_t row_bytes) {
  for (struct CUgraphNode_st *next, *node = graph->first; node != NULL; node = next) {
    next = node->next;
    if (node->params != NULL) {
      heap_give(node->param_data, node->function->param_bytes);
      heap_give(node->params, node->function->param_count * sizeof *node->params);
    }
    node->kind = FREE_ROW;
    heap_give(node, sizeof *node);
  }
  graph->kind = FREE_ROW;
  heap_give(graph, row_bytes);
}

static void leave_capture(struct CUgraph_st *graph) {
  for (int i = 0; i < GWSIM_STREAMS; i++) {
    CUstream stream = &gwsim_state->streams[i];
    if (stream->capture != graph) continue;
    stream->capture = NULL;
    stream->is_origin = false;
  }
}

// Under the lock.
void end_capture_of(CUstream stream) {
  if (stream->capture == NULL) return;
  bool was_origin = stream->is_origin;
  struct CUgraph_st *graph = stream->capture;
  stream->capture = NULL;
  if (!was_origin) return;
  leave_capture(graph);
  give_up(graph, sizeof *graph);
}

static CUresult begin_capture(CUstream given, CUstreamCaptureMode mode, bool per_thread) {
  CUstream stream;
  CUresult result = resolve_stream(given, per_thread, &stream);
  if (result != CUDA_SUCCESS) return result;
  if (mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
  if (stream->order == GWSIM_LEGACY) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (stream->capture != NULL) return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  lock_state();
  struct CUgraph_st *graph = heap_take(sizeof *graph);
  if (graph != NULL) {
    graph->kind = GRAPH;
    stream->capture = graph;
    stream->is_origin = true;
  }
  unlock_state();
  return graph == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

EXPORT CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
  return begin_capture(stream, mode, false);
}
EXPORT CUresult cuStreamBeginCapture_v2_ptsz(CUstream stream, CUstreamCaptureMode mode) {
  return begin_capture(stream, mode, true);
}

static CUresult end_capture(CUstream given, CUgraph *graph, bool per_thread) {
  CUstream stream;
  CUresult result = resolve_stream(given, per_thread, &stream);
  if (result != CUDA_SUCCESS) return result;
  if (graph == NULL) return CUDA_ERROR_INVALID_VALUE;
  if (stream->capture == NULL || !stream->is_origin) return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  *graph = stream->capture;
  lock_state();
  leave_capture(*graph);
  unlock_state();
  return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph) { return end_capture(stream, graph, false); }
EXPORT CUresult cuStreamEndCapture_ptsz(CUstream stream, CUgraph *graph) { return end_capture(stream, graph, true); }

static CUresult is_capturing(CUstream given, CUstreamCaptureStatus *status, bool per_thread) {
  CUstream stream;
  CUresult result = resolve_stream(given, per_thread, &stream);
  if (result != CUDA_SUCCESS) return result;
  if (status == NULL) return CUDA_ERROR_INVALID_VALUE;
  *status = stream->capture == NULL ? CU_STREAM_CAPTURE_STATUS_NONE : CU_STREAM_CAPTURE_STATUS_ACTIVE;
  return stream->order == GWSIM_LEGACY ? check_not_capturing(stream->context) : CUDA_SUCCESS;
}

EXPORT CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status) {
  return is_capturing(stream, status, false);
}
EXPORT CUresult cuStreamIsCapturing_ptsz(CUstream stream, CUstreamCaptureStatus *status) {
  return is_capturing(stream, status, true);
}

static CUresult find(const struct CUgraph_st *graph, enum kind kind) {
  CUresult result = check_ready();
  if (result != CUDA_SUCCESS) return result;
  return is_of_kind(graph, kind) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count) {
  CUresult result = find(graph, GRAPH);
  if (result != CUDA_SUCCESS) return result;
  if (count == NULL) return CUDA_ERROR_INVALID_VALUE;
  size_t room = nodes == NULL ? 0 : *count, at = 0;
  for (struct CUgraphNode_st *node = graph->first; node != NULL && at < room; node = node->next) nodes[at++] = node;
  *count = nodes == NULL ? graph->count : at;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType *type) {
  CUresult result = check_ready();
  if (result != CUDA_SUCCESS) return result;
  if (node == NULL || node->kind != NODE || type == NULL) return CUDA_ERROR_INVALID_VALUE;
  *type = node->type == NODE_KERNEL ? CU_GRAPH_NODE_TYPE_KERNEL
          : node->type == NODE_FILL ? CU_GRAPH_NODE_TYPE_MEMSET
                                    : CU_GRAPH_NODE_TYPE_MEMCPY;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *params) {
  CUresult result = check_ready();
  if (result != CUDA_SUCCESS) return result;
  if (node == NULL || node->kind != NODE || node->type != NODE_KERNEL || params == NULL) return CUDA_ERROR_INVALID_VALUE;
  *params = (CUDA_KERNEL_NODE_PARAMS){
      .func = node->function,
      .gridDimX = node->grid[0],
      .gridDimY = node->grid[1],
      .gridDimZ = node->grid[2],
      .blockDimX = node->block[0],
      .blockDimY = node->block[1],
      .blockDimZ = node->block[2],
      .sharedMemBytes = node->shared,
      .kernelParams = node->params,
      .ctx = node->function->module->context,
  };
  return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphInstantiateWithFlags(CUgraphExec *made, CUgraph graph, unsigned long long flags) {
  (void)flags;
  CUresult result = find(graph, GRAPH);
  if (result != CUDA_SUCCESS) return result;
  if (made == NULL) return CUDA_ERROR_INVALID_VALUE;
  lock_state();
  CUgraphExec executable = heap_take(sizeof *executable);
  if (executable == NULL) result = CUDA_ERROR_OUT_OF_MEMORY;
  else executable->graph.kind = EXECUTABLE;
  for (const struct CUgraphNode_st *node = graph->first; node != NULL && result == CUDA_SUCCESS; node = node->next)
    result = append(&executable->graph, node);
  if (result != CUDA_SUCCESS && executable != NULL) give_up(&executable->graph, sizeof *executable);
  unlock_state();
  if (result == CUDA_SUCCESS) *made = executable;
  return result;
}

static CUresult launch_graph(CUgraphExec executable, CUstream given, bool per_thread) {
  uint64_t begin = clock_ns();
  CUstream stream;
  CUresult result = find((const struct CUgraph_st *)executable, EXECUTABLE);
  if (result == CUDA_SUCCESS) result = resolve_stream(given, per_thread, &stream);
  if (result != CUDA_SUCCESS) return result;
  if (stream->capture != NULL) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  for (const struct CUgraphNode_st *node = executable->graph.first; node != NULL && result == CUDA_SUCCESS;
       node = node->next) {
    struct CUgraphNode_st operation = *node;
    uint64_t sequence;
    result = carry_out(stream, &operation, &sequence);
  }
  // One launch for all of it.
  spin_until(begin + gwsim_state->node.launch_ns);
  return result;
}

EXPORT CUresult cuGraphLaunch(CUgraphExec executable, CUstream stream) { return launch_graph(executable, stream, false); }
EXPORT CUresult cuGraphLaunch_ptsz(CUgraphExec executable, CUstream stream) {
  return launch_graph(executable, stream, true);
}

EXPORT CUresult cuGraphExecDestroy(CUgraphExec executable) {
  CUresult result = find((const struct CUgraph_st *)executable, EXECUTABLE);
  if (result != CUDA_SUCCESS) return result;
  lock_state();
  give_up(&executable->graph, sizeof *executable);
  unlock_state();
  return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphDestroy(CUgraph graph) {
  CUresult result = find(graph, GRAPH);
  if (result != CUDA_SUCCESS) return result;
  lock_state();
  give_up(graph, sizeof *graph);
  unlock_state();
  return CUDA_SUCCESS;
}
