"""Linear algebra, batched: matrix products, Cholesky factors, determinants, inverses.

Factors and solutions come from LAPACK and BLAS, as NumPy, SciPy and CuPy bring them, in float32 and float64; the rest is
composed.  Gradient rules are written with the same operators, so every order follows.  They are those of M. B. Giles,
"Collected matrix derivative results for forward and reverse mode algorithmic differentiation" (2008).
"""

from ..opdef import composite, infer, kernel
from ..support import dtypes
from ..support.errors import OpValueError
from ..support.shape_mode import numpy_shape
from ._shared import equal_shapes, float_types, on_both
from .layout import forward_and_back, square

_TYPES = (dtypes.FLOAT32, dtypes.FLOAT64)


# ---- what all have in common ----------------------------------------------------------------------------------------
def lapack_types(op):
    """Let an operator take float32 or float64, one of them for all, as MXNet does."""
    float_types(op, allowed=_TYPES, told="float32 or float64")


def squares(op):
    """Let the input and the output of a kernel be square matrices of one shape."""
    equal_shapes(op)
    rule = op._infer

    @op.infer
    def _(ins, outs, **params):
        ins, outs = rule(ins, outs, **params)
        if ins[0] is not None:
            square(op.name, ins[0])
        return ins, outs

    return op


def _of_batch(batch):
    """Return the shape of one number for each matrix."""
    return batch if batch or numpy_shape() else (1,)


def refused(name, run, *inputs):
    """Run a function of NumPy's or CuPy's linear algebra; what it refuses is an error of the operator."""
    from numpy.linalg import LinAlgError  # CuPy's, too

    try:
        return run(*inputs)
    except LinAlgError as problem:
        raise OpValueError(f"operator {name}: {problem}") from None


def turned(F, A):
    """Transpose matrices."""
    return F.SwapAxis(A, dim1=-1, dim2=-2)


def product(F, a, b, transpose_a=False, transpose_b=False):
    multiply = F.dot if len(a.shape) == 2 else F.batch_dot
    return multiply(a, b, transpose_a=transpose_a, transpose_b=transpose_b)


def both_halves(F, A):
    """Mirror the lower triangles of matrices."""
    return lower_part(F, A) + turned(F, F._triangle(A, offset=-1, lower=True))


def lower_part(F, A, lower=True):
    return F._triangle(A, lower=lower)


def eye_like(F, rows):
    """Return unit matrices with as many rows as ``rows`` has elements along its last axis."""
    return F._linalg_makediag(F.ones_like(rows))


# ---- products -------------------------------------------------------------------------------------------------------
def _checked(name, shapes, axis, transpose_a=False, transpose_b=False):
    """Return the axis of the rows, counted from the front, of stacks of matrices that can be multiplied."""
    rank = len(shapes[0])
    if rank < 2 or any(len(s) != rank for s in shapes):
        raise OpValueError(
            f"operator {name}: shapes {_listed(shapes)}; expected matrices, or stacks, of equal numbers of dimensions"
        )
    at = infer.normal_axis(name, axis, rank)
    if at == rank - 1:
        raise OpValueError(f"operator {name}: axis={axis} is that of the columns; expected another one")
    a, b = shapes[:2]
    batches = {tuple(d for i, d in enumerate(s) if i not in (at, rank - 1)) for s in shapes}
    (m, k), (j, n) = ((a[at], a[-1])[:: -1 if transpose_a else 1], (b[at], b[-1])[:: -1 if transpose_b else 1])
    if len(batches) > 1 or k != j or any((s[at], s[-1]) != (m, n) for s in shapes[2:]):
        flags = f"transpose_a={transpose_a}, transpose_b={transpose_b}, axis={axis}"
        raise OpValueError(f"operator {name}: shapes {_listed(shapes)} ({flags}) cannot be multiplied and added as matrices")
    return at


def _listed(shapes):
    return ", ".join(map(infer.show, shapes))


def _product_shape(name, a, b, axis, transpose_a, transpose_b):
    """Return the shape of a product of (stacks of) matrices, as far as it is known."""
    if a is None or b is None:
        return None
    if None not in (*a, *b) or len(a) != len(b):
        _checked(name, [a, b], axis, transpose_a, transpose_b)
    at = infer.normal_axis(name, axis, len(a))
    found = [e if d is None else d for d, e in zip(a, b, strict=True)]  # they share what is before the matrices
    found[at], found[-1] = a[-1 if transpose_a else at], b[at if transpose_b else -1]
    return tuple(found)


