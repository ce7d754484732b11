"""Axes: named dimensions, and the algebra of ordered sets of them.

An axis is itself and nothing else: two axes of one length, or of one name, are two axes.  So 50 samples never meet 50
features by accident.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ..support.errors import IncompatibleAxesError, OpTypeError, OpValueError, UnmatchedAxesError, items, translated

_numbers = itertools.count(1)


class AxisRole:
    """What an axis is for, such as the rows of an image, independent of its name and length.

    Parameters
    ----------
    name : str, optional
    docstring : str, optional
    """

    __slots__ = ("docstring", "name")

    def __init__(self, name: str | None = None, docstring: str | None = None):
        self.name = name or f"role{next(_numbers)}"
        self.docstring = docstring

    def __repr__(self) -> str:
        return f"AxisRole({self.name})"


#: The roles that change what a function does by default: reductions keep such axes.
BATCH = AxisRole("batch", "Samples that do not know of each other.")
RECURRENT = AxisRole("recurrent", "Steps in time.")
_ROLE_OF_NAME = {"N": BATCH, "REC": RECURRENT}


class Axis:
    """One named dimension.

    Parameters
    ----------
    length : int, optional
        May be set later.
    name : str, optional
        ``N`` is the batch axis, ``REC`` the recurrent and ``C`` the channel axis.
    roles : iterable of AxisRole
    docstring : str, optional

    Examples
    --------
    >>> H = mx.axes.make_axis(length=2, name='H')
    >>> H, H.length, H == mx.axes.make_axis(length=2, name='H')
    (Axis(H: 2), 2, False)
    """

    __slots__ = ("__weakref__", "_length", "_origin", "_variants", "docstring", "name", "roles")

    is_flattened = False

    def __init__(self, length: int | None = None, name: str | None = None, roles: Iterable[AxisRole] = (),
                 docstring: str | None = None):  # fmt: skip
        if name is not None and not isinstance(name, str):
            raise OpTypeError(f"axis name {name!r} is not a string")
        self.name = f"axis{next(_numbers)}" if name is None else name
        with translated("an axis: roles"):
            self.roles = frozenset(roles)
        self.docstring = docstring
        self._origin: Axis = self
        self._variants: dict[Any, Axis] = {}
        self._length = _checked_length(length, self.name)

    @property
    def length(self) -> int | None:
        """Number of elements; None as long as it is not known."""
        return self._length

    @length.setter
    def length(self, value: int | None) -> None:
        self._length = _checked_length(value, self.name)

    @property
    def is_batch(self) -> bool:
        """Whether it counts samples: its name is ``N``, or it has the role."""
        return self.name == "N" or BATCH in self.roles

    @property
    def is_recurrent(self) -> bool:
        """Whether it counts steps in time: its name is ``REC``, or it has the role."""
        return self.name == "REC" or RECURRENT in self.roles

    @property
    def is_channel(self) -> bool:
        """Whether its name is ``C``."""
        return self.name == "C"

    def has_role(self, role: AxisRole) -> bool:
        """Return whether the axis has a role."""
        return role in self.roles or _ROLE_OF_NAME.get(self.name) is role

    def add_role(self, role: AxisRole) -> Axis:
        """Give the axis another role; returns the axis."""
        self.roles |= {role}
        return self

    def named(self, name: str) -> Axis:
        """Set the name; returns the axis."""
        self.name = name
        return self

    @property
    def axes(self) -> Axes:
        """The axis alone, as axes; of a flattened axis those that it is made of."""
        return Axes((self,))

    def variant(self, length: int | None = None, name: str | None = None,
                roles: frozenset[AxisRole] | None = None) -> Axis:  # fmt: skip
        """Return this axis with another length, name or roles: asked for twice, it is one axis.

        So two slices of equal length of one axis have one axis, and can be added by name.
        """
        origin = self._origin
        wanted = (
            self.length if length is None else length, self.name if name is None else name,
            self.roles if roles is None else roles,
        )  # fmt: skip
        for axis in (self, origin):
            if wanted == (axis.length, axis.name, axis.roles):
                return axis
        found = origin._variants.get(wanted)
        if found is None or found.length != wanted[0]:  # a length may have been set since
            found = Axis(*wanted, docstring=self.docstring)
            found._origin = origin
            origin._variants[wanted] = found
        return found

    def __repr__(self) -> str:
        return f"Axis({label(self)})"

    def __add__(self, other: Any) -> Axes:
        return self.axes + other

    def __or__(self, other: Any) -> Axes:
        return self.axes | other

    def __and__(self, other: Any) -> Axes:
        return self.axes & other

    def __sub__(self, other: Any) -> Axes:
        return self.axes - other


class FlattenedAxis(Axis):
    """Several axes seen as one; equal to another one of the same axes in the same order.

    Examples
    --------
    >>> H, W = mx.axes.make_axis(2, 'H'), mx.axes.make_axis(3, 'W')
    >>> mx.axes.FlattenedAxis([H, W])
    Axis((H, W): 6)
    """

    __slots__ = ("_axes",)

    is_flattened = True

    def __init__(self, axes: Any):
        self._axes = make_axes(axes)
        super().__init__(name=f"({', '.join(self._axes.names)})")
        if self._axes:  # equal flattened axes share their variants
            self._variants = self._axes[0]._variants.setdefault(self._axes, {})

    @property
    def axes(self) -> Axes:
        return self._axes

    @property
    def length(self) -> int | None:
        lengths = self._axes.lengths
        return None if None in lengths else math.prod(lengths)  # type: ignore[arg-type]

    @length.setter
    def length(self, value: int | None) -> None:
        raise OpValueError(f"the length of {self!r} follows from its axes and cannot be set")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FlattenedAxis) and self._axes == other._axes

    def __hash__(self) -> int:
        return hash(self._axes)


class Axes:
    """Axes in order, none of them twice: a list and a set at once.

    ``a + b`` puts them one after the other, ``a - b`` leaves out, ``a | b`` and ``a & b`` are union and intersection in
    the order of `a`, then `b`; ``==`` compares the order as well, ``is_equal_set`` does not.

    Parameters
    ----------
    axes : Axis, or iterable of Axis
        A tuple among them becomes one flattened axis.

    Raises
    ------
    IncompatibleAxesError
        For an axis that is given twice.

    Examples
    --------
    >>> H, W, N = (mx.axes.make_axis(name=n) for n in 'HWN')
    >>> mx.axes.make_axes([H, W]) | [N, W]
    Axes(H: ?, W: ?, N: ?)
    """

    __slots__ = ("_axes", "_hash")

    def __init__(self, axes: Any = ()):
        self._axes: tuple[Axis, ...] = tuple(_listed(axes))
        self._hash = hash(self._axes)  # plans of what happens to axes are cached
        if len(set(self._axes)) != len(self._axes):
            raise IncompatibleAxesError(f"an axis occurs more than once in {self!r}")

    # ---- as a sequence ----------------------------------------------------------------------------------------------
    def __len__(self) -> int:
        return len(self._axes)

    def __iter__(self) -> Iterator[Axis]:
        return iter(self._axes)

    def __contains__(self, axis: object) -> bool:
        return axis in self.names if isinstance(axis, str) else axis in self._axes

    def __getitem__(self, at: int | slice | str) -> Any:
        """Return an axis by position or name, or the axes of a slice."""
        if isinstance(at, slice):
            return Axes(self._axes[at])
        return self._axes[self.index(at) if isinstance(at, str) else at]

    def index(self, axis: Axis | str) -> int:
        """Return the position of an axis, given itself or by name.

        Raises
        ------
        UnmatchedAxesError
            When there is no such axis, or several of that name.
        """
        found = [i for i, a in enumerate(self._axes) if (a.name == axis if isinstance(axis, str) else a == axis)]
        if len(found) != 1:
            if isinstance(axis, str):
                raise UnmatchedAxesError(f"{'several axes' if found else 'no axis'} named {axis!r} in {self!r}")
            raise unmatched(f"no axis ({label(axis)}) in {self!r}", make_axes(axis), self)
        return found[0]

    def find_by_name(self, name: str) -> Axes:
        """Return the axes of a name: mostly one."""
        return Axes(a for a in self._axes if a.name == name)

    def select(self, axes: Any) -> Axes:
        """Return axes that are given themselves or by name; names are looked up here."""
        if isinstance(axes, (str, Axis)):
            axes = (axes,)
        axes = () if axes is None else items(axes, "axes")
        return make_axes(self[a] if isinstance(a, str) else a for a in axes)

    # ---- what the axes say ------------------------------------------------------------------------------------------
    @property
    def names(self) -> tuple[str, ...]:
        return tuple(a.name for a in self._axes)

    @property
    def lengths(self) -> tuple[int | None, ...]:
        """The length of each axis; None where it is not known."""
        return tuple([a.length for a in self._axes])

    @property
    def full_lengths(self) -> tuple[Any, ...]:
        """The length of each axis; of a flattened axis, a tuple of those of its axes."""
        return tuple(a.axes.full_lengths if a.is_flattened else a.length for a in self._axes)

    @property
    def size(self) -> int:
        """Number of elements of an array with these axes."""
        return math.prod(known_lengths(self, "size"))

    def _where(self, holds: Callable[[Axis], bool]) -> Axes:
        return Axes(a for a in self._axes if holds(a))

    def _only(self, holds: Callable[[Axis], bool], what: str) -> Axis | None:
        found = self._where(holds)
        if len(found) > 1:
            raise IncompatibleAxesError(f"{self!r} has {len(found)} {what} axes: {found!r}")
        return found[0] if found else None

    def batch_axes(self) -> Axes:
        """Return the batch axis as axes, empty when there is none."""
        return self._where(lambda a: a.is_batch)

    def batch_axis(self) -> Axis | None:
        """Return the batch axis, or None."""
        return self._only(lambda a: a.is_batch, "batch")

    def recurrent_axis(self) -> Axis | None:
        """Return the recurrent axis, or None."""
        return self._only(lambda a: a.is_recurrent, "recurrent")

    def channel_axis(self) -> Axis | None:
        """Return the channel axis, or None."""
        return self._only(lambda a: a.is_channel, "channel")

    def sample_axes(self) -> Axes:
        """Return the axes of one sample: all but the batch axis."""
        return self._where(lambda a: not a.is_batch)

    def feature_axes(self) -> Axes:
        """Return all but the batch and the recurrent axis: what reductions run over by default."""
        return self._where(lambda a: not (a.is_batch or a.is_recurrent))

    def spatial_axes(self) -> Axes:
        """Return all but the batch, recurrent and channel axis."""
        return self._where(lambda a: not (a.is_batch or a.is_recurrent or a.is_channel))

    def role_axes(self, role: AxisRole) -> Axes:
        """Return the axes that have a role."""
        return self._where(lambda a: a.has_role(role))

    def flatten(self, force: bool = False) -> Axis:
        """Return one axis that stands for all; a single axis stays as it is, unless forced."""
        return self._axes[0] if len(self) == 1 and not force else FlattenedAxis(self)

    @property
    def T(self) -> Axes:
        """The axes in reverse order."""
        return Axes(reversed(self._axes))

    # ---- algebra ----------------------------------------------------------------------------------------------------
    def __add__(self, other: Any) -> Axes:
        other = make_axes(other)
        common = self & other
        if common:
            raise IncompatibleAxesError(f"cannot concatenate {self!r} and {other!r}: both have {common!r}")
        return Axes(self._axes + other._axes)

    def __sub__(self, other: Any) -> Axes:
        other = make_axes(other)
        return Axes(a for a in self._axes if a not in other)

    def __or__(self, other: Any) -> Axes:
        other = make_axes(other)
        return Axes((*self._axes, *(a for a in other if a not in self._axes)))

    def __and__(self, other: Any) -> Axes:
        other = make_axes(other)
        return Axes(a for a in self._axes if a in other)

    def __radd__(self, other: Any) -> Axes:
        return make_axes(other) + self

    def __rsub__(self, other: Any) -> Axes:
        return make_axes(other) - self

    def __ror__(self, other: Any) -> Axes:
        return make_axes(other) | self

    def __rand__(self, other: Any) -> Axes:
        return make_axes(other) & self

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Axes):
            return self is other or self._axes == other._axes
        return self._axes == tuple(other) if isinstance(other, (list, tuple)) else NotImplemented

    def __hash__(self) -> int:
        return self._hash

    def is_sub_set(self, other: Any) -> bool:
        """Return whether all these axes are among `other`, in any order."""
        return set(self._axes) <= set(make_axes(other))

    def is_super_set(self, other: Any) -> bool:
        """Return whether all axes of `other` are among these, in any order."""
        return set(self._axes) >= set(make_axes(other))

    def is_equal_set(self, other: Any) -> bool:
        """Return whether both are the same axes, in any order."""
        return set(self._axes) == set(make_axes(other))

    def is_not_equal_set(self, other: Any) -> bool:
        """Return whether the axes differ by more than order."""
        return not self.is_equal_set(other)

    def __repr__(self) -> str:
        return f"Axes({', '.join(map(label, self._axes))})"


def make_axis(length: int | None = None, name: str | None = None, roles: Iterable[AxisRole] = (), batch: bool = False,
              recurrent: bool = False, docstring: str | None = None) -> Axis:  # fmt: skip
    """Make a new axis, which differs from all others.

    Parameters
    ----------
    length : int, optional
        May be set later.
    name : str, optional
        ``N`` is the batch axis, ``REC`` the recurrent and ``C`` the channel axis.
    roles : iterable of AxisRole
    batch, recurrent : bool
        Whether it is a batch or recurrent axis, whatever its name.
    docstring : str, optional
    """
    extra = [role for role, given in ((BATCH, batch), (RECURRENT, recurrent)) if given]
    return Axis(length, name, (*items(roles, "make_axis: roles"), *extra), docstring)


def make_axes(axes: Any = ()) -> Axes:
    """Make axes of one axis, or of several; axes are returned as they are."""
    return axes if isinstance(axes, Axes) else Axes(axes)


def make_axis_role(name: str | None = None, docstring: str | None = None) -> AxisRole:
    """Make a new role."""
    return AxisRole(name, docstring)


def label(axis: Axis) -> str:
    """Return ``name: length`` for a message; ``?`` is an unknown length."""
    return f"{axis.name}: {'?' if axis.length is None else axis.length}"


def unmatched(text: str, left: Axes, right: Axes) -> UnmatchedAxesError:
    """Return the error of axes that should correspond; it says so where only names are equal."""
    alike = [a.name for a in left - right if a.name in (right - left).names]
    if alike:
        text += f" ({', '.join(alike)} of one side and of the other are different axes, in spite of their names)"
    return UnmatchedAxesError(text)


def known_lengths(axes: Axes, what: str) -> tuple[int, ...]:
    """Return the lengths of axes that must be known.

    Raises
    ------
    OpValueError
        Naming the axes whose length is not known.
    """
    lengths = axes.lengths
    if None in lengths:
        unknown = [a.name for a in axes if a.length is None]
        raise OpValueError(f"{what}: the length of axis {', '.join(unknown)} of {axes!r} is not known; set axis.length")
    return lengths  # type: ignore[return-value]


def _checked_length(length: Any, name: str) -> int | None:
    if length is None:
        return None
    try:
        length = operator.index(length)
    except TypeError:
        raise OpTypeError(f"axis {name}: length={length!r} is not an integer") from None
    if length < 0:
        raise OpValueError(f"axis {name}: length={length} is negative")
    return length


def _listed(axes: Any) -> Iterator[Axis]:
    """Yield the axes of an argument."""
    if axes is None:
        return
    if isinstance(axes, Axis):
        yield axes
        return
    try:
        items = iter(axes)
    except TypeError:
        raise OpTypeError(f"expected an axis or axes (see make_axis), got {axes!r}") from None
    for item in items:
        if isinstance(item, (tuple, list, Axes)):
            yield FlattenedAxis(item)
        elif isinstance(item, Axis):
            yield item
        else:
            raise OpTypeError(f"expected an axis (see make_axis), got {item!r} in {axes!r}")
