"""Optimizer updates: one step of the weights and of the optimizer's states.

A call returns the new weights; ``out=weight`` puts them where the weights are.  States are changed in place.  A gradient is
multiplied by `rescale_grad`, then cut to ``-clip_gradient ... clip_gradient`` (if that is not negative); the weights' share
`wd` is added after that, but for Adam, FTML and RMSProp, which cut the sum.  Updates of several tensors, and of float16
weights, are in :mod:`.many_updates`.
"""

import math

from ..opdef import F, composite, elementwise, with_rule


def clipped(value, limit):
    return F.maximum(F.minimum(value, limit), -limit) if limit >= 0 else value


def scaled(grad, rescale_grad, clip_gradient):
    """Return the gradient that a step sees."""
    return clipped(rescale_grad * grad, clip_gradient)


def root(value):
    """Return the square root of a mean of squares, whose slope at 0 is 0 as that of ``sqrt(x * x)``, and not inf * 0."""
    return with_rule(F.sqrt(value), _root_slope, value)


def _root_slope(g, value, found):
    return (g * (0.5 / F.where(found == 0, math.inf, found)),)


# ---- gradient descent ------------------------------------------------------------------------------------------------
@elementwise(aliases=("_sparse_sgd_update",))
def sgd_update(weight, grad, *, lr: float, wd: float = 0.0, rescale_grad: float = 1.0, clip_gradient: float = -1.0,
               lazy_update: bool = True):  # fmt: skip
    """Step of gradient descent, ``weight - lr * (grad + wd * weight)``.

    Parameters
    ----------
    lr : float
        Learning rate.
    wd : float
        Weight decay: ``wd * weight`` is added to the gradient.
    rescale_grad : float
        Multiplies the gradient.
    clip_gradient : float
        The rescaled gradient is clipped to ``-clip_gradient ... clip_gradient``; a negative number means no clipping.

    >>> w = mx.nd.array([1, 2])
    >>> mx.nd.sgd_update(w, mx.nd.array([10, -10]), lr=0.5, clip_gradient=1, out=w).asnumpy().tolist()
    [0.5, 2.5]
    """
    return weight - lr * (scaled(grad, rescale_grad, clip_gradient) + wd * weight)


@elementwise(aliases=("_sparse_sgd_mom_update",), writes={"mom": 1})
def sgd_mom_update(weight, grad, mom, *, lr: float, momentum: float = 0.0, wd: float = 0.0, rescale_grad: float = 1.0,
                   clip_gradient: float = -1.0, lazy_update: bool = True):  # fmt: skip
    """Step of gradient descent with momentum: add ``mom``, which becomes ``momentum * mom - lr * (grad + wd * weight)``.

    Parameters as for ``sgd_update``.

    >>> w, mom = mx.nd.array([1, 2]), mx.nd.array([1, 0])
    >>> mx.nd.sgd_mom_update(w, mx.nd.array([4, 4]), mom, lr=0.25, momentum=0.5, out=w).asnumpy().tolist()
    [0.5, 1.0]
    >>> mom.asnumpy().tolist()
    [-0.5, -1.0]
    """
    mom = momentum * mom - lr * (scaled(grad, rescale_grad, clip_gradient) + wd * weight)
    return weight + mom, mom


def _nesterov(weight, grad, mom, lr, momentum, wd):
    step = lr * (grad + wd * weight)
    mom = momentum * mom - step
    return weight + momentum * mom - step, mom


@elementwise(writes={"mom": 1})
def nag_mom_update(weight, grad, mom, *, lr: float, momentum: float = 0.0, wd: float = 0.0, rescale_grad: float = 1.0,
                   clip_gradient: float = -1.0):  # fmt: skip
    """Step of Nesterov's accelerated gradient: ``sgd_mom_update`` with one step of lookahead.

    >>> w, mom = mx.nd.array([1]), mx.nd.array([1])
    >>> mx.nd.nag_mom_update(w, mx.nd.array([4]), mom, lr=0.25, momentum=0.5, out=w).item(), mom.item()
    (-0.25, -0.5)
    """
    return _nesterov(weight, scaled(grad, rescale_grad, clip_gradient), mom, lr, momentum, wd)


