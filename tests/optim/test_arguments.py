"""Every argument check of the optimizers, and what it says."""

import math

import pytest

import pullback as pb


def leaf():
    return pb.tensor([1.0], requires_grad=True)


def bad_option(optimizer_class, **options):
    return lambda: optimizer_class([leaf()], **options)


def bad_params(make_params):
    return lambda: pb.optim.SGD(make_params(), lr=0.1)


def shared_leaf(build):
    return lambda: build(leaf())


SGD, ADAM = pb.optim.SGD, pb.optim.Adam

# id: (what is done wrong, the built-in error, what the message must say)
CHECKS = {
    "sgd lr": (bad_option(SGD, lr=-0.1), ValueError, "SGD: lr must be at least 0, got -0.1"),
    "sgd nan lr": (
        bad_option(SGD, lr=math.nan),
        ValueError,
        "SGD: lr must be at least 0, got nan",
    ),
    "sgd lr kind": (bad_option(SGD, lr="1"), TypeError, "SGD: lr must be a number, got str"),
    "sgd momentum": (
        bad_option(SGD, momentum=-1),
        ValueError,
        "SGD: momentum must be at least 0, got -1",
    ),
    "sgd decay": (
        bad_option(SGD, weight_decay=-0.5),
        ValueError,
        "SGD: weight_decay must be at least 0, got -0.5",
    ),
    "nesterov without momentum": (
        bad_option(SGD, nesterov=True),
        ValueError,
        "SGD: nesterov needs a momentum above 0 and a dampening of 0, got momentum 0 and "
        "dampening 0",
    ),
    "nesterov with dampening": (
        bad_option(SGD, momentum=0.5, dampening=0.1, nesterov=True),
        ValueError,
        "SGD: nesterov needs a momentum above 0 and a dampening of 0, got momentum 0.5 and "
        "dampening 0.1",
    ),
    "adam lr": (bad_option(ADAM, lr=-1.0), ValueError, "Adam: lr must be at least 0, got -1.0"),
    "adam eps": (
        bad_option(ADAM, eps=-1e-8),
        ValueError,
        "Adam: eps must be at least 0, got -1e-08",
    ),
    "adam decay": (
        bad_option(ADAM, weight_decay=-1),
        ValueError,
        "Adam: weight_decay must be at least 0, got -1",
    ),
    "adam first beta": (
        bad_option(ADAM, betas=(1.0, 0.9)),
        ValueError,
        "Adam: betas[0] must be below 1, got 1.0",
    ),
    "adam second beta": (
        bad_option(ADAM, betas=(0.9, -0.1)),
        ValueError,
        "Adam: betas[1] must be at least 0, got -0.1",
    ),
    "adam beta kind": (
        bad_option(ADAM, betas=(0.9, None)),
        TypeError,
        "Adam: betas[1] must be a number, got NoneType",
    ),
    "adam one beta": (
        bad_option(ADAM, betas=0.9),
        ValueError,
        "Adam: betas must be two numbers, got 0.9",
    ),
    "adam three betas": (
        bad_option(ADAM, betas=(0.1, 0.2, 0.3)),
        ValueError,
        "Adam: betas must be two numbers, got (0.1, 0.2, 0.3)",
    ),
    "one tensor": (
        bad_params(leaf),
        TypeError,
        "SGD: params must be an iterable of tensors or of parameter groups, got one tensor\n"
        "hint: write [tensor]",
    ),
    "no parameters": (
        bad_params(list),
        ValueError,
        "SGD: params must hold at least one parameter, got none",
    ),
    "not a tensor": (
        bad_params(lambda: [leaf(), 1.0]),
        TypeError,
        "SGD: parameter 1 of the group must be a tensor, got float",
    ),
    "not a leaf": (
        bad_params(lambda: [leaf() * 2]),
        ValueError,
        "SGD: parameter 0 of the group must be a leaf, got the result of MulBackward\n"
        "hint: optimize the leaf it was computed from, or call detach() and requires_grad_() on it",
    ),
    "set": (
        bad_params(lambda: [{"params": {leaf()}}]),
        TypeError,
        "SGD: the parameters of a group must have an order, got a set\nhint: use a list",
    ),
    "twice in a group": (
        shared_leaf(lambda a: SGD([a, a])),
        ValueError,
        "SGD: a parameter must be in one group, once, got parameter 1 a second time",
    ),
    "in two groups": (
        shared_leaf(lambda a: SGD([{"params": [a]}, {"params": [leaf(), a]}])),
        ValueError,
        "SGD: a parameter must be in one group, once, got parameter 1 a second time",
    ),
    "group without params": (
        bad_params(lambda: [{"lr": 0.1}]),
        ValueError,
        "SGD: a parameter group needs the key 'params', got the keys ['lr']",
    ),
    "group of another kind": (
        bad_params(lambda: [{"params": [leaf()]}, [leaf()]]),
        TypeError,
        "SGD: a parameter group must be a dict, got list",
    ),
    "bad option of a group": (
        bad_params(lambda: [{"params": [leaf()], "lr": -2}]),
        ValueError,
        "SGD: lr must be at least 0, got -2",
    ),
    "misspelt option of a group": (
        bad_params(lambda: [{"params": [leaf()], "weight_dacay": 0.1}]),
        ValueError,
        "got 'weight_dacay'\nhint: did you mean 'weight_decay'?",
    ),
}


