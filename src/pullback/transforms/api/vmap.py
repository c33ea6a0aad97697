"""`vmap`: a function of one sample as a function of many.

Owns the call: ``in_axes`` and ``out_axes``, one axis for a whole container or a container of axes
of its form; chunks; and results with their axis. What a batch computes is the business of batch/.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

from pullback.arrays import is_array, library_of
from pullback.core.custom.pytree import children, flatten, named_leaves, path_of, unflatten
from pullback.core.function.namespace import TENSOR_XP
from pullback.core.tensor.tensor import Tensor, box
from pullback.errors import ArgumentError, ArgumentTypeError, ShapeError, TensorIndexError, compose
from pullback.ops.functions.creation import asarray
from pullback.ops.functions.random import Drawn, replayed, watched
from pullback.transforms.api.arguments import Function, Transformed, class_for, name_of
from pullback.transforms.api.recording import leaves_as_given
from pullback.transforms.batch.array import BatchLibrary, batches
from pullback.transforms.levels import depends_on_outer_level, new_level
from pullback.transforms.wrapped import (
    numpy_scalar,
    part_of,
    run_wrapped,
    tensor_of_part,
)

__all__ = ["for_rows", "vmap"]

_RANDOMNESS = ("error", "same", "different")


def vmap(
    fun: Function,
    in_axes: Any = 0,
    out_axes: Any = 0,
    chunk_size: int | None = None,
    randomness: str = "error",
    *,
    in_dims: Any = 0,
    out_dims: Any = 0,
) -> Function:
    """Return the function that computes `fun` for each sample along an axis of its arguments.

    `fun` is written for one sample and runs once, on all samples together. In place of
    arrays it gets tensors with ndarray's methods, as under the other transforms.

    Parameters
    ----------
    fun : callable
        Takes and returns tensors, and containers of them. It must not depend on values by Python's
        ``if``.
    in_axes : int, None or tuple, default 0
        The axis of the samples in each positional argument, or one for all of them. For a
        container, one for all of it or a container of them. None: the argument has no such axis,
        and `fun` gets it as it came. Tensors and arrays given by keyword have the axis 0.
    out_axes : int, None or container, default 0
        Where the axis of the samples goes in each result. None for what is the same for all.
    chunk_size : int, optional
        How many samples are computed together, to limit memory. By default all.
    randomness : {"error", "same", "different"}
        Whether a random draw raises, is one for all samples, or one for each.
    in_dims, out_dims : optional
        Other names of `in_axes` and `out_axes`, as in torch.func.

    Returns
    -------
    callable
        Takes the arguments of `fun` and returns its results with an axis of samples: arrays if
        all arguments are arrays, else tensors. A result that is the same for all samples is
        repeated.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        If an axis is given for what has none, axes have another structure than the arguments or
        the results, or `fun` returns nothing.
    ShapeError, TensorIndexError
        If the axes have several lengths or length 0, or are out of range; if a shape depends on
        values.
    BatchedValueError
        If `fun` asks for a number of a batch: by ``if``, ``float()``, ``item()`` or NumPy.
    DeviceError
        If it writes a batch to a tensor from outside.

    Examples
    --------
    >>> import numpy as np
    >>> import pullback as pb
    >>> pb.vmap(lambda x, y: x @ y)(np.array([[1.0, 2.0], [3.0, 4.0]]), np.ones((2, 2)))
    array([3., 7.])

    Gradients of each sample:

    >>> loss = lambda w, x: (w * x).sum() ** 2
    >>> w, x = np.array([1.0, 2.0]), np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> pb.vmap(pb.grad(loss), in_axes=(None, 0))(w, x)
    array([[2., 0.],
           [0., 4.],
           [6., 6.]])
    """
    in_axes = _either("in", in_axes, in_dims)
    out_axes = _either("out", out_axes, out_dims)
    if randomness not in _RANDOMNESS:
        required = 'randomness "error", "same" or "different" required'
        raise ArgumentError(compose("vmap", required, repr(randomness)))
    if chunk_size is not None:
        _check_chunk(chunk_size)
    return Vmapped(fun, in_axes, out_axes, chunk_size, randomness)


def _either(which: str, axes: Any, dims: Any) -> Any:
    if dims.__class__ is int and dims == 0:
        return axes
    if axes.__class__ is not int or axes != 0:
        required = f"{which}_axes or {which}_dims required, which mean the same"
        raise ArgumentError(compose("vmap", required, f"{axes!r} and {dims!r}"))
    return dims


def _check_chunk(chunk_size: Any) -> None:
    if isinstance(chunk_size, bool) or not hasattr(chunk_size, "__index__"):
        required = "a number of samples, or None, required as chunk_size"
        raise ArgumentTypeError(compose("vmap", required, type(chunk_size).__name__))
    if chunk_size < 1:
        required = "a chunk_size of at least 1 required"
        raise ArgumentError(compose("vmap", required, str(chunk_size)))


class Vmapped(Transformed):
    """A function of many samples."""

    def __init__(
        self, fun: Function, in_axes: Any, out_axes: Any, chunk_size: int | None, randomness: str
    ) -> None:
        super().__init__(
            vmap,
            fun,
            in_axes=in_axes,
            out_axes=out_axes,
            chunk_size=chunk_size,
            randomness=randomness,
        )
        self._in_axes, self._out_axes = in_axes, out_axes
        self._chunk, self._randomness = chunk_size, randomness

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Compute the function for all samples."""
        found = argument_leaves(self._in_axes, args, kwargs)
        size = size_of_batch(found)
        given = [leaf.value for leaf in found if is_numeric(leaf.value)]
        library = batches(new_level([x for x in given if isinstance(x, Tensor)]))
        samples = [None if leaf.axis is None else _samples_first(leaf) for leaf in found]
        step = size if self._chunk is None else int(self._chunk)
        outs: list[Any] = []
        for start, draws in zip(range(0, size, step), self._draws(), strict=False):
            part = [x if x is None or step >= size else x[start : start + step] for x in samples]
            with draws:
                outs.append(self._on_batch(library, args, kwargs, found, part))
        result = outs[0] if len(outs) == 1 else _joined(self._out_axes, outs)
        results, structure = flatten(result)
        results = [_apart(x, given) for x in results]
        return unflatten(structure, leaves_as_given(results, given))

    def _draws(self) -> Iterator[AbstractContextManager[Any]]:
        """Yield what the random draws of each chunk happen in."""
        drawn: Drawn = {}
        if self._randomness == "same" and self._chunk is not None:
            yield watched(drawn)
            while True:
                yield replayed(drawn)
        while True:
            yield nullcontext()

    def _on_batch(
        self,
        library: BatchLibrary,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        found: Sequence[Leaf],
        samples: Sequence[Tensor | None],
    ) -> Any:
        """Return the results for samples whose axis comes first."""
        size = next(x.shape[0] for x in samples if x is not None)
        standing = [
            leaf.value
            if x is None
            else box(library.array_class(part_of(x)), cls=class_for(leaf.value))
            for leaf, x in zip(found, samples, strict=True)
        ]
        new_args, new_kwargs = unflatten(flatten([list(args), kwargs])[1], standing)
        shared = [leaf.value for leaf in found if isinstance(leaf.value, Tensor)]
        result = run_wrapped(
            library, lambda: self._fun(*new_args, **new_kwargs), size, self._randomness, shared
        )
        return _results(library, self._fun, result, self._out_axes, size)


