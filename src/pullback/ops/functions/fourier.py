"""Fourier transforms: the extension `fft` of the Array API standard, and PyTorch's.

Every function looks at its arguments, makes the input longer or shorter where asked to (an
operation of its own: padding, slicing), and calls one of three primitives.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.arrays import complex_of
from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError, compose
from pullback.ops.axes import normalize_axes, normalize_axis, to_builtin
from pullback.ops.declare import composition, needs_tensor, register_xp
from pullback.ops.functions.creation import asarray, tensor
from pullback.ops.functions.data_types import astype
from pullback.ops.functions.manipulation import roll
from pullback.ops.primitives.arranging import pad_constant_p
from pullback.ops.primitives.complex_numbers import conj
from pullback.ops.primitives.fourier import (
    OPPOSITE,
    complex_to_complex_p,
    complex_to_real_p,
    real_to_complex_p,
)
from pullback.ops.samples import real, sample


# -- arguments -------------------------------------------------------------------------------------
def prepared(op: str, x: Any, norm: str, numbers: str) -> Tensor:
    """Return `x` as complex or real floating numbers, after a look at dtype and `norm`."""
    if norm not in OPPOSITE:
        required = "'backward', 'ortho' or 'forward' required as 'norm'"
        raise ArgumentError(compose(op, required, repr(norm)))
    x = x if isinstance(x, Tensor) else asarray(x)
    dtype = x.dtype
    wanted = dtype if dtype.is_inexact else x._default_dtype()
    if numbers == "complex" and not wanted.is_complex:
        wanted = complex_of(wanted)
    elif numbers == "real" and wanted.is_complex:
        hint = f"use {op.replace('r', '', 1).replace('ihfft', 'ifft')}, or take the real part"
        raise DTypeError(compose(op, "real numbers required", dtype.name, ("x", x), hint=hint))
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
    s, axes = to_builtin(s), to_builtin(axes)
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
        wanted = [-1 if n is None else whole_number(op, "s", n) for n in s]
        lengths = [old if n == -1 else n for n, old in zip(wanted, lengths, strict=True)]
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
    return pad_constant_p.public(x, widths=tuple(widths)) if any(high for _, high in widths) else x


# -- complex ---------------------------------------------------------------------------------------
_ALONG = (
    sample((4,)),
    sample((3, 2), n=4, axis=0, norm="ortho"),
    sample((2, 3), n=2, norm="forward"),
    sample((0, 3)),
)


_OVER = (
    sample((2, 3)),
    sample((2, 3), s=(3, 2), norm="ortho"),
    sample((3, 1, 2), axes=(2, 0), norm="forward"),
)


_BOTH_WAYS = (sample((4,)), sample((3, 2), axes=0), sample((2, 3), axes=(0, -1)), sample(()))


@composition(*_ALONG, result_dtype="complex", scalars=False, numpy="fft.fft: a=x n axis norm")
def fft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """Return the discrete Fourier transform: out[k] = sum over j of x[j] exp(-2 pi i j k / n).

    Parameters
    ----------
    x : Tensor
        Real numbers count as complex ones; their gradient is real.
    n : int, optional
        The length of the transform: `x` is cut, or filled up with zeros, to it.
    axis : int
        The axis to transform along.
    norm : str
        What the result is divided by: ``"backward"`` nothing, ``"ortho"`` sqrt(n), ``"forward"``
        n. The inverse transform has the rest.

    Raises
    ------
    ArgumentError
        If `n` is less than 1, or `norm` is none of these.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.fft.fft(pb.tensor([1.0, 0.0, 0.0, 0.0]))
    tensor([1.+0.j, 1.+0.j, 1.+0.j, 1.+0.j])
    """
    return _along("fft", x, n, axis, norm, inverse=False)


@composition(*_ALONG, result_dtype="complex", scalars=False, numpy="fft.ifft: a=x n axis norm")
def ifft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """Return the inverse of `fft`: out[j] = sum over k of x[k] exp(2 pi i j k / n) / n.

    Parameters and errors are those of `fft`; ``norm="forward"`` divides by nothing.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.fft.ifft(pb.tensor([4.0, 0.0, 0.0, 0.0]))
    tensor([1.+0.j, 1.+0.j, 1.+0.j, 1.+0.j])
    """
    return _along("ifft", x, n, axis, norm, inverse=True)


def _along(op: str, x: Any, n: int | None, axis: int, norm: str, inverse: bool) -> Tensor:
    axis, length = one_axis(op, x, n, axis)
    x = resized(prepared(op, x, norm, "complex"), (axis,), (length,))
    return complex_to_complex_p.public(x, axes=(axis,), inverse=inverse, norm=norm)


@composition(*_OVER, result_dtype="complex", scalars=False, numpy="fft.fftn: a=x s axes norm")
def fftn(
    x: Any,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str = "backward",
) -> Tensor:
    """Return the discrete Fourier transform over several axes: `fft` along each.

    Parameters
    ----------
    x : Tensor
    s : sequence of int, optional
        The length of the transform along each axis; -1 keeps the axis as long as it is.
    axes : sequence of int, optional
        The axes; by default all, or as many of the last as `s` has lengths.
    norm : str
        As for `fft`.

    Raises
    ------
    ArgumentError
        If `s` and `axes` do not fit, a length is less than 1, or `norm` is unknown.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.fft.fftn(pb.ones(2, 2))
    tensor([[4.+0.j, 0.+0.j],
            [0.+0.j, 0.+0.j]])
    """
    return _over("fftn", x, s, axes, norm, inverse=False)


@composition(*_OVER, result_dtype="complex", scalars=False, numpy="fft.ifftn: a=x s axes norm")
def ifftn(
    x: Any,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str = "backward",
) -> Tensor:
    """Return the inverse of `fftn`: `ifft` along each axis. Parameters and errors as for `fftn`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.fft.ifftn(pb.ones(2, 2))
    tensor([[1.+0.j, 0.+0.j],
            [0.+0.j, 0.+0.j]])
    """
    return _over("ifftn", x, s, axes, norm, inverse=True)


def _over(op: str, x: Any, s: Any, axes: Any, norm: str, inverse: bool) -> Tensor:
    which, lengths = several_axes(op, x, s, axes)
    x = resized(prepared(op, x, norm, "complex"), which, lengths)
    return complex_to_complex_p.public(x, axes=which, inverse=inverse, norm=norm)


# -- real ------------------------------------------------------------------------------------------
@composition(
    *_ALONG,
    domain=real(-2, 2),
    result_dtype="complex",
    scalars=False,
    numpy="fft.rfft: a=x n axis norm",
)
def rfft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """Return the first n // 2 + 1 elements of `fft` of real numbers; the others mirror them.

    Parameters and errors are those of `fft`.

    Raises
    ------
    DTypeError
        If `x` is complex.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.fft.rfft(pb.tensor([1.0, 0.0, 0.0, 0.0]))
    tensor([1.+0.j, 1.+0.j, 1.+0.j])
    """
    axis, length = one_axis("rfft", x, n, axis)
    x = resized(prepared("rfft", x, norm, "real"), (axis,), (length,))
    return real_to_complex_p.public(x, axis=axis, norm=norm)


_BACK = (
    sample((3,)),
    sample((3, 2), n=5, axis=0, norm="ortho"),
    sample((2, 4), n=4, norm="forward"),
    sample((2, 2), n=6),
)


@composition(*_BACK, result_dtype="real", scalars=False, numpy="fft.irfft: a=x n axis norm")
def irfft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """Return the inverse of `rfft`: real numbers, `n` of them.

    The imaginary parts of frequency 0, and of the highest if `n` is even, count as 0.

    Parameters
    ----------
    x : Tensor
        The first n // 2 + 1 frequencies; cut, or filled up with zeros, to so many.
    n : int, optional
        The length of the result; by default 2 (m - 1), m the length of `x`.
    axis, norm
        As for `ifft`.

    Raises
    ------
    ArgumentError
        If the result has less than 1 element, or `norm` is unknown.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.fft.irfft(pb.tensor([1.0, 1.0, 1.0]))
    tensor([1., 0., 0., 0.])
    """
    axis, length = one_axis("irfft", x, n, axis, half=True)
    x = resized(prepared("irfft", x, norm, "complex"), (axis,), (length // 2 + 1,))
    return complex_to_real_p.public(x, n=length, axis=axis, norm=norm)


@composition(
    *_OVER,
    domain=real(-2, 2),
    result_dtype="complex",
    scalars=False,
    numpy="fft.rfftn: a=x s axes norm",
)
def rfftn(
    x: Any,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str = "backward",
) -> Tensor:
    """Return `rfft` along the last of the axes and `fft` along the others.

    Parameters and errors are those of `fftn`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.fft.rfftn(pb.ones(2, 2))
    tensor([[4.+0.j, 0.+0.j],
            [0.+0.j, 0.+0.j]])
    """
    which, lengths = several_axes("rfftn", x, s, axes)
    _needs_axes("rfftn", x, which)
    x = resized(prepared("rfftn", x, norm, "real"), which, lengths)
    half = real_to_complex_p.public(x, axis=which[-1], norm=norm)
    if len(which) == 1:
        return half
    return complex_to_complex_p.public(half, axes=which[:-1], inverse=False, norm=norm)


def _needs_axes(op: str, x: Any, axes: Sequence[int]) -> None:
    if not axes:
        raise ArgumentError(compose(op, "at least one axis required", "none", ("x", x)))


@composition(
    sample((2, 3)),
    sample((2, 3), s=(3, 3), norm="ortho"),
    sample((2, 1, 3), axes=(2, 0), norm="forward"),
    sample((4,), s=(4,), axes=(0,)),
    result_dtype="real",
    scalars=False,
    numpy="fft.irfftn: a=x s axes norm",
)
def irfftn(
    x: Any,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str = "backward",
) -> Tensor:
    """Return the inverse of `rfftn`: `ifft` along all axes but the last, then `irfft`.

    Parameters and errors are those of `fftn`; along the last axis `s` is the length of the
    result, by default 2 (m - 1).

    Examples
    --------
    >>> import pullback as pb
    >>> pb.fft.irfftn(pb.tensor([[4.0, 0.0], [0.0, 0.0]]))
    tensor([[1., 1.],
            [1., 1.]])
    """
    which, lengths = several_axes("irfftn", x, s, axes, half=True)
    _needs_axes("irfftn", x, which)
    x = prepared("irfftn", x, norm, "complex")
    x = resized(x, which, (*lengths[:-1], lengths[-1] // 2 + 1))
    if len(which) > 1:
        x = complex_to_complex_p.public(x, axes=which[:-1], inverse=True, norm=norm)
    return complex_to_real_p.public(x, n=lengths[-1], axis=which[-1], norm=norm)


# -- Hermitian -------------------------------------------------------------------------------------
@composition(*_BACK, result_dtype="real", scalars=False, numpy="fft.hfft: a=x n axis norm")
def hfft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """Return `fft` of a signal that is symmetric up to conjugation, given by its first half.

    The result is real. Parameters and errors are those of `irfft`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.fft.hfft(pb.tensor([1.0, 1.0, 1.0]))
    tensor([4., 0., 0., 0.])
    """
    axis, length = one_axis("hfft", x, n, axis, half=True)
    x = resized(prepared("hfft", x, norm, "complex"), (axis,), (length // 2 + 1,))
    return complex_to_real_p.public(conj(x), n=length, axis=axis, norm=OPPOSITE[norm])


@composition(
    *_ALONG,
    domain=real(-2, 2),
    result_dtype="complex",
    scalars=False,
    numpy="fft.ihfft: a=x n axis norm",
)
def ihfft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """Return the inverse of `hfft`: the first n // 2 + 1 elements of `ifft` of real numbers.

    Parameters and errors are those of `rfft`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.fft.ihfft(pb.tensor([4.0, 0.0, 0.0, 0.0]))
    tensor([1.-0.j, 1.-0.j, 1.-0.j])
    """
    axis, length = one_axis("ihfft", x, n, axis)
    x = resized(prepared("ihfft", x, norm, "real"), (axis,), (length,))
    return conj(real_to_complex_p.public(x, axis=axis, norm=OPPOSITE[norm]))


# -- frequencies -----------------------------------------------------------------------------------
def fftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Tensor:
    """Return the frequencies of `fft`: (0, 1, ..., -2, -1) / (n d), cycles per unit of `d`.

    Parameters
    ----------
    n : int
        The length of the transform.
    d : float
        The distance of samples.
    dtype, device
        Of the result, by default the default dtype on the CPU.

    Raises
    ------
    ArgumentError
        If `n` is less than 1.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.fft.fftfreq(4)
    tensor([ 0.0000,  0.2500, -0.5000, -0.2500])
    """
    n = _points("fftfreq", n)
    return _frequencies((*range((n + 1) // 2), *range(-(n // 2), 0)), n * d, dtype, device)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Tensor:
    """Return the frequencies of `rfft`: (0, 1, ..., n // 2) / (n d), cycles per unit of `d`.

    Parameters and errors are those of `fftfreq`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.fft.rfftfreq(4)
    tensor([0.0000, 0.2500, 0.5000])
    """
    n = _points("rfftfreq", n)
    return _frequencies(tuple(range(n // 2 + 1)), n * d, dtype, device)


def _points(op: str, n: Any) -> int:
    if whole_number(op, "n", n) < 1:
        raise ArgumentError(compose(op, "a transform of at least 1 element required", str(n)))
    return int(n)


def _frequencies(steps: tuple[int, ...], over: float, dtype: Any, device: Any) -> Tensor:
    result: Tensor = tensor([k / over for k in steps], dtype=dtype, device=device)
    return result


@composition(*_BOTH_WAYS, numpy="fft.fftshift: x axes")
def fftshift(x: Any, /, *, axes: int | Sequence[int] | None = None) -> Tensor:
    """Return `x` rolled by half its length, which brings frequency 0 to the middle.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.fft.fftshift(pb.fft.fftfreq(4))
    tensor([-0.5000, -0.2500,  0.0000,  0.2500])
    """
    return _shifted("fftshift", x, axes, 1)


@composition(*_BOTH_WAYS, numpy="fft.ifftshift: x axes")
def ifftshift(x: Any, /, *, axes: int | Sequence[int] | None = None) -> Tensor:
    """Return the inverse of `fftshift`, which differs from it for odd lengths.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.fft.ifftshift(pb.tensor([-1.0, 0.0, 1.0]))
    tensor([ 0.,  1., -1.])
    """
    return _shifted("ifftshift", x, axes, -1)


def _shifted(op: str, x: Any, axes: Any, sign: int) -> Tensor:
    needs_tensor(op, x)
    which = normalize_axes(op, axes, len(x.shape))
    return roll(x, tuple(sign * (x.shape[a] // 2) for a in which), axis=which)


_TWO = (sample((2, 3)), sample((2, 1, 3), s=(2, 4), dim=(2, 0), norm="ortho"))
Lengths = Sequence[int] | None


# -- two axes --------------------------------------------------------------------------------------
@composition(*_TWO, result_dtype="complex", scalars=False, numpy="fft.fft2: a=x s axes=dim norm")
def fft2(
    x: Any, s: Lengths = None, dim: Sequence[int] = (-2, -1), norm: str | None = None
) -> Tensor:
    """Return `fftn` over two axes, by default the last ones.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.fft.fft2(pb.ones(2, 2)).real
    tensor([[4., 0.],
            [0., 0.]])
    """
    return fftn(x, s=s, axes=dim, norm=norm or "backward")


@composition(*_TWO, result_dtype="complex", scalars=False, numpy="fft.ifft2: a=x s axes=dim norm")
def ifft2(
    x: Any, s: Lengths = None, dim: Sequence[int] = (-2, -1), norm: str | None = None
) -> Tensor:
    """Return `ifftn` over two axes, by default the last ones.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.fft.ifft2(pb.ones(2, 2)).real
    tensor([[1., 0.],
            [0., 0.]])
    """
    return ifftn(x, s=s, axes=dim, norm=norm or "backward")


@composition(
    *_TWO,
    domain=real(-2, 2),
    result_dtype="complex",
    scalars=False,
    numpy="fft.rfft2: a=x s axes=dim norm",
)
def rfft2(
    x: Any, s: Lengths = None, dim: Sequence[int] = (-2, -1), norm: str | None = None
) -> Tensor:
    """Return `rfftn` over two axes, by default the last ones.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.fft.rfft2(pb.ones(2, 2)).real
    tensor([[4., 0.],
            [0., 0.]])
    """
    return rfftn(x, s=s, axes=dim, norm=norm or "backward")


@composition(*_TWO, result_dtype="real", scalars=False, numpy="fft.irfft2: a=x s axes=dim norm")
def irfft2(
    x: Any, s: Lengths = None, dim: Sequence[int] = (-2, -1), norm: str | None = None
) -> Tensor:
    """Return `irfftn` over two axes, by default the last ones.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.fft.irfft2(pb.ones(2, 2))
    tensor([[1., 0.],
            [0., 0.]])
    """
    return irfftn(x, s=s, axes=dim, norm=norm or "backward")


# -- Hermitian -------------------------------------------------------------------------------------
@composition(
    sample((2, 3)),
    sample((2, 3), s=(3, 4), dim=(0, 1), norm="forward"),
    result_dtype="real",
    scalars=False,
)
def hfftn(x: Any, s: Lengths = None, dim: Any = None, norm: str | None = None) -> Tensor:
    """Return the real transform of a signal that is symmetric up to conjugation, given by a half.

    The half is along the last of the axes.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.fft.hfftn(pb.ones(1, 2))
    tensor([[2., 0.]])
    """
    needs_tensor("hfftn", x)
    return irfftn(conj(x), s=s, axes=dim, norm=OPPOSITE.get(norm or "backward", str(norm)))


@composition(*_TWO, domain=real(-2, 2), result_dtype="complex", scalars=False)
def ihfftn(x: Any, s: Lengths = None, dim: Any = None, norm: str | None = None) -> Tensor:
    """Return the inverse of `hfftn`, of real numbers.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.fft.ihfftn(pb.ones(1, 2)).real
    tensor([[1., 0.]])
    """
    return conj(rfftn(x, s=s, axes=dim, norm=OPPOSITE.get(norm or "backward", str(norm))))


@composition(sample((2, 3)), result_dtype="real", scalars=False)
def hfft2(
    x: Any, s: Lengths = None, dim: Sequence[int] = (-2, -1), norm: str | None = None
) -> Tensor:
    """Return `hfftn` over two axes, by default the last ones.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.fft.hfft2(pb.ones(1, 2))
    tensor([[2., 0.]])
    """
    return hfftn(x, s, dim, norm)


@composition(sample((2, 3)), domain=real(-2, 2), result_dtype="complex", scalars=False)
def ihfft2(
    x: Any, s: Lengths = None, dim: Sequence[int] = (-2, -1), norm: str | None = None
) -> Tensor:
    """Return `ihfftn` over two axes, by default the last ones.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.fft.ihfft2(pb.ones(1, 2)).real
    tensor([[1., 0.]])
    """
    return ihfftn(x, s, dim, norm)


register_xp(
    fft, fft2, fftn, fftshift, hfft, hfft2, hfftn, ifft, ifft2, ifftn, ifftshift, space="fft"
)
register_xp(ihfft, ihfft2, ihfftn, irfft, irfft2, irfftn, rfft, rfft2, rfftn, space="fft")
