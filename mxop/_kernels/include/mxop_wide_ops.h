/* mxop_wide_ops.h - operations of a few AVX-512 vectors side by side, for one type.  Included by mxop_wide.h, for float32 with
 * names mxw_, for float64 with names mxd_. */

#define MXW_R MXW_N(real)
#define MXW_I MXW_N(bits_)
#define MXW_M MXW_N(mask)
typedef struct { MXW_V v[MXW_SIDE]; } MXW_R;
typedef struct { __m512i v[MXW_SIDE]; } MXW_I;
typedef struct { MXW_MASK v[MXW_SIDE]; } MXW_M;

#define MXW_OF(R, name, parameters, value) \
    MX_INLINE R MXW_N(name) parameters { R r; MXW_EACH r.v[u] = value; return r; }
#define MXW_1(name, value) MXW_OF(MXW_R, name, (MXW_R a), value)
#define MXW_2(name, value) MXW_OF(MXW_R, name, (MXW_R a, MXW_R b), value)
#define MXW_3(name, value) MXW_OF(MXW_R, name, (MXW_R a, MXW_R b, MXW_R c), value)

/* ---- numbers ----------------------------------------------------------------------------------------------------- */
MXW_OF(MXW_R, all, (MXW_T x), MXW_P(set1)(x))
MXW_2(add, MXW_P(add)(a.v[u], b.v[u]))
MXW_2(sub, MXW_P(sub)(a.v[u], b.v[u]))
MXW_2(mul, MXW_P(mul)(a.v[u], b.v[u]))
MXW_3(fma, MXW_P(fmadd)(a.v[u], b.v[u], c.v[u]))             /* a b + c */
MXW_3(fnma, MXW_P(fnmadd)(a.v[u], b.v[u], c.v[u]))           /* c - a b */
MXW_3(fms, MXW_P(fmsub)(a.v[u], b.v[u], c.v[u]))             /* a b - c */
MXW_3(fnms, MXW_P(fnmsub)(a.v[u], b.v[u], c.v[u]))           /* -a b - c */
MXW_2(max, MXW_P(max)(a.v[u], b.v[u]))                       /* NaN in b goes through, here and below */
MXW_2(min, MXW_P(min)(a.v[u], b.v[u]))
MXW_2(limited, MXW_P(range)(a.v[u], b.v[u], 2))              /* the smaller magnitude, with the sign of a; b for NaN */
MXW_1(abs, MXW_P(abs)(a.v[u]))
MXW_1(rsqrt14, MXW_P(rsqrt14)(a.v[u]))                       /* within 2^-14: for corrections alone */
MXW_1(rcp14, MXW_P(rcp14)(a.v[u]))
MXW_1(exponent, MXW_P(getexp)(a.v[u]))                       /* of denormals too; -inf of 0, inf of inf */
/* The mantissa from 1 to 2: of |x|, or NaN below zero */
MXW_1(mantissa, MXW_P(getmant)(a.v[u], _MM_MANT_NORM_1_2, _MM_MANT_SIGN_zero))
MXW_1(mantissa_or_nan, MXW_P(getmant)(a.v[u], _MM_MANT_NORM_1_2, _MM_MANT_SIGN_nan))
MXW_2(scaled, MXW_P(scalef)(a.v[u], b.v[u]))                 /* a 2^floor(b) */
MXW_OF(MXW_R, scaled_where, (MXW_M m, MXW_R a, MXW_R b), MXW_P(maskz_scalef)(m.v[u], a.v[u], b.v[u]))        /* or 0 */
/* ...or 0, where a is 0 or no number and b is infinite */
MXW_2(scaled_known, MXW_P(maskz_scalef)(MXW_P_MASK(cmp)(a.v[u], MXW_P(set1)(0), _CMP_NEQ_OQ), a.v[u], b.v[u]))

