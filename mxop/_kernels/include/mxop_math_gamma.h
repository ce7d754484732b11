/* mxop_math_gamma.h - gamma, log|gamma| and digamma in double.  Included by mxop_math.h.
 *
 * Doubles of positive numbers in vectors, below 0 one by one.  Around x there is an integer n with x = n + f,
 * |f| <= 1/2, exactly.  What is entire (1 / gamma(1 + f)) or smooth (digamma(2 + f)) in f is a Taylor series; the rest is a
 * product or a sum over the steps from f to x.  Values are carried as a sum of two doubles,
 * some 2^-60 of them exact, so that what cancels leaves enough; next to the roots below 0, which
 * a table holds in two doubles, functions are written over the distance from the root, where
 * nothing cancels.  Far out: Stirling's series, and reflection below 0.
 *
 * "ULP a": the largest error in units of the last place, over all binades, dense windows round
 * the poles and roots included; see tools/accuracy.py. */
#ifndef MXOP_MATH_GAMMA_H
#define MXOP_MATH_GAMMA_H

/* ---- sums of two doubles -------------------------------------------------------- */

MX_INLINE mxi_two mxi_sum(double a, double b)
{
    mxi_two s;
    double t;
    s.hi = a + b;
    t = s.hi - a;
    s.lo = (a - (s.hi - t)) + (b - t);
    return s;
}

/* a * b, exactly */
MX_INLINE mxi_two mxi_product(double a, double b)
{
    mxi_two p;
    p.hi = a * b;
    p.lo = mxi_product_error(a, b, p.hi);
    return p;
}

MX_INLINE mxi_two mxi_add(mxi_two a, mxi_two b)
{
    mxi_two s = mxi_sum(a.hi, b.hi);
    return mxi_sum(s.hi, s.lo + (a.lo + b.lo));
}

MX_INLINE mxi_two mxi_times(mxi_two a, mxi_two b)
{
    mxi_two p = mxi_product(a.hi, b.hi);
    return mxi_sum(p.hi, p.lo + (a.hi * b.lo + a.lo * b.hi));
}

MX_INLINE mxi_two mxi_over(mxi_two a, mxi_two b)
{
    double q = a.hi / b.hi;
    mxi_two p = mxi_product(q, b.hi);
    return mxi_sum(q, (((a.hi - p.hi) - p.lo) + (a.lo - q * b.lo)) / b.hi);
}

MX_INLINE mxi_two mxi_pair(double hi, double lo)
{
    mxi_two r;
    r.hi = hi;
    r.lo = lo;
    return r;
}
MX_INLINE mxi_two mxi_one(double a) { return mxi_pair(a, 0.0); }
MX_INLINE mxi_two mxi_minus(mxi_two a) { return mxi_pair(-a.hi, -a.lo); }

/* log(x), x > 0: as mx_log_f64, with s = f / (2 + f) in two parts. */
MX_INLINE mxi_two mxi_log_two(mxi_two x)
{
    double e, f = mxi_log_split(x.hi, &e);
    mxi_two s = mxi_over(mxi_one(f), mxi_sum(2.0, f));
    double z = s.hi * s.hi;
    double r = MX_PD13(z, 2.0 / 3, 2.0 / 5, 2.0 / 7, 2.0 / 9, 2.0 / 11, 2.0 / 13, 2.0 / 15, 2.0 / 17, 2.0 / 19, 2.0 / 21, 2.0 / 23,
                       2.0 / 25, 2.0 / 27);
    mxi_two total = mxi_sum(e * 0x1.62e42fefap-1, 2.0 * s.hi);
    return mxi_sum(total.hi, total.lo + (e * 0x1.cf79abc9e3b3ap-40 + (2.0 * s.lo + s.hi * z * r) + x.lo / x.hi));
}

/* ---- positive numbers, in vectors: all branches are computed, and one is chosen ---- */

/* (a.hi + a.lo) b */
MX_INLINE mxi_two mxi_scaled(mxi_two a, double b)
{
    mxi_two p = mxi_product(a.hi, b), s;
    p.lo += a.lo * b;
    s.hi = p.hi + p.lo;
    s.lo = (p.hi - s.hi) + p.lo;
    return s;
}
MX_INLINE mxi_two mxi_inverse(double y)
{
    double r = 1.0 / y;
    mxi_two p = mxi_product(r, y);
    return mxi_pair(r, ((1.0 - p.hi) - p.lo) * r);
}
MX_INLINE mxi_two mxi_choose(int first, mxi_two a, mxi_two b) { return mxi_pair(first ? a.hi : b.hi, first ? a.lo : b.lo); }
MX_INLINE double mxi_nearest(double x) { return (x + MX_ROUND_F64) - MX_ROUND_F64; }

