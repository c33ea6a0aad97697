"""Changing tensors in place: what is allowed, how it is written, how the graph follows.

Owns the one road of every in-place operation: check, keep a copy of the old values where a rule
needs them, compute right into the memory where the library can and else write the result into it,
bump the version, and give the tensor its new node. A view changes its base's node: the base
becomes ``assign_view(base, view)``, and every view of it replays its steps when next used.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from pullback.arrays import (
    DTYPES,
    NUMPY,
    WrappingLibrary,
    is_array,
    join,
    level_of,
    library_of,
    ndarray,
)
from pullback.core.function.dispatch import (
    THEIRS,
    UNFIT,
    kernel_error,
    mixed_error,
    named,
    unwrap_escaped,
    wrap_in,
)
from pullback.core.function.namespace import CORE_OPS
from pullback.core.function.primitive import Primitive
from pullback.core.function.record import NodeOperation, apply, new_node, record, warn_of_lost
from pullback.core.graph.modes import MAKING, STATE
from pullback.core.graph.node import AccumulateGrad, Node, WideNode, belongs_to_transform
from pullback.core.tensor import views
from pullback.core.tensor.ownership import is_held_once, is_unshared
from pullback.core.tensor.tensor import TENSOR_CLASSES, Tensor, as_array, box
from pullback.core.tensor.versions import bump, counter_of, is_borrowed
from pullback.core.tensor.writes import WRITES
from pullback.errors import (
    ERROR_CONTEXT,
    DTypeError,
    GraphError,
    InplaceError,
    ShapeError,
    compose,
    user_variable,
)

_mode = STATE.get


def apply_inplace(
    op: Primitive, x: Tensor, others: Sequence[Any], settings: dict[str, Any]
) -> Tensor:
    """Change `x` to ``op(x, *others, **settings)`` in place and return it."""
    name = f"{op.name}_"
    for operand in (x, *others):
        if isinstance(operand, Tensor) and operand._base is not None:
            views.refresh(operand)
    if MAKING.get() is not None:
        adopt(op, x, others)
    tracked = check_allowed(name, x, others)
    make_writeable(name, x)
    others = _of_one_library(op, x, others)
    kernel = _kernel(op, x, others)
    if kernel is not None:
        _write_directly(op, kernel, x, others, settings, tracked)
    else:
        _write_result(op, name, x, others, settings, tracked)
    return x


def _called(variables: dict[str, Any]) -> tuple[tuple[str, ...], list[tuple[str, Any]]]:
    """Return, for errors, the operation that a running `apply_inplace` does, and its arguments."""
    op = variables["op"]
    return (f"{op.name}_", f"{op.public.__name__}_"), named(
        op, (variables["x"], *variables["others"])
    )


ERROR_CONTEXT[apply_inplace.__code__] = _called


def _of_one_library(op: Primitive, x: Tensor, others: Sequence[Any]) -> Sequence[Any]:
    """Return the other operands in the library of `x`: a wrapped one cannot go into a plain `x`.

    The library that the mode carries comes first: `x` is brought into it.
    """
    library = library_of(x._data)
    if isinstance(library, WrappingLibrary) and not library.level_is_active():
        required = "a tensor that it made, or got as an argument, required where a function writes"
        came = "one that it closes over, while it is called for each sample or tangent by itself"
        hint = "make the tensor inside of the function"
        raise GraphError(compose(op.name, required, came, ("x", x), hint=hint))
    wrapping = _mode().library
    if wrapping is not None and wrapping.level > library.level:
        x._data, library = wrapping.wrap(x._data), wrapping
    result = []
    for other in others:
        other = unwrap_escaped(other)
        array = other._data if isinstance(other, Tensor) else other
        if is_array(array) and library_of(array) is not library:
            if join((library, library_of(array))) is not library:
                raise mixed_error(op, (x, *others))
            other = wrap_in(other, library) if isinstance(other, Tensor) else library.wrap(array)
        result.append(other)
    return result


def adopt(op: Primitive, x: Tensor, others: Sequence[Any]) -> None:
    """Bring a plain tensor that a transform's function made into the library of wrapped operands.

    Nothing is done where others may hold its memory: `_of_one_library` raises then. Whether the
    function made it is known when that has returned, see writes.py.
    """
    if not isinstance(x, Tensor) or (writes := WRITES.get()) is None:
        return
    owner = x if x._base is None else x._base
    arrays = [a._data if isinstance(a, Tensor) else a for a in map(unwrap_escaped, others)]
    libraries = [library_of(a) for a in arrays if is_array(a)]
    library = max(libraries, key=lambda library: library.level, default=NUMPY)
    own = library_of(owner._data)
    if library.level <= own.level or owner._node.__class__ is AccumulateGrad:
        return
    holders = 0 if owner is x else 1 if own.level else 2  # a view holds the array, and its memory
    if not (is_held_once(owner._data, holders) and (own.level or is_unshared(owner._data))):
        return
    if writes.adopt(owner, library, mixed_error(op, (x, *others))):
        # No counter: this memory is not written to, what is written goes to a copy.
        wrapped = wrap_in(box(owner._data, owner._node, None, owner.__class__), library)
        owner._data, owner._node = wrapped._data, wrapped._node
        if owner is not x:
            views.replay(x)


def write_unrecorded(kernel: Callable[..., Any], x: Any, other: Any) -> bool:
    """Do the common in-place change directly: not recorded, one float dtype, plain NumPy memory.

    Returns False, with nothing changed, where anything is unusual.
    """
    mode = _mode()
    if mode.grad or mode.observer is not None or mode.library is not None:
        return False
    data = _own_memory(x)
    if data is None:
        return False
    if other.__class__ in TENSOR_CLASSES:
        if mode.forward and other._node is not None:
            return False
        other = other._data if other._base is None else other.data_array()
        if other.__class__ is not ndarray or other.dtype is not data.dtype:
            return False
    elif other.__class__ is not float and other.__class__ is not int:
        return False
    try:
        kernel(data, other, out=data)
    except UNFIT:  # read-only memory, shapes or dtypes that do not fit: nothing was written
        return False
    bump(x)
    return True


def _own_memory(x: Tensor) -> Any:
    """Return the array of a tensor where that is NumPy's, of floats, and no other tensor's."""
    data = x._data
    if x._base is not None or data.__class__ is not ndarray or data.dtype.kind != "f":
        return None
    if is_borrowed(x) or not data.flags.c_contiguous:  # elements may share their memory
        return None
    return data


def writable_arrays(tensors: Sequence[Tensor]) -> list[Any] | None:
    """Return the arrays of tensors of one shape and dtype, to be written to and then `bump`ed.

    None where that is not all there is to it: something is recorded, or an array is not NumPy's.
    """
    mode = _mode()
    if mode.grad or mode.observer is not None or mode.library is not None:
        return None
    arrays = []
    for x in tensors:
        data = _own_memory(x)
        if data is None or not data.flags.writeable:
            return None
        if data.shape != tensors[0]._data.shape or data.dtype is not tensors[0]._data.dtype:
            return None
        arrays.append(data)
    return arrays


def _kernel(op: Primitive, x: Tensor, others: Sequence[Any]) -> Callable[..., Any] | None:
    """Return how to compute right into the memory of `x`, or None where that cannot be."""
    if op.inplace is not None:
        return op.inplace
    library = library_of(x._data)
    if op.xp_name is None or not library.supports_out or not x.dtype.is_inexact:
        return None
    for other in others:
        if isinstance(other, Tensor):
            if library_of(other._data) is not library:
                return None
            if other.shape not in (x.shape, ()) or other._data.dtype != x._data.dtype:
                return None
        elif other.__class__ is not int and other.__class__ is not float:
            return None
    function = getattr(library.xp, op.xp_name)
    if not library.is_contiguous(x._data):
        # NumPy's own loops for input and output in one strided place are not all right: negative's
        # of 4 elements of 4 bytes, or of 8 of 8 bytes, skips elements.
        return lambda array, *rest: library.assign(array, ..., function(array, *rest))
    return lambda array, *rest: function(array, *rest, out=array)


def _write_directly(
    op: Primitive,
    kernel: Callable[..., Any],
    x: Tensor,
    others: Sequence[Any],
    settings: dict[str, Any],
    tracked: bool,
) -> None:
    old = _before(op, x, others, tracked)
    arrays = [o.data_array() if isinstance(o, Tensor) else o for o in others]
    tensors = [old, *(_unaliased_from(x, o) if tracked else o for o in others)]
    observer = _mode().observer
    try:
        if observer is not None:  # looks before anything is changed
            result = kernel(library_of(x._data).copy(x._data), *arrays, **settings)
            observer.result(f"{op.name}_", named(op, (x, *others)), [result], settings, op.moves)
        result = kernel(x._data, *arrays, **settings)
    except THEIRS as error:
        raise kernel_error(op, (x, *others), error) from error
    write(x, result)
    if tracked and not op.differentiable:
        rebase(x, None)
    elif tracked:
        node = record(op, _edges(x, others), tensors, [x], settings, _mode())
        if observer is not None:
            observer.recorded(node, [x])
        rebase(x, node)


def _edges(x: Tensor, others: Sequence[Any]) -> tuple[Any, ...]:
    return (x._node, *(o._node if isinstance(o, Tensor) else None for o in others))


def _before(op: Primitive, x: Tensor, others: Sequence[Any], tracked: bool) -> Tensor:
    """Return a tensor that is about to be changed, a copy where a rule needs its values."""
    if tracked and op.saves(op.inputs[0], _edges(x, others)):
        return box(library_of(x._data).copy(x._data), x._node)
    return x


def _unaliased_from(x: Tensor, other: Any) -> Any:
    """Return `other` with memory of its own where it shares that of `x`, about to be written."""
    if not isinstance(other, Tensor) or counter_of(other) is not counter_of(x):
        return other
    array = other.data_array()
    return box(library_of(array).copy(array), other._node)


def _write_result(
    op: Primitive,
    name: str,
    x: Tensor,
    others: Sequence[Any],
    settings: dict[str, Any],
    tracked: bool,
) -> None:
    old = _before(op, x, others, tracked)
    result = apply(op, (old, *others), settings)
    if result.shape != x.shape:
        raise ShapeError(
            f"{name}: the result must have the shape of the tensor that is changed in place, got "
            f"shape {result.shape} for a tensor of shape {x.shape}.\n"
            "hint: broadcasting cannot enlarge a tensor in place; use the operation that is not."
        )
    result = _cast(name, result, x)
    write(x, library_of(x._data).assign(x._data, ..., result._data))
    if tracked:
        rebase(x, result._node)


def _cast(name: str, result: Tensor, x: Tensor) -> Tensor:
    if result._data.dtype == x._data.dtype:
        return result
    came, wanted = result.dtype, x.dtype
    if level_of(came) > level_of(wanted):
        raise DTypeError(
            f"{name}: the result has dtype {came.name}, which can't be cast to the tensor's "
            f"dtype {wanted.name} in place.\nhint: use the operation that is not in place."
        )
    cast: Tensor = CORE_OPS.astype(result, wanted)
    return cast


def check_allowed(name: str, x: Tensor, others: Sequence[Any] = ()) -> bool:
    """Return whether the change will be recorded; raise where it must not happen.

    Raises
    ------
    InplaceError
        If `x` is a leaf that requires grad, a view of one, or a view whose graph cannot follow.
    """
    if not isinstance(x, Tensor):
        raise TypeError(f"{name}: can only change a Tensor in place, got {type(x).__name__}")
    views.refuse_read_only(name, x)
    mode = STATE.get()
    if not mode.grad:
        if mode.forward:
            warn_of_lost(name, [o._node for o in others if isinstance(o, Tensor)])
        return False
    requires = x.requires_grad
    tracked = requires or any(isinstance(o, Tensor) and o.requires_grad for o in others)
    if requires and x._node.__class__ is AccumulateGrad:
        raise _leaf_changed(name, "a leaf", x)
    if x._base is not None:
        _check_view(name, x, tracked)
    owner = x if x._base is None else x._base
    if tracked and owner._node is None and (writes := WRITES.get()) is not None:
        writes.written(owner)
    return tracked


_SIGNS = {"add_": "+", "sub_": "-", "mul_": "*", "div_": "/", "pow_": "**", "matmul_": "@"}


def _leaf_changed(name: str, what: str, leaf: Any) -> InplaceError:
    """Return the error for a change of a leaf, which may be an argument of a transform."""
    hint = "change it inside `with no_grad():`, or work on a clone()."
    if belongs_to_transform(leaf._node):
        variable = user_variable(leaf)
        x, sign = variable or "x", _SIGNS.get(name)
        others = f"write {x} = {x} {sign} ... instead, or " if sign and what == "a leaf" else ""
        hint = (
            f"{f'{x!r}' if variable else 'it'} is an argument that is differentiated: "
            f"{others}{x} = {x}.clone() before the change."
        )
    text = f"{what} Variable that requires grad is being used in an in-place operation."
    return InplaceError(f"{name}: {text}\nhint: {hint}")


def refuse_new_shape(name: str) -> InplaceError:
    """Return the error for a method that would give a tensor another shape in place."""
    plain = name.removesuffix("_")
    return InplaceError(
        f"{name}: a tensor keeps its shape: what shares its memory or was computed from it relies "
        f"on that.\nhint: use {plain} and keep its result, a view: x = x.{plain}(...)."
    )


def _check_view(name: str, view: Any, tracked: bool) -> None:
    """Raise where the graph of a view's base could not follow a change of the view."""
    if view._kind is views.NO_GRAD_VIEW and (tracked or view._base._node is not None):
        raise InplaceError(
            f"{name}: A view was created in no_grad mode and is being modified inplace with grad "
            "mode enabled.\nhint: create the view outside of no_grad, or clone() it."
        )
    if not tracked:
        return
    if view._kind is views.CUSTOM:
        raise InplaceError(
            f"{name}: a view was created inside a custom Function and is being modified inplace; "
            "its graph could not follow.\nhint: clone() the result inside forward."
        )
    if view._base._node.__class__ is AccumulateGrad:
        raise _leaf_changed(name, "a view of a leaf", view._base)
    if view._kind is views.ONE_OF_MANY:
        raise InplaceError(
            f"{name}: this tensor is an output of a function that returns multiple views and is "
            "being modified inplace; such functions do not allow their outputs to be.\n"
            "hint: take the view by indexing, or clone() it."
        )


