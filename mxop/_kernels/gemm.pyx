"""Products of matrices of any strides and floating-point types, cut into tiles that threads take.

What multiplies is in the instruction modules (``include/mxop_gemm.h``).  Tiles may be cut by the number of threads, for none
has an influence on another; sums are cut by sizes alone, so results have the same bits with any number of threads.
"""

from cython.parallel cimport prange

from mxop._kernels.instruction_sets cimport gemm_kernels, itemsize_of, load_of, mx_load, mx_store, store_of
from mxop._kernels.machine cimport (
    MX_CACHE_LINE, MX_COLUMNS, MX_GEMM_DEPTH, MX_GEMM_PACKING, MX_SLICE, MX_SLICE_PRODUCTS, MX_SLICED, MX_SLICES, MX_SPARE_TASKS,
    MX_STACK_BYTES, MX_TASKS_A_THREAD, MX_THREAD_BYTES, MX_THREAD_PRODUCTS,
)
from mxop._kernels.memory cimport Block, block_new, block_release, fill_scratch
from mxop._kernels.team cimport mx_next_task, mx_shares, parts_of, share_out, threads_of
from mxop._kernels.windows cimport mx_images, read_images
from mxop._kernels.work cimport Finish, Work

cdef extern from "mxop_gemm.h" nogil:
    ctypedef struct mx_matrix:
        const char* data
        Py_ssize_t across, along, split, next
        mx_load load
    ctypedef void (*mx_gemm_pack)(const void* operand, Py_ssize_t first, Py_ssize_t count, Py_ssize_t width, Py_ssize_t k,
                                  Py_ssize_t depth, void* panel) noexcept nogil
    struct mx_gemm
    ctypedef int (*mx_gemm_finish)(void* with_, char* room, const mx_gemm* g, Py_ssize_t row, Py_ssize_t rows, Py_ssize_t column,
                                   Py_ssize_t columns, const char* block, Py_ssize_t stride) noexcept nogil
    struct mx_gemm:
        Py_ssize_t m, n, k, k_first
        const void* a
        const void* b
        mx_gemm_pack pack_a, pack_b
        const void* packed
        double alpha
        char* c
        Py_ssize_t c_row, c_column, c_split, c_next
        mx_store store
        int add
        mx_gemm_finish finish
        void* with_ "with"
        char* room
        const char* bias
        Py_ssize_t bias_row, bias_column
        mx_load load_bias
    ctypedef struct mx_gemm_kernels:
        Py_ssize_t width, height
        mx_gemm_pack pack, windows, places
        size_t (*room)(const mx_gemm* g, Py_ssize_t rows, Py_ssize_t columns) noexcept nogil
        void (*tile)(const mx_gemm* g, Py_ssize_t row, Py_ssize_t rows, Py_ssize_t column, Py_ssize_t columns,
                     char* scratch) noexcept nogil
        void (*join)(const mx_gemm* g, Py_ssize_t count, void* parts) noexcept nogil
        size_t (*kept)(const mx_gemm* g) noexcept nogil
        void (*keep)(const mx_gemm* g, void* packed) noexcept nogil

# How far it is from one product of a batch to the next, and from one group of them to the next, in bytes.
cdef struct Next:
    Py_ssize_t outer, inner

# A batch of equal products, and how it is cut.
cdef struct Batch:
    mx_gemm gemm                    # of the first
    mx_matrix a, b
    mx_images images                # B, where it has windows
    bint windows, places            # whether it has: as columns, or as what is added up
    Py_ssize_t outer, inner, count  # groups of products, how many each has, and all
    Next a_next, b_next, c_next, bias_next
    Py_ssize_t down, across         # tiles of each product
    Py_ssize_t slices               # of the sums: each makes a matrix of its own
    Py_ssize_t itemsize             # of the type that is computed in
    char* partial                   # these matrices


