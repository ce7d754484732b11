"""Matrix multiplication: dot, batch_dot."""

from functools import partial
from itertools import pairwise
from typing import Literal

from ..opdef import infer, kernel
from ..support.errors import OpValueError
from ..support.shape_mode import numpy_shape
from ._shared import compiled, float_types, reviewed, size_of


def product(steps, a, b, out, transpose_a, transpose_b, alpha=1.0, bias=None):
    """Let `out` become ``alpha * op(a) @ op(b) + bias``, or add that to it where the call is to add.

    All are matrices, or stacks of them, of any strides; float16 and bfloat16 are multiplied in float32.
    """
    *batch, m, n = out.shape
    k = a.shape[-2 if transpose_a else -1]
    (a, left), (b, right), (out, result) = (_stack(steps, x) for x in (a, b, out))
    if transpose_a:
        left = (left[0], *left[:0:-1])
    if transpose_b:
        right = (right[0], *right[:0:-1])
    parts = [(x.dtype_code, (0, *strides)) for x, strides in ((a, left), (b, right), (out, result))]
    arrays = [a, b, out]
    if bias is not None:
        parts.append((bias.dtype_code, _bias_strides(bias)))
        arrays.insert(2, bias)
    steps.work(compiled("gemm").Product((1, size_of(batch), m, n, k), *parts, alpha=alpha, add=steps.adds), *arrays)


def _stack(steps, x):
    """Return an array, or a copy of it, with its strides (in elements) as a stack of matrices."""
    shape, strides = x.shape, x._strides
    places = [(d, step) for d, step in zip(shape[:-2], strides[:-2], strict=True) if d != 1]
    if x._contiguous or all(outer == d * inner for (_, outer), (d, inner) in pairwise(places)):  # no elements: any strides
        return x, (places[-1][1] if places else 0, *strides[-2:])
    return _stack(steps, _dense(steps, x))


def _dense(steps, x):
    """Return an array, or a copy of it, in C order."""
    if x._contiguous:
        return x
    found = steps.temporary(x.shape, x.dtype_code)
    steps.move(x, found)
    return found


def matrix_of(steps, x, shape):
    """Return an array as a matrix of this shape, in which dimensions are merged."""
    return x if x.shape == shape else reviewed(_dense(steps, x), shape)


def _bias_strides(bias):
    """Return how a bias lies along the batch (of one of one), the rows and the columns of a product."""
    sizes, strides = (1, 1, 1, 1, *bias.shape)[-4:], (0, 0, 0, 0, *bias._strides)[-4:]
    return tuple(0 if d == 1 else step for d, step in zip(sizes, strides, strict=True))


def product_gpu(xp, a, b, transpose_a, transpose_b, out=None):
    """Return ``op(a) @ op(b)`` of CuPy arrays, in `out` if given."""
    from .._gpu import products

    a, b = a.swapaxes(-1, -2) if transpose_a else a, b.swapaxes(-1, -2) if transpose_b else b
    return products.product(xp, a, b, out)


# ---- dot ------------------------------------------------------------------------------------------------------------
def _joins(lhs, rhs, *, transpose_a, transpose_b, **params):
    """Rows that are joined only go on in the sums that a product is."""
    return transpose_a and not transpose_b and len(lhs) == len(rhs) == 2


@kernel(strided=True, adds=True, at_once=_joins, aliases=("_sparse_dot",))
def dot(lhs, rhs, *, transpose_a: bool = False, transpose_b: bool = False,
        forward_stype: Literal[None, "csr", "default", "row_sparse"] = None):  # fmt: skip
    """Matrix multiplication; for more dimensions, the last one of `lhs` is contracted with the first one of `rhs`.

    Parameters
    ----------
    lhs, rhs : NDArray or Symbol
        Floating-point arrays of at least one dimension.
    transpose_a : bool
        Contract the first dimension of `lhs` instead of its last one.
    transpose_b : bool
        Contract the last dimension of `rhs` instead of its first one.

    Returns
    -------
    NDArray or Symbol
        The remaining dimensions of `lhs`, then those of `rhs`; ``(1,)`` for two vectors.

    >>> mx.nd.dot(mx.nd.array([[1, 2], [3, 4]]), mx.nd.array([1, 1])).asnumpy().tolist()
    [3.0, 7.0]
    """


