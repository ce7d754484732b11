/* mxop_few_type.h - convolutions with few filters for each group, for one type T; included by mxop_gemm_type.h. */

#if defined(MX_GEMM_BYTES)
typedef MX_GEMM_BITS G(bits) __attribute__((vector_size(MX_GEMM_BYTES), aligned(sizeof(T)), may_alias));
#define MX_FEW_MASKED(x, mask) ((G(vector))((G(bits))(x) & (mask)))
#else
typedef MX_GEMM_BITS G(bits);
#define MX_FEW_MASKED(x, mask) ((mask) ? (x) : 0)
#endif

/* Scratch memory, and how lines lie in it.  Elements that the same places of neighbouring windows have are neighbours, along a
   line and from line to line: with strides, a channel has a plane for each remainder of both. */
typedef struct {
    int flat;                   /* whether lines follow each other without a gap: then vectors go on from line to line */
    ptrdiff_t width;            /* results of a line, up to the end of a vector if not */
    ptrdiff_t line, plane, channel;
    ptrdiff_t filter;           /* if flat, from the results of a filter to those of the next: they lie in such lines, too */
    ptrdiff_t windows;          /* numbers of a window */
    T *lines, *rows, *sums;     /* images; results; and for the gradient of filters a vector for each number, and */
    G(bits) *masks;             /* all bits of the lanes that are results */
} G(few_plan);

enum { G(FEW_BEYOND) = 4 * LANES };     /* numbers behind lines and results, which vectors may reach into */

/* Elements from the first place of a window to the last along an axis: less than 0 where places go backwards. */
static inline ptrdiff_t G(few_span)(const mx_images *x, int axis) { return (x->kernel[axis] - 1) * x->dilate[axis]; }

/* As many in a plane, in either direction. */
static inline ptrdiff_t G(few_reach)(const mx_images *x, int axis)
{
    const ptrdiff_t span = G(few_span)(x, axis);
    return (span < 0 ? -span : span) / x->stride[axis];
}

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

static G(few_plan) G(few_planned)(const mx_few *f, ptrdiff_t band, int flat, char *scratch)
{
    const mx_images *x = &f->images;
    const ptrdiff_t n = x->found[2];
    G(few_plan) p;
    p.flat = flat;
    p.width = flat ? n : (n + LANES - 1) / LANES * LANES;
    p.line = p.width + G(few_reach)(x, 2);
    p.plane = p.line * (band + G(few_reach)(x, 1));
    p.channel = p.plane * x->stride[1] * x->stride[2];
    p.windows = f->channels * mx_window_places(x);
    p.lines = (T *)scratch;
    p.rows = p.lines + f->channels * p.channel + G(FEW_BEYOND);
    p.filter = flat ? band * p.line + G(FEW_BEYOND) : 0;
    p.sums = p.rows + f->filters * p.filter;
    p.masks = (G(bits) *)(p.sums + f->filters * p.windows * LANES);
    return p;
}

/* Whether short lines would leave much of their vectors empty; in sums these are masked anyway. */
static inline int G(few_flat)(const mx_few *f, int sums)
{
    return sums || (f->images.found[2] % LANES != 0 && f->images.found[2] < MX_FEW_SHORT * LANES);
}

static size_t G(few_room)(const mx_few *f, ptrdiff_t band, int sums)
{
    const G(few_plan) p = G(few_planned)(f, band, G(few_flat)(f, sums), NULL);
    const char *end = sums ? (char *)p.masks + p.filter * (ptrdiff_t)sizeof(T) : (char *)p.sums;
    return (size_t)(end - (char *)p.lines);
}

/* Say where the numbers of a window are in the lines, from the first. */
static void G(few_places)(const mx_few *f, int sums, ptrdiff_t *to)
{
    const mx_images *x = &f->images;
    const G(few_plan) p = G(few_planned)(f, f->band, G(few_flat)(f, sums), NULL);
    for (ptrdiff_t c = 0; c < f->channels; c++)
        for (ptrdiff_t b = 0; b < x->kernel[1]; b++)
            for (ptrdiff_t k = 0; k < x->kernel[2]; k++) {
                const ptrdiff_t i = G(few_at)(x, 1, b), j = G(few_at)(x, 2, k);
                *to++ = c * p.channel + (i % x->stride[1] * x->stride[2] + j % x->stride[2]) * p.plane
                      + i / x->stride[1] * p.line + j / x->stride[2];
            }
}

