"""The CUDA text of what draws random numbers: the same words as the CPU's, one element at a time.

Philox, and the distributions that need rejection, are the text of ``mxop_samplers.h``.
"""

from __future__ import annotations

from .headers import shared

#: The number of an element among those that are drawn.  A kernel whose threads have the four elements of one call of Philox (or
#: of two, for float64) defines MX_DRAWN; then it is the call, and which of its words.
_COUNTER = """\
#ifdef MX_DRAWN
struct mx_counter {
    unsigned long long call;
    unsigned word;
    __device__ operator unsigned long long() const { return call >> 4 << 6 | call & 15 | (unsigned long long)word << 4; }
};
__device__ inline unsigned mxi_random_word(unsigned long long key, unsigned long long call, unsigned word)
{
    unsigned w[4];
    mxi_philox(key, call, 0, 0, w);
    return word == 0 ? w[0] : word == 1 ? w[1] : word == 2 ? w[2] : w[3];
}
__device__ inline unsigned mxi_random_one(unsigned long long key, mx_counter i) { return mxi_random_word(key, i.call, i.word); }
__device__ inline unsigned long long mxi_random_two(unsigned long long key, mx_counter i)
{
    const unsigned long long call = i.call >> 4 << 5 | (unsigned long long)(i.word >> 1) << 4 | i.call & 15;
    const unsigned word = i.word & 1;
    return (unsigned long long)mxi_random_word(key, call, word) << 32 | mxi_random_word(key, call, 2 + word);
}
#else
typedef unsigned long long mx_counter;
__device__ inline unsigned mxi_random_word(unsigned long long key, unsigned long long group, unsigned at)
{
    unsigned w[4];
    mxi_philox(key, group * 16 + at % 16, 0, 0, w);
    return w[at / 16];
}
__device__ inline unsigned mxi_random_one(unsigned long long key, mx_counter i)
{
    return mxi_random_word(key, i / 64, (unsigned)(i % 64));
}
__device__ inline unsigned long long mxi_random_two(unsigned long long key, mx_counter i)
{
    const unsigned e = (unsigned)(i % 32);
    return (unsigned long long)mxi_random_word(key, i / 32, e) << 32 | mxi_random_word(key, i / 32, 32 + e);
}
#endif
"""


def _sampler(name: str) -> str:
    head = f"template <typename T> __device__ inline T mx_random_{name}(unsigned long long key, mx_counter i, T p)"
    return f"{head}\n{{\n    return (T)mxi_{name}_of(key, i, (double)p);\n}}\n"


def _of_type(name: str, ctype: str, value: str) -> str:
    head = f"template <> __device__ inline {ctype} {name}<{ctype}>(unsigned long long key, mx_counter i)"
    return f"{head} {{ return {value}; }}\n"


def _template(name: str, values: dict[str, str]) -> str:
    head = f"template <typename T> __device__ T {name}(unsigned long long key, mx_counter i);\n"
    return head + "".join(_of_type(name, ctype, value) for ctype, value in values.items())


_ONE, _TWO = "mxi_random_one(key, i)", "mxi_random_two(key, i)"

#: Name and text, as in :data:`.preamble.FUNCTIONS`.
FUNCTIONS: dict[str, str] = {
    **shared("mxop_samplers.h"),
    "mx_counter": _COUNTER,
    "mx_random": _template("mx_random", {
        "float": f"(float)(int)({_ONE} >> 8) * 5.9604644775390625e-08f",
        "double": f"(double)(long long)({_TWO} >> 11) * 1.1102230246251565e-16",
        "unsigned char": f"(unsigned char)({_ONE} >> 24)",
        "signed char": f"(signed char)({_ONE} >> 25)",
        "int": f"(int)({_ONE} >> 1)",
        "long long": f"(long long)({_TWO} >> 1)",
    }),
    "mx_random_signed": _template("mx_random_signed", {
        "float": f"(float)((int)({_ONE} >> 8) * 2 - 0xffffff) * 5.9604644775390625e-08f",
        "double": f"(double)((long long)({_TWO} >> 11) * 2 - 0x1fffffffffffffll) * 1.1102230246251565e-16",
    }),
    "mx_random_gamma": _sampler("gamma"),
    "mx_random_poisson": _sampler("poisson"),
}  # fmt: skip
