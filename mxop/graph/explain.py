"""Explanations of executors: schedule, fused groups, buffers, bytes moved, and a lower bound of the time.

Everything is read from the plan of the prepared calls, so it describes the calls that run.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cached_property
from html import escape
from typing import Any

from ..context import of_array
from ..support import dtypes
from .infer import Known
from .ir import Entry, Graph, Node, location
from .listing import formula_of, members_of, operators_of, value_name
from .plan import ADD, NULL, Home, Plan, Result, size_of
from .rows import Buffer, Row, Tenant, Value, bytes_text, time_text
from .stages import Strip
from .traits import elements_read


class Explanation:
    """The result of :meth:`Executor.explain`; prints as a table, and shows as one in notebooks.

    Attributes
    ----------
    rows : list of Row
        The schedule.
    buffers : list of Buffer
    graphs : list of range
        The steps of each CUDA graph, as which they are launched from the second run on the same memory on.
    views : list of (str, str)
        Pairs of names: the first value is a view of the second and costs nothing.
    memory : dict of str to int
        Bytes: ``planned`` of the buffers, ``unshared`` of buffers if no two values shared one, ``arguments``,
        ``gradients``, ``auxiliary``, ``outputs`` of the given arrays.
    runs : int
        The number of runs whose median times are shown; 0 if not measured.
    lasting : list of str
        Nodes that may have changed a state outside of arrays while they were measured: external and random functions.

    Examples
    --------
    >>> import mxop as mx
    >>> x = mx.sym.Variable('x')
    >>> y = mx.sym.elemwise_mul(mx.sym.tanh(x * 2 + 1), x, name='y')
    >>> executor = y.simple_bind(mx.cpu(), 'null', x=(2, 3))
    >>> told = executor.explain()
    >>> told.rows[0].formula, told.rows[0].nbytes
    (['y = tanh(2 * x + 1) * x'], 48)
    >>> print(told.rows[0].source)
       r0 = add(mul(s0,x0),s1)               in0, 2.0, 1.0
       r1 = tanh(x0)                         r0
     out0 = mul(x0,x1)                       r1, in0
    """

    def __init__(self, executor: Any, is_train: bool | None = None, measure: bool = False):
        train = executor._train is not None if is_train is None else is_train and executor._train is not None
        schedule, plan = (None, executor._train_plan) if train else executor._inference(bool(is_train))
        self._plan: Plan = plan()
        self._schedules = [executor._train, executor._backward] if train else [schedule]
        self._known: Known = self._plan.known  # type: ignore[assignment]
        self._places = _Places(executor, self._plan)
        self.context = of_array(executor._device.number, max(executor._device.number, 0))
        self.rows = list(self._make_rows())
        first = [0, len(self._schedules[0])]
        self.graphs = [range(g.start + k, g.stop + k) for s, k in zip(self._schedules, first, strict=False) for g in s.graphs]
        self.views = [(value_name(e), value_name(of)) for e, of in self._plan.alias.items()]
        self.buffers = _buffers(self._plan, self.rows)
        self.memory = {"planned": self._plan.nbytes, "unshared": self._plan.unshared} | {
            name: sum(a.size * dtypes.SIZES[a.dtype_code] for a in arrays if a is not None)
            for name, arrays in (("arguments", executor.arg_arrays), ("gradients", executor.grad_arrays),
                                 ("auxiliary", executor.aux_arrays), ("outputs", executor.outputs))
        }  # fmt: skip
        self.runs, self.lasting = 0, []
        if measure:
            self._measure(executor, train)

    # ---- from the plan ----------------------------------------------------------------------------------------------
    def _make_rows(self) -> Iterator[Row]:
        """Yield a row for each prepared call, paired with its node as the schedule was built."""
        step = 0
        for p, (phase, copies) in enumerate(zip(self._plan.phases, self._plan.copies, strict=True)):
            name = ("forward", "backward")[p]
            calls = iter(self._schedules[p].calls)
            for node in phase.nodes:
                if node.op is not None and (node, 0) not in self._plan.alias:
                    yield self._call_row(step, name, node, next(calls))
                    step += 1
            for result in copies:
                yield self._copy_row(step, name, result, next(calls))
                step += 1

    def _call_row(self, step: int, phase: str, node: Node, call: Any) -> Row:
        outputs = [(node, k) for k in range(node.n_outputs)]
        reqs = [self._plan.homes[e].req for e in outputs]
        read = {self._places.of(e): self._value(e, 1) for e in elements_read(node)}
        written = [self._value(e, {NULL: 0, ADD: 2}.get(req, 1)) for e, req in zip(outputs, reqs, strict=True)]
        members = members_of(node)
        kind = "strip" if isinstance(node.op, Strip) else "fused" if len(members) > 1 else "operator"
        return Row(
            step, phase, kind, operators_of(node),
            [m.name for m in members], formula_of(node), list(read.values()), written, location(members[-1]),
            self.context, None, node, call, self._known, reqs,
        )  # fmt: skip

    def _copy_row(self, step: int, phase: str, result: Result, call: Any) -> Row:
        source, added = self._value(result.entry, 1), result.req == ADD
        place = self._places.of_array(result.array)
        target = Value(source.name, source.shape, source.dtype, source.nbytes * (1 + added), place)
        text = [f"{place} {'+=' if added else '='} {source.name}"]
        return Row(step, phase, "copy", "_copy", [], text, [source], [target],
                   None, self.context, _call=call)  # fmt: skip

    def _measure(self, executor: Any, train: bool) -> None:
        from .measure import lasting, measured

        self.lasting = lasting(self._plan)
        seconds, self.runs = measured(executor, self._plan, self._schedules, train)
        for row, taken in zip(self.rows, seconds, strict=True):
            row.measured = taken

    def _value(self, entry: Entry, times: int) -> Value:
        shape, code = self._known.shape(entry), self._known.dtype(entry)
        nbytes = times * size_of(shape) * dtypes.SIZES[code]
        return Value(value_name(entry), tuple(shape), dtypes.NAMES[code], nbytes, self._places.of(entry))

    # ---- presentation ------------------------------------------------------------------------------------------------
    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, at: int) -> Row:
        return self.rows[at]

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    @property
    def graph(self) -> Graph:
        """The graph that runs: after all passes, with fused groups as nodes."""
        return Graph(result.entry for phase in self._plan.phases for result in phase.results)

    @property
    def groups(self) -> list[Row]:
        """The rows of several operators: fused formulas, and row kernels."""
        return [row for row in self.rows if row.kind in ("fused", "strip")]

    @property
    def nbytes(self) -> int:
        """Bytes that one run moves."""
        return sum(row.nbytes for row in self.rows)

    @property
    def seconds(self) -> float:
        """The least time that moving these bytes takes, at the measured bandwidth of a copy."""
        return sum(row.seconds for row in self.rows)

    @property
    def measured(self) -> float | None:
        """The sum of the median seconds of all steps; None if not measured."""
        return sum(row.measured or 0.0 for row in self.rows) if self.runs else None

    @property
    def slowest(self) -> Row | None:
        """The step with the longest time; None if not measured."""
        return max(self.rows, key=lambda row: row.measured or 0.0) if self.runs and self.rows else None

    @cached_property
    def live_bytes(self) -> list[int]:
        """For each step, the bytes of live values in buffers."""
        found = [0] * len(self.rows)
        for buffer in self.buffers:
            held = [0] * len(self.rows)  # a result that overwrites its operand counts once
            for tenant in buffer.tenants:
                for step in range(tenant.first, tenant.last + 1):
                    held[step] = max(held[step], tenant.nbytes)
            found = [total + own for total, own in zip(found, held, strict=True)]
        return found

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return {
            "device": str(self.context), "nbytes": self.nbytes, "seconds": self.seconds, "memory": self.memory,
            "measured": self.measured, "runs": self.runs, "lasting": self.lasting, "graphs": [list(g) for g in self.graphs],
            "schedule": [row.as_dict() for row in self.rows], "views": [list(v) for v in self.views],
            "buffers": [vars(b) | {"tenants": [vars(t) for t in b.tenants]} for b in self.buffers],
        }  # fmt: skip

    def to_json(self, indent: int | None = None) -> str:
        """Return everything as JSON."""
        return json.dumps(self.as_dict(), indent=indent)

    def __str__(self) -> str:
        head = "".join(f"{name:{width}}  " for name, width in self._columns())
        lines = [self._summary(), "", f"{head}what"]
        for row in self.rows:
            cells = zip(self._cells(row), self._columns(), strict=True)
            head = "".join(f"{cell:{width}}  " for cell, (_, width) in cells)
            lines += [(head if k == 0 else " " * len(head)) + line for k, line in enumerate(row.formula)]
        lines += ["", f"{'buffer':>6}  {'size':>9}  values (from step - to step)"]
        for b in self.buffers:
            lines.append(f"{b.number:>6}  {bytes_text(b.nbytes):>9}  {_lived(b)}")
        lines += [f"{name} is a view of {of}" for name, of in self.views]
        return "\n".join(lines)

    __repr__ = __str__

    def _columns(self) -> list[tuple[str, str]]:
        """Return titles and widths of the columns before the formula."""
        found = [("step", ">4"), ("phase", "<8"), ("kind", "<8"), ("moves", ">9"), ("at least", ">9")]
        return found + ([("takes", ">9"), ("times", ">7"), ("share", ">5")] if self.runs else [])

    def _cells(self, row: Row) -> list[str]:
        found = [str(row.step), row.phase, row.kind, bytes_text(row.nbytes), time_text(row.seconds)]
        if row.measured is None:
            return found
        ratio = "" if row.ratio is None else f"{row.ratio:.3g}" if row.ratio < 1000 else f"{row.ratio:.0f}"
        return [*found, time_text(row.measured), ratio, f"{row.measured / (self.measured or 1):.0%}"]

    def _summary(self) -> str:
        unshared, planned = self.memory["unshared"], self.memory["planned"]
        return (
            f"{len(self.rows)} calls on {self.context}, {len(self.groups)} of them fused groups; they move "
            f"{bytes_text(self.nbytes)}, which takes at least {time_text(self.seconds)}\n"
            f"{self._summary_of_times()}"
            f"{self._summary_of_launches()}"
            f"Buffers: {bytes_text(planned)} ({bytes_text(unshared)} unshared)"
        )

    def _summary_of_times(self) -> str:
        if self.slowest is None or self.measured is None:
            return ""
        text = f"Measured: {time_text(self.measured)} (medians of {self.runs} runs); the slowest is step {self.slowest.step}\n"
        if self.lasting:
            text += f"These ran, too; states that they keep outside of arrays are not restored: {', '.join(self.lasting)}\n"
        return text

    def _summary_of_launches(self) -> str:
        if not self.context.is_gpu:
            return ""
        graphs = ", ".join(f"{g.start}-{g.stop - 1}" for g in self.graphs) or "none"
        waiting = [f"step {row.step} ({row.operator}: {row.waits})" for row in self.rows if row.waits]
        waits = f"These wait for the GPU, and what follows is launched after that: {', '.join(waiting)}\n" if waiting else ""
        return f"CUDA graphs of steps, from the second run on: {graphs}\n{waits}"

    def _repr_html_(self) -> str:
        titles = [name for name, _ in self._columns()]
        calls = [[*map(escape, self._cells(r)), f"<pre>{escape(chr(10).join(r.formula))}</pre>"] for r in self.rows]
        buffers = [[str(b.number), bytes_text(b.nbytes), escape(_lived(b))] for b in self.buffers]
        return (
            f"<p>{escape(self._summary())}</p>"
            + _html_table([*titles, "what"], calls)
            + _html_table(["buffer", "size", "values (from step - to step)"], buffers)
        )


def _html_table(head: list[str], rows: list[list[str]]) -> str:
    cells = "".join(f"<tr>{''.join(f'<td>{c}</td>' for c in row)}</tr>" for row in rows)
    return f"<table><tr>{''.join(f'<th>{h}</th>' for h in head)}</tr>{cells}</table>"


def _lived(buffer: Buffer) -> str:
    """Return the values of a buffer, with the steps of their lifetimes."""
    return ", ".join(f"{t.name} ({t.first}-{t.last})" for t in buffer.tenants)


class _Places:
    """Describes where values are stored."""

    def __init__(self, executor: Any, plan: Plan):
        self._plan = plan
        self._variables = {n: f"argument {n.name}" for n in executor._arguments}
        self._variables |= {n: f"auxiliary state {n.name}" for n in executor._states}
        self._arrays = {id(a): f"output {name}" for name, a in executor.output_dict.items()}
        self._arrays |= {id(a): f"gradient of {name}" for name, a in executor.grad_dict.items() if a is not None}

    def of(self, entry: Entry) -> str:
        root = self._plan.root(entry)
        if root[0].op is None:
            return self._variables.get(root[0], f"head gradient {root[0].name}")
        home: Home | None = self._plan.homes.get(root)
        if home is None:  # evaluated when the executor was made
            return f"constant {root[0].name}"
        return f"buffer {home.buffer}" if home.array is None else self.of_array(home.array)

    def of_array(self, array: Any) -> str:
        return self._arrays.get(id(array), "array")


def _buffers(plan: Plan, rows: list[Row]) -> list[Buffer]:
    """Return the buffers with the lifetimes of their values, in steps of the schedule."""
    known: Known = plan.known  # type: ignore[assignment]
    made: dict[Entry, Row] = {}
    last: dict[Entry, int] = {}
    for row in rows:
        if row._node is None:
            continue
        for k in range(row._node.n_outputs):
            made[row._node, k] = row
            last[row._node, k] = row.step
    for row, entry in _reads(plan, rows):
        root = plan.root(entry)
        if root in made:  # kept for another phase, which may run again
            last[root] = max(last[root], row.step if made[root].phase == row.phase else len(rows) - 1)
    tenants: dict[int, list[Tenant]] = {}
    for entry, row in made.items():
        home = plan.homes[entry]
        if home.array is None:
            nbytes = size_of(known.shape(entry)) * dtypes.SIZES[known.dtype(entry)]
            tenants.setdefault(home.buffer, []).append(Tenant(value_name(entry), row.step, last[entry], nbytes))
    return [
        Buffer(i, dtypes.NAMES[code], size * dtypes.SIZES[code], tuple(sorted(tenants.get(i, ()), key=lambda t: t.first)))
        for i, (code, size) in enumerate(plan.buffers)
    ]


def _reads(plan: Plan, rows: list[Row]) -> Iterator[tuple[Row, Entry]]:
    """Yield each call with the entries that it reads."""
    copies = iter([result for phase in plan.copies for result in phase])
    for row in rows:
        if row._node is None:
            yield row, next(copies).entry
        else:
            for entry in elements_read(row._node):
                yield row, entry
