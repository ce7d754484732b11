/* mxop_few.h - convolutions with few filters for each group of channels, such as one for each channel.

   What products would read of a window is used by few filters only, so windows are not made: lines of the images are put where
   zeros surround them, and each vector of results adds up vectors that begin at other elements of these lines.  With a stride,
   elements that the same place of neighbouring windows has lie side by side there. */
#ifndef MXOP_FEW_H
#define MXOP_FEW_H

#include <stddef.h>
#include "mxop_windows.h"

#define MX_FEW_ROWS 6       /* filters that are multiplied at a time */
#define MX_FEW_SHORT 2      /* vectors of results that a line is shorter than, to be a part of vectors */
#if defined(__AVX512F__) || defined(__aarch64__)
#define MX_FEW_NUMBERS 4    /* and numbers of windows, where sums are filters: of 32 registers */
#else
#define MX_FEW_NUMBERS 2
#endif

typedef struct {
    mx_images images;           /* of one dimension or two */
    ptrdiff_t groups, channels, filters;            /* of each group */
    char *weight, *results;     /* (groups, filters, channels, places); (batch, groups, filters, windows) in C order */
    ptrdiff_t weight_group, weight_filter, weight_channel;      /* strides in bytes: places lie side by side */
    ptrdiff_t weight_size, result_size;             /* bytes of an element */
    mx_load load_weight, load_result;
    mx_store store_weight, store_result;
    ptrdiff_t band;             /* lines of windows at a time */
    const void *packed;         /* all filters, as `pack` left them */
    const ptrdiff_t *places;    /* what `places` said of the band */
} mx_few;

/* What one build of the instruction module offers for one type. */
typedef struct mx_few_kernels {
    /* Bytes of scratch memory for bands of so many lines, with or without what `weight` needs for its sums. */
    size_t (*room)(const mx_few *f, ptrdiff_t band, int sums);
    /* Say of each number of a window where it is in scratch memory. */
    void (*places)(const mx_few *f, int sums, ptrdiff_t *to);
    /* Pack all filters: as many numbers. */
    void (*pack)(const mx_few *f, void *packed);
    /* Compute the results of some bands, which are counted over the bands of a group, over groups and images. */
    void (*results)(const mx_few *f, ptrdiff_t begin, ptrdiff_t end, char *scratch);
    /* Multiply windows by results and add the products up over some of all bands: an array like the weight of a group. */
    void (*weight)(const mx_few *f, ptrdiff_t group, ptrdiff_t first, ptrdiff_t count, void *totals, char *scratch);
    /* Add up so many of these for each group, in their order, and store them. */
    void (*join)(const mx_few *f, ptrdiff_t slices, void *totals);
} mx_few_kernels;

#endif
