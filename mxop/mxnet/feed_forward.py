"""``mx.model.FeedForward``: a symbol trained, tried and kept with one object, as MXNet's oldest programs do it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..context import Context, current_context
from ..graph.feeding import assign
from ..ndarray import NDArray
from ..support.errors import OpTypeError, OpValueError, all_end_at_caller, shown
from ..symbol import Symbol
from . import metric as metrics
from . import optimizer
from .callback import BatchEndParam, LogValidationMetricsCallback
from .checkpoints import load_checkpoint, save_checkpoint
from .initializer import InitDesc, Uniform, create
from .io import DataBatch, DataIter, NDArrayIter


def _called(callbacks: Any, *args: Any) -> None:
    for callback in callbacks if isinstance(callbacks, (list, tuple)) else [callbacks]:
        if callback is not None:
            callback(*args)


class FeedForward:
    """A network with its parameters, which learns from arrays or iterators.

    Parameters
    ----------
    symbol : Symbol or callable
        The network; for batches in buckets, a function that returns the symbol for a ``bucket_key``. Their parameters are
        those of the symbol for the iterator's ``default_bucket_key``.
    ctx : Context or list of Context, optional
        The device. Of a list, only the first one is used.
    num_epoch : int, optional
        Number of passes over the data.
    epoch_size : int, optional
        Number of batches in an epoch, by default all.
    optimizer : str or Optimizer
        For a name, `kwargs` are the optimizer's parameters, and gradients are divided by the batch size.
    initializer : str or Initializer
        By default ``Uniform(0.01)``.
    numpy_batch_size : int
        Batch size for data given as arrays.
    arg_params, aux_params : dict of str to NDArray, optional
        Parameters to begin with.
    allow_extra_params : bool
        Whether `arg_params` may have names that the symbol does not.
    begin_epoch : int
        The number of the first epoch.

    Examples
    --------
    >>> import mxop as mx, numpy as np
    >>> net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=1, name="fc")
    >>> net = mx.sym.LinearRegressionOutput(net, mx.sym.Variable("softmax_label"))
    >>> x = np.random.RandomState(0).uniform(-1, 1, (64, 2))
    >>> learner = mx.model.FeedForward(net, num_epoch=50, numpy_batch_size=16, learning_rate=0.5)
    >>> learner.fit(x, x @ [1, -2] + 3, eval_metric="mse")
    >>> learner.arg_params["fc_weight"].asnumpy().round(2).tolist()
    [[1.0, -2.0]]
    """

    def __init__(self, symbol: Symbol | Callable[[Any], Symbol], ctx: Context | Sequence[Context] | None = None,
                 num_epoch: int | None = None, epoch_size: int | None = None, optimizer: Any = "sgd", initializer: Any = None,
                 numpy_batch_size: int = 128, arg_params: Mapping[str, NDArray] | None = None,
                 aux_params: Mapping[str, NDArray] | None = None, allow_extra_params: bool = False,
                 begin_epoch: int = 0, **kwargs: Any):  # fmt: skip
        made = isinstance(symbol, Symbol)
        if not made and not callable(symbol):
            raise OpTypeError(f"FeedForward: symbol={shown(symbol)}; expected a Symbol, or a function of bucket keys")
        self.ctx = list(ctx) if ctx and isinstance(ctx, (list, tuple)) else [ctx or current_context()]
        if not all(isinstance(device, Context) for device in self.ctx):
            raise OpTypeError(f"FeedForward: ctx={shown(ctx)}; expected a context such as mx.cpu(), or a list of them")
        self.symbol: Any = symbol if made else None
        self.sym_gen: Any = None if made else symbol
        self.num_epoch, self.epoch_size, self.begin_epoch = num_epoch, epoch_size, begin_epoch
        self.optimizer, self.kwargs = optimizer, kwargs
        initializer = Uniform(0.01) if initializer is None else initializer
        self.initializer = create(initializer) if isinstance(initializer, (str, type)) else initializer
        self.numpy_batch_size = numpy_batch_size
        self.arg_params: dict[str, NDArray] | Any = arg_params
        self.aux_params: dict[str, NDArray] | Any = aux_params
        self.allow_extra_params = allow_extra_params
        self._leave_out_extra()

    def _leave_out_extra(self) -> None:
        if self.allow_extra_params and self.symbol is not None:
            self.arg_params = _those(self.arg_params, self.symbol.list_arguments())
            self.aux_params = _those(self.aux_params, self.symbol.list_auxiliary_states())

    # ---- data and parameters ------------------------------------------------------------------------------------------
    def _batches(self, data: Any, label: Any, training: bool) -> DataIter:
        """Return an iterator of what may be an array."""
        if isinstance(data, (np.ndarray, NDArray)):
            if label is None and training:
                raise OpValueError("FeedForward: an array of data has no y: write fit(X, y), eval_data=(X, y), or an iterator")
            label = np.zeros(data.shape[0]) if label is None else label
            label = np.asarray(label) if isinstance(label, (list, tuple)) else label
            if label.ndim == 2 and label.shape[1] == 1:
                label = label.reshape((-1,))
            size = min(data.shape[0], self.numpy_batch_size)
            return NDArrayIter(data, label, size, training, "roll_over" if training else "pad")
        if not all(hasattr(data, name) for name in ("provide_data", "reset", "next")):
            raise OpTypeError(f"FeedForward: the data are {shown(data)}; expected an array or an iterator of mx.io")
        return data

    def _evaluated(self, data: Any) -> DataIter | None:
        if isinstance(data, (tuple, list)) and len(data) == 2:
            return self._batches(*(np.asarray(d) if isinstance(d, list) else d for d in data), True)
        return None if data is None else self._batches(data, None, True)

    def _bound(self, batches: DataIter, grad_req: str, labels: bool) -> Any:
        """Return an executor with the parameters, which are made where there are none."""
        if self.symbol is None:
            raise OpValueError("FeedForward: the symbol is a function of bucket keys; fit makes it")
        if grad_req == "null" and self.arg_params is None:
            raise OpValueError("FeedForward: no parameters to predict or score with: call fit, or pass arg_params")
        given = [*batches.provide_data, *(batches.provide_label if labels else ())]
        names, given_names = self.symbol.list_arguments(), {name for name, *_ in given}
        shapes = {name: tuple(shape) for name, shape, *_ in given if name in names}
        req = {name: "null" if name in given_names else grad_req for name in names}
        if not labels:
            given_names |= {n for n in names if n.endswith("label") and n not in (self.arg_params or {})}
        executor = self.symbol.simple_bind(self.ctx[0], req, **shapes)
        attributes = self.symbol.attr_dict()
        for arrays, known in ((executor.arg_dict, self.arg_params), (executor.aux_dict, self.aux_params)):
            for name, array in arrays.items():
                if known and name in known:
                    assign([(array, known[name], f"FeedForward: parameter {name} and these data")])
                elif name.endswith("label") and name not in given_names:
                    there = ", ".join(sorted(given_names))
                    raise OpValueError(f"FeedForward: the data do not give {name!r}; they give {there}")
                elif name not in given_names:
                    described = InitDesc(name, attributes.get(name))
                    described.plain = True
                    self.initializer(described, array)
        self._take_over(executor, given_names)
        return executor

    def _take_over(self, executor: Any, given: set[str]) -> None:
        self.arg_params = {n: a.as_in_context(Context("cpu")) for n, a in executor.arg_dict.items() if n not in given}
        self.aux_params = {n: a.as_in_context(Context("cpu")) for n, a in executor.aux_dict.items()}

    def _of_buckets(self, first: Any, default: Any, installed: Callable[[Any], Any]) -> Callable[[DataBatch], Any]:
        """Return what gives the executor of a batch: `first`, or that of its bucket, with the same parameters."""
        if self.sym_gen is None:
            return lambda batch: first
        made = {default: first}
        req = {name: "null" if gradient is None else "write" for name, gradient in first.grad_dict.items()}

        def chosen(batch: DataBatch) -> Any:
            key = batch.bucket_key
            if key not in made:
                symbol, shapes = self.sym_gen(key), _described(batch, batch)
                shapes = {name: tuple(shape) for name, shape, *_ in shapes}
                names = symbol.list_arguments()
                shared = [name for name in names if name in self.arg_params]
                made[key] = symbol.simple_bind(
                    self.ctx[0], {n: req.get(n, "null") for n in names}, shared_arg_names=shared, shared_exec=first,
                    **{n: s for n, s in shapes.items() if n in names},
                )  # fmt: skip
                installed(made[key])
            return made[key]

        return chosen

    def _of_others(self, of: Callable[[DataBatch], Any], first: Any, batches: DataIter) -> Callable[[DataBatch], Any]:
        """Return what gives the executor of a batch of other data, which may be batches of another size."""
        shapes = {name: tuple(shape) for name, shape, *_ in _described(batches, batches) if name in first.arg_dict}
        if self.sym_gen is not None or all(first.arg_dict[name].shape == shape for name, shape in shapes.items()):
            return of
        other = first.reshape(True, True, **shapes)
        return lambda batch: other

    @staticmethod
    def _run(executor: Any, batches: DataIter, batch: DataBatch, is_train: bool) -> None:
        described = zip(_described(batch, batches), [*batch.data, *(batch.label or ())])
        executor.forward(is_train, **{name: a for (name, *_), a in described if name in executor.arg_dict})

    # ---- training -----------------------------------------------------------------------------------------------------
    def fit(self, X: Any, y: Any = None, eval_data: Any = None, eval_metric: Any = "acc",
            epoch_end_callback: Any = None, batch_end_callback: Any = None, kvstore: Any = "local", logger: Any = None,
            work_load_list: Any = None, monitor: Any = None, eval_end_callback: Any = LogValidationMetricsCallback(),  # noqa: B008
            eval_batch_end_callback: Any = None) -> None:  # fmt: skip
        """Learn.

        Parameters
        ----------
        X : array or DataIter
        y : array, optional
            The labels of an array.
        eval_data : DataIter or (array, array), optional
            What the network is tried on after each epoch.
        eval_metric : str, function or EvalMetric
        epoch_end_callback : callable or list of callable
            ``callback(epoch, symbol, arg_params, aux_params)``, such as ``mx.callback.do_checkpoint(prefix)``.
        batch_end_callback, eval_end_callback, eval_batch_end_callback : callable or list of callable
            ``callback(mx.model.BatchEndParam(...))``, such as ``mx.callback.Speedometer(batch_size)``.
        kvstore, work_load_list
            For programs that have them: one device does the work.
        logger : Logger, optional
        monitor : Monitor, optional
        """
        if self.num_epoch is None:
            raise OpValueError("FeedForward: num_epoch=None; say how often it sees the data")
        logger = logger or logging
        train, evaluated = self._batches(X, y, True), self._evaluated(eval_data)
        metric = metrics.create(eval_metric)
        default = getattr(train, "default_bucket_key", None)
        if self.sym_gen is not None:
            self.symbol = self.sym_gen(default)
            self._leave_out_extra()
        first = self._bound(train, "write", True)
        step = self._stepper(train, first)
        installed = monitor.install if monitor is not None else lambda executor: None
        installed(first)
        of = self._of_buckets(first, default, installed)
        train.reset()
        for epoch in range(self.begin_epoch, self.num_epoch):
            begun = time.perf_counter()
            metric.reset()
            for count, batch in enumerate(self._epoch(train)):
                if monitor is not None:
                    monitor.tic()
                executor = of(batch)
                self._run(executor, train, batch, True)
                executor.backward()
                step()
                if monitor is not None:
                    monitor.toc_print()
                metric.update(batch.label, executor.outputs)
                _called(batch_end_callback, BatchEndParam(epoch, count + 1, metric, locals()))
            logger.info("Epoch[%d] Time cost=%.3f", epoch, time.perf_counter() - begun)
            self._take_over(first, {n for n in first.arg_dict if n not in self.arg_params})
            _called(epoch_end_callback, epoch, self.symbol, self.arg_params, self.aux_params)
            if evaluated is not None:
                metric.reset()
                evaluated.reset()
                tried = self._tried(self._of_others(of, first, evaluated), evaluated, metric, eval_batch_end_callback, epoch)
                _called(eval_end_callback, BatchEndParam(epoch, tried, metric, locals()))
                evaluated.reset()

    def _epoch(self, batches: DataIter) -> Iterator[DataBatch]:
        """Give the batches of an epoch: all, or `epoch_size`, for which the data begin again where they end."""
        count, before = 0, -1
        while before < count:
            before = count
            for batch in batches:
                yield batch
                count += 1
                if count == self.epoch_size:
                    return
            batches.reset()
            if self.epoch_size is None:
                return

    def _stepper(self, train: DataIter, executor: Any) -> Callable[[], None]:
        """Return what lets the optimizer change the parameters."""
        wanted = [(n, g) for n, g in executor.grad_dict.items() if g is not None]
        chosen = self.optimizer
        if isinstance(chosen, str):
            names = {at: name for at, (name, _) in enumerate(wanted)}  # MXNet's pickles have their own, and a sym
            settings = {"rescale_grad": 1 / train.batch_size, **self.kwargs, "param_idx2name": names, "sym": self.symbol}
            chosen = optimizer.create(chosen, **settings)
        update = optimizer.get_updater(chosen)

        def step() -> None:
            for at, (name, gradient) in enumerate(wanted):
                update(at, gradient, executor.arg_dict[name])

        return step

    def _tried(
        self, of: Callable[[DataBatch], Any], batches: DataIter, metric: Any, callback: Any, epoch: int,
        most: int | None = None,
    ) -> int:  # fmt: skip
        """Update a metric by what the network makes of data; return how many batches these were."""
        count = 0
        for batch in batches:
            if count == most:
                break
            executor = of(batch)
            self._run(executor, batches, batch, False)
            metric.update(batch.label, executor.outputs)
            _called(callback, BatchEndParam(epoch, count, metric, locals()))
            count += 1
        return count

    # ---- use ----------------------------------------------------------------------------------------------------------
    def predict(self, X: Any, num_batch: int | None = None, return_data: bool = False, reset: bool = True) -> Any:
        """Return the outputs as NumPy arrays, one or a list, and with `return_data` the data and labels, too.

        Parameters
        ----------
        X : array or DataIter
        num_batch : int, optional
            How many batches, by default all.
        reset : bool
            Begin at the first batch.
        """
        batches = self._batches(X, None, False)
        if reset:
            batches.reset()
        executor = self._bound(batches, "null", False)
        found: list[list[list[np.ndarray]]] = [[], [], []]  # outputs, data, labels: batch by batch
        for count, batch in enumerate(batches, 1):
            self._run(executor, batches, batch, False)
            kept = batches.batch_size - (batch.pad or 0)
            for into, arrays in zip(found, (executor.outputs, batch.data, batch.label or ())):
                into.append([a[:kept].asnumpy() for a in arrays])
            if count == num_batch:
                break
        joined = [[np.concatenate(parts) for parts in zip(*some)] for some in found]
        outputs, data, labels = (some[0] if len(some) == 1 else some for some in joined)
        return (outputs, data, labels) if return_data else outputs

    def score(self, X: Any, eval_metric: Any = "acc", num_batch: int | None = None, batch_end_callback: Any = None,
              reset: bool = True) -> float:  # fmt: skip
        """Return a metric of what the network makes of an iterator of data with labels."""
        batches, metric = self._batches(X, None, True), metrics.create(eval_metric)
        if reset:
            batches.reset()
        executor = self._bound(batches, "null", True)
        self._tried(lambda batch: executor, batches, metric, batch_end_callback, 0, num_batch)
        return metric.get()[1]

    def save(self, prefix: str, epoch: int | None = None, remove_amp_cast: bool = True) -> None:
        """Write a checkpoint; see :func:`mxop.model.save_checkpoint`."""
        epoch = self.num_epoch if epoch is None else epoch
        if epoch is None:
            raise OpValueError("FeedForward.save: neither num_epoch nor epoch was given, the number in the file's name")
        save_checkpoint(prefix, epoch, self.symbol, self.arg_params or {}, self.aux_params or {}, remove_amp_cast)

    @staticmethod
    def load(prefix: str, epoch: int, ctx: Any = None, **kwargs: Any) -> FeedForward:
        """Return a network of a checkpoint, which goes on after that epoch."""
        symbol, arguments, states = load_checkpoint(prefix, epoch)
        return FeedForward(symbol, ctx=ctx, arg_params=arguments, aux_params=states, begin_epoch=epoch, **kwargs)

    @staticmethod
    def create(symbol: Symbol | Callable[[Any], Symbol], X: Any, y: Any = None, ctx: Any = None, num_epoch: int | None = None,
               epoch_size: int | None = None, optimizer: Any = "sgd", initializer: Any = None, eval_data: Any = None,
               eval_metric: Any = "acc", epoch_end_callback: Any = None, batch_end_callback: Any = None,
               kvstore: Any = "local", logger: Any = None, work_load_list: Any = None,
               eval_end_callback: Any = LogValidationMetricsCallback(), eval_batch_end_callback: Any = None,  # noqa: B008
               **kwargs: Any) -> FeedForward:  # fmt: skip
        """Return a network that has learnt; the parameters are those of the class and of :meth:`fit`."""
        made = FeedForward(symbol, ctx, num_epoch, epoch_size, optimizer, initializer, **kwargs)
        made.fit(X, y, eval_data, eval_metric, epoch_end_callback, batch_end_callback, kvstore, logger, work_load_list,
                 None, eval_end_callback, eval_batch_end_callback)  # fmt: skip
        return made


def _those(arrays: Mapping[str, NDArray] | None, names: Sequence[str]) -> dict[str, NDArray] | None:
    return None if arrays is None else {name: array for name, array in arrays.items() if name in names}


def _described(batch: Any, batches: Any) -> list[Any]:
    """Return names and shapes of a batch, which has its own where it is one of several buckets."""
    there = batch if getattr(batch, "provide_data", None) else batches
    return [*there.provide_data, *(there.provide_label or ())]


all_end_at_caller(FeedForward)