def _samples_first(leaf: Leaf) -> Tensor:
    """Return an argument as a tensor whose first axis is that of the samples."""
    tensor = leaf.value if isinstance(leaf.value, Tensor) else asarray(leaf.value)
    moved: Tensor = TENSOR_XP.moveaxis(tensor, leaf.axis, 0) if leaf.axis else tensor
    return moved


# -- results ---------------------------------------------------------------------------------------
def _results(library: BatchLibrary, fun: Function, result: Any, out_axes: Any, size: int) -> Any:
    """Return the results of all samples, with their axis where `out_axes` says."""
    results, structure = flatten(result)
    if all(x is None for x in results):
        required = f"a result of {name_of(fun)} required"
        hint = "return the tensors that vmap is to give back"
        came = "None" if result is None else "an empty one"
        raise ArgumentTypeError(compose("vmap", required, came, hint=hint))
    found = matched("out_axes", f"the result of {name_of(fun)}", out_axes, result)
    return unflatten(structure, [_with_axis(library, leaf, size) for leaf in found])


def _with_axis(library: BatchLibrary, leaf: Leaf, size: int) -> Any:
    part, has_axis = _part(library, _as_result(leaf))
    if leaf.axis is None:
        if has_axis:
            required = f"an axis for {leaf.path} required in out_axes, as it differs by sample"
            raise ArgumentError(compose("vmap", required, "None"))
        return part
    part = part if has_axis else _repeated(part, size)
    axis = axis_within(leaf.axis, len(part.shape), leaf)
    return TENSOR_XP.moveaxis(part, 0, axis) if axis else part


