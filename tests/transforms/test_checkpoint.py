"""`checkpoint`: the same numbers from a function that keeps its arguments and runs twice."""

import gc
import tracemalloc
from collections import namedtuple

import numpy as np
import pytest

import pullback as pb

Pair = namedtuple("Pair", "a b")


class Counted:
    """A function that counts how often it runs."""

    def __init__(self, function):
        self.function, self.runs = function, 0

    def __call__(self, *args):
        self.runs += 1
        return self.function(*args)


def waves(x):
    return (x.sin() * x).exp()


def leaf(*numbers):
    return pb.tensor(numbers, dtype=pb.float64, requires_grad=True)


# ---- the same as without -------------------------------------------------------------------------
def test_a_checkpointed_function_runs_once_more_in_backward():
    function, x = Counted(waves), leaf(0.5, 1.0)
    y = pb.checkpoint(function)(x).sum()
    assert function.runs == 1
    (expected,) = pb.autograd.grad(waves(x).sum(), x)
    y.backward()
    assert function.runs == 2
    assert x.grad.tolist() == expected.tolist()


def test_leaves_that_the_function_closes_over_get_their_gradients():
    w, x = leaf(2.0, 3.0), leaf(1.0, 4.0)
    pb.checkpoint(lambda x: x * w * w)(x).sum().backward()
    assert x.grad.tolist() == [4.0, 9.0]
    assert w.grad.tolist() == [4.0, 24.0]


def test_containers_keywords_and_other_objects_pass_through():
    def function(pair, name, *, scale):
        return {name: [pair.a * pair.b * scale], "name": name}

    x, y = leaf(2.0), leaf(5.0)
    result = pb.checkpoint(function)(Pair(x, y), "product", scale=3)
    assert result["name"] == "product"
    result["product"][0].backward()
    assert (x.grad.item(), y.grad.item()) == (15.0, 6.0)


def test_several_results_are_computed_again_once_for_all():
    function, x = Counted(lambda x: (x.exp(), x * x)), leaf(0.0)
    a, b = pb.checkpoint(function)(x)
    (a + 3 * b + a * b).backward()
    assert (x.grad.item(), function.runs) == (1.0, 2)


def test_a_retained_graph_needs_no_third_run():
    function, x = Counted(lambda x: x * x), leaf(3.0)
    y = pb.checkpoint(function)(x)
    y.backward(retain_graph=True)
    y.backward()
    assert (x.grad.item(), function.runs) == (12.0, 2)


def test_without_recording_the_function_is_called_and_no_more():
    function, x = Counted(waves), leaf(1.0)
    with pb.no_grad():
        assert not pb.checkpoint(function)(x).requires_grad
    assert not pb.checkpoint(function)(pb.ones(2)).requires_grad
    assert function.runs == 2


def test_hooks_on_tensors_of_the_function_run_once():
    seen, x = [], leaf(2.0)

    def function(x):
        y = x * x
        if y.requires_grad and not seen:
            y.register_hook(lambda g: seen.append(g.item()))
        return y * y

    pb.checkpoint(function)(x).backward()
    assert (seen, x.grad.item()) == ([8.0], 32.0)


def test_an_operation_of_your_own_is_checkpointed_with_what_it_saves():
    @pb.autograd_function
    def cube(ctx, x):
        ctx.save_for_backward(square=x * x, x=x)
        return x * x * x

    @cube.backward
    def _(ctx, grad_output):
        return {"x": 3 * ctx.saved_variables.x * ctx.saved_variables.x * grad_output}

    x = leaf(2.0)
    (g,) = pb.autograd.grad(pb.checkpoint(cube)(x), x, create_graph=True)
    g.backward()
    assert (g.item(), x.grad.item()) == (12.0, 12.0)


def test_a_function_that_computes_a_gradient_itself_can_be_checkpointed():
    inner = pb.grad(lambda x: (x * x * x).sum())
    found = pb.grad(pb.checkpoint(lambda x: (inner(x) * x).sum()))(np.array([1.0, 2.0]))
    assert found.tolist() == [9.0, 36.0]


