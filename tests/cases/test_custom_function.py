"""Custom functions: calling, returning and failing (cases F01 to F13)."""

import traceback
from collections.abc import Callable

import numpy as np
import pytest

import pullback as pb
from pullback import Tensor, autograd


def leaf(data: object) -> Tensor:
    return pb.tensor(data, dtype=pb.float64, requires_grad=True)


def const(data: object) -> Tensor:
    return pb.tensor(data, dtype=pb.float64)


class Affine(pb.Function):
    """x + k * y + x * y, positional gradients."""

    @staticmethod
    def forward(ctx, x, k, y):
        ctx.save_for_backward(x, y)
        ctx.k = k
        return x + k * y + x * y

    @staticmethod
    def backward(ctx, grad_output):
        x, y = ctx.saved_tensors
        return grad_output + grad_output * y, None, grad_output * ctx.k + grad_output * x


def affine_forward(ctx, x, k, y):
    ctx.save_for_backward(x=x, k=k, y=y)
    return x + k * y + x * y


def affine_backward(ctx, grad_output):
    saved = ctx.saved_variables
    return {
        "y": grad_output * saved.k + grad_output * saved.x,
        "x": grad_output + grad_output * saved.y,
    }


affine_pair = pb.autograd_function(affine_forward, affine_backward)


@pb.autograd_function
def affine_decorated(ctx, x, k, y):
    ctx.save_for_backward(x=x, y=y, k=k)
    return x + k * y + x * y


@affine_decorated.backward
def _(ctx, g):
    x, y, k = ctx.saved_variables
    return {"x": g + g * y, "k": None, "y": g * k + g * x}


AFFINE_STYLES = pytest.mark.parametrize(
    "f",
    [Affine.apply, Affine(), affine_pair, affine_decorated],
    ids=["class", "instance", "pair", "decorated"],
)


@AFFINE_STYLES
def test_F01_scalar_argument_between_tensors(f: Callable[..., Tensor]) -> None:
    x, y = leaf(3.0), leaf(5.0)
    out = f(x, 2, y)
    assert out.item() == 28.0
    out.backward()
    assert x.grad.item() == 6.0
    assert y.grad.item() == 5.0


@AFFINE_STYLES
def test_F01_gradients_are_themselves_differentiable(f: Callable[..., Tensor]) -> None:
    x, y = leaf(3.0), leaf(5.0)
    dx, dy = autograd.grad(f(x, 2, y), [x, y], create_graph=True)
    assert (dx.item(), dy.item()) == (6.0, 5.0)
    assert dx.requires_grad
    assert dy.requires_grad
    assert autograd.grad(dx, y, retain_graph=True)[0].item() == 1.0
    assert autograd.grad(dy, x)[0].item() == 1.0


@pytest.mark.parametrize(
    ("data", "weights", "expected"),
    [(4.0, 1.0, 2.0), ([4.0], [1.0], [2.0]), ([4.0, 5.0], [1.0, 10.0], [2.0, 20.0])],
)
def test_F02_returning_the_input_unchanged(data: object, weights: object, expected: object) -> None:
    class Twice(pb.Function):
        @staticmethod
        def forward(ctx, input):
            return input

        @staticmethod
        def backward(ctx, grad_output):
            return 2 * grad_output

    x = leaf(data)
    out = Twice.apply(x)
    assert out is not x
    assert out.grad_fn.name() == "TwiceBackward"
    assert out.grad_fn.next_functions[0][0].variable is x
    assert x.is_leaf
    assert x.grad_fn is None
    out.backward(const(weights))
    assert x.grad.shape == x.shape
    assert x.grad.tolist() == expected


@pytest.mark.parametrize("nothing", [None, {"x": None}, (None,)], ids=["bare", "named", "tuple"])
def test_F03_backward_returning_none_leaves_grad_none(nothing: object) -> None:
    f = pb.autograd_function(lambda ctx, x: x * 1, lambda ctx, g: nothing)
    x = leaf([2.0, 3.0])
    f(x).backward(const([1.0, 1.0]))
    assert x.grad is None
    f(x**2).backward(const([1.0, 1.0]))
    assert x.grad is None
    f(x).sum().backward()
    assert x.grad is None
    assert autograd.grad(f(x).sum(), x, allow_unused=True) == (None,)


