/* mxop_few_type.h - direct convolutions with few filters, for one type T; included by mxop_gemm_type.h. */

/* Masks of lanes, and what they leave of a vector, or of the products that are added to one. */
#if defined(__AVX512F__)
typedef unsigned G(mask);
static inline G(mask) G(lanes)(ptrdiff_t begin, ptrdiff_t end) { return G(first_lanes)(end) & ~G(first_lanes)(begin); }
#define MX_FEW_MASKED(x, mask) MX_GEMM_MASKED(x, mask)
#define MX_FEW_ADD(sum, a, b, mask) ((sum) = MX_GEMM_ADD(sum, a, b, mask))
#define MX_FEW_REGISTERS 16         /* vectors of results at a time: of 32 registers */
#else
#if defined(MX_GEMM_BYTES)
typedef MX_GEMM_BITS G(mask) __attribute__((vector_size(MX_GEMM_BYTES), aligned(sizeof(T)), may_alias));
#define MX_FEW_MASKED(x, some) ((G(vector))((G(mask))(x) & (some)))
#else
typedef MX_GEMM_BITS G(mask);
#define MX_FEW_MASKED(x, mask) ((mask) ? (x) : 0)
#endif
static inline G(mask) G(lanes)(ptrdiff_t begin, ptrdiff_t end)
{
    static const MX_GEMM_BITS numbers[] = {0, 1, 2, 3, 4, 5, 6, 7};
    const G(mask) lane = *(const G(mask) *)numbers;
    begin = begin < LANES ? begin : LANES;
    end = end < LANES ? end : LANES;
    return (lane >= (MX_GEMM_BITS)begin) & (lane < (MX_GEMM_BITS)end);
}
#define MX_FEW_ADD(sum, a, b, mask) ((sum) += MX_FEW_MASKED((a) * (b), mask))
#define MX_FEW_REGISTERS 8
#endif

/* From the first place of a window to the last along an axis, which is before it where `dilate` is negative. */
static inline ptrdiff_t G(few_span)(const mx_images *x, int axis) { return (x->kernel[axis] - 1) * x->dilate[axis]; }
static inline ptrdiff_t G(few_back)(const mx_images *x, int axis)
{
    return x->dilate[axis] < 0 ? -G(few_span)(x, axis) : 0;
}
static inline ptrdiff_t G(few_reach)(const mx_images *x, int axis) { return G(few_span)(x, axis) + 2 * G(few_back)(x, axis); }

static inline const mx_inside *G(few_inside)(const mx_few *f, int axis)
{
    const ptrdiff_t *kernel = f->images.kernel;
    return (const mx_inside *)(f->places + f->windows) + (axis > 0 ? kernel[0] : 0) + (axis > 1 ? kernel[1] : 0)
         + (axis > 2 ? kernel[2] : 0);      /* behind the axes, vectors of results without padding */
}

/* Find the places that are inside an image for window `at` of an axis; return up to which window, or `stop`, they are the same. */
static ptrdiff_t G(few_same)(const mx_few *f, int axis, ptrdiff_t at, ptrdiff_t stop, mx_inside *places)
{
    const mx_inside *inside = G(few_inside)(f, axis);
    places->begin = places->end = 0;
    for (ptrdiff_t k = 0; k < f->images.kernel[axis]; k++) {
        const ptrdiff_t next = at < inside[k].begin ? inside[k].begin : at < inside[k].end ? inside[k].end : stop;
        if (at >= inside[k].begin && at < inside[k].end) {
            if (places->end == 0) places->begin = k;
            places->end = k + 1;
        }
        if (next < stop) stop = next;
    }
    return stop;
}

#include "mxop_depthwise_type.h"

