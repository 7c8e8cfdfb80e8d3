// Thin wrappers around PTX instructions that exist from Ampere on: mma.sync, ldmatrix, cp.async, bf16
// conversion, ex2. Names follow the instructions. Also: what the code being compiled may use of Hopper.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace inferno::cuda {

// sm_90 and later: mbarrier, TMA, clusters. sm_90a alone: wgmma, setmaxnreg.
#if __CUDA_ARCH__ >= 900
constexpr bool has_sm90 = true;
#else
constexpr bool has_sm90 = false;
#endif
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
constexpr bool has_sm90a = true;
#else
constexpr bool has_sm90a = false;
#endif

// Takes the place of an instruction that the architecture lacks. Dispatch never starts such a kernel; if it
// does, the kernel fails with an error instead of returning garbage.
__device__ inline void wrong_architecture() {
  __trap();
}

// c [16, 8] += a [16, 16] * b [16, 8]. With g = lane / 4 and t = lane % 4, a lane holds
// a: rows g and g + 8, columns 2t, 2t + 1 (a0, a1) and 2t + 8, 2t + 9 (a2, a3);
// b: those columns as its rows, column g; c: rows g and g + 8, columns 2t, 2t + 1.
__device__ inline void mma_bf16(float (&c)[4], std::uint32_t a0, std::uint32_t a1, std::uint32_t a2,
                                std::uint32_t a3, std::uint32_t b0, std::uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

__device__ inline void mma_f16(float (&c)[4], std::uint32_t a0, std::uint32_t a1, std::uint32_t a2,
                               std::uint32_t a3, std::uint32_t b0, std::uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

__device__ inline std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

// Four 8 x 8 matrices of 16-bit elements; lanes 8 i to 8 i + 7 give the row addresses of matrix i.
__device__ inline void ldmatrix(std::uint32_t (&out)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
               : "r"(shared_address(row))
               : "memory");
}
__device__ inline void ldmatrix_trans(std::uint32_t (&out)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
               : "r"(shared_address(row))
               : "memory");
}

// 16 bytes from global to shared memory, asynchronously; zeros if `wanted` is false.
__device__ inline void cp_async(void* to, const void* from, bool wanted) {
  const int bytes = wanted ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from),
               "r"(bytes)
               : "memory");
}
__device__ inline void cp_async_commit_group() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
// Waits until at most the newest `Pending` groups are incomplete.
template <int Pending>
__device__ void cp_async_wait_group() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
}

// Orders ordinary accesses to shared memory (stores, cp.async, mbarrier.init) before those of TMA and wgmma,
// which use the async proxy.
__device__ inline void fence_proxy_async() {
  if constexpr (has_sm90) {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  } else {
    wrong_architecture();
  }
}

__device__ inline std::uint32_t pack_bf16x2(float low, float high) {
  std::uint32_t out;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(out) : "f"(high), "f"(low));
  return out;
}
__device__ inline float low_of(std::uint32_t pair) {
  return __uint_as_float(pair << 16);
}
__device__ inline float high_of(std::uint32_t pair) {
  return __uint_as_float(pair & 0xFFFF0000u);
}

__device__ inline float exp2_of(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

}  // namespace inferno::cuda