class Mixed(pb.Function):
    @staticmethod
    def forward(ctx, t1, t2, scale, t3):
        t4 = (t1 + t2 * t3) * scale
        t5 = (t1 * t2 + t3) * scale
        ctx.scale = scale
        ctx.save_for_backward(t1, t2, t3)
        return scale, t4, None, True, t5, "bar", t1

    @staticmethod
    def backward(ctx, *grads):
        assert len(grads) == 7
        assert [i for i, g in enumerate(grads) if g is None] == [0, 2, 3, 5]
        scale = ctx.scale
        t1, t2, t3 = ctx.saved_tensors
        return (
            grads[1] * scale + grads[4] * t2 * scale + grads[6],
            grads[1] * t3 * scale + grads[4] * t1 * scale,
            None,
            grads[1] * t2 * scale + grads[4] * scale,
        )


def test_F04_non_tensor_arguments_and_results_pass_through() -> None:
    t1, t2, t3 = leaf([1.0, 2.0]), leaf([3.0, 4.0]), const([5.0, 6.0])
    out = Mixed.apply(t1, t2, 7, t3)
    assert isinstance(out, tuple)
    assert (out[0], out[2], out[3], out[5]) == (7, None, True, "bar")
    assert out[1].tolist() == [112.0, 182.0]
    assert out[4].tolist() == [56.0, 98.0]
    assert out[6].tolist() == [1.0, 2.0]
    assert [out[i].requires_grad for i in (1, 4, 6)] == [True, True, True]


def test_F04_seven_gradients_reach_backward_and_constants_get_none() -> None:
    t1, t2, t3 = leaf([1.0, 2.0]), leaf([3.0, 4.0]), const([5.0, 6.0])
    out = Mixed.apply(t1, t2, 7, t3)
    autograd.backward([out[1].sum(), out[4].sum(), out[6].sum()])
    assert t1.grad.tolist() == [29.0, 36.0]  # 7 + 7 * t2 + 1
    assert t2.grad.tolist() == [42.0, 56.0]  # 7 * t3 + 7 * t1
    assert t3.grad is None


def test_F05_only_scalars_gives_the_raw_values() -> None:
    class Sum(pb.Function):
        @staticmethod
        def forward(ctx, a, b):
            return a + b, "tag"

        @staticmethod
        def backward(ctx, *grads):
            return None, None

    out = Sum.apply(1, 2)
    assert out == (3, "tag")
    assert type(out[0]) is int


def test_F06_gradient_that_does_not_fit_is_an_error_naming_the_function() -> None:
    class Misfit(pb.Function):
        @staticmethod
        def forward(ctx, matrix):
            return matrix * 2

        @staticmethod
        def backward(ctx, grad_output):
            return pb.zeros(10, dtype=pb.float64)

    x = leaf(np.ones((5, 5)))
    with pytest.raises(pb.AutogradError, match="shape") as caught:
        Misfit.apply(x).sum().backward()
    text = str(caught.value)
    assert "Misfit" in text
    assert "matrix" in text
    assert "(10,)" in text
    assert "(5, 5)" in text


def test_F07_larger_gradient_raises_and_suggests_the_reduction() -> None:
    wide = pb.autograd_function(
        lambda ctx, bias: bias.expand(4, 3) * 1.0, lambda ctx, g: {"bias": g}
    )
    with pytest.raises(pb.AutogradError, match="sum over axis 0") as caught:
        wide(leaf([1.0, 2.0, 3.0])).sum().backward()
    text = str(caught.value)
    assert "(4, 3)" in text
    assert "(3,)" in text
    assert "bias" in text


