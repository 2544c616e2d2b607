// The core's structs as JavaScript objects with the same names.
#pragma once

#include "sampler.h"
#include "watcher.h"

#include <napi.h>

namespace gpuwhisk::nvml {

Napi::Value to_javascript(Napi::Env env, const std::vector<Device> &devices);
Napi::Value to_javascript(Napi::Env env, const std::vector<Sample> &samples);
Napi::Value to_javascript(Napi::Env env, const std::vector<Profile> &profiles);
Napi::Value to_javascript(Napi::Env env, const Slice &slice);
Napi::Value to_javascript(Napi::Env env, const Event &event);

} // namespace gpuwhisk::nvml
