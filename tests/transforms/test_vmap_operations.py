"""vmap of every operation equals the loop over the samples: values and gradients."""

import numpy as np
import pytest
from tests.ops import _cases
from tests.ops._cases import mostly

import pullback as pb
from pullback.errors import BatchedValueError
from pullback.ops.declare import REGISTRY
from pullback.transforms.batch.rules import RULES

SAMPLES = 3
CASES = _cases.cases()


def drawn(case):
    """Return the inputs of several samples, each array with an axis in front, and the domains."""
    rng, distinct = case.rng(), case.declaration.distinct
    dtype = np.dtype("complex128" if case.complex else "float64")
    pairs = list(zip(case.domains, case.sample.shapes, strict=True))
    rows = [
        [_cases.draw(domain, shape, dtype, rng, distinct) for domain, shape in pairs]
        for _ in range(SAMPLES)
    ]
    return [np.stack(column) for column in zip(*rows, strict=True)]


def called(case, arrays):
    """Return the results of one sample as tensors, those that are determined."""
    return tuple(case.call([pb.asarray(a) for a in arrays]))


def looped(case, columns, mapped):
    """Return the results of each sample, stacked; None where their shapes differ."""
    rows = [
        called(case, [c[i if m else 0] for c, m in zip(columns, mapped, strict=True)])
        for i in range(SAMPLES)
    ]
    stacked = []
    for column in zip(*rows, strict=True):
        if len({t.shape for t in column}) > 1:
            return None
        stacked.append(np.stack([t.numpy() for t in column]))
    return stacked


def compare(case, mapped):
    if case.name == "batch_norm" and not all(mapped[1:3]):
        mapped = [True, True, True, *mapped[3:]]  # it writes to the running statistics
    columns = drawn(case)
    expected = looped(case, columns, mapped)
    given = [c if m else c[0] for c, m in zip(columns, mapped, strict=True)]
    axes = tuple(0 if m else None for m in mapped)
    # Samples of operations that draw numbers seed the generator in each call.
    function = pb.vmap(lambda *arrays: called(case, arrays), in_axes=axes, randomness="same")
    if expected is None:
        with pytest.raises(BatchedValueError, match="of one shape for all samples"):
            function(*given)
        return
    found = function(*given)
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-11)


@mostly(CASES)
def test_vmap_of_an_operation_is_the_loop(case):
    compare(case, [True] * len(case.sample.shapes))


@pytest.mark.parametrize("case", [c for c in CASES if len(c.sample.shapes) > 1], ids=str)
def test_so_is_that_of_some_of_its_inputs(case):
    count = len(case.sample.shapes)
    for k in range(count):
        compare(case, [i == k for i in range(count)])


SMOOTH = [c for c in _cases.cases(differentiable=True) if c.wanted]


def gradients(case, columns, wanted, mapped, weights):
    """Return the gradients of a weighted sum of the results of one sample, as a function of it."""

    def of_one(*given):
        arrays, factors = given[: len(columns)], given[len(columns) :]

        def loss(*moving):
            inputs = [pb.asarray(a) for a in arrays]
            for i, tensor in zip(wanted, moving, strict=True):
                inputs[i] = tensor
            outs = [o for o in case.call(inputs) if o.dtype.is_inexact]
            total = 0
            for out, factor in zip(outs, factors, strict=True):
                product = pb.conj(factor) * out if out.is_complex() else factor * out
                total = total + (product.real if product.is_complex() else product).sum()
            return total

        moving = [pb.asarray(arrays[i]) for i in wanted]
        return pb.grad(loss, tuple(range(len(wanted))))(*moving)

    axes = (*(0 if m else None for m in mapped), *(0 for _ in weights))
    return of_one, axes


def compare_gradients(case, mapped):
    columns = drawn(case)
    outs = called(case, [c[0] for c in columns])
    if case.name == "batch_norm" and not all(mapped[1:3]):
        mapped = [True, True, True, *mapped[3:]]
    rng = np.random.default_rng(3)
    weights = [
        _cases.random_like(np.empty((SAMPLES, *o.shape), o.dtype.dtype), rng)
        for o in outs
        if o.dtype.is_inexact
    ]
    if looped(case, columns, mapped) is None:
        return
    of_one, axes = gradients(case, columns, case.wanted, mapped, weights)
    given = [
        *(c if m else c[0] for c, m in zip(columns, mapped, strict=True)),
        *weights,
    ]
    given = [pb.asarray(g) for g in given]
    found = pb.vmap(of_one, in_axes=axes, randomness="same")(*given)
    rows = [
        of_one(*(g[i] if a == 0 else g for g, a in zip(given, axes, strict=True)))
        for i in range(SAMPLES)
    ]
    for k, ours in enumerate(found):
        theirs = np.stack([row[k].numpy() for row in rows])
        np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-8, atol=1e-10)


