// The marks of launch cycles for runtimes whose language reaches C through an interface of its own: each loads this library,
// which is in its process already, once more as an extension.
#include "tokens.h"

#include <node_api.h>

EXPORT void gpuwhisk_tokens_cycle_begin(uint32_t batch);
EXPORT void gpuwhisk_tokens_cycle_end(void);

// Java: the native methods of runtimes/java's LaunchCycles.Marked, by JNI's names. Of the environment and the object
// nothing is needed, so that the JDK's headers are not.
EXPORT void Java_gpuwhisk_LaunchCycles_00024Marked_begin(void *environment, void *object, int32_t batch) {
  (void)environment, (void)object;
  gpuwhisk_tokens_cycle_begin((uint32_t)batch);
}

EXPORT void Java_gpuwhisk_LaunchCycles_00024Marked_end(void *environment, void *object) {
  (void)environment, (void)object;
  gpuwhisk_tokens_cycle_end();
}

// Node.js: `begin(batch)` and `end()`, for process.dlopen. Weak, since no other program has these functions.
#pragma weak napi_create_function
#pragma weak napi_set_named_property
#pragma weak napi_throw_error
#pragma weak napi_get_cb_info
#pragma weak napi_get_value_uint32

static napi_value begin(napi_env env, napi_callback_info info) {
  napi_value argument = NULL;
  size_t count = 1;
  uint32_t batch = 1;
  if (napi_get_cb_info(env, info, &count, &argument, NULL, NULL) != napi_ok || count < 1 ||
      napi_get_value_uint32(env, argument, &batch) != napi_ok)
    batch = 1;
  gpuwhisk_tokens_cycle_begin(batch);
  return NULL;
}

static napi_value end(napi_env env, napi_callback_info info) {
  (void)env, (void)info;
  gpuwhisk_tokens_cycle_end();
  return NULL;
}

static int add(napi_env env, napi_value exports, const char *name, napi_callback callback) {
  napi_value function = NULL;
  return napi_create_function(env, name, NAPI_AUTO_LENGTH, callback, NULL, &function) == napi_ok &&
         napi_set_named_property(env, exports, name, function) == napi_ok;
}

EXPORT napi_value napi_register_module_v1(napi_env env, napi_value exports) {
  if (add(env, exports, "begin", begin) && add(env, exports, "end", end)) return exports;
  napi_throw_error(env, NULL, "its functions cannot be made");
  return NULL;
}
