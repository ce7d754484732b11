"""Products of matrices: sizes around tiles, panels and parts of summands; transposed, batches, with a bias."""

import numpy as np

from .drawing import Case, operator
from .reference import einsum, joined, moved, sin


def _swapped(x, yes):
    return x.transpose(*range(x.ndim - 2), x.ndim - 1, x.ndim - 2) if yes else x


def _matrix(draw, m, n, transposed, *front):
    return draw.real(*front, *((n, m) if transposed else (m, n)))


def _three(draw, n=3):
    """Return sizes of a product: the numbers of multiplications fit some rooms."""
    return draw.sizes(n, room=draw.room * 16, most=1100)


def dot(draw):
    (m, n, k), a, b = _three(draw), draw.flag(), draw.flag()

    def product(x, y):
        return einsum("mk,kn->mn", _swapped(x, a), _swapped(y, b))

    return operator("dot", [_matrix(draw, m, k, a), _matrix(draw, k, n, b)], product, transpose_a=a, transpose_b=b)


def dot_of_other_ranks(draw):
    k, left, right = draw.size(400), draw.sizes(draw.integer(0, 2), room=500), draw.sizes(draw.integer(0, 2), room=500)

    def product(x, y):
        found = einsum(
            "mk,kn->mn", x.reshape(-1, k) if left else x.reshape(1, k), y.reshape(k, -1) if right else y.reshape(k, 1)
        )
        return found.reshape(left + right or (1,))

    if 0 in left + right:
        left, right = (), ()
    return operator("dot", [draw.real(*left, k), draw.real(k, *right)], product)


def batch_dot(draw):
    (g, m, n, k), a, b = _three(draw, 4), draw.flag(), draw.flag()

    def product(x, y):
        return einsum("gmk,gkn->gmn", _swapped(x, a), _swapped(y, b))

    inputs = [_matrix(draw, m, k, a, g), _matrix(draw, k, n, b, g)]
    return operator("batch_dot", inputs, product, transpose_a=a, transpose_b=b)


def fully_connected(draw):
    (m, n, k), no_bias, flatten = _three(draw), draw.flag(), draw.flag()
    k, n, inner = max(k, 1), max(n, 1), draw.pick([1, 2, 3, 5])
    shape = draw.pick([(m, k), (m, k), (m, inner, k)])
    columns = k * inner if flatten and len(shape) == 3 else k

    def layer(x, w, *bias):
        found = einsum("mk,nk->mn", x.reshape(-1, columns) if x.size else x.reshape(0, columns), w)
        found = found + bias[0] if bias else found
        return found if flatten else found.reshape(*shape[:-1], n)

    inputs = [draw.real(*shape), draw.real(n, columns), draw.real(n)]
    return operator("FullyConnected", inputs[: 2 if no_bias else 3], layer, num_hidden=n, no_bias=no_bias, flatten=flatten)


def gemm2(draw):
    (g, m, n, k), a, b, alpha = _three(draw, 4), draw.flag(), draw.flag(), draw.pick([1.0, -0.5, 2.0])
    front = draw.pick([(), (g,)])

    def product(x, y):
        letters = "g"[: len(front)]
        return einsum(f"{letters}mk,{letters}kn->{letters}mn", _swapped(x, a), _swapped(y, b)) * alpha

    inputs = [_matrix(draw, m, k, a, *front), _matrix(draw, k, n, b, *front)]
    options = {"transpose_a": a, "transpose_b": b, "alpha": alpha}
    return operator("linalg.gemm2", inputs, product, dtypes=("float32", "float64"), **options)


def gemm(draw):
    (m, n, k), a, b = _three(draw), draw.flag(), draw.flag()
    alpha, beta = draw.pick([1.0, -0.5]), draw.pick([1.0, 0.25])

    def product(x, y, z):
        return einsum("mk,kn->mn", _swapped(x, a), _swapped(y, b)) * alpha + z * beta

    inputs = [_matrix(draw, m, k, a), _matrix(draw, k, n, b), draw.real(m, n)]
    options = {"transpose_a": a, "transpose_b": b, "alpha": alpha, "beta": beta}
    return operator("linalg.gemm", inputs, product, dtypes=("float32", "float64"), **options)


