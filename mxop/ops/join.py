"""Joining, splitting, repeating and selecting: concat, stack, split, tile, repeat, where."""

from numbers import Number

from ..opdef import F, Scalar, Shape, composite, elementwise, infer, kernel
from ..support.errors import OpValueError
from ..support.shape_mode import numpy_shape
from ._shared import Count, both_ways, divided, in_steps, product_of, reviewed, size_of, taken, times


def _listed(result):
    return list(result) if isinstance(result, (list, tuple)) else [result]


# ---- concat ---------------------------------------------------------------------------------------------------------
@kernel(name="Concat", aliases=("_npi_rnn_param_concat", "_sparse_concat", "concat"), num_args_param="num_args")
def concat(*data, num_args: int = 0, dim: int = 1):
    """Concatenate arrays along an existing dimension.

    Parameters
    ----------
    *data : NDArray or Symbol
        Shapes are equal except in the dimension `dim`.

    >>> mx.nd.concat(mx.nd.array([[1, 2]]), mx.nd.array([[3, 4]]), dim=0).asnumpy().tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """


@kernel(name="_rnn_param_concat", num_args_param="num_args")
def rnn_param_concat(*data, num_args: int = 0, dim: int = 1):
    """``Concat`` of the parameters of a recurrent layer: those of unknown sizes share what is left of the output alike.

    >>> mx.nd._internal._rnn_param_concat(mx.nd.ones((2,)), mx.nd.zeros((1,)), dim=0).asnumpy().tolist()
    [1.0, 1.0, 0.0]
    """


def _joins(op, shared):
    """Give `op` the meaning of ``Concat``; `shared` tells whether several unknown sizes follow from the output's."""

    @op.shape
    def _(*shapes, num_args, dim):
        at = infer.normal_axis("Concat", dim, len(shapes[0]), "dim")
        wanted = (*shapes[0][:at], *shapes[0][at + 1 :])
        for i, s in enumerate(shapes):
            if len(s) != len(shapes[0]) or (*s[:at], *s[at + 1 :]) != wanted:
                raise OpValueError(f"operator Concat: arg0 has shape {shapes[0]} but arg{i} has shape {s}; "
                                   f"expected equal sizes except along dim={dim}")  # fmt: skip
        return (*shapes[0][:at], sum(s[at] for s in shapes), *shapes[0][at + 1 :])

    @op.infer
    def _(ins, outs, *, num_args, dim):
        if outs[0] is None and all(infer.known(s) for s in ins):
            return ins, outs
        rank = next((len(s) for s in (*ins, *outs) if s is not None), None)
        if rank is None:
            return ins, outs
        at = infer.normal_axis("Concat", dim, rank, "dim")
        names = [*(f"arg{i}" for i in range(len(ins))), "output"]
        blank = [None if s is None or at >= len(s) else (*s[:at], None, *s[at + 1 :]) for s in (*ins, *outs)]
        common = infer.same_shape("Concat", names, blank)[0]
        sizes = [None if s is None else s[at] for s in (*ins, *outs)]
        missing = [i for i, d in enumerate(sizes) if d is None]
        if missing == [len(ins)]:
            sizes[-1] = sum(sizes[:-1])
        elif sizes[-1] is not None and (len(missing) == 1 or (shared and missing)):
            left = sizes[-1] - sum(d for d in sizes[:-1] if d is not None)
            if left < 0 or left % len(missing):
                raise OpValueError(f"operator Concat: output has size {sizes[-1]} along dim={dim}, which leaves {left} for "
                                   f"{len(missing)} inputs")  # fmt: skip
            for i in missing:
                sizes[i] = left // len(missing)
        done = [(*common[:at], d, *common[at + 1 :]) for d in sizes]
        return done[:-1], done[-1:]

    @op.rearrange
    def _(xp, inputs, outputs, *, num_args, dim):
        at, dim = 0, dim % outputs[0].ndim
        for a in inputs:
            outputs[0][(slice(None),) * dim + (slice(at, at + a.shape[dim]),)] = a
            at += a.shape[dim]

    @op.gradient
    def _(F, heads, inputs, outputs, *, num_args, dim):
        return _listed(F._concat_grad(heads[0], *inputs, parts=len(inputs), dim=dim))


_joins(concat, False)
_joins(rnn_param_concat, True)


@kernel(name="_concat_grad", num_outputs=lambda *, parts, dim: parts, shape_only=slice(1, None))
def concat_grad(*data, parts: int, dim: int = 1):
    """Split the first input into parts of the shapes of the others: the gradient of ``Concat``."""


