"""Derivatives under HIPS autograd's names: the numbers are those that HIPS autograd 1.9.1 gives."""

import warnings

import numpy as onp
import pytest

import pullback as pb
import pullback.compat.autograd as ag
import pullback.compat.autograd.numpy as np
from pullback.compat.autograd.builtins import isinstance as ag_isinstance
from pullback.compat.autograd.test_util import check_grads, combo_check


def same(value, expected):
    """Check a value, its type and its structure."""
    assert type(value) is type(expected)
    if isinstance(expected, (list, tuple)):
        assert len(value) == len(expected)
        for pair in zip(value, expected, strict=True):
            same(*pair)
    else:
        onp.testing.assert_allclose(value, expected, rtol=1e-12)


ONE, VECTOR = onp.float64, onp.array([1.0, 2.0])
CASES = {
    "grad": (lambda: ag.grad(lambda x: x**3)(2.0), ONE(12.0)),
    "grad, an array": (lambda: ag.grad(lambda x: np.sum(x**3))(VECTOR), onp.array([3.0, 12.0])),
    "grad, float32": (lambda: ag.grad(np.sin)(onp.float32(0)), onp.float32(1)),
    "grad, argnum": (lambda: ag.grad(lambda x, y: x * y, 1)(2.0, 3.0), ONE(2.0)),
    "grad, argnums": (lambda: ag.grad(lambda x, y: x * y, [1, 0])(2.0, 3.0), (ONE(2.0), ONE(3.0))),
    "grad, a list": (lambda: ag.grad(lambda x: x[0] * x[1])([2.0, 3.0]), [ONE(3.0), ONE(2.0)]),
    "grad of abs, complex": (
        lambda: ag.grad(lambda z: abs(z) ** 2)(1 + 2j),
        onp.complex128(2 - 4j),
    ),
    "grad of real, complex": (
        lambda: ag.grad(lambda z: np.real(z * z))(1 + 2j),
        onp.complex128(2 + 4j),
    ),
    "grad of one element": (lambda: ag.grad(lambda x: x.reshape(1, 1))(2.0), ONE(1.0)),
    "value_and_grad": (lambda: ag.value_and_grad(lambda x: x**2)(3.0), (ONE(9.0), ONE(6.0))),
    "grad_and_aux": (lambda: ag.grad_and_aux(lambda x: (x**2, x + 1))(3.0), (ONE(6.0), ONE(4.0))),
    "grad_named": (lambda: ag.grad_named(lambda x, y: x * y, "y")(2.0, 3.0), ONE(2.0)),
    "deriv": (lambda: ag.deriv(lambda x: x**3)(2.0), ONE(12.0)),
    "elementwise_grad": (lambda: ag.elementwise_grad(np.square)(VECTOR), onp.array([2.0, 4.0])),
    "jacobian": (lambda: ag.jacobian(lambda x: x**2)(VECTOR), onp.diag([2.0, 4.0])),
    "hessian": (lambda: ag.hessian(lambda x: np.sum(x**3))(VECTOR), onp.diag([6.0, 12.0])),
    "holomorphic_grad": (
        lambda: ag.holomorphic_grad(lambda z: z**2)(1 + 2j),
        onp.complex128(2 + 4j),
    ),
    "hessian_vector_product": (
        lambda: ag.hessian_vector_product(lambda x: np.sum(x**3))(VECTOR, onp.array([1.0, 10.0])),
        onp.array([6.0, 120.0]),
    ),
    "vector_jacobian_product": (
        lambda: ag.vector_jacobian_product(lambda x: x**2)(VECTOR, onp.array([1.0, 10.0])),
        onp.array([2.0, 40.0]),
    ),
    "make_jvp": (lambda: ag.make_jvp(lambda x: x**2)(3.0)(10.0), (ONE(9.0), ONE(60.0))),
    "make_hvp": (lambda: ag.make_hvp(lambda x: x**3)(2.0)[0](10.0), ONE(120.0)),
    "make_ggnvp": (
        lambda: ag.make_ggnvp(lambda x: x**2)(VECTOR)(onp.array([1.0, 1.0])),
        onp.array([4.0, 16.0]),
    ),
    "checkpoint": (lambda: ag.grad(ag.checkpoint(lambda x: x**3))(2.0), ONE(12.0)),
}


