"""Copies of elements from some strides to others: slices, transposes, repetitions, joins, conversions.

What both arrays have in common is found first: their axes are merged as far as possible, put in the order of the target's
memory, and the innermost becomes the element where it is short.  Then one or two axes at a time are moved by a function of
the instruction set, see ``mxop_move.h``.  Conversions go through a program; if they also transpose, elements are put in order
first.
"""
from mxop._kernels.instruction_sets cimport BULK, itemsize_of, mx_stream_fence
from mxop._kernels.machine cimport MX_CACHE_LINE, MX_GIL_BYTES, MX_L2_BYTES, MX_SHORT_ROW, MX_TASKS_A_THREAD
from mxop._kernels.operands cimport MAX_DIMS, REQ_INPLACE, REQ_WRITE, Operand, distance
from mxop._kernels.interp cimport Program, streams
from mxop._kernels.memory cimport Block, block_new, block_release
from mxop._kernels.team cimport part_function, share_parts, threads_for

cdef extern from "mxop_bulk.h" nogil:
    enum:
        MX_ROWS
        MX_BLOCKS
        MX_SCATTER

# What is moved: axes in the order of the target's memory, the innermost first; strides in bytes.
cdef struct Plan:
    const char* source
    char* target
    int ndim, size, way
    Py_ssize_t shape[MAX_DIMS + 2]
    Py_ssize_t froms[MAX_DIMS + 2]
    Py_ssize_t tos[MAX_DIMS + 2]
    bint stream
    int cut                 # the axis that is cut in pieces
    Py_ssize_t piece, pieces, tasks


# ---- plans --------------------------------------------------------------------------------------------------------------
cdef bint merged(const Operand* source, const Operand* target, Py_ssize_t n, Plan* plan) noexcept nogil:
    """List the axes that both arrays are walked along, the innermost first; tell whether their shapes have such axes."""
    cdef int a = source.ndim - 1, b = target.ndim - 1
    cdef Py_ssize_t size = itemsize_of(source.dtype), width = itemsize_of(target.dtype), left_a, left_b, from_, to, d
    left_a, from_ = (n, size) if source.contiguous else (source.shape[a], source.strides[a])
    left_b, to = (n, width) if target.contiguous else (target.shape[b], target.strides[b])
    plan.ndim, plan.size = 0, <int>size
    plan.source, plan.target = source.data, target.data
    while True:
        d = min(left_a, left_b)
        if left_a % d or left_b % d or plan.ndim > MAX_DIMS:
            return False
        plan.shape[plan.ndim], plan.froms[plan.ndim], plan.tos[plan.ndim] = d, from_, to
        plan.ndim += 1
        n //= d
        if n == 1:
            return True
        left_a //= d
        left_b //= d
        from_ *= d
        to *= d
        if left_a == 1:
            a -= 1
            left_a, from_ = source.shape[a], source.strides[a]
        if left_b == 1:
            b -= 1
            left_b, to = target.shape[b], target.strides[b]


cdef void swap(Plan* plan, int a, int b) noexcept nogil:
    plan.shape[a], plan.shape[b] = plan.shape[b], plan.shape[a]
    plan.froms[a], plan.froms[b] = plan.froms[b], plan.froms[a]
    plan.tos[a], plan.tos[b] = plan.tos[b], plan.tos[a]


cdef void in_order(Plan* plan) noexcept nogil:
    """Walk the target forwards, along its memory; merge axes that are one."""
    cdef int a, b, last = 0
    for a in range(plan.ndim):
        if plan.tos[a] < 0:
            plan.source += (plan.shape[a] - 1) * plan.froms[a]
            plan.target += (plan.shape[a] - 1) * plan.tos[a]
            plan.froms[a], plan.tos[a] = -plan.froms[a], -plan.tos[a]
        b = a
        while b > 0 and plan.tos[b] < plan.tos[b - 1]:
            swap(plan, b, b - 1)
            b -= 1
    for a in range(1, plan.ndim):
        if (plan.froms[a] == plan.froms[last] * plan.shape[last] and plan.tos[a] == plan.tos[last] * plan.shape[last]):
            plan.shape[last] *= plan.shape[a]
        else:
            last += 1
            plan.shape[last], plan.froms[last], plan.tos[last] = plan.shape[a], plan.froms[a], plan.tos[a]
    plan.ndim = last + 1