static size_t G(few_plan)(mx_few *f)
{
    const mx_images *x = &f->images;
    f->lanes = G(is_depthwise)(f) ? LANES : 1;
    if (f->lanes > 1) return G(depthwise_plan)(f);
    const ptrdiff_t width = (x->found[2] + LANES - 1) / LANES * LANES;
    f->windows = f->channels * mx_window_places(x);
    f->part = width + G(few_reach)(x, 2) / x->stride[2];
    f->line = f->part * x->stride[2] + LANES;
    f->plane = f->line * ((f->band - 1) * x->stride[1] + G(few_reach)(x, 1) + 1);
    f->channel = f->plane * x->kernel[0];
    f->row = width;
    f->result = f->sums ? f->band * width : 0;
    const ptrdiff_t sums = f->sums ? f->windows * f->filters * LANES : 0;
    return (size_t)(f->channels * f->channel + f->filters * f->result + sums) * sizeof(T)
         + (size_t)(3 * x->kernel[1] * x->kernel[2]) * sizeof(G(mask));
}

static void G(few_prepare)(const mx_few *f)
{
    const mx_images *x = &f->images;
    ptrdiff_t *to = f->places, begin = 0, end = x->found[2];
    for (ptrdiff_t q = 0; q < f->windows; q++) {
        const ptrdiff_t k = q % x->kernel[2] * x->dilate[2] + G(few_back)(x, 2), a = q / x->kernel[2] / x->kernel[1];
        const ptrdiff_t b = q / x->kernel[2] % x->kernel[1] * x->dilate[1] + G(few_back)(x, 1);
        *to++ = a * f->plane + b * f->line + k % x->stride[2] * f->part + k / x->stride[2];     /* planes follow each other */
    }
    for (int axis = 0; axis < MX_WINDOW_AXES; axis++)
        for (ptrdiff_t k = 0; k < x->kernel[axis]; k++, to += 2) {
            const ptrdiff_t before = x->pad[axis] - k * x->dilate[axis], stride = x->stride[axis], after = before + x->size[axis];
            to[0] = before > 0 ? (before + stride - 1) / stride : 0;
            to[1] = after > 0 ? (after + stride - 1) / stride : 0;
            if (to[1] > x->found[axis]) to[1] = x->found[axis];
            if (to[1] <= to[0]) to[0] = to[1] = 0;
            if (axis == 2 && to[0] > begin) begin = to[0];
            if (axis == 2 && to[1] < end) end = to[1];
        }
    to[0] = begin, to[1] = end;
    for (ptrdiff_t k = 0; k < x->stride[2]; k++) {
        const ptrdiff_t before = x->pad[2] + G(few_back)(x, 2) - k, after = before + x->size[2] + x->stride[2] - 1;
        *(to += 2) = before > 0 ? (before + x->stride[2] - 1) / x->stride[2] : 0;
        to[1] = k <= G(few_reach)(x, 2) ? after / x->stride[2] < f->part ? after / x->stride[2] : f->part : 0;
    }
    const ptrdiff_t size = mx_window_places(x);
    if (f->lanes > 1) {
        G(depthwise_weights)(f);
        return;
    }
    for (ptrdiff_t q = 0; !f->sums && q < f->groups * f->filters * f->channels; q++) {
        const ptrdiff_t r = q / f->channels, c = q % f->channels;
        f->load_weight(size, f->weight + r / f->filters * f->weight_group + r % f->filters * f->weight_filter + c * f->weight_channel,
                       f->weight_size, (T *)f->packed + q * size);
    }
}

/* Where the last vector of a line begins: one of results is no shorter than others if it can be. */
static inline ptrdiff_t G(few_last)(const mx_few *f)
{
    const ptrdiff_t n = f->images.found[2];
    return f->sums ? (n - 1) / LANES * LANES : n < LANES ? 0 : n - LANES;
}

/* Find the masks of each place of a plane for a vector of results that begins at `at` of a line. */
static const G(mask) *G(few_mask)(const mx_few *f, ptrdiff_t at, G(mask) *masks)
{
    const ptrdiff_t width = f->images.kernel[2];
    const mx_inside *inside = G(few_inside)(f, 2);
    for (ptrdiff_t k = 0; k < f->images.kernel[1] * width; k++)
        masks[k] = G(lanes)(inside[k % width].begin - at, inside[k % width].end - at);
    return masks;
}