@pytest.mark.parametrize("name", CASES)
def test_derivatives_have_the_values_and_types_of_hips(name):
    compute, expected = CASES[name]
    same(compute(), expected)


def test_complex_gradients_are_the_conjugates_of_pullbacks():
    def cost(z):
        return np.real(z * z * (1 + 1j))

    assert ag.grad(cost)(1 + 2j) == onp.conj(pb.grad(cost)(1 + 2j)) == -2 + 6j
    vjp, value = ag.make_vjp(lambda z: z * (1 + 1j))(1 + 2j)
    assert (vjp(1 + 0j), value) == (1 + 1j, -1 + 3j)
    assert ag.grad(lambda z: abs(ag.grad(cost)(z)) ** 2)(1 + 2j) == 16 - 32j


@pytest.mark.parametrize(
    ("argument", "zero"), [(2.0, ONE(0.0)), (VECTOR, onp.zeros(2)), ([1.0, 2.0], [ONE(0), ONE(0)])]
)
def test_grad_of_a_constant_is_zero_with_a_warning(argument, zero):
    with pytest.warns(UserWarning, match=r"^Output seems independent of input\.$"):
        same(ag.grad(lambda x: 1.0)(argument), zero)


def test_a_used_argument_gives_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ag.grad(lambda x, y: x * 2)(1.0, 2.0)
        ag.make_jvp(np.sin)(1.0)(1.0)


@pytest.mark.parametrize(
    ("fun", "x"),
    [
        (lambda x: x * 1j, 1.0),
        (lambda x: x, VECTOR),
        (lambda x: x * 2, 2),
        (lambda x: np.allclose(x, x), VECTOR),
    ],
)
@pytest.mark.filterwarnings("ignore:Output seems independent")
def test_grad_refuses_complex_and_several_results_and_integers(fun, x):
    with pytest.raises((TypeError, pb.AutogradError)):
        ag.grad(fun)(x)


@pytest.mark.parametrize("transform", [ag.grad, ag.value_and_grad, ag.grad_named])
def test_several_results_are_a_type_error_as_in_hips(transform):
    with pytest.raises(TypeError, match=r"a scalar result .* required") as caught:
        transform(lambda x: x)(VECTOR)
    assert isinstance(caught.value, pb.errors.GraphError)


def test_multigrad_dict_gives_a_dict_by_name():
    gradients = ag.multigrad_dict(lambda x, y=1.0, *more, **named: x * y * named["z"])
    assert gradients(2.0, z=5.0) == {"x": 5.0, "y": 10.0, "more": (), "named": {"z": 2.0}}


def test_holomorphic_grad_warns_of_real_numbers():
    with pytest.warns(UserWarning, match="Input to holomorphic_grad is not complex"):
        ag.holomorphic_grad(lambda z: z**2)(1.0)


def test_isinstance_looks_at_what_is_traced():
    seen = []
    ag.grad(lambda x: seen.append(ag_isinstance(x, onp.ndarray)) or np.sum(x))(VECTOR)
    assert seen == [True]
    assert ag_isinstance([], (list, tuple))


def test_check_grads_and_combo_check_find_a_wrong_rule():
    wrong = ag.primitive(lambda x: x**2)
    ag.extend.defvjp(wrong, lambda ans, x: lambda g: g * x)
    with pytest.raises(AssertionError, match=r"\(VJP\) check of .* failed"):
        check_grads(wrong, modes=["rev"])(1.0)
    combo_check(lambda x, y, power: (x * y) ** power, [0, 1])([1.0, 2.0], [0.5], power=[1, 2])


def test_the_package_is_loaded_at_first_use():
    assert pb.compat.autograd is ag
    assert ag.numpy is np
