/* mxop_few_finite.h - convolutions with filters that may be infinite, or NaN: they meet nothing that lies beside an image.

   The functions to load and to store are those of double. */
#ifndef MXOP_FEW_FINITE_H
#define MXOP_FEW_FINITE_H

#include "mxop_few.h"

enum { MX_FEW_CHUNK = 64 };

/* Whether all of so many numbers of filters, which lie side by side, are finite. */
static int mx_few_finite(const mx_few *f, ptrdiff_t count)
{
    double some[MX_FEW_CHUNK], sum = 0;
    for (ptrdiff_t k = 0; k < count; k += MX_FEW_CHUNK) {
        const ptrdiff_t n = count - k < MX_FEW_CHUNK ? count - k : MX_FEW_CHUNK;
        f->load_weight(n, f->weight + k * f->weight_size, f->weight_size, some);
        double zero = 0;
        for (ptrdiff_t i = 0; i < n; i++) zero += some[i] * 0.0;
        sum += zero;
    }
    return sum == 0;
}

/* Some windows of an image times one filter. */
static void mx_few_sums_of(const mx_few *f, const mx_line *lines, ptrdiff_t n, const char *image, const char *filter, double *sums)
{
    const mx_images *x = &f->images;
    double some[MX_FEW_CHUNK], weight;
    for (ptrdiff_t c = 0; c < f->channels; c++)
        for (ptrdiff_t k = 0; k < mx_window_places(x); k++) {
            mx_piece pieces[MX_FEW_CHUNK];
            ptrdiff_t covered;
            const ptrdiff_t count = mx_pieces_of(x, lines, n, k, pieces, &covered);
            f->load_weight(1, filter + c * f->weight_channel + k * f->weight_size, 0, &weight);
            for (ptrdiff_t p = 0; p < count; p++) {
                x->load(pieces[p].count, image + c * x->channel + pieces[p].from, mx_window_step(x), some);
                for (ptrdiff_t i = 0; i < pieces[p].count; i++) sums[pieces[p].to + i] += weight * some[i];
            }
        }
}

/* All windows times all filters. */
static void mx_few_one_by_one(const mx_few *f, ptrdiff_t batch)
{
    const mx_images *x = &f->images;
    const ptrdiff_t found = x->found[0] * x->found[1] * x->found[2], size = f->result_size;
    mx_line lines[MX_FEW_CHUNK];
    for (ptrdiff_t q = 0; q < batch * f->groups * f->filters; q++) {
        const ptrdiff_t image = q / f->filters / f->groups, group = q / f->filters % f->groups;
        const char *filter = f->weight + group * f->weight_group + q % f->filters * f->weight_filter;
        for (ptrdiff_t j = 0; j < found; j += MX_FEW_CHUNK) {
            const ptrdiff_t count = found - j < MX_FEW_CHUNK ? found - j : MX_FEW_CHUNK;
            const ptrdiff_t n = mx_lines_of(x, image * found + j, count, lines);
            double sums[MX_FEW_CHUNK] = {0};
            mx_few_sums_of(f, lines, n, x->data + group * f->channels * x->channel, filter, sums);
            f->store_result(count, sums, f->results + (q * found + j) * size, size, 0);
        }
    }
}

#endif
