// The example kernels with vectors of their own; each prints the CUresult, and whether what came back is "right" or "wrong".
#ifndef GPUWHISK_CUDASIM_KERNELS_H
#define GPUWHISK_CUDASIM_KERNELS_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/** One of runtimes/cuda/gpuwhisk_kernels.h, loaded at first use; NULL if that fails. */
CUfunction function_of(const char *name);
CUresult launch(CUfunction function, unsigned blocks, void **arguments, CUstream stream);

/** With `bad`, one address is none of the device's. */
void vecadd(unsigned n, bool bad);
void saxpy(unsigned n);
void matmul(unsigned n);
/** A captured graph of so many vecadds, launched twice. */
void graph(int count);

#endif
