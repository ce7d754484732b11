"""Copies of arrays with some elements replaced: assignments to parts of arrays in files of MXNet."""

from ..opdef import Shape, composite, infer
from ..support.errors import OpValueError
from ._shared import one_type, typed_by_first, zero_gradient


@composite(name="_scatter_set_nd", aliases=("_npi_scatter_set_nd",))
def scatter_set_nd(F, lhs, rhs, indices, *, shape: Shape):
    """Copy of `lhs` with the parts of `rhs` at given coordinates.

    Parameters
    ----------
    rhs : NDArray or Symbol
        One part for each column of `indices`.
    indices : NDArray or Symbol
        ``(m, ...)``, coordinates as ``scatter_nd`` takes them.
    shape : tuple of int
        That of `lhs`.

    >>> x = mx.nd._internal._scatter_set_nd(mx.nd.ones((3,)), mx.nd.array([5]), mx.nd.array([[1]]), shape=(3,))
    >>> x.asnumpy().tolist()
    [1.0, 5.0, 1.0]
    """
    places = F.scatter_nd(F.ones_like(rhs), indices, shape=shape)
    return F.where(places, F.scatter_nd(rhs, indices, shape=shape), lhs)


def _rows(op, matrix, *vectors):
    """Complete the shapes of a matrix and of vectors, of one element a row."""
    if matrix is not None and len(matrix) != 2:
        raise OpValueError(f"operator {op}: expected a matrix, got shape {infer.show(matrix)}")
    known = [None if matrix is None else matrix[0], *(v and v[0] for v in vectors)]
    n = next((d for d in known if d is not None), None)
    matrix = infer.same_shape(op, ("the matrix", "the rows"), [matrix, (n, None)])[0]
    return [matrix, *(infer.same_shape(op, ("a vector", "one element a row"), [v, (n,)])[0] for v in vectors)]


@one_type
@composite
def fill_element_0index(F, lhs, mhs, rhs):
    """Copy of a matrix with one element of each row replaced.

    Parameters
    ----------
    lhs : NDArray or Symbol
        ``(rows, columns)``.
    mhs : NDArray or Symbol
        ``(rows,)``: the new elements.
    rhs : NDArray or Symbol
        ``(rows,)``: their columns; an invalid one changes nothing.

    >>> x = mx.nd.fill_element_0index(mx.nd.zeros((2, 2)), mx.nd.array([3, 4]), mx.nd.array([1, 0]))
    >>> x.asnumpy().tolist()
    [[0.0, 3.0], [4.0, 0.0]]
    """
    return F.where(F.one_hot(rhs, depth=lhs.shape[1]), F.broadcast_like(F.expand_dims(mhs, axis=1), lhs), lhs)


@fill_element_0index.infer
def _(ins, outs):
    matrix = infer.same_shape("fill_element_0index", ("lhs", "output"), [ins[0], outs[0]])[0]
    done = _rows("fill_element_0index", matrix, *ins[1:])
    return done, done[:1]


@composite(name="_onehot_encode")
def onehot_encode(F, lhs, rhs):
    """Rows like those of `rhs`, of zeros but for a one at each index of `lhs`; ``one_hot`` does the same.

    >>> mx.nd._internal._onehot_encode(mx.nd.array([1, 0]), mx.nd.zeros((2, 3))).asnumpy().tolist()
    [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]
    """
    return F.one_hot(lhs, depth=rhs.shape[1], dtype=rhs.dtype)


typed_by_first(onehot_encode, 1)
zero_gradient(onehot_encode)  # of rhs, too, of which only the shape is read


@onehot_encode.infer
def _(ins, outs):
    matrix = infer.same_shape("_onehot_encode", ("rhs", "output"), [ins[1], outs[0]])[0]
    matrix, vector = _rows("_onehot_encode", matrix, ins[0])
    return [vector, matrix], [matrix]
