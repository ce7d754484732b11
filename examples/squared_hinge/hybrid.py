"""Squared hinge loss as MindSpore's Custom over loops in Python, which numba compiles."""

import mxop as mx
from mxop import nd
from mxop.operator import kernel, output_tensor, parallel


@kernel
def forward(data, label):
    y = output_tensor(data.shape, data.dtype)
    for i in parallel(data.shape[0]):
        y[i] = max(1 - label[i] * data[i], 0)
        y[i] = y[i] * y[i]
    return y


def bprop(data, label, out, dout):
    slope = -2 * nd.maximum(1 - label * data, 0) * dout
    return slope * label, slope * data


call = mx.operator.Custom(forward, func_type="hybrid", bprop=bprop)
