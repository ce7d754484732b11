"""Graph passes and partitioners of compiled libraries, over the C ABI of ``mxop/library/include/mxop/abi.h``.

Graphs cross as MXNet's JSON; what they become is for :mod:`mxop.library`.
"""
cimport cython
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport calloc, free

from mxop._core.abi cimport (
    MXOPAttr, MXOPGraph, MXOPParam, MXOPPartitioner, MXOPPass, MXOPStrategy, MXOPTensor,
)
from mxop._core.array cimport Array, read_pointer
from mxop._core.native_host cimport copy_table, failure, table_text
from mxop._kernels.operands cimport MAX_DIMS

from mxop.support.errors import MXNetError, OpValueError

cdef enum:
    MANY = 1024


# ---- what a function is given ---------------------------------------------------------------------------------------------------


cdef class GivenGraph:
    """A graph with its options and parameters, as a library gets it.

    Parameters
    ----------
    json : str
    options : dict of str to str
    args, aux : dict of str to NDArray
        Arrays in C order.
    new_param : callable or None
        ``new_param(name, shape, dtype, device, device_id, is_aux) -> NDArray`` makes a new parameter.
    """

    cdef MXOPGraph graph
    cdef MXOPAttr* options
    cdef MXOPTensor* tensors
    cdef MXOPParam* params
    cdef list texts, arrays, made
    cdef object new_param, problem

    def __init__(self, str json, dict options, dict args, dict aux, new_param):
        cdef int k
        self.texts, self.arrays, self.made, self.new_param, self.problem = [], [], [], new_param, None
        self.options = <MXOPAttr*>calloc(len(options) + 1, sizeof(MXOPAttr))
        self.tensors = <MXOPTensor*>calloc(len(args) + len(aux) + MANY, sizeof(MXOPTensor))
        self.params = <MXOPParam*>calloc(len(args) + len(aux) + 1, sizeof(MXOPParam))
        if self.options == NULL or self.tensors == NULL or self.params == NULL:
            raise MemoryError()
        for k, (name, value) in enumerate(options.items()):
            self.options[k].key, self.options[k].value = self.text(name), self.text(str(value))
        for k, (name, array) in enumerate([*args.items(), *aux.items()]):
            self.describe(k, array)
            self.params[k].name, self.params[k].tensor = self.text(name), &self.tensors[k]
        self.graph.struct_size = sizeof(self.graph)
        self.graph.n_options, self.graph.options = len(options), self.options
        self.graph.json = self.text(json)
        self.graph.n_args, self.graph.n_aux = len(args), len(aux)
        self.graph.args, self.graph.aux = self.params, self.params + len(args)
        if new_param is not None:
            self.graph.new_param = make_param
        self.graph.call = <void*>self

    def __dealloc__(self):
        free(self.options)
        free(self.tensors)
        free(self.params)

    cdef const char* text(self, str given) except NULL:
        if "\0" in given:
            raise OpValueError(f"{given[:60]!r} contains a zero character")
        made = given.encode("utf-8", "surrogateescape")
        self.texts.append(made)
        return <bytes>made

    cdef int describe(self, int k, Array a) except -1:
        cdef MXOPTensor* t = &self.tensors[k]
        self.arrays.append(a)
        t.struct_size, t.dtype, t.shape, t.ndim, t.size = sizeof(t[0]), a.dtype, <const int64_t*>a.shape_, a.ndim, a.size
        t.device_type, t.device_id, t.data = a.device.code, a.device_id, <void*>read_pointer(a)
        return 0

    cdef const MXOPTensor* add(self, const char* name, int32_t ndim, const int64_t* shape, int32_t dtype,
                               int32_t device, int32_t device_id, int32_t is_aux) except NULL:
        cdef int k, at = len(self.arrays)
        if not 0 <= ndim <= MAX_DIMS or (ndim and shape == NULL) or len(self.made) >= MANY:
            raise OpValueError(f"a new parameter of {ndim} dimensions, or too many of them")
        dims = tuple([shape[k] for k in range(ndim)])
        array = self.new_param(table_text(name, 1 << 16, "a new parameter's name"), dims, dtype, device, device_id,
                               bool(is_aux))
        self.made.append(array)
        self.describe(at, array)
        return &self.tensors[at]

    def failed(self, str what):
        """Return the error of a failed function."""
        text = failure()
        return MXNetError(f"{what}: {text if self.problem is None else f'{text} ({self.problem})'}")


