// Plots of results that were stored earlier: what `bench -o json` prints, and collections of them beside
// those of another program, as bench/run_h200.py writes them.
#pragma once

#include <string>
#include <string_view>

namespace inferno {

// An SVG document. A report becomes the plot that `bench` itself would have written; of a collection, each
// result with a figure of llama.cpp becomes two bars. `name` is the file, for messages. Error{corrupt} if the
// text has neither form.
std::string plot_of_stored(std::string_view text, std::string_view name);

}  // namespace inferno
