"""What a compiled library has: read from the table that its entry point returns."""
from libc.stdint cimport int32_t

from mxop._core.abi cimport MXOP_ABI_VERSION, MXOPEntry, MXOPHost, MXOPLibrary
from mxop._core.native cimport native_op
from mxop._core.native_graph cimport native_partitioner, native_pass
from mxop._core.native_host cimport copy_table, failure, host, table_text

from mxop._core import native_host
from mxop.support.errors import MXNetError

cdef enum:
    MANY = 65536                # operators (or passes) of one library: more is a mistake


cdef class NativeLibrary:
    """A library's operators, passes and partitioners.

    Parameters
    ----------
    address : int
        Of the function ``mxop_library_v1``.
    label : str
        What messages call the library.
    """

    cdef const MXOPLibrary* given
    cdef MXOPLibrary table
    cdef readonly str label, compiler
    cdef readonly list operators, passes, partitioners

    def __init__(self, size_t address, str label):
        cdef MXOPEntry entry = <MXOPEntry><void*>address
        cdef const MXOPHost* offered = host()
        self.label = label
        with nogil:
            self.given = entry(offered)
        if self.given == NULL:
            raise MXNetError(f"library {label} refuses to work with mxop: {failure()}")
        self.read_table()
        if self.table.abi_version != MXOP_ABI_VERSION:
            raise MXNetError(f"library {label} was built for version {self.table.abi_version} of mxop's library interface; "
                             f"this mxop has version {MXOP_ABI_VERSION}: recompile it with the headers in mxop.get_include()")
        unknown = self.table.required & ~native_host.FEATURES
        if unknown:
            raise MXNetError(f"library {label} needs features of a later mxop (feature bits {unknown:#x}); this mxop offers "
                             f"{native_host.FEATURES:#x}")
        self.compiler = "unknown" if self.table.compiler == NULL else table_text(
            self.table.compiler, 1000, f"library {label}: compiler")

    cdef int read_table(self) except -1:
        copy_table(<const char*>self.given, <char*>&self.table, sizeof(self.table),
                   <Py_ssize_t>(<char*>&self.table.initialize - <char*>&self.table), f"library {self.label}: its table")
        return 0

    def initialize(self):
        """Let the library prepare itself, then read what it has."""
        cdef int failed
        cdef int32_t version = native_host.MXNET_VERSION
        if self.table.initialize != NULL:
            with nogil:
                failed = self.table.initialize(version)
            if failed:
                raise MXNetError(f"library {self.label} failed to initialize: {failure()}")
        self.read_table()
        self.read_lists()

    def read_lists(self):
        cdef int k
        self.check_count("operators", self.table.n_operators, self.table.operators != NULL)
        self.check_count("graph passes", self.table.n_passes, self.table.passes != NULL)
        self.check_count("partitioners", self.table.n_partitioners, self.table.partitioners != NULL)
        self.operators = [native_op(self.table.operators[k], self.label) for k in range(self.table.n_operators)]
        self.passes = [native_pass(self.table.passes[k], self.label) for k in range(self.table.n_passes)]
        self.partitioners = [native_partitioner(self.table.partitioners[k], self.label)
                             for k in range(self.table.n_partitioners)]

    def check_count(self, str what, int count, bint listed):
        if not 0 <= count <= MANY or (count and not listed):
            raise MXNetError(f"library {self.label} says that it has {count} {what}"
                             + ("; expected 0 to %d" % MANY if listed else ", but does not list them"))
