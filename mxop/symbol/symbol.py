"""``Symbol``: a computation that is written down before it is run.

A symbol is a tuple of entries of a graph (see :mod:`mxop.graph.ir`) and the methods that MXNet gives it.  Composition is
in :mod:`.compose`, inference in :mod:`.inference`, binding in :mod:`.binding`, files in :mod:`.serialize`.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from types import MethodType
from typing import TYPE_CHECKING, Any

from ..graph.arithmetic import Arithmetic, Row
from ..graph.calls import split_call
from ..graph.ir import Entry, Graph, Node, as_text, caller, single, variable
from ..graph.ordering import after
from ..graph.traits import is_mask
from ..opdef import Operator, fluent, registry
from ..opdef.above import ask
from ..opdef.absent import Absent
from ..opdef.operator import carrier
from ..opdef.params import Bad, parse_shape
from ..support import attribute, dtypes
from ..support.errors import (
    DeprecatedError,
    MXNetError,
    NotImplementedForSymbol,
    OpIndexError,
    OpLookupError,
    OpTypeError,
    OpValueError,
    all_end_at_caller,
    closest,
    ends_at_caller,
    items,
    shown,
    translated,
)
from ..support.files import contents, path_of, reporting
from ..support.handles import handle
from ..support.missing import error
from .binding import bind, gradient, optimize, optimize_for, simple_bind
from .compose import compose, copied, is_attribute, listed, make_node, marked, outputs_of
from .inference import infer_shape, infer_type
from .serialize import from_json, to_json
from .sharing import Sharing

if TYPE_CHECKING:
    from .._core.core import NDArray
    from ..graph.executor import Executor

#: Most nodes that a notebook shows as a picture.
_MOST_DRAWN = 300


class Symbol(Arithmetic):
    """A symbolic computation with one or several outputs.

    Examples
    --------
    >>> a, b = mx.sym.Variable('a'), mx.sym.Variable('b')
    >>> c = 2 * a + b
    >>> c.list_arguments()
    ['a', 'b']
    >>> c.eval(a=mx.nd.array([1, 2]), b=mx.nd.array([3, 4]))[0].asnumpy().tolist()
    [5.0, 8.0]
    """

    __slots__ = ("__weakref__", "_entries", "_structures")

    def __init__(self, entries: Sequence[Entry] | None) -> None:
        self._entries = tuple(entries or ())  # None is what unpickling MXNet's symbols begins with: __setstate__ follows
        self._structures: dict[Any, Any] = {}  # what executors of the symbol share, by their passes

    # ---- names ------------------------------------------------------------------------------------------------------
    handle = handle

    @property
    def _head(self) -> Node | None:
        """The node of all outputs, or None when they have several."""
        first = self._entries[0][0]
        return first if all(node is first for node, _ in self._entries) else None

    @property
    def name(self) -> str | None:
        """Name of the symbol; None for a group."""
        return None if self._head is None else self._head.name

    def __repr__(self) -> str:
        if self._head is None:
            return f"<Symbol group [{', '.join(node.name for node, _ in self._entries)}]>"
        return f"<Symbol {self.name}>"

    def list_arguments(self) -> list[str]:
        """Return the names of the arguments, in the order in which they are needed."""
        return [n.name for n in Graph(self._entries).arguments()[0]]

    def list_auxiliary_states(self) -> list[str]:
        """Return the names of the states that operators write, such as a moving average."""
        return [n.name for n in Graph(self._entries).arguments()[1]]

    def list_inputs(self) -> list[str]:
        """Return the names of arguments and auxiliary states."""
        return [n.name for n in Graph(self._entries).variables]

    def list_outputs(self) -> list[str]:
        """Return the names of the outputs."""
        names = {node: node.output_names() for node in dict.fromkeys(node for node, _ in self._entries)}
        return [names[node][k] for node, k in self._entries]

    def get_internals(self) -> Symbol:
        """Return a group of the outputs of every node."""
        return Symbol([e for node in Graph(self._entries).nodes for e in outputs_of(node)])

    def get_children(self) -> Symbol | None:
        """Return a group of the inputs of the heads, or None when they have none."""
        heads = dict.fromkeys(node for node, _ in self._entries)
        entries = [e for node in heads for e in node.inputs]
        return Symbol(entries) if entries else None

    def _gen_atomic_symbol(self) -> Symbol:
        """Return the head alone: its operator and parameters, over open inputs, as MXNet's tools ask."""
        node = self._entries[0][0]
        names = () if node.op is None else node.input_names()
        opened = node.replaced(tuple((variable(f"{node.name}_{name}"), 0) for name in names))
        return Symbol([(opened, k) for k in range(opened.visible_outputs)])

    # ---- as a list of outputs ---------------------------------------------------------------------------------------
    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Symbol]:
        return (Symbol([e]) for e in self._entries)

    @property
    def _is_mask(self) -> bool:
        return len(self._entries) == 1 and is_mask(self._entries[0])

    def __getitem__(self, index: int | str | builtins.slice) -> Symbol:
        """Return one output by position or name, or several by a slice."""
        if isinstance(index, str):
            names = self.list_outputs()
            found = [i for i, name in enumerate(names) if name == index]
            if len(found) != 1:
                text = "there are several outputs with" if found else "cannot find output that matches"
                inner = ", which is one of get_internals()" if index in self.get_internals().list_outputs() else ""
                hint = inner or closest(index, [n for n in names if n == f"{index}_output"] or names)
                raise OpValueError(f'{text} name "{index}"{"" if found else hint}')
            return Symbol([self._entries[found[0]]])
        if isinstance(index, builtins.slice):
            with translated(f"{self!r}[{index}]"):
                entries = self._entries[index]
            if not entries:
                raise OpIndexError(f"{index} selects none of the {len(self)} outputs of {self!r}")
            return Symbol(entries)
        if isinstance(index, Symbol) and index._is_mask:
            raise OpTypeError(
                f"{self!r}[mask] has a size that follows from values: write mx.sym.where(mask, x, 0), which keeps "
                "the shape, or mx.sym.contrib.boolean_mask(x, mask), which takes rows and can only be an output"
            )
        if not isinstance(index, int):
            raise OpTypeError(f"the index of a symbol chooses outputs: an int, str or slice, not {index!r}; "
                              "mx.sym.slice or slice_axis cut arrays")  # fmt: skip
        if not -len(self) <= index < len(self):
            raise OpIndexError(f"output {index} of {self!r} does not exist; it has {len(self)}")
        return Symbol([self._entries[index]])

    # ---- composition ------------------------------------------------------------------------------------------------
    def __call__(self, *args: Any, name: str | None = None, **kwargs: Symbol) -> Symbol:
        """Return the symbol with arguments replaced by other symbols: ``net(data=other)``.

        Parameters
        ----------
        name : str, optional
            Name of the result.
        **kwargs : Symbol
            What takes the place of each argument.
        """
        if args:
            raise OpTypeError("composition takes symbols by argument name only: "
                              f"net({self.list_arguments()[0] if self.list_arguments() else 'data'}=...)")  # fmt: skip
        for key, value in kwargs.items():
            if not isinstance(value, Symbol):
                raise OpTypeError(f"composition: {key}={value!r} is not a Symbol")
        replace = {key: single(value._entries, f"composition: {key}") for key, value in kwargs.items()}
        return Symbol(compose(self._entries, replace, name))

    def _operate(self, op_name: str, hint: str, inputs: list, params: dict[str, Any]) -> Symbol:
        return create(registry.get(op_name), hint, inputs, params)

    def _two_op(self, row: Row) -> str:
        return row.symbols

    def __bool__(self) -> bool:
        raise NotImplementedForSymbol(self.__bool__, "bool")

    def __copy__(self, memo: Any = None) -> Symbol:
        return Symbol(copied(self._entries))

    __deepcopy__ = __copy__

    def __reduce__(self) -> tuple:
        to_look_at = any(isinstance(node.op, Absent) for node in Graph(self._entries).nodes)
        return load_json, (self.tojson(remove_amp_cast=False), to_look_at)

    def __setstate__(self, state: dict[str, str]) -> None:
        """Take the state that MXNet pickles."""
        with translated("Symbol.__setstate__"):
            self._entries = load_json(state["handle"])._entries

    def __getattr__(self, name: str) -> Any:
        """Return an operator that is no method of the class as one: ``x.swish()`` is ``mx.sym.swish(x)``."""
        if not name.startswith("_"):
            function = ask("operator_of_symbols")(name)
            if function is not None:
                return MethodType(function, self)
        raise error(f"'Symbol' object has no attribute {name!r}", name, "Symbol", partial(dir, self))

    def _repr_svg_(self) -> str | None:
        """Draw the graph, for notebooks; None, which shows the text, for one that is too large or does not let itself draw."""
        try:
            return str(ask("drawing")(self)) if len(Graph(self._entries).nodes) <= _MOST_DRAWN else None
        except Exception:  # a notebook shows the text; an error here would hide it
            return None

    def reshape(self, *shape: Any, **kwargs: Any) -> Symbol:
        """Give the data another shape: ``x.reshape((2, -1))`` or ``x.reshape(2, -1)``."""
        if shape:
            kwargs["shape"] = shape[0] if len(shape) == 1 else shape
        return invoke(registry.get("Reshape"), "reshape", self, **kwargs)

    def expand_dims(self, *args: Any, inplace: bool = False, **kwargs: Any) -> Symbol:
        """Insert a dimension of size 1 at `axis`; `inplace` is for arrays alone."""
        return invoke(registry.get("expand_dims"), "expand_dims", self, *args, **kwargs)

    def flatten(self, *args: Any, inplace: bool = False, **kwargs: Any) -> Symbol:
        """Merge all dimensions but the first; `inplace` is for arrays alone."""
        return invoke(registry.get("Flatten"), "flatten", self, *args, **kwargs)

    def squeeze(self, *args: Any, inplace: bool = False, **kwargs: Any) -> Symbol:
        """Remove dimensions of size 1, those of `axis` if it is given; `inplace` is for arrays alone."""
        return invoke(registry.get("squeeze"), "squeeze", self, *args, **kwargs)

    def transpose(self, *axes: Any, **kwargs: Any) -> Symbol:
        """Permute the dimensions: ``x.transpose((1, 0))`` or ``x.transpose(1, 0)``; reverse them without axes."""
        if axes:
            one = axes[0] if len(axes) == 1 else axes
            kwargs["axes"] = () if one is None else one
        return invoke(registry.get("transpose"), "transpose", self, **kwargs)

    def split_v2(self, indices_or_sections: Any, axis: int = 0, squeeze_axis: bool = False, name: str | None = None) -> Symbol:
        """Split into equal sections, or before the given indices."""
        listed = hasattr(indices_or_sections, "__iter__")
        if listed:
            indices_or_sections = items(indices_or_sections, "sym.split_v2: indices_or_sections")
        indices = str([0, *indices_or_sections] if listed else [])  # a list, as MXNet's function writes it to JSON
        params = {"indices": indices, "sections": 0 if listed else indices_or_sections, "axis": axis,
                  "squeeze_axis": squeeze_axis}  # fmt: skip
        return create(registry.get("_split_v2"), "_split_v2", [self], params, name, None)

    def astype(self, dtype: Any, **kwargs: Any) -> Symbol:
        """Convert to another element type."""
        return invoke(registry.get("Cast"), "cast", self, dtype=dtype, **kwargs)

    def as_nd_ndarray(self) -> Symbol:
        """Return the symbol itself."""
        return self

    def __dir__(self) -> list[str]:
        absent = {n for n in fluent.NAMES if registry.find(n) is None}
        found = {*super().__dir__(), *(n for n in registry.names(hidden=False) if not n.startswith("_"))}
        return sorted(found - absent)

    # ---- attributes -------------------------------------------------------------------------------------------------
    def attr(self, key: str) -> str | None:
        """Return an attribute of the head, its name for ``'name'``, or None."""
        if self._head is None:
            return None
        if not isinstance(key, str):
            raise OpTypeError(f"the name of an attribute is a string, not {type(key).__name__}")
        found = listed(self._head.text())
        return self._head.name if key == "name" and key not in found else found.get(key)

    def list_attr(self, recursive: bool = False) -> dict[str, str]:
        """Return the attributes and given parameters of the head, of a group those of its first output."""
        if recursive:
            raise DeprecatedError("Symbol.list_attr with recursive=True has been deprecated; use attr_dict instead")
        return listed(self._entries[0][0].text()) if self._entries else {}

    def attr_dict(self) -> dict[str, dict[str, str]]:
        """Return the attributes of every node that has some, by name."""
        found: dict[str, dict[str, str]] = {}
        for node in Graph(self._entries).nodes:  # an operator and its argument may have one name
            if attrs := listed(node.text()):
                found.setdefault(node.name, {}).update(attrs)
        return found

    def _set_attr(self, **kwargs: str) -> None:
        """Set attributes (or parameters) of the head."""
        node = self._head
        if node is None:
            raise OpValueError(f"attributes cannot be set on the group {self!r}")
        for key, value in kwargs.items():
            if not isinstance(value, str):
                raise OpValueError(f"Set Attr only accepts string values; {key}={value!r}")
        strings = {**node.text(), **marked(kwargs)}
        if node.op is not None:
            node.attrs = node.op.parse({k: v for k, v in strings.items() if not is_attribute(node.op, k)})
        node.strings = strings

    # ---- inference --------------------------------------------------------------------------------------------------
    def infer_shape(self, *args: Any, **kwargs: Any) -> tuple[list | Any, list | Any, list | Any]:
        """Infer all shapes from those given, by position or by argument name.

        Returns
        -------
        arg_shapes, out_shapes, aux_shapes : list of tuple
            Three times None when something remains unknown.

        Raises
        ------
        OpValueError
            For shapes that contradict each other.

        Examples
        --------
        >>> a, b, c = mx.sym.Variable('a', shape=(2, 0)), mx.sym.Variable('b'), mx.sym.Variable('c', shape=(0, 3))
        >>> (a * b + b * c).infer_shape()
        ([(2, 3), (2, 3), (2, 3)], [(2, 3)], [])
        """
        return infer_shape(self, args, kwargs, partial=False)

    def infer_shape_partial(self, *args: Any, **kwargs: Any) -> tuple[list, list, list]:
        """Infer shapes as far as possible; an unknown dimension is 0, an unknown rank ``()``."""
        return infer_shape(self, args, kwargs, partial=True)

    def infer_type(self, *args: Any, **kwargs: Any) -> tuple[list | Any, list | Any, list | Any]:
        """Infer all element types from those given; three times None when something remains unknown."""
        return infer_type(self, args, kwargs, partial=False)

    def infer_type_partial(self, *args: Any, **kwargs: Any) -> tuple[list, list, list]:
        """Infer element types as far as possible; an unknown one is None."""
        return infer_type(self, args, kwargs, partial=True)

    # ---- files ------------------------------------------------------------------------------------------------------
    def tojson(self, remove_amp_cast: bool = True) -> str:
        """Return the symbol as MXNet's JSON."""
        return to_json(self._entries, remove_amp_cast)

    def save(self, fname: str, remove_amp_cast: bool = True) -> None:
        """Write the symbol to a file, as MXNet's JSON."""
        text = self.tojson(remove_amp_cast)
        fname = path_of(fname, "Symbol.save")
        with reporting("Symbol.save", fname), open(fname, "w", encoding="utf-8") as file:
            file.write(text)

    def debug_str(self) -> str:
        """Return the graph as text, one block per node."""
        return as_text(Graph(self._entries))

    # ---- execution --------------------------------------------------------------------------------------------------
    def bind(
        self, ctx: Any, args: Any, args_grad: Any = None, grad_req: Any = "write", aux_states: Any = None,
        group2ctx: Any = None, shared_exec: Any = None, passes: Any = None,
    ) -> Executor:  # fmt: skip
        """Bind arrays and return an :class:`~mxop.graph.executor.Executor`.

        Parameters
        ----------
        ctx : Context
        args : list of NDArray or dict of str to NDArray
            The arguments; in a dict, other names are ignored, and variables that have the same name are one.
        args_grad : list or dict of NDArray, optional
            Where gradients go; arguments that are missing get none.
        grad_req : {'write', 'add', 'null'}, or list or dict of them
            What backward does with a gradient.
        aux_states : list or dict of NDArray, optional
        group2ctx, shared_exec
            Accepted; the graph runs on `ctx` with memory of its own.
        passes : sequence of (str or Pass), or dict of str to bool, optional
            What is done to the graph: these passes alone, or what differs from the usual: ``{'fuse': False}``.
        """
        return bind(self, ctx, args, args_grad, grad_req, aux_states, passes)

    def simple_bind(
        self, ctx: Any, grad_req: Any = "write", type_dict: Any = None, stype_dict: Any = None, group2ctx: Any = None,
        shared_arg_names: Any = None, shared_exec: Any = None, shared_buffer: Any = None, passes: Any = None,
        **kwargs: Any,
    ) -> Executor:  # fmt: skip
        """Infer shapes from those given, allocate all arrays, filled with zeros, and bind them.

        Parameters
        ----------
        ctx : Context
        grad_req : {'write', 'add', 'null'}, or list or dict of them
        type_dict : dict of str to dtype, optional
            Element types of arguments; float32 where nothing else follows.
        group2ctx : dict of str to Context, optional
        stype_dict : dict of str to str, optional
            How arguments are stored: ``'default'``, ``'csr'`` or ``'row_sparse'``; else as ``mx.sym.var(stype=)`` says.
        group2ctx : dict of str to Context, optional
            Where the arrays of variables of a ``ctx_group`` lie, among the devices of one kind; the graph runs on `ctx`.
        shared_arg_names : list of str, optional
            Arguments whose arrays and gradients are those of `shared_exec`, as are all states then.
        shared_exec : Executor, optional
        shared_buffer : dict of str to NDArray, optional
            Arrays whose beginnings the other arguments take, where large enough; larger ones are put there.
        passes : sequence of (str or Pass), or dict of str to bool, optional
            As for :meth:`bind`.
        **kwargs : tuple of int
            Shapes of arguments.
        """
        sharing = Sharing(ctx, group2ctx, shared_arg_names, shared_exec, shared_buffer)
        return simple_bind(self, ctx, grad_req, type_dict, kwargs, passes, sharing, stype_dict)

    def optimize(self, passes: Any = None, type_dict: Any = None, **shapes: Any) -> Symbol:
        """Return the symbol after passes; it computes the same.

        Parameters
        ----------
        passes : sequence of (str or Pass), or dict of str to bool, optional
            Exactly these, in this order; or what differs from the usual.  By default those that rewrite symbols and
            graphs, also the ones that executors leave out.
        type_dict : dict of str to dtype, optional
            Element types of arguments, as far as they are known.
        **shapes : tuple of int
            Shapes of arguments, as far as they are known.  Much can be simplified only where shapes and types are known.

        Examples
        --------
        >>> x = mx.sym.Variable('x')
        >>> y = mx.sym.log(mx.sym.softmax(x), name='y') * 1
        >>> y.optimize(x=(2, 3)).get_internals().list_outputs()
        ['x', 'y_output']
        """
        return Symbol(optimize(self, passes, type_dict, shapes))

    def optimize_for(self, backend: str, args: Any = None, aux: Any = None, ctx: Any = None, **options: Any) -> Symbol:
        """Return the symbol as a backend wants it: changed, or with parts that the backend runs itself.

        Parameters
        ----------
        backend : str
            A registered name; see ``mx.graph.backends()``, ``mx.graph.register_backend`` and ``mx.library.load``.
        args, aux : dict of str to NDArray, or list of NDArray, optional
            Arguments and auxiliary states.  They tell shapes and types; to a dict, the backend may add new ones.
        ctx : Context, optional
        **options
            For the backend.

        Raises
        ------
        OpLookupError
            When there is no such backend.
        """
        return optimize_for(self, backend, args, aux, ctx, options)

    def after(self, *before: Any) -> Symbol:
        """Return a symbol of the same value that is computed after others; see :func:`mxop.graph.after`."""
        return Symbol(after(self, *before)._entries)

    def eval(self, ctx: Any = None, **kwargs: Any) -> list[NDArray]:
        """Compute the outputs from arrays given by argument name, those of states included."""
        states = {name: kwargs.pop(name) for name in self.list_auxiliary_states() if name in kwargs}
        return bind(self, ctx, kwargs, None, "null", states).forward()

    def gradient(self, wrt: Sequence[str]) -> Symbol:
        """Return the gradient of the sum of all outputs with respect to arguments, as a symbol.

        Parameters
        ----------
        wrt : sequence of str
            Names of arguments.

        Examples
        --------
        >>> x = mx.sym.Variable('x')
        >>> second = (x * x * x).gradient(['x']).gradient(['x'])
        >>> second.eval(x=mx.nd.array([1, 2]))[0].asnumpy().tolist()
        [6.0, 12.0]
        """
        return Symbol(gradient(self, wrt))

    grad = gradient


