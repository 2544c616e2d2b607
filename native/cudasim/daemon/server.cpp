#include "server.h"

#include "cuda_calls.h"
#include "inventory.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <csignal>
#include <cstddef>
#include <limits>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/un.h>

namespace gpuwhisk::sim {
namespace {

constexpr size_t max_sessions = 1024, max_pending = 4096, max_request_bytes = 4096;
constexpr uint64_t max_event_wait_ms = 3'600'000;
constexpr uint64_t idle_interval_ns = 1'000'000'000; // Sensors are read.
constexpr size_t max_queued = 4096; // Operations of a client; the others stay in its ring.
constexpr uint64_t busy_interval_ns = 1'000'000; // While anything runs, rings are looked into as often.
constexpr uint64_t xid_memory = 31;
constexpr uint64_t doze_ns = 20'000'000; // After the last work: a program that launches little by little need not ring.

Descriptor listen_at(const std::string &path) {
  Descriptor listener = checked(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), "socket");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  if (bind(listener.get(), reinterpret_cast<sockaddr *>(&address), sizeof address) < 0) throw_errno(path.c_str());
  // As the nodes of real devices: whoever sees the socket may use it.
  if (chmod(path.c_str(), 0666) < 0) throw_errno("chmod");
  if (listen(listener.get(), 128) < 0) throw_errno("listen");
  return listener;
}

Descriptor end_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  if (sigprocmask(SIG_BLOCK, &set, nullptr) < 0) throw_errno("sigprocmask");
  return checked(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK), "signalfd");
}

bool is_for_owner(gwsim_operation operation) { return operation >= GWSIM_SET_MIG && operation <= GWSIM_FAULT; }

} // namespace

Server::Server(const Options &options)
    : options_(options), node_(options),
      simulation_(node_, [this](Client &client, Gpu &gpu) {
        fault(node_, client, gpu, xid_memory, [this](Client &one, int32_t error) { strike(one, error); });
      }),
      start_ns_(monotonic_ns()), epoll_(checked(epoll_create1(EPOLL_CLOEXEC), "epoll")),
      listener_(listen_at(options.socket)), signals_(end_signals()),
      timer_(checked(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK), "timerfd")) {
  watch(listener_.get(), &listener_);
  watch(signals_.get(), &signals_);
  watch(timer_.get(), &timer_);
  // What has no end to wait for (a file, /dev/null) cannot be watched.
  watch(STDIN_FILENO, nullptr);
}

Server::~Server() { unlink(options_.socket.c_str()); }

void Server::watch(int descriptor, void *tag) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.ptr = tag;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event) < 0)
    throw_errno(descriptor == STDIN_FILENO ? "standard input must be a pipe, a socket or a terminal" : "epoll_ctl");
}

void Server::run() {
  while (!ending_) {
    set_timer();
    std::array<epoll_event, 64> events;
    int count = epoll_wait(epoll_.get(), events.data(), events.size(), -1);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw_errno("epoll_wait");
    advance();
    for (int i = 0; i < count; i++) {
      void *tag = events[static_cast<size_t>(i)].data.ptr;
      if (tag == &listener_) accept_clients();
      else if (tag == &signals_) ending_ = true;
      else if (tag == &timer_) {
        uint64_t expirations;
        if (read(timer_.get(), &expirations, sizeof expirations) < 0 && errno != EAGAIN) throw_errno("timerfd");
      } else if (tag == nullptr) {
        char ignored[256];
        if (read(STDIN_FILENO, ignored, sizeof ignored) <= 0) ending_ = true;
      } else {
        // An earlier event of this round may have closed it.
        auto found = std::ranges::find_if(sessions_, [&](const Session &one) { return &one == tag; });
        if (found != sessions_.end()) receive(*found);
      }
    }
    answer_pending();
  }
}

void Server::accept_clients() {
  while (true) {
    int number = accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (number < 0) {
      if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED || errno == EMFILE || errno == ENFILE) return;
      throw_errno("accept");
    }
    Descriptor socket(number);
    ucred peer;
    socklen_t length = sizeof peer;
    if (sessions_.size() >= max_sessions) continue;
    if (getsockopt(number, SOL_SOCKET, SO_PEERCRED, &peer, &length) < 0) continue;
    Session &session = sessions_.emplace_back();
    session.socket = std::move(socket);
    // A child may hold the connection of a process that is gone.
    session.process = Descriptor(static_cast<int>(syscall(SYS_pidfd_open, peer.pid, 0)));
    session.client = node_.clients.emplace(node_.clients.end());
    session.client->pid = peer.pid;
    session.client->uid = peer.uid;
    watch(session.socket.get(), &session);
    if (session.process.get() >= 0) watch(session.process.get(), &session);
  }
}

