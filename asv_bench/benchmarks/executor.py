"""Bound executors: a chain of small operators, a fused expression of large arrays, a network."""

import numpy as np

import mxop as mx
from mxop import autograd, nd
from mxop.cli.timing import host

from .timed import timed

WIDTHS = (256, 256, 10)
sym = mx.sym


def chain(F, x):
    """Ten unary operators in a row."""
    for name in ("sin", "exp", "tanh", "sigmoid", "square", "sqrt", "log1p", "arctan", "cos", "expm1"):
        x = getattr(F, name)(x)
    return x


def network(F, x, *weights):
    """Three dense layers."""
    for k, width in enumerate(WIDTHS):
        x = F.FullyConnected(x, *weights[2 * k : 2 * k + 2], num_hidden=width)
        x = F.Activation(x, act_type="tanh") if width != 10 else F.log_softmax(x)
    return x


def layer_norm(F, x, gamma, beta):
    """Normalization of rows, from small operators."""
    centred = F.broadcast_sub(x, F.mean(x, axis=-1, keepdims=True))
    scale = F.rsqrt(F.mean(F.square(centred), axis=-1, keepdims=True) + 1e-5)
    return F.broadcast_add(F.broadcast_mul(F.broadcast_mul(centred, scale), gamma), beta)


class Trained:
    """What is timed of a bound executor: its outputs and gradients, which are those of recorded calls."""

    def bind(self, program, *arrays):
        self.program, self.arrays = program, [nd.array(a) for a in arrays]
        self.grads = [nd.zeros_like(a) for a in self.arrays]
        names = [f"x{k}" for k in range(len(arrays))]
        symbol = program(sym, *map(sym.Variable, names))
        self.bound = symbol.bind(
            mx.cpu(), dict(zip(names, self.arrays, strict=True)), dict(zip(names, self.grads, strict=True))
        )
        self.bound.forward(is_train=True)
        self.head = nd.ones_like(self.bound.outputs[0])

    def expected(self, name, *params):
        copies = [a.copy() for a in self.arrays]
        for a in copies:
            a.attach_grad()
        with autograd.record():
            y = self.program(nd, *copies)
        y.backward(self.head)
        return [host(a).copy() for a in ([y] if name == "forward" else [y, *(a.grad for a in copies)])]

    def forward(self):
        return self.bound.forward(is_train=False)

    def forward_backward(self):
        self.bound.forward(is_train=True)
        self.bound.backward(self.head)
        return [*self.bound.outputs, *self.grads]


@timed
class Chain(Trained):
    """Ten operators on few and on many elements."""

    params = ([8, 1000, 1_000_000],)
    param_names = ("elements",)

    def setup(self, n):
        self.bind(chain, np.linspace(0.1, 0.9, n))

    def time_forward(self, n):
        return self.forward()

    def time_forward_backward(self, n):
        return self.forward_backward()


@timed
class Fused:
    """``sigmoid(x*y+z)*x`` on 1e6 float32."""

    def setup(self):
        x, y, z = (sym.Variable(k) for k in "xyz")
        self.values = np.random.default_rng(0).normal(size=(3, 1_000_000))
        arrays = dict(zip("xyz", map(nd.array, self.values), strict=True))
        self.bound = (sym.sigmoid(x * y + z) * x).bind(mx.cpu(), arrays)

    def expected(self, name):
        x, y, z = self.values
        return [x / (1 + np.exp(-(x * y + z)))]

    def time_forward(self):
        return self.bound.forward(is_train=False)


@timed
class LayerNorm(Trained):
    """A strip: reductions of rows, and formulas around them."""

    params = ([64, 1024],)
    param_names = ("columns",)

    def setup(self, n):
        self.bind(layer_norm, np.random.default_rng(0).normal(size=(1024, n)), np.ones(n), np.zeros(n))

    def time_forward(self, n):
        return self.forward()

    def time_forward_backward(self, n):
        return self.forward_backward()


@timed
class Adam:
    """One step of an optimizer, from small operators, on 1e6 float32."""

    def setup(self):
        self.bound = sym.Group(list(self.step(*map(sym.Variable, "wgmv"), sym.sqrt))).simple_bind(
            mx.cpu(), "null", **dict.fromkeys("wgmv", (1_000_000,))
        )
        for array in self.bound.arg_arrays:
            array[:] = 0.5

    @staticmethod
    def step(w, g, m, v, sqrt):
        m2, v2 = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        return w - 0.001 * m2 / (sqrt(v2) + 1e-8), m2, v2

    def expected(self, name):
        return list(self.step(*np.full((4, 1_000_000), 0.5), np.sqrt))

    def time_forward(self):
        return self.bound.forward(is_train=False)


@timed
class Network(Trained):
    """Forward and backward of a small classifier, and what binding it costs."""

    def setup(self):
        sizes, rng = (128, *WIDTHS), np.random.default_rng(0)
        weights = [s for k in range(3) for s in ((sizes[k + 1], sizes[k]), (sizes[k + 1],))]
        self.bind(network, *(rng.normal(0, 0.1, s) for s in ((64, 128), *weights)))

    def time_forward(self):
        return self.forward()

    def time_forward_backward(self):
        return self.forward_backward()


class Bind:
    """What binding that classifier costs."""

    def time_bind(self):
        names = [f"layer{k}_{what}" for k in range(3) for what in ("weight", "bias")]
        network(sym, *map(sym.Variable, ("x", *names))).simple_bind(mx.cpu(), grad_req="write", x=(64, 128))


class LargeGraph:
    """Passes over, and binding of, a chain of elementwise operators."""

    params = ([1_000, 10_000],)
    param_names = ("nodes",)
    timeout = 120

    def setup(self, n):
        s = sym.Variable("x")
        for k in range(n):
            s = (s * 1.01, s + 0.1, sym.sin(s))[k % 3]
        self.symbol = s

    def time_passes(self, n):
        self.symbol.optimize(x=(8,))

    def time_bind(self, n):
        self.symbol.simple_bind(mx.cpu(), grad_req="null", x=(8,))

    def time_bind_with_gradient(self, n):
        self.symbol.simple_bind(mx.cpu(), grad_req="write", x=(8,))
