/* mxop_wide_f32.h - float32 functions of a few AVX-512 vectors.  Included by mxop_wide.h.
 *
 * ULP 1.0 at most, as their fellows in mxop_math.h; special values are theirs, too. */
#ifndef MXOP_WIDE_F32_H
#define MXOP_WIDE_F32_H

/* ---- tables ------------------------------------------------------------------------------------------------------ */

/* A polynomial for each half of a binade, from 1/16 on: base + d P(d), d the distance from the middle; the first one's base is
 * x itself. */
MX_INLINE mxw_f32 mxw_tanh(mxw_f32 x)
{
    mxw_f32 a = mxw_abs(x), c = mxw_min(mxw_all(9.25f), a);
    mxw_i32 bits = mxw_i_max(mxw_bits(c), mxw_i_all(0x3d900000u));
    mxw_i32 i = mxw_i_right(mxw_i_sub(bits, mxw_i_all(0x100000u)), 22);
    mxw_f32 d = mxw_sub(c, mxw_of_16(mxw_tanh_table[0], i));
    mxw_f32 base = mxw_of_16_or(a, mxw_i_more(bits, mxw_i_all(0x3dcfffffu)), mxw_tanh_table[1], i);
    mxw_f32 p = mxw_of_16(mxw_tanh_table[7], i);
    for (int k = 6; k >= 2; k--) p = mxw_fma(p, d, mxw_of_16(mxw_tanh_table[k], i));
    return mxw_signed(mxw_fma(p, d, base), x);
}

/* atan(c) + atan((a - c) / (1 + a c)), c for each half of a binade from 1/8 on; 0 below, infinite above 24. */
MX_INLINE mxw_f32 mxw_arctan(mxw_f32 x)
{
    mxw_f32 a = mxw_abs(x);
    mxw_i32 i = mxw_i_min(mxw_i_max(mxw_bits(a), mxw_i_all(0x3e000000u)), mxw_i_all(0x41c00000u));
    i = mxw_i_right(i, 22);
    mxw_f32 c = mxw_of_16(mxw_arctan_table[0], i), one = mxw_of_16(mxw_arctan_table[1], i);
    mxw_f32 t = mxw_div(mxw_fms(mxw_min(mxw_all(0x1p100f), a), one, c), mxw_fma(a, c, one)), z = mxw_mul(t, t);
    mxw_f32 p = mxw_fma(z, mxw_fma(z, mxw_all(-1.3565539e-01f), mxw_all(1.9985569e-01f)), mxw_all(-3.333325e-01f));
    mxw_f32 hi = mxw_of_16(mxw_arctan_table[2], i), s = mxw_add(hi, t);
    mxw_f32 low = mxw_fma(mxw_mul(t, z), p, mxw_of_16(mxw_arctan_table[3], i));
    return mxw_signed(mxw_add(s, mxw_add(mxw_sub(t, mxw_sub(s, hi)), low)), x);
}

/* 2^3k 2^j m: the root of 2^j from a table, with what it lost; that of m from its first four bits and a polynomial. */
MX_INLINE mxw_f32 mxw_cbrt(mxw_f32 x)
{
    mxw_f32 m = mxw_mantissa(x), e = mxw_exponent(x), three = mxw_all(1.0f / 3), big = mxw_all(MX_ROUND_F32);
    mxw_f32 k = mxw_sub(mxw_fma(mxw_sub(e, mxw_all(1.0f)), three, big), big);
    mxw_i32 j = mxw_bits(mxw_add(mxw_fnma(k, mxw_all(3.0f), e), big)), i = mxw_i_right(mxw_bits(m), 19);
    mxw_f32 t = mxw_fms(m, mxw_of_16(mxw_cbrt_table[0], i), mxw_all(1.0f));
    mxw_f32 q = mxw_mul(t, mxw_fma(t, mxw_fma(t, mxw_all(6.178085e-02f), mxw_all(-1.1114246e-01f)), mxw_all(3.333333e-01f)));
    mxw_f32 a = mxw_of_16(mxw_cbrt_table[1], i), b = mxw_of_16(mxw_cbrt_table[2], j), r = mxw_mul(a, b);
    mxw_f32 low = mxw_fma(a, mxw_of_16(mxw_cbrt_table[3], j), mxw_fms(a, b, r));
    return mxw_signed(mxw_scaled(mxw_add(r, mxw_fma(r, q, low)), k), x);
}

/* ---- logarithms -------------------------------------------------------------------------------------------------- */

/* x = 2^k m, 1 <= m < 2, and m = (1 + f) / inverse, with an inverse for each sixteenth of [1, 2): a logarithm is
 * k unit + table + log(1 + f), f from -1/32 to 1/16.  The last sixteenth counts as the first of the next binade, halved: so
 * nothing cancels next to 1, where inverse and table are exact.  What is no positive number comes out right by itself: m is NaN
 * below zero, k infinite at 0 and inf. */
