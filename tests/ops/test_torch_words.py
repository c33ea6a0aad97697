"""PyTorch's words for axes, ``dim`` and ``keepdim``, beside ``axis`` and ``keepdims``."""

import inspect

import pytest

import pullback as pb
from pullback.errors import ArgumentError
from pullback.ops.torch_words import torch_words

FUNCTIONS = {n: f for n in pb.__all__ if hasattr(f := getattr(pb, n), "has_torch_words")}
METHODS = {n: f for n, f in vars(pb.Tensor).items() if hasattr(f, "has_torch_words")}
NAMES = {"concatenate": "cat"}  # what errors call it
MORE = {"quantile": (0.5,), "nanquantile": (0.5,), "roll": (1,)}
every_one = pytest.mark.parametrize(
    ("name", "function"),
    [*FUNCTIONS.items(), *METHODS.items()],
    ids=[*FUNCTIONS, *(f"Tensor.{n}" for n in METHODS)],
)


def arguments(name):
    x = pb.tensor([[1.0, 2.0], [3.0, 5.0]])
    return ([x, x] if name in ("cat", "concatenate") else x, *MORE.get(name, ()))


def words(function):
    return [n for n in ("dim", "dims") if n in inspect.signature(function).parameters]


def values(result):
    return [t.tolist() for t in (result if isinstance(result, tuple) else (result,))]


@every_one
def test_dim_and_axis_name_the_same_axis(name, function):
    (word,) = words(function)
    by_word = function(*arguments(name), **{word: 1})
    by_axis = function(*arguments(name), axis=1)
    assert values(by_word) == values(by_axis)


@every_one
def test_dim_and_axis_together_are_an_error_of_the_function(name, function):
    (word,) = words(function)
    with pytest.raises(ArgumentError, match=f"^{NAMES.get(name, name)}: give dim or axis, not"):
        function(*arguments(name), **{word: 0, "axis": 0})


@pytest.mark.parametrize("name", ["sum", "amax", "mean", "logsumexp", "aminmax", "quantile"])
def test_keepdim_and_keepdims_both_leave_an_axis_of_one(name):
    for flag in ("keepdim", "keepdims"):
        result = getattr(pb.Tensor, name)(*arguments(name), **{"dim": 1, flag: True})
        shapes = {t.shape for t in (result if isinstance(result, tuple) else (result,))}
        assert shapes == {(2, 1)}


def test_the_signature_of_a_function_shows_the_words_of_both():
    assert list(inspect.signature(pb.softmax).parameters) == ["x", "dim", "dtype", "axis"]
    assert list(inspect.signature(pb.Tensor.mean).parameters) == [
        *("self", "dim", "keepdim", "axis", "keepdims")
    ]
    assert "_more" not in inspect.signature(pb.sum).parameters


def test_torch_words_keep_a_default_axis_and_other_settings():
    @torch_words()
    def last(x, axis=-1, *, order="C") -> tuple:
        return axis, order

    assert last(0) == (-1, "C")
    assert last(0, 2) == last(0, dim=2) == last(0, axis=2) == (2, "C")
    assert last(0, order="F") == (-1, "F")
