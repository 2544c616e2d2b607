#ifndef GPUWHISK_CUDASIM_FATBIN_H
#define GPUWHISK_CUDASIM_FATBIN_H

#include <stdbool.h>
#include <stdint.h>

/** Whether an image is machine code, alone or with other forms around it: nothing that the stand-in could read. */
bool is_machine_code(const void *image);

/** The PTX text in a fat binary, which is not NUL-ended; NULL: it has none that is not compressed. */
const char *text_in_fatbin(const void *image, uint64_t *length);

#endif
