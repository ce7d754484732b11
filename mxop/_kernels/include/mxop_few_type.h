/* mxop_few_type.h - convolutions with few filters for each group, for one type T; included by mxop_gemm_type.h. */

/* Scratch memory, and how lines lie in it. */
typedef struct {
    ptrdiff_t width;            /* results of a line, up to the end of a vector */
    ptrdiff_t length, line, channel;    /* of elements that are side by side; of all of a line; of all lines of a channel */
    ptrdiff_t windows;          /* numbers of a window */
    ptrdiff_t *places;          /* where in the lines these are, from the first */
    T *lines, *rows, *sums;     /* images; and for the gradient of filters results, and a vector for each number */
} G(few_plan);

/* Elements from the first place of a window to the last along an axis: less than 0 where places go backwards. */
static inline ptrdiff_t G(few_span)(const mx_images *x, int axis) { return (x->kernel[axis] - 1) * x->dilate[axis]; }

/* Where windows begin, before their first place if places go backwards. */
static inline ptrdiff_t G(few_before)(const mx_images *x, int axis)
{
    return x->pad[axis] - (x->dilate[axis] < 0 ? G(few_span)(x, axis) : 0);
}

/* Where a place is from there. */
static inline ptrdiff_t G(few_at)(const mx_images *x, int axis, ptrdiff_t place)
{
    return place * x->dilate[axis] - (x->dilate[axis] < 0 ? G(few_span)(x, axis) : 0);
}

/* How many lines of an image so many lines of windows cover. */
static inline ptrdiff_t G(few_lines)(const mx_images *x, ptrdiff_t band)
{
    const ptrdiff_t span = G(few_span)(x, 1);
    return (band - 1) * x->stride[1] + (span < 0 ? -span : span) + 1;
}

static G(few_plan) G(few_planned)(const mx_few *f, ptrdiff_t band, char *scratch)
{
    const mx_images *x = &f->images;
    const ptrdiff_t span = G(few_span)(x, 2);
    G(few_plan) p;
    p.width = (x->found[2] + LANES - 1) / LANES * LANES;
    p.length = p.width + (span < 0 ? -span : span) / x->stride[2];
    p.line = p.length * x->stride[2];
    p.channel = p.line * G(few_lines)(x, band);
    p.windows = f->channels * mx_window_places(x);
    p.places = (ptrdiff_t *)scratch;
    p.lines = (T *)(p.places + p.windows);
    p.rows = p.lines + f->channels * p.channel;
    p.sums = p.rows + f->filters * band * p.width;
    return p;
}

static size_t G(few_room)(const mx_few *f, ptrdiff_t band, int sums)
{
    const G(few_plan) p = G(few_planned)(f, band, NULL);
    const ptrdiff_t more = sums ? f->filters * (band * p.width + p.windows * LANES) : 0;
    return (size_t)p.windows * sizeof(ptrdiff_t) + (size_t)(f->channels * p.channel + more) * sizeof(T);
}

/* Put where the numbers of a window are in the lines. */
static void G(few_places)(const mx_few *f, const G(few_plan) *p)
{
    const mx_images *x = &f->images;
    ptrdiff_t *to = p->places;
    for (ptrdiff_t c = 0; c < f->channels; c++)
        for (ptrdiff_t b = 0; b < x->kernel[1]; b++)
            for (ptrdiff_t k = 0; k < x->kernel[2]; k++) {
                const ptrdiff_t at = G(few_at)(x, 2, k);
                *to++ = c * p->channel + G(few_at)(x, 1, b) * p->line + at % x->stride[2] * p->length + at / x->stride[2];
            }
}

/* Copy a line of an image, with the zeros around it: elements `first`, `first + stride`... */
static void G(few_copy)(const mx_images *x, const char *from, ptrdiff_t first, ptrdiff_t length, T *to)
{
    const ptrdiff_t stride = x->stride[2], size = x->size[2];
    ptrdiff_t begin = first < 0 ? (-first + stride - 1) / stride : 0, end = first < size ? (size - 1 - first) / stride + 1 : 0;
    begin = begin < length ? begin : length;
    end = end < begin ? begin : end < length ? end : length;
    for (ptrdiff_t i = 0; i < begin; i++) to[i] = 0;
    if (end > begin) G(copy_steps)(x, from + (first + begin * stride) * x->element[2], end - begin, to + begin);
    for (ptrdiff_t i = end; i < length; i++) to[i] = 0;
}

