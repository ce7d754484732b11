"""Networks with their parameters, quantized."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .... import ndarray as nd
from ....context import Context, cpu
from ....graph.ir import Graph
from ....ndarray import NDArray
from ....opdef import registry
from ....support.errors import OpTypeError, OpValueError, ends_at_caller, names_given, shown
from ....symbol import Symbol
from ...io import DataIter
from . import calibration, graphs

Arrays = Mapping[str, Any]
DTYPES, MODES = ("int8", "uint8", "auto"), ("none", "naive", "entropy", "customize")


@ends_at_caller
def quantize_model(
    sym: Symbol, arg_params: Arrays, aux_params: Arrays, data_names: Sequence[str] = ("data",),
    label_names: Sequence[str] | None = ("softmax_label",), ctx: Context | None = None,
    excluded_sym_names: Sequence[str] | None = None, excluded_op_names: Sequence[str] | None = None,
    calib_mode: str | None = "entropy", calib_data: DataIter | None = None, num_calib_examples: int | None = None,
    quantized_dtype: str = "int8", quantize_mode: str = "smart", quantize_granularity: str = "tensor-wise", logger: Any = None,
) -> tuple[Symbol, dict[str, NDArray], dict[str, NDArray]]:  # fmt: skip
    """Return a network of float32 and its parameters as one of int8, for inference.

    Parameters
    ----------
    sym : Symbol
    arg_params, aux_params : dict of str to NDArray
        What a checkpoint has.
    data_names, label_names : sequence of str
        Inputs of the network: those that `calib_data` gives, and those that need not be given.
    ctx : Context, optional
        Where `calib_data` are run; the CPU by default.
    excluded_sym_names, excluded_op_names : list of str, optional
        Nodes, and operators, that stay float32.
    calib_mode : {'entropy', 'naive', 'none'}
        How the ranges of results are found: those that lose least information about the values of `calib_data`; from the
        least to the largest of these values; or in each run, from the values in it.
    calib_data : DataIter, optional
        Sample data.
    num_calib_examples : int, optional
        How many of them are used; all by default.
    quantized_dtype : {'int8', 'uint8', 'auto'}
        The type of levels; ``auto`` is uint8 where calibration found no negative values.
    quantize_mode : {'smart', 'full'}
        ``full`` quantizes all operators that can be, ``smart`` layers and what lies between two of them.
    quantize_granularity : {'tensor-wise', 'channel-wise'}
        Has no effect: each array has one range.
    logger : Logger, optional

    Returns
    -------
    sym, arg_params, aux_params : Symbol, dict, dict
        Weights and biases are int8, with their ranges beside them.

    Raises
    ------
    OpTypeError, OpValueError
        If an argument is not what is described here.

    Examples
    --------
    >>> net = mx.sym.FullyConnected(mx.sym.var('data'), num_hidden=2, no_bias=True, name='fc')
    >>> weight = {'fc_weight': mx.nd.array([[1, 2], [3, -4]])}
    >>> data = mx.io.NDArrayIter(mx.nd.array([[1, 2], [-3, 0.5]]), batch_size=2)
    >>> net, args, aux = mx.contrib.quantization.quantize_model(net, weight, {}, calib_mode='naive', calib_data=data)
    >>> args['fc_weight_quantize'].asnumpy().tolist()
    [[32, 64], [95, -127]]
    >>> net.eval(data=mx.nd.array([[1, 2]]), **args)[0].asnumpy().round(1).tolist()
    [[5.0, -5.0]]
    """
    settings = _Settings(sym, arg_params, aux_params, ctx, calib_mode, quantized_dtype, quantize_mode, quantize_granularity)
    if settings.mode == "customize":
        raise OpValueError("quantize_model: calib_mode='customize'; expected 'none', 'naive' or 'entropy', or quantize_graph")
    graph, layers = settings.graph(excluded_sym_names, excluded_op_names)
    if settings.mode != "none":
        _check_data(sym, calib_data, data_names, settings.mode)
        collector = calibration.collector_for(settings.mode, quantized_dtype, layers, None, logger)
        calibration.run(sym, settings.ctx, calib_data, arg_params, aux_params, label_names or (), collector,  # type: ignore[arg-type]
                        num_calib_examples, logger)  # fmt: skip
        graph = graphs.with_ranges(graph, calibration.ranges_of(collector, settings.mode, quantized_dtype))
    found = Symbol(graph.outputs)
    return found, _levels_of(found, arg_params), dict(aux_params)


@ends_at_caller
def quantize_model_mkldnn(sym: Symbol, arg_params: Arrays, aux_params: Arrays, *args: Any, ctx: Context | None = None,
                          **kwargs: Any) -> tuple[Symbol, dict[str, NDArray], dict[str, NDArray]]:  # fmt: skip
    """Do what :func:`quantize_model` does, on the CPU only; MXNet's also merges operators into those of oneDNN."""
    if ctx is not None and getattr(ctx, "device_type", "cpu") != "cpu":
        raise OpValueError(f"quantize_model_mkldnn: ctx={ctx}; expected the CPU")
    return quantize_model(sym, arg_params, aux_params, *args, ctx=ctx, **kwargs)


