"""Programs as users of MXNet 1.x have them: each gives here what it gives there.

The numbers of :data:`EXPECTED` are what MXNet 1.9.1 gave (CPU, ``MXNET_ENGINE_TYPE=NaiveEngine MXNET_MKLDNN_ENABLED=0``,
NumPy 1.23.5, whose ``RandomState`` draws as today's).  ``python tests/test_user_programs.py`` prints what the MXNet of that
Python gives.
"""

import ctypes
import math
import os
import shutil
import tempfile

import numpy as np
import pytest


def _data(seed=0, n=64, d=3):
    rng = np.random.RandomState(seed)
    x = rng.uniform(-1, 1, (n, d)).astype("float32")
    return x, rng


def mlp_by_autograd(mx):
    """A two-layer perceptron, trained with manual SGD ``p[:] = p - lr * p.grad``."""
    nd, autograd = mx.nd, mx.autograd
    x, rng = _data()
    y = (x[:, 0] * x[:, 1] > 0).astype("float32")
    weights = [rng.normal(0, 0.5, s).astype("float32") for s in ((16, 3), (16,), (2, 16), (2,))]
    params = [nd.array(w, ctx=mx.cpu()) for w in weights]
    for p in params:
        p.attach_grad()
    data, label = nd.array(x), nd.array(y)
    losses = []
    for _ in range(5):
        for at in range(0, 64, 16):
            batch, target = data[at : at + 16], label[at : at + 16]
            with autograd.record():
                h = nd.Activation(nd.FullyConnected(batch, params[0], params[1], num_hidden=16), act_type="tanh")
                z = nd.FullyConnected(h, params[2], params[3], num_hidden=2)
                loss = nd.softmax_cross_entropy(z, target) / 16
            loss.backward()
            for p in params:
                p[:] = p - 0.5 * p.grad
        losses.append(loss.asscalar())
    out = nd.FullyConnected(nd.tanh(nd.FullyConnected(data, *params[:2], num_hidden=16)), *params[2:], num_hidden=2)
    accuracy = (nd.argmax(out, axis=1) == label).mean().asscalar()
    return {"losses": losses, "accuracy": accuracy, "norms": [p.norm().asscalar() for p in params]}


def logistic_regression(mx):
    """Sigmoid, logarithms and weight decay, with in-place updates."""
    nd = mx.nd
    x, _ = _data(1)
    y = nd.array((x.sum(axis=1) > 0.1).astype("float32")).reshape((-1, 1))
    x, w, b = nd.array(x), nd.zeros((3, 1)), nd.zeros(1)
    w.attach_grad()
    b.attach_grad()
    for _ in range(30):
        with mx.autograd.record():
            p = nd.sigmoid(nd.dot(x, w) + b)
            loss = -(y * nd.log(p + 1e-7) + (1 - y) * nd.log(1 - p + 1e-7)).mean() + 0.01 * (w**2).sum()
        loss.backward()
        w -= 2.0 * w.grad
        b -= 2.0 * b.grad
    return {"loss": loss.asscalar(), "w": w.asnumpy().ravel(), "b": b.asnumpy()}


def symbol_mlp_by_simple_bind(mx):
    """The symbol API: inference, ``simple_bind``, ``forward``, ``backward``, updates through ``arg_dict``."""
    x, rng = _data(2, 32)
    t = (x**2).sum(axis=1, keepdims=True)
    data = mx.sym.Variable("data")
    net = mx.sym.FullyConnected(data, num_hidden=8, name="fc1")
    net = mx.sym.Activation(net, act_type="relu", name="relu1")
    net = mx.sym.FullyConnected(net, num_hidden=1, name="fc2")
    loss = mx.sym.mean(mx.sym.square(net - mx.sym.Variable("target")), name="loss")
    grad_req = {n: "null" if n in ("data", "target") else "write" for n in loss.list_arguments()}
    ex = loss.simple_bind(ctx=mx.cpu(), data=(32, 3), target=(32, 1), grad_req=grad_req)
    for name in sorted(ex.arg_dict):
        if name not in ("data", "target"):
            ex.arg_dict[name][:] = rng.uniform(-0.5, 0.5, ex.arg_dict[name].shape)
    losses = []
    for _ in range(20):
        out = ex.forward(is_train=True, data=mx.nd.array(x), target=mx.nd.array(t))[0]
        losses.append(out.asnumpy()[0])
        ex.backward(mx.nd.ones((1,)))
        for name, grad in ex.grad_dict.items():
            if grad is not None:
                ex.arg_dict[name][:] -= 0.3 * grad
    return {
        "arguments": loss.list_arguments(), "shapes": loss.infer_shape(data=(32, 3), target=(32, 1)),
        "losses": losses[::5], "without": sorted(k for k, g in ex.grad_dict.items() if g is None),
        "fc2": ex.arg_dict["fc2_weight"].asnumpy().ravel(),
    }  # fmt: skip


