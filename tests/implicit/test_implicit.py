"""Solutions of equations: their values, and derivatives of the solution whatever found it."""

import weakref

import numpy as np
import pytest

import pullback as pb
from pullback import implicit

A = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 2.0]])
THETA = np.array([0.7, -0.4, 1.2])
TIMES = np.array([0.0, 0.4, 1.0])


def fixed(theta):
    return implicit.fixed_point(lambda x, c: 0.3 * np.sin(x) * c + c, np.zeros(3), theta)


def rooted(theta):
    return implicit.root(lambda x, c: x**3 + x + (A @ x) * 0.1 - c, np.ones(3), theta)


def solved(theta):
    return implicit.linear_solve(lambda x, c: A @ x + c * c * x, np.cos(theta), theta)


def least(theta):
    def cost(x, c):
        return ((x - c) ** 4).sum() / 4 + (x * x * np.exp(c)).sum() + (x @ (A @ x)) / 2

    return implicit.argmin(cost, np.zeros(3), theta)


def integrated(theta):
    rates = lambda y, t, c: np.sin(c * y) - t * y  # noqa: E731
    return implicit.odeint(rates, np.cos(theta), TIMES, theta)


def interpolated(theta):
    points = np.array([-1.0, 0.1, 0.9, 2.0])
    return implicit.interp(theta, points * 1.1, np.array([0.0, 2.0, 1.0, 5.0]))


SOLVERS = [fixed, rooted, solved, least, integrated, interpolated]
every = pytest.mark.parametrize("solver", SOLVERS)


# ---- derivatives ---------------------------------------------------------------------------------
@every
def test_the_checker_finds_the_derivatives_right(solver):
    parts = ["first", "second_order"]
    report = pb.check.gradcheck(solver, (THETA,), only=parts, rtol=1e-5, raise_exception=False)
    assert report.ok, report


@every
def test_forward_mode_agrees_with_reverse_mode(solver):
    v = np.array([1.0, -2.0, 0.5])
    value, tangent = pb.jvp(solver, (THETA,), (v,))
    np.testing.assert_allclose(value, solver(THETA), rtol=1e-9)
    np.testing.assert_allclose(tangent, pb.jacrev(solver)(THETA) @ v, rtol=1e-6)


@pytest.mark.parametrize("solver", SOLVERS[:-1])
def test_hessian_products_agree_with_differences_of_the_gradient(solver):
    def total(theta):
        return (solver(theta) ** 2).sum()

    v, h = np.array([1.0, -2.0, 0.5]), 1e-5
    expected = (pb.grad(total)(THETA + h * v) - pb.grad(total)(THETA - h * v)) / (2 * h)
    np.testing.assert_allclose(pb.hvp(total)(THETA, v), expected, rtol=2e-5, atol=1e-7)


# d^k sqrt(a) / da^k at 4
ROOTS = [2.0, 1 / 4, -1 / 32, 3 / 256, -15 / 2048, 105 / 16384]


def iterated(a):
    return implicit.fixed_point(lambda x, a: (x + a / x) / 2, 1.5, a)


def zero(a):
    return implicit.root(lambda x, a: x * x - a, 1.5, a)


def minimum(a):
    return implicit.argmin(lambda x, a: x**3 / 3 - a * x, 1.5, a)


def quotient(a):
    return implicit.linear_solve(lambda x, s: s * x, a, np.sqrt(a))


square_roots = pytest.mark.parametrize("solver", [iterated, zero, minimum, quotient])


@square_roots
def test_derivatives_of_any_order_are_those_of_the_solution(solver):
    for expected in ROOTS:
        assert solver(4.0) == pytest.approx(expected, rel=1e-9)
        solver = pb.grad(solver)


@square_roots
def test_forward_mode_nests_in_itself_and_in_reverse_mode(solver):
    def pushed(f):
        return lambda a: pb.jvp(f, (a,), (1.0,))[1]

    ways = [pushed(pushed(pushed(solver))), pushed(pushed(pb.grad(solver)))]
    ways += [pushed(pb.grad(pb.grad(solver))), pb.grad(pushed(pb.grad(solver)))]
    ways += [pb.grad(pb.grad(pushed(solver))), pb.grad(pushed(pushed(solver)))]
    for way in ways:
        assert way(4.0) == pytest.approx(ROOTS[3], rel=1e-9)


