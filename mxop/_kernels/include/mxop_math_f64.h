/* mxop_math_f64.h - double functions that are exact and simple, roots and the exponential family, built as their
 * float32 fellows are (the comments are there).  Included by mxop_math.h. */
#ifndef MXOP_MATH_F64_H
#define MXOP_MATH_F64_H

#define MX_PI 3.14159265358979323846

typedef struct { double hi, lo; } mxi_two;    /* a sum */

#define MX_PLAIN_F64(name, fn) MX_INLINE double mx_##name##_f64(double x) { return fn(x); }
MX_PLAIN_F64(sqrt, sqrt)
MX_PLAIN_F64(abs, fabs)
MX_PLAIN_F64(floor, floor)
MX_PLAIN_F64(ceil, ceil)
MX_PLAIN_F64(trunc, trunc)
#undef MX_PLAIN_F64

MX_INLINE double mx_rsqrt_f64(double x) { return 1.0 / sqrt(x); }
MX_INLINE double mx_fma_f64(double a, double b, double c) { return fma(a, b, c); }

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

/* m^(-1/3) within 2^-50 or so, for an m that is a normal float, or next to one: a guess by dividing the exponent field by -3, then
 * two division-free steps y (1 + h/3 + 2 h^2/9 + 14 h^3/81), h = 1 - m y^3. */
MX_INLINE double mxi_rcbrt(double m)
{
    float g = 1.4199700e9f - (float)(int32_t)mx_f32_bits((float)m) * 0.33333333f;
    double y = (double)mx_bits_f32((uint32_t)(int32_t)g);
    double h = MX_FMA(-m * y * y, y, 1.0);
    y = MX_FMA(y * h, MX_PD3(h, 1.0 / 3, 2.0 / 9, 14.0 / 81), y);
    h = MX_FMA(-m * y * y, y, 1.0);
    return MX_FMA(y * h, MX_PD3(h, 1.0 / 3, 2.0 / 9, 14.0 / 81), y);
}

/* The root of a = 2^3k 2^j u, a positive and normal, 1 <= u < 2 and j from 0 to 2, times `unit`: a polynomial in u and one
 * step of Halley's.  ULP 0.75 / 0.96 */
MX_INLINE double mxi_cbrt_f64(double a, double unit)
{
    uint64_t bits = mx_f64_bits(a);
    double e = mx_bits_f64((bits >> 52) | 0x4330000000000000u) - (0x1p52 + 1.0);       /* 3 (k + 341) + j - 1 */
    double t = MX_FMA(e, 1.0 / 3, MX_ROUND_F64), j = MX_FMA(t - MX_ROUND_F64, -3.0, e);
    double u = mx_bits_f64((bits & 0x000fffffffffffffu) | 0x3ff0000000000000u);
    double m = u * (j > 0.0 ? 4.0 : j < 0.0 ? 1.0 : 2.0);
    double y = MX_PD6(u, 4.73331188458120000e-01, 8.38158582872709437e-01, -4.69226348316067521e-01,
                      2.02775643633321068e-01, -5.03860144018873496e-02, 5.34847878775305055e-03)
             * (j > 0.0 ? 1.5874010519681996 : j < 0.0 ? 1.0 : 1.2599210498948732);
    double s = y * y;
    y = MX_FMA(y, MX_FMA(-s, y, m) / MX_FMA(s + s, y, m), y);
    return y * (mx_bits_f64((mx_f64_bits(t) + 682u) << 52) * unit);
}
MX_INLINE double mx_cbrt_f64(double x)
{
    double a = fabs(x);
    int tiny = a < 0x1p-1022;
    double y = mxi_cbrt_f64(tiny ? a * 0x1p54 : a, tiny ? 0x1p-18 : 1.0);
    return copysign((a > 0.0) & (a < (double)INFINITY) ? y : a, x);
}

