"""traverse=True: tensors in containers are inputs; gradients come in the same structure."""

import collections
import dataclasses
import typing
import warnings

import pytest
from tests.tensors import leaf

import pullback as pb
from pullback.core.custom import pytree as tree
from pullback.errors import GradientError, InplaceError


class Layer(typing.NamedTuple):
    weight: object
    bias: object


@dataclasses.dataclass
class Settings:
    scale: object
    label: str = "a label"


def total(value):
    """Return the sum of the tensors in a structure."""
    tensors = [v for v in tree.leaves(value) if isinstance(v, pb.Tensor)]
    result = tensors[0]
    for t in tensors[1:]:
        result = result + t
    return result


def collecting(rule):
    """Return the operation `total` of one argument, whose gradient is `rule(g)`."""
    return pb.autograd_function(
        lambda ctx, items: total(items),
        lambda ctx, g: {"items": rule(g)},
        name="collect",
        traverse=True,
    )


def numbered(value, g, counter=None):
    """Return the structure with the k-th tensor replaced by g * 10**k, other leaves by None."""
    counter = iter(range(100)) if counter is None else counter
    return tree.map_leaves(
        lambda v: g * 10.0 ** next(counter) if isinstance(v, pb.Tensor) else None, value
    )


STRUCTURES = {
    "list": lambda a, b, c: [a, b, c],
    "tuple": lambda a, b, c: (a, b, c),
    "dict": lambda a, b, c: {"a": a, "b": b, "c": c},
    "ordered dict": lambda a, b, c: collections.OrderedDict(a=a, b=b, c=c),
    "NamedTuple": lambda a, b, c: Layer(a, (b, c)),
    "dataclass": lambda a, b, c: Settings([a, b, c]),
    "nested": lambda a, b, c: [{"w": (a, [b])}, Layer(c, None), "text", 3, []],
    "alone": None,
}


@pytest.mark.parametrize("kind", [k for k in STRUCTURES if k != "alone"])
def test_gradients_come_back_in_the_structure_of_the_argument(kind):
    build = STRUCTURES[kind]
    seen = []

    def forward(ctx, items):
        seen.append(items)
        assert not total(items).requires_grad
        return total(items)

    a, b, c = leaf(1.0), leaf(2.0), leaf(3.0)
    argument = build(a, b, c)
    op = pb.autograd_function(
        forward, lambda ctx, g: {"items": numbered(argument, g)}, traverse=True
    )
    y = op(argument)
    assert y.item() == 6.0
    assert type(seen[0]) is type(argument)
    y.backward()
    assert [t.grad.item() for t in (a, b, c)] == [1.0, 10.0, 100.0]


def test_containers_of_the_caller_are_untouched():
    a, b = leaf(1.0), leaf(2.0)
    inner = [a, {"b": b}]

    @pb.autograd_function(traverse=True)
    def f(ctx, items):
        items[0] = None
        return items[1]["b"] * 2.0

    f(inner)
    assert inner[0] is a
    assert inner[1]["b"] is b
    assert a.requires_grad


def test_a_class_traverses_where_it_says_so():
    class Sum(pb.Function):
        traverse = True

        @staticmethod
        def forward(ctx, layer, x):
            ctx.save_for_backward(layer.weight, x)
            return layer.weight * x + layer.bias

        @staticmethod
        def backward(ctx, grad_output):
            weight, x = ctx.saved_variables
            return {
                "layer": Layer(weight=grad_output * x, bias=grad_output),
                "x": grad_output * weight,
            }

    w, b, x = leaf(2.0), leaf(3.0), leaf(5.0)
    y = Sum.apply(Layer(w, b), x)
    assert y.item() == 13.0
    y.backward()
    assert [t.grad.item() for t in (w, b, x)] == [5.0, 1.0, 2.0]


def test_traversed_inputs_differentiate_twice():
    @pb.autograd_function(traverse=True)
    def dot(ctx, pairs):
        ctx.save_for_backward(*[t for pair in pairs for t in pair])
        return total([a * b for a, b in pairs])

    @dot.backward
    def _(ctx, grad_output):
        a, b, c, d = ctx.saved_variables
        return {"pairs": [(grad_output * b, grad_output * a), (grad_output * d, grad_output * c)]}

    a, b, c, d = (leaf(float(i)) for i in range(1, 5))
    y = dot([(a, b), (c, d)])
    ga, gd = pb.autograd.grad(y * y, (a, d), create_graph=True)  # 2 (ab + cd) b
    assert (ga.item(), gd.item()) == (56.0, 84.0)
    second = pb.autograd.grad(ga, (a, c))
    assert [g.item() for g in second] == [8.0, 16.0]


