"""Views: tensors that show (part of) another tensor's memory.

Owns how a view remembers its base and the steps that lead from base to view, and how a view is
brought up to date after its base changed. A base is never a view itself. The *path* of a view is a
linked tuple ``(path of the view it was taken of, operation, number of the output or None,
settings)``, None for the base itself; a chain of views of views so shares its beginning and never
holds the tensors in between. Settings are the value of the one setting of the operation, else a
tuple of all. The last step stands in the view's own slots, `path_of` puts it together. A view is
stale when its base's node or array is not the one that it last saw; `refresh` then takes the steps
again on the base, which gives the view its new node (and, on libraries whose arrays cannot be
written in place, its new values). Must not know how operations are recorded: steps are called.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pullback.arrays import NUMPY, library_of, ndarray
from pullback.core.graph.modes import RECORD, STATE
from pullback.core.graph.node import AccumulateGrad
from pullback.core.tensor.versions import shared_counter, version_of
from pullback.errors import InplaceError

# How a view came about: what an in-place change of it may do to the graph.
TRACKED = "tracked"
NO_GRAD_VIEW = "no_grad"
ONE_OF_MANY = "one of many"
CUSTOM = "custom"

# What an operation says of itself that takes a view which must not be written to: a part of
# complex numbers.
READ_ONLY = "read only"
# And one whose result is a copy where the elements do not lie in the order that it needs.
MAY_COPY = "may copy"


def make_view(tensor: Any, source: Any, kind: str, *step: Any) -> None:
    """Make `tensor` a view of what `source` shows.

    `step` is the operation, the number of its output and its settings; none where a user's
    operation made the view, whose steps nobody knows.
    """
    base = source if source._base is None else source._base
    tensor._base = base
    tensor._kind = kind
    # That of a view may be an older one, see `_base_was_detached`.
    tensor._base_node = base._node if source is base else source._base_node
    tensor._base_data = base._data
    tensor._outer = None if source is base else path_of(source)
    tensor._step, tensor._output, tensor._settings = step or (None, None, ())


def link(tensor: Any, source: Any, op: Any, output: int | None, settings: Any, kind: str) -> None:
    """Make `tensor`, an output of `op` called on `source`, a view, as it would be of NumPy's."""
    if op.view is MAY_COPY and _copies(source, op, output, settings):
        return
    if kind != NO_GRAD_VIEW and source._base is not None and source._kind != TRACKED:
        kind = source._kind  # what may not be changed itself has no views that may
    make_view(tensor, source, kind, op, output, settings)


def layout_of(tensor: Any) -> Any:
    """Return an array of NumPy's, of any values, that lies in memory as the tensor's would.

    Of libraries that write nothing in place: their bases are taken to lie in row-major order.
    """
    path = None if tensor._base is None else path_of(tensor)
    if None in _operations(path):  # of a user's operation: nobody knows
        path = None
    whole = tensor if path is None else tensor._base
    dtype = "complex64" if whole.dtype.is_complex else "int8"  # real and imag are views
    return view_array(path, NUMPY.xp, NUMPY.xp.empty(whole.shape, dtype=dtype))


def _copies(source: Any, *step: Any) -> bool:
    """Return whether a step gives a copy of what a wrapped `source` shows, as of NumPy's memory."""
    if source._base is None or library_of(source._data).mutable:
        return False
    before = layout_of(source)
    if NUMPY.is_contiguous(before):
        return False
    return not NUMPY.shares(view_array((None, *step), NUMPY.xp, before), before)


def path_of(view: Any) -> tuple[Any, ...]:
    """Return the steps from the base to a view."""
    return (view._outer, view._step, view._output, view._settings)


def settings_of(op: Any, settings: dict[str, Any]) -> Any:
    """Return settings as a view keeps them."""
    values = tuple([settings[name] for name in op.settings])
    return values[0] if len(values) == 1 else values


def _steps(path: Any) -> Iterator[tuple[Any, int | None, dict[str, Any]]]:
    """Return operation, number of the output and settings of each step from the base."""
    steps: list[tuple[Any, int | None, dict[str, Any]]] = []
    while path is not None:
        path, op, output, settings = path
        values = (settings,) if len(op.settings) == 1 else settings
        steps.append((op, output, dict(zip(op.settings, values, strict=True))))
    yield from reversed(steps)


def _operations(path: Any) -> Iterator[Any]:
    """Return the operation of each step to the base, None for a user's operation."""
    while path is not None:
        path, op, _, _ = path
        yield op


def refuse_read_only(name: str, tensor: Any) -> None:
    """Raise where a tensor that `name` is about to change shows a part of complex numbers."""
    path = None if tensor._base is None else path_of(tensor)
    if any(op is not None and op.view is READ_ONLY for op in _operations(path)):
        raise InplaceError(
            f"{name}: a view of the real or imaginary part of a complex tensor cannot be written "
            "to.\nhint: write the complex tensor itself, for instance x.copy_(complex(re, im))."
        )


def view_array(path: Any, xp: Any, array: Any) -> Any:
    """Return the part of `array`, of namespace `xp`, that the path leads to."""
    for op, output, settings in _steps(path):
        array = op.forward(xp, array, **settings)
        array = array if output is None else array[output]
    return array


def view_tensor(path: Any, tensor: Any) -> Any:
    """Return the part of `tensor` that the path leads to, recorded."""
    for op, output, settings in _steps(path):
        tensor = op.public(tensor, **settings)
        tensor = tensor if output is None else tensor[output]
    return tensor


