"""What an operation keeps for its backward, for how long, and who may look (cases S01 to S12)."""

import gc
import math
import warnings
import weakref
from collections.abc import Callable, Iterator

import pytest

import pullback as pb
from pullback import Tensor, autograd


def leaf(data: object) -> Tensor:
    return pb.tensor(data, dtype=pb.float64, requires_grad=True)


def const(data: object) -> Tensor:
    return pb.tensor(data, dtype=pb.float64)


@pytest.fixture
def gc_off() -> Iterator[None]:
    """Reference counting alone frees."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def test_S01_none_may_be_saved_and_keeps_its_position() -> None:
    saved: list[object] = []

    @pb.autograd_function
    def square(ctx, x):
        ctx.save_for_backward(None, x, None)
        return x * x

    @square.backward
    def _(ctx, grad_output):
        saved.extend(ctx.saved_variables)
        return {"x": 2 * ctx.saved_variables[1] * grad_output}

    x = leaf(3.0)
    square(x).backward()
    assert x.grad.item() == 6.0
    assert len(saved) == 3
    assert saved[0] is None
    assert saved[1].item() == 3.0
    assert saved[2] is None


def keeping(contexts: list[object]) -> Callable[[Tensor], Tensor]:
    class Square(pb.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x=x)
            return x * x

        @staticmethod
        def backward(ctx, grad_output):
            contexts.append(ctx)
            return {"x": 2 * ctx.saved_variables.x * grad_output}

    return Square.apply


def test_S03_second_backward_raises_with_the_way_out() -> None:
    x = leaf(2.0)
    y = x * x
    y.backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time") as caught:
        y.backward()
    assert "retain_graph=True" in str(caught.value)
    assert x.grad.item() == 4.0
    out = keeping([])(x)
    autograd.grad(out, x)
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        autograd.grad(out, x)


def test_S03_retained_graph_runs_again_and_accumulates() -> None:
    x = leaf(2.0)
    y = x**2
    y.backward(retain_graph=True)
    assert x.grad.item() == 4.0
    y.backward()
    assert x.grad.item() == 8.0
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        y.backward()


double = pb.autograd_function(lambda ctx, x: x * 2, lambda ctx, g: {"x": g * 2})


@pytest.mark.parametrize(
    ("operation", "slope"), [(lambda x: x + 1, 1.0), (double, 2.0)], ids=["built-in", "custom"]
)
def test_S03_graph_that_saved_nothing_raises_as_well(
    operation: Callable[[Tensor], Tensor], slope: float
) -> None:
    x = leaf(2.0)
    y = operation(x)
    y.backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time") as caught:
        y.backward()
    assert "retain_graph=True" in str(caught.value)
    assert x.grad.item() == slope


class SquareOfBoth(pb.Function):
    """x^2 whose rule is written with the saved output."""

    @staticmethod
    def forward(ctx, x):
        y = x**2
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        x, y = ctx.saved_tensors
        return grad_output * 2 * y / x


def test_S04_create_graph_frees_nothing() -> None:
    x = leaf(3.0)
    y = SquareOfBoth.apply(x)
    autograd.grad(y, x, create_graph=True)
    assert autograd.grad(y, x)[0].item() == 6.0


def test_S04_first_and_second_derivative_through_a_saved_output() -> None:
    x = leaf([3.0, -2.0])
    (first,) = autograd.grad(SquareOfBoth.apply(x).sum(), x, create_graph=True)
    (second,) = autograd.grad(first.sum(), x, create_graph=True)
    (third,) = autograd.grad(second.sum(), x)
    assert first.tolist() == pytest.approx([6.0, -4.0], abs=1e-12)
    assert second.tolist() == pytest.approx([2.0, 2.0], abs=1e-12)
    assert third.tolist() == pytest.approx([0.0, 0.0], abs=1e-12)

    def value(at: float) -> float:
        return SquareOfBoth.apply(const(at)).item()

    assert first.tolist()[0] == pytest.approx((value(3 + 1e-6) - value(3 - 1e-6)) / 2e-6, rel=1e-6)


class Probe:
    """Something whose death can be watched."""


def test_S05_saved_output_belongs_to_its_own_node() -> None:
    edges: list[tuple[object, object, int, int]] = []

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
                edges.append((saved.grad_fn, node, index, saved.output_nr))
        return {"x": 2 * g_low + 3 * g_high}

    x = leaf(1.0)
    low, high = two(x)
    assert low.grad_fn is high.grad_fn
    node = low.grad_fn
    (low + high).backward()
    assert x.grad.item() == 5.0
    assert [(own is node, nxt is node, i, nr) for own, nxt, i, nr in edges] == [
        (True, True, 0, 0),
        (True, True, 1, 1),
    ]


@pytest.mark.parametrize("run_backward", [False, True])
def test_S05_saving_an_output_makes_no_cycle(gc_off: None, run_backward: bool) -> None:
    watched: list[weakref.ref[object]] = []

    @pb.autograd_function
    def exp(ctx, x):
        out = x.exp()
        ctx.probe = Probe()
        watched.append(weakref.ref(ctx.probe))
        ctx.save_for_backward(out=out)
        return out

    @exp.backward
    def _(ctx, grad_output):
        return {"x": grad_output * ctx.saved_variables.out}

    x = leaf(0.0)
    out = exp(x)
    mark = Probe()
    out.grad_fn.metadata["mark"] = mark
    watched += [weakref.ref(mark), weakref.ref(out)]
    del mark
    if run_backward:
        out.backward(retain_graph=True)
        assert x.grad.item() == 1.0
    assert all(ref() is not None for ref in watched)
    del out
    assert [ref() for ref in watched] == [None, None, None]


def test_S06_pack_once_per_saved_tensor_and_unpack_once_per_use() -> None:
    calls: list[str] = []

    def pack(t: Tensor) -> Tensor:
        calls.append("pack")
        return t

    def unpack(t: Tensor) -> Tensor:
        calls.append("unpack")
        return t

    x, y = leaf(5.0), const(7.0)
    with pb.saved_tensors_hooks(pack, unpack):
        out = x * y
    assert calls == ["pack"]
    out.backward()
    assert calls == ["pack", "unpack"]
    assert x.grad.item() == 7.0


@pytest.mark.parametrize(
    ("unpack", "expected"), [(lambda t: t, 12.0), (lambda t: t / 2, 6.0)], ids=["same", "half"]
)
def test_S06_what_is_packed_is_what_backward_sees(
    unpack: Callable[[Tensor], Tensor], expected: float
) -> None:
    a = leaf(3.0)
    with pb.saved_tensors_hooks(lambda t: 2 * t, unpack):
        out = a * a
    out.backward()
    assert a.grad.item() == expected


def test_S06_custom_function_saves_through_the_hooks() -> None:
    a = leaf(3.0)
    with pb.saved_tensors_hooks(lambda t: (t.tolist(), "kept elsewhere"), lambda p: const(p[0])):
        out = keeping([])(a)
    out.backward()
    assert a.grad.item() == 6.0


def test_S07_innermost_hooks_alone_apply() -> None:
    a, b = leaf(3.0), leaf(4.0)
    with pb.saved_tensors_hooks(lambda t: 3 * t, lambda t: 3 * t):
        before = b * b
        with pb.saved_tensors_hooks(lambda t: 5 * t, lambda t: 5 * t):
            inside = a * a
        after = b * b
    outside = b * b
    inside.backward()
    assert a.grad.item() == 2 * 25 * 3.0
    for out, factor in ((before, 9.0), (after, 9.0), (outside, 1.0)):
        assert autograd.grad(out, b)[0].item() == 2 * factor * 4.0


def test_S08_pack_hook_must_not_change_its_input() -> None:
    a = leaf(3.0).clone()
    with (
        pb.saved_tensors_hooks(lambda t: t.mul_(2), lambda t: t),
        pytest.raises(RuntimeError, match="pack hook is modifying its input in place"),
    ):
        _ = a * a


class UserError(Exception):
    """The user's own."""


