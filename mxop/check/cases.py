"""What :func:`mxop.test_utils.check_op` feeds an operator: cases made from its record, tolerances, comparison."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

import numpy as np

from .._core import core, dispatch, tape
from ..opdef import Operator, contiguous_strides
from ..opdef.infer import known as is_known
from ..opdef.params import IS_TRAIN
from ..records import Record
from ..support import dtypes
from ..support.errors import MXNetError

WRITE, ADD, NULL = 1, 3, 0

#: Units in the last place that a result may be off by, times ``Record.tolerance``: one for the rounding of the result,
#: some for each function inside; float16 and bfloat16 are computed in float32, so rounding is all that is left.  A unit is
#: one of ``|expected| + 1``, because the domains, and so the terms that may cancel, are of the order of one.
ULPS = {"float64": 16.0, "float32": 8.0, "float16": 2.0, "bfloat16": 2.0}
#: The same for gradients, which pass through several operators, each rounding its result.
GRADIENT_ULPS = {"float64": 64.0, "float32": 64.0, "float16": 16.0, "bfloat16": 16.0}
EPSILON = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}
#: The smallest number above zero: no result is nearer to the true one than this.
DENORMAL = {"float64": 2.0**-1074, "float32": 2.0**-149, "float16": 2.0**-24, "bfloat16": 2.0**-133}

FLOATS = ("float64", "float32", "float16", "bfloat16")
INTEGERS = ("int8", "uint8", "int32", "int64")


#: Elements of results of larger shapes: a matrix that a vector becomes takes its square.
MOST_RESULTS = 1 << 23
#: What draws are made to repeat with.
SEED = 7


class Mismatch(AssertionError):
    """A check that failed, before the operator and the case are put in front."""


@dataclass
class Case:
    """One call to check.

    Attributes
    ----------
    shapes : tuple of shapes
        One for each input.
    params : dict
        As the record gives them, without the mode.
    train : bool or None
        The mode to call in; None where it makes no difference.
    states : tuple of int
        The inputs that a call writes.
    readonly : tuple of int
        The others.
    variables : tuple of int
        Those of them that can have a gradient.
    """

    op: Operator
    record: Record
    shapes: tuple[tuple[int, ...], ...]
    params: dict[str, Any]
    rng: np.random.Generator
    device: Any = None
    train: bool | None = None
    attrs: Any = field(init=False)
    states: tuple[int, ...] = field(init=False)
    readonly: tuple[int, ...] = field(init=False)
    variables: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        given = dict(self.params)
        if self.op.variadic and self.op.num_args_param is not None:
            given.setdefault(self.op.num_args_param, len(self.shapes))
        self.attrs = self.op.parse(given)
        written = self.op.aux_names(self.attrs)
        names = self.op.input_names(self.attrs, len(self.shapes)) if written else ()
        self.states = tuple(k for k, name in enumerate(names) if name in written)
        self.readonly = tuple(k for k in range(len(self.shapes)) if k not in self.states)
        self.variables = tuple(k for k in self.readonly if self.type_of(k, "float32") in FLOATS)

    def __str__(self) -> str:
        shapes = ", ".join(map(str, self.shapes)) or "no inputs"
        mode = "" if self.train is None else f"; {IS_TRAIN}={self.train}"
        return (f"{shapes}; {self.params}" if self.params else shapes) + mode

    @property
    def random(self) -> bool:
        """Whether equal calls give different results."""
        return self.record.distribution is not None or not self.op.repeatable

    def where(self, shapes: Sequence[tuple[int, ...]]) -> Case:
        """Return the same case with other shapes."""
        return Case(self.op, self.record, tuple(shapes), self.params, self.rng, self.device, self.train)

    def aside(self) -> Case:
        """Return the same case with numbers of its own, which leaves those of other checks as they are."""
        return replace(self, rng=np.random.default_rng(SEED))

    # ---- inputs ---------------------------------------------------------------------------------------------------------
    def domain(self, k: int) -> tuple[float, float]:
        """Return the interval of input `k`."""
        given = self.record.domain
        if isinstance(given[0], (int, float)):
            return given
        return given[min(k, len(given) - 1)]

    def sample(self, dtype: str, shapes: Sequence[tuple[int, ...]] | None = None) -> list[np.ndarray]:
        """Draw the inputs, as NumPy arrays of a type."""
        shapes = self.shapes if shapes is None else shapes
        drawn = [self.draw(k, shape, self.type_of(k, dtype)) for k, shape in enumerate(shapes)]
        if self.record.prepare is None:
            return drawn
        made = _listed(self.record.prepare(*drawn))
        return [np.asarray(m, dtype=d.dtype) for m, d in zip(made, drawn, strict=True)]

    def type_of(self, k: int, dtype: str) -> str:
        """Return the type of an input where `dtype` is checked."""
        given = self.record.input_types.get(k, dtype)
        return given(dtype) if callable(given) else given

    def codes(self, dtype: str) -> list[int]:
        """Return the numbers of the types of all inputs where `dtype` is checked."""
        return [dtypes.CODES[self.type_of(k, dtype)] for k in range(len(self.shapes))]

    def draw(self, k: int, shape: tuple[int, ...], dtype: str) -> np.ndarray:
        low, high = self.domain(k)
        if not low <= high:
            raise Mismatch(f"the record's domain of input {k} is empty: from {low} to {high}")
        if k in self.record.whole and dtype in FLOATS:
            return self.draw(k, shape, "int32").astype(numpy_dtype(dtype))
        if dtype == "bool":
            return self.rng.random(shape) < 0.5
        if dtype in INTEGERS:
            limits = np.iinfo(dtype)
            first, last = int(np.ceil(max(low, limits.min))), int(np.floor(min(high, limits.max)))
            return np.asarray(self.rng.integers(min(first, last), last + 1, shape), dtype=dtype)
        x = np.asarray(self.rng.uniform(low, high, shape))
        if self.record.distinct and x.size > 1:
            step = (high - low) / x.size
            places = self.rng.permutation(x.size).reshape(shape) + self.rng.uniform(0.2, 0.8, shape)
            x = np.asarray(low + step * places)
        for point in self.record.avoid:
            near = np.abs(x - point) < 0.05
            x = np.where(near, point + np.where(x < point, -0.06, 0.06), x)
        return x.astype(numpy_dtype(dtype))

    def arrays(self, values: Sequence[np.ndarray]) -> list:
        """Return NDArrays of the values, on the device that is checked."""
        made = [core.from_numpy(v) for v in values]
        return made if self.device is None else [a.as_in_context(self.device) for a in made]

    def enlarged(self, dtype: str, sizes: Sequence[int]) -> list[np.ndarray]:
        """Draw inputs of larger shapes: of the first of `sizes` (elements of the largest input) that the parameters allow.

        Dimensions grow by one factor, those of size 1 stay: equal ones stay equal.  The record's own shapes otherwise.
        """
        largest = max((int(np.prod(s)) for s in self.shapes), default=0)
        if not largest or any(0 in s for s in self.shapes):
            return []
        rank = max(len(s) - s.count(1) for s in self.shapes)
        for size in sizes if rank else ():
            factor = max(int(np.ceil((size / largest) ** (1 / rank))), 1)
            shapes = [tuple(d * factor if d > 1 else d for d in s) for s in self.shapes]
            try:
                if self.n_results(shapes, dtype) > MOST_RESULTS:
                    continue
                values = self.sample(dtype, shapes)
                self.call(self.arrays(values))
            except MXNetError:
                continue
            return values
        return self.sample(dtype)

    def n_results(self, shapes: Sequence[tuple[int, ...]], dtype: str) -> int:
        """Return how many elements the results have for inputs of these shapes; 0 where shapes do not say."""
        try:
            found, _ = self.op.infer_outputs(self.attrs, list(shapes), self.codes(dtype))
            return sum(prod(s) for s in found if is_known(s))
        except MXNetError:
            return 0

    # ---- calls ----------------------------------------------------------------------------------------------------------
    def call(self, inputs: Sequence[Any], out: Any = None, req: int = WRITE, seeded: bool = True) -> list:
        """Run the operator, in the mode of the case and with the same random numbers each time; return its outputs."""
        if seeded:
            self.seed()
        with tape.Scope(None, self.train):
            if out is None:
                found = dispatch.invoke(self.op, list(inputs), self.attrs)
            else:
                found = core.invoke_req(self.op, list(inputs), self.attrs, list(out), req)
        return list(found) if isinstance(found, (list, tuple)) else [found]

    def seed(self) -> None:
        """Make the next draws those of every call."""
        if self.record.seed is not None:
            self.record.seed(SEED)

    def run(self, values: Sequence[np.ndarray], out: Any = None, req: int = WRITE) -> tuple[list, list]:
        """Run the operator on arrays of these values; return its outputs, and its states after the call.

        Raises
        ------
        Mismatch
            When it wrote an input that is no state.
        """
        inputs = self.arrays(values)
        outputs = self.call(inputs, out, req)
        self.unwritten(inputs, values)
        return outputs, [inputs[k] for k in self.states]

    def unwritten(self, inputs: Sequence[Any], values: Sequence[np.ndarray]) -> None:
        """Raise Mismatch unless all inputs that are no states are what they were."""
        for k in self.readonly:
            identical(f"input {k} was written, which the operator does not declare (writes=)", inputs[k], values[k])

    def expected(self, values: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return what the reference says: results, then the states' new values."""
        kinds = {v.dtype.kind for v in values}
        params = self.reference_params()
        reference = self.record.reference
        assert reference is not None
        with np.errstate(all="ignore"):
            if not self.record.reference_dtype:
                values = widened(values)
            listed = _listed(reference(*values, **params))
            if kinds <= set("iub") and kinds & set("iu") and any(r.dtype in (np.float16, np.float32) for r in listed):
                # NumPy computes functions of small integers in small floats
                listed = _listed(reference(*[v.astype(np.int64) for v in values], **params))
        return listed

    def reference_params(self) -> dict[str, Any]:
        """Return what the functions of the record are called with: parameters, and the mode where there is one."""
        return self.params if self.train is None else {**self.params, IS_TRAIN: self.train}

    def returned_types(self, dtype: str, n: int) -> list[str]:
        """Return what the record says of the types of the results, for inputs of a type."""
        said = self.record.returns
        if callable(said):
            said = said(dtype, **self.reference_params())
        if said is None:
            said = dtype if self.shapes else "float32"
        return [said] * n if isinstance(said, str) else list(said)


