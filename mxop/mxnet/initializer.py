"""``mx.init``: first values of parameters, chosen by the parameters' names.

An initializer is called with a name (an :class:`InitDesc`, which may carry the variable's attributes) and the array to fill.
"""

from __future__ import annotations

import json
import logging
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from .. import random
from ..ndarray import NDArray, load
from ..support.errors import AssertedError, OpTypeError, OpValueError, UnregisteredError, shown, warn
from ..support.missing import hooks
from . import registry

_FILLED = {"bias": 0, "gamma": 1, "beta": 0, "zero": 0, "one": 1, "quantized_bias": 0}
_KINDS = {"weight": "weight", "bias": "bias", "gamma": "gamma", "beta": "beta", "min": "zero", "max": "one",
          "weight_quantize": "quantized_weight", "bias_quantize": "quantized_bias"}  # fmt: skip
#: What a plain name, without the variable's attributes, says besides.
_STATES = {"moving_mean": "zero", "moving_var": "one", "moving_inv_var": "zero", "moving_avg": "zero"}


class InitDesc(str):
    """The name of a parameter, with the attributes of its variable.

    Parameters
    ----------
    name : str
    attrs : dict of str to str, optional
        Of these, ``__init__`` names an initializer that goes before all others.
    global_init : Initializer, optional
        What an initializer of several parts falls back to.
    """

    #: Whether beginnings of names count too, as for names without attributes: ``upsampling`` is bilinear then.
    plain = False

    def __new__(cls, name: str, attrs: Mapping[str, str] | None = None, global_init: Any = None) -> InitDesc:
        made = super().__new__(cls, name)
        made.attrs = attrs or {}
        made.global_init = global_init
        return made


class Initializer:
    """Base of initializers; derive, and define ``_init_weight(name, arr)``.

    A weight is filled by that method, ``bias`` and ``beta`` with 0, ``gamma`` with 1, by the end of the parameter's name.

    Parameters
    ----------
    **kwargs
        What :meth:`dumps` writes, so that the initializer can be made again.

    Examples
    --------
    >>> w = mx.nd.empty((2,))
    >>> mx.init.Constant(3)(mx.init.InitDesc("fc_weight"), w)
    >>> w.asnumpy().tolist(), mx.init.Constant(3).dumps()
    ([3.0, 3.0], '["constant", {"value": 3}]')
    """

    def __init__(self, **kwargs: Any):
        self._kwargs = kwargs
        self._verbose = False
        self._print_func: Callable[[Any], str] = _root_mean_square

    def set_verbosity(self, verbose: bool = False, print_func: Callable[[Any], str] | None = None) -> Initializer:
        """Log what is initialized, with what `print_func` says of the array: by default its root mean square."""
        self._verbose, self._print_func = verbose, print_func or _root_mean_square
        return self

    def dumps(self) -> str:
        """Return JSON of which ``mx.init.create`` makes the initializer again."""
        return json.dumps([type(self).__name__.lower(), self._kwargs])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Initializer):
            return NotImplemented
        return type(self) is type(other) and self._kwargs == other._kwargs

    __hash__ = None  # type: ignore[assignment]

    def __call__(self, desc: str, arr: NDArray) -> None:
        if not isinstance(desc, str):
            raise OpTypeError(f"{type(self).__name__}: the name {shown(desc)} is not a string")
        if not isinstance(desc, InitDesc):
            warn("an initializer is called with a plain name; use mx.init.InitDesc(name)", DeprecationWarning)
            kind = _kind_of_plain(desc)
        else:
            if desc.global_init is None:
                desc.global_init = self
            own = desc.attrs.get("__init__")
            if own:
                create(own)._init_weight(desc, arr)
                self._told(desc, own, arr)
                return
            kind = _kind_of_plain(desc) if desc.plain else _kind(desc, _KINDS)
        self._fill(kind, desc, arr)
        self._told(desc, kind, arr)

    def _told(self, desc: str, kind: str, arr: NDArray) -> None:
        if self._verbose:
            logging.info("Initialized %s as %s: %s", desc, kind, self._print_func(arr))

    def _fill(self, kind: str, desc: str, arr: NDArray) -> None:
        getattr(self, f"_init_{kind}")(desc, arr)

    def _init_weight(self, name: str, arr: NDArray, /) -> None:
        raise NotImplementedError(f"{type(self).__name__} does not define _init_weight(name, arr)")

    def _init_quantized_weight(self, name: str, arr: NDArray) -> None:
        arr[:] = random.randint(-127, 127, shape=arr.shape, dtype="int32").asnumpy().astype(np.int8)

    def _init_bilinear(self, name: str, arr: NDArray) -> None:
        arr[:] = _bilinear(arr.shape)

    def _init_loc_bias(self, name: str, arr: NDArray) -> None:
        arr[:] = np.array([1, 0, 0, 0, 1, 0], "float32")

    def _init_default(self, name: str, arr: NDArray) -> None:
        raise OpValueError(f"{type(self).__name__}: the name {name!r} does not say how to initialize it: it ends with "
                           f"none of {', '.join(_KINDS)}; use mx.sym.Variable({name!r}, init=mx.init...)")  # fmt: skip


