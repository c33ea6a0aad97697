"""Solutions to rounding, and whether their Jacobian can be inverted.

Owns the decision whether a solution has a derivative. A Jacobian is singular at a solution if it is
to rounding, as a matrix; if it still changes from one step of Newton's method to the next, as it
does on the way to a multiple root; or if rounding hides it: if the residual and its derivative
follow it over no distance, short or long. None of these depends on the units of the equations, nor
of the unknowns unless all of them are 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentError
from pullback.ops.arguments import holds_somewhere
from pullback.ops.functions.creation import arange, asarray
from pullback.ops.functions.data_types import finfo
from pullback.ops.functions.pointwise import where
from pullback.ops.primitives.solving import inv, solve
from pullback.transforms.api.jacobian import jacrev

__all__ = ["Residual", "jacobian_of", "newton_step", "refined"]

Residual = Callable[[Any], Any]

_STEPS = 10  # of Newton's method, more than from a tolerance of 0.1 to rounding
_NEAR = 0.25  # a relative difference below which a function is linear


def jacobian_of(residual: Residual, x: Tensor) -> Tensor:
    """Return the Jacobian of a residual as a matrix."""
    result: Tensor = jacrev(residual)(x).reshape((x.numel(), x.numel()))
    return result.conj() if result.dtype.is_complex else result  # gradients are conjugated


def newton_step(matrix: Tensor, value: Tensor, x: Tensor) -> Tensor:
    """Return x less the step that would make a linear residual vanish."""
    result: Tensor = x - solve(matrix, value.reshape((-1, 1))).reshape(x.shape)
    return result


def refined(residual: Residual, x: Tensor) -> tuple[Tensor, Tensor | None]:
    """Return a solution to rounding and the Jacobian there.

    Where that is singular: the solution as it was, and None.
    """
    moved, here = x, _Jacobian(residual, x)
    if not x.numel():
        return x, here.matrix
    eps = float(finfo(x.dtype).eps)
    for _ in range(_STEPS):
        if not here.is_regular(eps):
            break
        moved = newton_step(here.matrix, residual(moved).detach(), moved)
        here, before = _Jacobian(residual, moved), here
        # A step that changes the Jacobian by a share h leaves an error of h / 2 of it.
        if _everywhere(before.change(here) <= eps**0.375 + 16 * eps * before.condition):
            regular = here.is_regular(eps) and _follows(residual, moved, here, eps)
            return (moved, here.matrix) if regular else (x, None)
    return x, None


class _Jacobian:
    """A Jacobian, and its inverse with columns in units that make their largest element 1."""

    def __init__(self, residual: Residual, x: Tensor) -> None:
        self.matrix = jacobian_of(residual, x).detach()
        if not x.numel():
            return
        largest = abs(self.matrix).amax(0, keepdim=True)
        self.units = where(largest > 0, largest, 1.0)
        columns = self.matrix / self.units
        try:
            self._inverse = inv(columns)
            # That of Skeel, "Scaling for numerical stability in Gaussian elimination" (1979),
            # whatever the units of equations.
            self.condition: Tensor = (abs(self._inverse) @ abs(columns)).sum(-1).amax()
        except ArgumentError:  # exactly singular
            self.condition = asarray(float("inf"))

    def is_regular(self, eps: float) -> bool:
        """Return whether the inverse is more than rounding."""
        return _everywhere(self.condition <= eps**-0.75)

    def change(self, other: _Jacobian) -> Tensor:
        """Return by how much another differs, relative to this one."""
        result: Tensor = abs(self._inverse @ ((other.matrix - self.matrix) / self.units)).amax()
        return result

    def is_near(self, value: Tensor, step: Tensor) -> Tensor:
        """Return whether a change of the residual is nearly that which a step should make."""
        result = (self._inverse @ value.reshape((-1, 1))).reshape((-1,)) / self.units.reshape((-1,))
        near: Tensor = (abs(result.reshape(step.shape) - step) < _NEAR * abs(step)).all()
        return near


def _follows(residual: Residual, x: Tensor, jacobian: _Jacobian, eps: float) -> bool:
    """Return whether the residual changes as its Jacobian says, over some distance.

    Distances are shares of each element, of the largest in the units of the Jacobian, or of 1, as
    what should be 0 is often rounding.
    """
    value, size = residual(x).detach(), abs(x)
    places = arange(x.numel(), dtype=size.dtype).reshape(x.shape)
    units = jacobian.units.reshape(x.shape)
    one, largest = units.amin(), (size * units).amax()
    by_largest = where(largest > 0, largest, one) / units
    followed = (size < 0).all()
    for scale in (where(size > 0, size, by_largest), by_largest, largest.maximum(one) / units):
        for digits in range(math.ceil(-0.75 * math.log10(eps))):
            distance, linear = scale * (eps**0.75 * 10**digits), ~(size < 0).any()
            for k in (1, 2, 3):  # each in another direction
                step = where(places % k == 0, distance, -distance) * (1 + 0.618 * (places + k) % 1)
                for s in (step, -step):
                    change = residual(x + s).detach() - value
                    linear = linear & jacobian.is_near(change, s)
                if not holds_somewhere(linear.data_array()):
                    break
            else:
                change = jacobian_of(residual, x + step).detach() @ step.reshape((-1, 1))
                followed = followed | (linear & jacobian.is_near(change.reshape(x.shape), step))
            if _everywhere(followed):
                return True
    return False


def _everywhere(condition: Tensor) -> bool:
    """Return whether a condition holds, of each sample of a batch."""
    return not holds_somewhere((~condition).data_array())
