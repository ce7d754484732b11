"""The gradient of a kernel, as another kernel: so it is compiled and differentiated again like any other.

Each statement becomes two: what goes forward, and what goes back, loops from their end, after all has gone forward; what it
passes on is what :func:`mxop.formula.vjp` says of its expression.  A number of a block that follows from what does not change
is computed again.  What else is overwritten although its value is read on the way back is kept in tensors indexed by the
loops around it, and put back on the way, unless nothing has read it before; a loop that only accumulates keeps what was there
before it.  Loops whose iterations turn out to be independent run as they do forward, in threads where those did.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from ...formula import Expr, const, substitute, vjp, walk
from ...formula.expr import CALL, INPUT
from . import ir
from .ir import Allocate, Assign, For, If, Routine, Scopes, Statement, Variable, fixed, names_in, node, variable_of
from .races import CONCURRENT, meeting, never_read_before, told_apart
from .types import Types


class Underivable(Exception):
    """Why a kernel is not differentiated by itself."""


def gradient(types: Types, wanted: Sequence[int], name: str) -> Routine:
    """Return the kernel that computes the gradients of some of a kernel's inputs.

    It takes the inputs, the attributes, an attribute of this name that says which, and a gradient for each output.

    Raises
    ------
    Underivable
        When the kernel allocates tensors inside loops, overwrites what is needed inside loops whose bounds depend on other
        loops, or has a loop whose step is no fixed number.
    """
    return _Gradient(types, wanted).routine(name)


class _Gradient(ir.Builder):
    def __init__(self, types: Types, wanted: Sequence[int]):
        self.types, self.old, self.body = types, types.routine, types.routine.body
        self.wanted = [self.old.inputs[k] for k in wanted]
        self.scopes = Scopes(self.body)
        source = replace(self.old.source, name=f"{self.old.source.name}_grad")
        self.new = Routine(source, variables=dict(self.old.variables))
        self.gradients: dict[Variable, Variable] = {}
        self.out: list[Statement] = []
        self.line = 0
        self.loops: list[tuple[Expr, Expr | None]] = []  # position and number of iterations of the loops around
        self.allocations: list[Statement] = []
        self.hoisted: set[Assign] = set()  # before which nothing is kept, but before a loop around them
        self.first = never_read_before(self.body)
        stores: dict[Variable, list[Assign]] = {}
        for s in ir.assignments(self.body):
            stores.setdefault(s.variable, []).append(s)
        #: inputs, and tensors whose elements have, wherever they are read, the value that they have in the end
        self.lasting = {v for v in self.old.inputs if not v.written} | {v for v, of in stores.items() if self.first >= {*of}}
        #: the only stores of their elements
        self.only = {of[0] for v, of in stores.items() if len(of) == 1 and v.kind in ("local", "output") and self.apart(of[0])}
        self.independent: dict[For, tuple[str, tuple[Expr, ...]]] = {}  # loops, and how they run if they are
        every = ir.assignments(self.body)
        floats = {v for v in self.old.variables.values() if types.of_variable(v) in ir.FLOATS}
        flow = [(names_in(s.value), {s.variable} & floats) for s in every]
        self.active = _reached(floats & set(self.wanted), flow)  # through which a gradient flows
        self.heads = {v: self.variable(f"{v.unique}__h", "input", rank=v.rank) for v in self.old.results}
        self.given = {v for v in self.heads if self.stays(v)}
        self.gradients |= {v: self.heads[v] for v in self.given}
        self.uses = {s: self.read_back(s) for s in ir.statements(self.body)}
        self.needed = self.reads(self.body)
        self.again = self.computed_again(every)
        # what the forward part must compute
        edges = [({s.variable}, ir.read_in(s.value, *s.target.args[1:])) for s in every]
        self.required = _reached(self.needed - self.again, edges)

    # ---- writing ----------------------------------------------------------------------------------------------------
    def assign(self, target: Expr, value: Expr) -> None:
        self.out.append(Assign(target, value, self.line))

    def variable(self, name: str, kind: str, **more: object) -> Variable:
        return self.new.new(name, kind, self.line, **more)

    def each(self, target: Variable, value: Variable) -> None:
        """Copy a tensor."""
        indices = [self.variable("at", "loop") for _ in range(target.rank or 0)]
        place, other = (ir.load(t, [i.leaf for i in indices]) for t in (target, value))
        body: list[Statement] = [Assign(place, other, self.line)]
        self.out += ir.nested(indices, "grid", [ir.upto(n) for n in _shape(target)], body, self.line)

    def place(self, target: Expr) -> Expr:
        """Return the gradient of a variable or an element."""
        gradient = self.gradient_of(variable_of(target))
        return gradient.leaf if target.kind == INPUT else ir.load(gradient, target.args[1:])

    def gradient_of(self, v: Variable) -> Variable:
        if v not in self.gradients:
            like = {"shape": _shape(v), "dtype": v, "rank": v.rank} if v.is_tensor else {}
            self.gradients[v] = self.variable(f"{v.unique}__d", "local" if v.is_tensor else "scalar", **like)
        return self.gradients[v]

    # ---- what is read on the way back -------------------------------------------------------------------------------
    def read_back(self, s: Statement) -> set[Variable]:
        """Return the variables whose values are read on the way back through a statement."""
        if isinstance(s, Allocate):
            return set()
        if not isinstance(s, Assign):
            return ir.read_in(*ir.expressions(s))
        with self.collected() as written:
            self.back_assignment(s)
        found = ir.read_in(*s.target.args[1:], *(e for w in ir.assignments(written) for e in ir.expressions(w)))
        return found & set(self.old.variables.values())

    def reads(self, body: Iterable[Statement]) -> set[Variable]:
        return set().union(*(self.uses[s] for s in ir.statements(body)))

    def computed_again(self, every: Sequence[Assign]) -> set[Variable]:
        """Return the numbers of blocks that are computed again on the way back: from what has one value there."""
        times, found = Counter(s.variable for s in every), set[Variable]()
        inner = set().union(*self.scopes.of.values())
        for s in reversed(every):
            read, named = map(variable_of, ir.loads(s.value)), names_in(s.value)
            if (
                s.target.kind == INPUT and s.variable in inner & self.needed and times[s.variable] == 1
                and self.lasting.issuperset(read)
                and all(times[v] <= 1 for v in named if not v.is_tensor)
            ):  # fmt: skip
                found.add(s.variable)
                self.needed |= named
        return found

    def stays(self, v: Variable) -> bool:
        """Return whether the gradient of an output stays what is given: elements get one value, to which others are added."""
        stores = [s for s in ir.assignments(self.body) if s.variable is v]
        first, *rest = stores or [None]
        read = [a for s in ir.statements(self.body) for a in ir.loads(*ir.other_than_sum(s)) if variable_of(a) is v]
        if read or v.kind == "input" or first is None or not all(map(ir.adds, rest)):
            return False
        if ir.adds(first):
            return True
        return {s.target for s in rest} <= {first.target} and self.apart(first)

    def apart(self, store: Assign) -> bool:
        """Return whether an assignment gives each element a value only once."""
        around = [s for s in ir.statements(self.body) if isinstance(s, For) and store in ir.statements(s.body)]
        return all(told_apart([store.target], s, ir.changing(s.body)) for s in around)

    # ---- the function -------------------------------------------------------------------------------------------------
    def routine(self, wanted: str) -> Routine:
        old = self.old
        arguments = [self.copied(v) if v.is_tensor and v.written else v for v in old.arguments]
        chosen = self.variable(wanted, "attribute")
        back: list[Statement] = []
        for s in self.body:
            forward, backward = self.statement(s)
            self.out += [*self.allocations, *forward]
            back, self.allocations = [*backward, *back], []
        tensors = [v for v in old.variables.values() if v.is_tensor and (v in self.active or v in self.wanted)]
        self.out += [Allocate(self.gradient_of(v), self.line) for v in tensors if v not in self.given]
        results = [self.gradient_of(v) for v in self.wanted]
        for v, head in self.heads.items():
            if v in self.active and v not in self.given:
                self.each(self.gradient_of(v), head)
        self.start(self.scopes.top)
        self.out += back
        scopes = Scopes(self.out)
        for loop, (word, bounds) in self.independent.items():
            met = meeting(loop, scopes)
            if met is not None:
                loop.word, loop.bounds = word if not met or word == "parallel" else "range", bounds
        used = names_in(*(e for s in ir.statements(self.out) for e in ir.expressions(s))) | set(results)
        self.out = [s for s in self.out if not isinstance(s, Allocate) or s.variable in used]
        arguments += [chosen, *self.heads.values()]
        return replace(self.new, arguments=arguments, results=results, body=self.out, single=len(results) == 1)

    def copied(self, v: Variable) -> Variable:
        """Return an argument in the place of one that is assigned, whose name is that of a copy from here on."""
        given = self.variable(f"{v.unique}__v", "input", rank=v.rank)
        v.shape, v.dtype = _shape(given), given
        self.out.append(Allocate(v, self.line))
        self.each(v, given)
        return given

    # ---- forward, and back --------------------------------------------------------------------------------------------
    def statement(self, s: Statement) -> tuple[list[Statement], list[Statement]]:
        """Return what goes forward through a statement, and what goes back."""
        self.line = s.line
        if isinstance(s, Allocate):
            if s not in self.body:
                raise Underivable(f"line {s.line} allocates a tensor inside a loop or a condition")
            return [s], []
        with self.collected() as forward:
            kept = self.keep_before(s)
        with self.collected() as back:
            match s:
                case Assign():
                    forward += [s] if s.variable in self.required else []
                    self.restore(kept)
                    self.back_assignment(s)
                case For():
                    reverse, *around = self.counted(s)
                    self.loops.append(tuple(around))
                    there, again = self.block(s, 0)
                    self.loops.pop()
                    forward += [self.loop(s, s.bounds, there)] if there else []
                    self.out.append(self.loop(s, reverse, again))
                    self.restore(kept)
                case If():
                    there, again = zip(self.block(s, 0), self.block(s, 1))
                    forward += [If(s.test, *there, s.line)] if any(there) else []
                    self.out.append(If(node("ne", kept[s.test], 0) if kept else s.test, *again, s.line))
        return forward, back

    def block(self, owner: For | If, at: int) -> tuple[list[Statement], list[Statement]]:
        """Return what goes forward through a block, keeping the numbers that end with it, and what goes back."""
        body, declared = ir.blocks(owner)[at], self.scopes.of[owner, at]
        there, back = list[Statement](), list[Statement]()
        for s in body:
            forward, backward = self.statement(s)
            there, back = [*there, *forward], [*backward, *back]
        self.line = owner.line
        with self.collected() as end:
            kept = self.keep(v.leaf for v in _sorted((declared & self.needed) - self.again))
        with self.collected() as begin:
            self.restore(kept)
            self.start(declared)
            self.out += [replace(s) for s in body if isinstance(s, Assign) and s.variable in self.again]
        return there + end, begin + back

    def start(self, declared: set[Variable]) -> None:
        """Begin the way back through a block that declares numbers: with their gradients."""
        for variable in _sorted(declared & self.active):
            self.assign(self.gradient_of(variable).leaf, node("real", 0))

    def back_assignment(self, s: Assign) -> None:
        """Take the gradient of what is assigned, and add it to what it was computed from."""
        if s.variable not in self.active:
            return
        head, place, value = self.variable("g", "scalar").leaf, self.place(s.target), s.value
        if ir.adds(s):
            if self.flows(value.args[1]):
                self.assign(head, place)
                self.pull(value.args[1], head if value.label == "add" else -head)
            return
        self.assign(head, place)
        if s.variable not in self.given and s not in self.only:
            self.assign(place, node("real", 0))
        if self.flows(value):
            self.pull(value, head)

    def flows(self, e: Expr) -> bool:
        """Return whether a gradient flows into an expression."""
        return bool(names_in(e) & self.active) and self.types.of(e) in ir.FLOATS

    def pull(self, e: Expr, head: Expr) -> None:
        """Add what a gradient of an expression gives to the numbers and elements in it."""
        read = [n for n in walk([e]) if n.label == "load" or (n.kind == INPUT and not n.label.is_tensor)]  # type: ignore[union-attr]
        read = [n for n in read if variable_of(n) in self.active]
        found = {n: g for n, g in zip(read, vjp([e], [head], read, ir.ROWS), strict=True) if g is not None}
        for n, g in zip(found, self.named(list(found.values())), strict=True):
            place = self.place(n)
            self.assign(place, node("add", place, node(self.types.machine(n), g) if n.kind == INPUT else g))

    def named(self, gradients: list[Expr]) -> list[Expr]:
        """Give names to gradients of which there are several, before one is stored, and to what costs and is used twice."""
        uses = Counter(a for n in walk(gradients) for a in n.args) + Counter(gradients)
        roots, names = set(gradients) if len(gradients) > 1 else set(), dict[Expr, Expr]()
        for n in walk(gradients):
            costs = uses[n] > 1 and any(part.kind == CALL and ir.ROWS[part.label].costly for part in walk([n]))  # type: ignore[index]
            if (costs or n in roots) and n.kind == CALL:
                (value,) = substitute([n], names)
                names[n] = self.variable("g", "scalar").leaf
                self.assign(names[n], value)
        return substitute(gradients, names)

    # ---- loops --------------------------------------------------------------------------------------------------------
    def counted(self, s: For) -> tuple[tuple[Expr, ...], Expr, Expr | None]:
        """Return a loop's bounds from its end, the position of an iteration, and the number of them if it is certain."""
        start, stop, _ = s.bounds
        step, at, times = fixed(s.bounds[2]), s.variable.leaf, stop
        if not step:
            raise Underivable(f"the step of the loop in line {s.line} is not a fixed number")
        if fixed(start) != 0 or step != 1:
            times = node("neg", node("floordiv", node("neg", node("sub", stop, start)), step))
            at = node("floordiv", node("sub", at, start), step)
        last = node("add", start, node("mul", times, step))
        if abs(step) == 1:  # iterations are counted from the least value of the variable
            low, last = start if step == 1 else ir.sum_of(stop, 1), stop
            at, times = (
                ir.sum_of(s.variable.leaf, low, -1),
                ir.sum_of(stop, start, -1) if step == 1 else ir.sum_of(start, stop, -1),
            )
        certain = all(v.is_tensor or v.kind == "attribute" or v in self.scopes.fixed for v in names_in(*s.bounds))
        reverse = ir.sum_of(last, -step), ir.sum_of(start, -step), const(-step)
        return reverse, at, times if certain and not ir.loads(*s.bounds) else None

    def loop(self, s: For, bounds: tuple[Expr, ...], body: list[Statement]) -> For:
        """Return a loop that runs in order, unless its iterations turn out to be independent."""
        loop = For(s.variable, "range", bounds, body, s.line)
        self.independent[loop] = s.word if s.word in CONCURRENT else "range", s.bounds
        return loop

    # ---- keeping values -----------------------------------------------------------------------------------------------
    def keep_before(self, s: Statement) -> dict[Expr, Expr]:
        """Keep what a statement overwrites; of a condition, what would be another on the way back."""
        match s:
            case Assign() if s.variable in self.needed and s not in self.hoisted and s not in self.first:
                return self.keep([s.target] if s.target.kind == CALL or s.variable in self.scopes.known[s] else [])
            case For():
                return self.keep(self.accumulated(s))
            case If() if {a.variable for a in ir.assignments([s])} & names_in(s.test):
                return self.keep([s.test], node("int32", node("ne", s.test, 0)), "int32")
        return {}

    def keep(self, values: Iterable[Expr], stored: Expr | None = None, dtype: str | None = None) -> dict[Expr, Expr]:
        """Store values in elements for the current iteration of all loops; return the elements."""
        kept = {}
        for what in values:
            sizes = [n if n.label == "size" else node("maximum", n, 0) for _, n in self.loops if n is not None]
            if len(sizes) < len(self.loops):
                where = "inside a loop whose bounds are not fixed"
                raise Underivable(f"line {self.line} overwrites what is needed, {where}")
            shape = tuple(sizes) or (const(1),)
            v = variable_of(what)
            kind = dtype or (v if v.is_tensor else self.types.machine(what).rstrip("_"))
            tensor = self.variable("kept", "local", shape=shape, dtype=kind, rank=len(shape))
            self.allocations.append(Allocate(tensor, self.line))
            kept[what] = ir.load(tensor, [at for at, _ in self.loops] or [const(0)])
            self.assign(kept[what], what if stored is None else stored)
        return kept

    def restore(self, kept: dict[Expr, Expr]) -> None:
        for target, held in kept.items():
            self.assign(target, held)

    def accumulated(self, loop: For) -> Iterator[Expr]:
        """Yield what a loop accumulates into and does not read but for that: it is kept before the loop."""
        every, inside, kept = ir.assignments([loop]), ir.changing([loop]), self.needed - self.reads([loop])
        for target in dict.fromkeys(s.target for s in every if s.variable in kept):
            variable = variable_of(target)
            found = {s for s in every if s.variable is variable}
            varies = names_in(*target.args[1:]) & inside if target.args else variable not in self.scopes.known[loop]
            if not varies and not self.hoisted & found and all(s.target is target for s in found):
                self.hoisted |= found
                yield target


def _shape(like: Variable) -> tuple[Expr, ...]:
    return tuple([ir.size(like, k) for k in range(like.rank or 0)])


def _sorted(variables: set[Variable]) -> list[Variable]:
    return sorted(variables, key=lambda v: v.unique)


def _reached(found: set[Variable], edges: Sequence[tuple[set[Variable], set[Variable]]]) -> set[Variable]:
    """Return variables and what follows from them, where each edge leads from any of some to all of others."""
    while True:
        more = {v for sources, targets in edges if sources & found for v in targets} | found
        if len(more) == len(found):
            return more
        found = more
