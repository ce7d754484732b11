/* mxop_gemm_windows.h - packing the windows of images as columns of B, for one type T; included by mxop_gemm_type.h.

   What windows have at one place of the image is found once for all channels, as loads of a vector each where elements lie
   side by side: a vector that is made of several lines of an image, or reaches beyond one, is loaded by lanes. */

#if defined(__AVX512F__) && defined(MX_GEMM_BYTES)
#define MX_GEMM_LANES 1         /* loads of some lanes of a vector, which read nothing else */
typedef struct { unsigned lanes; ptrdiff_t from; } G(some);
#endif

/* What windows have at one place. */
typedef struct {
    mx_piece pieces[MX_GEMM_CHUNK];
    ptrdiff_t count;
    int whole;                  /* all windows have something there */
#if defined(MX_GEMM_LANES)
    G(some) loads[2 * MX_GEMM_CHUNK];
    int ends[MX_GEMM_CHUNK / LANES];    /* of the loads of each vector */
#endif
} G(place);

/* Find what `width` windows have at a place, of which `lines` tells where they begin. */
static void G(find)(const mx_images *x, const mx_line *lines, ptrdiff_t n, ptrdiff_t place, ptrdiff_t width, G(place) *found)
{
    ptrdiff_t covered;
    found->count = mx_pieces_of(x, lines, n, place, found->pieces, &covered);
    found->whole = covered == width;
#if defined(MX_GEMM_LANES)
    int loads = 0, vector = 0;
    for (ptrdiff_t i = 0; i < found->count; i++) {
        const mx_piece *p = &found->pieces[i];
        for (ptrdiff_t to = p->to, stop = p->to + p->count, some; to < stop; to += some) {
            const int lane = (int)(to % LANES);
            some = LANES - lane < stop - to ? LANES - lane : stop - to;
            while (vector < to / LANES) found->ends[vector++] = loads;
            found->loads[loads++] = (G(some)){((1u << some) - 1) << lane, p->from + (to - p->to - lane) * (ptrdiff_t)sizeof(T)};
        }
    }
    while (vector < (width + LANES - 1) / LANES) found->ends[vector++] = loads;
#endif
}

/* Copy numbers that lie side by side; the last of a short run are copied twice rather than one by one. */
MX_INLINE void G(copy_run)(T *to, const T *from, ptrdiff_t n)
{
#if defined(MX_GEMM_BYTES)
    typedef G(vector) V;
    typedef G(four) F;
    if (n >= LANES) {
        for (ptrdiff_t i = 0; i < n - LANES; i += LANES) *(V *)(to + i) = *(const V *)(from + i);
        *(V *)(to + n - LANES) = *(const V *)(from + n - LANES);
        return;
    }
    if (n >= 4) {
        for (ptrdiff_t i = 0; i < n - 4; i += 4) *(F *)(to + i) = *(const F *)(from + i);
        *(F *)(to + n - 4) = *(const F *)(from + n - 4);
        return;
    }
#endif
    for (ptrdiff_t i = 0; i < n; i++) to[i] = from[i];
}

/* Copy what some windows of a line have at the same place. */
MX_INLINE void G(copy_steps)(const mx_images *x, const char *from, ptrdiff_t n, T *to)
{
    const ptrdiff_t step = mx_window_step(x);
    if (x->load != NULL)
        x->load(n, from, step, to);
    else if (step == (ptrdiff_t)sizeof(T))
        G(copy_run)(to, (const T *)from, n);
    else if (step == 2 * (ptrdiff_t)sizeof(T))
        for (ptrdiff_t i = 0; i < n; i++) to[i] = ((const T *)from)[2 * i];
    else
        mx_loads[sizeof(T) == 8][sizeof(T) == 8](n, from, step, to);
}

/* Write what windows have at a place of one channel, a number for each: `width` of them, up to the end of a vector. */
MX_INLINE void G(copy_place)(const mx_images *x, const char *channel, const G(place) *place, ptrdiff_t width, T *to)
{
#if defined(MX_GEMM_LANES)
    if (x->load == NULL && mx_window_step(x) == (ptrdiff_t)sizeof(T)) {
        for (int v = 0, i = 0; v < (width + LANES - 1) / LANES; v++) {
            G(vector) found = {0};
            for (; i < place->ends[v]; i++) found = MX_GEMM_LOAD(found, place->loads[i].lanes, channel + place->loads[i].from);
            *(G(vector) *)(to + v * LANES) = found;
        }
        return;
    }
#endif
    if (!place->whole) memset(to, 0, (size_t)width * sizeof(T));
    for (ptrdiff_t i = 0; i < place->count; i++)
        G(copy_steps)(x, channel + place->pieces[i].from, place->pieces[i].count, to + place->pieces[i].to);
}

/* The packing function of windows: each is a column. */
static void G(pack_windows)(const void *operand, ptrdiff_t first, ptrdiff_t count, ptrdiff_t width, ptrdiff_t k,
                            ptrdiff_t depth, void *panel)
{
    const mx_images *x = (const mx_images *)operand;
    const ptrdiff_t places = mx_window_places(x);
    mx_line lines[WIDTH];
    G(place) place;
    const ptrdiff_t n = mx_lines_of(x, first, count, lines);
    for (ptrdiff_t q = 0; q < places && q < depth; q++) {
        const char *channel = x->data + (k + q) / places * x->channel;
        G(find)(x, lines, n, (k + q) % places, width, &place);
        for (ptrdiff_t p = q; p < depth; p += places, channel += x->channel)
            G(copy_place)(x, channel, &place, width, (T *)panel + p * width);
    }
}

/* The packing function of the transpose: a column for each channel and place, and windows are what is added up. */
static void G(pack_places)(const void *operand, ptrdiff_t first, ptrdiff_t count, ptrdiff_t width, ptrdiff_t k,
                           ptrdiff_t depth, void *panel)
{
    const mx_images *x = (const mx_images *)operand;
    const ptrdiff_t places = mx_window_places(x);
    mx_line lines[MX_GEMM_CHUNK];
    G(place) place;
    T rows[WIDTH][MX_GEMM_CHUNK];
    for (ptrdiff_t j = 0; j < depth; j += MX_GEMM_CHUNK) {
        const ptrdiff_t chunk = depth - j < MX_GEMM_CHUNK ? depth - j : MX_GEMM_CHUNK;
        const ptrdiff_t n = mx_lines_of(x, k + j, chunk, lines);
        for (ptrdiff_t q = 0; q < places && q < count; q++) {
            const char *channel = x->data + (first + q) / places * x->channel;
            G(find)(x, lines, n, (first + q) % places, chunk, &place);
            for (ptrdiff_t i = q; i < count; i += places, channel += x->channel) G(copy_place)(x, channel, &place, chunk, rows[i]);
        }
        G(interleave)(rows[0], MX_GEMM_CHUNK, count, width, chunk, (T *)panel + j * width);
    }
    G(pad)(count, width, depth, (T *)panel);
}
#undef MX_GEMM_LANES
