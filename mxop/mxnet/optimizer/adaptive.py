"""Optimizers with a rate for each weight, from moving averages of its gradients."""

from __future__ import annotations

import math
from typing import Any

from ... import ndarray as nd
from ...ndarray import NDArray
from ...support.errors import OpValueError
from .base import Moments, Optimizer, register, zeros_like


@register
class Adam(Moments, Optimizer):
    """Adam (Kingma and Ba, 2014), with the averages' bias corrected in the learning rate; see ``nd.adam_update``.

    Parameters
    ----------
    learning_rate, beta1, beta2, epsilon : float
    lazy_update : bool
        Of a row_sparse gradient, update the rows that it has alone: of the weight, and of the averages.
    **kwargs
        Of :class:`Optimizer`.
    """

    def __init__(self, learning_rate: float = 0.001, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8,
                 lazy_update: bool = True, **kwargs: Any):  # fmt: skip
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.beta1, self.beta2, self.epsilon, self.lazy_update = beta1, beta2, epsilon, lazy_update

    def update(self, index: Any, weight: NDArray, grad: NDArray, state: Any) -> None:
        lr, wd, t = self._begin(index)
        lr *= math.sqrt(1 - self.beta2**t) / (1 - self.beta1**t)
        params = self._params("beta1", "beta2", "epsilon") | self._lazy(grad)
        nd.adam_update(weight, grad, *state, out=weight, lr=lr, wd=wd, **params)


@register
class AdaGrad(Optimizer):
    """AdaGrad (Duchi et al., 2011): rates fall with the sum of the gradients' squares; see ``nd.sparse.adagrad_update``."""

    def __init__(self, eps: float = 1e-7, **kwargs: Any):
        super().__init__(**kwargs)
        self.float_stable_eps = eps

    def create_state(self, index: Any, weight: NDArray) -> NDArray:
        return zeros_like(weight)

    def update(self, index: Any, weight: NDArray, grad: NDArray, state: NDArray) -> None:
        lr, wd, _ = self._begin(index)
        params = self._params(off=None) | {"epsilon": self.float_stable_eps}
        nd.sparse.adagrad_update(weight, grad, state, out=weight, lr=lr, wd=wd, **params)


@register
class GroupAdaGrad(Optimizer):
    """AdaGrad with one rate a row, without weight decay; see ``nd.contrib.group_adagrad_update``."""

    def __init__(self, eps: float = 1e-5, **kwargs: Any):
        super().__init__(**kwargs)
        self.float_stable_eps = eps

    def create_state(self, index: Any, weight: NDArray) -> NDArray:
        if len(weight.shape) != 2:
            raise OpValueError(f"GroupAdaGrad: a weight of shape {weight.shape} has no rows; expected 2 axes")
        return nd.zeros((weight.shape[0], 1), weight.context, dtype=weight.dtype)

    def update(self, index: Any, weight: NDArray, grad: NDArray, state: NDArray) -> None:
        lr, wd, _ = self._begin(index)
        if wd:
            raise OpValueError(f"GroupAdaGrad: wd={wd}; it has no weight decay")
        params = self._params(off=None) | {"epsilon": self.float_stable_eps}
        nd.contrib.group_adagrad_update(weight, grad, state, out=weight, lr=lr, **params)


@register
class RMSProp(Optimizer):
    """RMSProp (Tieleman and Hinton, 2012), or with `centered` that of Graves (2013); see ``nd.rmsprop_update``.

    Parameters
    ----------
    learning_rate : float
    gamma1 : float
        Share of the past in the moving averages.
    gamma2 : float
        Momentum, where `centered`.
    epsilon : float
    centered : bool
        Divide by the gradients' deviation instead of their root mean square.
    clip_weights : float, optional
        Weights are cut to ``-clip_weights ... clip_weights``.
    **kwargs
        Of :class:`Optimizer`.
    """

    def __init__(self, learning_rate: float = 0.001, gamma1: float = 0.9, gamma2: float = 0.9, epsilon: float = 1e-8,
                 centered: bool = False, clip_weights: float | None = None, **kwargs: Any):  # fmt: skip
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.gamma1, self.gamma2, self.epsilon = gamma1, gamma2, epsilon
        self.centered, self.clip_weights = centered, clip_weights

    def create_state(self, index: Any, weight: NDArray) -> tuple[NDArray, ...]:
        return tuple(zeros_like(weight) for _ in range(3 if self.centered else 1))

    def update(self, index: Any, weight: NDArray, grad: NDArray, state: Any) -> None:
        lr, wd, _ = self._begin(index)
        params = self._params("gamma1", "epsilon", *(["gamma2"] if self.centered else []))
        if self.clip_weights:
            params["clip_weights"] = self.clip_weights
        step = nd.rmspropalex_update if self.centered else nd.rmsprop_update
        step(weight, grad, *state, out=weight, lr=lr, wd=wd, **params)


