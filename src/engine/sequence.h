// One answer that is being generated, as the scheduler sees it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/token.h"
#include "engine/block_pool.h"
#include "engine/prefix_tree.h"

namespace inferno {

using SequenceId = std::uint64_t;  // in order of arrival: lower is older

struct Sequence {
  SequenceId id = 0;
  std::vector<TokenId> tokens;  // prompt, then answer
  int prompt_tokens = 0;        // number of prompt tokens
  int max_tokens = 0;           // limit of prompt and answer together
  std::vector<TokenId> stop_tokens;
  std::string client;  // clients take turns
  std::string scope;   // cached prefixes are shared within a scope
  bool reuse_prefix = true;
  bool wants_prompt_logits = false;  // of every token of the prompt

  // State of the scheduler and of KvBlocks.
  int computed = 0;                          // tokens whose keys and values are cached
  std::vector<std::vector<BlockId>> blocks;  // for each window group; no_block outside the window
  std::vector<int> first_block;              // for each window group: index of the first block it holds
  PrefixTree::Node* tree_node = nullptr;     // in the prefix tree
  int tree_depth = 0;                        // of tree_node, in blocks
  int cached = 0;              // prompt tokens found in the prefix cache when it was first scheduled
  bool was_scheduled = false;  // in at least one step
  bool is_running = false;
  bool is_new = false;            // admitted and not scheduled since
  std::vector<SequenceId> forks;  // sequences that share its blocks once its prompt is computed

  // Of a step that is not committed yet, while the step after it is planned.
  int queued_rows = 0;
  int queued_token = no_row;  // the row of that step's logits that gives the next token
  static constexpr int no_row = -1;

  bool is_prompt_scored() const {
    return wants_prompt_logits && static_cast<int>(tokens.size()) == prompt_tokens;
  }
  // With those of a queued step.
  int start() const { return computed + queued_rows; }
  int length() const { return static_cast<int>(tokens.size()) + (queued_token == no_row ? 0 : 1); }
  int remaining() const { return length() - start(); }
  // The queued step gives its last token.
  bool will_end() const { return queued_token != no_row && length() >= max_tokens; }
};

}  // namespace inferno
