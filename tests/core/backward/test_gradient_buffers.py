"""No gradient that one party holds is ever changed by another: leaves, hooks, rules, the caller."""

import warnings

import numpy as np
import pytest
from tests.tensors import leaf

import pullback as pb


def ones(n=2):
    return pb.ones(n, dtype=pb.float64)


def shared(*tensors):
    """Return whether any two of the tensors share memory."""
    arrays = [t.detach().numpy() for t in tensors]
    return any(np.shares_memory(a, b) for i, a in enumerate(arrays) for b in arrays[i + 1 :])


def backward(y, create_graph, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that .grad keeps the graph alive
        y.backward(create_graph=create_graph, **options)


recorded = pytest.mark.parametrize("create_graph", [False, True], ids=["plain", "create_graph"])


def same_for_both(x, y):
    @pb.autograd_function
    def add(ctx, x, y):
        return x + y

    @add.backward
    def _(ctx, grad_output):
        return {"x": grad_output, "y": grad_output}

    return add(x, y)


SUMS = {"built-in": lambda x, y: x + y, "custom": same_for_both}


@pytest.mark.case("AC3")
@recorded
@pytest.mark.parametrize("add", SUMS.values(), ids=SUMS.keys())
def test_two_leaves_never_share_a_gradient(add, create_graph):
    x, y = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    backward(add(x, y).sum(), create_graph)
    assert x.grad is not y.grad
    assert not shared(x.grad, y.grad)
    with pb.no_grad():
        x.grad.zero_()
    assert y.grad.tolist() == [1.0, 1.0]


FUNCTIONS = {
    "the leaf": lambda x: x,
    "times one": lambda x: x * 1.0,
    "plus zero": lambda x: x + 0.0,
    "twice": lambda x: x + x,
    "view": lambda x: x.view_as(x),
    "clone": lambda x: x.clone(),
}


@pytest.mark.case("AC3")
@recorded
@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS.keys())
def test_the_gradient_that_was_passed_in_is_neither_changed_nor_kept(function, create_graph):
    x = leaf([1.0, 2.0])
    passed = pb.tensor([5.0, 7.0], dtype=pb.float64)
    backward(function(x), create_graph, gradient=passed)
    first = x.grad.tolist()
    backward(function(x), create_graph, gradient=passed)
    assert passed.tolist() == [5.0, 7.0]
    assert x.grad.tolist() == [2.0 * value for value in first]
    assert not shared(x.grad, passed)


@recorded
def test_retain_grad_shares_memory_with_nothing(create_graph):
    x = leaf([1.0, 2.0])
    y = x + 0.0
    z = y + 0.0
    y.retain_grad()
    z.retain_grad()
    backward(z.sum(), create_graph)
    assert not shared(x.grad, y.grad, z.grad)


@pytest.mark.case("AC3")
@recorded
@pytest.mark.parametrize("add", SUMS.values(), ids=SUMS.keys())
def test_results_of_grad_share_memory_with_nothing(add, create_graph):
    x, y, g = leaf([1.0, 2.0]), leaf([3.0, 4.0]), ones()
    z = add(x, y)
    found = pb.autograd.grad(z, (x, y, z, x), g, create_graph=create_graph)
    assert not shared(*found, g)
    found[0].mul_(5.0)
    assert [f.tolist() for f in (*found[1:], g)] == [[1.0, 1.0]] * 4


@pytest.mark.parametrize("keeps", [False, True], ids=["nobody", "a hook"])
def test_a_result_of_grad_is_copied_where_somebody_else_holds_it(keeps):
    x, addresses, kept = leaf([1.0, 2.0]), [], []

    def hook(grad):
        addresses.append(grad.data_array().ctypes.data)
        if keeps:
            kept.append(grad)

    x.register_hook(hook)
    (found,) = pb.autograd.grad((x * 2.0).sum(), x)
    assert (found.data_array().ctypes.data in addresses) is not keeps
    found.mul_(5.0)
    assert found.tolist() == [10.0, 10.0]
    assert [g.tolist() for g in kept] == [[2.0, 2.0]] * keeps


def test_gradients_made_by_the_engine_can_be_written_to():
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    x.sum().backward()
    x.grad.mul_(2.0)
    x.grad[0] = 5.0
    assert x.grad.tolist() == [[5.0, 5.0], [2.0, 2.0]]
    (g,) = pb.autograd.grad(x[0, 0] + x.expand(2, 2, 2).sum(), x)
    g.add_(1.0)
    assert g.tolist() == [[4.0, 3.0], [3.0, 3.0]]


