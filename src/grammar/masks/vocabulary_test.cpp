#include "grammar/masks/vocabulary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "text/byte_alphabet.h"
#include "text/tokenizer_scene.h"

namespace inferno::grammar {
namespace {

using namespace std::string_literals;

// The tokens of a trie with the bytes that lead to them, in the order of the nodes.
std::vector<std::pair<std::string, TokenId>> tokens_of(const Vocabulary& vocabulary,
                                                       const std::vector<TrieNode>& trie) {
  std::vector<std::pair<std::string, TokenId>> found;
  std::vector<std::size_t> ends;  // of the subtrees that a node is in
  std::string bytes;
  for (std::size_t at = 0; at < trie.size(); ++at) {
    for (; !ends.empty() && ends.back() <= at; ends.pop_back()) bytes.pop_back();
    bytes += static_cast<char>(trie[at].byte);
    ends.push_back(at + trie[at].size);
    vocabulary.for_each_token(trie[at], [&](TokenId token) { found.emplace_back(bytes, token); });
  }
  return found;
}

// Byte tokens and texts that begin alike, which a comparison of eight bytes at a time could confuse.
TEST(Vocabulary, HasTriesSortedByBytes) {
  const std::string eight = "aaaaaaaa";
  const std::vector<std::string> texts = {eight + "b",          eight,         eight + "\0"s,
                                          "aaaaaaa\0"s,         "aaaaaaa",     eight + "\0\0"s,
                                          eight + eight + "b",  eight + eight, eight + "\xC3\xA9",
                                          eight + eight + "\"", "\0\0"s,       eight + eight + "\0"s};
  std::string vocab;
  TokenId count = 0;
  const auto add = [&](const std::string& text) {
    std::string word = byte_alphabet::write(text);
    if (const auto quote = word.find_first_of("\"\\"); quote != std::string::npos) word.insert(quote, "\\");
    vocab += (count > 0 ? ",\"" : "\"") + word + "\":" + std::to_string(count);
    ++count;
  };
  for (int byte = 0; byte < 256; ++byte) add(std::string(1, static_cast<char>(byte)));
  for (const std::string& text : texts) add(text);
  MadeUpParts parts;
  parts.model = R"({"type":"BPE","vocab":{)" + vocab + R"(},"merges":[]})";
  parts.added_tokens = "[]";
  const auto tokenizer = parse_tokenizer(made_up_json(parts), "scene");
  const Vocabulary vocabulary(*tokenizer);

  const auto all = tokens_of(vocabulary, vocabulary.trie());
  EXPECT_EQ(all.size(), static_cast<std::size_t>(count));
  EXPECT_TRUE(std::ranges::is_sorted(all));
  for (const auto& [bytes, token] : all) EXPECT_EQ(vocabulary.bytes(token), bytes);
  std::vector<std::pair<std::string, TokenId>> in_classes;
  for (const TokenClass& one : vocabulary.classes()) {
    const auto tokens = tokens_of(vocabulary, one.trie);
    EXPECT_TRUE(std::ranges::is_sorted(tokens));
    in_classes.insert(in_classes.end(), tokens.begin(), tokens.end());
    EXPECT_TRUE(std::ranges::is_sorted(one.by_length, {}, &TokenClass::Sized::characters));
    EXPECT_EQ(one.by_length.size(), one.max_characters > 0 ? tokens.size() : 0);
  }
  EXPECT_THAT(in_classes, testing::UnorderedElementsAreArray(all));
}

}  // namespace
}  // namespace inferno::grammar
