/* mxop_fold.h - combinations of many numbers: of rows, of columns, and the places of extremes; one build per instruction set,
   with results of the same bits.

   Accumulators are double, or 64-bit integers.  Extremes need no more than the type of the elements. */
#ifndef MXOP_FOLD_H
#define MXOP_FOLD_H

#include "mxop_block.h"
#include "mxop_bulk.h"
#include "mxop_sums.h"
#include "mxop_fold_rows.h"

/* ---- one row: floating point ------------------------------------------------------------------------------------------- */
static inline double mx_sum_float(const float *x, ptrdiff_t n) { return mx_sum_f32(x, n); }
static inline double mx_sum_double(const double *x, ptrdiff_t n) { return mx_sum_f64(x, n); }
static double mx_squares_quick(const float *x, ptrdiff_t n) { MX_ADD_UP_FROM(float, x, n, x[at] * x[at]); }
static double mx_squares_wide(const float *x, ptrdiff_t n) { MX_ADD_UP_FROM(double, x, n, (double)x[at] * (double)x[at]); }
static double mx_squares_float(const float *x, ptrdiff_t n)
{
    const double quick = n < MX_LANES_float ? 0 : mx_squares_quick(x, n);
    return quick > 0x1p-100 && quick < 0x1p+127 ? quick : mx_squares_wide(x, n); /* else squares may have gone under, or over */
}
static double mx_squares_double(const double *x, ptrdiff_t n) { MX_ADD_UP_FROM(double, x, n, x[at] * x[at]); }

/* A row by blocks; and each of several rows.  The loop over rows has nothing to decide: deciding in it costs a tenth. */
#define MX_BLOCKS(COMBINE, OF)                                                                                          \
    for (ptrdiff_t i = 0; i < n; i += block) COMBINE OF(x + i, n - i < block ? n - i : block);                          \
    return t;
#define MX_ROWS_BY(T, VALUE)                                                                                            \
    for (; r < rows; r++) {                                                                                             \
        const T *row = (const T *)((const char *)x + r * step);                                                         \
        total[r] = (VALUE);                                                                                             \
    }
/* Rows of a few elements: a loop for each number of them, with nothing else in it. */
enum { MX_TINY = 7 };
#define MX_TINY_ROWS(T, K, BEGIN, JOIN, END)                                                                            \
    case K:                                                                                                             \
        for (; r < rows; r++) {                                                                                         \
            const T *row = (const T *)((const char *)x + r * step);                                                     \
            double t = BEGIN;                                                                                           \
            MX_UNROLLED for (int i = 0; i < K; i++) t = JOIN(t, (double)row[i]);                                        \
            total[r] = END;                                                                                             \
        }                                                                                                               \
        break;
#define MX_TINY_OF(T, BEGIN, JOIN, END)                                                                                 \
    switch (n) {                                                                                                        \
    MX_TINY_ROWS(T, 1, BEGIN, JOIN, END) MX_TINY_ROWS(T, 2, BEGIN, JOIN, END) MX_TINY_ROWS(T, 3, BEGIN, JOIN, END)      \
    MX_TINY_ROWS(T, 4, BEGIN, JOIN, END) MX_TINY_ROWS(T, 5, BEGIN, JOIN, END) MX_TINY_ROWS(T, 6, BEGIN, JOIN, END)      \
    MX_TINY_ROWS(T, 7, BEGIN, JOIN, END)                                                                                \
    }
#define MX_SUM_OF(a, v) ((a) + (v))
#define MX_FOLD_TINY(T)                                                                                                 \
    static void mx_fold_tiny_##T(int combine, double *total, const T *x, ptrdiff_t rows, ptrdiff_t step, ptrdiff_t n)   \
    {                                                                                                                   \
        ptrdiff_t r = 0;                                                                                                \
        if (combine == MX_ADD) MX_TINY_OF(T, 0, MX_SUM_OF, total[r] + t)                                                \
        else if (combine == MX_MAX) MX_TINY_OF(T, total[r], mx_larger, t)                                               \
        else MX_TINY_OF(T, total[r], mx_smaller, t)                                                                     \
    }
MX_FOLD_TINY(float)
MX_FOLD_TINY(double)

