#include "chat/call_ids.h"

#include "chat/message_fields.h"

namespace inferno {
namespace {

// FNV-1a: the same on every machine, unlike std::hash.
std::uint64_t mix(std::uint64_t hash, std::string_view text) {
  for (const char byte : text) {
    hash ^= static_cast<unsigned char>(byte);
    hash *= 1'099'511'628'211ULL;
  }
  return hash;
}

}  // namespace

CallIds::CallIds(const Conversation& conversation)
    : seed_(mix(14'695'981'039'346'656'037ULL,
                conversation.messages.dump(-1, ' ', false, Json::error_handler_t::replace))) {}

std::string CallIds::make(int index, bool bare) const {
  static constexpr std::string_view letters =
      "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  std::uint64_t number = mix(seed_, std::to_string(index));
  number ^= number >> 29;
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
