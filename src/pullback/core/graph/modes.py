"""The modes of recording: grad, inference, saved-tensor hooks, an observer, a wrapping library.

Owns the one context variable that says how operations are recorded. A mode is an immutable
`Mode`; changing it sets the variable and leaving a block puts the previous object back, so
threads and tasks never see each other's modes. The common modes are singletons, `RECORD`,
`NO_GRAD`, `INFERENCE`, `UNRECORDED` (the library's own work) and `FORWARD` (of a user's operation):
a generated call compares with them and leaves others to `apply`.
Must not know tensors or the engine.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Generator
from contextvars import ContextVar
from typing import Any, NamedTuple, Self, TypeVar, overload

from pullback.arrays import Library
from pullback.core.graph.observer import Observer, beside
from pullback.errors import ArgumentTypeError

F = TypeVar("F", bound=Callable[..., Any])


class SavedTensorHooks(NamedTuple):
    """The pair of functions that packs saved tensors on recording and unpacks them on use."""

    pack: Callable[[Any], Any]
    unpack: Callable[[Any], Any]


class Mode(NamedTuple):
    """How operations are recorded at one moment in one thread or task."""

    grad: bool = True
    inference: bool = False
    # Whether operations on tensors that are parts of wrapped arrays are recorded though grad is
    # off: an unrecorded pass, or the forward of a user's operation, is no business of theirs.
    parts: bool = False
    # Whether that is a user's forward: what it closes over gets no gradient through it.
    forward: bool = False
    hooks: SavedTensorHooks | None = None
    observer: Observer | None = None
    library: Library | None = None  # a wrapping one, to which whatever is computed is wrap_in


RECORD = Mode()
NO_GRAD = Mode(grad=False)
INFERENCE = Mode(grad=False, inference=True)
UNRECORDED = Mode(grad=False, parts=True)
FORWARD = Mode(grad=False, parts=True, forward=True)
STATE: ContextVar[Mode] = ContextVar("pullback_mode", default=RECORD)
# The library in which new tensors are wrapped, and they alone: no matter of the mode, which
# generated calls look at.
MAKING: ContextVar[Library | None] = ContextVar("pullback_making", default=None)


def with_grad(mode: Mode, flag: bool) -> Mode:
    """Return `mode` with recording on or off for the library's own work, parts as they were."""
    if mode.grad is flag:
        return mode
    if mode is RECORD:
        return UNRECORDED
    return _common(mode._replace(grad=flag, parts=not flag, forward=False))


def in_forward(mode: Mode) -> Mode:
    """Return the mode in which a user's forward runs that is called in `mode`."""
    if mode is RECORD:
        return FORWARD
    inner = with_grad(mode, False)
    return _common(inner._replace(forward=True)) if mode.grad else inner


def mode_of_parts(mode: Mode) -> Mode:
    """Return the mode in which a wrapping library computes with parts that are tensors."""
    if mode is RECORD or mode is UNRECORDED or mode is FORWARD:
        return RECORD
    grad = mode.grad or mode.parts
    return _common(mode._replace(grad=grad, parts=False, forward=False, library=None))


def without_observer(mode: Mode) -> Mode:
    """Return `mode` with no observer."""
    if mode.grad and mode.hooks is None and mode.library is None:
        return RECORD
    return _common(mode._replace(observer=None))


def _common(mode: Mode) -> Mode:
    """Return the singleton that equals `mode`, if one does: generated calls compare identities."""
    for common in (RECORD, NO_GRAD, INFERENCE, UNRECORDED, FORWARD):
        if mode == common:
            return common
    return mode


def changed_mode(changes: dict[str, Any]) -> Mode:
    """Return the current mode with `changes` made."""
    mode = STATE.get()
    if "observer" in changes:
        changes = {**changes, "observer": beside(mode.observer, changes["observer"])}
    if mode.forward and "grad" in changes:  # it says itself what is recorded
        mode = mode._replace(forward=False)
    return _common(mode._replace(**changes))


_TO_NO_GRAD = {"grad": False, "parts": False}
_TO_GRAD = {"grad": True, "parts": False}
_TO_INFERENCE = {"grad": False, "inference": True, "parts": False}
_FROM_INFERENCE = {"grad": True, "inference": False}


