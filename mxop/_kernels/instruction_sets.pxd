from libc.stdint cimport int64_t

cdef extern from "mxop_block.h" nogil:
    const int MX_ITEMSIZE[13]
    void mx_prefetch(const char* p, Py_ssize_t nbytes)
    void mx_prefetch_first(const char* p, Py_ssize_t nbytes)
    void mx_stream_fence()
    ctypedef void (*mx_loop)(Py_ssize_t n, void* o, const void* a, const void* b, const void* c, const void* s) noexcept
    ctypedef double (*mx_total)(Py_ssize_t n, const void* a, const void* b, const void* c, const void* s) noexcept
    ctypedef void (*mx_load)(Py_ssize_t n, const char* p, Py_ssize_t stride, void* d) noexcept
    ctypedef void (*mx_store)(Py_ssize_t n, const void* s, char* p, Py_ssize_t stride, int add) noexcept
    ctypedef struct mx_instruction:
        const char* name
        mx_loop loops[7]
        mx_total totals[2]
    ctypedef struct mx_isa_table:
        const char* isa
        const mx_instruction* instructions
        const mx_load (*loads)[7]
        const mx_store (*stores)[7]
        double (*squares_f64)(const double* x, Py_ssize_t n, double scale) noexcept nogil
        const void* gemm[2]
        void (*halves)(mx_loop loop, int sources, Py_ssize_t n, char* o, const char* const* x, const void* scalars, bint stream) noexcept nogil

cdef extern from "mxop_bulk.h" nogil:
    ctypedef struct mx_frame:
        Py_ssize_t height, width
        int unit, clamp
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
        void (*csr_row[2][2])(void* target, const void* rows, const void* values, const void* columns, Py_ssize_t n,
                              Py_ssize_t width) noexcept nogil
        void (*look_around[2])(const void* x, const void* y, Py_ssize_t n, const mx_frame* s, int down, int across,
                               Py_ssize_t* places, void* weights) noexcept nogil

cdef const mx_isa_table* ISA
cdef const mx_bulk* BULK
cdef const mx_instruction* instruction(str name, int ctype) except? NULL
cdef const void* gemm_kernels(bint double_) noexcept nogil
cdef mx_load load_of(int dtype, bint double_) noexcept nogil
cdef mx_store store_of(int dtype, bint double_) noexcept nogil


cdef inline Py_ssize_t itemsize_of(int dtype) noexcept nogil:
    return MX_ITEMSIZE[dtype]
