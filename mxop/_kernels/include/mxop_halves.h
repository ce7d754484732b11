/* mxop_halves.h - one instruction on plain arrays of float16, a little at a time: while some elements are computed, the processor
   reads the next ones, which it does not where a whole block is converted first. */
#ifndef MXOP_HALVES_H
#define MXOP_HALVES_H

#include "mxop_block.h"
#include "mxop_math_half.h"

enum { MX_HALVES = 3 * MX_RUN };    /* elements: whole steps of every loop */

static void mx_halves(mx_loop loop, int sources, ptrdiff_t n, char *o, const char *const *x, const void *scalars, int stream)
{
    float from[3][MX_HALVES], result[MX_HALVES];
    uint16_t *const to = (uint16_t *)o, beside[MX_HALVES];
    for (ptrdiff_t i = 0; i < n; i += MX_HALVES) {
        const ptrdiff_t some = n - i < MX_HALVES ? n - i : MX_HALVES;
        for (int k = 0; k < sources; k++) {
            if (stream) mx_prefetch(x[k] + 2 * i + MX_PREFETCH_BYTES, 2 * some);
            mx_f16_to_f32_array((const uint16_t *)x[k] + i, from[k], some);
        }
        loop(some, result, from[0], from[1], from[2], scalars);
        mx_f32_to_f16_array(result, stream ? beside : to + i, some);
        if (stream) mx_stream_copy((char *)(to + i), (const char *)beside, some * (ptrdiff_t)sizeof *to);
    }
}

#endif
