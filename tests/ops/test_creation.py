"""Making tensors: from data, around arrays, filled, in ranges."""

import array_api_strict
import numpy as np
import pytest

import pullback as pb

STRICT = "array_api_strict:CPU_DEVICE"


@pytest.fixture
def double():
    pb.set_default_dtype("float64")
    yield
    pb.set_default_dtype("float32")


# -- from data ------------------------------------------------------------------------------------
DTYPES_OF_DATA = [
    (1.5, "float32"),
    ([1.0, 2.0], "float32"),
    ([[1, 2.5]], "float32"),
    (3, "int64"),
    ([1, 2], "int64"),
    ([2**40], "int64"),
    (True, "bool"),
    ([True, False], "bool"),
    ([True, 2], "int64"),
    (1j, "complex64"),
    ([1.0, 2j], "complex64"),
    ([], "float32"),
    ([[]], "float32"),
    (range(3), "int64"),
    ((1.0, 2.0), "float32"),
    (np.float64(1.5), "float64"),
    ([np.float64(1.5)], "float64"),
    (np.int8(3), "int8"),
    (np.array([1.5]), "float64"),
    (np.array([1, 2], dtype=np.int16), "int16"),
    ([np.array([1.5]), np.array([2.5])], "float64"),
]


@pytest.mark.parametrize(("data", "dtype"), DTYPES_OF_DATA, ids=lambda v: str(v)[:30])
def test_python_numbers_become_the_default_dtype_and_arrays_keep_theirs(data, dtype):
    x = pb.tensor(data)
    assert x.dtype.name == dtype
    assert x.shape == np.shape(data)
    assert x.tolist() == np.asarray(data).tolist()


@pytest.mark.usefixtures("double")
def test_the_default_dtype_can_be_double():
    assert pb.tensor(1.5).dtype is pb.float64
    assert pb.tensor([1j]).dtype is pb.complex128
    made = (pb.zeros(2), pb.ones(2), pb.full((2,), 0.5), pb.linspace(0, 1, 3), pb.eye(2))
    assert {x.dtype for x in (*made, pb.arange(0.0, 1.0, 0.5), pb.randn(2))} == {pb.float64}
    assert pb.tensor([1, 2]).mul(0.5).dtype is pb.float64


@pytest.mark.parametrize(
    "dtype", [pb.int32, "int32", np.int32, np.dtype("int32"), array_api_strict.int32]
)
def test_a_dtype_may_be_given_in_any_form(dtype):
    assert pb.tensor([1.75], dtype=dtype).dtype is pb.int32
    assert pb.tensor([1.75], dtype=dtype).tolist() == [1]
    assert pb.zeros(2, dtype=dtype).dtype is pb.int32
    assert pb.ones_like(pb.zeros(2), dtype=dtype).dtype is pb.int32
    assert pb.arange(3, dtype=dtype).dtype is pb.int32


@pytest.mark.parametrize(
    ("python", "dtype"),
    [(bool, pb.bool), (int, pb.int64), (float, pb.float32), (complex, pb.complex64)],
)
def test_a_python_type_is_a_dtype(python, dtype):
    assert pb.tensor([1], dtype=python).dtype is dtype


def test_tensor_copies_arrays_and_tensors_and_drops_history():
    a = np.array([1.0, 2.0])
    x = pb.tensor(a, requires_grad=True)
    y = pb.tensor(x.detach())
    a[0] = 9.0
    assert x.tolist() == [1.0, 2.0]
    assert y.is_leaf
    assert not y.requires_grad
    y.mul_(3)
    assert x.tolist() == [1.0, 2.0]
    with pb.no_grad():
        assert pb.tensor(x * 2, dtype="float32").dtype is pb.float32


def _objects(x):
    array = np.empty(2, object)
    array[0], array[1] = x[0] * x[1], 5.0
    return array


# Each holds x[0] * x[1] and 5.
HOLDING = {
    "list": lambda x: [x[0] * x[1], 5.0],
    "tuple": lambda x: (x[0] * x[1], 5),
    "NumPy's number": lambda x: [x[0] * x[1], np.float32(5.0)],
    "nested": lambda x: [[x[0] * x[1]], (5.0,)],
    "vectors": lambda x: [x[:1] * x[1], np.array([5.0], np.float32)],
    "objects": _objects,
}


