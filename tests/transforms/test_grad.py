"""Gradients of functions: what goes in comes out, nested calls, nothing left behind."""

import copy
import functools
import inspect
import pickle
import re
import threading
from collections import namedtuple
from dataclasses import dataclass

import numpy as np
import pytest

import pullback as pb
from pullback import elementwise_grad, grad, jvp, value_and_grad


def cube(x):
    return np.sum(x**3)


def weighted(x, *, weight=1.0):
    """Return the weighted sum of squares."""
    return np.sum(weight * x**2), "aux"


# -- the kind and structure of what was given ------------------------------------------------------
@pytest.mark.parametrize(
    ("x", "expected"),
    [
        (2.0, 12.0),
        (np.float64(2), np.float64(12)),
        (np.float32(2), np.float32(12)),
        (np.array(2.0), np.array(12.0)),
        (np.array([1.0, 2.0], np.float32), np.array([3.0, 12.0], np.float32)),
    ],
)
def test_numbers_and_arrays_come_back_as_they_were(x, expected):
    g = grad(cube)(x)
    assert type(g) is type(expected)
    assert np.asarray(g).dtype == np.asarray(expected).dtype
    np.testing.assert_array_equal(g, expected)


def test_a_tensor_comes_back_as_a_tensor_without_history():
    x = pb.tensor([1.0, 2.0])
    g = grad(cube)(x)
    assert isinstance(g, pb.Tensor)
    assert (g.tolist(), g.dtype, g.requires_grad) == ([3.0, 12.0], pb.float32, False)
    assert not x.requires_grad
    assert x.grad is None


def test_an_array_of_another_library_comes_back_as_one():
    strict = pytest.importorskip("array_api_strict")
    x = strict.asarray([1.0, 2.0])
    value, g = value_and_grad(cube)(x)
    assert type(value) is type(g) is type(x)
    assert bool(strict.all(g == strict.asarray([3.0, 12.0])))


Layer = namedtuple("Layer", "weight bias")


@dataclass
class Model:
    layers: list
    scale: float


def test_nests_come_back_in_their_structure():
    def loss(m):
        first, second = m.layers
        return m.scale * np.sum(first.weight * 2.0) + second["b"] ** 2 + np.sum(first.bias)

    model = Model([Layer(np.array([1.0, 2.0]), pb.tensor([1.0])), {"b": pb.tensor(3.0)}], 4.0)
    g = grad(loss)(model)
    assert type(g) is Model
    assert g.scale == 6.0
    assert type(g.scale) is float
    assert type(g.layers[0]) is Layer
    np.testing.assert_array_equal(g.layers[0].weight, [8.0, 8.0])
    assert g.layers[0].bias.tolist() == [1.0]
    assert g.layers[1]["b"].item() == 6.0
    assert model.scale == 4.0
    np.testing.assert_array_equal(model.layers[0].weight, [1.0, 2.0])


def test_an_argument_that_does_not_matter_gets_zeros():
    assert grad(lambda p: p["a"] * 1.0)({"a": 2.0, "b": [np.ones(2), 5.0]})["b"][1] == 0.0
    g = grad(lambda x, y: x * 1.0, argnum=(0, 1))(1.0, np.ones((2, 3)))
    assert g[0] == 1.0
    np.testing.assert_array_equal(g[1], np.zeros((2, 3)))
    assert grad(lambda x: pb.tensor(3.0))(2.0) == 0.0
    assert grad(lambda x: pb.tensor(3.0))({}) == {}


def test_argnum_chooses_and_a_sequence_gives_a_tuple():
    def f(x, y, *, power=1):
        return x * y**power

    assert grad(f, 1)(2.0, 3.0, power=2) == 12.0
    assert grad(f, -1)(2.0, 3.0) == 2.0
    assert grad(f, (1, 0))(2.0, 3.0) == (2.0, 3.0)
    assert grad(f, [0])(2.0, 3.0) == (3.0,)


def test_argnum_takes_names():
    def f(x, y=1.0, *more, power=1.0, **rest):
        return x * y**power * rest.get("scale", 1.0)

    assert grad(f, "y")(2.0, 3.0, power=2.0) == 12.0
    assert grad(f, "y")(2.0, y=3.0) == 2.0
    assert grad(f, ("power", 0, "y"))(2.0, 1.0, power=3.0) == (0.0, 1.0, 6.0)
    assert grad(f, ["scale"])(2.0, 3.0, scale=1.0) == (6.0,)
    assert grad(grad(f, "y"), "y")(2.0, 3.0, power=2.0) == 4.0
    assert grad(np.multiply, 1)(2.0, 3.0) == 2.0


