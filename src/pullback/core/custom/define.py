"""The three ways to write an operation: two functions, a class, a decorated forward.

Owns what users call to define a `CustomOp`: `autograd_function`, `Function`, `once_differentiable`.
All three lead to the same machinery.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    ParamSpec,
    Protocol,
    Self,
    TypeVar,
    overload,
)

from pullback.core.custom.operation import CustomOp
from pullback.core.custom.signature import head_of, positional_count
from pullback.errors import ArgumentError, ArgumentTypeError, MissingRuleError
from pullback.hints import Answering, hinted

F = TypeVar("F", bound=Callable[..., Any])
P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class AutogradFunction(Answering, CustomOp, Generic[P, R]):
    """A user's operation: call it like its forward, less ctx.

    Made by `autograd_function`; has forward's name, docstring, annotations and signature.
    """

    _kind = "Operation"

    def __init__(self, name: str, forward: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        super().__init__(name, forward, *args, **kwargs)
        functools.update_wrapper(self, forward, updated=())
        self.__name__ = self.__qualname__ = name

    if TYPE_CHECKING:

        def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
            """Run forward on the arguments and record the operation."""

    def __dir__(self) -> list[str]:
        """Return what users call: the operation has forward's attributes, too."""
        names = {"apply", "backward", "forward", "jvp", "name", "surrogate", "traverse", "vmap"}
        return sorted(names.union(n for n in super().__dir__() if n[:2] == "__"))

    @property
    def apply(self) -> Self:
        """The operation itself, which a subclass of `Function` is called by."""
        return self

    def __repr__(self) -> str:
        return f"<autograd function {self.name}{self.signature.full}>"

    def backward(self, rule: F) -> F:
        """Make `rule`, a function of ctx and the gradients of the outputs, the gradient rule.

        Used as a decorator; returns `rule`.
        """
        _check_rule(rule)
        self.set_backward(rule)
        self.surrogate_reason = ""
        return rule

    def jvp(self, rule: F) -> F:
        """Make `rule`, a function of ctx and tangents of the arguments, the forward derivative.

        Used as a decorator; returns `rule`. Without it forward mode transposes backward. An
        operation that has no backward gets the transpose of this one.

        Parameters
        ----------
        rule : callable
            ``rule(ctx, *tangents)``, one for each argument of forward; or with some of forward's
            arguments as its parameters. A tangent has its argument's shape and dtype, and is None
            where the argument does not change. Returns one tangent for each output, None for zero.

        Raises
        ------
        ArgumentError
            If its parameters are neither.

        Examples
        --------
        >>> import pullback as pb
        >>> @pb.autograd_function
        ... def square(ctx, x):
        ...     ctx.save_for_backward(x=x)
        ...     return x * x
        >>> @square.jvp
        ... def _(ctx, x):
        ...     return 2 * ctx.saved_variables.x * x
        >>> pb.jvp(square, (3.0,), (1.0,)), pb.grad(square)(3.0)
        ((9.0, 6.0), 6.0)
        """
        self.set_jvp(rule)
        return rule

    def vmap(self, rule: F) -> F:
        """Make `rule` what computes all samples of a batch at once, in `pullback.vmap`.

        Used as a decorator; returns `rule`. Without it the operation is called for each sample.

        Parameters
        ----------
        rule : callable
            ``rule(info, in_dims, *args)``: `info` has ``batch_size`` and ``randomness``; `in_dims`
            has for each argument of forward the axis of the samples, None where it has none.
            Returns ``(outputs, out_dims)``. It is differentiated as it is written: with calls of
            the operation, or others that have a gradient.

        Raises
        ------
        ArgumentError
            If it does not take info and in_dims.

        Examples
        --------
        >>> import pullback as pb
        >>> @pb.autograd_function
        ... def total(ctx, x):
        ...     ctx.shape = x.shape
        ...     return x.sum(-1)
        >>> @total.backward
        ... def _(ctx, grad_output):
        ...     return {"x": grad_output[..., None].expand(ctx.shape)}
        >>> @total.vmap
        ... def _(info, in_dims, x):
        ...     return total(x.movedim(in_dims[0], 0)), 0
        >>> pb.vmap(total)(pb.tensor([[1.0, 2.0], [3.0, 4.0]]))
        tensor([3., 7.])
        """
        self.set_vmap(rule)
        return rule

    def surrogate(self, reason: str) -> Callable[[F], F]:
        """Declare that the rule's gradient is meant to differ from the derivative.

        Used as a decorator in place of `backward`, with the reason: a straight-through estimate, a
        reversed or clipped gradient. The gradient checker then compares nothing with differences,
        and checks everything else.

        Examples
        --------
        >>> import pullback as pb
        >>> @pb.autograd_function
        ... def rounded(ctx, x):
        ...     return x.round()
        >>> @rounded.surrogate("straight-through estimate")
        ... def _(ctx, grad_output):
        ...     return {"x": grad_output}
        >>> rounded.surrogate_reason
        'straight-through estimate'
        """
        checked = _checked_reason(f"{self.name}.surrogate", reason)

        def declare(rule: F) -> F:
            self.backward(rule)
            self.surrogate_reason = checked
            return rule

        return declare


