"""Reading what a user's backward returned: by name, by position, or one tensor.

Owns which argument a gradient is of, and the checks of kind, shape, dtype, device and library:
whatever does not fit is an error that names the operation and the argument, lists what would be
right, and never a silently wrong number.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from numbers import Number
from typing import Any

from pullback.arrays import DType, dtype_of, is_array, join, library_of
from pullback.core.custom import pytree as tree
from pullback.core.function.namespace import CORE_OPS
from pullback.core.graph.node import NO_TENSOR, CustomNode, Meta, library_at, meta_of
from pullback.core.tensor.tensor import Tensor, box
from pullback.errors import GradientError, nearest


def read_gradients(
    op: Any, node: CustomNode, result: Any, wanted: Any, recorded: bool
) -> list[Any]:
    """Return one gradient an input, None where there is none, from what backward returned.

    Gradients are tensors where `recorded`, else arrays; there is one where the input's edge is
    among `wanted`, the targets of the pass, None for all.
    """
    arguments = node.arguments
    needed: Sequence[Any] = node.record
    if wanted is not None:
        needed = [edge if edge in wanted else None for edge in needed]
    fields = getattr(result, "_fields", ())
    if fields and {*fields} <= {*arguments.names, *arguments.groups}:
        result = result._asdict()
    if isinstance(result, Mapping):
        gradients = _by_name(op, arguments, result, needed)
    elif isinstance(result, (tuple, list)):
        gradients = _by_position(op, node, result)
    else:
        gradients = _single(op, node, result)
    if arguments.skeleton is not None:
        gradients = _unfold(op, arguments, gradients)
    grads: list[Any] = []
    for i, (g, edge, meta) in enumerate(zip(gradients, needed, node.input_metas, strict=True)):
        if g is None or edge is None:
            grads.append(None)
        else:
            g = _checked(op, arguments, i, g, meta)
            grads.append(g if recorded else g._data)
    return grads


def _by_name(
    op: Any, arguments: Any, result: Mapping[str, Any], needed: Sequence[Any]
) -> list[Any]:
    names, groups = arguments.names, arguments.groups
    if groups:
        result = _without_groups(op, arguments, result)
    gradients = []
    missing = None
    used = 0
    flags = arguments.fold([target is not None for target in needed])
    for name, is_needed in zip(names, flags, strict=True):
        if name in result:
            used += 1
            gradients.append(result[name])
        else:
            gradients.append(None)
            if is_needed:
                missing = name
    if used != len(result):
        unknown = next((k for k in result if k not in names), None)
        if unknown is None:
            text = f"several arguments share a name, so gradients by name are ambiguous: {names}"
            raise _error(op, text, "return the gradients as a tuple by position")
        near = nearest(unknown, known := [*names, *groups])
        text = (
            f"backward returned a gradient for '{unknown}', which is no argument of forward; the "
            f"arguments are: {', '.join(known)}"
        )
        hint = f"did you mean '{near}'?" if near else "use the names of forward's arguments"
        raise _error(op, text, hint)
    if missing is not None:
        listed = ", ".join(map(repr, result)) or "(none)"
        text = (
            f"backward must return a gradient for the argument '{missing}', got a mapping with "
            f"the names {listed}; the arguments are: {', '.join(names)}"
        )
        hint = f"add '{missing}' to the mapping; None there means that it has no gradient"
        raise _error(op, text, hint)
    return gradients


def _without_groups(op: Any, arguments: Any, result: Mapping[str, Any]) -> dict[str, Any]:
    """Spread the gradients of ``*args`` and ``**kwargs`` given under the parameter's own name."""
    flat = dict(result)
    for group, places in arguments.groups.items():
        if group not in flat or group in arguments.names:
            continue
        value = flat.pop(group)
        if isinstance(value, Mapping):
            flat.update(value)
        elif value is None or isinstance(value, (tuple, list)):
            values = [None] * len(places) if value is None else list(value)
            if len(values) != len(places):
                required = f"backward must return {len(places)} gradients for '{group}'"
                raise _error(op, f"{required}, got {len(values)}")
            flat.update(zip([arguments.names[p] for p in places], values, strict=True))
        else:
            required = f"backward must return a sequence or mapping of gradients for '{group}'"
            raise _error(op, f"{required}, got {type(value).__name__}")
    return flat


