/* mxop_samplers.h - numbers of the distributions that need rejection, one element at a time: gamma and Poisson.

   C includes this file, and the CUDA text is made of it (mxop/_gpu/headers.py), function by function: so each begins with
   MX_EACH, and MX_LOG and MX_EXP stand for the functions of either.  Every element counts by itself: attempt t of element i takes the four words of the call of Philox with the
   counter (i, i >> 32, t, purpose).  The purpose tells apart what one element draws of one key: 0 is a formula's plain
   number (mxop_random.h), 1 the gamma distribution, 2 its factor for shapes below 1, 3 the Poisson distribution.
   A try that is rejected returns a negative number; what a distribution does not have is NaN. */
#ifndef MXOP_SAMPLERS_H
#define MXOP_SAMPLERS_H

#define MX_LOG mx_log_f64
#define MX_EXP mx_exp_f64

/* The four words of one call of Philox4x32-10. */
MX_EACH void mxi_philox(unsigned long long key, unsigned long long at, unsigned c2, unsigned c3, unsigned *w)
{
    unsigned c0 = (unsigned)at, c1 = (unsigned)(at >> 32), k0 = (unsigned)key, k1 = (unsigned)(key >> 32);
    for (int round = 0; round < 10; round++) {
        const unsigned long long p = 0xD2511F53ull * c0, q = 0xCD9E8D57ull * c2;
        c0 = (unsigned)(q >> 32) ^ c1 ^ k0;
        c2 = (unsigned)(p >> 32) ^ c3 ^ k1;
        c1 = (unsigned)q;
        c3 = (unsigned)p;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    w[0] = c0; w[1] = c1; w[2] = c2; w[3] = c3;
}

/* A number in (0, 1) of 52 bits, made of 26 and 26 because every processor converts int32 in vectors. */
MX_EACH double mxi_open_unit(unsigned a, unsigned b)
{
    return ((double)(int)(a >> 6) * 67108864.0 + (double)(int)(b >> 6) + 0.5) * 2.220446049250313e-16;
}

/* A number of the standard normal distribution (Box and Muller 1958): cos(pi s) for s in [-1, 1) is sin(pi t) with
   t = 1/2 - |s|, by its Taylor series to 1e-18. */
MX_EACH double mxi_normal_of(unsigned a, unsigned b, unsigned c)
{
    const double t = 0.5 - fabs((double)(int)c * 4.656612873077393e-10), z = t * t;
    double y = 5.392664662608128e-10;
    y = y * z - 2.2948428997269873e-08;
    y = y * z + 7.952054001475513e-07;
    y = y * z - 2.1915353447830217e-05;
    y = y * z + 0.0004663028057676126;
    y = y * z - 0.007370430945714351;
    y = y * z + 0.08214588661112823;
    y = y * z - 0.5992645293207921;
    y = y * z + 2.5501640398773455;
    y = y * z - 5.16771278004997;
    y = y * z + 3.141592653589793;
    return sqrt(-2.0 * MX_LOG(mxi_open_unit(a, b))) * (t * y);
}

/* A try of the gamma distribution of shape alpha, or alpha + 1 for those below 1 (Marsaglia and Tsang, "A simple method
   for generating gamma variables", 2000); 95 % are taken at least.  Of an infinite shape the test is NaN, and taken. */
MX_EACH double mxi_gamma_try(unsigned a, unsigned b, unsigned c, unsigned e, double alpha)
{
    const double d = (alpha < 1.0 ? alpha + 1.0 : alpha) - 1.0 / 3.0;
    const double x = mxi_normal_of(a, b, c), u = ((double)(int)(e >> 1) + 0.5) * 4.656612873077393e-10;
    const double root = 1.0 + x / sqrt(9.0 * d), v = root * root * root;
    const double test = MX_LOG(u) - (0.5 * x * x + d * ((1.0 - v) + MX_LOG(v > 0.0 ? v : 1.0)));
    const double found = (v > 0.0) & !(test >= 0.0) ? d * v : -1.0;
    return alpha >= 0.0 ? found : (double)NAN;
}

/* What takes a number of shape alpha + 1 to shape alpha. */
MX_EACH double mxi_gamma_factor(unsigned a, unsigned b, double alpha)
{
    const double f = MX_EXP(MX_LOG(mxi_open_unit(a, b)) / alpha);
    return alpha < 1.0 ? f : 1.0;
}

/* The first try that is taken, from one on. */
MX_EACH double mxi_gamma_tried(unsigned long long key, unsigned long long i, double alpha, unsigned attempt)
{
    double r = -1.0;
    for (; r < 0.0 && attempt < 1000; attempt++) {
        unsigned w[4];
        mxi_philox(key, i, attempt, 1, w);
        r = mxi_gamma_try(w[0], w[1], w[2], w[3], alpha);
    }
    return r;
}

/* The number of element i. */
MX_EACH double mxi_gamma_of(unsigned long long key, unsigned long long i, double alpha)
{
    double r = mxi_gamma_tried(key, i, alpha, 0);
    if (alpha < 1.0) {
        unsigned w[4];
        mxi_philox(key, i, 0, 2, w);
        r *= mxi_gamma_factor(w[0], w[1], alpha);
    }
    return r;
}

/* The mean from which Poisson's distribution is drawn by rejection, and below by the inverse of its sums. */
#define MX_MANY 64.0

/* How many terms exp(-lam) lam^k / k! add up to less than u, for lam below MX_MANY.  Rounded, all of them may add up to less
   than a u near 1: beyond the mean, terms that no longer count end it. */
MX_EACH double mxi_poisson_few(double u, double lam)
{
    double p = MX_EXP(-lam), sum = p, k = 0.0;
    while ((u > sum) & ((p > 1e-17) | (k < lam))) {
        k += 1.0;
        p *= lam * (1.0 / k);
        sum += p;
    }
    return k;
}

/* The logarithm of the probability of k, by the deviance k log(k / lam) + lam - k and Stirling's series: nothing large is
   subtracted from anything large.  Below k = 10 it errs; from means so large, these are never seen. */
MX_EACH double mxi_log_poisson(double k, double lam)
{
    const double t = (lam - k) / k, r = 1.0 / k, s = r * r;
    const double small = t * t * (-1.0 / 2 + t * (1.0 / 3 - t * (1.0 / 4 - t * (1.0 / 5 - t * (1.0 / 6 - t * (1.0 / 7))))));
    const double rest = r * (1.0 / 12 - s * (1.0 / 360 - s * (1.0 / 1260 - s * (1.0 / 1680))));
    return k * (fabs(t) < 0.01 ? small : MX_LOG(lam / k) - t) - 0.5 * MX_LOG(6.283185307179586 * k) - rest;
}

/* A try of Poisson's distribution of a mean from MX_MANY on (Hormann, "The transformed rejection method for generating
   Poisson random variables", 1993); of 64, 87 % are taken.  So large a mean that its deviation is below rounding stands
   for itself. */
MX_EACH double mxi_poisson_try(unsigned a, unsigned b, unsigned c, unsigned e, double lam)
{
    const double u = mxi_open_unit(a, b) - 0.5, v = mxi_open_unit(c, e), us = 0.5 - fabs(u);
    const double wide = 0.931 + 2.53 * sqrt(lam), slope = -0.059 + 0.02483 * wide;
    const double k = floor((2.0 * slope / us + wide) * u + lam + 0.43);
    const int sure = (us >= 0.07) & (v <= 0.9277 - 3.6224 / (wide - 2.0)), never = (k < 0.0) | ((us < 0.013) & (v > us));
    const double height = v * (1.1239 + 1.1328 / (wide - 3.4)) / (slope / (us * us) + wide);
    const double found = sure | (!never & (MX_LOG(height) <= mxi_log_poisson(k, lam))) ? k : -1.0;
    return lam < 1e36 ? found : lam;
}

/* The first try that is taken, from one on. */
MX_EACH double mxi_poisson_tried(unsigned long long key, unsigned long long i, double lam, unsigned attempt)
{
    double r = -1.0;
    for (; r < 0.0 && attempt < 1000; attempt++) {
        unsigned w[4];
        mxi_philox(key, i, attempt, 3, w);
        r = mxi_poisson_try(w[0], w[1], w[2], w[3], lam);
    }
    return r;
}

/* The number of element i. */
MX_EACH double mxi_poisson_of(unsigned long long key, unsigned long long i, double lam)
{
    unsigned w[4];
    if (!(lam >= 0.0))
        return (double)NAN;
    if (lam >= MX_MANY)
        return mxi_poisson_tried(key, i, lam, 0);
    mxi_philox(key, i, 0, 3, w);
    return mxi_poisson_few(mxi_open_unit(w[0], w[1]), lam);
}

#endif
