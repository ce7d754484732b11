"""Reading a kernel: its text is checked, and becomes a :class:`~.ir.Routine`.

Every name is declared once, in scope, and used as what it is; the first thing that is not in the language raises.  A kernel
is read when it is made, and again for each combination of ranks: then ``grid`` becomes loops, and shapes have their lengths.
What depends on the types of a call is checked in :mod:`.types`.  Imports :mod:`.expressions`, :mod:`.ir` and :mod:`.words`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from ...formula import Expr, const
from .expressions import Expressions, constant, items, kind_of_call
from .ir import Allocate, Assign, If, Routine, nested
from .scalars import Variable, node, size, upto
from .source import Source
from .words import TABLE, WORDS

_FORBIDDEN = {
    ast.While: "while is not allowed; use a for loop over range",
    ast.Break: "break is not allowed; every iteration of a loop runs",
    ast.Continue: "continue is not allowed; put the rest of the body under an if",
    ast.FunctionDef: "a function inside a kernel is not allowed",
    ast.Import: "import is not allowed; a kernel knows its words",
    ast.ImportFrom: "import is not allowed; a kernel knows its words",
    ast.Try: "try is not allowed",
    ast.Raise: "raise is not allowed",
    ast.Delete: "del is not allowed",
    ast.Global: "global is not allowed; a kernel sees its arguments and what it assigns",
    ast.Nonlocal: "nonlocal is not allowed; a kernel sees its arguments and what it assigns",
    ast.AnnAssign: "annotations are not allowed; types follow from the inputs",
    ast.Return: "return stands once, at the end of the kernel",
}


def lower(source: Source, attributes: frozenset[str] = frozenset(), ranks: Mapping[str, int] | None = None,
          lists: Mapping[str, Any] | None = None) -> Routine:  # fmt: skip
    """Check a kernel, and return what it does.

    Parameters
    ----------
    source : Source
    attributes : frozenset of str
        Arguments that are known to be attributes; others are so when they are used as numbers.
    ranks : mapping of str to int, optional
        Numbers of dimensions of the inputs.
    lists : mapping of str to sequence, optional
        Attributes that are no numbers.

    Raises
    ------
    HybridError
        With file, line and the line's text.
    """
    reader = _Reader(source, ranks, lists or {})
    reader.arguments_of(source.tree, attributes)
    body = list(source.tree.body)
    last = body.pop() if isinstance(body[-1], ast.Return) else None
    reader.each(body)
    reader.results(last)
    return reader.routine


class _Reader(Expressions):
    # ---- names ------------------------------------------------------------------------------------------------------
    def declare(self, name: str, kind: str, tree: Any, **more: Any) -> Variable:
        self.require(name not in WORDS, tree, f"{name!r} is a word of the language and cannot be assigned")
        ours = name.startswith("_mx_")
        self.require(not ours, tree, f"{name!r}: names that begin with _mx_ are those of compiled texts")
        variable = self.scopes[-1][name] = self.routine.new(name, kind, tree.lineno, **more)
        return variable

    def unused(self, name: str, tree: ast.AST, how: str) -> None:
        """Raise for a name that is declared already."""
        old = self.lookup(name)
        self.require(old is None, tree, f"{old and old.what} {name!r} is {how}")

    @contextmanager
    def block(self, known: Mapping[str, Variable] = {}) -> Iterator[tuple[list, dict[str, Variable]]]:
        """Give a new block, and the scope of its own in which its statements are read."""
        self.scopes.append(dict(known))
        with self.collected() as body:
            yield body, self.scopes[-1]
        self.gone |= self.scopes.pop()

    def each(self, trees: list[ast.stmt]) -> None:
        for tree in trees:
            self.visit(tree)

    # ---- the function -----------------------------------------------------------------------------------------------
    def arguments_of(self, tree: ast.FunctionDef, attributes: frozenset[str]) -> None:
        args = tree.args
        plain = not (args.vararg or args.kwarg or args.posonlyargs)
        self.require(plain, tree, "a kernel takes plain positional arguments, and attributes after a star")
        self.require(not args.defaults, tree,
                     "arguments of a kernel have no defaults; give an attribute its default in reg_info")  # fmt: skip
        numbers = _number_names(tree) | attributes | {a.arg for a in args.kwonlyargs}
        for arg in [*args.args, *args.kwonlyargs]:
            kind, rank = ("attribute", None) if arg.arg in numbers else ("input", (self.ranks or {}).get(arg.arg))
            self.routine.arguments.append(self.declare(arg.arg, kind, arg, rank=rank))

    def results(self, tree: ast.Return | None) -> None:
        if tree is None:
            self.fail(self.source.tree, "a kernel ends with 'return' of its outputs")
        results = self.routine.results
        self.routine.single = not isinstance(tree.value, ast.Tuple)
        for item in [tree.value] if self.routine.single else tree.value.elts:  # type: ignore[union-attr]
            if not isinstance(item, ast.Name):
                self.fail(tree, "return takes names of outputs (made by output_tensor) or of inputs, not expressions")
            variable, name = self.use(item), item.id
            what = "made by allocate" if variable.kind == "local" else "a number"
            self.require(variable.kind in ("output", "input"), tree,
                         f"return: {name!r} is {what}; it takes outputs made by output_tensor, or inputs")  # fmt: skip
            self.require(variable not in results, tree, f"return: {name!r} is returned twice")
            results.append(variable)
        for v in self.routine.variables.values():
            if v.kind == "output" and v not in results:
                problem = "is declared, but not returned; use allocate for an intermediate tensor"
                self.fail(v.line, f"output {v.name!r} {problem}")
            if v.kind == "input" and v.written and v not in results:
                self.fail(v.line, f"input {v.name!r} is assigned, but not returned")

    # ---- statements -------------------------------------------------------------------------------------------------
    def generic_visit(self, tree: ast.AST) -> None:
        if isinstance(tree, ast.stmt):
            self.fail(tree, _FORBIDDEN.get(type(tree), f"{type(tree).__name__.lower()} is not in the language"))
        super().generic_visit(tree)

    def visit_Pass(self, tree: ast.Pass) -> None:
        pass

    def visit_Expr(self, tree: ast.Expr) -> None:
        self.require(isinstance(constant(tree.value), str), tree, "an expression that is not assigned does nothing")

    def visit_Assign(self, tree: ast.Assign) -> None:
        target, value = tree.targets[0], tree.value
        single = len(tree.targets) == 1 and not isinstance(target, (ast.Tuple, ast.List))
        self.require(single, tree, "one statement assigns one variable or element")
        if kind_of_call(value) == "memory":
            self.memory(tree, target, value)
        else:
            found = self.expression(value)
            self.out.append(Assign(self.place(target), found, tree.lineno))

    def visit_AugAssign(self, tree: ast.AugAssign) -> None:
        label, value = self.operator(tree), self.expression(tree.value)
        if isinstance(tree.target, ast.Name):
            self.use(tree.target)
        place = self.place(tree.target)
        self.out.append(Assign(place, node(label, place, value), tree.lineno))

    def place(self, target: ast.expr) -> Expr:
        """Return the element or the number that is assigned; a new name is declared."""
        if isinstance(target, ast.Subscript):
            return self.visit_Subscript(target, store=True)
        name = self.named(target, target, "only variables and elements of tensors can be assigned")
        found = self.lookup(name) or self.declare(name, "scalar", target)
        self.check_overwrite(target, found)
        return found.leaf

    def memory(self, tree: ast.Assign, target: ast.expr, call: Any) -> None:
        word = call.func.id
        name = self.named(target, tree, f"{word} is assigned to a name")
        self.unused(name, tree, f"redefined by {word}")
        given, output = self.arguments(call), word == "output_tensor"
        problem = "output_tensor stands outside of loops and conditions; use allocate for an intermediate tensor"
        self.require(not output or len(self.scopes) == 1, tree, problem)
        (shape, rank), dtype = self.shape(given[0]), self.dtype(given[1])
        like = self.tensor(given[0].value, "shape") if isinstance(given[0], ast.Attribute) else None
        variable = self.declare(name, "output" if output else "local", target,
                                shape=tuple(shape), dtype=dtype, rank=rank, like=like)  # fmt: skip
        self.out.append(Allocate(variable, tree.lineno))

    def shape(self, tree: ast.expr, likely: int = 1) -> tuple[list[Expr], int | None]:
        """Return the sizes of a shape, and its rank as far as it is known; else as many sizes as are likely."""
        if isinstance(tree, ast.Attribute) and tree.attr == "shape":
            variable = self.tensor(tree.value, "shape")
            return [size(variable, k) for k in range(likely if variable.rank is None else variable.rank)], variable.rank
        sizes = [self.expression(item) for item in items(tree)]
        return sizes, len(sizes)

    def dtype(self, tree: ast.expr) -> Any:
        match tree:
            case ast.Attribute(attr="dtype"):
                return self.tensor(tree.value, "dtype")
            case ast.Attribute(value=ast.Name(id=name)) if isinstance(self.source.globals.get(name), ModuleType):
                return tree.attr  # np.float32
            case ast.Constant(value=str(name)):
                return name
            case ast.Name(id=name) if name in TABLE and TABLE[name].kind == "function":
                return name
        self.fail(tree, "a dtype is written as x.dtype, 'float32' or float32")

    # ---- blocks -----------------------------------------------------------------------------------------------------
    def visit_For(self, tree: ast.For) -> None:
        self.require(not tree.orelse, tree, "else after for is not allowed")
        if kind_of_call(tree.iter) != "loop":
            *words, last = [name for name, word in TABLE.items() if word.kind == "loop"]
            self.fail(tree, f"a loop runs over one of {', '.join(words)} or {last}")
        given, word = self.arguments(tree.iter), tree.iter.func.id  # type: ignore[arg-type,attr-defined]
        targets = tree.target.elts if isinstance(tree.target, ast.Tuple) else [tree.target]
        if word == "grid":
            sizes, rank = self.shape(given[0], len(targets))
            ranges = [upto(n) for n in sizes]
        else:
            args, rank = [self.expression(a) for a in given], None
            ranges = [upto(args[0]) if len(args) == 1 else (*args, const(1))[:3]]
        with self.block() as (body, _):
            variables = self.loop_variables(tree, targets, word, len(ranges), rank)
            self.each(tree.body)
        self.out += nested(variables, word, ranges, body, tree.lineno)

    def loop_variables(
        self, tree: ast.For, targets: list[ast.expr], word: str, n: int, rank: int | None
    ) -> list[Variable]:
        """Declare what a loop runs over; return one variable for each dimension."""
        several = isinstance(tree.target, ast.Tuple)
        if several and (word != "grid" or rank not in (None, len(targets))):
            self.fail(tree, "several loop variables need grid with as many sizes" if self.ranks is None or word != "grid"
                      else f"{len(targets)} loop variables for a grid of {rank} dimensions")  # fmt: skip
        found = []
        for target in targets:
            name = self.named(target, tree, "a loop variable is a name")
            self.unused(name, tree, "overwritten by this loop")
            found.append(self.declare(name, "loop", target, rank=rank))
        if several or word != "grid":
            return found[:n]
        (whole,) = found
        whole.kind, whole.loops = "grid", tuple(self.routine.new(whole.name, "loop", tree.lineno) for _ in range(n))
        return list(whole.loops)

    def visit_If(self, tree: ast.If) -> None:
        test = self.expression(tree.test)
        with self.block() as (body, first):
            self.each(tree.body)
        # what both branches assign is declared by the condition: the second branch finds the first one's variables
        shared = {n: v for n, v in first.items() if v.kind == "scalar" and n in _assigned(tree.orelse)}
        with self.block(shared) as (orelse, _):
            self.each(tree.orelse)
        self.scopes[-1] |= shared
        self.out.append(If(test, body, orelse, tree.lineno))

    def visit_With(self, tree: ast.With) -> None:
        words = " or ".join(n for n, word in TABLE.items() if word.kind == "block")
        for item in tree.items:
            call: Any = item.context_expr
            self.require(kind_of_call(call) == "block" and item.optional_vars is None, tree, f"with takes {words}")
            name, *value = self.arguments(call)
            if not value:
                self.tensor(name, "block_realize")
                continue
            self.require(isinstance(constant(name), str), tree, "attr takes a string and a value")
            if not isinstance(value[0], ast.Constant):
                self.expression(value[0])
        self.each(tree.body)


def _number_names(tree: ast.FunctionDef) -> set[str]:
    """Return names that stand alone: they are nowhere indexed, asked for shape or dtype, or returned."""
    found, tensors = set[str](), set[str]()
    for part in ast.walk(tree):
        if isinstance(part, ast.Name):
            found.add(part.id)
        elif isinstance(part, (ast.Subscript, ast.Attribute)) and isinstance(part.value, ast.Name):
            tensors.add(part.value.id)
        elif isinstance(part, ast.Return) and part.value is not None:
            tensors |= {n.id for n in ast.walk(part.value) if isinstance(n, ast.Name)}
    return found - tensors


def _assigned(statements: list[ast.stmt]) -> set[str]:
    """Return names that statements assign on every way through them."""
    found: set[str] = set()
    for tree in statements:
        if isinstance(tree, ast.Assign) and isinstance(tree.targets[0], ast.Name):
            found.add(tree.targets[0].id)
        elif isinstance(tree, ast.If):
            found |= _assigned(tree.body) & _assigned(tree.orelse)
        elif isinstance(tree, ast.With):
            found |= _assigned(tree.body)
    return found
