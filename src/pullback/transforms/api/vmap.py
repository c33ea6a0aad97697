"""`vmap`: a function of one sample as a function of many.

Owns the call: ``in_axes`` and ``out_axes``, one axis for a whole container or a container of axes
of its form; chunks; and results with their axis. What a batch computes is the business of batch/.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pullback.arrays import is_array, library_of
from pullback.core.custom.pytree import Structure, children, flatten, path_of, paths_of, unflatten
from pullback.core.function.namespace import TENSOR_XP
from pullback.core.tensor.tensor import Tensor, box, tensor_class
from pullback.errors import ArgumentError, ArgumentTypeError, ShapeError, TensorIndexError, compose
from pullback.hints import hinted
from pullback.numpy_protocol.tensor import NumPyTensor
from pullback.ops.functions.creation import asarray
from pullback.transforms.api.arguments import Function, Transformed, name_of, tensor_for
from pullback.transforms.api.recording import leaves_as_given
from pullback.transforms.batch.array import BatchLibrary
from pullback.transforms.batch.user_ops import draws
from pullback.transforms.directions import described
from pullback.transforms.levels import Running, depends_on_outer_level, new_level
from pullback.transforms.wrapped import (
    Wrapped,
    escaped,
    numpy_scalar,
    part_of,
    run_wrapped,
    tensor_of_part,
)


@hinted
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
    if randomness not in ("error", "same", "different"):
        required = 'randomness "error", "same" or "different" required'
        raise ArgumentError(compose("vmap", required, repr(randomness)))
    if chunk_size is not None:
        _check_chunk(chunk_size)
    settings = {"chunk_size": chunk_size, "randomness": randomness}
    return Vmapped(vmap, fun, in_axes=in_axes, out_axes=out_axes, **settings)


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

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Compute the function for all samples."""
        mapped = _Mapped(self._settings["in_axes"], args, kwargs)
        library = BatchLibrary.at_level(new_level(mapped.tensors))
        samples, size = mapped.samples(), mapped.size
        chunk_size = self._settings["chunk_size"]
        step = size if chunk_size is None else int(chunk_size)
        outs: list[list[Any]] = []
        # Each chunk has draws of its own, or those of the first.
        kind = "same" if self._settings["randomness"] == "same" else "different"
        for start, drawn in zip(range(0, size, step), draws(kind, "vmap"), strict=False):
            part = samples
            if step < size:
                part = [x if x is None else x[start : start + step] for x in samples]
            with drawn:
                chunk, structure = self._on_batch(library, mapped, part, min(step, size - start))
                outs.append(chunk)
        results = outs[0] if len(outs) == 1 else self._joined(outs, structure)
        results = _apart(results, mapped.arrays)
        return unflatten(structure, leaves_as_given(results, mapped.arrays))

    def _on_batch(
        self, library: BatchLibrary, mapped: _Mapped, samples: Sequence[Tensor | None], size: int
    ) -> tuple[list[Any], Structure | None]:
        """Return the results for samples whose axis comes first, and their containers."""
        running = Running(library, size, self._settings["randomness"])
        standing = [
            leaf
            if x is None
            else box(library.array_class(part_of(x), True, running), cls=x.__class__)
            for leaf, x in zip(mapped.leaves, samples, strict=True)
        ]
        args, kwargs = unflatten(mapped.structure, standing)
        function = functools.partial(self._fun, *args, **kwargs)
        result = run_wrapped(running, function, mapped.tensors)
        results, structure = flatten(result)
        if not [x for x in results if x is not None]:
            required = f"a result of {name_of(self._fun)} required"
            hint = "return the tensors that vmap is to give back"
            came = "None" if result is None else "an empty one"
            raise ArgumentTypeError(compose("vmap", required, came, hint=hint))
        axes = self._result_axes(results, structure)
        for i, (x, axis) in enumerate(zip(results, axes, strict=True)):
            part, has_axis = _part(running, self._as_result(x, i, structure, samples))
            if axis is not None:
                part = part if has_axis else _repeated(part, size)
                axis = _from_front(axis, part, functools.partial(self._path, i, structure))
                part = TENSOR_XP.moveaxis(part, 0, axis) if axis else part
            elif has_axis:
                path = self._path(i, structure)
                required = f"an axis for {path} required in out_axes, as it differs by sample"
                raise ArgumentError(compose("vmap", required, "None"))
            results[i] = part
        return results, structure

    def _as_result(
        self, leaf: Any, i: int, structure: Structure | None, samples: Sequence[Any]
    ) -> Tensor:
        if isinstance(leaf, Tensor):
            return leaf
        if is_array(leaf) or isinstance(leaf, (bool, int, float, complex, numpy_scalar)):
            # In code for NumPy's arrays a number of Python is float64.
            found = tensor_for(leaf) if tensor_class(samples) is NumPyTensor else None
            return asarray(leaf) if found is None else found
        required = f"tensors, arrays or numbers required in {self._path(i, structure)}"
        raise ArgumentTypeError(compose("vmap", required, type(leaf).__name__))

    def _path(self, i: int, structure: Structure | None) -> str:
        """Return what errors call a leaf of the result."""
        return [*paths_of(f"the result of {name_of(self._fun)}", structure)][i]

    def _result_axes(self, leaves: Sequence[Any], structure: Structure | None) -> list[Any]:
        name = f"the result of {name_of(self._fun)}"
        return _axes("out_axes", name, self._settings["out_axes"], leaves, structure)

    def _joined(self, outs: Sequence[Sequence[Any]], structure: Structure | None) -> list[Any]:
        """Return the results of chunks as one; what is the same for all samples is for chunks."""
        axes = self._result_axes(outs[0], structure)
        columns = zip(axes, zip(*outs, strict=True), strict=True)
        return [xs[0] if a is None else TENSOR_XP.concat(list(xs), axis=a) for a, xs in columns]


