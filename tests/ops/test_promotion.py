"""Which dtype a result has: PyTorch's promotion, and what becomes of gradients on the way."""

import array_api_strict
import numpy as np
import pytest

import pullback as pb

SHORT = {
    "b": "bool",
    "u1": "uint8",
    "i1": "int8",
    "i2": "int16",
    "i4": "int32",
    "i8": "int64",
    "f2": "float16",
    "f4": "float32",
    "f8": "float64",
    "c8": "complex64",
    "c16": "complex128",
}
# The dtype of x + y: a row for x, a column for y, both in the order of SHORT.
PAIRS = [
    "b   u1  i1  i2  i4  i8  f2  f4  f8  c8  c16",
    "u1  u1  i2  i2  i4  i8  f2  f4  f8  c8  c16",
    "i1  i2  i1  i2  i4  i8  f2  f4  f8  c8  c16",
    "i2  i2  i2  i2  i4  i8  f2  f4  f8  c8  c16",
    "i4  i4  i4  i4  i4  i8  f2  f4  f8  c8  c16",
    "i8  i8  i8  i8  i8  i8  f2  f4  f8  c8  c16",
    "f2  f2  f2  f2  f2  f2  f2  f4  f8  c8  c16",
    "f4  f4  f4  f4  f4  f4  f4  f4  f8  c8  c16",
    "f8  f8  f8  f8  f8  f8  f8  f8  f8  c16 c16",
    "c8  c8  c8  c8  c8  c8  c8  c8  c16 c8  c16",
    "c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16",
]
# The dtype of x + number, in the order of SHORT.
NUMBERS = {
    True: "b   u1  i1  i2  i4  i8  f2  f4  f8  c8  c16",
    2: "i8  u1  i1  i2  i4  i8  f2  f4  f8  c8  c16",
    2.5: "f4  f4  f4  f4  f4  f4  f2  f4  f8  c8  c16",
    2j: "c8  c8  c8  c8  c8  c8  c8  c8  c16 c8  c16",
}
# The dtype of x + y where y is a tensor without dimensions: only its category counts.
SCALARS = {
    "b": "b   u1  i1  i2  i4  i8  f2  f4  f8  c8  c16",
    "i8": "i8  u1  i1  i2  i4  i8  f2  f4  f8  c8  c16",
    "f8": "f8  f8  f8  f8  f8  f8  f2  f4  f8  c8  c16",
    "c16": "c16 c16 c16 c16 c16 c16 c8  c8  c16 c8  c16",
}


def ones(short, *shape):
    return pb.ones(shape or (2,), dtype=SHORT[short])


def expanded(row):
    return zip(SHORT, (SHORT[s] for s in row.split()), strict=True)


@pytest.mark.parametrize(("x", "row"), list(zip(SHORT, PAIRS, strict=True)), ids=SHORT.values())
def test_two_tensors_meet_in_the_higher_category_then_the_greater_width(x, row):
    for y, expected in expanded(row):
        for function in (pb.add, pb.multiply, lambda a, b: pb.where(True, a, b)):
            assert function(ones(x), ones(y)).dtype.name == expected, y


@pytest.mark.parametrize("number", NUMBERS, ids=str)
def test_a_python_number_changes_the_dtype_only_by_a_higher_category(number):
    for x, expected in expanded(NUMBERS[number]):
        assert (ones(x) * number).dtype.name == expected, x
        assert (number + ones(x)).dtype.name == expected, x
        assert (ones(x)[0] * number).dtype.name == expected, f"{x} without dimensions"


@pytest.mark.parametrize("y", SCALARS)
def test_a_tensor_without_dimensions_changes_the_dtype_only_by_a_higher_category(y):
    scalar = pb.ones((), dtype=SHORT[y])
    for x, expected in expanded(SCALARS[y]):
        assert (ones(x) * scalar).dtype.name == expected, x
        assert (scalar + ones(x)).dtype.name == expected, x


def test_two_tensors_without_dimensions_meet_as_any_two():
    assert (pb.tensor(1.0) * pb.tensor(2.0, dtype="float64")).dtype is pb.float64
    assert (pb.tensor(1) * pb.tensor(2, dtype="int8")).dtype is pb.int64


def test_a_number_counts_by_its_category_and_never_by_its_width():
    assert (ones("f4") * np.float64(2)).dtype is pb.float32
    assert (np.float64(2) * ones("f4")).dtype is pb.float32
    assert (ones("i1") + np.int64(2)).dtype is pb.int8
    assert (ones("f2") * 1e3).dtype is pb.float16
    assert (ones("i8") * np.float32(2)).dtype is pb.float32


