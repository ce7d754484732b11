/* mxop_gemm_tiles.h - products of float32 by the unit of some processors that multiplies tiles of bfloat16 (Intel's AMX).

   A float has 24 bits and a bfloat16 has 8, so that x = x0 + x1 + x2 without an error, where x1 is at most 2^-8 of x, and x2 2^-17.
   Of the nine products of parts, six are added up,

       x y = x0 y0 + (x0 y1 + x1 y0) + (x0 y2 + x1 y1 + x2 y0),

   for what is left out is at most about 2^-24 of the product, what a float is rounded by, and mostly far less.  The unit multiplies
   without an error and adds up in float32, with fewer roundings than additions one after another; in a sixth of its speed it still
   does twice what vectors do.  Parts that are zero for a whole panel (those of float16 and bfloat16, of small integers) are left out.

   What the unit does differently from float32 is to take numbers below 2^-126 for zero, and infinity times a part that is zero is NaN.
   Panels know how large their numbers are; where these could meet one or the other, vectors multiply.  Panels begin at multiples of
   their width, so that threads do not change what is multiplied how.

   Included by mxop_gemm_kernels.h after the products of float32, whose functions it uses. */
#ifndef MXOP_GEMM_TILES_H
#define MXOP_GEMM_TILES_H

#if defined(__AVX512F__) && defined(__x86_64__) && defined(__linux__) && __GNUC__ >= 11 && !defined(__clang__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    MX_TILE = 16,                   /* rows and columns of a tile of sums */
    MX_TILE_STEP = 32,              /* summands of a tile of factors: pairs of them, the first half with the second */
    MX_TILE_SIDE = 2 * MX_TILE,     /* rows of A, or columns of B, of a panel */
    MX_TILE_BYTES = 1024,
    MX_TILE_PARTS = 3,
    MX_TILE_PANEL = 2 * MX_TILE_PARTS * MX_TILE_BYTES,      /* of one step of a panel: for each part, two tiles */
    MX_TILE_STEPS = 2,              /* of the sums between which they are added to C: what was packed is near when it is read */
    MX_TILE_DEPTH = MX_TILE_STEPS * MX_TILE_STEP,
    MX_TILE_STRETCH = 16,           /* parts of the sums that are added up one after another: each addition rounds */
    MX_TILE_BLOCK = 192,            /* rows of A that stay in the second cache */
    MX_TILE_AHEAD = 32              /* rows of A ahead of which they are asked for */
};

/* What a panel holds: magnitudes of its numbers but zeros, as bits, and how many parts of them; none where it holds them as they are. */
typedef struct { uint32_t least, most; int parts; } mx_tile_panel;

static inline ptrdiff_t mx_tiles_up(ptrdiff_t n, ptrdiff_t unit) { return (n + unit - 1) / unit; }

/* ---- the unit ------------------------------------------------------------------------------------------------------- */

