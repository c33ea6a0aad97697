"""A user's ``vmap``: how an operation computes all samples of a batch at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from pullback.core.custom import pytree as tree
from pullback.core.custom.memory import own
from pullback.core.custom.signature import head_of, positional_count
from pullback.errors import ArgumentError, ArgumentTypeError, compose


class VmapInfo(NamedTuple):
    """What a vmap rule is told of the transform.

    Attributes
    ----------
    batch_size : int
        The number of samples.
    randomness : str
        "error", "same" or "different".
    """

    batch_size: int
    randomness: str


class VmapRule:
    """A user's ``vmap``: ``rule(info, in_dims, *args)`` returns ``(outputs, out_dims)``."""

    def __init__(self, name: str, rule: Callable[..., Any]) -> None:
        self.name, self.rule = name, rule
        if not callable(rule):
            came = type(rule).__name__
            raise ArgumentTypeError(compose(f"{name}.vmap", "a function required", came))
        if positional_count(rule) < 2:
            required = "a function of info, in_dims and the arguments of forward required"
            hint = "write def vmap(info, in_dims, *args)"
            raise ArgumentError(compose(f"{name}.vmap", required, head_of(rule), hint=hint))

    def __call__(
        self,
        info: VmapInfo,
        in_dims: tuple[Any, ...],
        args: Sequence[Any],
        keywords: dict[str, Any],
    ) -> tuple[Any, list[int | None]]:
        """Return the outputs, and for each leaf of them the axis of the samples."""
        result = self.rule(info, in_dims, *args, **keywords)
        if not isinstance(result, tuple) or len(result) != 2:
            required = "a pair (outputs, out_dims) required as the result"
            raise ArgumentError(compose(f"{self.name}.vmap", required, type(result).__name__))
        outputs, out_dims = result
        del result  # would hold them, too
        lent = [*tree.leaves(list(args)), *tree.leaves(keywords)]
        return own(outputs, 0, lent), self._axes(outputs, out_dims)

    def _axes(self, outputs: Any, out_dims: Any) -> list[int | None]:
        items = tree.children(outputs)
        if items is None or out_dims is None or isinstance(out_dims, int):
            axes = [out_dims] * sum(1 for _ in tree.leaves(outputs))
        else:
            dims = tree.children(out_dims)
            if dims is None or len(dims) != len(items):
                required = f"out_dims for each of {len(items)} outputs required"
                raise ArgumentError(compose(f"{self.name}.vmap", required, repr(out_dims)))
            pairs = zip(items, dims, strict=True)
            return [axis for (_, x), (_, d) in pairs for axis in self._axes(x, d)]
        if not all(a is None or (isinstance(a, int) and not isinstance(a, bool)) for a in axes):
            required = "an axis, or None, for each output required as out_dims"
            raise ArgumentError(compose(f"{self.name}.vmap", required, repr(out_dims)))
        return axes
