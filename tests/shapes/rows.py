"""Row kernels: softmax and its kin, normalisations, losses; rows along any axis, of lengths around blocks."""

import numpy as np

import mxop as mx

from .drawing import Case, operator
from .numpy_space import Numpy
from .reference import exp, log, moved, sqrt, value


def _rows(draw, least=1, most=4, empty=0.0):
    return draw.shape(least, most, empty=empty)


def _softmax(x, axis):
    e = exp(x - value(x.data.max(axis, keepdims=True)))
    return e / e.sum((axis % x.ndim,), True)


def softmax(draw):
    shape, op = _rows(draw), draw.pick(["softmax", "softmin", "log_softmax"])
    axis, temperature = draw.axis(len(shape)), draw.pick([None, None, 0.5, 2.0])

    def rows(x):
        x = -x if op == "softmin" else x
        x = x * (1 / temperature) if temperature else x
        if op != "log_softmax":
            return _softmax(x, axis)
        high = value(x.data.max(axis, keepdims=True))
        return x - high - log(exp(x - high).sum((axis % x.ndim,), True))

    return operator(op, [draw.real(*shape, low=-4, high=4)], rows, axis=axis, temperature=temperature)


def softmax_of_lengths(draw):
    shape = _rows(draw, 2, 3)
    axis = draw.axis(len(shape))
    k = axis % len(shape)
    lengths = draw.whole(1, shape[k], shape[:k] + shape[k + 1 :], draw.pick(["int32", "int64"]))

    def rows(x, length):
        where = np.arange(shape[k]).reshape(-1, *(1,) * (len(shape) - k - 1)) < np.expand_dims(length, k)
        e = exp(x - value(np.where(where, x.data, -np.inf).max(k, keepdims=True))) * value(where)
        return e / e.sum((k,), True)

    return operator("softmax", [draw.real(*shape), lengths], rows, axis=axis, use_length=True, tags=["lengths"])


def softmax_activation(draw):
    shape, mode = _rows(draw, 2, 4), draw.pick(["instance", "channel"])

    def rows(x):
        if mode == "channel":
            return _softmax(x, 1)
        return _softmax(x, -1)

    return operator("SoftmaxActivation", [draw.real(*shape)], rows, mode=mode)


def softmax_output(draw):
    """Its gradient is that of the cross entropy, whatever the head gradient is."""
    multi = draw.flag(0.4)
    shape = _rows(draw, 3, 4) if multi else _rows(draw, 2, 2)
    ignore, scale, normalization = draw.flag(), draw.pick([1.0, 0.5]), draw.pick(["null", "batch", "valid"])
    places = shape[:1] + shape[2:] if multi else shape[:1]
    label = draw.whole(0, shape[1] - 1, places, "float32")
    head = draw.flag(0.3)
    smooth = draw.pick([0.0, 0.0, 0.1]) if shape[1] > 1 else 0.0

    def slope(heads, x, label):
        p, k = _softmax(x, 1).data, shape[1]
        hot = (np.arange(k).reshape(1, -1, *(1,) * (len(shape) - 2)) == np.expand_dims(label, 1)) * 1.0
        hot = hot * (1 - smooth) + (1 - hot) * (smooth / (k - 1) if k > 1 else 0.0)
        valid = label != 0  # is counted whether others are ignored or not
        found = (p - hot) * scale * (np.expand_dims(valid, 1) if ignore else 1.0)
        each = np.prod(shape[2:]) if normalization != "valid" else 1  # places of an image
        found = found / each / {"null": 1, "batch": shape[0], "valid": max(valid.sum(), 1)}[normalization]
        return [found * heads[0] if head else found]

    return operator("SoftmaxOutput", [draw.real(*shape), label], lambda x, y: _softmax(x, 1), gradient=slope,
                    multi_output=multi, use_ignore=ignore, ignore_label=0.0, grad_scale=scale, normalization=normalization,
                    out_grad=head, smooth_alpha=smooth, dtypes=("float32",))  # fmt: skip


