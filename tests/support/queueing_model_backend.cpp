// The CPU backend pretending that it queues, so that queueing steps ahead can be tested without a GPU.
// Results are hidden until the caller waits for them.
#include "support/queueing_model_backend.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <vector>

#include "base/error.h"
#include "support/cpu_model_backend.h"
#include "support/forwarding_backend.h"

namespace inferno::testing {
namespace {

std::atomic<int> max_under_way = 0;

class QueueingBackend final : public ForwardingBackend {
 public:
  using ForwardingBackend::ForwardingBackend;

  bool queues() const override { return true; }
  Buffer allocate_for_host(std::size_t bytes, std::string_view purpose) override {
    hidden_.emplace_back(bytes);
    Buffer out = inner().allocate_for_host(bytes, purpose);
    visible_.push_back(out.data());
    return out;
  }
  // Writes to separate memory; the host's memory gets the results when it waits for the mark after them.
  void sample(Matrix out, Matrix logits, const SamplingInputs& inputs) override {
    const std::size_t memory = memory_of(out.data);
    if (memory == visible_.size()) return inner().sample(out, logits, inputs);
    const auto offset = static_cast<std::size_t>(out.data - visible_[memory]);
    Matrix instead = out;
    instead.data = hidden_[memory].data() + offset;
    inner().sample(instead, logits, inputs);
    results_.push_back({next_mark_, out, std::vector(instead.data, instead.data + out.bytes())});
    max_under_way = std::max(max_under_way.load(), static_cast<int>(results_.size()));
    scribble();
  }
  std::uint64_t mark() override { return next_mark_++; }
  void wait_for(std::uint64_t mark) override {
    expects(mark < next_mark_ && next_mark_ - mark <= max_marks, "the mark is remembered");
    for (; !results_.empty() && results_.front().mark <= mark; results_.pop_front()) {
      std::memcpy(results_.front().to.data, results_.front().bytes.data(), results_.front().bytes.size());
    }
    scribble();
  }

 private:
  struct Result {
    std::uint64_t mark;  // the first mark after the write
    Matrix to;
    std::vector<std::byte> bytes;
  };
  // A device could still be writing to this memory.
  void scribble() {
    for (const Result& result : results_) std::memset(result.to.data, 0xEE, result.bytes.size());
  }
  std::size_t memory_of(const std::byte* data) const {
    std::size_t i = 0;
    while (i < visible_.size() && (data < visible_[i] || data >= visible_[i] + hidden_[i].size())) ++i;
    return i;
  }

  std::vector<std::byte*> visible_;
  std::vector<std::vector<std::byte>> hidden_;
  std::deque<Result> results_;
  std::uint64_t next_mark_ = 0;
};

std::unique_ptr<Backend> make_queueing_backend(int threads) {
  return std::make_unique<QueueingBackend>(make_cpu_backend(threads));
}

}  // namespace

int max_draws_under_way() {
  return max_under_way.load();
}

const ModelBackend& model_backend() {
  static const ModelBackend backend = cpu_promises(make_queueing_backend);
  return backend;
}

}  // namespace inferno::testing
