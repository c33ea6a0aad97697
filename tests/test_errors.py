"""The exception tree, and the wording that every message shares."""

import pickle

import numpy as np
import pytest

from pullback import errors
from pullback.errors import compose, describe


@pytest.mark.parametrize(
    ("name", "builtins"),
    [
        ("GraphError", (RuntimeError,)),
        ("InplaceError", (RuntimeError, errors.GraphError)),
        ("ReleasedError", (RuntimeError, errors.GraphError)),
        ("MissingRuleError", (RuntimeError, NotImplementedError, errors.GraphError)),
        ("GradientError", (RuntimeError,)),
        ("ShapeError", (ValueError, RuntimeError)),
        ("DTypeError", (TypeError, RuntimeError)),
        ("DeviceError", (RuntimeError,)),
        ("ArgumentError", (ValueError,)),
        ("ArgumentTypeError", (TypeError,)),
        ("TensorIndexError", (IndexError,)),
        ("MissingExtraError", (ImportError,)),
    ],
)
def test_each_error_is_caught_as_what_users_of_numpy_and_of_pytorch_catch(name, builtins):
    error = getattr(errors, name)("said")
    for base in (errors.AutogradError, *builtins):
        assert isinstance(error, base)
    assert str(pickle.loads(pickle.dumps(error))) == "said"


def test_the_docstring_draws_every_class():
    for name in errors.__all__:
        if isinstance(getattr(errors, name), type):
            assert name in errors.__doc__


def test_the_warning_is_a_user_warning_and_no_error():
    assert issubclass(errors.UntrackedTensorWarning, UserWarning)
    assert not issubclass(errors.UntrackedTensorWarning, errors.AutogradError)


class OnAnotherDevice:
    shape, dtype, device = (2,), np.dtype("int8"), "cuda:1"


class DTypeWithoutName:
    def __str__(self):
        return "torch.float64"


class OtherArray:
    shape, dtype = [3], DTypeWithoutName()


@pytest.mark.parametrize(
    ("value", "line"),
    [
        (np.zeros((3, 4), np.float32), "x: shape (3, 4), dtype float32"),
        (np.float64(2), "x: shape (), dtype float64"),
        (OnAnotherDevice(), "x: shape (2,), dtype int8, device cuda:1"),
        (OtherArray(), "x: shape (3,), dtype float64"),
        (None, "x: None"),
        (1.5, "x: float 1.5"),
        ([1, 2], "x: list [1, 2]"),
        (list(range(9)), "x: list [0, 1, 2, 3, 4, 5, ...]"),
    ],
)
def test_describe(value, line):
    assert describe("x", value) == line


def test_compose_has_a_line_for_the_fault_each_input_and_the_hint():
    text = compose("mm", "2 dimensions required", "1", ("a", np.ones(2)), ("b", 3), hint="mend it")
    assert text.split("\n") == [
        "mm: 2 dimensions required, got 1",
        "  a: shape (2,), dtype float64",
        "  b: int 3",
        "hint: mend it",
    ]


def test_compose_without_inputs_and_hint_is_one_line():
    assert compose("relu", "a tensor required", "str") == "relu: a tensor required, got str"
