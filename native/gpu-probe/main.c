// Makes a context on the first visible device as an ordinary process does, and prints the number of SMs that it may use.
// Only the driver's library is needed, which is opened at run time. Ends with 1 and the reason on standard error otherwise.
#define _GNU_SOURCE
#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static struct {
  __typeof__(&cuInit) init;
  __typeof__(&cuDeviceGet) device;
  __typeof__(&cuDevicePrimaryCtxRetain) retain;
  __typeof__(&cuDevicePrimaryCtxRelease) release;
  __typeof__(&cuDeviceGetAttribute) attribute;
} driver;

static int open_driver(void) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW);
  const struct {
    void *into;
    const char *name;
  } entries[] = {
      {&driver.init, "cuInit"},
      {&driver.device, "cuDeviceGet"},
      {&driver.retain, "cuDevicePrimaryCtxRetain"},
      {&driver.release, "cuDevicePrimaryCtxRelease_v2"},
      {&driver.attribute, "cuDeviceGetAttribute"},
  };
  for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
    void *found = library == NULL ? NULL : dlsym(library, entries[i].name);
    if (found == NULL) {
      fprintf(stderr, "there is no %s\n", library == NULL ? "libcuda.so.1" : entries[i].name);
      return 0;
    }
    memcpy(entries[i].into, &found, sizeof found);
  }
  return 1;
}

int main(void) {
  CUdevice device = 0;
  CUcontext context = NULL;
  int sms = 0;
  if (!open_driver()) return 1;
  const char *what = "cuInit";
  CUresult result = driver.init(0);
  if (result == CUDA_SUCCESS) what = "cuDeviceGet", result = driver.device(&device, 0);
  if (result == CUDA_SUCCESS) what = "cuDevicePrimaryCtxRetain", result = driver.retain(&context, device);
  // Of an MPS client with a context: the SMs of its percentage.
  if (result == CUDA_SUCCESS)
    what = "cuDeviceGetAttribute", result = driver.attribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
  if (context != NULL) driver.release(device);
  if (result != CUDA_SUCCESS) {
    fprintf(stderr, "%s failed with %d\n", what, (int)result);
    return 1;
  }
  printf("%d\n", sms);
  return 0;
}
