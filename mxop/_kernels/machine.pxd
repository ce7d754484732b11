# What is known of machines, and the thresholds of how work is cut: whoever blocks it, or shares it out, takes them from here.
# Sizes of caches are those that every processor has for which a set of instructions is built: 32 KiB of L1 data, 256 KiB of L2 a core.
cdef enum:
    CACHE_LINE = 64             # bytes
    PAGE = 4096                 # bytes
    L1_BYTES = 32768            # a block of rows with all its temporaries
    L2_BLOCK = 131072           # bytes: half of L2, for what is read, and as much for what is written
    L2_BYTES = 1 << 20          # of a large L2: less data than this is not prefetched
    BEYOND_CACHES = 1 << 25     # bytes read and written together that no cache holds until the next call
    TASKS_A_THREAD = 8          # of large calls: a thread that the system held up leaves some to the others
    SPARE_TASKS = 2             # the same, of products, whose tasks are long
    THREAD_BYTES = 1 << 18      # that a thread should move: 0.1 ms from random places
    THREAD_PRODUCTS = 250000    # multiplications that a thread should do
    GIL_BYTES = 65536           # moved without letting other threads of Python run: waking one takes as long
