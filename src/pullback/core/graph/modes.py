"""The modes of recording: grad, inference, anomaly, saved-tensor hooks.

Owns the one context variable that says how operations are recorded. A mode is an immutable
`Mode`; changing it sets the variable and leaving a block puts the previous object back, so
threads and tasks never see each other's modes. The default mode is the singleton `RECORD`: the
hot path compares with `is RECORD` and leaves every other mode to the general path.
Must not know tensors, nodes or the engine.
"""

from __future__ import annotations

import functools
import inspect
import threading
import warnings
from collections.abc import AsyncGenerator, Callable, Generator
from contextvars import ContextVar
from typing import Any, NamedTuple, Self, TypeVar, overload

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
    anomaly: bool = False
    check_nan: bool = True
    allow_inf: bool = False
    hooks: SavedTensorHooks | None = None


RECORD = Mode()
NO_GRAD = Mode(grad=False)
STATE: ContextVar[Mode] = ContextVar("pullback_mode", default=RECORD)


def with_grad(mode: Mode, flag: bool) -> Mode:
    """Return `mode` with its grad flag set, reusing the two common objects."""
    if mode.grad is flag:
        return mode
    if mode is RECORD:
        return NO_GRAD
    changed = mode._replace(grad=flag)
    return RECORD if changed == RECORD else changed


def changed_mode(changes: dict[str, Any]) -> Mode:
    """Return the current mode with `changes` made; the default mode stays the singleton."""
    mode = STATE.get()._replace(**changes)
    return RECORD if mode == RECORD else mode


_TO_NO_GRAD = {"grad": False}
_TO_GRAD = {"grad": True}
_TO_INFERENCE = {"grad": False, "inference": True}
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
        mode = STATE.get()
        self._previous.append(mode)
        if mode is RECORD and self._changes is _TO_NO_GRAD:
            STATE.set(NO_GRAD)  # the commonest change, without making a mode
        else:
            STATE.set(changed_mode(self._changes))
        return self

    def __exit__(self, *exc: object) -> None:
        STATE.set(self._previous.pop())

    def __call__(self, fn: F) -> F:
        """Return `fn` with every run of its body under the mode."""
        if not callable(fn):
            raise ArgumentTypeError(
                f"{type(self).__name__}: a decorated object must be callable, "
                f"got {type(fn).__name__}"
            )
        entered = _Detecting if "anomaly" in self._changes else _Entered
        return _decorate(fn, functools.partial(entered, self._changes))


class _Entered:
    """One entry into a mode around a piece of somebody else's body."""

    __slots__ = ("changes", "previous")

    def __init__(self, changes: dict[str, Any]) -> None:
        self.changes = changes

    def __enter__(self) -> None:
        self.previous = STATE.get()
        STATE.set(changed_mode(self.changes))

    def __exit__(self, *exc: object) -> None:
        STATE.set(self.previous)


# -- anomaly detection: the quick ways are closed meanwhile ----------------------------------------
# The globals of the modules that have ways round the general one, where results are looked at. In
# each, `_quick` is the class of arrays that may take them, and None while any thread detects: so
# the quick ways need not ask for it, and cost nothing more.
QUICK_WAYS: list[dict[str, Any]] = []
_detecting = [0]  # how many blocks, in all threads
_lock = threading.Lock()


