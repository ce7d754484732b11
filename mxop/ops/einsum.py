"""Batched matrix multiplication and Einstein summation: matmul, einsum."""

from functools import lru_cache
from string import ascii_letters

from ..opdef import composite
from ..opdef.symbolic import answered
from ..support.errors import OpValueError, shown
from ._shared import float_types, size_of


@composite(aliases=("_npi_matmul",))
def matmul(F, lhs, rhs):
    """Matrix multiplication as ``numpy.matmul``; stacks broadcast, and a vector is a row, or a column as `rhs`.

    ``dot``, which is also ``lhs @ rhs``, differs for more than two dimensions: it multiplies every matrix by every other.

    >>> x, y = mx.nd.ones((5, 1, 2, 3)), mx.nd.ones((4, 3, 2))
    >>> mx.nd.matmul(x, y).shape, mx.nd.matmul(x, y[0]).shape, mx.nd.matmul(x[0, 0, 0], y).shape
    ((5, 4, 2, 2), (5, 1, 2, 2), (4, 2))
    """
    stacks = list(zip(lhs.shape[-3::-1], rhs.shape[-3::-1], strict=False))
    fit = lhs.ndim and rhs.ndim and lhs.shape[-1] == rhs.shape[0 if rhs.ndim == 1 else -2]
    if not fit or any(a != b and 1 not in (a, b) for a, b in stacks):
        raise OpValueError(f"operator matmul: shapes {lhs.shape} and {rhs.shape}; expected (..., m, k) and (..., k, n), or "
                           "vectors, with dimensions before the last two that broadcast")  # fmt: skip
    if rhs.ndim <= 2:
        return F.dot(lhs, rhs)
    row = lhs.ndim == 1
    while lhs.ndim < rhs.ndim:
        lhs = F.expand_dims(lhs, axis=0)
    while rhs.ndim < lhs.ndim:
        rhs = F.expand_dims(rhs, axis=0)
    whole = tuple(b if a == 1 else a for a, b in zip(lhs.shape[:-2], rhs.shape[:-2], strict=True))
    lhs, rhs = (x if x.shape[:-2] == whole else F.broadcast_to(x, shape=whole + x.shape[-2:]) for x in (lhs, rhs))
    found = F.batch_dot(lhs, rhs)
    return F.squeeze(found, axis=-2) if row else found


@composite(aliases=("_npi_einsum",), num_args_param="num_args")
def einsum(F, *data, subscripts: str, optimize: bool = True, num_args: int = 0):
    """Multiply arrays and sum over dimensions named by letters, as ``numpy.einsum``: ``einsum("ij,jk->ik", x, y)``.

    Parameters
    ----------
    *data : NDArray or Symbol
        Floating-point arrays.
    subscripts : str
        A letter for each dimension of each array, after ``->`` those of the result; by default, the letters that occur once,
        in alphabetical order.  ``...`` stands for dimensions that broadcast.  It may be the first argument.
    optimize : bool
        Multiply more than two arrays in the order that ``numpy.einsum_path`` finds; otherwise from left to right.
    num_args : int
        Number of arrays; optional in calls.

    >>> x, y = mx.nd.array([[1, 2], [3, 4]]), mx.nd.array([1, 10])
    >>> mx.nd.einsum("ij,j->i", x, y).asnumpy().tolist(), mx.nd.einsum("ii", x).asnumpy().tolist()
    ([21.0, 43.0], [5.0])
    """
    shapes = [x.shape for x in data]
    terms, result = _terms(subscripts, shapes)
    sizes = _sizes(subscripts, terms, shapes)
    parts = [_single(F, x, labels, sizes) for x, labels in zip(data, terms, strict=True)]
    for pair in _order(terms, result, sizes, optimize):
        first, second = (parts[k] for k in pair)
        parts = [part for k, part in enumerate(parts) if k not in pair]
        kept = set(result).union(*(labels for _, labels in parts))
        parts.append(_pair(F, *first, *second, kept, sizes))
    x, labels = _summed(F, *parts[0], set(result))
    found = _turned(F, x, labels, result)
    return F.identity(found) if any(found is x for x in data) else found


def _arguments(args, kwargs):
    """Return the call with its first argument, a text, as the parameter `subscripts`."""
    if args and isinstance(args[0], str):
        return einsum, args[1:], {"subscripts": args[0], **kwargs}
    return einsum, args, kwargs


einsum.arranged = _arguments
for _op in (matmul, einsum):
    float_types(_op)


# ---- subscripts -----------------------------------------------------------------------------------------------------
def _wrong(subscripts, problem):
    return OpValueError(f"operator einsum: subscripts={shown(subscripts)}: {problem}")


