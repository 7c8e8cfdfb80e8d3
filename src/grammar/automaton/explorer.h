// Follows texts through a machine. What has been reached so far is a set of stacks; stacks share their
// frames, equal sets are one configuration with one number, and where a byte leads from a configuration is
// computed once. So a machine becomes deterministic as far as texts go, and no further.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "grammar/automaton/machine.h"

namespace inferno::grammar {

// What one token can do, from the vocabulary: configurations that no token can tell apart share their mask.
struct TokenReach {
  std::uint32_t longest = 256;      // bytes of a token
  std::uint32_t longest_key = 256;  // bytes between quotes inside one token that has several
};

class Explorer {
 public:
  using Id = std::uint32_t;
  static constexpr Id dead = 0;

  struct Frame {
    std::uint32_t state = 0;
    std::uint32_t count = 0;
    std::uint32_t keys = 0;  // of an object: the set of its keys; of a key: the text so far
    std::uint32_t parent = 0;
    bool operator==(const Frame&) const = default;
  };

  Explorer(const Machine& machine, TokenReach reach);

  Id start();
  Id step(Id from, std::uint8_t byte) {
    const Id known = next_.data()[std::size_t{from} * machine_.classes + machine_.class_of[byte]];
    return known != unknown ? known : compute_step(from, byte);
  }
  // Where bytes lead: entry [from * classes() + class_of(byte)] is a configuration, or `unknown` until step()
  // has computed it. Any step may move the table.
  static constexpr Id unknown = 0xFFFFFFFF;
  const Id* table() const { return next_.data(); }
  std::uint32_t classes() const { return machine_.classes; }
  const std::array<std::uint8_t, 256>& class_of() const { return machine_.class_of; }
  // Through a token edge; dead without one. `ordinary`: neither a control token nor unused.
  Id step_token(Id from, TokenId token, bool ordinary);
  Id either(Id a, Id b);
  // These frames alone; the text is not complete.
  Id only(std::span<const std::uint32_t> frames);
  Id only(const Frame& frame) {
    const std::uint32_t id = intern(frame);
    return only({&id, 1});
  }
  // A key whose text does not matter any more, or a frame of anything else.
  bool is_independent_of_text(const Frame& frame) const {
    return !machine_.rules[machine_.states[frame.state].rule].is_key || frame.keys == forgotten;
  }

  // The last byte that no edge of the machine tells apart from this one.
  std::uint8_t last_alike(std::uint8_t byte) const { return last_alike_[machine_.class_of[byte]]; }
  // Whether bytes that no edge tells apart may lead to different places: the text of a key is being read.
  bool reads_key(Id id) const { return configurations_[id].reads_key; }

  bool may_end(Id id) const { return configurations_[id].may_end; }
  bool has_frames(Id id) const { return configurations_[id].count > 0; }
  std::span<const std::uint32_t> frames(Id id) const {
    return std::span(members_).subspan(configurations_[id].first, configurations_[id].count);
  }
  const Frame& frame(std::uint32_t index) const { return frames_[index]; }
  const Machine::State& state_of(std::uint32_t frame) const { return machine_.states[frames_[frame].state]; }

  const Machine::RuleInfo& rule_of(std::uint32_t frame) const { return machine_.rules[state_of(frame).rule]; }

  // The same without any knowledge of keys: it allows the same tokens, and those that repeat a key.
  Id forget_keys(Id id);
  // Whether any object has an undeclared key.
  bool has_used_keys(Id id) const;
  // What would complete a key that its object has already.
  std::vector<std::string> repeated_keys(Id id) const;

  // A configuration that allows the same tokens, the same for as many configurations as possible.
  Id canonical(Id id);

  // The same text for the same configuration in every explorer of the machine; empty if it would be longer
  // than `max`, or the configuration has knowledge of keys.
  std::string signature(Id id, std::size_t max) const;
  // The same configuration, reached in another explorer of the same machine.
  Id import(const Explorer& other, Id id);
  // Refuses (kind limit) when following a text would need more than `max_bytes`.
  std::size_t bytes() const;
  static constexpr std::size_t max_bytes = std::size_t{16} << 20;

 private:
  static constexpr std::uint32_t bottom = 0;
  // The text of a key that equals none of its object, or the keys of an object that are not known. A frame
  // that is called from one with unknown keys does not keep its own either.
  static constexpr std::uint32_t forgotten = 1;

  struct Configuration {
    std::uint32_t first = 0;
    std::uint32_t count = 0;
    Id canonical = unknown;
    bool may_end = false;
    bool reads_key = false;  // the text of a key matters: bytes of one class lead to different places
  };
  struct KeyText {
    std::uint32_t parent = 0;
    std::uint32_t length = 0;
    std::uint8_t byte = 0;
  };

  Id compute_step(Id from, std::uint8_t byte);
  bool fits(std::uint32_t state, std::uint32_t count) const;
  bool has_keys_left(const Frame& frame) const;
  bool leads_to_end(std::uint32_t state, const std::vector<std::uint8_t>& rest) const;
  std::uint32_t intern(const Frame& frame);
  void grow_frame_table();
  std::size_t configuration_slot(bool may_end, std::span<const std::uint32_t> members) const;
  void grow_configuration_table();
  Id intern_members();
  void enter(const Frame& frame);
  void close();
  void leave(const Frame& frame);
  std::uint32_t key_child(std::uint32_t text, std::uint8_t byte);
  bool add_key(std::uint32_t& set, std::uint32_t text);
  bool begins_a_key(std::uint32_t set, std::uint32_t text) const;
  std::uint32_t canonical_frame(std::uint32_t frame);
  std::uint32_t forgetful_frame(std::uint32_t frame);
  Frame canonical_fields(const Frame& frame) const;
  std::uint32_t import_frame(const Explorer& other, std::uint32_t frame);
  std::uint32_t import_keys(const Explorer& other, const Frame& frame);
  std::uint32_t import_text(const Explorer& other, std::uint32_t text);

  const Machine& machine_;
  TokenReach reach_;
  std::array<std::uint8_t, 256> last_alike_{};  // by class
  bool has_keys_ = false;

  std::vector<Frame> frames_;
  std::unordered_map<std::uint32_t, std::uint32_t> forgetful_frames_;
  std::vector<std::uint32_t> canonical_frames_;
  std::vector<std::uint32_t> frame_slots_;  // open addressing; 0 is free

  std::vector<Configuration> configurations_;
  std::vector<std::uint32_t> members_;
  std::vector<Id> next_;                             // [configuration, class of the byte]
  std::unordered_map<std::uint64_t, Id> key_steps_;  // by configuration and byte, where a key is read
  std::vector<Id> configuration_slots_;              // open addressing, one more than the id; 0 is free

  std::vector<KeyText> key_texts_;
  std::unordered_map<std::uint64_t, std::uint32_t> key_children_;
  std::vector<std::vector<std::uint32_t>> key_sets_;
  std::map<std::vector<std::uint32_t>, std::uint32_t> key_set_ids_;

  // Of the configuration being computed.
  std::vector<std::uint32_t> work_;
  std::vector<std::uint32_t> found_;
  std::vector<std::uint32_t> stamps_;
  std::uint32_t stamp_ = 0;
  bool may_end_ = false;
};

}  // namespace inferno::grammar
