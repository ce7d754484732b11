"""What a call costs beside its work: 8 elements."""

import numpy as np

from mxop import autograd, nd

from .timed import timed

UP, DOWN = np.linspace(0.1, 0.8, 8, dtype="f"), np.linspace(0.8, 0.1, 8, dtype="f")


@timed
class Call:
    """Imperative calls."""

    small = True

    def expected(self, name):
        y = {"add": UP + DOWN, "add_scalar": UP + 1.5, "add_in_place": UP, "quadratic": UP * UP + 2 * UP + 3, "sum": UP.sum(),
             "exp_out": np.exp(UP), "reshape": UP.reshape(2, 4), "dot": UP @ DOWN, "asnumpy": UP,
             "numpy_add": UP + DOWN}  # fmt: skip
        return [np.asarray(y[name])]

    def restore(self):
        self.x[:] = UP

    def setup(self):
        self.x, self.y = nd.array(UP), nd.array(DOWN)
        self.out = nd.zeros((8,))

    def time_add(self):
        return self.x + self.y

    def time_add_scalar(self):
        return self.x + 1.5

    def time_add_in_place(self):
        self.x += self.y
        self.x -= self.y
        return self.x

    def time_quadratic(self):
        return nd.quadratic(self.x, a=1.0, b=2.0, c=3.0)

    def time_exp_out(self):
        return nd.exp(self.x, out=self.out)

    def time_sum(self):
        return nd.sum(self.x)

    def time_reshape(self):
        return nd.reshape(self.x, shape=(2, 4))

    def time_dot(self):
        return nd.dot(self.x, self.y)

    def time_asnumpy(self):
        return self.x.asnumpy()

    def time_numpy_add(self):
        """NumPy's own, as the measure of the machine."""
        a, b = np.asarray(self.x), np.asarray(self.y)
        return a + b


@timed
class Written:
    """Calls that are written in other ways than the one before."""

    small = True

    def expected(self, name):
        ones, two = np.ones((2, 2)), np.full(2, 2.0)
        return {"inputs_by_name": [ones * 3], "parameters_by_position": [ones], "other_parameters": [two, two],
                "lists": [np.ones((2, 1))], "out": [two]}[name]  # fmt: skip

    def restore(self):
        self.b[:] = 1

    def setup(self):
        self.x, self.w, self.b = nd.ones((2, 2)), nd.ones((2, 2)), nd.ones((2,))

    def time_inputs_by_name(self):
        return nd.FullyConnected(data=self.x, weight=self.w, bias=self.b, num_hidden=2)

    def time_parameters_by_position(self):
        return nd.clip(self.x, 0, 1)

    def time_other_parameters(self):
        return nd.sum(self.x, axis=0), nd.sum(self.x, axis=1)

    def time_lists(self):
        return nd.slice(self.x, begin=[0, 1], end=[2, 2])

    def time_out(self):
        return nd.sum(self.x, axis=0, out=self.b)


@timed
class Arrays:
    """What is done to arrays most often."""

    small = True

    def expected(self, name):
        number = UP.copy()
        number[1:5] = 2
        y = {"slice": UP[1:5], "element": UP[1], "reshape_method": UP, "transpose": UP.reshape(2, 4).T, "assign_number": number,
             "assign_array": UP, "astype": UP, "item": UP[3], "zeros": UP * 0, "array": UP, "arange": np.arange(8)}  # fmt: skip
        return [np.asarray(y[name])]

    def restore(self):
        self.x[:] = UP

    def setup(self):
        self.x, self.host = nd.array(UP), UP.copy()
        self.matrix, self.one = self.x.reshape((2, 4)), self.x[3]

    def time_slice(self):
        return self.x[1:5]

    def time_element(self):
        return self.matrix[0, 1]

    def time_reshape_method(self):
        return self.x.reshape((2, -1))

    def time_transpose(self):
        return self.matrix.transpose()

    def time_assign_number(self):
        self.x[1:5] = 2
        return self.x

    def time_assign_array(self):
        self.x[:] = self.x
        return self.x

    def time_astype(self):
        return self.x.astype("float64")

    def time_item(self):
        return self.one.item()

    def time_zeros(self):
        return nd.zeros((8,))

    def time_array(self):
        return nd.array(self.host)

    def time_arange(self):
        return nd.arange(8)


@timed
class Composite:
    """Composites, which run as plans."""

    small = True

    def expected(self, name):
        x = np.linspace(0, 1, 8).reshape(2, 4)
        if name == "softmax":
            return [np.exp(x) / np.exp(x).sum(1, keepdims=True)]
        return [(x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)]

    def setup(self):
        self.x, self.gamma, self.beta = nd.array(np.linspace(0, 1, 8).reshape(2, 4)), nd.ones((4,)), nd.zeros((4,))

    def time_softmax(self):
        return nd.softmax(self.x)

    def time_layer_norm(self):
        return nd.LayerNorm(self.x, self.gamma, self.beta)


@timed
class Gradient:
    """Recording, backward, and the second order, of ``sin(x) * x``."""

    small = True

    def expected(self, name):
        values = [np.sin(UP) * UP, np.cos(UP) * UP + np.sin(UP), 2 * np.cos(UP) - np.sin(UP) * UP]
        return values[: {"record": 1, "record_backward": 2, "second_order": 3}[name]]

    def setup(self):
        self.x = nd.array(UP)
        self.x.attach_grad()

    def time_record(self):
        with autograd.record():
            return nd.sin(self.x) * self.x

    def time_record_backward(self):
        with autograd.record():
            y = nd.sin(self.x) * self.x
        y.backward()
        return y, self.x.grad

    def time_second_order(self):
        with autograd.record():
            y = nd.sin(self.x) * self.x
            (g,) = autograd.grad(y, [self.x], create_graph=True)
        g.backward()
        return y, g, self.x.grad
