/* mxop_math_f64_pairs.h - double functions of two operands.  Included by mxop_math.h.
 *
 * The _fast forms serve ordinary operands (MX_ORDINARY_..._f64, in mxop_math.h); the others any. */
#ifndef MXOP_MATH_F64_PAIRS_H
#define MXOP_MATH_F64_PAIRS_H

/* ---- power ------------------------------------------------------------------------- */

/* Products for exponents 1, 2 and 3, as in mxop_power.h; other powers as they are. */
MX_INLINE double mxi_pow_whole_f64(double x, double y, double power)
{
    power = y == 1.0 ? x : power;
    power = y == 2.0 ? x * x : power;
    return y == 3.0 ? x * x * x : power;
}

#if MX_HAVE_FMA
/* y log2(2^lift a) for a normal and positive, as a sum: a logarithm with 64 bits, since its error is multiplied by y.
 * log2 a = k + C s (1 + z/3 + z^2 P(z)), z = s^2, whose first terms are held in two parts; 1 / (2 + f) = (1 - s) / 2. */
MX_INLINE mxi_two mxi_log2_times(double a, double lift, double y)
{
    double k, f = mxi_log_split(a, &k);
    double d = 2.0 + f, s = f / d;
    double sl = (MX_FMA(-s, d, f) - s * (f - (d - 2.0))) * (0.5 - 0.5 * s);
    double z = s * s, zl = MX_FMA(s, s, -z) + 2.0 * s * sl;
    double p = z * MX_PD7(z, 2.00000000000011363e-01, 1.42857142850456087e-01, 1.11111112607352333e-01,
                          9.09089211423442511e-02, 7.69338191262579074e-02, 6.62833224537926480e-02,
                          6.59888423149669334e-02);
    double q = 0x1.5555555555555p-2 + p, ql = ((0x1.5555555555555p-2 - q) + p) + 0x1.5555555555555p-56;
    double t = z * q, tl = MX_FMA(z, q, -t) + MX_FMA(z, ql, zl * q);
    double w = s * t, g = s + w;
    double gl = ((s - g) + w) + (sl + MX_FMA(s, t, -w) + MX_FMA(s, tl, sl * t));
    double c = g * 0x1.71547652b82fep+1;
    double cl = MX_FMA(g, 0x1.71547652b82fep+1, -c) + MX_FMA(g, 0x1.777d0ffda0d24p-55, gl * 0x1.71547652b82fep+1);
    k += lift;
    mxi_two v;
    double l = k + c, ll = ((k - l) + c) + cl;
    v.hi = y * l;
    v.lo = MX_FMA(y, l, -v.hi) + y * ll;
    return v;
}

/* 2^v */
MX_INLINE double mxi_exp2_two(mxi_two v)
{
    int far = fabs(v.hi) > 1100.0;
    double hi = far ? copysign(1100.0, v.hi) : v.hi, lo = far ? 0.0 : v.lo;
    double t = hi + (MX_ROUND_F64 + 2046.0);
    double r = (hi - (t - (MX_ROUND_F64 + 2046.0))) + lo;
    uint64_t bits = mx_f64_bits(t), half = bits >> 1;
    double p = MX_PD11(r, 6.93147180559945286e-01, 2.40226506959101499e-01, 5.55041086648240603e-02,
                       9.61812910758625371e-03, 1.33335581457736828e-03, 1.54035304672670622e-04,
                       1.52527344833500088e-05, 1.32154301743819730e-06, 1.01777791999776979e-07,
                       7.07466131147523267e-09, 4.49888248245032721e-10);
    return MX_FMA(r, p, 1.0) * mx_bits_f64(half << 52) * mx_bits_f64((bits - half) << 52);
}

MX_INLINE double mx_pow_fast_f64(double x, double y) { return mxi_exp2_two(mxi_log2_times(x, 0.0, y)); }

