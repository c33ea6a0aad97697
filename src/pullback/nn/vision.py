"""Images in other sizes, and read at other positions: interpolate, grid_sample, pixel_shuffle.

Along each axis an element of the result is a sum of neighbours with weights that depend on its
place alone; so resampling is reading slices, and its gradient adds them back.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentError, ShapeError, compose
from pullback.nn.pooling import adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d
from pullback.ops.arguments import needs_rank, tensor_of
from pullback.ops.declare import composition
from pullback.ops.functions import pointwise
from pullback.ops.functions.creation import tensor
from pullback.ops.functions.manipulation import (
    broadcast_to,
    expand_dims,
    permute_dims,
    reshape,
    swapaxes,
)
from pullback.ops.functions.pointwise import add, clamp, where
from pullback.ops.functions.products import matmul
from pullback.ops.primitives.arithmetic import minimum, multiply, remainder, subtract
from pullback.ops.primitives.comparison import greater_equal, less, logical_and
from pullback.ops.primitives.conversion import clone
from pullback.ops.primitives.gathering import gather_p, take_p
from pullback.ops.primitives.rounding import absolute, floor
from pullback.ops.samples import real, sample

_AXES = {"linear": 1, "bilinear": 2, "trilinear": 3, "bicubic": 2}
_MODES = ("nearest", "nearest-exact", "area", *_AXES)


# -- other sizes -----------------------------------------------------------------------------------
@composition(
    sample((1, 1, 3), size=5),
    sample((1, 2, 2, 3), scale_factor=(2.0, 1.5), mode="bilinear"),
    sample((1, 1, 3, 2), size=(2, 3), mode="bicubic", align_corners=True),
    sample((0, 1, 2, 2), size=3, mode="nearest-exact"),
    domain=real(-2, 2),
    scalars=False,
)
def interpolate(
    input: Any,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Return sequences, images or volumes in another size.

    Parameters
    ----------
    input : Tensor, shape ``(N, C, *lengths)``
    size : int or tuple of int, optional
        The new lengths.
    scale_factor : float or tuple of float, optional
        What the lengths are multiplied by, instead of `size`.
    mode : str
        ``"nearest"``, ``"nearest-exact"``, ``"linear"``, ``"bilinear"``, ``"trilinear"``,
        ``"bicubic"`` (Keys, 1981, with a = -0.75) or ``"area"``, the mean of windows.
    align_corners : bool, optional
        Whether the centres of the corners fall together, or, by default, their outer edges.
    recompute_scale_factor : bool, optional
        Whether the factor is taken from the rounded lengths.
    antialias : bool
        False: smoothing before shrinking is not done.

    Raises
    ------
    ArgumentError, ShapeError
        If the mode is unknown or does not fit the rank; unless one of `size` and `scale_factor`
        is given, for each axis.

    Examples
    --------
    >>> import pullback as pb
    >>> x = pb.tensor([[[1.0, 3.0]]])
    >>> pb.nn.functional.interpolate(x, size=4)
    tensor([[[1., 1., 3., 3.]]])
    >>> pb.nn.functional.interpolate(x, size=3, mode="linear", align_corners=True)
    tensor([[[1., 2., 3.]]])
    """
    x = tensor_of("interpolate", input, "input")
    n = len(x.shape) - 2
    if n not in (1, 2, 3):
        came = f"{n + 2} dimensions"
        raise ShapeError(compose("interpolate", "3 to 5 dimensions required", came, ("input", x)))
    if mode not in _MODES or _AXES.get(mode, n) != n or antialias:
        required = f"a mode of {', '.join(_MODES)}, for {n} axes, without antialias, required"
        raise ArgumentError(compose("interpolate", required, repr(mode), ("input", x)))
    lengths, scales = _lengths(x, n, size, scale_factor, recompute_scale_factor)
    if mode == "area":
        pools = (adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d)
        return pools[n - 1](x, lengths)
    for i, (m, scale) in enumerate(zip(lengths, scales, strict=True)):
        x = _resized(x, i + 2, m, scale, mode, bool(align_corners))
    return x


def _lengths(
    x: Tensor, n: int, size: Any, factor: Any, recompute: bool | None
) -> tuple[list[int], list[float]]:
    """Return the new lengths, and how far apart the elements of the result are in the input."""
    if (size is None) == (factor is None):
        raise ArgumentError("interpolate: give one of size and scale_factor")
    wanted = factor if size is None else size
    values = list(wanted) if isinstance(wanted, (tuple, list)) else [wanted] * n
    if len(values) != n:
        required = f"one number or one for each of {n} axes required"
        raise ArgumentError(compose("interpolate", required, str(wanted), ("input", x)))
    old = x.shape[2:]
    new = [math.floor(k * f) for k, f in zip(old, values, strict=True)] if size is None else values
    if min(new) < 1 or min(old) < 1:
        required = "lengths of at least 1 required"
        raise ShapeError(compose("interpolate", required, f"{old} to {new}", ("input", x)))
    if size is None and not recompute:
        return new, [1 / f for f in values]
    return new, [k / m for k, m in zip(old, new, strict=True)]