def quantize_graph(
    sym: Symbol, arg_params: Arrays, aux_params: Arrays, ctx: Context | None = None,
    excluded_sym_names: Sequence[str] | None = None, excluded_op_names: Sequence[str] | None = None,
    calib_mode: str | None = "entropy", quantized_dtype: str = "int8", quantize_mode: str = "full",
    quantize_granularity: str = "tensor-wise", LayerOutputCollector: Any = None, logger: Any = None,
) -> tuple[Symbol, dict[str, NDArray], dict[str, NDArray], Any]:  # fmt: skip
    """Return a quantized network without calibration, its parameters, and a collector for that.

    Set ``collector.collect`` as the monitor of an executor of the float32 network (``set_monitor_callback`` with
    ``monitor_all=True``), run sample data, and call :func:`calib_graph`.  :func:`quantize_model` does all of that.

    Parameters
    ----------
    calib_mode : {'entropy', 'naive', 'customize', 'none'}
        Which collector is returned; None for ``none``.
    LayerOutputCollector : object, optional
        The collector for ``customize``: its method ``collect(name, array)`` keeps ``min_max_dict``, from names of outputs to
        two limits.
    sym, arg_params, aux_params, ctx, excluded_sym_names, excluded_op_names, quantized_dtype, quantize_mode, logger
        As of :func:`quantize_model`.
    """
    settings = _Settings(sym, arg_params, aux_params, ctx, calib_mode, quantized_dtype, quantize_mode, quantize_granularity)
    graph, layers = settings.graph(excluded_sym_names, excluded_op_names)
    found = Symbol(graph.outputs)
    collector = calibration.collector_for(settings.mode, quantized_dtype, layers, LayerOutputCollector, logger)
    return found, _levels_of(found, arg_params), dict(aux_params), collector


def calib_graph(
    qsym: Symbol, arg_params: Arrays, aux_params: Arrays, collector: Any, calib_mode: str = "entropy",
    quantized_dtype: str = "int8", logger: Any = None,
) -> tuple[Symbol, dict[str, NDArray], dict[str, NDArray]]:  # fmt: skip
    """Return a network of :func:`quantize_graph` with the ranges that its collector found, and its parameters.

    Parameters
    ----------
    qsym : Symbol
    arg_params, aux_params : dict of str to NDArray
        Those of the float32 network.
    collector : object
    calib_mode : {'entropy', 'naive', 'customize'}
    """
    if not isinstance(qsym, Symbol):
        raise OpTypeError(f"calib_graph: qsym is {shown(qsym)}; expected a Symbol")
    _one_of("calib_mode", calib_mode, MODES[1:])
    _one_of("quantized_dtype", quantized_dtype, DTYPES)
    ranges = calibration.ranges_of(collector, calib_mode, quantized_dtype)
    found = Symbol(graphs.with_ranges(Graph(qsym._entries), ranges).outputs)
    return found, _levels_of(found, arg_params), dict(aux_params)