def _checked_reason(api: str, reason: Any) -> str:
    if not isinstance(reason, str) or not reason:
        raise ArgumentTypeError(
            f"{api}: a text that says why the gradient is meant to differ from the derivative is "
            f'required, got {reason!r}.\nhint: write @op.surrogate("straight-through estimate").'
        )
    return reason


def _check_takes_ctx(role: str, function: Any) -> None:
    """Raise where forward, or backward, is no function of ctx."""
    if not callable(function):
        raise ArgumentTypeError(
            f"autograd_function: {role} must be callable, got {type(function).__name__}"
        )
    try:
        count = positional_count(function)
    except ValueError as error:  # some built-in functions have no signature
        raise ArgumentTypeError(
            f"autograd_function: {role} must be a function with a signature, got {function!r}.\n"
            "hint: wrap it in a function of your own."
        ) from error
    if count < 1:
        name = getattr(function, "__name__", "function")
        raise ArgumentTypeError(
            f"autograd_function: {role} must take ctx as its first argument, got "
            f"{head_of(function)}.\nhint: write def {name}(ctx, ...)."
        )


def _check_rule(rule: Any) -> None:
    _check_takes_ctx("backward", rule)
    if positional_count(rule) < 2:
        raise ArgumentTypeError(
            "autograd_function: backward must take ctx and the gradients of the outputs, got "
            f"{head_of(rule)}.\nhint: write def backward(ctx, grad_output)."
        )


def _check_static(cls: type, role: str, method: Any, parameters: str) -> None:
    """Raise where a method of a class takes self beside ctx, or a ctx that another method takes."""
    names = [*inspect.signature(method).parameters]
    takes_ctx = parameters.startswith("ctx")  # which may have any name
    first = names[0] if names else ""
    if (first == "self" and "ctx" in names) if takes_ctx else first in ("self", "ctx"):
        raise ArgumentTypeError(
            f"{cls.__name__}: {role} must be a static method {role}({parameters}), got "
            f"{role}({', '.join(names)}).\nhint: write @staticmethod and def {role}({parameters})."
        )


@overload
def autograd_function(
    forward: Callable[Concatenate[Any, P], R],
    backward: Callable[..., Any] | None = None,
    *,
    traverse: bool = False,
    name: str | None = None,
) -> AutogradFunction[P, R]: ...
@overload
def autograd_function(
    *, traverse: bool = False, name: str | None = None
) -> Callable[[Callable[Concatenate[Any, P], R]], AutogradFunction[P, R]]: ...
@hinted
def autograd_function(
    forward: Callable[..., Any] | None = None,
    backward: Callable[..., Any] | None = None,
    *,
    traverse: bool = False,
    name: str | None = None,
) -> Any:
    """Make a differentiable operation of a forward and a backward function.

    Parameters
    ----------
    forward : callable
        ``forward(ctx, ...)`` computes the result; it may save values in ctx. Its arguments may be
        any objects; tensors that require grad are tracked.
    backward : callable, optional
        ``backward(ctx, grad_output, ...)`` gets one gradient an output and returns the gradients
        by argument name, as a mapping; a tuple by position, or one tensor, are accepted too. It
        can be given later, with the result's ``backward`` decorator.
    traverse : bool, default False
        Whether tensors in lists, tuples and dicts among the arguments are tracked as well.
    name : str, optional
        The operation's name; by default forward's.

    Returns
    -------
    AutogradFunction
        A callable with forward's signature less ctx.

    Raises
    ------
    ArgumentTypeError
        If forward or backward cannot be called, or does not take ctx.

    Examples
    --------
    >>> import pullback as pb
    >>> def forward(ctx, tensor, constant):
    ...     ctx.save_for_backward(constant=constant)
    ...     return tensor * constant
    >>> def backward(ctx, grad_output):
    ...     return {"tensor": grad_output * ctx.saved_variables.constant}
    >>> mul_constant = pb.autograd_function(forward, backward, name="mul_constant")
    >>> x = pb.tensor([1.0], requires_grad=True)
    >>> mul_constant(x, 2).backward()
    >>> x.grad
    tensor([2.])
    """
    if forward is None:
        return functools.partial(autograd_function, traverse=traverse, name=name)
    _check_takes_ctx("forward", forward)
    if backward is not None:
        _check_rule(backward)
    label = name or str(getattr(forward, "__name__", type(forward).__name__))
    return AutogradFunction(label, forward, backward, traverse=traverse)


class _FunctionType(type):
    """Makes ``MyFunction(x)``, the commonest slip, an error that says what to write."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if args or kwargs:
            raise ArgumentTypeError(
                f"{cls.__name__}: an autograd function is not called by its class.\n"
                f"hint: use {cls.__name__}.apply(...)."
            )
        return super().__call__()


class _TakesContext(Protocol[P, R_co]):
    """A class whose forward takes ctx first: `Function.apply` has its other parameters."""

    setup_context: Callable[..., Any] | None

    @staticmethod
    def forward(ctx: Any, /, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Compute the results."""


