"""The chain rule at one call: its operator's rule is asked, and what is wrong in the answer is said.

The tape and the graph layer walk over calls, each in its own order, and ask here.
"""
from mxop._core.array cimport Array

from mxop.support.errors import MXNetError, OpTypeError, OpValueError
from mxop.opdef.places import place


cpdef list gradients_at(object op, object F, object attrs, list heads, list inputs, list outputs, list needed, object told):
    """Return the gradient of each input, None for zero and for those that nobody needs.

    Parameters
    ----------
    op, attrs
        The operator and its parsed parameters.
    F
        What the rule calls.
    heads, inputs, outputs : list
        Arrays, or values of a graph.
    needed : list of bool
        Whose gradients are wanted.
    told : callable
        ``told()`` returns, for messages, the order of the gradient, how the heads depend on the call (operators and names,
        from the head on), and where the call was made.

    Raises
    ------
    MXNetError
        Where there is no rule, or its answer fits the inputs in no way.
    """
    found = op.grad(F, attrs, heads, inputs, outputs, needed)
    if found is None:
        order, path, at = told()
        if op.kind == "elementwise":  # differentiable unless its definition says otherwise
            raise MXNetError(f"operator {op.name} is not differentiable: its definition says so; the gradient of order {order} is "
                             f"asked for, path from the head: {path}{at}")
        raise MXNetError(
            f"operator {op.name} has no gradient rule, so the gradient of order {order} is not defined; path from the head: "
            f"{path}{at}.  Give it one with @{op.name.lstrip('_')}.gradient, a function rule(F, heads, inputs, outputs, "
            "**params) that returns one gradient per input (None for zero)")
    try:
        return checked(f"operator {op.name}", found, inputs, needed, "" if len(found) == len(inputs) else told()[2])
    except MXNetError as problem:
        if op._gradient is not None and not op.module.startswith("mxop."):
            problem.args = (f"{problem}; the rule is the function{place(op._gradient)}",)
        raise


cpdef list checked(str who, object found, list inputs, list needed, str at):
    """Return the gradients that a rule gave, as many as there are inputs; None for those that nobody needs."""
    cdef Py_ssize_t k, n = len(inputs)
    cdef list result = []
    if len(found) != n:
        raise MXNetError(f"the gradient rule of {who} returned {len(found)} gradients for {n} inputs{at}")
    for k in range(n):
        g, x = found[k] if needed[k] else None, inputs[k]
        if g is not None:
            if isinstance(x, Array):
                if not isinstance(g, Array) and getattr(g, "stype", None) != "row_sparse":
                    raise_kind(who, g, k)
                shape = (<Array>g).shape_tuple() if isinstance(g, Array) else g.shape
                if shape != (<Array>x).shape_tuple():
                    raise OpValueError(f"the gradient rule of {who} returned shape {shape} for input {k} of "
                                       f"shape {(<Array>x).shape_tuple()}")
            elif type(g) is not type(x):
                raise_kind(who, g, k)
        result.append(g)
    return result


cdef int raise_kind(str who, object g, Py_ssize_t k) except -1:
    raise OpTypeError(f"the gradient rule of {who} returned {g!r} for input {k}; expected what operators of F return, or None "
                      "for zero")
