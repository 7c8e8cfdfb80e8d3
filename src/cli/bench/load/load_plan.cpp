#include "cli/bench/load/load_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/counter_random.h"
#include "base/error.h"
#include "base/file.h"
#include "base/utf8.h"

namespace inferno::load {
namespace {

// Frequent words, one token each in most vocabularies.
constexpr std::string_view known_words[] = {
    "time",    "year",       "people",  "way",      "day",     "man",     "thing",    "woman",   "life",
    "child",   "world",      "school",  "state",    "family",  "student", "group",    "country", "problem",
    "hand",    "part",       "place",   "case",     "week",    "company", "system",   "program", "question",
    "work",    "government", "number",  "night",    "point",   "home",    "water",    "room",    "mother",
    "area",    "money",      "story",   "fact",     "month",   "lot",     "right",    "study",   "book",
    "eye",     "job",        "word",    "business", "issue",   "side",    "kind",     "head",    "house",
    "service", "friend",     "father",  "power",    "hour",    "game",    "line",     "end",     "member",
    "law",     "car",        "city",    "name",     "team",    "minute",  "idea",     "body",    "back",
    "parent",  "face",       "level",   "office",   "door",    "health",  "person",   "art",     "war",
    "history", "party",      "result",  "change",   "morning", "reason",  "research", "girl",    "guy",
    "moment",  "air",        "teacher", "force",    "good",    "long",    "little",   "own",     "old",
    "big",     "high",       "small",   "large",    "next",    "early",   "young",    "few",     "public",
    "bad",     "same",       "able",    "be",       "have",    "do",      "say",      "get",     "make",
    "go",      "know",       "take",    "see",      "come",    "think",   "look",     "want",    "give",
    "use",     "find",       "tell",    "ask"};

constexpr std::uint64_t shared_stream = ~std::uint64_t{0};
// Blocks of a trace are numbered beside requests, not among them.
constexpr std::uint64_t block_stream = std::uint64_t{1} << 40;

[[noreturn]] void fail_line(int line, std::string_view why) {
  fail(ErrorKind::corrupt, fmt::format("trace, line {}: {}", line, why));
}

int integer(std::string_view text, int line) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) {
    fail_line(line, fmt::format("expected a number of tokens, found {}", quote(std::string(text))));
  }
  return value;
}

// "2023-11-16 18:17:03.9799600" in seconds.
double seconds_of(const std::string& text, int line) {
  int year = 0, month = 0, day = 0, hour = 0, minute = 0;
  double second = 0.0;
  char dash1 = 0, dash2 = 0, colon1 = 0, colon2 = 0;
  std::istringstream in(text);
  in >> year >> dash1 >> month >> dash2 >> day >> hour >> colon1 >> minute >> colon2 >> second;
  const bool is_time = !in.fail() && dash1 == '-' && dash2 == '-' && colon1 == ':' && colon2 == ':';
  const std::chrono::year_month_day date(std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day)));
  if (!is_time || !date.ok())
    fail_line(line, fmt::format("expected a date and a time, found {}", quote(text)));
  const auto days = std::chrono::sys_days(date).time_since_epoch().count();
  return 86400.0 * static_cast<double>(days) + 3600.0 * hour + 60.0 * minute + second;
}

PlannedRequest from_csv(std::string_view text, int line) {
  if (text.ends_with('\r')) text.remove_suffix(1);
  const std::size_t first = text.find(','), second = first == text.npos ? first : text.find(',', first + 1);
  if (second == text.npos) fail_line(line, "expected TIMESTAMP,ContextTokens,GeneratedTokens");
  return {.at = seconds_of(std::string(text.substr(0, first)), line),
          .input_tokens = integer(text.substr(first + 1, second - first - 1), line),
          .output_tokens = integer(text.substr(second + 1), line),
          .blocks = {}};
}

PlannedRequest from_json(std::string_view text, int line) {
  try {
    const auto json = nlohmann::json::parse(text);
    PlannedRequest request = {.at = json.at("timestamp").get<double>() / 1e3,
                              .input_tokens = json.at("input_length").get<int>(),
                              .output_tokens = json.at("output_length").get<int>(),
                              .blocks = {}};
    if (json.contains("hash_ids")) json["hash_ids"].get_to(request.blocks);
    if (request.input_tokens < 0 || request.output_tokens < 0) fail_line(line, "a length is negative");
    return request;
  } catch (const nlohmann::json::exception& error) {
    fail_line(line, error.what());
  }
}

}  // namespace

