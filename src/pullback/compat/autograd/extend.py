"""Operations of one's own, with rules in HIPS autograd's words and conventions.

A rule gets arrays; where derivatives are derived again it gets tensors with NumPy's methods.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import warnings
from collections.abc import Callable, Iterable, Sequence
from types import MethodType
from typing import Any, Never

import numpy as np

import pullback as pb
from pullback.arrays import WrappingLibrary, library_of
from pullback.compat.autograd.boxes import (
    conjugate,
    holds_boxes,
    notrace_primitive as notrace_primitive,
)
from pullback.compat.autograd.vspaces import VSpace as VSpace, vspace
from pullback.core.custom.pytree import flatten, leaves, map_leaves, unflatten
from pullback.core.tensor.tensor import Tensor, in_class
from pullback.errors import MissingRuleError
from pullback.hints import absent
from pullback.numpy_protocol.tensor import NumPyTensor

__all__ = [
    *("Box", "JVPNode", "VJPNode", "VSpace", "def_linear", "notrace_primitive", "primitive"),
    *("register_notrace", "vspace"),
    *("defjvp", "defjvp_argnum", "defjvp_argnums", "defvjp", "defvjp_argnum", "defvjp_argnums"),
    *("primitive_jvps", "primitive_vjps"),
]

Function = Callable[..., Any]
Box = Tensor
primitive_vjps: dict[Any, Function] = {}
primitive_jvps: dict[Any, Function] = {}


class Primitive:
    """A function of arrays whose derivative is what `defvjp` and `defjvp` say.

    Examples
    --------
    >>> double = Primitive(lambda x: x * 2)
    >>> double.__name__, double(3.0)
    ('<lambda>', 6.0)
    """

    def __init__(self, fun: Function) -> None:
        self.__name__ = "primitive"  # where the function has no name
        functools.update_wrapper(self, fun, updated=())
        self.fun = fun
        self._operations: dict[int | None, Any] = {}
        self._makers: dict[int, Any] = {}  # what the deprecated methods gave
        self.is_traced = True

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the function, recorded where an argument is traced."""
        if not holds_boxes(args) and not holds_boxes(kwargs):
            return self.fun(*args, **kwargs)
        if not self.is_traced:
            return notrace_primitive(self.fun)(*args, **kwargs)
        general = kwargs or any(isinstance(arg, (list, tuple, dict)) for arg in args)
        return self._operation(None if general else len(args))(*args, **kwargs)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def _operation(self, count: int | None) -> Any:
        """Return the operation of a number of arguments, which is quick, or of any arguments."""
        operation = self._operations.get(count)
        if operation is None:
            forward = self._forward if count is None else self._of_arguments(count)
            operation = pb.autograd_function(
                forward, self._located_backward(), name=self.__name__, traverse=count is None
            )
            if self in primitive_jvps:
                operation.jvp(self._jvp)
            self._operations[count] = operation
        return operation

    def _of_arguments(self, count: int) -> Function:
        """Return a forward of so many arguments: the call of an operation is written from that."""

        def call(ctx: Any, *args: Any) -> Any:
            return self._forward(ctx, *args)

        try:
            known = [
                p.name for p in inspect.signature(self.fun).parameters.values() if p.kind < 2
            ]  # by position
        except (TypeError, ValueError):  # a function in C
            known = []
        known = [*known, *(f"x{i}" for i in range(count))][:count]
        names = known if len({"ctx", *known}) > count else [f"x{i}" for i in range(count)]
        kind = inspect.Parameter.POSITIONAL_ONLY
        parameters = [inspect.Parameter(name, kind) for name in ("ctx", *names)]
        call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return call

    def _located_backward(self) -> Function:
        """Return backward as a function that errors find where the user's rule is."""

        def backward(ctx: Any, g: Any) -> Any:
            return self._backward(ctx, g)

        backward.__signature__ = inspect.signature(backward)  # type: ignore[attr-defined]
        return _written_by(backward, primitive_vjps.get(self))

    def _forward(self, ctx: Any, *args: Any, **kwargs: Any) -> Any:
        if kwargs:
            ctx.kwargs = kwargs
        out = self.fun(*map(_array, args), **{k: _array(value) for k, value in kwargs.items()})
        if isinstance(out, (list, tuple, dict)):
            found, ctx.structure = flatten(out)
            out = unflatten(ctx.structure, [pb.asarray(np.asarray(leaf)) for leaf in found])
            ctx.save_for_backward(*args, *leaves(out))
        else:
            out = pb.asarray(np.asarray(out))
            ctx.save_for_backward(*args, out)
        return out

    def _saved(self, ctx: Any) -> tuple[Any, Sequence[Any], dict[str, Any]]:
        """Return the result and the arguments as rules get them."""
        saved = list(map(_for_rule, ctx.saved_variables))
        if not vars(ctx):  # most often: one result, and no argument by name
            return saved.pop(), saved, {}
        structure = getattr(ctx, "structure", None)
        count = len(saved) - (1 if structure is None else structure.size)
        out = unflatten(structure, saved[count:])
        return out, saved[:count], map_leaves(_for_rule, getattr(ctx, "kwargs", {}))

    def _backward(self, ctx: Any, g: Any) -> Any:
        out, args, kwargs = self._saved(ctx)
        flags = zip(args, ctx.needs_input_grad, strict=False)
        wanted = [i for i, (_, is_needed) in enumerate(flags) if is_needed]
        pull = _rule_of(self, "VJP", primitive_vjps, wanted)(wanted, out, args, kwargs)
        # Gradients of complex numbers are the conjugates of pullback's.
        cotangent = map_leaves(_conjugate_for_rule, g)
        if isinstance(g, tuple):
            cotangent = unflatten(ctx.structure, cotangent)
        gradients: list[Any] = [None] * (len(args) + len(kwargs))
        for i, gradient in zip(wanted, pull(cotangent), strict=True):
            gradients[i] = map_leaves(conjugate, gradient)
        return tuple(gradients)

    def _jvp(self, ctx: Any, *tangents: Any) -> Any:
        out, args, kwargs = self._saved(ctx)
        pairs = [(i, _for_rule(g)) for i, g in enumerate(tangents) if g is not None]
        argnums = [i for i, _ in pairs]
        rule = _rule_of(self, "JVP", primitive_jvps, argnums)
        return rule(argnums, [g for _, g in pairs], out, args, kwargs)

    # -- deprecated ----------------------------------------------------------------------------
    def defgrad(self, gradfun: Any, argnum: int = 0) -> None:
        """Give the rule of one argument, as `defvjp` has it."""
        warnings.warn("a method of a primitive is deprecated: use defvjp", stacklevel=2)
        self._makers[argnum] = gradfun
        defvjp(self, *self._makers.values(), argnums=[*self._makers])

    def defvjp(self, vjpmaker: Function, argnum: int = 0) -> None:
        """Give the rule ``vjpmaker(g, ans, vs, gvs, *args, **kwargs)`` of one argument."""

        def maker(ans: Any, *args: Any, **kwargs: Any) -> Function:
            space = vspace(args[argnum])
            return lambda g: vjpmaker(g, ans, space, vspace(g), *args, **kwargs)

        self.defgrad(maker, argnum)

    def defvjp_is_zero(self, argnums: Iterable[int] = (0,)) -> None:
        """Say that the result depends on none of these arguments."""
        for argnum in argnums:
            self.defgrad(None, argnum)


