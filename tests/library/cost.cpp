// What reading answers through the library costs above reading the engine's events, as `bench --engine` does,
// for one request and for 32 at once. Both ways ask the same model, and one thread reads.
//
// library_cost MODEL: CPU time of the reading thread once all tokens are there, because how long it takes to
// wake a thread depends on what else the machine does. Fails if it is more than 1 % of the CPU time of all.
//
// library_cost MODEL ROUNDS: tokens/s, CPU time of all threads and how often they wait, while tokens come:
// events, parts, and parts that go to a callback, in changing order. Each round is compared with the events
// of the same round.
#include <inferno/inferno.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
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

#include "library/handles.h"
#include "library/model.h"

namespace {

constexpr int tokens = 256;  // of an answer
constexpr int many = 32;     // requests
constexpr double max_share = 0.01;

double seconds_of(clockid_t clock) {
  timespec time = {};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

// Of one thread that computes, so that every way to read has the same number of them.
class Scene {
 public:
  explicit Scene(const char* path) {
    inferno_load_options options = {};
    options.size = sizeof options;
    options.device = "cpu";
    options.threads = 1;
    options.parallel = many;
    const std::string fields =
        R"({"prompt": [1], "temperature": 0, "ignore_eos": true, "cache_prompt": false, "max_tokens": )" +
        std::to_string(tokens) + "}";
    inferno_error error = {};
    error.size = sizeof error;
    is_ready_ = inferno_model_load(path, &options, &model_, &error) == INFERNO_OK &&
                inferno_request_from_json(fields.c_str(), &request_, &error) == INFERNO_OK;
    if (!is_ready_) std::fprintf(stderr, "%s: %s\n", error.what, error.why);
  }
  ~Scene() {
    inferno_model_unload(model_, nullptr);
    inferno_request_free(request_, nullptr);
  }
  Scene(const Scene&) = delete;
  Scene& operator=(const Scene&) = delete;

  bool is_ready() const { return is_ready_; }
  inferno_model model() const { return model_; }
  inferno_request request() const { return request_; }
  std::uint64_t generated() const {
    inferno_statistics statistics = {};
    statistics.size = sizeof statistics;
    inferno_model_statistics(model_, &statistics, nullptr);
    return statistics.generated_tokens;
  }

 private:
  inferno_model model_ = {0};
  inferno_request request_ = {0};
  bool is_ready_ = false;
};

// The events of answers, an event of each in turn.
class Events {
 public:
  Events(const Scene& scene, int requests) {
    const auto use = inferno::library::object_of(scene.model())->use();
    inferno::TextRequest request;
    request.prompt_tokens = std::vector<inferno::TokenId>{1};
    request.reuse_prefix = false;
    request.settings.temperature = 0.0f;
    request.settings.max_tokens = tokens;
    request.settings.ignore_eos = true;
    for (int i = 0; i < requests; ++i) {
      streams_.push_back(use->engine().submit(use->prepare(request).generation));
    }
  }

  void read() {
    while (!streams_.empty()) {
      std::erase_if(streams_, [](const auto& stream) {
        const auto event = stream->next(std::chrono::milliseconds(1000));
        return event && !std::holds_alternative<inferno::Sampled>(*event);
      });
    }
  }

 private:
  std::vector<std::shared_ptr<inferno::TokenStream>> streams_;
};

// The parts of answers, a part of each in turn; or of a callback.
class Parts {
 public:
  Parts(const Scene& scene, int requests, inferno_part_callback callback = nullptr)
      : is_called_(callback != nullptr), answers_(static_cast<std::size_t>(requests)) {
    for (inferno_answer& answer : answers_) {
      const inferno_status status =
          is_called_
              ? inferno_ask_with_callback(scene.model(), scene.request(), callback, nullptr, &answer, nullptr)
              : inferno_ask(scene.model(), scene.request(), &answer, nullptr);
      if (status != INFERNO_OK) std::abort();
    }
  }
  ~Parts() {
    for (const inferno_answer answer : answers_) inferno_answer_free(answer, nullptr);
  }
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;

  void read() {
    std::vector<inferno_answer> open = answers_;
    while (!open.empty()) {
      std::erase_if(open, [this](inferno_answer answer) {
        const inferno_status status = is_called_ ? inferno_answer_wait(answer, -1, nullptr, nullptr)
                                                 : inferno_answer_next(answer, -1, &part_, nullptr);
        if (status != INFERNO_OK) std::abort();
        return is_called_ || part_.kind == INFERNO_PART_END;
      });
    }
  }

 private:
  bool is_called_;
  std::vector<inferno_answer> answers_;
  inferno_part part_ = {
      .size = sizeof part_, .kind = 0, .status = 0, .call = 0, .length = 0, .id = {}, .text = {}};
};

// How often a thread of this process has waited for something, and was woken.
double waits() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_nvcsw);
}

