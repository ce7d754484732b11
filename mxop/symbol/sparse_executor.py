"""The executor of graphs with sparse arguments or gradients: what touches them runs on arrays, all else as it always does.

The *front* of the graph is what has rules for sparse arrays, and what that needs; it runs operator by operator, by the
functions of ``mx.nd``, and autograd records it.  The rest is a graph of dense arrays, some of which the front computes; it is
bound to an executor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .. import autograd
from .._core import core, tape
from ..graph.executor import Executor, assign
from ..graph.ir import Entry, Graph, Node, variable
from ..graph.rewrite import Moved, rebuilt
from ..support.errors import MXNetError, OpTypeError, OpValueError, closest


class SparseExecutor:
    """A symbol with arrays for its arguments, some of which are sparse, or their gradients; see :class:`Executor`.

    Examples
    --------
    >>> y = mx.sym.dot(mx.sym.var("x", stype="csr"), mx.sym.var("w", stype="row_sparse"))
    >>> executor = y.simple_bind(mx.cpu(), x=(2, 3), w=(3, 1), grad_req={"w": "write"})
    >>> executor.arg_dict["x"][:] = mx.nd.array([[0, 1, 0], [0, 2, 0]]).tostype("csr")
    >>> _ = executor.forward(is_train=True)
    >>> executor.backward([mx.nd.ones((2, 1))])
    >>> executor.grad_dict["w"].stype, executor.grad_dict["w"].indices.asnumpy().tolist()
    ('row_sparse', [1])
    """

    def __init__(self, symbol: Any, ctx: Any, args: list[Any], grads: list[Any], reqs: list[str], aux: list[Any],
                 passes: Any = None):  # fmt: skip
        self._symbol, self._ctx, self._passes = symbol, ctx, passes
        self._graph = Graph(symbol._entries)
        self._arguments, self._states = self._graph.arguments()
        self.arg_arrays, self.grad_arrays, self.aux_arrays, self._grad_req = args, grads, aux, reqs
        self._reqs = [r if g is not None else "null" for r, g in zip(reqs, grads, strict=True)]
        names = [n.name for n in self._arguments]
        self.arg_dict, self.grad_dict = (dict(zip(names, arrays, strict=True)) for arrays in (args, grads))
        self.aux_dict = dict(zip([n.name for n in self._states], aux, strict=True))
        Executor._check_gradients(self)  # type: ignore[arg-type]
        self._last_run: str | None = None
        self._find_front()
        self._bind_rest()
        self._outputs = self._collected()

    copy_params_from = Executor.copy_params_from
    output_dict = Executor.output_dict

    @property
    def outputs(self) -> list[Any]:
        """The results of the last run; some may be sparse."""
        return list(self._outputs)

    def __getattr__(self, name: str) -> Any:
        """Return what tells of the part that is bound, such as ``explain``."""
        rest = None if name.startswith("_") else self._rest
        if rest is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}: no part of the graph is dense")
        return getattr(rest, name)

    # ---- the front ----------------------------------------------------------------------------------------------------
    def _variables(self, is_train: bool) -> dict[Entry, Any]:
        """Return arrays of the arguments and states; in training, those with gradients as autograd's variables."""
        found: dict[Entry, Any] = {(n, 0): a for n, a in zip(self._states, self.aux_arrays, strict=True)}
        for node, array, grad, req in zip(self._arguments, self.arg_arrays, self.grad_arrays, self._reqs, strict=True):
            found[node, 0] = array = array.detach()  # over the same memory: the user's array is no variable
            if is_train and req != "null":
                autograd.mark_variables([array], [grad], req)
        return found

    def _find_front(self) -> None:
        """Find the nodes that do something else with sparse arrays than with dense ones, by running them once."""
        from ..ndarray.sparse.operators import RULES

        tables = {n for n, g in zip(self._arguments, self.grad_arrays, strict=True) if is_sparse(g)}
        self._front: list[Node] = []
        values = self._values = self._variables(True)
        values |= {(n, 0): a.copy() for n, a in zip(self._states, self.aux_arrays, strict=True)}  # no step is made here
        with autograd.record():
            for node in self._graph.nodes:
                sparse = any(is_sparse(values.get(e)) for e in node.inputs)
                if (sparse and node.op.name in RULES) or makes_sparse(node) or looks_up(node, tables):
                    for needed in Graph([(node, 0)]).nodes:
                        if (needed, 0) not in values:
                            self._front.append(needed)
                            self._run_node(needed, values)

    @staticmethod
    def _run_node(node: Node, values: dict[Entry, Any]) -> None:
        """Run a node by the function of ``mx.nd``."""
        from ..ndarray.register import F
        from ..ndarray.sparse import cast_storage

        inputs = [values[e] for e in node.inputs]
        if makes_sparse(node):
            found = cast_storage(inputs[0], node.attrs["stype"])
        elif any(map(is_sparse, inputs)):
            defaults = {p.name: p.default for p in node.op.spec.params}
            params = {n: v for n, v in node.attrs.items() if n not in defaults or defaults[n] != v}
            for name in (node.op.num_args_param, "is_train"):
                params.pop(name, None)
            found = next(filter(is_sparse, inputs)).__mxop_operator__(node.op.name, tuple(inputs), params)
        else:
            found = F._invoke(node.op, inputs, node.attrs)
        for k, value in enumerate(found if isinstance(found, (list, tuple)) else [found]):
            values[node, k] = value

    # ---- the rest -----------------------------------------------------------------------------------------------------
    def _bind_rest(self) -> None:
        """Bind what is not in the front, with variables for what it gets from there."""
        front, moved = set(self._front), Moved()
        for node in self._graph.nodes:
            if node in front:
                for k in range(node.n_outputs):
                    moved[node, k] = variable(f"_{node.name}_{k}_of_front"), 0
            elif node.op is not None and (new := rebuilt(node, moved)) is not node:
                moved |= {(node, k): (new, k) for k in range(node.n_outputs)}
        self._in_rest = [node not in front for node, _ in self._graph.outputs]
        kept = [e for e, inside in zip(self._graph.outputs, self._in_rest, strict=True) if inside]
        self._rest: Executor | None = None
        # what the rest gets: entries of the whole graph, the arrays that are bound for them, and those of their gradients
        self._passed: list[tuple[Entry, Any, Any]] = []
        self._widened: list[tuple[Any, Any]] = []  # sparse states, and the dense ones that stand for them there
        if kept:
            back = {new: old for old, new in moved.items() if old[0] in front}
            self._rest = self._executor_of(type(self._symbol)([moved.get(e, e) for e in kept]), back)

    def _executor_of(self, symbol: Any, back: Mapping[Entry, Entry]) -> Executor:
        """Return the executor of the rest; `back` says what its variables are in the whole graph."""
        arguments, states = Graph(symbol._entries).arguments()
        used = {e for node in self._front for e in node.inputs}
        args, grads, reqs = [], [], []
        for node in arguments:
            entry = back.get((node, 0), (node, 0))
            value, grad, req = self._values[entry], self.grad_dict.get(node.name), "write"
            if entry[0] is node and entry not in used and not is_sparse(grad) and not is_sparse(value):
                req = self._reqs[self._arguments.index(node)]
            else:  # autograd brings the gradient on, and stores it where all are added up
                value = value.todense().detach() if is_sparse(value) else value.detach()
                grad = value.zeros_like() if stands(self._values[entry]) else None
                self._passed.append((entry, value, grad))
            args.append(value)
            grads.append(grad)
            reqs.append(req)
        found = [self.aux_dict[node.name] for node in states]
        aux = [a.todense() if is_sparse(a) else a for a in found]
        self._widened = [(a, wide) for a, wide in zip(found, aux, strict=True) if is_sparse(a)]
        return Executor(symbol, self._ctx, args, grads, reqs, aux, self._passes)

    def _collected(self) -> list[Any]:
        """Return the outputs, of the front and of the rest."""
        rest = iter(() if self._rest is None else self._rest.outputs)
        return [next(rest) if inside else self._values[e] for e, inside in zip(self._graph.outputs, self._in_rest, strict=True)]

    # ---- running ------------------------------------------------------------------------------------------------------
    def forward(self, is_train: bool = False, **kwargs: Any) -> list[Any]:
        """Compute the outputs; see :meth:`Executor.forward`."""
        for name in kwargs:
            if name not in self.arg_dict:
                raise OpTypeError(f"Unknown argument {name}{closest(name, self.arg_dict)}")
        assign([(self.arg_dict[name], value, f"Argument {name}") for name, value in kwargs.items()])
        self._values = self._variables(is_train)
        with autograd.record() if is_train else autograd.pause():
            for node in self._front:
                self._run_node(node, self._values)
        for entry, array, _ in self._passed:
            value = self._values[entry]
            if entry[0].op is not None or is_sparse(value):
                core.copy(value.detach().todense() if is_sparse(value) else value.detach(), array)
        if self._rest is not None:
            assign([(wide, state.todense(), "state") for state, wide in self._widened])
            self._rest.forward(is_train)
            for state, wide in self._widened:
                state[:] = wide
        self._last_run = "train" if is_train else "infer"
        self._outputs = self._collected()
        return self.outputs

    def backward(self, out_grads: Any = None, is_train: bool = True) -> None:
        """Compute the gradients and write (or add) them to the gradient arrays; see :meth:`Executor.backward`."""
        if all(req == "null" for req in self._reqs):
            return
        if self._last_run != "train":
            self.forward(is_train=True)
        given = self._head_gradients(out_grads)
        if self._rest is not None:
            inside = [g for g, inside in zip(given, self._in_rest, strict=True) if inside]
            self._rest.backward(inside if any(g is not None for g in inside) else None, is_train)
        heads = [(self._values[e], g) for e, _, g in self._passed if g is not None]
        for e, g, inside in zip(self._graph.outputs, given, self._in_rest, strict=True):
            if not inside and stands(self._values[e]):
                if g is None:
                    raise MXNetError(f"output {e[0].output_name(e[1])!r} is not that of a loss function, so head gradients are "
                                     "required: backward(out_grads)")  # fmt: skip
                heads.append((self._values[e], g))
        if heads:
            autograd.backward([h for h, _ in heads], [g for _, g in heads], retain_graph=True, train_mode=is_train)

    def _head_gradients(self, out_grads: Any) -> list[Any]:
        """Return a head gradient, or None, for each output."""
        n = len(self._graph.outputs)
        if isinstance(out_grads, Mapping):
            out_grads = [out_grads.get(name) for name in self._symbol.list_outputs()]
        elif out_grads is None or isinstance(out_grads, core.Dense) or is_sparse(out_grads):
            out_grads = [] if out_grads is None else [out_grads]
        elif not isinstance(out_grads, (list, tuple)):
            raise OpTypeError(f"out_grads must be an NDArray, or a list or dict of them, got {type(out_grads).__name__}")
        found = [g.todense() if is_sparse(g) else g for g in out_grads]
        return [*found, *[None] * n][:n]

    # ---- other shapes -------------------------------------------------------------------------------------------------
    def reshape(self, partial_shaping: bool = False, allow_up_sizing: bool = False, **kwargs: Any) -> SparseExecutor:
        """Return an executor for other shapes, which shares the arrays whose shapes stay; see :meth:`Executor.reshape`."""
        shapes, _, aux_shapes = self._symbol.infer_shape(**kwargs)
        if shapes is None:
            raise OpValueError(f"reshape: the shapes of all arguments do not follow from {kwargs}")
        for name, shape, array in zip(self.arg_dict, shapes, self.arg_arrays, strict=True):
            if shape != array.shape and name not in kwargs and not partial_shaping:
                raise MXNetError(f"reshape: the shape of {name!r} would change from {array.shape} to {shape}, though it is "
                                 f"not given; pass partial_shaping=True if that is meant")  # fmt: skip
        args = [_resized(a, s) for a, s in zip(self.arg_arrays, shapes, strict=True)]
        grads = [_resized(g, s) for g, s in zip(self.grad_arrays, shapes, strict=True)]
        aux = [_resized(a, s) for a, s in zip(self.aux_arrays, aux_shapes, strict=True)]
        return SparseExecutor(self._symbol, self._ctx, args, grads, self._grad_req, aux, self._passes)