@pytest.mark.parametrize("holding", list(HOLDING))
@pytest.mark.parametrize("make", [pb.asarray, pb.as_tensor])
def test_asarray_and_as_tensor_keep_what_a_list_holds_in_the_graph(make, holding):
    x = pb.tensor([2.0, 3.0], requires_grad=True)
    result = make(HOLDING[holding](x))
    assert (result.reshape(-1).tolist(), result.dtype) == ([6.0, 5.0], pb.float32)
    result.sum().backward()
    assert x.grad.tolist() == [3.0, 2.0]
    value, tangent = pb.jvp(
        lambda x: make(HOLDING[holding](x)).sum(), (x.detach(),), (pb.tensor([1.0, 0.0]),)
    )
    assert (value.item(), tangent.item()) == (11.0, 3.0)


@pytest.mark.parametrize("holding", [lambda x: x, *HOLDING.values()])
def test_tensor_warns_that_a_copy_of_what_is_tracked_leaves_the_graph(holding):
    x = pb.tensor([2.0, 3.0], requires_grad=True)
    with pytest.warns(pb.UntrackedTensorWarning, match="^tensor: copies .* Use asarray") as caught:
        assert not pb.tensor(holding(x)).requires_grad
    assert [w.filename for w in caught] == [__file__]
    with pytest.warns(pb.UntrackedTensorWarning, match="^tensor: ") as caught:
        _, tangent = pb.jvp(
            lambda x: pb.tensor(holding(x)).sum() + x[0], (x.detach(),), (pb.tensor([1.0, 0.0]),)
        )
    assert (tangent.item(), len(caught)) == (1.0, 1)


def test_as_tensor_wraps_an_array_without_copying():
    a = np.zeros(2)
    x = pb.as_tensor(a)
    a[0] = 7.0
    assert x.tolist() == [7.0, 0.0]


def test_a_list_of_tensors_becomes_one_tensor():
    rows = [pb.tensor([1.0, 2.0]), pb.tensor([3.0, 4.0])]
    assert pb.tensor(rows).tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert pb.tensor([[pb.tensor(1), 2], [3, pb.tensor(4)]]).tolist() == [[1, 2], [3, 4]]


# As in PyTorch: a Python float has the default dtype, whatever it stands beside.
BESIDE = [
    ("float16", 0.1, "float32"),
    ("float32", 0.1, "float32"),
    ("float64", 0.1, "float64"),
    ("int64", 0.1, "float32"),
    ("float32", 2, "float32"),
    ("float32", 1j, "complex64"),
    ("float64", 1j, "complex128"),
    ("complex64", 0.1, "complex64"),
    ("int32", True, "int32"),
    ("bool", 2, "int64"),
]


@pytest.mark.parametrize("make", [pb.tensor, pb.asarray])
@pytest.mark.parametrize(("dtype", "number", "expected"), BESIDE)
def test_a_list_has_the_dtype_of_its_tensors_and_numbers_in_any_order(
    make, dtype, number, expected
):
    t = pb.tensor([1], dtype=dtype)[0]
    assert make([t, number]).dtype.name == make([number, t]).dtype.name == expected
    assert make([[number, t], [number, number]]).dtype.name == expected


@pytest.mark.parametrize("make", [pb.tensor, pb.asarray])
def test_numbers_beside_tensors_of_double_precision_are_not_rounded_to_single(make):
    third = pb.tensor(1 / 3, dtype="float64")
    assert make([0.1, third]).tolist() == [0.1, 1 / 3]
    assert make([[0.1, 0.2], [third, 0.1j]]).tolist() == [[0.1, 0.2], [1 / 3, 0.1j]]
    assert make([pb.tensor(1.0), 0.1], dtype="float64").tolist() == [1.0, 0.1]


def test_an_array_of_another_library_stays_there():
    x = pb.tensor(array_api_strict.asarray([1.0, 2.0]))
    assert x.device == STRICT
    assert x.dtype is pb.float64
    assert pb.zeros_like(x).device == STRICT
    assert pb.full_like(x, 3.0).device == STRICT


REFUSED = [
    ("a", TypeError, "tensor: data must be numbers"),
    (None, TypeError, "tensor: data must be numbers"),
    ([[1, 2], [3]], ValueError, "tensor: data must be a regular nest"),
    ([1, "a"], TypeError, "tensor: data must be numbers"),
    ({"a": 1}, TypeError, "tensor: data must be numbers"),
    (np.array(["a"]), TypeError, "boolean, integer, floating or complex"),
    (np.array([1], dtype=object), TypeError, "boolean, integer, floating or complex"),
    (np.ma.masked_array([1.0], mask=[True]), TypeError, "without a mask"),
]


