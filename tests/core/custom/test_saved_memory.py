"""save_for_backward of what others can write to: through a result, an argument, or an array."""

import gc
import weakref

import numpy as np
import pytest

import pullback as pb
from pullback.arrays.snapshots import _latest
from pullback.errors import GraphError, InplaceError

CHANGES = {
    "+=": lambda y: y.__iadd__(5.0),
    "y[...] =": lambda y: y.__setitem__(..., 3.0),
    "fill_": lambda y: y.fill_(2.0),
    "mul_": lambda y: y.mul_(5.0),
    "through a view": lambda y: y[0].mul_(5.0),
    "through a transpose": lambda y: y.t().mul_(5.0),
    "through a detached twin": lambda y: y.detach().mul_(5.0),
}


def saves_and_returns(made):
    """An operation that computes exp with NumPy: `made` gives what it saves and what it returns."""

    def forward(ctx, x):
        saved, out = made(x)
        ctx.save_for_backward(e=saved)
        return out

    def backward(ctx, grad_output):
        e = ctx.saved_variables.e
        e = e[0] if isinstance(e, list) else e
        return {"x": grad_output * (e if isinstance(e, pb.Tensor) else pb.asarray(e)).sum()}

    return pb.autograd_function(forward, backward)


def exp(x):
    return np.exp(x.numpy())


