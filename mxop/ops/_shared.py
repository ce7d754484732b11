"""What kernels of several families share: inference in both directions, and array code that serves both devices.

The functions that need an operator alone, as :func:`equal_shapes`, return it: they may stand above its kind, as decorators.
"""

from functools import lru_cache
from importlib import import_module
from math import prod as size_of
from typing import Annotated

from ..opdef import Attrs, Range, infer
from ..opdef.operator import no_gradient
from ..opdef.parts import reviewed as reviewed
from ..support import dtypes
from ..support.errors import OpTypeError, OpValueError

Count = Annotated[int, Range(1)]


def both_ways(op, forward, backward=None):
    """Let a kernel or composite of one output complete shapes in both directions.

    Parameters
    ----------
    op : Kernel or Composite
        A kernel that has neither a shape rule nor a view rule by now takes `forward` for its shape rule.
    forward : callable
        ``forward(*input_shapes, **params)`` returns the output's shape as far as it follows; dimensions may be None.
    backward : callable, optional
        ``backward(output_shape, *input_shapes, **params)`` returns the first input's shape as far as it follows.
    """

    if op.kind == "kernel" and op._shape is None and op.make_view is None:
        op.shape(forward)

    @op.infer
    def _(ins, outs, **params):
        if outs[0] is None and all(infer.known(s) for s in ins):
            return ins, outs  # a call on arrays: the shape rule says it all
        names = ["output", "expected by its inputs"]
        outs = infer.same_shape(op.name, names, [outs[0], forward(*ins, **params)])[:1]
        if backward is not None and outs[0] is not None:
            names = [op.arguments[0], "expected by its output"]
            ins[0] = infer.same_shape(op.name, names, [ins[0], backward(outs[0], *ins, **params)])[0]
            again = forward(*ins, **params)
            outs = infer.same_shape(op.name, ["output", "expected by its inputs"], [outs[0], again])[:1]
        return ins, outs


def equal_shapes(op):
    """Let the first input of a kernel or composite and its output have one shape, known in both directions."""
    both_ways(op, lambda shape, /, *others, **params: shape, lambda out, *ins, **params: out)
    return op


def shaped_like(grad, forward):
    """Let `grad`, the gradient of an operator, have its second input's shape, when its first fits that.

    ``forward(like, **params)`` is the shape that the operator itself gives.
    """

    @grad.shape
    def _(head, like, **params):
        wanted = tuple(forward(like, **params))
        if tuple(head) != wanted:
            raise OpValueError(f"operator {grad.name}: {grad.arguments[0]} has shape {head}, expected {wanted}")
        return like


def typed_by_first(op, first=0, *, others=False):
    """Let the outputs have the type of the first input, or of a later one; the other inputs may have any.

    With `others`, those of which nothing is known have it, too, as in MXNet.
    """

    @op.infer_types
    def _(ins, outs, **params):
        names = names_of(op, len(ins), params)
        names = [names[first], *names[len(ins) :]]
        done = infer.same_type(op.name, names, [ins[first], *outs])
        rest = [done[0] if others and t == dtypes.UNKNOWN else t for t in ins]
        return [*rest[:first], done[0], *rest[first + 1 :]], done[1:]

    return op


def one_type(op):
    """Let inputs and outputs have one type, also while the shapes that the function reads are unknown."""

    @op.infer_types
    def _(ins, outs, **params):
        done = infer.same_type(op.name, names_of(op, len(ins), params), [*ins, *outs])
        return done[: len(ins)], done[len(ins) :]

    return op


def names_of(op, n, params):
    """Return the names of the `n` inputs of a call, then those of its outputs."""
    attrs = Attrs(tuple(params), tuple(params.values()))
    return [*op.input_names(attrs, n), *op.output_names(attrs, n)]


def floats(op, dtype):
    """Return a type that is a float's, or unknown; raise for others."""
    if dtype not in (*dtypes.FLOATS, dtypes.UNKNOWN):
        raise OpTypeError(f"operator {op.name}: needs floating-point data, got {dtypes.NAMES[dtype]}")
    return dtype


def float_types(op, *, allowed=dtypes.FLOATS, told="floating-point", **apart):
    """Let inputs and outputs have one of the `allowed` types, as in MXNet; messages call these `told`.

    Those in `apart` may have any: by default that type, where None is given, or the one that is.
    """

    @op.infer_types
    def _(ins, outs, **params):
        types = dict(zip(names_of(op, len(ins), params), [*ins, *outs], strict=True))
        one = {name: t for name, t in types.items() if name not in apart}
        found = infer.same_type(op.name, list(one), list(one.values()))[0]
        if found not in (*allowed, dtypes.UNKNOWN):
            raise OpTypeError(f"operator {op.name}: needs {told} data, got {dtypes.NAMES[found]}")
        done = [found if name in one else _default(t, apart[name], found) for name, t in types.items()]
        return done[: len(ins)], done[len(ins) :]

    return op


def _default(given, wanted, data):
    """Return the type of an input that may have any."""
    return given if given != dtypes.UNKNOWN else data if wanted is None else wanted


#: What functions on a GPU wait for that refuse indices, or regions, and those that run on the CPU.
IN_RANGE, HOST = "whether the indices are in range", "the copies of its arrays, as it runs on the CPU"
IN_IMAGES = "whether the regions are of images that there are"


def on_both(op, waits=""):
    """Decorate ``run(xp, inputs, outputs, **params)``, written for NumPy's and CuPy's arrays alike."""
    return op.both(waits=waits)