def _filler(value: float) -> Callable[[Any, str, NDArray], None]:
    def fill(self: Any, name: str, arr: NDArray) -> None:
        arr[:] = value

    return fill


for _kind_name, _value in _FILLED.items():
    setattr(Initializer, f"_init_{_kind_name}", _filler(_value))


def _kind(name: str, kinds: Mapping[str, str]) -> str:
    """Return how to initialize a parameter, which the end of its name says."""
    return next((kind for end, kind in kinds.items() if name.endswith(end)), "default")


def _kind_of_plain(name: str) -> str:
    """Return how to initialize a parameter by a name without attributes, as MXNet once did."""
    if name.startswith("upsampling"):
        return "bilinear"
    if name.startswith("stn_loc") and name.endswith(("weight", "bias")):
        return "zero" if name.endswith("weight") else "loc_bias"
    return _kind(name, _STATES | _KINDS)


def _root_mean_square(x: NDArray) -> str:
    return str(float(np.sqrt(np.mean(np.square(x.asnumpy().astype("float64"))))))


def _bilinear(shape: tuple[int, ...]) -> np.ndarray:
    """Return kernels that interpolate linearly, for an enlargement by the factor that the size of the kernel says."""
    if len(shape) != 4:
        raise OpValueError(f"Bilinear: shape {shape} is not of 4 axes, a kernel of two dimensions")
    factor = math.ceil(shape[3] / 2)
    centre = (2 * factor - 1 - factor % 2) / (2 * factor)
    y, x = (1 - np.abs(np.arange(n) / factor - centre) for n in shape[2:])
    return np.broadcast_to(np.outer(y, x).astype("float32"), shape)


register = registry.get_register_func(Initializer, "initializer")
alias = registry.get_alias_func(Initializer, "initializer")
create = registry.get_create_func(Initializer, "initializer")


# ---- fixed values ----------------------------------------------------------------------------------------------------
class _WithoutParameters(Initializer):
    def __init__(self) -> None:
        super().__init__()


@register
@alias("zeros")
class Zero(_WithoutParameters):
    """Fill with 0."""

    _init_weight = _filler(0)


@register
@alias("ones")
class One(_WithoutParameters):
    """Fill with 1."""

    _init_weight = _filler(1)


@register
class Constant(Initializer):
    """Fill with a number, or copy an array."""

    def __init__(self, value: Any):
        super().__init__(value=value)
        self.value = value

    def _init_weight(self, name: str, arr: NDArray) -> None:
        arr[:] = self.value

    def dumps(self) -> str:
        value = self.value.asnumpy() if isinstance(self.value, NDArray) else self.value
        return json.dumps(["constant", {"value": value.tolist() if hasattr(value, "tolist") else value}])


@register
class Bilinear(_WithoutParameters):
    """Fill kernels of a transposed convolution so that it interpolates linearly."""

    _init_weight = Initializer._init_bilinear


# ---- random values ---------------------------------------------------------------------------------------------------
def _uniform(scale: float, arr: NDArray) -> None:
    random.uniform(-scale, scale, arr.shape, dtype=arr.dtype, ctx=arr.context, out=arr)


def _normal(sigma: float, arr: NDArray) -> None:
    random.normal(0, sigma, arr.shape, dtype=arr.dtype, ctx=arr.context, out=arr)


@register
class Uniform(Initializer):
    """Draw between ``-scale`` and ``scale``."""

    def __init__(self, scale: float = 0.07):
        super().__init__(scale=scale)
        self.scale = scale

    def _init_weight(self, name: str, arr: NDArray) -> None:
        _uniform(self.scale, arr)


@register
class Normal(Initializer):
    """Draw normal numbers of mean 0 and standard deviation `sigma`."""

    def __init__(self, sigma: float = 0.01):
        super().__init__(sigma=sigma)
        self.sigma = sigma

    def _init_weight(self, name: str, arr: NDArray) -> None:
        _normal(self.sigma, arr)


