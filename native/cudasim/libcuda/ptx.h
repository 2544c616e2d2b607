// What the stand-in reads of PTX text: names and parameters of entries, and what they cost. That stands in a comment
// before an entry, so that NVIDIA's driver takes the same text:
//
//   // gpuwhisk threads=256 blocksPerSm=8 nsPerBlock=2000 dramBytesPerBlock=3072 cpu=vecadd
//
// threads: of a block, that the costs are for; a block of others costs as many times more or less. blocksPerSm: blocks that
// an SM holds at once. nsPerBlock: that a block takes on an A100. scaledBy=N: nsPerBlock and dramBytesPerBlock are
// multiplied by parameter N (0, 1, …), an unsigned integer. cpu: computes the true results (cpu_kernels.h). faults=1: the
// kernel ends in an illegal address.
#ifndef GPUWHISK_CUDASIM_PTX_H
#define GPUWHISK_CUDASIM_PTX_H

#include "state.h"

/** Puts the entries of PTX text into a module. Under the lock. */
CUresult read_ptx(const char *text, struct CUmod_st *module);

/** A function of that name with default costs. NULL: no memory. Under the lock. */
struct CUfunc_st *make_function(struct CUmod_st *module, const char *name, size_t length);

#endif