def _part(library: BatchLibrary, value: Tensor) -> tuple[Tensor, bool]:
    """Return what a batch holds, as a tensor, and whether its first axis is that of the samples."""
    array = value.data_array()
    if not library.has(array):
        part, has_axis = value, False
    else:
        part, has_axis = tensor_of_part(array.value, value.__class__), array.batched
    if part.requires_grad and not depends_on_outer_level(part, library.level):
        part = part._alias()  # it depends on nothing that can be differentiated by
    return part, has_axis


def _repeated(part: Tensor, size: int) -> Tensor:
    repeated: Tensor = TENSOR_XP.broadcast_to(part, (size, *part.shape)).clone()
    return repeated


def _as_result(leaf: Leaf) -> Tensor:
    if isinstance(leaf.value, Tensor):
        return leaf.value
    if is_array(leaf.value) or isinstance(leaf.value, (bool, int, float, complex, numpy_scalar)):
        return asarray(leaf.value)
    required = f"tensors, arrays or numbers required in {leaf.path}"
    raise ArgumentTypeError(compose("vmap", required, type(leaf.value).__name__))


def _joined(out_axes: Any, outs: Sequence[Any]) -> Any:
    """Return the results of chunks as one; what is the same for all samples is so for chunks."""
    axes = [leaf.axis for leaf in matched("out_axes", "the result", out_axes, outs[0])]
    columns = zip(axes, zip(*[flatten(out)[0] for out in outs], strict=True), strict=True)
    joined = [xs[0] if a is None else TENSOR_XP.concat(list(xs), axis=a) for a, xs in columns]
    return unflatten(flatten(outs[0])[1], joined)


def for_rows(
    function: Callable[[Tensor], Sequence[Tensor]],
    rows: Callable[[int, int], Tensor],
    count: int,
    at_once: int,
) -> list[Tensor]:
    """Return the tensors that a function gives for each of `count` rows, stacked.

    It is what `vmap` computes, of one tensor with its axis in front, and tensors that share no
    memory with it. Of `at_once` rows together, which ``rows(start, stop)`` returns.
    """
    blocks = []
    for start in range(0, count, at_once):
        block = rows(start, start + at_once)
        library = batches(new_level([block]))
        row, size = box(library.array_class(part_of(block)), cls=block.__class__), len(block)
        found = run_wrapped(library, functools.partial(function, row), size, "error")
        parts = [_part(library, tensor) for tensor in found]
        blocks.append([part if stacked else _repeated(part, size) for part, stacked in parts])
    if len(blocks) == 1:
        return [_apart(result, [block]) for result in blocks[0]]
    return [TENSOR_XP.concat(list(column)) for column in zip(*blocks, strict=True)]


def _apart(result: Tensor, given: Sequence[Any]) -> Tensor:
    """Return a result that shares no memory with the arguments: it is no view of theirs."""
    if result.requires_grad:
        return result
    array = result.data_array()
    library = library_of(array)
    if not library.mutable:
        return result
    arrays = [x.data_array() if isinstance(x, Tensor) else x for x in given]
    if library.owns(array) and all(array is not a for a in arrays):
        return result if result._base is None else box(array, cls=result.__class__)
    return box(library.copy(array), cls=result.__class__)


# -- mapped axes -----------------------------------------------------------------------------------
class Leaf(NamedTuple):
    """What is no container, its path, and the axis of the samples; None for none."""

    path: str
    value: Any
    axis: int | None


def is_numeric(value: Any) -> bool:
    """Return whether a value is a tensor or an array."""
    return isinstance(value, Tensor) or is_array(value)


