// Pipes for Node.js, whose own child processes get sockets in their place: a socket cannot be opened again by the path
// /dev/stdout, a pipe can.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <node_api.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

// make(): a pipe's two descriptors, [read, write], neither of which a child process inherits by itself. Throws if there is none.
static napi_value make(napi_env env, napi_callback_info info) {
  (void)info;
  int ends[2];
  napi_value pair, end;
  if (pipe2(ends, O_CLOEXEC) < 0) {
    napi_throw_error(env, NULL, strerror(errno));
    return NULL;
  }
  bool made = napi_create_array_with_length(env, 2, &pair) == napi_ok;
  for (uint32_t i = 0; i < 2 && made; i++) {
    made = napi_create_int32(env, ends[i], &end) == napi_ok && napi_set_element(env, pair, i, end) == napi_ok;
  }
  if (made) return pair;
  close(ends[0]);
  close(ends[1]);
  return NULL;
}

NAPI_MODULE_INIT() {
  napi_value function;
  if (napi_create_function(env, "make", NAPI_AUTO_LENGTH, make, NULL, &function) != napi_ok) return NULL;
  if (napi_set_named_property(env, exports, "make", function) != napi_ok) return NULL;
  return exports;
}
