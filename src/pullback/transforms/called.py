"""A call whose arguments may hold tensors anywhere, to be made again with other tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pullback.core.custom.pytree import leaves, map_leaves
from pullback.core.tensor.tensor import Tensor
from pullback.core.tensor.versions import version_of
from pullback.errors import InplaceError, compose
from pullback.transforms.wrapped import parts_of_closures

__all__ = ["Called", "FunctionCalled", "OperationCalled", "called_on_parts", "structured"]


class Called:
    """One call of a function: what of its arguments are tensors, and what it returned.

    Parameters
    ----------
    name : str
        What errors call the function.
    where : str
        The transform in which it must change no argument in place.
    values : list
        What it is called with.
    traverse : bool
        Whether tensors in containers count.
    """

    def __init__(self, name: str, where: str, values: Sequence[Any], traverse: bool = True) -> None:
        self.name, self._where = name, where
        self.values, self._traverse = list(values), traverse
        self.tensors = [x for x in self.leaves() if isinstance(x, Tensor)]
        self.result: Any = None

    def leaves(self) -> list[Any]:
        """Return what the arguments hold, those of containers where they are traversed."""
        return list(leaves(self.values)) if self._traverse else self.values

    def run(self, values: list[Any]) -> Any:
        """Call the function; a subclass has this."""
        raise NotImplementedError

    def with_leaves(self, values: Sequence[Any]) -> list[Any]:
        """Return the arguments with other leaves."""
        left = iter(values)
        if not self._traverse:
            return list(left)
        return map_leaves(lambda _: next(left), self.values)  # type: ignore[no-any-return]

    def with_tensors(self, tensors: Sequence[Any]) -> list[Any]:
        """Return the arguments with others for the tensors."""
        left = iter(tensors)
        return self.with_leaves([next(left) if isinstance(x, Tensor) else x for x in self.leaves()])

    def __call__(self, *tensors: Tensor) -> list[Tensor]:
        """Call the function with these tensors; return the tensors in its result."""
        values = self.with_tensors(tensors)
        versions = [version_of(t) for t in tensors]
        error = None
        try:
            self.result = self.run(values)
        except InplaceError as raised:
            error = raised
        if error is not None or versions != [version_of(t) for t in tensors]:
            required = f"an operation that changes no argument in place required in {self._where}"
            raise InplaceError(compose(self.name, required, "one that does")) from error
        return [x for x in leaves(self.result) if isinstance(x, Tensor)]


class OperationCalled(Called):
    """One call of a user's operation."""

    def __init__(self, op: Any, arguments: Any, values: Sequence[Any], where: str) -> None:
        super().__init__(op.name, where, values, op.traverse)
        self.op, self._arguments = op, arguments

    def spread(self, values: list[Any]) -> tuple[list[Any], dict[str, Any]]:
        """Return values of forward's parameters as positional and keyword arguments."""
        found: tuple[list[Any], dict[str, Any]] = self.op.signature.spread(self._arguments, values)
        return found

    def run(self, values: list[Any]) -> Any:
        """Call the operation."""
        positional, keywords = self.spread(values)
        return self.op(*positional, **keywords)


def called_on_parts(op: Any, arguments: Any, values: Sequence[Any]) -> Any:
    """Return the result of a user's operation that is called in a function of parts."""
    called = OperationCalled(op, arguments, values, "")
    return called.run(called.with_leaves(parts_of_closures(called.leaves())))


def structured(result: Any, tensors: Sequence[Tensor]) -> Any:
    """Return a result with others for its tensors."""
    left = iter(tensors)
    return map_leaves(lambda x: next(left) if isinstance(x, Tensor) else x, result)


class FunctionCalled(Called):
    """One call of any function."""

    def __init__(
        self, function: Callable[..., Any], args: Any, keywords: dict[str, Any], where: str
    ) -> None:
        name = str(getattr(function, "__name__", function))
        super().__init__(name, where, [tuple(args), keywords])
        self._function = function

    def run(self, values: list[Any]) -> Any:
        """Call the function."""
        args, keywords = values
        return self._function(*args, **keywords)
