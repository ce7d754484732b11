"""``python -m mxop stubs``: the ``.pyi`` files, written from the registry and from the classes.

Functions of operators are made at import, so tools that only read source text learn of them from these files.
"""

from __future__ import annotations

import ast
import inspect
import keyword
import sys
import textwrap
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import mxop as mx
from mxop._core import core
from mxop.formula import TABLE
from mxop.ndarray import methods, sparse
from mxop.ndarray.register import SPACES, registry_prefix
from mxop.opdef import Operator, plugins, registry
from mxop.opdef.docs import documentation, signature
from mxop.opdef.fluent import Fluent, operator_of
from mxop.opdef.params import AnyValue, Bound, DType, Floats, Param, Scalar, Shape
from mxop.ops.binary import PYTHON_NAMES
from mxop.support.moved import FOLDERS

from .operators import package_named, summary

_NOTE = "# Written by `python -m mxop stubs` from the operators' definitions; change those.\n"
_WIDTH = 120
_TYPES: dict[Any, str] = {
    float: "float", Scalar: "float", Bound: "float", int: "int", bool: "bool", str: "str", tuple: "int | Sequence[int]",
    Shape: "int | Sequence[int]", Floats: "float | Sequence[float]", DType: "DTypeLike | int", AnyValue: "Any",
}  # fmt: skip
_HEADER = """\
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from mxop.context import Context
"""


def files(package: plugins.Package | None = None) -> dict[str, str]:
    """Return the text of every stub by its path in the package, with the operators of another package if there is one."""
    known = {n for n in registry.names() if _is_listed(registry.get(n), package)}
    found = {
        "__init__.pyi": _package(),
        "_core/core.pyi": _array_class(),
        "_core/tape.pyi": _page("", [_SCOPE, _HIDDEN]),
        "formula/functions.pyi": _formula_functions(),
        "symbol/symbol.pyi": _symbol_class(),
        **_further_names(),
    }
    public = [n for n in sorted(known) if registry.namespace_of(n)[0] == ""]
    found["ndarray/__init__.pyi"] = _array_namespace(public)
    found["symbol/__init__.pyi"] = _symbol_namespace(public)
    for api, value in (("ndarray", "NDArray"), ("symbol", "Symbol")):
        for space in registry.PREFIXES.values():
            names = [n for n in known if registry.namespace_of(n)[0] == space]
            module = import_module(f"mxop.{api}.{space}")
            if module is sparse:
                found[f"{api}/{space}/__init__.pyi"] = _sparse(names)
                continue
            own = {n: f for n, f in vars(module).items() if getattr(f, "__module__", "") in _WRITTEN_BY_HAND}
            body = [*_functions(names, value, own), *(_method(n, own[n], "") for n in sorted(own))]
            if space == "random":  # of numbers or arrays, as they are given; only multinomial may return a list
                body = [text if "def multinomial" in text else text.replace("-> Any", f"-> {value}") for text in body]
            found[f"{api}/{space}.pyi"] = _page(f"from . import {value}\n", body)
    return found


def _sparse(names: list[str]) -> str:
    """Return the stub of the namespace that is a package, with classes and functions of its own."""
    own = {n: getattr(sparse, n).__module__.rpartition(".")[2] for n in sparse.__all__}
    imports = ["from .. import NDArray", *(f"from .{module} import {n} as {n}" for n, module in own.items())]
    operators = [n for n in names if registry.namespace_of(n)[1] not in own]
    return _page("\n".join(imports) + "\n", _functions(operators, "NDArray", {}))


#: Whose functions stand in namespaces of operators.
_WRITTEN_BY_HAND = [f"mxop.{m}" for m in ("ndarray.sampling", "ndarray.control_flow", "ndarray.updates", "symbol.control_flow")]


def _is_listed(op: Operator, package: plugins.Package | None) -> bool:
    return op.module.startswith("mxop.") or (package is not None and package.has(op.module))


def write(folder: str | None, package: str | None = None) -> list[str]:
    """Write the stubs into a package folder (this package's by default); return what was written."""
    target = Path(folder) if folder else Path(mx.__file__).parent
    texts, written = files(package_named(package)), []
    for name, text in texts.items():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_text(text, encoding="utf-8")
        written.append(str(target / name))
    return written


