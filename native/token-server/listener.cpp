#include "listener.h"

#include "futex.h"
#include "ticker.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <system_error>
#include <vector>

namespace gpuwhisk::tokens {
namespace {

/** Data of an epoll event: the kind in the upper half, the id in the lower. */
enum Source : uint64_t { LISTENING = 0, WAKING = 1ull << 32, CONNECTION = 2ull << 32, PROCESS = 3ull << 32 };

[[noreturn]] void fail(const std::string &what) { throw std::system_error(errno, std::generic_category(), what); }

inject::Descriptor listen_at(const std::string &path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    errno = ENAMETOOLONG;
    fail(path);
  }
  memcpy(address.sun_path, path.c_str(), path.size());
  inject::Descriptor file(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!file) fail("socket");
  struct stat old;
  if (lstat(path.c_str(), &old) == 0 && S_ISSOCK(old.st_mode) && unlink(path.c_str()) < 0) fail(path);
  if (bind(file.get(), reinterpret_cast<sockaddr *>(&address), sizeof address) < 0) fail(path);
  // Containers run as other users; who has no ticket gets nothing.
  if (chmod(path.c_str(), 0666) < 0 || listen(file.get(), 128) < 0) fail(path);
  return file;
}

} // namespace

Listener::Listener(const std::string &path, Pages &pages, Tell tell)
    : path_(path), pages_(pages), tell_(std::move(tell)), socket_(listen_at(path)), epoll_(epoll_create1(EPOLL_CLOEXEC)),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!epoll_ || !wake_ || !watch(socket_.get(), LISTENING) || !watch(wake_.get(), WAKING)) fail("epoll");
  thread_ = std::thread(&Listener::run, this);
}

Listener::~Listener() {
  ending_ = true;
  uint64_t one = 1;
  (void)!write(wake_.get(), &one, sizeof one);
  thread_.join();
  unlink(path_.c_str());
}

bool Listener::watch(int file, uint64_t id) {
  epoll_event event{.events = EPOLLIN, .data = {.u64 = id}};
  return epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, file, &event) == 0;
}

void Listener::run() {
  pthread_setname_np(pthread_self(), "gpuwhisk-tokens");
  while (!ending_) {
    epoll_event events[32];
    int count = epoll_wait(epoll_.get(), events, 32, 200);
    for (int i = 0; i < count; i += 1) {
      uint64_t source = events[i].data.u64 & ~uint64_t{UINT32_MAX};
      uint32_t id = static_cast<uint32_t>(events[i].data.u64);
      if (source == LISTENING) take_connection();
      if (source == CONNECTION) read_hello(id);
      if (source == PROCESS) process_ended(id);
    }
    close_expired();
  }
}

void Listener::take_connection() {
  inject::Descriptor socket(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket) return;
  std::lock_guard guard(lock_);
  if (connections_.size() >= max_connections) return; // Closed: the client goes on without tokens and tries again.
  uint32_t id = next_id_++;
  if (!watch(socket.get(), CONNECTION | id)) return;
  connections_.emplace(id, Connection{.socket = std::move(socket), .deadline_ns = monotonic_ns() + hello_timeout_ns});
}

void Listener::read_hello(uint32_t id) {
  std::lock_guard guard(lock_);
  auto found = connections_.find(id);
  if (found == connections_.end()) return;
  Connection &connection = found->second;
  tokens_hello hello;
  ssize_t length = recv(connection.socket.get(), &hello, sizeof hello, 0);
  ucred peer;
  socklen_t peer_bytes = sizeof peer;
  // One message of the right form; anything else, a second one too, ends the connection.
  if (connection.asked || length != sizeof hello || hello.magic != TOKENS_MAGIC || hello.version != TOKENS_VERSION ||
      strnlen(hello.ticket, sizeof hello.ticket) == sizeof hello.ticket ||
      getsockopt(connection.socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &peer_bytes) < 0) {
    connections_.erase(found);
    return;
  }
  connection.asked = true;
  connection.pid = peer.pid;
  connection.deadline_ns = monotonic_ns() + 2 * hello_timeout_ns;
  if (tell_({.kind = Event::HELLO, .id = id, .pid = peer.pid, .uid = peer.uid, .ticket = hello.ticket})) return;
  answer(connection, TOKENS_FULL, 0, -1);
  connections_.erase(found);
}

