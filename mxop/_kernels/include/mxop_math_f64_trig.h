/* mxop_math_f64_trig.h - double sin, cos, tan and the arcs.  Included by mxop_math.h.  Methods as in float32. */
#ifndef MXOP_MATH_F64_TRIG_H
#define MXOP_MATH_F64_TRIG_H

/* The _fast forms hold for |x| up to this, and the C library's beyond: a choice for each element, so that no result
 * depends on what stands beside it. */
#define MX_TRIG_LIMIT_F64 1048576.0

/* a = n pi/2 + r + e, *bits with n in its low bits.  With FMA pi/2 is three doubles; without, the first two are so
 * short that their products with n < 2^20 are exact. */
MX_INLINE double mxi_trig_reduce_f64(double a, double *e, uint64_t *bits)
{
    double t = MX_FMA(a, 0.63661977236758134, MX_ROUND_F64);
    double n = t - MX_ROUND_F64;
    *bits = mx_f64_bits(t);
#if MX_HAVE_FMA
    double u = MX_FMA(n, -0x1.921fb54442d18p0, a);
    double w = n * 0x1.1a62633145c07p-54;
    double r = u - w, v = r - u;
    double lost = (u - (r - v)) - (w + v);
    *e = MX_FMA(n, 0x1.f1976b7ed8fbcp-110, lost - MX_FMA(n, 0x1.1a62633145c07p-54, -w));
    return r;
#else
    double u = a - n * 0x1.921fb544p0;
    double w = n * 0x1.0b4611a6p-34;
    double r = u - w, v = r - u;
    double lost = (u - (r - v)) - (w + v);
    w = n * 0x1.3198a2e037073p-69;
    v = r - w;
    *e = ((r - v) - w) + lost;
    return v;
#endif
}

/* sin(r + e) and cos(r + e) for |r| <= pi/4; s = r^2, w = 1 - s/2 */
MX_INLINE double mxi_sin_f64(double r, double e, double s, double w)
{
    double p = MX_PD6(s, -1.66666666666666324e-01, 8.33333333332245477e-03, -1.98412698298135865e-04,
                      2.75573136876984581e-06, -2.50507567423557541e-08, 1.58966837727968723e-10);
    return r + MX_FMA(r * s, p, e * w);
}
MX_INLINE double mxi_cos_f64(double r, double e, double s, double w)
{
    double p = MX_PD6(s, 4.16666666666666019e-02, -1.38888888888744413e-03, 2.48015872896364934e-05,
                      -2.75573143875827930e-07, 2.08757270825031235e-09, -1.13598040881474551e-11);
    return w + MX_FMA(s * s, p, MX_FMA(-r, e, (1.0 - w) - 0.5 * s));
}

/* sin(a + shift pi/2) for shift 0 or 1, whose sign is that of `sign` */
MX_INLINE double mxi_sine_f64(double a, uint64_t shift, uint64_t sign)
{
    uint64_t n;
    double e, r = mxi_trig_reduce_f64(a, &e, &n);
    double s = r * r, w = 1.0 - 0.5 * s;
    n += shift;
    double y = n & 1u ? mxi_cos_f64(r, e, s, w) : mxi_sin_f64(r, e, s, w);
    return mx_bits_f64(mx_f64_bits(y) ^ sign ^ ((n >> 1) << 63));
}
MX_INLINE double mx_sin_fast_f64(double x)
{
    return mxi_sine_f64(fabs(x), 0, mx_f64_bits(x) & ((uint64_t)1 << 63));
}
MX_INLINE double mx_cos_fast_f64(double x) { return mxi_sine_f64(fabs(x), 1, 0); }
/* tan(r + e), or -1 / tan(r + e) for odd n; a slope of 1 + r^2 is enough for e. */
MX_INLINE double mx_tan_fast_f64(double x)
{
    uint64_t n;
    double e, r = mxi_trig_reduce_f64(fabs(x), &e, &n), z = r * r;
    double p = MX_PD14(z, 3.33333333333327042e-01, 1.33333333334241660e-01, 5.39682539223493435e-02,
                       2.18694897073704528e-02, 8.86321784319558763e-03, 3.59230047481679535e-03,
                       1.45469158524938729e-03, 5.95333270514408373e-04, 2.21616571774973045e-04,
                       1.38044798456556604e-04, -2.84598395031738320e-05, 9.13011777550556280e-05,
                       -4.58463499555355596e-05, 2.10902074656145287e-05);
    double t = r + MX_FMA(r * z, p, MX_FMA(e, z, e));
    double y = n & 1u ? -1.0 / t : t;
    return mx_bits_f64(mx_f64_bits(y) ^ (mx_f64_bits(x) & ((uint64_t)1 << 63)));
}
MX_INLINE double mx_sin_f64(double x) { return fabs(x) <= MX_TRIG_LIMIT_F64 ? mx_sin_fast_f64(x) : sin(x); }
MX_INLINE double mx_cos_f64(double x) { return fabs(x) <= MX_TRIG_LIMIT_F64 ? mx_cos_fast_f64(x) : cos(x); }
MX_INLINE double mx_tan_f64(double x) { return fabs(x) <= MX_TRIG_LIMIT_F64 ? mx_tan_fast_f64(x) : tan(x); }

