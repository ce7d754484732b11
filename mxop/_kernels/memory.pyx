"""The pool that array memory comes from.

Blocks are 64-byte aligned and come in size classes, four to each power of two; a freed block waits in its class for the
next array of that size, because fresh memory costs a page fault per 4 KiB, more than most operators cost themselves.
The bytes that wait are bounded.  Called with the GIL held, which makes it thread-safe.  Each thread may say that its arrays lie
elsewhere by default.

With ``MXOP_DEBUG_MEMORY=1`` the pool finds faults instead: fresh memory is NaN (0x7f in integers), guard bytes surround each
block, a freed block is filled and put off, and damage ends the process with the Python stack.
"""
import os

from libc.stdlib cimport free, malloc
from libc.string cimport memcmp, memset
from cpython.ref cimport Py_INCREF, Py_DECREF

from mxop.support.errors import OutOfMemoryError
from mxop.support.limits import setting

from mxop._kernels.machine cimport MX_CACHE_LINE, MX_HUGE_PAGE, MX_L1_BYTES, MX_PAGE

cdef extern from "Python.h":
    void Py_FatalError(const char* message)

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
    HEADER = MX_CACHE_LINE  # room for a Block, in front of its memory
    N_CLASSES = 240
    HUGE = 2 * MX_HUGE_PAGE # from here on, ask the system for huge pages
    SPREAD = MX_L1_BYTES    # from here on, blocks begin at places of a page that are far from each other's
    GUARD = MX_CACHE_LINE   # bytes in front of and behind each block, at least
    GUARD_BYTE = 0xA5
    PUT_OFF = 1 << 26       # bytes of freed blocks that are not given back yet
    MANY_PUT_OFF = 1 << 14

