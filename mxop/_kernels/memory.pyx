"""The pool that array memory comes from.

Blocks are 64-byte aligned and come in size classes, four to each power of two; a freed block waits in its class for the
next array of that size, because fresh memory costs a page fault per 4 KiB, more than most operators cost themselves.
The bytes that wait are bounded.  Called with the GIL held, which makes it thread-safe.  Each thread may say that its arrays lie
elsewhere by default.  May import mxop.errors and mxop.limits.
"""
import os

from libc.stdlib cimport free, malloc
from libc.string cimport memset
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_DECREF

from mxop.errors import OutOfMemoryError
from mxop.limits import setting

cdef extern from *:
    """
    #include <stdlib.h>
    #if defined(_WIN32)
    #include <malloc.h>
    static void *mx_aligned(size_t alignment, size_t bytes) { return _aligned_malloc(bytes, alignment); }
    #define mx_aligned_free _aligned_free
    static void mx_huge(void *p, size_t bytes) { (void)p; (void)bytes; }
    #else
    #include <sys/mman.h>
    static void *mx_aligned(size_t alignment, size_t bytes)
    { void *p = NULL; return posix_memalign(&p, alignment, bytes) == 0 ? p : NULL; }
    #define mx_aligned_free free
    static void mx_huge(void *p, size_t bytes)
    {
    #ifdef MADV_HUGEPAGE
        madvise(p, bytes, MADV_HUGEPAGE);
    #else
        (void)p; (void)bytes;
    #endif
    }
    #endif
    #if defined(_MSC_VER)
    static __declspec(thread) int mx_elsewhere = 0;
    #else
    static __thread int mx_elsewhere = 0;
    #endif
    #if defined(__SANITIZE_ADDRESS__)   /* see tools/sanitize.py */
    #include <sanitizer/asan_interface.h>
    #define mx_poison(p, bytes) __asan_poison_memory_region(p, bytes)
    #define mx_unpoison(p, bytes) __asan_unpoison_memory_region(p, bytes)
    #else
    #define mx_poison(p, bytes) ((void)0)
    #define mx_unpoison(p, bytes) ((void)0)
    #endif
    """
    void mx_poison(void* p, size_t nbytes) nogil        # what AddressSanitizer is to report the use of
    void mx_unpoison(void* p, size_t nbytes) nogil
    void* mx_aligned(size_t alignment, size_t nbytes) nogil
    void mx_aligned_free(void* p) nogil
    void mx_huge(void* p, size_t nbytes) nogil
    int mx_elsewhere

cdef enum:
    HEADER = 64             # room for a Block, in front of its memory
    N_CLASSES = 240
    HUGE = 4194304          # from here on, ask the system for huge pages
    HUGE_ALIGN = 2097152
    SPREAD = 32768          # from here on, blocks begin at places of a page that are far from each other's
    PAGE = 4096

cdef Block* _free_lists[N_CLASSES]
cdef Py_ssize_t _in_use = 0, _cached = 0, _peak = 0, _limit = 0, _hits = 0, _misses = 0
cdef Py_ssize_t _spread = 0     # where in a page the last block began that was spread
cdef watch_function _watch = NULL
cdef forsaken_function _forsaken = NULL
memset(_free_lists, 0, sizeof(_free_lists))
assert sizeof(Block) <= HEADER


cdef Py_ssize_t _class_of(Py_ssize_t nbytes, Py_ssize_t* rounded) noexcept:
    """Return the size class that holds `nbytes`, and its size."""
    cdef Py_ssize_t base, step, k, log2
    if nbytes <= 1024:
        k = (nbytes + 63) // 64
        if k == 0:
            k = 1
        rounded[0] = 64 * k
        return k - 1
    log2 = 10
    base = 1024
    while base * 2 < nbytes:
        base *= 2
        log2 += 1
    step = base // 4
    k = (nbytes - base + step - 1) // step
    rounded[0] = base + k * step
    return 16 + (log2 - 10) * 4 + k - 1


cdef Block* block_new(Py_ssize_t nbytes) except NULL:
    """Return a block of at least `nbytes` bytes, from the pool when one waits there."""
    global _in_use, _cached, _peak, _hits, _misses
    cdef Py_ssize_t rounded, size_class
    cdef Block* block
    cdef char* raw
    if nbytes < 0 or nbytes > (<Py_ssize_t>1 << 56):
        raise OutOfMemoryError(f"an array of {nbytes} bytes cannot be allocated")
    size_class = _class_of(nbytes, &rounded)
    block = _free_lists[size_class]
    if block != NULL:
        _free_lists[size_class] = <Block*>block.link
        _cached -= rounded
        _hits += 1
    else:
        _misses += 1
        block = _from_system(rounded, size_class)
        if block == NULL and _cached:
            _empty()
            block = _from_system(rounded, size_class)
        if block == NULL:
            raise OutOfMemoryError(f"the system has no memory for an array of {nbytes} bytes "
                                   f"({_in_use} bytes of arrays are in use)")
    block.refs = 1
    block.stamp, block.writer = 0, 0
    block.readers, block.exports, block.later = 0, 0, NULL
    mx_unpoison(block.data, nbytes)
    mx_poison(block.data + nbytes, rounded - nbytes)
    _in_use += rounded
    if _in_use > _peak:
        _peak = _in_use
    if _watch != NULL:
        _watch(_in_use)
    return block


