"""Operations in place: what can be written, what is refused, whose gradient goes where."""

import itertools
import math

import numpy as np
import pytest
from tests.tensors import leaf

import pullback as pb
from pullback.errors import DTypeError, InplaceError, ShapeError
from pullback.ops.declare import METHODS


# -- what can be written ---------------------------------------------------------------------------
def test_unrecorded_changes_by_a_bool_and_by_a_shape_that_does_not_fit():
    x = pb.tensor([1.0, 2.0])
    with pb.no_grad():
        x.add_(True)
        assert x.tolist() == [2.0, 3.0]
        with pytest.raises(ShapeError):
            x.add_(pb.tensor([1.0, 2.0, 3.0]))
    assert x.tolist() == [2.0, 3.0]
    assert x._version == 1


def test_memory_that_is_read_only_is_not_changed():
    array = np.array([1.0, 2.0])
    array.flags.writeable = False
    x = pb.asarray(array)
    with pb.no_grad(), pytest.raises(InplaceError, match="its memory is read-only"):
        x.mul_(2.0)
    assert array.tolist() == [1.0, 2.0]
    assert x._version == 0


def test_only_a_tensor_is_changed_in_place():
    with pytest.raises(TypeError, match="add_: can only change a Tensor in place, got float"):
        pb.Tensor.add_(5.0, 1.0)


@pytest.mark.parametrize(
    "call",
    [lambda x: x.addcmul_(pb.ones(3, 2), x), lambda x: x.lt_(1j * x)],
)
def test_what_does_not_fit_is_not_written(call):
    x = pb.ones(2)
    with pytest.raises((TypeError, ValueError)):
        call(x)
    assert x.tolist() == [1.0, 1.0]


# -- layouts ---------------------------------------------------------------------------------------
def test_a_column_is_negated_in_place():
    for dtype, columns in ((pb.float32, 4), (pb.float64, 8)):
        x = pb.ones(9, columns, dtype=dtype)
        x[:, 0].neg_()
        assert x[:, 0].tolist() == [-1.0] * 9
        assert x[:, 1:].min().item() == 1.0


def _layouts():
    """Return, by name, how to show part of 3,000 numbers: strides of 1 to 9 elements and others."""
    found = {f"stride {k}": lambda x, k=k: x[: 33 * k : k] for k in range(1, 10)}
    found |= {f"column of {k}": lambda x, k=k: x[: 33 * k].reshape(33, k)[:, 0] for k in (2, 4, 8)}
    found["transposed"] = lambda x: x[:128].reshape(16, 8).t()
    found["part of a row"] = lambda x: x[:256].reshape(16, 16)[:, 4:8]
    found["one number"] = lambda x: x[5]
    return found


def _written_by_numpy():
    """Return the operations in place that one function of NumPy does."""
    methods = {name: op for name, op in METHODS.items() if name.endswith("_")}
    return {
        name: len(op.primitive.inputs)
        for name, op in methods.items()
        if getattr(op.primitive, "standard", None) and len(op.primitive.inputs) < 3
    }


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("layout", _layouts())
def test_every_layout_is_written_with_what_the_operation_gives(layout, dtype):
    show = _layouts()[layout]
    for name, count in _written_by_numpy().items():
        x = (pb.arange(3000.0) % 19 / 10 - 0.9).to(dtype)
        part = show(x)
        for operands in [()] if count == 1 else [(0.5,), (part,)]:  # a number, what it is itself
            try:
                wanted = getattr(part, name[:-1])(*operands)
            except TypeError:  # not of this dtype
                continue
            if wanted.dtype is not x.dtype:
                continue
            getattr(part, name)(*operands)
            close = 1e-3 if dtype == "float16" else 1e-6
            np.testing.assert_allclose(show(x).numpy(), wanted.numpy(), rtol=close)


def test_a_part_is_changed_by_one_that_overlaps_it():
    for columns in (1, 4, 8):
        x = pb.arange(40.0 * columns).reshape(40, columns)
        wanted = x.numpy().copy()
        wanted[1:, 0] = wanted[1:, 0] - wanted[:-1, 0]
        x[1:, 0].sub_(x[:-1, 0])
        assert x.tolist() == wanted.tolist()


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("write", ["setitem", "copy_"])
def test_a_row_takes_the_values_that_a_crossing_column_had(write, recorded):
    for row, column in itertools.product(range(4), repeat=2):
        for places in (((row,), (slice(None), column)), ((slice(None), column), (row,))):
            expected = np.arange(16.0).reshape(4, 4)
            expected[places[0]] = expected[places[1]].copy()
            x = pb.arange(16.0, dtype=pb.float64).reshape(4, 4)
            if recorded:
                x = x * pb.ones(4, 4, dtype=pb.float64, requires_grad=True)
            if write == "setitem":
                x[places[0]] = x[places[1]]
            else:
                x[places[0]].copy_(x[places[1]])
            assert x.tolist() == expected.tolist()