/* These masks, or null where all lanes count: those of the first and of the last vector are there already. */
MX_INLINE const G(mask) *G(few_masks)(const mx_few *f, ptrdiff_t at, ptrdiff_t last, G(mask) *masks)
{
    const mx_inside *whole = G(few_inside)(f, 3);
    const ptrdiff_t n = f->images.kernel[1] * f->images.kernel[2];
    if (at >= whole->begin && at + LANES <= whole->end) return NULL;
    return at == 0 ? masks : at == last ? masks + n : G(few_mask)(f, at, masks + 2 * n);
}

/* Copy elements of some lines; behind them, zeros may be written, up to the end of a vector. */
static void G(few_copy)(const mx_images *x, ptrdiff_t lines, ptrdiff_t n, const char *from, T *to, ptrdiff_t line)
{
#if defined(__AVX512F__)
    const ptrdiff_t step = mx_window_step(x) / (ptrdiff_t)sizeof(T), last = (n - 1) / LANES * LANES, rest = step * (n - 1 - last) + 1;
    if (x->load == NULL && (step == 1 || step == 2)) {
        const unsigned lanes = G(first_lanes)(rest), more = G(first_lanes)(rest - LANES), all = G(first_lanes)(LANES);
        for (; lines > 0; lines--, from += x->element[1], to += line)
            for (ptrdiff_t i = 0; i < n; i += LANES) {
                const T *at = (const T *)from + step * i;
                G(vector) found = MX_GEMM_LOAD((G(vector)){0}, i < last ? all : lanes, at);
                if (step == 2) found = MX_GEMM_EVEN(found, MX_GEMM_LOAD((G(vector)){0}, i < last ? all : more, at + LANES));
                *(G(vector) *)(to + i) = found;
            }
        return;
    }
#endif
    for (; lines > 0; lines--, from += x->element[1], to += line) G(copy_steps)(x, from, n, to);
}

/* Copy what windows of some lines of plane `at` have of the channels of a group. */
static void G(few_fill)(const mx_few *f, const char *image, ptrdiff_t at, ptrdiff_t first, ptrdiff_t lines, T *to)
{
    const mx_images *x = &f->images;
    const mx_inside *parts = G(few_inside)(f, 3) + 1;
    const ptrdiff_t top = first * x->stride[1] - x->pad[1] - G(few_back)(x, 1);
    const ptrdiff_t count = (lines - 1) * x->stride[1] + G(few_reach)(x, 1) + 1, begin = top < 0 ? -top : 0;
    const ptrdiff_t stop = count < x->size[1] - top ? count : x->size[1] - top;
    mx_inside planes;
    G(few_same)(f, 0, at, at, &planes);
    for (ptrdiff_t q = planes.begin; q < f->channels * x->kernel[0]; q++) {
        const ptrdiff_t c = q / x->kernel[0], a = q % x->kernel[0];
        if (a >= planes.end || a < planes.begin) continue;
        const char *plane = image + c * x->channel + (at * x->stride[0] - x->pad[0] + a * x->dilate[0]) * x->element[0];
        for (ptrdiff_t k = 0; k < x->stride[2]; k++) {
            const mx_inside part = parts[k];
            const char *from = plane + (part.begin * x->stride[2] - x->pad[2] - G(few_back)(x, 2) + k) * x->element[2];
            if (part.begin < part.end)
                G(few_copy)(x, stop - begin, part.end - part.begin, from + (top + begin) * x->element[1],
                            to + q * f->plane + begin * f->line + k * f->part + part.begin, f->line);
        }
    }
}

static inline void G(few_store)(const mx_few *f, ptrdiff_t count, const T *row, char *to)
{
    if (f->store_result == NULL)
        G(copy_run)((T *)to, row, count);
    else
        f->store_result(count, row, to, f->result_size, 0);
}

/* Some lines of results of a few filters, for which the same places of windows are inside the images. */
typedef struct {
    mx_inside planes, rows;         /* these places */
    ptrdiff_t lines, apart;         /* how many lines, and how far their windows are from each other */
    const T *from, *weight;
    G(mask) *masks;
    char *to;
    ptrdiff_t filter, line;         /* bytes from the results of a filter, and of a line, to the next */
} G(few_part);

