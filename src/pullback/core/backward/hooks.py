"""Running hooks: the user's functions that see, and may replace, gradients on their way.

Owns the calling conventions and checks of tensor hooks, retained gradients, node pre- and
post-hooks and `register_multi_grad_hook`. Gradients reach hooks as tensors whose array is
borrowed: changing it in place changes a copy, and is reported, since it would be lost.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any
from weakref import ref

from pullback.core.custom.memory import own
from pullback.core.graph.modes import STATE, with_grad
from pullback.core.graph.node import Extra, Node, RemovableHandle
from pullback.core.tensor.tensor import Tensor, as_array, borrowed, box, unaliased
from pullback.errors import ArgumentError, ArgumentTypeError, GradientError, GraphError


class _Running(threading.local):
    """The backward pass that is running in this thread, set by the engine."""

    current: Any = None  # a pass awaits nothing, so a thread's own is a task's own too


RUNNING = _Running()


def _grad_to_tensor(g: Any) -> Tensor:
    return g if isinstance(g, Tensor) else box(as_array(g))


def take_back(value: Tensor, like: Any) -> Any:
    """Return a tensor as what a pass works with: the tensor itself where `like` is one."""
    return value if isinstance(like, Tensor) else value.data_array()


def run_grad_hooks(extra: Extra, g: Any) -> Any:
    """Run the hooks of a tensor on its gradient, then fill its ``.grad`` if it retains it."""
    for key, hook in list(extra.tensor_hooks.items()):
        if key in extra.tensor_hooks:
            g = _replaced(hook, borrowed(g), g)
    if extra.retained is not None and (tensor := extra.retained()) is not None:
        add_to_grad(tensor, unaliased(_grad_to_tensor(g)), isinstance(g, Tensor))
    return g


def add_to_grad(tensor: Tensor, g: Tensor, recorded: bool) -> None:
    """Add a gradient to that of a tensor which is no leaf."""
    mode = STATE.get()
    try:
        STATE.set(mode if recorded else with_grad(mode, False))
        tensor._grad = g if tensor._grad is None else tensor._grad + g
    finally:
        STATE.set(mode)


def _replaced(hook: Callable[..., Any], tensor: Tensor, g: Any) -> Any:
    """Call `hook` and return the gradient that goes on."""
    before = tensor._version
    result = hook(tensor)
    if result is None:
        if tensor._version != before:
            raise GradientError(
                "register_hook: the hook changed its gradient in place, which is not seen by "
                "the backward pass.\nhint: return the new gradient from the hook instead."
            )
        return g
    _check("register_hook", "a Tensor", result, tensor)
    return take_back(own(result, 0, (g,)), g)


def _borrowed_all(grads: Any) -> tuple[Any, ...]:
    return tuple(borrowed(g) for g in grads)


def _take_all(api: str, result: Any, grads: Sequence[Any]) -> Sequence[Any]:
    """Return the gradients that a node hook put in the place of `grads`."""
    if result is None:
        return grads
    if isinstance(result, Tensor):
        result = (result,)
    if not isinstance(result, (tuple, list)):
        raise ArgumentTypeError(
            f"{api}: a hook must return a tuple of gradients or None, got {type(result).__name__}"
        )
    if len(result) != len(grads):
        raise GradientError(
            f"{api}: a hook must return as many gradients as it was given, got {len(result)} "
            f"for {len(grads)}"
        )
    like = next((g for g in grads if g is not None), None)
    result = own(result, 0, grads)
    return [_fitting(api, r, g, like) for r, g in zip(result, grads, strict=True)]


def _fitting(api: str, value: Any, g: Any, like: Any) -> Any:
    """Return what a hook put in the place of the gradient `g`, after the checks."""
    if value is None:
        return None
    _check(api, "Tensors", value, None if g is None else _grad_to_tensor(g))
    return take_back(value, like)


def _check(api: str, required: str, value: Any, before: Tensor | None) -> None:
    """Raise unless a hook returned a tensor, of the shape and dtype of the one before if any."""
    if not isinstance(value, Tensor):
        raise ArgumentTypeError(
            f"{api}: a hook must return {required} or None, got {type(value).__name__}"
        )
    if before is None:
        return
    if value.shape != before.shape or value.dtype is not before.dtype:
        raise GradientError(
            f"{api}: a hook must return a gradient of the same shape and dtype, got shape "
            f"{value.shape}, dtype {value.dtype.name} for shape {before.shape}, dtype "
            f"{before.dtype.name}"
        )


def run_prehooks(extra: Extra, g: Any) -> Any:
    """Run a node's pre-hooks on the tuple of gradients of its outputs."""
    several = isinstance(g, list)
    grads: Sequence[Any] = g if several else (g,)
    for key, hook in list(extra.prehooks.items()):
        if key in extra.prehooks:
            grads = _take_all("register_prehook", hook(_borrowed_all(grads)), grads)
    return list(grads) if several else grads[0]


