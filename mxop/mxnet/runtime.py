"""``mx.runtime``: what this package can do on this machine, by MXNet's names."""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

from .._kernels import team
from ..context import num_gpus
from ..support.errors import OpLookupError, closest
from ..support.missing import hooks

_ON = ("LAPACK", "INT64_TENSOR_SIZE", "F16C", "PROFILER", "SIGNAL_HANDLER")
_OFF = (
    "CUDNN", "NCCL", "TENSORRT", "CPU_SSE", "CPU_SSE2", "CPU_SSE3", "CPU_SSE4_1", "CPU_SSE4_2", "CPU_SSE4A", "CPU_AVX",
    "CPU_AVX2", "SSE", "JEMALLOC", "BLAS_OPEN", "BLAS_ATLAS", "BLAS_MKL", "BLAS_APPLE", "MKLDNN", "OPENCV", "CAFFE",
    "DIST_KVSTORE", "CXX14", "DEBUG", "TVM_OP",
)  # fmt: skip


class Feature(NamedTuple):
    """One of MXNet's features: its `name`, and whether it is `enabled` here."""

    name: str
    enabled: bool

    def __repr__(self) -> str:
        return f"{'✔' if self.enabled else '✖'} {self.name}"


def feature_list() -> list[Feature]:
    """Return all features.

    ``CUDA`` tells whether a GPU can be used; of the libraries that MXNet may be built with, those are on whose part another
    library takes, too (``LAPACK``).
    """
    cuda = num_gpus() > 0
    found = [Feature("CUDA", cuda), Feature("CUDA_RTC", cuda), Feature("OPENMP", team.has_openmp())]
    return found + [Feature(name, True) for name in _ON] + [Feature(name, False) for name in _OFF]


class Features(OrderedDict):
    """The features by name.

    Examples
    --------
    >>> mx.runtime.Features().is_enabled("LAPACK")
    True
    """

    def __init__(self) -> None:
        super().__init__((feature.name, feature) for feature in feature_list())

    def __repr__(self) -> str:
        return str(list(self.values()))

    def is_enabled(self, feature_name: str) -> bool:
        """Return whether a feature is on."""
        name = feature_name.upper()
        if name not in self:
            raise OpLookupError(f"feature {feature_name!r} is not known{closest(name, self)}; there are: {', '.join(self)}")
        return self[name].enabled


__all__ = ["Feature", "Features", "feature_list"]

__getattr__, __dir__ = hooks(globals(), __all__)
