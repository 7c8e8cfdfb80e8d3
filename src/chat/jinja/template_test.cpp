// Beyond single constructs: origins of text, error messages, the clock, and self-referencing values.
#include "chat/jinja/template.h"

#include <gtest/gtest.h>

#include "chat/json.h"
#include "support/caught_error.h"

namespace inferno::jinja {
namespace {

Rendered render(const std::string& source, const Json& variables) {
  RenderOptions options;
  options.model_texts = {{"bos_token", "<s>"}};
  return Template::parse(source, "test").render(variables, options);
}

// The text with the user's bytes in «».
std::string marked(const std::string& source, const Json& variables) {
  const Rendered rendered = render(source, variables);
  std::string text;
  std::size_t at = 0;
  for (const Span& span : rendered.user_spans) {
    text += rendered.text.substr(at, span.begin - at) + "«";
    text += rendered.text.substr(span.begin, span.end - span.begin) + "»";
    at = span.end;
  }
  return text + rendered.text.substr(at);
}

const Json variables = {{"x", "us er"},
                        {"y", "A,b"},
                        {"list", {"one", "two"}},
                        {"d", {{"k", "v"}}},
                        {"messages", {{{"role", "user"}, {"content", "<|im_end|>"}}, {{"role", "pirate"}}}}};

TEST(Origins, DistinguishTemplateFromUser) {
  EXPECT_EQ(marked("a{{ x }}b", variables), "a«us er»b");
  EXPECT_EQ(marked("{{ '<|im_start|>' + messages[0].content + '\\n' }}", variables),
            "<|im_start|>«<|im_end|>»\n");
  EXPECT_EQ(marked("{{ bos_token }}{{ x }}", variables), "<s>«us er»");
  EXPECT_EQ(marked("{{ x }}{{ x }}", variables), "«us erus er»");
  EXPECT_EQ(marked("{{ missing }}{{ '' }}", variables), "");
}

TEST(Origins, SurviveStringOperations) {
  EXPECT_EQ(marked("{{ x ~ '-' ~ x }}", variables), "«us er»-«us er»");
  EXPECT_EQ(marked("{{ ('ab' + x + 'cd')[1:4] }}", variables), "b«us»");
  EXPECT_EQ(marked("{{ ('  ' + x + ' ').strip() }}", variables), "«us er»");
  EXPECT_EQ(marked("{{ ('a' + x)|upper }}", variables), "A«US ER»");
  EXPECT_EQ(marked("{{ ('a' + x)|title }}", variables), "A«us Er»");
  EXPECT_EQ(marked("{{ x.replace(' ', '<|end|>') }}", variables), "«us»<|end|>«er»");
  EXPECT_EQ(marked("{{ 'a b'.replace(' ', x) }}", variables), "a«us er»b");
  EXPECT_EQ(marked("{{ y.split(',')|join('|') }}", variables), "«A»|«b»");
  EXPECT_EQ(marked("{{ x[::-1] }}{{ x|first }}{{ x|last }}", variables), "«re suur»");
  EXPECT_EQ(marked("{{ '%s=%5s|' % (x, 'ab') }}", variables), "«us er»=   ab|");
  EXPECT_EQ(marked("{{ '<{}>'.format(x) }}", variables), "<«us er»>");
  EXPECT_EQ(marked("{{ x.center(9, '*') }}", variables), "**«us er»**");
  EXPECT_EQ(marked("{{ (x ~ '\\n' ~ x)|indent(2) }}", variables), "«us er»\n  «us er»");
  EXPECT_EQ(marked("{{ x|replace('u', '')|trim }}", variables), "«s er»");
  EXPECT_EQ(marked("{{ x * 2 }}", variables), "«us erus er»");
  EXPECT_EQ(marked("{% filter upper %}a{{ x }}{% endfilter %}", variables), "A«US ER»");
  EXPECT_EQ(marked("{% set z %}<{{ x }}>{% endset %}{{ z }}", variables), "<«us er»>");
  EXPECT_EQ(marked("{% macro m(v) %}[{{ v }}]{% endmacro %}{{ m(x) }}", variables), "[«us er»]");
  EXPECT_EQ(marked("{% generation %}{{ x }}{% endgeneration %}.", variables), "«us er».");
}

TEST(Origins, SurviveJsonAndPrintedContainers) {
  EXPECT_EQ(marked("{{ d|tojson }}", variables), "{\"«k»\": \"«v»\"}");
  EXPECT_EQ(marked("{{ ['a', x]|tojson }}", variables), "[\"a\", \"«us er»\"]");
  EXPECT_EQ(marked("{{ list }}", variables), "['«one»', '«two»']");
  EXPECT_EQ(marked("{{ ('\"' ~ y)|tojson }}", variables), "\"\\\"«A,b»\"");
  EXPECT_EQ(marked("{{ {'a': x}|string }}", variables), "{'a': '«us er»'}");
  EXPECT_EQ(marked("{{ d.items()|list }}", variables), "[('«k»', '«v»')]");
  EXPECT_EQ(marked("{% for k in d %}{{ k }}{% endfor %}", variables), "«k»");
  EXPECT_EQ(marked("{{ list|join(', ') }}", variables), "«one», «two»");
  EXPECT_EQ(marked("{{ list|map('upper')|list|last }}", variables), "«TWO»");
}

TEST(Origins, TrustKnownRolesOnlyInMessages) {
  EXPECT_EQ(marked("{{ '<|' + messages[0].role + '|>' }}", variables), "<|user|>");
  EXPECT_EQ(marked("{{ '<|' + messages[1].role + '|>' }}", variables), "<|«pirate»|>");
  EXPECT_EQ(marked("{{ d.role }}", {{"d", {{"role", "user"}}}}), "«user»");
  EXPECT_EQ(marked("{{ messages[0].x.role }}", {{"messages", {{{"x", {{"role", "user"}}}}}}}), "«user»");
  EXPECT_EQ(marked("{{ messages[0].name }}", {{"messages", {{{"name", "user"}}}}}), "«user»");
}

TEST(Origins, AreMergedAndAscending) {
  const Rendered rendered = render("{% for c in x %}{{ c }}{% endfor %}.{{ x }}", variables);
  EXPECT_EQ(rendered.user_spans, (std::vector<Span>{{0, 5}, {6, 11}}));
}

TEST(Template, NamesItselfAndTheLineInEveryError) {
  const auto refusal = [](const std::string& source) {
    return std::string(caught_error([&] { render(source, variables); }).what());
  };
  EXPECT_EQ(refusal("a\n\n{{ x.y.z }}"), "test, line 3: 'str object' has no attribute 'y'");
  EXPECT_EQ(refusal("a\n{{ raise_exception('no ' ~ x) }}"), "test, line 2: no us er");
  EXPECT_EQ(refusal("\n{{ nosuch(1) }}"), "test, line 2: 'nosuch' is undefined");
  EXPECT_EQ(refusal("\n\n{{ x|nosuch }}"), "test, line 3: there is no filter named 'nosuch'");
  EXPECT_EQ(refusal("\n{{ x is nosuch }}"), "test, line 2: there is no test named 'nosuch'");
  EXPECT_EQ(refusal("{% include 'x' %}"), "test, line 1: the tag 'include' is not supported");
  EXPECT_EQ(refusal("{{ 9223372036854775807 + 1 }}"),
            "test, line 1: the result is an integer beyond 64 bits");
}

TEST(Template, DistinguishesMalformedFromUnknown) {
  const auto kind = [](const std::string& source) {
    return caught_error([&] { Template::parse(source, "test"); }).kind();
  };
  for (const char* source :
       {"{{", "{% if x %}", "{{ 1 + }}", "{% endif %}", "{{ 'a }}", "{# a", "\xff", "{{ (] }}"}) {
    EXPECT_EQ(kind(source), ErrorKind::corrupt) << source;
  }
  for (const char* source : {"{% import 'x' as y %}", "{{ x|nosuch }}", "{% block b %}{% endblock %}"}) {
    EXPECT_EQ(kind(source), ErrorKind::unsupported) << source;
  }
}

TEST(Template, RefusesVariablesThatAreNotAnObject) {
  const auto chat_template = Template::parse("x", "test");
  for (const Json& wrong : {Json(nullptr), Json::array(), Json("text"), Json(5)}) {
    EXPECT_EQ(caught_error([&] { chat_template.render(wrong); }).kind(), ErrorKind::invalid_request);
  }
}

TEST(Template, RefusesTextThatIsNotUtf8) {
  const auto chat_template = Template::parse("{{ x }}", "test");
  EXPECT_EQ(caught_error([&] { chat_template.render({{"x", "\xC3"}}); }).kind(), ErrorKind::invalid_request);
}

TEST(Template, RefusesIntegersBeyond64Bits) {
  const auto chat_template = Template::parse("{{ x }}", "test");
  EXPECT_THROW(chat_template.render({{"x", UINT64_MAX}}), Error);
  EXPECT_EQ(chat_template.render({{"x", INT64_MIN}}).text, "-9223372036854775808");
}

TEST(Template, UsesTheGivenClock) {
  using namespace std::chrono;
  RenderOptions options;
  options.clock = [] { return local_days(2024y / February / 29) + 23h + 5min + 9s; };
  const auto chat_template = Template::parse("{{ strftime_now('%d %b %Y %H:%M:%S %j %G-W%V-%u') }}", "test");
  EXPECT_EQ(chat_template.render(Json::object(), options).text, "29 Feb 2024 23:05:09 060 2024-W09-4");
  options.clock = [] { return local_days(2021y / January / 3) + 0h; };
  EXPECT_EQ(chat_template.render(Json::object(), options).text, "03 Jan 2021 00:00:00 003 2020-W53-7");
}

TEST(Template, LeaksNothingWhenValuesReferToThemselves) {
  // Checked by the leak detector of the sanitizer build.
  for (const char* source :
       {"{% set ns = namespace() %}{% set ns.a = ns %}{% set ns.b = [ns] %}",
        "{% for x in [1, 2] %}{{ loop.changed(loop) }}{% set saved = loop %}{% endfor %}",
        "{% set ns = namespace() %}{% for x in [1] %}{% macro m() %}{{ x }}{% endmacro %}{% set ns.m = m %}"
        "{% set ns.l = loop %}{% set y = ns %}{% endfor %}{{ ns.m() }}",
        "{% macro f(g) %}{% set h = f %}{{ raise_exception('stop') }}{% endmacro %}{{ f(f) }}",
        "{% for a in [1] %}{% set ns = namespace() %}{% for b in [1] %}{% set ns.l = loop %}{% endfor %}"
        "{% set kept = ns.l %}{% endfor %}"}) {
    try {
      render(source, variables);
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("stop"), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace inferno::jinja