def make_writeable(name: str, x: Tensor) -> None:
    """Give a borrowed array a copy of its own; refuse memory that must not be written to."""
    owner = x if x._base is None else x._base
    if is_borrowed(owner):
        owner._data = library_of(owner._data).copy(owner._data)
        owner._counter = None
        if owner is not x:
            views.replay(x)
    library = library_of(x._data)
    if library.mutable and not library.is_writeable(x._data):
        raise InplaceError(
            f"{name}: more than one element of the written-to tensor refers to a single memory "
            "location, or its memory is read-only.\nhint: clone() the tensor first."
        )


def write(x: Tensor, array: Any) -> None:
    """Make `array` the values of `x` after they were computed in place, and bump the version."""
    if array is not x._data:
        x._data = _rewritten(x._data, array)
        if x._base is not None:  # the library cannot write in place: swap the base's array
            base, library = x._base, library_of(array)
            before = library.wrap(base._data)
            after = _rewritten(before, _replaced(library, before, views.path_of(x), array))
            x._base_data = base._data = after
    bump(x)


def _rewritten(before: Any, after: Any) -> Any:
    library = library_of(after)
    return library.rewritten(before, after) if isinstance(library, WrappingLibrary) else after


def rebase(x: Tensor, node: Any) -> None:
    """Make `node` the node of `x` after a recorded in-place change."""
    base = x._base
    if base is None:
        views.move_retained(x, x._node, node)
        x._node = node
        return
    assign = new_node(WideNode, ASSIGN_VIEW, (base._node, node), (views.path_of(x),))
    observer = _mode().observer
    if observer is not None:
        observer.recorded(assign, (base,))
    views.move_retained(base, base._node, assign)
    base._node = assign
    views.refresh(x)