@mostly(SMOOTH)
def test_gradients_of_each_sample_are_those_of_the_loop(case):
    compare_gradients(case, [True] * len(case.sample.shapes))


@pytest.mark.parametrize("case", [c for c in SMOOTH if len(c.sample.shapes) > 1], ids=str)
def test_so_are_those_by_what_the_samples_share(case):
    count = len(case.sample.shapes)
    for k in range(count):
        compare_gradients(case, [i == k for i in range(count)])


FIRST = [c for c in SMOOTH if c.number == 0]


@pytest.mark.parametrize("case", FIRST, ids=str)
def test_batches_of_batches_are_the_loop_and_stay_in_the_graph(case):
    columns = drawn(case)
    inner = looped(case, columns, [True] * len(columns))
    if inner is None:
        return
    deep = [pb.asarray(np.stack([c, c[::-1]])) for c in columns]
    moving = [deep[i].requires_grad_() for i in case.wanted]
    twice = pb.vmap(pb.vmap(lambda *a: called(case, a), randomness="same"), randomness="same")
    found = twice(*deep)
    for ours, theirs in zip(found, inner, strict=True):
        wanted = np.stack([theirs, theirs[::-1]])
        np.testing.assert_allclose(ours.detach().numpy(), wanted, rtol=1e-9, atol=1e-11)
    outs = [o for o in found if o.requires_grad]
    rng = np.random.default_rng(2)
    seeds = [pb.asarray(_cases.random_like(o.detach().numpy(), rng)) for o in outs]
    ours = pb.autograd.grad(outs, moving, seeds, materialize_grads=True)
    one = [
        [pb.asarray(c.detach().numpy()[a, b]) for c in deep]
        for a in range(2)
        for b in range(SAMPLES)
    ]
    rows = []
    for k, arrays in enumerate(one):
        for i in case.wanted:
            arrays[i].requires_grad_()
        own = [o for o in case.call(arrays) if o.requires_grad]
        at = divmod(k, SAMPLES)
        rows.append(
            pb.autograd.grad(
                own,
                [arrays[i] for i in case.wanted],
                [s[at] for s in seeds],
                materialize_grads=True,
            )
        )
    for j, gradient in enumerate(ours):
        wanted = np.stack([row[j].numpy() for row in rows]).reshape(gradient.shape)
        np.testing.assert_allclose(gradient.numpy(), wanted, rtol=1e-8, atol=1e-10)


@pytest.mark.stress
@pytest.mark.parametrize("case", FIRST, ids=str)
def test_tangents_of_each_sample_are_those_of_the_loop(case):
    columns = drawn(case)
    if looped(case, columns, [True] * len(columns)) is None:
        return

    def along(*arrays):
        def f(*moving):
            inputs = [pb.asarray(a) for a in arrays]
            for i, tensor in zip(case.wanted, moving, strict=True):
                inputs[i] = tensor
            return [o for o in case.call(inputs) if o.dtype.is_inexact]

        given = [pb.asarray(arrays[i]) for i in case.wanted]
        return pb.jvp(f, given, [g * 0.5 + 1 for g in given])[1]

    found = pb.vmap(along, randomness="same")(*map(pb.asarray, columns))
    rows = [along(*(pb.asarray(c[i]) for c in columns)) for i in range(SAMPLES)]
    for k, ours in enumerate(found):
        theirs = np.stack([row[k].numpy() for row in rows])
        np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-8, atol=1e-10)


# -- rules that are not linear in the gradient -----------------------------------------------------
def _clipped(w, x):
    return pb.surrogate.clip_gradient(w, 1.0) * x


@pytest.mark.parametrize("chunk_size", [None, 2])
def test_vmap_runs_a_rule_of_what_samples_share_once_on_the_summed_gradient(chunk_size):
    x = np.array([0.25, 0.5, 3.0])
    shared = pb.vmap(_clipped, (None, 0), chunk_size=chunk_size)
    assert pb.grad(lambda w: np.sum(shared(w, x)))(2.0) == 1.0 + (chunk_size == 2) * 0.75
    closed_over = pb.grad(lambda w: np.sum(pb.vmap(lambda x: _clipped(w, x))(x)))
    assert closed_over(2.0) == 1.0


def test_vmap_gives_the_loops_gradient_where_each_sample_has_its_own():
    x = np.array([0.25, 0.5, 3.0])
    assert pb.grad(lambda w: sum(_clipped(w, x_i) for x_i in x))(2.0) == 1.75
    own = pb.grad(lambda w: np.sum(pb.vmap(_clipped)(np.broadcast_to(w, 3), x)))
    assert own(2.0) == 1.75
    assert pb.vmap(pb.grad(_clipped), (None, 0))(2.0, x).tolist() == [0.25, 0.5, 1.0]


def test_every_batch_that_an_operation_declares_is_a_rule():
    declared = {getattr(d.primitive, "batch", "") for d in REGISTRY.values()} - {""}
    assert declared == {*RULES}