def _multiplied(F, name, A, B, C, transpose_a, transpose_b, alpha, beta, axis):
    arrays = [x for x in (A, B, C) if x is not None]
    rank, at = len(A.shape), _checked(name, [tuple(x.shape) for x in arrays], axis, transpose_a, transpose_b)

    def moved(x):  # the axis of the rows, next to that of the columns and back
        return x if at == rank - 2 else F.SwapAxis(x, dim1=at, dim2=rank - 2)

    found = moved(scaled(F, product(F, moved(A), moved(B), transpose_a, transpose_b), alpha))
    return found if C is None else F.elemwise_add(found, scaled(F, C, beta))


def scaled(F, x, factor):
    return x if factor == 1 else F._mul_scalar(x, scalar=factor)


@composite(name="_linalg_gemm", aliases=("linalg_gemm",))
def gemm(F, A, B, C, *, transpose_a: bool = False, transpose_b: bool = False, alpha: float = 1.0, beta: float = 1.0,
         axis: int = -2):  # fmt: skip
    """Evaluate ``alpha * op(A) @ op(B) + beta * C``.

    Parameters
    ----------
    A, B, C : NDArray or Symbol
        Matrices, or stacks of matrices with equal leading dimensions.
    transpose_a, transpose_b : bool
        Transpose the matrices of one side first.
    axis : int
        Axis of the rows; columns are the last axis.

    >>> a, b = mx.nd.array([[1, 2], [3, 4]]), mx.nd.array([[1, 1], [1, 1]])
    >>> mx.nd.linalg.gemm(a, b, b, transpose_a=True, alpha=2).asnumpy().tolist()
    [[9.0, 9.0], [13.0, 13.0]]
    """
    return _multiplied(F, "_linalg_gemm", A, B, C, transpose_a, transpose_b, alpha, beta, axis)


@gemm.infer
def _(ins, outs, *, transpose_a, transpose_b, axis, **params):
    found = _product_shape("_linalg_gemm", *ins[:2], axis, transpose_a, transpose_b)
    names = ["C", "output", "the product of A and B"]
    added, result, _ = infer.same_shape("_linalg_gemm", names, [ins[2], outs[0], found])
    return [*ins[:2], added], [result]


@composite(name="_linalg_gemm2", aliases=("linalg_gemm2",))
def gemm2(F, A, B, *, transpose_a: bool = False, transpose_b: bool = False, alpha: float = 1.0, axis: int = -2):
    """Evaluate ``alpha * op(A) @ op(B)``.  Parameters as for ``gemm``.

    >>> a = mx.nd.array([[1, 2], [3, 4]])
    >>> mx.nd.linalg.gemm2(a, a, transpose_b=True).asnumpy().tolist()
    [[5.0, 11.0], [11.0, 25.0]]
    """
    return _multiplied(F, "_linalg_gemm2", A, B, None, transpose_a, transpose_b, alpha, None, axis)


@gemm2.infer
def _(ins, outs, *, transpose_a, transpose_b, axis, **params):
    return ins, [_product_shape("_linalg_gemm2", *ins, axis, transpose_a, transpose_b)]


@composite(name="_linalg_syrk", aliases=("linalg_syrk",))
def syrk(F, A, *, transpose: bool = False, alpha: float = 1.0):
    """Evaluate ``alpha * A @ A.T``, or ``alpha * A.T @ A`` with `transpose`.

    >>> mx.nd.linalg.syrk(mx.nd.array([[1, 2], [3, 4]])).asnumpy().tolist()
    [[5.0, 11.0], [11.0, 25.0]]
    """
    return _multiplied(F, "_linalg_syrk", A, A, None, transpose, not transpose, alpha, None, -2)


@syrk.infer
def _(ins, outs, *, transpose, **params):
    return ins, [_product_shape("_linalg_syrk", *ins, *ins, -2, transpose, not transpose)]


