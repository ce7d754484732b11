"""Records of linear algebra (``mxop/ops/linalg.py``)."""

from __future__ import annotations

from functools import partial

import numpy as np

from . import Record, Refusal, record_of

_cases = partial(record_of, dtypes="l")


# ---- inputs ---------------------------------------------------------------------------------------------------------
def _t(a):
    return a.swapaxes(-1, -2)


def _regular(a, *others):
    """Return matrices that are far from singular ones."""
    return (a + 4 * np.eye(*a.shape[-2:]) if a.ndim > 1 else a, *others)


def _definite(a):
    return a @ _t(a) + np.eye(a.shape[-1])


def _separate(a):
    """Return symmetric matrices with eigenvalues that are far from each other."""
    return (a + _t(a)) / 2 + np.diag(6.0 * np.arange(a.shape[-1]))


def _positive_diagonal(a):
    return np.abs(a) + np.eye(a.shape[-1])


# ---- references -----------------------------------------------------------------------------------------------------
def _gemm(a, b, c=None, transpose_a=False, transpose_b=False, alpha=1.0, beta=1.0, axis=-2):
    a, b = (np.moveaxis(x, axis, -2) for x in (a, b))
    found = alpha * (_t(a) if transpose_a else a) @ (_t(b) if transpose_b else b)
    found = np.moveaxis(found, -2, axis)
    return found if c is None else found + beta * c


def _syrk(a, transpose=False, alpha=1.0):
    return alpha * (_t(a) @ a if transpose else a @ _t(a))


def _triangular(a, transpose, lower):
    found = np.tril(a) if lower else np.triu(a)
    return _t(found) if transpose else found


def _trmm(a, b, transpose=False, rightside=False, lower=True, alpha=1.0):
    tri = _triangular(a, transpose, lower)
    return alpha * (b @ tri if rightside else tri @ b)


def _trsm(a, b, transpose=False, rightside=False, lower=True, alpha=1.0):
    tri = _triangular(a, transpose, lower)
    return alpha * (b @ np.linalg.inv(tri) if rightside else np.linalg.inv(tri) @ b)


def _potrf(a, lower=True):
    low = np.linalg.cholesky((a + _t(a)) / 2)
    return low if lower else _t(low)


def _potri(a, lower=True):
    low = np.tril(a) if lower else _t(np.triu(a))
    return np.linalg.inv(low @ _t(low))


def _numbers(values):
    return np.reshape(values, values.shape or (1,))


def _sumlogdiag(a):
    return _numbers(np.log(np.diagonal(a, 0, -2, -1)).sum(-1))


def _packed(n, offset, lower):
    if offset < 0 or (offset == 0 and lower):
        return np.tril_indices(n, offset)
    rows, columns = np.triu_indices(n, offset)
    order = np.argsort(columns, kind="stable")  # upper ones lie column by column
    return rows[order], columns[order]


def _maketrian(a, offset=0, lower=True):
    n = int(np.sqrt(2 * a.shape[-1])) + abs(offset)
    result = np.zeros((*a.shape[:-1], n, n), a.dtype)
    result[..., *_packed(n, offset, lower)] = a
    return result


def _cofactors(a):
    found = np.empty_like(a)
    for i, j in np.ndindex(a.shape[-2:]):
        found[..., i, j] = (-1) ** (i + j) * np.linalg.det(np.delete(np.delete(a, i, -2), j, -1))
    return found


def _gelqf(a):
    q, r = np.linalg.qr(_t(a))
    return _t(q), _t(r)


def _syevd(a):
    values, vectors = np.linalg.eigh((a + _t(a)) / 2)
    rows = _t(vectors)
    if rows.size:
        rows = rows * np.sign(np.take_along_axis(rows, np.abs(rows).argmax(-1)[..., None], -1))
    return rows, values


_LAPACK = {"special": "LAPACK refuses what is not finite, or gives what depends on the order of its sums"}
_FORWARD = {"shapes back": "the output's shape says less than the input's"}
_STACKS = [({}, (3, 3)), ({}, (2, 3, 3)), ({}, (2, 1, 2, 2)), ({}, (1, 1))]
_SQUARE = [Refusal("square matrices", shapes=((2, 3),)), Refusal("square matrices", shapes=((3,),)),
           Refusal("needs float32 or float64", dtypes=["float16"])]  # fmt: skip
_SIDES = [
    ({}, [(3, 3), (3, 2)]),
    ({"transpose": True, "alpha": -2.0}, [(2, 3, 3), (2, 3, 2)]),
    ({"rightside": True, "lower": False}, [(2, 2), (3, 2)]),
    ({"rightside": True, "transpose": True, "alpha": 0.5}, [(2, 2, 2), (2, 3, 2)]),
    ({"lower": False}, [(1, 2, 3, 3), (1, 2, 3, 1)]),
]
_MIXED = Refusal("needs float32 or float64", dtypes=["int32", "int32"])