def refresh(view: Any) -> None:
    """Bring a view up to date with its base; call only where ``view._base`` is not None."""
    base = view._base
    if view._base_data is not base._data and library_of(base._data).mutable:
        _become_independent(view, base)
    elif view._base_node is not base._node or view._base_data is not base._data:
        replay(view)


def array_for_reading(view: Any) -> Any:
    """Return the array of a view, up to date: also where its graph is lost, and no use of it."""
    if graph_is_lost(view):
        base = view._base
        library = library_of(base._data)
        if not library.mutable and None not in _operations(path_of(view)):
            return view_array(path_of(view), library.xp, base._data)
    return view._data


def graph_is_lost(view: Any) -> bool:
    """Return whether a view can be read, but not used in the graph."""
    try:
        refresh(view)
    except InplaceError:
        return True
    return False


def _become_independent(view: Any, base: Any) -> None:
    """Make a view whose base was given other data a tensor of its own, on the old memory."""
    _stop_tracking(view, base)
    if view._base_node is not base._node and not _base_was_detached(view, base):
        raise InplaceError(
            "view: the base of this view was modified inplace and then given other data; the "
            "graph of the view is lost.\nhint: clone() the view before."
        )
    view._counter = shared_counter(base)
    view._base = None


def _base_was_detached(view: Any, base: Any) -> bool:
    """Return whether nothing but a cut parts a base from the node that its view last saw.

    Frozen or detached in place, with no change of its values, it leaves its views their graph.
    """
    before, now = view._base_node, base._node
    if before is None:  # switched on: what a user's operation returned has a graph of its own
        return view._kind is CUSTOM and now.__class__ is AccumulateGrad
    if not (now is None or now.__class__ is AccumulateGrad):
        return False
    if before.__class__ is AccumulateGrad:
        return True
    return before.extra is not None and before.extra.detached == version_of(base)


def _stop_tracking(view: Any, base: Any) -> None:
    """Take a view out of the graph that is there only since its base, a leaf, was switched on.

    Frozen again, the base leaves it as if nobody had looked at it in between.
    """
    node = view._node
    if (
        base._node is None
        and node is not None
        and node.extra is not None
        and node.extra.tracks_base
    ):
        view._node = view._base_node = None


def detach_from_base(view: Any) -> None:
    """Make a view of a tensor that nobody else holds a tensor of its own.

    It keeps the memory if it shows all of it; a part is copied, so that the rest can go.
    """
    base, array = view._base, view._data
    if base is None:
        return
    library = library_of(array)
    if not library.mutable or array.size == base._data.size:
        view._counter = shared_counter(base)  # what made the base may have saved it
    else:
        view._data, view._counter = library.copy(array), None
    view._base = None


def is_current(view: Any) -> bool:
    """Return whether its base is as the view last saw it; of no view it holds too."""
    base = view._base
    return base is None or (view._base_node is base._node and view._base_data is base._data)


def own_memory(fresh: Any) -> Any:
    """Make a view that is current a tensor of its own, of the same node, and return it."""
    array = fresh._data
    if array.__class__ is ndarray:  # as for most elements
        fresh._data = array.copy()
    elif library_of(array).mutable:
        fresh._data = library_of(array).copy(array)
    fresh._base = fresh._base_node = fresh._base_data = fresh._counter = None
    return fresh


def replay(view: Any) -> None:
    """Give a stale view the node and the array that its steps lead to on its base."""
    base = view._base
    _stop_tracking(view, base)
    was_detached, is_same = _base_was_detached(view, base), view._base_data is base._data
    if was_detached and is_same:
        return
    _check_known(view, was_detached)
    keeps = was_detached or view._kind is NO_GRAD_VIEW  # its graph, or that it has none
    if (keeps and is_same) or None in _operations(path_of(view)):
        return
    previous = STATE.get()
    try:
        STATE.set(RECORD)
        source = base._alias()
        source._node = base._node
        fresh = view_tensor(path_of(view), source)
    finally:
        STATE.set(previous)
    if not is_same:
        view._data, view._base_data = fresh._data, base._data
    if not keeps:
        move_retained(view, view._node, fresh._node)
        if view._base_node is None and base._node.__class__ is AccumulateGrad:
            fresh._node.extras().tracks_base = True
        view._node = fresh._node
        view._base_node = base._node


def _check_known(view: Any, was_detached: bool) -> None:
    """Raise where nobody knows the graph of a view whose base was changed."""
    if view._kind is CUSTOM:
        raise InplaceError(
            f"{view._node.name() if view._node else 'custom function'}: this tensor is a "
            "view that was created inside a custom Function, and its base was modified by an "
            "inplace operation since; the graph of the view is lost.\n"
            "hint: clone() the result inside forward."
        )
    unknown = not was_detached and view._base._node is not None
    if view._kind is NO_GRAD_VIEW and unknown and STATE.get().grad:
        raise InplaceError(
            "view: A view was created in no_grad mode and its base was modified inplace with grad "
            "mode enabled; the graph of the view is unknown.\n"
            "hint: create the view outside of no_grad, or clone() it."
        )


def move_retained(tensor: Any, old: Any, new: Any) -> None:
    """Let the gradient that `tensor` retains be that of its newest node."""
    if old is None or new is None or old.extra is None or old.extra.retained is None:
        return
    if old.extra.retained() is tensor:
        new.extras().retained = old.extra.retained
        old.extra.retained = None
