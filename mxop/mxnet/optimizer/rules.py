"""Gradient descent and its kin."""

from __future__ import annotations

import math
from typing import Any

from ... import ndarray as nd
from ... import random
from ...ndarray import NDArray
from .base import Optimizer, one_by_one, register, zeros_like


class Momentum(Optimizer):
    """What optimizers with momentum have: a state where there is any, next to a float32 copy where that is wanted.

    Several weights may be updated in one call, by lists.
    """

    operators = "sgd_mom_update", "mp_sgd_mom_update"  # with momentum; the second with a float32 copy

    def __init__(self, momentum: float = 0.0, **kwargs: Any):
        super().__init__(**kwargs)
        self.momentum = momentum

    def create_state(self, index: Any, weight: NDArray) -> NDArray | None:
        return zeros_like(weight, getattr(self, "lazy_update", True)) if self.momentum else None

    @staticmethod
    def _with_copy(copy: NDArray, state: Any) -> tuple:
        return state, copy

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        self._update_all(index, weight, grad, state, False)

    def update_multi_precision(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        self._update_all(index, weight, grad, state, self._mixed(weight))

    def _update_all(self, index: Any, weight: Any, grad: Any, state: Any, mixed: bool) -> None:
        self._update_count(index)
        momentum = {"momentum": self.momentum} if self.momentum > 0 else {}
        for i, w, g, s in one_by_one(index, weight, grad, state):
            self._step(w, g, s, mixed, momentum, lr=self._get_lr(i), wd=self._get_wd(i))

    def _step(self, weight: NDArray, grad: NDArray, state: Any, mixed: bool, momentum: dict, **rates: float) -> None:
        """Update one weight by the operator for it, such as ``mp_sgd_mom_update``."""
        mom, copy = state if mixed else (state, None)
        arrays = [a for a in (mom, copy) if a is not None]
        name = (("sgd_update", "mp_sgd_update") if mom is None else self.operators)[mixed]
        more = momentum if mom is not None else {}
        step = getattr(nd._internal if name.startswith("_") else nd, name)
        step(weight, grad, *arrays, out=weight, **rates, **more, **self._params(), **self._lazy(grad))


@register
class SGD(Momentum):
    """Gradient descent, with momentum if that is not 0; see ``nd.sgd_update`` and ``nd.sgd_mom_update``.

    Parameters
    ----------
    momentum : float
    lazy_update : bool
        Of a row_sparse gradient, update the rows that it has alone: of the weight, and of the momentum.
    **kwargs
        Of :class:`Optimizer`.

    Examples
    --------
    >>> sgd, w = mx.optimizer.SGD(learning_rate=0.5), mx.nd.array([1, 2])
    >>> sgd.update(0, w, mx.nd.array([2, 2]), sgd.create_state(0, w))
    >>> w.asnumpy().tolist()
    [0.0, 1.0]
    """

    def __init__(self, momentum: float = 0.0, lazy_update: bool = True, **kwargs: Any):
        super().__init__(momentum, **kwargs)
        self.lazy_update = lazy_update


@register
class ccSGD(SGD):
    """Another name of :class:`SGD`."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)


@register
class NAG(Momentum):
    """Nesterov's accelerated gradient; see ``nd.nag_mom_update``."""

    operators = "_nag_mom_update", "mp_nag_mom_update"


@register
class Signum(Optimizer):
    """Steps along signs: of the moving average of gradients, or of the gradient where `momentum` is 0.

    Parameters
    ----------
    learning_rate, momentum : float
    wd_lh : float
        Weight decay beside the average; `wd` is inside it.
    **kwargs
        Of :class:`Optimizer`.
    """

    def __init__(self, learning_rate: float = 0.01, momentum: float = 0.9, wd_lh: float = 0.0, **kwargs: Any):
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.momentum, self.wd_lh = momentum, wd_lh

    create_state = Momentum.create_state  # type: ignore[assignment]

    def update(self, index: Any, weight: NDArray, grad: NDArray, state: Any) -> None:
        lr, wd, _ = self._begin(index)
        if state is None:
            nd.signsgd_update(weight, grad, out=weight, lr=lr, wd=wd, **self._params())
        else:
            nd.signum_update(weight, grad, state, out=weight, lr=lr, wd=wd, **self._params("momentum", "wd_lh"))


@register
class FTML(Optimizer):
    """Follow the moving leader (Zheng and Kwok, 2017); see ``nd.ftml_update``."""

    def __init__(self, beta1: float = 0.6, beta2: float = 0.999, epsilon: float = 1e-8, **kwargs: Any):
        super().__init__(**kwargs)
        self.beta1, self.beta2, self.epsilon = beta1, beta2, epsilon

    def create_state(self, index: Any, weight: NDArray) -> tuple[NDArray, ...]:
        return tuple(zeros_like(weight) for _ in range(3))

    def update(self, index: Any, weight: NDArray, grad: NDArray, state: Any) -> None:
        lr, wd, t = self._begin(index)
        params = self._params("beta1", "beta2", "epsilon")
        if "clip_gradient" in params:
            params["clip_grad"] = params.pop("clip_gradient")
        nd.ftml_update(weight, grad, *state, out=weight, lr=lr, wd=wd, t=t, **params)


@register
class DCASGD(Optimizer):
    """Gradient descent that makes up for the delay of asynchronous gradients (Zheng et al., 2016).

    Parameters
    ----------
    momentum : float
    lamda : float
        Scales the correction.
    **kwargs
        Of :class:`Optimizer`.
    """

    def __init__(self, momentum: float = 0.0, lamda: float = 0.04, **kwargs: Any):
        super().__init__(**kwargs)
        self.momentum, self.lamda = momentum, lamda

    def create_state(self, index: Any, weight: NDArray) -> tuple:
        return zeros_like(weight) if self.momentum else None, weight.copy()

    def update(self, index: Any, weight: NDArray, grad: NDArray, state: Any) -> None:
        lr, wd, _ = self._begin(index)
        mom, before = state
        grad = self._clipped(grad * self.rescale_grad)
        step = -lr * (grad + wd * weight + self.lamda * grad * grad * (weight - before))
        if mom is not None:
            mom[:] = step = self.momentum * mom + step
        before[:] = weight
        weight[:] += step


@register
class SGLD(Optimizer):
    """Stochastic gradient Langevin dynamics: gradient descent with noise, which samples a posterior."""

    def update(self, index: Any, weight: NDArray, grad: NDArray, state: Any) -> None:
        lr, wd, _ = self._begin(index)
        grad = self._clipped(grad * self.rescale_grad)
        noise = random.normal(0, math.sqrt(lr), shape=weight.shape, dtype=weight.dtype, ctx=weight.context)
        weight[:] += noise - lr / 2 * (grad + wd * weight)


__all__ = ["DCASGD", "FTML", "NAG", "SGD", "SGLD", "Momentum", "Signum", "ccSGD"]
