#include "service.h"

#include <cerrno>
#include <cstring>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <system_error>
#include <unistd.h>

namespace gpuwhisk::sim {
namespace {

constexpr timeval patience{5, 0};
constexpr size_t most_bytes = 64 * 1024;

[[noreturn]] void fail(const char *what) { throw std::system_error(errno, std::generic_category(), what); }

int make_socket(const std::string &path, sockaddr_un &address) {
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    errno = ENAMETOOLONG;
    return -1;
  }
  std::strcpy(address.sun_path, path.c_str());
  int made = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (made < 0) return -1;
  setsockopt(made, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  setsockopt(made, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  return made;
}

std::optional<std::string> read_all(int descriptor) {
  std::string text;
  char part[4096];
  for (;;) {
    ssize_t got = read(descriptor, part, sizeof part);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 || text.size() > most_bytes) return std::nullopt;
    if (got == 0) return text;
    text.append(part, static_cast<size_t>(got));
  }
}

bool write_all(int descriptor, const std::string &text) {
  for (size_t sent = 0; sent < text.size();) {
    ssize_t done = send(descriptor, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return false;
    sent += static_cast<size_t>(done);
  }
  return true;
}

/** Clients connect to the same directory, as other users: they are not to set their own share. */
bool may_command(int caller) {
  ucred who{};
  socklen_t length = sizeof who;
  if (getsockopt(caller, SOL_SOCKET, SO_PEERCRED, &who, &length) != 0) return false;
  return who.uid == geteuid() || who.uid == 0;
}

} // namespace

int listen_at(const std::string &path) {
  sockaddr_un address{};
  int listener = make_socket(path, address);
  if (listener < 0) fail("socket");
  unlink(path.c_str());
  if (bind(listener, reinterpret_cast<sockaddr *>(&address), sizeof address) != 0 || listen(listener, 64) != 0) fail("bind");
  return listener;
}

void serve(int listener, int watched, const std::function<std::optional<std::string>(const std::string &)> &answer) {
  for (;;) {
    pollfd both[] = {{listener, POLLIN, 0}, {watched, POLLRDHUP, 0}};
    if (poll(both, 2, -1) < 0 && errno != EINTR) fail("poll");
    if (both[1].revents & (POLLRDHUP | POLLHUP | POLLERR)) return;
    if (!(both[0].revents & POLLIN)) continue;
    int caller = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (caller < 0) continue; // Gone again.
    setsockopt(caller, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(caller, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    std::optional<std::string> line = read_all(caller), text;
    if (line) text = may_command(caller) ? answer(*line) : "Permission denied: another user's daemon\n";
    if (text) write_all(caller, *text);
    close(caller);
    if (line && !text) return;
  }
}

std::optional<std::string> send_command(const std::string &path, const std::string &line) {
  sockaddr_un address{};
  int descriptor = make_socket(path, address);
  if (descriptor < 0) return std::nullopt;
  std::optional<std::string> text;
  if (connect(descriptor, reinterpret_cast<sockaddr *>(&address), sizeof address) == 0 && write_all(descriptor, line) &&
      shutdown(descriptor, SHUT_WR) == 0)
    text = read_all(descriptor);
  close(descriptor);
  return text;
}

} // namespace gpuwhisk::sim
