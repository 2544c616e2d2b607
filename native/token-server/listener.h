// The thread that clients register with. It answers no client by itself: places are assigned by the caller of its functions.
#pragma once

#include "pages.h"

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>

namespace gpuwhisk::tokens {

/** Questions and reports to the deciding side. */
struct Event {
  enum Kind { HELLO, GONE } kind;
  /** Of the connection that waits for an answer, or the place whose process is gone. */
  uint32_t id;
  int pid;
  unsigned uid;
  std::string ticket;
};

class Listener {
public:
  /** Called on the listener's thread; false: no more can be taken, and the client is told so. */
  using Tell = std::function<bool(Event)>;

  /** Listens at `path`, where nothing else may lie than an old socket. Throws std::system_error. */
  Listener(const std::string &path, Pages &pages, Tell tell);
  ~Listener();
  Listener(const Listener &) = delete;
  Listener &operator=(const Listener &) = delete;

  /** Gives the page of `place` to the process that waits. False: it has gone, or the place has no room for it. */
  bool admit(uint32_t id, size_t place);
  void refuse(uint32_t id, tokens_status status);
  /** Ends the tokens of a place: its processes get an error at their next launch. */
  void release(size_t place);

private:
  static constexpr size_t max_connections = 256;
  static constexpr int64_t hello_timeout_ns = 1'000'000'000;

  /** A connection before its answer. */
  struct Connection {
    inject::Descriptor socket;
    int64_t deadline_ns;
    int pid = 0;
    bool asked = false;
  };
  /** A process in a place, known by its pidfd so that nothing of the process must stay open. */
  struct Process {
    inject::Descriptor handle;
    size_t place;
    uint32_t index;
    int pid;
  };
  void run();
  void take_connection();
  void read_hello(uint32_t id);
  void close_expired();
  void process_ended(uint32_t id);
  bool watch(int file, uint64_t id);
  void answer(const Connection &connection, tokens_status status, uint32_t process, int page_file);
  int free_process(size_t place) const;

  std::string path_;
  Pages &pages_;
  Tell tell_;
  inject::Descriptor socket_, epoll_, wake_;
  std::mutex lock_; // of what follows
  std::map<uint32_t, Connection> connections_;
  std::map<uint32_t, Process> processes_;
  uint32_t next_id_ = 1;
  std::atomic<bool> ending_ = false;
  std::thread thread_;
};

} // namespace gpuwhisk::tokens
