from mxop._kernels.operands cimport MAX_DIMS, Operand, Value
from mxop._kernels.interp cimport Ahead, Program

cdef enum:
    COMBINE_ADD = 0
    COMBINE_MUL = 1
    COMBINE_MAX = 2
    COMBINE_MIN = 3
    COMBINE_HYPOT = 4   # the square root of the sum of squares; of float64 only

# The array to reduce: its dimensions sorted into kept and reduced ones.  The last of each form one dimension in a C-contiguous
# copy, which decides the order of combination; several are left of them where the array's own strides do not allow that.
cdef struct Reduced:
    char* data
    int dtype
    int n_kept
    int n_reduced
    int last_kept               # dimensions of the last group
    int last_reduced
    Py_ssize_t kept_shape[MAX_DIMS]
    Py_ssize_t kept_strides[MAX_DIMS]
    Py_ssize_t reduced_shape[MAX_DIMS]
    Py_ssize_t reduced_strides[MAX_DIMS]

cdef void reduce_rows(Program map_, int combine, const Operand* inputs, Py_ssize_t n_reduced, const char* scalars,
                      char* scratch, Py_ssize_t block, Py_ssize_t first, Py_ssize_t last, char* results,
                      Ahead* ahead) noexcept nogil
cdef void add_axis(Reduced* source, bint reduced, bint apart, Py_ssize_t length, Py_ssize_t stride) noexcept nogil
cdef int reduce(Program map_, int combine, const Reduced* source, const Value* params, char* results) except -1
cdef str way_of(Program map_, int combine, const Reduced* source)
