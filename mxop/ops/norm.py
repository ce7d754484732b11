"""Normalization: subtract the mean and divide by the standard deviation, along axes that depend on the operator.

All are compositions, so their gradients are right at every order.  float16 data are computed in float32.  Where MXNet counts
outputs that nobody can see (``node_row_ptr`` of its files), the result stands in their place, too.
"""

from typing import Annotated, Literal

from ..opdef import Range, composite, elementwise, infer
from ..support import dtypes
from ..support.errors import OpValueError
from ._shared import divided, float_types, floats, names_of


# ---- parts -----------------------------------------------------------------------------------------------------------
@elementwise(name="_widened", out_dtype=lambda data: dtypes.COMPUTED_AS.get(data, data))
def widened(data):
    """The data in the type in which they are computed: float16 as float32."""
    return data


@widened.gradient
def _(F, heads, inputs, outputs):
    return [F._cast_like(heads[0], inputs[0])]


def _moments(F, data, **axes):
    """Return the mean, the centred data and the variance."""
    mean = F.mean(data, keepdims=True, **axes)
    centred = F.broadcast_sub(data, mean)
    return mean, centred, F.mean(F.square(centred), keepdims=True, **axes)


def _normal(F, centred, var, eps, gamma, beta):
    """Return ``centred / sqrt(var + eps) * gamma + beta``."""
    unit = F.broadcast_mul(centred, F.rsqrt(var + eps))
    return F.broadcast_add(F.broadcast_mul(unit, gamma), beta)


def _with_vectors(op, axis, data, vectors):
    """Complete the shapes of the data and of vectors along one of their axes.

    Parameters
    ----------
    op : Composite
    axis : int
    data : sequence of shapes
        Of the data and of the result, which are one.
    vectors : dict of str to shape
    """
    data = infer.same_shape(op.name, ("data", "output"), data)[0]
    at = None if data is None else infer.normal_axis(op.name, axis, len(data))
    names = [*vectors, f"the data's axis {axis}"]
    vector = infer.same_shape(op.name, names, [*vectors.values(), (None if at is None else data[at],)])[0]
    return data if at is None else (*data[:at], *vector, *data[at + 1 :]), vector


def _wide_vectors(op):
    """Let data and result have one type, and all else the type in which that is computed."""

    @op.infer_types
    def _(ins, outs, **params):
        data = infer.same_type(op.name, ("data", "output"), [ins[0], outs[0]])[0]
        wide = dtypes.COMPUTED_AS.get(floats(op, data), data)
        n, names = len(ins), names_of(op, len(ins), params)
        names = [f"what {dtypes.NAMES.get(data)} data are computed in", *names[1:n], *names[n + 1 :]]
        wide = infer.same_type(op.name, names, [wide, *ins[1:], *outs[1:]])[0]
        data = wide if data == dtypes.UNKNOWN and wide == dtypes.FLOAT64 else data
        return [data] + [wide] * (n - 1), [data] + [wide] * (len(outs) - 1)


# ---- batch normalisation ---------------------------------------------------------------------------------------------
_MOVING = {"moving_mean": 3, "moving_var": 4}
_BATCH_OUTPUTS = ("output", "mean", "var", "new_moving_mean", "new_moving_var")


def _batch(F, data, gamma, beta, *moving, eps, momentum, fix_gamma, use_global_stats, is_train, axis=1, **ignored):
    """Return the result, mean and variance that were used, and the new moving ones."""
    x, mean, var, new = F._widened(data), *moving, moving

    def along(vector):
        return F._along_channels(vector, data, axis=axis)

    if is_train and not use_global_stats:
        mean = F.mean(x, axis=axis, exclude=True)
        var = F.mean(F.square(F.broadcast_sub(x, along(mean))), axis=axis, exclude=True)
        new = [momentum * old + (1 - momentum) * now for old, now in zip(moving, (mean, var), strict=True)]
    scale = F.rsqrt(var + eps) if fix_gamma else gamma * F.rsqrt(var + eps)
    y = F.broadcast_add(F.broadcast_mul(F.broadcast_sub(x, along(mean)), along(scale)), along(beta))
    return F._cast_like(y, data), mean, var, *new