class ModeContext:
    """A change of mode, usable as a ``with`` block and as a decorator.

    Decorating a generator or a coroutine function applies the mode while its own body runs and
    gives the consumer its own mode back at every ``yield`` or ``await``.
    """

    def __init__(self, changes: dict[str, Any]) -> None:
        self._changes = changes
        self._previous: list[Mode] = []

    def __enter__(self) -> Self:
        previous, mode = self._previous, STATE.get()
        depth = len(previous)
        try:
            if mode is RECORD and self._changes is _TO_NO_GRAD:
                STATE.set(NO_GRAD)  # the commonest change, without making a mode
            else:
                STATE.set(changed_mode(self._changes))
            previous.append(mode)
        except BaseException:  # an interrupt: the block is not entered, nor left
            STATE.set(mode)
            del previous[depth:]
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        try:
            STATE.set(self._previous[-1])
        finally:
            self._previous.pop()

    def __call__(self, fn: F) -> F:
        """Return `fn` with every run of its body under the mode."""
        if not callable(fn):
            raise ArgumentTypeError(
                f"{type(self).__name__}: a decorated object must be callable, "
                f"got {type(fn).__name__}"
            )
        return _decorate(fn, self._changes)


def run_in_mode(changes: dict[str, Any], fn: Callable[..., Any], /, *args: Any, **kw: Any) -> Any:
    """Call `fn` in the current mode with `changes` made.

    Unlike a ``with`` block, whose end an interrupt may forestall, it always puts the mode back.
    So is the mode set everywhere: within a ``try`` whose ``finally`` sets the one read before it.
    """
    return run_with(STATE, changed_mode(changes), fn, *args, **kw)


def run_with(
    variable: ContextVar[Any], value: Any, fn: Callable[..., Any], /, *args: Any, **kw: Any
) -> Any:
    """Call `fn` with a value of one context variable, which always has its own again afterwards.

    Several are set by nested calls: an interrupt between two lines of one ``finally`` would leave
    out the second.
    """
    before = variable.get()
    try:
        variable.set(value)
        return fn(*args, **kw)
    finally:
        variable.set(before)


