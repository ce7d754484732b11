"""Records of attention of several heads (``mxop/ops/attention.py``)."""

from __future__ import annotations

import numpy as np

from . import Record, Refusal


def _parts(joined, heads, parts):
    """Return the projections, each ``(batch, heads, steps, size)``."""
    steps, batch, size = joined.shape
    split = joined.reshape(steps, batch, heads, parts, size // (heads * parts))
    return split.transpose(3, 1, 2, 0, 4)


def _scores(queries, keys):
    found = np.einsum("bhqd,bhkd->bhqk", queries, keys) / np.sqrt(max(queries.shape[-1], 1))
    return found.reshape(-1, *found.shape[2:])


def _weighted(attention, values):
    batch, heads, _, size = values.shape
    attention = attention.reshape(batch, heads, *attention.shape[1:])
    found = np.einsum("bhqk,bhkd->qbhd", attention, values)
    return found.reshape(*found.shape[:2], heads * size)


def _selfatt_qk(joined, heads):
    queries, keys, _ = _parts(joined, heads, 3)
    return _scores(queries, keys)


def _record(reference, *cases, refuses):
    return Record(
        reference, shapes=[shapes for shapes, _ in cases], params=[{"heads": heads} for _, heads in cases], dtypes="f",
        order=2, refuses=[Refusal(match, shapes=shapes, params={"heads": 2}) for match, shapes in refuses],
        unchecked={"shapes back": "forward: neither the number of projections nor that of the others' steps follows"},
    )  # fmt: skip


RECORDS: dict[str, Record] = {
    "_contrib_interleaved_matmul_selfatt_qk": _record(
        _selfatt_qk, (((3, 2, 12),), 2), (((2, 1, 9),), 1),
        refuses=[("do not divide", ((3, 2, 9),)), ("expected 3 dimensions", ((3, 12),))],
    ),
    "_contrib_interleaved_matmul_selfatt_valatt": _record(
        lambda joined, attention, heads: _weighted(attention, _parts(joined, heads, 3)[2]), (((3, 2, 12), (4, 3, 3)), 2),
        (((2, 1, 9), (1, 2, 2)), 1), refuses=[("attention has shape", ((3, 2, 12), (4, 3, 2)))],
    ),
    "_contrib_interleaved_matmul_encdec_qk": _record(
        lambda queries, joined, heads: _scores(_parts(queries, heads, 1)[0], _parts(joined, heads, 2)[0]),
        (((3, 2, 4), (5, 2, 8)), 2), (((2, 1, 3), (1, 1, 6)), 1), refuses=[(r"expected \(\?, 2, 8\)", ((3, 2, 4), (5, 2, 12)))],
    ),
    "_contrib_interleaved_matmul_encdec_valatt": _record(
        lambda joined, attention, heads: _weighted(attention, _parts(joined, heads, 2)[1]), (((5, 2, 8), (4, 3, 5)), 2),
        (((1, 1, 6), (1, 2, 1)), 1), refuses=[("attention has shape", ((5, 2, 8), (2, 3, 5)))],
    ),
}  # fmt: skip
