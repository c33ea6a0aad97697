"""`checkpoint`: the second run repeats draws; results other than the first's are an error."""

import pickle
import random

import numpy as np
import pytest

import pullback as pb


def leaf(*numbers):
    return pb.tensor(numbers, dtype=pb.float64, requires_grad=True)


def _seed():
    np.random.seed(7)
    random.seed(7)
    pb.manual_seed(7)


def _shuffled(x):
    order = np.random.permutation(2)
    return x[order] * pb.tensor([1.0, 10.0], dtype=pb.float64)


def _python_shuffled(x):
    factors = [1.0, 10.0, 100.0]
    random.shuffle(factors)
    return x * pb.tensor(factors[:2], dtype=pb.float64) * random.gauss(0.0, 1.0)


GLOBAL = {
    "rand": lambda x: x * np.random.rand(2),
    "normal": lambda x: x * np.random.normal(size=3)[:2],  # one number is left for the next draw
    "permutation": _shuffled,
    "random": lambda x: x * random.random(),
    "shuffle": _python_shuffled,
    "all": lambda x: x * np.random.rand() * random.random() * pb.rand(2, dtype=pb.float64),
    "seeded inside": lambda x: x * [np.random.seed(3), np.random.rand()][1],
    "nested": lambda x: pb.checkpoint(lambda x: x * np.random.rand(2))(x) * random.random(),
}


@pytest.mark.parametrize("name", list(GLOBAL))
def test_draws_of_global_generators_are_repeated_and_these_go_on_as_without(name):
    def run(f):
        _seed()
        x = leaf(2.0, 3.0)
        y = f(x)
        after_first = (np.random.rand(), random.random())
        (y * y).sum().backward()
        return (y.tolist(), x.grad.tolist(), after_first, np.random.rand(), random.random())

    assert run(pb.checkpoint(GLOBAL[name])) == run(GLOBAL[name])


def test_global_generators_stand_as_before_where_the_second_run_raises():
    runs = []

    def f(x):
        runs.append(np.random.rand())
        if len(runs) == 2:
            raise ArithmeticError("second")
        return (x * runs[0]).exp()

    x = leaf(2.0)
    y = pb.checkpoint(f)(x)
    np.random.seed(1)
    with pytest.raises(ArithmeticError, match="second"):
        y.sum().backward()
    np.testing.assert_equal(np.random.rand(), np.random.RandomState(1).rand())
    assert runs[0] == runs[1]


class Counter:
    def __init__(self):
        self.count = 0

    def __call__(self, x):
        self.count += 1
        return (x * self.count).sin()


def _with_generator():
    rng = np.random.default_rng(0)
    return lambda x: (x * rng.random(2)).sin()


def _permuted():
    rng = np.random.default_rng(2)
    return lambda x: x.sin()[rng.permutation(4000)]


def _by_one_element():
    counter = iter(range(10))

    def f(x):
        at = next(counter)
        return x.exp() * pb.tensor(np.where(np.arange(4000) == at, 2.0, 1.0))

    return f


OTHER = {
    "generator": (_with_generator, 2),
    "counter": (Counter, 2),
    "order": (_permuted, 4000),
    "one of 4000": (_by_one_element, 4000),
}


@pytest.mark.parametrize("name", list(OTHER))
@pytest.mark.parametrize("wrap", [lambda f: f, pb.checkpoint])
def test_another_result_of_the_second_run_is_an_error_at_every_backward(name, wrap):
    make, size = OTHER[name]
    x = pb.tensor(np.linspace(1.0, 2.0, size), requires_grad=True)
    y = pb.checkpoint(wrap(make()))(x).sum()
    for _ in range(2):
        with pytest.raises(
            pb.AutogradError, match=r"(?s)^checkpoint: a second run of .* got other .*check=False"
        ):
            y.backward(retain_graph=True)
        assert x.grad is None


def test_check_false_leaves_the_results_unchecked():
    x, counter = leaf(1.0), Counter()
    pb.checkpoint(counter, check=False)(x).sum().backward()
    np.testing.assert_allclose(x.grad.item(), 2 * np.cos(2.0), rtol=1e-15)
    assert repr(pb.checkpoint(np.sin, check=False)) == "checkpoint(sin, check=False)"
    assert repr(pickle.loads(pickle.dumps(pb.checkpoint(np.sin)))) == "checkpoint(sin)"


def test_a_difference_of_rounding_is_the_same_result():
    runs = []

    def f(x):
        runs.append(0)
        return x.exp() * (1.0 + 1e-14 * len(runs))

    x = leaf(1.0, 2.0)
    pb.checkpoint(f)(x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), np.exp([1.0, 2.0]), rtol=1e-12)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
def test_results_with_nan_and_infinity_are_compared_as_well(dtype):
    x = pb.tensor(np.array([0.0, -1.0, np.inf, np.nan, *range(3000)], dtype), requires_grad=True)
    with np.errstate(all="ignore"):
        y = pb.checkpoint(lambda x: (x.log() * x).reshape(-1, 1))(x)
        pb.real(y[5]).sum().backward()
    assert x.grad[5].item() == 1.0


def test_draws_are_repeated_under_other_transforms():
    def f(x):
        return (x * np.random.rand(2)).exp().sum()

    x, v = np.array([1.0, 2.0]), np.array([1.0, 0.0])
    for transform in (
        lambda f: pb.grad(f)(x),
        lambda f: pb.hvp(f)(x, v),
        lambda f: pb.jvp(f, (x,), (v,))[1],
        lambda f: pb.vmap(pb.grad(f))(np.stack([x, v])),
    ):
        _seed()
        expected = transform(f)
        _seed()
        np.testing.assert_allclose(transform(pb.checkpoint(f)), expected, rtol=1e-14)
