"""``python -m mxop demo``: one function, and everything that follows from it, on an example or on the user's data."""

from __future__ import annotations

import argparse
import inspect
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from pathlib import Path
from typing import Any

import numpy as np

import mxop as mx
from mxop import test_utils

from ..formula.derive import vjp
from ..formula.expr import PARAM, const, input_, leaves, substitute
from ..formula.readable import readable
from ..opdef.elementwise import Elementwise
from . import BadInput, Stop, npy, picture
from .in_numpy import InNumPy
from .operators import called
from .own import module_of, operator_named
from .timing import Way, timed

USER_FILE = Path(__file__).with_name("quadratic_user.py")
DEFAULT_PICTURE = "mxop_demo.png"
PARAMS = {"a": 1.0, "b": 2.0, "c": 3.0}  # of the demonstration's own operator
_NAMES = ("f", "f'", "f''", "f'''")
_SAMPLE = 1000  # elements at which derivatives are compared with finite differences


@dataclass
class Shown:
    """The operator that is shown: a formula of one input.

    Attributes
    ----------
    op : Elementwise
    params : dict
    call : callable
        The function in ``mx.nd``.
    derivatives : list of Expr
        The formula, its first and its second derivative, with parameters as numbers; the formula alone if the gradient is a
        rule of the author's.
    """

    op: Elementwise
    params: dict[str, Any]

    def __post_init__(self) -> None:
        self.name = called(self.op)
        self.call = partial(reduce(getattr, self.name.split("."), mx.nd), **self.params)
        attrs = self.op.parse(dict(self.params))
        (root,) = self.op.formula(attrs, 1).roots
        values = {leaf: const(float(attrs[leaf.label])) for leaf in leaves([root]) if leaf.kind == PARAM}
        (root,) = substitute([root], values)
        self.derivatives = [root]
        if self.op.rule is None and self.op._gradient is None:
            for _ in range(2):
                (slope,) = vjp([self.derivatives[-1]], [const(1)], [input_(0)])
                self.derivatives.append(const(0) if slope is None else slope)
        in_numpy = InNumPy(self.derivatives)
        if in_numpy.missing:
            raise BadInput(f"operator {self.op.name}: NumPy has no function to compare with for {', '.join(in_numpy.missing)}")

    def texts(self) -> list[str]:
        """Return the formulas as lines of text."""
        found = []
        for name, root in zip(_NAMES, self.derivatives, strict=False):
            found += readable([root], {input_(0): "x"}, [name])
        return found

    def symbol(self, x: mx.sym.Symbol) -> mx.sym.Symbol:
        return reduce(getattr, self.name.split("."), mx.sym)(x, **self.params)


def shown(name: str | None) -> Shown:
    """Return what is shown: the demonstration's own operator, or that of a name, such as ``my.py:mish``.

    Raises
    ------
    BadInput
        When it is no formula of one input.
    """
    if name is None:
        return Shown(module_of(str(USER_FILE)).quadratic, PARAMS)
    op = operator_named(name)
    needed = [p.name for p in op.spec.params if p.required]
    if not isinstance(op, Elementwise) or op.variadic or len(op.arguments) != 1 or op._num_outputs != 1 or op.creates:
        raise BadInput(f"operator {op.name} ({op.kind}) takes {', '.join(op.arguments)}; the demonstration shows formulas of "
                       f"one input, made by @elementwise; python -m mxop info {name} shows any operator")  # fmt: skip
    if needed:
        raise BadInput(f"operator {op.name} has no default for {', '.join(needed)}, which the demonstration needs")
    return Shown(op, {})


def run(options: argparse.Namespace) -> None:
    """Run the demonstration.

    Raises
    ------
    Stop
        When the user's data or operator cannot be used, a result is wrong, or a picture that was asked for cannot be drawn.
    """
    data = None if options.input is None else npy.read_floats(options.input)
    output = _picture_path(options.output)
    f = shown(options.function)
    try:
        many = np.random.default_rng(0).standard_normal(options.size, dtype="float32")
    except ValueError as problem:
        raise BadInput(f"--size {options.size}: {problem}") from None
    show_source(f, options.function)
    show_imperative(f)
    show_symbols(f)
    x = np.linspace(-3, 3, 121, dtype="float32") if data is None else data
    found = show_derivatives(f, x, "121 points from -3 to 3" if data is None else str(options.input))
    show_tests(f, x)
    show_gpu(f)
    show_speed(f, many, f"{options.size:,} float32")
    if data is not None and data.size:
        show_speed(f, data, f"{options.input}: {data.size:,} {data.dtype}")
    show_picture(output, f, x, found, asked=options.output is not None)
    print("\nEverything above agreed with what was expected.")


