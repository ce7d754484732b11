"""Checks of one call: values, types, requests, overlap, strides, empty and 0-d arrays, NaN and infinities.

May import :mod:`.cases`.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import MXNetError
from ..opdef import infer
from . import cases as c
from .cases import Case, Mismatch


def reference_values(case: Case, types: Sequence[str]) -> int:
    """Compare with the reference, for each type."""
    n = 0
    for dtype in types:
        values = case.sample(dtype)
        found = case.call(case.arrays(values))
        expected = case.expected(values)
        if len(found) != len(expected):
            raise Mismatch(f"{dtype}: {len(found)} outputs, the reference has {len(expected)}")
        for k, (got, want) in enumerate(zip(found, expected, strict=True)):
            _types_agree(case, dtype, values, k, got)
            c.compare(f"{dtype}: output {k}", got, want, _slack(case, dtype, got), values)
        n += 1
    return n


def _slack(case: Case, dtype: str, got: Any) -> float:
    """Return the tolerance of a result: that of the coarser of the input's type and its own."""
    own = c.name_of(got)
    slack = c.tolerance(case.record, own)
    if own in c.FLOATS and dtype in c.FLOATS:
        slack *= max(1.0, c.EPSILON[dtype] / c.EPSILON[own])
    return slack


def _types_agree(case: Case, dtype: str, values: Sequence[np.ndarray], k: int, got: Any) -> None:
    from .. import dtypes

    inferred = case.op.infer_outputs(case.attrs, [v.shape for v in values], [dtypes.CODES[dtype]] * len(values))[1]
    if inferred[k] != got.dtype_code:
        raise Mismatch(f"{dtype}: output {k} is {c.name_of(got)}, inference says {dtypes.NAMES[inferred[k]]}")


# ---- requests -----------------------------------------------------------------------------------------------------------
def requests(case: Case, types: Sequence[str]) -> int:
    """Check write, add and null, into plain and into strided outputs, and outputs that overlap the inputs."""
    n = 0
    for dtype in [t for t in ("float32", "float16", "int32", "bool") if t in types][:3]:
        inputs = case.arrays(case.sample(dtype))
        plain = case.call(inputs)
        for strided in (False, True):
            for req in (c.WRITE, c.ADD, c.NULL):
                if req == c.ADD and any(c.name_of(o) == "bool" for o in plain):
                    continue
                _request(case, f"{dtype}, {'strided ' if strided else ''}out=", inputs, plain, req, strided)
                n += 1
        n += _overlap(case, dtype)
    return n


_REQUESTS = {c.WRITE: "write", c.ADD: "add", c.NULL: "null"}


def _request(case: Case, what: str, inputs: list, plain: list, req: int, strided: bool) -> None:
    outs, before = [], []
    for o in plain:
        target = _strided_like(o, case.device) if strided else c.out_like(o, case.device)
        values = case.rng.integers(1, 5, o.shape).astype(c.numpy_dtype(c.name_of(o)))
        c.store(target, values)
        outs.append(target)
        before.append(values)
    case.call(inputs, out=outs, req=req)
    for k, (o, p, b) in enumerate(zip(outs, plain, before, strict=True)):
        name = f"{what} req={_REQUESTS[req]}: output {k}"
        if req == c.NULL:
            c.identical(name, o, b)
        elif req == c.WRITE:
            c.identical(name, o, p)
        elif c.name_of(o) in c.FLOATS:  # the result may be rounded before the addition, and is after it
            with np.errstate(all="ignore"):
                c.compare(name, o, c.wide(p) + c.wide(b), 2.0)
        else:
            with np.errstate(all="ignore"):
                c.compare(name, o, (p.asnumpy() + b).astype(b.dtype), 0.0)


def _strided_like(array: Any, device: Any) -> Any:
    """Return an array of the same shape whose elements lie in Fortran order with gaps."""
    shape = array.shape
    strides, step = [], 2
    for d in shape:
        strides.append(step)
        step *= max(d, 1) + 1
    return c.buffer(step + 2, c.name_of(array), device)._view(shape, tuple(strides), 1)


