// What the core throws. It never crosses a C or N-API boundary: the proxy and the addon catch it there.
#pragma once

#include <stdexcept>
#include <string>

namespace gpuwhisk::inject {

/**
 * Something that could not be done. `code` is for programs: "not-ready", "gone" (the process has ended),
 * "payload", "policy", "unrestorable" (replace the process) or "system"; what() is for people.
 */
class Failure : public std::runtime_error {
public:
  Failure(std::string code, const std::string &message) : std::runtime_error(message), code(std::move(code)) {}
  const std::string code;
};

/** A failed system call: "<what>: <text of errno>"; ESRCH becomes "gone". */
[[noreturn]] void throw_errno(const std::string &what);

} // namespace gpuwhisk::inject
