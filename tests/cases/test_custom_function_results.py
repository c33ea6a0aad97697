"""Custom functions: what their results are (cases F15 to F21)."""

import pytest

import pullback as pb
from pullback import Tensor, autograd


def leaf(data: object) -> Tensor:
    return pb.tensor(data, dtype=pb.float64, requires_grad=True)


def const(data: object) -> Tensor:
    return pb.tensor(data, dtype=pb.float64)


slots_seen: list[tuple[float, float]] = []


class TwoOfOne(pb.Function):
    """2 * x, the same tensor returned twice."""

    @staticmethod
    def forward(ctx, x):
        out = 2 * x
        return out, out

    @staticmethod
    def backward(ctx, g1, g2):
        slots_seen.append((g1.item(), g2.item()))
        return {"x": 2 * g1 + 2 * g2}


@pytest.mark.parametrize(("weight", "received", "slope"), [(1.0, 2.0, 4.0), (10.0, 11.0, 22.0)])
def test_F15_same_tensor_returned_twice_is_one_object(
    weight: float, received: float, slope: float
) -> None:
    slots_seen.clear()
    x = leaf(3.0)
    a, b = TwoOfOne.apply(x)
    assert a is b
    assert a.item() == 6.0
    (a + weight * b).backward()
    assert x.grad.item() == slope
    assert [sorted(pair) for pair in slots_seen] == [[0.0, received]]


def test_F15_first_and_second_derivatives_match_the_function() -> None:
    x = leaf(3.0)
    a, b = TwoOfOne.apply(x)
    (first,) = autograd.grad(a * b, x, create_graph=True)  # 4 x^2
    (second,) = autograd.grad(first, x)
    assert first.item() == 24.0
    assert second.item() == 8.0

    def value(at: float) -> float:
        left, right = TwoOfOne.apply(const(at))
        return (left * right).item()

    slope = (value(3.0 + 1e-6) - value(3.0 - 1e-6)) / 2e-6
    assert first.item() == pytest.approx(slope, rel=1e-6)


def test_F16_returned_leaf_counts_only_its_own_uses() -> None:
    class PassAndAdd(pb.Function):
        @staticmethod
        def forward(ctx, a, b):
            return a, a + b

        @staticmethod
        def backward(ctx, ga, gb):
            return {"a": ga + gb, "b": gb}

    x, y = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    q, p = PassAndAdd.apply(x, y)
    assert q is not x
    assert q.tolist() == [1.0, 2.0]
    assert p.tolist() == [4.0, 6.0]
    seen: list[list[float]] = []
    q.register_hook(lambda g: seen.append(g.tolist()))
    (q + p + x).sum().backward()
    assert seen == [[1.0, 1.0]]
    assert x.grad.tolist() == [3.0, 3.0]
    assert y.grad.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("returns_input", [False, True])
def test_F17_no_grad_runs_forward_and_records_nothing(returns_input: bool) -> None:
    flags: list[bool] = []

    class Pass(pb.Function):
        @staticmethod
        def forward(ctx, x):
            flags.extend(ctx.needs_input_grad)
            ctx.save_for_backward(x=x)
            return x if returns_input else x * 1

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output

    x = leaf([1.0, 2.0])
    with pb.no_grad():
        y = Pass.apply(x)
    assert flags == [False]
    assert y is not x
    assert y.tolist() == [1.0, 2.0]
    assert not y.requires_grad
    assert y.grad_fn is None
    assert x.requires_grad
    assert x.is_leaf


@pytest.mark.parametrize("create_graph", [False, True])
def test_F18_grad_mode_is_off_in_forward_and_create_graph_in_backward(create_graph: bool) -> None:
    modes: dict[str, object] = {}

    @pb.autograd_function
    def square(ctx, x):
        modes["forward"] = pb.is_grad_enabled()
        modes["input of forward"] = (x.requires_grad, x.is_leaf, x.grad_fn)
        out = x * x
        modes["recorded in forward"] = out.requires_grad
        ctx.save_for_backward(x=x)
        return out

    @square.backward
    def _(ctx, grad_output):
        modes["backward"] = pb.is_grad_enabled()
        dx = 2 * ctx.saved_variables.x * grad_output
        modes["recorded in backward"] = dx.requires_grad
        return {"x": dx}

    x = leaf(3.0)
    y = x * 1.0
    (dx,) = autograd.grad(square(y), x, create_graph=create_graph)
    assert dx.item() == 6.0
    assert modes == {
        "forward": False,
        "input of forward": (False, True, None),
        "recorded in forward": False,
        "backward": create_graph,
        "recorded in backward": create_graph,
    }
    assert x.requires_grad
    assert y.grad_fn.name() == "MulBackward"
    assert pb.is_grad_enabled()


def test_F19_calling_the_class_with_arguments_says_to_use_apply() -> None:
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


def test_F20_engine_does_no_multiplication_of_its_own() -> None:
    class Careless(pb.Function):
        """A square whose rule ignores the incoming gradient."""

        @staticmethod
        def forward(ctx, v):
            ctx.save_for_backward(v=v)
            return v * v

        @staticmethod
        def backward(ctx, grad_output):
            return {"v": 2 * ctx.saved_variables.v}

    x = leaf(3.0)
    out = Careless.apply(x) * Careless.apply(x)
    assert out.item() == 81.0
    out.backward()
    assert x.grad.item() == 12.0


def test_F21_path_through_a_non_differentiable_output_is_cut() -> None:
    class PassWithNoise(pb.Function):
        @staticmethod
        def forward(ctx, input):
            noise = pb.full(input.shape, 0.25, dtype=pb.float64)
            ctx.mark_non_differentiable(noise)
            return input, noise

        @staticmethod
        def backward(ctx, grad_output, ignored):
            return grad_output

    class First(pb.Function):
        @staticmethod
        def forward(ctx, a, b):
            return a

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output, None

    x = leaf([1.0, 2.0, 3.0])
    a, noise = PassWithNoise.apply(x)
    shifted = noise + 1
    assert a.requires_grad
    assert not shifted.requires_grad
    First.apply(a, shifted).backward(const([1.0, 1.0, 1.0]))
    assert x.grad.tolist() == [1.0, 1.0, 1.0]
