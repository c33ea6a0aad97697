"""A call of autograd_function with values of other libraries, or with no tensor at all."""

import numpy as np
import pytest

import pullback as pb
from pullback.errors import GraphError


@pb.autograd_function
def square(ctx, x, n=2):
    ctx.save_for_backward(x=x)
    return x * x


@square.backward
def _(ctx, grad_output):
    return {"x": 2.0 * grad_output * ctx.saved_variables.x}


def value_of(module, name, **attributes):
    """Return a value of a class derived from one that looks like another library's."""
    members = {"__module__": module, "__mul__": lambda self, other: self, **attributes}
    return type("Derived", (type(name, (), members),), {})()


CARRYING = {
    "torch": (value_of("torch", "Tensor", requires_grad=True), r"pb.asarray\(t.detach\(\)\)"),
    "jax": (value_of("jax._src.core", "Tracer"), "outside of jax.jit, jax.grad"),
    "autograd": (value_of("autograd.tracer", "Box"), "pb.grad differentiates it"),
    "mygrad": (value_of("mygrad.tensor_base", "Tensor", constant=False), r"pb.asarray\(t.data\)"),
}


@pytest.mark.parametrize("library", CARRYING)
def test_autograd_function_refuses_a_value_that_carries_a_gradient_elsewhere(library):
    value, way = CARRYING[library]
    tracked = pb.tensor([1.0], requires_grad=True)
    starred = pb.autograd_function(lambda ctx, *xs: xs[0] * 1.0, lambda ctx, *gs: gs)
    traversing = pb.autograd_function(
        lambda ctx, xs: xs[0] * 1.0, lambda ctx, g: {"xs": [g, None]}, traverse=True
    )
    calls = {
        "x": lambda: square(value),
        "n": lambda: square(tracked, n=value),
        "xs": lambda: starred(tracked, value),
    }
    for name, call in calls.items():
        with pytest.raises(GraphError, match=rf"`{name}.*` without a gradient.*\n.*{way}"):
            call()
    for call in (
        lambda: square(tracked, n=[1, {"k": value}]),
        lambda: traversing([tracked, value]),
    ):
        with pytest.raises(GraphError, match=way):
            call()
    with pb.no_grad(), pytest.raises(GraphError, match=way):
        square(value)
    assert square(tracked).requires_grad  # nothing is lost


def test_autograd_function_takes_foreign_values_without_a_gradient_as_they_are():
    for value in (value_of("mygrad.tensor_base", "Tensor", constant=True), value_of("x", "Box")):
        assert square(value) is value


@pytest.mark.parametrize("call", [pb.exp, lambda v: pb.mul(pb.tensor([1.0]), v), pb.tensor])
def test_operations_and_tensor_refuse_a_value_that_carries_a_gradient_elsewhere(call):
    value, way = CARRYING["torch"]
    with pytest.raises(GraphError, match=way):
        call(value)


# -- no tensor at all ------------------------------------------------------------------------------
def op_of(forward):
    return pb.autograd_function(lambda ctx, x, y=1.0: forward(x, y), lambda ctx, g: {"x": g})


@pytest.mark.parametrize(
    ("forward", "arguments", "text"),
    [
        (lambda x, y: x.pow(2), [np.ones(2)], "'numpy.ndarray' object has no attribute 'pow'"),
        (lambda x, y: x.exp(), [2.0], "'float' object has no attribute 'exp'"),
        (lambda x, y: (x * 2).exp(), [[1.0]], "'list' object has no attribute 'exp'"),
        (lambda x, y: x.sum().exp(), [np.ones(2)], "'numpy.float64' object has no attribute 'exp'"),
    ],
)
def test_an_attribute_error_of_forward_without_a_tensor_has_a_note_on_asarray(
    forward, arguments, text
):
    with pytest.raises(AttributeError) as raised:
        op_of(forward)(*arguments)
    assert type(raised.value) is AttributeError
    assert str(raised.value) == text
    (note,) = raised.value.__notes__
    assert f"tensors have `{raised.value.name}`" in note
    assert "pb.asarray(x)" in note


@pytest.mark.parametrize("given", [2.0, np.ones(2)], ids=["a number", "an array"])
def test_an_attribute_error_of_forward_names_the_argument_that_is_no_tensor(given):
    with pytest.raises(AttributeError) as raised:
        op_of(lambda x, y: pb.asarray(x.numpy() * y.numpy()))(pb.tensor([1.0]), given)
    (note,) = raised.value.__notes__
    assert f"got {type(given).__name__} as 'y'" in note
    assert "np.asarray(y) in forward takes both" in note


@pytest.mark.parametrize(
    ("forward", "arguments"),
    [
        (lambda x, y: x.no_such_thing(), [np.ones(2)]),
        (lambda x, y: np.exq(x), [np.ones(2)]),
        (lambda x, y: object().exp(), [np.ones(2)]),
    ],
    ids=["no attribute of tensors", "of a module", "of another object"],
)
def test_other_attribute_errors_of_forward_have_no_note(forward, arguments):
    with pytest.raises(AttributeError) as raised:
        op_of(forward)(*arguments)
    assert not hasattr(raised.value, "__notes__")
