/* mxop_wide_f32.h - float32 functions of a few AVX-512 vectors.  Included by mxop_wide.h.
 *
 * ULP 1.0 at most, as their fellows in mxop_math.h; special values are theirs, too. */
#ifndef MXOP_WIDE_F32_H
#define MXOP_WIDE_F32_H

/* ---- tables ------------------------------------------------------------------------------------------------------ */

/* From a table of its values at the middle of each half of a binade from 1/16 on, and of the coefficients of a polynomial there:
 * base + d P(d), d the distance from the middle; the first one's base is x itself. */
MX_INLINE mxw_real mxw_tanh(mxw_real x)
{
    mxw_real a = mxw_abs(x), c = mxw_min(mxw_all(9.25f), a);
    mxw_bits_ bits = mxw_i_max(mxw_bits(c), mxw_i_all(0x3d900000u));
    mxw_bits_ i = mxw_i_right(mxw_i_sub(bits, mxw_i_all(0x100000u)), 22);
    mxw_real d = mxw_sub(c, mxw_of_16(mxw_tanh_table[0], i));
    mxw_real base = mxw_of_16_or(a, mxw_i_more(bits, mxw_i_all(0x3dcfffffu)), mxw_tanh_table[1], i);
    mxw_real p = mxw_of_16(mxw_tanh_table[7], i);
    for (int k = 6; k >= 2; k--) p = mxw_fma(p, d, mxw_of_16(mxw_tanh_table[k], i));
    return mxw_with_sign(mxw_fma(p, d, base), x);
}

/* 2^3k 2^j m: the root of 2^j from a table, with what it lost; that of m from its first four bits and a polynomial. */
MX_INLINE mxw_real mxw_cbrt(mxw_real x)
{
    mxw_real m = mxw_mantissa(x), e = mxw_exponent(x), three = mxw_all(1.0f / 3), big = mxw_all(MX_ROUND_F32);
    mxw_real k = mxw_sub(mxw_fma(mxw_sub(e, mxw_all(1.0f)), three, big), big);
    mxw_bits_ j = mxw_bits(mxw_add(mxw_fnma(k, mxw_all(3.0f), e), big)), i = mxw_i_right(mxw_bits(m), 19);
    mxw_real t = mxw_fms(m, mxw_of_16(mxw_cbrt_table[0], i), mxw_all(1.0f));
    mxw_real q = mxw_mul(t, mxw_fma(t, mxw_fma(t, mxw_all(6.178085e-02f), mxw_all(-1.1114246e-01f)), mxw_all(3.333333e-01f)));
    mxw_real a = mxw_of_16(mxw_cbrt_table[1], i), b = mxw_of_16(mxw_cbrt_table[2], j), r = mxw_mul(a, b);
    mxw_real low = mxw_fma(a, mxw_of_16(mxw_cbrt_table[3], j), mxw_fms(a, b, r));
    return mxw_with_sign(mxw_scaled(mxw_add(r, mxw_fma(r, q, low)), k), x);
}

/* ---- logarithms -------------------------------------------------------------------------------------------------- */

/* x = 2^k m, 1 <= m < 2, and m = (1 + f) / inverse, with an inverse for each sixteenth of [1, 2): a logarithm is
 * k unit + table + log(1 + f), f from -1/32 to 1/16.  The last sixteenth counts as the first of the next binade, halved: so
 * nothing cancels next to 1, where inverse and table are exact.  What is no positive number comes out right by itself: m is NaN
 * below zero, k infinite at 0 and inf. */
MX_INLINE mxw_real mxw_log_inverse(mxw_bits_ i) { return mxw_of_16(mxw_log_table[0], i); }
MX_INLINE mxw_bits_ mxw_log_interval(mxw_real m) { return mxw_i_right(mxw_bits(m), 19); }