@concat_grad.shape
def _(head, *likes, parts, dim):
    return list(likes)


@concat_grad.rearrange
def _(xp, inputs, outputs, *, parts, dim):
    at, dim = 0, dim % inputs[0].ndim
    for a in outputs:
        a[...] = inputs[0][(slice(None),) * dim + (slice(at, at + a.shape[dim]),)]
        at += a.shape[dim]


@concat_grad.gradient
def _(F, heads, inputs, outputs, *, parts, dim):
    return [F.Concat(*heads, dim=dim)] + [None] * parts


# ---- stack ----------------------------------------------------------------------------------------------------------
@kernel(num_args_param="num_args")
def stack(*data, axis: int = 0, num_args: int = 0):
    """Join arrays of one shape along a new dimension.

    Parameters
    ----------
    axis : int
        Position of the new dimension in the result.

    >>> mx.nd.stack(mx.nd.array([1, 2]), mx.nd.array([3, 4]), axis=1).asnumpy().tolist()
    [[1.0, 3.0], [2.0, 4.0]]
    """


@stack.infer
def _(ins, outs, *, axis, num_args):
    back = None
    if outs[0] is not None:
        at = infer.normal_axis("stack", axis, len(outs[0]))
        back = (*outs[0][:at], *outs[0][at + 1 :])
    names = [*(f"arg{i}" for i in range(len(ins))), "a slice of the output"]
    one = infer.same_shape("stack", names, [*ins, back])[0]
    if one is None:
        return ins, outs
    at = infer.normal_axis("stack", axis, len(one) + 1)
    whole = (*one[:at], len(ins), *one[at:])
    return [one] * len(ins), infer.same_shape("stack", ["the inputs together", "output"], [whole, outs[0]])[:1]


@stack.rearrange
def _(xp, inputs, outputs, *, axis, num_args):
    before = (slice(None),) * (axis % outputs[0].ndim)
    for i, a in enumerate(inputs):
        outputs[0][(*before, i)] = a


@stack.gradient
def _(F, heads, inputs, outputs, *, axis, num_args):
    return _listed(F.SliceChannel(heads[0], num_outputs=len(inputs), axis=axis, squeeze_axis=True))


# ---- split ----------------------------------------------------------------------------------------------------------
@kernel(
    name="SliceChannel",
    aliases=("split",),
    num_outputs=lambda *, num_outputs, **params: num_outputs,
    output_names=lambda *, num_outputs, **params: [f"output{i}" for i in range(num_outputs)],  # even a single one has a number
)
def slice_channel(data, *, num_outputs: Count, axis: int = 1, squeeze_axis: bool = False):
    """Split the data into equal parts along an axis.

    Parameters
    ----------
    num_outputs : int
        Number of parts; the size of the axis is a multiple of it.
    squeeze_axis : bool
        Remove the axis, along which each part then has size 1.

    >>> [a.asnumpy().tolist() for a in mx.nd.split(mx.nd.array([[1, 2], [3, 4]]), num_outputs=2, axis=0)]
    [[[1.0, 2.0]], [[3.0, 4.0]]]
    """


