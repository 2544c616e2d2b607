// Streams, events and graphs: the driver's own, under other names.
#include "runtime.h"

EXPORT cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned int flags, int priority) {
  return CALL(cuStreamCreateWithPriority, stream, flags, priority);
}

EXPORT cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags) {
  return cudaStreamCreateWithPriority(stream, flags, 0);
}

EXPORT cudaError_t cudaStreamCreate(cudaStream_t *stream) { return cudaStreamCreateWithPriority(stream, 0, 0); }

EXPORT cudaError_t cudaStreamDestroy(cudaStream_t stream) { return CALL(cuStreamDestroy_v2, stream); }

#define OF_STREAM(name, call, parameters, ...)                                                                        \
  static cudaError_t name##_in parameters { return CALL_IN(per_thread, call, __VA_ARGS__); }

OF_STREAM(cudaStreamSynchronize, cuStreamSynchronize, (int per_thread, cudaStream_t stream), stream)
IN_BOTH(cudaStreamSynchronize, (cudaStream_t stream), _ptsz, stream)

OF_STREAM(cudaStreamQuery, cuStreamQuery, (int per_thread, cudaStream_t stream), stream)
IN_BOTH(cudaStreamQuery, (cudaStream_t stream), _ptsz, stream)

OF_STREAM(cudaStreamWaitEvent, cuStreamWaitEvent,
          (int per_thread, cudaStream_t stream, cudaEvent_t event, unsigned int flags), stream, event, flags)
IN_BOTH(cudaStreamWaitEvent, (cudaStream_t stream, cudaEvent_t event, unsigned int flags), _ptsz, stream, event, flags)

OF_STREAM(cudaStreamIsCapturing, cuStreamIsCapturing, (int per_thread, cudaStream_t stream, int *status), stream,
          (CUstreamCaptureStatus *)status)
IN_BOTH(cudaStreamIsCapturing, (cudaStream_t stream, int *status), _ptsz, stream, status)

OF_STREAM(cudaStreamBeginCapture, cuStreamBeginCapture_v2, (int per_thread, cudaStream_t stream, int mode), stream,
          (CUstreamCaptureMode)mode)
IN_BOTH(cudaStreamBeginCapture, (cudaStream_t stream, int mode), _ptsz, stream, mode)

OF_STREAM(cudaStreamEndCapture, cuStreamEndCapture, (int per_thread, cudaStream_t stream, cudaGraph_t *graph), stream,
          graph)
IN_BOTH(cudaStreamEndCapture, (cudaStream_t stream, cudaGraph_t *graph), _ptsz, stream, graph)

OF_STREAM(cudaEventRecord, cuEventRecord, (int per_thread, cudaEvent_t event, cudaStream_t stream), event, stream)
IN_BOTH(cudaEventRecord, (cudaEvent_t event, cudaStream_t stream), _ptsz, event, stream)

OF_STREAM(cudaGraphLaunch, cuGraphLaunch, (int per_thread, cudaGraphExec_t executable, cudaStream_t stream), executable,
          stream)
IN_BOTH(cudaGraphLaunch, (cudaGraphExec_t executable, cudaStream_t stream), _ptsz, executable, stream)

EXPORT cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags) {
  return CALL(cuEventCreate, event, flags);
}

EXPORT cudaError_t cudaEventCreate(cudaEvent_t *event) { return cudaEventCreateWithFlags(event, 0); }

EXPORT cudaError_t cudaEventQuery(cudaEvent_t event) { return CALL(cuEventQuery, event); }

EXPORT cudaError_t cudaEventSynchronize(cudaEvent_t event) { return CALL(cuEventSynchronize, event); }

EXPORT cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end) {
  return CALL(cuEventElapsedTime_v2, ms, start, end);
}

EXPORT cudaError_t cudaEventDestroy(cudaEvent_t event) { return CALL(cuEventDestroy_v2, event); }

EXPORT cudaError_t cudaGraphInstantiate(cudaGraphExec_t *executable, cudaGraph_t graph, unsigned long long flags) {
  return CALL(cuGraphInstantiateWithFlags, executable, graph, flags);
}

EXPORT cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) { return CALL(cuGraphExecDestroy, executable); }

EXPORT cudaError_t cudaGraphDestroy(cudaGraph_t graph) { return CALL(cuGraphDestroy, graph); }