# -- results ---------------------------------------------------------------------------------------
def _part(running: Running, value: Tensor) -> tuple[Tensor, bool]:
    """Return what a batch holds, as a tensor, and whether its first axis is that of the samples."""
    array, library = value.data_array(), running.library
    part, has_axis = value, False
    if array.__class__ is library.array_class:
        if array.running is not running and not library.is_constant(array):
            raise escaped(array)
        part, has_axis = tensor_of_part(array.value, value.__class__), array.batched
    elif isinstance(array, Wrapped):  # of an outer level, or left from a call in this one
        array.library.one_run((array,))
    if part.requires_grad and not depends_on_outer_level(library.level, (part,)):
        part = part._alias()  # it depends on nothing that can be differentiated by
    return part, has_axis


def _repeated(part: Tensor, size: int) -> Tensor:
    repeated: Tensor = TENSOR_XP.broadcast_to(part, (size, *part.shape)).clone()
    return repeated


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
        library = BatchLibrary.at_level(new_level([block]))
        running = Running(library, len(block), "error")
        row = box(library.array_class(part_of(block), True, running), cls=block.__class__)
        found = run_wrapped(running, functools.partial(function, row))
        parts = [_part(running, tensor) for tensor in found]
        blocks.append([part if stacked else _repeated(part, len(block)) for part, stacked in parts])
    if len(blocks) == 1:
        return _apart(blocks[0], [block])
    return [TENSOR_XP.concat(list(column)) for column in zip(*blocks, strict=True)]


def _apart(results: Sequence[Tensor], given: Sequence[Any]) -> list[Tensor]:
    """Return results that share no memory with the arguments: they are no views of theirs."""
    arrays = {id(x.data_array() if isinstance(x, Tensor) else x) for x in given}
    apart = []
    for result in results:
        if not result.requires_grad:
            array = result.data_array()
            library = library_of(array)
            if library.mutable:
                if not library.owns(array) or id(array) in arrays:
                    array = library.copy(array)
                if array is not result._data or result._base is not None:
                    result = box(array, cls=result.__class__)
        apart.append(result)
    return apart


