"""What the limits of an integral, or the times of a solution, contribute to derivatives.

Owns the integral of f from the value of a limit to the limit: a zero with derivatives. That by the
limit is f there; that by anything else is such an integral of f's derivative, which is not computed
before it is differentiated by the limit in turn. So no derivative of f by the limit is taken for a
first derivative, where it may be infinite, and derivatives of every order are exact.

Invariants: a limit that wraps others (forward mode) has a tangent, which is taken here, and what is
wrapped is a limit of its own. What f reads must be as it was when it is evaluated again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextvars import copy_context
from typing import Any, NamedTuple

from pullback.arrays import join, library_of
from pullback.core.backward.collect import since
from pullback.core.backward.engine import run
from pullback.core.function.dispatch import wrap_in
from pullback.core.function.record import NodeOperation, PassThrough, new_node
from pullback.core.function.tensor_library import on_parts
from pullback.core.graph.modes import STATE, enable_grad
from pullback.core.graph.node import Node, WideNode, next_seq
from pullback.core.tensor.tensor import Tensor, as_array, box
from pullback.errors import InplaceError
from pullback.implicit.solution import differs
from pullback.ops.functions.creation import zeros_like
from pullback.transforms.forward.array import TangentLibrary
from pullback.transforms.levels import resumed
from pullback.transforms.wrapped import TransformLibrary, Wrapped, part_of, to_tensor

__all__ = ["integral_to", "solution_at", "solution_from"]

# A function of a number beside a limit, and of that limit, on which it may depend itself.
Integrand = Callable[[Tensor, Tensor], Tensor]
Slope = Callable[[Any, Any], Any]


def solution_at(f: Slope, y: Tensor, time: Tensor) -> Tensor:
    """Return the solution of ``dy/dt = f(y, t)`` at a time that is `y` at the time's value."""
    return _with(y, integral_to(lambda at, _: f(solution_at(f, y, at), at), time))


def solution_from(f: Slope, y: Tensor, time: Tensor) -> Tensor:
    """Return the solution at the value of a time that is `y` at the time."""
    value = time.detach()

    def slope(at: Tensor, limit: Tensor) -> Any:  # later, as the mirror image is earlier
        def later(y: Any, at: Any) -> Any:
            return f(y, at + (value - limit))

        return later(solution_at(later, y, at), at)

    return _with(y, integral_to(slope, 2 * value - time))


def _with(y: Tensor, change: Tensor | None) -> Tensor:
    return y if change is None else y + change


def integral_to(f: Integrand, limit: Tensor) -> Tensor | None:
    """Return the integral of `f` from the value of a limit to it, None where that is constant."""
    if not limit.requires_grad and not isinstance(limit.data_array(), Wrapped):
        return None
    f, begun, at = _Again(f), next_seq(), limit.detach()
    sample = f(at, box(at.data_array(), limit._node))
    leads = since([sample._node], begun)[1] if sample.requires_grad else ()
    return _integral(f, limit, limit._node, _cut(sample), dict.fromkeys(leads))


def _cut(tensor: Tensor) -> Tensor:
    """Return a tensor without its graph; what it wraps keeps its derivatives."""
    return box(tensor.data_array(), cls=tensor.__class__)


class _Again:
    """A function that computes the same when it is called again, in the context of now."""

    def __init__(self, f: Integrand) -> None:
        self._f = f
        self._context = copy_context()
        self._first: Tensor | None = None

    def __call__(self, at: Tensor, limit: Tensor) -> Tensor:
        value: Tensor = self._context.copy().run(self._value, at, limit)
        now = value.detach()
        if self._first is None:
            self._first = now
        elif differs(now, self._first):
            raise InplaceError(
                f"{_LIMIT.node_name}: one of the variables needed for gradient computation has "
                "been modified by an inplace operation: the function that was integrated has "
                "other values now.\n"
                "hint: differentiate before changing what it depends on, or clone() that first."
            )
        return value

    def _value(self, at: Tensor, limit: Tensor) -> Tensor:
        with resumed():
            return self._f(at, limit) * 1.0  # a result of its own


# Where a function leads in the graph, and zeros like the gradient there, if they are known.
Leads = Mapping[Node, Tensor | None]


class _Record(NamedTuple):
    """What the node of an integral keeps."""

    f: Integrand
    limit: Tensor
    leads: Leads


def _integral(f: Integrand, limit: Tensor, own: Node | None, like: Tensor, leads: Leads) -> Tensor:
    """Return the integral, of the form of `like`; `own` is the node of the limit for f."""
    library: Any = join([library_of(t.data_array()) for t in (limit, like)])
    limit, like = wrap_in(limit, library), wrap_in(like, library)
    if isinstance(library, TransformLibrary):
        array = on_parts(_of_parts, f, limit.data_array(), own, library)
    else:
        array = zeros_like(like).data_array()
    if not STATE.get().grad or not (limit.requires_grad or leads):
        return box(array, cls=like.__class__)
    node = new_node(WideNode, _LIMIT, (limit._node, *leads), (_Record(f, limit, leads),))
    return box(array, node, None, like.__class__)


