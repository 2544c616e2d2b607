// y = 2 x + y on a GPU, or on the stand-in for one, for a vector of 1, 2, 3, …
#include "gpuwhisk_sim.h"

enum { COUNT = 1024, THREADS = 256 };

const char *gpuwhisk_main(const char *json) {
  static gpuwhisk_driver driver;
  static char answer[128];
  float host[COUNT], factor = 2;
  unsigned count = COUNT;
  unsigned long long x = 0, y = 0;
  void *arguments[] = {&count, &factor, &x, &y};
  (void)json;
  for (int i = 0; i < COUNT; i++) host[i] = (float)(i + 1);
  int result = driver.module != NULL ? 0 : gpuwhisk_driver_open(&driver, gpuwhisk_kernels);
  if (result == 0) result = driver.alloc(&x, sizeof host);
  if (result == 0) result = driver.alloc(&y, sizeof host);
  if (result == 0) result = driver.to_device(x, host, sizeof host);
  if (result == 0) result = driver.to_device(y, host, sizeof host);
  if (result == 0) result = gpuwhisk_launch(&driver, "saxpy", COUNT / THREADS, THREADS, arguments);
  if (result == 0) result = driver.to_host(host, y, sizeof host);
  if (x != 0) driver.free(x);
  if (y != 0) driver.free(y);
  snprintf(answer, sizeof answer, "{\"last\":%g,\"result\":%d}", host[COUNT - 1], result);
  return answer;
}