MX_INLINE mxw_f32 mxw_log_inverse(mxw_i32 i) { return mxw_of_16(mxw_log_table[0], i); }
MX_INLINE mxw_i32 mxw_log_interval(mxw_f32 m) { return mxw_i_right(mxw_bits(m), 19); }

/* k unit + table[row], in two parts, of which the first is exact */
MX_INLINE mxw_f32 mxw_log_base(mxw_f32 k, mxw_i32 i, int row, float unit)
{
    mxw_f32 t = mxw_of_16(mxw_log_table[row], i);
    return unit == 1.0f ? mxw_add(k, t) : mxw_fma(k, mxw_all(unit), t);
}
MX_INLINE mxw_f32 mxw_log_base_low(mxw_f32 k, mxw_i32 i, int row, float unit)
{
    mxw_f32 t = mxw_of_16(mxw_log_table[row + 1], i);
    return unit == 0.0f ? t : mxw_fma(k, mxw_all(unit), t);
}
/* a + b f + c f^2 + d f^3 */
MX_INLINE mxw_f32 mxw_cubic(mxw_f32 f, float a, float b, float c, float d)
{
    return mxw_fma(f, mxw_fma(f, mxw_fma(f, mxw_all(d), mxw_all(c)), mxw_all(b)), mxw_all(a));
}
MX_INLINE mxw_f32 mxw_log2(mxw_f32 x)
{
    mxw_f32 m = mxw_mantissa_or_nan(x), k = mxw_exponent(x);
    mxw_i32 i = mxw_log_interval(m);
    mxw_f32 f = mxw_fms(m, mxw_log_inverse(i), mxw_all(1.0f));
    mxw_f32 q = mxw_cubic(f, -7.213475e-01f, 4.8091406e-01f, -3.60787e-01f, 2.7229828e-01f);
    mxw_f32 low = mxw_fma(f, mxw_fma(f, q, mxw_all(1.925963e-08f)), mxw_log_base_low(k, i, 3, 0.0f));
    return mxw_add(mxw_log_base(k, i, 3, 1.0f), mxw_fma(f, mxw_all(0x1.715476p0f), low));
}
MX_INLINE mxw_f32 mxw_log10(mxw_f32 x)
{
    mxw_f32 m = mxw_mantissa_or_nan(x), k = mxw_exponent(x);
    mxw_i32 i = mxw_log_interval(m);
    mxw_f32 f = mxw_fms(m, mxw_log_inverse(i), mxw_all(1.0f));
    mxw_f32 q = mxw_cubic(f, -2.1714725e-01f, 1.4476968e-01f, -1.0860114e-01f, 8.186108e-02f);
    mxw_f32 low = mxw_fma(f, mxw_fma(f, q, mxw_all(-1.010305e-08f)), mxw_log_base_low(k, i, 5, 4.605039e-06f));
    return mxw_add(mxw_log_base(k, i, 5, 0x1.344p-2f), mxw_fma(f, mxw_all(0x1.bcb7b2p-2f), low));
}
/* log(2^more (u + c)) for a c that is small beside u */
MX_INLINE mxw_f32 mxw_log_sum(mxw_f32 u, mxw_f32 c, float more)
{
    mxw_f32 m = mxw_mantissa_or_nan(u), k = mxw_exponent(u);
    mxw_i32 i = mxw_log_interval(m);
    mxw_f32 inverse = mxw_log_inverse(i), first = mxw_fms(m, inverse, mxw_all(1.0f));
    c = mxw_mul(mxw_scaled_known(c, mxw_sub(mxw_all(0.0f), k)), inverse);
    mxw_f32 f = mxw_add(first, c), lost = mxw_sub(c, mxw_sub(f, first));
    if (more != 0.0f) k = mxw_add(k, mxw_all(more));
    mxw_f32 q = mxw_cubic(f, -5.e-01f, 3.333443e-01f, -2.5007278e-01f, 1.8865344e-01f);
    mxw_f32 low = mxw_add(mxw_log_base_low(k, i, 1, 1.4286068e-06f), mxw_fnma(lost, f, lost));
    mxw_f32 base = mxw_log_base(k, i, 1, 0.693145751953125f), s = mxw_add(base, f);
    s = mxw_add(s, mxw_fma(f, mxw_mul(f, q), mxw_add(low, mxw_sub(f, mxw_sub(s, base)))));
    return mxw_but_for(s, u, 0x00500400u);
}
/* of 1 + x and what that loses */
MX_INLINE mxw_f32 mxw_log1p(mxw_f32 x)
{
    mxw_f32 one = mxw_all(1.0f), hi = mxw_max(one, x), lo = mxw_min(one, x), u = mxw_add(hi, lo);
    return mxw_signed(mxw_log_sum(u, mxw_sub(lo, mxw_sub(u, hi)), 0.0f), x);
}

