"""vmap: axes, containers, chunks, random draws, in-place writes, and how it composes."""

import itertools
import pickle
import tracemalloc
from typing import NamedTuple

import numpy as np
import pytest

import pullback as pb
from pullback.errors import ArgumentError, InplaceError

RNG = np.random.default_rng(4)
X = RNG.normal(size=(3, 4))
Y = RNG.normal(size=(4, 3))
W = RNG.normal(size=(2, 4))


def equal(ours, theirs):
    np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=1e-12, atol=1e-12)


# -- axes and containers ---------------------------------------------------------------------------
def test_a_function_of_one_sample_becomes_one_of_many():
    found = pb.vmap(lambda x, y: x @ y)(np.array([[1.0, 2.0], [3.0, 4.0]]), np.eye(2))
    assert isinstance(found, np.ndarray)
    equal(found, [1.0, 4.0])


def test_axes_of_the_arguments_count_from_either_end():
    expected = [X[i] @ Y[:, i] for i in range(3)]
    for axes in ((0, 1), (0, -1), (-2, -1), [0, 1]):
        equal(pb.vmap(lambda x, y: x @ y, in_axes=axes)(X, Y), expected)
    equal(pb.vmap(lambda x, y: x @ y, in_dims=(0, 1))(X, Y), expected)


def test_an_argument_without_an_axis_is_given_as_it_came():
    seen = []
    pb.vmap(lambda x, w, n: seen.append(w) or x * n, in_axes=(0, None, None))(X, W, 3)
    assert seen[0] is W


def test_the_axis_of_the_results_goes_where_out_axes_says():
    equal(pb.vmap(lambda x: x * 2, out_axes=1)(X), 2 * X.T)
    equal(pb.vmap(lambda x: x * 2, out_axes=-1)(X), 2 * X.T)
    equal(pb.vmap(lambda x: x * 2, out_dims=1)(X), 2 * X.T)
    first, second = pb.vmap(lambda x: (x, x.sum()), out_axes=(1, 0))(X)
    equal(first, X.T)
    equal(second, X.sum(1))


class Pair(NamedTuple):
    first: object
    second: object


def test_arguments_and_results_are_containers_of_any_form():
    def f(given, pair):
        return {"sum": given["a"] + given["b"][0], "pair": Pair(pair.first * 2, [pair.second])}

    found = pb.vmap(f)({"a": X, "b": [X]}, Pair(X, X))
    equal(found["sum"], 2 * X)
    assert isinstance(found["pair"], Pair)
    equal(found["pair"].second[0], X)


def test_axes_are_given_for_parts_of_a_container():
    found = pb.vmap(lambda d, s: d["w"] @ d["x"] * s, in_axes=({"w": None, "x": 0}, None))(
        {"w": W, "x": X}, 2.0
    )
    equal(found, 2 * X @ W.T)


def test_arrays_given_by_keyword_have_the_axis_0():
    found = pb.vmap(lambda x, *, y, power: (x * y) ** power)(X, y=X, power=2)
    equal(found, X**4)


def test_results_that_are_the_same_for_all_samples_are_repeated():
    w = pb.asarray(W)
    same, number, array = pb.vmap(lambda x: (w * 2, 3.0, W))(pb.asarray(X))
    equal(same, np.stack([2 * W] * 3))
    equal(number, [3.0] * 3)
    equal(array, np.stack([W] * 3))
    once = pb.vmap(lambda x: w * 2, out_axes=None)(pb.asarray(X))
    equal(once, 2 * W)


@pytest.mark.parametrize("number", [0.1, 0.1 + 0.2j, 3, True, np.float32(0.1)])
def test_vmap_gives_a_number_that_a_function_of_numpy_arrays_returns_numpys_dtype(number):
    found = pb.vmap(lambda x: (x, number))(np.ones(2))[1]
    assert found.dtype == np.asarray(number).dtype
    assert found.tolist() == [number, number]
    nested = pb.vmap(lambda x: pb.vmap(lambda y: number)(x))(np.ones((2, 2)))
    assert nested.dtype == found.dtype
    assert pb.vmap(lambda x: 0.1)(pb.ones(2)).dtype == pb.float32
    assert pb.vmap(lambda x: 0.1)(pb.ones(2, dtype=pb.float64)).dtype == pb.float32


def test_tensors_in_tensors_out_arrays_in_arrays_out():
    assert isinstance(pb.vmap(lambda x: x)(pb.asarray(X)), pb.Tensor)
    assert isinstance(pb.vmap(lambda x: x)(X), np.ndarray)
    assert isinstance(pb.vmap(lambda x, y: x, in_axes=(0, None))(X, pb.asarray(X)), pb.Tensor)


