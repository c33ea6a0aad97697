"""Results that an equation defines: fixed points, roots, minima, solutions of linear systems.

Users of the public API. The derivative is that of the solution, not of the iterations that found
it: how a solution was found is not recorded.
"""

from typing import Never as _Never

from pullback.hints import absent as _absent
from pullback.implicit.interpolation import interp
from pullback.implicit.ode import odeint
from pullback.implicit.solving import argmin, fixed_point, linear_solve, root
from pullback.public_names import listed as _listed

__all__ = ["argmin", "fixed_point", "interp", "linear_solve", "odeint", "root"]
__dir__ = _listed(__name__)


def __getattr__(name: str) -> _Never:
    raise _absent(__name__, name)
