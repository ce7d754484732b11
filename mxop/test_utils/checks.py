"""A symbol's outputs and gradients against what they should be.

The expected gradient is either given (`check_symbolic_backward`) or measured by finite differences
(`check_numeric_gradient`), which trusts nothing but the forward pass.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import ndarray as nd
from .compare import assert_almost_equal, to_numpy
from .defaults import default_context, default_dtype, get_atol, numeric_eps_of

Arrays = Mapping[str, Any] | Sequence[Any]
Tolerance = float | Mapping | None


# --------------------------------------------------------------------------------------------------------------------
# Reading what the caller gives
# --------------------------------------------------------------------------------------------------------------------
def _by_name(names: Sequence[str], values: Arrays | None, what: str, some: bool = False, more: bool = False) -> dict[str, Any]:
    """Return `values`, a dict or a list in the order of `names`, as a dict in that order.

    With `some`, names may be left out; with `more`, values without one of these names are passed over, as MXNet does: they are
    for outputs that nobody sees.
    """
    if more and values is not None:
        values = dict(zip(names, values, strict=False)) if not isinstance(values, Mapping) else values
        values = {name: values[name] for name in names if name in values}
    if values is None:
        return {}
    if isinstance(values, Mapping):
        missing = [] if some else [name for name in names if name not in values]
        unknown = [name for name in values if name not in names]
        if missing or unknown:
            raise ValueError(f"{what}: missing {missing}, unknown {unknown}; the names are {list(names)}")
        return {name: values[name] for name in names if name in values}
    if len(values) != len(names):
        raise ValueError(f"{what}: {len(values)} given for the {len(names)} names {list(names)}")
    return dict(zip(names, values, strict=True))


def _to_ndarray(value: Any, ctx: Any, dtype: Any) -> Any:
    """Return a new NDArray: an NDArray keeps its dtype, anything else gets `dtype` (its own for ``"asnumpy"``)."""
    if isinstance(value, (nd.NDArray, nd.sparse.BaseSparseNDArray)):
        return value.copyto(ctx)  # a copy, because finite differences write to it
    value = np.asarray(value)
    if dtype is None:
        dtype = default_dtype()
    return nd.array(value, ctx=ctx, dtype=value.dtype if isinstance(dtype, str) and dtype == "asnumpy" else dtype)


@dataclass(frozen=True)
class _Point:
    """A symbol and the values of its inputs on one device."""

    sym: Any
    ctx: Any
    args: dict[str, Any]
    aux: dict[str, Any]

    @classmethod
    def read(cls, sym: Any, location: Arrays, aux_states: Arrays | None, ctx: Any, dtype: Any) -> _Point:
        ctx = ctx or default_context()
        args = _by_name(sym.list_arguments(), location, "location")
        aux = _by_name(sym.list_auxiliary_states(), aux_states, "aux_states")
        return cls(
            sym,
            ctx,
            {name: _to_ndarray(value, ctx, dtype) for name, value in args.items()},
            {name: _to_ndarray(value, ctx, dtype) for name, value in aux.items()},
        )

    def bind(self, grads: Mapping[str, Any] | None = None, grad_req: Mapping[str, str] | str = "null") -> Any:
        return self.sym.bind(self.ctx, args=self.args, args_grad=grads or None, grad_req=grad_req, aux_states=self.aux or None)

    def copy(self, floats: Any = None) -> _Point:
        """Return the same point in other memory, its floating inputs in the dtype `floats` if given."""

        def duplicate(arrays: Mapping[str, Any]) -> dict[str, Any]:
            return {k: v.astype(floats) if floats and _is_float(v.dtype) else v.copy() for k, v in arrays.items()}

        return _Point(self.sym, self.ctx, duplicate(self.args), duplicate(self.aux))


def _is_float(dtype: Any) -> bool:
    dtype = np.dtype(dtype)
    return dtype.kind == "f" or dtype.name == "bfloat16"


# --------------------------------------------------------------------------------------------------------------------
# Forward and backward against given values
# --------------------------------------------------------------------------------------------------------------------
def simple_forward(sym: Any, ctx: Any = None, is_train: bool = False, **inputs: Any) -> Any:
    """Run a symbol forward on NumPy arrays.

    Parameters
    ----------
    sym : Symbol
        What to compute.
    ctx : Context, optional
        Where; the default context if None.
    is_train : bool
        Whether operators such as Dropout behave as in training.
    **inputs
        The value of every argument (and auxiliary state) by name.

    Returns
    -------
    numpy.ndarray or list of numpy.ndarray
        The output; a list when there are several.

    Examples
    --------
    >>> simple_forward(mx.sym.Variable("x") * 2, x=np.ones(2))
    array([2., 2.], dtype=float32)
    """
    states = sym.list_auxiliary_states()
    aux = {name: inputs.pop(name) for name in states if name in inputs}
    executor = _Point.read(sym, inputs, aux or None, ctx, None).bind()
    outputs = [output.asnumpy() for output in executor.forward(is_train=is_train)]
    return outputs[0] if len(outputs) == 1 else outputs


def check_symbolic_forward(sym: Any, location: Arrays, expected: Arrays, rtol: Tolerance = None, atol: Tolerance = None,
                           aux_states: Arrays | None = None, ctx: Any = None, equal_nan: bool = False,
                           dtype: Any = np.float32) -> list:  # fmt: skip
    """Check a symbol's outputs.

    Parameters
    ----------
    sym : Symbol
        What to compute.
    location : list or dict of array_like
        The value of every argument, in the order of ``sym.list_arguments()`` or by name.
    expected : list or dict of array_like
        The value of every output, in the order of ``sym.list_outputs()`` or by name; shapes broadcast, as in MXNet, and what
        there is beyond these outputs is passed over.
    rtol, atol : float, dict of dtype to float, or None
        As for `assert_almost_equal`.
    aux_states : list or dict of array_like, optional
        The value of every auxiliary state.
    ctx : Context, optional
        Where; the default context if None.
    equal_nan : bool
        Whether a NaN equals a NaN.
    dtype : dtype or "asnumpy"
        What NumPy inputs are cast to; ``"asnumpy"`` leaves each as it is. NDArrays are never cast.

    Returns
    -------
    list of NDArray
        The outputs.

    Raises
    ------
    AssertionError
        When an output is wrong: names it, and says where and by how much.

    Examples
    --------
    >>> lhs, rhs = mx.sym.Variable("lhs"), mx.sym.Variable("rhs")
    >>> a, b = np.array([[1, 2], [3, 4]]), np.array([[5, 6], [7, 8]])
    >>> outputs = check_symbolic_forward(mx.sym.dot(lhs, rhs), [a, b], [a @ b])
    """
    names = sym.list_outputs()
    expected = _by_name(names, expected, "expected", some=True, more=True)
    if not expected:
        raise ValueError(f"check_symbolic_forward: expected holds nothing for the outputs {names}")
    outputs = _Point.read(sym, location, aux_states, ctx, dtype).bind().forward(is_train=False)
    computed = dict(zip(names, outputs, strict=True))
    for name, value in expected.items():
        labels = f"EXPECTED_{name}", f"FORWARD_{name}"
        assert_almost_equal(value, computed[name], rtol, atol, labels, equal_nan)
    return outputs


def check_symbolic_backward(sym: Any, location: Arrays, out_grads: Arrays | None, expected: Arrays, rtol: Tolerance = None,
                            atol: Tolerance = None, aux_states: Arrays | None = None,
                            grad_req: str | Sequence[str] | Mapping[str, str] = "write", ctx: Any = None,
                            grad_stypes: Mapping[str, str] | None = None, equal_nan: bool = False,
                            dtype: Any = np.float32) -> dict[str, Any]:  # fmt: skip
    """Check the gradients of a symbol with respect to its arguments.

    Gradients start from random values, so that ``"add"`` is seen to add, ``"null"`` to leave alone and ``"write"`` to
    overwrite.

    Parameters
    ----------
    sym, location, rtol, atol, aux_states, ctx, equal_nan, dtype
        As for `check_symbolic_forward`.
    out_grads : list or dict of array_like, or None
        The head gradient of every output, and perhaps of hidden outputs, as MXNet's programs give them for
        BatchNorm; None for a symbol that is its own loss.
    expected : list or dict of array_like
        The gradient of every argument; a dict may leave out arguments that are not to be checked.
    grad_req : {"write", "add", "null"}, or a list or dict of these
        What is asked for each argument.
    grad_stypes : dict of str to str, optional
        The storage type of gradients, where not dense.

    Returns
    -------
    dict of str to NDArray
        The gradients by argument.

    Raises
    ------
    AssertionError
        When a gradient is wrong: names it, and says where and by how much.

    Examples
    --------
    >>> x = mx.sym.Variable("x")
    >>> grads = check_symbolic_backward(x * 2, [np.zeros(2)], [np.ones(2)], [np.full(2, 2.0)])
    """
    point = _Point.read(sym, location, aux_states, ctx, dtype)
    expected = _by_name(sym.list_arguments(), expected, "expected", some=True, more=not isinstance(expected, Mapping))
    reqs = _requests(grad_req, list(point.args), list(expected))
    grads, start = _random_grads(point, reqs, grad_stypes)
    executor = point.bind(grads, reqs)
    outputs = executor.forward(is_train=True)
    if out_grads is None:
        executor.backward()
    else:
        heads = _by_name(sym.list_outputs(), out_grads, "out_grads", some=not isinstance(out_grads, Mapping), more=True)
        pairs = zip(heads.values(), outputs, strict=False)
        executor.backward([_to_ndarray(head, out.context, out.dtype) for head, out in pairs])
    for name, value in expected.items():
        _check_gradient("EXPECTED", name, value, grads[name], reqs[name], start[name], (rtol, atol), equal_nan)
    return grads


def _requests(grad_req: Any, arguments: Sequence[str], wanted: Sequence[str]) -> dict[str, str]:
    """Return the request of each argument; "null" for those that nobody asked about."""
    if isinstance(grad_req, str):
        given = dict.fromkeys(arguments, grad_req)
    else:
        given = _by_name(arguments, grad_req, "grad_req", some=True)
    unknown = sorted(set(given.values()) - {"write", "inplace", "add", "null"})
    if unknown:
        raise ValueError(f"grad_req {unknown}: not one of write, inplace, add, null")
    return {name: given.get(name, "null") if name in wanted else "null" for name in arguments}


def _random_grads(
    point: _Point, reqs: Mapping[str, str], stypes: Mapping[str, str] | None
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return random gradient arrays to bind, and their values."""
    grads, start = {}, {}
    for name in reqs:
        value = point.args[name]
        # Rounded to the gradient's dtype at once, or "null" would seem to change it.
        grad = nd.array(np.random.normal(size=value.shape), ctx=point.ctx, dtype=value.dtype)
        stype = (stypes or {}).get(name, "default")
        grads[name] = grad if stype == "default" else grad.tostype(stype)
        start[name] = grad.asnumpy()
    return grads, start


