// The blocks that a graph launches, counted when it is instantiated. Launches read the table without a lock.
#include "tokens.h"

#include <pthread.h>
#include <stdlib.h>

enum {
  TABLE_PLACES = 8192, // a power of two
  TABLE_LIMIT = 6144,  // a graph beyond it is charged as one block
  MAX_NESTING = 8,
};

struct price {
  CUgraphExec exec; // NULL: never used, so that a search ends here
  int64_t blocks;
};
static struct price prices[TABLE_PLACES];
static int places_used;
static pthread_mutex_t writing = PTHREAD_MUTEX_INITIALIZER;
static CUgraphExec const forgotten = (CUgraphExec)1;

static size_t first_place(CUgraphExec exec) { return ((uintptr_t)exec * 0x9e3779b97f4a7c15u) >> (64 - 13); }

static int64_t count_kernels(CUgraph graph, int nesting);

static int64_t blocks_of_node(CUgraphNode node, int nesting) {
  CUresult (*get_type)(CUgraphNode, int *) = driver_function("cuGraphNodeGetType");
  CUresult (*get_kernel)(CUgraphNode, CUkernelNodeParams *) = driver_function("cuGraphKernelNodeGetParams_v2");
  CUresult (*get_child)(CUgraphNode, CUgraph *) = driver_function("cuGraphChildGraphNodeGetGraph");
  if (get_kernel == NULL) get_kernel = driver_function("cuGraphKernelNodeGetParams");
  int type;
  if (get_type == NULL || get_type(node, &type) != CUDA_SUCCESS) return 0;
  if (type == NODE_KERNEL && get_kernel != NULL) {
    CUkernelNodeParams parameters = {0};
    if (get_kernel(node, &parameters) != CUDA_SUCCESS) return 0;
    return blocks_of(parameters.grid_x, parameters.grid_y, parameters.grid_z);
  }
  CUgraph child;
  if (type == NODE_GRAPH && get_child != NULL && get_child(node, &child) == CUDA_SUCCESS)
    return count_kernels(child, nesting + 1);
  return 0;
}

static int64_t count_kernels(CUgraph graph, int nesting) {
  CUresult (*get_nodes)(CUgraph, CUgraphNode *, size_t *) = driver_function("cuGraphGetNodes");
  size_t count = 0;
  if (nesting > MAX_NESTING || get_nodes == NULL || get_nodes(graph, NULL, &count) != CUDA_SUCCESS || count == 0) return 0;
  CUgraphNode *nodes = calloc(count, sizeof *nodes);
  int64_t blocks = 0;
  if (nodes != NULL && get_nodes(graph, nodes, &count) == CUDA_SUCCESS)
    for (size_t i = 0; i < count; i += 1) blocks += blocks_of_node(nodes[i], nesting);
  free(nodes);
  return blocks;
}

static struct price *find(CUgraphExec exec) {
  for (size_t i = 0; i < TABLE_PLACES; i += 1) {
    struct price *price = &prices[(first_place(exec) + i) % TABLE_PLACES];
    CUgraphExec found = __atomic_load_n(&price->exec, __ATOMIC_ACQUIRE);
    if (found == exec) return price;
    if (found == NULL) break;
  }
  return NULL;
}

/** A free place for `exec`, or one that had a forgotten graph; NULL if the table is full. */
static struct price *make_room(CUgraphExec exec) {
  for (size_t i = 0; i < TABLE_PLACES; i += 1) {
    struct price *price = &prices[(first_place(exec) + i) % TABLE_PLACES];
    if (price->exec == forgotten) return price;
    if (price->exec != NULL) continue;
    if (places_used >= TABLE_LIMIT) return NULL;
    places_used += 1;
    return price;
  }
  return NULL;
}

void price_graph(CUgraphExec exec, CUgraph graph) {
  int64_t blocks = count_kernels(graph, 0);
  pthread_mutex_lock(&writing);
  struct price *price = find(exec);
  if (price == NULL) price = make_room(exec);
  if (price != NULL) {
    STORE(price->blocks, blocks);
    __atomic_store_n(&price->exec, exec, __ATOMIC_RELEASE);
  }
  pthread_mutex_unlock(&writing);
}

void forget_price(CUgraphExec exec) {
  pthread_mutex_lock(&writing);
  struct price *price = find(exec);
  if (price != NULL) __atomic_store_n(&price->exec, forgotten, __ATOMIC_RELEASE);
  pthread_mutex_unlock(&writing);
}

int64_t price_of(CUgraphExec exec) {
  struct price *price = find(exec);
  return price != NULL ? LOAD(price->blocks) : 1;
}
