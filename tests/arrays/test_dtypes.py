"""The dtype singletons, what they are found by, and how they promote."""

import copy
import pickle

import array_api_strict
import numpy as np
import pytest

from pullback.arrays import (
    DTYPES,
    as_dtype,
    complex_of,
    dtype_of,
    get_default_dtype,
    promote,
    promote_scalar,
    real_of,
    set_default_dtype,
)
from pullback.errors import ArgumentTypeError, DTypeError


@pytest.fixture
def float64_by_default():
    set_default_dtype("float64")
    yield
    set_default_dtype("float32")


@pytest.mark.parametrize(
    ("name", "kind", "itemsize", "floating", "is_complex"),
    [
        ("bool", "b", 1, False, False),
        ("int8", "i", 1, False, False),
        ("int64", "i", 8, False, False),
        ("uint16", "u", 2, False, False),
        ("float16", "f", 2, True, False),
        ("float64", "f", 8, True, False),
        ("complex64", "c", 8, False, True),
    ],
)
def test_properties(name, kind, itemsize, floating, is_complex):
    dtype = DTYPES[name]
    assert (dtype.kind, dtype.itemsize) == (kind, itemsize)
    assert (dtype.is_floating_point, dtype.is_complex) == (floating, is_complex)
    assert dtype.is_inexact == (floating or is_complex)
    assert repr(dtype) == f"pullback.{name}"


@pytest.mark.parametrize("name", DTYPES)
def test_numpy_takes_a_dtype_for_its_own(name):
    assert np.dtype(DTYPES[name]) == np.dtype(name)
    assert np.zeros(1, dtype=DTYPES[name]).dtype == np.dtype(name)


@pytest.mark.parametrize("name", DTYPES)
def test_pickle_and_deepcopy_give_back_the_singleton(name):
    dtype = DTYPES[name]
    assert pickle.loads(pickle.dumps(dtype)) is dtype
    assert copy.deepcopy(dtype) is dtype


def test_equality_with_what_means_the_same():
    dtype = DTYPES["float32"]
    assert dtype == dtype
    assert dtype == np.dtype("float32")
    assert np.dtype("float32") == dtype
    assert dtype == np.float32
    assert dtype == "float32"
    assert hash(dtype) == hash(np.dtype("float32"))


def test_inequality_with_everything_else():
    dtype = DTYPES["float32"]
    for other in (DTYPES["float64"], np.dtype("float64"), np.float64, "float64", float, 4, None):
        assert dtype != other


@pytest.mark.parametrize(
    ("wanted", "name"),
    [
        (DTYPES["int8"], "int8"),
        ("int8", "int8"),
        ("f4", "float32"),
        (np.dtype(">f8"), "float64"),
        (np.float16, "float16"),
        (np.longlong, "int64"),
        (array_api_strict.complex64, "complex64"),
        (bool, "bool"),
        (int, "int64"),
        (float, "float32"),
        (complex, "complex64"),
    ],
)
def test_as_dtype_understands(wanted, name):
    assert as_dtype(wanted) is DTYPES[name]


@pytest.mark.parametrize(
    ("wanted", "came"),
    [
        ("spam", "str 'spam'"),
        (3, "int 3"),
        (None, "NoneType None"),
        ([], r"list \[\]"),
    ],
)
def test_as_dtype_refuses_what_is_no_dtype(wanted, came):
    with pytest.raises(ArgumentTypeError, match=f"^dtype: a dtype required, got {came}\nhint: "):
        as_dtype(wanted)


@pytest.mark.parametrize(
    ("wanted", "came"),
    [
        (np.dtype(object), "object"),
        ("object", "object"),
        ("datetime64[s]", r"datetime64\[s\]"),
        (np.str_, "str"),
    ],
)
def test_as_dtype_refuses_elements_that_tensors_cannot_have(wanted, came):
    with pytest.raises(DTypeError, match=f"complex dtype required, got {came}\nhint: .*float32"):
        as_dtype(wanted)


def test_dtype_of_an_unhashable_thing():
    with pytest.raises(DTypeError, match="complex dtype required, got "):
        dtype_of([1])


def test_dtype_of_keeps_libraries_apart():
    assert dtype_of(np.dtype("float32")) is DTYPES["float32"]
    assert dtype_of(array_api_strict.float32) is DTYPES["float32"]
    assert dtype_of(array_api_strict.float32) is DTYPES["float32"]


def test_the_default_dtype_decides_what_python_numbers_become(float64_by_default):
    assert get_default_dtype() is DTYPES["float64"]
    assert as_dtype(float) is DTYPES["float64"]
    assert as_dtype(complex) is DTYPES["complex128"]
    assert promote_scalar(DTYPES["int8"], 1.0) is DTYPES["float64"]


