"""Matrix products by SciPy's BLAS, for row-major arrays in float32 and float64, on this package's own threads.

BLAS is column-major: it sees each row-major matrix transposed, so the product is taken as ``C^T = B^T A^T``, which swaps
the operands and needs no copy.  A product is cut into pieces, which BLAS multiplies in one thread each: the threads of
OpenBLAS stay awake after a product, and would keep the cores from the kernels that come next.  Sizes alone decide on the
pieces, so that results have the same bits with any number of threads.
Importing this module imports SciPy; callers do so on first use.  May import its neighbours.
"""

import ctypes

import scipy.linalg.cython_blas as _blas

from cython.parallel cimport prange
from libc.stdint cimport uintptr_t
from scipy.linalg.cython_blas cimport dgemm, dgemv, sgemm, sgemv

from mxop._kernels.work cimport Work

cdef enum:
    LARGEST = 2147483647    # BLAS counts in 32-bit integers
    UNIT = 32               # pieces have a multiple of this many rows and columns
    SIDE = 512              # rows and columns of a piece; BLAS is slower on smaller ones
    WORTH = 250000          # multiplications that are worth a thread
    LEAST = 4000000         # of a piece
    ENOUGH = 150000000      # of a piece that need not be larger
    ALONE = 2000            # up to here BLAS keeps to one thread of itself


# ---- threads of BLAS --------------------------------------------------------------------------------------------------

ctypedef int (*get_threads_t)() noexcept nogil
ctypedef void (*set_threads_t)(int) noexcept nogil

cdef get_threads_t _get_threads = NULL
cdef set_threads_t _set_threads = NULL
cdef int _products = 0      # under way, in all threads of Python
cdef int _threads_before = 1


def _find_control():
    """Find the functions of OpenBLAS for its number of threads; other libraries keep the threads they have."""
    global _get_threads, _set_threads
    try:
        library = ctypes.CDLL(_blas.__file__)
    except OSError:
        return
    for name in ("scipy_openblas_%s_num_threads", "openblas_%s_num_threads", "openblas_%s_num_threads64_"):
        if hasattr(library, name % "get") and hasattr(library, name % "set"):
            _get_threads = <get_threads_t><uintptr_t>ctypes.cast(getattr(library, name % "get"), ctypes.c_void_p).value
            _set_threads = <set_threads_t><uintptr_t>ctypes.cast(getattr(library, name % "set"), ctypes.c_void_p).value
            return


_find_control()


def blas_threads():
    """Return how many threads BLAS uses outside of products of this module; None where it does not say."""
    return None if _get_threads == NULL else _threads_before if _products else _get_threads()


cdef void take_threads() noexcept:
    """Let BLAS use one thread, until the last product under way has ended."""
    global _products, _threads_before
    if _products == 0:
        _threads_before = _get_threads()
        _set_threads(1)
    _products += 1


cdef void give_threads_back() noexcept:
    global _products
    _products -= 1
    if _products == 0:
        _set_threads(_threads_before)


# ---- one product ------------------------------------------------------------------------------------------------------

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


cdef void multiply(const real* a, int lda, const real* b, int ldb, real* c, int ldc, int m, int n, int k, bint transpose_a,
                   bint transpose_b, real alpha, real beta) noexcept nogil:
    """Write ``alpha * op(a) @ op(b) + beta * c`` to `c`, of `m` rows and `n` columns; `k` is contracted.

    `lda`, `ldb` and `ldc` are the elements from one row of the matrix in memory to the next.
    """
    cdef char plain = b'N', turned = b'T'
    cdef char* ta = &turned if transpose_a else &plain
    cdef char* tb = &turned if transpose_b else &plain
    cdef Py_ssize_t i, j
    if m == 0 or n == 0:
        return
    if k == 0:  # the sum of nothing
        for i in range(m):
            for j in range(n):
                c[i * ldc + j] = c[i * ldc + j] * beta if beta != 0 else 0
        return
    if n == 1 and ldc == 1 and (ldb == 1 or transpose_b):  # matrix times vector: row-major is transposed to BLAS
        if transpose_a:
            vector[real](&plain, &m, &k, &alpha, <real*>a, &lda, <real*>b, &beta, c)
        else:
            vector[real](&turned, &k, &m, &alpha, <real*>a, &lda, <real*>b, &beta, c)
    elif m == 1 and (lda == 1 or not transpose_a):
        if transpose_b:
            vector[real](&turned, &k, &n, &alpha, <real*>b, &ldb, <real*>a, &beta, c)
        else:
            vector[real](&plain, &n, &k, &alpha, <real*>b, &ldb, <real*>a, &beta, c)
    else:
        matrix[real](tb, ta, &n, &m, &k, &alpha, <real*>b, &ldb, <real*>a, &lda, &beta, c, &ldc)


# ---- a batch of products, in pieces -----------------------------------------------------------------------------------

cdef struct Batch:
    Py_ssize_t count                    # of products
    int m, n, k
    bint transpose_a, transpose_b
    double alpha
    bint has_bias
    Py_ssize_t bias_strides[3]          # in bytes, over the batch, rows and columns
    int across, down                    # pieces of each product, along its rows and its columns


