from libc.stdint cimport int64_t, uint32_t, uint64_t

from mxop._kernels.team cimport mx_shares

cdef extern from "mxop_block.h" nogil:
    enum:
        MX_CLAIMED
    void mx_prefetch(const char* p, Py_ssize_t nbytes)
    void mx_claim(const char* p, Py_ssize_t nbytes)
    void mx_stream_fence()
    ctypedef void (*mx_loop)(Py_ssize_t n, void* o, const void* a, const void* b, const void* c, const void* s) noexcept
    ctypedef double (*mx_total)(Py_ssize_t n, const void* a, const void* b, const void* c, const void* s) noexcept
    ctypedef void (*mx_load)(Py_ssize_t n, const char* p, Py_ssize_t stride, void* d) noexcept
    ctypedef void (*mx_store)(Py_ssize_t n, const void* s, char* p, Py_ssize_t stride, int add) noexcept

cdef extern from "mxop_bulk.h" nogil:
    enum:
        MX_LANES
        MX_DIGIT
    ctypedef struct mx_words:
        void (*network)(void* words, Py_ssize_t n) noexcept nogil
        void (*insert)(void* words, Py_ssize_t n) noexcept nogil
        void (*range)(const void* words, Py_ssize_t n, uint64_t* least, uint64_t* most) noexcept nogil
        void (*count)(const void* words, Py_ssize_t n, uint64_t low, int shift, int bits, uint32_t* counts) noexcept nogil
        void (*scatter)(const void* words, void* to, Py_ssize_t n, uint64_t low, int shift, int bits, uint32_t* places) noexcept nogil
        void (*pack)(const void* words, uint64_t* packed, Py_ssize_t rows, Py_ssize_t cols, uint64_t low, int shift,
                     int64_t first) noexcept nogil
        Py_ssize_t (*below)(const void* words, Py_ssize_t n, uint64_t limit) noexcept nogil
        void (*sort)(void* words, void* spare, void* to, Py_ssize_t n) noexcept nogil
    ctypedef struct mx_order:
        const mx_words* words[2]
        void (*keys)(int type, uint64_t flip, int zeros, const char* x, Py_ssize_t xstep, char* words, Py_ssize_t wstep,
                     Py_ssize_t rows, Py_ssize_t cols) noexcept nogil
        void (*unkeys)(int type, uint64_t flip, const char* words, Py_ssize_t wstep, char* x, Py_ssize_t xstep, Py_ssize_t rows,
                       Py_ssize_t cols) noexcept nogil
        void (*places)(int type, const char* words, Py_ssize_t wstep, char* x, Py_ssize_t xstep, Py_ssize_t rows,
                       Py_ssize_t cols) noexcept nogil
    ctypedef struct mx_bulk:
        void (*move)(int way, int size, Py_ssize_t n0, Py_ssize_t n1, const char* s, Py_ssize_t s0, Py_ssize_t s1, char* d,
                     Py_ssize_t d0, Py_ssize_t d1, int stream) noexcept nogil
        void (*stream)(char* d, const char* s, Py_ssize_t nbytes, const char** asked, int n) noexcept nogil
        void (*pick)(const char* s, const Py_ssize_t* place, Py_ssize_t n, Py_ssize_t width, int cached, char* d) noexcept nogil
        void (*fold[7])(int combine, void* totals, const void* x, Py_ssize_t rows, Py_ssize_t step, Py_ssize_t n,
                        Py_ssize_t block) noexcept nogil
        void (*gather[7])(int combine, void* totals, const void* x, Py_ssize_t rows, Py_ssize_t step, Py_ssize_t width) noexcept nogil
        void (*find[7])(int largest, int64_t* places, const void* x, Py_ssize_t rows, Py_ssize_t n) noexcept nogil
        void (*find_columns[7])(int largest, int64_t* places, const void* x, Py_ssize_t rows, Py_ssize_t step,
                                Py_ssize_t width) noexcept nogil
        const mx_order* order
        void (*csr_row[2][2])(void* target, const void* rows, const void* values, const void* columns, Py_ssize_t n,
                              Py_ssize_t width) noexcept nogil

cdef enum:
    MAX_DIMS = 32
    MOST_AHEAD = 8          # arrays that are fetched ahead
    PART_BYTES = 1024       # of the results of an instruction, before each of which a little is fetched
    MOST_REGISTERS = 256    # of a program
    MOST_MOVING = 32        # of one that runs row by row without looking at each row
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

cdef struct StepC:
    mx_loop loop
    mx_total total              # or NULL
    int dst, a, b, c, n_srcs
    bint costly                 # computing takes longer than reading
    bint divides                # may be done in parts
    bint twice                  # may read an element again, so what it writes lies elsewhere
    int scalars                 # offset of its scalars in the scalar buffer

