"""A float32 network as one of mixed types: conversions are put before the operators that need them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from ....graph.infer import Types
from ....graph.ir import Entry, Graph, Node
from ....graph.rewrite import exchanged, rebuilt
from ....opdef import registry
from ....support import dtypes
from ....support.errors import MXNetError, OpTypeError, names_given, shown
from ....symbol import Symbol
from .lists import Lists


def convert_symbol(
    sym: Symbol, target_dtype: Any = "float16", target_dtype_ops: Sequence[str] | None = None,
    fp32_ops: Sequence[str] | None = None, conditional_fp32_ops: Any = None, excluded_sym_names: Sequence[str] | None = None,
    data_names: Sequence[str] | None = None, cast_optional_params: bool = False,
) -> Symbol:  # fmt: skip
    """Return a network of float32 with conversions (``amp_cast``, ``amp_multicast``), so that it runs in mixed precision.

    Its inputs remain float32, and so do its outputs.  ``tojson`` and ``save`` leave these conversions out, unless they are
    called with ``remove_amp_cast=False``.

    Parameters
    ----------
    sym : Symbol
    target_dtype : str or type
        The narrow type, float16 or bfloat16.
    target_dtype_ops, fp32_ops : list of str, optional
        Operators that run in the narrow type (:func:`list_lp16_ops` where it is None), and further ones in float32.
    conditional_fp32_ops : list of (str, str, list of str), optional
        Operators that run in float32 with some values of a parameter (:func:`list_conditional_fp32_ops`).
    excluded_sym_names : list of str, optional
        Nodes whose inputs are left as they are.
    data_names : list of str, optional
        The arguments that are data; the others are parameters (None: none is).
    cast_optional_params : bool
        Declare parameters that are only read in the narrow type to be of that type, instead of converting them in each run.

    Raises
    ------
    OpTypeError, OpValueError
        If an argument is not what is described here.

    Examples
    --------
    >>> x = mx.sym.exp(mx.sym.FullyConnected(mx.sym.var('x'), num_hidden=2, no_bias=True, name='fc'))
    >>> mixed = mx.contrib.amp.convert_symbol(x)
    >>> [name for name in mixed.get_internals().list_outputs() if 'amp' in name]
    ['x_amp_cast_float16_output', 'fc_weight_amp_cast_float16_output', 'fc_output_amp_cast_float32_output']
    """
    given = target_dtype_ops, fp32_ops, conditional_fp32_ops
    return _mixed(sym, target_dtype, given, excluded_sym_names, data_names, cast_optional_params)


def convert_model(
    sym: Symbol, arg_params: Mapping[str, Any], aux_params: Mapping[str, Any], target_dtype: Any = "float16",
    target_dtype_ops: Sequence[str] | None = None, fp32_ops: Sequence[str] | None = None, conditional_fp32_ops: Any = None,
    excluded_sym_names: Sequence[str] | None = None, cast_optional_params: bool = False,
) -> tuple[Symbol, dict[str, Any], dict[str, Any]]:  # fmt: skip
    """Return a network and its parameters for inference in mixed precision; see :func:`convert_symbol`.

    Parameters
    ----------
    sym : Symbol
    arg_params, aux_params : dict of str to NDArray
        What a checkpoint has; inputs that are in neither are data.
    cast_optional_params : bool
        Return parameters that are only read in the narrow type in that type.

    Examples
    --------
    >>> net = mx.sym.FullyConnected(mx.sym.var('x'), num_hidden=2, no_bias=True, name='fc')
    >>> net, args, aux = mx.contrib.amp.convert_model(net, {'fc_weight': mx.nd.ones((2, 3))}, {}, cast_optional_params=True)
    >>> args['fc_weight'].dtype.__name__, net.eval(x=mx.nd.ones((1, 3)), **args)[0].dtype.__name__
    ('float16', 'float32')
    """
    for name, params in (("arg_params", arg_params), ("aux_params", aux_params)):
        if not isinstance(params, Mapping):
            raise OpTypeError(f"amp.convert_model: {name} is {shown(params)}; expected a dict of arrays by name")
    inputs = sym.list_inputs() if isinstance(sym, Symbol) else []
    data = [name for name in inputs if name not in arg_params and name not in aux_params]
    given = target_dtype_ops, fp32_ops, conditional_fp32_ops
    mixed = _mixed(sym, target_dtype, given, excluded_sym_names, data, cast_optional_params)
    declared = {name: attrs["__dtype__"] for name, attrs in mixed.attr_dict().items() if "__dtype__" in attrs}

    def converted(params: Mapping[str, Any]) -> dict[str, Any]:
        return {n: v.astype(dtypes.NAMES[int(declared[n])]) if n in declared and v.dtype.__name__ in dtypes.CODES
                and dtypes.CODES[v.dtype.__name__] in dtypes.FLOATS else v for n, v in params.items()}  # fmt: skip

    return mixed, converted(arg_params), converted(aux_params)


def _mixed(sym: Any, target_dtype: Any, given: tuple, excluded: Any, data: Any, narrow: bool) -> Symbol:
    """Return what the functions above do."""
    if not isinstance(sym, Symbol):
        raise OpTypeError(f"amp: sym is {shown(sym)}; expected a Symbol")
    graph, lists = Graph(sym._entries), Lists(target_dtype, *given)
    left = set(names_given(excluded, "amp: excluded_sym_names"))
    absent = left - {node.name for node in graph.nodes}
    if absent:
        warnings.warn(f"amp: excluded_sym_names: the network has no {', '.join(sorted(absent))}", stacklevel=3)
    mixed = Converter(lists, left).graph(graph)
    if data is not None:
        mixed = _declared(mixed, lists, set(names_given(data, "amp: data_names")), narrow)
    return Symbol(mixed.outputs)


class Converter:
    """Puts conversions before nodes, and notes the type of each output: narrow, float32, or unknown."""

    def __init__(self, lists: Lists, excluded: set[str]):
        self._lists, self._excluded = lists, excluded
        self._types: dict[Entry, int] = {}
        self._casts: dict[tuple[Entry, int], Entry] = {}
        self._cast, self._several = registry.get("amp_cast"), registry.get("amp_multicast")

    def graph(self, graph: Graph) -> Graph:
        """Return a graph with conversions, whose outputs are float32."""
        moved: dict[Entry, Entry] = {}
        for node in graph.nodes:
            new = node if node.op is None else self._mixed(rebuilt(node, moved))
            moved.update({(node, k): (new, k) for k in range(node.n_outputs)})
        outputs = [moved[e] for e in graph.outputs]
        return Graph([e if self._type(e) == dtypes.FLOAT32 else self._as(e, dtypes.FLOAT32) for e in outputs])

    def _mixed(self, node: Node) -> Node:
        """Return a node with its inputs in the types that it needs."""
        way = None if node.name in self._excluded else self._lists.way(node.op, node.attrs)  # type: ignore[arg-type]
        if way == "low":
            new = node.replaced(tuple([self._as(e, self._lists.code) for e in node.inputs]))
            self._note(new, [self._lists.code] * node.n_outputs)
        elif way == "float32":
            new = node.replaced(tuple([e if e[0].op is None else self._as(e, dtypes.FLOAT32) for e in node.inputs]))
            self._note(new, [dtypes.FLOAT32] * node.n_outputs)
        else:
            new = node.replaced(self._of_one_type(node.inputs)) if way == "widest" and len(node.inputs) > 1 else node
            self._note(new, self._inferred(new))
        return new

    def _of_one_type(self, entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
        types = {self._type(e) for e in entries}
        if len(types) == 1 and dtypes.UNKNOWN not in types:
            return entries
        if types == {self._lists.code, dtypes.FLOAT32}:
            return tuple([self._as(e, dtypes.FLOAT32) for e in entries])
        attrs = self._several.parse({"num_outputs": len(entries)})
        node = Node(self._several, attrs, entries, f"{_output(entries[0])}_amp_multicast", {"num_outputs": str(len(entries))})
        return tuple([(node, k) for k in range(len(entries))])

    def _inferred(self, node: Node) -> list[int]:
        """Return the types that an operator gives, as far as those of its inputs tell."""
        ins, outs = [self._type(e) for e in node.inputs], [dtypes.UNKNOWN] * node.n_outputs
        try:
            return list(node.op.infer_type(node.attrs, ins, outs)[1])  # type: ignore[union-attr]
        except MXNetError:  # its inputs do not agree, which is for the one to say who binds the network
            return outs

    def _as(self, entry: Entry, code: int) -> Entry:
        if self._type(entry) == code:
            return entry
        if (entry, code) not in self._casts:
            name, given = dtypes.NAMES[code], {"dtype": dtypes.NAMES[code]}
            node = Node(self._cast, self._cast.parse(given), (entry,), f"{_output(entry)}_amp_cast_{name}", given)
            self._types[node, 0] = code
            self._casts[entry, code] = node, 0
        return self._casts[entry, code]

    def _type(self, entry: Entry) -> int:
        return self._types.get(entry, dtypes.UNKNOWN)

    def _note(self, node: Node, types: list[int]) -> None:
        self._types.update({(node, k): code for k, code in enumerate(types)})


def _declared(graph: Graph, lists: Lists, data: set[str], narrow: bool) -> Graph:
    """Return a graph whose parameters have a declared type: float32, or with `narrow` that in which all read them."""
    outputs = {node for node, _ in graph.outputs}
    typed = Types(graph)
    typed.run()
    moved: dict[Entry, Entry] = {}
    for node in graph.variables:
        if node.name in data or typed.get((node, 0)) not in (dtypes.UNKNOWN, dtypes.FLOAT32):
            continue
        readers = graph.uses.get((node, 0), [])
        casts = [n for n in readers if n.op is not None and n.op.name == "amp_cast" and n.attrs["dtype"] == lists.code]
        only = narrow and casts and len(casts) == len(readers) and node not in outputs
        code = lists.code if only else dtypes.FLOAT32
        new = node.replaced(strings={**(node.strings or {}), "__dtype__": str(code)})
        moved[node, 0] = new, 0
        if only:
            moved.update({(cast, 0): (new, 0) for cast in casts})
    return exchanged(graph, moved)


def _output(entry: Entry) -> str:
    return entry[0].output_name(entry[1])
