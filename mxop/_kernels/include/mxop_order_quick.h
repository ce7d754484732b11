/* mxop_order_quick.h - quicksort of unsigned words for AVX-512 and AVX2; included once for each WORD, by mxop_order_word.h.

   Few words are sorted in registers, by bitonic merges (Batcher 1968).  More are divided by a pivot: the words below it
   are packed to the left, the others to the right, from one memory into another and back. */

#include "mxop_order_vectors.h"

/* In each vector: compare words with their mirror images, at the index with some bits turned, and leave the larger where the index
   has `bit`. */
#define MX_EXCHANGE(other, bit)                                                                                         \
    MX_UNROLLED for (int i = 0; i < vectors; i++) v[i] = MX_ORDER(exchanged)(v[i], MX_ORDER(mirror)(v[i], other), bit);

/* Compare vectors with those that are so far apart. */
#define MX_CLEAN(apart)                                                                                                 \
    MX_UNROLLED for (int i = 0; i < vectors; i++)                                                                       \
        if (!(i & apart)) {                                                                                             \
            const MX_ORDER(vector) a = v[i], b = v[i | apart];                                                          \
            v[i] = MX_MIN(a, b), v[i | apart] = MX_MAX(a, b);                                                           \
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
        if (MX_SIDE > 4) { MX_EXCHANGE(4, 4) }                                                                          \
        MX_EXCHANGE(2, 2) MX_EXCHANGE(1, 1)                                                                             \
    }

/* Sort n words at x, for which so many vectors are enough, into y. */
MX_INLINE void MX_ORDER(registers)(const WORD *x, WORD *y, ptrdiff_t n, const int vectors)
{
    MX_ORDER(vector) v[16], w[16];
    MX_UNROLLED for (int i = 0; i < vectors; i++) v[i] = MX_SIGNED(MX_ORDER(load_first)(x + i * MX_SIDE, n - i * MX_SIDE));
    MX_EXCHANGE(1, 1)
    MX_EXCHANGE(3, 2) MX_EXCHANGE(1, 1)
    if (MX_SIDE > 4) { MX_EXCHANGE(7, 4) MX_EXCHANGE(2, 2) MX_EXCHANGE(1, 1) }
    if (MX_SIDE > 8) { MX_EXCHANGE(15, 8) MX_EXCHANGE(4, 4) MX_EXCHANGE(2, 2) MX_EXCHANGE(1, 1) }
    MX_MERGE(1) MX_MERGE(2) MX_MERGE(4) MX_MERGE(8)
    MX_UNROLLED for (int i = 0; i < vectors; i++) MX_ORDER(store_first)(y + i * MX_SIDE, MX_SIGNED(v[i]), n - i * MX_SIDE);
}

enum { MX_ORDER(few) = 16 * MX_SIDE };

static void MX_ORDER(sort_few)(const WORD *x, WORD *y, ptrdiff_t n)
{
    if (n <= MX_SIDE) MX_ORDER(registers)(x, y, n, 1);
    else if (n <= 2 * MX_SIDE) MX_ORDER(registers)(x, y, n, 2);
    else if (n <= 4 * MX_SIDE) MX_ORDER(registers)(x, y, n, 4);
    else if (n <= 8 * MX_SIDE) MX_ORDER(registers)(x, y, n, 8);
    else MX_ORDER(registers)(x, y, n, 16);
}

/* Pack the words of a vector that a mask names, to where `to` is, and go on behind them. */
MX_INLINE void MX_ORDER(put_last)(WORD **to, MX_ORDER(vector) v, MX_ORDER(mask) named)
{
    MX_ORDER(store_first)(*to, MX_ORDER(packed)(v, named), MX_COUNT(named));
    *to += MX_COUNT(named);
}

/* Pack the words below a pivot to the beginning of one memory, the others to that of another; return how many are below.  One of
   them may be x itself, where nothing is written that was not read. */
static ptrdiff_t MX_ORDER(divide)(const WORD *x, WORD *low, WORD *high, ptrdiff_t n, WORD pivot)
{
    const MX_ORDER(vector) limit = MX_SET(pivot);
    const MX_ORDER(mask) all = MX_ORDER(first)(MX_SIDE);
    const WORD *const first = low;
    ptrdiff_t i = 0;
    for (; i + 4 * MX_SIDE <= n; i += 4 * MX_SIDE) { /* comparisons do not wait for what is packed */
        MX_ORDER(vector) v[4];
        MX_ORDER(mask) below[4];
        MX_UNROLLED for (int k = 0; k < 4; k++) v[k] = MX_LOAD(x + i + k * MX_SIDE);
        MX_UNROLLED for (int k = 0; k < 4; k++) below[k] = MX_BELOW(v[k], limit);
        MX_UNROLLED for (int k = 0; k < 4; k++) {
            const size_t many = MX_COUNT(below[k]);
            MX_STORE(low, MX_ORDER(packed)(v[k], below[k])); /* what follows the packed words may be overwritten */
            MX_STORE(high, MX_ORDER(packed)(v[k], below[k] ^ all));
            low += many;
            high += MX_SIDE - many;
        }
    }
    for (; i < n; i += MX_SIDE) {
        const MX_ORDER(mask) some = MX_ORDER(first)(n - i);
        const MX_ORDER(vector) v = MX_ORDER(load_first)(x + i, n - i);
        const MX_ORDER(mask) below = MX_BELOW(v, limit) & some;
        MX_ORDER(put_last)(&low, v, below);
        MX_ORDER(put_last)(&high, v, below ^ some);
    }
    return low - first;
}

/* The middle one of some words: of more where a bad choice costs more. */
static WORD MX_ORDER(pivot)(const WORD *x, ptrdiff_t n)
{
    WORD some[4 * MX_SIDE];
    const int many = n >= 4096 ? 4 * MX_SIDE : MX_SIDE > 8 ? MX_SIDE : 8;
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
#undef MX_SIGNED
#undef MX_BELOW
#undef MX_MIN
#undef MX_MAX
#undef MX_LOAD
#undef MX_STORE
#undef MX_COUNT
#undef MX_SIDE
#undef MX_EXCHANGE
#undef MX_CLEAN
#undef MX_MERGE
