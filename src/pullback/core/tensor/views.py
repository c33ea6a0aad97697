"""Views: tensors that show (part of) another tensor's memory.

Owns how a view remembers its base and the steps that lead from base to view, and how a view is
brought up to date after its base changed. A base is never a view itself. A view is stale when
its base's history or array is not the one the view last saw; `sync` then replays the steps on
the base, which gives the view its new history (and, on libraries whose arrays cannot be written
in place, its new values). Must not know how operations are recorded: steps are called.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pullback.arrays import library_of
from pullback.core.graph.modes import RECORD, STATE
from pullback.errors import InplaceError

# How a view came about: what an in-place change of it may do to the history.
TRACKED = "tracked"
NO_GRAD_VIEW = "no_grad"
ONE_OF_MANY = "one of many"
CUSTOM = "custom"

# The path of a view that a user's operation made: nobody knows the steps.
UNKNOWN = ("unknown",)


class Step:
    """One view operation with its settings, ready to be applied again."""

    __slots__ = ("index", "op", "settings")

    def __init__(self, op: Any, settings: dict[str, Any], index: int | None = None) -> None:
        self.op = op
        self.settings = settings
        self.index = index

    def __call__(self, tensor: Any) -> Any:
        """Apply the step to a tensor, recorded."""
        result = self.op.public(tensor, **self.settings)
        return result if self.index is None else result[self.index]

    def on_array(self, xp: Any, array: Any) -> Any:
        """Apply the step to an array of namespace `xp`."""
        result = self.op.forward(xp, array, **self.settings)
        return result if self.index is None else result[self.index]


class View:
    """What a tensor that is a view knows of its base.

    ``path`` is a linked list ``(path before, step)``, None for the base itself, or UNKNOWN. A
    chain of views of views so shares its beginning and never holds the tensors in between.
    """

    __slots__ = ("base", "data", "kind", "node", "path")

    def __init__(self, base: Any, path: Any, kind: str) -> None:
        self.base = base
        self.path = path
        self.kind = kind
        self.node = base._node
        self.data = base._data


def _steps(path: Any) -> Iterator[Step]:
    """Return the steps from the base to the view."""
    steps: list[Step] = []
    while path is not None:
        path, step = path
        steps.append(step)
    return reversed(steps)


def view_array(path: Any, xp: Any, array: Any) -> Any:
    """Return the part of `array`, of namespace `xp`, that the view shows."""
    for step in _steps(path):
        array = step.on_array(xp, array)
    return array


def view_tensor(path: Any, tensor: Any) -> Any:
    """Return the part of `tensor` that the view shows, recorded."""
    for step in _steps(path):
        tensor = step(tensor)
    return tensor


def view_of(source: Any, step: Step, kind: str) -> View:
    """Return the view information of the result of `step` on the tensor `source`."""
    outer = source._view
    if outer is None:
        return View(source, (None, step), kind)
    return View(outer.base, (outer.path, step), kind if kind != TRACKED else outer.kind)


def sync(tensor: Any) -> None:
    """Bring a view up to date with its base; call only where ``tensor._view`` is not None."""
    view = tensor._view
    base = view.base
    if base._view is not None:  # it became a view itself, in place (inplace.become_view)
        base = view.base = base._view.base
    if view.data is not base._data and library_of(base._data).mutable:
        _part(tensor, view, base)
    elif view.node is not base._node or view.data is not base._data:
        replay(tensor, view, base)


def _part(tensor: Any, view: View, base: Any) -> None:
    """Make a view whose base was given other data a tensor of its own, on the old memory."""
    if view.node is not base._node:
        raise InplaceError(
            "view: the base of this view was modified inplace and then given other data; the "
            "history of the view is lost.\nhint: clone() the view before."
        )
    tensor._view = None


def replay(tensor: Any, view: View, base: Any) -> None:
    """Give a stale view the history and the array that its steps lead to on its base."""
    if view.kind is CUSTOM:
        raise InplaceError(
            f"{tensor._node.name() if tensor._node else 'custom function'}: this tensor is a "
            "view that was created inside a custom Function, and its base was modified by an "
            "inplace operation since; the history of the view is lost.\n"
            "hint: clone() the result inside forward."
        )
    if view.kind is NO_GRAD_VIEW and STATE.get().grad:
        raise InplaceError(
            "view: A view was created in no_grad mode and its base was modified inplace with grad "
            "mode enabled; the history of the view is unknown.\n"
            "hint: create the view outside of no_grad, or clone() it."
        )
    if view.path is UNKNOWN:
        return  # a custom function's view, used where no history is needed
    previous = STATE.get()
    STATE.set(RECORD)
    try:
        twin = base._alias()
        twin._node = base._node
        fresh = view_tensor(view.path, twin)
    finally:
        STATE.set(previous)
    if base._node is not None:  # a base detached in place leaves its views their history
        move_retained(tensor, tensor._node, fresh._node)
        tensor._node = fresh._node
    if view.data is not base._data:
        tensor._data = fresh._data
        tensor._counter = base._counter
    view.node = base._node
    view.data = base._data


def move_retained(tensor: Any, old: Any, new: Any) -> None:
    """Let the gradient that `tensor` retains be that of its newest history."""
    if old is None or new is None or old.extra is None or old.extra.retained is None:
        return
    if old.extra.retained() is tensor:
        new.extras().retained = old.extra.retained
        old.extra.retained = None