@composite(name="_linalg_trmm", aliases=("linalg_trmm",))
def trmm(F, A, B, *, transpose: bool = False, rightside: bool = False, lower: bool = True, alpha: float = 1.0):
    """Multiply by triangular matrices: ``alpha * op(A) @ B``, or ``alpha * B @ op(A)`` with `rightside`.

    Parameters
    ----------
    A : NDArray or Symbol
        Square matrices, of which one triangle is read.
    B : NDArray or Symbol
        Matrices of the same batch.
    transpose : bool
        Transpose `A` first.
    lower : bool
        Which triangle.

    >>> a = mx.nd.array([[1, 9], [2, 1]])
    >>> mx.nd.linalg.trmm(a, mx.nd.ones((2, 2))).asnumpy().tolist()
    [[1.0, 1.0], [3.0, 3.0]]
    """
    square("_linalg_trmm", A.shape)
    tri = lower_part(F, A, lower)
    if rightside:
        return _multiplied(F, "_linalg_trmm", B, tri, None, False, transpose, alpha, None, -2)
    return _multiplied(F, "_linalg_trmm", tri, B, None, transpose, False, alpha, None, -2)


# ---- triangular systems ---------------------------------------------------------------------------------------------
@kernel(name="_linalg_trsm", aliases=("linalg_trsm",))
def trsm(A, B, *, transpose: bool = False, rightside: bool = False, lower: bool = True, alpha: float = 1.0):
    """Solve ``op(A) @ X = alpha * B`` for triangular `A`, or ``X @ op(A) = alpha * B`` with `rightside`.

    A zero on the diagonal gives infinities or NaN.

    Parameters
    ----------
    A : NDArray or Symbol
        Square matrices, of which one triangle is read.
    B : NDArray or Symbol
        Matrices of the same batch.
    transpose : bool
        Transpose `A` first.
    lower : bool
        Which triangle.

    >>> a = mx.nd.array([[1, 9], [2, 1]])
    >>> mx.nd.linalg.trsm(a, mx.nd.array([[1], [3]])).asnumpy().tolist()
    [[1.0], [1.0]]
    """


@trsm.infer
def _(ins, outs, *, rightside, **params):
    A, B = ins
    B, out = infer.same_shape("_linalg_trsm", ("B", "output"), [B, outs[0]])
    if A is not None:
        batch, n = square("_linalg_trsm", A)
        if B is not None:
            wanted = (*batch, None, n) if rightside else (*batch, n, None)
            B = out = infer.same_shape("_linalg_trsm", ("B", "expected by A"), [B, wanted])[0]
    if B is not None:
        if len(B) < 2:
            raise OpValueError(f"operator _linalg_trsm: B has shape {infer.show(B)}; expected matrices")
        n = B[-1] if rightside else B[-2]
        A = infer.same_shape("_linalg_trsm", ("A", "expected by B"), [A, (*B[:-2], n, n)])[0]
    return [A, B], [out]


def _flat(x):
    """See a stack of matrices along one axis."""
    return x.reshape(-1, *x.shape[-2:]) if x.size else x.reshape(0, *x.shape[-2:])


@trsm.cpu
def _(inputs, outputs, *, transpose, rightside, lower, alpha):
    import numpy as np
    from scipy.linalg import blas

    A, B, out = (_flat(np.asarray(x)) for x in (*inputs, *outputs))
    solve = blas.dtrsm if out.dtype == np.float64 else blas.strsm
    for a, b, x in zip(A, B, out, strict=False):  # all are transposed, as BLAS sees rows as columns
        x.T[...] = solve(alpha, a.T, b.T, side=not rightside, lower=not lower, trans_a=transpose)


@trsm.gpu
def _(xp, inputs, outputs, *, transpose, rightside, lower, alpha):
    if not outputs[0].size:
        return
    tri = (xp.tril if lower else xp.triu)(inputs[0])
    tri = tri.swapaxes(-1, -2) if transpose else tri
    B = inputs[1] * alpha
    if not rightside:
        outputs[0][...] = xp.linalg.solve(tri, B)
        return
    outputs[0][...] = xp.linalg.solve(tri.swapaxes(-1, -2), B.swapaxes(-1, -2)).swapaxes(-1, -2)


