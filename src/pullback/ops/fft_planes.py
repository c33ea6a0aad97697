"""Fourier transforms over two axes, and of symmetric signals over several, as PyTorch has them.

Each is a transform over several axes (see `fft`), with PyTorch's arguments.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.core.function.handed import TENSORS
from pullback.core.tensor.tensor import Tensor
from pullback.ops import fft
from pullback.ops._declare import composition, needs_tensor, real, sample
from pullback.ops._fourier import OPPOSITE
from pullback.ops.complex_ import conj

__all__ = [
    "fft2",
    "hfft2",
    "hfftn",
    "ifft2",
    "ihfft2",
    "ihfftn",
    "irfft2",
    "rfft2",
]

_TWO = (sample((2, 3)), sample((2, 1, 3), s=(2, 4), dim=(2, 0), norm="ortho"))
Lengths = Sequence[int] | None


@composition(*_TWO)
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
    return fft.fftn(x, s=s, axes=dim, norm=norm or "backward")


@composition(*_TWO)
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
    return fft.ifftn(x, s=s, axes=dim, norm=norm or "backward")


@composition(*_TWO, domain=real(-2, 2))
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
    return fft.rfftn(x, s=s, axes=dim, norm=norm or "backward")


@composition(*_TWO)
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
    return fft.irfftn(x, s=s, axes=dim, norm=norm or "backward")


# -- Hermitian -------------------------------------------------------------------------------------
@composition(sample((2, 3)), sample((2, 3), s=(3, 4), dim=(0, 1), norm="forward"))
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
    return fft.irfftn(conj(x), s=s, axes=dim, norm=OPPOSITE.get(norm or "backward", str(norm)))


@composition(*_TWO, domain=real(-2, 2))
def ihfftn(x: Any, s: Lengths = None, dim: Any = None, norm: str | None = None) -> Tensor:
    """Return the inverse of `hfftn`, of real numbers.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.fft.ihfftn(pb.ones(1, 2)).real
    tensor([[1., 0.]])
    """
    return conj(fft.rfftn(x, s=s, axes=dim, norm=OPPOSITE.get(norm or "backward", str(norm))))


@composition(sample((2, 3)))
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


@composition(sample((2, 3)), domain=real(-2, 2))
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


for _name in __all__:
    setattr(TENSORS.fft, _name, globals()[_name])
