/* mxop_wide.h - loops for functions of arrays in the instructions of AVX-512, where those do what the text of mxop_math.h
 * takes several for: tables in registers, exponents and mantissas apart, scaling without overflow.  Functions are here whose text
 * the compiler makes slower loops of than NumPy has.
 *
 * `WIDE` in generate.py lists the loops that are taken.  Formulas of several functions do not hold them, so a number does not
 * depend on the formula around it.
 *
 * A function is written for `mxw_real` or `mxd_real`, a few vectors side by side: the processor looks ahead no further than
 * one or two hundred operations, and each of these chains is that long.  The tail of an array takes the same vectors under a
 * mask. */
#ifndef MXOP_WIDE_H
#define MXOP_WIDE_H

#if defined(__AVX512F__) && defined(__AVX512DQ__) && defined(__AVX512VL__) && defined(__AVX512BW__) && defined(__GNUC__)
#define MX_WIDE 1
#include <immintrin.h>

#ifndef MXW_SIDE
#define MXW_SIDE 3
#endif
#define MXW_EACH for (int u = 0; u < MXW_SIDE; u++)

#define MXW_T float
#define MXW_INT int32_t
#define MXW_UINT uint32_t
#define MXW_V __m512
#define MXW_MASK __mmask16
#define MXW_COUNT 16
#define MXW_TOP INT32_MIN
#define MXW_N(name) mxw_##name
#define MXW_P(name) _mm512_##name##_ps
#define MXW_E(name) _mm512_##name##_epi32
#define MXW_P_MASK(name) _mm512_##name##_ps_mask
#define MXW_E_MASK(name) _mm512_##name##_epi32_mask
#define MXW_TO_BITS _mm512_castps_si512
#define MXW_FROM_BITS _mm512_castsi512_ps
#define MXW_SET1 _mm512_set1_epi32
#define MXW_CVT _mm512_cvtps_epi32
#include "mxop_wide_ops.h"
#undef MXW_T
#undef MXW_INT
#undef MXW_UINT
#undef MXW_V
#undef MXW_MASK
#undef MXW_COUNT
#undef MXW_TOP
#undef MXW_N
#undef MXW_P
#undef MXW_E
#undef MXW_P_MASK
#undef MXW_E_MASK
#undef MXW_TO_BITS
#undef MXW_FROM_BITS
#undef MXW_SET1
#undef MXW_CVT
#undef MXW_R
#undef MXW_I
#undef MXW_M
#undef MXW_OF
#undef MXW_1
#undef MXW_2
#undef MXW_3

#define MXW_T double
#define MXW_INT int64_t
#define MXW_UINT uint64_t
#define MXW_V __m512d
#define MXW_MASK __mmask8
#define MXW_COUNT 8
#define MXW_TOP INT64_MIN
#define MXW_N(name) mxd_##name
#define MXW_P(name) _mm512_##name##_pd
#define MXW_E(name) _mm512_##name##_epi64
#define MXW_P_MASK(name) _mm512_##name##_pd_mask
#define MXW_E_MASK(name) _mm512_##name##_epi64_mask
#define MXW_TO_BITS _mm512_castpd_si512
#define MXW_FROM_BITS _mm512_castsi512_pd
#define MXW_SET1 _mm512_set1_epi64
#define MXW_CVT _mm512_cvtpd_epi64
#include "mxop_wide_ops.h"

#define MXW_LANES (16 * MXW_SIDE)
#define MXW_LOOP_1(P, T, name)                                                                          \
    static void P##_##name##_loop(ptrdiff_t n, T *MX_RESTRICT o, const T *MX_RESTRICT x)                \
    {                                                                                                   \
        const ptrdiff_t step = 64 / (ptrdiff_t)sizeof(T) * MXW_SIDE;                                    \
        ptrdiff_t i = 0;                                                                                \
        for (; i + step <= n; i += step) P##_write(o + i, P##_##name(P##_read(x + i, step)), step);     \
        if (i < n) P##_write(o + i, P##_##name(P##_read(x + i, n - i)), n - i);                         \
    }
/* Of two operands; a stride is 0 where one number serves all. */
#define MXW_LOOP_2(P, T, name)                                                                          \
    MX_INLINE void P##_##name##_loop(ptrdiff_t n, T *MX_RESTRICT o, const T *x, int sx, const T *y, int sy) \
    {                                                                                                   \
        const ptrdiff_t step = 64 / (ptrdiff_t)sizeof(T) * MXW_SIDE;                                    \
        const P##_real p = P##_all(*x), q = P##_all(*y);                                         \
        ptrdiff_t i = 0;                                                                                \
        for (; i + step <= n; i += step)                                                                \
            P##_write(o + i, P##_##name(sx ? P##_read(x + i, step) : p, sy ? P##_read(y + i, step) : q), step); \
        if (i < n)                                                                                      \
            P##_write(o + i, P##_##name(sx ? P##_read(x + i, n - i) : p, sy ? P##_read_or(y + i, n - i, (T)0.75) : q), n - i); \
    }

#include "mxop_wide_tables.h"
#include "mxop_wide_f32.h"
#include "mxop_wide_f64.h"

#endif
#endif
