"""What backward uses cannot change unseen: operands, data, indices, hooks, frozen leaves."""

import numpy as np
import pytest

import pullback as pb
from pullback.errors import InplaceError


def leaf(values):
    return pb.tensor(values, dtype=pb.float64, requires_grad=True)


def grad(out, x):
    return pb.autograd.grad(out, x)[0].tolist()


@pytest.mark.parametrize("change", ["add_", "copy_", "setitem"])
def test_a_stale_view_as_the_other_operand_of_an_inplace_change_has_its_bases_history(change):
    x = leaf([1.0, 2.0])
    b = x * 1
    v = b[0:1]
    b.mul_(3)
    z = pb.tensor([5.0], dtype=pb.float64)
    if change == "setitem":
        z[0:1] = v
    else:
        getattr(z, change)(v)
    assert grad(z.sum(), x) == [3.0, 0.0]


def test_a_view_keeps_its_values_when_its_bases_data_is_replaced():
    w = leaf([1.0, 2.0])
    view = w.view(2, 1)
    w.data = w.data * 10
    assert view.tolist() == [[1.0], [2.0]]
    assert w.tolist() == [10.0, 20.0]
    assert grad((view * 3).sum(), w) == [3.0, 3.0]


def test_a_view_whose_history_is_behind_cannot_outlive_its_bases_data():
    b = leaf([1.0, 2.0]) * 1
    view = b[0:1]
    b.mul_(2)
    b.data = pb.tensor([5.0, 6.0], dtype=pb.float64)
    with pytest.raises(pb.AutogradError, match="history of the view is lost"):
        view * 1


class First(pb.Function):
    @staticmethod
    def forward(ctx, x):
        return x[0:1]

    @staticmethod
    def backward(ctx, grad_output):
        return {"x": pb.concat([grad_output * 10, grad_output * 0])}


@pytest.mark.parametrize("take", [First.apply, lambda b: b[0:1]], ids=["custom", "built-in"])
def test_a_view_made_under_no_grad_refuses_to_be_used_after_its_base_changed(take):
    b = leaf([1.0, 2.0]) * 1
    with pb.no_grad():
        view = take(b)
    b.mul_(2)
    with pytest.raises(RuntimeError, match="created in no_grad mode"):
        view * 3
    with pb.no_grad():
        assert view.tolist() == [2.0]


def test_replacing_the_data_under_a_custom_view_leaves_its_rule_in_place():
    w = leaf([1.0, 2.0])
    y = First.apply(w)
    w.data = pb.tensor([10.0, 20.0], dtype=pb.float64)
    assert y.tolist() == [1.0]
    assert grad(y.sum(), w) == [10.0, 0.0]


def test_an_index_that_is_changed_later_is_not_seen_by_backward():
    x = leaf([1.0, 2.0, 3.0])
    index, mask = pb.tensor([0, 1]), pb.tensor([True, False, False])
    picked, masked = x[index], x[mask]
    index.add_(1)
    mask[1] = True
    assert grad(picked.sum(), x) == [1.0, 1.0, 0.0]
    assert grad(masked.sum(), x) == [1.0, 0.0, 0.0]


def test_an_array_operand_that_is_changed_later_is_not_seen_by_backward():
    x, array = leaf([1.0, 2.0]), np.array([3.0, 4.0])
    y = x * array
    array[:] = 100.0
    assert grad(y.sum(), x) == [3.0, 4.0]


def test_a_leaf_that_was_frozen_for_a_while_keeps_its_hooks_and_place():
    w = leaf([1.0, 1.0])
    w.register_hook(lambda g: g * 10)
    y = (w * w).sum()
    w.requires_grad_(False)
    w.requires_grad_(True)
    y.backward()
    assert w.grad.tolist() == [20.0, 20.0]


def test_a_frozen_leaf_gets_no_gradient():
    w = leaf([1.0, 2.0])
    y = (w * w).sum()
    w.requires_grad_(False)
    y.backward()
    assert w.grad is None


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (lambda: pb.tensor([5.0], dtype=pb.float64), RuntimeError),
        (lambda: pb.tensor([5, 6]), RuntimeError),
        (lambda: 3.0, TypeError),
    ],
    ids=["shape", "dtype", "kind"],
)
@pytest.mark.parametrize("kind", ["pre", "post"])
def test_a_node_hook_may_only_return_what_fits(kind, value, error):
    x = leaf([1.0, 2.0])
    y = x * 2
    if kind == "pre":
        y.grad_fn.register_prehook(lambda grads: (value(),))
    else:
        y.grad_fn.register_hook(lambda grads, _: (value(),) + (None,) * (len(grads) - 1))
    with pytest.raises(error, match="hook must return"):
        y.sum().backward()
    assert x.grad is None