def _batch_operator(name, **options):
    """Decorate the function of an operator of the family."""
    made = composite(name=name, writes=_MOVING, num_outputs=5, output_names=_BATCH_OUTPUTS, **options,
                     visible_outputs=lambda output_mean_var, **params: 3 if output_mean_var else 1)  # fmt: skip

    def decorate(function):
        op = made(function)
        _wide_vectors(op)

        @op.infer
        def _(ins, outs, *, axis=1, **params):
            vectors = dict(zip([*op.arguments, *_BATCH_OUTPUTS], [*ins, *outs], strict=True))
            data = [vectors.pop("data"), vectors.pop("output")]
            data, vector = _with_vectors(op, axis, data, vectors)
            return [data] + [vector] * 4, [data] + [vector] * 4

        return op

    return decorate


@_batch_operator("BatchNorm", aliases=("_npx_batch_norm",))
def BatchNorm(F, data, gamma, beta, moving_mean, moving_var, *, eps: float = 1e-3, momentum: float = 0.9,
              fix_gamma: bool = True, use_global_stats: bool = False, output_mean_var: bool = False, axis: int = 1,
              cudnn_off: bool = False, min_calib_range: float | None = None, max_calib_range: float | None = None,
              is_train):  # fmt: skip
    """Normalize each channel over the batch: ``(data - mean) / sqrt(var + eps) * gamma + beta``.

    In training, mean and variance are those of the data, and the moving ones become ``momentum * moving +
    (1 - momentum) * new`` in the forward pass.  In inference, the moving ones are used.

    Parameters
    ----------
    data : NDArray or Symbol
        Channels are along `axis`.
    gamma, beta : NDArray or Symbol
        One number for each channel; float32 where the data are float16.
    moving_mean, moving_var : NDArray or Symbol
        States of the same shape and type.
    fix_gamma : bool
        Use 1 instead of `gamma`, which then has gradient 0.
    use_global_stats : bool
        Use the moving mean and variance in training as well.
    output_mean_var : bool
        Also return the mean and ``1 / sqrt(var + eps)``.
    min_calib_range, max_calib_range
        Have no effect.

    >>> x, one, zero = mx.nd.array([[1, 2], [3, 6]]), mx.nd.ones((2,)), mx.nd.zeros((2,))
    >>> mean, var = mx.nd.zeros((2,)), mx.nd.ones((2,))
    >>> with mx.autograd.train_mode():
    ...     mx.nd.BatchNorm(x, one, zero, mean, var, eps=0).asnumpy().tolist()
    [[-1.0, -1.0], [1.0, 1.0]]
    >>> mean.asnumpy().round(4).tolist(), var.asnumpy().round(4).tolist()
    ([0.20000000298023224, 0.4000000059604645], [1.0, 1.2999999523162842])
    """
    known = {"eps": eps, "momentum": momentum, "fix_gamma": fix_gamma, "use_global_stats": use_global_stats}
    y, mean, var, *new = _batch(F, data, gamma, beta, moving_mean, moving_var, axis=axis, is_train=is_train, **known)
    return y, mean, F.rsqrt(var + eps), *new


@_batch_operator("_contrib_BatchNormWithReLU", extra_params=BatchNorm.spec.params)
def batch_norm_with_relu(F, data, gamma, beta, moving_mean, moving_var, *, is_train, **params):
    """``BatchNorm`` followed by ``relu``.

    >>> x, one, zero = mx.nd.array([[-1], [2]]), mx.nd.ones((1,)), mx.nd.zeros((1,))
    >>> mx.nd.contrib.BatchNormWithReLU(x, one, zero, zero.copy(), one.copy(), eps=0).asnumpy().tolist()
    [[0.0], [2.0]]
    """
    y, *others = BatchNorm.function(F, data, gamma, beta, moving_mean, moving_var, is_train=is_train, **params)
    return F.relu(y), *others