# -- hooks -----------------------------------------------------------------------------------------
PATHS = {
    "one path": lambda x: x * 5.0,
    "two paths": lambda x: x * 2.0 + x * 3.0,
    "three paths": lambda x: x * 2.0 + x * 2.0 + x,
}
every_path = pytest.mark.parametrize("path", PATHS.values(), ids=PATHS.keys())


@every_path
def test_register_hook_may_keep_its_gradient_which_does_not_grow_with_the_leafs(path):
    x = leaf([1.0, 2.0])
    kept = []
    x.register_hook(kept.append)
    y = path(x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert kept[0].tolist() == [5.0, 5.0]
    assert kept[1].tolist() == [5.0, 5.0]
    assert x.grad.tolist() == [10.0, 10.0]
    x.grad.zero_()
    assert kept[0].tolist() == [5.0, 5.0]


@every_path
def test_a_gradient_that_a_group_or_node_hook_kept_does_not_grow_with_the_leafs(path):
    x = leaf([1.0, 2.0])
    kept = []
    node = (x * 1.0).grad_fn.next_functions[0][0]
    node.register_prehook(lambda grads: kept.append(grads[0]))
    pb.register_multi_grad_hook([x], lambda grads: kept.append(grads[0]))
    y = path(x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert [g.tolist() for g in kept] == [[5.0, 5.0]] * 4
    assert x.grad.tolist() == [10.0, 10.0]


@every_path
def test_register_hook_may_return_a_tensor_of_its_own(path):
    x = leaf([1.0, 2.0])
    mine = ones()
    x.register_hook(lambda g: mine)
    y = path(x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert mine.tolist() == [1.0, 1.0]
    assert x.grad.tolist() == [2.0, 2.0]
    assert not shared(x.grad, mine)


def test_register_hook_may_change_later_what_it_kept():
    x, y = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    kept = []
    z = x + y
    z.register_hook(kept.append)
    z.sum().backward()
    kept[0].mul_(100.0)
    assert (x.grad.tolist(), y.grad.tolist()) == ([1.0, 1.0], [1.0, 1.0])


# -- rules -----------------------------------------------------------------------------------------
def doubling(rule):
    return pb.autograd_function(lambda ctx, x: x * 2.0, rule)


def test_a_rule_may_change_its_gradient_in_place_without_a_sibling_seeing_it():
    def rule(ctx, grad_output):
        grad_output.mul_(2.0)
        return {"x": grad_output}

    x = leaf([1.0, 2.0])
    y = x * 1.0
    z = y + 0.0  # its gradient is shared with the sibling below
    loss = doubling(rule)(z) + z
    loss.sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


@pytest.mark.parametrize("order", [0, 1])
def test_both_consumers_of_one_gradient_may_change_it(order):
    def rule(ctx, grad_output):
        grad_output.mul_(10.0)
        return {"x": grad_output}

    x, y = leaf([1.0, 2.0]), leaf([1.0, 2.0])
    op = doubling(rule)
    a, b = (op(x), op(y)) if order else (op(y), op(x))
    (a + b).sum().backward()
    assert (x.grad.tolist(), y.grad.tolist()) == ([10.0, 10.0], [10.0, 10.0])


def test_the_array_of_a_rules_gradient_is_read_only():
    def rule(ctx, grad_output):
        with pytest.raises(ValueError, match="read-only"):
            grad_output.numpy()[0] = 7.0
        return {"x": grad_output}

    x = leaf([1.0, 2.0])
    doubling(rule)(x).sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_a_gradient_that_a_rule_kept_stays_as_it_was():
    kept = []

    def rule(ctx, grad_output):
        kept.append(grad_output)
        return {"x": grad_output}

    x = leaf([1.0, 2.0])
    op = doubling(rule)
    for _ in range(3):
        op(x).sum().backward()
    assert [g.tolist() for g in kept] == [[1.0, 1.0]] * 3
    assert x.grad.tolist() == [3.0, 3.0]


def test_a_buffer_that_a_rule_returns_every_time_stays_its_own():
    mine = ones()
    op = doubling(lambda ctx, g: {"x": mine})
    x = leaf([1.0, 2.0])
    y = x * 1.0
    for _ in range(2):
        (op(y) + op(y) + op(y) + op(x)).sum().backward(retain_graph=True)
    assert mine.tolist() == [1.0, 1.0]
    assert x.grad.tolist() == [8.0, 8.0]


def test_a_raw_array_that_a_rule_returns_every_time_stays_its_own():
    mine = np.ones(2)
    op = doubling(lambda ctx, g: {"x": mine})
    x = leaf([1.0, 2.0])
    for _ in range(2):
        (op(x) + op(x)).sum().backward()
    x.grad.mul_(100.0)
    assert mine.tolist() == [1.0, 1.0]


def test_an_input_returned_as_its_own_gradient_is_not_grown():
    @pb.autograd_function
    def half_square(ctx, x):
        ctx.save_for_backward(x=x)
        return x * x * 0.5

    @half_square.backward
    def _(ctx, grad_output):
        return {"x": ctx.saved_variables.x}

    x = leaf([1.0, 2.0])
    for _ in range(3):
        half_square(x).sum().backward()
    assert x.tolist() == [1.0, 2.0]
    assert x.grad.tolist() == [3.0, 6.0]


# -- no copy where nobody else holds the memory ---------------------------------------------------
def address(tensor):
    return tensor.data_array().ctypes.data


@pytest.mark.parametrize("kept", [False, True])
def test_a_gradient_becomes_grad_without_a_copy_unless_somebody_holds_it(kept):
    made, held = [], []

    @pb.autograd_function
    def double(ctx, x):
        return x * 2

    @double.backward
    def _(ctx, grad_output):
        gradient = grad_output * 2
        made.append(address(gradient))
        held.extend([gradient] if kept else [])
        return gradient

    x = pb.ones(3, requires_grad=True)
    double(x).backward(pb.ones(3))
    assert (address(x.grad) == made[0]) is not kept
    assert x.grad.tolist() == [2.0, 2.0, 2.0]


def test_a_view_of_an_unshared_array_is_copied_into_grad():
    @pb.autograd_function
    def first_row(ctx, x):
        return x[0] * 1

    @first_row.backward
    def _(ctx, grad_output):
        return pb.asarray(np.zeros((4, 3), np.float32))[:2]

    x = pb.ones((2, 3), requires_grad=True)
    first_row(x).backward(pb.ones(3))
    assert x.grad.data_array().base is None


def test_a_gradient_that_a_hook_kept_is_not_written_to():
    x = leaf([1.0, 2.0])
    kept = []
    y = x * 3.0
    y.register_hook(kept.append)
    y.sum().backward()
    x.grad = kept[0]
    (x * 4.0).sum().backward()
    assert x.grad.tolist() == [5.0, 5.0]
    assert kept[0].tolist() == [1.0, 1.0]


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


@pytest.mark.parametrize("times", [1, 2])
def test_a_square_by_multiplication_leaves_the_gradient_that_came(times):
    x, seed = leaf([3.0, -1.0]), pb.tensor([1.0, 10.0], dtype=pb.float64)
    y = x * x
    for _ in range(times):
        y.backward(seed, retain_graph=True)
    assert x.grad.tolist() == [6.0 * times, -20.0 * times]
    assert seed.tolist() == [1.0, 10.0]
    assert x.tolist() == [3.0, -1.0]


def test_a_square_by_multiplication_shows_hooks_both_of_its_gradients():
    x, seen = leaf([3.0]), []
    y = x * x
    y.grad_fn.register_hook(lambda grads, _: seen.append([g.tolist() for g in grads]))
    y.backward()
    assert seen == [[[3.0], [3.0]]]
    assert x.grad.tolist() == [6.0]


# -- accumulation ----------------------------------------------------------------------------------
@pytest.mark.case("AC1")
def test_backward_accumulates_in_place_without_create_graph():
    x = leaf(np.full((2, 2), 3.0))
    out = (x * 4).sum()
    out.backward(retain_graph=True)
    held = x.grad
    assert held.tolist() == [[4.0] * 2] * 2
    out.backward()
    assert x.grad is held
    assert held.tolist() == [[8.0] * 2] * 2


@pytest.mark.case("AC1")
def test_backward_accumulates_into_an_assigned_gradient():
    x = leaf([1.0, 2.0])
    mine = pb.tensor([10.0, 20.0], dtype=pb.float64)
    x.grad = mine
    (x * 3).sum().backward()
    assert x.grad is mine
    assert mine.tolist() == [13.0, 23.0]


@pytest.mark.case("AC1")
def test_backward_accumulates_out_of_place_with_create_graph():
    x = leaf([2.0])
    out = x**3
    with pytest.warns(UserWarning, match="create_graph"):
        out.backward(create_graph=True)
    held = x.grad
    assert held.tolist() == [12.0]
    with pytest.warns(UserWarning, match="create_graph"):
        out.backward(create_graph=True)
    assert x.grad is not held
    assert held.tolist() == [12.0]
    assert x.grad.tolist() == [24.0]
    assert x.grad.requires_grad is True


@pytest.mark.case("AC2")
def test_a_gradient_that_several_consumers_share_is_not_changed():
    x, y = leaf(np.ones((2, 2))), leaf(np.ones((2, 2)))
    a, b, c = x + 2, y + 2, x + 2
    add2 = (a + b) + c
    for _ in range(4):
        a, b, c = a * 2, b * 2, c * 2
    out = add2 + (a + b + c)
    out.backward(pb.ones((2, 2), dtype=pb.float64))
    assert x.grad.tolist() == [[34.0] * 2] * 2
    assert y.grad.tolist() == [[17.0] * 2] * 2


@pytest.mark.case("AC3")
def test_leaves_share_no_view_of_one_gradient():
    x, y = leaf([[1.0, 2.0]]), leaf([[3.0], [4.0]])

    class Transposed(pb.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x + y.t()

        @staticmethod
        def backward(ctx, grad_output):
            return {"x": grad_output, "y": grad_output.t()}

    Transposed.apply(x, y).sum().backward()
    x.grad.mul_(100)
    assert y.grad.tolist() == [[1.0], [1.0]]


@pytest.mark.case("AC3")
def test_backward_of_one_root_twice_does_not_change_the_initial_gradient():
    # two roots that lead to one node: its buffer starts as the user's own gradient
    x = leaf([1.0])
    y = x * 1
    mine = pb.tensor([5.0], dtype=pb.float64)
    pb.autograd.backward([y, y], [mine, mine])
    assert mine.tolist() == [5.0]
    assert x.grad.tolist() == [10.0]


@pytest.mark.case("AC4")
def test_gradients_without_elements():
    a = pb.zeros((4, 0), dtype=pb.float64, requires_grad=True)
    b = leaf([[1.0], [2.0], [3.0], [4.0]])
    c = a + b
    assert tuple(c.shape) == (4, 0)
    c.sum().backward()
    assert tuple(a.grad.shape) == (4, 0)
    assert b.grad.tolist() == [[0.0]] * 4


@pytest.mark.case("AC5")
def test_backward_with_create_graph_warns_of_the_reference_cycle_and_grad_does_not():
    x = leaf([2.0])
    with pytest.warns(UserWarning, match=r"backward\(\) with create_graph=True.* reference cycle"):
        (x**3).backward(create_graph=True)
    assert pb.autograd.grad(x**3, x, create_graph=True)[0].tolist() == [12.0]


HOOKS = {
    "register_hook": lambda t, hook: t.register_hook(hook),
    "grad_fn.register_prehook": lambda t, hook: t.grad_fn.register_prehook(lambda g: hook(*g)),
    "grad_fn.register_hook": lambda t, hook: t.grad_fn.register_hook(lambda g, _: hook(*g)),
}


@pytest.mark.parametrize("name", HOOKS)
@pytest.mark.parametrize("is_array", [True, False])
def test_a_buffer_that_a_hook_fills_in_every_call_is_copied(name, is_array):
    buffer = np.empty(3) if is_array else pb.empty(3, dtype=pb.float64)

    def hook(g):
        buffer[...] = g.numpy().reshape(3) * 2.0
        return pb.asarray(buffer).reshape(g.shape) if is_array else buffer

    x = pb.tensor([1.0, 2.0, 3.0], dtype=pb.float64, requires_grad=True)
    y = pb.tensor([4.0, 5.0, 6.0], dtype=pb.float64, requires_grad=True)
    through = [x.clone(), y.clone()]
    for t in through:
        HOOKS[name](t, hook)
    sum((t * t).sum() for t in through).backward()
    assert (x.grad.tolist(), y.grad.tolist()) == ([4.0, 8.0, 12.0], [16.0, 20.0, 24.0])
