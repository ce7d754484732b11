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

/* log(2^more (u + c)), u positive and c what it lacks: that is scaled beside f. */
MX_INLINE float mxi_log_of_sum_f32(float u, float c, float more)
{
    float k, m = mxi_log_split_f32(u, &k);
    float scale = mx_bits_f32(mx_f32_bits(m + 1.0f) - mx_f32_bits(u) + 0x3f800000u);
    float f = MX_FMAF(c, scale, m), low = MX_FMAF(c, scale, m - f);
    low = MX_FMAF(-0.5f, MX_FMAF(f, f, -(f * f)), MX_FMAF(low, -f, low));
    k += more;
    float hi = k * 0.693145751953125f, s = hi + f;
    return s + MX_FMAF(k, 1.42860682e-6f, (f - (s - hi)) + (mxi_log_rest_f32(f) + low));
}
/* -1 < x < 2^120 */
MX_INLINE float mx_log1p_fast_f32(float x)
{
    float u = 1.0f + x, b = u - 1.0f;
    return copysignf(mxi_log_of_sum_f32(u, (1.0f - (u - b)) + (x - b), 0.0f), x);
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
    return s * z * MX_PF5(z, 1.666667241e-01f, 7.498855073e-02f, 4.500138007e-02f, 2.655454217e-02f, 3.808502356e-02f);
}
/* An inverse by the exponent, within an eighth; each step squares what it errs.  It is enough for what a root lacks. */
MX_INLINE float mxi_inverse_f32(float x) { return mx_bits_f32(0x7ef311c3u - mx_f32_bits(x)); }
MX_INLINE float mxi_inverse_step_f32(float x, float inverse) { return inverse * MX_FMAF(-x, inverse, 2.0f); }
MX_INLINE float mxi_root_error_f32(float root, float w, float lost)
{
    return (MX_FMAF(-root, root, w) + lost) * (0.5f * mxi_inverse_f32(root));
}
/* asin(a) = pi/2 - 2 asin(sqrt((1 - a) / 2)) above 1/2, the root with its error; beyond 1 it is NaN.  The smaller of a and the root
 * is wanted: a choice by a comparison with 1/2 makes compilers compute the polynomial for each. */
MX_INLINE float mx_arcsin_f32(float x)
{
    float a = fabsf(x), w = MX_FMAF(-0.5f, a, 0.5f), root = sqrtf(w), z = a * a;
    int far = a > 0.5f;
    float q = mxi_arcsin_rest_f32(a < root ? a : root, z < w ? z : w), rest = q + mxi_root_error_f32(root, w, 0.0f);
    float v = MX_FMAF(-2.0f, root, MXI_HALF_PI_HI), lost = MX_FMAF(-2.0f, root, MXI_HALF_PI_HI - v) + MXI_HALF_PI_LO;
    return copysignf(far ? v + MX_FMAF(-2.0f, rest, lost) : a + q, x);
}
/* turns pi/2 + k (s + q), k = -1, or 2 beyond 1/2, and turned with x. */
MX_INLINE float mx_arccos_f32(float x)
{
    float a = fabsf(x), w = MX_FMAF(-0.5f, a, 0.5f), root = sqrtf(w), s = a < root ? a : root, z = a * a;
    int far = a > 0.5f;
    float q = mxi_arcsin_rest_f32(s, z < w ? z : w), k = copysignf(far ? 2.0f : 1.0f, x);
    q += far ? mxi_root_error_f32(root, w, 0.0f) : 0.0f;
    k = far ? k : -k;
    float turns = far ? MX_FMAF(-0.5f, k, 1.0f) : 1.0f, base = turns * MXI_HALF_PI_HI;
    float v = MX_FMAF(s, k, base), lost = MX_FMAF(s, k, base - v);
    return v + MX_FMAF(q, k, MX_FMAF(turns, MXI_HALF_PI_LO, lost));
}

/* log(a + sqrt(a^2 + 1)), log(2 a) where the rest is lost, and its series where the root is next to 1 */
MX_INLINE float mx_arcsinh_f32(float x)
{
    float a = fabsf(x), z = a * a, s = 1.0f + z, b = s - 1.0f, root = sqrtf(s);
    float lost = ((1.0f - (s - b)) + (z - b)) + MX_FMAF(a, a, -z);
    float over = mxi_inverse_step_f32(root, mxi_inverse_step_f32(root, mxi_inverse_f32(root)));
    int far = a > 0x1p12f;
    float u = root + a, c = (a - (u - root)) + 0.5f * over * (MX_FMAF(-root, root, s) + lost);
    float y = mxi_log_of_sum_f32(far ? a * 0x1p-13f : u, far ? 0.0f : c, far ? 14.0f : 0.0f);
    y = a < 0x1p-9f ? MX_FMAF(a * z, -1.0f / 6, a) : y;
    return copysignf(a < MX_INF_F32 ? y : a, x);
}
/* log(x + sqrt((x - 1) (x + 1))), the same way */
MX_INLINE float mx_arccosh_f32(float x)
{
    float t = x - 1.0f, v = x + 1.0f, s = t * v, root = sqrtf(s);
    float lost = MX_FMAF(t, v, -s) + t * (1.0f - (v - x));
    int far = x > 0x1p12f;
    float u = x + root, c = (root - (u - x)) + mxi_root_error_f32(root, s, lost);
    float y = mxi_log_of_sum_f32(far ? x * 0x1p-13f : u, far ? 0.0f : c, far ? 14.0f : 0.0f);
    y = x == 1.0f ? 0.0f : y;
    y = x < MX_INF_F32 ? y : x;
    return x < 1.0f ? MX_NAN_F32 : y;
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
    float v = MXI_HALF_PI_HI - t, lost = (MXI_HALF_PI_HI - v) - t;
    e = a > 0x1p20f ? 0.0f : e;
    float low = far ? lost + MXI_HALF_PI_LO - 0.5f * e : 0.0f;
    float cube = t * z, q = MX_FMAF(cube, p, MX_FMAF(t, z, -cube) * p - low);
    return copysignf(far ? v - q : t + q, x);
}

/* As in double, but k = 0 up to 1/4; numerator and denominator of s are made of a or, above 1/2, of a - 1, which is exact. */
MX_INLINE float mx_arctanh_f32(float x)
{
    float a = fabsf(x), u = 1.0f - a;
    uint32_t less = (mx_f32_bits(u * MX_PF3(u, 0.5f, 0.25f, 0.25f)) - 0x3f1f0000u + 0x40000000u) >> 23;     /* 128 - k */
    float k = (float)(int32_t)(128u - less), p = mx_bits_f32((255u - less) << 23), up = 1.0f + p, down = 1.0f - p;
    int far = a > 0.5f;
    float from = far ? -u : a;
    float s = MX_FMAF(from, up, far ? 2.0f : down) / MX_FMAF(from, down, far ? 2.0f : up), z = s * s;
    float q = MX_PF4(z, 3.333321e-01f, 2.0010717e-01f, 1.4001541e-01f, 1.4003274e-01f);
    float hi = k * 0.3465728759765625f, sum = hi + s;
    float y = sum + ((s - (sum - hi)) + MX_FMAF(k, 0.71430341e-6f, s * z * q));
    y = a == 1.0f ? MX_INF_F32 : y;
    return copysignf(a <= 1.0f ? y : MX_NAN_F32, x);
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
MXI_THROUGH_F64(arctanh)
MXI_THROUGH_F64(arcsinh)
MXI_THROUGH_F64(arccosh)

#endif

#endif
