"""What every optimizer shares: groups, gradients, closures, state."""

import copy
import pickle

import numpy as np
import pytest
from tests.tensors import leaf

import pullback as pb

BOTH = pytest.mark.parametrize("optimizer_class", [pb.optim.SGD, pb.optim.Adam])


def take_steps(optimizer, param, count):
    for _ in range(count):
        optimizer.zero_grad()
        (param * param * param).sum().backward()
        optimizer.step()


def test_each_group_has_its_own_options_and_the_defaults_for_the_rest():
    a, b = leaf([1.0]), leaf([1.0])
    optimizer = pb.optim.SGD([{"params": [a]}, {"params": b, "lr": 0.5}], lr=0.125)
    (a + b).sum().backward()
    optimizer.step()
    assert (a.item(), b.item()) == (0.875, 0.5)
    assert [group["momentum"] for group in optimizer.param_groups] == [0, 0]


def test_an_added_group_is_optimized_too_and_its_dict_is_left_alone():
    a, b = leaf([1.0]), leaf([1.0])
    optimizer = pb.optim.SGD([a], lr=0.125)
    group = {"params": (b,), "lr": 0.25, "name": "late"}
    optimizer.add_param_group(group)
    (a + b).sum().backward()
    optimizer.step()
    assert (a.item(), b.item()) == (0.875, 0.75)
    assert optimizer.param_groups[1]["name"] == "late"
    assert group == {"params": (b,), "lr": 0.25, "name": "late"}


def test_the_learning_rate_can_be_changed_between_steps():
    a = leaf([1.0])
    optimizer = pb.optim.SGD(iter([a]), lr=0.5)
    a.sum().backward()
    optimizer.step()
    optimizer.param_groups[0]["lr"] = 0.25
    optimizer.step()
    assert a.item() == 0.25


@BOTH
def test_a_parameter_without_gradient_is_left_alone(optimizer_class):
    a, b = leaf([1.0]), leaf([2.0])
    optimizer = optimizer_class([a, b], lr=0.5, weight_decay=0.5)
    a.sum().backward()
    optimizer.step()
    assert a.item() != 1.0
    assert b.item() == 2.0
    assert b not in optimizer.state


@BOTH
def test_a_step_records_nothing_and_changes_the_parameter_in_place(optimizer_class):
    a = leaf([1.0, 2.0])
    twin = a.detach()
    version = a._version
    optimizer = optimizer_class([a], lr=0.5)
    (a * a).sum().backward()
    optimizer.step()
    assert a.is_leaf
    assert a.grad_fn is None
    assert a._version > version
    assert twin.tolist() == a.tolist()
    assert pb.is_grad_enabled()


@BOTH
def test_a_step_inside_no_grad_does_the_same(optimizer_class):
    a, b = leaf([1.0, 2.0]), leaf([1.0, 2.0])
    for param in (a, b):
        (param * param).sum().backward()
    optimizer_class([a], lr=0.5).step()
    with pb.no_grad():
        optimizer_class([b], lr=0.5).step()
    assert a.tolist() == b.tolist()


@BOTH
def test_a_step_leaves_the_gradient_as_it_was(optimizer_class):
    a = leaf([1.0, -2.0])
    optimizer = optimizer_class([a], lr=0.5, weight_decay=0.5, maximize=True)
    (a * a).sum().backward()
    optimizer.step()
    optimizer.step()
    assert a.grad.tolist() == [2.0, -4.0]


def test_the_momentum_buffer_is_not_the_gradient_itself():
    a = leaf([1.0])
    optimizer = pb.optim.SGD([a], lr=0.5, momentum=0.5)
    a.sum().backward()
    optimizer.step()
    a.grad.zero_()
    assert optimizer.state[a]["momentum_buffer"].item() == 1.0


@BOTH
def test_a_gradient_with_history_is_used_by_value(optimizer_class):
    a = leaf([2.0])
    optimizer = optimizer_class([a], lr=0.5)
    (grad,) = pb.autograd.grad((a * a).sum(), [a], create_graph=True)
    a.grad = grad
    optimizer.step()
    assert a.is_leaf
    assert all(
        not value.requires_grad
        for value in optimizer.state.get(a, {}).values()
        if isinstance(value, pb.Tensor)
    )


@BOTH
def test_zero_grad_drops_the_gradients(optimizer_class):
    a, b = leaf([1.0]), leaf([2.0])
    optimizer = optimizer_class([a, b])
    a.sum().backward()
    optimizer.zero_grad()
    assert a.grad is None
    assert b.grad is None


@BOTH
def test_zero_grad_can_fill_with_zeros_in_place(optimizer_class):
    a, b = leaf([1.0]), leaf([2.0])
    optimizer = optimizer_class([a, b])
    a.sum().backward()
    held = a.grad
    optimizer.zero_grad(set_to_none=False)
    assert a.grad is held
    assert held.tolist() == [0.0]
    assert b.grad is None


def test_zero_grad_with_zeros_cuts_the_history_of_the_gradient():
    a = leaf([3.0])
    (a.grad,) = pb.autograd.grad((a * a).sum(), [a], create_graph=True)
    pb.optim.SGD([a]).zero_grad(set_to_none=False)
    assert not a.grad.requires_grad
    assert a.grad.tolist() == [0.0]


