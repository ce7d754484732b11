from mxop._kernels.instruction_sets cimport mx_loop, mx_total
from mxop._kernels.machine cimport MX_MEMORY_BLOCK
from mxop._kernels.operands cimport Operand, Value

cdef enum:
    MOST_AHEAD = 8          # arrays that are fetched ahead
    PART_BYTES = MX_MEMORY_BLOCK // 2       # of the results of an instruction, for each of which a little is fetched
    MOST_REGISTERS = 256    # of a program; and scalars
    MOST_SCALARS = 128
    MOST_TINY = 24          # of both, where no memory is allocated

cdef struct StepC:
    mx_loop loop
    mx_total total              # or NULL
    int dst, a, b, c, n_srcs
    bint costly                 # computing takes longer than reading
    bint twice                  # may read an element again, so what it writes lies elsewhere
    int scalars                 # offset of its scalars in the scalar buffer

# Memory that is asked for, little by little, while something else is computed.
cdef struct Ahead:
    int n
    Py_ssize_t far                  # so many bytes later into the second cache, before what is named comes into the first; or 0
    const char* at[MOST_AHEAD]
    Py_ssize_t left[MOST_AHEAD]     # bytes
    Py_ssize_t each[MOST_AHEAD]     # for a part of an instruction

cdef struct ScalarC:
    int param                   # index of a parameter; -1: the value; -2: computed; -3: the value of input `code`; -4: computed of such, and of others
    Value value
    int code, n_codes           # of what is computed: where its postfix is

cdef struct Code:
    int op                      # what is pushed on a stack, or made of its top
    int param
    double value

cdef class Program:
    cdef readonly int n_inputs, n_outputs, n_registers, n_steps, n_costly, ctype, itemsize, n_scalars
    cdef StepC* steps
    cdef ScalarC* scalars
    cdef Code* codes
    cdef double computed(self, const ScalarC* scalar, const Value* params, const char* scalars) noexcept nogil
    cdef bint* keys             # of each input: whether it is a key of random numbers
    cdef bint* valued           # and whether it is taken as scalars, of which there are n_values
    cdef int n_values
    cdef object made_of         # the program and its parameters' names, and what others, by inputs as bits, are made of it
    cdef list params
    cdef dict variants
    cdef Program by_values(self, Py_ssize_t n, const Operand* inputs, Py_ssize_t least, Py_ssize_t row)
    cdef Py_ssize_t take_values(self, Py_ssize_t start, Py_ssize_t length, const Operand* inputs, char* scalars) noexcept nogil
    cdef readonly bint copies   # its only instruction gives back its input
    cdef readonly str listing
    cdef bint clobbers(self, int output, int input_) noexcept nogil
    cdef void fill_scalars(self, const Value* params, char* buffer) noexcept nogil
    cdef bint takes_halves(self, const Operand* inputs, const Operand* output) noexcept nogil
    cdef void _range(self, Py_ssize_t start, Py_ssize_t stop, const Operand* inputs, const Operand* outputs,
                     const char* scalars, char* scratch, Py_ssize_t block, bint stream, Ahead* ahead) noexcept nogil
    cdef bint is_tiny(self, Py_ssize_t n) noexcept
    cdef bint takes_plain(self, const Operand* operands) noexcept
    cdef void run_tiny(self, Py_ssize_t n, char** arrays, const Value* params) noexcept
    cdef int run(self, Py_ssize_t n, Operand* inputs, Operand* outputs, const Value* params) except -1
    cdef void convert(self, Py_ssize_t start, Py_ssize_t stop, const Operand* source, const Operand* target, char* scratch,
                      Py_ssize_t block, bint stream) noexcept nogil
    cdef void run_fetching(self, const StepC* step, Py_ssize_t length, char** registers, const char* scalars,
                           Ahead* ahead) noexcept nogil
    cdef void look_ahead(self, Ahead* ahead, const Operand* inputs, Py_ssize_t start, Py_ssize_t stop) noexcept nogil
    cdef bint run_steps(self, Py_ssize_t length, char** registers, const char* scalars, double* total, Ahead* ahead) noexcept nogil
    cdef const char* block(self, Py_ssize_t start, Py_ssize_t length, const Operand* inputs, const char* scalars,
                           char* scratch, Py_ssize_t stride, double* total, Ahead* ahead) noexcept nogil

cdef void fetch_little(Ahead* ahead, Py_ssize_t nbytes) noexcept nogil
cdef bint streams(Py_ssize_t nbytes) noexcept nogil
cdef int BLOCK_BYTES
