"""A library whose arrays record the kernel calls that made them: what it needs of the seam.

It has `lift`, `run`, `draw` and a rank; the mode carries it, so that what has no traced operand is
recorded as well: captured tensors, creation, draws and writes in place.
"""

import contextlib

import numpy as np
import pytest

import pullback as pb
from pullback.arrays import NUMPY, WrappingLibrary, register
from pullback.core.graph.modes import STATE
from pullback.core.tensor.tensor import Tensor, box
from pullback.ops.primitives.conversion import clone_p
from pullback.ops.primitives.indexing import index_put_p, reader, setitem_p
from pullback.transforms.wrapped import Space, Wrapped


class Traced(Wrapped):
    """An array with the name of the line that made it."""

    __slots__ = ("name",)

    def __init__(self, value, name):
        self.value, self.name = value, name


class Tracing(WrappingLibrary):
    """The library: each kernel call is a line (operation, arguments, settings, results)."""

    def __init__(self):
        super().__init__("trace", Space(), level=1)
        self.array_class = type("Traced1", (Traced,), {"__slots__": (), "library": self})
        self.array_types, self.lines = (self.array_class,), []

    def parts(self, a):
        return (a.value,)

    def emit(self, op, arguments, settings, values):
        names = [f"v{len(self.lines)}.{i}" for i in range(len(values))]
        self.lines.append((op, arguments, settings, names))
        return [self.array_class(*pair) for pair in zip(values, names, strict=True)]

    def wrap(self, a):
        a = a.data_array() if isinstance(a, Tensor) else a
        return a if self.has(a) else self.emit("constant", (), {"value": a}, [a])[0]

    def draw(self, draw):
        return self.emit("draw", (), {"draw": draw}, [draw(())])[0]

    def run(self, op, arrays, settings):
        values = [a.value if self.has(a) else a for a in arrays]
        settings = {name: self.bare(setting) for name, setting in settings.items()}
        found = op.forward(NUMPY.xp, *values, **settings)
        found = [NUMPY.tidy(x) for x in (found if op.multi else (found,))]
        names = [a.name if self.has(a) else a for a in arrays]
        results = self.emit(op, names, settings, found)
        return results if op.multi else results[0]

    def bare(self, setting):
        if isinstance(setting, tuple):
            return tuple(map(self.bare, setting))
        return setting.value if self.has(setting) else setting

    def copy(self, a):
        return self.run(clone_p, [a], {})

    def getitem(self, a, index):
        return self.run(reader(index), [a], {"index": index})

    def assign(self, a, index, value):
        return self.run(setitem_p, [a, value], {"index": index})

    def add_at(self, a, index, value):
        return a + self.run(index_put_p, [value], {"index": index, "shape": a.shape})


TRACING = Tracing()
register(TRACING)


@contextlib.contextmanager
def traced():
    """Record what runs inside."""
    TRACING.lines.clear()
    token = STATE.set(STATE.get()._replace(library=TRACING))
    try:
        yield TRACING.lines
    finally:
        STATE.reset(token)


def replay(lines, given, results):
    """Run recorded lines on NumPy alone, with other values for what was given; draws anew."""
    known = dict(given)
    for op, arguments, settings, names in lines:
        if op == "constant":
            known.setdefault(names[0], settings["value"])
        elif op == "draw":
            known[names[0]] = settings["draw"](())
        else:
            values = [known.get(a, a) if isinstance(a, str) else a for a in arguments]
            found = op.forward(NUMPY.xp, *values, **settings)
            known.update(zip(names, found if op.multi else (found,), strict=True))
    return [known[name] for name in results]


CAPTURED = pb.tensor([1.0, 2.0, 3.0], dtype=pb.float64)


def captured(x):
    weight = pb.exp(CAPTURED)  # no operand is traced
    return (weight * x).sum()


def created(x):
    return x + pb.ones(3, dtype=pb.float64) * 2.0


def written(x):
    out = pb.zeros(3, dtype=pb.float64)
    out[1:] = x[:2] * 2.0
    out.mul_(x)
    return out


def indexed(x):
    first, rest = x[0], x[1:]
    return pb.where(rest > first, rest, 0.0)


def with_gradient(x):
    leaf = x.detach().requires_grad_()
    (g,) = pb.autograd.grad((leaf * leaf * CAPTURED).sum(), leaf)
    return g


PROGRAMS = [captured, created, written, indexed, with_gradient]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_a_tracing_library_records_kernel_calls_that_replay_on_other_values(program):
    first, other = np.array([0.5, -1.0, 2.0]), np.array([3.0, 0.25, -2.0])
    with traced() as lines:
        argument = TRACING.wrap(first)
        out = program(box(argument)).data_array()
    assert out.__class__ is TRACING.array_class
    (found,) = replay(lines, {argument.name: other}, [out.name])
    np.testing.assert_allclose(found, program(pb.asarray(other)).numpy())
    np.testing.assert_array_equal(out.value, program(pb.asarray(first)).numpy())


def test_a_tracing_library_records_draws_which_are_drawn_anew():
    with traced() as lines:
        out = (pb.rand(2, dtype=pb.float64) + CAPTURED[:2]).data_array()
    first, second = (replay(lines, {}, [out.name])[0] - [1.0, 2.0] for _ in range(2))
    assert all(0 <= x < 1 for x in (*first, *second))
    assert first.tolist() != second.tolist()


def test_a_tracing_library_runs_the_code_of_a_users_operation():
    square = pb.autograd_function(lambda ctx, x: x * x, lambda ctx, g: g)
    with traced() as lines:
        argument = TRACING.wrap(np.array([2.0, 3.0]))
        square(box(argument))
    assert [op if isinstance(op, str) else op.name for op, *_ in lines] == ["constant", "mul"]