/* Put the lines that a band of windows covers. */
static void G(few_fill)(const mx_few *f, const G(few_plan) *p, const char *image, ptrdiff_t first, ptrdiff_t lines)
{
    const mx_images *x = &f->images;
    const ptrdiff_t count = G(few_lines)(x, lines), start = first * x->stride[1] - G(few_before)(x, 1);
    for (ptrdiff_t c = 0; c < f->channels; c++)
        for (ptrdiff_t i = 0; i < count; i++) {
            T *to = p->lines + c * p->channel + i * p->line;
            if (start + i < 0 || start + i >= x->size[1])
                memset(to, 0, (size_t)p->line * sizeof(T));
            else
                for (ptrdiff_t r = 0; r < x->stride[2]; r++)
                    G(few_copy)(x, image + c * x->channel + (start + i) * x->element[1], r - G(few_before)(x, 2), p->length,
                                to + r * p->length);
        }
}

/* How many parts the filters of a group are multiplied in. */
static inline ptrdiff_t G(few_parts)(const mx_few *f) { return (f->filters + MX_FEW_ROWS - 1) / MX_FEW_ROWS; }

/* Pack filters: numbers of those that are multiplied at a time lie side by side. */
static void G(few_pack)(const mx_few *f, void *packed)
{
    const ptrdiff_t places = mx_window_places(&f->images), parts = G(few_parts)(f), channels = f->channels;
    T row[MX_GEMM_CHUNK], *to = (T *)packed;
    for (ptrdiff_t q = 0, some; q < f->groups * parts; q++, to += some * channels * places) {
        const ptrdiff_t part = q % parts, first = f->filters * part / parts;
        const char *from = f->weight + q / parts * f->weight_group + first * f->weight_filter;
        some = f->filters * (part + 1) / parts - first;
        for (ptrdiff_t c = 0; c < some * channels; c++)
            for (ptrdiff_t k = 0; k < places; k += MX_GEMM_CHUNK) {
                const ptrdiff_t count = places - k < MX_GEMM_CHUNK ? places - k : MX_GEMM_CHUNK, r = c / channels;
                f->load_weight(count, from + r * f->weight_filter + c % channels * f->weight_channel + k * f->weight_size,
                               f->weight_size, row);
                for (ptrdiff_t i = 0; i < count; i++) to[(c % channels * places + k + i) * some + r] = row[i];
            }
    }
}

/* One vector of results of a line, or two, for a few filters: they lie so far apart in the lines and in the results. */
MX_INLINE void G(few_block)(const int filters, const int vectors, const G(few_plan) *p, const T *lines, ptrdiff_t apart,
                            const T *weight, T *to, ptrdiff_t to_apart, ptrdiff_t step)
{
    G(vector) sums[MX_FEW_ROWS * 2], numbers[2];
    MX_UNROLLED for (int q = 0; q < filters * vectors; q++) sums[q] = (G(vector)){0};
    for (ptrdiff_t k = 0; k < p->windows; k++, weight += filters) {
        const T *from = lines + p->places[k];
        MX_UNROLLED for (int j = 0; j < vectors; j++) numbers[j] = *(const G(vector) *)(from + j * apart);
        MX_UNROLLED for (int q = 0; q < filters * vectors; q++) sums[q] += weight[q / vectors] * numbers[q % vectors];
    }
    MX_UNROLLED for (int q = 0; q < filters * vectors; q++)
        *(G(vector) *)(to + q / vectors * step + q % vectors * to_apart) = sums[q];
}

#define MX_FEW_CASE(r)                                                                                                  \
    case 2 * r: G(few_block)(r, 1, p, lines, apart, weight, to, to_apart, step); break;                                 \
    case 2 * r + 1: G(few_block)(r, 2, p, lines, apart, weight, to, to_apart, step); break;
MX_GEMM_WIDE static void G(few_vectors)(int filters, int two, const G(few_plan) *p, const T *lines, ptrdiff_t apart,
                                        const T *weight, T *to, ptrdiff_t to_apart, ptrdiff_t step)
{
    switch (2 * filters + two) {
    MX_FEW_CASE(1) MX_FEW_CASE(2) MX_FEW_CASE(3) MX_FEW_CASE(4) MX_FEW_CASE(5) MX_FEW_CASE(6)
    }
}
#undef MX_FEW_CASE

static inline void G(few_store)(const mx_few *f, ptrdiff_t count, const T *row, char *to)
{
    if (f->store_result == NULL)
        G(copy_run)((T *)to, row, count);
    else
        f->store_result(count, row, to, f->result_size, 0);
}

