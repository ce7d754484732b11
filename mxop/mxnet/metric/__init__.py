"""``mx.metric``: metrics, which compare predictions with labels and sum up over batches.

A metric keeps a sum and a count since the last :meth:`EvalMetric.reset_local`, and since the last ``reset`` (*global*).
"""

from ...support.missing import hooks
from .base import CompositeEvalMetric, CustomMetric, EvalMetric, alias, check_label_shapes, create, np, register
from .classes import F1, MCC, PCC, Accuracy, TopKAccuracy
from .values import (
    MAE,
    MSE,
    RMSE,
    Caffe,
    CrossEntropy,
    Loss,
    NegativeLogLikelihood,
    PearsonCorrelation,
    Perplexity,
    Torch,
)

__all__ = [
    "F1", "MAE", "MCC", "MSE", "PCC", "RMSE", "Accuracy", "Caffe", "CompositeEvalMetric", "CrossEntropy", "CustomMetric",
    "EvalMetric", "Loss", "NegativeLogLikelihood", "PearsonCorrelation", "Perplexity", "TopKAccuracy", "Torch", "alias",
    "check_label_shapes", "create", "np", "register",
]  # fmt: skip

__getattr__, __dir__ = hooks(globals(), __all__)
