// The daemon's socket in its pipe directory, and how a command reaches it: a line each way, then the end.
#ifndef GPUWHISK_CUDASIM_MPS_CONTROL_SERVICE_H
#define GPUWHISK_CUDASIM_MPS_CONTROL_SERVICE_H

#include <functional>
#include <optional>
#include <string>

namespace gpuwhisk::sim {

/** Makes the socket; an old one of a daemon that has died is replaced. Throws std::system_error. */
int listen_at(const std::string &path);

/**
 * Answers commands until `answer` returns nothing or `watched`, another descriptor, is hung up. A caller that says nothing for
 * five seconds is sent away, and one of another user than this process's is refused, unless it is root.
 */
void serve(int listener, int watched, const std::function<std::optional<std::string>(const std::string &)> &answer);

/** What the daemon answers; nothing where there is none. */
std::optional<std::string> send_command(const std::string &path, const std::string &line);

} // namespace gpuwhisk::sim

#endif
