"""An empty subclass of Tensor: results of operations on its tensors are of its class."""

import copy
import pickle

import numpy as np
import pytest
from tests.ops import _cases
from tests.ops._cases import host

import pullback as pb
from pullback.core.custom import pytree
from pullback.core.tensor.tensor import box


class Sub(pb.Tensor):
    pass


class SubSub(Sub):
    pass


class Other(pb.Tensor):
    pass


def sub(values, cls=Sub):
    return box(np.array(values, dtype=np.float64), cls=cls)


def leaf(values, cls=Sub):
    return sub(values, cls).requires_grad_()


def kinds(results):
    return {type(r) for r in results}


# -- every operation ------------------------------------------------------------------------------
CASES = _cases.cases()
OPERATIONS = [case for case in CASES if case.has_rules]
# Made of other operations, they put their result together in a new tensor.
MADE_ANEW = {"histogram", "isreal", "mode"}
COMPOSITIONS = [c for c in CASES if not c.has_rules and c.name not in MADE_ANEW]


def inputs(case, places, cls=Sub):
    """Return a sample's tensors, those at `places` of the subclass."""
    arrays = [host(t).copy() for t in case.within(_cases.leaves(case.arrays()))]
    tensors = [box(a, cls=cls) if i in places else box(a) for i, a in enumerate(arrays)]
    for i in case.wanted:
        tensors[i].requires_grad_()
    return tensors


def check(case, places, cls=Sub):
    """Check class, values and gradients of a call where the inputs at `places` are of `cls`."""
    ours, theirs = inputs(case, places, cls), inputs(case, ())
    outs, plain = case.results(ours), case.results(theirs)
    assert kinds(outs) == {cls}
    assert kinds(plain) == {pb.Tensor}
    for a, b in zip(outs, plain, strict=True):
        np.testing.assert_allclose(host(a), host(b), rtol=1e-13, atol=1e-14)
    if not case.wanted:
        return
    found = []
    for tensors, results in ((ours, outs), (theirs, plain)):
        results = [r for r in case.observed(results) if r.requires_grad]
        seeds = [pb.asarray(s) for s in _cases.seeds_for(results, case.rng())]
        wanted = [tensors[i] for i in case.wanted]
        found.append(pb.autograd.grad(results, wanted, seeds, materialize_grads=True))
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(host(a), host(b), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("case", OPERATIONS, ids=str)
def test_the_results_of_an_operation_are_of_the_class_of_its_arguments(case):
    check(case, range(len(case.sample.shapes)))


@pytest.mark.parametrize("case", [c for c in OPERATIONS if len(c.sample.shapes) > 1], ids=str)
def test_one_argument_of_the_class_beside_tensors_is_enough(case):
    for place in range(len(case.sample.shapes)):
        check(case, (place,))


@pytest.mark.parametrize("case", COMPOSITIONS, ids=str)
def test_the_results_of_a_function_made_of_operations_are_of_the_class_of_its_arguments(case):
    outs = case.results(inputs(case, range(len(case.sample.shapes))))
    assert kinds(outs) == {Sub}


# -- mixtures -------------------------------------------------------------------------------------
MIXTURES = {
    "a number": lambda x: (x + 1, 2.0 - x, x**2, 3 / x),
    "an array": lambda x: (x + np.ones(3), np.ones(3) * x, np.add(np.ones(3), x), np.exp(x)),
    "a tensor": lambda x: (x + pb.ones(3), pb.ones(3) * x, pb.cat([pb.ones(3), x])),
    "a tensor that requires grad": lambda x: (pb.ones(3, requires_grad=True) * x,),
    "other dtypes": lambda x: (x + pb.tensor([1, 2, 3]), x.to(pb.float32), x * pb.tensor(1.0)),
    "comparisons": lambda x: (x > 1, x == x, x.argmax(), x.isnan()),
    "several results": lambda x: (*x.max(dim=0), *x.unbind(), *x.split(2), *x.sort()),
    "where": lambda x: (pb.where(pb.ones(3) > 0, x, 0.0), pb.where(x > 0, 1.0, pb.ones(3))),
    "views": lambda x: (x[0], x[1:], x[None].T, x.reshape(3, 1), x[:2][0], x.detach(), x.real),
    "copies": lambda x: (x.clone(), x[[0, 1]], x[x > 1], x.flip(0), x.detach().clone()),
}


@pytest.mark.parametrize("mode", [pb.enable_grad, pb.no_grad, pb.inference_mode])
@pytest.mark.parametrize("name", MIXTURES)
def test_beside_other_arguments_the_subclass_wins(name, mode):
    for x in (sub([1.0, 2.0, 3.0]), leaf([1.0, 2.0, 3.0])):
        with mode():
            assert kinds(MIXTURES[name](x)) == {Sub}


def test_the_most_derived_class_wins_on_either_side():
    x, y = sub([1.0]), sub([2.0], SubSub)
    assert kinds([x * y, y * x, y * pb.ones(1), pb.cat([pb.ones(1), x, y])]) == {SubSub}
    assert kinds([x * x]) == {Sub}


def test_of_two_unrelated_classes_the_first_argument_decides():
    x, y = sub([1.0]), sub([2.0], Other)
    assert (type(x * y), type(y * x)) == (Sub, Other)


def test_plain_tensors_stay_plain():
    x = pb.ones(3, requires_grad=True)
    assert kinds([x * 2, x[0], x.sum(), pb.cat([x, x]), x.detach()]) == {pb.Tensor}


# -- views and changes in place -------------------------------------------------------------------
def test_a_view_and_its_base_stay_of_the_class_when_either_changes():
    w = leaf([1.0, 2.0, 3.0])
    base = w * 1
    part = base[1:]
    part.mul_(2.0)
    base.add_(w)
    assert kinds([base, part, base[0], part[0]]) == {Sub}
    assert part.tolist() == [6.0, 9.0]
    (part * part).sum().backward()
    assert w.grad.tolist() == [0.0, 36.0, 54.0]


@pytest.mark.parametrize(
    "change",
    [
        lambda x: x.add_(1.0),
        lambda x: x.mul_(pb.ones(3)),
        lambda x: x.exp_(),
        lambda x: x.zero_(),
        lambda x: x.masked_fill_(x > 1, 0.0),
        lambda x: x.__iadd__(1.0),
        lambda x: x.copy_(pb.ones(3)),
    ],
)
def test_a_change_in_place_returns_the_tensor_itself(change):
    for x in (sub([1.0, 2.0, 3.0]), leaf([1.0, 2.0, 3.0]) * 1):
        assert change(x) is x
        assert type(x) is Sub


def test_a_tensor_that_is_changed_with_one_of_the_class_keeps_its_own():
    x = pb.ones(2, dtype=pb.float64)
    x.add_(sub([1.0, 2.0]))
    x[0] = sub(5.0)
    assert (type(x), x.tolist()) == (pb.Tensor, [5.0, 3.0])


# -- custom functions -----------------------------------------------------------------------------
seen = []


class Scale(pb.Function):
    """Notes down the classes that forward and backward are given."""

    @staticmethod
    def forward(ctx, x, factor):
        seen.append(("forward", type(x), type(factor)))
        ctx.save_for_backward(x=x)
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx, grad_output):
        seen.append(("backward", type(grad_output), type(ctx.saved_variables.x)))
        return grad_output * ctx.factor, None