@pytest.mark.parametrize(
    "transform",
    [
        lambda f, x: pb.grad(f)(x),
        lambda f, x: pb.hessian(f)(x),
        lambda f, x: pb.hvp(f)(x, x),
        lambda f, x: pb.vhp(f)(x, x),
        lambda f, x: pb.jvp(f, (x,), (x,))[1],
        lambda f, x: pb.linearize(f, x)[1](x),
        lambda f, x: pb.jvp(pb.grad(f), (x,), (x,))[1],
        lambda f, x: pb.grad(lambda z: pb.jvp(f, (z,), (z,))[1])(x),
        lambda f, x: pb.jacobian(pb.grad(pb.checkpoint(f)))(x),
    ],
    ids=[
        "grad",
        "hessian",
        "hvp",
        "vhp",
        "jvp",
        "linearize",
        "forward-reverse",
        "gradjvp",
        "twice",
    ],
)
def test_transforms_of_a_checkpointed_function_are_those_of_the_function(transform):
    def function(x):
        return (x.sin() * x).exp().sum() + (x * x * x).mean()

    x = np.array([0.3, 0.4, -0.2])
    found, expected = transform(pb.checkpoint(function), x), transform(function, x)
    np.testing.assert_allclose(found, expected, rtol=1e-13)


def test_the_modes_of_the_call_stand_in_the_second_run():
    modes, x = [], leaf(1.0)

    def function(x):
        modes.append(pb.is_grad_enabled())
        with pb.no_grad():
            fixed = x * 2
        return x.exp() * fixed

    y = pb.checkpoint(function)(x)
    with pb.no_grad():
        y.backward()
    assert modes == [True, True]
    assert x.grad.item() == pytest.approx(2 * np.e)


# ---- inside of transforms, and around them -------------------------------------------------------
OUTSIDE = {
    "jvp": lambda f: pb.jvp(f, (1.0,), (1.0,))[1],
    "vmap": lambda f: pb.vmap(f)(np.array([1.0, 1.0])).mean(),
}


@pytest.mark.parametrize("transform", OUTSIDE)
def test_an_argument_may_come_from_outside_of_the_transform_that_is_running(transform):
    def function(w):
        kept = pb.checkpoint(lambda x, w: (x * w).exp())
        return OUTSIDE[transform](lambda x: kept(x, w))

    expected = {"jvp": 3 * np.exp(2), "vmap": np.exp(2)}[transform]
    assert pb.grad(function)(2.0) == pytest.approx(expected)


def test_a_gradient_that_the_function_computes_is_differentiated_after_the_call_returned():
    def function(x):
        return pb.checkpoint(lambda: pb.grad(lambda u: u * u * u)(x))()

    out, vjp_fn = pb.vjp(function, 2.0)
    assert (out, vjp_fn(1.0)) == (12.0, (12.0,))


def test_the_function_may_differentiate_by_what_its_argument_came_from():
    x = leaf(2.0)
    kept = pb.checkpoint(lambda h: pb.autograd.grad((h * h).sum(), x, create_graph=True)[0])
    kept(x * x).backward()
    assert x.grad.tolist() == [48.0]  # of x**4, twice


def test_hooks_that_the_function_gives_its_arguments_run_once():
    def function(x):
        x.register_hook(lambda g: g * 10)
        return x * x

    x = leaf(3.0)
    pb.checkpoint(function)(x * 1).backward()
    assert x.grad.tolist() == [60.0]


@pytest.mark.parametrize(
    "transform",
    [
        lambda f, x: pb.grad(f)(x),
        lambda f, x: pb.hessian(f)(x),
        lambda f, x: pb.hvp(f)(x, x),
        lambda f, x: pb.jacrev(pb.grad(f))(x),
        lambda f, x: pb.grad(lambda z: pb.grad(f)(z).sum())(x),
        lambda f, x: pb.grad(lambda w: pb.jvp(lambda z: f(z * w), (x,), (x,))[1])(2.0),
        lambda f, x: pb.vmap(pb.grad(f))(np.stack([x, x])),
    ],
    ids=["grad", "hessian", "hvp", "jacgrad", "gradgrad", "gradjvp", "vmapgrad"],
)
def test_transforms_run_a_function_at_most_once_more_for_each_level(transform):
    runs = []
    for wrap in (lambda f: f, pb.checkpoint):
        innermost = Counted(waves)
        middle = wrap(innermost)
        transform(wrap(lambda x, f=middle: f(x).sin().sum()), np.array([0.2, 0.3]))
        runs.append(innermost.runs)
    assert runs[1] <= 3 * runs[0]