@pytest.mark.parametrize(("data", "error", "words"), REFUSED, ids=lambda v: str(v)[:20])
def test_data_that_is_no_numbers_is_refused(data, error, words):
    with pytest.raises(pb.AutogradError, match=words) as caught:
        pb.tensor(data)
    assert isinstance(caught.value, error)


@pytest.mark.parametrize("dtype", ["int64", "bool"])
def test_only_floating_and_complex_tensors_can_require_grad(dtype):
    with pytest.raises(TypeError, match="only Tensors of floating point and complex dtype") as e:
        pb.tensor([1], dtype=dtype, requires_grad=True)
    assert dtype in str(e.value)
    with pytest.raises(TypeError, match="only Tensors of floating point"):
        pb.ones(2, dtype=dtype, requires_grad=True)


def test_an_unknown_device_is_refused_with_those_there_are():
    with pytest.raises(ValueError, match="cpu") as caught:
        pb.zeros(2, device="gpu")
    assert "'gpu'" in str(caught.value)
    with pytest.raises(pb.AutogradError):
        pb.tensor([1.0], device="tpu:0")


def test_something_that_is_no_dtype_is_refused():
    for wrong in ("float31", 3, [1.0]):
        with pytest.raises(pb.AutogradError, match="dtype"):
            pb.tensor([1.0], dtype=wrong)


# -- around arrays --------------------------------------------------------------------------------
def test_asarray_shares_memory_and_returns_tensors_as_they_are():
    a = np.array([1.0, 2.0])
    x = pb.asarray(a)
    a[0] = 7.0
    assert x.tolist() == [7.0, 2.0]
    assert pb.asarray(x) is x
    assert pb.asarray(a, copy=False).tolist() == [7.0, 2.0]
    assert pb.from_numpy(a).tolist() == [7.0, 2.0]
    copied = pb.asarray(a, copy=True)
    a[0] = 8.0
    assert copied.tolist() == [7.0, 2.0]


def test_asarray_converts_where_it_must_and_refuses_to_where_it_must_not():
    a = np.array([1.0, 2.0])
    assert pb.asarray(a, dtype="float32").dtype is pb.float32
    assert pb.asarray([1, 2]).tolist() == [1, 2]
    assert pb.asarray(2.5).dtype is pb.float32
    for wrong in (
        lambda: pb.asarray([1], copy=False),
        lambda: pb.asarray(a, dtype="int8", copy=False),
    ):
        with pytest.raises(ValueError, match="asarray: copy=False"):
            wrong()


def test_asarray_wraps_arrays_of_another_library():
    x = pb.asarray(array_api_strict.asarray([1.0, 2.0]))
    assert x.device == STRICT
    assert (x * 2).tolist() == [2.0, 4.0]
    assert pb.from_dlpack(array_api_strict.asarray([1.0])).device == "cpu"


@pytest.mark.parametrize("data", [np.array(["a"]), np.array([1], dtype=object)], ids=str)
def test_asarray_refuses_arrays_that_hold_no_numbers(data):
    with pytest.raises(TypeError, match="boolean, integer, floating or complex dtype required"):
        pb.asarray(data)


def test_an_array_of_the_other_byte_order_computes_like_any():
    x = pb.asarray(np.array([1.0, 2.0], dtype=">f8")).requires_grad_()
    assert x.dtype is pb.float64
    (x * x * 2).sum().backward()
    assert x.grad.tolist() == [4.0, 8.0]


def test_a_tensor_is_an_array_to_numpy():
    x = pb.tensor([[1.0, 2.0]])
    assert np.asarray(x).tolist() == [[1.0, 2.0]]
    assert np.asarray(x, dtype=np.float64).dtype == np.float64
    assert np.may_share_memory(np.asarray(x), x.numpy())
    assert not np.may_share_memory(np.array(x, copy=True), x.numpy())
    assert np.from_dlpack(x).tolist() == [[1.0, 2.0]]