def argument_leaves(in_axes: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Leaf]:
    """Return the leaves of all arguments, positional ones first.

    Raises
    ------
    ArgumentError, ArgumentTypeError, TensorIndexError
        If `in_axes` does not fit the arguments.
    """
    axes = in_axes
    if in_axes is None or _is_axis(in_axes):
        axes = (in_axes,) * len(args)
    elif not isinstance(in_axes, (tuple, list)):
        required = "an axis, or a tuple with one item for each positional argument, as in_axes"
        came = type(in_axes).__name__
        raise ArgumentTypeError(compose("vmap", f"{required} required", came))
    elif len(in_axes) != len(args):
        required = f"an item of in_axes for each of {len(args)} positional arguments required"
        raise ArgumentError(compose("vmap", required, f"{len(in_axes)}: {in_axes!r}"))
    result = [
        leaf
        for i, (axis, value) in enumerate(zip(axes, args, strict=True))
        for leaf in matched("in_axes", f"argument {i}", axis, value)
    ]
    for name, value in kwargs.items():
        for path, leaf in named_leaves(f"argument {name!r}", value):
            result.append(Leaf(path, leaf, 0 if is_numeric(leaf) else None))
    return [leaf if leaf.axis is None else _checked(leaf) for leaf in result]


def matched(setting: str, path: str, axes: Any, value: Any) -> Iterator[Leaf]:
    """Yield the leaves of a value, each with its axis.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        If `axes` is no axis and no container of the value's form.
    """
    if axes is None or _is_axis(axes):
        axis = None if axes is None else int(axes)
        if children(value) is None:
            yield Leaf(path, value, axis)
            return
        yield from (Leaf(name, leaf, axis) for name, leaf in named_leaves(path, value))
        return
    given, wanted = children(axes), children(value)
    if given is None:
        required = f"an integer, None or a container of those required as {setting} of {path}"
        raise ArgumentTypeError(compose("vmap", required, repr(axes)))
    if wanted is None or {k for k, _ in given} != {k for k, _ in wanted}:
        required = f"{setting} of the structure of {path} required, {_structure(value)}"
        raise ArgumentError(compose("vmap", required, _structure(axes)))
    by_key = dict(given)
    for key, item in wanted:
        yield from matched(setting, path_of(path, value, key), by_key[key], item)


def _is_axis(value: Any) -> bool:
    if value.__class__ is int:
        return True
    return hasattr(value, "__index__") and not isinstance(value, (bool, Tensor))


def _structure(value: Any) -> str:
    items = children(value)
    if items is None:
        return type(value).__name__
    return f"{type(value).__name__} of {', '.join(str(k) for k, _ in items) or 'nothing'}"


def _checked(leaf: Leaf) -> Leaf:
    """Return a mapped leaf with its axis counted from the front."""
    if not is_numeric(leaf.value):
        required = f"a tensor or an array required in {leaf.path} to map over axis {leaf.axis}"
        hint = "give None in in_axes for what all samples share"
        came = type(leaf.value).__name__
        raise ArgumentTypeError(compose("vmap", required, came, hint=hint))
    axis = axis_within(leaf.axis, len(leaf.value.shape), leaf)
    return leaf if axis == leaf.axis else leaf._replace(axis=axis)


def axis_within(axis: Any, ndim: int, leaf: Leaf) -> int:
    """Return an axis counted from the front, or raise naming where it was given for."""
    if not -ndim <= axis < ndim:
        required = f"an axis of {leaf.path} required, from {-ndim} to {ndim - 1}"
        if not ndim:
            required = f"a tensor with an axis to map over required in {leaf.path}"
            hint = "give None in in_axes for what all samples share"
            raise TensorIndexError(compose("vmap", required, "0 dimensions", hint=hint))
        raise TensorIndexError(compose("vmap", required, str(axis), (leaf.path, leaf.value)))
    return int(axis) % ndim


def size_of_batch(leaves: list[Leaf]) -> int:
    """Return the length that the mapped axes of all arguments have.

    Raises
    ------
    ArgumentError, ShapeError
        If nothing is mapped; if lengths differ or are 0.
    """
    sizes = {leaf.path: leaf.value.shape[leaf.axis] for leaf in leaves if leaf.axis is not None}
    if not sizes:
        required = "at least one argument to map over required"
        hint = "call the function itself, or give an axis in in_axes"
        raise ArgumentError(compose("vmap", required, "none", hint=hint))
    size = next(iter(sizes.values()))
    if any(n != size for n in sizes.values()):
        came = ", ".join(f"{n} in {path}" for path, n in sizes.items())
        raise ShapeError(compose("vmap", "one length of all mapped axes required", came))
    if size == 0:
        required = "at least one sample required"
        raise ShapeError(compose("vmap", required, f"an axis of length 0 in {next(iter(sizes))}"))
    return int(size)
