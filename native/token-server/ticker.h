// The thread that keeps the period: it publishes every client's budget, wakes those that wait, and says what was used.
#pragma once

#include "board.h"
#include "pages.h"

#include <array>
#include <mutex>
#include <string>
#include <thread>

namespace gpuwhisk::tokens {

int64_t monotonic_ns();

/** A budget as JavaScript has it, in whole blocks: at least one, and for Infinity more than anybody takes. */
int64_t to_blocks(double budget);

/** Blocks of `taken` as far as a client can have launched so many. */
int64_t plausible_blocks(int64_t taken);

/** How well the period was kept. Times in ms, over the last periods. */
struct TickerFigures {
  uint64_t ticks = 0;
  /** Periods whose decision came too late, so that the one before was repeated. */
  uint64_t repeated = 0;
  /** Silences of which a client may have made itself independent. */
  uint64_t silences = 0;
  /** Deviation from the schedule: median, 99th percentile, largest. */
  double jitter50 = 0, jitter99 = 0, jitter_max = 0;
  /** "fifo", "nice" or "usual": how the thread is scheduled. */
  std::string scheduling;
};

class Ticker {
public:
  /** Starts the thread. Throws std::system_error. */
  Ticker(const Board &board, const Pages &pages, int64_t period_ns);
  ~Ticker();
  Ticker(const Ticker &) = delete;
  Ticker &operator=(const Ticker &) = delete;

  TickerFigures figures();

private:
  /** What the thread remembers of a place. */
  struct Seen {
    uint64_t generation = 0;
    int64_t granted = 0;
    int64_t used = 0;
    uint32_t waits = 0;
    /** The page's count of cycles; how often it changed, and when it did so last: at first when the place was taken. */
    uint64_t told = 0, cycles = 0;
    int64_t cycle_end_ns = 0;
    double cycle_ms = 0, cycle_batch = 0;
  };
  void observe_cycles(size_t place, const tokens_page &page, Seen &seen, int64_t now_ns);
  void run();
  void tick(int64_t now_ns, int64_t due_ns);
  /** Returns whether a launch of the client was held back. */
  bool serve(size_t place, int64_t now_ns, int64_t due_ns);
  bool observe(size_t place, const tokens_page &page, Seen &seen, int64_t taken, int64_t now_ns);
  void note_jitter(int64_t jitter_ns);

  static constexpr size_t remembered = 4096;

  Board board_;
  const Pages &pages_;
  int64_t period_ns_;
  inject::Descriptor timer_;
  std::vector<Seen> seen_;
  /** Clients that may spin at a time, so that most processors stay free of them; beyond it none does. */
  size_t spinners_;
  size_t held_ = 0; // in the last period
  int64_t last_tick_ns_ = 0;
  std::mutex lock_; // of what follows
  std::array<int64_t, remembered> jitter_ns_{};
  TickerFigures figures_;
  std::atomic<bool> ending_ = false;
  std::thread thread_;
};

} // namespace gpuwhisk::tokens
