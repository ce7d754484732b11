"""The static checks of the hybrid language: every name is declared once, in scope, and used as what it is.

:func:`check` walks over a kernel's text, raises for the first thing that is not in the language, and leaves a
``variable`` on every name.  What depends on the shapes and types of a call is checked later, in :mod:`.types`.
Imports :mod:`.source` and :mod:`.words`.
"""

from __future__ import annotations

import ast
import types
from typing import Any

from ...errors import closest
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
OPERATORS = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
}  # fmt: skip
COMPARISONS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}


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


class _Checker:
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

    def lookup(self, name: str) -> Variable | None:
        return next((scope[name] for scope in reversed(self.scopes) if name in scope), None)

    def use(self, node: ast.Name) -> Variable:
        found = self.lookup(node.id)
        if found is None:
            if node.id in WORDS:
                self.fail(node, f"{node.id!r} is a function and can only be called")
            if node.id in self.gone:
                line = getattr(self.gone[node.id].node, "lineno", "?")
                self.fail(node, f"variable {node.id!r} is used out of the scope that declares it (line {line})")
            known = [n for scope in self.scopes for n in scope]
            self.fail(
                node, f"variable {node.id!r} is not declared: a kernel sees its arguments and what it assigns"
                f"{closest(node.id, known)}"
            )  # fmt: skip
        node.variable = found  # type: ignore[attr-defined]
        return found

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

    def check_overwrite(self, node: ast.AST, found: Variable) -> None:
        if found.kind in ("loop", "grid"):
            self.fail(node, f"loop variable {found.name!r} is overwritten")
        if found.kind == "attribute":
            self.fail(node, f"attribute {found.name!r} is overwritten")
        if found.is_tensor:
            self.fail(
                node, f"tensor {found.name!r} needs all its indices; it cannot be assigned as a whole or redefined"
            )

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
                if len(call.args) != 2 or call.keywords or not isinstance(_constant(call.args[0]), str):
                    self.fail(node, "attr takes a string and a value")
                if not isinstance(call.args[1], ast.Constant):
                    self.expression(call.args[1])
            elif len(call.args) != 1 or call.keywords:
                self.fail(node, f"block_realize takes one tensor, {len(call.args)} arguments given")
            else:
                self.tensor(call.args[0], "block_realize")
        for statement in node.body:
            self.statement(statement)

    # ---- expressions ------------------------------------------------------------------------------------------------
    def expression(self, node: ast.expr) -> None:
        match node:
            case ast.Constant():
                if type(node.value) not in (int, float, bool):
                    self.fail(node, f"{node.value!r} is no number")
            case ast.Name():
                self.bare(node)
            case ast.BinOp():
                if type(node.op) not in OPERATORS:
                    self.fail(node, f"operator {type(node.op).__name__} is not in the language: + - * / // % ** are")
                self.expression(node.left)
                self.expression(node.right)
            case ast.UnaryOp():
                if isinstance(node.op, ast.Invert):
                    self.fail(node, "operator ~ is not in the language")
                self.expression(node.operand)
            case ast.Compare():
                if any(type(op) not in COMPARISONS for op in node.ops):
                    self.fail(node, "comparisons are < <= > >= == !=")
                for part in (node.left, *node.comparators):
                    self.expression(part)
            case ast.BoolOp():
                for part in node.values:
                    self.expression(part)
            case ast.IfExp():
                for part in (node.test, node.body, node.orelse):
                    self.expression(part)
            case ast.Call():
                self.call(node)
            case ast.Subscript():
                self.element(node, store=False)
            case ast.Attribute():
                self.attribute(node)
            case _:
                self.fail(node, f"{type(node).__name__} is not in the language")

    def bare(self, node: ast.Name) -> None:
        variable = self.use(node)
        if variable.is_tensor:
            self.fail(node, f"tensor {node.id!r} needs all its indices")
        if variable.kind == "grid":
            self.fail(node, f"{node.id!r} holds all indices of a grid; use it as an index, or take {node.id}[0]")

    def attribute(self, node: ast.Attribute) -> None:
        if node.attr not in ("shape", "dtype"):
            self.fail(node, f"attribute .{node.attr} is not in the language; tensors have .shape and .dtype")
        self.tensor(node.value, node.attr)
        if node.attr == "shape":
            self.fail(node, "a shape is used whole in grid, allocate and output_tensor only; take x.shape[0]")
        self.fail(node, ".dtype stands in allocate and output_tensor only")

    def tensor(self, node: ast.expr, what: str) -> Variable:
        if not isinstance(node, ast.Name):
            self.fail(node, f"{what} is asked of the name of a tensor")
        variable = self.use(node)
        if not variable.is_tensor:
            self.fail(node, f"{node.id!r} is no tensor and has no {what}")
        return variable

    def call(self, node: ast.Call) -> None:
        if not isinstance(node.func, ast.Name):
            self.fail(node, f"function {ast.unparse(node.func)!r} is not in the language; use its words, as in sqrt(x)")
        name = node.func.id
        if name in MEMORY:
            self.fail(node, f"{name} is assigned to a name")
        if name in SCHEDULES or name in BLOCKS or name == "grid":
            self.fail(node, f"{name} stands after {'with' if name in BLOCKS else 'for ... in'} only")
        if name not in FUNCTIONS or self.lookup(name) is not None:
            self.fail(node, f"function {name!r} is not in the language{closest(name, FUNCTIONS)}")
        _, least, most = FUNCTIONS[name]
        if node.keywords or not least <= len(node.args) <= most:
            wanted = str(least) if least == most else f"at least {least}"
            self.fail(node, f"{name} takes {wanted} argument{'s' if wanted != '1' else ''}, "
                      f"{len(node.args) + len(node.keywords)} given")  # fmt: skip
        if name == "len":
            argument = node.args[0]
            if isinstance(argument, ast.Attribute) and argument.attr == "shape":
                argument = argument.value
            self.tensor(argument, "len")
            return
        for arg in node.args:
            self.expression(arg)

    def element(self, node: ast.Subscript, store: bool) -> None:
        """Check ``x[i, j]``, ``x.shape[0]`` and ``arg[0]``."""
        base = node.value
        if isinstance(base, ast.Attribute):
            self.size(node, base, store)
            return
        if isinstance(base, ast.Subscript):
            self.fail(node, "tensors take all indices at once: write x[i, j], not x[i][j]")
        if not isinstance(base, ast.Name):
            self.fail(node, "only tensors have elements")
        variable = self.use(base)
        if variable.kind in ("grid", "attribute") and not store:
            at = _constant(node.slice)
            if type(at) is not int or at < 0 or (variable.rank is not None and at >= variable.rank):
                self.fail(node, f"{base.id!r} is indexed by a fixed number from 0"
                          + (f" to {variable.rank - 1}" if variable.rank is not None else ""))  # fmt: skip
            return
        if not variable.is_tensor:
            if store:
                self.check_overwrite(node, variable)
            self.fail(node, f"{base.id!r} is no tensor and has no elements")
        self.indices(node, variable)
        variable.written |= store

    def indices(self, node: ast.Subscript, variable: Variable) -> None:
        items = index_items(node)
        count: int | None = 0
        for item in items:
            if isinstance(item, ast.Slice) or _constant(item) is Ellipsis or _constant(item) is None:
                self.fail(node, f"tensor {variable.name!r} needs all its indices; slices are not in the language")
            whole = self.lookup(item.id) if isinstance(item, ast.Name) else None
            if whole is not None and whole.kind == "grid":
                self.use(item)  # type: ignore[arg-type]
                count = None if whole.rank is None or count is None else count + whole.rank
            else:
                self.expression(item)
                count = None if count is None else count + 1
        if count is None:
            return
        if variable.rank is None:
            variable.rank = count
        elif variable.rank != count:
            self.fail(node, f"tensor {variable.name!r} needs all its {variable.rank} indices, {count} given")

    def size(self, node: ast.Subscript, base: ast.Attribute, store: bool) -> None:
        if base.attr != "shape":
            self.attribute(base)
        self.tensor(base.value, "shape")
        if store:
            self.fail(node, "a shape cannot be assigned")
        if type(_constant(node.slice)) is not int:
            self.fail(node, "a shape is indexed by a fixed number")


def index_items(node: ast.Subscript) -> list[ast.expr]:
    """Return the indices of an element."""
    return list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]


def _constant(node: ast.expr) -> Any:
    """Return a number, string... that stands in the text (``-1`` too), or a value that equals nothing."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        value = node.operand.value
        return -value if type(value) in (int, float) else _NOTHING
    return _NOTHING


_NOTHING = object()
constant = _constant


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
