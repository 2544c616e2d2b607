#define _GNU_SOURCE
#include "devices.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int ask(struct state *state, enum gwsim_operation operation, uint32_t index, void *answer, size_t size) {
  struct gwsim_target target = {.device = index};
  int gone = 0;
  return gwsim_call(&state->connection, operation, &target, sizeof target, answer, size, &gone);
}

static void set_whole(struct device *device) {
  device->instance = -1;
  device->sm_count = device->facts.sm_count;
  device->memory_bytes = device->facts.memory_bytes;
  memcpy(device->uuid, device->facts.uuid, sizeof device->uuid);
}

static void set_slice(struct device *device, const struct gwsim_slice *slice) {
  device->instance = (int32_t)slice->instance;
  device->sm_count = slice->sm_count;
  device->memory_bytes = slice->memory_bytes;
  memcpy(device->uuid, slice->uuid, sizeof device->uuid);
}

// The slice of that uuid, or the first that programs can run on.
static const struct gwsim_slice *find_slice(const struct gwsim_slices *slices, const char *uuid) {
  for (uint32_t i = 0; i < slices->count && i < GWSIM_MAX_SLICES; i++) {
    const struct gwsim_slice *slice = &slices->slices[i];
    if (slice->has_compute && (uuid == NULL || strcmp(slice->uuid, uuid) == 0)) return slice;
  }
  return NULL;
}

struct inventory {
  uint32_t count;
  struct gwsim_device devices[GWSIM_MAX_DEVICES];
  struct gwsim_slices slices[GWSIM_MAX_DEVICES];
};

// The whole device, or what is seen of it where it is cut; false: nothing.
static bool see_device(const struct inventory *inventory, uint32_t index, struct device *seen) {
  seen->facts = inventory->devices[index];
  if (seen->facts.lost) return false;
  if (!seen->facts.mig_enabled) {
    set_whole(seen);
    return true;
  }
  const struct gwsim_slice *slice = find_slice(&inventory->slices[index], NULL);
  if (slice == NULL) return false;
  set_slice(seen, slice);
  return true;
}

static bool see_named(const struct inventory *inventory, const char *name, size_t length, struct device *seen) {
  char text[GWSIM_UUID_LENGTH];
  if (length == 0 || length >= sizeof text) return false;
  memcpy(text, name, length);
  text[length] = '\0';
  char *end;
  long index = strtol(text, &end, 10);
  if (*end == '\0') return index >= 0 && (uint32_t)index < inventory->count && see_device(inventory, (uint32_t)index, seen);
  for (uint32_t i = 0; i < inventory->count; i++) {
    const struct gwsim_slice *slice = find_slice(&inventory->slices[i], text);
    if (slice != NULL && inventory->devices[i].mig_enabled) {
      seen->facts = inventory->devices[i];
      set_slice(seen, slice);
      return true;
    }
    // The beginning of a uuid is enough.
    if (strncmp(text, "GPU-", 4) == 0 && strncmp(inventory->devices[i].uuid, text, length) == 0)
      return see_device(inventory, i, seen);
  }
  return false;
}

// As CUDA does: the list ends at the first entry that is none, and of MIG devices one is seen.
static void see_list(struct state *state, const struct inventory *inventory, const char *list) {
  while (state->device_count < GWSIM_MAX_DEVICES) {
    while (*list == ' ') list++;
    size_t length = strcspn(list, ", ");
    struct device *seen = &state->devices[state->device_count];
    if (!see_named(inventory, list, length, seen)) return;
    for (int i = 0; i < state->device_count; i++)
      if (strcmp(state->devices[i].uuid, seen->uuid) == 0) {
        state->device_count = 0; // The same one twice: none at all.
        return;
      }
    state->device_count++;
    if (seen->instance >= 0) {
      state->devices[0] = *seen;
      state->device_count = 1;
      return;
    }
    list += length;
    list += strspn(list, " ");
    if (*list != ',') return;
    list++;
  }
}

