// Space of files that is allocated ahead of their end, which Node.js has no call for.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <node_api.h>
#include <stdint.h>
#include <stdlib.h>

struct request {
  napi_async_work work;
  napi_deferred deferred;
  int descriptor;
  int64_t length;
  int error;
};

static void execute(napi_env env, void *data) {
  (void)env;
  struct request *request = data;
  do {
    request->error = fallocate(request->descriptor, FALLOC_FL_KEEP_SIZE, 0, request->length) < 0 ? errno : 0;
  } while (request->error == EINTR);
}

static void complete(napi_env env, napi_status status, void *data) {
  struct request *request = data;
  napi_value error;
  // A request that was cancelled allocated nothing.
  int number = status == napi_ok ? request->error : ECANCELED;
  if (napi_create_int32(env, number, &error) == napi_ok) napi_resolve_deferred(env, request->deferred, error);
  napi_delete_async_work(env, request->work);
  free(request);
}

// allocate(descriptor, length): allocates the file's first `length` bytes on the disk and leaves its size. Resolves with 0, or
// with the number of the error.
static napi_value allocate(napi_env env, napi_callback_info info) {
  size_t count = 2;
  napi_value arguments[2], promise, name;
  struct request *request = calloc(1, sizeof *request);
  if (request == NULL) {
    napi_throw_error(env, NULL, "out of memory");
    return NULL;
  }
  if (napi_get_cb_info(env, info, &count, arguments, NULL, NULL) != napi_ok || count != 2 ||
      napi_get_value_int32(env, arguments[0], &request->descriptor) != napi_ok ||
      napi_get_value_int64(env, arguments[1], &request->length) != napi_ok) {
    free(request);
    napi_throw_type_error(env, NULL, "allocate takes a descriptor and a length");
    return NULL;
  }
  if (napi_create_string_utf8(env, "allocate", NAPI_AUTO_LENGTH, &name) != napi_ok ||
      napi_create_async_work(env, NULL, name, execute, complete, request, &request->work) != napi_ok) {
    free(request);
    napi_throw_error(env, NULL, "a request to allocate space could not be made");
    return NULL;
  }
  if (napi_create_promise(env, &request->deferred, &promise) != napi_ok ||
      napi_queue_async_work(env, request->work) != napi_ok) {
    napi_delete_async_work(env, request->work);
    free(request);
    napi_throw_error(env, NULL, "a request to allocate space could not be queued");
    return NULL;
  }
  return promise;
}

NAPI_MODULE_INIT() {
  napi_value function;
  if (napi_create_function(env, "allocate", NAPI_AUTO_LENGTH, allocate, NULL, &function) != napi_ok) return NULL;
  if (napi_set_named_property(env, exports, "allocate", function) != napi_ok) return NULL;
  return exports;
}
