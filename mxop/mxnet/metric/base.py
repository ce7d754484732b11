"""What all metrics have; metrics of functions and of several metrics."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy

from ...ndarray import NDArray
from ...support.errors import OpTypeError, OpValueError, UnsupportedError, shown, translated
from .. import registry


def as_numpy(value: Any) -> numpy.ndarray:
    return value.asnumpy() if isinstance(value, NDArray) else numpy.asarray(value)


def check_label_shapes(labels: Any, preds: Any, wrap: bool = False, shape: bool = False) -> tuple[Any, Any]:
    """Raise unless there are as many labels as predictions, or with `shape` both have the same shape.

    Parameters
    ----------
    labels, preds : NDArray or list of NDArray
    wrap : bool
        Return arrays as the only items of lists.
    shape : bool
    """
    found = (labels.shape, preds.shape) if shape else (len(labels), len(preds))
    if found[0] != found[1]:
        what = "shape" if shape else "number of arrays" if isinstance(labels, (list, tuple)) else "length"
        raise OpValueError(f"metric: the {what} of the labels is {found[0]}, that of the predictions {found[1]}")
    if wrap:
        labels, preds = ([x] if isinstance(x, (NDArray, numpy.ndarray)) else x for x in (labels, preds))
    return labels, preds


class EvalMetric:
    """Base of metrics; derive, and define ``update(labels, preds)``.

    Parameters
    ----------
    name : str
    output_names, label_names : list of str, optional
        Which outputs and labels :meth:`update_dict` takes; all by default.
    has_global_stats : bool, default False
        Whether ``update`` adds to ``global_sum_metric`` and ``global_num_inst``, too.
    **kwargs
        Further parameters, which :meth:`get_config` returns.
    """

    def __init__(self, name: str, output_names: list[str] | None = None, label_names: list[str] | None = None,
                 **kwargs: Any):  # fmt: skip
        self.name = str(name)
        self.output_names, self.label_names = output_names, label_names
        self._has_global_stats = kwargs.pop("has_global_stats", False)
        self._kwargs = kwargs
        self.reset()

    def __str__(self) -> str:
        return f"EvalMetric: {dict(self.get_name_value())}"

    def get_config(self) -> dict[str, Any]:
        """Return parameters of which :func:`create` makes the metric again."""
        names = {"output_names": self.output_names, "label_names": self.label_names}
        return {**self._kwargs, "metric": type(self).__name__, "name": self.name, **names}

    def update_dict(self, label: Mapping[str, Any], pred: Mapping[str, Any]) -> None:
        """Add a batch whose labels and outputs have names."""
        preds = list(pred.values()) if self.output_names is None else [pred[n] for n in self.output_names]
        labels = list(label.values()) if self.label_names is None else [label[n] for n in self.label_names]
        self.update(labels, preds)

    def update(self, labels: Any, preds: Any) -> None:
        """Add a batch."""
        raise NotImplementedError(f"{type(self).__name__} does not define update(labels, preds)")

    def reset(self) -> None:
        """Begin anew."""
        self.num_inst, self.sum_metric = 0, 0.0
        self.global_num_inst, self.global_sum_metric = 0, 0.0

    def reset_local(self) -> None:
        """Begin anew, but keep the global sums."""
        self.num_inst, self.sum_metric = 0, 0.0

    def _add(self, total: float, count: float) -> None:
        if isinstance(total, numpy.generic):  # float32, say, to which NumPy 2 would round the sum
            total = total.item()
        self.sum_metric += total
        self.global_sum_metric += total
        self.num_inst += count
        self.global_num_inst += count

    def _value(self, total: float, count: float) -> float:
        """Return the metric of a sum and a count."""
        return total / count if count else math.nan

    def get(self) -> tuple[Any, Any]:
        """Return the name and the value since :meth:`reset_local`; NaN before the first batch."""
        return self.name, self._value(self.sum_metric, self.num_inst)

    def get_global(self) -> tuple[Any, Any]:
        """Return the name and the value since :meth:`reset`."""
        if not self._has_global_stats:
            return self.get()
        return self.name, self._value(self.global_sum_metric, self.global_num_inst)

    def get_name_value(self) -> list[tuple[str, float]]:
        """Return names and values as pairs."""
        return _pairs(*self.get())

    def get_global_name_value(self) -> list[tuple[str, float]]:
        """Return names and global values as pairs."""
        return _pairs(*self.get_global())


def _listed(value: Any) -> list:
    return value if isinstance(value, list) else [value]


def _pairs(name: Any, value: Any) -> list[tuple[str, float]]:
    return list(zip(_listed(name), _listed(value)))


register = registry.get_register_func(EvalMetric, "metric")
alias = registry.get_alias_func(EvalMetric, "metric")
_create = registry.get_create_func(EvalMetric, "metric")


def create(metric: Any, *args: Any, **kwargs: Any) -> EvalMetric:
    """Make the metric of a name, of a function (see :class:`CustomMetric`), or of a list of such.

    Examples
    --------
    >>> metric = mx.metric.create(["acc", "mse"])
    >>> metric.update([mx.nd.array([0, 1])], [mx.nd.array([0, 3])])
    >>> metric.get()
    (['accuracy', 'mse'], [0.5, 2.0])
    """
    if callable(metric):
        return CustomMetric(metric, *args, **kwargs)
    if isinstance(metric, list):
        return CompositeEvalMetric([create(one, *args, **kwargs) for one in metric])
    return _create(metric, *args, **kwargs)


@register
@alias("composite")
class CompositeEvalMetric(EvalMetric):
    """Several metrics of the same batches."""

    def __init__(self, metrics: Iterable[Any] | None = None, name: str = "composite",
                 output_names: list[str] | None = None, label_names: list[str] | None = None):  # fmt: skip
        self.metrics: list[EvalMetric] = []
        super().__init__(name, output_names, label_names, has_global_stats=True)
        self.metrics += [create(one) for one in metrics or ()]  # after reset, which MXNet does not do to them either

    def add(self, metric: Any) -> None:
        """Add a metric, or the name of one."""
        self.metrics.append(create(metric))

    def get_metric(self, index: int) -> EvalMetric:
        """Return one metric."""
        if not -len(self.metrics) <= index < len(self.metrics):
            raise OpValueError(f"get_metric: index={index} is out of range; there are {len(self.metrics)} metrics")
        return self.metrics[index]

    def update_dict(self, labels: Mapping[str, Any], preds: Mapping[str, Any]) -> None:
        if self.label_names is not None:
            labels = {name: value for name, value in labels.items() if name in self.label_names}
        if self.output_names is not None:
            preds = {name: value for name, value in preds.items() if name in self.output_names}
        for metric in self.metrics:
            metric.update_dict(labels, preds)

    def update(self, labels: Any, preds: Any) -> None:
        for metric in self.metrics:
            metric.update(labels, preds)

    def reset(self) -> None:
        for metric in self.metrics:
            metric.reset()

    def reset_local(self) -> None:
        for metric in self.metrics:
            metric.reset_local()

    def get(self) -> tuple[list, list]:
        return self._joined(metric.get() for metric in self.metrics)

    def get_global(self) -> tuple[list, list]:
        return self._joined(metric.get_global() for metric in self.metrics)

    @staticmethod
    def _joined(found: Iterable[tuple[Any, Any]]) -> tuple[list, list]:
        pairs = [pair for name, value in found for pair in _pairs(name, value)]
        return [name for name, _ in pairs], [value for _, value in pairs]

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"metrics": [metric.get_config() for metric in self.metrics]}


class Summed(EvalMetric):
    """A metric that adds up what :meth:`measure` returns for each label and its prediction."""

    default = ""  # the name

    def __init__(self, name: str | None = None, output_names: list[str] | None = None, label_names: list[str] | None = None,
                 **kwargs: Any):  # fmt: skip
        super().__init__(name or self.default, output_names, label_names, **{"has_global_stats": True, **kwargs})

    def measure(self, label: numpy.ndarray, pred: numpy.ndarray) -> tuple[float, float]:
        """Return a sum and a count."""
        raise NotImplementedError

    def update(self, labels: Any, preds: Any) -> None:
        labels, preds = check_label_shapes(labels, preds, True)
        with translated(f"metric {self.name}"):
            for label, pred in zip(labels, preds):
                self._add(*self.measure(as_numpy(label), as_numpy(pred)))


@register
class CustomMetric(Summed):
    """Mean of what a function returns for labels and predictions as NumPy arrays.

    Parameters
    ----------
    feval : callable
        ``feval(label, pred)`` returns a number for the batch, or a sum and a count.
    name : str, optional
        The function's by default.
    allow_extra_outputs : bool
        There may be more predictions than labels.
    """

    def __init__(self, feval: Callable[[numpy.ndarray, numpy.ndarray], Any], name: str | None = None,
                 allow_extra_outputs: bool = False, output_names: list[str] | None = None,
                 label_names: list[str] | None = None):  # fmt: skip
        if not callable(feval):
            raise OpTypeError(f"CustomMetric: feval={shown(feval)} is not a function")
        if name is None:
            name = getattr(feval, "__name__", type(feval).__name__)
            name = f"custom({name})" if "<" in name else name
        super().__init__(name, output_names, label_names, feval=feval, allow_extra_outputs=allow_extra_outputs)
        self._feval, self._allow_extra_outputs = feval, allow_extra_outputs

    def measure(self, label: numpy.ndarray, pred: numpy.ndarray) -> tuple[float, float]:
        found = self._feval(label, pred)
        return found if isinstance(found, tuple) else (found, 1)

    def update(self, labels: Sequence[Any], preds: Sequence[Any]) -> None:
        if not self._allow_extra_outputs:
            labels, preds = check_label_shapes(labels, preds, True)
        for label, pred in zip(labels, preds):
            self._add(*self.measure(as_numpy(label), as_numpy(pred)))

    def get_config(self) -> dict[str, Any]:
        raise UnsupportedError(f"{self.name}: a metric of a function has no parameters to make it of again")


def np(numpy_feval: Callable[[numpy.ndarray, numpy.ndarray], Any], name: str | None = None,
       allow_extra_outputs: bool = False) -> CustomMetric:  # fmt: skip
    """Return the metric of a function; see :class:`CustomMetric`."""
    return CustomMetric(numpy_feval, name, allow_extra_outputs)


__all__ = ["CompositeEvalMetric", "CustomMetric", "EvalMetric", "Summed", "alias", "as_numpy", "check_label_shapes", "create",
           "np", "register"]  # fmt: skip
