"""Checks of one call: values, types, states, requests, overlap, strides, alignment."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Any

import numpy as np

from ..opdef import Kernel
from ..support import dtypes
from . import cases as c
from .cases import Case, Mismatch

#: Elements of larger inputs: as many, or some less; how much more their sums may be off; and seconds for the reference.
LARGE, MORE, PATIENCE = (6_000, 600), 64.0, 1.0
#: About how many elements of an input show what the alignment of the data does to vector loops.
ALIGNED = 300


def reference_values(case: Case, types: Sequence[str]) -> int:
    """Compare results and states with the reference, for each type; of random numbers shapes and types alone."""
    n = 0
    for dtype in types:
        values = case.sample(dtype)
        results = case.run(values)
        for k, got in enumerate(results[0]):
            _type_is_right(case, dtype, values, k, len(results[0]), got)
        if case.record.distribution is None:
            against_reference(case, dtype, dtype, values, results, case.expected(values))
        n += 1
    return n


def large(case: Case, types: Sequence[str]) -> int | str:
    """Results of inputs larger than the record's are those of the reference, and inputs stay what they were."""
    dtype = "float32" if "float32" in types else types[0]
    if len(set(case.shapes)) != 1 or 0 in case.shapes[0]:
        return "it has no inputs, empty ones, or some of shapes of their own, whose references may take ages"
    case = case.aside()
    values = case.enlarged(dtype, LARGE)
    begun, own = perf_counter(), case.sample(dtype)
    case.expected(own)
    if (perf_counter() - begun) * sum(v.size for v in values) > PATIENCE * sum(v.size for v in own):
        return "its reference would take long"
    expected = case.expected(values)
    if not all(np.isfinite(c.wide(e)).all() and np.abs(c.wide(e)).max(initial=0) < 1e30 for e in expected):
        return "its results are too large there"
    factor = 1.0 if case.op.kind == "elementwise" else MORE
    against_reference(case, dtype, f"{dtype}, larger", values, case.run(values), expected, factor)
    return 1


def shapes_alone(case: Case, types: Sequence[str]) -> int | str:
    """Inputs of which a kernel says that it reads the shape alone make no difference to its results."""
    unread = case.op.shape_only(len(case.shapes)) if isinstance(case.op, Kernel) else ()
    if not unread:
        return "it declares no shape_only"
    case = case.aside()
    values, others = case.sample(types[0]), case.sample(types[0])
    found = case.run([other if k in unread else v for k, (v, other) in enumerate(zip(values, others, strict=True))])
    for k, (got, want) in enumerate(zip(found[0], case.run(values)[0], strict=True)):
        c.identical(f"output {k} with other numbers in inputs {sorted(unread)}, which shape_only names", got, want)
    return 1


def against_reference(case: Case, dtype: str, what: str, values: Sequence[np.ndarray], results: tuple[list, list],
                      expected: Sequence[np.ndarray], factor: float = 1.0) -> None:  # fmt: skip
    """Compare the outputs and the states after a call with what the reference says."""
    found, states = results
    if len(found) + len(states) != len(expected):
        counted = f"{len(found)} outputs" + (f" and {len(states)} states" if states else "")
        raise Mismatch(f"{what}: {counted}, the reference has {len(expected)}")
    names = [f"output {k}" for k in range(len(found))] + [f"input {k}, a state, after the call" for k in case.states]
    for name, got, want in zip(names, [*found, *states], expected, strict=True):
        c.compare(f"{what}: {name}", got, want, factor * slack(case, dtype, got), values)


def slack(case: Case, dtype: str, got: Any) -> float:
    """Return the tolerance of a result: that of the coarser of the input's type and its own."""
    own = c.name_of(got)
    found = c.tolerance(case.record, own)
    if own in c.FLOATS and dtype in c.FLOATS:
        found *= max(1.0, c.EPSILON[dtype] / c.EPSILON[own])
    return found


def _type_is_right(case: Case, dtype: str, values: Sequence[np.ndarray], k: int, n: int, got: Any) -> None:
    """Raise Mismatch unless a result has the type that the record says, and that inference says."""
    said = case.returned_types(dtype, n)
    if len(said) != n:
        raise Mismatch(f"{dtype}: {n} outputs, the record's returns has {len(said)}")
    if c.name_of(got) != said[k]:
        raise Mismatch(f"{dtype}: output {k} is {c.name_of(got)}, the record says {said[k]} (returns=)")
    inferred = case.op.infer_outputs(case.attrs, [v.shape for v in values], case.codes(dtype))[1]
    if inferred[k] != got.dtype_code:
        raise Mismatch(f"{dtype}: output {k} is {c.name_of(got)}, inference says {dtypes.NAMES[inferred[k]]}")


# ---- requests -----------------------------------------------------------------------------------------------------------
def requests(case: Case, types: Sequence[str]) -> int:
    """Check write, add and null, into plain and into strided outputs, and outputs that overlap the inputs."""
    n = 0
    for dtype in c.among(types, "float32", "float16", "int32", "bool")[:3]:
        values = case.sample(dtype)
        plain = case.run(values)
        for strided in (False, True):
            for req in (c.WRITE, c.ADD, c.NULL):
                if req == c.ADD and any(c.name_of(o) == "bool" for o in plain[0]):
                    continue
                _request(case, f"{dtype}, {'strided ' if strided else ''}out=", values, plain, req, strided)
                n += 1
        n += _overlap(case, dtype)
    return n