@register
class Ftrl(Moments, Optimizer):
    """Follow the regularised leader (McMahan et al., 2013); see ``nd.ftrl_update``."""

    def __init__(self, lamda1: float = 0.01, learning_rate: float = 0.1, beta: float = 1, **kwargs: Any):
        super().__init__(**kwargs)
        self.lamda1, self.beta, self.lr = lamda1, beta, learning_rate

    def update(self, index: Any, weight: NDArray, grad: NDArray, state: Any) -> None:
        lr, wd, _ = self._begin(index)
        nd.ftrl_update(weight, grad, *state, out=weight, lr=lr, wd=wd, **self._params("lamda1", "beta"))


@register
class AdaDelta(Moments, Optimizer):
    """AdaDelta (Zeiler, 2012): the sizes of past steps take the place of a learning rate.

    Parameters
    ----------
    rho : float
        Share of the past in the moving averages.
    epsilon : float
    **kwargs
        Of :class:`Optimizer`.
    """

    def __init__(self, rho: float = 0.9, epsilon: float = 1e-5, **kwargs: Any):
        super().__init__(**kwargs)
        self.rho, self.epsilon = rho, epsilon

    def update(self, index: Any, weight: NDArray, grad: NDArray, state: Any) -> None:
        _, wd, _ = self._begin(index)
        nd._internal._adadelta_update(weight, grad, *state, out=weight, wd=wd, **self._params("rho", "epsilon", off=None))


@register
class Adamax(Moments, Optimizer):
    """Adam with the largest of the past gradients in the place of their root mean square."""

    def __init__(self, learning_rate: float = 0.002, beta1: float = 0.9, beta2: float = 0.999, **kwargs: Any):
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.beta1, self.beta2 = beta1, beta2

    def update(self, index: Any, weight: NDArray, grad: NDArray, state: Any) -> None:
        lr, wd, t = self._begin(index)
        lr /= 1 - self.beta1**t
        nd._internal._adamax_update(weight, grad, *state, out=weight, lr=lr, wd=wd, **self._params("beta1", "beta2", off=None))


@register
class Nadam(Moments, Optimizer):
    """Adam with Nesterov's momentum (Dozat, 2016).

    Parameters
    ----------
    learning_rate, beta1, beta2, epsilon : float
    schedule_decay : float
        How fast the momentum grows to `beta1`.
    **kwargs
        Of :class:`Optimizer`.

    Notes
    -----
    The product of all momenta so far belongs to the optimizer, so it grows with every weight, as MXNet's does.
    """

    def __init__(self, learning_rate: float = 0.001, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8,
                 schedule_decay: float = 0.004, **kwargs: Any):  # fmt: skip
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.beta1, self.beta2, self.epsilon, self.schedule_decay = beta1, beta2, epsilon, schedule_decay
        self.m_schedule = 1.0

    def _momentum(self, t: int) -> float:
        return self.beta1 * (1 - 0.5 * 0.96 ** (t * self.schedule_decay))

    def update(self, index: Any, weight: NDArray, grad: NDArray, state: Any) -> None:
        lr, wd, t = self._begin(index)
        now, later = self._momentum(t), self._momentum(t + 1)
        self.m_schedule *= now
        shares = {"of_grad": (1 - now) / (1 - self.m_schedule), "of_mean": later / (1 - self.m_schedule * later)}
        more = {
            **shares,
            "new2": 1 - self.beta2,
            "left2": 1 - self.beta2**t,
            **self._params("beta1", "beta2", "epsilon", off=None),
        }
        nd._internal._nadam_update(weight, grad, *state, out=weight, lr=lr, wd=wd, **more)


__all__ = ["AdaDelta", "AdaGrad", "Adam", "Adamax", "Ftrl", "GroupAdaGrad", "Nadam", "RMSProp"]
