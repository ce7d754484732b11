"""MindSpore's ``Custom``: an operator from a NumPy function, a compiled library, or a kernel with loops.

Every object is an operator of its own, one of :class:`mxop.opdef.External`, with a hidden name.  It is called with arrays,
with symbols, or inside composites and gradient rules.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from .._core import dispatch, tape
from .._core.core import Dense
from ..ndarray import NDArray
from ..opdef import Attrs, External, Operator, infer, registry
from ..support import dtypes
from ..support.errors import DeviceError, MXNetError, OpTypeError, OpValueError, closest, run_users
from .attributes import parameters
from .body import Body, kind_of
from .outputs import Outputs
from .reg_info import Infos, derived

FUNC_TYPES = ("pyfunc", "aot", "hybrid", "akg")
_REFUSED = {
    "tbe": "its language (TBE) makes code for Ascend processors only, which mxop does not run on; write the operator as "
    "func_type='hybrid'",
    "aicpu": "it names kernels that are built into MindSpore for Ascend processors, which mxop does not run on; write the "
    "operator as func_type='aot'",
    "julia": "no Julia is called from mxop; write the operator as func_type='pyfunc' or 'hybrid'",
}
_serial = itertools.count(1)
_NONE = Attrs((), ())


class Custom:
    """An operator from a function or a compiled library.

    Parameters
    ----------
    func : callable or str
        ``'pyfunc'``: a function of NumPy arrays. ``'hybrid'``: a function of the hybrid language (see
        :func:`mxop.operator.kernel`). ``'aot'``: ``"lib.so:Func"``, or ``"file.cc:Func"``, which is compiled here.
    out_shape : tuple, list of tuples, or callable, optional
        The shape of the output, or a tuple of shapes for several outputs; or a function that returns it, called with
        the shapes of all inputs. May be left out for ``'hybrid'``, and for ``'aot'`` with ``FuncInferShape``.
    out_dtype : dtype, tuple of dtypes, or callable, optional
        The same for dtypes: names, NumPy's types. A function is called with NumPy dtypes.
    func_type : {'hybrid', 'akg', 'pyfunc', 'aot'}
        ``'akg'`` is another name of ``'hybrid'``.
    bprop : callable, optional
        ``bprop(*inputs, out, dout)`` returns the tuple of the gradients of the inputs. It may use any operator, so it can be
        differentiated again. With several outputs, `out` and `dout` are tuples. Attributes stand between inputs and `out`.
    reg_info : dict, str, CustomRegOp, or list of those, optional
        What the operator supports, see :class:`mxop.operator.CustomRegOp`; instead of what
        :func:`mxop.operator.custom_info_register` bound to `func`.

    Raises
    ------
    OpTypeError, OpValueError
        For arguments that do not fit, and kernels that are not in the language.
    DeviceError
        For a `func_type` that needs a processor mxop does not run on.

    Examples
    --------
    >>> double = mx.operator.Custom(lambda x: 2 * x, lambda s: s, lambda t: t, func_type="pyfunc",
    ...                             bprop=lambda x, out, dout: (2 * dout,))
    >>> x = mx.nd.array([1, 2, 3])
    >>> x.attach_grad()
    >>> with mx.autograd.record():
    ...     y = double(x)
    >>> y.backward()
    >>> y.asnumpy().tolist(), x.grad.asnumpy().tolist()
    ([2.0, 4.0, 6.0], [2.0, 2.0, 2.0])
    """

    def __init__(self, func: Callable | str, out_shape: Any = None, out_dtype: Any = None, func_type: str = "hybrid",
                 bprop: Callable | None = None, reg_info: Any = None):  # fmt: skip
        if func_type in _REFUSED:
            raise DeviceError(f"Custom: func_type={func_type!r} is not supported: {_REFUSED[func_type]}")
        if func_type not in FUNC_TYPES:
            raise OpValueError(
                f"Custom: func_type={func_type!r} is not one of {', '.join(FUNC_TYPES)}{closest(func_type, FUNC_TYPES)}"
            )
        if bprop is not None and not callable(bprop):
            raise OpTypeError(f"Custom: bprop must be a function, got {bprop!r}")
        infos = Infos(_name_of(func), func, reg_info)
        body = _make_body(func, func_type, infos.declared_attrs())
        self.func, self.func_type, self.bprop = func, func_type, bprop
        self.body, self.infos = body, infos
        infos.name = self.name = body.name
        body.for_gpu = "GPU" in infos.by_target
        declared = infos.declared_attrs()
        names = [a["name"] for a in declared]
        self.params = parameters(self.name, [*declared, *_undeclared(body, names)])
        self.attr_names = tuple(p.name for p in self.params)
        self.outputs = Outputs(self.name, body, out_shape, out_dtype, infos)
        self._serial = next(_serial)
        self._ops: dict[int, CustomOperator] = {}
        self._derived: dict[str, Any] | None = None
        self._simple = not self.params and not body.assigned

    def __repr__(self) -> str:
        return f"<Custom {self.name} ({self.func_type})>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the operator.

        Parameters
        ----------
        *args : NDArray or Symbol
            The inputs, then the attributes that the info declares (these also by keyword).
        name : str, optional
            Of a symbol.

        Returns
        -------
        NDArray or Symbol
            A tuple of arrays when there are several outputs; one symbol with several outputs.
        """
        if self._simple and not kwargs:
            op = self._ops.get(len(args))
            if op is not None:
                for a in args:
                    if not isinstance(a, Dense):
                        break
                else:
                    found = dispatch.invoke(op, args, _NONE)
                    return tuple(found) if type(found) is list else (found,) if self.outputs.multiple else found
        return self._call(args, kwargs)

    def _call(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        kind = _kind_of((*args, *kwargs.values()), self.name)
        inputs, given = self._split(args, kwargs, kind)
        op = self.operator(len(inputs))
        if kind is not NDArray:
            return _build(op, inputs, given, kind, self.outputs.multiple)
        out = given.pop("out", None)
        given.pop("name", None)
        attrs = op.parse(given)
        self._refuse_assignment(inputs)
        found = dispatch.invoke(op, inputs, attrs, out)
        results = list(found) if isinstance(found, list) else [found]
        with tape.Scope(False, None):
            for output, at in self.body.assigned:
                inputs[at][...] = results[output]
        return tuple(results) if self.outputs.multiple else results[0]

    def _split(self, args: tuple, kwargs: dict[str, Any], kind: type) -> tuple[list, dict[str, Any]]:
        """Sort the arguments of a call into inputs and the rest."""
        args = tuple(args[0]) if len(args) == 1 and isinstance(args[0], (list, tuple)) and args[0] else args
        n = next((k for k, a in enumerate(args) if not isinstance(a, kind)), len(args))
        inputs, rest = list(args[:n]), list(args[n:])
        while rest and rest[0] is None and len(rest) > len(self.attr_names):
            rest.pop(0)  # an optional input that is not given
        given = dict(kwargs)
        for name in self.input_names(None):
            if isinstance(given.get(name), kind):
                at = self.input_names(None).index(name)
                if at != len(inputs):
                    raise OpTypeError(f"Custom {self.name}: input {name!r} is given out of order, or twice")
                inputs.append(given.pop(name))
        if len(rest) > len(self.attr_names):
            wrong = rest[0]
            raise OpTypeError(
                f"Custom {self.name}: argument {len(inputs)} is {wrong!r}; expected an input of type {kind.__name__}"
                + (f" or the attributes {', '.join(self.attr_names)}" if self.attr_names else "")
            )
        for name, value in zip(self.attr_names, rest):
            if name in given:
                raise OpTypeError(f"Custom {self.name}: attribute {name!r} is given twice")
            given[name] = value
        return inputs, given

    def _refuse_assignment(self, inputs: Sequence[NDArray]) -> None:
        for _, at in self.body.assigned:
            if tape.recording() and tape.known(inputs[at]):
                raise MXNetError(
                    f"Custom {self.name} assigns its input {at}, which autograd records; call it with a copy, or outside "
                    "of record()"
                )

    # ---- what it is -----------------------------------------------------------------------------------------------------
    def input_names(self, n: int | None) -> tuple[str, ...]:
        """Return the names of the inputs of a call with `n` of them."""
        declared = [i.get("name") or f"input{k}" for k, i in enumerate(self.infos.all[0]["inputs"])] if self.infos.all else []
        names = self.body.input_names if self.body.input_names is not None else tuple(dict.fromkeys(declared))
        if n is None or len(names) == n:
            return names
        return tuple(f"input{k}" for k in range(n))

    def operator(self, n: int) -> CustomOperator:
        """Return the operator for `n` inputs."""
        found = self._ops.get(n)
        if found is None:
            names = self.body.input_names
            if names is not None and len(names) != n:
                raise OpTypeError(
                    f"Custom {self.name} takes {len(names)} input{'s' if len(names) != 1 else ''} "
                    f"({', '.join(names)}), {n} given"
                )
            found = self._ops.setdefault(n, CustomOperator(self, n))
        return found

    @property
    def reg_info(self) -> Any:
        """The info (a list of them for several targets); without one, that of the first call, or None before it."""
        if self.infos.all:
            return self.infos.all[0] if len(self.infos.all) == 1 else list(self.infos.all)
        return self._derived

    def get_op_info(self) -> Any:
        """Return :attr:`reg_info`."""
        return self.reg_info

    def note_call(self, target: str, in_types: Sequence[int], out_types: Sequence[int]) -> None:
        """Check a call against the info; without one, derive it from the call."""
        if self.infos.all:
            self.infos.check(target, in_types, out_types)
        else:
            names = self.input_names(len(in_types))
            self._derived = derived(self.name, names, in_types, len(out_types), out_types, target)


def _undeclared(body: Body, declared: Sequence[str]) -> list[dict[str, Any]]:
    """Return the attributes of a body that no info declares, as one would."""
    return [
        {"name": name} | ({"value": body.defaults[name]} if name in body.defaults else {})
        for name in body.attributes
        if name not in declared
    ]


def _name_of(func: Any) -> str:
    if isinstance(func, str):
        return func.rsplit(":", 1)[-1]
    return getattr(func, "__name__", type(func).__name__)


def _make_body(func: Any, func_type: str, declared: list[dict]) -> Body:
    names = [a["name"] for a in declared]
    if func_type == "aot":
        from .aot import Aot

        return Aot(func)
    from .hybrid.body import Hybrid, Kernel

    if func_type == "pyfunc" and not isinstance(func, Kernel):
        from .pyfunc import PyFunc

        return PyFunc(func, names)
    return Hybrid.of_function(func, names, as_python=func_type == "pyfunc")


def _kind_of(values: Sequence[Any], name: str) -> type:
    """Return the class of a call's inputs: NDArray, Symbol or Value."""
    for value in values:
        if isinstance(value, Dense):
            return NDArray
        if isinstance(value, (list, tuple)) and value:
            value = value[0]
        kind = type(value)
        if kind.__module__.startswith("mxop.") and not isinstance(value, Dense):
            from ..graph.builder import Value
            from ..symbol import Symbol

            if isinstance(value, (Symbol, Value)):
                return Symbol if isinstance(value, Symbol) else Value
        if isinstance(value, Dense):
            return NDArray
    return NDArray


def _build(op: CustomOperator, inputs: list, given: dict[str, Any], kind: type, multiple: bool) -> Any:
    """Add the call to a symbol, or to the graph of a rule."""
    if registry.find(op.name) is not op:
        registry.register(op)
    if kind.__name__ == "Value":
        found = inputs[0].builder._invoke(op, inputs, op.parse(given))
        results = list(found) if isinstance(found, (list, tuple)) else [found]
        return tuple(results) if multiple else results[0]
    from ..symbol.symbol import create

    label, attr = given.pop("name", None), given.pop("attr", None)
    return create(op, re.sub(r"\W", "", op.owner.name).strip("_").lower() or "custom", inputs, given, label, attr)


class CustomOperator(External):
    """The entry of the registry for a :class:`Custom` with a number of inputs."""

    contiguous = True
    clears_gradients = False

    def __init__(self, owner: Custom, n: int):
        fixed = owner.body.input_names is not None
        text = re.sub(r"\W", "_", owner.name)
        name = f"_custom_{text}_{owner._serial}" + ("" if fixed else f"_{n}")
        doc = owner.body.doc or f"The operator of ``Custom({owner.name}, func_type={owner.func_type!r})``."
        super().__init__(name, doc=doc, arguments=owner.input_names(n), params=owner.params, module=__name__)
        self.owner, self.n = owner, n
        self.clears = not owner.body.writes_all

    # ---- what a call looks like -----------------------------------------------------------------------------------------
    def num_outputs(self, attrs: Attrs, n_inputs: int | None = None) -> int:
        return self.owner.outputs.count(self.n, attrs)

    def infer_outputs(self, attrs: Attrs, shapes: list, types: list[int]) -> tuple[list, list[int]]:
        outputs = self.owner.outputs
        return outputs.agree(outputs.shapes(shapes, attrs), outputs.types(types, attrs))

    def infer_shape(self, attrs: Attrs, ins: list, outs: list) -> tuple[list, list]:
        if not all(infer.known(s) for s in ins):
            return ins, outs
        found = self.owner.outputs.shapes([tuple(s) for s in ins], attrs)
        if len(found) != len(outs):
            raise OpValueError(
                f"Custom {self.owner.name}: out_shape gives {len(found)} outputs for these shapes, the symbol has {len(outs)}; "
                "say how many by out_dtype, a tuple, or by an info"
            )
        return ins, infer.agreed(self.name, self.output_names(attrs, self.n), found, outs)

    def infer_type(self, attrs: Attrs, ins: list[int], outs: list[int]) -> tuple[list[int], list[int]]:
        known = [t for t in ins if t != dtypes.UNKNOWN]
        if len(known) < len(ins):
            if not known:
                return ins, outs
            ins = [known[0] if t == dtypes.UNKNOWN else t for t in ins]
        return ins, self.owner.outputs.types(ins, attrs)

    # ---- running --------------------------------------------------------------------------------------------------------
    def run(self, attrs: Attrs, state: Any, is_train: bool, reqs: list[str], inputs: list, outputs: list) -> None:
        owner = self.owner
        if owner.infos.all or owner._derived is None:
            owner.note_call(outputs[0]._device.name, [a.dtype_code for a in inputs], [a.dtype_code for a in outputs])
        owner.body.run(inputs, outputs, attrs)

    def has_backward(self, attrs: Attrs) -> bool:
        return True

    def implied(self, F: Any, attrs: Attrs, heads: list, inputs: list, outputs: list, needed: Sequence[bool]) -> Any:
        if self.owner.bprop is None:
            return self.owner.body.gradients(self, F, attrs, heads, inputs, needed)
        return super().implied(F, attrs, heads, inputs, outputs, needed)

    @cached_property
    def _derivative(self) -> Operator:
        derived = None if self.owner.bprop else self.owner.body.gradient_operator(self)
        return derived or super().backward_operator()

    def backward_operator(self) -> Any:
        return self._derivative

    def run_backward(
        self, attrs: Attrs, state: Any, is_train: bool, reqs: list[str], heads: list, inputs: list, outputs: list,
        grads: list,
    ) -> None:  # fmt: skip
        multiple = self.owner.outputs.multiple
        out, dout = (tuple(outputs), tuple(heads)) if multiple else (outputs[0], heads[0])
        assert self.owner.bprop is not None
        found = run_users(f"Custom {self.owner.name}: bprop", self.owner.bprop, *inputs, *attrs.values(), out, dout)
        for k, g in enumerate(self._checked(found, inputs, len(attrs))):
            if grads[k] is not None:
                grads[k][...] = 0 if g is None else g

    def _checked(self, found: Any, inputs: list, n_attrs: int) -> list:
        """Return what a bprop returned, after a check of its form."""
        who = f"Custom {self.owner.name}: bprop"
        if not isinstance(found, tuple):
            raise OpTypeError(f"{who} returned {kind_of(found)}; expected a tuple of the gradients of {self.n} inputs "
                              "(also of one: '(dx,)')")  # fmt: skip
        if len(found) not in (self.n, self.n + n_attrs):
            raise OpValueError(f"{who} returned {len(found)} gradients; expected {self.n}, one for each input")
        for k, (g, x) in enumerate(zip(found, inputs)):
            if g is not None and not isinstance(g, Dense):
                raise OpTypeError(f"{who} returned {kind_of(g)} for input {k}; expected an NDArray, or None for zero")
            if g is not None and g.shape != x.shape:
                raise OpValueError(f"{who} returned shape {g.shape} for input {k} of shape {x.shape}")
        return list(found[: self.n])