CUresult see_devices(struct state *state) {
  struct inventory *inventory = calloc(1, sizeof *inventory);
  if (inventory == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult result = CUDA_SUCCESS;
  for (uint32_t i = 0; i < state->node.device_count && i < GWSIM_MAX_DEVICES; i++) {
    if (ask(state, GWSIM_DEVICE, i, &inventory->devices[i], sizeof inventory->devices[i]) != GWSIM_OK ||
        ask(state, GWSIM_SLICES, i, &inventory->slices[i], sizeof inventory->slices[i]) != GWSIM_OK)
      result = CUDA_ERROR_UNKNOWN;
    inventory->count++;
  }
  const char *visible = getenv("CUDA_VISIBLE_DEVICES");
  if (visible != NULL) see_list(state, inventory, visible);
  else
    for (uint32_t i = 0; i < inventory->count; i++)
      if (see_device(inventory, i, &state->devices[state->device_count])) state->device_count++;
  free(inventory);
  if (result != CUDA_SUCCESS) return result;
  return state->device_count == 0 ? CUDA_ERROR_NO_DEVICE : CUDA_SUCCESS;
}

const struct device *device_of(CUdevice index) {
  return index >= 0 && index < gwsim_state->device_count ? &gwsim_state->devices[index] : NULL;
}

// Looking at devices needs no context, and is not kept from a process that has had a fault.
static CUresult find_device(CUdevice index, const struct device **device) {
  CUresult result = check_ready();
  if (result == CUDA_ERROR_NOT_INITIALIZED) return result;
  *device = device_of(index);
  return *device == NULL ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  const struct device *found;
  if (device == NULL) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = find_device(ordinal, &found);
  if (result == CUDA_SUCCESS) *device = ordinal;
  return result;
}

EXPORT CUresult cuDeviceGetCount(int *count) {
  CUresult result = check_ready();
  if (result == CUDA_ERROR_NOT_INITIALIZED) return result;
  if (count == NULL) return CUDA_ERROR_INVALID_VALUE;
  *count = gwsim_state->device_count;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetName(char *name, int length, CUdevice index) {
  const struct device *device;
  CUresult result = find_device(index, &device);
  if (result != CUDA_SUCCESS) return result;
  if (name == NULL || length <= 0) return CUDA_ERROR_INVALID_VALUE;
  snprintf(name, (size_t)length, "%s", device->facts.name);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice index) {
  const struct device *device;
  CUresult result = find_device(index, &device);
  if (result != CUDA_SUCCESS) return result;
  if (uuid == NULL) return CUDA_ERROR_INVALID_VALUE;
  const char *text = device->uuid + 4; // After "GPU-" or "MIG-".
  for (int i = 0; i < 16; i++) {
    if (*text == '-') text++;
    char digits[3] = {text[0], text[1], '\0'};
    uuid->bytes[i] = (char)strtol(digits, NULL, 16);
    text += 2;
  }
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetPCIBusId(char *id, int length, CUdevice index) {
  const struct device *device;
  CUresult result = find_device(index, &device);
  if (result != CUDA_SUCCESS) return result;
  if (id == NULL || length <= 0) return CUDA_ERROR_INVALID_VALUE;
  snprintf(id, (size_t)length, "%s", device->facts.bus_id + 4); // With a domain of four digits.
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice index) {
  const struct device *device;
  CUresult result = find_device(index, &device);
  if (result != CUDA_SUCCESS) return result;
  if (bytes == NULL) return CUDA_ERROR_INVALID_VALUE;
  *bytes = device->memory_bytes;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice index) {
  const struct device *device;
  CUresult result = find_device(index, &device);
  if (result != CUDA_SUCCESS) return result;
  if (major == NULL || minor == NULL) return CUDA_ERROR_INVALID_VALUE;
  *major = (int)device->facts.major;
  *minor = (int)device->facts.minor;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceCanAccessPeer(int *can, CUdevice index, CUdevice peer) {
  const struct device *device;
  CUresult result = find_device(index, &device);
  if (result == CUDA_SUCCESS) result = find_device(peer, &device);
  if (result == CUDA_SUCCESS) *can = 0;
  return result;
}

static int sms_seen(const struct device *device, CUdevice index) {
  // A client of MPS sees the SMs that it may use.
  for (int i = 0; i < MAX_CONTEXTS; i++) {
    const struct CUctx_st *context = &gwsim_state->contexts[i];
    if (context->kind == CONTEXT && context->device == index && context->parent == NULL) return (int)context->sm_count;
  }
  return (int)device->sm_count;
}

EXPORT CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice index) {
  const struct device *device;
  CUresult result = find_device(index, &device);
  if (result != CUDA_SUCCESS) return result;
  if (value == NULL) return CUDA_ERROR_INVALID_VALUE;
  const struct gwsim_device *facts = &device->facts;
  const struct {
    CUdevice_attribute attribute;
    int value;
  } rows[] = {
      {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
      {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 0x7fffffff},
      {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
      {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 49152},
      {CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 65536},
      {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
      {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 65536},
      {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, (int)facts->sm_clock_mhz * 1000},
      {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, sms_seen(device, index)},
      {CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 0},
      {CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, (int)facts->compute_mode},
      {CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1},
      {CU_DEVICE_ATTRIBUTE_ECC_ENABLED, facts->mig_capable != 0},
      {CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, (int)strtol(facts->bus_id + 9, NULL, 16)},
      {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, (int)facts->memory_clock_mhz * 1000},
      {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, (int)(facts->bandwidth * 8 / (facts->memory_clock_mhz * 2e6))},
      {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, (int)facts->l2_bytes},
      {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, facts->minor == 6 ? 1536 : 2048},
      {CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 2},
      {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, (int)facts->major},
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, (int)facts->minor},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 167936},
      {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536},
      {CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 1},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 32},
      {CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 1},
      {CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1},
      {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1},
  };
  *value = 0; // What the stand-in knows nothing of, it does not have.
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (rows[i].attribute == attribute) *value = rows[i].value;
  return CUDA_SUCCESS;
}
