// Quantized formats whose blocks have 256 elements: groups with scales of their own under the block's scale.
#pragma once

#include <cstdint>

#include "tensor/blocks/quants_32.h"
#include "tensor/float16.h"

namespace inferno::blocks {

// The twelve bytes in which Q4_K and Q5_K store eight six-bit scales and eight six-bit offsets.
struct KScales {
  std::uint8_t bytes[12];

  // Groups 0 to 3 fill the low six bits of bytes 0 to 3. The later four have their low nibble in bytes 8 to
  // 11 and their top two bits above those of the first four.
  constexpr int scale(int group) const {
    if (group < 4) return bytes[group] & 63;
    return (bytes[group + 4] & 0xF) | (bytes[group - 4] >> 6) << 4;
  }

  // The same, four bytes later, in the high nibbles.
  constexpr int offset(int group) const {
    if (group < 4) return bytes[group + 4] & 63;
    return (bytes[group + 4] >> 4) | (bytes[group] >> 6) << 4;
  }
};

// GGUF Q2_K: 256 two-bit values in groups of 16. Each group has a four-bit scale (low nibble) and a four-bit
// offset (high nibble), both under f16 factors of the whole block.
struct Q2_K {
  static constexpr int elements = 256;

  std::uint8_t groups[elements / 16];
  std::uint8_t quants[elements / 4];
  std::uint16_t scale;
  std::uint16_t minimum;

  // Each half of the block spreads 128 values over 32 bytes: byte j holds j, j + 32, j + 64 and j + 96.
  constexpr float operator[](int i) const {
    const int code = (quants[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2)) & 3;
    const int group = groups[i / 16];
    const float step = f16_to_float(scale) * static_cast<float>(group & 0xF);
    return step * static_cast<float>(code) - f16_to_float(minimum) * static_cast<float>(group >> 4);
  }
};
static_assert(sizeof(Q2_K) == 84);

// GGUF Q3_K: 256 three-bit values around 4 in groups of 16, each under a six-bit scale around 32, all under
// one f16 factor.
struct Q3_K {
  static constexpr int elements = 256;

  std::uint8_t high[elements / 8];
  std::uint8_t quants[elements / 4];
  std::uint8_t groups[12];
  std::uint16_t scale;

  // The low four bits of the 16 scales fill eight bytes (g and g + 8 share one), the high two the last four
  // (g, g + 4, g + 8 and g + 12 share one).
  constexpr int group_scale(int group) const {
    const int low = (groups[group % 8] >> (group / 8 * 4)) & 0xF;
    const int top = (groups[8 + group % 4] >> (group / 4 * 2)) & 3;
    return (low | top << 4) - 32;
  }

  // The low two bits are laid out as in Q2_K; byte j of `high` holds the third bits of j, j + 32, ..., j +
  // 224.
  constexpr float operator[](int i) const {
    const int low = (quants[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2)) & 3;
    const int third = (high[i % 32] >> (i / 32)) & 1;
    const float step = f16_to_float(scale) * static_cast<float>(group_scale(i / 16));
    return step * static_cast<float>((low | third << 2) - 4);
  }
};
static_assert(sizeof(Q3_K) == 110);

// GGUF Q4_K: 256 four-bit values in groups of 32, each with a six-bit scale and a six-bit offset under f16
// factors of the whole block.
struct Q4_K {
  static constexpr int elements = 256;

  std::uint16_t scale;
  std::uint16_t minimum;
  KScales groups;
  std::uint8_t nibbles[elements / 2];

  // Two groups share 32 bytes: the first has the low nibbles, the second the high ones.
  constexpr float operator[](int i) const {
    const int code = (nibbles[i / 64 * 32 + i % 32] >> (i % 64 / 32 * 4)) & 0xF;
    const float step = f16_to_float(scale) * static_cast<float>(groups.scale(i / 32));
    return step * static_cast<float>(code) -
           f16_to_float(minimum) * static_cast<float>(groups.offset(i / 32));
  }
};
static_assert(sizeof(Q4_K) == 144);

// GGUF Q5_K: 256 five-bit values in groups of 32, each with a six-bit scale and a six-bit offset under f16
// factors of the whole block.
struct Q5_K {
  static constexpr int elements = 256;

  std::uint16_t scale;
  std::uint16_t minimum;
  KScales groups;
  std::uint8_t high[elements / 8];
  std::uint8_t nibbles[elements / 2];

  // The low four bits are laid out as in Q4_K; byte j of `high` holds the fifth bits of j, j + 32, ..., j +
  // 224.
  constexpr float operator[](int i) const {
    const int low = (nibbles[i / 64 * 32 + i % 32] >> (i % 64 / 32 * 4)) & 0xF;
    const int fifth = (high[i % 32] >> (i / 32)) & 1;
    const float step = f16_to_float(scale) * static_cast<float>(groups.scale(i / 32));
    return step * static_cast<float>(low | fifth << 4) -
           f16_to_float(minimum) * static_cast<float>(groups.offset(i / 32));
  }
};
static_assert(sizeof(Q5_K) == 176);

// GGUF Q6_K: 256 six-bit values around 32 in groups of 16, each under a signed byte, all under one f16
// factor.
struct Q6_K {
  static constexpr int elements = 256;

  std::uint8_t low[elements / 2];
  std::uint8_t high[elements / 4];
  std::int8_t groups[elements / 16];
  std::uint16_t scale;

