"""Running forward, and every structure it may return."""

import collections
import dataclasses
import typing

import numpy as np
import pytest

import pullback as pb


def leaf(value):
    return pb.tensor(value, dtype=pb.float64, requires_grad=True)


# -- while forward runs ----------------------------------------------------------------------------
def test_forward_runs_with_recording_off_on_inputs_without_history():
    seen = {}

    @pb.autograd_function
    def f(ctx, x, y):
        seen["mode"] = pb.is_grad_enabled()
        seen["inputs"] = [(t.requires_grad, t.is_leaf, t.grad_fn) for t in (x, y)]
        seen["inner"] = (x * y).requires_grad
        return x * y

    x = leaf(2.0)
    y = x * 3.0
    f(x, y)
    assert seen == {"mode": False, "inputs": [(False, True, None)] * 2, "inner": False}
    assert pb.is_grad_enabled()
    assert x.requires_grad
    assert y.grad_fn.name() == "MulBackward"


def test_forward_may_switch_recording_on_for_a_graph_of_its_own():
    @pb.autograd_function
    def slope(ctx, x):
        with pb.enable_grad():
            inner = x.detach().requires_grad_()
            (g,) = pb.autograd.grad(inner**3, inner)
        return g

    @slope.backward
    def _(ctx, grad_output):
        return {"x": grad_output}

    x = leaf(2.0)
    y = slope(x)
    assert y.item() == 12.0
    assert y.grad_fn.name() == "slopeBackward"


class UserError(Exception):
    """Raised by the user."""


@pytest.mark.parametrize("mode", [True, False], ids=["grad", "no_grad"])
def test_an_exception_in_forward_reaches_the_caller_with_modes_restored(mode):
    error = UserError("as it was")

    @pb.autograd_function
    def f(ctx, x):
        pb.set_grad_enabled(not mode)
        raise error

    with pb.set_grad_enabled(mode):
        with pytest.raises(UserError) as caught:
            f(leaf(1.0))
        assert pb.is_grad_enabled() is mode
    assert caught.value is error
    assert caught.traceback[-1].name == "f"
    assert pb.is_grad_enabled()


def test_a_mode_that_forward_leaves_switched_ends_with_it():
    @pb.autograd_function
    def f(ctx, x):
        pb.set_grad_enabled(True)
        return x * 2.0

    with pb.no_grad():
        assert not f(leaf(1.0)).requires_grad
        assert not pb.is_grad_enabled()
    assert f(leaf(1.0)).grad_fn.name() == "fBackward"
    assert pb.is_grad_enabled()


def test_under_no_grad_nothing_is_recorded_and_flags_are_false():
    flags = []

    @pb.autograd_function
    def f(ctx, x):
        flags.extend(ctx.needs_input_grad)
        ctx.save_for_backward(x=x)
        return x * 2.0

    x = leaf(1.0)
    with pb.no_grad():
        y = f(x)
    assert not y.requires_grad
    assert y.grad_fn is None
    assert x.requires_grad
    assert flags == [False]


def test_an_operation_returned_under_no_grad_does_not_touch_its_input():
    @pb.autograd_function
    def same(ctx, x):
        return x

    x = leaf(1.0)
    with pb.no_grad():
        y = same(x)
    assert y is not x
    assert not y.requires_grad
    assert x.requires_grad


# -- structures ------------------------------------------------------------------------------------
class Pair(typing.NamedTuple):
    first: object
    second: object


Point = collections.namedtuple("Point", ["x", "y"])


@dataclasses.dataclass
class Result:
    value: object
    slope: object
    note: str = "a note"


@dataclasses.dataclass(frozen=True)
class Frozen:
    value: object
    slope: object


def rule(ctx, a, b):
    return {"x": 2.0 * a + 3.0 * b}


