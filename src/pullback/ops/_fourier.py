"""The three transforms that all of `fft` is made of, and its arguments.

Complex to complex, real to half a spectrum, and half a spectrum to real: each is linear, and its
gradient is its adjoint (the conjugate transpose), the transform in the other direction with the
other normalisation. A half spectrum stands for two halves, so going back and forth the frequencies
inside it, all but 0 and the highest of an even length, weigh 2 and 1/2; `inner` is that weight,
and makes the two real transforms each other's adjoint.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.arrays import complex_of, get_default_dtype, library_of, real_of
from pullback.core.function.handed import TENSORS
from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError, compose
from pullback.ops._axes import normalize_axes, normalize_axis
from pullback.ops._declare import (
    Operation,
    needs_tensor,
    on,
    only_complex,
    operation,
    real,
    sample,
)
from pullback.ops.conversion import astype
from pullback.ops.padding import pad_constant

# The normalisation that a transform's adjoint has.
OPPOSITE = {"backward": "forward", "ortho": "ortho", "forward": "backward"}


# -- the three transforms --------------------------------------------------------------------------
def _complex(xp: Any, x: Any, *, axes: tuple[int, ...], inverse: bool, norm: str) -> Any:
    if not axes:
        return library_of(x).copy(x)
    return (xp.fft.ifftn if inverse else xp.fft.fftn)(x, axes=axes, norm=norm)


complex_to_complex: Operation = operation(
    "fftC2C",
    _complex,
    rules={
        "x": lambda g, axes, inverse, norm, xp: on(xp, complex_to_complex)(
            g, axes=axes, inverse=not inverse, norm=OPPOSITE[norm]
        )
    },
    holomorphic=False,  # the rule is the adjoint itself
    domain=only_complex(-2, 2),
    samples=(
        sample((3,), axes=(0,), inverse=False, norm="forward"),
        sample((2, 3), axes=(1, 0), inverse=True, norm="backward"),
        sample((), axes=(), inverse=False, norm="ortho"),
    ),
    doc="Return the discrete Fourier transform over axes, or its inverse.",
)


def _weighed(half: Any, n: int, axis: int, inner: float) -> Any:
    """Return half a spectrum of length `n` with the frequencies inside times `inner`."""
    if inner == 1:
        return half
    library = library_of(half)
    device = library.native_device(library.device(half))
    k = library.xp.arange(half.shape[axis], device=device)
    inside = library.astype((k > 0) & (2 * k < n), real_of(library.dtype(half)))
    column = (-1, *(1,) * (len(half.shape) - axis - 1))
    return half * library.xp.reshape(1 + (inner - 1) * inside, column)


def _to_half(xp: Any, x: Any, *, axis: int, norm: str, inner: float = 1) -> Any:
    return _weighed(xp.fft.rfft(x, axis=axis, norm=norm), x.shape[axis], axis, inner)


def _from_half(xp: Any, x: Any, *, n: int, axis: int, norm: str, inner: float = 1) -> Any:
    return xp.fft.irfft(_weighed(x, n, axis, inner), n=n, axis=axis, norm=norm)


real_to_complex: Operation = operation(
    "fftR2C",
    _to_half,
    rules={
        "x": lambda g, x_shape, axis, norm, inner, xp: on(xp, complex_to_real)(
            g, n=x_shape[axis], axis=axis, norm=OPPOSITE[norm], inner=inner / 2
        )
    },
    holomorphic=False,
    domain=real(-2, 2),
    samples=(
        sample((4,), axis=0, norm="backward"),
        sample((5, 2), axis=0, norm="forward", inner=2),
        sample((0, 1), axis=1, norm="ortho"),
    ),
    doc="Return the frequencies from 0 up of the Fourier transform of real numbers.",
)
complex_to_real: Operation = operation(
    "fftC2R",
    _from_half,
    rules={
        "x": lambda g, axis, norm, inner, xp: on(xp, real_to_complex)(
            g, axis=axis, norm=OPPOSITE[norm], inner=inner * 2
        )
    },
    holomorphic=False,
    domain=only_complex(-2, 2),
    samples=(
        sample((3,), n=4, axis=0, norm="backward"),
        sample((3, 2), n=5, axis=0, norm="ortho", inner=0.5),
        sample((0, 1), n=1, axis=1, norm="forward"),
    ),
    doc="Return the real numbers whose Fourier transform begins with x.",
)


# -- arguments -------------------------------------------------------------------------------------
def prepared(op: str, x: Any, norm: str, numbers: str) -> Tensor:
    """Return `x` as complex or real floating numbers, after a look at dtype and `norm`."""
    if norm not in OPPOSITE:
        required = "'backward', 'ortho' or 'forward' required as 'norm'"
        raise ArgumentError(compose(op, required, repr(norm)))
    dtype = library_of(x).dtype(x) if not isinstance(x, Tensor) else x.dtype
    wanted = dtype if dtype.is_inexact else get_default_dtype()
    if numbers == "complex" and not wanted.is_complex:
        wanted = complex_of(wanted)
    elif numbers == "real" and wanted.is_complex:
        hint = f"use {op.replace('r', '', 1).replace('ihfft', 'ifft')}, or take the real part"
        raise DTypeError(compose(op, "real numbers required", dtype.name, ("x", x), hint=hint))
    x = x if isinstance(x, Tensor) else TENSORS.asarray(x)
    return x if dtype is wanted else astype(x, wanted)


def whole_number(op: str, name: str, n: Any) -> int:
    """Return a length as an integer, or raise naming the operation."""
    if isinstance(n, bool) or not hasattr(n, "__index__"):
        raise ArgumentTypeError(compose(op, f"an integer required as '{name}'", repr(n)))
    return int(n)


def one_axis(op: str, x: Any, n: Any, axis: int, half: bool = False) -> tuple[int, int]:
    """Return the axis counted from the front and the length of the transform along it.

    `half`: `x` is half a spectrum, of an even length unless `n` says otherwise.
    """
    needs_tensor(op, x)
    if not x.shape:
        raise ShapeError(compose(op, "at least 1 dimension required", "none", ("x", x)))
    axis = normalize_axis(op, axis, len(x.shape))
    size = x.shape[axis]
    length = (2 * (size - 1) if half else size) if n is None else whole_number(op, "n", n)
    return axis, _positive(op, x, axis, length)


def _positive(op: str, x: Any, axis: int, length: int) -> int:
    if length < 1:
        required = f"a transform of at least 1 element along axis {axis} required"
        raise ArgumentError(compose(op, required, str(length), ("x", x), hint="give a length"))
    return length


def several_axes(
    op: str, x: Any, s: Any, axes: Any, half: bool = False
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the axes counted from the front and the length of the transform along each.

    `half`: along the last of the axes `x` is half a spectrum.
    """
    needs_tensor(op, x)
    ndim = len(x.shape)
    s = (s,) if isinstance(s, int) else s
    axes = (axes,) if isinstance(axes, int) else axes
    if not isinstance(s, (tuple, list, type(None))):
        raise ArgumentTypeError(compose(op, "a sequence of lengths required as 's'", repr(s)))
    if axes is None and s is not None:
        if len(s) > ndim:
            required = f"at most {ndim} lengths required as 's'"
            raise ArgumentError(compose(op, required, str(tuple(s)), ("x", x)))
        axes = tuple(range(ndim - len(s), ndim))
    which = normalize_axes(op, axes, ndim)
    lengths = [x.shape[a] for a in which]
    if half and lengths:
        lengths[-1] = 2 * (lengths[-1] - 1)
    if s is not None:
        if len(s) != len(which):
            came = f"{len(s)} lengths for {len(which)} axes"
            raise ArgumentError(compose(op, "one length an axis required as 's'", came, ("x", x)))
        given = [-1 if n is None else whole_number(op, "s", n) for n in s]
        lengths = [old if n == -1 else n for n, old in zip(given, lengths, strict=True)]
    pairs = zip(which, lengths, strict=True)
    return which, tuple(_positive(op, x, axis, n) for axis, n in pairs)


def resized(x: Any, axes: Sequence[int], lengths: Sequence[int]) -> Any:
    """Return `x` with the axes cut, or filled up with zeros, to these lengths."""
    widths, cut = [(0, 0)] * len(x.shape), [slice(None)] * len(x.shape)
    for axis, n in zip(axes, lengths, strict=True):
        missing = n - x.shape[axis]
        if missing < 0:
            cut[axis] = slice(0, n)
        widths[axis] = (0, max(missing, 0))
    if any(part != slice(None) for part in cut):
        x = x[tuple(cut)]
    return pad_constant(x, widths=tuple(widths)) if any(high for _, high in widths) else x
