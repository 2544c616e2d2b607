// What a person reads about a function that failed.
#pragma once

#include "payload.h"
#include "target.h"

#include <string>
#include <sys/user.h>
#include <vector>

namespace gpuwhisk::inject {

/** "segmentation fault at address 0x0". */
std::string describe_signal(int signal, uint64_t address);

/** The function's frames, innermost first: follows frame pointers, and names what has symbols. */
std::vector<std::string> walk_frames(const Target &target, const Payload &payload, const user_regs_struct &registers);

} // namespace gpuwhisk::inject
