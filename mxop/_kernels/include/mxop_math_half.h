/* mxop_math_half.h - float16 and bfloat16 <-> float32, and from double, in integer code that vectorises. */
#ifndef MXOP_MATH_HALF_H
#define MXOP_MATH_HALF_H

/* float16 -> float32, exact.  Shifting the 15 magnitude bits into a float32
 * leaves an exponent too small by 112; a multiplication by 2^112 repairs it and
 * normalises denormal halves on the way.  All-ones exponents are set apart. */
MX_EACH float mx_f16_to_f32(uint16_t h)
{
    uint32_t mag = (uint32_t)(h & 0x7fffu) << 13;
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16;
    uint32_t fin = mx_f32_bits(mx_bits_f32(mag) * 5.192296858534828e33f);
    uint32_t spec = mag | 0x7f800000u;
    return mx_bits_f32((mag >= 0x0f800000u ? spec : fin) | sign);
}

/* float32 -> float16, round to nearest even; NaN stays NaN (quiet, top payload kept). */
MX_EACH uint16_t mx_f32_to_f16(float x)
{
    uint32_t u = mx_f32_bits(x);
    uint32_t sign = (u >> 16) & 0x8000u;
    uint32_t a = u & 0x7fffffffu;
    /* Normal results: rebias, then add half a unit less one, plus the odd bit. */
    uint32_t normal = (a - 0x38000000u + 0x0fffu + ((a >> 13) & 1u)) >> 13;
    /* Denormal results: adding 0.5 puts the units of 2^-24 in the low mantissa bits. */
    uint32_t sub = mx_f32_bits(mx_bits_f32(a) + 0.5f) - 0x3f000000u;
    uint32_t nan = 0x7e00u | (a >> 13 & 0x3ffu);
    uint32_t r = a < 0x38800000u ? sub : normal;
    r = a >= 0x47800000u ? 0x7c00u : r;
    r = a > 0x7f800000u ? nan : r;
    return (uint16_t)(r | sign);
}

MX_EACH float mx_bf16_to_f32(uint16_t h) { return mx_bits_f32((uint32_t)h << 16); }

/* float32 -> bfloat16, round to nearest even; NaN stays NaN. */
MX_EACH uint16_t mx_f32_to_bf16(float x)
{
    uint32_t u = mx_f32_bits(x);
    uint32_t rne = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
    uint32_t nan = (u >> 16) | 0x0040u;
    return (uint16_t)((u & 0x7fffffffu) > 0x7f800000u ? nan : rne);
}

/* double -> float rounded to odd: towards zero, and the last bit says whether anything was lost.  Rounding that
 * to a half is rounding the double once, as a float has more than two bits more. */
MX_EACH float mx_odd_f32(double x)
{
    float near = (float)x;
    uint32_t u = mx_f32_bits(near);
    u -= fabs((double)near) > fabs(x) ? 1u : 0u;
    return mx_bits_f32(u | ((double)near != x ? 1u : 0u));
}

/* int64 -> double rounded to odd, for the same use. */
MX_EACH double mx_odd_f64(int64_t x)
{
    int64_t top = (x & ~(int64_t)0x7ff) | (int64_t)((x & 0x7ff) != 0) << 10;
    return (double)((x < -((int64_t)1 << 53)) | (x > (int64_t)1 << 53) ? top : x);
}

static inline void mx_f16_to_f32_array(const uint16_t *src, float *dst, ptrdiff_t n)
{
    ptrdiff_t i = 0;
#if defined(__AVX512F__)
    for (; i + 16 <= n; i += 16)
        _mm512_storeu_ps(dst + i, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(src + i))));
#endif
#if defined(__F16C__)
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(dst + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(src + i))));
#endif
    for (; i < n; i++)
        dst[i] = mx_f16_to_f32(src[i]);
}

static inline void mx_f32_to_f16_array(const float *src, uint16_t *dst, ptrdiff_t n)
{
    ptrdiff_t i = 0;
#if defined(__AVX512F__)
    for (; i + 16 <= n; i += 16)
        _mm256_storeu_si256((__m256i *)(dst + i), _mm512_cvtps_ph(_mm512_loadu_ps(src + i), _MM_FROUND_TO_NEAREST_INT));
#endif
#if defined(__F16C__)
    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128((__m128i *)(dst + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(src + i), _MM_FROUND_TO_NEAREST_INT));
#endif
    for (; i < n; i++)
        dst[i] = mx_f32_to_f16(src[i]);
}

#endif
