#include "conversion.h"

#include "../inject/elf_object.h"

namespace gpuwhisk::addon {
namespace {

// Each throws a TypeError that names the field; `fallback` is for a field that is absent.
[[noreturn]] void refuse(const Napi::Value &value, const char *name, const char *wanted) {
  throw Napi::TypeError::New(value.Env(), std::string(name) + " must be " + wanted);
}

std::string text(const Napi::Object &options, const char *name, const char *fallback = nullptr) {
  Napi::Value value = options.Get(name);
  if (value.IsUndefined() && fallback) return fallback;
  if (!value.IsString()) refuse(value, name, "a string");
  return value.As<Napi::String>();
}

std::vector<std::string> texts(const Napi::Object &options, const char *name) {
  Napi::Value value = options.Get(name);
  if (value.IsUndefined()) return {};
  if (!value.IsArray()) refuse(value, name, "a list of strings");
  std::vector<std::string> list;
  auto items = value.As<Napi::Array>();
  for (uint32_t i = 0; i < items.Length(); i++) {
    Napi::Value item = items.Get(i);
    if (!item.IsString()) refuse(value, name, "a list of strings");
    list.push_back(item.As<Napi::String>());
  }
  return list;
}

int64_t whole(const Napi::Object &options, const char *name, int64_t fallback) {
  Napi::Value value = options.Get(name);
  if (value.IsUndefined()) return fallback;
  if (!value.IsNumber() || value.As<Napi::Number>().DoubleValue() < 0) refuse(value, name, "a number, not below 0");
  return value.As<Napi::Number>().Int64Value();
}

bool flag(const Napi::Object &options, const char *name, bool fallback) {
  Napi::Value value = options.Get(name);
  if (value.IsUndefined()) return fallback;
  if (!value.IsBoolean()) refuse(value, name, "true or false");
  return value.As<Napi::Boolean>();
}

template <typename Item, typename Convert>
Napi::Array list_of(Napi::Env env, const std::vector<Item> &items, Convert convert) {
  Napi::Array list = Napi::Array::New(env, items.size());
  for (uint32_t i = 0; i < items.size(); i++) list.Set(i, convert(items[i]));
  return list;
}

} // namespace

inject::LaunchOptions launch_options(const Napi::Object &options) {
  inject::LaunchOptions result;
  result.program = text(options, "program");
  result.arguments = texts(options, "arguments");
  result.environment = texts(options, "environment");
  result.checkpoint = texts(options, "checkpoint");
  result.output = static_cast<int>(whole(options, "output", 1));
  result.errors = static_cast<int>(whole(options, "errors", 2));
  result.timeout_ms = static_cast<int>(whole(options, "timeoutMs", result.timeout_ms));
  return result;
}

inject::InjectOptions inject_options(const Napi::Object &options) {
  inject::InjectOptions result;
  result.entry = text(options, "entry", "gpuwhisk_main");
  result.environment = texts(options, "environment");
  if (flag(options, "sharedObject", true)) result.check = inject::check_object;
  result.load_timeout_us = whole(options, "loadTimeoutMs", result.load_timeout_us / 1000) * 1000;
  result.memory_bytes = whole(options, "memoryMiB", 0) << 20;
  result.policy.library_folders = texts(options, "libraryFolders");
  result.policy.executable_memory = flag(options, "executableMemory", false);
  return result;
}

inject::CallOptions call_options(const Napi::Object &options) {
  inject::CallOptions result;
  result.argument = text(options, "argument");
  result.environment = texts(options, "environment");
  result.timeout_us = whole(options, "timeoutMs", result.timeout_us / 1000) * 1000;
  return result;
}

Napi::Object to_javascript(Napi::Env env, const inject::Outcome &outcome) {
  Napi::Object object = Napi::Object::New(env);
  object.Set("kind", outcome.kind);
  object.Set("result", outcome.result);
  object.Set("message", outcome.message);
  object.Set("ready", outcome.ready);
  object.Set("replace", outcome.replace);
  object.Set("trace", list_of(env, outcome.trace, [&](const std::string &frame) { return Napi::String::New(env, frame); }));
  object.Set("stages", list_of(env, outcome.stages, [&](const inject::Stage &stage) {
               Napi::Object one = Napi::Object::New(env);
               one.Set("name", stage.name);
               one.Set("us", static_cast<double>(stage.us));
               return one;
             }));
  return object;
}

} // namespace gpuwhisk::addon