def is_sparse(array: Any) -> bool:
    """Return whether an array, or None, is sparse."""
    return hasattr(array, "_history")


def stands(array: Any) -> bool:
    """Return whether autograd recorded where an array, dense or sparse, came from."""
    at = array._history if is_sparse(array) else array
    return at is not None and tape.tracked(at)


def makes_sparse(node: Node) -> bool:
    """Return whether a node makes sparse arrays of dense ones."""
    return node.op is not None and node.op.name == "cast_storage" and node.attrs["stype"] != "default"


def looks_up(node: Node, tables: set[Node]) -> bool:
    """Return whether a node looks rows up in one of these variables, and gives it a gradient of few rows."""
    return (
        node.op is not None and node.op.name == "Embedding" and bool(node.attrs["sparse_grad"]) and node.inputs[1][0] in tables
    )


def gradient_storage(graph: Graph, node: Node, stype: str) -> str:
    """Return how MXNet stores the gradient of a variable that is stored as `stype`."""
    if stype == "row_sparse":
        return stype
    uses = graph.uses.get((node, 0), ())
    return (
        "row_sparse" if uses and all(looks_up(user, {node}) and user.inputs[0][0] is not node for user in uses) else "default"
    )


def storage_of(nodes: Sequence[Node], given: Mapping[str, str] | None, refuse: Callable[[str], Exception]) -> list[str]:
    """Return how each variable is stored: as ``stype_dict`` says, or ``var(stype=)``."""
    names = ("default", "row_sparse", "csr")
    for name, stype in (given or {}).items():
        if stype not in names:
            raise refuse(f"stype_dict: {name!r} is {stype!r}; expected one of {', '.join(names)}")
        if name not in {n.name for n in nodes}:
            raise refuse(f"stype_dict has {name!r}, which is not an argument{closest(name, [n.name for n in nodes])}")
    own = [names[int((n.strings or {}).get("__storage_type__", 0))] for n in nodes]
    return [(given or {}).get(n.name, stype) for n, stype in zip(nodes, own, strict=True)]


def _resized(array: Any, shape: tuple[int, ...]) -> Any:
    """Return an array, or zeros of another shape that are stored as it is; None for None."""
    if array is None or array.shape == shape:
        return array
    from ..ndarray import zeros

    return zeros(shape, array.context, dtype=array.dtype, stype=array.stype)
