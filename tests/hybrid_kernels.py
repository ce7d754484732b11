"""Kernels of the hybrid language that several files of tests run."""

from mxop.operator import kernel


@kernel
def matmul(a, b):
    """A product of matrices."""
    c = output_tensor((a.shape[0], b.shape[1]), a.dtype)
    for i in parallel(a.shape[0]):
        for j in range(b.shape[1]):
            c[i, j] = 0.0
            for k in reduce(a.shape[1]):
                c[i, j] = c[i, j] + a[i, k] * b[k, j]
    return c


@kernel
def outer_product(a, b):
    d = allocate(a.shape, a.dtype)
    c = output_tensor(a.shape, a.dtype)
    with block_realize(c):
        for i0 in range(a.shape[0]):
            for i1 in range(b.shape[1]):
                c[i0, i1] = 0.0
                for i2 in range(a.shape[1]):
                    d[i0, i2] = 2 * a[i0, i2]
                    c[i0, i1] = c[i0, i1] + sin(d[i0, i2] * b[i2, i1])
    return c


@kernel
def softmax(x):
    y = output_tensor(x.shape, x.dtype)
    for i in parallel(x.shape[0]):
        m = x[i, 0]
        for j in range(1, x.shape[1]):
            m = max(m, x[i, j])
        total = 0.0
        for j in range(x.shape[1]):
            y[i, j] = exp(x[i, j] - m)
            total += y[i, j]
        for j in vectorize(x.shape[1]):
            y[i, j] /= total
    return y
