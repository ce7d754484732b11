/* mxop_math_f32_wide.h - float32 functions that compute in double.  Included by mxop_math.h, which
 * tells the methods, the flags and what the ULP figures mean. */
#ifndef MXOP_MATH_F32_WIDE_H
#define MXOP_MATH_F32_WIDE_H

/* ---- double kernels ----------------------------------------------------------------
 * Accurate to 2^-32 or better, which makes the rounded float all but correctly
 * rounded.  Every float is a normal double and every double intermediate is in
 * range, so denormals and overflow need no care until the last conversion. */

/* e^x for |x| < 700 */
MX_INLINE double mxi_exp(double x)
{
    double t = MX_FMA(x, 1.4426950408889634, MX_ROUND_F64 + 1023.0);
    double n = t - (MX_ROUND_F64 + 1023.0);
    double r = MX_FMA(n, -0x1.62e42fefap-1, x);
    r = MX_FMA(n, -0x1.cf79abc9e3b3ap-40, r);
    double s = mx_bits_f64(mx_f64_bits(t) << 52);
    double q = MX_PD6(r, 5.00000004440172341e-01, 1.66666663688352673e-01, 4.16663598134145580e-02,
                      8.33338957532093853e-03, 1.39407204476494251e-03, 1.98458843145465761e-04);
    return MX_FMA(s, MX_FMA(r * r, q, r), s);
}

/* 2^x for |x| < 1000 */
MX_INLINE double mxi_exp2(double x)
{
    double t = x + (MX_ROUND_F64 + 1023.0);
    double r = x - (t - (MX_ROUND_F64 + 1023.0));
    double p = MX_PD7(r, 6.93147180541507035e-01, 2.40226510781419850e-01, 5.55041096314923196e-02,
                      9.61803654091291683e-03, 1.33334302777366864e-03, 1.54672378403179192e-04,
                      1.53150711307815677e-05);
    return MX_FMA(r, p, 1.0) * mx_bits_f64(mx_f64_bits(t) << 52);
}

/* log1p(f) = 2 atanh(s) with s = f / (2 + f), for f in [-1/3, 1/3] */
MX_INLINE double mxi_log1p_reduced(double f)
{
    double s = f / (2.0 + f);
    double z = s * s;
    double p = MX_PD5(z, 6.66666667105318300e-01, 3.99999845691823896e-01, 2.85731883620097049e-01,
                      2.21349888786674664e-01, 2.01239013130001337e-01);
    return s * MX_FMA(z, p, 2.0);
}

MX_INLINE double mxi_log(double u)
{
    double k, f = mxi_log_split(u, &k);
    return MX_FMA(k, 0.69314718055994531, mxi_log1p_reduced(f));
}

/* log(1 + x), -1 < x: where 1 + x needs no scaling, x itself is the exact f. */
MX_INLINE double mxi_log1p(double x)
{
    double k, f = mxi_log_split(1.0 + x, &k);
    return MX_FMA(k, 0.69314718055994531, mxi_log1p_reduced(k == 0.0 ? x : f));
}

/* log2 of a positive u; relative error below 2^-41 */
MX_INLINE double mxi_log2(double u)
{
    double k, f = mxi_log_split(u, &k);
    double s = f / (2.0 + f);
    double z = s * s;
    double p = MX_PD6(z, 2.88539008177742229e+00, 9.61796694828891185e-01, 5.77077754895823691e-01,
                      4.12226222202993153e-01, 3.19283653334183459e-01, 2.90845001986737406e-01);
    return MX_FMA(s, p, k);
}

/* ---- functions through the double kernels -------------------------------------------- */

/* log(1 + e^x) = max(x, 0) + log1p(e^-|x|).  ULP 0.51 / 0.51 */
MX_INLINE double mxi_softplus(double x)
{
    double a = fabs(x);
    a = a > 200.0 ? 200.0 : a;
    return (x < 0.0 ? 0.0 : x) + mxi_log1p(mxi_exp(-a));
}
MX_INLINE float mx_softplus_f32(float x) { return (float)mxi_softplus((double)x); }
MX_INLINE float mx_log_sigmoid_f32(float x) { return (float)-mxi_softplus(-(double)x); }

