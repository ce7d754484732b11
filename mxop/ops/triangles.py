"""Triangular parts of matrices, and their packed vectors."""

from ..opdef import infer, kernel
from ..support.errors import OpValueError
from ._shared import adjoint, both_ways, equal_shapes, on_both, typed_by_first
from .layout import square


@equal_shapes
@kernel(name="_triangle")
def triangle(A, *, offset: int = 0, lower: bool = True):
    """Matrices in which zeros replace what lies above (or below) a diagonal."""


@on_both(triangle)
def _(xp, inputs, outputs, *, offset, lower):
    outputs[0][...] = (xp.tril if lower else xp.triu)(inputs[0], offset)


adjoint(triangle, triangle)


def _packed(xp, n, offset, lower):
    """Return rows and columns of a triangle: of a lower one row by row, of an upper one column by column, as MXNet's."""
    lower = offset < 0 or (offset == 0 and lower)
    return xp.tril_indices(n, offset) if lower else xp.tril_indices(n, -offset)[::-1]


def _extracttrian_shape(A, *, offset, lower):
    batch, n = square("_linalg_extracttrian", A)
    if n is not None and abs(offset) > n:
        raise OpValueError(f"operator _linalg_extracttrian: A of shape {infer.show(A)} has no triangle from diagonal {offset}")
    return (*batch, None if n is None else (n - abs(offset)) * (n - abs(offset) + 1) // 2)


def _maketrian_shape(A, *, offset, lower):
    if A and A[-1] is None:
        return None
    m = int(((8 * A[-1] + 1) ** 0.5 - 1) / 2 + 0.5) if A else 0
    if not A or m * (m + 1) // 2 != A[-1]:
        raise OpValueError(f"operator _linalg_maketrian: A has shape {infer.show(A)}; expected rows of 1, 3, 6, 10... "
                           "elements, as triangles have")  # fmt: skip
    return (*A[:-1], m + abs(offset), m + abs(offset))


@kernel(name="_linalg_extracttrian", aliases=("linalg_extracttrian",))
def extracttrian(A, *, offset: int = 0, lower: bool = True):
    """Packed triangles of square matrices, as vectors: lower ones row by row, upper ones column by column.

    Parameters
    ----------
    A : NDArray or Symbol
        ``(..., n, n)``.
    offset : int
        The diagonal at which the triangle begins: the upper triangle above the main one, the lower below.
    lower : bool
        Which triangle, where `offset` is 0.

    >>> mx.nd.linalg.extracttrian(mx.nd.array([[1, 2], [3, 4]])).asnumpy().tolist()
    [1.0, 3.0, 4.0]
    """


@kernel(name="_linalg_maketrian", aliases=("linalg_maketrian",))
def maketrian(A, *, offset: int = 0, lower: bool = True):
    """Square matrices from packed triangles, as ``extracttrian`` returns them, and zeros elsewhere.

    Parameters
    ----------
    A : NDArray or Symbol
        Vectors of 1, 3, 6, 10... elements, along the last axis.
    offset : int
        The diagonal at which the triangle begins: the upper triangle above the main one, the lower below.
    lower : bool
        Which triangle, where `offset` is 0.

    >>> mx.nd.linalg.maketrian(mx.nd.array([1, 3, 4])).asnumpy().tolist()
    [[1.0, 0.0], [3.0, 4.0]]
    """


for _op, _there, _back in ((extracttrian, _extracttrian_shape, _maketrian_shape),
                           (maketrian, _maketrian_shape, _extracttrian_shape)):  # fmt: skip
    both_ways(_op, lambda A, _rule=_there, **params: None if A is None else _rule(A, **params),
              lambda out, A, _rule=_back, **params: _rule(out, **params))  # fmt: skip


@on_both(extracttrian)
def _(xp, inputs, outputs, *, offset, lower):
    rows, columns = _packed(xp, inputs[0].shape[-1], offset, lower)
    outputs[0][...] = inputs[0][..., rows, columns]


@on_both(maketrian)
def _(xp, inputs, outputs, *, offset, lower):
    rows, columns = _packed(xp, outputs[0].shape[-1], offset, lower)
    outputs[0].fill(0)
    outputs[0][..., rows, columns] = inputs[0]


adjoint(extracttrian, maketrian)


for _op in (triangle, extracttrian, maketrian):
    typed_by_first(_op)
