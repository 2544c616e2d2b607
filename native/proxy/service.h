// One action in one pre-warmer: what the frames init and run ask for.
#pragma once

#include "../inject/prewarmer.h"

#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace gpuwhisk::proxy {

/** The answer to an init or a run: JSON if `ok`, otherwise the text of the error. */
struct Answer {
  bool ok;
  std::string text;
};

class Service {
public:
  /**
   * Starts the pre-warmer. Throws inject::Failure. `shared_objects`: the code must be one; otherwise it is for an
   * interpreter, which words its refusals itself. `library_folders`: as in inject::Policy.
   */
  Service(inject::LaunchOptions launch, bool shared_objects, std::vector<std::string> library_folders);

  Answer init(std::string_view payload);
  Answer run(std::string_view payload);

private:
  Answer inject(const inject::CallOptions *first);
  Answer attempt(const std::function<inject::Outcome()> &work);
  Answer explain(const inject::Outcome &outcome) const;

  inject::LaunchOptions launch_;
  inject::InjectOptions options_;
  std::unique_ptr<inject::Prewarmer> prewarmer_;
  bool shared_objects_;
  std::string code_; // Empty before init.
};

} // namespace gpuwhisk::proxy