# -- by operation ---------------------------------------------------------------------------------
def test_division_of_integers_is_true_division_in_the_default_dtype():
    i = pb.tensor([1, 2, 5])
    for result in (i / 2, i / pb.tensor([2, 2, 2]), 5 / i, i.div(2), pb.divide(i, 2)):
        assert result.dtype is pb.float32
    assert (i / 2).tolist() == [0.5, 1.0, 2.5]
    assert (i // 2).tolist() == [0, 1, 2]
    assert (-i // 2).tolist() == [-1, -1, -3]
    assert (i % 2).dtype is pb.int64
    assert (ones("b") / ones("b")).dtype is pb.float32
    assert (ones("i8") / ones("f8")).dtype is pb.float64


FLOATING = ["exp", "expm1", "log", "log1p", "sqrt", "sin", "cos", "tan", "tanh", "sigmoid"]


@pytest.mark.parametrize("name", [*FLOATING, "reciprocal", "softmax", "log_softmax", "logsumexp"])
def test_a_floating_function_of_integers_gives_the_default_dtype(name):
    arguments = (0,) if "soft" in name or name == "logsumexp" else ()
    for short in ("b", "u1", "i1", "i8"):
        assert getattr(ones(short), name)(*arguments).dtype is pb.float32
    for short in ("f2", "f4", "f8"):
        assert getattr(ones(short), name)(*arguments).dtype.name == SHORT[short]
    assert pb.tensor([4, 9]).sqrt().tolist() == [2.0, 3.0]


INTEGRAL = {
    "abs": [2, 3],
    "neg": [2, -3],
    "sign": [-1, 1],
    "relu": [0, 3],
    "square": [4, 9],
    "floor": [-2, 3],
    "ceil": [-2, 3],
    "round": [-2, 3],
    "trunc": [-2, 3],
}


@pytest.mark.parametrize("name", INTEGRAL)
def test_a_function_that_stays_among_integers_keeps_their_dtype(name):
    for short in ("i1", "i2", "i4", "i8", "f2", "f4", "f8"):
        assert getattr(ones(short), name)().dtype.name == SHORT[short]
    assert getattr(pb.tensor([-2, 3]), name)().tolist() == INTEGRAL[name]


def test_powers_of_integers_stay_integers_until_a_float_comes():
    i = pb.tensor([2, 3])
    assert (i**2).tolist() == [4, 9]
    assert (i**2).dtype is pb.int64
    assert (i**0.5).dtype is pb.float32
    assert (2**i).tolist() == [4, 8]
    assert (2.0**i).dtype is pb.float32


@pytest.mark.parametrize("name", ["sum", "prod", "cumsum"])
def test_sums_of_small_integers_and_bools_are_int64(name):
    arguments = (0,) if name == "cumsum" else ()
    for short in ("b", "i1", "i2", "i4", "i8"):
        assert getattr(ones(short), name)(*arguments).dtype is pb.int64
    for short in ("f2", "f4", "f8", "c8", "c16"):
        assert getattr(ones(short), name)(*arguments).dtype.name == SHORT[short]
    assert ones("b", 300).sum().item() == 300
    assert ones("i1", 300).sum().item() == 300


def test_a_sum_takes_a_dtype():
    assert ones("i8").sum(dtype=pb.float32).dtype is pb.float32
    assert pb.sum(ones("f4"), dtype="float64").dtype is pb.float64
    assert pb.prod(ones("b"), dtype="int32").dtype is pb.int32


@pytest.mark.parametrize("short", ["b", "u1", "i8"])
def test_a_mean_of_integers_is_refused(short):
    with pytest.raises(TypeError, match="mean: needs a floating point or complex dtype") as caught:
        ones(short).mean()
    assert SHORT[short] in str(caught.value)
    assert "float()" in str(caught.value)


COMPARISONS = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


@pytest.mark.parametrize("name", COMPARISONS)
def test_comparisons_give_bools_across_dtypes(name):
    x = pb.tensor([1, 2, 3])
    for y in (2, 2.0, 2.5, pb.tensor([2.0, 2.0, 2.0], dtype="float64"), pb.tensor(2)):
        result = getattr(x, name)(y)
        assert result.dtype is pb.bool
        assert result.tolist() == COMPARISONS[name]([1, 2, 3], np.asarray(y)).tolist()


def test_indices_are_int64():
    x = pb.tensor([[1.0, 3.0], [4.0, 2.0]])
    assert x.argmax().dtype is x.argmin(1).dtype is x.max(dim=0).indices.dtype is pb.int64


def test_magnitudes_and_parts_of_complex_numbers_are_real():
    for short, real in (("c8", pb.float32), ("c16", pb.float64)):
        x = ones(short)
        assert x.abs().dtype is x.real.dtype is x.imag.dtype is real
        assert x.conj().dtype is (x * 2).dtype is x.sqrt().dtype is x.dtype
        assert (x * ones("f4")).dtype is x.dtype


def test_cat_and_stack_bring_their_tensors_to_one_dtype():
    assert pb.cat([ones("i8"), ones("f4")]).dtype is pb.float32
    assert pb.stack([ones("b"), ones("i1")]).dtype is pb.int8
    assert pb.cat([ones("f4"), ones("f8")]).tolist() == [1.0] * 4


def test_the_promotion_is_the_same_on_another_library():
    x = pb.asarray(array_api_strict.asarray([1, 2]))
    y = pb.asarray(array_api_strict.asarray([0.5, 1.5], dtype=array_api_strict.float32))
    assert (x * y).dtype is pb.float32
    assert (x * 2.5).dtype is pb.float32
    assert (x / 2).dtype is pb.float32
    assert x.exp().dtype is pb.float32
    assert (x > 1.5).tolist() == [False, True]
    assert pb.cat([x, y]).tolist() == [1.0, 2.0, 0.5, 1.5]


# -- gradients ------------------------------------------------------------------------------------
@pytest.mark.case("L05")
def test_each_gradient_comes_back_in_the_dtype_of_its_tensor():
    x = pb.tensor([1.0, 2.0], requires_grad=True)
    y = pb.tensor([3.0, 4.0], dtype="float64", requires_grad=True)
    i = pb.tensor([5, 6])
    product = x * y * i
    assert product.dtype is pb.float64
    product.sum().backward()
    assert (x.grad.dtype, x.grad.tolist()) == (pb.float32, [15.0, 24.0])
    assert (y.grad.dtype, y.grad.tolist()) == (pb.float64, [5.0, 12.0])


def test_a_real_tensor_gets_the_real_part_of_the_gradient_of_a_complex_product():
    x = pb.tensor([1.0, 2.0], requires_grad=True)
    z = pb.tensor([1.0 + 2.0j, 3.0 - 1.0j], requires_grad=True)
    (x * z).backward(pb.tensor([1.0 + 1.0j, 1.0j]))
    assert (x.grad.dtype, x.grad.tolist()) == (pb.float32, [3.0, -1.0])
    assert (z.grad.dtype, z.grad.tolist()) == (pb.complex64, [1.0 + 1.0j, 2.0j])


def test_gradients_pass_through_casts():
    x = pb.tensor([1.0, 2.0], requires_grad=True)
    (x.double() ** 2).sum().backward()
    assert (x.grad.dtype, x.grad.tolist()) == (pb.float32, [2.0, 4.0])
    y = x.to(pb.int64)
    assert not y.requires_grad


def test_a_promoted_sum_in_place_keeps_the_dtype_of_the_tensor():
    x = pb.tensor([1.0, 2.0], requires_grad=True)
    y = pb.tensor([3.0, 4.0], dtype="float64", requires_grad=True)
    z = x * 1
    z.mul_(y)
    assert z.dtype is pb.float32
    z.sum().backward()
    assert (x.grad.tolist(), y.grad.tolist()) == ([3.0, 4.0], [1.0, 2.0])
    assert y.grad.dtype is pb.float64
    i = pb.tensor([1, 2])
    i += True
    i *= pb.tensor([2, 3], dtype="int8")
    assert (i.dtype, i.tolist()) == (pb.int64, [4, 9])


@pytest.mark.parametrize(
    ("short", "change"),
    [
        ("i8", lambda x: x.add_(1.5)),
        ("i8", lambda x: x.div_(2)),
        ("i8", lambda x: x.clamp_(min=0.5)),
        ("i8", lambda x: x.exp_()),
        ("b", lambda x: x.add_(1)),
        ("f4", lambda x: x.mul_(1j)),
        ("i8", lambda x: x.mul_(pb.tensor([1.0, 2.0]))),
    ],
    ids=map(str, range(7)),
)
def test_a_higher_category_cannot_be_written_in_place(short, change):
    x = ones(short)
    with pytest.raises(TypeError, match=r"^\w+_: ") as caught:
        change(x)
    assert SHORT[short] in str(caught.value)
    assert "not in place" in str(caught.value)
    assert (x.tolist(), x._version) == (ones(short).tolist(), 0)


def test_uint64_and_signed_integers_have_no_common_dtype():
    with pytest.raises(TypeError, match="dtypes with a common one required") as caught:
        pb.ones(2, dtype="uint64") + pb.ones(2, dtype="int16")
    assert "uint64" in str(caught.value)
    assert "int16" in str(caught.value)