_V1 = BatchNorm.spec.params[:5]  # those before the axis


@_batch_operator("BatchNorm_v1", extra_params=_V1)
def BatchNorm_v1(F, data, gamma, beta, moving_mean, moving_var, *, is_train, **params):
    """``BatchNorm`` along axis 1, for older models; with `output_mean_var` it returns the mean and the variance.

    >>> x, one, zero = mx.nd.array([[-1], [2]]), mx.nd.ones((1,)), mx.nd.zeros((1,))
    >>> mx.nd.BatchNorm_v1(x, one, zero, zero.copy(), one.copy(), eps=0).asnumpy().tolist()
    [[-1.0], [2.0]]
    """
    return _batch(F, data, gamma, beta, moving_mean, moving_var, is_train=is_train, **params)


@_batch_operator("_contrib_SyncBatchNorm", extra_params=_V1, param_order=[*(p.name for p in _V1), "ndev", "key"])
def sync_batch_norm(F, data, gamma, beta, moving_mean, moving_var, *, ndev: int = 1, key: str, is_train, **params):
    """``BatchNorm_v1``: as one device has the whole batch here, `ndev` and `key` have no effect.

    >>> x, one, zero = mx.nd.array([[-1], [2]]), mx.nd.ones((1,)), mx.nd.zeros((1,))
    >>> mx.nd.contrib.SyncBatchNorm(x, one, zero, zero.copy(), one.copy(), eps=0, key="a").asnumpy().tolist()
    [[-1.0], [2.0]]
    """
    return _batch(F, data, gamma, beta, moving_mean, moving_var, is_train=is_train, **params)


# ---- of each sample --------------------------------------------------------------------------------------------------
def _mean_and_std(output_mean_var, **params):
    return 3 if output_mean_var else 1


_WITH_STD = ("output", "mean", "std")


def _with_std(F, y, data, mean, var, *, axis, eps, output_mean_var):
    """Return the three outputs that MXNet counts, in one type; of those that nobody sees it does not matter what they are."""
    if not output_mean_var:
        return [y] * 3
    like = F.mean(data, axis=axis, keepdims=True)
    return [y, *(F._cast_like(v, like) for v in (mean, F.sqrt(var + eps)))]


@float_types
@composite(aliases=("_npx_layer_norm",), num_outputs=3, visible_outputs=_mean_and_std, output_names=_WITH_STD)
def LayerNorm(F, data, gamma, beta, *, axis: int = -1, eps: float = 1e-5, output_mean_var: bool = False):
    """Normalize along an axis: ``(data - mean) / sqrt(var + eps) * gamma + beta``.

    Parameters
    ----------
    gamma, beta : NDArray or Symbol
        One number for each position along `axis`.
    output_mean_var : bool
        Also return the means and ``sqrt(var + eps)``; both keep the axis, with size 1.

    >>> x = mx.nd.array([[1, 3], [2, 6]])
    >>> mx.nd.LayerNorm(x, mx.nd.array([1, 2]), mx.nd.array([0, 1]), eps=0).asnumpy().tolist()
    [[-1.0, 3.0], [-1.0, 3.0]]
    """
    x = F._widened(data)
    mean, centred, var = _moments(F, x, axis=axis)
    weights = [F._along_channels(F._widened(v), data, axis=axis) for v in (gamma, beta)]
    y = F._cast_like(_normal(F, centred, var, eps, *weights), data)
    return _with_std(F, y, data, mean, var, axis=axis, eps=eps, output_mean_var=output_mean_var)