@elementwise(name="_nag_mom_update", writes={"mom": 1})
def nag_mom_in_place(weight, grad, mom, *, lr: float, momentum: float = 0.0, wd: float = 0.0, rescale_grad: float = 1.0,
                     clip_gradient: float = -1.0):  # fmt: skip
    """``nag_mom_update`` as optimizers make it: the momentum takes the decay from the new weight."""
    new, mom = _nesterov(weight, scaled(grad, rescale_grad, clip_gradient), mom, lr, momentum, wd)
    return new, mom - lr * wd * (new - weight)


@elementwise
def signsgd_update(weight, grad, *, lr: float, wd: float = 0.0, rescale_grad: float = 1.0, clip_gradient: float = -1.0):
    """Step of size `lr` against the sign of the gradient: ``(1 - lr * wd) * weight - lr * sign(grad)``.

    >>> mx.nd.signsgd_update(mx.nd.array([1, 2]), mx.nd.array([9, -9]), lr=0.5).asnumpy().tolist()
    [0.5, 2.5]
    """
    return (1 - lr * wd) * weight - lr * F.sign(grad)


@elementwise(writes={"mom": 1})
def signum_update(weight, grad, mom, *, lr: float, momentum: float = 0.0, wd: float = 0.0, rescale_grad: float = 1.0,
                  clip_gradient: float = -1.0, wd_lh: float = 0.0):  # fmt: skip
    """Step of size `lr` along the sign of ``mom``, a moving average of the negative gradient.

    `wd` is weight decay inside the average, `wd_lh` outside of it.

    >>> w, mom = mx.nd.array([1]), mx.nd.array([0])
    >>> mx.nd.signum_update(w, mx.nd.array([4]), mom, lr=0.25, momentum=0.5, out=w).item(), mom.item()
    (0.75, -2.0)
    """
    mom = momentum * mom - (1 - momentum) * (scaled(grad, rescale_grad, clip_gradient) + wd * weight)
    return (1 - lr * wd_lh) * weight + lr * F.sign(mom), mom


# ---- Adam and its kin ------------------------------------------------------------------------------------------------
def _moments(grad, mean, var, beta1, beta2):
    """Return the moving averages of the gradient and of its square."""
    return beta1 * mean + (1 - beta1) * grad, beta2 * var + (1 - beta2) * F.square(grad)


@elementwise(aliases=("_sparse_adam_update",), writes={"mean": 1, "var": 2})
def adam_update(weight, grad, mean, var, *, lr: float, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8,
                wd: float = 0.0, rescale_grad: float = 1.0, clip_gradient: float = -1.0, lazy_update: bool = True):  # fmt: skip
    """Step of Adam: ``weight - lr * mean / (sqrt(var) + epsilon)``, with moving averages of the gradient and its square.

    The bias correction of the averages is left to the caller, in `lr`.

    >>> w, mean, var = mx.nd.array([1]), mx.nd.array([0]), mx.nd.array([0])
    >>> mx.nd.adam_update(w, mx.nd.array([4]), mean, var, lr=1, beta1=0.5, beta2=0.75, out=w).item()
    0.0
    >>> mean.item(), var.item()
    (2.0, 4.0)
    """
    grad = clipped(rescale_grad * grad + wd * weight, clip_gradient)
    mean, var = _moments(grad, mean, var, beta1, beta2)
    return weight - lr * mean / (root(var) + epsilon), mean, var


@elementwise(name="_adamw", broadcast=True)
def adamw(weight, grad, mean, var, rescale_grad, *, lr: float, beta1: float, beta2: float, epsilon: float, wd: float,
          eta: float, clip_gradient: float):  # fmt: skip
    """Step of AdamW, and its states; all stays as it is where `rescale_grad` is 0 or no finite number."""
    new_mean, new_var = _moments(scaled(grad, rescale_grad, clip_gradient), mean, var, beta1, beta2)
    step = eta * (lr * new_mean / (root(new_var) + epsilon) + wd * weight)
    fine = F.where(F.abs(rescale_grad) < float("inf"), rescale_grad, 0)
    return F.where(fine, weight - step, weight), F.where(fine, new_mean, mean), F.where(fine, new_var, var)


