"""What a call costs beside its work: 8 elements."""

import numpy as np

from mxop import autograd, nd


class Call:
    """Imperative calls."""

    def setup(self):
        self.x = nd.array(np.linspace(0.1, 0.8, 8))
        self.y = nd.array(np.linspace(0.8, 0.1, 8))
        self.out = nd.zeros((8,))

    def time_add(self):
        self.x + self.y

    def time_add_scalar(self):
        self.x + 1.5

    def time_add_in_place(self):
        self.x += self.y
        self.x -= self.y

    def time_quadratic(self):
        nd.quadratic(self.x, a=1.0, b=2.0, c=3.0)

    def time_exp_out(self):
        nd.exp(self.x, out=self.out)

    def time_sum(self):
        nd.sum(self.x)

    def time_reshape(self):
        nd.reshape(self.x, shape=(2, 4))

    def time_dot(self):
        nd.dot(self.x, self.y)

    def time_asnumpy(self):
        self.x.asnumpy()

    def time_numpy_add(self):
        """NumPy's own, as the measure of the machine."""
        a, b = np.asarray(self.x), np.asarray(self.y)
        a + b


class Written:
    """Calls that are written in other ways than the one before."""

    def setup(self):
        self.x, self.w, self.b = nd.ones((2, 2)), nd.ones((2, 2)), nd.ones((2,))

    def time_inputs_by_name(self):
        nd.FullyConnected(data=self.x, weight=self.w, bias=self.b, num_hidden=2)

    def time_parameters_by_position(self):
        nd.clip(self.x, 0, 1)

    def time_other_parameters(self):
        nd.sum(self.x, axis=0)
        nd.sum(self.x, axis=1)

    def time_lists(self):
        nd.slice(self.x, begin=[0, 1], end=[2, 2])

    def time_out(self):
        nd.sum(self.x, axis=0, out=self.b)


class Arrays:
    """What is done to arrays most often."""

    def setup(self):
        self.x, self.host = nd.array(np.linspace(0.1, 0.8, 8)), np.linspace(0.1, 0.8, 8, dtype="f")
        self.matrix, self.one = self.x.reshape((2, 4)), self.x[3]

    def time_slice(self):
        self.x[1:5]

    def time_element(self):
        self.matrix[0, 1]

    def time_reshape_method(self):
        self.x.reshape((2, -1))

    def time_transpose(self):
        self.matrix.transpose()

    def time_assign_number(self):
        self.x[1:5] = 2

    def time_assign_array(self):
        self.x[:] = self.x

    def time_astype(self):
        self.x.astype("float64")

    def time_item(self):
        self.one.item()

    def time_zeros(self):
        nd.zeros((8,))

    def time_array(self):
        nd.array(self.host)

    def time_arange(self):
        nd.arange(8)


class Composite:
    """Composites, which run as plans."""

    def setup(self):
        self.x, self.gamma, self.beta = nd.array(np.linspace(0, 1, 8).reshape(2, 4)), nd.ones((4,)), nd.zeros((4,))

    def time_softmax(self):
        nd.softmax(self.x)

    def time_layer_norm(self):
        nd.LayerNorm(self.x, self.gamma, self.beta)


class Gradient:
    """Recording, backward, and the second order, of ``sin(x) * x``."""

    def setup(self):
        self.x = nd.array(np.linspace(0.1, 0.8, 8))
        self.x.attach_grad()

    def time_record(self):
        with autograd.record():
            nd.sin(self.x) * self.x

    def time_record_backward(self):
        with autograd.record():
            y = nd.sin(self.x) * self.x
        y.backward()

    def time_second_order(self):
        with autograd.record():
            y = nd.sin(self.x) * self.x
            (g,) = autograd.grad(y, [self.x], create_graph=True)
        g.backward()
