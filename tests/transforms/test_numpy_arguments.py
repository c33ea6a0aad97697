"""What arguments of transforms become: tensors with NumPy's methods for NumPy's arrays.

A standard deviation tells the two classes apart: NumPy's has no correction, PyTorch's has.
"""

import array_api_strict
import numpy as np
import pytest

import pullback as pb
from pullback.numpy_protocol.tensor import NumPyTensor

X = np.array([1.0, 3.0])
V = np.array([1.0, 0.5])
seen = []


def noted(*xs):
    """Note the classes down; return the standard deviation, which is 1 of X, 1.4142 in PyTorch."""
    seen.extend(type(x) for x in xs)
    return xs[0].std() ** 2


TRANSFORMS = {
    "grad": (lambda f, x, v: pb.grad(f)(x), [-1.0, 1.0]),
    "grad by name": (lambda f, x, v: pb.grad(lambda x: f(x), "x")(x=x), [-1.0, 1.0]),
    "value_and_grad": (lambda f, x, v: pb.value_and_grad(f)(x)[1], [-1.0, 1.0]),
    "value": (lambda f, x, v: pb.value_and_grad(f)(x)[0], 1.0),
    "elementwise_grad": (lambda f, x, v: pb.elementwise_grad(f)(x), [-1.0, 1.0]),
    "vjp": (lambda f, x, v: pb.vjp(f, x)[1](2.0)[0], [-2.0, 2.0]),
    "the value of vjp": (lambda f, x, v: pb.vjp(f, x)[0], 1.0),
    "jvp": (lambda f, x, v: pb.jvp(f, (x,), (v,))[1], -0.5),
    "the value of jvp": (lambda f, x, v: pb.jvp(f, (x,), (v,))[0], 1.0),
    "linearize": (lambda f, x, v: pb.linearize(f, x)[1](v), -0.5),
    "jacobian": (lambda f, x, v: pb.jacobian(f)(x), [-1.0, 1.0]),
    "jacfwd": (lambda f, x, v: pb.jacfwd(f)(x), [-1.0, 1.0]),
    "hessian": (lambda f, x, v: pb.hessian(f)(x), [[0.5, -0.5], [-0.5, 0.5]]),
    "hvp": (lambda f, x, v: pb.hvp(f)(x, v), [0.25, -0.25]),
    "vhp": (lambda f, x, v: pb.vhp(f)(x, v), [0.25, -0.25]),
    "grad of grad": (
        lambda f, x, v: pb.grad(lambda y: pb.grad(f)(y).std())(x * 1.0),
        [-0.5, 0.5],
    ),
    "jvp of grad": (lambda f, x, v: pb.jvp(pb.grad(f), (x,), (v,))[1], [0.25, -0.25]),
    "grad of jvp": (lambda f, x, v: pb.grad(lambda y: pb.jvp(f, (y,), (v,))[1])(x), [0.25, -0.25]),
    "jvp of jvp": (
        lambda f, x, v: pb.jvp(lambda y: pb.jvp(f, (y,), (v,))[1], (x,), (v,))[1],
        0.125,
    ),
    "checkpoint": (lambda f, x, v: pb.grad(pb.checkpoint(f))(x), [-1.0, 1.0]),
}


@pytest.fixture(autouse=True)
def nothing_seen():
    seen.clear()


@pytest.mark.parametrize("name", TRANSFORMS)
def test_arrays_become_tensors_with_numpys_methods_and_arrays_come_back(name):
    transform, expected = TRANSFORMS[name]
    found = transform(noted, X, V)
    assert set(seen) == {NumPyTensor}
    assert type(found) in (np.ndarray, np.float64)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_tensors_keep_pytorchs_methods(name):
    transform, expected = TRANSFORMS[name]
    found = transform(noted, pb.asarray(X), pb.asarray(V))
    assert set(seen) == {pb.Tensor}
    assert type(found) is pb.Tensor
    times = 2 * np.sqrt(2) if name == "grad of grad" else 2  # the variance is twice NumPy's
    np.testing.assert_allclose(found.detach().numpy(), np.multiply(expected, times), rtol=1e-12)


class Sub(pb.Tensor):
    __slots__ = ()


@pytest.mark.parametrize(
    ("given", "cls"),
    [
        (X, NumPyTensor),
        (2.0, NumPyTensor),
        (np.float64(2.0), NumPyTensor),
        (2.0 + 1j, NumPyTensor),
        (X.astype(np.float32), NumPyTensor),
        (pb.tensor([1.0]), pb.Tensor),
        (array_api_strict.asarray([1.0, 3.0]), pb.Tensor),
    ],
)
def test_the_class_of_an_argument(given, cls):
    def f(x):
        seen.append(type(x))
        return abs(x * x).sum()

    pb.grad(f)(given)
    pb.jvp(f, (given,), (pb.asarray(given) * 0 if isinstance(given, complex) else given,))
    assert seen == [cls, cls]


def test_a_subclass_of_tensor_keeps_its_own():
    x = pb.asarray(X)
    x.__class__ = Sub
    found = pb.grad(noted)(x)
    assert (seen, type(found)) == ([Sub], Sub)


