"""Matrix products by SciPy's BLAS, for row-major arrays in float32 and float64.

BLAS is column-major: it sees each row-major matrix transposed, so the product is taken as ``C^T = B^T A^T``, which swaps
the operands and needs no copy.  Importing this module imports SciPy; callers do so on first use.  May import nothing of
mxop.
"""

from cpython.buffer cimport PyBUF_C_CONTIGUOUS, PyBUF_FORMAT, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from libc.string cimport memset
from scipy.linalg.cython_blas cimport dgemm, dgemv, sgemm, sgemv

cdef enum:
    LARGEST = 2147483647  # BLAS counts in 32-bit integers


cdef void matrix(char* ta, char* tb, int* m, int* n, int* k, real* alpha, real* a, int* lda, real* b, int* ldb,
                 real* beta, real* c, int* ldc) noexcept nogil:
    if real is float:
        sgemm(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
    else:
        dgemm(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)


cdef void vector(char* t, int* m, int* n, real* alpha, real* a, int* lda, real* x, real* beta, real* y) noexcept nogil:
    cdef int one = 1
    if real is float:
        sgemv(t, m, n, alpha, a, lda, x, &one, beta, y, &one)
    else:
        dgemv(t, m, n, alpha, a, lda, x, &one, beta, y, &one)


cdef void multiply(const real* a, const real* b, real* c, int m, int n, int k, bint transpose_a, bint transpose_b,
                   real alpha, real beta) noexcept nogil:
    """Write ``alpha * op(a) @ op(b) + beta * c`` to `c`, of `m` rows and `n` columns; `k` is contracted."""
    cdef char plain = b'N', turned = b'T'
    cdef char* ta = &turned if transpose_a else &plain
    cdef char* tb = &turned if transpose_b else &plain
    cdef int lda = m if transpose_a else k
    cdef int ldb = k if transpose_b else n
    cdef int ldc = n
    cdef Py_ssize_t i
    if m == 0 or n == 0:
        return
    if k == 0:  # the sum of nothing
        if beta == 0:
            memset(c, 0, <size_t>m * <size_t>n * sizeof(real))
        elif beta != 1:
            for i in range(<Py_ssize_t>m * n):
                c[i] *= beta
        return
    if n == 1:  # matrix times vector: a row-major matrix is its own transpose to BLAS
        if transpose_a:
            vector[real](&plain, &m, &k, &alpha, <real*>a, &lda, <real*>b, &beta, c)
        else:
            vector[real](&turned, &k, &m, &alpha, <real*>a, &lda, <real*>b, &beta, c)
    elif m == 1:
        if transpose_b:
            vector[real](&turned, &k, &n, &alpha, <real*>b, &ldb, <real*>a, &beta, c)
        else:
            vector[real](&plain, &n, &k, &alpha, <real*>b, &ldb, <real*>a, &beta, c)
    else:
        matrix[real](tb, ta, &n, &m, &k, &alpha, <real*>b, &ldb, <real*>a, &lda, &beta, c, &ldc)


cdef int run(Py_buffer* a, Py_buffer* b, Py_buffer* c, bint transpose_a, bint transpose_b, double alpha, double beta,
             bint single) except -1:
    cdef int batched = c.ndim - 2, i, m, n, k
    cdef Py_ssize_t count = c.shape[0] if batched else 1, item
    cdef Py_ssize_t step_a, step_b, step_c
    for v in range(2):
        if (a.shape[batched + v] > LARGEST or b.shape[batched + v] > LARGEST or c.shape[batched + v] > LARGEST):
            raise OverflowError("a matrix product takes at most 2**31 - 1 rows or columns: BLAS counts in 32 bits")
    m, n = <int>c.shape[batched], <int>c.shape[batched + 1]
    k = <int>a.shape[batched + (0 if transpose_a else 1)]
    if (a.shape[batched + (1 if transpose_a else 0)] != m or b.shape[batched + (0 if transpose_b else 1)] != n
            or b.shape[batched + (1 if transpose_b else 0)] != k
            or (batched and (a.shape[0] != count or b.shape[0] != count))):
        raise ValueError("the shapes of a matrix product do not fit each other")
    step_a, step_b, step_c = <Py_ssize_t>m * k, <Py_ssize_t>k * n, <Py_ssize_t>m * n
    with nogil:
        for item in range(count):
            if single:
                multiply[float](<float*>a.buf + item * step_a, <float*>b.buf + item * step_b,
                                <float*>c.buf + item * step_c, m, n, k, transpose_a, transpose_b, <float>alpha, <float>beta)
            else:
                multiply[double](<double*>a.buf + item * step_a, <double*>b.buf + item * step_b,
                                 <double*>c.buf + item * step_c, m, n, k, transpose_a, transpose_b, alpha, beta)
    return 0


def gemm(a, b, out, bint transpose_a=False, bint transpose_b=False, double beta=0.0, double alpha=1.0):
    """Write ``alpha * op(a) @ op(b) + beta * out`` to `out`.

    Parameters
    ----------
    a, b, out : buffer
        C-contiguous, of one type, float32 or float64, and of two dimensions, or three for a batch.  `out` overlaps
        neither of the others.
    transpose_a, transpose_b : bool
        Transpose the matrices of `a` or `b` first.
    beta, alpha : float
        With ``beta=0`` the old content of `out` is not read.
    """
    cdef Py_buffer x, y, z
    cdef int held = 0
    try:
        PyObject_GetBuffer(a, &x, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT)
        held = 1
        PyObject_GetBuffer(b, &y, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT)
        held = 2
        PyObject_GetBuffer(out, &z, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | PyBUF_WRITABLE)
        held = 3
        if x.format[0] != y.format[0] or x.format[0] != z.format[0] or x.format[0] not in (c'f', c'd'):
            raise TypeError("a matrix product takes float32 or float64 arrays of one type")
        if z.ndim not in (2, 3) or x.ndim != z.ndim or y.ndim != z.ndim:
            raise ValueError("a matrix product takes arrays of two dimensions, or of three for a batch")
        run(&x, &y, &z, transpose_a, transpose_b, alpha, beta, x.format[0] == c'f')
    finally:
        if held > 2:
            PyBuffer_Release(&z)
        if held > 1:
            PyBuffer_Release(&y)
        if held > 0:
            PyBuffer_Release(&x)
