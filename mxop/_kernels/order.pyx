"""The order of elements along one axis of arrays seen as ``(outer, n, inner)``: sorted values, or where they are.

Elements become unsigned words that are ordered as they are (``mxop_order.h``); where places are wanted, the index lies below
the key, so no two words are equal, and every way of sorting gives the same stable order.  Short lanes are sorted by a network,
`MX_LANES` at a time, long ones by quicksort where vectors can be packed (``mxop_order_quick.h``), elsewhere by their digits, least
significant first, and of a few among many a heap is kept.  Digits of keys of 64 bits are those of their leading bits; then come
the runs that these leave equal.
"""
from cython.parallel cimport prange
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcpy

from mxop._kernels.instruction_sets cimport BULK, MX_DIGIT, MX_LANES, itemsize_of, mx_order, mx_words
from mxop._kernels.memory cimport Block, block_new, block_release
from mxop._kernels.team cimport threads_of
from mxop._kernels.work cimport Work

cdef extern from "mxop_bulk.h" nogil:
    enum:
        MX_BLOCKS

cdef enum:
    FLOAT32 = 0         # type codes
    FLOAT64 = 1
    UINT8 = 3
    INT32 = 4
    INT64 = 6
    WORTH = 32768       # elements that a thread should have
    PER_PART = 32768    # elements of a lane that several threads sort
    FEW = 48            # words that insertion sorts, where there is no quicksort
    BUCKETS = 8         # bits of the digit by which threads divide words
    SHORT = 4096        # words for which larger tables of digits take longer than another pass
    LEADING = 33        # bits that are sorted by digits: three passes
    MOST_PARTS = 64
    BLOCK = 1024        # elements that are compared with the heap's largest at a time
    STRETCH = 64
    NETWORK = 0         # ways
    DIGITS = 1
    HEAP = 2

PLACE_TYPES = (FLOAT32, FLOAT64, UINT8, INT32, INT64)

cdef struct Found:
    uint64_t key
    uint64_t place

cdef struct Room:           # of one thread, for one lane
    char* keys
    uint64_t* packed
    uint64_t* spare
    uint32_t* counts


# ---- long lanes -------------------------------------------------------------------------------------------------------
cdef inline int bits_of(uint64_t value) noexcept nogil:
    cdef int n = 0
    while value:
        value >>= 1
        n += 1
    return n


cdef inline Py_ssize_t cut(Py_ssize_t n, Py_ssize_t t, int parts) noexcept nogil:
    return n * t // parts


cdef void range_of(const mx_words* way, const char* words, Py_ssize_t n, int size, int parts, uint64_t* low, uint64_t* high) noexcept nogil:
    cdef uint64_t lows[MOST_PARTS]
    cdef uint64_t highs[MOST_PARTS]
    cdef Py_ssize_t t
    if parts == 1:
        way.range(words, n, low, high)
        return
    for t in prange(parts, num_threads=parts, schedule="static"):
        way.range(words + cut(n, t, parts) * size, cut(n, t + 1, parts) - cut(n, t, parts), &lows[t], &highs[t])
    low[0], high[0] = lows[0], highs[0]
    for t in range(1, parts):
        low[0], high[0] = min(low[0], lows[t]), max(high[0], highs[t])


cdef void one_digit(const mx_words* way, const char* words, char* to, Py_ssize_t n, int size, uint64_t low, int shift, int bits,
                    uint32_t* counts, int parts) noexcept nogil:
    """Order words by one digit; equal ones keep their order."""
    cdef uint32_t at = 0, c
    cdef Py_ssize_t t, k
    if parts == 1:
        way.count(words, n, low, shift, bits, counts)
    else:
        for t in prange(parts, num_threads=parts, schedule="static"):
            way.count(words + cut(n, t, parts) * size, cut(n, t + 1, parts) - cut(n, t, parts), low, shift, bits,
                      counts + (t << MX_DIGIT))
    for k in range(1 << bits):
        for t in range(parts):
            c = counts[(t << MX_DIGIT) + k]
            counts[(t << MX_DIGIT) + k] = at
            at += c
    if parts == 1:
        way.scatter(words, to, n, low, shift, bits, counts)
    else:
        for t in prange(parts, num_threads=parts, schedule="static"):
            way.scatter(words + cut(n, t, parts) * size, to, cut(n, t + 1, parts) - cut(n, t, parts), low, shift, bits,
                        counts + (t << MX_DIGIT))


