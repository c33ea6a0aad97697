"""Deep graphs, memory and life times (cases DG1 to DG4)."""

import contextlib
import gc
import tracemalloc
import weakref

import numpy as np
import pytest

import pullback as pb


def leaf(data):
    """Return a float64 leaf that requires grad."""
    return pb.tensor(data, dtype=pb.float64, requires_grad=True)


class Probe:
    """An object whose death can be watched."""


@contextlib.contextmanager
def no_collector():
    """Run with the garbage collector off, so that only reference counting frees."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.collect()


def watch(t):
    """Return a weak reference to something that lives exactly as long as the node of `t`."""
    probe = Probe()
    t.grad_fn.metadata["probe"] = probe
    return weakref.ref(probe)


class Add(pb.Function):
    """x + y with a rule of its own."""

    @staticmethod
    def forward(ctx, x, y):
        return x + y

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output, grad_output


WATCHED = []


class Square(pb.Function):
    """x * x, saving its input, its output and an object that `WATCHED` refers to weakly."""

    @staticmethod
    def forward(ctx, x):
        out = x * x
        probe = Probe()
        WATCHED.append(weakref.ref(probe))
        ctx.save_for_backward(x=x, out=out, probe=probe)
        return out

    @staticmethod
    def backward(ctx, grad_output):
        return {"x": 2 * ctx.saved_variables.x * grad_output}


# --- DG1, DG2: deep graphs -------------------------------------------------------------------


def test_DG1_dropping_a_chain_of_150_000_steps():
    y = leaf([1.0])
    for _ in range(150_000):
        y = y + y * 0.000001
    last = watch(y)
    assert y.item() == pytest.approx(1.000001**150_000, rel=1e-9)
    del y
    assert last() is None


def test_DG1_dropping_a_chain_of_100_000_steps_with_skip_connections():
    rng = np.random.default_rng(0)
    choice = rng.integers(0, 2, (100_000, 2)).tolist()
    y = leaf([1.0]).clone()
    first = watch(y)
    before, before_that = y, y
    for weight, weight_before in choice:
        skip = before * weight + before_that * weight_before
        before_that, before = before, y
        y = y + skip * 0.000001
    assert first() is not None
    del y, skip, before, before_that
    assert first() is None


@pb.autograd_function
def halves(ctx, x):
    return x * 0.5, x * 0.5


@halves.backward
def _(ctx, a, b):
    return {"x": a * 0.5 + b * 0.5}


def both_halves(y):
    """Return y as the sum of two results of one node."""
    a, b = halves(y)
    return a + b


@pytest.mark.parametrize(
    ("step", "length"),
    [(lambda y: Add.apply(y, y), 150_000), (both_halves, 20_000)],
    ids=["one result", "two results"],
)
def test_DG1_dropping_a_long_chain_of_custom_functions(step, length):
    y = step(leaf([0.0]))
    first = watch(y)
    for _ in range(length - 1):
        y = step(y)
    assert first() is not None
    del y
    assert first() is None


def test_DG1_dropping_a_deep_graph_after_backward_and_after_an_error():
    x = leaf([1.0])
    y = x * 1
    first = watch(y)
    for _ in range(50_000):
        y = y + 1
    y.backward()
    assert x.grad.tolist() == [1.0]
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        y.backward()
    del y
    assert first() is None


def test_DG2_each_node_runs_exactly_once():
    x = leaf(1.0)
    y = x
    runs = [0] * 50

    def counter(i):
        def hook(grad_inputs, grad_outputs):
            runs[i] += 1

        return hook

    for i in range(50):
        y = y + y
        y.grad_fn.register_hook(counter(i))
    y.backward()
    assert x.grad.item() == 2.0**50
    assert runs == [1] * 50


# --- DG3: life times with the collector off --------------------------------------------------


def built_in(x):
    """Return a result of built-in ops that save inputs and outputs."""
    return ((x * x).exp() + x.sin() * x).sum()


def custom(x):
    """Return a result of custom ops."""
    return Square.apply(Add.apply(x, x)).sum()


def mixed_with_views(x):
    """Return a result with views and in-place changes in its graph."""
    y = x.clone()
    y[0] = x[1] * 2
    y[1:].mul_(3)
    y *= x
    return y.reshape(-1).sum()


PROGRAMS = [built_in, custom, mixed_with_views]


@pytest.mark.parametrize("program", PROGRAMS)
def test_DG3_a_graph_with_hooks_is_freed_at_once(program):
    with no_collector():
        x = leaf([0.5, 0.25, 0.125])
        middle = x * 1
        out = program(middle)
        nodes = [watch(middle), watch(out)]
        ran = []
        middle.retain_grad()
        middle.register_hook(lambda grad: ran.append("tensor"))
        middle.grad_fn.register_prehook(lambda grads: ran.append("prehook"))
        out.grad_fn.register_hook(lambda gi, go: ran.append("hook"))
        x.register_hook(lambda grad: ran.append("leaf"))
        out.backward()
        del middle, out
        assert [node() for node in nodes] == [None, None]
        assert sorted(ran) == ["hook", "leaf", "prehook", "tensor"]


def test_DG3_a_leaf_that_nobody_holds_is_freed_at_once():
    with no_collector():
        x = leaf([1.0])
        out = x * x
        out.backward(retain_graph=True)
        alive = weakref.ref(x)
        accumulator = out.grad_fn.next_functions[0][0]
        assert accumulator.variable is x
        del x  # a graph does not keep its leaves alive: nobody could see their gradient
        assert alive() is None
        assert accumulator.variable is None
        out.backward()


def test_DG3_a_saved_value_is_released_right_after_backward():
    with no_collector():
        array = np.array([2.0, 3.0])
        x, constant = leaf([1.0, 1.0]), pb.asarray(array)
        out = (x * constant).sum()
        saved = weakref.ref(array)
        del array, constant
        assert saved() is not None
        out.backward(retain_graph=True)
        assert saved() is not None
        out.backward()
        assert saved() is None
        assert x.grad.tolist() == [4.0, 6.0]


def test_DG3_an_object_saved_by_a_custom_function_is_released_right_after_backward():
    with no_collector():
        x = leaf([1.0, 1.0])
        out = Square.apply(x).sum()
        saved = WATCHED[-1]
        out.backward(retain_graph=True)
        assert saved() is not None
        out.backward()
        assert saved() is None


@pytest.mark.parametrize("retain_graph", [False, True])
def test_DG3_a_saved_intermediate_is_released_right_after_backward(retain_graph):
    megabyte = 1_000_000
    ones = pb.ones(megabyte, dtype=pb.float64)
    with no_collector():
        x = leaf(2.0)
        tracemalloc.start()
        try:
            out = (x * ones).exp().sum()  # exp saves its result, 8 megabytes
            before = tracemalloc.get_traced_memory()[0]
            out.backward(retain_graph=retain_graph)
            after = tracemalloc.get_traced_memory()[0]
        finally:
            tracemalloc.stop()
    freed = before - after
    assert freed < megabyte if retain_graph else freed > 7 * megabyte


# --- DG4 -------------------------------------------------------------------------------------


def test_DG4_in_place_on_a_view_of_a_clone_frees_without_the_collector():
    deaths = []

    class Hook:
        def __call__(self, grad_inputs, grad_outputs):
            return None

        def __del__(self):
            deaths.append(1)

    def build():
        root = leaf([[1.0, -2.0, 3.0], [-4.0, 5.0, -6.0], [7.0, -8.0, 9.0]])
        copy = root.clone()
        copy.grad_fn.register_hook(Hook())
        view = copy.view(9)
        view.relu_()

    with no_collector():
        build()
        assert deaths == [1]
    assert deaths == [1]


def test_DG4_the_collector_may_run_inside_a_destructor():
    class CollectOnDelete:
        def __call__(self, grad_inputs, grad_outputs):
            return None

        def __del__(self):
            gc.collect()

    for _ in range(10):
        x = leaf([1.0])
        y = Square.apply(x)
        y.grad_fn.register_hook(CollectOnDelete())
        y.backward()
        del y
        assert x.grad.tolist() == [2.0]
