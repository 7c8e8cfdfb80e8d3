#include "support/golden.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace inferno::testing {
namespace {

using Json = nlohmann::json;

std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path.string());
  return {std::istreambuf_iterator<char>(file), {}};
}

template <class T>
std::vector<T> values(const Json& entry, const std::string& data) {
  const std::size_t begin = entry.at("data_offsets")[0], end = entry.at("data_offsets")[1];
  std::vector<T> out((end - begin) / sizeof(T));
  std::memcpy(out.data(), data.data() + begin, end - begin);
  return out;
}

void add_margins(std::vector<GoldenCase>& cases, const std::filesystem::path& file) {
  if (!std::filesystem::exists(file)) return;
  for (const Json& entry : Json::parse(contents(file)).at("cases")) {
    for (GoldenCase& one : cases) {
      if (entry.value("name", "") == one.name) one.min_margin = entry.value("min_margin", 0.0);
    }
  }
}

}  // namespace

std::vector<GoldenCase> read_golden(const std::filesystem::path& file) {
  const std::string all = contents(file);
  std::uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, all.data(), sizeof(header_bytes));
  const Json header = Json::parse(all.substr(8, header_bytes));
  const std::string data = all.substr(8 + header_bytes);
  std::vector<GoldenCase> cases;
  for (const auto& [key, entry] : header.items()) {
    if (!key.ends_with(".ids")) continue;
    GoldenCase one;
    one.name = key.substr(0, key.size() - 4);
    one.ids = values<TokenId>(entry, data);
    const Json& logits = header.at(one.name + ".logits");
    one.rows = logits.at("shape")[0];
    one.logits = values<float>(logits, data);
    const std::string cached = one.name + ".logits_cache_";
    for (const auto& [name, tensor] : header.items()) {
      if (name.starts_with(cached)) {
        one.cached_logits[name.substr(cached.size())] = values<float>(tensor, data);
      }
    }
    if (header.contains(one.name + ".greedy"))
      one.greedy = values<TokenId>(header.at(one.name + ".greedy"), data);
    cases.push_back(std::move(one));
  }
  std::filesystem::path words = file;
  add_margins(cases, words.replace_extension(".json"));
  return cases;
}

double relative_error(const std::vector<float>& actual, const std::vector<float>& expected) {
  if (actual.size() != expected.size()) return std::numeric_limits<double>::infinity();
  double difference = 0.0, size = 0.0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const double d = static_cast<double>(actual[i]) - static_cast<double>(expected[i]);
    difference += d * d;
    size += static_cast<double>(expected[i]) * static_cast<double>(expected[i]);
  }
  const double error = std::sqrt(difference / size);
  return std::isfinite(error) ? error : std::numeric_limits<double>::infinity();
}

double largest_error(const std::vector<float>& actual, const std::vector<float>& expected) {
  double worst = 0.0;
  for (std::size_t i = 0; i < actual.size() && i < expected.size(); ++i) {
    worst = std::max(worst, std::fabs(static_cast<double>(actual[i]) - static_cast<double>(expected[i])));
  }
  return worst;
}

}  // namespace inferno::testing