#define MX_FOLD_REAL(T)                                                                                                 \
    static double mx_product_##T(const T *x, ptrdiff_t n)                                                               \
    {                                                                                                                   \
        enum { lanes = 32 };                                                                                            \
        double total = 1;                                                                                               \
        ptrdiff_t i = 0;                                                                                                \
        if (n >= lanes) {                                                                                               \
            double part[lanes];                                                                                         \
            for (int k = 0; k < lanes; k++) part[k] = (double)x[k];                                                     \
            for (i = lanes; i + 2 * lanes <= n; i += 2 * lanes) { /* two at a time: one waits for another half as long */\
                mx_prefetch_first((const char *)(x + i) + MX_PREFETCH_BYTES, 2 * lanes * sizeof *x);                    \
                for (int k = 0; k < lanes; k++) part[k] *= (double)x[i + k] * (double)x[i + lanes + k];                 \
            }                                                                                                           \
            for (; i + lanes <= n; i += lanes)                                                                          \
                for (int k = 0; k < lanes; k++) part[k] *= (double)x[i + k];                                            \
            for (int half = lanes / 2; half; half /= 2)                                                                 \
                for (int k = 0; k < half; k++) part[k] *= part[k + half];                                               \
            total = part[0];                                                                                            \
        }                                                                                                               \
        for (; i < n; i++) total *= (double)x[i];                                                                       \
        return total;                                                                                                   \
    }                                                                                                                   \
    static double mx_add_up_##T(double t, const T *x, ptrdiff_t n, ptrdiff_t block) { MX_BLOCKS(t +=, mx_sum_##T) }     \
    static double mx_multiply_##T(double t, const T *x, ptrdiff_t n, ptrdiff_t block) { MX_BLOCKS(t *=, mx_product_##T) }\
    static double mx_add_squares_##T(double t, const T *x, ptrdiff_t n, ptrdiff_t block) { MX_BLOCKS(t +=, mx_squares_##T) }\
    static void mx_fold_##T(int combine, void *totals, const void *x, ptrdiff_t rows, ptrdiff_t step, ptrdiff_t n,      \
                            ptrdiff_t block)                                                                            \
    {                                                                                                                   \
        double *total = (double *)totals;                                                                               \
        if (n <= MX_TINY && n > 0 && rows > 1 && (combine == MX_ADD || combine == MX_MAX || combine == MX_MIN)) {       \
            mx_fold_tiny_##T(combine, total, (const T *)x, rows, step, n);                                              \
            return;                                                                                                     \
        }                                                                                                               \
        ptrdiff_t r = sizeof(T) == 4 ? mx_fold_short_rows(combine, total, (const char *)x, rows, step, n, block) : 0;   \
        if (combine == MX_ADD) MX_ROWS_BY(T, mx_add_up_##T(total[r], row, n, block))                                    \
        else if (combine == MX_MUL) MX_ROWS_BY(T, mx_multiply_##T(total[r], row, n, block))                             \
        else if (combine == MX_MAX) MX_ROWS_BY(T, mx_max_##T(total[r], row, n))                                         \
        else if (combine == MX_MIN) MX_ROWS_BY(T, mx_min_##T(total[r], row, n))                                         \
        else MX_ROWS_BY(T, mx_add_squares_##T(total[r], row, n, block))                                                 \
    }

/* ---- one row: integers ------------------------------------------------------------------------------------------------- */
#define MX_FOLD_WHOLE(T)                                                                                                \
    static void mx_fold_##T(int combine, void *totals, const void *x_, ptrdiff_t rows, ptrdiff_t step, ptrdiff_t n,     \
                            ptrdiff_t block)                                                                            \
    {                                                                                                                   \
        int64_t *total = (int64_t *)totals;                                                                             \
        (void)block;                                                                                                    \
        for (ptrdiff_t r = 0; r < rows; r++) {                                                                          \
            const T *x = (const T *)((const char *)x_ + r * step);                                                      \
            int64_t t = total[r];                                                                                       \
            if (combine == MX_ADD) {                                                                                    \
                for (ptrdiff_t i = 0; i < n; i++) t += x[i];                                                            \
            } else if (combine == MX_MUL) {                                                                             \
                for (ptrdiff_t i = 0; i < n; i++) t *= x[i];                                                            \
            } else if (n > 0) {                                                                                         \
                const T most = combine == MX_MAX ? mx_most_##T(x[0], x, n) : mx_least_##T(x[0], x, n);                  \
                t = (combine == MX_MAX) == (most > t) ? most : t;                                                       \
            }                                                                                                           \
            total[r] = t;                                                                                               \
        }                                                                                                               \
    }

/* ---- columns ----------------------------------------------------------------------------------------------------------- */
/* Eight rows at a time, so that accumulators are read and written once for eight elements; of rows that no cache can hold, a
   little is fetched ahead. */
static void mx_fetch_eight(const char *x, ptrdiff_t step, ptrdiff_t bytes)
{
    for (int row = 0; row < 8; row++, x += step) mx_prefetch_first(x + MX_PREFETCH_BYTES / 4, bytes);
}
#define MX_EIGHT_OF(T, A, TERM, from, to)                                                                               \
    MX_IVDEP                                                                                                            \
    for (ptrdiff_t j = from; j < to; j++) {                                                                             \
        A t = total[j];                                                                                                 \
        TERM(T, A, 0) TERM(T, A, 1) TERM(T, A, 2) TERM(T, A, 3) TERM(T, A, 4) TERM(T, A, 5) TERM(T, A, 6) TERM(T, A, 7) \
        total[j] = t;                                                                                                   \
    }
#define MX_EIGHT(T, A, TERM)                                                                                            \
    ptrdiff_t first = 0;                                                                                                \
    for (; first + MX_RUN <= width; first += MX_RUN) {                                                                  \
        if (far) mx_fetch_eight((const char *)((const T *)x + first), step, MX_RUN * sizeof(T));                        \
        MX_EIGHT_OF(T, A, TERM, first, first + MX_RUN)                                                                  \
    }                                                                                                                   \
    MX_EIGHT_OF(T, A, TERM, first, width)
#define MX_ONE(T, A, TERM)                                                                                              \
    MX_IVDEP                                                                                                            \
    for (ptrdiff_t j = 0; j < width; j++) {                                                                             \
        A t = total[j];                                                                                                 \
        TERM(T, A, 0)                                                                                                   \
        total[j] = t;                                                                                                   \
    }
#define MX_EACH_ROW(T, A, TERM)                                                                                         \
    for (; r + 8 <= rows; r += 8, x = (const char *)x + 8 * step) { MX_EIGHT(T, A, TERM) }                              \
    for (; r < rows; r++, x = (const char *)x + step) { MX_ONE(T, A, TERM) }
#define MX_AT(T, k) ((const T *)((const char *)x + k * step))[j]

/* Extremes of eight rows are found in the type of the elements, before they meet accumulators of another; see mx_larger. */
#define MX_EXTREME_COLUMNS(T, A, PICK)                                                                                  \
    for (; r + 8 <= rows; r += 8, x = (const char *)x + 8 * step)                                                       \
        for (ptrdiff_t first = 0; first < width; first += MX_PART_OF_EXTREMES) {                                        \
            const ptrdiff_t last = width - first < MX_PART_OF_EXTREMES ? width : first + MX_PART_OF_EXTREMES;           \
            T part[MX_PART_OF_EXTREMES];                                                                                \
            MX_IVDEP                                                                                                    \
            for (ptrdiff_t j = first; j < last; j++) {                                                                  \
                T m = PICK(MX_AT(T, 0), MX_AT(T, 1));                                                                   \
                m = PICK(m, MX_AT(T, 2)), m = PICK(m, MX_AT(T, 3)), m = PICK(m, MX_AT(T, 4));                           \
                m = PICK(m, MX_AT(T, 5)), m = PICK(m, MX_AT(T, 6)), m = PICK(m, MX_AT(T, 7));                           \
                part[j - first] = m;                                                                                    \
            }                                                                                                           \
            MX_IVDEP                                                                                                    \
            for (ptrdiff_t j = first; j < last; j++) {                                                                  \
                const A v = (A)part[j - first], t = total[j];                                                           \
                total[j] = PICK(t, v);                                                                                  \
            }                                                                                                           \
        }                                                                                                               \
    for (; r < rows; r++, x = (const char *)x + step) {                                                                 \
        MX_IVDEP                                                                                                        \
        for (ptrdiff_t j = 0; j < width; j++) {                                                                         \
            const A v = (A)MX_AT(T, 0), t = total[j];                                                                   \
            total[j] = PICK(t, v);                                                                                      \
        }                                                                                                               \
    }
enum { MX_PART_OF_EXTREMES = 4 * MX_RUN };

#define MX_GATHER(T, A, LARGER, SMALLER)                                                                                \
    static void mx_gather_##T(int combine, void *totals, const void *x, ptrdiff_t rows, ptrdiff_t step, ptrdiff_t width)\
    {                                                                                                                   \
        A *MX_RESTRICT total = (A *)totals;                                                                             \
        const int far = rows * step > MX_L2_BYTES;                                                                      \
        ptrdiff_t r = 0;                                                                                                \
        if (combine == MX_ADD) { MX_EACH_ROW(T, A, MX_PLUS) }                                                           \
        else if (combine == MX_MUL) { MX_EACH_ROW(T, A, MX_TIMES) }                                                     \
        else if (combine == MX_HYPOT) { MX_EACH_ROW(T, A, MX_SQUARE) }                                                  \
        else if (combine == MX_MAX) { MX_EXTREME_COLUMNS(T, A, LARGER) }                                                \
        else { MX_EXTREME_COLUMNS(T, A, SMALLER) }                                                                      \
    }

#define MX_PLUS(T, A, k) t += (A)MX_AT(T, k);
#define MX_TIMES(T, A, k) t *= (A)MX_AT(T, k);
#define MX_SQUARE(T, A, k) t += (A)MX_AT(T, k) * (A)MX_AT(T, k);
#define MX_GREATER(a, v) ((v) > (a) ? (v) : (a))
#define MX_LESS(a, v) ((v) < (a) ? (v) : (a))

/* ---- places of extremes ------------------------------------------------------------------------------------------------ */
/* The extreme of each block that a cache keeps, and then where it is in the best of them.  Of equals the first is meant; what is
   no number passes any but its like. */
#define MX_BETTER(v, b, BEYOND) ((!((v)BEYOND(b))) & ((b) == (b)))
#define MX_PLACE(LANES, ROLLED, SAME)                                                                                   \
    {                                                                                                                   \
        int at[16];                                                                                                     \
        for (; i + LANES < n; i += LANES) {                                                                             \
            int any = 0;                                                                                                \
            ROLLED for (int k = 0; k < LANES; k++) any |= SAME(x[i + k], best);                                         \
            if (any) break;                                                                                             \
        }                                                                                                               \
        i = n - i < LANES ? n - LANES : i;                                                                              \
        MX_ROLLED for (int k = 0; k < 16; k++) at[k] = SAME(x[i + k], best) ? k : LANES - 1;                            \
        for (int j = 16; j < LANES; j += 16)                                                                            \
            MX_ROLLED for (int k = 0; k < 16; k++) {                                                                    \
                const int place = SAME(x[i + j + k], best) ? j + k : LANES - 1;                                         \
                at[k] = place < at[k] ? place : at[k];                                                                  \
            }                                                                                                           \
        MX_ROLLED for (int k = 0; k < 8; k++) at[k] = at[k + 8] < at[k] ? at[k + 8] : at[k];                            \
        MX_ROLLED for (int k = 0; k < 4; k++) at[k] = at[k + 4] < at[k] ? at[k + 4] : at[k];                            \
        MX_ROLLED for (int k = 0; k < 2; k++) at[k] = at[k + 2] < at[k] ? at[k + 2] : at[k];                            \
        i += at[1] < at[0] ? at[1] : at[0];                                                                             \
    }
#define MX_EQUAL(v, m) ((v) == (m))
#define MX_NO_NUMBER(v, m) ((v) != (v))
#define MX_PLACE_EQUAL(T)                                                                                               \
    if (n < 64) MX_PLACE(16, MX_ROLLED, MX_EQUAL)                                                                       \
    else MX_PLACE(64, , MX_EQUAL)
#if defined(__AVX512F__) && defined(__GNUC__) /* comparisons give masks, which are quick to look at: four vectors at a time */
#define MX_FIRST_EQUAL(T, LANES, ALL, LOAD, SAME)                                                                       \
    static inline ptrdiff_t mx_first_equal_##T(const T *x, ptrdiff_t i, ptrdiff_t n, T best)                            \
    {                                                                                                                   \
        uint64_t found = 0, last = 0;                                                                                   \
        if (n >= 4 * LANES && n <= 8 * LANES) { /* all is looked at: to guess where, and wrongly, takes longer */       \
            for (int k = 0; k < 4; k++) found |= (uint64_t)SAME(LOAD(x + k * LANES), ALL(best)) << k * LANES;           \
            for (int k = 0; k < 4; k++) last |= (uint64_t)SAME(LOAD(x + n + (k - 4) * LANES), ALL(best)) << k * LANES;  \
            const int at = __builtin_ctzll(found | (uint64_t)1 << 63), then = __builtin_ctzll(last | (uint64_t)1 << 63); \
            return found ? at : n - 4 * LANES + then;                                                                   \
        }                                                                                                               \
        for (; i + 4 * LANES <= n && !found; i += 4 * LANES)                                                            \
            for (int k = 0; k < 4; k++) found |= (uint64_t)SAME(LOAD(x + i + k * LANES), ALL(best)) << k * LANES;       \
        if (found) return i - 4 * LANES + __builtin_ctzll(found);                                                       \
        for (; i + LANES < n; i += LANES)                                                                               \
            if ((found = SAME(LOAD(x + i), ALL(best)))) return i + __builtin_ctzll(found);                              \
        return n - LANES + __builtin_ctzll(SAME(LOAD(x + n - LANES), ALL(best)));                                       \
    }
#define MX_SAME_float(a, b) _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ)
#define MX_SAME_double(a, b) _mm512_cmp_pd_mask(a, b, _CMP_EQ_OQ)
#define MX_LOAD_WHOLE(p) _mm512_loadu_si512((const void *)(p))
MX_FIRST_EQUAL(float, 16, _mm512_set1_ps, _mm512_loadu_ps, MX_SAME_float)
MX_FIRST_EQUAL(double, 8, _mm512_set1_pd, _mm512_loadu_pd, MX_SAME_double)
MX_FIRST_EQUAL(int32_t, 16, _mm512_set1_epi32, MX_LOAD_WHOLE, _mm512_cmpeq_epi32_mask)
MX_FIRST_EQUAL(int64_t, 8, _mm512_set1_epi64, MX_LOAD_WHOLE, _mm512_cmpeq_epi64_mask)
#elif defined(__AVX2__) && defined(__GNUC__) /* one mask for eight vectors, and one for each only where that names any */
#define MX_FIRST_EQUAL(T, LANES, V, ALL, LOAD, SAME, OR, MASK)                                                          \
    static inline ptrdiff_t mx_first_equal_##T(const T *x, ptrdiff_t i, ptrdiff_t n, T best)                            \
    {                                                                                                                   \
        const V all = ALL(best);                                                                                        \
        uint64_t found = 0;                                                                                             \
        for (; i + 8 * LANES <= n; i += 8 * LANES) {                                                                    \
            V same[8];                                                                                                  \
            MX_UNROLLED for (int k = 0; k < 8; k++) same[k] = SAME(LOAD(x + i + k * LANES), all);                       \
            if (!MASK(OR(OR(OR(same[0], same[1]), OR(same[2], same[3])), OR(OR(same[4], same[5]), OR(same[6], same[7]))))) \
                continue;                                                                                               \
            MX_UNROLLED for (int k = 0; k < 8; k++) found |= (uint64_t)(unsigned)MASK(same[k]) << k * LANES;            \
            return i + __builtin_ctzll(found);                                                                          \
        }                                                                                                               \
        for (; i + LANES < n; i += LANES)                                                                               \
            if ((found = (unsigned)MASK(SAME(LOAD(x + i), all)))) return i + __builtin_ctzll(found);                    \
        return n - LANES + __builtin_ctzll((unsigned)MASK(SAME(LOAD(x + n - LANES), all)));                             \
    }
#define MX_EQUAL_PS(a, b) _mm256_cmp_ps(a, b, _CMP_EQ_OQ)
#define MX_EQUAL_PD(a, b) _mm256_cmp_pd(a, b, _CMP_EQ_OQ)
#define MX_MASK_32(v) _mm256_movemask_ps(_mm256_castsi256_ps(v))
#define MX_MASK_64(v) _mm256_movemask_pd(_mm256_castsi256_pd(v))
#define MX_LOAD_WHOLE(p) _mm256_loadu_si256((const __m256i *)(p))
MX_FIRST_EQUAL(float, 8, __m256, _mm256_set1_ps, _mm256_loadu_ps, MX_EQUAL_PS, _mm256_or_ps, _mm256_movemask_ps)
MX_FIRST_EQUAL(double, 4, __m256d, _mm256_set1_pd, _mm256_loadu_pd, MX_EQUAL_PD, _mm256_or_pd, _mm256_movemask_pd)
MX_FIRST_EQUAL(int32_t, 8, __m256i, _mm256_set1_epi32, MX_LOAD_WHOLE, _mm256_cmpeq_epi32, _mm256_or_si256, MX_MASK_32)
MX_FIRST_EQUAL(int64_t, 4, __m256i, _mm256_set1_epi64x, MX_LOAD_WHOLE, _mm256_cmpeq_epi64, _mm256_or_si256, MX_MASK_64)
#endif
#if defined(MX_FIRST_EQUAL)
#define MX_PLACE_QUICK(T) i = mx_first_equal_##T(x, i, n, best);
#else
#define MX_PLACE_QUICK(T) MX_PLACE_EQUAL(T)
#endif
/* Of short rows the extremes of several are found first: looking for one waits for it, and for a guess that is wrong. */
#define MX_FIND_ROWS_OF(name, T, MOST, COMBINE, BEYOND, PLACE)                                                          \
    static void name(int64_t *places, const T *x, ptrdiff_t rows, ptrdiff_t n)                                          \
    {                                                                                                                   \
        enum { block = MX_L1_BYTES / 2 / sizeof(T), several = MX_FIND_ROWS };                                           \
        const ptrdiff_t together = n >= block ? 1 : block / n < several ? block / n : several;  /* all in L1 */         \
        double extremes[several];                                                                                       \
        T most[several];                                                                                                \
        ptrdiff_t first[several];                                                                                       \
        if (n < 16) {                                                                                                   \
            for (; rows-- > 0; x += n, places++) {                                                                      \
                ptrdiff_t i = 0;                                                                                        \
                for (ptrdiff_t j = 1; j < n; j++) i = MX_BETTER(x[j], x[i], BEYOND) ? j : i;                            \
                *places = i;                                                                                            \
            }                                                                                                           \
            return;                                                                                                     \
        }                                                                                                               \
        for (ptrdiff_t many; rows > 0; rows -= many, places += many) {                                                  \
            const T *row = x;                                                                                           \
            many = rows < together ? rows : together;                                                                   \
            ptrdiff_t quick = 0;                                                                                        \
            if (sizeof(T) == 4 && (T)0.5 != 0) {                                                                        \
                for (int r = 0; r < several; r++) extremes[r] = COMBINE == MX_MAX ? -INFINITY : INFINITY;               \
                quick = mx_fold_short_rows(COMBINE, extremes, (const char *)x, many, n * sizeof(T), n, block);          \
                for (int r = 0; r < several; r++) most[r] = (T)extremes[r], first[r] = 0;                               \
            }                                                                                                           \
            row += quick * n;                                                                                           \
            for (ptrdiff_t r = quick; r < many; r++, row += n) {                                                        \
                most[r] = (T)MOST(row[0], row, n < block ? n : block), first[r] = 0;                                    \
                for (ptrdiff_t j = block; j < n; j += block) {                                                          \
                    const T other = (T)MOST(row[j], row + j, n - j < block ? n - j : block);                            \
                    if (MX_BETTER(other, most[r], BEYOND)) most[r] = other, first[r] = j;                               \
                }                                                                                                       \
            }                                                                                                           \
            for (ptrdiff_t r = 0; r < many; r++, x += n) {                                                              \
                const T best = most[r];                                                                                 \
                ptrdiff_t i = first[r];                                                                                 \
                if (best != best) MX_PLACE(16, MX_ROLLED, MX_NO_NUMBER)                                                 \
                else { PLACE(T) }                                                                                       \
                places[r] = i;                                                                                          \
            }                                                                                                           \
        }                                                                                                               \
    }
#define MX_FIND_COLUMNS(name, T, A, BEYOND)                                                                             \
    static void name(int64_t *places, const void *x, ptrdiff_t rows, ptrdiff_t step, ptrdiff_t width)                   \
    {                                                                                                                   \
        T best[MX_COLUMNS];                                                                                             \
        A at[MX_COLUMNS];                                                                                               \
        for (ptrdiff_t j = 0; j < width; j++) best[j] = MX_AT(T, 0), at[j] = 0;                                         \
        for (ptrdiff_t r = 1; r < rows; r++) {                                                                          \
            const T *MX_RESTRICT row = (const T *)((const char *)x + r * step);                                         \
            MX_IVDEP                                                                                                    \
            for (ptrdiff_t j = 0; j < width; j++) {                                                                     \
                const T v = row[j], old = best[j];                                                                      \
                const int better = MX_BETTER(v, old, BEYOND);                                                           \
                best[j] = better ? v : old;                                                                             \
                at[j] = better ? (A)r : at[j];                                                                          \
            }                                                                                                           \
        }                                                                                                               \
        for (ptrdiff_t j = 0; j < width; j++) places[j] = (int64_t)at[j];                                               \
    }
#define MX_FIND(T, A, MOST, LEAST, PLACE)                                                                               \
    MX_FIND_ROWS_OF(mx_find_most_##T, T, MOST, MX_MAX, <=, PLACE)                                                       \
    MX_FIND_ROWS_OF(mx_find_least_##T, T, LEAST, MX_MIN, >=, PLACE)                                                     \
    MX_FIND_COLUMNS(mx_columns_most_##T, T, A, <=)                                                                      \
    MX_FIND_COLUMNS(mx_columns_least_##T, T, A, >=)                                                                     \
    static void mx_find_##T(int largest, int64_t *places, const void *x, ptrdiff_t rows, ptrdiff_t n)                   \
    {                                                                                                                   \
        (largest ? mx_find_most_##T : mx_find_least_##T)(places, (const T *)x, rows, n);                                \
    }                                                                                                                   \
    static void mx_find_columns_##T(int largest, int64_t *places, const void *x, ptrdiff_t rows, ptrdiff_t step,        \
                                    ptrdiff_t width)                                                                    \
    {                                                                                                                   \
        (largest ? mx_columns_most_##T : mx_columns_least_##T)(places, x, rows, step, width);                           \
    }

/* The largest (or smallest) of `most` and n numbers, in lanes that do not wait for each other. */
#define MX_WHOLE_EXTREME(name, T, BEYOND)                                                                               \
    static T name(T most, const T *x, ptrdiff_t n)                                                                      \
    {                                                                                                                   \
        enum { lanes = 256 / sizeof(T) };                                                                               \
        ptrdiff_t i = 0;                                                                                                \
        if (n >= 2 * lanes) {                                                                                           \
            T part[lanes];                                                                                              \
            for (int k = 0; k < lanes; k++) part[k] = x[k];                                                             \
            for (i = lanes; i + lanes <= n; i += lanes)                                                                 \
                for (int k = 0; k < lanes; k++) part[k] = x[i + k] BEYOND part[k] ? x[i + k] : part[k];                 \
            for (int k = 0; k < lanes; k++) most = part[k] BEYOND most ? part[k] : most;                                \
        }                                                                                                               \
        for (; i < n; i++) most = x[i] BEYOND most ? x[i] : most;                                                       \
        return most;                                                                                                    \
    }
#define mx_max_float mx_max_f32
#define mx_min_float mx_min_f32
#define mx_max_double mx_max_f64
#define mx_min_double mx_min_f64
MX_FOLD_REAL(float)
MX_FOLD_REAL(double)
MX_GATHER(float, double, mx_larger, mx_smaller)
MX_GATHER(double, double, mx_larger, mx_smaller)
#define MX_WHOLE(T)                                                                                                     \
    MX_WHOLE_EXTREME(mx_most_##T, T, >)                                                                                 \
    MX_WHOLE_EXTREME(mx_least_##T, T, <)                                                                                \
    MX_FOLD_WHOLE(T)                                                                                                    \
    MX_GATHER(T, int64_t, MX_GREATER, MX_LESS)
MX_WHOLE(uint8_t)
MX_WHOLE(int8_t)
MX_WHOLE(int32_t)
MX_WHOLE(int64_t)
MX_FIND(float, int32_t, mx_max_f32, mx_min_f32, MX_PLACE_QUICK)
MX_FIND(double, int64_t, mx_max_f64, mx_min_f64, MX_PLACE_QUICK)
MX_FIND(uint8_t, int32_t, mx_most_uint8_t, mx_least_uint8_t, MX_PLACE_EQUAL)
MX_FIND(int8_t, int32_t, mx_most_int8_t, mx_least_int8_t, MX_PLACE_EQUAL)
MX_FIND(int32_t, int32_t, mx_most_int32_t, mx_least_int32_t, MX_PLACE_QUICK)
MX_FIND(int64_t, int64_t, mx_most_int64_t, mx_least_int64_t, MX_PLACE_QUICK)

#define MX_TYPES(name) {name##_float, name##_double, 0, name##_uint8_t, name##_int32_t, name##_int8_t, name##_int64_t}

#endif
