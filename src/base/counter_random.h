// Random numbers by index instead of by history: the number for (seed, position) does not depend on the order
// of requests or on the device. Philox 4x32-10 (Salmon et al., SC 2011). Plain constexpr code without the
// standard library's functions, so that device code compiles it too.
#pragma once

#include <cstdint>

namespace inferno {

struct RandomWords {
  std::uint32_t words[4];
};

constexpr RandomWords philox(std::uint64_t seed, std::uint64_t counter) {
  std::uint32_t key0 = static_cast<std::uint32_t>(seed), key1 = static_cast<std::uint32_t>(seed >> 32);
  RandomWords x = {{static_cast<std::uint32_t>(counter), static_cast<std::uint32_t>(counter >> 32), 0u, 0u}};
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53u} * x.words[0];
    const std::uint64_t b = std::uint64_t{0xCD9E8D57u} * x.words[2];
    x = {{static_cast<std::uint32_t>(b >> 32) ^ x.words[1] ^ key0, static_cast<std::uint32_t>(b),
          static_cast<std::uint32_t>(a >> 32) ^ x.words[3] ^ key1, static_cast<std::uint32_t>(a)}};
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return x;
}

// In [0, 1), 53 bits.
constexpr double uniform_at(std::uint64_t seed, std::uint64_t position) {
  const RandomWords x = philox(seed, position);
  const std::uint64_t bits = (std::uint64_t{x.words[0]} << 32 | x.words[1]) >> 11;
  return static_cast<double>(bits) * (1.0 / 9007199254740992.0);
}

}  // namespace inferno