def test_results_share_no_memory_with_the_arguments():
    x = X.copy()
    for f in (lambda x: x, lambda x: x[::-1], lambda x: x.reshape((2, 2))):
        for axis in (0, 1):
            found = pb.vmap(f, out_axes=axis)(x)
            found += 1.0
            equal(x, X)


@pytest.mark.parametrize(
    "loss",
    [
        lambda x, y: (x + y).sum(),
        lambda x, y: ((x + y) ** 2).sum(),
        lambda x, y: (x * W[0]).sum() + (y * W[0]).sum(),
        lambda x, y: x @ y,
    ],
    ids=["ones", "the same", "a constant", "each other"],
)
def test_gradients_share_no_memory(loss):
    x, y = X.copy(), 2 * X
    found = pb.vmap(pb.grad(loss, (0, 1)))(x, y)
    arrays = [x, y, W, *found]
    assert all(g.flags.writeable for g in found)
    assert not any(np.shares_memory(a, b) for a, b in itertools.combinations(arrays, 2))


def test_arguments_are_not_changed_in_place():
    x = pb.asarray(X.copy())

    def f(x):
        x += 1
        return x

    equal(pb.vmap(f)(x), X + 1)
    equal(x, X)


def test_numpy_programs_run_as_they_stand():
    def f(x):
        z = np.concatenate([np.tanh(x), x[::-1]])
        return np.where(z > 0, z, 0.1 * z).reshape((2, 4)).mean(axis=0)

    equal(pb.vmap(f)(X), np.stack([f(x) for x in X]))


def test_a_vmapped_function_is_pickled_and_printed_as_the_call_that_made_it():
    f = pb.vmap(np.sin, in_axes=1, chunk_size=2)
    equal(pickle.loads(pickle.dumps(f))(X), np.sin(X.T))
    assert repr(f) == "vmap(sin, in_axes=1, chunk_size=2)"


def test_a_batched_tensor_prints_all_samples():
    seen = []
    pb.vmap(lambda x: seen.append(repr(x)) or x)(pb.tensor([1.0, 2.0]))
    assert seen == ["tensor([1., 2.], batched)"]


# -- indexing and writing --------------------------------------------------------------------------
TABLE = np.random.default_rng(5).normal(size=(4, 5, 6))
ROWS = np.array([[0, 3], [1, 1], [2, 0]])
MASK = np.array([True, False, True, False])

READS = {
    "a row of its own": lambda t, i: t[i[0]],
    "rows": lambda t, i: t[i],
    "of a later axis": lambda t, i: t[:, i],
    "of the last axis": lambda t, i: t[..., i],
    "two arrays": lambda t, i: t[i, i],
    "two arrays apart": lambda t, i: t[i, :, i],
    "after a new axis": lambda t, i: t[None, :, i],
    "beside a number": lambda t, i: t[1, :, i],
    "an array and a list": lambda t, i: t[i, [0, 1]],
    "beside a slice": lambda t, i: t[1:, i, ::2],
    "matrices of indices": lambda t, i: t[i[:, None], i[None, :]],
    "negative": lambda t, i: t[i - 2],
    "a number of its own": lambda t, i: t[:, i[1], 2],
    "the same mask": lambda t, i: t[MASK] * i[0],
    "the same mask apart": lambda t, i: t[[0, 1], :, [2, 3]] * i[0],
}


@pytest.mark.parametrize("name", READS)
@pytest.mark.parametrize("mapped", ["index", "both", "table"])
def test_reading_by_index_is_the_loop(name, mapped):
    read = READS[name]
    tables = np.stack([TABLE, TABLE * 2, TABLE - 1])
    table, axis = (TABLE, None) if mapped == "index" else (tables, 0)
    rows, row_axis = (ROWS[0], None) if mapped == "table" else (ROWS, 0)
    function = pb.vmap(lambda t, i: read(pb.asarray(t), pb.asarray(i)), in_axes=(axis, row_axis))
    expected = [
        read(
            pb.asarray(table if axis is None else table[k]),
            pb.asarray(rows if row_axis is None else rows[k]),
        )
        for k in range(3)
    ]
    found = function(pb.asarray(table), pb.asarray(rows))
    equal(found, np.stack([e.numpy() for e in expected]))


