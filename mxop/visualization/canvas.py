"""SVG as text: shapes, and the drawing that they make."""

from __future__ import annotations

import os
from collections.abc import Iterable
from xml.sax.saxutils import escape, quoteattr

from ..support.files import path_of, reporting

#: Average width of a character, as a part of the font's size.
_CHARACTER = 0.6


class SVG(str):
    """A drawing: the text of an SVG file, which notebooks show as a picture.

    Examples
    --------
    >>> drawing = mx.viz.svg(mx.sym.exp(mx.sym.Variable('x')))
    >>> drawing.startswith('<svg'), drawing.save.__doc__
    (True, 'Write the drawing to a file.')
    """

    __slots__ = ()

    def _repr_svg_(self) -> str:
        return str(self)

    def save(self, fname: str | os.PathLike) -> None:
        """Write the drawing to a file."""
        path = path_of(fname, "save")
        with reporting("save", path), open(path, "w", encoding="utf-8") as file:
            file.write(self)


def drawing(parts: Iterable[str], width: float, height: float) -> SVG:
    """Return a drawing of shapes."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_n(width)}" height="{_n(height)}" '
        f'viewBox="0 0 {_n(width)} {_n(height)}" font-family="Helvetica, Arial, sans-serif">'
    )
    marker = (
        '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0,0 L8,4 L0,8 z" fill="#666"/></marker></defs>'
    )
    background = rectangle(0, 0, width, height, fill="white")
    return SVG("\n".join([head, marker, background, *parts, "</svg>"]) + "\n")


def rectangle(x: float, y: float, width: float, height: float, *, fill: str, stroke: str = "none", round_: float = 0,
              stroke_width: float = 1, tip: str = "") -> str:  # fmt: skip
    """Return a rectangle, with a text that shows when it is pointed at."""
    shape = (
        f'<rect x="{_n(x)}" y="{_n(y)}" width="{_n(width)}" height="{_n(height)}" rx="{_n(round_)}" fill={quoteattr(fill)} '
        f'stroke={quoteattr(stroke)} stroke-width="{_n(stroke_width)}"'
    )
    return f"{shape}><title>{escape(tip)}</title></rect>" if tip else shape + "/>"


def text(x: float, y: float, content: str, *, size: float = 11, anchor: str = "middle", weight: str = "normal",
         fill: str = "#222") -> str:  # fmt: skip
    """Return a line of text; `y` is its base line."""
    return (
        f'<text x="{_n(x)}" y="{_n(y)}" font-size="{_n(size)}" text-anchor="{anchor}" font-weight="{weight}" '
        f"fill={quoteattr(fill)}>{escape(content)}</text>"
    )


def path(points: Iterable[tuple[float, float]], *, stroke: str = "#666", width: float = 1, arrow: bool = False,
         smooth: bool = False, dashes: str = "") -> str:  # fmt: skip
    """Return a line through points; `smooth` bends it so that it leaves and arrives vertically."""
    (x, y), *rest = points
    steps = [f"M{_n(x)},{_n(y)}"]
    for nx, ny in rest:
        middle = (y + ny) / 2
        steps.append(f"C{_n(x)},{_n(middle)} {_n(nx)},{_n(middle)} {_n(nx)},{_n(ny)}" if smooth else f"L{_n(nx)},{_n(ny)}")
        x, y = nx, ny
    extra = (' marker-end="url(#arrow)"' if arrow else "") + (f' stroke-dasharray="{dashes}"' if dashes else "")
    return f'<path d="{" ".join(steps)}" fill="none" stroke={quoteattr(stroke)} stroke-width="{_n(width)}"{extra}/>'


def group(parts: Iterable[str], x: float, y: float) -> str:
    """Return shapes moved by ``(x, y)``."""
    return f'<g transform="translate({_n(x)},{_n(y)})">\n' + "\n".join(parts) + "\n</g>"


def width_of(content: str, size: float = 11) -> float:
    """Return about how wide a text is."""
    return len(content) * size * _CHARACTER


def shortened(content: str, limit: int) -> str:
    """Return a text of at most `limit` characters."""
    return content if len(content) <= limit else content[: limit - 1] + "…"


def _n(value: float) -> str:
    """Write a coordinate with one decimal, if it needs one."""
    return f"{value:.1f}".removesuffix(".0")