def _follows(change: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that changes the mode, and closes or opens the quick ways with it."""

    @functools.wraps(change)
    def method(*args: Any, **kwargs: Any) -> Any:
        before = STATE.get().anomaly
        try:
            return change(*args, **kwargs)
        finally:
            with _lock:
                _detecting[0] += STATE.get().anomaly - before
                for names in QUICK_WAYS:
                    names["_quick"] = None if _detecting[0] else names["_array"]

    return method


class _Detecting(_Entered):
    """One entry into or out of anomaly mode."""

    __slots__ = ()
    __enter__ = _follows(_Entered.__enter__)
    __exit__ = _follows(_Entered.__exit__)


# -- decorators ------------------------------------------------------------------------------------
def _decorate(fn: F, enter: Callable[[], _Entered]) -> F:
    wrapper: Any
    if inspect.isasyncgenfunction(fn):
        wrapper = _async_generator(fn, enter)
    elif inspect.isgeneratorfunction(fn):
        wrapper = _generator(fn, enter)
    elif inspect.iscoroutinefunction(fn):
        wrapper = _coroutine(fn, enter)
    else:

        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with enter():
                return fn(*args, **kwargs)

    return functools.wraps(fn)(wrapper)  # type: ignore[return-value]


def _generator(fn: Callable[..., Any], enter: Callable[[], _Entered]) -> Callable[..., Any]:
    def wrapper(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        with enter():
            body = fn(*args, **kwargs)
        return (yield from _driven(body, enter))

    return wrapper


def _driven(body: Any, enter: Callable[[], _Entered]) -> Generator[Any, Any, Any]:
    """Step `body` under the mode; yield to the consumer outside it."""
    step: Callable[[], Any] = functools.partial(next, body)
    while True:
        try:
            with enter():
                item = step()
        except StopIteration as stop:
            return stop.value
        try:
            received = yield item
        except GeneratorExit:
            with enter():
                body.close()
            raise
        except BaseException as error:
            step = functools.partial(body.throw, error)
        else:
            step = functools.partial(body.send, received)


def _coroutine(fn: Callable[..., Any], enter: Callable[[], _Entered]) -> Callable[..., Any]:
    class Driven:
        """Awaits a coroutine whose every step runs under the mode."""

        def __init__(self, body: Any) -> None:
            self.body = body

        def __await__(self) -> Generator[Any, Any, Any]:
            return _driven(self.body.__await__(), enter)

    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        return await Driven(fn(*args, **kwargs))

    return wrapper


def _async_generator(fn: Callable[..., Any], enter: Callable[[], _Entered]) -> Callable[..., Any]:
    async def wrapper(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        body = fn(*args, **kwargs)
        step = _coroutine(body.__anext__, enter)
        try:
            while True:
                try:
                    item = await step()
                except StopAsyncIteration:
                    return
                try:
                    received = yield item
                except GeneratorExit:
                    raise
                except BaseException as error:
                    step = _coroutine(functools.partial(body.athrow, error), enter)
                else:
                    step = _coroutine(functools.partial(body.asend, received), enter)
        finally:
            await _coroutine(body.aclose, enter)()

    return wrapper


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
def inference_mode(fn: None = None) -> ModeContext: ...
@overload
def inference_mode(fn: F) -> F: ...
@overload
def inference_mode(fn: bool) -> ModeContext: ...
def inference_mode(fn: F | bool | None = None) -> F | ModeContext:
    """Switch recording off for code that will never need a gradient; used like `no_grad`.

    Examples
    --------
    >>> import pullback as pb
    >>> with pb.inference_mode():
    ...     pb.is_grad_enabled()
    False
    """
    if isinstance(fn, bool):
        return ModeContext(_TO_INFERENCE) if fn else ModeContext(_FROM_INFERENCE)
    context = ModeContext(_TO_INFERENCE)
    return context if fn is None else context(fn)


class set_grad_enabled(ModeContext):  # noqa: N801  (a call and a block, as in PyTorch)
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
        super().__init__({"grad": bool(mode)})
        self._previous.append(STATE.get())
        STATE.set(changed_mode(self._changes))

    def __enter__(self) -> Self:
        if not self._previous:
            return super().__enter__()
        STATE.set(changed_mode(self._changes))
        return self

    def __call__(self, fn: F) -> F:
        """Return `fn` with every run of its body under the mode."""
        if self._previous:  # the call that made the decorator is no change of mode
            STATE.set(self._previous.pop())
        return super().__call__(fn)


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


class detect_anomaly(ModeContext):  # noqa: N801
    """Stop at the first operation that makes a NaN or an infinity, and name it.

    Inside the block every result of an operation and every gradient is looked at. The first that
    is not finite though what it was computed from is raises, naming the operation, its inputs'
    ranges and the user's line; see docs/anomaly.md. An error in backward also shows the line of
    the forward that recorded the operation. Slow: for debugging.

    Parameters
    ----------
    check_nan : bool, default True
        Whether to look at the numbers; if False, only the lines are remembered.
    allow_inf : bool, keyword-only, default False
        Whether infinities are in order, so that only NaN raises.

    Raises
    ------
    GradientError
        Inside the block, where a NaN or an infinity comes up.

    Examples
    --------
    >>> import warnings, numpy as np, pullback as pb
    >>> x = pb.tensor([1.0, 0.0], requires_grad=True)
    >>> with warnings.catch_warnings(), np.errstate(divide="ignore"):
    ...     warnings.simplefilter("ignore")
    ...     with pb.detect_anomaly():
    ...         x.log()
    Traceback (most recent call last):
        ...
    pullback.errors.GradientError: log: a finite result was required, got inf ...
    """

    def __init__(self, check_nan: bool = True, *, allow_inf: bool = False) -> None:
        warnings.warn(
            "Anomaly Detection has been enabled. It makes every operation slower and is meant "
            "only for debugging.",
            stacklevel=2,
        )
        super().__init__(_to_detect(True, check_nan, allow_inf))

    __enter__ = _follows(ModeContext.__enter__)
    __exit__ = _follows(ModeContext.__exit__)


def _to_detect(anomaly: bool, check_nan: bool, allow_inf: bool) -> dict[str, Any]:
    if not anomaly:
        return {"anomaly": False, "check_nan": True, "allow_inf": False}
    return {"anomaly": True, "check_nan": bool(check_nan), "allow_inf": bool(allow_inf)}


class set_detect_anomaly(set_grad_enabled):  # noqa: N801
    """Switch anomaly detection on or off at once, and back when used as a ``with`` block.

    Parameters
    ----------
    mode : bool
        Whether anomalies are detected from here on.
    check_nan, allow_inf : bool
        As for `detect_anomaly`.

    Examples
    --------
    >>> import pullback as pb
    >>> with pb.set_detect_anomaly(False):
    ...     pass
    """

    @_follows
    def __init__(self, mode: bool, check_nan: bool = True, *, allow_inf: bool = False) -> None:
        ModeContext.__init__(self, _to_detect(mode, check_nan, allow_inf))
        self._previous.append(STATE.get())
        STATE.set(changed_mode(self._changes))

    __enter__ = _follows(set_grad_enabled.__enter__)
    __exit__ = _follows(set_grad_enabled.__exit__)
    __call__ = _follows(set_grad_enabled.__call__)


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