@composite(name="_adamw_update", writes={"mean": 1, "var": 2}, num_outputs=3, planned=False)
def adamw_update(F, weight, grad, mean, var, rescale_grad, *, lr: float, beta1: float = 0.9, beta2: float = 0.999,
                 epsilon: float = 1e-8, wd: float = 0.0, eta: float, clip_gradient: float = -1.0):  # fmt: skip
    """Step of AdamW, which decays the weights beside Adam's step.

    The step is ``eta * (lr * mean / (sqrt(var) + epsilon) + wd * weight)``.  `rescale_grad` is an array of one number; where it
    is 0, infinite or NaN, the step is left out.  ``mx.nd.contrib.adamw_update`` takes a number as well.

    >>> w, mean, var = mx.nd.array([1]), mx.nd.array([0]), mx.nd.array([0])
    >>> mx.nd.contrib.adamw_update(w, mx.nd.array([4]), mean, var, 1, lr=1, eta=0.5, beta1=0.5, beta2=0.75, out=w).item()
    0.5
    """
    rates = {"lr": lr, "beta1": beta1, "beta2": beta2, "epsilon": epsilon, "wd": wd, "eta": eta}
    arrays = weight, grad, mean, var
    if rescale_grad.dtype == weight.dtype:
        return F._adamw(*arrays, rescale_grad, clip_gradient=clip_gradient, **rates)
    wide = [F._widened(a) for a in arrays]  # MXNet has float32 scales beside weights of every type
    new = F._adamw(*wide, F.cast(rescale_grad, dtype=wide[0].dtype), clip_gradient=clip_gradient, **rates)
    return tuple(F._cast_like(a, like) for a, like in zip(new, (weight, mean, var), strict=True))


@elementwise(name="_ftml")
def ftml(weight, grad, d, v, z, *, lr: float, beta1: float, beta2: float, epsilon: float, left1: float, left2: float, wd: float,
         rescale_grad: float, clip_grad: float):  # fmt: skip
    """Step of FTML, and its states; `left1` and `left2` are 1 less powers of `beta1` and `beta2`."""
    grad = clipped(rescale_grad * grad + wd * weight, clip_grad)
    v = beta2 * v + (1 - beta2) * F.square(grad)
    new = left1 / lr * (root(v / left2) + epsilon)
    z = beta1 * z + (1 - beta1) * grad - (new - beta1 * d) * weight
    return -z / new, new, v, z


@composite(writes={"d": 1, "v": 2, "z": 3}, num_outputs=4, planned=False)
def ftml_update(F, weight, grad, d, v, z, *, lr: float, beta1: float = 0.6, beta2: float = 0.999, epsilon: float = 1e-8,
                t: int, wd: float = 0.0, rescale_grad: float = 1.0, clip_grad: float = -1.0):  # fmt: skip
    """Step of FTML (follow the moving leader); `t` counts steps from 1.

    >>> w, d, v, z = (mx.nd.array([x]) for x in (1, 0, 0, 0))
    >>> f"{mx.nd.ftml_update(w, mx.nd.array([4]), d, v, z, lr=0.5, t=1, out=w).item():.4f}"
    '0.5000'
    """
    rates = {"lr": lr, "beta1": beta1, "beta2": beta2, "epsilon": epsilon, "wd": wd, "rescale_grad": rescale_grad}
    left = {"left1": 1 - beta1**t, "left2": 1 - beta2**t}
    return F._ftml(weight, grad, d, v, z, clip_grad=clip_grad, **rates, **left)