cdef char* ordered(char* words, char* spare, Py_ssize_t n, bint wide, int base, uint32_t* counts, int parts) noexcept nogil:
    """Sort words by their bits from `base` on, or by all; return which of both memories has them."""
    cdef const mx_words* way = BULK.order.words[wide]
    if n <= (FEW if way.sort == NULL else 3):
        way.insert(words, n)
        return words
    if way.sort != NULL:
        by_pivots(way, words, spare, n, 8 if wide else 4, counts, parts)
        return words
    return by_digits(words, spare, n, wide, base, counts, parts)


cdef void by_pivots(const mx_words* way, char* words, char* spare, Py_ssize_t n, int size, uint32_t* counts, int parts) noexcept nogil:
    """Sort words as they are; where there are several parts, those that have their first digit in common."""
    cdef uint64_t low, high
    cdef Py_ssize_t t
    if parts == 1:
        way.sort(words, spare, words, n)
        return
    range_of(way, words, n, size, parts, &low, &high)
    one_digit(way, words, spare, n, size, low, max(0, bits_of(high - low) - <int>BUCKETS), BUCKETS, counts, parts)
    counts += <Py_ssize_t>(parts - 1) << MX_DIGIT  # of the last part: where each digit ends
    for t in prange(parts, num_threads=parts, schedule="static"):
        sort_digits(way, words, spare, n, size, counts, cut(n, t, parts), cut(n, t + 1, parts))


