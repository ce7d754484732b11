"""``python -m mxop demo``: one function, and everything that follows from it, on an example or on the user's data."""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import mxop as mx
from mxop import test_utils

from . import Stop, npy, picture
from .timing import Way, timed

USER_FILE = Path(__file__).with_name("quadratic_user.py")
DEFAULT_PICTURE = "mxop_demo.png"
A, B, C = 1.0, 2.0, 3.0
TEXT = f"{A:g}*x**2 + {B:g}*x + {C:g}"
_NAMES = ("f", "f'", "f''", "f'''")


def run(options: argparse.Namespace) -> None:
    """Run the demonstration.

    Raises
    ------
    Stop
        When the user's data cannot be used, a result is wrong, or a picture that was asked for cannot be drawn.
    """
    data = None if options.input is None else npy.read_floats(options.input)
    output = _picture_path(options.output)
    load_user_file()
    show_imperative()
    show_symbols()
    x = np.linspace(-3, 3, 121, dtype="float32") if data is None else data
    found = show_derivatives(x, "121 points from -3 to 3" if data is None else str(options.input))
    show_tests()
    show_speed(np.random.default_rng(0).standard_normal(options.size, dtype="float32"), f"{options.size:,} float32")
    if data is not None and data.size:
        show_speed(data, f"{options.input}: {data.size:,} {data.dtype}")
    show_picture(output, x, found, asked=options.output is not None)
    print("\nEverything above agreed with what was expected.")


def _picture_path(output: str | None) -> str:
    """Return where the picture goes; complain now, not after the work, when that cannot be."""
    path = output or DEFAULT_PICTURE
    if output is not None:
        folder = os.path.dirname(os.path.abspath(path))
        if not os.path.isdir(folder):
            raise Stop(f"--output {path}: there is no folder {folder}")
        if os.path.isdir(path):
            raise Stop(f"--output {path} is a folder; name a file, such as {DEFAULT_PICTURE}")
    return path


def _heading(text: str) -> None:
    print(f"\n{text}\n{'-' * len(text)}")


def _expect(what: str, right: bool) -> None:
    if not right:
        raise Stop(f"wrong result: {what}; please report it with the output of python -m mxop doctor")