def _resized(x: Tensor, axis: int, m: int, scale: float, mode: str, aligned: bool) -> Tensor:
    """Return `x` with `m` elements along an axis."""
    n = x.shape[axis]
    if mode in ("nearest", "nearest-exact"):
        half = 0.5 if mode == "nearest-exact" else 0.0
        return _read(x, axis, [min(math.floor((i + half) * scale), n - 1) for i in range(m)])
    if aligned:
        positions = [i * (n - 1) / (m - 1) if m > 1 else 0.0 for i in range(m)]
    else:
        positions = [(i + 0.5) * scale - 0.5 for i in range(m)]
    if mode != "bicubic":
        positions = [max(position, 0.0) for position in positions]
    begins = [math.floor(position) for position in positions]
    parts = [position - begin for position, begin in zip(positions, begins, strict=True)]
    taps = _CUBIC if mode == "bicubic" else _LINEAR
    total: Any = None
    for offset, weight in taps:
        numbers = [min(max(begin + offset, 0), n - 1) for begin in begins]
        weights = tensor([weight(t) for t in parts], dtype=x.dtype, device=x.device)
        weights = reshape(weights, (m, *(1,) * (len(x.shape) - axis - 1)))
        term = multiply(_read(x, axis, numbers), weights)
        total = term if total is None else add(total, term)
    return total  # type: ignore[no-any-return]


def _read(x: Tensor, axis: int, numbers: Sequence[int]) -> Tensor:
    index = tensor(list(numbers), dtype="int64", device=x.device)
    return take_p.public(x, index, axis=axis)


_A = -0.75


def _near(t: Any) -> Any:
    return ((_A + 2) * t - (_A + 3)) * t * t + 1


def _far(t: Any) -> Any:
    return ((_A * t - 5 * _A) * t + 8 * _A) * t - 4 * _A


# Where the neighbours are, and what they weigh at a place t from 0 to 1 between the middle two.
_LINEAR: tuple[Any, ...] = ((0, lambda t: 1 - t), (1, lambda t: t))


_CUBIC: tuple[Any, ...] = (
    (-1, lambda t: _far(t + 1)),
    (0, _near),
    (1, lambda t: _near(1 - t)),
    (2, lambda t: _far(2 - t)),
)


