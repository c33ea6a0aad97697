"""Wrong calls of every public operation, drawn from the declarations, and what is said of them.

Each category takes the samples of a declaration and spoils one thing in each. A wrong call
either computes, where its category allows that, or raises an error of pullback's that names the
operation, every input's shape and dtype, and the axis if the call was wrong about one.
"""

import inspect
import re
import warnings
from typing import NamedTuple

import array_api_strict
import numpy as np
from tests.ops._cases import REGISTRY, Case, host, leaves

import pullback as pb
from pullback.arrays import is_array, library_of
from pullback.errors import AutogradError

# Settings that name an axis, or several.
AXES = {
    *("axis", "axes", "dim", "dims", "dim0", "dim1", "dimension"),
    *("start_dim", "end_dim", "source", "destination"),
}
# Operations that make a new axis accept one position more for it.
MAKES_AN_AXIS = {"expand_dims", "unsqueeze", "stack"}


class Right(NamedTuple):
    """A right call, to be spoiled: one sample of one operation."""

    name: str
    arrays: list
    settings: dict


class Wrong(NamedTuple):
    """One wrong call."""

    label: str
    arrays: list
    settings: dict
    axis: int | None = None


def public_names():
    """Return the names of the declarations whose function a user can call."""
    namespaces = (vars(pb), vars(pb.linalg), vars(pb.fft), vars(pb.Tensor))
    functions = {id(value) for names in namespaces for value in names.values()}
    return [name for name, d in REGISTRY.items() if id(d.public) in functions]


PUBLIC = public_names()


def takes_any_number(name):
    """Return whether a function takes tensors one after the other, so that none is no mistake."""
    first = next(iter(inspect.signature(REGISTRY[name].public).parameters.values()))
    return first.kind is first.VAR_POSITIONAL and first.name != "args"  # those are declared ones


# -- right calls -----------------------------------------------------------------------------------
def rights(name):
    """Return a right call for each sample."""
    return [right(name, number) for number in range(len(REGISTRY[name].samples))]


def right(name, number=0):
    """Return the call of one sample, in complex numbers where it takes no others."""
    case = Case(name, number)
    if all(domain.kind == "c" for domain in case.domains):
        case = Case(name, number, complex=True)
    arrays = [host(t) for t in case.within(leaves(case.arrays()))]
    return Right(name, arrays, case.settings())


def wrongs(category, name, every_sample=True):
    """Return the wrong calls of a category, of arrays of NumPy and of array-api-strict.

    Of all samples, or one call for each label: of the largest arrays.
    """
    found = [wrong for call in rights(name) for wrong in category(call)]
    if not every_sample:
        found = list({wrong.label: wrong for wrong in sorted(found, key=size)}.values())
    return found + [w for wrong in found if (w := elsewhere(wrong)) is not None]


def size(wrong):
    return sum(np.size(a) for a in wrong.arrays if is_array(a))


def elsewhere(wrong):
    """Return the same wrong call on array-api-strict, which has no float16; None if it has none."""
    if any(is_array(a) and (str(a.dtype) == "float16" or on_strict(a)) for a in wrong.arrays):
        return None
    arrays = [array_api_strict.asarray(a) if is_array(a) else a for a in wrong.arrays]
    return wrong._replace(arrays=arrays)


def on_strict(array):
    return not isinstance(array, np.ndarray)


# -- the categories: each takes a right call and returns wrong ones --------------------------------
def axis_settings(call):
    """Return the settings that name axes: those of the sample, or else what the call takes."""
    declaration = REGISTRY[call.name]
    found = [s for s in call.settings if s in AXES]
    taken = {*inspect.signature(declaration.call).parameters}
    if "settings" in taken:
        taken |= {*getattr(declaration.primitive, "settings", ())}
    return found or [s for s in sorted(taken & AXES) if s not in declaration.primitive.inputs][:1]


def with_axis(call, key, value):
    """Return settings with another axis: replacing the first where there are several."""
    if call.name == "tensordot":  # a number alone says how many axes
        axes = value if isinstance(value, tuple) else (value,)
        return {**call.settings, key: (axes, (0,) * len(axes))}
    came = call.settings.get(key)
    if isinstance(came, (tuple, list)) and not isinstance(value, tuple):
        value = (value, *came[1:])
    return {**call.settings, key: value}


def axis_out_of_range(call):
    ndim, extra = max(call.arrays[0].ndim, 1), call.name in MAKES_AN_AXIS
    for key in axis_settings(call):
        for axis in (ndim + extra, -ndim - 1 - extra):
            yield Wrong(f"{key}={axis}", call.arrays, with_axis(call, key, axis), axis)


def axis_of_a_wrong_type(call):
    for key in axis_settings(call):
        for axis in (1.5, "x", True, np.True_, object()):
            label = f"{key}={'an object' if type(axis) is object else repr(axis)}"
            yield Wrong(label, call.arrays, with_axis(call, key, axis))


def axis_repeated(call):
    for key in axis_settings(call):
        for axes in ((0, 0), (0, -max(call.arrays[0].ndim, 1))):
            yield Wrong(f"{key}={axes}", call.arrays, with_axis(call, key, axes))


def spoiled(call, i, array, label):
    """Return the call with another i-th input."""
    arrays = [*call.arrays[:i], array, *call.arrays[i + 1 :]]
    return Wrong(f"input {i} {label}", arrays, call.settings)


def wrong_rank(call):
    for i, array in enumerate(call.arrays):
        more = np.stack([array, array])
        yield spoiled(call, i, more, f"of {more.ndim} dimensions")
        while array.ndim:
            array = (
                np.asarray(array[0]) if len(array) else np.zeros_like(array, shape=array.shape[1:])
            )
            yield spoiled(call, i, array, f"of {array.ndim} dimensions")