def _parts(lhs, rhs, transpose_a, transpose_b):
    """Return the contracted size of both sides, and the dimensions that remain of each."""
    if not lhs or not rhs:
        raise OpValueError(f"operator dot: shapes {lhs} and {rhs}; expected at least one dimension each")
    k, left = (lhs[0], lhs[1:]) if transpose_a else (lhs[-1], lhs[:-1])
    j, right = (rhs[-1], rhs[:-1]) if transpose_b else (rhs[0], rhs[1:])
    return k, j, left, right


@dot.infer
def _(ins, outs, *, transpose_a, transpose_b, forward_stype):
    lhs, rhs = ins
    if lhs is None or rhs is None:
        return ins, outs
    k, j, left, right = _parts(lhs, rhs, transpose_a, transpose_b)
    if None not in (k, j) and k != j:
        flags = f"transpose_a={transpose_a}, transpose_b={transpose_b}"
        raise OpValueError(
            f"operator dot: lhs has shape {infer.show(lhs)} and rhs {infer.show(rhs)} ({flags}); "
            f"expected equal contracted sizes, got {k} and {j}"
        )
    result = left + right or (() if numpy_shape() else (1,))
    result = infer.same_shape("dot", ["the product", "output"], [result, outs[0]])[0]
    k = j if k is None else k
    left, right = (result[: len(left)], result[len(left) :]) if left or right else (left, right)
    return [(k, *left) if transpose_a else (*left, k), (*right, k) if transpose_b else (k, *right)], [result]


def _matrices(lhs, rhs, transpose_a, transpose_b):
    """Return shapes of both sides and of their product as matrices: contracted dimensions on their side, others merged."""
    k, _, left, right = _parts(lhs, rhs, transpose_a, transpose_b)
    p, q = size_of(left), size_of(right)
    return (k, p) if transpose_a else (p, k), (q, k) if transpose_b else (k, q), (p, q)


@dot.cpu(prepared=True)
def _(steps, inputs, outputs, *, transpose_a, transpose_b, forward_stype):
    shapes = _matrices(*(a.shape for a in inputs), transpose_a, transpose_b)
    arrays = (matrix_of(steps, x, shape) for x, shape in zip((*inputs, *outputs), shapes, strict=True))
    product(steps, *arrays, transpose_a, transpose_b)


@dot.gpu
def _(xp, inputs, outputs, *, transpose_a, transpose_b, forward_stype):
    left, right, _ = _matrices(*(a.shape for a in inputs), transpose_a, transpose_b)
    product_gpu(xp, inputs[0].reshape(left), inputs[1].reshape(right), transpose_a, transpose_b, outputs[0])


@dot.gradient
def _(F, heads, inputs, outputs, *, transpose_a, transpose_b, forward_stype):
    flags = {"transpose_a": transpose_a, "transpose_b": transpose_b}
    return [
        lambda: F._dot_grad(heads[0], inputs[1], inputs[0], side="lhs", **flags),
        lambda: F._dot_grad(heads[0], inputs[0], inputs[1], side="rhs", **flags),
    ]


def _grad_joins(head, other, like, *, side, transpose_a, **params):
    return side == "rhs" and not transpose_a and len(other) > 1


@kernel(name="_dot_grad", strided=True, adds=True, at_once=_grad_joins, shape_only=(2,))
def dot_grad(head, other, like, *, side: Literal["lhs", "rhs"], transpose_a: bool = False, transpose_b: bool = False):
    """Gradient of ``dot`` with respect to one side, of the shape of `like`: a product of `head` and the other side."""


@dot_grad.shape
def _(head, other, like, **params):
    return like