def bind_with_accumulation(mx):
    """``bind`` with arrays of the caller's, ``grad_req='add'``, two heads, a reshaped executor."""
    nd = mx.nd
    a, b = mx.sym.Variable("a"), mx.sym.Variable("b")
    net = mx.sym.Group([a * b + mx.sym.exp(a), mx.sym.broadcast_maximum(a, b, name="top")])
    args = {"a": nd.array([[1, 2], [3, -4]]), "b": nd.array([[2, 2], [-1, 0.5]])}
    grads = {"a": nd.ones((2, 2)) * 100, "b": nd.zeros((2, 2))}
    ex = net.bind(mx.cpu(), args, args_grad=grads, grad_req={"a": "add", "b": "write"})
    for _ in range(2):
        ex.forward(is_train=True)
        ex.backward([nd.ones((2, 2)), nd.array([[1, 10], [100, 1000]])])
    small = ex.reshape(allow_up_sizing=True, a=(1, 2), b=(1, 2))
    small.arg_dict["a"][:] = 1
    small.arg_dict["b"][:] = 3
    return {
        "names": net.list_outputs(), "outputs": [o.asnumpy() for o in ex.outputs],
        "a": grads["a"].asnumpy(), "b": grads["b"].asnumpy(), "top": ex.output_dict["top_output"].asnumpy(),
        "small": [o.asnumpy() for o in small.forward()],
    }  # fmt: skip


def reshape_codes(mx):
    """The codes 0, -1, -2, -3 and -4, as function, method and symbol, positional and by keyword, as tuple and string."""
    nd = mx.nd
    x = nd.arange(24).reshape((2, 3, 4))
    shapes = [
        x.reshape((0, -1)), x.reshape(-1, 4), x.reshape(shape=(-3, 0)), nd.reshape(x, shape="(0, -4, 1, -1, -2)"),
        nd.Reshape(x, (-2, 1)), nd.reshape(x, shape=(-1, 0), reverse=True), nd.reshape(x, shape=(-4, 2, 1, -3)),
        x.reshape_like(nd.zeros((4, 6))), nd.flatten(x), x.expand_dims(1).squeeze(axis=1), x.T, nd.swapaxes(x, 0, 2),
    ]  # fmt: skip
    symbols = [mx.sym.Variable("x").reshape(c).infer_shape(x=(2, 3, 4))[1][0] for c in ((0, -1), (-3, -2), (-4, 1, 2, -2))]
    return {"nd": [s.shape for s in shapes], "sym": symbols, "last": shapes[-1].asnumpy()[3].tolist()}


