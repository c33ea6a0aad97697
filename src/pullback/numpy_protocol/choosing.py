"""NumPy's functions that choose, sort and write on tensors.

What is chosen is found by NumPy on the values; the elements are then read from the tensor, so
that they stay in the graph.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
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
    operand,
    position,
    tensors_in,
    together,
    truth,
    values_of,
    with_rank,
    xp,
)
from pullback.numpy_protocol.shaping import resize
from pullback.ops.axes import normalize_axis


def _flat(a: Any) -> Any:
    return xp.reshape(as_tensor(a), (-1,))


# -- by a condition --------------------------------------------------------------------------------
@adapter("where")
def where(condition: Any, x: Any = None, y: Any = None) -> Any:
    """Choose from two; of a condition alone, where it holds."""
    mask = truth(condition)
    if x is None and y is None:
        return beside(np.nonzero(values_of(mask)), mask)
    x, y = operand(x), operand(y)
    if not isinstance(x, Tensor) and not isinstance(y, Tensor):
        x = as_tensor(x, mask)
    return xp.where(mask, x, y)


@adapter("select")
def select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    """Choose from several by the first condition that holds."""
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


@adapter("extract")
def extract(condition: Any, arr: Any) -> Any:
    """Return the elements where a condition holds."""
    return _flat(arr)[np.asarray(values_of(condition)).ravel() != 0]


@adapter("compress")
def compress(condition: Any, a: Any, axis: int | None = None) -> Any:
    """Return the slices that a condition chooses."""
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
    """Return, element by element, the one of several arrays that an index names."""
    arrays = xp.broadcast_arrays(*together(*choices))
    index = np.arange(len(arrays)).take(values_of(a), mode=mode)  # type: ignore[call-overload]
    shape = np.broadcast_shapes(index.shape, arrays[0].shape)
    stacked = xp.stack([xp.broadcast_to(x, shape) for x in arrays])
    return _read_rows(stacked, np.broadcast_to(index, shape)[None], 0)[0]


@adapter("delete")
def delete(arr: Any, obj: Any, axis: int | None = None) -> Any:
    """Return the slices that are not deleted."""
    x, over = along("np.delete", arr, axis)
    remaining = np.delete(np.arange(x.shape[over]), values_of(obj))
    return x[position(over, remaining)]


@adapter("insert")
def insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> Any:
    """Return the slices with others before some of them."""
    x, over = along("np.insert", arr, axis)
    n = x.shape[over]
    new = as_tensor(values, x)
    index: Any = obj if isinstance(obj, slice) else np.asarray(values_of(obj))
    places: Any = np.arange(n)[index] if isinstance(obj, slice) or index.dtype == bool else index
    new = with_rank(new, x.ndim)
    if places.size == 1:
        new = xp.moveaxis(new, 0, over) if places.ndim == 0 else new
        count = new.shape[over]
    else:
        count = places.size
    new = xp.broadcast_to(new, (*x.shape[:over], count, *x.shape[over + 1 :]))
    order = np.insert(np.arange(n), index, np.arange(n, n + count))
    return xp.concat([x, new], axis=over)[position(over, order)]


# -- sorted ----------------------------------------------------------------------------------------
@adapter("partition")
def partition(a: Any, kth: Any, axis: int | None = -1) -> Any:
    """Return the elements with those at `kth` where sorting would put them."""
    x, over = along("np.partition", a, axis)
    return _read_rows(x, np.argpartition(values_of(x), kth, axis=over), over)


@adapter("sort_complex")
def sort_complex(a: Any) -> Any:
    """Return complex numbers sorted by real, then by imaginary part."""
    x = as_tensor(a)
    order = np.argsort(values_of(x), axis=-1)
    wide = x if x.dtype.is_complex else xp.astype(x, np.result_type(values_of(x), np.complex64))
    return _read_rows(wide, order, wide.ndim - 1)


@adapter("trim_zeros")
def trim_zeros(filt: Any, trim: str = "fb") -> Any:
    """Return the elements without leading and trailing zeros."""
    x = as_tensor(filt)
    places = np.flatnonzero(values_of(x)) if x.ndim == 1 else None
    if places is None:
        raise ArgumentError(compose("np.trim_zeros", "one axis required", str(x.ndim), ("filt", x)))
    if not len(places):
        return x[:0]
    start = int(places[0]) if "f" in trim.lower() else 0
    return x[start : int(places[-1]) + 1 if "b" in trim.lower() else x.shape[0]]


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
    source = as_tensor(ar) if axis is None else x
    _, index, inverse, counts = np.unique(
        values_of(source), True, True, True, axis, equal_nan=equal_nan
    )
    first = x[position(over, index)]
    wanted = ((return_index, index), (return_inverse, inverse), (return_counts, counts))
    more = [beside(np.asarray(array), x) for flag, array in wanted if flag]
    return (first, *more) if more else first


@adapter("union1d")
def union1d(ar1: Any, ar2: Any) -> Any:
    """Return the different elements of both."""
    return unique(xp.concat([_flat(ar) for ar in together(ar1, ar2)]))


@adapter("intersect1d")
def intersect1d(ar1: Any, ar2: Any) -> Any:
    """Return the different elements of the first that the second has too."""
    return _members(ar1, ar2, True)


@adapter("setdiff1d")
def setdiff1d(ar1: Any, ar2: Any) -> Any:
    """Return the different elements of the first that the second does not have."""
    return _members(ar1, ar2, False)


@adapter("setxor1d")
def setxor1d(ar1: Any, ar2: Any) -> Any:
    """Return the different elements that one of the two has."""
    return unique(xp.concat([_members(ar1, ar2, False), _members(ar2, ar1, False)]))


def _members(a: Any, b: Any, wanted: bool) -> Any:
    first = unique(a)
    return first[np.isin(values_of(first), values_of(as_tensor(b)), invert=not wanted)]


# -- written to ------------------------------------------------------------------------------------
@adapter("copyto")
def copyto(dst: Any, src: Any, where: Any = True) -> None:
    """Write into a tensor, recorded; into an array only what is not tracked."""
    if isinstance(dst, Tensor):
        if where is True:
            dst[...] = operand(src)
        else:
            mask = np.broadcast_to(values_of(where), dst.shape)
            dst[mask] = xp.broadcast_to(as_tensor(src), dst.shape)[mask]
        return
    needs_untracked("np.copyto", dst, (src, where))
    np.copyto(dst, values_of(src), where=values_of(where))


@adapter("fill_diagonal")
def fill_diagonal(a: Any, val: Any) -> None:
    """Write on the diagonal of a tensor, recorded."""
    places = np.arange(min(a.shape))
    value = operand(val)
    if isinstance(value, Tensor) and value.ndim:
        flat = _flat(value)
        value = flat[places % flat.shape[0]]
    a[(places,) * a.ndim] = value


_Write = Callable[..., None]


def _writing(name: str) -> Callable[[_Write], _Write]:
    """Register how NumPy's function of that name writes into a tensor; into an array it does."""
    function = getattr(np, name)

    def decorate(write: _Write) -> _Write:
        first = next(iter(inspect.signature(write).parameters))

        @adapter(name)
        @functools.wraps(write)
        def run(*args: Any, **settings: Any) -> None:
            target = args[0] if args else settings[first]
            if isinstance(target, Tensor):
                write(*args, **settings)
                return
            needs_untracked(f"np.{name}", target, (args, settings))
            function(*values_of(args), **values_of(settings))

        return run

    return decorate