@elementwise(aliases=("_sparse_ftrl_update",), writes={"z": 1, "n": 2})
def ftrl_update(weight, grad, z, n, *, lr: float, lamda1: float = 0.01, beta: float = 1.0, wd: float = 0.0,
                rescale_grad: float = 1.0, clip_gradient: float = -1.0):  # fmt: skip
    """Step of FTRL (follow the regularized leader): weights with ``|z| <= lamda1`` are 0.

    >>> w, z, n = (mx.nd.array([x]) for x in (1, 0, 0))
    >>> f"{mx.nd.ftrl_update(w, mx.nd.array([4]), z, n, lr=2, lamda1=0.5, out=w).item():.4f}", z.item(), n.item()
    ('-0.6000', 2.0, 16.0)
    """
    grad = scaled(grad, rescale_grad, clip_gradient)
    more = n + F.square(grad)
    z = z + grad - (root(more) - root(n)) * weight / lr
    return F.where(F.abs(z) > lamda1, (F.sign(z) * lamda1 - z) / ((beta + root(more)) / lr + wd), 0), z, more


@elementwise(writes={"n": 1})
def rmsprop_update(weight, grad, n, *, lr: float, gamma1: float = 0.95, epsilon: float = 1e-8, wd: float = 0.0,
                   rescale_grad: float = 1.0, clip_gradient: float = -1.0, clip_weights: float = -1.0):  # fmt: skip
    """Step of RMSProp: ``weight - lr * grad / sqrt(n + epsilon)``, with the moving average ``n`` of the squared gradient.

    Weights are clipped to ``-clip_weights ... clip_weights``, unless that is negative.

    >>> w, n = mx.nd.array([1]), mx.nd.array([0])
    >>> mx.nd.rmsprop_update(w, mx.nd.array([4]), n, lr=0.5, gamma1=0.75, out=w).item(), n.item()
    (0.0, 4.0)
    """
    grad = clipped(rescale_grad * grad + wd * weight, clip_gradient)
    n = gamma1 * n + (1 - gamma1) * F.square(grad)
    return clipped(weight - lr * grad / F.sqrt(n + epsilon), clip_weights), n


@elementwise(writes={"n": 1, "g": 2, "delta": 3})
def rmspropalex_update(weight, grad, n, g, delta, *, lr: float, gamma1: float = 0.95, gamma2: float = 0.9,
                       epsilon: float = 1e-8, wd: float = 0.0, rescale_grad: float = 1.0, clip_gradient: float = -1.0,
                       clip_weights: float = -1.0):  # fmt: skip
    """Step of RMSProp in A. Graves' version: with the variance of the gradient instead of its square, and momentum.

    >>> w, n, g, delta = (mx.nd.array([x]) for x in (1, 0, 0, 0))
    >>> f"{mx.nd.rmspropalex_update(w, mx.nd.array([4]), n, g, delta, lr=0.5, gamma1=0.5, out=w).item():.4f}"
    '0.0000'
    """
    grad = clipped(rescale_grad * grad + wd * weight, clip_gradient)
    n, g = gamma1 * n + (1 - gamma1) * F.square(grad), gamma1 * g + (1 - gamma1) * grad
    delta = gamma2 * delta - lr * grad / F.sqrt(n - F.square(g) + epsilon)
    return clipped(weight + delta, clip_weights), n, g, delta


# ---- steps that MXNet writes in Python: mxop.optimizer calls these ---------------------------------------------------
@elementwise(name="_adadelta_update", writes={"squares": 1, "steps": 2})
def adadelta_update(weight, grad, squares, steps, *, rho: float, epsilon: float, wd: float, rescale_grad: float = 1.0,
                    clip_gradient: float = -1.0):  # fmt: skip
    """Step of AdaDelta: the gradient times the root of the mean square of past steps over that of past gradients."""
    grad = scaled(grad, rescale_grad, clip_gradient)
    squares = rho * squares + (1 - rho) * F.square(grad)
    step = F.sqrt(steps + epsilon) / F.sqrt(squares + epsilon) * grad
    return weight - (step + wd * weight), squares, rho * steps + (1 - rho) * F.square(step)


