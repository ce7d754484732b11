"""Products of matrices of eight bits, with sign or without, which are added up in 32 bits; what does not fit these wraps around.

What multiplies is in the instruction modules (``include/mxop_gemm_int8.h``).  B is packed first, and A widened; then threads take
tiles of C.  A few rows are multiplied by columns where these lie.
"""

from cython.parallel cimport prange
from libc.stdint cimport int32_t, uint32_t

from mxop._kernels.instruction_sets cimport ISA
from mxop._kernels.memory cimport Block, block_new, block_release
from mxop._kernels.team cimport mx_next_task, mx_shares, parts_of, share_out, threads_of
from mxop._kernels.work cimport Work

cdef extern from "mxop_gemm_int8.h" nogil:
    ctypedef struct mx_bytes:
        const char* data
        Py_ssize_t across, along
        int has_sign
    ctypedef struct mx_int8_kernels:
        Py_ssize_t width, rows, group
        int shifts
        void (*pack_rows)(const mx_bytes* x, Py_ssize_t first, Py_ssize_t count, Py_ssize_t depth, void* to,
                          int32_t* totals) noexcept nogil
        void (*pack_columns)(const mx_bytes* x, Py_ssize_t first, Py_ssize_t count, Py_ssize_t depth, void* panel,
                             int32_t* totals) noexcept nogil
        void (*multiply)(Py_ssize_t rows, Py_ssize_t columns, Py_ssize_t groups, const void* a, const void* panel, const int32_t* of_rows,
                         const int32_t* of_columns, int32_t* c, Py_ssize_t c_row) noexcept nogil
        int32_t (*dot)(const void* a, const mx_bytes* b, Py_ssize_t column, Py_ssize_t depth) noexcept nogil
        const mx_int8_kernels* quicker

cdef enum:
    INT8 = 5                # a type code
    FEW = 4                 # rows, fewer than which do not pay for packing B
    COLUMNS = 64            # of these rows, that a thread takes at a time
    ROWS = 192              # of a tile, and
    PANELS = 16             # panels
    GROUPS = 192            # of summands: a panel, and the rows that meet it, stay in the first cache
    WORTH = 500000          # multiplications that are worth a thread
    SPARE = 4               # tiles for each thread
    SHIFT = 128             # what was added to numbers of A to have no sign, or taken from those of B to have one

# A product, and how it is cut.
cdef struct Cut:
    const mx_int8_kernels* kernels
    mx_bytes a, b
    uint32_t shift_a, shift_b
    Py_ssize_t m, n, k, groups
    Py_ssize_t panels                       # of B, and
    Py_ssize_t unit, units                  # rows of A that are packed together, and how many such there are
    Py_ssize_t down, across                 # tiles
    char* rows                              # A, packed
    char* packed                            # B
    int32_t* of_rows                        # what is added to the sums of each row, and column
    int32_t* of_columns
    int32_t* c


cdef void prepare_part(const Cut* cut, Py_ssize_t part) noexcept nogil:
    """Pack a panel of B, or some rows of A, and find what sums of these have too little: (a + s)(b - t) is ab + sb - ta - st."""
    cdef Py_ssize_t width = cut.kernels.width, first = part * width, count = min(width, cut.n - first), i
    cdef uint32_t both = <uint32_t>cut.k * cut.shift_a * cut.shift_b
    cdef int32_t* totals = cut.of_columns + first
    if part < cut.panels:
        cut.kernels.pack_columns(&cut.b, first, count, cut.k, cut.packed + first * cut.groups * 4, totals)
        for i in range(count):
            totals[i] = <int32_t>(-cut.shift_a * <uint32_t>totals[i])
        return
    first = (part - cut.panels) * cut.unit
    count, totals = min(cut.unit, cut.m - first), cut.of_rows + first
    cut.kernels.pack_rows(&cut.a, first, count, cut.k, cut.rows + first * cut.groups * 4, totals)
    for i in range(count):
        totals[i] = <int32_t>(cut.shift_b * <uint32_t>totals[i] - both)


cdef void unit_by_panel(const Cut* cut, Py_ssize_t unit, Py_ssize_t panel, Py_ssize_t p) noexcept nogil:
    """Multiply rows that are packed together by a panel: some groups of summands, from number `p` on."""
    cdef Py_ssize_t width = cut.kernels.width, column = panel * width, row = unit * cut.unit, rows = min(cut.unit, cut.m - row)
    cut.kernels.multiply(rows, min(width, cut.n - column), min(<Py_ssize_t>GROUPS, cut.groups - p),
                         cut.rows + (row * cut.groups + p * rows) * 4, cut.packed + (panel * cut.groups + p) * width * 4,
                         cut.of_rows + row if p == 0 else NULL, cut.of_columns + column, cut.c + row * cut.n + column, cut.n)


