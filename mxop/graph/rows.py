"""The parts of an explanation: calls, values, buffers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..context import Context
from ..opdef.kernel import Kernel
from .bandwidth import copy_bandwidth
from .infer import Known
from .ir import Node
from .listing import cuda_of, program_of, steps_of


@dataclass(frozen=True)
class Value:
    """An operand or a result of a call.

    Attributes
    ----------
    name : str
    shape : tuple of int
    dtype : str
    nbytes : int
        Bytes moved by reading or writing it; a value that is added to its array is read and written.
    place : str
        ``buffer 3``, ``argument x``, ``output y``, ``gradient of x``...
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    nbytes: int
    place: str

    def __str__(self) -> str:
        return f"{self.name}{list(self.shape)}"


@dataclass
class Row:
    """One call of the schedule.

    Attributes
    ----------
    step : int
        Position in the schedule, counted through forward and backward.
    phase : {'forward', 'backward'}
    kind : {'fused', 'strip', 'operator', 'copy'}
        A strip is a row kernel: several reductions and formulas, applied to a few rows at a time.
    operator : str
        The operator; for a fused group the operators of its members.
    members : list of str
        The names of the nodes that it computes.
    formula : list of str
        Lines ``result = formula``.
    inputs, outputs : list of Value
    made_at : str or None
        File and line of the user's code.
    measured : float or None
        The median seconds measured; None unless ``explain(measure=True)``.
    """

    step: int
    phase: str
    kind: str
    operator: str
    members: list[str]
    formula: list[str]
    inputs: list[Value]
    outputs: list[Value]
    made_at: str | None
    context: Context = field(repr=False)
    measured: float | None = None
    _node: Node | None = field(default=None, repr=False)
    _call: Any = field(default=None, repr=False)
    _known: Known | None = field(default=None, repr=False)
    _reqs: list[int] = field(default_factory=list, repr=False)

    @property
    def nbytes(self) -> int:
        """Bytes that the call moves, if every input is read once and every output written once."""
        return sum(v.nbytes for v in (*self.inputs, *self.outputs))

    @property
    def seconds(self) -> float:
        """The least time that moving these bytes takes, at the measured bandwidth of a copy."""
        return self.nbytes / copy_bandwidth(self.context, self.nbytes)

    @property
    def ratio(self) -> float | None:
        """The measured time divided by `seconds`; None if not measured, or if no bytes are moved."""
        return self.measured / self.seconds if self.measured is not None and self.nbytes else None

    @property
    def source(self) -> str | None:
        """The CPU program of the call; None for an operator with a function of its own."""
        if self._node is None:
            return str(self._call.source) if hasattr(self._call, "source") else None
        return program_of(self._node, self._call, self._known)  # type: ignore[arg-type]

    @property
    def steps(self) -> list[str]:
        """What the call runs on the CPU, in order: names of compiled kernels, and the path that they take.

        ``Product`` is a GEMM, ``FewFilters`` a direct convolution, ``Move`` a copy (by rows, by transposed blocks, strided).
        With ``epilogue``, the row's formula is computed of each tile of the result of an earlier row, whose work it then has.
        A ``Loop`` is followed by the steps of its body; ``packed once`` marks a matrix that all of its steps multiply by.
        """
        return steps_of(self._call)

    @property
    def cuda_source(self) -> str | None:
        """The CUDA source of the call; None for an operator that CuPy's routines compute."""
        return None if self._node is None else cuda_of(self._node, self._known, self._reqs)  # type: ignore[arg-type]

    @property
    def waits(self) -> str:
        """What the call waits for on a GPU before the next one is launched; empty if for nothing, and on the CPU."""
        op = self._node.op if self._node is not None and self.context.is_gpu else None
        return op.waits_for(self._node.attrs) if isinstance(op, Kernel) else ""  # type: ignore[union-attr]

    def as_dict(self) -> dict[str, Any]:
        """Return the row as plain data."""
        names = (
            "step", "phase", "kind", "operator", "members", "formula", "nbytes", "seconds", "measured", "ratio", "made_at",
            "source", "steps", "waits",
        )  # fmt: skip
        values = {side: [vars(v) | {"shape": list(v.shape)} for v in getattr(self, side)] for side in ("inputs", "outputs")}
        return {name: getattr(self, name) for name in names} | values


@dataclass(frozen=True)
class Tenant:
    """A value in a buffer, from the step that computes it to its last reader."""

    name: str
    first: int
    last: int
    nbytes: int


@dataclass(frozen=True)
class Buffer:
    """A buffer of the plan, with the values that it holds one after another."""

    number: int
    dtype: str
    nbytes: int
    tenants: tuple[Tenant, ...]


def bytes_text(n: int) -> str:
    """Return a number of bytes as text with a unit."""
    for unit in ("B", "KB", "MB"):
        if n < 1000:
            return f"{n:.3g} {unit}"
        n /= 1000  # type: ignore[assignment]
    return f"{n:.3g} GB"


def time_text(seconds: float) -> str:
    """Return a duration as text with a unit."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"