def test_containers_hold_both():
    given = {"a": X, "t": pb.ones(2), "n": np.arange(2), "k": 3}

    def f(p):
        seen.extend([type(p["a"]), type(p["t"]), type(p["n"]), type(p["k"]), type(p["a"] * p["t"])])
        return (p["a"] * p["t"]).sum()

    found = pb.grad(f)(given)
    assert seen == [NumPyTensor, pb.Tensor, NumPyTensor, int, NumPyTensor]
    assert (type(found["a"]), type(found["t"]), found["n"]) == (np.ndarray, pb.Tensor, None)


def test_what_is_not_differentiated_is_given_as_it_came():
    pb.grad(noted)(X, X, pb.ones(1), 2.0)
    assert seen == [NumPyTensor, np.ndarray, pb.Tensor, float]


@pytest.mark.parametrize("create", [X, pb.asarray(X)], ids=["array", "tensor"])
def test_a_gradient_that_stays_in_the_graph_is_of_the_class_of_its_argument(create):
    w = pb.tensor(2.0, dtype=pb.float64, requires_grad=True)
    found = pb.grad(lambda x: (x**2 * w).sum())(create)
    pushed = pb.jvp(lambda x: (x**2 * w).sum(), (create,), (create,))[1]
    expected = NumPyTensor if create is X else pb.Tensor
    assert found.requires_grad
    assert (type(found), type(pushed)) == (expected, expected)


# -- what users of custom operations get -----------------------------------------------------------
def kinds(name, *values):
    seen.extend((name, type(v)) for v in values)


class Cube(pb.Function):
    """Notes down what each of its rules is given."""

    @staticmethod
    def forward(ctx, x):
        kinds("forward", x)
        ctx.save_for_backward(x=x)
        return x**3

    @staticmethod
    def backward(ctx, grad_output):
        x = ctx.saved_variables.x
        kinds("backward", grad_output, x)
        return grad_output * x * x * 3

    @staticmethod
    def jvp(ctx, tangent):
        x = ctx.saved_variables.x
        kinds("jvp", tangent, x)
        return tangent * x * x * 3


class CubeByBackward(Cube):
    jvp = None


@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize("op", [Cube, CubeByBackward])
def test_a_users_rules_get_plain_tensors(op, name):
    results = []

    def f(x):
        y = op.apply(x)
        results.append(type(y))
        return y.sum() + x.std() ** 2

    transform, _ = TRANSFORMS[name]
    transform(f, X, V)
    assert {kind for _, kind in seen} == {pb.Tensor}
    assert "forward" in {name for name, _ in seen}
    assert set(results) == {NumPyTensor}


def test_hooks_get_plain_tensors():
    def f(x):
        x.register_hook(lambda g: kinds("tensor hook", g))
        y = x * x
        y.register_hook(lambda g: kinds("tensor hook", g))
        y.grad_fn.register_hook(lambda gs, outs: kinds("node hook", *gs, *outs))
        with pb.saved_tensors_hooks(lambda t: (kinds("pack", t), t)[1], lambda t: t):
            y = y.exp() * y
        return y.sum()

    found = pb.grad(f)(X)
    assert {name for name, _ in seen} == {"tensor hook", "node hook", "pack"}
    assert {kind for _, kind in seen} == {pb.Tensor}
    assert type(found) is np.ndarray


# -- programs that ran into PyTorch's habits -------------------------------------------------------
def test_numpy_code_means_what_it_meant():
    def loss(w):
        centred = (w - w.mean(axis=0, keepdims=True)) / w.std(axis=0, ddof=1)
        best = centred.max(axis=1)
        order = np.argsort(best)
        picked = centred[order[0], [0, 1]] * np.zeros_like(w).shape[0]
        share = (w > 0).mean() * 0.1
        return (best.clip(-1, 1).sum() + picked.sum() + share * w.ravel()[0]).astype(float)

    w = np.random.default_rng(0).normal(size=(4, 2))
    value, gradient = pb.value_and_grad(loss)(w)
    assert value == loss(w)
    step = 1e-6
    for place in np.ndindex(w.shape):
        up, down = w.copy(), w.copy()
        up[place] += step
        down[place] -= step
        expected = (loss(up) - loss(down)) / (2 * step)
        np.testing.assert_allclose(gradient[place], expected, rtol=1e-6, atol=1e-8)


@pb.autograd_function
def own_exp(ctx, x):
    result = x.exp()
    ctx.save_for_backward(result=result)
    return result


@own_exp.backward
def _(ctx, grad_output):
    return {"x": grad_output * ctx.saved_variables.result}


def test_an_operation_that_saves_its_result_differentiates_twice():
    def f(x):
        y = own_exp(x)
        assert type(y) is NumPyTensor
        return (y.std() ** 2).sum()

    step, found = 1e-5, pb.hessian(f)(X)
    for i in range(2):
        unit = np.eye(2)[i] * step
        expected = (pb.grad(f)(X + unit) - pb.grad(f)(X - unit)) / (2 * step)
        np.testing.assert_allclose(found[i], expected, rtol=1e-6)
    ends = [np.exp(X + s * V).std() ** 2 for s in (step, -step)]
    np.testing.assert_allclose(pb.grad(f)(X) @ V, (ends[0] - ends[1]) / (2 * step), rtol=1e-7)
