"""Output layers: what a network gives, with the gradient of a loss in the place of its own.

Their backward needs no head gradient and looks at none: ``executor.backward()`` begins there.  The gradient is a function of
data and labels as any other, so that it can be differentiated again.  Examples assume ``import mxop as mx``.  May import
:mod:`mxop.opdef` only.
"""

import math
from typing import Annotated, Literal

from ..errors import OpValueError
from ..opdef import F, Range, composite, elementwise, infer, kernel
from ._shared import float_types, on_both, product_of, size_of, zero_gradient


# ---- labels ----------------------------------------------------------------------------------------------------------
def _lanes(shape, multi_output, preserve_shape):
    """Return the shape as (rows, classes, places)."""
    if multi_output:
        return shape[0], shape[1], size_of(shape[2:])
    if preserve_shape:
        return size_of(shape[:-1]), shape[-1], 1
    return shape[0], size_of(shape[1:]), 1


def _weighted(*, normalization, use_ignore, multi_output, **params):
    return normalization != "null" or use_ignore or multi_output


@kernel(name="_targets", shape_only=(1,), num_outputs=lambda **params: 1 + _weighted(**params))
def targets(
    label,
    data,
    *,
    ignore_label: float = -1.0,
    multi_output: bool = False,
    use_ignore: bool = False,
    preserve_shape: bool = False,
    normalization: Literal["batch", "null", "valid"] = "null",
    smooth_alpha: float = 0.0,
):
    """The probabilities that labels ask of the data, in their shape; where rows count differently, their weights too.

    Labels are class numbers; in the shape of the data they are probabilities, which count as they are.
    """


@targets.shape
def _(label, data, **params):
    return [data] * (1 + _weighted(**params))


def _type_of_data(attrs, ins, outs):
    done = infer.same_type("_targets", ["data"] + ["output"] * len(outs), [ins[1], *outs])
    return [ins[0], done[0]], done[1:]


targets.infer_type = _type_of_data
zero_gradient(targets)


@on_both(targets)
def _(xp, inputs, outputs, *, multi_output, preserve_shape, smooth_alpha, **params):
    label, data = inputs
    if label.shape == data.shape:  # probabilities
        outputs[0][...] = label
        for weight in outputs[1:]:
            weight[...] = 1
        return
    rows, classes, places = _lanes(data.shape, multi_output, preserve_shape)
    label = xp.trunc(label.reshape(rows, 1, places))
    chosen = label == xp.arange(classes).reshape(1, -1, 1)
    other = smooth_alpha / max(classes - 1, 1)
    outputs[0][...] = xp.where(chosen, 1 - smooth_alpha, other).reshape(data.shape)
    for weight in outputs[1:]:
        found = _weights(xp, label, **params) / (places if multi_output and params["normalization"] == "null" else 1)
        weight[...] = xp.broadcast_to(found, (rows, classes, places)).reshape(data.shape)


def _weights(xp, label, *, ignore_label, use_ignore, normalization):
    """Return the weight of each label."""
    counts = label != math.trunc(ignore_label)
    weight = xp.where(counts, 1.0, 0.0) if use_ignore else xp.ones(label.shape)
    number = {"null": 1, "batch": label.size, "valid": counts.sum()}[normalization]
    return weight / xp.maximum(number, 1)


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


# ---- classes ---------------------------------------------------------------------------------------------------------
def _probabilities(F, data, multi_output, preserve_shape):
    if multi_output or preserve_shape:
        return F.softmax(data, axis=1 if multi_output else -1)
    return F.reshape_like(F.softmax(F.Flatten(data), axis=-1), data)


@composite(aliases=("Softmax",))
def SoftmaxOutput(
    F,
    data,
    label,
    *,
    grad_scale: float = 1.0,
    ignore_label: float = -1.0,
    multi_output: bool = False,
    use_ignore: bool = False,
    preserve_shape: bool = False,
    normalization: Literal["batch", "null", "valid"] = "null",
    out_grad: bool = False,
    smooth_alpha: float = 0.0,
):
    """Softmax, with the gradient of its cross entropy with labels: ``(softmax(data) - one_hot(label)) * grad_scale``.

    Parameters
    ----------
    data : NDArray or Symbol
        ``(batch, classes)``; what follows the batch is one vector of classes, unless a parameter says otherwise.
    label : NDArray or Symbol
        Class numbers, ``(batch,)``; those that are no class are none.  In the shape of the data: probabilities.
    grad_scale : float
    ignore_label : float
        With `use_ignore`, rows of this label have gradient 0.
    multi_output : bool
        The classes are along axis 1, and each place of the axes after it has a label.
    use_ignore : bool
    preserve_shape : bool
        The classes are along the last axis, and all other axes have labels.
    normalization : {'null', 'batch', 'valid'}
        Divide the gradient by the number of labels, or of those that are not `ignore_label`.  With `multi_output`, ``null``
        divides by the number of places.  Probabilities are not affected.
    out_grad : bool
        Multiply the gradient by the head gradient.
    smooth_alpha : float
        The share of each label that is distributed over the other classes.

    >>> x = mx.nd.array([[0, 0], [0, 0]])
    >>> x.attach_grad()
    >>> with mx.autograd.record():
    ...     y = mx.nd.SoftmaxOutput(x, mx.nd.array([0, 1]))
    >>> y.backward()
    >>> y.asnumpy().tolist(), x.grad.asnumpy().tolist()
    ([[0.5, 0.5], [0.5, 0.5]], [[-0.5, 0.5], [0.5, -0.5]])
    """
    return _probabilities(F, data, multi_output, preserve_shape)


