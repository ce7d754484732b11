/* mxop_csr.h - rows of the product of a csr matrix and a dense one; one build per instruction set.

   A row is the sum of the rows that its columns name, each times a value, added in their order.  Four vectors of sums stay in
   registers while the columns are gone through. */
#ifndef MXOP_CSR_H
#define MXOP_CSR_H

#include "mxop_block.h"
#include "mxop_bulk.h"

#if defined(__AVX512F__)
#define MX_CSR_BYTES 64
#elif defined(__AVX__)
#define MX_CSR_BYTES 32
#else
#define MX_CSR_BYTES 16
#endif

#if defined(__GNUC__)
#define MX_CSR_WIDE(T, I, c)                                                                                            \
    typedef T wide __attribute__((vector_size(MX_CSR_BYTES), aligned(sizeof(T)), may_alias));                           \
    enum { step = 4 * MX_CSR_BYTES / sizeof(T) };                                                                       \
    for (; c + step <= width; c += step) {                                                                              \
        wide s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};                                                                    \
        wide *to = (wide *)(out + c);                                                                                   \
        for (j = 0; j < n; j++) {                                                                                       \
            const wide *x = (const wide *)((const T *)rows + (ptrdiff_t)at[j] * width + c);                             \
            const T value = v[j];                                                                                       \
            s0 += value * x[0], s1 += value * x[1], s2 += value * x[2], s3 += value * x[3];                             \
        }                                                                                                               \
        to[0] = s0, to[1] = s1, to[2] = s2, to[3] = s3;                                                                 \
    }
#else
#define MX_CSR_WIDE(T, I, c)
#endif

#define MX_CSR_ROW(name, T, I)                                                                                          \
    static void name(void *target, const void *rows, const void *values, const void *columns, ptrdiff_t n, ptrdiff_t width) \
    {                                                                                                                   \
        T *MX_RESTRICT out = (T *)target;                                                                               \
        const T *v = (const T *)values;                                                                                 \
        const I *at = (const I *)columns;                                                                               \
        ptrdiff_t c = 0, j, k;                                                                                          \
        MX_CSR_WIDE(T, I, c)                                                                                            \
        for (k = c; k < width; k++) out[k] = 0;                                                                         \
        for (j = 0; j < n && c < width; j++) {                                                                          \
            const T *x = (const T *)rows + (ptrdiff_t)at[j] * width;                                                    \
            const T value = v[j];                                                                                       \
            for (k = c; k < width; k++) out[k] += value * x[k];                                                         \
        }                                                                                                               \
    }

MX_CSR_ROW(mx_csr_f32_i32, float, int32_t)
MX_CSR_ROW(mx_csr_f32_i64, float, int64_t)
MX_CSR_ROW(mx_csr_f64_i32, double, int32_t)
MX_CSR_ROW(mx_csr_f64_i64, double, int64_t)

#define MX_CSR_ROWS {{mx_csr_f32_i32, mx_csr_f32_i64}, {mx_csr_f64_i32, mx_csr_f64_i64}}

#endif
