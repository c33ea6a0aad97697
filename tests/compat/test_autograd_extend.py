"""`compat.autograd.extend`: primitives, and rules in HIPS autograd's words."""

import re

import numpy as onp
import pytest

import pullback.compat.autograd.numpy as np
from pullback.compat.autograd import deriv, extend, grad, hessian, jacobian, make_vjp
from pullback.compat.autograd.extend import (
    def_linear,
    defjvp,
    defjvp_argnum,
    defvjp,
    defvjp_argnum,
    defvjp_argnums,
    primitive,
    register_notrace,
)
from pullback.compat.autograd.misc import tracers
from pullback.compat.autograd.numpy import numpy_vjps
from pullback.compat.autograd.numpy.numpy_boxes import ArrayBox


def product():
    return primitive(lambda x, y, scale=1.0: x * y * scale)


def with_defvjp():
    fun = product()
    defvjp(
        fun,
        lambda ans, x, y, scale=1.0: lambda g: g * y * scale,
        lambda ans, x, y, scale=1.0: lambda g: g * x * scale,
    )
    return fun


def with_defvjp_argnum():
    fun = product()
    defvjp_argnum(
        fun, lambda argnum, ans, args, kwargs: lambda g: g * args[1 - argnum] * kwargs["scale"]
    )
    return fun


def with_defvjp_argnums():
    fun = product()
    defvjp_argnums(
        fun,
        lambda argnums, ans, args, kwargs: (
            lambda g: [g * args[1 - i] * kwargs["scale"] for i in argnums]
        ),
    )
    return fun


@pytest.mark.parametrize("build", [with_defvjp, with_defvjp_argnum, with_defvjp_argnums])
def test_defvjp_gives_the_gradient_to_any_order(build):
    fun = build()
    assert fun(2.0, 3.0) == 6.0
    assert grad(fun, (0, 1))(2.0, 3.0, scale=2.0) == (6.0, 4.0)
    assert hessian(lambda x: fun(x, x, scale=1.0))(2.0) == 2.0
    assert grad(lambda x: grad(lambda y: fun(x, y * y, scale=1.0))(3.0))(2.0) == 6.0


def test_rules_get_arrays_where_nothing_is_derived_again():
    seen = []
    fun = primitive(lambda x: x**2)
    defvjp(fun, lambda ans, x: lambda g: seen.extend(map(type, (ans, x, g))) or g * 2 * x)
    assert grad(lambda x: np.sum(fun(x)))(onp.ones(2)).tolist() == [2.0, 2.0]
    assert seen == [onp.ndarray] * 3


def test_a_primitive_in_complex_numbers_has_the_conjugate_convention():
    fun = primitive(lambda z: z * (1 + 2j))
    defvjp(fun, lambda ans, z: lambda g: g * (1 + 2j))
    assert grad(lambda z: np.real(fun(z)))(1 + 1j) == 1 + 2j
    assert make_vjp(fun)(1 + 1j)[0](1j) == 1j * (1 + 2j)


def test_defvjp_of_none_is_a_zero_gradient():
    fun = product()
    defvjp(fun, None, lambda ans, x, y: lambda g: g * x)
    assert grad(fun, (0, 1))(2.0, 3.0) == (0.0, 2.0)


def test_defvjp_argnums_names_the_arguments_that_have_a_rule():
    fun = product()
    defvjp(fun, lambda ans, x, y: lambda g: g * x, argnums=[1])
    assert grad(fun, 1)(2.0, 3.0) == 2.0
    with pytest.raises(NotImplementedError, match=r"^VJP of <lambda> wrt argnum 0 not defined$"):
        grad(fun)(2.0, 3.0)


def test_a_primitive_without_rules_refuses_derivatives():
    with pytest.raises(NotImplementedError, match=r"^VJP of <lambda> wrt argnums \[0\] not def"):
        grad(product())(2.0, 3.0)


