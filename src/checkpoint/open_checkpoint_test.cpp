#include "checkpoint/open_checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "support/caught_error.h"
#include "support/gguf_writer.h"
#include "support/safetensors_writer.h"
#include "support/temporary_directory.h"

namespace inferno {
namespace {

using testing::HasSubstr;

class OpenCheckpoint : public testing::Test {
 protected:
  void safetensors() {
    directory.write("config.json", R"({"model_type": "llama"})");
    write_safetensors(directory.path() / "model.safetensors", std::vector{patterned_tensor("w", "F32", {1})});
  }
  Container container(std::string_view name) const {
    return open_checkpoint(directory.path() / name)->container();
  }
  Error refusal(std::string_view name) const {
    Error error = caught_error([&] { open_checkpoint(directory.path() / name); });
    EXPECT_THAT(error.what(), HasSubstr(directory.path().string()));
    return error;
  }

  TemporaryDirectory directory;
};

TEST_F(OpenCheckpoint, OpensADirectoryOfSafetensors) {
  safetensors();
  EXPECT_EQ(container(""), Container::safetensors);
}

TEST_F(OpenCheckpoint, OpensTheDirectoryOfASafetensorsFile) {
  safetensors();
  EXPECT_EQ(container("model.safetensors"), Container::safetensors);
  write_safetensors(directory.path() / "other.safetensors", std::vector{patterned_tensor("x", "F32", {1})});
  EXPECT_EQ(refusal("other.safetensors").kind(), ErrorKind::invalid_request);
  std::filesystem::remove(directory.path() / "config.json");
  EXPECT_EQ(refusal("model.safetensors").kind(), ErrorKind::not_found);
}

TEST_F(OpenCheckpoint, OpensAGgufFileOrADirectoryWithOne) {
  tiny_llama_gguf().write(directory.path() / "m.gguf");
  EXPECT_EQ(container("m.gguf"), Container::gguf);
  EXPECT_EQ(container(""), Container::gguf);
  directory.write("config.json", R"({"model_type": "llama"})");
  tiny_llama_gguf().write(directory.path() / "mmproj-m.gguf");
  EXPECT_EQ(container(""), Container::gguf);
}

TEST_F(OpenCheckpoint, OpensADirectoryWithOneSplitModel) {
  write_split_gguf(directory.path(), "m", {tiny_llama_gguf(), GgufWriter().tensor("x", 0, {1})}, 12);
  EXPECT_EQ(container(""), Container::gguf);
}

TEST_F(OpenCheckpoint, RecognizesAGgufFileWithAnyName) {
  tiny_llama_gguf().write(directory.path() / "sha256-0123");
  EXPECT_EQ(container("sha256-0123"), Container::gguf);
}

TEST_F(OpenCheckpoint, RefusesADirectoryWithSeveralModels) {
  tiny_llama_gguf().write(directory.path() / "a.gguf");
  tiny_llama_gguf().write(directory.path() / "b.gguf");
  EXPECT_EQ(refusal("").kind(), ErrorKind::invalid_request);
  EXPECT_THAT(refusal("").what(), HasSubstr("\"a.gguf\", \"b.gguf\""));
  std::filesystem::remove(directory.path() / "b.gguf");
  safetensors();
  EXPECT_THAT(refusal("").what(), HasSubstr("\"a.gguf\" and safetensors"));
}

TEST_F(OpenCheckpoint, ExplainsRefusals) {
  EXPECT_EQ(refusal("absent").kind(), ErrorKind::not_found);
  EXPECT_EQ(refusal("").kind(), ErrorKind::not_found);
  directory.write("model.bin", "pickle");
  EXPECT_THAT(refusal("model.bin").advice().why, HasSubstr("Inferno never reads them"));
  directory.write("notes.txt", "text");
  EXPECT_EQ(refusal("notes.txt").kind(), ErrorKind::unsupported);
  directory.write("empty.gguf", "");
  EXPECT_EQ(refusal("empty.gguf").kind(), ErrorKind::corrupt);
  ASSERT_EQ(::mkfifo((directory.path() / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(refusal("pipe").kind(), ErrorKind::corrupt);
}

}  // namespace
}  // namespace inferno