def writes():
    def at(index, value):
        def write(t, i):
            t[index(i)] = value(t, i)

        return write

    return {
        "a row": at(lambda i: i[0], lambda t, i: 7.0),
        "rows": at(lambda i: i, lambda t, i: i[0] * 1.0),
        "rows by values": at(lambda i: i, lambda t, i: t[:2] * 3),
        "of a later axis": at(lambda i: (slice(None), i), lambda t, i: t[:, :2] + 1),
        "apart": at(lambda i: (i, slice(None), i), lambda t, i: t[:2, :, 0] + 1),
        "a slice": at(lambda i: slice(1, 3), lambda t, i: t[:2] * i[0]),
        "one element": at(lambda i: (1, 2, 3), lambda t, i: i[0] * 1.0),
        "the same mask": at(lambda i: pb.asarray(MASK), lambda t, i: i[1] * 1.0),
        "its own mask": lambda t, i: t.__setitem__(t > i[0] * 0.1, 0.5),
        "a view": lambda t, i: t[1].mul_(i[0] * 1.0),
        "a view of a view": lambda t, i: t[1:].transpose(0, 1)[2].add_(t[0, 0]),
        "a diagonal": lambda t, i: t[0].diagonal().copy_(t[1, 0, :5] * i[1]),
        "fill": lambda t, i: t[2].fill_(2.0),
        "added up": lambda t, i: t.index_add_(0, i, t[:2] * 2),
        "scattered": lambda t, i: t.scatter_(0, (t[:1] * 0).long() + i[0], t[:1] * 5),
    }


@pytest.mark.parametrize("name", writes())
@pytest.mark.parametrize("mapped", ["index", "both", "table"])
def test_writing_in_place_is_the_loop_and_so_are_its_gradients(name, mapped):
    write = writes()[name]
    tables = np.stack([TABLE, TABLE * 2, TABLE - 1])
    table, axis = (TABLE, None) if mapped == "index" else (tables, 0)
    rows, row_axis = (ROWS[0], None) if mapped == "table" else (ROWS, 0)

    def f(t, i):
        t = pb.asarray(t).sin()
        write(t, pb.asarray(i))
        return (t * t).sum() + t[0].sum(), t

    def both(t, i):
        gradient, out = pb.grad(f, has_aux=True)(pb.asarray(t), i)
        return gradient, out

    if mapped == "index":  # a tensor from outside, but written to a copy of it
        table = np.stack([TABLE] * 3)
        axis = 0
    table, rows = pb.asarray(table), pb.asarray(rows)
    gradient, out = pb.vmap(both, in_axes=(axis, row_axis))(table, rows)
    for k in range(3):
        wanted, value = both(table[k], rows if row_axis is None else rows[k])
        equal(gradient[k], wanted)
        equal(out[k], value)


def test_a_tensor_made_inside_takes_what_a_batch_writes():
    def f(x):
        out = pb.zeros(4, dtype="float64")
        out[1:3] = x[:2] * 2
        out[0] += x.sum()
        return out

    equal(pb.vmap(f)(X), np.stack([f(pb.asarray(x)).numpy() for x in X]))


# -- random draws ----------------------------------------------------------------------------------
def test_draws_are_different_for_each_sample_or_one_for_all():
    x = pb.zeros(3, 2)
    _ = pb.manual_seed(0)
    apart = pb.vmap(lambda x: x + pb.rand(2), randomness="different")(x)
    assert len({float(v) for v in apart.ravel()}) == 6
    _ = pb.manual_seed(0)
    equal(apart, pb.rand(3, 2))
    _ = pb.manual_seed(0)
    same = pb.vmap(lambda x: x + pb.rand(2), randomness="same")(x)
    _ = pb.manual_seed(0)
    equal(same, np.stack([pb.rand(2).numpy()] * 3))


@pytest.mark.parametrize(
    "draw",
    [
        lambda x: pb.randn_like(x),
        lambda x: pb.randint(0, 1000, (2,)).double() + x,
        lambda x: pb.randperm(50)[:2].double() + x,
        lambda x: pb.bernoulli(x + 0.5),
        lambda x: pb.normal(x, 1.0),
        lambda x: pb.multinomial(x + 1, 1).double(),
        lambda x: pb.nn.functional.dropout(x + 1, 0.5),
    ],
)
def test_every_kind_of_draw_asks_for_the_randomness(draw):
    x = np.zeros((40, 2))
    with pytest.raises(ArgumentError, match='randomness="different"'):
        pb.vmap(draw)(x)
    assert len(np.unique(pb.vmap(draw, randomness="different")(x), axis=0)) > 1
    assert len(np.unique(pb.vmap(draw, randomness="same")(x), axis=0)) == 1


