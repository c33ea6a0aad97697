"""Layers without parameters: what makes one of a function, and those that are written out."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, ClassVar

from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentTypeError, compose, nearest
from pullback.hints import option_of
from pullback.nn.module import Module
from pullback.ops.functions.manipulation import flatten


class FunctionLayer(Module):
    """A layer without parameters; a subclass has the function and the names of its settings."""

    _function: ClassVar[Callable[..., Any]]
    _settings: ClassVar[tuple[str, ...]] = ()
    _signature: ClassVar[inspect.Signature]
    _uses_training: ClassVar[bool] = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        bound = self._bound(args, kwargs)
        bound.apply_defaults()
        for name, value in bound.arguments.items():
            if isinstance(value, Tensor):  # the weight of classes moves with the module
                self.register_buffer(name, value)
            else:
                setattr(self, name, value)

    def _bound(self, args: Any, kwargs: Any) -> inspect.BoundArguments:
        """Return the settings by name; an error shows what the layer takes."""
        try:
            return self._signature.bind(*args, **kwargs)
        except TypeError as error:
            name, known = type(self).__name__, self._signature.parameters
            unknown = next((key for key in kwargs if key not in known), "")
            near = nearest(unknown, known)
            hint = option_of(unknown) or (f"did you mean {near!r}?" if near else None)
            came = repr(unknown) if unknown else f"a call with an error: {error}"
            required = f"{name}{self._signature} required"
            raise ArgumentTypeError(compose(name, required, came, hint=hint)) from None

    def forward(self, *inputs: Any, **named: Any) -> Any:
        """Return the function of the inputs, which may be named, with the layer's settings."""
        settings = {name: getattr(self, name) for name in self._settings}
        if self._uses_training:
            settings["training"] = self.training
        return self._function(*inputs, **named, **settings)

    def extra_repr(self) -> str:
        """Return the settings."""
        settings = {name: getattr(self, name) for name in self._settings}
        if not settings.get("inplace", True):
            del settings["inplace"]
        return ", ".join(f"{name}={value!r}" for name, value in settings.items())


_DOC = """The layer of `pullback.nn.functional.{function}`, which describes its settings.

    ``{name}{signature}(x)`` is ``{function}(x{settings})``.

    Examples
    --------
    >>> import pullback as pb
    >>> type(pb.nn.{name}({needed})).__name__
    '{name}'
    """


def layer(
    name: str, function: Callable[..., Any], settings: str = "", *, training: bool = False
) -> type[FunctionLayer]:
    """Return the layer of a function.

    Parameters
    ----------
    name : str
    function : callable
        ``function(*inputs, **settings)``.
    settings : str
        The names of the settings in the order in which the layer takes them; those before a ``*``
        may be given by position.
    training : bool
        Whether the function also takes whether the layer is in training.
    """
    given = inspect.signature(function).parameters
    kind: Any = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters: list[inspect.Parameter] = []
    for word in settings.split():
        if word == "*":
            kind = inspect.Parameter.KEYWORD_ONLY
        else:
            parameters.append(given[word].replace(kind=kind))
    bare = [p.replace(annotation=inspect.Parameter.empty) for p in parameters]
    signature = inspect.Signature(bare)  # as errors and the documentation show it
    needed = [p.name for p in parameters if p.default is inspect.Parameter.empty]
    doc = _DOC.format(
        name=name,
        function=function.__name__,
        signature=signature,
        settings="".join(f", {p.name}={p.name}" for p in parameters),
        needed=", ".join(f"{n}=2" for n in needed),
    )
    members = {
        "__doc__": doc,
        "__init__": _init_of(name, parameters),
        "__module__": f"{__package__}.functions",
        "_function": staticmethod(function),
        "_settings": tuple(p.name for p in parameters),
        "_signature": signature,
        "_uses_training": training,
    }
    return type(name, (FunctionLayer,), members)


def _init_of(name: str, parameters: list[inspect.Parameter]) -> Callable[..., None]:
    """Return the ``__init__`` of a layer, whose signature names its settings."""

    def init(self: FunctionLayer, *args: Any, **kwargs: Any) -> None:
        FunctionLayer.__init__(self, *args, **kwargs)

    self = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    init.__name__, init.__qualname__ = "__init__", f"{name}.__init__"
    signature = inspect.Signature([self, *parameters], return_annotation="None")
    vars(init)["__signature__"] = signature
    return init


class Identity(Module):
    """The layer that returns its input; arguments are ignored.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nn.Identity()(pb.ones(2))
    tensor([1., 1.])
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Take any arguments, so that it can stand for another layer."""

    def forward(self, input: Any) -> Any:
        """Return the input."""
        return input


class Flatten(Module):
    """The layer of `pullback.flatten`; by default it keeps the batch.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nn.Flatten()(pb.ones((4, 2, 3))).shape
    (4, 6)
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, input: Any) -> Tensor:
        """Return the input with these axes as one."""
        return flatten(input, self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        """Return the settings."""
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"
