// What the tests of the library share: a tiny model, and shorthands for calls that must succeed.
#pragma once

#include <gtest/gtest.h>
#include <inferno/inferno.h>

#include <string>
#include <vector>

#include "support/source_dir.h"

namespace inferno::library {

inline const std::string tiny_model = std::string(INFERNO_TEST_DATA) + "/models/llama";
inline const std::string builtin_model = std::string(INFERNO_SOURCE_DIR) + "/models/builtin";

template <class Struct>
Struct sized() {
  Struct made = {};
  made.size = sizeof made;
  return made;
}

// An error that prints itself when a call fails unexpectedly.
class Report {
 public:
  inferno_error* operator&() { return &error_; }
  std::string text() const { return std::string(error_.what) + " / " + error_.why + " / " + error_.next; }
  std::string what() const { return error_.what; }
  inferno_status status() const { return error_.status; }

 private:
  inferno_error error_ = sized<inferno_error>();
};

inline inferno_load_options small_options(int parallel = 1) {
  auto options = sized<inferno_load_options>();
  options.device = "cpu";
  options.threads = 2;
  options.parallel = parallel;
  options.home = "";
  return options;
}

inline inferno_model load(const std::string& path = tiny_model, int parallel = 4) {
  const inferno_load_options options = small_options(parallel);
  inferno_model model = {0};
  Report report;
  EXPECT_EQ(inferno_model_load(path.c_str(), &options, &model, &report), INFERNO_OK) << report.text();
  return model;
}

inline inferno_request request_of(const std::string& json) {
  inferno_request request = {0};
  Report report;
  EXPECT_EQ(inferno_request_from_json(json.c_str(), &request, &report), INFERNO_OK) << report.text();
  return request;
}

inline const std::string short_request =
    R"({"prompt": "Hello", "max_tokens": 8, "temperature": 0, "ignore_eos": true})";
// Runs until it is cancelled or the context is full.
inline const std::string long_request = R"({"prompt": "Hello", "temperature": 0, "ignore_eos": true})";

inline inferno_answer ask(inferno_model model, const std::string& json) {
  const inferno_request request = request_of(json);
  inferno_answer answer = {0};
  Report report;
  EXPECT_EQ(inferno_ask(model, request, &answer, &report), INFERNO_OK) << report.text();
  EXPECT_EQ(inferno_request_free(request, nullptr), INFERNO_OK);
  return answer;
}

// The content of all parts until the end.
inline std::string read_all(inferno_answer answer) {
  std::string text;
  while (true) {
    auto part = sized<inferno_part>();
    Report report;
    if (inferno_answer_next(answer, -1, &part, &report) != INFERNO_OK) return "failed: " + report.text();
    if (part.kind == INFERNO_PART_END) return text;
    if (part.kind == INFERNO_PART_CONTENT) text.append(part.text, part.length);
  }
}

inline std::string text_of(inferno_answer answer) {
  std::size_t length = 0;
  EXPECT_EQ(inferno_answer_text(answer, INFERNO_PART_CONTENT, nullptr, 0, &length, nullptr), INFERNO_OK);
  std::vector<char> memory(length + 1);
  EXPECT_EQ(inferno_answer_text(answer, INFERNO_PART_CONTENT, memory.data(), memory.size(), nullptr, nullptr),
            INFERNO_OK);
  return {memory.data(), length};
}

}  // namespace inferno::library
