"""`pb.nn.functional_call`: a module as a function of its parameters."""

import numpy as np
import pytest

import pullback as pb
from pullback.errors import ArgumentError, ArgumentTypeError

X = np.random.default_rng(0).normal(size=(5, 3))


def network():
    pb.manual_seed(0)
    return pb.nn.Sequential(pb.nn.Linear(3, 4), pb.nn.Tanh(), pb.nn.Linear(4, 2)).double()


def values_of(module):
    return {name: p.detach() for name, p in module.named_parameters()}


def loss_of(module):
    return lambda parameters, x: pb.nn.functional_call(module, parameters, x).square().sum()


def test_functional_call_has_the_gradients_that_backward_has():
    module = network()
    module(pb.asarray(X)).square().sum().backward()
    grads = pb.grad(loss_of(module))(values_of(module), X)
    for name, p in module.named_parameters():
        np.testing.assert_allclose(grads[name].numpy(), p.grad.numpy(), rtol=1e-12)


def test_functional_call_gives_the_gradients_of_each_sample():
    module = network()
    loss, parameters = loss_of(module), values_of(module)
    each = pb.vmap(pb.grad(loss), in_axes=(None, 0))(parameters, X)
    for k, x in enumerate(X):
        for name, g in pb.grad(loss)(parameters, x).items():
            np.testing.assert_allclose(each[name][k].numpy(), g.numpy(), rtol=1e-12)


@pytest.mark.parametrize("transform", [pb.hessian, pb.jacobian])
def test_functional_call_works_in_forward_mode_with_what_is_left_out(transform):
    module = network()
    bias = {"2.bias": values_of(module)["2.bias"]}
    result = transform(loss_of(module))(bias, X)["2.bias"]
    expected = 2 * module(X).detach().numpy().sum(0)
    if transform is pb.hessian:
        result, expected = result["2.bias"], 10.0 * np.eye(2)
    np.testing.assert_allclose(result.detach().numpy(), expected)


def test_functional_call_leaves_the_module_as_it_was_also_after_an_error():
    module = network()
    before = dict(module.named_parameters())
    with pytest.raises(pb.AutogradError):
        pb.nn.functional_call(module, values_of(module), pb.ones((2, 7), dtype=pb.float64))
    assert all(p is before[name] for name, p in module.named_parameters())
    assert list(module.state_dict()) == ["0.weight", "0.bias", "2.weight", "2.bias"]


class Shared:
    """A callable object of a user's own that holds one tensor twice."""

    def __init__(self):
        weight = pb.ones(2, dtype=pb.float64, requires_grad=True)
        self.layers, self.head = [{"weight": weight}], weight

    def __call__(self, x, scale=1.0):
        return (self.layers[0]["weight"] * x * self.head * scale).sum()


def test_functional_call_replaces_a_tied_tensor_wherever_an_object_holds_it():
    call, w = pb.nn.functional_call, pb.tensor([2.0, 3.0], dtype=pb.float64)
    for name in ("layers.0.weight", "head"):
        assert call(Shared(), {name: w}, pb.ones(2, dtype=pb.float64), {"scale": 2.0}) == 26.0


@pytest.mark.parametrize("kind", [tuple, list])
def test_functional_call_takes_parameters_and_buffers_in_dicts_of_their_own(kind):
    module = pb.nn.BatchNorm1d(3).double().eval()
    parameters = {"weight": pb.full((3,), 2.0, dtype=pb.float64)}
    buffers = {"running_mean": pb.ones(3, dtype=pb.float64)}
    result = pb.nn.functional_call(module, kind([parameters, buffers]), pb.asarray(X))
    np.testing.assert_allclose(result.detach().numpy(), (X - 1) * 2, rtol=1e-4)
    np.testing.assert_array_equal(module.running_mean.numpy(), np.zeros(3))


class Fixed:
    def __init__(self):
        self.weights = (pb.ones(2, requires_grad=True),)

    def __call__(self):
        return self.weights[0]


def test_functional_call_says_what_is_wrong_with_names_and_objects():
    module = network()
    with pytest.raises(ArgumentError, match=r"(?s)got '0.wieght'.*did you mean '0.weight'"):
        pb.nn.functional_call(module, {"0.wieght": pb.ones(1)}, X)
    for given, names in (([], {}), "list and dict"), ((module, [{}, 3]), "Sequential and int"):
        with pytest.raises(ArgumentTypeError, match=f"a callable module and a dict .* got {names}"):
            pb.nn.functional_call(*given, X)
    twice = [{"0.bias": pb.ones(4)}, {"0.bias": pb.ones(4)}]
    with pytest.raises(ArgumentError, match=r"(?s)got '0\.bias' in two.*all but one"):
        pb.nn.functional_call(module, twice, X)
    with pytest.raises(ArgumentError, match=r"for 'weights\.0', got one in a tuple"):
        pb.nn.functional_call(Fixed(), {"weights.0": pb.ones(2)})


def test_load_state_dict_refuses_what_a_transform_differentiates_by():
    module = network()

    def loss(parameters):
        module.load_state_dict(parameters)
        return module(X).square().sum()

    with pytest.raises(pb.errors.GraphError, match=r"pb.nn.functional_call\(module"):
        pb.grad(loss)(values_of(module))
    module.load_state_dict(dict(network().named_parameters()))


@pytest.mark.parametrize("make", [network, Shared])
@pytest.mark.parametrize(
    ("transform", "call"),
    [
        (pb.grad, r"pb.grad\(lambda parameters, X: .*\)\({}, X\)"),
        (pb.hessian, r"pb.hessian\(lambda parameters, X: .*\)\({}, X\)"),
        (lambda f: lambda *args: pb.vjp(f, *args), r"pb.vjp\(lambda parameters, X: .*, {}, X\)"),
        (
            lambda f: lambda *args: pb.jvp(f, args, args),
            r"pb.jvp\(lambda parameters, X: .*, \({}, X\), tangents\)",
        ),
    ],
)
def test_a_transform_of_a_module_names_functional_call_and_the_parameters(make, transform, call):
    named = r"model.named_parameters\(" if make is network else r"pb.nn.named_parameters\(model"
    way = call.format(rf"dict\({named}\)\)").replace(".*", r".*pb.nn.functional_call\(model, .*")
    with pytest.raises(ArgumentTypeError, match=rf"(?s)got {make().__class__.__name__}\n.*{way}"):
        transform(lambda model, x: model(x).sum())(make(), X)
