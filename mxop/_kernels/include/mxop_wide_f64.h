/* mxop_wide_f64.h - float64 functions of a few AVX-512 vectors, built as their float32 fellows are (mxop_wide_f32.h).  Included
 * by mxop_wide.h.  ULP 2 at most. */
#ifndef MXOP_WIDE_F64_H
#define MXOP_WIDE_F64_H

#define MXD_LN2_HI 0x1.62e42fefap-1
#define MXD_LN2_LO 0x1.cf79abc9e3b3ap-40

MX_INLINE mxd_real mxd_cbrt(mxd_real x)
{
    mxd_real m = mxd_mantissa(x), e = mxd_exponent(x), three = mxd_all(1.0 / 3), big = mxd_all(MX_ROUND_F64);
    mxd_real k = mxd_sub(mxd_fma(mxd_sub(e, mxd_all(1.0)), three, big), big);
    mxd_bits_ j = mxd_bits(mxd_add(mxd_fnma(k, mxd_all(3.0), e), big)), i = mxd_i_right(mxd_bits(m), 48);
    mxd_real t = mxd_fms(m, mxd_of_16(mxd_cbrt_table[0], i), mxd_all(1.0));
    mxd_real q = mxd_fma(t, mxd_all(-1.58635478020947296e-02), mxd_all(1.90292293998469662e-02));
    q = mxd_fma(t, mxd_fma(t, q, mxd_all(-2.34720061634212003e-02)), mxd_all(3.01783070057676586e-02));
    q = mxd_fma(t, mxd_fma(t, q, mxd_all(-4.11522633834235374e-02)), mxd_all(6.17283950667437201e-02));
    q = mxd_mul(t, mxd_fma(t, mxd_fma(t, q, mxd_all(-1.11111111111110120e-01)), mxd_all(3.33333333333332982e-01)));
    mxd_real a = mxd_of_16(mxd_cbrt_table[1], i), b = mxd_of_16(mxd_cbrt_table[2], j), r = mxd_mul(a, b);
    mxd_real low = mxd_fma(a, mxd_of_16(mxd_cbrt_table[3], j), mxd_fms(a, b, r));
    return mxd_with_sign(mxd_scaled(mxd_add(r, mxd_fma(r, q, low)), k), x);
}

/* A root within a unit or two and half of its inverse, from estimates that two steps make better. */
MX_INLINE mxd_real mxd_near_root(mxd_real x, mxd_real *h)
{
    mxd_real half = mxd_all(0.5), over = mxd_rsqrt14(x), r = mxd_mul(x, over);
    *h = mxd_mul(over, half);
    for (int step = 0; step < 2; step++) {
        mxd_real more = mxd_fnma(r, *h, half);
        r = mxd_fma(r, more, r), *h = mxd_fma(*h, more, *h);
    }
    return r;
}

