// The stand-in's nvidia-cuda-mps-control: with -d (or -f, in the foreground) the daemon of the devices that
// CUDA_VISIBLE_DEVICES names, without it a client that sends the commands on its standard input to the daemon of its pipe
// directory. With -multiuser-server its server takes clients of all users at once.
#include "commands.h"
#include "service.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <iostream>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

using namespace gpuwhisk::sim;

namespace {

constexpr char usage[] = "Usage: nvidia-cuda-mps-control [[-multiuser-server] (-d | -f)]";

std::string directory_in(const char *variable, const char *fallback) {
  const char *value = getenv(variable);
  return value == nullptr || *value == '\0' ? fallback : value;
}

std::string socket_path() { return directory_in("CUDA_MPS_PIPE_DIRECTORY", "/tmp/nvidia-mps") + "/" + GWSIM_MPS_MARK; }

/** Programs like this one keep their directories; the real ones make them too. */
void require_directory(const std::string &path) {
  if (mkdir(path.c_str(), 0755) != 0 && errno != EEXIST) throw Refused("Cannot make " + path + ": " + strerror(errno));
}

MpsControl start(const std::string &pipes, bool multi_user) {
  gwsim_connection connection{};
  gwsim_node node{};
  if (gwsim_connect(&connection, GWSIM_MONITOR, &node, nullptr) != GWSIM_OK) throw Refused("There is no simulated driver.");
  std::vector<Served> served = served_devices(connection, node.device_count, getenv("CUDA_VISIBLE_DEVICES"));
  return MpsControl(connection, std::move(served), pipes, multi_user);
}

/**
 * Goes on in a child with a session of its own; the caller waits in the parent, until the child has said that it serves or
 * why not, and ends. The child gets the descriptor to say so on.
 */
int detach() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw Refused("No pipe.");
  pid_t child = fork();
  if (child < 0) throw Refused("Cannot fork.");
  if (child == 0) {
    close(ends[0]);
    setsid();
    return ends[1];
  }
  close(ends[1]);
  std::string said;
  char part[256];
  for (ssize_t got; (got = read(ends[0], part, sizeof part)) > 0;) said.append(part, static_cast<size_t>(got));
  if (said == "ready") _exit(0);
  std::cerr << (said.empty() ? "The daemon has ended." : said) << std::endl;
  _exit(1);
}

/** Nothing of the caller's input and output is kept; the log takes what is said from now on. */
void keep_log(const std::string &path) {
  int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  int file = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  dup2(nothing, 0);
  dup2(file >= 0 ? file : nothing, 1);
  dup2(file >= 0 ? file : nothing, 2);
}

void say(int descriptor, const std::string &text) {
  if (descriptor < 0) return;
  if (write(descriptor, text.data(), text.size()) < 0) std::perror("caller");
  close(descriptor);
}

void serve_commands(MpsControl &control, int listener) {
  serve(listener, control.connection(), [&](const std::string &line) -> std::optional<std::string> {
    std::string text;
    try {
      text = control.run(line);
    } catch (const Refused &refused) {
      text = std::string(refused.what()) + "\n";
    } catch (const std::exception &) {
      return std::nullopt; // The driver is gone, and the daemon goes too.
    }
    if (control.has_quit()) return std::nullopt;
    return text;
  });
}

void run_daemon(bool in_background, bool multi_user) {
  std::string pipes = directory_in("CUDA_MPS_PIPE_DIRECTORY", "/tmp/nvidia-mps");
  std::string logs = directory_in("CUDA_MPS_LOG_DIRECTORY", "/var/log/nvidia-mps");
  require_directory(pipes);
  require_directory(logs);
  if (send_command(socket_path(), "get_server_list")) throw Refused("An instance of this daemon is already running");
  // Before it connects: the registration belongs to the process that made it.
  int caller = in_background ? detach() : -1;
  try {
    MpsControl control = start(pipes, multi_user);
    int listener = listen_at(socket_path());
    if (in_background) keep_log(logs + "/control.log");
    std::printf("Started with pid %d\n", getpid());
    std::fflush(stdout);
    say(std::exchange(caller, -1), "ready");
    serve_commands(control, listener);
    unlink(socket_path().c_str());
  } catch (const std::exception &error) {
    say(caller, error.what());
    throw;
  }
}

int send_commands() {
  for (std::string line; std::getline(std::cin, line);) {
    bool quits = line.starts_with("quit");
    std::optional<std::string> text = send_command(socket_path(), line);
    if (!text) {
      std::cout << "Cannot find MPS control daemon process\n";
      return 1;
    }
    std::cout << *text << std::flush;
    if (quits) return 0;
  }
  return 0;
}

} // namespace

int main(int count, char **arguments) {
  try {
    if (count == 1) return send_commands();
    bool in_background = false, in_foreground = false, multi_user = false;
    for (int i = 1; i < count; i++) {
      std::string option = arguments[i];
      in_background |= option == "-d";
      in_foreground |= option == "-f";
      multi_user |= option == "-multiuser-server";
      if (option != "-d" && option != "-f" && option != "-multiuser-server") throw Refused(usage);
    }
    if (in_background == in_foreground) throw Refused(usage);
    run_daemon(in_background, multi_user);
    return 0;
  } catch (const std::exception &error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
