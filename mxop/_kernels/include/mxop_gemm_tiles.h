/* mxop_gemm_tiles.h - products of float32 by the unit of some processors that multiplies tiles of bfloat16 (Intel's AMX).

   A float has 24 bits and a bfloat16 has 8, so that x = x0 + x1 + x2 without an error, each at most 2^-9 of the one before.  Of the
   nine products of parts, six are added up,

       x y = x0 y0 + (x0 y1 + x1 y0) + (x0 y2 + x1 y1 + x2 y0),

   for what is left out is less than 2^-25 of the product: half of what float32 rounds.  The unit multiplies without an error and adds
   up in float32, so that results are as near as those of additions one after another; in a sixth of its speed it still does more than
   twice what vectors do.  Parts that are zero for a whole panel (those of float16 and bfloat16, of small integers) are left out.

   What the unit does differently from float32 is to take numbers below 2^-126 for zero, and infinity times a part that is zero is NaN.
   Panels know how large their numbers are; where these could meet one or the other, vectors multiply.

   Included by mxop_gemm_kernels.h after the products of float32, whose functions it uses. */
#ifndef MXOP_GEMM_TILES_H
#define MXOP_GEMM_TILES_H

#if defined(__AVX512F__) && defined(__x86_64__) && defined(__linux__) && (__GNUC__ >= 11 || __clang_major__ >= 12)
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
    MX_TILE_BLOCK = 192,           /* rows of A that stay in the second cache */
    MX_TILE_AHEAD = 32              /* rows of A ahead of which they are asked for */
};

/* What a panel holds: magnitudes of its numbers but zeros, as bits, and how many parts of them; none where it holds them as they are. */
typedef struct { uint32_t least, most; int parts; } mx_tile_panel;

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

/* Where a tile of a panel begins, in words. */
static inline uint32_t *mx_tiles_at(char *panel, ptrdiff_t step, int part, ptrdiff_t tile)
{
    return (uint32_t *)(panel + step * MX_TILE_PANEL + (2 * part + tile) * MX_TILE_BYTES);
}