cdef void widened(Plan* plan) noexcept nogil:
    """Take a short dense row for one element, if elements of that size are copied at once."""
    cdef Py_ssize_t bytes = plan.shape[0] * plan.size
    cdef int a
    if plan.ndim > 1 and plan.froms[0] == plan.size and plan.tos[0] == plan.size and (
            bytes in (2, 4, 8, 16) or 16 < bytes <= MX_CACHE_LINE):
        plan.size = <int>bytes
        for a in range(1, plan.ndim):
            plan.shape[a - 1], plan.froms[a - 1], plan.tos[a - 1] = plan.shape[a], plan.froms[a], plan.tos[a]
        plan.ndim -= 1


cdef int nearest(const Plan* plan) noexcept nogil:
    """Return the axis along which elements of the source are nearest to each other."""
    cdef int a, best = 0
    for a in range(1, plan.ndim):
        if plan.froms[a] and (not plan.froms[best] or distance(plan.froms[a]) < distance(plan.froms[best])):
            best = a
    return best


cdef bint transposes(const Plan* plan) noexcept nogil:
    """Return whether neighbours in the target come from far apart, while others in the source are near."""
    return plan.froms[0] != 0 and distance(plan.froms[nearest(plan)]) < distance(plan.froms[0])


cdef void second(Plan* plan, int axis) noexcept nogil:
    """Make an axis the second."""
    while axis > 1:
        swap(plan, axis, axis - 1)
        axis -= 1