def _levels_of(symbol: Symbol, params: Arrays) -> dict[str, Any]:
    """Return the parameters of a quantized network, those that it takes in int8 with their limits."""
    found: dict[str, Any] = {}
    for name in symbol.list_arguments():
        original = name.removesuffix(graphs.SUFFIX)
        if name in params:
            found[name] = params[name]
        elif original != name and original in params:
            values = params[original]
            low, high = nd.min(values), nd.max(values)
            found.update(zip((name, f"{name}_min", f"{name}_max"), nd.contrib.quantize(values, low, high, out_type="int8"),
                             strict=True))  # fmt: skip
    return found


# ---- arguments -------------------------------------------------------------------------------------------------------
class _Settings:
    """Arguments of the functions above, checked."""

    def __init__(
        self, sym: Any, args: Any, aux: Any, ctx: Any, mode: str | None, dtype: str, quantize_mode: str, granularity: str
    ):
        if not isinstance(sym, Symbol):
            raise OpTypeError(f"quantization: sym is {shown(sym)}; expected a Symbol")
        for name, params in (("arg_params", args), ("aux_params", aux)):
            if not isinstance(params, Mapping):
                raise OpTypeError(f"quantization: {name} is {shown(params)}; expected a dict of arrays by name")
        self.ctx = cpu() if ctx is None else ctx
        if not isinstance(self.ctx, Context):
            raise OpTypeError(f"quantization: ctx={shown(ctx)}; expected one Context")
        self.mode: str = "none" if mode is None else mode
        _one_of("calib_mode", self.mode, MODES)
        _one_of("quantized_dtype", dtype, DTYPES)
        _one_of("quantize_mode", quantize_mode, ("full", "smart"))
        _one_of("quantize_granularity", granularity, ("tensor-wise", "channel-wise"))
        self._symbol, self._params, self._dtype, self._quantize_mode = sym, args, dtype, quantize_mode

    def graph(self, names: Any, operators: Any) -> tuple[Graph, list[str]]:
        """Return the quantized graph, and the outputs whose ranges it needs, by their names in the float32 network."""
        graph = Graph(self._symbol._entries)
        names = names_given(names, "quantization: excluded_sym_names")
        operators = names_given(operators, "quantization: excluded_op_names")
        absent = [name for name in names if name not in {n.name for n in graph.nodes}]
        if absent:
            raise OpValueError(f"quantization: excluded_sym_names: the network has no {', '.join(absent)}")
        left = [registry.get(name) for name in operators]
        chosen = graphs.chosen(graph, names, left, self._quantize_mode)
        quantized = graphs.Quantizer(chosen, self._params, self._dtype).graph(graph)
        return quantized, [name for n in quantized.nodes if (name := graphs.calibrated_by(n)) is not None]


def _one_of(argument: str, value: Any, allowed: Sequence[str]) -> None:
    if value not in allowed:
        raise OpValueError(f"quantization: {argument}={shown(value)}; expected one of {', '.join(map(repr, allowed))}")


def _check_data(sym: Symbol, data: Any, names: Any, mode: str) -> None:
    if not isinstance(data, DataIter):
        raise OpTypeError(f"quantize_model: calib_mode={mode!r}, calib_data={shown(data)}; expected a DataIter")
    given, wanted = [d[0] for d in data.provide_data], names_given(names, "quantization: data_names")
    if sorted(given) != sorted(wanted) or not set(given) <= set(sym.list_inputs()):
        raise OpValueError(f"quantize_model: calib_data gives {', '.join(given)}, data_names={wanted}, and the network has the "
                           f"inputs {', '.join(sym.list_inputs())}; expected equal names")  # fmt: skip
