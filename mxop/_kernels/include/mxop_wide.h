/* mxop_wide.h - loops for functions of arrays in the instructions of AVX-512, where those do what the text of mxop_math.h
 * takes several for: tables in registers, exponents and mantissas apart, scaling without overflow.
 *
 * Whoever has MX_WIDE_<function>_<type> takes these loops; the generated ones follow the text.  Formulas of several
 * functions do not hold them (`WIDE` in generate.py), so a number does not depend on the formula around it.
 *
 * A function is written for `V`, a few vectors side by side: the processor looks ahead no further than one or two hundred
 * operations, and each of these chains is that long.  The tail of an array takes the same vectors under a mask. */
#ifndef MXOP_WIDE_H
#define MXOP_WIDE_H

#if defined(__AVX512F__) && defined(__AVX512DQ__) && defined(__AVX512VL__) && defined(__AVX512BW__) && defined(__GNUC__)
#define MX_WIDE 1
#include <immintrin.h>

#ifndef MXW_SIDE
#define MXW_SIDE 2
#endif
#define MXW_EACH for (int u = 0; u < MXW_SIDE; u++)

typedef struct { __m512 v[MXW_SIDE]; } mxw_f32;
typedef struct { __m512i v[MXW_SIDE]; } mxw_i32;
typedef struct { __mmask16 v[MXW_SIDE]; } mxw_mask;

#define MXW_OF(R, name, parameters, value) \
    MX_INLINE R name parameters { R r; MXW_EACH r.v[u] = value; return r; }
#define MXW_1(name, value) MXW_OF(mxw_f32, name, (mxw_f32 a), value)
#define MXW_2(name, value) MXW_OF(mxw_f32, name, (mxw_f32 a, mxw_f32 b), value)
#define MXW_3(name, value) MXW_OF(mxw_f32, name, (mxw_f32 a, mxw_f32 b, mxw_f32 c), value)

MXW_OF(mxw_f32, mxw_all, (float x), _mm512_set1_ps(x))
MXW_2(mxw_add, _mm512_add_ps(a.v[u], b.v[u]))
MXW_2(mxw_sub, _mm512_sub_ps(a.v[u], b.v[u]))
MXW_2(mxw_mul, _mm512_mul_ps(a.v[u], b.v[u]))
MXW_2(mxw_div, _mm512_div_ps(a.v[u], b.v[u]))
MXW_3(mxw_fma, _mm512_fmadd_ps(a.v[u], b.v[u], c.v[u]))      /* a b + c */
MXW_3(mxw_fnma, _mm512_fnmadd_ps(a.v[u], b.v[u], c.v[u]))    /* c - a b */
MXW_3(mxw_fms, _mm512_fmsub_ps(a.v[u], b.v[u], c.v[u]))      /* a b - c */
MXW_2(mxw_max, _mm512_max_ps(a.v[u], b.v[u]))                /* NaN in b goes through, here and below */
MXW_2(mxw_min, _mm512_min_ps(a.v[u], b.v[u]))
MXW_1(mxw_sqrt, _mm512_sqrt_ps(a.v[u]))
MXW_1(mxw_rsqrt14, _mm512_rsqrt14_ps(a.v[u]))                /* within 2^-14: for corrections alone */
MXW_1(mxw_rcp14, _mm512_rcp14_ps(a.v[u]))
MXW_1(mxw_exponent, _mm512_getexp_ps(a.v[u]))                /* of denormals too; -inf of 0, inf of inf */
MXW_2(mxw_scaled, _mm512_scalef_ps(a.v[u], b.v[u]))          /* a 2^floor(b) */
/* ...or 0, where a is 0 or no number and b is infinite */
MXW_2(mxw_scaled_known, _mm512_maskz_scalef_ps(_mm512_cmp_ps_mask(a.v[u], _mm512_setzero_ps(), _CMP_NEQ_OQ), a.v[u], b.v[u]))
MXW_1(mxw_abs, _mm512_abs_ps(a.v[u]))
/* The mantissa from 1 to 2: of |x|, or NaN below zero */
MXW_1(mxw_mantissa, _mm512_getmant_ps(a.v[u], _MM_MANT_NORM_1_2, _MM_MANT_SIGN_zero))
MXW_1(mxw_mantissa_or_nan, _mm512_getmant_ps(a.v[u], _MM_MANT_NORM_1_2, _MM_MANT_SIGN_nan))
MXW_2(mxw_signed, _mm512_castsi512_ps(_mm512_ternarylogic_epi32(_mm512_set1_epi32(0x7fffffff),
    _mm512_castps_si512(a.v[u]), _mm512_castps_si512(b.v[u]), 0xca)))