def wrong_length(call):
    for i, array in enumerate(call.arrays):
        for axis, n in enumerate(array.shape):
            longer = np.ones_like(
                array, shape=(*array.shape[:axis], n + 3, *array.shape[axis + 1 :])
            )
            yield spoiled(call, i, longer, f"longer along axis {axis}")


DTYPES = ("bool", "int64", "uint8", "float16", "float64", "complex128")


def cast(array, dtype, number):
    """Return the values of an input in another dtype, complex ones with imaginary parts of its."""
    if dtype == "complex128":
        imaginary = number + 1.0 + np.arange(array.size).reshape(array.shape)
        return np.asarray(array + 1j * imaginary)
    if array.dtype.kind == "f":
        array = np.round(array) if np.dtype(dtype).kind in "biu" else array
    return np.asarray(np.abs(array)).astype(dtype)


def wrong_dtype(call):
    for dtype in DTYPES:
        for i, array in enumerate(call.arrays):
            if array.dtype != dtype:
                yield spoiled(call, i, cast(array, dtype, i), dtype)
        if len(call.arrays) > 1:
            every = [cast(array, dtype, i) for i, array in enumerate(call.arrays)]
            yield Wrong(f"all {dtype}", every, call.settings)


def mixed_libraries(call):
    for i, array in enumerate(call.arrays if len(call.arrays) > 1 else []):
        yield spoiled(call, i, array_api_strict.asarray(array), "elsewhere")


def no_array(call):
    declaration = REGISTRY[call.name]
    op, parameters = declaration.primitive, inspect.signature(declaration.public).parameters
    for i in range(len(call.arrays)):
        parameter = parameters.get(op.inputs[0 if op.variadic else i] if op.inputs else None)
        optional = parameter is not None and parameter.default is None
        for value in ("text", ["a", "b"], object(), *(() if optional else (None,))):
            yield spoiled(call, i, value, type(value).__name__)


# -- what comes of them ----------------------------------------------------------------------------
class Outcome(NamedTuple):
    """What a wrong call led to: results or an error; and whether anything was changed."""

    results: list | None
    error: Exception | None
    changed: list


def outcome(name, wrong):
    """Make a wrong call on leaves that hold gradients, and look at what it left behind."""
    tensors = [pb.tensor(a) if is_array(a) else a for a in wrong.arrays]
    kept = [t for t in tensors if isinstance(t, pb.Tensor)]
    for t in kept:
        if t.dtype.is_inexact:
            t.requires_grad_().grad = t.detach().clone()
    before = [(host(t).tobytes(), t._version, id(t.grad), t.is_leaf) for t in kept]
    results = error = None
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Mean of empty slice")
            results = REGISTRY[name].call(*tensors, **wrong.settings)
    except Exception as caught:
        error = caught
    after = [(host(t).tobytes(), t._version, id(t.grad), t.is_leaf) for t in kept]
    parts = ("values", "version", "gradient", "is_leaf")
    changed = [
        part
        for old, new in zip(before, after, strict=True)
        for part, a, b in zip(parts, old, new, strict=True)
        if a != b
    ]
    changed += [] if pb.is_grad_enabled() else ["grad mode"]
    if results is not None:
        results = list(results) if isinstance(results, (tuple, list)) else [results]
    return Outcome(results, error, changed)


def lacks(name, wrong, error, builtin):
    """Return what the error of a wrong call lacks."""
    if not isinstance(error, AutogradError):
        return [f"raw {type(error).__name__}: {error}"]
    message, found = str(error), []
    if not isinstance(error, builtin):
        found.append(f"{type(error).__name__} is none of {builtin}")
    d = REGISTRY[name]
    names = {*d.names, d.primitive.name, d.public.__name__}
    if not re.search(rf"\b({'|'.join(names)})\b", message):
        found.append("does not name the operation")
    said = message
    for array in wrong.arrays:
        if hasattr(array, "dtype"):
            line = f"shape {array.shape}, dtype {str(array.dtype).rpartition('.')[2]}"
            if line not in said:
                found.append(f"leaves out an input: {line}")
            said = said.replace(line, "", 1)
    libraries = {library_of(a).name for a in wrong.arrays if is_array(a)}
    if len(libraries) > 1 and not all(library in message for library in libraries):
        found.append("does not name the libraries")
    if wrong.axis is not None and not re.search(rf"(?<![-\d]){wrong.axis}\b", message):
        found.append(f"does not name the axis {wrong.axis}")
    if not re.match(r"[\w.]+: .+", message) or "got" not in message:
        found.append("is not of the form 'operation: required, got came'")
    return [f"{what}: {message!r}" for what in found]


def is_complex(wrong):
    """Return whether an input is a complex array of NumPy."""
    return any(isinstance(a, np.ndarray) and a.dtype == "complex128" for a in wrong.arrays)


def ignores_the_imaginary_part(name, wrong, results):
    """Return whether real results came of complex inputs, whatever their imaginary parts are."""
    if any(r.dtype.is_complex for r in results):
        return False

    def stays(other):
        arrays = [np.asarray(other(a)) if a.dtype.kind == "c" else a for a in wrong.arrays]
        again = outcome(name, wrong._replace(arrays=arrays)).results
        pairs = zip(results, again or [], strict=again is not None)
        return again and all(np.array_equal(host(a), host(b), equal_nan=True) for a, b in pairs)

    return stays(lambda a: a.real + 3j * a.imag) and stays(lambda a: a.real)