# ---- random numbers ------------------------------------------------------------------------------
def test_random_draws_are_repeated_and_the_generator_goes_on_as_without():
    own = pb.Generator(seed=3)
    x = leaf(*[1.0] * 50)

    def function(x):
        return pb.nn.functional.dropout(x, 0.5) * pb.rand(50, generator=own)

    results = []
    for wrapped in (function, pb.checkpoint(function)):
        pb.manual_seed(0)
        own.manual_seed(3)
        y = wrapped(x)
        between = pb.rand(3)
        (g,) = pb.autograd.grad(y.sum(), x)
        results.append((y, g, between, pb.rand(3), pb.rand(3, generator=own)))
    for plain, checkpointed in zip(*results, strict=True):
        assert plain.tolist() == checkpointed.tolist()
    assert (
        results[1][0].tolist() == results[1][1].tolist()
    )  # x is 1: what backward drew is the same


def test_nested_checkpoints_repeat_the_draws_of_each():
    def inner(x):
        return x * pb.rand(4, dtype="float64") * x

    def outer(wrap):
        return lambda x: wrap(inner)(x * pb.rand(4, dtype="float64")).exp()

    x, found = leaf(0.1, 0.2, 0.3, 0.4), []
    for wrap in (lambda f: f, pb.checkpoint):
        pb.manual_seed(1)
        found += [pb.autograd.grad(wrap(outer(wrap))(x).sum(), x)[0].tolist(), pb.rand(1).item()]
    assert found[:2] == found[2:]


# ---- nesting and memory --------------------------------------------------------------------------
@pytest.mark.parametrize("depth", [1, 2, 3, 5])
def test_nested_checkpoints_run_a_function_depth_plus_one_times(depth):
    innermost = Counted(waves)
    function = innermost
    for _ in range(depth):
        function = pb.checkpoint(lambda x, inner=function: inner(x).sin())
    plain, x = waves, leaf(0.2, 0.3)
    for _ in range(depth):
        plain = lambda x, inner=plain: inner(x).sin()  # noqa: E731
    (expected,) = pb.autograd.grad(plain(x).sum(), x)
    (found,) = pb.autograd.grad(function(x).sum(), x)
    assert found.tolist() == expected.tolist()
    assert innermost.runs == depth + 1


SIZE = 20_000


def _saved(function):
    """Return the bytes that a result keeps, and the most while it is made and pulled back."""
    x = pb.tensor(np.linspace(0.1, 0.9, SIZE), requires_grad=True)
    tracemalloc.start()
    try:
        y = function(x)
        kept = tracemalloc.get_traced_memory()[0]
        y.sum().backward()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    return kept, peak


def test_a_hundred_layers_with_checkpoints_every_ten_keep_a_tenth():
    def layers(x, count):
        for _ in range(count):
            x = (x * x).sin()
        return x

    def segments(x):
        for _ in range(10):
            x = pb.checkpoint(layers)(x, 10)
        return x

    plain, plain_peak = _saved(lambda x: layers(x, 100))
    kept, peak = _saved(segments)
    assert kept < 0.15 * plain
    assert peak < 0.3 * plain_peak


def test_the_backward_of_a_deep_chain_needs_a_few_arrays_beyond_what_is_saved():
    def chain(x):
        for _ in range(200):
            x = x.sin()
        return x

    kept, peak = _saved(chain)
    assert peak < kept + 8 * 8 * SIZE


def test_a_checkpoint_leaves_nothing_to_the_garbage_collector():
    gc.collect()
    gc.disable()
    try:
        x = leaf(1.0, 2.0)
        double = pb.checkpoint(lambda x: pb.checkpoint(waves)(x).exp())
        double(x).sum().backward()
        double(x)
        assert gc.collect() == 0
    finally:
        gc.enable()