@register
class Orthogonal(Initializer):
    """Fill with `scale` times a matrix whose rows, or columns, are orthonormal (Saxe et al., 2013).

    Parameters
    ----------
    scale : float
    rand_type : {'uniform', 'normal'}
        What the matrix is made of by singular value decomposition.
    """

    def __init__(self, scale: float = 1.414, rand_type: str = "uniform"):
        super().__init__(scale=scale, rand_type=rand_type)
        if rand_type not in ("uniform", "normal"):
            raise OpValueError(f"Orthogonal: rand_type={shown(rand_type)} is neither 'uniform' nor 'normal'")
        self.scale, self.rand_type = scale, rand_type

    def _init_weight(self, name: str, arr: NDArray) -> None:
        shape = arr.shape[0], math.prod(arr.shape[1:])
        drawn = random.uniform(-1, 1, shape) if self.rand_type == "uniform" else random.normal(0, 1, shape)
        u, _, v = np.linalg.svd(drawn.asnumpy(), full_matrices=False)
        arr[:] = self.scale * (u if u.shape == shape else v).reshape(arr.shape)


@register
class Xavier(Initializer):
    """Draw with a spread by which the sizes of activations and gradients last from layer to layer (Glorot, 2010).

    Parameters
    ----------
    rnd_type : {'uniform', 'gaussian'}
    factor_type : {'avg', 'in', 'out'}
        What the spread is made of: the number of inputs of a unit, of its outputs, or the mean of both.
    magnitude : float
        The spread is ``sqrt(magnitude / factor)``: a bound, or the standard deviation.
    """

    def __init__(self, rnd_type: str = "uniform", factor_type: str = "avg", magnitude: float = 3):
        super().__init__(rnd_type=rnd_type, factor_type=factor_type, magnitude=magnitude)
        if rnd_type not in ("uniform", "gaussian"):
            raise OpValueError(f"Xavier: rnd_type={shown(rnd_type)} is neither 'uniform' nor 'gaussian'")
        if factor_type not in ("avg", "in", "out"):
            raise OpValueError(f"Xavier: factor_type={shown(factor_type)} is none of 'avg', 'in', 'out'")
        self.rnd_type, self.factor_type, self.magnitude = rnd_type, factor_type, float(magnitude)

    def _init_weight(self, name: str, arr: NDArray) -> None:
        if len(arr.shape) < 2:
            raise OpValueError(f"{type(self).__name__}: {name!r} of shape {arr.shape} has fewer than 2 axes")
        area = math.prod(arr.shape[2:])
        fan_in, fan_out = arr.shape[1] * area, arr.shape[0] * area
        factor = {"avg": (fan_in + fan_out) / 2, "in": fan_in, "out": fan_out}[self.factor_type]
        (_uniform if self.rnd_type == "uniform" else _normal)(math.sqrt(self.magnitude / factor), arr)


@register
class MSRAPrelu(Xavier):
    """Draw as :class:`Xavier` does, for layers with PReLU units of a `slope` (He et al., 2015)."""

    def __init__(self, factor_type: str = "avg", slope: float = 0.25):
        super().__init__("gaussian", factor_type, 2 / (1 + slope**2))
        self._kwargs = {"factor_type": factor_type, "slope": slope}


# ---- recurrent layers ------------------------------------------------------------------------------------------------
@register
class LSTMBias(Initializer):
    """Fill the biases of an LSTM with 0, those of the forget gate with `forget_bias`."""

    def __init__(self, forget_bias: float = 1.0):
        super().__init__(forget_bias=forget_bias)
        self.forget_bias = forget_bias

    def _init_weight(self, name: str, arr: NDArray) -> None:
        hidden = arr.shape[0] // 4
        arr[:] = 0
        arr[hidden : 2 * hidden] = self.forget_bias


#: The ends of the names of the gates of each mode of the operator ``RNN``, in the order of its parameters.
GATES = {"rnn_relu": ("",), "rnn_tanh": ("",), "lstm": ("_i", "_f", "_c", "_o"), "gru": ("_r", "_z", "_o")}


