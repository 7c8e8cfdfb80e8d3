// A file that shrinks or is written to while a model is loaded from it: an error that says so, on every
// device, and neither a crash nor a model made of two versions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <mutex>

#include "checkpoint/open_checkpoint.h"
#include "model/load.h"
#include "support/caught_error.h"
#include "support/model_backend.h"
#include "support/paths.h"
#include "support/temporary_directory.h"

namespace inferno {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

// Calls `meddle` once, when the first tensor that is larger than a kilobyte is read.
class Meddled final : public Checkpoint {
 public:
  Meddled(std::unique_ptr<Checkpoint> inner, std::function<void()> meddle)
      : inner_(std::move(inner)), meddle_(std::make_shared<Once>()) {
    meddle_->action = std::move(meddle);
  }
  Container container() const override { return inner_->container(); }
  std::string_view architecture() const override { return inner_->architecture(); }
  const Config& config() const override { return inner_->config(); }
  std::vector<std::string> names() const override { return inner_->names(); }
  std::optional<StoredTensor> find(std::string_view name) const override {
    auto tensor = inner_->find(name);
    if (tensor && tensor->bytes > 1024) tensor->source = std::make_shared<Source>(tensor->source, meddle_);
    return tensor;
  }

 private:
  struct Once {
    std::once_flag flag;
    std::function<void()> action;
  };
  class Source final : public ByteSource {
   public:
    Source(std::shared_ptr<const ByteSource> inner, std::shared_ptr<Once> meddle)
        : inner_(std::move(inner)), meddle_(std::move(meddle)) {}
    std::uint64_t size() const override { return inner_->size(); }
    void read(std::uint64_t offset, std::span<std::byte> to) const override {
      std::call_once(meddle_->flag, meddle_->action);
      inner_->read(offset, to);
    }
    void check_unchanged() const override { inner_->check_unchanged(); }

   private:
    std::shared_ptr<const ByteSource> inner_;
    std::shared_ptr<Once> meddle_;
  };

  std::unique_ptr<Checkpoint> inner_;
  std::shared_ptr<Once> meddle_;
};

class ChangingFile : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    fs::copy(testing::data_folder() / "models" / GetParam(), folder.path(), fs::copy_options::recursive);
  }

  fs::path weights() const { return folder.path() / "model.safetensors"; }
  Error error_after(std::function<void()> meddle) const {
    const Meddled checkpoint(open_checkpoint(folder.path()), std::move(meddle));
    const auto backend = testing::model_backend().make(2);
    return caught_error(
        [&] { load_model(checkpoint, *backend, {.max_tokens = 8, .max_logit_rows = 1, .context = 16}); });
  }

  TemporaryDirectory folder;
};

TEST_P(ChangingFile, ThatShrinksIsAnError) {
  const Error error = error_after([&] { fs::resize_file(weights(), fs::file_size(weights()) / 2); });
  EXPECT_EQ(error.kind(), ErrorKind::corrupt);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("model.safetensors"), HasSubstr("but it ends at")));
  EXPECT_THAT(error.advice().why, HasSubstr("changed while it was being read"));
}

TEST_P(ChangingFile, ThatBecomesEmptyIsAnError) {
  EXPECT_EQ(error_after([&] { fs::resize_file(weights(), 0); }).kind(), ErrorKind::corrupt);
}

TEST_P(ChangingFile, ThatIsWrittenToIsAnErrorThoughItKeepsItsSize) {
  const auto before = fs::last_write_time(weights());
  const Error error = error_after([&] { fs::last_write_time(weights(), before + std::chrono::seconds(1)); });
  EXPECT_EQ(error.kind(), ErrorKind::corrupt);
  EXPECT_THAT(error.what(),
              AllOf(HasSubstr("model.safetensors"), HasSubstr("written to since it was opened")));
}

TEST_P(ChangingFile, ThatGrowsIsAnError) {
  EXPECT_EQ(error_after([&] { fs::resize_file(weights(), fs::file_size(weights()) + 8); }).kind(),
            ErrorKind::corrupt);
}

TEST_P(ChangingFile, ThatIsReplacedByAnotherOneDoesNotMatter) {
  const Meddled checkpoint(open_checkpoint(folder.path()), [&] {
    folder.write("other", "something else");
    fs::rename(folder.path() / "other", weights());
  });
  const auto backend = testing::model_backend().make(2);
  EXPECT_NO_THROW(load_model(checkpoint, *backend, {.max_tokens = 8, .max_logit_rows = 1, .context = 16}));
}

INSTANTIATE_TEST_SUITE_P(Models, ChangingFile, ::testing::Values("qwen3", "gpt_oss"),
                         [](const auto& model) { return model.param; });

}  // namespace
}  // namespace inferno
