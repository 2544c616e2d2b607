#ifndef GPUWHISK_CUDASIM_DEVICES_H
#define GPUWHISK_CUDASIM_DEVICES_H

#include "state.h"

/** Asks the daemon for its devices and keeps those that CUDA_VISIBLE_DEVICES lets be seen. */
CUresult see_devices(struct state *state);

/** The device of an index; NULL: there is none. */
const struct device *device_of(CUdevice index);

#endif