@LayerNorm.infer
def _(ins, outs, *, axis, output_mean_var, **params):
    data, vector = _with_vectors(LayerNorm, axis, [ins[0], outs[0]], {"gamma": ins[1], "beta": ins[2]})
    if data is not None:
        at = infer.normal_axis("LayerNorm", axis, len(data))
        reduced = (*data[:at], 1, *data[at + 1 :]) if output_mean_var else data
        outs = [data, *infer.agreed("LayerNorm", ("mean", "std"), [reduced] * 2, outs[1:])]
    return [data, vector, vector], outs


@float_types
@composite(num_outputs=3, visible_outputs=_mean_and_std, output_names=_WITH_STD)
def GroupNorm(F, data, gamma, beta, *, num_groups: Annotated[int, Range(1)] = 1, eps: float = 1e-5,
              output_mean_var: bool = False):  # fmt: skip
    """Normalize each group of channels of each sample.

    Parameters
    ----------
    data : NDArray or Symbol
        ``(batch, channels, ...)``.
    gamma, beta : NDArray or Symbol
        One number for each group.
    num_groups : int
        Divides the number of channels.
    output_mean_var : bool
        Also return the means and ``sqrt(var + eps)``, both ``(batch, num_groups)``.

    >>> x = mx.nd.array([[[1], [3], [2], [6]]])
    >>> mx.nd.GroupNorm(x, mx.nd.array([1, 2]), mx.nd.array([0, 1]), num_groups=2, eps=0).asnumpy().ravel().tolist()
    [-1.0, 1.0, -1.0, 3.0]
    """
    groups = F.Reshape(data, shape=(0, num_groups, -1))
    mean, centred, var = _moments(F, F._widened(groups), axis=2)
    weights = [F.Reshape(F._widened(v), shape=(1, -1, 1)) for v in (gamma, beta)]
    y = F._cast_like(F.reshape_like(_normal(F, centred, var, eps, *weights), data), data)
    y, mean, std = _with_std(F, y, groups, mean, var, axis=2, eps=eps, output_mean_var=output_mean_var)
    return [y, F.Flatten(mean), F.Flatten(std)] if output_mean_var else [y] * 3


@GroupNorm.infer
def _(ins, outs, *, num_groups, output_mean_var, **params):
    data = infer.same_shape("GroupNorm", ("data", "output"), [ins[0], outs[0]])[0]
    vector = infer.same_shape("GroupNorm", ("gamma", "beta", "the groups"), [*ins[1:], (num_groups,)])[0]
    if data is None:
        return [data, vector, vector], outs
    if len(data) < 3:
        raise OpValueError(f"operator GroupNorm: data has shape {infer.show(data)}; expected at least 3 dimensions")
    if data[1] is not None and divided(data[1], num_groups) is None:
        raise OpValueError(f"operator GroupNorm: {data[1]} channels are not divisible by num_groups={num_groups}")
    shown = (data[0], num_groups) if output_mean_var else data
    return [data, vector, vector], [data, *infer.agreed("GroupNorm", ("mean", "std"), [shown] * 2, outs[1:])]


@float_types
@composite(num_outputs=3, visible_outputs=1, output_names=("output", "mean", "var"))
def InstanceNorm(F, data, gamma, beta, *, eps: float = 1e-3):
    """Normalize each channel of each sample over the other axes.

    Parameters
    ----------
    data : NDArray or Symbol
        ``(batch, channels, ...)``.
    gamma, beta : NDArray or Symbol
        One number for each channel.

    >>> x = mx.nd.array([[[1, 3], [2, 6]]])
    >>> mx.nd.InstanceNorm(x, mx.nd.array([1, 2]), mx.nd.array([0, 1]), eps=0).asnumpy().tolist()
    [[[-1.0, 1.0], [-1.0, 3.0]]]
    """
    x = F._widened(F.Reshape(data, shape=(0, 0, -1)))
    _, centred, var = _moments(F, x, axis=2)
    weights = [F.Reshape(F._widened(v), shape=(1, -1, 1)) for v in (gamma, beta)]
    return [F._cast_like(F.reshape_like(_normal(F, centred, var, eps, *weights), data), data)] * 3


