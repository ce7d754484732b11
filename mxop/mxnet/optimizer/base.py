"""What all optimizers have: learning rates, weight decay, counts of updates; names to make them by."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from ... import ndarray as nd
from ...ndarray import NDArray
from ...support.errors import DeprecatedError, OpTypeError, WarnedValueError, closest, ends_at_caller, shown, warn
from .. import registry


def _no_parameter(kind: type, name: str) -> OpTypeError:
    """Return the error for an argument that neither an optimizer's class takes nor those that hand theirs on to it."""
    known: dict[str, None] = {}
    for base in kind.__mro__[:-1]:
        parameters = list(inspect.signature(base.__init__).parameters.values())[1:]
        known |= dict.fromkeys(p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD)
    return OpTypeError(f"{kind.__name__} has no parameter {name!r}{closest(name, known)}; its parameters are: "
                       f"{', '.join(known)}")  # fmt: skip


class Optimizer:
    """Base of optimizers; derive, and define ``create_state(index, weight)`` and ``update(index, weight, grad, state)``.

    Parameters
    ----------
    rescale_grad : float
        Multiplies gradients: 1 over the size of the batch, as a rule.
    param_idx2name : dict of int to str, optional
        The names of the weights.  Where names are known, weight decay leaves out what ends in neither ``_weight`` nor
        ``_gamma``.
    wd : float
        Weight decay.
    clip_gradient : float, optional
        Gradients are cut to ``-clip_gradient ... clip_gradient``.
    learning_rate : float, optional
        0.01 where there is no `lr_scheduler`; else it replaces the scheduler's ``base_lr``.
    lr_scheduler : LRScheduler, optional
        The rate as a function of the number of updates.
    sym : Symbol, optional
        Attributes ``__lr_mult__`` and ``__wd_mult__`` of its variables multiply their rate and decay.
    begin_num_update : int
        What counts of updates begin with.
    multi_precision : bool
        Keep a float32 copy of float16 weights, and update that.
    param_dict : dict of int to object, optional
        Objects with ``lr_mult`` and ``wd_mult`` (Gluon's parameters), by the index of their weights.
    """

    #: Registered classes by name, in small letters.
    opt_registry: ClassVar[dict[str, type]] = {}

    def __init__(self, rescale_grad: float = 1.0, param_idx2name: Mapping[int, str] | None = None, wd: float = 0.0,
                 clip_gradient: float | None = None, learning_rate: float | None = None,
                 lr_scheduler: Callable[[int], float] | None = None, sym: Any = None, begin_num_update: int = 0,
                 multi_precision: bool = False, param_dict: Mapping[int, Any] | None = None, **unknown: Any):  # fmt: skip
        if unknown:
            raise _no_parameter(type(self), next(iter(unknown)))
        if param_idx2name is not None and not isinstance(param_idx2name, Mapping):
            raise OpTypeError(f"Optimizer: param_idx2name={shown(param_idx2name)} is not a dict of indices to names")
        for name, value in {"learning_rate": learning_rate, "wd": wd}.items():
            if isinstance(value, str):
                raise OpTypeError(f"{type(self).__name__}: {name}={shown(value)} is text; expected a number")
        if lr_scheduler is None and learning_rate is None:
            learning_rate = 0.01
        elif learning_rate is not None and hasattr(lr_scheduler, "base_lr"):
            if lr_scheduler.base_lr != learning_rate:
                replaced = f"replaces the scheduler's base_lr={lr_scheduler.base_lr}"
                warn(f"{type(self).__name__}: learning_rate={learning_rate} {replaced}")
            lr_scheduler.base_lr = learning_rate
        self.rescale_grad, self.lr, self.lr_scheduler, self.wd = rescale_grad, learning_rate, lr_scheduler, wd
        self.clip_gradient, self.multi_precision = clip_gradient, multi_precision
        self.begin_num_update = self.num_update = begin_num_update
        self._all_index_update_counts: dict[int, dict[Any, int]] = {0: {}}
        self._index_update_count = self._all_index_update_counts[0]
        self.aggregate_num = 0  # an own class may take so many weights in one call of update
        self.idx2name = dict(param_idx2name or {})
        self.sym_info = (sym.attr_dict(), sym.list_arguments()) if sym is not None else ()
        self.param_dict = param_dict or {}
        self.set_lr_mult({})
        self.set_wd_mult({})

    @staticmethod
    def register(klass: registry.Klass) -> registry.Klass:
        """Register an optimizer under its class's name."""
        return registry.get_register_func(Optimizer, "optimizer")(klass)

    @staticmethod
    @ends_at_caller
    def create_optimizer(name: str, **kwargs: Any) -> Optimizer:
        """Make the optimizer of a name.

        Examples
        --------
        >>> mx.optimizer.create("sgd", momentum=0.9).momentum
        0.9
        """
        return registry.get_create_func(Optimizer, "optimizer")(name, **kwargs)

    # ---- rates --------------------------------------------------------------------------------------------------------
    @property
    def learning_rate(self) -> float:
        """The rate of the last update, before it is multiplied for single weights."""
        return self.lr if self.lr_scheduler is None else self.lr_scheduler(self.num_update)

    def set_learning_rate(self, lr: float) -> None:
        """Set the rate, where no scheduler does."""
        if self.lr_scheduler is not None:
            raise WarnedValueError("set_learning_rate: the optimizer's lr_scheduler sets the learning rate")
        self.lr = lr

    def set_lr_scale(self, args_lrscale: Any) -> None:
        """Raise: :meth:`set_lr_mult` took its place in MXNet."""
        raise DeprecatedError("set_lr_scale is set_lr_mult now")

    def set_lr_mult(self, args_lr_mult: Mapping[Any, float]) -> None:
        """Set what multiplies the rate of single weights, by name or index; other weights get their symbol's again."""
        self.lr_mult: dict[Any, float] = {**self._of_symbol("__lr_mult__"), **args_lr_mult}

    def set_wd_mult(self, args_wd_mult: Mapping[Any, float]) -> None:
        """Set what multiplies the decay of single weights, by name or index."""
        free = {name: 0.0 for name in self.idx2name.values() if not self._decays(name)}
        self.wd_mult: dict[Any, float] = {**free, **self._of_symbol("__wd_mult__"), **args_wd_mult}

    @staticmethod
    def _decays(name: str) -> bool:
        return name.endswith(("_weight", "_gamma"))

    def _of_symbol(self, attribute: str) -> dict[str, float]:
        if not self.sym_info:
            return {}
        attributes, names = self.sym_info
        return {n: float(attributes[n][attribute]) for n in names if attribute in attributes.get(n, ())}

    def _multiplied(self, value: float, index: Any, which: str) -> float:
        if index in self.param_dict:
            return value * getattr(self.param_dict[index], which)
        table = getattr(self, which)
        return value * table.get(index, table.get(self.idx2name.get(index), 1.0))

    def _get_lrs(self, indices: Iterable[Any]) -> list[float]:
        rate = self.learning_rate
        return [self._multiplied(rate, index, "lr_mult") for index in indices]

    def _get_wds(self, indices: Iterable[Any]) -> list[float]:
        return [self._multiplied(self.wd, index, "wd_mult") for index in indices]

    def _get_lr(self, index: Any) -> float:
        return self._get_lrs([index])[0]

    def _get_wd(self, index: Any) -> float:
        return self._get_wds([index])[0]

    # ---- counts -------------------------------------------------------------------------------------------------------
    def _set_current_context(self, device_id: int) -> None:
        """Count the updates of another device's weights."""
        self._index_update_count = self._all_index_update_counts.setdefault(device_id, {})

    def _update_count(self, index: Any) -> None:
        counts = self._index_update_count
        for one in index if isinstance(index, (list, tuple)) else [index]:
            counts[one] = counts.get(one, self.begin_num_update) + 1
            self.num_update = max(counts[one], self.num_update)

    def _begin(self, index: Any) -> tuple[float, float, int]:
        """Count an update; return the weight's rate, its decay, and which update it is."""
        self._update_count(index)
        return self._get_lr(index), self._get_wd(index), self._index_update_count[index]

    # ---- steps --------------------------------------------------------------------------------------------------------
    def create_state(self, index: Any, weight: NDArray) -> Any:
        """Return the states of a weight: None, an array, or a tuple of them."""
        return None

    def create_state_multi_precision(self, index: Any, weight: NDArray) -> Any:
        """Return the states of a weight, with a float32 copy of a float16 one."""
        if self._mixed(weight):
            copy = weight.astype("float32")
            return self._with_copy(copy, self.create_state(index, copy))
        if weight.dtype == np.float16:
            warn(f"{type(self).__name__} keeps its states in float16; multi_precision=True keeps them in float32")
        return self.create_state(index, weight)

    @staticmethod
    def _with_copy(copy: NDArray, state: Any) -> tuple:
        return copy, state

    def _mixed(self, weight: Any) -> bool:
        """Return whether a weight, or the first of some, has a float32 copy."""
        first = weight[0] if isinstance(weight, (list, tuple)) else weight
        return self.multi_precision and first.dtype == np.float16

    def update(self, index: Any, weight: NDArray, grad: NDArray, state: Any) -> None:
        """Change a weight and its states by a gradient."""
        raise NotImplementedError(f"{type(self).__name__} does not define update(index, weight, grad, state)")

    def update_multi_precision(self, index: Any, weight: NDArray, grad: NDArray, state: Any) -> None:
        """Change a weight, by way of its float32 copy where it has one."""
        if not self._mixed(weight):
            self.update(index, weight, grad, state)
            return
        copy, state = state
        self.update(index, copy, grad.astype("float32"), state)
        weight[:] = copy.astype(weight.dtype)

    def _params(self, *names: str, off: Any = 0) -> dict[str, Any]:
        """Return parameters of the update operators: those named, rescaling, and clipping unless that is None or `off`."""
        found = {name: getattr(self, name) for name in ("rescale_grad", *names)}
        return found if self.clip_gradient in (None, off) else found | {"clip_gradient": self.clip_gradient}

    def _lazy(self, grad: NDArray) -> dict[str, bool]:
        """Return what operators that can leave rows as they are take beside, where the gradient has few rows."""
        lazy = getattr(self, "lazy_update", None)
        return {} if lazy is None or grad.stype == "default" else {"lazy_update": lazy}

    def _clipped(self, grad: NDArray) -> NDArray:
        return grad if self.clip_gradient is None else nd.clip(grad, -self.clip_gradient, self.clip_gradient)

    def __getstate__(self) -> dict[str, Any]:
        left_out = "param_dict", "_index_update_count"  # which is one of _all_index_update_counts
        return {name: value for name, value in vars(self).items() if name not in left_out}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        vars(self).update(state)
        self.param_dict = {}
        self._set_current_context(0)


