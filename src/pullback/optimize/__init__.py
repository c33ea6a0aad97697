"""SciPy's optimisers, with derivatives filled in, on containers of any form.

Users of the transforms. SciPy (the extra `scipy`) is imported by the first call. SciPy computes
with a vector of float64; `vector` makes it of a container and back, `functions` computes values and
derivatives there, each once for each point.
"""

from typing import Never as _Never

from pullback.hints import absent as _absent
from pullback.optimize.equations import least_squares, root
from pullback.optimize.minimize import minimize
from pullback.public_names import listed as _listed

__all__ = ["least_squares", "minimize", "root"]
__dir__ = _listed(__name__)


def __getattr__(name: str) -> _Never:
    raise _absent(__name__, name)
