"""Batching rules: how an operation computes all samples of a batch at once.

Owns a rule for each operation that has one, and the loop over the samples for any other. A rule
gets a `BatchedCall` and returns the results, tensors whose first axis is that of the samples; or
NotImplemented where it does not fit, for the loop. Which rule an operation has it declares itself,
as `batch`. Element-wise operations need no rule of their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from pullback.core.function.namespace import TENSOR_XP
from pullback.core.function.primitive import Primitive
from pullback.core.tensor.tensor import Tensor
from pullback.errors import ShapeError
from pullback.ops.axes import normalize_axes, normalize_axis
from pullback.transforms.batch.batched_call import BatchedCall, aligned, refused, with_ones
from pullback.transforms.batch.indexing import INDEXING, sample_of, size_of
from pullback.transforms.wrapped import is_numbers, results_in, results_of, to_tensor

_Rule = Callable[[BatchedCall], Any]
# By what operations declare as `batch`.
RULES: dict[str, _Rule] = {**INDEXING}


def _rule(batch: str) -> Callable[[_Rule], _Rule]:
    """Register a rule by what operations that it is for declare."""

    def decorate(rule: _Rule) -> _Rule:
        RULES[batch] = rule
        return rule

    return decorate


def batched_results(
    library: Any,
    xp: Any,
    op: Primitive,
    values: Sequence[Any],
    batched: Sequence[bool],
    settings: dict[str, Any],
) -> tuple[Sequence[Any], bool]:
    """Return the results of an operation on parts, and whether they have an axis of samples."""
    size = None
    for value, has_axis in zip(values, batched, strict=True):
        if has_axis:
            size = value.shape[0]
            break
    if op.elementwise and size is not None:
        return results_in(xp, op, aligned(values, batched), settings), True
    if "index" in settings and size is None:
        size = size_of(library, settings["index"])
    if size is None:
        settings = sample_of(library, settings, 0) if "index" in settings else settings
        return results_in(xp, op, values, settings), False
    call = BatchedCall(library, xp, op, values, batched, settings, size)
    rule = RULES.get(op.batch)
    result: Any = NotImplemented if rule is None else rule(call)
    if result is NotImplemented:
        result = _each_sample(call)
    return (result if isinstance(result, (list, tuple)) else [result]), True


def _each_sample(call: BatchedCall) -> list[Any]:
    """Call the operation for each sample by itself, and stack the results."""
    tensors = [to_tensor(t) if is_numbers(t) else t for t in call.tensors]
    rows = [
        results_of(
            call.op,
            [t[i] if b else t for t, b in zip(tensors, call.batched, strict=True)],
            sample_of(call.library, call.settings, i),
        )
        for i in range(call.size)
    ]
    return stacked(call.library, call.op.name, rows)


def stacked(library: Any, name: str, rows: Sequence[Sequence[Tensor]]) -> list[Tensor]:
    """Return what was computed for each sample with the axis of the samples first."""
    try:
        return [TENSOR_XP.stack(list(column)) for column in zip(*rows, strict=True)]
    except ShapeError as error:
        shapes = next(s for c in zip(*rows, strict=True) if len(s := {t.shape: 0 for t in c}) > 1)
        required = f"results of {name} of one shape for all samples required"
        hint = (
            "a shape that depends on values cannot be batched: keep all elements and choose by "
            "pb.where or a product with a mask, or loop over the samples"
        )
        first, second, *_ = shapes
        raise refused(library, required, f"the shapes {first} and {second}", hint) from error


# -- element by element, and along leading axes ----------------------------------------------------
_rule("aligned")(lambda call: call.results(*aligned(call.tensors, call.batched)))
_rule("leading")(lambda call: call.results(*call.whole()))


# -- along axes ------------------------------------------------------------------------------------
@_rule("reduction")
def _reduction(call: BatchedCall) -> Any:
    (x,), axis, keepdims = call.tensors, call.settings["axis"], call.settings.get("keepdims")
    ndim = len(x.shape) - 1
    axes = normalize_axes(call.op.name, axis, ndim)
    if ndim == 0:  # one element
        changed = {} if keepdims is None else {"keepdims": False}
        return call.result(x.reshape((call.size, 1)), axis=1, **changed)
    if axis.__class__ is int:
        return call.result(x, axis=axes[0] + 1)
    return call.result(x, axis=tuple([a + 1 for a in axes]))


@_rule("argmax")
def _place(call: BatchedCall) -> Any:
    """Find the place of an extreme: along one axis, or of all elements in a row."""
    (x,), axis = call.tensors, call.settings["axis"]
    if axis is not None and len(x.shape) > 1:
        return call.result(x, axis=normalize_axis(call.op.name, axis, len(x.shape) - 1) + 1)
    flat = x.reshape((call.size, math.prod(x.shape[1:])))
    result = call.result(flat, axis=1, keepdims=False)
    ones = (1,) * (len(x.shape) - 1) if call.settings["keepdims"] else ()
    return result.reshape((call.size, *ones))


def _along(setting: str) -> _Rule:
    """Return the rule of an operation that works along the axis, or axes, of a setting."""

    def rule(call: BatchedCall) -> Any:
        ndim = len(call.tensors[0].shape) - 1
        axis = call.settings[setting]
        if ndim == 0 or axis is None:
            return NotImplemented
        shifted: Any = tuple(a + 1 for a in normalize_axes(call.op.name, axis, ndim))
        shifted = shifted if isinstance(axis, (tuple, list)) else shifted[0]
        return call.results(*call.tensors, **{setting: shifted})

    return rule


_rule("axis")(_along("axis"))
_rule("axes")(_along("axes"))


@_rule("fold_axis")
def _fold_dim(call: BatchedCall) -> Any:
    shape, axis = call.settings["shape"], call.settings["axis"]
    if not shape:
        return NotImplemented
    return call.result(*call.tensors, axis=axis % len(shape) + 1, shape=(call.size, *shape))


@_rule("concat")
def _cat(call: BatchedCall) -> Any:
    axis = normalize_axis("concat", call.settings.get("axis", 0), call.ndim(0))
    return call.result(*call.whole(), axis=axis + 1) if call.ndim(0) else NotImplemented


@_rule("stack")
def _stack(call: BatchedCall) -> Any:
    axis = normalize_axis("stack", call.settings.get("axis", 0), call.ndim(0) + 1)
    return call.result(*call.whole(), axis=axis + 1)


@_rule("cross")
def _cross(call: BatchedCall) -> Any:
    axis, ndim = call.settings["axis"], max(map(call.ndim, range(2)))
    axis = axis - ndim if axis >= 0 else axis
    return call.result(*aligned(call.tensors, call.batched), axis=axis)


# -- shapes ----------------------------------------------------------------------------------------
@_rule("reshape")
def _reshape(call: BatchedCall) -> Any:
    (x,), shape = call.tensors, call.settings["shape"]
    if -1 in shape:
        rest = math.prod(n for n in shape if n != -1)
        if rest == 0:
            return NotImplemented
        left = math.prod(x.shape[1:]) // rest
        shape = tuple(left if n == -1 else n for n in shape)
    return call.result(x, shape=(call.size, *shape))


@_rule("permute_dims")
def _permute(call: BatchedCall) -> Any:
    ndim = call.ndim(0)
    axes = [normalize_axis("permute", a, ndim) + 1 for a in call.settings["axes"]]
    return call.result(*call.tensors, axes=(0, *axes))


@_rule("broadcast_to")
def _broadcast_to(call: BatchedCall) -> Any:
    shape = call.settings["shape"]
    if call.ndim(0) > len(shape):
        return NotImplemented
    return call.result(with_ones(call.tensors[0], len(shape)), shape=(call.size, *shape))


def _with_shapes(*names: str) -> _Rule:
    """Return the rule of an operation whose settings of these names are shapes."""

    def rule(call: BatchedCall) -> Any:
        shapes = {name: (call.size, *call.settings[name]) for name in names}
        return call.result(*call.tensors, **shapes)

    return rule


_rule("tile")(_with_shapes("split", "wide", "shape"))
_rule("diag_embed")(_with_shapes("shape"))
_rule("pad")(lambda call: call.result(*call.tensors, widths=((0, 0), *call.settings["widths"])))


@_rule("copy")
def _copy(call: BatchedCall) -> Any:
    src = call.tensors[1]
    src = with_ones(src, call.ndim(0)) if call.batched[1] else src
    return call.result(call.whole()[0], src)


# -- products --------------------------------------------------------------------------------------
@_rule("matmul")
def _matmul(call: BatchedCall) -> Any:
    (x, y), (in_x, in_y) = call.tensors, call.batched
    left, right = call.ndim(0), call.ndim(1)
    xp = call.xp
    if in_x and not in_y and left == 1 and right <= 2:
        return xp.matmul(x, y)  # the samples are the rows of one matrix
    if in_y and not in_x and right == 1 and left == 2:
        return xp.matmul(y, x.mT)
    if in_x and in_y and left == right == 1:
        return xp.sum(x * y, axis=-1)
    x = xp.expand_dims(x, axis=-2) if left == 1 else x
    y = xp.expand_dims(y, axis=-1) if right == 1 else y
    ndim = max(left, right, 2)
    x = with_ones(x, ndim) if in_x else x
    y = with_ones(y, ndim) if in_y else y
    product = xp.matmul(x, y)
    dropped = [-2] * (left == 1) + [-1] * (right == 1)
    shape = [n for i, n in enumerate(product.shape) if i - len(product.shape) not in dropped]
    return product.reshape(tuple(shape)) if dropped else product


@_rule("outer")
def _outer(call: BatchedCall) -> Any:
    x, y = call.tensors
    return call.xp.multiply(x[..., :, None], y[..., None, :])


@_rule("linear")
def _linear(call: BatchedCall) -> Any:
    x, weight, *bias = call.tensors
    if True not in call.batched[1:]:
        return call.result(x, weight, *bias)
    lead = x.shape[call.batched[0] : -1]
    rows = x.reshape((call.size if call.batched[0] else 1, math.prod(lead), x.shape[-1]))
    product = call.xp.matmul(rows, weight.mT)
    if bias:
        product = product + (bias[0][:, None] if call.batched[2] else bias[0])
    return product.reshape((call.size, *lead, weight.shape[-2]))


@_rule("steps")
def _steps(call: BatchedCall) -> Any:
    """Run sequences of several samples side by side, where they have one weight."""
    if call.batched[1]:
        return NotImplemented
    x, _, *states = call.whole()
    x = call.xp.moveaxis(x, 0, 1)
    return [call.xp.moveaxis(r, 1, 0) for r in call.results(x, call.tensors[1], *states)]


@_rule("contract")
def _contract(call: BatchedCall) -> Any:
    *inputs, out = call.settings["labels"]
    # The axis of the samples has a label of its own, as have those of other transforms outside.
    label = f"samples {len(out)}"
    inputs = [
        (label, *labels) if b else labels for labels, b in zip(inputs, call.batched, strict=True)
    ]
    return call.result(*call.tensors, labels=(*inputs, (label, *out)))


@_rule("solve")
def _solve(call: BatchedCall) -> Any:
    vector = call.ndim(1) == 1
    if not call.batched[0]:
        return _solve_with_one_matrix(call, vector)
    x, y = call.whole()
    y = call.xp.expand_dims(y, axis=-1) if vector else y
    ndim = max(len(x.shape), len(y.shape)) - 1
    result = call.result(with_ones(x, ndim), with_ones(y, ndim))
    return result.reshape(result.shape[:-1]) if vector else result


def _solve_with_one_matrix(call: BatchedCall, vector: bool) -> Any:
    """Solve the systems of all samples at once: their right-hand sides are more columns."""
    (x, y), xp = call.tensors, call.xp
    y = xp.moveaxis(y, 0, -1)
    columns = y if vector else y.reshape((*y.shape[:-2], y.shape[-2] * y.shape[-1]))
    result = call.result(x, columns)
    result = result if vector else result.reshape((*result.shape[:-1], *y.shape[-2:]))
    return xp.moveaxis(result, -1, 0)


# -- convolution -----------------------------------------------------------------------------------
@_rule("convolution")
def _convolution(call: BatchedCall) -> Any:
    """Convolve images with one weight as more images, those with their own in groups."""
    if not call.batched[1]:
        (x, weight), n = call.tensors, call.size
        result = call.result(x.reshape((n * x.shape[1], *x.shape[2:])), weight)
        return result.reshape((n, x.shape[1], *result.shape[1:]))
    if call.op.name == "convolution" and not call.batched[0] and call.settings["groups"] == 1:
        x, weight = call.tensors  # of all samples: their weights make more channels of it
        result = call.result(x, weight.reshape((-1, *weight.shape[2:])))
        return call.xp.moveaxis(_parted(result, 1, call.size), 1, 0)
    x, weight = call.whole()
    groups = call.size * call.settings["groups"]
    weight = weight.reshape((-1, *weight.shape[2:]))
    result = call.result(_as_channels(x, call.xp), weight, groups=groups)
    return call.xp.moveaxis(_parted(result, 1, call.size), 1, 0)


@_rule("convolution_weight")
def _convolution_weight(call: BatchedCall) -> Any:
    if call.settings["groups"] == 1 and not all(call.batched):  # one is that of all samples
        x, y = (
            _as_channels(t, call.xp) if b else t
            for t, b in zip(call.tensors, call.batched, strict=True)
        )
        axis = 0 if call.batched[1] else 1
        return call.xp.moveaxis(_parted(call.result(x, y), axis, call.size), axis, 0)
    x, y = call.whole()
    groups = call.size * call.settings["groups"]
    return _parted(
        call.result(_as_channels(x, call.xp), _as_channels(y, call.xp), groups=groups), 0, call.size
    )


def _as_channels(x: Any, xp: Any) -> Any:
    """Return images (samples, images, channels, ...) with the samples as more channels."""
    moved = xp.moveaxis(x, 0, 1)
    return moved.reshape((moved.shape[0], moved.shape[1] * moved.shape[2], *moved.shape[3:]))


def _parted(x: Any, axis: int, size: int) -> Any:
    shape = x.shape
    return x.reshape((*shape[:axis], size, shape[axis] // size, *shape[axis + 1 :]))


# -- by index --------------------------------------------------------------------------------------
@_rule("elements")
def _by_element(call: BatchedCall) -> Any:
    """Read or write elements, each sample with an index of its own."""
    shape = call.settings.get("shape")
    ndim = call.ndim(0) if shape is None else len(shape)
    if not ndim:
        return NotImplemented
    tensors = [with_ones(t, ndim) if is_numbers(t) else t for t in call.whole()]
    changed = {} if shape is None else {"shape": (call.size, *shape)}
    return call.result(*tensors, axis=call.settings["axis"] % ndim + 1, **changed)


@_rule("slices")
def _by_slice(call: BatchedCall) -> Any:
    """Read or write slices where all samples have one index."""
    shape = call.settings.get("shape")
    ndim = call.ndim(0) if shape is None else len(shape)
    if not ndim:
        return NotImplemented
    if call.batched[1]:
        return _own_slices(call, ndim, shape)
    tensors = list(call.whole())
    tensors[1] = call.tensors[1]
    if len(tensors) == 3 and call.batched[2] and call.ndim(2) == 0:
        return NotImplemented  # a number for each sample
    if len(tensors) == 3 and not call.ndim(2):
        tensors[2] = call.tensors[2]
    changed = {} if shape is None else {"shape": (call.size, *shape)}
    return call.result(*tensors, axis=call.settings["axis"] % ndim + 1, **changed)


def _own_slices(call: BatchedCall, ndim: int, shape: Any) -> Any:
    """Read slices by the index of each sample, as slices of all samples in a row."""
    axis = call.settings["axis"] % ndim
    index = call.tensors[1]
    count = len(index.shape) - 1
    if call.op.name == "take" and not call.batched[0]:
        return call.xp.moveaxis(call.result(call.tensors[0], index, axis=axis), axis, 0)
    if call.op.name == "take":
        x = call.xp.moveaxis(call.tensors[0], axis + 1, 1)
        result = call.result(_in_a_row(x), _numbered(index, x.shape[1], call.xp), axis=0)
        return call.xp.moveaxis(result, _range(1, count), _range(1 + axis, count))
    if call.op.name == "take_back":
        g = call.xp.moveaxis(call.whole()[0], _range(1 + axis, count), _range(1, count))
        rest = tuple(n for i, n in enumerate(shape) if i != axis)
        n = shape[axis]
        result = call.result(g, _numbered(index, n, call.xp), axis=0, shape=(call.size * n, *rest))
        return call.xp.moveaxis(result.reshape((call.size, n, *rest)), 1, axis + 1)
    return NotImplemented


def _range(start: int, count: int) -> tuple[int, ...]:
    return tuple(range(start, start + count))


def _in_a_row(x: Any) -> Any:
    return x.reshape((x.shape[0] * x.shape[1], *x.shape[2:]))


def _numbered(index: Any, n: int, xp: Any) -> Any:
    """Return indices among the `n` slices of each sample as indices among those of all samples."""
    starts = n * xp.arange(index.shape[0], device=index.device)
    return index + starts.reshape((-1, *(1,) * (len(index.shape) - 1)))


def _with_one(i: int) -> _Rule:
    """Return the rule of an operation that all samples must have one input `i` for."""
    return lambda call: NotImplemented if call.batched[i] else call.result(*call.tensors)


_rule("searchsorted")(_with_one(0))
_rule("isin")(_with_one(1))
