/* mxop_depthwise_type.h - convolutions with one filter for each channel, for one type T; included by mxop_few_type.h.

   Lanes are channels: images are transposed as they are copied to scratch memory, so that an element of a vector's worth of
   channels is a vector, and results are transposed back.  Padding is never read, and lines may be as short as they like. */

/* Elements of each channel that are copied, or stored, at a time, or some more: of 64 from memory, all takes 1.5 times as long. */
#define MX_DEPTHWISE_RUN (2 * MX_COLUMNS)

/* Whether lanes are channels: they are filled, and what a line of results needs stays in L2. */
static int G(is_depthwise)(const mx_few *f)
{
    const mx_images *x = &f->images;
    const ptrdiff_t lines = x->kernel[0] * (G(few_reach)(x, 1) + 1);
    return !f->sums && f->channels == 1 && f->filters == 1 && LANES > 1 && f->groups >= LANES
        && lines * x->size[2] * MX_GEMM_BYTES <= MX_L2_BYTES / 4;
}

/* How many lines of an image a band has, at most. */
static inline ptrdiff_t G(depthwise_lines)(const mx_few *f)
{
    const mx_images *x = &f->images;
    const ptrdiff_t lines = (f->band - 1) * x->stride[1] + G(few_reach)(x, 1) + 1;
    return lines < x->size[1] ? lines : x->size[1];
}

static size_t G(depthwise_plan)(mx_few *f)
{
    const mx_images *x = &f->images;
    f->windows = mx_window_places(x);
    f->row = x->found[2];
    f->plane = G(depthwise_lines)(f) * x->size[2] * LANES;
    f->result = (MX_DEPTHWISE_RUN + f->row) * LANES;      /* lines until there is a run */
    return (size_t)(x->kernel[0] * f->plane + (f->store_result != NULL ? 2 : 1) * f->result) * sizeof(T);
}

/* Transpose the filters: of each element, a vector for each lanes' worth of channels. */
static void G(depthwise_weights)(const mx_few *f)
{
    const mx_matrix weight = {.data = f->weight, .across = f->weight_group, .along = f->weight_size,
                              .load = f->load_weight == mx_loads[sizeof(T) == 8][sizeof(T) == 8] ? NULL : f->load_weight};
    for (ptrdiff_t first = 0; first < f->groups; first += LANES) {
        const ptrdiff_t count = f->groups - first < LANES ? f->groups - first : LANES;
        G(pack)(&weight, first, count, LANES, 0, f->windows, (T *)f->packed + first * f->windows);
    }
}

/* Some results of a line, whose places inside the image are the same. */
typedef struct { mx_inside planes, rows, columns; const T *weight, *from; ptrdiff_t plane, line; } G(depthwise_part);

MX_INLINE void G(depthwise_sums)(const int count, const mx_few *f, const G(depthwise_part) *p, const T *from, ptrdiff_t step, T *to)
{
    const mx_images *x = &f->images;
    const ptrdiff_t beside = x->dilate[2] * LANES;
    G(vector) sums[8];
    MX_UNROLLED for (int i = 0; i < count; i++) sums[i] = (G(vector)){0};
    for (ptrdiff_t a = p->planes.begin; a < p->planes.end; a++)
        for (ptrdiff_t b = p->rows.begin; b < p->rows.end; b++) {
            const T *weight = p->weight + ((a * x->kernel[1] + b) * x->kernel[2] + p->columns.begin) * LANES;
            const T *place = from + a * p->plane + b * p->line + p->columns.begin * beside;
            for (ptrdiff_t c = p->columns.begin; c < p->columns.end; c++, weight += LANES, place += beside) {
                const G(vector) number = *(const G(vector) *)weight;
                MX_UNROLLED for (int i = 0; i < count; i++) sums[i] += number * *(const G(vector) *)(place + i * step);
            }
        }
    MX_UNROLLED for (int i = 0; i < count; i++) *(G(vector) *)(to + i * LANES) = sums[i];
}

/* Results `j` to `stop` of a line. */
MX_INLINE void G(depthwise_run_of)(const mx_few *f, const G(depthwise_part) *p, ptrdiff_t j, ptrdiff_t stop, ptrdiff_t step, T *to)
{
    for (; j + 8 <= stop; j += 8) G(depthwise_sums)(8, f, p, p->from + j * step, step, to + j * LANES);
    for (; j + 4 <= stop; j += 4) G(depthwise_sums)(4, f, p, p->from + j * step, step, to + j * LANES);
    for (; j < stop; j++) G(depthwise_sums)(1, f, p, p->from + j * step, step, to + j * LANES);
}