def test_a_tensor_that_is_no_container_is_its_own_structure():
    @pb.autograd_function(traverse=True)
    def f(ctx, x, items, n=2):
        return x * n + items[0]

    @f.backward
    def _(ctx, grad_output):
        return {"x": grad_output * 2.0, "items": [grad_output]}

    x, y = leaf(1.0), leaf(2.0)
    f(x, [y]).backward()
    assert (x.grad.item(), y.grad.item()) == (2.0, 1.0)


def test_gradients_by_position_are_one_an_argument():
    @pb.autograd_function(traverse=True)
    def f(ctx, x, items):
        return x + total(items)

    @f.backward
    def _(ctx, grad_output):
        return grad_output, [grad_output * 2.0, None, grad_output * 3.0]

    x, a, b = leaf(1.0), leaf(2.0), leaf(3.0)
    f(x, [a, "text", b]).backward()
    assert [t.grad.item() for t in (x, a, b)] == [1.0, 2.0, 3.0]


def test_starred_containers():
    @pb.autograd_function(traverse=True)
    def f(ctx, *groups, **named):
        return total([*groups, *named.values()])

    @f.backward
    def _(ctx, g):
        return {"groups": [[g, g * 10.0], [g * 100.0]], "named": {"last": (g * 1000.0,)}}

    leaves = [leaf(float(i)) for i in range(4)]
    f(leaves[:2], leaves[2:3], last=(leaves[3],)).backward()
    assert [t.grad.item() for t in leaves] == [1.0, 10.0, 100.0, 1000.0]


# -- partial tracking ------------------------------------------------------------------------------
def test_only_the_tensors_that_require_grad_are_tracked():
    @pb.autograd_function(traverse=True)
    def f(ctx, items):
        assert list(ctx.needs_input_grad) == [True]
        return total(items)

    @f.backward
    def _(ctx, g):
        assert ctx.needs_input_grad["items"]
        return {"items": [g, g * 10.0, None]}

    a, fixed = leaf(1.0), pb.tensor(2.0, dtype=pb.float64)
    y = f([fixed, a, pb.tensor(3)])
    assert [n is None for n, _ in y.grad_fn.next_functions] == [True, False, True]
    y.backward()
    assert a.grad.item() == 10.0
    assert fixed.grad is None


def test_flags_are_one_an_argument_and_narrowed():
    flags = []

    @pb.autograd_function(traverse=True)
    def f(ctx, items, x, others):
        flags.append(tuple(ctx.needs_input_grad))
        return total(items) + x + total(others)

    @f.backward
    def _(ctx, g):
        flags.append(tuple(ctx.needs_input_grad))
        return {"items": [g, g], "x": g, "others": {"c": g}}

    a, b, x = leaf(1.0), leaf(2.0), leaf(3.0)
    y = f([a, b], x, {"c": pb.tensor(1.0, dtype=pb.float64)})
    pb.autograd.grad(y, b, retain_graph=True)
    pb.autograd.grad(y, x, retain_graph=True)
    y.backward()
    assert flags == [
        (True, True, False),
        (True, False, False),
        (False, True, False),
        (True, True, False),
    ]


def test_grad_with_respect_to_one_tensor_of_a_container():
    f = collecting(lambda g: {"a": g * 2.0, "b": g * 3.0})
    a, b = leaf(1.0), leaf(2.0)
    y = f({"a": a, "b": b})
    (gb,) = pb.autograd.grad(y, b)
    assert gb.item() == 3.0
    assert a.grad is None


def test_none_for_a_container_or_a_tensor_of_it_contributes_nothing():
    @pb.autograd_function(traverse=True)
    def f(ctx, first, second):
        return total(first) + total(second)

    @f.backward
    def _(ctx, g):
        return {"first": None, "second": [None, g]}

    a, b, c = leaf(1.0), leaf(2.0), leaf(3.0)
    f([a], [b, c]).backward()
    assert (a.grad, b.grad, c.grad.item()) == (None, None, 1.0)


def test_the_same_tensor_twice_in_a_container_is_two_inputs():
    f = collecting(lambda g: [g, g * 10.0])
    a = leaf(1.0)
    f([a, a]).backward()
    assert a.grad.item() == 11.0


