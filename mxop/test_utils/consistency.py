"""One symbol on several devices and dtypes: does it give the same everywhere, and how fast is it."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .. import ndarray as nd
from .compare import assert_almost_equal, to_numpy
from .defaults import default_context

Tolerance = float | Mapping | None


def check_consistency(sym: Any, ctx_list: Sequence[Mapping[str, Any]], scale: float = 1.0,
                      grad_req: str | Sequence[str] | Mapping[str, str] = "write", arg_params: Mapping[str, Any] | None = None,
                      aux_params: Mapping[str, Any] | None = None, rtol: Tolerance = None, atol: Tolerance = None,
                      raise_on_err: bool = True, ground_truth: Mapping[str, Any] | None = None, equal_nan: bool = False,
                      use_uniform: bool = False, rand_type: Any = np.float64) -> dict[str, Any]:  # fmt: skip
    """Check that a symbol gives the same outputs and gradients in several settings.

    Parameters
    ----------
    sym : Symbol or list of Symbol
        What to compute; a list has one symbol for each setting.
    ctx_list : list of dict
        The settings: what `simple_bind` takes, ``ctx``, ``type_dict`` and the shapes of the arguments. The one with
        the most precise output is what the others are held to.
    scale : float
        Standard deviation (bound, with `use_uniform`) of the random inputs.
    grad_req : {"write", "add", "null"}, or a list or dict of these
        What is asked for the gradients; ``"null"`` checks the outputs alone.
    arg_params, aux_params : dict of str to array_like, optional
        Values to use instead of random inputs and zero states.
    rtol, atol : float, dict of dtype to float, or None
        As for `assert_almost_equal`.
    raise_on_err : bool
        Whether to raise at the first difference; otherwise every difference is printed.
    ground_truth : dict of str to array_like, optional
        What outputs and gradients should be, by name; then every setting is checked against it.
    equal_nan : bool
        Whether a NaN equals a NaN.
    use_uniform : bool
        Whether random inputs are uniform instead of normal.
    rand_type : dtype
        What random inputs are rounded to, before each setting rounds them to its own dtype.

    Returns
    -------
    dict of str to NDArray
        The outputs and gradients that the others were held to.

    Raises
    ------
    AssertionError
        Names the two settings, the array, the place and the error.

    Examples
    --------
    >>> sym = mx.sym.sin(mx.sym.Variable("x"))
    >>> settings = [{"ctx": mx.cpu(), "x": (2, 3), "type_dict": {"x": t}} for t in (np.float32, np.float64)]
    >>> truth = check_consistency(sym, settings)
    """
    executors = _bind_all(sym, ctx_list, grad_req)
    _fill(executors, arg_params or {}, aux_params or {}, scale, use_uniform, rand_type)
    tolerance = {"rtol": rtol, "atol": atol, "equal_nan": equal_nan}
    with_grad = grad_req != "null"

    for executor in executors:
        executor.forward(is_train=False)
    precisions = [_precision(executor.outputs[0].dtype) for executor in executors]
    best = precisions.index(max(precisions))
    truth = dict(ground_truth or _results(executors[best], False))
    _compare_all(executors, ctx_list, truth, None if ground_truth else best, False, "predict", tolerance, raise_on_err)
    if not with_grad:
        return truth

    for executor in executors:
        executor.forward(is_train=True)
    # Everyone gets the same head gradients: each one's own outputs would count their differences twice.
    heads = [output.asnumpy() for output in executors[best].outputs]
    for executor in executors:
        pairs = zip(heads, executor.outputs, strict=True)
        executor.backward([nd.array(head, ctx=out.context, dtype=out.dtype) for head, out in pairs])
    truth = dict(ground_truth or _results(executors[best], True))
    _compare_all(executors, ctx_list, truth, None if ground_truth else best, True, "train", tolerance, raise_on_err)
    return truth


def _bind_all(sym: Any, ctx_list: Sequence[Mapping[str, Any]], grad_req: Any) -> list:
    syms = list(sym) if isinstance(sym, (list, tuple)) else [sym] * len(ctx_list)
    if len(syms) != len(ctx_list):
        raise ValueError(f"{len(syms)} symbols for {len(ctx_list)} settings")
    if len({tuple(one.list_arguments()) for one in syms}) > 1:
        raise ValueError(f"the symbols take different arguments: {[one.list_arguments() for one in syms]}")
    return [one.simple_bind(grad_req=grad_req, **spec) for one, spec in zip(syms, ctx_list, strict=True)]


def _fill(executors: Sequence[Any], arg_params: Mapping[str, Any], aux_params: Mapping[str, Any], scale: float,
          use_uniform: bool, rand_type: Any) -> None:  # fmt: skip
    """Give every executor the same inputs and states, and zero gradients."""

    def draw(shape: tuple[int, ...]) -> np.ndarray:
        drawn = np.random.uniform(-scale, scale, shape) if use_uniform else np.random.normal(0, scale, shape)
        return np.asarray(drawn).astype(rand_type)

    first = executors[0]
    args = {k: to_numpy(arg_params[k]) if k in arg_params else draw(v.shape) for k, v in first.arg_dict.items()}
    aux = {k: to_numpy(aux_params[k]) if k in aux_params else np.zeros(v.shape) for k, v in first.aux_dict.items()}
    for executor in executors:
        for arrays, values in ((executor.arg_dict, args), (executor.aux_dict, aux)):
            for name, array in arrays.items():
                array[:] = values[name].astype(array.dtype)
        for grad in executor.grad_dict.values():
            if grad is not None:
                grad[:] = 0


def _precision(dtype: Any) -> tuple[bool, int]:
    """Return a key that orders dtypes by precision; floats above integers."""
    dtype = np.dtype(dtype)
    return dtype.kind not in "iub", dtype.itemsize


def _results(executor: Any, with_grad: bool) -> dict[str, Any]:
    """Return copies of the outputs, and with `with_grad` of the gradients, by name."""
    found = {name: value.copy() for name, value in executor.output_dict.items()}
    if with_grad:
        found |= {name: value.copy() for name, value in executor.grad_dict.items() if value is not None}
    return found


def _compare_all(executors: Sequence[Any], ctx_list: Sequence[Mapping[str, Any]], truth: Mapping[str, Any], best: int | None,
                 with_grad: bool, phase: str, tolerance: Mapping[str, Any], raise_on_err: bool) -> None:  # fmt: skip
    """Compare every executor but the `best` with the truth, by the position of outputs and the name of gradients."""
    reference = "the ground truth" if best is None else f"setting {best} ({ctx_list[best]['ctx']})"
    # Symbols of a list may name their outputs differently (automatic names), so outputs go by position.
    outputs = [truth[name] for name in executors[best or 0].output_dict if name in truth]
    for i, executor in enumerate(executors):
        if i == best:
            continue
        pairs = list(zip(executor.output_dict, executor.outputs, outputs, strict=best is not None))
        if with_grad:
            pairs += [(k, v, truth[k]) for k, v in executor.grad_dict.items() if v is not None and k in truth]
        for name, actual, wanted in pairs:
            try:
                assert_almost_equal(actual, wanted, names=(name, "wanted"), **tolerance)
            except AssertionError as error:
                message = f"{phase}: {name} of setting {i} ({ctx_list[i]['ctx']}) differs from {reference}\n{error}"
                if raise_on_err:
                    raise AssertionError(message) from None
                print(message, file=sys.stderr)


def check_speed(sym: Any, location: Mapping[str, Any] | None = None, ctx: Any = None, N: int = 20, grad_req: Any = None,
                typ: str = "whole", **kwargs: Any) -> float:  # fmt: skip
    """Return the mean seconds that one run of a symbol takes.

    Parameters
    ----------
    sym : Symbol
        What to run.
    location : dict of str to array_like, optional
        The value of every argument; standard normal by default.
    ctx : Context, optional
        Where; the default context if None.
    N : int
        How many runs to average over; one more comes before them to warm up.
    grad_req : str, list or dict, optional
        As for `simple_bind`; "write" by default.
    typ : {"whole", "forward"}
        Whether to time forward and backward, or forward alone.
    **kwargs
        Without `location`: what `simple_bind` takes, such as the shapes of the arguments.
    """
    if typ not in ("whole", "forward"):
        raise ValueError(f"typ {typ!r}: whole or forward")
    shapes = kwargs if location is None else {name: np.shape(value) for name, value in location.items()}
    executor = sym.simple_bind(ctx=ctx or default_context(), grad_req=grad_req or "write", **shapes)
    for name, array in executor.arg_dict.items():
        given = location is not None and name in location
        value = to_numpy(location[name]) if given else np.random.normal(size=array.shape)
        array[:] = value.astype(array.dtype)

    def run() -> None:
        executor.forward(is_train=typ == "whole")
        if typ == "whole":
            executor.backward(executor.outputs)

    run()
    nd.waitall()
    start = time.perf_counter()
    for _ in range(N):
        run()
    nd.waitall()
    return (time.perf_counter() - start) / N
