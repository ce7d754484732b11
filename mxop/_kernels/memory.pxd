from libc.string cimport memset

cdef extern from *:
    """
    #include <stdlib.h>
    /* Whether MXOP_DEBUG_MEMORY is set: a copy of the answer in each module, so that asking costs a comparison. */
    static int mx_debug_memory(void)
    {
        static int known = -1;
        if (known < 0) {
            const char *text = getenv("MXOP_DEBUG_MEMORY");
            known = text != NULL && text[0] != 0 && text[0] != '0';
        }
        return known;
    }
    """
    bint debug_memory "mx_debug_memory"() noexcept nogil

cdef enum:
    FRESH = 0xFF            # NaN in every float type; -1 in integers that are no array's
    FRESH_INTEGER = 0x7F    # large in every integer type

cdef struct Block:
    Py_ssize_t refs
    Py_ssize_t nbytes       # bytes that may be read and written, which its size class may round up
    int size_class          # -1: memory of somebody else
    int readers             # times that pending calls read it: see mxop/_core/lazy.pyx
    void* link              # of wrapped memory the object that keeps it alive; of a block in the free list the next
    char* data
    unsigned long long stamp    # when an array over it was last written again: see mxop/_core/array.pyx
    int writer                  # by which call
    int exports                 # buffers over it that are out
    bint lazy                   # a pending call is to fill it

ctypedef void (*watch_function)(Py_ssize_t in_use) noexcept
ctypedef void (*forsaken_function)(Block* block) noexcept

cdef void set_watch(watch_function watch) noexcept
cdef void set_forsaken(forsaken_function forsaken) noexcept
cdef Block* block_new(Py_ssize_t nbytes) except NULL
cdef Block* block_wrap(char* data, Py_ssize_t nbytes, object owner) except NULL
cdef void block_free(Block* block) noexcept
cdef void fill_fresh(Block* block, int byte) noexcept


cdef inline Block* block_retain(Block* block) noexcept:
    block.refs += 1
    return block


cdef inline void block_release(Block* block) noexcept:
    block.refs -= 1
    if block.refs == 0:
        block_free(block)


cdef inline void fill_scratch(void* memory, Py_ssize_t nbytes) noexcept nogil:
    """Fill memory that is no block, when debugging, as fresh blocks are."""
    if debug_memory():
        memset(memory, FRESH, nbytes)


cdef bint is_elsewhere() noexcept