/* A vector of results of each line from `first` on. */
MX_INLINE void G(few_block)(const int filters, const int lines, const mx_few *f, const G(few_part) *p, ptrdiff_t first, ptrdiff_t at,
                            const G(mask) *masks)
{
    const ptrdiff_t *kernel = f->images.kernel, size = kernel[1] * kernel[2], lanes = f->images.found[2];
    G(vector) sums[MX_FEW_REGISTERS], some[8];
    MX_UNROLLED for (int q = 0; q < filters * lines; q++) sums[q] = (G(vector)){0};
    for (ptrdiff_t c = 0; c < f->channels * kernel[0]; c += kernel[0])
        for (ptrdiff_t a = p->planes.begin; a < p->planes.end; a++) {
            const T *from = p->from + first * p->apart + at, *weight = p->weight + (c + a) * size;
            const ptrdiff_t *places = f->places + (c + a) * size;
            for (ptrdiff_t q = p->rows.begin * kernel[2]; q < p->rows.end * kernel[2]; q++) {
                const T *place = from + places[q];
                MX_UNROLLED for (int i = 0; i < lines; i++, place += p->apart) some[i] = *(const G(vector) *)place;
                MX_UNROLLED for (int r = 0; r < filters; r++) {
                    G(vector) number = weight[r * f->windows + q] - (G(vector)){0};
                    if (masks) number = MX_FEW_MASKED(number, masks[q]);     /* padding is 0, and meets 0 */
                    MX_UNROLLED for (int i = 0; i < lines; i++) sums[r * lines + i] += number * some[i];
                }
            }
        }
    MX_UNROLLED for (int q = 0; q < filters * lines; q++) {
        char *to = p->to + q / lines * p->filter + (first + q % lines) * p->line + at * f->result_size;
        if (f->store_result == NULL && lanes >= LANES)
            *(G(vector) *)to = sums[q];
#if defined(__AVX512F__)
        else if (f->store_result == NULL)
            MX_GEMM_STORE(G(first_lanes)(lanes), (T *)to, sums[q]);
#endif
        else {
            G(vector) row = sums[q];
            G(few_store)(f, lanes < LANES ? lanes : LANES, (const T *)&row, to);
        }
    }
}

#define MX_FEW_BLOCKS(some)                                                                                            \
    if (filters * some <= MX_FEW_REGISTERS)                                                                            \
        for (; i + some <= p->lines; i += some)                                                                       \
            for (ptrdiff_t j = 0; j < f->images.found[2]; j += LANES) {                                                 \
                const ptrdiff_t at = j < last ? j : last;                                                               \
                const G(mask) *masks = G(few_masks)(f, at, last, p->masks);                                                \
                if (masks == NULL) G(few_block)(filters, some, f, p, i, at, NULL);                                     \
                else G(few_block)(filters, some, f, p, i, at, masks);                                                  \
            }
MX_INLINE void G(few_lines)(const int filters, const mx_few *f, const G(few_part) *p)
{
    const ptrdiff_t last = G(few_last)(f);
    ptrdiff_t i = 0;
    MX_FEW_BLOCKS(8) MX_FEW_BLOCKS(4) MX_FEW_BLOCKS(2) MX_FEW_BLOCKS(1)
}

MX_GEMM_WIDE static void G(few_lines_of)(ptrdiff_t filters, const mx_few *f, const G(few_part) *p)
{
    switch (filters) {
    case 1: G(few_lines)(1, f, p); break;
    case 2: G(few_lines)(2, f, p); break;
    case 3: G(few_lines)(3, f, p); break;
    default: G(few_lines)(4, f, p);
    }
}

/* The results of a group in a band. */
static void G(few_results)(const mx_few *f, ptrdiff_t group, ptrdiff_t at, ptrdiff_t first, ptrdiff_t lines, char *results, T *scratch,
                           G(mask) *masks)
{
    const mx_images *x = &f->images;
    const ptrdiff_t n = x->found[2], found = x->found[0] * x->found[1] * n * f->result_size;
    G(few_part) p = {.apart = x->stride[1] * f->line, .masks = masks, .filter = found, .line = n * f->result_size};
    G(few_same)(f, 0, at, at, &p.planes);
    for (ptrdiff_t i = first; i < first + lines; i += p.lines) {
        p.lines = G(few_same)(f, 1, i, first + lines, &p.rows) - i;
        if (p.lines > 8 && f->filters > MX_FEW_ROWS) p.lines = 8;
        p.from = scratch + (i - first) * p.apart;
        for (ptrdiff_t r = 0; r < f->filters; r += MX_FEW_ROWS) {
            p.weight = (const T *)f->packed + (group * f->filters + r) * f->windows;
            p.to = results + r * found + (i - first) * p.line;
            G(few_lines_of)(f->filters - r, f, &p);
        }
    }
}

