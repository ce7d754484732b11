/* mxop_fold_rows.h - sums and extremes of short rows of float32, several rows at once, in the instructions of AVX-512; included
 * by mxop_fold.h.
 *
 * To join the lanes of one short row takes longer than to read it.  Here those of 8 or 16 rows are joined together: each step
 * takes two vectors, and makes one that holds half as many lanes of each.  Sums are those of mxop_sums.h, bit by bit. */
#ifndef MXOP_FOLD_ROWS_H
#define MXOP_FOLD_ROWS_H

#include "mxop_block.h"
#include "mxop_bulk.h"

/* Elements from which on a row takes so long that joining its lanes does not count. */
enum { MX_FOLD_SHORT = 8 * MX_RUN };

#if defined(__AVX512F__) && defined(__AVX512DQ__) && defined(__GNUC__)

/* The parts of a sum, as in MX_ADD_UP; *rest is the sum of what is left of a row. */
MX_INLINE __m512d mx_row_parts(const float *x, ptrdiff_t n, double *rest)
{
    __m512d parts = _mm512_setzero_pd();
    double last = 0;
    ptrdiff_t i = 0;
    if (n >= 64) {
        __m512 lanes[4] = {_mm512_setzero_ps(), _mm512_setzero_ps(), _mm512_setzero_ps(), _mm512_setzero_ps()};
        for (; i + 64 <= n; i += 64)
            MX_UNROLLED for (int k = 0; k < 4; k++) lanes[k] = _mm512_add_ps(lanes[k], _mm512_loadu_ps(x + i + 16 * k));
        MX_UNROLLED for (int k = 0; k < 4; k++) {
            parts = _mm512_add_pd(parts, _mm512_cvtps_pd(_mm512_castps512_ps256(lanes[k])));
            parts = _mm512_add_pd(parts, _mm512_cvtps_pd(_mm512_extractf32x8_ps(lanes[k], 1)));
        }
    }
    for (; i + 8 <= n; i += 8) parts = _mm512_add_pd(parts, _mm512_cvtps_pd(_mm256_loadu_ps(x + i)));
    for (; i < n; i++) last += (double)x[i];
    *rest = last;
    return parts;
}

static void mx_sum_eight(double *total, const char *x, ptrdiff_t step, ptrdiff_t n)
{
    double rest[8];
    __m512d p[8];
    for (int r = 0; r < 8; r++) p[r] = mx_row_parts((const float *)(x + r * step), n, rest + r);
    /* halves, quarters, then neighbours; row 1 beside row 0 in the end */
    for (int k = 0; k < 4; k++) {
        const int row = k < 2 ? 4 * k : 4 * k - 7;      /* 0 and 2, 4 and 6, 1 and 3, 5 and 7 */
        const __m512d a = p[row], b = p[row + 2];
        p[row] = _mm512_add_pd(_mm512_shuffle_f64x2(a, b, 0x44), _mm512_shuffle_f64x2(a, b, 0xee));
    }
    const __m512d even = _mm512_add_pd(_mm512_shuffle_f64x2(p[0], p[4], 0x88), _mm512_shuffle_f64x2(p[0], p[4], 0xdd));
    const __m512d odd = _mm512_add_pd(_mm512_shuffle_f64x2(p[1], p[5], 0x88), _mm512_shuffle_f64x2(p[1], p[5], 0xdd));
    const __m512d sums = _mm512_add_pd(_mm512_unpacklo_pd(even, odd), _mm512_unpackhi_pd(even, odd));
    _mm512_storeu_pd(total, _mm512_add_pd(_mm512_loadu_pd(total), _mm512_add_pd(sums, _mm512_loadu_pd(rest))));
}

