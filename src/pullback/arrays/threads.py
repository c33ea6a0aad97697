"""How many threads the array libraries compute with."""

from __future__ import annotations

import operator
from typing import Any

from pullback.errors import ArgumentError, ArgumentTypeError, MissingExtraError, compose

__all__ = ["set_num_threads"]

_API = "set_num_threads"


def set_num_threads(num: int) -> None:
    """Set how many threads a matrix product of NumPy uses at most, for the whole process.

    It is the number of the BLAS libraries that are loaded: NumPy's, and SciPy's own if SciPy was
    imported before. Needs threadpoolctl: ``pip install 'pullback[threads]'``.

    Parameters
    ----------
    num : int
        At least 1. One is mostly the quickest for matrices of less than a few hundred rows, and
        where other processes keep the cores busy.

    Raises
    ------
    ArgumentTypeError, ArgumentError
        If `num` is no integer, or less than 1; if no BLAS library that is loaded can be set.
    MissingExtraError
        If threadpoolctl is not installed.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.set_num_threads(1)
    """
    limit = _at_least_one(num)
    try:
        import threadpoolctl
    except ImportError as error:
        hint = "pip install 'pullback[threads]', or set OPENBLAS_NUM_THREADS before Python starts"
        raise MissingExtraError(
            compose(_API, "threadpoolctl required", str(error), hint=hint)
        ) from None
    blas = threadpoolctl.ThreadpoolController().select(user_api="blas")
    if not blas.info():
        hint = "set the variable of its own, such as VECLIB_MAXIMUM_THREADS, before Python starts"
        required = "a BLAS library that threadpoolctl knows required"
        raise ArgumentError(compose(_API, required, "none that is loaded", hint=hint))
    blas.limit(limits=limit)


def _at_least_one(num: Any) -> int:
    try:
        result = operator.index(num)
    except TypeError:
        required = "an integer required as num"
        raise ArgumentTypeError(compose(_API, required, type(num).__name__)) from None
    if result < 1:
        raise ArgumentError(compose(_API, "at least 1 thread required", str(result)))
    return result
