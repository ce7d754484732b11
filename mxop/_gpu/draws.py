"""The CUDA text of what draws random numbers: the same words as ``mxop_random.h`` makes, one element at a time.

Imports nothing of mxop.
"""

_WORD = """\
__device__ inline unsigned mxi_random_word(unsigned long long key, unsigned long long group, unsigned at)
{
    const unsigned long long call = group * 16 + at % 16;
    unsigned c0 = (unsigned)call, c1 = (unsigned)(call >> 32), c2 = 0, c3 = 0;
    unsigned k0 = (unsigned)key, k1 = (unsigned)(key >> 32);
    for (int round = 0; round < 10; round++) {
        const unsigned long long p = 0xD2511F53ull * c0, q = 0xCD9E8D57ull * c2;
        c0 = (unsigned)(q >> 32) ^ c1 ^ k0;
        c2 = (unsigned)(p >> 32) ^ c3 ^ k1;
        c1 = (unsigned)q;
        c3 = (unsigned)p;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return at < 16 ? c0 : at < 32 ? c1 : at < 48 ? c2 : c3;
}
__device__ inline unsigned mxi_random_one(unsigned long long key, unsigned long long i)
{
    return mxi_random_word(key, i / 64, (unsigned)(i % 64));
}
__device__ inline unsigned long long mxi_random_two(unsigned long long key, unsigned long long i)
{
    const unsigned e = (unsigned)(i % 32);
    return (unsigned long long)mxi_random_word(key, i / 32, e) << 32 | mxi_random_word(key, i / 32, 32 + e);
}
"""


def _of_type(name: str, ctype: str, value: str) -> str:
    head = f"template <> __device__ inline {ctype} {name}<{ctype}>(unsigned long long key, unsigned long long i)"
    return f"{head} {{ return {value}; }}\n"


def _template(name: str, values: dict[str, str]) -> str:
    head = f"template <typename T> __device__ T {name}(unsigned long long key, unsigned long long i);\n"
    return head + "".join(_of_type(name, ctype, value) for ctype, value in values.items())


_ONE, _TWO = "mxi_random_one(key, i)", "mxi_random_two(key, i)"

#: Name and text, as in :data:`.preamble.FUNCTIONS`.
FUNCTIONS: dict[str, str] = {
    "mxi_random_one": _WORD,
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
}  # fmt: skip