def test_what_comes_from_a_parameter_in_two_ways_counts_once_for_each():
    def solver(a):  # through s, which f closes over, and by itself
        s = a * a
        return implicit.root(lambda x, a: x - a * s, 1.0, a)

    assert solver(2.0) == pytest.approx(8.0)
    assert pb.grad(solver)(2.0) == pytest.approx(12.0)
    assert pb.grad(pb.grad(solver))(2.0) == pytest.approx(12.0)
    assert pb.grad(pb.grad(pb.grad(solver)))(2.0) == pytest.approx(6.0)


def test_gradients_of_complex_solutions_are_those_of_closed_forms():
    def both(f):
        z = pb.tensor(3.0 + 4.0j, dtype=pb.complex128, requires_grad=True)
        out = f(z)
        (g,) = pb.autograd.grad(out.real + 2 * out.imag, z)
        return complex(out.detach().numpy()), complex(g.numpy())

    found = both(lambda z: implicit.root(lambda x, z: x * x - z, 2 + 0.5j, z))
    np.testing.assert_allclose(found, both(pb.sqrt))


def test_a_solution_is_one_node_that_leads_to_what_the_equation_depends_on():
    w = pb.tensor([2.0, 5.0], dtype=pb.float64, requires_grad=True)
    v = w * 1.0
    x = implicit.fixed_point(lambda x: (x + v / x) / 2, np.ones(2))
    assert x.grad_fn.name() == "FixedPointBackward"
    assert x.grad_fn.next_functions == ((v.grad_fn, 0),)
    with pb.no_grad():
        assert implicit.root(lambda x: x * x - w, pb.ones(2)).grad_fn is None


def test_outputs_of_an_operation_with_several_are_told_apart():
    w = pb.tensor([2.0, 5.0, 3.0, 4.0], dtype=pb.float64, requires_grad=True)
    a, b = w.split(2)
    x = implicit.root(lambda x: x * a - b, np.ones(2))
    x.sum().backward()
    np.testing.assert_allclose(w.grad.numpy(), [-3 / 4, -4 / 25, 1 / 2, 1 / 5])


def test_a_second_pass_through_a_released_solution_raises():
    w = pb.tensor(4.0, requires_grad=True)
    x = implicit.root(lambda x: x * x - w, 1.0)
    x.backward()
    with pytest.raises(RuntimeError, match=r"backward through the graph a second time"):
        x.backward()
    x = implicit.root(lambda x: x * x - w, 1.0)
    (g,) = pb.autograd.grad(x, w, create_graph=True, retain_graph=False)
    with pytest.raises(RuntimeError, match=r"backward through the graph a second time"):
        g.backward()


@pytest.mark.parametrize("dtype", [pb.float32, pb.float64])  # one of them is cast, so copied
def test_what_the_equation_depends_on_must_not_change_before_a_recorded_pass(dtype):
    w = pb.tensor(4.0, dtype=dtype, requires_grad=True)
    x = implicit.root(lambda x: x * w - 8.0, pb.tensor(1.0, dtype=pb.float64))
    with pb.no_grad():
        w.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        pb.autograd.grad(x, w, create_graph=True)


def test_what_the_equation_saved_must_not_change():
    w = pb.tensor(2.0, requires_grad=True)
    x = implicit.root(lambda x: x - w * w, pb.tensor(1.0))
    with pb.no_grad():
        w.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        pb.autograd.grad(x, w)


def test_a_solution_that_is_changed_in_place_keeps_its_derivatives():
    w = pb.tensor(4.0, dtype=pb.float64, requires_grad=True)
    x = implicit.root(lambda x: x * x - w, 1.0)
    x.mul_(3)
    (g,) = pb.autograd.grad(x, w, create_graph=True)
    assert g.item() == pytest.approx(3 / 4)
    assert pb.autograd.grad(g, w)[0].item() == pytest.approx(-3 / 32)


def test_a_solution_inside_of_an_equation_is_differentiated_through():
    def inner(x, a):  # x^(1/2) a
        return implicit.root(lambda y: y * y - x * a * a, 1.0)

    def outer(a):  # x = 4 a^2
        return implicit.root(lambda x, a: inner(x, a) - 2 * a * a, 3.0, a)

    assert outer(1.5) == pytest.approx(9.0)
    assert pb.grad(outer)(1.5) == pytest.approx(12.0)
    assert pb.grad(pb.grad(outer))(1.5) == pytest.approx(8.0)


