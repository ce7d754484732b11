"""Compiles formulas to programs over registers, for the CPU interpreter.

An *instruction* is a loop generated at build time for a small formula.  Its name is that formula with ``x0, x1...`` for array
operands and ``s0, s1...`` for scalars, such as ``mul(s0,x0)`` or ``add(mul(x0,x1),x2)``.  A formula is covered with the largest
instructions that exist.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import NamedTuple

from .draws import DRAWS, keys_of
from .expr import CALL, CONST, INPUT, PARAM, Expr, input_, param, substitute, walk
from .primitives import TABLE

MAX_OPERANDS = 3
MAX_SCALARS = 4
MAX_CALLS = 16  # of primitives in one instruction

#: Operations that are computed once if their operands are parameters or constants, and the most nodes of such a formula.
SCALAR_OPS = ("add", "sub", "mul", "div", "neg", "square")
MAX_PARTS = 15

Tree = str | tuple  # "x" an array, "s" a scalar, or a primitive with its arguments


def idioms() -> list[Tree]:
    """Return the trees that have an instruction: pairs of arithmetic operations, and idioms of training programs."""
    arithmetic, roots = ("add", "sub", "mul", "div"), ("square", "sqrt")
    pairs = [(f, *k) for f in arithmetic for k in (("x", "x"), ("x", "s"), ("s", "x"))]
    powers = [(f, "x") for f in roots]
    return [
        *((f, *k) for f in arithmetic for p in (*pairs, *powers) for k in ((p, "x"), ("x", p), (p, "s"), ("s", p))),
        *((f, p) for f in roots for p in pairs),
        ("add", ("mul", "s", "x"), ("mul", "s", "x")),  # moving averages of a gradient and of its square
        ("add", ("mul", "s", "x"), ("mul", ("mul", "s", "x"), "x")),
        ("add", ("mul", "s", "x"), ("mul", "s", ("mul", "x", "x"))),
        ("add", ("mul", "s", "x"), ("mul", "s", ("square", "x"))),
        ("sub", "x", ("div", ("mul", "s", "x"), ("add", ("sqrt", "x"), "s"))),  # Adam
        ("sub", "x", ("mul", "s", ("div", "x", ("add", ("sqrt", "x"), "s")))),
        ("add", ("mul", ("div", ("sub", "x", "s"), "s"), "x"), "x"),  # normalization, scale and shift
        ("add", ("mul", ("mul", "s", ("sub", "x", "s")), "x"), "x"),
        ("add", ("mul", "s", ("sub", "x", "s")), "s"),
        ("exp", ("sub", "x", "s")),  # softmax
        ("exp", ("sub", "x", "x")),
        ("where", ("isnan", "x"), "s", "x"),  # sums without NaN
    ]


def _skeleton(tree: Tree) -> Tree | None:
    """Return a tree with None for its leaves."""
    return None if isinstance(tree, str) else (tree[0], *map(_skeleton, tree[1:]))


def _size(tree: Tree | None) -> int:
    return 0 if tree is None else 1 + sum(map(_size, tree[1:]))


@cache
def _skeletons() -> dict[str, list[Tree]]:
    """Return the idioms' skeletons by the primitive at their root, the largest first."""
    found: dict[str, list[Tree]] = {}
    for tree in sorted({_skeleton(t) for t in idioms()}, key=lambda t: (-_size(t), str(t))):
        found.setdefault(tree[0], []).append(tree)
    return found


class Number:
    """A formula of parameters only, evaluated once instead of for each element.

    Attributes
    ----------
    postfix : list of str or float
        Names of parameters, numbers, and ``(operation,)`` after its operands.
    """

    def __init__(self, formula: Expr) -> None:
        self.text = str(formula)
        self.postfix = [(n.label,) if n.kind == CALL else n.label for n in _below(formula)]

    def __str__(self) -> str:
        return self.text


def _below(node: Expr) -> list[Expr]:
    """Return the nodes of a formula, operands first."""
    return [*(n for a in node.args for n in _below(a)), node]


@dataclass(frozen=True)
class ValueOf:
    """A scalar that an input holds for many elements, as a bias does for those of a channel."""

    input: int

    def __str__(self) -> str:
        return f"in{self.input}[...]"


class Step(NamedTuple):
    """An instruction: its name, the register that it writes, those that it reads, and its scalars."""

    name: str
    dst: int
    srcs: tuple[int, ...]
    scalars: tuple[str | float | int | Number | ValueOf, ...]  # parameter names, numbers, or formulas

    @property
    def labels(self) -> list[str]:
        """The primitives of the instruction."""
        return re.findall(r"(\w+)\(", self.name)

    @property
    def costly(self) -> bool:
        """Whether it takes longer than reading memory, and may run on part of a block: draws count from a block's start."""
        return any(TABLE[label].costly for label in self.labels) and not any(label in DRAWS for label in self.labels)

    @property
    def twice(self) -> bool:
        """Whether its loop may read an element twice: functions other than roots check for special operands first."""
        return any(TABLE[label].costly and label != "sqrt" for label in self.labels)