/* log(a + r), r the root of w + lost, which is less than a or not; above 2^40 that of 2 a. */
MX_INLINE mxw_f32 mxw_log_with_root(mxw_f32 a, mxw_f32 w, mxw_f32 lost, int less)
{
    mxw_f32 r = mxw_sqrt(w), over = mxw_rsqrt14(mxw_max(mxw_all(0x1p-100f), w));
    mxw_f32 low = mxw_mul(mxw_add(mxw_fnma(r, r, w), lost), mxw_mul(mxw_all(0.5f), over));
    mxw_f32 u = mxw_add(a, r), top = less ? a : r, other = less ? r : a;
    mxw_f32 y = mxw_log_sum(u, mxw_add(mxw_sub(other, mxw_sub(u, top)), low), 0.0f);
    mxw_mask far = mxw_less(mxw_all(0x1p40f), a);
    return mxw_any(far) ? mxw_where(far, mxw_log_sum(a, mxw_all(0.0f), 1.0f), y) : y;
}
MX_INLINE mxw_f32 mxw_arcsinh(mxw_f32 x)
{
    mxw_f32 one = mxw_all(1.0f), a = mxw_abs(x), z = mxw_mul(a, a), hi = mxw_max(one, z), w = mxw_add(one, z);
    mxw_f32 lost = mxw_add(mxw_sub(mxw_min(one, z), mxw_sub(w, hi)), mxw_fms(a, a, z));
    return mxw_signed(mxw_log_with_root(a, w, lost, 0), x);
}
MX_INLINE mxw_f32 mxw_arccosh(mxw_f32 x)
{
    mxw_f32 one = mxw_all(1.0f), z = mxw_mul(x, x), w = mxw_sub(z, one);
    mxw_f32 lost = mxw_add(mxw_sub(mxw_sub(z, w), one), mxw_fms(x, x, z));
    return mxw_where(mxw_less(x, one), mxw_all(MX_NAN_F32), mxw_log_with_root(x, w, lost, 1));
}
/* 1/2 log(2^k (1 + s) / (1 - s)) = k log(2) / 2 + atanh(s); k from a rough quotient, 0 below 1/4, where s is a.  The quotient
 * s of (1 + a) - 2^k (1 - a) is made of a or, above 1/2, of 1 - a, which are exact. */
MX_INLINE mxw_f32 mxw_arctanh(mxw_f32 x)
{
    mxw_f32 one = mxw_all(1.0f), a = mxw_abs(x), less = mxw_sub(one, a);
    mxw_f32 k = mxw_exponent(mxw_mul(mxw_fma(a, mxw_all(1.2f), mxw_all(1.2f)), mxw_rcp14(less)));
    mxw_f32 p = mxw_scaled(one, k), up = mxw_add(one, p), down = mxw_sub(one, p);
    mxw_mask far = mxw_less(mxw_all(0.5f), a);
    mxw_f32 from = mxw_where(far, mxw_sub(a, one), a), two = mxw_all(2.0f);
    mxw_f32 s = mxw_div(mxw_fma(from, up, mxw_where(far, two, down)), mxw_fma(from, down, mxw_where(far, two, up)));
    mxw_f32 z = mxw_mul(s, s);
    mxw_f32 q = mxw_fma(z, mxw_all(1.4003274e-01f), mxw_all(1.4001541e-01f));
    q = mxw_fma(z, mxw_fma(z, q, mxw_all(2.0010717e-01f)), mxw_all(3.333321e-01f));
    mxw_f32 hi = mxw_mul(k, mxw_all(0.3465728759765625f)), t = mxw_add(hi, s);
    mxw_f32 low = mxw_fma(k, mxw_all(0.71430341e-6f), mxw_mul(mxw_mul(s, z), q));
    mxw_f32 y = mxw_add(t, mxw_add(mxw_sub(s, mxw_sub(t, hi)), low));
    return mxw_signed(mxw_but_for(y, less, 0x03030522u), x);       /* inf at 1, NaN beyond */
}

MXW_LOOP_1(tanh)
#define MX_WIDE_tanh_f32 mxw_tanh_loop
MXW_LOOP_1(arctan)
#define MX_WIDE_arctan_f32 mxw_arctan_loop
MXW_LOOP_1(cbrt)
#define MX_WIDE_cbrt_f32 mxw_cbrt_loop
MXW_LOOP_1(log1p)
#define MX_WIDE_log1p_f32 mxw_log1p_loop
MXW_LOOP_1(log2)
#define MX_WIDE_log2_f32 mxw_log2_loop
MXW_LOOP_1(log10)
#define MX_WIDE_log10_f32 mxw_log10_loop
MXW_LOOP_1(arcsinh)
#define MX_WIDE_arcsinh_f32 mxw_arcsinh_loop
MXW_LOOP_1(arccosh)
#define MX_WIDE_arccosh_f32 mxw_arccosh_loop
MXW_LOOP_1(arctanh)
#define MX_WIDE_arctanh_f32 mxw_arctanh_loop

#endif
