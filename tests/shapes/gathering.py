"""Elements and parts at indices, and their way back: every type of index, out of range where that has a meaning."""

import numpy as np

from .drawing import operator
from .reference import moved


def _indices(draw, n, shape, beyond):
    return draw.whole(-beyond, n - 1 + beyond, shape)


def _inside(index, n, mode):
    index = np.trunc(index).astype(np.int64)
    return index % n if mode == "wrap" else np.clip(index, 0, n - 1)


def take(draw):
    shape, mode = draw.shape(1, 4, room=max(draw.room // 4, 1), empty=0), draw.pick(["clip", "wrap"])
    axis, where = draw.axis(len(shape)), draw.shape(1, 2, room=max(draw.room // int(np.prod(shape)) * 4, 2))
    n = shape[axis]
    index = _indices(draw, n, where, draw.pick([0, 0, n]))

    def taken(x, i):
        return moved(x, lambda a: np.take(a, _inside(i, n, mode), axis))

    return operator("take", [draw.real(*shape), index], taken, axis=axis, mode=mode)


def embedding(draw):
    rows, columns = draw.sizes(2, empty=0)
    where = draw.shape(1, 3, room=max(draw.room // columns, 2))
    index = _indices(draw, rows, where, draw.pick([0, 2]))

    def found(i, w):
        return moved(w, lambda a: a[_inside(i, rows, "clip")])

    return operator("Embedding", [index, draw.real(rows, columns)], found, input_dim=rows, output_dim=columns,
                    dtypes=("float32",))  # fmt: skip


def pick(draw):
    shape, mode, kept = draw.shape(1, 4, empty=0), draw.pick(["clip", "wrap"]), draw.flag()
    axis = draw.axis(len(shape))
    k, n = axis % len(shape), shape[axis]
    index = _indices(draw, n, shape[:k] + shape[k + 1 :] if len(shape) > 1 else (1,), draw.pick([0, n]))

    def picked(x, i):
        i = np.expand_dims(_inside(i, n, mode), k) if len(shape) > 1 else _inside(i, n, mode)
        y = moved(x, lambda a: np.take_along_axis(a, i, k))
        return y if kept or len(shape) == 1 else moved(y, lambda a: a.squeeze(k))

    return operator("pick", [draw.real(*shape), index], picked, axis=axis, mode=mode, keepdims=kept)


def batch_take(draw):
    shape = draw.sizes(2, empty=0)
    index = draw.whole(0, shape[1] - 1, shape[:1], "int32")
    return operator("batch_take", [draw.real(*shape), index], lambda x, i: moved(x, lambda a: a[np.arange(shape[0]), i]))


def _points(draw, shape, m, columns):
    """Return indices ``(m, columns...)`` of places in the first dimensions of a shape."""
    rows = [draw.rng.integers(0, n, columns) for n in shape[:m]]
    index = draw.whole(0, 1, (m, *columns))
    index.values = np.stack(rows).astype(index.values.dtype)
    return index


def gather_nd(draw):
    shape = draw.shape(1, 4, empty=0)
    m = draw.integer(1, len(shape))
    columns = draw.shape(1, 2, room=max(draw.room // int(np.prod(shape[m:])), 2), empty=0)
    index = _points(draw, shape, m, columns)
    if draw.flag(0.3):
        index.values = index.values - np.array(shape[:m]).reshape(-1, *(1,) * len(columns)).astype(index.values.dtype) * (
            draw.rng.random(index.values.shape) < 0.5)  # fmt: skip
        index.values = index.values.astype("int64")
    return operator("gather_nd", [draw.real(*shape), index], lambda x, i: moved(x, lambda a: a[tuple(i.astype(np.int64))]))


def scatter_nd(draw):
    """Places are different ones: which of several stays is not asked here."""
    shape = draw.shape(1, 4, empty=0)
    m = draw.integer(1, len(shape))
    n = int(np.prod(shape[:m]))
    chosen = draw.rng.permutation(n)[: draw.integer(1, n)]
    index = draw.whole(0, 1, (m, len(chosen)))
    index.values = np.stack(np.unravel_index(chosen, shape[:m])).astype(index.values.dtype)

    def scattered(x, i):
        def put(numbers):
            found = np.full(shape, -1)
            found[tuple(i.astype(np.int64))] = numbers
            return found

        return moved(x, put)

    return operator("scatter_nd", [draw.real(len(chosen), *shape[m:]), index], scattered, shape=shape)


def one_hot(draw):
    shape, depth = draw.shape(1, 3, room=max(draw.room // 8, 1)), draw.size(130)
    index = _indices(draw, depth, shape, draw.pick([0, 2]))
    on, off = draw.pick([(1.0, 0.0), (2.0, -1.0)])

    def rows(i):
        return np.where(np.arange(depth) == np.expand_dims(i.astype(np.int64), -1), on, off)

    return operator(
        "one_hot", [index], rows, depth=depth, on_value=on, off_value=off, differentiable=False, dtypes=("float32",)
    )


def sequence(draw):
    op = draw.pick(["SequenceMask", "SequenceLast", "SequenceReverse"])
    shape = draw.shape(2, 4, empty=0)
    axis = draw.integer(0, 1) if op != "SequenceReverse" else 0
    length = draw.whole(1, shape[axis], (shape[1 - axis],), "float32")
    steps = np.arange(shape[axis])

    def moves(x, lengths):
        lengths = lengths.astype(np.int64)
        x = moved(x, lambda a: a.swapaxes(0, axis))
        rows, many = steps.reshape(-1, 1), np.arange(len(lengths))
        if op == "SequenceLast":
            return moved(x, lambda a: a[lengths - 1, many])
        if op == "SequenceReverse":
            return moved(x, lambda a: a[np.where(rows < lengths, lengths - 1 - rows, rows), many])
        beyond = (rows >= lengths).reshape(*x.shape[:2], *(1,) * (len(shape) - 2))
        return moved(moved(x, lambda a: np.where(beyond, -1, a), 0.25), lambda a: a.swapaxes(0, axis))

    options = {"axis": axis} if op != "SequenceReverse" else {}
    options |= {"value": 0.25} if op == "SequenceMask" else {}
    return operator(op, [draw.real(*shape), length], moves, use_sequence_length=True, dtypes=("float32",), **options)


def boolean_mask(draw):
    shape = draw.shape(1, 3, empty=0)
    axis = draw.integer(0, len(shape) - 1)
    mask = draw.whole(0, 1, (shape[axis],), "float32")
    mask.values[draw.integer(0, shape[axis] - 1)] = 1

    def chosen(x, m):
        return moved(x, lambda a: a.compress(m != 0, axis))

    return operator("contrib.boolean_mask", [draw.real(*shape), mask], chosen, axis=axis,
                    dtypes=("float32",), modes=("eager", "out"))  # fmt: skip


def index_copy(draw):
    shape = draw.shape(1, 3, empty=0)
    chosen = draw.rng.permutation(shape[0])[: draw.integer(1, shape[0])]
    index = draw.whole(0, 1, (len(chosen),), draw.pick(["int32", "int64", "float32"]))
    index.values = chosen.astype(index.values.dtype)

    def copied(x, i, new):
        rows = np.full(shape[0], -1)
        rows[i.astype(np.int64)] = np.arange(len(i))
        along = (-1, *(1,) * (len(shape) - 1))
        old = moved(x, lambda a: np.where((rows < 0).reshape(along), a, -1))
        return old + moved(new, lambda a: np.where((rows >= 0).reshape(along), a[rows], -1))

    inputs = [draw.real(*shape), index, draw.real(len(chosen), *shape[1:])]
    return operator("contrib.index_copy", inputs, copied)


MAKERS = [take, take, take, embedding, embedding, pick, batch_take, gather_nd, gather_nd, scatter_nd, one_hot, sequence,
          boolean_mask, index_copy]  # fmt: skip
