/* mxop_gemm_int8_kernels.h - products of matrices of eight bits, added up in 32, for one instruction set; see mxop_gemm_int8.h.

   Numbers are widened to 16 bits, where two summands that follow each other lie side by side: one instruction multiplies such
   pairs and adds the two, which is exact for eight bits with or without a sign.  Some processors multiply four numbers without a
   sign by four with one, and add these to a sum at once.  So a group of two, or four, is moved as a number of 32 bits, and packed
   as a float is.  What does not fit 32 bits wraps around. */
#ifndef MXOP_GEMM_INT8_KERNELS_H
#define MXOP_GEMM_INT8_KERNELS_H

#include <string.h>
#include "mxop_gemm_int8.h"
#include "mxop_gemm_kernels.h"

#if defined(__GNUC__)
typedef int16_t mx_int8_wide __attribute__((may_alias));
#else
typedef int16_t mx_int8_wide;
#endif
enum {
    MX_INT8_WIDTH = MX_GEMM_VECTORS * (int)(sizeof(mx_gemm_vector_f32) / sizeof(float)),    /* columns of a panel */
    MX_INT8_GROUPS = 64                                                                     /* that are packed at a time */
};

/* ---- packing ---------------------------------------------------------------------------------------------------------- */

/* What packs one line; it returns the total of what it writes. */
typedef int32_t (*mx_int8_line)(const char *x, ptrdiff_t along, int has_sign, ptrdiff_t n, void *to);

static int32_t mx_int8_widen(const char *x, ptrdiff_t along, int has_sign, ptrdiff_t n, void *line)
{
    const int8_t *with = (const int8_t *)x;
    const uint8_t *without = (const uint8_t *)x;
    mx_int8_wide *to = (mx_int8_wide *)line;
    if (along == 1 && has_sign)
        for (ptrdiff_t i = 0; i < n; i++) to[i] = with[i];
    else if (along == 1)
        for (ptrdiff_t i = 0; i < n; i++) to[i] = without[i];
    else
        for (ptrdiff_t i = 0; i < n; i++) to[i] = (int16_t)(has_sign ? with[i * along] : without[i * along]);
    return 0;       /* nobody asks: nothing was shifted */
}

/* Turning the first bit over adds 128, or takes 128 away. */
static void mx_int8_turn(const char *x, ptrdiff_t along, uint8_t turned, ptrdiff_t n, uint8_t *to)
{
    if (along == 1)
        for (ptrdiff_t i = 0; i < n; i++) to[i] = (uint8_t)x[i] ^ turned;
    else
        for (ptrdiff_t i = 0; i < n; i++) to[i] = (uint8_t)x[i * along] ^ turned;
}
static int32_t mx_int8_unsigned(const char *x, ptrdiff_t along, int has_sign, ptrdiff_t n, void *line)
{
    const uint8_t *to = (const uint8_t *)line;
    uint32_t total = 0;
    mx_int8_turn(x, along, has_sign ? 128 : 0, n, (uint8_t *)line);
    for (ptrdiff_t i = 0; i < n; i++) total += to[i];
    return (int32_t)total;
}
static int32_t mx_int8_signed(const char *x, ptrdiff_t along, int has_sign, ptrdiff_t n, void *line)
{
    const int8_t *to = (const int8_t *)line;
    int32_t total = 0;
    mx_int8_turn(x, along, has_sign ? 0 : 128, n, (uint8_t *)line);
    for (ptrdiff_t i = 0; i < n; i++) total += to[i];
    return total;
}

