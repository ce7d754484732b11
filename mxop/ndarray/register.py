"""Fill ``mx.nd`` and its sub-namespaces with a function for every registered operator, at import and ever after."""

from __future__ import annotations

import sys
import types
from functools import partial
from importlib import import_module
from typing import Any

from .._core import core, dispatch
from ..opdef import registry
from ..opdef.above import ask
from ..support.errors import OpTypeError, ends_at_caller, shown
from ..support.missing import names_shown
from . import control_flow, sampling, sparse, updates

SPACES = ("contrib", "linalg", "random", "image", "sparse", "_internal", "op")
_LATER = ("ndarray", "utils")  # modules that only few programs import from


function_of = core.op_function


def make_spaces(parent: types.ModuleType) -> dict[str, types.ModuleType]:
    """Make the sub-namespaces, importable as modules."""
    spaces = {}
    for name in SPACES:
        full = f"{parent.__name__}.{name}"
        module = types.ModuleType(full, f"Operators of the namespace {name!r}; filled from the registry.")
        if name == "sparse":  # which has functions and classes of its own
            module = sparse
        module.__getattr__ = _lookup(module, registry_prefix(name))  # type: ignore[method-assign]
        module.__dir__ = partial(_shown, module)  # type: ignore[method-assign]
        module.__path__ = []  # so that the import system asks about ``from mxop.nd.sparse import csr_matrix``
        sys.modules[full] = module
        setattr(parent, name, module)
        spaces[name] = module
    return spaces


def registry_prefix(space: str) -> str:
    """Return the prefix of registered names in a sub-namespace."""
    return next((p for p, s in registry.PREFIXES.items() if s == space), "")


def _lookup(module: types.ModuleType, prefix: str):
    """Return a module-level ``__getattr__`` that finds hidden and late operators."""

    @ends_at_caller
    def __getattr__(name: str) -> Any:
        if name in _LATER and module.__name__ == __package__:
            return import_module(f"{__package__}.{name}")
        if name == "CachedOp" and module.__name__ == __package__:
            return ask("cached_op")
        op = None if name.startswith("__") else registry.find(prefix + name)
        if op is None and not name.startswith("__"):
            registry.load_entry_points()
            op = registry.find(prefix + name)
        if op is None:
            raise registry.not_in_namespace(name, module.__name__, partial(dir, module))
        return core.op_function(op)

    return __getattr__


def _shown(module: types.ModuleType) -> list[str]:
    """Return what ``dir`` shows, with the operators of packages that announce them."""
    registry.load_entry_points()
    return visible(module)


def visible(module: types.ModuleType) -> list[str]:
    """Return the functions, classes and namespaces of a module, not the modules that they come from."""
    found = vars(module)
    hidden = () if module.__name__.endswith("._internal") else ("_",)
    names = (n for n, v in found.items() if not n.startswith(hidden) and (n in SPACES or not isinstance(v, types.ModuleType)))
    return names_shown(found, names)


def _drawing() -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the functions of ``mx.nd.random`` and of ``mx.nd.contrib`` that draw, and that MXNet writes in Python."""

    def operator(name: str) -> Any:
        return core.op_function(registry.get(name))

    draw = sampling.on_arrays(operator, core.NDArray)
    return sampling.functions(operator, draw, get_prob=False), sampling.contrib_functions(draw)


def _of_images(name: str) -> Any:
    """Return a function of ``mx.image`` that MXNet has as an operator, though the size of its result follows from a file."""
    return lambda *args, **kwargs: getattr(sys.modules["mxop"].image, name)(*args, **kwargs)


def _set_value(src: float = 0.0, out: Any = None, name: str | None = None) -> Any:
    """Fill an array with a number, and return it; ``out[:] = src`` does so too."""
    if not isinstance(out, core.NDArray):
        raise OpTypeError(f"operator _set_value: out={shown(out)}; expected an NDArray, which is filled")
    out[:] = src
    return out


def fill(parent: types.ModuleType, keep: set[str]) -> None:
    """Put every operator's function where its name says; names in `keep` are written by hand and stay."""
    spaces = make_spaces(parent)
    drawing, others = _drawing()
    vars(spaces["contrib"]).update(others)
    vars(spaces["random"]).update(drawing)
    vars(spaces["contrib"]).update({name: getattr(control_flow, name) for name in control_flow.__all__})
    vars(spaces["contrib"]).update(updates.CONTRIB)
    vars(spaces["_internal"]).update({f"_cv{name}": _of_images(name) for name in ("imdecode", "imread")})
    vars(spaces["_internal"])["_set_value"] = _set_value
    by_hand = {"random": drawing, "sparse": sparse.__all__}
    parent.__getattr__ = _lookup(parent, "")  # type: ignore[method-assign]
    parent.__dir__ = partial(_shown, parent)  # type: ignore[method-assign]

    def place(name: str, op: Any) -> None:
        space, short = registry.namespace_of(name)
        targets = [vars(spaces[space])] if space else [vars(parent), vars(spaces["op"])]
        for target in targets:
            if op is None:
                target.pop(short, None)
            elif not (target is vars(parent) and short in keep) and short not in by_hand.get(space, ()):
                target[short] = core.op_function(op)

    registry.on_register(place)
    registry.reserve({*keep, *SPACES, "waitall"}, "mx.nd")


class Namespace:
    """``F`` for gradient rules and composites on arrays: every operator, hidden ones too, by its registered name."""

    def __getattr__(self, name: str) -> Any:
        op = registry.find(name)
        if op is None:
            for space in registry.PREFIXES.values():
                if name == space:
                    return sys.modules[f"mxop.ndarray.{space}"]
            if name == "_internal":
                return self
            from ..ops.binary import PYTHON_NAMES

            if name in PYTHON_NAMES:
                return getattr(sys.modules["mxop.ndarray"], name)
            op = registry.hidden(name)
        if op is None:
            raise registry.not_registered(name, f"F has no operator {name!r}")
        function = core.op_function(op)
        setattr(self, name, function)
        return function

    def _invoke(self, op: Any, inputs: list, attrs: Any) -> Any:
        """Call an operator with parsed parameters."""
        return dispatch.invoke(op, inputs, attrs)

    def forget(self, name: str, op: Any) -> None:
        """Drop a cached function when its operator is replaced."""
        self.__dict__.pop(name, None)


F = Namespace()
F.rows_gradient = sparse._rows_gradient  # type: ignore[attr-defined]  # of arrays alone: no operator gives what is sparse
