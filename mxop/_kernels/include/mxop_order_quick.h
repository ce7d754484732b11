/* mxop_order_quick.h - quicksort of unsigned words for AVX-512; included once for each WORD, by mxop_order_word.h.

   Few words are sorted in registers, by bitonic merges (Batcher 1968).  More are divided by a pivot: the words below it
   are packed to the left, the others to the right, from one memory into another and back. */

#if MX_BITS == 32
#define MX_RAMP _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
#define MX_OF(name) _mm512_##name##32
#define MX_SET(value) _mm512_set1_epi32((int)(value))
#define MX_BELOW _mm512_mask_cmplt_epu32_mask
typedef __mmask16 MX_ORDER(mask);
#else
#define MX_RAMP _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7)
#define MX_OF(name) _mm512_##name##64
#define MX_SET(value) _mm512_set1_epi64((long long)(value))
#define MX_BELOW _mm512_mask_cmplt_epu64_mask
typedef __mmask8 MX_ORDER(mask);
#endif
enum { MX_ORDER(side) = 512 / MX_BITS, MX_ORDER(few) = 16 * MX_ORDER(side) };
#define MX_SIDE MX_ORDER(side)
#define MX_MASK MX_ORDER(mask)

static inline MX_MASK MX_ORDER(first)(ptrdiff_t n) { return (MX_MASK)(n >= MX_SIDE ? -1 : n <= 0 ? 0 : (1 << n) - 1); }
static inline __m512i MX_ORDER(mirror)(__m512i v, int other)
{
    return MX_OF(permutexvar_epi)(_mm512_xor_si512(MX_RAMP, MX_SET(other)), v); /* the index of each word, some bits turned */
}

/* In each vector: compare words with their mirror images, and leave the larger where the index has `bit`. */
#define MX_EXCHANGE(other, bit)                                                                                         \
    MX_UNROLLED for (int i = 0; i < vectors; i++) {                                                                     \
        const __m512i p = MX_ORDER(mirror)(v[i], other), low = MX_OF(min_epu)(v[i], p);                                 \
        v[i] = MX_OF(mask_max_epu)(low, (MX_MASK)(bit == 1 ? 0xaaaa : bit == 2 ? 0xcccc : bit == 4 ? 0xf0f0 : 0xff00), v[i], p);\
    }

/* Compare vectors with those that are so far apart. */
#define MX_CLEAN(apart)                                                                                                 \
    MX_UNROLLED for (int i = 0; i < vectors; i++)                                                                       \
        if (!(i & apart)) {                                                                                             \
            const __m512i a = v[i], b = v[i | apart];                                                                   \
            v[i] = MX_OF(min_epu)(a, b), v[i | apart] = MX_OF(max_epu)(a, b);                                           \
        }
/* Merge neighbours of `half` vectors each: the second, read backwards, makes a bitonic sequence with the first. */
#define MX_MERGE(half)                                                                                                  \
    if (vectors > half) {                                                                                               \
        MX_UNROLLED for (int i = 0; i < vectors; i++) w[i] = i & half ? MX_ORDER(mirror)(v[i ^ (half - 1)], MX_SIDE - 1) : v[i];\
        MX_UNROLLED for (int i = 0; i < vectors; i++) v[i] = w[i];                                                      \
        MX_CLEAN(half)                                                                                                  \
        if (half > 4) { MX_CLEAN(4) }                                                                                   \
        if (half > 2) { MX_CLEAN(2) }                                                                                   \
        if (half > 1) { MX_CLEAN(1) }                                                                                   \
        if (MX_SIDE > 8) { MX_EXCHANGE(8, 8) }                                                                          \
        MX_EXCHANGE(4, 4) MX_EXCHANGE(2, 2) MX_EXCHANGE(1, 1)                                                           \
    }

/* Sort n words at x, for which so many vectors are enough, into y. */
MX_INLINE void MX_ORDER(registers)(const WORD *x, WORD *y, ptrdiff_t n, const int vectors)
{
    __m512i v[16], w[16];
    MX_UNROLLED for (int i = 0; i < vectors; i++)
        v[i] = MX_OF(mask_loadu_epi)(_mm512_set1_epi32(-1), MX_ORDER(first)(n - i * MX_SIDE), x + i * MX_SIDE);
    MX_EXCHANGE(1, 1)
    MX_EXCHANGE(3, 2) MX_EXCHANGE(1, 1)
    MX_EXCHANGE(7, 4) MX_EXCHANGE(2, 2) MX_EXCHANGE(1, 1)
    if (MX_SIDE > 8) { MX_EXCHANGE(15, 8) MX_EXCHANGE(4, 4) MX_EXCHANGE(2, 2) MX_EXCHANGE(1, 1) }
    MX_MERGE(1) MX_MERGE(2) MX_MERGE(4) MX_MERGE(8)
    MX_UNROLLED for (int i = 0; i < vectors; i++)
        MX_OF(mask_storeu_epi)(y + i * MX_SIDE, MX_ORDER(first)(n - i * MX_SIDE), v[i]);
}

