"""Run every call of the tables on arrays and on tensors, and print what came of it as JSON.

A program of its own, since SciPy reads ``SCIPY_ARRAY_API`` once, when it is imported. For each
function it prints what SciPy's own table says of it and, for each of its calls, one of:

* ``gradient``: every result that changes with an argument is a tensor with the right gradient;
* ``values``: nothing that comes back changes with the arguments, but by jumps;
* the error, by its type and text, that a tensor which requires grad met;
* ``wrong``, and how: what must never happen.

The functions that take NumPy's arrays alone by SciPy's table are called with some shapes that they
understand; it prints which of them return something that changes with a tensor and is not tracked.
"""

import contextlib
import importlib
import inspect
import io
import json
import os
import sys
import warnings

os.environ["SCIPY_ARRAY_API"] = "1"

import numpy as np
from scipy._lib._array_api import xp_capabilities_table
from tests.scipy_support._calls import call, results, samples
from tests.scipy_support._document import every_call

import pullback as pb

STEP = 1e-3
pb.set_default_dtype(pb.float64)


# What a call comes to -----------------------------------------------------------------------------


def numbers(leaf):
    """Return a result as a NumPy array; integers and bools change by jumps alone."""
    return np.asarray(leaf.detach().numpy() if isinstance(leaf, pb.Tensor) else leaf)


def weighted(leaf, i):
    """Return one number made of a floating result: real and imaginary parts have weights."""
    array = numbers(leaf)
    if array.dtype.kind not in "fc":
        return 0.0
    w = weights(array.shape, i)
    with np.errstate(invalid="ignore"):
        finite = np.isfinite(array)
    array = np.where(finite, array, 0.0)
    return float(np.sum(w * (np.real(array) + 0.5 * np.imag(array))))


def weights(shape, i):
    return np.random.default_rng(i).uniform(1, 2, shape)


def slopes(name, call, arrays):
    """Return, for each array, the derivatives of all results' numbers by its elements."""

    def moved(i, place, h):
        changed = [x.copy() for x in arrays]
        changed[i][place] += h
        return np.array([weighted(r, k) for k, r in enumerate(results(name, call, changed, np))])

    def slope(i, place, unit):
        h = STEP * unit
        near = moved(i, place, h) - moved(i, place, -h)
        far = moved(i, place, 2 * h) - moved(i, place, -2 * h)
        return unit * (8 * near - far) / (12 * STEP)

    units = (1.0, 1j) if call.kind == "c" else (1.0,)
    return [
        np.array([sum(slope(i, place, u) for u in units) for place in np.ndindex(x.shape)]).reshape(
            *x.shape, -1
        )
        for i, x in enumerate(arrays)
    ]


def outcome(name, call):
    """Return what a call comes to, in words."""
    arrays = [np.asarray(x) for x in samples(call)]
    try:
        expected = results(name, call, arrays, np)
    except Exception as error:
        return f"wrong: on arrays {type(error)} {error}"
    leaves = [pb.tensor(x, requires_grad=True) for x in arrays]
    try:
        found = results(name, call, leaves, pb)
    except Exception as error:
        return f"{type(error).__module__}.{type(error).__qualname__}: {error}"
    if len(found) != len(expected):
        return f"wrong: {len(found)} results, not {len(expected)}"
    for k, (ours, theirs) in enumerate(zip(found, expected, strict=True)):
        if not np.allclose(
            numbers(ours), numbers(theirs), rtol=call.rtol, atol=1e-11, equal_nan=True
        ):
            return f"wrong: result {k} is {numbers(ours)}, not {numbers(theirs)}"
    return compared(leaves, found, slopes(name, call, arrays))


def compared(leaves, found, expected):
    """Return how the gradients of the results compare with the numerical ones."""
    came = "values"
    for k, leaf in enumerate(found):
        theirs = [rows[..., k] for rows in expected]
        if not is_tracked(leaf):
            if not all(np.allclose(t, 0, atol=1e-8) for t in theirs):
                return f"wrong: result {k}, {type(leaf).__name__}, is not tracked"
            continue
        if any(np.any(np.abs(t) > 1e-6) for t in theirs):
            came = "gradient"
        ours = gradients(leaf, k, leaves)
        if isinstance(ours, str):
            return ours
        scale = max([1.0, *(float(np.max(np.abs(t), initial=0.0)) for t in theirs)])
        for i, (mine, their) in enumerate(zip(ours, theirs, strict=True)):
            if not np.allclose(mine, their, rtol=1e-6, atol=1e-7 * scale):
                return f"wrong: the gradient of result {k} by array {i} is {mine}, not {their}"
    return came


