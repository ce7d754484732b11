"""Operators of sparse storage, on dense arrays and on the parts of sparse ones; ``mx.nd.sparse`` has the arrays."""

from typing import Literal

from ..opdef import Scalar, composite, elementwise, infer, kernel
from ..support.errors import OpValueError
from ._shared import both_ways, device_of, on_both, typed_by_first


@elementwise(aliases=("_sparse_cast_storage",))
def cast_storage(data, *, stype: Literal["csr", "default", "row_sparse"]):
    """Copy of the data in another storage: ``mx.nd.cast_storage`` and bound symbols make sparse arrays.

    >>> mx.sym.cast_storage(mx.sym.Variable("x"), stype="csr").eval(x=mx.nd.ones((1, 2)))[0].stype
    'csr'
    """
    return data


@typed_by_first
@composite(name="_sparse_retain")
def sparse_retain(F, data, indices):
    """Copy of the data that keeps the rows in `indices`; the others are 0.

    >>> mx.nd._internal._sparse_retain(mx.nd.ones((3, 1)), mx.nd.array([2])).asnumpy().tolist()
    [[0.0], [0.0], [1.0]]
    """
    marks = F.zeros(shape=data.shape[:1], ctx=device_of(data))
    kept = F._take_grad(F.ones_like(F.Cast(indices, dtype="float32")), indices, marks, axis=0, mode="clip")
    return F.where(kept, data, F.zeros_like(data))


@elementwise(name="_scatter_plus_scalar")
def scatter_plus_scalar(data, *, scalar: Scalar = 1.0, is_int: bool = True):
    """Sum of the data and a number; of a sparse array, of what is stored alone, and stored as it is.

    >>> x = mx.nd.array([[0, 2]]).tostype("csr")
    >>> mx.nd._internal._scatter_plus_scalar(x, scalar=3).asnumpy().tolist()
    [[0.0, 5.0]]
    """
    return data + scalar


@elementwise(name="_scatter_minus_scalar")
def scatter_minus_scalar(data, *, scalar: Scalar = 1.0, is_int: bool = True):
    """Difference of the data and a number; of a sparse array, of what is stored alone, and stored as it is.

    >>> x = mx.nd.array([[0, 2]]).tostype("csr")
    >>> mx.nd._internal._scatter_minus_scalar(x, scalar=3).asnumpy().tolist()
    [[0.0, -1.0]]
    """
    return data - scalar


@elementwise(name="_scatter_elemwise_div")
def scatter_elemwise_div(lhs, rhs):
    """Quotient of two arrays; of a row_sparse array by any other, of the rows that are stored alone.

    >>> x = mx.nd.sparse.row_sparse_array(([[6]], [1]), shape=(2, 1))
    >>> mx.nd._internal._scatter_elemwise_div(x, mx.nd.array([[0], [2]])).asnumpy().tolist()
    [[0.0], [3.0]]
    """
    return lhs / rhs


@kernel(name="_csr_dot")
def csr_dot(values, columns, starts, rhs, *, size: int, transpose: bool = False):
    """Product of a csr matrix of `size` columns, or of its transpose, with a dense vector or matrix.

    The matrix is given by its values, their columns, and where each row begins; its own gradient is zero.

    >>> values, columns, starts = mx.nd.array([5, 7]), mx.nd.array([1, 0]), mx.nd.array([0, 1, 2])
    >>> mx.nd._internal._csr_dot(values, columns, starts, mx.nd.array([1, 2]), size=2).asnumpy().tolist()
    [10.0, 7.0]
    """


def _product_shape(values, columns, starts, rhs, *, size, transpose):
    if None in (values, columns, starts, rhs) or starts[0] is None:
        return None
    rows = (size, starts[0] - 1)
    if len(rhs) not in (1, 2) or not infer.compatible(rhs[:1], (rows[transpose],)):
        raise OpValueError(f"operator _csr_dot: rhs has shape {infer.show(rhs)}; the matrix has {rows[transpose]} columns")
    return (rows[not transpose], *rhs[1:])


both_ways(csr_dot, _product_shape)
typed_by_first(csr_dot, first=3)


@on_both(csr_dot)
def _(xp, inputs, outputs, *, size, transpose):
    values, columns, starts, rhs = inputs
    columns, starts, shape = columns.astype(xp.int64), starts.astype(xp.int64), (starts.size - 1, size)
    wide = xp.float64 if rhs.dtype == xp.float64 else xp.float32
    if xp.__name__ == "numpy":
        from scipy.sparse import csr_matrix

        matrix = csr_matrix((values.astype(wide), columns, starts), shape=shape)
    else:
        matrix = xp.zeros(shape, wide)
        matrix[xp.searchsorted(starts, xp.arange(columns.size), side="right") - 1, columns] = values
    outputs[0][...] = (matrix.T if transpose else matrix) @ rhs.astype(wide)


@csr_dot.gradient
def _(F, heads, inputs, outputs, *, size, transpose):
    return [None, None, None, F._csr_dot(*inputs[:3], heads[0], size=size, transpose=not transpose)]


# ---- what is stored ----------------------------------------------------------------------------------------------------
@composite(name="_contrib_getnnz")
def getnnz(F, data, *, axis: int | None = None):
    """Number of nonzero elements, as int64; for a csr matrix, of stored elements.

    Parameters
    ----------
    axis : int, optional
        Count those of each column (0) or row (1) of a matrix; by default all.

    >>> mx.nd.contrib.getnnz(mx.nd.array([[0, 1], [2, 3]]), axis=1).asnumpy().tolist()
    [1, 2]
    """
    return F.sum(F.Cast(F._not_equal_scalar(data, scalar=0), dtype="int64"), axis=axis)


@composite(name="_contrib_edge_id")
def edge_id(F, data, u, v):
    """Elements of a matrix at given rows and columns, -1 where they are zero (for a csr matrix, not stored).

    Parameters
    ----------
    data : NDArray or Symbol
        ``(rows, columns)``.
    u, v : NDArray or Symbol
        Row and column indices, vectors of one length.

    >>> mx.nd.contrib.edge_id(mx.nd.array([[0, 5], [7, 0]]), mx.nd.array([0, 1]), mx.nd.array([1, 1])).asnumpy().tolist()
    [5.0, -1.0]
    """
    found = F.gather_nd(data, F.stack(u, v, axis=0))
    return F.where(found, found, F._minus_scalar(F.zeros_like(found), scalar=1))
