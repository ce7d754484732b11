"""Direct convolutions, for few filters for each group of channels, such as one for each channel.

What computes is in the instruction modules (``include/mxop_few.h``).  Threads take bands of images, or whole groups where sums go
over all images, so results have the same bits with any number of threads.
"""

from cython.parallel cimport prange
from libc.string cimport memset

from mxop._kernels.instruction_sets cimport gemm_kernels, itemsize_of, load_of, mx_load, mx_store, store_of
from mxop._kernels.machine cimport MX_CACHE_LINE, MX_L2_BYTES, MX_RUN, MX_SPARE_TASKS, MX_THREAD_PRODUCTS
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
        Py_ssize_t weight_group, weight_filter, weight_channel, weight_size, result_size
        mx_load load_weight, load_result
        mx_store store_weight, store_result
        Py_ssize_t band, bands, units, slices
        void* packed
        Py_ssize_t* places
        Py_ssize_t lanes
        bint sums
        Py_ssize_t windows, row
    ctypedef struct mx_few_kernels:
        size_t (*plan)(mx_few* f) noexcept nogil
        void (*prepare)(const mx_few* f) noexcept nogil
        void (*run)(const mx_few* f, Py_ssize_t begin, Py_ssize_t end, char* scratch) noexcept nogil
        void (*join)(const mx_few* f) noexcept nogil

cdef extern from "mxop_gemm.h" nogil:
    ctypedef struct mx_gemm_kernels:
        const mx_few_kernels* few

cdef enum:
    TURNS = 16              # of each thread, at most, if there are as many tasks
    SLICES = 16             # that sums are cut into, at most, for threads to take


