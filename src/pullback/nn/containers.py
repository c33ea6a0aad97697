"""Modules that hold others: Sequential, ModuleList, ModuleDict."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, overload

from pullback.errors import ArgumentTypeError, compose
from pullback.nn.module import NO_PARTS, Module


class _Numbered(Module):
    """Holds modules as the attributes "0", "1", ..., as PyTorch names them."""

    def __len__(self) -> int:
        return len(self._held())

    def __iter__(self) -> Iterator[Any]:
        return iter(self._held())

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> Any: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return type(self)(*self._arguments(self._held()[index]))
        return self._held()[index]

    def __setitem__(self, index: int, module: Any) -> None:
        setattr(self, str(range(len(self))[index]), module)

    def append(self, module: Any) -> Any:
        """Add a module at the end, and return this one."""
        if not callable(module):
            came = type(module).__name__
            hint = "write Sequential(*modules)" if isinstance(module, (list, tuple)) else None
            raise ArgumentTypeError(
                compose(type(self).__name__, "modules required", came, hint=hint)
            )
        setattr(self, str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Any]) -> Any:
        """Add modules at the end, and return this one."""
        if not isinstance(modules, Iterable):
            name, came = type(self).__name__, type(modules).__name__
            hint = f"write {name}([...])"
            raise ArgumentTypeError(compose(name, "a list of modules required", came, hint=hint))
        for module in modules:
            self.append(module)
        return self

    def _held(self) -> list[Any]:
        return [value for name, value in self.__dict__.items() if name.isdigit()]

    @staticmethod
    def _arguments(modules: Sequence[Any]) -> tuple[Any, ...]:
        """Return what the class is called with to hold these modules."""
        return (modules,)


class ModuleList(_Numbered):
    """A list of modules; the walk looks into a plain list as well.

    Examples
    --------
    >>> import pullback as pb
    >>> layers = pb.nn.ModuleList([pb.nn.Linear(2, 2) for _ in range(3)])
    >>> len(layers), len([*layers.parameters()])
    (3, 6)
    """

    def __init__(self, modules: Iterable[Any] = ()) -> None:
        self.extend(modules)

    def insert(self, index: int, module: Any) -> None:
        """Add a module before the one at an index."""
        held = self._held()
        held.insert(index, module)
        self._hold(held)

    def pop(self, index: int = -1) -> Any:
        """Take a module out, the last by default, and return it."""
        held = self._held()
        module = held.pop(index)
        self._hold(held)
        return module

    def __delitem__(self, index: int) -> None:
        self.pop(index)

    def _hold(self, modules: list[Any]) -> None:
        for number in range(len(self)):
            delattr(self, str(number))
        self.extend(modules)


class Sequential(_Numbered):
    """Modules, or any functions of one argument, called one after the other.

    Parameters
    ----------
    *modules : Module or callable
        Or one dict from names to them.

    Examples
    --------
    >>> import pullback as pb
    >>> net = pb.nn.Sequential(pb.nn.Linear(2, 3), pb.nn.ReLU(), pb.nn.Linear(3, 1))
    >>> net(pb.ones((4, 2))).shape
    (4, 1)
    >>> [*net.state_dict()]
    ['0.weight', '0.bias', '2.weight', '2.bias']
    """

    def __init__(self, *modules: Any) -> None:
        if len(modules) == 1 and isinstance(modules[0], Mapping):
            for name, module in modules[0].items():
                setattr(self, name, module)
        else:
            self.extend(modules)

    def forward(self, input: Any) -> Any:
        """Return what the last module makes of what the others made of the input."""
        for module in self._held():
            input = module(input)
        return input

    def _held(self) -> list[Any]:
        return [value for name, value in self.__dict__.items() if name not in NO_PARTS]

    @staticmethod
    def _arguments(modules: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(modules)


class ModuleDict(Module):
    """A dict of modules; the walk looks into a plain dict as well.

    Examples
    --------
    >>> import pullback as pb
    >>> heads = pb.nn.ModuleDict({"mean": pb.nn.Linear(2, 1), "scale": pb.nn.Linear(2, 1)})
    >>> [name for name, _ in heads.named_parameters()][:2]
    ['mean.weight', 'mean.bias']
    """

    def __init__(self, modules: Mapping[str, Any] | None = None) -> None:
        self.update(modules or {})

    def update(self, modules: Mapping[str, Any]) -> None:
        """Add modules by name."""
        for name, module in modules.items():
            self[name] = module

    def __getitem__(self, name: str) -> Any:
        return self.__dict__[name]

    def __setitem__(self, name: str, module: Any) -> None:
        setattr(self, name, module)

    def __delitem__(self, name: str) -> None:
        delattr(self, name)

    def __contains__(self, name: object) -> bool:
        return name in self.keys()

    def __len__(self) -> int:
        return len(self.keys())

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def keys(self) -> list[str]:
        """Return the names."""
        return [name for name in self.__dict__ if name not in NO_PARTS]

    def values(self) -> list[Any]:
        """Return the modules."""
        return [self.__dict__[name] for name in self.keys()]

    def items(self) -> list[tuple[str, Any]]:
        """Return the pairs of name and module."""
        return [(name, self.__dict__[name]) for name in self.keys()]
