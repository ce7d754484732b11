from cpython.object cimport PyObject
from libc.stdint cimport uint64_t

from mxop._core.abi cimport MXOPHost

# What a library asked for during one run.
cdef struct Memory:
    void* chunks
    PyObject* gpu           # a list that holds CuPy's memory, for runs on a GPU

cdef MXOPHost* host() noexcept
cdef str failure()
cdef void free_memory(Memory* memory) noexcept
cdef int copy_table(const char* given, char* own, Py_ssize_t size, Py_ssize_t least, str what) except -1
cdef str table_text(const char* text, Py_ssize_t longest, str what)
cdef void seed_of(uint64_t* seed, uint64_t* version) noexcept