@SoftmaxOutput.gradient
def _(F, heads, inputs, outputs, *, grad_scale, out_grad, multi_output, preserve_shape, **params):
    data, label = inputs
    found = F._targets(label, data, multi_output=multi_output, preserve_shape=preserve_shape, **params)
    target, *weight = found if isinstance(found, (list, tuple)) else [found]
    # not outputs[0], whose gradient is this one
    grad = F._mul_scalar(_probabilities(F, data, multi_output, preserve_shape) - target, scalar=grad_scale)
    for factor in [*weight, *(heads[:1] if out_grad else ())]:
        grad = F.elemwise_mul(grad, factor)
    return [grad, None]


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
def SVMOutput(
    F, data, label, *, margin: float = 1.0, regularization_coefficient: float = 1.0, use_linear: bool = False
):
    """The data, with the gradient of the squared hinge loss of scores against labels (with `use_linear` the hinge loss).

    Parameters
    ----------
    data : NDArray or Symbol
        ``(batch, classes)``, scores.
    label : NDArray or Symbol
        ``(batch,)``, class numbers.
    margin : float
    regularization_coefficient : float
        Multiplies the gradient.
    use_linear : bool

    >>> x = mx.nd.array([[0, 0.5]])
    >>> x.attach_grad()
    >>> with mx.autograd.record():
    ...     y = mx.nd.SVMOutput(x, mx.nd.array([1]))
    >>> y.backward()
    >>> x.grad.asnumpy().tolist()
    [[2.0, -1.0]]
    """
    return F.identity(data)


@SVMOutput.gradient
def _(F, heads, inputs, outputs, *, regularization_coefficient, **params):
    data, label = inputs
    return [F._svm_slope(data, F._targets(label, data), coefficient=regularization_coefficient, **params), None]


_with_labels(SVMOutput, lambda data, **params: data[:1])


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
    """The data, with the gradient of half the squared error: ``data - label``, over the number of outputs of a sample.

    Parameters
    ----------
    data : NDArray or Symbol
    label : NDArray or Symbol
        As many elements.
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
_regression(
    MAERegressionOutput, lambda F, data: data, lambda F, out, label: 2 * F._greater_scalar(out - label, scalar=0) - 1
)


# ---- any loss --------------------------------------------------------------------------------------------------------
@composite(aliases=("_sparse_make_loss",))
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


make_loss.output_names = lambda attrs, n_inputs=None: ("loss",)


@make_loss.gradient
def _(F, heads, inputs, outputs):
    return [F.ones_like(inputs[0])]


@composite
def MakeLoss(F, data, *, grad_scale: float = 1.0, valid_thresh: float = 0.0,
             normalization: Literal["batch", "null", "valid"] = "null"):  # fmt: skip
    """The data, as a loss: their gradient is `grad_scale`.

    Parameters
    ----------
    data : NDArray or Symbol
    grad_scale : float
    valid_thresh : float
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


@composite(writes={"moving_avg": 1}, num_outputs=2, visible_outputs=1)
def IdentityAttachKLSparseReg(
    F,
    data,
    moving_avg,
    *,
    sparseness_target: Annotated[float, Range(0, 1)] = 0.1,
    penalty: float = 0.001,
    momentum: Annotated[float, Range(0, 1)] = 0.9,
    is_train,
):
    """The data, with the gradient of a penalty: activations shall rarely be near 1.

    The penalty is the divergence (Kullback and Leibler's) of the average activation of each column from a target.

    Parameters
    ----------
    data : NDArray or Symbol
        ``(batch, columns)``, activations between 0 and 1.
    moving_avg : NDArray or Symbol
        A state, ``(columns,)``: the average activation of each column, updated while training.
    sparseness_target : float
        The average that is wanted.
    penalty : float
        Multiplies the divergence.
    momentum : float
        What is kept of the old average.

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


IdentityAttachKLSparseReg.output_names = lambda attrs, n_inputs=None: ("output", "new_moving_avg")


@IdentityAttachKLSparseReg.infer
def _(ins, outs, **params):
    name = "IdentityAttachKLSparseReg"
    data = infer.same_shape(name, ("data", "output"), [ins[0], outs[0]])[0]
    if data is not None and len(data) != 2:
        raise OpValueError(f"operator {name}: data has shape {infer.show(data)}; expected (batch, columns)")
    names = ("moving_avg", "new_moving_avg", "the columns of the data")
    state = infer.same_shape(name, names, [ins[1], outs[1], (None if data is None else data[1],)])[0]
    return [data if data is None else (data[0], state[0]), state], [data, state]


float_types(IdentityAttachKLSparseReg)
