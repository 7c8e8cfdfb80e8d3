#include "text/merge_loader.h"

#include <algorithm>
#include <span>

namespace inferno {

void MergeLoader::add(std::string_view left, std::string_view right, std::uint32_t rank) {
  Pending& merge = pending_[count_++];
  merge.text[0].assign(left);
  merge.text[1].assign(right);
  merge.text[2].assign(left).append(right);
  merge.rank = rank;
  for (std::size_t i = 0; i < 3; ++i) {
    merge.key[i] = key_of(merge.text[i]);
    vocabulary_.prefetch(merge.key[i]);
  }
  if (count_ == pending_.size()) flush();
}

void MergeLoader::flush() {
  const std::span<Pending> batch(pending_.data(), count_);
  for (Pending& merge : batch) {
    for (std::size_t i = 0; i < 3; ++i) merge.id[i] = vocabulary_.lookup(merge.key[i], merge.text[i]);
    to_.prefetch(merge.id[0], merge.id[1]);
  }
  for (const Pending& merge : batch) {
    const auto unknown = std::ranges::find(merge.id, -1);
    if (unknown == merge.id.end()) {
      to_.add(merge.id[0], merge.id[1], merge.id[2], merge.rank);
    } else {
      missing_.push_back(
          {.rank = merge.rank, .piece = merge.text[static_cast<std::size_t>(unknown - merge.id.begin())]});
    }
  }
  count_ = 0;
}

std::vector<MergeLoader::Missing> MergeLoader::finish() {
  flush();
  return std::move(missing_);
}

}  // namespace inferno
