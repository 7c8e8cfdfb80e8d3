// Codec of grouped.cuh for q4_k.
#include "backend/cuda/device/layouts.cuh"
#include "backend/cuda/kernels/linear/grouped.cuh"

namespace inferno::cuda {
namespace {

// A chunk: eight columns of each of its eight groups, two of them in the halves of eight bytes.
struct Codec : GroupedCodec {
  static constexpr WeightFormat format = WeightFormat::q4_k;
  static constexpr int runs = 8, chains = 2;
  struct Piece {
    uint4 words[2], head;
  };
  __device__ static int element(int t, int run) { return 32 * run + 8 * t; }
  __device__ static Piece load(const std::byte* chunk, int g, int t) {
    return {{*reinterpret_cast<const uint4*>(chunk + tiles::run_q4_k(g, t)),
             *reinterpret_cast<const uint4*>(chunk + tiles::run_q4_k(g, 16 + t))},
            *reinterpret_cast<const uint4*>(chunk + tiles::head_q4_k(g))};
  }
  __device__ static void decode(std::uint32_t (&out)[4], const Piece& piece, int run) {
    const uint4& words = piece.words[run / 4];
    const int shift = 4 * (run % 2);
    const bool low = run % 4 < 2;
    grouped_byte_values(out, (low ? words.x : words.z) >> shift & 0x0F0F0F0Fu,
                        (low ? words.y : words.w) >> shift & 0x0F0F0F0Fu, scales_k(piece.head, run));
  }
};

}  // namespace

void grouped_q4_k(const Queue& queue, const GroupedCall& call, GroupedMode mode) {
  start_grouped<Codec>(queue, call, mode);
}

}  // namespace inferno::cuda