@pytest.mark.parametrize(("mistake", "builtin", "message"), CHECKS.values(), ids=CHECKS)
def test_a_wrong_argument_is_refused(mistake, builtin, message):
    with pytest.raises(pb.AutogradError) as caught:
        mistake()
    assert isinstance(caught.value, builtin)
    assert message in str(caught.value)


def test_a_refused_group_is_not_added():
    a, b = leaf(), leaf()
    optimizer = SGD([a], lr=0.5)
    with pytest.raises(ValueError, match="lr must be at least 0"):
        optimizer.add_param_group({"params": [b], "lr": -1})
    b.sum().backward()
    optimizer.step()
    assert b.item() == 1.0
    optimizer.add_param_group({"params": [b]})
    assert len(optimizer.param_groups) == 2


@pytest.mark.parametrize(
    ("make_other", "sizes"),
    [
        (lambda: SGD([{"params": [leaf()]}, {"params": [leaf()]}]), "[1, 1]"),
        (lambda: SGD([leaf(), leaf()]), "[2]"),
    ],
    ids=["number of groups", "size of a group"],
)
def test_the_state_of_another_arrangement_is_refused(make_other, sizes):
    optimizer = SGD([leaf()], lr=0.5, momentum=0.5)
    with pytest.raises(pb.AutogradError) as caught:
        optimizer.load_state_dict(make_other().state_dict())
    assert isinstance(caught.value, ValueError)
    assert str(caught.value) == (
        f"SGD: load_state_dict needs parameter groups of the sizes [1], got {sizes}"
    )
    assert optimizer.param_groups[0]["lr"] == 0.5


def test_load_state_dict_of_other_shapes_lists_all_of_them_and_loads_nothing():
    def trained(*shapes):
        params = [pb.ones(*shape, requires_grad=True) for shape in shapes]
        optimizer = pb.optim.SGD(params, lr=0.1, momentum=0.9)
        sum(p.sum() for p in params).backward()
        optimizer.step()
        return optimizer

    target = trained((2,), (3,), (4,))
    before = target.state_dict()
    with pytest.raises(ValueError, match="a state of the parameters' shapes") as raised:
        target.load_state_dict(trained((2, 2), (3,), (1, 4)).state_dict())
    assert "momentum_buffer of parameter 0: (2, 2) for (2,)" in str(raised.value)
    assert "momentum_buffer of parameter 2: (1, 4) for (4,)" in str(raised.value)
    for i, entry in target.state_dict()["state"].items():
        assert entry["momentum_buffer"].tolist() == before["state"][i]["momentum_buffer"].tolist()
