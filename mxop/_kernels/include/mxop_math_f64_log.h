/* mxop_math_f64_log.h - double logarithms, and what is made of them.  Included by mxop_math.h.
 *
 * x = 2^k m, sqrt(1/2) <= m < sqrt(2); with f = m - 1 and s = f / (2 + f), log m = f - (h - s (h + R(s^2))), h = f^2 / 2.
 *
 * The _fast forms leave out what only arguments of MX_EDGES_ need; loops use them for blocks without such. */
#ifndef MXOP_MATH_F64_LOG_H
#define MXOP_MATH_F64_LOG_H

#define MXI_LN2_HI 0x1.62e42fefap-1                    /* short: a product with an exponent is exact */
#define MXI_LN2_LO 0x1.cf79abc9e3b3ap-40

/* u normal and positive: returns f, sets *k. */
MX_INLINE double mxi_log_split(double u, double *k)
{
    uint64_t d = mx_f64_bits(u) - 0x3fe6a09e667f3bcdu;
    *k = mx_bits_f64(((d + 0x4000000000000000u) >> 52) | 0x4330000000000000u) - (0x1p52 + 1024.0);
    return mx_bits_f64((d & 0x000fffffffffffffu) + 0x3fe6a09e667f3bcdu) - 1.0;
}

/* log(1 + f) - f */
MX_INLINE double mxi_log_rest(double f)
{
    double s = f / (2.0 + f), z = s * s, h = 0.5 * f * f;
    double R = z * MX_PD7(z, 6.66666666666673513e-01, 3.99999999994093192e-01, 2.85714287437077108e-01,
                          2.22221984253259619e-01, 1.81835726187324354e-01, 1.53138236082456830e-01,
                          1.47983616803935347e-01);
    return MX_FMA(s, h + R, -h);
}

/* Logarithms of 2^k (1 + f).  Those to other bases multiply f by a constant in two parts. */
MX_INLINE double mxi_log_joined(double k, double f)
{
    return MX_FMA(k, MXI_LN2_HI, f + MX_FMA(k, MXI_LN2_LO, mxi_log_rest(f)));
}
MX_INLINE double mxi_log2_joined(double k, double f)
{
    double low = MX_FMA(mxi_log_rest(f), 0x1.71547652b82fep+0, f * 0x1.777d0ffda0d24p-56);
    return k + MX_FMA(f, 0x1.71547652b82fep+0, low);
}
MX_INLINE double mxi_log10_joined(double k, double f)
{
    double low = MX_FMA(k, 0x1.fef311f12b358p-46, f * 0x1.95355baaafad3p-57);
    low = MX_FMA(mxi_log_rest(f), 0x1.bcb7b1526e50ep-2, low);
    return MX_FMA(k, 0x1.34413509f78p-2, MX_FMA(f, 0x1.bcb7b1526e50ep-2, low));
}

/* Denormals are lifted by 2^54. */
MX_INLINE double mxi_log_lifted(double x, double *lift)
{
    int tiny = x < 0x1p-1022;
    *lift = tiny ? 54.0 : 0.0;
    return tiny ? x * 0x1p54 : x;
}
MX_INLINE double mxi_log_edges_f64(double x, double y)
{
    y = x < (double)INFINITY ? y : x;
    y = x == 0.0 ? -(double)INFINITY : y;
    return x < 0.0 ? (double)NAN : y;
}