def _terms(subscripts, shapes):
    """Return the letters of the arrays and of the result; dimensions of ``...`` get letters, too."""
    left, arrow, result = subscripts.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(shapes):
        raise _wrong(subscripts, f"names {len(terms)} array{'s' * (len(terms) > 1)}, {len(shapes)} given")
    others = [c for c in ascii_letters if c not in subscripts]
    found, widest = [], ""
    for labels, shape in zip(terms, shapes, strict=True):
        dots = len(shape) - len(labels.replace("...", ""))
        if dots < 0 or (dots and "..." not in labels):
            raise _wrong(subscripts, f"{labels!r} does not name the dimensions of an array of shape {shape}")
        letters = "".join(others[:dots])[::-1]  # from the last dimension on
        widest = max(widest, letters, key=len)
        found.append(labels.replace("...", letters, 1))
    named = "".join(found)
    if arrow:
        result = result.replace("...", widest, 1)
    else:
        result = widest + "".join(sorted(c for c in named if c not in widest and named.count(c) == 1))
    for c in named + result:
        if c not in ascii_letters:
            raise _wrong(subscripts, f"{c!r} is not a letter")
    for c in result:
        if result.count(c) > 1 or c not in named:
            raise _wrong(subscripts, f"the result has {c!r} twice, or it names no dimension of an array")
    return found, result


def _sizes(subscripts, terms, shapes):
    """Return the size of each letter's dimensions; those of size 1 broadcast."""
    sizes = {}
    for labels, shape in zip(terms, shapes, strict=True):
        for c, d in zip(labels, shape, strict=True):
            if sizes.setdefault(c, d) == 1:
                sizes[c] = d
            elif d not in (1, sizes[c]):
                raise _wrong(subscripts, f"{c!r} names dimensions of sizes {sizes[c]} and {d}")
    return sizes


def _order(terms, result, sizes, optimize):
    """Return which two arrays to multiply, step by step; their product comes last then."""
    count = len(terms)
    if not optimize or count < 3:
        return [(0, 1), *((0, n) for n in range(count - 2, 0, -1))][: count - 1]
    return answered(_best_order(tuple(terms), result, tuple(sizes)), *sizes.values())


@lru_cache
def _best_order(terms, result, letters):
    """Return the function that gives, for the sizes that the letters name, the best order."""
    import numpy as np

    def order(*values):
        sizes, count, pairs = dict(zip(letters, values, strict=True)), len(terms), []
        arrays = [np.broadcast_to(np.float32(0), tuple(sizes[c] for c in labels)) for labels in terms]
        for step in np.einsum_path(f"{','.join(terms)}->{result}", *arrays, optimize="greedy")[0][1:]:
            *rest, last = sorted(step)
            while rest:  # NumPy takes several at once where no order is better
                pairs.append((rest.pop(), last))
                count -= 1
                last = count - 1
        return pairs

    return order


# ---- products -------------------------------------------------------------------------------------------------------
def _single(F, x, labels, sizes):
    """Return an array and its letters without repeated ones, and without dimensions that broadcast."""
    for c in dict.fromkeys(labels):
        while labels.count(c) > 1:
            first, second = labels.index(c), labels.rindex(c)
            x = F._diagonal(x, axis1=first, axis2=second)
            labels = labels[:first] + labels[first + 1 : second] + labels[second + 1 :] + c
    shape = x.shape
    return _summed(F, x, labels, {c for c, d in zip(labels, shape, strict=True) if d == sizes[c]})


def _summed(F, x, labels, kept):
    """Sum over the dimensions whose letters are not among `kept`."""
    axes = tuple(k for k, c in enumerate(labels) if c not in kept)
    return (F.sum(x, axis=axes), "".join(c for c in labels if c in kept)) if axes else (x, labels)


def _turned(F, x, labels, wanted):
    """Return an array with its dimensions in another order."""
    return x if labels == wanted else F.transpose(x, axes=tuple(map(labels.index, wanted)))


def _pair(F, x, of_x, y, of_y, kept, sizes):
    """Return the product of two arrays, summed over dimensions that are not among `kept`, and its letters."""
    x, of_x = _summed(F, x, of_x, kept | set(of_y))
    y, of_y = _summed(F, y, of_y, kept | set(of_x))
    stack, along = ("".join(c for c in of_x if c in of_y and (c in kept) == k) for k in (True, False))
    left, right = "".join(c for c in of_x if c not in of_y), "".join(c for c in of_y if c not in of_x)
    if not along or not stack + left + right or 0 in [sizes[c] for c in of_x + of_y]:
        whole = stack + along + left + right
        x, y = (_spread(F, *part, whole) for part in ((x, of_x), (y, of_y)))
        return _summed(F, F.broadcast_mul(x, y), whole, kept)
    shape = [[sizes[c] for c in letters] for letters in (stack, left, along, right)]
    stacks, rows, inner, columns = map(size_of, shape)
    turned = [of_x == stack + along + left, of_y == stack + right + along]
    x = _turned(F, x, of_x, of_x if turned[0] else stack + left + along)
    y = _turned(F, y, of_y, of_y if turned[1] else stack + along + right)
    x = F.Reshape(x, shape=(stacks, inner, rows) if turned[0] else (stacks, rows, inner))
    y = F.Reshape(y, shape=(stacks, columns, inner) if turned[1] else (stacks, inner, columns))
    found = F.batch_dot(x, y, transpose_a=turned[0], transpose_b=turned[1])
    return F.Reshape(found, shape=(*shape[0], *shape[1], *shape[3])), stack + left + right


def _spread(F, x, labels, whole):
    """Return an array with dimensions of size 1 for the letters of `whole` that it does not have."""
    if not labels:
        return x
    x = _turned(F, x, labels, "".join(c for c in whole if c in labels))
    for k, c in enumerate(whole):
        if c not in labels:
            x = F.expand_dims(x, axis=k)
    return x
