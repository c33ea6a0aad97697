"""Memory layouts: the same numbers, laid out otherwise, have the same results and gradients.

Owns the layouts, and the search for the smallest statement of where a function goes wrong. Every
array is laid out in the middle of memory of its own that is filled with another number, so that
code which takes any array for a contiguous one reads wrong numbers, and never outside.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from pullback.arrays import NUMPY, is_array
from pullback.check.laws import differs, floors, gradients, noise
from pullback.check.mutation import copies, run_leaves
from pullback.check.report import Cause
from pullback.check.session import BackwardError, InapplicableError, Session
from pullback.check.subject import Array, Arrays, ForwardError, Run, host
from pullback.core import tree
from pullback.core.tensor import Tensor, box

_FILLER = 7


class Layout(NamedTuple):
    """A way to lay an array out.

    Attributes
    ----------
    name : str
        As failures call it.
    lay : callable
        Returns an array in that layout.
    axes : tuple of int
        The axes along which its values are all the same; those of `lay` alone elsewhere.
    """

    name: str
    lay: Callable[[Array], Array]
    axes: tuple[int, ...] = ()

    def values(self, array: Array) -> Array:
        """Return the values that are laid out, C-contiguous."""
        first = tuple(slice(0, 1) if k in self.axes else slice(None) for k in range(array.ndim))
        return np.array(np.broadcast_to(array[first], array.shape), order="C")


# -- the layouts ----------------------------------------------------------------------------------
def layouts_of(array: Array, fast: bool = False) -> list[Layout]:
    """Return the layouts that make a difference for an array.

    Examples
    --------
    >>> import numpy as np
    >>> [layout.name for layout in layouts_of(np.zeros((2, 3)), fast=True)]
    ['transposed', 'expanded along axis 0', 'sliced with steps']
    """
    long = [k for k in range(array.ndim) if array.shape[k] > 1]
    orders = _transposed(long) if len(long) > 1 else []
    expanded = [Layout(f"expanded along axis {k}", _expanded((k,)), (k,)) for k in long[:3]]
    stepped = [Layout("sliced with steps", _stepped)] if long else []
    if fast:
        return [*orders[:1], *expanded[:1], *stepped]
    found = [*orders, *expanded, *stepped]
    if len(long) > 1:
        every = tuple(range(array.ndim))
        found.append(Layout("expanded along every axis", _expanded(every), every))
        found.append(Layout("rows of a wider array", _rows))
    if long:
        found.append(Layout("reversed", _reversed))
    return [
        *found,
        Layout("inside a larger storage", _inside),
        Layout("misaligned", _misaligned),
        Layout("read-only", _read_only),
    ]


def _transposed(long: Sequence[int]) -> list[Layout]:
    """Return the layouts whose axes are in another order."""
    if len(long) == 2:
        return [Layout("transposed", _ordered(*long))]
    pairs = [*itertools.pairwise(long)][:3]
    swapped = [Layout(f"axes {i} and {j} transposed", _ordered(i, j)) for i, j in pairs]
    return [Layout("Fortran order", _fortran), *swapped]


def _buffer(array: Array, shape: tuple[int, ...]) -> Array:
    """Return an array of that shape in the middle of filled memory."""
    count = int(np.prod(shape))
    margin = max(array.size, 1)
    filler = _FILLER if array.dtype.kind in "fc" else 0  # an index stays one
    memory = np.full(count + 2 * margin, filler, array.dtype)
    return memory[margin : margin + count].reshape(shape)


def _fortran(array: Array) -> Array:
    laid = _buffer(array, array.shape[::-1]).T
    laid[...] = array
    return laid


def _ordered(i: int, j: int) -> Callable[[Array], Array]:
    def lay(array: Array) -> Array:
        turned = np.swapaxes(array, i, j)
        laid = _buffer(array, turned.shape)
        laid[...] = turned
        return np.swapaxes(laid, i, j)

    return lay


def _stepped(array: Array) -> Array:
    laid = _buffer(array, tuple(2 * n + 1 for n in array.shape))
    laid = laid[(slice(1, None, 2),) * array.ndim]
    laid[...] = array
    return laid


def _reversed(array: Array) -> Array:
    laid = _buffer(array, array.shape)[(slice(None, None, -1),) * array.ndim]
    laid[...] = array
    return laid


def _rows(array: Array) -> Array:
    laid = _buffer(array, (*array.shape[:-1], array.shape[-1] + 2))[..., 1:-1]
    laid[...] = array
    return laid


def _inside(array: Array) -> Array:
    laid = _buffer(array, array.shape)
    laid[...] = array
    return laid


def _expanded(axes: tuple[int, ...]) -> Callable[[Array], Array]:
    def lay(array: Array) -> Array:
        first = array[tuple(slice(0, 1) if k in axes else slice(None) for k in range(array.ndim))]
        laid = _buffer(array, first.shape)
        laid[...] = first
        strides = [0 if k in axes else laid.strides[k] for k in range(array.ndim)]
        return np.lib.stride_tricks.as_strided(laid, array.shape, strides)

    return lay


def _misaligned(array: Array) -> Array:
    memory = bytearray(array.nbytes + array.itemsize)
    laid = np.frombuffer(memory, array.dtype, array.size, offset=1).reshape(array.shape)
    laid[...] = array
    return laid


def _read_only(array: Array) -> Array:
    laid = _inside(array)
    laid.flags.writeable = False
    return laid


# -- the part -------------------------------------------------------------------------------------
SEEDS = -1  # where a trial lays out grad_output; other places are the leaves of the call


def layouts(session: Session) -> None:
    """Check that no result depends on the layout of an input or of grad_output."""
    if session.subject.place.library is not NUMPY:
        raise InapplicableError("only arrays of NumPy have layouts that a caller can choose")
    trials = _Trials(session)
    trials.lay("grad_output", [SEEDS])
    if not session.options.fast:
        for place in trials.leaves:
            trials.lay(f"`{session.subject.labels[place]}`", [place])
        if not trials.found and len(trials.leaves) > 1:
            trials.lay("inputs (all of them)", [*trials.leaves])
        if not trials.found:
            trials.lay("inputs and grad_output", [SEEDS, *trials.leaves])
    trials.report()


class _Wrong(NamedTuple):
    """What one layout did: the argument whose gradient is wrong, or what was raised."""

    layout: str
    argument: str  # empty: the outputs themselves
    expected: Array | None = None
    got: Array | None = None
    where: Array | None = None
    raised: str = ""


class _Trials:
    """The trials of one check: every layout of one array, or of several at once."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.subject = session.subject
        self.arrays = session.arrays
        self.seeds = session.seeds("layouts")
        self.leaves = self._leaves()
        self.found: dict[str, list[_Wrong]] = {}  # by what was laid out
        self.refused: dict[str, tuple[str, str, str]] = {}  # by layout: what, strides, the error
        self.base = self._results({}, self.arrays, self.seeds)

    def _leaves(self) -> dict[int, Array]:
        """Return the arrays among the leaves of the call, by their places."""
        values = dict(zip(self.subject.tracked, copies(self.arrays), strict=True))
        if self.subject.dirty:
            return values
        for i, value in enumerate(tree.leaves(self.subject.call)):
            if i not in values and (isinstance(value, Tensor) or is_array(value)):
                values[i] = np.array(host(value), order="C")
        return values

    # -- running ------------------------------------------------------------------------------
    def _results(self, others: dict[int, Array], arrays: Arrays, seeds: Arrays) -> list[Array]:
        """Return gradients and outputs; `others` are arrays that are not differentiated."""
        run = self._run(others, arrays)
        return [*gradients(run, seeds, arrays), *run.values()]

    def _run(self, others: dict[int, Array], arrays: Arrays) -> Run:
        if not others:
            return self.subject.run(arrays)
        leaves = self.subject.tensors(arrays, None)
        for i, array in others.items():
            leaves[i] = box(array)
        return run_leaves(self.subject, leaves)

    def lay(self, what: str, places: Sequence[int]) -> None:
        """Try every layout of the arrays at these places, each at all that have it."""
        options: dict[str, list[tuple[int, int, Layout]]] = {}
        for place in places:
            arrays = self.seeds if place == SEEDS else [self.leaves[place]]
            for k, array in enumerate(arrays):
                for layout in layouts_of(array, self.session.options.fast):
                    options.setdefault(layout.name, []).append((place, k, layout))
        for name, chosen in options.items():
            wrong = self._try(name, what, chosen)
            if wrong is not None:
                self.found.setdefault(what, []).append(wrong)

    def _try(
        self, name: str, what: str, chosen: Sequence[tuple[int, int, Layout]]
    ) -> _Wrong | None:
        """Compare the results with arrays in one layout with those of plain copies."""
        plain, laid = (dict(self.leaves), list(self.seeds)), (dict(self.leaves), list(self.seeds))
        for place, k, layout in chosen:
            for (leaves, seeds), put in ((plain, layout.values), (laid, layout.lay)):
                if place == SEEDS:
                    seeds[k] = put(self.seeds[k])
                else:
                    leaves[place] = put(self.leaves[place])
        strides = ", ".join(
            dict.fromkeys(
                str((laid[1][k] if p == SEEDS else laid[0][p]).strides) for p, k, _ in chosen
            )
        )
        expected = self.base
        if any(layout.axes for *_, layout in chosen):
            try:
                expected = self._of(*plain)
            except (ForwardError, BackwardError):
                return None  # not defined for equal values
        name = f"{name} (strides {strides})"
        try:
            got = self._of(*laid)
        except ForwardError as error:
            self.refused.setdefault(_short(name), (what, name, _line(error)))
            return None
        except BackwardError as error:
            return _Wrong(name, "", raised=_line(error))
        return self._compared(name, got, expected, plain)

    def _of(self, leaves: dict[int, Array], seeds: list[Array]) -> list[Array]:
        arrays = [leaves[i] for i in self.subject.tracked]
        return self._results(self._others(leaves), arrays, seeds)

    def _others(self, leaves: dict[int, Array]) -> dict[int, Array]:
        """Return what is not differentiated and not as in the call."""
        return {
            i: a
            for i, a in leaves.items()
            if i not in self.subject.tracked and a is not self.leaves[i]
        }

    # -- comparing ----------------------------------------------------------------------------
    def _compared(
        self,
        name: str,
        got: list[Array],
        expected: list[Array],
        plain: tuple[dict[int, Array], list[Array]],
    ) -> _Wrong | None:
        """Return what is wrong beyond rounding; the outputs first."""
        limits = floors(self.session, expected, plain[1])
        places = [
            i
            for i, (g, e, floor) in enumerate(zip(got, expected, limits, strict=True))
            if differs(g, e, self.session.rtol, floor).any()
        ]
        if not places:
            return None
        spread = self._noise(*plain)
        count = len(self.arrays)
        for i in sorted(places, key=lambda i: i < count):
            floor = limits[i] + spread[i]
            where = differs(got[i], expected[i], self.session.rtol, floor)
            if where.any():
                argument = self.subject.names[i] if i < count else ""
                return _Wrong(name, argument, expected[i], got[i], where)
        return None

    def _noise(self, leaves: dict[int, Array], seeds: list[Array]) -> list[float]:
        """Return how much rounding may change the results at this point."""
        arrays, others = [leaves[i] for i in self.subject.tracked], self._others(leaves)

        def compute(xs: Arrays, gs: Arrays) -> list[Array]:
            return self._results({i: a.copy() for i, a in others.items()}, copies(xs), gs)

        return noise(compute, arrays, seeds)

    # -- telling ------------------------------------------------------------------------------
    def report(self) -> None:
        """Report one failure for each array whose layout matters, and what forward refuses."""
        for what in dict.fromkeys(what for what, *_ in self.refused.values()):
            rows = [(name, line) for w, name, line in self.refused.values() if w == what]
            names = ", ".join(name for name, _ in rows)
            self.session.note(f"forward refuses {what} that is {names}: {rows[0][1]}")
        for what, wrong in self.found.items():
            first = wrong[0]
            name = what.strip("`")
            hint = _HINT.format(name if name.isidentifier() else "them")
            self.session.fail(
                Cause("layout", _text(what, wrong), hint),
                first.argument,
                expected=first.expected,
                got=first.got,
                wrong=first.where,
            )


_HINT = "call {0}.contiguous(), or numpy.ascontiguousarray(...) of its memory, before relying on it"
_NEEDED = {
    "misaligned": "aligned",
    "read-only": "writeable",
    "inside a larger storage": "contiguous, memory-owning",
}


def _text(what: str, wrong: Sequence[_Wrong]) -> str:
    """Say which layouts fail, and how."""
    names = {_short(w.layout) for w in wrong}
    needed = _NEEDED.get(next(iter(names)), "contiguous") if len(names) == 1 else "contiguous"
    arguments = list(dict.fromkeys(w.argument for w in wrong if not w.raised))
    if not arguments:
        who = f"backward raises ({wrong[0].raised}): it is"
    elif "" in arguments:
        who = "forward is"
    else:
        who = f"the gradient of {' and '.join(f'`{a}`' for a in arguments)} is"
    plural = "layouts are" if len(wrong) > 1 else "layout is"
    listed = ", ".join(w.layout for w in wrong)
    return f"{who} right only for {needed} {what}; the failing {plural} {listed}"


def _short(layout: str) -> str:
    """Return the name of a layout without its strides."""
    return layout.split(" (")[0]


def _line(error: Exception) -> str:
    return str(error).split("\n")[0]
