"""NumPy's functions that choose, sort and write on tensors.

What is chosen is found by NumPy on the values; the elements are then read from the tensor, so
that they stay in the graph.
"""

from __future__ import annotations

import functools
import inspect
import itertools
from typing import Any

import numpy as np

from pullback import hints
from pullback.arrays import constant
from pullback.core.graph.modes import STATE
from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentError, GraphError, compose
from pullback.numpy_protocol.arguments import (
    adapter,
    along,
    as_tensor,
    beside,
    flat,
    operand,
    position,
    tensors_in,
    together,
    truth,
    values_of,
    xp,
)


# -- by a condition --------------------------------------------------------------------------------
@adapter("where")
def where(condition: Any, x: Any = None, y: Any = None) -> Any:
    mask = truth(condition)
    if x is None and y is None:
        return beside(np.nonzero(values_of(mask)), mask)
    x, y = operand(x), operand(y)
    if not isinstance(x, Tensor) and not isinstance(y, Tensor):
        x = as_tensor(x, mask)
    return xp.where(mask, x, y)


@adapter("select")
def select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    if len(condlist) != len(choicelist):
        required, came = "as many choices as conditions", f"{len(condlist)}, {len(choicelist)}"
        raise ArgumentError(compose("np.select", required, came))
    result = operand(default)
    for condition, choice in zip(condlist[::-1], choicelist[::-1], strict=True):
        result = where(condition, choice, result)
    return result


@adapter("piecewise")
def piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> Any:
    """Apply each function where its condition holds, the last one elsewhere if there is one more.

    A function sees those elements alone, as in NumPy: others cannot spoil the gradient.
    """
    x = as_tensor(x)
    single = not isinstance(condlist, (list, tuple)) or isinstance(condlist[0], (bool, np.bool_))
    masks = [np.asarray(values_of(c), bool) for c in ([condlist] if single else condlist)]
    if len(funclist) == len(masks) + 1:
        masks.append(~np.any(masks, axis=0))
    if len(funclist) != len(masks):
        required, came = f"{len(masks)} or one more functions required", str(len(funclist))
        raise ArgumentError(compose("np.piecewise", required, came, ("x", x)))
    result = xp.zeros_like(x)
    for mask, function in zip(masks, funclist, strict=True):
        value = function(x[mask], *args, **kw) if callable(function) else function
        result[mask] = value
    return result


adapter("extract")(lambda condition, arr: flat(arr)[np.ravel(values_of(condition)) != 0])


@adapter("compress")
def compress(condition: Any, a: Any, axis: int | None = None) -> Any:
    x, over = along("np.compress", a, axis)
    return x[position(over, np.flatnonzero(values_of(condition)))]


# -- by indices ------------------------------------------------------------------------------------
def _rows(shape: tuple[int, ...], indices: Any, axis: int) -> tuple[Any, ...]:
    """Return the index of the elements at indices along an axis, row by row."""
    lines = [np.arange(n).reshape(-1, *(1,) * (len(shape) - i - 1)) for i, n in enumerate(shape)]
    return tuple(indices if i == axis else line for i, line in enumerate(lines))


def _read_rows(x: Any, indices: Any, axis: int) -> Any:
    return x[_rows(x.shape, indices, axis)]


@adapter("choose")
def choose(a: Any, choices: Any, mode: str = "raise") -> Any:
    arrays = xp.broadcast_arrays(*together(*choices))
    index = np.arange(len(arrays)).take(values_of(a), mode=mode)  # type: ignore[call-overload]
    shape = np.broadcast_shapes(index.shape, arrays[0].shape)
    stacked = xp.stack([xp.broadcast_to(x, shape) for x in arrays])
    return _read_rows(stacked, np.broadcast_to(index, shape)[None], 0)[0]


@adapter("delete")
def delete(arr: Any, obj: Any, axis: int | None = None) -> Any:
    x, over = along("np.delete", arr, axis)
    remaining = np.delete(np.arange(x.shape[over]), values_of(obj))
    return x[position(over, remaining)]


@adapter("insert")
def insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> Any:
    x, new = together(arr, values)
    places = np.arange(x.numel()).reshape(x.shape)
    others = np.arange(x.numel(), x.numel() + new.numel()).reshape(new.shape)
    return xp.concat([flat(x), flat(new)])[np.insert(places, values_of(obj), others, axis)]


# -- sorted ----------------------------------------------------------------------------------------
@adapter("partition")
def partition(a: Any, kth: Any, axis: int | None = -1) -> Any:
    x, over = along("np.partition", a, axis)
    return _read_rows(x, np.argpartition(values_of(x), kth, axis=over), over)


@adapter("sort_complex")
def sort_complex(a: Any) -> Any:
    values = values_of(a)
    order = np.argsort(values, axis=-1)
    wide = xp.astype(a, np.result_type(values, np.complex64), copy=False)
    return _read_rows(wide, order, wide.ndim - 1)