def _picture_path(output: str | None) -> str:
    """Return where the picture goes; complain now, not after the work, when that cannot be."""
    path = output or DEFAULT_PICTURE
    if output is not None:
        folder = os.path.dirname(os.path.abspath(path))
        if not os.path.isdir(folder):
            raise BadInput(f"--output {path}: there is no folder {folder}")
        if os.path.isdir(path):
            raise BadInput(f"--output {path} is a folder; name a file, such as {DEFAULT_PICTURE}")
    return path


def _heading(text: str) -> None:
    print(f"\n{text}\n{'-' * len(text)}")


def _expect(what: str, right: bool) -> None:
    if not right:
        raise Stop(f"wrong result: {what}; please report it with the output of python -m mxop doctor")


# ---- the parts ------------------------------------------------------------------------------------------------------------
def show_source(f: Shown, name: str | None) -> None:
    """Show the function that the operator is made of, or the whole file of the demonstration's own."""
    _heading("An operator is a function")
    source = inspect.getsource(f.op.function) if name else USER_FILE.read_text(encoding="utf-8")
    print(f"{f.op.function.__code__.co_filename}:\n")
    print("\n".join(f"    {line}".rstrip() for line in source.splitlines()))
    print("\nImported. What follows comes from this function alone; no compiler runs.")


def show_imperative(f: Shown) -> None:
    """Call the operator on arrays, under each of its names."""
    _heading("On arrays")
    x = np.array([[1, 2], [3, 4]], "float32")
    given = "".join(f", {name}={value:g}" for name, value in f.params.items())
    (expected,) = InNumPy(f.derivatives[:1])(x)
    short = f.name.rpartition(".")[2]
    for name in dict.fromkeys([f"contrib.{short}", f.name, short]):
        function = reduce(lambda space, part: getattr(space, part, None), name.split("."), mx.nd)
        if function is not None:
            result = function(mx.nd.array(x), **f.params).asnumpy()
            print(f"mx.nd.{name}([[1, 2], [3, 4]]{given}) = {_decimals(result)}")
            _expect(f"mx.nd.{name}", np.allclose(result, expected, rtol=1e-4, atol=1e-4, equal_nan=True))


def _decimals(values: np.ndarray) -> list:
    return values.astype(float).round(6).tolist()


def show_symbols(f: Shown) -> None:
    """Compose symbols; infer shapes and types in both directions; bind and run."""
    _heading("In symbols")
    with mx.name.NameManager():
        y = f.symbol(mx.sym.Variable("x"))
        print(f"f = mx.sym.{f.name}(x)      outputs {y.list_outputs()}")
        shapes = y.infer_shape(x=(2, 3))
        print(f"from input to output: x is (2, 3)           -> output {shapes[1][0]}")
        _expect("inference from the input", shapes == ([(2, 3)], [(2, 3)], []))

        shapes = (y + mx.sym.Variable("y", shape=(4, 5))).infer_shape()
        print(f"from output to input: f + y, y is (4, 5)    -> x {shapes[0][0]}")
        _expect("inference from the output", shapes == ([(4, 5), (4, 5)], [(4, 5)], []))

        a, b = mx.sym.Variable("a", shape=(2, 0)), mx.sym.Variable("b")
        c = mx.sym.Variable("c", shape=(0, 3))
        shapes = (a * b + b * c).infer_shape()
        print(f"from both sides:      a*b + b*c, a (2, ?), c (?, 3)\n{'':22}-> a, b, c {shapes[0]}")
        _expect("inference from both sides", shapes == ([(2, 3)] * 3, [(2, 3)], []))

        types = y.infer_type(x="float64")
        print(f"types:                x is float64          -> output {np.dtype(types[1][0]).name}")
        _expect("inference of types", np.dtype(types[1][0]) == np.float64 or f.op.out_dtype is not None)

        x = np.array([[1, 2], [3, 4]], "float32")
        executor = y.simple_bind(ctx=mx.cpu(), x=(2, 2))
        result = executor.forward(is_train=True, x=mx.nd.array(x))[0].asnumpy()
        executor.backward(mx.nd.ones((2, 2)))
        slope = executor.grad_dict["x"].asnumpy()
        print(f"bound executor:       of [[1, 2], [3, 4]]\n{'':22}f  {_decimals(result)}\n{'':22}f' {_decimals(slope)}")
        for got, wanted in zip((result, slope), InNumPy(f.derivatives[:2])(x), strict=False):
            _expect("the executor", np.allclose(got, wanted, rtol=1e-4, atol=1e-4, equal_nan=True))


