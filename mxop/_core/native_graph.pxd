from mxop._core.abi cimport MXOPPartitioner, MXOPPass

cdef object native_pass(const MXOPPass* given, str library)
cdef object native_partitioner(const MXOPPartitioner* given, str library)
