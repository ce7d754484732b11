"""Every operator of the registry, forward and backward, with the inputs of its test record: a new one appears by itself.

About 1e5 elements each, where the parameters allow it; what a small call costs is in ``dispatch``.
"""

from mxop import autograd
from mxop.check import example, find_record
from mxop.opdef import registry

NAMES = [op.name for op in registry.operators() if find_record(op) is not None]
ELEMENTS = 100_000


class Forward:
    """One imperative call, its result allocated."""

    params = (NAMES,)
    param_names = ("operator",)

    def setup(self, name):
        self.call, self.inputs = example(name, elements=ELEMENTS)

    def time_forward(self, name):
        self.call(self.inputs)


class Backward:
    """The gradient of one recorded call with respect to all its inputs."""

    params = ([n for n in NAMES if registry.get(n).arguments and registry.get(n).differentiable],)
    param_names = ("operator",)

    def setup(self, name):
        call, inputs = example(name, elements=ELEMENTS)
        for x in inputs:
            x.attach_grad()
        with autograd.record():
            outputs = call(inputs)
        self.heads = [o for o in outputs if o.dtype.__name__.startswith("float")]
        if not self.heads:
            raise NotImplementedError("its results are integers: there is nothing to differentiate")

    def time_backward(self, name):
        autograd.backward(self.heads, retain_graph=True)