std::vector<PlannedRequest> closed_loop(int requests, int input_tokens, int output_tokens) {
  return std::vector<PlannedRequest>(
      static_cast<std::size_t>(requests),
      {.at = 0.0, .input_tokens = input_tokens, .output_tokens = output_tokens, .blocks = {}});
}

void spread_arrivals(std::vector<PlannedRequest>& plan, double requests_per_second, std::uint64_t seed) {
  double at = 0.0;
  for (std::size_t i = 0; i < plan.size(); ++i) {
    plan[i].at = at;
    at -= std::log(1.0 - uniform_at(seed, i)) / requests_per_second;
  }
}

std::vector<PlannedRequest> parse_trace(std::string_view text, int max_requests, double speedup) {
  std::vector<PlannedRequest> plan;
  for (int line = 1; !text.empty() && static_cast<int>(plan.size()) < max_requests; ++line) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view one = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (one.empty() || one == "\r" || one.starts_with("TIMESTAMP") ||
        one.starts_with("\xEF\xBB\xBFTIMESTAMP")) {
      continue;
    }
    plan.push_back(one.starts_with('{') ? from_json(one, line) : from_csv(one, line));
    plan.back().output_tokens = std::max(plan.back().output_tokens, 1);
  }
  if (plan.empty()) fail(ErrorKind::corrupt, "trace: there is no request in it");
  std::ranges::stable_sort(plan, {}, &PlannedRequest::at);
  const double begin = plan.front().at;
  for (PlannedRequest& request : plan) request.at = (request.at - begin) / speedup;
  return plan;
}

std::vector<PlannedRequest> read_trace(const std::filesystem::path& path, int max_requests, double speedup) {
  return parse_trace(read_file(path, std::uint64_t{1} << 30), max_requests, speedup);
}

void PromptWriter::calibrate(int words1, int tokens1, int words2, int tokens2) {
  if (words1 == words2 || tokens2 - tokens1 <= 0 || words2 <= words1) return;
  per_word_ = static_cast<double>(tokens2 - tokens1) / (words2 - words1);
  around_ = std::max(0.0, tokens2 - per_word_ * words2);
}

std::string PromptWriter::vocabulary(int count) {
  std::string out;
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    if (i > 0) out += ' ';
    out += known_words[i % std::size(known_words)];
  }
  return out;
}

int PromptWriter::vocabulary_size() {
  return static_cast<int>(std::size(known_words));
}

std::uint32_t PromptWriter::drawn(std::uint64_t stream, int index) const {
  return philox(seed_ ^ (stream << 20), static_cast<std::uint64_t>(index)).words[0];
}

// In units of `per_unit` tokens, with `around` tokens that the prompt has anyway.
std::vector<PromptWriter::Part> PromptWriter::parts(std::uint64_t number, const PlannedRequest& request,
                                                    double per_unit, double around) const {
  const auto units = [&](double tokens) { return static_cast<int>(std::lround(tokens / per_unit)); };
  int left = std::max(1, units(request.input_tokens - around));
  std::vector<Part> out;
  const auto add = [&](std::uint64_t stream, int count) {
    count = std::min(count, left);
    if (count <= 0) return;
    out.push_back({stream, count});
    left -= count;
  };
  for (const std::uint32_t block : request.blocks) add(block_stream + block, units(trace_block));
  if (shared_ > 0) add(shared_stream, units(shared_));
  add(number, left);
  return out;
}

std::string PromptWriter::prompt(std::uint64_t number, const PlannedRequest& request) const {
  std::string out;
  for (const Part& part : parts(number, request, per_word_, around_)) {
    for (int i = 0; i < part.count; ++i) {
      if (!out.empty()) out += ' ';
      out += known_words[drawn(part.stream, i) % std::size(known_words)];
    }
  }
  return out;
}

std::vector<TokenId> PromptWriter::tokens(std::uint64_t number, const PlannedRequest& request,
                                          int vocab) const {
  std::vector<TokenId> out;
  for (const Part& part : parts(number, request, 1.0, 0.0)) {
    for (int i = 0; i < part.count; ++i) {
      out.push_back(static_cast<TokenId>(drawn(part.stream, i) % static_cast<std::uint32_t>(vocab)));
    }
  }
  return out;
}

}  // namespace inferno::load