/* k unit + table[row], in two parts, of which the first is exact */
MX_INLINE mxw_real mxw_log_base(mxw_real k, mxw_bits_ i, int row, float unit)
{
    mxw_real t = mxw_of_16(mxw_log_table[row], i);
    return unit == 1.0f ? mxw_add(k, t) : mxw_fma(k, mxw_all(unit), t);
}
MX_INLINE mxw_real mxw_log_base_low(mxw_real k, mxw_bits_ i, int row, float unit)
{
    mxw_real t = mxw_of_16(mxw_log_table[row + 1], i);
    return unit == 0.0f ? t : mxw_fma(k, mxw_all(unit), t);
}
/* a + b f + c f^2 + d f^3 */
MX_INLINE mxw_real mxw_cubic(mxw_real f, float a, float b, float c, float d)
{
    return mxw_fma(f, mxw_fma(f, mxw_fma(f, mxw_all(d), mxw_all(c)), mxw_all(b)), mxw_all(a));
}
MX_INLINE mxw_real mxw_log2(mxw_real x)
{
    mxw_real m = mxw_mantissa_or_nan(x), k = mxw_exponent(x);
    mxw_bits_ i = mxw_log_interval(m);
    mxw_real f = mxw_fms(m, mxw_log_inverse(i), mxw_all(1.0f));
    mxw_real q = mxw_cubic(f, -7.213475e-01f, 4.8091406e-01f, -3.60787e-01f, 2.7229828e-01f);
    mxw_real low = mxw_fma(f, mxw_fma(f, q, mxw_all(1.925963e-08f)), mxw_log_base_low(k, i, 3, 0.0f));
    return mxw_add(mxw_log_base(k, i, 3, 1.0f), mxw_fma(f, mxw_all(0x1.715476p0f), low));
}
MX_INLINE mxw_real mxw_log_low(mxw_real k, mxw_bits_ i) { return mxw_log_base_low(k, i, 1, 1.4286068e-06f); }
typedef struct { mxw_real hi, lo; } mxw_sum;
/* k log(2) + table + log(1 + f), where `low` is what the first two are more than their first parts, and what f lacks */
MX_INLINE mxw_sum mxw_log_parts(mxw_real k, mxw_bits_ i, mxw_real f, mxw_real low)
{
    mxw_real q = mxw_cubic(f, -5.e-01f, 3.333443e-01f, -2.5007278e-01f, 1.8865344e-01f);
    mxw_real base = mxw_log_base(k, i, 1, 0.693145751953125f);
    mxw_sum v;
    v.hi = mxw_add(base, f);
    v.lo = mxw_fma(f, mxw_mul(f, q), mxw_add(low, mxw_sub(f, mxw_sub(v.hi, base))));
    return v;
}
MX_INLINE mxw_real mxw_log_of(mxw_real k, mxw_bits_ i, mxw_real f, mxw_real low)
{
    mxw_sum v = mxw_log_parts(k, i, f, low);
    return mxw_add(v.hi, v.lo);
}
MX_INLINE mxw_real mxw_log(mxw_real x)
{
    mxw_real m = mxw_mantissa_or_nan(x), k = mxw_exponent(x);
    mxw_bits_ i = mxw_log_interval(m);
    mxw_real f = mxw_fms(m, mxw_log_inverse(i), mxw_all(1.0f));
    return mxw_but_for(mxw_log_of(k, i, f, mxw_log_low(k, i)), x, 0x00500400u);
}
MX_INLINE mxw_real mxw_log10(mxw_real x)
{
    mxw_real m = mxw_mantissa_or_nan(x), k = mxw_exponent(x);
    mxw_bits_ i = mxw_log_interval(m);
    mxw_real f = mxw_fms(m, mxw_log_inverse(i), mxw_all(1.0f));
    mxw_real q = mxw_cubic(f, -2.1714725e-01f, 1.4476968e-01f, -1.0860114e-01f, 8.186108e-02f);
    mxw_real low = mxw_fma(f, mxw_fma(f, q, mxw_all(-1.010305e-08f)), mxw_log_base_low(k, i, 5, 4.605039e-06f));
    return mxw_add(mxw_log_base(k, i, 5, 0x1.344p-2f), mxw_fma(f, mxw_all(0x1.bcb7b2p-2f), low));
}
/* log(2^more (u + c)) for a c that is no more than what u lost to rounding */
MX_INLINE mxw_sum mxw_log_sum_parts(mxw_real u, mxw_real c, float more)
{
    mxw_real m = mxw_mantissa_or_nan(u), k = mxw_exponent(u);
    mxw_bits_ i = mxw_log_interval(m);
    mxw_real inverse = mxw_log_inverse(i), f = mxw_fms(m, inverse, mxw_all(1.0f));
    c = mxw_mul(mxw_scaled_known(c, mxw_sub(mxw_all(0.0f), k)), inverse);
    if (more != 0.0f) k = mxw_add(k, mxw_all(more));
    return mxw_log_parts(k, i, f, mxw_add(mxw_log_low(k, i), mxw_fnma(c, f, c)));
}
MX_INLINE mxw_real mxw_log_sum(mxw_real u, mxw_real c, float more)
{
    mxw_sum v = mxw_log_sum_parts(u, c, more);
    return mxw_but_for(mxw_add(v.hi, v.lo), u, 0x00500400u);
}
/* of 1 + x and what that loses */
MX_INLINE mxw_real mxw_log1p(mxw_real x)
{
    mxw_real one = mxw_all(1.0f), hi = mxw_max(one, x), lo = mxw_min(one, x), u = mxw_add(hi, lo);
    return mxw_with_sign(mxw_log_sum(u, mxw_sub(lo, mxw_sub(u, hi)), 0.0f), x);
}

