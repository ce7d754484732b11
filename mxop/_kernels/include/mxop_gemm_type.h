/* mxop_gemm_type.h - products of matrices for one type T; included by mxop_gemm_kernels.h once for each. */

#if defined(MX_GEMM_BYTES)
#define LANES ((int)(MX_GEMM_BYTES / sizeof(T)))
typedef T G(vector) __attribute__((vector_size(MX_GEMM_BYTES), aligned(sizeof(T)), may_alias));
typedef T G(four) __attribute__((vector_size(4 * sizeof(T)), aligned(sizeof(T)), may_alias));
typedef T G(eight) __attribute__((vector_size(8 * sizeof(T)), aligned(sizeof(T)), may_alias));
#else
#define LANES 1
typedef T G(vector);
#endif
#define WIDTH (MX_GEMM_VECTORS * LANES)         /* columns of a panel of B */
#define NARROW (MX_GEMM_VECTORS / 2 * LANES)    /* of a last panel that has no more */

/* What to prefetch of the panel that is packed next: its first line, or null; the stride from line to line, and after `steps` of
   them an extra `leap`, in bytes. */
typedef struct { const char *at; ptrdiff_t step, steps, leap; } G(wanted);

/* ---- the innermost loop --------------------------------------------------------------------------------------------- */

/* Multiply numbers of A, one for each row, by vectors of B; pack these to `panel`, or those to `panel_a`. */
MX_INLINE void G(summand)(const int rows, const int vectors, const int packs, const T *MX_RESTRICT a, ptrdiff_t a_row,
                          const T *MX_RESTRICT b, ptrdiff_t b_k, T *MX_RESTRICT panel, T *MX_RESTRICT panel_a, G(vector) *sums)
{
    G(vector) columns[MX_GEMM_VECTORS];
    MX_UNROLLED for (int j = 0; j < vectors; j++) columns[j] = *(const G(vector) *)(b + j * LANES);
    if (packs == MX_PACKS_B)
        MX_UNROLLED for (int j = 0; j < vectors; j++) {
            MX_PREFETCH((const char *)(b + MX_GEMM_AHEAD * b_k + j * LANES), 2);     /* steps of `b_k` are not foreseen */
            *(G(vector) *)(panel + j * LANES) = columns[j];
        }
    if (packs == MX_PACKS_B) MX_PREFETCH((const char *)(b + MX_GEMM_AHEAD * b_k + vectors * LANES - 1), 2);
    if (packs != MX_PACKS_A) {
        MX_UNROLLED for (int q = 0; q < rows * vectors; q++) sums[q] += a[q / vectors * a_row] * columns[q % vectors];
        return;
    }
    MX_UNROLLED for (int i = 0; i < rows; i++) {
        G(vector) number = a[i * a_row] - (G(vector)){0};
        MX_GEMM_READ(number);           /* as a vector: one number first would have to be spread afterwards */
        panel_a[i] = MX_GEMM_FIRST(number);
        MX_UNROLLED for (int j = 0; j < vectors; j++) sums[i * vectors + j] += number * columns[j];
    }
}

/* The sums over `depth` summands for a block of C of constant size, in registers.  Numbers of A are at a[row * a_row +
   summand * a_k], vectors of B at b + summand * b_k.  One of them is packed on the way if `packs` says so: multiplications hide what
   that takes, and fetching what is wanted `later`. */
MX_INLINE void G(block)(const int rows, const int vectors, const int packs, ptrdiff_t depth, const T *MX_RESTRICT a,
                        ptrdiff_t a_row, ptrdiff_t a_k, const T *MX_RESTRICT b, ptrdiff_t b_k, T *MX_RESTRICT panel,
                        T *MX_RESTRICT panel_a, const G(wanted) *later, T *MX_RESTRICT c, ptrdiff_t c_row, T alpha, int add)
{
    const char *line = later->at;
    ptrdiff_t steps = later->steps;
    G(vector) sums[MX_GEMM_ROWS * MX_GEMM_VECTORS];
    ptrdiff_t k = 0;
    MX_UNROLLED for (int q = 0; q < rows * vectors; q++) sums[q] = (G(vector)){0};
    const int ends_soon = depth <= MX_GEMM_DEPTH / 4;      /* then C would come too late: that of the next panel is fetched */
    if (ends_soon) MX_UNROLLED for (int i = 0; i < rows; i++)
        for (int j = 0; j < vectors * LANES * (int)sizeof(T); j += 64) MX_PREFETCH_WRITE((char *)(c + i * c_row + WIDTH) + j);
    for (; k + MX_GEMM_PAUSE <= depth; k += MX_GEMM_PAUSE) {
        if (!ends_soon && k / MX_GEMM_PAUSE < rows * vectors)     /* C, wanted at the end: at once it would block A and B */
            MX_PREFETCH_WRITE(c + k / MX_GEMM_PAUSE / vectors * c_row + k / MX_GEMM_PAUSE % vectors * LANES);
        if (line != NULL) {
            MX_UNROLLED for (int j = 0; j < WIDTH * (int)sizeof(T); j += 64) MX_PREFETCH(line + j, 2);
            MX_PREFETCH(line + WIDTH * sizeof(T) - 1, 2);
            line += later->step;
            if (--steps == 0) line += later->leap, steps = later->steps;
        }
        if (packs == MX_PACKS_A)                    /* the next rows of A, at every other pause each of them */
            MX_UNROLLED for (int i = 0; i < (rows + 1) / 2; i++)
                MX_PREFETCH((const char *)(a + (rows + k / MX_GEMM_PAUSE % 2 * (rows / 2) + i) * a_row), 2);
        MX_UNROLLED_BY_FOUR for (int i = 0; i < MX_GEMM_PAUSE; i++, a += a_k, b += b_k)
            G(summand)(rows, vectors, packs, a, a_row, b, b_k, packs == MX_PACKS_B ? panel + (k + i) * WIDTH : NULL,
                       packs == MX_PACKS_A ? panel_a + (k + i) * rows : NULL, sums);
    }
    for (; k < depth; k++, a += a_k, b += b_k)
        G(summand)(rows, vectors, packs, a, a_row, b, b_k, packs == MX_PACKS_B ? panel + k * WIDTH : NULL,
                   packs == MX_PACKS_A ? panel_a + k * rows : NULL, sums);
    MX_UNROLLED for (int q = 0; q < rows * vectors; q++) {
        G(vector) *at = (G(vector) *)(c + q / vectors * c_row + q % vectors * LANES);
        *at = add ? *at + alpha * sums[q] : alpha * sums[q];
    }
}