class _AssignView(NodeOperation):
    """The operation from a base to itself after one of its views was changed in place."""

    name = "assign_view"
    node_name = "AssignViewBackward"
    moves = True

    def differentiate(self, node: Node, g: Any, wanted: Any, recorded: bool) -> Sequence[Any]:
        """Return the gradient outside the view, and inside it."""
        if node.released:  # by a pass within this one
            raise node.released_error()
        base, _, path = node.record
        if not recorded:
            g = as_array(g)
        outside = None
        if base is not None and (wanted is None or base in wanted):
            outside = self._outside(path, g, recorded)
        # The view's own node leads to the base's, so whenever this runs, its gradient is wanted.
        if recorded:
            return outside, views.view_tensor(path, g)
        return outside, views.view_array(path, library_of(g).xp, g)

    @staticmethod
    def _outside(path: Any, g: Any, recorded: bool) -> Any:
        """Return `g` with zeros where the view is."""
        if not recorded:
            library = library_of(g)
            return _filled(library, library.copy(g), path, 0)
        array = g.data_array()
        library = library_of(array)
        mask = library.full_like(array, True, DTYPES["bool"])
        return CORE_OPS.where(box(_filled(library, mask, path, False)), g, 0.0)


def _filled(library: Any, array: Any, path: Any, value: Any) -> Any:
    """Return `array`, which is ours to change, with `value` in the part that the view shows."""
    part = views.view_array(path, library.xp, array)
    if library.mutable and library.shares(part, array):
        library.assign(part, ..., value)
        return array
    return _replaced(library, array, path, value)


def _replaced(library: Any, array: Any, path: Any, value: Any) -> Any:
    """Return `array` with the view's part replaced, found by the numbers of its elements.

    Right for every layout: the same steps may be views on one array and copies on another.
    """
    xp = library.xp
    size = math.prod(array.shape)
    flat = xp.reshape(array, (size,))
    numbers = xp.reshape(xp.arange(size, device=array.device), array.shape)
    where = views.view_array(path, xp, numbers)
    return xp.reshape(library.assign(flat, where, value), array.shape)


ASSIGN_VIEW = _AssignView()