def test_nested_draws_follow_each_their_own_transform():
    def inner(how):
        return pb.vmap(lambda y: y * 0 + pb.rand(()), randomness=how)

    rows = pb.vmap(inner("same"), randomness="different")(np.zeros((3, 4)))
    assert len(np.unique(rows)) == 3
    assert len(np.unique(pb.vmap(inner("different"), randomness="same")(np.zeros((3, 4))))) == 4
    every = pb.vmap(inner("different"), randomness="different")(np.zeros((3, 4)))
    assert len(np.unique(every)) == 12
    inside = pb.vmap(
        lambda x: pb.jvp(lambda y: y * pb.rand(()), (x,), (x,))[1], randomness="different"
    )
    assert len(np.unique(inside(np.ones(5)))) == 5


@pb.autograd_function
def noisy(ctx, x):
    ctx.noise = pb.rand(x.shape).numpy()
    return x * pb.asarray(ctx.noise)


@noisy.backward
def _(ctx, grad_output):
    return {"x": grad_output * pb.asarray(ctx.noise)}


def test_an_operation_that_draws_has_the_gradient_of_its_own_draw():
    x = np.ones((5, 2))
    with pytest.raises(ArgumentError, match="noisy"):
        pb.vmap(noisy)(x)
    for how, count in (("different", 10), ("same", 2)):
        value, gradient = pb.vmap(
            lambda x: (lambda out, pull: (out, pull(out * 0 + 1)[0]))(*pb.vjp(noisy, x)),
            randomness=how,
        )(x)
        equal(value, gradient)
        assert len(np.unique(value)) == count


def test_chunks_share_a_draw_that_is_the_same():
    for how, count in (("same", 1), ("different", 5)):
        f = pb.vmap(lambda x: x + pb.rand(()), chunk_size=2, randomness=how)
        assert len(np.unique(f(np.zeros(5)))) == count


# -- chunks ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("size", [1, 2, 3, 5, 100])
def test_chunks_give_the_same(size):
    def f(x):
        return {"a": x.cumsum(0), "b": (x.sum(), 4.0)}

    found, whole = pb.vmap(f, chunk_size=size, out_axes={"a": 1, "b": 0})(X), pb.vmap(f)(X)
    equal(found["a"], whole["a"].T)
    equal(found["b"][0], whole["b"][0])
    equal(found["b"][1], [4.0] * 3)
    t = pb.asarray(X).requires_grad_()
    pb.vmap(lambda x: (x**3).sum(), chunk_size=size)(t).sum().backward()
    equal(t.grad, 3 * X**2)


def test_a_chunk_limits_memory():
    x = np.ones((64, 100))

    def peak(chunk):
        tracemalloc.start()
        pb.vmap(lambda x: pb.outer(x, x).sin().sum(), chunk_size=chunk)(x)
        top = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return top

    assert peak(None) > 64 * 100 * 100 * 8
    assert peak(4) < peak(None) / 8


# -- compositions ----------------------------------------------------------------------------------
def loss(w, x):
    return pb.tanh(w @ x).square().sum() + (w[0] * x).sum()


def test_gradients_of_each_sample_are_those_of_the_loop():
    expected = np.stack([pb.grad(loss)(W, x) for x in X])
    equal(pb.vmap(pb.grad(loss), in_axes=(None, 0))(W, X), expected)


def test_a_gradient_of_vmap_is_the_gradient_of_the_loop():
    def by_vmap(w):
        return pb.vmap(lambda x: loss(w, x))(pb.asarray(X)).sum()

    def by_loop(w):
        return sum(loss(w, x) for x in X)

    equal(pb.grad(by_vmap)(W), pb.grad(by_loop)(W))
    equal(pb.hessian(by_vmap)(W), pb.hessian(by_loop)(W))
    equal(pb.jvp(by_vmap, (W,), (W,))[1], pb.jvp(by_loop, (W,), (W,))[1])
    equal(pb.hvp(by_vmap)(W, W), pb.hvp(by_loop)(W, W))


def test_backward_reaches_tensors_that_are_closed_over():
    w = pb.asarray(W).requires_grad_()
    pb.vmap(lambda x: loss(w, x))(pb.asarray(X)).sum().backward()
    equal(w.grad, pb.grad(lambda w: sum(loss(w, x) for x in X))(W))


def test_vmap_nests():
    outer = pb.vmap(pb.vmap(lambda a, b: a * b, in_axes=(None, 0)), in_axes=(0, None))
    equal(outer(np.arange(3.0), np.arange(4.0)), np.outer(np.arange(3.0), np.arange(4.0)))
    cube = RNG.normal(size=(2, 3, 4))
    deep = pb.vmap(pb.vmap(pb.vmap(lambda x: x * x.sin())), in_axes=1, out_axes=2)
    equal(deep(cube), np.moveaxis(cube * np.sin(cube), 1, 2))
    gradients = pb.vmap(pb.vmap(pb.grad(loss), in_axes=(None, 0)), in_axes=(0, None))
    ws = np.stack([W, 2 * W])
    equal(gradients(ws, X), [[pb.grad(loss)(w, x) for x in X] for w in ws])


