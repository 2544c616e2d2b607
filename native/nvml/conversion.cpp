#include "conversion.h"

namespace gpuwhisk::nvml {
namespace {

template <typename Item, typename Convert>
Napi::Array list_of(Napi::Env env, const std::vector<Item> &items, Convert convert) {
  Napi::Array list = Napi::Array::New(env, items.size());
  for (uint32_t i = 0; i < items.size(); i++) list.Set(i, convert(items[i]));
  return list;
}

Napi::Number number(Napi::Env env, double value) { return Napi::Number::New(env, value); }

void set_if(Napi::Object &object, const char *name, const std::optional<double> &value) {
  if (value) object.Set(name, *value);
}

Napi::Object device_object(Napi::Env env, const Device &device) {
  Napi::Object object = Napi::Object::New(env);
  object.Set("uuid", device.uuid);
  object.Set("index", number(env, device.index));
  object.Set("name", device.name);
  object.Set("smCount", number(env, device.sm_count));
  object.Set("memoryMiB", number(env, static_cast<double>(device.memory_mib)));
  object.Set("mig", device.mig);
  object.Set("exclusive", device.exclusive);
  object.Set("slices", list_of(env, device.slices, [&](const Slice &slice) { return to_javascript(env, slice); }));
  return object;
}

Napi::Object process_object(Napi::Env env, const Process &process) {
  Napi::Object object = Napi::Object::New(env);
  object.Set("pid", number(env, process.pid));
  object.Set("memoryMiB", number(env, static_cast<double>(process.memory_mib)));
  if (!process.slice.empty()) object.Set("slice", process.slice);
  set_if(object, "utilisation", process.utilisation);
  return object;
}

Napi::Object sample_object(Napi::Env env, const Sample &sample) {
  Napi::Object object = Napi::Object::New(env);
  object.Set("uuid", sample.uuid);
  object.Set("usedMemoryMiB", number(env, static_cast<double>(sample.used_memory_mib)));
  set_if(object, "utilisation", sample.utilisation);
  set_if(object, "smActivity", sample.sm_activity);
  set_if(object, "dramActivity", sample.dram_activity);
  set_if(object, "temperatureC", sample.temperature_c);
  set_if(object, "powerW", sample.power_w);
  object.Set("clockEvents", list_of(env, sample.clock_events, [&](const std::string &words) {
               return Napi::String::New(env, words);
             }));
  object.Set("processes",
             list_of(env, sample.processes, [&](const Process &process) { return process_object(env, process); }));
  return object;
}

Napi::Object profile_object(Napi::Env env, const Profile &profile) {
  Napi::Object object = Napi::Object::New(env);
  object.Set("name", profile.name);
  object.Set("slots", number(env, profile.slots));
  object.Set("smCount", number(env, profile.sm_count));
  object.Set("memoryMiB", number(env, static_cast<double>(profile.memory_mib)));
  object.Set("starts", list_of(env, profile.starts, [&](unsigned start) { return number(env, start); }));
  object.Set("remaining", number(env, profile.remaining));
  return object;
}

} // namespace

Napi::Value to_javascript(Napi::Env env, const std::vector<Device> &devices) {
  return list_of(env, devices, [&](const Device &device) { return device_object(env, device); });
}

Napi::Value to_javascript(Napi::Env env, const std::vector<Sample> &samples) {
  return list_of(env, samples, [&](const Sample &sample) { return sample_object(env, sample); });
}

Napi::Value to_javascript(Napi::Env env, const std::vector<Profile> &profiles) {
  return list_of(env, profiles, [&](const Profile &profile) { return profile_object(env, profile); });
}

Napi::Value to_javascript(Napi::Env env, const Slice &slice) {
  Napi::Object object = Napi::Object::New(env);
  object.Set("uuid", slice.uuid);
  object.Set("profile", slice.profile);
  object.Set("startSlot", number(env, slice.start_slot));
  object.Set("slots", number(env, slice.slots));
  object.Set("instance", number(env, slice.instance));
  object.Set("smCount", number(env, slice.sm_count));
  object.Set("memoryMiB", number(env, static_cast<double>(slice.memory_mib)));
  return object;
}

Napi::Value to_javascript(Napi::Env env, const Event &event) {
  Napi::Object object = Napi::Object::New(env);
  object.Set("type", event.type);
  object.Set("device", event.device);
  if (std::string(event.type) == "xid") object.Set("code", number(env, static_cast<double>(event.code)));
  return object;
}

} // namespace gpuwhisk::nvml
