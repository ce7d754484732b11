"""Compare what stands around training with the real MXNet: optimizers, metrics, schedules, initializers, iterators.

    python tools/compare_training.py PYTHON_WITH_MXNET

runs the same programs in both and prints what differs, and by how much.  ``PYTHON_WITH_MXNET`` is an interpreter that imports
MXNet 1.9.1 (it needs NumPy 1.23).  Random numbers differ between the two; of what is drawn, the moments are compared.
"""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
STEPS, SHAPE = 7, (4, 3)

OPTIMIZERS = [
    (name, kwargs | more)
    for name, forms in {
        "sgd": [{}, {"momentum": 0.9}], "ccsgd": [{"momentum": 0.5}], "nag": [{}, {"momentum": 0.9}],
        "signum": [{"momentum": 0.9, "wd_lh": 0.01}, {"momentum": 0.0}], "ftml": [{}],
        "lars": [{}, {"momentum": 0.9, "eta": 0.1}], "lbsgd": [{}, {"momentum": 0.9, "batch_scale": 2},
                                                               {"warmup_strategy": "lars"}],
        "lamb": [{}, {"bias_correction": False, "lower_bound": 0.5, "upper_bound": 1.0}], "dcasgd": [{}], "adam": [{}],
        "adagrad": [{}], "rmsprop": [{}, {"centered": True}, {"clip_weights": 0.5}], "adadelta": [{}], "ftrl": [{}],
        "adamax": [{}], "nadam": [{}], "test": [{}], "groupadagrad": [{"wd": 0.0}],
    }.items()
    for kwargs in forms
    for more in ({}, {"wd": 0.01, "clip_gradient": 0.3, "rescale_grad": 0.5, "learning_rate": 0.05})
    if not (name == "groupadagrad" and "wd" in more)
] + [(name, {"multi_precision": True, "learning_rate": 0.1, **more})
     for name, more in (("sgd", {"momentum": 0.9}), ("sgd", {}), ("adam", {}), ("lamb", {}),
                        ("lars", {"momentum": 0.9}))]  # fmt: skip

SCHEDULES = [
    ("FactorScheduler", {"step": 3, "factor": 0.5, "stop_factor_lr": 0.2, "base_lr": 1.0}),
    ("FactorScheduler", {"step": 3, "factor": 0.5, "base_lr": 1.0, "warmup_steps": 4, "warmup_begin_lr": 0.1}),
    ("MultiFactorScheduler", {"step": [2, 5], "factor": 0.1, "base_lr": 1.0, "warmup_steps": 3,
                              "warmup_mode": "constant", "warmup_begin_lr": 0.2}),
    ("PolyScheduler", {"max_update": 9, "base_lr": 1.0, "pwr": 2, "final_lr": 0.1, "warmup_steps": 2}),
    ("CosineScheduler", {"max_update": 9, "base_lr": 1.0, "final_lr": 0.1, "warmup_steps": 2}),
]  # fmt: skip

METRICS = [
    ("acc", {}, "classes"), ("top_k_accuracy", {"top_k": 2}, "classes"), ("f1", {}, "binary"),
    ("f1", {"average": "micro"}, "binary"), ("mcc", {}, "binary"), ("mcc", {"average": "micro"}, "binary"),
    ("pcc", {}, "classes"), ("perplexity", {"ignore_label": 1}, "classes"), ("perplexity", {"ignore_label": None}, "classes"),
    ("mae", {}, "values"), ("mse", {}, "values"), ("rmse", {}, "values"), ("ce", {}, "classes"), ("nll_loss", {}, "classes"),
    ("pearsonr", {}, "values"), ("pearsonr", {"average": "micro"}, "values"), ("loss", {}, "values"), ("torch", {}, "values"),
    ("caffe", {}, "values"),
]  # fmt: skip