/* ---- bits -------------------------------------------------------------------------------------------------------- */
MXW_OF(MXW_I, bits, (MXW_R a), MXW_TO_BITS(a.v[u]))
MXW_OF(MXW_R, number, (MXW_I a), MXW_FROM_BITS(a.v[u]))
MXW_OF(MXW_I, i_all, (MXW_UINT x), MXW_SET1((MXW_INT)x))
MXW_OF(MXW_I, i_sub, (MXW_I a, MXW_I b), MXW_E(sub)(a.v[u], b.v[u]))
MXW_OF(MXW_I, i_add, (MXW_I a, MXW_I b), MXW_E(add)(a.v[u], b.v[u]))
MXW_OF(MXW_I, i_less, (MXW_I a, MXW_I b), _mm512_subs_epu16(a.v[u], b.v[u]))     /* of halves of a word, 0 at least */
MXW_OF(MXW_I, i_max, (MXW_I a, MXW_I b), MXW_E(max)(a.v[u], b.v[u]))
MXW_OF(MXW_I, i_nearest, (MXW_R a), MXW_CVT(a.v[u]))
MXW_OF(MXW_I, i_left, (MXW_I a, unsigned n), MXW_E(slli)(a.v[u], n))
MXW_OF(MXW_I, i_right, (MXW_I a, unsigned n), MXW_E(srli)(a.v[u], n))
/* a with the sign of b */
MXW_2(with_sign, MXW_FROM_BITS(MXW_E(ternarylogic)(MXW_SET1(~MXW_TOP), MXW_TO_BITS(a.v[u]), MXW_TO_BITS(b.v[u]), 0xca)))

/* ---- choices ----------------------------------------------------------------------------------------------------- */
MXW_OF(MXW_M, less, (MXW_R a, MXW_R b), MXW_P_MASK(cmp)(a.v[u], b.v[u], _CMP_LT_OQ))
MXW_OF(MXW_M, equal, (MXW_R a, MXW_R b), MXW_P_MASK(cmp)(a.v[u], b.v[u], _CMP_EQ_OQ))
MXW_OF(MXW_M, unordered, (MXW_R a, MXW_R b), MXW_P_MASK(cmp)(a.v[u], b.v[u], _CMP_UNORD_Q))
MXW_OF(MXW_M, not_within, (MXW_R a, MXW_R b), MXW_P_MASK(cmp)(a.v[u], b.v[u], _CMP_NLE_UQ))
MXW_OF(MXW_M, not_positive, (MXW_R a), MXW_P_MASK(fpclass)(a.v[u], 0xdf))       /* or infinite, or NaN */
MXW_OF(MXW_M, not_finite, (MXW_R a), MXW_P_MASK(fpclass)(a.v[u], 0x99))
MXW_OF(MXW_M, whole, (MXW_R a), MXW_P_MASK(cmp)(MXW_P(roundscale)(a.v[u], 1), a.v[u], _CMP_EQ_OQ))
MXW_OF(MXW_M, i_more, (MXW_I a, MXW_I b), MXW_E_MASK(cmpgt)(a.v[u], b.v[u]))
MXW_OF(MXW_M, i_any, (MXW_I a, MXW_I b), MXW_E_MASK(test)(a.v[u], b.v[u]))
MXW_OF(MXW_M, i_none, (MXW_I a, MXW_I b), MXW_E_MASK(testn)(a.v[u], b.v[u]))
MXW_OF(MXW_M, or, (MXW_M a, MXW_M b), (MXW_MASK)(a.v[u] | b.v[u]))
MXW_OF(MXW_M, and, (MXW_M a, MXW_M b), (MXW_MASK)(a.v[u] & b.v[u]))
MXW_OF(MXW_M, not, (MXW_M a), (MXW_MASK)~a.v[u])
MX_INLINE int MXW_N(any)(MXW_M m) { int any = 0; MXW_EACH any |= m.v[u]; return __builtin_expect(any, 0); }
/* whether any of a has, where bits are set in mask, others than b */
MX_INLINE int MXW_N(i_any_other)(MXW_I a, MXW_UINT b, MXW_UINT mask)
{
    __m512i any = _mm512_setzero_si512();
    MXW_EACH any = MXW_E(ternarylogic)(any, a.v[u], MXW_SET1((MXW_INT)b), 0xf6);        /* any | (a ^ b) */
    return __builtin_expect(MXW_E_MASK(test)(any, MXW_SET1((MXW_INT)mask)), 0);
}
MXW_OF(MXW_R, where, (MXW_M m, MXW_R a, MXW_R b), MXW_P(mask_mov)(b.v[u], m.v[u], a.v[u]))
MXW_OF(MXW_R, or_zero, (MXW_M m, MXW_R a), MXW_P(maskz_mov)(m.v[u], a.v[u]))
/* a, but for b of a class whose nibble in the table is another than 0; from the lowest: NaN, signalling NaN, 0, 1, -inf, inf,
 * negative, positive; 2 is b itself, 3 NaN, 4 -inf, 5 inf. */