/* Results of all filters: one vector or two, of a line or of two lines, with `count` results each. */
static void G(few_pair)(const mx_few *f, const G(few_plan) *p, const T *weight, const T *lines, int two, ptrdiff_t apart,
                        char *results, ptrdiff_t results_apart, ptrdiff_t count)
{
    const ptrdiff_t found = f->images.found[1] * f->images.found[2], size = f->result_size;
    const int direct = f->store_result == NULL && count == LANES;
    T rows[MX_FEW_ROWS * 2 * LANES];
    for (ptrdiff_t part = 0, some, parts = G(few_parts)(f); part < parts; part++, weight += some * p->windows) {
        const ptrdiff_t r = f->filters * part / parts;
        some = f->filters * (part + 1) / parts - r;
        char *to = results + r * found * size;
        if (direct) {
            G(few_vectors)((int)some, two, p, lines, apart, weight, (T *)to, results_apart, found);
            continue;
        }
        G(few_vectors)((int)some, two, p, lines, apart, weight, rows, LANES, 2 * LANES);
        for (ptrdiff_t i = 0; i < some; i++, to += found * size) {
            G(few_store)(f, count, rows + 2 * i * LANES, to);
            if (two) G(few_store)(f, count, rows + (2 * i + 1) * LANES, to + results_apart * size);
        }
    }
}

static void G(few_results)(const mx_few *f, ptrdiff_t image, ptrdiff_t group, ptrdiff_t band, char *scratch)
{
    const mx_images *x = &f->images;
    const G(few_plan) p = G(few_planned)(f, f->band, scratch);
    const ptrdiff_t first = band * f->band, lines = x->found[1] - first < f->band ? x->found[1] - first : f->band;
    const ptrdiff_t found = x->found[1] * x->found[2], n = x->found[2];
    const ptrdiff_t line = x->stride[1] * p.line, size = f->result_size;
    char *results = f->results + ((image * f->groups + group) * f->filters * found + first * n) * size;
    const T *weight = (const T *)f->packed + group * f->filters * p.windows;
    G(few_places)(f, &p);
    G(few_fill)(f, &p, x->data + image * x->image + group * f->channels * x->channel, first, lines);
    for (ptrdiff_t i = 0; i < lines; i++) {
        const T *from = p.lines + i * line;
        char *to = results + i * n * size;
        if (n <= LANES) {       /* two lines, if there are so many */
            const int two = i + 1 < lines;
            G(few_pair)(f, &p, weight, from, two, line, to, n, n);
            i += two;
            continue;
        }
        for (ptrdiff_t j = 0; j < n; j += 2 * LANES) {      /* the last vector begins earlier than it need not to end later */
            const ptrdiff_t rest = n - j, at = rest < LANES ? n - LANES : j;
            const ptrdiff_t apart = rest >= 2 * LANES ? LANES : rest > LANES ? rest - LANES : 0;
            G(few_pair)(f, &p, weight, from + at, apart > 0, apart, to + at * size, apart, LANES);
        }
    }
}

/* Add up the lanes of a vector, in one order. */
static inline T G(few_total)(const T *lanes)
{
    T parts[LANES];
    memcpy(parts, lanes, sizeof parts);
    for (int n = LANES / 2; n > 0; n /= 2)
        for (int i = 0; i < n; i++) parts[i] += parts[i + n];
    return parts[0];
}

/* Sums of products of a few numbers of windows and of results, over a band. */
MX_INLINE void G(few_sums)(const int filters, const int numbers, const G(few_plan) *p, ptrdiff_t lines, ptrdiff_t band,
                           ptrdiff_t line, const ptrdiff_t *places, const T *rows, T *to)
{
    G(vector) sums[MX_FEW_ROWS * MX_FEW_NUMBERS], some[MX_FEW_NUMBERS];
    MX_UNROLLED for (int q = 0; q < filters * numbers; q++) sums[q] = (G(vector)){0};
    for (ptrdiff_t i = 0; i < lines; i++)
        for (ptrdiff_t j = 0; j < p->width; j += LANES) {
            const T *row = rows + i * p->width + j;
            MX_UNROLLED for (int k = 0; k < numbers; k++) some[k] = *(const G(vector) *)(p->lines + i * line + places[k] + j);
            MX_UNROLLED for (int r = 0; r < filters; r++) {
                const G(vector) result = *(const G(vector) *)(row + r * band * p->width);
                MX_UNROLLED for (int k = 0; k < numbers; k++) sums[r * numbers + k] += result * some[k];
            }
        }
    MX_UNROLLED for (int q = 0; q < filters * numbers; q++)
        *(G(vector) *)(to + (q / numbers * p->windows + q % numbers) * LANES) += sums[q];
}

