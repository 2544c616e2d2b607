// Variables of a function's environment.
#ifndef GPUWHISK_ENVIRONMENT_H
#define GPUWHISK_ENVIRONMENT_H

// Sets a variable from `pair`, NAME=value; text without `=` is ignored. Variables that each run brings (`__OW_...`) take no
// more memory from run to run, and a value that getenv returned is overwritten by the next run's.
void gw_set_variable(const char *pair);

#endif
