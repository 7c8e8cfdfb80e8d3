#include "text/json/tokenizer_json_model.h"

#include <fmt/format.h>

#include <cmath>
#include <unordered_set>

#include "base/error.h"
#include "base/utf8.h"
#include "text/byte_alphabet.h"
#include "text/models/bpe.h"
#include "text/models/unigram.h"

namespace inferno {
namespace {

// Ids may have gaps, but a table must not be much larger than its file.
constexpr std::int64_t max_ids(std::size_t tokens) {
  return static_cast<std::int64_t>(tokens) * 4 + 65536;
}
constexpr std::size_t max_added_tokens = 100'000;  // real files have a few thousand

bool has_piece(const JsonValue& vocab, const std::string& text, TokenId& id) {
  if (!vocab.raw().IsObject()) return false;
  const auto member = vocab.raw().FindMember(rapidjson::StringRef(text.data(), text.size()));
  if (member == vocab.raw().MemberEnd() || !member->value.IsInt()) return false;
  id = member->value.GetInt();
  return true;
}

std::vector<AddedToken> read_added_tokens(const JsonValue& root, const SpecialTokenSettings& settings) {
  std::vector<AddedToken> added;
  std::unordered_set<std::string> seen;
  // Like the reference implementation, ignores empty and repeated tokens.
  const auto add = [&](AddedToken token) {
    if (!token.content.empty() && seen.insert(token.content).second) added.push_back(std::move(token));
  };
  if (const auto list = root.find("added_tokens")) {
    if (list->size() > max_added_tokens) {
      fail(ErrorKind::unsupported,
           fmt::format("{}: {} tokens, the limit is {}", list->where(), list->size(), max_added_tokens));
    }
    for (std::size_t i = 0; i < list->size(); ++i) {
      const JsonValue entry = (*list)[i];
      add(read_added_token(entry, read_token_id(entry["id"])));
    }
  }
  for (const AddedToken& token : settings.added) add(token);
  for (const std::string& text : settings.special) {
    TokenId id = -1;
    if (!seen.contains(text) && has_piece(root["model"]["vocab"], text, id))
      add({.id = id, .content = text, .special = true});
  }
  return added;
}

// Tokens that user text must never become.
std::unordered_set<TokenId> control_ids(const std::vector<AddedToken>& added) {
  std::unordered_set<TokenId> ids;
  for (const AddedToken& token : added) {
    if (is_control(token)) ids.insert(token.id);
  }
  return ids;
}

void check_id(std::int64_t id, std::size_t tokens, std::string_view piece, std::string_view where) {
  if (id < 0 || id >= max_ids(tokens)) {
    fail(ErrorKind::corrupt,
         fmt::format("{}: {} has id {}, too large for {} tokens", where, quote(piece), id, tokens));
  }
}

class BpeReader {
 public:
  BpeReader(const JsonValue& json, const std::vector<AddedToken>& added, bool byte_level)
      : json_(json),
        vocab_(json["vocab"].object()),
        added_(added),
        control_(control_ids(added)),
        byte_level_(byte_level),
        texts_(table_size()),
        vocabulary_(texts_.size(), vocab_.raw().MemberCount()) {}

  JsonModel read() {
    read_vocabulary();
    read_merges();
    const BpeOptions options{.byte_level = byte_level_,
                             .ignore_merges = json_.flag("ignore_merges", false),
                             .byte_fallback = json_.flag("byte_fallback", false),
                             .fuse_unknown = json_.flag("fuse_unk", false),
                             .unknown = unknown()};
    refuse_unsupported_options();
    JsonModel model;
    model.model = std::make_unique<Bpe>(std::move(vocabulary_), std::move(merges_), options,
                                        merges_across_words_ ? "" : "▁");
    model.texts = std::move(texts_);
    return model;
  }

 private:
  int table_size() const {
    const std::size_t tokens = vocab_.raw().MemberCount() + added_.size();
    std::int64_t max_id = -1;
    for (const auto& member : vocab_.raw().GetObject()) {
      if (!member.value.IsInt64()) {
        fail(ErrorKind::corrupt,
             fmt::format("{}: the id of {} is not an integer", vocab_.where(), quote(text_of(member.name))));
      }
      check_id(member.value.GetInt64(), tokens, text_of(member.name), vocab_.where());
      max_id = std::max(max_id, member.value.GetInt64());
    }
    return static_cast<int>(max_id + 1);
  }

