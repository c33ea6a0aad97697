"""Programs run in pullback and in PyTorch beside each other: what differs, and in how few lines.

Owns what is compared, and shrinking; what a program may name is in `program_names`.
"""

import contextlib
import functools
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from tests.peers.program_names import DIRTY, Log, is_tensor, namespace

import pullback as pb

ARGUMENTS = (pb.errors.ShapeError, pb.errors.ArgumentError, IndexError, TypeError)
PHRASES = (
    "grad can be implicitly created only for scalar outputs",
    "does not require grad",
    "Mismatch in shape",
    "backward through the graph a second time",
    "not have been used in the graph",
    "modified by an inplace operation",
    "leaf Variable that requires grad",
)


# -- running --------------------------------------------------------------------------------------
@functools.lru_cache(4096)
def compiled(line):
    return compile(line, "<program>", "exec")


def attempt(line, names):
    """Run a statement; return the error that it raised, or None."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(compiled(line), names)
    except Exception as error:
        return error.with_traceback(None)
    return None


def attempt_in(ways, line, names):
    """Run a statement in other ways; return the error that it raised, or None."""
    ran = line
    for way in ways:
        ran = way.rewrite(ran)
    for way in ways:
        ran = way.wrap(line, ran)
    with contextlib.ExitStack() as stack:
        for way in ways:
            stack.enter_context(way.around())
        return attempt(ran, names)


def eval_or_none(expression, names):
    try:
        return eval(expression, names)
    except Exception:
        return None


@dataclass(frozen=True)
class Way:
    """Another way to ask torch: other words for a statement, more around it, or a context."""

    rewrite: Callable = str
    wrap: Callable = lambda line, ran: ran  # of the statement as it was, and as it is now run
    around: Callable = contextlib.nullcontext


@dataclass
class Difference:
    """What differs first in a program."""

    step: int
    line: str
    what: str  # "error", or a name and what of it: "t3.requires_grad"
    ours: object
    theirs: object
    lines: tuple = ()
    names: tuple = ()  # what the program's names are in both
    every_step: bool = False  # whether tensors were looked at after each step
    ways: tuple = ()  # in what other ways torch was asked

    def theirs_tensors(self):
        """Return the tensors that there are in torch."""
        return [v for v in self.names[1].values() if is_tensor(v)]

    @property
    def kind(self):
        """What has to stay as it is while a program is shrunk."""
        what = self.what.rpartition(".")[2]
        return (what, *[head(v) if what == "error" else type(v) for v in (self.ours, self.theirs)])

    def is_like(self, other):
        """Return whether the same differs in the same way."""
        place = (self.step, self.what, self.kind) == (other.step, other.what, other.kind)
        return place and (self.what == "error" or alike(self.theirs, other.theirs))

    def __str__(self):
        values = f"    pullback: {self.ours!r}\n    torch:    {self.theirs!r}"
        return f"after line {self.step + 1}, `{self.line}`: {self.what} differs\n{values}"


def head(error):
    return None if error is None else (type(error).__name__, str(error)[:40])


def compare(lines, every_step, ways=()):
    """Run a program in both libraries; return the first difference, or None.

    Torch may be asked in other ways.
    """
    logs, versions = (Log(), Log()), {}
    ours, theirs = (namespace(lib, log) for lib, log in zip((pb, torch), logs, strict=True))

    def difference(*what):
        done, names = tuple(lines[: step + 1]), (ours, theirs)
        return Difference(step, line, *what, done, names, every_step, ways)

    for step, line in enumerate(lines):
        mine = attempt(line, ours)
        other = attempt_in(ways, line, theirs)
        last = step == len(lines) - 1
        if not same_error(mine, other):
            return difference("error", mine, other)
        if mine is not None and ("autograd." in line or ".backward()" in line):
            return None  # what a pass leaves that raised is nowhere said
        if mine is not None and any(f"{op}.apply" in line for op in DIRTY):
            return None  # nor what forward wrote before its marks were refused
        if every_step or last:
            what = differing(ours, theirs) or differing_logs(*logs)
            if every_step and what is None:
                what = differing_versions(ours, theirs, versions)
            if what is not None:
                return difference(*what)
    return None


def same_error(ours, theirs):
    """Return whether both or none raised, of the same kind as users would catch it."""
    if (ours is None) != (theirs is None):
        return False
    if ours is None:
        return True
    if any(isinstance(e, ARGUMENTS) for e in (ours, theirs)):
        return True  # what is wrong with an index or a shape may be found before or after the rest
    if not isinstance(ours, builtin(theirs)):
        return False
    if isinstance(ours, (pb.errors.InplaceError, pb.errors.ReleasedError)) or "detached" in str(
        ours
    ):
        return isinstance(theirs, RuntimeError)  # there may be several reasons to refuse
    promised = [p for p in PHRASES if p in str(theirs)]
    return not promised or any(p in str(ours) for p in PHRASES)


def builtin(error):
    kinds = (RuntimeError, TypeError, ValueError, IndexError, AttributeError, NameError)
    return next((k for k in kinds if isinstance(error, k)), Exception)


def differing(ours, theirs):
    for name, theirs_value in theirs.items():
        if name[0] == "t" and is_tensor(theirs_value):
            mine, other = look(ours.get(name)), look(theirs_value)
            for what, value in other.items():
                if not alike(mine.get(what), value):
                    return f"{name}.{what}", mine.get(what), value
        elif name[0] == "t" and ours.get(name) is not None:
            return name, ours[name], theirs_value
    return None


def differing_versions(ours, theirs, before):
    """Return the first tensor that changed in one library and not in the other.

    Where a tensor's version begins, and by how much it grows, is each library's own affair.
    """
    for name, t in theirs.items():
        if name[0] == "t" and is_tensor(t):
            now = ours[name]._version, t._version
            old = before.get(name)
            before[name] = (*now, t)
            if old is not None and old[2] is t and (now[0] > old[0]) != (now[1] > old[1]):
                return f"{name}._version", now[0], now[1]
    return None


def differing_logs(ours, theirs):
    if same_events(ours.events, theirs.events):
        return None
    return "log", ours.events, theirs.events


def same_events(ours, theirs):
    """Return whether each hook heard the same, in the same order.

    Which of two nodes runs first, neither of which needs the other, is not promised.
    """
    ours, theirs = (sorted(events, key=lambda e: e[0]) for events in (ours, theirs))
    return len(ours) == len(theirs) and all(
        len(a) == len(b) and a[0] == b[0] and all(map(same_number, a[1:], b[1:]))
        for a, b in zip(ours, theirs, strict=True)
    )


def same_number(a, b):
    if a is None or b is None:
        return a is b
    return np.isclose(a, b, rtol=1e-6, atol=1e-6, equal_nan=True)


def look(t):
    """Return what can be asked of a tensor."""
    if not isinstance(t, (torch.Tensor, pb.Tensor)):
        return {"value": t}
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for what, ask in QUESTIONS.items():
            try:
                found[what] = ask(t)
            except Exception as error:
                found[what] = type(error)
    return found


def grad_of(t):
    return None if t.grad is None else t.grad.detach().numpy().copy()


QUESTIONS = {
    "value": lambda t: t.detach().numpy().copy(),
    "requires_grad": lambda t: t.requires_grad,
    "is_leaf": lambda t: t.is_leaf,
    "retains_grad": lambda t: t.retains_grad,
    "grad": grad_of,
    "grad.requires_grad": lambda t: t.grad is not None and t.grad.requires_grad,
}


def alike(a, b):
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        if not np.isfinite(a).all() and not np.isfinite(b).all():
            return a.shape == b.shape  # which are NaN is a matter of rounding
        return a.shape == b.shape and np.allclose(a, b, rtol=1e-7, atol=1e-9, equal_nan=True)
    if isinstance(a, type) and isinstance(b, type):
        return True
    return type(a) is type(b) and a == b


# -- shrinking ------------------------------------------------------------------------------------
def shrink(found, every_step, explained=lambda found: None):
    """Return the difference in a program of as few statements as can be."""
    best, size = found, max(len(found.lines) // 2, 1)
    while True:
        smaller = next(
            (
                d
                for lines in candidates(best.lines, size)
                if (d := compare(lines, every_step)) is not None
                and d.kind == found.kind
                and explained(d) is None
            ),
            None,
        )
        if smaller is not None:
            best = smaller
        elif size == 1:
            return best
        else:
            size //= 2


def candidates(lines, size):
    """Return programs that lack a few statements, or a mode."""
    for start in range(0, len(lines), size):
        yield [*lines[:start], *lines[start + size :]]
    if size == 1:
        for i, line in enumerate(lines):
            if line.startswith("with lib.") and "inference" not in line:
                yield [*lines[:i], line.partition(": ")[2], *lines[i + 1 :]]
