"""Metrics of classes: shares of right answers, correlations of answers and labels."""

from __future__ import annotations

import math
from typing import Any

import numpy

from ...support.errors import OpValueError, translated
from .base import EvalMetric, Summed, alias, as_numpy, check_label_shapes, register


@register
@alias("acc")
class Accuracy(Summed):
    """Share of the predictions that are right.

    Parameters
    ----------
    axis : int
        Of the classes, where predictions are probabilities.

    Examples
    --------
    >>> metric = mx.metric.Accuracy()
    >>> metric.update([mx.nd.array([0, 1])], [mx.nd.array([[0.9, 0.1], [0.8, 0.2]])])
    >>> metric.get()
    ('accuracy', 0.5)
    """

    def __init__(self, axis: int = 1, name: str = "accuracy", output_names: list[str] | None = None,
                 label_names: list[str] | None = None):  # fmt: skip
        super().__init__(name, output_names, label_names, axis=axis)
        self.axis = axis

    def measure(self, label: numpy.ndarray, pred: numpy.ndarray) -> tuple[float, float]:
        if pred.shape != label.shape:
            if not -pred.ndim <= self.axis < pred.ndim:
                raise OpValueError(f"Accuracy: predictions of shape {pred.shape} for labels of shape {label.shape}")
            pred = pred.argmax(axis=self.axis)
        label, pred = label.astype("int32").ravel(), pred.astype("int32").ravel()
        check_label_shapes(label, pred)
        return float((pred == label).sum()), len(pred)


@register
@alias("top_k_accuracy", "top_k_acc")
class TopKAccuracy(Summed):
    """Share of the labels that are among the `top_k` classes of the largest predictions."""

    def __init__(self, top_k: int = 1, name: str = "top_k_accuracy", output_names: list[str] | None = None,
                 label_names: list[str] | None = None):  # fmt: skip
        super().__init__(name, output_names, label_names, top_k=top_k)
        if top_k < 2:
            raise OpValueError(f"TopKAccuracy: top_k={top_k}; for 1, use Accuracy")
        self.top_k = top_k
        self.name += f"_{top_k}"

    def measure(self, label: numpy.ndarray, pred: numpy.ndarray) -> tuple[float, float]:
        if pred.ndim > 2:
            raise OpValueError(f"TopKAccuracy: predictions of shape {pred.shape}; expected at most 2 axes")
        label = label.astype("int32").ravel()
        check_label_shapes(label, pred)
        if pred.ndim == 1:
            order = numpy.argpartition(pred.astype("float32"), -self.top_k)
            return float((order == label).sum()), len(pred)
        first = numpy.argsort(pred.astype("float32"), axis=1, kind="stable")[:, -self.top_k :]
        return float((first == label[:, None]).sum()), len(pred)


#: Rows: local, global; columns: true and false positives, false and true negatives.
_COUNTS = (2, 4)


class _Binary(EvalMetric):
    """A metric of the counts of right and wrong answers to a question with two answers.

    Parameters
    ----------
    average : {'macro', 'micro'}
        Take the mean of the batches' values, or the value of all batches' counts.
    """

    default = ""

    def __init__(self, name: str | None = None, output_names: list[str] | None = None, label_names: list[str] | None = None,
                 average: str = "macro"):  # fmt: skip
        self.average = average
        super().__init__(name or self.default, output_names, label_names, has_global_stats=True)

    def score(self, counts: numpy.ndarray) -> float:
        """Return the value of four counts."""
        raise NotImplementedError

    def reset(self) -> None:
        super().reset()
        self._counts = numpy.zeros(_COUNTS)

    def reset_local(self) -> None:
        super().reset_local()
        self._counts[0] = 0

    def _counted(self, label: numpy.ndarray, pred: numpy.ndarray) -> list[int]:
        check_label_shapes(label, pred)
        label = label.astype("int32").ravel()
        if len(numpy.unique(label)) > 2:
            raise OpValueError(f"{type(self).__name__}: labels have more than two values")
        yes, true = pred.argmax(axis=1) == 1, label == 1
        return [int(n.sum()) for n in (yes & true, yes & ~true, ~yes & true, ~yes & ~true)]

    def update(self, labels: Any, preds: Any) -> None:
        labels, preds = check_label_shapes(labels, preds, True)
        with translated(f"metric {self.name}"):
            for label, pred in zip(labels, preds):
                self._counts += self._counted(as_numpy(label), as_numpy(pred))
        if self.average == "macro":
            self._add(self.score(self._counts[1]), 1)
            self._counts[:] = 0
            return
        self.num_inst, self.global_num_inst = (int(n) for n in self._counts.sum(axis=1))
        self.sum_metric, self.global_sum_metric = (float(self.score(row) * row.sum()) for row in self._counts)


