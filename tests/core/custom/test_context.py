"""ctx, member by member: saving, reading back, flags and marks."""

import numpy as np
import pytest
from tests.tensors import constant, leaf

import pullback as pb
from pullback.errors import InplaceError, ReleasedError


def reading(save, read, result=lambda x: x * 2.0):
    """Return what `read(ctx)` gives in backward where forward ran `save(ctx, x)`."""
    found = []

    def forward(ctx, x):
        out = result(x)
        save(ctx, x)
        return out

    def backward(ctx, grad_output):
        found.append(read(ctx))
        return {"x": grad_output}

    pb.autograd_function(forward, backward)(leaf(3.0)).backward()
    return found[0]


# -- save_for_backward and saved_variables ---------------------------------------------------------
def save_all(ctx, x):
    ctx.save_for_backward(x, 7, None, weight=x, label="text", nothing=None)


KINDS = ["Tensor", "int", None, "Tensor", "str", None]


@pytest.mark.case("S01", "S09")
@pytest.mark.parametrize(
    ("read", "expected"),
    [
        (lambda s: s.label, "text"),
        (lambda s: s["label"], "text"),
        (lambda s: s[4], "text"),
        (lambda s: s[-2], "text"),
        (lambda s: s.weight.item(), 3.0),
        (lambda s: s["weight"].item(), 3.0),
        (lambda s: s[0].item(), 3.0),
        (lambda s: s[1], 7),
        (lambda s: s[2], None),
        (lambda s: s.nothing, None),
        (lambda s: len(s), 6),
        (lambda s: list(s.keys()), ["weight", "label", "nothing"]),
        (lambda s: [v if v is None else type(v).__name__ for v in s], KINDS),
        (lambda s: s[1:3], (7, None)),
        (lambda s: "label" in s, True),
        (lambda s: "lable" in s, False),
    ],
)
def test_saved_variables_and_saved_variable_by_attribute_key_and_position(read, expected):
    assert reading(save_all, lambda ctx: read(ctx.saved_variables)) == expected
    assert reading(save_all, lambda ctx: read(ctx.saved_variable)) == expected


def test_saved_variables_unpack_in_the_order_they_were_saved():
    def read(ctx):
        first, second, third = ctx.saved_variables
        return first, second.item(), third

    assert reading(lambda ctx, x: ctx.save_for_backward("a", x=x, n=2), read) == ("a", 3.0, 2)


def test_saved_tensors_are_the_tensors_alone_as_a_tuple():
    def save(ctx, x):
        ctx.save_for_backward(3, x, "text", weight=x, mask=x > 1.0, array=np.ones(2))

    tensors = reading(save, lambda ctx: ctx.saved_tensors)
    assert isinstance(tensors, tuple)
    assert [t.dtype.name for t in tensors] == ["float64", "float64", "bool"]


