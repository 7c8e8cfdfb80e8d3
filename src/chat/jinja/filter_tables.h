// The filters by family, one file each. find_filter() looks through all of them.
#pragma once

#include <span>

#include "chat/jinja/builtins.h"

namespace inferno::jinja {

std::span<const FilterEntry> text_filters();      // filters_text.cpp
std::span<const FilterEntry> layout_filters();    // filters_layout.cpp
std::span<const FilterEntry> sequence_filters();  // filters_sequence.cpp
std::span<const FilterEntry> choice_filters();    // filters_choice.cpp
std::span<const FilterEntry> number_filters();    // filters_number.cpp

// What `attribute="a.b.0"` reads from an item. Dots go deeper, digits are indices; `otherwise` replaces
// what is undefined on the way.
class AttributePath {
 public:
  // Null or None: the item itself.
  AttributePath(Meter& meter, const Value* attribute, const Value* otherwise = nullptr);
  Value read(Meter& meter, Value item) const;
  bool reads_the_item() const { return parts_.empty(); }

 private:
  std::vector<Value> parts_;
  const Value* otherwise_;
};

// Strings in lower case, everything else as it is: how sort, unique and others compare by default.
Value ignore_case(Meter& meter, const Value& value);

}  // namespace inferno::jinja
