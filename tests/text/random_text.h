// Random texts with what tokenizers get wrong: white space of all kinds, contractions, digits,
// combining marks, scripts without spaces, emoji sequences, control characters.
#pragma once

#include <array>
#include <random>
#include <string>

#include "base/utf8.h"

namespace inferno {

class RandomText {
 public:
  explicit RandomText(unsigned seed) : random_(seed) {}

  // Up to `max_parts` parts.
  std::string next(unsigned max_parts) {
    std::string text;
    for (auto parts = random_() % (max_parts + 1); parts > 0; --parts) add_part(text);
    return text;
  }

 private:
  struct Block {
    char32_t first;
    char32_t last;
  };
  static constexpr std::array<Block, 22> blocks = {
      {{'a', 'z'},         {'A', 'Z'},        {'0', '9'},       {0x20, 0x7E},     {0x00, 0x1F},
       {0xA0, 0x17F},      {0x300, 0x36F},    {0x370, 0x3FF},   {0x400, 0x52F},   {0x590, 0x6FF},
       {0x900, 0x97F},     {0xE00, 0xE7F},    {0x1100, 0x11FF}, {0x1E00, 0x1EFF}, {0x2000, 0x206F},
       {0x2070, 0x218F},   {0x2190, 0x22FF},  {0x3000, 0x30FF}, {0x4E00, 0x9FFF}, {0xAC00, 0xD7A3},
       {0x1F300, 0x1F64F}, {0x1D400, 0x1D7FF}}};
  static constexpr std::array<const char*, 24> phrases = {
      " ",   "  ",   "\n",   "\r\n",  "\n\n ",    "\t",   "   \n", "'s",
      "'LL", "'re ", " the", "don't", " 123",     "1234", "3.5",   "...",
      "_x",  " =>",  "{\n",  "    ",  "\xC2\xA0", "▁",    "é",     "👩‍👩‍👧"};

  void add_part(std::string& text) {
    if (random_() % 2 == 0) {
      text += phrases[random_() % phrases.size()];
      return;
    }
    const Block block = blocks[random_() % blocks.size()];
    for (auto count = random_() % 6 + 1; count > 0; --count) {
      utf8::append(text, block.first + static_cast<char32_t>(random_() % (block.last - block.first + 1)));
    }
  }

  std::mt19937 random_;
};

}  // namespace inferno