def run_posthooks(extra: Extra, grads: Sequence[Any], g: Any) -> Sequence[Any]:
    """Run a node's post-hooks on the gradients of its inputs and of its outputs."""
    outs = _borrowed_all(g if isinstance(g, list) else (g,))
    for key, hook in list(extra.posthooks.items()):
        if key in extra.posthooks:
            grads = _take_all("register_hook", hook(_borrowed_all(grads), outs), grads)
    return grads


class MultiHandle(RemovableHandle):
    """Takes a hook on several tensors away again."""

    def __init__(self, handles: Sequence[RemovableHandle]) -> None:
        self.handles = handles

    def remove(self) -> None:
        """Remove the hook from every tensor."""
        for handle in self.handles:
            handle.remove()


class _MultiGradHook:
    """Collects the gradients of several tensors in each pass and calls the hook once."""

    def __init__(self, targets: Sequence[Node], hook: Callable[..., Any], first: bool) -> None:
        self.targets = [ref(t) for t in targets]  # a node's hook must not keep the node alive
        self.hook = hook
        self.first = first

    def watch(self, index: int) -> Callable[[Tensor], None]:
        """Return the tensor hook for the tensor at `index`."""

        def seen(grad: Tensor) -> None:
            current = RUNNING.current
            if self.first:
                if self not in current.notes:  # of this pass, which is one thread's
                    current.notes[self] = None
                    self.hook(grad)
                return
            state = current.notes.get(self)
            if state is None:
                missing = sum(current.reaches(t()) for t in self.targets)
                grads = [None] * len(self.targets)
                state = SimpleNamespace(grads=grads, missing=missing, done=False)
                current.notes[self] = state
                current.at_end = (*current.at_end, self.finish)
            state.missing -= 1
            state.grads[index] = grad
            if state.missing == 0:
                self.finish(current)

        return seen

    def finish(self, current: Any) -> None:
        """Call the hook with what came in this pass, unless that was done."""
        state = current.notes[self]
        if not state.done:
            state.done = True
            self.hook(state.grads)


def register_multi_grad_hook(
    tensors: Sequence[Tensor], fn: Callable[..., None], *, mode: str = "all"
) -> MultiHandle:
    """Call `fn` once a backward pass for a group of tensors.

    Parameters
    ----------
    tensors : sequence of Tensor
        Tensors that require grad.
    fn : callable
        With ``mode="all"``, called with a list of their gradients, None for those that are not
        part of the pass, when the last is known; with ``mode="any"``, with the first gradient.
    mode : {"all", "any"}
        When to call.

    Returns
    -------
    MultiHandle
        Its ``remove()`` takes the hook away.

    Raises
    ------
    ArgumentError
        If `mode` is neither.

    Examples
    --------
    >>> import pullback as pb
    >>> a, b = pb.tensor(2.0, requires_grad=True), pb.tensor(3.0, requires_grad=True)
    >>> handle = pb.register_multi_grad_hook((a, b), lambda grads: print(grads))
    >>> (a * b).backward()
    [tensor(3.), tensor(2.)]
    """
    if mode not in ("all", "any"):
        raise ArgumentError(f"register_multi_grad_hook: mode must be 'all' or 'any', got {mode!r}")
    if not callable(fn):
        raise ArgumentTypeError(
            f"register_multi_grad_hook: fn must be callable, got {type(fn).__name__}"
        )
    targets = []
    for i, t in enumerate(tensors):
        if not isinstance(t, Tensor) or not t.requires_grad:
            raise GraphError(
                f"register_multi_grad_hook: tensors[{i}] must be a Tensor that requires grad"
            )
        targets.append(t._node)
    group = _MultiGradHook(targets, fn, mode == "any")
    return MultiHandle([t.register_hook(group.watch(i)) for i, t in enumerate(tensors)])
