"""Convolutions with few filters for each group of channels, such as one for each channel.

What computes is in the instruction modules (``include/mxop_few.h``).  Threads take bands of images, or whole groups where sums go
over all images, so results have the same bits with any number of threads.
"""

from cython.parallel cimport prange

from mxop._kernels.instruction_sets cimport gemm_kernels, itemsize_of, load_of, mx_load, mx_store, store_of
from mxop._kernels.machine cimport MX_CACHE_LINE, MX_L2_BYTES, MX_SPARE_TASKS, MX_THREAD_PRODUCTS
from mxop._kernels.memory cimport Block, block_new, block_release
from mxop._kernels.team cimport mx_next_task, mx_shares, parts_of, share_out, threads_of
from mxop._kernels.windows cimport mx_images, read_images
from mxop._kernels.work cimport Finish, Work

cdef extern from "mxop_few.h" nogil:
    ctypedef struct mx_few:
        mx_images images
        Py_ssize_t groups, channels, filters
        char* weight
        char* results
        Py_ssize_t weight_group, weight_filter, weight_channel
        Py_ssize_t weight_size, result_size
        mx_load load_weight, load_result
        mx_store store_weight, store_result
        Py_ssize_t band
        const void* packed
        const Py_ssize_t* places
    ctypedef struct mx_few_kernels:
        size_t (*room)(const mx_few* f, Py_ssize_t band, int sums) noexcept nogil
        void (*places)(const mx_few* f, int sums, Py_ssize_t* to) noexcept nogil
        void (*pack)(const mx_few* f, void* packed) noexcept nogil
        void (*results)(const mx_few* f, Py_ssize_t begin, Py_ssize_t end, char* scratch) noexcept nogil
        void (*weight)(const mx_few* f, Py_ssize_t group, Py_ssize_t first, Py_ssize_t count, void* totals, char* scratch) noexcept nogil
        void (*join)(const mx_few* f, Py_ssize_t slices, void* totals) noexcept nogil

cdef extern from "mxop_few_finite.h" nogil:
    bint mx_few_finite(const mx_few* f, Py_ssize_t count)
    void mx_few_one_by_one(const mx_few* f, Py_ssize_t batch)

cdef extern from "mxop_gemm.h" nogil:
    ctypedef struct mx_gemm_kernels:
        const mx_few_kernels* few

cdef enum:
    TURNS = 16              # of each thread, at most, if there are as many tasks
    SLICES = 16             # that sums are cut into, at most, for threads to take

# How a convolution is cut, and its memory.
cdef struct Cut:
    Py_ssize_t bands, slices, units         # of an image; of the sums of each group; bands of all images
    Py_ssize_t size                         # bytes of all filters as they are computed
    Py_ssize_t places                       # bytes of a number for each of a window
    Py_ssize_t each                         # bytes of scratch memory for a thread
    char* filters                           # packed; or sums of each group and slice
    char* scratch
    Py_ssize_t room                         # of this, for what comes before a formula of results