def _overlap(case: Case, dtype: str) -> int:
    """An output that shares memory with the first input: as if all inputs had been copied first."""
    values = case.sample(dtype)
    if not values:
        return 0
    plain = case.call(case.arrays(values))
    first, out = values[0], plain[0]
    if c.name_of(out) != dtype or first.size == 0:
        return 0
    n = 0
    places = [("shifted by 1", 1, False), ("shifted by 3", 3, False), ("reversed", 0, True)]
    if first.shape == out.shape:
        places.append(("in place", 0, False))
    for name, offset, reverse in places:
        base = c.buffer(max(first.size, out.size) + 8, dtype, case.device)
        x = c.flat_view(base, first.shape)
        c.store(x, first)
        target = c.flat_view(base, out.shape, offset, reverse)
        inputs = [x, *case.arrays(values[1:])]
        case.call(inputs, out=[target, *plain[1:]])
        c.identical(f"{dtype}, out= overlaps the first input, {name}: output 0", target, out)
        n += 1
    return n


# ---- shapes and strides -------------------------------------------------------------------------------------------------
def small_shapes(case: Case, types: Sequence[str]) -> int:
    """Elementwise operators take empty and 0-d arrays."""
    if case.op.kind != "elementwise" or not case.shapes:
        return 0
    n = 0
    for dtype in [t for t in ("float32", "int32") if t in types]:
        for shape in ((), (0,), (2, 0, 3), (1, 1, 1)):
            values = case.sample(dtype, [shape] * len(case.shapes))
            found = case.call(case.arrays(values))
            for k, (got, want) in enumerate(zip(found, case.expected(values), strict=True)):
                want = np.asarray(want).reshape(shape)
                c.compare(f"{dtype}, shape {shape}: output {k}", got, want, _slack(case, dtype, got), values)
            n += 1
    return n


def layouts(array: np.ndarray) -> list[tuple[str, np.ndarray, Any]]:
    """Return (name, values, make): the same or similar values, and how to lay them out in memory."""
    shape = array.shape
    found = []
    if array.ndim >= 2:
        order = tuple(range(array.ndim))[::-1]
        found.append(("transposed", array, _permuted(order)))
    if array.ndim:
        found.append(("negative strides", array, _reversed))
        found.append(("sliced", array, _sliced))
        axis = max(range(array.ndim), key=lambda i: shape[i])
        if shape[axis]:
            same = np.broadcast_to(np.take(array, [0], axis), shape)
            found.append((f"stride 0 on axis {axis}", np.ascontiguousarray(same), _repeated(axis)))
    found.append(("offset by one element", array, _offset))
    return found


def _permuted(order: tuple[int, ...]):
    def make(values: np.ndarray, device: Any) -> Any:
        strides, step = [0] * values.ndim, 1
        for axis in order[::-1]:
            strides[axis] = step
            step *= max(values.shape[axis], 1)
        return _filled(values, tuple(strides), 0, values.size, device)

    return make


def _reversed(values: np.ndarray, device: Any) -> Any:
    strides = tuple(-s for s in c.contiguous_strides(values.shape))
    return _filled(values, strides, max(values.size - 1, 0), values.size, device)


def _sliced(values: np.ndarray, device: Any) -> Any:
    strides, step = [], 2
    for d in reversed(values.shape):
        strides.append(step)
        step *= d + 1
    return _filled(values, tuple(reversed(strides)), 3, step + 3, device)


def _repeated(axis: int):
    def make(values: np.ndarray, device: Any) -> Any:
        strides = list(c.contiguous_strides(values.shape))
        strides[axis] = 0
        base = c.buffer(values.size, values.dtype.name, device)
        one = np.take(values, [0], axis)
        few = base._view(one.shape, tuple(strides), 0)
        c.store(few, one)
        return base._view(values.shape, tuple(strides), 0)

    return make


