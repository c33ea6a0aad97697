"""What a user gets wrong with operations, ctx, tensors, hooks and modes: the rows of mistakes/.

`leaf` has three float32 numbers.
"""

import builtins
from pathlib import Path

import numpy as np
import pytest
from tests.mistakes import mistakes

import pullback as pb

ROWS = mistakes(Path(__file__).with_name("mistakes"))


@pytest.mark.parametrize(("used", "call", "kind", "words"), ROWS)
def test_a_mistake_is_refused(refused, used, call, kind, words):
    def mistake(leaf):
        names = {"pb": pb, "np": np, "leaf": leaf}
        exec(used, names)
        exec(call, names)

    refused(mistake, getattr(builtins, kind), *words)


# Wrong calls are Python's own TypeErrors ---------------------------------------------------------

WRONG_CALLS = {
    "missing argument": (lambda op, x: op(), "missing .* argument: 'x'"),
    "unknown keyword": (lambda op, x: op(x, bias=x), "unexpected keyword argument 'bias'"),
    "too many arguments": (lambda op, x: op(x, 1.0, 2.0), "positional argument"),
    "same argument twice": (lambda op, x: op(x, x=x), "multiple values for argument 'x'"),
}


@pytest.mark.parametrize("name", WRONG_CALLS)
def test_a_wrong_call_raises_the_type_error_of_python(name):
    def probe(ctx, x, factor=1.0):
        return x * factor

    call, words = WRONG_CALLS[name]
    leaf = pb.tensor([1.0], requires_grad=True)
    with pytest.raises(TypeError, match=words) as caught:
        call(pb.autograd_function(probe, lambda ctx, g: g), leaf)
    assert "probe" in str(caught.value)
    assert pb.is_grad_enabled()
    assert leaf.grad is None


@pytest.mark.case("F12")
@pytest.mark.parametrize("where", ["forward", "backward"])
def test_an_error_of_the_users_own_arrives_unchanged(where):
    class MineError(Exception):
        pass

    raised = MineError("from the middle of it")

    def probe(ctx, x):
        if where == "forward":
            raise raised
        return x * 2

    def backward(ctx, g):
        raise raised

    leaf = pb.tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(MineError) as caught:
        pb.autograd_function(probe, backward)(leaf).sum().backward()
    assert caught.value is raised
    assert caught.traceback[-1].name == ("probe" if where == "forward" else "backward")
    assert pb.is_grad_enabled()
    assert leaf.grad is None
    (leaf * 3).sum().backward()
    assert leaf.grad.tolist() == [3.0, 3.0]


# Mistakes that only warn -------------------------------------------------------------------------


@pytest.mark.case("MD4")
def test_marking_a_tensor_dirty_that_is_no_input_warns():
    def probe(ctx, x):
        y = x * 2
        ctx.mark_dirty(y)
        return y

    leaf = pb.tensor([1.0], requires_grad=True)
    with pytest.warns(UserWarning, match="probe") as caught:
        pb.autograd_function(probe, lambda ctx, g: {"x": 2 * g})(leaf).sum().backward()
    assert len(caught) == 1
    assert leaf.grad.tolist() == [2.0]


def test_the_names_offered_are_those_of_forward():
    def blend(ctx, first, /, second, *rest, weight, **options):
        return first * weight

    op = pb.autograd_function(blend, lambda ctx, g: {"wait": g})
    leaf = pb.tensor([1.0], requires_grad=True)
    with pytest.raises(pb.AutogradError) as caught:
        op(leaf, 1.0, 2.0, weight=leaf, extra=np.pi).sum().backward()
    message = str(caught.value)
    assert "blend" in message
    assert all(name in message for name in ("'wait'", "'weight'", "first", "second"))


@pytest.mark.case("RG2")
def test_reading_the_gradient_of_a_result_warns():
    leaf = pb.tensor([1.0], requires_grad=True)
    y = leaf * 2
    y.sum().backward()
    with pytest.warns(UserWarning, match="retain_grad") as caught:
        assert y.grad is None
    assert len(caught) == 1
    assert leaf.grad.tolist() == [2.0]


@pytest.mark.parametrize("mode", [pb.no_grad, pb.inference_mode, pb.enable_grad])
def test_a_mode_ends_with_the_error_that_leaves_it(mode):
    leaf = pb.tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(pb.AutogradError), mode():
        leaf.mm(leaf)
    assert pb.is_grad_enabled()
    assert (leaf * 2).requires_grad
