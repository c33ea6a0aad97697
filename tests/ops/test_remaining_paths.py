"""Tensors, hooks and operations used in ways that few programs do."""

import numpy as np
import pytest

import pullback as pb
from pullback.arrays import NUMPY
from pullback.core.function.primitive import Primitive
from pullback.core.function.record import apply
from pullback.core.function.rules import prepare
from pullback.errors import (
    ArgumentError,
    ArgumentTypeError,
    DTypeError,
    GradientError,
    GraphError,
    InplaceError,
    MissingRuleError,
    ShapeError,
)
from pullback.ops.functions import data_types
from pullback.ops.primitives import conversion
from pullback.ops.primitives.indexing import index_put_p


def leaf(*values):
    return pb.tensor(list(values), dtype=pb.float64, requires_grad=True)


# -- hooks -----------------------------------------------------------------------------------------
def test_a_hook_may_remove_the_one_after_it():
    x = leaf(1.0, 2.0)
    calls = []

    def first(g):
        calls.append("first")
        second.remove()

    x.register_hook(first)
    second = x.register_hook(lambda g: calls.append("second"))
    (x * 2.0).sum().backward()
    assert calls == ["first"]
    assert x.grad.tolist() == [2.0, 2.0]


def test_a_hook_that_changes_its_gradient_in_place_is_told_so():
    x = leaf(1.0)

    def hook(g):
        g.mul_(2.0)

    x.register_hook(hook)
    with pytest.raises(GradientError, match="changed its gradient in place"):
        (x * 3.0).sum().backward()


def test_a_hook_may_change_a_part_of_its_own_copy_and_return_it():
    x = leaf(1.0, 2.0)
    seen = []

    def hook(g):
        g[:1].mul_(5.0)
        return g

    y = x * 1.0
    y.register_hook(seen.append)
    y.register_hook(hook)
    y.sum().backward()
    assert x.grad.tolist() == [5.0, 1.0]
    assert seen[0].tolist() == [1.0, 1.0]


def test_a_hook_before_a_node_may_return_one_tensor():
    x = leaf(1.0, 2.0)
    y = x * 3.0
    y.grad_fn.register_prehook(lambda grads: grads[0] * 2.0)
    y.sum().backward()
    assert x.grad.tolist() == [6.0, 6.0]


@pytest.mark.parametrize(
    ("returned", "error", "text"),
    [
        (3, ArgumentTypeError, "a tuple of gradients or None, got int"),
        ((), GradientError, "as many gradients as it was given, got 0 for 1"),
    ],
)
def test_a_hook_before_a_node_that_returns_something_else_is_refused(returned, error, text):
    y = leaf(1.0) * 3.0
    y.grad_fn.register_prehook(lambda grads: returned)
    with pytest.raises(error, match=f"register_prehook: a hook must return {text}"):
        y.sum().backward()


def test_a_hook_on_a_group_needs_a_function_and_tensors_that_require_grad():
    x = leaf(1.0)
    with pytest.raises(ArgumentTypeError, match="fn must be callable, got int"):
        pb.register_multi_grad_hook([x], 3)
    with pytest.raises(GraphError, match=r"tensors\[1\] must be a Tensor that requires grad"):
        pb.register_multi_grad_hook([x, pb.ones(1)], print)


def test_the_gradient_that_one_tensor_retains_does_not_follow_another():
    x = leaf(3.0)
    kept = []
    x.register_hook(kept.append)
    with pytest.warns(UserWarning, match="create_graph=True"):
        (x * x).sum().backward(create_graph=True)
    kept[0].retain_grad()
    g = x.grad  # at the same place of the history
    g.mul_(2.0)
    assert (g.tolist(), kept[0].tolist()) == ([12.0], [6.0])
    g.sum().backward()
    assert kept[0].grad.tolist() == [2.0]