# -- decorators ------------------------------------------------------------------------------------
def _decorate(fn: F, changes: dict[str, Any]) -> F:
    if inspect.isasyncgenfunction(fn):
        raise ArgumentTypeError(
            f"a mode cannot decorate an async generator function, got {fn.__qualname__}.\n"
            "hint: open the mode inside it, around the code between two yields."
        )

    def called(*args: Any, **kwargs: Any) -> Any:
        return run_in_mode(changes, fn, *args, **kwargs)

    def generated(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        return (yield from _driven(called(*args, **kwargs), changes))

    async def awaited(*args: Any, **kwargs: Any) -> Any:
        # Marks `_driven` itself, whose generators can then be awaited as well.
        return await types.coroutine(_driven)(fn(*args, **kwargs).__await__(), changes)

    wrapper: Any = called
    if inspect.isgeneratorfunction(fn):
        wrapper = generated
    elif inspect.iscoroutinefunction(fn):
        wrapper = awaited
    return functools.wraps(fn)(wrapper)  # type: ignore[return-value]


def _driven(body: Any, changes: dict[str, Any]) -> Generator[Any, Any, Any]:
    """Step `body` under the mode; yield to the consumer outside it."""
    step: Callable[[], Any] = functools.partial(next, body)
    while True:
        try:
            item = run_in_mode(changes, step)
        except StopIteration as stop:
            return stop.value
        try:
            received = yield item
        except GeneratorExit:
            run_in_mode(changes, body.close)
            raise
        except BaseException as error:
            step = functools.partial(body.throw, error)
        else:
            step = functools.partial(body.send, received)


@overload
def no_grad(fn: None = None) -> ModeContext: ...
@overload
def no_grad(fn: F) -> F: ...
def no_grad(fn: F | None = None) -> F | ModeContext:
    """Switch recording off: a ``with`` block, ``@no_grad`` or ``@no_grad()``.

    Examples
    --------
    >>> import pullback as pb
    >>> x = pb.tensor([1.0], requires_grad=True)
    >>> with pb.no_grad():
    ...     (x * 2).requires_grad
    False
    """
    context = ModeContext(_TO_NO_GRAD)
    return context if fn is None else context(fn)


@overload
def enable_grad(fn: None = None) -> ModeContext: ...
@overload
def enable_grad(fn: F) -> F: ...
def enable_grad(fn: F | None = None) -> F | ModeContext:
    """Switch recording on, inside `no_grad` for instance; used like `no_grad`.

    Examples
    --------
    >>> import pullback as pb
    >>> x = pb.tensor([1.0], requires_grad=True)
    >>> with pb.no_grad(), pb.enable_grad():
    ...     (x * 2).requires_grad
    True
    """
    context = ModeContext(_TO_GRAD)
    return context if fn is None else context(fn)


@overload
def inference_mode(mode: None = None) -> ModeContext: ...
@overload
def inference_mode(mode: F) -> F: ...
@overload
def inference_mode(mode: bool) -> ModeContext: ...
def inference_mode(mode: F | bool | None = None) -> F | ModeContext:
    """Switch recording off for code that will never need a gradient; used like `no_grad`.

    Examples
    --------
    >>> import pullback as pb
    >>> with pb.inference_mode():
    ...     pb.is_grad_enabled()
    False
    """
    if isinstance(mode, bool):
        return ModeContext(_TO_INFERENCE) if mode else ModeContext(_FROM_INFERENCE)
    context = ModeContext(_TO_INFERENCE)
    return context if mode is None else context(mode)


class ImmediateMode(ModeContext):
    """A change of mode that is made at once, and undone when used as a ``with`` block."""

    def __init__(self, changes: dict[str, Any]) -> None:
        super().__init__(changes)
        super().__enter__()

    def __enter__(self) -> Self:
        if not self._previous:
            return super().__enter__()
        try:
            STATE.set(changed_mode(self._changes))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __call__(self, fn: F) -> F:
        """Return `fn` with every run of its body under the mode."""
        if self._previous:  # the call that made the decorator is no change of mode
            self.__exit__()
        return super().__call__(fn)


class set_grad_enabled(ImmediateMode):  # noqa: N801  (a call and a block, as in PyTorch)
    """Switch recording on or off at once, and back when used as a ``with`` block.

    Parameters
    ----------
    mode : bool
        Whether operations are recorded from here on.

    Examples
    --------
    >>> import pullback as pb
    >>> with pb.set_grad_enabled(False):
    ...     pb.is_grad_enabled()
    False
    """

    def __init__(self, mode: bool) -> None:
        super().__init__({"grad": bool(mode), "parts": False})


def is_grad_enabled() -> bool:
    """Return whether operations are recorded in this thread or task.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.is_grad_enabled()
    True
    """
    return STATE.get().grad


def is_inference_mode_enabled() -> bool:
    """Return whether `inference_mode` is on in this thread or task.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.is_inference_mode_enabled()
    False
    """
    return STATE.get().inference


class saved_tensors_hooks(ModeContext):  # noqa: N801
    """Pack what operations save, and unpack it when their gradient is computed.

    Inside the block every tensor that an operation saves is given to `pack_hook`, once; what it
    returns is kept instead, and given to `unpack_hook` when backward needs the tensor. Of
    nested blocks only the innermost applies.

    Parameters
    ----------
    pack_hook : callable
        Called with a tensor; returns any object. Must not change the tensor in place.
    unpack_hook : callable
        Called with what `pack_hook` returned; returns a tensor.

    Examples
    --------
    >>> import pullback as pb
    >>> a = pb.tensor(3.0, requires_grad=True)
    >>> with pb.saved_tensors_hooks(lambda t: t.numpy(), pb.asarray):
    ...     b = a * a
    >>> b.backward()
    >>> a.grad
    tensor(6.)
    """

    def __init__(self, pack_hook: Callable[[Any], Any], unpack_hook: Callable[[Any], Any]) -> None:
        for role, hook in (("pack_hook", pack_hook), ("unpack_hook", unpack_hook)):
            if not callable(hook):
                raise ArgumentTypeError(
                    f"saved_tensors_hooks: {role} must be callable, got {type(hook).__name__}"
                )
        super().__init__({"hooks": SavedTensorHooks(pack_hook, unpack_hook)})