def primitive(fun: Function) -> Primitive:
    """Return `fun` as an operation that `defvjp` and `defjvp` give rules.

    Examples
    --------
    >>> import numpy as np
    >>> from pullback.compat.autograd import grad
    >>> cube = primitive(lambda x: x**3)
    >>> defvjp(cube, lambda ans, x: lambda g: g * 3 * x**2)
    >>> grad(cube)(2.0), grad(grad(cube))(2.0)
    (np.float64(12.0), np.float64(12.0))
    """
    return Primitive(fun)


class VJPNode:
    """Reverse mode, for `register_notrace`."""


class JVPNode:
    """Forward mode, for `register_notrace`."""


def register_notrace(trace_type: type, primitive_fun: Primitive) -> None:
    """Say that a primitive is of values alone, as one of `notrace_primitive`, in both modes.

    Examples
    --------
    >>> from pullback.compat.autograd import grad
    >>> nearest = primitive(lambda x: np.round(x))
    >>> register_notrace(VJPNode, nearest)
    >>> grad(lambda x: x * nearest(x))(2.2)
    np.float64(2.0)
    """
    primitive_fun.is_traced = False


# -- rules -----------------------------------------------------------------------------------------
def defvjp_argnums(fun: Primitive, vjpmaker: Function) -> None:
    """Give `fun` the rule ``vjpmaker(argnums, ans, args, kwargs)(g)``: a gradient per argument.

    Examples
    --------
    >>> from pullback.compat.autograd import grad
    >>> product = primitive(lambda x, y: x * y)
    >>> defvjp_argnums(product, lambda argnums, ans, args, kwargs: lambda g: [
    ...     g * args[1 - i] for i in argnums
    ... ])
    >>> grad(product, 1)(2.0, 3.0)
    np.float64(2.0)
    """
    primitive_vjps[fun] = vjpmaker
    if isinstance(fun, Primitive):
        fun._operations.clear()