/* (x - 1) (x - 2) ... (x - n + 1), n <= 8 */
MX_INLINE mxi_two mxi_steps_down(double x, double n)
{
    mxi_two p = mxi_one(1.0);
#define MXI_STEP(k) p = mxi_choose(n > k, mxi_scaled(p, x - k), p);
    MXI_STEP(1.0) MXI_STEP(2.0) MXI_STEP(3.0) MXI_STEP(4.0) MXI_STEP(5.0) MXI_STEP(6.0) MXI_STEP(7.0)
#undef MXI_STEP
    return p;
}

/* ---- gamma ------------------------------------------------------------------------ */

/* 1 / gamma(1 + f) = 1 + f u: its Taylor series. */
static const mxi_two mxi_rgamma_c1 = {0x1.2788cfc6fb619p-1, -0x1.6cb90701fbfabp-58};
static const mxi_two mxi_rgamma_c2 = {-0x1.4fcf4026afa2ep-1, 0x1.8a3db7a90c42ap-56};
static const double mxi_rgamma_tail[] = {
        -4.20026350340952370e-02, 1.66538611382291479e-01, -4.21977345555443334e-02,
        -9.62197152787697303e-03, 7.21894324666309990e-03, -1.16516759185906517e-03,
        -2.15241674114950975e-04, 1.28050282388116196e-04, -2.01348547807882387e-05,
        -1.25049348214267063e-06, 1.13302723198169593e-06, -2.05633841697760707e-07,
        6.11609510448141609e-09, 5.00200764446922295e-09, -1.18127457048702004e-09,
        1.04342671169110054e-10, 7.78226343990507081e-12, -3.69680561864220598e-12,
        5.10037028745447575e-13};
#define MXI_RGAMMA_TERMS ((int)(sizeof mxi_rgamma_tail / sizeof *mxi_rgamma_tail))

MX_INLINE mxi_two mxi_rgamma_slope(double f)
{
    double s = mxi_rgamma_tail[MXI_RGAMMA_TERMS - 1];
    MX_UNROLLED for (int k = MXI_RGAMMA_TERMS - 2; k >= 0; k--) s = MX_FMA(s, f, mxi_rgamma_tail[k]);
    return mxi_add(mxi_rgamma_c1, mxi_times(mxi_one(f), mxi_add(mxi_rgamma_c2, mxi_one(s * f))));
}

MX_INLINE mxi_two mxi_rgamma(double f)
{
    return mxi_add(mxi_one(1.0), mxi_times(mxi_one(f), mxi_rgamma_slope(f)));
}

/* |gamma(x)| = scale * numerator / denominator, from the integer next to x on; |x| < 190.
 * Every factor is exact: it is nearer to 0 than x, and as fine. */
static inline double mxi_gamma_parts(double x, mxi_two *numerator, mxi_two *denominator)
{
    int n = (int)rint(x);
    double f = x - n, scale = n > 100 ? 0x1p64 : n < -100 ? 0x1p-200 : 1.0;
    mxi_two p = mxi_one(n > 100 ? 0x1p-64 : scale), g = mxi_rgamma(f);
    for (int k = 1; k < n; k++)
        p = mxi_times(p, mxi_one(x - k));
    for (int k = 0; k <= -n; k++)
        p = mxi_times(p, mxi_one(x + k));
    *numerator = n >= 1 ? p : mxi_one(1.0);
    *denominator = n >= 1 ? g : mxi_times(g, p);
    return scale;
}

/* log gamma(x) from l = log(x): (x - 1/2)(l - 1) + log(2 pi)/2 - 1/2 + 1 / (12 x) - ... for x >= 8 */
MX_INLINE mxi_two mxi_stirling(double x, mxi_two l)
{
    double r = 1.0 / x, z = r * r;
    double tail = r * MX_PD9(z, 1.0 / 12, -1.0 / 360, 1.0 / 1260, -1.0 / 1680, 1.0 / 1188, -691.0 / 360360, 1.0 / 156,
                             -3617.0 / 122400, 43867.0 / 244188);
    l = mxi_add(l, mxi_one(-1.0));
    mxi_two p = mxi_product(x - 0.5, l.hi), s = mxi_sum(p.hi, 0x1.acfe390c97d69p-2 + tail);
    return mxi_pair(s.hi, s.lo + (p.lo + (x - 0.5) * l.lo));
}

/* From the integer next to x below 8, e to Stirling's series above, whose error grows with x.  ULP 1.3 up to 60 */
MX_INLINE double mx_gamma_fast_f64(double x)
{
    const int far = x >= 8.0;
    double t = far ? 3.0 : x, n = mxi_nearest(t);
    mxi_two g = mxi_rgamma(t - n), q = mxi_over(mxi_steps_down(t, n), mxi_choose(n == 0.0, mxi_scaled(g, t), g));
    mxi_two l = mxi_stirling(x, mxi_log_two(mxi_one(x)));
    double e = mx_exp_f64(l.hi);
    return far ? e + e * l.lo : q.hi + q.lo;
}