def saved_and_loaded(mx):
    """Parameters and a symbol through files."""
    folder = tempfile.mkdtemp()
    net = mx.sym.FullyConnected(mx.sym.Variable("data", lr_mult=2.0), num_hidden=2, name="fc")
    net = mx.sym.softmax(net, name="out")
    params = {"arg:fc_weight": mx.nd.array([[1, 2], [3, 4]]), "arg:fc_bias": mx.nd.array([0.5, -0.5])}
    net.save(os.path.join(folder, "net-symbol.json"))
    mx.nd.save(os.path.join(folder, "net-0000.params"), params)
    mx.nd.save(os.path.join(folder, "list.nd"), [mx.nd.ones((2,), dtype="int32"), mx.nd.zeros((1, 0 + 1), dtype="float64")])
    again = mx.sym.load(os.path.join(folder, "net-symbol.json"))
    loaded = mx.nd.load(os.path.join(folder, "net-0000.params"))
    listed = mx.nd.load(os.path.join(folder, "list.nd"))
    args = {k.split(":")[1]: v for k, v in loaded.items()}
    out = again.bind(mx.cpu(), {"data": mx.nd.array([[0.1, 0.2]]), **args}).forward()[0]
    shutil.rmtree(folder)
    return {
        "same": again.tojson() == net.tojson(), "keys": sorted(loaded), "out": out.asnumpy(), "attr": again.attr_dict()["data"],
        "listed": [(a.shape, np.dtype(a.dtype).name) for a in listed],
    }  # fmt: skip


def custom_function(mx):
    """``autograd.Function`` with saved tensors, in a larger graph."""

    class Scaled(mx.autograd.Function):
        def __init__(self, factor):
            super().__init__()
            self.factor = factor

        def forward(self, x, y):
            z = x * mx.nd.sigmoid(y)
            self.save_for_backward(x, y)
            return z

        def backward(self, dz):
            x, y = self.saved_tensors
            s = mx.nd.sigmoid(y)
            return self.factor * dz * s, dz * x * s * (1 - s)

    x, y = mx.nd.array([1, 2, 3]), mx.nd.array([0, -1, 1])
    x.attach_grad()
    y.attach_grad()
    with mx.autograd.record():
        z = (Scaled(10.0)(x * 2, y) + x).sum()
    z.backward()
    return {"z": z.asscalar(), "x": x.grad.asnumpy(), "y": y.grad.asnumpy()}


def gradient_penalty(mx):
    """A penalty on the norm of a gradient: backward through ``autograd.grad(create_graph=True)``.

    MXNet 1.9.1 has no second gradient of the product; the numbers are those of the closed form, in float64.
    """
    nd, autograd = mx.nd, mx.autograd
    x, w = nd.array([[0.5, -1], [2, 0.3]]), nd.array([[0.2, 0.7], [-0.4, 1.1]])
    w.attach_grad()
    x.attach_grad()
    with autograd.record():
        y = nd.exp(nd.elemwise_mul(x, w))
        (dx,) = autograd.grad(y, [x], create_graph=True, retain_graph=True)
        loss = nd.square(dx).sum() + y.sum()
    loss.backward()
    return {"loss": loss.asscalar(), "dx": dx.asnumpy(), "w": w.grad.asnumpy()}


def monitored(mx):
    """A monitor callback sees each output by name."""
    seen = []

    def callback(name, array):
        name = name.decode() if isinstance(name, bytes) else name
        if not isinstance(array, mx.nd.NDArray):  # MXNet 1.x hands over a handle
            array = mx.nd.NDArray(ctypes.cast(array, mx.base.NDArrayHandle), writable=False)
        seen.append((name, array.shape))

    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2, no_bias=True, name="fc")
    net = mx.sym.Activation(net, act_type="relu", name="act")
    ex = net.simple_bind(mx.cpu(), data=(3, 4))
    ex.set_monitor_callback(callback)
    ex.forward()
    return {"seen": seen}


def attributes_and_names(mx):
    """AttrScope, Prefix, lr_mult, automatic names, composition, internals."""
    with mx.AttrScope(ctx_group="stage1", __lr_mult__="0.1"):
        a = mx.sym.Variable("a", lr_mult=3, wd_mult=0.5, shape=(2, 0))
        b = mx.sym.exp(a, name="e")
    with mx.name.Prefix("net_"):
        c = mx.sym.FullyConnected(b, num_hidden=4) + 1
    with mx.name.NameManager():
        d = mx.sym.sqrt(c * c) / 2 - (1 - c)
    swapped = mx.sym.exp(mx.sym.Variable("u"), name="outer")(u=mx.sym.sin(mx.sym.Variable("v"), name="inner"))
    return {
        "a": a.attr_dict()["a"], "e": b.attr("ctx_group"), "list_attr": sorted(b.list_attr().items()),
        "arguments": d.list_arguments(), "internals": d.get_internals().list_outputs(), "name": c.name,
        "children": d.get_children().list_outputs(), "swapped": (swapped.list_arguments(), swapped.list_outputs()),
        "repr": [repr(a), str(mx.sym.Group([a, b])), repr(d["_minus0_output"])],
    }  # fmt: skip


