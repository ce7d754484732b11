"""Optimizers, iterators and networks under test; two symbols side by side."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from itertools import product
from typing import Any

from .. import autograd, random
from ..mxnet import initializer, io
from .compare import assert_almost_equal, compare_ndarray_tuple
from .defaults import default_context
from .generate import rand_ndarray


class DummyIter(io.DataIter):
    """Give the first batch of an iterator for ever, for timing."""

    def __init__(self, real_iter: io.DataIter):
        super().__init__(real_iter.batch_size)
        self.real_iter = real_iter
        self.provide_data, self.provide_label = real_iter.provide_data, real_iter.provide_label  # type: ignore[attr-defined]
        self.the_batch = next(real_iter)

    def next(self) -> io.DataBatch:
        return self.the_batch


def same_symbol_structure(sym1: Any, sym2: Any) -> bool:
    """Return whether two symbols have the same operators in the same order."""
    first, second = ([node["op"] for node in json.loads(s.tojson())["nodes"]] for s in (sym1, sym2))
    return first == second


def compare_optimizer(opt1: Any, opt2: Any, shape: Any, dtype: Any, w_stype: str = "default", g_stype: str = "default",
                      rtol: float = 1e-4, atol: float = 1e-5, compare_states: bool = True,
                      ntensors: int = 1) -> None:  # fmt: skip
    """Raise unless two optimizers change random weights, and their states, alike.

    Parameters
    ----------
    opt1, opt2 : Optimizer
        The second one gets weights and gradients in the storage types.
    shape : tuple of int, or a list of `ntensors` of these
        With a list, `opt2` gets all weights in one call.
    dtype : dtype
    w_stype, g_stype : str
        Storage types of weights and gradients.
    rtol, atol : float
    compare_states : bool
    ntensors : int
    """
    several = isinstance(shape, list)
    shapes = shape if several else [shape]
    weights, grads = ([_random(s, dtype, stype) for s in shapes] for stype in (w_stype, g_stype))
    dense = [[a.copy() if a.stype == "default" else a.tostype("default") for a in arrays] for arrays in (weights, grads)]
    states = [opt2.create_state_multi_precision(i, w) for i, w in enumerate(weights)]
    if several:
        opt2.update_multi_precision(list(range(ntensors)), weights, grads, states)
    for i, (w, g) in enumerate(zip(*dense)):
        state = opt1.create_state_multi_precision(i, w)
        if not several:
            if compare_states:
                compare_ndarray_tuple(state, states[0])
            opt2.update_multi_precision(0, weights[0], grads[0], states[0])
        opt1.update_multi_precision(i, w, g, state)
        if compare_states:
            compare_ndarray_tuple(state, states[i], rtol=rtol, atol=atol)
        assert_almost_equal(w, weights[i], rtol=rtol, atol=atol)


def _random(shape: tuple[int, ...], dtype: Any, stype: str) -> Any:
    if stype == "default":
        return random.uniform(shape=shape, ctx=default_context(), dtype=dtype)
    return rand_ndarray(shape, stype, density=1, dtype=dtype)


def check_gluon_hybridize_consistency(net_builder: Callable[..., Any], data_l: Sequence[Any],
                                      numpy_func: Callable[..., Any] | None = None, test_grad: bool = True,
                                      rtol: float = 1e-4, atol: float = 1e-4) -> None:  # fmt: skip
    """Raise unless a network computes the same before and after ``hybridize``, recorded or not.

    Parameters
    ----------
    net_builder : callable
        ``net_builder(prefix=...)`` returns a new network of Gluon's kind.
    data_l : list of NDArray
        Its inputs.
    numpy_func : callable, optional
        Returns the expected output for the inputs as NumPy arrays.
    test_grad : bool
        Compare the gradients of the inputs, too.
    rtol, atol : float
    """
    outputs: list[Any] = []
    grads: list[list[Any]] = []
    start: tuple = ()
    for hybridize, recorded in product((False, True), (False, True) if test_grad else (False,)):
        net = net_builder(prefix="net_")
        net.initialize(*start)
        if hybridize:
            net.hybridize()
        inputs = [x.copy() for x in data_l]
        if recorded:
            for x in inputs:
                x.attach_grad()
        with autograd.record() if recorded else nullcontext():
            output = net(*inputs)
        if recorded:
            output.backward(output)
            grads.append([x.grad for x in inputs])
        outputs.append(output)
        start = start or (initializer.Load({name: p.data() for name, p in net.collect_params().items()}),)
    for output in outputs[1:]:
        assert_almost_equal(output, outputs[0], rtol=rtol, atol=atol)
    for gradient in grads[1:]:
        compare_ndarray_tuple(tuple(gradient), tuple(grads[0]), rtol=rtol, atol=atol)
    if numpy_func is not None:
        assert_almost_equal(outputs[0], numpy_func(*[x.asnumpy() for x in data_l]), rtol=rtol, atol=atol)
