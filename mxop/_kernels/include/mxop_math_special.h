/* mxop_math_special.h - polygamma, which is scalar (a loop over it calls it for one
 * element at a time), the double erf, erfinv and normal distribution.  Included by
 * mxop_math.h. */
#ifndef MXOP_MATH_SPECIAL_H
#define MXOP_MATH_SPECIAL_H

/* ---- polygamma ---------------------------------------------------------------- */

/* base^m times the sum over k of (x + k)^-m, m >= 2, x not zero or a negative
 * integer: terms up to x + k >= m + 12, then the Euler-Maclaurin formula for the
 * rest.  base is 1 but where the bare powers would leave the range. */
MX_EACH double mxi_hurwitz_zeta(double m, double x, double base)
{
    /* B_2k for k = 1.. */
    const double b[] = {1.0 / 6, -1.0 / 30, 1.0 / 42, -1.0 / 30, 5.0 / 66,
                        -691.0 / 2730, 7.0 / 6, -3617.0 / 510, 43867.0 / 798};
    double sum = 0.0, p, t;
    for (; x < m + 12.0; x += 1.0)
        sum += pow(x / base, -m);
    p = pow(x / base, -m);
    sum += p * (x / (m - 1.0) + 0.5);
    t = 0.5 * m * p / x;                 /* m (m+1) .. (m+2k) x^(-m-2k-1) / (2k+2)! */
    for (int k = 0; k < 9; k++) {
        sum += b[k] * t;
        t *= (m + 2 * k + 1) / (2 * k + 3) / x * ((m + 2 * k + 2) / (2 * k + 4)) / x;
    }
    return sum;
}

#define MX_POLYGAMMA_REFLECT_MAX 24

/* pi^(n+1) times the n-th derivative of cot, at pi x: a polynomial in c = cot(pi x)
 * made by p -> -(1 + c^2) p'. */
MX_EACH double mxi_cot_derivative(int n, double x)
{
    double p[MX_POLYGAMMA_REFLECT_MAX + 2] = {0.0, 1.0};
    double c = 1.0 / tan(MX_PI * (x - rint(x)));
    double s = 0.0;
    for (int k = 1; k <= n; k++) {
        double q[MX_POLYGAMMA_REFLECT_MAX + 2] = {0.0};
        for (int j = 1; j <= k; j++) {
            q[j - 1] -= j * p[j];
            q[j + 1] -= j * p[j];
        }
        for (int j = 0; j <= k + 1; j++)
            p[j] = q[j];
    }
    for (int j = n + 1; j >= 0; j--)
        s = s * c + p[j];
    return s * pow(MX_PI, (double)(n + 1));
}

/* The n-th derivative of digamma, n >= 0.  Zero and the negative integers are
 * poles: inf for odd n, -inf for even n (n = 0: as digamma).  NaN for n < 0 and,
 * below -32, for n > MX_POLYGAMMA_REFLECT_MAX. */
MX_EACH double mx_polygamma_f64(int n, double x)
{
    double sign = n & 1 ? 1.0 : -1.0;    /* (-1)^(n+1) */
    double m = (double)n + 1.0, z;
    if (n == 0)
        return mx_digamma_f64(x);
    if (n < 0 || x != x || x == -(double)INFINITY)
        return (double)NAN;
    if (x == (double)INFINITY)
        return sign * 0.0;
    if (x <= 0.0 && x == floor(x))
        return sign * (double)INFINITY;
    if (x < -32.0) {
        if (n > MX_POLYGAMMA_REFLECT_MAX)
            return (double)NAN;
        return -(tgamma(m) * mxi_hurwitz_zeta(m, 1.0 - x, 1.0)) - mxi_cot_derivative(n, x);
    }
    if (n <= 100)
        return sign * tgamma(m) * mxi_hurwitz_zeta(m, x, 1.0);
    z = mxi_hurwitz_zeta(m, x, fabs(x));
    return sign * copysign(exp(mx_gammaln_f64(m) - m * log(fabs(x)) + log(fabs(z))), z);
}

static inline float mx_polygamma_f32(int n, float x) { return (float)mx_polygamma_f64(n, (double)x); }

/* ---- erf, double ---------------------------------------------------------------- */

/* erf(x) / x - 1 for |x| < 1, z = x^2 */
MX_INLINE double mxi_erf_slope(double z)
{
    return MX_PD13(z, 1.28379167095512586e-01, -3.76126389031840647e-01, 1.12837916709692149e-01,
                   -2.68661706476627689e-02, 5.22397764910965956e-03, -8.54832833372149098e-04,
                   1.20553790370265705e-04, -1.49267156325239472e-05, 1.64785060899704641e-06,
                   -1.65312556271937860e-07, 1.58473469506686566e-08, -1.58551638573589321e-09,
                   1.33655015073695154e-10);
}
/* Odd polynomial below 1; above, 1 - e^(-c^2) P(t) / (1 + 2c), t = (c - 9/4) / (c + 9/4).  ULP 0.9 */
MX_INLINE double mx_erf_f64(double x)
{
    double a = fabs(x), z = x * x, c = a > 6.0 ? 6.0 : a, q;
    double t = (c - 2.25) / (c + 2.25);
    double tail = MX_PD13(t, 1.27097992301715501e+00, -1.10255615943058632e-01, -1.30780101830478335e-01,
                          1.65256432528483377e-01, -8.31325367986271713e-02, 1.14410156416692062e-02,
                          8.09362820911884925e-03, -2.61922792007768810e-03, -1.17374279076975650e-03,
                          4.13455520374592989e-04, 2.60798835430507291e-04, -2.01448243733508182e-05,
                          -3.34406100290753753e-05);
    uint64_t bits;
    double r = mxi_exp_reduced_f64(-c * c, 1023.0, &q, &bits);
    double e = MX_FMA(r, MX_FMA(r, q, 1.0), 1.0) * mx_bits_f64(bits << 52);
    return copysign(a < 1.0 ? MX_FMA(a, mxi_erf_slope(z), a) : 1.0 - e * tail / (1.0 + 2.0 * c), x);
}

