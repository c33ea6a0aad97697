"""The tensor as the standard's array object: operators, conversions, DLPack, devices."""

import operator

import array_api_strict
import numpy as np
import pytest

import pullback as pb

STRICT = "array_api_strict:CPU_DEVICE"

FLOATING = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow"]
INTEGRAL = ["add", "sub", "mul", "floordiv", "mod", "pow", "lshift", "rshift", "and_", "or_", "xor"]
X, Y = np.array([[5, 3, 2], [1, 4, 6]]), np.array([2, 1, 3])
WRITES = pytest.mark.skipif(
    np.lib.NumpyVersion(np.__version__) < "2.2.0", reason="np.from_dlpack is read-only there"
)


def arrays(dtype):
    return X.astype(dtype), Y.astype(dtype)


CALLS = [(name, "float64") for name in FLOATING] + [(name, "int64") for name in INTEGRAL]


@pytest.mark.parametrize(("name", "dtype"), CALLS)
def test_an_operator_takes_tensors_arrays_and_numbers_on_both_sides(name, dtype):
    function = getattr(operator, name)
    a, b = arrays(dtype)
    x, y = pb.asarray(a), pb.asarray(b)
    number = b[0].item()
    assert function(x, y).tolist() == function(a, b).tolist()
    assert function(x, b).tolist() == function(a, b).tolist()
    assert function(a, y).tolist() == function(a, b).tolist()
    assert function(x, number).tolist() == function(a, number).tolist()
    assert function(number, x).tolist() == function(number, a).tolist()


@pytest.mark.parametrize(("name", "dtype"), [c for c in CALLS if c != ("truediv", "int64")])
def test_an_augmented_assignment_writes_into_the_tensor(name, dtype):
    function = getattr(operator, f"i{name.rstrip('_')}")
    a, b = arrays(dtype)
    for other in (b, b[0].item()):
        x = pb.tensor(a)
        seen = x[0]
        given = pb.asarray(other) if isinstance(other, np.ndarray) else other
        result = function(x, given)
        expected = getattr(operator, name)(a, other)
        assert result is x
        assert (x.tolist(), x.dtype.name) == (expected.tolist(), dtype)
        assert seen.tolist() == expected[0].tolist()
        assert x._version == 1


@pytest.mark.parametrize("name", ["and_", "or_", "xor"])
def test_bools_have_bitwise_operators(name):
    function = getattr(operator, name)
    a, b = np.array([True, True, False, False]), np.array([True, False, True, False])
    x, y = pb.asarray(a), pb.asarray(b)
    assert function(x, y).tolist() == function(a, b).tolist()
    assert function(x, True).tolist() == function(True, x).tolist() == function(a, True).tolist()
    assert (~x).tolist() == (~a).tolist()


@pytest.mark.parametrize("name", ["and_", "or_", "xor", "lshift", "rshift", "iand", "ilshift"])
def test_bitwise_operators_refuse_floats(name):
    with pytest.raises(TypeError, match=r"^bitwise_\w+: ") as caught:
        getattr(operator, name)(pb.ones(2), pb.ones(2))
    assert "float32" in str(caught.value)


def test_an_operand_that_is_no_number_is_a_type_error():
    x = pb.tensor([1, 2])
    for name in ("lshift", "rshift", "and_", "or_", "xor", "floordiv", "mod", "matmul"):
        for pair in ((x, {1}), ({}, x)):
            with pytest.raises(TypeError):
                getattr(operator, name)(*pair)


def test_remainder_and_floor_division_in_place_are_recorded():
    x = pb.tensor([5.0, 7.0], requires_grad=True)
    y = pb.tensor([3.0, 2.0], requires_grad=True)
    z = x * 1
    z %= y
    assert z.tolist() == [2.0, 1.0]
    z.sum().backward()
    assert (x.grad.tolist(), y.grad.tolist()) == ([1.0, 1.0], [-1.0, -3.0])
    w = x * 1
    w //= y
    assert w.tolist() == [1.0, 3.0]
    assert pb.autograd.grad(w.sum(), x)[0].tolist() == [0.0, 0.0]


def test_a_matrix_product_in_place_keeps_the_tensor_and_its_history():
    x = pb.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    w = pb.tensor([[0.0, 1.0], [1.0, 1.0]], requires_grad=True)
    y = z = x * 1
    z @= w
    assert z is y
    assert y.tolist() == [[2.0, 3.0], [4.0, 7.0]]
    y.sum().backward()
    assert x.grad.tolist() == [[1.0, 2.0], [1.0, 2.0]]
    assert w.grad.tolist() == [[4.0, 4.0], [6.0, 6.0]]


def test_a_matrix_product_of_another_shape_or_dtype_cannot_be_written_in_place():
    x = pb.tensor([1.0, 2.0])
    with pytest.raises(ValueError, match="matmul_: the result must have the shape"):
        x @= pb.ones(2, 3)
    i = pb.tensor([[1, 2], [3, 4]])
    with pytest.raises(TypeError, match="matmul_: the result has dtype float32"):
        i @= pb.ones(2, 2)
    assert (x.tolist(), i.tolist()) == ([1.0, 2.0], [[1, 2], [3, 4]])


def test_a_leaf_that_requires_grad_is_not_changed_by_an_augmented_assignment():
    x = pb.tensor([[4.0]], requires_grad=True)
    for function in (operator.imod, operator.ifloordiv, operator.imatmul):
        with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
            function(x, pb.tensor([[3.0]]))
    assert x.tolist() == [[4.0]]