cdef void sort_digits(const mx_words* way, char* words, char* spare, Py_ssize_t n, int size, const uint32_t* ends,
                      Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Sort the words of the digits that begin in a range."""
    cdef Py_ssize_t start = 0, k
    for k in range(1 << BUCKETS):
        if begin <= start < end and ends[k] > start:
            way.sort(spare + start * size, words + start * size, words + start * size, ends[k] - start)
        start = ends[k]


cdef char* by_digits(char* words, char* spare, Py_ssize_t n, bint wide, int base, uint32_t* counts, int parts) noexcept nogil:
    """Sort words by their bits from `base` on; return which of both memories has them."""
    cdef const mx_words* way = BULK.order.words[wide]
    cdef int size = 8 if wide else 4, bits, skip, passes, digit, p
    cdef uint64_t low, high
    cdef char* other
    range_of(way, words, n, size, parts, &low, &high)
    low = low >> base << base
    bits = bits_of((high - low) >> base)
    skip = max(0, bits - LEADING) if wide and base == 0 else 0
    bits -= skip
    digit = <int>MX_DIGIT if n > SHORT else 8
    passes = (bits + digit - 1) // digit
    for p in range(passes):
        digit = (bits + passes - 1) // passes
        one_digit(way, words, spare, n, size, low, base + skip + p * digit, digit, counts, parts)
        other, words, spare = words, spare, words
    if skip:
        sort_runs(<uint64_t*>words, <uint64_t*>spare, n, NULL, low, skip, counts, parts)
    return words


cdef void sort_runs(uint64_t* words, uint64_t* spare, Py_ssize_t n, const uint64_t* keys, uint64_t low, int shift,
                    uint32_t* counts, int parts) noexcept nogil:
    """Sort words, whose leading bits are in order, where those are equal."""
    cdef Py_ssize_t starts[MOST_PARTS + 1]
    cdef Py_ssize_t t, i
    if parts == 1:
        runs_between(words, spare, 0, n, 1, keys, 1, low, shift, counts)
        return
    starts[0], starts[parts] = 0, n
    for t in range(1, parts):  # whole runs: their words are others while they are sorted
        i = max(cut(n, t, parts), starts[t - 1] + 1)
        while i < n and lead(words[i], keys, low, shift) == lead(words[i - 1], keys, low, shift):
            i += 1
        starts[t] = min(i, n)
    for t in prange(parts, num_threads=parts, schedule="static"):
        runs_between(words, spare, starts[t], starts[t + 1], 1, keys, 1, low, shift, counts + (t << MX_DIGIT))


cdef bint rises(const char* words, Py_ssize_t n, bint wide) noexcept nogil:
    """Tell whether words are in order as they are."""
    cdef Py_ssize_t i
    for i in range(1, n):
        if (<uint64_t*>words)[i] < (<uint64_t*>words)[i - 1] if wide else (<uint32_t*>words)[i] < (<uint32_t*>words)[i - 1]:
            return False
    return True


cdef inline uint64_t lead(uint64_t word, const uint64_t* keys, uint64_t low, int shift) noexcept nogil:
    return (word - low) >> shift if keys == NULL else word >> 32


cdef void runs_between(uint64_t* words, uint64_t* spare, Py_ssize_t begin, Py_ssize_t end, Py_ssize_t step,
                       const uint64_t* keys, Py_ssize_t key_step, uint64_t low, int shift, uint32_t* counts) noexcept nogil:
    """Sort the runs of a range.

    Words are keys, or packed, where `keys` are those that their indices name: then a run is packed again, with what the keys
    have below the leading bits.
    """
    cdef Py_ssize_t i = begin, j, k
    cdef uint64_t top
    cdef char* found
    while i < end:
        top, j = lead(words[i * step], keys, low, shift), i + 1
        while j < end and lead(words[j * step], keys, low, shift) == top:
            j += 1
        if j > i + 1:
            for k in range(i, j):
                spare[k] = words[k * step]
                if keys != NULL:
                    top = keys[<uint32_t>spare[k] * key_step] - low
                    spare[k] = (top & ((<uint64_t>1 << shift) - 1)) << 32 | <uint32_t>spare[k]
            if step == 1:
                found = ordered(<char*>&spare[i], <char*>&words[i], j - i, True, 0 if keys == NULL else 32, counts, 1)
                if found != <char*>&words[i]:
                    memcpy(&words[i], found, (j - i) * sizeof(uint64_t))
            else:
                found = ordered(<char*>&spare[i], <char*>&spare[end + i], j - i, True, 32, counts, 1)
                for k in range(i, j):
                    words[k * step] = (<uint64_t*>found)[k - i]
        i = j


# ---- few of many ------------------------------------------------------------------------------------------------------
cdef inline bint before(Found a, Found b) noexcept nogil:
    return a.key < b.key or (a.key == b.key and a.place < b.place)


cdef void sink(Found* heap, Py_ssize_t n, Py_ssize_t i, Found one) noexcept nogil:
    """Put one at the place of element `i`, below all that come after it."""
    cdef Py_ssize_t child = 2 * i + 1
    while child < n:
        if child + 1 < n and before(heap[child], heap[child + 1]):
            child += 1
        if not before(one, heap[child]):
            break
        heap[i] = heap[child]
        i, child = child, 2 * child + 1
    heap[i] = one


cdef void in_order(Found* heap, Py_ssize_t n) noexcept nogil:
    cdef Found last
    while n > 1:
        n -= 1
        last = heap[n]
        heap[n] = heap[0]
        sink(heap, n, 0, last)


# ---- work -------------------------------------------------------------------------------------------------------------
cdef class Order(Work):
    """Sorted values, or the places of elements in order of value: of data, into an array of `k` elements along axis 1.

    Parameters
    ----------
    shape : tuple of int
        ``(outer, n, inner)``; `n` below 2**31.
    dtype : int
        Code of the data's type.
    k : int
        How many; at most `n`.
    ascending : bool
    places : int
        Code of the type of places, one of `PLACE_TYPES`; -1: values are wanted, and `k` is `n`.
    """

    cdef Py_ssize_t outer, n, inner, k, size, out_size, key, columns
    cdef int dtype, places, way
    cdef uint64_t flip
    cdef bint wide

    def __init__(self, tuple shape, int dtype, Py_ssize_t k, bint ascending, int places=-1):
        self.outer, self.n, self.inner = shape
        self.dtype, self.k, self.places, self.size = dtype, k, places, itemsize_of(dtype)
        self.wide = self.size == 8
        self.key, self.flip = 8 if self.wide else 4, 0 if ascending else ~<uint64_t>0
        self.out_size, self.columns = self.size if places < 0 else itemsize_of(places), self.outer * self.inner
        few = places >= 0 and k <= 2048
        self.way = DIGITS
        if few and 16 * k <= self.n and self.n > 128:
            self.way = HEAP
        elif self.columns > 3 and 1 < self.n <= (1024 if places < 0 else 512):
            self.way = NETWORK

    cdef Py_ssize_t room(self, int parts) noexcept:
        """Return how much memory a thread needs."""
        cdef Py_ssize_t lanes = MX_LANES if self.way == NETWORK else 1, packed = 16 if self.places >= 0 else self.key
        if self.way == HEAP:
            return max(parts * self.k * <Py_ssize_t>sizeof(Found), self.n * (self.key + 16) + (parts << MX_DIGIT + 2)) + 1024
        return lanes * self.n * (2 * self.key + packed) + (parts << MX_DIGIT + 2) + 1024

    cdef Py_ssize_t run(self, char** data, int threads) except? -2:
        cdef Py_ssize_t across = MX_LANES if self.way == NETWORK or self.inner > 1 else 1, t, room
        cdef Py_ssize_t pieces = (self.inner + across - 1) // across, tasks = self.outer * pieces
        cdef int parts = 1
        cdef Block* memory
        if self.columns == 0 or self.k == 0:
            return -1
        if self.inner == 1:
            tasks = (self.outer + across - 1) // across
        threads = threads_of(threads, self.columns * self.n // WORTH)
        if tasks < threads and self.way != NETWORK:
            parts = <int>max(1, min(min(<Py_ssize_t>threads, self.n // PER_PART), <Py_ssize_t>MOST_PARTS))
        threads = <int>min(<Py_ssize_t>threads, tasks) if parts == 1 else 1
        room = self.room(parts)
        memory = block_new(room * threads)
        with nogil:
            if threads == 1:
                for t in range(tasks):
                    self.task(data[0], data[1], t, pieces, across, memory.data, parts)
            else:
                for t in prange(threads, num_threads=threads, schedule="static", chunksize=1):
                    self.tasks_of(data[0], data[1], t, tasks, threads, pieces, across, memory.data + t * room)
        block_release(memory)
        return -1

    cdef void tasks_of(self, const char* x, char* out, Py_ssize_t thread, Py_ssize_t tasks, int threads, Py_ssize_t pieces,
                       Py_ssize_t across, char* memory) noexcept nogil:
        cdef Py_ssize_t t
        for t in range(cut(tasks, thread, threads), cut(tasks, thread + 1, threads)):
            self.task(x, out, t, pieces, across, memory, 1)

    cdef void task(self, const char* x, char* out, Py_ssize_t t, Py_ssize_t pieces, Py_ssize_t across, char* memory, int parts) noexcept nogil:
        """Order one lane, or neighbouring ones."""
        cdef Py_ssize_t outer, first = 0, count, c
        cdef Room room
        if self.inner == 1:
            outer = t * across
            count = min(across, self.outer - outer)
        else:
            outer, first = t // pieces, t % pieces * across
            count = min(across, self.inner - first)
        x += (outer * self.n * self.inner + first) * self.size
        out += (outer * self.k * self.inner + first) * self.out_size
        memory = <char*>((<Py_ssize_t>memory + 63) & ~63)
        if self.way == NETWORK:
            self.network(x, out, count, memory)
            return
        room.counts = <uint32_t*>memory
        room.keys = memory + (parts << MX_DIGIT + 2)
        room.packed = <uint64_t*>(room.keys + ((self.n * self.key + 63) & ~63))
        room.spare = room.packed + (self.n if self.places >= 0 or self.wide else (self.n + 1) // 2)
        for c in range(count):  # of rows there is one
            if self.way != HEAP or not self.few(x + c * self.size, out + c * self.out_size, <Found*>memory, parts):
                self.lane(x + c * self.size, out + c * self.out_size, &room, parts)

    # ---- lanes that are sorted together
    cdef void network(self, const char* x, char* out, Py_ssize_t count, char* memory) noexcept nogil:
        """Sort short lanes, side by side."""
        cdef const mx_order* order = BULK.order
        cdef Py_ssize_t n = self.n, key = self.key, c
        cdef char* lanes = memory
        cdef char* rows = lanes + n * MX_LANES * key
        cdef uint64_t* packed = <uint64_t*>(rows + n * MX_LANES * key)
        cdef uint64_t low = 0, high = 0
        cdef int shift = 0
        cdef bint sorted_ = self.inner == 1
        if self.inner == 1:
            order.keys(self.dtype, self.flip, self.places >= 0, x, n * self.size, rows, n * key, count, n)
            BULK.move(MX_BLOCKS, <int>key, count, n, rows, n * key, key, lanes, key, MX_LANES * key, 0)
            for c in range(count):
                sorted_ = sorted_ and rises(rows + c * n * key, n, self.wide)
        else:
            order.keys(self.dtype, self.flip, self.places >= 0, x, self.inner * self.size, lanes, MX_LANES * key, n, count)
        if self.places < 0:
            if not sorted_:
                order.words[self.wide].network(lanes, n)
            if self.inner == 1:
                BULK.move(MX_BLOCKS, <int>key, n, count, lanes, MX_LANES * key, key, rows, key, n * key, 0)
                order.unkeys(self.dtype, self.flip, rows, n * key, out, n * self.size, count, n)
            else:
                order.unkeys(self.dtype, self.flip, lanes, MX_LANES * key, out, self.inner * self.size, n, count)
            return
        if self.wide:
            for c in range(n):
                self.widen(<uint64_t*>lanes + c * MX_LANES, count, &low, &high, c == 0)
            shift = max(0, bits_of(high - low) - 32)
        order.words[self.wide].pack(lanes, packed, n, MX_LANES, low, shift, 0)
        if not sorted_:
            order.words[1].network(packed, n)
        if shift and not sorted_:
            for c in range(count):
                runs_between(packed + c, packed + n * MX_LANES, 0, n, MX_LANES, <uint64_t*>lanes + c, MX_LANES, low, shift,
                             <uint32_t*>rows)
        if self.inner == 1:
            rows = <char*>(packed + n * MX_LANES)
            BULK.move(MX_BLOCKS, 8, self.k, count, <char*>packed, MX_LANES * 8, 8, rows, 8, self.k * 8, 0)
            order.places(self.places, rows, self.k * 8, out, self.k * self.out_size, count, self.k)
        else:
            order.places(self.places, <char*>packed, MX_LANES * 8, out, self.inner * self.out_size, self.k, count)

    cdef void widen(self, const uint64_t* words, Py_ssize_t count, uint64_t* low, uint64_t* high, bint first) noexcept nogil:
        """Let a range hold these words."""
        cdef Py_ssize_t c
        if first:
            low[0] = high[0] = words[0]
        for c in range(count):
            low[0], high[0] = min(low[0], words[c]), max(high[0], words[c])

    # ---- one lane
    cdef void read(self, const char* x, char* words, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
        """Make words of a part of a lane."""
        cdef Py_ssize_t step = self.inner * self.size
        if self.inner == 1:
            BULK.order.keys(self.dtype, self.flip, self.places >= 0, x + begin * step, 0, words, 0, 1, end - begin)
        else:
            BULK.order.keys(self.dtype, self.flip, self.places >= 0, x + begin * step, step, words, self.key, end - begin, 1)

    cdef void begin(self, const char* x, Room* room, Py_ssize_t first, Py_ssize_t last) noexcept nogil:
        """Make words of a part of a lane, and of those what is sorted, if that is another."""
        self.read(x, room.keys + first * self.key, first, last)
        if self.places >= 0 and not self.wide:
            BULK.order.words[0].pack(room.keys + first * 4, room.packed + first, 1, last - first, 0, 0, first)

    cdef void write(self, const char* words, char* out, Py_ssize_t first, Py_ssize_t last) noexcept nogil:
        """Write a part of what was sorted."""
        cdef Py_ssize_t step = self.inner * self.out_size, rows = 1, cols = last - first
        cdef Py_ssize_t size = self.key if self.places < 0 else 8
        if self.inner > 1:
            rows, cols = cols, 1
        if self.places < 0:
            BULK.order.unkeys(self.dtype, self.flip, words + first * size, size, out + first * step, step, rows, cols)
        else:
            BULK.order.places(self.places, words + first * size, size, out + first * step, step, rows, cols)

    cdef void lane(self, const char* x, char* out, Room* room, int parts) noexcept nogil:
        cdef const mx_words* way = BULK.order.words[self.wide]
        cdef Py_ssize_t n = self.n, t
        cdef uint64_t low = 0, high = 0
        cdef int shift = 0
        cdef char* found
        cdef bint sorted_
        if parts == 1:
            self.begin(x, room, 0, n)
        else:
            for t in prange(parts, num_threads=parts, schedule="static"):
                self.begin(x, room, cut(n, t, parts), cut(n, t + 1, parts))
        sorted_ = rises(room.keys, n, self.wide)
        if self.places < 0:
            found = room.keys if sorted_ else ordered(room.keys, <char*>room.packed, n, self.wide, 0, room.counts, parts)
        else:
            if self.wide:
                range_of(way, room.keys, n, 8, parts, &low, &high)
                shift = max(0, bits_of(high - low) - 32)
                way.pack(room.keys, room.packed, 1, n, low, shift, 0)
            found = <char*>room.packed
            if not sorted_:
                found = ordered(found, <char*>room.spare, n, True, 32, room.counts, parts)
            if shift and not sorted_:
                sort_runs(<uint64_t*>found, room.packed if found == <char*>room.spare else room.spare, n, <uint64_t*>room.keys,
                          low, shift, room.counts, parts)
        if parts == 1:
            self.write(found, out, 0, self.k)
        else:
            for t in prange(parts, num_threads=parts, schedule="static"):
                self.write(found, out, cut(self.k, t, parts), cut(self.k, t + 1, parts))

    # ---- the first few of one lane
    cdef bint few(self, const char* x, char* out, Found* heap, int parts) noexcept nogil:
        """Write the first places of a lane; tell whether that was not too much work, as of elements that come ever later."""
        cdef Py_ssize_t t, k = self.k
        cdef bint gave_up = False
        if self.falls(x):
            for t in range(k):
                heap[t].place = self.n - 1 - t
                BULK.order.places(self.places, <char*>&heap[t].place, 0, out + t * self.inner * self.out_size, 0, 1, 1)
            return True
        if parts == 1:
            gave_up = not self.gather(x, heap, 0, self.n)
        else:
            for t in prange(parts, num_threads=parts, schedule="static"):
                if not self.gather(x, heap + t * k, cut(self.n, t, parts), cut(self.n, t + 1, parts)):
                    gave_up |= True
        if gave_up:
            return False
        for t in range(k, parts * k):
            if before(heap[t], heap[0]):
                sink(heap, k, 0, heap[t])
        in_order(heap, k)
        for t in range(k):
            BULK.order.places(self.places, <char*>&heap[t].place, 0, out + t * self.inner * self.out_size, 0, 1, 1)
        return True

    cdef bint falls(self, const char* x) noexcept nogil:
        """Tell whether a lane is in the reverse order, without equals."""
        cdef uint64_t words[BLOCK]
        cdef Py_ssize_t i, begin = 0, end = 4
        while begin < self.n - 1:
            end = min(end, self.n)
            self.read(x, <char*>words, begin, end)
            for i in range(1, end - begin):
                if words[i] >= words[i - 1] if self.wide else (<uint32_t*>words)[i] >= (<uint32_t*>words)[i - 1]:
                    return False
            begin, end = end - 1, end - 1 + BLOCK
        return True

    cdef bint gather(self, const char* x, Found* heap, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
        """Keep the first of a part of a lane in a heap, the last of them on top."""
        cdef uint64_t words[BLOCK]
        cdef const mx_words* way = BULK.order.words[self.wide]
        cdef Py_ssize_t n = 0, k = self.k, many, at, i, h, left = (end - begin) // 8 + 16 * k
        cdef Found one
        while begin < end:
            many = min(<Py_ssize_t>BLOCK, end - begin)
            self.read(x, <char*>words, begin, begin + many)
            at = 0
            while at < many:
                if n == k and way.below(<char*>words + at * self.key, min(<Py_ssize_t>STRETCH, many - at), heap[0].key) == 0:
                    at += STRETCH
                    continue
                for i in range(at, min(many, at + STRETCH)):
                    one.key, one.place = (words[i] if self.wide else (<uint32_t*>words)[i]), begin + i
                    if n < k:
                        heap[n] = one
                        n += 1
                        if n == k:
                            for h in range(k // 2, -1, -1):
                                sink(heap, k, h, heap[h])
                    elif one.key < heap[0].key:
                        sink(heap, k, 0, one)
                        left -= 1
                at += STRETCH
            begin += many
            if left < 0:
                return False
        return True
