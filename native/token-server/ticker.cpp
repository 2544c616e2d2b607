#include "ticker.h"

#include "futex.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <ctime>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <system_error>

namespace gpuwhisk::tokens {
namespace {

constexpr double ns_per_ms = 1e6;
/** A budget that no client uses up in a period; sums of it and what was taken stay far from an overflow. */
constexpr int64_t no_limit = INT64_MAX / 4;

/** More than any GPU finishes: empty blocks, some 1.5 a ns. What a period uses beyond it is no launch, but a client's lie. */
constexpr int64_t blocks_per_ms = 2'000'000;
/** Requests that run as one, at most (docs/gpu.md). */
constexpr uint32_t largest_batch = 1024;
/** From when on a silence counts: clients measure theirs from the tick before. */
constexpr int64_t silence_ns = TOKENS_SILENCE_NS * 9 / 10;

template <typename T> T load(const T &field) { return __atomic_load_n(&field, __ATOMIC_RELAXED); }
template <typename T, typename V> void store(T &field, V value) {
  __atomic_store_n(&field, static_cast<T>(value), __ATOMIC_RELAXED);
}

/** Ahead of the clients that it serves, as far as the system lets it. */
std::string raise_priority() {
  sched_param first{.sched_priority = 1};
  if (sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &first) == 0) return "fifo";
  if (setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), -15) == 0) return "nice";
  return "usual";
}

} // namespace

int64_t to_blocks(double budget) {
  if (!(budget < static_cast<double>(no_limit))) return std::isnan(budget) ? 1 : no_limit;
  return std::max<int64_t>(1, std::llround(budget));
}

int64_t plausible_blocks(int64_t taken) { return std::clamp<int64_t>(taken, 0, no_limit); }

int64_t monotonic_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

Ticker::Ticker(const Board &board, const Pages &pages, int64_t period_ns)
    : board_(board), pages_(pages), period_ns_(period_ns), timer_(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC)),
      seen_(pages.size()), spinners_(std::thread::hardware_concurrency() / 2) {
  if (!timer_) throw std::system_error(errno, std::generic_category(), "timerfd_create");
  thread_ = std::thread(&Ticker::run, this);
}

Ticker::~Ticker() {
  ending_ = true;
  thread_.join();
}

void Ticker::run() {
  pthread_setname_np(pthread_self(), "gpuwhisk-ticks");
  std::string scheduling = raise_priority();
  {
    std::lock_guard guard(lock_);
    figures_.scheduling = scheduling;
  }
  int64_t due_ns = monotonic_ns() + period_ns_;
  itimerspec times{};
  times.it_value = {.tv_sec = due_ns / 1'000'000'000, .tv_nsec = due_ns % 1'000'000'000};
  times.it_interval = {.tv_sec = period_ns_ / 1'000'000'000, .tv_nsec = period_ns_ % 1'000'000'000};
  if (timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &times, nullptr) < 0) return; // clients go on after a second
  while (!ending_) {
    uint64_t expired = 0;
    if (read(timer_.get(), &expired, sizeof expired) != sizeof expired) continue;
    int64_t now_ns = monotonic_ns();
    due_ns += static_cast<int64_t>(expired) * period_ns_;
    note_jitter(now_ns - (due_ns - period_ns_));
    tick(now_ns, due_ns);
  }
  board_.word(STOPPED) = 1;
  futex_wake(&board_.word(TICK));
}

void Ticker::tick(int64_t now_ns, int64_t due_ns) {
  int32_t before = board_.word(TICK);
  bool late = board_.word(DECIDED) != before;
  size_t held = 0;
  for (size_t place = 0; place < pages_.size(); place += 1)
    if (pages_.is_taken(place) && serve(place, now_ns, due_ns)) held += 1;
  held_ = held;
  // Unsigned, so that it may wrap around.
  board_.word(TICK) = static_cast<int32_t>(static_cast<uint32_t>(before) + 1);
  futex_wake(&board_.word(TICK));
  bool silent = last_tick_ns_ != 0 && now_ns - last_tick_ns_ > silence_ns;
  last_tick_ns_ = now_ns;
  std::lock_guard guard(lock_);
  figures_.ticks += 1;
  if (silent) figures_.silences += 1;
  if (late) figures_.repeated += 1;
}