# ---- the parts ------------------------------------------------------------------------------------------------------------
def load_user_file() -> None:
    """Show the user's file and import it, as any program would."""
    _heading("An operator is a function")
    print(f"{USER_FILE}:\n")
    print("\n".join(f"    {line}".rstrip() for line in USER_FILE.read_text(encoding="utf-8").splitlines()))
    spec = importlib.util.spec_from_file_location("quadratic_user", USER_FILE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    print("\nImported. What follows comes from this function alone; no compiler runs.")


def show_imperative() -> None:
    """Call the operator on arrays, under both of its names."""
    _heading("On arrays")
    x = mx.nd.array([[1, 2], [3, 4]])
    for name, function in (("contrib.quadratic", mx.nd.contrib.quadratic), ("quadratic", mx.nd.quadratic)):
        result = function(x, a=1, b=2, c=3).asnumpy().tolist()
        print(f"mx.nd.{name}([[1, 2], [3, 4]], a=1, b=2, c=3) = {result}")
        _expect(f"mx.nd.{name}", result == [[6, 11], [18, 27]])


def show_symbols() -> None:
    """Compose symbols; infer shapes and types in both directions; bind and run."""
    _heading("In symbols")
    with mx.name.NameManager():
        f = mx.sym.quadratic(mx.sym.Variable("x"), a=1, b=2, c=3)
        print(f"f = mx.sym.quadratic(x, a=1, b=2, c=3)      outputs {f.list_outputs()}")
        shapes = f.infer_shape(x=(2, 3))
        print(f"from input to output: x is (2, 3)           -> output {shapes[1][0]}")
        _expect("inference from the input", shapes == ([(2, 3)], [(2, 3)], []))

        g = f + mx.sym.Variable("y", shape=(4, 5))
        shapes = g.infer_shape()
        print(f"from output to input: f + y, y is (4, 5)    -> x {shapes[0][0]}")
        _expect("inference from the output", shapes == ([(4, 5), (4, 5)], [(4, 5)], []))

        a, b = mx.sym.Variable("a", shape=(2, 0)), mx.sym.Variable("b")
        c = mx.sym.Variable("c", shape=(0, 3))
        shapes = (a * b + b * c).infer_shape()
        print(f"from both sides:      a*b + b*c, a (2, ?), c (?, 3) -> {shapes[0]}")
        _expect("inference from both sides", shapes == ([(2, 3)] * 3, [(2, 3)], []))

        types = f.infer_type(x="float64")
        print(f"types:                x is float64          -> output {np.dtype(types[1][0]).name}")
        _expect("inference of types", np.dtype(types[1][0]) == np.float64)

        executor = f.simple_bind(ctx=mx.cpu(), x=(2, 2))
        result = executor.forward(is_train=True, x=mx.nd.array([[1, 2], [3, 4]]))[0].asnumpy().tolist()
        executor.backward(mx.nd.ones((2, 2)))
        slope = executor.grad_dict["x"].asnumpy().tolist()
        print(f"bound executor:       f([[1, 2], [3, 4]]) = {result}, gradient {slope}")
        _expect("the executor", result == [[6, 11], [18, 27]] and slope == [[4, 6], [8, 10]])


def derivatives(x: np.ndarray) -> list[np.ndarray]:
    """Return f, f', f'' and f''' on data, by automatic differentiation."""
    data = mx.nd.array(x, dtype=x.dtype)
    data.attach_grad()
    with mx.autograd.record():
        values = [mx.nd.quadratic(data, a=A, b=B, c=C)]
        for _ in range(3):
            values.append(mx.autograd.grad(values[-1], data, create_graph=True, retain_graph=True)[0])
    return [v.asnumpy() for v in values]


def _expected(x: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the same from NumPy, by the formulas of a textbook, each with the size of its largest terms."""
    wide = x.astype("float32") if x.dtype == np.float16 else x
    size = np.abs(wide)
    with np.errstate(all="ignore"):
        return [
            (wide * (A * wide + B) + C, abs(A) * size * size + abs(B) * size + abs(C)),
            (2 * A * wide + B, 2 * abs(A) * size + abs(B)),
            (np.full_like(wide, 2 * A), np.full_like(wide, 2 * abs(A))),
            (np.zeros_like(wide), np.zeros_like(wide)),
        ]


def _agree(found: np.ndarray, expected: np.ndarray, scale: np.ndarray) -> bool:
    """Return whether values agree to a few roundings of the largest term, or are neither of them finite."""
    with np.errstate(all="ignore"):
        expected = expected.astype(found.dtype)
        near = np.abs(found - expected) <= 8 * np.finfo(found.dtype).eps * scale
    return bool(np.all(near | (found == expected) | ~(np.isfinite(expected) | np.isfinite(found))))


def show_derivatives(x: np.ndarray, source: str) -> list[np.ndarray]:
    """Differentiate three times on data, and compare with NumPy."""
    _heading(f"Derivatives on {source}")
    print(f"f(x) = {TEXT}    shape {x.shape}, {x.dtype}")
    found = derivatives(x)
    for name, value, (expected, scale) in zip(_NAMES, found, _expected(x), strict=True):
        print(f"{name:5} {_summary(value)}")
        _expect(f"{name} on {source}", value.shape == x.shape and _agree(value, expected, scale))
    print("Each agrees with NumPy's value of the formula.")
    return found


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


def show_tests() -> None:
    """Run the checks that an operator's own tests would use."""
    _heading("Its tests")
    rng = np.random.default_rng(0)
    f = mx.sym.quadratic(mx.sym.Variable("x"), a=A, b=B, c=C)
    for shape in ((3,), (3, 4), (3, 4, 2)):
        x = rng.standard_normal(shape).astype("float32")
        ones = np.ones_like(x)
        try:
            test_utils.check_symbolic_forward(f, [x], [A * x**2 + B * x + C], rtol=1e-5, atol=1e-5)
            test_utils.check_symbolic_backward(f, [x], [ones], [2 * A * x + B], rtol=1e-5, atol=1e-5)
            test_utils.check_numeric_gradient(f, [x], atol=1e-3)
        except AssertionError as problem:
            raise Stop(f"a check failed on shape {shape}: {problem}") from None
        print(f"check_symbolic_forward, check_symbolic_backward, check_numeric_gradient on shape {shape}: passed")


def show_speed(values: np.ndarray, title: str) -> None:
    """Time the operator and its gradient beside NumPy."""
    _heading(f"Its speed on {title}, {_count(mx.context.get_num_threads(), 'thread')}")
    head = np.ones_like(values)
    plain, x, ones = (mx.nd.array(v, dtype=values.dtype) for v in (values, values, head))
    x.attach_grad()

    def restore() -> None:
        plain[:] = x[:] = values

    def forward_backward() -> tuple[mx.nd.NDArray, mx.nd.NDArray]:
        with mx.autograd.record():
            y = mx.nd.quadratic(x, a=A, b=B, c=C)
        y.backward(ones)
        return y, x.grad

    def numpy_forward() -> np.ndarray:
        return values * (A * values + B) + C

    def numpy_forward_backward() -> tuple[np.ndarray, np.ndarray]:
        return numpy_forward(), head * (2 * A * values + B)

    rows = (
        ("forward", 1, 2, lambda: mx.nd.quadratic(plain, a=A, b=B, c=C), numpy_forward),
        ("forward and backward", 2, 5, forward_backward, numpy_forward_backward),
    )
    with np.errstate(all="ignore"):
        expected = [wanted.astype(values.dtype) for wanted, _ in _expected(values)[:2]]
    near = float(max(1e-5, 8 * np.finfo(values.dtype).eps))
    print(f"{'':24}{'mxop':>23}{'NumPy':>23}{'ratio of time':>16}{'a copy':>14}")
    for label, results, passes, ours, theirs in rows:
        moved = passes * values.nbytes
        ways = {"mxop": Way(ours, restore), "NumPy": Way(theirs)}
        with np.errstate(all="ignore"):
            found = timed(ways, expected[:results], nbytes=moved, tolerance=near, limit=1.5, rounds=30)
        for name, told in found.wrong.items():
            _expect(f"{label} by {name} {told}", False)
        seconds = found.seconds
        shown = "".join(f"{1e3 * seconds[name]:10.3f} ms {moved / seconds[name] / 1e9:5.1f} GB/s" for name in ways)
        copy = f"{moved / seconds['copy'] / 1e9:9.1f} GB/s" if "copy" in seconds else ""
        doubt = f"  {' and '.join(found.too_fast)}: too fast to be true" if found.too_fast else ""
        print(f"{label:24}{shown}{seconds['mxop'] / seconds['NumPy']:16.3f}{copy}{doubt}")
    print("Medians of calls made in turn, their results newly allocated. GB/s counts each operand and result once; a copy is\n"
          "of as many bytes.")  # fmt: skip


def _count(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def show_picture(path: str, x: np.ndarray, found: Sequence[np.ndarray], asked: bool) -> None:
    """Draw f, f' and f'', where matplotlib is installed."""
    _heading("A picture")
    if not picture.available():
        if asked:
            raise Stop(f"--output {path}: {picture.HOW_TO_GET}")
        print(f"None: {picture.HOW_TO_GET}")
        return
    try:
        picture.draw(path, TEXT, x, list(zip(_NAMES[:3], found, strict=False)))
    except Stop as problem:
        if asked:
            raise
        print(f"None: {problem}")
        return
    print(f"f, f' and f'' are drawn in {os.path.abspath(path)}")
