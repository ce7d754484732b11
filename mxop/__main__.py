"""``python -m mxop``: the demonstration, the operator reference and the state of the machine."""

from __future__ import annotations

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