def _offset(values: np.ndarray, device: Any) -> Any:
    return _filled(values, c.contiguous_strides(values.shape), 1, values.size + 1, device)


def _filled(values: np.ndarray, strides: tuple[int, ...], offset: int, n: int, device: Any) -> Any:
    view = c.buffer(max(n, 1), values.dtype.name, device)._view(values.shape, strides, offset)
    if values.size:
        c.store(view, values)
    return view


def strides(case: Case, types: Sequence[str]) -> int:
    """Inputs of any strides give what contiguous ones give."""
    n = 0
    for dtype in [t for t in ("float32", "int32") if t in types][:1]:
        values = case.sample(dtype)
        for k in range(len(values)):
            for name, laid, make in layouts(values[k]):
                given = [*values[:k], laid, *values[k + 1 :]]
                plain = case.call(case.arrays(given))
                inputs = case.arrays(given)
                inputs[k] = make(laid, case.device)
                for j, (got, want) in enumerate(zip(case.call(inputs), plain, strict=True)):
                    what = f"{dtype}, input {k} {name}: output {j}"
                    if case.op.kind == "elementwise":
                        c.identical(what, got, want)
                    else:  # sums may be taken in another order
                        c.compare(what, got, c.wide(want), _slack(case, dtype, got))
                n += 1
    return n


# ---- NaN, infinities, signed zeros, denormals ----------------------------------------------------------------------------
def special_values(case: Case, types: Sequence[str]) -> int:
    """Elementwise operators treat special numbers as the reference does, in every lane of the vector loops."""
    if case.op.kind != "elementwise" or not case.record.special or not case.shapes or len(case.shapes) > 2:
        return 0
    n = 0
    for dtype in [t for t in types if t in c.FLOATS]:
        tiny, largest = c.DENORMAL[dtype], c._largest(dtype)
        # np.array of Python floats is float64: all of these are exact in it
        points = np.array(
            [np.nan, np.inf, -np.inf, 0.0, -0.0, tiny, -tiny, 1000 * tiny, 1.0, -1.0, 0.5, largest, -largest]
        )
        if len(case.shapes) == 2:
            pairs = list(itertools.product(points, points))
            values = [np.array([p[i] for p in pairs]).astype(c.numpy_dtype(dtype)) for i in range(2)]
        else:
            values = [np.tile(points, 6)[:-1].astype(c.numpy_dtype(dtype))]  # 77: the loops' tails as well
        found = case.call(case.arrays(values))
        for k, (got, want) in enumerate(zip(found, case.expected(values), strict=True)):
            want = np.asarray(want)
            c.compare(f"{dtype}, special values: output {k}", got, want, 2 * _slack(case, dtype, got), values)
            if c.name_of(got) == dtype and want.dtype.kind == "f":
                _small_results(
                    f"{dtype}, special values: output {k}", got, want, dtype, _slack(case, dtype, got), values
                )
        n += 1
    return n


def _small_results(
    what: str, got: Any, want: np.ndarray, dtype: str, slack: float, values: Sequence[np.ndarray]
) -> None:
    """Near zero only relative errors, and the sign of zero, say whether denormals and -0.0 are kept."""
    found = got.asnumpy().astype(np.float64)
    with np.errstate(all="ignore"):
        zero = (want == 0) & (found == 0)
        if len(values) == 2:  # of 0.0 and -0.0 together NumPy's own loops pick now the one, now the other
            zero &= ~((values[0] == 0) & (values[1] == 0) & (np.signbit(values[0]) != np.signbit(values[1])))
        small = np.isfinite(want) & np.isfinite(found) & (np.abs(want) < 1e-6)
        allowed = 2 * slack * (c.EPSILON[dtype] * np.abs(want) + c.DENORMAL[dtype])
        wrong = (zero & (np.signbit(want) != np.signbit(found))) | (small & (np.abs(found - want) > allowed))
    if wrong.any():
        raise Mismatch(f"{what} near zero: {c._where(found, want, wrong, values)}")


