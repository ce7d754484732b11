/* mxop_math_int.h - division and powers of integers.  Included by the generated instruction modules.
 *
 * Processors have vectors of quotients for floating-point numbers only, so integers of up to 32 bits are divided there: a
 * quotient of two of them, rounded to 53 bits (of 8 bits: to 24), cuts to the right integer.  Of 64 bits, two such quotients
 * follow each other where integers of that size become floating-point numbers in vectors; elsewhere they stay scalar.
 *
 * As MXNet's arrays have it, x / 0 and x % 0 are 0; the smallest number over -1 wraps.  Remainders have the divisor's sign,
 * as Python's; floor division goes with them. */
#ifndef MXOP_MATH_INT_H
#define MXOP_MATH_INT_H

#include <stddef.h>
#include <stdint.h>

/* A number of which the low byte is wanted.  From 2^31 on a float32's is 0, and so is that of what x86 makes of it in 32 bits. */
#if defined(__x86_64__) || defined(_M_X64)
MX_INLINE int32_t mx_whole_f32(float x) { return (int32_t)x; }
#else
MX_INLINE int64_t mx_whole_f32(float x) { return (int64_t)x; }
#endif

#define mx_idiv(T, a, b) mx_idiv_##T(a, b)
#define mx_imod(T, a, b) mx_imod_##T(a, b)
#define mx_ifloordiv(T, a, b) mx_ifloordiv_##T(a, b)

/* REAL holds T, QUOTIENT any quotient that does not wrap.  What must not be divided is divided by 1, then replaced. */
#define MXI_DIVISION(T, REAL, QUOTIENT)                                                                       \
    MX_INLINE T mx_idiv_##T(T a, T b)                                                                         \
    {                                                                                                         \
        int minus = (T)-1 < (T)1 ? b == (T)-1 : 0;                                                            \
        T d = (b == 0) | minus ? (T)1 : b;                                                                    \
        T q = (T)QUOTIENT(T, REAL, a, d);                                                                     \
        q = minus ? (T)(0 - (uint64_t)a) : q;                                                                 \
        return b == 0 ? (T)0 : q;                                                                             \
    }                                                                                                         \
    MX_INLINE T mx_imod_##T(T a, T b)                                                                         \
    {                                                                                                         \
        T d = (b == 0) | ((T)-1 < (T)1 ? b == (T)-1 : 0) ? (T)1 : b;                                          \
        T r = (T)(a - (T)((T)QUOTIENT(T, REAL, a, d) * d));                                                   \
        return (T)(r + ((r != 0) & ((r ^ d) < 0) ? d : (T)0));                                                \
    }                                                                                                         \
    MX_INLINE T mx_ifloordiv_##T(T a, T b)                                                                    \
    {                                                                                                         \
        T q = mx_idiv_##T(a, b), r = (T)(a - (T)(q * b));                                                     \
        return (T)(q - ((b != 0) & (r != 0) & ((r ^ b) < 0) ? 1 : 0));                                        \
    }
#define MXI_BY_REAL(T, REAL, a, d) (int32_t)((REAL)(a) / (REAL)(d))
#define MXI_BY_INTEGER(T, REAL, a, d) ((a) / (d))

/* The first quotient is short by 2^-50 of itself at most, so what is left over is at most 2^13 divisors; the second leaves less
 * than one, or one divisor too much or too little, which is put right. */
#if defined(__AVX512DQ__) || defined(__aarch64__)
MX_INLINE int64_t mxi_quotient_i64(int64_t a, int64_t d)
{
    const double by = (double)d, short_of_1 = 1.0 - 0x1p-51;
    int64_t q = (int64_t)((double)a / by * short_of_1), r = (int64_t)((uint64_t)a - (uint64_t)q * (uint64_t)d);
    const int64_t more = (int64_t)((double)r / by);
    q += more;
    r = (int64_t)((uint64_t)r - (uint64_t)more * (uint64_t)d);
    const uint64_t left = r < 0 ? 0 - (uint64_t)r : (uint64_t)r, size = d < 0 ? 0 - (uint64_t)d : (uint64_t)d;
    const int64_t step = (a ^ d) < 0 ? -1 : 1;
    q = (r != 0) & ((r ^ a) < 0) ? q - step : q;
    return ((r ^ a) >= 0) & (left >= size) ? q + step : q;
}
#define MXI_BY_TWO_REALS(T, REAL, a, d) mxi_quotient_i64(a, d)
#else
#define MXI_BY_TWO_REALS MXI_BY_INTEGER
#endif

MXI_DIVISION(int8_t, float, MXI_BY_REAL)
MXI_DIVISION(uint8_t, float, MXI_BY_REAL)
MXI_DIVISION(int32_t, double, MXI_BY_REAL)
MXI_DIVISION(int64_t, double, MXI_BY_TWO_REALS)

/* Power in 64 bits, of which narrower types take the lowest: products wrap, as NumPy's.  A negative exponent gives what the
   reciprocal rounds to, towards zero; 0 gives 0, as a division by it does. */
MX_EACH int64_t mx_ipow(int64_t a, int64_t b)
{
    uint64_t x = (uint64_t)a, r = 1;
    if (b < 0) return a == 1 ? 1 : a == -1 ? ((b & 1) != 0 ? -1 : 1) : 0;
    for (; b != 0; b >>= 1) {
        if ((b & 1) != 0) r *= x;
        x *= x;
    }
    return (int64_t)r;
}

#endif