/* x = n pi/2 + r; sin r / cos r, or -cos r / sin r for odd n.  ULP 0.51 / 0.51 */
MX_INLINE float mx_tan_fast_f32(float x)
{
    double a = fabs((double)x);
    double t = MX_FMA(a, 0.63661977236758134, MX_ROUND_F64);
    double n = t - MX_ROUND_F64;
    double r = MX_FMA(n, -0x1.921fb544p0, a);
    r = MX_FMA(n, -0x1.0b4611a626331p-34, r);
    double z = r * r;
    double s = MX_FMA(r * z, MX_PD4(z, -1.66666666395516250e-01, 8.33332916055835177e-03,
                                    -1.98392659020646492e-04, 2.71768011588575740e-06), r);
    double c = MX_FMA(z, MX_PD5(z, -0.5, 4.16666666207347255e-02, -1.38888835707047715e-03,
                                2.47994713166405933e-05, -2.72061824867190070e-07), 1.0);
    uint64_t odd = mx_f64_bits(t) & 1u;
    float y = (float)((odd ? -c : s) / (odd ? s : c));
    return mx_bits_f32(mx_f32_bits(y) ^ (mx_f32_bits(x) & 0x80000000u));
}

MX_INLINE float mx_tan_f32(float x)
{
    return fabsf(x) <= MX_TRIG_LIMIT_F32 ? mx_tan_fast_f32(x) : (float)tan((double)x);
}

/* 1 / sqrt(x); with FMA the rounding errors of the root and of the division are
 * taken out again by one Newton step whose residual is exact.  ULP 0.51 / 0.51 */
MX_INLINE float mx_rsqrt_f32(float x)
{
#if MX_HAVE_FMA
    float y = 1.0f / sqrtf(x);
    float t = x * y;
    float d = MX_FMAF(-t, y, 1.0f);             /* 1 - x y^2 in two parts */
    d = MX_FMAF(-MX_FMAF(x, y, -t), y, d);
    float c = 0.5f * y * d;
    return c == c ? y + c : y;
#else
    return (float)(1.0 / sqrt((double)x));
#endif
}

/* ULP 0.51 / 0.51 */
MX_INLINE float mx_rcbrt_f32(float x)
{
    float a = fabsf(x);
    float up = a < 0x1p-126f ? a * 0x1p24f : a;
    double y = mxi_rcbrt((double)up) * (a < 0x1p-126f ? 256.0 : 1.0);
    y = a == 0.0f ? (double)INFINITY : y;
    y = a == MX_INF_F32 ? 0.0 : y;
    return copysignf((float)y, x);
}

/* The normal distribution, in double: Phi(-a) = erfc(b) / 2 with b = a / sqrt(2), and
 * erfc(b) = e^(-b^2) P(t) / (1 + 2b), t = (b - 3) / (b + 3); one division serves both. */
MX_INLINE double mxi_normal(double x)
{
    double a = fabs(x) * 0.70710678118654752;
    double b = a > 10.2 ? 10.2 : a;
    double plus = b + 3.0, twice = 2.0 + 4.0 * b, over = 1.0 / (plus * twice), t = (b - 3.0) * twice * over;
    double p = MX_PD13(t, 1.25300805826544193e+00, -1.35621106878236308e-01, -4.75622938125434686e-02,
                       1.29645200328405957e-01, -1.19273654731382683e-01, 6.83073750762056980e-02,
                       -2.37710411563700798e-02, 2.53351281167694085e-03, 1.89423161241101244e-03,
                       -7.89969399642516303e-04, -1.26657423100757762e-04, 1.26722878100478706e-04,
                       3.30920204287916210e-05);
    double y = mxi_exp(-b * b) * p * (plus * over);
    y = a > 10.2 ? 0.0 : y;                      /* NaN goes through */
    return x < 0.0 ? y : 1.0 - y;
}
/* ULP 0.51 / 0.51 */
MX_INLINE float mx_normcdf_f32(float x) { return (float)mxi_normal((double)x); }
MX_INLINE float mx_gelu_f32(float x) { return (float)((double)x * mxi_normal((double)x)); }