STRUCTURES = {
    "tuple": (lambda a, b: (a, b), lambda r: r),
    "list": (lambda a, b: [a, b], lambda r: r),
    "dict": (lambda a, b: {"a": a, "b": b}, lambda r: r.values()),
    "ordered dict": (
        lambda a, b: collections.OrderedDict(a=a, b=b),
        lambda r: r.values(),
    ),
    "NamedTuple": (Pair, lambda r: (r.first, r.second)),
    "namedtuple": (Point, lambda r: (r.x, r.y)),
    "frozen dataclass": (Frozen, lambda r: (r.value, r.slope)),
}


@pytest.mark.parametrize("kind", STRUCTURES)
def test_the_structure_that_forward_returns_comes_back_tracked(kind):
    build, parts = STRUCTURES[kind]
    returned = []

    def forward(ctx, x):
        returned.append(build(x * 2.0, x * 3.0))
        return returned[0]

    x = leaf(1.0)
    result = pb.autograd_function(forward, rule)(x)
    assert type(result) is type(returned[0])
    a, b = parts(result)
    assert (a.item(), b.item()) == (2.0, 3.0)
    assert a.grad_fn is b.grad_fn
    assert a.grad_fn.name() == "forwardBackward"
    (a * 10.0 + b).backward()
    assert x.grad.item() == 23.0


@pytest.mark.parametrize("kind", STRUCTURES)
def test_an_unused_result_arrives_as_zeros_in_its_place(kind):
    build, parts = STRUCTURES[kind]
    op = pb.autograd_function(lambda ctx, x: build(x * 2.0, x * 3.0), rule)
    x = leaf(1.0)
    _, b = parts(op(x))
    b.backward()
    assert x.grad.item() == 3.0


def test_dict_keys_and_the_order_of_fields_are_kept():
    @pb.autograd_function
    def f(ctx, x):
        return {"z": x * 2.0, 3: "text", "a": x * 3.0}

    @f.backward
    def _(ctx, z, three, a):
        assert three is None
        return {"x": 2.0 * z + 3.0 * a}

    x = leaf(1.0)
    result = f(x)
    assert list(result) == ["z", 3, "a"]
    assert result[3] == "text"
    result["a"].backward()
    assert x.grad.item() == 3.0


def test_a_dataclass_keeps_its_other_fields_and_gradients_come_in_field_order():
    @pb.autograd_function
    def f(ctx, x):
        return Result(slope=x * 3.0, value=x * 2.0)

    @f.backward
    def _(ctx, value, slope, note):
        assert note is None
        return {"x": 2.0 * value + 3.0 * slope}

    x = leaf(1.0)
    result = f(x)
    assert isinstance(result, Result)
    assert result.note == "a note"
    result.value.backward(retain_graph=True)
    assert x.grad.item() == 2.0
    result.slope.backward()
    assert x.grad.item() == 5.0


def test_a_dataclass_is_not_initialised_a_second_time():
    @dataclasses.dataclass
    class Scaled:
        value: object
        label: str = dataclasses.field(init=False, default="")

        def __post_init__(self):
            self.value = self.value * 10.0
            self.label = self.label + "made"

    f = pb.autograd_function(
        lambda ctx, x: Scaled(x), lambda ctx, value, label: {"x": 10.0 * value}
    )
    x = leaf(1.0)
    result = f(x)
    assert result.value.item() == 10.0
    assert result.label == "made"
    result.value.backward()
    assert x.grad.item() == 10.0


def test_a_dataclass_with_an_init_only_variable():
    @dataclasses.dataclass
    class Made:
        value: object
        scale: dataclasses.InitVar[float]

        def __post_init__(self, scale):
            self.value = self.value * scale

    f = pb.autograd_function(lambda ctx, x: Made(x, 10.0), lambda ctx, value: {"x": 10.0 * value})
    x = leaf(1.0)
    result = f(x)
    assert result.value.item() == 10.0
    result.value.backward()
    assert x.grad.item() == 10.0


def test_a_defaultdict_comes_back_as_one():
    f = pb.autograd_function(
        lambda ctx, x: collections.defaultdict(list, a=x * 2.0), lambda ctx, a: {"x": a * 2.0}
    )
    x = leaf(1.0)
    result = f(x)
    result["a"].backward()
    assert result["missing"] == []
    assert x.grad.item() == 2.0


