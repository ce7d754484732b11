/* mxop_gemm_kernels.h - products of matrices for one instruction set, in float32 and float64; see mxop_gemm.h.

   The scheme is that of Goto and of BLIS.  Sums are cut every MX_GEMM_DEPTH summands.  For each part, the columns of B are
   packed into panels of a few vectors' width, which the second cache holds; a block of rows of A goes over all of them; and
   the innermost loop keeps a small block of C, `MX_GEMM_ROWS` rows of `MX_GEMM_VECTORS` vectors, in registers: for each
   summand it reads one vector of B for each column of vectors and multiplies it by one number of A for each row.  As A is read
   number by number it need not be packed where summands lie side by side. */
#ifndef MXOP_GEMM_KERNELS_H
#define MXOP_GEMM_KERNELS_H

#include <stdint.h>
#include <string.h>
#include "mxop_gemm.h"

/* The block in registers leaves some for B and A, and has at least eight independent sums: an addition takes four steps and
   two can begin in each. */
#if defined(__AVX512F__)
#define MX_GEMM_BYTES 64            /* of a vector; 32 registers */
#define MX_GEMM_ROWS 12
#define MX_GEMM_VECTORS 2
#elif defined(__AVX2__)
#define MX_GEMM_BYTES 32            /* 16 registers */
#define MX_GEMM_ROWS 6
#define MX_GEMM_VECTORS 2
#elif defined(__aarch64__) && defined(__GNUC__)
#define MX_GEMM_BYTES 16            /* 32 registers */
#define MX_GEMM_ROWS 12
#define MX_GEMM_VECTORS 2
#elif defined(__GNUC__)
#define MX_GEMM_BYTES 16            /* 16 registers at least */
#define MX_GEMM_ROWS 6
#define MX_GEMM_VECTORS 2
#else
#define MX_GEMM_ROWS 4              /* no vector types: the compiler may find vectors in short loops */
#define MX_GEMM_VECTORS 8
#endif
#define MX_GEMM_CHUNK MX_RUN        /* summands that are converted at a time */
#define MX_GEMM_AHEAD 16            /* summands whose lines are fetched, to the second cache: in the first, they would exclude each other */
#define MX_GEMM_PAUSE 8             /* summands after which some more of the next panel is fetched, of C, and of A */

/* What a block packs while it multiplies: a constant, since a branch between products and additions keeps them from being fused. */
enum {MX_PACKS_NOTHING, MX_PACKS_A, MX_PACKS_B};

#if defined(MX_GEMM_BYTES)
#define MX_GEMM_FIRST(vector) ((vector)[0])
#else
#define MX_GEMM_FIRST(vector) (vector)
#endif
#if defined(__AVX512F__) && defined(__GNUC__)       /* what the compiler takes for changed it must have read before */
#define MX_GEMM_READ(vector) __asm__("" : "+v"(vector))
#elif defined(__AVX2__) && defined(__GNUC__)
#define MX_GEMM_READ(vector) __asm__("" : "+x"(vector))
#else
#define MX_GEMM_READ(vector) ((void)0)
#endif
#if defined(__clang__) && defined(__AVX512F__)
#define MX_GEMM_WIDE __attribute__((min_vector_width(512)))     /* halves would be too many for the registers */
#else
#define MX_GEMM_WIDE
#endif

/* A product and the addition that follows become one instruction here, and nowhere else in the package. */
#if defined(__clang__)
#pragma clang fp contract(fast)
#elif defined(__GNUC__)
#pragma GCC push_options
#pragma GCC optimize("fp-contract=fast")
#endif

#define MX_GEMM_PASTE_(name, suffix) name##_##suffix
#define MX_GEMM_PASTE(name, suffix) MX_GEMM_PASTE_(name, suffix)
#define G(name) MX_GEMM_PASTE(mx_gemm_##name, MX_GEMM_SUFFIX)

