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
/* As in mxop_wide_f32.h.  The numbers whose root is so close to the middle of two that this might round it wrongly are known:
 * tests/test_accuracy.py takes them. */
MX_INLINE mxd_real mxd_root_as(mxd_real x, int power)
{
    mxd_real h, r = mxd_near_root(x, &h), y = mxd_fma(h, mxd_fnma(r, r, x), r), inf = mxd_all((double)INFINITY);
    mxd_mask other = mxd_not(mxd_and(mxd_less(mxd_all(0x1p-900), x), mxd_less(x, inf)));
    if (!mxd_any(other)) return y;
    if (power) x = mxd_where(mxd_equal(x, mxd_sub(mxd_all(0.0), inf)), inf, mxd_add(x, mxd_all(0.0)));
    mxd_mask none = mxd_equal(x, mxd_all(0.0));
    return mxd_where(none, x, mxd_any(mxd_and(other, mxd_not(none))) ? mxd_where(other, mxd_sqrt(x), y) : y);
}
MX_INLINE mxd_real mxd_root(mxd_real x) { return mxd_root_as(x, 0); }
MX_INLINE mxd_real mxd_half_power(mxd_real x) { return mxd_root_as(x, 1); }

/* As in mxop_wide_f32.h, with one step more. */
MX_INLINE mxd_real mxd_rsqrt(mxd_real x)
{
    mxd_real one = mxd_all(1.0), half = mxd_all(0.5), over = mxd_rsqrt14(x), e = mxd_fnma(mxd_mul(x, over), over, one);
    over = mxd_fma(mxd_mul(over, e), mxd_fma(e, mxd_all(0.375), half), over);
    mxd_real r = mxd_mul(x, over), lost = mxd_fms(x, over, r);
    mxd_real y = mxd_fma(mxd_mul(over, half), mxd_fnma(lost, over, mxd_fnma(r, over, one)), over);
    return mxd_but_for(y, x, 0x00800600u);
}
MX_INLINE mxd_real mxd_nearly_inverse(mxd_real a)
{
    mxd_real one = mxd_all(1.0), y = mxd_rcp14(a), e = mxd_fnma(y, a, one);
    y = mxd_fma(y, mxd_fma(e, e, e), y);
    return mxd_fma_up(y, mxd_fnma(y, a, one), y);
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

/* ---- as in mxop_math_f64.h and mxop_math_f64_trig.h ----------------------------------------------------------------- */

MX_INLINE mxd_real mxd_tanh(mxd_real x)
{
    mxd_real a = mxd_abs(x), big = mxd_all(MX_ROUND_F64 + 1023.0), one = mxd_all(1.0);
    mxd_real c = mxd_min(mxd_all(40.0), mxd_add(a, a)), t = mxd_fma(c, mxd_all(1.4426950408889634), big), n = mxd_sub(t, big);
    mxd_real whole = mxd_fnma(n, mxd_all(MXD_LN2_HI), c), low = mxd_all(MXD_LN2_LO), r = mxd_fnma(n, low, whole);
    mxd_real lost = mxd_fnma(n, low, mxd_sub(whole, r)), s = mxd_number(mxd_i_left(mxd_bits(t), 52)), z = mxd_mul(r, r);
    mxd_real p = mxd_fma(r, mxd_all(1.66666666666666685e-01), mxd_all(5.00000000000000111e-01));
    mxd_real q = mxd_fma(r, mxd_all(8.33333333333003898e-03), mxd_all(4.16666666666238236e-02));
    mxd_real o = mxd_fma(r, mxd_all(1.98412698631715573e-04), mxd_all(1.38888889173670814e-03));
    mxd_real h = mxd_fma(r, mxd_all(2.75572682769056960e-06), mxd_all(2.48015210578682038e-05));
    mxd_real g = mxd_fma(r, mxd_all(2.51004725056949961e-08), mxd_all(2.76202015910315469e-07));
    p = mxd_fma(z, mxd_fma(z, mxd_fma(z, mxd_fma(z, g, h), o), q), p);
    mxd_real base = mxd_sub(s, one), sum = mxd_fma(s, r, base);
    mxd_real m = mxd_add(sum, mxd_fma(s, mxd_fma(z, p, lost), mxd_fms(s, r, mxd_sub(sum, base))));
    mxd_real two = mxd_all(2.0), d = mxd_add(m, two), y = mxd_div(m, d);
    lost = mxd_or_zero(mxd_less(a, mxd_all(0.55)), mxd_sub(m, mxd_sub(d, two)));
    return mxd_with_sign(mxd_fma(mxd_mul(lost, mxd_all(-0.4)), y, y), x);
}
MX_INLINE mxd_real mxd_arccos(mxd_real x)
{
    mxd_real a = mxd_abs(x), half = mxd_all(0.5), hi = mxd_all(0.5 * MXI_PI_HI), lo = mxd_all(0.5 * MXI_PI_LO);
    mxd_mask far = mxd_less(half, a);
    mxd_real z = mxd_where(far, mxd_fnma(half, a, half), mxd_mul(a, a)), s = mxd_where(far, mxd_sqrt(z), a), z2 = mxd_mul(z, z);
    mxd_real p = mxd_fma(z, mxd_all(7.49999999997012362e-02), mxd_all(1.66666666666667629e-01));
    mxd_real q = mxd_fma(z, mxd_all(3.03819426763877604e-02), mxd_all(4.46428571752629719e-02));
    mxd_real o = mxd_fma(z, mxd_all(1.73515960797721788e-02), mxd_all(2.23722158742394595e-02));
    mxd_real h = mxd_fma(z, mxd_all(1.13973524633412693e-02), mxd_all(1.39810114386551866e-02));
    mxd_real g = mxd_fma(z, mxd_all(3.67351389355589225e-03), mxd_all(1.07889794917642307e-02));
    mxd_real e = mxd_fma(z, mxd_all(-2.11118059775483591e-02), mxd_all(2.17873040258043348e-02));
    e = mxd_fma(z2, mxd_all(3.26989581916487596e-02), e);
    p = mxd_fma(z2, mxd_fma(z2, mxd_fma(z2, mxd_fma(z2, mxd_fma(z2, e, g), h), o), q), p);
    q = mxd_mul(mxd_mul(s, z), p);
    s = mxd_turned(s, mxd_bits(x));
    q = mxd_turned(q, mxd_bits(x));
    mxd_real close = mxd_sub(mxd_sub(hi, s), mxd_sub(q, lo)), twice = mxd_add(mxd_add(s, q), mxd_add(s, q));
    mxd_real turn = mxd_add(mxd_add(mxd_all(MXI_PI_HI), twice), mxd_all(MXI_PI_LO));
    return mxd_where(far, mxd_where(mxd_less(x, mxd_all(0.0)), turn, twice), close);
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
/* The cases of C's pow, as in mx_pow_f64; r = |x|^y of positive numbers. */
static MX_NOINLINE mxd_real mxd_pow_cases(mxd_real x, mxd_real y, mxd_real r)
{
    mxd_real a = mxd_abs(x), none = mxd_all(0.0), one = mxd_all(1.0), top = mxd_all((double)INFINITY);
    mxd_mask minus = mxd_less(y, none), whole = mxd_whole(y), odd = mxd_and(whole, mxd_not(mxd_whole(mxd_mul(y, mxd_all(0.5)))));
    r = mxd_where(mxd_equal(a, none), mxd_where(minus, top, none), r);
    r = mxd_where(mxd_equal(a, top), mxd_where(minus, none, top), r);
    r = mxd_where(odd, mxd_with_sign(r, x), r);
    minus = mxd_and(mxd_less(x, none), mxd_less(a, top));
    r = mxd_where(mxd_and(minus, mxd_not(whole)), mxd_all((double)NAN), r);
    r = mxd_where(mxd_unordered(x, y), mxd_add(x, y), r);
    r = mxd_where(mxd_or(mxd_equal(y, none), mxd_equal(x, one)), one, r);
    r = mxd_where(mxd_and(mxd_equal(x, mxd_all(-1.0)), mxd_equal(mxd_abs(y), top)), one, r);
    r = mxd_where(mxd_equal(y, one), x, r);
    r = mxd_where(mxd_equal(y, mxd_all(2.0)), mxd_mul(x, x), r);
    return mxd_where(mxd_equal(y, mxd_all(3.0)), mxd_mul(mxd_mul(x, x), x), r);
}
MX_INLINE mxd_real mxd_pow(mxd_real x, mxd_real y)
{
    mxd_real r = mxd_exp2_sum(mxd_log2_times(x, y));
    mxd_mask other = mxd_or(mxd_not_positive(x), mxd_not_finite(y));
    mxd_bits_ exact = mxd_i_sub(mxd_bits(y), mxd_i_all(0x3ff0000000000000u));           /* 1, 1.5, 2, 3 */
    other = mxd_or(other, mxd_i_none(exact, mxd_i_all(0xffe7ffffffffffffu)));
    return mxd_any(other) ? mxd_pow_cases(x, y, r) : r;
}

/* ---- exponentials ------------------------------------------------------------------------------------------------ */

/* x = n log(2) + r, n in sixteenths, which number the entries of a table: their last four bits are those of n + big. */
#define MXD_SIXTEENTHS mxd_all(0x1.8p48)
MX_INLINE mxd_real mxd_reduced(mxd_real x, mxd_real *n, mxd_bits_ *j)
{
    mxd_real t = mxd_fma(x, mxd_all(1.4426950408889634), MXD_SIXTEENTHS);
    *n = mxd_sub(t, MXD_SIXTEENTHS);
    *j = mxd_bits(t);
    return mxd_fnma(*n, mxd_all(MXD_LN2_LO), mxd_fnma(*n, mxd_all(MXD_LN2_HI), x));
}
MX_INLINE mxd_real mxd_exp(mxd_real x)
{
    mxd_bits_ j;
    mxd_real n, r = mxd_reduced(mxd_min(mxd_all(746.0), x), &n, &j);
    mxd_real root = mxd_of_16(mxd_exp2_table[0], j), low = mxd_of_16(mxd_exp2_table[1], j);
    mxd_real q = mxd_fma(r, mxd_all(1.3889063615251755e-03), mxd_all(8.333473114628783e-03));
    q = mxd_fma(r, mxd_fma(r, q, mxd_all(4.166666666358933e-02)), mxd_all(1.666666666420479e-01));
    q = mxd_fma(r, mxd_fma(r, q, mxd_all(0.5)), mxd_all(1.0));
    mxd_mask some = mxd_not(mxd_less(x, mxd_all(MX_VANISHES_F64)));       /* as in mxw_exp */
    return mxd_scaled_where(some, mxd_add(root, mxd_fma(mxd_mul(root, r), q, low)), n);
}
MX_INLINE mxd_real mxd_exp_sub(mxd_real x, mxd_real y) { return mxd_exp(mxd_sub(x, y)); }

/* cosh a = (up + down) cosh r + (up - down) sinh r, up and down half of 2^n and 2^-n; halved until the end, lest they overflow. */
MX_INLINE mxd_real mxd_cosh(mxd_real x)
{
    mxd_bits_ j;
    mxd_real n, r = mxd_reduced(mxd_min(mxd_all(711.0), mxd_abs(x)), &n, &j), z = mxd_mul(r, r), two = mxd_all(2.0);
    mxd_bits_ minus_j = mxd_bits(mxd_sub(MXD_SIXTEENTHS, n));
    mxd_real up = mxd_scaled(mxd_of_16(mxd_exp2_table[0], j), mxd_sub(n, two));
    mxd_real down = mxd_scaled(mxd_of_16(mxd_exp2_table[0], minus_j), mxd_sub(mxd_all(-2.0), n));
    mxd_real plus = mxd_add(up, down), minus = mxd_sub(up, down);
    mxd_real cosh1 = mxd_fma(z, mxd_all(1.3889063615251755e-03), mxd_all(4.166666666358933e-02));
    mxd_real sinh1 = mxd_fma(z, mxd_all(1.98414639814658e-04), mxd_all(8.333333332991407e-03));
    cosh1 = mxd_mul(z, mxd_fma(z, cosh1, mxd_all(0.5)));
    sinh1 = mxd_fma(mxd_mul(r, z), mxd_fma(z, sinh1, mxd_all(1.6666666666666669e-01)), r);
    mxd_real y = mxd_add(plus, mxd_fma(plus, cosh1, mxd_mul(minus, sinh1)));
    return mxd_add(y, y);
}

MXW_INVERSES(mxd, double, 0x1p1021, mxd_nearly_inverse)
MXW_LOOP_1(mxd, double, reciprocal)
#define MX_WIDE_reciprocal_f64 mxd_reciprocal_loop
MXW_LOOP_1(mxd, double, rint)
#define MX_WIDE_rint_f64 mxd_rint_loop
MXW_LOOP_1(mxd, double, round)
#define MX_WIDE_round_f64 mxd_round_loop
MXW_LOOP_1(mxd, double, rsqrt)
#define MX_WIDE_rsqrt_f64 mxd_rsqrt_loop
MXW_LOOP_1(mxd, double, root)
MXW_LOOP_1(mxd, double, half_power)
MXW_LOOP_1(mxd, double, cbrt)
MXW_LOOP_1(mxd, double, log)
MXW_LOOP_1(mxd, double, log2)
MXW_LOOP_1(mxd, double, log10)
MXW_LOOP_1(mxd, double, log1p)
MXW_LOOP_1(mxd, double, arcsinh)
MXW_LOOP_1(mxd, double, tanh)
MXW_LOOP_1(mxd, double, arccos)
MXW_QUOTIENTS(mxd, double, 0x1p800, 0x1p24)
#define MX_WIDE_div_f64 mxd_div_loop
MXW_LOOP_2(mxd, double, pow)
MXW_LOOP_1(mxd, double, exp)
MXW_LOOP_2(mxd, double, exp_sub)
MXW_LOOP_1(mxd, double, cosh)
#define MX_WIDE_sqrt_f64 mxd_root_loop
#define MX_WIDE_half_power_f64 mxd_half_power_loop
#define MX_WIDE_cbrt_f64 mxd_cbrt_loop
#define MX_WIDE_log_f64 mxd_log_loop
#define MX_WIDE_log2_f64 mxd_log2_loop
#define MX_WIDE_log10_f64 mxd_log10_loop
#define MX_WIDE_log1p_f64 mxd_log1p_loop
#define MX_WIDE_arcsinh_f64 mxd_arcsinh_loop
#define MX_WIDE_tanh_f64 mxd_tanh_loop
#define MX_WIDE_arccos_f64 mxd_arccos_loop
#define MX_WIDE_pow_f64 mxd_pow_loop
#define MX_WIDE_exp_f64 mxd_exp_loop
#define MX_WIDE_exp_sub_f64 mxd_exp_sub_loop
#define MX_WIDE_cosh_f64 mxd_cosh_loop

#endif