@elementwise(name="_adamax_update", writes={"mean": 1, "largest": 2})
def adamax_update(weight, grad, mean, largest, *, lr: float, beta1: float, beta2: float, wd: float, rescale_grad: float = 1.0,
                  clip_gradient: float = -1.0):  # fmt: skip
    """Step of Adamax, none where there was no gradient yet."""
    grad = clipped(rescale_grad * grad + wd * weight, clip_gradient)
    mean, largest = beta1 * mean + (1 - beta1) * grad, F.maximum(beta2 * largest, F.abs(grad))
    return weight - lr * mean / F.where(largest, largest, 1), mean, largest


@elementwise(name="_nadam_update", writes={"mean": 1, "var": 2})
def nadam_update(weight, grad, mean, var, *, lr: float, beta1: float, beta2: float, new2: float, epsilon: float,
                 of_grad: float, of_mean: float, left2: float, wd: float, rescale_grad: float = 1.0,
                 clip_gradient: float = -1.0):  # fmt: skip
    """Step of Nadam along ``of_grad * grad + of_mean * mean``, which looks one step ahead; `left2` corrects ``var``.

    `new2` is ``1 - beta2``, of which float32 would lose digits.
    """
    grad = clipped(rescale_grad * grad + wd * weight, clip_gradient)
    mean, var = beta1 * mean + (1 - beta1) * grad, beta2 * var + new2 * F.square(grad)
    return weight - lr * (of_grad * grad + of_mean * mean) / (root(var / left2) + epsilon), mean, var


# ---- AdaGrad ---------------------------------------------------------------------------------------------------------
@elementwise(name="_sparse_adagrad_update", writes={"history": 1})
def adagrad_update(weight, grad, history, *, lr: float, epsilon: float = 1e-7, wd: float = 0.0, rescale_grad: float = 1.0,
                   clip_gradient: float = -1.0):  # fmt: skip
    """Step of AdaGrad: ``weight - lr * grad / sqrt(history + epsilon)``, where ``history`` is the sum of squared gradients.

    >>> w, history = mx.nd.array([1]), mx.nd.array([0])
    >>> mx.nd.sparse.adagrad_update(w, mx.nd.array([4]), history, lr=0.5, out=w).item(), history.item()
    (0.5, 16.0)
    """
    grad = scaled(grad, rescale_grad, clip_gradient)
    history = history + F.square(grad)
    return weight - lr * (grad / F.sqrt(history + epsilon) + wd * weight), history


@elementwise(name="_scaled_gradient")
def scaled_gradient(grad, *, rescale_grad: float, clip_gradient: float):
    """The gradient, multiplied and cut."""
    return scaled(grad, rescale_grad, clip_gradient)


@elementwise(name="_group_step", broadcast=True)
def group_step(weight, grad, history, *, lr: float, epsilon: float):
    """Step of AdaGrad whose history is one number a row."""
    return weight - lr * grad / F.sqrt(history + epsilon)


@composite(name="_contrib_group_adagrad_update", writes={"history": 1}, num_outputs=2, planned=False)
def group_adagrad_update(F, weight, grad, history, *, lr: float, rescale_grad: float = 1.0, clip_gradient: float = -1.0,
                         epsilon: float = 1e-5):  # fmt: skip
    """Step of AdaGrad with one learning rate for each row: ``history``, ``(rows, 1)``, sums the mean squares of each row.

    >>> w, history = mx.nd.array([[1, 1]]), mx.nd.array([[0]])
    >>> mx.nd.contrib.group_adagrad_update(w, mx.nd.array([[1, 7]]), history, lr=0.5, out=w).asnumpy().round(3).tolist()
    [[0.8999999761581421, 0.30000001192092896]]
    >>> history.asnumpy().tolist()
    [[25.0]]
    """
    grad = F._scaled_gradient(grad, rescale_grad=rescale_grad, clip_gradient=clip_gradient)
    history = history + F.mean(F.square(grad), axis=0, exclude=True, keepdims=True)
    return F._group_step(weight, grad, history, lr=lr, epsilon=epsilon), history


