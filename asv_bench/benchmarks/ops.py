"""Every operator of the registry, forward and backward, with the inputs of its test record: a new one appears by itself.

About 1e5 elements each, where the parameters allow it; what a small call costs is in ``dispatch``.
"""

from mxop import autograd
from mxop.check import example, find_record
from mxop.cli.timing import each, host
from mxop.opdef import registry

from .timed import timed

NAMES = [op.name for op in registry.operators() if find_record(op) is not None]
ELEMENTS = 100_000


@timed
class Forward:
    """One imperative call, its result allocated; its values are the tests' business, here that they are computed."""

    params = (NAMES,)
    param_names = ("operator",)

    def setup(self, name):
        self.call, self.inputs = example(name, elements=ELEMENTS)
        self.first = [host(a) for a in self.inputs]
        self.right = [host(a).copy() for a in each(self.call(self.inputs))]
        self.restore()

    def restore(self):
        for a, values in zip(self.inputs, self.first, strict=True):
            if a.size:
                a[...] = values

    def expected(self, _, name):
        return self.right if registry.get(name).repeatable else None

    def time_forward(self, name):
        return self.call(self.inputs)


@timed
class Backward:
    """The gradient of one recorded call with respect to all its inputs."""

    params = ([n for n in NAMES if registry.get(n).arguments and registry.get(n).differentiable],)
    param_names = ("operator",)

    def setup(self, name):
        call, self.inputs = example(name, elements=ELEMENTS)
        for x in self.inputs:
            x.attach_grad()
        with autograd.record():
            outputs = call(self.inputs)
        self.heads = [o for o in outputs if o.dtype.__name__.startswith("float")]
        if not self.heads:
            raise NotImplementedError("its results are integers: there is nothing to differentiate")
        self.right = [host(a).copy() for a in self.time_backward(name)]

    def expected(self, *_):
        return self.right

    def time_backward(self, name):
        autograd.backward(self.heads, retain_graph=True)
        return [x.grad for x in self.inputs]
