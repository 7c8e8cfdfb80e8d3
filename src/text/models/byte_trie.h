// A set of byte strings with values, walked byte by byte.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "text/models/flat_map.h"

namespace inferno {

class ByteTrie {
 public:
  using Node = std::uint32_t;
  static constexpr Node root = 0;
  static constexpr Node nowhere = 0xFFFFFFFF;

  ByteTrie() : values_(1, -1) { first_.fill(nowhere); }

  // A string added twice keeps its first value.
  void add(std::string_view text, std::int32_t value) {
    Node node = root;
    for (const char c : text) {
      Node next = step(node, c);
      if (next == nowhere) {
        next = static_cast<Node>(values_.size());
        values_.push_back(-1);
        if (node == root) {
          first_[static_cast<unsigned char>(c)] = next;
        } else {
          edges_.set(key(node, c), next);
        }
      }
      node = next;
    }
    if (values_[node] < 0) values_[node] = value;
  }

  Node step(Node node, char c) const {
    if (node == root) return first_[static_cast<unsigned char>(c)];
    const std::uint64_t next = edges_.find(key(node, c));
    return next == FlatMap::none ? nowhere : static_cast<Node>(next);
  }
  // -1 if `text` was not added.
  std::int32_t find(std::string_view text) const {
    Node node = root;
    for (std::size_t i = 0; i < text.size() && node != nowhere; ++i) node = step(node, text[i]);
    return node == nowhere ? -1 : value(node);
  }
  // -1 if no string ends at this node.
  std::int32_t value(Node node) const { return values_[node]; }

 private:
  static std::uint64_t key(Node node, char c) {
    return static_cast<std::uint64_t>(node) << 8 | static_cast<unsigned char>(c);
  }
  std::array<Node, 256> first_;
  FlatMap edges_;
  std::vector<std::int32_t> values_;
};

}  // namespace inferno
