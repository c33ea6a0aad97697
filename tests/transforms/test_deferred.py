"""The values of a gradient of which the tangent alone is wanted: computed where they are needed."""

import numpy as np
import pytest

import pullback as pb
from pullback.transforms import deferred

RNG = np.random.default_rng(5)
X, V = RNG.normal(size=(2, 4, 3))
WEIGHTS, OTHER = RNG.normal(size=(3, 3)), RNG.normal(size=(5, 1, 3))


class Counted(deferred.Deferred):
    """Notes how many values were put off, and how many of them were computed."""

    made = computed_ones = 0

    def __init__(self, *args):
        super().__init__(*args)
        Counted.made += 1

    def computed(self):
        Counted.computed_ones += self._found is None
        return super().computed()


@pytest.fixture
def of_any_size(monkeypatch):
    monkeypatch.setattr(deferred, "_WORTHWHILE", 0)


@pytest.fixture
def counted(of_any_size, monkeypatch):
    for module in ("deferred", "tangents", "tangent_rules"):
        monkeypatch.setattr(f"pullback.transforms.{module}.Deferred", Counted)
    Counted.made = Counted.computed_ones = 0
    return Counted


def squares(x):
    return np.sum(x * x * x)


def mixture(x):
    whitened = (OTHER - x) * np.exp(WEIGHTS[0])
    return np.sum(np.log(np.sum(np.exp(-0.5 * np.sum(whitened * whitened, -1)), -1)))


def layers(x):
    return np.sum(np.tanh(np.tanh(x @ WEIGHTS) @ WEIGHTS) ** 2)


def arranged(x):
    return np.sum(np.reshape(x.T, (2, 6))[:, ::2] ** 3) - np.mean(x * x[0] * 2.0)


def steps(x):
    for _ in range(40):
        x = -x * WEIGHTS[0] + 0.1
    return np.sum(np.sin(x))


def chained(x):
    out = x * x * x
    for _ in range(3000):
        out = 1.001 * -out
    return np.sum(out)


def two_rows(x):
    return np.sum(np.sin(x[:1] * x[1:]) * x[2:3])


FUNCTIONS = (squares, mixture, layers, arranged, steps, chained, two_rows)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_products_with_a_hessian_are_the_same(function, monkeypatch):
    at_once = pb.hvp(function)(X, V)
    monkeypatch.setattr(deferred, "_WORTHWHILE", 0)
    np.testing.assert_array_equal(pb.hvp(function)(X, V), at_once)
    np.testing.assert_allclose(pb.vhp(function)(X, V), at_once, rtol=1e-10, atol=1e-12)


def test_values_that_nothing_asks_for_are_not_computed(counted):
    pb.hvp(layers)(X, V)
    assert 0 < counted.computed_ones < counted.made


def test_values_are_put_off_in_large_arrays_alone(counted, monkeypatch):
    monkeypatch.undo()
    monkeypatch.setattr("pullback.transforms.tangents.Deferred", counted)
    pb.hvp(squares)(X, V)
    assert counted.made == 0
    large = np.ones(2**15)
    pb.hvp(squares)(large, large)
    assert counted.made > 0


def test_nothing_is_put_off_where_a_gradient_is_wanted(counted):
    value, tangent = pb.jvp(pb.grad(layers), (X,), (V,))
    assert counted.made == 0
    np.testing.assert_array_equal(tangent, pb.hvp(layers)(X, V))
    np.testing.assert_array_equal(value, pb.grad(layers)(X))


def test_nothing_is_put_off_where_users_code_runs(counted):
    @pb.autograd_function
    def cube(ctx, x):
        ctx.save_for_backward(x=x)
        return x**3

    @cube.backward
    def _(ctx, grad_output):
        return {"x": grad_output * 3 * ctx.saved_variables.x**2}

    def with_hook(x):
        y = x * WEIGHTS[0]
        y.register_hook(lambda g: None)
        return np.sum(y * y)

    np.testing.assert_allclose(pb.hvp(lambda x: np.sum(cube(x)))(X, V), 6 * X * V)
    np.testing.assert_allclose(pb.hvp(with_hook)(X, V), 2 * WEIGHTS[0] ** 2 * V)
    assert counted.made == 0


def test_a_product_shares_no_memory_with_the_vector(of_any_size):
    vector = V.copy()
    product = pb.hvp(lambda x: 0.5 * np.sum(x * x))(X, vector)
    product += 1.0
    np.testing.assert_array_equal(vector, V)


@pytest.mark.parametrize("transform", [pb.grad, pb.vmap], ids=["grad", "vmap"])
def test_products_inside_of_other_transforms_are_the_same(transform, of_any_size):
    def along(x):
        return np.sum(pb.hvp(lambda y: np.sum(y * y * y * WEIGHTS[0]))(x, V[0]))

    found = transform(along)(X[0] if transform is pb.grad else X)
    expected = 6 * WEIGHTS[0] * V[0]
    np.testing.assert_allclose(found, expected if transform is pb.grad else X @ expected)


def test_vectors_that_require_grad_keep_their_graph(of_any_size):
    tracked = pb.tensor(V, requires_grad=True)
    product = pb.hvp(lambda x, y: np.sum(x * y * x), (0, 1))(X, X, (V, tracked))
    product[0].sum().backward()
    np.testing.assert_allclose(tracked.grad.numpy(), 2 * X)
