"""Convolution over some axes, with products over others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import pullback as pb
from pullback.compat.autograd.boxes import holds_boxes

__all__ = ["convolve"]


def _product(a: Any, b: Any, **padding: Any) -> Any:
    return a @ b.mT


_CONVOLUTIONS = (_product, pb.conv1d, pb.conv2d, pb.conv3d)
Axes = Sequence[Sequence[int]]


def convolve(
    A: Any, B: Any, axes: Axes | None = None, dot_axes: Axes = ((), ()), mode: str = "full"
) -> Any:
    """Return the convolution of `A` and `B` over `axes`, up to three, summed over `dot_axes`.

    Axes of the result: the remaining ones of `A`, those of `B`, and the convolved ones.

    Examples
    --------
    >>> convolve(np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.0]))
    array([1., 3., 5., 3.])
    """
    if mode not in ("full", "same", "valid"):
        raise ValueError(f"convolve: mode 'full', 'same' or 'valid' required, got {mode!r}")
    axes = [[*range(np.ndim(A))], [*range(np.ndim(B))]] if axes is None else axes
    a, rest_a = _channels_last_axes(A, axes[0], dot_axes[0])
    b, rest_b = _channels_last_axes(B, axes[1], dot_axes[1])
    sizes = list(zip(a.shape[2:], b.shape[2:], strict=True))
    swapped = mode == "valid" and any(n < m for n, m in sizes)
    if swapped:
        a, b = b, a
    padding = [m - 1 for _, m in sizes] if mode != "valid" else 0
    flipped = np.flip(b, tuple(range(2, b.ndim)))
    conv: Any = _CONVOLUTIONS[len(sizes)]
    out = conv(pb.asarray(a), pb.asarray(flipped), padding=padding)
    if swapped:
        out = np.swapaxes(out, 0, 1)
    if mode == "same":
        starts = [(m - 1) // 2 for _, m in sizes]
        crop = [slice(s, s + n) for s, (n, _) in zip(starts, sizes, strict=True)]
        out = out[(slice(None), slice(None), *crop)]
    out = out.reshape((*rest_a, *rest_b, *out.shape[2:]))
    return out if holds_boxes([A, B]) else out.numpy()


def _channels_last_axes(x: Any, conv: Sequence[int], dot: Sequence[int]) -> tuple[Any, Any]:
    """Return `x` of shape (remaining axes, dot axes, *convolved axes), and the remaining shape."""
    rest = [i for i in range(np.ndim(x)) if i not in {*conv, *dot}]
    shape = np.shape(x)
    x = np.transpose(x, [*rest, *dot, *conv])
    sizes = [int(np.prod([shape[i] for i in axes])) for axes in (rest, dot)]
    return x.reshape((*sizes, *(shape[i] for i in conv))), [shape[i] for i in rest]