def syrk(draw):
    (m, k), transposed, alpha = draw.sizes(2, room=draw.room, most=300), draw.flag(), draw.pick([1.0, -0.5])

    def product(x):
        x = _swapped(x, transposed)
        return einsum("mk,nk->mn", x, x) * alpha

    options = {"transpose": transposed, "alpha": alpha}
    return operator("linalg.syrk", [_matrix(draw, m, k, transposed)], product, dtypes=("float32", "float64"), **options)


def product_and_formula(draw):
    """A product with what becomes its epilogue."""
    m, n, k = _three(draw)
    columns = draw.flag()

    def call(F, x, y, z):
        return F.sin(F.broadcast_add(F.dot(x, y), z))

    inputs = [draw.real(m, k), draw.real(k, n), draw.real(*((m, 1) if columns else (1, n)))]
    return Case("sin(broadcast_add(dot(x, y), z))", inputs, call,
                lambda x, y, z: sin(einsum("mk,kn->mn", x, y) + z), tags=("epilogue",))  # fmt: skip


def transposed(draw):
    """Products of what is transposed or made another shape first, and a result that is transposed."""
    (g, m, n, k), last = _three(draw, 4), draw.flag()

    def call(F, x, y, z):
        found = F.batch_dot(F.transpose(x, axes=(0, 2, 1)), F.transpose(y, axes=(1, 0, 2))) * 0.5
        found = F.broadcast_add(found, F.expand_dims(z, axis=0))
        return F.transpose(found, axes=(2, 0, 1)) if last else found

    def formula(x, y, z):
        found = einsum("gkm,kgn->gmn", x, y) * 0.5 + z.reshape(1, m, n)
        return found.transpose(2, 0, 1) if last else found

    inputs = [draw.real(g, k, m), draw.real(k, g, n), draw.real(m, n)]
    return Case(f"batch_dot(transpose(x), transpose(y)) / 2 + z{', transposed' if last else ''}", inputs, call, formula,
                tags=("transposed",))  # fmt: skip


def triangle(draw):
    (m, n), right, turned = draw.sizes(2, room=draw.room, most=150, empty=0), draw.flag(), draw.flag()
    alpha, lower = draw.pick([1.0, -0.5]), draw.flag()

    def product(t, x):
        t = moved(t, lambda a: (np.tril if lower else np.triu)(a + 1) - 1)
        t = _swapped(t, turned)
        return (einsum("mk,kn->mn", x, t) if right else einsum("mk,kn->mn", t, x)) * alpha

    k = n if right else m
    options = {"transpose": turned, "rightside": right, "lower": lower, "alpha": alpha}
    return operator("linalg.trmm", [draw.real(k, k), draw.real(m, n)], product, dtypes=("float32", "float64"), **options)


def attention(draw):
    """Products of heads that lie interleaved."""
    length, batch, heads, size = draw.sizes(4, room=draw.room, most=130, empty=0)
    which = draw.pick(["qk", "valatt"])

    def parts(x):
        return [moved(x, lambda a, k=k: a.reshape(length, batch, heads, 3, size)[..., k, :]) for k in range(3)]

    def product(x, *att):
        q, k, v = parts(x)
        if which == "qk":
            return (einsum("ibhd,jbhd->bhij", q, k) * (1 / size**0.5)).reshape(batch * heads, length, length)
        return einsum("bhij,jbhd->ibhd", att[0].reshape(batch, heads, length, length), v).reshape(length, batch, heads * size)

    inputs = [draw.real(length, batch, heads * size * 3), draw.real(batch * heads, length, length)]
    return operator(f"contrib.interleaved_matmul_selfatt_{which}", inputs[: 1 if which == "qk" else 2], product, heads=heads)


def many_factors(draw):
    """Products that share a factor, which may become one."""
    m, n, k, also = _three(draw, 4)

    def call(F, x, y, z):
        return F.concat(F.dot(x, y), F.dot(x, z), dim=1)

    inputs = [draw.real(m, k), draw.real(k, n), draw.real(k, also)]
    return Case("concat(dot(x, y), dot(x, z))", inputs, call,
                lambda x, y, z: joined([einsum("mk,kn->mn", x, y), einsum("mk,kn->mn", x, z)], 1),
                tags=("shared factor",))  # fmt: skip


MAKERS = [dot, dot_of_other_ranks, batch_dot, fully_connected, gemm2, gemm, syrk, product_and_formula, many_factors,
          transposed, triangle, attention]  # fmt: skip
