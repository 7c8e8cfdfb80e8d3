#include "engine/prefix_tree.h"

#include <algorithm>

namespace inferno {
namespace {

// Collisions cost time, not correctness, so nothing stronger is needed.
std::size_t hash_of(std::span<const TokenId> tokens) {
  std::uint64_t hash = 0x9E3779B97F4A7C15ull;
  for (const TokenId token : tokens) {
    hash = (hash ^ static_cast<std::uint32_t>(token)) * 0xBF58476D1CE4E5B9ull;
    hash ^= hash >> 29;
  }
  return static_cast<std::size_t>(hash);
}

}  // namespace

PrefixTree::Node* PrefixTree::root(const std::string& scope) {
  std::unique_ptr<Node>& root = roots_[scope];
  if (root == nullptr) {
    root = std::make_unique<Node>();
    root->blocks.assign(static_cast<std::size_t>(groups_), no_block);
    root->scope = scope;
    ++nodes_;
  }
  return root.get();
}

PrefixTree::Node* PrefixTree::find(const Node* parent, std::span<const TokenId> tokens) const {
  const auto [first, last] = parent->children.equal_range(hash_of(tokens));
  for (auto at = first; at != last; ++at) {
    if (std::ranges::equal(at->second->tokens, tokens)) return at->second.get();
  }
  return nullptr;
}

PrefixTree::Node* PrefixTree::find_or_add(Node* parent, std::span<const TokenId> tokens) {
  if (Node* found = find(parent, tokens)) return found;
  auto node = std::make_unique<Node>();
  node->parent = parent;
  node->tokens.assign(tokens.begin(), tokens.end());
  node->blocks.assign(static_cast<std::size_t>(groups_), no_block);
  ++nodes_;
  return parent->children.emplace(hash_of(tokens), std::move(node))->second.get();
}

void PrefixTree::leave(Node* node) {
  --node->users;
  prune(node);
}

void PrefixTree::set_block(Node* node, std::size_t group, BlockId block) {
  node->blocks[group] = block;
  owner_[group][block] = node;
}

void PrefixTree::block_evicted(std::size_t group, BlockId block) {
  const auto at = owner_[group].find(block);
  Node* node = at->second;
  owner_[group].erase(at);
  node->blocks[group] = no_block;
  prune(node);
}

void PrefixTree::prune(Node* node) {
  while (node != nullptr && node->users == 0 && node->children.empty() &&
         std::ranges::all_of(node->blocks, [](BlockId block) { return block == no_block; })) {
    Node* parent = node->parent;
    --nodes_;
    if (parent == nullptr) {
      roots_.erase(roots_.find(std::string(node->scope)));
      return;
    }
    const auto [first, last] = parent->children.equal_range(hash_of(node->tokens));
    for (auto at = first; at != last; ++at) {
      if (at->second.get() != node) continue;
      parent->children.erase(at);
      break;
    }
    node = parent;
  }
}

}  // namespace inferno