def _listed(found: Any) -> list[np.ndarray]:
    if found is None:
        raise Mismatch("a function of the record returns None; expected an array, or a tuple of arrays")
    return [np.asarray(r) for r in found] if isinstance(found, (tuple, list)) else [np.asarray(found)]


def cases(op: Operator, record: Record, rng: np.random.Generator, device: Any = None) -> list[Case]:
    """Return the cases of a record: shapes and parameters of the same position, or all combinations with a single one."""
    n = 0 if not op.arguments and not op.open_inputs else None
    shapes = record.shapes
    if shapes is None:
        shapes = [()] if n == 0 else [None]
    params = list(record.params) or [{}]
    together = len(shapes) == len(params)
    pairs = list(zip(shapes, params, strict=True)) if together else [(s, p) for s in shapes for p in params]
    found = []
    for s, p in pairs:
        given = dict(p)
        said = given.pop(IS_TRAIN, None)
        modes = (False, True) if said is None and op.spec.has_mode else (said,)
        found += [Case(op, record, _shapes(op, s, given), given, rng, device, mode) for mode in modes]
    return found


def _shapes(op: Operator, shapes: Any, params: dict[str, Any]) -> tuple[tuple[int, ...], ...]:
    if shapes is not None:
        return tuple(tuple(s) for s in shapes)
    n = 1 if op.variadic else len(op.input_names(op.parse(dict(params))))
    return ((2, 3),) * n


