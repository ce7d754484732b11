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
from .expressions import Expressions, constant
from .ir import Allocate, Assign, If, Routine, Statement, Variable, nested
from .scalars import node, size, upto
from .source import Source
from .words import BLOCKS, FUNCTIONS, MEMORY, SCHEDULES, WORDS

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
    reader.arguments(attributes)
    reader.function_body()
    return reader.routine


class _Reader(Expressions):
    def __init__(self, source: Source, ranks: Mapping[str, int] | None, lists: Mapping[str, Any]):
        self.source, self.fail = source, source.fail
        self.ranks, self.lists = ranks, lists
        self.routine = Routine(source)
        self.out = self.routine.body
        self.scopes: list[dict[str, Variable]] = [{}]
        self.gone: dict[str, Variable] = {}
        self.counts: dict[str, int] = {}
        self.loops = 0

    # ---- names ------------------------------------------------------------------------------------------------------
    def declare(self, name: str, kind: str, tree: ast.AST, **more: Any) -> Variable:
        if name in WORDS:
            self.fail(tree, f"{name!r} is a word of the language and cannot be assigned")
        count = self.counts[name] = self.counts.get(name, 0) + 1
        variable = Variable(name, kind, name if count == 1 else f"{name}__{count}", tree.lineno, **more)  # type: ignore[attr-defined]
        self.scopes[-1][name] = variable
        self.routine.variables.append(variable)
        return variable

    def block(self, trees: list[ast.stmt]) -> tuple[list[Statement], dict[str, Variable]]:
        """Read statements in a scope of their own; return them and what they declared."""
        self.scopes.append({})
        _, found = self.inside(self.each, trees)
        ended = self.scopes.pop()
        self.gone |= ended
        return found, ended

    def each(self, trees: list[ast.stmt]) -> None:
        for tree in trees:
            self.statement(tree)

    # ---- the function -----------------------------------------------------------------------------------------------
    def arguments(self, attributes: frozenset[str]) -> None:
        tree = self.source.tree
        args = tree.args
        if args.vararg or args.kwarg or args.kwonlyargs or args.posonlyargs:
            self.fail(tree, "a kernel takes plain positional arguments only")
        if args.defaults:
            self.fail(tree, "arguments of a kernel have no defaults; give an attribute its default in reg_info")
        bare = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
        numbers = (bare - self.tensor_names()) | attributes
        for arg in args.args:
            kind, rank = ("attribute", None) if arg.arg in numbers else ("input", (self.ranks or {}).get(arg.arg))
            self.routine.arguments.append(self.declare(arg.arg, kind, arg, rank=rank))

    def tensor_names(self) -> set[str]:
        """Return names that are indexed, asked for shape or dtype, or returned."""
        found: set[str] = set()
        for tree in ast.walk(self.source.tree):
            if isinstance(tree, (ast.Subscript, ast.Attribute)) and isinstance(tree.value, ast.Name):
                found.add(tree.value.id)
            elif isinstance(tree, ast.Return) and tree.value is not None:
                found |= {n.id for n in ast.walk(tree.value) if isinstance(n, ast.Name)}
        return found

    def function_body(self) -> None:
        body = list(self.source.tree.body)
        if body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
            body = body[1:]  # the docstring
        last = body.pop() if body and isinstance(body[-1], ast.Return) else None
        self.each(body)
        if last is None:
            self.fail(self.source.tree, "a kernel ends with 'return' of its outputs")
        self.results(last)

    def results(self, tree: ast.Return) -> None:
        value, results = tree.value, self.routine.results
        self.routine.single = not isinstance(value, ast.Tuple)
        for item in value.elts if isinstance(value, ast.Tuple) else [value]:
            if not isinstance(item, ast.Name):
                self.fail(tree, "return takes names of outputs (made by output_tensor) or of inputs, not expressions")
            variable = self.use(item)
            if variable.kind not in ("output", "input"):
                kinds = {"local": "made by allocate", "attribute": "a number", "scalar": "a number"}
                self.fail(tree, f"return: {item.id!r} is {kinds.get(variable.kind, 'no tensor')}; it takes outputs made by "
                          "output_tensor, or inputs")  # fmt: skip
            if variable in results:
                self.fail(tree, f"return: {item.id!r} is returned twice")
            results.append(variable)
        for variable in self.routine.variables:
            if variable.kind == "output" and variable not in results:
                self.fail(variable.line, f"output {variable.name!r} is declared, but not returned; use allocate for an "
                          "intermediate tensor")  # fmt: skip
            if variable.kind == "input" and variable.written and variable not in results:
                self.fail(variable.line, f"input {variable.name!r} is assigned, but not returned")

    # ---- statements -------------------------------------------------------------------------------------------------
    def statement(self, tree: ast.stmt) -> None:
        for kind, problem in _FORBIDDEN.items():
            if isinstance(tree, kind):
                self.fail(tree, problem)
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
            case ast.Return():
                self.fail(tree, "return stands once, at the end of the kernel")
            case ast.Pass() | ast.Expr(value=ast.Constant(value=str())):
                pass
            case ast.Expr():
                self.fail(tree, "an expression that is not assigned does nothing")
            case _:
                self.fail(tree, f"{type(tree).__name__.lower()} is not in the language")

    def assign(self, tree: ast.Assign) -> None:
        if len(tree.targets) != 1 or isinstance(tree.targets[0], (ast.Tuple, ast.List)):
            self.fail(tree, "one statement assigns one variable or element")
        target, value = tree.targets[0], tree.value
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in MEMORY:
            self.memory(tree, target, value)
            return
        found = self.expression(value)
        place = self.element(target, store=True) if isinstance(target, ast.Subscript) else self.scalar(target)
        self.out.append(Assign(place, found, tree.lineno))

    def scalar(self, target: ast.expr) -> Expr:
        if not isinstance(target, ast.Name):
            self.fail(target, "only variables and elements of tensors can be assigned")
        found = self.lookup(target.id) or self.declare(target.id, "scalar", target)
        self.check_overwrite(target, found)
        return found.leaf

    def memory(self, tree: ast.Assign, target: ast.expr, call: ast.Call) -> None:
        word = call.func.id  # type: ignore[attr-defined]
        if not isinstance(target, ast.Name):
            self.fail(tree, f"{word} is assigned to a name")
        old = self.lookup(target.id)
        if old is not None:
            what = "loop variable" if old.kind in ("loop", "grid") else old.kind if old.is_tensor else "variable"
            self.fail(tree, f"{what} {target.id!r} is redefined by {word}")
        names = ["shape", "dtype"] + ["scope"] * (word == "allocate")
        given = dict(zip(names, call.args))
        for keyword in call.keywords:
            if keyword.arg not in names or keyword.arg in given:
                self.fail(tree, f"{word} has no argument {keyword.arg!r}, or it is given twice")
            given[keyword.arg] = keyword.value
        if len(call.args) > len(names) or "shape" not in given or "dtype" not in given:
            self.fail(tree, f"{word} takes a shape and a dtype, {len(call.args) + len(call.keywords)} arguments given")
        if word == "output_tensor" and self.loops:
            self.fail(
                tree, "output_tensor stands outside of loops and conditions; use allocate for an intermediate tensor"
            )
        shape, rank = self.shape(given["shape"])
        kind, dtype = "output" if word == "output_tensor" else "local", self.dtype(given["dtype"])
        variable = self.declare(target.id, kind, target, shape=tuple(shape), dtype=dtype, rank=rank)
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
            case ast.Name(id=name) if name in FUNCTIONS:
                return name
        self.fail(tree, "a dtype is written as x.dtype, 'float32' or float32")

    def augmented(self, tree: ast.AugAssign) -> None:
        label, value = self.operator(tree), self.expression(tree.value)
        if isinstance(tree.target, ast.Subscript):
            target = self.element(tree.target, store=True)
        elif isinstance(tree.target, ast.Name):
            variable = self.use(tree.target)
            self.check_overwrite(tree, variable)
            target = variable.leaf
        else:
            self.fail(tree, "only variables and elements of tensors can be assigned")
        self.out.append(Assign(target, node(label, target, value), tree.lineno))

    def loop(self, tree: ast.For) -> None:
        if tree.orelse:
            self.fail(tree, "else after for is not allowed")
        call = tree.iter
        word = call.func.id if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) else None
        if word not in SCHEDULES and word != "grid":
            self.fail(tree, f"a loop runs over one of {', '.join(SCHEDULES)} or grid")
        assert isinstance(call, ast.Call)
        if call.keywords or not 1 <= len(call.args) <= (1 if word == "grid" else 3):
            self.fail(tree, f"{word} takes {'one shape' if word == 'grid' else 'one to three numbers'}, "
                      f"{len(call.args) + len(call.keywords)} arguments given")  # fmt: skip
        if word == "grid":
            several = len(tree.target.elts) if isinstance(tree.target, ast.Tuple) else 1
            sizes, rank = self.shape(call.args[0], several)
            ranges = [upto(n) for n in sizes]
        else:
            args, rank = [self.expression(a) for a in call.args], None
            ranges = [upto(args[0]) if len(args) == 1 else (*args, const(1))[:3]]
        self.scopes.append({})
        variables = self.loop_variables(tree, word, len(ranges), rank)
        self.loops += 1
        body, _ = self.block(tree.body)
        self.loops -= 1
        self.gone |= self.scopes.pop()
        self.out += nested(variables, word, ranges, body, tree.lineno)

    def loop_variables(self, tree: ast.For, word: str, n: int, rank: int | None) -> list[Variable]:
        """Declare what a loop runs over; return one variable for each dimension."""
        targets = tree.target.elts if isinstance(tree.target, ast.Tuple) else [tree.target]
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
                what = "loop variable" if old.kind in ("loop", "grid") else "variable"
                self.fail(tree, f"{what} {target.id!r} is overwritten by this loop")
            found.append(self.declare(target.id, "loop", target, rank=rank))
        if several or word != "grid":
            return found[:n]
        (whole,) = found
        names = [f"{whole.unique}__{k}_" for k in range(n)]
        whole.kind, whole.loops = "grid", tuple(Variable(whole.name, "loop", name, tree.lineno) for name in names)
        self.routine.variables += whole.loops
        return list(whole.loops)

    def condition(self, tree: ast.If) -> None:
        test = self.expression(tree.test)
        self.loops += 1
        before = len(self.routine.variables)
        body, first = self.block(tree.body)
        # what both branches assign is declared by the condition: the second branch finds the first one's variables
        shared = {n: v for n, v in first.items() if v.kind == "scalar" and n in _assigned(tree.orelse)}
        self.scopes.append(shared)
        orelse, _ = self.block(tree.orelse)
        self.scopes.pop()
        self.loops -= 1
        self.scopes[-1] |= shared
        for variable in self.routine.variables[before:]:
            if variable.name in shared:
                self.gone.pop(variable.name, None)
        self.out.append(If(test, body, orelse, tree.lineno))

    def with_block(self, tree: ast.With) -> None:
        for item in tree.items:
            call = item.context_expr
            name = call.func.id if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) else None
            if name not in BLOCKS or item.optional_vars is not None:
                self.fail(tree, f"with takes {' or '.join(BLOCKS)}")
            assert isinstance(call, ast.Call)
            if name == "attr":
                if len(call.args) != 2 or call.keywords or not isinstance(constant(call.args[0]), str):
                    self.fail(tree, "attr takes a string and a value")
                if not isinstance(call.args[1], ast.Constant):
                    self.expression(call.args[1])
            elif len(call.args) != 1 or call.keywords:
                self.fail(tree, f"block_realize takes one tensor, {len(call.args)} arguments given")
            else:
                self.tensor(call.args[0], "block_realize")
        self.each(tree.body)


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
