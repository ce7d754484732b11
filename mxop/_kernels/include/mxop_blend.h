/* mxop_blend.h - the four pixels around a place times their weights, for four places at a time; see mxop/_kernels/sampling.pyx.

   Neighbours in a row are read as a pair, which takes half as many loads as reading each of them.  Functions return how many
   places they did: the first of `n`, a multiple of four, or none for compilers that do not shuffle vectors. */
#ifndef MXOP_BLEND_H
#define MXOP_BLEND_H

#include "mxop_block.h"
#include "mxop_bulk.h"

#if defined(MX_SHUFFLES)
typedef float mx_four __attribute__((vector_size(16), aligned(4), may_alias));
typedef double mx_pairs __attribute__((vector_size(16)));       /* two pairs of float */
typedef int32_t mx_bits __attribute__((vector_size(16)));

/* Products: 0 where a weight is 0, whatever the value. */
MX_INLINE mx_four mx_weighed(mx_four weights, mx_four values)
{
    return (mx_four)((mx_bits)(weights * values) & (mx_bits)(weights != 0));
}

/* Read the left and the right pixels at four places. */
MX_INLINE void mx_read_pairs(const float *image, const ptrdiff_t *places, mx_four *left, mx_four *right)
{
    double pair[4];
    mx_four low, high;
    for (int k = 0; k < 4; k++)
        memcpy(pair + k, image + places[k], sizeof(double));
    low = (mx_four)(mx_pairs){pair[0], pair[1]}, high = (mx_four)(mx_pairs){pair[2], pair[3]};
    *left = __builtin_shufflevector(low, high, 0, 2, 4, 6), *right = __builtin_shufflevector(low, high, 1, 3, 5, 7);
}

MX_INLINE void mx_read_around(const float *image, ptrdiff_t below, const ptrdiff_t *places, mx_four *pixels)
{
    mx_read_pairs(image, places, pixels, pixels + 1);
    mx_read_pairs(image + below, places, pixels + 2, pixels + 3);
}

MX_INLINE mx_four mx_blended(const mx_four *pixels, const float *weights)
{
    mx_four sum = mx_weighed(*(const mx_four *)weights, pixels[0]);
    for (int k = 1; k < 4; k++)
        sum += mx_weighed(*(const mx_four *)(weights + k * MX_AROUND), pixels[k]);
    return sum;
}

static inline ptrdiff_t mx_take_fours(const float *image, ptrdiff_t below, const ptrdiff_t *places, const float *weights, float *found,
                                      ptrdiff_t n)
{
    mx_four pixels[4];
    for (ptrdiff_t j = 0; j < n / 4 * 4; j += 4) {
        mx_read_around(image, below, places + j, pixels);
        *(mx_four *)(found + j) = mx_blended(pixels, weights + j);
    }
    return n / 4 * 4;
}

/* Add the products of a head and what `across` and `down` make of the image to `x` and `y`. */
static inline ptrdiff_t mx_slope_fours(const float *head, const float *image, ptrdiff_t below, const ptrdiff_t *places,
                                       const float *across, const float *down, float *x, float *y, ptrdiff_t n)
{
    mx_four pixels[4];
    for (ptrdiff_t j = 0; j < n / 4 * 4; j += 4) {
        const mx_four each = *(const mx_four *)(head + j);
        mx_read_around(image, below, places + j, pixels);
        *(mx_four *)(x + j) += mx_weighed(each, mx_blended(pixels, across + j));
        *(mx_four *)(y + j) += mx_weighed(each, mx_blended(pixels, down + j));
    }
    return n / 4 * 4;
}
#else
#define mx_take_fours(image, below, places, weights, found, n) 0
#define mx_slope_fours(head, image, below, places, across, down, x, y, n) 0
#endif

#endif