/* x over 1 + |x|, and what that sum lost; NaN at infinity.  ULP 0.51 / 0.51 */
MX_INLINE float mx_softsign_f32(float x)
{
#if MX_HAVE_FMA
    float a = fabsf(x);
    a = a > 0x1p30f ? 0x1p30f : a;
    float d = 1.0f + a, b = d - 1.0f, lost = (1.0f - (d - b)) + (a - b), over = 1.0f / d, q = a * over;
    q = MX_FMAF(MX_FMAF(-q, lost, MX_FMAF(-q, d, a)), over, q);
    return copysignf(q + (x - x), x);
#else
    return (float)((double)x / (1.0 + fabs((double)x)));
#endif
}

/* x P(w), w = -log(1 - x^2), below w = 6; x P(sqrt w) above.  ULP 0.51 / 0.51 */
MX_INLINE float mx_erfinv_f32(float x)
{
    double d = (double)x;
    double w = -mxi_log(MX_FMA(-d, d, 1.0));
    double c = w - 3.0;
    double mid = MX_PD13(c, 1.62354200659508718e+00, 2.41630402124250770e-01, -5.73813649994337534e-03,
                         -8.36175135989822467e-04, 1.95063379517925345e-04, -1.27226275226761962e-05,
                         -1.74923911372231033e-06, 4.52504268771737680e-07, -2.33375596563051641e-08,
                         -5.97915288573644501e-09, 1.06129812776486616e-09, 2.21616966669303059e-11,
                         -1.42954618160865182e-11);
    double v = sqrt(w > 6.0 ? w : 6.0) - 3.25;
    double tail = MX_PD12(v, 3.08388561023634100e+00, 1.00525896809928472e+00, 5.37094125587879532e-03,
                          -3.75122566960439316e-03, 2.49099204990585899e-03, -1.68803132012458135e-03,
                          9.56048439872437118e-04, -3.56602326183714667e-04, 1.64982101384208686e-05,
                          7.31482718709500538e-05, -3.83103402842107662e-05, 5.32687831566779737e-06);
    float y = (float)(d * (w > 6.0 ? tail : mid));
    float a = fabsf(x);
    y = a == 1.0f ? x * MX_INF_F32 : y;
    return a <= 1.0f ? y : MX_NAN_F32;
}

/* ---- two operands ----------------------------------------------------------------- */

MX_INLINE float mxi_pow_whole_f32(float x, float y, float power)
{
    power = y == 1.0f ? x : power;
    power = y == 2.0f ? x * x : power;
    return y == 3.0f ? x * x * x : power;
}
MX_INLINE float mx_pow_fast_f32(float x, float y)
{
    double w = (double)y * mxi_log2((double)x);
    w = w > 200.0 ? 200.0 : w;
    return (float)mxi_exp2(w < -200.0 ? -200.0 : w);
}

/* |x|^y = 2^(y log2|x|), then the sign and the cases of C's pow.  ULP 0.51 / 0.51 */
MX_INLINE float mx_pow_f32(float x, float y)
{
    float a = fabsf(x);
    float c = y > 3e38f ? 3e38f : y;             /* y = +-inf acts as a huge even integer */
    c = c < -3e38f ? -3e38f : c;
    double l = mxi_log2((double)a);
    l = a == 0.0f ? -(double)INFINITY : l;
    l = a < MX_INF_F32 ? l : (double)a;          /* inf, NaN */
    double w = (double)c * l;
    w = w > 200.0 ? 200.0 : w;
    w = w < -200.0 ? -200.0 : w;
    float r = (float)mxi_exp2(w);
    int whole = floorf(y) == y;
    int odd = whole & (floorf(0.5f * y) != 0.5f * y);
    uint32_t sign = odd ? mx_f32_bits(x) & 0x80000000u : 0u;
    r = mx_bits_f32(mx_f32_bits(r) | sign);
    r = (x < 0.0f) & (a < MX_INF_F32) & !whole ? MX_NAN_F32 : r;
    return mxi_pow_whole_f32(x, y, (y == 0.0f) | (x == 1.0f) ? 1.0f : r);
}

