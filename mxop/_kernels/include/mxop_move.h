/* mxop_move.h - copies of elements between places that strides describe; one build per instruction set.

   Elements are bytes here: 1, 2, 4, 8 or 16 of them.  Where an axis is next to itself in both places, they go row by row.
   Where neighbours of the target are far apart in the source, they go by blocks, each a cache line wide and high: a line is
   read once and written once, and the block is transposed in vector registers. */
#ifndef MXOP_MOVE_H
#define MXOP_MOVE_H

#include "mxop_block.h"
#include "mxop_bulk.h"

#if defined(__GNUC__)
#define MX_ANYWHERE __attribute__((aligned(1), may_alias))   /* at any address, in place of a number of any type */
#define MX_UNROLL(n) MX_PRAGMA(GCC unroll n)
#define MX_PRAGMA(x) _Pragma(#x)
#else
#define MX_ANYWHERE
#define MX_UNROLL(n)
#endif
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(MX_SHUFFLES)
#include <immintrin.h>
#define MX_WHOLE_LINES   /* registers are as wide as cache lines */
#endif

typedef uint8_t mx_u8;
typedef uint16_t mx_u16 MX_ANYWHERE;
typedef uint32_t mx_u32 MX_ANYWHERE;
typedef uint64_t mx_u64 MX_ANYWHERE;
typedef struct { mx_u64 half[2]; } mx_u128;

/* Write dense elements to every other place, without touching those between; return how many that did. */
#define mx_spread_mx_u8(n, s, d) 0
#define mx_spread_mx_u16(n, s, d) 0
#define mx_spread_mx_u64(n, s, d) 0
#define mx_spread_mx_u128(n, s, d) 0
static inline ptrdiff_t mx_spread_mx_u32(ptrdiff_t n, const char *s, char *d)
{
    ptrdiff_t i = 0;
#ifdef MX_WHOLE_LINES
    const __m512i apart = _mm512_set_epi32(0, 7, 0, 6, 0, 5, 0, 4, 0, 3, 0, 2, 0, 1, 0, 0);
    for (; i + 8 <= n; i += 8) {
        const __m512i v = _mm512_castsi256_si512(_mm256_loadu_si256((const void *)(s + 4 * i)));
        _mm512_mask_storeu_epi32(d + 8 * i, 0x5555, _mm512_permutexvar_epi32(apart, v));
    }
#endif
    (void)n, (void)s, (void)d;
    return i;
}

/* ---- rows -------------------------------------------------------------------------------------------------------------- */
#define MX_COPY_ROW(T)                                                                                                  \
    static void mx_copy_row_##T(ptrdiff_t n, const char *s, ptrdiff_t ss, char *d, ptrdiff_t ds)                        \
    {                                                                                                                   \
        enum { size = sizeof(T) };                                                                                      \
        const T *MX_RESTRICT x = (const T *)s;                                                                          \
        T *MX_RESTRICT y = (T *)d;                                                                                      \
        ptrdiff_t i = 0;                                                                                                \
        if (ds == size && ss == 2 * size) {                                                                             \
            MX_IVDEP                                                                                                    \
            for (; i < n; i++) y[i] = x[2 * i];                                                                         \
        } else if (ds == size && ss == -size) {                                                                         \
            MX_IVDEP                                                                                                    \
            for (; i < n; i++) y[i] = x[-i];                                                                            \
        } else if (ds == size && ss == 0) {                                                                             \
            const T v = *x;                                                                                             \
            MX_IVDEP                                                                                                    \
            for (; i < n; i++) y[i] = v;                                                                                \
        } else {                                                                                                        \
            if (ds == 2 * size && ss == size) i = mx_spread_##T(n, s, d);                                               \
            for (s += i * ss, d += i * ds; i + 4 <= n; i += 4, s += 4 * ss, d += 4 * ds)                                \
                MX_UNROLL(4) for (int k = 0; k < 4; k++) *(T *)(d + k * ds) = *(const T *)(s + k * ss);                 \
            for (; i < n; i++, s += ss, d += ds) *(T *)d = *(const T *)s;                                               \
        }                                                                                                               \
    }

MX_COPY_ROW(mx_u8)
MX_COPY_ROW(mx_u16)
MX_COPY_ROW(mx_u32)
MX_COPY_ROW(mx_u64)
MX_COPY_ROW(mx_u128)