_REQUESTS = {c.WRITE: "write", c.ADD: "add", c.NULL: "null"}


def _request(case: Case, what: str, values: list[np.ndarray], plain: tuple[list, list], req: int, strided: bool) -> None:
    outs, before = [], []
    for o in plain[0]:
        start = case.rng.integers(1, 5, o.shape).astype(c.numpy_dtype(c.name_of(o)))
        if strided:  # in Fortran order, with gaps
            gaps = np.empty((2, *(d + 1 for d in o.shape)), "b", order="F")
            outs.append(_laid(start, case.device, gaps[(1, *map(slice, o.shape), ...)]))
        else:
            outs.append(c.out_like(o, case.device))
            c.store(outs[-1], start)
        before.append(start)
    states = case.run(values, outs, req)[1]
    for k, state, after in zip(case.states, states, plain[1], strict=True):
        if req != c.NULL:
            c.identical(f"{what} req={_REQUESTS[req]}: input {k}, a state, after the call", state, after)
    for k, (o, p, b) in enumerate(zip(outs, plain[0], before, strict=True)):
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


def _overlap(case: Case, dtype: str) -> int:
    """An output that shares memory with the first input: as if all inputs had been copied first."""
    values = case.sample(dtype)
    if not values or 0 in case.states:
        return 0
    plain = case.run(values)[0]
    first, out = values[0], plain[0]
    if {c.name_of(out), case.type_of(0, dtype)} != {dtype} or first.size == 0:
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


# ---- strides and alignment ---------------------------------------------------------------------------------------------
def layouts(array: np.ndarray) -> list[tuple[str, np.ndarray, Any]]:
    """Return (name, values, make): the same or similar values, and how to lay them out in memory."""
    shape = array.shape
    found = []
    if array.ndim >= 2:
        found.append(("transposed", array, _as(np.empty(shape[::-1], "b").T)))
    if array.ndim:
        found.append(("negative strides", array, _as(np.empty(shape, "b")[(slice(None, None, -1),) * array.ndim])))
        gaps = np.empty((*(d + 1 for d in shape), 2), "b")
        found.append(("sliced", array, _as(gaps[(*map(slice, shape), 1)])))
        axis = max(range(array.ndim), key=lambda i: shape[i])
        if shape[axis]:
            same = np.broadcast_to(np.take(array, [0], axis), shape)
            found.append((f"stride 0 on axis {axis}", np.ascontiguousarray(same), _repeated(axis)))
    found.append(("offset by one element", array, _offset))
    return found


def _as(place: np.ndarray):
    return lambda values, device: _laid(values, device, place)


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


def _offset(values: np.ndarray, device: Any, by: int = 1) -> Any:
    return _laid(values, device, np.empty(values.size + by, "b")[by:].reshape(values.shape))


def _laid(values: np.ndarray, device: Any, place: np.ndarray) -> Any:
    """Return values that lie in memory as a view of single bytes, `place`, lies in that of its base."""
    base: Any = place.base
    offset = max(place.ctypes.data - base.ctypes.data, 0)  # of an empty one it may be anything
    view = c.buffer(max(base.size, 1), values.dtype.name, device)._view(values.shape, place.strides, offset)
    if values.size:
        c.store(view, values)
    return view


def strides(case: Case, types: Sequence[str]) -> int | str:
    """Inputs and states of any strides give what contiguous ones give."""
    if not case.shapes:
        return "it has no inputs"
    n = 0
    for dtype in c.among(types, "float32", "int32")[:1]:
        values = case.sample(dtype)
        for k in range(len(values)):
            for name, laid, make in layouts(values[k]):
                if name.startswith("stride 0") and (k in case.states or case.record.prepare is not None):
                    continue  # one element cannot hold several new values, nor a matrix of equal ones be regular
                given = [*values[:k], laid, *values[k + 1 :]]
                plain, plain_states = case.run(given)
                inputs = case.arrays(given)
                inputs[k] = make(laid, case.device)
                found = case.call(inputs)
                case.unwritten(inputs, given)
                names = [f"output {j}" for j in range(len(found))] + [f"input {j} after the call" for j in case.states]
                found += [inputs[j] for j in case.states]
                for which, got, want in zip(names, found, [*plain, *plain_states], strict=True):
                    what = f"{dtype}, input {k} {name}: {which}"
                    if case.op.kind == "elementwise":
                        c.identical(what, got, want)
                    else:  # sums may be taken in another order
                        c.compare(what, got, c.wide(want), slack(case, dtype, got))
                n += 1
    return n


def alignment(case: Case, types: Sequence[str]) -> int:
    """Results have the same bits wherever inputs and outputs begin in memory."""
    n = 0
    for dtype in c.among(types, "float32", "int32")[:1]:
        values = case.enlarged(dtype, (ALIGNED, ALIGNED // 4)) or case.sample(dtype)
        plain, plain_states = case.run(values)
        for by in (1, 3, 8):
            inputs = [_offset(v, case.device, by) for v in values]
            outs = [_offset(np.zeros(o.shape, c.numpy_dtype(c.name_of(o))), case.device, by) for o in plain]
            case.call(inputs, out=outs)
            found = [*outs, *(inputs[k] for k in case.states)]
            for k, (got, want) in enumerate(zip(found, [*plain, *plain_states], strict=True)):
                c.identical(f"{dtype}, data that begins {by} elements later: output {k}", got, want)
            n += 1
    return n
