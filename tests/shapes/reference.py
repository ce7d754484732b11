"""Values in float64 that know their gradients: NumPy only, so that nothing here shares a mistake with the package.

A `Value` keeps its elements and, for each value that it was computed from, the function that turns its cotangent into that
value's.  `moved` covers every operator that only moves elements: it is given the function that moves, and applies it to the
elements' numbers.
"""

import numpy as np


class Value:
    """An array of float64, and where it comes from: pairs of a value and a function of the cotangent."""

    __array_ufunc__ = None  # NumPy's arrays leave operators to this class

    def __init__(self, data, *parents):
        self.data, self.parents = np.asarray(data, np.float64), parents

    shape = property(lambda self: self.data.shape)
    ndim = property(lambda self: self.data.ndim)
    size = property(lambda self: self.data.size)

    def __add__(self, other):
        other = value(other)
        return Value(self.data + other.data, (self, _to(self.shape)), (other, _to(other.shape)))

    def __mul__(self, other):
        other = value(other)
        a, b = self.data, other.data
        return Value(a * b, (self, lambda h: _summed(h * b, a.shape)), (other, lambda h: _summed(h * a, b.shape)))

    def __pow__(self, power):
        return self.map(self.data**power, power * self.data ** (power - 1.0))

    def __truediv__(self, other):
        return self * value(other) ** -1.0

    def __rtruediv__(self, other):
        return value(other) / self

    def __neg__(self):
        return self * -1.0

    def __sub__(self, other):
        return self + value(other) * -1.0

    def __rsub__(self, other):
        return value(other) - self

    __radd__, __rmul__ = __add__, __mul__

    def map(self, data, slope):
        """Return a value of the same shape, with the derivative of each element."""
        return Value(data, (self, lambda h: h * slope))

    def sum(self, axis=None, keepdims=False):
        axes = tuple(range(self.ndim)) if axis is None else axis

        def back(h):
            return np.broadcast_to(h if keepdims else np.expand_dims(h, axes), self.shape)

        return Value(self.data.sum(axis=axes, keepdims=keepdims), (self, back))

    def mean(self, axis=None, keepdims=False):
        total = self.sum(axis, keepdims)
        return total * (total.size / self.size if self.size else np.nan)

    def __getitem__(self, key):
        """Return what NumPy's basic indices give."""

        def back(h):
            whole = np.zeros(self.shape)
            whole[key] = h
            return whole

        return Value(self.data[key], (self, back))

    def reshape(self, *shape):
        return Value(self.data.reshape(*shape), (self, lambda h: h.reshape(self.shape)))

    def transpose(self, *axes):
        return Value(self.data.transpose(axes), (self, lambda h: h.transpose(np.argsort(axes))))


def value(x):
    return x if isinstance(x, Value) else Value(x)


def _to(shape):
    return lambda h: _summed(h, shape)


def _summed(h, shape):
    """Undo broadcasting."""
    h = h.sum(axis=tuple(range(h.ndim - len(shape))))
    return h.sum(axis=tuple(k for k, n in enumerate(shape) if n == 1 and h.shape[k] != 1), keepdims=True)


def moved(x, function, fill=0.0):
    """Return what a function that moves elements makes of `x`; where it puts -1, there is `fill`."""
    numbers = np.asarray(function(np.arange(x.size).reshape(x.shape)))
    inside = numbers >= 0
    data = np.full(numbers.shape, fill)
    data[inside] = x.data.ravel()[numbers[inside]]

    def back(h):
        return np.bincount(numbers[inside], np.broadcast_to(h, numbers.shape)[inside], x.size).reshape(x.shape)

    return Value(data, (x, back))


def gathered(x, keys):
    """Return parts of `x` of one shape, which may overlap, along a new first axis."""

    def back(h):
        total = np.zeros(x.shape)
        for key, part in zip(keys, h, strict=True):
            total[key] += part
        return total

    return Value(np.stack([x.data[key] for key in keys]), (x, back))


def scattered(parts, keys, shape):
    """Add the parts along the first axis up in zeros of a shape: the way back of `gathered`."""
    total = np.zeros(shape)
    for key, part in zip(keys, parts.data, strict=True):
        total[key] += part
    return Value(total, (parts, lambda h: np.stack([h[key] for key in keys])))


