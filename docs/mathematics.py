"""Topics of the pages of operators, and formulas as MathML, which browsers show without a script."""

from __future__ import annotations

import ast
from html import escape

GREEK = {
    "alpha": "α", "beta": "β", "gamma": "γ", "Gamma": "Γ", "delta": "δ", "eps": "ε", "epsilon": "ε", "eta": "η", "theta": "θ",
    "lam": "λ", "lamda1": "λ", "mu": "μ", "nu": "ν", "pi": "π", "rho": "ρ", "sigma": "σ", "psi": "ψ", "inf": "∞",
}  # fmt: skip
BINARY = {
    "add": "+", "sub": "−", "mul": "·", "eq": "=", "ne": "≠", "lt": "<", "le": "≤", "gt": ">", "ge": "≥", "land": "∧",
    "lor": "∨", "lxor": "⊻", "mod": "mod",
}  # fmt: skip
OPERATORS = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.Pow: "pow", ast.Eq: "eq", ast.NotEq: "ne",
    ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Mod: "mod",
}  # fmt: skip
STRENGTH = {"add": 2, "sub": 2, "mul": 3, "mod": 3, "neg": 2, "sum": 2, "prod": 3}
NAMED = {"log": "ln", "gammaln": "ln Γ", "gamma": "Γ", "digamma": "ψ", "maximum": "max", "minimum": "min"}


def mathml(text: str) -> str:
    """Return a formula, ``left = right`` or an expression, as a line of MathML."""
    shown = [_row(ast.parse(side.strip(), mode="eval").body) for side in text.split(" = ")]
    inside = "<mo>=</mo>".join(shown)
    return f'<math display="block">{inside}</math>'


def _call(node: ast.expr) -> tuple[str, list[ast.expr]]:
    """Return an expression as a function and its operands; the function is empty for a leaf."""
    if isinstance(node, ast.BinOp):
        return OPERATORS[type(node.op)], [node.left, node.right]
    if isinstance(node, ast.Compare):
        return OPERATORS[type(node.ops[0])], [node.left, node.comparators[0]]
    if isinstance(node, ast.UnaryOp):
        return "neg", [node.operand]
    if isinstance(node, ast.Call):
        return node.func.id, node.args
    return "", []


def _row(node: ast.expr, needed: int = 0) -> str:
    """Return an expression, in parentheses where it binds less than what is `needed`."""
    name, _ = _call(node)
    strength = STRENGTH.get(name, 1 if name in BINARY else 9)
    shown = _inside(node)
    return f"<mrow><mo>(</mo>{shown}<mo>)</mo></mrow>" if strength < needed else f"<mrow>{shown}</mrow>"


def _inside(node: ast.expr) -> str:
    if isinstance(node, ast.Compare) and len(node.ops) > 1:  # a <= x < b
        rest = (
            f"<mo>{escape(BINARY[OPERATORS[type(op)]])}</mo>{_row(x, 2)}"
            for op, x in zip(node.ops, node.comparators, strict=True)
        )
        return _row(node.left, 2) + "".join(rest)
    name, args = _call(node)
    if name == "pow":
        return f"<msup>{_row(args[0], 9)}{_row(args[1])}</msup>"
    if name == "square":
        return f"<msup>{_row(args[0], 9)}<mn>2</mn></msup>"
    if name == "div":
        return f"<mfrac>{_row(args[0])}{_row(args[1])}</mfrac>"
    if name == "reciprocal":
        return f"<mfrac><mn>1</mn>{_row(args[0])}</mfrac>"
    if name in ("sqrt", "cbrt", "rsqrt", "rcbrt"):
        three = name.endswith("cbrt")
        root = f"<mroot>{_row(args[0])}<mn>3</mn></mroot>" if three else f"<msqrt>{_row(args[0])}</msqrt>"
        return f"<mfrac><mn>1</mn>{root}</mfrac>" if name[0] == "r" else root
    if name == "exp":
        return f"<msup><mi>e</mi>{_row(args[0])}</msup>"
    if name == "expm1":
        return f"<msup><mi>e</mi>{_row(args[0])}</msup><mo>−</mo><mn>1</mn>"
    if name in ("log1p", "log2", "log10"):
        if name == "log1p":
            return f"<mi>ln</mi><mo>(</mo><mn>1</mn><mo>+</mo>{_row(args[0])}<mo>)</mo>"
        return f"<msub><mi>log</mi><mn>{name[3:]}</mn></msub>{_row(args[0], 8)}"
    if name in ("abs", "norm"):
        bar = "|" if name == "abs" else "‖"
        return f'<mo stretchy="true">{bar}</mo>{_row(args[0])}<mo stretchy="true">{bar}</mo>'
    if name in ("floor", "ceil"):
        left, right = ("⌊", "⌋") if name == "floor" else ("⌈", "⌉")
        return f"<mo>{left}</mo>{_row(args[0])}<mo>{right}</mo>"
    if name == "where":
        return _cases([(args[1], args[0]), (args[2], None)])
    if name == "cases":
        pairs = [(args[k + 1], args[k]) for k in range(0, len(args) - 1, 2)]
        return _cases([*pairs, (args[-1], None)])
    if name in ("sum", "prod", "max", "min", "argmax", "argmin") and len(args) == 2:
        sign = {"sum": "<mo>∑</mo>", "prod": "<mo>∏</mo>"}.get(name, f"<mi>{name}</mi>")
        return f"<munder>{sign}{_row(args[0])}</munder>{_row(args[1], 3)}"
    if name == "T":
        return f"<msup>{_row(args[0], 9)}<mi>T</mi></msup>"
    if name == "inverse":
        return f"<msup>{_row(args[0], 9)}<mrow><mo>−</mo><mn>1</mn></mrow></msup>"
    if name == "fma":
        return f"{_row(args[0], 3)}<mo>·</mo>{_row(args[1], 3)}<mo>+</mo>{_row(args[2], 2)}"
    if name == "neg":
        return f"<mo>−</mo>{_row(args[0], 3)}"
    if name == "lnot":
        return f"<mo>¬</mo>{_row(args[0], 9)}"
    if name in BINARY:
        strength = STRENGTH.get(name, 2)
        right = strength + (name in ("sub", "mod"))
        sign = "" if name == "mul" and _is_number(args[0]) else f"<mo>{escape(BINARY[name])}</mo>"
        return f"{_row(args[0], strength)}{sign or '<mo>&#x2062;</mo>'}{_row(args[1], right)}"
    if name:
        shown = "<mo>,</mo>".join(map(_row, args))
        return f"{_name(NAMED.get(name, name))}<mo>&#x2061;</mo><mrow><mo>(</mo>{shown}<mo>)</mo></mrow>"
    return _leaf(node)


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant)