@_writing("put")
def put(a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    """Write at places of the flat array; values are repeated as needed."""
    index = np.ravel(values_of(ind)).astype(int)
    places = np.arange(a.numel()).take(index, mode=mode)  # type: ignore[call-overload]
    if places.size:
        a[np.unravel_index(places, a.shape)] = resize(as_tensor(v, a), places.shape)


@_writing("putmask")
def putmask(a: Any, mask: Any, values: Any) -> None:
    """Write where a mask holds; values of another shape are repeated over the flat array."""
    chosen = np.asarray(values_of(mask), bool)
    a[chosen] = resize(as_tensor(values, a), a.shape)[chosen]


@_writing("place")
def place(arr: Any, mask: Any, vals: Any) -> None:
    """Write where a mask holds, one value after the other."""
    chosen = np.asarray(values_of(mask), bool)
    arr[chosen] = resize(as_tensor(vals, arr), (int(chosen.sum()),))


@_writing("put_along_axis")
def put_along_axis(arr: Any, indices: Any, values: Any, axis: int | None = -1) -> None:
    """Write at indices along an axis, row by row."""
    index = np.asarray(values_of(indices))
    if axis is None:
        put(arr, index, values)
        return
    along = normalize_axis("np.put_along_axis", axis, arr.ndim)
    arr[_rows(arr.shape, index, along)] = operand(values)


def _is_wrapped(tensor: Tensor) -> bool:
    array = tensor.data_array()
    return constant(array) is not array


def needs_untracked(name: str, array: Any, values: Any) -> None:
    """Raise where a tensor with a graph or a tangent would be written into an array."""
    recorded = STATE.get().grad
    tracked = [x for x in tensors_in(values) if (recorded and x.requires_grad) or _is_wrapped(x)]
    if tracked:
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