void Listener::close_expired() {
  int64_t now_ns = monotonic_ns();
  std::lock_guard guard(lock_);
  std::erase_if(connections_, [&](const auto &entry) { return entry.second.deadline_ns < now_ns; });
}

void Listener::answer(const Connection &connection, tokens_status status, uint32_t process, int page_file) {
  tokens_welcome welcome{.magic = TOKENS_MAGIC, .version = TOKENS_VERSION, .status = status, .process = process};
  iovec part{.iov_base = &welcome, .iov_len = sizeof welcome};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (page_file >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &page_file, sizeof page_file);
  }
  // A client that does not take its answer has gone, which its pidfd will say.
  (void)!sendmsg(connection.socket.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

int Listener::free_process(size_t place) const {
  std::vector<bool> used(TOKENS_PROCESSES);
  for (const auto &[id, process] : processes_)
    if (process.place == place) used[process.index] = true;
  for (int i = 0; i < TOKENS_PROCESSES; i += 1)
    if (!used[static_cast<size_t>(i)]) return i;
  return -1;
}

bool Listener::admit(uint32_t id, size_t place) {
  std::lock_guard guard(lock_);
  auto found = connections_.find(id);
  if (found == connections_.end()) return false;
  Connection connection = std::move(found->second);
  connections_.erase(found);
  // A process that comes again, after a pause of the server or as another program, keeps its part of the page.
  auto known = std::find_if(processes_.begin(), processes_.end(), [&](const auto &entry) {
    return entry.second.place == place && entry.second.pid == connection.pid;
  });
  if (known != processes_.end()) {
    answer(connection, TOKENS_WELCOME, known->second.index, pages_.file(place));
    return true;
  }
  int index = free_process(place);
  if (index < 0) {
    answer(connection, TOKENS_FULL, 0, -1);
    return false;
  }
  inject::Descriptor handle(static_cast<int>(syscall(SYS_pidfd_open, connection.pid, 0)));
  char byte;
  // Still connected, so the id is still that process's.
  bool is_there = handle && recv(connection.socket.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
  uint32_t process = next_id_++;
  if (!is_there || !watch(handle.get(), PROCESS | process)) return false;
  processes_.emplace(process, Process{.handle = std::move(handle),
                                      .place = place,
                                      .index = static_cast<uint32_t>(index),
                                      .pid = connection.pid});
  answer(connection, TOKENS_WELCOME, static_cast<uint32_t>(index), pages_.file(place));
  return true;
}

void Listener::refuse(uint32_t id, tokens_status status) {
  std::lock_guard guard(lock_);
  auto found = connections_.find(id);
  if (found == connections_.end()) return;
  answer(found->second, status, 0, -1);
  connections_.erase(found);
}

void Listener::release(size_t place) {
  std::lock_guard guard(lock_);
  std::erase_if(processes_, [&](const auto &entry) { return entry.second.place == place; });
  if (!pages_.is_taken(place)) return;
  tokens_page &page = pages_.at(place);
  pages_.release(place);
  __atomic_store_n(&page.ended, 1, __ATOMIC_SEQ_CST);
  __atomic_store_n(&page.granted, INT64_MIN, __ATOMIC_SEQ_CST);
  __atomic_fetch_add(&page.tick, 1, __ATOMIC_SEQ_CST);
  futex_wake(&page.tick);
}

void Listener::process_ended(uint32_t id) {
  std::lock_guard guard(lock_);
  auto found = processes_.find(id);
  if (found == processes_.end()) return;
  const Process &process = found->second;
  // What it held of the device's memory is the driver's again.
  __atomic_store_n(&pages_.at(process.place).memory_used[process.index], 0, __ATOMIC_SEQ_CST);
  Event event{.kind = Event::GONE, .id = static_cast<uint32_t>(process.place), .pid = process.pid, .uid = 0, .ticket = {}};
  if (!tell_(event)) return; // Said again at the next turn: a pidfd stays readable.
  processes_.erase(found);
}

} // namespace gpuwhisk::tokens
