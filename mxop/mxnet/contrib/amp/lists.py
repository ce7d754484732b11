"""Which operators run in which type under automatic mixed precision; the lists are MXNet's for float16.

For bfloat16, MXNet runs most operators in float32 because it has no others; here all take bfloat16, so the lists are
the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ....opdef import Operator, registry
from ....support import dtypes
from ....support.errors import MXNetError, OpTypeError, OpValueError, shown

_LOW = "Convolution Deconvolution FullyConnected RNN"
_FLOAT32 = """
    Convolution_v1 CTCLoss Custom GroupNorm IdentityAttachKLSparseReg InstanceNorm L2Normalization LRN LayerNorm
    LinearRegressionOutput LogisticRegressionOutput MAERegressionOutput MakeLoss SVMOutput SoftmaxActivation SoftmaxOutput
    _contrib_DeformableConvolution _contrib_DeformablePSROIPooling _contrib_MultiBoxDetection _contrib_MultiBoxPrior
    _contrib_MultiBoxTarget _contrib_SyncBatchNorm _contrib_count_sketch _contrib_fft _contrib_hawkesll _hypot _hypot_scalar
    _linalg_det _linalg_extractdiag _linalg_extracttrian _linalg_gelqf _linalg_gemm _linalg_gemm2 _linalg_inverse
    _linalg_makediag _linalg_maketrian _linalg_potrf _linalg_potri _linalg_slogdet _linalg_sumlogdiag _linalg_syevd
    _linalg_syrk _linalg_trmm _linalg_trsm _power _power_scalar _rdiv_scalar _rpower_scalar _square_sum arccos arcsin arctanh
    argsort broadcast_hypot broadcast_power cosh erfinv exp expm1 gamma gammaln khatri_rao log log10 log1p log2 log_softmax
    make_loss mean moments nanprod nansum norm prod rcbrt reciprocal rsqrt sinh smooth_l1 softmax softmax_cross_entropy
    softmin square sum tan topk"""
_WIDEST = """
    Concat Correlation _contrib_MultiProposal _contrib_PSROIPooling _contrib_Proposal _contrib_ROIAlign _contrib_box_iou
    _contrib_box_nms _contrib_edge_id _contrib_interleaved_matmul_encdec_qk _contrib_interleaved_matmul_encdec_valatt
    _contrib_interleaved_matmul_selfatt_qk _contrib_interleaved_matmul_selfatt_valatt _equal _greater _greater_equal _lesser
    _lesser_equal _logical_and _logical_or _logical_xor _maximum _minimum _mod _not_equal _random_pdf_dirichlet
    _random_pdf_exponential _random_pdf_gamma _random_pdf_generalized_negative_binomial _random_pdf_negative_binomial
    _random_pdf_normal _random_pdf_poisson _random_pdf_uniform _scatter_elemwise_div add_n batch_dot broadcast_add
    broadcast_div broadcast_equal broadcast_greater broadcast_greater_equal broadcast_lesser broadcast_lesser_equal
    broadcast_logical_and broadcast_logical_or broadcast_logical_xor broadcast_maximum broadcast_minimum broadcast_mod
    broadcast_mul broadcast_not_equal broadcast_sub dot elemwise_add elemwise_div elemwise_mul elemwise_sub stack where"""
_CONDITIONAL = [("Activation", "act_type", ["softrelu"]), ("LeakyReLU", "act_type", ["elu", "selu"])]
_LOSSES = ["SoftmaxOutput", "LinearRegressionOutput", "LogisticRegressionOutput", "MAERegressionOutput"]

TYPES = ("float16", "bfloat16")


def low_type(target_dtype: Any) -> str:
    """Return the name of the narrow type.

    Raises
    ------
    OpValueError
        If it is neither float16 nor bfloat16.
    """
    try:
        name = dtypes.NAMES[dtypes.code_of(target_dtype)]
    except MXNetError:
        name = ""
    if name not in TYPES:
        raise OpValueError(f"amp: target_dtype={shown(target_dtype)}; expected 'float16' or 'bfloat16'")
    return name


def _known(names: str) -> list[str]:
    """Return the names of operators that are registered, with their other names."""
    found = filter(None, map(registry.find, names.split()))
    return [name for op in found for name in (op.name, *op.aliases)]


def list_lp16_ops(target_dtype: Any = "float16") -> list[str]:
    """Return the operators that run in the narrow type."""
    return _known(_LOW if low_type(target_dtype) == "float16" else "Convolution FullyConnected")


def list_fp32_ops(target_dtype: Any = "float16") -> list[str]:
    """Return the operators that run in float32: float16 overflows in them, or loses too many digits."""
    return _known(_FLOAT32 + ("" if low_type(target_dtype) == "float16" else " Deconvolution RNN"))


def list_conditional_fp32_ops(target_dtype: Any = "float16") -> list[tuple[str, str, list[str]]]:
    """Return the operators that run in float32 with some values of a parameter: (operator, parameter, values)."""
    low_type(target_dtype)
    return [(name, key, list(values)) for name, key, values in _CONDITIONAL]


def list_widest_type_cast(target_dtype: Any = "float16") -> list[str]:
    """Return the operators that run in the widest type among their inputs."""
    low_type(target_dtype)
    return _known(_WIDEST)


def list_lp16_fp32_ops(target_dtype: Any = "float16") -> list[str]:
    """Return the operators that run in the type of their inputs: all that are on no other list."""
    listed = {*list_lp16_ops(target_dtype), *list_fp32_ops(target_dtype), *list_widest_type_cast(target_dtype)}
    listed.update(name for name, _, _ in _CONDITIONAL)
    return [name for name in registry.names() if name not in listed]


def list_loss_output_functions(target_dtype: Any = "float16") -> list[str]:
    """Return the operators whose gradient is that of a loss."""
    low_type(target_dtype)
    return list(_LOSSES)


def list_lp16_use_fp32_params(target_dtype: Any = "float16") -> None:
    """Return None: operators that keep parameters in float32 take them beside data of the narrow type as they are."""
    low_type(target_dtype)


class Lists:
    """The lists in force: the defaults, with the operators moved that a caller names.

    Parameters
    ----------
    target_dtype : str or type
    low, float32 : sequence of str, optional
        Operators to run in the narrow type, and in float32, in place of those of the default lists.
    conditional : sequence of (str, str, sequence of str), optional
        Operators to run in float32 with some values of a parameter, in place of the default ones.

    Raises
    ------
    OpTypeError, OpValueError
        If a name is not a str, no operator's, or on two lists.
    """

    def __init__(self, target_dtype: Any, low: Sequence[str] | None, float32: Sequence[str] | None, conditional: Any):
        self.target = low_type(target_dtype)
        self.code = dtypes.CODES[self.target]
        defaults = {"float32": _FLOAT32, "widest": _WIDEST}
        self._way = {op: way for way, names in defaults.items() for name in names.split() if (op := registry.find(name))}
        moved: dict[Operator, str] = {}
        for argument, way, names in (("target_dtype_ops", "low", low), ("fp32_ops", "float32", float32)):
            for op in _operators(argument, list_lp16_ops(self.target) if names is None and way == "low" else names or ()):
                if moved.setdefault(op, way) != way:
                    raise OpValueError(f"amp: operator {op.name} is on two lists, target_dtype_ops and fp32_ops")
        self._values: dict[Operator, tuple[str, list[str]]] = {}
        for name, key, values in _checked(_CONDITIONAL if conditional is None else conditional):
            (op,) = _operators("conditional_fp32_ops", [name])
            if op in moved:
                raise OpValueError(f"amp: operator {op.name} is on two lists, conditional_fp32_ops and another")
            if key not in op.spec.by_name:
                raise OpValueError(f"amp: conditional_fp32_ops: operator {op.name} has no parameter {key!r}")
            self._values[op] = key, [str(v) for v in values]
        if self.target == "bfloat16":  # as in list_fp32_ops
            moved = {registry.get(name): "float32" for name in ("Deconvolution", "RNN")} | moved
        self._way.update(moved)

    def way(self, op: Operator, params: Mapping[str, Any]) -> str | None:
        """Return how a call runs: ``'low'``, ``'float32'``, ``'widest'``, or None: in the type of its inputs."""
        if op in self._values:
            key, values = self._values[op]
            given = params.get(key, op.spec.by_name[key].default)
            return "float32" if str(given) in values else None
        return self._way.get(op)

    def asks(self, op: Operator) -> bool:
        """Return whether :meth:`way` depends on a parameter."""
        return op in self._values

    def operators(self) -> set[Operator]:
        """Return the operators whose inputs may be converted."""
        return {*self._way, *self._values}


def _operators(argument: str, names: Any) -> Iterable[Operator]:
    if isinstance(names, str) or not isinstance(names, (list, tuple, set)) or not all(isinstance(n, str) for n in names):
        raise OpTypeError(f"amp: {argument}={shown(names)}; expected a list of names of operators")
    for name in names:
        op = registry.find(name)
        if op is None:
            raise registry.not_registered(name, f"amp: {argument}: there is no operator {name!r}")
        yield op


def _checked(rows: Any) -> list[tuple[str, str, Sequence[Any]]]:
    rows = list(rows) if isinstance(rows, (list, tuple)) else [None]
    for row in rows:
        if not (
            isinstance(row, (list, tuple)) and len(row) == 3 and isinstance(row[1], str) and isinstance(row[2], (list, tuple))
        ):
            raise OpTypeError(f"amp: conditional_fp32_ops has {shown(row)}; expected (operator, parameter, list of values)")
    return rows
