// The commands of the MPS control daemon, version 2.
#ifndef GPUWHISK_CUDASIM_MPS_CONTROL_COMMANDS_H
#define GPUWHISK_CUDASIM_MPS_CONTROL_COMMANDS_H

#include "node.h"

namespace gpuwhisk::sim {

/** One MPS daemon, with its one server. It is registered for as long as its connection lives. */
class MpsControl {
public:
  /** Registers the daemon; `multi_user`: its server takes clients of all users. Throws Refused. */
  MpsControl(gwsim_connection connection, std::vector<Served> served, std::string pipe_directory, bool multi_user);

  /** What a command prints, its last line ended. Throws Refused, or std::runtime_error where the driver is gone. */
  std::string run(const std::string &line);

  bool has_quit() const { return has_quit_; }
  int connection() const { return connection_.descriptor; }

private:
  using Words = std::vector<std::string>;
  std::vector<gwsim_process> clients();
  bool server_runs();
  void start_server();
  void require_server(const std::string &pid);
  std::string status();
  std::string table();
  std::string client_list(const std::string &server);
  std::string device_client_list();
  std::string set_percentage(gwsim_mps_set settings, const std::string &text);
  std::string set_limit(gwsim_mps_set settings, const std::string &device, const std::string &text);
  std::string limit_in(const gwsim_mps_set &settings, const std::string &device) const;
  const Served &find_device(const std::string &name) const;
  std::string terminate(const std::string &server, const std::string &client);
  /** Sets what the next server, or the one that runs, has; nothing where the percentage is 0. Answers what both have. */
  gwsim_mps_settings settings(const gwsim_mps_set &changed = {});
  gwsim_mps_set next();
  gwsim_mps_set of_server(const std::string &pid);

  gwsim_connection connection_;
  std::vector<Served> served_;
  std::string pipe_directory_;
  int priority_ = 0;
  bool has_quit_ = false;
};

} // namespace gpuwhisk::sim

#endif
