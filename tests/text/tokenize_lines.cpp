// For comparison with other implementations. Input: texts, one JSON string per line. Output: for each text
// the ids as trusted text, the ids as plain text and the decoded former ids, one JSON object per line.
//   tokenize_lines MODEL < texts > results
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"
#include "text/tokenizer.h"

int main(int count, char** arguments) {
  if (count != 2) {
    std::fputs("usage: tokenize_lines MODEL\n", stderr);
    return 2;
  }
  try {
    const auto tokenizer = inferno::load_tokenizer(arguments[1]);
    for (std::string line; std::getline(std::cin, line);) {
      const auto text = nlohmann::json::parse(line).get<std::string>();
      const auto ids = tokenizer->encode_prompt(text);
      const nlohmann::json result = {
          {"ids", ids}, {"plain", tokenizer->encode(text)}, {"text", tokenizer->decode(ids)}};
      std::cout << result.dump() << '\n';
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
