"""The GPU: CuPy's arrays, and kernels printed from the same formulas as the CPU's programs.

Nothing here is imported before a GPU is asked for, and CuPy not before it is needed; :mod:`.text` and :mod:`.preamble`
need neither, so that the kernels can be checked on machines without a GPU.
"""
