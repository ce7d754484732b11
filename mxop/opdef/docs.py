"""Signatures and documentation of operators, generated from their definitions on demand."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from ..formula import Expr, input_, readable
from . import registry
from .elementwise import BackwardOperator
from .operator import Operator


def signature(op: Operator, symbol: bool = False) -> inspect.Signature:
    """Return the signature of an operator's function: inputs, then parameters, then ``out`` and ``name``."""
    P = inspect.Parameter
    if op.variadic or op.open_inputs:
        found = [P(op.arguments[0] if op.arguments else "data", P.VAR_POSITIONAL)]
        kind = P.KEYWORD_ONLY
    else:
        optional = op._active_inputs is not None or symbol
        found = [
            P(n, P.POSITIONAL_OR_KEYWORD, default=None if optional else P.empty) for n in op.arguments if n not in op.by_keyword
        ]
        kind = P.POSITIONAL_OR_KEYWORD
    names = set(op.arguments)
    rows = [p for p in op.spec.params if p.name not in names]
    # a required parameter after an optional one can only be given by keyword
    seen_default = any(p.default is not P.empty for p in found)
    for row in rows:
        default = P.empty if row.required else row.shown_default()
        if default is P.empty and seen_default and kind is P.POSITIONAL_OR_KEYWORD:
            kind = P.KEYWORD_ONLY
        seen_default = seen_default or default is not P.empty
        found.append(P(row.name, kind, default=default))
    own = ("name", "attr") if symbol else ("out", "name")
    found += [P(n, P.KEYWORD_ONLY, default=None) for n in (*op.by_keyword, *own)]
    if op.spec.takes_others or (symbol and not op.variadic):
        found.append(P("kwargs", P.VAR_KEYWORD))
    return inspect.Signature(found)


def documentation(op: Operator, value: str = "NDArray") -> str:
    """Return the documentation of an operator's function, with the parameters that its author does not describe.

    Parameters
    ----------
    value : {'NDArray', 'Symbol'}
        The type of the function's inputs.
    """
    lines = _doc(op).splitlines()
    if "Parameters" in lines:
        begin = lines.index("Parameters") + 2
        end = next((i for i in range(begin, len(lines)) if not lines[i].strip()), len(lines))
        return "\n".join([*lines[:begin], *_parameters(op, value, lines[begin:end]), *lines[end:]])
    end = next((i for i, line in enumerate(lines) if line.startswith(">>>") or line == "Examples"), len(lines))
    own = ["Parameters", "----------", *_parameters(op, value, []), "", "Returns", "-------",
           value if _one_output(op) else f"{value}, or list of {value}", ""]  # fmt: skip
    return "\n".join([*lines[:end], *([""] if lines[:end] and lines[end - 1].strip() else []), *own, *lines[end:]]).rstrip()


def _parameters(op: Operator, value: str, described: list[str]) -> list[str]:
    """Return the entries of all inputs and parameters, in order: those described, the others with their types."""
    entries: list[list[str]] = []
    for line in described:
        if line.startswith(" "):
            entries[-1].append(line)
        else:
            entries.append([line])
    given = {name.strip(" *"): entry for entry in entries for name in entry[0].partition(" : ")[0].split(",")}
    own = {a: [f"{'*' if op.variadic else ''}{a} : {value}"] for a in op.arguments}
    for p in op.spec.params:
        usual = _USUAL.get(p.name)
        own[p.name] = [f"{p.name} : {p.describe()}", *([f"    {usual}"] if usual else [])]
    own |= _COMMON[value]
    found: list[list[str]] = []
    for entry in [*(given.get(name, entry) for name, entry in own.items()), *entries]:
        if entry not in found:
            found.append(entry)
    return [line for entry in found for line in entry]


#: Parameters that mean the same wherever MXNet has them.
_USUAL = {
    "num_args": "Number of inputs; a call need not give it.", "forward_stype": "Has no effect: results are dense.",
    "lazy_update": "Of a row_sparse gradient, update the rows that it has alone.",
    **dict.fromkeys(("cudnn_off", "cudnn_tune", "is_int", "workspace"), "Has no effect."),
}  # fmt: skip
_COMMON = {
    "NDArray": {"out": ["out : NDArray, optional", "    Where the result is written."]},
    "Symbol": {"name": ["name : str, optional", "    Name of the resulting symbol."],
               "attr": ["attr : dict of str to str, optional", "    Attributes of its node."]},
}  # fmt: skip


def _one_output(op: Operator) -> bool:
    """Return whether every call returns one array."""
    if isinstance(op, BackwardOperator):
        return False
    count = op._num_outputs if op._visible_outputs is None else op._visible_outputs
    return count == 1