def defvjp_argnum(fun: Primitive, vjpmaker: Function) -> None:
    """Give `fun` the rule ``vjpmaker(argnum, ans, args, kwargs)(g)``.

    Examples
    --------
    >>> from pullback.compat.autograd import grad
    >>> product = primitive(lambda x, y: x * y)
    >>> defvjp_argnum(product, lambda i, ans, args, kwargs: lambda g: g * args[1 - i])
    >>> grad(product, 1)(2.0, 3.0)
    np.float64(2.0)
    """

    def rule(argnums: Sequence[int], ans: Any, args: Any, kwargs: Any) -> Function:
        pulls = [vjpmaker(argnum, ans, args, kwargs) for argnum in argnums]
        return lambda g: [pull(g) for pull in pulls]

    defvjp_argnums(fun, _written_by(rule, vjpmaker))


def defvjp(fun: Primitive, *vjpmakers: Any, argnums: Iterable[int] | None = None) -> None:
    """Give `fun` the rules ``vjpmaker(ans, *args, **kwargs)(g)``, one for each argument.

    None is the rule of an argument that the result does not depend on.

    Examples
    --------
    >>> from pullback.compat.autograd import grad
    >>> scaled = primitive(lambda x, n: x * n)
    >>> defvjp(scaled, lambda ans, x, n: lambda g: g * n, None)
    >>> grad(scaled)(2.0, 3)
    np.float64(3.0)
    """
    makers = dict(zip(argnums or itertools.count(), vjpmakers, strict=False))

    def rule(argnum: int, ans: Any, args: Any, kwargs: Any) -> Function:
        maker = _maker_of(fun, "VJP", makers, argnum)
        return maker(ans, *args, **kwargs) if maker else lambda g: None

    defvjp_argnum(fun, _written_by(rule, next(filter(None, vjpmakers), None)))


def defjvp_argnums(fun: Primitive, jvpmaker: Function) -> None:
    """Give `fun` the forward rule ``jvpmaker(argnums, gs, ans, args, kwargs)``.

    Examples
    --------
    >>> from pullback.compat.autograd import deriv
    >>> product = primitive(lambda x, y: x * y)
    >>> defjvp_argnums(product, lambda argnums, gs, ans, args, kwargs: sum(
    ...     g * args[1 - i] for i, g in zip(argnums, gs)
    ... ))
    >>> deriv(product, 1)(2.0, 3.0)
    np.float64(2.0)
    """
    primitive_jvps[fun] = jvpmaker
    if isinstance(fun, Primitive):  # a function that has its derivative already keeps that
        fun._operations.clear()