/* log(a + r), r the root of w + lost.  Where r is `less` than a, a rough root and what that lacks to first order do; elsewhere
 * the sum may be next to 1, whose logarithm takes a better one. */
MX_INLINE mxw_real mxw_log_with_root(mxw_real a, mxw_real w, mxw_real lost, int less)
{
    mxw_real over = mxw_rsqrt14(w), h = mxw_mul(over, mxw_all(0.5f)), r = mxw_mul(w, over);
    if (!less) r = mxw_fma(mxw_fnma(r, r, w), h, r);
    mxw_real low = mxw_mul(mxw_add(mxw_fnma(r, r, w), lost), h);
    mxw_real u = mxw_add(a, r), top = less ? a : r, other = less ? r : a, c = mxw_add(mxw_sub(other, mxw_sub(u, top)), low);
    mxw_bits_ i = mxw_log_interval(u);
    mxw_real k = mxw_exponent(u), inverse = mxw_scaled(mxw_log_inverse(i), mxw_sub(mxw_all(0.0f), k));
    mxw_real first = mxw_fms(u, inverse, mxw_all(1.0f)), f = mxw_fma(c, inverse, first);
    return mxw_log_of(k, i, f, mxw_add(mxw_log_low(k, i), mxw_fma(c, inverse, mxw_sub(first, f))));
}
/* ... above 2^40, where squares may overflow, it is log(2 a) */
MX_INLINE mxw_real mxw_log_twice(mxw_real a) { return mxw_log_sum(a, mxw_all(0.0f), 1.0f); }
MX_INLINE mxw_real mxw_arcsinh(mxw_real x)
{
    mxw_real one = mxw_all(1.0f), a = mxw_abs(x), z = mxw_mul(a, a), hi = mxw_max(one, z), w = mxw_add(one, z);
    mxw_real lost = mxw_add(mxw_sub(mxw_min(one, z), mxw_sub(w, hi)), mxw_fms(a, a, z));
    mxw_real y = mxw_log_with_root(a, w, lost, 0);
    mxw_mask far = mxw_not_within(a, mxw_all(0x1p40f));
    return mxw_with_sign(mxw_any(far) ? mxw_where(far, mxw_log_twice(a), y) : y, x);
}
/* With t = x - 1 the square is t^2 + 2t less 1; what that loses to rounding counts up to 3, where 2t - w is exact. */
MX_INLINE mxw_real mxw_arccosh(mxw_real x)
{
    mxw_real one = mxw_all(1.0f), far = mxw_all(0x1p40f), t = mxw_sub(x, one), twice = mxw_add(t, t), w = mxw_fma(t, t, twice);
    mxw_real y = mxw_log_with_root(x, w, mxw_fma(t, t, mxw_sub(twice, w)), 1);
    mxw_mask other = mxw_not(mxw_and(mxw_less(one, x), mxw_less(x, far)));
    if (!mxw_any(other)) return y;
    y = mxw_where(other, mxw_log_twice(x), y);
    return mxw_where(mxw_less(one, x), y, mxw_where(mxw_equal(x, one), mxw_all(0.0f), mxw_all(MX_NAN_F32)));
}

