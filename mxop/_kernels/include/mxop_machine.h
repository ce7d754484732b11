/* mxop_machine.h - what is known of machines, and the thresholds that follow: every number that decides how work is cut, blocked
   or shared out, for the kernels (machine.pxd) and for Python (machine.pyx).

   Where a time stands, it was measured on one Xeon (Ice Lake, 2.8 GHz, two cores, 48 KiB of L1, 1.25 MiB of L2).  The numbers under
   "sums", and those of convolutions, decide in which order elements are added: other values give other last bits. */
#ifndef MXOP_MACHINE_H
#define MXOP_MACHINE_H

enum {
    /* ---- memory: of every processor for which a set of instructions is built, a core ---- */
    MX_CACHE_LINE = 64,                     /* bytes */
    MX_PAGE = 4096,                         /* bytes; addresses that are as far apart share a set of the L1 cache */
    MX_HUGE_PAGE = 1 << 21,                 /* bytes */
    MX_L1_BYTES = 1 << 15,
    MX_L1_WAYS = 8,                         /* lines that a set holds at least */
    MX_L2_BYTES = 1 << 19,                  /* of those with more than 256 KiB; less data than this is not prefetched */
    MX_STREAM_BYTES = 1 << 24,              /* half of those read and written: relu takes 2.0 ms with non-temporal stores, else 2.8 */
    MX_PREFETCH_BYTES = MX_PAGE,            /* ahead of what is read: hardware that prefetches stops at the end of a page */

    /* ---- threads: to wake one and to wait for it takes 3.5 us ---- */
    MX_PARALLEL_BYTES = 9 << 14,            /* one thread adds 144 KiB in 5.9 us, two in 6.4; 192 KiB in 8.9 and 8.1 */
    MX_SMALL_TIMES = 7,                     /* times that, from which on a thread has several tasks: less stays in each core's L2 */
    MX_THREAD_BYTES = 1 << 18,              /* that a thread should move from random places, which takes 0.1 ms */
    MX_THREAD_PRODUCTS = 250000,            /* multiplications that a thread should do: those of 64x64 matrices take 4.6 us */
    MX_TASKS_A_THREAD = 8,                  /* of large calls: a thread that the system held up leaves some to the others */
    MX_SPARE_TASKS = 2,                     /* the same, of products, whose tasks are long */
    MX_GIL_BYTES = 1 << 16,                 /* copied with the GIL held in 2.4 us: to wake another thread of Python takes 8 us */

    /* ---- blocks ---- */
    MX_BLOCK_BYTES = MX_L1_BYTES / 4,       /* of a register of a program, for L1 holds some; sums of rows are cut so, too */
    MX_MEMORY_BLOCK = 1920,                 /* the same of data from memory, whole vectors: what comes next is prefetched meanwhile */
    MX_STACK_BYTES = 12 << 10,              /* of scratch memory on the stack, for more than which a block is taken from the pool */
    MX_RUN = 64,                            /* elements of a loop of constant length: registers of vectors */
    MX_LONG_ROW = 192,                      /* elements from which on a row is worth a call of its own: 14x14 images are */
    MX_SHORT_ROW = 16,                      /* elements, and less take longer one row at a time than across rows */
    MX_COLUMNS = 512,                       /* of a task that goes down an axis; and of a tile of a product, rows and columns */
    MX_ABREAST = 8,                         /* rows that are added up at once: an addition waits for the one before it in its row */

    /* ---- sums ---- */
    MX_SUM_TASKS = 16,                      /* results that are enough for threads; of fewer, sums are cut */
    MX_SUM_CHUNK = 1 << 15,                 /* elements of a part */
    MX_SUM_CHUNKS = 64,                     /* of one result, at most */
    MX_SUM_PARTS = 32,                      /* of many results, at most: the totals of each are written, and read again */
    MX_SUM_COLUMNS = 4096,                  /* whose totals stay in L2 */
    MX_SUM_NARROW = 32,                     /* columns that are too few for vectors: several rows are added side by side */
    MX_SUM_RUN = 256,                       /* elements side by side that are added up where they lie, though others are not */
    MX_SLICE = 4096,                        /* summands of a slice of a product, at least */
    MX_SLICE_PRODUCTS = 1000000,            /* and multiplications */
    MX_SLICED = 1 << 14,                    /* elements of a result, at most, whose sums are cut into slices */
    MX_SLICES = 16,                         /* at most */
    MX_GEMM_DEPTH = 256,                    /* KC: a panel of B and the rows of A that meet it stay in an L1 of 48 KiB */

    /* ---- products; tiles of registers are in mxop_gemm_kernels.h ---- */
    MX_GEMM_BLOCK = 192,                    /* MC: rows of A that stay in L2 */
    MX_GEMM_PACKING = 24,                   /* rows (or columns) of a tile that take as long as packing the other operand */

    /* ---- convolutions that are no product, see ops/convolved.py; they add up in another order ---- */
    MX_FEW_FILTERS = 32,                    /* of a group, at most: of 64, with 3x3 windows, a product takes 0.75 to 1.1 of the time */
    MX_FEW_SUMS = 10000,                    /* elements of filters, at most, that are sums */
    MX_FEW_SUMMANDS = 4608                  /* elements of a window, at most: they are added up one by one */
};

#endif
