/* mxop_sums.h - sums and extremes of numbers side by side; one build per instruction set, with results of the same bits.

   Independent lanes let the compiler use vectors, and keep rounding errors of sums small.  Lanes are joined as a tree, in
   double, since a chain of additions would take longer than the lanes do. */
#ifndef MXOP_SUMS_H
#define MXOP_SUMS_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "mxop_block.h"

/* Before a short loop: a loop of vectors is made of it as it stands, and not of what is left of it when it is written out. */
#if defined(__GNUC__) && !defined(__clang__)
#define MX_ROLLED _Pragma("GCC unroll 1")
#else
#define MX_ROLLED
#endif
#if defined(__AVX512F__) /* eight doubles are one vector: two would be kept in memory */
#define MX_ROLLED_EIGHT MX_ROLLED
#else
#define MX_ROLLED_EIGHT
#endif

#define MX_LANES_float 64
#define MX_LANES_double 32

/* The sum of VALUE, an expression of `at`, for 0 <= at < n; returned in double.  FETCH stands before each step. */
#define MX_ADD_UP(T, n, VALUE) MX_ADD_UP_WITH(T, n, , VALUE)
#define MX_ADD_UP_FROM(T, x, n, VALUE) MX_ADD_UP_WITH(T, n, mx_prefetch_first((const char *)(x + i) + MX_PREFETCH_BYTES, lanes_ * sizeof *x);, VALUE)
#define MX_ADD_UP_WITH(T, n, FETCH, VALUE)                                                                    \
    do {                                                                                                      \
        enum { lanes_ = MX_LANES_##T };                                                                       \
        double parts[8] = {0};                                                                                \
        ptrdiff_t i = 0;                                                                                      \
        if (n >= lanes_) {                                                                                    \
            T lanes[lanes_] = {0};                                                                            \
            for (; i + lanes_ <= n; i += lanes_) {                                                            \
                FETCH                                                                                         \
                for (int k = 0; k < lanes_; k++) { const ptrdiff_t at = i + k; lanes[k] += (VALUE); }         \
            }                                                                                                 \
            for (int j = 0; j < lanes_; j += 8)                                                               \
                MX_ROLLED_EIGHT for (int k = 0; k < 8; k++) parts[k] += (double)lanes[k + j];                 \
        }                                                                                                     \
        for (; i + 8 <= n; i += 8)                                                                            \
            MX_ROLLED_EIGHT for (int k = 0; k < 8; k++) { const ptrdiff_t at = i + k; parts[k] += (double)(T)(VALUE); }\
        double rest = 0; /* does not wait for the parts */                                                    \
        for (; i < n; i++) { const ptrdiff_t at = i; rest += (double)(T)(VALUE); }                            \
        return (((parts[0] + parts[4]) + (parts[2] + parts[6]))                                               \
                + ((parts[1] + parts[5]) + (parts[3] + parts[7]))) + rest;                                    \
    } while (0)

static double mx_sum_f32(const float *x, ptrdiff_t n) { MX_ADD_UP_FROM(float, x, n, x[at]); }
static double mx_sum_f64(const double *x, ptrdiff_t n) { MX_ADD_UP_FROM(double, x, n, x[at]); }

/* The sum of the squares of x[i] * scale. */
static double mx_squares_f64(const double *x, ptrdiff_t n, double scale)
{
    MX_ADD_UP(double, n, (x[at] * scale) * (x[at] * scale));
}

/* The larger (or smaller) of two numbers; NaN wins, and stays.  Without a branch, so that loops use vectors. */
#define mx_larger(a, v) (((v) > (a)) | ((v) != (v)) ? (v) : (a))
#define mx_smaller(a, v) (((v) < (a)) | ((v) != (v)) ? (v) : (a))

/* The largest (or smallest) of `total` and n numbers; NaN wins.  Lanes pass NaN over, and note it.  The last of a row are taken
   together with some that were met before. */
#define MX_EXTREME_STEP(T, BEYOND)                                                                            \
    MX_ROLLED for (int k = 0; k < 16; k++) {                                                                  \
        const T v = x[i + k];                                                                                 \
        most[k] = v BEYOND most[k] ? v : most[k];                                                             \
        odd[k] |= v != v;                                                                                     \
    }
#define MX_EXTREME_HALF(BEYOND, half, lanes)                                                                  \
    for (int k = 0; k < (half); k++) lanes[k] = lanes[k + (half)] BEYOND lanes[k] ? lanes[k + (half)] : lanes[k];
/* Of 16 numbers or more: the lanes and their order are the same in both ways. */
#if defined(__AVX2__) && !defined(__AVX512F__) && defined(__GNUC__) /* compilers move arrays of lanes through memory, in pieces */
#define MX_EXTREME_OF_MANY(name, T, V, P, PICK)                                                           \
    static inline int name##_of_many(const T *x, ptrdiff_t n, T *found)                                   \
    {                                                                                                     \
        enum { side = 32 / sizeof(T), few = 16 / side };                                                  \
        V most[8], odd[4];                                                                                \
        ptrdiff_t i = 0;                                                                                  \
        MX_UNROLLED for (int k = 0; k < 4; k++) odd[k] = _mm256_setzero_##P();                            \
        MX_UNROLLED for (int k = 0; k < few; k++) most[k] = _mm256_loadu_##P(x + k * side);               \
        if (n >= 8 * side) {                                                                              \
            MX_UNROLLED for (int k = few; k < 8; k++) most[k] = _mm256_loadu_##P(x + k * side);           \
            for (; i + 8 * side <= n; i += 8 * side) {                                                    \
                V v[8];                                                                                   \
                mx_prefetch_first((const char *)(x + i) + MX_PREFETCH_BYTES, 256);                        \
                MX_UNROLLED for (int k = 0; k < 8; k++) v[k] = _mm256_loadu_##P(x + i + k * side);        \
                MX_UNROLLED for (int k = 0; k < 8; k++) most[k] = _mm256_##PICK##_##P(v[k], most[k]);     \
                MX_UNROLLED for (int k = 0; k < 4; k++)                                                   \
                    odd[k] = _mm256_or_##P(odd[k], _mm256_cmp_##P(v[k], v[k + 4], _CMP_UNORD_Q));         \
            }                                                                                             \
            MX_UNROLLED for (int k = 0; k < 4; k++) most[k] = _mm256_##PICK##_##P(most[k + 4], most[k]);  \
            if (few == 2)                                                                                 \
                MX_UNROLLED for (int k = 0; k < 2; k++) most[k] = _mm256_##PICK##_##P(most[k + 2], most[k]);\
        }                                                                                                 \
        for (; i < n; i += 16) {                                                                          \
            i = i < n - 16 ? i : n - 16;                                                                  \
            MX_UNROLLED for (int k = 0; k < few; k++) {                                                   \
                const V v = _mm256_loadu_##P(x + i + k * side);                                           \
                most[k] = _mm256_##PICK##_##P(v, most[k]);                                                \
                odd[k] = _mm256_or_##P(odd[k], _mm256_cmp_##P(v, v, _CMP_UNORD_Q));                       \
            }                                                                                             \
        }                                                                                                 \
        if (few == 4)                                                                                     \
            MX_UNROLLED for (int k = 0; k < 2; k++) most[k] = _mm256_##PICK##_##P(most[k + 2], most[k]);  \
        most[0] = _mm256_##PICK##_##P(most[1], most[0]);                                                  \
        most[0] = _mm256_##PICK##_##P(_mm256_permute2f128_##P(most[0], most[0], 1), most[0]);             \
        if (side == 8) most[0] = _mm256_##PICK##_##P(_mm256_permute_##P(most[0], 14), most[0]);           \
        *found = _mm256_##PICK##_##P(_mm256_permute_##P(most[0], 1), most[0])[0];                         \
        return _mm256_movemask_##P(_mm256_or_##P(_mm256_or_##P(odd[0], odd[1]), _mm256_or_##P(odd[2], odd[3])));\
    }
MX_EXTREME_OF_MANY(mx_max_f32, float, __m256, ps, max)
MX_EXTREME_OF_MANY(mx_max_f64, double, __m256d, pd, max)
MX_EXTREME_OF_MANY(mx_min_f32, float, __m256, ps, min)
MX_EXTREME_OF_MANY(mx_min_f64, double, __m256d, pd, min)
#else
#define MX_EXTREME_OF_MANY(name, T, INT, BEYOND, LANES)                                                   \
    static inline int name##_of_many(const T *x, ptrdiff_t n, T *found)                                   \
    {                                                                                                     \
        ptrdiff_t i = 0;                                                                                  \
        T most[16];                                                                                       \
        INT odd[16] = {0}, any = 0;                                                                       \
        MX_ROLLED for (int k = 0; k < 16; k++) most[k] = x[k];                                            \
        if (n >= LANES) {                                                                                 \
            T lanes[LANES];                                                                               \
            INT other[LANES / 2] = {0};                                                                   \
            for (int k = 0; k < LANES; k++) lanes[k] = x[k];                                              \
            for (; i + LANES <= n; i += LANES) {                                                          \
                mx_prefetch_first((const char *)(x + i) + MX_PREFETCH_BYTES, LANES * sizeof *x);          \
                for (int k = 0; k < LANES; k++) lanes[k] = x[i + k] BEYOND lanes[k] ? x[i + k] : lanes[k];\
                for (int k = 0; k < LANES / 2; k++) other[k] |= isunordered(x[i + k], x[i + k + LANES / 2]);\
            }                                                                                             \
            if (LANES > 32) {                                                                             \
                MX_EXTREME_HALF(BEYOND, LANES / 2, lanes)                                                 \
                MX_ROLLED for (int k = 0; k < 16; k++) odd[k] = other[k] | other[k + 16];                 \
            } else {                                                                                      \
                MX_ROLLED for (int k = 0; k < 16; k++) odd[k] = other[k];                                 \
            }                                                                                             \
            MX_ROLLED MX_EXTREME_HALF(BEYOND, 16, lanes)                                                  \
            MX_ROLLED for (int k = 0; k < 16; k++) most[k] = lanes[k];                                    \
        }                                                                                                 \
        for (; i + 16 <= n; i += 16) { MX_EXTREME_STEP(T, BEYOND) }                                       \
        i = n - 16;                                                                                       \
        MX_EXTREME_STEP(T, BEYOND)                                                                        \
        MX_ROLLED for (int k = 0; k < 16; k++) any |= odd[k];                                             \
        MX_ROLLED MX_EXTREME_HALF(BEYOND, 8, most)                                                        \
        MX_ROLLED MX_EXTREME_HALF(BEYOND, 4, most)                                                        \
        MX_ROLLED MX_EXTREME_HALF(BEYOND, 2, most)                                                        \
        MX_EXTREME_HALF(BEYOND, 1, most)                                                                  \
        *found = most[0];                                                                                 \
        return any;                                                                                       \
    }
MX_EXTREME_OF_MANY(mx_max_f32, float, int32_t, >, 64)
MX_EXTREME_OF_MANY(mx_max_f64, double, int64_t, >, 32)
MX_EXTREME_OF_MANY(mx_min_f32, float, int32_t, <, 64)
MX_EXTREME_OF_MANY(mx_min_f64, double, int64_t, <, 32)
#endif

#define MX_EXTREME(name, T, INT, BEYOND, PICK)                                                            \
    static double name(double total, const T *x, ptrdiff_t n)                                             \
    {                                                                                                     \
        T most[8];                                                                                        \
        INT any = 0;                                                                                      \
        if (n < 8) {                                                                                      \
            for (ptrdiff_t i = 0; i < n; i++) total = PICK(total, (double)x[i]);                          \
            return total;                                                                                 \
        }                                                                                                 \
        if (n < 16) {                                                                                     \
            MX_ROLLED for (int k = 0; k < 8; k++) {                                                       \
                const T v = x[k], w = x[n - 8 + k];                                                       \
                most[k] = w BEYOND v ? w : v;                                                             \
                any |= (v != v) | (w != w);                                                               \
            }                                                                                             \
            MX_ROLLED MX_EXTREME_HALF(BEYOND, 4, most)                                                    \
            MX_ROLLED MX_EXTREME_HALF(BEYOND, 2, most)                                                    \
            MX_EXTREME_HALF(BEYOND, 1, most)                                                              \
        } else {                                                                                          \
            any = (INT)name##_of_many(x, n, most);                                                        \
        }                                                                                                 \
        return any ? (double)NAN : PICK(total, (double)most[0]);                                          \
    }

MX_EXTREME(mx_max_f32, float, int32_t, >, mx_larger)
MX_EXTREME(mx_max_f64, double, int64_t, >, mx_larger)
MX_EXTREME(mx_min_f32, float, int32_t, <, mx_smaller)
MX_EXTREME(mx_min_f64, double, int64_t, <, mx_smaller)

#endif