/* Pack lines: some groups of all at a time, which are then dealt out. */
MX_INLINE void mx_int8_pack(mx_int8_line pack, ptrdiff_t group, ptrdiff_t width, const mx_bytes *x, ptrdiff_t first, ptrdiff_t count,
                            ptrdiff_t depth, float *to, int32_t *totals)
{
    float lines[MX_INT8_WIDTH][MX_INT8_GROUPS];
    const ptrdiff_t groups = (depth + group - 1) / group, size = 4 / group;
    memset(totals, 0, (size_t)count * sizeof *totals);
    for (ptrdiff_t p = 0; p < groups; p += MX_INT8_GROUPS) {
        const ptrdiff_t some = groups - p < MX_INT8_GROUPS ? groups - p : MX_INT8_GROUPS, from = p * group;
        const ptrdiff_t n = depth - from < some * group ? depth - from : some * group;
        for (ptrdiff_t i = 0; i < count; i++) {
            const char *line = x->data + (first + i) * x->across + from * x->along;
            totals[i] = (int32_t)((uint32_t)totals[i] + (uint32_t)pack(line, x->along, x->has_sign, n, lines[i]));
            memset((char *)lines[i] + n * size, 0, (size_t)(4 * some - n * size));
        }
        mx_gemm_interleave_f32(lines[0], MX_INT8_GROUPS, count, width, some, to + p * width);
    }
    mx_gemm_pad_f32(count, width, groups, to);
}

#define MX_INT8_PACKING(name, group, of_rows, of_columns)                                                               \
    static void mx_int8_rows_##name(const mx_bytes *x, ptrdiff_t first, ptrdiff_t count, ptrdiff_t depth, void *to, int32_t *totals) \
    {                                                                                                                   \
        mx_int8_pack(of_rows, group, count, x, first, count, depth, (float *)to, totals);                               \
    }                                                                                                                   \
    static void mx_int8_columns_##name(const mx_bytes *x, ptrdiff_t first, ptrdiff_t count, ptrdiff_t depth, void *panel, \
                                       int32_t *totals)                                                                 \
    {                                                                                                                   \
        mx_int8_pack(of_columns, group, MX_INT8_WIDTH, x, first, count, depth, (float *)panel, totals);                 \
    }
MX_INT8_PACKING(two, 2, mx_int8_widen, mx_int8_widen)

static int32_t mx_int8_dot(const void *a, const mx_bytes *b, ptrdiff_t column, ptrdiff_t depth)
{
    const mx_int8_wide *x = (const mx_int8_wide *)a;
    const char *y = b->data + column * b->across;
    uint32_t sum = 0;
    if (b->along == 1 && b->has_sign)
        for (ptrdiff_t k = 0; k < depth; k++) sum += (uint32_t)(x[k] * (int16_t)((const int8_t *)y)[k]);
    else if (b->along == 1)
        for (ptrdiff_t k = 0; k < depth; k++) sum += (uint32_t)(x[k] * (int16_t)((const uint8_t *)y)[k]);
    else
        for (ptrdiff_t k = 0; k < depth; k++)
            sum += (uint32_t)(x[k] * (b->has_sign ? ((const int8_t *)y)[k * b->along] : ((const uint8_t *)y)[k * b->along]));
    return (int32_t)sum;
}

/* ---- the innermost loop ----------------------------------------------------------------------------------------------- */

#if defined(__AVX512BW__)
#define MX_INT8_VECTOR __m512i
#define MX_INT8_LOAD(p) _mm512_loadu_si512((const void *)(p))
#define MX_INT8_STORE(p, x) _mm512_storeu_si512((void *)(p), x)
#define MX_INT8_SPREAD(x) _mm512_set1_epi32(x)
#define MX_INT8_SUM(a, b) _mm512_add_epi32(a, b)
#define MX_INT8_MULTIPLY(a, b) _mm512_madd_epi16(a, b)
#elif defined(__AVX2__)
#define MX_INT8_VECTOR __m256i
#define MX_INT8_LOAD(p) _mm256_loadu_si256((const __m256i *)(p))
#define MX_INT8_STORE(p, x) _mm256_storeu_si256((__m256i *)(p), x)
#define MX_INT8_SPREAD(x) _mm256_set1_epi32(x)
#define MX_INT8_SUM(a, b) _mm256_add_epi32(a, b)
#define MX_INT8_MULTIPLY(a, b) _mm256_madd_epi16(a, b)
#elif defined(__SSE2__) && defined(MX_GEMM_BYTES)
#define MX_INT8_VECTOR __m128i
#define MX_INT8_LOAD(p) _mm_loadu_si128((const __m128i *)(p))
#define MX_INT8_STORE(p, x) _mm_storeu_si128((__m128i *)(p), x)
#define MX_INT8_SPREAD(x) _mm_set1_epi32(x)
#define MX_INT8_SUM(a, b) _mm_add_epi32(a, b)
#define MX_INT8_MULTIPLY(a, b) _mm_madd_epi16(a, b)
#endif