/* a with its sign changed where the bit of the sign is set in b */
MXW_OF(mxw_f32, mxw_turned, (mxw_f32 a, mxw_i32 b), _mm512_castsi512_ps(_mm512_ternarylogic_epi32(
    _mm512_set1_epi32((int)0x80000000u), _mm512_castps_si512(a.v[u]), b.v[u], 0x6c)))

MXW_OF(mxw_mask, mxw_less, (mxw_f32 a, mxw_f32 b), _mm512_cmp_ps_mask(a.v[u], b.v[u], _CMP_LT_OQ))
MXW_OF(mxw_mask, mxw_equal, (mxw_f32 a, mxw_f32 b), _mm512_cmp_ps_mask(a.v[u], b.v[u], _CMP_EQ_OQ))
MXW_OF(mxw_mask, mxw_not_within, (mxw_f32 a, mxw_f32 b), _mm512_cmp_ps_mask(a.v[u], b.v[u], _CMP_NLE_UQ))
MXW_OF(mxw_mask, mxw_or, (mxw_mask a, mxw_mask b), (__mmask16)(a.v[u] | b.v[u]))
MXW_OF(mxw_mask, mxw_and, (mxw_mask a, mxw_mask b), (__mmask16)(a.v[u] & b.v[u]))
MXW_OF(mxw_mask, mxw_not, (mxw_mask a), (__mmask16)~a.v[u])
MX_INLINE int mxw_any(mxw_mask m) { int any = 0; MXW_EACH any |= m.v[u]; return any; }
MXW_OF(mxw_f32, mxw_where, (mxw_mask m, mxw_f32 a, mxw_f32 b), _mm512_mask_mov_ps(b.v[u], m.v[u], a.v[u]))
MXW_OF(mxw_f32, mxw_or_zero, (mxw_mask m, mxw_f32 a), _mm512_maskz_mov_ps(m.v[u], a.v[u]))

MXW_OF(mxw_i32, mxw_bits, (mxw_f32 a), _mm512_castps_si512(a.v[u]))
MXW_OF(mxw_f32, mxw_number, (mxw_i32 a), _mm512_castsi512_ps(a.v[u]))
MXW_OF(mxw_f32, mxw_converted, (mxw_i32 a), _mm512_cvtepi32_ps(a.v[u]))
MXW_OF(mxw_i32, mxw_i_all, (uint32_t x), _mm512_set1_epi32((int)x))
MXW_OF(mxw_i32, mxw_i_add, (mxw_i32 a, mxw_i32 b), _mm512_add_epi32(a.v[u], b.v[u]))
MXW_OF(mxw_i32, mxw_i_sub, (mxw_i32 a, mxw_i32 b), _mm512_sub_epi32(a.v[u], b.v[u]))
MXW_OF(mxw_i32, mxw_i_and, (mxw_i32 a, mxw_i32 b), _mm512_and_si512(a.v[u], b.v[u]))
MXW_OF(mxw_i32, mxw_i_xor, (mxw_i32 a, mxw_i32 b), _mm512_xor_si512(a.v[u], b.v[u]))
MXW_OF(mxw_i32, mxw_i_max, (mxw_i32 a, mxw_i32 b), _mm512_max_epi32(a.v[u], b.v[u]))
MXW_OF(mxw_i32, mxw_i_min, (mxw_i32 a, mxw_i32 b), _mm512_min_epi32(a.v[u], b.v[u]))
#define MXW_SHIFT(name, call) \
    MX_INLINE mxw_i32 name(mxw_i32 a, unsigned n) { mxw_i32 r; MXW_EACH r.v[u] = call(a.v[u], n); return r; }
