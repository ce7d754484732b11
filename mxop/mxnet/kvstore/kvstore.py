"""The stores of one process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ... import ndarray as nd
from ...ndarray import NDArray
from ...ndarray.sparse import BaseSparseNDArray
from ...support.errors import MXNetError, OpLookupError, OpTypeError, OpValueError, shown
from ...support.files import contents, path_of, reporting
from ...support.nested import leaves
from ..optimizer import Optimizer, get_updater
from .base import LOCAL, KVStoreBase


def _pairs(key: Any, value: Any, what: str) -> Iterator[tuple[Any, list]]:
    """Give each key with the list of its arrays."""
    if not isinstance(key, (list, tuple)):
        key, value = [key], [value]
    if not isinstance(value, (list, tuple)) or not value or len(value) % len(key):
        raise OpValueError(f"KVStore: {len(key)} keys and {what}={shown(value)} do not belong together")
    each = len(value) // len(key)
    for at, one in enumerate(key):
        if not isinstance(one, (int, str)):
            raise OpTypeError(f"KVStore: the key {shown(one)} is a {type(one).__name__}; expected an int or a str")
        arrays = leaves(value[at * each : (at + 1) * each])
        if not arrays or not all(isinstance(a, (NDArray, BaseSparseNDArray)) for a in arrays):
            raise OpTypeError(f"KVStore: {what} of {one!r} is {shown(value[at])}; expected an NDArray or a list of them")
        yield one, arrays


class KVStore(KVStoreBase):
    """Arrays by key: what is pushed is summed, and replaces the value or goes to an updater; ``pull`` copies the value.

    Values stay where they were initialized; those of a ``device`` store move to the GPU of the first array that is pushed to
    them, and are summed and changed there.

    Parameters
    ----------
    name : str

    Examples
    --------
    >>> store = mx.kv.create("local")
    >>> store.init("w", mx.nd.ones((2,)))
    >>> store.set_optimizer(mx.optimizer.SGD(learning_rate=0.5))
    >>> store.push("w", [mx.nd.ones((2,)), mx.nd.ones((2,))])  # the gradients of two devices
    >>> w = mx.nd.empty((2,))
    >>> store.pull("w", out=w)
    >>> w.asnumpy().tolist()
    [0.0, 0.0]
    """

    def __init__(self, name: str = "local"):
        self._name, self._updater = name, None
        self._values: dict[Any, NDArray] = {}

    @property
    def type(self) -> str:
        return self._name

    @property
    def rank(self) -> int:
        return 0

    @property
    def num_workers(self) -> int:
        return 1

    @staticmethod
    def is_capable(capability: str) -> bool:
        return capability.lower() == KVStoreBase.OPTIMIZER

    def _value(self, key: Any) -> NDArray:
        if key not in self._values:
            raise OpLookupError(f"KVStore: the key {key!r} was not initialized; call init({key!r}, value) first")
        return self._values[key]

    # ---- values -------------------------------------------------------------------------------------------------------
    def init(self, key: Any, value: Any) -> None:
        """Put values there, once for a key."""
        for one, arrays in _pairs(key, value, "value"):
            if self._values and isinstance(one, str) != isinstance(next(iter(self._values)), str):
                there = shown(list(self._values))
                raise OpTypeError(f"KVStore: {one!r} is a key beside {there}; expected all int or all str")
            if one in self._values:
                raise MXNetError(f"KVStore: the key {one!r} was initialized before; push changes it")
            self._values[one] = arrays[0].copy()

    def push(self, key: Any, value: Any, priority: int = 0) -> None:
        """Hand arrays, of which those of one key are summed, to the updater, or put them in the place of the value."""
        pushed: dict[Any, list] = {}
        for one, arrays in _pairs(key, value, "value"):
            self._value(one)  # an error before anything changes
            pushed.setdefault(one, []).extend(arrays)
        for one, arrays in pushed.items():
            there = self._values[one] = self._at(self._value(one), arrays)
            merged = arrays[0].as_in_context(there.context)
            for array in arrays[1:]:
                merged = merged + array.as_in_context(there.context)
            if self._updater is not None:
                self._updater(one, merged, there)
            else:
                self._values[one] = merged.copy() if merged is arrays[0] else merged

    def _at(self, value: NDArray, arrays: list) -> NDArray:
        """Return a value where it is changed: a device store has it on the GPU that gradients come from first."""
        place = arrays[0].context
        return value.as_in_context(place) if "device" in self._name and place.is_gpu and not value.context.is_gpu else value

    def pull(self, key: Any, out: Any = None, priority: int = 0, ignore_sparse: bool = True) -> None:
        """Copy values to arrays, with `ignore_sparse` only to dense ones."""
        for one, arrays in _pairs(key, out, "out"):
            there = self._value(one)
            for array in arrays:
                if not (ignore_sparse and array.stype != "default"):
                    there.copyto(array)

    def pushpull(self, key: Any, value: Any, out: Any = None, priority: int = 0) -> None:
        """Push, then pull."""
        self.push(key, value, priority)
        self.pull(key, value if out is None else out, priority)

    def broadcast(self, key: Any, value: Any, out: Any, priority: int = 0) -> None:
        """Initialize, then pull."""
        self.init(key, value)
        self.pull(key, out, priority)

    def row_sparse_pull(self, key: Any, out: Any = None, priority: int = 0, row_ids: Any = None) -> None:
        """Copy some rows of a value to row_sparse arrays."""
        if row_ids is None:
            raise OpValueError("row_sparse_pull: row_ids=None; expected the numbers of the rows")
        ids = leaves(row_ids)
        outs = [(one, array) for one, arrays in _pairs(key, out, "out") for array in arrays]
        if not ids or len(outs) % len(ids) or not all(isinstance(rows, NDArray) for rows in ids):
            raise OpValueError(f"row_sparse_pull: row_ids={shown(row_ids)} and {len(outs)} arrays do not belong together")
        for at, (one, array) in enumerate(outs):
            if array.stype != "row_sparse":
                raise OpTypeError(f"row_sparse_pull: out of {one!r} is a {array.stype!r} array; expected 'row_sparse'")
            rows = nd.array(np.unique(ids[at * len(ids) // len(outs)].asnumpy()))
            nd.sparse.retain(self._value(one).tostype("row_sparse"), rows).copyto(array)

    # ---- what changes them --------------------------------------------------------------------------------------------
    def set_optimizer(self, optimizer: Optimizer) -> None:
        """Let what is pushed be gradients, with which an optimizer changes the values."""
        self._set_updater(get_updater(optimizer))

    def _set_updater(self, updater: Callable[[Any, NDArray, NDArray], None]) -> None:
        """Call ``updater(key, pushed, value)``, which changes the value, from now on."""
        self._updater = updater

    def set_gradient_compression(self, compression_params: Any) -> None:
        """Refuse: nothing is sent anywhere here that could be made smaller."""
        raise MXNetError(f"set_gradient_compression: a {self._name!r} store of one process sends nothing to compress")

    def _states(self, what: str) -> Any:
        if not hasattr(self._updater, "get_states"):
            raise MXNetError(f"{what}: there is no optimizer; call set_optimizer first")
        return self._updater

    def save_optimizer_states(self, fname: str, dump_optimizer: bool = False) -> None:
        """Write the states of the optimizer to a file."""
        states, path = self._states("save_optimizer_states"), path_of(fname, "save_optimizer_states")
        with reporting("save_optimizer_states", path):
            Path(path).write_bytes(states.get_states(dump_optimizer))

    def load_optimizer_states(self, fname: str) -> None:
        """Read the states of the optimizer from a file."""
        updater, path = self._states("load_optimizer_states"), path_of(fname, "load_optimizer_states")
        content = contents(path, "load_optimizer_states")
        try:
            updater.set_states(content)
        except MXNetError as problem:
            raise type(problem)(f"load_optimizer_states: {path!r}: {problem}") from None

    def barrier(self) -> None:
        """Wait for the other processes, of which there are none."""

    _barrier = barrier


for _name in ("local", "device", "local_update_cpu", "local_allreduce_cpu", "local_allreduce_device"):
    LOCAL[_name] = KVStore
