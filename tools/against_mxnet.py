"""Compare every operator with the real MXNet 1.9.1 over the cases of its record, and write the table for the documentation.

    python -m venv mxnet-1.9 && mxnet-1.9/bin/pip install numpy==1.23.5 mxnet==1.9.1    # Python 3.11 or older
    python tools/against_mxnet.py mxnet-1.9/bin/python                 # every operator that MXNet has
    python tools/against_mxnet.py mxnet-1.9/bin/python dot topk        # some, with every difference
    python tools/against_mxnet.py mxnet-1.9/bin/python --write docs/compared_with_mxnet.md

Compared are results, their types and shapes, states after the call, in every type of the record, and gradients of the first
three orders (the second and third of the squares of the results, so that head gradients depend on the inputs).  Random
numbers are compared with the distribution that the record names.  With ``--write``, ``check_op`` is run as well: it says up
to which order gradients agree with differences.  MXNet runs in a process of its own; where that ends, the table says so.
"""

from __future__ import annotations

import argparse
import os
import select
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import mxnet_worker
import numpy as np

import mxop as mx
from mxop._core import dispatch
from mxop.check import cases, check_op, draws, find_record
from mxop.opdef import Operator, registry
from mxop.records import Record
from mxop.support import mxnet_names

#: How far results for data of a type may be apart, as a part of the largest number.  MXNet computes with parameters of float32
#: whatever the data are, and with float16 where mxop takes float32.
APART = {"float64": 1e-5, "float32": 2e-5, "float16": 1e-2}
TYPES = ("float32", "float64", "float16", "int32", "int64", "int8", "uint8")
ORDERS = 3
SEEDS = (0, 1)
PATIENCE = 5  # seconds for an answer, after which the process is ended
#: Inputs of records that MXNet reads or writes beyond its arrays for, and the intervals in which it is asked.
INSIDE = {"SequenceLast": {1: (1, 4)}, "SequenceMask": {1: (0, 4)}, "SequenceReverse": {1: (1, 4)}}


