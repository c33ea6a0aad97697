"""Reading what a user's backward returned: by name, by position, or one tensor.

Owns the table of SEMANTICS 1.5: every gradient is matched to an argument and checked for kind,
shape, dtype, device and library; whatever does not fit is an error that names the operation and
the argument, lists what would be right, and never a silently wrong number.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from numbers import Number
from typing import Any

from pullback.arrays import dtype_of, is_array, library_of
from pullback.core import tree
from pullback.core.node import Meta
from pullback.core.primitive import TENSORS
from pullback.core.tensor import Tensor, box
from pullback.errors import GradientError

_MISSING = object()


def read_gradients(op: Any, record: Any, result: Any, needed: list[bool]) -> list[Any]:
    """Return one gradient tensor or None an input, from what backward returned."""
    arguments = record.arguments
    if isinstance(result, Mapping):
        found = _by_name(op, arguments, result, _needed_arguments(op, arguments, needed))
    elif isinstance(result, (tuple, list)):
        found = _by_position(op, arguments, result)
    else:
        found = _single(op, arguments, result)
    if op.traverse:
        names, found = _unfold(op, arguments, found)
    else:
        names = arguments.names
    return [
        None if g is None or not wanted else _checked(op, name, g, meta)
        for name, g, meta, wanted in zip(names, found, record.inputs, needed, strict=True)
    ]


def _needed_arguments(op: Any, arguments: Any, needed: list[bool]) -> list[bool]:
    if not op.traverse:
        return needed
    pieces = iter(needed)
    return [any([next(pieces) for _ in tree.leaves(v)]) for v in arguments.values]


def _by_name(op: Any, arguments: Any, result: Mapping[str, Any], needed: list[bool]) -> list[Any]:
    names, groups = arguments.names, arguments.groups
    if groups:
        result = _without_groups(op, arguments, result)
    found = []
    used = 0
    for name, wanted in zip(names, needed, strict=True):
        g = result.get(name, _MISSING)
        if g is _MISSING:
            if wanted:
                raise _error(
                    op,
                    f"backward must return a gradient for the argument '{name}', got a mapping "
                    f"with the names {_listed(result)}",
                    hint=f"add '{name}' to the mapping; None there means that it has no gradient",
                )
            g = None
        else:
            used += 1
        found.append(g)
    if used != len(result):
        unknown = next(k for k in result if k not in names)
        raise _unknown_name(op, unknown, [*names, *groups])
    return found


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
                raise _error(
                    op,
                    f"backward must return {len(places)} gradients for '{group}', got {len(values)}",
                )
            flat.update(zip([arguments.names[p] for p in places], values, strict=True))
        else:
            raise _error(
                op,
                f"backward must return a sequence or mapping of gradients for '{group}', got "
                f"{type(value).__name__}",
            )
    return flat


def _unknown_name(op: Any, unknown: Any, names: Sequence[str]) -> GradientError:
    near = difflib.get_close_matches(str(unknown), names, n=1)
    return _error(
        op,
        f"backward returned a gradient for '{unknown}', which is no argument of forward; the "
        f"arguments are: {', '.join(names)}",
        hint=f"did you mean '{near[0]}'?" if near else "use the names of forward's arguments",
    )


def _by_position(op: Any, arguments: Any, result: Sequence[Any]) -> list[Any]:
    count = len(arguments.names)
    found = list(result[:count])
    if len(result) < count or any(extra is not None for extra in result[count:]):
        raise _error(
            op,
            "backward returned an incorrect number of gradients, one an argument of forward "
            f"(expected {count}, got {len(result)}); the arguments are: "
            f"{', '.join(arguments.names)}",
            hint="return a mapping from argument names to gradients",
        )
    for name, g, value in zip(arguments.names, found, arguments.values, strict=True):
        if g is not None and value is None:
            raise _error(
                op,
                f"backward returned a {type(g).__name__} as the gradient of the argument "
                f"'{name}', which is no tensor; it must be None",
            )
    return found


def _single(op: Any, arguments: Any, result: Any) -> list[Any]:
    tensors = [i for i, v in enumerate(arguments.values) if v is not None]
    if not (result is None or _is_gradient(result)):
        raise _error(
            op,
            "backward must return a mapping from argument names to gradients, a tuple or one "
            f"tensor, got {type(result).__name__}",
        )
    if len(tensors) != 1:
        names = ", ".join(arguments.names[i] for i in tensors)
        came = "None" if result is None else "one gradient"
        raise _error(
            op,
            f"backward returned {came}, but forward was called with {len(tensors)} tensor arguments "
            f"({names}; expected {len(arguments.names)}, got 1)",
            hint="return a mapping from argument names to gradients",
        )
    found = [None] * len(arguments.names)
    found[tensors[0]] = result
    return found


def _unfold(op: Any, arguments: Any, found: Sequence[Any]) -> tuple[list[str], list[Any]]:
    """Spread the gradients of containers over their leaves (traverse=True)."""
    names: list[str] = []
    grads: list[Any] = []
    for name, g, value in zip(arguments.names, found, arguments.values, strict=True):
        marks = list(tree.leaves(value))
        pieces = [g] if tree.children(value) is None else list(tree.leaves(g))
        if g is None:
            pieces = [None] * len(marks)
        if len(pieces) != len(marks):
            raise _error(
                op,
                f"backward must return for '{name}' gradients in the structure of that argument, "
                f"with {len(marks)} leaves, got {len(pieces)}",
            )
        names += [name] * len(marks)
        grads += pieces
    return names, grads


def _is_gradient(value: Any) -> bool:
    return isinstance(value, (Tensor, Number)) or is_array(value)


def _checked(op: Any, name: str, g: Any, meta: Meta) -> Tensor:
    """Return `g` as a tensor that fits the argument, or raise."""
    if not isinstance(g, Tensor):
        if isinstance(g, bool) or not _is_gradient(g):
            raise _error(
                op,
                f"the gradient of '{name}' must be a Tensor, an array, a number or None, got "
                f"{type(g).__name__}",
            )
        if is_array(g):
            g = box(library_of(g).tidy(g))
        else:
            g = box(meta.library.asarray(g, dtype=dtype_of(meta.dtype)))
    array = g.data_array()
    if array.shape != meta.shape:
        raise _shape_error(op, name, array.shape, meta.shape)
    if library_of(array) is not meta.library or meta.library.device(array) != meta.device:
        raise _error(
            op,
            f"the gradient of '{name}' must be on {meta.device} ({meta.library.name}), got one on "
            f"{g.device} ({library_of(array).name})",
            hint="compute it from the saved values, or move it with .to(device)",
        )
    return g if array.dtype == meta.dtype else _cast(op, name, g, meta)


def _cast(op: Any, name: str, g: Tensor, meta: Meta) -> Tensor:
    wanted = dtype_of(meta.dtype)
    if not g.dtype.is_inexact or (g.dtype.is_complex and not wanted.is_complex):
        raise _error(
            op,
            f"the gradient of '{name}' must have a floating dtype like the argument "
            f"({wanted.name}), got dtype {g.dtype.name}",
            hint="take its real part" if g.dtype.is_complex else "convert it with .to(dtype)",
        )
    cast: Tensor = TENSORS.astype(g, wanted)
    return cast


def _shape_error(op: Any, name: str, came: tuple[int, ...], wanted: tuple[int, ...]) -> GradientError:
    hint = f"the gradient must have the shape of '{name}'"
    extra = len(came) - len(wanted)
    if extra >= 0 and all(w in (c, 1) for w, c in zip(wanted, came[extra:], strict=True)):
        kept = [i + extra for i, w in enumerate(wanted) if w == 1 and came[i + extra] != 1]
        axes = [*range(extra), *kept]
        where = f"axis {axes[0]}" if len(axes) == 1 else f"axes {tuple(axes)}"
        hint = (
            f"sum over {where}, where forward broadcast '{name}': "
            f"pullback.sum_to_size(grad, {wanted})"
        )
    elif came == tuple(reversed(wanted)):
        hint = "transpose it"
    return _error(
        op,
        f"the gradient of '{name}' has the wrong shape: expected shape {wanted}, got {came}",
        hint=hint,
    )


def _listed(names: Any) -> str:
    return ", ".join(repr(n) for n in names) or "(none)"


def _error(op: Any, text: str, hint: str | None = None) -> GradientError:
    """Return the error, with the place where the rule is defined."""
    code = getattr(op.backward, "__code__", None)
    where = f" ({code.co_filename}:{code.co_firstlineno})" if code is not None else ""
    return GradientError(f"{op.name}{where}: {text}" + (f".\nhint: {hint}." if hint else "."))
