"""Output layers: the output of a network, with the gradient of a loss.

Their backward needs no head gradient and looks at none: ``executor.backward()`` begins there.  The gradient is a function of
data and labels as any other, so that it can be differentiated again.
"""

import math
from typing import Annotated, Literal

from ..opdef import F, Range, composite, elementwise, infer
from ..support import dtypes
from ..support.errors import OpValueError
from ._shared import device_of, float_types, product_of, size_of


# ---- labels ----------------------------------------------------------------------------------------------------------
def _lanes(shape, multi_output, preserve_shape):
    """Return the shape as ``(rows, classes)``, or ``(rows, classes, places)``."""
    if multi_output:
        return shape[0], shape[1], size_of(shape[2:])
    return (size_of(shape[:-1]), shape[-1]) if preserve_shape else (shape[0], size_of(shape[1:]))


def _seen(F, data, shape, dtype):
    """Return data in another shape and type, without a copy where they have both."""
    data = data if dtypes.code_of(data.dtype) == dtypes.code_of(dtype) else F.cast(data, dtype=dtype)
    return data if data.shape == shape else F.Reshape(data, shape=shape)


def _numbers(F, label, shape, dtype):
    """Return labels as whole numbers, and those of the classes; they broadcast to each other, to the shape of lanes."""
    rows, classes, *places = shape
    label = F.Reshape(F.cast(F.trunc(label), dtype=dtype), shape=(rows, 1, *places))
    number = F._arange(start=0, stop=classes, dtype=dtype, ctx=device_of(label))
    return label, F.Reshape(number, shape=(1, classes, *[1 for _ in places]))


def _weights(F, label, scale, ignore_label, use_ignore, normalization):
    """Return what the gradients of labels are multiplied by: one number, or one for each."""
    counts = F._not_equal_scalar(label, scalar=math.trunc(ignore_label))
    one = (1,) * len(label.shape)
    weight = counts if use_ignore else F.ones(shape=one, dtype=label.dtype, ctx=device_of(label))
    weight = F._mul_scalar(weight, scalar=scale)
    if normalization == "valid":
        weight = F.broadcast_div(weight, F.Reshape(F._maximum_scalar(F.sum(counts), scalar=1.0), shape=one))
    return weight


@elementwise(name="_class_slope", broadcast=True)
def class_slope(probability, label, number, weight, *, share: float, other: float):
    """Gradient of a cross entropy with labels, which ask for a probability of `share` of their class, and `other` of others."""
    return (probability - F.where(label == number, share, other)) * weight


def _with_labels(op, shape_of):
    """Let labels be of the shape ``shape_of(data, **params)``, where nothing says more, and of the data's type.

    Labels of other shapes need as many elements, or the shape of the data.
    """

    @op.infer
    def _(ins, outs, **params):
        data = infer.same_shape(op.name, ("data", "output"), [ins[0], outs[0]])[0]
        label = ins[1]
        if data is not None and not infer.known(label):
            wanted = shape_of(data, **params)
            if label is None or len(label) == len(wanted):
                label = infer.same_shape(op.name, ("label", "the data's rows"), [label, wanted])[0]
        elif infer.known(data) and label != data:
            wanted = shape_of(data, **params)
            if size_of(label) != size_of(wanted) or label[:1] != wanted[:1]:
                raise OpValueError(f"operator {op.name}: label has shape {label} but the data {data}; expected {wanted}, or "
                                   "the data's shape")  # fmt: skip
        return [data, label], [data]

    float_types(op, label=None)


def _like_data(op):
    """Let the result have the data's shape and type; labels have any."""

    @op.infer
    def _(ins, outs, **params):
        found = infer.same_shape(op.name, ("data", "output"), [ins[0], outs[0]])[0]
        return [found, ins[1]], [found]

    float_types(op, label=None)


# ---- classes ---------------------------------------------------------------------------------------------------------
def _probabilities(F, data, multi_output, preserve_shape):
    if multi_output or preserve_shape:
        return F.softmax(data, axis=1 if multi_output else -1)
    return F.softmax(data, axis=-1) if len(data.shape) == 2 else F.reshape_like(F.softmax(F.Flatten(data), axis=-1), data)