/* ---- arcs ------------------------------------------------------------------------- */

#define MXI_PI_HI 0x1.921fb54442d18p1
#define MXI_PI_LO 0x1.1a62633145c07p-53

/* asin(s) - s for 0 <= s <= 1/2, z = s^2 */
MX_INLINE double mxi_arcsin_rest(double s, double z)
{
    return s * z * MX_PD13(z, 1.66666666666667629e-01, 7.49999999997012362e-02, 4.46428571752629719e-02,
                           3.03819426763877604e-02, 2.23722158742394595e-02, 1.73515960797721788e-02,
                           1.39810114386551866e-02, 1.13973524633412693e-02, 1.07889794917642307e-02,
                           3.67351389355589225e-03, 2.17873040258043348e-02, -2.11118059775483591e-02,
                           3.26989581916487596e-02);
}

/* asin(a) = pi/2 - 2 asin(sqrt((1 - a) / 2)) above 1/2; beyond 1 the root is NaN. */
MX_INLINE double mx_arcsin_f64(double x)
{
    double a = fabs(x), w = 0.5 - 0.5 * a, root = sqrt(w), s = a < root ? a : root, z = a * a;
    double q = mxi_arcsin_rest(s, z < w ? z : w);
    int far = a > 0.5;
    double v = 0.5 * MXI_PI_HI - (s + s), lost = (0.5 * MXI_PI_HI - v) - (s + s);
    return copysign(far ? v - ((q + q) - (0.5 * MXI_PI_LO + lost)) : s + q, x);
}
MX_INLINE double mx_arccos_f64(double x)
{
    double a = fabs(x), w = 0.5 - 0.5 * a, root = sqrt(w), s = a < root ? a : root, z = a * a;
    double q = mxi_arcsin_rest(s, z < w ? z : w);
    int far = a > 0.5;
    double y = far ? 2.0 * (s + q) : (0.5 * MXI_PI_HI - s) - (q - 0.5 * MXI_PI_LO);
    return x < 0.0 ? (MXI_PI_HI - y) + MXI_PI_LO : y;
}

/* The angle is turned by 0, pi/4 or pi/2, so that a tangent of tan(pi/8) at most is left. */
MX_INLINE double mx_arctan_f64(double x)
{
    double a = fabs(x);
    int steep = a > 2.4142135623730951, mid = a > 0.41421356237309503;
    double num = mid ? a - 1.0 : a, den = mid ? a + 1.0 : 1.0;
    double base = mid ? 0.25 * MXI_PI_HI : 0.0, low = mid ? 0.25 * MXI_PI_LO : 0.0;
    num = steep ? -1.0 : num;
    den = steep ? a : den;
    base = steep ? 0.5 * MXI_PI_HI : base;
    low = steep ? 0.5 * MXI_PI_LO : low;
    double s = num / den, z = s * s;
    double p = MX_PD11(z, -3.33333333333331983e-01, 1.99999999999536382e-01, -1.42857142801912390e-01,
                       1.11111107828184216e-01, -9.09089773070508034e-02, 7.69205960534629363e-02,
                       -6.66309583003689976e-02, 5.84782101140893656e-02, -5.03896191392446402e-02,
                       3.80550281428393561e-02, -1.78959320043569937e-02);
    return copysign(base + (s + MX_FMA(s * z, p, low)), x);
}

#endif
