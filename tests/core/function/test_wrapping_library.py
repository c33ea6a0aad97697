"""One seam: a library whose arrays wrap those of others, and an empty subclass of Tensor.

`src` knows neither: whatever is declared runs on both, with the values and derivatives of NumPy.
"""

import sys

import numpy as np
import pytest
from tests.core.function._wrapped import Wrapped, unwrapped, wrapping
from tests.ops import _cases
from tests.ops._cases import every, mostly

import pullback as pb
from pullback.core.function.record import apply
from pullback.core.graph.modes import ModeContext
from pullback.errors import ArgumentError, DeviceError

CASES = _cases.cases()
SMOOTH = [case for case in _cases.cases(differentiable=True) if case.wanted]
SAME = {"rtol": 1e-12, "atol": 1e-13}
LIBRARY, OUTER = wrapping(1), wrapping(2)
# Their further results are made of Python numbers.
FIRST_ONLY = {"histogram"}


def wrap(arrays, library=LIBRARY):
    return [library.wrap(np.asarray(a)) for a in arrays]


def two_deep(arrays):
    return [OUTER.wrap(a) for a in wrap(arrays)]


def values(tensors):
    return [unwrapped(t) for t in tensors]


def agree(ours, theirs):
    for a, b in zip(ours, theirs, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_allclose(a, b, **SAME)


def leaf(value, library=LIBRARY):
    return pb.asarray(library.wrap(np.asarray(value, dtype=np.float64))).requires_grad_()


def is_wrapped(tensor, library=LIBRARY):
    return type(tensor.data_array()) is library.array_types[0]


# -- the whole registry ---------------------------------------------------------------------------
@mostly(CASES)
def test_every_operation_has_the_values_of_numpy_on_wrapped_arrays(case):
    arrays = case.arrays()
    ours = case.call(_cases.leaves(wrap(arrays)))
    checked = ours[:1] if case.name in FIRST_ONLY else ours
    assert all(map(is_wrapped, checked))
    agree(values(ours), values(case.call(_cases.leaves(arrays))))


def derivatives(case, arrays, seeds, weights, leaves=_cases.leaves):
    """Return the gradients of both orders."""
    first = _cases.gradients(case, leaves(arrays, case.wanted), seeds)
    tensors = leaves(arrays, case.wanted)
    given = leaves(seeds, range(len(seeds)))
    recorded = _cases.gradients(case, tensors, given, create_graph=True)
    rows = [(g, pb.asarray(w)) for g, w in zip(recorded, weights, strict=True) if g.requires_grad]
    towards = [*(tensors[i] for i in case.wanted), *given]
    second = []
    if rows:
        grads, factors = zip(*rows, strict=True)
        second = pb.autograd.grad(grads, towards, factors, materialize_grads=True)
    return [*first, *second]


def both_orders(case, wrap_inputs, wrap_seeds):
    """Return the derivatives of a case with inputs and seeds of some library, and NumPy's."""
    arrays = case.arrays()
    seeds = _cases.seeds_for(case.call(_cases.leaves(arrays)), case.rng())
    weights = [_cases.random_like(arrays[i], case.rng()) for i in case.wanted]
    theirs = derivatives(case, arrays, seeds, weights)
    ours = derivatives(case, wrap_inputs(arrays), wrap_seeds(seeds), wrap_seeds(weights))
    return ours, theirs


@mostly(SMOOTH)
def test_every_operation_has_the_derivatives_of_numpy_on_wrapped_arrays(case):
    ours, theirs = both_orders(case, wrap, wrap)
    agree(values(ours), values(theirs))


@mostly(SMOOTH)
def test_a_plain_seed_over_wrapped_values(case):
    ours, theirs = both_orders(case, wrap, list)
    agree(values(ours), values(theirs))


@mostly(SMOOTH)
def test_a_wrapped_seed_over_a_plain_graph(case):
    ours, theirs = both_orders(case, list, wrap)
    agree(values(ours), values(theirs))


FIRST = [case for case in SMOOTH if case.number == 0]


@pytest.mark.stress
@every(FIRST)
def test_two_deep(case):
    ours, theirs = both_orders(case, two_deep, two_deep)
    assert all(is_wrapped(g, OUTER) for g in ours[: len(case.wanted)])
    agree(values(ours), values(theirs))


@pytest.mark.stress
@every(FIRST)
def test_the_outer_of_two_over_the_inner(case):
    ours, theirs = both_orders(case, wrap, two_deep)
    agree(values(ours), values(theirs))


@every([case for case in FIRST if len(case.wanted) > 1])
def test_plain_tensors_beside_wrapped_ones(case):
    def only_the_last(arrays):
        return [*arrays[:-1], *wrap(arrays[-1:])]

    assert any(map(is_wrapped, case.call(_cases.leaves(only_the_last(case.arrays())))))
    ours, theirs = both_orders(case, only_the_last, list)
    agree(values(ours), values(theirs))


# -- parts that are tensors -----------------------------------------------------------------------
def by_the_parts(results, inputs, factors):
    """Return the gradients of the tensors in `results` in the tensors in `inputs`."""
    rows = []
    for result, factor in zip(results, factors, strict=True):
        part = pb.asarray(result.data_array().value) if is_wrapped(result) else result
        if part.requires_grad:
            rows.append((part, pb.asarray(factor)))
    if not rows:
        return [np.zeros_like(_cases.host(t)) for t in inputs]
    parts, factors = zip(*rows, strict=True)
    return values(pb.autograd.grad(parts, inputs, factors, materialize_grads=True))


@mostly(SMOOTH)
def test_the_graph_of_parts_that_are_tensors(case):
    arrays = case.arrays()
    inner = _cases.leaves(arrays, case.wanted)
    outputs = case.call(_cases.leaves([LIBRARY.wrap(t) for t in inner]))
    seeds = _cases.seeds_for(case.call(_cases.leaves(arrays)), case.rng())
    ours = by_the_parts(outputs, [inner[i] for i in case.wanted], seeds)
    agree(ours, _cases.first_order(case, arrays, seeds))


@mostly(SMOOTH)
def test_an_unrecorded_pass_keeps_the_graph_of_its_parts(case):
    arrays = case.arrays()
    inner = _cases.leaves(arrays, case.wanted)
    tensors = _cases.leaves([LIBRARY.wrap(t) for t in inner], case.wanted)
    seeds = _cases.seeds_for(case.call(_cases.leaves(arrays)), case.rng())
    weights = [_cases.random_like(arrays[i], case.rng()) for i in case.wanted]
    gradients = _cases.gradients(case, tensors, seeds)
    ours = by_the_parts(gradients, [inner[i] for i in case.wanted], weights)
    agree(ours, _cases.second_order(case, arrays, seeds, weights)[: len(case.wanted)])


def test_parts_are_recorded_in_no_mode_that_the_user_switched_off():
    x = pb.tensor([2.0], dtype="float64", requires_grad=True)
    t = pb.asarray(LIBRARY.wrap(x)).requires_grad_()
    with pb.no_grad():
        assert not (t * t).data_array().value.requires_grad
        (g,) = pb.autograd.grad(t, t, pb.tensor([3.0], dtype="float64"))
    y = t * t
    with pb.no_grad():
        (g,) = pb.autograd.grad(y, t, pb.tensor([1.0], dtype="float64"))
    assert not g.data_array().value.requires_grad
    (g,) = pb.autograd.grad(t * t, t, pb.tensor([1.0], dtype="float64"))
    assert not g.requires_grad
    assert g.data_array().value.requires_grad
    seen = []

    def forward(ctx, a):
        seen.append((a * a).data_array().value.requires_grad)
        with pb.no_grad():
            seen.append((a * a).data_array().value.requires_grad)
        return a * 2

    double = pb.autograd_function(forward, lambda ctx, g: g * 2)
    assert double(t).data_array().value.requires_grad
    assert seen == [True, False]


# -- the generated call ---------------------------------------------------------------------------
def calls_of(function, program):
    """Return how often a Python function is called while a program runs."""
    count = 0

    def watch(frame, event, argument):
        nonlocal count
        count += event == "call" and frame.f_code is function.__code__

    sys.setprofile(watch)
    try:
        program()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_generated_call_is_used_for_wrapped_arrays(dtype):
    array = LIBRARY.wrap(np.ones((3, 3), dtype))
    x = pb.asarray(array).requires_grad_()
    y = pb.asarray(array)

    def program():
        z = (x * y + 1.0).exp() / (2.0 - y)
        z = z.sum(axis=0) + (x @ y).tanh()[0] + x[1:].reshape((6,))[:3]
        pb.autograd.grad(z, x, z.detach())

    program()
    assert calls_of(apply, program) == 0
    with pb.no_grad():
        assert calls_of(apply, lambda: x * y) == 0
    assert calls_of(apply, lambda: x * pb.ones(3, dtype=dtype)) == 1  # lifted


def test_a_users_forward_and_backward_use_the_generated_call_too():
    op = pb.autograd_function(lambda ctx, a: a * 2.0, lambda ctx, g: g * 2.0)
    x = pb.tensor([1.0], requires_grad=True)
    assert calls_of(apply, lambda: op(x).backward()) == 0


# -- changes in place, views ----------------------------------------------------------------------
def test_changes_in_place_reach_views_and_the_graph():
    x, s = leaf([1.0, 2.0, 3.0]), leaf(5.0)
    base = x * 2.0
    head, tail = base[:2], base[1:]
    array = base.data_array()
    tail.mul_(x[1:])
    base[0] = s * s
    head += pb.tensor([1.0, 1.0], dtype="float64")  # plain, lifted
    assert unwrapped(base).tolist() == [26.0, 9.0, 18.0]
    assert unwrapped(head).tolist() == [26.0, 9.0]
    assert unwrapped(tail).tolist() == [9.0, 18.0]
    assert array.value.tolist() == [2.0, 4.0, 6.0]  # nothing is written to
    assert base._version == tail._version == 3
    assert all(map(is_wrapped, (base, head, tail)))
    (head.sum() + tail.sum()).backward()
    assert unwrapped(x.grad).tolist() == [0.0, 16.0, 12.0]
    assert unwrapped(s.grad) == 10.0


def test_a_saved_value_that_was_changed_raises():
    x = leaf([1.0, 2.0])
    y = x * 1.0
    z = y * y
    y[0] = 3.0
    with pytest.raises(pb.errors.InplaceError, match="modified by an inplace operation"):
        z.sum().backward()


def test_a_plain_tensor_that_is_lifted_keeps_its_version_and_memory():
    plain = pb.tensor([1.0, 2.0], dtype="float64")
    x = leaf([3.0, 4.0])
    y = x * plain
    plain.add_(1.0)
    with pytest.raises(pb.errors.InplaceError, match="modified by an inplace operation"):
        y.sum().backward()
    view = plain[1:]
    y = x[1:] * view
    plain.mul_(2.0)
    assert view.tolist() == [6.0]
    with pytest.raises(pb.errors.InplaceError, match="modified by an inplace operation"):
        y.sum().backward()


@pytest.mark.parametrize(
    "write",
    [
        lambda x, w: x.add_(w),
        lambda x, w: x.copy_(w),
        lambda x, w: x.__setitem__(slice(1), w[:1]),
        lambda x, w: x.__setitem__((w > 0), 1.0),
        lambda x, w: x[1:].mul_(w[1:]),
        lambda x, w: pb.add(w, w, out=x),
    ],
)
def test_a_wrapped_value_cannot_be_written_into_a_plain_tensor(write):
    x = pb.tensor([1.0, 2.0], dtype="float64")
    with pytest.raises(DeviceError, match="of one array library"):
        write(x, leaf([1.0, 2.0]).detach())
    assert x.tolist() == [1.0, 2.0]
    assert x._version == 0


def test_a_plain_value_is_written_into_a_wrapped_tensor():
    x = leaf([1.0, 2.0]).detach()
    plain = pb.tensor([5.0, 6.0], dtype="float64", requires_grad=True)
    x.copy_(plain)
    x[1:] = plain[:1]
    assert unwrapped(x).tolist() == [5.0, 5.0]
    x.sum().backward()
    assert unwrapped(plain.grad).tolist() == [2.0, 0.0]


def test_results_are_written_into_a_wrapped_tensor():
    out = leaf([0.0, 0.0]).detach()
    pb.add(leaf([1.0, 2.0]).detach(), pb.tensor([5.0, 6.0], dtype="float64"), out=out)
    assert unwrapped(out).tolist() == [6.0, 8.0]


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
def test_observers_and_packing_of_saved_values():
    x = leaf([1.0, 2.0])
    packed = []
    with (
        pb.autograd.detect_anomaly(),
        pb.saved_tensors_hooks(lambda t: packed.append(t) or t, lambda t: t),
    ):
        (x * x).sum().backward()
    assert unwrapped(x.grad).tolist() == [2.0, 4.0]
    assert all(map(is_wrapped, packed))


# -- gradients of both kinds ----------------------------------------------------------------------
def test_plain_and_wrapped_gradients_add_up_at_leaves_and_on_the_way():
    x = pb.tensor([1.0, 2.0], dtype="float64", requires_grad=True)
    w = leaf([3.0, 4.0])
    y = x * 1.0
    outputs, seeds = [y * w, y * 2.0, y * 5.0], [np.ones(2)] * 3
    pb.autograd.backward(outputs, [pb.asarray(s) for s in seeds])
    assert unwrapped(x.grad).tolist() == [10.0, 11.0]
    assert is_wrapped(x.grad)
    (x * 2.0).sum().backward()
    assert unwrapped(x.grad).tolist() == [12.0, 13.0]
    x.grad = x.grad * 1.0  # wrapped, of a plain leaf
    plain = pb.tensor([1.0, 2.0], dtype="float64", requires_grad=True)
    (plain * 2.0).sum().backward()
    (plain * w.detach()).sum().backward()
    assert unwrapped(plain.grad).tolist() == [5.0, 6.0]


def test_gradients_of_hooks_and_users_operations_are_checked_by_what_is_wrapped():
    w = leaf([3.0, 4.0]).detach()
    x = pb.tensor([1.0, 2.0], dtype="float64", requires_grad=True)
    y = x * 2.0
    y.register_hook(lambda g: g * w)
    op = pb.autograd_function(lambda ctx, a: a * 1.0, lambda ctx, g: g * w)
    op(y).sum().backward()
    assert unwrapped(x.grad).tolist() == [18.0, 32.0]
    t = leaf([1.0, 2.0])
    op = pb.autograd_function(lambda ctx, a: a * 1.0, lambda ctx, g: np.asarray([5.0, 6.0]))
    op(t).sum().backward()
    assert unwrapped(t.grad).tolist() == [5.0, 6.0]
    wrong = pb.autograd_function(lambda ctx, a: a * 1.0, lambda ctx, g: w[:1])
    with pytest.raises(pb.errors.GradientError, match="wrong shape"):
        wrong(x).sum().backward()


# -- a user's operation that the library takes over -----------------------------------------------
class Intercepting(type(OUTER)):
    """Runs a user's operation on what is wrapped; one node, whose backward does the same."""

    def __init__(self):
        super().__init__(3)
        self.calls, self.peeled = [], {}

    def call(self, op, arguments, values):
        if op in self.peeled.values():
            return NotImplemented
        self.calls.append((op.name, arguments.names))
        if op not in self.peeled:
            self.peeled[op] = self.peeling(op)
        return self.peeled[op](*values)

    def peeling(self, op):
        def forward(ctx, *values):
            with pb.enable_grad():
                inner = [pb.asarray(v.data_array().value).requires_grad_() for v in values]
                ctx.out, ctx.inner = op(*inner), inner
            return self.boxed(ctx.out)

        def backward(ctx, g):
            found = pb.autograd.grad(ctx.out, ctx.inner, pb.asarray(g.data_array().value))
            return tuple(map(self.boxed, found))

        return pb.autograd_function(forward, backward, name=f"{op.name}_on_parts")

    def boxed(self, tensor):
        return pb.asarray(self.wrap(tensor.detach().data_array()))


def test_a_users_operation_is_handed_to_a_library_that_takes_it():
    library = Intercepting()
    pb.arrays.register(library)
    seen = []

    def forward(ctx, a, b=2.0):
        seen.append(type(a.data_array()))
        ctx.save_for_backward(a=a, b=b)
        return a * b

    def backward(ctx, g):
        seen.append(type(g.data_array()))
        return {"a": g * ctx.saved_variables.b, "b": g * ctx.saved_variables.a}

    op = pb.autograd_function(forward, backward, name="product")
    x, y = leaf([1.0, 2.0], library), leaf([3.0, 4.0], library)
    out = op(b=y, a=x)
    assert library.calls == [("product", ("a", "b"))]
    assert out.grad_fn.name() == "product_on_partsBackward"
    assert [node for node, _ in out.grad_fn.next_functions] == [x._node, y._node]
    out.sum().backward()
    assert (unwrapped(x.grad).tolist(), unwrapped(y.grad).tolist()) == ([3.0, 4.0], [1.0, 2.0])
    assert is_wrapped(x.grad, library)
    assert seen == [np.ndarray, np.ndarray]
    plain = pb.tensor([1.0], dtype="float64", requires_grad=True)
    assert op(plain).grad_fn.name() == "productBackward"
    assert len(library.calls) == 1


# -- a mode with a library ------------------------------------------------------------------------
def test_a_mode_with_a_library_lifts_what_has_no_wrapped_operand():
    x = pb.tensor([1.0, 2.0], dtype="float64", requires_grad=True)
    captured = pb.tensor([1.0, 1.0], dtype="float64")
    part = captured[1:]
    with ModeContext({"library": LIBRARY}):
        made = [pb.zeros(2), pb.ones_like(x), pb.tensor([1.0]), pb.asarray([1, 2]), pb.arange(3)]
        made += [pb.full((2,), 3.0), pb.randn(2), pb.randperm(3), pb.randint(0, 2, (2,))]
        assert all(map(is_wrapped, made))
        y = x * x + 1.0
        head = x[:1]
        assert all(map(is_wrapped, (y, head, x.exp(), pb.cat([x, x]), x.sum())))
        assert not is_wrapped(x)
        captured.add_(1.0)
        captured[:1] = 5.0
        assert is_wrapped(captured)
        assert unwrapped(part).tolist() == [2.0]
        with pb.no_grad():
            captured.mul_(2.0)
    assert head._base is x
    assert unwrapped(captured).tolist() == [10.0, 4.0]
    assert unwrapped(part).tolist() == [4.0]
    y.sum().backward()
    assert unwrapped(x.grad).tolist() == [2.0, 4.0]
    assert not is_wrapped(pb.zeros(2))


def test_a_view_that_was_taken_in_such_a_mode_writes_to_its_base():
    x = pb.tensor([1.0, 2.0, 3.0], dtype="float64")
    with ModeContext({"library": LIBRARY}):
        x[1:][:1].mul_(10.0)
    assert unwrapped(x).tolist() == [1.0, 20.0, 3.0]
    assert is_wrapped(x)


# -- which library wraps which --------------------------------------------------------------------
def test_a_library_is_registered_once_for_a_class():
    with pytest.raises(ArgumentError, match=r"^register: classes of arrays without a library"):
        pb.arrays.register(LIBRARY)
    assert pb.arrays.library_of(LIBRARY.wrap(np.ones(2))) is LIBRARY
    assert pb.arrays.library_of_class(Wrapped) is None


def test_the_library_of_several():
    join, numpy, cupy = pb.arrays.join, pb.arrays.NUMPY, pb.arrays.CUPY
    assert join([numpy]) is join([numpy, numpy]) is numpy
    assert join([numpy, LIBRARY, numpy]) is join([LIBRARY, numpy]) is LIBRARY
    assert join([numpy, OUTER, LIBRARY, cupy]) is OUTER
    assert join([numpy, cupy]) is None
    array = np.ones(2)
    assert numpy.wrap(array) is array
    with pytest.raises(DeviceError, match=r"^wrap: an array of numpy required, got a Wrapped1"):
        numpy.wrap(LIBRARY.wrap(array))


def test_no_values_leave_through_host_numpy():
    library = pb.arrays.WrappingLibrary("bare", None)
    for call in (
        lambda: library.to_numpy(None),
        lambda: library.special("erf", None),
        lambda: library.assign(None, 0, 0),
        lambda: library.add_at(None, 0, 0),
        lambda: library.fold(None, (), (), (), ()),
        lambda: library.moved(None, "cpu", None),
    ):
        with pytest.raises(DeviceError, match=r"^bare: an array library with"):
            call()


# -- an empty subclass ----------------------------------------------------------------------------
class Empty(pb.Tensor):
    """A tensor with nothing of its own."""

    __slots__ = ()


def of_the_subclass(arrays):
    tensors = []
    for array in arrays:
        tensor = Empty()
        for name in ("_data", "_node", "_counter", "_base", "_grad"):
            setattr(tensor, name, getattr(pb.asarray(array), name))
        tensors.append(tensor)
    return tensors


@mostly(SMOOTH)
def test_a_subclass_has_the_derivatives_of_its_values(case):
    def leaves_of(arrays, wanted=()):
        tensors = of_the_subclass(arrays)
        for i in wanted:
            tensors[i].requires_grad_()
        return tensors

    arrays = case.arrays()
    seeds = _cases.seeds_for(case.call(_cases.leaves(arrays)), case.rng())
    weights = [_cases.random_like(arrays[i], case.rng()) for i in case.wanted]
    theirs = derivatives(case, arrays, seeds, weights)
    ours = derivatives(case, arrays, seeds, weights, leaves_of)
    agree(values(ours), values(theirs))
