#include "cli/load_progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <set>

#include "base/sizes.h"
#include "base/utf8.h"
#include "cli/describe_spec.h"
#include "cli/environment.h"
#include "cli/terminal/screen.h"

namespace inferno {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto shortest_pause = std::chrono::milliseconds(100);

class Tally {
 public:
  explicit Tally(ReportProgress report) : report_(std::move(report)) {}

  void expect(std::string_view name, std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    if (seen_.emplace(name).second) total_ += bytes;
  }

  void add(std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    done_ += bytes;
    const auto now = Clock::now();
    if (now - last_ < shortest_pause) return;
    last_ = now;
    report_(std::min(done_, total_), total_);
  }

 private:
  std::mutex mutex_;
  ReportProgress report_;
  std::set<std::string, std::less<>> seen_;
  std::uint64_t done_ = 0, total_ = 0;
  Clock::time_point last_ = Clock::now();
};

class WatchedSource : public ByteSource {
 public:
  WatchedSource(std::shared_ptr<const ByteSource> source, std::shared_ptr<Tally> tally)
      : source_(std::move(source)), tally_(std::move(tally)) {}
  std::uint64_t size() const override { return source_->size(); }
  void read(std::uint64_t offset, std::span<std::byte> to) const override {
    source_->read(offset, to);
    tally_->add(to.size());
  }
  void check_unchanged() const override { source_->check_unchanged(); }

 private:
  std::shared_ptr<const ByteSource> source_;
  std::shared_ptr<Tally> tally_;
};

class WatchedCheckpoint : public Checkpoint {
 public:
  WatchedCheckpoint(std::unique_ptr<Checkpoint> checkpoint, ReportProgress report)
      : checkpoint_(std::move(checkpoint)), tally_(std::make_shared<Tally>(std::move(report))) {}

  Container container() const override { return checkpoint_->container(); }
  std::string_view architecture() const override { return checkpoint_->architecture(); }
  const Config& config() const override { return checkpoint_->config(); }
  std::vector<std::string> names() const override { return checkpoint_->names(); }
  std::optional<StoredTensor> find(std::string_view name) const override {
    auto tensor = checkpoint_->find(name);
    if (!tensor) return tensor;
    tally_->expect(name, tensor->bytes);
    tensor->source = std::make_shared<WatchedSource>(tensor->source, tally_);
    return tensor;
  }

 private:
  std::unique_ptr<Checkpoint> checkpoint_;
  std::shared_ptr<Tally> tally_;
};

}  // namespace

std::unique_ptr<Checkpoint> watched(std::unique_ptr<Checkpoint> checkpoint, ReportProgress report) {
  return std::make_unique<WatchedCheckpoint>(std::move(checkpoint), std::move(report));
}

std::string load_line(std::uint64_t done, std::uint64_t total, double seconds) {
  std::string line = fmt::format(
      "{:.0f} % of {}", 100.0 * static_cast<double>(done) / static_cast<double>(total), human_size(total));
  if (seconds > 0.0) line += fmt::format(", {:.2f} GB/s", static_cast<double>(done) / 1e9 / seconds);
  return line;
}

LoadMeter::LoadMeter(const std::string& name)
    : name_(printable(name)),
      is_shown_(Environment::of_process().allows_redrawing(terminal::is_terminal(STDERR_FILENO))),
      start_(Clock::now()) {
  if (is_shown_) fmt::print(stderr, "\rloading {} …", name_);
}

LoadMeter::~LoadMeter() {
  if (is_shown_) fmt::print(stderr, "\r\x1b[K");
}

void LoadMeter::show(std::uint64_t done, std::uint64_t total) const {
  if (!is_shown_ || total == 0) return;
  const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
  fmt::print(stderr, "\rloading {} … {}\x1b[K", name_, load_line(done, total, seconds));
}

}  // namespace inferno