def _of_tensors(node: CustomNode) -> list[int]:
    """Return which arguments are, or hold, tensors."""
    flags = node.arguments.fold([meta is not NO_TENSOR for meta in node.input_metas])
    return [i for i, is_tensor in enumerate(flags) if is_tensor]


def _by_position(op: Any, node: CustomNode, result: Sequence[Any]) -> list[Any]:
    arguments = node.arguments
    count = len(arguments.names)
    gradients = list(result[:count])
    if len(result) < count or any(extra is not None for extra in result[count:]):
        text = (
            "backward returned an incorrect number of gradients, one an argument of forward "
            f"(expected {count}, got {len(result)}); the arguments are: "
            f"{', '.join(arguments.names)}"
        )
        raise _error(op, text, _BY_NAME)
    tensors = _of_tensors(node)
    for i, (name, g) in enumerate(zip(arguments.names, gradients, strict=True)):
        if g is not None and i not in tensors:
            came = f"backward returned a {type(g).__name__} as the gradient of the argument"
            hint = "return a mapping from argument names, which may leave it out"
            raise _error(op, f"{came} '{name}', which is no tensor; it must be None", hint)
    return gradients


def _single(op: Any, node: CustomNode, result: Any) -> list[Any]:
    arguments = node.arguments
    tensors = _of_tensors(node)
    if not (result is None or isinstance(result, Tensor) or _is_gradient(result)):
        text = (
            "backward must return a mapping from argument names to gradients, a tuple or one "
            f"tensor, got {type(result).__name__}"
        )
        hint = "backward(ctx, grad_output) returns the gradients themselves"
        raise _error(op, text, hint if callable(result) else "")
    if len(tensors) != 1:
        names = ", ".join(arguments.names[i] for i in tensors)
        came = "None" if result is None else "one gradient"
        text = (
            f"backward returned {came}, but forward was called with {len(tensors)} tensor "
            f"arguments ({names}; expected {len(arguments.names)}, got 1)"
        )
        raise _error(op, text, _BY_NAME)
    gradients = [None] * len(arguments.names)
    gradients[tensors[0]] = result
    return gradients


def _unfold(op: Any, arguments: Any, gradients: Sequence[Any]) -> list[Any]:
    """Spread the gradients of containers over their leaves (traverse=True)."""
    grads: list[Any] = []
    for name, g, value in zip(arguments.names, gradients, arguments.skeleton, strict=True):
        count = sum(1 for _ in tree.leaves(value))
        if g is None:
            grads += [None] * count
        elif tree.children(value) is None:
            grads.append(g)
        else:
            pieces = _aligned(g, value)
            if pieces is None:
                required = f"backward must return for '{name}' gradients in the structure of that"
                raise _error(op, f"{required} argument, {value!r}, got another structure")
            grads += pieces
    return grads


def _aligned(g: Any, value: Any) -> list[Any] | None:
    """Return the leaves of `g` in the order of those of `value`; None where they do not match."""
    wanted = tree.children(value)
    if wanted is None:
        return [g] if tree.children(g) is None else None
    if g is None:
        return [None] * sum(1 for _ in tree.leaves(value))
    came = tree.children(g)
    if came is None or {k for k, _ in came} != {k for k, _ in wanted}:
        return None
    by_key = dict(came)
    pieces: list[Any] = []
    for key, item in wanted:
        result = _aligned(by_key[key], item)
        if result is None:
            return None
        pieces += result
    return pieces


