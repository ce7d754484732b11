"""Elements taken from places that an array of indices names, and elements put or added up there.

Data are seen as ``(outer, n, inner)``.  With *rows*, all of the outer and inner positions share ``m`` indices; with *lanes*
each has ``m`` of its own, in an index array of ``(outer, m, inner)``.  Indices are read once, in their own type, and checked
before anything is written.  Each target adds up in the order of the indices whatever the number of threads, so results
are the same each time.
"""

from cython.parallel cimport prange
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy, memset

from mxop._kernels.codes cimport BOOL, FLOAT32, FLOAT64, INT8, INT32, INT64, UINT8
from mxop._kernels.instruction_sets cimport BULK, itemsize_of
from mxop._kernels.machine cimport MX_BLOCK_BYTES, MX_THREAD_BYTES
from mxop._kernels.operands cimport MAX_DIMS
from mxop._kernels.interp cimport streams
from mxop._kernels.memory cimport Block, block_new, block_release
from mxop._kernels.team cimport part_function, share_parts, threads_of
from mxop._kernels.work cimport Work

cdef enum:
    MOST_SIZES = MAX_DIMS
    SOME = MX_BLOCK_BYTES // 8  # indices whose places are found at a time

    CLIP = 0  # to the nearest that exists
    WRAP = 1  # modulo the size
    CHECK = 2  # refused
    NEGATIVE = 3  # counted from the end, refused beyond

MODES = {"clip": CLIP, "wrap": WRAP, "raise": CHECK, "negative": NEGATIVE}

ctypedef fused index_t:
    float
    double
    int8_t
    uint8_t
    int32_t
    int64_t

ctypedef fused unit:
    uint8_t
    int16_t
    int32_t
    int64_t

ctypedef fused number:
    float
    double
    uint8_t
    int16_t
    int32_t
    int64_t

cdef struct Two:  # several elements that are taken as one
    int64_t a, b

cdef struct Four:
    Two a, b

ctypedef fused row_t:
    uint8_t
    int16_t
    int32_t
    int64_t
    Two
    Four

cdef struct Shape:
    Py_ssize_t outer, n, inner, m
    bint lanes


# ---- indices ----------------------------------------------------------------------------------------------------------
cdef inline int64_t whole(index_t value) noexcept nogil:
    """Cut the fraction off; what is beyond all integers becomes the last of them, NaN the first."""
    if index_t is float or index_t is double:
        if not value > -9.2e18:
            return -0x7fffffffffffffff
        return 0x7fffffffffffffff if value > 9.2e18 else <int64_t>value
    else:
        return <int64_t>value


cdef inline int64_t in_range(index_t value) noexcept nogil:
    """Cut the fraction off an index that may name a place; what cannot becomes -1, or too large."""
    if index_t is float or index_t is double:
        value = value if value > -1 else -1
        return <int64_t>(value if value < 9.2e18 else 9.2e18)
    else:
        return <int64_t>value


cdef Py_ssize_t refused(const index_t* index, Py_ssize_t count, int64_t size, int mode) noexcept nogil:
    """Return the position of an index that names no place, or -1."""
    cdef int64_t at, least = -size if mode == NEGATIVE else 0
    cdef Py_ssize_t k
    if size == 0:
        return 0 if count else -1
    if mode == CLIP or mode == WRAP:
        return -1
    for k in range(count):
        at = whole[index_t](index[k])
        if at < least or at >= size:
            return k
    return -1


cdef void locate(const index_t* index, Py_ssize_t count, int64_t size, int mode, bint first, Py_ssize_t* place) noexcept nogil:
    """Let places have one coordinate more; none is refused."""
    cdef Py_ssize_t k
    cdef int64_t at
    cdef bint beyond = not first
    if first:  # without a decision in the loop: hardly any is out of range
        for k in range(count):
            place[k] = in_range[index_t](index[k])
            beyond |= <uint64_t>place[k] >= <uint64_t>size
    if not beyond:
        return
    for k in range(count):
        at = whole[index_t](index[k])
        if at < 0 or at >= size:
            if mode == CLIP:
                at = 0 if at < 0 else size - 1
            elif mode == WRAP:
                at %= size  # C's remainder has the sign of `at`
                at += size if at < 0 else 0
            else:
                at += size
        place[k] = at if first else place[k] * size + at


