// The proxy of one pre-warmer, as a runtime of the framed protocol.
//
//   proxy KIND PREWARMER [ARGUMENT]...
//   proxy --checkpoint
//
// The second is what the first starts for checkpoints of a CUDA context, if GPUWHISK_CUDA_KEEP is `checkpoint`.
//
// GPUWHISK_SAVE_TEMPLATE is a file that takes a template of the pre-warmer (inject/template.h), of GPUWHISK_TEMPLATE_BYTES at
// most, and GPUWHISK_FROM_TEMPLATE one of which the program GPUWHISK_RESTORER becomes a copy, in place of the pre-warmer. With
// GPUWHISK_LOAD, a file with an init as JSON, the template is made after its code was loaded; such a pre-warmer and its copies
// serve that function only.
//
// In the environment, folders with a colon between: GPUWHISK_LIBRARIES, whose files functions may map as code, and
// GPUWHISK_SCRATCH, which are emptied after a function, as the working folder is. The rest is the pre-warmer's, except
// GPUWHISK_PREWARM, which says what goes without saying here, and GPUWHISK_RUNS_FD, a socket by which a function that is
// loaded gets runs without the proxy.
//
// A thread reads frames, so that the end of the invoker is seen also in the middle of a run; the main thread is the
// tracer: it starts the pre-warmer, and everything that touches it happens there, in order. While a function serves runs by
// itself, the tracer waits for its stops, and a frame stops it.
#include "../inject/failure.h"
#include "frames.h"
#include "inbox.h"
#include "service.h"

#include <charconv>
#include <cstdio>
#include <thread>
#include <unistd.h>

