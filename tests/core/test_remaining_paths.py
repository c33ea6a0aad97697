"""In-place programs on arrays that refuse to be written to, and paths that few programs take."""

import operator
from types import ModuleType

import numpy as np
import pytest

import pullback as pb
from pullback import arrays
from pullback.errors import (
    ArgumentTypeError,
    GradientError,
    InplaceError,
    ReleasedError,
)

# -- a library whose arrays cannot be written to ---------------------------------------------------


class Frozen:
    """An array of fixed values: a private NumPy copy, with no item assignment and no ``+=``."""

    __array_ufunc__ = None
    device = "cpu"

    def __init__(self, values):
        self._values = np.array(values)
        self._values.flags.writeable = False
        self.shape, self.dtype = self._values.shape, self._values.dtype
        self.ndim, self.size = self._values.ndim, self._values.size

    def __array__(self, dtype=None, copy=None):
        return np.array(self._values, dtype=dtype)

    def __array_namespace__(self, api_version=None):
        return frozen

    def __getitem__(self, index):
        return Frozen(self._values[bare(index)])

    @property
    def mT(self):
        return Frozen(self._values.mT)


def bare(value):
    if isinstance(value, (tuple, list)):
        return type(value)(map(bare, value))
    return value._values if isinstance(value, Frozen) else value


def solid(value):
    if isinstance(value, (tuple, list)):
        return type(value)(map(solid, value))
    return Frozen(value) if isinstance(value, (np.ndarray, np.generic)) else value


def lifted(function):
    def call(*args, **kwargs):
        return solid(function(*map(bare, args), **{k: bare(v) for k, v in kwargs.items()}))

    return call


for _name in ("add", "sub", "mul", "truediv", "pow", "matmul", "and_", "lt", "le", "gt", "ge"):
    _operator = getattr(operator, _name)
    setattr(Frozen, f"__{_name.strip('_')}__", lifted(_operator))
    _mirrored = lifted(lambda a, b, op=_operator: op(b, a))
    setattr(Frozen, f"__r{_name.strip('_')}__", _mirrored)
for _name in ("eq", "ne", "neg", "invert", "abs"):
    setattr(Frozen, f"__{_name}__", lifted(getattr(operator, _name)))


def _of_numpy(name):
    value = getattr(np, name)
    plain = isinstance(value, type) or not callable(value) or name == "__array_namespace_info__"
    return value if plain else lifted(value)


frozen = ModuleType("frozen")
frozen.__getattr__ = _of_numpy


class FrozenLibrary(arrays.Library):
    mutable = False
    array_types = (Frozen,)


@pytest.fixture(params=["numpy", "frozen"])
def make(request, monkeypatch):
    """Make a tensor of one of the two libraries."""
    monkeypatch.setitem(arrays._generic, "frozen", FrozenLibrary("frozen", frozen))
    monkeypatch.delitem(arrays._by_type, Frozen, raising=False)
    kind = Frozen if request.param == "frozen" else np.asarray

    def make(values, requires_grad=False):
        t = pb.asarray(kind(np.asarray(values, dtype=np.float64)))
        return t.requires_grad_() if requires_grad else t

    yield make
    arrays._by_type.pop(Frozen, None)


def test_the_arrays_of_the_library_cannot_be_written_to(make):
    array = Frozen([1.0, 2.0])
    with pytest.raises(TypeError, match="does not support item assignment"):
        array[0] = 5.0
    same = array
    same += 1.0
    assert same is not array
    assert np.asarray(array).tolist() == [1.0, 2.0]
    assert repr(arrays.library_of(array)) == "<array library frozen>"
    assert not arrays.library_of(array).mutable


def test_an_in_place_product_of_the_whole_tensor(make):
    x = make([1.0, 2.0], requires_grad=True)
    y = x * 3.0
    y.mul_(x)
    y += 1.0
    assert y.tolist() == [4.0, 13.0]
    assert y._version == 2
    y.sum().backward()
    assert x.grad.tolist() == [6.0, 12.0]


