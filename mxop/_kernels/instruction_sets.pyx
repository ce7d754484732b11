"""The instruction sets: which were built and this machine has, and what the one in use does.

A set is a module beside this one, compiled from one source for one kind of processor.
"""
import os
import warnings

from cpython.pycapsule cimport PyCapsule_GetPointer

from mxop.support.errors import OpValueError

cdef extern from *:
    """
    #if (defined(__x86_64__) || defined(__i386__)) && defined(__GNUC__)
    static int mx_cpu_level(void)
    {
        __builtin_cpu_init();
        if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq")
            && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512cd")) return 4;
        if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2")) return 3;
        if (__builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt")) return 2;
        return 1;
    }
    #else
    static int mx_cpu_level(void) { return 0; }
    #endif
    """
    int mx_cpu_level() nogil

cdef const mx_isa_table* ISA = NULL
cdef const mx_bulk* BULK = NULL     # what works on rows and columns
cdef dict _index = {}       # where instructions are in the table, by name


def available():
    """Return the names of the instruction sets that were built and that this machine has, best first."""
    from importlib.util import find_spec

    return [n for n in _by_level() if find_spec(f"mxop._kernels._isa_{n}") is not None]


def _by_level():
    return [f"v{k}" for k in (4, 3, 2) if k <= mx_cpu_level()] + ["base"]


def use(str name=None):
    """Load the instructions of one set, or the best.

    There are ``v4``, ``v3`` and ``v2`` on x86-64, and ``base`` on machines of other kinds.

    Raises
    ------
    OpValueError
        When the set was not built or the machine does not have it.
    """
    global ISA, BULK, _index
    from importlib import import_module

    cdef const mx_isa_table* table
    cdef dict index = {}
    cdef int i = 0
    if name == "amx":  # the products by tiles of bfloat16 that it asked for are gone
        warnings.warn("MXOP_CPU=amx is v4 now, and will be an error", FutureWarning, stacklevel=2)
        name = "v4"
    if name is not None and name not in available():
        raise OpValueError(f"instruction set {name!r} is not available here; expected one of {', '.join(available())}")
    known = _by_level() if name is None else [name]
    for candidate in known:
        try:
            module = import_module(f"mxop._kernels._isa_{candidate}")
            break
        except ImportError:
            continue
    else:
        raise ImportError("mxop has no instruction modules for this processor: it was installed without them, or the "
                          "processor is older than x86-64-v2; reinstall it")
    table = <const mx_isa_table*>PyCapsule_GetPointer(module.TABLE, "mxop.isa")
    while table.instructions[i].name != NULL:
        index[(<bytes>table.instructions[i].name).decode()] = i
        i += 1
    BULK = <const mx_bulk*>PyCapsule_GetPointer(module.BULK, "mxop.bulk")
    ISA, _index = table, index


def in_use():
    """Return the name of the instruction set in use."""
    return (<bytes>ISA.isa).decode()


def has_instruction(str name, int ctype):
    """Return whether there is an instruction of this name for a compute type."""
    return instruction(name, ctype) != NULL


cdef const mx_instruction* instruction(str name, int ctype) except? NULL:
    """Return the instruction of this name when there is one for a compute type, otherwise NULL."""
    at = _index.get(name)
    if at is None or ISA.instructions[<int>at].loops[ctype] == NULL:
        return NULL
    return &ISA.instructions[<int>at]


cdef const void* gemm_kernels(bint double_) noexcept nogil:
    """Return what multiplies matrices of float32, or of float64: an ``mx_gemm_kernels``."""
    return ISA.gemm[double_]


cdef mx_load load_of(int dtype, bint double_) noexcept nogil:
    """Return what reads elements of a storage type as float32, or as float64."""
    return ISA.loads[dtype][double_]


cdef mx_store store_of(int dtype, bint double_) noexcept nogil:
    """Return what writes float32, or float64, as elements of a storage type."""
    return ISA.stores[dtype][double_]


use(os.environ.get("MXOP_CPU") or None)