def cross_entropy(draw):
    shape = _rows(draw, 2, 2)

    def loss(x, label):
        picked = moved(_softmax(x, 1), lambda a: a[np.arange(shape[0]), label.astype(int)])
        return -log(picked).sum().reshape(1)

    label = draw.whole(0, shape[1] - 1, shape[:1], "float32")
    return operator("softmax_cross_entropy", [draw.real(*shape), label], loss, dtypes=("float32",), slack=3)


def _normalised(x, axes, eps):
    away = x - x.mean(axes, True)
    return away / sqrt((away * away).mean(axes, True) + eps)


def layer_norm(draw):
    shape = _rows(draw)
    axis, eps = draw.axis(len(shape)), draw.pick([1e-5, 0.1])
    k = axis % len(shape)
    along = (-1, *(1,) * (len(shape) - k - 1))

    def rows(x, gamma, beta):
        return _normalised(x, (k,), eps) * gamma.reshape(along) + beta.reshape(along)

    inputs = [draw.real(*shape), draw.real(shape[k]), draw.real(shape[k])]
    return operator("LayerNorm", inputs, rows, axis=axis, eps=eps, slack=40, dtypes=("float32", "float64"))


def instance_norm(draw):
    shape = _rows(draw, 3, 4)

    def rows(x, gamma, beta):
        along = (-1, *(1,) * (len(shape) - 2))
        return _normalised(x, tuple(range(2, len(shape))), 0.1) * gamma.reshape(along) + beta.reshape(along)

    inputs = [draw.real(*shape), draw.real(shape[1]), draw.real(shape[1])]
    return operator("InstanceNorm", inputs, rows, eps=0.1, slack=10, dtypes=("float32", "float64"))


def group_norm(draw):
    groups, shape = draw.integer(1, 4), _rows(draw, 3, 4)
    shape = (shape[0], shape[1] * groups, *shape[2:])

    def rows(x, gamma, beta):
        y = _normalised(x.reshape(shape[0], groups, -1), (2,), 0.1)
        return (y * gamma.reshape(-1, 1) + beta.reshape(-1, 1)).reshape(shape)

    inputs = [draw.real(*shape), draw.real(groups), draw.real(groups)]
    return operator("GroupNorm", inputs, rows, num_groups=groups, eps=0.1, slack=10, dtypes=("float32", "float64"))


def l2_normalization(draw):
    mode = draw.pick(["instance", "channel", "spatial"])
    shape = _rows(draw, 2 if mode == "instance" else 3, 4)
    axes = {"instance": tuple(range(1, len(shape))), "channel": (1,), "spatial": tuple(range(2, len(shape)))}[mode]

    def rows(x):
        return x / sqrt((x * x).sum(axes, True) + 1e-2)

    return operator("L2Normalization", [draw.real(*shape)], rows, mode=mode, eps=1e-2, slack=3)