@pytest.mark.usefixtures("no_collector")
def test_dropping_a_solution_frees_what_it_kept():
    w = pb.tensor(4.0, requires_grad=True)
    scale = w * 1.0
    seen = weakref.ref(scale)
    x = implicit.root(lambda x, scale: x * x - scale, 1.0, scale)
    (g,) = pb.autograd.grad(x, w, create_graph=True)
    del scale, x, g
    assert seen() is None


def test_closed_over_leaves_get_gradients():
    w = pb.tensor([2.0, 5.0], dtype=pb.float64, requires_grad=True)
    x = implicit.root(lambda x: x * x - w, np.ones(2))
    x.sum().backward()
    np.testing.assert_allclose(w.grad.numpy(), 0.5 / np.sqrt([2.0, 5.0]))


def test_a_start_has_no_derivative():
    x0 = pb.tensor([1.0], dtype=pb.float64, requires_grad=True)
    assert not implicit.root(lambda x: x * x - 2, x0).requires_grad


def test_an_integral_has_derivatives_by_its_times():
    def end(t):
        return implicit.odeint(lambda y, s: y * 0 + s * s, np.array(0.0), t)[-1]

    assert end(TIMES) == pytest.approx(1 / 3)
    assert pb.grad(end)(np.array([1.0, 2.0])).tolist() == pytest.approx([-1.0, 4.0])


# exp(-k), the rates given as a parameter, closed over, or as the gradient of a potential
DECAYS = {
    "theta": lambda k: implicit.odeint(lambda y, t, k: -k * y, 1.0, TIMES, k)[-1],
    "closed over": lambda k: implicit.odeint(lambda y, t: -k * y, 1.0, TIMES)[-1],
    "potential": lambda k: implicit.odeint(
        lambda y, t: -pb.grad(lambda q: k * q * q / 2)(y), 1.0, TIMES
    )[-1],
}
# The derivative of exp(-k) at 1 that each gives, in exp(-1)
NESTED = {
    "grad of grad": (lambda f: pb.grad(pb.grad(f))(1.0), 1),
    "grad of grad of grad": (lambda f: pb.grad(pb.grad(pb.grad(f)))(1.0), -1),
    "hessian": (lambda f: pb.hessian(f)(1.0), 1),
    "jvp of grad": (lambda f: pb.jvp(pb.grad(f), (1.0,), (2.0,))[1], 2),
    "grad of jvp": (lambda f: pb.grad(lambda k: pb.jvp(f, (k,), (2.0,))[1])(1.0), 2),
    "vjp of grad": (lambda f: pb.vjp(pb.grad(f), 1.0)[1](2.0)[0], 2),
    "jvp of an inner argument": (
        lambda f: pb.grad(lambda k: pb.jvp(lambda s: f(s * k), (1.0,), (1.0,))[1])(1.0),
        0,
    ),
    "vjp of an inner argument": (
        lambda f: pb.vjp(lambda k: pb.grad(lambda s: f(s * k))(1.0), 1.0)[1](1.0)[0],
        0,
    ),
}


@pytest.mark.parametrize("nesting", NESTED)
@pytest.mark.parametrize("name", DECAYS)
def test_an_integral_in_nested_derivatives(name, nesting):
    derivative, factor = NESTED[nesting]
    found = derivative(DECAYS[name])
    assert found == pytest.approx(factor * np.exp(-1), rel=1e-5, abs=1e-6)


def test_the_gradient_of_an_integral_for_each_sample():
    k = np.array([0.5, 1.0, 2.0])
    found = pb.vmap(pb.grad(DECAYS["theta"]))(k)
    np.testing.assert_allclose(found, -np.exp(-k), rtol=1e-5)

    def total(scale):
        return pb.vmap(lambda k: pb.grad(DECAYS["theta"])(k * scale))(k).sum()

    assert pb.grad(total)(1.0) == pytest.approx((k * np.exp(-k)).sum(), rel=1e-5)