/* One case for each number of rows: what is left of a block is as fast as the rest of it. */
#define MX_GEMM_CASE(r)                                                                                                 \
    case r:                                                                                                             \
        G(block)(r <= MX_GEMM_ROWS ? r : 1, vectors, packs, depth, a, a_row, a_k, b, b_k, panel, panel_a, later, c, c_row,  \
                 alpha, add);                                                                                           \
        break;
MX_INLINE void G(rows)(int rows, const int vectors, const int packs, ptrdiff_t depth, const T *a, ptrdiff_t a_row,
                       ptrdiff_t a_k, const T *b, ptrdiff_t b_k, T *panel, T *panel_a, const G(wanted) *later, T *c,
                       ptrdiff_t c_row, T alpha, int add)
{
    switch (rows) {
    MX_GEMM_CASE(1) MX_GEMM_CASE(2) MX_GEMM_CASE(3) MX_GEMM_CASE(4)
#if MX_GEMM_ROWS > 4
    MX_GEMM_CASE(5) MX_GEMM_CASE(6)
#endif
#if MX_GEMM_ROWS > 6
    MX_GEMM_CASE(7) MX_GEMM_CASE(8) MX_GEMM_CASE(9) MX_GEMM_CASE(10) MX_GEMM_CASE(11) MX_GEMM_CASE(12)
#endif
    }
}

/* Numbers of A that lie side by side are those of all rows (`beside`: packed ones) or all summands of a row.  Columns of B
   are packed to `panel`, such rows of A to `panel_a`, unless these are null; one of them is. */
MX_GEMM_WIDE static void G(multiply)(int rows, int wide, int beside, ptrdiff_t depth, const T *a, ptrdiff_t a_step, const T *b,
                        ptrdiff_t b_k, T *panel, T *panel_a, const G(wanted) *later, T *c, ptrdiff_t c_row, T alpha, int add)
{
    const ptrdiff_t a_row = beside ? 1 : a_step, a_k = beside ? a_step : 1;
    if (panel != NULL)
        G(rows)(rows, MX_GEMM_VECTORS, MX_PACKS_B, depth, a, a_row, a_k, b, b_k, panel, NULL, later, c, c_row, alpha, add);
    else if (panel_a != NULL)
        G(rows)(rows, MX_GEMM_VECTORS, MX_PACKS_A, depth, a, a_row, 1, b, b_k, NULL, panel_a, later, c, c_row, alpha, add);
    else if (wide && beside)
        G(rows)(rows, MX_GEMM_VECTORS, MX_PACKS_NOTHING, depth, a, 1, a_k, b, b_k, NULL, NULL, later, c, c_row, alpha, add);
    else if (wide)
        G(rows)(rows, MX_GEMM_VECTORS, MX_PACKS_NOTHING, depth, a, a_row, 1, b, b_k, NULL, NULL, later, c, c_row, alpha, add);
    else if (beside)
        G(rows)(rows, MX_GEMM_VECTORS / 2, MX_PACKS_NOTHING, depth, a, 1, a_k, b, b_k, NULL, NULL, later, c, c_row, alpha, add);
    else
        G(rows)(rows, MX_GEMM_VECTORS / 2, MX_PACKS_NOTHING, depth, a, a_row, 1, b, b_k, NULL, NULL, later, c, c_row, alpha, add);
}

/* ---- packing -------------------------------------------------------------------------------------------------------- */

#if defined(MX_SHUFFLES) && defined(MX_GEMM_BYTES)
#define MX_GEMM_SQUARE (LANES >= 8 ? 8 : 4)     /* rows and columns that are transposed in registers */

