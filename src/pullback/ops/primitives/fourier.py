"""The three transforms that all Fourier transforms are made of.

Complex to complex, real to half a spectrum, and half a spectrum to real: each is linear, and its
gradient is its adjoint (the conjugate transpose), the transform in the other direction with the
other normalisation. A half spectrum stands for two halves, so going back and forth the frequencies
inside it, all but 0 and the highest of an even length, weigh 2 and 1/2; `inner` is that weight,
and makes the two real transforms each other's adjoint.
"""

from __future__ import annotations

from typing import Any

from pullback.arrays import library_of, real_of
from pullback.ops.declare import Primitive, op_for, operation
from pullback.ops.samples import only_complex, real, sample

# The normalisation that a transform's adjoint has.
OPPOSITE = {"backward": "forward", "ortho": "ortho", "forward": "backward"}


# -- the three transforms --------------------------------------------------------------------------
def _complex(xp: Any, x: Any, *, axes: tuple[int, ...], inverse: bool, norm: str) -> Any:
    if not axes:
        return library_of(x).copy(x)
    return (xp.fft.ifftn if inverse else xp.fft.fftn)(x, axes=axes, norm=norm)


complex_to_complex_p: Primitive = operation(
    "fftC2C",
    _complex,
    rules={
        "x": lambda g, axes, inverse, norm, xp: op_for(xp, complex_to_complex_p)(
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
    reference=(
        lambda np, x, axes, inverse, norm: (np.fft.ifftn if inverse else np.fft.fftn)(
            x, axes=axes, norm=norm
        )
    ),
    doc="Return the discrete Fourier transform over axes, or its inverse.",
    batch="axes",
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


real_to_complex_p: Primitive = operation(
    "fftR2C",
    _to_half,
    rules={
        "x": lambda g, x_shape, axis, norm, inner, xp: op_for(xp, complex_to_real_p)(
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
    result_dtype="complex",
    scalars=False,
    doc="Return the frequencies from 0 up of the Fourier transform of real numbers.",
    batch="axis",
)


complex_to_real_p: Primitive = operation(
    "fftC2R",
    _from_half,
    rules={
        "x": lambda g, axis, norm, inner, xp: op_for(xp, real_to_complex_p)(
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
    result_dtype="real",
    scalars=False,
    doc="Return the real numbers whose Fourier transform begins with x.",
    batch="axis",
)
