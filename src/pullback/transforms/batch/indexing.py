"""Reading and writing a batch by index, where samples may have an index of their own.

An index of all samples gets a slice in front. Index arrays of the samples have their axis first:
NumPy then puts it where index arrays go, together with the numbers of the samples where what is
read has that axis too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from pullback.arrays import NUMPY, is_array, library_of
from pullback.core.tensor.tensor import Tensor
from pullback.ops.primitives.indexing import is_basic, reader
from pullback.transforms.batch.batched_call import BatchedCall, with_ones
from pullback.transforms.wrapped import is_numbers, results_in


# -- wrapped arrays within an index ----------------------------------------------------------------
def size_of(library: Any, setting: Any) -> int | None:
    """Return how many samples a setting has its own arrays for, None if it is one for all."""
    if library.has(setting):
        return int(setting.value.shape[0]) if setting.batched else None
    if isinstance(setting, (tuple, list)):
        return next((n for n in (size_of(library, s) for s in setting) if n is not None), None)
    return None


def sample_of(library: Any, setting: Any, i: int) -> Any:
    """Return the setting of one sample."""
    if library.has(setting):
        value = setting.value.data_array() if isinstance(setting.value, Tensor) else setting.value
        return library_of(value).tidy(value[i]) if setting.batched else value
    if isinstance(setting, dict):
        return {name: sample_of(library, item, i) for name, item in setting.items()}
    if setting.__class__ is tuple or setting.__class__ is list:
        return setting.__class__([sample_of(library, item, i) for item in setting])
    return setting


# -- where the axes go -----------------------------------------------------------------------------
class _Index(NamedTuple):
    """An index of parts, and how the axes of what it reads follow."""

    items: tuple[Any, ...]
    order: tuple[int, ...] | None  # those axes in the order: samples, one sample's; None: as is
    place: tuple[int, ...]  # the shape of what one sample reads


def _index(library: Any, index: Any, shape: tuple[int, ...], size: int, batched: bool) -> _Index:
    """Return the index of parts for an index of samples of a shape.

    `batched` says whether what is read or written has an axis of samples.
    """
    items = [_as_array(i) for i in (index if isinstance(index, tuple) else (index,))]
    items = _without_ellipsis(items, len(shape))
    order: tuple[int, ...] | None = None
    own = [library.has(i) and i.batched for i in items]
    plain = [sample_of(library, i, 0) for i in items]
    place = NUMPY.xp.broadcast_to(NUMPY.xp.asarray(0), shape)[tuple(map(_host, plain))].shape
    advanced = [is_array(i) or isinstance(i, bool) for i in plain]
    if not any(advanced):
        return _Index((slice(None), *plain), None, place)
    fixed = [
        a or (not isinstance(i, slice) and i is not None)
        for a, i in zip(advanced, plain, strict=True)
    ]
    first = fixed.index(True)
    last = len(fixed) - 1 - fixed[::-1].index(True)
    split = not all(fixed[first : last + 1])
    count = _rank(plain, advanced)  # of the axes that come of index arrays
    front = 0 if split else first
    ndim = len(place)
    if not any(own):
        if split:  # what index arrays read comes first, then the samples
            order = (count, *range(count), *range(count + 1, ndim + 1))
            return _Index((slice(None), *plain), order, place)
        return _Index((slice(None), *plain), None, place)
    parts = [_lined_up(i, count) if o else p for i, o, p in zip(items, own, plain, strict=True)]
    if batched:
        numbers = _numbers(next(p for p, o in zip(parts, own, strict=True) if o), size, count)
        parts = [numbers, *parts]
        if front:  # numbers and index arrays come first
            order = (
                0,
                *_span(1 + count, front),
                *_span(1, count),
                *range(1 + count + front, ndim + 1),
            )
    elif front:
        order = (front, *range(front), *range(front + 1, ndim + 1))
    return _Index(tuple(parts), order, place)


def _span(start: int, count: int) -> range:
    return range(start, start + count)


def _as_array(item: Any) -> Any:
    return NUMPY.xp.asarray(item, dtype=None if item else int) if isinstance(item, list) else item


def _without_ellipsis(items: list[Any], ndim: int) -> list[Any]:
    """Return an index that says something of every axis."""
    used = sum(_axes_read(i) for i in items)
    rest = [slice(None)] * (ndim - used)
    at = next((k for k, i in enumerate(items) if i is Ellipsis), None)
    return [*items, *rest] if at is None else [*items[:at], *rest, *items[at + 1 :]]


def _axes_read(item: Any) -> int:
    if item is None or item is Ellipsis or isinstance(item, bool):
        return 0
    return len(item.shape) if _is_mask(item) else 1


def _is_mask(item: Any) -> bool:
    return is_array(item) and library_of(item).dtype(item).kind == "b"


def _host(item: Any) -> Any:
    """Return an item of an index for looking at shapes alone."""
    if not is_array(item):
        return item
    return library_of(item).to_numpy(item) if _is_mask(item) else NUMPY.xp.zeros(item.shape, int)


def _rank(items: list[Any], advanced: list[bool]) -> int:
    """Return how many axes index arrays make together: a mask makes one."""
    ranks = [
        1 if _is_mask(i) and i.shape else len(i.shape)
        for i, a in zip(items, advanced, strict=True)
        if a and is_array(i)
    ]
    return max([*ranks, 1 if any(isinstance(i, bool) for i in items) else 0])


def _lined_up(item: Any, count: int) -> Any:
    """Return the index arrays of the samples such that they broadcast as those of one do."""
    value = item.value.data_array() if isinstance(item.value, Tensor) else item.value
    ones = (1,) * (count - len(item.shape))
    return (
        value
        if not ones
        else library_of(value).reshape(value, (value.shape[0], *ones, *item.shape))[0]
    )


def _numbers(like: Any, size: int, count: int) -> Any:
    xp = library_of(like).xp
    return xp.reshape(xp.arange(size, device=like.device), (size, *(1,) * count))


# -- the operations --------------------------------------------------------------------------------
def _read(call: BatchedCall) -> Any:
    (x,), index, library = call.tensors, call.settings["index"], call.library
    batched = call.batched[0]
    if batched and is_basic(index):
        items = index if isinstance(index, tuple) else (index,)
        return call.result(x, index=(slice(None), *items))
    if _has_masks(library, index):
        return NotImplemented
    result = _index(library, index, x.shape[batched:], call.size, batched)
    (read,) = results_in(call.xp, reader(result.items), [x], {"index": result.items})
    return read if result.order is None else call.xp.permute_dims(read, result.order)


def _has_masks(library: Any, index: Any) -> bool:
    """Return whether samples have masks of their own, which may pick different numbers."""
    items = index if isinstance(index, tuple) else (index,)
    return any(library.has(i) and i.batched and i.dtype.kind == "b" for i in items)


def _put(call: BatchedCall) -> Any:
    """Add at an index of zeros: the transpose of reading."""
    index, shape, library = call.settings["index"], call.settings["shape"], call.library
    if _has_masks(library, index):
        return NotImplemented
    result = _index(library, index, shape, call.size, True)
    (g,) = call.whole()
    g = _turned_back(call.xp, g, result.order)
    return call.result(g, index=result.items, shape=(call.size, *shape))


def _turned_back(xp: Any, x: Any, order: tuple[int, ...] | None) -> Any:
    if order is None:
        return x
    return xp.permute_dims(x, tuple(sorted(range(len(order)), key=order.__getitem__)))


def _write(call: BatchedCall) -> Any:
    index, library = call.settings["index"], call.library
    x, value = call.whole()[0], call.tensors[1]
    if _has_masks(library, index):
        return _write_masked(call, x, index) if library.has(index) else NotImplemented
    result = _index(library, index, x.shape[1:], call.size, True)
    if call.batched[1] or result.order is not None:
        value = value if is_numbers(value) else call.xp.asarray(value, dtype=x.dtype)
        value = _at_place(call, value, result)
    return call.result(x, value, index=result.items)


def _at_place(call: BatchedCall, value: Any, found: _Index) -> Any:
    """Return what is written with the axes in the order that it is written in."""
    own, extra = call.batched[1], len(value.shape) - call.batched[1] - len(found.place)
    if extra > 0:  # leading axes of length 1, which NumPy drops
        value = value.reshape((*value.shape[:own], *value.shape[own + extra :]))
    value = with_ones(value, len(found.place)) if own else value
    if found.order is None:
        return value
    value = call.xp.broadcast_to(value, (call.size, *found.place))
    return _turned_back(call.xp, value, found.order)


def _write_masked(call: BatchedCall, x: Any, mask: Any) -> Any:
    """Write one number where the mask of each sample says."""
    if call.ndim(1):
        return NotImplemented
    ones = (1,) * (len(x.shape) - 1 - len(mask.shape))
    where = call.xp.asarray(mask.value).reshape((call.size, *mask.shape, *ones))
    value = call.tensors[1]
    if call.batched[1]:
        value = value.reshape((call.size, *(1,) * (len(x.shape) - 1)))
    return call.xp.where(where, value, x)


INDEXING: dict[str, Callable[[BatchedCall], Any]] = {
    "getitem": _read,
    "index_put": _put,
    "setitem": _write,
}