def joined(values, axis):
    """Return values side by side along an axis."""
    ends = np.cumsum([v.shape[axis] for v in values])[:-1]
    pieces = [(v, lambda h, k=k: np.split(h, ends, axis)[k]) for k, v in enumerate(values)]
    return Value(np.concatenate([v.data for v in values], axis), *pieces)


def stacked(values, axis=0):
    return joined([v.reshape(*v.shape[:axis], 1, *v.shape[axis:]) for v in values], axis)


def linear(x, function, transposed):
    """Return a linear function, given with its transpose."""
    return Value(function(x.data), (x, transposed))


def einsum(text, a, b):
    """Return a sum of products; no letter may stand in one operand only and not in the result."""
    a, b = value(a), value(b)
    (first, second), out = text.split("->")[0].split(","), text.split("->")[1]

    def product(text, x, y):
        return np.einsum(text, x, y, optimize=True)

    return Value(product(text, a.data, b.data),
                 (a, lambda h: product(f"{out},{second}->{first}", h, b.data)),
                 (b, lambda h: product(f"{out},{first}->{second}", h, a.data)))  # fmt: skip


def _mapped(function, slope):
    def apply(x):
        y = function(x.data)
        return x.map(y, slope(x.data, y))

    return apply


exp = _mapped(np.exp, lambda x, y: y)
log = _mapped(np.log, lambda x, y: 1 / x)
sin = _mapped(np.sin, lambda x, y: np.cos(x))
tanh = _mapped(np.tanh, lambda x, y: 1 - y * y)
sqrt = _mapped(np.sqrt, lambda x, y: 0.5 / y)
absolute = _mapped(np.abs, lambda x, y: np.sign(x))
sigmoid = _mapped(lambda x: 1 / (1 + np.exp(-x)), lambda x, y: y * (1 - y))
relu = _mapped(lambda x: np.maximum(x, 0), lambda x, y: x > 0)


def extreme(x, axis, keepdims, largest=True):
    """Return the largest (or smallest) elements along axes; each of equal ones has the gradient."""
    found = (np.max if largest else np.min)(x.data, axis, keepdims=True)
    return linear(x, lambda a: found if keepdims else found.squeeze(axis), lambda h: (x.data == found) * h.reshape(found.shape))


def first_extreme(x, axis, keepdims, largest=True):
    """Return the largest (or smallest) elements along axes; the first of equal ones has the gradient."""
    kept = [k for k in range(x.ndim) if k not in axis]
    rows = moved(x, lambda a: a.transpose(*kept, *axis).reshape([x.shape[k] for k in kept] + [-1]))
    at = (rows.data.argmax if largest else rows.data.argmin)(-1)
    shape = [1 if k in axis else n for k, n in enumerate(x.shape)] if keepdims else [x.shape[k] for k in kept]
    return moved(rows, lambda a: np.take_along_axis(a, at[..., None], -1).reshape(shape))


def _sources(outputs):
    """Return all that values were computed from, and these: each after what it was computed from."""
    order, seen, stack = [], set(), [(v, False) for v in outputs]
    while stack:
        v, finished = stack.pop()
        if finished:
            order.append(v)
        elif id(v) not in seen:
            seen.add(id(v))
            stack.append((v, True))
            stack += [(parent, False) for parent, _ in v.parents]
    return order


def depends(output, variables):
    """Return whether a value was computed from one of the variables."""
    return isinstance(output, Value) and any(v is w for v in _sources([output]) for w in variables)


def gradients(outputs, heads, variables):
    """Return the gradient of each variable: the sum over outputs, each multiplied by its head."""
    order = _sources(outputs)
    found = {id(v): np.zeros(v.shape) for v in (*order, *variables)}
    for output, head in zip(outputs, heads, strict=True):
        found[id(output)] = found[id(output)] + head
    for node in reversed(order):
        for parent, back in node.parents:
            found[id(parent)] = found[id(parent)] + back(found[id(node)])
    return [found[id(v)] for v in variables]