INITIALIZERS = [
    ("Zero", {}), ("One", {}), ("Constant", {"value": 3}), ("Uniform", {"scale": 0.3}), ("Normal", {"sigma": 0.2}),
    ("Xavier", {}), ("Xavier", {"rnd_type": "gaussian", "factor_type": "in", "magnitude": 2}),
    ("Xavier", {"factor_type": "out"}), ("MSRAPrelu", {}), ("Orthogonal", {}), ("Orthogonal", {"rand_type": "normal"}),
    ("Bilinear", {}), ("LSTMBias", {"forget_bias": 2.0}),
    ("FusedRNN", {"init": '["constant", {"value": 0.5}]', "num_hidden": 3, "num_layers": 2, "mode": "lstm",
                  "bidirectional": True, "forget_bias": 2.0}),
    ("FusedRNN", {"init": None, "num_hidden": 3, "num_layers": 2, "mode": "gru"}),
]  # fmt: skip
#: Where MXNet is to differ: the beginning of the case, a word in it, how much more is allowed, and why.
KNOWN = [
    ("nag", "wd", np.inf, "MXNet's momentum decays the new weights, not those that the gradient belongs to"),
    ("ftml", "", 10, "MXNet computes 1 - beta2**t in float32"),
    ("lamb", "multi_precision", 30, "MXNet computes 1 - beta2**t in float32"),
    ("lars", "multi_precision", 10, "MXNet squares float16 numbers in float16 for the norms"),
    ("pearsonr", "micro", np.inf, "MXNet's global value is 0"),
]
NAMES = ["w_weight", "w_bias", "w_gamma", "w_beta", "w_min", "w_max"]


def optimizers(mx):
    """Give weights and states after some steps."""
    for number, (name, kwargs) in enumerate(OPTIMIZERS):
        random = np.random.RandomState(number)
        half = kwargs.get("multi_precision", False)
        names = {0: "a_weight", 1: "a_bias"}
        scheduler = mx.lr_scheduler.FactorScheduler(3, 0.5, base_lr=0.2) if name in ("sgd", "lars") else None
        optimizer = mx.optimizer.create(name, param_idx2name=names, lr_scheduler=scheduler, **kwargs)
        update = mx.optimizer.get_updater(optimizer)
        weights = [mx.nd.array(random.normal(size=SHAPE), dtype="float16" if half else "float32") for _ in names]
        for _ in range(STEPS):
            grads = [mx.nd.array(random.normal(size=SHAPE), dtype=weights[0].dtype) for _ in names]
            update([0, 1], grads, weights)
        yield f"{name} {kwargs}", [w.asnumpy() for w in weights] + arrays_of(update.states)


def arrays_of(value):
    """Return the arrays in a state."""
    if value is None:
        return []
    if isinstance(value, dict):
        return [a for key in sorted(value) for a in arrays_of(value[key])]
    return [a for one in value for a in arrays_of(one)] if isinstance(value, (tuple, list)) else [value.asnumpy()]


def schedules(mx):
    """Give the rates of the first updates."""
    for name, kwargs in SCHEDULES:
        schedule = getattr(mx.lr_scheduler, name)(**kwargs)
        yield f"{name} {kwargs}", [np.array([schedule(n) for n in range(12)])]


def metrics(mx):
    """Give local and global values over some batches."""
    for number, (name, kwargs, kind) in enumerate(METRICS):
        random = np.random.RandomState(number)
        metric = mx.metric.create(name, **kwargs)
        found = []
        for batch in range(4):
            if kind == "values":
                label, pred = random.normal(size=(6,)), random.normal(size=(6,))
            else:
                classes = 2 if kind == "binary" else 4
                label, pred = random.randint(0, classes, 6), random.dirichlet(np.ones(classes), 6)
            metric.update([mx.nd.array(label)], [mx.nd.array(pred)])
            found += [metric.get()[1], metric.get_global()[1]]
            if batch == 1:
                metric.reset_local()
        yield f"{name} {kwargs}", [np.array(found, "float64")]


def initializers(mx):
    """Give what is filled: as it is, or the moments of what is drawn; and what ``dumps`` says."""
    for name, kwargs in INITIALIZERS:
        own = {"init": mx.init.create(kwargs["init"])} if kwargs.get("init") else {}  # MXNet does not take the JSON
        init = getattr(mx.init, name)(**{**kwargs, **own})
        fused = name == "FusedRNN"
        gates, ways = (4, 2) if kwargs.get("mode") == "lstm" else (3, 1)
        size = sum(gates * 3 * (width + 3 + 2) for width in (5, 3 * ways) for _ in range(ways)) if fused else 0
        shape = (size,) if fused else (16,) if name == "LSTMBias" else (64, 32, 4, 4)
        array = mx.nd.zeros(shape)
        init(mx.init.InitDesc("w_weight", global_init=mx.init.One()), array)
        values = array.asnumpy()
        drawn = len(np.unique(values)) > 100
        if drawn:
            rows = values.reshape(64, -1).astype("float64")
            values = np.array([values.std(), (rows @ rows.T).trace() / 64])
        text = np.frombuffer(init.dumps().encode(), np.uint8)
        yield f"{name} {kwargs}{' (moments)' if drawn else ''}", [values, text]
    for name in NAMES:
        array = mx.nd.zeros((2,)) + 7
        mx.init.Constant(5)(mx.init.InitDesc(name), array)
        yield f"name {name}", [array.asnumpy()]