cdef bint all_within(const Py_ssize_t* place, Py_ssize_t count, Py_ssize_t size) noexcept nogil:
    """Return whether all places exist."""
    cdef bint beyond = False
    cdef Py_ssize_t k
    for k in range(count):
        beyond |= <size_t>place[k] >= <size_t>size
    return not beyond


cdef Py_ssize_t refused_any(const void* index, char kind, Py_ssize_t count, int64_t size, int mode) noexcept nogil:
    if kind == c"f":
        return refused[float](<const float*>index, count, size, mode)
    if kind == c"d":
        return refused[double](<const double*>index, count, size, mode)
    if kind == c"b":
        return refused[int8_t](<const int8_t*>index, count, size, mode)
    if kind == c"B":
        return refused[uint8_t](<const uint8_t*>index, count, size, mode)
    if kind == c"i":
        return refused[int32_t](<const int32_t*>index, count, size, mode)
    return refused[int64_t](<const int64_t*>index, count, size, mode)


cdef void locate_any(const char* index, char kind, Py_ssize_t begin, Py_ssize_t count, int64_t size, int mode, bint first,
                     Py_ssize_t* place) noexcept nogil:
    if kind == c"f":
        locate[float](<const float*>index + begin, count, size, mode, first, place)
    elif kind == c"d":
        locate[double](<const double*>index + begin, count, size, mode, first, place)
    elif kind == c"b":
        locate[int8_t](<const int8_t*>index + begin, count, size, mode, first, place)
    elif kind == c"B":
        locate[uint8_t](<const uint8_t*>index + begin, count, size, mode, first, place)
    elif kind == c"i":
        locate[int32_t](<const int32_t*>index + begin, count, size, mode, first, place)
    else:
        locate[int64_t](<const int64_t*>index + begin, count, size, mode, first, place)


