/* mxop_block.h - what the instruction loops and the interpreter agree on.

   A block is a short run of elements that stays in the first-level cache while a program works on it.  Included by the
   generated instruction modules (one build per instruction set) and by the interpreter. */
#ifndef MXOP_BLOCK_H
#define MXOP_BLOCK_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#if defined(_MSC_VER)
#define MX_RESTRICT __restrict
#define MX_IVDEP __pragma(loop(ivdep))
#elif defined(__clang__)
#define MX_RESTRICT __restrict__
#define MX_IVDEP _Pragma("clang loop vectorize(assume_safety)")
#else
#define MX_RESTRICT __restrict__
#define MX_IVDEP _Pragma("GCC ivdep")
#endif

/* Integer division as MXNet's arrays have it: x / 0 is 0; the smallest number over -1 wraps. */
#define mx_idiv(T, a, b) ((b) == 0 ? (T)0 : (b) == (T)-1 && (T)-1 < (T)1 ? (T)(0 - (uint64_t)(a)) : (T)((a) / (b)))
/* Remainder with the divisor's sign, as Python; x % 0 is 0. */
#define mx_imod(T, a, b) \
    ((b) == 0 || ((b) == (T)-1 && (T)-1 < (T)1) ? (T)0 \
     : (T)((a) % (b) + ((((a) % (b)) != 0 && (((a) % (b)) < 0) != ((b) < 0)) ? (b) : 0)))

/* The quotient that goes with mx_imod: rounded down. */
#define mx_ifloordiv(T, a, b) \
    ((b) == 0 ? (T)0 : (b) == (T)-1 && (T)-1 < (T)1 ? (T)(0 - (uint64_t)(a)) \
     : (T)((a) / (b) - (((a) % (b)) != 0 && (((a) % (b)) < 0) != ((b) < 0))))
/* Power in 64 bits, of which narrower types take the lowest: products wrap, as NumPy's.  A negative exponent gives what the
   reciprocal rounds to, towards zero; 0 gives 0, as a division by it does. */
static inline int64_t mx_ipow(int64_t a, int64_t b)
{
    uint64_t x = (uint64_t)a, r = 1;
    if (b < 0) return a == 1 ? 1 : a == -1 ? ((b & 1) != 0 ? -1 : 1) : 0;
    for (; b != 0; b >>= 1) {
        if ((b & 1) != 0) r *= x;
        x *= x;
    }
    return (int64_t)r;
}

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
    double (*sum_f32)(const float *x, ptrdiff_t n);
    double (*sum_f64)(const double *x, ptrdiff_t n);
    double (*squares_f64)(const double *x, ptrdiff_t n, double scale);
    double (*extreme_f32[2])(double total, const float *x, ptrdiff_t n);   /* smallest, largest */
    double (*extreme_f64[2])(double total, const double *x, ptrdiff_t n);
    const struct mx_gemm_kernels *gemm[2];      /* float32, float64: mxop_gemm.h */
} mx_isa_table;

/* Copy a block past the caches: results much larger than the last cache would only evict what is still needed, and an
   ordinary store reads the line that it overwrites. `d` must be 16-byte aligned. */
static inline void mx_stream_copy(char *d, const char *s, ptrdiff_t bytes)
{
#if defined(__SSE2__)
    ptrdiff_t i = 0;
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

/* Ask for memory that is read soon: while a block is computed, the next one can come. */
static inline void mx_prefetch(const char *p, ptrdiff_t bytes)
{
#if defined(__GNUC__)
    for (ptrdiff_t i = 0; i < bytes; i += 64) __builtin_prefetch(p + i, 0, 2);
#elif defined(__SSE2__) || defined(_M_X64)
    for (ptrdiff_t i = 0; i < bytes; i += 64) _mm_prefetch(p + i, _MM_HINT_T1);
#else
    (void)p, (void)bytes;
#endif
}

static inline void mx_stream_fence(void)
{
#if defined(__SSE2__)
    _mm_sfence();
#endif
}

#endif
