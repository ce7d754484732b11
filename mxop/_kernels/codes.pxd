# MXNet's codes of element types; mxop/support/dtypes.py has the same names.
cdef enum:
    FLOAT32 = 0
    FLOAT64 = 1
    FLOAT16 = 2
    UINT8 = 3
    INT32 = 4
    INT8 = 5
    INT64 = 6
    BOOL = 7
    BFLOAT16 = 12