/* A line of results: those with the same places inside the image together. */
static void G(depthwise_line)(const mx_few *f, G(depthwise_part) *p, T *to)
{
    const mx_images *x = &f->images;
    for (ptrdiff_t j = 0, stop; j < x->found[2]; j = stop) {
        stop = G(few_same)(f, 2, j, x->found[2], &p->columns);
        if (x->stride[2] == 1)
            G(depthwise_run_of)(f, p, j, stop, LANES, to);
        else
            G(depthwise_run_of)(f, p, j, stop, x->stride[2] * LANES, to);
    }
}

/* Copy lines `top` to `stop` of what windows `at` of the first axis have, of some channels. */
static void G(depthwise_fill)(const mx_few *f, const char *image, ptrdiff_t count, ptrdiff_t at, const mx_inside *planes, ptrdiff_t top,
                              ptrdiff_t stop, T *to)
{
    const mx_images *x = &f->images;
    const ptrdiff_t width = x->size[2], one_run = x->element[1] == width * x->element[2];
    const mx_matrix lines = {.across = x->channel, .along = x->element[2], .load = x->load, .next = x->element[1],
                             .split = one_run ? 0 : width};
    for (ptrdiff_t a = planes->begin; a < planes->end; a++) {
        mx_matrix plane = lines;
        plane.data = image + (at * x->stride[0] - x->pad[0] + a * x->dilate[0]) * x->element[0];
        G(pack)(&plane, 0, count, LANES, top * width, (stop - top) * width, to + a * f->plane);
    }
}

/* Store `n` results of each of some channels, where a plane of results begins `apart` elements after the one before it. */
static void G(depthwise_store)(const mx_few *f, ptrdiff_t count, T *found, ptrdiff_t n, ptrdiff_t apart, char *results)
{
    if (f->store_result == NULL) {
        G(interleave)(found, LANES, n, apart, count, (T *)results);
        return;
    }
    G(interleave)(found, LANES, n, n, count, found + f->result);
    for (ptrdiff_t i = 0; i < count; i++)
        f->store_result(n, found + f->result + i * n, results + i * apart * f->result_size, f->result_size, 0);
}

/* Lines `first` to `first + lines` of the results of channels from `group` on, whose images begin at `image`.  What is read next
   is copied just before, some lines at a time; what was computed is stored just after. */
static void G(depthwise_band)(const mx_few *f, ptrdiff_t group, const char *image, ptrdiff_t at, ptrdiff_t first, ptrdiff_t lines,
                              char *results, T *scratch)
{
    const mx_images *x = &f->images;
    const ptrdiff_t count = f->groups - group < LANES ? f->groups - group : LANES, width = x->size[2], reach = G(few_reach)(x, 1) + 1;
    const ptrdiff_t apart = x->found[0] * x->found[1] * f->row, before = x->pad[1] + G(few_back)(x, 1), step = MX_DEPTHWISE_RUN / width + 1;
    const ptrdiff_t top = first * x->stride[1] > before ? first * x->stride[1] - before : 0;
    const ptrdiff_t end = (first + lines - 1) * x->stride[1] - before + reach, stop = end < x->size[1] ? end : x->size[1];
    T *found = scratch + x->kernel[0] * f->plane;
    G(depthwise_part) p = {.weight = (const T *)f->packed + group * f->windows, .plane = f->plane, .line = x->dilate[1] * width * LANES};
    ptrdiff_t there = top, stored = 0;
    G(few_same)(f, 0, at, at, &p.planes);
    for (ptrdiff_t i = 0; i < lines; i++) {
        const ptrdiff_t line = (first + i) * x->stride[1] - before;
        if (line + reach > there && there < stop) {
            const ptrdiff_t next = line + reach > there + step ? line + reach : there + step;
            G(depthwise_fill)(f, image, count, at, &p.planes, there, next < stop ? next : stop,
                              scratch + (there - top) * width * LANES);
            there = next;
        }
        G(few_same)(f, 1, first + i, first + i, &p.rows);
        p.from = scratch + ((line + G(few_back)(x, 1) - top) * width - x->pad[2]) * LANES;
        G(depthwise_line)(f, &p, found + (i - stored) * f->row * LANES);
        if ((i + 1 - stored) * f->row >= MX_DEPTHWISE_RUN || i == lines - 1) {
            G(depthwise_store)(f, count, found, (i + 1 - stored) * f->row, apart, results + stored * f->row * f->result_size);
            stored = i + 1;
        }
    }
}

#undef MX_DEPTHWISE_RUN
