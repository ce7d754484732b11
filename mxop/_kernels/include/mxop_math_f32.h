/* mxop_math_f32.h - float32 functions.  Included by mxop_math.h, which tells the
 * methods, the flags and what the ULP figures mean. */
#ifndef MXOP_MATH_F32_H
#define MXOP_MATH_F32_H

#define MX_INF_F32 ((float)INFINITY)
#define MX_NAN_F32 ((float)NAN)

/* ---- plain operations (exact or correctly rounded) ---------------------------- */

MX_INLINE float mx_abs_f32(float x) { return fabsf(x); }
MX_INLINE float mx_sqrt_f32(float x) { return sqrtf(x); }
/* a * b + c with one rounding; without FMA the product is exact in double, which leaves a rounding of 2^-53. */
#if MX_HAVE_FMA
MX_INLINE float mx_fma_f32(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
#else
MX_INLINE float mx_fma_f32(float a, float b, float c) { return (float)((double)a * (double)b + (double)c); }
#endif
MX_INLINE float mx_floor_f32(float x) { return floorf(x); }
MX_INLINE float mx_ceil_f32(float x) { return ceilf(x); }
MX_INLINE float mx_trunc_f32(float x) { return truncf(x); }

/* -1, 0 or 1; NaN stays NaN. */
MX_INLINE float mx_sign_f32(float x)
{
    float s = x > 0.0f ? 1.0f : 0.0f;
    s = x < 0.0f ? -1.0f : s;
    return x != x ? x : s;
}

/* To the nearest integer, halves away from zero. */
MX_INLINE float mx_round_f32(float x)
{
    float t = truncf(x);
    return t + copysignf(fabsf(x - t) >= 0.5f ? 1.0f : 0.0f, x);
}

/* To the nearest integer, halves towards -infinity.  ceil(x) - x is exact where
 * it is near one half, which x - floor(x) is not for x just above -0.5. */
MX_INLINE float mx_rint_f32(float x)
{
    float c = ceilf(x);
    return c - (c - x >= 0.5f ? 1.0f : 0.0f);
}

/* ---- float kernels -------------------------------------------------------------- */

/* x = n ln2 + r: returns r and sets *q, where e^r = 1 + r + r^2 q, and *bits, a
 * word whose low nine bits hold n + bias (an integer).  ln2 is split as 15 bits +
 * the rest, so that n times the first part is exact without FMA. */
MX_INLINE float mxi_exp_reduced(float x, float bias, float *q, uint32_t *bits)
{
    float t = MX_FMAF(x, 1.44269504f, MX_ROUND_F32 + bias);
    float n = t - (MX_ROUND_F32 + bias);
    float r = MX_FMAF(n, -0.693145751953125f, x);
    r = MX_FMAF(n, -1.42860682e-6f, r);
    *bits = mx_f32_bits(t);
    *q = MX_EF5(r, r * r, 4.999999404e-01f, 1.666652113e-01f, 4.166827351e-02f,
                8.368685842e-03f, 1.382013783e-03f);
    return r;
}

/* v * 2^n for a word made with bias 254, any n in [-254, 254]: two factors, so
 * that results may overflow or become denormal with one rounding. */
MX_INLINE float mxi_scale2(float v, uint32_t bits)
{
    uint32_t half = bits >> 1;
    return v * mx_bits_f32(half << 23) * mx_bits_f32((bits - half) << 23);
}

/* What vanishes is computed for 0 instead: products that vanish take some processors a hundred cycles.  ULP 0.88 / 1.12 */
#define MX_VANISHES_F32 (-103.97208f)
MX_INLINE float mx_exp_f32(float x)
{
    uint32_t bits;
    float c = x < MX_VANISHES_F32 ? 0.0f : x;
    float q, r = mxi_exp_reduced(c > 104.0f ? 104.0f : c, 254.0f, &q, &bits);
    float y = mxi_scale2(MX_FMAF(r, MX_FMAF(r, q, 1.0f), 1.0f), bits);
    return x < MX_VANISHES_F32 ? 0.0f : y;
}

/* 2^r for |r| <= 1/2 */
MX_INLINE float mxi_exp2_poly(float r)
{
    float q = MX_EF5(r, r * r, 2.402264774e-01f, 5.550359562e-02f, 9.618503042e-03f,
                     1.339099719e-03f, 1.532780298e-04f);
    return MX_FMAF(r, MX_FMAF(r, q, 6.931471825e-01f), 1.0f);
}

/* What a logarithm's polynomial cannot give: x = 0, x < 0, +inf, NaN. */
MX_INLINE float mxi_log_edges(float x, float y)
{
    y = x < MX_INF_F32 ? y : x;
    y = x == 0.0f ? -MX_INF_F32 : y;
    return x < 0.0f ? MX_NAN_F32 : y;
}

/* x = 2^k m with m in [2/3, 4/3), f = m - 1, log1p(f) by a polynomial; denormals
 * are scaled by 2^23 first.  k ln2(hi) is exact and its sum with f is kept in two
 * parts.  ULP 0.85 / 0.88 */
MX_INLINE float mxi_log_rest_f32(float f)       /* log1p(f) - f */
{
    float f2 = f * f;
    float p = MX_EF8(f, f2, 3.333321512e-01f, -2.499980330e-01f, 2.001044899e-01f, -1.668024659e-01f,
                     1.400521696e-01f, -1.218744591e-01f, 1.398750991e-01f, -1.287838668e-01f);
    return MX_FMAF(f2 * f, p, -0.5f * f2);
}
MX_INLINE float mxi_log_joined_f32(float k, float f)
{
    float hi = k * 0.693145751953125f;
    float s = hi + f;
    return s + MX_FMAF(k, 1.42860682e-6f, (f - (s - hi)) + mxi_log_rest_f32(f));
}
MX_INLINE float mxi_log_split_f32(float u, float *k)
{
    uint32_t d = mx_f32_bits(u) - 0x3f2aaaabu;
    *k = (float)((int32_t)d >> 23);
    return mx_bits_f32((d & 0x007fffffu) + 0x3f2aaaabu) - 1.0f;
}
MX_INLINE float mx_log_fast_f32(float x)
{
    float k, f = mxi_log_split_f32(x, &k);
    return mxi_log_joined_f32(k, f);
}
MX_INLINE float mxi_log_lifted_f32(float x, float *lift)
{
    uint32_t tiny = x < 0x1p-126f ? 0xffffffffu : 0u;
    *lift = (float)(int32_t)(tiny & 23u);
    return x * mx_bits_f32(0x3f800000u + (tiny & 0x0b800000u));
}
MX_INLINE float mx_log_f32(float x)
{
    float lift, k, f = mxi_log_split_f32(mxi_log_lifted_f32(x, &lift), &k);
    return mxi_log_edges(x, mxi_log_joined_f32(k - lift, f));
}

/* As in double; 127 is 3 * 42 + 1, so a is 2^3k 2^(j - 1) u.  ULP 0.74 / 0.96 */
MX_INLINE float mxi_cbrt_f32(float a, float unit)
{
    uint32_t bits = mx_f32_bits(a);
    float e = (float)((int32_t)(bits >> 23) - 1);
    float t = MX_FMAF(e, 1.0f / 3, MX_ROUND_F32), j = MX_FMAF(t - MX_ROUND_F32, -3.0f, e);
    float u = mx_bits_f32((bits & 0x007fffffu) | 0x3f800000u);
    float m = u * (j > 0.0f ? 2.0f : j < 0.0f ? 0.5f : 1.0f);
    float y = MX_PF4(u, 5.528234243e-01f, 5.871143937e-01f, -1.629697680e-01f, 2.310499549e-02f)
            * (j > 0.0f ? 1.25992105f : j < 0.0f ? 0.793700526f : 1.0f);
    float s = y * y;
    y = MX_FMAF(y, MX_FMAF(-s, y, m) / MX_FMAF(s + s, y, m), y);
    return y * (mx_bits_f32((mx_f32_bits(t) + 85u) << 23) * unit);
}
MX_INLINE float mx_cbrt_f32(float x)
{
    float a = fabsf(x);
    int tiny = a < 0x1p-126f;
    float y = mxi_cbrt_f32(tiny ? a * 0x1p24f : a, tiny ? 0x1p-8f : 1.0f);
    return copysignf((a > 0.0f) & (a < MX_INF_F32) ? y : a, x);
}

/* ---- sin, cos --------------------------------------------------------------- */

/* The _fast forms hold for |x| up to this (see mxop_math_f64_trig.h). */
#define MX_TRIG_LIMIT_F32 524288.0f

/* a = n pi/2 + r + e, *bits with n in its low bits.  With FMA: pi/2 in three
 * floats; a - n A is exact, and so is what its difference from n B loses.
 * Without: the same in double, where n A needs no rounding. */
MX_INLINE float mxi_trig_reduce(float a, float *e, uint32_t *bits)
{
    float t = MX_FMAF(a, 0.636619772f, MX_ROUND_F32);
    float n = t - MX_ROUND_F32;
    *bits = mx_f32_bits(t);
#if MX_HAVE_FMA
    const float A = 0x1.921fb4p+0f, B = 0x1.4442d2p-24f, C = -0x1.ee59dap-50f;
    float from = MX_FMAF(n, -A, a), r = from - n * B;
    *e = MX_FMAF(n, -C, -MX_FMAF(n, B, r - from));
    return r;
#else
    double d = ((double)a - (double)n * 0x1.921fb544p0) - (double)n * 0x1.0b4611a626331p-34;
    float r = (float)d;
    *e = (float)(d - (double)r);
    return r;
#endif
}

/* sin(r + e) or, for odd bits, cos(r + e); |r| <= pi/4 */
MX_INLINE float mxi_sin_or_cos(float r, float e, uint32_t odd)
{
    float s = r * r;
    float h = 0.5f * s;
    float w = 1.0f - h;
    float ps = MX_PF3(s, -1.666665524e-01f, 8.332187310e-03f, -1.951790764e-04f);
    float pc = MX_PF3(s, 4.166664556e-02f, -1.388730132e-03f, 2.443066842e-05f);
    float sn = r + MX_FMAF(r * s, ps, e * w);
    float cs = w + MX_FMAF(s * s, pc, MX_FMAF(-r, e, (1.0f - w) - h));
    return odd & 1u ? cs : sn;
}

/* ULP 0.85 / 0.96 */
MX_INLINE float mx_sin_fast_f32(float x)
{
    uint32_t n;
    float e, r = mxi_trig_reduce(fabsf(x), &e, &n);
    uint32_t sign = (mx_f32_bits(x) & 0x80000000u) ^ ((n >> 1) << 31);
    return mx_bits_f32(mx_f32_bits(mxi_sin_or_cos(r, e, n)) ^ sign);
}

/* ULP 0.78 / 0.78 */
MX_INLINE float mx_cos_fast_f32(float x)
{
    uint32_t n;
    float e, r = mxi_trig_reduce(fabsf(x), &e, &n);
    n += 1u;
    return mx_bits_f32(mx_f32_bits(mxi_sin_or_cos(r, e, n)) ^ ((n >> 1) << 31));
}

MX_INLINE float mx_sin_f32(float x)
{
    return fabsf(x) <= MX_TRIG_LIMIT_F32 ? mx_sin_fast_f32(x) : (float)sin((double)x);
}
MX_INLINE float mx_cos_f32(float x)
{
    return fabsf(x) <= MX_TRIG_LIMIT_F32 ? mx_cos_fast_f32(x) : (float)cos((double)x);
}

/* ---- tanh, sigmoid, erf -------------------------------------------------------- */

/* Odd polynomial below 0.625, 1 - 2 / d with d = e^2|x| + 1 above; dl is what
 * rounding took from d.  ULP 0.88 / 1.03 */
MX_INLINE float mx_tanh_f32(float x)
{
    float a = fabsf(x);
    float z = x * x;
    float p = MX_EF5(z, z * z, -3.333328068e-01f, 1.333141029e-01f, -5.373726785e-02f,
                     2.063172311e-02f, -5.697345827e-03f);
    float small = MX_FMAF(a * z, p, a);
    float c = a > 10.0f ? 10.0f : a;
    uint32_t bits;
    float h, r = mxi_exp_reduced(c + c, 127.0f, &h, &bits);
    float m = MX_FMAF(r * r, h, r);
    float s = mx_bits_f32(bits << 23);
    float base = s + 1.0f;
    float d = MX_FMAF(s, m, base);
    float dl = MX_FMAF(s, m, base - d);
    float q = 2.0f / d;
    float rest = MX_FMAF(-q, dl, MX_FMAF(-q, d, 2.0f));
    float large = 1.0f - MX_FMAF(0.5f * q, rest, q);
    return copysignf(a < 0.625f ? small : large, x);
}

/* q = 1 / (1 + e^|x|), or one minus that.  Everything is scaled by 2^-24 so that
 * e^104 does not overflow; dl as in tanh.  ULP 0.96 / 1.34 */
MX_INLINE float mx_sigmoid_f32(float x)
{
    float a = fabsf(x);
    float c = x > 80.0f || x < MX_VANISHES_F32 ? 80.0f : a;
    uint32_t bits;
    float h, r = mxi_exp_reduced(c, 127.0f - 24.0f, &h, &bits);
    float m = MX_FMAF(r * r, h, r);
    float s = mx_bits_f32(bits << 23);
    float base = s + 0x1p-24f;
    float d = MX_FMAF(s, m, base);
    float dl = MX_FMAF(s, m, base - d) + (0x1p-24f - (base - s));
    float q = 1.0f / d;
    q = MX_FMAF(q, MX_FMAF(-q, dl, MX_FMAF(-q, d, 1.0f)), q) * 0x1p-24f;
    float y = x < MX_VANISHES_F32 ? 0.0f : q;
    return x < 0.0f ? y : 1.0f - q;
}

/* Odd polynomial below 1, 1 - 2^-(c q0 + c^2 q(c)) above, c = |x|, whose first term is exact
 * with FMA.  ULP 0.9 / 1.25 */
MX_INLINE float mx_erf_f32(float x)
{
    float a = fabsf(x);
    float z = x * x;
    float p = MX_PF7(z, 1.283791661e-01f, -3.761262596e-01f, 1.128357872e-01f, -2.685334720e-02f,
                     5.187162198e-03f, -7.997853099e-04f, 7.806903886e-05f);
    float small = MX_FMAF(a, p, a);
    float c = a > 4.0f ? 4.0f : a;
    float q = MX_PF5(c, 9.172616005e-01f, 1.517131776e-01f, -3.293007240e-02f, 4.609541968e-03f, -3.052803804e-04f);
    float first = c * 1.628067732e+00f;
    float rest = MX_FMAF(c * c, q, MX_FMAF(c, 1.628067732e+00f, -first));
    float t = MX_ROUND_F32 + 127.0f - (first + rest);
    float n = t - (MX_ROUND_F32 + 127.0f);
    float r = (-first - n) - rest;
    float large = 1.0f - mxi_exp2_poly(r) * mx_bits_f32(mx_f32_bits(t) << 23);
    return copysignf(a < 1.0f ? small : large, x);
}

#endif