# Memory that is asked for, little by little, while something else is computed.
cdef struct Ahead:
    int n
    const char* at[MOST_AHEAD]
    Py_ssize_t left[MOST_AHEAD]     # bytes
    Py_ssize_t each[MOST_AHEAD]     # before a part of an instruction
    bint always                     # of any instruction, not only of costly ones

# Where the registers of a program lie for one row, and how far each is from there for the next.
cdef struct Rows:
    char* at[MOST_MOVING]
    Py_ssize_t step[MOST_MOVING]

cdef struct ScalarC:
    int param                   # index of a parameter; -1: the value; -2: computed; -3: the value of input `code`
    Value value
    int code, n_codes           # of what is computed: where its postfix is

cdef struct Code:
    int op                      # what is pushed on a stack, or made of its top
    int param
    double value

cdef class Program:
    cdef readonly int n_inputs, n_outputs, n_registers, n_steps, n_costly, ctype, itemsize, n_scalars, max_param
    cdef StepC* steps
    cdef ScalarC* scalars
    cdef Code* codes
    cdef double computed(self, const ScalarC* scalar, const Value* params) noexcept nogil
    cdef bint* keys             # of each input: whether it is a key of random numbers
    cdef bint* valued           # and whether it is taken as scalars, of which there are n_values
    cdef int n_values
    cdef object made_of         # the program and its parameters' names, and what others, by inputs as bits, are made of it
    cdef list params
    cdef dict variants
    cdef Program by_values(self, Py_ssize_t n, const Operand* inputs)
    cdef Py_ssize_t take_values(self, Py_ssize_t start, Py_ssize_t length, const Operand* inputs, char* scalars) noexcept nogil
    cdef readonly bint copies   # its only instruction gives back its input
    cdef readonly str listing
    cdef bint clobbers(self, int output, int input_) noexcept nogil
    cdef void fill_scalars(self, const Value* params, char* buffer) noexcept nogil
    cdef bint takes_halves(self, const Operand* inputs, const Operand* output) noexcept nogil
    cdef void _range(self, Py_ssize_t start, Py_ssize_t stop, const Operand* inputs, const Operand* outputs,
                     const char* scalars, char* scratch, Py_ssize_t block, bint stream, Ahead* ahead) noexcept nogil
    cdef void run_share(self, mx_shares* shares, int thread, Py_ssize_t chunk, Py_ssize_t n, const Operand* inputs,
                        const Operand* outputs, const char* scalars, char* scratch, Py_ssize_t block, bint stream) noexcept nogil
    cdef bint run_tiny(self, Py_ssize_t n, char** arrays, const Value* params) noexcept
    cdef int run(self, Py_ssize_t n, Operand* inputs, Operand* outputs, const Value* params) except -1
    cdef void convert(self, Py_ssize_t start, Py_ssize_t stop, const Operand* source, const Operand* target, char* scratch,
                      Py_ssize_t block, bint stream) noexcept nogil
    cdef void run_fetching(self, const StepC* step, Py_ssize_t length, char** registers, const char* scalars,
                           Ahead* ahead) noexcept nogil
    cdef void look_ahead(self, Ahead* ahead, const Operand* inputs, Py_ssize_t start, Py_ssize_t stop) noexcept nogil
    cdef bint run_steps(self, Py_ssize_t length, char** registers, const char* scalars, double* total, Ahead* ahead) noexcept nogil
    cdef bint rows_from(self, Py_ssize_t first, Py_ssize_t length, const Operand* inputs, const Operand* outputs, char* scratch,
                        Rows* rows) noexcept nogil
    cdef const char* next_row(self, Py_ssize_t length, const char* scalars, Rows* rows, double* total, Ahead* ahead) noexcept nogil
    cdef const char* block(self, Py_ssize_t start, Py_ssize_t length, const Operand* inputs, const char* scalars,
                           char* scratch, Py_ssize_t stride, double* total, Ahead* ahead) noexcept nogil

cdef void collapse(Operand* operand, int ndim, const Py_ssize_t* shape, const Py_ssize_t* strides) noexcept nogil
cdef void load_block(const Operand* operand, int ctype, Py_ssize_t start, Py_ssize_t length, char* dst) noexcept nogil
cdef const mx_bulk* bulk() noexcept nogil
cdef double sum_squares(const double* x, Py_ssize_t n, double scale) noexcept nogil
cdef const void* gemm_kernels(bint double_) noexcept nogil
cdef const void* tile_kernels() noexcept nogil
cdef mx_load load_of(int dtype, bint double_) noexcept nogil
cdef mx_store store_of(int dtype, bint double_) noexcept nogil
cdef bint streams(Py_ssize_t nbytes) noexcept nogil
cdef Py_ssize_t itemsize_of(int dtype) noexcept nogil
cdef int BLOCK_BYTES


cdef inline Py_ssize_t distance(Py_ssize_t stride) noexcept nogil:
    return -stride if stride < 0 else stride