cdef const MXOPTensor* make_param(void* call, const char* name, int32_t ndim, const int64_t* shape, int32_t dtype,
                                  int32_t device, int32_t device_id, int32_t is_aux) noexcept with gil:
    cdef GivenGraph given = <GivenGraph>call
    try:
        return given.add(name, ndim, shape, dtype, device, device_id, is_aux)
    except Exception as problem:
        given.problem = problem
        return NULL


cdef void put_text(void* sink, const char* text, int64_t length) noexcept with gil:
    if text != NULL and 0 <= length < <int64_t>1 << 31:
        try:
            (<list>sink).append(text[:length])
        except MemoryError:
            pass


# ---- passes ---------------------------------------------------------------------------------------------------------------------


cdef class NativePass:
    """A graph pass of a library."""

    cdef const MXOPPass* given
    cdef MXOPPass table
    cdef readonly str name, library

    def run(self, GivenGraph graph):
        """Return the JSON of the new graph."""
        cdef int failed
        cdef list found = []
        cdef void* sink = <void*>found
        with nogil:
            failed = self.table.run(self.given, &graph.graph, put_text, sink)
        if failed:
            raise graph.failed(f"graph pass {self.name} of library {self.library} failed")
        return b"".join(found).decode("utf-8", "replace")


cdef object native_pass(const MXOPPass* given, str library):
    cdef NativePass made = NativePass.__new__(NativePass)
    what = f"library {library}: a graph pass's table"
    copy_table(<const char*>given, <char*>&made.table, sizeof(made.table),
               <Py_ssize_t>(<char*>&made.table.run - <char*>&made.table) + sizeof(void*), what)
    made.given, made.library = given, library
    made.name = table_text(made.table.name, 200, f"{what}: name")
    if made.table.run == NULL:
        raise MXNetError(f"graph pass {made.name} of library {library} has no function: call setBody")
    return made


# ---- partitioners ---------------------------------------------------------------------------------------------------------------


cdef class NativeStrategy:
    """One way of cutting subgraphs out of a graph."""

    cdef const MXOPStrategy* given
    cdef MXOPStrategy table
    cdef readonly str name, subgraph_op, label

    @property
    def selects(self):
        """Whether a selector grows subgraphs (otherwise supported nodes are listed)."""
        return self.table.create_selector != NULL

    @property
    def reviews(self):
        return self.table.review != NULL

    def supported(self, GivenGraph graph, int n_nodes):
        """Return a number for each node: -2 not supported, -1 supported, 0 and up supported with its like."""
        cdef int failed, k
        cdef int32_t* ids = <int32_t*>calloc(n_nodes + 1, sizeof(int32_t))
        if ids == NULL:
            raise MemoryError()
        try:
            for k in range(n_nodes):
                ids[k] = -2
            with nogil:
                failed = self.table.supported(self.given, &graph.graph, n_nodes, ids)
            if failed:
                raise graph.failed(f"{self.label}: choosing the supported nodes failed")
            return [ids[k] for k in range(n_nodes)]
        finally:
            free(ids)

    def selector(self, GivenGraph graph):
        """Return a new selector."""
        cdef NativeSelector made = NativeSelector.__new__(NativeSelector)
        cdef int failed
        cdef void* handle = NULL
        with nogil:
            failed = self.table.create_selector(self.given, &graph.graph, &handle)
        if failed:
            raise graph.failed(f"{self.label}: making a selector failed")
        made.strategy, made.graph, made.handle = self, graph, handle
        return made

    def review(self, GivenGraph subgraph, int number):
        """Return whether a subgraph is accepted, and attributes for its node."""
        cdef int failed
        cdef int32_t accept = 1
        cdef list found = []
        cdef void* sink = <void*>found
        with nogil:
            failed = self.table.review(self.given, &subgraph.graph, number, &accept, put_text, sink)
        if failed:
            raise subgraph.failed(f"{self.label}: reviewing subgraph {number} failed")
        parts = b"".join(found).decode("utf-8", "replace").split("\0")
        if len(parts) % 2 == 0:
            raise MXNetError(f"{self.label}: the attributes of subgraph {number} are not pairs of texts")
        return bool(accept), dict(zip(parts[:-1:2], parts[1::2]))