def test_an_integral_for_each_sample_closes_over_what_is_differentiated_later():
    def from_start(k, y0):
        slope = lambda y, t: -pb.grad(lambda q: k * q * q / 2)(y)  # noqa: E731
        return implicit.odeint(slope, y0, TIMES)[-1]

    starts = np.array([0.5, 1.0])
    _, vjp_fn = pb.vjp(lambda k: pb.vmap(lambda y0: from_start(k, y0))(starts), 1.0)
    assert vjp_fn(np.ones(2))[0] == pytest.approx(-1.5 * np.exp(-1), rel=1e-5)


def test_an_interpolation_has_derivatives_by_its_points_and_values():
    arguments = (np.array([0.5, 2.5, 9.0]), np.array([0.0, 1.0, 3.0]), np.array([1.0, 4.0, 2.0]))
    report = pb.check.gradcheck(implicit.interp, arguments, only=["first", "second_order"])
    assert report.ok


# ---- values --------------------------------------------------------------------------------------
def test_values_are_those_of_closed_forms():
    exact = {"rtol": 1e-12}
    np.testing.assert_allclose(
        implicit.linear_solve(lambda x: A @ x, THETA), np.linalg.solve(A, THETA), **exact
    )
    np.testing.assert_allclose(implicit.fixed_point(np.cos, 1.0), 0.7390851332151607, **exact)
    x = np.linspace(-2, 5, 30)
    points, values = np.array([-1.0, 0.0, 2.0]), np.array([3.0, 1.0, 7.0])
    np.testing.assert_allclose(implicit.interp(x, points, values), np.interp(x, points, values))
    y = implicit.odeint(
        lambda y, t: np.stack([y[1], -y[0]]), np.array([0.0, 1.0]), np.linspace(0, 6, 7)
    )
    np.testing.assert_allclose(y[:, 0], np.sin(np.linspace(0, 6, 7)), atol=1e-6)
    y = implicit.odeint(lambda y, t: -y, 1.0, np.array([1.0, 0.0]))
    np.testing.assert_allclose(y, [1.0, np.e], rtol=1e-6)


def test_numbers_give_numbers_arrays_arrays_and_tensors_tensors():
    assert isinstance(implicit.root(lambda x: x - 1, 0.0), float)
    assert isinstance(implicit.root(lambda x: x - 1, np.zeros(1)), np.ndarray)
    found = implicit.root(lambda x: x - 1, pb.zeros(1))
    assert (found.dtype, found.tolist()) == (pb.float32, [1.0])


def test_a_minimum_is_found_from_where_the_hessian_is_not_positive():
    found = implicit.argmin(lambda x: ((x * x - 1) ** 2).sum(), np.array([0.1, -0.1]))
    np.testing.assert_allclose(abs(found), [1.0, 1.0])


# ---- misuse --------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: implicit.fixed_point(lambda x: 2 * x + 1, 1.0, max_iter=5),
            "fixed_point: .* within 5",
        ),
        (lambda: implicit.root(lambda x: x * x + 1, 0.7), "root: .* to converge within 100"),
        (lambda: implicit.argmin(lambda x: -x * x, 1.0, max_iter=3), "argmin: .* to converge"),
        (lambda: implicit.odeint(lambda y, t: y * y, 1.0, [0.0, 2.0]), "odeint: steps above"),
    ],
    ids=["fixed_point", "root", "argmin", "odeint"],
)
def test_what_does_not_converge_raises(call, message):
    with pytest.raises(pb.errors.ConvergenceError, match=message):
        call()
    assert pb.is_grad_enabled()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: implicit.root(3, 1.0), "root: a function required, got int"),
        (lambda: implicit.root(lambda x: x, 1), "root: floating-point numbers required in x0"),
        (lambda: implicit.odeint(lambda y, t: y, 1, [0.0, 1.0]), "odeint: floating-point numbers"),
        (lambda: implicit.odeint(3, 1.0, [0.0, 1.0]), "odeint: a function required, got int"),
        (lambda: implicit.odeint(lambda y, t: y, 1.0, [0.0, 0.0]), "odeint: increasing or decreas"),
        (
            lambda: implicit.fixed_point(lambda x: x[:1], np.ones(2)),
            r"fixed_point: .* shape \(2,\)",
        ),
        (lambda: implicit.root(abs, 1.0, method="hybr"), "got method.*pb.optimize.root has SciPy"),
        (
            lambda: implicit.argmin(abs, 1.0, args=(1.0,)),
            r"got args.*argmin\(f, x0, a\); pb.*minim",
        ),
        (lambda: implicit.fixed_point(abs, 1.0, k=1.0), r"k\n.*parameters .*: fixed_point\(f, x0"),
        (
            lambda: implicit.root(lambda x, a: np.asarray(x.detach()) ** 2 - a, 1.0, 2.0),
            r"result of .*lambda.* that depends on x required, .*detach\(\)",
        ),
        (lambda: implicit.interp(1.0, [0.0, 1.0], [1.0]), "interp: xp and fp of one axis and one"),
    ],
)
def test_wrong_arguments_are_refused(call, message):
    with pytest.raises(pb.AutogradError, match=f"(?s){message}"):
        call()


