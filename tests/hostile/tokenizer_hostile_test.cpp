// M6: tokenizer.json. Every seed loads or is refused by rule.h; the valid counterparts show that the limits
// allow real files.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "hostile/rule.h"
#include "text/tokenizer.h"
#include "text/tokenizer_scene.h"

namespace inferno {
namespace {

struct Seed {
  std::string name;
  bool loads;
  std::string text;
};

std::string repeated(std::string_view text, int count) {
  std::string result;
  for (int i = 0; i < count; ++i) result += text;
  return result;
}

std::string bpe(const std::string& vocab, const std::string& merges, const std::string& more = "") {
  return made_up_json(
      {.pre_tokenizer = "null",
       .decoder = "null",
       .model = fmt::format(R"({{"type":"BPE","vocab":{{{}}},"merges":[{}]{}}})", vocab, merges, more)});
}

std::string unigram(const std::string& vocab, const std::string& more = "") {
  return made_up_json({.pre_tokenizer = "null",
                       .decoder = "null",
                       .model = fmt::format(R"({{"type":"Unigram","vocab":[{}]{}}})", vocab, more)});
}

std::string added(const std::string& tokens) {
  return made_up_json({.added_tokens = "[" + tokens + "]"});
}
std::string split(const std::string& step) {
  return made_up_json({.pre_tokenizer = step});
}
std::string split_by(const std::string& regex) {
  return split(R"({"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":")" + regex +
               R"("},"behavior":"Isolated"},{"type":"ByteLevel","use_regex":false}]})");
}
std::string normalize(const std::string& step) {
  return made_up_json({.normalizer = step});
}
std::string decode(const std::string& step) {
  return made_up_json({.decoder = step});
}
std::string surround(const std::string& processor) {
  return made_up_json({.post_processor = processor});
}

