#include "cpu_kernels.h"

#include <string.h>

// Each looks up all its memory first; NULL is an illegal address.
typedef bool kernel_function(uint64_t threads, void *const *params, bool run);

static uint64_t word(const void *param) {
  uint64_t value;
  memcpy(&value, param, sizeof value);
  return value;
}

static uint32_t half(const void *param) {
  uint32_t value;
  memcpy(&value, param, sizeof value);
  return value;
}

static float *floats(const void *param, uint64_t count) { return host_address(word(param), count * sizeof(float)); }

static uint64_t least(uint64_t one, uint64_t other) { return one < other ? one : other; }

// (a, b, c, n): c = a + b
static bool vecadd(uint64_t threads, void *const *params, bool run) {
  uint64_t n = least(half(params[3]), threads);
  if (n == 0) return true;
  const float *a = floats(params[0], n), *b = floats(params[1], n);
  float *c = floats(params[2], n);
  if (a == NULL || b == NULL || c == NULL) return false;
  for (uint64_t i = 0; run && i < n; i++) c[i] = a[i] + b[i];
  return true;
}

// (n, alpha, x, y): y = alpha x + y
static bool saxpy(uint64_t threads, void *const *params, bool run) {
  uint64_t n = least(half(params[0]), threads);
  if (n == 0) return true;
  float alpha;
  memcpy(&alpha, params[1], sizeof alpha);
  const float *x = floats(params[2], n);
  float *y = floats(params[3], n);
  if (x == NULL || y == NULL) return false;
  for (uint64_t i = 0; run && i < n; i++) y[i] = alpha * x[i] + y[i];
  return true;
}

// (a, b, c, n): c = a b, square, a thread for each element, row by row
static bool matmul(uint64_t threads, void *const *params, bool run) {
  uint64_t n = half(params[3]), count = n * n;
  if (count == 0) return true;
  const float *a = floats(params[0], count), *b = floats(params[1], count);
  float *c = floats(params[2], count);
  if (a == NULL || b == NULL || c == NULL) return false;
  if (!run) return true;
  count = least(count, threads);
  memset(c, 0, count * sizeof *c);
  for (uint64_t row = 0; row * n < count; row++) {
    uint64_t columns = least(n, count - row * n);
    for (uint64_t k = 0; k < n; k++)
      for (uint64_t column = 0; column < columns; column++) c[row * n + column] += a[row * n + k] * b[k * n + column];
  }
  return true;
}

// (ns): takes its time
static bool spin(uint64_t threads, void *const *params, bool run) {
  (void)threads, (void)params, (void)run;
  return true;
}

static const struct {
  const char *name;
  kernel_function *function;
  uint32_t sizes[4];
  uint32_t count;
} kernels[] = {
    {"vecadd", vecadd, {8, 8, 8, 4}, 4},
    {"saxpy", saxpy, {4, 4, 8, 8}, 4},
    {"matmul", matmul, {8, 8, 8, 4}, 4},
    {"spin", spin, {4}, 1},
};

int find_cpu_kernel(const char *name, size_t length) {
  for (int i = 0; i < (int)(sizeof kernels / sizeof *kernels); i++)
    if (strlen(kernels[i].name) == length && memcmp(kernels[i].name, name, length) == 0) return i;
  return -1;
}

bool cpu_kernel(int kernel, const CUfunction function, uint64_t threads, void *const *params, bool run) {
  if (params == NULL || function->param_count != kernels[kernel].count) return false;
  for (uint32_t i = 0; i < function->param_count; i++)
    if (function->params[i].size != kernels[kernel].sizes[i]) return false;
  return kernels[kernel].function(threads, params, run);
}
