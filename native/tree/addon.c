// Walks over folders for Node.js, which itself has none by descriptors: in a thread of its pool.
#define _GNU_SOURCE
#include "walk.h"

#include <errno.h>
#include <limits.h>
#include <node_api.h>
#include <stdbool.h>
#include <stdlib.h>

struct request {
  struct tree_walk walk;
  char path[PATH_MAX];
  int error;
  napi_deferred deferred;
  napi_async_work work;
};

static void carry_out(napi_env env, void *data) {
  (void)env;
  struct request *request = data;
  request->error = walk_tree(&request->walk, request->path);
}

// Resolves with [errno, bytes, files].
static void finish(napi_env env, napi_status status, void *data) {
  struct request *request = data;
  int error = status == napi_ok ? request->error : ECANCELED;
  double values[] = {error, (double)request->walk.bytes, (double)request->walk.files};
  napi_value result, value;
  bool made = napi_create_array_with_length(env, 3, &result) == napi_ok;
  for (uint32_t i = 0; i < 3 && made; i++)
    made = napi_create_double(env, values[i], &value) == napi_ok && napi_set_element(env, result, i, value) == napi_ok;
  // Fails in an environment that ends, where the promise has no reader.
  if (made) napi_resolve_deferred(env, request->deferred, result);
  napi_delete_async_work(env, request->work);
  free(request);
}

static napi_value begin(napi_env env, napi_callback_info info, enum tree_task task) {
  napi_value words[2], promise, name;
  size_t count = 2, length;
  double number = 0;
  struct request *request = calloc(1, sizeof *request);
  if (request == NULL || napi_get_cb_info(env, info, &count, words, NULL, NULL) != napi_ok || count < 1 ||
      napi_get_value_string_utf8(env, words[0], request->path, sizeof request->path, &length) != napi_ok ||
      length + 1 == sizeof request->path || (count > 1 && napi_get_value_double(env, words[1], &number) != napi_ok)) {
    free(request);
    napi_throw_error(env, NULL, "A path, and a number for some tasks, were expected.");
    return NULL;
  }
  request->walk = (struct tree_walk){
      .task = task, .owner = task == TREE_OWN ? (uid_t)number : 0, .most_files = (uint64_t)number, .top = -1};
  if (napi_create_string_utf8(env, "gpuwhisk:tree", NAPI_AUTO_LENGTH, &name) != napi_ok ||
      napi_create_promise(env, &request->deferred, &promise) != napi_ok ||
      napi_create_async_work(env, NULL, name, carry_out, finish, request, &request->work) != napi_ok ||
      napi_queue_async_work(env, request->work) != napi_ok) {
    free(request);
    napi_throw_error(env, NULL, "No thread takes the work.");
    return NULL;
  }
  return promise;
}

static napi_value remove_tree(napi_env env, napi_callback_info info) { return begin(env, info, TREE_REMOVE); }
static napi_value measure_tree(napi_env env, napi_callback_info info) { return begin(env, info, TREE_MEASURE); }
static napi_value own_tree(napi_env env, napi_callback_info info) { return begin(env, info, TREE_OWN); }

static bool offer(napi_env env, napi_value exports, const char *name, napi_callback call) {
  napi_value function;
  return napi_create_function(env, name, NAPI_AUTO_LENGTH, call, NULL, &function) == napi_ok &&
         napi_set_named_property(env, exports, name, function) == napi_ok;
}

NAPI_MODULE_INIT() {
  bool offered = offer(env, exports, "remove", remove_tree) && offer(env, exports, "measure", measure_tree) &&
                 offer(env, exports, "own", own_tree);
  return offered ? exports : NULL;
}