/* Poles at the negative integers are NaN, gamma(+-0) = +-inf. */
static inline double mx_gamma_f64(double x)
{
    mxi_two a, b, q;
    double scale;
    if (MX_ORDINARY_gamma_f64(x))
        return mx_gamma_fast_f64(x);
    if (x != x || x == 0.0)
        return 1.0 / x;
    if (x < 0.0 && x == floor(x))
        return (double)NAN;
    if (x > 172.0)
        return (double)INFINITY;
    if (x < -188.0)
        return fmod(floor(x), 2.0) == 0.0 ? 0.0 : -0.0;
    if (fabs(x) < 0x1p-60)
        return 1.0 / x;
    scale = mxi_gamma_parts(x, &a, &b);
    q = mxi_over(a, b);
    return (q.hi + q.lo) * scale;
}

/* ---- log|gamma| --------------------------------------------------------------------- */

/* The roots below 0, two between neighbouring poles from -2 on; below -16 they are so close to
 * the poles that no double comes near one. */
static const mxi_two mxi_gammaln_roots[] = {
        {-2.4570247382208006, -3.70756108155132657e-17}, {-2.7476826467274127, 9.05534032933831523e-17},
        {-3.14358088834998, -2.18181798523317145e-16}, {-3.955294284858598, -1.99942839174634804e-17},
        {-4.039361839740537, 2.11439955039806018e-16}, {-4.991544640560048, 1.51744117605717222e-16},
        {-5.0082181683225935, -4.39263534910158152e-17}, {-5.998607480080875, -3.31186247889379523e-16},
        {-6.001385294453155, 6.41584728793304175e-17}, {-6.999801507890638, 1.05501300374000232e-17},
        {-7.000198333407325, 2.50435417363240923e-16}, {-7.999975197095821, -5.26173712857235391e-17},
        {-8.000024800270682, -4.35458629786010712e-16}, {-8.999997244250977, -2.21856205097271320e-16},
        {-9.000002755714823, -9.49134861162320788e-17}, {-9.99999972442663, 4.88303761864244256e-16},
        {-10.000000275573013, -3.49097083326420570e-16}, {-10.99999997494789, 1.98439983069854066e-16},
        {-11.000000025052106, -6.85084981228617503e-16}, {-11.999999997912324, -1.00206939201030361e-16},
        {-12.000000002087676, 1.22225481120481850e-16}, {-12.99999999983941, 6.74726203309633698e-16},
        {-13.00000000016059, -6.74591948496434198e-16}, {-13.99999999998853, 8.09486074192660701e-16},
        {-14.00000000001147, -8.09485370422266209e-16}, {-14.999999999999236, 8.82932241476868037e-16},
        {-15.000000000000764, -8.82932238271027445e-16}, {-15.999999999999952, -1.66861339926505398e-16},};

/* log|gamma(x) / gamma(r)| for a root r: 1 + y for each factor of gamma over that of the root. */
static inline double mxi_gammaln_near(double x, mxi_two root)
{
    int n = (int)rint(root.hi);
    double a = x - n, b = root.hi - n;
    mxi_two h = mxi_sum(x - root.hi, -root.lo), s = {0.0, 0.0}, d = {0.0, 0.0}, p;
    for (int k = MXI_RGAMMA_TERMS - 1; k >= -3; k--) {  /* the slope of 1 / gamma(1 + f) between a and b */
        mxi_two c = k >= 0 ? mxi_one(mxi_rgamma_tail[k]) : k == -1 ? mxi_rgamma_c2 : k == -2 ? mxi_rgamma_c1 : mxi_one(1.0);
        d = mxi_add(mxi_times(d, mxi_one(a)), s);
        s = mxi_add(mxi_times(s, mxi_sum(b, root.lo)), c);
    }
    p = mxi_over(mxi_times(h, d), s);
    for (int k = 0; k <= -n; k++) {                     /* (1 + p) (1 + h / (r + k)) - 1 */
        mxi_two y = mxi_over(h, k == -n ? mxi_sum(b, root.lo) : mxi_sum(root.hi + k, root.lo));
        p = mxi_add(mxi_add(p, y), mxi_times(p, y));
    }
    return -(log1p(p.hi) + p.lo / (1.0 + p.hi));
}