def test_without_a_tracked_tensor_nothing_is_recorded_or_warned():
    f = pb.autograd_function(lambda ctx, items: items[0], traverse=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert f([3]) == 3
        assert not f([pb.tensor([1.0])]).requires_grad
        assert f([leaf(1.0)]).requires_grad
        with pb.no_grad():
            assert not f([leaf(1.0)]).requires_grad


def test_saved_containers_members_are_version_checked():
    @pb.autograd_function(traverse=True)
    def f(ctx, items):
        ctx.save_for_backward(first=items[0])
        return items[0] * items[1]

    @f.backward
    def _(ctx, g):
        return {"items": [g, g * ctx.saved_variables.first]}

    a, b = leaf(1.0), leaf(2.0)
    c = a * 1.0
    y = f([c, b])
    c.add_(1.0)
    with pytest.raises(InplaceError, match="'first' is at version 1"):
        y.backward()


def test_a_change_in_place_of_a_member_is_detected_and_named():
    f = pb.autograd_function(lambda ctx, x, items: items[1].mul_(2.0) * 1.0, traverse=True)
    with pytest.raises(InplaceError, match=r"f|lambda.*'items' by an inplace operation"):
        f(leaf(1.0), [leaf(1.0), leaf(2.0)])


def test_a_member_can_be_marked_dirty():
    @pb.autograd_function(traverse=True)
    def add_into(ctx, items):
        items[0].add_(items[1])
        ctx.mark_dirty(items[0])
        return items[0]

    @add_into.backward
    def _(ctx, g):
        return {"items": (g, g)}

    a, b = leaf(1.0), leaf(2.0)
    c = a * 1.0
    assert add_into((c, b)) is c
    assert c.item() == 3.0
    (c * 2.0).backward()
    assert (a.grad.item(), b.grad.item()) == (2.0, 2.0)


# -- wrong structures ------------------------------------------------------------------------------
WRONG = {
    "too few": lambda g: [g],
    "too many": lambda g: [g, [g], g],
    "flattened": lambda g: [g, g, g],
    "bare tensor": lambda g: g,
    "dict for a list": lambda g: {"a": g, "b": [g, g]},
    "deeper": lambda g: [[g], [g, g]],
    "number": lambda g: 1.0,
}


@pytest.mark.parametrize("kind", WRONG)
def test_a_wrong_structure_names_operation_and_argument(kind):
    collect = collecting(lambda g: WRONG[kind](g))
    y = collect([leaf(1.0), [leaf(2.0), leaf(3.0)]])
    with pytest.raises(GradientError, match=r"collect.*'items'.*structure"):
        y.backward()


def test_wrong_keys_of_a_dict_name_operation_and_argument():
    collect = collecting(lambda g: {"weight": g, "bais": g * 10.0})
    w, b = leaf(1.0), leaf(2.0)
    with pytest.raises(GradientError, match=r"collect.*'items'.*structure.*'bias'"):
        collect({"weight": w, "bias": b}).backward()


def test_gradients_of_a_dict_are_matched_by_key_in_any_order():
    collect = collecting(lambda g: {"bias": g * 10.0, "weight": g})
    w, b = leaf(1.0), leaf(2.0)
    collect({"weight": w, "bias": b}).backward()
    assert (w.grad.item(), b.grad.item()) == (1.0, 10.0)


def test_a_wrong_shape_inside_a_container_names_the_argument():
    collect = collecting(lambda g: [g, pb.ones(3, dtype=pb.float64)])
    with pytest.raises(GradientError, match=r"collect.*'items.*\(\), got \(3,\)"):
        collect([leaf(1.0), leaf(2.0)]).backward()


def test_a_missing_container_names_the_argument():
    @pb.autograd_function(traverse=True)
    def collect(ctx, items, x):
        return total(items) + x

    @collect.backward
    def _(ctx, g):
        return {"x": g}

    with pytest.raises(GradientError, match=r"collect.*gradient for the argument 'items'"):
        collect([leaf(1.0)], leaf(2.0)).backward()


def test_a_nested_container_may_have_no_gradient():
    def forward(ctx, ts):
        return ts[0] * ts[1][0]

    op = pb.autograd_function(forward, lambda ctx, g: {"ts": [g * 4.0, None]}, traverse=True)
    x, y = leaf([3.0]), leaf([4.0])
    op([x, [y]]).sum().backward()
    assert x.grad.tolist() == [4.0]
    assert y.grad is None
