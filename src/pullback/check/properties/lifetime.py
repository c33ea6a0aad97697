"""The lifetime of a call's memory: it is freed with the results, without the garbage collector.

What the first call creates and keeps for all later ones is not a leak; what every call keeps is.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from types import CellType, FrameType, FunctionType
from typing import Any

from pullback.check.properties.saved import saved_arrays
from pullback.check.report import Cause
from pullback.check.session import Session, run_backward
from pullback.check.values import copies
from pullback.core.backward.collect import collect

_References = list[tuple[str, "weakref.ref[Any]"]]


def check_lifetime(session: Session) -> None:
    """Check that a call's memory is freed with its results, without the garbage collector."""
    with _uncollected():
        _of_one_call(session)  # what is created once and kept is not a leak
        first, second = _of_one_call(session), _of_one_call(session)
        _check_gone(session, first, second)


@contextmanager
def _uncollected() -> Iterator[None]:
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _of_one_call(session: Session) -> _References:
    """Run forward and backward, drop everything, and return weak references to all of it."""
    run = session.subject.run(copies(session.arrays))
    found = zip(session.subject.names, run.tensors, strict=True)
    objects: list[tuple[str, Any]] = [(f"the input `{name}`", t.data_array()) for name, t in found]
    objects += [(f"output {k}", out.data_array()) for k, out in enumerate(run.outputs)]
    objects += saved_arrays(run)
    roots = [out._node for out in run.outputs if out._node is not None]
    objects += [(f"the node {node.name()}", node) for node in collect(roots)[0] if node.runs]
    grads = run_backward(lambda: run.vjp(session.seeds("lifetime")))
    objects += [("a gradient", g.data_array()) for g in grads if g is not None]
    return [(label, weakref.ref(x)) for label, x in objects if type(x).__weakrefoffset__]


def _check_gone(session: Session, first: _References, second: _References) -> None:
    """Report what is still alive of the second call, unless the first call had it as well."""
    before = {id(ref()) for _, ref in first if ref() is not None}
    alive = [(label, ref) for label, ref in second if ref() is not None and id(ref()) not in before]
    if not alive:
        return
    grows = not before <= {id(ref()) for _, ref in second}
    labels = list(dict.fromkeys(label for label, _ in alive))
    holder = _holder([ref() for _, ref in alive])
    graph = any(label.startswith(("the node", "output", "a gradient")) for label in labels)
    gc.collect()
    stays = any(ref() is not None for _, ref in alive)
    if stays:
        why = f"kept by {holder}" if holder else "something keeps it"
        hint = "keep nothing of a call outside of ctx: what ctx saves is released with the graph"
    else:
        why = "kept by a reference cycle until the garbage collector runs"
        hint = "let no value that was saved refer to its own tensor or graph"
    listed = ", ".join(labels[:4]) + (", ..." if len(labels) > 4 else "")
    text = f"after a call was dropped, memory of it is still alive ({why}): {listed}"
    # A cycle beside the graph is the function's own, or that of a library which it calls.
    if (stays or graph) and (grows or session.subject.is_op):
        session.fail(Cause("leak", text, hint))
    elif stays:  # a model may keep its last activations
        session.note(f"{text}; only the last call's")
    else:
        session.note(text)


def _holder(held: list[Any]) -> str:
    """Return the name of what refers to these objects, through up to four others, or ``""``."""
    seen: set[int] = set()
    for _ in range(4):
        seen.update(map(id, [held, *held]))
        referrers = [
            r for r in gc.get_referrers(*held) if id(r) not in seen and not isinstance(r, FrameType)
        ]
        for referrer in referrers:
            name = _name_of(referrer, held)
            if name:
                return name
        held = referrers
    return ""


def _name_of(referrer: Any, held: list[Any]) -> str:
    """Return a name for what refers to one of `held`, or ``""``."""
    if isinstance(referrer, dict) and "__builtins__" in referrer:
        names = [k for k, value in referrer.items() if any(value is item for item in held)]
        return f"the global `{names[0]}` of the module {referrer.get('__name__')}"
    if isinstance(referrer, (type, FunctionType)):
        kind = "class" if isinstance(referrer, type) else "function"
        return f"the {kind} `{referrer.__name__}`"
    return "a variable of a closure" if isinstance(referrer, CellType) else ""