def types_of(record: Record, wanted: Sequence[Any] | None) -> list[str]:
    """Return the names of the types to check, the widest first."""
    found: list[str] = []
    if "f" in record.dtypes or "l" in record.dtypes:
        found.append("float64")
    if "l" in record.dtypes:
        found.append("float32")
    if "f" in record.dtypes or "n" in record.dtypes:
        found += [t for t in FLOATS[1:] if t != "bfloat16" or dtypes.has_bfloat16()]
    if "i" in record.dtypes:
        found += INTEGERS
    if "b" in record.dtypes:
        found.append("bool")
    if wanted is not None:
        names = {dtypes.NAMES[dtypes.code_of(t)] for t in wanted}
        found = [t for t in found if t in names]
    return found


def among(types: Sequence[str], *chosen: str) -> list[str]:
    """Return those of the chosen types that are to be checked; where none is, the first that is."""
    return [t for t in chosen if t in types] or list(types[:1])


def numpy_dtype(name: str) -> np.dtype:
    """Return the NumPy type of a name, bfloat16 included."""
    return dtypes.numpy_dtype(dtypes.CODES[name])


def name_of(array: Any) -> str:
    """Return the name of an NDArray's type."""
    return dtypes.NAMES[array.dtype_code]


def wide(values: Any) -> np.ndarray:
    """Return an NDArray's or NumPy array's values: floats as float64, integers as they are."""
    values = values.asnumpy() if hasattr(values, "asnumpy") else np.asarray(values)
    return values if values.dtype.kind in "iub" else values.astype(np.float64)