/* The sign and the cases of C's pow. */
MX_INLINE double mx_pow_f64(double x, double y)
{
    double a = fabs(x), lift, up = mxi_log_lifted(a, &lift);
    double c = fabs(y) > 0x1p1000 ? copysign(0x1p1000, y) : y;
    double r = mxi_exp2_two(mxi_log2_times(up, -lift, c));
    r = a == 0.0 ? (y < 0.0 ? (double)INFINITY : 0.0) : r;
    r = a == (double)INFINITY ? (y < 0.0 ? 0.0 : (double)INFINITY) : r;
    int whole = floor(y) == y;
    int odd = whole & (floor(0.5 * y) != 0.5 * y);
    uint64_t sign = odd ? mx_f64_bits(x) & ((uint64_t)1 << 63) : 0u;
    r = mx_bits_f64(mx_f64_bits(r) | sign);
    r = (x < 0.0) & (a < (double)INFINITY) & !whole ? (double)NAN : r;
    r = (x != x) | (y != y) ? (double)NAN : r;
    return mxi_pow_whole_f64(x, y, (y == 0.0) | (x == 1.0) ? 1.0 : r);
}
#else
MX_INLINE double mx_pow_f64(double x, double y) { return mxi_pow_whole_f64(x, y, pow(x, y)); }
MX_INLINE double mx_pow_fast_f64(double x, double y) { return mx_pow_f64(x, y); }
#endif

/* ---- hypot --------------------------------------------------------------------------- */

/* Scaled by the exponent of the larger one. */
MX_INLINE double mx_hypot_f64(double x, double y)
{
    double a = fabs(x), b = fabs(y), top = a > b ? a : b;
    uint64_t e = mx_f64_bits(top) & 0x7ff0000000000000u;
    e = e < 0x0010000000000000u ? 0x0010000000000000u : e;
    e = e > 0x7fc0000000000000u ? 0x7fc0000000000000u : e;
    double down = mx_bits_f64(0x7fe0000000000000u - e);
    a *= down;
    b *= down;
    double r = sqrt(MX_FMA(a, a, b * b)) * mx_bits_f64(e);
    return (fabs(x) == (double)INFINITY) | (fabs(y) == (double)INFINITY) ? (double)INFINITY : r;
}

/* ---- remainder ------------------------------------------------------------------------- */

/* Congruent to x, of magnitude below |y|: exact with FMA while |x / y| < 2^52. */
#if MX_HAVE_FMA
MX_INLINE double mxi_remainder_f64(double x, double y) { return MX_FMA(-trunc(x / y), y, x); }
#else
MX_INLINE double mxi_remainder_f64(double x, double y) { return fmod(x, y); }
#endif

/* With the sign of the divisor, exact but for the one rounding of r + y; 0 for a zero divisor. */
MX_INLINE double mxi_mod_f64(double r, double y)
{
    double m = (r < 0.0) != (y < 0.0) ? r + y : r;
    return r == 0.0 ? copysign(0.0, y) : m;
}
MX_INLINE double mx_mod_fast_f64(double x, double y) { return mxi_mod_f64(mxi_remainder_f64(x, y), y); }
MX_INLINE double mx_mod_f64(double x, double y)
{
    return y == 0.0 ? (x != x ? x : 0.0) : mxi_mod_f64(fmod(x, y), y);
}

/* The quotient that goes with mod, rounded down: what is divided is a whole multiple, but for its rounding.  r has the
 * sign of x.  NumPy's floor_divide; x / 0 as in IEEE. */
MX_INLINE double mxi_floordiv_f64(double x, double y, double r)
{
    double q = (x - r) / y - ((r != 0.0) & ((r < 0.0) != (y < 0.0)) ? 1.0 : 0.0);
    double whole = floor(q);
    whole = q - whole > 0.5 ? whole + 1.0 : whole;
    return q == 0.0 ? copysign(0.0, x / y) : whole;
}
MX_INLINE double mx_floordiv_fast_f64(double x, double y)
{
    double r = mxi_remainder_f64(x, y);
    return mxi_floordiv_f64(x, y, (r != 0.0) & ((r < 0.0) != (x < 0.0)) ? r + copysign(y, x) : r);
}
MX_INLINE double mx_floordiv_f64(double x, double y)
{
    return y == 0.0 ? x / y : mxi_floordiv_f64(x, y, fmod(x, y));
}

#endif