def create(op: Operator, hint: str, inputs: Sequence[Any], params: dict[str, Any], name: str | None = None,
           attr: dict[str, str] | None = None) -> Symbol:  # fmt: skip
    """Return the call of an operator on symbols (None: a new variable)."""
    entries = [None if s is None else single(s._entries, f"operator {op.name}: an input") for s in inputs]
    return Symbol(outputs_of(make_node(op, hint, entries, params, name, attr)))


def among(values: Iterable[Any]) -> bool:
    """Return whether arguments of a call hold a symbol, also in a list."""
    return any(isinstance(v, Symbol) or (isinstance(v, (list, tuple)) and among(v)) for v in values)


def invoke(op: Operator, hint: str, /, *args: Any, name: str | None = None, attr: dict[str, str] | None = None,
           out: Any = None, **kwargs: Any) -> Symbol:  # fmt: skip
    """Call an operator as a function of ``mx.sym`` does."""
    listed = args[0] if len(args) == 1 and isinstance(args[0], (list, tuple)) else args
    by_name = carrier((*listed, *kwargs.values()))
    if by_name is not None:
        return by_name.__mxop_operator__(op.name, args, kwargs)
    if op.arranged is not None:
        op, args, kwargs = op.arranged(args, kwargs)
    inputs, params = split_call(op, args, kwargs, Symbol)
    return create(op, hint.lower(), inputs, params, name, attr)


