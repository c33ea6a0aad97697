"""PyTorch's words for axes: ``dim`` and ``keepdim`` beside a function's ``axis`` and ``keepdims``.

Owns the written function that has both and hands one value of each to a function that knows its
own alone. Must not know any particular function. Of a body ``(x, axis=None, *, dtype=None)`` and
the operation ``of`` it becomes

    def softmax(x, dim=None, *, dtype=None, axis=None):
        if axis is not None:
            dim = merge_axis_args(name, dim, axis)
        if dtype is None:
            return of(x, axis=dim)
        return body(x, dim, dtype=dtype)
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from inspect import Parameter
from types import FunctionType
from typing import Any, TypeVar

from pullback.core.function.codegen import define_as
from pullback.core.function.dispatch import merge_axis_args
from pullback.core.function.primitive import Primitive
from pullback.ops.declare import refuse_positions

R = TypeVar("R")


def torch_words(
    of: Primitive | None = None, *, word: str = "dim"
) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Give a function with an `axis`, and perhaps `keepdims`, PyTorch's words for them as well.

    An `axis` by position has PyTorch's word there, and its own by keyword; where it is by keyword,
    so are both, and settings by position are an error that says so.

    Parameters
    ----------
    of : Primitive, optional
        What the function does where no setting but this operation's own is used: then it is called
        straight away.
    word : str
        What PyTorch calls the axis.
    """

    def decorate(body: Callable[..., R]) -> Callable[..., R]:
        own = list(inspect.signature(body).parameters.values())
        call = _Words(own, word, of).function(body.__name__, body)
        call.__qualname__, call.__module__ = body.__qualname__, body.__module__
        call.__doc__ = body.__doc__
        call.__annotations__["return"] = body.__annotations__["return"]
        return call

    return decorate


@functools.cache
def method_of(op: Primitive, name: str) -> FunctionType:
    """Return the method that is an operation of one array, with PyTorch's words by position."""
    own = [Parameter("self", Parameter.POSITIONAL_OR_KEYWORD, annotation="Any")]
    for setting, default in op.settings.items():
        is_axis = setting in ("axis", "keepdims")
        kind = Parameter.POSITIONAL_OR_KEYWORD if is_axis else Parameter.KEYWORD_ONLY
        annotation = op.forward.__annotations__.get(setting, "Any")
        own.append(Parameter(setting, kind, default=default, annotation=annotation))
    call = _Words(own, "dim", op).function(name)
    call.__doc__, call.__module__ = op.public.__doc__, __name__
    return call


class _Words:
    """The parameters of a function, and those of the one around it that has PyTorch's words."""

    def __init__(self, own: Sequence[Parameter], word: str, of: Primitive | None) -> None:
        words = {"axis": word, "keepdims": "keepdim"}
        axes = [p for p in own if p.name in words]
        self.own, self.of, self.word = own, of, word
        self.has_flag = len(axes) > 1
        self.by_position = axes[0].kind is not Parameter.KEYWORD_ONLY
        self.default = axes[0].default
        alone = [_unset(p).replace(kind=Parameter.KEYWORD_ONLY) for p in axes]
        theirs = {p.name: _unset(p).replace(name=words[p.name]) for p in axes}
        if self.by_position:
            outer = [theirs.get(p.name, p) for p in own] + alone
        else:
            outer = [*own, *theirs.values()]
        self.outer = sorted(outer, key=lambda p: p.kind)

    def function(self, name: str, body: Callable[..., Any] | None = None) -> FunctionType:
        """Return the function, which goes by `name` in errors."""
        uses = {"op": name, "wrapped": body, "of": None if self.of is None else self.of.public}
        uses |= {"default": self.default, "merge_axis_args": merge_axis_args}
        uses["refuse_positions"] = lambda more: refuse_positions(call, more)
        lines = [*self._merged(), *self._straight(), *self._called(body)]
        head = inspect.Signature(self._with_rest())
        call: FunctionType = define_as(head, lines, name, f"{name} with {self.word}", **uses)
        call.__signature__ = inspect.Signature(self.outer)  # type: ignore[attr-defined]
        call.has_torch_words = True  # type: ignore[attr-defined]  # its stub is written
        return call

    def _with_rest(self) -> list[Parameter]:
        rest = [] if self.by_position else [Parameter("_more", Parameter.VAR_POSITIONAL)]
        return sorted([*self.outer, *rest], key=lambda p: p.kind)

    def _merged(self) -> list[str]:
        """Return the lines that leave one axis and one flag, where both words may have come."""
        word = self.word
        merge = f"$merge_axis_args($op, {word}, axis)"
        if self.by_position:
            lines = ["if axis is not None:", f"    {word} = {merge}"]
            unset = [f"elif {word} is None:", f"    {word} = $default"]
            return lines if self.default is None else [*lines, *unset]
        flag = ["    keepdims = keepdims or keepdim"] if self.has_flag else []
        test = f"if _more or {word} is not None{' or keepdim' if flag else ''}:"
        refuse = ["    if _more:", "        $refuse_positions(_more)"]
        return [test, *refuse, f"    axis = {merge}", *flag]

    def _value(self, name: str) -> str:
        """Return what the function around hands on for a parameter."""
        names = {"axis": self.word, "keepdims": "keepdim or keepdims"}
        return names.get(name, name) if self.by_position else name

    def _straight(self) -> list[str]:
        """Return the lines that call the operation, if nothing else was asked for."""
        if self.of is None:
            return []
        arrays = [p.name for p in self.own if p.default is p.empty]
        settings = [p.name for p in self.own if p.name in self.of.settings]
        more = [p.name for p in self.own if p.name not in (*arrays, *settings)]
        arguments = ", ".join([*arrays, *(f"{n}={self._value(n)}" for n in settings)])
        call = f"return $of({arguments})"
        return (
            [f"if {' and '.join(f'{n} is None' for n in more)}:", f"    {call}"] if more else [call]
        )

    def _called(self, body: Any) -> list[str]:
        if body is None:
            return []
        values = [
            f"{p.name}={self._value(p.name)}" if p.kind is p.KEYWORD_ONLY else self._value(p.name)
            for p in self.own
        ]
        return [f"return $wrapped({', '.join(values)})"]


def _unset(parameter: Parameter) -> Parameter:
    """Return a parameter that is None where it is left out, but for a flag."""
    if parameter.default is None or parameter.default is False:
        return parameter
    return parameter.replace(default=None, annotation=f"{parameter.annotation} | None")