def is_tracked(leaf):
    return isinstance(leaf, pb.Tensor) and leaf.requires_grad


def gradients(leaf, k, leaves):
    """Return the gradients of the number that `weighted` makes of a result."""
    w = pb.asarray(weights(leaf.shape, k))
    leaf = pb.where(pb.isfinite(leaf.detach()), leaf, 0.0)
    parts = pb.real(leaf) + 0.5 * pb.imag(leaf) if leaf.is_complex() else leaf
    try:
        found = pb.autograd.grad((w * parts).sum(), leaves, retain_graph=True, allow_unused=True)
    except Exception as error:
        return f"{type(error).__module__}.{type(error).__qualname__}: {error}"
    return [
        np.zeros(x.shape) if g is None else g.numpy() for x, g in zip(leaves, found, strict=True)
    ]


# SciPy's own table --------------------------------------------------------------------------------
MODULES = (
    *("cluster.hierarchy", "cluster.vq", "constants", "differentiate", "fft", "integrate"),
    *("interpolate", "linalg", "ndimage", "optimize", "optimize.elementwise", "signal"),
    *("signal.windows", "spatial", "spatial.distance", "spatial.transform", "special", "stats"),
)


def support():
    """Return what SciPy says of each public function: which kinds of array it takes."""
    found, seen = {}, {}
    for module in MODULES:
        space = importlib.import_module(f"scipy.{module}")
        for name in space.__all__:
            public = getattr(space, name)
            members = vars(public).items() if inspect.isclass(public) else ()
            for label, value in [(name, public), *((f"{name}.{k}", v) for k, v in members)]:
                value = getattr(value, "__func__", value)
                try:
                    entry = xp_capabilities_table.get(value)
                except TypeError:
                    continue
                if value not in seen and (
                    entry is not None or (value is public and callable(value))
                ):
                    seen[value] = found[f"{module}.{label}"] = kind_of(entry)
    return found


def kind_of(entry):
    if entry is None:
        return "unlisted"
    if entry["out_of_scope"]:
        return "none"
    return "numpy" if entry["np_only"] else "any"


# Functions that take NumPy's arrays alone ---------------------------------------------------------
SHAPES = [((12,),), ((12,), (12,)), ((12,), (12,), (12,)), ((4, 4),), ((),), ((), ())]


def silent(name):
    """Return the shapes with which a function loses a history without a word."""
    return [str(shapes) for shapes in SHAPES if loses_history(name, call(*shapes))]


def loses_history(name, call):
    arrays = samples(call)
    try:
        results(name, call, arrays, np)
        found = results(name, call, [pb.tensor(x, requires_grad=True) for x in arrays], pb)
    except Exception:
        return False
    lost = [k for k, leaf in enumerate(found) if not is_tracked(leaf)]
    sides = []
    for h in (STEP, -STEP) if lost else ():
        moved = results(name, call, [x * (1 + h * np.cos(x)) for x in arrays], np)
        sides.append([weighted(moved[k], k) for k in lost])
    return bool(lost) and not np.allclose(*sides, rtol=1e-9)


def main(wanted):
    chosen = {
        name: calls
        for name, calls in every_call().items()
        if not wanted or any(w in name for w in wanted)
    }
    outcomes = {name: [outcome(name, each) for each in calls] for name, calls in chosen.items()}
    table = support()
    with contextlib.redirect_stdout(io.StringIO()):
        lost = {name: silent(name) for name, kind in table.items() if kind != "any" and not wanted}
    json.dump({"support": table, "outcomes": outcomes, "lost": lost}, sys.stdout, indent=1)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    warnings.simplefilter("error", pb.UntrackedTensorWarning)
    main(sys.argv[1:])
