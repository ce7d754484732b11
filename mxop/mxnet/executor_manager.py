"""``mx.executor_manager``: a batch cut into slices, one executor for each, as MXNet's first loops of training have it."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .. import ndarray as nd
from ..context import cpu
from ..support.errors import OpValueError, UnsupportedError, shown
from ..support.missing import hooks


# ---- slices -----------------------------------------------------------------------------------------------------------
def _split_input_slice(batch_size: int, work_load_list: Sequence[float]) -> list[slice]:
    """Return the slices of a batch whose sizes are to each other as the numbers of a list.

    Examples
    --------
    >>> _split_input_slice(10, [1, 4])
    [slice(0, 2, None), slice(2, 10, None)]
    """
    total = sum(work_load_list)
    sizes = [round(load * batch_size / total) for load in work_load_list]
    sizes[-1] += max(batch_size - sum(sizes), 0)
    slices, end = [], 0
    for size in sizes:
        begin, end = end, min(end + size, batch_size)
        if begin >= end:
            raise OpValueError(f"Too many slices: of a batch of {batch_size}, {shown(work_load_list)} leaves one empty")
        slices.append(slice(begin, end))
    return slices


def _check_arguments(symbol: Any) -> None:
    """Raise where two arguments, or two auxiliary states, have the same name."""
    for what, names in (("argument", symbol.list_arguments()), ("auxiliary state", symbol.list_auxiliary_states())):
        twice = [name for name, count in Counter(names).items() if count > 1]
        if twice:
            raise OpValueError(f"there is more than one {what} {twice[0]!r}; give the layers names of their own: {names}")


def _load_general(data: Sequence, targets: Sequence) -> None:
    """Copy each array to its target: an array, or pairs of a slice and an array."""
    for source, target in zip(data, targets):
        if isinstance(target, nd.NDArray):
            source.copyto(target)
            continue
        if target[-1][0].stop != source.shape[0]:
            raise OpValueError(f"a batch of {target[-1][0].stop} was expected; this one has {source.shape[0]}")
        for part, array in target:
            source[part].copyto(array)


def _load_data(batch: Any, targets: Sequence) -> None:
    """Copy the data of a batch to their targets."""
    _load_general(batch.data, targets)


def _load_label(batch: Any, targets: Sequence) -> None:
    """Copy the labels of a batch to their targets."""
    _load_general(batch.label, targets)


# ---- executors --------------------------------------------------------------------------------------------------------
class DataParallelExecutorGroup:
    """Executors of a symbol, one for each slice of the batch.

    Parameters
    ----------
    sym : Symbol
    arg_names, param_names : list of str
        All arguments, and those that are learnt.
    ctx : list of Context
    slices : list of slice
    train_data : DataIter or DataBatch
        Describes data and labels.
    shared_group : DataParallelExecutorGroup, optional
        Whose parameters, states and arrays for data are used.
    """

    def __init__(self, sym: Any, arg_names: list[str], param_names: Sequence[str], ctx: Sequence[Any], slices: list[slice],
                 train_data: Any, shared_group: DataParallelExecutorGroup | None = None):  # fmt: skip
        _check_arguments(sym)
        described = [*train_data.provide_data, *train_data.provide_label]
        self.data_names = [x[0] for x in train_data.provide_data]
        self.label_names = [x[0] for x in train_data.provide_label]
        self.aux_names = sym.list_auxiliary_states()
        self.param_idx = [i for i, name in enumerate(arg_names) if name in param_names]
        self.param_names = [arg_names[i] for i in self.param_idx]
        self.slices = slices
        self.shared_data_arrays = [{} for _ in ctx] if shared_group is None else shared_group.shared_data_arrays
        of_batch = {x[0] for x in described}
        req = {name: "null" if name in of_batch else "write" for name in sym.list_arguments()}
        self.train_execs = [
            sym.simple_bind(
                device, req, {x[0]: getattr(x, "dtype", "float32") for x in described},
                shared_arg_names=None if shared_group is None else self.param_names,
                shared_exec=None if shared_group is None else shared_group.train_execs[i],
                shared_buffer=self.shared_data_arrays[i],
                **{x[0]: (slices[i].stop - slices[i].start, *x[1][1:]) for x in described},
            )
            for i, device in enumerate(ctx)
        ]  # fmt: skip
        self.data_arrays = [self._sliced(name) for name in self.data_names]
        self.label_arrays = [self._sliced(name) for name in self.label_names]
        self.param_arrays = [[e.arg_arrays[i] for e in self.train_execs] for i in self.param_idx]
        self.grad_arrays = [[e.grad_arrays[i] for e in self.train_execs] for i in self.param_idx]
        self.aux_arrays = [[e.aux_arrays[i] for e in self.train_execs] for i in range(len(self.aux_names))]

    def _sliced(self, name: str) -> list[tuple[slice, Any]]:
        return [(part, executor.arg_dict[name]) for part, executor in zip(self.slices, self.train_execs)]

    def load_data_batch(self, data_batch: Any) -> None:
        """Copy data and labels of a batch to the executors."""
        _load_data(data_batch, self.data_arrays)
        _load_label(data_batch, self.label_arrays)

    def forward(self, is_train: bool = False) -> None:
        """Run all executors."""
        for executor in self.train_execs:
            executor.forward(is_train=is_train)

    def backward(self) -> None:
        """Compute the gradients of all executors."""
        for executor in self.train_execs:
            executor.backward()

    def update_metric(self, metric: Any, labels: Sequence, pre_sliced: bool = False) -> None:
        """Count the outputs; labels are those of the batch, or of each slice."""
        for i, (executor, part) in enumerate(zip(self.train_execs, self.slices)):
            metric.update(labels[i] if pre_sliced else [label[part] for label in labels], executor.outputs)


class DataParallelExecutorManager:
    """The executors of a network; of batches in buckets, those of each bucket, with the same parameters.

    Parameters
    ----------
    symbol : Symbol
    ctx : list of Context
    train_data : DataIter
    arg_names, param_names, aux_names : list of str
        All arguments, those that are learnt, auxiliary states.
    work_load_list : list of float, optional
        The share of the batch that each device gets.
    logger : Logger, optional
    sym_gen : callable, optional
        Makes the symbol of a bucket.

    Examples
    --------
    >>> net = mx.sym.LinearRegressionOutput(mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=1, name="fc"),
    ...                                     mx.sym.Variable("softmax_label"))
    >>> batches = mx.io.NDArrayIter(mx.nd.ones((4, 2)), mx.nd.ones((4, 1)), 4)
    >>> manager = DataParallelExecutorManager(net, [mx.cpu(0), mx.cpu(1)], batches, net.list_arguments(),
    ...                                       ["fc_weight", "fc_bias"], [])
    >>> manager.load_data_batch(batches.next())
    >>> manager.forward(is_train=True)
    >>> manager.backward()
    >>> [[g.asnumpy().tolist() for g in gradients] for gradients in manager.grad_arrays]
    [[[[-2.0, -2.0]], [[-2.0, -2.0]]], [[-2.0], [-2.0]]]
    """

    def __init__(self, symbol: Any, ctx: Sequence[Any], train_data: Any, arg_names: list[str], param_names: list[str],
                 aux_names: list[str], work_load_list: list[float] | None = None, logger: Any = None,
                 sym_gen: Callable[[Any], Any] | None = None):  # fmt: skip
        (logger or logging).info("Start training with %s", list(ctx))
        loads = [1] * len(ctx) if work_load_list is None else work_load_list
        if len(loads) != len(ctx):
            raise OpValueError(f"work_load_list={shown(loads)} has {len(loads)} numbers; there are {len(ctx)} devices")
        self.slices = _split_input_slice(train_data.batch_size, loads)
        self.arg_names, self.param_names, self.aux_names, self.ctx = arg_names, param_names, aux_names, ctx
        self.symbol, self.sym_gen = symbol, sym_gen
        self.execgrp = DataParallelExecutorGroup(symbol, arg_names, param_names, ctx, self.slices, train_data)
        self.curr_execgrp: Any = None  # that of the batch which was loaded
        if sym_gen is not None:
            self.execgrp_bucket = {train_data.default_bucket_key: self.execgrp}

    @property
    def param_arrays(self) -> list[list[Any]]:
        """The parameters, of each those of all executors."""
        return self.execgrp.param_arrays

    @property
    def grad_arrays(self) -> list[list[Any]]:
        """The gradients of the parameters."""
        return self.execgrp.grad_arrays

    @property
    def aux_arrays(self) -> list[list[Any]]:
        """The auxiliary states."""
        return self.execgrp.aux_arrays

    def install_monitor(self, monitor: Any) -> None:
        """Let a monitor watch all executors."""
        if self.sym_gen is not None:
            raise UnsupportedError("install_monitor: executors of buckets are made later, and not watched")
        for executor in self.execgrp.train_execs:
            monitor.install(executor)

    def set_params(self, arg_params: Mapping[str, Any], aux_params: Mapping[str, Any]) -> None:
        """Copy parameters and states to all executors."""
        for executor in self.execgrp.train_execs:
            executor.copy_params_from(arg_params, aux_params)

    def copy_to(self, arg_params: Mapping[str, Any], aux_params: Mapping[str, Any]) -> None:
        """Copy the means over all executors of parameters and states."""
        for names, blocks, targets in (
            (self.param_names, self.param_arrays, arg_params), (self.aux_names, self.aux_arrays, aux_params)
        ):  # fmt: skip
            for name, block in zip(names, blocks):
                mean = sum(array.as_in_context(cpu()) for array in block) / len(block)
                mean.astype(targets[name].dtype).copyto(targets[name])

    def load_data_batch(self, data_batch: Any) -> None:
        """Copy data and labels of a batch to the executors of its bucket."""
        self.curr_execgrp = self.execgrp if self.sym_gen is None else self._of_bucket(data_batch)
        self.curr_execgrp.load_data_batch(data_batch)

    def _of_bucket(self, batch: Any) -> DataParallelExecutorGroup:
        key = batch.bucket_key
        if key not in self.execgrp_bucket:
            self.execgrp_bucket[key] = DataParallelExecutorGroup(
                self.sym_gen(key), self.arg_names, self.param_names, self.ctx, self.slices, batch, self.execgrp
            )
        return self.execgrp_bucket[key]

    def forward(self, is_train: bool = False) -> None:
        """Run the executors of the batch."""
        self.curr_execgrp.forward(is_train=is_train)

    def backward(self) -> None:
        """Compute the gradients of the batch."""
        self.curr_execgrp.backward()

    def update_metric(self, metric: Any, labels: Sequence, pre_sliced: bool = False) -> None:
        """Count the outputs of the batch."""
        self.curr_execgrp.update_metric(metric, labels, pre_sliced)


__all__ = ["DataParallelExecutorGroup", "DataParallelExecutorManager"]

__getattr__, __dir__ = hooks(globals(), __all__)
