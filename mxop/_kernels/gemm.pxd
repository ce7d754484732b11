# Products of row-major matrices in memory; see gemm.pyx.

ctypedef fused real:
    float
    double

cdef void multiply(const real* a, int lda, const real* b, int ldb, real* c, int ldc, int m, int n, int k, bint transpose_a,
                   bint transpose_b, real alpha, real beta) noexcept nogil
