"""Reading a kernel: its text is checked, and becomes a :class:`~.ir.Routine`.

Every name is declared once, in scope, and used as what it is; the first thing that is not in the language raises.  A kernel
is read when it is made, and again for each combination of ranks: then ``grid`` becomes loops, and shapes have their lengths.
What depends on the types of a call is checked in :mod:`.types`.  Imports :mod:`.expressions`, :mod:`.ir` and :mod:`.words`.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Mapping
from typing import Any

from ...formula import Expr, const
from .expressions import Expressions, constant, kind_of_call
from .ir import Allocate, Assign, If, Routine, Statement, Variable, nested
from .scalars import node, size, upto
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
    ast.Expr: "an expression that is not assigned does nothing",
}
_ONLY_PLACES = "only variables and elements of tensors can be assigned"


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
    depth = 0  # of loops and conditions

    # ---- names ------------------------------------------------------------------------------------------------------
    def declare(self, name: str, kind: str, tree: ast.AST, **more: Any) -> Variable:
        self.require(name not in WORDS, tree, f"{name!r} is a word of the language and cannot be assigned")
        self.require(
            not name.startswith("_mx_"), tree, f"{name!r}: names that begin with _mx_ are those of compiled texts"
        )
        variable = self.scopes[-1][name] = self.routine.new(name, kind, tree.lineno, **more)  # type: ignore[attr-defined]
        return variable

    def block(self, trees: list[ast.stmt]) -> tuple[list[Statement], dict[str, Variable]]:
        """Read statements in a scope of their own; return them and what they declared."""
        self.scopes.append({})
        self.depth += 1
        _, found = self.inside(self.each, trees)
        self.depth -= 1
        ended = self.scopes.pop()
        self.gone |= ended
        return found, ended

    def each(self, trees: list[ast.stmt]) -> None:
        for tree in trees:
            self.statement(tree)

    # ---- the function -----------------------------------------------------------------------------------------------
    def arguments_of(self, tree: ast.FunctionDef, attributes: frozenset[str]) -> None:
        args = tree.args
        plain = not (args.vararg or args.kwarg or args.posonlyargs)
        self.require(plain, tree, "a kernel takes plain positional arguments, and attributes after a star")
        self.require(not args.defaults, tree,
                     "arguments of a kernel have no defaults; give an attribute its default in reg_info")  # fmt: skip
        bare = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
        numbers = (bare - _tensor_names(tree)) | attributes | {a.arg for a in args.kwonlyargs}
        for arg in [*args.args, *args.kwonlyargs]:
            kind, rank = ("attribute", None) if arg.arg in numbers else ("input", (self.ranks or {}).get(arg.arg))
            self.routine.arguments.append(self.declare(arg.arg, kind, arg, rank=rank))

    def results(self, tree: ast.Return | None) -> None:
        if tree is None:
            self.fail(self.source.tree, "a kernel ends with 'return' of its outputs")
        value, results = tree.value, self.routine.results
        self.routine.single = not isinstance(value, ast.Tuple)
        for item in value.elts if isinstance(value, ast.Tuple) else [value]:
            if not isinstance(item, ast.Name):
                self.fail(tree, "return takes names of outputs (made by output_tensor) or of inputs, not expressions")
            variable = self.use(item)
            if variable.kind not in ("output", "input"):
                what = {"local": "made by allocate", "attribute": "a number", "scalar": "a number"}[variable.kind]
                self.fail(tree, f"return: {item.id!r} is {what}; it takes outputs made by output_tensor, or inputs")
            self.require(variable not in results, tree, f"return: {item.id!r} is returned twice")
            results.append(variable)
        for v in self.routine.variables.values():
            if v.kind == "output" and v not in results:
                self.fail(
                    v.line, f"output {v.name!r} is declared, but not returned; use allocate for an intermediate tensor"
                )
            if v.kind == "input" and v.written and v not in results:
                self.fail(v.line, f"input {v.name!r} is assigned, but not returned")

    # ---- statements -------------------------------------------------------------------------------------------------
    def statement(self, tree: ast.stmt) -> None:
        match tree:
            case ast.Assign():
                self.assign(tree)
            case ast.AugAssign():
                self.augmented(tree)
            case ast.For():
                self.loop(tree)
            case ast.If():
                self.condition(tree)
            case ast.With():
                self.with_block(tree)
            case ast.Pass() | ast.Expr(value=ast.Constant(value=str())):
                pass
            case _:
                self.fail(tree, _FORBIDDEN.get(type(tree), f"{type(tree).__name__.lower()} is not in the language"))

    def assign(self, tree: ast.Assign) -> None:
        target, value = tree.targets[0], tree.value
        single = len(tree.targets) == 1 and not isinstance(target, (ast.Tuple, ast.List))
        self.require(single, tree, "one statement assigns one variable or element")
        if kind_of_call(value) == "memory":
            self.memory(tree, target, value)  # type: ignore[arg-type]
            return
        found = self.expression(value)
        place = self.element(target, store=True) if isinstance(target, ast.Subscript) else self.scalar(target)
        self.out.append(Assign(place, found, tree.lineno))

    def scalar(self, target: ast.expr) -> Expr:
        if not isinstance(target, ast.Name):
            self.fail(target, _ONLY_PLACES)
        found = self.lookup(target.id) or self.declare(target.id, "scalar", target)
        self.check_overwrite(target, found)
        return found.leaf

    def augmented(self, tree: ast.AugAssign) -> None:
        label, value, target = self.operator(tree), self.expression(tree.value), tree.target
        if isinstance(target, ast.Subscript):
            place = self.element(target, store=True)
        else:
            if isinstance(target, ast.Name):
                self.use(target)
            place = self.scalar(target)
        self.out.append(Assign(place, node(label, place, value), tree.lineno))

    def memory(self, tree: ast.Assign, target: ast.expr, call: ast.Call) -> None:
        word = call.func.id  # type: ignore[attr-defined]
        if not isinstance(target, ast.Name):
            self.fail(tree, f"{word} is assigned to a name")
        old = self.lookup(target.id)
        if old is not None:
            self.fail(tree, f"{old.what} {target.id!r} is redefined by {word}")
        given = self.arguments(call)
        kind = "output" if word == "output_tensor" else "local"
        if kind == "output" and self.depth:
            self.fail(
                tree, "output_tensor stands outside of loops and conditions; use allocate for an intermediate tensor"
            )
        (shape, rank), dtype = self.shape(given[0]), self.dtype(given[1])
        variable = self.declare(target.id, kind, target, shape=tuple(shape), dtype=dtype, rank=rank)
        if isinstance(given[0], ast.Attribute):
            variable.like = self.tensor(given[0].value, "shape")
        self.out.append(Allocate(variable, tree.lineno))

    def shape(self, tree: ast.expr, likely: int = 1) -> tuple[list[Expr], int | None]:
        """Return the sizes of a shape, and its rank as far as it is known; else as many sizes as are likely."""
        if isinstance(tree, ast.Attribute) and tree.attr == "shape":
            variable = self.tensor(tree.value, "shape")
            return [size(variable, k) for k in range(likely if variable.rank is None else variable.rank)], variable.rank
        items = tree.elts if isinstance(tree, (ast.Tuple, ast.List)) else [tree]
        return [self.expression(item) for item in items], len(items)

    def dtype(self, tree: ast.expr) -> Any:
        match tree:
            case ast.Attribute(attr="dtype"):
                return self.tensor(tree.value, "dtype")
            case ast.Attribute(value=ast.Name(id=name)) if isinstance(self.source.globals.get(name), types.ModuleType):
                return tree.attr  # np.float32
            case ast.Constant(value=str(name)):
                return name
            case ast.Name(id=name) if name in TABLE and TABLE[name].kind == "function":
                return name
        self.fail(tree, "a dtype is written as x.dtype, 'float32' or float32")

    # ---- blocks -----------------------------------------------------------------------------------------------------
    def loop(self, tree: ast.For) -> None:
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
        self.scopes.append({})
        variables = self.loop_variables(tree, targets, word, len(ranges), rank)
        body, _ = self.block(tree.body)
        self.gone |= self.scopes.pop()
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
            if not isinstance(target, ast.Name):
                self.fail(tree, "a loop variable is a name")
            old = self.lookup(target.id)
            if old is not None:
                self.fail(tree, f"{old.what} {target.id!r} is overwritten by this loop")
            found.append(self.declare(target.id, "loop", target, rank=rank))
        if several or word != "grid":
            return found[:n]
        (whole,) = found
        whole.kind, whole.loops = "grid", tuple(self.routine.new(whole.name, "loop", tree.lineno) for _ in range(n))
        return list(whole.loops)

    def condition(self, tree: ast.If) -> None:
        test = self.expression(tree.test)
        body, first = self.block(tree.body)
        # what both branches assign is declared by the condition: the second branch finds the first one's variables
        shared = {n: v for n, v in first.items() if v.kind == "scalar" and n in _assigned(tree.orelse)}
        self.scopes.append(shared)
        orelse, _ = self.block(tree.orelse)
        self.scopes.pop()
        self.scopes[-1] |= shared
        self.out.append(If(test, body, orelse, tree.lineno))

    def with_block(self, tree: ast.With) -> None:
        for item in tree.items:
            call = item.context_expr
            if kind_of_call(call) != "block" or item.optional_vars is not None:
                self.fail(tree, f"with takes {' or '.join(n for n, word in TABLE.items() if word.kind == 'block')}")
            given = self.arguments(call)  # type: ignore[arg-type]
            if len(given) == 1:
                self.tensor(given[0], "block_realize")
                continue
            self.require(isinstance(constant(given[0]), str), tree, "attr takes a string and a value")
            if not isinstance(given[1], ast.Constant):
                self.expression(given[1])
        self.each(tree.body)


def _tensor_names(tree: ast.FunctionDef) -> set[str]:
    """Return names that are indexed, asked for shape or dtype, or returned."""
    found: set[str] = set()
    for part in ast.walk(tree):
        if isinstance(part, (ast.Subscript, ast.Attribute)) and isinstance(part.value, ast.Name):
            found.add(part.value.id)
        elif isinstance(part, ast.Return) and part.value is not None:
            found |= {n.id for n in ast.walk(part.value) if isinstance(n, ast.Name)}
    return found


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
