"""Defining an operation: three ways, one machinery; what the callable carries; what is checked."""

import functools
import inspect
import typing

import numpy as np
import pytest

import pullback as pb
from pullback.errors import ArgumentTypeError, MissingRuleError


def leaf(data, dtype=pb.float64):
    return pb.tensor(data, dtype=dtype, requires_grad=True)


# -- the same operation, written in every way ------------------------------------------------------
def forward(ctx, input: pb.Tensor, weight: pb.Tensor, bias: pb.Tensor | None = None) -> pb.Tensor:
    """Return input @ weight.T + bias."""
    ctx.save_for_backward(input=input, weight=weight)
    output = input.mm(weight.t())
    return output if bias is None else output + bias.unsqueeze(0).expand_as(output)


def backward(ctx, grad_output):
    s = ctx.saved_variables
    return {
        "input": grad_output.mm(s.weight),
        "weight": grad_output.t().mm(s.input),
        "bias": grad_output.sum(dim=0),
    }


two_functions = pb.autograd_function(forward, backward, name="linear")


@pb.autograd_function
def linear(ctx, input: pb.Tensor, weight: pb.Tensor, bias: pb.Tensor | None = None) -> pb.Tensor:
    """Return input @ weight.T + bias."""
    return forward(ctx, input, weight, bias)


@linear.backward
def _(ctx, grad_output):
    return backward(ctx, grad_output)


class Linear(pb.Function):
    """Return input @ weight.T + bias."""

    @staticmethod
    def forward(
        ctx, input: pb.Tensor, weight: pb.Tensor, bias: pb.Tensor | None = None
    ) -> pb.Tensor:
        """Return input @ weight.T + bias."""
        return forward(ctx, input, weight, bias)

    @staticmethod
    def backward(ctx, grad_output):
        return backward(ctx, grad_output)


class SplitLinear(pb.Function):
    @staticmethod
    def forward(input, weight, bias=None):
        output = input.mm(weight.t())
        return output if bias is None else output + bias.unsqueeze(0).expand_as(output)

    @staticmethod
    def setup_context(ctx, inputs, output):
        input, weight, _ = inputs
        ctx.save_for_backward(input=input, weight=weight)

    @staticmethod
    def backward(ctx, grad_output):
        return backward(ctx, grad_output)


class VjpLinear(pb.Function):
    forward = staticmethod(forward)
    vjp = staticmethod(backward)


class PositionalLinear(pb.Function):
    @staticmethod
    def forward(ctx, input, weight, bias=None):
        return forward(ctx, input, weight, bias)

    @staticmethod
    def backward(ctx, grad_output):
        g = backward(ctx, grad_output)
        return g["input"], g["weight"], g["bias"] if ctx.needs_input_grad[2] else None


STYLES = {
    "two functions": two_functions,
    "decorated": linear,
    "class, apply": Linear.apply,
    "class, called": Linear(),
    "class, set up": SplitLinear.apply,
    "class, vjp": VjpLinear.apply,
    "class, by position": PositionalLinear.apply,
}
every_style = pytest.mark.parametrize("op", STYLES.values(), ids=STYLES.keys())


@pytest.mark.case("F01")
@every_style
def test_every_style_gives_the_same_value_and_gradients(op):
    x, w, b = leaf([[1.0, 2.0], [3.0, 4.0]]), leaf([[2.0, 3.0]]), leaf([10.0])
    y = op(x, w, b)
    assert y.tolist() == [[18.0], [28.0]]
    y.backward(pb.tensor([[1.0], [2.0]], dtype=pb.float64))
    assert x.grad.tolist() == [[2.0, 3.0], [4.0, 6.0]]
    assert w.grad.tolist() == [[7.0, 10.0]]
    assert b.grad.tolist() == [3.0]


@pytest.mark.case("N03")
@every_style
def test_every_style_leaves_out_an_absent_argument(op):
    x, w = pb.ones(2, 2, dtype=pb.float64), leaf([[2.0, 3.0]])
    y = op(x, w)
    (y * y).sum().backward()
    assert y.tolist() == [[5.0], [5.0]]
    assert w.grad.tolist() == [[20.0, 20.0]]
    assert x.grad is None