@dataclass
class Program:
    """Steps over registers: inputs, then outputs, then temporaries."""

    n_inputs: int
    n_outputs: int
    n_registers: int = 0
    keys: frozenset[int] = frozenset()  # inputs that are keys of random numbers
    values: frozenset[int] = frozenset()  # inputs that are read as scalars
    roots: tuple[Expr, ...] = ()  # the formulas
    steps: list[Step] = field(default_factory=list)

    def __str__(self) -> str:
        def register(r: int) -> str:
            if r < self.n_inputs:
                return f"in{r}"
            r -= self.n_inputs
            return f"out{r}" if r < self.n_outputs else f"r{r - self.n_outputs}"

        lines = []
        for s in self.steps:
            operands = [register(r) for r in s.srcs] + [str(v) for v in s.scalars]
            lines.append(f"{register(s.dst):>5} = {s.name:<32} {', '.join(operands)}")
        return "\n".join(lines)


def instruction_name(node: Expr, inside: Callable[[Expr], bool], merge: bool) -> tuple[str, list[Expr], list[Expr]]:
    """Return the instruction name of the tile rooted at `node`, with its operands.

    Parameters
    ----------
    inside : callable
        Returns whether a node below `node` is part of the tile; others are operands.
    merge : bool
        Whether an operand that is read twice gets one number.

    Returns
    -------
    name : str
    operands, scalars : list of Expr
        The nodes of ``x0, x1...`` and of ``s0, s1...``.
    """
    operands: list[Expr] = []
    scalars: list[Expr] = []
    return _written(node, inside, merge, operands, scalars), operands, scalars


def _written(n: Expr, inside: Callable[[Expr], bool], merge: bool, operands: list[Expr], scalars: list[Expr]) -> str:
    """Return a part of an instruction's name.  It is not a closure, since a recursive one is a reference cycle."""
    if n.kind in (PARAM, CONST):
        scalars.append(n)
        return f"s{len(scalars) - 1}"
    if n.kind == CALL and inside(n):
        return f"{n.label}({','.join([_written(a, inside, merge, operands, scalars) for a in n.args])})"
    if merge:
        for i, known in enumerate(operands):
            if known is n:
                return f"x{i}"
    operands.append(n)
    return f"x{len(operands) - 1}"


def compile_program(
    roots: Sequence[Expr],
    n_inputs: int,
    available: Callable[[str], bool],
    real: bool = False,
    values: frozenset[int] = frozenset(),
) -> Program:
    """Return a program for `roots`: they are covered with instructions, and values get registers.

    Parameters
    ----------
    roots : sequence of Expr
        One formula per output; input leaves are numbered below `n_inputs`.
    available : callable
        Returns whether an instruction exists for the compute type, by its name.
    real : bool
        Whether the compute type is float32 or float64; then formulas of parameters only are evaluated once.
    values : set of int
        Inputs that are the same for many elements: they are scalars, and formulas of such only are evaluated once.

    Raises
    ------
    KeyError
        If a primitive does not exist for the compute type.
    """
    formulas = tuple(roots)
    values &= {n.label for n in walk(roots) if n.kind == INPUT}
    if values:
        roots = substitute(roots, {input_(k): param(ValueOf(k)) for k in values})  # type: ignore[arg-type]
    if real:
        roots = _with_scalars(roots)
    uses = Counter(a.uid for n in walk(roots) for a in n.args)
    uses.update(r.uid for r in roots)
    tiles = _tiles(roots, uses, available)
    return replace(_allocated(roots, tiles, n_inputs), values=values, roots=formulas)


def _with_scalars(roots: Sequence[Expr]) -> Sequence[Expr]:
    """Return formulas in which each formula of parameters only is a parameter, whose label is a :class:`Number`."""
    made: dict[Expr, Expr] = {}
    numbers: set[int] = set()
    for n in walk(roots):
        if n.kind in (PARAM, CONST):
            numbers.add(n.uid)
        elif n.label in SCALAR_OPS and n.args and all(a.uid in numbers for a in n.args) and len(_below(n)) <= MAX_PARTS:
            numbers.add(n.uid)
            made[n] = param(Number(n))  # type: ignore[arg-type]
    return substitute(roots, made) if made else roots