@register
class F1(_Binary):
    """Harmonic mean of precision and recall, for labels 0 and 1."""

    default = "f1"

    def score(self, counts: numpy.ndarray) -> float:
        tp, fp, fn, _ = counts
        return float(2 * tp / (2 * tp + fp + fn)) if tp else 0.0


@register
class MCC(_Binary):
    """Matthews' correlation of predictions and labels, for labels 0 and 1."""

    default = "mcc"

    def score(self, counts: numpy.ndarray) -> float:
        tp, fp, fn, tn = (float(n) for n in counts)
        sums = [n for n in (tp + fp, tp + fn, tn + fp, tn + fn) if n]
        return (tp * tn - fp * fn) / math.sqrt(math.prod(sums))


@register
class PCC(EvalMetric):
    """Matthews' correlation for any number of classes, from the table of predictions and labels."""

    def __init__(self, name: str = "pcc", output_names: list[str] | None = None, label_names: list[str] | None = None,
                 has_global_stats: bool = True):  # fmt: skip
        self.k = 2
        super().__init__(name, output_names, label_names, has_global_stats=has_global_stats)

    @staticmethod
    def _correlation(table: numpy.ndarray) -> float:
        n, x, y = table.sum(), table.sum(axis=1), table.sum(axis=0)
        spread = (x * (n - x)).sum() * (y * (n - y)).sum()
        return float((table.diagonal() * n - x * y).sum() / math.sqrt(spread)) if spread else math.nan

    def _grow(self, inc: int) -> None:
        self.k += inc
        self.lcm, self.gcm = (numpy.pad(table, ((0, inc), (0, inc))) for table in (self.lcm, self.gcm))

    def update(self, labels: Any, preds: Any) -> None:
        labels, preds = check_label_shapes(labels, preds, True)
        for label, pred in zip(labels, preds):
            label, pred = as_numpy(label).astype("int32"), as_numpy(pred)
            pred = pred.argmax(axis=1) if pred.shape != label.shape else pred.astype("int32")
            check_label_shapes(label, pred)
            largest = int(max(pred.max(), label.max()))
            if largest >= self.k:
                self._grow(largest + 1 - self.k)
            table = numpy.zeros((self.k, self.k))
            numpy.add.at(table, (pred.ravel(), label.ravel()), 1)
            self.lcm += table
            self.gcm += table
        self.num_inst += 1
        self.global_num_inst += 1

    @property
    def sum_metric(self) -> float:  # type: ignore[override]
        """The correlation since :meth:`reset_local`, times the number of batches."""
        return self._correlation(self.lcm) * self.num_inst

    @property
    def global_sum_metric(self) -> float:  # type: ignore[override]
        """The correlation since :meth:`reset`, times the number of batches."""
        return self._correlation(self.gcm) * self.global_num_inst

    def reset(self) -> None:
        self.global_num_inst = 0
        self.gcm = numpy.zeros((self.k, self.k))
        self.reset_local()

    def reset_local(self) -> None:
        self.num_inst = 0
        self.lcm = numpy.zeros((self.k, self.k))


__all__ = ["F1", "MCC", "PCC", "Accuracy", "TopKAccuracy"]
