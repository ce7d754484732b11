from mxop._core.array cimport Array

cdef Array plain_view(Array x, object key)
cdef Array plain_reshaped(Array x, tuple sizes)
cdef Array plain_transposed(Array x, tuple axes)
cdef bint plain_assign(Array x, object key, object value) except -1
cdef object element(Array x)
cdef object plain_numpy(Array x)
cdef object plain_scalar(Array x)