/* Copy n elements of 17 to 64 bytes, each as its beginning and its end. */
static void mx_copy_wide(int size, ptrdiff_t n, const char *MX_RESTRICT s, ptrdiff_t ss, char *MX_RESTRICT d, ptrdiff_t ds)
{
    const ptrdiff_t half = size <= 32 ? 16 : 32, end = size - half;
    if (half == 16)
        for (; n > 0; n--, s += ss, d += ds) memcpy(d, s, 16), memcpy(d + end, s + end, 16);
    else
        for (; n > 0; n--, s += ss, d += ds) memcpy(d, s, 32), memcpy(d + end, s + end, 32);
}

/* Copy n elements that lie ss bytes apart to where they lie ds bytes apart; dense ones past the caches, if that is asked. */
static void mx_copy_row(int size, ptrdiff_t n, const char *s, ptrdiff_t ss, char *d, ptrdiff_t ds, int stream)
{
    if (ss == size && ds == size) {
        ptrdiff_t bytes = n * size, head = stream ? -(intptr_t)d & 63 : bytes;
        if (head > bytes) head = bytes;
        memcpy(d, s, (size_t)head);
        if (head < bytes) mx_stream_copy(d + head, s + head, bytes - head);
    } else if (size == 4) mx_copy_row_mx_u32(n, s, ss, d, ds);
    else if (size == 8) mx_copy_row_mx_u64(n, s, ss, d, ds);
    else if (size == 2) mx_copy_row_mx_u16(n, s, ss, d, ds);
    else if (size == 1) mx_copy_row_mx_u8(n, s, ss, d, ds);
    else if (size > 16) mx_copy_wide(size, n, s, ss, d, ds);
    else mx_copy_row_mx_u128(n, s, ss, d, ds);
}

/* Copy dense rows from places of a source; unless they are in a cache, those that come `ahead` rows later are fetched. */
static void mx_pick_rows(const char *s, const ptrdiff_t *place, ptrdiff_t n, ptrdiff_t width, int cached, char *d)
{
    const ptrdiff_t some = width < MX_PREFETCH_BYTES ? width : MX_PREFETCH_BYTES, ahead = MX_PREFETCH_BYTES / some;
    for (ptrdiff_t j = 0; j < n; j++, d += width) {
        if (!cached && j + ahead < n) mx_prefetch(s + place[j + ahead] * width, some);
        memcpy(d, s + place[j] * width, (size_t)width);
    }
}

/* Give row j of a dense target, of few elements perhaps, the number at s + j * ss everywhere. */
#define MX_REPEAT(T)                                                                                                    \
    static void mx_repeat_##T(ptrdiff_t n, ptrdiff_t rows, const char *s, ptrdiff_t ss, char *d, ptrdiff_t ds)          \
    {                                                                                                                   \
        for (ptrdiff_t j = 0; j < rows; j++) {                                                                          \
            const T v = *(const T *)(s + j * ss);                                                                       \
            T *y = (T *)(d + j * ds);                                                                                   \
            MX_IVDEP                                                                                                    \
            for (ptrdiff_t i = 0; i < n; i++) y[i] = v;                                                                 \
        }                                                                                                               \
    }
MX_REPEAT(mx_u32)
MX_REPEAT(mx_u64)

/* ---- blocks ------------------------------------------------------------------------------------------------------------ */
/* Transpose N rows of N elements, N a power of 2: in each of log2(N) rounds, the elements of two rows are put in turn. */
#define MX_LIST(...) __VA_ARGS__
#ifdef MX_SHUFFLES
#define MX_TILE(name, T, N, BYTES, LOW, HIGH)                                                                           \
    static inline void name(const char *s, ptrdiff_t ss, char *d, ptrdiff_t ds, int stream)                             \
    {                                                                                                                   \
        typedef T vector __attribute__((vector_size(BYTES)));                                                           \
        vector a[N], b[N];                                                                                              \
        MX_UNROLL(32) for (int k = 0; k < N; k++) memcpy(&a[k], s + k * ss, BYTES);                                     \
        MX_UNROLL(8) for (int round = 1; round < N; round *= 2) {                                                       \
            MX_UNROLL(16) for (int k = 0; k < N / 2; k++) {                                                             \
                b[2 * k] = __builtin_shufflevector(a[k], a[k + N / 2], MX_LIST LOW);                                    \
                b[2 * k + 1] = __builtin_shufflevector(a[k], a[k + N / 2], MX_LIST HIGH);                               \
            }                                                                                                           \
            MX_UNROLL(32) for (int k = 0; k < N; k++) a[k] = b[k];                                                      \
        }                                                                                                               \
        (void)stream;                                                                                                   \
        MX_UNROLL(32) for (int k = 0; k < N; k++) MX_STORE_ROW(BYTES, d + k * ds, a[k]);                                \
    }
