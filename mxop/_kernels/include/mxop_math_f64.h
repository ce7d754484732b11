/* mxop_math_f64.h - double functions.  Included by mxop_math.h.  exp, log, sigmoid
 * and tanh have vector forms, built as their float32 fellows are (the comments are
 * there); the rest is libm, or exact and simple. */
#ifndef MXOP_MATH_F64_H
#define MXOP_MATH_F64_H

#define MX_PI 3.14159265358979323846

#define MX_LIBM_F64(name, fn) MX_INLINE double mx_##name##_f64(double x) { return fn(x); }
MX_LIBM_F64(exp2, exp2)
MX_LIBM_F64(expm1, expm1)
MX_LIBM_F64(log2, log2)
MX_LIBM_F64(log10, log10)
MX_LIBM_F64(log1p, log1p)
MX_LIBM_F64(sin, sin)
MX_LIBM_F64(cos, cos)
MX_LIBM_F64(tan, tan)
MX_LIBM_F64(sinh, sinh)
MX_LIBM_F64(cosh, cosh)
MX_LIBM_F64(arcsin, asin)
MX_LIBM_F64(arccos, acos)
MX_LIBM_F64(arctan, atan)
MX_LIBM_F64(arcsinh, asinh)
MX_LIBM_F64(arccosh, acosh)
MX_LIBM_F64(arctanh, atanh)
MX_LIBM_F64(sqrt, sqrt)
MX_LIBM_F64(erf, erf)
MX_LIBM_F64(abs, fabs)
MX_LIBM_F64(floor, floor)
MX_LIBM_F64(ceil, ceil)
MX_LIBM_F64(trunc, trunc)
#undef MX_LIBM_F64

MX_INLINE double mx_rsqrt_f64(double x) { return 1.0 / sqrt(x); }
MX_INLINE double mx_reciprocal_f64(double x) { return 1.0 / x; }
MX_INLINE double mx_fma_f64(double a, double b, double c) { return fma(a, b, c); }
MX_INLINE double mx_square_f64(double x) { return x * x; }

/* x = 2^3k m, 1 <= m < 8: returns m, as a positive number, and sets *scale to 2^k. */
MX_INLINE double mxi_cbrt_split(double x, double *scale)
{
    double a = fabs(x);
    int tiny = a < 0x1p-1022;
    uint64_t u = mx_f64_bits(tiny ? a * 0x1p54 : a);
    double e = mx_bits_f64((u >> 52) | 0x4330000000000000u) - 0x1p52;   /* biased by 1023, three times 341 */
    double k = floor((e + 0.5) * (1.0 / 3));
    uint64_t back = mx_f64_bits(k + 0x1p52) & 0xfffu;
    *scale = mx_bits_f64((back + 1023u - 341u - (tiny ? 18u : 0u)) << 52);
    return mx_bits_f64(u - ((3u * back) << 52) + ((uint64_t)1023 << 52));
}

/* a * b - p for the rounded product p, exactly; factors are of moderate size. */
MX_INLINE double mxi_product_error(double a, double b, double p)
{
#if MX_HAVE_FMA
    return MX_FMA(a, b, -p);
#else
    double u = a * 134217729.0, v = b * 134217729.0;
    double ah = u - (u - a), bh = v - (v - b), al = a - ah, bl = b - bh;
    return ((ah * bh - p) + ah * bl + al * bh) + al * bl;
#endif
}

/* m^(-1/3), 1 <= m < 8, within 2^-50 or so: a guess by dividing the exponent field by -3, then
 * division-free steps; see mxi_rcbrt. */
MX_INLINE double mxi_rcbrt_f64(double m)
{
    float g = 1.4199700e9f - (float)(int32_t)mx_f32_bits((float)m) * 0.33333333f;
    double y = (double)mx_bits_f32((uint32_t)(int32_t)g);
    double h = 1.0 - m * y * y * y;
    y += y * h * MX_PD3(h, 1.0 / 3, 2.0 / 9, 14.0 / 81);
    h = 1.0 - m * y * y * y;
    return y + y * h * MX_PD3(h, 1.0 / 3, 2.0 / 9, 14.0 / 81);
}

/* The last step takes x - y^3 in two parts.  ULP 0.51 / 0.51 */
MX_INLINE double mx_cbrt_f64(double x)
{
    double scale, m = mxi_cbrt_split(x, &scale), r = mxi_rcbrt_f64(m);
    double y = m * r * r;
    double s = y * y, c = s * y;
    double rest = (m - c) - (mxi_product_error(s, y, c) + mxi_product_error(y, y, s) * y);
    y += rest * (1.0 / 3) * r * r;
    return copysign((x != 0.0) & (fabs(x) < (double)INFINITY) ? y * scale : fabs(x), x);
}