@trsm.gradient
def _(F, heads, inputs, outputs, *, transpose, rightside, lower, alpha):
    X = outputs[0]
    G = F._linalg_trsm(inputs[0], heads[0], transpose=not transpose, rightside=rightside, lower=lower)
    left, right = (G, X) if transpose == rightside else (X, G)

    def of_matrix():
        return lower_part(F, scaled(F, product(F, left, right, rightside, not rightside), -1.0), lower)

    return [of_matrix, scaled(F, G, alpha)]


# ---- Cholesky -------------------------------------------------------------------------------------------------------
@squares
@kernel(name="_linalg_potrf", aliases=("linalg_potrf",))
def potrf(A, *, lower: bool = True):
    """Cholesky factors: lower triangular `L` with ``L @ L.T = A``, or upper triangular `U` with ``U.T @ U = A``.

    Parameters
    ----------
    A : NDArray or Symbol
        Symmetric, positive definite matrices; the symmetric part ``(A + A.T) / 2`` is used.
    lower : bool
        Return `L`, not `U`.

    >>> mx.nd.linalg.potrf(mx.nd.array([[4, 2], [2, 5]])).asnumpy().tolist()
    [[2.0, 0.0], [1.0, 2.0]]
    """


def symmetric(A):
    return (A + A.swapaxes(-1, -2)) / 2


@on_both(potrf)
def _(xp, inputs, outputs, *, lower):
    found = refused("_linalg_potrf", xp.linalg.cholesky, symmetric(inputs[0]))
    outputs[0][...] = found if lower else found.swapaxes(-1, -2)


@potrf.gradient
def _(F, heads, inputs, outputs, *, lower):
    L, head = (outputs[0], heads[0]) if lower else (turned(F, outputs[0]), turned(F, heads[0]))
    S = both_halves(F, product(F, L, lower_part(F, head), True, False))
    S = F._linalg_trsm(L, S, transpose=True)
    return [F._linalg_trsm(L, S, rightside=True, alpha=0.5)]


@composite(name="_linalg_potri", aliases=("linalg_potri",))
def potri(F, A, *, lower: bool = True):
    """Inverses of ``A @ A.T`` for lower triangular `A`, that is, of the matrices whose Cholesky factors are `A`.

    Parameters
    ----------
    lower : bool
        With False, `A` is upper triangular, and the inverses are those of ``A.T @ A``.

    >>> mx.nd.linalg.potri(mx.nd.array([[2, 0], [1, 2]])).asnumpy().tolist()
    [[0.3125, -0.125], [-0.125, 0.25]]
    """
    W = F._linalg_trsm(A, eye_like(F, F._linalg_extractdiag(A)), lower=lower)
    return product(F, W, W, lower, not lower)


forward_and_back(potri, lambda A, **params: (*square("_linalg_potri", A)[0], *A[-2:]), lambda out, **params: out)


@composite(name="_linalg_sumlogdiag", aliases=("linalg_sumlogdiag",))
def sumlogdiag(F, A):
    """Sums of the logarithms of the diagonals of square matrices.

    >>> mx.nd.linalg.sumlogdiag(mx.nd.array([[[1, 9], [0, 1]]])).asnumpy().tolist()
    [0.0]
    """
    return F.sum(F.log(F._linalg_extractdiag(A)), axis=-1)


@sumlogdiag.infer
def _(ins, outs):
    if ins[0] is not None:
        found = _of_batch(square("_linalg_sumlogdiag", ins[0])[0])
        outs = infer.same_shape("_linalg_sumlogdiag", ("output", "the batch of A"), [outs[0], found])[:1]
    return ins, outs


# ---- inverses and determinants --------------------------------------------------------------------------------------
@squares
@kernel(name="_linalg_inverse", aliases=("_npi_inv", "linalg_inverse"))
def inverse(A):
    """Inverses of square matrices; a singular one is an error.

    >>> mx.nd.linalg.inverse(mx.nd.array([[2, 0], [0, 4]])).asnumpy().tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """


@on_both(inverse)
def _(xp, inputs, outputs):
    outputs[0][...] = refused("_linalg_inverse", xp.linalg.inv, inputs[0])


@inverse.gradient
def _(F, heads, inputs, outputs):
    B = outputs[0]
    return [scaled(F, product(F, product(F, B, heads[0], True, False), B, False, True), -1.0)]


