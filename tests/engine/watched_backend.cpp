#include "engine/watched_backend.h"

#include <chrono>
#include <limits>
#include <thread>
#include <vector>

#include "base/error.h"
#include "support/forwarding_backend.h"

namespace inferno::testing {
namespace {

class WatchedBackend final : public ForwardingBackend {
 public:
  using ForwardingBackend::ForwardingBackend;

  std::optional<std::string> refuses_determinism() override {
    if (watch().has_determinism) return inner().refuses_determinism();
    return "the watched backend adds numbers in any order";
  }
  Buffer allocate(std::size_t bytes, std::string_view purpose) override {
    ++watch().allocations;
    return inner().allocate(bytes, purpose);
  }
  Weight pack(const HostWeight& source) override {
    ++watch().allocations;
    return inner().pack(source);
  }
  // A short step is queued inside replay, which may repeat it without asking again; a long one is not.
  void replay(std::span<const std::uint64_t> key, const std::function<void()>& body) override {
    begin_step();
    replays_ = true;
    inner().replay(key, body);
    replays_ = false;
  }
  void embed(Matrix out, const Weight& table, Matrix tokens, float scale) override {
    if (!replays_) begin_step();
    inner().embed(out, table, tokens, scale);
  }
  void sample(Matrix out, Matrix logits, const SamplingInputs& inputs) override {
    std::vector<SamplingRow> rows(static_cast<std::size_t>(logits.rows));
    inner().download(std::as_writable_bytes(std::span(rows)), inputs.rows.top(logits.rows));
    for (int r = 0; r < logits.rows; ++r) {
      if (rows[static_cast<std::size_t>(r)].top_k != poisoned_top_k) continue;
      const float poison[] = {std::numeric_limits<float>::quiet_NaN()};
      const Matrix first = {logits.data + logits.top(r).bytes(), DType::f32, 1, 1};
      inner().upload(first, std::as_bytes(std::span(poison)));
    }
    inner().sample(out, logits, inputs);
    is_read_ = false;
  }
  void wait_for(std::uint64_t mark) override {
    inner().wait_for(mark);
    is_read_ = true;
  }

 private:
  void begin_step() const {
    if (!is_read_) ++watch().early_steps;
    std::this_thread::sleep_for(std::chrono::milliseconds(watch().step_milliseconds));
    if (watch().device_fails) fail(ErrorKind::device, "the watched device fell off the bus");
  }

  bool replays_ = false;
  bool is_read_ = true;
};

}  // namespace

Watch& watch() {
  static Watch one;
  return one;
}

std::unique_ptr<Backend> watched(std::unique_ptr<Backend> backend) {
  watch().allocations = 0;
  watch().device_fails = false;
  watch().has_determinism = true;
  watch().step_milliseconds = 0;
  watch().early_steps = 0;
  return std::make_unique<WatchedBackend>(std::move(backend));
}

}  // namespace inferno::testing