MX_INLINE void G(turn_four)(const T *x, ptrdiff_t across, T *to, ptrdiff_t width)
{
    typedef G(four) V;
    const V a = *(const V *)x, b = *(const V *)(x + across), c = *(const V *)(x + 2 * across), d = *(const V *)(x + 3 * across);
    const V ab = __builtin_shufflevector(a, b, 0, 4, 1, 5), cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
    const V ef = __builtin_shufflevector(a, b, 2, 6, 3, 7), gh = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    *(V *)to = __builtin_shufflevector(ab, cd, 0, 1, 4, 5);
    *(V *)(to + width) = __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
    *(V *)(to + 2 * width) = __builtin_shufflevector(ef, gh, 0, 1, 4, 5);
    *(V *)(to + 3 * width) = __builtin_shufflevector(ef, gh, 2, 3, 6, 7);
}

/* Numbers change places within quarters of a vector, which is cheap, then quarters between its halves. */
MX_INLINE void G(turn_eight)(const T *x, ptrdiff_t across, T *to, ptrdiff_t width)
{
    typedef G(eight) V;
    V a[8], b[8];
    MX_UNROLLED for (int i = 0; i < 8; i++) a[i] = *(const V *)(x + i * across);
    MX_UNROLLED for (int i = 0; i < 8; i += 2) {
        b[i] = __builtin_shufflevector(a[i], a[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
        b[i + 1] = __builtin_shufflevector(a[i], a[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
    }
    MX_UNROLLED for (int i = 0; i < 8; i += 4)
        MX_UNROLLED for (int j = 0; j < 2; j++) {
            a[i + 2 * j] = __builtin_shufflevector(b[i + j], b[i + j + 2], 0, 1, 8, 9, 4, 5, 12, 13);
            a[i + 2 * j + 1] = __builtin_shufflevector(b[i + j], b[i + j + 2], 2, 3, 10, 11, 6, 7, 14, 15);
        }
    MX_UNROLLED for (int i = 0; i < 4; i++) {
        *(V *)(to + i * width) = __builtin_shufflevector(a[i], a[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
        *(V *)(to + (i + 4) * width) = __builtin_shufflevector(a[i], a[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
    }
}
#endif

/* Rows that lie apart, `across` elements from one to the next, to a panel: a transpose. */
static void G(interleave)(const T *x, ptrdiff_t across, ptrdiff_t count, ptrdiff_t width, ptrdiff_t depth, T *panel)
{
    ptrdiff_t whole = 0, k = 0, turned = 0;     /* rows and summands that are transposed in squares, or before */
#if defined(MX_GEMM_SQUARE)
    whole = count - count % 4, k = depth - depth % MX_GEMM_SQUARE;
#if MX_GEMM_BYTES == 64
    if (sizeof(T) == sizeof(float))             /* a line of each row is read once, and those of the panel are written at once */
        for (; turned + 16 <= k; turned += 16)
            for (ptrdiff_t i = 0; i < whole; i += 4)
                mx_gemm_turn_long((const float *)x + i * across + turned, across, (float *)panel + turned * width + i, width);
#endif
    for (ptrdiff_t i = 0, some; i < whole; i += some) {     /* more rows at a time may exclude each other from the cache */
        some = whole - i < MX_GEMM_SQUARE ? 4 : MX_GEMM_SQUARE;
        for (ptrdiff_t p = turned; p < k; p += some) {
            const T *from = x + i * across + p;
            T *to = panel + p * width + i;
            if (some == 8) G(turn_eight)(from, across, to, width); else G(turn_four)(from, across, to, width);
        }
    }
#endif
    for (ptrdiff_t p = k; p < depth; p++)
        for (ptrdiff_t i = 0; i < whole; i++) panel[p * width + i] = x[i * across + p];
    for (ptrdiff_t i = whole; i < count; i++)
        for (ptrdiff_t p = 0; p < depth; p++) panel[p * width + i] = x[i * across + p];
}

#if defined(__AVX512F__)
/* The mask of the first lanes of a vector: all where there are more, none where there are less than one. */
static inline unsigned G(first_lanes)(ptrdiff_t count) { return count >= LANES ? (1u << LANES) - 1 : count > 0 ? (1u << count) - 1 : 0; }
#endif

/* Rows that lie side by side, of which each summand has a line of its own. */
static void G(copy_lines)(const char *from, ptrdiff_t along, ptrdiff_t count, ptrdiff_t width, ptrdiff_t depth, T *panel)
{
    if (count == WIDTH && width == WIDTH) {     /* of a constant length, that is a few vectors */
        for (ptrdiff_t k = 0; k < depth; k++, from += along)
            MX_UNROLLED for (int j = 0; j < MX_GEMM_VECTORS; j++)
                *(G(vector) *)(panel + k * WIDTH + j * LANES) = *(const G(vector) *)((const T *)from + j * LANES);
        return;
    }
#if defined(__AVX512F__)
    if (width % LANES == 0) {                   /* a last panel of B, padded at once */
        for (ptrdiff_t k = 0; k < depth; k++, from += along)
            for (ptrdiff_t i = 0; i < width; i += LANES)
                *(G(vector) *)(panel + k * width + i) =
                    MX_GEMM_LOAD((G(vector)){0}, G(first_lanes)(count - i), (const T *)from + i);
        return;
    }
#endif
    for (ptrdiff_t k = 0; k < depth; k++, from += along) {
        const T *x = (const T *)from;
        for (ptrdiff_t i = 0; i < count; i++) panel[k * width + i] = x[i];
    }
}

/* Many panels of such rows, from `begins[i]` to `begins[i + 1]`: each line is read as a whole, for the next lies far away. */
static void G(deal_lines)(const char *from, ptrdiff_t along, const ptrdiff_t *begins, ptrdiff_t count, ptrdiff_t depth, T *panels)
{
    for (ptrdiff_t k = 0; k < depth; k++, from += along) {
        for (ptrdiff_t i = 0; i < count; i++) {
            const ptrdiff_t some = begins[i + 1] - begins[i];
            const T *x = (const T *)from + begins[i];
            T *to = panels + begins[i] * depth + k * some;
            MX_PREFETCH((const char *)x + MX_GEMM_AHEAD * along, 2);
#if defined(__AVX512F__)
            for (ptrdiff_t j = 0; j < some; j += LANES)
                MX_GEMM_STORE(G(first_lanes)(some - j), to + j, MX_GEMM_LOAD((G(vector)){0}, G(first_lanes)(some - j), x + j));
#else
            for (ptrdiff_t j = 0; j < some; j++) to[j] = x[j];
#endif
        }
    }
}

/* Numbers of another type, or of no order: line by line along the shorter stride. */
static void G(convert)(const mx_matrix *x, const char *from, ptrdiff_t count, ptrdiff_t width, ptrdiff_t depth, T *panel)
{
    const mx_load load = x->load != NULL ? x->load : mx_loads[sizeof(T) == 8][sizeof(T) == 8];
    const ptrdiff_t across = x->across < 0 ? -x->across : x->across, along = x->along < 0 ? -x->along : x->along;
    T lines[WIDTH > MX_GEMM_ROWS ? WIDTH : MX_GEMM_ROWS][MX_GEMM_CHUNK];
    if (across <= along) {
        for (ptrdiff_t k = 0; k < depth; k++) load(count, from + k * x->along, x->across, panel + k * width);
        return;
    }
    for (ptrdiff_t k = 0; k < depth; k += MX_GEMM_CHUNK) {
        const ptrdiff_t chunk = depth - k < MX_GEMM_CHUNK ? depth - k : MX_GEMM_CHUNK;
        for (ptrdiff_t i = 0; i < count; i++) load(chunk, from + i * x->across + k * x->along, x->along, lines[i]);
        G(interleave)(lines[0], MX_GEMM_CHUNK, count, width, chunk, panel + k * width);
    }
}

/* Fill a panel up with columns of zeros. */
static void G(pad)(ptrdiff_t count, ptrdiff_t width, ptrdiff_t depth, T *panel)
{
    for (ptrdiff_t p = 0; p < depth && count < width; p++)
        for (ptrdiff_t i = count; i < width; i++) panel[p * width + i] = 0;
}

/* The packing function of matrices. */
static void G(pack)(const void *operand, ptrdiff_t first, ptrdiff_t count, ptrdiff_t width, ptrdiff_t k, ptrdiff_t depth,
                    void *panel)
{
    const mx_matrix *x = (const mx_matrix *)operand;
    const ptrdiff_t parted = x->split > 0 ? x->split : k + depth;
    for (ptrdiff_t p = 0, some; p < depth; p += some) {
        const ptrdiff_t part = (k + p) / parted, within = (k + p) % parted;
        const char *from = x->data + first * x->across + part * x->next + within * x->along;
        T *to = (T *)panel + p * width;
        some = parted - within < depth - p ? parted - within : depth - p;
        if (x->load == NULL && x->across == (ptrdiff_t)sizeof(T))
            G(copy_lines)(from, x->along, count, width, some, to);
        else if (x->load == NULL && x->along == (ptrdiff_t)sizeof(T) && x->across % (ptrdiff_t)sizeof(T) == 0)
            G(interleave)((const T *)from, x->across / (ptrdiff_t)sizeof(T), count, width, some, to);
        else
            G(convert)(x, from, count, width, some, to);
    }
    G(pad)(count, width, depth, (T *)panel);
}

#include "mxop_gemm_windows.h"

/* ---- what is done with sums ----------------------------------------------------------------------------------------- */

/* Whether sums are added up in C itself. */
static inline int G(in_place)(const mx_gemm *g)
{
    return g->store == NULL && g->c_split == 0 && g->c_column == (ptrdiff_t)sizeof(T) && g->c_row % (ptrdiff_t)sizeof(T) == 0
        && g->finish == NULL;
}

/* Finish a block of sums while it is in the cache: whatever is to be done to them has its place here.  Now that is to add a
   bias, and to store what is not in C already. */
static void G(deliver)(const mx_gemm *g, ptrdiff_t row, ptrdiff_t rows, ptrdiff_t column, ptrdiff_t columns, T *block,
                       ptrdiff_t stride, int stored)
{
    if (g->bias != NULL) {
        T some[WIDTH];
        for (ptrdiff_t i = 0; i < rows; i++) {
            const char *bias = g->bias + (row + i) * g->bias_row + column * g->bias_column;
            for (ptrdiff_t j = 0; j < columns; j += WIDTH, bias += WIDTH * g->bias_column) {
                const ptrdiff_t count = columns - j < WIDTH ? columns - j : WIDTH;
                T *to = block + i * stride + j;
                g->load_bias(count, bias, g->bias_column, some);
                for (ptrdiff_t k = 0; k < count; k++) to[k] += some[k];
            }
        }
    }
    if (stored) return;
    if (g->finish != NULL && g->finish(g->with, g->room, g, row, rows, column, columns, (const char *)block, stride * (ptrdiff_t)sizeof(T)))
        return;
    const mx_store store = g->store != NULL ? g->store : mx_stores[sizeof(T) == 8][sizeof(T) == 8];
    const ptrdiff_t parted = g->c_split > 0 ? g->c_split : column + columns;
    for (ptrdiff_t j = 0, some; j < columns; j += some) {
        const ptrdiff_t part = (column + j) / parted, within = (column + j) % parted;
        some = parted - within < columns - j ? parted - within : columns - j;
        for (ptrdiff_t i = 0; i < rows; i++)
            store(some, block + i * stride + j, g->c + (row + i) * g->c_row + part * g->c_next + within * g->c_column,
                  g->c_column, g->add);
    }
}

/* ---- a row times a matrix: B is read once, and not packed ------------------------------------------------------------ */

/* Sums of products of `x` and of a few columns of which the numbers lie side by side; all columns are added up alike. */
MX_INLINE void G(dots)(const int columns, ptrdiff_t depth, const T *MX_RESTRICT x, const T *MX_RESTRICT b,
                            ptrdiff_t b_column, T *MX_RESTRICT sums)
{
    enum { PARTS = 4 };
    G(vector) parts[4][PARTS];
    ptrdiff_t k = 0;
    MX_UNROLLED for (int j = 0; j < columns; j++)
        MX_UNROLLED for (int p = 0; p < PARTS; p++) parts[j][p] = (G(vector)){0};
    for (; k + PARTS * LANES <= depth; k += PARTS * LANES)
        MX_UNROLLED for (int p = 0; p < PARTS; p++) {
            const G(vector) some = *(const G(vector) *)(x + k + p * LANES);
            MX_UNROLLED for (int j = 0; j < columns; j++)
                parts[j][p] += some * *(const G(vector) *)(b + j * b_column + k + p * LANES);
        }
    for (; k + LANES <= depth; k += LANES)
        MX_UNROLLED for (int j = 0; j < columns; j++)
            parts[j][0] += *(const G(vector) *)(x + k) * *(const G(vector) *)(b + j * b_column + k);
    MX_UNROLLED for (int j = 0; j < columns; j++) {
        const G(vector) joined = (parts[j][0] + parts[j][1]) + (parts[j][2] + parts[j][3]);
        T lanes[LANES], four[4] = {0}, rest = 0;
        memcpy(lanes, &joined, sizeof lanes);
        for (int q = 0; q < LANES; q += 4)
            for (int i = 0; i < (LANES < 4 ? LANES : 4); i++) four[i] += lanes[q + i];
        for (ptrdiff_t i = k; i < depth; i++) rest += x[i] * b[j * b_column + i];
        sums[j] = ((four[0] + four[2]) + (four[1] + four[3])) + rest;
    }
}

/* The same where the numbers of all columns lie side by side. */
static void G(add_lines)(ptrdiff_t columns, ptrdiff_t depth, const T *MX_RESTRICT x, const T *MX_RESTRICT b, ptrdiff_t b_k,
                         T *MX_RESTRICT sums)
{
    enum { LINES = 8 };     /* at a time: sums are read and written for so many */
    ptrdiff_t k = 0;
    for (ptrdiff_t j = 0; j < columns; j++) sums[j] = 0;
    for (; k + LINES <= depth; k += LINES) {
        const T *MX_RESTRICT from = b + k * b_k;
        MX_IVDEP
        for (ptrdiff_t j = 0; j < columns; j++) {
            T sum = sums[j];
            MX_UNROLLED for (int i = 0; i < LINES; i++) sum += x[k + i] * from[i * b_k + j];
            sums[j] = sum;
        }
    }
    for (; k < depth; k++) {
        MX_IVDEP
        for (ptrdiff_t j = 0; j < columns; j++) sums[j] += x[k] * b[k * b_k + j];
    }
}

/* Whether a product is that of one row and a matrix of this type, of which numbers lie side by side. */
static inline int G(is_row)(const mx_gemm *g)
{
    const mx_matrix *b = (const mx_matrix *)g->b;
    const ptrdiff_t size = (ptrdiff_t)sizeof(T);
    if (g->m != 1 || g->pack_b != G(pack) || b->load != NULL || b->split > 0) return 0;
    return (b->along == size && (b->across % size == 0 || g->n == 1)) || (b->across == size && b->along % size == 0);
}

MX_GEMM_WIDE static void G(row)(const mx_gemm *g, ptrdiff_t column, ptrdiff_t columns, T *scratch)
{
    enum { SOME = MX_L1_BYTES / 2 / sizeof(T) };  /* sums that stay in the L1 cache */
    const mx_matrix *b = (const mx_matrix *)g->b;
    const ptrdiff_t size = (ptrdiff_t)sizeof(T), k = g->k;
    const int dots = b->along == size;
    const mx_matrix *a = (const mx_matrix *)g->a;
    const int plain = g->pack_a == G(pack) && a->load == NULL && a->split == 0 && a->along == size;
    const T *x = plain ? (const T *)a->data + g->k_first : scratch;
    const int direct = G(in_place)(g) && g->bias == NULL && !g->add;
    T spare[SOME];
    if (!plain) g->pack_a(g->a, 0, 1, 1, g->k_first, k, scratch);
    for (ptrdiff_t j = 0; j < columns; j += SOME) {
        const ptrdiff_t count = columns - j < SOME ? columns - j : SOME;
        const T *from = (const T *)(b->data + (column + j) * b->across + g->k_first * b->along);
        T *sums = direct ? (T *)g->c + column + j : spare;
        if (dots) {
            const ptrdiff_t step = b->across / size;
            ptrdiff_t i = 0;
            for (; i + 4 <= count; i += 4) G(dots)(4, k, x, from + i * step, step, sums + i);
            for (; i < count; i++) G(dots)(1, k, x, from + i * step, step, sums + i);
        } else {
            G(add_lines)(count, k, x, from, b->along / size, sums);
        }
        for (ptrdiff_t i = 0; i < count && g->alpha != 1; i++) sums[i] *= (T)g->alpha;
        G(deliver)(g, 0, 1, column + j, count, sums, count, direct);
    }
}

/* ---- one tile of C -------------------------------------------------------------------------------------------------- */

/* What is known of a tile before it is computed. */
typedef struct {
    ptrdiff_t row, rows, column, columns;
    ptrdiff_t parts;            /* of the sums, and the summands of the longest */
    ptrdiff_t depth;
    int a_packed, a_beside;     /* otherwise read where it lies: with rows or with summands side by side */
    int a_lying;                /* it lies with summands side by side */
    int b_packed;               /* but for a last panel, which is always padded */
    T *a, *b, *block;           /* scratch memory; block is null where sums are added up in C */
    ptrdiff_t stride;           /* of block */
} G(plan);

/* The columns of whole panels. */
static inline ptrdiff_t G(padded)(ptrdiff_t columns) { return (columns + WIDTH - 1) / WIDTH * WIDTH; }

/* Whether rows of A, or columns of B, lie side by side and are of this type. */
static inline int G(side_by_side)(mx_gemm_pack pack, const mx_matrix *x)
{
    const ptrdiff_t size = (ptrdiff_t)sizeof(T);
    return pack == G(pack) && x->load == NULL && x->split == 0 && x->across == size && x->along % size == 0;
}

static G(plan) G(planned)(const mx_gemm *g, ptrdiff_t rows, ptrdiff_t columns)
{
    const ptrdiff_t size = (ptrdiff_t)sizeof(T);
    const mx_matrix *a = (const mx_matrix *)g->a, *b = (const mx_matrix *)g->b;
    const int a_plain = g->pack_a == G(pack) && a->load == NULL && a->split == 0;
    G(plan) p = {0, rows, 0, columns, 1, g->k, 0, 0, 0, 0, NULL, NULL, NULL, 0};
    p.parts = g->k > MX_GEMM_DEPTH ? (g->k + MX_GEMM_DEPTH - 1) / MX_GEMM_DEPTH : 1;
    p.depth = (g->k + p.parts - 1) / p.parts;
    /* Rows side by side may be far apart from summand to summand: then packing pays, if many columns use what was packed. */
    p.a_beside = G(side_by_side)(g->pack_a, a)
              && (columns <= 2 * WIDTH || (a->along >= 0 && p.depth * a->along <= MX_L2_BYTES / 4));
    /* Summands side by side are read where they lie, unless so many columns use them that packing costs little, or the rows
       exclude each other from the first cache. */
    p.a_lying = a_plain && a->along == size && a->across % size == 0;
    p.a_packed = !p.a_beside && (!p.a_lying || columns >= MX_GEMM_PACKING / 2 * WIDTH
                                 || (a->across % MX_PAGE == 0 && rows > MX_L1_WAYS && columns > 2 * WIDTH));
    /* Columns side by side are read where they lie if packing them would take as long, or they stay in a cache. */
    const ptrdiff_t near = rows == g->m && columns == g->n ? MX_L1_BYTES : MX_L1_BYTES / 2;
    p.b_packed = g->packed != NULL || !(G(side_by_side)(g->pack_b, b)
                                        && (rows <= MX_GEMM_ROWS || (b->along >= 0 && g->k * b->along <= near)));
    p.stride = G(padded)(columns);
    return p;
}

static size_t G(room)(const mx_gemm *g, ptrdiff_t rows, ptrdiff_t columns)
{
    const G(plan) p = G(planned)(g, rows, columns);
    const ptrdiff_t block = rows < MX_GEMM_BLOCK ? rows : MX_GEMM_BLOCK;
    const ptrdiff_t depth = g->k < MX_GEMM_DEPTH ? g->k : MX_GEMM_DEPTH;    /* fewer summands may have longer parts */
    size_t numbers = g->packed != NULL ? 0 : (size_t)depth * (size_t)p.stride;
    if (G(is_row)(g)) return (size_t)g->k * sizeof(T) + 64;
    if (p.a_packed) numbers += (size_t)block * (size_t)depth;
    if (!G(in_place)(g)) numbers += (size_t)(p.parts > 1 ? rows : block) * (size_t)p.stride;
    return numbers * sizeof(T) + 64;
}

/* Pack some columns of B, of the tile's from `j` on: those of a panel, or the last ones. */
static void G(pack_panel)(const mx_gemm *g, const G(plan) *p, ptrdiff_t j, ptrdiff_t k, ptrdiff_t depth)
{
    const ptrdiff_t count = p->columns - j < WIDTH ? p->columns - j : WIDTH;
    g->pack_b(g->b, p->column + j, count, count <= NARROW ? NARROW : WIDTH, k, depth, p->b + j * depth);
}

/* Move sums, or add them, to some columns of C. */
static void G(copy_sums)(int rows, ptrdiff_t columns, const T *sums, T *c, ptrdiff_t c_row, int add)
{
    for (int i = 0; i < rows; i++, c += c_row, sums += WIDTH) {
#if defined(__AVX512F__)
        for (ptrdiff_t q = 0; q < columns; q += LANES) {
            const unsigned lanes = G(first_lanes)(columns - q);
            G(vector) sum = *(const G(vector) *)(sums + q);
            if (add) sum += MX_GEMM_LOAD(sum, lanes, c + q);
            MX_GEMM_STORE(lanes, c + q, sum);
        }
#else
        for (ptrdiff_t q = 0; q < columns; q++) c[q] = add ? c[q] + sums[q] : sums[q];
#endif
    }
}

/* Multiply a few rows of A by all columns of a panel of B; what the last panel has too much is left out. */
static void G(few_rows)(const mx_gemm *g, const G(plan) *p, int rows, ptrdiff_t depth, const T *a, ptrdiff_t a_step,
                        ptrdiff_t j, const T *b, ptrdiff_t b_k, T *panel, T *panel_a, const G(wanted) *later, T *c,
                        ptrdiff_t c_row, int add)
{
    const ptrdiff_t columns = p->columns - j;
    const int wide = columns > NARROW, beside = (p->a_packed || p->a_beside) && panel_a == NULL;
    T spare[MX_GEMM_ROWS * WIDTH];
    if (p->block != NULL || columns >= WIDTH || columns == NARROW) {
        G(multiply)(rows, wide, beside, depth, a, a_step, b, b_k, panel, panel_a, later, c, c_row, (T)g->alpha, add);
        return;
    }
    G(multiply)(rows, wide, beside, depth, a, a_step, b, b_k, panel, panel_a, later, spare, WIDTH, (T)g->alpha, 0);
    G(copy_sums)(rows, columns, spare, c, c_row, add);
}

/* Multiply some rows of A, `first` to `first + rows` of the tile, by the columns, which are packed for the first ones.  Rows that
   lie with summands side by side are packed while they meet the first panel, but for those with which that is packed. */
static void G(rows_of_tile)(const mx_gemm *g, const G(plan) *p, ptrdiff_t first, ptrdiff_t rows, ptrdiff_t k, ptrdiff_t depth,
                            T *c, ptrdiff_t c_row, int add)
{
    const mx_matrix *a = (const mx_matrix *)g->a, *b = (const mx_matrix *)g->b;
    const ptrdiff_t size = (ptrdiff_t)sizeof(T), count = (rows + MX_GEMM_ROWS - 1) / MX_GEMM_ROWS, row = p->row + first;
    const int a_later = p->a_packed && p->a_lying && p->columns >= WIDTH;
    const int turned = g->pack_b == G(pack) && b->load == NULL && b->split == 0 && b->along == size;
    ptrdiff_t begins[MX_GEMM_BLOCK / MX_GEMM_ROWS + 1];
    for (ptrdiff_t i = 0; i <= count; i++) begins[i] = rows * i / count;    /* as even as can be */
    if (p->a_packed && G(side_by_side)(g->pack_a, a))
        G(deal_lines)(a->data + row * size + k * a->along, a->along, begins, count, depth, p->a);
    else if (p->a_packed)
        for (ptrdiff_t i = 0; i < (a_later ? 1 : count); i++) {
            const ptrdiff_t some = begins[i + 1] - begins[i];
            g->pack_a(g->a, row + begins[i], some, some, k, depth, p->a + begins[i] * depth);
        }
    for (ptrdiff_t j = 0; j < p->columns; j += WIDTH) {
        const int whole = p->columns - j >= WIDTH, lying = whole && G(side_by_side)(g->pack_b, b);
        const int from_panel = p->b_packed || !whole, packs = from_panel && first == 0 && g->packed == NULL;
        const T *lines = lying ? (const T *)(b->data + (p->column + j) * size + k * b->along) : NULL;
        T *panel = p->b + j * depth;
        if (packs && !lying) G(pack_panel)(g, p, j, k, depth);
        for (ptrdiff_t i = 0; i < count; i++) {
            const int some = (int)(begins[i + 1] - begins[i]), on_the_way = packs && lying && i == 0;
            const int a_now = a_later && j == 0 && i > 0, a_there = p->a_packed && !a_now;
            T *panel_a = p->a + begins[i] * depth;
            const T *numbers = a_there ? panel_a : (const T *)(a->data + (row + begins[i]) * a->across + k * a->along);
            const ptrdiff_t step = a_there ? some : (p->a_beside ? a->along : a->across) / size;
            const int there = on_the_way || !from_panel;
            G(wanted) later = {NULL, b->along, 0, 0};       /* of the next panel, to each group of rows its share */
            if (packs && lying && p->columns - j >= 2 * WIDTH)
                later.at = (const char *)(lines + WIDTH) + depth * i / count * b->along;
            else if (packs && turned && p->columns - j >= 2 * WIDTH) {
                const ptrdiff_t steps = (depth + WIDTH - 1) / WIDTH;
                const char *at = b->data + (p->column + j + WIDTH + WIDTH * i / count) * b->across + k * size;
                later = (G(wanted)){at, WIDTH * size, steps, b->across - steps * WIDTH * size};
            }
            G(few_rows)(g, p, some, depth, numbers, step, j, there ? lines : panel,
                        there ? b->along / size : p->columns - j <= NARROW ? NARROW : WIDTH,
                        on_the_way ? panel : NULL, a_now ? panel_a : NULL, &later, c + begins[i] * c_row + j, c_row, add);
        }
    }
}

static void G(tile)(const mx_gemm *g, ptrdiff_t row, ptrdiff_t rows, ptrdiff_t column, ptrdiff_t columns, char *scratch)
{
    const ptrdiff_t size = (ptrdiff_t)sizeof(T), block = rows < MX_GEMM_BLOCK ? rows : MX_GEMM_BLOCK;
    const int in_place = G(in_place)(g);
    G(plan) p = G(planned)(g, rows, columns);
    if (G(is_row)(g)) {
        G(row)(g, column, columns, (T *)scratch);
        return;
    }
    p.row = row, p.column = column;
    p.b = (T *)scratch;
    p.a = p.b + (g->packed != NULL ? 0 : p.depth * p.stride);
    p.block = in_place ? NULL : p.a + (p.a_packed ? block * p.depth : 0);
    for (ptrdiff_t part = 0; part < p.parts; part++) {
        const ptrdiff_t begin = g->k * part / p.parts, depth = g->k * (part + 1) / p.parts - begin, k = g->k_first + begin;
        if (g->packed != NULL) p.b = (T *)g->packed + begin * G(padded)(g->n) + column * depth;
        for (ptrdiff_t i = 0; i < rows; i += MX_GEMM_BLOCK) {
            const ptrdiff_t some = rows - i < MX_GEMM_BLOCK ? rows - i : MX_GEMM_BLOCK;
            T *c = in_place ? (T *)(g->c + (row + i) * g->c_row + column * size) : p.block + (p.parts > 1 ? i * p.stride : 0);
            const ptrdiff_t stride = in_place ? g->c_row / size : p.stride;
            G(rows_of_tile)(g, &p, i, some, k, depth, c, stride, part > 0 || (in_place && g->add));
            if (part == p.parts - 1) G(deliver)(g, row + i, some, column, columns, c, stride, in_place);
        }
    }
}

static size_t G(kept)(const mx_gemm *g) { return (size_t)G(padded)(g->n) * (size_t)g->k * sizeof(T); }

static void G(keep)(const mx_gemm *g, void *packed)
{
    G(plan) p = G(planned)(g, g->m, g->n);
    p.b_packed = 1;
    for (ptrdiff_t part = 0; part < p.parts; part++) {
        const ptrdiff_t begin = g->k * part / p.parts, depth = g->k * (part + 1) / p.parts - begin;
        p.b = (T *)packed + begin * p.stride;
        for (ptrdiff_t j = 0; j < g->n; j += WIDTH) G(pack_panel)(g, &p, j, begin, depth);
    }
}

static void G(join)(const mx_gemm *g, ptrdiff_t count, void *parts)
{
    T *sum = (T *)parts;
    const ptrdiff_t n = g->m * g->n;
    for (ptrdiff_t p = 1; p < count; p++) {
        const T *more = sum + p * n;
        MX_IVDEP
        for (ptrdiff_t i = 0; i < n; i++) sum[i] += more[i];
    }
    G(deliver)(g, 0, g->m, 0, g->n, sum, g->n, 0);
}

#include "mxop_few_type.h"

static const mx_gemm_kernels G(kernels) = {WIDTH, 1, G(pack), G(pack_windows), G(pack_places), G(room), G(tile), G(join),
                                            G(kept), G(keep), &G(few)};

/* what it was included with, and its own */
#undef T
#undef MX_GEMM_SUFFIX
#undef MX_GEMM_BITS
#undef MX_GEMM_LOAD
#undef MX_GEMM_STORE
#undef MX_GEMM_EVEN
#undef MX_GEMM_MASKED
#undef MX_GEMM_ADD
#undef LANES
#undef WIDTH
#undef NARROW
#undef MX_GEMM_CASE
#undef MX_GEMM_SQUARE
