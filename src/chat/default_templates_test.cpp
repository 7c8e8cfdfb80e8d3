#include "chat/default_templates.h"

#include <gtest/gtest.h>

#include <set>

#include "chat/jinja/template.h"
#include "chat/json.h"
#include "support/caught_error.h"

namespace inferno {
namespace {

const DefaultTemplate* choose(std::set<std::string_view> vocabulary) {
  return choose_default_template([&](std::string_view token) { return vocabulary.contains(token); });
}

std::string render(std::string_view family, const Json& variables) {
  for (const DefaultTemplate& candidate : default_templates()) {
    if (candidate.family != family) continue;
    jinja::RenderOptions options;
    options.model_texts = {{"bos_token", "<BOS>"}, {"eos_token", "<EOS>"}};
    return jinja::Template::parse(std::string(candidate.source), std::string(family))
        .render(variables, options)
        .text;
  }
  return "no such family";
}

const Json& conversation() {
  static const Json json = parse_json(R"({"add_generation_prompt": true, "tools": null, "messages": [
      {"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"},
      {"role": "assistant", "content": "Hello."}, {"role": "user", "content": "Bye"}]})",
                                      "test");
  return json;
}

TEST(DefaultTemplates, AreChosenByTheControlTokensOfTheVocabulary) {
  EXPECT_EQ(choose({"<|im_start|>", "<|im_end|>", "<|endoftext|>"})->family, "chatml");
  EXPECT_EQ(choose({"<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"})->family, "llama-3");
  EXPECT_EQ(choose({"<|user|>", "<|assistant|>", "<|end|>"})->family, "phi-3");
  EXPECT_EQ(choose({"<|start_of_role|>", "<|end_of_role|>"})->family, "granite");
  EXPECT_EQ(choose({"[INST]", "[/INST]"})->family, "mistral");
}

TEST(DefaultTemplates, AreNotGuessedForABaseModel) {
  EXPECT_EQ(choose({"<|endoftext|>"}), nullptr);
  EXPECT_EQ(choose({"<|im_start|>"}), nullptr);
  EXPECT_EQ(choose({}), nullptr);
}

TEST(DefaultTemplates, WriteTheFormatOfTheirFamily) {
  EXPECT_EQ(
      render("chatml", conversation()),
      "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"
      "<|im_start|>assistant\nHello.<|im_end|>\n<|im_start|>user\nBye<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(render("llama-3", conversation()),
            "<BOS><|start_header_id|>system<|end_header_id|>\n\nBe brief.<|eot_id|>"
            "<|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\nHello.<|eot_id|>"
            "<|start_header_id|>user<|end_header_id|>\n\nBye<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\n");
  EXPECT_EQ(render("phi-3", conversation()),
            "<|system|>\nBe brief.<|end|>\n<|user|>\nHi<|end|>\n<|assistant|>\nHello.<|end|>\n"
            "<|user|>\nBye<|end|>\n<|assistant|>\n");
  EXPECT_EQ(
      render("granite", conversation()),
      "<|start_of_role|>system<|end_of_role|>Be brief.<EOS>\n<|start_of_role|>user<|end_of_role|>Hi<EOS>\n"
      "<|start_of_role|>assistant<|end_of_role|>Hello.<EOS>\n"
      "<|start_of_role|>user<|end_of_role|>Bye<EOS>\n<|start_of_role|>assistant<|end_of_role|>");
  EXPECT_EQ(render("mistral", conversation()),
            "<BOS>[INST] Be brief.\n\nHi[/INST] Hello.<EOS>[INST] Bye[/INST]");
}

TEST(DefaultTemplates, RefuseToolsInsteadOfDroppingThem) {
  Json with_tools = conversation();
  with_tools["tools"] = Json::array({{{"type", "function"}}});
  for (const DefaultTemplate& candidate : default_templates()) {
    const Error error = caught_error([&] { render(candidate.family, with_tools); });
    EXPECT_NE(std::string(error.what()).find("does not support tools"), std::string::npos)
        << candidate.family;
  }
}

}  // namespace
}  // namespace inferno