def widened(values: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return floats as float64, integers as they are."""
    return [v if v.dtype.kind in "iub" else v.astype(np.float64) for v in values]


def out_like(array: Any, device: Any = None) -> Any:
    """Return a new array of the same shape and type."""
    made = core.from_numpy(np.zeros(array.shape, numpy_dtype(name_of(array))))
    return made if device is None else made.as_in_context(device)


def buffer(n: int, dtype: str, device: Any = None) -> Any:
    """Return a flat array of zeros for views."""
    made = core.from_numpy(np.zeros(n, numpy_dtype(dtype)))
    return made if device is None else made.as_in_context(device)


def store(array: Any, values: np.ndarray) -> None:
    """Write values into an NDArray of any strides."""
    made = core.from_numpy(np.ascontiguousarray(values).reshape(array.shape))
    core.copy(made, array)


def flat_view(base: Any, shape: tuple[int, ...], offset: int = 0, reverse: bool = False) -> Any:
    """Return a view of a flat array in some shape, from an offset, in reverse order if asked."""
    strides = contiguous_strides(shape)
    if reverse:
        size = int(np.prod(shape))
        return base._view(shape, tuple(-s for s in strides), offset + max(size - 1, 0))
    return base._view(shape, strides, offset)


# ---- comparison ---------------------------------------------------------------------------------------------------------
def compare(what: str, found: Any, expected: np.ndarray, ulps: float, values: Sequence[np.ndarray] = ()) -> None:
    """Raise Mismatch unless `found` (an NDArray) is `expected` within a number of units in the last place.

    `expected` holds float64 or exact integers; NaN is matched by NaN, an infinity by itself.
    """
    dtype, got = name_of(found), found.asnumpy()
    if got.shape != expected.shape:
        if not {got.shape, expected.shape} <= {(), (1,)}:  # MXNet's full reductions have shape (1,)
            raise Mismatch(f"{what}: shape {got.shape}, expected {expected.shape}")
        expected = expected.reshape(got.shape)
    if dtype not in FLOATS:
        wrong = _wrong_integers(got, expected, ulps)
    else:
        with np.errstate(all="ignore"):
            if expected.dtype != got.dtype:
                expected = expected.astype(np.float64)
            rounded = expected.astype(got.dtype).astype(np.float64)  # what overflows the type is infinite in it
            got = got.astype(np.float64)
            expected = np.where(np.isfinite(rounded), expected, rounded)
            allowed = ulps * (EPSILON[dtype] * (np.abs(expected) + 1))
            wrong = ~((got == rounded) | (np.isnan(got) & np.isnan(rounded)) | (np.abs(got - expected) <= allowed))
            # next to the largest number, one unit makes the difference between it and infinity
            edge = (np.abs(expected) >= _largest(dtype) * (1 - ulps * EPSILON[dtype])) & (np.sign(got) == np.sign(expected))
            wrong &= ~(edge & (np.isinf(got) | (np.abs(got) >= _largest(dtype) * (1 - ulps * EPSILON[dtype]))))
    if wrong.any():
        raise Mismatch(f"{what}: {_where(got, expected, wrong, values)}")


def _largest(dtype: str) -> float:
    return {"float64": 1.797e308, "float32": 3.4028235e38, "float16": 65504.0, "bfloat16": 3.3895314e38}[dtype]


def _wrong_integers(got: np.ndarray, expected: np.ndarray, slack: float) -> np.ndarray:
    """Compare integers; a real reference is truncated, and says nothing where it does not fit the type."""
    if expected.dtype.kind in "iub" or got.dtype == np.bool_:
        return got != expected.astype(got.dtype)
    limits = np.iinfo(got.dtype)
    with np.errstate(all="ignore"):
        fits = (np.trunc(expected) >= limits.min) & (np.trunc(expected) <= min(limits.max, 2**62))
        low, high = np.trunc(expected * (1 - 1e-12) - slack), np.trunc(expected * (1 + 1e-12) + slack)
    wide = got.astype(np.float64)
    return fits & ((wide < np.minimum(low, high)) | (wide > np.maximum(low, high)))


def _where(got: np.ndarray, expected: np.ndarray, wrong: np.ndarray, values: Sequence[np.ndarray]) -> str:
    """Say how many elements differ, and show one."""
    at = tuple(int(i) for i in np.argwhere(wrong)[0]) if wrong.ndim else ()
    shown = ""
    if values and all(v.shape == got.shape for v in values):
        shown = ", at input " + ", ".join(repr(v[at].item()) for v in values)
    return f"{int(wrong.sum())} of {wrong.size} elements differ; {at}: got {got[at]!r}, expected {expected[at]!r}{shown}"


def identical(what: str, found: Any, expected: Any) -> None:
    """Raise Mismatch unless two arrays hold the same bits (any NaN is the same)."""
    got = found.asnumpy() if hasattr(found, "asnumpy") else found
    want = expected.asnumpy() if hasattr(expected, "asnumpy") else expected
    if got.shape != want.shape or got.dtype != want.dtype:
        raise Mismatch(f"{what}: {got.dtype}{got.shape}, expected {want.dtype}{want.shape}")
    size = f"u{got.dtype.itemsize}"
    same = np.ascontiguousarray(got).view(size).reshape(got.shape) == np.ascontiguousarray(want).view(size).reshape(want.shape)
    if got.dtype.kind not in "iub":
        same |= np.isnan(got.astype(np.float64)) & np.isnan(want.astype(np.float64))
    if not same.all():
        raise Mismatch(f"{what}: not the same bits; {_where(got, want, ~same, ())}")


def tolerance(record: Record, dtype: str, gradient: bool = False) -> float:
    """Return the units in the last place that are allowed; for integers, what is allowed beyond equality."""
    if dtype not in FLOATS:
        return 0.0 if record.exact_integer else 1.0
    return (GRADIENT_ULPS if gradient else ULPS)[dtype] * record.tolerance