#define MXI_LOG_F64(name)                                                      \
    MX_INLINE double mx_##name##_fast_f64(double x)                            \
    {                                                                          \
        double k, f = mxi_log_split(x, &k);                                \
        return mxi_##name##_joined(k, f);                                      \
    }                                                                          \
    MX_INLINE double mx_##name##_f64(double x)                                 \
    {                                                                          \
        double lift, k, f = mxi_log_split(mxi_log_lifted(x, &lift), &k);   \
        return mxi_log_edges_f64(x, mxi_##name##_joined(k - lift, f));         \
    }
MXI_LOG_F64(log)
MXI_LOG_F64(log2)
MXI_LOG_F64(log10)
#undef MXI_LOG_F64

/* 1 + x = u + c, rounded and lost; log u by the above, with c scaled beside f.  x + 0 is x itself where k = 0.
 * -1 < x < 2^60 */
MX_INLINE double mx_log1p_fast_f64(double x)
{
    double u = 1.0 + x, b = u - 1.0, c = (1.0 - (u - b)) + (x - b);
    double k, f = mxi_log_split(u, &k);
    double scale = mx_bits_f64(mx_f64_bits(f + 1.0) - mx_f64_bits(u) + 0x3ff0000000000000u);   /* 2^-k */
    return copysign(mxi_log_joined(k, MX_FMA(c, scale, f)), x);
}

/* log(x + 1) for any x: what log1p adds does not count beyond 2^60 */
MX_INLINE double mxi_log1p_edges_f64(double x, double y)
{
    y = x < (double)INFINITY ? y : x;
    y = x == -1.0 ? -(double)INFINITY : y;
    return x < -1.0 ? (double)NAN : y;
}
MX_INLINE double mxi_log1p_f64(double x)
{
    double u = 1.0 + x, b = u - 1.0, c = (1.0 - (u - b)) + (x - b);
    double k, f = mxi_log_split(u, &k);
    double scale = mx_bits_f64(mx_f64_bits(f + 1.0) - mx_f64_bits(u) + 0x3ff0000000000000u);
    return mxi_log_joined(k, x < 0x1p60 ? MX_FMA(c, scale, f) : f);
}
MX_INLINE double mx_log1p_f64(double x) { return copysign(mxi_log1p_edges_f64(x, mxi_log1p_f64(x)), x); }

MX_INLINE double mx_softplus_f64(double x)
{
    return (x < 0.0 ? 0.0 : x) + mx_log1p_fast_f64(mx_exp_f64(-fabs(x)));
}
MX_INLINE double mx_log_sigmoid_f64(double x) { return -mx_softplus_f64(-x); }

/* ---- area functions -------------------------------------------------------------- */

/* log(a + sqrt(a^2 + 1)); beyond 2^500, where the square would overflow, log(2 a) */
MX_INLINE double mx_arcsinh_f64(double x)
{
    double a = fabs(x);
    int far = a > 0x1p500;
    double y = mxi_log1p_f64(far ? a : a + a * (a / (1.0 + sqrt(MX_FMA(a, a, 1.0)))));
    y = far ? y + 0.69314718055994531 : y;
    return copysign(a < (double)INFINITY ? y : a, x);
}
MX_INLINE double mx_arccosh_f64(double x)
{
    double t = x - 1.0;
    int far = t > 0x1p500;
    double y = mxi_log1p_f64(far ? t : t + sqrt(MX_FMA(t, t, t + t)));
    y = far ? y + 0.69314718055994531 : y;
    y = x < (double)INFINITY ? y : x;
    return x < 1.0 ? (double)NAN : y;
}

/* (1 + a) / (1 - a) = 2^k m: half its logarithm is k ln2 / 2 + atanh s, s = (m - 1) / (m + 1), which needs no quotient
 * before: s = ((1 + a) - p (1 - a)) / ((1 + a) + p (1 - a)) for p = 2^k, a itself for k = 0.  k comes from a polynomial
 * that is near (1 - a) / (1 + a). */
MX_INLINE double mxi_arctanh_f64(double a)
{
    double u = 1.0 - a;
    uint64_t d = mx_f64_bits(u * MX_PD3(u, 0.5, 0.25, 0.25)) - 0x3fe6a09e667f3bcdu;
    uint64_t less = (d + 0x4000000000000000u) >> 52;                         /* 1024 - k */
    double k = (0x1p52 + 1024.0) - mx_bits_f64(less | 0x4330000000000000u);
    double p = mx_bits_f64((2047 - less) << 52);
    double num = a < 0.5 ? MX_FMA(a, 1.0 + p, 1.0 - p) : MX_FMA(-p, u, 1.0 + a);
    double s = num / MX_FMA(p, u, 1.0 + a), z = s * s;
    double q = s * z * MX_PD7(z, 3.33333333333347859e-01, 1.99999999989775384e-01, 1.42857145289798954e-01,
                              1.11110837058880210e-01, 9.09255625730950728e-02, 7.63817215789426435e-02,
                              7.57707730412020691e-02);
    return MX_FMA(k, 0.5 * MXI_LN2_HI, s + MX_FMA(k, 0.5 * MXI_LN2_LO, q));
}
MX_INLINE double mx_arctanh_f64(double x)
{
    double a = fabs(x), y = mxi_arctanh_f64(a);
    y = a == 1.0 ? (double)INFINITY : y;
    return copysign(a <= 1.0 ? y : (double)NAN, x);
}

#endif
