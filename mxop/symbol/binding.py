"""From a symbol and arrays (or shapes) to an executor: everything that can be wrong is found here."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from ..graph.deferred import derivatives
from ..graph.garbage import collected_later
from ..graph.infer import Known
from ..graph.ir import Entry, Graph, Node, describe
from ..opdef import infer
from ..support import dtypes
from ..support.errors import OpTypeError, OpValueError, closest, items
from .compose import compose
from .inference import _checked_shape, _match, solve_shapes, solve_types
from .sharing import Sharing
from .sparse_executor import SparseExecutor, gradient_storage, is_sparse, makes_sparse, storage_of

_REQS = ("null", "write", "add")


def bind(symbol: Any, ctx: Any, args: Any, args_grad: Any, grad_req: Any, aux_states: Any, passes: Any = None) -> Any:
    """See ``Symbol.bind``."""
    _check_context(ctx)
    if isinstance(args, Mapping) and not any(isinstance(given, (list, tuple)) for given in (args_grad, grad_req)):
        symbol = _one_of_each_name(symbol)
    graph = Graph(symbol._entries)
    arguments, states = graph.arguments()
    names, state_names = _names(arguments, "argument"), _names(states, "auxiliary state")
    arrays = _arrays("args", args, names, required=True)
    grads = _arrays("args_grad", args_grad, names, required=False)
    aux = _arrays("aux_states", aux_states, state_names, required=True)
    _check_devices(ctx, {**dict(zip(names, arrays, strict=True)), **dict(zip(state_names, aux, strict=True))})
    return _executor(symbol, ctx, arrays, grads, requests(grad_req, names, 6), aux, passes)


def _one_of_each_name(symbol: Any) -> Any:
    """Return the symbol with one argument for each name, as arrays that are given by name leave no doubt about."""
    first: dict[str, Node] = {}
    again = {n.name for n in Graph(symbol._entries).arguments()[0] if first.setdefault(n.name, n) is not n}
    return type(symbol)(compose(symbol._entries, {name: (first[name], 0) for name in again}, None)) if again else symbol


def _executor(symbol: Any, ctx: Any, arrays: list[Any], grads: list[Any], reqs: list[str], aux: list[Any], passes: Any) -> Any:
    """Return the executor for arrays that may be sparse."""
    from ..graph.executor import Executor

    sparse = any(map(is_sparse, (*arrays, *grads, *aux))) or any(map(makes_sparse, Graph(symbol._entries).nodes))
    return (SparseExecutor if sparse else Executor)(symbol, ctx, arrays, grads, reqs, aux, passes)


@collected_later()
def simple_bind(
    symbol: Any, ctx: Any, grad_req: Any, type_dict: Any, shapes: Mapping[str, Any], passes: Any, sharing: Sharing,
    stype_dict: Mapping[str, str] | None = None,
) -> Any:  # fmt: skip
    """See ``Symbol.simple_bind``."""
    _check_context(ctx)
    graph = Graph(symbol._entries)
    arguments, states = graph.arguments()
    names = _names(arguments, "argument")
    _names(states, "auxiliary state")
    reqs = requests(grad_req, names)
    stored = storage_of(arguments, stype_dict, OpValueError)
    wanted = [r != "null" for r in reqs]
    for found in sharing.groups.values():
        _check_context(found)
    arrays = _arrays_for(graph, arguments, states, wanted, sharing, type_dict, shapes, stored)
    return _executor(symbol, ctx, *arrays[:2], reqs, arrays[2], passes)


def _arrays_for(
    graph: Graph, arguments: list[Node], states: list[Node], wanted: Sequence[bool], sharing: Sharing, type_dict: Any,
    shapes: Mapping[str, Any], stored: Sequence[str],
) -> tuple[list[Any], list[Any], list[Any]]:  # fmt: skip
    """Return arrays for arguments, for the gradients that are wanted, and for states, of the shapes and types found."""
    names = [n.name for n in graph.variables]
    given = _of_variables("simple_bind", shapes, names), _of_variables("type_dict", type_dict or {}, names)
    solved = solve_shapes(graph, _match(graph, (), given[0], _checked_shape))
    types = solve_types(graph, _match(graph, (), given[1], lambda name, value: dtypes.code_of(value)))
    types.default()
    unknown = [(n.name, solved.get((n, 0))) for n in arguments + states if not infer.known(solved.get((n, 0)))]
    if unknown:
        listed = ", ".join(f"{name}: {infer.show(shape)}" for name, shape in unknown)
        raise OpValueError(f"simple_bind: the shapes of these arguments do not follow from {dict(shapes)} (? is an unknown "
                           f"size): {listed}; give them as keyword arguments")  # fmt: skip

    def made(make: Any, nodes: list[Node], wanted: Sequence[bool], stored: Sequence[str]) -> list[Any]:
        return [
            make(n, solved.get((n, 0)), types.get((n, 0)), stype) if want else None
            for n, want, stype in zip(nodes, wanted, stored, strict=True)
        ]

    by_gradient = [gradient_storage(graph, n, stype) for n, stype in zip(arguments, stored, strict=True)]
    every, dense = [True] * len(arguments), ["default"] * len(states)
    return (
        made(sharing.argument, arguments, every, stored), made(sharing.gradient, arguments, wanted, by_gradient),
        made(sharing.state, states, [True] * len(states), dense),
    )  # fmt: skip


def _of_variables(what: str, given: Mapping[str, Any], names: Sequence[str], frames: int = 7) -> dict[str, Any]:
    """Return what is given for variables.

    MXNet leaves other names out, and programs need it: they say the shape of a label also of graphs without a loss.
    """
    for name in given:
        if name not in names:
            warnings.warn(f"{what}: {name!r} is not an argument{closest(name, names)}; it is ignored", UserWarning, frames)
    return {name: value for name, value in given.items() if name in names}


def requests(grad_req: Any, names: list[str], frames: int = 7) -> list[str]:
    """Return the request of each argument, from one for all, a list, or a dict (others: null); `frames` is for warnings."""
    if isinstance(grad_req, str):
        found = [grad_req] * len(names)
    elif isinstance(grad_req, (list, tuple)):
        if len(grad_req) != len(names):
            raise OpValueError(f"grad_req has {len(grad_req)} items; the symbol has {len(names)} arguments: {', '.join(names)}")
        found = list(grad_req)
    elif isinstance(grad_req, Mapping):
        known = _of_variables("grad_req", grad_req, names, frames)
        found = [known.get(name, "null") for name in names]
    else:
        raise OpTypeError(f"grad_req={grad_req!r}; expected a string, a list or a dict")
    for name, req in zip(names, found, strict=True):
        if req not in _REQS:
            raise OpValueError(f"grad_req of {name!r} is {req!r}; it must be in {', '.join(_REQS)}{closest(req, _REQS)}")
    return found


def optimize(symbol: Any, passes: Any, type_dict: Any, shapes: Mapping[str, Any]) -> tuple[Entry, ...]:
    """See ``Symbol.optimize``."""
    from ..graph.passes import run_passes, selected

    graph = Graph(symbol._entries)
    solved = solve_shapes(graph, _match(graph, (), shapes, _checked_shape))
    types = solve_types(graph, _match(graph, (), type_dict or {}, lambda name, value: dtypes.code_of(value)))
    types.run()
    given = {n: (solved.get((n, 0)), types.get((n, 0))) for n in graph.variables}
    chosen = selected(passes, everything=True)
    if passes is None or isinstance(passes, Mapping):
        chosen = [p for p in chosen if p.stage in ("symbol", "graph")]
    return run_passes(graph, Known.solve(graph, given, partial=True), chosen).outputs


def optimize_for(symbol: Any, backend: str, args: Any, aux: Any, ctx: Any, options: dict[str, Any]) -> Any:
    """See ``Symbol.optimize_for``."""
    from ..graph.partition import optimize_for

    _check_context(ctx)
    graph = Graph(symbol._entries)
    arguments, states = graph.arguments()
    args = _named("args", args, [n.name for n in arguments])
    aux = _named("aux", aux, [n.name for n in states])
    found = optimize_for(symbol, backend, args, aux, ctx, options)
    if not isinstance(found, type(symbol)) and not hasattr(found, "_entries"):
        raise OpTypeError(f"backend {backend!r} returned {found!r}; expected a Symbol")
    return found


def _named(what: str, given: Any, names: list[str]) -> Any:
    """Return arrays by name: a dict as it is, a list as a dict."""
    if given is None or isinstance(given, dict):
        arrays = given
    elif isinstance(given, (list, tuple)) and len(given) == len(names):
        arrays = {name: array for name, array in zip(names, given, strict=True) if array is not None}
    else:
        raise OpTypeError(f"optimize_for: {what} is {given!r}; expected a dict, or a list of {len(names)}: {', '.join(names)}")
    for name, array in (arrays or {}).items():
        if not hasattr(array, "dtype_code"):
            raise OpTypeError(f"optimize_for: {what}[{name!r}] is {array!r}; only NDArrays are accepted")
    return arrays


def gradient(symbol: Any, wrt: Sequence[str]) -> list[Entry]:
    """See ``Symbol.gradient``."""
    wrt = [wrt] if isinstance(wrt, str) else items(wrt, "gradient: wrt")
    graph = Graph(symbol._entries)
    by_name = {n.name: n for n in graph.arguments()[0]}
    for name in wrt:
        if not isinstance(name, str) or name not in by_name:
            raise OpValueError(f"gradient: {name!r} is not an argument{closest(name, by_name)}: {', '.join(by_name)}")
    return derivatives("gradient", graph.outputs, None, [(by_name[name], 0) for name in wrt])


def _names(nodes: list[Node], what: str) -> list[str]:
    """Return the names of variables, which must differ."""
    seen: dict[str, Node] = {}
    for node in nodes:
        if node.name in seen:
            raise OpValueError(f"two {what}s are named {node.name!r}, so arrays cannot be told apart: "
                               f"{describe(seen[node.name])} and {describe(node)}")  # fmt: skip
        seen[node.name] = node
    return list(seen)


def _arrays(what: str, given: Any, names: list[str], required: bool) -> list[Any]:
    """Return one array per name, from a list or a dict."""
    from .._core import core

    if given is None:
        given = {}
    if isinstance(given, Mapping):
        if required:
            for name in names:
                if name not in given:
                    raise OpValueError(f"{name!r} has no array: key `{name}` is missing in `{what}`{closest(name, given)}")
        found = [given.get(name) for name in names]
    elif isinstance(given, (list, tuple)):
        if len(given) != len(names):
            raise OpValueError(f"Length of {what} does not match the number of arguments: {len(given)} given, the symbol has "
                               f"{len(names)}: {', '.join(names)}")  # fmt: skip
        found = list(given)
    else:
        raise OpTypeError(f"{what} is {given!r}; expected a list of NDArray or a dict of str to NDArray")
    for name, array in zip(names, found, strict=True):
        if not isinstance(array, core.Dense) and not hasattr(array, "_history") and (required or array is not None):
            raise OpTypeError(f"{what}: {name!r} is {array!r}; only NDArrays are accepted")
    return found


def _check_context(ctx: Any) -> None:
    if ctx is not None and not hasattr(ctx, "device_type"):
        raise OpTypeError(f"Context type error: {ctx!r}; expected a context such as mx.cpu()")


def _check_devices(ctx: Any, arrays: Mapping[str, Any]) -> None:
    """Raise unless all arrays lie on the kind of device that is asked for."""
    wanted = None if ctx is None else ctx.is_gpu
    for name, array in arrays.items():
        if wanted is None:
            wanted = array.context.is_gpu
        if array.context.is_gpu != wanted:
            expected = ctx if ctx is not None else "the device of the other arrays"
            raise OpValueError(f"args: {name!r} is on {array.context}; expected {expected} (use as_in_context)")
