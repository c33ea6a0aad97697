"""The gaps between eigenvalues or singular values, by which their vectors' rules divide."""

from __future__ import annotations

import math
from typing import Any

from pullback.arrays import library_of
from pullback.errors import warn_user
from pullback.ops.arguments import all_values, holds_somewhere
from pullback.ops.matrices import eye


def over_gaps(op: str, vectors: str, turning: Any, w: Any, xp: Any) -> Any:
    """Return turning[i, j] / (w[j] - w[i]) beside the diagonal: NaN where two of w are equal.

    What is equal but for rounding is divided too: nothing may depend on the vectors of the two.
    """
    row, column = xp.expand_dims(w, axis=-2), xp.expand_dims(w, axis=-1)
    one, gaps = eye(w, xp, w.shape[-1]), row - column
    values = all_values(w)
    eps = float(library_of(values).xp.finfo(values.dtype).eps)
    rounding = 4 * eps * (xp.abs(row) + xp.abs(column))
    beside = one == 0
    if holds_somewhere(beside & (xp.abs(gaps) <= rounding)):
        kind = "singular values" if op == "svd" else "eigenvalues"
        warn_user(
            f"{op}: equal {kind}, exactly or to rounding: {vectors} are not unique there and have "
            "no derivative; the gradient of what depends on them is NaN, or rounding, even where "
            f"the choice of them cancels.\nhint: write such a function without {vectors}, by "
            "matmul, solve or inv, or move the matrix off the equal values",
            RuntimeWarning,
        )
    equal = gaps == 0
    return turning / xp.where(equal, 1, gaps) * xp.where(equal & beside, math.nan, 1 - one)