@every_style
def test_every_style_takes_keywords_in_any_order(op):
    w = leaf([[2.0, 3.0]])
    y = op(bias=None, weight=w, input=pb.ones(1, 2, dtype=pb.float64))
    y.sum().backward()
    assert w.grad.tolist() == [[1.0, 1.0]]


@pytest.mark.case("F01")
@every_style
def test_every_style_differentiates_twice(op):
    x, w = leaf([[1.0, 2.0]]), leaf([[2.0, 3.0]])
    y = op(x, w)
    (gx,) = pb.autograd.grad((y * y).sum(), x, create_graph=True)  # 2 (x w) w
    assert gx.tolist() == [[32.0, 48.0]]
    gxx, gxw = pb.autograd.grad(gx.sum(), (x, w))
    assert gxx.tolist() == [[20.0, 30.0]]
    assert gxw.tolist() == [[26.0, 36.0]]


@every_style
def test_every_style_is_one_node_in_the_graph(op):
    x, w = leaf([[1.0, 2.0]]), leaf([[2.0, 3.0]])
    node = op(x, w).grad_fn
    edges = [None if n is None else n.name() for n, _ in node.next_functions]
    assert edges == ["AccumulateGrad", "AccumulateGrad", None]
    assert node.next_functions[0][0].variable is x


@every_style
def test_every_style_raises_pythons_own_error_for_a_wrong_call(op):
    x = leaf([[1.0, 2.0]])
    with pytest.raises(TypeError, match="weight") as missing:
        op(x)
    with pytest.raises(TypeError, match=r"too many positional arguments|takes") as too_many:
        op(x, x, x, x)
    with pytest.raises(TypeError, match="waight") as unknown:
        op(x, x, waight=x)
    with pytest.raises(TypeError, match="input") as twice:
        op(x, x, input=x)
    for info in (missing, too_many, unknown, twice):
        assert info.type is TypeError


# -- what the callable carries ---------------------------------------------------------------------
@pytest.mark.parametrize("op", [two_functions, linear], ids=["two functions", "decorated"])
def test_the_callable_carries_documentation_hints_and_signature_of_forward(op):
    assert op.__doc__ == "Return input @ weight.T + bias."
    assert list(inspect.signature(op).parameters) == ["input", "weight", "bias"]
    assert inspect.signature(op).parameters["bias"].default is None
    hints = typing.get_type_hints(op)
    assert hints["weight"] is pb.Tensor
    assert hints["return"] is pb.Tensor
    assert "ctx" not in hints
    assert op.__module__ == __name__


def test_the_callable_carries_the_name_of_forward():
    assert linear.__name__ == "linear"
    assert linear.__qualname__ == "linear"
    assert "linear" in repr(linear)
    assert pb.autograd_function(forward, backward).__name__ == "forward"
    assert two_functions.__name__ == "linear"


@pytest.mark.parametrize("apply", [Linear.apply, Linear()], ids=["apply", "instance"])
def test_a_class_shows_the_signature_of_its_forward(apply):
    assert list(inspect.signature(apply).parameters) == ["input", "weight", "bias"]


def test_the_signature_shows_every_kind_of_parameter():
    @pb.autograd_function
    def f(ctx, a, /, b, *rest, c=3, d, **others):
        return a

    assert str(inspect.signature(f)) == "(a, /, b, *rest, c=3, d, **others)"


def test_ctx_may_have_any_name():
    @pb.autograd_function
    def f(self, ctx):
        return ctx * 2.0

    @f.backward
    def _(self, grad_output):
        return {"ctx": grad_output * 2.0}

    x = leaf(1.0)
    f(ctx=x).backward()
    assert x.grad.item() == 2.0
    assert list(inspect.signature(f).parameters) == ["ctx"]


@pytest.mark.case("F19")
@pytest.mark.parametrize(
    ("op", "name"),
    [
        (two_functions, "linearBackward"),
        (linear, "linearBackward"),
        (pb.autograd_function(forward, backward), "forwardBackward"),
        (Linear.apply, "LinearBackward"),
        (SplitLinear.apply, "SplitLinearBackward"),
    ],
    ids=["named", "decorated", "two functions", "class", "split class"],
)
def test_the_node_is_named_after_the_operation(op, name):
    y = op(leaf([[1.0, 2.0]]), leaf([[2.0, 3.0]]))
    assert y.grad_fn.name() == name
    assert f"grad_fn=<{name}>" in repr(y)


