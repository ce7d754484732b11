cdef enum:
    MAX_DIMS = 32
    REQ_NULL = 0
    REQ_WRITE = 1
    REQ_INPLACE = 2
    REQ_ADD = 3

# A parameter of a call, both as a real number and as an integer (for integer data).
cdef struct Value:
    double d
    long long i

# One array as a program sees it: `n` elements in the order of the iteration.
cdef struct Operand:
    char* data
    int dtype
    bint contiguous             # element k lies at data + k * itemsize
    bint staged                 # outputs: write through a scratch block (aliases an input)
    int req                     # outputs only
    int ndim                    # the collapsed iteration, when not contiguous
    Py_ssize_t shape[MAX_DIMS]
    Py_ssize_t strides[MAX_DIMS]  # in bytes

cdef void collapse(Operand* operand, int ndim, const Py_ssize_t* shape, const Py_ssize_t* strides) noexcept nogil
cdef bint was_read(const Operand* output, const Operand* inputs, int n) noexcept nogil
cdef bint converts(const Operand* outputs, int n, int ctype) noexcept nogil
cdef void load_block(const Operand* operand, int ctype, Py_ssize_t start, Py_ssize_t length, char* dst) noexcept nogil
cdef void load_key(const Operand* operand, Py_ssize_t start, char* dst) noexcept nogil
cdef void store_block(const Operand* operand, int ctype, Py_ssize_t start, Py_ssize_t length, const char* src) noexcept nogil
cdef const char* block_in_place(const Operand* operand, int ctype, Py_ssize_t start, Py_ssize_t length) noexcept nogil
cdef const char* place_in_order(const Operand* operand, Py_ssize_t start, Py_ssize_t length) noexcept nogil
cdef bint is_value(const Operand* operand, Py_ssize_t least) noexcept nogil
cdef Py_ssize_t period_of(const Operand* operand) noexcept nogil


cdef inline Py_ssize_t distance(Py_ssize_t stride) noexcept nogil:
    return -stride if stride < 0 else stride
