// Between JavaScript values and the core's.
#pragma once

#include "../inject/prewarmer.h"

#include <napi.h>

namespace gpuwhisk::addon {

inject::LaunchOptions launch_options(const Napi::Object &options);
inject::InjectOptions inject_options(const Napi::Object &options);
inject::CallOptions call_options(const Napi::Object &options);
Napi::Object to_javascript(Napi::Env env, const inject::Outcome &outcome);

} // namespace gpuwhisk::addon
