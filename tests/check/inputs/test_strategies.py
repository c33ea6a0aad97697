"""Hypothesis strategies for tensors and for whole argument lists."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from hypothesis import Phase, given, settings, strategies as st

import pullback as pb
from pullback.check.inputs.arguments import draw_described
from pullback.check.inputs.strategies import MAX_CHECKS, arguments, search, tensors
from pullback.errors import ArgumentError, ArgumentTypeError, MissingExtraError


def examples(strategy, count=60):
    """Return examples of a strategy, always the same."""
    found = []

    @settings(max_examples=count, phases=[Phase.generate], derandomize=True, deadline=None)
    @given(strategy)
    def collect(drawn):
        found.append(drawn)

    collect()
    return found


# ---- tensors -------------------------------------------------------------------------------------
def test_tensors_of_many_shapes_dtypes_and_layouts_are_drawn():
    found = examples(tensors(), 200)
    assert all(isinstance(t, pb.Tensor) and t.requires_grad for t in found)
    assert {t.dtype for t in found} == {pb.float32, pb.float64}
    assert {t.ndim for t in found} == {0, 1, 2, 3}
    arrays = [t.detach().numpy() for t in found]
    assert all(np.all(np.isfinite(a)) for a in arrays)
    assert {np.sign(s) for a in arrays for s in a.strides} == {-1, 0, 1}
    assert {(a.flags.c_contiguous, a.flags.writeable) for a in arrays} >= {
        (False, True),
        (True, False),
    }


@pytest.mark.parametrize(
    ("shape", "holds"),
    [
        ((2, 3), lambda s: s == (2, 3)),
        (4, lambda s: s == (4,)),
        ((), lambda s: s == ()),
        ("(n, n, 2)", lambda s: s[0] == s[1] and s[2] == 2),
        ("(n, 2*n)", lambda s: s[1] == 2 * s[0]),
        (st.just((1, 2)), lambda s: s == (1, 2)),
        (None, lambda s: len(s) <= 3 and all(1 <= n <= 5 for n in s)),
    ],
)
def test_a_shape_is_what_it_is_asked_to_be(shape, holds):
    assert all(holds(tuple(t.shape)) for t in examples(tensors(shape), 20))


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        ("float16", {"float16"}),
        ("complex", {"complex128"}),
        (pb.complex64, {"complex64"}),
        (["float32", pb.int64], {"float32", "int64"}),
        ("bool", {"bool"}),
        ("uint8", {"uint8"}),
        (st.sampled_from(["int32", "float64"]), {"int32", "float64"}),
    ],
)
def test_a_dtype_is_what_it_is_asked_to_be(dtype, expected):
    found = examples(tensors((3,), dtype))
    assert {t.dtype.name for t in found} == expected
    assert all(t.requires_grad == t.dtype.is_inexact for t in found)


def test_elements_may_be_drawn_by_a_strategy_of_ones_own():
    found = examples(tensors((3,), "float32", st.floats(0.1, 0.2), layouts=False))
    flat = np.concatenate([t.detach().numpy() for t in found])
    assert np.all((flat >= np.float32(0.1)) & (flat <= np.float32(0.2)))


def test_a_strategy_prints_as_it_is_called():
    assert repr(tensors((3,))).startswith("tensors(")
    assert repr(arguments("x: (n,)")) == "arguments('x: (n,)')"


# ---- arguments -----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("words", "holds"),
    [
        ("(n,) positive", lambda a: (a > 0).all()),
        ("(n,) unit", lambda a: ((a > 0) & (a < 1)).all()),
        ("(n,) in (0, 1]", lambda a: ((a > 0) & (a <= 1)).all()),
        ("(n, n) spd", lambda a: np.allclose(a, a.T) and (np.linalg.eigvalsh(a) > 0).all()),
        ("(n,) int in [0, n)", lambda a: a.dtype.kind == "i" and set(a) <= set(range(len(a)))),
        ("(2, n) int", lambda a: a.min() >= 0 and a.max() < min(a.shape[1], 4)),
        ("(n,) int distinct in [0, n)", lambda a: sorted(a) == list(range(len(a)))),
        ("(9,) distinct", lambda a: np.unique(a).size == 9),
        ("(n,) complex64", lambda a: a.dtype == np.complex64),
        ("(n,) uint8", lambda a: a.dtype == np.uint8),
        ("(n,) bool", lambda a: a.dtype == np.bool_),
        ("(n,) mask", lambda a: a.dtype == np.bool_),
        ("(n,) permutation", lambda a: sorted(a) == list(range(len(a)))),
        ("(9,) below 3", lambda a: a.dtype == np.int64 and set(a) <= {0, 1, 2}),
        ("(5,) sorted in [0, 2]", lambda a: (a[0], a[-1]) == (0, 2) and (np.diff(a) > 0).all()),
        ("(9, 2) int sorted in [0, 4)", lambda a: (a[:, 0] < a[:, 1]).all() and a.max() < 4),
    ],
)
def test_values_lie_in_their_domain_however_they_are_drawn(words, holds):
    text = f"x: {words}, mode: 'mean'"
    calls = [draw_described(lambda x, mode: x, text, seed).args for seed in range(10)]
    for x, mode in [*calls, *examples(arguments(text, layouts=False), 20)]:
        assert holds(x.detach().numpy())
        assert mode == "mean"


# ---- the search ----------------------------------------------------------------------------------
def test_the_search_returns_the_smallest_inputs_that_are_wrong():
    def right(inputs):
        return not (inputs.args[0] > 3).any().item()

    found = search([arguments("x: (n,)")], right, 0, 50)
    assert found.args[0].tolist() == [4.0]
    assert search([arguments("x: (n,)")], lambda inputs: True, 0, 50) is None
    assert search([st.integers(3, 9), "k"], lambda inputs: False, 0, 50).args == (3, "k")


def test_the_search_ends():
    tried = []

    def right(inputs):
        tried.append(inputs.args[0].tolist())
        return len(tried) < 5

    assert search([tensors((3, 3), layouts=False)], right, 0, 50) is not None
    assert len(tried) <= MAX_CHECKS


# ---- what is refused -----------------------------------------------------------------------------
def test_what_is_no_shape_or_dtype_is_refused():
    with pytest.raises(ArgumentTypeError, match=r"tensors: shape must be an int, .* got 1\.5"):
        tensors(1.5)
    with pytest.raises(ArgumentError, match="tensors: a dtype is required, got 'floaty'"):
        tensors(dtype="floaty")
    with pytest.raises(ArgumentError, match="tensors: a size for each axis"):
        tensors("(n d)")
    with pytest.raises(ArgumentError, match="arguments: a size for each axis of `x`"):
        arguments("x: (n d)")


@pytest.mark.parametrize("make", [tensors, lambda: arguments("x: (n,)")])
def test_without_hypothesis_the_error_says_what_to_install(make, monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(MissingExtraError, match=r"hint: pip install 'pullback\[test\]'"):
        make()
