#include "runs_socket.h"

#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

namespace gpuwhisk::proxy {
namespace {

constexpr int names[] = {SO_RCVTIMEO,  SO_SNDTIMEO, SO_RCVLOWAT,  SO_SNDBUF,   SO_RCVBUF,  SO_PASSCRED, SO_PASSSEC, SO_PEEK_OFF,
                         SO_LINGER,    SO_PRIORITY, SO_BROADCAST, SO_OOBINLINE, SO_TIMESTAMP, SO_MARK,    SO_KEEPALIVE, SO_REUSEADDR};

} // namespace

bool RunsSocket::is_socket(int descriptor) {
  int type;
  socklen_t length = sizeof type;
  return getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &length) == 0;
}

RunsSocket::RunsSocket(int descriptor) : descriptor_(descriptor) {
  static_assert(sizeof names / sizeof *names == option_count);
  if (descriptor >= 0) before_ = options();
}

RunsSocket::Options RunsSocket::options() const {
  Options all{};
  for (size_t i = 0; i < option_count; i++) {
    socklen_t length = sizeof all[i];
    getsockopt(descriptor_, SOL_SOCKET, names[i], all[i].data(), &length); // One that the kernel lacks stays zero.
  }
  return all;
}

bool RunsSocket::is_clean() const {
  if (descriptor_ < 0) return true;
  int received = 0, sent = 0;
  pollfd state{descriptor_, POLLRDHUP, 0};
  return ioctl(descriptor_, SIOCINQ, &received) == 0 && received == 0 && ioctl(descriptor_, SIOCOUTQ, &sent) == 0 &&
         sent == 0 && poll(&state, 1, 0) == 0 && options() == before_;
}

} // namespace gpuwhisk::proxy