def _check_gradient(label: str, name: str, expected: Any, actual: Any, req: str, start: np.ndarray,
                    tols: tuple[Tolerance, Tolerance], equal_nan: bool = False) -> None:  # fmt: skip
    labels = f"{label}_{name}", f"BACKWARD_{name}"
    if req == "null":
        assert_almost_equal(start, actual, 0, 0, (f"BEFORE_{name}", labels[1]))
        return
    expected = to_numpy(expected)
    if req == "add":
        expected = expected + start
    assert_almost_equal(expected, actual, *tols, labels, equal_nan)


# --------------------------------------------------------------------------------------------------------------------
# Gradients measured by finite differences
# --------------------------------------------------------------------------------------------------------------------
def numeric_grad(executor: Any, location: Arrays, aux_states: Arrays | None = None, eps: float = 1e-4,
                 use_forward_train: bool = True, dtype: Any = np.float32) -> dict[str, np.ndarray]:  # fmt: skip
    """Measure the gradient of the sum of an executor's first output by central differences.

    Parameters
    ----------
    executor : Executor
        Bound to arrays of the shapes in `location`.
    location : list or dict of array_like
        Where to measure: a value for every argument.
    aux_states : list or dict of array_like, optional
        The auxiliary states, put back before each run.
    eps : float
        The step: an argument is moved by half of it to either side.
    use_forward_train : bool
        Whether to run forward as in training.
    dtype : dtype
        Of the result.

    Returns
    -------
    dict of str to numpy.ndarray
        The gradient of every floating argument.
    """
    args = {k: to_numpy(v) for k, v in _by_name(list(executor.arg_dict), location, "location").items()}
    aux = {k: to_numpy(v) for k, v in _by_name(list(executor.aux_dict), aux_states, "aux_states").items()}
    names = [name for name, value in args.items() if _is_float(value.dtype)]

    def project(outputs: Sequence[np.ndarray]) -> float:
        return float(outputs[0].sum())

    found = _central_differences(executor, args, aux, names, dict.fromkeys(names, eps), project, use_forward_train)
    return {name: grad.astype(dtype) for name, grad in found.items()}


