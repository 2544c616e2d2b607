// The less usual kinds of device memory; each command prints the CUresult, and "right" or "wrong" where it checks content.
#ifndef GPUWHISK_CUDASIM_MEMORY_H
#define GPUWHISK_CUDASIM_MEMORY_H

#include <stdbool.h>

/**
 *   managed BYTES       managed memory that host and device use by turns; stays allocated
 *   virtual PIECES      reserved addresses with so many pieces of 2 MiB in them, used across their borders; then the
 *                       CUresults of a use after the first was unmapped, and of mapping it again
 *   pool BYTES          stream-ordered, from a pool of its own
 *   export BYTES        memory filled with 1; then its IPC handle in hexadecimal, or "-"
 *   exported            whether that memory is filled with 2; frees it
 *   import HANDLE       opens it, expects 1 and fills it with 2
 *   imported BYTE       whether what was opened is still filled with that; closes it
 *   green SMS COUNT BLOCKS NS   runs kernels in a green context of so many SMs; then its SMs and the ms that they took
 *
 * False: it is none of these.
 */
bool obey_memory(const char *line);

#endif