# ---- inference ----------------------------------------------------------------------------------------------------------
def inference(case: Case, types: Sequence[str]) -> int:
    """Shapes and types are completed in both directions, never wrongly, and contradictions are refused."""
    from .. import dtypes

    dtype = types[0]
    found = case.call(case.arrays(case.sample(dtype)))
    hidden = case.op.num_outputs(case.attrs, len(case.shapes))
    ins = list(case.shapes)
    outs = case.op.infer_shape(case.attrs, list(ins), [None] * hidden)[1]
    for k, o in enumerate(found):
        if not infer.compatible(outs[k], o.shape):
            raise Mismatch(f"output {k} has shape {o.shape}, inference says {outs[k]}")
    n = 1
    for k in range(len(ins)):
        partial = [None, tuple(None for _ in ins[k])] + [
            (*ins[k][:i], None, *ins[k][i + 1 :]) for i in range(len(ins[k]))
        ]
        for shape in partial:
            for know_outs in (True, False):
                _complete(case, [*ins[:k], shape, *ins[k + 1 :]], outs if know_outs else [None] * hidden, ins, outs)
                n += 1
    _complete(case, [None] * len(ins), outs, ins, outs)
    for k in range(len(found)):
        if outs[k] and outs[k][0] is not None:
            wrong = list(outs)
            wrong[k] = (outs[k][0] + 1, *outs[k][1:])
            try:
                case.op.infer_shape(case.attrs, list(ins), wrong)
            except MXNetError:
                pass
            else:
                raise Mismatch(f"inference accepts output {k} of shape {wrong[k]} where the inputs give {outs[k]}")
            n += 1
    code = dtypes.CODES[dtype]
    in_types, out_types = [code] * len(ins), [o.dtype_code for o in found] + [-1] * (hidden - len(found))
    for known_ins, known_outs in ((in_types, [-1] * hidden), ([-1] * len(ins), out_types)):
        got = case.op.infer_type(case.attrs, list(known_ins), list(known_outs))
        for known, is_ in zip([*got[0], *got[1]], [*in_types, *out_types], strict=True):
            if known not in (is_, -1) and is_ != -1:
                true = f"{in_types} -> {out_types}"
                raise Mismatch(f"from types {known_ins} -> {known_outs} inference finds {got}, true are {true}")
        n += 1
    return n


def _complete(case: Case, ins: list, outs: Sequence, true_ins: list, true_outs: Sequence) -> None:
    """Complete partial shapes: what is found must be true, or one of several possibilities, chosen by the operator (one
    slope for each channel, or one for all); an operator of equal shapes must find all.
    """
    given = f"{ins} -> {list(outs)}"
    try:
        got = case.op.infer_shape(case.attrs, list(ins), list(outs))
    except MXNetError as problem:
        raise Mismatch(f"inference from {given} fails: {problem}") from None
    for found, true in zip([*got[0], *got[1]], [*true_ins, *true_outs], strict=True):
        if found is None:
            agree = True
        else:
            agree = len(found) == len(true) and all(f in (None, t) for f, t in zip(found, true, strict=True))
        if not agree and not _valid(case, got[0], true_outs):
            raise Mismatch(
                f"inference from {given} finds {got[0]} -> {got[1]}, true is {true_ins} -> {list(true_outs)}"
            )
    equal = case.op.kind == "elementwise" and not case.op.broadcast
    rank_known = [s for s in (*ins, *outs) if s is not None and None not in s]
    if equal and rank_known and (list(got[0]) != list(true_ins) or list(got[1]) != list(true_outs)):
        raise Mismatch(f"inference from {given} finds only {got[0]} -> {got[1]}")


def _valid(case: Case, ins: list, outs: Sequence) -> bool:
    """Tell whether these complete input shapes give these outputs, too."""
    if any(s is None or None in s for s in ins):
        return False
    try:
        return list(case.op.infer_shape(case.attrs, list(ins), [None] * len(outs))[1]) == list(outs)
    except MXNetError:
        return False