# ---- misuse --------------------------------------------------------------------------------------
SECOND = {
    "other numbers": (lambda x: x * x * x, "returns what the first did .* got other numbers"),
    "another shape": (lambda x: (x * x)[:1], r"instead of shape \(2,\), dtype float64"),
    "no graph": (lambda x: (x * x).detach(), "0 results that require grad instead of 1"),
    "another graph": (lambda x: x * x.detach() + OTHER * 0, "leads to what the first led to"),
}
OTHER = leaf(1.0, 1.0)


@pytest.mark.parametrize("name", SECOND)
def test_a_second_run_that_returns_something_else_is_an_error(name):
    second, message = SECOND[name]
    function, x = Counted(None), leaf(2.0, 3.0)
    function.function = lambda x: x * x if function.runs == 1 else second(x)
    with pytest.raises(pb.errors.GraphError, match=message):
        pb.checkpoint(function)(x).sum().backward()
    assert pb.is_grad_enabled()
    assert x.grad is None


@pytest.mark.parametrize("second", [lambda x: x.sum(), lambda x: 3, lambda x: x.detach()])
def test_results_of_another_kind_are_an_error_where_numbers_are_not_checked(second):
    function, x = Counted(None), leaf(2.0, 3.0)
    function.function = lambda x: x * x if function.runs == 1 else second(x)
    with pytest.raises(pb.errors.GraphError, match="returns what the first did required, got"):
        pb.checkpoint(function, check=False)(x).sum().backward()


def test_a_tensor_from_outside_that_both_runs_change_is_an_error_where_numbers_are_not_checked():
    x, w = leaf(2.0), leaf(3.0)
    outside = w * 1

    def function(x):
        outside.mul_(x)
        return outside * x

    y = pb.checkpoint(function, check=False)(x)
    with pytest.raises(pb.errors.GraphError, match="leads to what the first led to in the graph"):
        y.backward()


def test_an_exception_of_the_second_run_reaches_the_caller_and_modes_are_restored():
    function, x = Counted(None), leaf(2.0)

    def raises(x):
        pb.rand(1)
        if function.runs == 2:
            raise KeyError("mine")
        return x * x

    function.function = raises
    y = pb.checkpoint(function)(x)
    pb.manual_seed(5)
    with pytest.raises(KeyError, match="mine"):
        y.backward()
    found = pb.rand(1)
    pb.manual_seed(5)
    assert found.item() == pb.rand(1).item()
    (x * x).backward()
    assert x.grad.item() == 4.0


def test_an_argument_that_the_function_changes_in_place_is_an_error():
    with pytest.raises(pb.errors.InplaceError, match="changes no argument in place"):
        pb.checkpoint(lambda x: x.mul_(2))(pb.ones(2))


def test_an_argument_that_is_changed_before_backward_is_an_error():
    x, c = leaf(2.0), pb.tensor(3.0, dtype=pb.float64)
    y = pb.checkpoint(lambda x, c: (x * c).exp())(x, c)
    c.add_(1)
    with pytest.raises(
        pb.errors.InplaceError, match="argument is at version 1; expected version 0"
    ):
        y.backward()


def test_an_argument_that_is_changed_between_two_backwards_is_an_error():
    x = leaf(2.0)
    argument = x * 1
    y = pb.checkpoint(lambda a: a * x)(argument)
    y.backward(retain_graph=True)
    argument.fill_(5.0)
    with pytest.raises(
        pb.errors.InplaceError, match=r"MulBackward: one of .* modified by an inplace"
    ):
        y.backward()


USES = {
    "x, of a custom operation": lambda same: lambda x, w: same(x) * 3,
    "w, closed over": lambda same: lambda x, w: x * w,
    "w, closed over and given to a custom operation": lambda same: lambda x, w: same(w) * x,
}


