"""What a file is, by its first bytes: a shared library of which system and machine, whole or not.

The system's loader says little about a file that it cannot load, and may crash on one that was cut off; so its header is
read first.
"""

from __future__ import annotations

import platform
import struct
import sys
from dataclasses import dataclass
from pathlib import Path

from ..support.errors import MXNetError

#: Machines by their number in ELF and PE headers, and in Mach-O ones.
_ELF_MACHINES = {3: "x86", 8: "MIPS", 20: "PowerPC", 21: "ppc64le", 22: "s390x", 40: "ARM (32 bit)", 62: "x86-64",
                 183: "aarch64", 243: "RISC-V", 258: "LoongArch"}  # fmt: skip
_PE_MACHINES = {0x14C: "x86", 0x1C4: "ARM (32 bit)", 0x8664: "x86-64", 0xAA64: "aarch64"}
_MACH_MACHINES = {7: "x86", 0x01000007: "x86-64", 12: "ARM (32 bit)", 0x0100000C: "aarch64"}
_NAMES = {"x86_64": "x86-64", "amd64": "x86-64", "arm64": "aarch64", "i686": "x86", "i386": "x86", "riscv64": "RISC-V"}
_SHARED_ELF, _SHARED_MACH = 3, (6, 8)  # ET_DYN; MH_DYLIB, MH_BUNDLE


@dataclass(frozen=True)
class Binary:
    """A shared library's kind (``'ELF'``, ``'Mach-O'``, ``'PE'``) and the machines it is for."""

    kind: str
    machines: tuple[str, ...]


def this_machine() -> str:
    """Return the machine that this process runs on, as the tables here call it.

    Examples
    --------
    >>> isinstance(this_machine(), str)
    True
    """
    name = platform.machine().lower()
    return _NAMES.get(name, name)


def check(path: Path) -> Binary:
    """Return what a file is.

    Raises
    ------
    MXNetError
        When this process cannot load it, with the reason.
    """
    label = f"library {path}"
    size = path.stat().st_size
    if size == 0:
        raise MXNetError(f"{label} is an empty file")
    with path.open("rb") as file:
        head = file.read(1 << 16)
    try:
        found = _read(label, head, size)
    except (struct.error, IndexError):
        raise MXNetError(f"{label} is damaged: its header is cut off ({size} bytes)") from None
    wanted = {"win32": "PE", "cygwin": "PE", "darwin": "Mach-O"}.get(sys.platform, "ELF")
    if found.kind != wanted:
        raise MXNetError(f"{label} is a library of another system ({found.kind} for {', '.join(found.machines)}); "
                         f"this one loads {wanted} for {this_machine()}")  # fmt: skip
    if this_machine() not in found.machines:
        raise MXNetError(f"{label} is for {', '.join(found.machines)}, but this machine is {this_machine()}; "
                         "compile it here")  # fmt: skip
    return found


def _read(label: str, head: bytes, size: int) -> Binary:
    if head[:4] == b"\x7fELF":
        return _elf(label, head, size)
    if head[:4] in (b"\xcf\xfa\xed\xfe", b"\xce\xfa\xed\xfe"):
        return _mach(label, head, size)
    if head[:4] in (b"\xca\xfe\xba\xbe", b"\xca\xfe\xba\xbf"):
        return _fat(label, head)
    if head[:2] == b"MZ":
        return _pe(label, head)
    if head[:8] == b"!<arch>\n":
        raise MXNetError(f"{label} is a static archive; link a shared library (-shared -fPIC)")
    if b"\0" not in head[:512]:
        raise MXNetError(f"{label} is a text file, not a compiled library; mx.library.build compiles sources")
    raise MXNetError(f"{label} is not a library: its first bytes are {head[:4]!r}")


def _elf(label: str, head: bytes, size: int) -> Binary:
    wide, order = head[4] == 2, "<" if head[5] == 1 else ">"
    kind, machine = struct.unpack_from(order + "HH", head, 16)
    name = _ELF_MACHINES.get(machine, f"ELF machine {machine}")
    if wide:
        (table,) = struct.unpack_from(order + "Q", head, 32)
        width, count = struct.unpack_from(order + "HH", head, 54)
    else:
        name += "" if "32" in name or machine == 3 else " (32 bit)"
        (table,) = struct.unpack_from(order + "I", head, 28)
        width, count = struct.unpack_from(order + "HH", head, 42)
    if kind != _SHARED_ELF:
        what = {1: "an object file: link it (-shared -fPIC)", 2: "a program", 4: "a core dump"}.get(kind, "something else")
        raise MXNetError(f"{label} is not a shared library but {what}")
    if count == 0 or width < (56 if wide else 32):
        raise MXNetError(f"{label} is damaged: it lists nothing to load")
    if table + count * width > min(size, len(head)):
        raise MXNetError(f"{label} is damaged: it is cut off ({size} bytes)")
    for k in range(count):  # the loader maps these parts, and faults where they lie beyond the end
        at = table + k * width
        offset, length = struct.unpack_from(order + ("Q16xQ" if wide else "I8xI"), head, at + (8 if wide else 4))
        if struct.unpack_from(order + "I", head, at)[0] in (1, 2) and offset + length > size:
            raise MXNetError(f"{label} is damaged: it is cut off ({size} bytes; its parts reach to {offset + length})")
    return Binary("ELF", (name,))


def _mach(label: str, head: bytes, size: int) -> Binary:
    machine, _, kind, count, length = struct.unpack_from("<IIIII", head, 4)
    if kind not in _SHARED_MACH:
        raise MXNetError(f"{label} is not a shared library (Mach-O file type {kind})")
    if 32 + length > size or count == 0:
        raise MXNetError(f"{label} is damaged: it is cut off ({size} bytes)")
    return Binary("Mach-O", (_MACH_MACHINES.get(machine, f"Mach-O machine {machine}"),))


def _fat(label: str, head: bytes) -> Binary:
    (count,) = struct.unpack_from(">I", head, 4)
    if not 0 < count <= 16:
        raise MXNetError(f"{label} is not a library of this system (perhaps a Java class)")
    width = 32 if head[3] == 0xBF else 20
    machines = [struct.unpack_from(">I", head, 8 + k * width)[0] for k in range(count)]
    return Binary("Mach-O", tuple(_MACH_MACHINES.get(m, f"Mach-O machine {m}") for m in machines))


def _pe(label: str, head: bytes) -> Binary:
    (at,) = struct.unpack_from("<I", head, 60)
    if head[at : at + 4] != b"PE\0\0":
        raise MXNetError(f"{label} is damaged: it begins like a Windows library, but has no header")
    (machine,) = struct.unpack_from("<H", head, at + 4)
    return Binary("PE", (_PE_MACHINES.get(machine, f"PE machine {machine:#x}"),))