def in_steps(op):
    """Decorate ``run(steps, inputs, outputs, **params)`` for both devices, whose steps are moves and calls of operators."""

    def decorate(run):
        op.cpu(prepared=True)(run)
        op.run_gpu = run

    return decorate


def in_loops(op, real=True, waits=""):
    """Decorate ``run(xp, inputs, outputs, **params)`` for both devices; :func:`loops` returns the loops that it calls.

    Inputs are in C order, those that are to be `real` float64 or int64 if they were, else float32.
    """

    def decorate(run):
        @op.both(waits=waits)
        def _(xp, inputs, outputs, **params):
            import numpy as np

            given = [xp.ascontiguousarray(a, a.dtype if a.dtype.itemsize == 8 or not real else np.float32) for a in inputs]
            with np.errstate(all="ignore"):  # numbers that are infinite or NaN have results, as on a GPU
                run(xp, given, outputs, **params)

    return decorate


def on_host(op, real=True):
    """Decorate ``run(np, inputs, outputs, **params)`` as :func:`in_loops`, for copies where the arrays are on a GPU."""

    def decorate(run):
        @in_loops(op, real, HOST)
        def _(xp, inputs, outputs, **params):
            import numpy as np

            own = xp is np
            found = outputs if own else [np.empty(a.shape, a.dtype) for a in outputs]
            run(np, inputs if own else [xp.asnumpy(a) for a in inputs], found, **params)
            for place, result in zip(() if own else outputs, found, strict=False):
                place[...] = xp.asarray(result)

    return decorate


def device_of(data):
    """Return the device of an array, as operators that make arrays take it: nothing for the first CPU, and in a graph."""
    place = str(data.context) if hasattr(type(data), "context") else ""  # any name asked of a value in a graph is an operator
    return "" if place == "cpu(0)" else place


@lru_cache
def compiled(name):
    """Return a module of compiled kernels: this folder is read before they are built, and imports none of them."""
    return import_module(f"mxop._kernels.{name}")


def loops(xp, name):
    """Return a module of compiled kernels, or for CuPy's arrays the module of CUDA kernels that has its functions, too."""
    return compiled(name) if xp.__name__ == "numpy" else import_module("mxop._gpu.images")


def element(number, dtype, who):
    """Return a number as an element of a type: cut, and wrapped; what 64 bits do not hold is refused."""
    import numpy as np

    found = np.asarray(number)
    dtypes.check_numbers(found, dtypes.code_of(dtype), f"operator {who}")
    return np.asarray(int(number) if found.dtype.kind == "f" and dtype.kind in "iu" else found).astype(dtype)[()]


def along(shape, axis):
    """Return the number of elements before, along and after an axis; without one, all elements are one row."""
    if axis is None:
        return 1, size_of(shape), 1
    at = axis % len(shape)
    return size_of(shape[:at]), shape[at], size_of(shape[at + 1 :])


def flat(a):
    """Return an array of four dimensions with the last two as one."""
    return a.reshape(*a.shape[:2], size_of(a.shape[2:]))


def two_sizes(op, name, sizes):
    """Return a parameter that is a height and a width."""
    if len(sizes) != 2 or not all(n and n > 0 for n in sizes):
        raise OpValueError(f"operator {op}: {name}={sizes}; expected two sizes above 0, height and width")
    return sizes


def taken(begin, end, step, size):
    """Return where the slice of so many elements begins and ends, by Python's rules, and how many it takes.

    By comparisons alone, as a symbolic size is one of many.

    >>> taken(None, -1, 2, 6), taken(None, None, -2, 6)
    ((0, 5, 3), (5, -1, 3))
    """
    low, high = (0, size) if step > 0 else (-1, size - 1)

    def place(at, default):
        if at is None:
            return default
        return max(at + size, low) if at < 0 else min(at, high)

    start, stop = (place(begin, low), place(end, high)) if step > 0 else (place(begin, high), place(end, low))
    return start, stop, max(stop - start if step == 1 else -((start - stop) // step), 0)


def times(a, b):
    """Return the product of two sizes, None when it is not known."""
    return 0 if 0 in (a, b) else None if None in (a, b) else a * b


def divided(size, by):
    """Return ``size / by``, None when that is not known, or no size."""
    return None if None in (size, by) or by == 0 or size % by else size // by


def product_of(dims):
    """Return the product of sizes, None when one is unknown."""
    return None if None in dims else size_of(dims)


def zero_gradient(op):
    """State that the gradient is zero everywhere."""
    op.gradient(no_gradient)
    return op


def adjoint(op, other):
    """State that two operators, or one alone, linear in their first inputs, are the gradient of each other.

    Where `other` has an input more, its last one, that is the first input of `op`, whose shape it takes.
    """
    for one, two in ((op, other), (other, op)):
        one.gradient(_applied(two, len(two.arguments) - len(one.arguments)))


def _applied(op, more):
    """Return the rule of a gradient that `op` is, which has so many inputs more, and takes the parameters that it has."""

    def rule(F, heads, inputs, outputs, **params):
        rest = [*inputs[1:], inputs[0]] if more > 0 else inputs[1 : len(inputs) + more]
        own = {name: value for name, value in params.items() if name in op.spec.names}
        return [getattr(F, op.name)(heads[0], *rest, **own)] + [None] * (len(inputs) - 1)

    return rule
