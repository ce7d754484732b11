"""``mx.metric``: how good predictions are, summed over batches.

A metric keeps a sum and a count since the last :meth:`EvalMetric.reset_local`, and the same since the last ``reset``
(*global*).  NumPy does the work.

- ``base``: what all metrics have; metrics of functions, and of several metrics
- ``classes``: shares of right answers, correlations of answers and labels
- ``values``: probabilities, differences, losses
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