def test_nested_structures():
    @pb.autograd_function
    def f(ctx, x):
        return [x * 2.0, {"pair": (x * 3.0, "text"), "more": [x * 4.0]}, Pair(x * 5.0, None)]

    @f.backward
    def _(ctx, first, middle, last):
        assert middle["pair"][1] is None
        assert isinstance(last, Pair)
        return {
            "x": first * 2.0 + middle["pair"][0] * 3.0 + middle["more"][0] * 4.0 + last.first * 5.0
        }

    x = leaf(1.0)
    result = f(x)
    assert result[1]["pair"][1] == "text"
    assert result[2].second is None
    total = result[0] + result[1]["pair"][0] * 10.0 + result[1]["more"][0] * 100.0
    (total + result[2].first * 1000.0).backward()
    assert x.grad.item() == 2.0 + 30.0 + 400.0 + 5000.0


def test_one_gradient_parameter_receives_several_gradients_as_a_tuple():
    @pb.autograd_function
    def f(ctx, x):
        return x * 2.0, x * 3.0

    @f.backward
    def _(ctx, grads):
        assert isinstance(grads, tuple)
        return {"x": 2.0 * grads[0] + 3.0 * grads[1]}

    x = leaf(1.0)
    a, b = f(x)
    (a + 10.0 * b).backward()
    assert x.grad.item() == 32.0


def test_starred_gradient_parameters_receive_each_gradient():
    @pb.autograd_function
    def f(ctx, x):
        return x * 2.0, x * 3.0

    @f.backward
    def _(ctx, *grads):
        return {"x": 2.0 * grads[0] + 3.0 * grads[1]}

    x = leaf(1.0)
    a, b = f(x)
    (a + 10.0 * b).backward()
    assert x.grad.item() == 32.0


def test_a_sequence_of_one_result_is_one_gradient():
    @pb.autograd_function
    def f(ctx, x):
        return [x * 2.0]

    @f.backward
    def _(ctx, grad_output):
        assert isinstance(grad_output, pb.Tensor)
        return {"x": grad_output * 2.0}

    x = leaf(1.0)
    (y,) = f(x)
    y.backward()
    assert x.grad.item() == 2.0


def test_other_objects_come_back_as_they_are():
    marker, array = object(), np.arange(3)

    @pb.autograd_function
    def f(ctx, x):
        return x * 2.0, marker, None, array, "text", 7

    @f.backward
    def _(ctx, g, *others):
        assert others == (None,) * 5
        return {"x": g * 2.0}

    x = leaf(1.0)
    y, *rest = f(x)
    assert rest[0] is marker
    assert rest[2] is array
    assert (rest[1], rest[3], rest[4]) == (None, "text", 7)
    y.backward()
    assert x.grad.item() == 2.0


@pytest.mark.parametrize("result", [None, 3, "text", (), [], {}, (1, None)], ids=repr)
def test_a_result_without_tensors_comes_back_untouched(result):
    assert pb.autograd_function(lambda ctx, x: result)(leaf(1.0)) == result


# -- which results are tracked ---------------------------------------------------------------------
def test_integer_and_bool_results_never_require_grad():
    @pb.autograd_function
    def f(ctx, x):
        return x.argmax(), x > 1.0, x * 2.0

    @f.backward
    def _(ctx, index, mask, y):
        assert index.tolist() == 0
        assert mask.tolist() == [False, False]
        return {"x": y * 2.0}

    x = leaf([1.0, 2.0])
    index, mask, y = f(x)
    assert [t.requires_grad for t in (index, mask, y)] == [False, False, True]
    assert (index.item(), mask.tolist()) == (1, [False, True])
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_an_operation_with_only_integer_results_records_nothing():
    f = pb.autograd_function(lambda ctx, x: (x.argmax(), x > 1.0))
    index, mask = f(leaf([1.0, 2.0]))
    assert index.grad_fn is None
    assert not mask.requires_grad


