"""Operands and settings of built-in operations: what backward uses of them cannot change unseen."""

import operator

import numpy as np
import pytest
from tests.tensors import leaf

import pullback as pb
import pullback.nn.functional as F  # noqa: N812
from pullback.errors import DTypeError, InplaceError


def grad(out, x):
    return pb.autograd.grad(out, x)[0].tolist()


def test_an_index_that_is_changed_later_is_not_seen_by_backward():
    x = leaf([1.0, 2.0, 3.0])
    index, mask = pb.tensor([0, 1]), pb.tensor([True, False, False])
    picked, masked = x[index], x[mask]
    index.add_(1)
    mask[1] = True
    assert grad(picked.sum(), x) == [1.0, 1.0, 0.0]
    assert grad(masked.sum(), x) == [1.0, 0.0, 0.0]


def test_an_array_operand_that_is_changed_later_is_not_seen_by_backward():
    x, array = leaf([1.0, 2.0]), np.array([3.0, 4.0])
    y = x * array
    array[:] = 100.0
    assert grad(y.sum(), x) == [3.0, 4.0]


PRODUCTS = {
    "pb.mul": lambda x, array: pb.mul(x, array),
    "x * array": lambda x, array: x * array,
    "array * x": lambda x, array: array * x,
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_an_array_beside_a_view_that_is_behind_its_base_is_copied_as_well(name):
    w, base, array = leaf([1.0, 2.0, 3.0]), pb.zeros(3, dtype=pb.float64), np.array([3.0, 4.0])
    view = base[:2]
    base.add_(w)  # the view requires grad from here on, and does not know yet
    y = PRODUCTS[name](view, array)
    array[:] = 100.0
    assert grad(y.sum(), w) == [3.0, 4.0, 0.0]


@pytest.mark.parametrize("side", ["left", "right", "both tensors"])
def test_a_setting_is_kept_beside_a_bare_array(side):
    a = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 7.0], [7.0, 8.0, 8.0]])
    b = np.flip(a, 0) ** 2
    x = a if side == "left" else pb.asarray(a)
    y = b.copy() if side == "right" else pb.asarray(b.copy())
    expected = np.cross(a, b, axis=0).tolist()
    assert pb.cross(x, y, axis=0).tolist() == expected
    if side != "left":
        assert pb.cross(x.requires_grad_(), y, axis=0).tolist() == expected


@pytest.mark.parametrize("array", [np.array([1, 2], object), np.array(["a", "b"])], ids=str)
def test_an_array_of_a_dtype_that_is_not_supported_is_an_error_that_names_it(array):
    for name, call in PRODUCTS.items():
        with pytest.raises(DTypeError) as caught:
            call(leaf([1.0, 2.0]), array)
        assert f"complex dtype required, got {array.dtype.name}" in str(caught.value)
        if name != "array * x":  # there NumPy's function is called, and looks at it first
            assert f"y: shape (2,), dtype {array.dtype.name}" in str(caught.value)


@pytest.mark.parametrize("loss", [F.cross_entropy, F.nll_loss])
def test_class_targets_that_change_before_backward_are_found(loss):
    x = pb.zeros((1, 3), requires_grad=True)
    target = pb.tensor([0])
    result = loss(x, target)
    target.add_(1)
    with pytest.raises(InplaceError, match="modified by an inplace operation"):
        result.backward()


def test_a_bare_array_of_targets_is_copied():
    x = pb.zeros((1, 3), requires_grad=True)
    target = np.array([0])
    result = F.nll_loss(x, target)
    target[0] = 2
    result.backward()
    assert x.grad.tolist() == [[-1.0, 0.0, 0.0]]


# -- class targets, settings, arrays that forward returns -----------------------------------------
@pytest.mark.parametrize("number", [np.float64(0.5), np.array(0.5)], ids=["scalar", "0-d"])
def test_numbers_of_numpy_as_settings_leave_the_dtype_alone(number):
    x = pb.tensor([1.0, 2.0], requires_grad=True)
    for y in (F.leaky_relu(x, number), F.elu(x, number), pb.nan_to_num(x, nan=number)):
        assert y.dtype == pb.float32
        assert pb.autograd.grad(y.sum(), x)[0].dtype == pb.float32


# -- operands that no operation knows --------------------------------------------------------------
ARITHMETIC = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul"]
ARITHMETIC += ["and", "or", "xor", "lshift", "rshift"]
ORDER = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}
REFLECTED = {**{name: f"r{name}" for name in ARITHMETIC}, **ORDER}


def symbol(**attributes):
    """Return an object that says which of its methods was called."""

    def method(name):
        return lambda self, other: (name, other)

    methods = {f"__{name}__": method(name) for name in REFLECTED.values()}
    return type("Symbol", (), {**methods, "__hash__": object.__hash__, **attributes})()


SYMBOLS = {
    "plain": {},
    "that ufuncs leave alone": {"__array_ufunc__": None},
    "of higher priority": {"__array_priority__": 50},
    "with an array inside": {"__array__": lambda self, dtype=None, copy=None: np.zeros(2)},
}


def apply_operator(name, x, y):
    return getattr(operator, f"{name}_" if name in ("and", "or") else name)(x, y)


@pytest.mark.parametrize("attributes", SYMBOLS.values(), ids=SYMBOLS.keys())
@pytest.mark.parametrize("name", REFLECTED)
def test_an_operator_is_left_to_an_operand_that_no_operation_knows(name, attributes):
    x, other = pb.tensor([1, 2]), symbol(**attributes)
    called, given = apply_operator(name, x, other)
    assert called == REFLECTED[name]
    assert given is x


@pytest.mark.parametrize("value", ["ab", None, object(), {1: 2}, {1}], ids=str)
@pytest.mark.parametrize("name", [name for name in REFLECTED if name not in ("eq", "ne")])
def test_an_operand_without_the_operator_is_an_error_that_names_it(name, value):
    x = pb.tensor([1, 2])
    with pytest.raises(TypeError, match=f"must be a Tensor.*got {type(value).__name__}"):
        apply_operator(name, x, value)
    if (name, value) != ("mod", "ab"):  # there Python writes the tensor into the text
        with pytest.raises(TypeError, match=f"must be a Tensor.*got {type(value).__name__}"):
            apply_operator(name, value, x)


@pytest.mark.parametrize("value", ["ab", ["a", "b"], None, object()], ids=str)
def test_a_tensor_is_not_equal_to_what_is_no_array(value):
    assert (pb.tensor([1, 2]) == value) is False
    assert (pb.tensor([1, 2]) != value) is True


def test_an_operand_that_refuses_the_operator_as_well_is_an_error():
    refusing = type("Refusing", (), {"__rmul__": lambda self, other: NotImplemented})()
    with pytest.raises(TypeError, match="unsupported operand"):
        pb.tensor([1.0]) * refusing
    with pytest.raises(TypeError, match="must be a Tensor"):
        pb.mul(pb.tensor([1.0]), refusing)
