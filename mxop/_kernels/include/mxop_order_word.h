/* mxop_order_word.h - sorting of unsigned words; included once for each WORD (and its NAME), by mxop_order.h.

   A word is a key, or a key above an index: MX_LANES columns of words are sorted at once by a network, long rows by their digits. */

/* Sort MX_LANES columns of n words: Batcher's merge exchange, whose comparisons do not depend on the values. */
static void MX_ORDER(network)(void *words, ptrdiff_t n)
{
    WORD *x = (WORD *)words;
    ptrdiff_t top = 1;
    while (top < n) top <<= 1;
    top >>= 1;
    for (ptrdiff_t p = top; p > 0; p >>= 1)
        for (ptrdiff_t q = top, r = 0, d = p;; d = q - p, q >>= 1, r = p) {
            for (ptrdiff_t i = r; i < n - d; i += 2 * p) {
                const ptrdiff_t many = (i + p < n - d ? p : n - d - i) * MX_LANES;
                WORD *MX_RESTRICT low = x + i * MX_LANES, *MX_RESTRICT high = x + (i + d) * MX_LANES;
                MX_IVDEP
                for (ptrdiff_t j = 0; j < many; j++) {
                    const WORD a = low[j], b = high[j];
                    low[j] = a < b ? a : b;
                    high[j] = a < b ? b : a;
                }
            }
            if (q == p) break;
        }
}

/* Sort few words. */
static void MX_ORDER(insert)(void *words, ptrdiff_t n)
{
    WORD *x = (WORD *)words;
    for (ptrdiff_t i = 1; i < n; i++) {
        const WORD v = x[i];
        ptrdiff_t j = i;
        for (; j > 0 && x[j - 1] > v; j--) x[j] = x[j - 1];
        x[j] = v;
    }
}

/* Find the smallest and the largest of n > 0 words. */
static void MX_ORDER(range)(const void *words, ptrdiff_t n, uint64_t *least, uint64_t *most)
{
    const WORD *x = (const WORD *)words;
    WORD low = x[0], high = x[0];
    for (ptrdiff_t i = 1; i < n; i++) {
        low = x[i] < low ? x[i] : low;
        high = x[i] > high ? x[i] : high;
    }
    *least = low, *most = high;
}

/* Count digits; two tables, since equal neighbours would wait for each other. */
static void MX_ORDER(count)(const void *words, ptrdiff_t n, uint64_t low, int shift, int bits, uint32_t *counts)
{
    const WORD *x = (const WORD *)words, zero = (WORD)low;
    const uint32_t mask = ((uint32_t)1 << bits) - 1;
    uint32_t other[1 << MX_DIGIT];
    ptrdiff_t i = 0;
    memset(counts, 0, sizeof(uint32_t) << bits);
    memset(other, 0, sizeof(uint32_t) << bits);
    for (; i + 2 <= n; i += 2) {
        counts[(uint32_t)((WORD)(x[i] - zero) >> shift) & mask]++;
        other[(uint32_t)((WORD)(x[i + 1] - zero) >> shift) & mask]++;
    }
    for (; i < n; i++) counts[(uint32_t)((WORD)(x[i] - zero) >> shift) & mask]++;
    for (uint32_t k = 0; k <= mask; k++) counts[k] += other[k];
}

/* Put words where their digits belong: of equal digits, in their order. */
static void MX_ORDER(scatter)(const void *words, void *to, ptrdiff_t n, uint64_t low, int shift, int bits, uint32_t *places)
{
    const WORD *x = (const WORD *)words, zero = (WORD)low;
    const uint32_t mask = ((uint32_t)1 << bits) - 1;
    WORD *y = (WORD *)to;
    for (ptrdiff_t i = 0; i < n; i++) y[places[(uint32_t)((WORD)(x[i] - zero) >> shift) & mask]++] = x[i];
}

/* Put the leading 32 bits of keys above indices: of the row in a matrix with columns, of the place in one row. */
static void MX_ORDER(pack)(const void *words, uint64_t *packed, ptrdiff_t rows, ptrdiff_t cols, uint64_t low, int shift, int64_t first)
{
    const WORD *x = (const WORD *)words, zero = (WORD)low;
    for (ptrdiff_t r = 0; r < rows; r++, x += cols, packed += cols)
        if (rows == 1)
            for (ptrdiff_t c = 0; c < cols; c++) packed[c] = (uint64_t)((WORD)(x[c] - zero) >> shift) << 32 | (uint64_t)(first + c);
        else
            for (ptrdiff_t c = 0; c < cols; c++) packed[c] = (uint64_t)((WORD)(x[c] - zero) >> shift) << 32 | (uint64_t)r;
}

/* Count words below a limit. */
static ptrdiff_t MX_ORDER(below)(const void *words, ptrdiff_t n, uint64_t limit)
{
    const WORD *x = (const WORD *)words, most = (WORD)limit;
    WORD found = 0;
    for (ptrdiff_t i = 0; i < n; i++) found += x[i] < most;
    return (ptrdiff_t)found;
}

#if defined(__AVX512F__) || defined(__AVX2__)
#include "mxop_order_quick.h"
#define MX_SORT MX_ORDER(sort)
#else
#define MX_SORT 0
#endif

static const mx_words MX_ORDER(words) = {MX_ORDER(network), MX_ORDER(insert), MX_ORDER(range), MX_ORDER(count),
                                         MX_ORDER(scatter), MX_ORDER(pack), MX_ORDER(below), MX_SORT};
#undef WORD
#undef MX_BITS
#undef MX_SORT
#undef MX_ORDER
