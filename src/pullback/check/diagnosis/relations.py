"""Gradients that are another gradient, or the right one times something."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pullback.check.evidence import Evidence
from pullback.check.report import Cause


def swapped(e: Evidence, i: int, others: Sequence[int]) -> tuple[int, Cause] | None:
    """Two arguments have each other's gradient."""
    for j in others:
        if e.alike(e.got[i], e.expected[j]) and e.alike(e.got[j], e.expected[i]):
            text = f"the gradients of `{e.names[i]}` and `{e.names[j]}` are swapped"
            return j, Cause("swapped", text, "return gradients by name")
    return None


def factor(e: Evidence, i: int) -> Cause | None:
    """The gradient is the right one times a number, -1 among them."""
    got, right = e.got[i], e.expected[i]
    seen = np.isfinite(right) & (np.abs(right) > 0)
    if not seen.any():
        return None
    ratio = complex(np.sum(got[seen] * np.conj(right[seen])) / np.sum(np.abs(right[seen]) ** 2))
    if ratio == 0 or abs(ratio.imag) > 1e-6 * abs(ratio) or not e.alike(got, ratio.real * right):
        return None
    name = f"`{e.names[i]}`"
    if abs(ratio.real + 1) < e.slack:
        return Cause("sign", f"{name} has the wrong sign everywhere")
    return Cause("factor", f"{name} is off by the factor {ratio.real:.3f} everywhere")


RELATIONS = (factor,)