/* As cbrt, with 1 - x y^3.  ULP 0.51 / 0.51 */
MX_INLINE double mx_rcbrt_f64(double x)
{
    double scale, m = mxi_cbrt_split(x, &scale), y = mxi_rcbrt_f64(m), a = fabs(x);
    double s = y * y, c = s * y, p = c * m;
    double lost = mxi_product_error(s, y, c) + mxi_product_error(y, y, s) * y;
    y += ((1.0 - p) - (mxi_product_error(c, m, p) + lost * m)) * (1.0 / 3) * y;
    y /= scale;
    y = a == 0.0 ? (double)INFINITY : a == (double)INFINITY ? 0.0 : y;
    return copysign(x != x ? x : y, x);
}

/* x = n ln2 + r: returns r and sets *q, where e^r = 1 + r + r^2 q, and *bits, a
 * word whose low twelve bits hold n + bias. */
MX_INLINE double mxi_exp_reduced_f64(double x, double bias, double *q, uint64_t *bits)
{
    double t = MX_FMA(x, 1.4426950408889634, MX_ROUND_F64 + bias);
    double n = t - (MX_ROUND_F64 + bias);
    double r = MX_FMA(n, -0x1.62e42fefap-1, x);
    r = MX_FMA(n, -0x1.cf79abc9e3b3ap-40, r);
    *bits = mx_f64_bits(t);
    *q = MX_PD10(r, 5.00000000000000111e-01, 1.66666666666666685e-01, 4.16666666666238236e-02,
                 8.33333333333003898e-03, 1.38888889173670814e-03, 1.98412698631715573e-04,
                 2.48015210578682038e-05, 2.75572682769056960e-06, 2.76202015910315469e-07,
                 2.51004725056949961e-08);
    return r;
}

/* ULP 0.94 / 1.20 */
MX_INLINE double mx_exp_f64(double x)
{
    uint64_t bits;
    double a = fabs(x);
    double q, r = mxi_exp_reduced_f64(copysign(a > 746.0 ? 746.0 : a, x), 2046.0, &q, &bits);
    uint64_t half = bits >> 1;
    double y = MX_FMA(r, MX_FMA(r, q, 1.0), 1.0);
    return y * mx_bits_f64(half << 52) * mx_bits_f64((bits - half) << 52);
}

/* m in [sqrt(1/2), sqrt(2)); log1p(f) = f - (f^2/2 - s (f^2/2 + R(s^2))), s = f / (2 + f).
 * ULP 0.84 / 0.84 */
MX_INLINE double mx_log_f64(double x)
{
    uint64_t tiny = x < 0x1p-1022 ? ~(uint64_t)0 : 0u;
    double xs = x * mx_bits_f64(0x3ff0000000000000u + (tiny & 0x0360000000000000u));
    uint64_t d = mx_f64_bits(xs) - 0x3fe6a09e667f3bcdu;
    uint64_t biased = ((d + 0x4000000000000000u) >> 52) + 54u - (tiny & 54u);
    double k = mx_bits_f64(biased | 0x4330000000000000u) - (0x1p52 + 1078.0);
    double f = mx_bits_f64((d & 0x000fffffffffffffu) + 0x3fe6a09e667f3bcdu) - 1.0;
    double s = f / (2.0 + f);
    double z = s * s;
    double h = 0.5 * f * f;
    double R = z * MX_PD7(z, 6.66666666666666963e-01, 3.99999999998993105e-01, 2.85714286260633776e-01,
                          2.22222111204492978e-01, 1.81828901703139700e-01, 1.53316868686384278e-01,
                          1.46168789190298215e-01);
    double lo = MX_FMA(s, h + R, k * 0x1.cf79abc9e3b3ap-40);
    double y = k * 0x1.62e42fefap-1 - ((h - lo) - f);
    y = x < (double)INFINITY ? y : x;
    y = x == 0.0 ? -(double)INFINITY : y;
    return x < 0.0 ? (double)NAN : y;
}

