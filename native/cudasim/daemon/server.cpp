#include "server.h"

#include "cuda_calls.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <vector>

namespace gpuwhisk::sim {
namespace {

constexpr size_t max_sessions = 1024, max_request_bytes = 4096;
constexpr uint64_t xid_memory = 31;

void add(int epoll, int descriptor, void *tag, const char *what) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.ptr = tag;
  if (epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event) < 0) throw_errno(what);
}

/** With standard input in it, tagged null: what has no end to wait for (a file, /dev/null) cannot be watched. */
Descriptor watch_input() {
  Descriptor epoll = checked(epoll_create1(EPOLL_CLOEXEC), "epoll");
  add(epoll.get(), STDIN_FILENO, nullptr, "standard input must be a pipe, a socket or a terminal");
  return epoll;
}

Descriptor make_socket() {
  return checked(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), "socket");
}

Descriptor listen_at(const std::string &path) {
  Descriptor listener = make_socket();
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  auto *where = reinterpret_cast<sockaddr *>(&address);
  // Left behind by a daemon that was killed: no process answers there.
  if (connect(make_socket().get(), where, sizeof address) < 0 && errno == ECONNREFUSED) unlink(path.c_str());
  if (bind(listener.get(), where, sizeof address) < 0) throw_errno(path.c_str());
  // As the nodes of real devices: a process that sees the socket may use it.
  if (chmod(path.c_str(), 0666) < 0) throw_errno("chmod");
  if (listen(listener.get(), 128) < 0) throw_errno("listen");
  return listener;
}

/** The files that came with a message. */
std::vector<Descriptor> files_in(msghdr &message) {
  std::vector<Descriptor> files;
  for (cmsghdr *part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    for (size_t at = 0; at + sizeof(int) <= part->cmsg_len - CMSG_LEN(0); at += sizeof(int)) {
      int number;
      std::memcpy(&number, CMSG_DATA(part) + at, sizeof number);
      files.emplace_back(number);
    }
  }
  return files;
}

/** One request, and the file that came with it, if any. 0, as at the end of the connection, where more came than one. */
ssize_t receive_with(int socket, std::array<char, max_request_bytes> &buffer, Descriptor &file) {
  iovec part{buffer.data(), buffer.size()};
  // The kernel hands over as many as fit: with padding, two.
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t got = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got < 0) return got;
  std::vector<Descriptor> files = files_in(message);
  if (files.size() > 1 || (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) return 0;
  if (!files.empty()) file = std::move(files.front());
  return got;
}

Descriptor end_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  if (sigprocmask(SIG_BLOCK, &set, nullptr) < 0) throw_errno("sigprocmask");
  return checked(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK), "signalfd");
}

} // namespace

Server::Server(const Options &options)
    : options_(options), node_(options),
      simulation_(node_, [this](Client &client, Gpu &gpu) {
        fault(node_, client, gpu, xid_memory, [this](Client &one, int32_t error) { strike(one, error); });
      }),
      start_ns_(monotonic_ns()), epoll_(watch_input()),
      listener_(listen_at(options.socket)), signals_(end_signals()),
      timer_(checked(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK), "timerfd")) {
  watch(listener_.get(), &listener_);
  watch(signals_.get(), &signals_);
  watch(timer_.get(), &timer_);
}

Server::~Server() { unlink(options_.socket.c_str()); }

void Server::watch(int descriptor, void *tag) { add(epoll_.get(), descriptor, tag, "epoll_ctl"); }

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
    Descriptor file;
    ssize_t got = receive_with(session.socket.get(), buffer, file);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) break;
    gwsim_header header;
    if (got < static_cast<ssize_t>(sizeof header)) return close_session(session);
    std::copy_n(buffer.data(), sizeof header, reinterpret_cast<char *>(&header));
    std::string_view body(buffer.data() + sizeof header, static_cast<size_t>(got) - sizeof header);
    if (header.length != body.size() || !serve(session, header, body, std::move(file))) return close_session(session);
  }
  // Its process has ended: the pidfd is what woke us, and stays readable.
  pollfd process{session.process.get(), POLLIN, 0};
  if (process.fd >= 0 && poll(&process, 1, 0) > 0) close_session(session);
}

void Server::close_session(Session &session) {
  pending_.remove_if([&](const Pending &one) { return one.session == &session; });
  forget_commands(session);
  if (MpsDaemon *daemon = session.client->mps; daemon != nullptr) {
    end_mps(node_, *daemon, [this](Client &client, int32_t error) { strike(client, error); });
    simulation_.forget_group(daemon);
  }
  simulation_.drop(*session.client);
  simulation_.forget_group(&*session.client);
  while (!session.client->contexts.empty()) destroy_context(*session.client, session.client->contexts.begin()->first);
  exports_.forget(*session.client);
  node_.clients.erase(session.client);
  sessions_.remove_if([&](const Session &one) { return &one == &session; });
}

} // namespace gpuwhisk::sim
