"""Calling an operation: every kind of parameter, with gradients and flags by name."""

import copy
import functools
import linecache
import pickle
import warnings
import weakref

import numpy as np
import pytest
from tests.tensors import leaf

import pullback as pb
from pullback.errors import GradientError, GraphError


def weighted(names):
    """Return a rule that gives the k-th of `names` the gradient 10**k, and records the flags."""

    def rule(ctx, grad_output):
        FLAGS[:] = list(ctx.needs_input_grad)
        return {name: grad_output * 10.0**k for k, name in enumerate(names)}

    return rule


FLAGS = []


# -- kinds of parameters ---------------------------------------------------------------------------
PLAIN = pb.autograd_function(
    lambda ctx, a, b, c=3.0: a + b * 10.0 + c * 100.0, weighted(["a", "b", "c"])
)


@pytest.mark.parametrize(
    "call",
    [
        lambda a, b, c: PLAIN(a, b, c),
        lambda a, b, c: PLAIN(a, b, c=c),
        lambda a, b, c: PLAIN(a, c=c, b=b),
        lambda a, b, c: PLAIN(c=c, b=b, a=a),
        lambda a, b, c: PLAIN(*(a, b), **{"c": c} | {}),
    ],
    ids=["positional", "last by name", "two by name", "all by name", "unpacked"],
)
def test_arguments_by_position_and_name_in_any_order(call):
    a, b, c = leaf(1.0), leaf(2.0), leaf(3.0)
    y = call(a, b, c)
    assert y.item() == 321.0
    y.backward()
    assert [t.grad.item() for t in (a, b, c)] == [1.0, 10.0, 100.0]


def test_a_default_is_filled_in_and_needs_no_gradient():
    a, b = leaf(1.0), leaf(2.0)
    y = PLAIN(a, b)
    assert y.item() == 321.0
    y.backward()
    assert FLAGS == [True, True, False]
    assert b.grad.item() == 10.0


def test_a_default_may_be_a_tensor_that_requires_grad():
    shared = leaf(5.0)

    @pb.autograd_function
    def f(ctx, x, scale=shared):
        ctx.save_for_backward(x=x, scale=scale)
        return x * scale

    @f.backward
    def _(ctx, grad_output):
        v = ctx.saved_variables
        return {"x": grad_output * v.scale, "scale": grad_output * v.x}

    x = leaf(2.0)
    f(x).backward()
    assert (x.grad.item(), shared.grad.item()) == (5.0, 2.0)


def test_keyword_only_arguments():
    @pb.autograd_function
    def f(ctx, x, *, gain, offset=1.0):
        ctx.save_for_backward(x=x, gain=gain)
        assert list(ctx.needs_input_grad.keys()) == ["x", "gain", "offset"]
        return x * gain + offset

    @f.backward
    def _(ctx, grad_output):
        v = ctx.saved_variables
        assert ctx.needs_input_grad.gain
        assert not ctx.needs_input_grad.offset
        return {"gain": grad_output * v.x, "x": grad_output * v.gain}

    x, gain = leaf(2.0), leaf(3.0)
    y = f(x, gain=gain)
    assert y.item() == 7.0
    y.backward()
    assert (x.grad.item(), gain.grad.item()) == (3.0, 2.0)
    with pytest.raises(TypeError, match="gain"):
        f(x)


def test_positional_only_arguments():
    f = pb.autograd_function(lambda ctx, a, /, b: a + b, weighted(["a", "b"]))
    a, b = leaf(1.0), leaf(2.0)
    f(a, b=b).backward()
    assert (a.grad.item(), b.grad.item()) == (1.0, 10.0)
    with pytest.raises(TypeError, match="a"):
        f(a=a, b=b)


@pytest.mark.parametrize(
    "grads",
    [
        lambda g: {"xs": [g, 10.0 * g, 100.0 * g]},
        lambda g: {"xs": (g, 10.0 * g, 100.0 * g)},
        lambda g: {"xs[0]": g, "xs[1]": 10.0 * g, "xs[2]": 100.0 * g},
        lambda g: {"xs[2]": 100.0 * g, "xs[0]": g, "xs[1]": 10.0 * g},
        lambda g: (g, 10.0 * g, 100.0 * g),
        lambda g: [g, 10.0 * g, 100.0 * g, None],
    ],
    ids=["list", "tuple", "elements", "elements in any order", "position", "trailing None"],
)
def test_starred_arguments_get_gradients_by_group_element_or_position(grads):
    f = pb.autograd_function(
        lambda ctx, *xs: functools.reduce(lambda a, b: a + b, xs), lambda ctx, g: grads(g)
    )
    leaves = [leaf(1.0), leaf(2.0), leaf(3.0)]
    y = f(*leaves)
    assert y.item() == 6.0
    y.backward()
    assert [t.grad.item() for t in leaves] == [1.0, 10.0, 100.0]


