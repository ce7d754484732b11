"""What the functions of control flow take and return: nested lists of arrays or symbols, and loops that keep their form."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .errors import OpTypeError, OpValueError, translated

Form = list | None  # None for one item, else the form of each


def flatten(value: Any, kind: type, what: str) -> tuple[list[Any], Form]:
    """Return the items of a nested list in order, and its form.

    Examples
    --------
    >>> flatten([1, [2, 3]], int, "f: data")
    ([1, 2, 3], [None, [None, None]])
    """
    if isinstance(value, kind):
        return [value], None
    if not isinstance(value, (list, tuple)):
        raise OpTypeError(f"{what} must be a {kind.__name__} or a (nested) list of them, got {value!r}, which is of type "
                          f"{type(value).__name__}")  # fmt: skip
    flat: list[Any] = []
    form = []
    for item in value:
        items, one = flatten(item, kind, what)
        flat += items
        form.append(one)
    return flat, form


def leaves(value: Any) -> list[Any]:
    """Return the items of a nested list, whatever they are.

    Examples
    --------
    >>> leaves([1, [2, "a"]])
    [1, 2, 'a']
    """
    return [item for one in value for item in leaves(one)] if isinstance(value, (list, tuple)) else [value]


def regroup(items: Sequence[Any], form: Form) -> Any:
    """Return items in a form: what :func:`flatten` undid.

    Examples
    --------
    >>> regroup([1, 2, 3], [None, [None, None]])
    [1, [2, 3]]
    """
    return _regrouped(iter(items), form)


def _regrouped(items: Any, form: Form) -> Any:
    return next(items) if form is None else [_regrouped(items, one) for one in form]


def pair(found: Any, what: str) -> tuple[Any, Any]:
    """Return the two values that a body returned."""
    if isinstance(found, (list, tuple)) and len(found) == 2:
        return found[0], found[1]
    raise OpTypeError(f"{what} must return two values, outputs and new states; it returned {found!r}")


# ---- loops ---------------------------------------------------------------------------------------------------------------
Step = tuple[list[Any], Form, Any, list[Any]]  # what a function returned: outputs, flat, and their form; states, and flat


class ForEach:
    """The arguments of ``foreach``, of one kind of things, and what its body returns."""

    def __init__(self, kind: type, body: Callable, data: Any, init_states: Any):
        self.kind, self.body, self.init_states = kind, body, init_states
        self.data, self.data_form = flatten(data, kind, "foreach: data")
        self.states, self.state_form = flatten(init_states, kind, "foreach: init_states")
        if not self.data:
            raise OpValueError("foreach: data is an empty list; expected what the body is run over")

    def step(self, slices: Sequence[Any], states: Any) -> Step:
        """Call the body with states in their form."""
        out, states = pair(self.body(regroup(slices, self.data_form), states), "foreach: the body")
        outputs, form = flatten(out, self.kind, "foreach: the output of the body")
        flat, found = flatten(states, self.kind, "foreach: the states that the body returns")
        if found != self.state_form:
            raise OpValueError(f"foreach: the states that the body returns, {states!r}, have another form than init_states, "
                               f"{self.init_states!r}")  # fmt: skip
        return outputs, form, states, flat


class WhileLoop:
    """The arguments of ``while_loop``, of one kind of things, and what its functions return."""

    def __init__(self, kind: type, cond: Callable, func: Callable, loop_vars: Any, max_iterations: Any):
        self.kind, self.cond, self.func = kind, cond, func
        if max_iterations is None:
            raise OpValueError("while_loop: max_iterations should be specified")
        with translated("while_loop: max_iterations"):
            self.most = int(max_iterations)
        self.states, self.form = flatten(loop_vars, kind, "while_loop: loop_vars")
        if not self.states:
            raise OpValueError("while_loop: loop_vars should contain at least one element")

    def asked(self, states: Any) -> Any:
        """Call the condition with states in their form."""
        return self.cond(*(states if isinstance(states, (list, tuple)) else [states]))

    def step(self, states: Any) -> Step:
        """Call the function with states in their form."""
        found = self.func(*(states if isinstance(states, (list, tuple)) else [states]))
        out, new = pair(found, "while_loop: func")
        outputs, form = flatten([] if out is None else out, self.kind, "while_loop: the output of func")
        flat, _ = flatten(new, self.kind, "while_loop: the loop_vars that func returns")
        if len(flat) != len(self.states):
            raise OpValueError(f"while_loop: the number of loop_vars should be consistent during the loop: {len(self.states)} "
                               f"given, func returned {len(flat)}")  # fmt: skip
        return outputs, form, regroup(flat, self.form), flat
