#include "cuda_calls.h"
#include "inventory.h"
#include "server.h"

#include <algorithm>
#include <cstddef>
#include <sys/socket.h>
#include <sys/uio.h>

namespace gpuwhisk::sim {
namespace {

constexpr size_t max_pending = 4096;
constexpr uint64_t max_event_wait_ms = 3'600'000;

bool is_for_owner(gwsim_operation operation) { return operation >= GWSIM_SET_MIG && operation <= GWSIM_FAULT; }

} // namespace

bool Server::serve(Session &session, const gwsim_header &header, std::string_view body, Descriptor file) {
  bool known = header.operation >= GWSIM_HELLO && header.operation <= GWSIM_CHECKPOINT_DONE;
  if (!known) return session.greeted && send(session, header, {GWSIM_INVALID, {}, 0});
  auto operation = static_cast<gwsim_operation>(header.operation);
  if (session.greeted == (operation == GWSIM_HELLO)) return false;
  if (operation == GWSIM_RING) return true;
  if (operation == GWSIM_EVENTS) {
    if (pending_.size() >= max_pending) return false;
    auto request = parse_body<gwsim_events_request>(body);
    if (request.after == ~0ULL) request.after = node_.events.last();
    uint64_t wait_ms = std::min<uint64_t>(request.timeout_ms, max_event_wait_ms);
    pending_.push_back({&session, header, monotonic_ns() + wait_ms * 1'000'000, {}, true, request});
    return true;
  }
  if (operation >= GWSIM_IPC_PUBLISH && operation <= GWSIM_IPC_WITHDRAW) {
    Reply reply = exports_.answer(*session.client, operation, parse_body<gwsim_ipc>(body), file);
    return send(session, header, reply, file.get());
  }
  if (operation == GWSIM_CHECKPOINT) return pass_command(session, header, parse_body<gwsim_checkpoint>(body), file);
  if (operation == GWSIM_CHECKPOINT_DONE)
    return finish_command(session, header.status, parse_body<gwsim_checkpoint_state>(body));
  Reply reply;
  try {
    if (is_for_owner(operation) && session.client->uid != 0 && session.client->uid != geteuid())
      throw Refusal{GWSIM_NO_PERMISSION};
    reply = answer(session, operation, body);
  } catch (const Refusal &refusal) {
    reply.status = refusal.status;
  }
  bool passes_channel = operation == GWSIM_HELLO && session.client->channel != nullptr;
  if (passes_channel) return send(session, header, reply, session.client->channel->descriptor());
  if (reply.due_ns == 0) return send(session, header, reply);
  if (pending_.size() >= max_pending) return false;
  pending_.push_back({&session, header, reply.due_ns, reply, false, {}});
  return true;
}

Reply Server::answer(Session &session, gwsim_operation operation, std::string_view body) {
  Strike strike = [this](Client &client, int32_t error) { this->strike(client, error); };
  switch (operation) {
  case GWSIM_HELLO: {
    auto hello = parse_body<gwsim_hello>(body);
    return greet(session, hello);
  }
  case GWSIM_MPS_START:
    return start_mps(node_, *session.client, parse_body<gwsim_mps_start>(body));
  case GWSIM_MPS_SET:
    return set_mps(*session.client, parse_body<gwsim_mps_set>(body));
  case GWSIM_MPS_TERMINATE:
    return terminate_mps_client(node_, parse_body<gwsim_mps_target>(body), strike);
  case GWSIM_FAULT:
    simulation_.touch();
    return inject_fault(node_, parse_body<gwsim_fault>(body), strike);
  default:
    if (operation >= GWSIM_CONTEXT_CREATE) {
      if (session.client->channel == nullptr) throw Refusal{GWSIM_INVALID};
      return answer_cuda(node_, simulation_, *session.client, operation, body);
    }
    return answer_inventory(node_, sampler_, operation, body);
  }
}

Reply Server::greet(Session &session, const gwsim_hello &hello) {
  if (hello.version != GWSIM_VERSION) throw Refusal{GWSIM_INVALID};
  session.greeted = true;
  session.is_restorer = hello.role == GWSIM_RESTORER;
  if (hello.role == GWSIM_CUDA) session.client->channel = std::make_unique<Channel>();
  gwsim_node answer{};
  answer.device_count = static_cast<uint32_t>(node_.gpus.size());
  answer.launch_ns = static_cast<uint32_t>(options_.launch_us * 1e3);
  answer.module_us = static_cast<uint32_t>(options_.module_ms * 1e3);
  answer.first_launch_us = static_cast<uint32_t>(options_.first_launch_ms * 1e3);
  answer.time_scale = options_.time_scale;
  answer.start_ns = start_ns_;
  return reply_with(answer);
}

bool Server::send(Session &session, const gwsim_header &header, const Reply &reply, int descriptor) {
  gwsim_header answer{header.operation, header.id, reply.status, static_cast<uint32_t>(reply.body.size())};
  iovec parts[] = {{&answer, sizeof answer}, {const_cast<char *>(reply.body.data()), reply.body.size()}};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof descriptor)] = {};
  if (descriptor >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr *part = CMSG_FIRSTHDR(&message);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(sizeof descriptor);
    std::memcpy(CMSG_DATA(part), &descriptor, sizeof descriptor);
  }
  // A client that asks without reading the answers is not waited for.
  return sendmsg(session.socket.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

void Server::answer_pending() {
  uint64_t now = monotonic_ns();
  std::vector<Session *> broken;
  for (auto one = pending_.begin(); one != pending_.end();) {
    bool ready = one->due_ns <= now;
    if (one->waits_for_event) {
      gwsim_events events = node_.events.since(one->events.after, one->events.devices);
      ready = ready || events.count > 0;
      one->reply = reply_with(events, offsetof(gwsim_events, events) + events.count * sizeof(gwsim_event));
    }
    if (!ready) {
      ++one;
      continue;
    }
    if (!send(*one->session, one->header, one->reply)) broken.push_back(one->session);
    one = pending_.erase(one);
  }
  std::ranges::sort(broken);
  broken.erase(std::unique(broken.begin(), broken.end()), broken.end());
  for (Session *session : broken) close_session(*session);
}

} // namespace gpuwhisk::sim
