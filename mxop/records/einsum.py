"""Records of products of stacks and of named dimensions (``mxop/ops/einsum.py``)."""

from __future__ import annotations

import numpy as np

from . import Record, Refusal
from .reduce import full

#: Subscripts with shapes: products of matrices, stacks, outer products, diagonals, sums, ``...``, sizes of 0 and 1.
_CASES = [
    ("ij,jk->ik", (2, 3), (3, 2)), ("ij,kj->ki", (2, 3), (2, 3)), ("bij,bjk->bik", (2, 2, 3), (2, 3, 2)),
    ("ijk,jil->kl", (2, 3, 2), (3, 2, 2)), ("i,j", (2,), (3,)), ("i,i", (3,), (3,)), ("ij->ji", (2, 3)), ("ij->", (2, 3)),
    ("ii->i", (3, 3)), ("iji", (2, 3, 2)), ("...ij,...jk", (2, 1, 2, 3), (3, 3, 2)),
    ("ij,jk,kl,l", (2, 3), (3, 2), (2, 4), (4,)),
    ("i,i,i->i", (3,), (3,), (3,)), ("ij,jk->ik", (2, 0), (0, 3)), ("ij,jk->ik", (2, 1), (3, 2)),
    ("ij,j,j->i", (2, 3), (3,), (3,)),
    ("abc,bcd,d->a", (2, 3, 2), (3, 2, 2), (2,)), ("ij->ij", (2, 3)), ("a,b->", (2,), (3,)), ("j...,j->...", (2, 3), (2,)),
]  # fmt: skip


RECORDS: dict[str, Record] = {
    "matmul": Record(
        lambda lhs, rhs: full(np.matmul(lhs, rhs)), dtypes="f",
        shapes=[((2, 3), (3, 2)), ((3,), (3,)), ((3,), (3, 2)), ((2, 3), (3,)), ((2, 2, 3), (3, 2)), ((2, 2, 3), (2, 3, 2)),
                ((2, 1, 2, 3), (3, 3, 2)), ((3,), (2, 3, 2)), ((2, 2, 3), (3,)), ((0, 2, 3), (0, 3, 2))],
        refuses=[
            Refusal(r"expected \(..., m, k\)", shapes=s) for s in (((2, 3), (2, 3)), ((2, 2, 3), (3, 3, 2)), ((2,), (3,)))
        ],
        unchecked={"shapes back": "the sizes of the factors do not follow from their product"},
    ),
    "einsum": Record(
        lambda *data, subscripts, **options: full(np.einsum(subscripts, *data)), dtypes="f",
        params=[{"subscripts": case[0]} for case in _CASES] + [{"subscripts": "ij,jk,kl,l", "optimize": False}],
        shapes=[case[1:] for case in _CASES] + [((2, 3), (3, 2), (2, 4), (4,))],
        refuses=[
            Refusal("names 1 array, 2 given", params={"subscripts": "ij"}, shapes=((2, 2), (2, 2))),
            Refusal("'j' names dimensions of sizes 3 and 2", params={"subscripts": "ij,jk"}, shapes=((2, 3), (2, 3))),
            Refusal("does not name the dimensions", params={"subscripts": "ij"}, shapes=((2, 2, 2),)),
            Refusal("'1' is not a letter", params={"subscripts": "i1"}, shapes=((2, 2),)),
            Refusal("twice", params={"subscripts": "ij->ii"}, shapes=((2, 2),)),
            Refusal("names no dimension", params={"subscripts": "ij->k"}, shapes=((2, 2),)),
        ],
        unchecked={
            "shapes back": "the sizes of the factors do not follow from their product",
            "special": "where infinities meet zeros depends on the order of the products",
        },
    ),
}  # fmt: skip
