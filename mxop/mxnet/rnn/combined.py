"""Cells of cells: one after the other, in both directions, modified."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from ... import symbol as sym
from ...ndarray import NDArray
from ...support.errors import MXNetError, OpTypeError, UnsupportedError
from ...symbol import Symbol
from .base import BaseRNNCell, RNNParams, sequence


class _Several(BaseRNNCell):
    """A cell whose parameters and states are those of its cells."""

    _cells: list[BaseRNNCell]

    def __init__(self, cells: Sequence[BaseRNNCell], params: RNNParams | None):
        self._cells = []
        super().__init__("", params)
        self._override = params is not None
        for cell in cells:
            self._take(cell)

    def _take(self, cell: BaseRNNCell) -> None:
        if self._override:
            if not cell._own_params:
                raise MXNetError(f"{type(self).__name__}: give params to it or to its cells, not to both")
            cell.params._params.update(self.params._params)
        self._cells.append(cell)
        self.params._params.update(cell.params._params)

    @property
    def state_info(self) -> list[dict[str, Any]]:
        return [info for cell in self._cells for info in cell.state_info]

    def begin_state(self, **kwargs: Any) -> list[Symbol]:  # type: ignore[override]
        self._unmodified()
        return [state for cell in self._cells for state in cell.begin_state(**kwargs)]

    def _shared_out(self, states: Sequence[Symbol]) -> list[list[Symbol]]:
        """Return the states of each cell."""
        left = iter(states)
        return [list(islice(left, len(cell.state_info))) for cell in self._cells]

    def unpack_weights(self, args: Mapping[str, NDArray]) -> dict[str, NDArray]:
        for cell in self._cells:
            args = cell.unpack_weights(args)
        return dict(args)

    def pack_weights(self, args: Mapping[str, NDArray]) -> dict[str, NDArray]:
        for cell in self._cells:
            args = cell.pack_weights(args)
        return dict(args)


class SequentialRNNCell(_Several):
    """Cells one above the other.

    Parameters
    ----------
    params : RNNParams, optional
        Parameters that all its cells share.

    Examples
    --------
    >>> stack = mx.rnn.SequentialRNNCell()
    >>> stack.add(mx.rnn.LSTMCell(8, prefix="first_"))
    >>> stack.add(mx.rnn.DropoutCell(0.5))
    >>> stack.add(mx.rnn.GRUCell(4, prefix="second_"))
    >>> outputs, states = stack.unroll(3, mx.sym.Variable("x"), merge_outputs=True)
    >>> outputs.infer_shape(x=(2, 3, 5))[1], len(states)
    ([(2, 3, 4)], 3)
    """

    def __init__(self, params: RNNParams | None = None):
        super().__init__((), params)

    def add(self, cell: BaseRNNCell) -> None:
        """Put a cell on top."""
        self._take(cell)

    def __call__(self, inputs: Symbol, states: Sequence[Symbol]) -> tuple[Symbol, list[Symbol]]:
        self._counter += 1
        after: list[Symbol] = []
        for cell, own in zip(self._cells, self._shared_out(states)):
            inputs, new = cell(inputs, own)
            after += new
        return inputs, after

    def unroll(self, length: int, inputs: Any, begin_state: Sequence[Symbol] | None = None, layout: str = "NTC",
               merge_outputs: bool | None = None) -> tuple[Any, list]:  # fmt: skip
        self.reset()
        after: list = []
        for cell, own in zip(self._cells, self._shared_out(self._begin(begin_state))):
            wanted = merge_outputs if cell is self._cells[-1] else None
            inputs, new = cell.unroll(length, inputs, own, layout, wanted)
            after += new
        return inputs, after


class BidirectionalCell(_Several):
    """Two cells, of which one reads backwards; their outputs are joined.

    Parameters
    ----------
    l_cell, r_cell : BaseRNNCell
        The second one reads backwards.
    params : RNNParams, optional
    output_prefix : str
        Begins the names of the joined outputs.
    """

    def __init__(self, l_cell: BaseRNNCell, r_cell: BaseRNNCell, params: RNNParams | None = None,
                 output_prefix: str = "bi_"):  # fmt: skip
        super().__init__((l_cell, r_cell), params)
        self._output_prefix = output_prefix

    def __call__(self, inputs: Symbol, states: Sequence[Symbol]) -> tuple[Symbol, list[Symbol]]:
        raise UnsupportedError("a BidirectionalCell has no single steps: its second cell begins at the end; unroll it")

    def unroll(self, length: int, inputs: Any, begin_state: Sequence[Symbol] | None = None, layout: str = "NTC",
               merge_outputs: bool | None = None) -> tuple[Any, list]:  # fmt: skip
        self.reset()
        steps, axis = sequence(length, inputs, layout, False)
        (left, right), (first, second) = self._cells, self._shared_out(self._begin(begin_state))
        there, there_states = left.unroll(length, steps, first, layout, merge_outputs)
        back, back_states = right.unroll(length, list(reversed(list(steps))), second, layout, merge_outputs)
        if merge_outputs is None:
            merge_outputs = isinstance(there, Symbol) and isinstance(back, Symbol)
        there, _ = sequence(length, there, layout, merge_outputs)
        back, _ = sequence(length, back, layout, merge_outputs)
        prefix, states = self._output_prefix, [there_states, back_states]
        if merge_outputs:
            return sym.Concat(there, sym.reverse(back, axis=axis), dim=2, name=f"{prefix}out"), states
        pairs = zip(there, reversed(list(back)))
        return [sym.Concat(*pair, dim=1, name=f"{prefix}t{at}") for at, pair in enumerate(pairs)], states


class DropoutCell(BaseRNNCell):
    """Dropout between cells; it has no states.

    Parameters
    ----------
    dropout : float
    prefix : str
    params : RNNParams, optional
    """

    def __init__(self, dropout: float, prefix: str = "dropout_", params: RNNParams | None = None):
        super().__init__(prefix, params)
        if isinstance(dropout, (str, bool)):
            raise OpTypeError(f"DropoutCell: dropout={dropout!r}; expected a number")
        self.dropout = dropout

    @property
    def state_info(self) -> list[dict[str, Any]]:
        return []

    def __call__(self, inputs: Symbol, states: Sequence[Symbol]) -> tuple[Symbol, list[Symbol]]:
        return (sym.Dropout(inputs, p=self.dropout) if self.dropout > 0 else inputs), list(states)

    def unroll(self, length: int, inputs: Any, begin_state: Sequence[Symbol] | None = None, layout: str = "NTC",
               merge_outputs: bool | None = None) -> tuple[Any, list]:  # fmt: skip
        self.reset()
        inputs, _ = sequence(length, inputs, layout, merge_outputs)
        if isinstance(inputs, Symbol):
            return self(inputs, [])
        return super().unroll(length, inputs, begin_state, layout, merge_outputs)


class ModifierCell(BaseRNNCell):
    """Base of cells that change what another cell does; they have its parameters and states.

    Parameters
    ----------
    base_cell : BaseRNNCell
    """

    def __init__(self, base_cell: BaseRNNCell):
        self.base_cell = base_cell
        self._cells = (base_cell,)
        super().__init__()
        base_cell._modified = True

    @property
    def params(self) -> RNNParams:
        self._own_params = False
        return self.base_cell.params

    @property
    def state_info(self) -> list[dict[str, Any]]:
        return self.base_cell.state_info

    def begin_state(self, init_sym: Any = sym.zeros, **kwargs: Any) -> list[Symbol]:  # type: ignore[override]
        self._unmodified()
        return self._of_base("begin_state", func=kwargs.pop("func", init_sym), **kwargs)

    def _of_base(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """Return what a method gives that the cell refuses while it is modified."""
        self.base_cell._modified = False
        try:
            return getattr(self.base_cell, method)(*args, **kwargs)
        finally:
            self.base_cell._modified = True

    def unpack_weights(self, args: Mapping[str, NDArray]) -> dict[str, NDArray]:
        return self.base_cell.unpack_weights(args)

    def pack_weights(self, args: Mapping[str, NDArray]) -> dict[str, NDArray]:
        return self.base_cell.pack_weights(args)


class ZoneoutCell(ModifierCell):
    """Keep units as they were in the step before, by chance (Krueger et al., 2016).

    Parameters
    ----------
    base_cell : BaseRNNCell
        No :class:`FusedRNNCell`, which has no steps, nor a cell of cells.
    zoneout_outputs, zoneout_states : float
        With which probability.
    """

    def __init__(self, base_cell: BaseRNNCell, zoneout_outputs: float = 0.0, zoneout_states: float = 0.0):
        if type(base_cell).__name__ == "FusedRNNCell" or isinstance(base_cell, _Several):
            raise OpTypeError(
                f"ZoneoutCell: a {type(base_cell).__name__} has no single steps, or several cells; modify these, "
                "for a FusedRNNCell those of its unfuse()"
            )
        super().__init__(base_cell)
        self.zoneout_outputs, self.zoneout_states = zoneout_outputs, zoneout_states

    def reset(self) -> None:
        super().reset()
        self.prev_output: Symbol | None = None

    def __call__(self, inputs: Symbol, states: Sequence[Symbol]) -> tuple[Symbol, list[Symbol]]:
        output, after = self.base_cell(inputs, states)
        before = sym.zeros_like(output) if self.prev_output is None else self.prev_output
        output = self._mixed(self.zoneout_outputs, output, before)
        self.prev_output = output
        return output, [self._mixed(self.zoneout_states, new, old) for new, old in zip(after, states)]

    @staticmethod
    def _mixed(p: float, new: Symbol, old: Symbol) -> Symbol:
        return sym.where(sym.Dropout(sym.ones_like(new), p=p), new, old) if p else new


class ResidualCell(ModifierCell):
    """Add the inputs to the outputs of a cell (Wu et al., 2016).

    Parameters
    ----------
    base_cell : BaseRNNCell
        Its outputs are as large as its inputs.
    """

    def __call__(self, inputs: Symbol, states: Sequence[Symbol]) -> tuple[Symbol, list[Symbol]]:
        output, states = self.base_cell(inputs, states)
        return self._sum(output, inputs), states

    @staticmethod
    def _sum(output: Symbol, inputs: Symbol) -> Symbol:
        return sym.elemwise_add(output, inputs, name=f"{output.name}_plus_residual")

    def unroll(self, length: int, inputs: Any, begin_state: Sequence[Symbol] | None = None, layout: str = "NTC",
               merge_outputs: bool | None = None) -> tuple[Any, list]:  # fmt: skip
        self.reset()
        outputs, states = self._of_base("unroll", length, inputs, begin_state, layout, merge_outputs)
        merge = isinstance(outputs, Symbol) if merge_outputs is None else merge_outputs
        inputs, _ = sequence(length, inputs, layout, merge)
        if merge:
            return self._sum(outputs, inputs), states
        return [self._sum(*pair) for pair in zip(outputs, inputs)], states