def _tiles(roots, uses: Counter, available) -> list[tuple[Expr, str, list[Expr], list[Expr]]]:
    """Choose instructions from the roots down; return them in order of execution."""
    chosen: dict[int, tuple[Expr, str, list[Expr], list[Expr]]] = {}
    stack = [r for r in roots if r.kind == CALL]
    while stack:
        node = stack.pop()
        if node.uid in chosen:
            continue
        name, operands, scalars = _largest(node, uses, available)
        chosen[node.uid] = (node, name, operands, scalars)
        stack.extend(o for o in operands if o.kind == CALL)
    return [chosen[n.uid] for n in walk(roots) if n.uid in chosen]


def _is_private(node: Expr, uses: Counter) -> bool:
    """Return whether a formula fits in one instruction, and its inner values have no other readers."""
    stack, calls = list(node.args), 1
    while stack:
        below = stack.pop()
        if below.kind == CALL:
            calls += 1
            if calls > MAX_CALLS or uses[below.uid] != 1:
                return False
            stack.extend(below.args)
    return True


def _largest(node: Expr, uses: Counter, available) -> tuple[str, list[Expr], list[Expr]]:
    """Return the largest instruction rooted at `node` whose inner values have no other readers."""
    if _is_private(node, uses):
        found = _instruction(node, lambda n: True, available)
        if found is not None:
            return found
    for skeleton in _skeletons().get(node.label, ()):
        inside = {node.uid}
        if _matches(node, skeleton, uses, inside):
            found = _instruction(node, lambda n, inside=inside: n.uid in inside, available)
            if found is not None:
                return found
    for child in node.args:
        if child.kind == CALL and uses[child.uid] == 1:
            found = _instruction(node, lambda n, child=child: n is child, available)
            if found is not None:
                return found
    found = _instruction(node, lambda n: False, available)
    if found is not None:
        return found
    # the scalars of this node are read from registers
    name = f"{node.label}({','.join(f'x{i}' for i in range(len(node.args)))})"
    if available(name):
        return name, list(node.args), []
    raise KeyError(node.label)


def _matches(node: Expr, skeleton: Tree, uses: Counter, inside: set[int]) -> bool:
    """Return whether a formula has the skeleton's primitives, and its inner values no other readers; add them to `inside`."""
    for arg, below in zip(node.args, skeleton[1:], strict=True):
        if below is not None:
            if arg.kind != CALL or arg.label != below[0] or uses[arg.uid] != 1 or not _matches(arg, below, uses, inside):
                return False
            inside.add(arg.uid)
    return True


def _instruction(node: Expr, inside: Callable[[Expr], bool], available) -> tuple[str, list[Expr], list[Expr]] | None:
    """Return the instruction of a tile, or None if none exists."""
    for merge in (True, False):
        name, operands, scalars = instruction_name(node, lambda n: n is node or inside(n), merge)
        if len(operands) > MAX_OPERANDS or len(scalars) > MAX_SCALARS:
            return None  # without merging there are more operands
        if available(name):
            return name, operands, scalars
    return None


def _allocated(roots, tiles, n_inputs: int) -> Program:
    program = Program(n_inputs, len(roots), keys=keys_of(roots))
    where: dict[int, int] = {}
    last_use: dict[int, int] = {}
    for at, (_, _, operands, _) in enumerate(tiles):
        for o in operands:
            last_use[o.uid] = at
    home: dict[int, int] = {}
    for k, root in enumerate(roots):
        home.setdefault(root.uid, n_inputs + k)
    free: list[int] = []
    program.n_registers = n_inputs + len(roots)

    def new_register() -> int:
        if free:
            return free.pop()
        program.n_registers += 1
        return program.n_registers - 1

    def register(o: Expr) -> int:
        if o.kind == INPUT:
            return o.label
        if o.uid not in where:  # a scalar that an instruction reads as an array
            where[o.uid] = new_register()
            program.steps.append(Step("s0", where[o.uid], (), (o.label,)))
        return where[o.uid]

    for at, (node, name, operands, scalars) in enumerate(tiles):
        srcs = tuple(register(o) for o in operands)
        # An output's register is written once, by its own step, so other outputs can read it as an operand.
        dst = home.get(node.uid)
        if dst is None:
            dst = new_register()
        where[node.uid] = dst
        program.steps.append(Step(name, dst, srcs, tuple(s.label for s in scalars)))
        for o in {o.uid: o for o in operands}.values():
            reg = where.get(o.uid)
            if reg is not None and last_use[o.uid] == at and reg >= n_inputs + len(roots):
                free.append(reg)
    for k, root in enumerate(roots):
        dst = n_inputs + k
        if root.kind in (PARAM, CONST):
            program.steps.append(Step("s0", dst, (), (root.label,)))
        elif root.kind == INPUT:
            program.steps.append(Step("x0", dst, (root.label,), ()))
        elif where[root.uid] != dst:
            program.steps.append(Step("x0", dst, (where[root.uid],), ()))
    return program
