/* mxop_few.h - direct convolutions with few filters for each group of channels, such as one for each channel.

   A GEMM would pack windows that few filters use.  Instead, the lines of an image that a band of results needs are copied to scratch
   memory, and vectors of results add up products of a filter's elements and vectors of these lines.  Padding is never multiplied, for
   0 times infinity is NaN: places beside an image are left out along the first two axes, and masked along the last.  With a stride,
   the elements of a line that neighbouring windows have at one place are neighbours in the copy. */
#ifndef MXOP_FEW_H
#define MXOP_FEW_H

#include <stddef.h>
#include "mxop_windows.h"

#define MX_FEW_ROWS 4       /* filters that are multiplied at a time */

/* The windows of an axis that have an element of the image at some place. */
typedef struct { ptrdiff_t begin, end; } mx_inside;

typedef struct {
    mx_images images;
    ptrdiff_t groups, channels, filters;            /* of each group */
    char *weight, *results;     /* (groups, filters, channels, places); (batch, groups, filters, windows) in C order */
    ptrdiff_t weight_group, weight_filter, weight_channel;      /* strides in bytes: places lie side by side */
    ptrdiff_t weight_size, result_size;             /* bytes of an element */
    mx_load load_weight, load_result;
    mx_store store_weight, store_result;
    ptrdiff_t band, bands;      /* lines of results at a time, and how many such bands each plane of results has */
    ptrdiff_t units, slices;    /* bands of a group in all images; parts that these are cut into where the gradient of filters is summed */
    void *packed;               /* all filters; or their gradients, of each group and slice */
    ptrdiff_t *places;          /* where the elements of a window are in scratch memory; then the mx_inside of each place of each axis */
    ptrdiff_t lanes;            /* groups of a task: 1, or a vector's worth of those that are one channel and filter, see mxop_depthwise_type.h */
    int sums;                   /* whether the gradient of the filters is wanted */
    ptrdiff_t windows, part, line, plane, channel, result, row;     /* sizes in scratch memory, which `plan` finds for a band */
} mx_few;

/* What one build of the instruction module offers for one type. */
typedef struct mx_few_kernels {
    size_t (*plan)(mx_few *f);                      /* returns the bytes of scratch memory of a thread, zeros at first */
    void (*prepare)(const mx_few *f);               /* fill in what all tasks share */
    /* Do tasks, each a band of one group or several of an image, or a slice of a group. */
    void (*run)(const mx_few *f, ptrdiff_t begin, ptrdiff_t end, char *scratch);
    void (*join)(const mx_few *f);                  /* add up slices in their order, and store the gradient */
} mx_few_kernels;

#endif
