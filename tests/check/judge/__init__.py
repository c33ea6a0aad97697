"""Operations, right and wrong, for judging a gradient checker.

Each is written as a user of the library would write it, with the settings that user would hand to
a checker, by someone who had not seen the checker. The collection measures; it is no guide:
nothing in the checker is to be tuned against an entry, and an entry is mended only if it is not
what it says (a right one that is wrong, a wrong one whose mistake never shows).

`WRONG` and `RIGHT` list the entries; `entries.Case` says what each has.
"""

from . import (
    actuarial,
    antennas,
    astronomy,
    audio,
    chemistry,
    climate,
    control,
    ecology,
    economics,
    epidemics,
    finance,
    fluids,
    genetics,
    geodesy,
    geometry,
    graphs,
    images,
    interpolation,
    kernels,
    layers,
    losses,
    materials,
    optics,
    physics,
    populations,
    probability,
    puzzles,
    quantum,
    ranking,
    rearranging,
    recommending,
    robotics,
    sequences,
    signal,
    solvers,
    sparse,
    state,
    statistics,
    survival,
    tables,
    text,
    transport,
)
from .entries import Case

FIELDS = (
    solvers,
    interpolation,
    sparse,
    ranking,
    geometry,
    probability,
    signal,
    losses,
    state,
    kernels,
    rearranging,
    sequences,
    control,
    transport,
    populations,
    tables,
    survival,
    layers,
    images,
    physics,
    finance,
    text,
    chemistry,
    graphs,
    audio,
    statistics,
    optics,
    robotics,
    ecology,
    astronomy,
    recommending,
    materials,
    epidemics,
    antennas,
    actuarial,
    puzzles,
    climate,
    genetics,
    fluids,
    geodesy,
    economics,
    quantum,
)
CASES: list[Case] = [case for field in FIELDS for case in field.BOOK.cases]
WRONG = [case for case in CASES if case.wrong]
RIGHT = [case for case in CASES if not case.wrong]

__all__ = ["CASES", "RIGHT", "WRONG", "Case"]
