"""What an operator supports, as MindSpore writes it: ``CustomRegOp``, ``DataType`` and ``custom_info_register``.

An *info* is a dict: names of inputs and outputs, attributes, supported combinations of dtypes, and a target.
:class:`Infos` reads all that were given for an operator and checks calls against the one of their device.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from ..support import dtypes
from ..support.errors import DeviceError, OpTypeError, OpValueError, closest

TARGETS = ("CPU", "GPU", "Ascend")
PARAM_TYPES = ("required", "dynamic", "optional")
VALUE_TYPES = ("int", "str", "bool", "float", "listInt", "listStr", "listBool", "listFloat", "all")
_UNKNOWN = "UNKNOWN"

_DTYPES = {
    "None": "", "BOOL": "bool", "I8": "int8", "U8": "uint8", "I16": "int16", "U16": "uint16", "I32": "int32",
    "U32": "uint32", "I64": "int64", "U64": "uint64", "F16": "float16", "F32": "float32", "F64": "float64",
    "BF16": "bfloat16", "C64": "complex64", "C128": "complex128",
}  # fmt: skip
_FORMATS = {
    "None": "", "Default": "DefaultFormat", "NCHW": "NCHW", "NHWC": "NHWC", "HWCN": "HWCN", "NDHWC": "NDHWC",
    "NCDHW": "NCDHW", "ChannelLast": "ChannelLast", "5HD": "NC1HWC0", "FracZ": "FRACTAL_Z", "FracNZ": "FRACTAL_NZ",
    "C1HWNCoC0": "C1HWNCoC0", "NDC1HWC0": "NDC1HWC0", "FRACTAL_Z_3D": "FRACTAL_Z_3D",
    "FracZNLSTM": "FRACTAL_ZN_LSTM", "FracZNRNN": "FRACTAL_ZN_RNN", "ND_RNNBIAS": "ND_RNN_BIAS",
}  # fmt: skip


class DataType:
    """Pairs of a dtype and a format, as ``DataType.F32_Default`` or ``DataType.I32_NCHW``.

    The dtypes are BOOL, I8, U8, I16, U16, I32, U32, I64, U64, F16, F32, F64, BF16, C64, C128 and None (any); the formats
    None (any), Default, NCHW, NHWC, HWCN, NDHWC, NCDHW, ChannelLast, 5HD, FracZ, FracNZ and MindSpore's further ones.
    ``F32_Default_Tuple`` and ``F32_Default_List`` have a third item.  Arrays of mxop have no format: only the dtype of
    a pair is compared with a call.

    Examples
    --------
    >>> DataType.F32_Default, DataType.None_None
    (('float32', 'DefaultFormat'), ('', ''))
    """


for _d, _dtype in _DTYPES.items():
    for _f, _format in _FORMATS.items():
        setattr(DataType, f"{_d}_{_f}", (_dtype, _format))
    setattr(DataType, f"{_d}_Default_Tuple", (_dtype, "DefaultFormat", "tuple"))
    setattr(DataType, f"{_d}_Default_List", (_dtype, "DefaultFormat", "list"))


# ---- writing an info ------------------------------------------------------------------------------------------------
class CustomRegOp:
    """Write down what an operator supports; every method returns the object itself.

    Parameters
    ----------
    op_name : str, default 'Custom'

    Raises
    ------
    OpTypeError
        When a value has a wrong type.
    OpValueError
        When a value is not one of those allowed, or `dtype_format` does not fit the inputs and outputs.

    Examples
    --------
    >>> info = (CustomRegOp("scale").input(0, "x").output(0, "y").attr("factor", "required", "float")
    ...         .dtype_format(DataType.F32_Default, DataType.F32_Default)
    ...         .dtype_format(DataType.F64_Default, DataType.F64_Default)
    ...         .target("CPU").get_op_info())
    >>> info["inputs"], info["target"], len(info["dtype_format"])
    ([{'index': 0, 'name': 'x', 'paramType': 'required'}], 'CPU', 2)
    """

    def __init__(self, op_name: str = "Custom"):
        _is(str, "op_name", op_name)
        if not op_name.strip():
            raise OpValueError("CustomRegOp: op_name is empty")
        self.op_name = op_name
        self._inputs: list[dict] = []
        self._outputs: list[dict] = []
        self._attrs: list[dict] = []
        self._combinations: list[tuple] = []
        self._fusion_type = "OPAQUE"
        self._target = _UNKNOWN

    def fusion_type(self, fusion_type: str) -> CustomRegOp:
        """Say how the operator may be fused (``'OPAQUE'``, ``'ELEMWISE'``...); mxop only keeps it."""
        self._fusion_type = _is(str, "fusion_type", fusion_type)
        return self

    def input(
        self, index: int | None = None, name: str | None = None, param_type: str = "required", **extra: Any
    ) -> CustomRegOp:
        """Add an input: ``'required'``, ``'optional'``, or ``'dynamic'`` (it stands for any number of arrays)."""
        self._inputs.append(_port("input", index, name, param_type, extra))
        return self

    def output(
        self, index: int | None = None, name: str | None = None, param_type: str = "required", **extra: Any
    ) -> CustomRegOp:
        """Add an output."""
        self._outputs.append(_port("output", index, name, param_type, extra))
        return self

    def attr(self, name: str | None = None, param_type: str | None = None, value_type: str | None = None,
             default_value: Any = None, **extra: Any) -> CustomRegOp:  # fmt: skip
        """Add an attribute.

        Parameters
        ----------
        name : str
        param_type : {'required', 'optional'}
        value_type : {'int', 'str', 'bool', 'float', 'listInt', 'listStr', 'listBool', 'listFloat', 'all'}
        default_value : str or value, optional
            What it is when a call does not give it.
        value : optional, by keyword
            A value that calls do not give.
        """
        found = {"name": _is(str, "attr: name", name)}
        if param_type is not None:
            found["paramType"] = _one_of("attr: param_type", param_type, PARAM_TYPES)
        if value_type is not None:
            found["type"] = _one_of("attr: value_type", value_type, VALUE_TYPES)
        if default_value is not None:
            found["defaultValue"] = default_value
        if any(a["name"] == name for a in self._attrs):
            raise OpValueError(f"CustomRegOp: attribute {name!r} is declared twice")
        self._attrs.append(found | extra)
        return self

    def dtype_format(self, *pairs: tuple) -> CustomRegOp:
        """Add a supported combination: one pair of :class:`DataType` for every input, then every output."""
        wanted = len(self._inputs) + len(self._outputs)
        if len(pairs) != wanted:
            raise OpValueError(
                f"CustomRegOp: dtype_format takes one pair for each of the {len(self._inputs)} inputs and "
                f"{len(self._outputs)} outputs declared before it, that is {wanted}; {len(pairs)} given"
            )
        self._combinations.append(tuple(_pair(p) for p in pairs))
        return self

    def target(self, target: str) -> CustomRegOp:
        """Say which device the info is for: ``'CPU'``, ``'GPU'`` or ``'Ascend'``."""
        self._target = _one_of("target", target, TARGETS)
        return self

    def get_op_info(self) -> dict[str, Any]:
        """Return the info as a dict."""
        return {
            "op_name": self.op_name, "inputs": [dict(i) for i in self._inputs], "outputs": [dict(o) for o in self._outputs],
            "attr": [dict(a) for a in self._attrs], "fusion_type": self._fusion_type, "dtype_format": list(self._combinations),
            "target": self._target,
        }  # fmt: skip


def _is(kind: type, what: str, value: Any) -> Any:
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise OpTypeError(f"CustomRegOp: {what} must be of type {kind.__name__}, got {value!r}")
    return value


def _one_of(what: str, value: Any, allowed: Sequence[str]) -> str:
    _is(str, what, value)
    if value not in allowed:
        raise OpValueError(f"CustomRegOp: {what} must be one of {', '.join(allowed)}; got {value!r}{closest(value, allowed)}")
    return value


def _port(what: str, index: Any, name: Any, param_type: Any, extra: dict) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if index is not None:
        found["index"] = _is(int, f"{what}: index", index)
    if name is not None:
        found["name"] = _is(str, f"{what}: name", name)
    found["paramType"] = _one_of(f"{what}: param_type", param_type, PARAM_TYPES)
    return found | extra


def _pair(pair: Any) -> tuple:
    ok = isinstance(pair, (tuple, list)) and len(pair) in (2, 3) and all(isinstance(p, str) for p in pair)
    if not ok or pair[0] not in _DTYPES.values():
        raise OpTypeError(f"CustomRegOp: dtype_format takes pairs such as DataType.F32_Default, got {pair!r}")
    return tuple(pair)


def custom_info_register(*reg_info: Any) -> Callable[[Callable], Callable]:
    """Bind infos to a function, one for each target; ``reg_info=`` of :class:`~mxop.operator.Custom` goes before them.

    Parameters
    ----------
    *reg_info : dict, str or CustomRegOp
        An info, its JSON text, or the object that writes it.

    Examples
    --------
    >>> info = CustomRegOp().input(0, "x").output(0, "y").dtype_format(DataType.F32_None, DataType.F32_None)
    >>> @custom_info_register(info.target("CPU").get_op_info())
    ... def twice(x):
    ...     return x * 2
    >>> twice.reg_info[0]["target"]
    'CPU'
    """
    if not reg_info:
        raise OpTypeError("custom_info_register takes at least one info")
    found = tuple(expand(reg_info, "custom_info_register"))

    def decorate(function: Callable) -> Callable:
        function.reg_info = found  # type: ignore[attr-defined]
        return function

    return decorate


# ---- reading infos --------------------------------------------------------------------------------------------------
def expand(given: Any, who: str) -> list[dict[str, Any]]:
    """Return the infos in what was given: a dict, JSON text, a :class:`CustomRegOp`, or a list of those."""
    if given is None:
        return []
    if isinstance(given, CustomRegOp):
        return [given.get_op_info()]
    if isinstance(given, str):
        try:
            return expand(json.loads(given), who)
        except json.JSONDecodeError as problem:
            raise OpValueError(f"{who}: reg_info is not JSON: {problem}") from None
    if isinstance(given, (list, tuple)):
        return [info for item in given for info in expand(item, who)]
    if isinstance(given, dict):
        return [_checked(given, who)]
    raise OpTypeError(f"{who}: reg_info must be a dict, JSON text, a CustomRegOp or a list of those, got {given!r}")


def _checked(info: dict, who: str) -> dict[str, Any]:
    """Return a complete info, or raise for one that cannot be used."""
    found: dict[str, Any] = {"op_name": "Custom", "attr": [], "fusion_type": "OPAQUE", "target": _UNKNOWN} | info
    for key in ("inputs", "outputs", "attr", "dtype_format"):
        items = found.setdefault(key, [])
        if not isinstance(items, (list, tuple)):
            raise OpTypeError(f"{who}: reg_info[{key!r}] must be a list, got {items!r}")
    for item in (*found["inputs"], *found["outputs"], *found["attr"]):
        if not isinstance(item, dict):
            raise OpTypeError(f"{who}: inputs, outputs and attributes of an info are dicts, got {item!r}")
    for item in found["attr"]:
        if not isinstance(item.get("name"), str):
            raise OpTypeError(f"{who}: an attribute of the info has no name: {item!r}")
        _one_of("attr: value_type", item.get("type", "all"), VALUE_TYPES)
    if found["target"] != _UNKNOWN:
        _one_of("target", found["target"], TARGETS)
    ports = len(found["inputs"]) + len(found["outputs"])
    found["dtype_format"] = [tuple(_pair(p) for p in c) for c in found["dtype_format"]]
    for combination in found["dtype_format"]:
        if len(combination) != ports:
            raise OpValueError(f"{who}: a combination of dtype_format has {len(combination)} pairs; expected {ports}")
    return found


#: (function or "library:Func", target) -> the info that was registered for it first.
_registered: dict[tuple[Any, str], dict[str, Any]] = {}


def _key(function: Any) -> Any:
    function = getattr(function, "__wrapped__", function)
    code = getattr(function, "__code__", None)
    return function if code is None else (code.co_filename, code.co_firstlineno, code.co_name, function.__module__)


class Infos:
    """The infos of one operator: those of ``reg_info=``, or else those bound to its function.

    Parameters
    ----------
    name : str
        The operator, for messages.
    function : callable or str
    given : object
        What ``reg_info=`` was.
    """

    def __init__(self, name: str, function: Any, given: Any):
        self.name = name
        self.all = expand(given if given is not None else getattr(function, "reg_info", None), f"Custom {name}")
        self.by_target: dict[str, dict[str, Any]] = {}
        for info in self.all:
            target = info["target"]
            old = self.by_target.setdefault(target, info)
            if old != info:
                raise OpValueError(f"Custom {name}: two different infos for target {target}; give one for each target")
            if target != _UNKNOWN:
                _registered.setdefault((_key(function), target), info)
        self._matched: dict[tuple, Any] = {}

    def declared_attrs(self) -> list[dict[str, Any]]:
        """Return the attributes, which must be the same for all targets."""
        lists = [info["attr"] for info in self.all]
        if any([a["name"] for a in items] != [a["name"] for a in lists[0]] for items in lists):
            raise OpValueError(f"Custom {self.name}: the infos of its targets declare different attributes")
        return lists[0] if lists else []

    def of(self, target: str) -> dict[str, Any] | None:
        """Return the info for a device, None when there is no info at all.

        Raises
        ------
        DeviceError
            When infos exist, but none for this device.
        """
        if not self.all:
            return None
        found = self.by_target.get(target) or self.by_target.get(_UNKNOWN)
        if found is None:
            names = ", ".join(self.by_target)
            reason = " (mxop has no Ascend devices)" if set(self.by_target) == {"Ascend"} else ""
            raise DeviceError(
                f"Custom {self.name} is registered for {names}{reason}, but its inputs are on {target}; "
                f"give it an info with .target({target!r}) as well, or move the inputs"
            )
        return found

    def check(self, target: str, in_types: Sequence[int], out_types: Sequence[int | None]) -> tuple | None:
        """Return the combination that a call's dtypes match, None when nothing is declared.

        Raises
        ------
        OpTypeError
            When no combination fits, with the list of those supported.
        """
        info = self.of(target)
        if info is None:
            return None
        self._check_count(info, len(in_types))
        if not info["dtype_format"]:
            return None
        key = (target, tuple(in_types), tuple(out_types))
        if key not in self._matched:
            self._matched[key] = self.match(info, in_types, out_types)
        return self._matched[key]

    def _check_count(self, info: dict, n: int) -> None:
        ports = info["inputs"]
        if not ports or any(p.get("paramType") == "dynamic" for p in ports):
            return
        least = sum(p.get("paramType", "required") == "required" for p in ports)
        if not least <= n <= len(ports):
            names = ", ".join(str(p.get("name", p.get("index", "?"))) for p in ports)
            raise OpTypeError(f"Custom {self.name} takes {len(ports)} inputs ({names}) by its info, {n} given")

    def match(self, info: dict, in_types: Sequence[int], out_types: Sequence[int | None]) -> tuple:
        """Return the combination of an info that fits, or raise."""
        n = len(info["inputs"])
        have = [dtypes.NAMES[t] for t in in_types]
        outs = [None if t is None else dtypes.NAMES[t] for t in out_types]
        for combination in info["dtype_format"]:
            ins = _spread(info["inputs"], combination[:n], len(have))
            wanted = _spread(info["outputs"], combination[n:], len(outs))
            if all(w[0] in ("", h) for w, h in zip(ins, have)) and all(
                h is None or w[0] in ("", h) for w, h in zip(wanted, outs)
            ):
                return combination
        listed = "; ".join(_show(c[:n]) + " -> " + _show(c[n:]) for c in info["dtype_format"])
        shown = ", ".join(have) + (" -> " + ", ".join(o or "?" for o in outs) if any(outs) else "")
        raise OpTypeError(f"Custom {self.name}: dtypes ({shown}) are not among those supported: {listed}")


def _spread(ports: Sequence[dict], pairs: Sequence[tuple], n: int) -> list[tuple]:
    """Return a pair for each of `n` arrays; a dynamic port stands for as many as there are."""
    if len(pairs) == n:
        return list(pairs)
    found: list[tuple] = []
    for port, pair in zip(ports, pairs):
        found += [pair] * (n - len(ports) + 1 if port.get("paramType") == "dynamic" else 1)
    return found[:n]


def _show(pairs: Sequence[tuple]) -> str:
    return "(" + ", ".join(p[0] or "any" for p in pairs) + ")"


def derived(
    name: str, inputs: Sequence[str], in_types: Sequence[int], n_outputs: int, out_types: Sequence[int], target: str
) -> dict[str, Any]:
    """Return the info of a call whose operator has none: what its inputs and outputs were."""
    reg = CustomRegOp(name)
    for k, port in enumerate(inputs):
        reg.input(k, port)
    for k in range(n_outputs):
        reg.output(k, f"output{k}" if n_outputs > 1 else "output")
    reg.dtype_format(*((dtypes.NAMES[t], "DefaultFormat") for t in (*in_types, *out_types)))
    return reg.target(target).get_op_info()
