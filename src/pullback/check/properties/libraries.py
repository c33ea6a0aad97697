"""Other array libraries and devices than the call's: they have to give the same gradients.

A library is tried if it is installed, a large one only if the program has imported it anyway. A
forward that differs between libraries is outside of what a gradient checker checks.
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
from pullback.check.properties.recheck import perturbed_leaves
from pullback.check.report import Cause
from pullback.check.session import Session, zeros_for_none
from pullback.check.subject import Subject
from pullback.check.values import Array, Arrays, Backend, backend_of

_INSTALLED = ("array_api_strict",)
_IN_USE = ("jax.numpy", "dask.array")
# Libraries sum in another order.
_LOOSE = 1e-6


def check_libraries(session: Session) -> None:
    """Check the gradients on every other array library and device there is."""
    if session.subject.backend.library is not NUMPY:
        raise InapplicableError("the arguments are no NumPy arrays")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of experimental libraries
        backends = list(_backends())
        tried = [_on(session, backend) for backend in backends]
    if not backends:
        raise InapplicableError("no other array library is installed")
    if not any(tried):
        raise InapplicableError("forward takes NumPy arrays only")


def _backends() -> Iterator[Backend]:
    """Yield the other libraries and devices; large libraries only if they are imported."""
    modules = [importlib.import_module(n) for n in _INSTALLED if importlib.util.find_spec(n)]
    modules += [sys.modules[name] for name in _IN_USE if name in sys.modules]
    for module in modules:
        try:
            yield backend_of(module.asarray(np.zeros(1)))
        except Exception:  # its arrays cannot be tensors
            continue
    if cuda_is_available():
        yield Backend(CUPY, "cuda")


def _on(session: Session, backend: Backend) -> bool:
    """Check one library; return whether forward accepts its arrays."""
    subject = session.subject.with_arrays(session.arrays, backend)
    name = backend.library.name
    try:
        run = subject.run()
        outputs = run.values()
    except Exception:  # no such dtype, or a function written for NumPy only
        return False
    if any(backend_of(out) != backend for out in run.outputs):  # it computed in NumPy
        return False
    like = [(out.shape, out.dtype) for out in session.outputs]
    if [(out.shape, out.dtype) for out in outputs] != like or any(
        unequal(out, base).any() for out, base in zip(outputs, session.outputs, strict=True)
    ):
        return False
    leaves = session.leaves()
    perturbed = [
        np.array(perturbed_leaves(session, leaves, 1e-3)[i]) for i in session.subject.tracked
    ]
    try:
        wrong = _wrong_on(session, subject, session.arrays)
        if wrong:  # unless only a tie is broken differently
            again = _wrong_on(session, subject, perturbed)
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
    expected = zeros_for_none(session.vjp(seeds, arrays), arrays)
    got = zeros_for_none(session.vjp(seeds, arrays, subject=subject), arrays)
    found = {}
    for i, (g, e) in enumerate(zip(got, expected, strict=True)):
        wrong = unequal(g, e, max(session.rtol, _LOOSE))
        if wrong.any():
            found[i] = {"expected": e, "got": g, "wrong": wrong}
    return found