def test_a_change_of_one_part_of_complex_numbers_leaves_the_other(make):
    array = make([0.0]).data_array()
    values = np.array([1 + 2j, 3j, -1j])
    x = pb.asarray(Frozen(values) if isinstance(array, Frozen) else values).requires_grad_()
    y = x * 2
    y.imag[1:].mul_(10.0)
    assert y.tolist() == [2 + 4j, 60j, -20j]
    y[:2].add_(1j)
    assert y.tolist() == [2 + 5j, 61j, -20j]
    (gradient,) = pb.autograd.grad((y.real + y.imag).sum(), x, create_graph=True)
    assert gradient.tolist() == [2 + 2j, 2 + 20j, 2 + 20j]


def test_a_change_of_a_view_reaches_its_base(make):
    x = make([1.0, 2.0, 3.0], requires_grad=True)
    base = x * 1.0
    part = base[1:]
    part.mul_(10.0)
    assert base.tolist() == [1.0, 20.0, 30.0]
    assert part.tolist() == [20.0, 30.0]
    (base * base).sum().backward()
    assert x.grad.tolist() == [2.0, 400.0, 600.0]


def test_a_change_of_a_view_reaches_the_other_views(make):
    x = make([1.0, 2.0, 3.0], requires_grad=True)
    base = x * 1.0
    first, tail = base[0], base[1:]
    overlap = base[:2]
    overlap.mul_(make([5.0, 7.0]))
    assert first.item() == 5.0
    assert tail.tolist() == [14.0, 3.0]
    (first + tail.sum()).backward()
    assert x.grad.tolist() == [5.0, 7.0, 1.0]


def test_a_change_of_the_base_refreshes_its_views(make):
    x = make([1.0, 2.0, 3.0], requires_grad=True)
    base = x * 1.0
    part = base[::-1][:2]
    base.mul_(4.0)
    assert part.tolist() == [12.0, 8.0]
    part.sum().backward()
    assert x.grad.tolist() == [0.0, 4.0, 4.0]


def test_a_change_through_several_steps_of_views(make):
    x = make([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], requires_grad=True)
    base = x * 2.0
    column = base.t()[1:][0]
    column.mul_(x[0][:2])
    assert base.tolist() == [[2.0, 4.0, 6.0], [8.0, 20.0, 12.0]]
    base.sum().backward()
    assert x.grad.tolist() == [[6.0, 12.0, 2.0], [2.0, 4.0, 2.0]]