namespace {

using namespace gpuwhisk;
using proxy::Frame;
using proxy::Inbox;
using proxy::Type;

constexpr int exit_lost = 1;

[[noreturn]] void read_frames(Inbox &inbox) {
  for (;;) {
    Frame frame = proxy::read_frame();
    switch (frame.type) {
    case Type::init:
    case Type::run:
    case Type::unload:
    case Type::check:
    case Type::cancel: // The run goes on for a while; the invoker drops the answer.
      inbox.add(std::move(frame));
      break;
    case Type::bye:
      _exit(0);
    default:
      proxy::end_for_violation("an unexpected type of frame");
    }
  }
}

/** `direct`: runs may come by the socket for runs from now on. */
void answer(const Frame &request, const proxy::Answer &answer, int64_t us, bool direct) {
  Type type = !answer.ok ? Type::error : answer.of_several ? Type::results : Type::result;
  std::string log = request.type == Type::run ? "{\"us\":" + std::to_string(us) : "{";
  if (direct) log += request.type == Type::run ? ",\"direct\":true" : "\"direct\":true";
  proxy::write_frames({{type, request.id, answer.text}, {Type::log, request.id, log + "}"}});
}

/** Whether it can stand in JSON as it is. */
bool is_plain(std::string_view kind) {
  return kind.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:._-/") == kind.npos;
}

/** As it can stand in JSON: some characters are others. */
std::string plain_text(std::string text) {
  for (char &each : text)
    if (each < ' ' || each > '~' || each == '"' || each == '\\') each = '?';
  return text;
}

/** The only word of the process that calls the driver for checkpoints. */
constexpr std::string_view checkpoint_word = "--checkpoint";

constexpr std::string_view libraries_variable = "GPUWHISK_LIBRARIES=", scratch_variable = "GPUWHISK_SCRATCH=",
                           prewarm_variable = "GPUWHISK_PREWARM=", runs_variable = "GPUWHISK_RUNS_FD=",
                           save_variable = "GPUWHISK_SAVE_TEMPLATE=", load_variable = "GPUWHISK_LOAD=",
                           from_variable = "GPUWHISK_FROM_TEMPLATE=", bytes_variable = "GPUWHISK_TEMPLATE_BYTES=",
                           restorer_variable = "GPUWHISK_RESTORER=";

std::vector<std::string> folders_in(std::string_view list) {
  std::vector<std::string> folders;
  while (!list.empty()) {
    size_t length = list.find(':');
    if (length != 0) folders.emplace_back(list.substr(0, length));
    list.remove_prefix(length == std::string_view::npos ? list.size() : length + 1);
  }
  return folders;
}

/** What the command line and the environment say. */
struct Given {
  inject::LaunchOptions launch;
  inject::Policy policy;
  std::vector<std::string> scratch{"."};
};

Given given_by(char **words) {
  Given given;
  given.policy.executable_memory = true; // Functions of any sort may be compiled at run time.
  given.launch.program = *words;
  given.launch.checkpoint = {"/proc/self/exe", std::string(checkpoint_word)};
  for (words++; *words; words++) given.launch.arguments.emplace_back(*words);
  for (char **variable = environ; *variable; variable++) {
    std::string_view pair(*variable);
    if (pair.starts_with(libraries_variable)) {
      given.policy.library_folders = folders_in(pair.substr(libraries_variable.size()));
      for (std::string &folder : given.policy.library_folders)
        if (!folder.ends_with('/')) folder += '/';
    } else if (pair.starts_with(scratch_variable)) {
      std::vector<std::string> named = folders_in(pair.substr(scratch_variable.size()));
      given.scratch.insert(given.scratch.end(), named.begin(), named.end());
    } else if (pair.starts_with(runs_variable)) {
      std::string_view number = pair.substr(runs_variable.size());
      int runs = -1;
      std::from_chars(number.data(), number.data() + number.size(), runs);
      if (proxy::RunsSocket::is_socket(runs)) given.launch.runs = runs;
    } else if (pair.starts_with(save_variable)) {
      given.launch.save_template = pair.substr(save_variable.size());
    } else if (pair.starts_with(load_variable)) {
      given.launch.load = pair.substr(load_variable.size());
    } else if (pair.starts_with(bytes_variable)) {
      std::string_view number = pair.substr(bytes_variable.size());
      std::from_chars(number.data(), number.data() + number.size(), given.launch.most_template_bytes);
    } else if (pair.starts_with(from_variable)) {
      given.launch.from_template = pair.substr(from_variable.size());
    } else if (pair.starts_with(restorer_variable)) {
      given.launch.restorer = pair.substr(restorer_variable.size());
    } else if (!pair.starts_with(prewarm_variable)) {
      given.launch.environment.emplace_back(pair);
    }
  }
  return given;
}

proxy::Answer serve_one(proxy::Service &service, Frame &request) {
  switch (request.type) {
  case Type::init:
    return service.init(std::move(request.payload));
  case Type::run:
    return service.run(request.payload);
  case Type::unload:
    return service.unload(request.payload);
  default:
    return service.check();
  }
}

/** Lets the function serve runs by itself until a request comes, which is left in the inbox, or until it fails. */
void attend(proxy::Service &service, Inbox &inbox) {
  try {
    std::optional<proxy::Failed> failed = service.attend(inbox);
    inbox.watch_no_more();
    if (!failed) return;
    // Without a run, no request tells that the function is gone: another process serves the next one.
    if (failed->run == 0 || service.killed()) _exit(exit_lost);
    proxy::write_frames({{failed->answer.ok ? Type::result : Type::error, failed->run, failed->answer.text},
                         {Type::log, failed->run, "{}"}});
  } catch (const inject::Failure &failure) {
    proxy::end_for_violation(failure.what());
  }
}

[[noreturn]] void serve(std::string_view kind, const Given &given) {
  bool native = kind.starts_with("native:");
  proxy::Service service(given.launch, native, given.policy, given.scratch);
  Inbox inbox;
  std::thread(read_frames, std::ref(inbox)).detach();
  // A native function that serves runs by itself reads no JSON either.
  const char *of_runs = native && given.launch.runs >= 0 ? ",\"directParts\":true" : "";
  const char *of_unload = service.of_function() ? "" : ",\"unload\":true,\"endsLate\":true";
  const std::string cuda = service.cuda(), of_context = cuda == "none" ? "" : ",\"cuda\":\"" + cuda + "\"";
  const std::string unfit = plain_text(service.unfit()), of_template = unfit.empty() ? "" : ",\"unfit\":\"" + unfit + "\"";
  proxy::write_frames({{Type::hello, 0, "{\"version\":1,\"kind\":\"" + std::string(kind) + "\",\"pid\":" +
                                            std::to_string(service.pid()) + of_context + of_template +
                                            ",\"parts\":true,\"batch\":true" + of_unload + of_runs + "}"}});
  while (!service.lost()) {
    if (service.serves() && inbox.watch(service.pid(), service.worker())) {
      attend(service, inbox);
      continue;
    }
    Frame request = inbox.take();
    if (request.type == Type::cancel) continue; // Of a run that has ended.
    if (request.type == Type::init && !service.alive()) {
      proxy::write_frames({{Type::bye, 0, "{}"}}); // No code has run here: another process can load it.
      break;
    }
    int64_t started_us = inject::now_us();
    try {
      proxy::Answer given_answer = serve_one(service, request);
      if (service.killed()) _exit(exit_lost); // The invoker finds out why: the kernel may be about to end this process, too.
      answer(request, given_answer, inject::now_us() - started_us, service.serves());
    } catch (const inject::Failure &failure) {
      proxy::end_for_violation(failure.what());
    }
  }
  _exit(exit_lost); // Without its pre-warmer it is of no use.
}

} // namespace

int main(int count, char **words) {
  if (count == 2 && std::string_view(words[1]) == checkpoint_word) return inject::serve_checkpoints();
  if (count < 3 || !is_plain(words[1])) {
    std::fprintf(stderr, "usage: proxy KIND PREWARMER [ARGUMENT]...\n");
    return 2;
  }
  try {
    serve(words[1], given_by(words + 2));
  } catch (const inject::Failure &failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return 1;
  }
}
