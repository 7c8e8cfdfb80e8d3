#include "chat/template_source.h"

#include <gtest/gtest.h>

#include "support/caught_error.h"
#include "support/temporary_directory.h"

namespace inferno {
namespace {

TEST(TemplateSource, PrefersChatTemplateJinja) {
  const TemporaryDirectory model;
  model.write("chat_template.jinja", "from file");
  model.write("tokenizer_config.json", R"({"chat_template": "from config", "bos_token": "<s>"})");
  const auto source = read_template(model.path(), false);
  ASSERT_TRUE(source);
  EXPECT_EQ(source->source, "from file");
  EXPECT_NE(source->name.find("chat_template.jinja"), std::string::npos);
  EXPECT_EQ(source->model_texts.at("bos_token"), "<s>");
}

TEST(TemplateSource, ReadsTokenizerConfig) {
  const TemporaryDirectory model;
  model.write(
      "tokenizer_config.json",
      R"({"chat_template": "x", "eos_token": {"content": "</s>", "lstrip": false}, "pad_token": null})");
  const auto source = read_template(model.path(), false);
  ASSERT_TRUE(source);
  EXPECT_EQ(source->source, "x");
  EXPECT_EQ(source->model_texts, (std::map<std::string, std::string>{{"eos_token", "</s>"}}));
}

TEST(TemplateSource, IgnoresAModelMaxLengthBeyond64Bits) {
  const TemporaryDirectory model;
  model.write("tokenizer_config.json",
              R"({"chat_template": "x", "model_max_length": 1000000000000000019884624838656})");
  EXPECT_EQ(read_template(model.path(), false)->source, "x");
}

TEST(TemplateSource, ChoosesAmongNamedTemplates) {
  const TemporaryDirectory model;
  model.write("tokenizer_config.json", R"({"chat_template": [{"name": "default", "template": "plain"},
                                                            {"name": "tool_use", "template": "tools"}]})");
  EXPECT_EQ(read_template(model.path(), false)->source, "plain");
  EXPECT_EQ(read_template(model.path(), true)->source, "tools");
  model.write("tokenizer_config.json", R"({"chat_template": [{"name": "default", "template": "plain"}]})");
  EXPECT_EQ(read_template(model.path(), true)->source, "plain");
}

TEST(TemplateSource, ReadsChatTemplateJsonAndSpecialTokensMap) {
  const TemporaryDirectory model;
  model.write("chat_template.json", R"({"chat_template": "vision"})");
  model.write("special_tokens_map.json", R"({"bos_token": "<|b|>"})");
  const auto source = read_template(model.path(), false);
  ASSERT_TRUE(source);
  EXPECT_EQ(source->source, "vision");
  EXPECT_EQ(source->model_texts.at("bos_token"), "<|b|>");
}

TEST(TemplateSource, ReturnsNothingWithoutATemplate) {
  const TemporaryDirectory model;
  EXPECT_FALSE(read_template(model.path(), false));
  model.write("tokenizer_config.json", R"({"bos_token": "<s>", "chat_template": null})");
  EXPECT_FALSE(read_template(model.path(), false));
}

TEST(TemplateSource, RefusesMalformedFiles) {
  const TemporaryDirectory model;
  for (const char* text : {"[]", "{", R"({"chat_template": 5})", R"({"chat_template": [1]})",
                           R"({"chat_template": [{"name": "x"}]})", R"({"chat_template": {"a": "b"}})"}) {
    model.write("tokenizer_config.json", text);
    const Error error = caught_error([&] { read_template(model.path(), false); });
    EXPECT_EQ(error.kind(), ErrorKind::corrupt) << text;
    EXPECT_NE(std::string(error.what()).find("tokenizer_config.json"), std::string::npos) << error.what();
  }
}

TEST(TemplateSource, RefusesATemplateBeyondItsBudget) {
  const TemporaryDirectory model;
  model.write("chat_template.jinja", std::string((std::size_t{1} << 20) + 1, 'x'));
  EXPECT_EQ(caught_error([&] { read_template(model.path(), false); }).kind(), ErrorKind::unsupported);
}

}  // namespace
}  // namespace inferno
