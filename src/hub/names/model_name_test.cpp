#include "hub/names/model_name.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/utf8.h"
#include "hub/names/safe_path.h"

namespace inferno::hub {
namespace {

using namespace std::string_literals;

ModelName hub_name(std::string_view text) {
  return std::get<ModelName>(parse_model_name(text));
}

TEST(ModelName, ReadsEveryForm) {
  const struct {
    std::string_view text;
    ModelName name;
  } cases[] = {
      {"openai/gpt-oss-20b", {"openai", "gpt-oss-20b", "", "", ""}},
      {"org/name@v1.0", {"org", "name", "v1.0", "", ""}},
      {"org/name@refs/pr/7", {"org", "name", "refs/pr/7", "", ""}},
      {"org/name:Q4_K_M", {"org", "name", "", "Q4_K_M", ""}},
      {"org/name:q8_0@main", {"org", "name", "main", "q8_0", ""}},
      {"org/name@main:q8_0", {"org", "name", "main", "q8_0", ""}},
      {"hf.co/org/name:Q4_0", {"org", "name", "", "Q4_0", ""}},
      {"hf.co/org/name:latest", {"org", "name", "", "", ""}},
      {"huggingface.co/org/name", {"org", "name", "", "", ""}},
      {"hf://org/name", {"org", "name", "", "", ""}},
      {"hf://models/org/name@abc", {"org", "name", "abc", "", ""}},
      {"hf://org/name@abc/sub/file.gguf", {"org", "name", "abc", "", "sub/file.gguf"}},
      {"hf://org/name@refs/pr/1/file.gguf", {"org", "name", "refs/pr/1", "", "file.gguf"}},
      {"hf://org/name/file.gguf", {"org", "name", "", "", "file.gguf"}},
      {"hf://org/name:Q5_K_M", {"org", "name", "", "Q5_K_M", ""}},
      {"hf://org/name@dev:Q5_K_M", {"org", "name", "dev", "Q5_K_M", ""}},
      {"https://huggingface.co/org/name", {"org", "name", "", "", ""}},
      {"https://huggingface.co/org/name/", {"org", "name", "", "", ""}},
      {"https://huggingface.co/org/name/tree/main", {"org", "name", "main", "", ""}},
      {"https://huggingface.co/org/name/tree/refs%2Fpr%2F1", {"org", "name", "refs/pr/1", "", ""}},
      {"https://huggingface.co/org/name/blob/main/a%20b.gguf", {"org", "name", "main", "", "a b.gguf"}},
      {"https://huggingface.co/org/name/resolve/v2/d/x.gguf?download=true",
       {"org", "name", "v2", "", "d/x.gguf"}},
      {"https://hf.co/org/name#card", {"org", "name", "", "", ""}},
      {"HTTPS://HuggingFace.co/Org/Name", {"Org", "Name", "", "", ""}},
      {"bert-base-uncased", {"", "bert-base-uncased", "", "", ""}},
      {"mymodel:7b", {"", "mymodel", "", "7b", ""}},
  };
  for (const auto& one : cases) EXPECT_EQ(hub_name(one.text), one.name) << one.text;
}

TEST(ModelName, KnowsTheAliases) {
  EXPECT_EQ(hub_name("gpt-oss:20b").id(), "openai/gpt-oss-20b");
  EXPECT_EQ(hub_name("GPT-OSS").id(), "openai/gpt-oss-20b");
}

TEST(ModelName, LeavesPathsAlone) {
  for (const char* text :
       {"/models/x", "./x", "../x", "~/x", "x/", ".", "..", "x.gguf", "dir/x.GGUF", "a/b/c"}) {
    const ParsedName parsed = parse_model_name(text);
    ASSERT_TRUE(std::holds_alternative<std::filesystem::path>(parsed)) << text;
    EXPECT_EQ(std::get<std::filesystem::path>(parsed), text);
    EXPECT_THROW(parse_hub_name(text), Error);
  }
}

TEST(ModelName, AcceptsUrlsOfTheEndpoint) {
  const std::string address = "http://127.0.0.1:8080/org/name/tree/dev";
  EXPECT_EQ(parse_hub_name(address, "http://127.0.0.1:8080/").text(), "org/name@dev");
  EXPECT_THROW(parse_hub_name(address), Error);
}

TEST(ModelName, WritesAFormThatParsesToTheSameName) {
  for (const char* text :
       {"org/name", "org/name@rev", "org/name:Q4_K_M", "org/name@rev:Q4_K_M",
        "hf://org/name@refs/pr/1/a/b.gguf", "hf://org/name/x.gguf", "name", "hf://hf.co/name",
        "hf://HuggingFace.co/name@rev:Q8_0", "hf.co/gpt2", "gpt2@rev", "hf://org/name.gguf",
        "hf.co/name.GGUF", "hf://models/models/name/x.gguf", "models/name"}) {
    EXPECT_EQ(hub_name(text).text(), text);
    EXPECT_EQ(hub_name(hub_name(text).text()), hub_name(text));
  }
}

const std::string hostile_names[] = {
    "",
    "/../x@",
    "org/",
    "org//name",
    "../name",
    "org/..",
    "org/.",
    "./..",
    "org/na--me",
    "or--g/name",
    "org/na..me",
    "org/-name",
    "org/name-",
    "org/.name",
    "org/name.",
    "org/name.git",
    "org/na me",
    "org/na\\me",
    "org/na\nme",
    "org/na\x1b[2Jme",
    "org/na\0me"s,
    "org/na%2fme",
    "org/näme",
    "org/na\u202eme",
    "org/\xff",
    "org/" + std::string(97, 'a'),
    std::string(3000, 'a'),
    "org/name@",
    "org/name:",
    "org/name@..",
    "org/name@../../x",
    "org/name@a/../b",
    "org/name@/abs",
    "org/name@a//b",
    "org/name@a b",
    "org/name:a:b",
    "hf://org/name:a@b",
    "hf://org/name@:a",
    "hf://org/name@:a@b",
    "hf://org/name@rev:a@b",
    "https://huggingface.co/org/name:Q8_0/resolve/main/name-Q4_0.gguf",
    "org/name@a~1",
    "org/name@a^",
    "org/name@HEAD@{1}",
    "org/name@x.lock",
    "org/name@.hidden",
    "org/name@-rf",
    "org/name@" + std::string(300, 'r'),
    "org/name:a/b",
    "org/name:..",
    "org/name:../../x",
    "org/name:a:b",
    "org/name:\x07",
    "hf://",
    "hf://org",
    "hf:///name",
    "hf://datasets/org/name",
    "hf://spaces/org/name",
    "hf://org/name/../x",
    "hf://org/name@rev/../../x",
    "hf://org/name//etc/passwd",
    "https://evil.example/org/name",
    "https://huggingface.co.evil.example/org/name",
    "https://huggingface.co/org/name/resolve/main/..%2f..%2fx",
    "https://huggingface.co/org/name/resolve/main/%00",
    "https://huggingface.co/org/name/resolve/main/",
    "https://huggingface.co/org/name/resolve/main/%zz",
    "https://huggingface.co/org/name/settings",
    "https://huggingface.co/org/name/tree/main/folder",
    "https://huggingface.co/datasets/org/name",
    "https://huggingface.co/",
    "C:\\models\\x",
    "\\\\host\\share",
};

TEST(ModelName, RefusesHostileNames) {
  for (const std::string& text : hostile_names) {
    try {
      const ParsedName parsed = parse_model_name(text);
      // A path belongs to the user and is not changed; these names must give nothing else.
      ASSERT_TRUE(std::holds_alternative<std::filesystem::path>(parsed)) << quote(text);
      EXPECT_TRUE(text.starts_with('/') || text.starts_with('.') || text.ends_with('/') ||
                  text == "org//name")
          << quote(text);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::invalid_request) << quote(text);
      EXPECT_FALSE(error.advice().why.empty()) << quote(text);
      EXPECT_EQ(std::string(error.what()).find('\x1b'), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace inferno::hub