void Server::receive(Session &session) {
  while (true) {
    std::array<char, max_request_bytes> buffer;
    ssize_t got = recv(session.socket.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) break;
    gwsim_header header;
    if (got < static_cast<ssize_t>(sizeof header)) return close_session(session);
    std::copy_n(buffer.data(), sizeof header, reinterpret_cast<char *>(&header));
    std::string_view body(buffer.data() + sizeof header, static_cast<size_t>(got) - sizeof header);
    if (header.length != body.size() || !serve(session, header, body)) return close_session(session);
  }
  // Its process has ended: the pidfd is what woke us, and stays readable.
  pollfd process{session.process.get(), POLLIN, 0};
  if (process.fd >= 0 && poll(&process, 1, 0) > 0) close_session(session);
}

bool Server::serve(Session &session, const gwsim_header &header, std::string_view body) {
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

void Server::close_session(Session &session) {
  pending_.remove_if([&](const Pending &one) { return one.session == &session; });
  if (MpsDaemon *daemon = session.client->mps; daemon != nullptr) {
    end_mps(node_, *daemon, [this](Client &client, int32_t error) { strike(client, error); });
    simulation_.forget_group(daemon);
  }
  simulation_.drop(*session.client);
  simulation_.forget_group(&*session.client);
  while (!session.client->contexts.empty()) destroy_context(*session.client, session.client->contexts.begin()->first);
  node_.clients.erase(session.client);
  sessions_.remove_if([&](const Session &one) { return &one == &session; });
}

void Server::strike(Client &client, int32_t error) {
  if (client.faulted != 0) return;
  client.faulted = error;
  simulation_.drop(client);
  if (client.channel != nullptr) client.channel->fault(static_cast<uint32_t>(error));
}

void Server::drain(Session &session) {
  Client &client = *session.client;
  if (client.channel == nullptr) return;
  bool broken = false, took = false;
  gwsim_entry entry;
  while (simulation_.pending(client) < max_queued && client.channel->take(entry, &broken)) {
    took = true;
    auto since_start = static_cast<double>(static_cast<int64_t>(entry.stamp_ns - start_ns_));
    if (client.faulted == 0 && !simulation_.submit(client, entry, since_start * options_.time_scale)) broken = true;
  }
  took_ = took_ || took;
  if (took && simulation_.pending(client) < max_queued) client.channel->offer_space();
  // Whoever writes nonsense is struck as by a fault of its own.
  if (broken) strike(client, 700);
}

void Server::advance() {
  uint64_t wall_ns = monotonic_ns();
  double now = static_cast<double>(wall_ns - start_ns_) * options_.time_scale;
  for (Session &session : sessions_) drain(session);
  simulation_.advance(now);
  // Room that has come to be since.
  for (Session &session : sessions_) drain(session);
  sampler_.sample(node_.gpus, now);
}

uint64_t Server::wall_of(double simulated_ns) const {
  return start_ns_ + static_cast<uint64_t>(simulated_ns / options_.time_scale) + 1;
}

// The next event, or the soonest end of what somebody waits for if that is later: nothing is to be told before.
double Server::wake_for_waiters() {
  double soonest = std::numeric_limits<double>::infinity();
  for (const Client &client : node_.clients) {
    if (client.channel == nullptr) continue;
    for (uint32_t stream : simulation_.busy_streams(client))
      if (uint64_t awaited = client.channel->awaited(stream); awaited != 0)
        soonest = std::min(soonest, simulation_.earliest_end(client, stream, awaited));
  }
  return std::max(soonest, simulation_.next_event());
}

void Server::set_timer() {
  bool works = !simulation_.is_idle();
  if (works || took_) last_work_ns_ = monotonic_ns();
  took_ = false;
  bool idle = !works && monotonic_ns() - last_work_ns_ > doze_ns;
  for (Client &client : node_.clients) {
    if (client.channel == nullptr) continue;
    if (!idle) client.channel->wake_up();
    else if (!client.channel->fall_asleep()) idle = false;
  }
  uint64_t wake = monotonic_ns() + (idle ? idle_interval_ns : busy_interval_ns);
  if (double event = wake_for_waiters(); std::isfinite(event)) wake = std::min(wake, wall_of(event));
  for (const Pending &one : pending_) wake = std::min(wake, one.due_ns);
  wake = std::max<uint64_t>(wake, 1); // 0 would switch the timer off.
  itimerspec when{};
  when.it_value.tv_sec = static_cast<time_t>(wake / 1'000'000'000);
  when.it_value.tv_nsec = static_cast<long>(wake % 1'000'000'000);
  if (timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &when, nullptr) < 0) throw_errno("timerfd_settime");
}

} // namespace gpuwhisk::sim
