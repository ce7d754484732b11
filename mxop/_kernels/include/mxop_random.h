/* mxop_random.h - random bits by counting: Philox4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as
   easy as 1, 2, 3", 2011).

   What an element gets follows from the key of the draw and the element's index alone, so neither threads nor blocks
   nor the instruction set make a difference.  A call of Philox gives four words of 32 bits.  Sixteen calls make a group
   of 64 words, laid out so that the compiler computes the calls side by side and stores without any shuffling:

       word w of call c of group g is word number 64 g + 16 w + c

   An element takes one word, or (float64, int64) two: those with the numbers 64 g + e and 64 g + 32 + e, for element e
   of the 32 of group g. */
#ifndef MXOP_RANDOM_H
#define MXOP_RANDOM_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* What the interpreter gives an instruction in the place of elements of the key: they are bytes of a register. */
typedef struct { uint64_t key, start; } mx_draw;

#define MX_WORDS 64   /* of a group */

/* A word between rounds: in 64 bits, where that spares the compiler the shuffling round a product (measured: 0.3 against
   0.95 ns a word with AVX-512; without, 32 bits are as fast or faster).  What is above 32 bits is never used. */
#if defined(__AVX512DQ__)
typedef uint64_t mx_lane;
#else
typedef uint32_t mx_lane;
#endif

#define MX_PHILOX_ROUND { \
    const uint64_t p = (uint64_t)0xD2511F53u * (uint32_t)c0, q = (uint64_t)0xCD9E8D57u * (uint32_t)c2; \
    c0 = (mx_lane)(q >> 32) ^ c1 ^ k0; c2 = (mx_lane)(p >> 32) ^ c3 ^ k1; \
    c1 = (mx_lane)q; c3 = (mx_lane)p; \
    k0 += 0x9E3779B9u; k1 += 0xBB67AE85u; }

/* Sixteen calls side by side: `first`, a multiple of 16, is the number of the first; word w of call c is w[stride w + c]. */
static inline void mx_philox_calls(uint64_t key, uint64_t first, uint32_t purpose, uint32_t *MX_RESTRICT w, int stride)
{
    const uint32_t low = (uint32_t)first, high = (uint32_t)(first >> 32);
    MX_IVDEP
    for (uint32_t c = 0; c < 16; c++) {
        mx_lane c0 = low + c, c1 = high, c2 = 0, c3 = purpose;
        uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
        MX_PHILOX_ROUND MX_PHILOX_ROUND MX_PHILOX_ROUND MX_PHILOX_ROUND MX_PHILOX_ROUND
        MX_PHILOX_ROUND MX_PHILOX_ROUND MX_PHILOX_ROUND MX_PHILOX_ROUND MX_PHILOX_ROUND
        w[c] = (uint32_t)c0; w[stride + c] = (uint32_t)c1;
        w[2 * stride + c] = (uint32_t)c2; w[3 * stride + c] = (uint32_t)c3;
    }
}

/* The 64 words of one group. */
static inline void mx_philox_group(uint64_t key, uint64_t group, uint32_t *MX_RESTRICT w)
{
    mx_philox_calls(key, group << 4, 0, w, 16);
}

/* Numbers from words: as wide as the type's fraction, so that all of them are equally likely, and exact. */
#define MX_WORD(w, e) (w)[e]
#define MX_TWO_WORDS(w, e) ((uint64_t)(w)[e] << 32 | (w)[32 + (e)])
#define mx_random_of_f32(w, e) ((float)(int32_t)(MX_WORD(w, e) >> 8) * 0x1p-24f)
#define mx_random_of_f64(w, e) ((double)(int64_t)(MX_TWO_WORDS(w, e) >> 11) * 0x1p-53)
#define mx_random_of_u8(w, e) (uint8_t)(MX_WORD(w, e) >> 24)
#define mx_random_of_i8(w, e) (int8_t)(MX_WORD(w, e) >> 25)
#define mx_random_of_i32(w, e) (int32_t)(MX_WORD(w, e) >> 1)
#define mx_random_of_i64(w, e) (int64_t)(MX_TWO_WORDS(w, e) >> 1)
/* Symmetric about 0, never 0, 1 or -1: what the inverse of a distribution takes. */
#define mx_random_signed_of_f32(w, e) ((float)((int32_t)(MX_WORD(w, e) >> 8) * 2 - 0xffffff) * 0x1p-24f)
#define mx_random_signed_of_f64(w, e) ((double)((int64_t)(MX_TWO_WORDS(w, e) >> 11) * 2 - 0x1fffffffffffff) * 0x1p-53)

/* The loop of an instruction that draws: elements start to start + n, in groups of `size` elements. */
#define MX_DRAW(name, type, size) \
static void name##_loop(ptrdiff_t n, type *MX_RESTRICT o, uint64_t key, uint64_t start) \
{ \
    uint32_t w[MX_WORDS]; \
    uint64_t group = start / (size); \
    ptrdiff_t first = (ptrdiff_t)(start % (size)), i = 0; \
    while (i < n) { \
        ptrdiff_t count = (size) - first; \
        if (count > n - i) count = n - i; \
        mx_philox_group(key, group++, w); \
        if (count == (size)) { \
            MX_IVDEP \
            for (ptrdiff_t e = 0; e < (size); e++) o[i + e] = name(w, e); \
        } else { \
            for (ptrdiff_t e = 0; e < count; e++) o[i + e] = name(w, first + e); \
        } \
        i += count; first = 0; \
    } \
}

#endif
