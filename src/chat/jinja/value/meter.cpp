#include "chat/jinja/value/meter.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/thread_time.h"

namespace inferno::jinja {
namespace {

constexpr std::int64_t steps_between_checks = 2'048;

}  // namespace

Meter::Meter(const Budgets& budgets, std::string template_name)
    : budgets_(budgets),
      template_name_(std::move(template_name)),
      deadline_(thread_time() + budgets.cpu_time) {}

void Meter::exceeded(const std::string& budget) const {
  fail(ErrorKind::unsupported,
       fmt::format("{}, line {}: the template exceeds {}", template_name_, line_, budget),
       {.why = "templates come with model files, so the cost of one rendering is limited",
        .next = "shorten the conversation, or use another template"});
}

void Meter::check_steps_and_clock() {
  if (steps_ > budgets_.steps) exceeded(fmt::format("its limit of {} steps", budgets_.steps));
  if (thread_time() > deadline_) {
    exceeded(fmt::format("its time limit of {} ms", budgets_.cpu_time.count()));
  }
  next_check_ = std::min(steps_ + steps_between_checks, budgets_.steps + 1);
}

void Meter::allocate(std::size_t bytes) {
  if (bytes > budgets_.heap_bytes || heap_ > budgets_.heap_bytes - bytes) {
    exceeded(fmt::format("its memory limit of {} bytes", budgets_.heap_bytes));
  }
  heap_ += bytes;
}

void Meter::check_output(std::size_t bytes) const {
  if (bytes > budgets_.output_bytes) {
    exceeded(fmt::format("its output limit of {} bytes", budgets_.output_bytes));
  }
}

void Meter::check_depth(int depth, const char* of_what) const {
  if (depth > budgets_.depth) {
    exceeded(fmt::format("its depth limit of {} for {}", budgets_.depth, of_what));
  }
}

void refuse(const Meter& meter, const std::string& problem) {
  fail(ErrorKind::unsupported, fmt::format("{}, line {}: {}", meter.template_name(), meter.line(), problem));
}

}  // namespace inferno::jinja