/* Sums of products of a few elements of windows and of the results of a few filters, over some lines. */
MX_INLINE void G(few_sums)(const int filters, const int numbers, const mx_few *f, const T *from, ptrdiff_t lines,
                           const ptrdiff_t *places, ptrdiff_t place, G(mask) *masks, const T *results, T *to)
{
    const ptrdiff_t apart = f->images.stride[1] * f->line;
    G(vector) sums[12], some[9];
    MX_UNROLLED for (int q = 0; q < filters * numbers; q++) sums[q] = (G(vector)){0};
    for (ptrdiff_t i = 0; i < lines; i++, from += apart, results += f->row)
        for (ptrdiff_t j = 0; j < f->row; j += LANES) {
            const G(mask) *some_masks = G(few_masks)(f, j, f->row - LANES, masks);
            MX_UNROLLED for (int k = 0; k < numbers; k++) some[k] = *(const G(vector) *)(from + j + places[k]);
            if (some_masks == NULL) {
                MX_UNROLLED for (int q = 0; q < filters * numbers; q++)
                    sums[q] += *(const G(vector) *)(results + q / numbers * f->result + j) * some[q % numbers];
            } else
                MX_UNROLLED for (int q = 0; q < filters * numbers; q++)
                    MX_FEW_ADD(sums[q], *(const G(vector) *)(results + q / numbers * f->result + j), some[q % numbers],
                               some_masks[place + q % numbers]);
        }
    MX_UNROLLED for (int q = 0; q < filters * numbers; q++)
        *(G(vector) *)(to + (q / numbers * f->windows + q % numbers) * LANES) += sums[q];
}

#define MX_FEW_CASE(r, numbers) \
    case 16 * r + numbers: G(few_sums)(r, numbers, f, from, lines, places, place, masks, results, to); break;
MX_GEMM_WIDE static void G(few_sums_of)(ptrdiff_t filters, ptrdiff_t numbers, const mx_few *f, const T *from, ptrdiff_t lines,
                                        const ptrdiff_t *places, ptrdiff_t place, G(mask) *masks, const T *results, T *to)
{
    switch (16 * filters + numbers) {
    MX_FEW_CASE(1, 1) MX_FEW_CASE(1, 3) MX_FEW_CASE(1, 9)
    MX_FEW_CASE(2, 1) MX_FEW_CASE(2, 3) MX_FEW_CASE(3, 1) MX_FEW_CASE(3, 3) MX_FEW_CASE(4, 1) MX_FEW_CASE(4, 3)
    }
}

/* Add what a band of a group makes of its filters' gradients to a vector for each of their elements. */
static void G(few_weight)(const mx_few *f, ptrdiff_t at, ptrdiff_t first, ptrdiff_t lines, const char *from, T *scratch, T *sums,
                          G(mask) *masks)
{
    const mx_images *x = &f->images;
    const ptrdiff_t n = x->found[2], found = x->found[0] * x->found[1] * n * f->result_size, size = x->kernel[1] * x->kernel[2];
    const mx_images images = {.element = {0, n * f->result_size, f->result_size}, .stride = {1, 1, 1},
                              .load = f->store_result == NULL ? NULL : f->load_result};
    T *results = scratch + f->channels * f->channel;
    mx_inside planes, rows;
    G(few_same)(f, 0, at, at, &planes);
    for (ptrdiff_t r = 0; r < f->filters; r++) G(few_copy)(&images, lines, n, from + r * found, results + r * f->result, f->row);
    for (ptrdiff_t i = first, end; i < first + lines; i = end) {
        end = G(few_same)(f, 1, i, first + lines, &rows);
        for (ptrdiff_t q = 0; q < f->windows; q += size) {
            const ptrdiff_t a = q / size % x->kernel[0], stop = rows.end * x->kernel[2];
            if (a < planes.begin || a >= planes.end) continue;
            for (ptrdiff_t r = 0, some; r < f->filters; r += some) {
                some = f->filters - r < MX_FEW_REGISTERS / 4 ? f->filters - r : MX_FEW_REGISTERS / 4;
                for (ptrdiff_t k = rows.begin * x->kernel[2], count; k < stop; k += count) {
                    count = some == 1 && k + 9 <= stop ? 9 : k + 3 <= stop ? 3 : 1;
                    G(few_sums_of)(some, count, f, scratch + (i - first) * x->stride[1] * f->line, end - i, f->places + q + k, k, masks,
                                   results + r * f->result + (i - first) * f->row, sums + (r * f->windows + q + k) * LANES);
                }
            }
        }
    }
}