cdef Block* _free_lists[N_CLASSES]
cdef Py_ssize_t _class_bytes[N_CLASSES]
cdef Py_ssize_t _in_use = 0, _cached = 0, _peak = 0, _limit = 0, _hits = 0, _misses = 0
cdef Py_ssize_t _spread = 0     # where in a page the last block began that was spread
cdef Block* _put_off[MANY_PUT_OFF]     # a ring: freed blocks, when debugging, the oldest first
cdef Py_ssize_t _oldest = 0, _n_put_off = 0, _bytes_put_off = 0
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
    """Return a block of `nbytes` bytes, from the pool when one waits there."""
    global _in_use, _cached, _peak, _hits, _misses
    cdef Py_ssize_t rounded, size_class
    cdef Block* block
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
        if block == NULL and (_cached or _n_put_off):
            _empty()
            block = _from_system(rounded, size_class)
        if block == NULL:
            raise OutOfMemoryError(f"the system has no memory for an array of {nbytes} bytes "
                                   f"({_in_use} bytes of arrays are in use)")
    block.refs = 1
    block.nbytes = nbytes
    block.stamp, block.writer = 0, 0
    block.readers, block.exports, block.lazy = 0, 0, False
    if debug_memory():
        _surround(block, rounded)
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
    cdef Py_ssize_t room = MX_PAGE if rounded >= SPREAD else 0
    if debug_memory():
        raw = <char*>mx_aligned(64, HEADER + GUARD + rounded + GUARD)
        if raw == NULL:
            return NULL
        block = <Block*>raw
        block.data = raw + HEADER + GUARD
    elif rounded >= HUGE:  # the header apart, so that the data start at a huge page
        block = <Block*>malloc(sizeof(Block))
        if block == NULL:
            return NULL
        raw = <char*>mx_aligned(MX_HUGE_PAGE, rounded)
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
            _spread = (_spread + 5 * MX_PAGE // 8) % MX_PAGE
            block.data += (_spread - <Py_ssize_t>block.data) & (MX_PAGE - 1)
    block.size_class = size_class
    return block


cdef void _surround(Block* block, Py_ssize_t rounded) noexcept:
    """Fill a fresh block, and write the guard bytes in front of and behind it."""
    memset(block.data - GUARD, GUARD_BYTE, GUARD)
    memset(block.data, FRESH, block.nbytes)
    memset(block.data + block.nbytes, GUARD_BYTE, rounded + GUARD - block.nbytes)


cdef bint _holds(const char* first, Py_ssize_t nbytes, int byte) noexcept:
    """Return whether memory holds nothing but one byte."""
    return nbytes <= 0 or (<unsigned char>first[0] == byte and memcmp(first, first + 1, nbytes - 1) == 0)


cdef void _put_block_off(Block* block) noexcept:
    """Check a freed block's guard bytes, fill it, and keep it a while; give back the oldest, if nobody wrote into them since."""
    global _n_put_off, _bytes_put_off
    cdef Py_ssize_t rounded = _class_bytes[block.size_class]
    if not (_holds(block.data - GUARD, GUARD, GUARD_BYTE)
            and _holds(block.data + block.nbytes, rounded + GUARD - block.nbytes, GUARD_BYTE)):
        Py_FatalError("mxop: memory next to an array was written (guard bytes of a block are damaged)")
    memset(block.data, FRESH, block.nbytes)
    mx_poison(block.data, rounded)
    _put_off[(_oldest + _n_put_off) % MANY_PUT_OFF] = block
    _n_put_off += 1
    _bytes_put_off += rounded
    while _bytes_put_off > PUT_OFF or _n_put_off == MANY_PUT_OFF:
        _give_back_oldest()


cdef void _give_back_oldest() noexcept:
    global _oldest, _n_put_off, _bytes_put_off
    cdef Block* block = _put_off[_oldest]
    _oldest = (_oldest + 1) % MANY_PUT_OFF
    _n_put_off -= 1
    _bytes_put_off -= _class_bytes[block.size_class]
    mx_unpoison(block.data, _class_bytes[block.size_class])
    if not _holds(block.data, block.nbytes, FRESH):
        Py_FatalError("mxop: the memory of an array that is gone was written")
    mx_aligned_free(block)


cdef void fill_fresh(Block* block, int byte) noexcept:
    """Fill a block that nothing was written to yet, when debugging."""
    if debug_memory():
        memset(block.data, byte, block.nbytes)


cdef Block* block_wrap(char* data, Py_ssize_t nbytes, object owner) except NULL:
    """Return a block over memory that `owner` keeps alive."""
    cdef Block* block = <Block*>malloc(sizeof(Block))
    if block == NULL:
        raise OutOfMemoryError("the system has no memory for the description of an array")
    Py_INCREF(owner)
    block.refs = 1
    block.stamp, block.writer = 0, 0
    block.readers, block.exports, block.lazy = 0, 0, False
    block.nbytes = nbytes
    block.size_class = -1
    block.link = <void*>owner
    block.data = data
    return block


cdef void block_free(Block* block) noexcept:
    """Put a block that nobody uses back into the pool, or give it back to its owner."""
    global _in_use, _cached
    cdef Py_ssize_t rounded
    if block.lazy:
        _forsaken(block)
    if block.size_class < 0:
        Py_DECREF(<object>block.link)
        free(block)
        return
    rounded = _class_bytes[block.size_class]
    _in_use -= rounded
    if _watch != NULL:
        _watch(_in_use)
    if debug_memory():
        _put_block_off(block)
        return
    if _cached + rounded > _limit:
        _to_system(block)
        return
    _cached += rounded
    mx_poison(block.data, rounded)
    block.link = _free_lists[block.size_class]
    _free_lists[block.size_class] = block


cdef void set_watch(watch_function watch) noexcept:
    """Call a function whenever the bytes in use change; NULL for none.  Objects may be going away: it makes none."""
    global _watch
    _watch = watch


cdef void set_forsaken(forsaken_function forsaken) noexcept:
    """Call a function when a block goes that is still to be filled by a pending call."""
    global _forsaken
    _forsaken = forsaken


cdef void _to_system(Block* block) noexcept:
    mx_unpoison(block.data, _class_bytes[block.size_class])
    if _class_bytes[block.size_class] >= HUGE:
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
            _cached -= _class_bytes[i]
            _to_system(block)
            block = following
    while _n_put_off:
        _give_back_oldest()


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


def set_elsewhere(bint elsewhere):
    """Say whether arrays that this thread makes lie elsewhere, unless a device is named."""
    global mx_elsewhere
    mx_elsewhere = elsewhere


cdef bint is_elsewhere() noexcept:
    """Return whether the default device of this thread is another than the first CPU."""
    return mx_elsewhere


def debugging():
    """Return whether the pool looks for faults (``MXOP_DEBUG_MEMORY=1``)."""
    return bool(debug_memory())


cdef void _set_class_bytes() noexcept:
    cdef Py_ssize_t k
    for k in range(N_CLASSES):
        _class_bytes[k] = 64 * (k + 1) if k < 16 else (<Py_ssize_t>256 << (k - 16) // 4) * (5 + (k - 16) % 4)


def default_limit():
    """A quarter of the machine's memory, or what MXOP_POOL_BYTES says."""
    given = setting("MXOP_POOL_BYTES", -1, "number of bytes")
    if given >= 0:
        return given
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4
    except (AttributeError, ValueError, OSError):
        return 1 << 30


_set_class_bytes()
setting("MXOP_DEBUG_MEMORY", 0)
set_limit(default_limit())