#define MX_FEW_CASE(r)                                                                                                  \
    case 2 * r: G(few_sums)(r, 1, p, lines, band, line, places, rows, to); break;                                       \
    case 2 * r + 1: G(few_sums)(r, MX_FEW_NUMBERS, p, lines, band, line, places, rows, to); break;
MX_GEMM_WIDE static void G(few_sums_of)(int filters, int more, const G(few_plan) *p, ptrdiff_t lines, ptrdiff_t band, ptrdiff_t line,
                                        const ptrdiff_t *places, const T *rows, T *to)
{
    switch (2 * filters + more) {
    MX_FEW_CASE(1) MX_FEW_CASE(2) MX_FEW_CASE(3) MX_FEW_CASE(4) MX_FEW_CASE(5) MX_FEW_CASE(6)
    }
}
#undef MX_FEW_CASE

/* Put the results of a group in a band, zeros up to the end of a vector. */
static void G(few_take)(const mx_few *f, const G(few_plan) *p, ptrdiff_t image, ptrdiff_t group, ptrdiff_t first, ptrdiff_t lines)
{
    const ptrdiff_t n = f->images.found[2], found = f->images.found[1] * n;
    const char *from = f->results + ((image * f->groups + group) * f->filters * found + first * n) * f->result_size;
    for (ptrdiff_t r = 0; r < f->filters; r++)
        for (ptrdiff_t i = 0; i < lines; i++) {
            T *to = p->rows + (r * f->band + i) * p->width;
            f->load_result(n, from + (r * found + i * n) * f->result_size, f->result_size, to);
            for (ptrdiff_t j = n; j < p->width; j++) to[j] = 0;
        }
}

static void G(few_weight)(const mx_few *f, ptrdiff_t group, ptrdiff_t first, ptrdiff_t count, void *totals, char *scratch)
{
    const mx_images *x = &f->images;
    const G(few_plan) p = G(few_planned)(f, f->band, scratch);
    const ptrdiff_t bands = (x->found[1] + f->band - 1) / f->band, parts = G(few_parts)(f), line = x->stride[1] * p.line;
    G(few_places)(f, &p);
    memset(p.sums, 0, (size_t)(f->filters * p.windows * LANES) * sizeof(T));
    for (ptrdiff_t q = first; q < first + count; q++) {
        const ptrdiff_t image = q / bands, begin = q % bands * f->band;
        const ptrdiff_t lines = x->found[1] - begin < f->band ? x->found[1] - begin : f->band;
        G(few_fill)(f, &p, x->data + image * x->image + group * f->channels * x->channel, begin, lines);
        G(few_take)(f, &p, image, group, begin, lines);
        for (ptrdiff_t part = 0; part < parts; part++) {
            const ptrdiff_t r = f->filters * part / parts, some = f->filters * (part + 1) / parts - r;
            for (ptrdiff_t k = 0, more; k < p.windows; k += more ? MX_FEW_NUMBERS : 1) {
                more = k + MX_FEW_NUMBERS <= p.windows;
                G(few_sums_of)((int)some, (int)more, &p, lines, f->band, line, p.places + k, p.rows + r * f->band * p.width,
                               p.sums + (r * p.windows + k) * LANES);
            }
        }
    }
    for (ptrdiff_t k = 0; k < f->filters * p.windows; k++) ((T *)totals)[k] = G(few_total)(p.sums + k * LANES);
}

static void G(few_join)(const mx_few *f, ptrdiff_t slices, void *totals)
{
    const ptrdiff_t n = f->filters * f->channels * mx_window_places(&f->images), size = f->weight_size;
    T *from = (T *)totals;
    for (ptrdiff_t group = 0; group < f->groups; group++, from += slices * n) {
        for (ptrdiff_t slice = 1; slice < slices; slice++)
            for (ptrdiff_t k = 0; k < n; k++) from[k] += from[slice * n + k];
        f->store_weight(n, from, f->weight + group * n * size, size, 0);
    }
}

static const mx_few_kernels G(few) = {G(few_room), G(few_pack), G(few_results), G(few_weight), G(few_join)};
