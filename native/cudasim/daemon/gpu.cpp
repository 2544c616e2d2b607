#include "gpu.h"

#include <algorithm>
#include <cstdio>
#include <ranges>

namespace gpuwhisk::sim {
namespace {

constexpr double gib = 1024.0 * 1024 * 1024, mib = 1024.0 * 1024;

// A permutation of 64-bit numbers (SplitMix64: Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators").
uint64_t mix(uint64_t value) {
  value += 0x9e3779b97f4a7c15;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

uint32_t compute_slices_used(const std::list<Instance> &instances) {
  uint32_t used = 0;
  for (const Instance &instance : instances) used += instance.profile->compute_slices;
  return used;
}

} // namespace

Gpu::Gpu(const Model &model, uint32_t index, uint64_t seed) : model_(model), index_(index), seed_(seed) {
  uuid_ = make_uuid("GPU", 0);
  whole_.sm_count = model.sm_count;
  whole_.memory_bytes = static_cast<uint64_t>(model.memory_gib * gib) & ~0xfffffULL;
  whole_.bandwidth = model.bandwidth_gb_s;
  whole_.l2_bytes = model.l2_mib * mib;
}

std::string Gpu::make_uuid(const char *prefix, uint64_t number) const {
  uint64_t high = mix(seed_ * 1000003 + index_ * 4096 + number), low = mix(high);
  char text[64];
  std::snprintf(text, sizeof text, "%s-%08x-%04x-4%03x-%04x-%012llx", prefix, static_cast<unsigned>(high >> 32),
                static_cast<unsigned>(high >> 16 & 0xffff), static_cast<unsigned>(high & 0xfff),
                static_cast<unsigned>(0x8000 | (low >> 48 & 0x3fff)), static_cast<unsigned long long>(low & 0xffffffffffff));
  return text;
}

void Gpu::require_present() const {
  if (lost) throw Refusal{GWSIM_LOST};
}

Partition *Gpu::partition(int32_t instance) {
  if (!mig_enabled_) return instance < 0 ? &whole_ : nullptr;
  for (Instance &candidate : instances_)
    if (instance >= 0 && candidate.id == static_cast<uint32_t>(instance) && !candidate.compute_uuid.empty())
      return &candidate;
  return nullptr;
}

uint64_t Gpu::used_bytes() const {
  uint64_t used = whole_.used_bytes;
  for (const Instance &instance : instances_) used += instance.used_bytes;
  return used;
}

uint32_t Gpu::contexts() const {
  uint32_t count = whole_.contexts;
  for (const Instance &instance : instances_) count += instance.contexts;
  return count;
}

Usage Gpu::usage() const {
  Usage sum = gone_;
  auto add = [&sum](const Usage &part) {
    sum.busy_ns += part.busy_ns;
    sum.sm_ns += part.sm_ns;
    sum.dram_bytes += part.dram_bytes;
  };
  add(whole_.usage);
  for (const Instance &instance : instances_) add(instance.usage);
  return sum;
}

void Gpu::set_mig(bool enabled) {
  require_present();
  if (model_.profiles.empty()) throw Refusal{GWSIM_NOT_SUPPORTED};
  if (enabled == mig_enabled_) return;
  if (contexts() > 0 || !instances_.empty()) throw Refusal{GWSIM_IN_USE};
  mig_enabled_ = enabled;
}

void Gpu::set_compute_mode(int32_t mode) {
  require_present();
  if (mode != GWSIM_DEFAULT_MODE && mode != GWSIM_PROHIBITED && mode != GWSIM_EXCLUSIVE_PROCESS)
    throw Refusal{GWSIM_INVALID};
  if (mig_enabled_) throw Refusal{GWSIM_NOT_SUPPORTED};
  compute_mode = static_cast<uint32_t>(mode);
}

std::optional<uint32_t> Gpu::free_start(const Profile &profile, int32_t wanted) const {
  uint32_t same = 0;
  bool taken[memory_slots] = {};
  for (const Instance &instance : instances_) {
    same += instance.profile == &profile;
    std::fill_n(taken + instance.start_slot, instance.profile->slots, true);
  }
  if (same >= profile.maximum) return {};
  if (compute_slices_used(instances_) + profile.compute_slices > compute_slices) return {};
  // As NVIDIA's driver chooses: the last, which leaves room for the large ones, which begin at 0.
  for (auto next = profile.starts.rbegin(); next != profile.starts.rend(); ++next) {
    uint32_t start = *next;
    if (wanted >= 0 && start != static_cast<uint32_t>(wanted)) continue;
    if (std::none_of(taken + start, taken + start + profile.slots, [](bool one) { return one; })) return start;
  }
  return {};
}

uint32_t Gpu::remaining(const Profile &profile) const {
  if (!mig_enabled_) return 0;
  bool taken[memory_slots] = {};
  uint32_t same = 0;
  for (const Instance &instance : instances_) {
    same += instance.profile == &profile;
    std::fill_n(taken + instance.start_slot, instance.profile->slots, true);
  }
  uint32_t room = (compute_slices - compute_slices_used(instances_)) / profile.compute_slices, count = 0;
  uint32_t most = std::min(room, profile.maximum - std::min(same, profile.maximum));
  for (uint32_t start : profile.starts) {
    if (count == most || std::any_of(taken + start, taken + start + profile.slots, [](bool one) { return one; })) continue;
    std::fill_n(taken + start, profile.slots, true);
    count++;
  }
  return count;
}

Instance &Gpu::create_instance(uint32_t profile_id, int32_t start_slot) {
  require_present();
  if (!mig_enabled_) throw Refusal{GWSIM_NOT_SUPPORTED};
  auto profile = std::ranges::find(model_.profiles, profile_id, &Profile::id);
  if (profile == model_.profiles.end()) throw Refusal{GWSIM_INVALID};
  if (start_slot >= 0 && std::ranges::find(profile->starts, static_cast<uint32_t>(start_slot)) == profile->starts.end())
    throw Refusal{GWSIM_INVALID};
  std::optional<uint32_t> start = free_start(*profile, start_slot);
  if (!start) throw Refusal{GWSIM_INSUFFICIENT};
  Instance &made = instances_.emplace_back();
  made.id = ++last_instance_;
  made.profile = &*profile;
  made.start_slot = *start;
  made.sm_count = profile->sm_count;
  made.memory_bytes = static_cast<uint64_t>(profile->memory_gib * gib) & ~0xfffffULL;
  made.bandwidth = whole_.bandwidth * profile->slots / memory_slots;
  made.l2_bytes = whole_.l2_bytes * profile->slots / memory_slots;
  return made;
}

Instance &Gpu::find_instance(uint32_t id) {
  require_present();
  auto found = std::ranges::find(instances_, id, &Instance::id);
  if (found == instances_.end()) throw Refusal{GWSIM_NOT_FOUND};
  return *found;
}

void Gpu::destroy_instance(uint32_t id) {
  Instance &instance = find_instance(id);
  if (!instance.compute_uuid.empty() || instance.contexts > 0) throw Refusal{GWSIM_IN_USE};
  gone_.busy_ns += instance.usage.busy_ns;
  gone_.sm_ns += instance.usage.sm_ns;
  gone_.dram_bytes += instance.usage.dram_bytes;
  instances_.remove_if([id](const Instance &one) { return one.id == id; });
}

Instance &Gpu::create_compute(uint32_t id) {
  Instance &instance = find_instance(id);
  if (!instance.compute_uuid.empty()) throw Refusal{GWSIM_INSUFFICIENT};
  instance.compute_uuid = make_uuid("MIG", ++last_compute_);
  return instance;
}

void Gpu::destroy_compute(uint32_t id) {
  Instance &instance = find_instance(id);
  if (instance.compute_uuid.empty()) throw Refusal{GWSIM_NOT_FOUND};
  if (instance.contexts > 0) throw Refusal{GWSIM_IN_USE};
  instance.compute_uuid.clear();
}

gwsim_device Gpu::describe() const {
  gwsim_device answer{};
  copy_text(answer.uuid, uuid_);
  copy_text(answer.name, model_.name);
  copy_text(answer.type, model_.type);
  std::snprintf(answer.bus_id, sizeof answer.bus_id, "00000000:%02X:00.0", 0x10 + index_);
  answer.index = index_;
  answer.sm_count = model_.sm_count;
  answer.major = model_.major;
  answer.minor = model_.minor;
  answer.memory_bytes = whole_.memory_bytes;
  answer.l2_bytes = static_cast<uint64_t>(whole_.l2_bytes);
  answer.bandwidth = model_.bandwidth_gb_s * 1e9;
  answer.pcie_bandwidth = model_.pcie_gb_s * 1e9;
  answer.sm_clock_mhz = model_.sm_clock_mhz;
  answer.memory_clock_mhz = model_.memory_clock_mhz;
  answer.idle_w = model_.idle_w;
  answer.power_limit_w = model_.power_limit_w;
  answer.mig_capable = !model_.profiles.empty();
  answer.mig_enabled = mig_enabled_;
  answer.mig_resets = model_.mig_resets;
  answer.has_gpm = model_.has_gpm;
  answer.compute_mode = compute_mode;
  answer.lost = lost;
  return answer;
}

gwsim_slice Gpu::describe(const Instance &instance) const {
  gwsim_slice answer{};
  copy_text(answer.uuid, instance.compute_uuid);
  copy_text(answer.profile, instance.profile->name);
  answer.instance = instance.id;
  answer.profile_id = instance.profile->id;
  answer.start_slot = instance.start_slot;
  answer.slots = instance.profile->slots;
  answer.compute_slices = instance.profile->compute_slices;
  answer.sm_count = instance.sm_count;
  answer.has_compute = !instance.compute_uuid.empty();
  answer.memory_bytes = instance.memory_bytes;
  answer.used_bytes = instance.used_bytes;
  answer.busy_ns = static_cast<uint64_t>(instance.usage.busy_ns);
  answer.sm_ns = instance.usage.sm_ns;
  answer.dram_bytes = instance.usage.dram_bytes;
  return answer;
}

gwsim_profiles Gpu::describe_profiles() const {
  gwsim_profiles answer{};
  for (const Profile &profile : model_.profiles) {
    gwsim_profile &row = answer.profiles[answer.count++];
    copy_text(row.name, profile.name);
    row.id = profile.id;
    row.slots = profile.slots;
    row.compute_slices = profile.compute_slices;
    row.sm_count = profile.sm_count;
    row.media_extensions = profile.media_extensions;
    row.maximum = profile.maximum;
    row.remaining = remaining(profile);
    row.start_count = static_cast<uint32_t>(profile.starts.size());
    std::ranges::copy(profile.starts, row.starts);
    row.memory_bytes = static_cast<uint64_t>(profile.memory_gib * gib) & ~0xfffffULL;
  }
  return answer;
}

} // namespace gpuwhisk::sim