/** Of the page only the client's own fields are read, and bounded: it may have written anything there. */
bool Ticker::serve(size_t place, int64_t now_ns, int64_t due_ns) {
  tokens_page &page = pages_.at(place);
  Seen &seen = seen_[place];
  uint64_t generation = pages_.generation(place);
  if (seen.generation != generation) {
    seen = {};
    seen.generation = generation;
    seen.cycle_end_ns = now_ns;
  }
  int64_t taken = plausible_blocks(load(page.taken));
  bool held = observe(place, page, seen, taken, now_ns);

  int64_t budget = to_blocks(board_.at(Column::budget, place));
  seen.granted = std::min(taken, seen.granted) + budget;
  store(page.budget, budget);
  __atomic_store_n(&page.granted, seen.granted, __ATOMIC_RELEASE);
  store(page.due_ns, due_ns);
  store(page.may_spin, spinners_ > 0 && held_ <= spinners_);
  store(page.tick_ns, monotonic_ns());
  __atomic_fetch_add(&page.tick, 1, __ATOMIC_SEQ_CST);
  if (__atomic_exchange_n(&page.waiting, 0, __ATOMIC_SEQ_CST) != 0) futex_wake(&page.tick);
  return held;
}

bool Ticker::observe(size_t place, const tokens_page &page, Seen &seen, int64_t taken, int64_t now_ns) {
  int64_t used = std::min(taken, seen.granted);
  uint32_t waits = load(page.waits);
  int64_t most = blocks_per_ms * std::max<int64_t>(1, period_ns_ / 1'000'000);
  board_.at(Column::used, place) = static_cast<double>(std::clamp<int64_t>(used - seen.used, 0, most));
  bool held = waits != seen.waits || taken > seen.granted;
  board_.at(Column::held, place) = held;
  seen.used = used;
  seen.waits = waits;
  observe_cycles(place, page, seen, now_ns);
  return held;
}

/**
 * Cycles follow each other: one that runs, or has just ended, began after the end of the one before. A cycle may have ended up
 * to a period before it was seen.
 */
void Ticker::observe_cycles(size_t place, const tokens_page &page, Seen &seen, int64_t now_ns) {
  auto batch = [](uint32_t told) { return static_cast<double>(std::clamp<uint32_t>(told, 1, largest_batch)); };
  int64_t longest = now_ns - seen.cycle_end_ns + period_ns_;
  uint64_t told = __atomic_load_n(&page.cycles, __ATOMIC_ACQUIRE);
  if (told != seen.told) {
    seen.told = told;
    seen.cycles += 1;
    seen.cycle_end_ns = now_ns;
    seen.cycle_ms = static_cast<double>(std::clamp<int64_t>(load(page.cycle_ns), 0, longest)) / ns_per_ms;
    seen.cycle_batch = batch(load(page.cycle_batch));
    longest = period_ns_;
  }
  board_.at(Column::cycleMs, place) = seen.cycle_ms;
  board_.at(Column::cycleBatch, place) = seen.cycle_batch;
  board_.at(Column::cycles, place) = static_cast<double>(seen.cycles);
  int64_t since = load(page.running_since_ns);
  bool runs = since > 0 && since < now_ns;
  board_.at(Column::runningMs, place) = runs ? static_cast<double>(std::min(now_ns - since, longest)) / ns_per_ms : 0;
  board_.at(Column::runningBatch, place) = batch(load(page.running_batch));
}

void Ticker::note_jitter(int64_t jitter_ns) {
  std::lock_guard guard(lock_);
  jitter_ns_[figures_.ticks % remembered] = std::abs(jitter_ns);
}

TickerFigures Ticker::figures() {
  std::unique_lock guard(lock_);
  TickerFigures figures = figures_;
  std::vector<int64_t> sorted(jitter_ns_.begin(), jitter_ns_.begin() + std::min<uint64_t>(figures.ticks, remembered));
  guard.unlock();
  std::sort(sorted.begin(), sorted.end());
  if (sorted.empty()) return figures;
  figures.jitter50 = static_cast<double>(sorted[sorted.size() / 2]) / ns_per_ms;
  figures.jitter99 = static_cast<double>(sorted[sorted.size() * 99 / 100]) / ns_per_ms;
  figures.jitter_max = static_cast<double>(sorted.back()) / ns_per_ms;
  return figures;
}

} // namespace gpuwhisk::tokens
