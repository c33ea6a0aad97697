"""The base class of layers and networks: attributes are its parts.

Owns which attributes of a `Module` are parameters and buffers, and what is done to all of its
parts: modes, states, conversions. Parameters are plain leaf tensors. Must not know any layer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from os import PathLike
from typing import Any, NamedTuple, Self

from pullback.core.graph.modes import no_grad
from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentError, ArgumentTypeError, compose, nearest
from pullback.hints import Answering
from pullback.nn.parameter import Frozen, Parameter
from pullback.nn.stateless import refuse_tracked
from pullback.nn.walking import Part, Walked, is_parameter, walk
from pullback.ops.functions.creation import asarray


class LoadResult(NamedTuple):
    """What `Module.load_state_dict` did not find, and what it did not use."""

    missing_keys: list[str]
    unexpected_keys: list[str]


class Module(Walked, Answering):
    """A layer or a network: its attributes are its parameters, buffers and submodules.

    A subclass sets them in ``__init__`` (after ``super().__init__()``, which may be left out) and
    defines ``forward``; the module is called like it. A leaf that requires grad is a parameter,
    also once it is frozen; lists, dicts and objects with tensors are looked into.

    Examples
    --------
    >>> import pullback as pb
    >>> class Net(pb.nn.Module):
    ...     def __init__(self):
    ...         self.layers = [pb.nn.Linear(2, 3), pb.nn.Linear(3, 1)]
    ...
    ...     def forward(self, x):
    ...         return self.layers[1](self.layers[0](x).relu())
    >>> [name for name, _ in Net().named_parameters()]
    ['layers.0.weight', 'layers.0.bias', 'layers.1.weight', 'layers.1.bias']
    """

    _kind = "Module"
    training: bool = True  # whether layers such as `Dropout` act as in training
    # From the names of attributes to whether they are in the state; True for parameters.
    _parameters: dict[str, bool]
    _buffers: dict[str, bool]

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Return a module that has no parts yet."""
        module = super().__new__(cls)
        module.__dict__.update(_parameters={}, _buffers={})
        return module

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the result; a subclass says how."""
        raise NotImplementedError(
            compose(type(self).__name__, "a method forward required", "a class without it")
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return ``forward(*args, **kwargs)``."""
        return self.forward(*args, **kwargs)

    # -- its parts ----------------------------------------------------------------------------
    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._buffers and isinstance(value, Parameter):
            self._parameters[name] = True
            if value.__class__ is Frozen:
                value.__class__ = Tensor
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        super().__delattr__(name)
        self._parameters.pop(name, None)
        self._buffers.pop(name, None)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Set an attribute that is no parameter and moves with the module, such as a running mean.

        Parameters
        ----------
        name : str
        tensor : Tensor or None
        persistent : bool
            Whether it is part of the state.

        Examples
        --------
        >>> import pullback as pb
        >>> module = pb.nn.Module()
        >>> module.register_buffer("mean", pb.zeros(2))
        >>> [*module.state_dict()], [*module.parameters()]
        (['mean'], [])
        """
        if tensor is not None and not isinstance(tensor, Tensor):
            came = type(tensor).__name__
            raise ArgumentTypeError(compose("register_buffer", "a Tensor or None required", came))
        self._buffers[name] = persistent
        setattr(self, name, tensor)

    def register_parameter(self, name: str, param: Tensor | None) -> None:
        """Set a parameter; None keeps its name free for one."""
        setattr(self, name, param)

    def _children(self) -> Iterator[tuple[str, Any]]:
        """Yield the attributes: parameters, then buffers, then the rest, as PyTorch orders them."""
        attributes = {k: v for k, v in self.__dict__.items() if k not in NO_PARTS}
        for names in (self._parameters, self._buffers):
            for name in names:
                if name in attributes:
                    yield name, attributes.pop(name)
        yield from attributes.items()

    def named_modules(
        self, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """Yield the dotted name and the module of this module and all within it, each once.

        What is held several times comes under each of its names if `remove_duplicate` is False.

        Examples
        --------
        >>> import pullback as pb
        >>> net = pb.nn.Sequential(pb.nn.Linear(2, 3), pb.nn.ReLU())
        >>> [(name, type(module).__name__) for name, module in net.named_modules()]
        [('', 'Sequential'), ('0', 'Linear'), ('1', 'ReLU')]
        """
        parts = walk(self, prefix, repeats=not remove_duplicate)
        return ((p.name, p.value) for p in parts if isinstance(p.value, Module))

    def modules(self) -> Iterator[Module]:
        """Yield this module and all within it, each once."""
        return (module for _, module in self.named_modules())

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Yield the dotted name and the module of those that no other module is in between of."""
        inside: set[int] = set()
        for part in walk(self):
            if isinstance(part.value, Module) and part.value is not self:
                if id(part.value) not in inside:
                    yield part.name, part.value
                inside.update(id(m) for m in part.value.modules())

    def children(self) -> Iterator[Module]:
        """Yield the modules that no other module is in between of."""
        return (module for _, module in self.named_children())

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Yield the dotted name and the tensor of each parameter, frozen ones included, once.

        Parameters
        ----------
        prefix : str
            What names begin with.
        recurse : bool
            Also those within its parts, not the module's own attributes alone.
        remove_duplicate : bool
            Leave out what came under another name.

        Examples
        --------
        >>> import pullback as pb
        >>> layer = pb.nn.Linear(2, 3)
        >>> [name for name, _ in layer.named_parameters(prefix="first")]
        ['first.weight', 'first.bias']
        """
        return self._tensors(("parameter",), prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Tensor]:
        """Yield each parameter once, frozen ones included; see `named_parameters`."""
        return (tensor for _, tensor in self.named_parameters(recurse=recurse))

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Yield the dotted name and the tensor of each buffer once; see `named_parameters`."""
        return self._tensors(_BUFFERS, prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Yield each buffer once; see `named_parameters`."""
        return (tensor for _, tensor in self.named_buffers(recurse=recurse))

    def _tensors(
        self, roles: tuple[str, ...], prefix: str, recurse: bool, remove_duplicate: bool
    ) -> Iterator[tuple[str, Tensor]]:
        for part in walk(self, prefix, repeats=not remove_duplicate):
            if _role(part) in roles and (recurse or part.owner is self):
                yield part.name, part.value

    # -- what is done to all of them ----------------------------------------------------------
    def train(self, mode: bool = True) -> Self:
        """Set whether this module and all within it act as in training, and return it.

        Examples
        --------
        >>> import pullback as pb
        >>> layer = pb.nn.Dropout(0.5).eval()
        >>> layer.training, layer.train().training
        (False, True)
        """
        for module in self.modules():
            module.training = mode
        return self

    def eval(self) -> Self:
        """Let this module and all within it act as in use, not in training, and return it."""
        return self.train(False)

    def apply(self, fn: Callable[[Module], Any]) -> Self:
        """Call a function of each module, those within others first, and return this one.

        Examples
        --------
        >>> import pullback as pb
        >>> def zero(module):
        ...     if isinstance(module, pb.nn.Linear):
        ...         pb.nn.init.zeros_(module.weight)
        >>> net = pb.nn.Sequential(pb.nn.Linear(2, 3), pb.nn.ReLU()).apply(zero)
        >>> net[0].weight.abs().sum().item()
        0.0
        """
        for module in reversed([*self.modules()]):
            fn(module)
        return self

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Freeze all parameters, or let all be trained, and return the module.

        Examples
        --------
        >>> import pullback as pb
        >>> net = pb.nn.Sequential(pb.nn.Linear(2, 3), pb.nn.Linear(3, 1))
        >>> _ = net[0].requires_grad_(False)
        >>> [p.requires_grad for p in net.parameters()]
        [False, False, True, True]
        """
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clear the gradients of all parameters, or fill them with zeros."""
        for parameter in self.parameters():
            grad = None if set_to_none else parameter.grad
            parameter.grad = None if grad is None else grad.detach().zero_()

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Convert all parameters and buffers as `Tensor.to` does, in place; return the module.

        A dtype is for those of floating point.

        Examples
        --------
        >>> import pullback as pb
        >>> pb.nn.Linear(2, 3).to(pb.float64).weight.dtype
        pullback.float64
        """
        for part in walk(self):
            if _role(part) and part.value.dtype.is_inexact:
                tensor = part.value
                tensor.data, grad = tensor.data.to(*args, **kwargs), tensor.grad
                if grad is not None:
                    tensor.grad = grad.to(*args, **kwargs)
        return self

    def float(self) -> Self:
        """Convert all parameters and buffers to float32."""
        return self.to("float32")

    def double(self) -> Self:
        """Convert all parameters and buffers to float64."""
        return self.to("float64")

    # -- its state ----------------------------------------------------------------------------
    def state_dict(
        self,
        *,
        destination: dict[str, Tensor] | None = None,
        prefix: str = "",
        keep_vars: bool = False,
    ) -> dict[str, Tensor]:
        """Return the parameters and persistent buffers by dotted name, on the same memory.

        Parameters
        ----------
        destination : dict, optional
            What they are added to and is returned, a new one by default.
        prefix : str
            What names begin with, its dot included.
        keep_vars : bool
            The tensors themselves, not detached ones.

        Examples
        --------
        >>> import pullback as pb
        >>> {name: tuple(t.shape) for name, t in pb.nn.Linear(2, 3).state_dict().items()}
        {'weight': (3, 2), 'bias': (3,)}
        """
        result = {} if destination is None else destination
        for name, tensor in self._state().items():
            result[f"{prefix}{name}"] = tensor if keep_vars else tensor.detach()
        return result

    def _state(self) -> dict[str, Tensor]:
        parts = walk(self, repeats=True)
        return {p.name: p.value for p in parts if _role(p) in ("parameter", "buffer")}

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> LoadResult:
        """Copy a state into the parameters and buffers, cast to their dtypes.

        Parameters
        ----------
        state_dict : mapping
            From dotted names to tensors or arrays, as `state_dict` returns.
        strict : bool
            Whether names that are missing or unexpected are errors.
        assign : bool
            Let the parameters and buffers have the memory, dtype and device of the state, not a
            copy.

        Returns
        -------
        LoadResult
            The names that are missing and those that are unexpected.

        Raises
        ------
        ArgumentError
            If names or shapes differ: all differences are listed, and nothing is loaded.
        ArgumentTypeError
            If the state is no mapping.
        GraphError
            If a transform differentiates by a value: a copy has no gradient.

        Examples
        --------
        >>> import pullback as pb
        >>> layer = pb.nn.Linear(1, 1)
        >>> layer.load_state_dict({"weight": pb.ones((1, 1)), "bias": pb.zeros(1)})
        LoadResult(missing_keys=[], unexpected_keys=[])
        >>> layer(pb.tensor([[5.0]])).item()
        5.0
        """
        api = f"{type(self).__name__}.load_state_dict"
        if not isinstance(state_dict, Mapping):
            is_path = isinstance(state_dict, (str, PathLike))
            hint = "pb.load(path, model=model) reads a file" if is_path else None
            required, kind = "a dict of names and tensors required", type(state_dict).__name__
            raise ArgumentTypeError(compose(api, required, kind, hint=hint))
        own = self._state()
        came = {name: asarray(value) for name, value in state_dict.items()}
        missing = [name for name in own if name not in came]
        unexpected = [name for name in came if name not in own]
        lines = [
            f"{name}: shape {tuple(own[name].shape)} required, got {tuple(came[name].shape)}"
            for name in own
            if name in came and tuple(own[name].shape) != tuple(came[name].shape)
        ]
        if strict:
            lines += [f"{name}: missing" for name in missing]
            for name in unexpected:
                near = nearest(name, missing)
                lines.append(f"{name}: unexpected" + (f", {near!r} meant?" if near else ""))
        if lines:
            required = f"{api}: the state of this module required"
            raise ArgumentError("\n  ".join([f"{required}, got one that differs:", *lines]))
        refuse_tracked(api, came)
        with no_grad():
            for name, tensor in own.items():
                if name in came and assign:
                    tensor.data = came[name]
                elif name in came:
                    tensor.copy_(came[name])
        return LoadResult(missing, unexpected)

    # -- printing -----------------------------------------------------------------------------
    def extra_repr(self) -> str:
        """Return what `repr` says of the settings; a layer says more."""
        return ""

    def __repr__(self) -> str:
        own = [p for p in walk(self) if p.owner is self and _role(p) == "parameter"]
        shapes = ", ".join(f"{p.name} {tuple(p.value.shape)}" for p in own)
        inside = [f"({name}): {module!r}" for name, module in self.named_children()]
        head = f"{type(self).__name__}({self.extra_repr()}"
        if not inside:
            return head + ")" + (f"  # {shapes}" if shapes else "")
        count = sum(p.size for p in self.parameters())
        lines = "\n".join(inside).replace("\n", "\n  ")
        return f"{head}  # {shapes + ', ' if shapes else ''}{count:,} parameters\n  {lines}\n)"


# The attributes that a module has itself.
NO_PARTS = ("_parameters", "_buffers", "training")
_BUFFERS = ("buffer", "transient buffer")


def _role(part: Part) -> str:
    """Return what a part is to the module that holds it: "" for no part of its state."""
    tensor, owner = part.value, part.owner
    if not isinstance(tensor, Tensor):
        return ""
    if isinstance(owner, Module):
        if part.key in owner._buffers:
            return _BUFFERS[not owner._buffers[part.key]]
        if part.key in owner._parameters:
            return "parameter"
    return "parameter" if is_parameter(tensor) else ""