# -- filled ---------------------------------------------------------------------------------------
@pytest.mark.parametrize(("name", "value"), [("zeros", 0.0), ("ones", 1.0), ("empty", 0.0)])
def test_sizes_are_given_one_by_one_or_together(name, value):
    make = getattr(pb, name)
    for x in (make(2, 3), make((2, 3)), make([2, 3])):
        assert (x.shape, x.dtype, x.device) == ((2, 3), pb.float32, "cpu")
        assert x.tolist() == [[value] * 3] * 2
    assert make(4).shape == (4,)
    assert make(()).shape == ()
    assert make(0, 2).shape == (0, 2)
    assert make(2, dtype="int8").dtype is pb.int8
    assert make(2, requires_grad=True).requires_grad


def test_full_takes_the_dtype_of_its_number():
    assert pb.full((2, 2), 7.5).tolist() == [[7.5, 7.5], [7.5, 7.5]]
    assert pb.full(2, 1.5).dtype is pb.float32
    assert pb.full((2,), 3).dtype is pb.int64
    assert pb.full((2,), True).dtype is pb.bool
    assert pb.full((2,), 1j).dtype is pb.complex64
    assert pb.full((2,), 3, dtype="float64").tolist() == [3.0, 3.0]


@pytest.mark.parametrize(
    ("name", "more", "value"),
    [("zeros_like", (), 0), ("ones_like", (), 1), ("full_like", (5,), 5), ("empty_like", (), 0)],
)
def test_like_follows_shape_dtype_and_device(name, more, value):
    make = getattr(pb, name)
    for dtype in (pb.int16, pb.float64, pb.bool):
        x = make(pb.ones(2, 3, dtype=dtype), *more)
        assert (x.shape, x.dtype) == ((2, 3), dtype)
        assert x.tolist() == np.full((2, 3), value).astype(dtype.dtype).tolist()
    assert make(pb.ones(2), *more, dtype="float64").dtype is pb.float64
    assert make(pb.ones(2), *more, requires_grad=True).requires_grad
    assert not make(pb.ones(2, requires_grad=True), *more).requires_grad


def test_filled_tensors_have_memory_of_their_own():
    x = pb.zeros(2)
    y = pb.zeros_like(x)
    y.add_(1)
    assert x.tolist() == [0.0, 0.0]


# -- ranges ---------------------------------------------------------------------------------------
RANGES = [
    (lambda: pb.arange(4), [0, 1, 2, 3], "int64"),
    (lambda: pb.arange(2, 5), [2, 3, 4], "int64"),
    (lambda: pb.arange(1, 8, 3), [1, 4, 7], "int64"),
    (lambda: pb.arange(5, 1, -2), [5, 3], "int64"),
    (lambda: pb.arange(5, 1), [], "int64"),
    (lambda: pb.arange(3.0), [0.0, 1.0, 2.0], "float32"),
    (lambda: pb.arange(0, 1, 0.25), [0.0, 0.25, 0.5, 0.75], "float32"),
    (lambda: pb.arange(3, dtype="float64"), [0.0, 1.0, 2.0], "float64"),
    (lambda: pb.linspace(0, 1, 5), [0.0, 0.25, 0.5, 0.75, 1.0], "float32"),
    (lambda: pb.linspace(1, 2, 4, endpoint=False), [1.0, 1.25, 1.5, 1.75], "float32"),
    (lambda: pb.linspace(3, 4, 1), [3.0], "float32"),
    (lambda: pb.linspace(0, 1, 0), [], "float32"),
    (lambda: pb.linspace(0, 8, 5, dtype="int64"), [0, 2, 4, 6, 8], "int64"),
    (lambda: pb.eye(2), [[1.0, 0.0], [0.0, 1.0]], "float32"),
    (lambda: pb.eye(2, 3), [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], "float32"),
    (lambda: pb.eye(2, 3, k=1), [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], "float32"),
    (lambda: pb.eye(1, dtype="int8"), [[1]], "int8"),
]


@pytest.mark.parametrize(("make", "values", "dtype"), RANGES, ids=map(str, range(len(RANGES))))
def test_ranges_have_the_values_and_the_dtype(make, values, dtype):
    x = make()
    assert (x.tolist(), x.dtype.name, x.device) == (values, dtype, "cpu")


def test_ranges_may_require_grad():
    x = pb.arange(3.0, requires_grad=True)
    (x * x).sum().backward()
    assert x.grad.tolist() == [0.0, 2.0, 4.0]
    assert pb.linspace(0, 1, 2, requires_grad=True).is_leaf
    assert pb.eye(2, requires_grad=True).requires_grad
