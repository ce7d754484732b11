"""Orders of rows as CUDA text: a block of threads sorts some rows in its shared memory, by a bitonic network.

A row is sorted by words that are ordered as its elements are, and by positions: equal elements keep their order.  Of the first
`k` elements, runs of `k` are sorted; then of each two runs the better half is kept and sorted again, until one is left.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..support import dtypes
from . import compiled, device
from .strips import DYNAMIC, SHARED
from .text import STORAGE, WORDS, prologue

#: Elements that a block sorts at least, if there are as many rows.
_SORTED_AT_ONCE = 1024
#: Bits of infinity, which are below those of NaN.
_INFINITY = {dtypes.FLOAT16: 0x7C00, dtypes.BFLOAT16: 0x7F80, dtypes.FLOAT32: 0x7F800000, dtypes.FLOAT64: 0x7FF << 52}

_TEXT = """
extern "C" __global__ void mxop_sort(const mx_bits *x, mx_result *y, unsigned int n, unsigned int k, unsigned int size,
        unsigned int run, unsigned int at_once, unsigned int rows)
{{
    mx_word *const words = (mx_word *)mx_shared;
    unsigned short *const places = (unsigned short *)(words + at_once * size);
    const unsigned int first = blockIdx.x * at_once, some = size / run;
    for (unsigned int t = threadIdx.x; t < at_once * size; t += blockDim.x) {{
        const unsigned int row = first + t / size, i = t % size;
        words[t] = row < rows && i < n ? mx_word_of(x[(unsigned long long)row * n + i]) : (mx_word)~(mx_word)0;
        places[t] = (unsigned short)i;
    }}
    for (unsigned int sorted = 2; sorted <= run; sorted *= 2)
        for (unsigned int step = sorted / 2; step; step /= 2) {{
            __syncthreads();
            for (unsigned int t = threadIdx.x; t < at_once * size / 2; t += blockDim.x) {{
                const unsigned int a = 2 * t - (t & (step - 1));
                mx_order(words, places, a, a + step, (a & sorted & (size - 1)) != 0);
            }}
        }}
    for (unsigned int apart = run, runs = some / 2; runs; apart *= 2, runs /= 2) {{
        __syncthreads();
        for (unsigned int t = threadIdx.x; t < at_once * runs * run; t += blockDim.x) {{
            const unsigned int a = t / run * apart * 2 + t % run;
            mx_order(words, places, a, a + apart, false);
        }}
        for (unsigned int step = run / 2; step; step /= 2) {{
            __syncthreads();
            for (unsigned int t = threadIdx.x; t < at_once * runs * run / 2; t += blockDim.x) {{
                const unsigned int r = t / (run / 2), i = t % (run / 2), a = r * apart * 2 + 2 * i - (i & (step - 1));
                mx_order(words, places, a, a + step, (r & (runs - 1) & 1) != 0);
            }}
        }}
    }}
    __syncthreads();
    for (unsigned int t = threadIdx.x; t < at_once * k; t += blockDim.x) {{
        const unsigned int row = first + t / k;
        if (row < rows) {{
            const int place = places[t / k * size + t % k];
            y[(unsigned long long)row * k + t % k] = {result};
        }}
    }}
}}
"""

_ORDER = """
/* Exchange two elements unless the first one is before the second (behind it, if turned). */
__device__ void mx_order(mx_word *words, unsigned short *places, unsigned int a, unsigned int b, bool turned)
{
    const mx_word p = words[a], q = words[b];
    const unsigned short i = places[a], j = places[b];
    if ((p > q || (p == q && i > j)) != turned) {
        words[a] = q;
        words[b] = p;
        places[a] = j;
        places[b] = i;
    }
}
"""


def _word(code: int, descending: bool) -> str:
    """Return the text of what makes a word of an element: words are ordered as the elements are, or the other way round."""
    width = 8 * dtypes.SIZES[code]
    sign, all_ones = 1 << (width - 1), (1 << width) - 1
    if code in dtypes.FLOATS:
        lines = [
            f"const mx_word magnitude = bits & {sign - 1:#x}ULL;",
            f"mx_word found = bits & {sign:#x}ULL ? ~bits & {all_ones:#x}ULL : bits | {sign:#x}ULL;",
            f"found = magnitude > {_INFINITY[code]:#x}ULL ? {all_ones:#x}ULL : magnitude ? found : {sign:#x}ULL;",
        ]
    elif code in (dtypes.UINT8, dtypes.BOOL):
        lines = ["const mx_word found = bits;"]
    else:
        lines = [f"const mx_word found = bits ^ {sign:#x}ULL;"]
    result = f"~found & {all_ones:#x}ULL" if descending else "found"
    return "\n".join(["__device__ mx_word mx_word_of(const mx_word bits)", "{", *(f"    {t}" for t in lines),
                      f"    return (mx_word)({result});", "}", ""])  # fmt: skip


def _word_bytes(code: int) -> int:
    return 8 if dtypes.SIZES[code] == 8 else 4


def fits(n: int, code: int) -> bool:
    """Return whether rows of `n` elements of a type are sorted here: a block's shared memory holds one."""
    return n > 1 and (1 << (n - 1).bit_length()) * (_word_bytes(code) + 2) <= SHARED


def text(code: int, result: int | None, descending: bool) -> str:
    """Return the text of a kernel; its results are positions of a type, or elements (None)."""
    bits = WORDS[dtypes.SIZES[code]]
    written = bits if result is None else STORAGE[result][0]
    value = "x[(unsigned long long)row * n + place]" if result is None else STORAGE[result][2].format("place")
    kinds = {"mx_word": WORDS[_word_bytes(code)], "mx_bits": bits, "mx_result": written}
    return "".join([prologue(value, ["mx_half"]), DYNAMIC, *(f"typedef {c} {name};\n" for name, c in kinds.items()), _ORDER,
                    _word(code, descending), _TEXT.format(result=value)])  # fmt: skip


def in_order(x: Any, out: Any, descending: bool, elements: bool) -> None:
    """Write which elements of each row are the first, in order: their positions, or the elements.

    Parameters
    ----------
    x, out : cupy.ndarray
        ``(rows, n)`` and ``(rows, k)``, in C order; :func:`fits` says of which lengths.
    """
    if not out.size:
        return
    (rows, n), k, code = x.shape, out.shape[1], dtypes.code_of(x.dtype)
    size = 1 << (n - 1).bit_length()
    run = min(max(1 << (k - 1).bit_length(), 2), size)
    at_once = max(min(_SORTED_AT_ONCE // size, rows), 1)
    place = device.id_of(x)
    source = text(code, None if elements else dtypes.code_of(out.dtype), descending)
    function = compiled.module(source, place).get_function("mxop_sort")
    threads = min(max(at_once * size // 8, 32), 1024)
    numbers = tuple([np.uint32(v) for v in (n, k, size, run, at_once, rows)])
    function((-(-rows // at_once),), (threads,), (x.data.ptr, out.data.ptr, *numbers),
             shared_mem=at_once * size * (_word_bytes(code) + 2))  # fmt: skip


__all__ = ["fits", "in_order", "text"]