# -- in place --------------------------------------------------------------------------------------
def test_unrecorded_changes_by_a_bool_and_by_a_shape_that_does_not_fit():
    x = pb.tensor([1.0, 2.0])
    with pb.no_grad():
        x.add_(True)
        assert x.tolist() == [2.0, 3.0]
        with pytest.raises(ShapeError):
            x.add_(pb.tensor([1.0, 2.0, 3.0]))
    assert x.tolist() == [2.0, 3.0]
    assert x._version == 1


def test_memory_that_is_read_only_is_not_changed():
    array = np.array([1.0, 2.0])
    array.flags.writeable = False
    x = pb.asarray(array)
    with pb.no_grad(), pytest.raises(InplaceError, match="its memory is read-only"):
        x.mul_(2.0)
    assert array.tolist() == [1.0, 2.0]
    assert x._version == 0


def test_only_a_tensor_is_changed_in_place():
    with pytest.raises(TypeError, match="add_: can only change a Tensor in place, got float"):
        pb.Tensor.add_(5.0, 1.0)


def test_out_must_be_a_tensor_that_fits():
    x = pb.tensor([1.0, 2.0])
    with pytest.raises(ArgumentTypeError, match="out= must be a Tensor, got list"):
        pb.add(x, x, out=[0.0, 0.0])
    with pytest.raises(ShapeError, match=r"shape \(2,\).*got shape \(3,\)"):
        pb.add(x, x, out=pb.zeros(3))


# -- modes and saved values ------------------------------------------------------------------------
def test_a_switch_that_was_used_as_a_block_can_be_used_again():
    switch = pb.set_grad_enabled(False)
    with switch:
        assert not pb.is_grad_enabled()
    assert pb.is_grad_enabled()
    with switch:
        assert not pb.is_grad_enabled()
    assert pb.is_grad_enabled()
    assert switch(pb.is_grad_enabled)() is False
    assert pb.is_grad_enabled()


def test_hooks_on_saved_tensors_must_be_callable_and_give_tensors():
    x = leaf(3.0)
    with pytest.raises(ArgumentTypeError, match="unpack_hook must be callable, got int"):
        pb.saved_tensors_hooks(lambda t: t, 3)
    with pb.saved_tensors_hooks(lambda t: t, lambda t: t.numpy()):
        y = x * x
    with pytest.raises(ArgumentTypeError, match="must return a Tensor, got ndarray"):
        y.sum().backward()


def test_hooks_that_keep_the_memory_of_a_saved_tensor_do_not_hide_its_change():
    x = leaf(3.0) * 1.0
    with pb.saved_tensors_hooks(lambda t: t, lambda t: t):
        y = x * x
    x.mul_(2.0)
    with pytest.raises(InplaceError, match="is at version 1; expected version 0"):
        y.sum().backward()


def test_an_argument_without_a_gradient_rule_says_so():
    op = Primitive("product", lambda xp, x, y: x * y, ("x", "y"), {}, {"x": lambda g, y: g * y})
    prepare(op)
    x, y = leaf(2.0), leaf(3.0)
    apply(op, (x, y.detach()), {}).sum().backward()
    assert x.grad.tolist() == [3.0]
    with pytest.raises(MissingRuleError, match="a gradient rule for the argument 'y'"):
        apply(op, (x, y), {}).sum().backward()


# -- what a tensor is ------------------------------------------------------------------------------
def test_size_dim_and_kind():
    x = pb.zeros((2, 3))
    assert (x.size, x.size(), x.size(0), x.size(-1)) == (6, (2, 3), 2, 3)
    assert x.dim() == 2
    assert x.is_floating_point()
    assert not pb.tensor([1]).is_floating_point()


def test_a_gradient_can_be_deleted():
    x = leaf(1.0)
    (x * 2.0).sum().backward()
    del x.grad
    assert x.grad is None


def test_data_is_the_values_without_history():
    x = leaf(1.0, 2.0)
    assert not x.data.requires_grad
    x.data[0] = 5.0
    assert x.tolist() == [5.0, 2.0]
    with pytest.raises(ArgumentTypeError, match="data: must be a Tensor, got list"):
        x.data = [1.0, 2.0]


