"""``mx.viz``: pictures and tables of graphs and of what runs them.

``plot_network`` and ``print_summary`` are MXNet's; the other drawings are SVG and need no other package.
"""

from ..support.missing import hooks
from .canvas import SVG
from .graphs import compare, svg
from .memory import memory_chart
from .network import plot_network
from .summary import print_summary

__all__ = ["SVG", "compare", "memory_chart", "plot_network", "print_summary", "svg"]

__getattr__, __dir__ = hooks(globals(), __all__)
