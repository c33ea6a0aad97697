"""How tensors print, to the letter."""

import array_api_strict
import numpy as np
import pytest

import pullback as pb

NAN, INF = float("nan"), float("inf")

TEXTS = [
    # whole numbers keep a point, others four decimals
    ([2.0], "tensor([2.])"),
    (2.0, "tensor(2.)"),
    (0.69314718, "tensor(0.6931)"),
    ([0.5, 1.25], "tensor([0.5000, 1.2500])"),
    ([0.0], "tensor([0.])"),
    ([-0.0], "tensor([-0.])"),
    (0.00012345, "tensor(0.0001)"),
    (99999.0, "tensor(99999.)"),
    ([12345678.0], "tensor([12345678.])"),
    # beyond that the exponent
    ([0.00001], "tensor([1.0000e-05])"),
    ([1e10], "tensor([1.0000e+10])"),
    ([1e8, 1.0], "tensor([1.0000e+08, 1.0000e+00])"),
    ([1e5, 1e-5], "tensor([1.0000e+05, 1.0000e-05])"),
    ([1e38, 1e-38], "tensor([1.0000e+38, 1.0000e-38])"),
    # columns line up
    ([1.0, 10.0, 100.0], "tensor([  1.,  10., 100.])"),
    ([-1.0, 2.0, -3.5], "tensor([-1.0000,  2.0000, -3.5000])"),
    ([100.5, 1.0], "tensor([100.5000,   1.0000])"),
    ([[1.0, 2.5], [-3.0, 4.0]], "tensor([[ 1.0000,  2.5000],\n        [-3.0000,  4.0000]])"),
    ([[1, 2], [3, -40]], "tensor([[  1,   2],\n        [  3, -40]])"),
    ([[[1, 2]], [[3, 4]]], "tensor([[[1, 2]],\n\n        [[3, 4]]])"),
    # what is no number
    ([NAN, 1.0], "tensor([nan,  1.])"),
    ([INF, -1.5], "tensor([    inf, -1.5000])"),
    ([-INF, NAN, 2.5], "tensor([  -inf,    nan, 2.5000])"),
    (NAN, "tensor(nan)"),
    ([NAN, INF], "tensor([nan, inf])"),
    # other kinds
    ([1, 2, 3], "tensor([1, 2, 3])"),
    (3, "tensor(3)"),
    (-7, "tensor(-7)"),
    ([True, False], "tensor([ True, False])"),
    (True, "tensor(True)"),
    (1j, "tensor(0.+1.j)"),
    ([1.5 + 2j, 100 - 0.25j], "tensor([  1.5000+2.0000j, 100.0000-0.2500j])"),
    ([1 + 2j, -3 - 4j], "tensor([ 1.+2.j, -3.-4.j])"),
    ([complex(NAN, 1.0)], "tensor([nan+1.j])"),
    # nothing in it
    ([], "tensor([])"),
    ([[]], "tensor([], size=(1, 0))"),
    ([[], []], "tensor([], size=(2, 0))"),
]


@pytest.mark.parametrize(("data", "text"), TEXTS, ids=[text for _, text in TEXTS])
def test_values_print_with_four_decimals_in_aligned_columns(data, text):
    assert repr(pb.tensor(data)) == text


DTYPES = [
    ("float32", "tensor([1.])"),
    ("float64", "tensor([1.], dtype=float64)"),
    ("float16", "tensor([1.], dtype=float16)"),
    ("complex64", "tensor([1.+0.j])"),
    ("complex128", "tensor([1.+0.j], dtype=complex128)"),
    ("int64", "tensor([1])"),
    ("int32", "tensor([1], dtype=int32)"),
    ("int8", "tensor([1], dtype=int8)"),
    ("uint8", "tensor([1], dtype=uint8)"),
    ("uint64", "tensor([1], dtype=uint64)"),
    ("bool", "tensor([ True])"),
]


@pytest.mark.parametrize(("dtype", "text"), DTYPES, ids=[name for name, _ in DTYPES])
def test_a_dtype_that_the_data_does_not_imply_is_named(dtype, text):
    assert repr(pb.tensor([1], dtype=dtype)) == text


@pytest.fixture
def double():
    pb.set_default_dtype("float64")
    yield
    pb.set_default_dtype("float32")


