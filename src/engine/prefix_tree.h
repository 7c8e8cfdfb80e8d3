// The cached prefixes, by their tokens: a tree whose edges are whole blocks of tokens. A node names the cache
// block of each window group; a windowed group may have freed its block while a deeper one is still cached.
// Tokens are compared, never only their hash.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/token.h"
#include "engine/block_pool.h"

namespace inferno {

class PrefixTree {
 public:
  struct Node {
    Node* parent = nullptr;
    std::vector<TokenId> tokens;
    std::vector<BlockId> blocks;  // for each group; no_block when it has none
    std::unordered_multimap<std::size_t, std::unique_ptr<Node>> children;
    int users = 0;      // sequences whose tree_node this is
    std::string scope;  // set in roots
  };

  explicit PrefixTree(int groups) : groups_(groups), owner_(static_cast<std::size_t>(groups)) {}

  // The start of every sequence of a scope: different scopes share nothing.
  Node* root(const std::string& scope);
  Node* find(const Node* parent, std::span<const TokenId> tokens) const;
  Node* find_or_add(Node* parent, std::span<const TokenId> tokens);

  // A node exists while it has a block, a child or a user.
  void enter(Node* node) { ++node->users; }
  void leave(Node* node);

  void set_block(Node* node, std::size_t group, BlockId block);
  // The block was evicted and is used for something else.
  void block_evicted(std::size_t group, BlockId block);

  int nodes() const { return nodes_; }

 private:
  void prune(Node* node);

  int groups_;
  int nodes_ = 0;
  std::vector<std::unordered_map<BlockId, Node*>> owner_;  // for each group
  std::map<std::string, std::unique_ptr<Node>> roots_;
};

}  // namespace inferno
