/* mxop_power.h - loops for powers by one number: whole and half exponents are products and roots, which take a tenth of
 * the time of a logarithm and an exponential.  Included by the generated instruction modules.
 *
 * mx_power_by_<type>(n, o, x, y) tells whether it knew the exponent.  Results have the cases of C's pow: a root takes
 * -0 for 0, and -inf for inf. */
#ifndef MXOP_POWER_H
#define MXOP_POWER_H

#include "mxop_block.h"
#include "mxop_math.h"

/* 1 where all are the same one of those exponents whose products pow takes too, so that no result depends on what stands
 * beside it: an exponent that was spread out to an array. */
#define MXI_ALL_SAME(T, name)                                                           \
    static int name(const T *x, ptrdiff_t n)                                            \
    {                                                                                   \
        int other = 0;                                                                  \
        if (n < 1 || (x[0] != 1 && x[0] != 2 && x[0] != 3)) return 0;                   \
        for (ptrdiff_t i = 0; i < n; i++) other |= x[i] != x[0];                        \
        return !other;                                                                  \
    }
MXI_ALL_SAME(float, mx_all_same_f32)
MXI_ALL_SAME(double, mx_all_same_f64)

#define MXI_POWER(T, VALUE)                                                             \
    do {                                                                                \
        MX_IVDEP                                                                        \
        for (ptrdiff_t i = 0; i < n; i++) { const T a = x[i]; o[i] = (VALUE); }         \
        return 1;                                                                       \
    } while (0)

MX_INLINE double mxi_root_of(double a) { return a == -(double)INFINITY ? (double)INFINITY : a + 0.0; }
MX_INLINE float mxi_root_of_f32(float a) { return a == -MX_INF_F32 ? MX_INF_F32 : a + 0.0f; }

/* Squares and cubes are those of formulas.  Other products of floats in double neither overflow nor vanish before their result
   does, and are rounded once. */
static int mx_power_by_f32(ptrdiff_t n, float *MX_RESTRICT o, const float *MX_RESTRICT x, float y)
{
    if (y == 2.0f) MXI_POWER(float, a * a);
    if (y == 3.0f) MXI_POWER(float, a * a * a);
    if (y == 4.0f) MXI_POWER(float, (float)(((double)a * a) * ((double)a * a)));
    if (y == 0.5f) MXI_POWER(float, sqrtf(mxi_root_of_f32(a)));
    if (y == -0.5f) MXI_POWER(float, mx_rsqrt_f32(mxi_root_of_f32(a)));
    if (y == 1.5f) MXI_POWER(float, (float)(mxi_root_of(a) * sqrt(mxi_root_of(a))));
    if (y == 2.5f) MXI_POWER(float, (float)((double)a * a * sqrt(mxi_root_of(a))));
    if (y == -1.0f) MXI_POWER(float, 1.0f / a);
    if (y == -2.0f) MXI_POWER(float, (float)(1.0 / ((double)a * a)));
    if (y == -3.0f) MXI_POWER(float, (float)(1.0 / ((double)a * a * a)));
    if (y == -1.5f) MXI_POWER(float, (float)(1.0 / (mxi_root_of(a) * sqrt(mxi_root_of(a)))));
    if (y == 1.0f) MXI_POWER(float, a);
    return 0;
}

static int mx_power_by_f64(ptrdiff_t n, double *MX_RESTRICT o, const double *MX_RESTRICT x, double y)
{
    if (y == 2.0) MXI_POWER(double, a * a);
    if (y == 3.0) MXI_POWER(double, a * a * a);
    if (y == 4.0) MXI_POWER(double, (a * a) * (a * a));
    if (y == 0.5) MXI_POWER(double, sqrt(mxi_root_of(a)));
    if (y == -0.5) MXI_POWER(double, 1.0 / sqrt(mxi_root_of(a)));
    if (y == 1.5) MXI_POWER(double, mxi_root_of(a) * sqrt(mxi_root_of(a)));
    if (y == -1.0) MXI_POWER(double, 1.0 / a);
    if (y == -2.0) MXI_POWER(double, (1.0 / a) * (1.0 / a));
    if (y == 1.0) MXI_POWER(double, a);
    return 0;
}

/* Of integers, the products of mx_ipow, for a short run of elements at a time. */
#define MXI_POWER_INTEGER(T, U, name)                                                   \
    static int name(ptrdiff_t n, T *MX_RESTRICT o, const T *MX_RESTRICT x, T y)         \
    {                                                                                   \
        enum { run = 256 };                                                             \
        if (y < 0) return 0;                                                            \
        for (ptrdiff_t i = 0; i < n; i += run) {                                        \
            U base[run], r[run];                                                        \
            const int m = n - i < run ? (int)(n - i) : run;                             \
            for (int k = 0; k < m; k++) { base[k] = (U)x[i + k]; r[k] = 1; }            \
            for (uint64_t e = (uint64_t)y;;) {                                          \
                if (e & 1) for (int k = 0; k < m; k++) r[k] = (U)(r[k] * base[k]);      \
                if ((e >>= 1) == 0) break;                                              \
                for (int k = 0; k < m; k++) base[k] = (U)(base[k] * base[k]);           \
            }                                                                           \
            for (int k = 0; k < m; k++) o[i + k] = (T)r[k];                             \
        }                                                                               \
        return 1;                                                                       \
    }
MXI_POWER_INTEGER(int8_t, uint8_t, mx_power_by_i8)
MXI_POWER_INTEGER(uint8_t, uint8_t, mx_power_by_u8)
MXI_POWER_INTEGER(int32_t, uint32_t, mx_power_by_i32)
MXI_POWER_INTEGER(int64_t, uint64_t, mx_power_by_i64)

#endif