#define MX_TILE_LOAD(t, from, stride) \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #t : : "r"(from), "r"((ptrdiff_t)(stride)) : "memory")
#define MX_TILE_STORE(t, to, stride) \
    __asm__ volatile("tilestored %%tmm" #t ", (%0,%1,1)" : : "r"(to), "r"((ptrdiff_t)(stride)) : "memory")
#define MX_TILE_ZERO(t) __asm__ volatile("tilezero %%tmm" #t : :)
#define MX_TILE_ADD(sums, a, b) __asm__ volatile("tdpbf16ps %%tmm" #b ", %%tmm" #a ", %%tmm" #sums : :)

/* All eight tiles have sixteen rows of 64 bytes. */
static void mx_tiles_begin(void)
{
    struct { unsigned char palette, start, unused[14]; uint16_t bytes[16]; unsigned char rows[16]; } shape = {.palette = 1};
    for (int t = 0; t < 8; t++) shape.bytes[t] = 64, shape.rows[t] = MX_TILE;
    __asm__ volatile("ldtilecfg %0" : : "m"(shape));
}

static void mx_tiles_end(void) { __asm__ volatile("tilerelease" : :); }

#define MX_TILE_A(part) \
    do { \
        MX_TILE_LOAD(4, a + 2 * (part) * MX_TILE_BYTES, 64); \
        if (tall) MX_TILE_LOAD(5, a + (2 * (part) + 1) * MX_TILE_BYTES, 64); \
    } while (0)
#define MX_TILE_B(part) \
    do { \
        MX_TILE_LOAD(6, b + 2 * (part) * MX_TILE_BYTES, 64); \
        if (wide) MX_TILE_LOAD(7, b + (2 * (part) + 1) * MX_TILE_BYTES, 64); \
    } while (0)
#define MX_TILE_SUMS \
    do { \
        MX_TILE_ADD(0, 4, 6); \
        if (wide) MX_TILE_ADD(1, 4, 7); \
        if (tall) MX_TILE_ADD(2, 5, 6); \
        if (tall && wide) MX_TILE_ADD(3, 5, 7); \
    } while (0)

/* Where sums come from, or go to, and how far it is from row to row. */
typedef struct { float *at; ptrdiff_t row; } mx_tile_place;

/* Multiply a panel of A by one of B: one or two tiles of rows and of columns, small parts first. */
MX_INLINE void mx_tiles_sums(const int tall, const int wide, const int parts, ptrdiff_t steps, const char *a, const char *b,
                             mx_tile_place from, mx_tile_place to)
{
    const ptrdiff_t in = from.row * (ptrdiff_t)sizeof(float), out = to.row * (ptrdiff_t)sizeof(float);
    if (from.at != NULL) {
        MX_TILE_LOAD(0, from.at, in);
        if (wide) MX_TILE_LOAD(1, from.at + MX_TILE, in);
        if (tall) MX_TILE_LOAD(2, from.at + MX_TILE * from.row, in);
        if (tall && wide) MX_TILE_LOAD(3, from.at + MX_TILE * from.row + MX_TILE, in);
    } else {
        MX_TILE_ZERO(0);
        MX_TILE_ZERO(1);
        MX_TILE_ZERO(2);
        MX_TILE_ZERO(3);
    }
    for (ptrdiff_t s = 0; s < steps; s++, a += MX_TILE_PANEL, b += MX_TILE_PANEL) {
        MX_TILE_B(0);
        if (parts >= 3) {
            MX_TILE_A(2);
            MX_TILE_SUMS;
        }
        if (parts >= 2) {
            MX_TILE_A(1);
            MX_TILE_SUMS;
            MX_TILE_B(1);
            MX_TILE_SUMS;
            MX_TILE_A(0);
            MX_TILE_SUMS;
        }
        if (parts >= 3) {
            MX_TILE_B(2);
            MX_TILE_SUMS;
        }
        if (parts >= 2) MX_TILE_B(0); else MX_TILE_A(0);
        MX_TILE_SUMS;
    }
    MX_TILE_STORE(0, to.at, out);
    if (wide) MX_TILE_STORE(1, to.at + MX_TILE, out);
    if (tall) MX_TILE_STORE(2, to.at + MX_TILE * to.row, out);
    if (tall && wide) MX_TILE_STORE(3, to.at + MX_TILE * to.row + MX_TILE, out);
}

#define MX_TILE_CASE(tall, wide, parts) \
    case 8 * (tall) + 4 * (wide) + (parts): \
        mx_tiles_sums(tall, wide, parts, steps, a, b, from, to); \
        break;
#define MX_TILE_CASES(parts) MX_TILE_CASE(0, 0, parts) MX_TILE_CASE(0, 1, parts) MX_TILE_CASE(1, 0, parts) MX_TILE_CASE(1, 1, parts)
static void mx_tiles_multiply(int tall, int wide, int parts, ptrdiff_t steps, const char *a, const char *b, mx_tile_place from,
                              mx_tile_place to)
{
    switch (8 * tall + 4 * wide + parts) { MX_TILE_CASES(1) MX_TILE_CASES(2) MX_TILE_CASES(3) }
}

/* ---- packing -------------------------------------------------------------------------------------------------------- */

/* What is seen of numbers while they are split: magnitudes, less one for the least ones so that zero is large, and any bits of parts. */
typedef struct { __m512i least, most, middle, low; } mx_tile_seen;

/* Split numbers into parts, which become words: a part of a number of the first vector, and of one of the second. */
MX_INLINE void mx_tiles_split(__m512 first, __m512 second, __m512i *words, mx_tile_seen *seen)
{
    const __m512i half = _mm512_set1_epi32(0x8000), upper = _mm512_set1_epi32((int)0xffff0000);
    __m512 rest[2] = {first, second};
    __m512i bits[2];
    MX_UNROLLED for (int i = 0; i < 2; i++) {
        const __m512i size = _mm512_and_si512(_mm512_castps_si512(rest[i]), _mm512_set1_epi32(0x7fffffff));
        seen->most = _mm512_max_epu32(seen->most, size);
        seen->least = _mm512_min_epu32(seen->least, _mm512_sub_epi32(size, _mm512_set1_epi32(1)));
    }
    MX_UNROLLED for (int part = 0; part < MX_TILE_PARTS; part++) {
        MX_UNROLLED for (int i = 0; i < 2; i++) {
            bits[i] = _mm512_castps_si512(rest[i]);         /* of the last part: not more than 8 of them */
            if (part < MX_TILE_PARTS - 1) {
                bits[i] = _mm512_and_si512(_mm512_add_epi32(bits[i], half), upper);
                rest[i] = _mm512_sub_ps(rest[i], _mm512_castsi512_ps(bits[i]));
            }
        }
        words[part] = _mm512_or_si512(_mm512_srli_epi32(bits[0], 16), bits[1]);
    }
    seen->middle = _mm512_or_si512(seen->middle, words[1]);
    seen->low = _mm512_or_si512(seen->low, words[2]);
}

/* Whether a part of a number would be less than 2^-126, or infinite.  Where one was, splitting stops: what is so small takes long. */
enum { MX_TILE_LEAST = (127 - 103) << 23, MX_TILE_MOST = (127 + 126) << 23 };
MX_INLINE int mx_tiles_too_small(const mx_tile_seen *seen)
{
    return _mm512_cmplt_epu32_mask(seen->least, _mm512_set1_epi32(MX_TILE_LEAST)) != 0;
}

/* Where a tile of a panel begins, in words. */
static inline uint32_t *mx_tiles_at(char *panel, ptrdiff_t step, int part, ptrdiff_t tile)
{
    return (uint32_t *)(panel + step * MX_TILE_PANEL + (2 * part + tile) * MX_TILE_BYTES);
}

/* Rows of which the numbers lie side by side, to a panel of A. */
static void mx_tiles_split_rows(const char *from, ptrdiff_t across, ptrdiff_t count, ptrdiff_t depth, char *panel, mx_tile_seen *seen)
{
    const ptrdiff_t padded = mx_tiles_up(count, MX_TILE) * MX_TILE;
    for (ptrdiff_t i = 0; i < padded; i++, from += across) {
        for (ptrdiff_t k = 0; k < depth; k += MX_TILE_STEP) {
            const ptrdiff_t left = i < count ? depth - k : 0;
            const float *x = (const float *)from + k;
            __m512 first, second;
            __m512i words[MX_TILE_PARTS];
            if (left >= MX_TILE_STEP) {
                first = _mm512_loadu_ps(x), second = _mm512_loadu_ps(x + MX_TILE);
            } else {
                first = _mm512_maskz_loadu_ps((__mmask16)mx_gemm_first_lanes_f32(left), x);
                second = _mm512_maskz_loadu_ps((__mmask16)mx_gemm_first_lanes_f32(left - MX_TILE), x + MX_TILE);
            }
            MX_ASK((const char *)x + MX_TILE_AHEAD * across, 2);
            MX_ASK((const char *)x + MX_TILE_AHEAD * across + 64, 2);
            mx_tiles_split(first, second, words, seen);
            MX_UNROLLED for (int part = 0; part < MX_TILE_PARTS; part++)
                _mm512_store_si512(mx_tiles_at(panel, k / MX_TILE_STEP, part, i / MX_TILE) + i % MX_TILE * MX_TILE, words[part]);
        }
        if (i % 4 == 3 && mx_tiles_too_small(seen)) return;
    }
}

/* Numbers of one summand side by side, to a panel of B; to one of A if they are `turned`. */
static void mx_tiles_split_lines(const char *from, ptrdiff_t along, ptrdiff_t count, ptrdiff_t depth, int turned, int asks,
                                 char *panel, mx_tile_seen *seen)
{
    uint32_t spare[MX_TILE_PARTS][MX_TILE * MX_TILE] __attribute__((aligned(64)));
    for (ptrdiff_t k = 0; k < depth; k += MX_TILE_STEP)
        for (ptrdiff_t j = 0; j < count; j += MX_TILE) {
            const __mmask16 lanes = (__mmask16)mx_gemm_first_lanes_f32(count - j);
            uint32_t *to[MX_TILE_PARTS];
            for (int part = 0; part < MX_TILE_PARTS; part++)
                to[part] = turned ? spare[part] : mx_tiles_at(panel, k / MX_TILE_STEP, part, j / MX_TILE);
            for (ptrdiff_t i = 0; i < MX_TILE; i++) {
                const float *x = (const float *)(from + (k + i) * along) + j;
                const float *y = (const float *)(from + (k + i + MX_TILE) * along) + j;
                __m512i words[MX_TILE_PARTS];
                if (asks) {
                    MX_ASK((const char *)x + MX_TILE_SIDE * sizeof(float), 2);      /* of the next panel */
                    MX_ASK((const char *)y + MX_TILE_SIDE * sizeof(float), 2);
                }
                mx_tiles_split(_mm512_maskz_loadu_ps(k + i < depth ? lanes : 0, x),
                               _mm512_maskz_loadu_ps(k + i + MX_TILE < depth ? lanes : 0, y), words, seen);
                MX_UNROLLED for (int part = 0; part < MX_TILE_PARTS; part++) _mm512_store_si512(to[part] + i * MX_TILE, words[part]);
            }
            for (int part = 0; part < MX_TILE_PARTS && turned; part++)
                for (ptrdiff_t i = 0; i < MX_TILE; i += 4)
                    mx_gemm_turn_long((const float *)spare[part] + i * MX_TILE, MX_TILE,
                                      (float *)mx_tiles_at(panel, k / MX_TILE_STEP, part, j / MX_TILE) + i, MX_TILE);
            if (mx_tiles_too_small(seen)) return;
        }
}

/* Pack rows of A, or columns of B, whichever function reads them: split, or as they are where parts could not hold them. */
static mx_tile_panel mx_tiles_pack(mx_gemm_pack pack, const void *operand, int is_a, ptrdiff_t first, ptrdiff_t count, ptrdiff_t k,
                                   ptrdiff_t depth, char *panel, float *spare)
{
    const mx_matrix *x = (const mx_matrix *)operand;
    const int plain = pack == mx_gemm_pack_f32 && x->load == NULL && x->split == 0;
    mx_tile_seen seen = {_mm512_set1_epi32(-1), _mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512()};
    mx_tile_panel found;
    if (plain && is_a && x->along == (ptrdiff_t)sizeof(float)) {
        mx_tiles_split_rows(x->data + first * x->across + k * x->along, x->across, count, depth, panel, &seen);
    } else if (plain && x->across == (ptrdiff_t)sizeof(float)) {
        mx_tiles_split_lines(x->data + first * x->across + k * x->along, x->along, count, depth, is_a, 1, panel, &seen);
    } else {
        pack(operand, first, count, MX_TILE_SIDE, k, depth, spare);
        mx_tiles_split_lines((const char *)spare, MX_TILE_SIDE * sizeof(float), count, depth, is_a, 0, panel, &seen);
    }
    found.least = _mm512_reduce_min_epu32(seen.least), found.most = _mm512_reduce_max_epu32(seen.most);
    found.parts = _mm512_test_epi32_mask(seen.low, seen.low) ? 3 : _mm512_test_epi32_mask(seen.middle, seen.middle) ? 2 : 1;
    if (found.least < MX_TILE_LEAST || found.most >= MX_TILE_MOST) {
        found.parts = 0;
        pack(operand, first, count, MX_TILE_SIDE, k, depth, panel);
    }
    return found;
}

/* ---- where vectors multiply ----------------------------------------------------------------------------------------- */

/* Whether no product of parts of two panels, nor a sum of some, is less than 2^-126 or infinite. */
static inline int mx_tiles_meet(const mx_tile_panel *a, const mx_tile_panel *b)
{
    const int least = (int)(a->least >> 23) + (int)(b->least >> 23), most = (int)(a->most >> 23) + (int)(b->most >> 23);
    return a->parts > 0 && b->parts > 0 && least >= 2 * 127 - 96 && most <= 2 * 127 + 96;
}

/* Add up the parts of sixteen words: numbers `step` apart, first the lower halves and then the upper ones. */
MX_INLINE void mx_tiles_join(const uint32_t *words, float *to, ptrdiff_t step)
{
    __m512 first = _mm512_setzero_ps(), second = _mm512_setzero_ps();
    MX_UNROLLED for (int part = MX_TILE_PARTS - 1; part >= 0; part--) {
        const __m512i some = _mm512_load_si512(words + part * 2 * MX_TILE_BYTES / (int)sizeof(uint32_t));
        first = _mm512_add_ps(first, _mm512_castsi512_ps(_mm512_slli_epi32(some, 16)));
        second = _mm512_add_ps(second, _mm512_castsi512_ps(_mm512_and_si512(some, _mm512_set1_epi32((int)0xffff0000))));
    }
    _mm512_storeu_ps(to, first);
    _mm512_storeu_ps(to + step, second);
}

/* The numbers of a panel of B, for each summand those of all columns side by side. */
static const float *mx_tiles_joined_b(const mx_tile_panel *known, char *panel, ptrdiff_t steps, float *to)
{
    if (known->parts == 0) return (const float *)panel;
    for (ptrdiff_t s = 0; s < steps; s++)
        for (ptrdiff_t i = 0; i < MX_TILE; i++)
            for (ptrdiff_t tile = 0; tile < 2; tile++)
                mx_tiles_join(mx_tiles_at(panel, s, 0, tile) + i * MX_TILE, to + (s * MX_TILE_STEP + i) * MX_TILE_SIDE + tile * MX_TILE,
                              MX_TILE * MX_TILE_SIDE);
    return to;
}

/* The numbers of some rows of a panel of A, for each row those of all summands side by side. */
static void mx_tiles_joined_a(char *panel, ptrdiff_t rows, ptrdiff_t steps, float *to)
{
    for (ptrdiff_t i = 0; i < rows; i++)
        for (ptrdiff_t s = 0; s < steps; s++)
            mx_tiles_join(mx_tiles_at(panel, s, 0, i / MX_TILE) + i % MX_TILE * MX_TILE, to + i * MX_TILE_DEPTH + s * MX_TILE_STEP,
                          MX_TILE);
}

/* ---- one tile of C -------------------------------------------------------------------------------------------------- */

/* How a product is cut, and where what is packed lies. */
typedef struct {
    ptrdiff_t panels, parts, steps, most;       /* of B; of the sums; summands in steps, and those of the longest part */
    char *a, *b;
    mx_tile_panel *known;                       /* of B */
    float *joined_a, *joined_b;
    float *blocks, *totals;                     /* of stretches: those of a panel of A and one of B lie together */
    char *small;                                /* for each of these, whether its sums may be less than 2^-126 */
} mx_tiles_plan;

/* A part of the sums: whether it is the first, or the last, of a stretch of parts, and the last of all. */
typedef struct { ptrdiff_t begin, steps, k, depth, stretch; int begins, ends, last; } mx_tiles_part;

static inline ptrdiff_t mx_tiles_side(ptrdiff_t left) { return left < MX_TILE_SIDE ? left : MX_TILE_SIDE; }

static mx_tiles_plan mx_tiles_planned(const mx_gemm *g, ptrdiff_t columns)
{
    mx_tiles_plan p = {mx_tiles_up(columns, MX_TILE_SIDE), mx_tiles_up(g->k, MX_TILE_DEPTH), mx_tiles_up(g->k, MX_TILE_STEP), 0, NULL,
                       NULL, NULL, NULL, NULL, NULL, NULL, NULL};
    p.most = mx_tiles_up(p.steps, p.parts);
    return p;
}

static mx_tiles_part mx_tiles_cut(const mx_gemm *g, const mx_tiles_plan *p, ptrdiff_t part)
{
    const ptrdiff_t begin = p->steps * part / p->parts, end = p->steps * (part + 1) / p->parts;
    const ptrdiff_t stop = end * MX_TILE_STEP < g->k ? end * MX_TILE_STEP : g->k;
    const int last = part == p->parts - 1;
    return (mx_tiles_part){begin, end - begin, g->k_first + begin * MX_TILE_STEP, stop - begin * MX_TILE_STEP, part / MX_TILE_STRETCH,
                           part % MX_TILE_STRETCH == 0, last || (part + 1) % MX_TILE_STRETCH == 0, last};
}

/* The bytes of packed columns, of one part or all, and of what is known of them. */
static inline size_t mx_tiles_packed(const mx_tiles_plan *p, ptrdiff_t steps) { return (size_t)(p->panels * steps) * MX_TILE_PANEL; }
static inline size_t mx_tiles_known(const mx_tiles_plan *p, ptrdiff_t parts)
{
    return (size_t)mx_tiles_up(p->panels * parts * (ptrdiff_t)sizeof(mx_tile_panel), 64) * 64;
}

static inline char *mx_tiles_take(char *scratch, size_t *taken, size_t bytes)
{
    char *at = scratch == NULL ? NULL : scratch + *taken;
    *taken += bytes;
    return at;
}

/* Divide scratch memory, if there is some yet; return its bytes. */
static size_t mx_tiles_share(mx_tiles_plan *p, const mx_gemm *g, ptrdiff_t rows, char *scratch)
{
    enum { JOINED = MX_TILE_SIDE * MX_TILE_DEPTH * sizeof(float), BLOCK = MX_TILE_SIDE * MX_TILE_SIDE * sizeof(float) };
    const ptrdiff_t some = mx_tiles_up(rows < MX_TILE_BLOCK ? rows : MX_TILE_BLOCK, MX_TILE_SIDE);
    size_t taken = 0;
    p->joined_a = (float *)mx_tiles_take(scratch, &taken, JOINED);
    p->joined_b = (float *)mx_tiles_take(scratch, &taken, JOINED);
    p->blocks = (float *)mx_tiles_take(scratch, &taken, (size_t)(mx_tiles_up(rows, MX_TILE_SIDE) * p->panels) * BLOCK);
    p->totals = (float *)mx_tiles_take(scratch, &taken, (size_t)(mx_tiles_up(rows, MX_TILE_SIDE) * p->panels) * BLOCK);
    p->small = mx_tiles_take(scratch, &taken, (size_t)mx_tiles_up(mx_tiles_up(rows, MX_TILE_SIDE) * p->panels, 64) * 64);
    p->a = mx_tiles_take(scratch, &taken, (size_t)(some * p->most) * MX_TILE_PANEL);
    if (g->packed != NULL) return taken;
    p->b = mx_tiles_take(scratch, &taken, mx_tiles_packed(p, p->most));
    p->known = (mx_tile_panel *)mx_tiles_take(scratch, &taken, mx_tiles_known(p, 1));
    return taken;
}

static size_t mx_tiles_room(const mx_gemm *g, ptrdiff_t rows, ptrdiff_t columns)
{
    mx_tiles_plan p = mx_tiles_planned(g, columns);
    p.most = MX_TILE_STEPS;         /* fewer summands may have longer parts */
    return mx_tiles_share(&p, g, rows, NULL);
}

/* A panel of rows of A, from `row` on, and one of columns of B. */
typedef struct {
    ptrdiff_t row, rows, column, columns;
    char *a, *b;
    const mx_tile_panel *known_a, *known_b;
    float *block, *total;                       /* for the sums of a stretch, and of those before */
    char *small;
    const float *joined;                        /* the numbers of B, when they were needed, or null */
} mx_tiles_pair;

/* Add up a part in vectors, in the block. */
static void mx_tiles_by_vectors(const mx_tiles_plan *p, const mx_tiles_part *part, mx_tiles_pair *q, mx_tile_place to)
{
    const mx_gemm_wanted_f32 later = {NULL, 0, 0, 0};
    const int beside = q->known_a->parts == 0;  /* numbers of all rows: as they were packed */
    const ptrdiff_t a_row = beside ? 1 : MX_TILE_DEPTH, a_step = beside ? MX_TILE_SIDE : MX_TILE_DEPTH;
    const float *a = beside ? (const float *)q->a : p->joined_a;
    if (!beside) mx_tiles_joined_a(q->a, q->rows, part->steps, p->joined_a);
    if (q->joined == NULL) q->joined = mx_tiles_joined_b(q->known_b, q->b, part->steps, p->joined_b);
    for (ptrdiff_t i = 0; i < q->rows; i += MX_GEMM_ROWS)
        mx_gemm_multiply_f32((int)(q->rows - i < MX_GEMM_ROWS ? q->rows - i : MX_GEMM_ROWS), 1, beside, part->depth, a + i * a_row, a_step,
                             q->joined, MX_TILE_SIDE, NULL, NULL, &later, q->block + i * MX_TILE_SIDE, MX_TILE_SIDE, 1, !part->begins);
    if (to.at != q->block) mx_gemm_copy_sums_f32((int)q->rows, q->columns, q->block, to.at, to.row, 0);
}

/* Add the sums of a stretch to those before. */
static void mx_tiles_add_stretch(const mx_tiles_pair *q, mx_tile_place to)
{
    const ptrdiff_t columns = mx_tiles_up(q->columns, MX_TILE) * MX_TILE;
    for (ptrdiff_t i = 0; i < q->rows; i++)
        for (ptrdiff_t j = 0; j < columns; j += MX_TILE)
            _mm512_storeu_ps(to.at + i * to.row + j, _mm512_add_ps(_mm512_load_ps(q->total + i * MX_TILE_SIDE + j),
                                                                   _mm512_load_ps(q->block + i * MX_TILE_SIDE + j)));
}

/* Add up a part in the block, and stretches of parts in the total; end in C itself where whole tiles lie there.  What vectors begin
   they go on with: the unit would take sums that are as small as theirs may be for zero. */
static void mx_tiles_add(const mx_gemm *g, const mx_tiles_plan *p, const mx_tiles_part *part, mx_tiles_pair *q)
{
    const int parts = q->known_a->parts > q->known_b->parts ? q->known_a->parts : q->known_b->parts;
    const int direct = mx_gemm_in_place_f32(g) && !g->add && g->alpha == 1 && q->rows % MX_TILE == 0 && q->columns % MX_TILE == 0;
    const mx_tile_place c = {(float *)(g->c + q->row * g->c_row) + q->column, g->c_row / (ptrdiff_t)sizeof(float)};
    const mx_tile_place block = {q->block, MX_TILE_SIDE}, total = {q->total, MX_TILE_SIDE}, none = {NULL, 0};
    const mx_tile_place from = part->begins ? none : block, result = direct && part->last ? c : total;
    const mx_tile_place to = part->ends && part->stretch == 0 ? result : block;
    *q->small = !mx_tiles_meet(q->known_a, q->known_b) || (!part->begins && *q->small);
    if (!*q->small)
        mx_tiles_multiply(q->rows > MX_TILE, q->columns > MX_TILE, parts, part->steps, q->a, q->b, from, to);
    else
        mx_tiles_by_vectors(p, part, q, to);
    if (part->ends && part->stretch > 0) mx_tiles_add_stretch(q, result);
    if (!part->last) return;
    for (ptrdiff_t i = 0; i < q->rows * MX_TILE_SIDE && g->alpha != 1; i++) q->total[i] *= (float)g->alpha;
    mx_gemm_deliver_f32(g, q->row, q->rows, q->column, q->columns, result.at, result.row, direct);
}

/* Multiply a block of rows by all columns of a tile, which are packed for the first one. */
static void mx_tiles_rows(const mx_gemm *g, const mx_tiles_plan *p, const mx_tiles_part *part, ptrdiff_t row, ptrdiff_t rows,
                          ptrdiff_t column, ptrdiff_t columns, int packs, ptrdiff_t block)
{
    const ptrdiff_t panel = part->steps * MX_TILE_PANEL, count = mx_tiles_up(rows, MX_TILE_SIDE);
    mx_tile_panel known[MX_TILE_BLOCK / MX_TILE_SIDE];
    for (ptrdiff_t i = 0; i < count; i++)
        known[i] = mx_tiles_pack(g->pack_a, g->a, 1, row + i * MX_TILE_SIDE, mx_tiles_side(rows - i * MX_TILE_SIDE), part->k, part->depth,
                                 p->a + i * panel, p->joined_a);
    for (ptrdiff_t j = 0; j < p->panels; j++) {
        mx_tiles_pair q = {.column = column + j * MX_TILE_SIDE, .columns = mx_tiles_side(columns - j * MX_TILE_SIDE),
                           .b = p->b + j * panel, .known_b = p->known + j};
        if (packs) p->known[j] = mx_tiles_pack(g->pack_b, g->b, 0, q.column, q.columns, part->k, part->depth, q.b, p->joined_b);
        for (ptrdiff_t i = 0; i < count; i++, block += MX_TILE_SIDE * MX_TILE_SIDE) {
            q.row = row + i * MX_TILE_SIDE, q.rows = mx_tiles_side(rows - i * MX_TILE_SIDE);
            q.a = p->a + i * panel, q.known_a = known + i, q.block = p->blocks + block, q.total = p->totals + block;
            q.small = p->small + block / (MX_TILE_SIDE * MX_TILE_SIDE);
            mx_tiles_add(g, p, part, &q);
        }
    }
}

static void mx_tiles_tile(const mx_gemm *g, ptrdiff_t row, ptrdiff_t rows, ptrdiff_t column, ptrdiff_t columns, char *scratch)
{
    mx_tiles_plan p = mx_tiles_planned(g, columns);
    const ptrdiff_t all = mx_tiles_up(g->n, MX_TILE_SIDE), before = column / MX_TILE_SIDE;
    mx_tiles_share(&p, g, rows, scratch);
    mx_tiles_begin();
    for (ptrdiff_t k = 0; k < p.parts; k++) {
        const mx_tiles_part part = mx_tiles_cut(g, &p, k);
        if (g->packed != NULL) {
            p.b = (char *)g->packed + (part.begin * all + before * part.steps) * MX_TILE_PANEL;
            p.known = (mx_tile_panel *)((char *)g->packed + p.steps * all * MX_TILE_PANEL) + k * all + before;
        }
        for (ptrdiff_t i = 0; i < rows; i += MX_TILE_BLOCK)
            mx_tiles_rows(g, &p, &part, row + i, rows - i < MX_TILE_BLOCK ? rows - i : MX_TILE_BLOCK, column, columns,
                          i == 0 && g->packed == NULL, i * p.panels * MX_TILE_SIDE);
    }
    mx_tiles_end();
}

static size_t mx_tiles_kept(const mx_gemm *g)
{
    const mx_tiles_plan p = mx_tiles_planned(g, g->n);
    return mx_tiles_packed(&p, p.steps) + mx_tiles_known(&p, p.parts);
}

static void mx_tiles_keep(const mx_gemm *g, void *packed)
{
    const mx_tiles_plan p = mx_tiles_planned(g, g->n);
    char *to = (char *)packed;
    mx_tile_panel *known = (mx_tile_panel *)(to + mx_tiles_packed(&p, p.steps));
    float spare[MX_TILE_SIDE * MX_TILE_DEPTH];
    for (ptrdiff_t k = 0; k < p.parts; k++) {
        const mx_tiles_part part = mx_tiles_cut(g, &p, k);
        for (ptrdiff_t j = 0; j < g->n; j += MX_TILE_SIDE, to += part.steps * MX_TILE_PANEL)
            *known++ = mx_tiles_pack(g->pack_b, g->b, 0, j, mx_tiles_side(g->n - j), part.k, part.depth, to, spare);
    }
}

static const mx_gemm_kernels mx_tiles_kernels = {MX_TILE_SIDE, MX_TILE_SIDE, mx_gemm_pack_f32, mx_gemm_pack_windows_f32,
                                                 mx_gemm_pack_places_f32, mx_tiles_room, mx_tiles_tile, mx_gemm_join_f32,
                                                 mx_tiles_kept, mx_tiles_keep, NULL};

/* These products where the processor and the system have the unit, and, if `asks`, the system has let the process use it. */
static const mx_gemm_kernels *mx_tiles_found(int asks)
{
    enum { SUPPORTED = 0x1021, REQUEST = 0x1023, TILE_DATA = 18, HAS_BFLOAT16 = 1 << 22, HAS_TILES = 1 << 24 };
    static int answer;          /* after asking: 1 that it may, -1 that it may not; every thread finds the same */
    int known = __atomic_load_n(&answer, __ATOMIC_RELAXED);
    if (known == 0) {
        unsigned a, b, c, d = 0;
        unsigned long long supported = 0;
        const int there = __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & HAS_BFLOAT16) && (d & HAS_TILES)
                       && syscall(SYS_arch_prctl, SUPPORTED, &supported) == 0 && (supported >> TILE_DATA & 1);
        if (there && !asks) return &mx_tiles_kernels;
        known = there && syscall(SYS_arch_prctl, REQUEST, TILE_DATA) == 0 ? 1 : -1;
        __atomic_store_n(&answer, known, __ATOMIC_RELAXED);
    }
    return known > 0 ? &mx_tiles_kernels : NULL;
}

#else
static const mx_gemm_kernels *mx_tiles_found(int asks) { return (void)asks, (const mx_gemm_kernels *)NULL; }
#endif
#endif
