/* mxop_around_type.h - places between pixels for one type; included by mxop_around.h, which defines:

   MX_T, MX_I    the type of places, and integers as wide as vectors of it like them
   MX_(name)     the name of a function for it */

/* Numbers are chosen, not branches, as compilers make vectors of that, and which places lie outside is hard to predict. */
static inline MX_T MX_(mx_lesser)(MX_T a, MX_T b) { return a < b ? a : b; }
static inline MX_T MX_(mx_greater)(MX_T a, MX_T b) { return a > b ? a : b; }

/* Find the first of the two pixels around n places along one axis and the two weights, with `slope` in the derivative.

   At the edges of an image, these are the first or last two pixels; what lies outside has no weight.  A weight falls from 1 at
   its pixel to 0 at the next ones.  Where `slope` is no constant, the loop takes twice the time. */
MX_INLINE void MX_(mx_weigh)(const MX_T *MX_RESTRICT places, ptrdiff_t n, ptrdiff_t size, const int slope, int unit_,
                             int clamp, MX_T *MX_RESTRICT first, MX_T *MX_RESTRICT low, MX_T *MX_RESTRICT high)
{
    const MX_T end = (MX_T)size, pair = size > 1, most = (MX_T)(size > 2 ? size - 2 : 0), limit = clamp ? pair : 2;
    const MX_T unit = unit_ ? (MX_T)(size - 1) / 2 : 1, start = unit_ ? 1 : 0, least = clamp ? 0 : -1;
    const MX_T away = pair != 0 || !clamp ? -unit : 0, after = clamp ? 0 : -unit;
    for (ptrdiff_t j = 0; j < n; j++) {
        MX_T at = (places[j] + start) * unit, inside, pixel, part, one, other;
        inside = at >= least ? 1.0f : 0.0f, inside = at < end ? inside : 0.0f;
        at = MX_(mx_lesser)(MX_(mx_greater)(at, least), end);
        pixel = (MX_T)(MX_I)at;     /* float32 does not tell those after 2^24 apart */
        pixel = MX_(mx_greater)(MX_(mx_lesser)(pixel, most), 0);
        part = at - pixel;
        if (slope) {
            one = part < 1.0f ? away : 0.0f, other = part < 1.0f ? unit : after;
            one = part < 0.0f ? unit : one, other = part < 0.0f ? 0.0f : other;
        } else {
            part = MX_(mx_lesser)(part, limit);
            one = MX_(mx_greater)(MX_(mx_lesser)(1 - part, 1 + part), 0);
            other = MX_(mx_greater)(MX_(mx_lesser)(2 - part, part), 0);
        }
        first[j] = pixel, low[j] = inside * one, high[j] = pair * inside * other;
    }
}

static void MX_(mx_weigh_axis)(const MX_T *places, ptrdiff_t n, ptrdiff_t size, int slope, const mx_frame *s, MX_T *first, MX_T *low,
                               MX_T *high)
{
    if (slope)
        MX_(mx_weigh)(places, n, size, 1, s->unit, s->clamp, first, low, high);
    else
        MX_(mx_weigh)(places, n, size, 0, s->unit, s->clamp, first, low, high);
}

static void MX_(mx_look_around)(const void *x, const void *y, ptrdiff_t n, const mx_frame *s, int down, int across,
                                ptrdiff_t *MX_RESTRICT places, void *found)
{
    MX_T column[MX_AROUND], left[MX_AROUND], right[MX_AROUND], row[MX_AROUND], above[MX_AROUND], below[MX_AROUND];
    MX_T *MX_RESTRICT weights = (MX_T *)found;
    const MX_I last_column = (MX_I)(s->width - 2), last_row = (MX_I)(s->height - 2);
    MX_(mx_weigh_axis)((const MX_T *)x, n, s->width, across, s, column, left, right);
    MX_(mx_weigh_axis)((const MX_T *)y, n, s->height, down, s, row, above, below);
    for (ptrdiff_t j = 0; j < n; j++) {
        /* as integers once more: a size above 2^24 may be rounded up in float32 */
        MX_I i = (MX_I)row[j], k = (MX_I)column[j];
        i = i < last_row ? i : last_row, k = k < last_column ? k : last_column;
        places[j] = (ptrdiff_t)(i > 0 ? i : 0) * s->width + (k > 0 ? k : 0);
        weights[j] = above[j] * left[j], weights[MX_AROUND + j] = above[j] * right[j];
        weights[2 * MX_AROUND + j] = below[j] * left[j], weights[3 * MX_AROUND + j] = below[j] * right[j];
    }
}

#undef MX_T
#undef MX_I
#undef MX_