SHARED = {
    "a transpose": lambda x: ((e := x.exp().t()), e),
    "the base of a transpose": lambda x: ((e := x.exp()), e.t()),
    "a slice": lambda x: ((e := x.exp())[0], e),
    "unsqueeze": lambda x: ((e := x.exp()), e.unsqueeze(0)[0]),
    "one NumPy result, wrapped twice": lambda x: (pb.asarray(r := exp(x)), pb.asarray(r)),
    "views of one NumPy result": lambda x: (pb.asarray((r := exp(x)).T), pb.asarray(r[:])),
    "a NumPy result": lambda x: ((r := exp(x)), pb.asarray(r)),
    "a NumPy result in a list": lambda x: ([r := exp(x)], pb.asarray(r)),
    "an argument that is returned through NumPy": lambda x: (x, pb.asarray(x.numpy())),
    "an argument that NumPy took a view of": lambda x: (x, pb.asarray(x.numpy()[::-1])),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("shared", SHARED)
def test_save_for_backward_of_what_a_result_shows_is_checked_when_the_result_changes(
    shared, change
):
    op = saves_and_returns(SHARED[shared])
    for changed in (False, True, True):  # the lines of the call are written after the first
        x = pb.tensor([[0.0, 1.0], [2.0, 3.0]], dtype=pb.float64, requires_grad=True)
        y = op(x * 1.0)
        if not changed:
            y.sum().backward()
            continue
        CHANGES[change](y)
        with pytest.raises(InplaceError, match="the saved tensor 'e' is at version 1"):
            y.sum().backward()


def test_save_for_backward_is_checked_when_the_saved_one_of_several_results_changes():
    @pb.autograd_function
    def op(ctx, x):
        e = x.exp()
        ctx.save_for_backward(e=e)
        return e, e.t()

    @op.backward
    def _(ctx, first, second):
        return {"x": ctx.saved_variables.e}

    x = pb.tensor([[1.0, 2.0]], requires_grad=True)
    outs = op(x)
    with pb.no_grad():
        outs[1].mul_(2.0)  # a copy of its own
        assert outs[0].equal(x.exp())
        outs[0].mul_(2.0)
    with pytest.raises(InplaceError, match="saved tensor 'e'"):
        outs[0].sum().backward()


@pytest.mark.parametrize("wrapped", [False, True])
def test_save_for_backward_of_an_argument_s_array_is_checked_when_the_argument_changes(wrapped):
    @pb.autograd_function
    def op(ctx, x):
        array = x.numpy()
        ctx.save_for_backward(a=pb.asarray(array) if wrapped else array)
        return pb.asarray(np.sin(array))

    @op.backward
    def _(ctx, grad_output):
        return {"x": grad_output * np.cos(ctx.saved_variables.a)}

    x = pb.tensor([0.0, 1.0], requires_grad=True)
    for _ in range(2):
        y = op(x)
    y.sum().backward()
    assert x.grad[0].item() == 1.0
    y = op(x)
    with pb.no_grad():
        x.add_(1.0)
    with pytest.raises(InplaceError, match="the saved tensor 'a'"):
        y.sum().backward()


def test_a_result_that_shows_its_argument_under_no_grad_counts_the_changes_with_it():
    op = saves_and_returns(lambda x: (None, pb.asarray(x.numpy()[::-1])))
    x = pb.tensor([1.0, 2.0], requires_grad=True)
    z = x * x
    with pb.no_grad():
        op(x).mul_(3.0)
    with pytest.raises(InplaceError, match="modified by an inplace operation"):
        z.sum().backward()


def test_save_for_backward_of_an_array_that_forward_returns_as_it_is_keeps_its_values():
    op = saves_and_returns(lambda x: ((r := exp(x)), r))
    x = pb.tensor([[0.0, 0.0]], requires_grad=True)
    for _ in range(2):
        x.grad = None
        y = op(x * 1.0)
        y *= 5.0
        y.sum().backward()
        assert x.grad.tolist() == [[10.0, 10.0]]


# -- arrays of the caller's ------------------------------------------------------------------------
TABLE = np.zeros(3000)

SAVES = {
    "by name": (lambda ctx, b: ctx.save_for_backward(b=b), lambda ctx: ctx.saved_variables.b),
    "by position": (lambda ctx, b: ctx.save_for_backward(b), lambda ctx: ctx.saved_variables[0]),
    "an attribute": (lambda ctx, b: setattr(ctx, "b", b), lambda ctx: ctx.b),
    "an attribute, in a list": (lambda ctx, b: setattr(ctx, "b", [b]), lambda ctx: ctx.b[0]),
    "in a dict of tuples": (
        lambda ctx, b: ctx.save_for_backward(b={"k": (1, b)}),
        lambda ctx: ctx.saved_variables.b["k"][1],
    ),
    "a view": (lambda ctx, b: ctx.save_for_backward(b=b[:]), lambda ctx: ctx.saved_variables.b),
    "a tensor on it": (
        lambda ctx, b: ctx.save_for_backward(b=pb.asarray(b)),
        lambda ctx: ctx.saved_variables.b,
    ),
    "an array that nobody passes": (
        lambda ctx, b: ctx.save_for_backward(b=TABLE[: b.size]),
        lambda ctx: ctx.saved_variables.b,
    ),
}


@pytest.mark.parametrize("size", [3, 3000])
@pytest.mark.parametrize("way", SAVES)
def test_save_for_backward_keeps_the_values_of_an_array_that_the_caller_uses_again(way, size):
    save, read = SAVES[way]

    def forward(ctx, x, b):
        save(ctx, b)
        return x * pb.asarray(b.copy())

    op = pb.autograd_function(forward, lambda ctx, g: {"x": g * read(ctx)})
    x, buffer, y = pb.tensor(np.ones(size), requires_grad=True), TABLE[:size], 0.0
    for k in range(3):
        buffer[:] = k + 1.0
        y = y + op(x, buffer)
    buffer[:] = 100.0
    y.sum().backward()
    assert set(x.grad.tolist()) == {6.0}


@pytest.mark.parametrize("given", ["a list", "a starred argument", "a keyword"])
def test_save_for_backward_keeps_the_values_of_arrays_in_any_argument(given):
    def forward(ctx, x, *arrays, b=None, traversed=None):
        ctx.save_for_backward(b=[*arrays, b, traversed])
        return x * 1.0

    def backward(ctx, g):
        arrays = [a[0] if isinstance(a, list) else a for a in ctx.saved_variables.b]
        return {"x": g * next(a for a in arrays if a is not None)}

    op = pb.autograd_function(forward, backward)
    x, buffer = pb.tensor([1.0, 1.0], requires_grad=True), np.array([2.0, 3.0])
    calls = {
        "a list": lambda: op(x, traversed=[buffer]),
        "a starred argument": lambda: op(x, buffer),
        "a keyword": lambda: op(x, b=buffer),
    }
    y = calls[given]()
    buffer[:] = 100.0
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 3.0]


