/* mxop_math_f32_sums.h - float32 functions that compute in float, as sums of two parts where one is not enough, which takes
 * half the time of double.  They need exact products, so without FMA they are those of double.  Included by mxop_math.h.
 * ULP 1.0 at most; in double 0.51. */
#ifndef MXOP_MATH_F32_SUMS_H
#define MXOP_MATH_F32_SUMS_H

#if MX_HAVE_FMA

/* unit * (k log(2) + log1p(f)) for another base than e: the unit is lh + ll, that of k kh + kl */
MX_INLINE float mxi_log_to_base_f32(float k, float f, float lh, float ll, float kh, float kl)
{
    float first = f * lh, whole = k * kh, sum = whole + first;
    float low = MX_FMAF(f, ll, MX_FMAF(f, lh, -first));
    low = MX_FMAF(k, kl, MX_FMAF(mxi_log_rest_f32(f), lh, low));
    return sum + ((first - (sum - whole)) + low);
}
MX_INLINE float mx_log2_fast_f32(float x)
{
    float k, f = mxi_log_split_f32(x, &k);
    return mxi_log_to_base_f32(k, f, 0x1.715476p0f, 1.92596299e-8f, 1.0f, 0.0f);
}
MX_INLINE float mx_log10_fast_f32(float x)
{
    float k, f = mxi_log_split_f32(x, &k);
    return mxi_log_to_base_f32(k, f, 0x1.bcb7b2p-2f, -0x1.5b235ep-27f, 0x1.344p-2f, 0x1.3509f8p-18f);
}
MX_INLINE float mx_log2_f32(float x)
{
    float lift, up = mxi_log_lifted_f32(x, &lift), k, f = mxi_log_split_f32(up, &k);
    return mxi_log_edges(x, mxi_log_to_base_f32(k - lift, f, 0x1.715476p0f, 1.92596299e-8f, 1.0f, 0.0f));
}
MX_INLINE float mx_log10_f32(float x)
{
    float lift, up = mxi_log_lifted_f32(x, &lift), k, f = mxi_log_split_f32(up, &k);
    float y = mxi_log_to_base_f32(k - lift, f, 0x1.bcb7b2p-2f, -0x1.5b235ep-27f, 0x1.344p-2f, 0x1.3509f8p-18f);
    return mxi_log_edges(x, y);
}

/* As in double: what 1 + x loses is scaled beside f.  -1 < x < 2^120 */
MX_INLINE float mx_log1p_fast_f32(float x)
{
    float u = 1.0f + x, b = u - 1.0f, c = (1.0f - (u - b)) + (x - b);
    float k, m = mxi_log_split_f32(u, &k);
    float scale = mx_bits_f32(mx_f32_bits(m + 1.0f) - mx_f32_bits(u) + 0x3f800000u);
    float f = MX_FMAF(c, scale, m), low = MX_FMAF(c, scale, m - f);
    low = MX_FMAF(-0.5f, MX_FMAF(f, f, -(f * f)), MX_FMAF(low, -f, low));
    float hi = k * 0.693145751953125f, s = hi + f;
    return copysignf(s + MX_FMAF(k, 1.42860682e-6f, (f - (s - hi)) + (mxi_log_rest_f32(f) + low)), x);
}
MX_INLINE float mx_log1p_f32(float x)
{
    float y = mx_log1p_fast_f32(x > 0x1p120f ? 1.0f : x);
    y = x > 0x1p120f ? mx_log_f32(x) : y;
    y = x == -1.0f ? -MX_INF_F32 : y;
    return x < -1.0f ? MX_NAN_F32 : y;
}