/* ---- sines and tangents ------------------------------------------------------------------------------------------ */

/* Elements whose angle is too large, one by one. */
static MX_NOINLINE mxw_real mxw_one_by_one(float (*f)(float), mxw_real x, mxw_real y, mxw_mask far)
{
    float from[MXW_LANES], to[MXW_LANES];
    mxw_write(from, x, MXW_LANES);
    mxw_write(to, y, MXW_LANES);
    for (int i = 0; i < MXW_LANES; i++)
        if (far.v[i / 16] >> (i % 16) & 1) to[i] = f(from[i]);
    return mxw_read(to, MXW_LANES);
}

/* x = n pi/32 + d - more: n times the first two parts of pi/32 are subtracted without an error.  A table has, for each n up to 16,
 * tan(n pi/32) in two parts and a polynomial: tan(x) = base + d + d P(d), from -pi/4 to pi/4, where base and d are added without
 * an error, too.  Beyond, that is turned over, with the other sign: by a rough reciprocal, corrected once.  Whole numbers from
 * -2^20 to 2^20 leave the first 11 bits of `big` alone, and its last one says how often pi/4 was passed.  What is too much is
 * +0 where x is 0, so -0 stays. */
MX_INLINE mxw_real mxw_tan(mxw_real x)
{
    mxw_real big = mxw_all(0x1.a0001p23f), t = mxw_fma(x, mxw_all(0x1.45f306p3f), big), n = mxw_sub(t, big);
    mxw_real from = mxw_fnma(n, mxw_all(0x1.921fb4p-4f), x), unit = mxw_all(0x1.4442d2p-28f), d = mxw_sub(from, mxw_mul(n, unit));
    mxw_bits_ i = mxw_bits(t);
    mxw_real base = mxw_of_16(mxw_tan_table[0], i), s = mxw_add(base, d);
    mxw_real more = mxw_fma(n, mxw_all(-0x1.ee59dap-54f), mxw_sub(mxw_fma(n, unit, mxw_sub(d, from)), mxw_of_16(mxw_tan_table[1], i)));
    mxw_real p = mxw_of_16(mxw_tan_table[6], i);
    for (int k = 5; k >= 2; k--) p = mxw_fma(p, d, mxw_of_16(mxw_tan_table[k], i));
    more = mxw_fnma(d, p, mxw_add(more, mxw_sub(mxw_sub(s, base), d)));
    mxw_real y = mxw_sub(s, more), rough = mxw_rcp14(y);
    mxw_real turned = mxw_fnms(rough, mxw_fma(rough, more, mxw_fnma(rough, s, mxw_all(1.0f))), rough);
    y = mxw_where(mxw_i_any(i, mxw_i_all(16)), turned, y);
    if (!mxw_i_any_other(i, 0x4b400000u, 0xffe00000u)) return y;
    return mxw_one_by_one(mx_tan_f32, x, y, mxw_i_any(mxw_i_sub(i, mxw_i_all(0x4b400000u)), mxw_i_all(0xffe00000u)));
}

/* ---- exponentials ------------------------------------------------------------------------------------------------ */

/* e^r - 1 and s = 2^n for x = n log(2) + r, n in sixteenths: the one nearest to a number that is nearer to 0 than x / log(2), so that
 * next to 0 little cancels.  What the table of s lost is in r; next to the largest results, n stays where s does not overflow. */
