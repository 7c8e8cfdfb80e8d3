#include "grammar/matcher.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "text/tokenizer_scene.h"

namespace inferno::grammar {
namespace {

constexpr TokenId he = 256, ll = 257, hello = 259, end = 261, think = 262;

struct Scene {
  Scene() {
    MadeUpParts parts;
    parts.added_tokens =
        R"([{"id":261,"content":"<|end|>","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,)"
        R"("special":true},{"id":262,"content":"<think>","single_word":false,"lstrip":false,"rstrip":false,)"
        R"("normalized":false,"special":false}])";
    tokenizer = parse_tokenizer(made_up_json(parts), "scene");
    vocabulary = make_vocabulary(*tokenizer);
  }

  Matcher matcher(std::shared_ptr<const Grammar> grammar) const { return {std::move(grammar), vocabulary}; }

  // The tokens that may come next, each mask compared with trying every token.
  std::vector<TokenId> allowed(Matcher& matcher) const {
    std::vector<std::uint32_t> mask(vocabulary->mask_words());
    matcher.fill(mask);
    EXPECT_TRUE(matcher.agrees_with_plain_walk(mask));
    std::vector<TokenId> tokens;
    for (TokenId token = 0; token < vocabulary->size(); ++token)
      if ((mask[static_cast<std::size_t>(token) / 32] >> (token % 32) & 1) != 0) tokens.push_back(token);
    return tokens;
  }