def test_powers_in_place_are_those_of_the_operation():
    x = pb.tensor([-2.0, 0.5, 3.0])
    assert x.clone().pow_(3).tolist() == [-8.0, 0.125, 27.0]
    assert (x ** pb.tensor(4.0)).tolist() == [16.0, 0.0625, 81.0]


# -- another shape ---------------------------------------------------------------------------------
SHAPES = {
    "t_": (),
    "transpose_": (0, 1),
    "swapaxes_": (0, 1),
    "swapdims_": (0, 1),
    "unsqueeze_": (-1,),
    "squeeze_": (),
}


@pytest.mark.parametrize("name", SHAPES)
def test_a_tensor_keeps_its_shape(name):
    plain = {"swapaxes_": "transpose_", "swapdims_": "transpose_"}.get(name, name)[:-1]
    leaf_ = pb.ones(2, 1, requires_grad=True)
    for x in (pb.ones(2, 1), leaf_, leaf_ * 2, pb.ones(3, 2, 1)[0]):
        with pytest.raises(InplaceError, match=f"^{plain}_: a tensor keeps its shape") as caught:
            getattr(x, name)(*SHAPES[name])
        assert f"x = x.{plain}(...)" in str(caught.value)
        assert (x.shape, x._version, x.tolist()) == ((2, 1), 0, (x.detach().clone()).tolist())


# -- recorded or not -------------------------------------------------------------------------------
INDICES = [
    *(0, -1, 5, (0, 1), (0, 5), (slice(None), 1), slice(0, 2), slice(None, None, -1)),
    *((slice(None, None, -1), slice(None, None, 2)), ..., None, (None, 0), (0, True), ()),
    *(pb.tensor([[True, False, True], [False, False, True]]), pb.tensor([True, False])),
    *(True, False, pb.tensor(True), pb.tensor(False), pb.tensor([True, False, True])),
]
VALUES = [
    *(0, 1.5, True, 2j, 1e300, 10**400, math.nan, np.float32(3), np.ones(3, np.float32)),
    *([1, 2, 3], pb.tensor(2.0), pb.tensor([1.0, 2.0, 3.0]), pb.tensor([[[1.0, 2.0, 3.0]]])),
    *(pb.tensor([[1.0], [2.0]]), pb.tensor([1.0, 2.0]), pb.tensor([1, 2, 3]), pb.tensor([1.0])),
    *(pb.ones(2, 3), pb.tensor(np.ones(3)), pb.ones(1, 1, 1, 1), pb.tensor([])),
]


def outcome(change, recorded):
    """Return what a change of a tensor leaves, or its error."""
    x = pb.arange(6.0).reshape(2, 3).clone()
    try:
        with pb.set_grad_enabled(recorded):
            change(x)
    except Exception as error:
        return type(error), str(error), x.tolist()
    return str(x.tolist()), x._version


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
@pytest.mark.parametrize("value", VALUES, ids=lambda value: repr(value)[:20])
def test_what_is_written_does_not_depend_on_the_mode(value):
    for index in INDICES:

        def change(x, index=index):
            x[index] = value

        assert outcome(change, False) == outcome(change, True)
    for change in (lambda x: x.fill_(value), lambda x: x.copy_(value)):
        assert outcome(change, False) == outcome(change, True)


@pytest.mark.parametrize("recorded", [True, False])
def test_a_mask_that_holds_nowhere_is_no_change_of_a_tracked_tensor(recorded):
    x = leaf([1.0, 2.0]) * 1
    y = x * x
    with pb.set_grad_enabled(recorded):
        x[pb.tensor([False, False])] = 5.0
    assert x._version == 0
    y.sum().backward()


# -- operations in place ---------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["eq", "ne", "lt", "le", "gt", "ge"])
def test_a_comparison_in_place_keeps_the_dtype_and_cuts_the_history(name):
    x, y = leaf([1.0, 2.0, 3.0]), pb.tensor([2.0, 2.0, 2.0], dtype="float64")
    expected = getattr(x.detach(), name)(y).double().tolist()
    changed = x * 1
    assert getattr(changed, f"{name}_")(y) is changed
    assert (changed.tolist(), changed.dtype.name) == (expected, "float64")
    assert not changed.requires_grad