def _numbers(op):
    """Let an operator return one number for each of a batch of square matrices, in each of its results."""

    @op.infer
    def _(ins, outs):
        if ins[0] is not None:
            found = _of_batch(square(op.name, ins[0])[0])
            names = ("output", "the batch of A")
            outs = [infer.same_shape(op.name, names, [out, found])[0] for out in outs]
        return ins, outs


@kernel(name="_linalg_det", aliases=("_npi_det", "linalg_det"), output_names=("output0",))  # MXNet computes more
def det(A):
    """Determinants of square matrices.

    The gradient at a singular matrix is right, too; higher orders raise an error there.

    >>> mx.nd.linalg.det(mx.nd.array([[[1, 2], [3, 4]], [[2, 0], [0, 2]]])).asnumpy().round(4).tolist()
    [-2.0, 4.0]
    """


_numbers(det)


@on_both(det)
def _(xp, inputs, outputs):
    import numpy as np

    with np.errstate(over="ignore"):  # infinite: what float32 does not hold
        outputs[0][...] = xp.linalg.det(inputs[0]).reshape(outputs[0].shape)


def _for_each(F, numbers, A):
    """Give one number a matrix the shape of the matrices."""
    lifted = F.Reshape(numbers, shape=(1, 1)) if len(A.shape) == 2 else F.expand_dims(F.expand_dims(numbers, axis=-1), axis=-1)
    return F.broadcast_like(lifted, A)


@det.gradient
def _(F, heads, inputs, outputs):
    return [F.elemwise_mul(_for_each(F, heads[0], inputs[0]), F._cofactors(inputs[0]))]


@squares
@kernel(name="_cofactors")
def cofactors(A):
    """Cofactors of the elements of square matrices: the gradient of the determinant."""


@on_both(cofactors)
def _(xp, inputs, outputs):
    import numpy as np

    A, out = (
        inputs[0].astype(np.float64),
        outputs[0],
    )  # cofactors are differences: the rounding of a part can be all there is
    if not A.size:
        return
    u, s, v = refused("_linalg_det", xp.linalg.svd, A)  # the cofactors of a product are the product of the cofactors
    sign = xp.linalg.det(u) * xp.linalg.det(v)
    with np.errstate(over="ignore", invalid="ignore"):  # of large matrices, as the determinant itself
        others = xp.where(xp.eye(s.shape[-1], dtype=bool), 1, s[..., None, :]).prod(-1)
        out[...] = (u * (others * sign[..., None])[..., None, :]) @ v


@cofactors.gradient
def _(F, heads, inputs, outputs):
    H, C = heads[0], outputs[0]
    K = turned(F, F._linalg_inverse(inputs[0]))
    inner = F.sum(F.elemwise_mul(H, C), axis=(-2, -1))
    first = F.elemwise_mul(_for_each(F, inner, C), K)
    return [F.elemwise_sub(first, product(F, product(F, C, H, False, True), K))]


@kernel(
    name="_linalg_slogdet",
    aliases=("_npi_slogdet", "linalg_slogdet"),
    num_outputs=2,
    absent_heads=True,  # of the sign alone no inverse is needed, which a singular matrix does not have
)
def slogdet(A):
    """Signs of the determinants of square matrices, and the logarithms of their magnitudes.

    The sign has no gradient.

    >>> sign, log = mx.nd.linalg.slogdet(mx.nd.array([[0, 1], [1, 0]]))
    >>> sign.asnumpy().tolist(), log.asnumpy().tolist()
    ([-1.0], [0.0])
    """


_numbers(slogdet)


@on_both(slogdet)
def _(xp, inputs, outputs):
    for out, found in zip(outputs, xp.linalg.slogdet(inputs[0]), strict=True):
        out[...] = found.reshape(out.shape)


@slogdet.gradient
def _(F, heads, inputs, outputs):
    if heads[1] is None:
        return [None]
    K = turned(F, F._linalg_inverse(inputs[0]))
    return [F.elemwise_mul(_for_each(F, heads[1], inputs[0]), K)]


for _op in (gemm, gemm2, syrk, trmm, trsm, potrf, potri, sumlogdiag, inverse, det, cofactors, slogdet):
    lapack_types(_op)