def test_vmap_over_a_vjp_gives_a_jacobian():
    f = lambda x: pb.tanh(pb.asarray(W) @ x)  # noqa: E731
    _, vjp_fn = pb.vjp(f, X[0])
    (rows,) = pb.vmap(vjp_fn)(np.eye(2))
    equal(rows, pb.jacobian(f)(X[0]))
    _, jvp_fn = pb.linearize(f, X[0])
    equal(pb.vmap(jvp_fn, out_axes=1)(np.eye(4)), pb.jacobian(f)(X[0]))
    columns = pb.vmap(lambda v: pb.jvp(f, (X[0],), (v,))[1], out_axes=1)(np.eye(4))
    equal(columns, pb.jacobian(f)(X[0]))


def test_hessians_and_jacobians_of_each_sample():
    f = lambda x: loss(pb.asarray(W), x)  # noqa: E731
    wanted = np.stack([pb.hessian(f)(x) for x in X])
    equal(pb.vmap(pb.hessian(f))(X), wanted)
    equal(pb.vmap(pb.jacfwd(pb.grad(f)))(X), wanted)
    equal(pb.vmap(pb.jacrev(pb.jacfwd(f)))(X), wanted)
    products = pb.vmap(lambda x, v: pb.hvp(f)(x, v))(X, X)
    equal(products, np.einsum("nij,nj->ni", wanted, X))
    by_columns = pb.vmap(lambda v: pb.hvp(f)(X[0], v))(np.eye(4))
    equal(by_columns, wanted[0])


def test_a_third_derivative_of_each_sample():
    third = pb.grad(pb.grad(pb.grad(lambda x: pb.exp(2 * x) + x**4)))
    x = np.array([0.1, 0.5])
    equal(pb.vmap(third)(x), 8 * np.exp(2 * x) + 24 * x)
    equal(pb.elementwise_grad(pb.vmap(pb.grad(pb.sin)))(x), -np.sin(x))


def test_checkpoints_run_inside():
    f = pb.checkpoint(lambda x: pb.sin(x) * x)
    equal(pb.vmap(pb.grad(lambda x: f(x).sum()))(X), np.cos(X) * X + np.sin(X))
    equal(pb.grad(lambda x: pb.vmap(f)(x).sum())(X), np.cos(X) * X + np.sin(X))
    g = pb.checkpoint(lambda x: pb.vmap(lambda y: y.sin() * y)(x))
    equal(pb.grad(lambda x: g(x).sum())(X), np.cos(X) * X + np.sin(X))


def test_modes_inside_are_those_of_the_loop():
    def f(x):
        with pb.no_grad():
            factor = x.exp()
        return (factor * x).sum()

    equal(pb.vmap(pb.grad(f))(X), np.exp(X))
    t = pb.asarray(X).requires_grad_()
    pb.vmap(f)(t).sum().backward()
    equal(t.grad, np.exp(X))
    with pb.no_grad():
        assert not pb.vmap(f)(t).requires_grad


def test_the_engine_runs_inside():
    def f(x):
        x = x.detach().requires_grad_()
        (first,) = pb.autograd.grad((x**3).sum(), x, create_graph=True)
        (second,) = pb.autograd.grad(first.sum(), x)
        leaf = x.detach().requires_grad_()
        (leaf * leaf).sum().backward()
        return first, second, leaf.grad

    first, second, third = pb.vmap(f)(X)
    equal(first, 3 * X**2)
    equal(second, 6 * X)
    equal(third, 2 * X)


def test_an_operation_that_looks_at_values_is_called_for_each_sample():
    x = np.array([[3.0, 0.0, 1.0], [0.0, 2.0, 5.0]])
    found = pb.vmap(lambda x: pb.matrix_exp(pb.outer(x, x) / 9))(x)
    equal(found, np.stack([pb.matrix_exp(pb.asarray(np.outer(r, r) / 9)).numpy() for r in x]))
    positions = pb.vmap(lambda x: pb.nonzero(x)[0])(x)
    equal(positions, [[0, 2], [1, 2]])
    gradient = pb.vmap(pb.grad(lambda x: pb.matrix_exp(pb.outer(x, x) / 9).sum()))(x)
    one = pb.grad(lambda x: pb.matrix_exp(pb.outer(x, x) / 9).sum())
    equal(gradient, np.stack([one(r) for r in x]))


