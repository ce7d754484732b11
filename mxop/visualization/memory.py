"""``memory_chart``: which value lives in which buffer, from when to when."""

from __future__ import annotations

from typing import Any

from ..graph.executor import Executor
from ..graph.explain import Explanation
from ..graph.rows import Buffer, bytes_text
from ..support.errors import OpTypeError, ends_at_caller
from .canvas import SVG, drawing, path, rectangle, shortened, text, width_of

_TINTS = ("#8dd3c7", "#ffffb3", "#bebada", "#fb8072", "#80b1d3", "#fdb462", "#b3de69", "#fccde5")
_LEFT, _RIGHT, _TOP, _CURVE, _LANE, _MARGIN = 110.0, 16.0, 34.0, 110.0, 22.0, 40.0


@ends_at_caller
def memory_chart(executor: Any, width: float = 900.0) -> SVG:
    """Draw the memory of an executor over the steps of its schedule.

    Above, the bytes of all values that are alive, and the bytes that are planned for them; below, a lane for each buffer
    with the values that live in it. Pointing at a value shows its name, size and steps.

    Parameters
    ----------
    executor : Executor or Explanation
    width : float
        In pixels.

    Examples
    --------
    >>> x, w = mx.sym.Variable('x'), mx.sym.Variable('w')
    >>> executor = mx.sym.softmax(mx.sym.dot(x, w)).simple_bind(mx.cpu(), x=(2, 3), w=(3, 4))
    >>> 'buffer 0' in mx.viz.memory_chart(executor)
    True
    """
    told = executor.explain() if isinstance(executor, Executor) else executor
    if not isinstance(told, Explanation):
        raise OpTypeError(f"memory_chart: expected an executor or what explain() returns, got {type(executor).__name__}")
    steps = max(len(told), 1)
    step = (width - _LEFT - _RIGHT) / steps
    lanes = _TOP + _CURVE + _MARGIN
    height = lanes + len(told.buffers) * _LANE + _MARGIN
    parts = [
        text(_LEFT, 16, _title(told), anchor="start", weight="bold", size=12),
        *_curve(told, step),
        *(part for k, b in enumerate(told.buffers) for part in _lane(b, lanes + k * _LANE, step)),
        *_steps(told, step, height),
    ]
    return drawing(parts, width, height)


def _title(told: Explanation) -> str:
    memory = told.memory
    return f"Buffers: {bytes_text(memory['planned'])} planned, {bytes_text(memory['unshared'])} if no two values shared one"


def _curve(told: Explanation, step: float) -> list[str]:
    """Return the bytes that are alive at each step, as an area, under the line of what is planned."""
    planned = max(told.memory["planned"], 1)
    base = _TOP + _CURVE
    parts = []
    for k, live in enumerate(told.live_bytes):
        tall = _CURVE * live / planned
        tip = f"step {k}: {bytes_text(live)} alive\n" + "\n".join(told[k].formula)
        parts.append(rectangle(_LEFT + k * step, base - tall, step, tall, fill="#b9d4ea", tip=tip))
    parts.append(path([(_LEFT, _TOP), (_LEFT + len(told) * step, _TOP)], stroke="#cf222e", dashes="4 3"))
    parts.append(path([(_LEFT, base), (_LEFT + len(told) * step, base)]))
    parts.append(text(_LEFT - 6, _TOP + 4, bytes_text(told.memory["planned"]), anchor="end"))
    parts.append(text(_LEFT - 6, base + 4, "0 B", anchor="end"))
    return parts


def _lane(buffer: Buffer, top: float, step: float) -> list[str]:
    """Return one buffer and the values in it."""
    label = f"buffer {buffer.number}  {bytes_text(buffer.nbytes)}"
    parts = [text(_LEFT - 6, top + _LANE - 8, label, anchor="end", size=10)]
    for k, tenant in enumerate(buffer.tenants):
        x, wide = _LEFT + tenant.first * step, (tenant.last - tenant.first + 1) * step
        after = buffer.tenants[k + 1] if k + 1 < len(buffer.tenants) else None
        if after is not None and after.first == tenant.last:  # the next value takes its place within the step
            wide -= step / 2
        if k and buffer.tenants[k - 1].last == tenant.first:
            x, wide = x + step / 2, wide - step / 2
        tip = f"{tenant.name}: {bytes_text(tenant.nbytes)}, steps {tenant.first} to {tenant.last}"
        tint = _TINTS[(buffer.number + k) % len(_TINTS)]
        parts.append(rectangle(x, top + 2, wide, _LANE - 4, fill=tint, stroke="#777", stroke_width=0.5, round_=2, tip=tip))
        if wide > width_of("xxxx", 9):
            name = shortened(tenant.name, max(int(wide / width_of("x", 9)), 2))
            parts.append(text(x + wide / 2, top + _LANE - 8, name, size=9))
    return parts


def _steps(told: Explanation, step: float, height: float) -> list[str]:
    """Return the numbers of steps, and where backward begins."""
    every = max(1, len(told) // 20)
    parts = [text(_LEFT + (k + 0.5) * step, height - _MARGIN + 16, str(k), size=9) for k in range(0, len(told), every)]
    parts.append(text(_LEFT, height - 8, "step", size=10, anchor="start"))
    first = next((row.step for row in told if row.phase == "backward"), None)
    if first is not None:
        x = _LEFT + first * step
        parts.append(path([(x, _TOP - 8), (x, height - _MARGIN)], stroke="#999", dashes="2 3"))
        parts.append(text(x + 4, _TOP - 2, "backward", size=10, anchor="start", fill="#666"))
    return parts