MX_INLINE mxw_real mxw_expm1_parts(mxw_real x, mxw_real *s, int far)
{
    mxw_real big = mxw_all(0x1.8p19f), t = mxw_fma(mxw_sub(x, mxw_limited(x, mxw_all(6.3e-3f))), mxw_all(1.44269504f), big);
    if (far) t = mxw_min(mxw_all(0x1.8p19f + 127.9375f), t);
    mxw_real n = mxw_sub(t, big), whole = mxw_fnma(n, mxw_all(0.693145751953125f), x);
    mxw_real rest = mxw_fnma(n, mxw_all(1.42860682e-6f), mxw_of_16(mxw_expm1_table[1], mxw_bits(t)));
    mxw_real r = mxw_add(whole, rest), lost = mxw_add(mxw_sub(whole, r), rest);
    mxw_real q = mxw_fma(r, mxw_fma(r, mxw_all(4.1666668e-02f), mxw_all(1.6666667e-01f)), mxw_all(0.5f));
    *s = mxw_scaled(mxw_of_16(mxw_expm1_table[0], mxw_bits(t)), n);
    return mxw_add(r, mxw_fma(mxw_mul(r, r), q, lost));
}
static MX_NOINLINE mxw_real mxw_expm1_far(mxw_real x)
{
    mxw_real s, p = mxw_expm1_parts(mxw_min(mxw_all(89.0f), x), &s, 1);
    return mxw_add(s, mxw_fma(s, p, mxw_all(-1.0f)));
}
MX_INLINE mxw_real mxw_expm1(mxw_real x)
{
    mxw_real s, p = mxw_expm1_parts(mxw_max(mxw_all(-20.0f), x), &s, 0);
    mxw_real y = mxw_with_sign(mxw_fma(s, p, mxw_sub(s, mxw_all(1.0f))), x);
    mxw_mask far = mxw_less(mxw_all(16.0f), x);
    return mxw_any(far) ? mxw_where(far, mxw_expm1_far(x), y) : y;
}
/* cosh or sinh of a = log(s) + r, twice (up + down) cosh r + (up - down) sinh r or the other way round, by up = s / 4 and
 * down = 1 / 4 s, which are made of a table of numbers next to 2^(n/16) by adding to their exponents.  NaN goes through r, which is
 * not halved: it may be denormal. */
MX_INLINE mxw_real mxw_hyperbolic(mxw_real a, int odd)
{
    a = mxw_min(mxw_all(89.7f), a);
    mxw_real big = mxw_all(MX_ROUND_F32), t = mxw_fma(a, mxw_all(2.30831206e1f), big), n = mxw_sub(t, big), two = mxw_all(2.0f);
    mxw_bits_ i = mxw_bits(t), exponent = mxw_i_left(i, 19);       /* and 19 bits further down, which the table has less */
    mxw_real rest = mxw_fnma(n, mxw_all(8.92875426e-8f), mxw_of_16(mxw_hyperbolic_rest, i));
    mxw_real r = mxw_add(mxw_fnma(n, mxw_all(0x1.62e4p-5f), a), rest), z = mxw_mul(r, r);
    mxw_real sinh3 = mxw_all(3.333398e-01f), cosh2 = mxw_mul(z, mxw_all(1.0000324f));
    mxw_real up = mxw_number(mxw_i_add(mxw_i_of_16(mxw_hyperbolic_table[0], i), exponent));
    mxw_real down = mxw_number(mxw_i_less(mxw_i_of_16(mxw_hyperbolic_table[1], i), exponent));
    mxw_real plus = mxw_add(up, down), minus = mxw_sub(up, down);
    if (!odd) {
        mxw_real low = mxw_fma(minus, mxw_mul(r, mxw_fma(z, sinh3, two)), mxw_mul(plus, cosh2));
        return mxw_fma(up, two, mxw_fma(down, two, low));
    }
    mxw_real lost = mxw_sub(mxw_sub(up, minus), down), low = mxw_fma(minus, cosh2, mxw_add(lost, lost));
    low = mxw_fma(plus, mxw_mul(r, mxw_mul(z, sinh3)), low);
    return mxw_fma(minus, two, mxw_fma(plus, mxw_add(r, r), low));
}
MX_INLINE mxw_real mxw_cosh(mxw_real x) { return mxw_hyperbolic(mxw_abs(x), 0); }
MX_INLINE mxw_real mxw_sinh(mxw_real x) { return mxw_with_sign(mxw_hyperbolic(mxw_abs(x), 1), x); }

/* |x|, but `far` where e^-|x| or e^(-x^2 / 2) counts for nothing, above that or below `least`, where all is 0. */
MX_INLINE mxw_real mxw_counted(mxw_real x, float far, float least, mxw_mask *some)
{
    mxw_mask none = mxw_less(x, mxw_all(least));
    *some = mxw_not(none);
    return mxw_where(mxw_or(none, mxw_less(mxw_all(far), x)), mxw_all(far), mxw_abs(x));
}
/* a 2^n; what is less than a normal number is counted in units, for the processor takes long to make it. */
MX_INLINE mxw_real mxw_scaled_to_units(mxw_real a, mxw_real n)
{
    mxw_real units = mxw_abs(mxw_scaled(a, mxw_add(n, mxw_all(149.0f))));
    mxw_mask normal = mxw_not(mxw_less(units, mxw_all(0x1p23f)));
    return mxw_where(normal, mxw_scaled_where(normal, a, n), mxw_with_sign(mxw_number(mxw_i_nearest(units)), a));
}