@composite(aliases=("Softmax",))
def SoftmaxOutput(F, data, label, *, grad_scale: float = 1.0, ignore_label: float = -1.0, multi_output: bool = False,
                  use_ignore: bool = False, preserve_shape: bool = False,
                  normalization: Literal["batch", "null", "valid"] = "null", out_grad: bool = False,
                  smooth_alpha: float = 0.0):  # fmt: skip
    """Softmax, with the gradient of its cross entropy with labels: ``(softmax(data) - one_hot(label)) * grad_scale``.

    Parameters
    ----------
    data : NDArray or Symbol
        ``(batch, classes)``; further dimensions are merged into one of classes, unless a parameter says otherwise.
    label : NDArray or Symbol
        Class indices, ``(batch,)``; invalid ones count as no class.  In the shape of the data: probabilities.
    ignore_label : float
        With `use_ignore`, rows of this label have gradient 0.
    multi_output : bool
        The classes are along axis 1, and each position of the following axes has a label.
    preserve_shape : bool
        The classes are along the last axis, and all other axes have labels.
    normalization : {'null', 'batch', 'valid'}
        Divide the gradient by the number of labels, or of those that are not `ignore_label`.  With `multi_output`, ``null``
        divides by the number of positions.  Probabilities are not affected.
    out_grad : bool
        Multiply the gradient by the output gradient.
    smooth_alpha : float
        Label smoothing: the part of each label that is distributed over the other classes.

    >>> x = mx.nd.array([[0, 0], [0, 0]])
    >>> x.attach_grad()
    >>> with mx.autograd.record():
    ...     y = mx.nd.SoftmaxOutput(x, mx.nd.array([0, 1]))
    >>> y.backward()
    >>> y.asnumpy().tolist(), x.grad.asnumpy().tolist()
    ([[0.5, 0.5], [0.5, 0.5]], [[-0.5, 0.5], [0.5, -0.5]])
    """
    return _probabilities(F, data, multi_output, preserve_shape)


@composite(name="_softmax_output_grad")
def softmax_output_grad(F, data, label, *, scale: float = 1.0, ignore_label: float = -1.0, multi_output: bool = False,
                        use_ignore: bool = False, preserve_shape: bool = False,
                        normalization: Literal["batch", "null", "valid"] = "null", smooth_alpha: float = 0.0):  # fmt: skip
    """The gradient of ``SoftmaxOutput`` with respect to the data."""
    found = _probabilities(F, data, multi_output, preserve_shape)
    if label.shape == data.shape:  # probabilities
        return F._mul_scalar(found - F._cast_like(F.BlockGrad(label), data), scalar=scale)
    if 0 in data.shape:
        return F.zeros_like(data)
    rows, classes, *places = shape = _lanes(data.shape, multi_output, preserve_shape)
    divisor = {"batch": rows * size_of(places), "null": size_of(places), "valid": 1}[normalization]
    # halves do not have all class numbers
    dtype = "float64" if dtypes.code_of(data.dtype) == dtypes.FLOAT64 else "float32"
    label, number = _numbers(F, label, shape, dtype)
    weight = _weights(F, label, scale / divisor, ignore_label, use_ignore, normalization)
    asked = {"share": 1 - smooth_alpha, "other": smooth_alpha / max(classes - 1, 1)}
    grad = F._class_slope(_seen(F, found, shape, dtype), label, number, weight, **asked)
    return _seen(F, grad, data.shape, data.dtype)


@SoftmaxOutput.gradient
def _(F, heads, inputs, outputs, *, grad_scale, out_grad, **params):
    grad = F._softmax_output_grad(*inputs, scale=grad_scale, **params)
    return [F.elemwise_mul(grad, heads[0]) if out_grad else grad, None]


def _labels_of(data, *, multi_output, preserve_shape, **params):
    if multi_output and not data:
        raise OpValueError("operator SoftmaxOutput: multi_output=True needs data of 1 dimension or more")
    if multi_output:
        return data[0], product_of(data[2:])
    return data[:-1] if preserve_shape else data[:1]


_with_labels(SoftmaxOutput, _labels_of)


@elementwise(name="_svm_slope")
def svm_slope(data, chosen, *, margin: float, coefficient: float, use_linear: bool):
    """Derivative of the hinge loss, or of its square, of scores; `chosen` is 1 for the class of the label."""
    if use_linear:
        return F.where(chosen, -1.0 * (data < margin), 1.0 * (-data < margin)) * coefficient
    return F.where(chosen, -F.maximum(margin - data, 0), F.maximum(margin + data, 0)) * (2 * coefficient)