cdef void finish_task(Finish finish, const mx_few* f, const Cut* cut, Py_ssize_t t, char* scratch) noexcept nogil:
    """Compute a formula of the results of a task: some lines of each filter of a group."""
    cdef Py_ssize_t first = t % cut.bands * f.band, n = f.images.found[2], found = f.images.found[1] * n
    finish.rows(f.results + (t // cut.bands * f.filters * found + first * n) * f.result_size, f.filters, found * f.result_size,
                min(f.band, f.images.found[1] - first) * n, NULL, 0, scratch)


cdef class FewFilters(Work):
    """Windows of images times filters: of filters, images and results; or the filters' gradient: of results, images and filters.

    Images are of one dimension or two; filters are few for each group.  Results lie in C order, and filters that are computed.

    Parameters
    ----------
    sizes : tuple of int
        Number of images and of groups; channels and filters of each group.
    images, weight, results : int
        Codes of the types.  Computed is in float64 if one is float64, else in float32.
    windows : tuple
        How they lie in the images, as ``windows.pxd`` reads it.
    strides : tuple of int
        Of the filters: from one group, filter and channel to the next.
    sums : bool
        Whether the filters are what is computed.
    """

    cdef mx_few few
    cdef Py_ssize_t batch
    cdef int images_type, weight_type, results_type
    cdef bint double_, sums

    def __init__(self, tuple sizes, int images, int weight, int results, tuple windows, tuple strides, bint sums=False):
        cdef mx_few* f = &self.few
        self.batch, f.groups, f.channels, f.filters = sizes
        self.images_type, self.weight_type, self.results_type, self.sums = images, weight, results, sums
        self.double_ = 1 in (images, weight, results)
        f.weight_size, f.result_size = itemsize_of(weight), itemsize_of(results)
        f.weight_group, f.weight_filter, f.weight_channel = [stride * f.weight_size for stride in strides]
        read_images(windows, itemsize_of(images), &f.images)

    cdef void place(self, mx_few* f, char** data) noexcept:
        """Fill in the memory, and what the instruction set in use has for the types."""
        f.weight, f.images.data, f.results = data[2 if self.sums else 0], data[1], data[0 if self.sums else 2]
        f.images.load = NULL if self.images_type == self.double_ else load_of(self.images_type, self.double_)
        f.load_weight, f.load_result = load_of(self.weight_type, self.double_), load_of(self.results_type, self.double_)
        f.store_weight = store_of(self.weight_type, self.double_)
        f.store_result = NULL if self.results_type == self.double_ else store_of(self.results_type, self.double_)

    cdef bint finishes(self, bint costly) noexcept:
        return not self.sums and self.few.filters > 1  # of one, a task's results are too few

    cdef int run_finishing(self, char** data, int threads, Finish finish) except -1:
        return self.compute(data, threads, finish)

    cdef Py_ssize_t run(self, char** data, int threads) except? -2:
        self.compute(data, threads, None)
        return -1

    cdef int compute(self, char** data, int threads, Finish finish) except -1:
        """Run, and compute a formula of the results of each task if there is one."""
        cdef const mx_few_kernels* kernels = (<const mx_gemm_kernels*>gemm_kernels(self.double_)).few
        cdef mx_few f = self.few
        cdef Cut cut
        cdef Block* block
        cdef Py_ssize_t tasks
        self.place(&f, data)
        if f.images.kernel[0] != 1 or f.images.found[0] != 1 or f.images.size[0] != 1:
            raise ValueError("images of three dimensions")
        if 0 in (f.groups, f.filters) or not (self.batch or self.sums):
            return 0
        tasks = self.cut(kernels, &f, &cut, &threads)
        cut.room = cut.each
        if finish is not None:
            cut.each += finish.room
        block = block_new(threads * cut.each + cut.places + cut.size * cut.slices)
        cut.scratch, cut.filters = block.data, block.data + threads * cut.each + cut.places
        f.packed, f.places = cut.filters, <Py_ssize_t*>(block.data + threads * cut.each)
        with nogil:
            kernels.places(&f, self.sums, <Py_ssize_t*>f.places)
            if not self.sums:
                kernels.pack(&f, cut.filters)
            self.share(kernels, &f, &cut, tasks, threads, finish)
            if self.sums:
                kernels.join(&f, cut.slices, cut.filters)
        block_release(block)
        return 0

    cdef Py_ssize_t cut(self, const mx_few_kernels* kernels, mx_few* f, Cut* cut, int* threads) noexcept:
        """Choose bands, and slices of sums; return how many tasks there are, and say for how many threads."""
        cdef Py_ssize_t numbers = f.groups * f.filters * f.channels * f.images.kernel[1] * f.images.kernel[2]
        cdef Py_ssize_t lines = f.images.found[1], tasks
        threads[0] = threads_of(threads[0], self.batch * numbers * lines * f.images.found[2] // MX_THREAD_PRODUCTS)
        f.band = lines
        while f.band > 1 and (kernels.room(f, f.band, self.sums) - kernels.room(f, 1, self.sums) > MX_L2_BYTES // 4 or (
                not self.sums and threads[0] > 1 and self.batch * f.groups * parts_of(lines, f.band) < MX_SPARE_TASKS * threads[0])):
            f.band = (f.band + 1) // 2
        cut.bands = parts_of(lines, f.band)
        cut.units = self.batch * cut.bands
        cut.slices = max(1, min(cut.units, SLICES // f.groups)) if self.sums else 1
        cut.size = numbers * (8 if self.double_ else 4)
        cut.places = (f.channels * f.images.kernel[1] * f.images.kernel[2] * sizeof(Py_ssize_t) + MX_CACHE_LINE - 1) & -MX_CACHE_LINE
        cut.each = (<Py_ssize_t>kernels.room(f, f.band, self.sums) + MX_CACHE_LINE - 1) & -MX_CACHE_LINE
        tasks = f.groups * (cut.slices if self.sums else cut.units)
        threads[0] = threads_of(threads[0], tasks)
        return tasks

    cdef void share(self, const mx_few_kernels* kernels, const mx_few* f, const Cut* cut, Py_ssize_t tasks, int threads,
                    Finish finish) noexcept nogil:
        """Let threads take tasks."""
        cdef mx_shares shares
        cdef Py_ssize_t turns = min(tasks, TURNS * threads)
        cdef int k
        share_out(&shares, turns, threads, 0)
        if threads == 1:
            self.some_tasks(kernels, f, cut, 0, tasks, cut.scratch, finish)
        else:
            for k in prange(threads, num_threads=threads, schedule="static", chunksize=1):
                self.turns_of(kernels, f, cut, &shares, turns, tasks, k, finish)

    cdef void turns_of(self, const mx_few_kernels* kernels, const mx_few* f, const Cut* cut, mx_shares* shares, Py_ssize_t turns,
                       Py_ssize_t tasks, int thread, Finish finish) noexcept nogil:
        """Do the tasks that are a thread's, some in each turn."""
        cdef Py_ssize_t t = mx_next_task(shares, thread)
        while t >= 0:
            self.some_tasks(kernels, f, cut, tasks * t // turns, tasks * (t + 1) // turns, cut.scratch + thread * cut.each, finish)
            t = mx_next_task(shares, thread)

    cdef void some_tasks(self, const mx_few_kernels* kernels, const mx_few* f, const Cut* cut, Py_ssize_t t, Py_ssize_t end,
                         char* scratch, Finish finish) noexcept nogil:
        """Do tasks `t` to `end`."""
        cdef Py_ssize_t group, slice_, first
        if not self.sums and finish is None:
            kernels.results(f, t, end, scratch)
            return
        if not self.sums:
            for t in range(t, end):
                kernels.results(f, t, t + 1, scratch)
                finish_task(finish, f, cut, t, scratch + cut.room)
            return
        for t in range(t, end):
            group, slice_ = t // cut.slices, t % cut.slices
            first = cut.units * slice_ // cut.slices
            kernels.weight(f, group, first, cut.units * (slice_ + 1) // cut.slices - first,
                           cut.filters + t * (cut.size // f.groups), scratch)


cdef class OfFinite(FewFilters):
    """Other work on filters, images and results where all filters are finite.

    Else what lies beside images is left out: it is 0, and 0 times infinity is NaN.

    Parameters
    ----------
    work : Work
        The other.
    count : int
        Numbers of all filters, which lie side by side.
    sizes, images, weight, results, windows, strides
        As for :class:`FewFilters`; images may have three dimensions.
    """

    cdef Work work
    cdef Py_ssize_t count

    def __init__(self, Work work, Py_ssize_t count, tuple sizes, int images, int weight, int results, tuple windows, tuple strides):
        FewFilters.__init__(self, sizes, images, weight, results, windows, strides)
        self.work, self.count = work, count

    cdef bint finishes(self, bint costly) noexcept:
        return False

    cdef Py_ssize_t run(self, char** data, int threads) except? -2:
        cdef mx_few f = self.few
        cdef bint finite
        f.weight, f.images.data, f.results = data[0], data[1], data[2]
        f.images.load, f.load_weight = load_of(self.images_type, True), load_of(self.weight_type, True)
        f.store_result = store_of(self.results_type, True)
        with nogil:
            finite = mx_few_finite(&f, self.count)
            if not finite:
                mx_few_one_by_one(&f, self.batch)
        return self.work.run(data, threads) if finite else -1
