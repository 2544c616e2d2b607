#include "commands.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <fstream>
#include <sstream>
#include <unistd.h>

namespace gpuwhisk::sim {
namespace {

std::string lines_of(const std::vector<gwsim_process> &processes) {
  std::string text;
  for (const gwsim_process &one : processes) text += std::to_string(one.pid) + "\n";
  return text;
}

std::string command_of(int32_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/comm");
  std::string name;
  std::getline(file, name);
  return name;
}

int32_t pid_in(const std::string &text) {
  int32_t pid = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), pid);
  if (error != std::errc() || end != text.data() + text.size() || pid <= 0) throw Refused("Invalid PID: " + text);
  return pid;
}

std::string percentage_text(const gwsim_mps_set &settings) { return std::to_string(settings.percent) + ".0\n"; }

/** `512M`, `2G`; a number alone is bytes. */
uint64_t bytes_in(const std::string &text) {
  uint64_t number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string unit(end, text.data() + text.size());
  if (error != std::errc()) throw Refused("Invalid limit: " + text);
  if (unit == "G" || unit == "GB") return number << 30;
  if (unit == "M" || unit == "MB") return number << 20;
  if (unit == "K" || unit == "KB") return number << 10;
  if (unit.empty()) return number;
  throw Refused("Invalid limit: " + text);
}

} // namespace

MpsControl::MpsControl(gwsim_connection connection, std::vector<Served> served, std::string pipe_directory,
                       bool multi_user)
    : connection_(connection), served_(std::move(served)), pipe_directory_(std::move(pipe_directory)) {
  gwsim_mps_start start{};
  if (served_.empty()) throw Refused("No device is visible.");
  if (pipe_directory_.size() >= sizeof start.pipe_directory) throw Refused("The path of the pipe directory is too long.");
  std::strcpy(start.pipe_directory, pipe_directory_.c_str());
  for (const Served &one : served_) start.devices |= 1u << one.index;
  start.instance = served_.front().instance;
  start.multi_user = multi_user ? 1 : 0;
  ask(connection_, GWSIM_MPS_START, &start, sizeof start, nullptr, 0, "start of an MPS daemon");
}

std::vector<gwsim_process> MpsControl::clients() {
  gwsim_mps_target target{};
  std::strcpy(target.pipe_directory, pipe_directory_.c_str());
  gwsim_processes processes{};
  ask(connection_, GWSIM_MPS_CLIENTS, &target, sizeof target, &processes, sizeof processes, "clients");
  return {processes.processes, processes.processes + std::min<uint32_t>(processes.count, GWSIM_MAX_PROCESSES)};
}

/** The first client, or a command, starts it. It is this process: a stand-in has nothing to isolate. */
bool MpsControl::server_runs() { return settings().has_server != 0; }

void MpsControl::require_server(const std::string &pid) {
  if (!server_runs() || pid_in(pid) != getpid()) throw Refused("Server " + pid + " not found");
}

/** After a fault no client is accepted until the present ones are gone. */
std::string MpsControl::status() {
  std::vector<gwsim_process> all = clients();
  return std::ranges::any_of(all, [](const gwsim_process &one) { return one.faulted != 0; }) ? "FAULT\n" : "ACTIVE\n";
}

std::string MpsControl::client_list(const std::string &server) {
  require_server(server);
  return lines_of(clients());
}

std::string MpsControl::device_client_list() {
  std::string text;
  std::vector<gwsim_process> all = clients();
  for (const Served &one : served_) text += one.uuid + "\n" + lines_of(all);
  return text;
}

std::string MpsControl::table() {
  std::string text = "PID\tID\tSERVER\tDEVICE\tNAMESPACE\tCOMMAND\n";
  int id = 0;
  for (const gwsim_process &one : clients())
    text += std::to_string(one.pid) + "\t" + std::to_string(id++) + "\t" + std::to_string(getpid()) + "\t" +
            served_.front().uuid + "\t0\t" + command_of(one.pid) + "\n";
  return text;
}

gwsim_mps_settings MpsControl::settings(const gwsim_mps_set &changed) {
  gwsim_mps_settings answer{};
  ask(connection_, GWSIM_MPS_SET, &changed, sizeof changed, &answer, sizeof answer, "settings");
  return answer;
}

