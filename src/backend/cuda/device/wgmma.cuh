// Hopper's tensor cores (sm_90a): asynchronous products of a warp group (four warps), bf16 operands, float
// accumulators in registers. Operand b is in shared memory, operand a there or in registers. Order of calls:
// wgmma_fence() before the first product, wgmma_commit_group() after the last, wgmma_wait_group() before
// accumulators are read or operands overwritten.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "backend/cuda/device/ptx.cuh"

namespace inferno::cuda {

// How 16-byte units are permuted in shared memory. Rows of 128 bytes: eight rows are an atom of 1024 bytes.
// Rows of 64 bytes: eight rows are an atom of 512.
enum class Swizzle : std::uint64_t { bytes_128 = 1, bytes_64 = 2 };

// The matrix descriptor of an operand whose rows (tokens or weights) are contiguous along K. `stride`: bytes
// from eight rows to the next eight. A step of sixteen columns is 32 bytes, within an atom.
__device__ inline std::uint64_t wgmma_descriptor(const void* shared, Swizzle swizzle, std::uint32_t stride) {
  return (shared_address(shared) & 0x3FFFFu) >> 4 | std::uint64_t{1} << 16 |
         static_cast<std::uint64_t>(stride >> 4) << 32 | static_cast<std::uint64_t>(swizzle) << 62;
}
__device__ constexpr std::uint64_t descriptor_offset(std::uint32_t bytes) {
  return bytes >> 4;
}

__device__ inline void wgmma_fence() {
  if constexpr (has_sm90a) {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  } else {
    wrong_architecture();
  }
}
__device__ inline void wgmma_commit_group() {
  if constexpr (has_sm90a) {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  } else {
    wrong_architecture();
  }
}
// Waits until at most the newest `Pending` groups are incomplete.
template <int Pending>
__device__ void wgmma_wait_group() {
  if constexpr (has_sm90a) {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Pending) : "memory");
  } else {
    wrong_architecture();
  }
}
// Keeps the compiler from reading accumulators before the wait.
template <int Count>
__device__ void wgmma_fence_operand(float (&sums)[Count]) {
#pragma unroll
  for (int i = 0; i < Count; ++i) asm volatile("" : "+f"(sums[i])::"memory");
}

// Keeps the compiler from reusing the registers of operand a before the wait.
template <int Count>
__device__ void wgmma_fence_operand(std::uint32_t (&operand)[Count]) {
#pragma unroll
  for (int i = 0; i < Count; ++i) asm volatile("" : "+r"(operand[i])::"memory");
}

// Moves registers from producer warp groups to consumer warp groups.
template <int Count>
__device__ void setmaxnreg_dec() {
  if constexpr (has_sm90a) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Count));
  } else {
    wrong_architecture();
  }
}
template <int Count>
__device__ void setmaxnreg_inc() {
  if constexpr (has_sm90a) {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Count));
  } else {
    wrong_architecture();
  }
}

// d [64, 128] = a [64, 16] * b [128, 16] transposed, plus d if `adds`. With g = lane / 4 and t = lane % 4,
// d[4 j] and d[4 j + 1] are row 16 * warp + g, columns 8 j + 2 t and 8 j + 2 t + 1; d[4 j + 2] and d[4 j + 3]
// are the same columns of row g + 8.
__device__ inline void wgmma(float (&d)[64], std::uint64_t a, std::uint64_t b, bool adds) {
  if constexpr (has_sm90a) {
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\nwgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
        "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,"
        "%25,%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,"
        "%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63}, "
        "%64, %65, p, 1, 1, 0, 0;\n}"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
          "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]),
          "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]),
          "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]),
          "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]),
          "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]), "+f"(d[42]),
          "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]), "+f"(d[49]),
          "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), "+f"(d[56]),
          "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
        : "l"(a), "l"(b), "r"(static_cast<int>(adds)));
  } else {
    wrong_architecture();
  }
}

// `TransposesB`: b is [16, 64] instead of [64, 16].
template <int TransposesB>
__device__ inline void wgmma_m64n64k16(float (&d)[32], const std::uint32_t (&a)[4], std::uint64_t b,
                                       bool adds) {
  if constexpr (has_sm90a) {
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.b32 p, %37, 0;\nwgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
        "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,"
        "%24,%25,%26,%27,%28,%29,%30,%31}, "
        "{%32,%33,%34,%35}, %36, p, 1, 1, %38;\n}"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
          "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]),
          "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]),
          "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]),
          "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(static_cast<int>(adds)), "n"(TransposesB));
  } else {
    wrong_architecture();
  }
}

// d [64, 64] with a [64, 16] in registers and b [64, 16]. With g and t as above, a[0] holds columns 2 t and
// 2 t + 1 of row 16 * warp + g, a[1] those of row g + 8, a[2] and a[3] the columns 8 further. The registers
// may be overwritten once the group has completed.
__device__ inline void wgmma(float (&d)[32], const std::uint32_t (&a)[4], std::uint64_t b, bool adds) {
  wgmma_m64n64k16<0>(d, a, b, adds);
}
// The same with b [16, 64], whose 64 columns are contiguous: eight rows of 128 bytes are an atom.
__device__ inline void wgmma_transposed_b(float (&d)[32], const std::uint32_t (&a)[4], std::uint64_t b,
                                          bool adds) {
  wgmma_m64n64k16<1>(d, a, b, adds);
}

}  // namespace inferno::cuda
