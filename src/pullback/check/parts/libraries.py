"""Other array libraries and devices than the call's: the same gradients are required there.

A library is tried where it is installed, a large one only where the program uses it anyway. What a
library alone does wrong in forward is no matter of a gradient checker.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import warnings
from collections.abc import Iterator

import numpy as np

from pullback.arrays import CUPY, NUMPY, cuda_is_available
from pullback.check.comparison import unequal
from pullback.check.exceptions import BackwardError, InapplicableError, first_line
from pullback.check.parts.recheck import nearby
from pullback.check.report import Cause
from pullback.check.session import Session, filled
from pullback.check.subject import Subject
from pullback.check.values import Array, Arrays, Place, place_of

_INSTALLED = ("array_api_strict",)
_IN_USE = ("jax.numpy", "dask.array")
# Libraries sum in another order.
_LOOSE = 1e-6


def check_libraries(session: Session) -> None:
    """Check the gradients on every other array library and device there is."""
    if session.subject.place.library is not NUMPY:
        raise InapplicableError("the arguments are no NumPy arrays")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of a library that is trying something out
        places = list(_places())
        tried = [_on(session, place) for place in places]
    if not places:
        raise InapplicableError("no other array library is installed")
    if not any(tried):
        raise InapplicableError("forward takes NumPy arrays only")


def _places() -> Iterator[Place]:
    """Yield where else arrays can live; large libraries only where they are in use anyway."""
    modules = [importlib.import_module(n) for n in _INSTALLED if importlib.util.find_spec(n)]
    modules += [sys.modules[name] for name in _IN_USE if name in sys.modules]
    for module in modules:
        try:
            yield place_of(module.asarray(np.zeros(1)))
        except Exception:  # not one that tensors can be made of
            continue
    if cuda_is_available():
        yield Place(CUPY, "cuda")


def _on(session: Session, place: Place) -> bool:
    """Check one library; say whether forward takes its arrays."""
    subject = session.subject.at(session.arrays, place)
    name = place.library.name
    try:
        run = subject.run()
        outputs = run.values()
    except Exception:  # no such dtype, or a function written for NumPy alone
        return False
    if any(place_of(out) != place for out in run.outputs):  # it computed in NumPy
        return False
    likes = [(out.shape, out.dtype) for out in session.outputs]
    if [(out.shape, out.dtype) for out in outputs] != likes or any(
        unequal(out, base).any() for out, base in zip(outputs, session.outputs, strict=True)
    ):
        return False
    leaves = session.leaves()
    beside = [np.array(nearby(session, leaves, 1e-3)[i]) for i in session.subject.tracked]
    try:
        wrong = _wrong_on(session, subject, session.arrays)
        if wrong:  # not if only a tie is broken in another way
            again = _wrong_on(session, subject, beside)
            wrong = {i: more for i, more in wrong.items() if i in again}
    except BackwardError as error:
        session.note(
            f"forward also takes arrays of {name}, but backward raises for them: "
            f"{first_line(error)}"
        )
        return True
    for i, more in wrong.items():
        argument = session.subject.names[i]
        text = f"the gradient of `{argument}` is wrong on arrays of {name} alone"
        session.fail(Cause("dtype", text), argument, situation=f"on {name}", **more)
    return True


def _wrong_on(session: Session, subject: Subject, arrays: Arrays) -> dict[int, dict[str, Array]]:
    """Return the gradients that differ from those on NumPy arrays, by argument."""
    seeds = session.seeds()
    expected = filled(session.vjp(seeds, arrays), arrays)
    got = filled(session.vjp(seeds, arrays, subject=subject), arrays)
    found = {}
    for i, (g, e) in enumerate(zip(got, expected, strict=True)):
        wrong = unequal(g, e, max(session.rtol, _LOOSE))
        if wrong.any():
            found[i] = {"expected": e, "got": g, "wrong": wrong}
    return found