RECORDS: dict[str, Record] = {
    "_linalg_gemm": _cases(
        _gemm,
        ({"alpha": 2.0, "beta": -0.5}, [(2, 3), (3, 2), (2, 2)]),
        ({"transpose_a": True}, [(2, 3, 2), (2, 3, 4), (2, 2, 4)]),
        ({"transpose_b": True, "axis": 0}, [(2, 2, 3), (4, 2, 3), (2, 2, 4)]),
        refuses=[Refusal("multiplied", shapes=((2, 3), (2, 3), (2, 3))),
                 Refusal("that of the columns", params={"axis": -1}),
                 Refusal("axis=3", params={"axis": 3}), Refusal("expected matrices", shapes=((2,), (2,), (2,)))],
        unchecked=_FORWARD,
    ),
    "_linalg_gemm2": _cases(
        _gemm, ({"alpha": 2.0}, [(2, 3), (3, 2)]), ({"transpose_a": True, "transpose_b": True}, [(2, 3, 2), (2, 4, 3)]),
        ({"axis": -3}, [(3, 2, 2), (2, 2, 4)]),
        refuses=[Refusal("needs float32 or float64", dtypes=["float16", "float16"])], unchecked=_FORWARD,
    ),
    "_linalg_syrk": _cases(_syrk, ({}, (2, 3)), ({"transpose": True, "alpha": 0.5}, (2, 3, 2)), unchecked=_FORWARD),
    "_linalg_trmm": _cases(
        _trmm, *_SIDES, refuses=[Refusal("square matrices", shapes=((2, 3), (3, 2))), _MIXED], unchecked=_FORWARD
    ),
    "_linalg_trsm": _cases(
        _trsm, *_SIDES, prepare=_regular, unchecked=_LAPACK,
        refuses=[Refusal("square matrices", shapes=((2, 3), (3, 2))), _MIXED, Refusal("B", shapes=((3, 3), (2, 2)))],
    ),
    "_triangle": _cases(lambda A, offset=0, lower=True: (np.tril if lower else np.triu)(A, offset),
                        ({}, (3, 3)), ({"offset": -1, "lower": False}, (2, 2, 3)), dtypes="fi", order=2),
    "_linalg_extracttrian": _cases(
        lambda a, offset=0, lower=True: a[..., *_packed(a.shape[-1], offset, lower)],
        ({}, (3, 3)), ({"offset": 1}, (2, 3, 3)), ({"lower": False}, (1, 2, 2, 2)), ({"offset": -1}, (4, 4)),
        dtypes="fi", order=2,
        refuses=[Refusal("square matrices", shapes=((2, 3),)), Refusal("no triangle", params={"offset": 4})],
    ),
    "_linalg_maketrian": _cases(
        _maketrian, ({}, (6,)), ({"offset": 1}, (2, 3)), ({"lower": False}, (1, 2, 3)), ({"offset": -1}, (6,)),
        dtypes="fi", order=2, refuses=[Refusal("1, 3, 6, 10", shapes=((2, 4),))],
    ),
    "_linalg_potrf": _cases(
        _potrf, *_STACKS, ({"lower": False}, (2, 3, 3)), prepare=_definite, refuses=_SQUARE, unchecked=_LAPACK
    ),
    "_linalg_potri": _cases(
        _potri, *_STACKS, ({"lower": False}, (2, 3, 3)), prepare=_regular, refuses=_SQUARE, unchecked=_LAPACK
    ),
    "_linalg_sumlogdiag": _cases(_sumlogdiag, *_STACKS, prepare=_positive_diagonal, refuses=_SQUARE, unchecked=_FORWARD),
    "_linalg_inverse": _cases(np.linalg.inv, *_STACKS, prepare=_regular, refuses=_SQUARE, unchecked=_LAPACK),
    "_linalg_det": _cases(
        lambda a: _numbers(np.linalg.det(a)), *_STACKS, prepare=_regular, refuses=_SQUARE, unchecked={**_LAPACK, **_FORWARD}
    ),
    "_cofactors": _cases(_cofactors, *_STACKS, prepare=_regular, unchecked=_LAPACK),
    "_linalg_slogdet": _cases(
        lambda a: tuple(map(_numbers, np.linalg.slogdet(a))), *_STACKS, prepare=_regular, refuses=_SQUARE,
        unchecked={**_LAPACK, **_FORWARD},
    ),
    "_linalg_gelqf": _cases(
        _gelqf, ({}, (2, 3)), ({}, (2, 3, 3)), ({}, (1, 4)), prepare=_regular, unchecked=_LAPACK,
        refuses=[Refusal("at least as many columns", shapes=((3, 2),)), _SQUARE[-1]],
    ),
    "_linalg_syevd": _cases(_syevd, *_STACKS, prepare=_separate, refuses=_SQUARE, unchecked=_LAPACK),
}  # fmt: skip