def test_a_rule_that_changes_its_gradient_reaches_no_sibling_in_a_recorded_pass():
    class Twice(pb.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output.mul_(2)

    x = leaf([1.0, 2.0])
    b = x * 1
    seed = pb.tensor([1.0, 1.0], dtype=pb.float64)
    (g,) = pb.autograd.grad(Twice.apply(b) + b, x, seed, create_graph=True)
    assert g.tolist() == [3.0, 3.0]
    assert seed.tolist() == [1.0, 1.0]


def test_gradients_of_a_recorded_pass_share_no_memory():
    x, y = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    seed = pb.tensor([1.0, 1.0], dtype=pb.float64)
    a, b = pb.autograd.grad(x + y, [x, y], seed, create_graph=True)
    a.mul_(5)
    assert (b.tolist(), seed.tolist()) == ([1.0, 1.0], [1.0, 1.0])


@pytest.mark.parametrize("counts", [(2, 3), (0, 0)])
def test_batched_gradients_need_one_leading_length(counts):
    x = leaf([1.0, 2.0])
    outs = [x * 2, x * 3]
    seeds = [pb.ones((n, 2), dtype=pb.float64) for n in counts]
    with pytest.raises(ValueError, match="one leading length"):
        pb.autograd.grad(outs, x, seeds, is_grads_batched=True)


def test_a_complex_number_is_no_gradient_of_a_real_argument():
    f = pb.autograd_function(lambda ctx, x: x * 1, lambda ctx, g: {"x": 3 + 1j}, name="f")
    with pytest.raises(pb.AutogradError, match="'x' must be real"):
        f(leaf(1.0)).backward()


def test_names_that_several_arguments_share_are_ambiguous():
    f = pb.autograd_function(
        lambda ctx, *args, **kwargs: args[0] * kwargs["args[0]"],
        lambda ctx, g: {"args": (g,), "args[0]": g},
        name="f",
    )
    with pytest.raises(pb.AutogradError, match="ambiguous"):
        f(leaf(2.0), **{"args[0]": leaf(3.0)}).backward()


def test_a_tensor_marked_dirty_may_be_passed_twice():
    class Double(pb.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx, grad_output):
            return {"x": grad_output * 2, "y": None}

    x = leaf([1.0, 2.0])
    b = x * 1
    assert Double.apply(b, b) is b
    assert grad(b.sum(), x) == [2.0, 2.0]


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


def test_a_function_without_a_signature_is_refused_when_defined():
    with pytest.raises(pb.AutogradError, match="with a signature"):
        pb.autograd_function(lambda ctx, x: x, max)


def test_a_gradient_that_a_hook_gives_an_untracked_input_goes_nowhere():
    x = leaf([1.0, 2.0])
    y = x * 2.0
    extra = pb.tensor([7.0], dtype=pb.float64)
    y.grad_fn.register_hook(lambda grads, _: (grads[0], extra))
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_a_hook_may_take_a_gradient_away():
    x = leaf([1.0, 2.0])
    y = x * 2.0
    y.grad_fn.register_hook(lambda grads, _: (None, None))
    y.sum().backward()
    assert x.grad is None


def test_a_leaf_that_died_frozen_is_forgotten():
    from pullback.core.graph import node

    gone, other = leaf([1.0]), leaf([2.0])
    gone.requires_grad_(False)
    key = id(gone)
    assert key in node._frozen
    del gone
    other.requires_grad_(False)
    assert all(kept.leaf() is not None for kept in node._frozen.values())
    other.requires_grad_(True)
    assert id(other) not in node._frozen


def test_a_bare_floating_array_from_forward_comes_back_tracked():
    f = pb.autograd_function(
        lambda ctx, x: np.exp(x.numpy()), lambda ctx, g: {"x": g * 5.0}, name="f"
    )
    x = leaf([0.0, 1.0])
    y = f(x)
    assert y.grad_fn.name() == "fBackward"
    assert grad(y.sum(), x) == [5.0, 5.0]
    with pb.no_grad():
        assert isinstance(f(x), pb.Tensor)


# -- class targets, settings, arrays that forward returns -----------------------------------------
@pytest.mark.parametrize("loss", [pb.nn.functional.cross_entropy, pb.nn.functional.nll_loss])
def test_class_targets_that_change_before_backward_are_found(loss):
    x = pb.zeros((1, 3), requires_grad=True)
    target = pb.tensor([0])
    result = loss(x, target)
    target.add_(1)
    with pytest.raises(InplaceError, match="modified by an inplace operation"):
        result.backward()


def test_a_bare_array_of_targets_is_copied():
    x = pb.zeros((1, 3), requires_grad=True)
    target = np.array([0])
    result = pb.nn.functional.nll_loss(x, target)
    target[0] = 2
    result.backward()
    assert x.grad.tolist() == [[-1.0, 0.0, 0.0]]


@pytest.mark.parametrize("number", [np.float64(0.5), np.array(0.5)], ids=["scalar", "0-d"])
def test_numbers_of_numpy_as_settings_leave_the_dtype_alone(number):
    x = pb.tensor([1.0, 2.0], requires_grad=True)
    for y in (
        pb.nn.functional.leaky_relu(x, number),
        pb.nn.functional.elu(x, number),
        pb.nan_to_num(x, nan=number),
    ):
        assert y.dtype == pb.float32
        assert pb.autograd.grad(y.sum(), x)[0].dtype == pb.float32


def test_an_array_that_forward_returns_is_not_changed_through_the_result():
    constant = np.ones(2)

    @pb.autograd_function
    def constantly(ctx, x):
        return constant

    @constantly.backward
    def _(ctx, grad_output):
        return grad_output * 0

    x = pb.ones(2, dtype=pb.float64, requires_grad=True)
    assert constantly(x).mul_(5).tolist() == [5.0, 5.0]
    assert constant.tolist() == [1.0, 1.0]