def test_a_change_of_a_diagonal(make):
    x = make([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    base = x * 1.0
    base.diagonal().mul_(10.0)
    assert base.tolist() == [[10.0, 2.0], [3.0, 40.0]]
    base.sum().backward()
    assert x.grad.tolist() == [[10.0, 1.0], [1.0, 10.0]]


def test_items_are_set_with_their_history(make):
    x = make([1.0, 2.0, 3.0], requires_grad=True)
    s = make(5.0, requires_grad=True)
    base = x * 2.0
    head = base[:2]
    base[0] = s * s
    base[1:] = make([7.0, 8.0])
    assert base.tolist() == [25.0, 7.0, 8.0]
    assert head.tolist() == [25.0, 7.0]
    (head * 3.0).sum().backward()
    assert x.grad.tolist() == [0.0, 0.0, 0.0]
    assert s.grad.item() == 30.0


def test_items_of_a_view_are_set_in_the_base(make):
    x = make([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    s = make([2.0, 3.0], requires_grad=True)
    base = x * 1.0
    row = base[1]
    row[:] = s * 2.0
    base[[0], [1]] = 9.0
    assert base.tolist() == [[1.0, 9.0], [4.0, 6.0]]
    assert row.tolist() == [4.0, 6.0]
    base.sum().backward()
    assert x.grad.tolist() == [[1.0, 0.0], [0.0, 0.0]]
    assert s.grad.tolist() == [2.0, 2.0]


def test_copy_and_fill_of_views(make):
    x = make([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    base = x * 2.0
    base[:2].copy_(x[2:])
    base[3].fill_(7.0)
    assert base.tolist() == [3.0, 4.0, 6.0, 7.0]
    base.sum().backward()
    assert x.grad.tolist() == [0.0, 0.0, 3.0, 1.0]


def test_a_second_derivative_goes_through_a_changed_view(make):
    x = make([2.0, 3.0], requires_grad=True)
    base = x * x
    base[1:].mul_(x[1:])
    assert base.tolist() == [4.0, 27.0]
    (g,) = pb.autograd.grad(base.sum(), x, create_graph=True)
    assert g.tolist() == [4.0, 27.0]
    (second,) = pb.autograd.grad(g.sum(), x)
    assert second.tolist() == [2.0, 18.0]


def test_unrecorded_changes_of_a_leaf_and_its_view(make):
    x = make([1.0, 2.0, 3.0], requires_grad=True)
    (x * x).sum().backward()
    with pb.no_grad():
        x.sub_(x.grad * 0.5)
        x[1:].add_(5.0)
    assert x.tolist() == [0.0, 5.0, 5.0]
    assert x.is_leaf
    assert x.requires_grad


def test_an_operation_that_needs_the_old_value_refuses_the_change(make):
    x = make([1.0, 2.0], requires_grad=True)
    base = x * 1.0
    part = base[0]
    y = part * part
    base.mul_(2.0)
    with pytest.raises(InplaceError, match="modified by an inplace operation"):
        y.backward()


def test_gradients_accumulate_without_changing_the_array_they_were_in(make):
    x = make([1.0, 2.0], requires_grad=True)
    (x * 3.0).sum().backward()
    array = x.grad.data_array()
    (x * 4.0).sum().backward()
    assert x.grad.tolist() == [7.0, 7.0]
    changed = isinstance(array, np.ndarray)
    assert np.asarray(array).tolist() == ([7.0, 7.0] if changed else [3.0, 3.0])


def test_one_gradient_of_a_changed_view_is_asked_for(make):
    x = make([1.0, 2.0], requires_grad=True)
    s = make(3.0, requires_grad=True)
    base = x * 1.0
    base[0].mul_(s)
    out = base.sum()
    (by_s,) = pb.autograd.grad(out, s, retain_graph=True)
    (by_x,) = pb.autograd.grad(out, x)
    assert by_s.item() == 1.0
    assert by_x.tolist() == [3.0, 1.0]


def test_forward_may_change_a_whole_argument_that_it_marks(make):
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2.0)

    double_ = pb.autograd_function(forward, lambda ctx, g: {"x": g * 2.0})
    x = make([1.0, 2.0], requires_grad=True)
    y = x * 1.0
    assert double_(y) is y
    assert y.tolist() == [2.0, 4.0]
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    with pb.no_grad():
        assert double_(y) is y
    assert y.tolist() == [4.0, 8.0]


def test_a_step_of_gradient_descent(make):
    p = make([1.0, 2.0], requires_grad=True)
    optimizer = pb.optim.SGD([p], lr=0.25, momentum=0.5)
    for _ in range(2):
        optimizer.zero_grad()
        (p * p).sum().backward()
        optimizer.step()
    # steps 0.25 * 2 p, then 0.25 * (2 * 0.5 p + 0.5 * 2 p) = 0.5 p
    assert p.tolist() == [0.0, 0.0]


def test_a_program_may_move_between_libraries(make):
    x = make([1.0, 2.0], requires_grad=True)
    here = x.device
    y = (x * 3.0).cpu()
    z = y.to(device=here, dtype="float32") * 2.0
    assert (type(y.data_array()), y.tolist(), z.device) == (np.ndarray, [3.0, 6.0], here)
    z.sum().backward()
    assert (x.grad.device, x.grad.dtype, x.grad.tolist()) == (here, pb.float64, [6.0, 6.0])


# -- gradients that users hand over ----------------------------------------------------------------
def leaf(*values):
    return pb.tensor(list(values), dtype=pb.float64, requires_grad=True)


def test_a_gradient_that_a_hook_kept_is_not_written_to():
    x = leaf(1.0, 2.0)
    kept = []
    y = x * 3.0
    y.register_hook(kept.append)
    y.sum().backward()
    x.grad = kept[0]
    (x * 4.0).sum().backward()
    assert x.grad.tolist() == [5.0, 5.0]
    assert kept[0].tolist() == [1.0, 1.0]


def test_what_is_differentiated_must_be_a_tensor():
    with pytest.raises(ArgumentTypeError, match=r"tensors\[1\] must be a Tensor, got float"):
        pb.autograd.backward([leaf(1.0).sum(), 3.0])
    with pytest.raises(ArgumentTypeError, match=r"increment_version: takes Tensors, got float"):
        pb.autograd.increment_version([1.0])


def test_an_initial_gradient_may_be_an_array_but_no_number():
    x = leaf(1.0, 2.0)
    (x * 2.0).backward(np.array([1.0, 10.0]))
    assert x.grad.tolist() == [2.0, 20.0]
    with pytest.raises(ArgumentTypeError, match="can be either Tensors or None, got float"):
        pb.autograd.backward([x * 2.0], [1.0])


def test_batched_gradients_of_an_unused_input_and_with_a_history():
    x, unused = leaf(1.0, 2.0), leaf(1.0)
    rows = pb.eye(2, dtype=pb.float64)
    first, second = pb.autograd.grad(
        x * x, (x, unused), rows, create_graph=True, allow_unused=True, is_grads_batched=True
    )
    assert first.tolist() == [[2.0, 0.0], [0.0, 4.0]]
    assert second is None
    first.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_a_pass_that_a_hook_starts_may_release_what_the_outer_pass_needs():
    x = leaf(1.0, 2.0)
    changed = x * 1.0
    changed[0].mul_(3.0)
    double = pb.autograd_function(lambda ctx, t: t * 2.0, lambda ctx, g: {"t": g * 2.0})
    for shared in (changed, double(x)):
        inner, outer = shared.sum(), shared * 1.0
        outer.register_hook(lambda g, inner=inner: inner.backward())
        with pytest.raises(ReleasedError, match="a second time"):
            outer.sum().backward()


# -- operations of users ---------------------------------------------------------------------------
def test_a_view_among_the_arguments_is_brought_up_to_date():
    def forward(ctx, t, factor):
        return t * factor

    scale = pb.autograd_function(forward, lambda ctx, g: {"t": g * 3.0, "factor": None})
    x = leaf(1.0, 2.0)
    base = x * 1.0
    part = base[1:]
    base.mul_(10.0)
    y = scale(part, factor=3.0)
    assert y.tolist() == [60.0]
    y.sum().backward()
    assert x.grad.tolist() == [0.0, 30.0]


def test_a_marked_argument_that_was_written_through_its_array_counts_as_changed():
    def forward(ctx, t):
        t.numpy()[0] = 7.0
        ctx.mark_dirty(t)
        return t

    set_first = pb.autograd_function(forward, lambda ctx, g: {"t": g * 1.0})
    y = leaf(1.0, 2.0) * 1.0
    square = y * y
    assert set_first(y).tolist() == [7.0, 2.0]
    assert y._version == 1
    with pytest.raises(InplaceError, match="modified by an inplace operation"):
        square.sum().backward()


def test_forward_may_return_a_bare_array():
    twice = pb.autograd_function(lambda ctx, t: t.numpy() * 2.0, lambda ctx, g: {"t": g * 2.0})
    x = leaf(1.0, 2.0)
    y = twice(x)
    assert y.tolist() == [2.0, 4.0]
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_saved_values_behave_as_a_mapping_and_as_a_sequence():
    seen = []

    def forward(ctx, t, *more):
        ctx.save_for_backward(a=2.0, b="two")
        return t + more[0]

    def backward(ctx, g):
        saved = ctx.saved_variables
        seen.append((saved.values(), saved == {"a": 2.0, "b": "two"}, saved == (2.0, "two")))
        seen.append((saved == [2.0], saved == 2.0, repr(saved), ctx.needs_input_grad["more"]))
        return {"t": g, "more": (g,)}

    x = leaf(1.0)
    pb.autograd_function(forward, backward)(x, x).sum().backward()
    assert seen == [
        ([2.0, "two"], True, True),
        (False, False, "(a=2.0, b='two')", (True,)),
    ]


def test_backward_gets_zeros_where_no_gradient_came_to_any_output():
    seen = []

    def backward(ctx, g, h):
        seen.append((g.tolist(), h.tolist()))
        return {"t": g + h}

    split = pb.autograd_function(lambda ctx, t: (t * 1.0, t * 2.0), backward)
    ignore = pb.autograd_function(lambda ctx, t: t * 5.0, lambda ctx, g: {"t": None})
    x = leaf(1.0, 2.0)
    first, _ = split(x)
    ignore(first).sum().backward()
    assert seen == [([0.0, 0.0], [0.0, 0.0])]
    assert x.grad.tolist() == [0.0, 0.0]


def test_a_view_that_forward_returned_does_not_outlive_a_change_of_its_base():
    first = pb.autograd_function(lambda ctx, t: t[0], lambda ctx, g: {"t": pb.stack([g, g * 0.0])})
    base = leaf(1.0, 2.0) * 1.0
    part = first(base)
    base.mul_(2.0)
    with pytest.raises(InplaceError, match="view that was created inside a custom Function"):
        part * 1.0


def test_apply_of_the_base_class_runs_the_operation():
    class Double(pb.Function):
        @staticmethod
        def forward(ctx, t):
            return t * 2.0

        @staticmethod
        def backward(ctx, g):
            return g * 2.0

    x = leaf(3.0)
    super(Double, Double).apply(x).sum().backward()
    assert x.grad.tolist() == [2.0]


def test_a_backward_without_gradients_is_refused():
    with pytest.raises(ArgumentTypeError, match=r"backward must take ctx and the gradients"):
        pb.autograd_function(lambda ctx, t: t, lambda ctx: None)


def test_gradients_in_the_wrong_form_say_what_is_wrong():
    def grads(rule, *args, traverse=False):
        op = pb.autograd_function(lambda ctx, *ts: pb.ones((2, 3)) * 1.0, rule, traverse=traverse)
        op(*args).sum().backward()

    x = pb.ones((3, 2), requires_grad=True)
    with pytest.raises(GradientError, match="sequence or mapping of gradients for 'ts', got int"):
        grads(lambda ctx, g: {"ts": 3}, x)
    with pytest.raises(GradientError, match="transpose it"):
        grads(lambda ctx, g: {"ts": (g,)}, x)


def test_a_nested_container_may_have_no_gradient():
    def forward(ctx, ts):
        return ts[0] * ts[1][0]

    op = pb.autograd_function(forward, lambda ctx, g: {"ts": [g * 4.0, None]}, traverse=True)
    x, y = leaf(3.0), leaf(4.0)
    op([x, [y]]).sum().backward()
    assert x.grad.tolist() == [4.0]
    assert y.grad is None


def test_the_second_gradient_of_a_once_differentiable_rule_raises_for_inputs_of_two_shapes():
    @pb.autograd_function
    def product(ctx, x, y):
        return x.sum() * y.sum()

    @product.backward
    @pb.once_differentiable
    def _(ctx, g):
        return g * pb.ones(2), g * pb.ones(3)

    x, y = pb.ones(2, requires_grad=True), pb.ones(3, requires_grad=True)
    a, b = pb.autograd.grad(product(x, y), (x, y), create_graph=True)
    with pytest.raises(RuntimeError, match="marked with @once_differentiable"):
        pb.autograd.grad(a.sum() + b.sum(), x)


def test_the_distinct_values_of_complex_numbers_have_their_gradient():
    x = pb.tensor([1 + 1j, 2j, 1 + 1j], requires_grad=True)
    values = pb.unique_values(x)
    (g,) = pb.autograd.grad(values, x, pb.tensor([3j, 1 - 1j]))
    assert sorted(g.tolist(), key=abs) in ([0, 1 - 1j, 3j], [0, 3j, 1 - 1j])