def test_argnums_is_argnum():
    for transform in (grad, elementwise_grad):
        assert transform(lambda x, y: x * y, argnums=1)(2.0, 3.0) == 2.0
        assert transform(lambda x, y: x * y, argnums=(0, 1))(2.0, 3.0) == (3.0, 2.0)
    assert value_and_grad(lambda x, y: x * y, argnums=1)(2.0, 3.0) == (6.0, 2.0)


def test_integers_and_none_beside_floats_stay_and_have_no_gradient():
    def f(p, n):
        assert type(p["axis"]) is int
        assert p["none"] is None
        picked = p["w"][p["index"]]
        return np.sum(picked, axis=p["axis"]) * n

    given = {"w": np.ones(3), "index": np.array([0, 0, 2]), "axis": 0, "none": None}
    g, by_n = grad(f, (0, 1))(given, 2)
    np.testing.assert_array_equal(g["w"], [4.0, 0.0, 2.0])
    assert (g["index"], g["axis"], g["none"], by_n) == (None, None, None, None)
    assert grad(f, 1)(given, 2.0) == 3.0


def test_the_value_is_of_the_kind_of_the_arguments():
    assert value_and_grad(cube)(2.0) == (8.0, 12.0)
    assert type(value_and_grad(cube)(2.0)[0]) is float
    value, _ = value_and_grad(cube)(np.array([2.0]))
    assert (type(value), value) == (np.float64, 8.0)
    value, _ = value_and_grad(np.square)(np.array([2.0]))
    assert (type(value), value.tolist()) == (np.ndarray, [4.0])
    value, _ = value_and_grad(cube)(pb.tensor([2.0]))
    assert isinstance(value, pb.Tensor)
    assert not value.requires_grad


def test_the_rest_of_the_result_is_handed_through_without_history():
    def f(x):
        return x * 2, {"twice": x * 2, "note": "n"}

    g, aux = grad(f, has_aux=True)(3.0)
    assert g == 2.0
    assert (aux["note"], aux["twice"].item(), aux["twice"].requires_grad) == ("n", 6.0, False)
    assert value_and_grad(f, has_aux=True)(3.0)[0][0] == 6.0


def test_a_function_keeps_its_name_and_documentation():
    def f(x):
        """Say so."""
        return x

    for transform in (grad, value_and_grad, elementwise_grad):
        assert (transform(f).__name__, transform(f).__doc__) == ("f", "Say so.")


def test_complex_gradients_follow_pytorchs_convention():
    assert grad(lambda z: np.abs(z) ** 2)(3 + 4j) == pytest.approx(6 + 8j)
    g = grad(lambda z: np.sum(np.real(z * z)))(np.array([1 + 2j]))
    np.testing.assert_array_equal(g, [2 - 4j])


# -- element by element ----------------------------------------------------------------------------
def test_elementwise_derivatives_of_tanh_are_the_formulas():
    x = np.linspace(-3, 3, 7)
    first = elementwise_grad(np.tanh)
    second = elementwise_grad(first)
    y = np.tanh(x)
    np.testing.assert_allclose(first(x), 1 - y**2, rtol=1e-12)
    np.testing.assert_allclose(second(x), -2 * y * (1 - y**2), rtol=1e-10)
    assert elementwise_grad(np.square)(3.0) == 6.0
    over_both = elementwise_grad(lambda a, b: a * b, (0, 1))(x, x + 1)
    np.testing.assert_array_equal(over_both, [x + 1, x])


# -- nested ----------------------------------------------------------------------------------------
def test_derivatives_of_derivatives():
    f = np.sin
    assert grad(grad(f))(0.5) == pytest.approx(-np.sin(0.5))
    assert grad(grad(grad(f)))(0.5) == pytest.approx(-np.cos(0.5))
    assert grad(grad(lambda x: 3 * x))(2.0) == 0.0


def in_reverse_and_forward_mode(f, order):
    """Return the derivative of an order, taken in reverse mode and in forward mode."""
    backward = forward = f
    for _ in range(order):
        backward = grad(backward)
        forward = _forward(forward)
    return backward, forward


def _forward(f):
    return lambda x: jvp(f, (x,), (1.0,))[1]


@pytest.mark.parametrize(("order", "wanted"), [(1, -1 / 4), (2, 2 / 8), (3, -6 / 16)])
def test_the_derivatives_of_a_reciprocal(order, wanted):
    for f in (lambda x: 1 / x, lambda x: x**-1.0, np.reciprocal, lambda x: x ** np.float64(-1)):
        for derivative in in_reverse_and_forward_mode(f, order):
            assert derivative(2.0) == pytest.approx(wanted, rel=1e-14)