def var(
    name: str, attr: dict[str, str] | None = None, shape: Any = None, lr_mult: Any = None, wd_mult: Any = None,
    dtype: Any = None, init: Any = None, stype: str | None = None, profiler_scope: str | None = None, **kwargs: Any,
) -> Symbol:  # fmt: skip
    """Return a symbol that stands for an argument.

    Parameters
    ----------
    name : str
    attr : dict of str to str, optional
        Attributes.
    shape : tuple of int, optional
        What is known of the shape; 0 is an unknown dimension.
    lr_mult, wd_mult : float, optional
        Factors of learning rate and weight decay.
    dtype : str or type, optional
    init : Initializer or str, optional
        How the value is initialized.
    stype : str, optional
        Storage type.
    **kwargs
        Further attributes ``__name__``.

    Examples
    --------
    >>> mx.sym.Variable('data', shape=(2, 3)).infer_shape()
    ([(2, 3)], [(2, 3)], [])
    """
    if not isinstance(name, str):
        raise OpTypeError(f"Expect a string for variable `name`, got {name!r}")
    attr = marked(attribute.current().get(attr))
    for key, value in attr.items():
        if not isinstance(value, str):
            raise OpValueError(f"variable {name!r}: attribute {key}={value!r} is not a string")
    if shape is not None:
        try:
            attr["__shape__"] = str(parse_shape(shape))
        except Bad:
            raise OpTypeError(f"variable {name!r}: shape={shape!r}; expected a tuple of integers") from None
    if dtype is not None:
        attr["__dtype__"] = str(dtypes.code_of(dtype))
    if init is not None:
        attr["__init__"] = init if isinstance(init, str) else init.dumps()
    if stype is not None:
        attr["__storage_type__"] = str(_storage_type(name, stype))
    for key, value in (("lr_mult", lr_mult), ("wd_mult", wd_mult), ("profiler_scope", profiler_scope)):
        if value is not None:
            attr[f"__{key}__"] = str(int(value) if isinstance(value, bool) else value)  # numbers are read again
    for key, value in kwargs.items():
        if not (key.startswith("__") and key.endswith("__")):
            raise OpValueError(f"Attribute name={key} is not supported: additional attributes of variable {name!r} must "
                               f"start and end with double underscores, e.g. __yourattr__")  # fmt: skip
        attr[key] = str(value)
    return Symbol([(variable(name, attr, caller()), 0)])


