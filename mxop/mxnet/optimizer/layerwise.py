"""Optimizers for large batches, with a rate for each layer."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ... import ndarray as nd
from ...ndarray import NDArray
from .base import Moments, Optimizer, named, one_by_one, register
from .rules import Momentum


@register
class LARS(Momentum):
    """Gradient descent with rates in proportion to the norm of a layer's weights over that of its gradient (You et al., 2017).

    Parameters
    ----------
    momentum : float
    lazy_update : bool
        Is ignored: gradients have all rows.
    eta : float
        Multiplies the rates.
    eps : float
        Is added to the denominator.
    momentum_correction : bool
        Scale the momentum when the learning rate changes.
    **kwargs
        Of :class:`Optimizer`.
    """

    def __init__(self, momentum: float = 0.0, lazy_update: bool = True, eta: float = 0.001, eps: float = 0,
                 momentum_correction: bool = True, **kwargs: Any):  # fmt: skip
        super().__init__(momentum, **kwargs)
        self.lazy_update, self.eta, self.eps, self.momentum_correction = lazy_update, eta, eps, momentum_correction
        self.last_lr: float | None = None
        self.cur_lr: float | None = None

    _seen = -1  # the update whose rate cur_lr is

    @staticmethod
    def _decays(name: str) -> bool:
        return name.endswith("_weight")

    def _update_all(self, index: Any, weight: Any, grad: Any, state: Any, mixed: bool) -> None:
        self._update_count(index)
        if self.num_update != self._seen:  # once for all weights
            rate = self.learning_rate
            self.last_lr, self.cur_lr = rate if self.cur_lr is None else self.cur_lr, rate
            self._seen = self.num_update
        corrected = self.momentum_correction and self.last_lr
        momentum = self.momentum * (self.cur_lr / self.last_lr if corrected else 1)
        for i, w, g, s in one_by_one(index, weight, grad, state):
            lr, wd = self._get_lr(i), self._get_wd(i)
            if not named(self, [i])[0].endswith(("gamma", "beta", "bias")):
                lr = self._layer_rate(w, g, lr, wd)
            self._step(w, g, s, mixed, {"momentum": momentum} if self.momentum > 0 else {}, lr=lr, wd=wd)

    def _layer_rate(self, weight: NDArray, grad: NDArray, lr: float, wd: float) -> float:
        rate, decay = (nd.array([number], ctx=weight.context) for number in (lr, wd))
        sums = [nd.multi_sum_sq(array, num_arrays=1) for array in (weight, grad)]
        rate = nd.multi_lars(rate, *sums, decay, eta=self.eta, eps=self.eps, rescale_grad=self.rescale_grad)
        return float(rate.asscalar())


@register
class LBSGD(Optimizer):
    """Gradient descent for large batches, which it gathers from `batch_scale` small ones, with a warm-up.

    Parameters
    ----------
    momentum : float
    multi_precision : bool
    warmup_strategy : {'linear', 'power2', 'sqrt', 'lars'}
        How the rate grows to `batch_scale` times itself, or that norms of weights and gradients say it.
    warmup_epochs : int
    batch_scale : int
    updates_per_epoch : int
    begin_epoch, num_epochs : int
    **kwargs
        Of :class:`Optimizer`.
    """

    def __init__(self, momentum: float = 0.0, multi_precision: bool = False, warmup_strategy: str = "linear",
                 warmup_epochs: int = 5, batch_scale: int = 1, updates_per_epoch: int = 32, begin_epoch: int = 0,
                 num_epochs: int = 60, **kwargs: Any):  # fmt: skip
        super().__init__(multi_precision=multi_precision, **kwargs)
        self.momentum, self.warmup_strategy, self.warmup_epochs = momentum, warmup_strategy, warmup_epochs
        self.batch_scale, self.updates_per_epoch, self.num_epochs = batch_scale, updates_per_epoch, num_epochs
        self.init_updates = begin_epoch * updates_per_epoch
        self.gathered: dict[Any, tuple[NDArray | None, int]] = {}  # of each weight: a sum of gradients, how many so far

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        sums = {i: (s["cum_grad"], s["num_cums"]) for i, s in state.get("cumgrads", {}).items()}  # MXNet's, 0 for none
        gathered = {i: (total if isinstance(total, NDArray) else None, count) for i, (total, count) in sums.items()}
        super().__setstate__({"gathered": gathered, **state})

    create_state = Momentum.create_state  # type: ignore[assignment]

    def _warmed(self, updates: int) -> float:
        """Return what multiplies the rate."""
        whole = self.warmup_epochs * self.updates_per_epoch
        if updates >= whole:
            return self.batch_scale
        part = updates / whole
        share = {"linear": part, "power2": part**2, "sqrt": math.sqrt(part)}.get(self.warmup_strategy, 0)
        return 1 + (self.batch_scale - 1) * share if whole > 1 else 1

    @staticmethod
    def _by_norms(weight: NDArray, grad: NDArray, wd: float) -> float:
        w, g = (float((a * a).sum().asscalar()) for a in (weight, grad))
        return min(max(math.sqrt(w / (g + wd * w + 1e-18)), 0.01), 100)

    def update(self, index: Any, weight: NDArray, grad: NDArray, state: Any) -> None:
        lr, wd = self._get_lr(index), self._get_wd(index)
        self._update_count(index)
        total, count = self.gathered.get(index, (None, self.init_updates))
        total, count = grad.copy() if total is None else total + grad, count + 1
        due = count % self.batch_scale == 0
        self.gathered[index] = None if due else total, count
        if not due:
            return
        grad = total / self.batch_scale
        lr *= self._by_norms(weight, grad, wd) if self.warmup_strategy == "lars" else self._warmed(count)
        if state is None:
            nd.sgd_update(weight, grad, out=weight, lr=lr, wd=wd, **self._params())
        else:
            more = {"momentum": self.momentum} if self.momentum > 0 else {}
            nd.sgd_mom_update(weight, grad, state, out=weight, lr=lr, wd=wd, **more, **self._params())


@register
class LAMB(Moments, Optimizer):
    """Adam with steps in proportion to a layer's weights (You et al., 2019); see ``nd.lamb_update_phase1``.

    Parameters
    ----------
    learning_rate, beta1, beta2, epsilon : float
    lower_bound, upper_bound : float, optional
        Limits of the norm of the weights that counts.
    bias_correction : bool
    **kwargs
        Of :class:`Optimizer`.
    """

    def __init__(self, learning_rate: float = 0.001, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-6,
                 lower_bound: float | None = None, upper_bound: float | None = None, bias_correction: bool = True,
                 **kwargs: Any):  # fmt: skip
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.beta1, self.beta2, self.epsilon, self.bias_correction = beta1, beta2, epsilon, bias_correction
        self.lower_bound, self.upper_bound = lower_bound, upper_bound

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        for one in one_by_one(index, weight, grad, state):
            self._update_one(*one, False)

    def update_multi_precision(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        mixed = self._mixed(weight)
        for one in one_by_one(index, weight, grad, state):
            self._update_one(*one, mixed)

    def _update_one(self, index: Any, weight: NDArray, grad: NDArray, state: Any, mixed: bool) -> None:
        lr, wd, t = self._begin(index)
        bounds = {name: getattr(self, name) for name in ("lower_bound", "upper_bound") if getattr(self, name)}
        params = self._params("beta1", "beta2", "epsilon", "bias_correction")
        if mixed:
            copy, state = state
            g = nd.mp_lamb_update_phase1(weight, grad, *state, copy, t=t, wd=wd, **params)
            nd.mp_lamb_update_phase2(weight, g, copy.norm(), g.norm(), copy, lr=lr, out=weight, **bounds)
        else:
            g = nd.lamb_update_phase1(weight, grad, *state, t=t, wd=wd, **params)
            nd.lamb_update_phase2(weight, g, weight.norm(), g.norm(), lr=lr, out=weight, **bounds)


__all__ = ["LAMB", "LARS", "LBSGD"]