def test_saved_tensors_hold_an_argument_that_came_as_an_array_at_its_place():
    @pb.autograd_function
    def product(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a * b

    @product.backward
    def _(ctx, g):
        a, b = ctx.saved_tensors
        return {"a": g * b, "b": g * a}

    x = np.array([1.0, 2.0])
    gradient = pb.grad(lambda b: product(10.0 * x, b).sum())(x)
    np.testing.assert_array_equal(gradient, [10.0, 20.0])


def test_save_for_backward_again_replaces_the_first():
    def save(ctx, x):
        ctx.save_for_backward(x, old=1)
        ctx.save_for_backward(new=2)

    assert reading(save, lambda ctx: list(ctx.saved_variables.keys())) == ["new"]
    assert reading(save, lambda ctx: len(ctx.saved_variables)) == 1


SAVES = {
    "the same values": {"x": "x", "w": "w"},
    "in another order": {"w": "w", "x": "x"},
    "other values under the names": {"x": "w", "w": "x"},
    "other names": {"x": "x", "y": "w"},
    "fewer": {"x": "x"},
    "more": {"x": "x", "w": "w", "out": "out"},
    "a result and a number": {"x": "out", "w": "number"},
    "by position": [*"xw"],
    "by position and name": ["x", ("w", "w")],
    "nothing": {},
}


@pytest.mark.parametrize("later", SAVES)
@pytest.mark.parametrize("first", SAVES)
def test_save_for_backward_of_other_values_than_in_the_first_call(first, later):
    found = {}

    def forward(ctx, x, w, saves):
        out = x * w
        values = {"x": x, "w": w, "out": out, "number": 5.0}
        pairs = saves.items() if isinstance(saves, dict) else [(None, n) for n in saves]
        pairs = [p[1] if isinstance(p[1], tuple) else p for p in pairs]
        unnamed = [values[v] for name, v in pairs if name is None]
        ctx.save_for_backward(*unnamed, **{n: values[v] for n, v in pairs if n is not None})
        return out

    def backward(ctx, grad_output):
        saved = ctx.saved_variables
        found["keys"] = list(saved.keys())
        found["values"] = [float(v) for v in saved]
        found["tracked"] = [getattr(v, "requires_grad", None) for v in saved]
        return {"x": None, "w": None}

    op = pb.autograd_function(forward, backward)
    numbers = {"x": 2.0, "w": 3.0, "out": 6.0, "number": 5.0}
    for saves in (SAVES[first], SAVES[later], SAVES[later]):
        op(leaf(2.0), pb.tensor(3.0), saves).backward()
        pairs = saves.items() if isinstance(saves, dict) else [(None, n) for n in saves]
        pairs = [p[1] if isinstance(p[1], tuple) else p for p in pairs]
        tracked = {"x": True, "w": False, "out": True, "number": None}
        assert found == {
            "keys": [name for name, _ in pairs if name is not None],
            "values": [numbers[v] for _, v in pairs],
            "tracked": [tracked[v] for _, v in pairs],
        }


def test_save_for_backward_of_many_values():
    def forward(ctx, x):
        ctx.save_for_backward(*[x * i for i in range(40)], last=x)
        return x.clone()

    def backward(ctx, grad_output):
        values = ctx.saved_tensors
        return {"x": grad_output * values[39] * ctx.saved_variables.last}

    op = pb.autograd_function(forward, backward)
    for _ in range(2):
        x = leaf(2.0)
        op(x).backward()
        assert x.grad.item() == 78.0 * 2.0


def test_saved_variables_of_nothing_are_empty():
    assert reading(lambda ctx, x: None, lambda ctx: tuple(ctx.saved_variables)) == ()
    assert reading(lambda ctx, x: None, lambda ctx: ctx.saved_tensors) == ()
    assert reading(save_all, lambda ctx: bool(ctx.saved_variables))


def test_saved_variables_give_other_objects_back_themselves():
    objects = {"a": object(), "b": print, "c": {"d": [1]}, "f": 2 + 3j}
    found = reading(
        lambda ctx, x: ctx.save_for_backward(**objects), lambda ctx: list(ctx.saved_variables)
    )
    assert all(a is b for a, b in zip(found, objects.values(), strict=True))


def test_saved_variables_can_be_read_in_forward_too():
    found = []

    @pb.autograd_function
    def f(ctx, x):
        ctx.save_for_backward(x, n=2)
        found.append((ctx.saved_variables.n, ctx.saved_variables[0] is x, len(ctx.saved_tensors)))
        return x * 2.0

    f(leaf(1.0))
    assert found == [(2, True, 1)]


@pytest.mark.parametrize("name", ["keys", "values", "items", "get", "index", "count", "names"])
def test_save_for_backward_takes_any_name(name):
    assert reading(
        lambda ctx, x: ctx.save_for_backward(**{name: "mine"}),
        lambda ctx: getattr(ctx.saved_variables, name),
    ) == ("mine")


def test_save_for_backward_of_an_input_keeps_its_node():
    def rule(ctx, grad_output):
        assert ctx.saved_variables.x.requires_grad
        assert ctx.saved_variables.x.grad_fn.name() == "MulBackward"
        assert not ctx.saved_variables.c.requires_grad
        return {"x": grad_output}

    @pb.autograd_function
    def f(ctx, x, c):
        ctx.save_for_backward(x=x, c=c)
        return x * c

    f.backward(rule)
    x = leaf(1.0)
    f(x * 2.0, constant(3.0)).backward()
    assert x.grad.item() == 2.0


# -- changed in place since ------------------------------------------------------------------------
READS = {
    "attribute": lambda ctx: ctx.saved_variables.x,
    "key": lambda ctx: ctx.saved_variables["x"],
    "position": lambda ctx: ctx.saved_variables[0],
    "iteration": lambda ctx: next(iter(ctx.saved_variables)),
    "saved_tensors": lambda ctx: ctx.saved_tensors[0],
}
CHANGES = {
    "itself": lambda y: y.mul_(2.0),
    "a view": lambda y: y[:1].add_(1.0),
    "a detached alias": lambda y: y.detach().zero_(),
    "an assignment": lambda y: y.__setitem__(0, 5.0),
    "declared by increment_version": lambda y: pb.autograd.increment_version(y),
}


def saving_x(read):
    @pb.autograd_function
    def square(ctx, x):
        ctx.save_for_backward(x=x)
        return x * x

    @square.backward
    def _(ctx, grad_output):
        return {"x": 2.0 * read(ctx) * grad_output}

    return square


@pytest.mark.parametrize("read", READS.values(), ids=READS.keys())
def test_saved_variables_of_a_changed_input_raise_when_read_in_any_way(read):
    x = leaf([1.0, 2.0])
    y = x * 1.0
    z = saving_x(read)(y)
    y.add_(1.0)
    with pytest.raises(InplaceError) as caught:
        z.sum().backward()
    text = str(caught.value)
    assert "one of the variables needed for gradient computation has been modified by" in text
    assert "squareBackward" in text
    assert "'x'" in text
    assert "is at version 1; expected version 0" in text


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_a_saved_input_is_checked_however_it_was_changed(change):
    x = leaf([1.0, 2.0])
    y = x * 1.0
    z = saving_x(READS["attribute"])(y)
    with pb.no_grad():
        change(y)
    with pytest.raises(InplaceError, match="'x' is at version 1; expected version 0"):
        z.sum().backward()


def test_a_saved_input_that_was_not_tracked_is_checked_too():
    @pb.autograd_function
    def product(ctx, x, w):
        ctx.save_for_backward(w=w)
        return x * w

    @product.backward
    def _(ctx, grad_output):
        return {"x": grad_output * ctx.saved_variables.w}

    x, w = leaf(1.0), constant(2.0)
    y = product(x, w)
    w.add_(1.0)
    with pytest.raises(InplaceError, match="'w' is at version 1"):
        y.backward()


def test_a_saved_result_that_was_changed_raises():
    @pb.autograd_function
    def exponential(ctx, x):
        out = x.exp()
        ctx.save_for_backward(out=out)
        return out

    @exponential.backward
    def _(ctx, grad_output):
        return {"x": grad_output * ctx.saved_variables.out}

    x = leaf(0.0)
    y = exponential(x)
    z = y * 3.0
    y.add_(1.0)
    with pytest.raises(InplaceError, match=r"exponentialBackward.*'out' is at version 1"):
        z.backward()
    with pytest.raises(InplaceError, match="'out'"):
        y.backward()


def test_a_value_saved_by_position_is_named_as_a_saved_tensor():
    @pb.autograd_function
    def square(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @square.backward
    def _(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return {"x": 2.0 * x * grad_output}

    y = leaf(1.0) * 1.0
    z = square(y)
    y.add_(1.0)
    with pytest.raises(InplaceError, match="a saved tensor is at version 1; expected version 0"):
        z.backward()


def test_only_what_is_read_is_checked():
    @pb.autograd_function
    def product(ctx, x, w):
        ctx.save_for_backward(x=x, w=w)
        return x * w

    @product.backward
    def _(ctx, grad_output):
        s = ctx.saved_variables
        return {
            "x": grad_output * s.w if ctx.needs_input_grad.x else None,
            "w": grad_output * s.x if ctx.needs_input_grad.w else None,
        }

    x, w = leaf(2.0), leaf(3.0)
    a, b = x * 1.0, w * 1.0
    y = product(a, b)
    a.add_(1.0)
    (g,) = pb.autograd.grad(y, x, retain_graph=True)
    assert g.item() == 3.0
    with pytest.raises(InplaceError, match="'x'"):
        pb.autograd.grad(y, w)


def test_a_change_made_inside_forward_before_the_operation_ends_is_not_one_since():
    @pb.autograd_function
    def f(ctx, x):
        double = x * 2.0
        ctx.save_for_backward(double=double)
        double.add_(1.0)
        return x * 1.0

    @f.backward
    def _(ctx, grad_output):
        return {"x": grad_output * ctx.saved_variables.double}

    x = leaf(1.0)
    f(x).backward()
    assert x.grad.item() == 3.0


# -- released --------------------------------------------------------------------------------------
KEPT = []


@pb.autograd_function
def stash(ctx, x):
    ctx.save_for_backward(x=x)
    ctx.mask = x > 0.0
    KEPT[:] = [ctx]
    return x * 2.0


@stash.backward
def _(ctx, grad_output):
    KEPT.append(ctx)
    return {"x": grad_output * 2.0}


READ_LATER = {
    "attribute": lambda ctx: ctx.saved_variables.x,
    "key": lambda ctx: ctx.saved_variables["x"],
    "position": lambda ctx: ctx.saved_variables[0],
    "saved_tensors": lambda ctx: ctx.saved_tensors,
    "a tensor attribute": lambda ctx: ctx.mask,
}


@pytest.mark.case("S02")
@pytest.mark.parametrize("read", READ_LATER.values(), ids=READ_LATER.keys())
@pytest.mark.parametrize("which", [0, 1], ids=["forward's ctx", "backward's ctx"])
def test_reading_after_backward_is_the_second_time_error(read, which):
    y = stash(leaf([1.0]))
    y.backward()
    with pytest.raises(ReleasedError) as caught:
        read(KEPT[which])
    text = str(caught.value)
    assert "stash" in text
    assert "Trying to access saved tensors after they have already been freed" in text
    assert "backward through the graph a second time" in text
    assert "retain_graph=True" in text


@pytest.mark.case("S02")
@pytest.mark.parametrize("read", READ_LATER.values(), ids=READ_LATER.keys())
def test_reading_after_the_graph_was_freed_raises_too(read):
    y = stash(leaf([1.0]))
    assert read(KEPT[0]) is not None
    del y
    with pytest.raises(ReleasedError, match="saved tensors after they have already been freed"):
        read(KEPT[0])


@pytest.mark.case("S02")
@pytest.mark.parametrize("read", READ_LATER.values(), ids=READ_LATER.keys())
def test_a_retained_graph_can_be_read_again(read):
    y = stash(leaf([1.0]))
    y.backward(retain_graph=True)
    assert read(KEPT[0]) is not None
    assert read(KEPT[1]) is not None


# -- attributes ------------------------------------------------------------------------------------
def test_any_attribute_may_be_set_in_forward_and_read_in_backward():
    def save(ctx, x):
        ctx.scale, ctx.label, ctx.table, ctx.x, ctx.nothing = 2.5, "text", {"a": 1}, x, None

    assert reading(
        save, lambda ctx: (ctx.scale, ctx.label, ctx.table, ctx.x.item(), ctx.nothing)
    ) == (2.5, "text", {"a": 1}, 3.0, None)


def test_an_attribute_can_be_replaced_and_deleted_in_forward():
    def save(ctx, x):
        ctx.a, ctx.b = x, 1
        ctx.a = 5
        del ctx.b

    assert reading(save, lambda ctx: (ctx.a, hasattr(ctx, "b"))) == (5, False)


def test_an_attribute_that_was_never_set_says_so():
    def read(ctx):
        with pytest.raises(AttributeError, match="no attribute 'scael'"):
            ctx.scael  # noqa: B018
        return True

    assert reading(lambda ctx, x: setattr(ctx, "scale", 1), read)


def test_a_tensor_attribute_is_version_checked():
    @pb.autograd_function
    def square(ctx, x):
        ctx.kept = x
        return x * x

    @square.backward
    def _(ctx, grad_output):
        return {"x": 2.0 * ctx.kept * grad_output}

    y = leaf(2.0) * 1.0
    z = square(y)
    y.add_(1.0)
    with pytest.raises(InplaceError, match=r"squareBackward.*'kept' is at version 1"):
        z.backward()


def test_a_tensor_attribute_keeps_its_node():
    @pb.autograd_function
    def square(ctx, x):
        ctx.kept = x
        return x * x

    @square.backward
    def _(ctx, grad_output):
        return {"x": 2.0 * ctx.kept * grad_output}

    x = leaf(3.0)
    (g,) = pb.autograd.grad(square(x), x, create_graph=True)
    assert (g.item(), pb.autograd.grad(g, x)[0].item()) == (6.0, 2.0)


def test_saved_variables_are_a_mapping_and_a_sequence():
    seen = []

    def forward(ctx, t, *more):
        ctx.save_for_backward(a=2.0, b="two")
        return t + more[0]

    def backward(ctx, g):
        saved = ctx.saved_variables
        seen.append((saved.values(), saved == {"a": 2.0, "b": "two"}, saved == (2.0, "two")))
        seen.append((saved == [2.0], saved == 2.0, repr(saved), ctx.needs_input_grad["more"]))
        return {"t": g, "more": (g,)}

    x = leaf([1.0])
    pb.autograd_function(forward, backward)(x, x).sum().backward()
    assert seen == [
        ([2.0, "two"], True, True),
        (False, False, "(a=2.0, b='two')", (True,)),
    ]


def test_a_saved_detached_argument_that_was_changed_in_place_since_is_an_error():
    def forward(ctx, t):
        ctx.save_for_backward(t=t.detach())
        return t * 2.0

    f = pb.autograd_function(forward, lambda ctx, g: {"t": g * ctx.saved_variables.t})
    x = pb.tensor([1.0, 2.0], requires_grad=True)
    y = x * 1.0
    z = f(y)
    y.mul_(5.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


@pytest.mark.case("S05")
def test_save_for_backward_of_a_result_keeps_its_node_and_output_nr():
    edges = []

    @pb.autograd_function
    def two(ctx, x):
        low, high = x * 2, x * 3
        ctx.save_for_backward(low=low, high=high)
        return low, high

    @two.backward
    def _(ctx, g_low, g_high):
        with pb.enable_grad():
            for saved in (ctx.saved_variables.low, ctx.saved_variables.high):
                node, index = (saved * 1.0).grad_fn.next_functions[0]
                edges.append((saved.grad_fn is node, index, saved.output_nr))
        return {"x": 2 * g_low + 3 * g_high}

    x = leaf(1.0)
    low, high = two(x)
    assert low.grad_fn is high.grad_fn
    (low + high).backward()
    assert x.grad.item() == 5.0
    assert edges == [(True, 0, 0), (True, 1, 1)]


SQUARES = {
    "built-in": lambda x: x * x,
    "saves nothing": lambda x: x + 3.0,
    "custom": lambda x: saving_x(READS["attribute"])(x),
    "custom, saves nothing": pb.autograd_function(lambda ctx, x: x + 3.0, lambda ctx, g: {"x": g}),
}


@pytest.mark.case("S03")
@pytest.mark.parametrize("name", SQUARES)
def test_retain_graph_lets_backward_run_again_and_without_it_raises(name):
    x = leaf(0.5)
    y = SQUARES[name](x)
    for times in (1, 2, 3):
        y.backward(retain_graph=times < 3)
        assert x.grad.item() == times
    with pytest.raises(ReleasedError, match="backward through the graph a second time"):
        y.backward()


@pytest.mark.case("S04")
def test_create_graph_releases_nothing():
    x = leaf(3.0)
    y = saving_x(READS["attribute"])(x)
    pb.autograd.grad(y, x, create_graph=True)
    assert pb.autograd.grad(y, x)[0].item() == 6.0
