"""Time whole networks, and operators of detection, beside torch, torch.compile and MXNet 1.9.1, in turn, in one run.

    python tools/network_speed.py [--mxnet PYTHON_WITH_MXNET] [inference] [training] [memory] [images] [regions]

It needs torch and torchvision.  The networks are those of torchvision, and ResNet-100 of ArcFace; the symbols of mxop and MXNet
are made of the layers that torch traces, with the same weights, and all results are compared.  Prints Markdown: medians,
and medians of the ratios of the rounds.
"""

from __future__ import annotations

import argparse
import copy
import io
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import warnings

import numpy as np
import torch
import torchvision
from torch import fx, nn

import mxop as mx

ROUNDS = 9
SECONDS = 0.5  # of a round of a system, about
MAX_DIFFERENCE = 2e-5  # relative, of what two systems return

MXNET = """
import json, os, sys, time
replies = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # what MXNet prints is no answer
import numpy as np, mxnet as mx
symbol, args, aux = mx.model.load_checkpoint(sys.argv[1], 0)
x = mx.nd.array(np.load(sys.argv[1] + ".npy"))
net = symbol.simple_bind(mx.cpu(), grad_req="null", data=x.shape)
net.copy_params_from(args, aux)
for line in sys.stdin:
    start = time.perf_counter()
    for _ in range(int(line)):
        (y,) = net.forward(is_train=False, data=x)
        y.wait_to_read()
    print(json.dumps([(time.perf_counter() - start) / int(line), y.asnumpy().tolist()]), file=replies, flush=True)
"""


