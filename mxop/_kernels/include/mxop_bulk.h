/* mxop_bulk.h - what one build for an instruction set offers beside the loops of formulas: whatever works on several rows.

   The functions are in mxop_move.h, mxop_fold.h, mxop_csr.h and mxop_around.h.  Tables of seven are by compute type. */
#ifndef MXOP_BULK_H
#define MXOP_BULK_H

#include <stddef.h>
#include <stdint.h>
#include "mxop_machine.h"

/* How elements are combined. */
enum { MX_ADD, MX_MUL, MX_MAX, MX_MIN, MX_HYPOT };

enum { MX_FIND_ROWS = 16 };     /* rows that are searched at once, at most: lanes of a vector */

/* Ways to move the elements of two axes. */
enum { MX_ROWS, MX_BLOCKS, MX_SCATTER };

/* Combine each of `rows` rows of n elements, `step` bytes apart, into an accumulator of its own: a double, or an int64_t for
   integers.  Sums are those of blocks.  The sums of squares that HYPOT wants are not yet lengths. */
typedef void (*mx_fold)(int combine, void *totals, const void *x, ptrdiff_t rows, ptrdiff_t step, ptrdiff_t n, ptrdiff_t block);
/* Combine rows with a row of accumulators, in order. */
typedef void (*mx_gather)(int combine, void *totals, const void *x, ptrdiff_t rows, ptrdiff_t step, ptrdiff_t width);
/* Find in each row where its largest (or smallest) element is: the first of equals, or of NaN. */
typedef void (*mx_find)(int largest, int64_t *places, const void *x, ptrdiff_t rows, ptrdiff_t n);
/* The same in each of `width` columns, at most MX_COLUMNS, of rows that are `step` bytes apart. */
typedef void (*mx_find_columns)(int largest, int64_t *places, const void *x, ptrdiff_t rows, ptrdiff_t step, ptrdiff_t width);

/* Write one row of the product of a csr matrix, by n values and their columns, and a dense one of `width` columns. */
typedef void (*mx_csr_row)(void *target, const void *rows, const void *values, const void *columns, ptrdiff_t n, ptrdiff_t width);

/* Images of one size, and how places in them are counted: see mxop/_kernels/sampling.pyx. */
typedef struct { ptrdiff_t height, width; int unit, clamp; } mx_frame;
/* Set the first of the four pixels around each of n places, at most MX_AROUND, and the weights of the four: MX_AROUND of the first,
   then of each other.  With `down` and `across`, along y and x these are of the derivative. */
enum { MX_AROUND = 256 };
typedef void (*mx_look_around)(const void *x, const void *y, ptrdiff_t n, const mx_frame *s, int down, int across, ptrdiff_t *places,
                               void *weights);

typedef struct {
    void (*move)(int way, int size, ptrdiff_t n0, ptrdiff_t n1, const char *s, ptrdiff_t s0, ptrdiff_t s1, char *d, ptrdiff_t d0,
                 ptrdiff_t d1, int stream);
    void (*stream)(char *d, const char *s, ptrdiff_t bytes, const char **asked, int n);     /* see mx_stream_asking */
    void (*pick)(const char *s, const ptrdiff_t *place, ptrdiff_t n, ptrdiff_t width, int cached, char *d);    /* rows */
    mx_fold fold[7];
    mx_gather gather[7];
    mx_find find[7];
    mx_find_columns find_columns[7];
    mx_csr_row csr_row[2][2];   /* of float or double, and columns of int32_t or int64_t */
    mx_look_around look_around[2];      /* of float and double */
} mx_bulk;

#endif