MXW_OF(MXW_R, but_for, (MXW_R a, MXW_R b, uint32_t table), MXW_P(fixupimm)(a.v[u], b.v[u], MXW_SET1((MXW_INT)table), 0))

/* ---- tables of 16 and 32, by the low bits of an index -------------------------------------------------------------- */
#if MXW_COUNT == 16
MXW_OF(MXW_R, of_16, (const MXW_T *t, MXW_I i), MXW_P(permutexvar)(i.v[u], MXW_P(loadu)(t)))
MXW_OF(MXW_I, i_of_16, (const MXW_UINT *t, MXW_I i), MXW_E(permutexvar)(i.v[u], _mm512_loadu_si512(t)))
MXW_OF(MXW_R, of_16_or, (MXW_R other, MXW_M m, const MXW_T *t, MXW_I i),
       MXW_P(mask_permutexvar)(other.v[u], m.v[u], i.v[u], MXW_P(loadu)(t)))
MXW_OF(MXW_R, of_32, (const MXW_T *t, MXW_I i), MXW_P(permutex2var)(MXW_P(loadu)(t), i.v[u], MXW_P(loadu)(t + 16)))
#else
MXW_OF(MXW_R, of_16, (const MXW_T *t, MXW_I i), MXW_P(permutex2var)(MXW_P(loadu)(t), i.v[u], MXW_P(loadu)(t + 8)))
MXW_OF(MXW_R, of_32, (const MXW_T *t, MXW_I i),
       MXW_P(mask_blend)(MXW_E_MASK(test)(i.v[u], MXW_SET1(16)), MXW_P(permutex2var)(MXW_P(loadu)(t), i.v[u], MXW_P(loadu)(t + 8)),
                         MXW_P(permutex2var)(MXW_P(loadu)(t + 16), i.v[u], MXW_P(loadu)(t + 24))))
#endif

/* ---- memory ------------------------------------------------------------------------------------------------------ */
MX_INLINE MXW_MASK MXW_N(first)(ptrdiff_t n) { return n >= MXW_COUNT ? (MXW_MASK)-1 : n > 0 ? (MXW_MASK)((1u << n) - 1) : 0; }
MX_INLINE MXW_R MXW_N(read_or)(const MXW_T *x, ptrdiff_t n, MXW_T other)         /* beyond n, which no function finds special */
{
    MXW_R r;
    MXW_EACH r.v[u] = MXW_P(mask_loadu)(MXW_P(set1)(other), MXW_N(first)(n - MXW_COUNT * u), x + MXW_COUNT * u);
    return r;
}
MX_INLINE MXW_R MXW_N(read)(const MXW_T *x, ptrdiff_t n) { return MXW_N(read_or)(x, n, 1); }
MX_INLINE void MXW_N(write)(MXW_T *o, MXW_R a, ptrdiff_t n)
{
    MXW_EACH MXW_P(mask_storeu)(o + MXW_COUNT * u, MXW_N(first)(n - MXW_COUNT * u), a.v[u]);
}

/* The cases of C's pow, as in mx_pow_f32; r = |x|^y of positive numbers. */
static MX_NOINLINE MXW_R MXW_N(pow_cases)(MXW_R x, MXW_R y, MXW_R r)
{
#define N MXW_N
    MXW_R a = N(abs)(x), none = N(all)(0), one = N(all)(1), top = N(all)((MXW_T)INFINITY);
    MXW_M minus = N(less)(y, none), whole = N(whole)(y), odd = N(and)(whole, N(not)(N(whole)(N(mul)(y, N(all)((MXW_T)0.5)))));
    r = N(where)(N(equal)(a, none), N(where)(minus, top, none), r);
    r = N(where)(N(equal)(a, top), N(where)(minus, none, top), r);
    r = N(where)(odd, N(with_sign)(r, x), r);
    minus = N(and)(N(less)(x, none), N(less)(a, top));
    r = N(where)(N(and)(minus, N(not)(whole)), N(all)((MXW_T)NAN), r);
    r = N(where)(N(unordered)(x, y), N(add)(x, y), r);
    r = N(where)(N(or)(N(equal)(y, none), N(equal)(x, one)), one, r);
    r = N(where)(N(and)(N(equal)(x, N(all)(-1)), N(equal)(N(abs)(y), top)), one, r);
    r = N(where)(N(equal)(y, one), x, r);
    r = N(where)(N(equal)(y, N(all)(2)), N(mul)(x, x), r);
    return N(where)(N(equal)(y, N(all)(3)), N(mul)(N(mul)(x, x), x), r);
#undef N
}