def test_what_is_made_of_operations_is_done_in_place_with_its_gradients():
    x, a, b = leaf([1.0, 2.0]), leaf([3.0, 4.0]), leaf([5.0, 6.0])
    y = x * 1
    assert y.addcmul_(a, b, value=2) is y
    assert y.tolist() == [31.0, 50.0]
    y.sum().backward()
    assert (a.grad.tolist(), b.grad.tolist()) == ([10.0, 12.0], [6.0, 8.0])
    z = (x * 1).float_power_(2)
    assert pb.autograd.grad(z.sum(), x)[0].tolist() == [2.0, 4.0]


def test_cumsum_in_place_keeps_the_dtype():
    x = pb.tensor([1.0, 2.0])
    assert x.cumsum_(0, dtype="float32").tolist() == [1.0, 3.0]
    with pytest.raises(TypeError, match="cumprod_: the tensor's dtype, float32, required"):
        x.cumprod_(0, dtype="float64")


# -- at an index, by a mask ------------------------------------------------------------------------
def test_index_put_writes_or_adds_up():
    place, values = (pb.tensor([0, 0, 2]), pb.tensor([1, 1, 0])), pb.tensor([1.0, 2.0, 4.0])
    assert pb.zeros(3, 2).index_put(place, pb.tensor(5.0)).tolist() == [[0, 5], [0, 0], [5, 0]]
    assert pb.zeros(3, 2).index_put(place, values, True).tolist() == [[0, 3], [0, 0], [4, 0]]
    x = pb.zeros(3, 2)
    assert x.index_put_(place, values, accumulate=True) is x
    x.index_put_((pb.tensor([1]),), pb.tensor([7.0, 8.0]))
    assert x.tolist() == [[0, 3], [7, 8], [4, 0]]
    w = leaf([1.0, 2.0, 3.0])
    (w * 1).index_put_((pb.tensor([0, 0]),), w[:2] * 10, accumulate=True).sum().backward()
    assert w.grad.tolist() == [11.0, 11.0, 1.0]


def test_writing_by_a_mask_or_by_numbers_is_done_in_place():
    x, keep = leaf([1.0, 2.0, 3.0]), pb.tensor([True, False, True])
    source = leaf([10.0, 20.0])
    y = (x * 1).masked_scatter_(keep, source)
    assert y.tolist() == [10.0, 2.0, 20.0]
    y.sum().backward()
    assert (x.grad.tolist(), source.grad.tolist()) == ([0.0, 1.0, 0.0], [1.0, 1.0])
    z = pb.zeros(2, 2).put_(pb.tensor([-1]), pb.tensor([5.0]))
    assert z.tolist() == [[0, 0], [0, 5]]
    index, src = pb.tensor([0, 0, 1]), pb.tensor([1.0, 5.0, 3.0])
    assert pb.zeros(2).scatter_reduce_(0, index, src, "amax").tolist() == [5.0, 3.0]
    assert pb.ones(2).index_reduce_(0, index, src, "prod").tolist() == [5.0, 3.0]


def test_fill_diagonal_may_begin_again():
    assert pb.zeros(2, 3).fill_diagonal_(7).tolist() == [[7, 0, 0], [0, 7, 0]]
    assert pb.zeros(5, 2).fill_diagonal_(1).sum().item() == 2
    assert pb.zeros(5, 2).fill_diagonal_(1, wrap=True)[3].tolist() == [1, 0]
    assert pb.zeros(2, 2, 2).fill_diagonal_(3)[1, 1, 1].item() == 3
    with pytest.raises(ValueError, match="fill_diagonal_: axes of one length required"):
        pb.zeros(2, 2, 3).fill_diagonal_(1)


@pytest.mark.case("L07")
def test_out_raises_while_anything_requires_grad():
    x, y = leaf([1.0]), pb.tensor([2.0])
    for arguments, target in (((x, y), pb.tensor([0.0])), ((y, y), leaf([0.0]))):
        with pytest.raises(RuntimeError, match="out="):
            pb.add(*arguments, out=target)
        assert target.tolist() == [0.0]
        assert target._version == 0


@pytest.mark.case("L07")
def test_out_is_fine_under_no_grad():
    x, y, z = leaf([1.0]), pb.tensor([2.0]), leaf([0.0])
    with pb.no_grad():
        result = pb.add(x, y, out=z)
    assert result is z
    assert z.tolist() == [3.0]
    assert z._version == 1
    assert z.requires_grad
    plain = pb.tensor([0.0])
    assert pb.add(y, y, out=plain) is plain
    assert plain.tolist() == [4.0]


@pytest.mark.parametrize("name", ["abs_", "absolute_"])
def test_abs_of_complex_numbers_is_refused_in_place(name):
    x = pb.tensor([3 + 4j])
    with pytest.raises(DTypeError, match="abs_: real numbers required"):
        getattr(x, name)()
    assert x.tolist() == [3 + 4j]
    assert getattr(pb.tensor([-2.0]), name)().tolist() == [2.0]
