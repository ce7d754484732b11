"""Text of calls: formulas for people, programs of the CPU, kernels of the GPU."""

from __future__ import annotations

from math import prod
from typing import Any

from .._kernels.instruction_sets import has_instruction
from ..formula import Expr, compile_program, input_, param, readable
from ..opdef import Elementwise, Formula, Reduction, contiguous_strides
from ..opdef.params import to_string
from ..support import dtypes
from ..support.errors import MXNetError
from .fuse import Fused, fuse
from .infer import Known
from .ir import Entry, Graph, Node, variable
from .rewrite import rebuilt
from .rowwise import runs_on_gpu
from .stages import Stage, Strip

LISTED = 6  # operators of a fused group in its name in a profile
_COMBINED = {"add": "sum", "mul": "product", "hypot": "norm"}


def value_name(entry: Entry) -> str:
    """Return the name of a value in texts: that of its node, with the index of the output if it has several."""
    node, k = entry
    if isinstance(node.op, (Fused, Strip)):
        return value_name(node.op.entries[k])
    return node.name if node.n_outputs == 1 else f"{node.name}[{k}]"


def members_of(node: Node) -> tuple[Node, ...]:
    """Return the nodes of the user's graph that a node computes: itself, or the members of a fused group or row kernel."""
    return tuple(node.op.members) if isinstance(node.op, (Fused, Strip)) else (node,)


def operators_of(node: Node) -> str:
    """Return the name of a node's operator, or those of its members in order."""
    return node.op.name if members_of(node) == (node,) else " ".join(m.op.name for m in members_of(node))


def profiled(nodes: list[Node], n_copies: int) -> list[tuple[str, dict[str, Any] | None]]:
    """Return operator, node and formula of each call of a schedule, for the profiler."""
    found: list[tuple[str, dict[str, Any] | None]] = [
        (_shortened(operators_of(n)), {"node": members_of(n)[-1].name, "formula": "; ".join(formula_of(n))}) for n in nodes
    ]
    return found + [("_copy", None)] * n_copies


def _shortened(operators: str) -> str:
    words = operators.split()
    return operators if len(words) <= LISTED else f"{' '.join(words[:LISTED])} and {len(words) - LISTED} more"


def formula_of(node: Node) -> list[str]:
    """Return the computation of a node as lines ``result = formula``."""
    op, operands = node.op, [value_name(e) for e in node.inputs]
    results = [value_name((node, k)) for k in range(node.n_outputs)]
    if isinstance(op, Elementwise):
        formula = op.formula(node.attrs, len(node.inputs))
        return readable(formula.roots, _names(formula, node, operands), results)
    if isinstance(op, Reduction):
        return _reduction_lines(node, operands[0], results[0])
    if isinstance(op, Strip):
        return [line for stage in op.stages for line in _stage_lines(stage, [*operands, *results])]
    params = [
        f"{p.name}={to_string(p, node.attrs[p.name])}"
        for p in op.spec.params
        if p.name in node.attrs.names and node.attrs[p.name] != p.default
    ]
    return [f"{', '.join(results)} = {op.name}({', '.join([*operands, *params])})"]


def _names(formula: Formula, node: Node, operands: list[str]) -> dict[Expr, str]:
    names = {input_(i): name for i, name in enumerate(operands)}
    for name in formula.params:
        for real in (True, False):
            names[param(name, real=real)] = f"{node.attrs[name]:g}"
    return names


def _stage_lines(stage: Stage, names: list[str]) -> list[str]:
    """Return the lines of a stage of a row kernel; values that only later stages read are ``row0``, ``row1``..."""

    def name(k: int) -> str:
        return names[k] if k >= 0 else f"row{~k}"

    operands = {input_(i): name(k) for i, k in enumerate(stage.inputs)}
    results = [name(k) for k in stage.outputs]
    if stage.combine is None:
        return readable(stage.roots, operands, results)
    *before, last = readable(stage.roots, operands, ["?"])
    inner = last.removeprefix("? = ")
    if stage.combine == "columns":
        return [*before, f"{results[1]} = sum({inner} over all rows)"]
    return [*before, f"{results[0]} = {_COMBINED.get(stage.combine, stage.combine)}({inner} over each row)"]


def _reduction_lines(node: Node, operand: str, result: str) -> list[str]:
    op = node.op
    (map_,), final = op.formulas(node.attrs)[0].roots, op.formulas(node.attrs)[1]
    *before, last = readable([map_], {input_(0): operand}, ["?"])
    inner = last.removeprefix("? = ")
    axis = node.attrs["axis"]
    over = "all axes" if not axis else f"axis {', '.join(map(str, axis))}"
    if node.attrs.get("exclude", False):
        over = f"all axes but {', '.join(map(str, axis or ()))}"
    combine = op.combine_of(node.attrs).name
    combined = f"{_COMBINED.get(combine, combine)}({inner} over {over})"
    if final is None:
        return [*before, f"{result} = {combined}"]
    return before + readable(final.roots, {input_(0): combined, input_(1): "count"}, [result])