std::vector<Seed> document_seeds() {
  const std::string valid = made_up_json();
  return {
      {"valid", true, valid},
      {"no bytes", false, ""},
      {"a list", false, "[]"},
      {"null", false, "null"},
      {"no model", false, "{}"},
      {"cut in the middle", false, valid.substr(0, valid.size() / 2)},
      {"two documents", false, valid + valid},
      {"a zero byte at the end", false, valid + '\0'},
      {"broken UTF-8", false, "{\"model\": \"\xC3(\"}"},
      {"lists 100,000 deep", false, R"({"model":)" + std::string(100000, '[')},
      {"objects 100,000 deep", false, repeated(R"({"model":)", 100000)},
      {"a sequence in itself 10,000 times", false,
       split(repeated(R"({"type":"Sequence","pretokenizers":[)", 10000) + repeated("]}", 10000))},
      {"nine sequences inside each other", false,
       normalize(repeated(R"({"type":"Sequence","normalizers":[)", 10) + repeated("]}", 10))},
      {"three sequences inside each other", true,
       normalize(repeated(R"({"type":"Sequence","normalizers":[)", 3) + repeated("]}", 3))},
      {"model as a string", false, R"({"model":"BPE"})"},
      {"model of an unknown type", false, R"({"model":{"type":"WordPiece","vocab":{}}})"},
      {"a name full of control characters", false, R"({"model":{"type":"\u001b[2J\u0007"}})"},
  };
}

std::vector<Seed> vocabulary_seeds() {
  const std::string letters = R"("a":0,"b":1,"ab":2)";
  return {
      {"valid merges", true, bpe(letters, R"(["a","b"])")},
      {"merges as lines", true, bpe(letters, R"("a b")")},
      {"the same merge twice", true, bpe(letters, R"(["a","b"],["a","b"])")},
      {"an empty vocabulary", true, bpe("", "")},
      {"ids with a hole", true, bpe(R"("a":0,"b":5000)", "")},
      {"a negative id", false, bpe(R"("a":-1)", "")},
      {"an id of 2^31", false, bpe(R"("a":2147483648)", "")},
      {"an id of 2^63", false, bpe(R"("a":9223372036854775808)", "")},
      {"an id far beyond the tokens", false, bpe(R"("a":0,"b":2000000000)", "")},
      {"a sparse id that asks for a gigabyte", false, bpe(R"("a":0,"b":16000000)", "")},
      {"a fractional id", false, bpe(R"("a":0.5)", "")},
      {"an id as a string", false, bpe(R"("a":"0")", "")},
      {"two pieces with one id", false, bpe(R"("a":0,"b":0)", "")},
      {"one piece with two ids", false, bpe(R"("a":0,"a":1)", "")},
      {"vocab as a list", false, made_up_json({.model = R"({"type":"BPE","vocab":[],"merges":[]})"})},
      {"no vocab", false, made_up_json({.model = R"({"type":"BPE","merges":[]})"})},
      {"no merges", false, made_up_json({.model = R"({"type":"BPE","vocab":{}})"})},
      {"a merge of an unknown left", false, bpe(letters, R"(["x","b"])")},
      {"a merge of an unknown right", false, bpe(letters, R"(["a","x"])")},
      {"a merge with an unknown result", false, bpe(letters, R"(["b","a"])")},
      {"a merge of one piece", false, bpe(letters, R"(["a"])")},
      {"a merge of three pieces", false, bpe(letters, R"(["a","b","ab"])")},
      {"a line with three pieces", false, bpe(letters, R"("a b ab")")},
      {"a line with one piece", false, bpe(letters, R"("ab")")},
      {"a merge of numbers", false, bpe(letters, "[1,2]")},
      {"a merge that is an object", false, bpe(letters, "{}")},
      {"a merge with an empty side, which would never end", false, bpe(letters, R"(["","a"])")},
      {"an empty piece merged with itself", true, bpe(R"("":0,"a":1)", R"(["","a"],["a",""],["",""])")},
      {"an unknown token that is not there", false, bpe(letters, "", R"(,"unk_token":"<unk>")")},
      {"an empty unknown token, as GPT-2 has it", true, bpe(letters, "", R"(,"unk_token":"")")},
      {"dropout", false, bpe(letters, "", R"(,"dropout":0.5)")},
      {"a subword prefix", false, bpe(letters, "", R"(,"continuing_subword_prefix":"##")")},
      {"a word suffix", false, bpe(letters, "", R"(,"end_of_word_suffix":"</w>")")},
      {"a flag as a number", false, bpe(letters, "", R"(,"byte_fallback":1)")},
      {"a piece of 100,000 bytes", true, bpe("\"" + std::string(100000, 'x') + R"(":0)", "")},
      {"an unknown piece of 100,000 bytes in a merge", false,
       bpe(letters, "[\"" + std::string(100000, 'x') + R"(","a"])")},
      {"valid pieces and scores", true, unigram(R"(["<unk>",0],["a",-1.5])", R"(,"unk_id":0)")},
      {"a piece without a score", false, unigram(R"(["a"])")},
      {"a score that is a string", false, unigram(R"(["a","-1"])")},
      {"an infinite score", false, unigram(R"(["a",1e999])")},
      {"an unknown id beyond the vocabulary", false, unigram(R"(["a",-1])", R"(,"unk_id":1)")},
      {"a negative unknown id", false, unigram(R"(["a",-1])", R"(,"unk_id":-1)")},
      {"a piece of 2,000 bytes with a score", false, unigram("[\"" + std::string(2000, 'x') + "\",0]")},
  };
}

std::string many_added(int count) {
  std::string tokens;
  for (int i = 0; i < count; ++i)
    tokens += fmt::format(R"({}{{"id":{},"content":"<{}>"}})", i == 0 ? "" : ",", 261 + i, i);
  return added(tokens);
}

std::vector<Seed> added_token_seeds() {
  return {
      {"valid", true, added(R"({"id":261,"content":"<s>","special":true})")},
      {"an id with a hole before it", true, added(R"({"id":900,"content":"<s>"})")},
      {"the same content twice", true, added(R"({"id":261,"content":"<s>"},{"id":262,"content":"<s>"})")},
      {"an empty content", true, added(R"({"id":261,"content":""})")},
      {"1,000 of them", true, many_added(1000)},
      {"150,000 of them", false, many_added(150000)},
      {"two contents with one id", false, added(R"({"id":261,"content":"<s>"},{"id":261,"content":"</s>"})")},
      {"the id of another piece", false, added(R"({"id":5,"content":"<s>"})")},
      {"a negative id", false, added(R"({"id":-1,"content":"<s>"})")},
      {"an id of 2^31", false, added(R"({"id":2147483648,"content":"<s>"})")},
      {"an id of ten million", false, added(R"({"id":10000000,"content":"<s>"})")},
      {"no id", false, added(R"({"content":"<s>"})")},
      {"no content", false, added(R"({"id":261})")},
      {"content as a number", false, added(R"({"id":261,"content":7})")},
      {"a flag as a string", false, added(R"({"id":261,"content":"<s>","lstrip":"yes"})")},
      {"a content of 5,000 bytes", false,
       added("{\"id\":261,\"content\":\"" + std::string(5000, 'x') + "\"}")},
      {"not a list", false, made_up_json({.added_tokens = "{}"})},
      {"a list of numbers", false, added("1")},
  };
}

std::vector<Seed> component_seeds() {
  return {
      {"an unknown normalizer", false, normalize(R"({"type":"Precompiled","precompiled_charsmap":"AAAA"})")},
      {"a normalizer without a type", false, normalize("{}")},
      {"a normalizer that is a string", false, normalize(R"("NFC")")},
      {"Replace without a pattern", false, normalize(R"({"type":"Replace","content":"x"})")},
      {"Replace of nothing", true, normalize(R"({"type":"Replace","pattern":{"String":""},"content":"x"})")},
      {"Replace by a broken pattern", false,
       normalize(R"({"type":"Replace","pattern":{"Regex":"("},"content":"x"})")},
      {"a token blown up by its normalizer", false,
       made_up_json({.normalizer = R"({"type":"Replace","pattern":{"String":"a"},"content":")" +
                                   std::string(100000, 'b') + "\"}",
                     .added_tokens =
                         R"([{"id":261,"content":")" + std::string(1000, 'a') + R"(","normalized":true}])"})},
      {"an unknown pre-tokenizer", false, split(R"({"type":"UnicodeScripts"})")},
      {"ByteLevel twice", false,
       split(R"({"type":"Sequence","pretokenizers":[{"type":"ByteLevel"},{"type":"ByteLevel"}]})")},
      {"an unknown behaviour", false,
       split(R"({"type":"Split","pattern":{"String":" "},"behavior":"Sideways"})")},
      {"an open group", false, split_by("(a")},
      {"a quantifier on nothing", false, split_by("*a")},
      {"an unknown property", false, split_by("\\\\p{Klingon}")},
      {"a repetition that explodes", false, split_by("((((a{1,999}){1,999}){1,999}){1,999})")},
      {"groups 5,000 deep", false, split_by(repeated("(", 5000) + repeated(")", 5000))},
      {"a class 5,000 deep", false, split_by(repeated("[", 5000) + repeated("]", 5000))},
      {"an intersection of classes", false, split_by("[a-z&&[^b]]")},
      {"a pattern of 70,000 bytes", false, split_by(std::string(70000, 'a'))},
      {"a pattern that is slow only on some text", true, split_by("(a+)+$")},
      {"Metaspace with an unknown scheme", false,
       split(R"({"type":"Metaspace","replacement":"_","prepend_scheme":"last"})")},
      {"an unknown decoder", false, decode(R"({"type":"CTC"})")},
      {"Strip of a negative count", false, decode(R"({"type":"Strip","content":" ","start":-1,"stop":0})")},
      {"Strip of nothing", false, decode(R"({"type":"Strip","content":"","start":1,"stop":0})")},
      {"Strip at the end of the whole text", false,
       decode(
           R"({"type":"Sequence","decoders":[{"type":"Fuse"},{"type":"Strip","content":" ","start":0,"stop":1}]})")},
      {"an unknown post-processor", false, surround(R"({"type":"Sideways"})")},
      {"a template without the text", false,
       surround(R"({"type":"TemplateProcessing","single":[],"special_tokens":{}})")},
      {"a template with the text twice", false,
       surround(
           R"({"type":"TemplateProcessing","single":[{"Sequence":{"id":"A"}},{"Sequence":{"id":"A"}}],"special_tokens":{}})")},
      {"a template with a token it does not explain", false,
       surround(
           R"({"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>"}},{"Sequence":{"id":"A"}}],"special_tokens":{}})")},
      {"a template with an id beyond the vocabulary", false,
       surround(
           R"({"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"s"}},{"Sequence":{"id":"A"}}],
                    "special_tokens":{"s":{"id":"s","ids":[5000]}}})")},
      {"BertProcessing without an id", false,
       surround(R"({"type":"BertProcessing","sep":["</s>",0],"cls":["<s>"]})")},
  };
}

void hold(const std::vector<Seed>& seeds) {
  for (const Seed& seed : seeds) {
    const Verdict verdict =
        judge({"made-up.json", seed.text.size(), [&] { parse_tokenizer(seed.text, "made-up.json"); }});
    EXPECT_EQ(verdict.broken, "") << seed.name << ": " << verdict.message;
    EXPECT_EQ(!verdict.refused, seed.loads) << seed.name << ": " << verdict.message;
  }
}

TEST(HostileTokenizer, DocumentSeeds) {
  hold(document_seeds());
}
TEST(HostileTokenizer, VocabularySeeds) {
  hold(vocabulary_seeds());
}
TEST(HostileTokenizer, AddedTokenSeeds) {
  hold(added_token_seeds());
}
TEST(HostileTokenizer, ComponentSeeds) {
  hold(component_seeds());
}

TEST(HostileTokenizer, ThereAreAtLeastSixtySeeds) {
  EXPECT_GE(document_seeds().size() + vocabulary_seeds().size() + added_token_seeds().size() +
                component_seeds().size(),
            60u);
}

// Small, and with most components, so that a sweep over every bit stays short.
const std::string sweep_text =
    R"({"added_tokens":[{"id":4,"content":"<s>","special":true,"normalized":false}],"normalizer":{"type":"NFC"},)"
    R"("pre_tokenizer":{"type":"Split","pattern":{"Regex":"\\s+"},"behavior":"Isolated"},"post_processor":{"type":)"
    R"("BertProcessing","sep":["<s>",4],"cls":["<s>",4]},"decoder":{"type":"Strip","content":" ","start":1,"stop":0},)"
    R"("model":{"type":"BPE","unk_token":"a","vocab":{"a":0,"b":1,"ab":2,"▁":3},"merges":["a b"]}})";

TEST(HostileTokenizer, EveryBitFlipped) {
  std::string text = sweep_text;
  Sweep sweep;
  for (std::size_t bit = 0; bit < text.size() * 8; ++bit) {
    const auto mask = static_cast<char>(1u << (bit % 8));
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ mask);
    sweep.add("bit " + std::to_string(bit),
              {"made-up.json", text.size(), [&] { parse_tokenizer(text, "made-up.json"); }});
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ mask);
  }
  EXPECT_TRUE(sweep.result());
  EXPECT_GT(sweep.refused(), 1000u);
}

TEST(HostileTokenizer, CutAtEveryByte) {
  Sweep sweep;
  for (std::size_t size = 0; size < sweep_text.size(); ++size) {
    const std::string text = sweep_text.substr(0, size);
    sweep.add(std::to_string(size), {"made-up.json", size, [&] { parse_tokenizer(text, "made-up.json"); }});
  }
  EXPECT_TRUE(sweep.result());
  EXPECT_EQ(sweep.loaded(), 0u);
}

TEST(HostileTokenizer, EveryNumberAtEveryEdge) {
  Sweep sweep;
  for (std::size_t at = sweep_text.find_first_of("0123456789"); at != std::string::npos;) {
    const std::size_t end = sweep_text.find_first_not_of("0123456789", at);
    for (const std::uint64_t value : edge_values(1)) {
      const std::string changed = sweep_text.substr(0, at) + std::to_string(value) + sweep_text.substr(end);
      sweep.add(changed, {"made-up.json", changed.size(), [&] { parse_tokenizer(changed, "made-up.json"); }});
    }
    at = sweep_text.find_first_of("0123456789", end);
  }
  EXPECT_TRUE(sweep.result());
  EXPECT_GT(sweep.refused(), 50u);
}

}  // namespace
}  // namespace inferno
