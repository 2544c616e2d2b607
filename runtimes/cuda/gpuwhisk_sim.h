// Workloads for native functions on a GPU, or on the stand-in for one: the example kernels, and models of the papers
// (gpuwhisk_models.h). Only this header is needed: the driver's library is loaded at run time. Functions return a CUresult,
// 0 for success.
//
//   static gpuwhisk_model model;
//   const char *gpuwhisk_main(const char *json) {
//     if (model.driver.module == 0 && gpuwhisk_model_open(&model, "resnet50") != 0) return "{\"error\":\"no model\"}";
//     gpuwhisk_model_infer(&model, 8);
//     ...
#ifndef GPUWHISK_SIM_H
#define GPUWHISK_SIM_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum {
  GPUWHISK_LAYERS = 20, // Kernels of an inference.
  GPUWHISK_A100_SMS = 108,
  GPUWHISK_BLOCKS_PER_SM = 8,
};

/** The driver's functions, and a module of kernels in the device's primary context. */
typedef struct {
  int (*alloc)(unsigned long long *, size_t);
  int (*free)(unsigned long long);
  int (*to_device)(unsigned long long, const void *, size_t);
  int (*to_host)(void *, unsigned long long, size_t);
  int (*get_function)(void **, void *, const char *);
  int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);
  int (*synchronize)(void);
  int (*unload)(void *);
  void *module;
} gpuwhisk_driver;

typedef struct {
  gpuwhisk_driver driver;
  void *layer, *training_layer;
  double fixed_ms, item_ms, weights_mib, item_mib, full_batch, dram, sensitivity, pressure;
  unsigned long long weights, room;
  size_t room_bytes;
} gpuwhisk_model;

static const char gpuwhisk_kernels[] =
#include "gpuwhisk_kernels.h"
    ;

/** Readies the driver on its first device and loads PTX text. 100: there is no driver. */
__attribute__((unused)) static int gpuwhisk_driver_open(gpuwhisk_driver *driver, const char *ptx) {
  int (*init)(unsigned), (*retain)(void **, int), (*set_current)(void *), (*load)(void **, const void *);
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL), *context = NULL;
  if (library == NULL) return 100;
  memset(driver, 0, sizeof *driver);
  const struct {
    void *into;
    const char *name;
  } entries[] = {
      {&init, "cuInit"},
      {&retain, "cuDevicePrimaryCtxRetain"},
      {&set_current, "cuCtxSetCurrent"},
      {&load, "cuModuleLoadData"},
      {&driver->alloc, "cuMemAlloc_v2"},
      {&driver->free, "cuMemFree_v2"},
      {&driver->to_device, "cuMemcpyHtoD_v2"},
      {&driver->to_host, "cuMemcpyDtoH_v2"},
      {&driver->get_function, "cuModuleGetFunction"},
      {&driver->launch, "cuLaunchKernel"},
      {&driver->synchronize, "cuCtxSynchronize"},
      {&driver->unload, "cuModuleUnload"},
  };
  for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
    void *found = dlsym(library, entries[i].name);
    if (found == NULL) return 500;
    memcpy(entries[i].into, &found, sizeof found);
  }
  int result = init(0);
  if (result == 0) result = retain(&context, 0);
  if (result == 0) result = set_current(context);
  if (result == 0) result = load(&driver->module, ptx);
  return result;
}

/** Launches a kernel of the module in the default stream; `arguments` are addresses of its arguments. */
__attribute__((unused)) static int gpuwhisk_launch(gpuwhisk_driver *driver, const char *name, unsigned blocks,
                                                   unsigned threads, void **arguments) {
  void *function;
  int result = driver->get_function(&function, driver->module, name);
  return result != 0 ? result : driver->launch(function, blocks, 1, 1, threads, 1, 1, 0, NULL, arguments, NULL);
}

