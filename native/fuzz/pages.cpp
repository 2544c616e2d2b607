// The token server with a hostile client: its hello, and everything that it writes into its page, while the ticking thread
// reads it. Another client beside it must get its tokens as ever.
#include "../token-server/listener.h"
#include "../token-server/pages.h"
#include "../token-server/ticker.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <sys/socket.h>
#include <sys/un.h>
#include <vector>

using namespace gpuwhisk::tokens;

namespace {

constexpr size_t places = 2, hostile = 0, other = 1;
constexpr int64_t period_ns = 100'000, budget = 1000;
constexpr int tick_limit_ms = 10'000;

void demand(bool holds) {
  if (!holds) std::abort();
}

struct Served {
  std::vector<char> memory = std::vector<char>(Board::bytes(places));
  Board board{memory.data(), places};
  Pages pages{places};
  std::string path = "pages"; // In the working folder.
  Listener listener{path, pages, [](const Event &event) { return event.id % 2 == 0; }};
  Ticker ticker{board, pages, period_ns};

  Served() {
    for (size_t place : {hostile, other}) {
      board.at(Column::budget, place) = budget;
      pages.take(place, {.memory_cap = 1 << 20, .context_bytes = 0, .granted = budget, .device = {}}, monotonic_ns());
    }
  }

  void await_ticks(int count) {
    int32_t before = board.word(TICK);
    int64_t deadline_ns = monotonic_ns() + tick_limit_ms * 1'000'000LL;
    while (board.word(TICK) - before < count) {
      demand(monotonic_ns() < deadline_ns);
      usleep(100);
    }
  }
};

void say_hello(const std::string &path, const uint8_t *data, size_t size) {
  int file = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  if (connect(file, reinterpret_cast<sockaddr *>(&address), sizeof address) == 0)
    (void)!send(file, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
  close(file);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static Served &served = *new Served();
  if (size == 0) return 0;
  if (data[0] == 'h') {
    say_hello(served.path, data + 1, size - 1);
    return 0;
  }
  tokens_page &page = served.pages.at(hostile), &neighbour = served.pages.at(other);
  size_t offset = data[0] % 64 * 8;
  std::memcpy(reinterpret_cast<char *>(&page) + offset, data + 1, std::min(size - 1, sizeof page - offset));
  int64_t granted = __atomic_load_n(&neighbour.granted, __ATOMIC_SEQ_CST);
  __atomic_store_n(&neighbour.taken, granted, __ATOMIC_SEQ_CST);
  served.await_ticks(2);
  int64_t next = __atomic_load_n(&neighbour.granted, __ATOMIC_SEQ_CST);
  demand(next >= granted + budget && next <= granted + 2 * budget);
  for (size_t column = 0; column < column_count; column++) {
    double value = served.board.at(static_cast<Column>(column), hostile);
    demand(std::isfinite(value) && value >= 0);
  }
  return 0;
}
