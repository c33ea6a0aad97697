"""Gradients of the set functions."""

import pullback as pb


# -- operations of users ---------------------------------------------------------------------------
def test_the_distinct_values_of_complex_numbers_have_their_gradient():
    x = pb.tensor([1 + 1j, 2j, 1 + 1j], requires_grad=True)
    values = pb.unique_values(x)
    (g,) = pb.autograd.grad(values, x, pb.tensor([3j, 1 - 1j]))
    assert sorted(g.tolist(), key=abs) in ([0, 1 - 1j, 3j], [0, 3j, 1 - 1j])
