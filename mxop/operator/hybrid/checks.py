"""Reading a kernel: its text is checked, and becomes a :class:`~.ir.Routine`.

Every name is declared once, in scope, and used as what it is; the first thing that is not in the language raises.  A kernel
is read when it is made, and again for each combination of ranks: then ``grid`` becomes loops, and shapes have their lengths.
What is only computed when a condition holds becomes a condition: ``a if c else b``, and ``c and x[i] > 0``, where the element
may not exist otherwise.  What depends on the types of a call is checked in :mod:`.types`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial, reduce
from types import ModuleType
from typing import Any

from ...formula import Expr, const
from ...support.errors import closest
from . import ir
from .ir import Allocate, Assign, If, Routine, Variable, loads, node, size, upto
from .source import Source
from .words import TABLE, WORDS, primitive

#: Python's operators as primitives.
OPERATORS: dict[type, str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.FloorDiv: "floordiv", ast.Mod: "mod",
    ast.Pow: "pow", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq", ast.NotEq: "ne",
    ast.And: "land", ast.Or: "lor", ast.Not: "lnot", ast.USub: "neg",
}  # fmt: skip
#: Words that are several primitives.
COMPOSED: dict[str, Callable[..., Expr]] = {
    "isnan": lambda x: node("ne", x, x),
    "isinf": lambda x: node("eq", node("abs", x), float("inf")),
    "isfinite": lambda x: node("lt", node("abs", x), float("inf")),
    "ceil_div": lambda a, b: node("neg", node("floordiv", node("neg", a), b)),
}
_MISPLACED = {
    "memory": "is assigned to a name", "loop": "stands after for ... in only", "block": "stands after with only",
}  # fmt: skip
_NOTHING = object()
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


class _Reader(ir.Builder, ast.NodeVisitor):
    """Reads one statement after another.

    `ranks` are the dimensions of the inputs (None where they are not known yet: a shape that could have any number has one),
    `lists` the values of attributes that are no numbers.  Statements go to `out`; `gone` is what was declared in a scope that
    has ended.
    """

    def __init__(self, source: Source, ranks: Mapping[str, int] | None, lists: Mapping[str, Any]):
        self.source, self.fail = source, source.fail
        self.ranks, self.lists = ranks, lists
        self.routine = Routine(source)
        self.out = self.routine.body
        self.scopes: list[dict[str, Variable]] = [{}]
        self.gone: dict[str, Variable] = {}

    def require(self, holds: object, tree: ast.AST | int, problem: str) -> None:
        """Raise for a place in the text unless something holds."""
        if not holds:
            self.fail(tree, problem)

    # ---- names ------------------------------------------------------------------------------------------------------
    def lookup(self, name: str) -> Variable | None:
        return next((scope[name] for scope in reversed(self.scopes) if name in scope), None)

    def named(self, item: Any, tree: ast.AST, problem: str) -> str:
        """Return the name that something in a statement has to be."""
        self.require(isinstance(item, ast.Name), tree, problem)
        return item.id

    def use(self, tree: ast.Name) -> Variable:
        name, found = tree.id, self.lookup(tree.id)
        if found is not None:
            return found
        self.require(name not in WORDS, tree, f"{name!r} is a function and can only be called")
        if name in self.gone:
            line = self.gone[name].line
            self.fail(tree, f"variable {name!r} is used out of the scope that declares it (line {line})")
        known = closest(name, [n for scope in self.scopes for n in scope])
        self.fail(tree, f"variable {name!r} is not declared: a kernel sees its arguments and what it assigns{known}")

    def tensor(self, tree: Any, what: str) -> Variable:
        name = self.named(tree, tree, f"{what} is asked of the name of a tensor")
        variable = self.use(tree)
        self.require(variable.is_tensor, tree, f"{name!r} is not a tensor and has no {what}")
        return variable

    def check_overwrite(self, tree: ast.AST, found: Variable) -> None:
        fixed = found.kind in ("loop", "grid", "attribute")
        self.require(not fixed, tree, f"{found.what} {found.name!r} is overwritten")
        self.require(not found.is_tensor, tree,
                     f"tensor {found.name!r} needs all its indices; it cannot be assigned as a whole or redefined")  # fmt: skip

    def temporary(self, tree: ast.expr) -> Variable:
        """Declare a number that has no name in the text."""
        found = self.routine.new("mx", "scalar", tree.lineno)
        found.name = ast.unparse(tree)
        self.scopes[-1][found.unique] = found
        return found

    def declare(self, name: str, kind: str, tree: Any, how: str = "", **more: Any) -> Variable:
        """Declare a name, which must be new: `how` says what another one would be."""
        old = self.lookup(name)
        self.require(old is None, tree, f"{old and old.what} {name!r} is {how}")
        self.require(name not in WORDS, tree, f"{name!r} is a word of the language and cannot be assigned")
        ours = name.startswith("_mx_")
        self.require(not ours, tree, f"{name!r}: names that begin with _mx_ are those of compiled texts")
        variable = self.scopes[-1][name] = self.routine.new(name, kind, tree.lineno, **more)
        return variable

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
        name = type(tree).__name__
        shown = name.lower() if isinstance(tree, ast.stmt) else name
        self.fail(tree, _FORBIDDEN.get(type(tree), f"{shown} is not in the language"))

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
            found = self.visit(value)
            self.out.append(Assign(self.place(target), found, tree.lineno))

    def visit_AugAssign(self, tree: ast.AugAssign) -> None:
        label, value = self.operator(tree), self.visit(tree.value)
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
        given, output = self.arguments(call), word == "output_tensor"
        problem = "output_tensor stands outside of loops and conditions; use allocate for an intermediate tensor"
        self.require(not output or len(self.scopes) == 1, tree, problem)
        (shape, rank), dtype = self.shape(given[0]), self.dtype(given[1])
        like = self.tensor(given[0].value, "shape") if isinstance(given[0], ast.Attribute) else None
        variable = self.declare(name, "output" if output else "local", target, f"redefined by {word}",
                                shape=tuple(shape), dtype=dtype, rank=rank, like=like)  # fmt: skip
        self.out.append(Allocate(variable, tree.lineno))

    def shape(self, tree: ast.expr, likely: int = 1) -> tuple[list[Expr], int | None]:
        """Return the sizes of a shape, and its rank as far as it is known; else as many sizes as are likely."""
        if isinstance(tree, ast.Attribute) and tree.attr == "shape":
            variable = self.tensor(tree.value, "shape")
            return [size(variable, k) for k in range(likely if variable.rank is None else variable.rank)], variable.rank
        sizes = [self.visit(item) for item in (tree.elts if isinstance(tree, (ast.Tuple, ast.List)) else [tree])]
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
        several = isinstance(tree.target, ast.Tuple)
        targets = tree.target.elts if several else [tree.target]  # type: ignore[attr-defined]
        if word == "grid":
            sizes, rank = self.shape(given[0], len(targets))
            ranges = [upto(n) for n in sizes]
        else:
            args, rank = [self.visit(a) for a in given], None
            ranges = [upto(args[0]) if len(args) == 1 else (*args, const(1))[:3]]
        if several and (word != "grid" or rank not in (None, len(targets))):
            self.fail(tree, "several loop variables need grid with as many sizes" if self.ranks is None or word != "grid"
                      else f"{len(targets)} loop variables for a grid of {rank} dimensions")  # fmt: skip
        with self.block() as (body, _):
            names = [self.named(target, tree, "a loop variable is a name") for target in targets]
            found = [self.declare(name, "loop", tree, "overwritten by this loop", rank=rank) for name in names]
            if word == "grid" and not several:  # one name for as many variables as there are dimensions
                (whole,) = found
                found = [self.routine.new(whole.name, "loop", tree.lineno) for _ in ranges]
                whole.kind, whole.loops = "grid", tuple(found)
            self.each(tree.body)
        self.out += ir.nested(found, word, ranges, body, tree.lineno)

    def visit_If(self, tree: ast.If) -> None:
        test = self.visit(tree.test)
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
                self.visit(value[0])
        self.each(tree.body)

    # ---- expressions ------------------------------------------------------------------------------------------------
    def visit_Constant(self, tree: ast.Constant) -> Expr:
        return self.number(tree, tree.value)

    def number(self, tree: ast.AST, value: Any) -> Expr:
        """Return a number; floats that could be taken for integers say that they are none."""
        if isinstance(value, bool):
            return node("eq" if value else "ne", 1, 1)
        if isinstance(value, float):
            return node("real", value) if value.is_integer() else const(value)
        self.require(isinstance(value, int), tree, f"{value!r} is not a number")
        self.require(-(2**63) <= value < 2**63, tree, f"{value} is not an integer of 64 bits")
        return const(value)

    def operator(self, tree: ast.BinOp | ast.AugAssign) -> str:
        kind = type(tree.op)
        self.require(kind in OPERATORS, tree, f"operator {kind.__name__} is not in the language: + - * / // % ** are")
        return OPERATORS[kind]

    def visit_BinOp(self, tree: ast.BinOp) -> Expr:
        return node(self.operator(tree), self.visit(tree.left), self.visit(tree.right))

    def visit_UnaryOp(self, tree: ast.UnaryOp) -> Expr:
        value = constant(tree)
        if value is not _NOTHING:
            return self.number(tree, value)
        self.require(not isinstance(tree.op, ast.Invert), tree, "operator ~ is not in the language")
        operand, label = self.visit(tree.operand), OPERATORS.get(type(tree.op))
        return node(label, operand) if label else operand

    def visit_Compare(self, tree: ast.Compare) -> Expr:
        self.require(all(type(op) in OPERATORS for op in tree.ops), tree, "comparisons are < <= > >= == !=")
        operands = [tree.left, *tree.comparators]
        if len(operands) == 2:
            return node(OPERATORS[type(tree.ops[0])], *map(self.visit, operands))
        pairs = [ast.Compare(a, [op], [b]) for a, op, b in zip(operands, tree.ops, operands[1:])]
        return self.visit_BoolOp(ast.copy_location(ast.BoolOp(ast.And(), pairs), tree))

    def visit_BoolOp(self, tree: ast.BoolOp) -> Expr:
        """Read ``a and b and ...``: elements are read only when what is before does not decide."""
        word, found = OPERATORS[type(tree.op)], self.visit(tree.values[0])
        for part in tree.values[1:]:
            with self.collected() as needed:
                other = self.visit(part)
            if not needed and set(loads(other)) <= set(loads(found)):
                found = node(word, found, other)
                continue
            held = self.temporary(tree).leaf
            self.out.append(Assign(held, node(word, found, found), tree.lineno))
            needed.append(Assign(held, node(word, other, other), tree.lineno))
            self.out.append(If(held if word == "land" else node("lnot", held), needed, [], tree.lineno))
            found = held
        return found

    def visit_IfExp(self, tree: ast.IfExp) -> Expr:
        test = self.visit(tree.test)
        held = self.temporary(tree).leaf
        blocks = []
        for part in (tree.body, tree.orelse):
            with self.collected() as block:
                block.append(Assign(held, self.visit(part), tree.lineno))
            blocks.append(block)
        self.out.append(If(test, *blocks, tree.lineno))
        return held

    def visit_Name(self, tree: ast.Name) -> Expr:
        variable = self.use(tree)
        self.require(not variable.is_tensor, tree, f"tensor {tree.id!r} needs all its indices")
        self.require(variable.kind != "grid", tree,
                     f"{tree.id!r} holds all indices of a grid; use it as an index, or take {tree.id}[0]")  # fmt: skip
        return variable.leaf

    def visit_Attribute(self, tree: ast.Attribute) -> None:
        of_tensors = tree.attr in ("shape", "dtype")
        self.require(of_tensors, tree, f"attribute .{tree.attr} is not in the language; tensors have .shape and .dtype")
        self.tensor(tree.value, tree.attr)
        if tree.attr == "shape":
            self.fail(tree, "a shape is used whole in grid, allocate and output_tensor only; take x.shape[0]")
        self.fail(tree, ".dtype stands in allocate and output_tensor only")

    # ---- calls ------------------------------------------------------------------------------------------------------
    def visit_Call(self, tree: ast.Call) -> Expr:
        if not isinstance(tree.func, ast.Name):
            self.fail(tree, f"function {ast.unparse(tree.func)!r} is not in the language; use its words, as in sqrt(x)")
        name, kind = tree.func.id, kind_of_call(tree)
        if kind is None:
            functions = [n for n, word in TABLE.items() if word.kind == "function"]
            self.fail(tree, f"function {name!r} is not in the language{closest(name, functions)}")
        self.require(kind == "function", tree, f"{name} {_MISPLACED.get(kind)}")
        given = self.arguments(tree)
        if name == "len":
            return self.length(given[0])
        operands = [self.visit(item) for item in given]
        if name in COMPOSED:
            return COMPOSED[name](*operands)
        return reduce(partial(node, primitive(name)), operands) if len(given) > 1 else node(primitive(name), *operands)

    def arguments(self, tree: ast.Call) -> list[ast.expr]:
        """Return what a word is called with, in the order in which it takes it."""
        name = tree.func.id  # type: ignore[attr-defined]
        word, given = TABLE[name], dict(enumerate(tree.args))
        for keyword in tree.keywords:
            self.require(word.names, tree, f"{name} takes its arguments by position")
            at = word.names.index(keyword.arg) if keyword.arg in word.names else None
            if at is None or at in given:
                self.fail(tree, f"{name} has no argument {keyword.arg!r}, or it is given twice")
            given[at] = keyword.value
        n = len(given)
        enough = word.least <= n <= word.most and all(k in given for k in range(word.least))
        self.require(enough, tree, f"{name} takes {word.takes}, {n} argument{'s' if n != 1 else ''} given")
        return [given[k] for k in sorted(given)]

    def length(self, tree: ast.expr) -> Expr:
        if isinstance(tree, ast.Attribute) and tree.attr == "shape":
            return const(self.tensor(tree.value, "len").rank or 1)
        return size(self.tensor(tree, "len"), 0)

    # ---- elements ---------------------------------------------------------------------------------------------------
    def visit_Subscript(self, tree: ast.Subscript, store: bool = False) -> Expr:
        """Read ``x[i, j]``, ``x.shape[0]`` and ``arg[0]``."""
        base: Any = tree.value
        if isinstance(base, ast.Attribute):
            return self.size(tree, base, store)
        twice = isinstance(base, ast.Subscript)
        self.require(not twice, tree, "tensors take all indices at once: write x[i, j], not x[i][j]")
        name = self.named(base, tree, "only tensors have elements")
        variable = self.use(base)
        if variable.kind in ("grid", "attribute") and not store:
            return self.item(tree, variable)
        if store and not variable.is_tensor:
            self.check_overwrite(tree, variable)
        self.require(variable.is_tensor, tree, f"{name!r} is not a tensor and has no elements")
        variable.written |= store
        return ir.load(variable, self.indices(tree, variable))

    def item(self, tree: ast.Subscript, variable: Variable) -> Expr:
        """Return an index of a grid, or a number of an attribute that is a list."""
        at, n = constant(tree.slice), variable.rank
        if type(at) is not int or at < 0 or (n is not None and at >= n):
            self.fail(tree, f"{variable.name!r} is indexed by a fixed number from 0{f' to {n - 1}' if n else ''}")
        if variable.kind == "grid":
            return variable.loops[min(at, len(variable.loops) - 1)].leaf
        if self.ranks is None:
            return const(1)
        value = self.lists.get(variable.name)
        if not isinstance(value, (tuple, list)) or at >= len(value):
            self.fail(tree, f"attribute {variable.name} = {value!r} has no item {at}")
        return self.number(tree, value[at])

    def indices(self, tree: ast.Subscript, variable: Variable) -> list[Expr]:
        found: list[Expr] = []
        certain, name = True, variable.name
        for item in tree.slice.elts if isinstance(tree.slice, ast.Tuple) else [tree.slice]:
            part = isinstance(item, ast.Slice) or constant(item) in (Ellipsis, None)
            self.require(not part, tree, f"tensor {name!r} needs all its indices; slices are not in the language")
            whole = self.lookup(item.id) if isinstance(item, ast.Name) else None
            if whole is not None and whole.kind == "grid":
                found += [v.leaf for v in whole.loops]
                certain &= whole.rank is not None
            else:
                found.append(self.visit(item))
        n = len(found)
        if certain and variable.rank is None:
            variable.rank = n
        if certain and variable.rank != n:
            self.fail(tree, f"tensor {name!r} needs all its {variable.rank} indices, {n} given" if self.ranks is None else
                      f"tensor {name!r} has {variable.rank} dimensions, but is used with {n} indices")  # fmt: skip
        return found

    def size(self, tree: ast.Subscript, base: ast.Attribute, store: bool) -> Expr:
        if base.attr != "shape":
            self.visit(base)
        variable, at = self.tensor(base.value, "shape"), constant(tree.slice)
        self.require(not store, tree, "a shape cannot be assigned")
        self.require(type(at) is int, tree, "a shape is indexed by a fixed number")
        rank = variable.rank or 0
        if self.ranks is None:
            return size(variable, at)
        self.require(-rank <= at < rank, tree, f"a tensor of {rank} dimensions has no shape[{at}]")
        return size(variable, at % rank)


def kind_of_call(tree: ast.AST | None) -> str | None:
    """Return the kind of the word that is called, None where none is."""
    called = isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name) and tree.func.id in TABLE
    return TABLE[tree.func.id].kind if called else None  # type: ignore[union-attr]


def constant(tree: ast.expr) -> Any:
    """Return a number, string... that stands in the text (``-1`` too), or a value that equals nothing."""
    if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.USub):
        value = constant(tree.operand)
        return -value if type(value) in (int, float) else _NOTHING
    return tree.value if isinstance(tree, ast.Constant) else _NOTHING


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
