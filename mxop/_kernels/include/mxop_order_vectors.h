/* mxop_order_vectors.h - vectors of words for quicksort, of 512 bits or 256; included once for each WORD, by mxop_order_quick.h.

   MX_SIDE words are a vector.  A mask has bits for words: one for each, or, in 256 bits, one for each 32 bits.  MX_MIN and MX_MAX
   take what MX_SIGNED makes of words, and it the way back. */
#if defined(__AVX512F__)
#if MX_BITS == 32
#define MX_OF(name) _mm512_##name##32
#define MX_RAMP _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
#define MX_SET(value) _mm512_set1_epi32((int)(value))
#define MX_BELOW _mm512_cmplt_epu32_mask
typedef __mmask16 MX_ORDER(mask);
#else
#define MX_OF(name) _mm512_##name##64
#define MX_RAMP _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7)
#define MX_SET(value) _mm512_set1_epi64((long long)(value))
#define MX_BELOW _mm512_cmplt_epu64_mask
typedef __mmask8 MX_ORDER(mask);
#endif
typedef __m512i MX_ORDER(vector);
enum { MX_ORDER(side) = 512 / MX_BITS };
#define MX_SIDE MX_ORDER(side)
#define MX_LOAD _mm512_loadu_si512
#define MX_STORE _mm512_storeu_si512
#define MX_MIN MX_OF(min_epu)
#define MX_MAX MX_OF(max_epu)
#define MX_COUNT(named) (unsigned)_mm_popcnt_u32(named)

MX_INLINE MX_ORDER(mask) MX_ORDER(first)(ptrdiff_t n)
{
    return (MX_ORDER(mask))(n >= MX_SIDE ? -1 : n <= 0 ? 0 : (1 << n) - 1);
}
MX_INLINE __m512i MX_ORDER(load_first)(const WORD *x, ptrdiff_t n)
{
    return MX_OF(mask_loadu_epi)(_mm512_set1_epi32(-1), MX_ORDER(first)(n), x);
}
MX_INLINE void MX_ORDER(store_first)(WORD *y, __m512i v, ptrdiff_t n) { MX_OF(mask_storeu_epi)(y, MX_ORDER(first)(n), v); }
MX_INLINE __m512i MX_ORDER(mirror)(__m512i v, int other)
{
    return MX_OF(permutexvar_epi)(_mm512_xor_si512(MX_RAMP, MX_SET(other)), v);
}
MX_INLINE __m512i MX_ORDER(exchanged)(__m512i v, __m512i p, int bit)
{
    const MX_ORDER(mask) high = (MX_ORDER(mask))(bit == 1 ? 0xaaaa : bit == 2 ? 0xcccc : bit == 4 ? 0xf0f0 : 0xff00);
    return MX_OF(mask_max_epu)(MX_MIN(v, p), high, v, p);
}
MX_INLINE __m512i MX_ORDER(packed)(__m512i v, MX_ORDER(mask) named) /* to memory it takes a hundred cycles on some processors */
{
    return MX_OF(maskz_compress_epi)(named, v);
}

#else
#if MX_BITS == 32
#define MX_SET(value) _mm256_set1_epi32((int)(value))
#define MX_MIN _mm256_min_epu32
#define MX_MAX _mm256_max_epu32
#define MX_BELOW(v, limit) (0xff & ~MX_ORDER(mask_of)(_mm256_cmpeq_epi32(MX_MAX(v, limit), v)))
#else
#define MX_SET(value) _mm256_set1_epi64x((long long)(value))
#define MX_SIGNED(v) _mm256_xor_si256(v, MX_SET((uint64_t)1 << 63))     /* there are comparisons of signed words alone */
#define MX_MIN(a, b) _mm256_blendv_epi8(a, b, _mm256_cmpgt_epi64(a, b))
#define MX_MAX(a, b) _mm256_blendv_epi8(b, a, _mm256_cmpgt_epi64(a, b))
#define MX_BELOW(v, limit) MX_ORDER(mask_of)(_mm256_cmpgt_epi64(MX_SIGNED(limit), MX_SIGNED(v)))
#endif
typedef __m256i MX_ORDER(vector);
typedef unsigned MX_ORDER(mask);
enum { MX_ORDER(side) = 256 / MX_BITS, MX_ORDER(parts) = MX_BITS / 32 };
#define MX_SIDE MX_ORDER(side)
#define MX_LOAD(x) _mm256_loadu_si256((const __m256i *)(x))
#define MX_STORE(y, v) _mm256_storeu_si256((__m256i *)(y), v)
#define MX_COUNT(named) ((unsigned)_mm_popcnt_u32(named) / MX_ORDER(parts))