@composite
def SVMOutput(F, data, label, *, margin: float = 1.0, regularization_coefficient: float = 1.0, use_linear: bool = False):
    """The data, with the gradient of the squared hinge loss of scores against labels (with `use_linear` the hinge loss).

    Parameters
    ----------
    data : NDArray or Symbol
        ``(batch, classes)``, scores.
    label : NDArray or Symbol
        ``(batch,)``, class indices.
    regularization_coefficient : float
        Multiplies the gradient.

    >>> x = mx.nd.array([[0, 0.5]])
    >>> x.attach_grad()
    >>> with mx.autograd.record():
    ...     y = mx.nd.SVMOutput(x, mx.nd.array([1]))
    >>> y.backward()
    >>> x.grad.asnumpy().tolist()
    [[2.0, -1.0]]
    """
    return F.identity(data)


@composite(name="_svm_output_grad")
def svm_output_grad(F, data, label, *, margin: float = 1.0, coefficient: float = 1.0, use_linear: bool = False):
    """The gradient of ``SVMOutput`` with respect to the data."""
    if label.shape == data.shape:
        chosen = F._cast_like(F.BlockGrad(label), data)
    elif 0 in data.shape:
        return F.zeros_like(data)
    else:
        chosen = F.broadcast_equal(*_numbers(F, label, _lanes(data.shape, False, False), "float32"))
        chosen = _seen(F, chosen, data.shape, data.dtype)
    return F._svm_slope(data, chosen, margin=margin, coefficient=coefficient, use_linear=use_linear)


@SVMOutput.gradient
def _(F, heads, inputs, outputs, *, regularization_coefficient, **params):
    data, label = inputs
    return [F._svm_output_grad(data, label, coefficient=regularization_coefficient, **params), None]


_with_labels(SVMOutput, lambda data, **params: data[:1])
for _op in (softmax_output_grad, svm_output_grad):
    _like_data(_op)


# ---- numbers ---------------------------------------------------------------------------------------------------------
def _regression(op, output, slope):
    """Give `op` the gradient ``slope(F, output(F, data), label)``, divided by the number of outputs of a sample."""

    @op.gradient
    def _(F, heads, inputs, outputs, *, grad_scale):
        data, label = inputs
        grad = slope(F, output(F, data), F._cast_like(F.reshape_like(label, data), data))
        return [F._mul_scalar(F._divide_by_count(grad, label, axis=0, exclude=True), scalar=grad_scale), None]

    _with_labels(op, lambda data, **params: data[:1] if len(data) == 2 and data[1] == 1 else data)


@composite(aliases=("_sparse_LinearRegressionOutput",))
def LinearRegressionOutput(F, data, label, *, grad_scale: float = 1.0):
    """The data, with the gradient of half the squared error: ``data - label``, divided by the number of outputs of a sample.

    Parameters
    ----------
    label : NDArray or Symbol
        As many elements as the data.
    grad_scale : float
        Multiplies the gradient.

    >>> x = mx.nd.array([[1, 5]])
    >>> x.attach_grad()
    >>> with mx.autograd.record():
    ...     y = mx.nd.LinearRegressionOutput(x, mx.nd.array([[2, 2]]))
    >>> y.backward()
    >>> x.grad.asnumpy().tolist()
    [[-0.5, 1.5]]
    """
    return F.identity(data)


@composite(aliases=("_sparse_LogisticRegressionOutput",))
def LogisticRegressionOutput(F, data, label, *, grad_scale: float = 1.0):
    """``sigmoid(data)``, with the gradient of its cross entropy: ``sigmoid(data) - label``, as ``LinearRegressionOutput``.

    >>> mx.nd.LogisticRegressionOutput(mx.nd.array([[0]]), mx.nd.array([[1]])).asnumpy().tolist()
    [[0.5]]
    """
    return F.sigmoid(data)


@composite(aliases=("_sparse_MAERegressionOutput",))
def MAERegressionOutput(F, data, label, *, grad_scale: float = 1.0):
    """The data, with the gradient of the absolute error: 1 above the label, -1 elsewhere, as ``LinearRegressionOutput``.

    >>> mx.nd.MAERegressionOutput(mx.nd.array([[3]]), mx.nd.array([[1]])).asnumpy().tolist()
    [[3.0]]
    """
    return F.identity(data)


_regression(LinearRegressionOutput, lambda F, data: data, lambda F, out, label: out - label)
_regression(LogisticRegressionOutput, lambda F, data: F.sigmoid(data), lambda F, out, label: out - label)
_regression(MAERegressionOutput, lambda F, data: data, lambda F, out, label: 2 * F._greater_scalar(out - label, scalar=0) - 1)


# ---- any loss --------------------------------------------------------------------------------------------------------
@composite(aliases=("_sparse_make_loss",), output_names=("loss",))
def make_loss(F, data):
    """The data, as a loss: their gradient is 1.

    >>> x = mx.nd.array([3])
    >>> x.attach_grad()
    >>> with mx.autograd.record():
    ...     y = mx.nd.make_loss(x * x)
    >>> y.backward()
    >>> x.grad.item()
    6.0
    """
    return F.identity(data)


