# Products of row-major matrices in memory; see gemm.pyx.

ctypedef fused real:
    float
    double

cdef void multiply(const real* a, const real* b, real* c, int m, int n, int k, bint transpose_a, bint transpose_b,
                   real alpha, real beta) noexcept nogil
