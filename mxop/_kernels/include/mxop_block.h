/* mxop_block.h - what the instruction loops and the interpreter agree on.

   A block is a short run of elements that stays in the first-level cache while a program works on it.  Included by the
   generated instruction modules (one build per instruction set) and by the interpreter. */
#ifndef MXOP_BLOCK_H
#define MXOP_BLOCK_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "mxop_machine.h"
#if defined(__AVX512F__)
#include <immintrin.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#endif

#if defined(_MSC_VER)
#define MX_RESTRICT __restrict
#define MX_NOINLINE __declspec(noinline)
#define MX_IVDEP __pragma(loop(ivdep))
#elif defined(__clang__)
#define MX_RESTRICT __restrict__
#define MX_NOINLINE __attribute__((noinline))
#define MX_IVDEP _Pragma("clang loop vectorize(assume_safety)")
#else
#define MX_RESTRICT __restrict__
#define MX_NOINLINE __attribute__((noinline))
#define MX_IVDEP _Pragma("GCC ivdep")
#endif

/* Arrays of vectors are in registers only where every loop over them is unrolled.  Loops that need not be are by four at most:
   text that is longer takes compilers time and memory. */
#if defined(__clang__)
#define MX_INLINE static inline __attribute__((always_inline))
#define MX_UNROLLED _Pragma("clang loop unroll(full)")
#define MX_UNROLLED_BY_FOUR _Pragma("clang loop unroll_count(4)")
#elif defined(__GNUC__)
#define MX_INLINE static inline __attribute__((always_inline))
#define MX_UNROLLED _Pragma("GCC unroll 32")
#define MX_UNROLLED_BY_FOUR _Pragma("GCC unroll 4")
#else
#define MX_INLINE static __forceinline
#define MX_UNROLLED
#define MX_UNROLLED_BY_FOUR
#endif

#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define MX_SHUFFLES
#endif
#endif

/* The CUDA text has the same function (mxop/_gpu/headers.py). */
#define MX_EACH MX_INLINE

/* Bytes of an element, by the code of its type. */
static const int MX_ITEMSIZE[13] = {4, 8, 2, 1, 4, 1, 8, 1, 0, 0, 0, 0, 2};

/* An instruction: n elements, destination, up to three operands, its scalars in the compute type. */
typedef void (*mx_loop)(ptrdiff_t n, void *o, const void *a, const void *b, const void *c, const void *s);
/* The sum of what an instruction makes of n elements, in float32 or float64. */
typedef double (*mx_total)(ptrdiff_t n, const void *a, const void *b, const void *c, const void *s);
typedef struct { const char *name; mx_loop loops[7]; mx_total totals[2]; } mx_instruction;
/* Steps between memory (any storage type, any stride in bytes) and registers (compute types). */
typedef void (*mx_load)(ptrdiff_t n, const char *p, ptrdiff_t stride, void *d);
typedef void (*mx_store)(ptrdiff_t n, const void *s, char *p, ptrdiff_t stride, int add);

/* What one build of the instruction module offers. */
typedef struct {
    const char *isa;
    const mx_instruction *instructions;
    const mx_load (*loads)[7];
    const mx_store (*stores)[7];
    double (*squares_f64)(const double *x, ptrdiff_t n, double scale);
    const struct mx_gemm_kernels *gemm[2];      /* float32, float64: mxop_gemm.h */
    void (*halves)(mx_loop loop, int sources, ptrdiff_t n, char *o, const char *const *x, const void *scalars, int stream);
} mx_isa_table;

/* Copy a block past the caches: results much larger than the last cache would only evict what is still needed, and an
   ordinary store reads the line that it overwrites. `d` must be 16-byte aligned. */
static inline void mx_stream_copy(char *d, const char *s, ptrdiff_t bytes)
{
#if defined(__SSE2__)
    ptrdiff_t i = 0;
#if defined(__AVX512F__)
    if (!((intptr_t)d & 63)) {
        for (; i + 256 <= bytes; i += 256) {
            const __m512i a = _mm512_loadu_si512((const void *)(s + i)), b = _mm512_loadu_si512((const void *)(s + i + 64));
            const __m512i c = _mm512_loadu_si512((const void *)(s + i + 128)), e = _mm512_loadu_si512((const void *)(s + i + 192));
            _mm512_stream_si512((void *)(d + i), a);
            _mm512_stream_si512((void *)(d + i + 64), b);
            _mm512_stream_si512((void *)(d + i + 128), c);
            _mm512_stream_si512((void *)(d + i + 192), e);
        }
        for (; i + 64 <= bytes; i += 64) _mm512_stream_si512((void *)(d + i), _mm512_loadu_si512((const void *)(s + i)));
    }
#endif
    for (; i + 64 <= bytes; i += 64) {
        const __m128i a = _mm_loadu_si128((const __m128i *)(s + i)), b = _mm_loadu_si128((const __m128i *)(s + i + 16));
        const __m128i c = _mm_loadu_si128((const __m128i *)(s + i + 32)), e = _mm_loadu_si128((const __m128i *)(s + i + 48));
        _mm_stream_si128((__m128i *)(d + i), a);
        _mm_stream_si128((__m128i *)(d + i + 16), b);
        _mm_stream_si128((__m128i *)(d + i + 32), c);
        _mm_stream_si128((__m128i *)(d + i + 48), e);
    }
    if (i < bytes) memcpy(d + i, s + i, (size_t)(bytes - i));
#else
    memcpy(d, s, (size_t)bytes);
#endif
}

/* Ask for memory that is read soon, into the first or the second cache: while a block is computed, the next one can come.
   MX_PREFETCH_WRITE is for what is written soon. */
#if defined(__GNUC__)
#define MX_PREFETCH(line, cache) __builtin_prefetch(line, 0, 4 - cache)
#define MX_PREFETCH_WRITE(line) __builtin_prefetch(line, 1, 3)
#elif defined(__SSE2__) || defined(_M_X64)
#define MX_PREFETCH(line, cache) _mm_prefetch(line, cache == 1 ? _MM_HINT_T0 : _MM_HINT_T1)
#define MX_PREFETCH_WRITE(line) MX_PREFETCH(line, 1)
#else
#define MX_PREFETCH(line, cache) ((void)(line))
#define MX_PREFETCH_WRITE(line) ((void)(line))
#endif
static inline void mx_prefetch(const char *p, ptrdiff_t bytes)
{
    for (ptrdiff_t i = 0; i < bytes; i += 64) MX_PREFETCH(p + i, 2);
}
static inline void mx_prefetch_first(const char *p, ptrdiff_t bytes)
{
    for (ptrdiff_t i = 0; i < bytes; i += 64) MX_PREFETCH(p + i, 1);
}

/* Copy a block past the caches, and ask for as much of what is read later, which is then the next: while stores wait for memory,
   loads can go there. */
static inline void mx_stream_asking(char *d, const char *s, ptrdiff_t bytes, const char **asked, int n)
{
    for (ptrdiff_t i = 0, some; i < bytes; i += some) {
        some = bytes - i < 256 ? bytes - i : 256;
        for (int k = 0; k < n; k++) {
            mx_prefetch(asked[k], some);
            asked[k] += some;
        }
        mx_stream_copy(d + i, s + i, some);
    }
}

static inline void mx_stream_fence(void)
{
#if defined(__SSE2__)
    _mm_sfence();
#endif
}

#endif
