// Splits a reply at <think>…</think> (or [THINK]…[/THINK]): what stands between is reasoning. The opening tag
// counts only where the reply begins, because later it is something the model talks about; many templates
// write it themselves, so that the reply begins inside. Line breaks beside the tags belong to them.
#pragma once

#include <string>
#include <string_view>

namespace inferno {

struct ReasoningTags {
  std::string_view open, close;
};

class ReasoningSplitter {
 public:
  // Without tags everything is content.
  ReasoningSplitter(ReasoningTags tags, bool begins_inside);

  struct Split {
    std::string reasoning, content;  // in this order
  };
  Split push(std::string_view text);
  Split finish();

 private:
  enum class State { before, inside, behind, content };
  void take(char byte, Split& split);
  void take_before(char byte, Split& split);
  void take_inside(char byte, Split& split);

  ReasoningTags tags_;
  bool begins_inside_;
  State state_;
  std::string held_;       // may become a tag, or line breaks in front of one
  bool has_text_ = false;  // some reasoning was sent
};

}  // namespace inferno
