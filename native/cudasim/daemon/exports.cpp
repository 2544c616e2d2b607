#include "exports.h"

#include <fcntl.h>
#include <sys/random.h>

namespace gpuwhisk::sim {
namespace {

// CUresults.
enum : int32_t { out_of_memory = 2, invalid_context = 201, invalid_handle = 400, not_supported = 801, unknown_error = 999 };

constexpr size_t max_exports = 256; // Of a node: each is a file that is held open.

} // namespace

Reply Exports::publish(const Client &client, const gwsim_ipc &request, Descriptor file) {
  const Context &context = client.contexts.at(request.context);
  if (context.instance >= 0) return {not_supported, {}, 0};
  if (file.get() < 0 || exports_.size() >= max_exports) return {out_of_memory, {}, 0};
  gwsim_ipc answer{request.context, 0, request.bytes};
  // It cannot be guessed.
  if (getrandom(&answer.key, sizeof answer.key, 0) != sizeof answer.key) return {unknown_error, {}, 0};
  exports_[answer.key] = {&client, context.partition, request.bytes, std::move(file)};
  return reply_with(answer);
}

Reply Exports::open(const Context &context, const gwsim_ipc &request, Descriptor &file) const {
  auto found = exports_.find(request.key);
  if (found == exports_.end()) return {invalid_handle, {}, 0};
  if (found->second.partition != context.partition) return {not_supported, {}, 0};
  file = Descriptor(fcntl(found->second.file.get(), F_DUPFD_CLOEXEC, 0));
  if (file.get() < 0) return {out_of_memory, {}, 0};
  return reply_with(gwsim_ipc{request.context, request.key, found->second.bytes});
}

Reply Exports::answer(const Client &client, gwsim_operation operation, const gwsim_ipc &request, Descriptor &file) {
  Descriptor given = std::move(file);
  if (operation == GWSIM_IPC_WITHDRAW) {
    auto found = exports_.find(request.key);
    if (found == exports_.end() || found->second.owner != &client) return {invalid_handle, {}, 0};
    exports_.erase(found);
    return {};
  }
  if (client.faulted != 0) return {client.faulted, {}, 0};
  auto context = client.contexts.find(request.context);
  if (context == client.contexts.end()) return {invalid_context, {}, 0};
  return operation == GWSIM_IPC_PUBLISH ? publish(client, request, std::move(given)) : open(context->second, request, file);
}

void Exports::forget(const Client &client) {
  std::erase_if(exports_, [&](const auto &entry) { return entry.second.owner == &client; });
}

} // namespace gpuwhisk::sim