def response_norm(draw):
    shape, n = _rows(draw, 4, 4), draw.pick([1, 3, 5])

    def rows(x):
        channels, squares = shape[1], x * x
        total = value(0.0)
        for shift in range(-(n // 2), n // 2 + 1):
            at = np.arange(channels) + shift
            inside = (at >= 0) & (at < channels)

            def near(a, at=at, inside=inside):
                return np.where(inside.reshape(1, -1, *(1,) * (len(shape) - 2)), a[:, np.clip(at, 0, channels - 1)], -1)

            total = total + moved(squares, near)
        return x * (total * (0.5 / n) + 2.0) ** -0.75

    return operator("LRN", [draw.real(*shape)], rows, nsize=n, alpha=0.5, beta=0.75, knorm=2.0)


def batch_norm(draw):
    shape, axis = _rows(draw, 2, 4), 1
    k = axis % len(shape)
    fixed = draw.flag(0.3)

    def call(F, x, gamma, beta):
        with mx.autograd.train_mode():
            mean, var = mx.nd.zeros((shape[k],), dtype=x.dtype), mx.nd.ones((shape[k],), dtype=x.dtype)
            return F.BatchNorm(x, gamma, beta, mean, var, eps=0.1, fix_gamma=fixed, axis=axis)

    def rows(x, gamma, beta):
        along = (-1, *(1,) * (len(shape) - k - 1))
        y = _normalised(x, tuple(a for a in range(len(shape)) if a != k), 0.1)
        gamma = gamma * 0.0 + 1.0 if fixed else gamma  # which has the gradient 0 then
        return y * gamma.reshape(along) + beta.reshape(along)

    inputs = [draw.real(*shape), draw.real(shape[k]), draw.real(shape[k])]
    return Case(f"BatchNorm(fix_gamma={fixed}, axis={axis}, eps=0.1), training", inputs, call, rows, modes=("eager",),
                dtypes=("float32", "float64"), slack=10, tags=("BatchNorm",))  # fmt: skip


def regression(draw):
    op, shape = (
        draw.pick(["LinearRegressionOutput", "LogisticRegressionOutput", "MAERegressionOutput"]),
        _rows(draw, 1, 3),
    )
    each = int(np.prod(shape[1:]))

    def forward(x, label):
        return 1 / (1 + exp(-x)) if op.startswith("Logistic") else x * 1.0

    def slope(heads, x, label):
        y = forward(x, label).data
        return [(np.sign(y - label) if op.startswith("MAE") else y - label) * 2.0 / each]

    label = draw.real(*shape)
    label.values, label.fixed = label.values.astype("float32"), True
    return operator(op, [draw.real(*shape), label], forward, gradient=slope, grad_scale=2.0, dtypes=("float32",))


def program(draw):
    """Formulas around reductions of any axes, with arrays of fewer dimensions, seen with other dimensions in between."""
    shape, texts, parts = _rows(draw, 2, 4), [], []
    if draw.flag(0.7):  # channels, which may become rows
        shape = (draw.integer(1, 5), draw.integer(14, 36), *draw.pick([(), (1,), (3,)]), draw.integer(30, 70))
    inputs = [draw.real(*shape)]
    for _ in range(draw.integer(1, 5)):
        kind = draw.pick(["formula", "fewer", "reduced", "reduced", "seen"])
        if kind == "formula":
            part = draw.pick(["sin", "tanh", "sigmoid"])
        elif kind == "fewer":
            small = tuple(1 if draw.flag(0.25) else n for n in shape[draw.integer(0, len(shape) - 1) :])
            part = (draw.pick(["broadcast_mul", "broadcast_add"]), len(inputs), small)
            inputs.append(draw.real(*small))
        elif kind == "reduced":
            one = draw.pick([1, draw.integer(0, len(shape) - 1)])
            axes = draw.axes(len(shape)) if draw.flag(0.4) else tuple(k for k in range(len(shape)) if k != one)
            part = (draw.pick(["broadcast_sub", "broadcast_mul"]), draw.pick(["mean", "max"]), axes)
        else:
            part = ("expand_dims", draw.integer(0, len(shape)))
        parts.append(part), texts.append(f"{kind} {part}")

    def call(F, *values):
        x, seen = values[0], []
        for part in parts:
            if isinstance(part, str):
                x = getattr(F, part)(x)
            elif part[0] == "expand_dims":  # for one formula
                x = F.reshape(F.tanh(F.expand_dims(x, axis=part[1])), shape=shape)
            elif isinstance(part[1], int):
                x = getattr(F, part[0])(x, values[part[1]])
            else:
                x = getattr(F, part[0])(x, getattr(F, part[1])(x, axis=part[2], keepdims=True))
                seen.append(getattr(F, part[1])(x, axis=part[2], keepdims=True))
        return [x, *seen[-1:]]

    return Case(f"of x {shape}: {'; '.join(texts)}; and the last reduction again", inputs, call, lambda *v: call(Numpy, *v),
                modes=("eager", "bind", "bind", "compiled", "eval"), dtypes=("float64",), slack=20,
                tags=("program",))  # fmt: skip


MAKERS = [program, program, program, softmax, softmax, softmax,
          softmax_of_lengths, softmax_activation, softmax_output, cross_entropy, layer_norm,
          instance_norm, group_norm, l2_normalization, response_norm, batch_norm, regression]  # fmt: skip
