"""The static checks of the hybrid language: every name is declared once, in scope, and used as what it is.

:func:`check` walks over a kernel's text, raises for the first thing that is not in the language, and leaves a
``variable`` on every name.  What depends on the shapes and types of a call is checked later, in :mod:`.types`.
Imports :mod:`.expressions`, :mod:`.source` and :mod:`.words`.
"""

from __future__ import annotations

import ast
import types
from typing import Any

from .expressions import OPERATORS, Expressions, constant
from .source import Source, Variable
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


def check(source: Source, attributes: frozenset[str] = frozenset()) -> Source:
    """Check a kernel.

    Parameters
    ----------
    source : Source
        Fresh from :func:`~.source.read`; its names get their variables.
    attributes : frozenset of str
        Arguments that are known to be attributes; others are so when they are used as numbers.

    Raises
    ------
    HybridError
        With file, line and the line's text.
    """
    checker = _Checker(source)
    checker.arguments(attributes)
    checker.function_body()
    return source


class _Checker(Expressions):
    def __init__(self, source: Source):
        self.source = source
        self.fail = source.fail
        self.scopes: list[dict[str, Variable]] = [{}]
        self.gone: dict[str, Variable] = {}  # declared in a scope that has ended
        self.counts: dict[str, int] = {}
        self.loops = 0

    # ---- names ------------------------------------------------------------------------------------------------------
    def declare(self, name: str, kind: str, node: ast.AST, **more: Any) -> Variable:
        if name in WORDS:
            self.fail(node, f"{name!r} is a word of the language and cannot be assigned")
        count = self.counts[name] = self.counts.get(name, 0) + 1
        variable = Variable(name, kind, name if count == 1 else f"{name}__{count}", node, **more)
        self.scopes[-1][name] = variable
        self.source.variables.append(variable)
        return variable

    def block(self, statements: list[ast.stmt]) -> dict[str, Variable]:
        """Check statements in a scope of their own; return what they declared."""
        self.scopes.append({})
        for statement in statements:
            self.statement(statement)
        ended = self.scopes.pop()
        self.gone |= ended
        return ended

    # ---- the function -----------------------------------------------------------------------------------------------
    def arguments(self, attributes: frozenset[str]) -> None:
        args = self.source.tree.args
        if args.vararg or args.kwarg or args.kwonlyargs or args.posonlyargs:
            self.fail(self.source.tree, "a kernel takes plain positional arguments only")
        if args.defaults:
            self.fail(
                self.source.tree, "arguments of a kernel have no defaults; give an attribute its default in reg_info"
            )
        numbers = {n for n in self.bare_names() if n not in self.tensor_names()} | attributes
        for arg in args.args:
            kind = "attribute" if arg.arg in numbers else "input"
            self.source.arguments.append(self.declare(arg.arg, kind, arg))

    def tensor_names(self) -> set[str]:
        """Return names that are indexed, asked for shape or dtype, or returned."""
        found: set[str] = set()
        for node in ast.walk(self.source.tree):
            if isinstance(node, (ast.Subscript, ast.Attribute)) and isinstance(node.value, ast.Name):
                found.add(node.value.id)
            elif isinstance(node, ast.Return) and node.value is not None:
                found |= {n.id for n in ast.walk(node.value) if isinstance(n, ast.Name)}
        return found

    def bare_names(self) -> set[str]:
        return {n.id for n in ast.walk(self.source.tree) if isinstance(n, ast.Name)}

    def function_body(self) -> None:
        body = list(self.source.tree.body)
        if body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
            body = body[1:]  # the docstring
        last = body.pop() if body and isinstance(body[-1], ast.Return) else None
        for statement in body:
            self.statement(statement)
        if last is None:
            self.fail(self.source.tree, "a kernel ends with 'return' of its outputs")
        self.results(last)

    def results(self, node: ast.Return) -> None:
        value = node.value
        self.source.single = not isinstance(value, ast.Tuple)
        items = value.elts if isinstance(value, ast.Tuple) else [value]
        for item in items:
            if not isinstance(item, ast.Name):
                self.fail(node, "return takes names of outputs (made by output_tensor) or of inputs, not expressions")
            variable = self.use(item)
            if variable.kind not in ("output", "input"):
                kinds = {"local": "made by allocate", "attribute": "a number", "scalar": "a number"}
                self.fail(node, f"return: {item.id!r} is {kinds.get(variable.kind, 'no tensor')}; it takes outputs made by "
                          "output_tensor, or inputs")  # fmt: skip
            if variable in self.source.results:
                self.fail(node, f"return: {item.id!r} is returned twice")
            self.source.results.append(variable)
        for variable in self.source.variables:
            if variable.kind == "output" and variable not in self.source.results:
                self.fail(variable.node, f"output {variable.name!r} is declared, but not returned; use allocate for an "
                          "intermediate tensor")  # fmt: skip
            if variable.kind == "input" and variable.written and variable not in self.source.results:
                self.fail(variable.node, f"input {variable.name!r} is assigned, but not returned")

    # ---- statements -------------------------------------------------------------------------------------------------
    def statement(self, node: ast.stmt) -> None:
        for kind, problem in _FORBIDDEN.items():
            if isinstance(node, kind):
                self.fail(node, problem)
        match node:
            case ast.Assign():
                self.assign(node)
            case ast.AugAssign():
                self.augmented(node)
            case ast.For():
                self.loop(node)
            case ast.If():
                self.condition(node)
            case ast.With():
                self.with_block(node)
            case ast.Return():
                self.fail(node, "return stands once, at the end of the kernel")
            case ast.Pass():
                pass
            case ast.Expr(value=ast.Constant(value=str())):
                pass
            case ast.Expr():
                self.fail(node, "an expression that is not assigned does nothing")
            case _:
                self.fail(node, f"{type(node).__name__.lower()} is not in the language")

    def assign(self, node: ast.Assign) -> None:
        if len(node.targets) != 1 or isinstance(node.targets[0], (ast.Tuple, ast.List)):
            self.fail(node, "one statement assigns one variable or element")
        target, value = node.targets[0], node.value
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in MEMORY:
            self.memory(node, target, value)
            return
        if isinstance(target, ast.Subscript):
            self.expression(value)
            self.element(target, store=True)
            return
        self.expression(value)
        self.scalar(target)

    def scalar(self, target: ast.expr) -> None:
        if not isinstance(target, ast.Name):
            self.fail(target, "only variables and elements of tensors can be assigned")
        found = self.lookup(target.id)
        if found is None:
            found = self.declare(target.id, "scalar", target)
        self.check_overwrite(target, found)
        target.variable = found  # type: ignore[attr-defined]

    def memory(self, node: ast.Assign, target: ast.expr, call: ast.Call) -> None:
        word = call.func.id  # type: ignore[attr-defined]
        if not isinstance(target, ast.Name):
            self.fail(node, f"{word} is assigned to a name")
        old = self.lookup(target.id)
        if old is not None:
            what = "loop variable" if old.kind in ("loop", "grid") else old.kind if old.is_tensor else "variable"
            self.fail(node, f"{what} {target.id!r} is redefined by {word}")
        names = ["shape", "dtype"] + ["scope"] * (word == "allocate")
        given = dict(zip(names, call.args))
        for keyword in call.keywords:
            if keyword.arg not in names or keyword.arg in given:
                self.fail(node, f"{word} has no argument {keyword.arg!r}, or it is given twice")
            given[keyword.arg] = keyword.value
        if len(call.args) > len(names) or "shape" not in given or "dtype" not in given:
            self.fail(node, f"{word} takes a shape and a dtype, {len(call.args) + len(call.keywords)} arguments given")
        if word == "output_tensor" and self.loops:
            self.fail(
                node, "output_tensor stands outside of loops and conditions; use allocate for an intermediate tensor"
            )
        rank = self.shape(given["shape"])
        self.dtype(given["dtype"])
        kind = "output" if word == "output_tensor" else "local"
        target.variable = self.declare(  # type: ignore[attr-defined]
            target.id, kind, target, shape=given["shape"], dtype=given["dtype"], rank=rank
        )

    def shape(self, node: ast.expr) -> int | None:
        """Check a shape; return its rank if the text tells."""
        if isinstance(node, ast.Attribute) and node.attr == "shape":
            return self.tensor(node.value, "shape").rank
        if isinstance(node, (ast.Tuple, ast.List)):
            for item in node.elts:
                self.expression(item)
            return len(node.elts)
        self.expression(node)
        return 1

    def dtype(self, node: ast.expr) -> None:
        match node:
            case ast.Attribute(attr="dtype"):
                self.tensor(node.value, "dtype")
            case ast.Attribute(value=ast.Name(id=name)) if isinstance(self.source.globals.get(name), types.ModuleType):
                pass  # np.float32
            case ast.Constant(value=str()):
                pass
            case ast.Name(id=name) if name in FUNCTIONS:
                pass
            case _:
                self.fail(node, "a dtype is written as x.dtype, 'float32' or float32")

    def augmented(self, node: ast.AugAssign) -> None:
        if type(node.op) not in OPERATORS:
            self.fail(node, f"operator {type(node.op).__name__} is not in the language: + - * / // % ** are")
        self.expression(node.value)
        if isinstance(node.target, ast.Subscript):
            self.element(node.target, store=True)
        elif isinstance(node.target, ast.Name):
            self.check_overwrite(node, self.use(node.target))
        else:
            self.fail(node, "only variables and elements of tensors can be assigned")

    def loop(self, node: ast.For) -> None:
        if node.orelse:
            self.fail(node, "else after for is not allowed")
        call = node.iter
        word = call.func.id if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) else None
        if word not in SCHEDULES and word != "grid":
            self.fail(node, f"a loop runs over one of {', '.join(SCHEDULES)} or grid")
        assert isinstance(call, ast.Call)
        if call.keywords or not 1 <= len(call.args) <= (1 if word == "grid" else 3):
            self.fail(node, f"{word} takes {'one shape' if word == 'grid' else 'one to three numbers'}, "
                      f"{len(call.args) + len(call.keywords)} arguments given")  # fmt: skip
        rank = None
        if word == "grid":
            rank = self.shape(call.args[0])
        else:
            for arg in call.args:
                self.expression(arg)
        targets = node.target.elts if isinstance(node.target, ast.Tuple) else [node.target]
        if isinstance(node.target, ast.Tuple) and (word != "grid" or rank not in (None, len(targets))):
            self.fail(node, "several loop variables need grid with as many sizes")
        self.scopes.append({})
        for target in targets:
            if not isinstance(target, ast.Name):
                self.fail(node, "a loop variable is a name")
            if self.lookup(target.id) is not None:
                kind = self.lookup(target.id).kind  # type: ignore[union-attr]
                what = "loop variable" if kind in ("loop", "grid") else "variable"
                self.fail(node, f"{what} {target.id!r} is overwritten by this loop")
            one = "grid" if word == "grid" and not isinstance(node.target, ast.Tuple) else "loop"
            target.variable = self.declare(target.id, one, target, rank=rank)  # type: ignore[attr-defined]
        self.loops += 1
        self.block(node.body)
        self.loops -= 1
        self.gone |= self.scopes.pop()

    def condition(self, node: ast.If) -> None:
        self.expression(node.test)
        self.loops += 1
        before = len(self.source.variables)
        first = self.block(node.body)
        # what both branches assign is declared by the condition: the second branch finds the first one's variables
        shared = {n: v for n, v in first.items() if v.kind == "scalar" and n in _assigned(node.orelse)}
        self.scopes.append(shared)
        self.block(node.orelse)
        self.scopes.pop()
        self.loops -= 1
        self.scopes[-1] |= shared
        for variable in self.source.variables[before:]:
            if variable.name in shared:
                self.gone.pop(variable.name, None)

    def with_block(self, node: ast.With) -> None:
        for item in node.items:
            call = item.context_expr
            name = call.func.id if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) else None
            if name not in BLOCKS or item.optional_vars is not None:
                self.fail(node, f"with takes {' or '.join(BLOCKS)}")
            assert isinstance(call, ast.Call)
            if name == "attr":
                if len(call.args) != 2 or call.keywords or not isinstance(constant(call.args[0]), str):
                    self.fail(node, "attr takes a string and a value")
                if not isinstance(call.args[1], ast.Constant):
                    self.expression(call.args[1])
            elif len(call.args) != 1 or call.keywords:
                self.fail(node, f"block_realize takes one tensor, {len(call.args)} arguments given")
            else:
                self.tensor(call.args[0], "block_realize")
        for statement in node.body:
            self.statement(statement)


def _assigned(statements: list[ast.stmt]) -> set[str]:
    """Return names that statements assign on every way through them."""
    found: set[str] = set()
    for node in statements:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            found.add(node.targets[0].id)
        elif isinstance(node, ast.If):
            found |= _assigned(node.body) & _assigned(node.orelse)
        elif isinstance(node, ast.With):
            found |= _assigned(node.body)
    return found