MXW_SHIFT(mxw_i_left, _mm512_slli_epi32)
MXW_SHIFT(mxw_i_right, _mm512_srli_epi32)
MXW_SHIFT(mxw_i_halved, _mm512_srai_epi32)
MXW_OF(mxw_mask, mxw_i_more, (mxw_i32 a, mxw_i32 b), _mm512_cmpgt_epi32_mask(a.v[u], b.v[u]))
MXW_OF(mxw_mask, mxw_i_any, (mxw_i32 a, mxw_i32 b), _mm512_test_epi32_mask(a.v[u], b.v[u]))

/* a, but for b of a class whose nibble in the table is another than 0; from the lowest: NaN, signalling NaN, 0, 1, -inf, inf,
 * negative, positive; 2 is b itself, 3 NaN, 4 -inf, 5 inf. */
MXW_OF(mxw_f32, mxw_but_for, (mxw_f32 a, mxw_f32 b, uint32_t table),
       _mm512_fixupimm_ps(a.v[u], b.v[u], _mm512_set1_epi32((int)table), 0))

/* Entries of a table of 16, or 32, by the low bits of an index. */
MXW_OF(mxw_f32, mxw_of_16, (const float *t, mxw_i32 i), _mm512_permutexvar_ps(i.v[u], _mm512_loadu_ps(t)))
MXW_OF(mxw_f32, mxw_of_32, (const float *t, mxw_i32 i),
       _mm512_permutex2var_ps(_mm512_loadu_ps(t), i.v[u], _mm512_loadu_ps(t + 16)))
/* ...where the mask says so */
MXW_OF(mxw_f32, mxw_of_16_or, (mxw_f32 other, mxw_mask m, const float *t, mxw_i32 i),
       _mm512_mask_permutexvar_ps(other.v[u], m.v[u], i.v[u], _mm512_loadu_ps(t)))

MX_INLINE mxw_f32 mxw_read(const float *x, ptrdiff_t n)
{
    mxw_f32 r;
    MXW_EACH {
        ptrdiff_t m = n - 16 * u;
        r.v[u] = _mm512_mask_loadu_ps(_mm512_set1_ps(1.0f), m >= 16 ? 0xffff : m > 0 ? (__mmask16)((1u << m) - 1) : 0, x + 16 * u);
    }
    return r;
}
MX_INLINE void mxw_write(float *o, mxw_f32 a, ptrdiff_t n)
{
    MXW_EACH {
        ptrdiff_t m = n - 16 * u;
        _mm512_mask_storeu_ps(o + 16 * u, m >= 16 ? 0xffff : m > 0 ? (__mmask16)((1u << m) - 1) : 0, a.v[u]);
    }
}

#define MXW_LANES (16 * MXW_SIDE)
#define MXW_LOOP_1(name)                                                                                \
    static void mxw_##name##_loop(ptrdiff_t n, float *MX_RESTRICT o, const float *MX_RESTRICT x)        \
    {                                                                                                   \
        ptrdiff_t i = 0;                                                                                \
        for (; i + MXW_LANES <= n; i += MXW_LANES)                                                      \
            mxw_write(o + i, mxw_##name(mxw_read(x + i, MXW_LANES)), MXW_LANES);                        \
        if (i < n) mxw_write(o + i, mxw_##name(mxw_read(x + i, n - i)), n - i);                         \
    }
/* Of two operands; a stride is 0 where one number serves all. */
#define MXW_LOOP_2(name)                                                                                \
    MX_INLINE void mxw_##name##_loop(ptrdiff_t n, float *MX_RESTRICT o, const float *x, ptrdiff_t sx, const float *y, \
                                     ptrdiff_t sy)                                                      \
    {                                                                                                   \
        const mxw_f32 x0 = mxw_all(*x), y0 = mxw_all(*y);                                               \
        ptrdiff_t i = 0;                                                                                \
        for (; i + MXW_LANES <= n; i += MXW_LANES)                                                      \
            mxw_write(o + i, mxw_##name(sx ? mxw_read(x + i, MXW_LANES) : x0, sy ? mxw_read(y + i, MXW_LANES) : y0), \
                      MXW_LANES);                                                                       \
        if (i < n) mxw_write(o + i, mxw_##name(sx ? mxw_read(x + i, n - i) : x0, sy ? mxw_read(y + i, n - i) : y0), n - i); \
    }

#include "mxop_wide_tables.h"
#include "mxop_wide_f32.h"

#endif
#endif