def _page(imports: str, body: Iterable[str]) -> str:
    return "\n".join([_NOTE, _HEADER, imports, *body]) + "\n"


# ---- functions of operators -----------------------------------------------------------------------------------------
def _define(name: str, parameters: Iterable[str], result: str, indent: str = "", doc: str | None = None) -> str:
    """Return a definition, on several lines when it is long, with the docstring that editors show."""
    parameters = list(parameters)
    line = f"{indent}def {name}({', '.join(parameters)}) -> {result}: ..."
    if len(line) > _WIDTH:
        inner = "".join(f"{indent}    {p},\n" for p in parameters)
        line = f"{indent}def {name}(\n{inner}{indent}) -> {result}: ..."
    if not doc:
        return line
    text = inspect.cleandoc(doc).replace("\\", "\\\\").replace('"""', "'''")
    text = f'"""{text}' + ('\n"""' if "\n" in text else '"""')
    return line.removesuffix(" ...") + "\n" + textwrap.indent(text, f"{indent}    ")


def _default(value: Any) -> str:
    """Return how a stub shows a default."""
    if value is inspect.Parameter.empty:
        return ""
    try:
        ast.literal_eval(repr(value))
    except (SyntaxError, ValueError):  # infinity, a type
        return " = ..."
    return f" = {value!r}"


def _type_of(p: Param) -> str:
    text = f"Literal[{', '.join(repr(c) for c in p.choices)}]" if p.choices else _TYPES[p.kind]
    text = "Context | str" if p.name == "ctx" else text
    return f"{text} | None" if p.optional and text != "Any" else text


#: What else than arrays the calls of some operators take in the place of inputs.
_ARRANGED = {"where": " | float", "einsum": " | str"}


def _parameters(op: Operator, value: str) -> list[str]:
    """Return the parameters of an operator's function; `value` is the class of its inputs."""
    others = _ARRANGED.get(op.name, "")
    found: list[str] = []
    for p in signature(op, symbol=value == "Symbol").parameters.values():
        default = _default(p.default)
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            given = "Any" if op.spec.takes_others else value
            found.append(f"**kwargs: {given}" if p.kind is p.VAR_KEYWORD else f"*{p.name}: {value} | Sequence[{value}]{others}")
            continue
        if p.kind is p.KEYWORD_ONLY and not any(f.startswith("*") for f in found):
            found.append("*")
        if p.name in op.arguments:
            annotation = f"{value}{others} | None" if default else f"{value}{others}"
        elif p.name in op.spec.by_name:
            annotation = _type_of(op.spec.by_name[p.name])
            default = default or (" = ..." if others else "")
        else:
            annotation = {"out": "NDArray | Sequence[NDArray] | None", "name": "str | None",
                          "attr": "Mapping[str, str] | None"}[p.name]  # fmt: skip
        found.append(f"{p.name}: {annotation}{default}")
    return found


def _result(op: Operator, value: str) -> str:
    """Return what an operator's function returns; Any where the parameters decide on the number of outputs."""
    n = op._visible_outputs if op._visible_outputs is not None else op._num_outputs
    if value == "Symbol" or n == 1:
        return value
    return "Any" if callable(n) else f"list[{value}]"


def _definitions(name: str, op: Operator, value: str, own: Iterable[str] = (), indent: str = "") -> list[str]:
    """Return the definition of an operator's function, or method; two where a parameter is the number of outputs.

    Parameters
    ----------
    own : iterable of str
        What stands before its parameters, which do not have the first input then.
    """
    parameters = [p for p in _parameters(op, value) if not own or p.partition(":")[0].lstrip("*") != op.arguments[0]]
    if own and op.variadic and "*" not in parameters and parameters:
        parameters.insert(0, "*")
    result = _result(op, value)
    doc = summary(op) if own else documentation(op, value)  # of a method, what its function says first
    if result != "Any" or "num_outputs" not in op.spec.by_name:
        return [_define(name, [*own, *parameters], result, indent, doc)]
    forms = []
    for count, kind, ignored in (
        ("Literal[1]", value, "  # type: ignore[overload-overlap]"),
        ("int", f"list[{value}]", ""),
    ):
        given = [f"num_outputs: {count}" if p.startswith("num_outputs:") else p for p in parameters]
        first, _, rest = _define(name, [*own, *given], kind, indent, doc).partition("\n")
        forms.append("\n".join([f"{indent}@overload", first + ignored, *([rest] if rest else [])]))
    return forms