def partial_inference(mx):
    """``infer_shape_partial`` and ``infer_type`` where not everything is known."""
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=10, name="fc1")
    net = mx.sym.FullyConnected(mx.sym.Activation(net, act_type="tanh"), num_hidden=2, name="fc2")
    return {
        "batch": net.infer_shape_partial(data=(0, 5)),
        "full": net.infer_shape(data=(7, 5)),
        "type": [np.dtype(t).name for part in net.infer_type(data="float64") for t in part],
        "backwards": mx.sym.elemwise_add(mx.sym.Variable("l"), mx.sym.Variable("r")).infer_shape(r=(2, 3)),
    }  # fmt: skip


def printed(mx):
    """What users see: repr and str."""
    nd = mx.nd
    y = nd.array([1.5, 2])
    return {
        "text": [
            repr(nd.array([[1, 2], [3.25, 1e-5]])), str(nd.arange(3, dtype="int32")), repr(nd.ones((1,)) > 2), str(y.context),
            repr(mx.cpu(0)), repr(nd.zeros((2, 1, 2), dtype="float16")), repr(y.dtype), str(y.shape), f"{y.size} {y.ndim}",
            repr(mx.current_context()), str(y.asscalar() if y.size == 1 else y.sum().asscalar()), str(len(nd.zeros((4, 2)))),
        ]
    }  # fmt: skip


def indexing(mx):
    """Reading and writing with keys."""
    nd = mx.nd
    x = nd.arange(24).reshape((4, 6))
    x[1:3, ::2] = -1
    x[0] = nd.array([9, 8, 7, 6, 5, 4])
    x[3, 1:3] = [50, 60]
    x[-1, -1] = 77
    view = x[2]
    view[:] = view * 2
    rows = x[nd.array([0, 2])]
    picked = x[[0, 1], [5, 4]]
    x[nd.array([1, 1]), nd.array([0, 1])] = 5
    y = nd.zeros((2, 2))
    y[:] = 3
    y += nd.array([1, 2])
    y[0][1] = 100  # through a view
    y[:, 0] *= 2
    return {
        "x": x.asnumpy(), "rows": rows.asnumpy(), "picked": picked.asnumpy(), "y": y.asnumpy(), "scalar": x[0, 0].asscalar(),
        "none": x[None].shape, "ellipsis": x[..., 1].asnumpy(), "iterated": [r.sum().asscalar() for r in x],
        "where": nd.where(x > 6, x, nd.zeros_like(x)).sum().asscalar(), "slice": x.slice_axis(1, 2, 4).shape,
    }  # fmt: skip


def accumulated(mx):
    """``grad_req='add'`` over micro-batches, ``zero_grad`` by hand, head gradients, ``retain_graph``, modes, ``pause``."""
    nd, autograd = mx.nd, mx.autograd
    w = nd.array([1, -2, 3])
    w.attach_grad(grad_req="add")
    found = {}
    for scale in (1, 10):
        with autograd.record():
            y = (w * w).clip(0, 5) * scale
            with autograd.pause():
                z = y * 100  # not recorded
        y.backward(nd.array([1, 1, 2]))
    found["added"] = w.grad.asnumpy()
    w.grad[:] = 0
    with autograd.record(train_mode=False):
        found["modes"] = (autograd.is_recording(), autograd.is_training())
        y = nd.relu(w) * w.detach() + nd.stop_gradient(w)
    y.backward(retain_graph=True)
    y.backward()
    found |= {"twice": w.grad.asnumpy(), "z": z.asnumpy(), "outside": autograd.is_recording()}
    grads = [nd.zeros((3,))]
    v = nd.array([1, 2, 3])
    autograd.mark_variables([v], grads)
    with autograd.record():
        parts = nd.split(v, num_outputs=3, axis=0)
        out = parts[0] * 2 + parts[2] * parts[1]
    autograd.backward([out])
    found["marked"] = grads[0].asnumpy()
    return found


