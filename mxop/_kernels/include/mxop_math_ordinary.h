/* mxop_math_ordinary.h - for which operands the _fast forms of functions hold.  Included by mxop_math.h.
 *
 * A loop first looks whether all of a block are ordinary, which costs little beside the function, and takes the form
 * that serves any operand if not.  NaN is never ordinary. */
#ifndef MXOP_MATH_ORDINARY_H
#define MXOP_MATH_ORDINARY_H

#define MXI_BETWEEN(low, x, high) (((x) >= (low)) & ((x) <= (high)))
#define MXI_POSITIVE_F32(x) MXI_BETWEEN(0x1p-126f, x, 0x1.fffffep127f)         /* normal numbers */
#define MXI_POSITIVE_F64(x) MXI_BETWEEN(0x1p-1022, x, 0x1.fffffffffffffp1023)

#define MX_ORDINARY_sin_f32(x) (fabsf(x) <= MX_TRIG_LIMIT_F32)
#define MX_ORDINARY_sin_f64(x) (fabs(x) <= MX_TRIG_LIMIT_F64)
#define MX_ORDINARY_cos_f32 MX_ORDINARY_sin_f32
#define MX_ORDINARY_cos_f64 MX_ORDINARY_sin_f64
#define MX_ORDINARY_tan_f32 MX_ORDINARY_sin_f32
#define MX_ORDINARY_tan_f64 MX_ORDINARY_sin_f64
#define MX_ORDINARY_log_f32 MXI_POSITIVE_F32
#define MX_ORDINARY_log_f64 MXI_POSITIVE_F64
#define MX_ORDINARY_log2_f32 MXI_POSITIVE_F32
#define MX_ORDINARY_log2_f64 MXI_POSITIVE_F64
#define MX_ORDINARY_log10_f32 MXI_POSITIVE_F32
#define MX_ORDINARY_log10_f64 MXI_POSITIVE_F64
#define MX_ORDINARY_log1p_f32(x) MXI_BETWEEN(-0x1.fffffep-1f, x, 0x1p120f)
#define MX_ORDINARY_log1p_f64(x) MXI_BETWEEN(-0x1.fffffffffffffp-1, x, 0x1p1000)
#define MX_ORDINARY_pow_f32(x, y) (MXI_POSITIVE_F32(x) & (fabsf(y) < 0x1p127f) & (y != 1) & (y != 2) & (y != 3))
#define MX_ORDINARY_pow_f64(x, y) (MXI_POSITIVE_F64(x) & (fabs(y) < 0x1p1000) & (y != 1) & (y != 2) & (y != 3))
#define MX_ORDINARY_gammaln_f64(x) (MX_HAVE_FMA & MXI_BETWEEN(0x1p-60, x, 0x1p900))
#define MX_ORDINARY_digamma_f64 MX_ORDINARY_gammaln_f64
#define MX_ORDINARY_gamma_f64(x) (MX_HAVE_FMA & MXI_BETWEEN(0x1p-60, x, 60.0))
#define MX_ORDINARY_mod_f32(x, y) ((fabsf(x) < (MX_HAVE_FMA ? 0x1p50f : 0x1p28f) * fabsf(y)) & (fabsf(y) < MX_INF_F32))
#define MX_ORDINARY_mod_f64(x, y) ((fabs(x) < 0x1p52 * fabs(y)) & (fabs(y) < (double)INFINITY))
#define MX_ORDINARY_floordiv_f32 MX_ORDINARY_mod_f32
#define MX_ORDINARY_floordiv_f64 MX_ORDINARY_mod_f64

#endif