  std::unique_ptr<Tokenizer> tokenizer;
  std::shared_ptr<const Vocabulary> vocabulary;
};

bool accepts(const Scene& scene, const std::shared_ptr<const Grammar>& grammar, std::string_view text) {
  Matcher matcher = scene.matcher(grammar);
  for (const char byte : text)
    if (!matcher.take_byte(static_cast<std::uint8_t>(byte))) return false;
  return matcher.may_end();
}

Refusal refusal_of(std::string_view schema) {
  try {
    compile_schema(schema);
  } catch (const RefusedError& error) {
    return error.refusal();
  }
  return {};
}

TEST(Matcher, AllowsEveryTokenThatFitsAndNoOther) {
  const Scene scene;
  const std::vector<std::string> choices = {"hello", "help"};
  Matcher matcher = scene.matcher(compile_choices(choices));
  EXPECT_THAT(scene.allowed(matcher), testing::ElementsAre('h', he, 258, hello));
  ASSERT_TRUE(matcher.take(he));
  EXPECT_THAT(scene.allowed(matcher), testing::ElementsAre('l', ll));
  EXPECT_FALSE(matcher.take('x'));
  ASSERT_TRUE(matcher.take('l'));
  ASSERT_TRUE(matcher.take('p'));
  EXPECT_TRUE(matcher.may_end());
  EXPECT_TRUE(matcher.is_finished());
  EXPECT_THAT(scene.allowed(matcher), testing::IsEmpty());
}

TEST(Matcher, AllowsControlTokensOnlyByName) {
  const Scene scene;
  Matcher free = scene.matcher(compile_regex(".*"));
  EXPECT_THAT(scene.allowed(free), testing::Not(testing::Contains(end)));
  EXPECT_THAT(scene.allowed(free), testing::Not(testing::Contains(think)));
  Matcher named = scene.matcher(compile_gbnf("root ::= <think> \"a\" <[261]>\n", scene.tokenizer.get()));
  EXPECT_THAT(scene.allowed(named), testing::ElementsAre(think));
  ASSERT_TRUE(named.take(think));
  ASSERT_TRUE(named.take('a'));
  EXPECT_THAT(scene.allowed(named), testing::ElementsAre(end));
  ASSERT_TRUE(named.take(end));
  EXPECT_TRUE(named.is_finished());
}

TEST(Matcher, FreeTextEndsAtATokenEdge) {
  const Scene scene;
  Rules rules;
  const Part root = rules.sequence({rules.free_text(), rules.token({end})});
  Matcher matcher = scene.matcher(compile(std::move(rules), root));
  EXPECT_EQ(scene.allowed(matcher).size(), 262U);  // everything but <think>
  ASSERT_TRUE(matcher.take(hello));
  EXPECT_FALSE(matcher.may_end());
  ASSERT_TRUE(matcher.take(end));
  EXPECT_TRUE(matcher.is_finished());
}

TEST(Matcher, ForksGoTheirOwnWays) {
  const Scene scene;
  Matcher one = scene.matcher(compile_schema(R"({"type":"object"})"));
  for (const char byte : std::string_view(R"({"a":1,")")) ASSERT_TRUE(one.take(byte));
  const auto other = one.fork();
  ASSERT_TRUE(one.take('a'));
  EXPECT_FALSE(one.take('"'));  // comes a second time
  ASSERT_TRUE(other->take('b'));
  EXPECT_TRUE(other->take('"'));
}

TEST(Rules, EmbedsOneConstraintInAnother) {
  const Scene scene;
  const auto arguments = compile_schema(R"({"type":"object","properties":{"x":{"type":"integer"}},)"
                                        R"("required":["x"],"additionalProperties":false})");
  Rules rules;
  const Part call = rules.sequence(
      {rules.text_up_to("<call>"), rules.embed(arguments->rules(), arguments->root()), rules.token({end})});
  Matcher matcher = scene.matcher(compile(std::move(rules), call));
  for (const char byte : std::string_view(R"(some < text<call>{"x": 12})")) ASSERT_TRUE(matcher.take(byte));
  EXPECT_THAT(scene.allowed(matcher), testing::ElementsAre(end));
}

TEST(Schema, CountersCostNoStates) {
  const Scene scene;
  const auto small = compile_schema(R"({"type":"string","maxLength":3})");
  const auto large = compile_schema(R"({"type":"string","minLength":2,"maxLength":100000})");
  EXPECT_EQ(small->machine().states.size(), large->machine().states.size());
  EXPECT_TRUE(accepts(scene, large, "\"" + std::string(100'000, 'x') + "\""));
  EXPECT_FALSE(accepts(scene, large, "\"" + std::string(100'001, 'x') + "\""));
  EXPECT_FALSE(accepts(scene, large, "\"x\""));
  EXPECT_TRUE(accepts(scene, small, R"("\ud83d\ude00é\n")"));
}

TEST(Schema, KeysComeInTheSchemasOrderAndOnce) {
  const Scene scene;
  const auto grammar = compile_schema(R"({"properties":{"a":{"type":"integer"},"b":{}},"required":["b"]})");
  EXPECT_TRUE(accepts(scene, grammar, R"({"a":1,"b":[],"c":"x"})"));
  EXPECT_TRUE(accepts(scene, grammar, "{\n  \"b\": 1\n}"));
  EXPECT_FALSE(accepts(scene, grammar, R"({"b":1,"a":1})"));
  EXPECT_FALSE(accepts(scene, grammar, R"({"b":1,"c":1,"c":2})"));
  EXPECT_FALSE(accepts(scene, grammar, R"({"b":1,"\u0062":2})"));
}

TEST(Schema, KeysThatAPatternLimitsAreNotPromisedTwice) {
  const Scene scene;
  const auto grammar = compile_schema(
      R"({"type":"object","patternProperties":{"^[ab]$":{"type":"null"}},"additionalProperties":false})");
  Matcher matcher = scene.matcher(grammar);
  for (const char byte : std::string_view(R"({"b":null,"a":null)")) ASSERT_TRUE(matcher.take(byte));
  EXPECT_FALSE(matcher.take(','));
  EXPECT_TRUE(matcher.take('}'));
}

// A vocabulary of 20,000 tokens, most of them words that could begin a key.
TEST(Schema, ShortKeysOfPatternsCostNoWalkOverAllTokens) {
  std::string vocab;
  for (int id = 0; id < 20'000; ++id) {
    std::string word;
    if (id < 256) {
      word = byte_alphabet::write(std::string(1, static_cast<char>(id)));
      if (id == '"' || id == '\\') word = "\\" + word;
    } else {
      for (int rest = id; rest > 0; rest /= 26) word += static_cast<char>('a' + rest % 26);
      word += "_" + std::to_string(id);
    }
    vocab += (id > 0 ? ",\"" : "\"") + word + "\":" + std::to_string(id);
  }
  MadeUpParts parts;
  parts.model = R"({"type":"BPE","vocab":{)" + vocab + R"(},"merges":[]})";
  Scene scene;
  scene.tokenizer = parse_tokenizer(made_up_json(parts), "scene");
  scene.vocabulary = make_vocabulary(*scene.tokenizer);
  std::vector<std::uint32_t> mask(scene.vocabulary->mask_words());
  for (const char* pattern : {"^.$", "^..$", "^[0-9]$"}) {
    Matcher matcher = scene.matcher(compile_schema(R"({"type":"object","patternProperties":{")" +
                                                   std::string(pattern) + R"(":{"type":"integer"}}})"));
    for (const char byte : std::string_view(R"({"a":1,"b":2,"0":3,"01":4,")")) {
      matcher.fill(mask);
      ASSERT_TRUE(matcher.take(byte)) << pattern;
    }
    matcher.fill(mask);
    EXPECT_TRUE(matcher.agrees_with_plain_walk(mask)) << pattern;
    EXPECT_LT(matcher.bytes(), std::size_t{2} << 20) << pattern;
  }
}

TEST(Schema, OffersNoTokenThatOnlyUsedKeysBeginWith) {
  const Scene scene;
  Matcher matcher = scene.matcher(compile_schema(
      R"({"type":"object","patternProperties":{"^.$":{"type":"integer"}},"additionalProperties":false})"));
  for (const char byte : std::string_view(R"({"a":1,"b":2,")")) ASSERT_TRUE(matcher.take(byte));
  const std::vector<TokenId> tokens = scene.allowed(matcher);
  EXPECT_THAT(tokens, testing::Not(testing::Contains('a')));
  EXPECT_THAT(tokens, testing::Contains('c'));
}

TEST(Schema, RefusesByNameAndPlace) {
  const Refusal unsupported = refusal_of(R"({"properties":{"a/b":{"unevaluatedProperties":false}}})");
  EXPECT_EQ(unsupported.kind, RefusalKind::unsupported);
  EXPECT_EQ(unsupported.pointer, "/properties/a~1b/unevaluatedProperties");
  EXPECT_EQ(unsupported.keyword, "unevaluatedProperties");
  EXPECT_EQ(refusal_of(R"({"allOf":[{"type":"string"},{"type":"null"}]})").kind, RefusalKind::unsatisfiable);
  EXPECT_EQ(refusal_of(R"({"type":"text"})").pointer, "/type");
  EXPECT_EQ(refusal_of(R"({"$ref":"other.json"})").kind, RefusalKind::unsupported);
  EXPECT_EQ(refusal_of(R"({"properties":{"n":{"$ref":"#"}},"required":["n"],"type":"object"})").kind,
            RefusalKind::unsatisfiable);
}

// `count` keys, each of which requires another one.
std::string dependencies(int count, bool declared) {
  std::string properties, dependencies;
  for (int i = 0; i < count; ++i) {
    properties += fmt::format(R"({}"a{}":{{}},"b{}":{{}})", i > 0 ? "," : "", i, i);
    dependencies += fmt::format(R"({}"a{}":["b{}"])", i > 0 ? "," : "", i, i);
  }
  return R"({"type":"object","properties":{)" + (declared ? properties : "") + R"(},"dependentRequired":{)" +
         dependencies + "}}";
}

TEST(Schema, DependenciesOfDeclaredKeysCostTwoWaysEach) {
  const auto pairs = [](int count) { return dependencies(count, true); };
  const Scene scene;
  const auto grammar = compile_schema(pairs(8));
  EXPECT_TRUE(accepts(scene, grammar, R"({"a0":1,"b0":1,"b3":1,"a7":1,"b7":1})"));
  EXPECT_FALSE(accepts(scene, grammar, R"({"a0":1,"b0":1,"a7":1})"));
  const Refusal refusal = refusal_of(pairs(20));
  EXPECT_EQ(refusal.kind, RefusalKind::limit);
  EXPECT_EQ(refusal.pointer, "/dependentRequired");
  EXPECT_EQ(refusal.keyword, "dependentRequired");
  const auto undeclared = compile_schema(R"({"dependentRequired":{"c":["d"]}})");
  EXPECT_TRUE(accepts(scene, undeclared, R"({"c":1,"d":1})"));
  EXPECT_TRUE(accepts(scene, undeclared, R"({"d":1,"c":1})"));
  EXPECT_FALSE(accepts(scene, undeclared, R"({"c":1})"));
}

// docs/constrained.md names these numbers.
TEST(Schema, DependenciesAreManyUpToALimit) {
  EXPECT_NO_THROW(compile_schema(dependencies(10, true)));
  EXPECT_EQ(refusal_of(dependencies(11, true)).kind, RefusalKind::limit);
  EXPECT_NO_THROW(compile_schema(dependencies(7, false)));
  EXPECT_EQ(refusal_of(dependencies(8, false)).kind, RefusalKind::limit);
}

TEST(Schema, UndeclaredKeysThatAreRequiredComeInTheirListedOrder) {
  const Scene scene;
  const auto required = compile_schema(R"({"required":["y","x"]})");
  EXPECT_TRUE(accepts(scene, required, R"({"y":1,"x":1,"a":1})"));
  EXPECT_FALSE(accepts(scene, required, R"({"x":1,"y":1})"));
  EXPECT_FALSE(accepts(scene, required, R"({"y":1,"a":1,"x":1})"));
  const auto dependent = compile_schema(R"({"dependentRequired":{"c":["y","x"]}})");
  EXPECT_TRUE(accepts(scene, dependent, R"({"y":1,"x":1,"a":1,"c":1})"));
  EXPECT_TRUE(accepts(scene, dependent, R"({"c":1,"y":1,"x":1,"a":1})"));
  EXPECT_FALSE(accepts(scene, dependent, R"({"c":1,"x":1,"y":1})"));
  EXPECT_FALSE(accepts(scene, dependent, R"({"y":1,"c":1,"x":1})"));
}

TEST(Schema, KeywordsThatSayNothingAreNoReasonToRefuse) {
  const Scene scene;
  const auto single = compile_schema(R"({"type":"array","uniqueItems":true,"maxItems":1})");
  EXPECT_TRUE(accepts(scene, single, "[1]"));
  EXPECT_FALSE(accepts(scene, single, "[1,1]"));
  EXPECT_EQ(refusal_of(R"({"type":"array","uniqueItems":true,"maxItems":2})").keyword, "uniqueItems");
  EXPECT_TRUE(
      accepts(scene, compile_schema(R"({"unevaluatedProperties":true,"unevaluatedItems":true})"), "[1]"));
  EXPECT_EQ(refusal_of(R"({"unevaluatedProperties":{}})").keyword, "unevaluatedProperties");
  EXPECT_TRUE(accepts(scene, compile_schema(R"({"minContains":2})"), "[]"));
  EXPECT_EQ(refusal_of(R"({"minContains":2,"contains":{}})").kind, RefusalKind::unsupported);
  EXPECT_TRUE(accepts(scene, compile_schema(R"({"uniqueItems":true,"maxItems":1.0})"), "[1]"));
  const auto negated = compile_schema(R"({"not":{"type":"array","uniqueItems":true,"maxItems":1}})");
  EXPECT_TRUE(accepts(scene, negated, "[1,1]"));
  EXPECT_FALSE(accepts(scene, negated, "[1]"));
  for (const char* always : {R"({"minContains":2})", R"({"unevaluatedProperties":true})"})
    EXPECT_EQ(refusal_of(R"({"not":)" + std::string(always) + "}").kind, RefusalKind::unsatisfiable)
        << always;
}

TEST(Schema, ReferencesFollowAddressesAndAnchors) {
  const Scene scene;
  const auto leads = [&](const std::string& base, const std::string& reference, const std::string& id) {
    const auto grammar = compile_schema(R"({"$id":")" + base + R"(","$ref":")" + reference +
                                        R"(","$defs":{"a":{"$id":")" + id + R"(","type":"null"}}})");
    return accepts(scene, grammar, "null") && !accepts(scene, grammar, "1");
  };
  EXPECT_TRUE(leads("http://x/y/root.json", "./a.json", "a.json"));
  EXPECT_TRUE(leads("http://x/y/root.json", "../y/a.json", "a.json"));
  EXPECT_TRUE(leads("http://x/y/root.json", "/y/./z/../a.json", "a.json"));
  EXPECT_TRUE(leads("http://x/y/root.json", "../../../a.json", "http://x/a.json"));
  EXPECT_TRUE(leads("http://x", "a.json", "http://x/a.json"));
  EXPECT_TRUE(leads("http://x/y/root.json", "http://x/a/./d.json", "/b/../a/d.json"));
  EXPECT_TRUE(leads("http://x/a/b?y=1/2", "http://x/a/d.json", "d.json"));
  EXPECT_TRUE(leads("http://x/a/b?y=1/../2", "http://x/a/b?y=1/../2#/$defs/a", "?z=3:4"));
  EXPECT_TRUE(leads("http://x/a/b", "http://x/a/b?z=3:4", "?z=3:4"));
  EXPECT_TRUE(leads("http://x/a/b", "http://y/c", "//y/c"));
  EXPECT_TRUE(leads("root.json", "q", "a/../q"));
  EXPECT_TRUE(leads("root.json", "./q", "q"));
  EXPECT_TRUE(leads("root.json", "q", "./q"));
  EXPECT_TRUE(leads("a/root.json", "b", "../a/b"));
  EXPECT_TRUE(leads("urn:a", "urn:q", "q"));
  EXPECT_EQ(refusal_of(R"({"$ref":"a/q","$defs":{"a":{"$id":"a/../q"}}})").kind, RefusalKind::unsupported);
  EXPECT_EQ(refusal_of(R"({"items":{"$ref":"."}})").kind, RefusalKind::unsupported);
  const auto anchor = compile_schema(R"({"$ref":"#n","$defs":{"a":{"$dynamicAnchor":"n","type":"null"}}})");
  EXPECT_TRUE(accepts(scene, anchor, "null"));
  EXPECT_FALSE(accepts(scene, anchor, "1"));
  EXPECT_EQ(refusal_of(R"({"$dynamicRef":"#n","$defs":{"a":{"$dynamicAnchor":"n"}}})").keyword,
            "$dynamicRef");
}

TEST(Schema, NegatesExclusiveBounds) {
  const Scene scene;
  const auto at_most = compile_schema(R"({"type":"number","not":{"exclusiveMinimum":2}})");
  EXPECT_TRUE(accepts(scene, at_most, "2"));
  EXPECT_FALSE(accepts(scene, at_most, "2.5"));
  const auto at_least = compile_schema(R"({"type":"number","not":{"exclusiveMaximum":2}})");
  EXPECT_TRUE(accepts(scene, at_least, "2"));
  EXPECT_FALSE(accepts(scene, at_least, "1.5"));
  const auto flag = compile_schema(R"({"$schema":"http://json-schema.org/draft-04/schema#","type":"number",)"
                                   R"("not":{"minimum":2,"exclusiveMinimum":true}})");
  EXPECT_TRUE(accepts(scene, flag, "2"));
  EXPECT_FALSE(accepts(scene, flag, "3"));
}

TEST(Schema, NamesThePlaceAndBothNumbersOfALimit) {
  const Refusal bound =
      refusal_of(R"({"properties":{"a":{"type":"integer","maximum":)" + std::string(300, '5') + "}}}");
  EXPECT_EQ(bound.pointer, "/properties/a/maximum");
  EXPECT_EQ(bound.message, "a bound of 300 digits needs more than 20000 states (limit 20000)");
  const Refusal multiple = refusal_of(R"({"type":"integer","multipleOf":999983})");
  EXPECT_EQ(multiple.pointer, "/multipleOf");
  EXPECT_EQ(multiple.message, "multipleOf needs 2999949 states (limit 20000)");
}

TEST(Schema, NumbersStayWithinTheirBounds) {
  const Scene scene;
  const auto grammar =
      compile_schema(R"({"type":"number","exclusiveMinimum":-1.5,"maximum":20.25,"multipleOf":0.25})");
  for (const char* right : {"0", "-1.25", "20.25", "19.5", "7.750"})
    EXPECT_TRUE(accepts(scene, grammar, right)) << right;
  for (const char* wrong : {"-1.5", "20.5", "0.1", "21", "-2", "1e1"})
    EXPECT_FALSE(accepts(scene, grammar, wrong)) << wrong;
}

TEST(Regex, RefusesWhatIsNotRegular) {
  for (const char* expression : {"(?=a)b", "(a)\\1", "\\bx", "a**", "[z-a]", "(", "a{2,1}"})
    EXPECT_THROW(compile_regex(expression), RefusedError) << expression;
}

TEST(Regex, ReadsControlLettersOfPatterns) {
  const Scene scene;
  const auto grammar = compile_schema(R"({"type":"string","pattern":"^\\cJ\\cj$"})");
  EXPECT_TRUE(accepts(scene, grammar, R"("\n\n")"));
  EXPECT_FALSE(accepts(scene, grammar, R"("JJ")"));
  EXPECT_THROW(compile_regex("\\cJ"), RefusedError);  // not in Python
}

TEST(Gbnf, ReadsLineFeedsInsideTexts) {
  const Scene scene;
  EXPECT_TRUE(accepts(scene, compile_gbnf("root ::= \"a\nb\" [\n]\n"), "a\nb\n"));
}

TEST(Gbnf, NamesLineAndColumnOfLimits) {
  try {
    compile_gbnf("root ::= a\na ::= \"x\"{1,5000000000}\n");
    FAIL();
  } catch (const RefusedError& error) {
    EXPECT_EQ(error.refusal().kind, RefusalKind::limit);
    EXPECT_EQ(error.refusal().message, "line 2, column 10: the number is too large (limit 4294967294)");
  }
}

TEST(Gbnf, NamesLineAndColumn) {
  try {
    compile_gbnf("root ::= a\na ::= \"x\" missing\n");
    FAIL();
  } catch (const RefusedError& error) {
    EXPECT_THAT(error.refusal().message, testing::HasSubstr("line 2, column 11"));
  }
}

}  // namespace
}  // namespace inferno::grammar