#if MX_GEMM_BYTES == 64
/* Turn four rows of sixteen numbers: they change places within quarters of vectors, each of which is written where it belongs. */
MX_INLINE void mx_gemm_turn_long(const float *x, ptrdiff_t across, float *to, ptrdiff_t width)
{
    const __m512 a = _mm512_loadu_ps(x), b = _mm512_loadu_ps(x + across);
    const __m512 c = _mm512_loadu_ps(x + 2 * across), d = _mm512_loadu_ps(x + 3 * across);
    const __m512d ab = _mm512_castps_pd(_mm512_unpacklo_ps(a, b)), cd = _mm512_castps_pd(_mm512_unpacklo_ps(c, d));
    const __m512d ef = _mm512_castps_pd(_mm512_unpackhi_ps(a, b)), gh = _mm512_castps_pd(_mm512_unpackhi_ps(c, d));
    const __m512d turned[4] = {_mm512_unpacklo_pd(ab, cd), _mm512_unpackhi_pd(ab, cd), _mm512_unpacklo_pd(ef, gh),
                               _mm512_unpackhi_pd(ef, gh)};
    MX_UNROLLED for (int j = 0; j < 4; j++) {
        const __m512 four = _mm512_castpd_ps(turned[j]);
        _mm_storeu_ps(to + j * width, _mm512_castps512_ps128(four));
        _mm_storeu_ps(to + (4 + j) * width, _mm512_extractf32x4_ps(four, 1));
        _mm_storeu_ps(to + (8 + j) * width, _mm512_extractf32x4_ps(four, 2));
        _mm_storeu_ps(to + (12 + j) * width, _mm512_extractf32x4_ps(four, 3));
    }
}
#endif

#define T float
#define MX_GEMM_SUFFIX f32
#define MX_GEMM_BITS int32_t
#define MX_GEMM_LOAD(rest, lanes, from) ((G(vector))_mm512_mask_loadu_ps((__m512)(rest), (__mmask16)(lanes), (from)))
#define MX_GEMM_STORE(lanes, to, x) _mm512_mask_storeu_ps((to), (__mmask16)(lanes), (__m512)(x))
#define MX_GEMM_EVEN(a, b) ((G(vector))_mm512_permutex2var_ps((__m512)(a), _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, \
                                                              22, 24, 26, 28, 30), (__m512)(b)))
#define MX_GEMM_MASKED(x, lanes) ((G(vector))_mm512_maskz_mov_ps((__mmask16)(lanes), (__m512)(x)))
#define MX_GEMM_ADD(sum, a, b, lanes) ((G(vector))_mm512_mask3_fmadd_ps((__m512)(a), (__m512)(b), (__m512)(sum), (__mmask16)(lanes)))
#include "mxop_gemm_type.h"
#define T double
#define MX_GEMM_SUFFIX f64
#define MX_GEMM_BITS int64_t
#define MX_GEMM_LOAD(rest, lanes, from) ((G(vector))_mm512_mask_loadu_pd((__m512d)(rest), (__mmask8)(lanes), (from)))
#define MX_GEMM_STORE(lanes, to, x) _mm512_mask_storeu_pd((to), (__mmask8)(lanes), (__m512d)(x))
#define MX_GEMM_EVEN(a, b) ((G(vector))_mm512_permutex2var_pd((__m512d)(a), _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14), \
                                                              (__m512d)(b)))
#define MX_GEMM_MASKED(x, lanes) ((G(vector))_mm512_maskz_mov_pd((__mmask8)(lanes), (__m512d)(x)))
#define MX_GEMM_ADD(sum, a, b, lanes) ((G(vector))_mm512_mask3_fmadd_pd((__m512d)(a), (__m512d)(b), (__m512d)(sum), (__mmask8)(lanes)))
#include "mxop_gemm_type.h"
#undef G

#if defined(__clang__)
#pragma clang fp contract(off)
#elif defined(__GNUC__)
#pragma GCC pop_options
#endif

#endif