static void MX_ORDER(sort_few)(const WORD *x, WORD *y, ptrdiff_t n)
{
    if (n <= MX_SIDE) MX_ORDER(registers)(x, y, n, 1);
    else if (n <= 2 * MX_SIDE) MX_ORDER(registers)(x, y, n, 2);
    else if (n <= 4 * MX_SIDE) MX_ORDER(registers)(x, y, n, 4);
    else if (n <= 8 * MX_SIDE) MX_ORDER(registers)(x, y, n, 8);
    else MX_ORDER(registers)(x, y, n, 16);
}

/* Pack the words of a vector that a mask names, to where `to` is, and go on behind them.  What follows there may be overwritten. */
MX_INLINE void MX_ORDER(put)(WORD **to, __m512i v, MX_MASK named)
{
    _mm512_storeu_si512(*to, MX_OF(maskz_compress_epi)(named, v)); /* compressing to memory takes a hundred cycles on some processors */
    *to += _mm_popcnt_u32(named);
}
MX_INLINE void MX_ORDER(put_last)(WORD **to, __m512i v, MX_MASK named)
{
    const int many = (int)_mm_popcnt_u32(named);
    MX_OF(mask_storeu_epi)(*to, (MX_MASK)((1u << many) - 1), MX_OF(maskz_compress_epi)(named, v));
    *to += many;
}

/* Pack the words below a pivot to the beginning of one memory, the others to that of another; return how many are below.  One of
   them may be x itself, where nothing is written that was not read. */
static ptrdiff_t MX_ORDER(divide)(const WORD *x, WORD *low, WORD *high, ptrdiff_t n, WORD pivot)
{
    const __m512i limit = MX_SET(pivot);
    const WORD *const first = low;
    ptrdiff_t i = 0;
    for (; i + 4 * MX_SIDE <= n; i += 4 * MX_SIDE) { /* comparisons do not wait for what is packed */
        __m512i v[4];
        MX_MASK below[4];
        MX_UNROLLED for (int k = 0; k < 4; k++) v[k] = _mm512_loadu_si512(x + i + k * MX_SIDE);
        MX_UNROLLED for (int k = 0; k < 4; k++) below[k] = MX_BELOW((MX_MASK)-1, v[k], limit);
        MX_UNROLLED for (int k = 0; k < 4; k++) {
            MX_ORDER(put)(&low, v[k], below[k]);
            MX_ORDER(put)(&high, v[k], (MX_MASK)~below[k]);
        }
    }
    for (; i < n; i += MX_SIDE) {
        const MX_MASK some = MX_ORDER(first)(n - i);
        const __m512i v = MX_OF(maskz_loadu_epi)(some, x + i);
        const MX_MASK below = MX_BELOW(some, v, limit);
        MX_ORDER(put_last)(&low, v, below);
        MX_ORDER(put_last)(&high, v, (MX_MASK)(some & ~below));
    }
    return low - first;
}

/* The middle one of some words: of more where a bad choice costs more. */
static WORD MX_ORDER(pivot)(const WORD *x, ptrdiff_t n)
{
    WORD some[4 * MX_SIDE];
    const int many = n < 4096 ? MX_SIDE : 4 * MX_SIDE;
    for (int k = 0; k < many; k++) some[k] = x[n / many * k];
    MX_ORDER(sort_few)(some, some, many);
    return some[many / 2];
}

/* Sort n words at x, where they are or, if `away`, into y; what is left of both is written as well.  The words below a pivot go to
   the memory that they end up in, and the others to the beginning of the other one.  A pivot below which there is nothing has many
   equals, which are in their place at once.  After so many `tries` the range of the words is halved instead. */
static void MX_ORDER(quick)(WORD *x, WORD *y, int away, ptrdiff_t n, int tries)
{
    while (n > MX_ORDER(few)) {
        WORD pivot, *const low = away ? y : x, *const high = away ? x : y;
        ptrdiff_t below;
        if (tries-- > 0) {
            pivot = MX_ORDER(pivot)(x, n);
        } else {
            uint64_t least, most;
            MX_ORDER(range)(x, n, &least, &most);
            pivot = (WORD)(most - (most - least) / 2);
        }
        below = MX_ORDER(divide)(x, low, high, n, pivot);
        x = high, y = low + below, away = 1;
        if (below) {
            MX_ORDER(quick)(low, high + (n - below), 0, below, tries);
        } else {
            if (pivot == (WORD)-1) memcpy(y, x, (size_t)(below = n) * sizeof *x);
            else below = MX_ORDER(divide)(x, y, x, n, pivot + 1);
            y += below;
        }
        n -= below;
    }
    MX_ORDER(sort_few)(x, away ? y : x, n);
}
static void MX_ORDER(sort)(void *words, void *spare, void *to, ptrdiff_t n)
{
    int tries = 2;
    for (ptrdiff_t k = n; k > MX_ORDER(few); k /= 2) tries += 2;
    MX_ORDER(quick)((WORD *)words, (WORD *)spare, to != words, n, tries);
}

#undef MX_RAMP
#undef MX_OF
#undef MX_SET
#undef MX_BELOW
#undef MX_SIDE
#undef MX_MASK
#undef MX_EXCHANGE
#undef MX_CLEAN
#undef MX_MERGE
