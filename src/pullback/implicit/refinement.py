"""Solutions to rounding, and whether their Jacobian can be inverted.

Owns the decision whether a solution has a derivative. A Jacobian is singular at a solution if it is
to rounding, as a matrix; if it still changes from one step of Newton's method to the next, as it
does on the way to a multiple root; or if rounding hides it: if the residual follows it over no
distance, short or long. None of these depends on the units of the unknowns or of the equations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentError
from pullback.ops.arguments import holds_somewhere
from pullback.ops.functions.creation import arange, asarray
from pullback.ops.functions.data_types import finfo
from pullback.ops.functions.linear_algebra import inv, solve
from pullback.ops.functions.pointwise import where
from pullback.transforms.jacobian import jacrev

__all__ = ["Residual", "jacobian_of", "newton_step", "refined"]

Residual = Callable[[Any], Any]

_STEPS = 10  # of Newton's method, more than from a tolerance of 0.1 to rounding
_DISTANCES = 12  # each ten times the one before, up to a fifth of x
_NEAR = 0.25  # a relative difference below which a function is linear


def jacobian_of(residual: Residual, x: Tensor) -> Tensor:
    """Return the Jacobian of a residual as a matrix."""
    found: Tensor = jacrev(residual)(x).reshape((x.numel(), x.numel()))
    return found.conj() if found.dtype.is_complex else found  # gradients are conjugated


def newton_step(matrix: Tensor, value: Tensor, x: Tensor) -> Tensor:
    """Return x less the step that would make a linear residual vanish."""
    found: Tensor = x - solve(matrix, value.reshape((-1, 1))).reshape(x.shape)
    return found


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
        self._units = where(largest > 0, largest, 1.0)
        columns = self.matrix / self._units
        try:
            self._inverse = inv(columns)
            # That of Skeel (1979), doi:10.1145/322139.322144, whatever the units of equations.
            self.condition: Tensor = (abs(self._inverse) @ abs(columns)).sum(-1).amax()
        except ArgumentError:  # exactly singular
            self.condition = asarray(float("inf"))

    def is_regular(self, eps: float) -> bool:
        """Return whether the inverse is more than rounding."""
        return _everywhere(self.condition <= eps**-0.75)

    def change(self, other: _Jacobian) -> Tensor:
        """Return by how much another differs, relative to this one."""
        found: Tensor = abs(self._inverse @ ((other.matrix - self.matrix) / self._units)).amax()
        return found

    def step(self, value: Tensor) -> Tensor:
        """Return the step that changes the residual by a value."""
        found: Tensor = (self._inverse @ value.reshape((-1, 1))).reshape((-1,))
        return (found / self._units.reshape((-1,))).reshape(value.shape)


def _follows(residual: Residual, x: Tensor, jacobian: _Jacobian, eps: float) -> bool:
    """Return whether the residual changes as its Jacobian says, over some distance."""
    value, size = residual(x).detach(), abs(x)
    largest = size.amax()
    shares = (arange(x.numel(), dtype=size.dtype) * 0.618 % 1.0 + 1.0).reshape(x.shape)
    distance = where(size > 0, size, where(largest > 0, largest, 1.0)) * shares * eps**0.75
    followed = (distance < 0).all()
    for _ in range(_DISTANCES):
        both = [(s, jacobian.step(residual(x + s).detach() - value)) for s in (distance, -distance)]
        linear = [(abs(found - s) <= _NEAR * distance).all() for s, found in both]
        followed = followed | (linear[0] & linear[1])
        if _everywhere(followed):
            return True
        distance = distance * 10
    return False


def _everywhere(condition: Tensor) -> bool:
    """Return whether a condition holds, of each sample of a batch."""
    return not holds_somewhere((~condition).data_array())