# ---- take -------------------------------------------------------------------------------------------------------------
cdef void take_rows(const char* data, char* out, const Py_ssize_t* place, Shape s, Py_ssize_t itemsize, Py_ssize_t begin,
                    Py_ssize_t end) noexcept nogil:
    """Copy rows `begin` to `end` of ``outer * m``."""
    cdef Py_ssize_t t = begin, j, many, width = s.inner * itemsize
    cdef bint cached = not streams(s.outer * s.n * width)
    while t < end and width:
        j = t % s.m
        many = min(s.m - j, end - t)
        BULK.pick(data + t // s.m * s.n * width, place + j, many, width, cached, out + t * width)
        t += many


cdef void take_units(const row_t* data, row_t* out, const Py_ssize_t* place, Shape s, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Copy rows of one element each, or of few."""
    cdef Py_ssize_t t, j
    cdef const row_t* source
    if end <= s.m:
        for t in range(begin, end):
            out[t] = data[place[t]]
        return
    j, source = begin % s.m, data + begin // s.m * s.n
    for t in range(begin, end):
        out[t] = source[place[j]]
        j += 1
        if j == s.m:
            j, source = 0, source + s.n


cdef void take_lanes(const unit* data, unit* out, const Py_ssize_t* place, Shape s, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Copy rows `begin` to `end` of ``outer * m``, each element from its own place."""
    cdef Py_ssize_t t, i
    cdef const unit* source
    for t in range(begin, end):
        source = data + t // s.m * s.n * s.inner
        for i in range(s.inner):
            out[t * s.inner + i] = source[place[t * s.inner + i] * s.inner + i]


cdef void take_part(const char* data, char* out, const Py_ssize_t* place, Shape s, Py_ssize_t itemsize, Py_ssize_t begin,
                    Py_ssize_t end) noexcept nogil:
    cdef Py_ssize_t width = itemsize if s.lanes else s.inner * itemsize
    if s.lanes and width == 1:
        take_lanes[uint8_t](<const uint8_t*>data, <uint8_t*>out, place, s, begin, end)
    elif s.lanes and width == 2:
        take_lanes[int16_t](<const int16_t*>data, <int16_t*>out, place, s, begin, end)
    elif s.lanes and width == 4:
        take_lanes[int32_t](<const int32_t*>data, <int32_t*>out, place, s, begin, end)
    elif s.lanes:
        take_lanes[int64_t](<const int64_t*>data, <int64_t*>out, place, s, begin, end)
    elif width not in (1, 2, 4, 8, 16, 32) or (<Py_ssize_t>data | <Py_ssize_t>out) & (min(width, <Py_ssize_t>8) - 1):
        take_rows(data, out, place, s, itemsize, begin, end)  # no place of a unit
    elif width == 1:
        take_units[uint8_t](<const uint8_t*>data, <uint8_t*>out, place, s, begin, end)
    elif width == 2:
        take_units[int16_t](<const int16_t*>data, <int16_t*>out, place, s, begin, end)
    elif width == 4:
        take_units[int32_t](<const int32_t*>data, <int32_t*>out, place, s, begin, end)
    elif width == 8:
        take_units[int64_t](<const int64_t*>data, <int64_t*>out, place, s, begin, end)
    elif width == 16:
        take_units[Two](<const Two*>data, <Two*>out, place, s, begin, end)
    else:
        take_units[Four](<const Four*>data, <Four*>out, place, s, begin, end)


# ---- put and add ------------------------------------------------------------------------------------------------------
cdef void put_part(const number* head, number* out, const Py_ssize_t* place, Shape s, bint add, Py_ssize_t o,
                   Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Write rows `begin` to `end` (lanes: those positions of inner) of one outer position."""
    cdef Py_ssize_t j, i, p, first = begin if s.lanes else 0, last = end if s.lanes else s.inner
    cdef number* row
    cdef const number* source
    head, out = head + o * s.m * s.inner, out + o * s.n * s.inner
    if s.lanes:
        place += o * s.m * s.inner
        for j in range(s.m):
            for i in range(first, last):
                p = place[j * s.inner + i] * s.inner + i
                out[p] = out[p] + head[j * s.inner + i] if add else head[j * s.inner + i]
        return
    if s.inner == 1 and add:
        for j in range(s.m):
            p = place[j]
            if begin <= p < end:
                out[p] += head[j]
        return
    for j in range(s.m):
        p = place[j]
        if begin <= p < end:
            row, source = out + p * s.inner, head + j * s.inner
            if add:
                for i in range(s.inner):
                    row[i] += source[i]
            else:
                memcpy(row, source, s.inner * sizeof(number))


cdef void put(const number* head, number* out, const Py_ssize_t* place, Shape s, bint add, int threads) noexcept nogil:
    """Divide the targets among threads: each is written by one, in the order of the indices."""
    cdef Py_ssize_t span = s.inner if s.lanes else s.n, t
    cdef Py_ssize_t parts = 1 if s.outer >= threads else threads
    if parts > span:
        parts = span
    for t in prange(s.outer * parts, num_threads=threads, schedule="static"):
        put_part[number](head, out, place, s, add, t // parts, t % parts * span // parts, (t % parts + 1) * span // parts)


cdef int put_any(const void* head, void* out, char kind, const Py_ssize_t* place, Shape s, bint add, int threads) noexcept nogil:
    if kind == c"f":
        put[float](<const float*>head, <float*>out, place, s, add, threads)
    elif kind == c"d":
        put[double](<const double*>head, <double*>out, place, s, add, threads)
    elif kind == c"b" or kind == c"B":  # sums wrap around, so the sign does not matter
        put[uint8_t](<const uint8_t*>head, <uint8_t*>out, place, s, add, threads)
    elif kind == c"h":
        put[int16_t](<const int16_t*>head, <int16_t*>out, place, s, add, threads)
    elif kind == c"i":
        put[int32_t](<const int32_t*>head, <int32_t*>out, place, s, add, threads)
    else:
        put[int64_t](<const int64_t*>head, <int64_t*>out, place, s, add, threads)
    return 0


# ---- one hot ----------------------------------------------------------------------------------------------------------
cdef inline int64_t index_at(const void* index, char kind, Py_ssize_t k) noexcept nogil:
    if kind == c"f":
        return whole[float]((<const float*>index)[k])
    if kind == c"d":
        return whole[double]((<const double*>index)[k])
    if kind == c"b":
        return (<const int8_t*>index)[k]
    if kind == c"B":
        return (<const uint8_t*>index)[k]
    return (<const int32_t*>index)[k] if kind == c"i" else (<const int64_t*>index)[k]


cdef void mark(const void* index, char kind, unit* out, Py_ssize_t depth, unit on, unit off, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Write rows `begin` to `end`."""
    cdef Py_ssize_t r, j
    cdef int64_t at
    cdef unit* row = out + begin * depth
    for r in range(begin, end):
        for j in range(depth):
            row[j] = off
        at = index_at(index, kind, r)
        if 0 <= at < depth:
            row[at] = on
        row += depth


cdef class OneHot(Work):
    """Rows of one number, with another at the place that an index names: of indices, into ``(count, depth)``.

    Parameters
    ----------
    index_dtype, itemsize : int
        Code of the indices' type, for which :func:`reads` says yes; bytes of an element of the result.
    count, depth : int
    on, off : int
        The bits of both numbers.
    """

    cdef Py_ssize_t count, depth
    cdef int itemsize
    cdef char kind
    cdef int64_t on, off

    def __init__(self, int index_dtype, int itemsize, Py_ssize_t count, Py_ssize_t depth, int64_t on, int64_t off):
        self.kind, self.itemsize, self.count, self.depth, self.on, self.off = kind_of(index_dtype), itemsize, count, depth, on, off

    cdef Py_ssize_t run(self, char** data, int threads) except? -2:
        cdef Py_ssize_t nbytes = self.count * self.depth * self.itemsize
        with nogil:
            share_parts(<part_function>mark_rows, <void*>self, data, self.count, threads_of(threads, nbytes // MX_THREAD_BYTES), nbytes)
        return -1


cdef void mark_rows(OneHot self, char** data, Py_ssize_t begin, Py_ssize_t end, int thread) noexcept nogil:
    if self.itemsize == 1:
        mark[uint8_t](data[0], self.kind, <uint8_t*>data[1], self.depth, <uint8_t>self.on, <uint8_t>self.off, begin, end)
    elif self.itemsize == 2:
        mark[int16_t](data[0], self.kind, <int16_t*>data[1], self.depth, <int16_t>self.on, <int16_t>self.off, begin, end)
    elif self.itemsize == 4:
        mark[int32_t](data[0], self.kind, <int32_t*>data[1], self.depth, <int32_t>self.on, <int32_t>self.off, begin, end)
    else:
        mark[int64_t](data[0], self.kind, <int64_t*>data[1], self.depth, self.on, self.off, begin, end)


# ---- work -------------------------------------------------------------------------------------------------------------
cdef char kind_of(int dtype):
    """Return a character for a type of numbers, ``h`` for any of two bytes."""
    return ord({FLOAT32: "f", FLOAT64: "d", UINT8: "B", INT32: "i", INT8: "b", INT64: "q", BOOL: "B"}.get(dtype, "h"))


def reads(int dtype):
    """Return whether a type can be that of indices, and be added up."""
    return kind_of(dtype) != c"h"


cdef class Gather(Work):
    """Elements taken from places, or put there: of a source, at an index, into a result.

    What is refused is an index, at its position in the flat array; nothing was written then.

    Parameters
    ----------
    dtype, index_dtype : int
        Type codes; indices, and what is added up, are of types for which :func:`reads` says yes.
    count : int
        Number of elements of the index.
    sizes : tuple of int
        Of the dimensions that make up ``n``; the index holds one row of coordinates for each.
    outer, inner : int
    mode : str
        What to do with an index that is out of range: one of `MODES`.
    lanes : bool
        Whether the index is ``(outer, m, inner)``.
    put : str, optional
        The result has the data's sizes, it is cleared first and gets what is in the source: ``'add'`` to add up what has
        one place, ``'set'`` to keep the last.  ``'onto'``: it is not cleared, and what ``'add'`` would put there is added.
    """

    cdef Shape shape
    cdef Py_ssize_t sizes[MOST_SIZES]
    cdef Py_ssize_t count, itemsize, step
    cdef int n_sizes, how
    cdef bint putting, add, onto
    cdef char kind, index_kind

    def __init__(self, int dtype, int index_dtype, Py_ssize_t count, tuple sizes, Py_ssize_t outer, Py_ssize_t inner,
                 mode, bint lanes, put=None):
        cdef int k
        if len(sizes) > MOST_SIZES:
            raise ValueError(f"gather: {len(sizes)} dimensions; at most {MOST_SIZES} are supported")
        self.n_sizes, self.count = len(sizes), count // (len(sizes) or 1)
        self.shape.outer, self.shape.inner, self.shape.n, self.shape.lanes = outer, inner, 1, lanes
        for k in range(self.n_sizes):
            self.sizes[k] = sizes[k]
            self.shape.n *= self.sizes[k]
        self.shape.m = self.count // (outer * inner or 1) if lanes else self.count
        self.how, self.putting, self.add, self.onto = MODES[mode], put is not None, put != "set", put == "onto"
        self.kind, self.index_kind = kind_of(dtype), kind_of(index_dtype)
        self.itemsize, self.step = itemsize_of(dtype), itemsize_of(index_dtype) * self.count

    cdef Py_ssize_t run(self, char** data, int threads) except? -2:
        cdef bint by_table = self.putting or self.shape.lanes or self.shape.outer != 1  # places are read again, or never
        cdef Py_ssize_t position
        cdef Block* table = block_new(self.count * sizeof(Py_ssize_t)) if by_table else NULL
        cdef Block* firsts = block_new((self.shape.n + self.count) * sizeof(Py_ssize_t)) if self.onto else NULL
        cdef Block* sums = block_new(self.shape.outer * self.count * self.shape.inner * self.itemsize) if self.onto else NULL
        with nogil:
            position = self.refused(data[1])
            if position < 0 and by_table:
                self.locate(data[1], 0, self.count, <Py_ssize_t*>table.data)
                if self.onto and self.gather_sums(data[0], <Py_ssize_t*>table.data, <Py_ssize_t*>firsts.data, sums.data, threads):
                    self.move(sums.data, data[2], <Py_ssize_t*>table.data, threads)
                else:
                    self.move(data[0], data[2], <Py_ssize_t*>table.data, threads)
            elif position < 0:
                self.all_rows(data, threads)
        if by_table:
            block_release(table)
        if self.onto:
            block_release(firsts)
            block_release(sums)
        return position

    cdef bint gather_sums(self, const char* source, Py_ssize_t* place, Py_ssize_t* first, char* sums, int threads) noexcept nogil:
        """Add up the rows that have one place, where there are such: in `sums`, at the first of them, which alone keeps its place.

        Sums that are added to the target later are rounded as if they had been made in an array of zeros.
        """
        cdef Py_ssize_t* at = first + self.count
        cdef Shape s = self.shape
        cdef Py_ssize_t j
        cdef bint repeated = False
        memset(at, 0xff, s.n * sizeof(Py_ssize_t))  # -1: no row yet
        for j in range(s.m):
            if at[place[j]] < 0:
                at[place[j]] = j
            first[j] = at[place[j]]
            repeated |= first[j] != j
        if not repeated:
            return False
        s.n = s.m
        memset(sums, 0, s.outer * s.m * s.inner * self.itemsize)
        put_any(source, sums, self.kind, first, s, True, threads)
        for j in range(s.m):
            place[j] = place[j] if first[j] == j else -1
        return True

    cdef Py_ssize_t refused(self, const char* index) noexcept nogil:
        """Return the position of an index that names no place, or -1."""
        cdef Py_ssize_t position
        cdef int k
        for k in range(self.n_sizes):
            position = refused_any(index + k * self.step, self.index_kind, self.count, self.sizes[k], self.how)
            if position >= 0:
                return k * self.count + position
        return -1

    cdef void locate(self, const char* index, Py_ssize_t begin, Py_ssize_t count, Py_ssize_t* place) noexcept nogil:
        """Find the places of some of the indices."""
        cdef int k
        if self.n_sizes == 0:
            memset(place, 0, count * sizeof(Py_ssize_t))
        for k in range(self.n_sizes):
            locate_any(index + k * self.step, self.index_kind, begin, count, self.sizes[k], self.how, k == 0, place)

    cdef const Py_ssize_t* places(self, const char* index, Py_ssize_t begin, Py_ssize_t count, Py_ssize_t* room) noexcept nogil:
        """Return the places of some of the indices: those themselves, if they are such."""
        cdef const Py_ssize_t* found = <const Py_ssize_t*>index + begin
        if sizeof(Py_ssize_t) == 8 and self.index_kind == c"q" and self.n_sizes == 1 and all_within(found, count, self.sizes[0]):
            return found
        self.locate(index, begin, count, room)
        return room

    cdef void all_rows(self, char** data, int threads) noexcept nogil:
        """Take the rows that all indices name."""
        cdef Py_ssize_t nbytes = self.count * self.shape.inner * self.itemsize
        share_parts(<part_function>take_named, <void*>self, data, self.count, threads_of(threads, nbytes // MX_THREAD_BYTES), nbytes)

    cdef void move(self, const char* source, char* target, const Py_ssize_t* place, int threads) noexcept nogil:
        cdef Shape s = self.shape
        cdef Py_ssize_t moved = s.outer * s.m * s.inner
        cdef const void* what[3]
        threads = threads_of(threads, moved * self.itemsize // MX_THREAD_BYTES)
        if self.putting:
            if not self.onto:
                memset(target, 0, s.outer * s.n * s.inner * self.itemsize)
            if moved:
                put_any(source, target, self.kind, place, s, self.add, threads)
        elif moved:
            what[0], what[1], what[2] = source, target, place
            share_parts(<part_function>take_places, <void*>self, what, s.outer * s.m, threads, moved * self.itemsize)


cdef void take_named(Gather self, char** data, Py_ssize_t begin, Py_ssize_t end, int thread) noexcept nogil:
    """Take the rows that some indices name; their places stay in the L1 cache."""
    cdef Py_ssize_t place[SOME]
    cdef Py_ssize_t width = self.shape.inner * self.itemsize
    cdef Shape s = self.shape
    while begin < end and width:
        s.m = min(<Py_ssize_t>SOME, end - begin)
        take_part(data[0], data[2] + begin * width, self.places(data[1], begin, s.m, place), s, self.itemsize, 0, s.m)
        begin += s.m


cdef void take_places(Gather self, const void** what, Py_ssize_t begin, Py_ssize_t end, int thread) noexcept nogil:
    take_part(<const char*>what[0], <char*>what[1], <const Py_ssize_t*>what[2], self.shape, self.itemsize, begin, end)