gwsim_mps_set MpsControl::next() {
  gwsim_mps_set set = settings().next;
  set.of_server = 0;
  return set;
}

gwsim_mps_set MpsControl::of_server(const std::string &pid) {
  require_server(pid);
  gwsim_mps_set set = settings().server;
  set.of_server = 1;
  return set;
}

std::string MpsControl::set_percentage(gwsim_mps_set changed, const std::string &text) {
  double percent = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), percent);
  if (error != std::errc() || end != text.data() + text.size() || percent < 1 || percent > 100)
    throw Refused("Invalid percentage: " + text);
  changed.percent = static_cast<uint32_t>(percent);
  settings(changed);
  return percentage_text(changed);
}

/** By its place in the list that the daemon was started with, or by UUID. */
const Served &MpsControl::find_device(const std::string &name) const {
  for (size_t i = 0; i < served_.size(); i++)
    if (name == std::to_string(i) || name == served_[i].uuid) return served_[i];
  throw Refused("Invalid device: " + name);
}

std::string MpsControl::set_limit(gwsim_mps_set changed, const std::string &device, const std::string &text) {
  changed.limit_bytes[find_device(device).index] = bytes_in(text);
  settings(changed);
  return "";
}

void MpsControl::start_server() {
  if (server_runs()) return;
  gwsim_mps_set first = next();
  first.of_server = 1;
  settings(first);
}

std::string MpsControl::limit_in(const gwsim_mps_set &set, const std::string &device) const {
  uint64_t bytes = set.limit_bytes[find_device(device).index];
  return bytes == 0 ? "Unlimited\n" : std::to_string(bytes >> 20) + "M\n";
}

std::string MpsControl::terminate(const std::string &server, const std::string &client) {
  require_server(server);
  gwsim_mps_target target{};
  std::strcpy(target.pipe_directory, pipe_directory_.c_str());
  target.pid = pid_in(client);
  ask(connection_, GWSIM_MPS_TERMINATE, &target, sizeof target, nullptr, 0, ("client " + client).c_str());
  return "";
}

std::string MpsControl::run(const std::string &line) {
  std::istringstream text(line);
  Words words;
  for (std::string word; text >> word;) words.push_back(word);
  if (words.empty()) return "";
  const std::string command = words.front();
  const auto is = [&](const char *name, size_t arguments) { return command == name && words.size() == arguments + 1; };
  if (is("get_server_list", 0)) return server_runs() ? std::to_string(getpid()) + "\n" : "";
  if (is("get_server_status", 1)) return require_server(words[1]), status();
  if (is("start_server", 2) && words[1] == "-uid") return start_server(), "";
  if (is("get_client_list", 1)) return client_list(words[1]);
  if (command == "get_device_client_list") return device_client_list();
  if (is("ps", 0)) return table();
  if (command == "device_query") {
    std::string rows;
    for (size_t i = 0; i < served_.size(); i++) rows += std::to_string(i) + "\t" + served_[i].uuid + "\n";
    return rows;
  }
  if (is("get_default_active_thread_percentage", 0)) return percentage_text(next());
  if (is("set_default_active_thread_percentage", 1)) return set_percentage(next(), words[1]);
  if (is("get_active_thread_percentage", 1)) return percentage_text(of_server(words[1]));
  if (is("set_active_thread_percentage", 2)) return set_percentage(of_server(words[1]), words[2]);
  if (is("get_default_device_pinned_mem_limit", 1)) return limit_in(next(), words[1]);
  if (is("set_default_device_pinned_mem_limit", 2)) return set_limit(next(), words[1], words[2]);
  if (is("get_device_pinned_mem_limit", 2)) return limit_in(of_server(words[1]), words[2]);
  if (is("set_device_pinned_mem_limit", 3)) return set_limit(of_server(words[1]), words[2], words[3]);
  if (is("terminate_client", 2)) return terminate(words[1], words[2]);
  if (is("set_default_client_priority", 1)) return priority_ = words[1] == "1", "";
  if (is("get_default_client_priority", 0)) return std::to_string(priority_) + "\n";
  if (command == "quit") return has_quit_ = true, "";
  throw Refused("Unknown command: " + line);
}

} // namespace gpuwhisk::sim
