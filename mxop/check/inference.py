"""Checks of inference: shapes and types are completed in both directions, never wrongly, and contradictions are refused."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..opdef import infer
from ..support import dtypes
from ..support.errors import MXNetError
from .cases import Case, Mismatch


def inference(case: Case, types: Sequence[str]) -> int:
    """Shapes and types are completed in both directions, never wrongly, and contradictions are refused."""
    dtype = types[0]
    found = case.run(case.sample(dtype))[0]
    hidden = case.op.num_outputs(case.attrs, len(case.shapes))
    ins = list(case.shapes)
    outs = case.op.infer_shape(case.attrs, list(ins), [None] * hidden)[1]
    for k, o in enumerate(found):
        if not infer.compatible(outs[k], o.shape):  # a size may follow from values
            raise Mismatch(f"output {k} has shape {o.shape}, inference says {outs[k]}")
    n = 1
    for k in range(len(ins)):
        partial = [None, tuple(None for _ in ins[k])] + [(*ins[k][:i], None, *ins[k][i + 1 :]) for i in range(len(ins[k]))]
        for shape in partial:
            for know_outs in (True, False):
                _complete(case, [*ins[:k], shape, *ins[k + 1 :]], outs if know_outs else [None] * hidden, ins, outs)
                n += 1
    _complete(case, [None] * len(ins), outs, ins, outs)
    for k in range(len(found)):
        if outs[k] and outs[k][0] is not None:
            wrong = list(outs)
            wrong[k] = (outs[k][0] + 1, *outs[k][1:])
            try:
                case.op.infer_shape(case.attrs, list(ins), wrong)
            except MXNetError:
                pass
            else:
                raise Mismatch(f"inference accepts output {k} of shape {wrong[k]} where the inputs give {outs[k]}")
            n += 1
    in_types, out_types = case.codes(dtype), [o.dtype_code for o in found] + [-1] * (hidden - len(found))
    for known_ins, known_outs in ((in_types, [-1] * hidden), ([-1] * len(ins), out_types)):
        got = case.op.infer_type(case.attrs, list(known_ins), list(known_outs))
        for known, is_ in zip([*got[0], *got[1]], [*in_types, *out_types], strict=True):
            if known not in (is_, -1) and is_ != -1:
                true = f"{in_types} -> {out_types}"
                raise Mismatch(f"from types {known_ins} -> {known_outs} inference finds {got}, true are {true}")
        n += 1
    return n


def _complete(case: Case, ins: list, outs: Sequence, true_ins: list, true_outs: Sequence) -> None:
    """Complete partial shapes: what is found must be true, or one of several possibilities, chosen by the operator (one
    slope for each channel, or one for all); an operator of equal shapes must find all.
    """
    given = f"{ins} -> {list(outs)}"
    try:
        got = case.op.infer_shape(case.attrs, list(ins), list(outs))
    except MXNetError as problem:
        raise Mismatch(f"inference from {given} fails: {problem}") from None
    for found, true in zip([*got[0], *got[1]], [*true_ins, *true_outs], strict=True):
        if found is None:
            agree = True
        else:
            agree = len(found) == len(true) and all(f in (None, t) for f, t in zip(found, true, strict=True))
        if not agree and not _valid(case, got[0], true_outs):
            raise Mismatch(f"inference from {given} finds {got[0]} -> {got[1]}, true is {true_ins} -> {list(true_outs)}")
    equal = case.op.kind == "elementwise" and not case.op.broadcast
    rank_known = [s for s in (*ins, *outs) if s is not None and None not in s]
    if equal and rank_known and (list(got[0]) != list(true_ins) or list(got[1]) != list(true_outs)):
        raise Mismatch(f"inference from {given} finds only {got[0]} -> {got[1]}")


def _valid(case: Case, ins: list, outs: Sequence) -> bool:
    """Return whether these complete input shapes give these outputs, too."""
    if any(s is None or None in s for s in ins):
        return False
    try:
        return list(case.op.infer_shape(case.attrs, list(ins), [None] * len(outs))[1]) == list(outs)
    except MXNetError:
        return False


# ---- what must be found ---------------------------------------------------------------------------------------------
OUTSIDE = "an operator from outside infers from its inputs alone"


def shapes_back(case: Case, types: Sequence[str]) -> int | str:
    """The shape of an input is found where the outputs and the other inputs determine it: no shape near it fits as well."""
    if not case.shapes:
        return "it has no inputs"
    if case.op.kind == "external":
        return OUTSIDE
    ins, n = list(case.shapes), case.op.num_outputs(case.attrs, len(case.shapes))
    outs = case.op.infer_shape(case.attrs, list(ins), [None] * n)[1]
    for k, true in enumerate(ins):
        given = [*ins[:k], None, *ins[k + 1 :]]
        found = case.op.infer_shape(case.attrs, list(given), list(outs))[0][k]
        if found != true and not any(_valid(case, [*ins[:k], s, *ins[k + 1 :]], outs) for s in _near(true)):
            raise Mismatch(f"inference from {given} -> {outs} finds {found} for input {k}, though no shape but {true} fits; "
                           "give a rule for both directions (@op.infer)")  # fmt: skip
    return len(ins)


def _near(shape: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Yield shapes that differ in one dimension."""
    for i, d in enumerate(shape):
        for other in {d + 1, d + 2, d - 1, 1, 2} - {d, -1}:
            yield (*shape[:i], other, *shape[i + 1 :])
        yield (*shape[:i], *shape[i + 1 :])
    for d in (1, 2):
        yield (d, *shape)
        yield (*shape, d)


def types_back(case: Case, types: Sequence[str]) -> int | str:
    """The type of an input is found where the types of outputs and other inputs determine it."""
    if not case.shapes:
        return "it has no inputs"
    if case.op.kind == "external":
        return OUTSIDE
    codes = case.codes(types[0])
    n = case.op.num_outputs(case.attrs, len(codes))
    outs = case.op.infer_type(case.attrs, list(codes), [dtypes.UNKNOWN] * n)[1]
    for k, code in enumerate(codes):
        given = list(codes)
        given[k] = dtypes.UNKNOWN
        found = case.op.infer_type(case.attrs, list(given), list(outs))[0][k]
        if found == code or any(_gives(case, [*given[:k], t, *given[k + 1 :]], outs) for t in _OTHERS if t != code):
            continue
        raise Mismatch(f"inference from types {given} -> {outs} finds {found} for input {k}, though no type but {code} "
                       "fits; its rule for types runs one way")  # fmt: skip
    return len(codes)


_OTHERS = [dtypes.CODES[name] for name in ("float32", "float64", "float16", "int32", "int64")]


def _gives(case: Case, ins: list[int], outs: Sequence[int]) -> bool:
    """Return whether inputs of these types give outputs of those."""
    try:
        return list(case.op.infer_type(case.attrs, list(ins), [dtypes.UNKNOWN] * len(outs))[1]) == list(outs)
    except MXNetError:
        return False