@InstanceNorm.infer
def _(ins, outs, **params):
    data, vector = _with_vectors(InstanceNorm, 1, [ins[0], outs[0]], {"gamma": ins[1], "beta": ins[2]})
    if data is not None and len(data) < 3:
        raise OpValueError(f"operator InstanceNorm: data has shape {infer.show(data)}; expected at least 3 dimensions")
    return [data, vector, vector], [data] * 3


# ---- by length -------------------------------------------------------------------------------------------------------
@float_types
@composite(num_outputs=2, visible_outputs=1, output_names=("output", "norm"))
def L2Normalization(F, data, *, eps: float = 1e-10, mode: Literal["channel", "instance", "spatial"] = "instance"):
    """Divide by the L2 norm, ``sqrt(sum(data**2) + eps)``.

    Parameters
    ----------
    data : NDArray or Symbol
        ``(batch, channels, ...)``.
    mode : {'instance', 'channel', 'spatial'}
        The norm of each sample, of the channels at each position, or of the positions of each channel.

    >>> mx.nd.L2Normalization(mx.nd.array([[3, 4], [0, 2]])).asnumpy().round(4).tolist()
    [[0.6000000238418579, 0.800000011920929], [0.0, 1.0]]
    """
    axes = {"instance": (0, True), "channel": (1, False), "spatial": ((0, 1), True)}
    axis, exclude = axes[mode]
    x = F._widened(data)
    total = F.sum(F.square(x), axis=axis, exclude=exclude, keepdims=True)
    return [F._cast_like(F.broadcast_mul(x, F.rsqrt(total + eps)), data)] * 2


@L2Normalization.infer
def _(ins, outs, *, mode, **params):
    data, out = infer.same_shape("L2Normalization", ("data", "output"), [ins[0], outs[0]])
    least = {"instance": 1, "channel": 2, "spatial": 3}[mode]
    if data is not None and len(data) < least:
        raise OpValueError(f"operator L2Normalization: data has shape {infer.show(data)}; mode={mode!r} needs at least "
                           f"{least} dimensions")  # fmt: skip
    return [data], [out] * 2


@float_types
@composite(num_outputs=2, visible_outputs=1, output_names=("output", "tmp_norm"))
def LRN(F, data, *, alpha: float = 1e-4, beta: float = 0.75, knorm: float = 2.0, nsize: Annotated[int, Range(1)]):
    """Local response normalization: ``data / (knorm + alpha / nsize * sum of squares of nearby channels) ** beta``.

    Parameters
    ----------
    data : NDArray or Symbol
        ``(batch, channels, ...)``.
    nsize : int
        Number of neighbouring channels, with the channel itself in the middle; channels beyond the ends count as 0.

    >>> x = mx.nd.array([[[[1]], [[2]], [[4]]]])
    >>> mx.nd.LRN(x, nsize=3, alpha=3, beta=1, knorm=1).asnumpy().ravel().round(4).tolist()
    [0.16670000553131104, 0.0908999964594841, 0.19050000607967377]
    """
    x = F._widened(data)
    squares, before = F.square(x), nsize // 2
    empty = F.zeros_like(F.slice_axis(squares, axis=1, begin=0, end=1))
    padded = F.Concat(*[empty] * before, squares, *[empty] * (nsize - 1 - before), dim=1)
    ends = [k - nsize + 1 or None for k in range(nsize)]
    near = F.add_n(*[F.slice_axis(padded, axis=1, begin=k, end=end) for k, end in enumerate(ends)])
    return [F._cast_like(x * (knorm + alpha / nsize * near) ** -beta, data)] * 2


@LRN.infer
def _(ins, outs, **params):
    data, out = infer.same_shape("LRN", ("data", "output"), [ins[0], outs[0]])
    if data is not None and len(data) < 2:
        raise OpValueError(f"operator LRN: data has shape {infer.show(data)}; expected at least 2 dimensions")
    return [data], [out] * 2