#define MX_STORE_ROW(BYTES, p, v) MX_STORE_##BYTES(p, v)
#define MX_STORE_16(p, v) memcpy(p, &v, 16)
#define MX_STORE_64(p, v)                                                                                               \
    do {                                                                                                                \
        if (stream) _mm512_stream_si512((void *)(p), (__m512i)v);                                                       \
        else memcpy(p, &v, 64);                                                                                         \
    } while (0)
#define MX_LOW4 0, 4, 1, 5
#define MX_HIGH4 2, 6, 3, 7
#define MX_LOW8 0, 8, 1, 9, 2, 10, 3, 11
#define MX_HIGH8 4, 12, 5, 13, 6, 14, 7, 15
#define MX_LOW16 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define MX_HIGH16 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
MX_TILE(mx_tile_uint8_t, uint8_t, 16, 16, (MX_LOW16), (MX_HIGH16))
MX_TILE(mx_tile_uint16_t, uint16_t, 8, 16, (MX_LOW8), (MX_HIGH8))
MX_TILE(mx_tile_uint32_t, uint32_t, 4, 16, (MX_LOW4), (MX_HIGH4))
MX_TILE(mx_tile_uint64_t, uint64_t, 2, 16, (0, 2), (1, 3))
#else
#define MX_TILE(name, T, N)                                                                                             \
    static inline void name(const char *s, ptrdiff_t ss, char *d, ptrdiff_t ds, int stream)                             \
    {                                                                                                                   \
        (void)stream;                                                                                                   \
        for (int i = 0; i < N; i++)                                                                                     \
            for (int j = 0; j < N; j++) memcpy(d + j * ds + i * sizeof(T), s + i * ss + j * sizeof(T), sizeof(T));      \
    }
MX_TILE(mx_tile_uint8_t, uint8_t, 16)
MX_TILE(mx_tile_uint16_t, uint16_t, 8)
MX_TILE(mx_tile_uint32_t, uint32_t, 4)
MX_TILE(mx_tile_uint64_t, uint64_t, 2)
#endif

/* Transpose a block, a line wide and high.  It is put together beside the target and then copied line by line: rows whose
   distance is a power of 2 share a few places of the first-level cache, and must be touched once. */
#define MX_BLOCK(T, N)                                                                                                  \
    static inline void mx_block_##T(const char *s, ptrdiff_t ss, char *d, ptrdiff_t ds, int stream)                     \
    {                                                                                                                   \
        enum { size = sizeof(T), line = 64 / size };                                                                    \
        char block[line * 64];                                                                                          \
        for (int k = 0; k < line; k += N)                                                                               \
            for (int m = 0; m < line; m += N) mx_tile_##T(s + k * ss + m * size, ss, block + m * 64 + k * size, 64, 0); \
        for (int m = 0; m < line; m++) {                                                                                \
            if (stream) mx_stream_copy(d + m * ds, block + m * 64, 64);                                                 \
            else memcpy(d + m * ds, block + m * 64, 64);                                                                \
        }                                                                                                               \
    }
MX_BLOCK(uint8_t, 16)
MX_BLOCK(uint16_t, 8)
#ifdef MX_WHOLE_LINES
MX_TILE(mx_block_uint32_t, uint32_t, 16, 64, (MX_LOW16), (MX_HIGH16))
MX_TILE(mx_block_uint64_t, uint64_t, 8, 64, (MX_LOW8), (MX_HIGH8))
#else
MX_BLOCK(uint32_t, 4)
MX_BLOCK(uint64_t, 2)
#endif

/* Ask for the block that comes four blocks after row i of the columns at s, or after their end among the next. */
static inline void mx_prefetch_block(const char *s, ptrdiff_t ss, ptrdiff_t i, ptrdiff_t rows, int line, int more)
{
    i += 4 * line;
    if (i >= rows) {
        if (!more || (i -= rows) >= rows) return;
        s += 64;
    }
    for (ptrdiff_t k = i; k < i + line && k < rows; k++) mx_prefetch(s + k * ss, 1);
}

/* Element (i, j) goes from s + i * ss + j * size to d + j * ds + i * size.  The rows of the target are finished one line after
   the other. */
