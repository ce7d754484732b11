from cpython.object cimport PyObject

cdef struct Block:
    Py_ssize_t refs
    Py_ssize_t nbytes       # usable bytes
    Py_ssize_t size_class   # -1: memory of somebody else
    Block* next             # in the free list
    PyObject* owner         # keeps wrapped memory alive
    char* data
    unsigned long long stamp    # when an array over it was last written again: see mxop/_core/array.pyx
    int writer                  # by which call

ctypedef void (*watch_function)(Py_ssize_t in_use) noexcept

cdef void set_watch(watch_function watch) noexcept
cdef Block* block_new(Py_ssize_t nbytes) except NULL
cdef Block* block_wrap(char* data, Py_ssize_t nbytes, object owner) except NULL
cdef void block_free(Block* block) noexcept


cdef inline Block* block_retain(Block* block) noexcept:
    block.refs += 1
    return block


cdef inline void block_release(Block* block) noexcept:
    block.refs -= 1
    if block.refs == 0:
        block_free(block)