/* ---- powers ------------------------------------------------------------------------------------------------------ */

/* y log2|x| as a sum, with 34 bits: 1 / m from a table is short, and f = m / m' - 1, f^2 / 2 and the products with y and
 * 1 / log(2) are held in two parts. */
MX_INLINE mxw_sum mxw_log2_times(mxw_real x, mxw_real y)
{
    mxw_real m = mxw_mantissa(x), k = mxw_exponent(x), one = mxw_all(1.0f), half = mxw_all(0.5f), unit = mxw_all(0x1.715476p0f);
    mxw_bits_ i = mxw_i_right(mxw_bits(m), 18);
    mxw_real inverse = mxw_of_32(mxw_log2_table[0], i), p = mxw_mul(m, inverse), f = mxw_sub(p, one), fl = mxw_fms(m, inverse, p);
    mxw_real h = mxw_mul(half, f), g = mxw_fnma(h, f, f), gl = mxw_fnma(h, f, mxw_sub(f, g));
    gl = mxw_add(gl, mxw_fnma(f, fl, fl));
    mxw_real q = mxw_cubic(f, 4.8089835e-01f, -3.6067587e-01f, 2.885506e-01f, -2.32576e-01f);
    mxw_real base = mxw_add(k, mxw_of_32(mxw_log2_table[1], i)), l = mxw_fma(g, unit, base);
    mxw_real ll = mxw_fma(gl, unit, mxw_fma(g, mxw_all(1.925963e-08f), mxw_fms(g, unit, mxw_sub(l, base))));
    ll = mxw_add(ll, mxw_fma(mxw_mul(mxw_mul(f, f), f), q, mxw_of_32(mxw_log2_table[2], i)));
    mxw_sum v;
    v.hi = mxw_mul(y, l);
    v.lo = mxw_fma(y, ll, mxw_fms(y, l, v.hi));
    return v;
}
/* 2^v, by sixteenths of a binade, as t (1 + more) 2^n with t of a table; the second part of v may be a thousandth of the first. */
MX_INLINE mxw_real mxw_exp2_parts(mxw_sum v, mxw_real *more, mxw_real *n)
{
    mxw_real big = mxw_all(0x1.8p19f), t = mxw_add(mxw_add(v.hi, v.lo), big);
    *n = mxw_sub(t, big);
    mxw_real r = mxw_add(mxw_sub(v.hi, *n), v.lo), lost = mxw_of_16(mxw_exp2_table[1], mxw_bits(t));
    mxw_real q = mxw_fma(r, mxw_fma(r, mxw_all(5.5502374e-02f), mxw_all(2.4023429e-01f)), mxw_all(6.931472e-01f));
    *more = mxw_fma(r, q, lost);
    return mxw_of_16(mxw_exp2_table[0], mxw_bits(t));
}
MX_INLINE mxw_real mxw_exp2_sum(mxw_sum v)
{
    mxw_real more, n, c = mxw_limited(v.hi, mxw_all(200.0f));
    v.lo = mxw_or_zero(mxw_equal(c, v.hi), v.lo), v.hi = c;
    mxw_real t = mxw_exp2_parts(v, &more, &n);
    return mxw_scaled_where(mxw_not(mxw_less(c, mxw_all(-150.0f))), mxw_fma(t, more, t), n);     /* as in mxw_exp */
}
MX_INLINE mxw_real mxw_pow(mxw_real x, mxw_real y)
{
    mxw_real r = mxw_exp2_sum(mxw_log2_times(x, y));
    mxw_mask other = mxw_or(mxw_not_positive(x), mxw_not_finite(y));
    other = mxw_or(other, mxw_i_none(mxw_i_sub(mxw_bits(y), mxw_i_all(0x3f800000u)), mxw_i_all(0xff3fffffu)));  /* 1, 1.5, 2, 3 */
    return mxw_any(other) ? mxw_pow_cases(x, y, r) : r;
}