/* Above 8, Stirling's series; below, next to the roots 1 and 2 the logarithm of one more than what is exact.  ULP 1.1 */
MX_INLINE double mx_gammaln_fast_f64(double x)
{
    const int far = x >= 8.0;
    double t = far ? 3.0 : x, n = mxi_nearest(t), f = t - n;
    mxi_two u = mxi_rgamma_slope(f), one = mxi_one(1.0), g = mxi_add(one, mxi_scaled(u, f));
    mxi_two p = mxi_choose(n == 2.0, mxi_scaled(mxi_add(one, mxi_minus(u)), f), mxi_steps_down(t, n));
    mxi_two q = mxi_over(p, mxi_choose(n == 0.0, mxi_scaled(g, t), g));
    q = mxi_choose(n == 2.0, mxi_add(one, q), mxi_choose(n == 1.0, g, q));
    mxi_two l = mxi_log_two(mxi_choose(far, mxi_one(x), q)), s = mxi_stirling(x, l);
    double near = l.hi + l.lo;
    return far ? s.hi + s.lo : n == 1.0 ? 0.0 - near : near;
}

static inline double mxi_gammaln_far(double x)
{
    mxi_two l = mxi_log_two(mxi_one(x)), s = mxi_stirling(x, l);
    return x > 0x1p900 ? x * (l.hi - 1.0) : s.hi + s.lo; /* parts of the product might overflow before it does */
}

/* Infinite at 0 and the negative integers. */
static inline double mx_gammaln_f64(double x)
{
    mxi_two a, b, q, u;
    double f, found, n = rint(x);
    if (MX_ORDINARY_gammaln_f64(x))
        return mx_gammaln_fast_f64(x);
    if (x != x)
        return x;
    if (fabs(x) == (double)INFINITY || (x <= 0.0 && x == floor(x)))
        return (double)INFINITY;
    if (x >= 8.0)
        return mxi_gammaln_far(x);
    if (x < -160.0)
        return log(MX_PI / (-x * fabs(sin(MX_PI * (x - n))))) - mxi_gammaln_far(-x);
    if (fabs(x) < 0x1p-60)
        return -log(fabs(x));
    f = x - n;
    u = mxi_rgamma_slope(f);
    if (n == 1.0) {                              /* -log(1 + f u) */
        u = mxi_times(mxi_one(f), u);
        return 0.0 - (log1p(u.hi) + u.lo / (1.0 + u.hi));
    }
    if (n == 2.0) {                              /* log((1 + f) / (1 + f u)) */
        q = mxi_over(mxi_times(mxi_one(f), mxi_add(mxi_one(1.0), mxi_minus(u))), mxi_rgamma(f));
        return log1p(q.hi) + q.lo / (1.0 + q.hi);
    }
    f = log(mxi_gamma_parts(x, &a, &b));         /* 0 but for scaled products */
    q = mxi_over(a, b);
    if (q.hi < 0.0)
        q.hi = -q.hi, q.lo = -q.lo;
    q = mxi_log_two(q);
    found = q.hi + (q.lo + f);
    if (x < -2.0 && x > -16.0 && fabs(found) < 0.3) {
        int at = 2 * ((int)-x - 2);
        at += fabs(x - mxi_gammaln_roots[at].hi) < fabs(x - mxi_gammaln_roots[at + 1].hi) ? 0 : 1;
        return mxi_gammaln_near(x, mxi_gammaln_roots[at]);
    }
    return found;
}

/* ---- floats: half the digits, in vectors, by Stirling's series eight steps up, where it is short ---- */

/* sin(pi f) / pi for |f| <= 1/2 */
MX_INLINE double mxi_sin_turns(double f)
{
    double z = f * f;
    return f * MX_PD9(z, 1.0, -1.64493406684822628, 8.11742425283337249e-01, -1.90751824121430447e-01,
                      2.61478478045289289e-02, -2.34608088681835040e-03, 1.48427800849522431e-04,
                      -6.97200042863180938e-06, 2.44930748095503320e-07);
}
MX_INLINE double mxi_cos_turns(double f)
{
    double z = f * f;
    return MX_PD9(z, 1.0, -4.93480220054467677, 4.05871212641649754, -1.33526276884346451, 2.35330630129807506e-01,
                  -2.58068887393517000e-02, 1.92955628361005224e-03, -1.04566580824058873e-04, 4.14959182750277123e-06);
}
/* A loop of one of these.  Next to roots below `least` too little is left: there the digits of a double are found one by one. */
#define MX_GAMMA_LOOP(name, least)                                                                          \
    static void mx_##name##_loop_f32(ptrdiff_t n, float *MX_RESTRICT o, const float *MX_RESTRICT x)         \
    {                                                                                                       \
        float t[MX_RUN];                                                                                    \
        for (ptrdiff_t i = 0, k, m; i < n; i += m) {                                                        \
            uint32_t close = 0, below = 0;                                                                  \
            m = n - i < MX_RUN ? n - i : MX_RUN;                                                            \
            for (k = 0; k < m; k++) below |= x[i + k] < 0.0f;                                               \
            if (below) {                                                                                    \
                MX_IVDEP                                                                                    \
                for (k = 0; k < m; k++) t[k] = mx_##name##_fast_f32(x[i + k], 1);                           \
            } else {                                                                                        \
                MX_IVDEP                                                                                    \
                for (k = 0; k < m; k++) t[k] = mx_##name##_fast_f32(x[i + k], 0);                           \
            }                                                                                               \
            for (k = 0; k < m; k++) close |= (x[i + k] < least) & (fabsf(t[k]) < 0x1p-14f);        \
            for (k = 0; close && k < m; k++)                                                                \
                if (x[i + k] < least && fabsf(t[k]) < 0x1p-14f) t[k] = (float)mx_##name##_f64((double)x[i + k]); \
            memcpy(o + i, t, (size_t)m * sizeof(float));                                                    \
        }                                                                                                   \
    }
