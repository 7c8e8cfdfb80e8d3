// Rows of activations: whole numbers for the integer kernels, norms, sums and activation functions.
#pragma once

#include "backend/cpu/kernels.h"
#include "backend/cpu/simd/repeat.h"

namespace inferno::cpu {
// NOLINTNEXTLINE: each including file must have a copy of its own, see kernels.h
namespace {

inline constexpr int lanes = 16;

// e^x to about 1e-7, x held within the range where the result is a normal number: 2^n * e^r with r within
// half a ln 2 of zero.
template <class M>
typename M::Floats exponential(typename M::Floats x) {
  x = M::smaller(M::larger_of(x, M::floats(-87.0f)), M::floats(88.0f));
  const auto n = M::rounded(M::times(x, M::floats(1.44269504088896341f)));
  const auto whole = M::to_floats(n);
  auto r = M::fma(whole, M::floats(-0.693359375f), x);  // ln 2 in two parts, the first with few digits
  r = M::fma(whole, M::floats(2.12194440e-4f), r);
  auto p = M::floats(1.9875691500e-4f);
  p = M::fma(p, r, M::floats(1.3981999507e-3f));
  p = M::fma(p, r, M::floats(8.3334519073e-3f));
  p = M::fma(p, r, M::floats(4.1665795894e-2f));
  p = M::fma(p, r, M::floats(1.6666665459e-1f));
  p = M::fma(p, r, M::floats(5.0000001201e-1f));
  p = M::plus(M::fma(M::times(p, r), r, r), M::floats(1.0f));
  return M::as_floats(M::add(M::as_ints(p), M::left_by(n, 23)));
}

// A machine that multiplies bytes.
template <class M>
concept MultipliesBytes =
    requires(typename M::Ints x, typename M::Words w, const std::int32_t* quad) { M::dot_bytes(x, w, quad); };

// 32 columns as whole numbers under one scale, and the sums of 16 of them.
template <class M>
struct Group {
  typename M::Ints a, b;
  float scale, sum_a, sum_b;
};

// The largest becomes 32639, whose bytes are 127 and 127. A group with an infinity or a NaN gets the scale
// NaN, so that it shows in the output; one that is zero but for noise becomes zero.
template <class M>
[[gnu::always_inline]] inline Group<M> quantize_group(const float* in) {
  constexpr float max_code = 32639.0f;
  constexpr int infinity = 0x7F800000;
  const auto a = M::load(in), b = M::load(in + lanes);
  const int bits =
      M::largest(M::larger(M::masked(M::as_ints(a), 0x7FFFFFFF), M::masked(M::as_ints(b), 0x7FFFFFFF)));
  const float top = __builtin_bit_cast(float, bits);
  const bool finite = bits < infinity;
  const auto factor = M::floats(finite && top > 1e-30f ? max_code / top : 0.0f);
  const auto zero = M::no_ints();
  Group<M> group;
  group.a = finite ? M::rounded(M::times(a, factor)) : zero;
  group.b = finite ? M::rounded(M::times(b, factor)) : zero;
  group.scale = finite ? top / max_code : __builtin_nanf("");
  group.sum_a = static_cast<float>(M::total(group.a));
  group.sum_b = static_cast<float>(M::total(group.b));
  return group;
}

template <class M>
[[gnu::always_inline]] inline void store_scales(const QuantizeCall& call, int g, const Group<M>& group) {
  call.scales[g * call.width] = group.scale;
  call.sums16[2 * g * call.width] = group.scale * group.sum_a;
  call.sums16[(2 * g + 1) * call.width] = group.scale * group.sum_b;
  call.sums32[g * call.width] = group.scale * (group.sum_a + group.sum_b);
}

// What dot_bytes() finds added to each weight.
template <class M>
inline constexpr int byte_offset = 128;
template <class M>
  requires requires { M::subtracted; }
inline constexpr int byte_offset<M> = 128 - M::subtracted;

// What byte products need of group g.
template <class M>
void store_bytes(const QuantizeCall& call, int g, typename M::Ints a, typename M::Ints b) {
  const int quads = activation_group / 4;
  alignas(64) std::int32_t low[quads], high[quads];
  M::store_quads(low, high, a);
  M::store_quads(low + quads / 2, high + quads / 2, b);
  for (int q = 0; q < quads; ++q) {
    call.low[(g * quads + q) * call.width] = low[q];
    call.high[(g * quads + q) * call.width] = high[q];
  }
  call.offsets[g * call.width] = -byte_offset<M> * (M::total(a) + M::total(b));
}

template <class M>
void quantize(const QuantizeCall& call) {
  for (int g = 0; g < call.cols / activation_group; ++g) {
    const Group<M> group = quantize_group<M>(call.in + g * activation_group);
    store_scales<M>(call, g, group);
    if constexpr (MultipliesBytes<M>) {
      if (call.width <= max_byte_tokens) store_bytes<M>(call, g, group.a, group.b);
    }
    std::int32_t* pairs = call.pairs + g * (activation_group / 2) * call.width;
    if (call.width == 1) {
      M::store_words(reinterpret_cast<std::int16_t*>(pairs), group.a, group.b);
      continue;
    }
    alignas(64) std::int16_t words[activation_group];
    M::store_words(words, group.a, group.b);
    for (int p = 0; p < activation_group / 2; ++p) {
      __builtin_memcpy(pairs + p * call.width, words + 2 * p, sizeof(std::int32_t));
    }
  }
}

template <class M>
void normalize(const NormCall& call) {
  const int whole = call.width / lanes * lanes, rest = call.width - whole;
  const auto each = [&](const auto& step) {
    for (int c = 0; c < whole; c += lanes) step(c, lanes);
    if (rest > 0) step(whole, rest);
  };
  float mean = 0.0f;
  if (call.centered) {
    auto total = M::no_floats();
    each([&](int c, int count) { total = M::plus(total, M::load_some(call.in + c, count)); });
    mean = M::sum(total) / static_cast<float>(call.width);
  }
  auto square = M::no_floats();
  each([&](int c, int count) {
    // Lanes beyond the end must stay zero, so the mean is subtracted only where there are elements.
    const auto x = M::load_some(call.in + c, count);
    const auto d = M::only(M::minus(x, M::floats(mean)), 0, count - 1, M::no_floats());
    square = M::fma(d, d, square);
  });
  const float variance = M::sum(square) / static_cast<float>(call.width) + call.epsilon;
  const auto inverse = M::floats(1.0f / __builtin_sqrtf(variance));
  each([&](int c, int count) {
    const auto d = M::minus(M::load_some(call.in + c, count), M::floats(mean));
    auto y = M::times(M::times(d, inverse), M::load_some(call.gain + c, count));
    if (call.bias != nullptr) y = M::plus(y, M::load_some(call.bias + c, count));
    M::store_some(call.out + c, y, count);
  });
}

template <class M>
void add_scaled(float* x, const float* y, float scale, int count) {
  const auto factor = M::floats(scale);
  for (int c = 0; c < count; c += lanes) {
    const int some = count - c < lanes ? count - c : lanes;
    M::store_some(x + c, M::fma(factor, M::load_some(y + c, some), M::load_some(x + c, some)), some);
  }
}

// x * sigmoid(c): every smooth gate we have, GELU's tanh form too (0.5 (1 + tanh z) is sigmoid(2 z)).
template <class M>
typename M::Floats gated_by(typename M::Floats x, typename M::Floats c) {
  const auto minus_c = M::minus(M::no_floats(), c);
  return M::over(x, M::plus(M::floats(1.0f), exponential<M>(minus_c)));
}

template <class M>
typename M::Floats gelu_argument(typename M::Floats x) {
  constexpr float twice_root = 1.5957691216057308f;  // 2 sqrt(2 / pi)
  const auto cubic = M::fma(M::times(M::floats(0.044715f), x), M::times(x, x), x);
  return M::times(M::floats(twice_root), cubic);
}

template <class M>
bool activate(float* out, const float* gate, const float* up, int count, const ActivationSpec& activation) {
  const Activation kind = activation.kind;
  if (kind == Activation::gelu_erf || kind == Activation::relu) return false;
  const auto limit = M::floats(activation.limit), one = M::floats(1.0f);
  const auto minus_limit = M::minus(M::no_floats(), limit);
  for (int i = 0; i < count; i += lanes) {
    const int some = count - i < lanes ? count - i : lanes;
    auto x = M::load_some(gate + i, some);
    auto u = up != nullptr ? M::load_some(up + i, some) : one;
    if (kind == Activation::swiglu_clamped) {
      x = M::smaller(x, limit);
      u = M::plus(M::smaller(M::larger_of(u, minus_limit), limit), one);
      x = gated_by<M>(x, M::times(M::floats(1.702f), x));
    } else {
      x = gated_by<M>(x, kind == Activation::gelu_tanh ? gelu_argument<M>(x) : x);
    }
    M::store_some(out + i, M::times(x, u), some);
  }
  return true;
}

}  // namespace
}  // namespace inferno::cpu