#if defined(MX_INT8_VECTOR)
#define MX_INT8_CASE(name, r)                                                                                           \
    case r:                                                                                                             \
        name##_rows(r <= MX_GEMM_ROWS ? r : 1, groups, (const char *)a, (const char *)panel, of_rows, of_columns, to, to_row); \
        break;
/* `ADD` is what adds products of groups to sums. */
#define MX_INT8_KERNEL(name, target, ADD)                                                                               \
    target MX_INLINE void name##_rows(const int rows, ptrdiff_t groups, const char *a, const char *b,                   \
                                      const int32_t *of_rows, const int32_t *of_columns, int32_t *c, ptrdiff_t c_row)   \
    {                                                                                                                   \
        enum { V = MX_GEMM_VECTORS, LANES = MX_INT8_WIDTH / V };                                                        \
        MX_INT8_VECTOR sums[MX_GEMM_ROWS * V];                                                                          \
        if (of_rows != NULL)                                                                                            \
            MX_UNROLLED for (int q = 0; q < rows * V; q++)                                                              \
                sums[q] = MX_INT8_SUM(MX_INT8_SPREAD(of_rows[q / V]), MX_INT8_LOAD(of_columns + q % V * LANES));        \
        else                                                                                                            \
            MX_UNROLLED for (int q = 0; q < rows * V; q++) sums[q] = MX_INT8_LOAD(c + q / V * c_row + q % V * LANES);   \
        for (ptrdiff_t p = 0; p < groups; p++, a += 4 * rows, b += 4 * MX_INT8_WIDTH) {                                 \
            MX_INT8_VECTOR columns[V];                                                                                  \
            MX_UNROLLED for (int j = 0; j < V; j++) columns[j] = MX_INT8_LOAD(b + 4 * j * LANES);                       \
            MX_UNROLLED for (int i = 0; i < rows; i++) {                                                                \
                int32_t some;                                                                                           \
                memcpy(&some, a + 4 * i, sizeof some);                                                                  \
                MX_UNROLLED for (int j = 0; j < V; j++) sums[i * V + j] = ADD(sums[i * V + j], MX_INT8_SPREAD(some), columns[j]); \
            }                                                                                                           \
        }                                                                                                               \
        MX_UNROLLED for (int q = 0; q < rows * V; q++) MX_INT8_STORE(c + q / V * c_row + q % V * LANES, sums[q]);       \
    }                                                                                                                   \
    target MX_GEMM_WIDE static void name(ptrdiff_t rows, ptrdiff_t columns, ptrdiff_t groups, const void *a,            \
                                         const void *panel, const int32_t *of_rows, const int32_t *of_columns, int32_t *c, \
                                         ptrdiff_t c_row)                                                               \
    {                                                                                                                   \
        int32_t spare[MX_GEMM_ROWS * MX_INT8_WIDTH];                                                                    \
        const int whole = columns == MX_INT8_WIDTH;                                                                     \
        int32_t *to = whole ? c : spare;                                                                                \
        const ptrdiff_t to_row = whole ? c_row : MX_INT8_WIDTH;                                                         \
        for (ptrdiff_t i = 0; i < rows && !whole && of_rows == NULL; i++)                                               \
            for (ptrdiff_t j = 0; j < columns; j++) spare[i * MX_INT8_WIDTH + j] = c[i * c_row + j];                    \
        switch (rows) {                                                                                                 \
            MX_INT8_CASE(name, 1) MX_INT8_CASE(name, 2) MX_INT8_CASE(name, 3) MX_INT8_CASE(name, 4)                     \
            MX_INT8_CASE(name, 5) MX_INT8_CASE(name, 6) MX_INT8_CASE(name, 7) MX_INT8_CASE(name, 8)                     \
            MX_INT8_CASE(name, 9) MX_INT8_CASE(name, 10) MX_INT8_CASE(name, 11) MX_INT8_CASE(name, 12)                  \
        }                                                                                                               \
        for (ptrdiff_t i = 0; i < rows && !whole; i++)                                                                  \
            memcpy(c + i * c_row, spare + i * MX_INT8_WIDTH, (size_t)columns * sizeof *c);                              \
    }

