// How long the stages of an injection take.
#pragma once

#include "prewarmer.h"

namespace gpuwhisk::inject {

/** Measures consecutive stages. */
class Watch {
public:
  explicit Watch(std::vector<Stage> &stages) : stages_(stages), since_us_(now_us()) {}
  void stage(const char *name) {
    int64_t now = now_us();
    stages_.push_back({name, now - since_us_});
    since_us_ = now;
  }

private:
  std::vector<Stage> &stages_;
  int64_t since_us_;
};

} // namespace gpuwhisk::inject