def _central_differences(executor: Any, args: Mapping[str, np.ndarray], aux: Mapping[str, np.ndarray], names: Sequence[str],
                         steps: Mapping[str, float], project: Callable[[Sequence[np.ndarray]], float],
                         is_train: bool) -> dict[str, np.ndarray]:  # fmt: skip
    """Return the derivative of ``project(outputs)`` with respect to each element of each named argument."""

    def outputs_at(name: str, value: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
        executor.arg_dict[name][:] = value
        for state, kept in aux.items():  # a training step moves these
            executor.aux_dict[state][:] = kept
        outputs = [output.asnumpy().astype(np.float64) for output in executor.forward(is_train=is_train)]
        return outputs, executor.arg_dict[name].asnumpy()

    for name, value in args.items():
        executor.arg_dict[name][:] = value
    grads = {}
    for name in names:
        grad = np.zeros(args[name].shape)
        for at in np.ndindex(grad.shape):
            low, high = np.array(args[name]), np.array(args[name])
            low[at] -= steps[name] / 2
            high[at] += steps[name] / 2
            (above, x_high), (below, x_low) = outputs_at(name, high), outputs_at(name, low)
            # The difference before the projection: large outputs that did not move then cancel exactly. And the step
            # that was really taken, which rounding to the argument's dtype may have changed.
            moved = [hi - lo for hi, lo in zip(above, below, strict=True)]
            grad[at] = project(moved) / (float(x_high[at]) - float(x_low[at]))
        executor.arg_dict[name][:] = args[name]
        grads[name] = grad
    return grads


def check_numeric_gradient(sym: Any, location: Arrays, aux_states: Arrays | None = None, numeric_eps: float | None = None,
                           rtol: Tolerance = None, atol: Tolerance = None,
                           grad_nodes: Sequence[str] | Mapping[str, str] | None = None, use_forward_train: bool = True,
                           ctx: Any = None, grad_stype_dict: Mapping[str, str] | None = None,
                           dtype: Any = np.float32) -> None:  # fmt: skip
    """Check the gradients of a symbol against finite differences of its outputs.

    The outputs are projected onto random weights, so that one backward pass tests every output element. The gradient
    under test runs in `dtype`; the differences are taken in float64 where the operators have it, because in float32
    the rounding of the forward pass would be most of what is measured.

    Parameters
    ----------
    sym, location, rtol, atol, aux_states, ctx, dtype
        As for `check_symbolic_forward`.
    numeric_eps : float, optional
        The step of the differences; by default one that suits the dtype of each argument.
    grad_nodes : list of str or dict of str to {"write", "add", "null"}, optional
        The arguments to check; by default all floating ones.
    use_forward_train : bool
        Whether the differences run forward as in training.
    grad_stype_dict : dict of str to str, optional
        The storage type of gradients, where not dense.

    Raises
    ------
    AssertionError
        When a gradient is wrong: names it, and says where and by how much.

    Examples
    --------
    >>> check_numeric_gradient(mx.sym.sin(mx.sym.Variable("x")), [np.random.randn(3)])
    """
    point = _Point.read(sym, location, aux_states, ctx, dtype)
    reqs = _node_requests(point, grad_nodes)
    steps = {name: numeric_eps or numeric_eps_of(point.args[name].dtype) for name in reqs}
    untouched = point.copy()  # a training step may move the states
    grads, start = _random_grads(point, reqs, grad_stype_dict)
    executor = point.bind(grads, {name: reqs.get(name, "null") for name in point.args})
    outputs = executor.forward(is_train=True)
    weights = [np.asarray(np.random.uniform(0.1, 1.1, out.shape)).astype(out.dtype) for out in outputs]
    executor.backward([nd.array(w, ctx=point.ctx, dtype=w.dtype) for w in weights])

    def project(moved: Sequence[np.ndarray]) -> float:
        return float(sum((w.astype(np.float64) * out).sum() for w, out in zip(weights, moved, strict=True)))

    wanted = [name for name, req in reqs.items() if req != "null"]
    measured = _measure(untouched, wanted, steps, project, use_forward_train)
    for name, req in reqs.items():
        kind = np.dtype(point.args[name].dtype)
        value = measured[name].astype(kind) if name in measured else None
        # Central differences are themselves no better than the square of their step, which float64's default
        # tolerance does not allow for.
        allowed = max(get_atol(None, kind), steps[name] ** 2) if atol is None else atol
        _check_gradient("NUMERICAL", name, value, grads[name], req, start[name], (rtol, allowed))


def _measure(point: _Point, names: Sequence[str], steps: Mapping[str, float], project: Callable[[Sequence[np.ndarray]], float],
             is_train: bool) -> dict[str, np.ndarray]:  # fmt: skip
    """Return the central differences at `point`, taken in float64 where that can be bound and run."""
    args = {name: value.asnumpy() for name, value in point.args.items()}
    aux = {name: value.asnumpy() for name, value in point.aux.items()}
    try:
        wide = {name: v.astype(np.float64) if _is_float(v.dtype) else v for name, v in args.items()}
        executor = point.copy(np.float64).bind()
        return _central_differences(executor, wide, aux, names, steps, project, is_train)
    except Exception:  # an operator without float64, of whatever origin; a real fault shows again in its own dtype
        return _central_differences(point.copy().bind(), args, aux, names, steps, project, is_train)


def _node_requests(point: _Point, grad_nodes: Sequence[str] | Mapping[str, str] | None) -> dict[str, str]:
    """Return the arguments whose gradient is to be checked, each with its request."""
    if grad_nodes is None:
        return {name: "write" for name, value in point.args.items() if _is_float(value.dtype)}
    if not isinstance(grad_nodes, Mapping):
        grad_nodes = dict.fromkeys(grad_nodes, "write")
    return _by_name(list(point.args), grad_nodes, "grad_nodes", some=True)
