// Which streams record a graph. While none does, a launch need not ask.
#include "tokens.h"

int captures_active;

#define LEGACY_STREAM ((CUstream)1)

typedef CUresult is_capturing_function(CUstream stream, int *status);

bool is_capturing(CUstream stream, bool per_thread) {
  bool is_legacy = stream == LEGACY_STREAM || (stream == NULL && !per_thread);
  if (is_legacy) return false; // It never is, and asking it while others are is an error.
  static is_capturing_function *plain, *of_thread;
  is_capturing_function **known = per_thread ? &of_thread : &plain;
  is_capturing_function *ask = LOAD(*known);
  if (ask == NULL) {
    if (per_thread) ask = driver_function("cuStreamIsCapturing_ptsz");
    if (ask == NULL) ask = driver_function("cuStreamIsCapturing");
    if (ask == NULL) return false;
    STORE(*known, ask);
  }
  int status = CAPTURE_NONE;
  return ask(stream, &status) == CUDA_SUCCESS && status != CAPTURE_NONE;
}

/** Counted before it begins: launches of other threads ask from then on. */
#define BEGIN(symbol, ...)                                                                                             \
  do {                                                                                                                 \
    __typeof__(&(symbol)) real = hook_real(HOOK_##symbol);                                                             \
    if (real == NULL) return CUDA_ERROR_NOT_FOUND;                                                                     \
    __atomic_fetch_add(&captures_active, 1, __ATOMIC_SEQ_CST);                                                         \
    CUresult result = real(__VA_ARGS__);                                                                               \
    if (result != CUDA_SUCCESS) __atomic_fetch_sub(&captures_active, 1, __ATOMIC_SEQ_CST);                             \
    return result;                                                                                                     \
  } while (0)

#define BEGIN_V1(symbol)                                                                                               \
  EXPORT CUresult symbol(CUstream stream) { BEGIN(symbol, stream); }
#define BEGIN_V2(symbol)                                                                                               \
  EXPORT CUresult symbol(CUstream stream, int mode) { BEGIN(symbol, stream, mode); }
#define BEGIN_TO_GRAPH(symbol)                                                                                         \
  EXPORT CUresult symbol(CUstream stream, CUgraph graph, const CUgraphNode *nodes, const void *edges, size_t count,    \
                         int mode) {                                                                                   \
    BEGIN(symbol, stream, graph, nodes, edges, count, mode);                                                           \
  }
BEGIN_V1(cuStreamBeginCapture)
BEGIN_V1(cuStreamBeginCapture_ptsz)
BEGIN_V2(cuStreamBeginCapture_v2)
BEGIN_V2(cuStreamBeginCapture_v2_ptsz)
BEGIN_TO_GRAPH(cuStreamBeginCaptureToGraph)
BEGIN_TO_GRAPH(cuStreamBeginCaptureToGraph_ptsz)

enum { ERROR_ILLEGAL_STATE = 401, ERROR_WRONG_THREAD = 908 }; // nothing was ended

static void ended(CUresult result) {
  if (result == CUDA_ERROR_INVALID_VALUE || result == ERROR_ILLEGAL_STATE || result == ERROR_WRONG_THREAD) return;
  int active = LOAD(captures_active);
  while (active > 0 && !__atomic_compare_exchange_n(&captures_active, &active, active - 1, false, __ATOMIC_SEQ_CST,
                                                    __ATOMIC_RELAXED))
    continue;
}

#define END(symbol)                                                                                                    \
  EXPORT CUresult symbol(CUstream stream, CUgraph *graph) {                                                            \
    __typeof__(&(symbol)) real = hook_real(HOOK_##symbol);                                                             \
    if (real == NULL) return CUDA_ERROR_NOT_FOUND;                                                                     \
    CUresult result = real(stream, graph);                                                                             \
    ended(result);                                                                                                     \
    return result;                                                                                                     \
  }
END(cuStreamEndCapture)
END(cuStreamEndCapture_ptsz)

#define PRICED(symbol, graph, ...)                                                                                     \
  do {                                                                                                                 \
    __typeof__(&(symbol)) real = hook_real(HOOK_##symbol);                                                             \
    if (real == NULL) return CUDA_ERROR_NOT_FOUND;                                                                     \
    CUresult result = real(__VA_ARGS__);                                                                               \
    if (result == CUDA_SUCCESS) price_graph(*exec, graph);                                                             \
    return result;                                                                                                     \
  } while (0)

#define INSTANTIATE_LOGGED(symbol)                                                                                     \
  EXPORT CUresult symbol(CUgraphExec *exec, CUgraph graph, CUgraphNode *node, char *log, size_t log_bytes) {           \
    PRICED(symbol, graph, exec, graph, node, log, log_bytes);                                                          \
  }
INSTANTIATE_LOGGED(cuGraphInstantiate)
INSTANTIATE_LOGGED(cuGraphInstantiate_v2)

EXPORT CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags) {
  PRICED(cuGraphInstantiateWithFlags, graph, exec, graph, flags);
}

#define INSTANTIATE_WITH(symbol)                                                                                       \
  EXPORT CUresult symbol(CUgraphExec *exec, CUgraph graph, void *parameters) {                                         \
    PRICED(symbol, graph, exec, graph, parameters);                                                                    \
  }
INSTANTIATE_WITH(cuGraphInstantiateWithParams)
INSTANTIATE_WITH(cuGraphInstantiateWithParams_ptsz)

EXPORT CUresult cuGraphExecUpdate(CUgraphExec updated, CUgraph graph, CUgraphNode *node, int *outcome) {
  CUgraphExec *exec = &updated;
  PRICED(cuGraphExecUpdate, graph, updated, graph, node, outcome);
}

EXPORT CUresult cuGraphExecUpdate_v2(CUgraphExec updated, CUgraph graph, void *outcome) {
  CUgraphExec *exec = &updated;
  PRICED(cuGraphExecUpdate_v2, graph, updated, graph, outcome);
}

EXPORT CUresult cuGraphExecDestroy(CUgraphExec exec) {
  __typeof__(&cuGraphExecDestroy) real = hook_real(HOOK_cuGraphExecDestroy);
  if (real == NULL) return CUDA_ERROR_NOT_FOUND;
  forget_price(exec);
  return real(exec);
}