# -- other positions ------------------------------------------------------------------------------
@composition(
    sample((2, 2, 3), size=(2, 1, 2, 3)),
    sample((1, 2, 3), size=(1, 1, 3, 1), align_corners=True),
    sample((1, 3, 4), size=(1, 1, 1, 2, 1)),
    scalars=False,
)
def affine_grid(theta: Any, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """Return the positions, from -1 to 1, that affine maps give the pixels of images.

    Parameters
    ----------
    theta : Tensor, shape (N, 2, 3), or (N, 3, 4) for volumes
    size : sequence of int
        (N, C, H, W) of the images to read, or (N, C, D, H, W).
    align_corners : bool
        As for `grid_sample`.

    Returns
    -------
    Tensor, shape (N, H, W, 2), or (N, D, H, W, 3)

    Examples
    --------
    >>> import pullback as pb
    >>> identity = pb.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])
    >>> pb.nn.functional.affine_grid(identity, (1, 1, 1, 2))
    tensor([[[[-0.5000,  0.0000],
              [ 0.5000,  0.0000]]]])
    """
    theta = tensor_of("affine_grid", theta, "theta")
    d = len(size) - 2
    if d not in (2, 3) or theta.shape != (size[0], d, d + 1):
        required = (
            "theta (N, 2, 3) and size (N, C, H, W), or (N, 3, 4) and (N, C, D, H, W), required"
        )
        came = f"{theta.shape} and {tuple(size)}"
        raise ShapeError(compose("affine_grid", required, came, ("theta", theta)))
    n, _, *lengths = size
    positions = itertools.product(*(_centres(k, bool(align_corners)) for k in lengths))
    points = [[*reversed(position), 1.0] for position in positions]
    base = tensor(points, dtype=theta.dtype, device=theta.device)
    return reshape(matmul(reshape(base, (-1, d + 1)), theta.mT), (n, *lengths, d))


def _centres(n: int, aligned: bool) -> list[float]:
    if aligned:
        return [2 * i / (n - 1) - 1 if n > 1 else 0.0 for i in range(n)]
    return [(2 * i + 1) / n - 1 for i in range(n)]


@composition(
    sample((1, 2, 3, 4), (1, 2, 2, 2)),
    sample((2, 1, 2, 2), (2, 1, 3, 2), padding_mode="border", align_corners=True),
    sample((1, 1, 3, 3), (1, 2, 1, 2), padding_mode="reflection"),
    sample((1, 1, 4, 4), (1, 1, 1, 2), mode="bicubic"),
    sample((1, 1, 2, 2, 3), (1, 1, 1, 2, 3)),
    domain={"input": real(-2, 2), "grid": real(-0.9, 0.9)},
    scalars=False,
)
def grid_sample(
    input: Any,
    grid: Any,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """Return images or volumes read at the positions of a grid, between pixels by weighing them.

    Parameters
    ----------
    input : Tensor, shape (N, C, H, W), or (N, C, D, H, W)
    grid : Tensor, shape (N, h, w, 2), or (N, d, h, w, 3)
        The positions (x, y), or (x, y, z); -1 and 1 are the ends of the image.
    mode : str
        ``"bilinear"``, ``"bicubic"``, for images, or ``"nearest"``, which has no gradient for the
        grid.
    padding_mode : str
        What is outside: ``"zeros"``, ``"border"``, the nearest pixel, or ``"reflection"``.
    align_corners : bool
        Whether the ends are the centres of the outer pixels, or, by default, their outer edges.

    Returns
    -------
    Tensor, shape (N, C, h, w), or (N, C, d, h, w)

    Raises
    ------
    ArgumentError, ShapeError
        If a mode is unknown; if the shapes do not fit.

    Examples
    --------
    >>> import pullback as pb
    >>> image = pb.tensor([[[[1.0, 3.0]]]])
    >>> pb.nn.functional.grid_sample(image, pb.tensor([[[[0.0, 0.0]]]]))
    tensor([[[[2.]]]])
    """
    image, grid = tensor_of("grid_sample", input, "input"), tensor_of("grid_sample", grid, "grid")
    named = (("input", image), ("grid", grid))
    d = len(image.shape) - 2
    fits = d in (2, 3) and len(grid.shape) == d + 2 and grid.shape[-1] == d
    if not fits or grid.shape[0] != image.shape[0]:
        required = "input (N, C, H, W) and grid (N, h, w, 2), or of volumes, required"
        came = f"{image.shape} and {grid.shape}"
        raise ShapeError(compose("grid_sample", required, came, *named))
    modes = ("bilinear", "nearest", "bicubic") if d == 2 else ("bilinear", "nearest")
    if mode not in modes or padding_mode not in _OUTSIDE:
        required = f"mode {', '.join(modes)} and padding_mode {', '.join(_OUTSIDE)} required"
        raise ArgumentError(compose("grid_sample", required, f"{mode} and {padding_mode}"))
    outside, aligned = _OUTSIDE[padding_mode], bool(align_corners)
    taps = [
        _taps(_pixels(grid[..., d - 1 - i], n, aligned), n, mode, outside, aligned)
        for i, n in enumerate(image.shape[2:])
    ]
    total: Any = None
    for chosen in itertools.product(*taps):
        term = _pixel(image, [position for position, _ in chosen])
        weights = [weight for _, weight in chosen if weight is not None]
        for weight in weights:
            term = multiply(term, expand_dims(weight, axis=1))
        total = term if total is None else add(total, term)
    return total  # type: ignore[no-any-return]


def _taps(at: Tensor, n: int, mode: str, outside: Any, aligned: bool) -> list[tuple[Tensor, Any]]:
    """Return the pixels to read along one axis, and what each weighs."""
    if mode == "bicubic":
        begin = floor(at.detach())
        part = subtract(at, begin)
        return [(outside(add(begin, k), n, aligned), weight(part)) for k, weight in _CUBIC]
    at = outside(at, n, aligned)
    if mode == "nearest":
        return [(pointwise.round(at.detach()), None)]
    begin = floor(at.detach())
    pixels = (begin, add(begin, 1))
    return [(pixel, subtract(1, absolute(subtract(at, pixel)))) for pixel in pixels]


def _pixels(position: Tensor, n: int, aligned: bool) -> Tensor:
    """Return positions from -1 to 1 as numbers of pixels."""
    if aligned:
        return multiply(add(position, 1), (n - 1) / 2)
    return subtract(multiply(add(position, 1), n / 2), 0.5)


def _reflected(position: Tensor, n: int, aligned: bool) -> Tensor:
    """Return positions beyond the ends mirrored at them, as often as it takes."""
    low, length = (0.0, n - 1) if aligned else (-0.5, n)
    if length == 0:
        return multiply(position, 0)
    turn = remainder(subtract(position, low), 2 * length)
    inside = add(minimum(turn, subtract(2 * length, turn)), low)
    return clamp(inside, 0, n - 1)


_OUTSIDE: dict[str, Any] = {
    "zeros": lambda position, n, aligned: position,
    "border": lambda position, n, aligned: clamp(position, 0, n - 1),
    "reflection": _reflected,
}


def _pixel(image: Tensor, positions: Sequence[Tensor]) -> Tensor:
    """Return the pixels of whole numbers, one an axis, 0 outside of the image."""
    n, channels, *lengths = image.shape
    inside: Any = None
    number: Any = None
    for position, length in zip(positions, lengths, strict=True):
        within = logical_and(greater_equal(position, 0), less(position, length))
        inside = within if inside is None else logical_and(inside, within)
        number = position if number is None else add(multiply(number, length), position)
    number = where(inside, number, 0).to("int64")
    shape = (n, channels, math.prod(number.shape[1:]))
    index = broadcast_to(reshape(number, (n, 1, -1)), shape)
    flat = reshape(image, (n, channels, math.prod(lengths)))
    pixels = reshape(gather_p.public(flat, index, axis=2), (n, channels, *number.shape[1:]))
    return where(expand_dims(inside, axis=1), pixels, 0)


# -- pixels ----------------------------------------------------------------------------------------
def _image(op: str, x: Any, factor: int) -> Tensor:
    needs_rank(op, x, 3)
    if factor < 1:
        raise ArgumentError(compose(op, "a factor of at least 1 required", str(factor)))
    return tensor_of(op, x)


@composition(
    sample((1, 4, 1, 2), upscale_factor=2), sample((0, 1, 3), upscale_factor=1), scalars=False
)
def pixel_shuffle(x: Any, upscale_factor: int) -> Tensor:
    """Return images larger by a factor, with r * r channels become r by r pixels.

    Parameters
    ----------
    x : Tensor, shape (..., C * r * r, H, W)
    upscale_factor : int
        The factor r.

    Returns
    -------
    Tensor, shape (..., C, H * r, W * r)

    Examples
    --------
    >>> import pullback as pb
    >>> pb.pixel_shuffle(pb.tensor([[[1.0]], [[2.0]], [[3.0]], [[4.0]]]), 2)
    tensor([[[1., 2.],
             [3., 4.]]])
    """
    r, x = upscale_factor, _image("pixel_shuffle", x, upscale_factor)
    *lead, c, h, w = x.shape
    if c % (r * r):
        required = f"channels in groups of {r * r} required"
        raise ShapeError(compose("pixel_shuffle", required, str(c), ("x", x)))
    b = len(lead)
    parts = reshape(x, (*lead, c // (r * r), r, r, h, w))
    order = (*range(b), b, b + 3, b + 1, b + 4, b + 2)
    result = reshape(permute_dims(parts, order), (*lead, c // (r * r), h * r, w * r))
    return _own(result)


def _own(result: Tensor) -> Tensor:
    """Return what was moved as a tensor of its own: a factor of 1 moves nothing."""
    return result if result._base is None else clone(result)


@composition(sample((1, 1, 2, 4), downscale_factor=2), scalars=False)
def pixel_unshuffle(x: Any, downscale_factor: int) -> Tensor:
    """Return images smaller by a factor, with r by r pixels become r * r channels.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.pixel_unshuffle(pb.tensor([[[1.0, 2.0], [3.0, 4.0]]]), 2).shape
    (4, 1, 1)
    """
    r, x = downscale_factor, _image("pixel_unshuffle", x, downscale_factor)
    *lead, c, h, w = x.shape
    if h % r or w % r:
        required = f"lengths that {r} divides required"
        raise ShapeError(compose("pixel_unshuffle", required, f"{h} and {w}", ("x", x)))
    b = len(lead)
    parts = reshape(x, (*lead, c, h // r, r, w // r, r))
    order = (*range(b), b, b + 2, b + 4, b + 1, b + 3)
    result = reshape(permute_dims(parts, order), (*lead, c * r * r, h // r, w // r))
    return _own(result)


@composition(
    sample((1, 4, 2), groups=2),
    reference=(
        lambda np, x, groups: np.concatenate(
            [x[:, i :: x.shape[1] // groups] for i in range(x.shape[1] // groups)], 1
        )
    ),
    scalars=False,
)
def channel_shuffle(x: Any, groups: int) -> Tensor:
    """Return `x` with the channels of axis 1 dealt out: one of each group after the other.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.channel_shuffle(pb.tensor([[[1.0], [2.0], [3.0], [4.0]]]), 2).ravel()
    tensor([1., 3., 2., 4.])
    """
    x = tensor_of("channel_shuffle", x)
    needs_rank("channel_shuffle", x, 2)
    n, c, *rest = x.shape
    if groups < 1 or c % groups:
        required = f"a number of groups that divides the {c} channels required"
        raise ArgumentError(compose("channel_shuffle", required, str(groups), ("x", x)))
    parts = reshape(x, (n, groups, c // groups, *rest))
    return _own(reshape(swapaxes(parts, 1, 2), (n, c, *rest)))