/* Squares of floats neither overflow nor vanish in double.  ULP 0.51 / 0.51 */
MX_INLINE float mx_hypot_f32(float x, float y)
{
    float r = (float)sqrt((double)x * (double)x + (double)y * (double)y);
    return (fabsf(x) == MX_INF_F32) | (fabsf(y) == MX_INF_F32) ? MX_INF_F32 : r;
}

/* A remainder of |x| < 2^128: congruent to x, of magnitude below |y|.  The remainder of
 * a rounded division is exact with FMA, so each step takes away a whole multiple
 * of y and divides |x / y| by 2^52 until it is below 1: six steps for 2^277.
 * An infinite y acts as 2^200, beyond all floats.  Exact.  Without FMA: fmodf, scalar. */
MX_INLINE double mxi_remainder(double x, double d)
{
#if MX_HAVE_FMA
    double r = x;
    r = MX_FMA(-trunc(r / d), d, r);
    r = MX_FMA(-trunc(r / d), d, r);
    r = MX_FMA(-trunc(r / d), d, r);
    r = MX_FMA(-trunc(r / d), d, r);
    r = MX_FMA(-trunc(r / d), d, r);
    return MX_FMA(-trunc(r / d), d, r);
#else
    return fmod(x, d);
#endif
}
MX_INLINE double mxi_divisor(float y) { return fabsf(y) == MX_INF_F32 ? copysign(0x1p200, (double)y) : (double)y; }

/* Remainder with the sign of the divisor; 0 for a zero divisor.  Exact but for the one
 * rounding of r + y. */
MX_INLINE float mxi_mod_f32(double r, double d)
{
    r = r * d < 0.0 ? r + d : r;
    return r == 0.0 ? copysignf(0.0f, (float)d) : (float)r;
}
/* Of floats, whose quotient is so small that one step is enough: exact without FMA too, below 2^28. */
MX_INLINE double mxi_remainder_once(double x, double d) { return MX_FMA(-trunc(x / d), d, x); }
MX_INLINE float mx_mod_fast_f32(float x, float y)
{
    return mxi_mod_f32(mxi_remainder_once((double)x, (double)y), (double)y);
}
MX_INLINE float mx_mod_f32(float x, float y)
{
    double d = mxi_divisor(y);
    float m = mxi_mod_f32(mxi_remainder((double)x, d), d);
    return y == 0.0f ? (x != x ? x : 0.0f) : m;
}

/* As mx_floordiv_f64; in float, so that the bits are NumPy's. */
MX_INLINE float mxi_floordiv_f32(float x, float y, double d, double e)
{
    float r = (float)((e != 0.0) & ((e < 0.0) != (x < 0.0f)) ? e + copysign(d, (double)x) : e);
    float q = (x - r) / y - ((r != 0.0f) & ((r < 0.0f) != (y < 0.0f)) ? 1.0f : 0.0f);
    float whole = floorf(q);
    whole = q - whole > 0.5f ? whole + 1.0f : whole;
    return q == 0.0f ? copysignf(0.0f, x / y) : whole;
}
MX_INLINE float mx_floordiv_fast_f32(float x, float y)
{
    return mxi_floordiv_f32(x, y, (double)y, mxi_remainder_once((double)x, (double)y));
}
MX_INLINE float mx_floordiv_f32(float x, float y)
{
    double d = mxi_divisor(y);
    return y == 0.0f ? x / y : mxi_floordiv_f32(x, y, d, mxi_remainder((double)x, d));
}

#endif
