"""Spectra of short pieces of a signal, and the windows that the pieces are seen through."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentError, ShapeError, compose
from pullback.ops.arguments import tensor_of
from pullback.ops.declare import composition
from pullback.ops.functions import complex_numbers, fourier
from pullback.ops.functions.complex_numbers import view_as_real
from pullback.ops.functions.creation import ones, shape_of, tensor, tracked
from pullback.ops.functions.manipulation import broadcast_to, narrow, unfold_along
from pullback.ops.functions.padding import pad
from pullback.ops.primitives.arithmetic import divide, multiply
from pullback.ops.primitives.arranging import pad_constant_p
from pullback.ops.primitives.rounding import absolute
from pullback.ops.primitives.sliding import fold_dim_p
from pullback.ops.samples import only_complex, real, sample


# -- windows ---------------------------------------------------------------------------------------
def _window(
    op: str, length: Any, periodic: bool, weight: Callable[[float], float], options: dict[str, Any]
) -> Tensor:
    """Return the weights at positions from 0 to 1, which a periodic window does not reach."""
    (n,) = shape_of(op, (length,))
    steps = n if periodic else n - 1
    values = [1.0] if n == 1 else [weight(k / steps) for k in range(n)]
    requires_grad = options.pop("requires_grad", False)
    return tracked(tensor(values, **{"dtype": None, **options}), requires_grad)


def hann_window(window_length: int, periodic: bool = True, **options: Any) -> Tensor:
    """Return Hann's window, (1 - cos(2 pi t)) / 2.

    Parameters
    ----------
    window_length : int
    periodic : bool
        For Fourier transforms; else it is symmetric.
    **options
        `dtype`, `device`, `requires_grad`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.hann_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    wave = _cosines(0.5, 0.5)
    return _window("hann_window", window_length, periodic, wave, options)


def hamming_window(
    window_length: int,
    periodic: bool = True,
    alpha: float = 0.54,
    beta: float = 0.46,
    **options: Any,
) -> Tensor:
    """Return Hamming's window, alpha - beta * cos(2 pi t); see `hann_window`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.hamming_window(2)
    tensor([0.0800, 1.0000])
    """
    wave = _cosines(alpha, beta)
    return _window("hamming_window", window_length, periodic, wave, options)


def blackman_window(window_length: int, periodic: bool = True, **options: Any) -> Tensor:
    """Return Blackman's window, 0.42 - 0.5 cos(2 pi t) + 0.08 cos(4 pi t); see `hann_window`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.blackman_window(4).tolist()[2]
    1.0
    """
    wave = _cosines(0.42, 0.5, 0.08)
    return _window("blackman_window", window_length, periodic, wave, options)


