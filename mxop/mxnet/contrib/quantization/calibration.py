"""Calibration: the ranges of values in a network, from sample data."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from .... import ndarray as nd
from ....support.errors import OpTypeError, OpValueError, shown
from ....symbol import Symbol
from ...io import DataIter

Histogram = tuple[np.ndarray, np.ndarray, float, float, float]  # counts, edges, least and largest value, half the width
BINS, LEVELS = 8001, 255  # MXNet's numbers


def combine_histogram(old_hist: Histogram, arr: np.ndarray, new_min: float, new_max: float, new_th: float) -> Histogram:
    """Add the values of an array to a histogram, which gets more bins of the same width where they go beyond it.

    Parameters
    ----------
    old_hist : tuple
        Counts, edges, least value, largest value, and the limit: bins reach from ``-limit`` to ``limit``.
    arr : numpy.ndarray
    new_min, new_max, new_th : float
        Least and largest value of the array, and the larger one of them without its sign.

    Examples
    --------
    >>> import numpy as np
    >>> first = (np.array([1, 0, 2]), np.array([-3.0, -1, 1, 3]), -2.0, 3.0, 3.0)
    >>> counts, edges, *limits = mx.contrib.quantization.combine_histogram(first, np.array([4.5, 0.1]), 0.1, 4.5, 4.5)
    >>> counts.tolist(), edges.tolist(), limits
    ([0, 1, 1, 2, 1], [-5.0, -3.0, -1.0, 1.0, 3.0, 5.0], [-2.0, 4.5, 5.0])
    """
    counts, edges, low, high, limit = old_hist
    low, high, limit = min(low, new_min), max(high, new_max), float(limit)
    if new_th <= limit:
        return counts + np.histogram(arr, bins=len(counts), range=(-limit, limit))[0], edges, low, high, limit
    step = 2 * limit / len(counts)
    more = int((float(new_th) - limit) // step + 1)  # on each side
    limit += more * step
    found, edges = np.histogram(arr, bins=len(counts) + 2 * more, range=(-limit, limit))
    found[more : len(found) - more] += counts
    return found, edges, low, high, limit


class _Collector:
    """What is common to collectors: which outputs they look at."""

    def __init__(self, include_layer: Collection[str] | None = None, logger: Any = None):
        self.include_layer, self.logger = include_layer, logger

    def collect(self, name: str, arr: Any) -> None:
        """Note an output of a node; ``executor.set_monitor_callback`` takes this method."""
        if self.include_layer is None or name in self.include_layer:
            values = arr.asnumpy()
            if values.size:
                self._note(name, values, values.min(), values.max())

    def _note(self, name: str, values: np.ndarray, low: Any, high: Any) -> None:
        raise NotImplementedError


class _LayerHistogramCollector(_Collector):
    """Keeps a histogram of each output in ``hist_dict``, as :func:`combine_histogram` has them."""

    def __init__(self, num_bins: int = BINS, include_layer: Collection[str] | None = None, logger: Any = None):
        super().__init__(include_layer, logger)
        self.num_bins = num_bins
        self.hist_dict: dict[str, Histogram] = {}

    def _note(self, name: str, values: np.ndarray, low: Any, high: Any) -> None:
        limit = max(abs(low), abs(high))
        if name in self.hist_dict:
            self.hist_dict[name] = combine_histogram(self.hist_dict[name], values, low, high, limit)
        else:
            counts, edges = np.histogram(values, bins=self.num_bins, range=(-limit, limit))
            self.hist_dict[name] = counts, edges, low, high, limit


class _LayerOutputMinMaxCollector(_Collector):
    """Keeps the least and the largest value of each output in ``min_max_dict``."""

    def __init__(self, quantized_dtype: str = "int8", include_layer: Collection[str] | None = None, logger: Any = None):
        super().__init__(include_layer, logger)
        self.quantized_dtype = quantized_dtype
        self.min_max_dict: dict[str, tuple[float, float]] = {}

    def _note(self, name: str, values: np.ndarray, low: Any, high: Any) -> None:
        before = self.min_max_dict.get(name, (low, high))
        self.min_max_dict[name] = min(before[0], low), max(before[1], high)


def collector_for(mode: str, dtype: str, layers: Collection[str], given: Any, logger: Any) -> Any:
    """Return what collects for a mode; None for ``none``."""
    if mode == "none":
        return None
    if mode == "entropy":
        return _LayerHistogramCollector(include_layer=layers, logger=logger)
    if mode == "naive":
        return _LayerOutputMinMaxCollector(dtype, layers, logger)
    if not callable(getattr(given, "collect", None)) or not hasattr(given, "min_max_dict"):
        raise OpTypeError(f"quantization: calib_mode='customize', LayerOutputCollector={shown(given)}; expected an object with "
                          "a method collect(name, array) and a dict min_max_dict")  # fmt: skip
    return given


def ranges_of(collector: Any, mode: str, dtype: str) -> Mapping[str, tuple[float, float]]:
    """Return the ranges of outputs, by name."""
    wanted = "hist_dict" if mode == "entropy" else "min_max_dict"
    found = getattr(collector, wanted, None)
    if not isinstance(found, Mapping):
        raise OpTypeError(f"quantization: calib_mode={mode!r}, collector={shown(collector)}; expected one with a dict {wanted}")
    return {name: _range_with_least_loss(found[name], dtype) for name in found} if mode == "entropy" else found


def _range_with_least_loss(histogram: Histogram, dtype: str) -> tuple[float, float]:
    """Return the range whose levels differ least from a distribution."""
    counts, edges, low, *_ = histogram
    positive = low >= 0 and dtype in ("auto", "uint8")
    levels = 2 * LEVELS + 1 if positive else LEVELS  # half of the bins, those below zero, are empty
    limit = nd.contrib.calibrate_entropy(nd.array(counts), nd.array(edges), num_quantized_bins=levels)[0].item()
    return (0.0 if positive else -limit), limit


def run(symbol: Symbol, ctx: Any, data: DataIter, params: Mapping[str, Any], states: Mapping[str, Any],
        labels: Collection[str], collector: Any, most: int | None, logger: Any) -> None:  # fmt: skip
    """Run a float32 network on the batches of an iterator, `most` examples or a few more, and let a collector see all values.

    Arguments in `labels` may be neither in `params` nor given by the iterator.
    """
    described, inputs = [*data.provide_data, *(data.provide_label or ())], set(symbol.list_inputs())
    names = [d[0] for d in described]
    shapes = {d[0]: tuple(d[1]) for d in described if d[0] in inputs}
    executor = symbol.simple_bind(ctx, grad_req="null", **shapes)
    for argument, arrays, given in (("arg_params", executor.arg_dict, params), ("aux_params", executor.aux_dict, states)):
        absent = [name for name in arrays if name not in given and name not in shapes and name not in labels]
        if absent:
            raise OpValueError(f"quantization: {', '.join(absent)} of the network are neither in {argument} nor given by "
                               f"calib_data, which has {', '.join(names)}")  # fmt: skip
        for name in arrays:
            if name in given and name not in shapes:
                arrays[name][:] = given[name]
    executor.set_monitor_callback(collector.collect, monitor_all=True)
    examples = 0
    for batch in data:
        arrays = dict(zip(names, [*batch.data, *(batch.label or ())], strict=False))
        executor.forward(is_train=False, **{name: a for name, a in arrays.items() if name in shapes})
        examples += data.batch_size
        if most is not None and examples >= most:
            break
    if not examples:
        raise OpValueError("quantization: calib_data has no batches; reset it if it was used before")
    if logger is not None:
        logger.info("Collected the values of %d examples", examples)
