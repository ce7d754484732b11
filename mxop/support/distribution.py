"""What the distribution is called, and its version: the name that pip knows, which is not the name that is imported.

On the package index, ``mxop`` belongs to another project, whose package has the same import name.  So whatever tells a
user to install something, and whatever asks for metadata, takes the name from here.
"""

from __future__ import annotations

#: The name and the version in ``pyproject.toml``; a test compares them.
NAME, VERSION = "mxop-ndarray", "0.1.0"
#: The name of the other project's distribution, which installs a folder of the same name as ours.
OTHER = "mxop"


def install(extra: str) -> str:
    """Return the command that installs the optional packages of an extra.

    Examples
    --------
    >>> install("plot")
    'pip install "mxop-ndarray[plot]"'
    """
    return f'pip install "{NAME}[{extra}]"'
