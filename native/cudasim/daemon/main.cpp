// The stand-in's daemon: holds the devices of a node for as long as who started it holds its standard input.
#include "server.h"

#include <cstdio>
#include <exception>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

using namespace gpuwhisk::sim;

int main(int count, char **arguments) {
  try {
    Options options = parse_options(count, arguments);
    prctl(PR_SET_TIMERSLACK, 1UL); // Of the wake-ups that are computed.
    // A device does not wait for a processor; where this is not allowed, it does.
    (void)setpriority(PRIO_PROCESS, 0, -15);
    // Ctrl-C in the platform's terminal is for the platform alone, which lets what runs end.
    if (isatty(STDIN_FILENO) == 0) (void)setpgid(0, 0);
    Server server(options);
    std::puts("ready");
    std::fflush(stdout);
    server.run();
    return 0;
  } catch (const OptionsError &error) {
    std::fprintf(stderr, "cudasim: %s\n", error.what());
    return 2;
  } catch (const std::exception &error) {
    std::fprintf(stderr, "cudasim: %s\n", error.what());
    return 1;
  }
}