# ---- LAMB ------------------------------------------------------------------------------------------------------------
@elementwise(name="_lamb_direction")
def lamb_direction(weight, grad, mean, var, *, beta1: float, beta2: float, epsilon: float, left1: float, left2: float,
                   wd: float, rescale_grad: float, clip_gradient: float):  # fmt: skip
    """Direction of LAMB's step, and its states, whose bias `left1` and `left2` correct."""
    mean, var = _moments(scaled(grad, rescale_grad, clip_gradient), mean, var, beta1, beta2)
    return mean / left1 / (root(var / left2) + epsilon) + wd * weight, mean, var


@composite(writes={"mean": 1, "var": 2}, num_outputs=3, planned=False)
def lamb_update_phase1(F, weight, grad, mean, var, *, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-6, t: int,
                       bias_correction: bool = True, wd: float, rescale_grad: float = 1.0,
                       clip_gradient: float = -1.0):  # fmt: skip
    """Direction of a step of LAMB: Adam's, plus weight decay; `t` counts steps from 1.

    >>> w, mean, var = mx.nd.array([1]), mx.nd.array([0]), mx.nd.array([0])
    >>> f"{mx.nd.lamb_update_phase1(w, mx.nd.array([4]), mean, var, t=1, wd=0.5).item():.4f}"
    '1.5000'
    """
    rates = {"beta1": beta1, "beta2": beta2, "epsilon": epsilon, "wd": wd, "rescale_grad": rescale_grad}
    left = [1 - beta1**t, 1 - beta2**t] if bias_correction else [1.0, 1.0]
    return F._lamb_direction(weight, grad, mean, var, left1=left[0], left2=left[1], clip_gradient=clip_gradient, **rates)


@elementwise(name="_lamb_step", broadcast=True)
def lamb_step(weight, g, r1, r2, *, lr: float, lower_bound: float, upper_bound: float):
    """Step of LAMB along `g`."""
    if lower_bound >= 0:
        r1 = F.maximum(r1, lower_bound)
    if upper_bound >= 0:
        r1 = F.minimum(r1, upper_bound)
    return weight - lr * F.where(r1, F.where(r2, r1 / F.where(r2, r2, 1), 1), 1) * g


@composite(planned=False)
def lamb_update_phase2(F, weight, g, r1, r2, *, lr: float, lower_bound: float = -1.0, upper_bound: float = -1.0):
    """Step of LAMB along `g` (of ``lamb_update_phase1``), scaled by the norm of the weights: ``weight - lr * r1 / r2 * g``.

    Parameters
    ----------
    r1, r2 : NDArray or Symbol
        One number each: the norms of `weight` and `g`.  If one is 0, their ratio is taken as 1.
    lower_bound, upper_bound : float
        Limits of `r1`; a negative one means no limit.

    >>> w, g = mx.nd.array([3, 4]), mx.nd.array([0, 2])
    >>> mx.nd.lamb_update_phase2(w, g, w.norm(), g.norm(), lr=0.5, out=w).asnumpy().tolist()
    [3.0, 1.5]
    """
    return F._lamb_step(weight, g, r1, r2, lr=lr, lower_bound=lower_bound, upper_bound=upper_bound)


@elementwise
def multi_lars(lrs, weights_sum_sq, grads_sum_sq, wds, *, eta: float, eps: float, rescale_grad: float = 1.0):
    """Learning rates of LARS, one for each layer: proportional to the norm of its weights divided by that of its gradient.

    Parameters
    ----------
    lrs, weights_sum_sq, grads_sum_sq, wds : NDArray or Symbol
        Of each layer: the learning rate, the sums of squares (see ``multi_sum_sq``), and the weight decay.
    eta : float
        Multiplies the rates.
    eps : float
        Is added to the denominator.
    rescale_grad : float
        Multiplies the gradients' norms.

    >>> lr, w, g, wd = (mx.nd.array([x]) for x in (0.5, 16, 4, 0.25))
    >>> mx.nd.multi_lars(lr, w, g, wd, eta=3, eps=0).item()
    2.0
    """
    w, g = root(weights_sum_sq), rescale_grad * root(grads_sum_sq)
    trusted = F.minimum(w, g) > 0
    return F.where(trusted, lrs * eta * w / F.where(trusted, g + wds * w + eps, 1), lrs)