def test_save_for_backward_gives_an_array_of_the_caller_s_back_read_only():
    found = []
    op = pb.autograd_function(
        lambda ctx, x, b: (ctx.save_for_backward(b=b), x * 1.0)[1],
        lambda ctx, g: (found.append(ctx.saved_variables.b), {"x": g})[1],
    )
    array = np.array([1.0, 2.0])
    op(pb.tensor([1.0, 1.0], requires_grad=True), array).sum().backward()
    assert found[0].__class__ is np.ndarray
    assert found[0].tolist() == [1.0, 2.0]
    assert not found[0].flags.writeable
    assert array.flags.writeable


@pytest.mark.parametrize("kept", [lambda a: a, lambda a: a[1:], lambda a: [a], lambda a: {"k": a}])
def test_save_for_backward_does_not_copy_an_array_that_forward_alone_made(kept):
    found = []

    def forward(ctx, x):
        array = np.tanh(x.numpy())
        ctx.save_for_backward(a=kept(array))
        found.append(array.__array_interface__["data"][0])
        return x * 1.0

    def backward(ctx, g):
        (array,) = pb.core.custom.pytree.leaves(ctx.saved_variables.a)
        base = array if array.base is None else array.base
        found.append(base.__array_interface__["data"][0])
        return {"x": g}

    op = pb.autograd_function(forward, backward)
    for _ in range(2):
        op(pb.tensor(np.ones(5), requires_grad=True)).sum().backward()
    assert found[0] == found[1]
    assert found[2] == found[3]


def test_save_for_backward_of_one_large_array_in_many_calls_keeps_one_snapshot():
    op = pb.autograd_function(
        lambda ctx, x, b: (ctx.save_for_backward(b=b), x * 1.0)[1],
        lambda ctx, g: {"x": g * ctx.saved_variables.b},
    )
    y, array = pb.tensor(np.ones(4321), requires_grad=True), np.full(4321, 2.0)
    for _ in range(5):
        y = op(y, array)
    kept = [a for a in _latest.values() if a.shape == (4321,)]
    assert len(kept) == 1
    alive = weakref.ref(kept.pop())
    del y
    gc.collect()
    assert alive() is None


def test_save_for_backward_of_an_array_argument_is_a_constant_of_second_derivatives():
    op = pb.autograd_function(
        lambda ctx, x, b: (ctx.save_for_backward(x=x, b=b), x * x * pb.asarray(b))[1],
        lambda ctx, g: {"x": 2.0 * g * ctx.saved_variables.x * ctx.saved_variables.b},
    )
    array, x = np.array([3.0]), pb.tensor(np.array([5.0]), requires_grad=True)
    y = op(x, array)
    array[:] = 0.0
    (first,) = pb.autograd.grad(y.sum(), x, create_graph=True)
    assert first.tolist() == [30.0]
    assert pb.autograd.grad(first.sum(), x)[0].tolist() == [6.0]


@pytest.mark.parametrize("made", [exp, lambda x: [exp(x)]], ids=["array", "list"])
@pytest.mark.parametrize("attribute", [False, True])
def test_save_for_backward_of_an_array_made_in_forward_has_no_second_derivative(made, attribute):
    def forward(ctx, x):
        if attribute:
            ctx.a = made(x)
        else:
            ctx.save_for_backward(a=made(x))
        return pb.asarray(exp(x))

    def backward(ctx, g):
        a = ctx.a if attribute else ctx.saved_variables.a
        return {"x": g * (a[0] if isinstance(a, list) else a)}

    x = pb.tensor([1.0], requires_grad=True)
    op = pb.autograd_function(forward, backward)
    op(x).sum().backward()
    with pytest.raises(GraphError, match="the saved value 'a' is neither an input nor an output"):
        pb.autograd.grad(op(x).sum(), x, create_graph=True)


def test_save_for_backward_of_arrays_of_another_library_keeps_their_values():
    xp = pytest.importorskip("array_api_strict")

    def forward(ctx, x, b):
        ctx.save_for_backward(b=b, made=[b + 1.0])
        return x * 1.0

    def backward(ctx, g):
        saved = ctx.saved_variables
        return {"x": g * saved.b * saved.made[0]}

    op = pb.autograd_function(forward, backward)
    buffer = xp.asarray([2.0, 3.0])
    x = pb.asarray(xp.asarray([1.0, 1.0])).requires_grad_()
    y = op(x, buffer)
    buffer[...] = 100.0
    y.sum().backward()
    assert x.grad.tolist() == [6.0, 12.0]