def contexts_and_copies(mx):
    """``with mx.Context``, ``copyto``, ``astype``, ``as_in_context``, ``waitall``, ``out=``."""
    nd = mx.nd
    with mx.Context("cpu", 0):
        a = nd.ones((2, 2)) * 3
    b = nd.zeros((2, 2))
    a.copyto(b)
    c = a.astype("int32")
    d = b.as_in_context(mx.cpu())
    d += 1  # the same array
    e = nd.empty((2, 2))
    nd.elemwise_add(a, b, out=e)
    nd.broadcast_mul(e, nd.array([[1], [0.5]]), out=e)
    nd.waitall()
    e.wait_to_read()
    return {
        "ctx": str(a.context), "type": a.context.device_type, "equal": a.ctx == mx.cpu(0), "b": b.asnumpy(),
        "c": (c.asnumpy(), np.dtype(c.dtype).name), "e": e.asnumpy(),
        "sum": [nd.add_n(a, b, e).asnumpy(), nd.concat(a, b, dim=0).shape, nd.stack(a, b, axis=1).shape],
        "integers": [(c / 2).asnumpy(), (c * 1.9).asnumpy(), (c > 2.5).asnumpy(), (7 % c).asnumpy()],
        "reduce": [
            a.sum().shape, nd.max(a, axis=0).asnumpy(), nd.norm(e).asscalar(),
            nd.mean(e, axis=1, exclude=True).asnumpy(),
        ],
    }  # fmt: skip


def positional_axis(mx):
    """Parameters given by position and as strings."""
    nd = mx.nd
    x = nd.array([[1, 2, 3], [4, 5, 7]])
    return {
        "log_softmax": nd.log_softmax(x, 0).asnumpy(), "softmin": nd.softmin(x, 1).asnumpy(),
        "sum": [nd.sum(x, 1).asnumpy(), nd.sum(x, (0, 1)).shape, nd.sum(x, axis="1", keepdims="True").shape],
        "others": [
            nd.expand_dims(x, 0).shape, nd.transpose(x, (1, 0)).shape, nd.clip(x, 2, 4).asnumpy(),
            nd.slice_axis(x, 1, 0, 2).shape, nd.concat(x, x, dim="0").shape, nd.split(x, 3)[1].shape,
            nd.split(x, num_outputs="3", axis="1", squeeze_axis="1")[0].shape,
            nd.repeat(x, 2, 1).shape, nd.tile(x, (2, 1)).shape, nd.flip(x, 1).asnumpy(), nd.dot(x, x, False, True).asnumpy(),
            nd.argmax(x, 1).asnumpy(),
        ],
    }  # fmt: skip


PROGRAMS = [
    mlp_by_autograd, logistic_regression, symbol_mlp_by_simple_bind, bind_with_accumulation, reshape_codes, saved_and_loaded,
    custom_function, gradient_penalty, monitored, attributes_and_names, partial_inference, printed, indexing, accumulated,
    contexts_and_copies, positional_axis,
]  # fmt: skip

