"""`Graph.bytes_alone` and `bytes_shared`: what `del loss` frees, beside what Python says it did."""

import gc
import tracemalloc

import numpy as np
import pytest

import pullback as pb

RNG = np.random.default_rng(0)


def leaf(*shape):
    return pb.tensor(RNG.normal(size=shape), requires_grad=True)


def _two_layers():
    w1, w2, x = leaf(60, 40), leaf(40, 10), pb.tensor(RNG.normal(size=(200, 60)))
    return ((x @ w1).relu() @ w2).square().sum(), (w1, w2, x)


def _recurrent():
    w, h = leaf(30, 30), pb.ones((20, 30), dtype=pb.float64)
    for _ in range(20):
        h = (h @ w).tanh()
    return h.sum(), w


def _views():
    w = leaf(100, 100)
    parts = [part * 2 for part in w.split(25)]
    return sum((part[:, ::2].exp()).sum() for part in parts), w


def _indexing():
    w, index = leaf(500, 8), RNG.integers(0, 500, 2000)
    return (w[index] ** 2).sum(), w


def _own_operation():
    op = pb.autograd_function(
        lambda ctx, x: (ctx.save_for_backward(x=x, e=np.exp(x.numpy())), x.exp())[1],
        lambda ctx, g: {"x": g * ctx.saved_variables.e},
        name="own",
    )
    w = leaf(50, 50)
    return op(op(w * 0.01)).sum(), w


def _kept_intermediate():
    w = leaf(80, 80)
    h = w.exp()
    return (h * h.sin()).sum(), (w, h)


def _constants():
    w, x = leaf(40), pb.tensor(RNG.normal(size=(300, 40)))
    return ((x * w).sum(1) - pb.asarray(RNG.normal(size=300))).square().mean(), (w, x)


def _convolution():
    w, x = leaf(4, 2, 3, 3), pb.tensor(RNG.normal(size=(3, 2, 12, 12)))
    return pb.nn.functional.conv2d(x, w, padding=1).relu().sum(), (w, x)


def _normalised():
    w, x = leaf(30), pb.tensor(RNG.normal(size=(200, 30)))
    y = pb.nn.functional.layer_norm(x * w, (30,))
    return pb.nn.functional.cross_entropy(y, pb.asarray(np.arange(200) % 30)), (w, x)


def _second_order():
    w = leaf(40, 40)
    (g,) = pb.autograd.grad((w.tanh() @ w).sum(), w, create_graph=True)
    return (g * g).sum(), w


PROGRAMS = [
    *(_two_layers, _recurrent, _views, _indexing, _own_operation, _kept_intermediate),
    *(_constants, _convolution, _normalised, _second_order),
]


def bytes_of_arrays():
    domain = tracemalloc.DomainFilter(True, np.lib.tracemalloc_domain)
    return sum(t.size for t in tracemalloc.take_snapshot().filter_traces([domain]).traces)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__[1:])
def test_bytes_alone_are_those_that_dropping_the_loss_frees(program):
    program()  # what is made once stays
    gc.collect()
    tracemalloc.start()
    try:
        loss, keep = program()
        gc.collect()
        g = pb.inspect.graph(loss)
        before = bytes_of_arrays()
        del loss
        freed = before - bytes_of_arrays()
    finally:
        tracemalloc.stop()
    assert keep is not None
    assert g.bytes_alone == pytest.approx(freed, rel=0.02, abs=16)


def test_bytes_shared_are_those_of_tensors_that_the_caller_holds():
    w = leaf(10)
    h = w.exp()
    loss = (h * h).sum()
    g = pb.inspect.graph(loss)
    assert (g.bytes_alone, g.bytes_shared) == (0, 80)
    del h
    assert (pb.inspect.graph(loss).bytes_alone, pb.inspect.graph(loss).bytes_shared) == (80, 0)


def test_bytes_of_a_view_are_those_of_the_array_that_it_shows():
    w = leaf(100)
    loss = (w.exp()[:2] * 3.0).square().sum()
    (part,) = [row for row in pb.inspect.saved(loss) if row.operation == "PowBackward"][:1] or [
        row for row in pb.inspect.saved(loss) if row.operation == "SquareBackward"
    ]
    assert (part.shape, part.bytes) == ((2,), 16)
    exp = next(row for row in pb.inspect.saved(loss) if row.operation == "ExpBackward")
    assert (exp.shape, exp.bytes) == ((100,), 800)