#define MX_INT8_TWO(sum, a, b) MX_INT8_SUM(sum, MX_INT8_MULTIPLY(a, b))
MX_INT8_KERNEL(mx_int8_multiply, , MX_INT8_TWO)
#else
static void mx_int8_multiply(ptrdiff_t rows, ptrdiff_t columns, ptrdiff_t groups, const void *a, const void *panel,
                             const int32_t *of_rows, const int32_t *of_columns, int32_t *c, ptrdiff_t c_row)
{
    for (ptrdiff_t i = 0; i < rows; i++, c += c_row) {
        const mx_int8_wide *x = (const mx_int8_wide *)a + 2 * i, *b = (const mx_int8_wide *)panel;
        uint32_t sums[MX_INT8_WIDTH] = {0};
        for (ptrdiff_t p = 0; p < groups; p++, x += 2 * rows, b += 2 * MX_INT8_WIDTH)
            for (int j = 0; j < MX_INT8_WIDTH; j++) sums[j] += (uint32_t)(x[0] * b[2 * j] + x[1] * b[2 * j + 1]);
        for (ptrdiff_t j = 0; j < columns; j++)
            c[j] = (int32_t)(sums[j] + (of_rows != NULL ? (uint32_t)of_rows[i] + (uint32_t)of_columns[j] : (uint32_t)c[j]));
    }
}
#endif

/* Where the processor multiplies and adds to the sum at once, that is twice as fast, and with four numbers four times. */
#if defined(__AVX512BW__) && defined(__GNUC__)
MX_INT8_PACKING(four, 4, mx_int8_unsigned, mx_int8_signed)
MX_INT8_KERNEL(mx_int8_at_once, __attribute__((target("avx512vnni"))), _mm512_dpbusd_epi32)
static const mx_int8_kernels mx_int8_fours = {MX_INT8_WIDTH, MX_GEMM_ROWS, 4, 1, mx_int8_rows_four, mx_int8_columns_four, mx_int8_at_once,
                                              NULL, NULL};
#define MX_INT8_QUICKER &mx_int8_fours
static int mx_int8_has_quicker(void) { return __builtin_cpu_supports("avx512vnni"); }
#else
#define MX_INT8_QUICKER NULL
static int mx_int8_has_quicker(void) { return 0; }
#endif

static const mx_int8_kernels mx_int8_alone = {MX_INT8_WIDTH, MX_GEMM_ROWS, 2, 0, mx_int8_rows_two, mx_int8_columns_two, mx_int8_multiply,
                                              mx_int8_dot, NULL};
static const mx_int8_kernels mx_int8_both = {MX_INT8_WIDTH, MX_GEMM_ROWS, 2, 0, mx_int8_rows_two, mx_int8_columns_two, mx_int8_multiply,
                                             mx_int8_dot, MX_INT8_QUICKER};
static const mx_int8_kernels *mx_int8_found(void) { return mx_int8_has_quicker() ? &mx_int8_both : &mx_int8_alone; }

#endif