/* Below 1/2 by reflection.  ULP 0.51 */
MX_INLINE float mx_gamma_f32(float x)
{
    double d = (double)x, y = d < 0.5 ? 1.0 - d : d;
    y = y > 60.0 ? 60.0 : y;
    double z = y + 8.0, t = y * (y + 7.0), v = 1.0 / z, w = v * v;
    double rest = v * MX_PD4(w, 1.0 / 12, -1.0 / 360, 1.0 / 1260, -1.0 / 1680);
    double g = 2.5066282746310002 * mxi_exp2(MX_FMA(z - 0.5, mxi_log2(z), (rest - z) * 1.4426950408889634))
             / (t * (t + 6.0) * ((t + 10.0) * (t + 12.0)));
    double n = floor(d + 0.5), f = d - n, back = 1.0 / (mxi_sin_turns(f) * g);
    back = floor(0.5 * n) == 0.5 * n ? back : -back;
    back = (d < 0.0) & (f == 0.0) ? (double)NAN : back;
    return (float)(d < 0.5 ? back : g);
}
/* By reflection `below` 0; next to the roots 1 and 2 a polynomial.  ULP 0.52 */
MX_INLINE float mx_gammaln_fast_f32(float x, int below)
{
    double d = (double)x, y = below & (d < 0.0) ? 1.0 - d : d, u = (y < 1.5 ? y + 1.0 : y) - 2.0;
    double near = u * MX_PD11(u, 4.22784335106279829e-01, 3.22467033661982927e-01, -6.73523027317875222e-02,
                              2.05807891286883433e-02, -7.38549178964739619e-03, 2.89094471711317516e-03,
                              -1.19351908687832060e-03, 5.05718609343584649e-04, -2.18747290733226838e-04,
                              1.14894786313029392e-04, -5.61828252074757418e-05);
    double f = d - floor(d + 0.5), turns = below & (d < 0.0) ? fabs(mxi_sin_turns(f)) : 1.0;
    double z = y < 20.0 ? y + 8.0 : y, over = 1.0 / (z * turns), t = y * (y + 7.0), v = turns * over, w = v * v;
    double rest = v * MX_PD4(w, 1.0 / 12, -1.0 / 360, 1.0 / 1260, -1.0 / 1680);
    double far = MX_FMA(z - 0.5, mx_log_fast_f64(z), (rest + 0.91893853320467274) - z);
    double steps = y < 20.0 ? t * (t + 6.0) * ((t + 10.0) * (t + 12.0)) : 1.0;
    int close = (y >= 0.5) & (y < 2.5);
    double back = below & (d < 0.0) ? z * over : 1.0;       /* 1 / turns */
    double by = mx_log_fast_f64((close ? (y < 1.5 ? y : 1.0) : steps) * back);
    double found = (close ? near : far) - by;
    found = below & (d < 0.0) ? -found : found;
    return ((d <= 0.0) & (f == 0.0)) | (fabs(d) == (double)INFINITY) ? MX_INF_F32 : (float)found;
}
static inline float mx_gammaln_f32(float x) { return (float)mx_gammaln_f64((double)x); }
MX_GAMMA_LOOP(gammaln, -2.0f)

/* ---- digamma -------------------------------------------------------------------------- */