cdef inline Py_ssize_t bound(Py_ssize_t length, Py_ssize_t unit, Py_ssize_t parts, Py_ssize_t part) noexcept nogil:
    """Return where a part begins: whole units, as even as can be."""
    return min((length + unit - 1) // unit * part // parts * unit, length)


cdef inline Py_ssize_t at(const Next* next, Py_ssize_t inner, Py_ssize_t item) noexcept nogil:
    """Return where the operand of a product of a batch begins, from that of the first."""
    return item // inner * next.outer + item % inner * next.inner


cdef int finish_block(Finish finish, char* room, const mx_gemm* g, Py_ssize_t row, Py_ssize_t rows, Py_ssize_t column,
                      Py_ssize_t columns, const char* block, Py_ssize_t stride) noexcept nogil:
    """Compute a formula of a block of results; return whether these are not needed any more."""
    cdef Py_ssize_t parted = g.c_split if g.c_split > 0 else column + columns, j = 0, part, within, some
    while j < columns:
        part, within = (column + j) // parted, (column + j) % parted
        some = min(parted - within, columns - j)
        finish.rows(g.c + row * g.c_row + part * g.c_next + within * g.c_column, rows, g.c_row, some, block + j * g.c_column, stride, room)
        j += some
    return finish.replaces


cdef void tile(const mx_gemm_kernels* kernels, const Batch* batch, Py_ssize_t index, char* scratch, Py_ssize_t room) noexcept nogil:
    """Compute one tile of one slice of one product; what finishes it has scratch memory behind so much."""
    cdef mx_gemm g = batch.gemm
    cdef mx_matrix a = batch.a, b = batch.b
    cdef mx_images images
    cdef Py_ssize_t i = index % batch.across, j = index // batch.across % batch.down
    cdef Py_ssize_t slice_ = index // (batch.across * batch.down) % batch.slices
    cdef Py_ssize_t item = index // (batch.across * batch.down * batch.slices)
    cdef Py_ssize_t column = bound(g.n, kernels.width, batch.across, i), row = bound(g.m, kernels.height, batch.down, j)
    cdef Py_ssize_t columns = bound(g.n, kernels.width, batch.across, i + 1) - column
    cdef Py_ssize_t rows = bound(g.m, kernels.height, batch.down, j + 1) - row
    a.data += at(&batch.a_next, batch.inner, item)
    b.data += at(&batch.b_next, batch.inner, item)
    g.a, g.b = &a, &b
    if batch.windows or batch.places:
        images = batch.images
        images.data += at(&batch.b_next, batch.inner, item)
        g.b = &images
    if batch.slices > 1:
        g.k_first = bound(batch.gemm.k, 1, batch.slices, slice_)
        g.k = bound(batch.gemm.k, 1, batch.slices, slice_ + 1) - g.k_first
        g.c, g.c_row, g.c_column = batch.partial + slice_ * g.m * g.n * batch.itemsize, g.n * batch.itemsize, batch.itemsize
        g.store, g.add, g.bias, g.c_split = NULL, False, NULL, 0
    else:
        g.c += at(&batch.c_next, batch.inner, item)
        if g.bias != NULL:
            g.bias += at(&batch.bias_next, batch.inner, item)
    g.room = scratch + room
    kernels.tile(&g, row, rows, column, columns, scratch)


cdef void tiles(const mx_gemm_kernels* kernels, const Batch* batch, char* scratch, Py_ssize_t room, Py_ssize_t each,
                int threads) noexcept nogil:
    """Compute all; every thread has `each` bytes of scratch memory, `room` of which are for its tile."""
    cdef Py_ssize_t index, n = batch.count * batch.slices * batch.down * batch.across
    cdef mx_shares shares
    cdef int k
    if threads == 1:
        for index in range(n):
            tile(kernels, batch, index, scratch, room)
    else:
        share_out(&shares, n, threads, 0)
        for k in prange(threads, num_threads=threads, schedule="static", chunksize=1):
            index = mx_next_task(&shares, k)
            while index >= 0:
                tile(kernels, batch, index, scratch + k * each, room)
                index = mx_next_task(&shares, k)


cdef void cut_sums(Batch* batch) noexcept:
    """Cut long sums of few results into slices, by sizes alone."""
    cdef double work = <double>batch.gemm.m * batch.gemm.n * batch.gemm.k
    if batch.count == 1 and batch.gemm.m * batch.gemm.n <= MX_SLICED and batch.gemm.k >= 2 * MX_SLICE:
        batch.slices = max(<Py_ssize_t>min(MX_SLICES, batch.gemm.k // MX_SLICE, work / MX_SLICE_PRODUCTS), 1)


cdef int cut(Batch* batch, Py_ssize_t width, int threads) noexcept:
    """Choose the tiles: some for each thread, as many for one as for another; return how many threads they are worth."""
    cdef Py_ssize_t m = batch.gemm.m, n = batch.gemm.n, many = batch.count * batch.slices, wanted, down, across, found
    cdef Py_ssize_t least_down = 1, least_across = 1, most = 0
    cdef double work = <double>batch.count * m * n * batch.gemm.k, time, least = 0
    cdef Py_ssize_t worth = MX_THREAD_BYTES // 4 if m == 1 or n == 1 else MX_THREAD_PRODUCTS
    if m > MX_COLUMNS or n > MX_COLUMNS:
        least_down, least_across = parts_of(m, MX_COLUMNS), parts_of(n, MX_COLUMNS)
    batch.down, batch.across = least_down, least_across
    if threads == 1 or work < 2 * worth:
        return 1
    threads = threads_of(threads, <Py_ssize_t>(work / worth))
    wanted = max(threads, <Py_ssize_t>min(MX_SPARE_TASKS * threads, work / (MX_TASKS_A_THREAD * MX_THREAD_PRODUCTS)))
    down = least_down
    while down == least_down or (m // down >= 2 * MX_GEMM_PACKING and many * (down - 1) * least_across < wanted):
        across = least_across
        while across == least_across or (n // across >= 2 * width and many * down * (across - 1) < wanted):
            found = many * down * across
            time = <double>parts_of(found, threads) * (parts_of(m, down) + MX_GEMM_PACKING)
            time *= parts_of(parts_of(n, width), across) * width + MX_GEMM_PACKING
            if min(found, wanted) > most or (min(found, wanted) == most and time < least):
                batch.down, batch.across, most, least = down, across, min(found, wanted), time
            across += 1
        down += 1
    return <int>min(threads, many * batch.down * batch.across)


cdef Py_ssize_t room_of(const mx_gemm_kernels* kernels, const Batch* batch) noexcept:
    """Return the bytes of scratch memory for the largest tile."""
    cdef Py_ssize_t rows = batch.gemm.m, columns = batch.gemm.n
    if batch.down > 1:
        rows = (parts_of(rows, kernels.height) + batch.down - 1) // batch.down * kernels.height
    if batch.across > 1:
        columns = ((columns + kernels.width - 1) // kernels.width + batch.across - 1) // batch.across * kernels.width
    return (<Py_ssize_t>kernels.room(&batch.gemm, rows, columns) + MX_CACHE_LINE - 1) & -MX_CACHE_LINE


cdef class Product(Work):
    """Products of matrices, ``C = alpha * A @ B + bias``, or ``C +=`` that: of A, B, the bias if there is one, and C.

    Floating-point types are computed in float64 if one is float64, else in float32.  Arrays are given by a code of their type
    and strides in elements: over groups of the batch, within a group, down the rows and along the columns.

    Parameters
    ----------
    sizes : tuple of int
        Number of groups of products, and of products in each; rows and columns of each result; and what is contracted.
    a, b, c : tuple
        ``(type, (stride, stride, stride, stride))``, and where summands or the columns of C are in several parts, ``(length,
        stride)`` of these.  Of windows, strides of the batch are all that counts.
    bias : tuple, optional
    alpha : float
    add : bool
    windows : tuple, optional
        What B is made of, as ``windows.pxd`` reads it.
    places : bool
        Whether windows are added up, and elements of windows are the columns.
    """

    cdef Batch batch
    cdef int a_type, b_type, c_type, bias_type
    cdef bint has_bias, double_
    cdef Block* kept                # B, packed by these
    cdef const mx_gemm_kernels* kernels

    def __dealloc__(self):
        if self.kept != NULL:
            block_release(self.kept)

    def __init__(self, tuple sizes, tuple a, tuple b, tuple c, tuple bias=None, double alpha=1.0, bint add=False, tuple windows=None,
                 bint places=False):
        cdef Batch* batch = &self.batch
        cdef mx_gemm* g = &batch.gemm
        self.a_type, self.b_type, self.c_type = a[0], b[0], c[0]
        self.has_bias = bias is not None
        self.bias_type = bias[0] if self.has_bias else self.c_type
        self.double_ = any([t[0] == 1 for t in (a, b, c, bias) if t is not None])
        batch.itemsize = 8 if self.double_ else 4
        batch.outer, batch.inner, g.m, g.n, g.k = sizes
        batch.count = batch.outer * batch.inner
        g.alpha, g.add, batch.slices = alpha, add, 1
        read_strides(a, &batch.a_next, &batch.a.across, &batch.a.along, &batch.a.split, &batch.a.next)
        read_strides(b, &batch.b_next, &batch.b.along, &batch.b.across, &batch.b.split, &batch.b.next)
        read_strides(c, &batch.c_next, &g.c_row, &g.c_column, &g.c_split, &g.c_next)
        if self.has_bias:
            read_strides(bias, &batch.bias_next, &g.bias_row, &g.bias_column, NULL, NULL)
        if windows is not None:
            batch.windows, batch.places = not places, places
            read_images(windows, itemsize_of(self.b_type), &batch.images)
        cut_sums(batch)

    cdef void place(self, Batch* batch, char** data, const mx_gemm_kernels* kernels) noexcept:
        """Fill in the memory, and what the instruction set in use has for the types."""
        cdef int computed = 1 if self.double_ else 0
        cdef mx_gemm* g = &batch.gemm
        batch.a.data, batch.b.data = data[0], data[1]
        batch.a.load = NULL if self.a_type == computed else load_of(self.a_type, self.double_)
        batch.b.load = NULL if self.b_type == computed else load_of(self.b_type, self.double_)
        batch.images.data, batch.images.load = batch.b.data, batch.b.load
        g.store = NULL if self.c_type == computed else store_of(self.c_type, self.double_)
        g.load_bias = load_of(self.bias_type, self.double_)
        g.bias, g.c = data[2] if self.has_bias else NULL, data[3 if self.has_bias else 2]
        g.a, g.b, g.pack_a, g.pack_b = &batch.a, &batch.b, kernels.pack, kernels.pack
        g.packed = NULL if self.kept == NULL else self.kept.data
        if batch.windows or batch.places:
            g.b, g.pack_b = &batch.images, kernels.windows if batch.windows else kernels.places
        elif g.n == 1 and g.m != 1 and g.c_split == 0:  # C^T = B^T A^T: a row
            batch.a, batch.b = batch.b, batch.a
            batch.a_next, batch.b_next = batch.b_next, batch.a_next
            g.m, g.n = g.n, g.m
            g.c_row, g.c_column = g.c_column, g.c_row
            g.bias_row, g.bias_column = g.bias_column, g.bias_row

    cdef int kept_operand(self) noexcept:
        cdef Batch* batch = &self.batch  # a row, a column, windows and long sums go other ways
        if batch.windows or batch.places:
            return -1
        return 1 if batch.count == 1 and batch.slices == 1 and batch.gemm.m > 1 and batch.gemm.n > 1 else -1

    cdef Work keeping(self, char** data):
        cdef const mx_gemm_kernels* kernels = <const mx_gemm_kernels*>gemm_kernels(self.double_)
        cdef Product found = Product.__new__(Product)
        cdef Batch batch = self.batch
        self.place(&batch, data, kernels)
        found.batch, found.has_bias, found.double_ = self.batch, self.has_bias, self.double_
        found.a_type, found.b_type, found.c_type, found.bias_type = self.a_type, self.b_type, self.c_type, self.bias_type
        found.kernels = kernels
        found.kept = block_new(kernels.kept(&batch.gemm))
        with nogil:
            kernels.keep(&batch.gemm, found.kept.data)
        return found

    cdef bint finishes(self, bint costly) noexcept:
        cdef const mx_gemm* g = &self.batch.gemm
        cdef bint little = g.k <= (MX_GEMM_DEPTH // 4 if costly else MX_GEMM_DEPTH) and self.batch.slices == 1 and g.m > 1 and g.n > 1
        return little and not g.add and self.c_type == self.double_ and g.c_column == itemsize_of(self.c_type)

    cdef int run_finishing(self, char** data, int threads, Finish finish) except -1:
        return self.multiply(data, threads, finish)

    cdef Py_ssize_t run(self, char** data, int threads) except? -2:
        self.multiply(data, threads, None)
        return -1

    cdef int multiply(self, char** data, int threads, Finish finish) except -1:
        """Run, and compute a formula of each tile if there is one."""
        cdef const mx_gemm_kernels* kernels = self.kernels
        cdef Batch batch = self.batch
        cdef char small[MX_STACK_BYTES + MX_CACHE_LINE]
        cdef char* scratch = small
        cdef Block* block = NULL
        cdef Py_ssize_t room, each, partial
        if kernels == NULL:
            kernels = <const mx_gemm_kernels*>gemm_kernels(self.double_)
        self.place(&batch, data, kernels)
        if batch.count == 0 or batch.gemm.m == 0 or batch.gemm.n == 0:
            return 0
        threads = cut(&batch, kernels.width, threads)
        if finish is not None:
            batch.gemm.finish, batch.gemm.with_ = <mx_gemm_finish><void*>finish_block, <void*>finish
        room = each = room_of(kernels, &batch)
        if finish is not None:
            each += finish.room
        partial = batch.slices * batch.gemm.m * batch.gemm.n * batch.itemsize if batch.slices > 1 else 0
        if threads * each + partial > MX_STACK_BYTES:
            block = block_new(threads * each + partial)
            scratch = block.data
        else:
            scratch += -<Py_ssize_t>scratch & (MX_CACHE_LINE - 1)
            fill_scratch(small, sizeof(small))
        batch.partial = scratch + threads * each
        if batch.count * batch.slices * batch.down * batch.across > 1 or finish is not None:
            with nogil:
                tiles(kernels, &batch, scratch, room, each, threads)
                if batch.slices > 1:
                    kernels.join(&batch.gemm, batch.slices, batch.partial)
        elif batch.gemm.m * batch.gemm.n * batch.gemm.k < MX_THREAD_PRODUCTS // MX_TASKS_A_THREAD:  # others wait no longer than letting them in takes
            kernels.tile(&batch.gemm, 0, batch.gemm.m, 0, batch.gemm.n, scratch)
        else:
            with nogil:
                kernels.tile(&batch.gemm, 0, batch.gemm.m, 0, batch.gemm.n, scratch)
        if block != NULL:
            block_release(block)
        return 0


cdef int read_strides(tuple array, Next* next, Py_ssize_t* row, Py_ssize_t* column, Py_ssize_t* split, Py_ssize_t* split_next) except -1:
    """Read the strides of an array, which become bytes."""
    cdef Py_ssize_t size = itemsize_of(array[0])
    next.outer, next.inner, row[0], column[0] = [stride * size for stride in array[1]]
    if split != NULL and len(array) > 2:
        split[0], split_next[0] = array[2][0], array[2][1] * size
    return 0