# -- vmap ------------------------------------------------------------------------------------------
TIMES = np.array([0.0, 1.0])
# With the batch as a parameter, and closed over.
BATCHED = {
    "root": (
        lambda a: implicit.root(lambda x, a: x**3 - a, 1.0, a),
        lambda a: implicit.root(lambda x: x**3 - a, 1.0),
    ),
    "fixed_point": (
        lambda a: implicit.fixed_point(lambda x, a: (x + a / x) / 2, 1.0, a),
        lambda a: implicit.fixed_point(lambda x: (x + a / x) / 2, 1.0),
    ),
    "argmin": (
        lambda a: implicit.argmin(lambda x, a: (x - a) ** 2 + x**4, 0.0, a),
        lambda a: implicit.argmin(lambda x: (x - a) ** 2 + x**4, 0.0),
    ),
    "odeint": (
        lambda a: implicit.odeint(lambda y, t, a: -a * y, 1.0, TIMES, a)[-1],
        lambda a: implicit.odeint(lambda y, t: -a * y, 1.0, TIMES)[-1],
    ),
}


@pytest.mark.parametrize("name", list(BATCHED))
def test_vmap_solves_for_each_sample_of_a_parameter(name):
    solved, _ = BATCHED[name]
    a = pb.tensor(np.array([1.0, 2.0, 3.0]), requires_grad=True)
    found = pb.vmap(solved)(a)
    each = pb.stack([solved(a[i]) for i in range(3)])
    np.testing.assert_allclose(found.detach(), each.detach(), rtol=1e-12)
    grads = [pb.autograd.grad(x.sum(), a)[0].numpy() for x in (found, each)]
    np.testing.assert_allclose(*grads, rtol=1e-12)


@pytest.mark.parametrize("name", list(BATCHED))
@pytest.mark.parametrize("differentiated", [False, True])
def test_what_differs_between_samples_must_be_a_parameter(name, differentiated):
    _, solved = BATCHED[name]
    solved = pb.grad(solved) if differentiated else solved
    with pytest.raises(pb.errors.BatchedValueError) as caught:
        pb.vmap(solved)(np.array([1.0, 2.0]))
    assert f"{name}: what differs between the samples of vmap required among" in str(caught.value)
    assert f"hand it over as theta: {name}(f, ..., a)" in str(caught.value)


def test_a_batch_that_is_closed_over_beside_one_that_is_a_parameter_is_refused_too():
    def solved(a, b):
        return implicit.root(lambda x, a: x**3 - a * b, 1.0, a)

    with pytest.raises(pb.errors.BatchedValueError, match="hand it over as theta"):
        pb.vmap(solved)(np.array([1.0, 2.0]), np.array([3.0, 4.0]))


def test_a_linear_system_may_close_over_a_batch():
    a = np.array([1.0, 2.0, 4.0])
    found = pb.vmap(lambda a: implicit.linear_solve(lambda x: a * x, 1.0))(a)
    np.testing.assert_allclose(found, 1 / a)


def test_a_hook_on_what_an_equation_closes_over_runs_once_in_backward():
    seen, w = [], pb.tensor([4.0], requires_grad=True)

    def hook(g):
        seen.append(g.item())
        return g * 10

    w.register_hook(hook)
    implicit.root(lambda x: x * x - w, pb.tensor([1.0])).backward()
    np.testing.assert_allclose([*seen, w.grad.item()], [0.25, 2.5], rtol=1e-6)