def fail(t: object) -> Tensor:
    raise UserError("no room")


def test_S08_errors_of_hooks_keep_their_type() -> None:
    a = leaf(3.0)
    with pb.saved_tensors_hooks(fail, lambda t: t), pytest.raises(UserError, match="no room"):
        _ = a * a
    with pb.saved_tensors_hooks(lambda t: t, fail):
        out = a * a
    with pytest.raises(UserError, match="no room"):
        out.backward()
    (a * a).backward()
    assert a.grad.item() == 6.0


def test_S09_saved_variables_carry_names_and_constants_without_warning() -> None:
    seen: dict[str, object] = {}

    @pb.autograd_function
    def scale(ctx, var1, i):
        ctx.save_for_backward(var1=var1, i=i)
        return var1 * i

    @scale.backward
    def _(ctx, grad_output):
        saved = ctx.saved_variables
        seen["keys"] = list(saved.keys())
        seen["length"] = len(saved)
        seen["constant"] = (saved.i, saved["i"], saved[1])
        seen["tensor"] = (saved.var1.item(), saved["var1"].item(), saved[0].item())
        seen["alias"] = (ctx.saved_variable.i, ctx.saved_variable.var1.item())
        seen["tensors"] = [t.item() for t in ctx.saved_tensors]
        seen["order"] = [float(value) for value in saved]
        return {"var1": grad_output * saved.i}

    v = leaf(5.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scale(v, 2).backward()
    assert v.grad.item() == 2.0
    assert seen == {
        "keys": ["var1", "i"],
        "length": 2,
        "constant": (2, 2, 2),
        "tensor": (5.0, 5.0, 5.0),
        "alias": (2, 5.0),
        "tensors": [5.0],
        "order": [5.0, 2.0],
    }


def test_S10_saved_input_detached_in_place_raises() -> None:
    a = leaf(1.0).clone()
    b = a.sin()
    a.detach_()
    with pytest.raises(RuntimeError, match="saved tensor that has been detached"):
        b.backward()


def test_S10_detaching_the_input_of_an_op_that_saves_its_output_is_harmless() -> None:
    x = leaf(1.0)
    a = x.clone()
    b = a.exp()
    a.detach_()
    b.backward()
    assert x.grad.item() == pytest.approx(math.e, rel=1e-15)


@pytest.mark.parametrize("join", [pb.cat, pb.stack])
@pytest.mark.parametrize("place", [0, 1])
def test_S10_detaching_an_input_of_an_op_that_saves_none_is_harmless(join, place) -> None:
    x = leaf([2.0])
    y = x * x
    z = join([x, y] if place else [y, x])
    y.detach_()
    z.sum().backward()
    assert x.grad.tolist() == [5.0]


def test_S11_factor_of_a_constant_is_not_saved() -> None:
    mu = leaf([1.0])
    x = const([0.0])
    loss = const(0.0)
    for i in range(3):
        x.detach_()
        x.copy_(mu + i)
        loss = loss + (x * const([float(i)])).sum()
    assert loss.item() == 0.0 * 1.0 + 1.0 * 2.0 + 2.0 * 3.0
    loss.backward()
    assert mu.grad.tolist() == [3.0]


def test_S11_indexing_does_not_save_its_tensor() -> None:
    mask = const([1.0, 0.0, 0.0]) != 0
    b = leaf([4.0, 5.0, 6.0])
    t = b + 0
    t[mask] = t[mask]
    t.backward(const([1.0, 2.0, 3.0]))
    assert b.grad.tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("run_backward", [False, True])
def test_S12_cycle_through_the_context_is_left_to_the_collector(
    gc_off: None, run_backward: bool
) -> None:
    @pb.autograd_function
    def tagged(ctx, x, meta):
        out = x.clone()
        ctx.meta = meta
        ctx.save_for_backward(out=out)
        return out

    @tagged.backward
    def _(ctx, grad_output):
        assert ctx.meta["foo"].item() == 3.14
        return {"x": grad_output * ctx.saved_variables.out}

    def make() -> weakref.ref[Tensor]:
        a, meta = leaf(3.14), {}
        out = tagged(a, meta)
        meta["foo"] = out
        if run_backward:
            out.sum().backward()
            assert a.grad.item() == 3.14
        return weakref.ref(out)

    ref = make()
    # A backward that does not retain the graph lets go of ctx, and so breaks the cycle at once.
    assert (ref() is None) is run_backward
    gc.collect()
    assert ref() is None
