/* mxop_gemm_int8.h - what the products of matrices of eight bits in the instruction modules and their callers agree on. */
#ifndef MXOP_GEMM_INT8_H
#define MXOP_GEMM_INT8_H

#include <stddef.h>
#include <stdint.h>

/* Rows of A, or columns of B: bytes, `across` to the next row or column and `along` to the next summand. */
typedef struct {
    const char *data;
    ptrdiff_t across, along;
    int has_sign;
} mx_bytes;

/* What one build of the instruction module offers.  Summands that follow each other are multiplied and added in groups of four
   bytes, of a row or of a column. */
typedef struct mx_int8_kernels {
    ptrdiff_t width, rows;          /* columns of a panel of B, and rows of A that meet it at a time, at most */
    ptrdiff_t group;                /* summands of a group: two, of 16 bits, or four */
    int shifts;                     /* whether numbers of A must have no sign, and those of B one: 128 is added to, or taken from, others */
    /* Pack so many rows of A, or columns of B, and zeros up to the width: for each group those of all, side by side; behind the
       summands come zeros.  Write the total of each, as it is packed. */
    void (*pack_rows)(const mx_bytes *x, ptrdiff_t first, ptrdiff_t count, ptrdiff_t depth, void *to, int32_t *totals);
    void (*pack_columns)(const mx_bytes *x, ptrdiff_t first, ptrdiff_t count, ptrdiff_t depth, void *panel, int32_t *totals);
    /* Add the sums of some groups of packed rows times a panel to C, where numbers of a row lie side by side; or to what `of_rows` and
       `of_columns` give together, unless these are null, and write that. */
    void (*multiply)(ptrdiff_t rows, ptrdiff_t columns, ptrdiff_t groups, const void *a, const void *panel, const int32_t *of_rows,
                     const int32_t *of_columns, int32_t *c, ptrdiff_t c_row);
    /* The sum of products of a row, packed alone in groups of two, and a column. */
    int32_t (*dot)(const void *a, const mx_bytes *b, ptrdiff_t column, ptrdiff_t depth);
    const struct mx_int8_kernels *quicker;      /* for several rows, on this processor; or null */
} mx_int8_kernels;

#endif
