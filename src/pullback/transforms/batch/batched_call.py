"""A call of an operation on a batch, as its batching rule sees it.

Rules run on tensors where something is recorded, or wrapped further in; on the default library's
own arrays else, which is quicker. Both have the methods and the namespace `xp` that rules use.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.arrays import NUMPY, ndarray
from pullback.core.debug.anomaly import call_site
from pullback.core.function.dispatch import UNFIT, kernel_of
from pullback.core.function.primitive import Primitive
from pullback.errors import BatchedValueError, compose
from pullback.transforms.wrapped import is_numbers, results_in


def with_ones(x: Any, ndim: int) -> Any:
    """Return samples with that many axes each at least, those of length 1 in front."""
    missing = ndim + 1 - len(x.shape)
    return x if missing <= 0 else x.reshape((x.shape[0], *(1,) * missing, *x.shape[1:]))


def aligned(values: Sequence[Any], batched: Sequence[bool]) -> Sequence[Any]:
    """Return the inputs of an element-wise operation such that they broadcast as in one sample."""
    if len(values) == 1:
        return values
    pairs = list(zip(values, batched, strict=True))
    ndim = max([len(v.shape) - b for v, b in pairs if is_numbers(v)])
    return [with_ones(v, ndim) if b else v for v, b in pairs]


def elementwise_of(
    array_class: Any, op: Primitive, arrays: Sequence[Any], settings: dict[str, Any]
) -> Any:
    """Return the result of an operation of one or two inputs on batches of plain float arrays.

    None where anything is unusual, for the general way. `array_class` is the class of the batches.
    """
    kernel, floats = op.kernels.get(ndarray) or kernel_of(op, ndarray)
    values: list[Any] = []
    batched, ranks, running = [], [], None
    for a in arrays:
        if a.__class__ is array_class:
            value, has_axis = a.value, a.batched
            if value.__class__ is not ndarray or value.dtype not in floats:
                return None
            if has_axis and (own := a.running) is not running:
                if running is not None or own.ended:
                    return None
                running = own
            values.append(value)
            batched.append(has_axis)
            ranks.append(value.ndim - has_axis)
        elif a.__class__ is float or a.__class__ is int:
            values.append(a)
        else:
            return None
    if len(ranks) == 2 and ranks[0] != ranks[1] and True in batched:
        low = 0 if ranks[0] < ranks[1] else 1
        if batched[low]:
            values[low] = with_ones(values[low], ranks[1 - low])
    try:
        result = kernel(*values, **settings)
    except UNFIT:
        return None
    result = result if result.__class__ is ndarray else NUMPY.tidy(result)
    return array_class(result, running is not None, running)


class BatchedCall:
    """One call of an operation on what batches hold: tensors or arrays, and Python's numbers.

    `batched` says of each whether its first axis is that of the samples, `size` how many there are.
    """

    __slots__ = ("batched", "library", "op", "settings", "size", "tensors", "xp")

    def __init__(
        self,
        library: Any,
        xp: Any,
        op: Primitive,
        tensors: Sequence[Any],
        batched: Sequence[bool],
        settings: dict[str, Any],
        size: int,
    ) -> None:
        self.library, self.xp, self.op, self.size = library, xp, op, size
        self.tensors, self.batched = tensors, batched
        self.settings = (
            settings if len(settings) == len(op.settings) else {**op.settings, **settings}
        )

    def results(self, *tensors: Any, **changed: Any) -> list[Any]:
        """Return the results of the operation on these tensors, with some settings changed."""
        settings = {**self.settings, **changed} if changed else self.settings
        result: list[Any] = results_in(self.xp, self.op, tensors, settings)
        return result

    def result(self, *tensors: Any, **changed: Any) -> Any:
        """Return the one result."""
        return self.results(*tensors, **changed)[0]

    def ndim(self, i: int) -> int:
        """Return the number of axes that an input has in one sample."""
        value = self.tensors[i]
        return len(value.shape) - self.batched[i] if is_numbers(value) else 0

    def whole(self) -> list[Any]:
        """Return the inputs, each tensor with an axis of samples; numbers stay."""
        return [
            t if b or not is_numbers(t) else self.xp.broadcast_to(t, (self.size, *t.shape))
            for t, b in zip(self.tensors, self.batched, strict=True)
        ]


# -- one value of a batch --------------------------------------------------------------------------
def refused(library: Any, required: str, came: str, hint: str) -> BatchedValueError:
    """Return the error, which names the user's line and can call a function for each sample."""
    error = _at_call(required, came, hint)
    error.each = library.each
    return error


def closed_over() -> BatchedValueError:
    """Return the error of a function that is called for each sample and closes over a batch."""
    required = (
        "what differs between samples required among the arguments of what is called for each of "
        "them"
    )
    came = "a function that closes over it"
    return _at_call(required, came, "hand it over as an argument, as theta where there is that")


def _at_call(required: str, came: str, hint: str) -> BatchedValueError:
    """Return the error with the user's line below what is required."""
    first, _, rest = compose("vmap", required, came, hint=hint).partition("\n")
    return BatchedValueError(f"{first}\n{call_site()}\n{rest}")