@register
class FusedRNN(Initializer):
    """Fill the one vector of parameters of the operator ``RNN``, gate by gate.

    Parameters
    ----------
    init : Initializer or its JSON, or None
        For the weights and biases of each gate; None stands for the initializer of the whole net.
    num_hidden, num_layers, mode, bidirectional
        As the operator has them.
    forget_bias : float
        For the biases of an LSTM's forget gates.
    """

    def __init__(self, init: Any, num_hidden: int, num_layers: int, mode: str, bidirectional: bool = False,
                 forget_bias: float = 1.0):  # fmt: skip
        init = create(init) if isinstance(init, str) else init
        if mode not in GATES:
            raise OpValueError(f"FusedRNN: mode={shown(mode)} is none of {', '.join(GATES)}")
        super().__init__(init=None if init is None else init.dumps(), num_hidden=num_hidden, num_layers=num_layers,
                         mode=mode, bidirectional=bidirectional, forget_bias=forget_bias)  # fmt: skip
        self._init, self._mode, self._forget_bias = init, mode, forget_bias
        self._hidden, self._layers, self._directions = num_hidden, num_layers, "lr" if bidirectional else "l"

    def parts(self, size: int) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Give the names and shapes of the parts of the vector, in their order."""
        h, gates, d = self._hidden, GATES[self._mode], len(self._directions)
        first = size // (d * h * len(gates)) - (self._layers - 1) * (h + d * h + 2) - h - 2
        layers = [(layer, way) for layer in range(self._layers) for way in self._directions]
        for layer, way in layers:
            for group, width in (("i2h", d * h if layer else first), ("h2h", h)):
                yield from ((f"{way}{layer}_{group}{gate}_weight", (h, width)) for gate in gates)
        for layer, way in layers:
            yield from ((f"{way}{layer}_{group}{gate}_bias", (h,)) for group in ("i2h", "h2h") for gate in gates)

    def _init_weight(self, desc: str, arr: NDArray) -> None:
        at = 0
        init = self._init or getattr(desc, "global_init", None)
        if init is None:
            raise OpTypeError("FusedRNN: init=None, and there is no initializer of the whole net")
        parts = list(self.parts(arr.size))
        if sum(math.prod(shape) for _, shape in parts) != arr.size or min(parts[0][1]) < 1:
            raise OpValueError(f"FusedRNN: {desc!r} has {arr.size} elements, which no width of the inputs gives")
        for name, shape in parts:
            part = arr[at : at + math.prod(shape)].reshape(shape).copy()
            if self._mode == "lstm" and name.endswith("_f_bias"):
                part[:] = self._forget_bias
            else:
                init(InitDesc(name, global_init=getattr(desc, "global_init", None)), part)
            arr[at : at + part.size] = part.reshape((-1,))
            at += part.size


# ---- from others -----------------------------------------------------------------------------------------------------
class Load:
    """Copy arrays of a file or dict by name, and fill the others with `default_init`."""

    def __init__(self, param: str | Mapping[str, NDArray], default_init: Any = None, verbose: bool = False):
        found = load(param) if isinstance(param, str) else param
        if not isinstance(found, Mapping):
            raise AssertedError(f"Load: param={shown(param)} has no names")
        self.param = {re.sub("^(arg|aux):", "", name): array for name, array in found.items()}
        self.default_init, self.verbose = default_init, verbose

    def __call__(self, name: str, arr: NDArray) -> None:
        if name in self.param:
            if arr.shape != self.param[name].shape:
                raise AssertedError(f"Load: {name!r} has shape {arr.shape}, and {self.param[name].shape} where it is from")
            arr[:] = self.param[name]
        elif self.default_init is None:
            raise AssertedError(f"Load: {name!r} is not among what was loaded, and there is no default_init")
        else:
            self.default_init(name, arr)
        if self.verbose:
            logging.info("Initialized %s by %s", name, "loading" if name in self.param else "default")


class Mixed:
    """Fill each parameter with the initializer of the first pattern, a regular expression, that its name begins with.

    Examples
    --------
    >>> w = mx.nd.empty((2,))
    >>> mx.init.Mixed(["fc1", ".*"], [mx.init.One(), mx.init.Zero()])(mx.init.InitDesc("fc1_weight"), w)
    >>> w.asnumpy().tolist()
    [1.0, 1.0]
    """

    def __init__(self, patterns: Sequence[str], initializers: Sequence[Any]):
        if len(patterns) != len(initializers):
            raise AssertedError(f"Mixed: {len(patterns)} patterns, {len(initializers)} initializers")
        self.map = [(re.compile(p), init) for p, init in zip(patterns, initializers)]

    def __call__(self, name: str, arr: NDArray) -> None:
        for pattern, init in self.map:
            if pattern.match(name):
                init(name, arr)
                return
        raise UnregisteredError(f"Mixed: no pattern fits {name!r}; '.*' as the last one fits all")


__all__ = [
    "Bilinear", "Constant", "FusedRNN", "InitDesc", "Initializer", "LSTMBias", "Load", "MSRAPrelu", "Mixed", "Normal", "One",
    "Orthogonal", "Uniform", "Xavier", "Zero", "alias", "create", "register",
]  # fmt: skip

__getattr__, __dir__ = hooks(globals(), __all__)
