"""Running forward, and every structure it may return."""

import collections
import dataclasses
import typing

import numpy as np
import pytest
from tests.tensors import constant, leaf

import pullback as pb


# -- while forward runs ----------------------------------------------------------------------------
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


@pytest.mark.case("F12")
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
def test_the_gradient_of_an_unused_result_is_zeros(kind):
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


def test_a_tensor_made_elsewhere_can_be_a_result():
    constant = pb.tensor(7.0, dtype=pb.float64)
    f = pb.autograd_function(lambda ctx, x: (x * 2.0, constant), lambda ctx, g, h: {"x": g * 2.0})
    x = leaf(1.0)
    y, c = f(x)
    assert c.item() == 7.0
    assert not constant.requires_grad
    (y + c).backward()
    assert x.grad.item() == 2.0


def test_a_tracked_tensor_from_outside_that_forward_uses_keeps_its_own_node():
    other = leaf(3.0)
    outside = other * 2.0
    f = pb.autograd_function(lambda ctx, x: x * outside, lambda ctx, g: {"x": g * 6.0})
    x = leaf(1.0)
    with pytest.warns(
        pb.UntrackedTensorWarning, match="^mul: forward of an operation uses a tensor"
    ):
        f(x).backward()
    assert x.grad.item() == 6.0
    assert other.grad is None
    assert outside.grad_fn.name() == "MulBackward"


def test_the_error_of_a_wrong_shape_carries_the_argument_and_the_axes_to_sum():
    add = pb.autograd_function(lambda ctx, x, b: x + b, lambda ctx, g: (g, g))
    b = pb.zeros(1, 3, requires_grad=True)
    with pytest.raises(pb.errors.GradientError) as caught:
        add(pb.ones(2, 4, 3), b).sum().backward()
    assert (caught.value.argument, caught.value.unsummed) == ("b", (0, 1))


# -- arrays ----------------------------------------------------------------------------------------
def test_a_bare_floating_array_from_forward_comes_back_tracked():
    f = pb.autograd_function(
        lambda ctx, x: np.exp(x.numpy()), lambda ctx, g: {"x": g * 5.0}, name="f"
    )
    x = leaf([0.0, 1.0])
    y = f(x)
    assert y.grad_fn.name() == "fBackward"
    assert pb.autograd.grad(y.sum(), x)[0].tolist() == [5.0, 5.0]
    with pb.no_grad():
        assert isinstance(f(x), pb.Tensor)


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


def test_the_gradient_of_one_output_in_nested_containers_comes_in_them_in_every_pass():
    seen = []

    @pb.autograd_function
    def nested(ctx, x):
        return ([x * 2.0],)

    @nested.backward
    def _(ctx, grad_output):
        seen.append(type(grad_output))
        return {"x": grad_output[0] * 2.0}

    x = leaf(1.0)
    for recorded in (False, True):
        pb.autograd.grad(nested(x)[0][0], x, create_graph=recorded)
    assert seen == [list, list]


@pytest.mark.case("F17")
def test_under_no_grad_an_argument_returned_unchanged_is_as_detached():
    same = pb.autograd_function(lambda ctx, t: t, lambda ctx, g: {"t": g * 2.0})
    x = pb.tensor([1.0, 2.0], requires_grad=True)
    with pb.no_grad():
        y = same(x)
    assert not y.requires_grad
    y.add_(1.0)
    assert (x.tolist(), x._version) == ([2.0, 3.0], 1)


# -- which tensor a result is ----------------------------------------------------------------------
@pytest.mark.case("F02")
@pytest.mark.parametrize(
    ("data", "weights", "expected"),
    [(4.0, 1.0, 2.0), ([4.0], [1.0], [2.0]), ([4.0, 5.0], [1.0, 10.0], [2.0, 20.0])],
)
def test_forward_may_return_its_input_unchanged(data, weights, expected):
    class Twice(pb.Function):
        @staticmethod
        def forward(ctx, input):
            return input

        @staticmethod
        def backward(ctx, grad_output):
            return 2 * grad_output

    x = leaf(data)
    out = Twice.apply(x)
    assert out is not x
    assert out.grad_fn.name() == "TwiceBackward"
    assert out.grad_fn.next_functions[0][0].variable is x
    assert x.is_leaf
    assert x.grad_fn is None
    out.backward(constant(weights))
    assert x.grad.shape == x.shape
    assert x.grad.tolist() == expected


@pytest.mark.case("F04")
def test_numbers_strings_and_none_pass_through_forward_and_backward_gets_none_for_them():
    def forward(ctx, t1, t2, scale, t3):
        ctx.scale = scale
        ctx.save_for_backward(t1, t2, t3)
        return scale, (t1 + t2 * t3) * scale, None, True, (t1 * t2 + t3) * scale, "bar", t1

    def backward(ctx, *grads):
        assert [g is None for g in grads] == [True, False, True, True, False, True, False]
        _, a, _, _, b, _, c = grads
        t1, t2, t3 = ctx.saved_tensors
        return (a + b * t2) * ctx.scale + c, (a * t3 + b * t1) * ctx.scale, None, None

    t1, t2 = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    out = pb.autograd_function(forward, backward)(t1, t2, 7, pb.tensor([5.0, 6.0]))
    assert (out[0], out[2], out[3], out[5]) == (7, None, True, "bar")
    tensors = [out[1], out[4], out[6]]
    assert [t.tolist() for t in tensors] == [[112.0, 182.0], [56.0, 98.0], [1.0, 2.0]]
    pb.autograd.backward([t.sum() for t in tensors])
    assert t1.grad.tolist() == [29.0, 36.0]  # 7 + 7 * t2 + 1
    assert t2.grad.tolist() == [42.0, 56.0]  # 7 * t3 + 7 * t1


slots_seen = []


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


@pytest.mark.case("F15")
@pytest.mark.parametrize(("weight", "received", "slope"), [(1.0, 2.0, 4.0), (10.0, 11.0, 22.0)])
def test_the_same_tensor_returned_twice_is_one_object(weight, received, slope):
    slots_seen.clear()
    x = leaf(3.0)
    a, b = TwoOfOne.apply(x)
    assert a is b
    assert a.item() == 6.0
    (a + weight * b).backward()
    assert x.grad.item() == slope
    assert [sorted(pair) for pair in slots_seen] == [[0.0, received]]


@pytest.mark.case("F15")
def test_the_same_tensor_returned_twice_has_derivatives_of_every_order():
    x = leaf(3.0)
    a, b = TwoOfOne.apply(x)
    (first,) = pb.autograd.grad(a * b, x, create_graph=True)  # 4 x^2
    assert (first.item(), pb.autograd.grad(first, x)[0].item()) == (24.0, 8.0)


@pytest.mark.case("F16")
def test_a_leaf_that_forward_returns_counts_its_own_uses_alone():
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
    seen = []
    q.register_hook(lambda g: seen.append(g.tolist()))
    (q + p + x).sum().backward()
    assert seen == [[1.0, 1.0]]
    assert x.grad.tolist() == [3.0, 3.0]
    assert y.grad.tolist() == [1.0, 1.0]