  void read_vocabulary() {
    std::string bytes;
    for (const auto& member : vocab_.raw().GetObject()) {
      const std::string_view piece = text_of(member.name);
      const auto id = static_cast<TokenId>(member.value.GetInt64());
      if (texts_.has(id)) {
        fail(ErrorKind::corrupt, fmt::format("{}: {} and {} both have id {}", vocab_.where(),
                                             quote(texts_.text(id)), quote(piece), id));
      }
      texts_.set(id, piece);
      // A control token typed by a user must stay text, and a piece outside the byte alphabet cannot be
      // formed from bytes.
      if (control_.contains(id) || (byte_level_ && !byte_alphabet::read(bytes, piece))) continue;
      if (!vocabulary_.add(id, byte_level_ ? std::string_view(bytes) : piece)) {
        fail(ErrorKind::corrupt, fmt::format("{}: {} occurs twice", vocab_.where(), quote(piece)));
      }
    }
  }

  void read_merges() {
    const JsonValue merges = json_["merges"].array();
    merges_ = MergeTable(merges.size());
    MergeLoader loader(vocabulary_, merges_);
    std::uint32_t rank = 0;
    for (const auto& merge : merges.raw().GetArray()) {
      if (merge.IsString()) {
        const std::string_view both = text_of(merge);
        const std::size_t space = both.find(' ');
        if (space == std::string_view::npos || both.find(' ', space + 1) != std::string_view::npos)
          bad_merge(rank);
        add_merge(loader, both.substr(0, space), both.substr(space + 1), rank);
      } else if (merge.IsArray() && merge.Size() == 2 && merge[0].IsString() && merge[1].IsString()) {
        add_merge(loader, text_of(merge[0]), text_of(merge[1]), rank);
      } else {
        bad_merge(rank);
      }
      ++rank;
    }
    check_missing(loader.finish());
  }

  [[noreturn]] void bad_merge(std::uint32_t rank) const {
    fail(ErrorKind::corrupt, fmt::format("{}.merges[{}]: expected two pieces", json_.where(), rank));
  }

  // Merges with control tokens never apply; every other piece must be in the vocabulary.
  void check_missing(const std::vector<MergeLoader::Missing>& missing) const {
    if (missing.empty()) return;
    std::unordered_set<std::string> control;
    std::string bytes;
    for (const AddedToken& token : added_) {
      if (!control_.contains(token.id)) continue;
      control.insert(byte_level_ && byte_alphabet::read(bytes, token.content) ? bytes : token.content);
    }
    for (const MergeLoader::Missing& merge : missing) {
      if (control.contains(merge.piece)) continue;
      fail(ErrorKind::corrupt,
           fmt::format("{}.merges[{}]: the vocabulary has no piece {}", json_.where(), merge.rank,
                       quote(byte_level_ ? byte_alphabet::write(merge.piece) : merge.piece)));
    }
  }

  void add_merge(MergeLoader& loader, std::string_view left, std::string_view right, std::uint32_t rank) {
    if (!byte_level_) {
      merges_across_words_ = merges_across_words_ || (right.starts_with("▁") && !left.ends_with("▁"));
    } else if (!byte_alphabet::read(left_, left) || !byte_alphabet::read(right_, right)) {
      // Outside the byte alphabet: the merge can never apply, so its pieces need not exist.
      return;
    } else {
      left = left_;
      right = right_;
    }
    loader.add(left, right, rank);
  }

  std::optional<TokenId> unknown() const {
    const auto name = json_.find("unk_token");
    if (!name || name->text().empty()) return std::nullopt;
    for (const AddedToken& token : added_) {
      if (token.content == name->text()) return token.id;
    }
    const auto id = vocabulary_.find(name->text());
    if (!id)
      fail(ErrorKind::corrupt,
           fmt::format("{}: the vocabulary has no {}", name->where(), quote(name->text())));
    return id;
  }

