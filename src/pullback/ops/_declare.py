"""Declaring an operation: one place for its forward, its gradient rules and its samples.

Owns the registry of declarations, which feeds the tests and the documentation, and the making of
the public function. Rules are read by core/primitive.py: their parameter names say what is saved.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar, cast

from pullback.arrays import is_array, library_of
from pullback.core.function import apply, binary, unary
from pullback.core.inplace import apply_inplace, standard_kernel, write_untracked
from pullback.core.primitive import TENSORS, Primitive
from pullback.core.tensor import Tensor, as_array
from pullback.errors import ArgumentTypeError, DTypeError, compose

Function = Callable[..., Any]
F = TypeVar("F", bound=Function)


class Operation(Protocol):
    """The public function of a declared operation."""

    __name__: str
    primitive: Primitive

    def __call__(self, *arrays: Any, **settings: Any) -> Tensor:
        """Run the operation on tensors, and record it where one requires grad."""
        ...


class Domain(NamedTuple):
    """Where samples of an input are drawn: uniformly from [low, high], less what is excluded.

    Attributes
    ----------
    low, high : float
        The interval.
    away : tuple of float
        Kinks and poles that samples keep a distance of 0.1 from.
    complex : bool
        Whether complex samples are meaningful too.
    kind : str
        ``"f"`` floating samples, ``"c"`` complex ones only, ``"i"`` integers, ``"b"`` bools.
    step : float
        If not 0, samples are multiples of it, so that equal ones occur.
    """

    low: float
    high: float
    away: tuple[float, ...] = ()
    complex: bool = False
    kind: str = "f"
    step: float = 0.0


def real(low: float, high: float, *away: float) -> Domain:
    """Return a domain of real samples."""
    return Domain(low, high, away)


def both(low: float, high: float, *away: float) -> Domain:
    """Return a domain of real and complex samples."""
    return Domain(low, high, away, complex=True)


def only_complex(low: float, high: float) -> Domain:
    """Return a domain of complex samples."""
    return Domain(low, high, complex=True, kind="c")


def grid(low: float, high: float) -> Domain:
    """Return a domain of real samples that are whole numbers, some of them equal."""
    return Domain(low, high, step=1.0)


def integers(low: int, high: int) -> Domain:
    """Return a domain of integer samples."""
    return Domain(low, high, kind="i")


def mask() -> Domain:
    """Return the domain of bool samples."""
    return Domain(0, 1, kind="b")


class Sample(NamedTuple):
    """One call to test: the shapes of the arrays, and the settings."""

    shapes: tuple[tuple[int, ...], ...]
    settings: dict[str, Any]


def sample(*shapes: tuple[int, ...], **settings: Any) -> Sample:
    """Return a sample of these shapes and settings."""
    return Sample(shapes, settings)


@dataclass
class Declaration:
    """Everything known of one operation.

    Attributes
    ----------
    primitive : Primitive
        Forward, rules and what they save.
    public : callable
        The function users call.
    names : tuple of str
        Its names in ``pullback``.
    domain : dict
        Where to sample each input.
    samples : tuple of Sample
        Calls to test.
    tied : bool
        Whether one input's samples must all differ (order statistics).
    jvp, batch : callable, optional
        The forward-mode rule and the batching rule.
    """

    primitive: Primitive
    public: Operation
    names: tuple[str, ...]
    domain: dict[str, Domain]
    samples: tuple[Sample, ...]
    distinct: bool = False
    jvp: Function | None = None
    batch: Function | None = None


REGISTRY: dict[str, Declaration] = {}

_ELEMENTWISE = {
    1: (sample((3, 4)), sample(()), sample((0, 3)), sample((1,))),
    2: (
        sample((3, 4), (3, 4)),
        sample((3, 4), (4,)),
        sample((3, 1), (1, 4)),
        sample((), (2, 3)),
        sample((), ()),
        sample((0, 3), (1, 3)),
    ),
    3: (sample((3, 4), (3, 4), (3, 4)), sample((3, 1), (4,), ()), sample((), (), ())),
}


def needs_order(op: str, *arrays: Any) -> None:
    """Raise where an operation that compares numbers got complex ones, which have no order."""
    for i, array in enumerate(arrays):
        if library_of(array).dtype(array).is_complex:
            came = str(array.dtype).rpartition(".")[2]
            name = "xy"[i] if len(arrays) > 1 else "x"
            hint = "compare real, imag or abs of it"
            raise DTypeError(compose(op, "real numbers required", came, (name, array), hint=hint))


def needs_tensor(op: str, x: Any, name: str = "x") -> None:
    """Raise where a function that looks at a shape first got no array."""
    if x.__class__ is not Tensor and not isinstance(x, Tensor) and not is_array(x):
        required = f"a Tensor or an array required as '{name}'"
        hint = "make a tensor of it with pullback.tensor"
        raise ArgumentTypeError(compose(op, required, type(x).__name__, hint=hint))


def standard(name: str, *, ordered: bool = False) -> Function:
    """Return the forward that calls the array library's function of that name.

    `ordered`: the function compares numbers, so complex ones are refused.
    """

    def forward(xp: Any, *arrays: Any) -> Any:
        if ordered:
            needs_order(name, *arrays)
        return getattr(xp, name)(*arrays)

    forward.standard_name = name  # type: ignore[attr-defined]
    return forward


def elementwise(
    names: str,
    forward: Function,
    *,
    domain: Domain | dict[str, Domain] | None = None,
    doc: str = "",
    floating: bool = False,
    holomorphic: bool = True,
    differentiable: bool = True,
    inputs: tuple[str, ...] | None = None,
    broadcasts: bool = True,
    samples: tuple[Sample, ...] | None = None,
    kernel: Function | None = None,
    **rules: Function | None,
) -> Operation:
    """Declare an operation that works element by element, with broadcasting.

    Parameters
    ----------
    names : str
        The node's name and, separated by spaces, the public names where they differ.
    forward : callable
        ``forward(xp, x, ...)``, or `standard` of a name.
    domain : Domain or dict
        Where tests sample the inputs.
    doc : str
        The first line of the public docstring.
    floating, holomorphic, differentiable, inputs, broadcasts, kernel
        As for `Primitive`.
    samples : tuple of Sample, optional
        Calls to test, where the usual shapes do not fit.
    **rules : callable or None
        The gradient rule of each input.
    """
    inputs = inputs or tuple(rules) or ("x",)
    primitive, names_ = _primitive(
        names,
        forward,
        inputs,
        {},
        rules,
        floating=floating,
        holomorphic=holomorphic,
        differentiable=differentiable,
        broadcasts=broadcasts and len(inputs) > 1,
        kernel=kernel,
    )
    fast = {1: unary, 2: binary}.get(len(inputs)) if differentiable else None
    public = fast(primitive) if fast else _general(primitive)
    domains = domain if isinstance(domain, dict) else dict.fromkeys(inputs, domain or real(-2, 2))
    return _register(primitive, public, names_, doc, domains, samples or _ELEMENTWISE[len(inputs)])


def operation(
    names: str,
    forward: Function,
    *,
    samples: Sequence[Sample] = (),
    domain: Domain | dict[str, Domain] | None = None,
    distinct: bool = False,
    doc: str = "",
    joint: Function | None = None,
    rules: dict[str, Function | None] | None = None,
    **flags: Any,
) -> Operation:
    """Declare an operation of any shape; arrays positional, settings keyword-only.

    Parameters
    ----------
    names, forward, domain, doc
        As for `elementwise`; the inputs and settings are read off forward's signature.
    samples : sequence of Sample
        Calls to test.
    distinct : bool
        Whether the samples of an input must be far from equal.
    joint : callable, optional
        One rule that returns the gradients of all inputs.
    rules : dict
        The gradient rule of each input.
    **flags
        As for `Primitive`.
    """
    inputs, settings, variadic = _parameters(forward)
    primitive, names_ = _primitive(
        names,
        forward,
        () if variadic else inputs,
        settings,
        rules or {},
        joint=joint,
        variadic=variadic,
        **flags,
    )
    domains = domain if isinstance(domain, dict) else dict.fromkeys(inputs, domain or both(-2, 2))
    return _register(primitive, _general(primitive), names_, doc, domains, tuple(samples), distinct)


def _parameters(forward: Function) -> tuple[tuple[str, ...], dict[str, Any], bool]:
    """Return forward's arrays, its settings with their defaults, and whether it is variadic.

    Read off the code, since `inspect.signature` takes long for all operations together.
    """
    code = forward.__code__
    count, end = code.co_argcount, code.co_argcount + code.co_kwonlyargcount
    variadic = bool(code.co_flags & inspect.CO_VARARGS)
    inputs = code.co_varnames[1:count] + code.co_varnames[end : end + variadic]
    defaults = dict.fromkeys(code.co_varnames[count:end], inspect.Parameter.empty)
    return inputs, {**defaults, **(forward.__kwdefaults__ or {})}, variadic


def _primitive(
    names: str,
    forward: Function,
    inputs: tuple[str, ...],
    settings: dict[str, Any],
    rules: dict[str, Function | None],
    **flags: Any,
) -> tuple[Primitive, tuple[str, ...]]:
    first, *others = names.split()
    return Primitive(first, forward, inputs, settings, rules, **flags), (*others, first)


def _general(op: Primitive) -> Function:
    """Return the public function of an operation that goes the general way."""
    defaults = op.settings
    count = None if op.variadic else len(op.inputs)

    def call(*args: Any, **settings: Any) -> Any:
        if settings.keys() != defaults.keys():
            settings = {**defaults, **settings}
            if len(settings) != len(defaults):
                unknown = next(k for k in settings if k not in defaults)
                raise TypeError(f"{op.name}() got an unexpected keyword argument '{unknown}'")
        if (count is not None and len(args) != count) or not args:
            raise _wrong_count(op, count or "at least 1", len(args))
        for name, value in settings.items():
            if value is inspect.Parameter.empty:
                raise ArgumentTypeError(f"{op.name}: the keyword argument '{name}' is required")
        return apply(op, args, settings)

    return call


def _wrong_count(op: Primitive, wanted: int | str, came: int) -> ArgumentTypeError:
    """Return the error for too many or too few arrays."""
    return ArgumentTypeError(
        compose(
            op.name,
            f"{wanted} array(s) ({', '.join(op.inputs)}) required",
            str(came),
            hint=f"give {', '.join(op.settings)} by keyword" if op.settings else None,
        )
    )


def _register(
    op: Primitive,
    public: Function,
    names: tuple[str, ...],
    doc: str,
    domain: dict[str, Domain],
    samples: tuple[Sample, ...],
    distinct: bool = False,
) -> Operation:
    public.__name__ = public.__qualname__ = names[0]
    public.__doc__ = doc or None
    public.__module__ = "pullback"
    operation = cast(Operation, public)
    operation.primitive = op
    op.public = operation
    REGISTRY[op.name] = Declaration(op, operation, names, domain, samples, distinct)
    for name in names:
        setattr(TENSORS, name, operation)
    return operation


def composition(function: F) -> F:
    """Make a function of operations part of the namespace that recorded rules see."""
    setattr(TENSORS, function.__name__, function)
    return function


def on(xp: Any, function: Operation) -> Function:
    """Return `function` for arguments of the namespace `xp`: tensors, or bare arrays."""
    if xp is TENSORS:
        return function
    forward = function.primitive.forward
    return lambda *arrays, **settings: forward(xp, *map(as_array, arrays), **settings)


def inplace(function: Operation) -> Callable[..., Tensor]:
    """Return the in-place twin of an operation, a method."""
    op = function.primitive
    count = len(op.inputs)
    kernel = standard_kernel(op)

    def call(self: Tensor, *others: Any, **settings: Any) -> Tensor:
        if kernel is not None and write_untracked(kernel, self, others):
            return self
        for name in settings:  # no operation with settings has an in-place twin of this kind
            raise TypeError(f"{op.name}_() got an unexpected keyword argument '{name}'")
        if len(others) != count - 1:
            raise _wrong_count(op, count, len(others) + 1)
        return apply_inplace(op, self, others, {})

    call.__name__ = call.__qualname__ = f"{op.name}_"
    call.__doc__ = f"Do `{function.__name__}` in place and return this tensor."
    return call
