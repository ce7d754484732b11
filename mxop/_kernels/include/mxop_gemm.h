/* mxop_gemm.h - what the products of matrices in the instruction modules and their callers agree on.

   A product is C = alpha * A B + bias, or C += that: m rows, n columns, sums over k.  Callers cut C into tiles as they like,
   and let threads take them; no tile has any influence on another, and how sums are cut follows from k alone, so that
   results have the same bits however C was cut. */
#ifndef MXOP_GEMM_H
#define MXOP_GEMM_H

#include <stddef.h>
#include "mxop_block.h"
#include "mxop_few.h"
#include "mxop_windows.h"

/* A matrix in memory.  `across` goes from one row of A, or column of B, to the next, `along` from one summand to the next. */
typedef struct {
    const char *data;
    ptrdiff_t across, along;    /* in bytes */
    ptrdiff_t split, next;      /* how many summands lie so, and how far the next as many are from them; 0: all lie so */
    mx_load load;               /* how to read it as the type that is computed in; null where it has that type */
} mx_matrix;

/* Packing: write rows of A, or columns of B, `first` to `first + count`, to a panel: for each of the summands from `k` to
   `k + depth` the numbers of all rows side by side, and zeros up to `width`.  `operand` is whatever the function reads: an
   mx_matrix, or mx_images whose windows are the columns of B. */
typedef void (*mx_gemm_pack)(const void *operand, ptrdiff_t first, ptrdiff_t count, ptrdiff_t width, ptrdiff_t k,
                             ptrdiff_t depth, void *panel);

typedef struct mx_gemm mx_gemm;

/* What is made of finished sums while they are near: rows and columns of C, which lie in a block, `stride` bytes from row to row.
   Returns whether C itself need not be stored. */
typedef int (*mx_gemm_finish)(void *with, char *room, const mx_gemm *g, ptrdiff_t row, ptrdiff_t rows, ptrdiff_t column,
                              ptrdiff_t columns, const char *block, ptrdiff_t stride);

struct mx_gemm {
    ptrdiff_t m, n, k, k_first;         /* summands k_first to k_first + k are taken */
    const void *a, *b;                  /* for pack_a and pack_b */
    mx_gemm_pack pack_a, pack_b;
    const void *packed;                 /* all of B, as `keep` left it, or null */
    double alpha;
    char *c;
    ptrdiff_t c_row, c_column;          /* strides in bytes, of any matrix */
    ptrdiff_t c_split, c_next;          /* how many columns lie so, and how far the next as many are from them; 0: all lie so */
    mx_store store;                     /* null where C has the type that is computed in */
    int add;                            /* to what C holds */
    mx_gemm_finish finish;              /* or null; C has the type that is computed in, and is not added to */
    void *with;                         /* what it is given, and */
    char *room;                         /* scratch memory of the thread */
    const char *bias;                   /* or null; of any strides, 0 for one that is broadcast */
    ptrdiff_t bias_row, bias_column;
    mx_load load_bias;
};

/* What one build of the instruction module offers for one type. */
typedef struct mx_gemm_kernels {
    ptrdiff_t width, height;            /* columns of a panel of B, and rows of A: tiles should have multiples of them */
    mx_gemm_pack pack;                  /* of an mx_matrix, which is read where it lies when that is as good */
    mx_gemm_pack windows, places;       /* of mx_images: windows are columns, or they are what is added up */
    /* Bytes of scratch memory for a tile of so many rows and columns, and as many summands or fewer. */
    size_t (*room)(const mx_gemm *g, ptrdiff_t rows, ptrdiff_t columns);
    void (*tile)(const mx_gemm *g, ptrdiff_t row, ptrdiff_t rows, ptrdiff_t column, ptrdiff_t columns, char *scratch);
    /* Add up matrices of m rows and n columns, one behind the other, in their order, and deliver the sum as a product. */
    void (*join)(const mx_gemm *g, ptrdiff_t count, void *parts);
    /* Pack all of B, for several products, to so many bytes. */
    size_t (*kept)(const mx_gemm *g);
    void (*keep)(const mx_gemm *g, void *packed);
    const mx_few_kernels *few;          /* convolutions that are better no product; or null */
} mx_gemm_kernels;

#endif