# -- mapped axes -----------------------------------------------------------------------------------
class _Mapped:
    """The arguments of a call, and which axis of each is that of the samples."""

    def __init__(self, in_axes: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.leaves, structure = flatten((args, kwargs))
        assert structure is not None
        self.structure = structure
        # The axis of each leaf, counted from the front; None for what all samples share.
        self.axes = axes = self._of_positional(in_axes, len(args))
        named = len(axes)  # these have the axis 0 if they are arrays
        self.arrays, self.tensors, self.size = [], [], -1
        for i, leaf in enumerate(self.leaves):
            is_tensor = isinstance(leaf, Tensor)
            is_numeric = is_tensor or is_array(leaf)
            if is_numeric:
                self.arrays.append(leaf)
            if is_tensor:
                self.tensors.append(leaf)
            if i >= named:
                axes.append(0 if is_numeric else None)
            if axes[i] is not None:
                self._map(i, leaf, is_numeric)
        if self.size < 0:
            required = "at least one argument to map over required"
            hint = "call the function itself, or give an axis in in_axes"
            raise ArgumentError(compose("vmap", required, "none", hint=hint))

    def samples(self) -> list[Tensor | None]:
        """Return the mapped leaves as tensors whose first axis is that of the samples."""
        result: list[Tensor | None] = []
        for leaf, axis in zip(self.leaves, self.axes, strict=True):
            tensor = None if axis is None else tensor_for(leaf)
            result.append(TENSOR_XP.moveaxis(tensor, axis, 0) if axis else tensor)
        return result

    def _of_positional(self, in_axes: Any, count: int) -> list[Any]:
        inner, _ = self.structure.items
        assert inner is not None
        if in_axes is None or _is_axis(in_axes):
            return [in_axes] * inner.size
        if not isinstance(in_axes, (tuple, list)):
            required = "an axis, or a tuple with one item for each positional argument, as in_axes"
            came = type(in_axes).__name__
            raise ArgumentTypeError(compose("vmap", f"{required} required", came))
        if len(in_axes) != count:
            required = f"an item of in_axes for each of {count} positional arguments required"
            raise ArgumentError(compose("vmap", required, f"{len(in_axes)}: {in_axes!r}"))
        axes: list[Any] = []
        for i, (axis, structure) in enumerate(zip(in_axes, inner.items, strict=True)):
            axes += _axes("in_axes", f"argument {i}", axis, self.leaves[len(axes) :], structure)
        return axes

    def _map(self, i: int, leaf: Any, is_numeric: bool) -> None:
        """Count a mapped leaf's axis from the front; its length is the number of samples."""
        if not is_numeric:
            required = f"a tensor or an array required in {self._path(i)} to map over axis"
            came = type(leaf).__name__
            raise ArgumentTypeError(
                compose("vmap", f"{required} {self.axes[i]}", came, hint=_SHARED)
            )
        self.axes[i] = axis = _from_front(self.axes[i], leaf, functools.partial(self._path, i))
        size = int(leaf.shape[axis])
        if self.size not in (-1, size):
            pairs = zip(self.leaves[: i + 1], self.axes, strict=False)
            sizes = {self._path(k): x.shape[a] for k, (x, a) in enumerate(pairs) if a is not None}
            came = ", ".join(f"{n} in {path}" for path, n in sizes.items())
            raise ShapeError(compose("vmap", "one length of all mapped axes required", came))
        if size == 0:
            came = f"an axis of length 0 in {self._path(i)}"
            raise ShapeError(compose("vmap", "at least one sample required", came))
        self.size = size

    def _path(self, i: int) -> str:
        """Return what errors call a leaf."""
        pairs = [(f"argument {k!r}", x) for s in self.structure.items for k, x in _items(s)]
        return [path for name, inner in pairs for path in paths_of(name, inner)][i]


_SHARED = "give None in in_axes for what all samples share"


def _items(structure: Structure | None) -> Iterator[tuple[Any, Structure | None]]:
    return iter(()) if structure is None else zip(structure.keys, structure.items, strict=True)


def _axes(
    setting: str, path: str, axes: Any, leaves: Sequence[Any], structure: Structure | None
) -> list[int | None]:
    """Return the axis of each leaf, from one axis for all or a container of them."""
    if axes is None or _is_axis(axes):
        return [axes] * (1 if structure is None else structure.size)
    given = children(axes)
    if given is None:
        required = f"an integer, None or a container of those required as {setting} of {path}"
        raise ArgumentTypeError(compose("vmap", required, repr(axes)))
    items = dict(given)
    if structure is None or items.keys() != {*structure.keys}:
        wanted = described(leaves[0] if structure is None else structure.like)
        required = f"{setting} of the structure of {path} required, {wanted}"
        raise ArgumentError(compose("vmap", required, described(axes)))
    result: list[int | None] = []
    for key, inner in _items(structure):
        within = path_of(path, structure.like, key)
        result += _axes(setting, within, items[key], leaves[len(result) :], inner)
    return result


def _is_axis(value: Any) -> bool:
    if value.__class__ is int:
        return True
    return hasattr(value, "__index__") and not isinstance(value, (bool, Tensor))


def _from_front(axis: Any, value: Any, path: Callable[[], str]) -> int:
    """Return an axis counted from the front, or raise naming where it was given for."""
    ndim = len(value.shape)
    if -ndim <= axis < ndim:
        return int(axis) % ndim
    if not ndim:
        required = f"a tensor with an axis to map over required in {path()}"
        raise TensorIndexError(compose("vmap", required, "0 dimensions", hint=_SHARED))
    required = f"an axis of {path()} required, from {-ndim} to {ndim - 1}"
    raise TensorIndexError(compose("vmap", required, str(axis), (path(), value)))