@pytest.mark.filterwarnings("ignore:Anomaly Detection", "ignore:invalid value", "ignore:Error det")
def test_anomaly_mode_looks_at_all_samples():
    with pb.detect_anomaly(), pytest.raises(pb.errors.AnomalyError, match="log"):
        pb.vmap(lambda x: pb.log(x))(np.array([1.0, -1.0]))
    with pb.detect_anomaly():
        equal(pb.vmap(pb.grad(pb.log))(np.array([1.0, 2.0])), [1.0, 0.5])


# -- operations of one's own -----------------------------------------------------------------------
@pb.autograd_function
def scaled(ctx, x, y, power=2):
    """Compute with NumPy itself."""
    ctx.save_for_backward(x=x, y=y)
    ctx.power = power
    return pb.asarray(x.numpy() ** power * y.numpy())


@scaled.backward
def _(ctx, grad_output):
    saved, n = ctx.saved_variables, ctx.power
    return {"x": grad_output * n * saved.x ** (n - 1) * saved.y, "y": grad_output * saved.x**n}


class Both(pb.Function):
    @staticmethod
    def forward(x, y):
        return x * y, {"count": 3, "sum": x + y}

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, product, rest):
        x, y = ctx.saved_tensors
        total = rest["sum"]
        return product * y + total, product * x + total


@pb.autograd_function(traverse=True)
def total(ctx, items, *, scale):
    ctx.scale, ctx.count = scale, len(items)
    return scale * (items[0] + items[1])


@total.backward
def _(ctx, grad_output):
    return {"items": [grad_output * ctx.scale] * ctx.count}


def both(x, y):
    product, rest = Both.apply(x, y)
    assert rest["count"] == 3
    return product * rest["sum"]


OWN = {
    "scaled": scaled,
    "a keyword": lambda x, y: scaled(x, y=y, power=3),
    "a class": both,
    "containers": lambda x, y: total([x, y * x], scale=2.0),
    "twice": lambda x, y: scaled(scaled(x, y), x),
}


@pytest.mark.parametrize("name", OWN)
def test_an_operation_of_ones_own_is_the_loop_in_every_order(name):
    op = OWN[name]
    x, y = pb.asarray(X), pb.asarray(X[0] + 1)

    def f(x, y):
        return op(x, y).sin().sum()

    def looped(g):
        rows = [g(row, y) for row in x]
        return [np.stack([r[k].numpy() for r in rows]) for k in range(len(rows[0]))]

    every = (0, 1)
    for g in (
        lambda x, y: (op(x, y),),
        pb.grad(f, every),
        lambda x, y: pb.hessian(f, every)(x, y)[0],
        lambda x, y: pb.jvp(op, (x, y), (y, x)),
        lambda x, y: pb.hvp(f, every)(x, y, (y, x)),
        lambda x, y: (pb.grad(lambda x: pb.jvp(f, (x, y), (y, x))[1])(x),),
    ):
        for ours, theirs in zip(pb.vmap(g, in_axes=(0, None))(x, y), looped(g), strict=True):
            equal(ours, theirs)

    def whole(x, y):
        return pb.vmap(f, in_axes=(0, None))(x, y).sum()

    def rows(x, y):
        return sum(f(row, y) for row in x)

    for transform in (
        lambda f: pb.grad(f, every)(x, y),
        lambda f: pb.hessian(f, 1)(x, y)[None],
        lambda f: pb.jvp(f, (x, y), (x, y)),
        lambda f: pb.hvp(f, every)(x, y, (x, y)),
    ):
        for ours, theirs in zip(transform(whole), transform(rows), strict=True):
            equal(ours, theirs)
    nested = pb.vmap(pb.vmap(pb.grad(f), in_axes=(None, 0)), in_axes=(0, None))
    equal(nested(x, x), [[pb.grad(f)(a, b).numpy() for b in x] for a in x])


def test_a_vjp_of_an_operation_is_mapped_over_cotangents():
    out, vjp_fn = pb.vjp(lambda x, y: scaled(scaled(x, y), x), X[0], X[1])
    seeds = RNG.normal(size=(5, *out.shape))
    found = pb.vmap(vjp_fn)(seeds)
    for k in range(2):
        equal(found[k], np.stack([vjp_fn(seed)[k] for seed in seeds]))


@pb.autograd_function
def ruled(ctx, x, y):
    ctx.save_for_backward(x=x, y=y)
    return x * y


@ruled.backward
def _(ctx, grad_output):
    return {"x": grad_output * ctx.saved_variables.y, "y": grad_output * ctx.saved_variables.x}


CALLS = []


@ruled.vmap
def _(info, in_dims, x, y):
    CALLS.append((info.batch_size, info.randomness, in_dims))
    size = info.batch_size
    x, y = (
        t.expand((size, *t.shape)) if axis is None else t.movedim(axis, 0)
        for t, axis in zip(map(pb.asarray, (x, y)), in_dims, strict=True)
    )
    return ruled(x, y), 0