def _cases(pairs: list[tuple[ast.expr, ast.expr | None]]) -> str:
    rows = "".join(
        f"<mtr><mtd>{_row(value)}</mtd><mtd><mtext>{'otherwise' if condition is None else 'if '}</mtext>"
        f"{'' if condition is None else _row(condition)}</mtd></mtr>"
        for value, condition in pairs
    )
    return f'<mrow><mo stretchy="true">{{</mo><mtable columnalign="left">{rows}</mtable></mrow>'


def _leaf(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        if isinstance(node.value, str):
            return f"<mtext>{escape(node.value)}</mtext>"
        return f"<mn>{node.value:g}</mn>"
    if isinstance(node, ast.Name):
        return _name(node.id)
    if isinstance(node, ast.Attribute):
        return f"{_inside(node.value)}<mo>.</mo>{_name(node.attr)}"
    if isinstance(node, ast.Subscript):
        return f"<msub>{_row(node.value)}{_row(node.slice)}</msub>"
    if isinstance(node, ast.Tuple):
        return "<mo>,</mo>".join(f"<mo>(</mo>{_row(e)}<mo>)</mo>" if isinstance(e, ast.Tuple) else _row(e) for e in node.elts)
    raise ValueError(f"no mathematics for {ast.dump(node)}")


def _name(text: str) -> str:
    return f"<mi>{escape(GREEK.get(text, text))}</mi>"


#: Topics of the index of operators, with the families (files of mxop/ops) and further operators under each.
TOPICS = {
    "Arithmetic and comparison": "binary",
    "Elementwise functions": "math",
    "Reductions and statistics": "reduce counting",
    "Matrix multiplication": "matrix einsum",
    "Linear algebra": "linalg orthogonal triangles",
    "Reshaping and transposing": "shape layout",
    "Indexing and slicing": "slicing gather positions replace",
    "Joining, splitting and repeating": "join",
    "Sorting": "order",
    "Creating, copying and converting": "create convert",
    "Layers and activations": "nn attention rnn relu sigmoid log_sigmoid hard_sigmoid softsign Dropout Embedding",
    "Convolution and pooling": "convolution pooling windows resize",
    "Images": "image image_random",
    "Object detection": "boxes anchors",
    "Sampling and regions of images": "sampling regions deformable correlation",
    "Normalization": "norm",
    "Losses": "loss ctc hawkes softmax_cross_entropy smooth_l1",
    "Random numbers and densities": "random sample density",
    "Sequences of different lengths": "sequence",
    "Optimizer updates": "optimizer many_updates",
    "Quantization (int8)": "quantize quantized quantized_parts",
    "Fourier transform and sketches": "spectrum",
    "Sparse storage": "storage",
}