# ---- networks --------------------------------------------------------------------------------------------------------
class Residual(nn.Module):
    """The unit of ArcFace's ResNet."""

    def __init__(self, width, filters, stride):
        super().__init__()
        norm = nn.BatchNorm2d

        def conv(width, kernel, stride):
            return nn.Conv2d(width, filters, kernel, stride, kernel // 2, bias=False)

        self.main = nn.Sequential(
            norm(width), conv(width, 3, 1), norm(filters), nn.PReLU(filters), conv(filters, 3, stride), norm(filters)
        )
        alike = stride == 1 and width == filters
        self.side = nn.Identity() if alike else nn.Sequential(conv(width, 1, stride), norm(filters))

    def forward(self, x):
        return self.main(x) + self.side(x)


def arcface():
    """Return ArcFace's ResNet-100."""
    layers, width = [nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.PReLU(64)], 64
    for units, filters in zip((3, 13, 30, 3), (64, 128, 256, 512), strict=True):
        for k in range(units):
            layers.append(Residual(width, filters, 1 if k else 2))
            width = filters
    return nn.Sequential(
        *layers, nn.BatchNorm2d(512), nn.Dropout(0.4), nn.Flatten(), nn.Linear(512 * 49, 512), nn.BatchNorm1d(512)
    )


NETWORKS = {
    "ResNet-50": (torchvision.models.resnet50, (3, 224, 224)),
    "MobileNet v2": (torchvision.models.mobilenet_v2, (3, 224, 224)),
    "ArcFace, ResNet-100": (arcface, (3, 112, 112)),
}


# ---- from torch's layers to a symbol -------------------------------------------------------------------------------------
def _average(x, name, layer=None):
    return mx.sym.Pooling(x, global_pool=True, pool_type="avg", kernel=(1, 1), name=name)


def _normalized(x, name, layer):
    return mx.sym.BatchNorm(x, fix_gamma=False, eps=layer.eps, momentum=0.9, name=name)


#: What a layer is as a symbol: of its input, its name and the layer.
LAYERS = {
    nn.Conv2d: lambda x, name, c: mx.sym.Convolution(
        x,
        kernel=c.kernel_size,
        stride=c.stride,
        pad=c.padding,
        num_filter=c.out_channels,
        num_group=c.groups,
        no_bias=c.bias is None,
        name=name,
    ),
    nn.BatchNorm2d: _normalized,
    nn.BatchNorm1d: _normalized,
    nn.AdaptiveAvgPool2d: _average,
    nn.ReLU: lambda x, name, _: mx.sym.Activation(x, act_type="relu", name=name),
    nn.ReLU6: lambda x, name, _: mx.sym.clip(x, 0, 6, name=name),
    nn.PReLU: lambda x, name, _: mx.sym.LeakyReLU(x, act_type="prelu", name=name),
    nn.MaxPool2d: lambda x, name, p: mx.sym.Pooling(
        x, kernel=(p.kernel_size,) * 2, stride=(p.stride,) * 2, pad=(p.padding,) * 2, pool_type="max", name=name
    ),
    nn.Linear: lambda x, name, f: mx.sym.FullyConnected(x, num_hidden=f.out_features, name=name),
    nn.Dropout: lambda x, name, d: mx.sym.Dropout(x, p=d.p, name=name),
    nn.Flatten: lambda x, name, _: mx.sym.Flatten(x, name=name),
    nn.Identity: lambda x, name, _: x,
}
FUNCTIONS = {
    "add": lambda a, b, name: a + b,
    "flatten": lambda x, name: mx.sym.Flatten(x, name=name),
    "adaptive_avg_pool2d": _average,
}
#: How MXNet calls the arrays of a layer.
ARRAYS = {"weight": "weight", "bias": "bias"}
NORMALIZED = {"weight": "gamma", "bias": "beta", "running_mean": "moving_mean", "running_var": "moving_var"}


def symbol_of(model):
    """Return a symbol, its parameters and its states."""
    traced, made, arrays = fx.symbolic_trace(model), {}, {}
    layers = dict(traced.named_modules())
    for node in traced.graph.nodes:
        given = [made[one] for one in node.args if isinstance(one, fx.Node)] if node.op != "output" else []
        if node.op == "placeholder":
            made[node] = mx.sym.Variable("data")
        elif node.op == "call_module":
            layer = layers[node.target]
            names = NORMALIZED if isinstance(layer, (nn.BatchNorm1d, nn.BatchNorm2d)) else ARRAYS
            names = names | ({"weight": "gamma"} if isinstance(layer, nn.PReLU) else {})
            made[node] = LAYERS[type(layer)](*given, node.name, layer)
            found = dict(layer.named_parameters(recurse=False)) | dict(layer.named_buffers(recurse=False))
            arrays |= {f"{node.name}_{names[k]}": mx.nd.array(v.detach().numpy()) for k, v in found.items() if k in names}
        elif node.op in ("call_function", "call_method"):
            made[node] = FUNCTIONS[getattr(node.target, "__name__", node.target)](*given, name=node.name)
        else:
            symbol = made[node.args[0]]
    states = symbol.list_auxiliary_states()
    return symbol, {k: v for k, v in arrays.items() if k not in states}, {k: arrays[k] for k in states}


# ---- rounds ----------------------------------------------------------------------------------------------------------
def timed(call, times):
    start = time.perf_counter()
    for _ in range(times):
        call()
    return (time.perf_counter() - start) / times


def repeated(calls):
    """Return functions that time calls: of how often."""
    return {name: lambda times, call=call: timed(call, times) for name, call in calls.items()}


def rounds(calls):
    """Return the times of each system, round by round: of functions of how often."""
    for call in calls.values():
        call(2)
    times = max(1, int(SECONDS / max(call(1) for call in calls.values())))
    found = {name: [] for name in calls}
    for _ in range(ROUNDS):
        for name, call in calls.items():
            found[name].append(call(times))
    return found


def report(what, found):
    """Print a row: times in ms, and the time of mxop as a share of that of each other system."""
    times = ", ".join(f"{name} {statistics.median(each) * 1e3:.1f}" for name, each in found.items())
    ours = found.pop("mxop")
    ratios = {name: statistics.median(a / b for a, b in zip(ours, each, strict=True)) for name, each in found.items()}
    print(f"| {what} | {times} | {', '.join(f'{ratio:.2f} of {name}' for name, ratio in ratios.items())} |", flush=True)


class Mxnet:
    """MXNet in a process of its own, with the same network and input."""

    def __init__(self, python, prefix):
        clean = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        clean["OMP_NUM_THREADS"] = str(torch.get_num_threads())  # by itself, MXNet takes half of the processors
        self.process = subprocess.Popen(
            [python, "-c", MXNET, prefix],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=clean,
        )
        self.output = None

    def __call__(self, times):
        print(times, file=self.process.stdin, flush=True)
        seconds, output = json.loads(self.process.stdout.readline())
        self.output = np.array(output, "float32")
        return seconds


# ---- tables ----------------------------------------------------------------------------------------------------------
def inference(mxnet):
    """Bound networks, for one image and for 16."""
    for batch in (1, 16):
        for name, (make, size) in NETWORKS.items():
            infer(f"{name}, batch {batch}", make().eval(), (batch, *size), mxnet)


def infer(what, model, shape, mxnet):
    for layer in model.modules():  # as after training, so that nothing is the identity
        if isinstance(layer, (nn.BatchNorm1d, nn.BatchNorm2d)):
            layer.running_mean.uniform_(-0.1, 0.1)
            layer.running_var.uniform_(0.5, 1.5)
    symbol, args, aux = symbol_of(model)
    values = np.random.RandomState(0).normal(size=shape).astype("float32")
    net, x, theirs = symbol.simple_bind(mx.cpu(), grad_req="null", data=shape), mx.nd.array(values), torch.from_numpy(values)
    net.copy_params_from(args, aux)

    def ours():
        net.forward(is_train=False, data=x)[0].wait_to_read()

    compiled = torch.compile(model)
    calls = {"mxop": ours, "torch": lambda: model(theirs), "torch.compile": lambda: compiled(theirs)}
    calls = repeated(calls)
    with tempfile.TemporaryDirectory() as folder, torch.inference_mode():
        if mxnet:
            mx.model.save_checkpoint(f"{folder}/net", 0, symbol, args, aux)
            np.save(f"{folder}/net.npy", values)
            calls["MXNet"] = Mxnet(mxnet, f"{folder}/net")
        found, expected = rounds(calls), model(theirs).numpy()
        outputs = [net.outputs[0].asnumpy(), *([calls["MXNet"].output] if mxnet else [])]
        if mxnet:
            calls["MXNet"].process.kill()
    for output in outputs:
        assert np.abs(output - expected).max() <= MAX_DIFFERENCE * np.abs(expected).max(), f"{what}: results differ"
    report(what, found)


def steps(shape=(16, 3, 224, 224)):
    """Return training steps of ResNet-18 with momentum: of mxop, and of torch with either layout."""
    model = torchvision.models.resnet18().train()
    values = np.random.RandomState(0).normal(size=shape).astype("float32")
    labels = np.random.RandomState(1).randint(0, 1000, shape[0])

    def ours():
        symbol, args, aux = symbol_of(model)
        symbol = mx.sym.SoftmaxOutput(symbol, name="softmax")
        fixed = dict.fromkeys(("data", "softmax_label"), "null")
        net = symbol.simple_bind(mx.cpu(), grad_req=dict.fromkeys(args, "write") | fixed, data=shape, softmax_label=shape[:1])
        net.copy_params_from(args, aux)
        x, y = mx.nd.array(values), mx.nd.array(labels)
        update = mx.optimizer.get_updater(mx.optimizer.SGD(learning_rate=1e-3, momentum=0.9, rescale_grad=1 / shape[0]))
        grads, weights = [net.grad_dict[k] for k in args], [net.arg_dict[k] for k in args]

        def step():
            net.forward(is_train=True, data=x, softmax_label=y)
            net.backward()
            update(list(range(len(grads))), grads, weights)
            mx.nd.waitall()

        return step

    def theirs(layout):
        own = copy.deepcopy(model).to(memory_format=layout)
        x, y = torch.from_numpy(values).contiguous(memory_format=layout), torch.from_numpy(labels)
        optimizer, loss = torch.optim.SGD(own.parameters(), lr=1e-3, momentum=0.9), nn.CrossEntropyLoss()

        def step():
            optimizer.zero_grad()
            loss(own(x), y).backward()
            optimizer.step()

        return step

    layouts = {"torch": torch.contiguous_format, "torch, channels last": torch.channels_last}
    return {"mxop": ours} | {name: lambda layout=layout: theirs(layout) for name, layout in layouts.items()}


def training(_):
    """A training step of ResNet-18, batch 16."""
    report("ResNet-18, training step, batch 16", rounds(repeated({name: make() for name, make in steps().items()})))


def memory(_):
    """What three such steps add to the peak of a process's memory, each system in a process of its own."""
    for name in steps():
        added = subprocess.run([sys.executable, __file__, "--peak", name], capture_output=True, text=True, check=True).stdout
        print(f"| ResNet-18, training step, batch 16, {name} | {int(added) / 1024:.0f} MiB | |", flush=True)


def peak(name):
    """Print the KiB that steps of a system add."""
    make = steps()[name]
    before = most_memory()
    step = make()
    for _ in range(3):
        step()
    print(most_memory() - before)


def most_memory():
    """Return the most KiB that this process had so far; getrusage begins with those of the process that began it."""
    with open("/proc/self/status") as status:
        return int(re.search(r"VmHWM:\s+(\d+)", status.read())[1])


def images(_):
    """1,000 JPEG images of 256x256, decoded, cropped at random to 224x224, flipped at random and normalized."""
    from PIL import Image

    random, packed = np.random.RandomState(0), []
    for _ in range(1000):  # as smooth as photographs
        small, buffer = random.randint(0, 256, (32, 32, 3)).astype("uint8"), io.BytesIO()
        Image.fromarray(small).resize((256, 256), Image.BICUBIC).save(buffer, "JPEG", quality=90)
        packed.append(buffer.getvalue())
    mean, std = np.array([123.68, 116.28, 103.53], "float32"), np.array([58.395, 57.12, 57.375], "float32")
    ours = mx.image.CreateAugmenter((3, 224, 224), rand_crop=True, rand_mirror=True, mean=mean, std=std)
    T = torchvision.transforms
    theirs = T.Compose([T.RandomCrop(224), T.RandomHorizontalFlip(), T.ToTensor(), T.Normalize(mean / 255, std / 255)])

    def with_mxop():
        for one in packed:
            image = mx.image.imdecode(one)
            for augment in ours:
                image = augment(image)
            mx.nd.transpose(image, axes=(2, 0, 1)).wait_to_read()

    def with_torchvision():
        for one in packed:
            theirs(Image.open(io.BytesIO(one)).convert("RGB"))

    report("1,000 JPEG images", rounds(repeated({"mxop": with_mxop, "torchvision": with_torchvision})))


def regions(_):
    """Regions, deformed filters and sampled images: forward, and forward and backward."""
    random, ops = np.random.RandomState(0), torchvision.ops
    corners = random.uniform(0, 600, (2, 512, 2))
    boxes = np.concatenate([random.randint(0, 2, (512, 1)), corners.min(0), corners.max(0)], 1)
    angles, (x, y) = np.linspace(0.1, 0.6, 8)[:, None, None], np.meshgrid(*[np.linspace(-1, 1, 128)] * 2)
    turned = np.stack([np.cos(angles) * x - np.sin(angles) * y, np.sin(angles) * x + np.cos(angles) * y], 1)
    align, conv = {"pooled_size": (7, 7), "spatial_scale": 1 / 16}, {"kernel": (3, 3), "pad": (1, 1), "num_filter": 64}
    compare_operator(
        "ROIAlign",
        lambda x, rois: mx.nd.contrib.ROIAlign(x, rois, sample_ratio=2, **align),
        lambda x, rois: ops.roi_align(x, rois, (7, 7), 1 / 16, 2),
        [random.normal(size=(2, 256, 50, 50)), boxes],
        differentiable=1,
    )
    compare_operator(
        "ModulatedDeformableConvolution",
        lambda x, offset, mask, w: mx.nd.contrib.ModulatedDeformableConvolution(x, offset, mask, w, no_bias=True, **conv),
        lambda x, offset, mask, w: ops.deform_conv2d(x, offset, w, padding=1, mask=mask),
        [random.normal(size=(2, n, 56, 56)) for n in (64, 18, 9)] + [random.normal(size=(64, 64, 3, 3)) / 24],
        differentiable=4,
    )
    for channels in (3, 32):
        compare_operator(
            f"BilinearSampler, {channels} channels",
            mx.nd.BilinearSampler,
            lambda x, grid: nn.functional.grid_sample(x, grid.permute(0, 2, 3, 1), align_corners=True),
            [random.normal(size=(8, channels, 128, 128)), turned],
            differentiable=2,
        )
    places = random.uniform(0, 600, (10_000, 2))
    found = np.concatenate([random.uniform(size=(10_000, 1)), places, places + random.uniform(5, 60, (10_000, 2))], 1)
    given, theirs = mx.nd.array(found), torch.from_numpy(found.astype("float32"))
    nms = {"overlap_thresh": 0.5, "coord_start": 1, "score_index": 0, "id_index": -1}
    calls = {
        "mxop": lambda: mx.nd.contrib.box_nms(given, **nms).wait_to_read(),
        "torch": lambda: ops.nms(theirs[:, 1:], theirs[:, 0], 0.5),
    }
    assert (mx.nd.contrib.box_nms(given, **nms)[:, 0] >= 0).sum().asscalar() == len(calls["torch"]())
    report("box_nms, 10,000 boxes", rounds(repeated(calls)))


def compare_operator(what, ours, theirs, arrays, differentiable):
    """Report times of an operator, of which the first inputs have gradients, and compare values and gradients with torch's."""
    given = [mx.nd.array(a) for a in arrays]
    tensors = [torch.from_numpy(a.astype("float32")).requires_grad_(k < differentiable) for k, a in enumerate(arrays)]
    for a in given[:differentiable]:
        a.attach_grad()
    head = np.random.RandomState(1).normal(size=ours(*given).shape).astype("float32")

    def backward():
        with mx.autograd.record():
            found = ours(*given)
        found.backward(mx.nd.array(head))
        mx.nd.waitall()

    def backward_of_torch():
        for a in tensors:
            a.grad = None
        theirs(*tensors).backward(torch.from_numpy(head))

    with torch.no_grad():
        calls = {"mxop": lambda: ours(*given).wait_to_read(), "torch": lambda: theirs(*tensors)}
        pairs = [(ours(*given).asnumpy(), theirs(*tensors))]
        report(f"{what}, forward", rounds(repeated(calls)))
    report(f"{what}, forward and backward", rounds(repeated({"mxop": backward, "torch": backward_of_torch})))
    pairs += [(a.grad.asnumpy(), b.grad) for a, b in zip(given, tensors, strict=True) if b.requires_grad]
    for found, expected in pairs:
        assert np.abs(found - expected.numpy()).max() <= MAX_DIFFERENCE * np.abs(expected.numpy()).max(), (
            f"{what}: results differ"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="*", help="inference, training, memory, images, regions; all if none is given")
    parser.add_argument("--mxnet", help="an interpreter that imports MXNet 1.9.1")
    parser.add_argument("--peak", help=argparse.SUPPRESS)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    if given.peak:
        peak(given.peak)
        return
    print("| what | time | mxop |\n|---|---|---|")
    tables = {"inference": inference, "training": training, "memory": memory, "images": images, "regions": regions}
    for name in given.tables or tables:
        tables[name](given.mxnet)


if __name__ == "__main__":
    main()
