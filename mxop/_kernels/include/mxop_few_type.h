/* mxop_few_type.h - convolutions with few filters for each group, for one type T; included by mxop_gemm_type.h. */

/* Scratch memory, and how lines lie in it. */
typedef struct {
    ptrdiff_t width;            /* results of a line, up to the end of a vector */
    ptrdiff_t length, line, channel;    /* of elements that are side by side; of all of a line; of all lines of a channel */
    ptrdiff_t windows;          /* numbers of a window */
    ptrdiff_t *places;          /* where in the lines these are, from the first */
    T *lines, *row, *sums;      /* images; and for the gradient of filters a line of results, and a vector for each number */
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
    p.row = p.lines + f->channels * p.channel;
    p.sums = p.row + p.width;
    return p;
}

static size_t G(few_room)(const mx_few *f, ptrdiff_t band, int sums)
{
    const G(few_plan) p = G(few_planned)(f, band, NULL);
    const ptrdiff_t more = sums ? p.width + f->filters * p.windows * LANES : 0;
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
    const mx_load load = x->load != NULL ? x->load : mx_loads[sizeof(T) == 8][sizeof(T) == 8];
    ptrdiff_t begin = first < 0 ? (-first + stride - 1) / stride : 0, end = first < size ? (size - 1 - first) / stride + 1 : 0;
    begin = begin < length ? begin : length;
    end = end < begin ? begin : end < length ? end : length;
    for (ptrdiff_t i = 0; i < begin; i++) to[i] = 0;
    if (end > begin) load(end - begin, from + (first + begin * stride) * x->element[2], mx_window_step(x), to + begin);
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

/* Results of all filters: of one or two vectors that begin at window `j` of a line, or at the first of one or two lines. */
static void G(few_pair)(const mx_few *f, const G(few_plan) *p, const T *weight, const T *lines, int two, ptrdiff_t apart,
                        char *results, ptrdiff_t results_apart, ptrdiff_t count, ptrdiff_t count_of_second)
{
    const ptrdiff_t found = f->images.found[1] * f->images.found[2], size = f->result_size;
    const mx_store store = f->store_result != NULL ? f->store_result : mx_stores[sizeof(T) == 8][sizeof(T) == 8];
    const int direct = f->store_result == NULL && count == LANES && (!two || count_of_second == LANES);
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
            store(count, rows + 2 * i * LANES, to, size, 0);
            if (two) store(count_of_second, rows + (2 * i + 1) * LANES, to + results_apart * size, size, 0);
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
    if (n <= LANES)     /* lines are short: two at a time */
        for (ptrdiff_t i = 0; i < lines; i += 2)
            G(few_pair)(f, &p, weight, p.lines + i * line, i + 1 < lines, line, results + i * n * size, n, n, n);
    else
        for (ptrdiff_t i = 0; i < lines; i++)
            for (ptrdiff_t j = 0; j < n; j += 2 * LANES) {
                const ptrdiff_t rest = n - j, second = rest - LANES < LANES ? rest - LANES : LANES;
                G(few_pair)(f, &p, weight, p.lines + i * line + j, rest > LANES, LANES, results + (i * n + j) * size, LANES,
                            rest < LANES ? rest : LANES, second);
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

static void G(few_weight)(const mx_few *f, ptrdiff_t batch, ptrdiff_t group, char *scratch)
{
    const mx_images *x = &f->images;
    G(few_plan) p = G(few_planned)(f, f->band, scratch);
    const ptrdiff_t found = x->found[1] * x->found[2], n = x->found[2], count = f->filters * p.windows;
    const mx_store store = f->store_weight != NULL ? f->store_weight : mx_stores[sizeof(T) == 8][sizeof(T) == 8];
    T *sums = p.sums;
    G(few_places)(f, &p);
    memset(sums, 0, (size_t)(count * LANES) * sizeof(T));
    memset(p.row, 0, (size_t)p.width * sizeof(T));
    for (ptrdiff_t image = 0; image < batch; image++)
        for (ptrdiff_t first = 0, lines; first < x->found[1]; first += lines) {
            lines = x->found[1] - first < f->band ? x->found[1] - first : f->band;
            G(few_fill)(f, &p, x->data + image * x->image + group * f->channels * x->channel, first, lines);
            for (ptrdiff_t q = 0; q < f->filters * lines; q++) {
                const ptrdiff_t r = q / lines, i = q % lines;
                const T *from = p.lines + i * x->stride[1] * p.line;
                f->load_result(n, f->results + (((image * f->groups + group) * f->filters + r) * found + (first + i) * n) * f->result_size,
                               f->result_size, p.row);
                for (ptrdiff_t k = 0; k < p.windows; k++) {
                    G(vector) *to = (G(vector) *)(sums + (r * p.windows + k) * LANES), sum = *to;
                    for (ptrdiff_t j = 0; j < p.width; j += LANES)
                        sum += *(const G(vector) *)(p.row + j) * *(const G(vector) *)(from + p.places[k] + j);
                    *to = sum;
                }
            }
        }
    for (ptrdiff_t k = 0; k < count; k++) sums[k] = G(few_total)(sums + k * LANES);
    store(count, sums, f->weight + group * count * f->weight_size, f->weight_size, 0);
}

static const mx_few_kernels G(few) = {G(few_room), G(few_pack), G(few_results), G(few_weight)};