@pytest.mark.parametrize(("changed", "make"), [(k[0], f) for k, f in USES.items()], ids=USES.keys())
def test_what_the_second_run_saved_is_checked_for_changes_too(changed, make):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    function = make(pb.autograd_function(forward, lambda ctx, g: g * 2 * ctx.saved_tensors[0]))
    a = leaf(1.0)
    x, w = a * 2, a * 3
    y = pb.checkpoint(lambda x: function(x, w))(x)
    (before,) = pb.autograd.grad(y, a, retain_graph=True)
    assert pb.autograd.grad(y, a, retain_graph=True)[0].tolist() == before.tolist()
    {"x": x, "w": w}[changed].mul_(2)
    with pytest.raises(pb.errors.InplaceError, match="modified by an inplace operation"):
        pb.autograd.grad(y, a)


def test_a_value_that_the_function_changes_after_saving_it_is_an_error():
    x = leaf(2.0)
    y = pb.checkpoint(lambda x: x.exp().mul_(2))(x)
    with pytest.raises(
        pb.errors.InplaceError, match=r"ExpBackward: one of .* modified by an inplace"
    ):
        y.backward()


def test_a_result_may_be_changed_in_place():
    x = leaf(0.0)
    y = pb.checkpoint(lambda x: x.exp())(x)
    y.mul_(2)
    y.backward()
    assert x.grad.item() == 2.0


def test_what_is_no_function_is_refused():
    with pytest.raises(pb.errors.ArgumentTypeError, match="checkpoint: a function required, got"):
        pb.checkpoint(3)


# ---- ready-made hooks ----------------------------------------------------------------------------
def test_values_saved_in_a_smaller_dtype_are_widened_for_the_gradient():
    x = pb.tensor([1.0, 1 / 3], dtype=pb.float64, requires_grad=True)
    with pb.save_as(pb.float16):
        y = (x * x).sum()
    y.backward()
    assert x.grad.dtype is pb.float64
    assert x.grad.tolist() == [2.0, 2 * float(np.float16(1 / 3))]


def test_saving_in_a_smaller_dtype_halves_what_is_kept():
    def chain(x):
        for _ in range(50):
            x = x.sin()
        return x

    plain, _ = _saved(chain)
    kept, _ = _saved(pb.save_as("float32")(chain))
    assert kept < 0.6 * plain


def test_complex_numbers_are_saved_with_parts_of_the_dtype_and_integers_as_they_are():
    z = pb.tensor([1 + 2j], dtype=pb.complex128, requires_grad=True)
    with pb.save_as("float32"):
        y = (z * z.conj()).real.sum() + z[pb.tensor([0])].real.sum()
    y.backward()
    assert z.grad.tolist() == [3 + 4j]


def test_a_smaller_dtype_that_is_no_real_floating_one_is_refused():
    with pytest.raises(
        pb.errors.DTypeError, match="save_as: a real floating dtype required, got int"
    ):
        pb.save_as("int32")


def test_what_is_saved_on_the_cpu_comes_back():
    x = leaf(1.0, 3.0)
    with pb.save_on_cpu():
        y = (x * x).sum()
    y.backward()
    assert x.grad.tolist() == [2.0, 6.0]


def test_arguments_of_a_checkpoint_are_saved_by_the_hooks_around_it():
    x = pb.tensor([1 / 3], dtype=pb.float64, requires_grad=True)
    with pb.save_as(pb.float32):
        y = pb.checkpoint(lambda x: x * x)(x)
    y.backward()
    assert x.grad.tolist() == [2 * float(np.float32(1 / 3))]


def test_checkpoint_of_a_function_and_its_arguments_says_how_to_write_it():
    said = (
        r"checkpoint: a function alone required, got Tensor, use_reentrant as well.*checkpoint\(fun"
    )
    with pytest.raises(pb.errors.ArgumentTypeError, match=f"(?s){said}"):
        pb.checkpoint(pb.exp, pb.ones(2), use_reentrant=False)


@pytest.mark.parametrize("scale", [lambda c: c, lambda c: c[:2], lambda c: c.requires_grad_() * 2])
def test_checkpoint_refuses_a_tensor_that_its_function_reads_and_that_changed_since(scale):
    x = pb.zeros(2, requires_grad=True)  # such that the results are the same
    c = scale(pb.ones(3))[:2]
    out = pb.checkpoint(lambda x: (x * c).exp())(x)
    with pb.no_grad():
        c.fill_(5)
    with pytest.raises(pb.errors.InplaceError, match="that the function reads is at version"):
        out.sum().backward()