def test_momentum_goes_on_with_a_zero_gradient_and_rests_without_one():
    zeroed, dropped = leaf([1.0]), leaf([1.0])
    for param, to_none in ((zeroed, False), (dropped, True)):
        optimizer = pb.optim.SGD([param], lr=0.5, momentum=0.5)
        param.sum().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=to_none)
        optimizer.step()
    assert zeroed.item() == 0.25
    assert dropped.item() == 0.5


@BOTH
def test_a_closure_runs_recorded_and_its_result_is_returned(optimizer_class):
    a = leaf([1.0])
    optimizer = optimizer_class([a], lr=0.5)
    assert optimizer.step() is None

    def closure():
        optimizer.zero_grad()
        loss = (a * a).sum()
        loss.backward()
        return loss

    with pb.no_grad():
        loss = optimizer.step(closure)
        assert not pb.is_grad_enabled()
    assert loss.item() == 1.0
    assert a.item() < 1.0


def test_an_error_in_the_closure_arrives_and_changes_nothing():
    a = leaf([1.0])
    optimizer = pb.optim.SGD([a], lr=0.5)
    a.sum().backward()

    def closure():
        raise ZeroDivisionError("mine")

    with pb.no_grad(), pytest.raises(ZeroDivisionError, match="mine"):
        optimizer.step(closure)
    assert a.item() == 1.0
    assert pb.is_grad_enabled()


MAKERS = {
    "sgd": lambda p: pb.optim.SGD(p, lr=0.01, momentum=0.9),
    "adam": lambda p: pb.optim.Adam(p, lr=0.05),
    "amsgrad": lambda p: pb.optim.Adam(p, lr=0.05, amsgrad=True),
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda d: pickle.loads(pickle.dumps(d))])
def test_a_run_resumed_from_its_state_dict_goes_on_as_if_never_stopped(make, copied):
    whole = leaf([1.0, 2.0])
    optimizer = make([whole])
    take_steps(optimizer, whole, 3)
    saved, halfway = copied(optimizer.state_dict()), whole.detach().clone()
    take_steps(optimizer, whole, 4)

    resumed = halfway.requires_grad_()
    again = make([resumed])
    again.load_state_dict(saved)
    take_steps(again, resumed, 4)
    assert resumed.tolist() == whole.tolist()


def test_a_state_dict_numbers_the_parameters_across_groups():
    a, b, c = leaf([1.0]), leaf([2.0]), leaf([3.0])
    optimizer = pb.optim.SGD(
        [{"params": [a, b]}, {"params": [c], "lr": 0.5}], lr=0.25, momentum=0.5
    )
    c.sum().backward()
    optimizer.step()
    saved = optimizer.state_dict()
    assert [group["params"] for group in saved["param_groups"]] == [[0, 1], [2]]
    assert [group["lr"] for group in saved["param_groups"]] == [0.25, 0.5]
    assert list(saved["state"]) == [2]
    assert saved["state"][2]["momentum_buffer"].tolist() == [1.0]


def test_loading_replaces_options_and_state_and_copies_them():
    a, b = leaf([1.0]), leaf([1.0])
    source = pb.optim.SGD([a], lr=0.25, momentum=0.5)
    take_steps(source, a, 1)
    target = pb.optim.SGD([b], lr=0.5)
    saved = source.state_dict()
    target.load_state_dict(saved)
    assert target.param_groups[0]["lr"] == 0.25
    assert target.param_groups[0]["params"][0] is b
    take_steps(source, a, 1)
    assert target.state[b]["momentum_buffer"].tolist() == [3.0]
    assert saved["param_groups"][0]["params"] == [0]


def test_loaded_state_takes_the_dtype_of_the_parameter():
    a = leaf([1.0])
    source = pb.optim.Adam([a])
    take_steps(source, a, 2)
    single = pb.tensor([1.0], dtype=pb.float32, requires_grad=True)
    target = pb.optim.Adam([single])
    target.load_state_dict(source.state_dict())
    assert target.state[single]["exp_avg"].dtype == pb.float32
    assert target.state[single]["step"] == 2
    take_steps(target, single, 1)
    assert single.dtype == pb.float32


def test_the_repr_shows_every_group():
    optimizer = pb.optim.SGD([{"params": [leaf([1.0]), leaf([2.0])]}], lr=0.25)
    assert repr(optimizer) == (
        "SGD(\n  group 0: 2 parameters, lr=0.25, momentum=0, dampening=0, weight_decay=0, "
        "nesterov=False, maximize=False\n)"
    )


def test_training_fits_a_line():
    rng = np.random.default_rng(0)
    x = pb.tensor(rng.normal(size=(50, 2)))
    y = x.mm(pb.tensor([[2.0], [-3.0]], dtype=pb.float64)) + 0.5
    weight = pb.zeros((2, 1), dtype=pb.float64, requires_grad=True)
    bias = pb.zeros(1, dtype=pb.float64, requires_grad=True)
    optimizer = pb.optim.Adam([weight, bias], lr=0.1)
    for _ in range(500):
        optimizer.zero_grad()
        (x.mm(weight) + bias - y).pow(2).mean().backward()
        optimizer.step()
    np.testing.assert_allclose(weight.detach().numpy(), [[2.0], [-3.0]], atol=1e-3)
    np.testing.assert_allclose(bias.detach().numpy(), [0.5], atol=1e-3)
