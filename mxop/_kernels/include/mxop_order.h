/* mxop_order.h - elements as words that are ordered as they are, words sorted, and elements or places made of them again;
   one build per instruction set.

   NaN counts as the largest number.  Where an index is told, zeros are equal; where values are, the negative one comes first. */
#ifndef MXOP_ORDER_H
#define MXOP_ORDER_H

#include <string.h>

#include "mxop_block.h"
#include "mxop_bulk.h"

#define WORD uint32_t
#define MX_BITS 32
#define MX_ORDER(name) mx_##name##_w32
#include "mxop_order_word.h"
#define WORD uint64_t
#define MX_BITS 64
#define MX_ORDER(name) mx_##name##_w64
#include "mxop_order_word.h"

/* Bits of real numbers to keys and back: with the sign's bit set they are above all others, negative numbers run down. */
#define MX_KEY_REAL(NAME, B, S, SIGN, INF, NAN_)                                                                        \
    static inline B mx_key_##NAME(B b, int zeros)                                                                       \
    {                                                                                                                   \
        B rest = (B)(b & (B)~SIGN), key;                                                                                \
        b = rest > INF ? NAN_ : zeros && rest == 0 ? 0 : b;                                                             \
        key = (B)(b ^ ((B)((S)b >> (sizeof(B) * 8 - 1)) | SIGN));                                                       \
        return key;                                                                                                     \
    }                                                                                                                   \
    static inline B mx_unkey_##NAME(B k) { return (B)(k ^ ((B) ~((S)k >> (sizeof(B) * 8 - 1)) | SIGN)); }
#define MX_KEY_WHOLE(NAME, B, SIGN)                                                                                     \
    static inline B mx_key_##NAME(B b, int zeros) { return (void)zeros, (B)(b ^ SIGN); }                                \
    static inline B mx_unkey_##NAME(B k) { return (B)(k ^ SIGN); }
MX_KEY_REAL(f32, uint32_t, int32_t, 0x80000000u, 0x7f800000u, 0x7fc00000u)
MX_KEY_REAL(f64, uint64_t, int64_t, 0x8000000000000000u, 0x7ff0000000000000u, 0x7ff8000000000000u)
MX_KEY_REAL(f16, uint16_t, int16_t, 0x8000u, 0x7c00u, 0x7e00u)
MX_KEY_REAL(bf16, uint16_t, int16_t, 0x8000u, 0x7f80u, 0x7fc0u)
MX_KEY_WHOLE(u8, uint8_t, 0)
MX_KEY_WHOLE(i8, uint8_t, 0x80u)
MX_KEY_WHOLE(i32, uint32_t, 0x80000000u)
MX_KEY_WHOLE(i64, uint64_t, 0x8000000000000000u)

/* All storage types: code, name, bits, word. */
#define MX_ORDERED(DO)                                                                                                  \
    DO(0, f32, uint32_t, uint32_t) DO(1, f64, uint64_t, uint64_t) DO(2, f16, uint16_t, uint32_t) DO(3, u8, uint8_t, uint32_t) \
    DO(4, i32, uint32_t, uint32_t) DO(5, i8, uint8_t, uint32_t) DO(6, i64, uint64_t, uint64_t) DO(7, u8, uint8_t, uint32_t)   \
    DO(12, bf16, uint16_t, uint32_t)

/* Make words of a matrix of elements; `flip` has all bits set to turn the order around.  Steps are in bytes. */
static void mx_keys(int type, uint64_t flip, int zeros, const char *x, ptrdiff_t xstep, char *words, ptrdiff_t wstep, ptrdiff_t rows,
                    ptrdiff_t cols)
{
#define MX_CASE(CODE, NAME, B, W)                                                                                       \
    case CODE:                                                                                                          \
        for (ptrdiff_t r = 0; r < rows; r++, x += xstep, words += wstep) {                                              \
            const B *MX_RESTRICT s = (const B *)x;                                                                      \
            W *MX_RESTRICT d = (W *)words;                                                                              \
            for (ptrdiff_t c = 0; c < cols; c++) d[c] = (W)(B)(mx_key_##NAME(s[c], zeros) ^ (B)flip);                   \
        }                                                                                                               \
        break;
    switch (type) { MX_ORDERED(MX_CASE) }
#undef MX_CASE
}

/* The way back. */
static void mx_unkeys(int type, uint64_t flip, const char *words, ptrdiff_t wstep, char *x, ptrdiff_t xstep, ptrdiff_t rows,
                      ptrdiff_t cols)
{
#define MX_CASE(CODE, NAME, B, W)                                                                                       \
    case CODE:                                                                                                          \
        for (ptrdiff_t r = 0; r < rows; r++, x += xstep, words += wstep) {                                              \
            const W *MX_RESTRICT s = (const W *)words;                                                                  \
            B *MX_RESTRICT d = (B *)x;                                                                                  \
            for (ptrdiff_t c = 0; c < cols; c++) d[c] = mx_unkey_##NAME((B)((B)s[c] ^ (B)flip));                        \
        }                                                                                                               \
        break;
    switch (type) { MX_ORDERED(MX_CASE) }
#undef MX_CASE
}

/* Write the indices of packed words as numbers of a type. */
static void mx_places(int type, const char *words, ptrdiff_t wstep, char *x, ptrdiff_t xstep, ptrdiff_t rows, ptrdiff_t cols)
{
#define MX_CASE(CODE, T)                                                                                                \
    case CODE:                                                                                                          \
        for (ptrdiff_t r = 0; r < rows; r++, x += xstep, words += wstep) {                                              \
            const uint64_t *MX_RESTRICT s = (const uint64_t *)words;                                                    \
            T *MX_RESTRICT d = (T *)x;                                                                                  \
            for (ptrdiff_t c = 0; c < cols; c++) d[c] = (T)(int32_t)s[c];                                               \
        }                                                                                                               \
        break;
    switch (type) { MX_CASE(0, float) MX_CASE(1, double) MX_CASE(3, uint8_t) MX_CASE(4, int32_t) MX_CASE(6, int64_t) }
#undef MX_CASE
}

static const mx_order mx_this_order = {{&mx_words_w32, &mx_words_w64}, mx_keys, mx_unkeys, mx_places};

#endif