# ---- programs and kernels -------------------------------------------------------------------------------------------
def program_of(node: Node, call: Any, known: Known) -> str | None:
    """Return the listing of a call's CPU program; None for an operator that is not computed by a program.

    Parameters
    ----------
    call : Call or None
        The prepared call, whose own program is listed if it has one.
    """
    parts = getattr(call, "calls", [call])  # a call, and the copies of its results
    own = getattr(parts[0], "source", None) if parts else None  # what runs with its epilogue has none left
    if own is not None:
        return str(own)
    op = node.op
    if isinstance(op, Elementwise):
        formula = op.formula(node.attrs, len(node.inputs))
        return _listing(formula, len(node.inputs), _compute_type(formula, node, known))
    if isinstance(op, Reduction):
        map_, final = op.formulas(node.attrs)
        compute = dtypes.FLOAT64 if op.wide else _compute_type(map_, node, known)
        parts = [f"map:\n{_listing(map_, 1, compute) or '   in0'}", f"combine: {op.combine_of(node.attrs).name}"]
        if final is not None:
            parts.append(f"final:\n{_listing(final, 2, compute)}")
        return "\n".join(parts)
    return None


def steps_of(call: Any, kept: Any = ()) -> list[str]:
    """Return what a prepared call runs on the CPU, in order, as :attr:`Row.steps` says it."""
    if hasattr(call, "keeping"):
        return ["Loop", *steps_of(call.body, call.keeping)]
    if hasattr(call, "calls"):
        return [name for part in call.calls for name in steps_of(part, kept)]
    work = getattr(call, "work", call)
    words = [type(work).__name__, getattr(work, "way", None)]
    words += ["packed once" if call in kept else None, "epilogue" if hasattr(call, "formula") else None]
    return [", ".join(filter(None, words))]


def _listing(formula: Formula, n_inputs: int, compute: int) -> str:
    try:
        return str(compile_program(formula.roots, n_inputs, lambda name: has_instruction(name, compute)))
    except KeyError as missing:
        raise MXNetError(f"{missing.args[0]} is not defined for {dtypes.NAMES[compute]} data") from None


def _compute_type(formula: Formula, node: Node, known: Known) -> int:
    """Return the type that a formula is computed in: the widest type of the data."""
    types = [known.dtype(e) for e in node.inputs] or [known.dtype((node, 0))]
    return formula.compute_type(types[0] if isinstance(node.op, Fused) else dtypes.widest(*types))  # fused: one type


def cuda_of(node: Node, known: Known, reqs: list[int]) -> str | None:
    """Return the CUDA source of a call, ready for a compiler; None for an operator that CuPy's routines compute.

    For a row kernel that a GPU would not run, the source is that of the kernels that it runs instead, in order.
    """
    from .._gpu import strips, text

    if isinstance(node.op, Strip) and (not known.on_cpu or _strip_on_gpu(node.op)):
        entries = [*node.inputs, *((node, k) for k in range(node.n_outputs))]
        arrays = [(s, contiguous_strides(s), known.dtype(e)) for s, e in zip(node.op.shapes, entries, strict=True)]
        return strips.Strip(node.op.rows, node.op.locals_, node.op.stages, arrays).text
    parts = [(node, known, reqs)]
    if isinstance(node.op, Strip):
        nodes, inner = _without_strip(node.op, known)
        parts = [(n, inner, [text.REQ_WRITE] * n.n_outputs) for n in nodes]
    made = [(_cuda_text(*part), part) for part in parts]
    found = [(of, _standalone_shapes(*part[:2])) for of, part in made if of is not None]
    if not found:
        return None
    names = [of.kernel_name + (f"_{k}" if len(found) > 1 else "") for k, (of, _) in enumerate(found)]
    kernels = "\n".join(of.standalone(name, *shapes) for name, (of, shapes) in zip(names, found, strict=True))
    return text.prologue(kernels) + kernels


def _strip_on_gpu(op: Strip) -> bool:
    """Return whether a GPU would run a row kernel that was made for the CPU."""
    return runs_on_gpu(op.rows, max((s.shape for s in op.stages), key=prod), op.turn)


def _cuda_text(node: Node, known: Known, reqs: list[int]) -> Any:
    from .._gpu import reductions, text

    op = node.op
    in_types = [known.dtype(e) for e in node.inputs]
    out_types = [known.dtype((node, k)) for k in range(node.n_outputs)]
    if isinstance(op, Elementwise):
        formula = op.formula(node.attrs, len(node.inputs))
        return text.of_formula(formula, in_types, out_types, _compute_type(formula, node, known), reqs, op.name)
    return reductions.of_reduction(op, node.attrs, in_types[0], out_types[0]) if isinstance(op, Reduction) else None


def _standalone_shapes(node: Node, known: Known) -> tuple[list, ...]:
    """Return the shapes that the text of a formula needs."""
    return ([known.shape(e) for e in (*node.inputs, (node, 0))],) if isinstance(node.op, Elementwise) else ()


def _without_strip(op: Strip, known: Known) -> tuple[list[Node], Known]:
    """Return the nodes scheduled instead of a row kernel on a device that does not run it."""
    moved: dict[Entry, Entry] = {}
    inner, members = Known(), set(op.members)
    for node in op.members:
        for e in node.inputs:
            if e[0] not in members and e not in moved:
                moved[e] = variable(value_name(e)), 0
                inner.put(moved[e][0], [known.shape(e)], [known.dtype(e)])
        new = rebuilt(node, moved)
        outputs = [(node, k) for k in range(node.n_outputs)]
        inner.put(new, [known.shape(e) for e in outputs], [known.dtype(e) for e in outputs])
        moved |= {(node, k): (new, k) for _, k in outputs}
    graph = fuse(Graph([moved[e] for e in op.entries]), inner)
    return [node for node in graph.nodes if node.op is not None], inner
