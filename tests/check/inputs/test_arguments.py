"""The arguments of a call: shown, and made symmetric."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as pb
from pullback.check import check_op
from pullback.check.inputs.arguments import Inputs, format_inputs
from pullback.check.inputs.domains import on_domains
from pullback.errors import ArgumentError


def test_a_call_is_shown_by_shapes_or_by_values():
    inputs = Inputs((np.zeros((2, 1), np.float32), 0.5), {"dim": 0})
    assert format_inputs(inputs) == "input 0 (2, 1) float32, input 1 0.5, dim 0"
    expected = "input 0 = [[0.0], [0.0]] float32, input 1 = 0.5, dim = 0"
    assert format_inputs(inputs, values=True) == expected


def test_a_function_of_symmetric_matrices_sees_the_symmetric_part():
    def second(x, a):
        return a

    matrix = pb.tensor([[1.0, 2.0], [4.0, 3.0]])
    expected = [[1.0, 3.0], [3.0, 3.0]]
    wrapped = on_domains(second, {"a": "symmetric"})
    assert wrapped(matrix, matrix).tolist() == wrapped(matrix, a=matrix).tolist() == expected
    assert on_domains(second, {}) is second


def test_a_tensor_of_a_library_that_is_not_in_use_is_refused_with_what_to_pass():
    class Foreign:
        dtype = "torch.float64"

        def __array__(self, dtype=None, copy=None):
            return np.ones(3)

    message = r"got a .*Foreign of torch\.float64\.\nhint: pass .*pb\.asarray\(t\), or t\.numpy\(\)"
    with pytest.raises(ArgumentError, match=message):
        check_op(pb.sin, Foreign())