def _dot_grad_operands(head, other, like, side, transpose_a, transpose_b, seen):
    """Return the matrices to multiply, and whether to transpose each; ``seen(array, shape)`` reshapes."""
    if side == "lhs":  # head rhs'^T, transposed with transpose_a
        _, shape, result = _matrices(like.shape, other.shape, transpose_a, transpose_b)
        head, rhs = seen(head, result), seen(other, shape)
        return (rhs, head, transpose_b, True) if transpose_a else (head, rhs, False, not transpose_b)
    shape, _, result = _matrices(other.shape, like.shape, transpose_a, transpose_b)
    head, lhs = seen(head, result), seen(other, shape)
    return (head, lhs, True, transpose_a) if transpose_b else (lhs, head, not transpose_a, False)


@dot_grad.cpu(prepared=True)
def _(steps, inputs, outputs, **params):
    a, b, ta, tb = _dot_grad_operands(*inputs, **params, seen=partial(matrix_of, steps))
    shape = (a.shape[1 if ta else 0], b.shape[0 if tb else 1])
    product(steps, a, b, reviewed(outputs[0], shape), ta, tb)


@dot_grad.gpu
def _(xp, inputs, outputs, **params):
    a, b, ta, tb = _dot_grad_operands(*inputs, **params, seen=xp.reshape)
    product_gpu(xp, a, b, ta, tb, outputs[0])


@dot_grad.gradient
def _(F, heads, inputs, outputs, *, side, **flags):
    # <h, lhs gradient> = <head, dot(h, rhs)>, which is linear in head and in rhs
    head, other, _ = inputs
    there, of_other = ((heads[0], other), "rhs") if side == "lhs" else ((other, heads[0]), "lhs")
    return [lambda: F.dot(*there, **flags), lambda: F._dot_grad(head, heads[0], other, side=of_other, **flags), None]


# ---- batch_dot ------------------------------------------------------------------------------------------------------
@kernel(strided=True, adds=True, aliases=("_npx_batch_dot",))
def batch_dot(lhs, rhs, *, transpose_a: bool = False, transpose_b: bool = False,
              forward_stype: Literal[None, "csr", "default", "row_sparse"] = None):  # fmt: skip
    """Batched matrix multiplication: multiply two stacks of matrices.

    Parameters
    ----------
    lhs, rhs : NDArray or Symbol
        Floating-point arrays of at least three dimensions, equal in all but the last two.
    transpose_a, transpose_b : bool
        Transpose the matrices of one side first.

    >>> mx.nd.batch_dot(mx.nd.ones((5, 2, 3)), mx.nd.ones((5, 3, 4))).shape
    (5, 2, 4)
    """


@batch_dot.infer
def _(ins, outs, *, transpose_a, transpose_b, forward_stype):
    rank = next((len(s) for s in (*ins, outs[0]) if s is not None), None)
    if rank is None:
        return ins, outs
    lhs, rhs = ((None,) * rank if s is None else s for s in ins)
    if len(lhs) < 3 or len(lhs) != len(rhs):
        raise OpValueError(
            f"operator batch_dot: lhs has shape {infer.show(lhs)} and rhs {infer.show(rhs)}; expected equal ranks of at least 3"
        )
    batch = infer.same_shape("batch_dot", ["the batch of lhs", "the batch of rhs"], [lhs[:-2], rhs[:-2]])[0]
    if outs[0] is not None and len(outs[0]) == len(lhs):
        batch = infer.same_shape("batch_dot", ["the batch of inputs", "the batch of output"], [batch, outs[0][:-2]])[0]
    (m, k), (j, n) = lhs[-2:][:: -1 if transpose_a else 1], rhs[-2:][:: -1 if transpose_b else 1]
    if None not in (k, j) and k != j:
        raise OpValueError(
            f"operator batch_dot: lhs has shape {infer.show(lhs)} and rhs {infer.show(rhs)} "
            f"(transpose_a={transpose_a}, transpose_b={transpose_b}); expected equal contracted sizes, got {k} and {j}"
        )
    k = j if k is None else k
    result = infer.same_shape("batch_dot", ["the product", "output"], [(*batch, m, n), outs[0]])[0]
    *batch, m, n = result
    return [(*batch, *((k, m) if transpose_a else (m, k))), (*batch, *((n, k) if transpose_b else (k, n)))], [result]


