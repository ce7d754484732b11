"""Derivatives of the expressions of a kernel, written as statements of a kernel.

Imports :mod:`.expressions`, :mod:`.source`.
"""

from __future__ import annotations

import ast
from typing import Any

from .expressions import OPERATORS

#: Function of one argument -> its derivative, where x is the argument and f the function's value.
DERIVATIVES = {
    "sqrt": "0.5 / {f}",
    "rsqrt": "-0.5 * {f} / {x}",
    "exp": "{f}",
    "expm1": "exp({x})",
    "log": "1.0 / {x}",
    "tanh": "1.0 - {f} * {f}",
    "abs": "sign({x})",
    "erf": "1.1283791670955126 * exp(-({x} * {x}))",
    "sin": "cos({x})",
    "cos": "-sin({x})",
    "atan": "1.0 / (1.0 + {x} * {x})",
    "float16": "1.0",
    "float32": "1.0",
    "float64": "1.0",
}


class Puller:
    """Adds what a gradient `head` of an expression gives to its operands.

    Parameters
    ----------
    writer : object
        Has ``line``, ``block``, ``fresh``, ``show``, ``flows``, ``place`` and ``widest``.
    """

    def __init__(self, writer: Any):
        self.writer = writer

    def pull(self, node: ast.expr, head: str) -> None:
        """Write the statements for one expression."""
        writer = self.writer
        if not writer.flows(node):
            return
        match node:
            case ast.Name() | ast.Subscript():
                writer.line(f"{writer.place(node)} += {writer.in_type_of(node, head)}")
            case ast.UnaryOp(op=ast.USub()):
                self.pull(node.operand, f"(-{head})")
            case ast.UnaryOp(op=ast.UAdd()):
                self.pull(node.operand, head)
            case ast.BinOp():
                self.operation(OPERATORS[type(node.op)], node.left, node.right, head)
            case ast.IfExp():
                with writer.block(f"if {writer.show(node.test)}:"):
                    self.pull(node.body, head)
                with writer.block("else:"):
                    self.pull(node.orelse, head)
            case ast.Call():
                self.call(node, head)

    def named(self, text: str) -> str:
        """Give a product a name, so that it is computed once."""
        name = self.writer.fresh("g")
        self.writer.line(f"{name} = {text}")
        return name

    def operation(self, sign: str, left: ast.expr, right: ast.expr, head: str) -> None:
        writer = self.writer
        a, b = f"({writer.show(left)})", f"({writer.show(right)})"
        match sign:
            case "+":
                parts = [(left, head), (right, head)]
            case "-":
                parts = [(left, head), (right, f"(-{head})")]
            case "*":
                parts = [(left, f"{head} * {b}"), (right, f"{head} * {a}")]
            case "/":
                parts = [(left, f"{head} / {b}"), (right, f"-{head} * {a} / ({b} * {b})")]
            case "**":
                parts = [
                    (left, f"{head} * {b} * power({a}, {b} - 1)"),
                    (right, f"{head} * power({a}, {b}) * log({a})"),
                ]
            case "%":
                parts = [(left, head), (right, f"-{head} * floor({a} / {b})")]
            case _:
                return
        for part, text in parts:
            if writer.flows(part):
                self.pull(part, text if _is_short(text) else self.named(text))

    def call(self, node: ast.Call, head: str) -> None:
        writer, name = self.writer, node.func.id  # type: ignore[attr-defined]
        args = node.args
        if name in DERIVATIVES:
            x = f"({writer.show(args[0])})"
            slope = DERIVATIVES[name].format(x=x, f=writer.show(node))
            self.pull(args[0], head if slope == "1.0" else self.named(f"{head} * ({slope})"))
        elif name == "power":
            self.operation("**", args[0], args[1], head)
        elif name == "atan2":
            y, x = (f"({writer.show(a)})" for a in args)
            if writer.flows(args[0]):
                self.pull(args[0], self.named(f"{head} * {x} / ({x} * {x} + {y} * {y})"))
            if writer.flows(args[1]):
                self.pull(args[1], self.named(f"-{head} * {y} / ({x} * {x} + {y} * {y})"))
        elif name in ("max", "min"):
            self.extreme(name, args, head)

    def extreme(self, name: str, args: list[ast.expr], head: str) -> None:
        """The first of the greatest (least) arguments takes the gradient."""
        writer = self.writer
        first, rest = args[0], args[1:]
        other = rest[0] if len(rest) == 1 else ast.Call(ast.Name(name, ast.Load()), rest, [])
        sign = ">=" if name == "max" else "<="
        with writer.block(f"if {writer.show(first)} {sign} {writer.show(other)}:"):
            self.pull(first, head)
        with writer.block("else:"):
            if len(rest) == 1:
                self.pull(other, head)
            else:
                self.extreme(name, rest, head)


def _is_short(text: str) -> bool:
    return text.isidentifier() or (text.startswith("(-") and text[2:-1].isidentifier())
