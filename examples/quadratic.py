"""A user's own operator: this file is all there is to it."""

from mxop.op import elementwise


@elementwise
def quadratic(data, *, a: float = 0.0, b: float = 0.0, c: float = 0.0):
    """Evaluate ``a*data**2 + b*data + c`` element by element."""
    return data * (a * data + b) + c