def _functions(names: Iterable[str], value: str, but: Iterable[str] = ()) -> list[str]:
    """Return the definitions of registered names, as the functions of a namespace."""
    found = []
    but = set(but)
    for name in sorted(names, key=lambda n: registry.namespace_of(n)[1]):
        short = registry.namespace_of(name)[1]
        if short.isidentifier() and not keyword.iskeyword(short) and short not in but:
            op = registry.get(name)
            found += _definitions(short, op, value)
    return found


def _formula_functions() -> str:
    """Return the stub of ``F``."""
    names = ("a", "b", "c")
    body = [_define(n, [*(f"{a}: Operand" for a in names[: p.arity]), "/"], "Expr") for n, p in TABLE.items()]
    return _page("from .expr import Expr, Operand\n", body)


def _two_operands(value: str) -> list[str]:
    one = f"{value} | float" + (" | np.ndarray" if value == "NDArray" else "")
    parameters = [f"lhs: {one}", f"rhs: {one}"] + (["name: str | None = None"] if value == "Symbol" else [])
    module = mx.sym if value == "Symbol" else mx.nd
    return [_define(name, parameters, value, "", getattr(module, name).__doc__) for name in sorted(PYTHON_NAMES)]


# ---- namespaces -----------------------------------------------------------------------------------------------------
def _written_by_hand(module: ModuleType) -> list[tuple[str, str]]:
    """Return name and module of the public functions and classes that a package takes from its own files."""
    found = []
    for name, value in sorted(vars(module).items()):
        source = "" if isinstance(value, ModuleType) else getattr(value, "__module__", None) or ""
        if not name.startswith("_") and source.startswith(f"{module.__name__}.") and name not in PYTHON_NAMES:
            found.append((name, source[len(module.__name__) :]))
    return found


def _array_namespace(public: list[str]) -> str:
    own = _written_by_hand(mx.nd)
    imports = ["from mxop._core.core import NDArray as NDArray\n"]
    imports += [f"from . import {space} as {space}" for space in sorted(registry.PREFIXES.values())]
    imports += [f"from {source} import {name} as {name}" for name, source in own]
    body = ["", *_two_operands("NDArray"), _define("waitall", [], "None", "", mx.nd.waitall.__doc__)]
    taken = {name for name, _ in own} | set(PYTHON_NAMES) | {"waitall"}
    body += _functions(public, "NDArray", taken)
    body += ["", *[f"{space}: Any" for space in SPACES if not registry_prefix(space)]]
    return _page("\n".join(imports), body)


def _symbol_namespace(public: list[str]) -> str:
    own = _written_by_hand(mx.sym)
    imports = [f"from . import {space} as {space}" for space in sorted(registry.PREFIXES.values())]
    imports += [f"from {source} import {name} as {name}" for name, source in own]
    taken = {name for name, _ in own} | set(PYTHON_NAMES)
    body = ["", *_two_operands("Symbol"), *_functions(public, "Symbol", taken)]
    body += ["", *[f"{space}: Any" for space in SPACES if not registry_prefix(space)]]
    return _page("\n".join(imports), body)


def _package() -> str:
    """Return the stub of ``mxop`` itself, with the modules that are imported on first use."""
    modules = {name: full.rpartition(".")[2] for name, full in mx._LATER.items() if name != "executor"}
    modules |= {name: name for name in mx.__all__ if isinstance(getattr(mx, name), ModuleType)} | {"nd": "ndarray"}
    names = {n: getattr(mx, n).__module__ for n in mx.__all__ if n not in modules} | mx._NAMES
    lines = [f"from . import {module} as {name}" for name, module in sorted(modules.items())]
    lines += [f"from {module[len('mxop') :]} import {name} as {name}" for name, module in names.items()]
    return "\n".join([_NOTE, *lines, "", "__version__: str"]) + "\n"


