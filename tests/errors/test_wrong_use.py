"""What a user gets wrong when writing an operation, and what pullback says about it.

Every row: what is done wrong with a leaf of three float32 numbers, the built-in error that it must
also be, and the words that the message must hold: operation, argument, hint.
"""

import array_api_strict
import numpy as np
import pytest

import pullback as pb


def scale(backward):
    """Call an operation `scale(input, weight, factor)` with this rule, and run it backward."""

    def scale(ctx, input, weight, factor=1.0):
        return input * weight * factor

    def mistake(leaf):
        weight = pb.tensor([2.0, 2.0, 2.0], requires_grad=True)
        pb.autograd_function(scale, backward)(leaf, weight, 0.5).sum().backward()

    return mistake


def halve(returned):
    """Call an operation `halve(input)` whose rule returns `returned(grad_output)`."""

    def halve(ctx, input):
        return input / 2

    def mistake(leaf):
        pb.autograd_function(halve, lambda ctx, g: returned(g))(leaf).sum().backward()

    return mistake


def shift(input_shape, bias_shape):
    """Call `shift(input, bias)`, whose rule forgets that the bias was broadcast."""

    def shift(ctx, input, bias):
        return input + bias

    def mistake(leaf):
        bias = pb.zeros(bias_shape, requires_grad=True)
        op = pb.autograd_function(shift, lambda ctx, g: {"bias": g})
        op(pb.ones(input_shape), bias).sum().backward()

    return mistake


def apply_class(**members):
    """Use a class `Widget` with these members, forward and backward."""

    def mistake(leaf):
        statics = {name: staticmethod(member) for name, member in members.items()}
        type("Widget", (pb.Function,), statics).apply(leaf).sum().backward()

    return mistake


def identity(ctx, g):
    return g


# What backward returns ---------------------------------------------------------------------------

RETURNED = {
    "misspelt name": (
        scale(lambda ctx, g: {"input": g, "wieght": g}),
        RuntimeError,
        ("scale", "'wieght'", "did you mean", "'weight'"),
    ),
    "unknown name": (
        scale(lambda ctx, g: {"input": g, "weight": g, "zzz": g}),
        RuntimeError,
        ("scale", "'zzz'", "input", "weight", "factor"),
    ),
    "name left out": (
        scale(lambda ctx, g: {"input": g}),
        RuntimeError,
        ("scale", "weight", "None"),
    ),
    "empty mapping": (scale(lambda ctx, g: {}), RuntimeError, ("scale", "input", "weight")),
    "name that is no string": (halve(lambda g: {0: g}), RuntimeError, ("halve", "0", "input")),
    "too few by position": (
        scale(lambda ctx, g: (g,)),
        RuntimeError,
        ("scale", "expected 3", "got 1", "weight"),
    ),
    "too many by position": (
        scale(lambda ctx, g: (g, g, None, g)),
        RuntimeError,
        ("scale", "expected 3", "got 4"),
    ),
    "one tensor for two arguments": (
        scale(lambda ctx, g: g),
        RuntimeError,
        ("scale", "input", "weight"),
    ),
    "forgotten return": (scale(lambda ctx, g: None), RuntimeError, ("scale", "None", "weight")),
    "gradient of a number by position": (
        scale(lambda ctx, g: (g, g, g.sum())),
        RuntimeError,
        ("scale", "factor", "None"),
    ),
    "wrong shape": (
        halve(lambda g: {"input": pb.zeros(10)}),
        RuntimeError,
        ("halve", "input", "(3,)", "(10,)"),
    ),
    "wrong shape by position": (
        halve(lambda g: (pb.zeros(2, 2),)),
        RuntimeError,
        ("(2, 2)", "(3,)"),
    ),
    "reduced too far": (halve(lambda g: {"input": g.sum()}), RuntimeError, ("halve", "()", "(3,)")),
    "bias not summed": (
        shift((4, 3), (3,)),
        RuntimeError,
        ("shift", "bias", "(4, 3)", "(3,)", "sum over axis 0"),
    ),
    "column not summed": (
        shift((4, 3), (4, 1)),
        RuntimeError,
        ("shift", "bias", "(4, 3)", "(4, 1)", "sum over axis 1"),
    ),
    "integer gradient": (
        halve(lambda g: {"input": pb.tensor([1, 1, 1])}),
        RuntimeError,
        ("halve", "input", "int64", "float32"),
    ),
    "boolean gradient": (
        halve(lambda g: {"input": g > 0}),
        RuntimeError,
        ("halve", "input", "bool", "float32"),
    ),
    "complex gradient of a real input": (
        halve(lambda g: {"input": g * 1j}),
        RuntimeError,
        ("halve", "input", "complex64", "float32"),
    ),
    "gradient of another kind": (
        halve(lambda g: {"input": "half"}),
        RuntimeError,
        ("halve", "input", "str"),
    ),
    "list instead of a tensor": (
        halve(lambda g: {"input": [0.5, 0.5, 0.5]}),
        RuntimeError,
        ("halve", "input", "list"),
    ),
    "string": (halve(lambda g: "input"), RuntimeError, ("halve", "str")),
    "another array library": (
        halve(lambda g: {"input": array_api_strict.ones(3, dtype=array_api_strict.float32)}),
        RuntimeError,
        ("halve", "input", "array_api_strict", "numpy"),
    ),
    "tensor of another array library": (
        halve(lambda g: {"input": pb.asarray(array_api_strict.ones(3))}),
        RuntimeError,
        ("halve", "input", "array_api_strict", "numpy"),
    ),
}


# Defining an operation ---------------------------------------------------------------------------


def no_rule(leaf):
    @pb.autograd_function
    def brightness(ctx, image):
        return image.sum()

    brightness(leaf).backward()


DEFINED = {
    "no rule": (no_rule, RuntimeError, ("brightness", "backward")),
    "class without forward": (
        apply_class(backward=identity),
        NotImplementedError,
        ("Widget", "must implement the forward"),
    ),
    "class without backward": (
        apply_class(forward=lambda ctx, x: x * 2),
        NotImplementedError,
        ("Widget", "backward"),
    ),
    "class with backward and vjp": (
        apply_class(forward=lambda ctx, x: x * 2, backward=identity, vjp=identity),
        ValueError,
        ("Widget", "backward", "vjp"),
    ),
}


MISTAKES = RETURNED | DEFINED


@pytest.mark.case("F06", "F07", "F08", "F09", "F10", "F11", "F14")
@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_in_an_operation_is_refused(refused, name):
    mistake, builtin, parts = MISTAKES[name]
    refused(mistake, builtin, *parts)


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
        call(pb.autograd_function(probe, identity), leaf)
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