@batch_dot.cpu(prepared=True)
def _(steps, inputs, outputs, *, transpose_a, transpose_b, forward_stype):
    product(steps, *inputs, *outputs, transpose_a, transpose_b)


@batch_dot.gpu
def _(xp, inputs, outputs, *, transpose_a, transpose_b, forward_stype):
    product_gpu(xp, *inputs, transpose_a, transpose_b, outputs[0])


@batch_dot.gradient
def _(F, heads, inputs, outputs, *, transpose_a, transpose_b, forward_stype):
    def times(x, y, turned, y_turned):
        return F.batch_dot(x, y, transpose_a=turned, transpose_b=y_turned)

    return _of_sides(times, heads[0], *inputs, transpose_a, transpose_b)


def _of_sides(times, g, a, b, transpose_a, transpose_b):
    """Return the gradients of ``op(a) @ op(b)``, to be called; ``times(x, y, transpose_x, transpose_y)`` multiplies."""
    left = (b, g, transpose_b, True) if transpose_a else (g, b, False, not transpose_b)
    right = (g, a, True, transpose_a) if transpose_b else (a, g, not transpose_a, False)
    return [lambda: times(*left), lambda: times(*right)]


# ---- a product with scale and bias ----------------------------------------------------------------------------------
@kernel(
    name="_gemm",
    strided=True,
    adds=True,
    active_inputs=lambda *, no_bias, **params: ("lhs", "rhs") if no_bias else ("lhs", "rhs", "bias"),
)
def scaled_product(
    lhs, rhs, bias, *, transpose_a: bool = False, transpose_b: bool = False, alpha: float = 1.0, no_bias: bool = False
):
    """Evaluate ``alpha * op(lhs) @ op(rhs) + bias`` for two matrices and a bias that broadcasts to their product."""


@scaled_product.shape
def _(lhs, rhs, bias=None, *, transpose_a, transpose_b, alpha, no_bias):
    if len(lhs) != 2 or len(rhs) != 2:
        raise OpValueError(f"operator _gemm: shapes {lhs} and {rhs}; expected two matrices")
    k, j, left, right = _parts(lhs, rhs, transpose_a, transpose_b)
    if k != j:
        raise OpValueError(
            f"operator _gemm: lhs has shape {lhs} and rhs {rhs}; expected equal contracted sizes, got {k} and {j}"
        )
    result = left + right
    if bias is not None and infer.broadcast_shape("_gemm", ("the product", "bias"), (result, bias)) != result:
        raise OpValueError(f"operator _gemm: bias has shape {bias}, which does not broadcast to {result}")
    return result


@scaled_product.cpu(prepared=True)
def _(steps, inputs, outputs, *, transpose_a, transpose_b, alpha, no_bias):
    lhs, rhs, *bias = inputs
    product(steps, lhs, rhs, outputs[0], transpose_a, transpose_b, alpha, *bias)


@scaled_product.gpu
def _(xp, inputs, outputs, *, transpose_a, transpose_b, alpha, no_bias):
    lhs, rhs, *bias = inputs
    plain = alpha == 1 and not bias
    found = product_gpu(xp, lhs, rhs, transpose_a, transpose_b, outputs[0] if plain else None)
    if alpha != 1:
        found *= alpha
    if bias:
        found += bias[0]
    if not plain:
        outputs[0][...] = found


@scaled_product.gradient
def _(F, heads, inputs, outputs, *, transpose_a, transpose_b, alpha, no_bias):
    def times(x, y, turned, y_turned):
        return F._gemm(x, y, transpose_a=turned, transpose_b=y_turned, alpha=alpha, no_bias=True)

    found = _of_sides(times, heads[0], *inputs[:2], transpose_a, transpose_b)
    return found if no_bias else [*found, lambda: F._unbroadcast(heads[0], inputs[2])]


for _op in (dot, dot_grad, batch_dot, scaled_product):
    float_types(_op)
