// Several sequences through a decoder, without an engine: their last tokens share one step, as they do when a
// server answers many.
#pragma once

#include <span>
#include <vector>

#include "base/token.h"
#include "model/decoder.h"

namespace inferno {

// The logits of each sequence's last token, f32 [sequences, vocab]. No sequence may be empty or longer than
// the decoder's context; the decoder's limits must have room for one row of each.
std::vector<float> last_logits(Decoder& decoder, Backend& backend,
                               std::span<const std::vector<TokenId>> sequences);

}  // namespace inferno