def test_dlpack_shares_values_without_history():
    x = leaf(1.0, 2.0)
    assert np.from_dlpack(x.detach()).tolist() == [1.0, 2.0]
    assert x.detach().__dlpack_device__() == (1, 0)  # the CPU
    with pytest.raises(GraphError, match="can't export a Tensor that requires grad"):
        x.__dlpack__()


def test_a_tensor_of_one_element_is_a_number():
    assert complex(pb.tensor(1 + 2j)) == 1 + 2j
    assert [10, 20, 30][pb.tensor(1)] == 20
    with pytest.raises(DTypeError, match="only integer tensors can be an index, got dtype float32"):
        [10, 20, 30][pb.tensor(1.0)]


# -- operations ------------------------------------------------------------------------------------
def test_a_setting_without_a_default_is_required():
    with pytest.raises(TypeError, match="missing 1 required keyword-only argument: 'shape'"):
        index_put_p.public(pb.ones(3), index=0)


def test_stack_as_a_method():
    x = pb.tensor([1.0, 2.0])
    assert x.stack([x, x + 2.0], dim=1).tolist() == [[1.0, 3.0], [2.0, 4.0]]


def test_cuda_asks_for_the_current_or_a_numbered_device(monkeypatch):
    asked = []

    def library_for(device):
        asked.append(device)
        return NUMPY, None

    for module in (conversion, data_types):
        monkeypatch.setattr(module, "library_for", library_for)
    x = leaf(1.0, 2.0)
    y = x.cuda() * 1.0 + x.cuda(1)
    assert y.tolist() == [2.0, 4.0]
    assert set(asked) == {"cuda", "cuda:1"}
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    assert set(asked) == {"cuda", "cuda:1", "cpu"}


def test_a_tensor_on_a_gpu_is_not_moved_to_the_current_one(monkeypatch):
    for module in (conversion, data_types):
        monkeypatch.setattr(module, "library_for", lambda device: (NUMPY, None))
    x = leaf(1.0, 2.0)
    monkeypatch.setattr(pb.Tensor, "device", property(lambda self: "cuda:1"))
    assert x.cuda() is x
    assert x.cuda(0) is not x


def test_std_with_and_without_bias():
    x = pb.tensor([1.0, 3.0], dtype=pb.float64)
    assert x.std(unbiased=False).item() == 1.0
    assert x.std(unbiased=True).item() == pytest.approx(1.4142135623730951, rel=1e-12)


def test_a_new_tensor_like_another_is_on_the_device_that_is_named():
    x = pb.tensor([1.0, 2.0])
    made = pb.ones_like(x, device="cpu", requires_grad=True)
    assert (made.tolist(), made.device, made.requires_grad) == ([1.0, 1.0], "cpu", True)


def test_new_tensor_takes_numbers():
    x = pb.tensor([1.0], dtype=pb.float64)
    assert x.new_tensor([2, 3]).dtype is pb.float64
    with pytest.raises(GraphError, match=r"takes numbers, got a Tensor; use clone\(\) or detach"):
        x.new_tensor(x)


def test_reshape_can_always_copy():
    x = leaf(1.0, 2.0)
    base = x * 1.0
    y = pb.reshape(base, (2, 1), copy=True)
    base.mul_(5.0)
    assert y.tolist() == [[1.0], [2.0]]
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]
    with pytest.raises(ArgumentError, match="without a copy required"):
        pb.reshape(pb.zeros((2, 3)).t(), (6,), copy=False)


def test_a_tensor_without_axes_is_its_own_transpose():
    x = pb.tensor(2.0, requires_grad=True)
    y = x.transpose(0, -1)
    assert (y.shape, y.item()) == ((), 2.0)
    (y * 3.0).backward()
    assert x.grad.item() == 3.0


def test_astype_moves_to_the_device_it_is_given():
    x = pb.tensor([1.0, 2.0])
    moved = pb.astype(x, pb.float64, device="cpu")
    assert (moved.dtype, moved.device, moved.tolist()) == (pb.float64, "cpu", [1.0, 2.0])
    with pytest.raises(ValueError, match="device"):
        pb.astype(x, pb.float64, device="nowhere")
