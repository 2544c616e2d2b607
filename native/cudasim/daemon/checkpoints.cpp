// Checkpoints of CUDA processes: commands of one process are passed on to a thread of another, the restorer, which carries
// them out. The daemon knows the state of each, and refuses what it does not allow.
#include "server.h"

#include <algorithm>
#include <fstream>
#include <string>

namespace gpuwhisk::sim {
namespace {

// CUresults.
enum : int32_t {
  success = 0,
  invalid_value = 1,
  not_initialized = 3,
  illegal_state = 401,
  not_permitted = 800,
  not_supported = 801,
  unknown_error = 999,
};
enum : uint32_t { running = 0, locked = 1, checkpointed = 2 }; // CUprocessState

/** The process id that a pidfd refers to, in the daemon's PID namespace; 0: none. */
int32_t process_of(const Descriptor &pidfd) {
  std::ifstream info("/proc/self/fdinfo/" + std::to_string(pidfd.get()));
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("Pid:")) return std::max(0, std::atoi(line.c_str() + 4));
  return 0;
}

/** The state in which a command is allowed. */
uint32_t state_for(uint32_t command) {
  switch (command) {
  case GWSIM_LOCK:
    return running;
  case GWSIM_RESTORE:
    return checkpointed;
  default:
    return locked;
  }
}

} // namespace

int32_t Server::refuse_command(const Session &session, const Session &restorer, const gwsim_checkpoint &command) const {
  uint32_t user = session.client->uid;
  if (user != restorer.client->uid && user != 0 && user != geteuid()) return not_permitted;
  if (command.command == GWSIM_GET_STATE) return success;
  if (command.command > GWSIM_UNLOCK) return invalid_value;
  if (restorer.requester != nullptr || restorer.checkpoint.state != state_for(command.command)) return illegal_state;
  bool divided = std::ranges::any_of(node_.clients, [&](const Client &client) {
    return client.pid == restorer.client->pid && std::ranges::any_of(client.contexts, [](const auto &one) {
             return one.second.was_mps || one.second.instance >= 0;
           });
  });
  return divided ? not_supported : success;
}

bool Server::pass_command(Session &session, const gwsim_header &header, const gwsim_checkpoint &command,
                          const Descriptor &process) {
  int32_t pid = process.get() < 0 ? 0 : process_of(process);
  auto found = std::ranges::find_if(
      sessions_, [&](const Session &one) { return one.is_restorer && one.greeted && one.client->pid == pid; });
  if (pid == 0 || found == sessions_.end()) return send(session, header, {pid == 0 ? invalid_value : not_initialized, {}, 0});
  int32_t refused = refuse_command(session, *found, command);
  if (refused != success) return send(session, header, {refused, {}, 0});
  if (command.command == GWSIM_GET_STATE) return send(session, header, reply_with(found->checkpoint));
  found->requester = &session;
  found->command = header;
  if (!send(*found, {GWSIM_CHECKPOINT, 0, 0, 0}, reply_with(command))) finish_command(*found, unknown_error, found->checkpoint);
  return true;
}

bool Server::finish_command(Session &restorer, int32_t status, const gwsim_checkpoint_state &now) {
  if (!restorer.is_restorer) return false;
  restorer.checkpoint = now;
  Session *requester = std::exchange(restorer.requester, nullptr);
  if (requester == nullptr) return true;
  Reply reply = reply_with(now);
  reply.status = status;
  send(*requester, restorer.command, reply); // One that is gone is found out by its own socket.
  return true;
}

void Server::forget_commands(Session &session) {
  for (Session &other : sessions_)
    if (other.requester == &session) other.requester = nullptr;
  if (session.requester != nullptr) finish_command(session, unknown_error, session.checkpoint);
}

} // namespace gpuwhisk::sim
