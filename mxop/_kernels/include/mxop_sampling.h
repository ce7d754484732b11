/* mxop_sampling.h - the loops of the instructions that draw by rejection: the first tries of 64 elements side by side, in
   vectors; what they leave over one by one, as in mxop_samplers.h, with the same bits. */
#ifndef MXOP_SAMPLING_H
#define MXOP_SAMPLING_H

#include "mxop_math.h"
#include "mxop_random.h"
#include "mxop_samplers.h"

#define MX_SIDE 64       /* elements that are drawn side by side */
#define MX_ALONE 8       /* up to so many, one by one is quicker */

/* The words of the first call of elements `first` to first + 63: word k of element e is w[k][e]. */
static inline void mxi_first_words(uint64_t key, uint64_t first, uint32_t purpose, uint32_t w[4][MX_SIDE])
{
    for (uint64_t c = 0; c < MX_SIDE; c += 16)
        mx_philox_calls(key, first + c, purpose, w[0] + c, MX_SIDE);
}

static void mxi_gamma_side(uint64_t key, uint64_t first, const double *MX_RESTRICT alpha, double *MX_RESTRICT r)
{
    uint32_t w[4][MX_SIDE];
    int small = 0;
    mxi_first_words(key, first, 1, w);
    MX_IVDEP
    for (int e = 0; e < MX_SIDE; e++) r[e] = mxi_gamma_try(w[0][e], w[1][e], w[2][e], w[3][e], alpha[e]);
    for (int e = 0; e < MX_SIDE; e++) {
        small |= alpha[e] < 1.0;
        if (r[e] < 0.0) r[e] = mxi_gamma_tried(key, first + e, alpha[e], 1);
    }
    if (small) {
        mxi_first_words(key, first, 2, w);
        MX_IVDEP
        for (int e = 0; e < MX_SIDE; e++) r[e] *= mxi_gamma_factor(w[0][e], w[1][e], alpha[e]);
    }
}

/* mxi_poisson_few of all elements at once: a step for all as long as any goes on.  A mean of 0 is done at once. */
static void mxi_poisson_few_side(uint32_t w[4][MX_SIDE], const double *MX_RESTRICT lam, double *MX_RESTRICT r)
{
    double u[MX_SIDE], mean[MX_SIDE], p[MX_SIDE], sum[MX_SIDE];
    int64_t more = 0;
    MX_IVDEP
    for (int e = 0; e < MX_SIDE; e++) {
        mean[e] = (lam[e] > 0.0) & (lam[e] < MX_MANY) ? lam[e] : 0.0;
        u[e] = mxi_open_unit(w[0][e], w[1][e]);
        p[e] = sum[e] = MX_EXP(-mean[e]);
        r[e] = 0.0;
    }
    for (double k = 1.0;; k += 1.0) {
        const double part = 1.0 / k;
        more = 0;
        MX_IVDEP
        for (int e = 0; e < MX_SIDE; e++) {
            const int64_t on = (u[e] > sum[e]) & ((p[e] > 1e-17) | (k - 1.0 < mean[e]));
            more |= on;
            r[e] = on ? k : r[e];
            p[e] *= mean[e] * part;
            sum[e] += p[e];
        }
        if (!more) break;
    }
}

static void mxi_poisson_side(uint64_t key, uint64_t first, const double *MX_RESTRICT lam, double *MX_RESTRICT r)
{
    uint32_t w[4][MX_SIDE];
    double found[MX_SIDE];
    int few = 0, many = 0;
    mxi_first_words(key, first, 3, w);
    for (int e = 0; e < MX_SIDE; e++) {
        few |= lam[e] < MX_MANY;
        many |= lam[e] >= MX_MANY;
    }
    if (few) mxi_poisson_few_side(w, lam, r);
    if (many) {
        MX_IVDEP
        for (int e = 0; e < MX_SIDE; e++)
            found[e] = mxi_poisson_try(w[0][e], w[1][e], w[2][e], w[3][e], lam[e] >= MX_MANY ? lam[e] : MX_MANY);
        for (int e = 0; e < MX_SIDE; e++)
            if (lam[e] >= MX_MANY) r[e] = found[e] >= 0.0 ? found[e] : mxi_poisson_tried(key, first + e, lam[e], 1);
    }
    for (int e = 0; e < MX_SIDE; e++) r[e] = lam[e] >= 0.0 ? r[e] : (double)NAN;
}

/* The loop of an instruction: elements start to start + n; `p` is the parameter of each, or of all when it is one. */
#define MX_SAMPLE(name, type) \
static void name##_##type##_loop(ptrdiff_t n, type *o, const type *p, int one, uint64_t key, uint64_t start) \
{ \
    double side[MX_SIDE], r[MX_SIDE]; \
    ptrdiff_t i = 0; \
    while (i < n) { \
        const ptrdiff_t first = (ptrdiff_t)((start + i) % MX_SIDE), rest = MX_SIDE - first, left = n - i; \
        const ptrdiff_t count = rest < left ? rest : left; \
        if (count <= MX_ALONE) { \
            for (ptrdiff_t e = i; e < i + count; e++) o[e] = (type)mxi_##name##_of(key, start + e, (double)p[one ? 0 : e]); \
        } else { \
            for (ptrdiff_t e = 0; e < MX_SIDE; e++) side[e] = (double)p[one ? 0 : i]; \
            if (!one) \
                for (ptrdiff_t e = 0; e < count; e++) side[first + e] = (double)p[i + e]; \
            mxi_##name##_side(key, start + i - first, side, r); \
            for (ptrdiff_t e = 0; e < count; e++) o[i + e] = (type)r[first + e]; \
        } \
        i += count; \
    } \
}
MX_SAMPLE(gamma, float)
MX_SAMPLE(gamma, double)
MX_SAMPLE(poisson, float)
MX_SAMPLE(poisson, double)

#endif