cdef void piece(const Batch* batch, const real* a, const real* b, real* c, const char* bias, Py_ssize_t index) noexcept nogil:
    """Take one piece of one product; a bias is written first, and the product added to it."""
    cdef Py_ssize_t each = <Py_ssize_t>batch.down * batch.across, item = index // each
    cdef Py_ssize_t row = bound(batch.m, batch.down, index % each // batch.across)
    cdef Py_ssize_t column = bound(batch.n, batch.across, index % batch.across)
    cdef int m = <int>(bound(batch.m, batch.down, index % each // batch.across + 1) - row)
    cdef int n = <int>(bound(batch.n, batch.across, index % batch.across + 1) - column)
    cdef int lda = batch.m if batch.transpose_a else batch.k, ldb = batch.k if batch.transpose_b else batch.n
    cdef Py_ssize_t i, j
    a += item * batch.m * batch.k + (row if batch.transpose_a else row * lda)
    b += item * batch.k * batch.n + (column * ldb if batch.transpose_b else column)
    c += item * batch.m * batch.n + row * batch.n + column
    if batch.has_bias:
        bias += item * batch.bias_strides[0] + row * batch.bias_strides[1] + column * batch.bias_strides[2]
        for i in range(m):
            for j in range(n):
                c[i * batch.n + j] = (<const real*>(bias + i * batch.bias_strides[1] + j * batch.bias_strides[2]))[0]
    multiply[real](a, lda, b, ldb, c, batch.n, m, n, batch.k, batch.transpose_a, batch.transpose_b, <real>batch.alpha,
                   1 if batch.has_bias else 0)


cdef Py_ssize_t bound(Py_ssize_t length, int parts, Py_ssize_t part) noexcept nogil:
    """Return where a piece begins: whole units, as even as can be."""
    return min((length + UNIT - 1) // UNIT * part // parts * UNIT, length)


cdef void pieces(const Batch* batch, const real* a, const real* b, real* c, const char* bias, int threads) noexcept nogil:
    cdef Py_ssize_t index, n = batch.count * batch.down * batch.across
    if threads == 1:
        for index in range(n):
            piece[real](batch, a, b, c, bias, index)
    else:
        for index in prange(n, num_threads=threads, schedule="dynamic"):
            piece[real](batch, a, b, c, bias, index)


cdef int cut(Batch* batch, int threads) noexcept:
    """Choose the pieces, large ones if there are enough of them; return how many threads they are worth."""
    cdef double work = <double>batch.count * batch.m * batch.n * batch.k
    cdef Py_ssize_t least = <Py_ssize_t>min(4, work / LEAST), wanted = max(least, <Py_ssize_t>min(256, work / ENOUGH))
    cdef int side
    batch.down, batch.across = max((batch.m + SIDE - 1) // SIDE, 1), max((batch.n + SIDE - 1) // SIDE, 1)
    for side in (192, 128, 64):
        if batch.count * batch.down * batch.across < wanted:  # columns first: BLAS minds fewer rows more
            batch.across = max(batch.across, <int>min(batch.n // side, wanted // (batch.count * batch.down)))
        if batch.count * batch.down * batch.across < wanted:
            batch.down = max(batch.down, <int>min(batch.m // side, wanted // (batch.count * batch.across)))
        if batch.count * batch.down * batch.across >= least:
            break
    return <int>max(min(threads, batch.count * batch.down * batch.across, work / WORTH), 1)


cdef class Product(Work):
    """Products of matrices, ``alpha * op(a) @ op(b)`` and perhaps a bias: of `a`, `b`, the bias if there is one, and the result.

    Parameters
    ----------
    double_ : bool
        Whether all are float64; otherwise float32.
    count : int
        Number of products; each has matrices of its own, one behind the other.
    m, n, k : int
        Rows and columns of each result, and what is contracted.
    transpose_a, transpose_b : bool
        Transpose the matrices of `a` or `b` first.
    alpha : float
    bias_strides : tuple of int, optional
        From one element of the bias to the next, in elements: over the batch, down the rows, along the columns.

    Raises
    ------
    OverflowError
        More than 2**31 - 1 rows or columns.
    """

    cdef Batch batch
    cdef bint double_

    def __init__(self, bint double_, Py_ssize_t count, Py_ssize_t m, Py_ssize_t n, Py_ssize_t k, bint transpose_a=False,
                 bint transpose_b=False, double alpha=1.0, tuple bias_strides=None):
        if max(m, n, k) > LARGEST:
            raise OverflowError("a matrix product takes at most 2**31 - 1 rows or columns: BLAS counts in 32 bits")
        self.double_ = double_
        self.batch.count, self.batch.m, self.batch.n, self.batch.k = count, <int>m, <int>n, <int>k
        self.batch.transpose_a, self.batch.transpose_b = transpose_a, transpose_b
        self.batch.alpha, self.batch.has_bias = alpha, bias_strides is not None
        for i, stride in enumerate(bias_strides or (0, 0, 0)):
            self.batch.bias_strides[i] = stride * (8 if double_ else 4)

    cdef Py_ssize_t run(self, char** data, int threads) except? -2:
        cdef Batch batch = self.batch
        cdef char* bias = data[2] if batch.has_bias else NULL
        cdef char* out = data[3 if batch.has_bias else 2]
        cdef double work = <double>batch.count * batch.m * batch.n * batch.k
        cdef bint own = _set_threads != NULL and work > ALONE
        batch.down = batch.across = 1
        if own:
            threads = cut(&batch, threads)
            take_threads()
        else:
            threads = 1
        with nogil:
            if self.double_:
                pieces[double](&batch, <double*>data[0], <double*>data[1], <double*>out, bias, threads)
            else:
                pieces[float](&batch, <float*>data[0], <float*>data[1], <float*>out, bias, threads)
        if own:
            give_threads_back()
        return -1