/* Rows of which the numbers lie side by side, to a panel of A. */
static void mx_tiles_split_rows(const char *from, ptrdiff_t across, ptrdiff_t count, ptrdiff_t depth, char *panel, mx_tile_seen *seen)
{
    const ptrdiff_t padded = (count + MX_TILE - 1) / MX_TILE * MX_TILE;
    for (ptrdiff_t i = 0; i < padded; i++, from += across)
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
    if (found.least < (127u - 103) << 23 || found.most >= (127u + 126) << 23) {     /* a part would be less than 2^-126, or infinite */
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

/* The numbers of a panel, for each summand those of all rows side by side, as vectors read them: added up from their parts. */
static const float *mx_tiles_joined(const mx_tile_panel *known, const char *panel, int is_a, ptrdiff_t steps, float *to)
{
    if (known->parts == 0) return (const float *)panel;
    for (ptrdiff_t s = 0; s < steps; s++)
        for (int tile = 0; tile < 2; tile++)
            for (ptrdiff_t i = 0; i < MX_TILE; i++)
                for (ptrdiff_t j = 0; j < MX_TILE; j++) {
                    float first = 0, second = 0;
                    for (int part = MX_TILE_PARTS - 1; part >= 0; part--) {
                        const uint32_t word = mx_tiles_at((char *)panel, s, part, tile)[is_a ? j * MX_TILE + i : i * MX_TILE + j];
                        const uint32_t bits[2] = {word << 16, word & 0xffff0000u};
                        float some[2];
                        memcpy(some, bits, sizeof some);
                        first += some[0], second += some[1];
                    }
                    to[(s * MX_TILE_STEP + i) * MX_TILE_SIDE + tile * MX_TILE + j] = first;
                    to[(s * MX_TILE_STEP + i + MX_TILE) * MX_TILE_SIDE + tile * MX_TILE + j] = second;
                }
    return to;
}

/* Multiply panels of numbers as they are; sums are added up in a block of its own. */
static void mx_tiles_by_vectors(ptrdiff_t rows, ptrdiff_t depth, const float *a, const float *b, float *block, int add)
{
    const mx_gemm_wanted_f32 later = {NULL, 0, 0, 0};
    for (ptrdiff_t i = 0; i < rows; i += MX_GEMM_ROWS)
        mx_gemm_multiply_f32((int)(rows - i < MX_GEMM_ROWS ? rows - i : MX_GEMM_ROWS), 1, 1, depth, a + i, MX_TILE_SIDE, b, MX_TILE_SIDE,
                             NULL, NULL, &later, block + i * MX_TILE_SIDE, MX_TILE_SIDE, 1, add);
}

/* ---- one tile of C -------------------------------------------------------------------------------------------------- */

/* How a product is cut, and where what is packed lies. */
typedef struct {
    ptrdiff_t panels, parts, steps, most;       /* of B; of the sums; summands in steps, and those of the longest part */
    char *a, *b;
    mx_tile_panel *known;                       /* of B */
    float *joined_a, *joined_b;
    float *blocks;                              /* sums: those of a panel of A and one of B lie together */
} mx_tiles_plan;

static inline ptrdiff_t mx_tiles_up(ptrdiff_t n, ptrdiff_t unit) { return (n + unit - 1) / unit; }
static inline ptrdiff_t mx_tiles_side(ptrdiff_t left) { return left < MX_TILE_SIDE ? left : MX_TILE_SIDE; }

static mx_tiles_plan mx_tiles_planned(const mx_gemm *g, ptrdiff_t columns)
{
    mx_tiles_plan p = {mx_tiles_up(columns, MX_TILE_SIDE), mx_tiles_up(g->k, MX_TILE_DEPTH), mx_tiles_up(g->k, MX_TILE_STEP), 0, NULL,
                       NULL, NULL, NULL, NULL, NULL};
    p.most = mx_tiles_up(p.steps, p.parts);
    return p;
}

/* The bytes of packed columns, of one part or all, and of what is known of them. */
static inline size_t mx_tiles_packed(const mx_tiles_plan *p, ptrdiff_t steps) { return (size_t)(p->panels * steps) * MX_TILE_PANEL; }
static inline size_t mx_tiles_known(const mx_tiles_plan *p, ptrdiff_t parts)
{
    return (size_t)mx_tiles_up(p->panels * parts * (ptrdiff_t)sizeof(mx_tile_panel), 64) * 64;
}

/* Divide scratch memory, or count its bytes from null. */
static char *mx_tiles_share(mx_tiles_plan *p, const mx_gemm *g, ptrdiff_t rows, char *scratch)
{
    const ptrdiff_t block = rows < MX_TILE_BLOCK ? rows : MX_TILE_BLOCK;
    p->joined_a = (float *)scratch, scratch += MX_TILE_SIDE * MX_TILE_DEPTH * sizeof(float);
    p->joined_b = (float *)scratch, scratch += MX_TILE_SIDE * MX_TILE_DEPTH * sizeof(float);
    p->blocks = (float *)scratch, scratch += mx_tiles_up(rows, MX_TILE_SIDE) * p->panels * MX_TILE_SIDE * MX_TILE_SIDE * sizeof(float);
    p->a = scratch, scratch += mx_tiles_up(block, MX_TILE_SIDE) * p->most * MX_TILE_PANEL;
    if (g->packed != NULL) return scratch;
    p->b = scratch, scratch += mx_tiles_packed(p, p->most);
    p->known = (mx_tile_panel *)scratch;
    return scratch + mx_tiles_known(p, 1);
}

static size_t mx_tiles_room(const mx_gemm *g, ptrdiff_t rows, ptrdiff_t columns)
{
    mx_tiles_plan p = mx_tiles_planned(g, columns);
    p.most = MX_TILE_STEPS;         /* fewer summands may have longer parts */
    return (size_t)(mx_tiles_share(&p, g, rows, NULL) - (char *)NULL);
}

/* A part of the sums of a panel of rows of A, from `row` on, and one of B. */
typedef struct {
    const mx_gemm *g;
    const mx_tile_panel *known_a, *known_b;
    const char *a, *b;
    ptrdiff_t row, rows, column, columns, depth;
    int begins, ends;                           /* whether it is the first part, and the last */
    float *block;
} mx_tiles_pair;

/* Add up all of it in vectors, for which a panel of B is joined once. */
static void mx_tiles_by_numbers(const mx_tiles_plan *p, const mx_tiles_pair *q, mx_tile_place from, mx_tile_place to,
                                 const float **joined)
{
    const ptrdiff_t steps = mx_tiles_up(q->depth, MX_TILE_STEP);
    if (*joined == NULL) *joined = mx_tiles_joined(q->known_b, q->b, 0, steps, p->joined_b);
    for (ptrdiff_t i = 0; i < q->rows && from.at != NULL && from.at != q->block; i++)
        memcpy(q->block + i * MX_TILE_SIDE, from.at + i * from.row, (size_t)q->columns * sizeof(float));
    mx_tiles_by_vectors(q->rows, q->depth, mx_tiles_joined(q->known_a, q->a, 1, steps, p->joined_a), *joined, q->block, from.at != NULL);
    if (to.at != q->block) mx_gemm_copy_sums_f32((int)q->rows, q->columns, q->block, to.at, to.row, 0);
}

/* Add it up in the block, but begin and end in C itself where whole tiles lie there. */
static void mx_tiles_some(const mx_tiles_plan *p, const mx_tiles_pair *q, const float **joined)
{
    const mx_gemm *g = q->g;
    const int parts = q->known_a->parts > q->known_b->parts ? q->known_a->parts : q->known_b->parts;
    const int direct = mx_gemm_in_place_f32(g) && g->alpha == 1 && q->rows % MX_TILE == 0 && q->columns % MX_TILE == 0;
    const mx_tile_place c = {(float *)(g->c + q->row * g->c_row) + q->column, g->c_row / (ptrdiff_t)sizeof(float)};
    const mx_tile_place block = {q->block, MX_TILE_SIDE}, none = {NULL, 0};
    const mx_tile_place from = !q->begins ? block : direct && g->add ? c : none, to = direct && q->ends ? c : block;
    if (mx_tiles_meet(q->known_a, q->known_b))
        mx_tiles_multiply(q->rows > MX_TILE, q->columns > MX_TILE, parts, mx_tiles_up(q->depth, MX_TILE_STEP), q->a, q->b, from, to);
    else
        mx_tiles_by_numbers(p, q, from, to, joined);
    if (!q->ends) return;
    for (ptrdiff_t i = 0; i < q->rows * MX_TILE_SIDE && g->alpha != 1; i++) q->block[i] *= (float)g->alpha;
    if (direct)
        mx_gemm_deliver_f32(g, q->row, q->rows, q->column, q->columns, c.at, c.row, 1);
    else
        mx_gemm_deliver_f32(g, q->row, q->rows, q->column, q->columns, q->block, MX_TILE_SIDE, 0);
}

static void mx_tiles_tile(const mx_gemm *g, ptrdiff_t row, ptrdiff_t rows, ptrdiff_t column, ptrdiff_t columns, char *scratch)
{
    mx_tiles_plan p = mx_tiles_planned(g, columns);
    mx_tile_panel rows_known[MX_TILE_BLOCK / MX_TILE_SIDE];
    const ptrdiff_t all = mx_tiles_up(g->n, MX_TILE_SIDE);
    mx_tiles_share(&p, g, rows, scratch);
    mx_tiles_begin();
    for (ptrdiff_t part = 0; part < p.parts; part++) {
        const ptrdiff_t begin = p.steps * part / p.parts, steps = p.steps * (part + 1) / p.parts - begin, k = begin * MX_TILE_STEP;
        const ptrdiff_t depth = g->k - k < steps * MX_TILE_STEP ? g->k - k : steps * MX_TILE_STEP;
        mx_tiles_pair q = {.g = g, .depth = depth, .begins = part == 0, .ends = part == p.parts - 1};
        if (g->packed != NULL) {
            p.b = (char *)g->packed + (begin * all + column / MX_TILE_SIDE * steps) * MX_TILE_PANEL;
            p.known = (mx_tile_panel *)((char *)g->packed + p.steps * all * MX_TILE_PANEL) + part * all + column / MX_TILE_SIDE;
        }
        for (ptrdiff_t first = 0; first < rows; first += MX_TILE_BLOCK) {
            const ptrdiff_t last = rows - first < MX_TILE_BLOCK ? rows : first + MX_TILE_BLOCK;
            for (ptrdiff_t i = first; i < last; i += MX_TILE_SIDE)
                rows_known[(i - first) / MX_TILE_SIDE] =
                    mx_tiles_pack(g->pack_a, g->a, 1, row + i, mx_tiles_side(last - i), g->k_first + k, depth,
                                  p.a + (i - first) / MX_TILE_SIDE * steps * MX_TILE_PANEL, p.joined_a);
            for (ptrdiff_t j = 0; j < columns; j += MX_TILE_SIDE) {
                const float *joined = NULL;
                char *b = p.b + j / MX_TILE_SIDE * steps * MX_TILE_PANEL;
                mx_tile_panel *known = p.known + j / MX_TILE_SIDE;
                if (first == 0 && g->packed == NULL)
                    *known = mx_tiles_pack(g->pack_b, g->b, 0, column + j, mx_tiles_side(columns - j), g->k_first + k, depth, b, p.joined_b);
                q.b = b, q.known_b = known, q.column = column + j, q.columns = mx_tiles_side(columns - j);
                for (ptrdiff_t i = first; i < last; i += MX_TILE_SIDE) {
                    q.a = p.a + (i - first) / MX_TILE_SIDE * steps * MX_TILE_PANEL, q.known_a = rows_known + (i - first) / MX_TILE_SIDE;
                    q.row = row + i, q.rows = mx_tiles_side(last - i);
                    q.block = p.blocks + (first / MX_TILE_SIDE * p.panels + j / MX_TILE_SIDE * mx_tiles_up(last - first, MX_TILE_SIDE) + (i - first) / MX_TILE_SIDE) * MX_TILE_SIDE * MX_TILE_SIDE;
                    mx_tiles_some(&p, &q, &joined);
                }
            }
        }
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
    float spare[MX_TILE_SIDE * MX_TILE_DEPTH];
    mx_tile_panel *known = (mx_tile_panel *)((char *)packed + mx_tiles_packed(&p, p.steps));
    char *to = (char *)packed;
    for (ptrdiff_t part = 0; part < p.parts; part++) {
        const ptrdiff_t begin = p.steps * part / p.parts, steps = p.steps * (part + 1) / p.parts - begin, k = begin * MX_TILE_STEP;
        const ptrdiff_t depth = g->k - k < steps * MX_TILE_STEP ? g->k - k : steps * MX_TILE_STEP;
        for (ptrdiff_t j = 0; j < g->n; j += MX_TILE_SIDE, to += steps * MX_TILE_PANEL)
            *known++ = mx_tiles_pack(g->pack_b, g->b, 0, j, g->n - j < MX_TILE_SIDE ? g->n - j : MX_TILE_SIDE, k, depth, to, spare);
    }
}

static const mx_gemm_kernels mx_tiles_kernels = {MX_TILE_SIDE, MX_TILE_SIDE, mx_gemm_pack_f32, mx_gemm_pack_windows_f32,
                                                 mx_gemm_pack_places_f32, mx_tiles_room, mx_tiles_tile, mx_gemm_join_f32,
                                                 mx_tiles_kept, mx_tiles_keep, NULL};

/* These products where the processor and the system have the unit, and, if `asks`, the system has let the process use it. */
static const mx_gemm_kernels *mx_tiles_found(int asks)
{
    enum { SUPPORTED = 0x1021, REQUEST = 0x1023, TILE_DATA = 18, HAS_BFLOAT16 = 1 << 22, HAS_TILES = 1 << 24 };
    static int known;           /* after asking: 1 that it may, -1 that it may not; every thread finds the same */
    if (known == 0) {
        unsigned a, b, c, d = 0;
        unsigned long long supported = 0;
        const int there = __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & HAS_BFLOAT16) && (d & HAS_TILES)
                       && syscall(SYS_arch_prctl, SUPPORTED, &supported) == 0 && (supported >> TILE_DATA & 1);
        if (there && !asks) return &mx_tiles_kernels;
        known = there && syscall(SYS_arch_prctl, REQUEST, TILE_DATA) == 0 ? 1 : -1;
    }
    return known > 0 ? &mx_tiles_kernels : NULL;
}

#else
static const mx_gemm_kernels *mx_tiles_found(int asks) { return (void)asks, (const mx_gemm_kernels *)NULL; }
#endif
#endif