EXPECTED = {
    'mlp_by_autograd': {'losses': [0.795977, 0.753347, 0.730376, 0.714059, 0.699632],
     'accuracy': 0.671875,
     'norms': [3.33839, 1.89211, 2.4099, 0.789505]},
    'logistic_regression': {'loss': 0.435964, 'w': [1.6533, 1.5437, 1.65953], 'b': [-0.196413]},
    'symbol_mlp_by_simple_bind': {'arguments': ['data', 'fc1_weight', 'fc1_bias', 'fc2_weight', 'fc2_bias', 'target'],
     'shapes': [[[32, 3], [8, 3], [8], [1, 8], [1], [32, 1]], [[1]], []],
     'losses': [1.764, 0.295411, 0.263527, 0.238902],
     'without': ['data', 'target'],
     'fc2': [-0.0386259, -0.167725, -0.183261, 0.324068, -0.122245, -0.0285901, 0.131954, 0.519278]},
    'bind_with_accumulation': {'names': ['_plus0_output', 'top_output'],
     'outputs': [[[4.71828, 11.3891], [17.0855, -1.98168]], [[2.0, 2.0], [3.0, 0.5]]],
     'a': [[109.437, 138.778], [338.171, 101.037]],
     'b': [[2.0, 2.0], [3.0, 996.0]],
     'top': [[2.0, 2.0], [3.0, 0.5]],
     'small': [[[5.71828, 5.71828]], [[3.0, 3.0]]]},
    'reshape_codes': {'nd': [[2, 12], [6, 4], [6, 4], [2, 1, 3, 4], [2, 3, 4, 1], [6, 4], [2, 1, 12], [4, 6], [2, 12],
            [2, 3, 4], [4, 3, 2], [4, 3, 2]],
     'sym': [[2, 12], [6, 4], [1, 2, 3, 4]],
     'last': [[3.0, 15.0], [7.0, 19.0], [11.0, 23.0]]},
    'saved_and_loaded': {'same': True,
     'keys': ['arg:fc_bias', 'arg:fc_weight'],
     'out': [[0.598688, 0.401312]],
     'attr': {'__lr_mult__': '2.0', 'lr_mult': '2.0'},
     'listed': [[[2], 'int32'], [[1, 1], 'float64']]},
    'custom_function': {'z': 12.4621, 'x': [11.0, 6.37883, 15.6212], 'y': [0.5, 0.786448, 1.17967]},
    'gradient_penalty': {'loss': 5.98514,
     'dx': [[0.221034, 0.34761], [-0.179732, 1.53007]],
     'w': [[1.09, -0.393015], [0.866354, 6.07849]]},
    'monitored': {'seen': [['fc_output', [3, 2]], ['act_output', [3, 2]]]},
    'attributes_and_names': {'a': {'__wd_mult__': '0.5',
           'wd_mult': '0.5',
           '__shape__': '(2, 0)',
           '__lr_mult__': '3',
           'lr_mult': '3',
           '__ctx_group__': 'stage1',
           'ctx_group': 'stage1'},
     'e': 'stage1',
     'list_attr': [['__ctx_group__', 'stage1'], ['__lr_mult__', '0.1'], ['ctx_group', 'stage1'],
                   ['lr_mult', '0.1']],
     'arguments': ['a', 'net_fullyconnected0_weight', 'net_fullyconnected0_bias'],
     'internals': ['a', 'e_output', 'net_fullyconnected0_weight', 'net_fullyconnected0_bias',
                   'net_fullyconnected0_output', 'net__plusscalar0_output', '_mul0_output', 'sqrt0_output',
                   '_divscalar0_output', '_rminusscalar0_output', '_minus0_output'],
     'name': 'net__plusscalar0',
     'children': ['_divscalar0_output', '_rminusscalar0_output'],
     'swapped': [['v'], ['outer_output']],
     'repr': ['<Symbol a>', '<Symbol group [a, e]>', '<Symbol _minus0>']},
    'partial_inference': {'batch': [[[0, 5], [10, 5], [10], [2, 10], [2]], [[0, 2]], []],
     'full': [[[7, 5], [10, 5], [10], [2, 10], [2]], [[7, 2]], []],
     'type': ['float64', 'float64', 'float64', 'float64', 'float64', 'float64'],
     'backwards': [[[2, 3], [2, 3]], [[2, 3]], []]},
    'printed': {'text': ['\n[[1.00e+00 2.00e+00]\n [3.25e+00 1.00e-05]]\n<NDArray 2x2 @cpu(0)>',
              '\n[0 1 2]\n<NDArray 3 @cpu(0)>', '\n[0.]\n<NDArray 1 @cpu(0)>', 'cpu(0)', 'cpu(0)',
              '\n[[[0. 0.]]\n\n [[0. 0.]]]\n<NDArray 2x1x2 @cpu(0)>', "<class 'numpy.float32'>", '(2,)', '2 1',
              'cpu(0)', '3.5', '4']},
    'indexing': {'x': [[9.0, 8.0, 7.0, 6.0, 5.0, 4.0], [5.0, 5.0, -1.0, 9.0, -1.0, 11.0], [-2.0, 26.0, -2.0, 30.0, -2.0, 34.0],
           [18.0, 50.0, 60.0, 21.0, 22.0, 77.0]],
     'rows': [[9.0, 8.0, 7.0, 6.0, 5.0, 4.0], [-2.0, 26.0, -2.0, 30.0, -2.0, 34.0]],
     'picked': [4.0, -1.0],
     'y': [[8.0, 100.0], [8.0, 5.0]],
     'scalar': 9.0,
     'none': [1, 4, 6],
     'ellipsis': [8.0, 5.0, 26.0, 50.0],
     'iterated': [39.0, 28.0, 84.0, 248.0],
     'where': 382.0,
     'slice': [4, 2]},
    'accumulated': {'added': [22.0, -44.0, 0.0],
     'modes': [True, False],
     'twice': [2.0, 0.0, 6.0],
     'z': [1000.0, 4000.0, 5000.0],
     'outside': False,
     'marked': [2.0, 3.0, 2.0]},
    'contexts_and_copies': {'ctx': 'cpu(0)',
     'type': 'cpu',
     'equal': True,
     'b': [[4.0, 4.0], [4.0, 4.0]],
     'c': [[[3, 3], [3, 3]], 'int32'],
     'e': [[7.0, 7.0], [3.5, 3.5]],
     'sum': [[[14.0, 14.0], [10.5, 10.5]], [4, 2], [2, 2, 2]],
     'integers': [[[1, 1], [1, 1]], [[3, 3], [3, 3]], [[1, 1], [1, 1]], [[1, 1], [1, 1]]],
     'reduce': [[1], [3.0, 3.0], 11.068, [5.25, 5.25]]},
    'positional_axis': {'log_softmax': [[-3.04859, -3.04859, -4.01815], [-0.0485873, -0.0485873, -0.01815]],
     'softmin': [[0.665241, 0.244728, 0.0900306], [0.705385, 0.259497, 0.035119]],
     'sum': [[6.0, 16.0], [1], [2, 1]],
     'others': [[1, 2, 3], [3, 2], [[2.0, 2.0, 3.0], [4.0, 4.0, 4.0]], [2, 2], [4, 3], [2, 1], [2], [2, 6], [4, 3],
                [[3.0, 2.0, 1.0], [7.0, 5.0, 4.0]], [[14.0, 35.0], [35.0, 90.0]], [2.0, 2.0]]},
}  # fmt: skip