def test_flags_of_starred_arguments():
    def rule(ctx, grad_output):
        flags = ctx.needs_input_grad
        assert list(flags) == [True, True, False, True]
        assert flags.keys() == ["x", "xs[0]", "xs[1]", "xs[2]"]
        assert flags["xs[2]"]
        assert not flags["xs[1]"]
        assert not flags[2]
        return {"x": grad_output, "xs": [grad_output, None, None]}

    f = pb.autograd_function(lambda ctx, x, *xs: x + xs[0], rule)
    x, y, z = leaf(1.0), leaf(2.0), leaf(3.0)
    f(x, y, "a string", z).backward()
    assert (x.grad.item(), y.grad.item(), z.grad) == (1.0, 1.0, None)


@pytest.mark.parametrize(
    "grads",
    [
        lambda g: {"x": g, "named": {"a": 10.0 * g, "b": 100.0 * g}},
        lambda g: {"named": {"b": 100.0 * g, "a": 10.0 * g}, "x": g},
        lambda g: {"b": 100.0 * g, "a": 10.0 * g, "x": g},
        lambda g: (g, 10.0 * g, 100.0 * g),
    ],
    ids=["group", "group in any order", "names", "position"],
)
def test_double_starred_arguments_get_gradients_by_group_name_or_position(grads):
    f = pb.autograd_function(
        lambda ctx, x, **named: x + named["a"] * named["b"], lambda ctx, g: grads(g)
    )
    x, a, b = leaf(1.0), leaf(2.0), leaf(3.0)
    y = f(x, a=a, b=b)
    assert y.item() == 7.0
    y.backward()
    assert [t.grad.item() for t in (x, a, b)] == [1.0, 10.0, 100.0]


def test_flags_of_double_starred_arguments():
    def rule(ctx, grad_output):
        assert dict(ctx.needs_input_grad.items()) == {"x": False, "a": True, "n": False}
        assert ctx.needs_input_grad.a
        return {"a": grad_output}

    f = pb.autograd_function(lambda ctx, x, **named: x + named["a"] * named["n"], rule)
    a = leaf(2.0)
    f(pb.tensor(1.0, dtype=pb.float64), a=a, n=3).backward()
    assert a.grad.item() == 1.0


def test_a_keyword_may_have_the_name_of_the_group_or_of_a_positional_parameter():
    f = pb.autograd_function(lambda ctx, x, /, **named: x * named["named"] + named["x"])
    assert f(leaf(2.0), named=3.0, x=4.0).item() == 10.0
    g = pb.autograd_function(lambda ctx, *xs, **named: xs[0] * named["xs"])
    assert g(leaf(2.0), xs=5.0).item() == 10.0


def test_every_kind_of_parameter_at_once():
    def forward(ctx, a, /, b, *rest, c, d=4.0, **others):
        assert len(rest) == 2
        return a + b + rest[0] + rest[1] + c + d + others["e"]

    f = pb.autograd_function(forward, weighted(["a", "b", "rest[0]", "rest[1]", "c", "d", "e"]))
    a, b, r, s, c, d, e = (leaf(float(i)) for i in range(1, 8))
    y = f(a, b, r, s, e=e, d=d, c=c)
    assert y.item() == 28.0
    y.backward()
    assert [t.grad.item() for t in (a, b, r, s, c, d, e)] == [10.0**k for k in range(7)]
    assert FLAGS == [True] * 7


def test_no_starred_arguments_at_all():
    f = pb.autograd_function(
        lambda ctx, x, *xs, **named: x * 2.0,
        lambda ctx, g: {"x": g * 2.0, "xs": [], "named": {}},
    )
    x = leaf(1.0)
    f(x).backward()
    assert x.grad.item() == 2.0


def test_too_few_gradients_of_a_group_names_it():
    f = pb.autograd_function(lambda ctx, *xs: xs[0] + xs[1], lambda ctx, g: {"xs": [g]})
    with pytest.raises(GradientError, match=r"2 gradients for 'xs', got 1"):
        f(leaf(1.0), leaf(2.0)).backward()


def test_a_wrong_name_within_a_group_is_an_error():
    f = pb.autograd_function(
        lambda ctx, x, **named: x + named["scale"],
        lambda ctx, g: {"x": g, "named": {"scael": g}},
    )
    with pytest.raises(GradientError, match="scale"):
        f(leaf(1.0), scale=leaf(2.0)).backward()


