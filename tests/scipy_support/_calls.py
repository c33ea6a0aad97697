"""What a call of a SciPy function is in these tests: arrays to draw, and what to do with them."""

import functools
import importlib
import operator
from typing import Any, NamedTuple

import numpy as np

import pullback as pb


class Call(NamedTuple):
    """A program on arrays of these shapes, with samples between `low` and `high`.

    `run` is given the function and the arrays, or the namespace where there are none; None calls
    the function on the arrays, with the settings. `rtol` is for the value.
    """

    shapes: tuple[tuple[int, ...], ...]
    run: Any
    low: float
    high: float
    kind: str
    rtol: float
    settings: dict[str, Any]


def call(*shapes, run=None, low=0.5, high=2.0, kind="f", rtol=1e-9, **settings):
    """Return a call with arrays of these shapes."""
    return Call(shapes, run, low, high, kind, rtol, settings)


def table(module, entries):
    """Return the calls by the functions' names below ``scipy``.

    `entries` gives each name, or several separated by spaces, a call or a list of them. What
    stands behind a name in brackets tells two uses of one function apart.
    """
    found = {}
    for names, calls in entries.items():
        for name in names.split():
            found[f"{module}.{name}"] = calls if isinstance(calls, list) else [calls]
    return found


@functools.cache
def function_of(name):
    """Return the function of a name below ``scipy``; that of its class for a special method."""
    parts = name.partition("[")[0].split(".")
    for i in range(len(parts), 0, -1):
        try:
            module = importlib.import_module(".".join(("scipy", *parts[:i])))
        except ImportError:
            continue
        return operator.attrgetter(".".join(parts[i:]))(module)
    raise LookupError(name)


def samples(call):
    """Return the arrays of a call: distinct numbers, the same ones in every run."""
    rng = np.random.default_rng(7)
    arrays = [rng.uniform(call.low, call.high, shape) for shape in call.shapes]
    if call.kind == "c":
        arrays = [x + 1j * rng.uniform(call.low, call.high, x.shape) for x in arrays]
    return arrays


def results(name, call, arrays, xp):
    """Run a call and return the numbers and arrays among its results, one after the other."""
    function = function_of(name)
    if call.run is None:
        return leaves(function(*arrays, **call.settings))
    return leaves(call.run(function, *(arrays or [xp])))


def leaves(result):
    """Return the numbers and arrays in a result, however it holds them."""
    if isinstance(result, (pb.Tensor, np.ndarray, np.generic, float, complex)):
        return [result]
    if isinstance(result, dict):
        result = list(result.values())
    if isinstance(result, (tuple, list)):
        return [leaf for item in result for leaf in leaves(item)]
    if hasattr(result, "statistic") and hasattr(result, "pvalue"):
        return [*leaves(result.statistic), *leaves(result.pvalue)]
    return leaves(vars(result)) if hasattr(result, "__dict__") else []


def space(x):
    """Return the namespace of an array."""
    return pb if isinstance(x, pb.Tensor) else np


def beside(x, values):
    """Return constant values as an array of the kind of `x`."""
    return space(x).asarray(np.asarray(values))