cdef void turns_of(const mx_few_kernels* kernels, const mx_few* f, mx_shares* shares, Py_ssize_t turns, Py_ssize_t tasks, int thread,
                   char* scratch, Py_ssize_t room, Finish finish) noexcept nogil:
    """Do the tasks that are a thread's, some in each turn, and compute a formula of the results of each task if there is one."""
    cdef Py_ssize_t turn = mx_next_task(shares, thread), t, n = f.images.found[2], size = f.images.found[1] * n, first, unit, row
    cdef Py_ssize_t bands = f.bands * f.images.found[0], blocks = parts_of(f.groups, f.lanes), block
    if f.lanes == 1:
        memset(scratch, 0, room)
    while turn >= 0:
        if finish is None:
            kernels.run(f, tasks * turn // turns, tasks * (turn + 1) // turns, scratch)
        else:
            for t in range(tasks * turn // turns, tasks * (turn + 1) // turns):
                kernels.run(f, t, t + 1, scratch)
                unit, first, block = t % bands, t % f.bands * f.band, t // bands % blocks * f.lanes
                row = (t // bands // blocks * f.groups + block) * f.filters
                finish.rows(f.results + ((row * f.images.found[0] + unit // f.bands) * size + first * n) * f.result_size,
                            f.filters * min(f.lanes, f.groups - block), f.images.found[0] * size * f.result_size,
                            min(f.band, f.images.found[1] - first) * n, NULL, 0, scratch + room)
        turn = mx_next_task(shares, thread)


cdef class FewFilters(Work):
    """Windows of images times filters: of filters, images and results; or the filters' gradient: of results, images and filters.

    Results lie in C order, and filters that are computed.

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
    cdef bint double_

    def __init__(self, tuple sizes, int images, int weight, int results, tuple windows, tuple strides, bint sums=False):
        cdef mx_few* f = &self.few
        self.batch, f.groups, f.channels, f.filters = sizes
        self.images_type, self.weight_type, self.results_type, f.sums = images, weight, results, sums
        self.double_ = 1 in (images, weight, results)
        f.weight_size, f.result_size = itemsize_of(weight), itemsize_of(results)
        f.weight_group, f.weight_filter, f.weight_channel = [stride * f.weight_size for stride in strides]
        read_images(windows, itemsize_of(images), &f.images)

    cdef bint lanes_are_channels(self) noexcept:
        cdef mx_few f = self.few
        f.band = 1
        (<const mx_gemm_kernels*>gemm_kernels(self.double_)).few.plan(&f)
        return f.lanes > 1

    @property
    def way(self):
        """How vectors are filled, where it is not by results that lie side by side."""
        return "lanes are channels" if self.lanes_are_channels() else None

    cdef bint finishes(self, bint costly) noexcept:
        return not self.few.sums and (self.few.filters > 1 or self.lanes_are_channels())  # else a task's results are too few

    cdef int run_finishing(self, char** data, int threads, Finish finish) except -1:
        return self.compute(data, threads, finish)

    cdef Py_ssize_t run(self, char** data, int threads) except? -2:
        self.compute(data, threads, None)
        return -1

    cdef int compute(self, char** data, int threads, Finish finish) except -1:
        """Run, and compute a formula of the results of each task if there is one."""
        cdef const mx_few_kernels* kernels = (<const mx_gemm_kernels*>gemm_kernels(self.double_)).few
        cdef mx_few f = self.few
        cdef const Py_ssize_t* kernel = f.images.kernel
        cdef mx_shares shares
        cdef Block* block
        cdef Py_ssize_t tasks, turns, room, each, shared, size
        cdef int k
        f.weight, f.images.data, f.results = data[2 if f.sums else 0], data[1], data[0 if f.sums else 2]
        f.images.load = NULL if self.images_type == self.double_ else load_of(self.images_type, self.double_)
        f.load_weight, f.load_result = load_of(self.weight_type, self.double_), load_of(self.results_type, self.double_)
        f.store_weight = store_of(self.weight_type, self.double_)
        f.store_result = NULL if self.results_type == self.double_ else store_of(self.results_type, self.double_)
        if 0 in (f.groups, f.filters) or not (self.batch or f.sums):
            return 0
        tasks = self.cut(kernels, &f, &threads)
        room = each = (<Py_ssize_t>kernels.plan(&f) + MX_CACHE_LINE - 1) & -MX_CACHE_LINE
        if finish is not None:
            each += finish.room
        shared = (f.windows + 2 * (kernel[0] + kernel[1] + kernel[2] + 1 + f.images.stride[2])) * sizeof(Py_ssize_t)
        shared = (shared + MX_CACHE_LINE - 1) & -MX_CACHE_LINE
        size = (f.groups + f.lanes - 1) * f.slices * f.filters * f.windows * (8 if self.double_ else 4)
        block = block_new(threads * each + shared + size)
        f.places, f.packed = <Py_ssize_t*>(block.data + threads * each), block.data + threads * each + shared
        turns = min(tasks, TURNS * threads)
        with nogil:
            kernels.prepare(&f)
            share_out(&shares, turns, threads, 0)
            if threads == 1:
                turns_of(kernels, &f, &shares, turns, tasks, 0, block.data, room, finish)
            else:
                for k in prange(threads, num_threads=threads, schedule="static", chunksize=1):
                    turns_of(kernels, &f, &shares, turns, tasks, k, block.data + k * each, room, finish)
            if f.sums:
                kernels.join(&f)
        block_release(block)
        return 0

    cdef Py_ssize_t cut(self, const mx_few_kernels* kernels, mx_few* f, int* threads) noexcept:
        """Choose bands, and slices of sums; return how many tasks there are, and say for how many threads."""
        cdef Py_ssize_t lines = f.images.found[1], planes = self.batch * f.images.found[0], tasks, least
        f.band = 1
        least = kernels.plan(f)
        threads[0] = threads_of(threads[0], planes * lines * f.row * f.groups * f.filters * f.windows // MX_THREAD_PRODUCTS)
        f.band = lines
        while f.band > 1 and (<Py_ssize_t>kernels.plan(f) - least > MX_L2_BYTES // 4 or (
                not f.sums and threads[0] > 1 and planes * parts_of(f.groups, f.lanes) * parts_of(lines, f.band) < MX_SPARE_TASKS * threads[0])):
            f.band = (f.band + 1) // 2
        f.bands = parts_of(lines, f.band)
        f.units = planes * f.bands
        f.slices = max(1, min(f.units, SLICES // f.groups)) if f.sums else 1
        tasks = f.groups * f.slices if f.sums else parts_of(f.groups, f.lanes) * f.units
        threads[0] = threads_of(threads[0], tasks)
        return tasks


cdef class OfFinite(Work):
    """Work that multiplies padding, on filters, images and results: direct convolution does the same where a filter is not finite.

    Parameters
    ----------
    work : Work
    direct : FewFilters
    count : int
        Elements of all filters, which lie side by side.
    """

    cdef Work work
    cdef FewFilters direct
    cdef Py_ssize_t count

    def __init__(self, Work work, FewFilters direct, Py_ssize_t count):
        self.work, self.direct, self.count = work, direct, count

    cdef Py_ssize_t run(self, char** data, int threads) except? -2:
        cdef mx_load load = load_of(self.direct.weight_type, True)
        cdef Py_ssize_t size = self.direct.few.weight_size, k, i
        cdef double some[MX_RUN]
        cdef double zero = 0
        for k in range(0, self.count, MX_RUN):
            load(min(MX_RUN, self.count - k), data[0] + k * size, size, some)
            for i in range(min(MX_RUN, self.count - k)):
                zero += some[i] * 0
        return (self.work if zero == 0 else <Work>self.direct).run(data, threads)