class _Splits(Protocol[P, R_co]):
    """A class with setup_context: `Function.apply` has all of forward's parameters."""

    @staticmethod
    def forward(*args: P.args, **kwargs: P.kwargs) -> R_co:
        """Compute the results."""

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> Any:
        """Save what backward needs."""


class Function(metaclass=_FunctionType):
    """Base class of operations written as classes, as in PyTorch.

    A subclass defines static methods ``forward(ctx, ...)`` and ``backward(ctx, *grad_outputs)``,
    or ``forward(...)``, ``setup_context(ctx, inputs, output)`` and ``backward``; ``vjp`` is
    accepted as another name of ``backward``. A static method ``jvp(ctx, *tangents)`` is the forward
    derivative, see `AutogradFunction.jvp`, and ``vmap(info, in_dims, *args)`` what computes a batch
    at once, see `AutogradFunction.vmap`. Call it by ``apply``. A class whose gradient is meant
    to differ from the derivative says why: ``surrogate = "straight-through estimate"``.

    Examples
    --------
    >>> import pullback as pb
    >>> class Square(pb.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x=x)
    ...         return x * x
    ...
    ...     @staticmethod
    ...     def backward(ctx, grad_output):
    ...         return {"x": 2 * ctx.saved_variables.x * grad_output}
    >>> x = pb.tensor(3.0, requires_grad=True)
    >>> Square.apply(x).backward()
    >>> x.grad
    tensor(6.)
    """

    _op: CustomOp | None = None
    __signature__: inspect.Signature
    traverse: bool = False
    # Why the gradient is meant to differ from the derivative; empty if it is not.
    surrogate: str = ""
    if TYPE_CHECKING:
        setup_context: Callable[..., Any] | None  # tells the two kinds of classes apart

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._op = cls._build()
        if cls._op is not None:
            cls.__signature__ = cls._op.signature.full
            owner = next(c for c in cls.__mro__ if "apply" in c.__dict__)
            if owner is Function or isinstance(owner.__dict__["apply"], CustomOp):
                cls.apply = cls._op  # type: ignore[method-assign, misc]  # calls go straight to it

    @classmethod
    def _build(cls) -> CustomOp | None:
        forward = getattr(cls, "forward", None)
        backward = getattr(cls, "backward", None)
        vjp = getattr(cls, "vjp", None)
        if backward is not None and vjp is not None:
            raise ArgumentError(
                f"{cls.__name__}: implementing both 'backward' and 'vjp' is not allowed; they are "
                "two names of one rule.\nhint: keep one of them."
            )
        if forward is None:
            return None
        setup, rule = getattr(cls, "setup_context", None), backward or vjp
        _check_static(cls, "forward", forward, "ctx, ..." if setup is None else "...")
        if setup is None:
            _check_takes_ctx("forward", forward)
        else:
            _check_static(cls, "setup_context", setup, "ctx, inputs, output")
        if rule:
            _check_static(cls, "backward" if backward else "vjp", rule, "ctx, ...")
            _check_rule(rule)
        more = (getattr(cls, "jvp", None), getattr(cls, "vmap", None))
        op = CustomOp(cls.__name__, forward, rule, setup, cls.traverse, *more)
        if cls.surrogate != "":
            op.surrogate_reason = _checked_reason(f"{cls.__name__}.surrogate", cls.surrogate)
        return op

    if TYPE_CHECKING:

        @overload
        @classmethod
        def apply(cls: type[_Splits[P, R]], *args: P.args, **kwargs: P.kwargs) -> R: ...
        @overload
        @classmethod
        def apply(cls: type[_TakesContext[P, R]], *args: P.args, **kwargs: P.kwargs) -> R: ...

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run forward on the arguments and record the operation."""
        if cls._op is None:
            raise MissingRuleError(
                f"{cls.__name__}: you must implement the forward function for a custom operation.\n"
                "hint: add a static method forward(ctx, ...)."
            )
        return cls._op(*args, **kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run forward on the arguments and record the operation."""
        return type(self).apply(*args, **kwargs)  # type: ignore[misc]


def once_differentiable(backward: F) -> F:
    """Mark a backward that uses more than differentiable operations on tensors.

    It runs unrecorded; a second derivative through it raises instead of being wrong.

    Examples
    --------
    >>> import pullback as pb
    >>> @pb.once_differentiable
    ... def backward(ctx, grad_output):
    ...     return {"x": pb.asarray(grad_output.numpy() * 2)}
    """

    @functools.wraps(backward)
    def marked(*args: Any, **kwargs: Any) -> Any:
        return backward(*args, **kwargs)

    marked._once_differentiable = True  # type: ignore[attr-defined]
    return marked  # type: ignore[return-value]