# -- conversions ----------------------------------------------------------------------------------
CONVERSIONS = [
    (bool, [True, 0, 1.5, 0j], [True, False, True, False]),
    (int, [True, 7, -2.5], [1, 7, -2]),
    (float, [True, 7, -2.5], [1.0, 7.0, -2.5]),
    (complex, [True, 7, -2.5, 1 + 2j], [1, 7, -2.5, 1 + 2j]),
    (operator.index, [7, -2], [7, -2]),
]


@pytest.mark.parametrize(("convert", "values", "expected"), CONVERSIONS, ids=lambda v: str(v)[:20])
def test_one_element_becomes_a_number(convert, values, expected):
    for value, result in zip(values, expected, strict=True):
        converted = convert(pb.tensor(value))
        assert (converted, type(converted)) == (result, type(convert(result)))
        if convert is not operator.index:
            assert convert(pb.tensor([[value]])) == result


@pytest.mark.parametrize("convert", [bool, int, float, complex])
def test_more_or_fewer_than_one_element_become_no_number(convert):
    for wrong in (pb.tensor([1, 2]), pb.zeros(0, dtype="int64")):
        with pytest.raises(ValueError, match="one element"):
            convert(wrong)


@pytest.mark.parametrize("wrong", [[1], [[1]], [1, 2]])
def test_what_has_axes_is_no_index(wrong):
    with pytest.raises(TypeError, match="a 0-d tensor required as an index of Python"):
        operator.index(pb.tensor(wrong))


@pytest.mark.parametrize("dtype", ["bool", "float32", "complex64"])
def test_only_integers_are_an_index(dtype):
    with pytest.raises(TypeError, match=f"only integer tensors can be an index, got dtype {dtype}"):
        operator.index(pb.ones((), dtype=dtype))


@pytest.mark.parametrize("convert", [int, float])
def test_a_complex_number_becomes_no_real_one(convert):
    with pytest.raises(TypeError):
        convert(pb.tensor(1j))


# -- attributes -----------------------------------------------------------------------------------
def test_attributes_describe_the_array():
    x = pb.zeros((2, 3, 4))
    assert (x.ndim, x.shape, x.size, x.dtype, x.device) == (3, (2, 3, 4), 24, pb.float32, "cpu")
    assert (x.T.shape, x.mT.shape) == ((4, 3, 2), (2, 4, 3))


# -- DLPack ---------------------------------------------------------------------------------------
@WRITES
def test_a_tensor_shares_its_memory_by_dlpack():
    x = pb.tensor([1.0, 2.0])
    assert x.__dlpack_device__() == (1, 0)
    for array in (np.from_dlpack(x), array_api_strict.from_dlpack(x)):
        array[0] = 7.0
        assert x.tolist() == [7.0, 2.0]
        array[0] = 1.0


@WRITES
def test_what_the_consumer_asks_for_is_handed_on():
    x = pb.tensor([1.0, 2.0])
    copied = np.from_dlpack(x, copy=True, device="cpu")
    copied[0] = 7.0
    assert x.tolist() == [1.0, 2.0]
    assert np.from_dlpack(x, copy=False).tolist() == [1.0, 2.0]
    x.__dlpack__(stream=None, max_version=(1, 0), dl_device=(1, 0), copy=None)
    with pytest.raises((RuntimeError, ValueError), match="stream"):  # as NumPy has it
        x.__dlpack__(stream=1)
    with pytest.raises((BufferError, ValueError)):  # as NumPy has it, by its version
        x.__dlpack__(dl_device=(2, 0))


def test_a_tensor_with_history_is_not_exported():
    x = pb.tensor([1.0], requires_grad=True)
    for wrong in (x, x * 2):
        with pytest.raises(RuntimeError, match=r"can't export a Tensor that requires grad"):
            np.from_dlpack(wrong)
    with pb.no_grad():
        assert np.from_dlpack(x).tolist() == [1.0]
    assert np.from_dlpack(x.detach()).tolist() == [1.0]


@WRITES
def test_a_gradient_that_others_use_is_exported_as_a_copy():
    x = pb.tensor([1.0, 2.0], requires_grad=True)
    y = x * 1
    y.register_hook(lambda g: np.from_dlpack(g).fill(9.0))
    (y.sum() + x.sum()).backward()
    assert x.grad.tolist() == [2.0, 2.0]


# -- devices --------------------------------------------------------------------------------------
def test_to_device_moves_and_keeps_the_history():
    x = pb.tensor([1.0, 2.0], requires_grad=True)
    assert x.to_device("cpu") is x
    pb.asarray(array_api_strict.asarray([1.0]))  # met, so its devices are known
    y = x.to_device(STRICT)
    assert y.device == STRICT
    (y * 3).to_device("cpu").sum().backward()
    assert (x.grad.device, x.grad.tolist()) == ("cpu", [3.0, 3.0])


def test_to_device_takes_no_stream_and_no_unknown_device():
    x = pb.ones(2)
    assert x.to_device("cpu", stream=None) is x
    with pytest.raises(ValueError, match="to_device: stream=None required"):
        x.to_device("cpu", stream=1)
    with pytest.raises(ValueError, match="device: "):
        x.to_device("gpu")