double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
  return values[values.size() / 2];
}

// Microseconds of CPU time a token.
struct Cost {
  double reading = 1e9, all = 1e9;
};

// Of reading once all tokens are there, and of all threads: the least of all rounds.
template <class Reader>
void measure_reading(Cost& cost, const Scene& scene, int requests) {
  const double scale = 1e6 / (tokens * requests), begin = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
  const std::uint64_t before = scene.generated();
  Reader reader(scene, requests);
  while (scene.generated() < before + static_cast<std::uint64_t>(tokens * requests)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const double begin_reading = seconds_of(CLOCK_THREAD_CPUTIME_ID);
  reader.read();
  cost.reading = std::min(cost.reading, (seconds_of(CLOCK_THREAD_CPUTIME_ID) - begin_reading) * scale);
  cost.all = std::min(cost.all, (seconds_of(CLOCK_PROCESS_CPUTIME_ID) - begin) * scale);
}

// Whether reading parts costs little enough.
bool compare_reading(const Scene& scene, int requests) {
  const int rounds = requests == 1 ? 16 : 4;
  Cost events, parts;
  for (int i = 0; i < rounds; ++i) {
    measure_reading<Events>(events, scene, requests);
    measure_reading<Parts>(parts, scene, requests);
  }
  const double share = (parts.reading - events.reading) / events.all;
  std::printf(
      "%2d at once, each token: %.2f us to read events, %.2f us to read parts, %.1f us in all: %.2f %% "
      "more\n",
      requests, events.reading, parts.reading, events.all, share * 100);
  return share < max_share;
}

// Of each round.
struct Speed {
  std::vector<double> tokens_per_second = {}, cpu_us = {}, waits = {};  // the latter two of a token
};

void compare_speed(const Scene& scene, int requests, int rounds) {
  const auto ignore = [](void*, inferno_answer, const inferno_part*) -> std::int32_t { return 0; };
  const std::array<std::function<void()>, 3> ways = {[&] { Events(scene, requests).read(); },
                                                     [&] { Parts(scene, requests).read(); },
                                                     [&] { Parts(scene, requests, ignore).read(); }};
  std::array<Speed, 3> found;
  for (int round = -1; round < rounds; ++round) {
    for (std::size_t turn = 0; turn < ways.size(); ++turn) {
      const std::size_t way = (turn + static_cast<std::size_t>(round + 1)) % ways.size();
      const double waits_before = waits();
      const double begin = seconds_of(CLOCK_MONOTONIC), cpu = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
      ways[way]();
      if (round < 0) continue;  // the first one warms up
      const double count = tokens * requests;
      found[way].tokens_per_second.push_back(count / (seconds_of(CLOCK_MONOTONIC) - begin));
      found[way].cpu_us.push_back((seconds_of(CLOCK_PROCESS_CPUTIME_ID) - cpu) / count * 1e6);
      found[way].waits.push_back((waits() - waits_before) / count);
    }
  }
  std::printf("%d at once, medians of %d rounds, and of the differences in each round:\n", requests, rounds);
  const auto more = [](const std::vector<double>& values, const std::vector<double>& than) {
    std::vector<double> differences;
    for (std::size_t i = 0; i < values.size(); ++i) differences.push_back((values[i] / than[i] - 1) * 100);
    return median(differences);
  };
  const char* const names[] = {"events", "parts", "callback"};
  for (std::size_t way = 0; way < ways.size(); ++way) {
    const Speed& speed = found[way];
    std::printf("%-8s %8.1f tok/s %+6.2f %%, %6.2f us of CPU time a token %+6.2f %%, %.3f waits a token\n",
                names[way], median(speed.tokens_per_second),
                more(speed.tokens_per_second, found[0].tokens_per_second), median(speed.cpu_us),
                more(speed.cpu_us, found[0].cpu_us), median(speed.waits));
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) return 2;
  const Scene scene(argv[1]);
  if (!scene.is_ready()) return 1;
  if (argc == 3) {
    const int rounds = std::atoi(argv[2]);
    if (rounds < 1) return 2;
    compare_speed(scene, 1, rounds);
    compare_speed(scene, many, rounds);
    return 0;
  }
  const bool is_cheap_alone = compare_reading(scene, 1), is_cheap_at_once = compare_reading(scene, many);
  return is_cheap_alone && is_cheap_at_once ? 0 : 1;
}