static void G(few_run)(const mx_few *f, ptrdiff_t begin, ptrdiff_t end, char *scratch)
{
    const mx_images *x = &f->images;
    const ptrdiff_t bands = f->bands * x->found[0], size = x->found[0] * x->found[1] * x->found[2] * f->result_size;
    const ptrdiff_t elements = f->filters * f->windows, blocks = (f->groups + f->lanes - 1) / f->lanes;
    T *lines = (T *)scratch, *sums = lines + f->channels * f->channel + f->filters * f->result;
    G(mask) *masks = (G(mask) *)(sums + (f->sums ? elements * LANES : 0));
    if (f->lanes == 1) {
        G(few_mask)(f, 0, masks);
        G(few_mask)(f, G(few_last)(f), masks + x->kernel[1] * x->kernel[2]);
    }
    for (ptrdiff_t t = begin; t < end; t++) {
        const ptrdiff_t slice = t % f->slices, task = t / f->slices;
        const ptrdiff_t group = f->sums ? task : task / bands % blocks * f->lanes, units = f->units;
        ptrdiff_t unit = f->sums ? units * slice / f->slices : task / bands / blocks * bands + task % bands;
        const ptrdiff_t stop = f->sums ? units * (slice + 1) / f->slices : unit + 1;
        if (f->sums) memset(sums, 0, (size_t)(elements * LANES) * sizeof(T));
        for (; unit < stop; unit++) {
            const ptrdiff_t image = unit / bands, at = unit % bands / f->bands, first = unit % f->bands * f->band;
            const ptrdiff_t count = x->found[1] - first < f->band ? x->found[1] - first : f->band;
            char *results = f->results + (image * f->groups + group) * f->filters * size
                          + (at * x->found[1] + first) * x->found[2] * f->result_size;
            const char *from = x->data + image * x->image + group * f->channels * x->channel;
            if (f->lanes > 1) {
                G(depthwise_band)(f, group, from, at, first, count, results, lines);
                continue;
            }
            G(few_fill)(f, from, at, first, count, lines);
            if (f->sums)
                G(few_weight)(f, at, first, count, results, lines, sums, masks);
            else
                G(few_results)(f, group, at, first, count, results, lines, masks);
        }
        for (ptrdiff_t k = 0; f->sums && k < elements; k++) {       /* lanes, in one order */
            T parts[LANES];
            memcpy(parts, sums + k * LANES, sizeof parts);
            MX_UNROLLED for (int n = LANES / 2; n > 0; n /= 2)
                MX_UNROLLED for (int i = 0; i < n; i++) parts[i] += parts[i + n];
            ((T *)f->packed)[t * elements + k] = parts[0];
        }
    }
}

static void G(few_join)(const mx_few *f)
{
    const ptrdiff_t n = f->filters * f->windows, size = f->weight_size;
    T *from = (T *)f->packed;
    for (ptrdiff_t group = 0; group < f->groups; group++, from += f->slices * n) {
        for (ptrdiff_t slice = 1; slice < f->slices; slice++)
            for (ptrdiff_t k = 0; k < n; k++) from[k] += from[slice * n + k];
        f->store_weight(n, from, f->weight + group * n * size, size, 0);
    }
}

static const mx_few_kernels G(few) = {G(few_plan), G(few_prepare), G(few_run), G(few_join)};
