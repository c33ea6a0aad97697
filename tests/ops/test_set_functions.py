"""Gradients of the set functions."""

import pullback as pb


# -- operations of users ---------------------------------------------------------------------------
def test_the_distinct_values_of_complex_numbers_have_their_gradient():
    x = pb.tensor([1 + 1j, 2j, 1 + 1j], requires_grad=True)
    values = pb.unique_values(x)
    (g,) = pb.autograd.grad(values, x, pb.tensor([3j, 1 - 1j]))
    assert sorted(g.tolist(), key=abs) in ([0, 1 - 1j, 3j], [0, 3j, 1 - 1j])


def test_unique_gives_the_gradient_to_the_first_that_has_a_value():
    x = pb.tensor([3.0, 1.0, 3.0, 2.0, 1.0], requires_grad=True)
    values, counts = x.unique(return_counts=True)
    (g,) = pb.autograd.grad(values, x, pb.tensor([1.0, 2.0, 4.0]))
    assert g.tolist() == [4.0, 1.0, 0.0, 2.0, 0.0]
    assert counts.tolist() == [2, 1, 2]
    rows = pb.tensor([[1.0, 2.0], [0.0, 1.0], [1.0, 2.0]], requires_grad=True)
    values = pb.unique(rows, dim=0)
    (g,) = pb.autograd.grad(values, rows, pb.tensor([[1.0, 2.0], [3.0, 4.0]]))
    assert g.tolist() == [[3.0, 4.0], [1.0, 2.0], [0.0, 0.0]]


def test_unique_consecutive_gives_the_gradient_to_the_first_of_a_run():
    x = pb.tensor([3.0, 3.0, 1.0, 1.0, 3.0], requires_grad=True)
    (g,) = pb.autograd.grad(pb.unique_consecutive(x), x, pb.tensor([1.0, 2.0, 4.0]))
    assert g.tolist() == [1.0, 0.0, 2.0, 0.0, 4.0]
