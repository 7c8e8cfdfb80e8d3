#include "hostile_templates.h"

namespace inferno::hostile {
namespace {

std::string repeated(const std::string& piece, std::size_t times) {
  std::string text;
  text.reserve(piece.size() * times);
  for (std::size_t i = 0; i < times; ++i) text += piece;
  return text;
}

// Three nested loops of a thousand iterations around `body`.
std::string thousandfold(const std::string& body) {
  return "{% for i in range(1000) %}{% for j in range(1000) %}{% for k in range(1000) %}" + body +
         "{% endfor %}{% endfor %}{% endfor %}";
}

const std::string doubling_to = "{% set ns = namespace(t='0123456789abcdef') %}{% for i in range(";
const std::string doubling = ") %}{% set ns.t = ns.t + ns.t %}{% endfor %}";

}  // namespace

const std::vector<Seed>& large_sources() {
  static const std::size_t mebibyte = std::size_t{1} << 20;
  static const std::vector<Seed> seeds = {
      {std::string(mebibyte + 1, 'x')},
      {std::string(mebibyte + 1, '{')},
      {std::string(mebibyte + 1, '\n')},
      {repeated("{{x}}", mebibyte / 5 + 1)},
      {repeated("{%if x%}", mebibyte / 8 + 1)},
      {repeated("{# #}", mebibyte / 5 + 1)},
      {"{{ '" + std::string(mebibyte, 'a') + "' }}"},
      {"{# " + std::string(mebibyte, 'c') + " #}"},
      {"{% raw %}" + std::string(mebibyte, 'r') + "{% endraw %}"},
      {repeated("\xE6\x97\xA5", mebibyte / 3 + 1)},
      {std::string(mebibyte + 1, '\0')},
      {"{{ [" + repeated("1,", mebibyte / 2) + "] }}"},
  };
  return seeds;
}

const std::vector<Seed>& many_steps() {
  static const std::vector<Seed> seeds = {
      {thousandfold("")},
      {thousandfold("{% set x = i + j + k %}")},
      {thousandfold("{% if i == j %}{% endif %}")},
      {"{% macro f(n) %}{% if n > 0 %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(40) }}"},
      {"{% for i in range(100000) %}{{ range(100000)|sum and '' }}{% endfor %}"},
      {"{% for i in range(100000) %}{% set x = range(100000)|list %}{% endfor %}"},
      {"{% for i in range(100000) %}{% set x = text|upper %}{% endfor %}"},
      {"{% for i in range(100000) %}{% set x = text.replace('u', 'v') %}{% endfor %}"},
      {"{% for i in range(100000) %}{% set x = text.split('u') %}{% endfor %}"},
      {"{% for i in range(100000) %}{% set x = 'z' in text %}{% endfor %}"},
      {"{% for i in range(100000) %}{% set x = text == text ~ '' %}{% endfor %}"},
      {"{% for i in range(100000) %}{% set x = text|tojson %}{% endfor %}"},
      {"{% for i in range(100000) %}{% set x = text[i] %}{% endfor %}"},
      {"{% for i in range(100000) %}{% set x = 'v' ~ text %}{% endfor %}"},
      {"{% for i in range(100000) %}{% set x = range(100000)|map('string')|join %}{% endfor %}"},
      {"{% for i in range(100000) if 99999999 in range(100000) %}{% endfor %}"},
      {"{% for i in range(100000) %}{% set x = range(10000)|sort(reverse=true) %}{% endfor %}"},
      {"{% set ns = namespace(t='') %}" + thousandfold("{% set ns.t = 'x' ~ k %}")},
      {"{% for c in text %}{% for d in text %}{% endfor %}{% endfor %}"},
      {"{% set ns = namespace(l=[]) %}{% for i in range(100000) %}{% set ns.l = ns.l + [i] %}{% endfor %}"},
  };
  return seeds;
}

const std::vector<Seed>& deep() {
  static const std::vector<Seed> seeds = {
      {"{{ " + repeated("(", 50'000) + "1" + repeated(")", 50'000) + " }}"},
      {"{{ " + repeated("[", 50'000) + repeated("]", 50'000) + " }}"},
      {"{{ " + repeated("{1:", 50'000) + "1" + repeated("}", 50'000) + " }}"},
      {"{{ " + repeated("not ", 50'000) + "1 }}"},
      {"{{ " + repeated("-", 50'000) + "1 }}"},
      {"{{ " + repeated("1 if 1 else ", 50'000) + "1 }}"},
      {"{{ 1" + repeated(" if 1", 50'000) + " }}"},
      {"{{ x" + repeated(".a", 50'000) + " }}"},
      {"{{ x" + repeated("[0]", 50'000) + " }}"},
      {"{{ x" + repeated("()", 50'000) + " }}"},
      {"{{ x" + repeated("|upper", 50'000) + " }}"},
      {"{{ " + repeated("f(", 50'000) + "1" + repeated(")", 50'000) + " }}"},
      {repeated("{% if 1 %}", 20'000) + repeated("{% endif %}", 20'000)},
      {repeated("{% for x in y %}", 20'000) + repeated("{% endfor %}", 20'000)},
      {repeated("{% set x %}", 20'000) + repeated("{% endset %}", 20'000)},
      {repeated("{% macro m() %}", 20'000) + repeated("{% endmacro %}", 20'000)},
      {"{% for " + repeated("(", 50'000) + "x" + repeated(")", 50'000) + " in y %}{% endfor %}"},
      {"{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}"},
      {"{% macro f(x) %}{{ f(x + 1) }}{% endmacro %}{{ f(0) }}"},
      {"{% macro f() %}{{ g() }}{% endmacro %}{% macro g() %}{{ f() }}{% endmacro %}{{ f() }}"},
      {"{% macro f() %}{% call f() %}{{ caller() }}{% endcall %}{{ caller }}{% endmacro %}{% call f() %}{% "
       "endcall %}"},
      {"{% for x in [[1]] recursive %}{{ loop([[1]]) }}{% endfor %}"},
      {"{% set ns = namespace(x=[]) %}{% for i in range(1000) %}{% set ns.x = [ns.x] %}{% endfor %}"},
      {"{% set ns = namespace(x={}) %}{% for i in range(1000) %}{% set ns.x = {'k': ns.x} %}{% endfor %}"},
      {"{% set ns = namespace(x=()) %}{% for i in range(1000) %}{% set ns.x = (ns.x,) %}{% endfor %}"},
      {"{% set ns = namespace(x=[]) %}{% for i in range(1000) %}{% set ns.x = {'a': [ns.x]}.items() %}{% "
       "endfor %}"},
      {"{% set ns = namespace() %}{% set ns.self = ns %}{{ ns }}"},
      {"{% set a = namespace() %}{% set b = namespace(a=a) %}{% set a.b = b %}{{ [a] }}"},
  };
  return seeds;
}

const std::vector<Seed>& long_ranges() {
  static const std::vector<Seed> seeds = {
      {"{{ range(100001) }}"},
      {"{{ range(9223372036854775807)|length }}"},
      {"{{ range(-9223372036854775807, 9223372036854775807) }}"},
      {"{{ range(0, -200000, -1)|list }}"},
      {"{{ range(1000000, 0, -2)|list }}"},
      {"{% for i in range(10000000000) %}{% endfor %}"},
      {"{{ range(0, 100001, 1)|sum }}"},
      {"{{ 5 in range(1000000) }}"},
      {"{{ range(300000)[5] }}"},
      {"{{ range(*[0, 400000]) }}"},
      {"{{ range(100000 + 1)|first }}"},
      {"{{ range(9223372036854775806, -9223372036854775807, -1) }}"},
  };
  return seeds;
}

const std::vector<Seed>& long_outputs() {
  static const std::vector<Seed> seeds = {
      {"{{ 'x' * 8388609 }}"},
      {"{{ text * 84 }}"},
      {"{% for i in range(84) %}{{ text }}{% endfor %}"},
      {"{% for i in range(100000) %}{{ 'abcdefghij' * 10 }}{% endfor %}"},
      {doubling_to + "20" + doubling + "{{ ns.t }}"},
      {"{{ 'x'.center(9000000) }}"},
      {"{{ 'x'.rjust(9000000, '-') }}"},
      {"{% filter upper %}{{ text * 90 }}{% endfilter %}"},
      {"{% set x %}{{ text * 90 }}{% endset %}{{ x }}"},
      {"{% macro m() %}{{ text * 90 }}{% endmacro %}{{ m() }}"},
      {"{% for i in range(100) %}{% generation %}{{ text }}{% endgeneration %}{% endfor %}"},
      {"{{ (text * 40)|replace('u', 'uuu') }}"},
      {"{{ [text] * 100 }}"},
      {"{{ ([text] * 100)|tojson }}"},
      {"{{ ([text] * 100)|join(',') }}"},
  };
  return seeds;
}

const std::vector<Seed>& large_values() {
  static const std::vector<Seed> seeds = {
      {"{% set x = 'x' * 9223372036854775807 %}"},
      {"{% set x = 'x' * 70000000 %}"},
      {"{% set x = [1] * 9223372036854775807 %}"},
      {"{% set x = [1, 2, 3] * 1000000 %}"},
      {doubling_to + "40" + doubling},
      {"{% set ns = namespace(l=[1]) %}{% for i in range(40) %}{% set ns.l = ns.l + ns.l %}{% endfor %}"},
      {"{% set x = 'x'.center(9223372036854775807) %}"},
      {"{% set x = 'x'.zfill(9223372036854775807) %}"},
      {"{% set x = 'x'.ljust(80000000) %}"},
      {"{% set x = ('x' * 8000000)|list %}"},
      {"{% set x = ('x ' * 4000000).split() %}"},
      {"{% set x = ('x,' * 4000000).split(',') %}"},
      {"{% set x = ('x\\n' * 4000000).splitlines() %}"},
      {"{% set x = (text * 80).replace('u', 'u' * 100) %}"},
      {"{% set x = (text * 80)|replace('', 'u' * 100) %}"},
      {"{% set x = ('x' * 10000000)[::-1] %}"},
      {"{% set x = ('u' * 1000).join(text) %}"},
      {"{% set ns = namespace(l=[]) %}{% for i in range(100000) %}{% set ns.l = [namespace(a=1, b=2, "
       "c=ns.l|length)] * 20 %}"
       "{% set x = namespace(v=ns.l) %}{% endfor %}"},
      {"{% set x = range(100000)|map('center', 1000)|list %}"},
      {"{% set x = range(100000)|batch(1)|map('join')|map('center', 900)|list %}"},
      {"{% set x = '{:>1000000}'.format('x') * 100 %}"},
      {"{% set x = '%1000000d' % 5 * 100 %}"},
      {"{% set x = ('\\t' * 1000000).expandtabs(1000) %}"},
  };
  return seeds;
}

const std::vector<std::pair<std::string, std::string>>& harmless_templates() {
  static const std::vector<std::pair<std::string, std::string>> twins = {
      {std::string(std::size_t{1} << 20, 'x'), "1048576"},
      {"{{ " + repeated("(", 100) + "1" + repeated(")", 100) + " }}", "1"},
      {repeated("{% if 1 %}", 100) + "x" + repeated("{% endif %}", 100), "x"},
      {"{{ x is defined" + repeated(" or x is defined", 5'000) + " }}", "False"},
      {"{{ 1" + repeated(" + 1", 5'000) + " }}", "5001"},
      {"{{ 'a'" + repeated(" ~ 'a'", 5'000) + " }}", "5001"},
      {"{% if 0 %}" + repeated("{% elif 0 %}", 5'000) + "{% else %}e{% endif %}", "e"},
      {"{% macro f(n) %}{% if n > 0 %}{{ f(n - 1) }}{% else %}end{% endif %}{% endmacro %}{{ f(100) }}",
       "end"},
      {"{{ range(100000)|length }}", "100000"},
      {"{{ 'x' * 8388608 }}", "8388608"},
      {"{% set x = 'x' * 20000000 %}{{ x|length }}", "20000000"},
      {"{% for i in range(100000) %}x{% endfor %}", "100000"},
      {"{% set ns = namespace(x=[]) %}{% for i in range(100) %}{% set ns.x = [ns.x] %}{% endfor %}ok", "ok"},
  };
  return twins;
}

}  // namespace inferno::hostile
