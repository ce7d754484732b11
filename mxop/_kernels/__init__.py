"""The CPU: memory, the blocked interpreter, reductions, products.  Cython, ``nogil``, ``prange``.

Nothing here knows operators; formulas arrive as programs.
"""