def derivatives(f: Shown, x: np.ndarray) -> list[np.ndarray]:
    """Return f, f', f'' and f''' on data, by automatic differentiation."""
    data = mx.nd.array(x, dtype=x.dtype)
    data.attach_grad()
    with mx.autograd.record():
        values = [f.call(data)]
        for _ in range(3):
            values.append(mx.autograd.grad(values[-1], data, create_graph=True, retain_graph=True)[0])
    return [v.asnumpy() for v in values]


def expected(f: Shown, x: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return f, f' and f'' from NumPy, each with the size of the largest value on the way to it, infinite beyond the type."""
    wide = x.reshape(-1).astype("float32" if x.dtype == np.float16 else x.dtype)
    found = []
    with np.errstate(all="ignore"):
        for root in f.derivatives:
            size = np.abs(wide)
            (value,) = InNumPy([root])(wide, seen=lambda v, size=size: np.maximum(size, np.abs(v), out=size))
            found.append((value.reshape(x.shape), size.reshape(x.shape)))
    return found


def _difference(found: np.ndarray, expected: np.ndarray, size: np.ndarray) -> float:
    """Return the largest difference relative to the size of the largest term, where all terms are finite."""
    with np.errstate(all="ignore"):
        off = np.abs(found.astype(size.dtype) - expected) / np.maximum(size, np.finfo(found.dtype).tiny)
        counted = np.isfinite(size) & (size < np.finfo(found.dtype).max)
        off = np.where(np.isnan(off), np.inf, off)[counted]
    return float(off.max(initial=0))


def show_derivatives(f: Shown, x: np.ndarray, source: str) -> list[np.ndarray]:
    """Show the derivatives' formulas; differentiate three times on data, and compare with NumPy."""
    _heading(f"Derivatives on {source}")
    print("\n".join(f.texts()) + f"\n\nshape {x.shape}, {x.dtype}")
    found = derivatives(f, x)
    largest = 0.0
    for name, value in zip(_NAMES, found, strict=True):
        print(f"{name:5} {_summary(value)}")
    for name, value, (wanted, size) in zip(_NAMES, found, expected(f, x), strict=False):
        off = _difference(value, wanted, size)
        largest = max(largest, off)
        _expect(f"{name} on {source}", value.shape == x.shape and off <= _near(x.dtype))
    print(f"{', '.join(_NAMES[: len(f.derivatives)])}: the largest difference from NumPy is {largest:.1e} of the largest term.")
    if len(f.derivatives) == 1:
        print("The gradient is a rule of the author's, which may be another than the derivative.")
    return found


def _near(dtype: np.dtype) -> float:
    return float(np.sqrt(np.finfo(dtype).eps))


def _summary(value: np.ndarray) -> str:
    """Return the values of a small array, or the range of a large one."""
    if 0 < value.size <= 6:
        return str(value.tolist())
    finite = value[np.isfinite(value)].astype("float64")
    if not finite.size:
        return "no finite values" if value.size else "no values (empty array)"
    text = f"from {finite.min():.6g} to {finite.max():.6g}, mean {finite.mean():.6g}"
    others = value.size - finite.size
    return text + (f", {others} not finite" if others else "")


def show_tests(f: Shown, x: np.ndarray) -> None:
    """Run the checks that an operator's own tests would use, on values near the data."""
    _heading("Its tests")
    rng = np.random.default_rng(0)
    with np.errstate(all="ignore"):
        near = x.reshape(-1)[:_SAMPLE].astype("float64")
        near = near * (1 + rng.uniform(0, 0.01, near.size)) + rng.uniform(0, 0.01, near.size)  # not at a kink
        values = InNumPy(f.derivatives)(near)
    near = near[np.isfinite(values).all(0) & (np.abs(values).max(0, initial=0) < 1e6) & (np.abs(near) < 1e6)]
    if not near.size:
        print("None: no finite values near the data.")
        return
    y = f.symbol(mx.sym.Variable("x"))
    print("check_symbolic_forward" + ", check_symbolic_backward, check_numeric_gradient" * (len(f.derivatives) > 1))
    for shape in ((3,), (3, 4), (3, 4, 2), near.shape):
        data = np.resize(near, shape)
        value, *slopes = InNumPy(f.derivatives)(data.reshape(-1))
        try:
            options = {"rtol": 1e-6, "atol": 1e-6, "dtype": np.float64}
            test_utils.check_symbolic_forward(y, [data], [value.reshape(shape)], **options)
            if slopes:
                slope = slopes[0].reshape(shape)
                test_utils.check_symbolic_backward(y, [data], [np.ones(shape)], [slope], **options)
                size = 1e-3 * max(1.0, float(np.abs(slope).max()))
                test_utils.check_numeric_gradient(y, [data], numeric_eps=1e-5, rtol=1e-3, atol=size, dtype=np.float64)
        except AssertionError as problem:
            raise Stop(f"a check failed on shape {shape}: {problem}") from None
        print(f"on shape {shape}: passed")


def show_gpu(f: Shown) -> None:
    """Print the kernel that a GPU would run."""
    _heading("On a GPU")
    executor = f.symbol(mx.sym.Variable("x")).simple_bind(mx.cpu(), x=(1000,), grad_req="null")
    print("\n".join(f"    {line}".rstrip() for line in executor.explain(is_train=False).rows[0].cuda_source.splitlines()))
    print(f"\nThe CUDA text of the formula; GPUs found here: {mx.num_gpus()}.")


def show_speed(f: Shown, values: np.ndarray, title: str) -> None:
    """Time the operator and its gradient beside NumPy, which makes new results or writes into existing arrays."""
    _heading(f"Its speed on {title}, threads: {mx.context.get_num_threads()}")
    flat = values.reshape(-1)
    head = np.ones_like(flat)
    plain, x, ones = (mx.nd.array(v, dtype=values.dtype) for v in (flat, flat, head))
    x.attach_grad()

    def restore() -> None:
        plain[:] = x[:] = flat

    def forward_backward() -> tuple[mx.nd.NDArray, mx.nd.NDArray]:
        with mx.autograd.record():
            y = f.call(x)
        y.backward(ones)
        return y, x.grad

    rows: list[tuple[str, int, Callable, list]] = [("forward", 2, lambda: f.call(plain), f.derivatives[:1])]
    if len(f.derivatives) > 1:
        (slope,) = vjp(f.derivatives[:1], [input_(1)], [input_(0)])
        both = [f.derivatives[0], const(0) if slope is None else slope]
        rows.append(("forward and backward", 5, forward_backward, both))
    print(f"{'':24}{'time':>13}{'rate':>13}{'mxop / this':>13}")
    for label, passes, ours, roots in rows:
        theirs = InNumPy(roots)
        buffers = theirs.buffers(flat)
        ways = {
            "mxop": Way(ours, restore),
            "NumPy": Way(partial(theirs, flat, head)),
            "NumPy, out=": Way(partial(theirs, flat, head, buffers=buffers)),
        }
        moved = passes * values.nbytes
        with np.errstate(all="ignore"):
            wanted = [a.copy() for a in theirs(flat, head)]
            tolerance = max(_near(values.dtype), 1e-5)
            found = timed(ways, wanted, nbytes=moved, tolerance=tolerance, limit=1.5, rounds=30)
        for name, told in found.wrong.items():
            _expect(f"{label} by {name} {told}", False)
        print(label)
        for name in [*ways, *({"copy"} & found.seconds.keys())]:
            taken = found.seconds[name]
            ratio = f"{found.seconds['mxop'] / taken:13.3f}" if name.startswith("NumPy") else ""
            doubt = "  too fast to be true" if name in found.too_fast else ""
            print(f"  {name:22}{1e3 * taken:10.3f} ms{moved / taken / 1e9:8.1f} GB/s{ratio}{doubt}")
    print("Medians of calls made in turn, whose results were finished and compared.\n"
          "NumPy computes the same operations one by one, in new arrays or with out= in\n"
          "existing ones; mxop's new results reuse memory of its pool. GB/s counts each\n"
          "operand and result once; a copy is of as many bytes.")  # fmt: skip


def show_picture(path: str, f: Shown, x: np.ndarray, found: Sequence[np.ndarray], asked: bool) -> None:
    """Draw f, f' and f'', where matplotlib is installed."""
    _heading("A picture")
    if not picture.available():
        if asked:
            raise Stop(f"--output {path}: {picture.HOW_TO_GET}")
        print(f"None: {picture.HOW_TO_GET}")
        return
    try:
        picture.draw(path, f.texts()[0], x, list(zip(_NAMES[:3], found, strict=False)))
    except Stop as problem:
        if asked:
            raise
        print(f"None: {problem}")
        return
    print(f"f, f' and f'' are drawn in {os.path.abspath(path)}")
