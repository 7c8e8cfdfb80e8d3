#include "chat/reply/parts.h"

#include "base/counter_random.h"
#include "chat/conversation.h"

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

CallIds::CallIds(const Conversation& conversation) : seed_(conversation.call_seed) {}

std::string CallIds::make(int index, bool bare) const {
  static constexpr std::string_view letters =
      "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  const RandomWords random = philox(seed_, static_cast<std::uint64_t>(index));
  std::uint64_t number = std::uint64_t{random.words[0]} << 32 | random.words[1];
  std::string id;
  for (int i = 0; i < 9; ++i) {
    id += letters[static_cast<std::size_t>(number % letters.size())];
    number /= letters.size();
  }
  return bare ? id : "call_" + id;
}

std::set<std::string, std::less<>> offered_functions(const Conversation& conversation) {
  std::set<std::string, std::less<>> names;
  if (!conversation.tools.is_array()) return names;
  for (const Json& tool : conversation.tools) {
    const Json* function = find_member(tool, "function");
    const Json* name = find_member(function == nullptr ? tool : *function, "name");
    if (name != nullptr && name->is_string()) names.insert(name->get<std::string>());
  }
  return names;
}

}  // namespace inferno
