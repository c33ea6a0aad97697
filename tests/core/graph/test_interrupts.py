"""An interrupt (Ctrl-C) at any moment leaves nothing behind: no mode, no running pass, no lock.

Python looks for interrupts when a function is entered, after a call and when a loop turns round.
A trace function raises at one such moment after the other. One is left out, for Python itself
has no remedy: the entry of ``__exit__``, see `run_in_mode`.
"""

import dis
import functools
import inspect
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.tensors import leaf

import pullback as pb
from pullback.core.backward.hooks import RUNNING
from pullback.core.graph.locks import LEAVES
from pullback.core.graph.modes import MAKING, RECORD, STATE
from pullback.core.tensor.endings import CALLS
from pullback.core.tensor.writes import WRITES
from pullback.transforms.levels import LEVEL, WRAPPING

LIBRARY = str(Path(pb.__file__).parent)
# Python does not let an error out of what it calls when an object dies.
UNTOUCHED = {"__exit__", "leave"}


@functools.cache
def instructions(code):
    """Return of each offset the operation, and where an error that is raised there goes on."""
    listed = dis.Bytecode(code)
    handlers = {}
    for entry in listed.exception_entries:  # the innermost comes last
        handlers.update(dict.fromkeys(range(entry.start, entry.end, 2), entry.target))
    return {i.offset: (i.opname, handlers.get(i.offset)) for i in listed}


class Interrupt:
    """Counts the moments at which an interrupt may come, and raises at one of them."""

    def __init__(self, at=None):
        self.at, self.count = at, 0
        self.turns, self.before = [], (RECORD, None)  # the moments that follow a change of state

    def moment(self):
        if self.count == self.at:
            raise KeyboardInterrupt
        now = (STATE.get(), RUNNING.current)
        if now != self.before:
            self.turns.append(self.count)
            self.before = now
        self.count += 1

    def enter(self, frame, event, argument):
        code = frame.f_code
        if not code.co_filename.startswith((LIBRARY, "<pullback generated")):
            return None
        if code.co_name not in UNTOUCHED and not code.co_flags & inspect.CO_GENERATOR:
            self.moment()
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        found, before = instructions(code), ("", None)

        def inside(frame, event, argument):
            nonlocal before
            if event == "opcode":
                name, handler = before
                before = found[frame.f_lasti]
                if name.startswith(("CALL", "JUMP_BACKWARD")) and handler == before[1]:
                    self.moment()
            return inside

        return inside

    def during(self, work):
        """Run `work`, interrupted or not."""
        before = sys.gettrace()  # a measurement of coverage, which goes on after this
        sys.settrace(self.enter)
        try:
            work()
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(before)


@pb.autograd_function
def scaled(ctx, x, w, k=3.0):
    ctx.save_for_backward(x=x, w=w)
    ctx.k = k
    return x * w * k


@scaled.backward
def _(ctx, grad_output):
    saved = ctx.saved_variables
    return {"x": grad_output * saved.w * ctx.k, "w": grad_output * saved.x * ctx.k}


@pb.autograd_function
def halves(ctx, x):
    ctx.set_materialize_grads(False)
    return x[:1] * 1, x[1:]


@halves.backward
@pb.once_differentiable
def _(ctx, first, second):
    return pb.cat([first, second])


def train(create_graph=False):
    """Do a step of a small training."""
    w, x = leaf([2.0, 3.0]), pb.tensor([1.0, 2.0], dtype=pb.float64)
    hidden = scaled(x, w)
    hidden.retain_grad()
    hidden.register_hook(lambda g: g * 1.0)
    view = hidden[0:1]
    hidden.mul_(2.0)
    first, second = halves(hidden + view)
    loss = (first * second + first.sin()).sum()
    if create_graph:
        (g,) = pb.autograd.grad(scaled(w, w).sum(), w, create_graph=True)
        loss = loss + (g * g).sum()
    loss.backward()
    with pb.no_grad():
        w -= 0.1 * w.grad
    pb.optim.SGD([w], lr=0.5).step()
    assert pb.value_and_grad(lambda v: (v * v).sum())(2.0) == (4.0, 4.0)


def untaught():
    """Make operations, and call them for the first time."""
    double = pb.autograd_function(lambda ctx, x: x * 2.0, lambda ctx, g: {"x": g * 2.0})
    double(leaf(1.0)).backward()

    @pb.no_grad
    def counted(n):
        yield from (leaf(1.0) * i for i in range(n))

    with pb.no_grad(), pb.saved_tensors_hooks(lambda t: t, lambda t: t):
        pb.enable_grad(lambda: list(counted(2)) and double(leaf(1.0)) * 1.0)().backward()
    with pb.inference_mode():
        double(leaf(1.0))


def transform():
    """Take derivatives within batches, and along tangents, of an operation and of a function."""
    x, w = np.array([[1.0, 2.0], [3.0, 4.0]]), leaf([2.0, 3.0])

    def loss(v):
        return (scaled(v, w.detach()) * v).sum()

    assert pb.vmap(pb.grad(loss))(x).shape == (2, 2)
    assert pb.jvp(loss, (x[0],), (x[1],))[1] == pytest.approx(180.0)
    assert pb.vmap(lambda v: v * w)(x).shape == (2, 2)
    pb.hvp(loss)(x[0], x[1])


WORK = {
    "transforms": transform,
    "training": train,
    "training of the second order": functools.partial(train, True),
    "operations in their first call": untaught,
}


def check_nothing_is_left():
    assert STATE.get() is RECORD
    assert RUNNING.current is None
    assert CALLS.get() is WRITES.get() is MAKING.get() is LEVEL.get() is None
    assert not WRAPPING.get()
    assert all(repr(lock).startswith("<unlocked") for lock in LEAVES)
    w = leaf([2.0, 3.0])
    first, second = halves(w * 1.0)
    (scaled(w, w).sum() + (first + second).sum()).backward()
    assert w.grad.tolist() == [13.0, 19.0]


def moments(work):
    """Return how many moments there are once what first calls make is there, and the turns."""
    for _ in range(2):
        interrupt = Interrupt()
        interrupt.during(work)
    return interrupt.count, interrupt.turns


@pytest.mark.parametrize("name", WORK)
def test_an_interrupt_leaves_nothing_behind(name):
    work = WORK[name]
    count, turns = moments(work)
    assert len(turns) > 10
    for at in {*turns, *range(0, count, count // 50)}:
        Interrupt(at).during(work)
        check_nothing_is_left()


@pytest.mark.stress
@pytest.mark.parametrize("name", WORK)
def test_an_interrupt_at_any_moment_leaves_nothing_behind(name):
    work = WORK[name]
    count, _ = moments(work)
    assert count > 1500
    for at in range(count):
        Interrupt(at).during(work)
        check_nothing_is_left()
