"""SciPy's functions under SciPy's names, for tensors that they cannot take themselves.

``pb.interop.scipy.stats.norm.logpdf(x, loc, scale)`` is differentiable in every argument, twice,
where ``scipy.stats.norm.logpdf`` needs NumPy arrays. SciPy itself is not changed. Arguments are
tensors, arrays and numbers; where none is a tensor, results are arrays and numbers, as SciPy's.
"""

from __future__ import annotations

from pullback.errors import MissingExtraError, compose

try:
    import scipy as _scipy  # noqa: F401  (is it there?)
except ImportError as _error:
    _hint = "pip install 'pullback[scipy]'"
    raise MissingExtraError(
        compose("pullback.interop.scipy", "SciPy required", str(_error), hint=_hint)
    ) from None

from pullback.interop.scipy import integrate, interpolate, linalg, sparse, special, stats
from pullback.public_names import listed as _listed

__all__ = ["integrate", "interpolate", "linalg", "sparse", "special", "stats"]
__dir__ = _listed(__name__)