@pytest.mark.case("F13")
def test_setup_context_receives_arguments_with_defaults():
    class Power(pb.Function):
        @staticmethod
        def forward(x, y=3, *, scale=1.0):
            return x**y * scale

        @staticmethod
        def setup_context(ctx, inputs, output):
            x, ctx.y, ctx.scale = inputs
            ctx.save_for_backward(x=x)
            assert output.shape == x.shape

        @staticmethod
        def backward(ctx, grad_output):
            x = ctx.saved_variables.x
            return {"x": grad_output * ctx.scale * ctx.y * x ** (ctx.y - 1)}

    x = leaf(2.0)
    Power.apply(x).backward()
    assert x.grad.item() == 12.0
    Power.apply(x, scale=10.0, y=2).backward()
    assert x.grad.item() == 52.0


# -- what arguments may be -------------------------------------------------------------------------
def test_arguments_may_be_any_object():
    received = []
    objects = [None, True, 3, "text", {1, 2}, print, object(), np.arange(3.0), pb.float32, {}, ()]

    @pb.autograd_function
    def f(ctx, x, *others):
        received.extend(others)
        return x * 2.0

    @f.backward
    def _(ctx, grad_output):
        return {"x": grad_output * 2.0}

    x = leaf(1.0)
    f(x, *objects).backward()
    assert all(a is b for a, b in zip(received, objects, strict=True))
    assert x.grad.item() == 2.0


def test_the_same_tensor_twice_is_two_inputs():
    f = pb.autograd_function(lambda ctx, a, b: a + b, weighted(["a", "b"]))
    x = leaf(1.0)
    y = f(x, x)
    assert len(y.grad_fn.next_functions) == 2
    y.backward()
    assert x.grad.item() == 11.0
    assert FLAGS == [True, True]


def test_only_arguments_that_require_grad_are_tracked():
    f = pb.autograd_function(lambda ctx, a, b: a + b, weighted(["a", "b"]))
    x, constant = leaf(1.0), pb.tensor(2.0, dtype=pb.float64)
    y = f(x, constant)
    assert [n is None for n, _ in y.grad_fn.next_functions] == [False, True]
    y.backward()
    assert FLAGS == [True, False]
    assert constant.grad is None


def test_integer_tensors_are_arguments_that_need_no_gradient():
    f = pb.autograd_function(lambda ctx, x, rows: x[rows], lambda ctx, g: {"x": pb.ones_like(g)})
    x = leaf([1.0, 2.0])
    y = f(x, pb.tensor([1, 0]))
    assert y.tolist() == [2.0, 1.0]
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


@pytest.mark.case("F05")
def test_without_a_tensor_that_requires_grad_nothing_is_recorded():
    f = pb.autograd_function(lambda ctx, a, b=2: a * b)
    assert f(3) == 6
    y = f(pb.tensor([1.0]))
    assert not y.requires_grad
    assert y.grad_fn is None


# -- containers ------------------------------------------------------------------------------------
CONTAINERS = {
    "list": lambda t: [t],
    "tuple": lambda t: (1, t),
    "dict": lambda t: {"key": t},
    "nested": lambda t: [{"key": (1, [t])}],
}


def first_of(ctx, x, items):
    return x * 2.0


@pytest.mark.parametrize("kind", CONTAINERS)
def test_a_tracked_tensor_in_a_container_warns_of_operation_and_argument(kind):
    op = pb.autograd_function(first_of, lambda ctx, g: {"x": g * 2.0})
    x, hidden = leaf(1.0), leaf(5.0)
    with pytest.warns(pb.UntrackedTensorWarning, match=r"first_of: the argument 'items'") as caught:
        y = op(x, CONTAINERS[kind](hidden))
    assert "traverse=True" in str(caught[0].message)
    assert caught[0].filename == __file__
    assert "y = op(x, CONTAINERS" in linecache.getline(__file__, caught[0].lineno)
    y.backward()
    assert (x.grad.item(), hidden.grad) == (2.0, None)


def test_a_class_warns_at_the_users_line_too():
    class First(pb.Function):
        forward = staticmethod(first_of)

    with pytest.warns(pb.UntrackedTensorWarning, match="First") as caught:
        First.apply(leaf(1.0), [leaf(2.0)])
    assert caught[0].filename == __file__
    with pytest.warns(pb.UntrackedTensorWarning, match="First") as caught:
        First()(leaf(1.0), [leaf(2.0)])
    assert caught[0].filename == __file__


