"""`apply` of a class: what a subclass makes of it."""

import pytest
from tests.tensors import leaf

import pullback as pb


def test_apply_of_the_base_class_runs_the_operation():
    class Double(pb.Function):
        @staticmethod
        def forward(ctx, t):
            return t * 2.0

        @staticmethod
        def backward(ctx, g):
            return g * 2.0

    x = leaf([3.0])
    super(Double, Double).apply(x).sum().backward()
    assert x.grad.tolist() == [2.0]


def test_an_apply_of_the_users_own_is_kept():
    class Scale(pb.Function):
        @staticmethod
        def forward(ctx, x, k):
            ctx.k = k
            return x * k

        @staticmethod
        def backward(ctx, grad_output):
            return {"x": grad_output * ctx.k}

        @classmethod
        def apply(cls, x):
            return super().apply(x, 4.0)

    x = leaf(3.0)
    Scale.apply(x).backward()
    assert x.grad.item() == 4.0


@pytest.mark.case("F19")
def test_calling_the_class_with_arguments_says_to_use_apply():
    class Same(pb.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output

    x = leaf(1.0)
    with pytest.raises(TypeError, match=r"Same\.apply") as caught:
        Same(x)
    assert isinstance(caught.value, pb.AutogradError)
    assert Same()(x).item() == 1.0