def _is_gradient(value: Any) -> bool:
    return isinstance(value, (Tensor, Number)) or is_array(value)


def _checked(op: Any, arguments: Any, i: int, g: Any, meta: Meta) -> Tensor:
    """Return `g` as a tensor that fits input `i`, or raise."""
    shape, dtype, device_key = meta
    if isinstance(g, Tensor):
        came = meta_of(g._data if g._base is None else g.data_array())
        if came[2] == device_key and came == meta:  # else dtypes are not to be compared
            return g
    name = arguments.owner(i)
    library, device = library_at(device_key)
    if not isinstance(g, Tensor):
        if isinstance(g, bool) or not _is_gradient(g):
            required = f"the gradient of '{name}' must be a Tensor, an array, a number or None"
            raise _error(op, f"{required}, got {type(g).__name__}", argument=name)
        if is_array(g):
            g = box(library_of(g).tidy(g))
        elif isinstance(g, complex) and not dtype_of(dtype).is_complex:
            text = f"the gradient of '{name}' must be real, got the complex number {g}"
            raise _error(op, text, argument=name)
        else:
            g = box(library.asarray(g, dtype=dtype_of(dtype)))
    array = g.data_array()
    if array.shape != shape:
        raise _shape_error(op, name, array.shape, shape)
    own = library_of(array)
    if join((own, library)) is None or own.device(array) != device:
        required = f"the gradient of '{name}' must be on {device} ({library.name})"
        hint = "compute it from the saved values, or move it with .to(device)"
        raise _error(op, f"{required}, got one on {g.device} ({own.name})", hint, name)
    wanted = dtype_of(dtype)
    return g if own.dtype(array) is wanted else _cast(op, name, g, wanted)


def _cast(op: Any, name: str, g: Tensor, wanted: DType) -> Tensor:
    if not g.dtype.is_inexact or (g.dtype.is_complex and not wanted.is_complex):
        required = f"the gradient of '{name}' must have a floating dtype like the argument"
        hint = "take its real part" if g.dtype.is_complex else "convert it with .to(dtype)"
        text = f"{required} ({wanted.name}), got dtype {g.dtype.name}"
        raise _error(op, text, hint, name)
    cast: Tensor = CORE_OPS.astype(g, wanted)
    return cast


def _shape_error(
    op: Any, name: str, came: tuple[int, ...], wanted: tuple[int, ...]
) -> GradientError:
    hint = f"the gradient must have the shape of '{name}'"
    axes: list[int] = []
    extra = len(came) - len(wanted)
    if extra >= 0 and all(w in (c, 1) for w, c in zip(wanted, came[extra:], strict=True)):
        stretched = [i + extra for i, w in enumerate(wanted) if w == 1 and came[i + extra] != 1]
        axes = [*range(extra), *stretched]
        where = f"axis {axes[0]}" if len(axes) == 1 else f"axes {tuple(axes)}"
        hint = (
            f"sum over {where}, where forward broadcast '{name}': "
            f"pullback.sum_to_size(grad, {wanted})"
        )
    elif came == tuple(reversed(wanted)):
        hint = "transpose it"
    text = f"the gradient of '{name}' has the wrong shape: expected shape {wanted}, got {came}"
    error = _error(op, text, hint, name)
    error.came, error.unsummed = came, tuple(axes)
    return error


_BY_NAME = "return a mapping from argument names to gradients"


def _error(op: Any, text: str, hint: str = "", argument: str = "") -> GradientError:
    """Return the error, with the place where the rule is defined."""
    code = getattr(inspect.unwrap(op.rule), "__code__", None)
    where = f" ({code.co_filename}:{code.co_firstlineno})" if code is not None else ""
    stop = "" if hint.endswith("?") else "."
    error = GradientError(f"{op.name}{where}: {text}." + (f"\nhint: {hint}{stop}" if hint else ""))
    error.argument = argument
    return error