@pytest.mark.parametrize("dtype", ["float16", "int64", "complex64"])
def test_only_two_dtypes_can_be_the_default(dtype):
    with pytest.raises(DTypeError, match=rf"float32 or float64 required, got {dtype}$"):
        set_default_dtype(dtype)
    assert get_default_dtype() is DTYPES["float32"]


PROMOTIONS = [
    ("bool", "bool", "bool"),
    ("bool", "uint8", "uint8"),
    ("bool", "float16", "float16"),
    ("int8", "int64", "int64"),
    ("uint8", "int8", "int16"),
    ("uint8", "int64", "int64"),
    ("uint16", "int16", "int32"),
    ("uint32", "int8", "int64"),
    ("uint8", "uint64", "uint64"),
    ("int64", "float16", "float16"),
    ("uint64", "float32", "float32"),
    ("int64", "complex64", "complex64"),
    ("float16", "float32", "float32"),
    ("float32", "float64", "float64"),
    ("float16", "complex64", "complex64"),
    ("float32", "complex64", "complex64"),
    ("float64", "complex64", "complex128"),
    ("complex64", "complex128", "complex128"),
]


@pytest.mark.parametrize(("a", "b", "result"), PROMOTIONS)
def test_promotion_goes_by_category_first(a, b, result):
    assert promote(DTYPES[a], DTYPES[b]) is DTYPES[result]
    assert promote(DTYPES[b], DTYPES[a]) is DTYPES[result]


def test_promotion_of_one_and_of_many():
    assert promote(DTYPES["int8"]) is DTYPES["int8"]
    many = [DTYPES[name] for name in ("bool", "int64", "float32", "complex64", "float64")]
    assert promote(*many) is DTYPES["complex128"]


def test_no_integer_dtype_holds_uint64_and_a_signed_one():
    text = "dtypes with a common one required, got uint64 and int8\nhint: convert one of them"
    with pytest.raises(DTypeError, match=text):
        promote(DTYPES["uint64"], DTYPES["int8"])


class MyFloat(float):
    pass


@pytest.mark.parametrize(
    ("dtype", "scalar", "result"),
    [
        ("bool", True, "bool"),
        ("bool", 2, "int64"),
        ("bool", 2.0, "float32"),
        ("bool", 2j, "complex64"),
        ("uint8", -1, "uint8"),
        ("int8", 1000, "int8"),
        ("int8", 2.0, "float32"),
        ("int64", 2j, "complex64"),
        ("float16", 2.0, "float16"),
        ("float16", 2j, "complex64"),
        ("float64", 2j, "complex128"),
        ("complex64", 2.0, "complex64"),
        ("float32", np.float64(2), "float32"),
        ("int8", np.float16(2), "float32"),
        ("bool", np.uint8(2), "int64"),
        ("int8", MyFloat(2), "float32"),
    ],
)
def test_a_number_promotes_only_to_a_higher_category(dtype, scalar, result):
    assert promote_scalar(DTYPES[dtype], scalar) is DTYPES[result]


@pytest.mark.parametrize("thing", ["2", None, np.str_("2")])
def test_promotion_with_what_is_no_number(thing):
    with pytest.raises(ArgumentTypeError, match=r"^dtype promotion: a number required, got "):
        promote_scalar(DTYPES["int8"], thing)


@pytest.mark.parametrize(
    ("dtype", "real", "as_complex"),
    [
        ("float16", "float16", "complex64"),
        ("float64", "float64", "complex128"),
        ("complex64", "float32", "complex64"),
        ("complex128", "float64", "complex128"),
        ("int8", "int8", "complex64"),
    ],
)
def test_real_and_complex_counterparts(dtype, real, as_complex):
    assert real_of(DTYPES[dtype]) is DTYPES[real]
    assert complex_of(DTYPES[dtype]) is DTYPES[as_complex]


@pytest.mark.parametrize(
    ("dtype", "equal", "different"),
    [
        ("float64", [float, "f8", "double", np.float64], [int, complex, "f4", "no dtype", list]),
        ("int64", [int, "i8", np.int64], [bool, float, "i4"]),
        ("bool", [bool, "?", np.bool_], [int]),
        ("complex128", [complex, "c16"], [float]),
        ("float32", ["f4"], [float]),
    ],
)
def test_a_dtype_equals_what_means_it_to_numpy(dtype, equal, different):
    assert [DTYPES[dtype] == other for other in equal] == [True] * len(equal)
    assert [DTYPES[dtype] != other for other in different] == [True] * len(different)


def test_a_dtype_has_numpys_class_of_scalars_and_letter():
    assert (DTYPES["float32"].type, DTYPES["float32"].char) == (np.float32, "f")