def defjvp_argnum(fun: Primitive, jvpmaker: Function) -> None:
    """Give `fun` the forward rule ``jvpmaker(argnum, g, ans, args, kwargs)``, summed.

    Examples
    --------
    >>> from pullback.compat.autograd import deriv
    >>> product = primitive(lambda x, y: x * y)
    >>> defjvp_argnum(product, lambda i, g, ans, args, kwargs: g * args[1 - i])
    >>> deriv(product, 1)(2.0, 3.0)
    np.float64(2.0)
    """

    def rule(argnums: Sequence[int], gs: Sequence[Any], ans: Any, args: Any, kwargs: Any) -> Any:
        pairs = zip(argnums, gs, strict=True)
        tangents = [jvpmaker(argnum, g, ans, args, kwargs) for argnum, g in pairs]
        return functools.reduce(vspace(ans).add, tangents)

    defjvp_argnums(fun, rule)


def defjvp(fun: Primitive, *jvpfuns: Any, argnums: Iterable[int] | None = None) -> None:
    """Give `fun` the forward rules ``jvpfun(g, ans, *args, **kwargs)``, one for each argument.

    ``"same"`` is the rule of an argument in which `fun` is linear, None of one without effect.

    Examples
    --------
    >>> from pullback.compat.autograd import deriv
    >>> double = primitive(lambda x: x * 2)
    >>> defjvp(double, "same")
    >>> deriv(double)(3.0)
    np.float64(2.0)
    """
    makers = dict(zip(argnums or itertools.count(), jvpfuns, strict=False))

    def rule(argnum: int, g: Any, ans: Any, args: Any, kwargs: Any) -> Any:
        maker = _maker_of(fun, "JVP", makers, argnum)
        if maker == "same":
            return fun(*args[:argnum], g, *args[argnum + 1 :], **kwargs)
        return maker(g, ans, *args, **kwargs) if maker else vspace(ans).zeros()

    defjvp_argnum(fun, rule)


def def_linear(fun: Primitive) -> None:
    """Say that `fun` is linear in each argument.

    Examples
    --------
    >>> from pullback.compat.autograd import deriv
    >>> product = primitive(lambda x, y: x * y)
    >>> def_linear(product)
    >>> deriv(product, 1)(2.0, 3.0)
    np.float64(2.0)
    """
    defjvp(fun, *itertools.repeat("same", 16))


# -- values ----------------------------------------------------------------------------------------
def _written_by(rule: Function, source: Any) -> Function:
    """Return a rule; errors name the place of what the user wrote for it."""
    if source is not None:
        rule.__wrapped__ = source  # type: ignore[attr-defined]
    return rule


def _array(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.numpy()[()]
    return map_leaves(_array, value) if isinstance(value, (list, tuple, dict)) else value


def _for_rule(value: Any) -> Any:
    """Return an array for a tensor; one with NumPy's methods where it is derived again."""
    if not isinstance(value, Tensor):
        return map_leaves(_for_rule, value) if isinstance(value, (list, tuple, dict)) else value
    array = value.data_array()
    is_wrapped = array.__class__ is not np.ndarray and isinstance(
        library_of(array), WrappingLibrary
    )
    if is_wrapped or (value.requires_grad and pb.is_grad_enabled()):
        return in_class(value, NumPyTensor)
    return array[()]


def _conjugate_for_rule(value: Any) -> Any:
    return conjugate(_for_rule(value))


def _rule_of(fun: Primitive, kind: str, rules: dict[Any, Function], argnums: Any) -> Function:
    if fun in rules:
        return rules[fun]
    raise MissingRuleError(f"{kind} of {fun.__name__} wrt argnums {argnums} not defined")


def _maker_of(fun: Primitive, kind: str, makers: dict[int, Any], argnum: int) -> Any:
    if argnum in makers:
        return makers[argnum]
    raise MissingRuleError(f"{kind} of {fun.__name__} wrt argnum {argnum} not defined")


def __getattr__(name: str) -> Never:
    raise absent(__name__, name)
