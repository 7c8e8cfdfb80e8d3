// Tensor cores of Hopper: products of a warp group (four warps together), bf16, float sums in registers; the
// second operand is in shared memory, the first there or in registers. They run in the background:
// group_begins() before the first, group_closes() behind the last, wait_for_groups() before sums are read or
// operands overwritten. Only kernels that never start on other devices may call these.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "backend/cuda/device/ptx.cuh"

namespace inferno::cuda {

// How 16-byte units are exchanged in shared memory, by the bits of their addresses above 128: rows of 128
// bytes, of which eight are an atom of 1024 bytes; or rows of 64 bytes and atoms of 512.
enum class Exchange : std::uint64_t { rows_of_128 = 1, rows_of_64 = 2 };

// An operand: rows (tokens or weights) whose columns lie in order. `atom_step`: bytes from eight rows to the
// next eight. Sixteen columns on is 32 bytes on, within an atom.
__device__ inline std::uint64_t group_operand(const void* shared, Exchange exchange,
                                              std::uint32_t atom_step) {
  return (shared_address(shared) & 0x3FFFFu) >> 4 | std::uint64_t{1} << 16 |
         static_cast<std::uint64_t>(atom_step >> 4) << 32 | static_cast<std::uint64_t>(exchange) << 62;
}
__device__ constexpr std::uint64_t operand_offset(std::uint32_t bytes) {
  return bytes >> 4;
}

__device__ inline void group_begins() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#endif
}
__device__ inline void group_closes() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#endif
}
// All but the newest `Pending` groups are done.
template <int Pending>
__device__ void wait_for_groups() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Pending) : "memory");
#endif
}
// Keeps the compiler from reading sums before the wait above.
template <int Count>
__device__ void settle(float (&sums)[Count]) {
#pragma unroll
  for (int i = 0; i < Count; ++i) asm volatile("" : "+f"(sums[i])::"memory");
}

// Keeps registers that a product reads from being used for anything else before the wait above.
template <int Count>
__device__ void settle(std::uint32_t (&operand)[Count]) {
#pragma unroll
  for (int i = 0; i < Count; ++i) asm volatile("" : "+r"(operand[i])::"memory");
}

// Shared memory written by ordinary stores or cp.async before this may be read by products and bulk copies.
__device__ inline void publish_to_background() {
#if __CUDA_ARCH__ >= 900
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

// Registers move from warp groups that need few to those that need many.
template <int Count>
__device__ void keep_registers() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Count));
#endif
}
template <int Count>
__device__ void take_registers() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Count));
#endif
}

// d [64, 128] = a [64, 16] * b [128, 16] transposed, plus d where it adds. With g = lane / 4 and
// t = lane % 4 d[4 j], d[4 j + 1] are row 16 * warp + g, columns 8 j + 2 t and the next; d[4 j + 2], d[4 j +
// 3] those of row g + 8.
__device__ inline void multiply_group(float (&d)[64], std::uint64_t a, std::uint64_t b, bool adds) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\nwgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,"
      "%25,%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,"
      "%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63}, "
      "%64, %65, p, 1, 1, 0, 0;\n}"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
        "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
        "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]),
        "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]),
        "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]),
        "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]),
        "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]), "+f"(d[49]), "+f"(d[50]),
        "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), "+f"(d[56]), "+f"(d[57]),
        "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
      : "l"(a), "l"(b), "r"(static_cast<int>(adds)));
#endif
}

// Of the two below.
template <int Across>
__device__ inline void multiply_64(float (&d)[32], const std::uint32_t (&a)[4], std::uint64_t b, bool adds) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %37, 0;\nwgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,"
      "%24,%25,%26,%27,%28,%29,%30,%31}, "
      "{%32,%33,%34,%35}, %36, p, 1, 1, %38;\n}"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
        "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
        "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]),
        "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]),
        "+f"(d[30]), "+f"(d[31])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(static_cast<int>(adds)), "n"(Across));
#endif
}

// d [64, 64] of b [64, 16], with a in registers: with g and t as above a[0] are columns 2 t and the next of
// row 16 * warp + g, a[1] those of row g + 8, a[2] and a[3] those of columns 8 further. They may be written
// again once the group is done.
__device__ inline void multiply_group(float (&d)[32], const std::uint32_t (&a)[4], std::uint64_t b,
                                      bool adds) {
  multiply_64<0>(d, a, b, adds);
}
// The same of b [16, 64], whose 64 columns lie in order: eight rows of 128 bytes are an atom.
__device__ inline void multiply_group_across(float (&d)[32], const std::uint32_t (&a)[4], std::uint64_t b,
                                             bool adds) {
  multiply_64<1>(d, a, b, adds);
}

}  // namespace inferno::cuda