@pytest.fixture(autouse=True)
def nothing_seen():
    seen.clear()


@pytest.mark.parametrize("create_graph", [False, True])
def test_a_custom_function_gets_plain_tensors_and_gives_the_class(create_graph):
    x = leaf([1.0, 2.0])
    y = Scale.apply(x, sub(3.0))
    assert type(y) is Sub
    pb.autograd.grad(y.sum(), x, create_graph=create_graph)
    plain = pb.Tensor
    assert seen == [("forward", plain, plain), ("backward", plain, plain)]


def test_a_custom_function_without_a_graph_gives_the_class():
    assert type(Scale.apply(sub([1.0]), 2.0)) is Sub
    with pb.no_grad():
        assert type(Scale.apply(leaf([1.0]), 2.0)) is Sub
    assert type(Scale.apply(pb.ones(1), 2.0)) is pb.Tensor
    assert {kind for _, kind, _ in seen} == {pb.Tensor}


def operation(forward):
    return pb.autograd_function(forward, lambda ctx, *g: g[0])


def changed(ctx, x):
    ctx.mark_dirty(x)
    return x.add_(1.0)


RETURNED = {
    "a new tensor": lambda ctx, x: x + 1.0,
    "its input": lambda ctx, x: x,
    "a view": lambda ctx, x: x[:],
    "several": lambda ctx, x: (x + 1.0, x * 2.0),
    "a dictionary": lambda ctx, x: {"a": x + 1.0, "b": [x * 2.0]},
    "an array": lambda ctx, x: x.numpy() + 1.0,
    "a changed input": changed,
}


@pytest.mark.parametrize("tracked", [False, True])
@pytest.mark.parametrize("name", RETURNED)
def test_whatever_a_custom_function_returns_is_of_the_class(name, tracked):
    forward = RETURNED[name]
    x = (leaf if tracked else sub)([1.0, 2.0]) * 1.0
    result = operation(forward)(x)
    outs = [value for value in pytree.leaves(result) if isinstance(value, pb.Tensor)]
    assert outs
    assert kinds(outs) == {Sub}
    if name == "a changed input":
        assert result is x


# -- copies ---------------------------------------------------------------------------------------
def test_a_deep_copy_and_an_unpickled_leaf_have_the_class():
    x = leaf([1.0, 2.0])
    for copied in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert type(copied) is Sub
        assert copied.requires_grad
        assert copied.tolist() == [1.0, 2.0]


def test_copies_of_a_leaf_of_a_subclass_keep_its_attributes():
    x = leaf([1.0, 2.0])
    x.label = ["weights"]
    x.grad = x.detach() * 3
    shallow, deep, unpickled = copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))
    assert type(shallow) is Sub
    assert shallow.label is x.label
    assert shallow.grad is None
    assert deep.label == unpickled.label == ["weights"]
    assert deep.label is not x.label
    assert deep.grad is not x.grad
    assert deep.grad.tolist() == [3.0, 6.0]
