#include "chat/stop_matcher.h"

#include <algorithm>
#include <utility>

namespace inferno {

StopMatcher::StopMatcher(const std::vector<std::string>& stops) {
  for (const std::string& text : stops) {
    if (text.empty()) continue;
    Stop stop{.text = text, .fallback = std::vector<std::size_t>(text.size() + 1, 0), .seen = 0};
    // Matching the text against itself gives the fallbacks (Knuth-Morris-Pratt).
    for (std::size_t i = 1; i < text.size(); ++i) {
      advance(stop, text[i]);
      stop.fallback[i + 1] = stop.seen;
    }
    stop.seen = 0;
    stops_.push_back(std::move(stop));
  }
}

void StopMatcher::advance(Stop& stop, char byte) {
  while (stop.seen > 0 && stop.text[stop.seen] != byte) stop.seen = stop.fallback[stop.seen];
  if (stop.text[stop.seen] == byte) ++stop.seen;
}

bool StopMatcher::take(char byte, std::string& shown) {
  held_ += byte;
  std::size_t waiting = 0;
  const Stop* complete = nullptr;
  for (Stop& stop : stops_) {
    advance(stop, byte);
    waiting = std::max(waiting, stop.seen);
    const bool longer = complete == nullptr || stop.text.size() > complete->text.size();
    if (stop.seen == stop.text.size() && longer) complete = &stop;
  }
  if (complete != nullptr) {
    shown.append(held_, 0, held_.size() - complete->text.size());
    matched_ = complete->text;
    held_.clear();
    return true;
  }
  shown.append(held_, 0, held_.size() - waiting);
  held_.erase(0, held_.size() - waiting);
  return false;
}

std::string StopMatcher::push(std::string_view text) {
  if (stops_.empty()) return std::string(text);
  std::string shown;
  for (const char byte : text) {
    if (stopped() || take(byte, shown)) break;
  }
  return shown;
}

std::string StopMatcher::finish() {
  for (Stop& stop : stops_) stop.seen = 0;
  return std::exchange(held_, {});
}

}  // namespace inferno
