// Kernels whose results the stand-in really computes, on the processor.
#ifndef GPUWHISK_CUDASIM_CPU_KERNELS_H
#define GPUWHISK_CUDASIM_CPU_KERNELS_H

#include "state.h"

/** The number of a kernel by its name, or -1. */
int find_cpu_kernel(const char *name, size_t length);

/** Whether its arguments are of its kind and its addresses are of the device's memory; with `run`, computes. */
bool cpu_kernel(int kernel, const CUfunction function, uint64_t threads, void *const *params, bool run);

#endif
