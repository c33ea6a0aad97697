"""The argument `inplace` of activations, dropout and their layers."""

import numpy as np
import pytest

import pullback as pb
from pullback.errors import InplaceError

F = pb.nn.functional

# What takes `inplace` last, with the arguments before it.
CALLS = {
    "relu": (),
    "relu6": (),
    "leaky_relu": (0.1,),
    "elu": (0.5,),
    "celu": (0.5,),
    "selu": (),
    "silu": (),
    "mish": (),
    "hardsigmoid": (),
    "hardswish": (),
    "hardtanh": (-1.0, 1.5),
    "threshold": (0.5, 2.0),
    "rrelu": (0.25, 0.25, False),
    "alpha_dropout": (0.0, True),
    "dropout": (0.0, True),
}
VALUES = [[-2.0, -0.3, 0.4], [0.0, 1.0, 2.0]]


@pytest.mark.parametrize("name", CALLS)
def test_inplace_writes_to_the_input_with_the_gradient_of_the_function(name):
    function, settings = getattr(F, name), CALLS[name]
    gradients = []
    for inplace in (False, True):
        x = pb.tensor(VALUES, dtype=pb.float64, requires_grad=True)
        hidden = x * 1.5
        result = function(hidden, *settings, inplace)
        assert (result is hidden) == inplace or settings[:1] == (0.0,)
        assert np.allclose(result.detach(), function(x.detach() * 1.5, *settings))
        (result**2).sum().backward()
        gradients.append(x.grad.numpy())
    assert np.array_equal(*gradients)


def test_inplace_of_a_leaf_is_an_error_but_for_no_grad():
    x = pb.tensor(VALUES, requires_grad=True)
    with pytest.raises(InplaceError, match="leaf Variable that requires grad"):
        F.relu(x, inplace=True)
    with pb.no_grad():
        assert F.relu(x, inplace=True) is x
    assert x.tolist() == [[0.0, 0.0, np.float32(0.4)], [0.0, 1.0, 2.0]]


@pytest.mark.parametrize("n", [1, 2, 3])
def test_dropout_of_channels_in_place(n):
    x = pb.ones(1, 2, *(2,) * n)
    assert getattr(F, f"dropout{n}d")(x, 1.0, True, True) is x
    assert x.sum().item() == 0.0


def test_layers_take_inplace_last_and_show_it_where_it_is_set():
    x = pb.tensor(VALUES)
    layer = pb.nn.LeakyReLU(0.1, True)
    assert layer(x) is x
    assert repr(layer) == "LeakyReLU(negative_slope=0.1, inplace=True)"
    assert repr(pb.nn.ReLU()) == "ReLU()"
    assert pb.nn.Dropout2d(1.0, inplace=True)(y := pb.ones(1, 2, 2, 2)) is y


def test_a_layer_without_parameters_takes_its_inputs_by_name():
    x, target = pb.tensor(VALUES), pb.tensor([0, 1])
    by_name = pb.nn.CrossEntropyLoss()(input=x, target=target)
    assert by_name.item() == F.cross_entropy(x, target).item()
