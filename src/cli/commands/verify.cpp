// `inferno verify`: hashes every byte of the models on this machine and compares.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <system_error>

#include "base/error.h"
#include "base/signals.h"
#include "base/sizes.h"
#include "base/utf8.h"
#include "cli/commands/shared/command_line.h"
#include "cli/environment.h"
#include "cli/terminal/report_error.h"
#include "cli/terminal/screen.h"
#include "cli/terminal/streams.h"
#include "hub/cache/ollama_store.h"
#include "hub/cache/verification.h"

namespace inferno::command {
namespace {

using Clock = std::chrono::steady_clock;

// Progress on one line of stderr, if that is a terminal.
class Meter {
 public:
  Meter(const std::string& name, std::uint64_t total) : name_(printable(name)), total_(total) {}
  ~Meter() {
    if (is_drawn_) say("\r\033[K");
  }
  Meter(const Meter&) = delete;
  Meter& operator=(const Meter&) = delete;

  void add(std::uint64_t bytes) {
    done_ += bytes;
    if (!is_shown_ || Clock::now() - last_ < std::chrono::milliseconds(100)) return;
    last_ = Clock::now();
    is_drawn_ = true;
    say(fmt::format("\r{}: {} of {}\033[K", name_, human_size(done_), human_size(std::max(done_, total_))));
  }

 private:
  std::string name_;
  std::uint64_t total_, done_ = 0;
  bool is_shown_ = terminal::is_terminal(STDERR_FILENO), is_drawn_ = false;
  Clock::time_point last_ = Clock::now();
};

struct Tally {
  int corrupt = 0, partial = 0, verified = 0;
  std::vector<std::string> repairs = {};  // commands
};

[[noreturn]] void leave_interrupted() {
  throw Exit{interrupted_code};
}

// A corrupt blob must go: its name is its hash, so every tool would trust it.
void remove_corrupt(const hub::RepositoryLayout& layout, const hub::CachedModel& model,
                    const hub::VerifiedFile& file) {
  const std::error_code problem = hub::discard(layout, model, file);
  fmt::print("  {}\n", problem
                           ? fmt::format("cannot remove it ({}): do not use this model", problem.message())
                           : std::string("removed, so that no tool uses it"));
}

void report(const hub::RepositoryLayout& layout, const hub::CachedModel& model,
            const hub::VerifiedFile& file) {
  if (file.verdict == hub::FileVerdict::corrupt) {
    fmt::print("  corrupt  {}\n           expected {}\n           found    {}\n", printable(file.path),
               file.expected, file.found);
    remove_corrupt(layout, model, file);
  } else if (file.verdict == hub::FileVerdict::missing) {
    fmt::print("  missing  {}\n", printable(file.path));
  } else if (file.verdict == hub::FileVerdict::unverified) {
    fmt::print("  unknown  {}: no known hash\n", printable(file.path));
  }
}

void add_repair(Tally& tally, const std::string& repair) {
  if (std::ranges::find(tally.repairs, repair) == tally.repairs.end()) tally.repairs.push_back(repair);
}

void verify_cached(const Catalogue& catalogue, const hub::RepositoryLayout& layout,
                   const hub::CachedModel& model, Tally& tally) {
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
  int corrupt = 0, missing = 0;
  for (const hub::VerifiedFile& file : *files) {
    corrupt += static_cast<int>(file.verdict == hub::FileVerdict::corrupt);
    missing += static_cast<int>(file.verdict == hub::FileVerdict::missing);
  }
  fmt::print("{:<8} {}  {} {}, {}\n",
             corrupt > 0   ? "CORRUPT"
             : missing > 0 ? "partial"
                           : "verified",
             printable(model.name.text()), files->size(), files->size() == 1 ? "file" : "files",
             human_size(model.stored.bytes));
  for (const hub::VerifiedFile& file : *files) report(layout, model, file);
  tally.corrupt += corrupt;
  tally.partial += static_cast<int>(missing > 0);
  tally.verified += static_cast<int>(corrupt + missing == 0);
  if (corrupt + missing > 0) add_repair(tally, catalogue.download_advice(model.name.text()));
}

void verify_ollama(const FoundModel& model, Tally& tally) {
  const SignalWatcher interrupt;
  const std::string hash = model.path().filename().string().substr(std::string_view("sha256-").size());
  if (!model.is_complete()) {
    fmt::print("partial  {} (Ollama)\n", printable(model.name));
    ++tally.partial;
    return;
  }
  Meter meter(model.name, model.bytes);
  const auto file = hub::verify_file(model.path(), hash, [&](std::uint64_t bytes) {
    meter.add(bytes);
    return interrupt.received() == 0;
  });
  if (!file) leave_interrupted();
  const bool is_verified = file->verdict == hub::FileVerdict::valid;
  fmt::print("{:<8} {} (Ollama)  {}\n", is_verified ? "verified" : "CORRUPT", printable(model.name),
             human_size(model.bytes));
  if (!is_verified) add_repair(tally, "ollama pull " + model.name);
  ++(is_verified ? tally.verified : tally.corrupt);
}

void verify_all(const Catalogue& catalogue, Tally& tally) {
  for (const hub::CachedRepository& repository : catalogue.inventory().repositories) {
    for (const hub::CachedModel& model : repository.models)
      verify_cached(catalogue, repository.layout, model, tally);
  }
  for (const FoundModel& model : catalogue.inventory().models) {
    if (model.place == "Ollama") verify_ollama(model, tally);
  }
}

void verify_one(const std::string& name, const Catalogue& catalogue, Tally& tally) {
  const FoundModel* found = catalogue.look_up_stored(name).here;
  if (found != nullptr && found->place == "Ollama") return verify_ollama(*found, tally);
  const CachedMatch match = catalogue.cached(name);
  const hub::CachedModel* cached = hub::find_cached(match.repository.models, match.wanted);
  if (cached == nullptr) {
    fail(ErrorKind::not_found, fmt::format("{}: not on this machine", match.wanted.text()),
         {.why = {}, .next = catalogue.download_advice(match.wanted.text())});
  }
  verify_cached(catalogue, match.repository.layout, *cached, tally);
}

void run(const std::string& model) {
  const Catalogue catalogue(catalogue_settings(Environment::of_process()));
  Tally tally;
  if (model.empty()) {
    verify_all(catalogue, tally);
  } else {
    verify_one(model, catalogue, tally);
  }
  if (tally.corrupt + tally.partial + tally.verified == 0)
    fmt::print("no model with known hashes on this machine\n");
  const Advice advice = {.why = {}, .next = fmt::format("{}", fmt::join(tally.repairs, "; "))};
  if (tally.corrupt > 0) {
    fail(ErrorKind::corrupt,
         fmt::format("checksum mismatch in {} {}", tally.corrupt, tally.corrupt == 1 ? "file" : "files"),
         advice);
  }
  if (tally.partial > 0 && !model.empty()) {
    fail(ErrorKind::not_found, fmt::format("{}: incomplete, some files are missing", model), advice);
  }
}

}  // namespace

void verify(CommandLine app) {
  const Command command = app.command("verify", "Verify the checksums of a model, or of all models");
  const auto model = std::make_shared<std::string>();
  command.option("MODEL", *model, "a model in the hub cache or in Ollama's store; by default all models");
  command.run([model] { run(*model); });
}

}  // namespace inferno::command
