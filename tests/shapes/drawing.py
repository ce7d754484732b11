"""Cases, and how they are drawn: sizes around those that kernels know, elements, parameters."""

from dataclasses import dataclass

import numpy as np

#: Sizes are drawn around these: vectors, tiles, blocks, digits and parts of the kernels.
NEAR = (
    1,
    2,
    4,
    8,
    12,
    16,
    24,
    32,
    48,
    64,
    96,
    128,
    192,
    256,
    384,
    512,
    768,
    1024,
    2048,
    4096,
    8192,
    16384,
    32768,
    65536,
)
#: Numbers of elements that a case may have, and how often: the larger ones are worth threads, or exceed caches.
ROOMS = (256, 4096, 50_000, 300_000)
LAYOUTS = ("dense", "part", "steps", "backward", "mixed")
MODES = ("eager", "eager", "bind", "bind", "compiled", "eval")


@dataclass
class Input:
    """Elements of an input; `fixed`: of labels, indices, lengths, which are no variables and keep their type."""

    values: np.ndarray
    fixed: bool = False


@dataclass
class Case:
    """A call of the package, and the same in `Value`s.

    `call(F, *arrays)` takes arrays or symbols, `reference(*values)` Values for variables and NumPy arrays for fixed inputs.
    """

    name: str
    inputs: list
    call: object
    reference: object
    modes: tuple = MODES
    dtypes: tuple = ("float32", "float32", "float64", "float16")
    slack: float = 1.0  # multiplies the tolerance
    tags: tuple = ()
    gradient: object = None  # (heads, *values) -> gradients of variables, where these are not the reference's
    differentiable: bool = True


def operator(op, inputs, function, *, text="", **params):
    """Return the case of one operator with parameters."""
    options = {"modes": (*MODES, "out")} | {k: params.pop(k) for k in list(params) if k in Case.__dataclass_fields__}

    def call(F, *arrays):
        target = F
        for part in op.split("."):
            target = getattr(target, part)
        return target(*arrays, **params)

    written = ", ".join(f"{k}={v!r}" for k, v in params.items())
    return Case(f"{op}(..., {written}){text}", inputs, call, function, tags=(op, *options.pop("tags", ())), **options)


class Draw:
    """Draws cases; the same seed gives the same."""

    def __init__(self, *seed):
        self.rng = np.random.default_rng(seed)
        self.room = int(self.rng.choice(ROOMS, p=(0.35, 0.4, 0.19, 0.06)))

    def flag(self, chance=0.5):
        return bool(self.rng.random() < chance)

    def pick(self, items):
        return items[self.rng.integers(len(items))]

    def integer(self, low, high):
        """Return an integer of low...high, both included."""
        return int(self.rng.integers(low, high + 1))

    def size(self, most=130, least=1):
        """Return a size of least...most: near one that kernels know, or any."""
        most = max(most, least)
        if self.flag(0.3):
            return self.integer(least, min(most, 40))
        near = [n + d for n in NEAR for d in (-1, 0, 1) if least <= n + d <= most]
        return self.pick(near) if near else most

    def sizes(self, n, room=None, most=70_000, empty=0.02):
        """Return n sizes whose product fits the room, large ones anywhere; with a small chance, one is 0."""
        left, found = room or self.room, [1] * n
        for k in self.rng.permutation(n):
            found[k] = self.size(min(most, max(left, 1)))
            left //= found[k]
        if n and self.flag(empty):
            found[self.integer(0, n - 1)] = 0
        return tuple(found)

    def shape(self, least=1, most=4, **options):
        return self.sizes(self.integer(least, most), **options)

    def axis(self, ndim):
        axis = self.integer(0, ndim - 1)
        return axis - ndim if self.flag(0.4) else axis

    def axes(self, ndim, least=1):
        """Return some axes, in order."""
        chosen = self.rng.permutation(ndim)[: self.integer(least, ndim)]
        return tuple(sorted(int(k) for k in chosen))

    def real(self, *shape, low=-1.0, high=1.0):
        return Input(self.rng.uniform(low, high, shape))

    def distinct(self, *shape):
        """Return elements that differ by 1/1024 at least, as float16 holds up to 2,048 of."""
        n = int(np.prod(shape))
        return Input(((self.rng.permutation(n) - n // 2) / 1024.0).reshape(shape))

    def whole(self, low, high, shape, dtype=None):
        """Return whole numbers of low...high, both included, of a type of indices."""
        dtype = dtype or self.pick(["int32", "int64", "float32"])
        return Input(self.rng.integers(low, high + 1, shape).astype(dtype), fixed=True)

    def layout(self):
        return self.pick(LAYOUTS) if self.flag(0.6) else "dense"