/* x = 2^k m and f = m times the inverse of interval i, less 1, as in mxop_wide_f32.h */
MX_INLINE mxd_real mxd_log_split(mxd_real x, mxd_real *k, mxd_bits_ *i)
{
    mxd_real m = mxd_mantissa_or_nan(x);
    *k = mxd_exponent(x);
    *i = mxd_i_right(mxd_bits(m), 48);
    return mxd_fms(m, mxd_of_16(mxd_log_table[0], *i), mxd_all(1.0));
}
/* (log(1 + f) - f) / f^2, in other units */
MX_INLINE mxd_real mxd_log_rest(mxd_real f, mxd_real f2, double unit)
{
    mxd_real a = mxd_fma(f, mxd_all(unit * 3.33333333333476090e-01), mxd_all(unit * -5.00000000000000333e-01));
    mxd_real b = mxd_fma(f, mxd_all(unit * 1.99999999270961099e-01), mxd_all(unit * -2.49999999998112343e-01));
    mxd_real d = mxd_fma(f, mxd_all(unit * 1.42858215293095031e-01), mxd_all(unit * -1.66666662381869640e-01));
    mxd_real q = mxd_fma(f, mxd_all(unit * -8.73757323011420395e-02), mxd_all(unit * 1.10703646720834228e-01));
    q = mxd_fma(f2, mxd_fma(f, q, mxd_all(unit * -1.25018394500582997e-01)), d);
    return mxd_fma(f2, mxd_fma(f2, q, b), a);
}
MX_INLINE mxd_real mxd_log(mxd_real x)
{
    mxd_bits_ i;
    mxd_real k, f = mxd_log_split(x, &k, &i), f2 = mxd_mul(f, f);
    mxd_real base = mxd_fma(k, mxd_all(MXD_LN2_HI), mxd_of_16(mxd_log_table[1], i));
    mxd_real low = mxd_fma(k, mxd_all(MXD_LN2_LO), mxd_of_16(mxd_log_table[2], i));
    return mxd_add(base, mxd_add(f, mxd_fma(f2, mxd_log_rest(f, f2, 1.0), low)));
}
/* The unit of another base in two parts, as that of k: table[row] and the next one have the logarithms of the intervals. */
MX_INLINE mxd_real mxd_log_to_base(mxd_real x, int row, double unit, double unit_low, double step, double step_low)
{
    mxd_bits_ i;
    mxd_real k, f = mxd_log_split(x, &k, &i), f2 = mxd_mul(f, f), t = mxd_of_16(mxd_log_table[row], i);
    mxd_real base = step == 1.0 ? mxd_add(k, t) : mxd_fma(k, mxd_all(step), t), low = mxd_of_16(mxd_log_table[row + 1], i);
    if (step_low != 0.0) low = mxd_fma(k, mxd_all(step_low), low);
    low = mxd_fma(f2, mxd_log_rest(f, f2, unit), mxd_fma(f, mxd_all(unit_low), low));
    return mxd_add(base, mxd_fma(f, mxd_all(unit), low));
}
MX_INLINE mxd_real mxd_log2(mxd_real x)
{
    return mxd_log_to_base(x, 3, 0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56, 1.0, 0.0);
}
MX_INLINE mxd_real mxd_log10(mxd_real x)
{
    return mxd_log_to_base(x, 5, 0x1.bcb7b1526e50ep-2, 0x1.95355baaafad3p-57, 0x1.34413509f4000p-2, 0x1.cff7988f8959bp-41);
}
/* log(2^more (u + c)) for a c that is small beside u */
MX_INLINE mxd_real mxd_log_sum(mxd_real u, mxd_real c, double more)
{
    mxd_bits_ i;
    mxd_real k, first = mxd_log_split(u, &k, &i);
    c = mxd_mul(mxd_scaled_known(c, mxd_sub(mxd_all(0.0), k)), mxd_of_16(mxd_log_table[0], i));
    mxd_real f = mxd_add(first, c), lost = mxd_sub(c, mxd_sub(f, first)), f2 = mxd_mul(f, f);
    if (more != 0.0) k = mxd_add(k, mxd_all(more));
    mxd_real low = mxd_fma(k, mxd_all(MXD_LN2_LO), mxd_of_16(mxd_log_table[2], i));
    low = mxd_add(low, mxd_fnma(lost, f, lost));
    mxd_real base = mxd_fma(k, mxd_all(MXD_LN2_HI), mxd_of_16(mxd_log_table[1], i));
    mxd_real s = mxd_add(base, mxd_add(f, mxd_fma(f2, mxd_log_rest(f, f2, 1.0), low)));
    return mxd_but_for(s, u, 0x00500400u);
}
MX_INLINE mxd_real mxd_log1p(mxd_real x)
{
    mxd_real one = mxd_all(1.0), hi = mxd_max(one, x), lo = mxd_min(one, x), u = mxd_add(hi, lo);
    return mxd_with_sign(mxd_log_sum(u, mxd_sub(lo, mxd_sub(u, hi)), 0.0), x);
}
/* log(a + r), r the root of w + lost; above 2^300 that of 2 a. */
MX_INLINE mxd_real mxd_log_with_root(mxd_real a, mxd_real w, mxd_real lost)
{
    mxd_real h, r = mxd_near_root(w, &h), low = mxd_mul(mxd_add(mxd_fnma(r, r, w), lost), h);
    mxd_real u = mxd_add(a, r), y = mxd_log_sum(u, mxd_add(mxd_sub(a, mxd_sub(u, r)), low), 0.0);
    mxd_mask far = mxd_less(mxd_all(0x1p300), a);
    return mxd_any(far) ? mxd_where(far, mxd_log_sum(a, mxd_all(0.0), 1.0), y) : y;
}
/* Below 2^-7, where the correction by a rough root would count, it is a series. */
MX_INLINE mxd_real mxd_arcsinh(mxd_real x)
{
    mxd_real one = mxd_all(1.0), a = mxd_abs(x), z = mxd_mul(a, a), hi = mxd_max(one, z), w = mxd_add(one, z);
    mxd_real lost = mxd_add(mxd_sub(mxd_min(one, z), mxd_sub(w, hi)), mxd_fms(a, a, z));
    mxd_real y = mxd_log_with_root(a, w, lost);
    mxd_real p = mxd_fma(z, mxd_fma(z, mxd_all(-15.0 / 336), mxd_all(3.0 / 40)), mxd_all(-1.0 / 6));
    mxd_real small = mxd_fma(mxd_mul(a, z), p, a);
    return mxd_with_sign(mxd_where(mxd_less(a, mxd_all(0x1p-7)), small, y), x);
}

/* ---- powers ------------------------------------------------------------------------------------------------------ */

