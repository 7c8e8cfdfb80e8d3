#include "service/loading/load_progress.h"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <set>

namespace inferno {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto report_interval = std::chrono::milliseconds(100);

class ByteCount {
 public:
  explicit ByteCount(ReportProgress report) : report_(std::move(report)) {}

  void expect(std::string_view name, std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    if (seen_.emplace(name).second) total_ += bytes;
  }

  void add(std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    done_ += bytes;
    const auto now = Clock::now();
    if (now - last_ < report_interval) return;
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

class CountedSource : public ByteSource {
 public:
  CountedSource(std::shared_ptr<const ByteSource> source, std::shared_ptr<ByteCount> count)
      : source_(std::move(source)), count_(std::move(count)) {}
  std::uint64_t size() const override { return source_->size(); }
  void read(std::uint64_t offset, std::span<std::byte> to) const override {
    source_->read(offset, to);
    count_->add(to.size());
  }
  void check_unchanged() const override { source_->check_unchanged(); }

 private:
  std::shared_ptr<const ByteSource> source_;
  std::shared_ptr<ByteCount> count_;
};

class CountedCheckpoint : public Checkpoint {
 public:
  CountedCheckpoint(std::unique_ptr<Checkpoint> checkpoint, ReportProgress report)
      : checkpoint_(std::move(checkpoint)), count_(std::make_shared<ByteCount>(std::move(report))) {}

  Container container() const override { return checkpoint_->container(); }
  std::string_view architecture() const override { return checkpoint_->architecture(); }
  const Config& config() const override { return checkpoint_->config(); }
  std::vector<std::string> names() const override { return checkpoint_->names(); }
  std::string quantization() const override { return checkpoint_->quantization(); }
  std::vector<std::string> notes() const override { return checkpoint_->notes(); }
  std::optional<StoredTensor> find_cache_scale(std::string_view name) const override {
    return checkpoint_->find_cache_scale(name);
  }
  std::optional<StoredTensor> find(std::string_view name) const override {
    auto tensor = checkpoint_->find(name);
    if (!tensor) return tensor;
    count_->expect(name, tensor->bytes);
    tensor->source = std::make_shared<CountedSource>(tensor->source, count_);
    return tensor;
  }

 private:
  std::unique_ptr<Checkpoint> checkpoint_;
  std::shared_ptr<ByteCount> count_;
};

}  // namespace

std::unique_ptr<Checkpoint> with_progress(std::unique_ptr<Checkpoint> checkpoint, ReportProgress report) {
  return std::make_unique<CountedCheckpoint>(std::move(checkpoint), std::move(report));
}

}  // namespace inferno
