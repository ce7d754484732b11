"""Random primitives: random bits as a function of a key and of the element's index.

``random(key)`` is a number in [0, 1) for each element, or in integer types any non-negative one.  ``random_signed(key)`` is in
(-1, 1), symmetric about 0, and never 0.  ``random_gamma(key, alpha)`` and ``random_poisson(key, lam)`` have these
distributions, of scale 1, or are NaN for invalid parameters; with the same key they are independent of ``random``.
Equal keys give equal numbers, however often and wherever they are computed.  The first operand is an input that holds a key,
whose type is not the formula's: the interpreter passes the key's bytes, and the index of the first element of a block.
"""

from __future__ import annotations

from collections.abc import Iterable

from .expr import CALL, INPUT, Expr, TraceError, walk
from .primitives import TABLE, Primitive

DRAWS = ("random", "random_signed", "random_gamma", "random_poisson")

#: Elements of a group of 64 words (see ``mxop_random.h``), by compute type.
GROUP = {"float": 64, "double": 32, "uint8_t": 64, "int32_t": 64, "int8_t": 64, "int64_t": 32}

for _name in DRAWS[:2]:
    _text = f"mx_{_name}<{{T}}>({{0}}, i)"  # i is the index of the element
    _integer = _text if _name == "random" else None
    TABLE[_name] = Primitive(_name, 1, "", _text, lambda g, key, y: (None,), _integer, costly=False)
for _name in DRAWS[2:]:
    _text = f"mx_{_name}<{{T}}>({{0}}, i, {{1}})"
    TABLE[_name] = Primitive(_name, 2, "", _text, lambda g, key, parameter, y: (None, None))


def keys_of(roots: Iterable[Expr]) -> frozenset[int]:
    """Return the indices of a formula's inputs that are keys.

    Raises
    ------
    TraceError
        If a draw's first operand is not an input, or a key is used as a number, too.
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
        raise TraceError(f"input {min(keys & numbers)} holds a key, which is not a number of the formula")
    return frozenset(keys)