def bartlett_window(window_length: int, periodic: bool = True, **options: Any) -> Tensor:
    """Return Bartlett's window, 1 - abs(2 t - 1); see `hann_window`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.bartlett_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    return _window(
        "bartlett_window", window_length, periodic, lambda t: 1 - abs(2 * t - 1), options
    )


def kaiser_window(
    window_length: int, periodic: bool = True, beta: float = 12.0, **options: Any
) -> Tensor:
    """Return Kaiser's window, i0(beta sqrt(1 - (2 t - 1) ** 2)) / i0(beta); see `hann_window`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.kaiser_window(3, periodic=False, beta=0.0)
    tensor([1., 1., 1.])
    """

    def weight(t: float) -> float:
        return _i0(beta * math.sqrt(max(0.0, 1 - (2 * t - 1) ** 2))) / _i0(beta)

    return _window("kaiser_window", window_length, periodic, weight, options)


def _cosines(*amplitudes: float) -> Callable[[float], float]:
    """Return the sum of cosines of 0, 1, 2 periods, with signs that alternate."""

    def wave(t: float) -> float:
        terms = enumerate(amplitudes)
        return sum(a * math.cos(2 * math.pi * k * t + math.pi * k) for k, a in terms)

    return wave


def _i0(x: float) -> float:
    """Return the modified Bessel function of order 0, by its power series."""
    term = total = 1.0
    k = 0
    while term > total * 1e-17:
        k += 1
        term *= (x / 2 / k) ** 2
        total += term
    return total


# -- spectra ---------------------------------------------------------------------------------------
def _seen_through(op: str, x: Tensor, window: Any, n_fft: int, win_length: int | None) -> Any:
    """Return the window, as long as the transform, with zeros on both sides."""
    length = n_fft if win_length is None else win_length
    if not 0 < length <= n_fft:
        required = f"a win_length from 1 to n_fft, {n_fft}, required"
        raise ArgumentError(compose(op, required, str(length)))
    if window is None:
        window = ones(length, dtype=complex_numbers.real(x).dtype, device=x.device)
    window = tensor_of(op, window, "window")
    if window.shape != (length,):
        required = f"a window of {length} elements required"
        raise ShapeError(compose(op, required, str(window.shape), ("window", window)))
    left = (n_fft - length) // 2
    return pad_constant_p.public(window, widths=((left, n_fft - length - left),), value=0)


@composition(
    sample((8,), (4,), n_fft=4, hop_length=2),
    sample((2, 6), (3,), n_fft=4, hop_length=1, win_length=3, center=False, normalized=True),
    sample((6,), (3,), n_fft=3, hop_length=2, onesided=False, pad_mode="constant"),
    domain=real(-2, 2),
    call=lambda f, x, window, **settings: f(x, window=window, **settings),
    result_dtype="complex",
    scalars=False,
    methods="stft",
)
def stft(
    input: Any,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Any = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
) -> Tensor:
    """Return the Fourier transforms of windowed pieces of signals.

    Parameters
    ----------
    input : Tensor, shape (L,) or (B, L)
    n_fft : int
        The length of a piece.
    hop_length : int, optional
        From one piece to the next, by default n_fft // 4.
    win_length : int, optional
        The length of the window, by default `n_fft`; zeros are put on both sides.
    window : Tensor, optional
        Ones by default.
    center : bool
        Whether piece t is around element t * hop_length; the ends are padded.
    pad_mode : str
        How; see `pad`.
    normalized : bool
        Divide by the root of `n_fft`.
    onesided : bool, optional
        Only frequencies from 0 up; the default for real signals.
    return_complex : bool, optional
        False returns pairs of real numbers instead; see `view_as_real`.

    Returns
    -------
    Tensor, shape (..., frequencies, pieces)

    Examples
    --------
    >>> import pullback as pb
    >>> pb.stft(pb.ones(8), 4, window=pb.ones(4)).shape
    (3, 9)
    """
    x = tensor_of("stft", input, "input")
    if len(x.shape) not in (1, 2) or n_fft < 1:
        required = "signals of shape (L,) or (B, L), and a positive n_fft, required"
        raise ShapeError(compose("stft", required, f"n_fft {n_fft}", ("input", x)))
    weights = _seen_through("stft", x, window, n_fft, win_length)
    if center:
        x = pad(x, (n_fft // 2, n_fft // 2), mode=pad_mode)
    if x.shape[-1] < n_fft:
        required = f"a signal of at least {n_fft} elements required"
        raise ShapeError(compose("stft", required, str(x.shape[-1]), ("input", x)))
    pieces = unfold_along(x, -1, n_fft, n_fft // 4 if hop_length is None else hop_length)
    seen = multiply(pieces, weights)
    half = not seen.dtype.is_complex if onesided is None else onesided
    norm = "ortho" if normalized else "backward"
    spectra = (fourier.rfft if half else fourier.fft)(seen, norm=norm).mT
    return view_as_real(spectra) if return_complex is False else spectra


@composition(
    sample((3, 5), (4,), n_fft=4, hop_length=2),
    sample((2, 4, 3), (4,), n_fft=4, hop_length=2, onesided=False, length=4, normalized=True),
    domain={"input": only_complex(-2, 2), "window": real(0.5, 1)},
    call=lambda f, input, window, **settings: f(input, window=window, **settings),
    result_dtype="real",
    scalars=False,
    methods="istft",
)
def istft(
    input: Any,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Any = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Tensor:
    """Return the signals of which `stft` gives nearest to these spectra, in least squares.

    Griffin and Lim (1984). The arguments are those of `stft`; `length` is that of the result.

    Raises
    ------
    ArgumentError
        If the windows leave a gap.

    Examples
    --------
    >>> import pullback as pb
    >>> x, w = pb.tensor([1.0, 2.0, 3.0, 4.0]), pb.hann_window(4)
    >>> pb.istft(pb.stft(x, 4, 1, window=w), 4, 1, window=w)
    tensor([1., 2., 3., 4.])
    """
    x = tensor_of("istft", input, "input")
    if len(x.shape) not in (2, 3):
        required = "spectra of shape (frequencies, pieces), or a stack of them, required"
        raise ShapeError(compose("istft", required, str(x.shape), ("input", x)))
    half = x.shape[-2] != n_fft if onesided is None else onesided
    hop = n_fft // 4 if hop_length is None else hop_length
    weights = _seen_through("istft", x, window, n_fft, win_length)
    norm = "ortho" if normalized else "backward"
    if return_complex and not half:
        pieces = fourier.ifft(x.mT, norm=norm)
    else:
        pieces = fourier.irfft(x[..., : n_fft // 2 + 1, :].mT, n=n_fft, norm=norm)
    count = pieces.shape[-2]
    shape = (*pieces.shape[:-2], size := n_fft + hop * (count - 1))
    total = fold_dim_p.public(multiply(pieces, weights), axis=len(shape) - 1, step=hop, shape=shape)
    squares = broadcast_to(multiply(weights, weights), (count, n_fft))
    envelope = fold_dim_p.public(squares, axis=0, step=hop, shape=(size,))
    begin = n_fft // 2 if center else 0
    end = size - begin if length is None else min(size, begin + length)
    total, envelope = (narrow(t, -1, begin, end - begin) for t in (total, envelope))
    if bool((absolute(envelope.detach()) < 1e-11).any()):
        raise ArgumentError("istft: windows that leave no gap required, got such with one")
    result = divide(total, envelope)
    missing = 0 if length is None else length - result.shape[-1]
    widths = ((0, 0),) * (len(shape) - 1) + ((0, missing),)
    return pad_constant_p.public(result, widths=widths, value=0) if missing > 0 else result