@pytest.mark.parametrize(
    ("order", "wanted"), [(1, 80.0), (2, 160.0), (3, 240.0), (4, 240.0), (5, 120.0), (6, 0.0)]
)
def test_the_derivatives_of_a_fifth_power_up_to_the_sixth(order, wanted):
    for f in (lambda x: x**5, lambda x: x**5.0, lambda x: x**2 * x**3):
        for derivative in in_reverse_and_forward_mode(f, order):
            assert derivative(2.0) == pytest.approx(wanted, rel=1e-12, abs=1e-9)


@pytest.mark.parametrize(
    ("f", "expected"),
    [
        (lambda x: grad(lambda y: x * y)(x), 1.0),  # d/dx of x
        (lambda x: x * grad(lambda y: x + y)(1.0), 1.0),  # d/dx of x * 1
        (lambda x: grad(lambda y: x * y**2)(3.0), 6.0),
        (lambda x: x * grad(lambda y: x * y**2)(3.0), 24.0),
        (lambda x: grad(lambda y: y**3)(x) * x, 36.0),
        (lambda x: value_and_grad(lambda y: x * y)(x)[0], 4.0),
        (lambda x: grad(lambda y: (y * x, x * x), has_aux=True)(1.0)[1], 4.0),
    ],
)
def test_a_nested_gradient_is_not_confused_with_the_enclosing_one(f, expected):
    g = grad(f)(2.0)
    assert type(g) is float
    assert g == pytest.approx(expected)


def test_the_gradient_of_a_gradient_norm():
    def penalty(x):
        g = grad(cube)(x)
        return np.sum(g**2)  # sum of 9 x**4

    np.testing.assert_allclose(grad(penalty)(np.array([1.0, 2.0])), [36.0, 288.0])


# -- what others can still differentiate -----------------------------------------------------------
def test_a_tensor_in_the_closure_keeps_its_history():
    w = pb.tensor(2.0, requires_grad=True)
    value, g = value_and_grad(lambda x: w * x**2)(3.0)
    assert isinstance(g, pb.Tensor)
    assert (value.item(), g.item()) == (18.0, 12.0)
    (g + value).backward()
    assert w.grad.item() == 15.0


def test_an_argument_that_requires_grad_keeps_its_history_and_its_grad():
    x = pb.tensor([1.0, 2.0], requires_grad=True)
    g = grad(cube)(x)
    assert x.grad is None
    assert pb.autograd.grad(g.sum(), x)[0].tolist() == [6.0, 12.0]


def test_a_closure_that_only_the_rest_depends_on_keeps_its_history():
    w = pb.tensor(2.0, requires_grad=True)
    g, aux = grad(lambda x: (x * 2, w * 3), has_aux=True)(1.0)
    assert pb.autograd.grad(aux, w)[0].item() == 3.0
    assert g.item() == 2.0


def test_no_grad_around_gives_plain_gradients():
    w = pb.tensor(2.0, requires_grad=True)
    with pb.no_grad():
        g = grad(lambda x: w * x**2)(3.0)
        t = grad(cube)(pb.tensor([2.0], requires_grad=True))
    assert (type(g), g) == (float, 12.0)
    assert (t.tolist(), t.requires_grad) == ([12.0], False)
    with pb.inference_mode():
        assert grad(np.sin)(0.0) == 1.0
        assert not pb.is_grad_enabled()


def test_nothing_is_left_in_grad_and_the_graph_is_usable_afterwards():
    w = pb.tensor(2.0, requires_grad=True)
    y = w * 3
    with pb.no_grad():
        assert grad(lambda x: y * x)(1.0) == 6.0
    assert w.grad is None
    y.backward()
    assert w.grad.item() == 3.0


def test_an_argument_changed_in_place_gives_the_gradient_of_what_was_given():
    def f(x):
        x.mul_(2)
        return x.sum()

    x = pb.tensor([1.0], requires_grad=True)
    assert grad(lambda y: f(y.clone()))(x).tolist() == [2.0]
    assert grad(f)(x).tolist() == [2.0]
    assert x.tolist() == [1.0]
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        grad(f)(np.array([1.0]))


def add_in_place(start):
    start += 1
    return (start * start).sum()


def set_an_element(start):
    start[0] = 3.0
    return (start * start).sum()


def add_to_a_view(start):
    tail = start[1:]
    tail *= 2
    return (start * start).sum()