/* y log2|x| as a sum, with 63 bits. */
typedef struct { mxd_real hi, lo; } mxd_sum;
MX_INLINE mxd_sum mxd_log2_times(mxd_real x, mxd_real y)
{
    mxd_real m = mxd_mantissa(x), k = mxd_exponent(x), one = mxd_all(1.0), unit = mxd_all(0x1.71547652b82fep+0);
    mxd_bits_ i = mxd_i_right(mxd_bits(m), 47);
    mxd_real inverse = mxd_of_32(mxd_log2_table[0], i), p = mxd_mul(m, inverse), pl = mxd_fms(m, inverse, p);
    mxd_real first = mxd_sub(p, one), f = mxd_add(first, pl), fl = mxd_sub(pl, mxd_sub(f, first)), f2 = mxd_mul(f, f);
    mxd_real h = mxd_mul(mxd_all(0.5), f), g = mxd_fnma(h, f, f), gl = mxd_fnma(h, f, mxd_sub(f, g));
    gl = mxd_add(gl, mxd_fnma(f, fl, fl));
    mxd_real a = mxd_fma(f, mxd_all(-3.60673760222254447e-01), mxd_all(4.80898346962988776e-01));
    mxd_real b = mxd_fma(f, mxd_all(-2.40449172957894919e-01), mxd_all(2.88539008159510391e-01));
    mxd_real c = mxd_fma(f, mxd_all(-1.80341087536210254e-01), mxd_all(2.06099387980993365e-01));
    mxd_real q = mxd_fma(f, mxd_all(-1.35145803308563295e-01), mxd_all(1.60176151658074223e-01));
    q = mxd_fma(f2, mxd_fma(f2, mxd_fma(f2, q, c), b), a);
    mxd_real base = mxd_add(k, mxd_of_32(mxd_log2_table[1], i)), l = mxd_fma(g, unit, base);
    mxd_real ll = mxd_fma(g, mxd_all(0x1.777d0ffda0d24p-56), mxd_fms(g, unit, mxd_sub(l, base)));
    ll = mxd_fma(gl, unit, ll);
    ll = mxd_add(ll, mxd_fma(mxd_mul(f2, f), q, mxd_of_32(mxd_log2_table[2], i)));
    mxd_sum v;
    v.hi = mxd_mul(y, l);
    v.lo = mxd_fma(y, ll, mxd_fms(y, l, v.hi));
    return v;
}
/* 2^v, by sixteenths of a binade; the second part may be a thousandth of the first. */
MX_INLINE mxd_real mxd_exp2_sum(mxd_sum v)
{
    mxd_real c = mxd_limited(v.hi, mxd_all(1200.0)), big = mxd_all(0x1.8p48);
    mxd_real rest = mxd_or_zero(mxd_equal(c, v.hi), v.lo), t = mxd_add(mxd_add(c, rest), big), n = mxd_sub(t, big);
    mxd_real r = mxd_add(mxd_sub(c, n), rest);
    mxd_real root = mxd_of_16(mxd_exp2_table[0], mxd_bits(t)), low = mxd_of_16(mxd_exp2_table[1], mxd_bits(t));
    mxd_real q = mxd_fma(r, mxd_all(1.54038053736760868e-04), mxd_all(1.33338182811872162e-03));
    q = mxd_fma(r, mxd_fma(r, q, mxd_all(9.61812910585053624e-03)), mxd_all(5.55041086521669697e-02));
    q = mxd_fma(r, mxd_fma(r, q, mxd_all(2.40226506959101055e-01)), mxd_all(6.93147180559946841e-01));
    mxd_mask some = mxd_not(mxd_less(c, mxd_all(-1075.0)));
    return mxd_scaled_where(some, mxd_add(root, mxd_fma(mxd_mul(root, r), q, low)), n);
}
MX_INLINE mxd_real mxd_pow(mxd_real x, mxd_real y)
{
    mxd_real r = mxd_exp2_sum(mxd_log2_times(x, y));
    mxd_mask other = mxd_or(mxd_not_positive(x), mxd_not_finite(y));
    mxd_bits_ exact = mxd_i_sub(mxd_bits(y), mxd_i_all(0x3ff0000000000000u));           /* 1, 1.5, 2, 3 */
    other = mxd_or(other, mxd_i_none(exact, mxd_i_all(0xffe7ffffffffffffu)));
    return mxd_any(other) ? mxd_pow_cases(x, y, r) : r;
}

MXW_LOOP_1(mxd, double, cbrt)
MXW_LOOP_1(mxd, double, log)
MXW_LOOP_1(mxd, double, log2)
MXW_LOOP_1(mxd, double, log10)
MXW_LOOP_1(mxd, double, log1p)
MXW_LOOP_1(mxd, double, arcsinh)
MXW_LOOP_2(mxd, double, pow)

#endif