/* The extremes of 16 rows of 16 elements or more.  Extremes of the lanes pass NaN over; rows that have one are told by a bit. */
#define MX_EXTREME_SIXTEEN(name, beyond)                                                                            \
    static void name(double *total, const char *x_, ptrdiff_t step, ptrdiff_t n)                                    \
    {                                                                                                               \
        __m512 m[16];                                                                                               \
        unsigned nan = 0;                                                                                           \
        for (int r = 0; r < 16; r++) {                                                                              \
            const float *x = (const float *)(x_ + r * step);                                                        \
            const __m512 first = _mm512_loadu_ps(x), last = _mm512_loadu_ps(x + n - 16);                            \
            __m512 most = _mm512_##beyond##_ps(first, last);                                                        \
            unsigned odd = _mm512_cmp_ps_mask(first, last, _CMP_UNORD_Q);                                           \
            ptrdiff_t i = 16;                                                                                       \
            for (; i + 48 <= n; i += 32) {                                                                          \
                const __m512 v = _mm512_loadu_ps(x + i), w = _mm512_loadu_ps(x + i + 16);                           \
                most = _mm512_##beyond##_ps(most, _mm512_##beyond##_ps(v, w));                                      \
                odd |= _mm512_cmp_ps_mask(v, w, _CMP_UNORD_Q);                                                      \
            }                                                                                                       \
            for (; i + 16 < n; i += 16) {                                                                           \
                const __m512 v = _mm512_loadu_ps(x + i);                                                            \
                most = _mm512_##beyond##_ps(most, v);                                                               \
                odd |= _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);                                                      \
            }                                                                                                       \
            m[r] = most;                                                                                            \
            nan |= (unsigned)(odd != 0) << r;                                                                       \
        }                                                                                                           \
        for (int r = 0; r < 16; r += 2)     /* neighbours */                                                        \
            m[r] = _mm512_##beyond##_ps(_mm512_unpacklo_ps(m[r], m[r + 1]), _mm512_unpackhi_ps(m[r], m[r + 1]));           \
        for (int r = 0; r < 16; r += 4) {   /* pairs */                                                             \
            const __m512d a = _mm512_castps_pd(m[r]), b = _mm512_castps_pd(m[r + 2]);                               \
            m[r] = _mm512_##beyond##_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(a, b)), _mm512_castpd_ps(_mm512_unpackhi_pd(a, b))); \
        }                                                                                                           \
        for (int r = 0; r < 16; r += 8)     /* quarters */                                                          \
            m[r] = _mm512_##beyond##_ps(_mm512_shuffle_f32x4(m[r], m[r + 4], 0x88), _mm512_shuffle_f32x4(m[r], m[r + 4], 0xdd)); \
        m[0] = _mm512_##beyond##_ps(_mm512_shuffle_f32x4(m[0], m[8], 0x88), _mm512_shuffle_f32x4(m[0], m[8], 0xdd));       \
        for (int k = 0; k < 2; k++) {       /* of numbers alone; what is NaN in `total`, the second one, stays */   \
            const __m256 half = k ? _mm512_extractf32x8_ps(m[0], 1) : _mm512_castps512_ps256(m[0]);                 \
            const __m512d all = _mm512_##beyond##_pd(_mm512_cvtps_pd(half), _mm512_loadu_pd(total + 8 * k));        \
            _mm512_storeu_pd(total + 8 * k, _mm512_mask_mov_pd(all, (__mmask8)(nan >> 8 * k), _mm512_set1_pd(NAN)));\
        }                                                                                                           \
    }
MX_EXTREME_SIXTEEN(mx_max_sixteen, max)
MX_EXTREME_SIXTEEN(mx_min_sixteen, min)

/* Combine rows with accumulators, as far as that is done here; return how many were. */
static ptrdiff_t mx_fold_short_rows(int combine, double *total, const char *x, ptrdiff_t rows, ptrdiff_t step, ptrdiff_t n,
                                    ptrdiff_t block)
{
    ptrdiff_t r = 0;
    if (n >= MX_FOLD_SHORT || n > block) return 0;
    if (combine == MX_ADD && n >= 8)
        for (; r + 8 <= rows; r += 8) mx_sum_eight(total + r, x + r * step, step, n);
    else if (combine == MX_MAX && n >= 16)
        for (; r + 16 <= rows; r += 16) mx_max_sixteen(total + r, x + r * step, step, n);
    else if (combine == MX_MIN && n >= 16)
        for (; r + 16 <= rows; r += 16) mx_min_sixteen(total + r, x + r * step, step, n);
    return r;
}

#else
static ptrdiff_t mx_fold_short_rows(int combine, double *total, const char *x, ptrdiff_t rows, ptrdiff_t step, ptrdiff_t n,
                                    ptrdiff_t block)
{
    (void)combine, (void)total, (void)x, (void)rows, (void)step, (void)n, (void)block;
    return 0;
}
#endif

#endif