/* ---- the normal distribution ----------------------------------------------------------------------------------------- */

/* Phi(-a), or -a Phi(-a), of a >= 0: e^(-a^2 / 2) as a power of 2, times e^(a^2 / 2) Phi(-a) by fourths of the binades of 1 + a.
 * Both are a number from a table and a little more, so that the product of these two, which has two parts, is nearly all. */
MX_INLINE mxw_real mxw_normal_tail_by(mxw_real a, int times, int far)
{
    mxw_real unit = mxw_all(-0x1.715476p-1f);
    mxw_bits_ i = mxw_i_right(mxw_bits(mxw_add(a, mxw_all(1.0f))), 21);
    mxw_sum v;
    mxw_real square = mxw_mul(a, a);
    v.hi = mxw_mul(square, unit);
    v.lo = mxw_fma(square, mxw_all(-9.629815e-09f), mxw_fms(square, unit, v.hi));
    v.lo = mxw_fma(mxw_fms(a, a, square), unit, v.lo);
    mxw_real more, n, power = mxw_exp2_parts(v, &more, &n);
    mxw_real d = mxw_sub(a, mxw_of_16(mxw_normal_table[0], i)), p = mxw_of_16(mxw_normal_table[7], i);
    for (int k = 6; k >= 2; k--) p = mxw_fma(p, d, mxw_of_16(mxw_normal_table[k], i));
    mxw_real base = mxw_of_16(mxw_normal_table[1], i), h = mxw_mul(power, base), l = mxw_fms(power, base, h);
    if (times) {
        mxw_real minus = mxw_sub(mxw_all(0.0f), a), whole = mxw_mul(minus, h);
        l = mxw_fma(minus, l, mxw_fms(minus, h, whole)), h = whole;
    }
    more = mxw_fma(p, mxw_fma(d, more, d), more);       /* (1 + more) (1 + p d) - 1 */
    h = mxw_add(h, mxw_fma(h, more, l));
    return far ? mxw_scaled_to_units(h, n) : mxw_scaled(h, n);
}
MX_INLINE mxw_real mxw_normal_tail_far(mxw_real x, int times)
{
    mxw_mask some;
    mxw_real a = mxw_counted(x, 12.5f, -14.5f, &some);
    return mxw_or_zero(some, mxw_normal_tail_by(a, times, 1));
}
MX_INLINE mxw_real mxw_normal_tail(mxw_real x, int times)
{
    mxw_real a = mxw_abs(x);
    return mxw_any(mxw_less(mxw_all(12.5f), a)) ? mxw_normal_tail_far(x, times) : mxw_normal_tail_by(a, times, 0);
}
MX_INLINE mxw_real mxw_normcdf(mxw_real x)
{
    mxw_real tail = mxw_normal_tail(x, 0);
    return mxw_where(mxw_less(mxw_all(0.0f), x), mxw_sub(mxw_all(1.0f), tail), tail);
}
/* x Phi(x), that is NaN at -inf */
MX_INLINE mxw_real mxw_gelu(mxw_real x)
{
    mxw_real y = mxw_add(mxw_max(mxw_all(0.0f), x), mxw_normal_tail(x, 1));
    return mxw_but_for(mxw_with_sign(y, x), x, 0x00030000u);
}

MXW_LOOP_1(mxw, float, tanh)
MXW_LOOP_1(mxw, float, normcdf)
MXW_LOOP_1(mxw, float, gelu)
MXW_LOOP_1(mxw, float, cbrt)
MXW_LOOP_1(mxw, float, log1p)
MXW_LOOP_1(mxw, float, log)
MXW_LOOP_1(mxw, float, log2)
MXW_LOOP_1(mxw, float, log10)
MXW_LOOP_1(mxw, float, arcsinh)
MXW_LOOP_1(mxw, float, arccosh)
MXW_LOOP_1(mxw, float, tan)
MXW_LOOP_2(mxw, float, pow)
MXW_LOOP_1(mxw, float, expm1)
MXW_LOOP_1(mxw, float, sinh)
MXW_LOOP_1(mxw, float, cosh)

#endif