def test_bytes_of_what_a_second_loss_keeps_too_are_shared():
    w = leaf(10)
    h = w.exp()
    loss, other = h.sum(), (h * 2).sum()
    del h
    g = pb.inspect.graph(loss)
    assert (g.bytes_alone, g.bytes_shared) == (0, 80)
    assert pb.inspect.graph(loss, other).bytes_alone == 80


def test_saved_is_a_table_with_the_largest_first():
    w, x = leaf(3), leaf(40)
    loss = w.exp().sum() + square_of(x).sum()
    table = pb.inspect.saved(loss)
    assert [(row.operation, row.name, row.bytes) for row in table] == [
        *(("squareBackward", "x", 320), ("ExpBackward", "out", 24)),
    ]
    assert repr(table).splitlines()[0].split() == ["operation", "name", "shape", "bytes", "line"]
    assert "<td>ExpBackward</td>" in table._repr_mimebundle_()["text/html"]


square_of = pb.autograd_function(
    lambda ctx, x: (ctx.save_for_backward(x=x), x * x)[1],
    lambda ctx, g: {"x": 2 * g * ctx.saved_variables.x},
    name="square",
)


def as_float32(x):
    return (x.numpy().astype(np.float32),)


def as_float64(packed):
    return pb.asarray(packed[0].astype(np.float64))


def test_saved_shows_what_saved_tensors_hooks_made_of_a_value():
    x = leaf(40)
    with pb.saved_tensors_hooks(as_float32, as_float64):
        loss = square_of(x).sum() + x.exp().sum()
    with pb.saved_tensors_hooks(lambda x: "on disk", lambda packed: None):
        loss = loss + x.sin().sum()
    assert [row[:4] for row in pb.inspect.saved(loss)] == [
        ("squareBackward", "x, packed", (40,), 160),
        ("ExpBackward", "out, packed", (40,), 160),
        ("SinBackward", "x, packed", (), 0),
    ]


@pytest.mark.parametrize(
    "make",
    [
        lambda x: pb.checkpoint(lambda t: t.exp() * 2)(x * 1.0),
        lambda x: pb.vmap(lambda row: row.exp().sin())(x),
        lambda x: pb.vmap(square_of)(x),
        lambda x: x.exp()[pb.asarray([0, 1])] @ x.T,
    ],
    ids=["a checkpoint", "a batch", "a batch of the user's operation", "an index"],
)
def test_saved_has_a_row_for_each_byte_that_a_node_keeps(make):
    result = make(leaf(40, 40))
    nodes = pb.inspect.graph(result).nodes
    rows = pb.inspect.saved(result)
    assert 0 < sum(row.bytes for row in rows) == sum(node.saved_bytes for node in nodes)


def test_saved_after_backward_is_empty():
    loss = leaf(3).exp().sum()
    loss.backward()
    assert len(pb.inspect.saved(loss)) == 0


@pytest.mark.parametrize(
    "make",
    [
        lambda x: pb.linalg.svd(x * 1.0)[1],
        lambda x: x.exp().split(20)[0],
        lambda x: pb.checkpoint(lambda t: t.exp() * 2)(x * 1.0),
        lambda x: x.exp()[:10],
    ],
    ids=["one of several", "a part", "a checkpoint", "a view"],
)
def test_bytes_alone_of_a_result_that_is_no_node_of_its_own_are_those_it_frees(make):
    x = leaf(40, 40)
    make(x)
    gc.collect()
    tracemalloc.start()
    try:
        y = make(x)
        g, before = pb.inspect.graph(y), bytes_of_arrays()
        own = y.data_array().nbytes if y._base is None else 0
        del y
        freed = before - bytes_of_arrays()
    finally:
        tracemalloc.stop()
    assert freed - own - 100 <= g.bytes_alone <= freed


def test_bytes_of_a_tensor_that_is_named_twice_are_counted_once():
    y = leaf(10).exp()
    other = y.detach()
    once, twice = pb.inspect.graph(y), pb.inspect.graph(y, y)
    assert other.shape == (10,)
    assert (once.bytes_alone, once.bytes_shared) == (twice.bytes_alone, twice.bytes_shared)
