"""Fourier transform and count sketch, along the last axis."""

from ..opdef import composite, infer, kernel
from ..support.errors import OpValueError
from ._shared import adjoint, both_ways, on_both, times, typed_by_first


# ---- Fourier's ---------------------------------------------------------------------------------------------------------
@kernel(name="_contrib_fft")
def fft(data, *, compute_size: int = 128):
    """Fourier transform of real data along the last axis.

    Parameters
    ----------
    compute_size : int
        Has no effect.

    Returns
    -------
    NDArray or Symbol
        Twice as long: each real part, followed by its imaginary part.

    >>> mx.nd.contrib.fft(mx.nd.array([[1, 2]])).asnumpy().tolist()
    [[3.0, 0.0, -1.0, 0.0]]
    """


@kernel(name="_contrib_ifft")
def ifft(data, *, compute_size: int = 128):
    """Real part of the inverse Fourier transform along the last axis, times its length.

    Parameters
    ----------
    data : NDArray or Symbol
        Real parts, each followed by its imaginary part.
    compute_size : int
        Has no effect.

    >>> mx.nd.contrib.ifft(mx.nd.array([[3, 0, -1, 0]])).asnumpy().tolist()
    [[2.0, 4.0]]
    """


def _doubled(data, **params):
    return None if data is None else (*_axes(fft, data)[:-1], times(data[-1], 2))


def _halved(data, **params):
    if data is None:
        return None
    if _axes(ifft, data)[-1] is not None and data[-1] % 2:
        raise OpValueError(f"operator {ifft.name}: data has shape {infer.show(data)}; expected pairs along the last axis")
    return (*data[:-1], None if data[-1] is None else data[-1] // 2)


def _axes(op, shape):
    if not shape:
        raise OpValueError(f"operator {op.name}: data has no dimensions; expected at least one")
    return shape


for _op, _there, _back in ((fft, _doubled, _halved), (ifft, _halved, _doubled)):
    both_ways(_op, _there, lambda out, data, _back=_back, **params: _back(out))


def _wide(xp, x):
    return x.astype(xp.float64 if x.dtype == xp.float64 or x.dtype.kind in "iub" else xp.float32)


@on_both(fft)
def _(xp, inputs, outputs, **params):
    if inputs[0].size:
        found = xp.fft.fft(_wide(xp, inputs[0]), axis=-1)
        outputs[0][..., 0::2], outputs[0][..., 1::2] = found.real, found.imag


@on_both(ifft)
def _(xp, inputs, outputs, **params):
    if inputs[0].size:
        x = _wide(xp, inputs[0])
        pairs = x[..., 0::2] + 1j * x[..., 1::2]
        outputs[0][...] = xp.fft.ifft(pairs, axis=-1).real * pairs.shape[-1]


adjoint(fft, ifft)


# ---- sketches ----------------------------------------------------------------------------------------------------------
@composite(name="_contrib_count_sketch")
def count_sketch(F, data, h, s, *, out_dim: int, processing_batch_size: int = 32):
    """Count sketch: sums of signed elements along the last axis, at given positions.

    Parameters
    ----------
    data : NDArray or Symbol
        ``(..., inputs)``.
    h : NDArray or Symbol
        ``(1, inputs)``: the position of each element, below `out_dim`.
    s : NDArray or Symbol
        ``(1, inputs)``: the sign of each element, 1 or -1.
    out_dim : int
        Number of positions.
    processing_batch_size : int
        Has no effect.

    >>> x, places, signs = mx.nd.array([[1, 2, 3]]), mx.nd.array([[0, 1, 0]]), mx.nd.array([[1, 1, -1]])
    >>> mx.nd.contrib.count_sketch(x, places, signs, out_dim=2).asnumpy().tolist()
    [[-2.0, 2.0]]
    """
    rows = F.Reshape(data, shape=(-1, data.shape[-1]))
    signed = F.broadcast_mul(rows, F.Reshape(s, shape=(1, -1)))
    like = F.broadcast_axis(F.sum(F.zeros_like(rows), axis=1, keepdims=True), axis=1, size=out_dim)  # also of no rows
    found = F._take_grad(signed, F.Reshape(h, shape=(-1,)), like, axis=-1, mode="clip")
    return F.reshape_like(found, data, lhs_end=1, rhs_end=-1)


typed_by_first(count_sketch, others=True)


@count_sketch.infer
def _(ins, outs, *, out_dim, **params):
    data, h, s = ins
    if data is not None:
        _axes(count_sketch, data)
        size = (1, data[-1])
        h, s = (infer.same_shape(count_sketch.name, (name, "one element for each of the data's last axis"), [a, size])[0]
                for name, a in (("h", h), ("s", s)))  # fmt: skip
        names = ("output", "expected by the data")
        outs = infer.same_shape(count_sketch.name, names, [outs[0], (*data[:-1], out_dim)])[:1]
    return [data, h, s], outs