def test_a_lambda_a_partial_and_a_callable_object_can_be_forward():
    class Scale:
        """Multiply by a factor."""

        def __init__(self, factor):
            self.factor = factor

        def __call__(self, ctx, x):
            return x * self.factor

    def powered(n, ctx, x):
        return x**n

    def rule(ctx, grad_output):
        return {"x": grad_output * 7.0}

    x = leaf(2.0)
    values = []
    for function in (lambda ctx, x: x * 3.0, Scale(5.0), functools.partial(powered, 2)):
        op = pb.autograd_function(function, rule)
        y = op(x)
        y.backward()
        values.append(y.item())
        assert y.grad_fn.name().endswith("Backward")
    assert values == [6.0, 10.0, 4.0]
    assert x.grad.item() == 21.0


def test_bound_methods_can_be_forward_and_backward():
    class Model:
        def __init__(self, k):
            self.k = k
            self.op = pb.autograd_function(self.forward, self.backward)

        def forward(self, ctx, x):
            return x * self.k

        def backward(self, ctx, grad_output):
            return {"x": grad_output * self.k}

    x = leaf(2.0)
    Model(4.0).op(x).backward()
    assert x.grad.item() == 4.0


def test_a_subclass_inherits_the_rule_and_has_its_own_name():
    class Doubled(Linear):
        @staticmethod
        def backward(ctx, grad_output):
            return {k: v * 2.0 for k, v in backward(ctx, grad_output).items()}

    x, w = leaf([[1.0, 2.0]]), leaf([[2.0, 3.0]])
    y = Doubled.apply(x, w)
    y.sum().backward()
    assert y.grad_fn.name() == "DoubledBackward"
    assert x.grad.tolist() == [[4.0, 6.0]]
    Linear.apply(x, w).sum().backward()
    assert x.grad.tolist() == [[6.0, 9.0]]


def test_an_operation_can_be_used_in_forward_and_backward_of_another():
    @pb.autograd_function
    def square(ctx, x):
        ctx.save_for_backward(x=x)
        return x * x

    @square.backward
    def _(ctx, grad_output):
        return {"x": 2.0 * ctx.saved_variables.x * grad_output}

    @pb.autograd_function
    def fourth(ctx, x):
        ctx.save_for_backward(x=x)
        return square(square(x))

    @fourth.backward
    def _(ctx, grad_output):
        x = ctx.saved_variables.x
        return {"x": 4.0 * square(x) * x * grad_output}

    x = leaf(2.0)
    (first,) = pb.autograd.grad(fourth(x), x, create_graph=True)
    (second,) = pb.autograd.grad(first, x, create_graph=True)
    (third,) = pb.autograd.grad(second, x)
    assert [first.item(), second.item(), third.item()] == [32.0, 48.0, 48.0]


# -- what is checked when an operation is defined --------------------------------------------------
def test_forward_must_be_callable():
    with pytest.raises(ArgumentTypeError, match=r"autograd_function: forward .* callable, got int"):
        pb.autograd_function(3, backward)


def test_backward_must_be_callable():
    with pytest.raises(ArgumentTypeError, match=r"backward must be callable, got dict"):
        pb.autograd_function(forward, {"input": 1})
    with pytest.raises(ArgumentTypeError, match=r"backward must be callable, got NoneType"):
        pb.autograd_function(forward).backward(None)


@pytest.mark.parametrize(
    "function", [lambda: 1.0, lambda *, ctx: 1.0, lambda **ctx: 1.0], ids=["()", "(*)", "(**)"]
)
def test_forward_must_take_a_ctx(function):
    with pytest.raises(ArgumentTypeError, match="must take ctx as its first argument"):
        pb.autograd_function(function)


def test_forward_of_a_class_must_take_a_ctx():
    with pytest.raises(ArgumentTypeError, match="must take ctx as its first argument"):

        class NoCtx(pb.Function):
            @staticmethod
            def forward():
                return 1.0


