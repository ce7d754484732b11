/* mxop_math.h - the elementary functions of the element-wise kernels.
 *
 * Every function is called from loops of the form
 *
 *     for (i = 0; i < n; i++) o[i] = mx_exp_f32(x[i]);      (restrict pointers)
 *
 * and is written so that the compiler turns such a loop into SIMD code by itself:
 * no branches (selects only), no tables, no calls but sqrt, floor, ceil, trunc,
 * copysign, fabs and fma, which are instructions.  There are no intrinsics but for
 * the float16 arrays, so one text serves SSE4.2, AVX2, AVX-512 and NEON.
 *
 * Compile with
 *
 *     -O2 -ftree-vectorize -fno-math-errno -fno-trapping-math -ffp-contract=off
 *
 * and never with -ffast-math: NaN, infinities, the order of additions and
 * subtractions such as (x + big) - big all carry meaning here.  C11 or C++17.
 *
 * Parts
 *     mxop_math_half.h      float16, bfloat16 <-> float32
 *     mxop_math_f64.h       double: simple functions, roots, exponentials
    mxop_math_f64_log.h   double: logarithms and area functions
    mxop_math_f64_trig.h  double: sin, cos, tan and the arcs
    mxop_math_f64_pairs.h double: functions of two operands
 *     mxop_math_f32.h       float32, in float
 *     mxop_math_f32_wide.h  float32, through double
    mxop_math_f32_sums.h  float32, in float, with sums of two parts
 *     mxop_math_gamma.h     gamma, log-gamma, digamma
 *     mxop_math_special.h   polygamma; erf, erfinv and the normal distribution in double
 *
 * Names: mx_<function>_<f32|f64> for use, mxi_<...> for what serves only here.
 *
 * Not vectorised (one call per element):
 *     f32: gammaln and digamma below 0, polygamma; mod and floordiv without FMA
 *     f64: the gamma family below 0, and all of it without FMA; pow, mod and floordiv without FMA
 *     both: what is not ordinary (mxop_math_ordinary.h) of sin, cos, tan; f64: of mod and floordiv
 *
 * Methods
 *     exp family     x = n ln2 + r with ln2 in two parts (Cody & Waite 1980), a
 *                    minimax polynomial for e^r, 2^n set into the exponent bits
 *     log family     x = 2^k m, 2/3 <= m < 4/3; a polynomial in m - 1 (float), or
 *                    the series of 2 atanh(f / (2 + f)) (double)
 *     sin, cos       Cody & Waite reduction by pi/2 to r + e, e the rounding error
 *                    of r; both polynomials, one chosen
 *     tanh, sigmoid  through d = 1 + e^|x| held as a rounded sum and its error
 *     erf            odd polynomial; far out 1 - 2^-q(x) with a polynomial q
 *     cbrt           a polynomial and one step of Halley's
 *     the rest       in double, with polynomials only as long as a float needs:
 *                    then a result is within 0.51 ULP, gradual underflow comes from
 *                    the last conversion, and there is nothing to scale
 *
 * All polynomials were fitted for this file: weighted least squares on Chebyshev
 * nodes, reweighted (Lawson) to the minimax solution against 140-bit references;
 * float coefficients are rounded one by one, lowest first, and the rest fitted again.
 *
 * "ULP a / b" beside a float function is the largest |result - exact| in units of
 * the last place of the exact value, measured with FMA / without FMA over a sweep
 * of all binades of both signs, denormals included, and dense windows round the
 * zeros and seams.  Special values are those of C and NumPy: exp(-inf) = 0,
 * log(0) = -inf, log(-1) = NaN, odd functions keep -0. */
#ifndef MXOP_MATH_H
#define MXOP_MATH_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#if defined(__F16C__)
#include <immintrin.h>
#endif
#include "mxop_block.h"

/* A fused multiply-add where it is an instruction; functions say where they lean on
 * its single rounding. */
#if defined(__FMA__) || defined(__aarch64__)
#define MX_HAVE_FMA 1
#define MX_FMAF(a, b, c) __builtin_fmaf((a), (b), (c))
#define MX_FMA(a, b, c) __builtin_fma((a), (b), (c))
#else
#define MX_HAVE_FMA 0
#define MX_FMAF(a, b, c) ((a) * (b) + (c))
#define MX_FMA(a, b, c) ((a) * (b) + (c))
#endif

/* bit casts */
MX_INLINE uint32_t mx_f32_bits(float x) { uint32_t u; memcpy(&u, &x, 4); return u; }
MX_INLINE float mx_bits_f32(uint32_t u) { float x; memcpy(&x, &u, 4); return x; }
MX_INLINE uint64_t mx_f64_bits(double x) { uint64_t u; memcpy(&u, &x, 8); return u; }
MX_INLINE double mx_bits_f64(uint64_t u) { double x; memcpy(&x, &u, 8); return x; }

/* Adding and subtracting MX_ROUND_F32 rounds |x| < 2^22 to an integer and
 * leaves that integer in the low mantissa bits of the sum; _F64 likewise. */