  void refuse_unsupported_options() const {
    for (const char* name : {"continuing_subword_prefix", "end_of_word_suffix"}) {
      const auto value = json_.find(name);
      if (value && !value->text().empty()) {
        fail(ErrorKind::unsupported,
             fmt::format("{}: {} is not supported", value->where(), quote(value->text())));
      }
    }
    const auto dropout = json_.find("dropout");
    if (dropout && dropout->number() > 0) {
      fail(ErrorKind::unsupported, fmt::format("{}: dropout is not supported", dropout->where()));
    }
  }

  const JsonValue& json_;
  JsonValue vocab_;
  const std::vector<AddedToken>& added_;
  std::unordered_set<TokenId> control_;
  bool byte_level_;
  TokenTexts texts_;
  Vocabulary vocabulary_;
  MergeTable merges_;
  bool merges_across_words_ = false;
  std::string left_;
  std::string right_;
};

JsonModel read_unigram(const JsonValue& json, const std::vector<AddedToken>& added) {
  const JsonValue vocab = json["vocab"].array();
  const auto control = control_ids(added);
  std::vector<UnigramPiece> pieces;
  JsonModel model;
  for (std::size_t i = 0; i < vocab.size(); ++i) {
    const JsonValue entry = vocab[i];
    if (entry.size() != 2)
      fail(ErrorKind::corrupt, fmt::format("{}: expected a piece and its score", entry.where()));
    const auto id = static_cast<TokenId>(i);
    const std::string_view text = entry[std::size_t{0}].text();
    const double score = entry[std::size_t{1}].number();
    if (text.size() > Unigram::longest_piece || !std::isfinite(score)) {
      fail(ErrorKind::unsupported,
           fmt::format("{}: a piece of {} bytes with score {}, expected at most {} and a finite score",
                       entry.where(), text.size(), score, Unigram::longest_piece));
    }
    model.texts.set(id, text);
    pieces.push_back({.text = text, .score = score, .usable = !control.contains(id)});
  }
  const auto unknown = json.find("unk_id");
  const std::optional<TokenId> unknown_id = unknown ? std::optional(read_token_id(*unknown)) : std::nullopt;
  if (unknown_id && *unknown_id >= model.texts.size()) {
    fail(ErrorKind::corrupt,
         fmt::format("{}: {} in a vocabulary of {}", unknown->where(), *unknown_id, model.texts.size()));
  }
  model.model = std::make_unique<Unigram>(pieces, unknown_id, json.flag("byte_fallback", false));
  return model;
}

// Old files do not name the type; their fields reveal it.
std::string model_type(const JsonValue& json) {
  if (const auto type = json.find("type")) return std::string(type->text());
  if (json.find("merges")) return "BPE";
  return json["vocab"].raw().IsArray() ? "Unigram" : "WordLevel";
}

void add_added_tokens(JsonModel& model, const std::string& where) {
  const auto tokens = static_cast<std::size_t>(model.texts.size()) + model.added.size();
  for (const AddedToken& token : model.added) {
    check_id(token.id, tokens, token.content, where);
    if (model.texts.has(token.id) && model.texts.text(token.id) != token.content) {
      fail(ErrorKind::corrupt,
           fmt::format("{}: {} has id {}, which belongs to {}", where, quote(token.content), token.id,
                       quote(model.texts.text(token.id))));
    }
    if (!model.texts.has(token.id)) model.texts.set(token.id, token.content);
  }
}

}  // namespace

JsonModel read_model(const JsonValue& root, const SpecialTokenSettings& settings, bool byte_level) {
  std::vector<AddedToken> added = read_added_tokens(root, settings);
  const JsonValue json = root["model"].object();
  const std::string type = model_type(json);
  JsonModel model;
  if (type == "BPE") {
    model = BpeReader(json, added, byte_level).read();
  } else if (type == "Unigram") {
    model = read_unigram(json, added);
  } else {
    fail(ErrorKind::unsupported,
         fmt::format("{}: model type {} is not supported", json.where(), quote(type)));
  }
  model.added = std::move(added);
  add_added_tokens(model, root.where() + ": added_tokens");
  return model;
}

}  // namespace inferno