@slice_channel.infer
def _(ins, outs, *, num_outputs, axis, squeeze_axis):
    data = ins[0]
    names = [f"output{i}" for i in range(num_outputs)]
    part = infer.same_shape("SliceChannel", names, outs)[0]
    if part is not None:
        at = infer.normal_axis("SliceChannel", axis, len(part) + squeeze_axis)
        size = 1 if squeeze_axis else part[at]
        whole = (*part[:at], None if size is None else size * num_outputs, *part[at + (not squeeze_axis) :])
        data = infer.same_shape("SliceChannel", ["data", "the outputs together"], [data, whole])[0]
    if data is None:
        return ins, outs
    at = infer.normal_axis("SliceChannel", axis, len(data))
    size = data[at]
    if size is not None and (size % num_outputs or (squeeze_axis and size != num_outputs)):
        raise OpValueError(
            f"operator SliceChannel: axis {axis} of {infer.show(data)} does not split into {num_outputs} equal parts"
            + (" of size 1 (squeeze_axis)" if squeeze_axis else "")
        )
    middle = () if squeeze_axis else (None if size is None else size // num_outputs,)
    part = infer.same_shape("SliceChannel", ["a part of the data", "output0"], [(*data[:at], *middle, *data[at + 1 :]), part])[
        0
    ]
    return [data], [part] * num_outputs


@slice_channel.rearrange
def _(xp, inputs, outputs, *, num_outputs, axis, squeeze_axis):
    axis %= inputs[0].ndim
    step = inputs[0].shape[axis] // num_outputs
    before = (slice(None),) * axis
    for i, a in enumerate(outputs):
        a[...] = inputs[0][(*before, i if squeeze_axis else slice(i * step, i * step + step))]


@slice_channel.gradient
def _(F, heads, inputs, outputs, *, num_outputs, axis, squeeze_axis):
    return [F.stack(*heads, axis=axis) if squeeze_axis else F.Concat(*heads, dim=axis)]


@kernel(
    name="_split_v2",
    aliases=("_npi_split",),
    num_outputs=lambda *, indices, axis, squeeze_axis, sections: sections if sections > 0 else len(indices),
)
def split_v2(data, *, indices: Shape, axis: int = 1, squeeze_axis: bool = False, sections: int = 0):
    """Split the data along an axis, into equal `sections` or at the given positions.

    Parameters
    ----------
    indices : tuple of int
        Where the parts begin (the first at 0).
    squeeze_axis : bool
        Remove the axis, along which each part then has size 1.
    sections : int
        Number of equal parts, used instead of `indices` when it is not 0.

    >>> x = mx.nd.array([1, 2, 3])
    >>> [a.asnumpy().tolist() for a in mx.nd._internal._split_v2(x, indices=(0, 1), axis=0)]
    [[1.0], [2.0, 3.0]]
    """


def _parts(size, indices, sections):
    """Return the bounds of the parts of an axis."""
    if sections > 0:
        if size % sections:
            raise OpValueError(f"operator _split_v2: an axis of size {size} cannot be split into {sections} equal parts")
        step = size // sections
        return [(i * step, i * step + step) for i in range(sections)]
    starts = [taken(i, None, 1, size)[0] for i in indices]
    return [(b, max(b, e)) for b, e in zip(starts, [*starts[1:], size], strict=True)]


@split_v2.shape
def _(data, *, indices, axis, squeeze_axis, sections):
    at = infer.normal_axis("_split_v2", axis, len(data))
    parts = _parts(data[at], indices, sections)
    if squeeze_axis and any(e - b != 1 for b, e in parts):
        raise OpValueError(f"operator _split_v2: squeeze_axis needs parts of size 1 along axis {axis} of shape {data}")
    return [(*data[:at], *(() if squeeze_axis else (e - b,)), *data[at + 1 :]) for b, e in parts]


@split_v2.infer
def _(ins, outs, *, indices, axis, squeeze_axis, sections):
    if infer.known(ins[0]) and all(s is None for s in outs):
        return ins, outs
    ranks = [len(s) for s in ins if s is not None] + [len(s) + squeeze_axis for s in outs if s is not None]
    if not ranks:
        return ins, outs
    at = infer.normal_axis("_split_v2", axis, ranks[0])
    names = ["data", *(f"output{i}" for i in range(len(outs)))]
    rests = [_without(at, s) for s in ins] + [s if squeeze_axis else _without(at, s) for s in outs]
    rest = infer.same_shape("_split_v2", names, rests)[0]
    sizes = [1 if squeeze_axis else None if s is None else s[at] for s in outs]
    whole = ins[0][at] if ins[0] is not None else None
    if whole is None and sections > 0:
        whole = next((size * sections for size in sizes if size is not None), None)
    if whole is None and None not in sizes and indices and indices[0] == 0:
        whole = sum(sizes)
    if whole is not None:
        sizes = [e - b for b, e in _parts(whole, indices, sections)]
    parts = [(*rest[:at], *(() if squeeze_axis else (size,)), *rest[at:]) for size in sizes]
    done = infer.agreed("_split_v2", names[1:], parts, outs)
    return [(*rest[:at], whole, *rest[at:])], done


def _without(at, shape):
    return None if shape is None else (*shape[:at], *shape[at + 1 :])


@split_v2.rearrange
def _(xp, inputs, outputs, *, indices, axis, squeeze_axis, sections):
    axis %= inputs[0].ndim
    before = (slice(None),) * axis
    for a, (b, e) in zip(outputs, _parts(inputs[0].shape[axis], indices, sections), strict=True):
        a[...] = inputs[0][(*before, b if squeeze_axis else slice(b, e))]


@split_v2.gradient
def _(F, heads, inputs, outputs, *, indices, axis, squeeze_axis, sections):
    if sections > 0 or not indices or indices[0] == 0:
        return [F.stack(*heads, axis=axis) if squeeze_axis else F.Concat(*heads, dim=axis)]
    raise OpValueError(f"operator _split_v2: the gradient needs indices that begin with 0, not {indices}")


# ---- repetition -----------------------------------------------------------------------------------------------------
@kernel(aliases=("_npi_tile",))
def tile(data, *, reps: Shape):
    """Repeat the whole data along each axis.

    Parameters
    ----------
    reps : tuple of int
        Repetitions of each axis, aligned at the last one; missing ones are 1, on both sides.

    >>> mx.nd.tile(mx.nd.array([1, 2]), reps=(2, 2)).asnumpy().tolist()
    [[1.0, 2.0, 1.0, 2.0], [1.0, 2.0, 1.0, 2.0]]
    """


def _aligned(shape, reps):
    rank = max(len(shape), len(reps))
    return (1,) * (rank - len(shape)) + tuple(shape), (1,) * (rank - len(reps)) + tuple(reps)


def _interleaved(a, b):
    return tuple(d for pair in zip(a, b, strict=True) for d in pair)


@tile.shape
def _(data, *, reps):
    if any(r < 0 for r in reps):
        raise OpValueError(f"operator tile: reps={reps} holds a negative number")
    if 0 in reps and not numpy_shape():
        raise OpValueError(f"operator tile: reps={reps}; expected numbers above 0, or mx.util.np_shape for an empty result")
    return tuple(times(d, r) for d, r in zip(*_aligned(data, reps), strict=True))


def _tile_backward(out, data, *, reps):
    if data is None or len(out) != max(len(data), len(reps)):
        return data
    times_ = _aligned(data, reps)[1]
    lead = len(out) - len(data)
    return tuple(divided(out[i + lead], times_[i + lead]) if d is None else d for i, d in enumerate(data))


both_ways(tile, lambda data, *, reps: None if data is None else tile._shape(data, reps=reps), _tile_backward)


@tile.rearrange
def _(xp, inputs, outputs, *, reps):
    shape, reps = _aligned(inputs[0].shape, reps)
    blocks = outputs[0].reshape(_interleaved(reps, shape))
    blocks[...] = inputs[0].reshape(_interleaved((1,) * len(shape), shape))


def _summed(F, head, blocks, axes, like):
    """Sum the repetitions, which lie along some axes of the blocks in `head`, into the shape of `like`."""
    if 0 in (*head.shape, *blocks):
        return F.zeros_like(like)
    return F.reshape_like(F.sum(F.Reshape(head, shape=blocks), axis=axes), like)


@tile.gradient
def _(F, heads, inputs, outputs, *, reps):
    shape, reps = _aligned(inputs[0].shape, reps)
    return [_summed(F, heads[0], _interleaved(reps, shape), tuple(range(0, 2 * len(shape), 2)), inputs[0])]


@kernel(aliases=("_np_repeat",))
def repeat(data, *, repeats: int, axis: int | None = None):
    """Repeat each element along an axis; without an axis, the data are flattened.

    >>> mx.nd.repeat(mx.nd.array([[1, 2]]), repeats=2, axis=1).asnumpy().tolist()
    [[1.0, 1.0, 2.0, 2.0]]
    """


def _repeat_parts(shape, axis):
    """Return the sizes before and after the place where each element is repeated."""
    if axis is None:
        return size_of(shape), 1
    at = infer.normal_axis("repeat", axis, len(shape))
    return size_of(shape[: at + 1]), size_of(shape[at + 1 :])


@repeat.shape
def _(data, *, repeats, axis):
    if repeats < 0:
        raise OpValueError(f"operator repeat: repeats={repeats} is negative")
    if axis is None:
        return (times(product_of(data), repeats),)
    at = infer.normal_axis("repeat", axis, len(data))
    return (*data[:at], times(data[at], repeats), *data[at + 1 :])


def _repeat_forward(data, *, repeats, axis):
    if data is None:
        return None if axis is not None else (None,)
    return repeat._shape(data, repeats=repeats, axis=axis)


def _repeat_backward(out, data, *, repeats, axis):
    if axis is None:
        return data
    at = infer.normal_axis("repeat", axis, len(out))
    return (*out[:at], divided(out[at], repeats), *out[at + 1 :])


both_ways(repeat, _repeat_forward, _repeat_backward)


@repeat.rearrange
def _(xp, inputs, outputs, *, repeats, axis):
    before, after = _repeat_parts(inputs[0].shape, axis)
    outputs[0].reshape(before, repeats, after)[...] = inputs[0].reshape(before, 1, after)


@repeat.gradient
def _(F, heads, inputs, outputs, *, repeats, axis):
    before, after = _repeat_parts(inputs[0].shape, axis)
    return [_summed(F, heads[0], (before, repeats, after), (1,), inputs[0])]


# ---- where ----------------------------------------------------------------------------------------------------------
@kernel(aliases=("_sparse_where",))
def where(condition, x, y):
    """Choose elements of `x` where the condition is not 0, and of `y` elsewhere.

    Parameters
    ----------
    condition : NDArray or Symbol
        Of the shape of `x`, or one-dimensional, choosing rows.  Any element type.
    x, y : NDArray, Symbol or number
        Of equal shapes and types.  A number is converted to the type of the other, or of the condition beside two numbers.

    >>> mask, x = mx.nd.array([1, 0]), mx.nd.array([1, 2])
    >>> mx.nd.where(mask, x, mx.nd.array([3, 4])).asnumpy().tolist(), mx.nd.where(mask, x, -1).asnumpy().tolist()
    ([1.0, 4.0], [1.0, -1.0])
    """


@where.infer
def _(ins, outs):
    condition, x, y = ins
    if condition is None:  # as MXNet, which asks for it first
        return ins, outs
    data = infer.same_shape("where", ("x", "y", "output"), [x, y, outs[0]])[0]
    if data is None:
        return [condition, data, data], [data]
    if len(condition) == 1 and infer.compatible(condition, data[:1]):
        condition = infer.same_shape("where", ("condition", "the rows of x"), [condition, data[:1]])[0]
        data = (*condition, *data[1:])
    else:
        condition = data = infer.same_shape("where", ("condition", "x"), [condition, data])[0]
    return [condition, data, data], [data]


@where.infer_types
def _(ins, outs):
    done = infer.same_type("where", ("x", "y", "output"), [*ins[1:], *outs])
    return [ins[0], *done[:2]], done[2:]


def _rows(condition_shape, shape):
    """Return the condition's shape as it broadcasts to the data's."""
    return condition_shape + (1,) * (len(shape) - len(condition_shape))


@in_steps(where)
def _(steps, inputs, outputs):
    condition, x, y = inputs
    if condition.dtype_code != x.dtype_code:  # a conversion could turn 0.5 into 0
        chosen = steps.temporary(condition.shape, condition.dtype_code)
        steps.call("_not_equal_scalar", {"scalar": 0}, [condition], [chosen])
        condition = steps.converted(chosen, x.dtype_code)
    steps.call("_choose", {}, [reviewed(condition, _rows(condition.shape, x.shape)), x, y], outputs)


@where.gradient
def _(F, heads, inputs, outputs):
    zero = F.zeros_like(heads[0])
    return [None, F.where(inputs[0], heads[0], zero), F.where(inputs[0], zero, heads[0])]


@elementwise(name="_filled_like")
def filled_like(data, *, scalar: Scalar):
    """An array like the data of one number; the gradient is zero."""
    return scalar


@composite(name="_where_lscalar", aliases=("_npi_where_lscalar",))
def where_lscalar(F, condition, y, *, scalar: Scalar):
    """Choose a number where the condition is not 0, and elements of `y` elsewhere: ``where(condition, 3, y)``."""
    return F.where(condition, F._filled_like(y, scalar=scalar), y)


@composite(name="_where_rscalar", aliases=("_npi_where_rscalar",))
def where_rscalar(F, condition, x, *, scalar: Scalar):
    """Choose elements of `x` where the condition is not 0, and a number elsewhere: ``where(condition, x, 3)``."""
    return F.where(condition, x, F._filled_like(x, scalar=scalar))


@elementwise(name="_where_scalars", aliases=("_npi_where_scalar2",))
def where_scalars(condition, *, x: Scalar, y: Scalar):
    """Choose one number where the condition is not 0, and another elsewhere: ``where(condition, 1, 0)``."""
    return F.where(condition, x, y)


def _with_numbers(args, kwargs):
    """Return the operator for a call of ``where`` in which numbers may stand for arrays, and its arguments."""
    given = dict(zip(("condition", "x", "y"), args, strict=False)) | kwargs
    numbers = {name: given.pop(name) for name in ("x", "y") if isinstance(given.get(name), Number)}
    if not numbers or len(args) > 3:
        return where, args, kwargs
    if len(numbers) == 2:
        return where_scalars, (), given | numbers
    name, number = numbers.popitem()
    return where_lscalar if name == "x" else where_rscalar, (), given | {"scalar": number}


where.arranged = _with_numbers


@elementwise(name="_choose", broadcast=True)
def choose(condition, x, y):
    """Choose elements of `x` where the condition is not 0, and of `y` elsewhere; all of one type."""
    return F.where(condition, x, y)