@make_loss.gradient
def _(F, heads, inputs, outputs):
    return [F.ones_like(inputs[0])]


@composite
def MakeLoss(F, data, *, grad_scale: float = 1.0, valid_thresh: float = 0.0,
             normalization: Literal["batch", "null", "valid"] = "null"):  # fmt: skip
    """The data, as a loss: their gradient is `grad_scale`.

    Parameters
    ----------
    normalization : {'null', 'batch', 'valid'}
        Divide the gradient by the number of rows (all sizes but the last, as MXNet does), or by the number of elements
        above `valid_thresh`.

    >>> x = mx.nd.array([1, 2, 0])
    >>> x.attach_grad()
    >>> with mx.autograd.record():
    ...     y = mx.nd.MakeLoss(x, normalization="valid")
    >>> y.backward()
    >>> x.grad.asnumpy().tolist()
    [0.5, 0.5, 0.5]
    """
    return F.identity(data)


@MakeLoss.gradient
def _(F, heads, inputs, outputs, *, grad_scale, valid_thresh, normalization):
    data = inputs[0]
    grad = F._mul_scalar(F.ones_like(data), scalar=grad_scale)
    if normalization == "batch":
        return [F._divide_by_count(grad, data, axis=-1, exclude=True)]
    if normalization == "valid":
        count = F.sum(F._widened(F._greater_scalar(data, scalar=valid_thresh)))  # float16 counts no further than 2048
        return [F._cast_like(F.broadcast_div(F._widened(grad), F._maximum_scalar(count, scalar=1)), data)]
    return [grad]


# ---- a penalty ---------------------------------------------------------------------------------------------------------
@elementwise(name="_sparseness_slope")
def sparseness_slope(average, *, target: float, penalty: float):
    """Derivative of the divergence between a wanted and an average activation, of Bernoulli's distribution."""
    return penalty * ((1 - target) / (1 - average) - target / average)


@float_types
@composite(writes={"moving_avg": 1}, num_outputs=2, visible_outputs=1, output_names=("output", "new_moving_avg"))
def IdentityAttachKLSparseReg(F, data, moving_avg, *, sparseness_target: Annotated[float, Range(0, 1)] = 0.1,
                              penalty: float = 0.001, momentum: Annotated[float, Range(0, 1)] = 0.9, is_train):  # fmt: skip
    """The data, with the gradient of a sparsity penalty on activations.

    The penalty is the Kullback-Leibler divergence between the average activation of each column and a target.

    Parameters
    ----------
    data : NDArray or Symbol
        ``(batch, columns)``, activations between 0 and 1.
    moving_avg : NDArray or Symbol
        A state, ``(columns,)``: the average activation of each column, updated while training.
    sparseness_target : float
        Target of the average.
    penalty : float
        Multiplies the divergence.
    momentum : float
        Weight of the old average.

    >>> x, average = mx.nd.array([[0.5], [0.75]]), mx.nd.array([0.5])
    >>> x.attach_grad()
    >>> with mx.autograd.record():
    ...     y = mx.nd.IdentityAttachKLSparseReg(x, average, penalty=1, sparseness_target=0.25, momentum=1)
    >>> y.backward()
    >>> x.grad.asnumpy().tolist()
    [[2.0], [2.0]]
    """
    if not is_train:
        return [F.identity(data), F.identity(moving_avg)]
    now = F.mean(data, axis=0, exclude=False)
    return [F.identity(data), momentum * moving_avg + (1 - momentum) * now]


@IdentityAttachKLSparseReg.gradient
def _(F, heads, inputs, outputs, *, sparseness_target, penalty, momentum, is_train):
    slope = F._sparseness_slope(outputs[1], target=sparseness_target, penalty=penalty)
    return [F.broadcast_add(heads[0], F.expand_dims(slope, axis=0)), None]


@IdentityAttachKLSparseReg.infer
def _(ins, outs, **params):
    name = "IdentityAttachKLSparseReg"
    data = infer.same_shape(name, ("data", "output"), [ins[0], outs[0]])[0]
    if data is not None and len(data) != 2:
        raise OpValueError(f"operator {name}: data has shape {infer.show(data)}; expected (batch, columns)")
    names = ("moving_avg", "new_moving_avg", "the columns of the data")
    state = infer.same_shape(name, names, [ins[1], outs[1], (None if data is None else data[1],)])[0]
    return [data if data is None else (data[0], state[0]), state], [data, state]