/* As in double. */
MX_INLINE float mx_expm1_f32(float x)
{
    float c = x > 89.0f ? 89.0f : x;
    c = c < -20.0f ? -20.0f : c;
    float t = MX_FMAF(c, 1.44269504f, MX_ROUND_F32 + 126.0f);
    float n = t - (MX_ROUND_F32 + 126.0f);
    float whole = MX_FMAF(n, -0.693145751953125f, c), low = n * 1.42860682e-6f, r = whole - low;
    float s = mx_bits_f32(mx_f32_bits(t) << 23);
    float q = MX_EF6(r, r * r, 5.000000000e-01f, 1.666666716e-01f, 4.166628420e-02f, 8.333264850e-03f,
                     1.394538209e-03f, 1.991801983e-04f);
    float rest = MX_FMAF(r * r, q, (whole - r) - low);
    float base = s - 0.5f, first = s * r, sum = base + first;
    float lost = (first - (sum - base)) + ((s - base) - 0.5f);
    float y = 2.0f * (sum + MX_FMAF(s, rest, lost));
    return fabsf(x) < 0x1p-26f ? x : y;
}

/* As in double, but plus, minus and the product with r are held in two parts. */
typedef struct { float plus, plus_lost, minus, minus_lost, r, cosh1, sinh1; } mxi_hyperbolic_f32;
MX_INLINE mxi_hyperbolic_f32 mxi_hyperbolic_of_f32(float a)
{
    mxi_hyperbolic_f32 h;
    float t = MX_FMAF(a, 1.44269504f, MX_ROUND_F32 + 125.0f);
    float n = t - (MX_ROUND_F32 + 125.0f);
    float whole = MX_FMAF(n, -0.693145751953125f, a), low = n * 1.42860682e-6f;
    h.r = whole - low;
    float up = mx_bits_f32(mx_f32_bits(t) << 23);
    float down = mx_bits_f32(((250u - mx_f32_bits(t)) & 0x7fu) << 23);
    float z = h.r * h.r;
    h.plus = up + down;
    h.minus = up - down;
    h.plus_lost = down - (h.plus - up);
    h.minus_lost = (up - h.minus) - down;
    h.cosh1 = z * MX_PF3(z, 5.000000000e-01f, 4.166645929e-02f, 1.393543789e-03f);
    h.sinh1 = MX_FMAF(h.r * z, MX_PF3(z, 1.666666716e-01f, 8.333175443e-03f, 1.997406798e-04f), (whole - h.r) - low);
    return h;
}
MX_INLINE float mxi_hyperbolic_sum_f32(mxi_hyperbolic_f32 h, float factor, float other, float lost)
{
    float first = other * h.r, sum = factor + first, back = sum - factor;
    lost += ((factor - (sum - back)) + (first - back)) + MX_FMAF(other, h.r, -first);
    return 2.0f * (sum + (lost + MX_FMAF(other, h.sinh1, factor * h.cosh1)));
}
MX_INLINE float mx_sinh_f32(float x)
{
    float a = fabsf(x);
    mxi_hyperbolic_f32 h = mxi_hyperbolic_of_f32(a > 89.7f ? 89.7f : a);
    return a < 0x1p-13f ? x : copysignf(mxi_hyperbolic_sum_f32(h, h.minus, h.plus, h.minus_lost), x);
}
MX_INLINE float mx_cosh_f32(float x)
{
    float a = fabsf(x);
    mxi_hyperbolic_f32 h = mxi_hyperbolic_of_f32(a > 89.7f ? 89.7f : a);
    return mxi_hyperbolic_sum_f32(h, h.plus, h.minus, h.plus_lost);
}

#define MXI_HALF_PI_HI 0x1.921fb6p0f
#define MXI_HALF_PI_LO -0x1.777a5cp-25f