/* The roots below 0, one between neighbouring poles. */
static const mxi_two mxi_digamma_roots[] = {
        {-0.5040830082644554, -8.15428206243813047e-18}, {-1.5734984731623904, -1.57418569107734703e-17},
        {-2.6107208684441447, 9.88196074697835267e-17}, {-3.635293366436901, 5.45439616317303926e-17},
        {-4.653237761743142, -2.54926862014681930e-16}, {-5.6671624415568855, -3.21530510749483345e-18},
        {-6.678418213073427, 3.47079872349524077e-16}, {-7.687788325031626, -1.35156249464367188e-16},
        {-8.695764163816401, -3.28599037162894473e-16}, {-9.702672540001863, -3.25631784054014768e-16},
        {-10.708740838254144, -6.28721175054030142e-16}, {-11.714133061228955, 8.59825015434383419e-16},
        {-12.718971025749207, -4.75231243210691698e-16}, {-13.723347457363827, 4.52827869151805802e-16},
        {-14.727334416018529, -3.66183999631397863e-17}, {-15.730988906332882, 1.05519563733658417e-16},
        {-16.734356723955734, -1.20395016318001441e-15}, {-17.73747515997759, -5.12577623072723541e-16},
        {-18.7403749447801, 7.75733087402681604e-16}, {-19.74308167259022, 6.50567251669522679e-16},
        {-20.745616863607527, 9.37017795234892398e-16}, {-21.74799876820113, -1.22462339909318166e-15},
        {-22.75024298430606, -1.12686002660541628e-15}, {-23.752362937385183, 8.15701751928073380e-16},
        {-24.75437025782297, -1.31690691786506599e-15}, {-25.756275080771037, 1.30779796831809377e-15},
        {-26.758086286661367, 1.13343371317258348e-15}, {-27.759811695826706, -1.12014822579981093e-16},
        {-28.761458227264864, -1.54057110868874880e-15}, {-29.763032029127462, -4.65720455941139478e-16},
        {-30.76453858671817, -1.05535244341671242e-15}, {-31.765982812458248, -6.70609301293155023e-16},};
#define MXI_DIGAMMA_ROOTS ((int)(sizeof mxi_digamma_roots / sizeof *mxi_digamma_roots))

/* digamma(2 + f) = c0 + c1 f + ...: its Taylor series. */
static const double mxi_digamma_tail[] = {
    -2.02056903159594292e-01, 8.23232337111381857e-02, -3.69277551433699266e-02,
    1.73430619844491402e-02, -8.34927738192282713e-03, 4.07735619794433960e-03,
    -2.00839282608221426e-03, 9.94575127818085256e-04, -4.94188604119464529e-04,
    2.46086553308048320e-04, -1.22713347578489145e-04, 6.12481350587048277e-05,
    -3.05882363070204933e-05, 1.52822594086518710e-05, -7.63719763789976257e-06,
    3.81729326499984022e-06, -1.90821271655393897e-06, 9.53962033872796212e-07,
    -4.76932986787806447e-07, 2.38450502727733004e-07, -1.19219925965311064e-07,
    5.96081890512594801e-08, -2.98035035146522793e-08, 1.49015548283650427e-08,
    -7.45071178983543006e-09, 3.72533402478845728e-09, -1.86265972351304914e-09,
    9.31327432419668166e-10, -4.65662906503378366e-10, 2.32831183367650534e-10,
    -1.16415501727005193e-10, 5.82077208790270145e-11};
#define MXI_DIGAMMA_TERMS ((int)(sizeof mxi_digamma_tail / sizeof *mxi_digamma_tail))
static const mxi_two mxi_digamma_c0 = {0x1.b0ee6072093cep-2, 0x1.6cb90701fbfabp-58};
static const mxi_two mxi_digamma_c1 = {0x1.4a34cc4a60fa6p-1, 0x1.1873d8912200cp-55};

MX_INLINE mxi_two mxi_digamma_2(double f)
{
    double s = mxi_digamma_tail[MXI_DIGAMMA_TERMS - 1];
    MX_UNROLLED for (int k = MXI_DIGAMMA_TERMS - 2; k >= 0; k--) s = MX_FMA(s, f, mxi_digamma_tail[k]);
    return mxi_add(mxi_digamma_c0, mxi_times(mxi_one(f), mxi_add(mxi_digamma_c1, mxi_one(s * f))));
}

/* The distance from a root times the mean slope between, of whose terms none is negative. */
static inline double mxi_digamma_near(double x, mxi_two root)
{
    int n = (int)rint(root.hi);
    double a = x - n, s = 0.0, d = 0.0;
    mxi_two b = mxi_sum(root.hi - n, root.lo), slope;
    for (int k = MXI_DIGAMMA_TERMS - 1; k >= -2; k--) {
        d = d * a + s;
        s = s * b.hi + (k >= 0 ? mxi_digamma_tail[k] : k == -1 ? mxi_digamma_c1.hi : mxi_digamma_c0.hi);
    }
    slope = mxi_one(d);
    for (int k = n; k <= 1; k++)                 /* 1 / (x + j) - 1 / (r + j), divided by r - x */
        slope = mxi_add(slope, mxi_over(mxi_one(1.0), mxi_times(mxi_sum(a, k), mxi_add(b, mxi_one(k)))));
    slope = mxi_times(mxi_sum(x - root.hi, -root.lo), slope);
    return slope.hi + slope.lo;
}