def iterators(mx):
    """Give all batches of two epochs."""
    for last in ("pad", "discard", "roll_over"):
        for size, count, shuffle in ((3, 7, False), (3, 7, True), (5, 2, False), (4, 8, True)):
            if size > count and last == "roll_over":
                continue
            np.random.seed(size)
            data = np.arange(count * 2, dtype="float32").reshape(count, 2)
            batches = mx.io.NDArrayIter({"b": data, "a": data + 100}, np.arange(count), size, shuffle, last)
            found = []
            for _ in range(3):
                for batch in batches:
                    found += [x.asnumpy() for x in [*batch.data, *batch.label]] + [np.array([batch.pad])]
                batches.reset()
            shapes = [np.array(d.shape) for d in batches.provide_data + batches.provide_label]
            yield f"NDArrayIter {last} {size} of {count}{' shuffled' if shuffle else ''}", found + shapes


def run(system: str, target: str) -> None:
    """Run the programs with one system; write what they give."""
    warnings.simplefilter("ignore")
    mx = __import__(system)
    mx.random.seed(1)
    found = {}
    for part in (optimizers, schedules, metrics, initializers, iterators):
        for name, arrays in part(mx):
            for at, array in enumerate(arrays):
                found[f"{part.__name__}|{name}|{at}"] = array
    np.savez(target, **{"names": np.array(json.dumps(list(found))), **{str(n): a for n, a in enumerate(found.values())}})


def read(path: Path) -> dict[str, np.ndarray]:
    """Read what :func:`run` wrote."""
    with np.load(path) as file:
        return {name: file[str(n)] for n, name in enumerate(json.loads(str(file["names"])))}


def difference(name: str, ours: np.ndarray, theirs: np.ndarray) -> float:
    """Return the largest difference, relative to the largest value, in units of what is allowed."""
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return np.inf
    allowed = 0.03 if "(moments)" in name and ours.dtype != np.uint8 else 2e-3 if ours.dtype == np.float16 else 2e-6
    ours, theirs = ours.astype("float64"), theirs.astype("float64")
    if not np.array_equal(np.isnan(ours), np.isnan(theirs)):
        return np.inf
    scale = max(np.nanmax(np.abs(theirs), initial=0), 1e-3)
    return float(np.nanmax(np.abs(ours - theirs), initial=0) / scale / allowed)


def compare(python: str) -> int:
    """Run both; print a line for each kind, and each difference."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder, f"{system}.npz") for system in ("mxop", "mxnet")]
        for command, file in zip((sys.executable, python), files, strict=True):
            environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
            subprocess.run([command, __file__, "--run", file.stem, str(file)], check=True, env=environment)
        ours, theirs = (read(file) for file in files)
    worst: dict[tuple[str, str], float] = {}
    for name in sorted({*ours, *theirs}):
        part, case, _ = name.split("|")
        there = name in ours and name in theirs
        found = difference(name, ours[name], theirs[name]) if there else np.inf
        worst[part, case] = max(worst.get((part, case), 0), found)
    failed = 0
    for part in dict.fromkeys(part for part, _ in worst):
        cases = {case: value for (one, case), value in worst.items() if one == part}
        print(f"{part}: {len(cases)} cases, largest difference {max(cases.values()):.3g} of what is allowed")
        for case, value in cases.items():
            if value > 1:
                allowed, why = next((k[2:] for k in KNOWN if case.startswith(k[0]) and k[1] in case), (1, ""))
                failed += value > allowed
                print(f"  {'DIFFERS' if value > allowed else 'as known'}: {value:.3g}: {case}{why and f': {why}'}")
    return failed > 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--run"]:
        run(*sys.argv[2:])
    else:
        sys.exit(compare(sys.argv[1]))
