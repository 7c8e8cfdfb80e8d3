// What reading an answer through the library costs above reading the engine's events, as `bench --engine`
// does: CPU time of the reading thread once all tokens are there, because how long it takes to wake a thread
// depends on what else the machine does.   library_cost MODEL
//
// library_cost MODEL ROUNDS compares tokens/s instead, on a machine that does nothing else: the engine's
// events, parts that are read, and parts that go to a callback, in turns.
#include <inferno/inferno.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "service/text_model.h"

namespace {

constexpr int tokens = 256, rounds = 12;
constexpr double max_share = 0.01;  // 0.0034 was measured

double seconds_of(clockid_t clock) {
  timespec time = {};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

// Calls `generated` until that many more tokens than `before` were generated.
void wait_for_tokens(const std::function<std::uint64_t()>& generated, std::uint64_t before) {
  while (generated() < before + tokens) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

std::shared_ptr<inferno::TokenStream> submit(const inferno::TextModel& model) {
  inferno::TextRequest request;
  request.prompt_tokens = std::vector<inferno::TokenId>{1};
  request.reuse_prefix = false;
  request.settings.temperature = 0.0f;
  request.settings.max_tokens = tokens;
  request.settings.ignore_eos = true;
  return model.engine().submit(model.prepare(request).generation);
}

void read_events(inferno::TokenStream& stream) {
  while (true) {
    const auto event = stream.next(std::chrono::milliseconds(1000));
    if (event && std::holds_alternative<inferno::Finished>(*event)) return;
  }
}

double seconds_to_read_events(const inferno::TextModel& model) {
  const auto generated = [&] { return model.engine().stats().generated_tokens; };
  const std::uint64_t before = generated();
  const auto stream = submit(model);
  wait_for_tokens(generated, before);
  const double begin = seconds_of(CLOCK_THREAD_CPUTIME_ID);
  read_events(*stream);
  return seconds_of(CLOCK_THREAD_CPUTIME_ID) - begin;
}

bool read_parts(inferno_answer answer) {
  inferno_part part = {};
  part.size = sizeof part;
  while (part.kind != INFERNO_PART_END) {
    if (inferno_answer_next(answer, -1, &part, nullptr) != INFERNO_OK) return false;
  }
  return true;
}

struct Speed {
  std::vector<double> tokens_per_second = {}, cpu_us = {};  // of each round

  void add(const std::function<void()>& answer) {
    const double begin = seconds_of(CLOCK_MONOTONIC), cpu = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
    answer();
    tokens_per_second.push_back(tokens / (seconds_of(CLOCK_MONOTONIC) - begin));
    cpu_us.push_back((seconds_of(CLOCK_PROCESS_CPUTIME_ID) - cpu) / tokens * 1e6);
  }
};

double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
  return values[values.size() / 2];
}

void compare_speed(const inferno::TextModel& direct, inferno_model model, inferno_request request,
                   int turns) {
  const auto ignore = [](void*, inferno_answer, const inferno_part*) -> std::int32_t { return 0; };
  Speed events, parts, calls;
  for (int i = 0; i < turns; ++i) {
    events.add([&] { read_events(*submit(direct)); });
    inferno_answer answer = {0};
    parts.add([&] {
      inferno_ask(model, request, &answer, nullptr);
      read_parts(answer);
    });
    inferno_answer_free(answer, nullptr);
    calls.add([&] {
      inferno_ask_with_callback(model, request, ignore, nullptr, &answer, nullptr);
      inferno_answer_wait(answer, -1, nullptr, nullptr);
    });
    inferno_answer_free(answer, nullptr);
  }
  std::printf("medians of %d rounds of %d tokens:\n", turns, tokens);
  for (const auto& [name, speed] :
       {std::pair("engine", events), std::pair("parts", parts), std::pair("callback", calls)}) {
    std::printf("%-8s %8.1f tok/s %+6.2f %%, %.1f us of CPU time a token %+6.2f %%\n", name,
                median(speed.tokens_per_second),
                (median(speed.tokens_per_second) / median(events.tokens_per_second) - 1) * 100,
                median(speed.cpu_us), (median(speed.cpu_us) / median(events.cpu_us) - 1) * 100);
  }
}

// Negative if a call failed.
double seconds_to_read_parts(inferno_model model, inferno_request request) {
  const auto generated = [&] {
    inferno_statistics statistics = {};
    statistics.size = sizeof statistics;
    inferno_model_statistics(model, &statistics, nullptr);
    return statistics.generated_tokens;
  };
  const std::uint64_t before = generated();
  inferno_answer answer = {0};
  if (inferno_ask(model, request, &answer, nullptr) != INFERNO_OK) return -1;
  wait_for_tokens(generated, before);
  const double begin = seconds_of(CLOCK_THREAD_CPUTIME_ID);
  const bool is_whole = read_parts(answer);
  const double seconds = seconds_of(CLOCK_THREAD_CPUTIME_ID) - begin;
  inferno_answer_free(answer, nullptr);
  return is_whole ? seconds : -1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) return 2;
  const inferno::TextModel direct({.name = "direct", .path = argv[1]},
                                  {.device = {.device = "cpu", .threads = 1}});
  inferno_load_options options = {};
  options.size = sizeof options;
  options.device = "cpu";
  options.threads = 1;
  inferno_model model = {0};
  inferno_request request = {0};
  const std::string fields = R"({"prompt": [1], "temperature": 0, "ignore_eos": true, "cache_prompt": false,)"
                             R"( "max_tokens": )" +
                             std::to_string(tokens) + "}";
  if (inferno_model_load(argv[1], &options, &model, nullptr) != INFERNO_OK) return 1;
  if (inferno_request_from_json(fields.c_str(), &request, nullptr) != INFERNO_OK) return 1;
  if (argc == 3) {
    compare_speed(direct, model, request, std::atoi(argv[2]));
    inferno_model_unload(model, nullptr);
    inferno_request_free(request, nullptr);
    return 0;
  }
  double events = 1e9, parts = 1e9, process = 1e9;
  for (int i = 0; i < rounds; ++i) {
    const double begin = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
    events = std::min(events, seconds_to_read_events(direct));
    process = std::min(process, seconds_of(CLOCK_PROCESS_CPUTIME_ID) - begin);
    const double found = seconds_to_read_parts(model, request);
    if (found < 0) return 1;
    parts = std::min(parts, found);
  }
  const double share = (parts - events) / process;
  std::printf("each token: %.2f us to read events, %.2f us to read parts, %.1f us in all: %.2f %% more\n",
              events / tokens * 1e6, parts / tokens * 1e6, process / tokens * 1e6, share * 100);
  inferno_model_unload(model, nullptr);
  inferno_request_free(request, nullptr);
  return share < max_share ? 0 : 1;
}
