"""Metrics of numbers: probabilities, differences, losses."""

from __future__ import annotations

import math
from typing import Any

import numpy

from ...ndarray import NDArray
from ...support.errors import OpValueError
from .base import Summed, alias, as_numpy, check_label_shapes, register


# ---- probabilities ---------------------------------------------------------------------------------------------------
@register
class Perplexity(Summed):
    """Exponential of the mean of the negative logarithms of the labels' probabilities.

    Parameters
    ----------
    ignore_label : int or None
        Elements with this label do not count.
    axis : int
        Of the classes.
    """

    def __init__(self, ignore_label: int | None, axis: int = -1, name: str = "perplexity",
                 output_names: list[str] | None = None, label_names: list[str] | None = None):  # fmt: skip
        super().__init__(name, output_names, label_names, ignore_label=ignore_label)
        self.ignore_label, self.axis = ignore_label, axis

    def update(self, labels: Any, preds: Any) -> None:
        labels, preds = check_label_shapes(labels, preds, True)
        found = [self.measure(as_numpy(label), as_numpy(pred)) for label, pred in zip(labels, preds)]
        self._add(sum(total for total, _ in found), sum(count for _, count in found))

    def measure(self, label: numpy.ndarray, pred: numpy.ndarray) -> tuple[float, float]:
        if label.size * pred.shape[self.axis] != pred.size:
            raise OpValueError(f"Perplexity: labels of shape {label.shape} for predictions of shape {pred.shape}")
        classes = pred.shape[self.axis]
        label = label.reshape(-1)
        at = numpy.clip(label.astype("int64"), 0, classes - 1)
        chosen = numpy.moveaxis(pred, self.axis, -1).reshape(-1, classes)[numpy.arange(label.size), at]
        if self.ignore_label is not None:
            chosen = chosen[label != self.ignore_label]
        return float(-numpy.log(numpy.maximum(chosen, 1e-10)).sum()), chosen.size

    def _value(self, total: float, count: float) -> float:
        return math.exp(total / count) if count else math.nan


@register
@alias("ce")
class CrossEntropy(Summed):
    """Mean of the negative logarithms of the labels' probabilities, to which `eps` is added."""

    default = "cross-entropy"

    def __init__(self, eps: float = 1e-12, name: str | None = None, output_names: list[str] | None = None,
                 label_names: list[str] | None = None):  # fmt: skip
        super().__init__(name, output_names, label_names, eps=eps)
        self.eps = eps

    def measure(self, label: numpy.ndarray, pred: numpy.ndarray) -> tuple[float, float]:
        label = label.ravel()
        check_label_shapes(label, pred)
        chosen = pred[numpy.arange(len(label)), label.astype("int64")]
        return float(-numpy.log(chosen + self.eps).sum()), len(label)


@register
@alias("nll_loss")
class NegativeLogLikelihood(CrossEntropy):
    """The same as :class:`CrossEntropy`."""

    default = "nll-loss"


# ---- numbers ---------------------------------------------------------------------------------------------------------
class _Difference(Summed):
    """A metric of the differences, averaged over the batches."""

    def of(self, difference: numpy.ndarray) -> float:
        """Return the value of a batch."""
        raise NotImplementedError

    def measure(self, label: numpy.ndarray, pred: numpy.ndarray) -> tuple[float, float]:
        label, pred = (x.reshape(-1, 1) if x.ndim == 1 else x for x in (label, pred))
        return float(self.of(label - pred)), 1


@register
class MAE(_Difference):
    """Mean absolute difference."""

    default = "mae"

    def of(self, difference: numpy.ndarray) -> float:
        return numpy.abs(difference).mean()


@register
class MSE(_Difference):
    """Mean squared difference."""

    default = "mse"

    def of(self, difference: numpy.ndarray) -> float:
        return (difference**2.0).mean()


@register
class RMSE(_Difference):
    """Root of the mean squared difference."""

    default = "rmse"

    def of(self, difference: numpy.ndarray) -> float:
        return numpy.sqrt((difference**2.0).mean())


@register
@alias("pearsonr")
class PearsonCorrelation(Summed):
    """Pearson's correlation of labels and predictions.

    Parameters
    ----------
    average : {'macro', 'micro'}
        Take the mean of the batches' correlations, or the correlation of all batches together.
    """

    def __init__(self, name: str = "pearsonr", output_names: list[str] | None = None,
                 label_names: list[str] | None = None, average: str = "macro"):  # fmt: skip
        self.average = average
        super().__init__(name, output_names, label_names)

    def reset(self) -> None:
        super().reset()
        self.reset_micro()

    def reset_micro(self) -> None:
        """Forget the batches so far."""
        self._count = 0
        self._means, self._moments = numpy.zeros(2), numpy.zeros((2, 2))

    def measure(self, label: numpy.ndarray, pred: numpy.ndarray) -> tuple[float, float]:
        check_label_shapes(label, pred, shape=True)
        both = numpy.stack([label.ravel(), pred.ravel()]).astype("float64")
        if self.average == "macro":
            return float(numpy.corrcoef(both)[0, 1]), 1
        # the moments of two parts, about their own means, give those of the whole
        n, means = both.shape[1], both.mean(axis=1)
        away = means - self._means
        whole = self._count + n
        self._moments += numpy.cov(both, ddof=0) * n + numpy.outer(away, away) * (self._count * n / whole)
        self._means += away * n / whole
        self._count = whole
        return 0.0, 1

    def get(self) -> tuple[str, float]:
        if self.average == "macro" or not self.num_inst:
            return super().get()
        (ll, lp), (_, pp) = self._moments
        return self.name, float(lp / math.sqrt(ll * pp))

    def get_global(self) -> tuple[str, float]:
        return super().get_global() if self.average == "macro" else self.get()


# ---- losses ----------------------------------------------------------------------------------------------------------
@register
class Loss(Summed):
    """Mean of the outputs themselves."""

    default = "loss"

    def update(self, _: Any, preds: Any) -> None:
        for pred in [preds] if isinstance(preds, (NDArray, numpy.ndarray)) else preds:
            pred = as_numpy(pred)
            self._add(float(pred.sum()), pred.size)


@register
class Torch(Loss):
    """Mean of the outputs, under the name ``torch``."""

    default = "torch"


@register
class Caffe(Loss):
    """Mean of the outputs, under the name ``caffe``."""

    default = "caffe"


__all__ = ["MAE", "MSE", "RMSE", "Caffe", "CrossEntropy", "Loss", "NegativeLogLikelihood", "PearsonCorrelation", "Perplexity",
           "Torch"]  # fmt: skip
