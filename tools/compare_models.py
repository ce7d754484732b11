"""Load networks that the real MXNet wrote, run and train them in both, and compare number for number.

    python tools/compare_models.py PYTHON_WITH_MXNET [NAME...] [--table docs/models.md]

The networks of MXNet's model zoo, untrained, those of :mod:`networks`, and some smaller ones are made by
``PYTHON_WITH_MXNET`` (MXNet 1.9.1, which needs NumPy 1.23), written as Gluon exports and as checkpoints, and read by both
systems.  Compared are outputs in float32, and in float64 outputs, gradients of all parameters and inputs, auxiliary states, and
the weights after two steps of gradient descent with momentum: the largest difference within an array, relative to its largest
number.  Dropout is turned off for training.  Some of MXNet's operators have float32 alone; their networks are trained in that.
Slopes of PReLU stay as they are: MXNet computes the layer in place, and then their gradients of its results, not of the data.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import networks
import numpy as np

ROOT = Path(__file__).resolve().parent.parent
ZOO = {
    "alexnet": (2, 3, 224, 224), "densenet121": (1, 3, 224, 224), "inceptionv3": (1, 3, 299, 299),
    "mobilenet0.25": (2, 3, 64, 64), "mobilenet1.0": (2, 3, 64, 64), "mobilenetv2_0.25": (2, 3, 64, 64),
    "mobilenetv2_1.0": (2, 3, 64, 64), "resnet18_v1": (2, 3, 64, 64), "resnet50_v1": (2, 3, 64, 64),
    "resnet18_v2": (2, 3, 64, 64), "resnet50_v2": (2, 3, 64, 64), "squeezenet1.0": (1, 3, 224, 224),
    "squeezenet1.1": (1, 3, 224, 224), "vgg11": (2, 3, 32, 32), "vgg11_bn": (2, 3, 32, 32),
}  # fmt: skip
COLUMNS = {"outputs": "outputs, float32", "outputs64": "outputs", "gradients": "gradients", "states": "states",
           "weights": "weights after two steps"}  # fmt: skip
#: Parameters for training: MXNet keeps floating-point ones in float32, so these are numbers that it has exactly.
SETTINGS = {"BatchNorm": {"eps": "0.0001220703125", "momentum": "0.875"}, "LayerNorm": {"eps": "0.0001220703125"},
            "Dropout": {"p": "0"}, "_zeros": {"dtype": "of training"}, "one_hot": {"dtype": "of training"}}  # fmt: skip
STATES = ("moving_mean", "moving_var")  # which files of MXNet 0.8 leave out
#: What is allowed: sums of float32 numbers in another order; what is left in float64.
ALLOWED = {"outputs": 1e-4} | dict.fromkeys(("outputs64", "gradients", "states", "weights"), 1e-8)


# ---- made by MXNet ---------------------------------------------------------------------------------------------------
def smaller(mx):
    """Return small networks: a symbol or block, and the shapes of its inputs."""
    nn, rnn, sym = mx.gluon.nn, mx.gluon.rnn, mx.sym
    data = sym.Variable("data")
    hidden = sym.BatchNorm(sym.FullyConnected(data, num_hidden=32, name="fc1"), fix_gamma=False, eps=0.125, name="bn")
    hidden = sym.Activation(hidden, act_type="relu")
    mlp = sym.SoftmaxOutput(sym.FullyConnected(hidden, num_hidden=10, name="fc2"), name="softmax")
    net = data
    for number, filters in enumerate((6, 16)):
        net = sym.Convolution(net, kernel=(5, 5), num_filter=filters, name=f"conv{number}")
        net = sym.Pooling(sym.Activation(net, act_type="tanh"), pool_type="max", kernel=(2, 2), stride=(2, 2))
    net = sym.Activation(sym.FullyConnected(sym.Flatten(net), num_hidden=40, name="fc1"), act_type="tanh")
    lenet = sym.SoftmaxOutput(sym.FullyConnected(net, num_hidden=10, name="fc2"), name="softmax")
    return {
        "mlp": (mlp, {"data": (4, 20), "softmax_label": (4,)}),
        "lenet": (lenet, {"data": (2, 1, 28, 28), "softmax_label": (2,)}),
        "lstm, unrolled cells": (unrolled(mx, mx.rnn.LSTMCell), {"data": (2, 5, 7)}),
        "gru, unrolled cells": (unrolled(mx, mx.rnn.GRUCell), {"data": (2, 5, 7)}),
        "lstm, fused": (in_a_block(nn, rnn.LSTM(8, 2, bidirectional=True)), {"data": (5, 2, 7)}),
        "gru, fused": (in_a_block(nn, rnn.GRU(8, 2)), {"data": (5, 2, 7)}),
        "transformer encoder": (encoder(mx, nn), {"data": (2, 6, 16)}),
    }


def in_a_block(nn, layer):
    """Return a network that makes the first states of a recurrent layer itself."""
    net = nn.HybridSequential()
    net.add(layer)
    return net


def unrolled(mx, kind):
    """Return two layers of cells over five steps."""
    stack = mx.rnn.SequentialRNNCell()
    for number in range(2):
        stack.add(kind(8, prefix=f"l{number}_"))
    outputs, _ = stack.unroll(5, mx.sym.Variable("data"), layout="NTC", merge_outputs=True)
    return outputs


def encoder(mx, nn):
    """Return two layers of a transformer: attention with four heads, then a network of each position."""

    class Layer(mx.gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            with self.name_scope():
                self.projections = nn.Dense(48, flatten=False)
                self.out, self.norms = nn.Dense(16, flatten=False), [nn.LayerNorm(), nn.LayerNorm()]
                self.wide, self.narrow = nn.Dense(64, flatten=False), nn.Dense(16, flatten=False)
                for norm in self.norms:
                    self.register_child(norm)

        def hybrid_forward(self, F, x):
            heads = F.reshape(self.projections(x), (0, 0, 12, 4)).transpose((0, 2, 1, 3))
            q, k, v = (F.reshape(part, (-3, 0, 0)) for part in F.split(heads, num_outputs=3, axis=1))
            weights = F.softmax(F.batch_dot(q, k, transpose_b=True) / 2)
            together = F.reshape(F.batch_dot(weights, v), (-4, -1, 4, 0, 0)).transpose((0, 2, 1, 3)).reshape((0, 0, -3))
            x = self.norms[0](x + self.out(together))
            return self.norms[1](x + self.narrow(F.relu(self.wide(x))))

    net = nn.HybridSequential()
    net.add(Layer(), Layer())
    return net


def make(folder: str, names: list[str]) -> None:
    """Write the networks, with random parameters; print their names and shapes of inputs."""
    import mxnet as mx
    from mxnet.gluon.model_zoo import vision

    mx.random.seed(7)
    np.random.seed(7)
    small = smaller(mx)
    made = {}
    small |= {name: build(mx) for name, (build, _) in networks.NETWORKS.items()}
    for name in [n for n in [*small, *ZOO] if not names or n in names]:
        net, shapes = small[name] if name in small else (vision.get_model(name, classes=10), {"data": ZOO[name]})
        prefix = os.path.join(folder, name.replace(" ", "_").replace(",", ""))
        if isinstance(net, mx.sym.Symbol):
            executor = net.simple_bind(mx.cpu(), **shapes)
            arguments = {n: mx.nd.random.normal(0, 0.3, a.shape) for n, a in executor.arg_dict.items() if n not in shapes}
            if name in networks.NETWORKS:
                arguments = {n: begun(mx, n, a) for n, a in arguments.items()}
            states = {n: mx.nd.ones(a.shape) if n.endswith("var") else a for n, a in executor.aux_dict.items()}
            mx.model.save_checkpoint(prefix, 0, net, arguments, states)
        else:
            net.initialize(mx.init.Xavier(magnitude=2.24))
            net.hybridize()
            net(mx.nd.random.normal(shape=shapes["data"]))
            net.export(prefix, 0)
        made[name] = [prefix, shapes, "float32" if networks.NETWORKS.get(name, (None, False))[1] else "float64"]
        if name == "mlp":
            for version in ("0.8", "0.9"):
                made[f"mlp, as of MXNet {version}"] = [aged(prefix, version), shapes, "float64"]
    Path(folder, "made.json").write_text(json.dumps(made), encoding="utf-8")


def begun(mx, name, array):
    """Return a parameter as training of a deep network begins."""
    if "prelu" in name:
        return mx.nd.full(array.shape, 0.25)
    if "anchors" in name:
        return mx.nd.abs(array) + 1
    mx.init.Xavier(magnitude=2.24)(mx.init.InitDesc(name), array)
    return array * 4 if name.startswith("cls") else array  # scores that are not nearly equal


def aged(prefix: str, version: str) -> str:
    """Write a checkpoint once more with its symbol as an old version of MXNet had it; return the prefix."""
    graph = json.loads(Path(f"{prefix}-symbol.json").read_text(encoding="utf-8"))
    keep = [n for n, node in enumerate(graph["nodes"]) if version != "0.8" or not node["name"].endswith(STATES)]
    place = {old: new for new, old in enumerate(keep)}
    nodes = [graph["nodes"][n] for n in keep]
    for node in nodes:
        parameters = node.pop("attrs", {})
        node.update({"param": parameters, "backward_source_id": -1} if version == "0.8" else {"attr": parameters})
        node["inputs"] = [[place[at], *rest[:1]] for at, *rest in node["inputs"] if at in place]
    old = {"nodes": nodes, "arg_nodes": [n for n, node in enumerate(nodes) if node["op"] == "null"],
           "heads": [[place[at], *rest[:1]] for at, *rest in graph["heads"]]}  # fmt: skip
    if version != "0.8":
        old |= {"node_row_ptr": list(range(len(nodes) + 1)), "attrs": {"mxnet_version": ["int", 903]}}
    target = f"{prefix}-{version}"
    Path(f"{target}-symbol.json").write_text(json.dumps(old), encoding="utf-8")
    Path(f"{target}-0000.params").write_bytes(Path(f"{prefix}-0000.params").read_bytes())
    return target


# ---- run by both -----------------------------------------------------------------------------------------------------
def bound(mx, prefix: str, shapes: dict, dtype: str, training: bool):
    """Return an executor of a network that was read, with random inputs; for training without Dropout."""
    symbol, arguments, states = mx.model.load_checkpoint(prefix, 0)
    if training:
        graph = json.loads(symbol.tojson())
        for node in graph["nodes"]:
            settings = {n: dtype if n == "dtype" else v for n, v in SETTINGS.get(node["op"], {}).items()}
            node.setdefault("attrs", {}).update(settings)
            node["attrs"].pop("__dtype__", None)
        symbol = mx.sym.load_json(json.dumps(graph))
    random = np.random.RandomState(11)
    given = {name: input_of(name, shape, random) for name, shape in sorted(shapes.items())}
    known = [name for name in symbol.list_arguments() if name not in arguments and name not in given]  # first states
    types = dict.fromkeys([*arguments, *given, *known], dtype)
    whole = {name: array.shape for name, array in arguments.items()} | shapes
    kept = {name: "null" if "prelu" in name else "write" for name in symbol.list_arguments()}
    executor = symbol.simple_bind(mx.cpu(), grad_req=kept, type_dict=types, **whole)
    for name, array in {**arguments, **states}.items():
        target = executor.arg_dict.get(name, executor.aux_dict.get(name))
        target[:] = array.astype(target.dtype)
    for name, array in given.items():
        executor.arg_dict[name][:] = mx.nd.array(array, dtype=dtype)
    return executor, [*shapes, *known]


def input_of(name: str, shape: tuple, random) -> np.ndarray:
    """Return numbers for an input: classes, boxes with classes, the size of an image, or normally distributed ones."""
    if name == "softmax_label":
        return random.randint(0, 10, shape)
    if name == "im_info":
        return np.array([[64, 64, 1.0]])
    if name != "label":
        return random.normal(size=shape)
    corner, sides = random.uniform(0, 0.6, (*shape[:2], 2)), random.uniform(0.1, 0.4, (*shape[:2], 2))
    boxes = np.concatenate([random.randint(0, 5, (*shape[:2], 1)), corner, corner + sides], axis=-1)
    boxes[0, -1] = -1  # one box less
    return boxes


def results(mx, prefix: str, shapes: dict, dtype: str):
    """Give kinds, names and arrays of what a network computes; `dtype` is that of training."""
    executor, _ = bound(mx, prefix, shapes, "float32", training=False)
    for number, output in enumerate(executor.forward(is_train=False)):
        yield "outputs", str(number), output.asnumpy()
    executor, inputs = bound(mx, prefix, shapes, dtype, training=True)
    random = np.random.RandomState(12)
    weights = [n for n in executor.arg_dict if n not in inputs and executor.grad_dict[n] is not None]
    update = mx.optimizer.get_updater(mx.optimizer.SGD(learning_rate=2**-7 if dtype == "float64" else 2**-12, momentum=0.875))
    for step in range(2):
        outputs = executor.forward(is_train=True)
        heads = [mx.nd.array(random.normal(size=o.shape), dtype=dtype) for o in outputs]
        executor.backward(heads)
        if step == 0:
            for kind, arrays in (("outputs64", dict(enumerate(outputs))), ("gradients", executor.grad_dict),
                                 ("states", executor.aux_dict)):  # fmt: skip
                for name, array in arrays.items():
                    if array is not None:
                        yield kind, str(name), array.asnumpy()
        for number, name in enumerate(weights):
            update(number, executor.grad_dict[name], executor.arg_dict[name])
    for name in weights:
        yield "weights", name, executor.arg_dict[name].asnumpy()


def run(system: str, name: str, folder: str, target: str, dtype: str) -> None:
    """Write what one system computes of one network, and trains in a type."""
    warnings.simplefilter("ignore")
    prefix, shapes, _ = json.loads(Path(folder, "made.json").read_text(encoding="utf-8"))[name]
    mx = __import__(system)
    found = {
        f"{kind}|{key}": array for kind, key, array in results(mx, prefix, {n: tuple(s) for n, s in shapes.items()}, dtype)
    }
    np.savez(target, names=np.array(json.dumps(list(found))), **{str(n): a for n, a in enumerate(found.values())})


# ---- compared --------------------------------------------------------------------------------------------------------
def read(path: Path) -> dict[str, np.ndarray]:
    """Read what :func:`run` wrote."""
    with np.load(path) as file:
        return {name: file[str(n)] for n, name in enumerate(json.loads(str(file["names"])))}


def compare_one(name: str, folder: Path, python: str, environment: dict[str, str], dtype: str) -> tuple[dict, set[str]]:
    """Run one network in both systems; return the largest difference of each kind, and the kinds that are too different.

    What is trained in float32 may differ as much as the errors of such numbers grow in the network: those of mxop, beside its
    own results in float64, may be twice those of MXNet.
    """

    def computed(system: str, command: str, dtype: str) -> dict[str, np.ndarray]:
        file = folder / f"{system}.npz"
        subprocess.run([command, __file__, "--run", system, name, str(folder), str(file), dtype], check=True, env=environment)
        return read(file)

    ours, theirs = computed("mxop", sys.executable, dtype), computed("mxnet", python, dtype)
    if ours.keys() != theirs.keys():
        raise SystemExit(f"{name}: only one of the two has {sorted(ours.keys() ^ theirs.keys())}")
    found = differences(ours, theirs, 1e-6 if dtype == "float64" else 1e-3)
    allowed = dict(ALLOWED)
    if dtype != "float64":
        true = computed("mxop", sys.executable, "float64")
        errors, found_errors = differences(theirs, true, 1e-3), differences(ours, true, 1e-3)
        allowed |= {kind: 2 * most + 1e-5 for kind, most in errors.items() if kind != "outputs"}
    checked = found if dtype == "float64" else found_errors | {"outputs": found["outputs"]}
    found["parameters"] = sum(a.size for key, a in theirs.items() if key.startswith("weights|"))
    return found, {kind for kind, most in allowed.items() if not checked.get(kind, 0) <= most}


def differences(some: dict, others: dict, least: float) -> dict[str, float]:
    """Return the largest difference within an array of each kind, relative to the array's largest number.

    Arrays whose largest number is below a part, `least`, of that of all arrays of their kind count as if it were that.
    """
    worst: dict[str, float] = {}
    largest = dict.fromkeys(COLUMNS, 0.0)
    for key, array in others.items():
        largest[key.split("|")[0]] = max(largest[key.split("|")[0]], np.abs(array).max(initial=0))
    for key, array in others.items():
        kind = key.split("|")[0]
        scale = max(np.abs(array).max(initial=0), least * largest[kind], 1e-30)  # a bias before BatchNorm has no gradient
        difference = np.abs(some[key] - array).max(initial=0) / scale if some[key].shape == array.shape else np.inf
        worst[kind] = max(worst.get(kind, 0.0), float(difference))
    return worst


def compare(options: argparse.Namespace) -> int:
    """Make the networks, compare them; print a table, and write it where that is asked for."""
    rows, failed = [], False
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "PYTHONWARNINGS": "ignore"}
        subprocess.run([options.python, __file__, "--make", place, *options.names], check=True, env=environment)
        made = json.loads((folder / "made.json").read_text(encoding="utf-8"))
        for name, (_, shapes, dtype) in made.items():
            worst, wrong = compare_one(name, folder, options.python, environment, dtype)
            failed |= bool(wrong)
            cells = [
                f"{worst[kind]:.1g}" + (" (too much)" if kind in wrong else "") if kind in worst else "-" for kind in COLUMNS
            ]
            size = "x".join(map(str, shapes["data"]))
            rows.append(f"| {name} | {size} | {worst['parameters']:,} | {' | '.join(cells)} |")
            print(rows[-1], flush=True)
    if options.table:
        write_table(Path(options.table), rows)
    return int(failed)


def write_table(path: Path, rows: list[str]) -> None:
    """Put the rows in the place of the table in a document."""
    lines = path.read_text(encoding="utf-8").splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith("|---")) + 1
    end = next((n for n in range(at, len(lines)) if not lines[n].startswith("|")), len(lines))
    path.write_text("\n".join([*lines[:at], *rows, *lines[end:]]) + "\n", encoding="utf-8")


def main() -> int:
    if sys.argv[1:2] == ["--run"]:
        run(*sys.argv[2:])
        return 0
    if sys.argv[1:2] == ["--make"]:
        make(sys.argv[2], sys.argv[3:])
        return 0
    parser = argparse.ArgumentParser(description="Compare networks that MXNet wrote with MXNet.")
    parser.add_argument("python", help="an interpreter that imports MXNet 1.9.1")
    parser.add_argument("names", nargs="*", help="only these networks")
    parser.add_argument("--table", help="the document whose table is written")
    return compare(parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())