def info(name: str) -> dict[str, Any]:
    """Return all registered properties of an operator, under the names of MXNet's registry.

    Examples
    --------
    >>> from mxop import op
    >>> op.info("quadratic")["FGradient"]["uses"]
    'in'
    """
    op = registry.get(name)
    places = [registry.namespace_of(n) for n in (op.name, *op.aliases)]
    public = [place for place in places if place[0] != "_internal"] or places[:1]
    found: dict[str, Any] = {
        "name": op.name,
        "aliases": list(op.aliases),
        "kind": op.kind,
        "module": op.module,
        "functions": [f"mx.{api}.{space + '.' if space else ''}{short}" for space, short in public for api in ("nd", "sym")],
        "parameters": {p.name: p.describe() for p in op.spec.params},
        "FListInputNames": _input_names(op),
        "FListOutputNames": "output, or output0... of several",
        "FInferShape": _shape_rule(op),
        "FInferType": _type_rule(op),
        "FCompute": _forward(op),
        "FGradient": _gradient(op),
        "FMutateInputs": list(op.aux) or ("follow from the parameters" if op.open_inputs else []),
        "TIsBackward": op.is_backward,
        "arguments": dict.fromkeys(_input_names(op), "NDArray-or-Symbol"),
        "doc": _doc(op),
    }
    return found


def _shape_rule(op: Operator) -> str:
    if op.kind == "elementwise":
        return "inputs broadcast" if op.broadcast else "one shape for all, inferred in both directions"  # type: ignore[attr-defined]
    if op.kind == "reduction":
        return "axes are removed, or kept with size 1"
    return "inferred through the operators inside" if op.kind == "composite" else "own rule"


def _type_rule(op: Operator) -> str:
    if op._types is not None:
        return "own rule"
    inherited = type(op).infer_type is Operator.infer_type and type(op).implied_types is Operator.implied_types
    if inherited or (op.kind == "elementwise" and op.out_dtype is None):  # type: ignore[attr-defined]
        return "all inputs and outputs have one type"
    if op.kind == "reduction":
        return "the input's type" + (", or out_dtype" if "out_dtype" in op.spec.names else "")
    return "inferred through the operators inside" if op.kind == "composite" else "own rule"


def _forward(op: Operator) -> Any:
    if op.kind == "elementwise":
        attrs, n = _example_call(op)
        names = {input_(k): name for k, name in enumerate(op.input_names(attrs, n))}
        return {"formula": readable(formulas_of(op), names, op.output_names(attrs, n)), "devices": ["cpu", "gpu"]}
    if op.kind == "kernel":
        if op.make_view is not None:  # type: ignore[attr-defined]
            return {"view": True, "devices": ["cpu", "gpu"]}
        devices = [d for d, run in (("cpu", op.ways), ("gpu", op.run_gpu)) if run]  # type: ignore[attr-defined]
        return {"devices": devices}
    return {"devices": ["cpu", "gpu"]}


def formulas_of(op: Operator) -> Sequence[Expr]:
    """Return the formulas of an elementwise operator, of an example call."""
    return op.formula(*_example_call(op)).roots  # type: ignore[attr-defined]


def _example_call(op: Operator) -> tuple[Any, int]:
    """Return parameters and a number of inputs for an example call."""
    if isinstance(op, BackwardOperator):
        attrs, n = _example_call(op.forward)
        attrs = op.attrs_for(attrs, (), n)
        return attrs, len(op.input_names(attrs))
    attrs = op.parse({p.name: op.spec.stand_in(p.name) for p in op.spec.params if p.required})
    return attrs, 2 if op.variadic else len(op.input_names(attrs))


def _input_names(op: Operator) -> list[str]:
    if op.open_inputs:
        return ["follow from the parameters"]
    if isinstance(op, BackwardOperator):
        return list(op.input_names(_example_call(op)[0]))
    return list(op.arguments) if not op.variadic else [f"*{op.arguments[0]}"]


def _doc(op: Operator) -> str:
    if isinstance(op, BackwardOperator):
        return f"The gradient of ``{op.forward.name}``, derived from its formula."
    return inspect.cleandoc(op.doc)


def _gradient(op: Operator) -> dict[str, Any]:
    if not op.differentiable:
        return {"defined": False}
    found: dict[str, Any] = {"defined": True}
    if op.kind == "elementwise" and op.has_backward_operator:
        try:
            found["operator"] = registry.BACKWARD + op.name
            reads = op.backward_formula(*_example_call(op))  # type: ignore[attr-defined]
            found["uses"] = ("in" if reads.inputs else "") + ("out" if reads.outputs else "") or "none"
        except Exception as problem:  # a formula that needs particular parameters
            found["uses"] = f"depends on the parameters ({problem})"
    else:
        derived = "derived from its loops" if op.kind == "loops" else "through the operators inside"
        found["rule"] = "own rule" if op._gradient is not None else derived
    return found


def describe(name: str) -> str:
    """Return the reference page of an operator as text."""
    found = info(name)
    lines = [f"{found['name']}  ({found['kind']})", ""]
    if found["aliases"]:
        lines.append("Aliases: " + ", ".join(found["aliases"]))
    lines += ["Functions: " + ", ".join(found["functions"]), "", found["doc"], ""]
    for key in ("FListInputNames", "parameters", "FInferShape", "FInferType", "FCompute", "FGradient",
                "TIsBackward"):  # fmt: skip
        value = found[key]
        if isinstance(value, dict):
            lines.append(f"{key}:")
            shown = {k: "\n             ".join(v) if k == "formula" else v for k, v in value.items()}
            lines += [f"    {k}: {v}" for k, v in shown.items()] or ["    none"]
        else:
            lines.append(f"{key}: {value}")
    return "\n".join(lines)