def plain(value):
    """Return a result as lists, numbers and strings."""
    if isinstance(value, (np.ndarray, np.generic)):
        return plain(value.tolist())
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


def compare(found, expected, where):
    """Compare results: numbers within the rounding of float32, all else exactly."""
    if isinstance(expected, dict):
        assert found.keys() == expected.keys(), where
        for key in expected:
            compare(found[key], expected[key], f"{where}[{key!r}]")
    elif isinstance(expected, list):
        assert len(found) == len(expected), f"{where}: {found}, expected {expected}"
        for i, (a, b) in enumerate(zip(found, expected)):
            compare(a, b, f"{where}[{i}]")
    elif isinstance(expected, float):
        assert math.isclose(found, expected, rel_tol=1e-4, abs_tol=1e-6), f"{where}: {found}, expected {expected}"
    else:
        assert found == expected, f"{where}: {found!r}, expected {expected!r}"


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_program(program):
    import mxop as mx

    with mx.name.NameManager():
        found = plain(program(mx))
    compare(found, EXPECTED[program.__name__], program.__name__)


def main():
    """Print what MXNet gives."""
    import pprint

    import mxnet as mx

    for program in PROGRAMS:
        with mx.name.NameManager():
            try:
                found = plain(program(mx))
            except mx.MXNetError as error:
                found = str(error)
        pprint.pprint({program.__name__: found}, width=116, compact=True, sort_dicts=False)


if __name__ == "__main__":
    main()