@pytest.mark.usefixtures("double")
def test_the_default_dtype_goes_unsaid():
    assert repr(pb.tensor([1.0])) == "tensor([1.])"
    assert repr(pb.tensor([1.0], dtype="float32")) == "tensor([1.], dtype=float32)"


@pytest.mark.case("L06")
def test_the_place_in_the_history_comes_last():
    x = pb.tensor([1.0, 2.0], requires_grad=True)
    wide = pb.tensor(2.0, dtype="float64", requires_grad=True)
    assert repr(x) == "tensor([1., 2.], requires_grad=True)"
    assert repr(pb.tensor(2.0, requires_grad=True).log()) == "tensor(0.6931, grad_fn=<LogBackward>)"
    assert repr(wide) == "tensor(2., dtype=float64, requires_grad=True)"
    assert repr(wide * 2) == "tensor(4., dtype=float64, grad_fn=<MulBackward>)"
    assert repr(x.detach()) == "tensor([1., 2.])"
    assert repr(x.unbind()[0]) == "tensor(1., grad_fn=<UnbindBackward>)"


def test_a_view_prints_what_was_written_through_its_base():
    x = pb.tensor([1.0, 2.0])
    view = x[1:]
    x.mul_(2)
    assert repr(view) == "tensor([4.])"


def test_an_array_of_another_library_names_its_device():
    x = pb.asarray(array_api_strict.asarray([1.0, 2.5], dtype=array_api_strict.float32))
    assert repr(x) == "tensor([1.0000, 2.5000], device='array_api_strict:CPU_DEVICE')"


def test_the_printed_values_are_those_that_str_and_format_give():
    x = pb.tensor([1.0, 2.5])
    assert str(x) == f"{x}" == repr(x) == "tensor([1.0000, 2.5000])"
    assert f"{pb.tensor(3.14159):.2f}" == "3.14"
    assert f"{x:>30}" == "      tensor([1.0000, 2.5000])"


def test_empty_tensors_of_several_axes_name_their_size():
    assert repr(pb.zeros(0, 3)) == "tensor([], size=(0, 3))"
    assert repr(pb.zeros(2, 0, dtype="float64")) == "tensor([], size=(2, 0), dtype=float64)"


def test_a_thousand_elements_print_whole_and_one_more_is_summarised():
    whole, more = repr(pb.arange(1000)), repr(pb.arange(1001))
    assert "..." not in whole
    assert whole.count(",") == 999
    assert more == "tensor([   0,    1,    2, ...,  998,  999, 1000])"


def test_a_summary_shows_three_elements_at_each_end_of_each_axis():
    x = pb.arange(10000).reshape(100, 100)
    assert repr(x) == (
        "tensor([[   0,    1,    2, ...,   97,   98,   99],\n"
        "        [ 100,  101,  102, ...,  197,  198,  199],\n"
        "        [ 200,  201,  202, ...,  297,  298,  299],\n"
        "        ...,\n"
        "        [9700, 9701, 9702, ..., 9797, 9798, 9799],\n"
        "        [9800, 9801, 9802, ..., 9897, 9898, 9899],\n"
        "        [9900, 9901, 9902, ..., 9997, 9998, 9999]])"
    )


def test_only_the_elements_shown_decide_on_the_format():
    x = pb.zeros(2000)
    x[1000] = 12345.678
    assert repr(x) == "tensor([0., 0., 0., ..., 0., 0., 0.])"
    x[1] = 0.5
    assert repr(x) == "tensor([0.0000, 0.5000, 0.0000, ..., 0.0000, 0.0000, 0.0000])"


def test_a_short_axis_is_shown_whole_in_a_summary():
    x = pb.zeros(2, 1000)
    assert repr(x) == (
        "tensor([[0., 0., 0., ..., 0., 0., 0.],\n        [0., 0., 0., ..., 0., 0., 0.]])"
    )


def test_long_rows_are_wrapped_under_their_first_element():
    text = repr(pb.full((20,), 1.5))
    first, second, third = text.split("\n")
    nine = ", ".join(["1.5000"] * 9)
    assert first == f"tensor([{nine},"
    assert second == f"        {nine},"
    assert third == "        1.5000, 1.5000])"


def test_numpys_own_print_options_change_nothing():
    with np.printoptions(precision=1, threshold=3, suppress=True):
        assert repr(pb.tensor([0.12345] * 5)) == "tensor([0.1235, 0.1235, 0.1235, 0.1235, 0.1235])"