/* log x - 1 / (2 x) - 1 / (12 x^2) + ... for x >= 8 */
MX_INLINE mxi_two mxi_digamma_far(mxi_two x)
{
    double r = 1.0 / x.hi, z = r * r;
    double tail = z * MX_PD9(z, 1.0 / 12, -1.0 / 120, 1.0 / 252, -1.0 / 240, 1.0 / 132, -691.0 / 32760, 1.0 / 12,
                             -3617.0 / 8160, 43867.0 / 14364);
    return mxi_add(mxi_log_two(x), mxi_one(-0.5 * r - tail));
}

/* Above 8, that; below, sums from the integer next to x; next to the root a polynomial.  ULP 1.5 */
MX_INLINE double mx_digamma_fast_f64(double x)
{
    const int far = x >= 8.0, close = (x >= 1.4) & (x < 1.55);
    double h = x - 0x1.762d86356be3fp+0;
    double bend = h * h * MX_PD13(h, -4.42763168983592107e-01, 2.58499760955651027e-01,
                              -1.63942705442406516e-01, 1.07824050691262365e-01, -7.21995612564547114e-02,
                              4.88042881641431072e-02, -3.31611264748473592e-02, 2.25976482322181046e-02,
                              -1.54247659049489591e-02, 1.05387916166121753e-02, -7.20453438635686824e-03,
                              4.92678139572985344e-03, -3.36980165543932808e-03);
    mxi_two rise = mxi_product(h, 0x1.ef72bc8ee38acp-1);
    double root = rise.hi + (rise.lo + (bend + (h * -3.387874303038943e-17 - 9.241265521729427e-17)));
    double t = far ? 3.0 : x, n = mxi_nearest(t), f = t - n;
    mxi_two sum = mxi_digamma_2(f);
    mxi_two below = mxi_minus(mxi_over(mxi_one(1.0), mxi_sum(1.0, f)));
    mxi_two zero = mxi_one(0.0);
    sum = mxi_add(sum, mxi_choose(n <= 1.0, below, zero));
    sum = mxi_add(sum, mxi_choose(n == 0.0, mxi_minus(mxi_inverse(t)), zero));
#define MXI_STEP(k) sum = mxi_add(sum, mxi_choose(n >= k + 2.0, mxi_inverse(n >= k + 2.0 ? t - k : 1.0), zero));
    MXI_STEP(1.0) MXI_STEP(2.0) MXI_STEP(3.0) MXI_STEP(4.0) MXI_STEP(5.0) MXI_STEP(6.0)
#undef MXI_STEP
    mxi_two beyond = mxi_digamma_far(mxi_one(x));
    double found = sum.hi + sum.lo;
    return far ? beyond.hi + beyond.lo : close ? root : found;
}

/* pi / tan(pi f), |f| <= 1/2: the poles at -1, 0 and 1, and what is left of the series. */
static inline mxi_two mxi_pi_cot(double f)
{
    static const mxi_two c = {0x1.4a34cc4a60fa6p+0, 0x1.1873d8912200cp-54};
    double z = f * f, s = 0.0;
    static const double tail[] = {
        1.64646467422276371e-01, 3.46861239688982803e-02, 8.15471239588867920e-03, 1.98915025563617051e-03,
        4.92173106616096640e-04, 1.22496270117409655e-04, 3.05645188173037419e-05, 7.63458652999968044e-06,
        1.90792406774559242e-06, 4.76901005455466009e-07, 1.19216378102518960e-07, 2.98031096567300854e-08,
        7.45066804957691457e-09};
    for (int k = (int)(sizeof tail / sizeof *tail) - 1; k >= 0; k--)
        s = s * z + tail[k];
    mxi_two near = mxi_over(mxi_one(2.0 * f), mxi_add(mxi_one(1.0), mxi_minus(mxi_product(f, f))));
    mxi_two rest = mxi_times(mxi_one(f), mxi_add(c, mxi_one(s * z)));
    mxi_two total = mxi_add(mxi_over(mxi_one(1.0), mxi_one(f)), mxi_minus(near));
    return mxi_add(total, mxi_minus(rest));
}