/* Scaled by 2^-60.  ULP 1.00 / 1.34 */
MX_INLINE double mx_sigmoid_f64(double x)
{
    uint64_t bits;
    double a = fabs(x);
    double h, r = mxi_exp_reduced_f64(a > 746.0 ? 746.0 : a, 1023.0 - 60.0, &h, &bits);
    double m = MX_FMA(r * r, h, r);
    double s = mx_bits_f64(bits << 52);
    double base = s + 0x1p-60;
    double d = MX_FMA(s, m, base);
    double dl = MX_FMA(s, m, base - d) + (0x1p-60 - (base - s));
    double q = 1.0 / d;
    q = MX_FMA(q, MX_FMA(-q, dl, MX_FMA(-q, d, 1.0)), q) * 0x1p-60;
    return x < 0.0 ? q : 1.0 - q;
}

/* ULP 0.90 / 1.05 */
MX_INLINE double mx_tanh_f64(double x)
{
    uint64_t bits;
    double a = fabs(x);
    double z = x * x;
    double p = MX_PD12(z, -3.33333333333333315e-01, 1.33333333333330306e-01, -5.39682539678863898e-02,
                       2.18694885185552017e-02, -8.86323509335329787e-03, 3.59212162578806046e-03,
                       -1.45577442461779769e-03, 5.89655678986869460e-04, -2.37574569188286997e-04,
                       9.25389947629594382e-05, -3.11648239128897044e-05, 6.46753302097737210e-06);
    double small = MX_FMA(a * z, p, a);
    double c = a > 20.0 ? 20.0 : a;
    double h, r = mxi_exp_reduced_f64(c + c, 1023.0, &h, &bits);
    double m = MX_FMA(r * r, h, r);
    double s = mx_bits_f64(bits << 52);
    double base = s + 1.0;
    double d = MX_FMA(s, m, base);
    double dl = MX_FMA(s, m, base - d);
    double q = 2.0 / d;
    double rest = MX_FMA(-q, dl, MX_FMA(-q, d, 2.0));
    double large = 1.0 - MX_FMA(0.5 * q, rest, q);
    return copysign(a < 0.625 ? small : large, x);
}

MX_INLINE double mx_softplus_f64(double x)
{
    return (x > 0.0 ? x : (x != x ? x : 0.0)) + log1p(exp(-fabs(x)));
}
MX_INLINE double mx_log_sigmoid_f64(double x) { return -mx_softplus_f64(-x); }
MX_INLINE double mx_softsign_f64(double x) { return x / (1.0 + fabs(x)); }
MX_INLINE double mx_sign_f64(double x)
{
    return x > 0.0 ? 1.0 : (x < 0.0 ? -1.0 : (x == 0.0 ? 0.0 : x));
}
MX_INLINE double mx_round_f64(double x)
{
    double t = trunc(x);
    return t + copysign(fabs(x - t) >= 0.5 ? 1.0 : 0.0, x);
}
MX_INLINE double mx_rint_f64(double x)
{
    double c = ceil(x);
    return c - x >= 0.5 ? floor(x) : c;
}
MX_INLINE double mx_isnan_f64(double x) { return x != x ? 1.0 : 0.0; }
MX_INLINE double mx_isinf_f64(double x) { return fabs(x) == (double)INFINITY ? 1.0 : 0.0; }
MX_INLINE double mx_isfinite_f64(double x) { return fabs(x) < (double)INFINITY ? 1.0 : 0.0; }

MX_INLINE double mx_pow_f64(double x, double y) { return pow(x, y); }
MX_INLINE double mx_hypot_f64(double x, double y) { return hypot(x, y); }
MX_INLINE double mx_arctan2_f64(double y, double x) { return atan2(y, x); }
MX_INLINE double mx_maximum_f64(double a, double b) { return (a >= b) | (a != a) ? a : b; }
MX_INLINE double mx_minimum_f64(double a, double b) { return (a <= b) | (a != a) ? a : b; }
MX_INLINE double mx_mod_f64(double x, double y)
{
    double r;
    if (y == 0.0)
        return x != x ? x : 0.0;
    r = fmod(x, y);
    if (r == 0.0)
        return copysign(0.0, y);
    return (r < 0.0) != (y < 0.0) ? r + y : r;
}

/* The quotient that goes with mod, rounded down: fmod is exact, so the division is of a whole multiple, but for its
 * rounding.  NumPy's floor_divide; x / 0 as in IEEE. */
MX_INLINE double mx_floordiv_f64(double x, double y)
{
    double r = fmod(x, y);
    double q = (x - r) / y - ((r != 0.0) & ((r < 0.0) != (y < 0.0)) ? 1.0 : 0.0);
    double whole = floor(q);
    whole = q - whole > 0.5 ? whole + 1.0 : whole;
    whole = q == 0.0 ? copysign(0.0, x / y) : whole;
    return y == 0.0 ? x / y : whole;
}

#endif