cdef Block* _from_system(Py_ssize_t rounded, Py_ssize_t size_class) noexcept:
    """Return a new block; NULL when the system has no memory."""
    # Loops read a little ahead of where they write.  A processor first compares the last 12 bits of addresses, and waits where a
    # read seems to meet a write on its way: an eighth of their time, or half, if the result lies up to 256 bytes further in its
    # page than what is read.  That is where `malloc` puts blocks of one size; so each begins elsewhere.
    global _spread
    cdef Block* block
    cdef char* raw
    cdef Py_ssize_t room = PAGE if rounded >= SPREAD else 0
    if rounded >= HUGE:  # the header apart, so that the data start at a huge page
        block = <Block*>malloc(sizeof(Block))
        if block == NULL:
            return NULL
        raw = <char*>mx_aligned(HUGE_ALIGN, rounded)
        if raw == NULL:
            free(block)
            return NULL
        mx_huge(raw, rounded)
        block.data = raw
    else:
        raw = <char*>mx_aligned(64, HEADER + rounded + room)
        if raw == NULL:
            return NULL
        block = <Block*>raw
        block.data = raw + HEADER
        if room:
            _spread = (_spread + 5 * PAGE // 8) % PAGE
            block.data += (_spread - <Py_ssize_t>block.data) & (PAGE - 1)
    block.nbytes = rounded
    block.size_class = size_class
    return block


cdef Block* block_wrap(char* data, Py_ssize_t nbytes, object owner) except NULL:
    """Return a block over memory that `owner` keeps alive."""
    cdef Block* block = <Block*>malloc(sizeof(Block))
    if block == NULL:
        raise OutOfMemoryError("the system has no memory for the description of an array")
    Py_INCREF(owner)
    block.refs = 1
    block.stamp, block.writer = 0, 0
    block.readers, block.exports, block.later = 0, 0, NULL
    block.nbytes = nbytes
    block.size_class = -1
    block.link = <void*>owner
    block.data = data
    return block


cdef void block_free(Block* block) noexcept:
    """Put a block that nobody uses back into the pool, or give it back to its owner."""
    global _in_use, _cached
    if block.later != NULL:
        _forsaken(block)
    if block.size_class < 0:
        Py_DECREF(<object>block.link)
        free(block)
        return
    _in_use -= block.nbytes
    if _watch != NULL:
        _watch(_in_use)
    if _cached + block.nbytes > _limit:
        _to_system(block)
        return
    _cached += block.nbytes
    mx_poison(block.data, block.nbytes)
    block.link = _free_lists[block.size_class]
    _free_lists[block.size_class] = block


cdef void set_watch(watch_function watch) noexcept:
    """Call a function whenever the bytes in use change; NULL for none.  Objects may be going away: it makes none."""
    global _watch
    _watch = watch


cdef void set_forsaken(forsaken_function forsaken) noexcept:
    """Call a function when a block goes that is still to be filled; it gives `later` back."""
    global _forsaken
    _forsaken = forsaken


cdef void _to_system(Block* block) noexcept:
    mx_unpoison(block.data, block.nbytes)
    if block.nbytes >= HUGE:
        mx_aligned_free(block.data)
        free(block)
    else:
        mx_aligned_free(block)


cdef void _empty() noexcept:
    global _cached
    cdef Block* block
    cdef Block* following
    cdef Py_ssize_t i
    for i in range(N_CLASSES):
        block = _free_lists[i]
        _free_lists[i] = NULL
        while block != NULL:
            following = <Block*>block.link
            _cached -= block.nbytes
            _to_system(block)
            block = following


def empty_cache():
    """Give all waiting memory back to the system."""
    _empty()


def set_limit(Py_ssize_t nbytes):
    """Bound the bytes that may wait in the pool; 0 switches the pool off."""
    global _limit
    _limit = max(nbytes, 0)
    if _cached > _limit:
        _empty()


def stats():
    """Return the pool's figures in bytes and counts."""
    return {"in_use": _in_use, "cached": _cached, "peak": _peak, "limit": _limit, "hits": _hits, "misses": _misses}


def reset_peak():
    """Start a new measurement of the peak."""
    global _peak
    _peak = _in_use


def set_elsewhere(bint elsewhere):
    """Say whether arrays that this thread makes lie elsewhere, unless a device is named."""
    global mx_elsewhere
    mx_elsewhere = elsewhere


cdef bint is_elsewhere() noexcept:
    """Tell whether they do."""
    return mx_elsewhere


def default_limit():
    """A quarter of the machine's memory, or what MXOP_POOL_BYTES says."""
    given = setting("MXOP_POOL_BYTES", -1, "number of bytes")
    if given >= 0:
        return given
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4
    except (AttributeError, ValueError, OSError):
        return 1 << 30


set_limit(default_limit())
