"""Convolutions with few filters for each group of channels, such as one for each channel.

What computes is in the instruction modules (``include/mxop_few.h``).  Threads take bands of images, or whole groups where sums go
over all images, so results have the same bits with any number of threads.
May import its neighbours.
"""

from cython.parallel cimport prange

from mxop._kernels.interp cimport gemm_kernels, itemsize_of, load_of, mx_load, mx_store, store_of
from mxop._kernels.memory cimport Block, block_new, block_release
from mxop._kernels.team cimport mx_next_task, mx_shares, share_out, threads_of
from mxop._kernels.windows cimport mx_images, read_images
from mxop._kernels.work cimport Work

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
    ctypedef struct mx_few_kernels:
        size_t (*room)(const mx_few* f, Py_ssize_t band, int sums) noexcept nogil
        void (*pack)(const mx_few* f, void* packed) noexcept nogil
        void (*results)(const mx_few* f, Py_ssize_t image, Py_ssize_t group, Py_ssize_t band, char* scratch) noexcept nogil
        void (*weight)(const mx_few* f, Py_ssize_t batch, Py_ssize_t group, char* scratch) noexcept nogil

cdef extern from "mxop_gemm.h" nogil:
    ctypedef struct mx_gemm_kernels:
        const mx_few_kernels* few

cdef enum:
    NEAR = 131072           # bytes of scratch memory that stay in the second cache
    WORTH = 250000          # multiplications that are worth a thread
    SPARE = 2               # tasks for each thread
    ALIGNED = 64


cdef class FewFilters(Work):
    """Windows of images times filters: of images, filters and results; or the filters' gradient: of images, results and filters.

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
        if f.images.kernel[0] != 1 or f.images.found[0] != 1 or f.images.size[0] != 1:
            raise ValueError(f"{windows}: images of three dimensions")

    cdef void place(self, mx_few* f, char** data) noexcept:
        """Fill in the memory, and what the instruction set in use has for the types."""
        f.images.data, f.weight, f.results = data[0], data[2 if self.sums else 1], data[1 if self.sums else 2]
        f.images.load = load_of(self.images_type, self.double_)
        f.load_weight, f.load_result = load_of(self.weight_type, self.double_), load_of(self.results_type, self.double_)
        f.store_weight = NULL if self.weight_type == self.double_ else store_of(self.weight_type, self.double_)
        f.store_result = NULL if self.results_type == self.double_ else store_of(self.results_type, self.double_)

    cdef Py_ssize_t run(self, char** data, int threads) except? -2:
        cdef const mx_few_kernels* kernels = (<const mx_gemm_kernels*>gemm_kernels(self.double_)).few
        cdef mx_few f = self.few
        cdef Py_ssize_t tasks, bands, each, packed, lines = f.images.found[1]
        cdef Py_ssize_t numbers = f.groups * f.filters * f.channels * f.images.kernel[1] * f.images.kernel[2]
        cdef bint cut = threads > 1 and not self.sums
        cdef Block* block
        self.place(&f, data)
        threads = threads_of(threads, self.batch * numbers * lines * f.images.found[2] // WORTH)
        f.band = max(lines, 1)
        while f.band > 1 and (kernels.room(&f, f.band, self.sums) > NEAR or (cut and self.tasks_in(f.band) < SPARE * threads)):
            f.band = (f.band + 1) // 2
        bands, tasks = (lines + f.band - 1) // f.band, self.tasks_in(f.band)
        threads = threads_of(threads, tasks)
        if tasks == 0:
            return -1
        each = (<Py_ssize_t>kernels.room(&f, f.band, self.sums) + ALIGNED - 1) & -ALIGNED
        packed = 0 if self.sums else numbers * (8 if self.double_ else 4)
        block = block_new(threads * each + packed)
        f.packed = block.data + threads * each
        with nogil:
            if not self.sums:
                kernels.pack(&f, block.data + threads * each)
            self.share(kernels, &f, tasks, bands, block.data, each, threads)
        block_release(block)
        return -1

    cdef Py_ssize_t tasks_in(self, Py_ssize_t band) noexcept:
        """Return how many tasks there are: bands of results, or groups of filters."""
        return self.few.groups if self.sums else self.batch * self.few.groups * ((self.few.images.found[1] + band - 1) // band)

    cdef void share(self, const mx_few_kernels* kernels, const mx_few* f, Py_ssize_t tasks, Py_ssize_t bands, char* scratch,
                    Py_ssize_t each, int threads) noexcept nogil:
        """Let threads take tasks."""
        cdef mx_shares shares
        cdef int k
        share_out(&shares, tasks, threads, 0)
        if threads == 1:
            self.tasks_of(kernels, f, &shares, 0, bands, scratch)
        else:
            for k in prange(threads, num_threads=threads, schedule="static", chunksize=1):
                self.tasks_of(kernels, f, &shares, k, bands, scratch + k * each)

    cdef void tasks_of(self, const mx_few_kernels* kernels, const mx_few* f, mx_shares* shares, int thread, Py_ssize_t bands,
                       char* scratch) noexcept nogil:
        """Do the tasks that are a thread's."""
        cdef Py_ssize_t t = mx_next_task(shares, thread)
        while t >= 0:
            if self.sums:
                kernels.weight(f, self.batch, t, scratch)
            else:
                kernels.results(f, t // bands // f.groups, t // bands % f.groups, t % bands, scratch)
            t = mx_next_task(shares, thread)
