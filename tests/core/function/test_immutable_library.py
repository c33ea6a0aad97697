"""In-place programs, views and training on a library whose arrays cannot be written to."""

import operator
from types import ModuleType

import numpy as np
import pytest

import pullback as pb
from pullback import arrays
from pullback.errors import InplaceError

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
    def mT(self):  # noqa: N802 (the standard's name)
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


arrays.register(FrozenLibrary("frozen", frozen))


@pytest.fixture(params=["numpy", "frozen"])
def make(request):
    """Make a tensor of one of the two libraries."""
    kind = Frozen if request.param == "frozen" else np.asarray

    def make(values, requires_grad=False):
        t = pb.asarray(kind(np.asarray(values, dtype=np.float64)))
        return t.requires_grad_() if requires_grad else t

    return make


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
    imag = y.imag
    with pytest.raises(InplaceError, match="cannot be written to"):
        imag[1:].mul_(10.0)
    assert y.tolist() == [2 + 4j, 6j, -2j]
    y[1:] = pb.complex(y.real[1:], imag[1:] * 10.0)
    assert y.tolist() == [2 + 4j, 60j, -20j]
    y[:2].add_(1j)
    assert y.tolist() == [2 + 5j, 61j, -20j]
    assert imag.tolist() == [5.0, 61.0, -20.0]
    (gradient,) = pb.autograd.grad((y.real + imag).sum(), x, create_graph=True)
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


def test_items_are_set_with_their_graph(make):
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
