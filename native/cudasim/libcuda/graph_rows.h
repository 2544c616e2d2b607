#ifndef GPUWHISK_CUDASIM_GRAPH_ROWS_H
#define GPUWHISK_CUDASIM_GRAPH_ROWS_H

#include "state.h"

/** A graph, or what is made of one to be launched: its operations in the order in which they were captured. */
struct CUgraph_st {
  enum kind kind;
  struct CUgraphNode_st *first, *last;
  size_t count;
};

/** Keeps a copy of an operation. Takes the lock. */
CUresult add_to_graph(struct CUgraph_st *graph, const struct CUgraphNode_st *operation);

#endif