/* The last step takes 1 - x y^3 in two parts.  ULP 0.51 / 0.51 */
MX_INLINE double mx_rcbrt_f64(double x)
{
    double scale, m = mxi_cbrt_split(x, &scale), y = mxi_rcbrt(m), a = fabs(x);
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
#define MX_VANISHES_F64 (-745.1332191019412)
MX_INLINE double mx_exp_f64(double x)
{
    uint64_t bits;
    double c = x < MX_VANISHES_F64 ? 0.0 : x;     /* as in mx_exp_f32 */
    double q, r = mxi_exp_reduced_f64(c > 746.0 ? 746.0 : c, 2046.0, &q, &bits);
    uint64_t half = bits >> 1;
    double y = MX_FMA(r, MX_FMA(r, q, 1.0), 1.0) * mx_bits_f64(half << 52) * mx_bits_f64((bits - half) << 52);
    return x < MX_VANISHES_F64 ? 0.0 : y;
}

/* Scaled by 2^-60.  ULP 1.00 / 1.34 */
MX_INLINE double mx_sigmoid_f64(double x)
{
    uint64_t bits;
    double a = fabs(x);
    double c = x > 700.0 || x < MX_VANISHES_F64 ? 700.0 : a;
    double h, r = mxi_exp_reduced_f64(c, 1023.0 - 60.0, &h, &bits);
    double m = MX_FMA(r * r, h, r);
    double s = mx_bits_f64(bits << 52);
    double base = s + 0x1p-60;
    double d = MX_FMA(s, m, base);
    double dl = MX_FMA(s, m, base - d) + (0x1p-60 - (base - s));
    double q = 1.0 / d;
    q = MX_FMA(q, MX_FMA(-q, dl, MX_FMA(-q, d, 1.0)), q) * 0x1p-60;
    double y = x < MX_VANISHES_F64 ? 0.0 : q;
    return x < 0.0 ? y : 1.0 - q;
}

/* unit (e^x - 1) = unit 2^n (r + r^2 q) + unit (2^n - 1) for a power of two; terms are added as a sum and what it loses. */
MX_INLINE double mxi_expm1_f64(double x, double unit, double bias)
{
    double t = MX_FMA(x, 1.4426950408889634, MX_ROUND_F64 + bias);
    double n = t - (MX_ROUND_F64 + bias);
    double whole = MX_FMA(n, -0x1.62e42fefap-1, x), low = n * 0x1.cf79abc9e3b3ap-40, r = whole - low;
    double s = mx_bits_f64(mx_f64_bits(t) << 52);
    double q = MX_PD10(r, 5.00000000000000111e-01, 1.66666666666666685e-01, 4.16666666666238236e-02,
                       8.33333333333003898e-03, 1.38888889173670814e-03, 1.98412698631715573e-04,
                       2.48015210578682038e-05, 2.75572682769056960e-06, 2.76202015910315469e-07,
                       2.51004725056949961e-08);
    double rest = MX_FMA(r * r, q, (whole - r) - low);
    double base = s - unit, first = s * r, sum = base + first;
    return sum + MX_FMA(s, rest, first - (sum - base));
}

/* Halved until the end, lest 2^n overflow. */
MX_INLINE double mx_expm1_f64(double x)
{
    double c = x > 710.0 ? 710.0 : x;
    c = c < -50.0 ? -50.0 : c;
    double y = 2.0 * mxi_expm1_f64(c, 0.5, 1022.0);
    return fabs(x) < 0x1p-54 ? x : y;
}

/* m / (m + 2), m = e^2a - 1; what the sum lost is taken off where it counts, over a d from 2 to 4. */
MX_INLINE double mx_tanh_f64(double x)
{
    double a = fabs(x), m = mxi_expm1_f64(a > 20.0 ? 40.0 : a + a, 1.0, 1023.0);
    double d = m + 2.0, y = m / d, lost = m - (d - 2.0);
    return copysign(MX_FMA((a < 0.55 ? lost : 0.0) * -0.4, y, y), x);
}

/* a = n ln2 + r: with up, down = 2^(n-2), 2^(-n-2), the hyperbolic functions of a >= 0 are made of those of r without
 * a division: sinh a = 2 (up - down) cosh r + 2 (up + down) sinh r, and cosh a with both factors exchanged.
 * plus, minus = up + down, up - down; cosh1, sinh1 = cosh r - 1, sinh r - r. */
typedef struct { double plus, minus, r, cosh1, sinh1; } mxi_hyperbolic;
MX_INLINE mxi_hyperbolic mxi_hyperbolic_f64(double a)
{
    mxi_hyperbolic h;
    double t = MX_FMA(a, 1.4426950408889634, MX_ROUND_F64 + 1021.0);
    double n = t - (MX_ROUND_F64 + 1021.0);
    double r = MX_FMA(n, -0x1.62e42fefap-1, a), low = n * 0x1.cf79abc9e3b3ap-40, whole = r;
    r -= low;
    double up = mx_bits_f64(mx_f64_bits(t) << 52);
    double down = mx_bits_f64(((2042 - mx_f64_bits(t)) & 0x3ff) << 52);      /* nothing beside up where that wraps */
    double z = r * r;
    h.plus = up + down;
    h.minus = up - down;
    h.cosh1 = z * MX_PD5(z, 5.00000000000001332e-01, 4.16666666665104699e-02, 1.38888889483571899e-03,
                         2.48014885015841429e-05, 2.76318134257048648e-07);
    h.sinh1 = MX_FMA(r * z, MX_PD5(z, 1.66666666666666768e-01, 8.33333333332138618e-03, 1.98412698868170173e-04,
                                   2.75572434492502133e-06, 2.51093224050398000e-08), (whole - r) - low);
    h.r = r;
    return h;
}
/* factor cosh r + other sinh r */
MX_INLINE double mxi_hyperbolic_sum(mxi_hyperbolic h, double factor, double other)
{
    return MX_FMA(other, h.r, factor) + MX_FMA(other, h.sinh1, factor * h.cosh1);
}
MX_INLINE double mx_sinh_f64(double x)
{
    double a = fabs(x);
    mxi_hyperbolic h = mxi_hyperbolic_f64(a > 710.6 ? 710.6 : a);
    return a < 0x1p-30 ? x : copysign(2.0 * mxi_hyperbolic_sum(h, h.minus, h.plus), x);
}
MX_INLINE double mx_cosh_f64(double x)
{
    double a = fabs(x);
    mxi_hyperbolic h = mxi_hyperbolic_f64(a > 710.6 ? 710.6 : a);
    return 2.0 * mxi_hyperbolic_sum(h, h.plus, h.minus);
}

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
    return c - (c - x >= 0.5 ? 1.0 : 0.0);
}
#endif
