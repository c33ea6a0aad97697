"""Hypothesis strategies for tensors and for whole argument lists."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st

import pullback as pb
from pullback.check.inputs.strategies import (
    MAX_CHECKS,
    arguments,
    search,
    tensors,
)
from pullback.errors import ArgumentError, ArgumentTypeError, MissingExtraError

QUICK = settings(
    phases=(Phase.generate, Phase.shrink),
    max_examples=60,
    database=None,
    derandomize=True,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


def examples(strategy, count=60):
    """Return examples of a strategy, always the same."""
    found = []

    @settings(QUICK, max_examples=count, phases=(Phase.generate,))
    @given(strategy)
    def collect(drawn):
        found.append(drawn)

    collect()
    return found


def smallest(strategy, holds):
    return find(strategy, holds, settings=QUICK)


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


def test_arguments_lie_in_their_domains():
    text = (
        "u: (n,) unit, q: (n,) in (0, 1], s: (n, n) spd, i: (k,) int in [0, n), b: (n,) bool, "
        "e: (n,) int distinct in [0, n), z: (n,) complex, j: (2,) int, name: 'mean'"
    )
    for u, q, s, i, b, e, z, j, name in examples(arguments(text, layouts=False)):
        n = len(b)
        u, q, s = (t.detach().numpy() for t in (u, q, s))
        assert np.all((u > 0) & (u < 1))
        assert np.all((q > 0) & (q <= 1))
        assert np.all(np.linalg.eigvalsh(s) > 0)
        assert np.all((i.numpy() >= 0) & (i.numpy() < n))
        assert (b.dtype, z.dtype, name) == (pb.bool, pb.complex128, "mean")
        assert sorted(e.numpy().tolist()) == list(range(n))
        assert np.all((j.numpy() >= 0) & (j.numpy() < min(n, i.shape[0], 4)))


def test_arguments_shrink_to_small_ones():
    x, w = smallest(arguments("x: (n, d), w: (m, d)"), lambda t: t[0].shape != t[1].shape)
    assert sorted([tuple(x.shape), tuple(w.shape)]) == [(1, 1), (2, 1)]
    assert not np.any(x.detach().numpy())


# ---- the search ----------------------------------------------------------------------------------
def test_the_search_returns_the_smallest_inputs_that_are_wrong():
    def right(inputs):
        return not (inputs.args[0] > 3).any().item()

    found = search([arguments("x: (n,)")], right, 0, 50)
    assert found.args[0].tolist() == [4.0]
    assert search([arguments("x: (n,)")], lambda inputs: True, 0, 50) is None
    assert search([st.integers(3, 9), "k"], lambda inputs: False, 0, 50).args == (3, "k")


def test_the_search_repeats_with_its_seed():
    def drawn(seed):
        found = []
        search([tensors()], lambda inputs: not found.append(repr(inputs)), seed, 10)
        return found

    assert drawn(1) == drawn(1) != drawn(2)


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
