"""Kernels that take elements, add them up at places, and add them up along an axis; for CuPy's ``ElementwiseKernel``.

None of them waits for the device, and none has atomic additions: results are the same every time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..support import dtypes
from . import compiled, device
from .launch import code_of
from .layout import BLOCK, SHORT_INDEX
from .text import COMPUTE, STORAGE, WORDS, Source, prologue, read

#: C's type of a word, by its bytes.
_WORDS = {16: "mx_pack<unsigned int, 4>", **WORDS}


def launch(name: str, arrays: dict[str, tuple[str, Any]], numbers: dict[str, float], lines: Sequence[str], size: int,
           reach: int) -> None:  # fmt: skip
    """Launch a kernel whose text begins with pointers to arrays, and which counts elements up to `reach`."""
    wide = reach >= SHORT_INDEX
    pointers = [f"{ctype} *const {at} = ({ctype} *)at_{at};" for at, (ctype, _) in arrays.items()]
    given, counted = [f"uint64 at_{at}" for at in arrays], "uint64" if wide else "uint32"
    given += [f"{'float64' if isinstance(number, float) else counted} {n}" for n, number in numbers.items()]
    operation = "\n".join([*pointers, *lines])
    index = f"typedef unsigned {'long long' if wide else 'int'} mx_index;\n"
    source = Source(", ".join(given), "", operation, f"mxop_{name}", prologue(operation, ["mx_pack"]) + index)
    kernel = compiled.elementwise(source, device.id_of(next(iter(arrays.values()))[1]))
    kernel(*[a.data.ptr for _, a in arrays.values()], *numbers.values(), size=size, block_size=BLOCK)


def _converted(code: int, text: str, summed: int, result: int) -> str:
    """Return the text of an element in the type in which elements are added up; of a result of truths, whether it is not 0."""
    number = read(code, text, COMPUTE[dtypes.COMPUTED_AS.get(code, code)])
    return f"({number} != 0)" if result == dtypes.BOOL else STORAGE[summed][2].format(number)


def _whole(code: int, text: str) -> str:
    """Return the text of an index as an integer: fractions are cut off, NaN is below all."""
    if code not in dtypes.FLOATS:
        return f"(long long){text}"
    number = read(code, text, "double")
    return f"mx_whole({number})"


#: What is beyond all integers becomes the last of them, NaN the first.
_MX_WHOLE = (
    "const auto mx_whole = [](double v) { return v > 9.2e18 ? 9223372036854775807LL : v > -9.2e18 ? (long long)v : "
    "-9223372036854775807LL; };"
)
_OUT_OF_RANGE = {
    "clip": "at = at < 0 ? 0 : at >= (long long)middle ? (long long)middle - 1 : at;",
    "wrap": "at %= (long long)middle; at += at < 0 ? (long long)middle : 0;",
}


def take(source: Any, index: Any, out: Any, outer: int, n: int, inner: int, mode: str) -> None:
    """Write the parts of an array, seen as ``(outer, n, inner)``, that indices name along its middle axis.

    Parameters
    ----------
    source, index, out : cupy.ndarray
        In C order; `source` and `out` are of one type.
    mode : str
        What an index out of range means, ``clip`` or ``wrap``.
    """
    if out.size == 0:
        return
    nbytes = inner * source.dtype.itemsize
    width = next(w for w in _WORDS if not any(number % w for number in (nbytes, source.data.ptr, out.data.ptr)))
    words, code = nbytes // width, code_of(index)
    total = outer * index.size * words
    lines = [
        _MX_WHOLE * (code in dtypes.FLOATS),
        "const mx_index here = (mx_index)i, row = here / words;",
        f"long long at = {_whole(code, 'index[row % count]')};",
        _OUT_OF_RANGE[mode],
        "y[here] = x[((row / count) * (mx_index)middle + (mx_index)at) * words + here % words];",
    ]
    word = _WORDS[width]
    arrays = {"x": (f"const {word}", source), "index": (f"const {STORAGE[code][0]}", index), "y": (word, out)}
    numbers = {"words": words, "count": index.size, "middle": n}
    launch("take", arrays, numbers, lines, total, max(total, outer * n * words))


def in_order(xp: Any, place: Any, n: int) -> tuple[Any, Any]:
    """Return the permutation that sorts elements by their places, and where in it those of each of `n` places begin and end.

    Elements whose places are below 0, or from `n` on, are outside of these ranges.
    """
    order = xp.argsort(place, kind="stable")
    return order, xp.searchsorted(place[order], xp.arange(n + 1))


def sums_at(source: Any, order: Any, starts: Any, out: Any, outer: int, n: int, inner: int, add: bool) -> None:
    """Write for each place along the middle axis of ``(outer, n, inner)`` the sum of the rows of an array that belong there.

    Rows are added one by one, those of halves in float32, as on the CPU.

    Parameters
    ----------
    source : cupy.ndarray
        In C order, ``(outer, count, inner)``.
    order : cupy.ndarray of int64
        The rows, sorted by their places.
    starts : cupy.ndarray of int64
        For each place, where its rows begin in `order`; at last their number.
    out : cupy.ndarray
        In C order.
    add : bool
        Add them up; otherwise the last one counts.
    """
    code, result, total = code_of(source), code_of(out), outer * n * inner
    if total == 0:
        return
    summed = dtypes.summed_in(result)
    ctype = COMPUTE[summed]
    value = _converted(code, "x[((at / middle) * count + (mx_index)order[k]) * inner + here % inner]", summed, code)
    step = f"sum = ({ctype})(sum + {value});" if add else f"sum = {value};"
    begin = "first" if add else "end > first ? end - 1 : end"
    lines = [
        "const mx_index here = (mx_index)i, at = here / inner;",
        f"{ctype} sum = 0;",
        "const long long first = starts[at % middle], end = starts[at % middle + 1];",
        f"for (long long k = {begin}; k < end; k++)",
        f"    {step}",
        f"y[here] = {STORAGE[result][2].format('sum')};",
    ]
    arrays = {"x": (f"const {STORAGE[code][0]}", source), "order": ("const long long", order),
              "starts": ("const long long", starts), "y": (STORAGE[result][0], out)}  # fmt: skip
    count = order.size
    launch("sums_at", arrays, {"inner": inner, "middle": n, "count": count}, lines, total, max(total, outer * count * inner))


#: Elements of a row that a thread adds up before the threads of its block do.
_EACH = 8


def running_sums(source: Any, out: Any, outer: int, n: int, inner: int) -> None:
    """Write the sums of the first elements along the middle axis of ``(outer, n, inner)``.

    Neighbouring columns have a thread each; of few, a block of threads adds up each, in an order that the size alone decides.
    """
    if out.size == 0:
        return
    code, result = code_of(source), code_of(out)
    summed = dtypes.summed_in(result)
    ctype = COMPUTE[summed]
    value = _converted(code, "x[place]", summed, result)
    store = f"y[place] = {STORAGE[result][2].format('sum')};"
    columns = inner >= 32
    if columns:
        lines = [
            "const mx_index here = (mx_index)i;",
            "mx_index place = here / inner * middle * inner + here % inner;",
            f"{ctype} sum = 0;",
            "for (mx_index k = 0; k < middle; k++, place += inner) {",
            f"    sum = ({ctype})(sum + {value});",
            f"    {store}",
            "}",
        ]
    else:
        lines = _block_of_sums(ctype, value, store)
    arrays = {"x": (f"const {STORAGE[code][0]}", source), "y": (STORAGE[result][0], out)}
    size = outer * inner * (1 if columns else BLOCK)
    reach = outer * n * inner + _EACH * BLOCK * inner
    launch("running_sums", arrays, {"middle": n, "inner": inner}, lines, size, max(reach, size))


def _block_of_sums(ctype: str, value: str, store: str) -> list[str]:
    """Return the lines of a block of threads that goes through one column, :data:`_EACH` elements a thread at once."""
    return [
        f"__shared__ {ctype} part[{BLOCK}];",
        "const mx_index thread = threadIdx.x, first = blockIdx.x / inner * middle * inner + blockIdx.x % inner;",
        f"{ctype} before = 0;",
        f"for (mx_index begin = 0; begin < middle; begin += {BLOCK * _EACH}) {{",
        f"    const mx_index from = begin + thread * {_EACH}, to = from + {_EACH} < middle ? from + {_EACH} : middle;",
        f"    {ctype} sum = 0;",
        "    for (mx_index k = from; k < to; k++) {",
        "        const mx_index place = first + k * inner;",
        f"        sum = ({ctype})(sum + {value});",
        "    }",
        "    part[thread] = sum;",
        "    __syncthreads();",
        f"    for (int step = 1; step < {BLOCK}; step *= 2) {{",
        f"        const {ctype} lower = (int)thread >= step ? part[thread - step] : ({ctype})0;",
        "        __syncthreads();",
        f"        part[thread] = ({ctype})(part[thread] + lower);",
        "        __syncthreads();",
        "    }",
        f"    sum = (({ctype})(before + (thread ? part[thread - 1] : ({ctype})0)));",
        "    for (mx_index k = from; k < to; k++) {",
        "        const mx_index place = first + k * inner;",
        f"        sum = ({ctype})(sum + {value});",
        f"        {store}",
        "    }",
        f"    before = ({ctype})(before + part[{BLOCK - 1}]);",
        "    __syncthreads();",
        "}",
    ]


__all__ = ["in_order", "launch", "running_sums", "sums_at", "take"]