def _further_names() -> dict[str, str]:
    """Return the stubs of public modules that have a name beside that of where they lie: they have the same contents."""
    found = {}
    for name in sorted(FOLDERS.keys() & {*mx._LATER, *mx.__all__, "as_mxnet", "dtypes"}):
        home = Path(mx.__file__).parent / FOLDERS[name]
        for path in [home / f"{name}.py", *sorted((home / name).rglob("*.py"))]:
            if path.exists():
                stub = path.relative_to(home).with_suffix(".pyi")
                module = ".".join(["mxop", home.name, *stub.with_suffix("").parts]).removesuffix(".__init__")
                found[stub.as_posix()] = f"{_NOTE}from {module} import *\n{_computed(import_module(module))}"
    return found


def _computed(module: Any) -> str:
    """Return imports of the public names of a package, from where they are: checkers do not see names that it computes."""
    names = module.__all__ if hasattr(module, "__path__") else ()
    homes = {name: getattr(getattr(module, name), "__module__", None) or module.__name__ for name in names}
    homes = {name: home if hasattr(sys.modules.get(home), name) else module.__name__ for name, home in homes.items()}
    return "".join(f"from {homes[name]} import {name} as {name}\n" for name in sorted(homes))


# ---- the array class ------------------------------------------------------------------------------------------------
_PROPERTIES = {
    "shape": "tuple[int, ...]", "ndim": "int", "size": "int", "dtype": "Any", "dtype_code": "int", "itemsize": "int",
    "nbytes": "int", "stype": "str", "context": "Context", "ctx": "Context", "device": "Context",
    "grad": "NDArray | Any", "T": "NDArray",
}  # fmt: skip
_COMPILED = """\
    def asnumpy(self) -> np.ndarray: ...
    def item(self) -> Any: ...
    def asscalar(self) -> Any: ...
    def attach_grad(self, grad_req: str = 'write', stype: str | None = None) -> None: ...
    def backward(self, out_grad: NDArray | None = None, retain_graph: bool = False, train_mode: bool = True) -> None: ...
    def detach(self) -> NDArray: ...
    def reshape(self, *shape: Any, **kwargs: Any) -> NDArray: ...
    def transpose(self, *axes: Any, **kwargs: Any) -> NDArray: ...
    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray: ...
    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...
    def __int__(self) -> int: ...
    def __float__(self) -> float: ...
    def __index__(self) -> int: ...
    def __iter__(self) -> Iterator[NDArray]: ...
    def __contains__(self, value: object) -> bool: ...
    def __getitem__(self, key: Any) -> NDArray: ...
    def __setitem__(self, key: Any, value: Any) -> None: ...
    def __hash__(self) -> int: ...
    def __neg__(self) -> NDArray: ...
    def __pos__(self) -> NDArray: ...
    def __abs__(self) -> NDArray: ...
    def __round__(self, ndigits: int | None = None) -> NDArray: ...
    def __divmod__(self, other: NDArray | ArrayLike) -> tuple[NDArray, NDArray]: ...
    def __rdivmod__(self, other: NDArray | ArrayLike) -> tuple[NDArray, NDArray]: ...
    def __invert__(self) -> NDArray: ...
    def __dlpack__(self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: Any = None) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
"""
_SCOPE = """\
class Scope:
    def __init__(self, record: bool | None, train: bool | None) -> None: ...
    def __enter__(self) -> Scope: ...
    def __exit__(self, *exception: object) -> None: ...
"""
_HIDDEN = "\ndef __getattr__(name: str) -> Any: ...  # what only mxop itself uses"
_BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor")
_COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")