  // Within each half of 128: byte j of `low` holds j and j + 64, byte j of `high` holds j, j + 32, j + 64 and
  // j + 96.
  constexpr float operator[](int i) const {
    const int half = i / 128;
    const int nibble = (low[half * 64 + i % 64] >> (i % 128 / 64 * 4)) & 0xF;
    const int top = (high[half * 32 + i % 32] >> (i % 128 / 32 * 2)) & 3;
    const float step = f16_to_float(scale) * static_cast<float>(groups[i / 16]);
    return step * static_cast<float>((nibble | top << 4) - 32);
  }
};
static_assert(sizeof(Q6_K) == 210);

// IQ3_S's grid, four digits a quadruple; digit d means the odd magnitude 2 d + 1. A literal, because that is
// the one table that constexpr code can index on the host and on a device alike.
constexpr int iq3_magnitude(int quadruple, int element) {
  const char* const digits =
      "0000100020005000700001001100210041006100020012005200330004002400"
      "5400740015003500060026001700470077000010101020104010011011105110"
      "0210321072101310531044101610561027100020102050207020012031206120"
      "1220522003204320242054207420152035200720372030301130513002302230"
      "1330333063304430053025307630173057300040314071401240424023400440"
      "3440154007402050405002502250625033501450545074506650375060601160"
      "3160136025601760007020704070027022706270337005704570000110012001"
      "4001010111013101510171010201220113014301630145016501160127010011"
      "1011301160110111411112110311331114110511251107116711002121215121"
      "7121022142212321042134215521062127211031403170310131313112317231"
      "0331433114312631073130415041214141411341334124416441054145411051"
      "0151315112510351235115510261426172614461646110713071017121711271"
      "5371147126710771000210023002500270020102210241026102120232027202"
      "0302230214023402540205022502760207023702570200122012011231127112"
      "2212521213124312241215121022402270221222322203227322142235227522"
      "1722472200322032503211322232423213323332243205326632104270420242"
      "3242234253421442274257424052115222527352045235520752006220627062"
      "1262556216625072117262720372347205722003110331035103710322031303"
      "3303530324034403740315033603170310133013501341131213321304130613"
      "2713671300232123022323234323052310330133413312333233723303331433"
      "3433743355333733304311436143224313432543064346431053015321535253"
      "2353445365533753616314631073307302732273537300044004210402044204"
      "7204230414040504070420147014111431142214031453143414151455141024"
      "3024012451241224332404247524262407244034113431340234223413345334"
      "0044204442447344044417445054705412542654316443640664017451740374"
      "3474157420050105410522050405440574052505660547051015301550152115"
      "1215231527150025112532250325632535252035703501357235443515355635"
      "3735104540450245234564452155625515553555246520754075227511063106"
      "5106130633060606001602167216461621264326242655262626072600364136"
      "1236043652463446264600563056435606565066046611763176000740077007"
      "0207220763070407450726072017111742173417541710274027012761271227"
      "0327152720372337533735371047504731470247054722572457206713670077";
  return 2 * (digits[4 * quadruple + element] - '0') + 1;
}

// GGUF IQ3_S: 256 magnitudes in quadruples from a grid of 512, signs stored separately, in groups of 32 under
// a four-bit scale, all under one f16 factor.
struct Iq3_S {
  static constexpr int elements = 256;

  std::uint16_t scale;
  std::uint8_t low[elements / 4];    // the low eight bits of each quadruple's index
  std::uint8_t high[elements / 32];  // the ninth bits
  std::uint8_t signs[elements / 8];
  std::uint8_t groups[elements / 64];

  constexpr float operator[](int i) const {
    const int quadruple = i / 4;
    const int ninth = (high[quadruple / 8] >> (quadruple % 8)) & 1;
    const int odd = iq3_magnitude(low[quadruple] | ninth << 8, i % 4);
    const int group = (groups[i / 64] >> (i % 64 / 32 * 4)) & 0xF;
    const float magnitude = f16_to_float(scale) * static_cast<float>(1 + 2 * group) * static_cast<float>(odd);
    return (signs[i / 8] >> (i % 8)) & 1 ? -magnitude : magnitude;
  }
};
static_assert(sizeof(Iq3_S) == 110);

// GGUF IQ4_XS: 256 indices into IQ4_NL's table in groups of 32, each under a six-bit scale around 32, all
// under one f16 factor.
struct Iq4_XS {
  static constexpr int elements = 256;

  std::uint16_t scale;
  std::uint16_t group_high;  // two bits a group, the first group lowest
  std::uint8_t group_low[elements / 64];
  std::uint8_t nibbles[elements / 2];

  constexpr int group_scale(int group) const {
    const int low = (group_low[group / 2] >> (group % 2 * 4)) & 0xF;
    const int top = (group_high >> (2 * group)) & 3;
    return (low | top << 4) - 32;
  }

  // Within each group of 32 the nibbles are laid out as in Q4_0.
  constexpr float operator[](int i) const {
    const int code = (nibbles[i / 32 * 16 + i % 16] >> (i % 32 / 16 * 4)) & 0xF;
    const float step = f16_to_float(scale) * static_cast<float>(group_scale(i / 32));
    return step * static_cast<float>(iq4_value(code));
  }
};
static_assert(sizeof(Iq4_XS) == 136);

// GGUF TQ2_0: 256 ternary values, two bits each (0, 1, 2 mean -1, 0, 1), under one f16 scale.
struct Tq2_0 {
  static constexpr int elements = 256;

  std::uint8_t quants[elements / 4];
  std::uint16_t scale;

  // Each half of the block spreads 128 values over 32 bytes: byte j holds j, j + 32, j + 64 and j + 96.
  constexpr float operator[](int i) const {
    const int code = (quants[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2)) & 3;
    return f16_to_float(scale) * static_cast<float>(code - 1);
  }
};
static_assert(sizeof(Tq2_0) == 66);

}  // namespace inferno::blocks