@pytest.mark.parametrize("transform", [grad, pb.jacobian, lambda f: lambda x: pb.vjp(f, x)])
@pytest.mark.parametrize(
    ("f", "way"),
    [
        (add_in_place, "write start = start + ... instead, or start = start.clone()"),
        (set_an_element, "start = start.clone() before the change"),
        (add_to_a_view, "start = start.clone() before the change"),
    ],
)
def test_an_array_changed_in_place_in_grad_names_the_argument_and_the_way(transform, f, way):
    text = rf"(?s)'start' is an argument that is differentiated: {re.escape(way)}"
    with pytest.raises(pb.errors.InplaceError, match=text):
        transform(f)(np.ones(3))


@pytest.mark.parametrize("f", [add_in_place, set_an_element, add_to_a_view])
def test_jvp_and_vmap_follow_an_argument_changed_in_place_and_grad_a_clone_of_it(f):
    x = np.array([1.0, 2.0, 3.0])
    out, tangent = pb.jvp(f, (x,), (np.ones(3),))
    assert pb.vmap(f)(np.stack([x, x])).tolist() == [out, out]
    assert grad(lambda x: f(x.clone()))(x).sum() == tangent
    step = 1e-6
    assert tangent == pytest.approx((f(x + step) - f(x - step)) / (2 * step), rel=1e-6)
    assert x.tolist() == [1.0, 2.0, 3.0]