/* asin(s) - s for 0 <= s <= 1/2, z = s^2 */
MX_INLINE float mxi_arcsin_rest_f32(float s, float z)
{
    return s * z * MX_PF6(z, 1.666665971e-01f, 7.500521094e-02f, 4.451363161e-02f, 3.183611855e-02f, 1.432883646e-02f,
                          3.767378256e-02f);
}
/* asin(a) = pi/2 - 2 asin(sqrt((1 - a) / 2)) above 1/2, the root with its error; beyond 1 it is NaN. */
MX_INLINE float mx_arcsin_f32(float x)
{
    float a = fabsf(x);
    int far = a > 0.5f;
    float z = far ? 0.5f - 0.5f * a : a * a;
    float root = sqrtf(z), e = MX_FMAF(-root, root, z) / (root + root + 1e-30f);
    float s = far ? root : a;
    float q = mxi_arcsin_rest_f32(s, z);
    float v = MXI_HALF_PI_HI - (s + s), lost = (MXI_HALF_PI_HI - v) - (s + s);
    return copysignf(far ? v - ((q + q) - (lost + MXI_HALF_PI_LO - (e + e))) : s + q, x);
}
/* pi/2 - asin(x); for |x| > 1/2, 2 asin(root), or pi less that */
MX_INLINE float mx_arccos_f32(float x)
{
    float a = fabsf(x);
    int far = a > 0.5f;
    float z = far ? 0.5f - 0.5f * a : a * a;
    float root = sqrtf(z), e = MX_FMAF(-root, root, z) / (root + root + 1e-30f);
    float s = far ? root : a;
    float q = mxi_arcsin_rest_f32(s, z);
    float m = far ? s + s : s, r = far ? (q + e) + (q + e) : q;
    uint32_t sign = (mx_f32_bits(x) & 0x80000000u) ^ (far ? 0x80000000u : 0u);
    m = mx_bits_f32(mx_f32_bits(m) ^ sign);
    r = mx_bits_f32(mx_f32_bits(r) ^ sign);
    float turns = far ? (x < 0.0f ? 2.0f : 0.0f) : 1.0f;
    float base = turns * MXI_HALF_PI_HI, v = base - m, lost = (base - v) - m;
    return v - (r - (lost + turns * MXI_HALF_PI_LO));
}

/* pi/2 - atan(1 / a) above 1, the quotient with its error, whose slope is 1/2 where it counts */
MX_INLINE float mx_arctan_f32(float x)
{
    float a = fabsf(x);
    int far = a > 1.0f;
    float over = 1.0f / a, e = MX_FMAF(-over, a, 1.0f) * over;
    float t = far ? over : a, z = t * t;
    float p = MX_FMAF(z, MX_PF8(z, 1.999862641e-01f, -1.426510960e-01f, 1.095686778e-01f, -8.417419344e-02f,
                                5.820019543e-02f, -3.142193705e-02f, 1.104649622e-02f, -1.823227387e-03f),
                      -3.333330154e-01f);
    float cube = t * z, q = MX_FMAF(cube, p, MX_FMAF(t, z, -cube) * p);
    float v = MXI_HALF_PI_HI - t, lost = (MXI_HALF_PI_HI - v) - t;
    e = a > 0x1p20f ? 0.0f : e;
    return copysignf(far ? v - (q - (lost + MXI_HALF_PI_LO - 0.5f * e)) : t + q, x);
}

#else

/* ULP 0.51 */
#define MXI_THROUGH_F64(name) MX_INLINE float mx_##name##_f32(float x) { return (float)mx_##name##_f64((double)x); }
MXI_THROUGH_F64(expm1)
MXI_THROUGH_F64(log1p)
MX_INLINE float mx_log1p_fast_f32(float x) { return (float)mx_log1p_fast_f64((double)x); }
MXI_THROUGH_F64(log2)
MX_INLINE float mx_log2_fast_f32(float x) { return (float)mx_log2_fast_f64((double)x); }
MXI_THROUGH_F64(log10)
MX_INLINE float mx_log10_fast_f32(float x) { return (float)mx_log10_fast_f64((double)x); }
MXI_THROUGH_F64(sinh)
MXI_THROUGH_F64(cosh)
MXI_THROUGH_F64(arcsin)
MXI_THROUGH_F64(arccos)
MXI_THROUGH_F64(arctan)

#endif

#endif
