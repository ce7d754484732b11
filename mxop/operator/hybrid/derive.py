"""The gradient of a kernel, as another kernel: so it is compiled and differentiated again like any other.

It goes through the program forward, and then backward statement by statement, loops from their end; what a statement
passes on is what :func:`mxop.formula.vjp` says of its expression.  What is overwritten although its value is read on the way
back is kept in tensors indexed by the loops around it, and put back on the way; a loop that only accumulates keeps what was
there before it.  Imports :mod:`.ir`, :mod:`.types`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from ...formula import Expr, const, substitute, vjp, walk
from ...formula.expr import CALL, INPUT
from .ir import (
    FLOATS,
    ROWS,
    Allocate,
    Assign,
    For,
    If,
    Routine,
    Scopes,
    Statement,
    Variable,
    assignments,
    fixed,
    load,
    loads,
    names_in,
    nested,
    node,
    size,
    statements,
    upto,
    variable_of,
)  # fmt: skip
from .types import Types, machine


class Underivable(Exception):
    """Why a kernel is not differentiated by itself."""


def gradient(types: Types) -> Routine:
    """Return the kernel that computes the gradients of a kernel's inputs.

    It takes the inputs, the attributes, and a gradient for each output.

    Raises
    ------
    Underivable
        When the kernel allocates tensors inside loops, overwrites what is needed inside loops whose bounds depend on other
        loops, or has a loop whose step is no fixed number.
    """
    return _Gradient(types).routine()


class _Gradient:
    def __init__(self, types: Types):
        self.types, self.old = types, types.routine
        self.body = self.old.body
        self.scopes = Scopes(self.body)
        self.variables = list(self.old.variables)
        self.taken = {v.unique for v in self.variables}
        self.gradients: dict[Variable, Variable] = {}
        self.out: list[Statement] = []
        self.line, self.nested = 0, 0
        self.loops: list[tuple[Expr, Expr | None]] = []  # position and number of iterations of the loops around
        self.kept: dict[tuple, Expr] = {}  # what is kept -> the element that holds it
        self.before_loop: dict[For, list[Expr]] = {}  # loop -> what it keeps as it was before
        self.allocations: list[Statement] = []
        self.hoisted: set[Assign] = set()
        self.active = self.activity()
        self.needed = self.reads(self.body)
        self.required = self.requirements()

    # ---- writing ----------------------------------------------------------------------------------------------------
    def assign(self, target: Expr, value: Expr) -> None:
        self.out.append(Assign(target, value, self.line))

    @contextmanager
    def block(self) -> Iterator[list[Statement]]:
        """Collect the statements of a block."""
        before, self.out = self.out, []
        yield self.out
        self.out = before

    def variable(self, name: str, kind: str, **more: object) -> Variable:
        unique, count = name, 1
        while unique in self.taken:
            unique, count = f"{name}_{count}", count + 1
        self.taken.add(unique)
        found = Variable(name, kind, unique, self.line, **more)  # type: ignore[arg-type]
        self.variables.append(found)
        return found

    def tensor(self, name: str, like: Variable, kind: str = "local") -> Variable:
        shape = tuple(size(like, k) for k in range(like.rank or 0))
        return self.variable(name, kind, shape=shape, dtype=like, rank=like.rank)

    def each(self, target: Variable, value: Variable, added: bool = False) -> None:
        """Copy a tensor, or add it to another."""
        indices = [self.variable("at", "loop") for _ in range(target.rank or 0)]
        place, other = (load(t, [i.leaf for i in indices]) for t in (target, value))
        body: list[Statement] = [Assign(place, node("add", place, other) if added else other, self.line)]
        self.out += nested(indices, "grid", [upto(size(target, k)) for k in range(len(indices))], body, self.line)

    def place(self, target: Expr) -> Expr:
        """Return the gradient of a variable or an element."""
        gradient = self.gradient_of(variable_of(target))
        return gradient.leaf if target.kind == INPUT else load(gradient, target.args[1:])

    def gradient_of(self, variable: Variable) -> Variable:
        if variable not in self.gradients:
            name = f"{variable.unique}__d"
            found = self.tensor(name, variable) if variable.is_tensor else self.variable(name, "scalar")
            self.gradients[variable] = found
        return self.gradients[variable]

    # ---- what depends on what -----------------------------------------------------------------------------------------
    def activity(self) -> set[Variable]:
        """Return the variables through which a gradient flows."""
        active = {v for v in self.old.inputs if self.types.of_variable(v) in FLOATS}
        return self.closed(active, lambda s: (names_in(s.value), [s.variable]))

    def requirements(self) -> set[Variable]:
        """Return what the forward part must compute: what is needed, and what that is computed from."""
        return self.closed(set(self.needed), lambda s: ({s.variable}, names_in(s.value, s.target)), floats=False)

    def closed(self, found: set[Variable], step: Callable, floats: bool = True) -> set[Variable]:
        before = -1
        while len(found) != before:
            before = len(found)
            for s in assignments(self.body):
                sources, others = step(s)
                if found & sources:
                    found |= {v for v in others if not floats or self.types.of_variable(v) in FLOATS}
        return found

    def reads(self, body: Iterable[Statement]) -> set[Variable]:
        """Return the variables whose values are read on the way back through statements."""
        body, old = list(body), set(self.old.variables)
        found: set[Variable] = set()
        for s in statements(body):
            if isinstance(s, (For, If)):
                found |= names_in(*s.expressions)
        for s in assignments(body):
            with self.block() as written:
                self.back_assignment(s)
            found |= names_in(*(e for w in assignments(written) for e in (w.value, w.target)))
            found |= names_in(*s.target.args[1:])
        return found & old

    # ---- the function -------------------------------------------------------------------------------------------------
    def routine(self) -> Routine:
        old, arguments = self.old, []
        for v in old.arguments:
            given = v
            if v.is_tensor and v.written:  # the name is that of a copy from here on
                given = self.variable(f"{v.unique}__v", "input", rank=v.rank)
                v.shape, v.dtype = tuple(size(given, k) for k in range(v.rank or 0)), given
                self.out.append(Allocate(v, self.line))
                self.each(v, given)
            arguments.append(given)
        heads = [self.variable(f"{v.unique}__h", "input", rank=v.rank) for v in old.results]
        inputs = [v for v in old.arguments if v.is_tensor]
        for s in self.body:
            with self.block() as written:
                self.forward([s])
            self.out += [*self.allocations, *written]
            self.allocations = []
        tensors = [v for v in old.variables if v.is_tensor and (v in self.active or v in inputs)]
        self.out += [Allocate(self.gradient_of(v), self.line) for v in tensors]
        for v, head in zip(old.results, heads, strict=True):
            if v in self.active:
                self.each(self.gradient_of(v), head, added=True)
        self.enter(self.scopes.top, None)
        self.backward(self.body)
        source = replace(old.source, name=f"{old.source.name}_grad")
        results = [self.gradient_of(v) for v in inputs]
        return Routine(source, [*arguments, *heads], results, self.variables, self.out, len(results) == 1)

    # ---- forward ------------------------------------------------------------------------------------------------------
    def forward(self, body: Sequence[Statement]) -> None:
        """Write the program as it is, keeping what will be overwritten."""
        for s in body:
            self.line = s.line
            if isinstance(s, Allocate):
                if self.nested:
                    raise Underivable(f"line {s.line} allocates a tensor inside a loop or a condition")
                self.out.append(s)
            elif not any(a.variable in self.required for a in assignments([s])):
                continue
            elif isinstance(s, Assign):
                self.keep_old(s)
                self.out.append(s)
            elif isinstance(s, For):
                self.keep_before(s)
                with self.loop(s):
                    self.forward(s.body)
                    self.leave(self.scopes.of[s, 0], s)
            else:
                self.forward_condition(s)

    def forward_condition(self, s: If) -> None:
        if {a.variable for a in assignments([s])} & names_in(s.test):  # on the way back it would be another condition
            self.keep((s, "test"), s.line, node("int32", node("ne", s.test, 0)), "int32")
        blocks = []
        self.nested += 1
        for orelse, body in enumerate((s.body, s.orelse)):
            with self.block() as written:
                self.forward(body)
                self.leave(self.scopes.of[s, orelse], s)
            blocks.append(written)
        self.nested -= 1
        self.out.append(If(s.test, *blocks, s.line))

    # ---- backward -----------------------------------------------------------------------------------------------------
    def backward(self, body: Sequence[Statement]) -> None:
        for s in reversed(body):
            self.line = s.line
            match s:
                case Assign():
                    if (s, "old") in self.kept:
                        self.assign(s.target, self.kept[s, "old"])
                    self.back_assignment(s)
                case For():
                    with self.loop(s, backward=True):
                        self.enter(self.scopes.of[s, 0], s)
                        self.backward(s.body)
                    for target in self.before_loop.get(s, ()):
                        self.assign(target, self.kept[s, target])
                case If():
                    self.back_condition(s)

    def back_assignment(self, s: Assign) -> None:
        """Take the gradient of what is assigned, and add it to what it was computed from."""
        if s.variable not in self.active:
            return
        head, place, value = self.variable("g", "scalar").leaf, self.place(s.target), s.value
        if value.kind == CALL and value.label in ("add", "sub") and value.args[0] is s.target:
            if self.flows(value.args[1]):
                self.assign(head, place)
                self.pull(value.args[1], head if value.label == "add" else -head)
            return
        self.assign(head, place)
        self.assign(place, node("real", 0))
        if self.flows(value):
            self.pull(value, head)

    def flows(self, e: Expr) -> bool:
        """Tell whether a gradient flows into an expression."""
        return bool(names_in(e) & self.active) and self.types.of(e) in FLOATS

    def pull(self, e: Expr, head: Expr) -> None:
        """Add what a gradient of an expression gives to the numbers and elements in it."""
        read = [n for n in walk([e]) if n.label == "load" or (n.kind == INPUT and not n.label.is_tensor)]  # type: ignore[union-attr]
        read = [n for n in read if variable_of(n) in self.active]
        pulled = [(n, g) for n, g in zip(read, vjp([e], [head], read, ROWS), strict=True) if g is not None]
        found = list(zip([n for n, _ in pulled], self.named([g for _, g in pulled]), strict=True))
        for n, g in found:
            kind = machine(self.types.of(n))
            self.assign(self.place(n), node("add", self.place(n), node(kind, g) if n.kind == INPUT else g))

    def named(self, gradients: list[Expr]) -> list[Expr]:
        """Give names to gradients of which there are several, before one is stored, and to what costs and is used twice."""
        uses = Counter(a for n in walk(gradients) for a in n.args) + Counter(gradients)
        roots, names = set(gradients) if len(gradients) > 1 else set(), dict[Expr, Expr]()
        for n in walk(gradients):
            costs = uses[n] > 1 and any(part.kind == CALL and ROWS[part.label].costly for part in walk([n]))  # type: ignore[index]
            if (costs or n in roots) and n.kind == CALL:
                (value,) = substitute([n], names)
                names[n] = self.variable("g", "scalar").leaf
                self.assign(names[n], value)
        return substitute(gradients, names)

    def back_condition(self, s: If) -> None:
        kept = self.kept.get((s, "test"))
        blocks = []
        for orelse, body in enumerate((s.body, s.orelse)):
            with self.block() as written:
                self.enter(self.scopes.of[s, orelse], s)
                self.backward(body)
            blocks.append(written)
        self.out.append(If(s.test if kept is None else node("ne", kept, 0), *blocks, s.line))

    # ---- loops --------------------------------------------------------------------------------------------------------
    @contextmanager
    def loop(self, s: For, backward: bool = False) -> Iterator[None]:
        """Write a loop, in order or from its end."""
        step = fixed(s.bounds[2])
        if not step:
            raise Underivable(f"the step of the loop in line {s.line} is no fixed number")
        bounds, (start, stop, _) = s.bounds, s.bounds
        at, count = s.variable.leaf, stop
        if fixed(start) != 0 or step != 1:
            count = node("neg", node("floordiv", node("neg", node("sub", stop, start)), step))
            at = node("floordiv", node("sub", at, start), step)
        if backward:
            last = stop if step == 1 else node("add", start, node("mul", count, step))
            bounds = node("sub", last, step), node("sub", start, step), const(-step)
        certain = all(v.is_tensor or v.kind == "attribute" or v in self.scopes.fixed for v in names_in(*s.bounds))
        self.loops.append((at, count if certain and not loads(*s.bounds) else None))
        self.nested += 1
        with self.block() as body:
            yield
        self.nested -= 1
        self.loops.pop()
        self.out.append(For(s.variable, "range", bounds, body, s.line))

    # ---- keeping values -----------------------------------------------------------------------------------------------
    def keep(self, key: tuple, line: int, value: Expr, dtype: Variable | str) -> None:
        """Store a value in an element for the current iteration of all loops."""
        sizes = [node("maximum", count, 0) for _, count in self.loops if count is not None]
        if len(sizes) < len(self.loops):
            raise Underivable(f"line {line} overwrites what is needed, inside a loop whose bounds are not fixed")
        shape = tuple(sizes) or (const(1),)
        tensor = self.variable("kept", "local", shape=shape, dtype=dtype, rank=len(shape))
        self.allocations.append(Allocate(tensor, line))
        self.kept[key] = load(tensor, [at for at, _ in self.loops] or [const(0)])
        self.assign(self.kept[key], value)

    def dtype(self, variable: Variable) -> Variable | str:
        kind = machine(self.types.of_variable(variable) or "")
        return variable if variable.is_tensor else {"bool_": "bool"}.get(kind, kind)

    def keep_old(self, s: Assign) -> None:
        if s not in self.hoisted and s.variable in self.needed and s not in self.scopes.first:
            self.keep((s, "old"), s.line, s.target, self.dtype(s.variable))

    def keep_before(self, loop: For) -> None:
        """Keep, before a loop, what it accumulates into and does not read but for that."""
        stores: dict[Variable, list[Assign]] = {}
        for s in assignments([loop]):
            stores.setdefault(s.variable, []).append(s)
        inside = {s.variable for s in statements([loop]) if not isinstance(s, If)}
        read = self.reads([loop])
        for variable, found in stores.items():
            target = found[0].target
            varies = names_in(*target.args[1:]) & inside if target.args else variable not in self.scopes.known[loop]
            same = len({s.target for s in found}) == 1
            if variable in self.needed - read and same and not varies and not self.hoisted & set(found):
                self.keep((loop, target), loop.line, target, self.dtype(variable))
                self.before_loop.setdefault(loop, []).append(target)
                self.hoisted |= set(found)

    def leave(self, declared: set[Variable], owner: Statement) -> None:
        """Keep, at the end of a block, the numbers that end with it."""
        for variable in sorted(declared & self.needed, key=lambda v: v.unique):
            self.keep((owner, variable), owner.line, variable.leaf, self.dtype(variable))

    def enter(self, declared: set[Variable], owner: Statement | None) -> None:
        """Begin the way back through a block: the numbers that it declares, and their gradients."""
        for variable in sorted(declared, key=lambda v: v.unique):
            if (owner, variable) in self.kept:
                self.assign(variable.leaf, self.kept[owner, variable])
            if variable in self.active:
                self.assign(self.gradient_of(variable).leaf, node("real", 0))