cdef void choose(Plan* plan) noexcept nogil:
    """Choose the way to move the first two axes."""
    cdef int a, near = nearest(plan)
    plan.way = MX_ROWS
    if plan.ndim == 1:
        return
    if transposes(plan):
        second(plan, near)
        plan.way = MX_SCATTER
        if (plan.size <= 8 and plan.tos[0] == plan.size and plan.froms[1] == plan.size
                and min(plan.shape[0], plan.shape[1]) * plan.size >= 16):
            plan.way = MX_BLOCKS
    elif plan.shape[0] < (MX_SHORT_ROW if plan.size <= 16 else MX_SHORT_ROW // 4):
        for a in range(1, plan.ndim):
            if plan.shape[a] >= MX_SHORT_ROW:
                second(plan, a)
                plan.way = MX_SCATTER
                return


cdef void divide(Plan* plan, int threads, bint several) noexcept nogil:
    """Cut the move into tasks, if there are to be several: positions of the axes after the second, and pieces of one of the first
    two."""
    cdef int a
    cdef Py_ssize_t wanted = threads * MX_TASKS_A_THREAD, unit
    if plan.ndim == 1:
        plan.ndim, plan.shape[1], plan.froms[1], plan.tos[1] = 2, 1, 0, 0
    plan.tasks = 1
    for a in range(2, plan.ndim):
        plan.tasks *= plan.shape[a]
    plan.cut = plan.shape[1] < plan.shape[0] and (plan.way != MX_ROWS or plan.shape[1] * plan.tasks < wanted)
    plan.cut = 0 if plan.cut else 1
    unit = 1 if plan.way == MX_ROWS and plan.cut == 1 else MX_CACHE_LINE
    plan.piece = plan.shape[plan.cut]
    if several and plan.tasks < wanted:
        plan.piece = (plan.piece * plan.tasks // wanted // unit + 1) * unit
    plan.pieces = (plan.shape[plan.cut] + plan.piece - 1) // plan.piece
    plan.tasks *= plan.pieces


# ---- moves --------------------------------------------------------------------------------------------------------------
cdef void do_tasks(const Plan* plan, Py_ssize_t first, Py_ssize_t last) noexcept nogil:
    """Do some of the tasks, which are counted along the target's memory."""
    cdef Py_ssize_t index[MAX_DIMS + 2]
    cdef Py_ssize_t n[2]
    cdef const char* source = plan.source
    cdef char* target = plan.target
    cdef Py_ssize_t rest = first // plan.pieces, part = first % plan.pieces, at, done
    cdef int a
    n[0], n[1] = plan.shape[0], plan.shape[1]
    for a in range(2, plan.ndim):
        index[a] = rest % plan.shape[a]
        rest //= plan.shape[a]
        source += index[a] * plan.froms[a]
        target += index[a] * plan.tos[a]
    for done in range(first, last):
        at = part * plan.piece
        n[plan.cut] = min(plan.piece, plan.shape[plan.cut] - at)
        BULK.move(plan.way, plan.size, n[0], n[1], source + at * plan.froms[plan.cut], plan.froms[0], plan.froms[1],
                    target + at * plan.tos[plan.cut], plan.tos[0], plan.tos[1], plan.stream)
        part += 1
        if part < plan.pieces:
            continue
        part, a = 0, 2
        while a < plan.ndim:
            source += plan.froms[a]
            target += plan.tos[a]
            index[a] += 1
            if index[a] < plan.shape[a]:
                break
            source -= index[a] * plan.froms[a]
            target -= index[a] * plan.tos[a]
            index[a] = 0
            a += 1
    if plan.stream:
        mx_stream_fence()


cdef void do_part(const Plan* plan, void* unused, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    do_tasks(plan, first, last)


cdef int carry_out(Plan* plan, Py_ssize_t total) except -1:
    """Move `total` bytes."""
    cdef int threads = threads_for(total)
    widened(plan)
    choose(plan)
    divide(plan, threads, threads > 1 or total >= MX_L2_BYTES)
    plan.stream = streams(total) and (plan.way == MX_BLOCKS or (
        plan.way == MX_ROWS and plan.tos[0] == plan.size and plan.shape[0] * plan.size >= 8 * MX_CACHE_LINE))
    if threads > plan.tasks:
        threads = <int>plan.tasks
    if total < MX_GIL_BYTES:
        do_tasks(plan, 0, plan.tasks)
        return 0
    with nogil:
        share_parts(<part_function>do_part, plan, NULL, plan.tasks, max(threads, 1), total)
    return 0


cdef int move(Py_ssize_t n, Operand* source, Operand* target, Program convert) except -1:
    """Copy `n` elements, or add them, by the target's request; the types may differ.

    Parameters
    ----------
    source, target : Operand*
        Their elements go together one by one, in the order of their axes; they do not overlap.
    convert : Program
        Copies elements of the source's type.
    """
    cdef Plan plan
    cdef Operand ordered
    cdef Block* memory
    cdef Py_ssize_t total = n * itemsize_of(source.dtype)
    cdef bint same = source.dtype == target.dtype and target.req in (REQ_WRITE, REQ_INPLACE)
    if n == 0:
        return 0
    if (not same and source.contiguous) or not merged(source, target, n, &plan):
        return convert.run(n, source, target, NULL)
    if same:
        in_order(&plan)
        return carry_out(&plan, total)
    in_order(&plan)
    if not transposes(&plan) or total < MX_GIL_BYTES:
        return convert.run(n, source, target, NULL)
    memory = block_new(total)  # elements of the source's type, in the order of the target's axes
    try:
        ordered.data, ordered.dtype, ordered.req = memory.data, source.dtype, REQ_WRITE
        ordered.contiguous, ordered.staged, ordered.ndim = True, False, 0
        move(n, source, &ordered, convert)
        convert.run(n, &ordered, target, NULL)
    finally:
        block_release(memory)
    return 0


cdef str way_of(Py_ssize_t n, const Operand* source, const Operand* target):
    """Return how :func:`move` moves elements: by rows, by transposed blocks, strided, or by the program."""
    cdef Plan plan
    if n == 0 or source.dtype != target.dtype or target.req not in (REQ_WRITE, REQ_INPLACE) or not merged(source, target, n, &plan):
        return "program"
    in_order(&plan)
    widened(&plan)
    choose(&plan)
    return "rows" if plan.way == MX_ROWS else "transposed blocks" if plan.way == MX_BLOCKS else "strided"
