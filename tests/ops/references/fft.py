"""Reference values of Fourier transforms, by NumPy and SciPy."""

import numpy as np
import scipy.fft

_OVER = ("fftn", "ifftn", "rfftn", "irfftn")


def _weights(n, axis, inner, ndim):
    """Return 1 for frequency 0 and the highest of an even length, `inner` for those between."""
    weights = np.full(n // 2 + 1, float(inner))
    weights[0] = 1
    if n % 2 == 0:
        weights[-1] = 1
    return weights.reshape([-1 if i == axis else 1 for i in range(ndim)])


def _half(x, axis, norm, inner=1):
    return np.fft.rfft(x, axis=axis, norm=norm) * _weights(x.shape[axis], axis, inner, x.ndim)


def _whole(x, n, axis, norm, inner=1):
    return np.fft.irfft(x * _weights(n, axis, inner, x.ndim), n, axis, norm)


def _over(name):
    def function(x, s=None, axes=None, norm=None):
        axes = range(x.ndim) if axes is None else axes
        return getattr(np.fft, name)(x, s, axes, norm)

    return function


def _shifted(name):
    return lambda x, axes=None: getattr(np.fft, name)(x, axes) if x.ndim else x


REFERENCES = {name: _over(name) for name in _OVER}
REFERENCES |= {name: _shifted(name) for name in ("fftshift", "ifftshift")}
REFERENCES |= {"fftR2C": _half, "fftC2R": _whole}

# PyTorch's, with its argument `dim`.
_TWO = ("fft2", "ifft2", "rfft2", "irfft2", "hfft2", "ihfft2", "hfftn", "ihfftn")


def _planes(name):
    def function(x, s=None, dim=None, norm=None):
        dim = (tuple(range(x.ndim)) if name.endswith("n") else (-2, -1)) if dim is None else dim
        return getattr(scipy.fft, name)(x, s, dim, norm)

    return function


REFERENCES |= {name: _planes(name) for name in _TWO}
