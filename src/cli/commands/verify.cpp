// `inferno verify`: reads every byte of the models that are here and compares hashes.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <chrono>
#include <system_error>

#include "base/error.h"
#include "base/signals.h"
#include "base/sizes.h"
#include "base/utf8.h"
#include "cli/cached_repository.h"
#include "cli/command.h"
#include "cli/model_choice.h"
#include "cli/model_resolution.h"
#include "cli/terminal/report_error.h"
#include "cli/terminal/screen.h"
#include "hub/cache/ollama_store.h"
#include "hub/cache/verification.h"

namespace inferno::command {
namespace {

using Clock = std::chrono::steady_clock;

// One line on stderr about how far it is; nothing where stderr is no terminal.
class Meter {
 public:
  Meter(const std::string& name, std::uint64_t total) : name_(printable(name)), total_(total) {}
  ~Meter() {
    if (is_drawn_) fmt::print(stderr, "\r\033[K");
  }
  Meter(const Meter&) = delete;
  Meter& operator=(const Meter&) = delete;

  void add(std::uint64_t bytes) {
    done_ += bytes;
    if (!is_shown_ || Clock::now() - last_ < std::chrono::milliseconds(100)) return;
    last_ = Clock::now();
    is_drawn_ = true;
    fmt::print(stderr, "\r{}: {} of {}\033[K", name_, human_size(done_), human_size(std::max(done_, total_)));
  }

 private:
  std::string name_;
  std::uint64_t total_, done_ = 0;
  bool is_shown_ = terminal::is_terminal(STDERR_FILENO), is_drawn_ = false;
  Clock::time_point last_ = Clock::now();
};

struct Tally {
  int wrong = 0, partial = 0, right = 0;
  std::vector<std::string> repairs = {};  // commands
};

[[noreturn]] void leave_interrupted() {
  throw Exit{interrupted_code};
}

// A blob that is not what its name says must not be found again: every tool would take it for the right one.
void set_right(const hub::RepositoryLayout& layout, const hub::CachedModel& model,
               const hub::VerifiedFile& file) {
  const std::error_code problem = hub::discard(layout, model, file);
  fmt::print("  {}\n",
             problem ? fmt::format("it could not be removed ({}): do not use this model", problem.message())
                     : std::string("removed, so that nothing takes it for the right one"));
}

void report(const hub::RepositoryLayout& layout, const hub::CachedModel& model,
            const hub::VerifiedFile& file) {
  if (file.verdict == hub::FileVerdict::corrupt) {
    fmt::print("  wrong    {}\n           expected {}\n           found    {}\n", printable(file.path),
               file.expected, file.found);
    set_right(layout, model, file);
  } else if (file.verdict == hub::FileVerdict::missing) {
    fmt::print("  missing  {}\n", printable(file.path));
  } else if (file.verdict == hub::FileVerdict::unverified) {
    fmt::print("  unknown  {}: nothing says what it should hash to\n", printable(file.path));
  }
}

void verify_cached(const hub::RepositoryLayout& layout, const hub::CachedModel& model, Tally& tally) {
  const SignalWatcher interrupt;
  std::optional<std::vector<hub::VerifiedFile>> files;
  {
    Meter meter(model.name.text(), model.stored.bytes);
    files = hub::verify_model(layout, model, [&](std::uint64_t bytes) {
      meter.add(bytes);
      return interrupt.received() == 0;
    });
  }
  if (!files) leave_interrupted();
  int wrong = 0, missing = 0;
  for (const hub::VerifiedFile& file : *files) {
    wrong += static_cast<int>(file.verdict == hub::FileVerdict::corrupt);
    missing += static_cast<int>(file.verdict == hub::FileVerdict::missing);
  }
  fmt::print("{:<8} {}  {} files, {}\n",
             wrong > 0     ? "WRONG"
             : missing > 0 ? "partial"
                           : "right",
             printable(model.name.text()), files->size(), human_size(model.stored.bytes));
  for (const hub::VerifiedFile& file : *files) report(layout, model, file);
  tally.wrong += wrong;
  tally.partial += static_cast<int>(missing > 0);
  tally.right += static_cast<int>(wrong + missing == 0);
  if (wrong + missing > 0) tally.repairs.push_back("inferno download " + model.name.text());
}

void verify_ollama(const FoundModel& model, Tally& tally) {
  const SignalWatcher interrupt;
  const std::string hash = model.path.filename().string().substr(std::string_view("sha256-").size());
  if (!model.is_complete()) {
    fmt::print("partial  {} (Ollama)\n", printable(model.name));
    ++tally.partial;
    return;
  }
  Meter meter(model.name, model.bytes);
  const auto file = hub::verify_file(model.path, hash, [&](std::uint64_t bytes) {
    meter.add(bytes);
    return interrupt.received() == 0;
  });
  if (!file) leave_interrupted();
  const bool is_right = file->verdict == hub::FileVerdict::valid;
  fmt::print("{:<8} {} (Ollama)  {}\n", is_right ? "right" : "WRONG", printable(model.name),
             human_size(model.bytes));
  if (!is_right) tally.repairs.push_back("ollama pull " + model.name);
  ++(is_right ? tally.right : tally.wrong);
}

void verify_all(const Environment& environment, Tally& tally) {
  for (const auto& cache : model_places(environment).hub_caches) {
    for (const hub::CachedRepository& repository : hub::scan_cache(cache)) {
      for (const hub::CachedModel& model : repository.models) verify_cached(repository.layout, model, tally);
    }
  }
  for (const FoundModel& model : find_models({.ollama = model_places(environment).ollama}))
    verify_ollama(model, tally);
}

void verify_one(const std::string& given, const Environment& environment, Tally& tally) {
  const std::string name = known_name(given, environment);
  const std::vector<FoundModel> found = models_here(environment);
  const FoundModel* model = find_model(name, found);
  if (model != nullptr && model->place == "Ollama") return verify_ollama(*model, tally);
  const CachedChoice choice = find_cached_repository(name, environment);
  const hub::CachedModel* cached = hub::find_cached(choice.repository.models, choice.wanted);
  if (cached == nullptr) {
    fail(ErrorKind::not_found, fmt::format("{}: nothing of it is here to be verified", choice.wanted.text()),
         {.why = {}, .next = "inferno download " + choice.wanted.text()});
  }
  verify_cached(choice.repository.layout, *cached, tally);
}

void run(const std::string& model) {
  const Environment environment = Environment::of_process();
  Tally tally;
  if (model.empty()) {
    verify_all(environment, tally);
  } else {
    verify_one(model, environment, tally);
  }
  if (tally.wrong + tally.partial + tally.right == 0)
    fmt::print("there is no model with known hashes here\n");
  const Advice advice = {.why = {}, .next = fmt::format("{}", fmt::join(tally.repairs, "; "))};
  if (tally.wrong > 0)
    fail(ErrorKind::corrupt, fmt::format("{} files are not what they should be", tally.wrong), advice);
  if (tally.partial > 0 && !model.empty()) {
    fail(ErrorKind::not_found, fmt::format("{}: only a part of this model is here", model), advice);
  }
}

}  // namespace

void verify(CLI::App& app) {
  CLI::App* command = app.add_subcommand("verify", "Hash the files of a model, or of all, and compare");
  const auto model = std::make_shared<std::string>();
  command->add_option("MODEL", *model, "a model of the hub's cache or of Ollama; all of them when not given");
  command->callback([model] { run(*model); });
}

}  // namespace inferno::command
