#include "chat/reply_parts.h"

namespace inferno {
namespace {

constexpr int max_warnings = 16;

template <class Delta>
void add_text(std::vector<ReplyPart>& parts, std::string_view text) {
  if (text.empty()) return;
  if (!parts.empty()) {
    if (auto* last = std::get_if<Delta>(&parts.back())) {
      last->text += text;
      return;
    }
  }
  parts.push_back(Delta{std::string(text)});
}

}  // namespace

void ReplyParts::content(std::string_view text) {
  add_text<ContentDelta>(parts_, text);
}

void ReplyParts::reasoning(std::string_view text) {
  add_text<ReasoningDelta>(parts_, text);
}

void ReplyParts::open_call(int index, std::string id, std::string name) {
  parts_.push_back(
      ToolCallDelta{.index = index, .id = std::move(id), .name = std::move(name), .arguments = {}});
}

void ReplyParts::arguments(int index, std::string_view text) {
  if (text.empty()) return;
  if (!parts_.empty()) {
    auto* last = std::get_if<ToolCallDelta>(&parts_.back());
    if (last != nullptr && last->index == index) {
      last->arguments += text;
      return;
    }
  }
  parts_.push_back(ToolCallDelta{.index = index, .id = {}, .name = {}, .arguments = std::string(text)});
}

void ReplyParts::warning(std::string text) {
  if (++warnings_ <= max_warnings) parts_.push_back(ReplyWarning{std::move(text)});
}

}  // namespace inferno