@adapter("trim_zeros")
def trim_zeros(filt: Any, trim: str = "fb") -> Any:
    if filt.ndim != 1:
        required = "one axis required"
        raise ArgumentError(compose("np.trim_zeros", required, str(filt.ndim), ("filt", filt)))
    places = np.flatnonzero(values_of(filt))
    if not len(places):
        return filt[:0]
    start = int(places[0]) if "f" in trim.lower() else 0
    return filt[start : int(places[-1]) + 1 if "b" in trim.lower() else None]


# -- as sets ---------------------------------------------------------------------------------------
@adapter("unique")
def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
) -> Any:
    """Return the different elements; the gradient of one goes to the first of its kind."""
    x, over = along("np.unique", ar, axis)
    _, index, inverse, counts = np.unique(
        values_of(ar), True, True, True, axis, equal_nan=equal_nan
    )
    first = x[position(over, index)]
    wanted = ((return_index, index), (return_inverse, inverse), (return_counts, counts))
    more = [beside(np.asarray(array), x) for flag, array in wanted if flag]
    return (first, *more) if more else first


adapter("union1d")(lambda ar1, ar2: unique(xp.concat([flat(ar) for ar in together(ar1, ar2)])))


def _members(wanted: bool, ar1: Any, ar2: Any) -> Any:
    """Return the different elements of the first that the second has, or has not."""
    first = unique(ar1)
    return first[np.isin(values_of(first), values_of(as_tensor(ar2)), invert=not wanted)]


adapter("intersect1d")(functools.partial(_members, True))
adapter("setdiff1d")(functools.partial(_members, False))


@adapter("setxor1d")
def setxor1d(ar1: Any, ar2: Any) -> Any:
    return unique(xp.concat([_members(False, ar1, ar2), _members(False, ar2, ar1)]))


# -- written to ------------------------------------------------------------------------------------
def _writing(name: str, parameters: str, values: str) -> None:
    """Register NumPy's function that writes the argument `values` into the first one.

    Where it writes what into a tensor it says itself, by the numbers of the elements.
    """
    function, names = getattr(np, name), parameters.split()

    def write(*args: Any, **settings: Any) -> None:
        inputs = {**dict(zip(names, args, strict=False)), **settings}
        target = inputs[names[0]]
        if not isinstance(target, Tensor):
            run_into_array(f"np.{name}", function, target, args, settings)
            return
        new, places = as_tensor(inputs[values], target), np.zeros(target.shape, int)
        numbers = np.arange(1, new.numel() + 1).reshape(new.shape)
        left = values_of({**inputs, names[0]: places, values: numbers})
        function(*[left.pop(n) for n in itertools.takewhile(inputs.__contains__, names)], **left)
        written = places > 0
        target[written] = flat(new)[places[written] - 1]

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    own = inspect.Signature([inspect.Parameter(n, kind) for n in names])
    write.__signature__ = own  # type: ignore[attr-defined]
    adapter(name)(write)


_writing("fill_diagonal", "a val wrap", "val")
_writing("place", "arr mask vals", "vals")
_writing("put", "a ind v mode", "v")
_writing("put_along_axis", "arr indices values axis", "values")
_writing("putmask", "a mask values", "values")


@adapter("copyto")
def copyto(dst: Any, src: Any, where: Any = True) -> None:
    if not isinstance(dst, Tensor):
        run_into_array("np.copyto", np.copyto, dst, (dst, src), {"where": where})
    elif where is True:
        dst[...] = operand(src)
    else:
        mask = np.broadcast_to(values_of(where), dst.shape)
        dst[mask] = xp.broadcast_to(as_tensor(src), dst.shape)[mask]


def _is_wrapped(tensor: Tensor) -> bool:
    array = tensor.data_array()
    return constant(array) is not array


def run_into_array(name: str, function: Any, array: Any, args: Any, settings: Any) -> Any:
    """Let NumPy write into an array of the caller's: neither a graph nor a tangent."""
    recorded, inputs = STATE.get().grad, tensors_in((args, settings))
    tracked = [x for x in inputs if (recorded and x.requires_grad) or _is_wrapped(x)]
    if not tracked:
        return function(*values_of(args), **values_of(settings))
    way = hints.here() or hints.way_out(name.replace("np.", "numpy.", 1))
    if not way and not name.endswith(".at"):
        result = "a + t` for `a += t" if name == "np.add" else f"{name}(...)"
        way = f"write `result = {result}`"
    recorded_writes = "make the array a tensor, a = pb.asarray(a), whose changes are recorded"
    raise GraphError(
        compose(
            name,
            "a Tensor to write to required, since a NumPy array cannot hold a graph",
            "an array, and a tensor that requires grad or has a tangent",
            ("array", array),
            ("tensor", tracked[0]),
            hint=f"{way}, or {recorded_writes}" if way else recorded_writes,
        )
    )