cdef void tile(const Cut* cut, Py_ssize_t index) noexcept nogil:
    """Compute one tile of C, some groups of summands after the other."""
    cdef Py_ssize_t row = index // cut.across, column = index % cut.across, p = 0, i, j
    while p == 0 or p < cut.groups:  # sums of nothing are written, too
        for j in range(cut.panels * column // cut.across, cut.panels * (column + 1) // cut.across):
            for i in range(cut.units * row // cut.down, cut.units * (row + 1) // cut.down):
                unit_by_panel(cut, i, j, p)
        p += GROUPS


cdef void columns(const Cut* cut, Py_ssize_t index) noexcept nogil:
    """Multiply few rows by some columns."""
    cdef Py_ssize_t i, j
    for j in range(index * COLUMNS, min(cut.n, (index + 1) * COLUMNS)):
        for i in range(cut.m):
            cut.c[i * cut.n + j] = cut.kernels.dot(cut.rows + i * cut.groups * 4, &cut.b, j, cut.k)


cdef void run_tasks(void (*task)(const Cut* cut, Py_ssize_t index) noexcept nogil, const Cut* cut, Py_ssize_t n, int threads) noexcept nogil:
    """Let threads take tasks."""
    cdef Py_ssize_t index
    cdef mx_shares shares
    cdef int k
    if threads == 1 or n < 2:
        for index in range(n):
            task(cut, index)
    else:
        share_out(&shares, n, threads, 0)
        for k in prange(threads, num_threads=threads, schedule="static", chunksize=1):
            index = mx_next_task(&shares, k)
            while index >= 0:
                task(cut, index)
                index = mx_next_task(&shares, k)


cdef class IntegerProduct(Work):
    """A product of matrices of int8 or uint8: of A and B, and C, which is of int32 in C order.

    Parameters
    ----------
    sizes : tuple of int
        Rows and columns of C, and what is contracted.
    a, b : tuple
        ``(type, (stride, stride))``: down the rows and along the columns of each.
    """

    cdef Cut cut

    def __init__(self, tuple sizes, tuple a, tuple b):
        cdef Cut* cut = &self.cut
        cut.m, cut.n, cut.k = sizes
        cut.a.has_sign, cut.b.has_sign = a[0] == INT8, b[0] == INT8
        cut.a.across, cut.a.along = a[1]
        cut.b.along, cut.b.across = b[1]

    cdef Py_ssize_t run(self, char** data, int threads) except? -2:
        cdef Cut cut = self.cut
        cdef Block* block
        cdef bint few = cut.m < FEW
        cdef Py_ssize_t width, size_a, size_b
        cut.kernels = <const mx_int8_kernels*>ISA.int8()
        if not few and cut.kernels.quicker != NULL:
            cut.kernels = cut.kernels.quicker
        width = cut.kernels.width
        cut.shift_a = SHIFT if cut.kernels.shifts and cut.a.has_sign else 0
        cut.shift_b = SHIFT if cut.kernels.shifts and not cut.b.has_sign else 0
        cut.groups = parts_of(cut.k, cut.kernels.group)
        cut.panels = 0 if few else parts_of(cut.n, width)
        cut.unit = 1 if few else cut.kernels.rows
        cut.units = parts_of(cut.m, cut.unit)
        threads = threads_of(threads, <Py_ssize_t>(<double>cut.m * cut.n * cut.k / WORTH))
        cut.a.data, cut.b.data, cut.c = data[0], data[1], <int32_t*>data[2]
        size_a, size_b = cut.m * cut.groups * 4, cut.panels * width * cut.groups * 4
        block = block_new(size_a + size_b + (cut.m + cut.panels * width) * 4)
        cut.rows, cut.packed = block.data, block.data + size_a
        cut.of_rows = <int32_t*>(cut.packed + size_b)
        cut.of_columns = cut.of_rows + cut.m
        cut.down, cut.across = parts_of(cut.m, ROWS), parts_of(cut.panels, PANELS)
        if threads > 1 and cut.down * cut.across < SPARE * threads:
            cut.across = max(cut.across, min(cut.panels, SPARE * threads // cut.down))
        with nogil:
            run_tasks(prepare_part, &cut, cut.panels + cut.units, threads)
            if few:
                run_tasks(columns, &cut, parts_of(cut.n, COLUMNS), threads)
            else:
                run_tasks(tile, &cut, cut.down * cut.across, threads)
        block_release(block)
        return -1
