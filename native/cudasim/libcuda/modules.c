#include "fatbin.h"
#include "ptx.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_IMAGE_BYTES = 256 << 20 };

static bool is_module(CUmodule module) {
  uintptr_t first = (uintptr_t)gwsim_state->modules, at = (uintptr_t)module;
  return at >= first && at < first + sizeof gwsim_state->modules && (at - first) % sizeof *module == 0 &&
         module->kind == MODULE;
}

void unload_module(CUmodule module) {
  for (struct CUfunc_st *next, *function = module->functions; function != NULL; function = next) {
    next = function->next;
    function->kind = FREE_ROW;
    heap_give(function->name, strlen(function->name) + 1);
    heap_give(function, sizeof *function);
  }
  module->kind = FREE_ROW;
}

void unload_modules_of(struct CUctx_st *context) {
  for (int i = 0; i < MAX_MODULES; i++) {
    CUmodule module = &gwsim_state->modules[i];
    if (module->kind == MODULE && module->context == context) unload_module(module);
  }
}

static CUresult read_fatbin_text(const char *from, uint64_t length, CUmodule module) {
  char *text = length > MAX_IMAGE_BYTES ? NULL : malloc(length + 1);
  if (text == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
  memcpy(text, from, length);
  text[length] = '\0';
  CUresult result = read_ptx(text, module);
  free(text);
  return result;
}

static CUresult read_image(const void *image, CUmodule module) {
  uint64_t length;
  if (!is_machine_code(image)) return read_ptx(image, module);
  const char *text = text_in_fatbin(image, &length);
  if (text != NULL) return read_fatbin_text(text, length, module);
  module->opaque = true;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuModuleLoadData(CUmodule *made, const void *image) {
  struct CUctx_st *context;
  CUresult result = check_context(&context);
  if (result != CUDA_SUCCESS) return result;
  if (made == NULL || image == NULL) return CUDA_ERROR_INVALID_VALUE;
  lock_state();
  CUmodule module = NULL;
  for (int i = 0; i < MAX_MODULES && module == NULL; i++)
    if (gwsim_state->modules[i].kind == FREE_ROW) module = &gwsim_state->modules[i];
  if (module == NULL) {
    result = CUDA_ERROR_OUT_OF_MEMORY;
  } else {
    memset(module, 0, sizeof *module);
    module->kind = MODULE;
    module->context = context;
    result = read_image(image, module);
    if (result != CUDA_SUCCESS) unload_module(module);
  }
  unlock_state();
  if (result != CUDA_SUCCESS) return result;
  sleep_simulated_us(gwsim_state->node.module_us);
  *made = module;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int count, CUjit_option *options,
                                   void **values) {
  (void)count, (void)options, (void)values; // Nothing is compiled.
  return cuModuleLoadData(module, image);
}

EXPORT CUresult cuModuleLoadFatBinary(CUmodule *module, const void *image) { return cuModuleLoadData(module, image); }

EXPORT CUresult cuModuleLoad(CUmodule *module, const char *path) {
  struct CUctx_st *context;
  CUresult result = check_context(&context);
  if (result != CUDA_SUCCESS) return result;
  if (path == NULL) return CUDA_ERROR_INVALID_VALUE;
  FILE *file = fopen(path, "rbe");
  if (file == NULL) return CUDA_ERROR_FILE_NOT_FOUND;
  long length = fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
  char *image = length >= 0 && length <= MAX_IMAGE_BYTES ? malloc((size_t)length + 4) : NULL;
  result = CUDA_ERROR_INVALID_IMAGE;
  if (image != NULL && fseek(file, 0, SEEK_SET) == 0 && fread(image, 1, (size_t)length, file) == (size_t)length) {
    memset(image + length, 0, 4);
    result = cuModuleLoadData(module, image);
  }
  free(image);
  fclose(file);
  return result;
}

EXPORT CUresult cuModuleUnload(CUmodule module) {
  struct CUctx_st *context;
  CUresult result = check_context(&context);
  if (result != CUDA_SUCCESS) return result;
  if (!is_module(module)) return CUDA_ERROR_INVALID_HANDLE;
  result = wait_for_context(module->context);
  lock_state();
  unload_module(module);
  unlock_state();
  return result;
}

EXPORT CUresult cuModuleGetFunction(CUfunction *found, CUmodule module, const char *name) {
  struct CUctx_st *context;
  CUresult result = check_context(&context);
  if (result != CUDA_SUCCESS) return result;
  if (found == NULL || name == NULL) return CUDA_ERROR_INVALID_VALUE;
  if (!is_module(module)) return CUDA_ERROR_INVALID_HANDLE;
  lock_state();
  struct CUfunc_st *function = module->functions;
  while (function != NULL && strcmp(function->name, name) != 0) function = function->next;
  if (function == NULL && module->opaque) function = make_function(module, name, strlen(name));
  unlock_state();
  *found = function;
  return function == NULL ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
}

EXPORT CUresult cuModuleGetGlobal_v2(CUdeviceptr *pointer, size_t *bytes, CUmodule module, const char *name) {
  (void)pointer, (void)bytes, (void)module, (void)name;
  CUresult result = check_ready();
  return result == CUDA_SUCCESS ? CUDA_ERROR_NOT_FOUND : result; // The stand-in has no variables.
}

EXPORT CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function) {
  CUresult result = check_ready();
  if (result != CUDA_SUCCESS) return result;
  if (value == NULL || function == NULL || function->kind != FUNCTION) return CUDA_ERROR_INVALID_HANDLE;
  switch (attribute) {
  case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    *value = 1024;
    return CUDA_SUCCESS;
  case CU_FUNC_ATTRIBUTE_NUM_REGS:
    *value = 32;
    return CUDA_SUCCESS;
  default:
    *value = 0;
    return CUDA_SUCCESS;
  }
}

EXPORT CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  (void)attribute, (void)value;
  CUresult result = check_ready();
  if (result != CUDA_SUCCESS) return result;
  return function == NULL || function->kind != FUNCTION ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

EXPORT CUresult cuFuncSetCacheConfig(CUfunction function, CUfunc_cache config) {
  return cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_NUM_REGS, config);
}

EXPORT CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function, int block_size,
                                                            size_t shared) {
  (void)shared;
  CUresult result = check_ready();
  if (result != CUDA_SUCCESS) return result;
  if (blocks == NULL || function == NULL || function->kind != FUNCTION || block_size <= 0 || block_size > 1024)
    return CUDA_ERROR_INVALID_VALUE;
  *blocks = (int)function->blocks_per_sm;
  return CUDA_SUCCESS;
}
