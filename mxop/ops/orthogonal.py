"""Orthogonal factorizations and eigenvectors, batched.

Gradient rules are those of M. Seeger et al., "Auto-differentiating linear algebra" (2017).
"""

from ..opdef import infer, kernel
from ..support.errors import OpValueError
from ._shared import on_both
from .layout import square
from .linalg import both_halves, eye_like, lapack_types, lower_part, product, refused, scaled, symmetric, turned


@kernel(name="_linalg_gelqf", aliases=("linalg_gelqf",), num_outputs=2)
def gelqf(A):
    """LQ factorization ``A = L @ Q``: `Q` with orthonormal rows, and the lower triangular `L`, in this order.

    Parameters
    ----------
    A : NDArray or Symbol
        Matrices with at least as many columns as rows, and of full rank.

    >>> q, l = mx.nd.linalg.gelqf(mx.nd.array([[3, 4]]))
    >>> mx.nd.dot(l, q).asnumpy().round(4).tolist()
    [[3.0, 4.0]]
    """


@gelqf.infer
def _(ins, outs):
    A, Q = infer.same_shape("_linalg_gelqf", ("A", "the first output"), [ins[0], outs[0]])
    L = outs[1]
    if A is not None:
        if len(A) < 2 or (None not in A[-2:] and A[-2] > A[-1]):
            raise OpValueError(f"operator _linalg_gelqf: A has shape {infer.show(A)}; expected matrices with at least as many "
                               "columns as rows")  # fmt: skip
        L = infer.same_shape("_linalg_gelqf", ("the second output", "the rows of A"), [L, (*A[:-1], A[-2])])[0]
    return [A], [Q, L]


@on_both(gelqf)
def _(xp, inputs, outputs):
    q, r = refused("_linalg_gelqf", xp.linalg.qr, inputs[0].swapaxes(-1, -2))
    outputs[0][...], outputs[1][...] = q.swapaxes(-1, -2), r.swapaxes(-1, -2)


@gelqf.gradient
def _(F, heads, inputs, outputs):
    (gQ, gL), (Q, L) = heads, outputs
    M = F.elemwise_sub(product(F, L, lower_part(F, gL), True, False), product(F, gQ, Q, False, True))
    found = F.elemwise_add(gQ, product(F, both_halves(F, M), Q))
    return [F._linalg_trsm(L, found, transpose=True)]


@kernel(name="_linalg_syevd", num_outputs=2, absent_heads=True)  # a zero for U would be 0 / 0 at equal eigenvalues
def syevd(A):
    """Eigenvectors, as rows, and eigenvalues in ascending order: ``A = U.T @ diag(L) @ U``.

    The largest element of each eigenvector is positive.  Eigenvectors of equal eigenvalues have no gradient: it
    is infinite or NaN there.  The gradient of the eigenvalues alone is finite.

    Parameters
    ----------
    A : NDArray or Symbol
        Symmetric matrices; the symmetric part ``(A + A.T) / 2`` is used.

    >>> u, l = mx.nd.linalg.syevd(mx.nd.array([[0, 1], [1, 0]]))
    >>> l.asnumpy().round(4).tolist()
    [-1.0, 1.0]
    """


@syevd.infer
def _(ins, outs):
    A, U = infer.same_shape("_linalg_syevd", ("A", "the first output"), [ins[0], outs[0]])
    values = outs[1]
    if A is not None:
        square("_linalg_syevd", A)
        values = infer.same_shape("_linalg_syevd", ("the second output", "the rows of A"), [values, A[:-1]])[0]
    return [A], [U, values]


@on_both(syevd)
def _(xp, inputs, outputs):
    if not inputs[0].size:
        return
    values, vectors = refused("_linalg_syevd", xp.linalg.eigh, symmetric(inputs[0]))
    rows = vectors.swapaxes(-1, -2)
    largest = xp.take_along_axis(rows, xp.abs(rows).argmax(-1)[..., None], -1)
    outputs[0][...], outputs[1][...] = xp.where(largest < 0, -rows, rows), values


@syevd.gradient
def _(F, heads, inputs, outputs):
    (gU, gl), (U, values) = heads, outputs
    if gU is None:
        return [product(F, product(F, U, F._linalg_makediag(gl), True, False), U)]
    eye = eye_like(F, values)
    gaps = F.broadcast_sub(F.expand_dims(values, axis=-1), F.expand_dims(values, axis=-2))  # l_i - l_j
    weights = F.elemwise_sub(F._rdiv_scalar(F.elemwise_add(gaps, eye), scalar=1.0), eye)
    Y = F.elemwise_mul(product(F, gU, U, False, True), weights)
    Y = scaled(F, F.elemwise_add(Y, turned(F, Y)), 0.5)
    Y = Y if gl is None else F.elemwise_add(Y, F._linalg_makediag(gl))
    return [product(F, product(F, U, Y, True, False), U)]


for _op in (gelqf, syevd):
    lapack_types(_op)
