// Loads, asks, cancels and unloads again and again, against libinferno.so as other programs use it: memory,
// descriptors and threads must come back.   library_loop MODEL CYCLES
//
// Also measures what does not depend on how busy the machine is: the shortest time to the first token, and
// the share of the CPU time that reading parts costs.
#include <inferno/inferno.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace {

inferno_error error = {sizeof(inferno_error), 0, "", "", ""};

void check(inferno_status status) {
  if (status == INFERNO_OK) return;
  std::fprintf(stderr, "error: %s / %s / %s\n", error.what, error.why, error.next);
  std::exit(1);
}

void expect(bool condition, const std::string& claim) {
  if (condition) return;
  std::fprintf(stderr, "not true: %s\n", claim.c_str());
  std::exit(1);
}

struct Held {
  std::size_t allocated, resident, descriptors, threads;
};

std::size_t entries(const char* folder) {
  const std::filesystem::directory_iterator all(folder);
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

Held held_now() {
  malloc_trim(0);
  std::size_t pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  const auto heap = mallinfo2();
  return {heap.uordblks + heap.hblkhd, resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE)),
          entries("/proc/self/fd"), entries("/proc/self/task")};
}

double seconds_of(clockid_t clock) {
  timespec time = {};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

inferno_model load(const char* path) {
  inferno_load_options options = {};
  options.size = sizeof options;
  options.device = "cpu";
  options.threads = 1;
  options.context = 512;
  inferno_model model = {0};
  check(inferno_model_load(path, &options, &model, &error));
  return model;
}

inferno_answer ask(inferno_model model, const char* json) {
  inferno_request request = {0};
  inferno_answer answer = {0};
  check(inferno_request_from_json(json, &request, &error));
  check(inferno_ask(model, request, &answer, &error));
  check(inferno_request_free(request, &error));
  return answer;
}

void read_parts(inferno_answer answer, int count) {
  inferno_part part = {};
  part.size = sizeof part;
  for (int i = 0; i != count && part.kind != INFERNO_PART_END; ++i) {
    check(inferno_answer_next(answer, -1, &part, &error));
  }
}

// One answer read, one cancelled, one forgotten, in every other cycle with the model unloaded first.
double cycle(const char* path, int number) {
  const inferno_model model = load(path);
  const inferno_answer read = ask(model, R"({"prompt": "Once", "max_tokens": 4, "temperature": 0})");
  read_parts(read, -1);
  inferno_usage usage = {};
  usage.size = sizeof usage;
  check(inferno_answer_usage(read, &usage, &error));
  const inferno_answer cancelled = ask(model, R"({"prompt": "Once", "ignore_eos": true})");
  const inferno_answer forgotten = ask(model, R"({"prompt": "Once", "regex": "[a-z ]+", "max_tokens": 400})");
  read_parts(cancelled, 2);
  check(inferno_answer_cancel(cancelled, &error));
  if (number % 2 == 0) check(inferno_model_unload(model, &error));
  for (const inferno_answer answer : {read, cancelled, forgotten}) check(inferno_answer_free(answer, &error));
  if (number % 2 == 1) check(inferno_model_unload(model, &error));
  return usage.first_token_seconds;
}

struct Cost {
  double share = 0;  // CPU time of the thread that reads, by that of the process
  double delay = 0;  // time to the end of the answer, by the time that the engine computed, less 1
};

Cost cost_of_reading(const char* path) {
  const inferno_model model = load(path);
  const double thread = seconds_of(CLOCK_THREAD_CPUTIME_ID), process = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
  const inferno_answer answer = ask(model, R"({"prompt": "Once", "max_tokens": 400, "ignore_eos": true})");
  read_parts(answer, -1);
  const double share =
      (seconds_of(CLOCK_THREAD_CPUTIME_ID) - thread) / (seconds_of(CLOCK_PROCESS_CPUTIME_ID) - process);
  inferno_usage usage = {};
  usage.size = sizeof usage;
  check(inferno_answer_usage(answer, &usage, &error));
  check(inferno_answer_free(answer, &error));
  check(inferno_model_unload(model, &error));
  const double computed = usage.queue_seconds + usage.prompt_seconds + usage.decode_seconds;
  return {share, usage.total_seconds / computed - 1};
}

}  // namespace

int main(int argc, char** argv) {
  expect(argc == 3, "library_loop MODEL CYCLES");
  // What malloc keeps for each thread counts as allocated, so it is switched off. glibc reads this at the
  // start.
  if (setenv("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0:glibc.malloc.arena_max=1", 0) == 0 &&
      std::getenv("IS_CHILD") == nullptr) {
    setenv("IS_CHILD", "1", 1);
    execv("/proc/self/exe", argv);
  }
  const int cycles = std::atoi(argv[2]), warm = std::max(10, cycles / 10);
  double first_token = 1e9;
  for (int i = 0; i < warm; ++i) first_token = std::min(first_token, cycle(argv[1], i));
  const Held before = held_now();
  for (int i = 0; i < cycles; ++i) first_token = std::min(first_token, cycle(argv[1], i));
  const Held after = held_now();
  Cost cost = cost_of_reading(argv[1]);
  for (int i = 0; i < 4; ++i) {
    const Cost again = cost_of_reading(argv[1]);
    cost = {std::min(cost.share, again.share), std::min(cost.delay, again.delay)};
  }
  std::printf(
      "%d cycles: heap %zu to %zu bytes, resident %zu to %zu, descriptors %zu to %zu, threads %zu to %zu\n",
      cycles, before.allocated, after.allocated, before.resident, after.resident, before.descriptors,
      after.descriptors, before.threads, after.threads);
  std::printf(
      "first token after %.1f ms, reading takes %.2f %% of the CPU time, ends %.2f %% after the engine\n",
      first_token * 1e3, cost.share * 100, cost.delay * 100);
  expect(after.descriptors == before.descriptors, "descriptors come back");
  expect(after.threads == before.threads, "threads come back");
  expect(after.allocated <= before.allocated, "the heap comes back to the byte");
  expect(after.resident < before.resident + (std::size_t{8} << 20), "memory is flat");
  expect(first_token < 0.030, "the first token comes within 30 ms");
  expect(cost.share < 0.05, "reading is a small part of the work");
  return 0;
}
