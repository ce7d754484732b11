"""The CUDA functions that formulas use beside CUDA's own: those of ``mxop_math.h``, with the same special values.

Each entry of :data:`FUNCTIONS` is one definition with what it needs; a kernel's source holds only what its text mentions.
They are templates over float and double; float16 never gets here, it is computed in float32.  Nothing here is fast math:
NaN, infinities and the sign of zero carry meaning.
"""

from __future__ import annotations

import re

from . import draws
from .headers import shared

#: Name and text; a text may mention the names above it.
FUNCTIONS: dict[str, str] = {
    "INFINITY": """\
#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#endif
""",
    "NAN": """\
#ifndef NAN
#define NAN __int_as_float(0x7fffffff)
#endif
""",
    # Integer division as MXNet's arrays have it: x / 0 is 0; the smallest number over -1 wraps.
    "mx_idiv": """\
#define mx_idiv(T, a, b) ((b) == 0 ? (T)0 : (b) == (T)-1 && (T)-1 < (T)1 ? (T)(0 - (unsigned long long)(a)) \\
    : (T)((a) / (b)))
""",
    # Remainder with the divisor's sign, as Python; x % 0 is 0.
    "mx_imod": """\
#define mx_imod(T, a, b) (((b) == 0 || ((b) == (T)-1 && (T)-1 < (T)1)) ? (T)0 \\
    : (T)((a) % (b) + ((((a) % (b)) != 0 && (((a) % (b)) < 0) != ((b) < 0)) ? (b) : 0)))
""",
    "mx_ifloordiv": """\
#define mx_ifloordiv(T, a, b) ((b) == 0 ? (T)0 : (b) == (T)-1 && (T)-1 < (T)1 ? (T)(0 - (unsigned long long)(a)) \\
    : (T)((a) / (b) - (((a) % (b)) != 0 && (((a) % (b)) < 0) != ((b) < 0))))
""",
    **shared("mxop_math_int.h"),
    "mx_sign": """\
template <typename T> __device__ inline T mx_sign(T x)
{
    return x > T(0) ? T(1) : (x < T(0) ? T(-1) : (x == T(0) ? T(0) : x));
}
""",
    # NaN in either operand gives NaN; a tie gives the first.
    "mx_maximum": """\
template <typename T> __device__ inline T mx_maximum(T a, T b) { return (a >= b) | (a != a) ? a : b; }
""",
    "mx_minimum": """\
template <typename T> __device__ inline T mx_minimum(T a, T b) { return (a <= b) | (a != a) ? a : b; }
""",
    # To the nearest integer, halves towards -infinity.
    "mx_rint": """\
template <typename T> __device__ inline T mx_rint(T x)
{
    const T c = ceil(x);
    return c - x >= T(0.5) ? floor(x) : c;
}
""",
    # CUDA's rsqrt errs by up to 2 ULP; this is the CPU's value.
    "mx_rsqrt": """\
template <typename T> __device__ inline T mx_rsqrt(T x) { return T(1) / sqrt(x); }
""",
    "mx_sigmoid": """\
template <typename T> __device__ inline T mx_sigmoid(T x)
{
    const T e = exp(-fabs(x));
    return (x < T(0) ? e : T(1)) / (T(1) + e);
}
""",
    "mx_softsign": """\
template <typename T> __device__ inline T mx_softsign(T x) { return x / (T(1) + fabs(x)); }
""",
    "mx_softplus": """\
template <typename T> __device__ inline T mx_softplus(T x)
{
    return (x > T(0) ? x : (x != x ? x : T(0))) + log1p(exp(-fabs(x)));
}
""",
    # Remainder with the divisor's sign, as Python; x % 0 is 0.
    "mx_mod": """\
template <typename T> __device__ inline T mx_mod(T x, T y)
{
    if (y == T(0))
        return x != x ? x : T(0);
    const T r = fmod(x, y);
    if (r == T(0))
        return copysign(T(0), y);
    return (r < T(0)) != (y < T(0)) ? r + y : r;
}
""",
    # The quotient that goes with mx_mod, rounded down, as NumPy's floor_divide.
    "mx_floordiv": """\
template <typename T> __device__ inline T mx_floordiv(T x, T y)
{
    if (y == T(0))
        return x / y;
    const T r = fmod(x, y);
    const T q = (x - r) / y - ((r != T(0)) & ((r < T(0)) != (y < T(0))) ? T(1) : T(0));
    if (q == T(0))
        return copysign(T(0), x / y);
    const T whole = floor(q);
    return q - whole > T(0.5) ? whole + T(1) : whole;
}
""",
    # psi(x) for 1 <= x <= 2 as (x - x0) g(x - 3/2); by a polynomial.
    "mxi_digamma": """\
__device__ inline double mxi_digamma_12(double x)
{
    const double g[] = {
        9.51055876031832836e-01, -4.23627421281457306e-01, 2.40542484240784782e-01,
        -1.48404923054858084e-01, 9.49887244535418257e-02, -6.19221331907270703e-02,
        4.07608338843387027e-02, -2.69758000292536666e-02, 1.79072505636197754e-02,
        -1.19081465139767376e-02, 7.92697273564635894e-03, -5.28090306609060520e-03,
        3.51875043619501345e-03, -2.33755264710311817e-03, 1.55807491372137613e-03,
        -1.07768639672342257e-03, 7.18410796904637820e-04, -3.54763520533719770e-04,
        2.36501717193398139e-04, -3.78390789724885788e-04, 2.52259050696488523e-04};
    const double y = x - 1.5;
    double s = g[20];
    for (int k = 19; k >= 0; k--)
        s = fma(s, y, g[k]);
    return ((x - 1.4616321449683622) - 9.54999542996569743e-17) * s;
}
/* Recurrence to [1, 2] or up to the asymptotic series; reflection below 0. */
__device__ inline double mxi_digamma(double x)
{
    const double pi = 3.14159265358979323846;
    double below = 0.0, z;
    if (x != x || x == (double)INFINITY)
        return x;
    if (x == 0.0)
        return copysign((double)INFINITY, -x);
    if (x < 0.0) {
        const double part = x - rint(x);
        if (part == 0.0 || x == -(double)INFINITY)
            return (double)NAN;
        below = -pi / tan(pi * part);
        x = 1.0 - x;
    }
    if (x < 1.0)
        return below + (mxi_digamma_12(x + 1.0) - 1.0 / x);
    if (x <= 2.0)
        return below + mxi_digamma_12(x);
    if (x <= 3.0)
        return below + (mxi_digamma_12(x - 1.0) + 1.0 / (x - 1.0));
    for (; x < 12.0; x += 1.0)
        below -= 1.0 / x;
    z = 1.0 / (x * x);
    const double tail = 1.0 / 12 + z * (-1.0 / 120 + z * (1.0 / 252 + z * (-1.0 / 240 + z * (1.0 / 132
        + z * (-691.0 / 32760 + z * (1.0 / 12))))));
    return below + (log(x) - 0.5 / x - z * tail);
}
""",
    **shared("mxop_math_special.h"),
    "mx_polygamma": """\
__device__ inline double mx_polygamma(int n, double x) { return mx_polygamma_f64(n, x); }
__device__ inline float mx_polygamma(int n, float x) { return (float)mx_polygamma_f64(n, (double)x); }
""",
    "mx_f32_bits": "__device__ inline unsigned mx_f32_bits(float x) { return (unsigned)__float_as_int(x); }\n",
    "mx_bits_f32": "__device__ inline float mx_bits_f32(unsigned u) { return __int_as_float((int)u); }\n",
    **shared("mxop_math_half.h"),
    # The device has instructions for the conversions, and the host, which runs the text in tests, the same results.
    "mx_half": """\
class mx_half {
    unsigned short bits;
public:
    mx_half() = default;
#ifdef __CUDA_ARCH__
    __device__ explicit mx_half(float x) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x)); }
    __device__ operator float() const
    {
        float x;
        asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
        return x;
    }
#else
    __device__ explicit mx_half(float x) : bits(mx_f32_to_f16(x)) {}
    __device__ operator float() const { return mx_f16_to_f32(bits); }
#endif
};
""",
    # Rounded to odd, a number may be rounded to a half without rounding twice.
    "mx_odd": """\
__device__ inline float mx_odd(float x) { return x; }
__device__ inline float mx_odd(double x) { return mx_odd_f32(x); }
__device__ inline float mx_odd(int x) { return mx_odd_f32((double)x); }
__device__ inline float mx_odd(long long x) { return mx_odd_f32(mx_odd_f64(x)); }
""",
}

FUNCTIONS |= draws.FUNCTIONS

#: Neighbours, that are read and written at once.
PACK = "template <typename T, int N> struct alignas(sizeof(T) * N) mx_pack { T v[N]; };\n"

_WORD = re.compile(r"\b(?:mxi?_\w+|INFINITY|NAN)\b")


def needed(text: str) -> list[str]:
    """Return the names of the functions that a text needs, in the order of their definition.

    Examples
    --------
    >>> needed("y0 = mx_softplus(a0)")
    ['mx_softplus']
    """
    found: set[str] = set()
    pending = [text]
    while pending:
        for name in set(_WORD.findall(pending.pop())) & FUNCTIONS.keys() - found:
            found.add(name)
            pending.append(FUNCTIONS[name])
    return [name for name in FUNCTIONS if name in found]


def definitions(text: str) -> str:
    """Return the definitions that a text needs."""
    return "".join(FUNCTIONS[name] for name in needed(text))
