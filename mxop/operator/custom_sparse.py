"""``Custom`` on sparse arrays, for classes that say by ``infer_storage_type`` which they take and give.

A class that says nothing of storage is run on dense arrays.  What ``backward`` writes goes on dense, as all gradients between
calls do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import autograd
from .._core import core, tape
from ..ndarray.sparse import cast_storage
from ..ndarray.sparse.arrays import BaseSparseNDArray, dense, nothing
from ..ndarray.sparse.history import handle, involved, snapshot, stand_in
from ..opdef import Attrs
from ..support import dtypes
from ..support.errors import OpTypeError, OpValueError
from . import answers
from .custom_op import Custom, CustomOpProp

_STORAGE = "default", "row_sparse", "csr"


def call(op: Custom, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Run the class that ``op_type`` names; NotImplemented where it does not speak of storage, or is given none of sparse."""
    arrays = {n: x for n, x in kwargs.items() if isinstance(x, core.NDArray)}
    attrs = op.parse({n: x for n, x in kwargs.items() if n not in arrays and n != "name"})
    about = op._about(attrs)
    if type(about.prop).infer_storage_type is CustomOpProp.infer_storage_type:
        return NotImplemented
    named, count = op.input_names(attrs), len(args) + len(arrays)
    inputs = [*args, *(arrays.pop(n) for n in named[len(args) :] if n in arrays)]
    if len(inputs) != len(named) or arrays:
        raise OpTypeError(f"expected the inputs {', '.join(named)}; got {count} arrays")
    stored = _storage(about, "infer_storage_type", about.names, [x.stype for x in inputs[: len(about.arguments)]])
    if all(s == "default" for part in stored for s in part):
        return NotImplemented
    given = [cast_storage(x, s) for x, s in zip(inputs, stored[0] + stored[2], strict=True)]
    outputs = _outputs(op, attrs, given, stored[1])
    state = op.make_state(attrs, given)
    with autograd.pause(train_mode=tape.training()):
        op.run(attrs, state, tape.training(), ["write"] * len(outputs), given, outputs)
    tracked = involved(inputs)
    if tracked:
        _record(_OfCall(op, attrs, state, inputs, given, outputs), tracked, outputs)
    return outputs if len(outputs) > 1 else outputs[0]


def _storage(about: Any, method: str, names: Sequence[Sequence[str]], *given: list[str]) -> list[list[str]]:
    """Return how a class wants its arrays stored, of which `names` tells."""
    found = answers.answer(about.prop, method, *(list(g) for g in given))
    counts = [len(n) for n in names]
    try:
        stored = [list(part) for part in found]
    except TypeError:
        stored = []
    if [len(part) for part in stored] != counts or not all(s in _STORAGE for part in stored for s in part):
        raise OpValueError(f"{answers.said(about.prop, method)} returned {answers.shown(found)}; expected {len(counts)} lists "
                           f"of {', '.join(map(str, counts))} items, each one of {', '.join(_STORAGE)}")  # fmt: skip
    return stored


def _outputs(op: Custom, attrs: Attrs, given: list, stored: list[str]) -> list:
    """Return zeros for what the class computes."""
    unknown: list = [None] * len(stored)
    _, shapes = op.infer_shape(attrs, [x.shape for x in given], unknown)
    _, types = op.infer_type(attrs, [dtypes.code_of(x.dtype) for x in given], [dtypes.UNKNOWN] * len(stored))
    context = given[0].context
    return [nothing(s, shape, dtypes.numpy_dtype(t), context) for s, shape, t in zip(stored, shapes, types, strict=True)]


def _record(function: Any, inputs: list, outputs: list) -> None:
    """Make arrays, dense or sparse, the results of a call."""
    known = []
    for x in outputs:
        if isinstance(x, BaseSparseNDArray):
            x._history = stand_in(x.shape, x._values)
        known.append(x._history if isinstance(x, BaseSparseNDArray) else x)
    tape.record_user(function, inputs, known)


class _OfCall:
    """The gradient of a call: the class's ``backward``, on arrays stored as it says."""

    def __init__(self, op: Custom, attrs: Attrs, state: Any, inputs: list, given: list, outputs: list):
        self.op, self.attrs, self.state = op, attrs, state
        self.wanted = [handle(x) is not None for x in inputs]
        self.given = snapshot(given)
        self.outputs = [x._alias() if isinstance(x, BaseSparseNDArray) else x.detach() for x in outputs]

    def _backward(self, heads: list) -> list:
        about = self.op._about(self.attrs)
        n = len(about.arguments)
        of_inputs = [x.stype for x in self.given]
        lists = [
            ["default"] * len(heads), of_inputs[:n], [x.stype for x in self.outputs], ["default"] * n, of_inputs[n:],
        ]  # fmt: skip
        of_heads, _, _, of_grads, _ = _storage(about, "infer_storage_type_backward", lists, *lists)
        wanted = self.wanted[:n]
        grads = [nothing(s, x.shape, x.dtype, x.context) for s, x in zip(of_grads, self.given[:n], strict=True)]
        with autograd.pause(train_mode=tape.training()):
            self.op.run_backward(
                self.attrs, self.state, tape.training(), ["write" if w else "null" for w in wanted],
                [cast_storage(h, s) for h, s in zip(heads, of_heads, strict=True)], self.given, self.outputs, grads,
            )  # fmt: skip
        found = [dense(g) for g, w in zip(grads, wanted, strict=True) if w]
        return [*found, *[None] * sum(self.wanted[n:])]  # states have no gradient
