// What clients send to the stand-in's daemon: requests, files with them, and entries of the ring that they share with it.
// The daemon runs on a thread of its own and serves each input as one connection.
#include "../cudasim/channel.h"
#include "../cudasim/daemon/server.h"

#include <cstdlib>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <thread>

using namespace gpuwhisk::sim;

namespace {

constexpr int answer_limit_ms = 10'000;
// Of libFuzzer's alarm, every 6 s by itself. At 20 ms, a wait without a retry after EINTR aborts within the first second.
constexpr suseconds_t alarm_us = 20'000;
const std::string socket_path = "wire"; // In the working folder.

void serve() {
  std::vector<std::string> words{"daemon", "--socket", socket_path, "--gpus", "a100-40x2,h100", "--context-ms", "0"};
  std::vector<char *> arguments;
  for (std::string &word : words) arguments.push_back(word.data());
  // Never destroyed: it serves on while the process exits.
  static Options &options = *new Options(parse_options(static_cast<int>(arguments.size()), arguments.data()));
  static Server &server = *new Server(options);
  server.run();
  std::abort();
}

void start() {
  int input[2]; // Its standard input, which never ends.
  if (pipe(input) < 0 || dup2(input[0], STDIN_FILENO) < 0) std::abort();
  std::thread(serve).detach();
  itimerval often{{0, alarm_us}, {0, alarm_us}};
  if (setitimer(ITIMER_REAL, &often, nullptr) < 0) std::abort();
}

class Bytes {
public:
  Bytes(const uint8_t *data, size_t size) : rest_(reinterpret_cast<const char *>(data), size) {}
  bool empty() const { return rest_.empty(); }
  uint8_t byte() {
    if (rest_.empty()) return 0;
    auto first = static_cast<uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    return first;
  }
  std::string_view take(size_t count) {
    std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(taken.size());
    return taken;
  }

private:
  std::string_view rest_;
};

class Connection {
public:
  Connection() : socket_(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    socket_path.copy(address.sun_path, sizeof address.sun_path - 1);
    for (int tries = 0; connect(socket_, reinterpret_cast<sockaddr *>(&address), sizeof address) < 0; tries++) {
      if (tries == 1000) std::abort();
      usleep(1000);
    }
  }
  ~Connection() {
    if (channel_ != nullptr) munmap(channel_, sizeof(gwsim_channel));
    close(socket_);
  }

  void send(uint32_t operation, std::string_view body, int files = 0) {
    gwsim_header header{operation, ++id_, 0, static_cast<uint32_t>(body.size())};
    std::string message(reinterpret_cast<const char *>(&header), sizeof header);
    send_raw(message.append(body), files);
  }

  void send_raw(std::string_view bytes, int files = 0) {
    iovec part{const_cast<char *>(bytes.data()), bytes.size()};
    alignas(cmsghdr) char control[CMSG_SPACE(4 * sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (files > 0) {
      message.msg_control = control;
      message.msg_controllen = CMSG_SPACE(static_cast<size_t>(files) * sizeof(int));
      cmsghdr *header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(static_cast<size_t>(files) * sizeof(int));
      for (int i = 0; i < files; i++) std::memcpy(CMSG_DATA(header) + i * sizeof(int), &socket_, sizeof socket_);
    }
    (void)sendmsg(socket_, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  }

  /** Becomes one that uses CUDA: maps the channel that comes with the answer. */
  void greet(uint32_t role) {
    gwsim_hello hello{GWSIM_VERSION, role};
    send(GWSIM_HELLO, {reinterpret_cast<const char *>(&hello), sizeof hello});
    int channel = receive(id_);
    if (channel < 0) return;
    void *page = mmap(nullptr, sizeof(gwsim_channel), PROT_READ | PROT_WRITE, MAP_SHARED, channel, 0);
    if (page != MAP_FAILED) channel_ = static_cast<gwsim_channel *>(page);
    close(channel);
  }

  void launch(std::string_view bytes, uint32_t ahead) {
    if (channel_ == nullptr) return;
    gwsim_entry entry{};
    std::memcpy(&entry, bytes.data(), std::min(bytes.size(), sizeof entry));
    uint64_t head = __atomic_load_n(&channel_->head, __ATOMIC_SEQ_CST);
    channel_->ring[head % GWSIM_RING_ENTRIES] = entry;
    __atomic_store_n(&channel_->head, head + ahead, __ATOMIC_SEQ_CST);
    send(GWSIM_RING, {});
  }

  void wait(uint32_t stream, uint64_t sequence) {
    if (channel_ != nullptr) __atomic_store_n(&channel_->streams[stream % GWSIM_STREAMS].awaited, sequence, __ATOMIC_SEQ_CST);
  }

  /** Until the daemon has served everything, or has closed the connection. */
  void settle() {
    gwsim_target target{};
    send(GWSIM_DEVICE, {reinterpret_cast<const char *>(&target), sizeof target});
    receive(id_);
  }

private:
  /** Until there is something to read, or the end of the connection. Aborts if the daemon hangs. */
  void await_answer() {
    uint64_t deadline_ns = monotonic_ns() + answer_limit_ms * 1'000'000ULL;
    pollfd readable{socket_, POLLIN, 0};
    while (true) {
      uint64_t now_ns = monotonic_ns();
      int left_ms = now_ns < deadline_ns ? static_cast<int>((deadline_ns - now_ns) / 1'000'000) : 0;
      int ready = poll(&readable, 1, left_ms);
      if (ready > 0) return;
      // libFuzzer's alarm, which looks for the time limit of an input, interrupts poll with EINTR.
      if (ready == 0 || errno != EINTR) std::abort();
    }
  }

  /** Takes answers up to that of `id`; returns the file that came with it, or -1. */
  int receive(uint32_t id) {
    for (;;) {
      await_answer();
      gwsim_header header;
      alignas(cmsghdr) char control[CMSG_SPACE(4 * sizeof(int))];
      iovec part{&header, sizeof header};
      msghdr message{};
      message.msg_iov = &part;
      message.msg_iovlen = 1;
      message.msg_control = control;
      message.msg_controllen = sizeof control;
      ssize_t got = recvmsg(socket_, &message, MSG_CMSG_CLOEXEC);
      if (got <= 0) return -1;
      int file = -1;
      const cmsghdr *came = CMSG_FIRSTHDR(&message);
      if (came != nullptr && came->cmsg_type == SCM_RIGHTS) std::memcpy(&file, CMSG_DATA(came), sizeof file);
      if (got < static_cast<ssize_t>(sizeof header) || header.id == id) return file;
      if (file >= 0) close(file);
    }
  }

  int socket_;
  uint32_t id_ = 0;
  gwsim_channel *channel_ = nullptr;
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static bool started = (start(), true);
  (void)started;
  Bytes input(data, size);
  Connection client;
  uint8_t first = input.byte();
  if (first != 255) client.greet(first & 1);
  for (int steps = 0; !input.empty() && steps < 64; steps++) {
    uint8_t kind = input.byte();
    switch (kind & 7) {
    case 0:
      client.send_raw(input.take(input.byte()), kind >> 6);
      break;
    case 1:
    case 2:
      client.launch(input.take(sizeof(gwsim_entry)), kind == 255 ? 1U << 20 : 1);
      break;
    case 3:
      client.wait(input.byte(), input.byte());
      break;
    default: {
      uint32_t operation = input.byte() % (GWSIM_IPC_WITHDRAW + 2);
      // An event may be waited for up to an hour.
      if (operation != GWSIM_EVENTS) client.send(operation, input.take(input.byte()), kind >> 6);
    }
    }
  }
  client.settle();
  return 0;
}