/* Zero gives -+inf, the negative integers and -inf give NaN. */
static inline double mx_digamma_f64(double x)
{
    mxi_two sum;
    double f, found;
    int n;
    if (MX_ORDINARY_digamma_f64(x))
        return mx_digamma_fast_f64(x);
    if (x != x || x == (double)INFINITY)
        return x;
    if (x == 0.0)
        return copysign((double)INFINITY, -x);
    if (x < 0.0 && x == floor(x))
        return (double)NAN;
    if (x >= 8.0) {
        sum = mxi_digamma_far(mxi_one(x));
        return sum.hi + sum.lo;
    }
    if (x >= 1.4 && x < 1.55)                    /* next to the root above 0 */
        return mxi_digamma_near(x, mxi_pair(0x1.762d86356be3fp+0, 9.54999542996569743e-17));
    if (fabs(x) < 0x1p-60)
        return -1.0 / x;
    f = x - rint(x);
    if (x < -MXI_DIGAMMA_ROOTS) {
        mxi_two cot = mxi_pi_cot(f);
        sum = mxi_add(mxi_digamma_far(mxi_sum(1.0, -x)), mxi_minus(cot));
        return sum.hi + sum.lo;
    }
    n = (int)rint(x);
    sum = mxi_digamma_2(f);                      /* 1 / (x + k) from x to 2 + f, or back */
    for (int k = 0; k < 1 - n; k++)
        sum = mxi_add(sum, mxi_over(mxi_one(-1.0), mxi_one(x + k)));
    if (n <= 1)
        sum = mxi_add(sum, mxi_over(mxi_one(-1.0), mxi_sum(1.0, f)));
    for (int k = 1; k <= n - 2; k++)
        sum = mxi_add(sum, mxi_over(mxi_one(1.0), mxi_one(x - k)));
    found = sum.hi + sum.lo;
    if (x < 0.0 && fabs(found) < 0.5)
        return mxi_digamma_near(x, mxi_digamma_roots[(int)-x]);
    return found;
}

static inline float mx_digamma_f32(float x) { return (float)mx_digamma_f64((double)x); }

/* By reflection `below` 0; the steps are the logarithmic derivative of their product, a polynomial of t.  ULP 0.51 */
MX_INLINE float mx_digamma_fast_f32(float x, int below)
{
    double d = (double)x, y = below & (d < 0.0) ? 1.0 - d : d;
    int up = y < 20.0;
    double z = up ? y + 8.0 : y, v = 1.0 / z, w = v * v;
    double far = MX_FMA(-w, MX_PD8(w, 1.0 / 12, -1.0 / 120, 1.0 / 252, -1.0 / 240, 1.0 / 132, -691.0 / 32760, 1.0 / 12,
                                   -3617.0 / 8160), -0.5 * v);
    double t = y * (y + 7.0), a = t * (t + 6.0), b = (t + 10.0) * (t + 12.0), f = d - floor(d + 0.5);
    double rise = (2.0 * y + 7.0) * MX_FMA(2.0 * t + 6.0, b, a * (2.0 * t + 22.0)), product = a * b;
    double sine = below & (d < 0.0) ? mxi_sin_turns(f) : 1.0, cosine = below & (d < 0.0) ? mxi_cos_turns(f) : 0.0;
    rise = up ? rise : 0.0;
    product = up ? product : 1.0;
    double found = (mx_log_fast_f64(z) - MX_FMA(rise, sine, cosine * product) / (product * sine)) + far;
    found = below & (d < 0.0) & (f == 0.0) ? (double)NAN : found;
    found = d == 0.0 ? copysign((double)INFINITY, -d) : found;
    return d == (double)INFINITY ? MX_INF_F32 : (float)found;
}
MX_GAMMA_LOOP(digamma, 0.0f)

/* A loop of doubles: in vectors, and then what is not ordinary one by one. */
#define MX_GAMMA_LOOP_F64(name)                                                                             \
    static void mx_##name##_loop_f64(ptrdiff_t n, double *MX_RESTRICT o, const double *MX_RESTRICT x)       \
    {                                                                                                       \
        double t[MX_RUN];                                                                                   \
        for (ptrdiff_t i = 0, k, m; i < n; i += m) {                                                        \
            ptrdiff_t other = 0;                                                                            \
            m = n - i < MX_RUN ? n - i : MX_RUN;                                                            \
            for (k = 0; k < m; k++) other += !MX_ORDINARY_##name##_f64(x[i + k]);                           \
            if (other < m) {                                                                                \
                MX_IVDEP                                                                                    \
                for (k = 0; k < m; k++) t[k] = mx_##name##_fast_f64(x[i + k]);                              \
            }                                                                                               \
            for (k = 0; other && k < m; k++)                                                                \
                if (!MX_ORDINARY_##name##_f64(x[i + k])) t[k] = mx_##name##_f64(x[i + k]);                  \
            memcpy(o + i, t, (size_t)m * sizeof(double));                                                   \
        }                                                                                                   \
    }
MX_GAMMA_LOOP_F64(gamma)
MX_GAMMA_LOOP_F64(gammaln)
MX_GAMMA_LOOP_F64(digamma)

#endif
