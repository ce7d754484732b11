"""Where the arrays of ``Symbol.simple_bind`` come from: new ones, another executor's, or a buffer."""

from __future__ import annotations

from math import prod
from typing import Any

from ..graph.ir import Node
from ..opdef import infer
from ..support import dtypes
from ..support.errors import OpTypeError, OpValueError, items, shown


class Sharing:
    """Gives the arrays of an executor, for a variable's shape and type.

    Parameters
    ----------
    ctx : Context or None
    groups : dict of str to Context, optional
        Where the arrays of variables with the attribute ``ctx_group`` lie, among the devices of one kind: a graph runs on one.
    names : sequence of str, optional
        Arguments whose arrays and gradients are those of `executor`; with any, its states are shared, too.
    executor : Executor, optional
    buffer : dict of str to NDArray, optional
        All other arguments are the beginnings of the arrays there, as far as these are large enough; larger ones take
        their place.
    """

    def __init__(self, ctx: Any, groups: Any = None, names: Any = None, executor: Any = None, buffer: Any = None):
        if groups is not None and not isinstance(groups, dict):
            raise OpTypeError(f"simple_bind: group2ctx={shown(groups)}; expected a dictionary of groups and contexts")
        self.ctx, self.groups, self.executor, self.buffer = ctx, groups or {}, executor, buffer
        given = names is not None and executor is not None
        self.names = set(items(names, "simple_bind: shared_arg_names")) if given else set()

    def argument(self, node: Node, shape: tuple[int, ...], code: int, stype: str) -> Any:
        """Return the array of an argument."""
        if node.name not in self.names:
            return self._from_buffer(node.name, node, shape, code, stype)
        if node.name not in self.executor.arg_dict:
            raise OpValueError(f"simple_bind: shared_arg_names has {node.name!r}, which is not an argument of shared_exec")
        return _fitting(self.executor.arg_dict[node.name], node, shape, code)

    def gradient(self, node: Node, shape: tuple[int, ...], code: int, stype: str) -> Any:
        """Return the array of an argument's gradient."""
        there = self.executor.grad_dict.get(node.name) if node.name in self.names else None
        if there is None:
            return self._from_buffer(f"grad of {node.name}", node, shape, code, stype)
        return _fitting(there, node, shape, code)

    def state(self, node: Node, shape: tuple[int, ...], code: int, stype: str) -> Any:
        """Return the array of an auxiliary state."""
        there = self.executor.aux_dict.get(node.name) if self.names else None
        same = there is not None and there.shape == shape and there.dtype_code == code
        return there if same else self._zeros(node, shape, code, stype)

    def _from_buffer(self, name: str, node: Node, shape: tuple[int, ...], code: int, stype: str) -> Any:
        if self.buffer is None or stype != "default":
            return self._zeros(node, shape, code, stype)
        there, size = self.buffer.get(name), prod(shape)
        if there is None or there.dtype_code != code or there.size < size:
            there = self.buffer[name] = self._zeros(node, shape, code, stype)
        return there if there.shape == shape else there.reshape((-1,))[:size].reshape(shape)

    def _zeros(self, node: Node, shape: tuple[int, ...], code: int, stype: str) -> Any:
        ctx = self.groups.get((node.strings or {}).get("__ctx_group__"), self.ctx)
        if self.ctx is None or ctx.is_gpu != self.ctx.is_gpu:
            ctx = self.ctx
        if stype != "default":
            from ..ndarray import sparse

            return sparse.zeros(stype, shape, ctx, dtypes.NAMES[code])
        from ..context import current_context
        from ..ndarray.blank import filled

        return filled(shape, code, current_context() if ctx is None else ctx, 0)


def _fitting(array: Any, node: Node, shape: tuple[int, ...], code: int) -> Any:
    if array.shape != shape or array.dtype_code != code:
        there, wanted = (f"{dtypes.NAMES[c]} {infer.show(s)}" for s, c in ((array.shape, array.dtype_code), (shape, code)))
        raise OpValueError(f"simple_bind: {node.name!r} is {there} in shared_exec; this symbol needs {wanted}")
    return array
