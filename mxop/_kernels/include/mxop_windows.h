/* mxop_windows.h - where the elements of windows lie in images, for products that read them there.

   A window has a number for each channel and each place in it.  Windows are counted along the lines of an image, from line to
   line, and on from one image to the next. */
#ifndef MXOP_WINDOWS_H
#define MXOP_WINDOWS_H

#include <stddef.h>
#include "mxop_block.h"

#define MX_WINDOW_AXES 3    /* images of fewer dimensions have sizes of 1 in front */

typedef struct {
    const char *data;
    ptrdiff_t image, channel, element[MX_WINDOW_AXES];              /* from one to the next, in bytes */
    ptrdiff_t size[MX_WINDOW_AXES], found[MX_WINDOW_AXES];          /* of an image; how many windows there are */
    ptrdiff_t kernel[MX_WINDOW_AXES], stride[MX_WINDOW_AXES], dilate[MX_WINDOW_AXES], pad[MX_WINDOW_AXES];
    mx_load load;               /* how to read elements as the type that is computed in; null where they have that type */
} mx_images;

/* Windows of one line, and where the first of them begins: that may be beside the image. */
typedef struct { ptrdiff_t to, count, image, at[MX_WINDOW_AXES]; } mx_line;

/* Elements of one channel at one place of neighbouring windows: from there, in bytes, to windows `to`... */
typedef struct { ptrdiff_t to, count, from; } mx_piece;

static inline ptrdiff_t mx_window_places(const mx_images *x) { return x->kernel[0] * x->kernel[1] * x->kernel[2]; }

/* How far the same place is in the next window of a line. */
static inline ptrdiff_t mx_window_step(const mx_images *x) { return x->stride[2] * x->element[2]; }

/* Find the lines of windows `first` to `first + count`, as many at most; return how many. */
static ptrdiff_t mx_lines_of(const mx_images *x, ptrdiff_t first, ptrdiff_t count, mx_line *lines)
{
    ptrdiff_t n = 0, c = first % x->found[2], rest = first / x->found[2];
    ptrdiff_t b = rest % x->found[1], a = rest / x->found[1] % x->found[0], image = rest / x->found[1] / x->found[0];
    for (ptrdiff_t to = 0; to < count; n++) {
        const ptrdiff_t some = x->found[2] - c < count - to ? x->found[2] - c : count - to;
        lines[n] = (mx_line){to, some, image * x->image, {a * x->stride[0] - x->pad[0], b * x->stride[1] - x->pad[1],
                                                          c * x->stride[2] - x->pad[2]}};
        to += some, c = 0;
        if (++b == x->found[1]) b = 0, a++;
        if (a == x->found[0]) a = 0, image++;
    }
    return n;
}

/* Find what windows have of the image at one place; return how many pieces, and in `covered` how many windows have any. */
static ptrdiff_t mx_pieces_of(const mx_images *x, const mx_line *lines, ptrdiff_t n, ptrdiff_t place, mx_piece *pieces,
                              ptrdiff_t *covered)
{
    const ptrdiff_t c = place % x->kernel[2] * x->dilate[2], b = place / x->kernel[2] % x->kernel[1] * x->dilate[1];
    const ptrdiff_t a = place / x->kernel[2] / x->kernel[1] * x->dilate[0], stride = x->stride[2], size = x->size[2];
    ptrdiff_t found = 0, total = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        const ptrdiff_t *at = lines[i].at, u = at[0] + a, v = at[1] + b, w = at[2] + c;
        ptrdiff_t skip = 0, stop = lines[i].count;
        if (u < 0 || u >= x->size[0] || v < 0 || v >= x->size[1]) continue;
        if (w < 0) skip = stride == 1 ? -w : (stride - 1 - w) / stride;
        if (w + (stop - 1) * stride >= size) stop = w >= size ? 0 : (size - 1 - w) / stride + 1;
        if (skip >= stop) continue;
        pieces[found++] = (mx_piece){lines[i].to + skip, stop - skip, lines[i].image + u * x->element[0] + v * x->element[1]
                                                                      + (w + skip * stride) * x->element[2]};
        total += stop - skip;
    }
    *covered = total;
    return found;
}

#endif
