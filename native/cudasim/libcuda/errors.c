#include "state.h"

static const struct {
  CUresult error;
  const char *name, *text;
} rows[] = {
#define ROW(error, text) {error, #error, text}
    ROW(CUDA_SUCCESS, "no error"),
    ROW(CUDA_ERROR_INVALID_VALUE, "invalid argument"),
    ROW(CUDA_ERROR_OUT_OF_MEMORY, "out of memory"),
    ROW(CUDA_ERROR_NOT_INITIALIZED, "initialization error"),
    ROW(CUDA_ERROR_DEINITIALIZED, "driver shutting down"),
    ROW(CUDA_ERROR_DEVICE_UNAVAILABLE, "CUDA-capable device(s) is/are busy or unavailable"),
    ROW(CUDA_ERROR_NO_DEVICE, "no CUDA-capable device is detected"),
    ROW(CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal"),
    ROW(CUDA_ERROR_INVALID_IMAGE, "device kernel image is invalid"),
    ROW(CUDA_ERROR_INVALID_CONTEXT, "invalid device context"),
    ROW(CUDA_ERROR_NO_BINARY_FOR_GPU, "no kernel image is available for execution on the device"),
    ROW(CUDA_ERROR_INVALID_PTX, "a PTX JIT compilation failed"),
    ROW(CUDA_ERROR_FILE_NOT_FOUND, "file not found"),
    ROW(CUDA_ERROR_INVALID_HANDLE, "invalid resource handle"),
    ROW(CUDA_ERROR_ILLEGAL_STATE, "the operation cannot be performed in the present state"),
    ROW(CUDA_ERROR_NOT_FOUND, "named symbol not found"),
    ROW(CUDA_ERROR_NOT_READY, "device not ready"),
    ROW(CUDA_ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered"),
    ROW(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "too many resources requested for launch"),
    ROW(CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE, "cannot set while device is active in this process"),
    ROW(CUDA_ERROR_CONTEXT_IS_DESTROYED, "context is destroyed"),
    ROW(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, "too many blocks in cooperative launch"),
    ROW(CUDA_ERROR_NOT_PERMITTED, "operation not permitted"),
    ROW(CUDA_ERROR_NOT_SUPPORTED, "operation not supported"),
    ROW(CUDA_ERROR_MPS_CONNECTION_FAILED, "MPS client failed to connect to the MPS control daemon or the MPS server"),
    ROW(CUDA_ERROR_MPS_RPC_FAILURE, "the remote procedural call between the MPS server and the MPS client failed"),
    ROW(CUDA_ERROR_MPS_SERVER_NOT_READY, "MPS server is not ready to accept new MPS client requests"),
    ROW(CUDA_ERROR_MPS_MAX_CLIENTS_REACHED, "the hardware resources required to create MPS client have been exhausted"),
    ROW(CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED,
        "the hardware resources required to support device connections have been exhausted"),
    ROW(CUDA_ERROR_MPS_CLIENT_TERMINATED, "the MPS client has been terminated by the server"),
    ROW(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "operation not permitted when stream is capturing"),
    ROW(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "operation failed due to a previous error during capture"),
    ROW(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, "capture was not ended in the same stream as it began"),
    ROW(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, "operation would make the legacy stream depend on a capturing blocking stream"),
    ROW(CUDA_ERROR_CAPTURED_EVENT, "operation not permitted on an event last recorded in a capturing stream"),
    ROW(CUDA_ERROR_INVALID_RESOURCE_TYPE, "invalid resource type"),
    ROW(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION, "invalid resource configuration"),
    ROW(CUDA_ERROR_UNKNOWN, "unknown error"),
};

static CUresult find(CUresult error, const char **answer, bool by_name) {
  if (answer == NULL) return CUDA_ERROR_INVALID_VALUE;
  *answer = NULL;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (rows[i].error == error) *answer = by_name ? rows[i].name : rows[i].text;
  return *answer == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

EXPORT CUresult cuGetErrorName(CUresult error, const char **text) { return find(error, text, true); }
EXPORT CUresult cuGetErrorString(CUresult error, const char **text) { return find(error, text, false); }