_STORAGE = {"default": 0, "row_sparse": 1, "csr": 2}


def _storage_type(name: str, stype: str) -> int:
    if stype not in _STORAGE:
        raise OpValueError(f"variable {name!r}: stype={stype!r} is not one of {', '.join(_STORAGE)}")
    return _STORAGE[stype]


var = Variable = ends_at_caller(var)


def _only_arrays(name: str, alias: str | None = None) -> Any:
    def method(self: Symbol, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedForSymbol(method, alias, *args)

    method.__name__, method.__doc__ = name, f"Not for symbols: only arrays have ``{alias or name}``."
    return method


for _name in ("asnumpy", "asscalar", "backward", "copy", "detach", "wait_to_read", "as_in_context", "__array__"):
    setattr(Symbol, _name, _only_arrays(_name))
for _name, _alias in (("__iadd__", "+="), ("__isub__", "-="), ("__imul__", "*="), ("__itruediv__", "/=")):
    setattr(Symbol, _name, _only_arrays(_name, _alias))  # an array is changed in place, and so are its other names


for _class in (Arithmetic, Symbol):
    all_end_at_caller(_class)


@ends_at_caller
def Group(symbols: Sequence[Symbol]) -> Symbol:
    """Return a symbol with the outputs of several.

    Examples
    --------
    >>> mx.sym.Group([mx.sym.Variable('a'), mx.sym.Variable('b')]).list_outputs()
    ['a', 'b']
    """
    found = [symbols] if isinstance(symbols, Symbol) else list(symbols) if isinstance(symbols, Iterable) else []
    if not found or not all(isinstance(s, Symbol) for s in found):
        raise OpTypeError(f"Expected a list of symbols as input, got {shown(symbols)}")
    return Symbol([e for s in found for e in s._entries])


@ends_at_caller
def load_json(json_str: str, allow_missing: bool = False) -> Symbol:
    """Return the symbol that a JSON text describes; files of every MXNet 1.x (and older) are read.

    Parameters
    ----------
    json_str : str
    allow_missing : bool
        Load a graph whose operators are not all registered, to look at it: its names, ``attr_dict``, ``tojson``,
        ``mx.viz``.  What would need to know these operators (inference, binding, gradients) raises, naming the first.

    Raises
    ------
    NotYetError, OpLookupError
        For operators that are not registered, unless they are allowed to be missing; all are listed.
    """
    if not isinstance(json_str, (str, bytes)):
        raise OpTypeError(f"json_str is required to be a string, got {type(json_str).__name__}")
    return Symbol(from_json(json_str, allow_missing))


fromjson = load_json


@ends_at_caller
def load(fname: str, allow_missing: bool = False) -> Symbol:
    """Return the symbol in a JSON file; see :func:`load_json`."""
    fname = path_of(fname, "sym.load")
    text = contents(fname, "sym.load")
    try:
        return load_json(text, allow_missing)
    except OpLookupError:  # an operator is missing, the file is whole
        raise
    except MXNetError as problem:
        raise type(problem)(f"sym.load: {fname!r}: {problem}") from None


__all__ = ["Group", "NotImplementedForSymbol", "Symbol", "Variable", "create", "fromjson", "invoke", "load",
           "load_json", "var"]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Find what MXNet has in this module too, such as ``zeros``."""
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(sys.modules[__package__], name)