def test_a_rule_of_ones_own_gets_all_samples_at_once():
    CALLS.clear()
    equal(pb.vmap(ruled, in_axes=(0, None))(pb.asarray(X), pb.asarray(X[0])), X * X[0])
    assert CALLS == [(3, "error", (0, None))]
    f = lambda x, y: ruled(x, y).sin().sum()  # noqa: E731
    gradients = pb.vmap(pb.grad(f, (0, 1)), in_axes=(0, None))(X, X[0])
    equal(gradients[0], X[0] * np.cos(X * X[0]))
    equal(gradients[1], X * np.cos(X * X[0]))
    second = pb.vmap(pb.hessian(f), in_axes=(0, None))(X, X[0])
    equal(second, np.stack([pb.hessian(f)(x, X[0]) for x in X]))
    whole = pb.grad(lambda y: pb.vmap(f, in_axes=(0, None))(pb.asarray(X), y).sum())(X[0])
    equal(whole, (X * np.cos(X * X[0])).sum(0))


class Flipped(pb.Function):
    @staticmethod
    def forward(ctx, x):
        return x.flip(0), x * 2

    @staticmethod
    def backward(ctx, first, second):
        return first.flip(0) + 2 * second

    @staticmethod
    def vmap(info, in_dims, x):
        x = x.movedim(in_dims[0], -1)
        return (x.flip(0), x * 2), (-1, x.ndim - 1)


def test_a_class_may_have_a_rule_and_put_the_axis_anywhere():
    first, second = pb.vmap(Flipped.apply)(pb.asarray(X))
    equal(first, X[:, ::-1])
    equal(second, 2 * X)
    weight = pb.asarray(np.arange(4.0))
    g = pb.vmap(pb.grad(lambda x: (Flipped.apply(x)[0] * weight).sum()))(X)
    equal(g, np.stack([np.arange(4.0)[::-1]] * 3))
    copy = pickle.loads(pickle.dumps(ruled))
    assert copy is ruled


