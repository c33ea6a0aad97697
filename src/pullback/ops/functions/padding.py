"""Padding: a border of numbers, mirror images, or copies around a tensor, or a part cut off.

The transpose of padding by zeros is cutting off, which is padding by negative widths: one
operation is its own gradient. Borders made of the tensor's own elements are joined from views.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentError, ArgumentTypeError, ShapeError, compose
from pullback.ops.declare import composition, needs_tensor
from pullback.ops.functions.joining import concat
from pullback.ops.functions.manipulation import expand, flip
from pullback.ops.primitives.arranging import Widths, pad_constant_p
from pullback.ops.samples import sample


def _take(x: Any, axis: int, start: int, stop: int) -> Tensor:
    part: Tensor = x[(*(slice(None),) * axis, slice(start, stop))]
    return part


def _mirrored(x: Any, axis: int, low: int, high: int) -> tuple[Tensor, Tensor]:
    n = x.shape[axis]
    before, after = _take(x, axis, 1, low + 1), _take(x, axis, n - 1 - high, n - 1)
    return flip(before, axis=axis), flip(after, axis=axis)


def _repeated(x: Any, axis: int, low: int, high: int) -> tuple[Tensor, Tensor]:
    n = x.shape[axis]
    lead, rest = x.shape[:axis], x.shape[axis + 1 :]
    first, last = _take(x, axis, 0, 1), _take(x, axis, n - 1, n)
    return expand(first, (*lead, low, *rest)), expand(last, (*lead, high, *rest))


def _wrapped(x: Any, axis: int, low: int, high: int) -> tuple[Tensor, Tensor]:
    n = x.shape[axis]
    return _take(x, axis, n - low, n), _take(x, axis, 0, high)


# The mode: how its borders are made, and the longest border of an axis of length n.
_BORDERS: dict[str, tuple[Callable[..., tuple[Tensor, Tensor]], Callable[[int], float]]] = {
    "reflect": (_mirrored, lambda n: n - 1),
    "replicate": (_repeated, lambda n: float("inf") if n else 0),
    "circular": (_wrapped, lambda n: n),
}


_ALIASES = {"edge": "replicate", "wrap": "circular"}


def _widths(x: Any, pad: Sequence[int]) -> Widths:
    """Return one pair an axis of PyTorch's list, which begins with the last axis."""
    try:
        flat = [int(n.__index__()) for n in pad]
    except (AttributeError, TypeError):
        raise ArgumentTypeError(
            compose("pad", "a sequence of integers required as 'pad'", repr(pad))
        ) from None
    ndim = len(x.shape)
    if len(flat) % 2 or len(flat) > 2 * ndim:
        required = f"pairs (before, after) of at most {ndim} axes required, the last axis first"
        raise ArgumentError(compose("pad", required, repr(tuple(flat)), ("x", x)))
    pairs = list(zip(flat[::2], flat[1::2], strict=True))
    widths = ((0, 0),) * (ndim - len(pairs)) + tuple(reversed(pairs))
    for axis, (n, (low, high)) in enumerate(zip(x.shape, widths, strict=True)):
        if n + min(low, 0) + min(high, 0) < 0:
            required = f"at most the {n} elements of axis {axis} can be cut off"
            raise ShapeError(compose("pad", required, str((low, high)), ("x", x)))
    return widths


@composition(
    sample((2, 3), pad=(1, 2), value=0.5),
    sample((3, 4), pad=(2, 1, -1, 1), mode="reflect"),
    sample((2, 3), pad=(0, 2, 3, 0), mode="replicate"),
    sample((3, 2), pad=(2, 1), mode="circular"),
    sample((0, 2), pad=(1, 1), mode="edge"),
    sample((), pad=()),
)
def pad(x: Any, pad: Sequence[int], mode: str = "constant", value: Any = None) -> Tensor:
    """Return `x` with a border; an element that is seen several times gets all its gradients.

    Parameters
    ----------
    x : Tensor
    pad : sequence of int
        How many elements to add before and after the last axis, then the last but one, and so on.
        Negative numbers cut off, before anything is added; in mode ``"replicate"`` afterwards.
    mode : str
        ``"constant"``: one value. ``"reflect"``: the elements mirrored at the first and last,
        which are not repeated. ``"replicate"`` or ``"edge"``: the first and last element.
        ``"circular"`` or ``"wrap"``: the elements from the other end.
    value : number, optional
        What ``"constant"`` adds, 0 by default.

    Raises
    ------
    ArgumentError
        If the mode is unknown, or `pad` has no pair an axis.
    ShapeError
        If an axis is too short for what is cut off, mirrored or wrapped.

    Examples
    --------
    >>> import pullback as pb
    >>> x = pb.tensor([1.0, 2.0, 3.0])
    >>> pb.nn.functional.pad(x, (2, 1))
    tensor([0., 0., 1., 2., 3., 0.])
    >>> pb.nn.functional.pad(x, (2, 1), mode="reflect")
    tensor([3., 2., 1., 2., 3., 2.])
    """
    needs_tensor("pad", x)
    widths = _widths(x, pad)
    if mode == "constant":
        return pad_constant_p.public(x, widths=widths, value=0 if value is None else value)
    mode = _ALIASES.get(mode, mode)
    if mode not in _BORDERS:
        required = f"one of constant, {', '.join((*_BORDERS, *_ALIASES))} required as 'mode'"
        raise ArgumentError(compose("pad", required, repr(mode)))
    if value is not None:
        raise ArgumentError(compose("pad", f"no value required in mode {mode}", repr(value)))
    cut = tuple((min(low, 0), min(high, 0)) for low, high in widths)
    result: Tensor = x if mode == "replicate" else pad_constant_p.public(x, widths=cut, value=0)
    for axis, (low, high) in enumerate(widths):
        if low > 0 or high > 0:
            result = _bordered(result, axis, max(low, 0), max(high, 0), mode)
    return pad_constant_p.public(result, widths=cut, value=0) if mode == "replicate" else result


def _bordered(x: Any, axis: int, low: int, high: int, mode: str) -> Tensor:
    borders, longest = _BORDERS[mode]
    most = longest(x.shape[axis])
    if max(low, high) > most:
        required = f"at most {most} elements can be added to axis {axis} in mode {mode}"
        raise ShapeError(compose("pad", required, str((low, high)), ("x", x)))
    before, after = borders(x, axis, low, high)
    joined: Tensor = concat([before, x, after], axis=axis)
    return joined
