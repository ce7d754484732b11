"""Bound executors: a chain of small operators, a fused expression of large arrays, a network."""

import numpy as np

import mxop as mx
from mxop import nd


def chain():
    """Ten unary operators in a row."""
    s = mx.sym.Variable("x")
    for name in ("sin", "exp", "tanh", "sigmoid", "square", "sqrt", "log1p", "arctan", "cos", "expm1"):
        s = getattr(mx.sym, name)(s)
    return s


def network():
    """Three dense layers."""
    s = mx.sym.Variable("x")
    for k, width in enumerate((256, 256, 10)):
        s = mx.sym.FullyConnected(s, num_hidden=width, name=f"layer{k}")
        s = mx.sym.Activation(s, act_type="tanh") if width != 10 else mx.sym.log_softmax(s)
    return s


class Trained:
    """What is timed of a bound executor, for each of its sizes."""

    def time_forward(self, n):
        self.bound.forward(is_train=False)

    def time_forward_backward(self, n):
        self.bound.forward(is_train=True)
        self.bound.backward(self.head)


class Chain(Trained):
    """Ten operators on few and on many elements."""

    params = ([8, 1000, 1_000_000],)
    param_names = ("elements",)

    def setup(self, n):
        self.bound = chain().simple_bind(mx.cpu(), grad_req="write", x=(n,))
        self.bound.arg_dict["x"][:] = nd.array(np.linspace(0.1, 0.9, n))
        self.head = nd.ones((n,))
        self.bound.forward(is_train=True)


class Fused:
    """``sigmoid(x*y+z)*x`` on 1e6 float32."""

    def setup(self):
        x, y, z = (mx.sym.Variable(k) for k in "xyz")
        values = np.random.default_rng(0).normal(size=(3, 1_000_000))
        arrays = dict(zip("xyz", map(nd.array, values), strict=True))
        self.bound = (mx.sym.sigmoid(x * y + z) * x).bind(mx.cpu(), arrays)

    def time_forward(self):
        self.bound.forward(is_train=False)


def layer_norm():
    """Normalization of rows, from small operators."""
    s = mx.sym
    x, gamma, beta = map(s.Variable, ("x", "gamma", "beta"))
    centred = s.broadcast_sub(x, s.mean(x, axis=-1, keepdims=True))
    scale = s.rsqrt(s.mean(s.square(centred), axis=-1, keepdims=True) + 1e-5)
    return s.broadcast_add(s.broadcast_mul(s.broadcast_mul(centred, scale), gamma), beta)


class LayerNorm(Trained):
    """A strip: reductions of rows, and formulas around them."""

    params = ([64, 1024],)
    param_names = ("columns",)

    def setup(self, n):
        self.bound = layer_norm().simple_bind(mx.cpu(), "write", x=(1024, n), gamma=(n,), beta=(n,))
        self.bound.arg_dict["x"][:] = nd.array(np.random.default_rng(0).normal(size=(1024, n)))
        self.head = nd.ones((1024, n))
        self.bound.forward(is_train=True)


class Adam:
    """One step of an optimizer, from small operators, on 1e6 float32."""

    def setup(self):
        w, g, m, v = map(mx.sym.Variable, "wgmv")
        m2, v2 = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        step = mx.sym.Group([w - 0.001 * m2 / (mx.sym.sqrt(v2) + 1e-8), m2, v2])
        self.bound = step.simple_bind(mx.cpu(), "null", **dict.fromkeys("wgmv", (1_000_000,)))
        for array in self.bound.arg_arrays:
            array[:] = 0.5

    def time_forward(self):
        self.bound.forward(is_train=False)


class Network:
    """Forward and backward of a small classifier, and what binding it costs."""

    def setup(self):
        self.bound = network().simple_bind(mx.cpu(), grad_req="write", x=(64, 128))
        for array in self.bound.arg_arrays:
            array[:] = 0.01
        self.head = nd.ones((64, 10))
        self.bound.forward(is_train=True)

    def time_forward(self):
        self.bound.forward(is_train=False)

    def time_forward_backward(self):
        self.bound.forward(is_train=True)
        self.bound.backward(self.head)

    def time_bind(self):
        network().simple_bind(mx.cpu(), grad_req="write", x=(64, 128))


class LargeGraph:
    """Passes over, and binding of, a chain of elementwise operators."""

    params = ([1_000, 10_000],)
    param_names = ("nodes",)
    timeout = 120

    def setup(self, n):
        s = mx.sym.Variable("x")
        for k in range(n):
            s = (s * 1.01, s + 0.1, mx.sym.sin(s))[k % 3]
        self.symbol = s

    def time_passes(self, n):
        self.symbol.optimize(x=(8,))

    def time_bind(self, n):
        self.symbol.simple_bind(mx.cpu(), grad_req="null", x=(8,))

    def time_bind_with_gradient(self, n):
        self.symbol.simple_bind(mx.cpu(), grad_req="write", x=(8,))
