// Loops unrolled at compile time, so that arrays of vectors become registers.
#pragma once

#include <utility>

namespace inferno::cpu {
// NOLINTNEXTLINE: each including file must have a copy of its own, see kernels.h
namespace {

// step.operator()<0>() to <count - 1>().
template <int count, class Step>
[[gnu::always_inline]] inline void repeat(const Step& step) {
  [&]<int... i>(std::integer_sequence<int, i...>) __attribute__((always_inline)) {
    (step.template operator()<i>(), ...);
  }(std::make_integer_sequence<int, count>{});
}

}  // namespace
}  // namespace inferno::cpu