def test_threads_do_not_see_each_other():
    found = {}

    def work(n):
        found[n] = grad(grad(lambda x: x**4 * n))(2.0)

    threads = [threading.Thread(target=work, args=(float(n),)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {float(n): 48.0 * n for n in range(8)}


def test_grad_in_a_thread_of_a_function_depends_on_what_that_is_differentiated_by():
    def f(x):
        found = []
        work = lambda: found.append(grad(lambda y: x * y**2)(3.0))  # noqa: E731
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        return found[0] * x

    assert grad(f)(2.0) == 24.0


def test_grad_of_a_vjp_function_of_the_same_level_depends_on_the_cotangent():
    _, vjp_fn = pb.vjp(lambda x: x**3, 2.0)
    slope = lambda v: vjp_fn(v)[0] * v  # noqa: E731
    assert grad(slope)(5.0) == 120.0
    assert grad(grad(slope))(5.0) == 24.0


def test_what_is_left_of_a_call_that_has_ended_is_a_constant():
    left = []
    grad(lambda x: left.append(x * x) or x)(3.0)
    assert grad(lambda x: x * left[0])(2.0) == 9.0
    assert grad(lambda x: grad(lambda y: y * y * left[0])(x))(2.0) == 18.0


def test_a_leaf_that_the_function_makes_stays_in_the_graph():
    made = []

    def f(x):
        made.append(pb.tensor(2.0, requires_grad=True))
        return made[0] * x**2

    grad(f)(3.0).backward()
    assert made[0].grad.item() == 6.0


def test_an_exception_leaves_the_mode_as_it_was():
    def fails(x):
        raise KeyError("mine")

    with pb.no_grad():
        with pytest.raises(KeyError, match="mine"):
            grad(fails)(1.0)
        assert not pb.is_grad_enabled()


# -- wrong use -------------------------------------------------------------------------------------
WRONG = [
    (lambda: grad(3.0), TypeError, "grad: a function required, got float"),
    (
        lambda: grad(cube)(2),
        TypeError,
        "grad: floating-point numbers required in argument 0, got int",
    ),
    (lambda: grad(cube)(True), TypeError, "got bool of dtype bool"),
    (lambda: grad(cube)(np.arange(3)), TypeError, "got ndarray of dtype int64"),
    (lambda: grad(cube)("x"), TypeError, "required in argument 0, got str"),
    (lambda: grad(cube)(None), TypeError, "required in argument 0, got NoneType"),
    (
        lambda: grad(cube)({"w": [1, Layer("relu", 3)]}),
        TypeError,
        r"required in argument 0\['w'\]\[1\]\.weight, got str",
    ),
    (
        lambda: grad(cube)(Model([1], 2)),
        TypeError,
        r"required in argument 0\.layers\[0\], got int",
    ),
    (lambda: grad(cube)([None, 1]), TypeError, r"required in argument 0\[0\], got NoneType"),
    (lambda: grad(cube, 1)(1.0), ValueError, "argument that argnum=1 names required, got 1 posit"),
    (lambda: grad(cube, 0)(x=1.0), ValueError, "argnum takes the name of an argument that is"),
    (lambda: grad(cube, 0.0)(1.0), TypeError, "argnum of positions or names required, got float"),
    (lambda: grad(cube, True)(1.0), TypeError, "argnum of positions or names required, got bool"),
    (
        lambda: grad(cube, "y")(1.0),
        ValueError,
        "grad: an argument named 'y' required, as argnum says, got a function of x",
    ),
    (lambda: grad(weighted, "wieght")(1.0), ValueError, "hint: did you mean 'weight'?"),
    (lambda: grad(weighted, "weight")(1.0), ValueError, "got none in this call"),
    (lambda: grad(dict, "x")(1.0), ValueError, "got a function without named parameters"),
    (lambda: grad(cube, 1, argnums=2), ValueError, "argnum or argnums required, which mean the"),
    (
        lambda: grad(np.square)(np.ones(3)),
        RuntimeError,
        r"scalar result of .*square.* required, got shape",
    ),
    (
        lambda: grad(lambda x: x * 1j)(1.0),
        TypeError,
        "real floating-point result .* got complex128",
    ),
    (lambda: grad(lambda x: np.argmax(x))(np.ones(3)), TypeError, "result .* required, got int64"),
    (
        lambda: grad(lambda x: x.detach().item())(1.0),
        TypeError,
        "grad: the result of .*lambda.* does not depend on argument 0",
    ),
    (
        lambda: value_and_grad(lambda x, y: np.zeros(()), (0, 1))(1.0, 2.0),
        TypeError,
        "value_and_grad: the result of .* does not depend on argument 0 and argument 1",
    ),
    (
        lambda: grad(cube, has_aux=True)(1.0),
        TypeError,
        r"a pair \(result, rest\) from cube required",
    ),
    (
        lambda: elementwise_grad(lambda x: x.detach().item())(1.0),
        TypeError,
        "elementwise_grad: the result of .*lambda.* does",
    ),
]


@pytest.mark.parametrize(("call", "kind", "message"), WRONG)
def test_wrong_use_is_said(call, kind, message):
    with pytest.raises(kind, match=message) as caught:
        call()
    assert isinstance(caught.value, pb.AutogradError)


def test_an_argument_named_twice_is_refused():
    with pytest.raises(pb.errors.ArgumentError, match="each argument once in argnum required"):
        pb.grad(lambda x, y: x * y, (0, -2))(2.0, 3.0)


# -- the function that is returned -----------------------------------------------------------------
MADE = {
    "grad": (lambda: grad(np.sin), "grad(sin)", (0.0,), 1.0),
    "nested": (lambda: grad(grad(np.sin)), "grad(grad(sin))", (0.0,), 0.0),
    "has_aux": (
        lambda: grad(weighted, argnum=(0,), has_aux=True),
        "grad(weighted, argnum=(0,), has_aux=True)",
        (3.0,),
        ((6.0,), "aux"),
    ),
    "value_and_grad": (lambda: value_and_grad(cube), "value_and_grad(cube)", (2.0,), (8.0, 12.0)),
    "elementwise_grad": (
        lambda: elementwise_grad(np.square),
        "elementwise_grad(square)",
        (3.0,),
        6.0,
    ),
    "partial": (
        lambda: grad(functools.partial(np.multiply, 2.0)),
        f"grad({functools.partial(np.multiply, 2.0)!r})",
        (3.0,),
        2.0,
    ),
}
COPIES = {
    "pickle": lambda f: pickle.loads(pickle.dumps(f)),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
}


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES.keys())
@pytest.mark.parametrize(("make", "shown", "args", "expected"), MADE.values(), ids=MADE.keys())
def test_the_function_is_pickled_copied_and_shown(make, shown, args, expected, copied):
    made = make()
    again = copied(made)
    assert again is not made
    assert made(*args) == again(*args) == expected
    assert repr(made) == repr(again) == shown


def test_the_function_has_name_documentation_and_signature_of_what_it_differentiates():
    for transform in (grad, value_and_grad, elementwise_grad):
        made = pickle.loads(pickle.dumps(transform(weighted)))
        assert made.__name__ == made.__qualname__ == "weighted"
        assert made.__doc__ == "Return the weighted sum of squares."
        assert made.__module__ == weighted.__module__
        assert str(inspect.signature(made)) == "(x, *, weight=1.0)"
        assert made.__wrapped__ is weighted


def test_in_the_body_of_a_class_it_is_a_method():
    class Model:
        power = 3

        @functools.partial(grad, argnum=1)
        def slope(self, x):
            return np.sum(x**self.power)

    assert Model().slope(2.0) == 12.0
    assert Model.slope(Model(), 2.0) == 12.0
