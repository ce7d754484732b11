/* mxop_math_special.h - digamma, polygamma, gamma, log-gamma and the double
 * erfinv.  Included by mxop_math.h.  These are scalar: a loop over them calls
 * them one element at a time. */
#ifndef MXOP_MATH_SPECIAL_H
#define MXOP_MATH_SPECIAL_H

#if defined(__GLIBC__) && !defined(__cplusplus)
extern double lgamma_r(double, int *);   /* hidden by strict -std=c11 */
#endif

/* ---- gamma, log|gamma| ------------------------------------------------------- */

/* Poles at the negative integers are NaN, gamma(+-0) = +-inf. */
static inline double mx_gamma_f64(double x)
{
    return x < 0.0 && x == floor(x) ? (double)NAN : tgamma(x);
}

/* lgamma_r where there is one: lgamma writes a global sign, which threads share. */
static inline double mx_gammaln_f64(double x)
{
#if defined(__GLIBC__)
    int sign;
    return lgamma_r(x, &sign);
#else
    return lgamma(x);
#endif
}

/* ULP 0.51 / 0.51 */
static inline float mx_gamma_f32(float x) { return (float)mx_gamma_f64((double)x); }
static inline float mx_gammaln_f32(float x) { return (float)mx_gammaln_f64((double)x); }

/* ---- digamma ----------------------------------------------------------------- */

/* psi(x) for 1 <= x <= 2 as (x - x0) g(x - 3/2), x0 = 1.4616... the root in two
 * parts; g interpolated at Chebyshev nodes to 1.4e-16. */
static inline double mxi_digamma_12(double x)
{
    static const double g[] = {
        9.51055876031832836e-01, -4.23627421281457306e-01, 2.40542484240784782e-01,
        -1.48404923054858084e-01, 9.49887244535418257e-02, -6.19221331907270703e-02,
        4.07608338843387027e-02, -2.69758000292536666e-02, 1.79072505636197754e-02,
        -1.19081465139767376e-02, 7.92697273564635894e-03, -5.28090306609060520e-03,
        3.51875043619501345e-03, -2.33755264710311817e-03, 1.55807491372137613e-03,
        -1.07768639672342257e-03, 7.18410796904637820e-04, -3.54763520533719770e-04,
        2.36501717193398139e-04, -3.78390789724885788e-04, 2.52259050696488523e-04};
    double y = x - 1.5, s = g[20];
    for (int k = 19; k >= 0; k--)
        s = MX_FMA(s, y, g[k]);
    return ((x - 0x1.762d86356be3fp+0) - 9.54999542996569743e-17) * s;
}

/* Recurrence to [1, 2] or up to the asymptotic series; reflection below 0.
 * Zero gives -+inf, the negative integers and -inf give NaN. */
static inline double mx_digamma_f64(double x)
{
    double below = 0.0, z;
    if (x != x || x == (double)INFINITY)
        return x;
    if (x == 0.0)
        return copysign((double)INFINITY, -x);
    if (x < 0.0) {
        double frac = x - rint(x);
        if (frac == 0.0 || x == -(double)INFINITY)
            return (double)NAN;
        below = -MX_PI / tan(MX_PI * frac);
        x = 1.0 - x;
    }
    if (x < 1.0)
        return below + (mxi_digamma_12(x + 1.0) - 1.0 / x);
    if (x <= 2.0)
        return below + mxi_digamma_12(x);
    if (x <= 3.0)
        return below + (mxi_digamma_12(x - 1.0) + 1.0 / (x - 1.0));
    for (; x < 12.0; x += 1.0)
        below -= 1.0 / x;
    z = 1.0 / (x * x);
    z *= MX_PD7(z, 1.0 / 12, -1.0 / 120, 1.0 / 252, -1.0 / 240, 1.0 / 132, -691.0 / 32760, 1.0 / 12);
    return below + (log(x) - 0.5 / x - z);
}

/* ULP 0.51 / 0.51 */
static inline float mx_digamma_f32(float x) { return (float)mx_digamma_f64((double)x); }

/* ---- polygamma ---------------------------------------------------------------- */

/* base^m times the sum over k of (x + k)^-m, m >= 2, x not zero or a negative
 * integer: terms up to x + k >= m + 12, then the Euler-Maclaurin formula for the
 * rest.  base is 1 but where the bare powers would leave the range. */
static inline double mxi_hurwitz_zeta(double m, double x, double base)
{
    /* B_2k for k = 1.. */
    static const double b[] = {1.0 / 6, -1.0 / 30, 1.0 / 42, -1.0 / 30, 5.0 / 66,
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
static inline double mxi_cot_derivative(int n, double x)
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
        memcpy(p, q, sizeof p);
    }
    for (int j = n + 1; j >= 0; j--)
        s = s * c + p[j];
    return s * pow(MX_PI, n + 1);
}

/* The n-th derivative of digamma, n >= 0.  Zero and the negative integers are
 * poles: inf for odd n, -inf for even n (n = 0: as digamma).  NaN for n < 0 and,
 * below -32, for n > MX_POLYGAMMA_REFLECT_MAX. */
static inline double mx_polygamma_f64(int n, double x)
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
        return -sign * mx_polygamma_f64(n, 1.0 - x) - mxi_cot_derivative(n, x);
    }
    if (n <= 100)
        return sign * tgamma(m) * mxi_hurwitz_zeta(m, x, 1.0);
    z = mxi_hurwitz_zeta(m, x, fabs(x));
    return sign * copysign(exp(mx_gammaln_f64(m) - m * log(fabs(x)) + log(fabs(z))), z);
}

static inline float mx_polygamma_f32(int n, float x) { return (float)mx_polygamma_f64(n, (double)x); }

/* ---- erfinv, double ------------------------------------------------------------ */

/* Winitzki's closed form as a start (0.2 %), then Halley steps on erf(x) = y, or on
 * erfc(x) = 1 - y where that is the small one. */
static inline double mx_erfinv_f64(double y)
{
    double a = fabs(y), w, x;
    if (!(a < 1.0))
        return a == 1.0 ? copysign((double)INFINITY, y) : (double)NAN;
    if (a < 1e-9)
        return y * 0.88622692545275801;
    w = log1p(-a * a);
    x = 4.3307 + 0.5 * w;
    x = sqrt(sqrt(x * x - w * 6.8027) - x);
    for (int i = 0; i < 3; i++) {
        double e = a < 0.5 ? erf(x) - a : (1.0 - a) - erfc(x);
        double d = e / (1.1283791670955126 * exp(-x * x));
        x -= d / (1.0 + x * d);
    }
    return copysign(x, y);
}

#endif