def test_F07_other_floating_dtype_is_cast_and_integer_is_an_error() -> None:
    def ones_of(dtype: object) -> Callable[..., Tensor]:
        return pb.autograd_function(
            lambda ctx, x: x * 2, lambda ctx, g: {"x": pb.ones((2,), dtype=dtype)}
        )

    x = pb.tensor([1.0, 2.0], dtype=pb.float32, requires_grad=True)
    ones_of(pb.float64)(x).sum().backward()
    assert x.grad.dtype == pb.float32
    assert x.grad.tolist() == [1.0, 1.0]
    for wrong in (pb.int64, pb.bool):
        with pytest.raises(pb.AutogradError, match="dtype"):
            ones_of(wrong)(x).sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_F08_extra_trailing_nones_are_accepted() -> None:
    class Padded(pb.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output * 2, None, None

    x = leaf(1.0)
    Padded.apply(x).backward()
    assert x.grad.item() == 2.0


def test_F08_extra_gradient_is_an_error_with_both_counts() -> None:
    class TooMany(pb.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output, grad_output, grad_output

    with pytest.raises(pb.AutogradError, match=r"(?s)TooMany.*expected 1\b.*got 3\b"):
        TooMany.apply(leaf(1.0)).backward()


def test_F09_too_few_gradients_is_an_error_with_both_counts() -> None:
    class TooFew(pb.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x * y

        @staticmethod
        def backward(ctx, grad_output):
            return (grad_output,)

    with pytest.raises(pb.AutogradError, match=r"(?s)TooFew.*expected 2\b.*got 1\b"):
        TooFew.apply(leaf(1.0), leaf(2.0)).backward()


def scaled(returned: Callable[[Tensor], object]) -> Callable[..., Tensor]:
    class Scaled(pb.Function):
        @staticmethod
        def forward(ctx, x, k, c):
            return x * k * c

        @staticmethod
        def backward(ctx, grad_output):
            return returned(grad_output)

    return Scaled.apply


def test_F10_gradient_of_a_tensor_that_needs_none_is_dropped() -> None:
    x, c = leaf(1.0), const(3.0)
    scaled(lambda g: (g * 6, None, g * 2))(x, 2, c).backward()
    assert x.grad.item() == 6.0
    assert c.grad is None
    scaled(lambda g: {"c": g * 2, "x": g * 6})(x, 2, c).backward()
    assert x.grad.item() == 12.0
    assert c.grad is None


def test_F10_none_for_arguments_without_gradient_is_accepted() -> None:
    x = leaf(1.0)
    scaled(lambda g: (g * 6, None, None))(x, 2, const(3.0)).backward()
    assert x.grad.item() == 6.0


def test_F10_gradient_for_a_python_scalar_is_an_error() -> None:
    with pytest.raises(pb.AutogradError, match=r"(?s)Scaled.*\bk\b"):
        scaled(lambda g: (g, g, None))(leaf(1.0), 2, const(3.0)).backward()


def test_F11_missing_forward_is_an_error() -> None:
    def define_and_apply() -> None:
        class Hollow(pb.Function):
            @staticmethod
            def backward(ctx, grad_output):
                return grad_output

        Hollow.apply(leaf(1.0))

    with pytest.raises(pb.AutogradError, match="Hollow: you must implement the forward") as caught:
        define_and_apply()
    assert isinstance(caught.value, NotImplementedError)


class UserError(Exception):
    """The user's own."""


def test_F12_exception_in_backward_reaches_the_caller_and_the_engine_lives_on() -> None:
    def backward(ctx, grad_output):
        raise UserError("went back")

    broken = pb.autograd_function(lambda ctx, x: x * 1, backward)
    x = leaf(1.0)
    with pytest.raises(UserError) as caught:
        (broken(x) * 2).backward()
    assert str(caught.value) == "went back"
    assert 'raise UserError("went back")' in "".join(traceback.format_tb(caught.tb))
    assert pb.is_grad_enabled()
    with pytest.raises(UserError, match="went back"):
        autograd.grad(broken(x), x)
    (x * 5).backward()
    assert x.grad.item() == 5.0


def test_F13_setup_context_receives_inputs_and_output() -> None:
    class Reshape(pb.Function):
        @staticmethod
        def forward(x, shape, scale_forward, scale_backward):
            return x.reshape(shape) * scale_forward

        @staticmethod
        def setup_context(ctx, inputs, output):
            x, shape, scale_forward, scale_backward = inputs
            assert tuple(output.shape) == shape
            assert scale_forward == 7
            ctx.scale_backward = scale_backward
            ctx.x_shape = x.shape

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output.reshape(ctx.x_shape) * ctx.scale_backward, None, None, None

    x = leaf(np.arange(24.0))
    y = Reshape.apply(x, (3, 8), 7, 11)
    assert tuple(y.shape) == (3, 8)
    assert y.tolist() == (np.arange(24.0) * 7).reshape(3, 8).tolist()
    y.sum().backward()
    assert x.grad.tolist() == [11.0] * 24