Optimizer.opt_registry = registry.table_of(Optimizer)
register = Optimizer.register
create = Optimizer.create_optimizer


def zeros_like(weight: NDArray, stored_alike: bool = True) -> NDArray:
    """Return a new state: zeros of the weight's shape, type and device, and stored as the weight is."""
    if stored_alike and weight.stype != "default":
        return nd.zeros(weight.shape, weight.context, dtype=weight.dtype, stype=weight.stype)
    return nd.full(weight.shape, 0, weight.context, weight.dtype)


def one_by_one(index: Any, *lists: Any) -> Iterator[tuple]:
    """Give (index, weight, grad, state) of one weight, or of each of the weights in lists."""
    if isinstance(index, (list, tuple)):
        yield from zip(index, *lists)
    else:
        yield index, *lists


class Moments:
    """Mixin of optimizers that keep two arrays: moving averages, as a rule."""

    number = 2

    def create_state(self, index: Any, weight: NDArray) -> tuple[NDArray, ...]:
        """Return arrays of zeros."""
        return tuple(zeros_like(weight, getattr(self, "lazy_update", True)) for _ in range(self.number))


@register
class Test(Optimizer):
    """Add the gradient to the weight, and keep a copy: for tests of what is around an optimizer."""

    __test__ = False  # no test of pytest's

    def create_state(self, index: Any, weight: NDArray) -> NDArray:
        return zeros_like(weight)

    def update(self, index: Any, weight: NDArray, grad: NDArray, state: NDArray) -> None:
        weight[:] += grad * self.rescale_grad
        state[:] = weight


def named(owner: Optimizer, index: Sequence[Any]) -> list[str]:
    """Return the names of weights; those without one are called by their index."""
    return [str(owner.idx2name.get(i, i)) for i in index]


__all__ = ["Moments", "Optimizer", "Test", "create", "named", "one_by_one", "register", "zeros_like"]