#define MX_TRANSPOSE(T, U, N)                                                                                           \
    static void mx_transpose_##T(ptrdiff_t rows, ptrdiff_t columns, const char *s, ptrdiff_t ss, char *d, ptrdiff_t ds, \
                                 int stream)                                                                            \
    {                                                                                                                   \
        enum { size = sizeof(T), line = 64 / size };                                                                    \
        const int far = rows * columns * size > MX_L2_BYTES;                                                            \
        stream = stream && !(((intptr_t)d | ds) & 63); /* lines written in parts are slow past the caches */            \
        for (ptrdiff_t j = 0; j < columns; j += line) {                                                                 \
            const ptrdiff_t width = columns - j < line ? columns - j : line, filled = width - width % N;                \
            for (ptrdiff_t i = 0; i < rows; i += line) {                                                                \
                const ptrdiff_t height = rows - i < line ? rows - i : line, whole = height - height % N;                \
                const char *from = s + i * ss + j * size;                                                               \
                char *to = d + j * ds + i * size;                                                                       \
                if (far) mx_prefetch_block(s + j * size, ss, i, rows, line, j + line < columns);                        \
                if (height == line && width == line) {                                                                  \
                    mx_block_##T(from, ss, to, ds, stream);                                                             \
                    continue;                                                                                           \
                }                                                                                                       \
                for (ptrdiff_t k = 0; k < whole; k += N)                                                                \
                    for (ptrdiff_t m = 0; m < filled; m += N)                                                           \
                        mx_tile_##T(from + k * ss + m * size, ss, to + m * ds + k * size, ds, 0);                       \
                for (ptrdiff_t k = whole; k < height; k++)                                                              \
                    mx_copy_row_##U(filled, from + k * ss, size, to + k * size, ds);                                    \
                for (ptrdiff_t m = filled; m < width; m++)                                                              \
                    mx_copy_row_##U(height, from + m * size, ss, to + m * ds, size);                                    \
            }                                                                                                           \
        }                                                                                                               \
    }
MX_TRANSPOSE(uint8_t, mx_u8, 16)
MX_TRANSPOSE(uint16_t, mx_u16, 8)
MX_TRANSPOSE(uint32_t, mx_u32, 4)
MX_TRANSPOSE(uint64_t, mx_u64, 2)

/* Two axes whose elements are not side by side: walk along the longer, in pieces that stay in the cache. */
static void mx_scatter(int size, ptrdiff_t n0, ptrdiff_t n1, const char *s, ptrdiff_t s0, ptrdiff_t s1, char *d, ptrdiff_t d0,
                       ptrdiff_t d1)
{
    enum { PIECE = 4 * MX_RUN };
    if (n0 < n1 && n0 < MX_SHORT_ROW) {
        const ptrdiff_t n = n0, from = s0, to = d0;
        n0 = n1, s0 = s1, d0 = d1;
        n1 = n, s1 = from, d1 = to;
    }
    for (ptrdiff_t i = 0; i < n0; i += PIECE)
        for (ptrdiff_t j = 0; j < n1; j++)
            mx_copy_row(size, n0 - i < PIECE ? n0 - i : PIECE, s + i * s0 + j * s1, s0, d + i * d0 + j * d1, d0, 0);
}

/* Move the elements of two axes: element (i, j) from s + i * s0 + j * s1 to d + i * d0 + j * d1.  What went past the caches is
   to be fenced. */
static void mx_move(int way, int size, ptrdiff_t n0, ptrdiff_t n1, const char *s, ptrdiff_t s0, ptrdiff_t s1, char *d,
                    ptrdiff_t d0, ptrdiff_t d1, int stream)
{
    if (way == MX_SCATTER) mx_scatter(size, n0, n1, s, s0, s1, d, d0, d1);
    else if (way == MX_ROWS && s0 == 0 && d0 == size && size == 4) mx_repeat_mx_u32(n0, n1, s, s1, d, d1);
    else if (way == MX_ROWS && s0 == 0 && d0 == size && size == 8) mx_repeat_mx_u64(n0, n1, s, s1, d, d1);
    else if (way == MX_ROWS)
        for (ptrdiff_t j = 0; j < n1; j++) mx_copy_row(size, n0, s + j * s1, s0, d + j * d1, d0, stream);
    else if (size == 1) mx_transpose_uint8_t(n0, n1, s, s0, d, d1, stream);
    else if (size == 2) mx_transpose_uint16_t(n0, n1, s, s0, d, d1, stream);
    else if (size == 4) mx_transpose_uint32_t(n0, n1, s, s0, d, d1, stream);
    else mx_transpose_uint64_t(n0, n1, s, s0, d, d1, stream);
}

#endif
