"""One side of ``tools/against_mxnet.py``: runs a call, and its gradients, in the package that is given as `mx`.

As a program it runs MXNet 1.9.1, in MXNet's own Python, and answers what it reads from its standard input: a line of JSON,
then the bytes of the arrays that it names.  So it imports NumPy alone, and nothing of Python after 3.11.
"""

import ctypes
import json
import os
import sys

import numpy as np


# ---- messages --------------------------------------------------------------------------------------------------------
def send(stream, head, arrays):
    """Write a message."""
    arrays = [np.asarray(a, order="C") for a in arrays]
    head = dict(head, arrays=[[a.dtype.name, a.shape] for a in arrays])
    stream.write(json.dumps(head).encode() + b"\n" + b"".join(a.tobytes() for a in arrays))
    stream.flush()


def receive(stream):
    """Return the next message, ``(head, arrays)``; (None, []) at the end."""
    line = stream.readline()
    if not line.endswith(b"\n"):
        return None, []
    head, arrays = json.loads(line), []
    for name, shape in head.pop("arrays"):
        n = int(np.prod(shape, dtype=np.int64)) * np.dtype(name).itemsize
        arrays.append(np.frombuffer(stream.read(n), name).reshape(shape).copy())
    return head, arrays


# ---- one call --------------------------------------------------------------------------------------------------------
def run(mx, invoke, head, values):
    """Return the outputs, the states after the call, and the gradients of each order: lists of arrays, or what was raised.

    `head` names the operator, its parameters, the results that are given (some operators of MXNet need them), the mode, which
    inputs are variables and which states, and how many orders.  The gradient of each is that of a sum, weighted with cosines,
    and from the second order on of the squares of the results.
    """
    answer = {}

    def call(inputs):
        out = [mx.nd.zeros(shape, dtype=dtype) for dtype, shape in head.get("out", ())]
        return listed(invoke(head["op"], inputs, head["params"], out or None))

    try:
        inputs = [mx.nd.array(v, dtype=v.dtype) for v in values]
        variables = [inputs[k] for k in head["variables"]] if head["train"] else []
        for x in variables:
            x.attach_grad()
        with mx.autograd.record() if head["train"] else mx.autograd.predict_mode():
            outputs = call(inputs)
            answer["outputs"] = [o.asnumpy() for o in outputs]
        if variables:  # MXNet updates the states of some layers in backward
            mx.autograd.backward(outputs[:1])
        answer["states"] = [inputs[k].asnumpy() for k in head["states"]]
        for order in range(1, head["orders"] + 1):
            answer[str(order)] = gradients(mx, call, head, values, order)
    except Exception as problem:
        answer["error"] = (str(problem).strip().splitlines() or [type(problem).__name__])[-1][:300]
    return answer


def listed(found):
    return list(found) if isinstance(found, (list, tuple)) else [found]


def gradients(mx, call, head, values, order):
    """Return the gradient of an order with respect to each variable."""
    inputs = [mx.nd.array(v, dtype=v.dtype) for v in values]
    variables = [inputs[k] for k in head["variables"]]
    for x in variables:
        x.attach_grad()
    with mx.autograd.record(train_mode=bool(head["train"])):
        total = None
        for k, y in enumerate(call(inputs)):
            if np.dtype(y.dtype).kind == "f":
                total = added(total, weighted(mx, mx.nd.square(y) if order > 1 else y, k))
        if total is None:
            return []
        for _ in range(order - 1):
            found = mx.autograd.grad(total, variables, create_graph=True, retain_graph=True,
                                    train_mode=bool(head["train"]))  # fmt: skip
            total = None
            for k, g in enumerate(found):
                total = added(total, weighted(mx, g, k + 1))
    total.backward(train_mode=bool(head["train"]))
    return [x.grad.asnumpy() for x in variables]


def added(total, more):
    if total is None:
        return more
    return total + (more if more.dtype == total.dtype else more.astype(total.dtype))


def weighted(mx, x, k):
    weights = np.cos(np.arange(x.size) * 1.7 + k + 0.3).reshape(x.shape)
    return (x * mx.nd.array(weights, dtype=x.dtype)).sum()


def packed(answer):
    """Return the answer as a head and arrays of a message."""
    keys = [k for k in answer if k != "error"]
    head = {"parts": [[k, len(answer[k])] for k in keys], "error": answer.get("error")}
    return head, [a for k in keys for a in answer[k]]


def unpacked(head, arrays):
    """Return the answer of a message."""
    rest = iter(arrays)
    answer = {k: [next(rest) for _ in range(n)] for k, n in head["parts"]}
    return answer if head["error"] is None else dict(answer, error=head["error"])


# ---- MXNet -----------------------------------------------------------------------------------------------------------
def invoke(op, inputs, params, out):
    """Call a registered operator of MXNet by its name, whatever Python function it may have."""
    from mxnet._ctypes.ndarray import _imperative_invoke
    from mxnet.base import _LIB, c_str, check_call

    handle = ctypes.c_void_p()
    check_call(_LIB.NNGetOpHandle(c_str(op), ctypes.byref(handle)))
    return _imperative_invoke(handle.value, inputs, list(params), list(params.values()), out, False, True)


def main():
    """Answer until the input ends."""
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what MXNet prints is no answer
    import mxnet as mx

    while True:
        head, values = receive(sys.stdin.buffer)
        if head is None:
            return
        send(replies, *packed(run(mx, invoke, head, values)))


if __name__ == "__main__":
    main()