#ifndef MX_PACKED
/* Where the parts are that a mask of 8 names, a byte each from the lowest: those of its upper half above those of its lower one. */
#define MX_PACKED(upper, n, lower) (uint64_t)(upper) << 8 * n | lower
#define MX_PACKED_16(upper)                                                                                             \
    MX_PACKED(upper, 0, 0), MX_PACKED(upper, 1, 0), MX_PACKED(upper, 1, 1), MX_PACKED(upper, 2, 0x100),                 \
    MX_PACKED(upper, 1, 2), MX_PACKED(upper, 2, 0x200), MX_PACKED(upper, 2, 0x201), MX_PACKED(upper, 3, 0x20100),       \
    MX_PACKED(upper, 1, 3), MX_PACKED(upper, 2, 0x300), MX_PACKED(upper, 2, 0x301), MX_PACKED(upper, 3, 0x30100),       \
    MX_PACKED(upper, 2, 0x302), MX_PACKED(upper, 3, 0x30200), MX_PACKED(upper, 3, 0x30201), MX_PACKED(upper, 4, 0x3020100)
static const uint64_t mx_packed_parts[256] = {
    MX_PACKED_16(0), MX_PACKED_16(4), MX_PACKED_16(5), MX_PACKED_16(0x504), MX_PACKED_16(6), MX_PACKED_16(0x604),
    MX_PACKED_16(0x605), MX_PACKED_16(0x60504), MX_PACKED_16(7), MX_PACKED_16(0x704), MX_PACKED_16(0x705), MX_PACKED_16(0x70504),
    MX_PACKED_16(0x706), MX_PACKED_16(0x70604), MX_PACKED_16(0x70605), MX_PACKED_16(0x7060504)};
#endif

MX_INLINE unsigned MX_ORDER(mask_of)(__m256i where) { return (unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(where)); }
MX_INLINE unsigned MX_ORDER(first)(ptrdiff_t n) { return n >= MX_SIDE ? 0xff : n <= 0 ? 0 : (1u << n * MX_ORDER(parts)) - 1; }
MX_INLINE __m256i MX_ORDER(whole)(ptrdiff_t n) /* all bits of the first n words */
{
    const int parts = (int)(n >= MX_SIDE ? 8 : n <= 0 ? 0 : n * MX_ORDER(parts));
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(parts), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
MX_INLINE __m256i MX_ORDER(load_first)(const WORD *x, ptrdiff_t n)
{
    const __m256i some = MX_ORDER(whole)(n);
    return _mm256_or_si256(_mm256_maskload_epi32((const int *)x, some), _mm256_xor_si256(some, _mm256_set1_epi32(-1)));
}
MX_INLINE void MX_ORDER(store_first)(WORD *y, __m256i v, ptrdiff_t n)
{
    if (n >= MX_SIDE) MX_STORE(y, v);
    else if (n > 0) _mm256_maskstore_epi32((int *)y, MX_ORDER(whole)(n), v); /* takes as long as ten others on some processors */
}
MX_INLINE __m256i MX_ORDER(mirror)(__m256i v, int other)
{
    const __m256i halves = other * MX_ORDER(parts) & 4 ? _mm256_permute2x128_si256(v, v, 1) : v;
    switch (other * MX_ORDER(parts) & 3) {
    case 1: return _mm256_shuffle_epi32(halves, 0xb1);
    case 2: return _mm256_shuffle_epi32(halves, 0x4e);
    case 3: return _mm256_shuffle_epi32(halves, 0x1b);
    }
    return halves;
}
MX_INLINE __m256i MX_ORDER(exchanged)(__m256i v, __m256i p, int bit)
{
    const __m256i low = MX_MIN(v, p), high = MX_MAX(v, p);
    switch (bit * MX_ORDER(parts)) {
    case 1: return _mm256_blend_epi32(low, high, 0xaa);
    case 2: return _mm256_blend_epi32(low, high, 0xcc);
    }
    return _mm256_blend_epi32(low, high, 0xf0);
}
MX_INLINE __m256i MX_ORDER(packed)(__m256i v, unsigned named)
{
    return _mm256_permutevar8x32_epi32(v, _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)&mx_packed_parts[named])));
}
#endif
#ifndef MX_SIGNED
#define MX_SIGNED(v) (v)
#endif
