"""Rows of the primitive table that draw: random bits as a function of a key and of the element's index.

``random(key)`` is a number in [0, 1) for each element, or of integer types any that is not negative; ``random_signed(key)``
lies in (-1, 1), symmetric about 0, and is never 0; ``random_gamma(key, alpha)`` and ``random_poisson(key, lam)`` have those
distributions, of scale 1, and NaN where there is none; they and ``random`` may take one key, and have nothing to do with each
other.  They are functions like any other: equal keys give equal numbers, however often and wherever they are computed.
Their first operand is an input that holds a key, which is no number of the formula's type: the interpreter hands the key's
bytes, and the index of the first element of a block, to the instruction.
"""

from __future__ import annotations

from collections.abc import Iterable

from .expr import CALL, INPUT, Expr, TraceError, walk
from .primitives import TABLE, Primitive

DRAWS = ("random", "random_signed", "random_gamma", "random_poisson")

#: Elements of a group of 64 words (see ``mxop_random.h``), by the type that is computed in.
GROUP = {"float": 64, "double": 32, "uint8_t": 64, "int32_t": 64, "int8_t": 64, "int64_t": 32}

for _name in DRAWS[:2]:
    _text = f"mx_{_name}<{{T}}>({{0}}, i)"  # i is the index of the element
    _integer = _text if _name == "random" else None
    TABLE[_name] = Primitive(_name, 1, "", _text, lambda g, key, y: (None,), _integer, costly=False)
for _name in DRAWS[2:]:
    _text = f"mx_{_name}<{{T}}>({{0}}, i, {{1}})"
    TABLE[_name] = Primitive(_name, 2, "", _text, lambda g, key, parameter, y: (None, None))


def keys_of(roots: Iterable[Expr]) -> frozenset[int]:
    """Return which inputs of a formula are keys.

    Raises
    ------
    TraceError
        When a number is drawn by what is no key.
    """
    keys, numbers = set(), set()
    for node in walk(roots):
        if node.kind == CALL and node.label in DRAWS:
            if node.args[0].kind != INPUT:
                raise TraceError(f"F.{node.label} takes an input that holds a key, got {node.args[0]!r}")
            keys.add(node.args[0].label)
            numbers.update(a.label for a in node.args[1:] if a.kind == INPUT)
        elif node.kind == CALL:
            numbers.update(a.label for a in node.args if a.kind == INPUT)
    if keys & numbers:
        raise TraceError(f"input {min(keys & numbers)} holds a key, which is no number of the formula")
    return frozenset(keys)
