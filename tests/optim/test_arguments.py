"""Every argument check of the optimizers, and what it says: the rows of mistakes/."""

import builtins
from pathlib import Path

import pytest
from tests.mistakes import mistakes
from tests.tensors import leaf

import pullback as pb
from pullback.optim import SGD

ROWS = mistakes(Path(__file__).with_name("mistakes"))


@pytest.mark.parametrize(("used", "call", "kind", "words"), ROWS)
def test_a_wrong_argument_is_refused(used, call, kind, words):
    names = {"pb": pb}
    exec(used, names)
    with pytest.raises(getattr(builtins, kind)) as caught:
        exec(call, names)
    assert isinstance(caught.value, pb.AutogradError)
    assert words[0] in " ".join(str(caught.value).split())


def test_a_refused_group_is_not_added():
    a, b = leaf([1.0]), leaf([1.0])
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
        (lambda: SGD([{"params": [leaf([1.0])]}, {"params": [leaf([1.0])]}]), "[1, 1]"),
        (lambda: SGD([leaf([1.0]), leaf([1.0])]), "[2]"),
    ],
    ids=["number of groups", "size of a group"],
)
def test_the_state_of_another_arrangement_is_refused(make_other, sizes):
    optimizer = SGD([leaf([1.0])], lr=0.5, momentum=0.5)
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


def test_an_optimizer_of_ones_own_may_take_any_option():
    class Own(SGD):
        def __init__(self, params, **options):
            super().__init__(params, lr=options["rate"])

    assert Own([leaf([1.0])], rate=0.5).param_groups[0]["lr"] == 0.5