def _of_parts(f: Integrand, limit: Any, own: Node | None, library: Any) -> Any:
    """Return the integral as an array that wraps those of what the values of f wrap."""
    inner, along = to_tensor(limit.value), getattr(limit, "tangent", None)

    def wrapped(at: Tensor, inner: Tensor, *tangent: Any) -> Any:
        changing = library.wrap(inner)
        if tangent:
            changing = library.array_class(part_of(inner), *tangent, limit.running)
        return wrap_in(f(at, box(changing, own)), library).data_array()

    def tangent(at: Tensor, inner: Tensor) -> Any:
        arrays.append(array := wrapped(at, inner, along))
        return zeros_like(to_tensor(array.value)) if array.tangent is None else array.whole_tangent

    value = integral_to(lambda *at: to_tensor(wrapped(*at).value), inner)
    here = wrapped(inner.detach(), inner)
    arrays = [limit, here]  # of which one knows the run
    value = zeros_like(to_tensor(here.value)) if value is None else value
    if not isinstance(library, TangentLibrary):
        return library.array_class(part_of(value), here.batched, library.one_run((limit, here)))
    change = integral_to(lambda *at: to_tensor(tangent(*at)), inner)
    if along is not None:
        moved = to_tensor(along) * to_tensor(wrapped(inner, inner).value)
        change = moved if change is None else change + moved
    running = library.one_run(arrays)
    if change is None or running is None:  # nothing was seen to change
        return library.array_class(part_of(value))
    return library.array_class(part_of(value), part_of(change), running)


def _pulled(f: Integrand, g: Tensor, target: Node, like: Tensor) -> Integrand:
    """Return the function that pulls a gradient of f's result back to one of its targets."""

    def pulled(*at: Tensor) -> Tensor:
        result = _pull(f, at, g, [target])[target]
        return zeros_like(like) if result is None else result

    return pulled


def _pull(
    f: Integrand, at: tuple[Tensor, ...], g: Tensor, targets: Sequence[Node]
) -> dict[Node, Tensor | None]:
    """Return the gradients of targets of f, recorded where this is."""
    recorded, begun = STATE.get().grad, next_seq()
    with enable_grad():
        value = f(*at)
    if not value.requires_grad:
        return dict.fromkeys(targets)
    start = g if recorded else g.data_array()
    result = run([value._node], [start], targets, True, recorded, False, begun)
    return {t: r if recorded or r is None else box(as_array(r)) for t, r in result.items()}


class _Limit(NodeOperation):
    """The operation of an integral's node."""

    node_name = "LimitBackward"

    def saves_input(self, i: int, record: Any) -> bool:
        """Return True: a recorded pass evaluates f again."""
        return True

    def differentiate(
        self, node: Any, g: Any, wanted: set[Node] | None, recorded: bool
    ) -> Sequence[Any]:
        """Return the gradient of each edge's target; tensors where the pass is recorded."""
        record: _Record = self.kept(node)
        limit, own = record.limit, record.limit._node
        g, at = g if recorded else box(as_array(g)), _cut(limit)
        if recorded and own is not None:  # f may depend on the limit itself
            at = box(at.data_array(), new_node(WideNode, _AT, (own,)), None, at.__class__)
        result: dict[Any, Tensor] = {}
        if recorded or isinstance(limit.data_array(), Wrapped):
            leads = _known(record, g)
            onwards = leads if g._node is None else {**leads, g._node: _cut(g)}
            moving = limit if recorded else at
            for t, like in leads.items():
                if wanted is None or t in wanted:
                    result[t] = _integral(_pulled(record.f, g, t, like), moving, own, like, onwards)
        by_limit = None
        if own is not None and (wanted is None or own in wanted):
            by_limit = (g.conj() * record.f(at, limit)).real.sum().to(limit.dtype)
        grads = [by_limit, *map(result.get, node.edges[1:])]
        return grads if recorded else [None if r is None else r.data_array() for r in grads]


def _known(record: _Record, g: Tensor) -> dict[Node, Tensor]:
    """Return where f leads to with a gradient, and what that is like."""
    likes, limit = record.leads, record.limit
    if None in likes.values():
        others = [t for t in likes if t is not limit._node]
        likes = {**likes, **_pull(record.f, (limit.detach(), limit), g, others)}
        if limit._node in likes:  # known without the derivative, which may be infinite
            likes[limit._node] = zeros_like(limit)
    return {t: _cut(like) for t, like in likes.items() if like is not None}


_LIMIT = _Limit()
# From a limit to the number that f is evaluated at, in a recorded pass.
_AT = PassThrough("LimitBackward")
