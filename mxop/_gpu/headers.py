"""CUDA text of the functions that the headers of the CPU's kernels share with it: those that begin with MX_EACH.

There it is MX_INLINE, here ``__device__ inline``; types, constants and functions that have other names in CUDA get these.
"""

from __future__ import annotations

import re
from pathlib import Path

_FOLDER = Path(__file__).parent.parent / "_kernels" / "include"
_NAMES = {
    "MX_EACH": "__device__ inline", "MX_LOG": "log", "MX_EXP": "exp", "MX_PI": "3.14159265358979323846",
    "mx_digamma_f64": "mxi_digamma", "mx_gammaln_f64": "lgamma", "uint16_t": "unsigned short", "uint32_t": "unsigned",
    "int64_t": "long long", "uint64_t": "unsigned long long",
}  # fmt: skip


def shared(header: str) -> dict[str, str]:
    """Return the shared functions of a header by name."""
    text = (_FOLDER / header).read_text(encoding="ascii")
    names = dict(re.findall(r"^#define (MX_\w+) (\S+)$", text, re.MULTILINE)) | _NAMES
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    functions = re.finditer(r"^MX_EACH \w+ (\w+)\([^\n]*(?: \{.*\}$|\n\{(?s:.*?)^\}$)", text, re.MULTILINE)
    word = re.compile(rf"\b(?:{'|'.join(names)})\b")
    return {f[1]: word.sub(lambda found: names[found[0]], f[0]) + "\n" for f in functions}
