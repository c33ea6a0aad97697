"""The check that every mistake of the tables goes through."""

import pytest

import pullback as pb


def check_refused(mistake, builtin, *parts):
    """Make the mistake and check the error: its classes, its words, and what it leaves behind."""
    leaf = pb.tensor([1.0, 2.0, 3.0], requires_grad=True)
    leaf.grad = pb.tensor([9.0, 9.0, 9.0])
    kept = leaf.grad
    with pytest.raises(pb.AutogradError) as caught:
        mistake(leaf)
    message = str(caught.value)
    assert isinstance(caught.value, builtin), caught.type.__mro__
    assert [part for part in parts if part not in message] == [], message

    assert pb.is_grad_enabled()
    assert leaf.grad is kept
    assert kept.tolist() == [9.0, 9.0, 9.0]
    assert leaf.is_leaf
    assert leaf.requires_grad
    (leaf * 2).sum().backward()
    assert leaf.grad.tolist() == [11.0, 11.0, 11.0]


@pytest.fixture
def refused():
    return check_refused