def test_a_wrong_rule_is_named_by_its_line_and_its_parameter():
    @primitive
    def turned(angle, scale):
        return np.sin(angle) * scale

    rule = lambda ans, angle, scale: lambda g: np.sum(g)  # noqa: E731
    defvjp(turned, rule)
    place = f"{__file__}:{rule.__code__.co_firstlineno}"
    text = re.escape(f"turned ({place}): the gradient of 'angle' has the wrong shape")
    with pytest.raises(RuntimeError, match=text):
        grad(lambda x: np.sum(turned(x, 2.0)))(onp.ones(3))
    defvjp(turned, lambda ans, angle, scale: lambda g: g)
    assert grad(lambda x: np.sum(turned(x, 2.0)))(onp.ones(3)).tolist() == [1.0] * 3


def test_register_notrace_hides_what_is_traced():
    nearest = primitive(lambda x, y: np.round(x) * y)
    for mode in (extend.VJPNode, extend.JVPNode):
        register_notrace(mode, nearest)
    assert grad(lambda x: x * nearest(x, y=1.0))(2.2) == 2.0
    assert deriv(lambda x: x * nearest(x, 1.0))(2.2) == 2.0


@pytest.mark.parametrize(
    ("module", "name", "way"),
    [
        (extend, "SparseObject", "np.zeros"),
        (tracers, "full_graph", "pb.inspect.graph"),
        (numpy_vjps, "grad_np_mean", "make_vjp"),
    ],
)
def test_names_that_are_not_here_name_the_way(module, name, way):
    with pytest.raises(AttributeError, match=way):
        getattr(module, name)


def test_defjvp_gives_the_forward_derivative():
    fun = product()
    defjvp(fun, lambda g, ans, x, y: g * y, "same")
    assert deriv(fun, 0)(2.0, 3.0) == 3.0
    assert deriv(fun, 1)(2.0, 3.0) == 2.0
    assert deriv(lambda x: fun(x, x))(3.0) == 6.0
    defjvp(fun, None, "same")
    assert deriv(lambda x: fun(x, x))(3.0) == 3.0


def test_defjvp_argnum_and_def_linear():
    fun = product()
    defjvp_argnum(fun, lambda argnum, g, ans, args, kwargs: g * args[1 - argnum])
    assert deriv(lambda x: fun(x, x))(3.0) == 6.0
    twice = primitive(lambda x: x * 2)
    def_linear(twice)
    assert deriv(twice)(3.0) == 2.0


def test_a_primitive_may_take_and_return_containers():
    fun = primitive(lambda pair: (pair[0] * pair[1], pair[0]))
    defvjp(fun, lambda ans, pair: lambda g: (g[0] * pair[1] + g[1], g[0] * pair[0]))
    assert grad(lambda x: fun((x, 3.0 * x))[0] + fun((x, x))[1])(2.0) == 13.0


def test_a_primitive_may_be_a_method():
    class Scale:
        def __init__(self, factor):
            self.factor = factor

        @primitive
        def apply(self, x):
            return self.factor * x

    defvjp(Scale.apply, None, lambda ans, self, x: lambda g: g * self.factor)
    assert grad(Scale(3.0).apply)(2.0) == 3.0
    assert jacobian(Scale(3.0).apply)(onp.ones(2)).tolist() == [[3.0, 0.0], [0.0, 3.0]]


def test_the_deprecated_methods_give_rules_and_warn():
    fun = product()
    with pytest.warns(UserWarning, match="deprecated: use defvjp"):
        fun.defvjp(lambda g, ans, vs, gvs, x, y: g * y)
    with pytest.warns(UserWarning, match="deprecated: use defvjp"):
        fun.defgrad(lambda ans, x, y: lambda g: g * x, argnum=1)
    assert grad(fun, (0, 1))(2.0, 3.0) == (3.0, 2.0)
    with pytest.warns(UserWarning, match="deprecated"):
        fun.defvjp_is_zero([1])
    assert grad(fun, (0, 1))(2.0, 3.0) == (3.0, 0.0)


def test_a_program_takes_boxes_off_by_their_value():
    seen = []

    def cost(x):
        value = x
        while isinstance(value, ArrayBox):
            value = value._value
        seen.append(value)
        return x * x

    assert grad(cost)(3.0) == 6.0
    assert seen == [3.0]
    assert type(seen[0]) is not ArrayBox
