"""Inference of a library's operators: shapes and types go to the library and come back, and are checked."""
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport calloc, free

from mxop._core.abi cimport MXOPShape
from mxop._core.native cimport Bound, failed_call, put_shapes
from mxop._kernels.operands cimport MAX_DIMS

from mxop.support.errors import MXNetError


def infer_codes(Bound bound, bint storage, list ins, list outs):
    """Let the library complete types (or storage types).

    Parameters
    ----------
    ins, outs : list of int
        -1 where not known.

    Returns
    -------
    (list of int, list of int), or None when the library cannot tell yet
    """
    cdef int n_in = len(ins), n_out = len(outs), k, failed
    cdef int32_t* codes = <int32_t*>calloc(n_in + n_out + 1, sizeof(int32_t))
    if codes == NULL:
        raise MemoryError()
    try:
        for k in range(n_in + n_out):
            codes[k] = ins[k] if k < n_in else outs[k - n_in]
        with nogil:
            failed = (bound.native.table.infer_storage if storage else bound.native.table.infer_type)(
                bound.native.given, bound.handle, n_in, codes, n_out, codes + n_in)
        if failed:
            return cannot_tell(bound, "inferring storage types" if storage else "inferring types", -1 not in ins)
        return [codes[k] for k in range(n_in)], [codes[n_in + k] for k in range(n_out)]
    finally:
        free(codes)


def infer_shapes(Bound bound, list ins, list outs):
    """Let the library complete shapes.

    Parameters
    ----------
    ins, outs : list
        Tuples; None where the rank or a dimension is not known.

    Returns
    -------
    (list, list), or None when the library cannot tell yet
    """
    cdef int n_in = len(ins), n_out = len(outs), n = len(ins) + len(outs), failed
    cdef int64_t* dims = <int64_t*>calloc(n * MAX_DIMS + 1, sizeof(int64_t))
    cdef MXOPShape* shapes = <MXOPShape*>calloc(n + 1, sizeof(MXOPShape))
    try:
        if dims == NULL or shapes == NULL:
            raise MemoryError()
        put_shapes([*ins, *outs], dims, shapes)
        with nogil:
            failed = bound.native.table.infer_shape(bound.native.given, bound.handle, n_in, shapes, n_out, shapes + n_in)
        if failed:
            return cannot_tell(bound, "inferring shapes", all([s is not None and None not in s for s in ins]))
        found = get_shapes(bound, n, dims, shapes)
        return found[:n_in], found[n_in:]
    finally:
        free(dims)
        free(shapes)


cdef object cannot_tell(Bound bound, str what, bint complete):
    """A library that fails when it knows all inputs means it; otherwise it may lack one."""
    error = failed_call(bound.native, what)
    if complete:
        raise error


cdef list get_shapes(Bound bound, int n, int64_t* dims, MXOPShape* shapes):
    """Read the shapes that the library left, and refuse what cannot be one."""
    cdef int k, i
    cdef list result = []
    where = f"operator {bound.native.name} of library {bound.native.library} inferred"
    for k in range(n):
        if shapes[k].ndim == -1:
            result.append(None)
            continue
        if not 0 <= shapes[k].ndim <= MAX_DIMS or shapes[k].dims != dims + k * MAX_DIMS:
            raise MXNetError(f"{where} a shape of {shapes[k].ndim} dimensions; at most {MAX_DIMS} are supported")
        found = tuple([shapes[k].dims[i] if shapes[k].dims[i] != -1 else None for i in range(shapes[k].ndim)])
        if any([d is not None and not 0 <= d < 1 << 56 for d in found]):
            raise MXNetError(f"{where} the shape {found}; expected dimensions of 0 and up")
        result.append(found)
    return result