def test_complex_results_are_tracked():
    f = pb.autograd_function(lambda ctx, x: x * 2j, lambda ctx, g: {"x": (g * -2j).real})
    x = leaf(3.0)
    y = f(x)
    assert y.dtype is pb.complex128
    assert y.requires_grad
    y.backward(pb.tensor(1j, dtype=pb.complex128))
    assert x.grad.item() == 2.0


def test_an_input_returned_unchanged_stays_a_leaf_and_the_result_has_its_own_history():
    f = pb.autograd_function(lambda ctx, x: x, lambda ctx, g: {"x": g * 5.0})
    x = leaf([1.0, 2.0])
    y = f(x)
    assert y is not x
    assert x.is_leaf
    assert x.grad_fn is None
    assert y.grad_fn.next_functions[0][0].variable is x
    (y * pb.tensor([1.0, 10.0], dtype=pb.float64)).sum().backward()
    assert x.grad.tolist() == [5.0, 50.0]


def test_an_untracked_input_returned_beside_a_tracked_one_is_tracked():
    constant = pb.tensor(7.0, dtype=pb.float64)
    f = pb.autograd_function(lambda ctx, x, c: (x * 2.0, c), lambda ctx, g, h: {"x": g * 2.0 + h})
    x = leaf(1.0)
    y, c = f(x, constant)
    assert c is not constant
    assert not constant.requires_grad
    assert c.requires_grad
    (y + c).backward()
    assert x.grad.item() == 3.0


def test_a_view_of_an_input_has_the_history_of_the_operation():
    f = pb.autograd_function(
        lambda ctx, x: x[1:], lambda ctx, g: {"x": pb.concat([pb.zeros_like(g[:1]), g * 3.0])}
    )
    x = leaf([1.0, 2.0, 3.0])
    y = f(x)
    assert y.tolist() == [2.0, 3.0]
    y.sum().backward()
    assert x.grad.tolist() == [0.0, 3.0, 3.0]


def test_the_same_tensor_returned_twice_is_one_object_that_gets_both_gradients():
    seen = []

    @pb.autograd_function
    def f(ctx, x):
        y = x * 2.0
        return y, y

    @f.backward
    def _(ctx, first, second):
        seen.append((first.item(), second.item()))
        return {"x": 2.0 * (first + second)}

    x = leaf(1.0)
    a, b = f(x)
    assert a is b
    (a + 10.0 * b).backward()
    assert x.grad.item() == 22.0
    assert sum(seen[0]) == 11.0


def test_a_tensor_made_elsewhere_can_be_a_result():
    constant = pb.tensor(7.0, dtype=pb.float64)
    f = pb.autograd_function(lambda ctx, x: (x * 2.0, constant), lambda ctx, g, h: {"x": g * 2.0})
    x = leaf(1.0)
    y, c = f(x)
    assert c.item() == 7.0
    assert not constant.requires_grad
    (y + c).backward()
    assert x.grad.item() == 2.0


def test_a_stranger_with_history_in_the_result_keeps_its_own_history():
    other = leaf(3.0)
    history = other * 2.0
    f = pb.autograd_function(lambda ctx, x: x * history, lambda ctx, g: {"x": g * 6.0})
    x = leaf(1.0)
    f(x).backward()
    assert x.grad.item() == 6.0
    assert other.grad is None
    assert history.grad_fn.name() == "MulBackward"


def test_the_error_of_a_wrong_shape_carries_the_argument_and_the_axes_to_sum():
    add = pb.autograd_function(lambda ctx, x, b: x + b, lambda ctx, g: (g, g))
    b = pb.zeros(1, 3, requires_grad=True)
    with pytest.raises(pb.errors.GradientError) as caught:
        add(pb.ones(2, 4, 3), b).sum().backward()
    assert (caught.value.argument, caught.value.unsummed) == ("b", (0, 1))