def test_an_operation_that_changes_its_argument_is_refused():
    @pb.autograd_function
    def doubled(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    with pytest.raises(InplaceError, match=r"doubled: .*vmap"):
        pb.vmap(lambda x: doubled(x * 1))(X)


NUMPY = {
    "nonzero": lambda x: np.nonzero(x)[0] * 1.0,
    "argpartition": lambda x: x[np.argpartition(x, 1)] * 1.0,
    "select": lambda x: np.select([x > 0.5, x < -0.5], [x, -x], 0.1),
    "interp": lambda x: np.interp(x, [-3.0, 0.0, 3.0], [1.0, 0.0, 2.0]),
    "percentile": lambda x: np.percentile(x, 30),
    "along an axis": lambda x: np.apply_along_axis(lambda r: r * r[0], 0, x),
    "unwrap": lambda x: np.unwrap(x * 3),
    "compress": lambda x: np.compress([True, False, True, False], x),
}


@pytest.mark.parametrize("name", NUMPY)
def test_numpys_functions_that_look_at_values_are_called_for_each_sample(name):
    f = NUMPY[name]
    rows = np.array([[0.9, -1.2, 0.3, 2.0], [-0.8, 0.4, 1.5, -2.2]])
    equal(pb.vmap(lambda x: f(pb.asarray(x)))(rows), np.stack([np.asarray(f(r)) for r in rows]))
    if name not in ("nonzero",):
        one = pb.grad(lambda x: np.sum(f(x) ** 2))
        equal(pb.vmap(one)(rows), np.stack([one(r) for r in rows]))


def test_solutions_are_computed_for_each_sample():
    def solve(a):
        return pb.implicit.root(lambda x, a: x**3 + x - a, pb.ones((), dtype="float64"), a)

    a = np.array([1.0, 2.0, 3.0])
    values = pb.vmap(solve)(a)
    equal(values**3 + values, a)
    equal(pb.vmap(pb.grad(solve))(a), 1 / (3 * values**2 + 1))
    equal(pb.grad(lambda a: pb.vmap(solve)(a).sum())(a), 1 / (3 * values**2 + 1))
    ends = pb.vmap(lambda k: pb.implicit.odeint(lambda y, t, k: -k * y, 1.0, [0.0, 1.0], k)[-1])(a)
    np.testing.assert_allclose(ends, np.exp(-a), rtol=1e-6)


def test_a_batch_that_a_solver_closes_over_is_named():
    def solve(a):
        return pb.implicit.root(lambda x: x**3 + x - a, pb.ones((), dtype="float64"))

    with pytest.raises(pb.errors.BatchedValueError, match="vmap"):
        pb.vmap(solve)(np.array([1.0, 2.0]))


@pb.autograd_function
def counted(ctx, x):
    ctx.save_for_backward(x=x)
    return x * 2, np.asarray((x.numpy() > 0).sum())


@counted.backward
def _(ctx, grad_output, _):
    return {"x": 2 * grad_output}


def test_arrays_in_the_result_of_an_operation_have_an_axis_of_samples():
    x = np.array([[1.0, -1.0], [2.0, 3.0], [-1.0, -2.0]])
    double, count = pb.vmap(counted)(x)
    equal(double, 2 * x)
    equal(count, [1, 2, 0])


def test_a_tensor_from_outside_takes_what_is_the_same_for_all_samples():
    calls = pb.zeros(2)

    def f(x):
        calls.add_(1)
        return x * calls.sum()

    equal(pb.vmap(f)(X), 2 * X)
    assert calls.tolist() == [1.0, 1.0]


def test_a_constant_is_read_by_an_index_of_each_sample_in_forward_mode():
    numbers = pb.tensor([5.0, 7.0, 9.0, 11.0], dtype="float64")

    def f(x):
        return x * numbers[x.argsort()]

    found = pb.vmap(lambda x: pb.jvp(f, (x,), (pb.ones_like(x),))[1])(pb.asarray(X))
    equal(found, np.stack([numbers.numpy()[np.argsort(x)] for x in X]))


def test_samples_of_arrays_have_the_methods_of_arrays():
    x = np.random.default_rng(0).normal(size=(3, 4))
    assert np.allclose(pb.vmap(lambda row: row.std(ddof=0))(x), x.std(axis=1))
    assert np.allclose(pb.vmap(lambda row: row.max(axis=0))(x), x.max(axis=1))
    tensors = pb.vmap(lambda row: row.std())(pb.tensor(x))
    assert np.allclose(tensors.numpy(), x.std(axis=1, ddof=1))


def test_results_for_tensors_with_the_methods_of_arrays_have_them_too():
    x = np.array([[1.0, 3.0], [5.0, 2.0]])
    largest = pb.vmap(lambda row: row.max(axis=0))
    gradient = pb.grad(lambda x: largest(x).std(ddof=1))(x)
    equal(gradient, np.array([[0.0, -(0.5**0.5)], [0.5**0.5, 0.0]]))


# -- memory ----------------------------------------------------------------------------------------
SHARED = np.random.default_rng(0).normal(size=(200, 200)) + 20 * np.eye(200)
VECTORS = np.random.default_rng(1).normal(size=(300, 200))
IMAGES = np.random.default_rng(2).normal(size=(2, 8, 32, 32))
WEIGHTS = np.random.default_rng(3).normal(size=(100, 1, 8, 3, 3))


@pytest.mark.parametrize(
    ("function", "samples"),
    [
        (lambda x: SHARED @ x, VECTORS),
        (lambda x: np.einsum("ij,j->i", SHARED, x), VECTORS),
        (lambda x: np.linalg.solve(SHARED, x), VECTORS),
        (lambda x: np.linalg.solve(SHARED, x.reshape(200, 1)), VECTORS),
        (lambda w: pb.nn.functional.conv2d(pb.asarray(IMAGES), w), WEIGHTS),
        (pb.grad(lambda w: pb.nn.functional.conv2d(pb.asarray(IMAGES), w).sum()), WEIGHTS),
    ],
    ids=["matmul", "einsum", "solve", "solve a column", "conv2d", "gradient of conv2d"],
)
def test_what_all_samples_share_is_not_copied_for_each(function, samples):
    tracemalloc.start()
    try:
        found = pb.vmap(function)(samples)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 15e6
    np.testing.assert_allclose(found[7], pb.vmap(function)(samples[7:8])[0], rtol=1e-9)


def test_vmap_names_the_way_to_write_to_an_array_that_samples_share():
    rows, shared = np.arange(6.0).reshape(2, 3), np.ones(3)

    def written(row, b):
        b[0] = row[1]
        return (row * b).sum()

    with pytest.raises(ValueError, match="array element") as caught:
        pb.vmap(written, in_axes=(0, None))(rows, shared)
    assert "b = pb.tensor(b) before `b[i] = x`" in str(caught.value.__cause__)
    by_the_way = pb.vmap(lambda row, b: written(row, pb.tensor(b)), in_axes=(0, None))
    assert by_the_way(rows, shared).tolist() == [written(row, shared.copy()) for row in rows]
    assert shared.tolist() == [1.0, 1.0, 1.0]