def _array_class() -> str:
    """Return the stub of the compiled class: what Cython makes, what is attached, and operators as methods."""
    cls = mx.nd.NDArray
    lines = ["class NDArray:"]
    names = [n for n in sorted(vars(cls)) if not n.startswith("_") and f"def {n}(" not in _COMPILED]
    names += [n for n in ("grad", "context") if n not in names]
    methods_of: list[str] = []
    for name in names:
        value = inspect.getattr_static(cls, name)
        if name in methods.ABSENT and operator_of(name) is None:
            continue
        if isinstance(value, core.OperatorMethod):
            methods_of += _fluent(value.name, "NDArray")
        elif inspect.isfunction(value):
            methods_of.append(_method(name, value))
        elif not callable(value):
            lines += ["    @property", f"    def {name}(self) -> {_PROPERTIES.get(name, 'Any')}: ..."]
    lines += [_documented(line, cls) for line in _COMPILED.splitlines()]
    lines.append("    def __buffer__(self, flags: int, /) -> memoryview: ...")  # which Python has from 3.12 on
    operand = "other: NDArray | ArrayLike"
    for name in _BINARY:
        forms = (f"__{name}__", f"__r{name}__") + ((f"__i{name}__",) if hasattr(cls, f"__i{name}__") else ())
        lines += [_define(form, ["self", operand], "NDArray", "    ") for form in forms]
    for name in _COMPARISONS:
        ignore = "  # type: ignore[override]" if name in ("eq", "ne") else ""
        lines.append(_define(f"__{name}__", ["self", operand], "NDArray", "    ") + ignore)
    body = [*lines, *methods_of, _HIDDEN]
    return _page("", body)


def _documented(line: str, cls: type) -> str:
    """Return a method of :data:`_COMPILED` with its docstring, which begins with what Cython writes for its signature."""
    name = line.partition("(")[0].removeprefix("    def ")
    _, _, doc = (getattr(cls, name).__doc__ or "").partition("\n")
    if name.startswith("_") or not doc.strip():
        return line
    parameters, _, result = line[line.index("(") + 1 :].removesuffix(": ...").partition(") -> ")
    return _define(name, [parameters], result, "    ", doc)


def _fluent(name: str, value: str) -> list[str]:
    """Return the method of an operator whose first input is the array; nothing when it is not registered."""
    op = operator_of(name)
    return [] if op is None else _definitions(name, op, value, ["self"], "    ")


def _symbol_class() -> str:
    """Return the stub of the module of ``Symbol``: the class, with operators as methods, and the functions beside it."""
    module = import_module("mxop.symbol.symbol")
    lines = ["class Symbol(Arithmetic):"]
    for name, value in sorted(vars(mx.Symbol).items()):
        if isinstance(value, Fluent):
            lines += _fluent(value.name, "Symbol")
        elif isinstance(value, property):
            lines += ["    @property", f"    def {name}(self) -> {value.fget.__annotations__['return']}: ..."]
        elif inspect.isfunction(value):
            ignore = "  # type: ignore[override]" if name in ("__eq__", "__ne__") else ""
            lines.append(_method(name, value) + ignore)
    functions = [_method(name, value, "") for name, value in vars(module).items()
                 if inspect.isfunction(value) and value.__module__ == module.__name__ and name == value.__name__
                 and not name.startswith("_")]  # fmt: skip
    others = ["Variable = var", "fromjson = load_json", "class NotImplementedForSymbol(MXNetError, NotImplementedError):",
              "    def __init__(self, what: str) -> None: ..."]  # fmt: skip
    imports = [
        "import builtins", "from collections.abc import Iterable", "from .._core.core import NDArray",
        "from ..support.errors import MXNetError", "from ..graph.arithmetic import Arithmetic, Row",
        "from ..graph.executor import Executor", "from ..graph.ir import Entry, Node", "from ..opdef import Operator", "",
    ]  # fmt: skip
    return _page("\n".join(imports), [*lines, *functions, *others])


def _method(name: str, function: Callable, indent: str = "    ") -> str:
    """Return the stub of a method, or without `indent` of a function, that is written in Python."""
    found = []
    for at, p in enumerate(inspect.signature(function).parameters.values()):
        star = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        default = _default(p.default)
        if p.kind is p.KEYWORD_ONLY and not any(f.startswith("*") for f in found):
            found.append("*")
        is_self = at == 0 and bool(indent)
        annotation = "" if is_self else f": {p.annotation if isinstance(p.annotation, str) else 'Any'}"
        found.append(f"{star}{'self' if is_self else p.name}{annotation}{default}")
    result = inspect.signature(function).return_annotation
    return _define(name, found, result if isinstance(result, str) else "Any", indent, function.__doc__)