#define MX_ROUND_F32 0x1.8p23f
#define MX_ROUND_F64 0x1.8p52

/* NaN in either operand gives NaN; a tie gives the left operand.  The choice between numbers is one instruction, which gives its
 * second operand where either is NaN; the other choice depends on one operand only, and is made once where that is a scalar. */
#define MX_EXTREME_OF(name, T, BEYOND)                       \
    MX_INLINE T name(T a, T b)                               \
    {                                                        \
        T found = b BEYOND a ? b : a;                        \
        return b != b ? b : found;                           \
    }
MX_EXTREME_OF(mx_maximum_f32, float, >)
MX_EXTREME_OF(mx_minimum_f32, float, <)
MX_EXTREME_OF(mx_maximum_f64, double, >)
MX_EXTREME_OF(mx_minimum_f64, double, <)

/* ---- polynomials, constant term first ---------------------------------------- */

#define MX_PF2(x, a, b) MX_FMAF(x, b, a)
#define MX_PF3(x, a, b, c) MX_FMAF(x, MX_PF2(x, b, c), a)
#define MX_PF4(x, a, b, c, d) MX_FMAF(x, MX_PF3(x, b, c, d), a)
#define MX_PF5(x, a, b, c, d, e) MX_FMAF(x, MX_PF4(x, b, c, d, e), a)
#define MX_PF6(x, a, b, c, d, e, f) MX_FMAF(x, MX_PF5(x, b, c, d, e, f), a)
#define MX_PF7(x, a, b, c, d, e, f, g) MX_FMAF(x, MX_PF6(x, b, c, d, e, f, g), a)
#define MX_PF8(x, a, b, c, d, e, f, g, h) MX_FMAF(x, MX_PF7(x, b, c, d, e, f, g, h), a)

/* The same in pairs (Estrin): more operations, a shorter chain; x2 = x^2. */
#define MX_EF4(x, x2, a, b, c, d) MX_FMAF(x2, MX_PF2(x, c, d), MX_PF2(x, a, b))
#define MX_EF5(x, x2, a, b, c, d, e) MX_FMAF(x2, MX_PF3(x, c, d, e), MX_PF2(x, a, b))
#define MX_EF6(x, x2, a, b, c, d, e, f) \
    MX_FMAF(x2, MX_FMAF(x2, MX_PF2(x, e, f), MX_PF2(x, c, d)), MX_PF2(x, a, b))
#define MX_EF8(x, x2, a, b, c, d, e, f, g, h) \
    MX_FMAF((x2) * (x2), MX_EF4(x, x2, e, f, g, h), MX_EF4(x, x2, a, b, c, d))

#define MX_PD2(x, a, b) MX_FMA(x, b, a)
#define MX_PD3(x, a, b, c) MX_FMA(x, MX_PD2(x, b, c), a)
#define MX_PD4(x, a, b, c, d) MX_FMA(x, MX_PD3(x, b, c, d), a)
#define MX_PD5(x, a, b, c, d, e) MX_FMA(x, MX_PD4(x, b, c, d, e), a)
#define MX_PD6(x, a, b, c, d, e, f) MX_FMA(x, MX_PD5(x, b, c, d, e, f), a)
#define MX_PD7(x, a, b, c, d, e, f, g) MX_FMA(x, MX_PD6(x, b, c, d, e, f, g), a)
#define MX_PD8(x, a, b, c, d, e, f, g, h) MX_FMA(x, MX_PD7(x, b, c, d, e, f, g, h), a)
#define MX_PD9(x, a, b, c, d, e, f, g, h, i) MX_FMA(x, MX_PD8(x, b, c, d, e, f, g, h, i), a)
#define MX_PD10(x, a, b, c, d, e, f, g, h, i, j) MX_FMA(x, MX_PD9(x, b, c, d, e, f, g, h, i, j), a)
#define MX_PD11(x, a, b, c, d, e, f, g, h, i, j, k) MX_FMA(x, MX_PD10(x, b, c, d, e, f, g, h, i, j, k), a)
#define MX_PD12(x, a, b, c, d, e, f, g, h, i, j, k, l) MX_FMA(x, MX_PD11(x, b, c, d, e, f, g, h, i, j, k, l), a)
#define MX_PD13(x, a, b, c, d, e, f, g, h, i, j, k, l, m) MX_FMA(x, MX_PD12(x, b, c, d, e, f, g, h, i, j, k, l, m), a)
#define MX_PD14(x, a, b, c, d, e, f, g, h, i, j, k, l, m, n) \
    MX_FMA(x, MX_PD13(x, b, c, d, e, f, g, h, i, j, k, l, m, n), a)

#include "mxop_math_ordinary.h"
#include "mxop_math_half.h"
#include "mxop_math_f64.h"
#include "mxop_math_f64_log.h"
#include "mxop_math_f64_trig.h"
#include "mxop_math_f64_pairs.h"
#include "mxop_math_f32.h"
#include "mxop_math_f32_wide.h"
#include "mxop_math_f32_sums.h"
#include "mxop_math_gamma.h"
#include "mxop_math_special.h"

#endif
