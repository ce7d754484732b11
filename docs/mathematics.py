"""Topics and formulas of the pages of operators; formulas are MathML, which browsers show without a script."""

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
        return "<mo>,</mo>".join(map(_row, node.elts))
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

#: What operators compute that are not formulas of one element, by the names of their functions.
FORMULAS: dict[str, list[str]] = {
    # ---- activations and layers
    "Activation": [
        "relu = maximum(data, 0)",
        "sigmoid = 1/(1 + exp(-data))",
        "tanh = tanh(data)",
        "softrelu = log(1 + exp(data))",
        "softsign = data/(1 + abs(data))",
    ],
    "LeakyReLU": [
        "leaky = where(data > 0, data, slope*data)",
        "elu = where(data > 0, data, slope*(exp(data) - 1))",
        "gelu = data/2*(1 + erf(data/sqrt(2)))",
        "selu = 1.0507*where(data > 0, data, 1.6733*(exp(data) - 1))",
        "prelu = where(data > 0, data, gamma*data)",
    ],
    "sigmoid": ["y = 1/(1 + exp(-data))"],
    "log_sigmoid": ["y = -log(1 + exp(-data))"],
    "softsign": ["y = data/(1 + abs(data))"],
    "softmax": ["y[i] = exp(data[i]/temperature)/sum(j, exp(data[j]/temperature))"],
    "softmin": ["y[i] = exp(-data[i]/temperature)/sum(j, exp(-data[j]/temperature))"],
    "log_softmax": ["y[i] = data[i]/temperature - log(sum(j, exp(data[j]/temperature)))"],
    "SoftmaxActivation": ["y[i] = exp(data[i])/sum(j, exp(data[j]))"],
    "softmax_cross_entropy": ["y = -sum(n, log(softmax(data[n])[label[n]]))"],
    "FullyConnected": ["y[n,i] = sum(k, data[n,k]*weight[i,k]) + bias[i]"],
    "Embedding": ["y[i] = weight[data[i]]"],
    "Dropout": ["y = cases(u >= p, data/(1 - p), 0)"],
    "RNN": ["h[t] = tanh(W*x[t] + b + R*h[t-1] + r)"],
    # ---- convolution and pooling
    "Convolution": ["y[n,f,p] = bias[f] + sum((c,q), weight[f,c,q]*data[n,c,stride*p + dilate*q - pad])"],
    "Deconvolution": ["y[n,f,s] = bias[f] + sum((c, stride*p + dilate*q - pad == s), data[n,c,p]*weight[c,f,q])"],
    "Pooling": [
        "maximum[n,c,p] = max(q, data[n,c,stride*p + q - pad])",
        "average[n,c,p] = 1/K*sum(q, data[n,c,stride*p + q - pad])",
    ],
    "im2col": ["y[n,(c,q),p] = data[n,c,stride*p + dilate*q - pad]"],
    # ---- normalization
    "LayerNorm": [
        "y = gamma*(data - mu)/sqrt(sigma**2 + eps) + beta",
        "mu = 1/n*sum(i, data[i])",
        "sigma**2 = 1/n*sum(i, (data[i] - mu)**2)",
    ],
    "BatchNorm": [
        "y = gamma*(data - mu)/sqrt(sigma**2 + eps) + beta",
        "moving_mean = momentum*moving_mean + (1 - momentum)*mu",
    ],
    "GroupNorm": ["y = gamma*(data - mu)/sqrt(sigma**2 + eps) + beta"],
    "InstanceNorm": ["y = gamma*(data - mu)/sqrt(sigma**2 + eps) + beta"],
    "L2Normalization": ["y = data/sqrt(sum(i, data[i]**2) + eps)"],
    "LRN": ["y[c] = data[c]/(knorm + alpha/nsize*sum(j, data[j]**2))**beta"],
    # ---- reductions
    "sum": ["y = sum(i, data[i])"],
    "mean": ["y = 1/n*sum(i, data[i])"],
    "prod": ["y = prod(i, data[i])"],
    "nansum": ["y = sum(i, where(data[i] == data[i], data[i], 0))"],
    "nanprod": ["y = prod(i, where(data[i] == data[i], data[i], 1))"],
    "max": ["y = max(i, data[i])"],
    "min": ["y = min(i, data[i])"],
    "argmax": ["y = argmax(i, data[i])"],
    "argmin": ["y = argmin(i, data[i])"],
    "norm": ["y = sqrt(sum(i, data[i]**2))"],
    "moments": ["mean = 1/n*sum(i, data[i])", "variance = 1/n*sum(i, (data[i] - mean)**2)"],
    "multi_sum_sq": ["y[k] = sum(i, data[k,i]**2)"],
    "cumsum": ["y[i] = sum(j <= i, data[j])"],
    # ---- matrices
    "dot": ["y[i,j] = sum(k, lhs[i,k]*rhs[k,j])"],
    "batch_dot": ["y[b,i,j] = sum(k, lhs[b,i,k]*rhs[b,k,j])"],
    "matmul": ["y[b,i,j] = sum(k, lhs[b,i,k]*rhs[b,k,j])"],
    "einsum": ["y[i,j] = sum(k, a[i,k]*b[k,j])"],
    "linalg.gemm": ["y = alpha*A*B + beta*C"],
    "linalg.gemm2": ["y = alpha*A*B"],
    "linalg.syrk": ["y = alpha*A*T(A)"],
    "linalg.trmm": ["y = alpha*A*B"],
    "linalg.trsm": ["y = alpha*inverse(A)*B"],
    "linalg.potrf": ["A = L*T(L)"],
    "linalg.potri": ["y = inverse(A*T(A))"],
    "linalg.det": ["y = det(A)"],
    "linalg.inverse": ["y = inverse(A)"],
    "linalg.slogdet": ["sign = det(A)/abs(det(A))", "logabsdet = log(abs(det(A)))"],
    "linalg.sumlogdiag": ["y = sum(i, log(A[i,i]))"],
    "linalg.gelqf": ["A = L*Q", "Q*T(Q) = 1"],
    "linalg.syevd": ["A = T(U)*diag(L)*U"],
    "khatri_rao": ["y[(i,j),k] = a[i,k]*b[j,k]"],
    # ---- shapes and indices
    "transpose": ["y[j,i] = data[i,j]"],
    "diag": ["y[i] = data[i,i+k]"],
    "take": ["y[i] = a[indices[i]]"],
    "pick": ["y[i] = data[i,index[i]]"],
    "one_hot": ["y[i,k] = where(indices[i] == k, on_value, off_value)"],
    "where": ["result = where(condition != 0, x, y)"],
    "gather_nd": ["y[i] = data[indices[0,i], indices[1,i]]"],
    "batch_take": ["y[i] = a[i,indices[i]]"],
    "SwapAxis": ["y[j,i] = data[i,j]"],
    "reverse": ["y[i] = data[n - 1 - i]"],
    "repeat": ["y[i] = data[floor(i/repeats)]"],
    "tile": ["y[i] = data[mod(i, n)]"],
    "stack": ["y[k,i] = data[k][i]"],
    "linalg.makediag": ["y[i,i+offset] = A[i]"],
    "linalg.extractdiag": ["y[i] = A[i,i+offset]"],
    "UpSampling": ["y[n,c,i,j] = data[n,c,floor(i/scale),floor(j/scale)]"],
    "slice_axis": ["y[i] = data[begin + i]"],
    # ---- losses
    "LinearRegressionOutput": ["y = data", "gradient = grad_scale/m*(data - label)"],
    "MAERegressionOutput": ["y = data", "gradient = grad_scale/m*sign(data - label)"],
    "LogisticRegressionOutput": ["y = 1/(1 + exp(-data))", "gradient = grad_scale/m*(y - label)"],
    "SoftmaxOutput": ["y[i] = exp(data[i])/sum(j, exp(data[j]))", "gradient[i] = grad_scale*(y[i] - where(i == label, 1, 0))"],
    "smooth_l1": ["y = where(abs(data) < 1/scalar**2, (scalar*data)**2/2, abs(data) - 1/(2*scalar**2))"],
    "CTCLoss": ["y = -log(p(label, data))"],
    # ---- updates
    "sgd_update": ["weight = weight - lr*(grad + wd*weight)"],
    "sgd_mom_update": ["mom = momentum*mom - lr*(grad + wd*weight)", "weight = weight + mom"],
    "nag_mom_update": ["mom = momentum*mom - lr*(grad + wd*weight)", "weight = weight + momentum*mom - lr*(grad + wd*weight)"],
    "adam_update": [
        "g = grad + wd*weight",
        "mean = beta1*mean + (1 - beta1)*g",
        "var = beta2*var + (1 - beta2)*g**2",
        "weight = weight - lr*mean/(sqrt(var) + epsilon)",
    ],
    "rmsprop_update": [
        "g = grad + wd*weight",
        "n = gamma1*n + (1 - gamma1)*g**2",
        "weight = weight - lr*g/sqrt(n + epsilon)",
    ],
    "signsgd_update": ["weight = (1 - lr*wd)*weight - lr*sign(grad)"],
    "signum_update": [
        "mom = momentum*mom - (1 - momentum)*(grad + wd*weight)",
        "weight = (1 - lr*wd_lh)*weight + lr*sign(mom)",
    ],
    "sparse.adagrad_update": ["history = history + grad**2", "weight = weight - lr*(grad/sqrt(history + epsilon) + wd*weight)"],
    # ---- densities
    "random.pdf_normal": ["p = 1/(sigma*sqrt(2*pi))*exp(-(sample - mu)**2/(2*sigma**2))"],
    "random.pdf_uniform": ["p = where(low <= sample, 1/(high - low), 0)"],
    "random.pdf_exponential": ["p = lam*exp(-lam*sample)"],
    "random.pdf_gamma": ["p = beta**alpha/gamma(alpha)*sample**(alpha - 1)*exp(-beta*sample)"],
    "random.pdf_poisson": ["p = lam**sample*exp(-lam)/gamma(sample + 1)"],
    "random.normal": ["p(y) = 1/(scale*sqrt(2*pi))*exp(-(y - loc)**2/(2*scale**2))"],
    "random.uniform": ["p(y) = 1/(high - low)"],
    "random.exponential": ["p(y) = lam*exp(-lam*y)"],
    "random.poisson": ["p(y) = lam**y*exp(-lam)/gamma(y + 1)"],
    # ---- spectra
    "contrib.fft": ["y[k] = sum(n, data[n]*exp(-2*pi*i*k*n/N))"],
    "contrib.ifft": ["y[n] = sum(k, data[k]*exp(2*pi*i*k*n/N))"],
    "contrib.div_sqrt_dim": ["y = data/sqrt(d)"],
}