#if defined(__AVX512F__)
/* The mask of what a vector has of a line, from a place on that may be beside it. */
static inline unsigned G(few_lanes)(ptrdiff_t at, ptrdiff_t size)
{
    return at <= -LANES ? 0 : G(first_lanes)(size - at) & ~G(first_lanes)(-at);
}

/* Whether vectors of a line hold what neighbouring windows have, or twice as much. */
static inline int G(few_plain)(const mx_images *x)
{
    return x->load == NULL && x->stride[2] <= 2 && x->element[2] == (ptrdiff_t)sizeof(T);
}

static inline G(vector) G(few_load)(const char *line, ptrdiff_t at, ptrdiff_t size)
{
    return MX_GEMM_LOAD((G(vector)){0}, G(few_lanes)(at, size), (const T *)line + at);
}
#endif

/* Copy a line of an image, with the zeros around it: elements `first`, `first + stride`... What follows is written later. */
static void G(few_copy)(const mx_images *x, const char *from, ptrdiff_t first, ptrdiff_t length, T *to)
{
    const ptrdiff_t stride = x->stride[2], size = x->size[2];
#if defined(__AVX512F__)
    if (G(few_plain)(x)) {
        for (ptrdiff_t i = 0, at = first; i < length; i += LANES, at += stride * LANES) {
            G(vector) found = G(few_load)(from, at, size);
            if (stride == 2) found = MX_GEMM_EVEN(found, G(few_load)(from, at + LANES, size));
            *(G(vector) *)(to + i) = found;
        }
        return;
    }
#endif
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
    const ptrdiff_t count = lines + G(few_reach)(x, 1), planes = x->stride[1] * x->stride[2];
    for (ptrdiff_t q = 0; q < f->channels * planes; q++) {
        const ptrdiff_t b = q % planes / x->stride[2], k = q % x->stride[2] - G(few_before)(x, 2);
        const char *channel = image + q / planes * x->channel;
#if defined(__AVX512F__)
        const int vectors = p->line <= LANES && G(few_plain)(x) ? (int)x->stride[2] : 0;
        const unsigned lanes = G(few_lanes)(k, x->size[2]), more = G(few_lanes)(k + LANES, x->size[2]);
#endif
        for (ptrdiff_t i = 0; i < count; i++) {
            const ptrdiff_t at = (first + i) * x->stride[1] + b - G(few_before)(x, 1);
            T *to = p->lines + q * p->plane + i * p->line;
            if (at < 0 || at >= x->size[1])
                for (ptrdiff_t j = 0; j < p->line; j += LANES) *(G(vector) *)(to + j) = (G(vector)){0};
#if defined(__AVX512F__)
            else if (vectors > 0) {     /* as `few_copy` does it, with masks that all lines share */
                const T *from = (const T *)(channel + at * x->element[1]) + k;
                G(vector) found = MX_GEMM_LOAD((G(vector)){0}, lanes, from);
                if (vectors == 2) found = MX_GEMM_EVEN(found, MX_GEMM_LOAD((G(vector)){0}, more, from + LANES));
                *(G(vector) *)to = found;
            }
#endif
            else
                G(few_copy)(x, channel + at * x->element[1], k, p->line, to);
        }
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
MX_INLINE void G(few_block)(const int filters, const int vectors, const mx_few *f, ptrdiff_t windows, const T *lines,
                            ptrdiff_t apart, const T *weight, T *to, ptrdiff_t to_apart, ptrdiff_t step)
{
    G(vector) sums[MX_FEW_ROWS * 2], numbers[4];
    MX_UNROLLED for (int q = 0; q < filters * vectors; q++) sums[q] = (G(vector)){0};
    for (ptrdiff_t k = 0; k < windows; k++, weight += filters) {
        const T *from = lines + f->places[k];
        MX_UNROLLED for (int j = 0; j < vectors; j++) numbers[j] = *(const G(vector) *)(from + j * apart);
        MX_UNROLLED for (int q = 0; q < filters * vectors; q++) sums[q] += weight[q / vectors] * numbers[q % vectors];
    }
    MX_UNROLLED for (int q = 0; q < filters * vectors; q++)
        *(G(vector) *)(to + q / vectors * step + q % vectors * to_apart) = sums[q];
}

#define MX_FEW_CASE(r)                                                                                                  \
    case 2 * r: G(few_block)(r, 1, f, windows, lines, apart, weight, to, to_apart, step); break;                                 \
    case 2 * r + 1: G(few_block)(r, 2, f, windows, lines, apart, weight, to, to_apart, step); break;
MX_GEMM_WIDE static void G(few_vectors)(int filters, int two, const mx_few *f, ptrdiff_t windows, const T *lines,
                                        ptrdiff_t apart, const T *weight, T *to, ptrdiff_t to_apart, ptrdiff_t step)
{
    switch (2 * filters + two) {
    MX_FEW_CASE(1) MX_FEW_CASE(2) MX_FEW_CASE(3) MX_FEW_CASE(4) MX_FEW_CASE(5) MX_FEW_CASE(6)
    }
}
#undef MX_FEW_CASE

/* Results of a few filters for so many places of windows that follow each other. */
#define MX_FEW_CASE(r, vectors)                                                                                         \
    case r:                                                                                                             \
        for (ptrdiff_t j = 0; j < count; j += vectors * LANES)                                                          \
            G(few_block)(r, vectors, f, p->windows, p->lines + j, LANES, weight, to + j, LANES, step);                      \
        break;
MX_GEMM_WIDE static void G(few_run)(int filters, const mx_few *f, const G(few_plan) *p, ptrdiff_t count, const T *weight,
                                    T *to, ptrdiff_t step)
{
    switch (filters) {
    MX_FEW_CASE(1, 4) MX_FEW_CASE(2, 4) MX_FEW_CASE(3, 2) MX_FEW_CASE(4, 2) MX_FEW_CASE(5, 2) MX_FEW_CASE(6, 2)
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

/* Results of all filters: one vector or two, of a line or of two lines. */
static void G(few_pair)(const mx_few *f, const G(few_plan) *p, const T *weight, const T *lines, int two, ptrdiff_t apart,
                        char *results, ptrdiff_t results_apart)
{
    const ptrdiff_t found = f->images.found[1] * f->images.found[2], size = f->result_size;
    T rows[MX_FEW_ROWS * 2 * LANES];
    for (ptrdiff_t part = 0, some, parts = G(few_parts)(f); part < parts; part++, weight += some * p->windows) {
        const ptrdiff_t r = f->filters * part / parts;
        some = f->filters * (part + 1) / parts - r;
        char *to = results + r * found * size;
        if (f->store_result == NULL) {
            G(few_vectors)((int)some, two, f, p->windows, lines, apart, weight, (T *)to, results_apart, found);
            continue;
        }
        G(few_vectors)((int)some, two, f, p->windows, lines, apart, weight, rows, LANES, 2 * LANES);
        for (ptrdiff_t i = 0; i < some; i++, to += found * size) {
            G(few_store)(f, LANES, rows + 2 * i * LANES, to);
            if (two) G(few_store)(f, LANES, rows + (2 * i + 1) * LANES, to + results_apart * size);
        }
    }
}

/* Results of all filters, which are computed with what lies between lines, and stored without. */
static void G(few_lines)(const mx_few *f, const G(few_plan) *p, const T *weight, ptrdiff_t lines, char *results)
{
    const ptrdiff_t n = f->images.found[2], found = f->images.found[1] * n, size = f->result_size;
#if defined(__AVX512F__)
    const unsigned lanes = G(first_lanes)(n);
#endif
    for (ptrdiff_t part = 0, some, parts = G(few_parts)(f); part < parts; part++, weight += some * p->windows) {
        const ptrdiff_t r = f->filters * part / parts;
        some = f->filters * (part + 1) / parts - r;
        G(few_run)((int)some, f, p, lines * p->line, weight, p->rows, p->filter);
        for (ptrdiff_t q = 0; q < some; q++)
            for (ptrdiff_t i = 0; i < lines; i++) {
                const T *row = p->rows + q * p->filter + i * p->line;
                char *to = results + ((r + q) * found + i * n) * size;
#if defined(__AVX512F__)
                if (f->store_result == NULL && n <= LANES)
                    MX_GEMM_STORE(lanes, (T *)to, *(const G(vector) *)row);
                else
#endif
                    G(few_store)(f, n, row, to);
            }
    }
}

/* The same where lines are long: each has vectors of its own. */
static void G(few_apart)(const mx_few *f, const G(few_plan) *p, const T *weight, ptrdiff_t lines, char *results)
{
    const ptrdiff_t n = f->images.found[2], size = f->result_size;
    for (ptrdiff_t i = 0; i < lines; i++) {
        const T *from = p->lines + i * p->line;
        char *to = results + i * n * size;
        if (n == LANES) {       /* two lines, if there are so many; shorter ones are flat */
            const int two = i + 1 < lines;
            G(few_pair)(f, p, weight, from, two, p->line, to, n);
            i += two;
            continue;
        }
        for (ptrdiff_t j = 0; j < n; j += 2 * LANES) {      /* the last vector begins earlier than it need not to end later */
            const ptrdiff_t rest = n - j, at = rest < LANES ? n - LANES : j;
            const ptrdiff_t apart = rest >= 2 * LANES ? LANES : rest > LANES ? rest - LANES : 0;
            G(few_pair)(f, p, weight, from + at, apart > 0, apart, to + at * size, apart);
        }
    }
}

static void G(few_results)(const mx_few *f, ptrdiff_t begin, ptrdiff_t end, char *scratch)
{
    const mx_images *x = &f->images;
    const G(few_plan) p = G(few_planned)(f, f->band, G(few_flat)(f, 0), scratch);
    const ptrdiff_t bands = (x->found[1] + f->band - 1) / f->band, n = x->found[2], found = x->found[1] * n;
    ptrdiff_t band = begin % bands, group = begin / bands % f->groups, image = begin / bands / f->groups;
    for (ptrdiff_t t = begin; t < end; t++) {
        const ptrdiff_t first = band * f->band, lines = x->found[1] - first < f->band ? x->found[1] - first : f->band;
        char *results = f->results + ((image * f->groups + group) * f->filters * found + first * n) * f->result_size;
        const T *weight = (const T *)f->packed + group * f->filters * p.windows;
        G(few_fill)(f, &p, x->data + image * x->image + group * f->channels * x->channel, first, lines);
        if (p.flat) G(few_lines)(f, &p, weight, lines, results); else G(few_apart)(f, &p, weight, lines, results);
        if (++band == bands) band = 0, group++;
        if (group == f->groups) group = 0, image++;
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

/* Sums of products of a few numbers of windows and of results, over so many places of windows that follow each other.  What
   lies between lines must not count: there results are 0, but 0 times infinity is not. */
MX_INLINE void G(few_sums)(const int filters, const int numbers, const G(few_plan) *p, ptrdiff_t count, const ptrdiff_t *places,
                           const T *rows, T *to)
{
    G(vector) sums[MX_FEW_ROWS * MX_FEW_NUMBERS], some[MX_FEW_NUMBERS];
    MX_UNROLLED for (int q = 0; q < filters * numbers; q++) sums[q] = (G(vector)){0};
    for (ptrdiff_t j = 0; j < count; j += LANES) {
        const G(bits) mask = p->masks[j / LANES];
        MX_UNROLLED for (int k = 0; k < numbers; k++) some[k] = MX_FEW_MASKED(*(const G(vector) *)(p->lines + j + places[k]), mask);
        MX_UNROLLED for (int r = 0; r < filters; r++) {
            const G(vector) result = *(const G(vector) *)(rows + j + r * p->filter);
            MX_UNROLLED for (int k = 0; k < numbers; k++) sums[r * numbers + k] += result * some[k];
        }
    }
    MX_UNROLLED for (int q = 0; q < filters * numbers; q++)
        *(G(vector) *)(to + (q / numbers * p->windows + q % numbers) * LANES) += sums[q];
}

#define MX_FEW_CASE(r)                                                                                                  \
    case 2 * r: G(few_sums)(r, 1, p, count, places, rows, to); break;                                                   \
    case 2 * r + 1: G(few_sums)(r, MX_FEW_NUMBERS, p, count, places, rows, to); break;
MX_GEMM_WIDE static void G(few_sums_of)(int filters, int more, const G(few_plan) *p, ptrdiff_t count, const ptrdiff_t *places,
                                        const T *rows, T *to)
{
    switch (2 * filters + more) {
    MX_FEW_CASE(1) MX_FEW_CASE(2) MX_FEW_CASE(3) MX_FEW_CASE(4) MX_FEW_CASE(5) MX_FEW_CASE(6)
    }
}
#undef MX_FEW_CASE

/* Put the results of a group in a band, and zeros between them. */
static void G(few_take)(const mx_few *f, const G(few_plan) *p, ptrdiff_t image, ptrdiff_t group, ptrdiff_t first, ptrdiff_t lines)
{
    const ptrdiff_t n = f->images.found[2], found = f->images.found[1] * n;
    const char *from = f->results + ((image * f->groups + group) * f->filters * found + first * n) * f->result_size;
    for (ptrdiff_t r = 0; r < f->filters; r++) {
        T *to = p->rows + r * p->filter;
        for (ptrdiff_t i = 0; i < lines; i++, to += p->line) {
            const char *row = from + (r * found + i * n) * f->result_size;
            if (f->store_result == NULL)
                G(copy_run)(to, (const T *)row, n);
            else
                f->load_result(n, row, f->result_size, to);
            for (ptrdiff_t j = n; j < p->line; j++) to[j] = 0;
        }
        *(G(vector) *)to = (G(vector)){0};
    }
}

/* Say which lanes are results, in so many lines. */
static void G(few_masks)(const mx_few *f, const G(few_plan) *p, ptrdiff_t lines)
{
    char *to = (char *)p->masks;
    memset(to, 0, (size_t)p->filter * sizeof(T));
    for (ptrdiff_t i = 0; i < lines; i++) memset(to + i * p->line * (ptrdiff_t)sizeof(T), -1, (size_t)f->images.found[2] * sizeof(T));
}

static void G(few_weight)(const mx_few *f, ptrdiff_t group, ptrdiff_t first, ptrdiff_t count, void *totals, char *scratch)
{
    const mx_images *x = &f->images;
    const G(few_plan) p = G(few_planned)(f, f->band, G(few_flat)(f, 1), scratch);
    const ptrdiff_t bands = (x->found[1] + f->band - 1) / f->band, parts = G(few_parts)(f);
    memset(p.sums, 0, (size_t)(f->filters * p.windows * LANES) * sizeof(T));
    ptrdiff_t masked = 0;
    for (ptrdiff_t q = first; q < first + count; q++) {
        const ptrdiff_t image = q / bands, begin = q % bands * f->band;
        const ptrdiff_t lines = x->found[1] - begin < f->band ? x->found[1] - begin : f->band;
        if (lines != masked) G(few_masks)(f, &p, masked = lines);
        G(few_fill)(f, &p, x->data + image * x->image + group * f->channels * x->channel, begin, lines);
        G(few_take)(f, &p, image, group, begin, lines);
        for (ptrdiff_t part = 0; part < parts; part++) {
            const ptrdiff_t r = f->filters * part / parts, some = f->filters * (part + 1) / parts - r;
            for (ptrdiff_t k = 0, more; k < p.windows; k += more ? MX_FEW_NUMBERS : 1) {
                more = k + MX_FEW_NUMBERS <= p.windows;
                G(few_sums_of)((int)some, (int)more, &p, lines * p.line, f->places + k, p.rows + r * p.filter,
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

#undef MX_FEW_MASKED

static const mx_few_kernels G(few) = {G(few_room), G(few_places), G(few_pack), G(few_results), G(few_weight), G(few_join)};