@cython.no_gc_clear
cdef class NativeSelector:
    """Grows a subgraph from a node."""

    cdef NativeStrategy strategy
    cdef GivenGraph graph
    cdef void* handle

    def __dealloc__(self):
        if self.handle != NULL and self.strategy.table.destroy_selector != NULL:
            with nogil:
                self.strategy.table.destroy_selector(self.handle)

    cdef object answer(self, int found, str what):
        if found < 0:
            raise self.graph.failed(f"{self.strategy.label}: {what} of its selector failed")
        return found != 0

    def select(self, int node):
        """Return whether a subgraph begins at a node."""
        cdef int found
        with nogil:
            found = self.strategy.table.select(self.handle, node)
        return self.answer(found, "Select")

    def select_input(self, int node, int other):
        """Return whether it goes on to an input of a node."""
        cdef int found
        with nogil:
            found = self.strategy.table.select_input(self.handle, node, other)
        return self.answer(found, "SelectInput")

    def select_output(self, int node, int other):
        """Return whether it goes on to a reader of a node."""
        cdef int found
        with nogil:
            found = self.strategy.table.select_output(self.handle, node, other)
        return self.answer(found, "SelectOutput")

    def reset(self):
        """Tell the selector that a subgraph is grown."""
        cdef int failed
        with nogil:
            failed = self.strategy.table.reset(self.handle)
        self.answer(-failed if failed > 0 else failed, "Reset")

    def filter(self, list candidates):
        """Return which of the nodes stay."""
        cdef int n = len(candidates), failed, k
        cdef int32_t n_keep = 0
        cdef int32_t* numbers = <int32_t*>calloc(2 * n + 2, sizeof(int32_t))
        if numbers == NULL:
            raise MemoryError()
        try:
            for k in range(n):
                numbers[k] = candidates[k]
            with nogil:
                failed = self.strategy.table.filter(self.handle, n, numbers, n, numbers + n, &n_keep)
            if failed or not 0 <= n_keep <= n:
                raise self.graph.failed(f"{self.strategy.label}: Filter of its selector failed")
            return [numbers[n + k] for k in range(n_keep)]
        finally:
            free(numbers)


class NativePartitioner:
    """A partitioner of a library: its strategies run one after the other."""

    def __init__(self, name, strategies):
        self.name, self.strategies = name, strategies


cdef object native_partitioner(const MXOPPartitioner* given, str library):
    cdef MXOPPartitioner table
    cdef int k
    what = f"library {library}: a partitioner's table"
    copy_table(<const char*>given, <char*>&table, sizeof(table),
               <Py_ssize_t>(<char*>&table.strategies - <char*>&table) + sizeof(void*), what)
    name = table_text(table.name, 200, f"{what}: name")
    if not 0 < table.n_strategies <= MANY or table.strategies == NULL:
        raise MXNetError(f"partitioner {name} of library {library} has {table.n_strategies} strategies; expected one or "
                         "more: call addStrategy")
    return NativePartitioner(name, [native_strategy(table.strategies[k], library, name) for k in range(table.n_strategies)])


cdef object native_strategy(const MXOPStrategy* given, str library, str partitioner):
    cdef NativeStrategy made = NativeStrategy.__new__(NativeStrategy)
    what = f"partitioner {partitioner} of library {library}: a strategy's table"
    copy_table(<const char*>given, <char*>&made.table, sizeof(made.table),
               <Py_ssize_t>(<char*>&made.table.review - <char*>&made.table) + sizeof(void*), what)
    made.given = given
    made.name = table_text(made.table.name, 200, f"{what}: name")
    made.subgraph_op = table_text(made.table.subgraph_op, 200, f"{what}: subgraph operator")
    made.label = f"partitioner {partitioner} of library {library}, strategy {made.name}"
    if made.table.supported == NULL and made.table.create_selector == NULL:
        raise MXNetError(f"{made.label} chooses no nodes: call setSupportedOps or setCreateSelector")
    if made.table.create_selector != NULL and (
            made.table.select == NULL or made.table.select_input == NULL or made.table.select_output == NULL
            or made.table.filter == NULL or made.table.reset == NULL):
        raise MXNetError(f"{made.label} has a selector without all of its functions")
    return made