static inline int gpuwhisk_find_model(gpuwhisk_model *model, const char *name) {
#define GPUWHISK_MODEL(row, fixed, item, weights_size, item_size, full, part, sensitive, presses)                     \
  if (strcmp(name, #row) == 0) {                                                                                      \
    model->fixed_ms = fixed, model->item_ms = item, model->weights_mib = weights_size;                                \
    model->item_mib = item_size, model->full_batch = full, model->dram = part;                                        \
    model->sensitivity = sensitive, model->pressure = presses;                                                        \
    return 1;                                                                                                         \
  }
#include "gpuwhisk_models.h"
#undef GPUWHISK_MODEL
  return 0;
}

/** Puts the text of an entry that takes the time it is told into `into`, and returns its length. */
static inline int gpuwhisk_layer_text(const gpuwhisk_model *model, const char *name, double sensitivity,
                                      double pressure, char *into, size_t size) {
  return snprintf(into, size,
                  "// gpuwhisk threads=256 blocksPerSm=%d nsPerBlock=1 dramBytesPerBlock=%.6f sensitivity=%g "
                  "pressure=%g scaledBy=0\n"
                  ".visible .entry %s(.param .u64 ns)\n{\n  .reg .pred %%p1;\n  .reg .b64 %%rd<5>;\n"
                  "  ld.param.u64 %%rd1, [ns];\n  mov.u64 %%rd2, %%globaltimer;\n  add.u64 %%rd3, %%rd2, %%rd1;\n"
                  "WAIT:\n  mov.u64 %%rd4, %%globaltimer;\n  setp.lt.u64 %%p1, %%rd4, %%rd3;\n  @%%p1 bra WAIT;\n"
                  "  ret;\n}\n",
                  GPUWHISK_BLOCKS_PER_SM, model->dram * 1555 / (GPUWHISK_A100_SMS * GPUWHISK_BLOCKS_PER_SM),
                  sensitivity, pressure, name);
}

/** Loads a model's weights. 500: there is no such model. 2: its memory does not fit. */
__attribute__((unused)) static int gpuwhisk_model_open(gpuwhisk_model *model, const char *name) {
  char ptx[2048] = ".version 7.0\n.target sm_70\n.address_size 64\n";
  memset(model, 0, sizeof *model);
  if (!gpuwhisk_find_model(model, name)) return 500;
  size_t length = strlen(ptx);
  length += (size_t)gpuwhisk_layer_text(model, "layer", 1, 1, ptx + length, sizeof ptx - length);
  gpuwhisk_layer_text(model, "training_layer", model->sensitivity, model->pressure, ptx + length, sizeof ptx - length);
  int result = gpuwhisk_driver_open(&model->driver, ptx);
  if (result == 0) result = model->driver.get_function(&model->layer, model->driver.module, "layer");
  if (result == 0) result = model->driver.get_function(&model->training_layer, model->driver.module, "training_layer");
  if (result == 0) result = model->driver.alloc(&model->weights, (size_t)(model->weights_mib * 1048576));
  return result;
}

static inline int gpuwhisk_make_room(gpuwhisk_model *model, size_t bytes) {
  if (model->room_bytes >= bytes) return 0;
  if (model->room != 0) model->driver.free(model->room);
  model->room = model->room_bytes = 0;
  int result = model->driver.alloc(&model->room, bytes);
  if (result == 0) model->room_bytes = bytes;
  return result;
}

static inline int gpuwhisk_model_run(gpuwhisk_model *model, void *layer, int batch, int times) {
  if (batch < 1) return 1;
  int result = gpuwhisk_make_room(model, (size_t)(batch * model->item_mib * times * 1048576));
  double part = batch / model->full_batch;
  int filled = (int)(GPUWHISK_A100_SMS * (part < 1 ? part : 1) + 0.5);
  unsigned blocks = (unsigned)(GPUWHISK_BLOCKS_PER_SM * (filled < 1 ? 1 : filled));
  uint64_t layer_ns = (uint64_t)((model->fixed_ms + model->item_ms * batch) * 1e6 / GPUWHISK_LAYERS);
  void *arguments[] = {&layer_ns};
  for (int i = 0; i < GPUWHISK_LAYERS * times && result == 0; i++)
    result = model->driver.launch(layer, blocks, 1, 1, 256, 1, 1, 0, NULL, arguments, NULL);
  return result != 0 ? result : model->driver.synchronize();
}

/** Runs an inference, to its end. */
__attribute__((unused)) static int gpuwhisk_model_infer(gpuwhisk_model *model, int batch) {
  return gpuwhisk_model_run(model, model->layer, batch, 1);
}

/** Runs a training step, forward and back: three times the time, and the memory, of an inference. */
__attribute__((unused)) static int gpuwhisk_model_train_step(gpuwhisk_model *model, int batch) {
  return gpuwhisk_model_run(model, model->training_layer, batch, 3);
}

/** Gives its memory back. */
__attribute__((unused)) static void gpuwhisk_model_close(gpuwhisk_model *model) {
  if (model->room != 0) model->driver.free(model->room);
  if (model->weights != 0) model->driver.free(model->weights);
  if (model->driver.module != NULL) model->driver.unload(model->driver.module);
  memset(model, 0, sizeof *model);
}

#endif
