// Guards the C++ stack: every level of evaluation counts, so that nested source times nested macro calls
// stays within a few megabytes of stack.
#pragma once

#include "chat/jinja/interpreter.h"

namespace inferno::jinja {

class Interpreter::Frame {
 public:
  explicit Frame(Interpreter& interpreter) : interpreter_(interpreter) {
    // A macro call passes through about a dozen levels: loop, condition, output, call, filter.
    constexpr int levels_per_depth = 16;
    const Meter& meter = interpreter.meter_;
    meter.check_depth(interpreter.frames_ / levels_per_depth, "evaluation");
    ++interpreter.frames_;
  }
  ~Frame() { --interpreter_.frames_; }
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;

 private:
  Interpreter& interpreter_;
};

}  // namespace inferno::jinja
