"""Shapes that fit together: of matrix products, rows, images, and indexed arrays.

Owns the table of plans, and the specifications of arguments by their roles and a plan.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from typing import NamedTuple

from pullback.check.inputs.domains import DOMAINS as _STRUCTURED
from pullback.check.inputs.roles import Role
from pullback.check.inputs.shape_text import ArgumentSpec, Interval

# The specifications of each argument: none for a default, several for a list of arrays.
Candidate = dict[str, list[ArgumentSpec]]


class Plan(NamedTuple):
    """Shapes of the first array, the second, all further ones, and an index."""

    first: str
    second: str
    further: str
    index_shape: str = "n,"


_SAME = Plan("n, d", "n, d", "n, d", "n, d")
_LINEAR = Plan("n, d", "m, d", "m,")
_ROWS = Plan("n, d", "d,", "d,")
_VECTORS = Plan("n,", "n,", "n,")
_SQUARES = Plan("d, d", "d, d", "d, d")
_IMAGES = Plan("2, d, 4, 4", "m, d, 2, 2", "m,")
# Entries, where they stand, and dense arrays: no two entries stand at one place.
_SPARSE = (
    Plan("n,", "n + 2, m", "n + 2, m", "n,"),
    Plan("n,", "n + 2,", "n + 2,", "n,"),
    Plan("n, m", "n,", "n,", "n,"),
)
_PLANS = (
    _SAME,
    Plan("n, d", "d, m", "m,"),
    _ROWS,
    _VECTORS,
    _SQUARES,
    Plan("n, d", "n, d", "n, d"),
    Plan("d, d", "d,", "d,"),
    Plan("d,", "d, d", "d, d"),
    Plan("d, d", "d, m", "d, m"),
    Plan("n, d", "", ""),
    Plan("n,", "m,", "m,", "m,"),
    Plan("n, d", "n,", "n,"),
    Plan("", "", "", ""),
    _LINEAR,
    Plan("m, n, d", "m, n, d", "m, n, d"),
    Plan("2, n, d", "2, d, m", "2, n, m"),
    Plan("n, d", "n, d", "m, d, d"),
    _IMAGES,
    Plan("2, d, 5", "n, d, 2", "n,"),
    Plan("2, d, 5", "d, m, 2", "m,"),
    Plan("2, d, 4, 4", "d, m, 2, 2", "m,"),
    Plan("2, d, 3, 3, 3", "m, d, 2, 2, 2", "m,"),
    Plan("d, 4, 4", "m, d, 2, 2", "m,"),
    Plan("4, 4", "2, 2", "2, 2"),
    Plan("2, d, 4, 4", "d,", "d,"),
    Plan("2, d, 4, 4", "2, d, 4, 4", "2, d, 4, 4"),
    Plan("m, 2, d, d", "m, 2, d, d", "m, 2, d, d"),
    Plan("n, d", "n, d", ""),
    Plan("n,", "n,", ""),
    Plan("d, d", "", ""),
    Plan("d, d", "d,", "d, m"),
    Plan("d,", "d,", "d,"),
    Plan("n, d", "1, d", "1, d"),
    Plan("n, d", "n, 1", "n, 1"),
    Plan("n, d", "d, d", "d,"),
    Plan("n,", "d,", "d,"),
    Plan("d,", "n, d", "n, d"),
    Plan("n, m", "n, m", "n, m"),
    Plan("m,", "m,", "m,"),
    Plan("n, 4", "n, d", "n, d"),
    Plan("d,", "m, d", "m,"),
    Plan("d - 1,", "d,", "d - 1,"),
    *_SPARSE,
)
DOMAINS = ("", "positive", "unit", "above", "complex", "spd")
_SLOT = {"weight": 1, "bias": 2}  # the position of a role among the arrays
_FLOATS = ("array", "weight", "bias", "matrix")


# Operations that write at an index: of two writes to one element only one counts.
_WRITING = re.compile(r".*(scatter|put|set|assign|fill|copy|replace).*")
_ADDING = re.compile(r".*(add|sum|mean|reduce|accumulate|max|min|prod|segment).*")


def writes(name: str) -> bool:
    """Return whether an operation of that name overwrites the elements at an index."""
    return bool(_WRITING.fullmatch(name)) and not _ADDING.fullmatch(name)


def of_symmetric(name: str) -> bool:
    """Return whether an operation of that name takes symmetric matrices."""
    return bool(re.search(r"(?<!w)eigh|eigvalsh|chol|symm|spd|psd", name))


def domains(name: str) -> list[str]:
    """Return the domains of values, the most likely first."""
    return sorted(DOMAINS, key=lambda domain: of_symmetric(name) and domain != "spd")


def plans(roles: Sequence[Role], name: str = "") -> list[Plan]:
    """Return the plans for an operation, those that the names suggest first."""
    kinds = [r.kind for r in roles]
    preferred = []
    if "pointers" in kinds:
        preferred = [*_SPARSE]
    elif "index" in kinds and writes(name):
        preferred = [_SQUARES._replace(index_shape="d, d"), _VECTORS]
        preferred = preferred[::-1] if "put" in name else preferred
    elif "weight" in kinds and sum(kind in _FLOATS for kind in kinds) > 1:
        preferred = [_LINEAR, _PLANS[1], _IMAGES]
    elif "bias" in kinds:
        preferred = [_ROWS]
    elif "matrix" in kinds or of_symmetric(name):
        preferred = [_SQUARES, *(p for p in _PLANS if p.second == "d, d" or p.first == "d, d")]
    return list(dict.fromkeys([*preferred, *_PLANS]))


def _described(name: str, role: Role, plan: Plan, slot: int, domain: str) -> ArgumentSpec | None:
    """Return the specification of an argument by its role and a plan."""
    if role.kind == "default":
        return None
    if role.kind == "value":
        return ArgumentSpec(name, value=role.value)
    if role.kind == "pointers":
        last = Interval("0", _sizes(plan.first)[0] if _sizes(plan.first) else "1")
        return ArgumentSpec(name, ("d",), "int64", "pointers", last)
    if role.kind == "index" and plan in _SPARSE:
        inside = Interval("0", "n + 2", without_high=True)
        return ArgumentSpec(name, ("n",), "int64", "distinct", inside)
    if role.kind in ("index", "labels"):
        text = plan.index_shape if role.kind == "index" else plan.first.split(",")[0] + ","
        top = plan.first.split(",")[-1].strip() or plan.first.split(",")[0]
        interval = Interval("0", top, without_high=True) if role.kind == "labels" and top else None
        return ArgumentSpec(name, _sizes(text), "int64", interval=interval)
    if role.kind == "mask":
        return ArgumentSpec(name, _sizes(plan.first), "bool")
    shape = () if role.kind == "scalar" else _sizes(plan[min(slot, 2)])
    chosen = "unit" if domain == "unit" else str(role.value) or domain
    if chosen == "complex":
        return ArgumentSpec(name, shape, "complex128")
    if chosen == "above":
        return ArgumentSpec(name, shape, interval=Interval("1.2", "3"))
    if chosen in _STRUCTURED and not shape:
        chosen = ""
    if chosen == "spd" and (len(shape) < 2 or shape[-1] != shape[-2]):
        chosen = ""
    return ArgumentSpec(name, shape, domain=chosen)


def _sizes(text: str) -> tuple[str, ...]:
    return tuple(size.strip() for size in text.split(",") if size.strip())


def candidate_of(
    names: Sequence[str], roles: Sequence[Role], plan: Plan, domain: str = "", op: str = ""
) -> Candidate:
    """Return the specifications of all arguments by their roles and a plan."""
    order = [i for i, role in enumerate(roles) if role.kind in _FLOATS]
    order.sort(key=lambda i: _SLOT.get(roles[i].kind, 0))
    if len(order) == 2 and roles[order[1]].kind == "bias" and plan is not _ROWS:
        order.insert(1, -1)  # a bias has the shape of the further ones
    found: Candidate = {}
    for i, (name, role) in enumerate(zip(names, roles, strict=True)):
        if role.kind == "arrays":
            item = _described(name, Role("array"), plan, 0, domain)
            assert item is not None
            found[name] = [item, item]
        else:
            slot = order.index(i) if i in order else 0
            one = _described(name, role, plan, slot, domain)
            if one and one.shape and role.kind == "index" and writes(op):
                one = dataclasses.replace(one, domain="latin")
            found[name] = [] if one is None else [one]
    return found


def as_text(found: Candidate) -> str:
    """Return a candidate as a description."""
    return ", ".join(str(d) for items in found.values() for d in items)