def test_a_rule_must_take_a_ctx():
    with pytest.raises(ArgumentTypeError, match="must take ctx"):
        pb.autograd_function(forward, lambda: None)
    with pytest.raises(ArgumentTypeError, match="must take ctx"):
        pb.autograd_function(forward).backward(lambda: None)


def test_a_backward_without_gradients_is_refused():
    with pytest.raises(ArgumentTypeError, match=r"backward must take ctx and the gradients"):
        pb.autograd_function(lambda ctx, t: t, lambda ctx: None)


def test_a_function_without_a_signature_is_refused_when_defined():
    with pytest.raises(pb.AutogradError, match="with a signature"):
        pb.autograd_function(lambda ctx, x: x, max)


@pytest.mark.case("F11")
@pytest.mark.parametrize("style", ["function", "class"])
def test_without_a_rule_the_operation_runs_and_asking_for_its_gradient_names_it(style):
    def ruleless(ctx, x):
        return x * 2.0

    class Ruleless(pb.Function):
        forward = staticmethod(ruleless)

    op, name = (
        (pb.autograd_function(ruleless), "ruleless")
        if style == "function"
        else (Ruleless.apply, "Ruleless")
    )
    x = leaf(3.0)
    y = op(x)
    assert y.item() == 6.0
    assert y.requires_grad
    with pytest.raises(MissingRuleError, match=name):
        y.backward()
    assert x.grad is None


# -- float32, complex, empty -----------------------------------------------------------------------
@pytest.mark.parametrize("dtype", [pb.float16, pb.float32, pb.float64, pb.complex64, pb.complex128])
def test_results_and_gradients_keep_the_dtype(dtype):
    x = leaf([[1.0, 2.0]], dtype=dtype)
    y = linear(x, pb.ones(1, 2, dtype=dtype))
    assert y.dtype is dtype
    y.backward(pb.ones(1, 1, dtype=dtype))
    assert x.grad.dtype is dtype
    assert np.array_equal(x.grad.numpy(), np.ones((1, 2)))


@pytest.mark.parametrize("rows", [0, 1])
def test_empty_tensors_pass_through(rows):
    x, w = leaf(np.zeros((rows, 2))), leaf([[1.0, 2.0]])
    linear(x, w).sum().backward()
    assert x.grad.shape == (rows, 2)
    assert w.grad.tolist() == [[0.0, 0.0]]


def static(function):
    return staticmethod(function)


BACKWARD = static(lambda ctx, g: g * 2)
SETUP = static(lambda ctx, inputs, output: None)
NOT_STATIC = {
    "forward(self, ctx, x)": {"forward": lambda self, ctx, x: x * 2, "backward": BACKWARD},
    "backward(self, ctx, g)": {
        "forward": static(lambda ctx, x: x * 2),
        "backward": lambda self, ctx, g: g * 2,
    },
    "forward(self, x)": {"forward": lambda self, x: x * 2, "setup_context": SETUP},
    "forward(ctx, x)": {"forward": static(lambda ctx, x: x * 2), "setup_context": SETUP},
    "setup_context(self, ctx, inputs, output)": {
        "forward": static(lambda x: x * 2),
        "setup_context": lambda self, ctx, inputs, output: None,
    },
}


@pytest.mark.parametrize("method", NOT_STATIC)
def test_a_method_with_self_or_a_ctx_too_many_is_named(method):
    name = method.partition("(")[0]
    with pytest.raises(ArgumentTypeError) as caught:
        type("Doubled", (pb.Function,), NOT_STATIC[method])
    assert str(caught.value).startswith(f"Doubled: {name} must be a static method {name}(")
    assert f", got {method}.\nhint: write @staticmethod and def {name}(" in str(caught.value)


def test_a_method_of_a_class_that_plays_ctx_is_right():
    class Doubled(pb.Function):
        def forward(self, x):
            return x * 2

        def backward(self, g):
            return g * 2

    x = pb.tensor([1.0], requires_grad=True)
    Doubled.apply(x).backward()
    assert x.grad.tolist() == [2.0]
