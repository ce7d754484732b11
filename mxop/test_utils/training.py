"""Optimizers and iterators under test; two symbols side by side.  May import :mod:`mxop.io`, :mod:`mxop.random`."""

from __future__ import annotations

import json
from typing import Any

from .. import io, random
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
    """Tell whether two symbols have the same operators in the same order."""
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
    dense = [
        [a.copy() if a.stype == "default" else a.tostype("default") for a in arrays] for arrays in (weights, grads)
    ]
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