def test_a_keyword_argument_warns_too():
    op = pb.autograd_function(first_of)
    with pytest.warns(pb.UntrackedTensorWarning, match="'items'"):
        op(items=[leaf(1.0)], x=leaf(2.0))


@pytest.mark.parametrize(
    "items",
    [[1, "a"], [pb.tensor([1.0])], {"key": pb.tensor([1])}, (), None, "text", np.arange(3)],
    ids=["no tensors", "untracked", "untracked in dict", "empty", "None", "str", "array"],
)
def test_nothing_is_warned_of_where_no_gradient_is_lost(items):
    op = pb.autograd_function(first_of)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert op(leaf(1.0), items).item() == 2.0


def test_nothing_is_warned_of_under_no_grad_or_for_starred_tensors():
    op = pb.autograd_function(first_of)
    starred = pb.autograd_function(lambda ctx, *xs: xs[0] * 2.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pb.no_grad():
            assert op(leaf(1.0), [leaf(2.0)]).item() == 2.0
        assert starred(leaf(1.0), leaf(2.0)).item() == 2.0


def test_a_view_among_the_arguments_is_brought_up_to_date():
    def forward(ctx, t, factor):
        return t * factor

    scale = pb.autograd_function(forward, lambda ctx, g: {"t": g * 3.0, "factor": None})
    x = leaf([1.0, 2.0])
    base = x * 1.0
    part = base[1:]
    base.mul_(10.0)
    y = scale(part, factor=3.0)
    assert y.tolist() == [60.0]
    y.sum().backward()
    assert x.grad.tolist() == [0.0, 30.0]


# -- one call after another ------------------------------------------------------------------------
@pb.autograd_function
def scaled(ctx, x, w, *, times=1.0):
    ctx.save_for_backward(x=x, w=w, times=times)
    return x * w * times


@scaled.backward
def _(ctx, grad_output):
    saved = ctx.saved_variables
    grads = {"x": grad_output * saved.w * saved.times, "w": grad_output * saved.x * saved.times}
    return {name: g for name, g in grads.items() if getattr(ctx.needs_input_grad, name)}


def test_calls_of_one_operation_do_not_depend_on_each_other():
    kinds = [
        (pb.tensor([2.0, 3.0], requires_grad=True), pb.tensor([5.0, 7.0]), 1.0),
        (pb.tensor([2.0, 3.0]), pb.tensor([5.0, 7.0], requires_grad=True), 2.0),
        (pb.tensor(2.0, requires_grad=True), pb.tensor(5.0, requires_grad=True), 1),
        (pb.tensor(np.array([2.0]), requires_grad=True), 5.0, 2.0),
        (pb.tensor(np.array([2j]), requires_grad=True), 3.0, 1.0),
        (pb.tensor([2.0, 3.0, 4.0], requires_grad=True)[1:], pb.tensor([5.0, 7.0]), 1.0),
    ]

    def gradients(x, w, times):
        tracked = [t for t in (x, w) if isinstance(t, pb.Tensor) and t.requires_grad]
        result = scaled(x, w, times=times)
        return pb.autograd.grad(result, tracked, pb.ones_like(result), retain_graph=True)

    def expected(x, w, times):
        tracked = [t for t in (x, w) if isinstance(t, pb.Tensor) and t.requires_grad]
        result = x * w * times
        return pb.autograd.grad(result, tracked, pb.ones_like(result), retain_graph=True)

    for first in kinds:
        for second in kinds:
            for x, w, times in (first, second, first):
                found = gradients(x, w, times)
                for g, e in zip(found, expected(x, w, times), strict=True):
                    assert (g.tolist(), g.dtype, g.shape) == (e.tolist(), e.dtype, e.shape)


@pytest.mark.parametrize("returned", [{"x": 1, "v": 1}, {"x": 1, "v": None}, {"w": 1}, {"v": 1}])
def test_names_are_checked_also_where_as_many_came_as_there_are_arguments(returned):
    @pb.autograd_function
    def named(ctx, x, w):
        return x * w

    @named.backward
    def _(ctx, grad_output):
        return {name: v and grad_output * v for name, v in returned.items()}

    x = pb.tensor([1.0], requires_grad=True)
    for _ in range(2):
        with pytest.raises(GradientError, match=r"named.*(no argument|for the argument 'x')"):
            named(x, pb.tensor([2.0])).backward()
    assert x.grad is None


def test_a_new_rule_replaces_the_one_that_ran():
    @pb.autograd_function
    def same(ctx, x):
        return x * 1.0

    x = pb.tensor([1.0], requires_grad=True)
    for factor in (2.0, 3.0):
        same.backward(lambda ctx, g, factor=factor: {"x": g * factor})
        assert pb.autograd.grad(same(x).sum(), x)[0].tolist() == [factor]


# -- what the user keeps ---------------------------------------------------------------------------
@pytest.mark.parametrize("saved", [True, False])
def test_a_result_that_forward_keeps_shares_its_versions_with_the_callers(saved):
    kept = []

    @pb.autograd_function
    def keeping(ctx, x):
        result = x * 2.0
        if saved:
            ctx.save_for_backward(result=result)
        kept.append(result)
        return result

    x = pb.tensor([1.0], requires_grad=True)
    y = keeping(x)
    assert y is not kept[0]
    assert (y._version, kept[0].requires_grad) == (0, False)
    kept[0].add_(1.0)
    assert (y.tolist(), y._version) == ([3.0], 1)


def test_a_context_that_is_kept_does_not_keep_the_graph():
    kept = []

    @pb.autograd_function
    def keeping(ctx, x, w):
        kept.append(ctx)
        return x * w

    @keeping.backward
    def _(ctx, grad_output):
        kept.append(ctx)
        return {"x": grad_output, "w": grad_output}

    x = pb.tensor([1.0], requires_grad=True)
    before = x * 2.0
    node = weakref.ref(before.grad_fn)
    y = keeping(before, pb.tensor([2.0]))
    pb.autograd.grad(y, before)
    del y, before
    assert node() is None
    assert [tuple(ctx.needs_input_grad) for ctx in kept] == [(True, False)] * 2


def test_a_context_that_is_kept_does_not_keep_what_was_saved():
    kept = []

    @pb.autograd_function
    def keeping(ctx, x):
        kept.append(ctx)
        ctx.save_for_backward(x=x)
        return x * 2.0

    @keeping.backward
    def _(ctx, grad_output):
        return {"x": grad_output}

    before = pb.tensor([1.0], requires_grad=True) * 2.0
    array = weakref.ref(before._data)
    keeping(before).backward()
    del before
    assert array() is None


# -- operations as objects -------------------------------------------------------------------------
def test_an_operation_is_copied_as_a_function_is():
    assert copy.copy(scaled) is scaled
    assert copy.deepcopy([scaled])[0] is scaled


def doubled_forward(ctx, x):
    return x * 2.0


def doubled_backward(ctx, grad_output):
    return {"x": grad_output * 2.0}


@pytest.mark.parametrize("name", ["scaled", "doubled"])
def test_an_operation_is_pickled_by_its_name_or_by_its_functions(name):
    doubled = pb.autograd_function(doubled_forward, doubled_backward, name="doubled")
    op = {"scaled": scaled, "doubled": doubled}[name]
    found = pickle.loads(pickle.dumps(op))
    assert (found is op, found.__name__) == (name == "scaled", name)
    x, w = leaf(3.0), leaf(2.0)
    assert (found(x, w) if name == "scaled" else found(x)).item() == 6.0
    found.backward(op.rule)


def test_the_call_of_an_operation_that_is_gone_says_so():
    call = pb.autograd_function(doubled_forward, doubled_backward, name="doubled").__call__
    with pytest.raises(GraphError, match=r"^doubled: the operation is gone"):
        call(leaf(1.0))


@pytest.mark.usefixtures("no_collector")
def test_what_forward_captured_is_freed_with_the_operation():
    def capturing():
        array = np.ones(3)
        op = pb.autograd_function(lambda ctx, x: x * pb.asarray(array), doubled_backward)
        op(pb.ones(3, requires_grad=True)).sum().backward()
        return weakref.ref(array)

    assert capturing()() is None


# -- names -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["P_x", "STEP_n", "_", "__op", "op", "self", "ctx_", "node", "g0"])
def test_an_argument_may_have_any_name(name):
    made = {}
    exec(
        f"def forward(ctx, {name}, *, w_{name}=3.0):\n"
        f"    ctx.save_for_backward({name}={name})\n    return {name} * w_{name}\n"
        f"def backward(ctx, grad_output):\n    ctx.saved_variables['{name}']\n"
        f"    return {{'{name}': grad_output * 3.0}}\n",
        made,
    )
    op = pb.autograd_function(made["forward"], made["backward"])
    for call in (lambda x: op(x), lambda x: op(**{name: x})):
        x = leaf(2.0)
        y = call(x)
        y.backward()
        assert (y.item(), x.grad.item()) == (6.0, 3.0)


def test_a_forward_without_arguments_gives_an_untracked_result():
    op = pb.autograd_function(lambda ctx: pb.ones(2), doubled_backward)
    assert (op().tolist(), op().requires_grad) == ([1.0, 1.0], False)