class MXNet:
    """MXNet in a process of its own, which is started again when it ends."""

    def __init__(self, python: str):
        self.python, self.process = python, None

    def ask(self, head: dict, values: list) -> dict:
        """Return its answer to one call."""
        if self.process is None:
            env = {
                **os.environ,
                "MXNET_ENGINE_TYPE": "NaiveEngine",
                "MXNET_MKLDNN_ENABLED": "0",
                "MXNET_STORAGE_FALLBACK_LOG_VERBOSE": "0",
            }
            worker = Path(__file__).with_name("mxnet_worker.py")
            self.process = subprocess.Popen([self.python, str(worker)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                            stderr=subprocess.DEVNULL, env=env)  # fmt: skip
        try:
            mxnet_worker.send(self.process.stdin, head, values)
            if not select.select([self.process.stdout], [], [], PATIENCE)[0]:
                self.process.kill()
            answer, arrays = mxnet_worker.receive(self.process.stdout)
        except BrokenPipeError:
            answer = None
        if answer is None:
            self.process.kill()
            self.process = None
            return {"error": "its process ended"}
        return mxnet_worker.unpacked(answer, arrays)


@dataclass
class Found:
    """What was seen of one operator."""

    op: Operator
    compared: int = 0
    equal: int = 0
    refused: list[str] = field(default_factory=list)
    different: list[str] = field(default_factory=list)
    orders: dict[int, set] = field(default_factory=lambda: {n: set() for n in range(1, ORDERS + 1)})
    verified: str = ""

    def of_mxnet(self) -> str:
        """Return up to which order MXNet has the gradients of mxop, and whether in some cases alone."""
        seen = [n for n, marks in self.orders.items() if marks]
        equal = [n for n in seen if "equal" in self.orders[n]]
        if not equal:
            return "none" if seen else "–"
        return str(max(equal)) + ("" if all(self.orders[n] == {"equal"} for n in equal) else ", partly")


# ---- comparing -------------------------------------------------------------------------------------------------------
def invoke(op: str, inputs: list, params: dict, out: Any) -> Any:
    """Call one of our operators; `out` is for MXNet."""
    found = registry.get(op)
    return dispatch.invoke(found, inputs, found.parse(params))


def different(dtype: str, ours: list, theirs: list) -> str | None:
    """Say how what a call on data of a type gave differs; None where it does not."""
    if len(ours) != len(theirs):
        return f"{len(ours)} results, MXNet has {len(theirs)}"
    for a, b in zip(ours, theirs, strict=True):
        if a.dtype != b.dtype:
            return f"type {a.dtype}, MXNet's {b.dtype}"
        if a.shape != b.shape:
            return f"shape {a.shape}, MXNet's {b.shape}"
        x, y = a.astype("float64").ravel(), b.astype("float64").ravel()
        finite = np.isfinite(y)
        size = max(1.0, np.max(np.abs(y[finite]), initial=0))
        with np.errstate(all="ignore"):
            wrong = ~(
                (x == y)
                | (np.abs(x - y) <= (APART.get(dtype, 1e-6) if a.dtype.kind == "f" else 0) * size)
                | (np.isnan(x) & np.isnan(y))
            )
        if wrong.any():
            k = int(wrong.argmax())
            return f"{x[k]:.6g}, MXNet's {y[k]:.6g}"
    return None


def compare(mxnet: MXNet, op: Operator) -> Found:
    """Compare an operator over the cases of its record."""
    record, found = _asked(op), Found(op)
    for seed in SEEDS:
        for case in cases.cases(op, record, np.random.default_rng(seed)):
            if any(0 in shape for shape in case.shapes):  # MXNet takes 0 for a size that is not known
                continue
            for dtype in [t for t in TYPES if t in cases.types_of(record, None)]:
                if case.random and record.distribution is not None:
                    if seed == SEEDS[0]:
                        _compare_draws(mxnet, case, dtype, found)
                else:
                    _compare_case(mxnet, case, dtype, found)
    return found


def _asked(op: Operator) -> Record:
    """Return the record, with intervals for which MXNet has an answer."""
    record = find_record(op)
    inside = INSIDE.get(op.name)
    if inside is None:
        return record
    domain = [record.domain] * 8 if isinstance(record.domain[0], (int, float)) else list(record.domain)
    for k, interval in inside.items():
        domain[k] = interval
    return replace(record, domain=tuple(domain))


def _request(case: cases.Case, dtype: str) -> dict:
    params = {k: str(v) for k, v in case.params.items()}
    count = case.op.num_args_param
    if case.op.variadic and count is not None and count != "num_outputs":
        params.setdefault(count, str(len(case.shapes)))
    first = TYPES.index(dtype) < 2 and case.variables
    return {"op": case.op.name, "params": params, "train": case.train, "states": list(case.states),
            "variables": [k for k in case.variables if case.type_of(k, dtype) in cases.FLOATS],
            "orders": (ORDERS if dtype == "float64" else 1) if first else 0}  # fmt: skip


def _compare_case(mxnet: MXNet, case: cases.Case, dtype: str, found: Found) -> None:
    values, request = case.sample(dtype), _request(case, dtype)
    case.seed()
    ours = mxnet_worker.run(mx, invoke, request, values)
    if "multi_" in case.op.name and "outputs" in ours:
        request["out"] = [[a.dtype.name, a.shape] for a in ours["outputs"]]
    theirs = mxnet.ask(request, values)
    if theirs.get("error") == "its process ended" and request["orders"]:
        theirs = mxnet.ask({**request, "orders": 0}, values) | {"error": "its process ended in a gradient"}
    if "outputs" not in theirs or "outputs" not in ours:
        side = "MXNet" if "outputs" not in theirs else "mxop"
        found.refused.append(f"{dtype} {case}: {side}: {(theirs if side == 'MXNet' else ours)['error']}")
        return
    found.compared += 1
    how = different(dtype, ours["outputs"] + ours["states"], theirs["outputs"] + theirs["states"])
    for n in range(1, request["orders"] + 1) if how is None else ():
        key = str(n)
        if key not in ours:
            how = f"gradient of order {n}: {ours['error']}" if n == 1 else None  # of a constant there is none
            break
        wrong = different(dtype, ours[key], theirs[key]) if key in theirs else None
        found.orders[n].add("none" if key not in theirs else "different" if wrong else "equal")
        if wrong:
            how = f"gradient of order {n}: {wrong}" if n == 1 else how
            break
    if how is None:
        found.equal += 1
    else:
        found.different.append(f"{dtype} {case}: {how}")


def _compare_draws(mxnet: MXNet, case: cases.Case, dtype: str, found: Found) -> None:
    """Hold what MXNet draws against the distribution against which check_op holds ours."""
    values, request = case.sample(dtype), {**_request(case, dtype), "orders": 0}
    answer = mxnet.ask(request, values)
    if "outputs" not in answer:
        found.refused.append(f"{dtype} {case}: MXNet: {answer['error']}")
        return
    laws = case.record.distribution(*values, **case.reference_params())
    found.compared += 1
    try:
        for law, drawn in zip(laws if isinstance(laws, (list, tuple)) else [laws], answer["outputs"], strict=False):
            draws._fits("MXNet", law, drawn.astype("float64").ravel())
        found.equal += 1
    except cases.Mismatch as problem:
        found.different.append(f"{dtype} {case}: {problem}")


# ---- the table -------------------------------------------------------------------------------------------------------
def verified(op: Operator) -> str:
    """Return up to which order check_op compares gradients with differences."""
    record, report = find_record(op), check_op(op.name)
    if not report["checks"].get("gradient"):
        return "–" if not op.differentiable or not op.arguments else "zero"
    return "zero" if record.grad_inputs == () else "as stated" if not record.order else str(min(record.order, ORDERS))


def operators(names: list[str]) -> Iterator[Operator]:
    """Yield the operators that MXNet has."""
    theirs = mxnet_names.sections()["operators"]
    for op in registry.operators():
        if (op.name in names if names else op.name in theirs) and find_record(op) is not None:
            yield op


def table(found: list[Found]) -> str:
    """Return the page."""
    same = sum(f.equal == f.compared > 0 for f in found)
    lines = ["<!-- Written by tools/against_mxnet.py; run it again rather than change this page. -->", "",
             "# Compared with MXNet 1.9.1", "",
             f"{len(found)} operators over {sum(f.compared for f in found)} cases: the parameters and shapes of their records, "
             f"two draws of inputs, and every type that both have. {same} agree in all of them, first gradients included; for "
             "the others [differences](differences.md) says why.", "",
             "*Orders*: up to which order `check_op` finds the gradients of mxop equal to differences (`as stated`: a loss, "
             "whose gradient is what it says; `zero`; –: there is none), and up to which MXNet has the same ones (*partly*: in "
             "some cases alone). MXNet is asked about gradients of "
             "squares of results from the second order on.", "",
             "| operator | orders | MXNet's orders | cases | equal | MXNet refuses |", "|---|---|---|---|---|---|"]  # fmt: skip
    lines += [f"| `{f.op.name}` | {f.verified} | {f.of_mxnet()} | {f.compared} | {f.equal} | {len(f.refused) or ''} |"
              for f in found]  # fmt: skip
    return "\n".join(lines) + "\n"


def _kinds(row: Found) -> list[str]:
    """Return one difference in each type."""
    first = {text.partition(" ")[0] + text.rpartition("gradient of order")[1]: text for text in reversed(row.different)}
    return list(first.values())


def main() -> None:
    """Compare, and print or write what was found."""
    parser = argparse.ArgumentParser(description="Compare operators with MXNet 1.9.1.")
    parser.add_argument("python", help="of an environment that has MXNet")
    parser.add_argument("operators", nargs="*")
    parser.add_argument("--write", type=Path, help="a page for the documentation")
    options = parser.parse_args()
    mxnet, found = MXNet(options.python), []
    for op in operators(options.operators):
        row = compare(mxnet, op)
        row.verified = verified(op) if options.write else ""
        found.append(row)
        print(f"{op.name:44} {row.equal} of {row.compared} equal, {len(row.refused)} refused, MXNet's orders "
              f"{row.of_mxnet()}", flush=True)  # fmt: skip
        for text in row.different + row.refused if options.operators else _kinds(row):
            print("    " + text)
    if options.write:
        options.write.write_text(table(found), encoding="utf-8")
    sys.exit(not found)


if __name__ == "__main__":
    main()
