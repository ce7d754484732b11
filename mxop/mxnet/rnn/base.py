"""What all recurrent cells have: parameters, states and unrolling over time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ... import ndarray as nd
from ... import symbol as sym
from ...ndarray import NDArray
from ...support.errors import MXNetError, OpTypeError, OpValueError, UnsupportedError, shown
from ...symbol import Symbol


class RNNParams:
    """Variables by name, which cells share.

    Examples
    --------
    >>> params = RNNParams("lstm_")
    >>> params.get("i2h_weight") is params.get("i2h_weight"), params.get("i2h_weight").name
    (True, 'lstm_i2h_weight')
    """

    def __init__(self, prefix: str = ""):
        self._prefix = prefix
        self._params: dict[str, Symbol] = {}

    def get(self, name: str, **kwargs: Any) -> Symbol:
        """Return the variable of a name, made by ``mx.sym.Variable`` when it is first asked for."""
        name = self._prefix + name
        if name not in self._params:
            self._params[name] = sym.Variable(name, **kwargs)
        return self._params[name]


def sequence(length: int | None, given: Any, layout: str, merge: bool | None, in_layout: str = "") -> tuple[Any, int]:
    """Return steps as one symbol (`merge`), as a list (False) or as they are given (None), and the axis of time.

    Parameters
    ----------
    length : int or None
    given : Symbol or list of Symbol
    layout : str
        Its ``T`` is the axis of time of what is returned.
    in_layout : str
        The same of what is given as one symbol; empty for `layout`.
    """
    axis = layout.find("T")
    at = in_layout.find("T") if in_layout else axis
    if axis < 0 or at < 0:
        raise OpValueError(f"layout={shown(layout if axis < 0 else in_layout)} has no T, the axis of time")
    if isinstance(given, Symbol):
        if merge is False:
            if len(given.list_outputs()) != 1:
                raise OpValueError(
                    f"unroll: inputs has {len(given.list_outputs())} outputs; expected one symbol, or a list of symbols"
                )
            return list(sym.split(given, axis=at, num_outputs=length, squeeze_axis=1)), axis
    else:
        if not isinstance(given, Sequence) or not all(isinstance(s, Symbol) for s in given):
            raise OpTypeError(f"unroll: inputs={shown(given)}; expected a Symbol or a list of Symbols")
        if length is not None and len(given) != length:
            raise OpValueError(f"unroll: {len(given)} inputs for length={length}")
        if not merge:
            return list(given), axis
        given, at = sym.Concat(*(sym.expand_dims(s, axis=axis) for s in given), dim=axis), axis
    return (sym.swapaxes(given, dim1=axis, dim2=at) if axis != at else given), axis


class BaseRNNCell:
    """A cell takes an input and states, and gives an output and new states.

    Parameters
    ----------
    prefix : str
        Begins the names of its parameters and operators.
    params : RNNParams, optional
        Parameters to share with other cells.
    """

    #: The cells that it is made of.
    _cells: Iterable[BaseRNNCell] = ()
    #: The ends of the names of its gates, each of which has ``_num_hidden`` rows of the parameters.
    _gate_names: tuple[str, ...] = ()
    _num_hidden = 0
    # weight and bias of the layer of the input, and of the state's
    _iW: Symbol
    _iB: Symbol
    _hW: Symbol
    _hB: Symbol

    def __init__(self, prefix: str = "", params: RNNParams | None = None):
        self._own_params = params is None
        self._params = RNNParams(prefix) if params is None else params
        self._prefix, self._modified = prefix, False
        self.reset()

    def reset(self) -> None:
        """Count steps from the beginning again, before another graph is made."""
        self._init_counter = self._counter = -1
        for cell in self._cells:
            cell.reset()

    def __call__(self, inputs: Symbol, states: Sequence[Symbol]) -> tuple[Symbol, list[Symbol]]:
        """Return the output of one step, and the new states."""
        raise UnsupportedError(f"{type(self).__name__} defines no step")

    @property
    def params(self) -> RNNParams:
        """The parameters, to be shared."""
        self._own_params = False
        return self._params

    @property
    def state_info(self) -> list[dict[str, Any]]:
        """Shape (0 stands for the size of the batch) and layout of each state."""
        raise UnsupportedError(f"{type(self).__name__} does not say what its states are")

    @property
    def state_shape(self) -> list[tuple[int, ...]]:
        """The shapes of the states."""
        return [info["shape"] for info in self.state_info]

    @property
    def _num_gates(self) -> int:
        return len(self._gate_names)

    def _weights(self, group: str) -> dict[str, Symbol]:
        """Return the parameters of the layer of the input (``i2h``) or of the state (``h2h``)."""
        return dict(zip(("weight", "bias"), (self._iW, self._iB) if group == "i2h" else (self._hW, self._hB)))

    def _next(self) -> str:
        """Return the prefix of the next step's names."""
        self._counter += 1
        return f"{self._prefix}t{self._counter}_"

    def _unmodified(self) -> None:
        if self._modified:
            raise MXNetError(
                f"{type(self).__name__}: a cell that modifies this one stands around it; call that one's begin_state"
            )

    def begin_state(self, func: Callable[..., Symbol] = sym.zeros, **kwargs: Any) -> list[Symbol]:
        """Return the states before the first step.

        Parameters
        ----------
        func : callable
            ``mx.sym.zeros``, ``mx.sym.Variable``...: makes each from its name, `kwargs` and what ``state_info`` says.
        """
        self._unmodified()
        found = []
        for info in self.state_info:
            self._init_counter += 1
            found.append(func(name=f"{self._prefix}begin_state_{self._init_counter}", **{**kwargs, **(info or {})}))
        return found

    # ---- parameters, gate by gate -------------------------------------------------------------------------------------
    def unpack_weights(self, args: Mapping[str, NDArray]) -> dict[str, NDArray]:
        """Return parameters in which each gate has arrays of its own, for files and other cells."""
        args, h = dict(args), self._num_hidden
        for name, gates in self._packed():
            array = args.pop(name)
            args |= {gate: array[at * h : (at + 1) * h].copy() for at, gate in enumerate(gates)}
        return args

    def pack_weights(self, args: Mapping[str, NDArray]) -> dict[str, NDArray]:
        """Return parameters as the operators take them; the reverse of :meth:`unpack_weights`."""
        args = dict(args)
        for name, gates in self._packed():
            args[name] = nd.concat(*(args.pop(gate) for gate in gates), dim=0)
        return args

    def _packed(self) -> list[tuple[str, list[str]]]:
        """Return the names of the parameters, and of their parts."""
        p = self._prefix
        return [
            (f"{p}{group}_{kind}", [f"{p}{group}{gate}_{kind}" for gate in self._gate_names])
            for group in ("i2h", "h2h") for kind in ("weight", "bias") if self._gate_names
        ]  # fmt: skip

    # ---- over time ----------------------------------------------------------------------------------------------------
    def unroll(self, length: int, inputs: Any, begin_state: Sequence[Symbol] | None = None, layout: str = "NTC",
               merge_outputs: bool | None = None) -> tuple[Any, list]:  # fmt: skip
        """Return the outputs of all steps, and the last states.

        Parameters
        ----------
        length : int
            The number of steps.
        inputs : Symbol or list of Symbol
            All steps in one symbol of the given layout, or a symbol for each.
        begin_state : list of Symbol, optional
            By default :meth:`begin_state`.
        layout : {'NTC', 'TNC'}
        merge_outputs : bool, optional
            One symbol of all outputs, or a list; None lets the cell choose.
        """
        self.reset()
        inputs, _ = sequence(length, inputs, layout, False)
        states = self._begin(begin_state)
        outputs = []
        for step in inputs:
            output, states = self(step, states)
            outputs.append(output)
        return sequence(length, outputs, layout, merge_outputs)[0], states

    def _begin(self, states: Sequence[Symbol] | None) -> list[Symbol]:
        return self.begin_state() if states is None else list(states)

    def _get_activation(self, inputs: Symbol, activation: Any, **kwargs: Any) -> Symbol:
        if isinstance(activation, str):
            return sym.Activation(inputs, act_type=activation, **kwargs)
        return activation(inputs, **kwargs)