/* ---- the normal distribution, double ---------------------------------------------- */

/* factor Phi(x): 1/2 + x p(x^2) for a = |x| < 1/2; Phi(-a) = e^(-a^2/2) P(t) / (1 + 1.5 a),
 * t = (a - 4) / (a + 4), with a^2 in two parts.  The factor comes before the scaling, so that a
 * small result keeps its bits. */
MX_INLINE double mxi_normal_f64(double x, double factor)
{
    uint64_t bits, half;
    double a = fabs(x) > 39.0 ? 39.0 : fabs(x);
    double t = (a - 4.0) / (a + 4.0), square = a * a;
    double p = MX_PD11(t, -5.98563552155609856e-02, -4.11901755829933302e-02, 7.87542497491929593e-02,
                       -6.37291581953034540e-02, 3.11501939606171125e-02, -7.75734892373844319e-03,
                       -7.47841573441816625e-04, 1.13593778759736459e-03, -1.18867929887522871e-04,
                       -1.46103920466592453e-04,
                       MX_PD13(t, 2.95592840047982920e-05, 2.25919639876041277e-05, -4.73359267922911276e-06,
                               -4.24978619450611689e-06, 5.03818582891068804e-07, 8.74517914096467844e-07,
                               2.83122567500962247e-08, -1.70589993558723787e-07, -3.53824325612380895e-08,
                               2.60436102962513451e-08, 1.00535513096868442e-08, -2.12498549995042287e-09,
                               -1.18098717525101228e-09));
    double q, r = mxi_exp_reduced_f64(-0.5 * square, 2046.0, &q, &bits);
    double m = MX_FMA(r * r, q, r);              /* e^r - 1 */
    m -= 0.5 * mxi_product_error(a, a, square) * (1.0 + m);
    mxi_two v = mxi_sum(6.60874489113782522e-01, t * p), d = mxi_sum(1.0, 1.5 * a), by;
    v = mxi_add(v, mxi_one(v.hi * m + v.lo * m));
    d.lo += mxi_product_error(1.5, a, 1.5 * a);
    v = mxi_over(v, d);
    by = mxi_product(v.hi, factor);
    half = bits >> 1;
    double first = mx_bits_f64(half << 52), rest = mx_bits_f64((bits - half) << 52);
    double low = fabs(x) > 39.0 ? 0.0 * factor : (by.hi + (by.lo + v.lo * factor)) * first * rest;
    double middle = MX_FMA(x,
                           MX_PD13(square, 3.98942280401432703e-01, -6.64903800669054412e-02,
                                       9.97355701003581688e-03, -1.18732821548045431e-03,
                                       1.15434687616155292e-04, -9.44465625950361467e-06,
                                       6.65969351631665134e-07, -4.12266741486268905e-08,
                                       2.27352982437280648e-09, -1.13011716416192126e-10,
                                       5.11243479025631059e-12, -2.12176147421704597e-13,
                                       8.13341898449867547e-15), 0.5);
    return a < 0.5 ? factor * middle : x < 0.0 ? low : factor * (1.0 - v.hi * first * rest);
}

MX_INLINE double mx_normcdf_f64(double x) { return mxi_normal_f64(x, 1.0); }
MX_INLINE double mx_gelu_f64(double x) { return mxi_normal_f64(x, x); }

/* ---- erfinv, double ------------------------------------------------------------- */

/* A start within 4e-7, of w = -log(1 - y^2) or its root; then a step of Halley's on erf(x) = y, or on erfc(x) = 1 - y where that
 * is the small one.  ULP 1.9 */
MX_INLINE double mx_erfinv_f64(double y)
{
    double a = fabs(y), w = -mxi_log((1.0 - a) * (1.0 + a)), c = w - 3.0;
    double v = sqrt(w > 6.0 ? w : 6.0) - 4.0;
    double mid = MX_PD8(c, 1.6235423522e+00, 2.4163163098e-01, -5.7394995390e-03, -8.3806076624e-04,
                        1.9596333630e-04, -1.1954292383e-05, -1.9676282158e-06, 3.3675734110e-07);
    double tail = MX_PD10(v, 3.8397837404e+00, 1.0094959138e+00, 1.2613644816e-03, -8.8525106196e-04,
                          3.1787169806e-04, -8.9510604077e-05, 5.3835982096e-05, -5.2311256390e-05,
                          2.4505568818e-05, -4.0428776840e-06);
    double x = a * (w > 6.0 ? tail : mid), z = x * x;
    double near = MX_FMA(x, mxi_erf_slope(z), x - a), far = (1.0 - a) - 2.0 * mx_normcdf_f64(x * -1.4142135623730951);
    double d = (a < 0.84 ? near : far) * 0.88622692545275801 / mxi_exp(-z);
    x -= d / (1.0 + x * d);
    x = a < 1e-9 ? a * 0.88622692545275801 : x;
    x = a == 1.0 ? (double)INFINITY : x;
    return copysign(a <= 1.0 ? x : (double)NAN, y);
}

#endif
