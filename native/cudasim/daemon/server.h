// Connections, and the loop that serves them. One thread does everything.
#ifndef GPUWHISK_CUDASIM_SERVER_H
#define GPUWHISK_CUDASIM_SERVER_H

#include "descriptor.h"
#include "exports.h"
#include "mps.h"
#include "node.h"
#include "reply.h"
#include "sampler.h"
#include "simulation.h"

#include <map>
#include <string>

namespace gpuwhisk::sim {

class Server {
public:
  /** Listens. Throws std::system_error. */
  explicit Server(const Options &options);
  ~Server();
  Server(const Server &) = delete;
  Server &operator=(const Server &) = delete;

  /** Serves until SIGTERM or SIGINT comes or standard input ends. Throws std::system_error. */
  void run();

private:
  struct Session {
    Descriptor socket, process;
    std::list<Client>::iterator client;
    bool greeted = false;
    // Of a restorer.
    bool is_restorer = false;
    gwsim_checkpoint_state checkpoint{};
    Session *requester = nullptr; // Whose command it carries out.
    gwsim_header command{};
  };
  /** An answer that is not due yet, or an event that is waited for. */
  struct Pending {
    Session *session;
    gwsim_header header;
    uint64_t due_ns;
    Reply reply;
    bool waits_for_event = false;
    gwsim_events_request events{};
  };

  void watch(int descriptor, void *tag);
  void accept_clients();
  void receive(Session &session);
  /** `file` came with the request. */
  bool serve(Session &session, const gwsim_header &header, std::string_view body, Descriptor file);
  Reply answer(Session &session, gwsim_operation operation, std::string_view body);
  Reply greet(Session &session, const gwsim_hello &hello);
  bool send(Session &session, const gwsim_header &header, const Reply &reply, int descriptor = -1);
  void close_session(Session &session);
  /** `process`: a pidfd of the process that the command is for. */
  bool pass_command(Session &session, const gwsim_header &header, const gwsim_checkpoint &command, const Descriptor &process);
  bool finish_command(Session &restorer, int32_t status, const gwsim_checkpoint_state &now);
  int32_t refuse_command(const Session &session, const Session &restorer, const gwsim_checkpoint &command) const;
  void forget_commands(Session &session);
  void answer_pending();
  void advance();
  void drain(Session &session);
  void set_timer();
  uint64_t wall_of(double simulated_ns) const;
  double wake_for_waiters();
  void strike(Client &client, int32_t error);

  const Options &options_;
  Node node_;
  Sampler sampler_;
  Exports exports_;
  Simulation simulation_;
  uint64_t start_ns_;
  Descriptor epoll_, listener_, signals_, timer_;
  std::list<Session> sessions_;
  std::list<Pending> pending_;
  bool ending_ = false;
  bool took_ = false; // Something out of a ring, since the timer was set.
  uint64_t last_work_ns_ = 0;
};

} // namespace gpuwhisk::sim

#endif
