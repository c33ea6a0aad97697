"""The collection is large, varied and runs. What the checker says of it is not tested here."""

import inspect
import re
from collections import Counter

import numpy as np
import pytest

import pullback as pb

from . import CASES, RIGHT, WRONG

pytestmark = pytest.mark.stress  # of what judges the checker, not of the package

# Entries whose mistake is that an argument's gradient does not come: entry -> the argument.
NO_GRADIENT = {"pooled_bias": 2, "sphere_offsets": 1, "dense": 1, "optional_bias": 1}


def called(case, given):
    """Return the floating outputs that are tracked, and the leaves by position or name."""
    args, kwargs = given(np.random.default_rng(0))
    leaves = {k: v for k, v in [*enumerate(args), *kwargs.items()] if needs_grad(v)}
    if case.name.endswith("_"):
        args = (args[0].clone(), *args[1:])
    return [out for out in tensors(case.op()(*args, **kwargs)) if out.requires_grad], leaves


def needs_grad(value):
    return isinstance(value, pb.Tensor) and value.requires_grad


def tensors(result):
    if isinstance(result, dict):
        result = tuple(result.values())
    results = result if isinstance(result, (tuple, list)) else [result]
    return [value for value in results if isinstance(value, pb.Tensor)]


def inputs():
    for case in CASES:
        yield pytest.param(case, case.given, id=case.name)
        if case.shows is not None:
            yield pytest.param(case, case.shows, id=f"{case.name}-{case.where}")


def test_there_are_at_least_80_wrong_and_60_right_entries():
    assert len(WRONG) >= 80
    assert len(RIGHT) >= 60


def test_names_are_unique():
    assert [name for name, n in Counter(case.name for case in CASES).items() if n > 1] == []


def test_each_field_has_wrong_and_right_entries():
    assert len({case.field for case in CASES}) >= 10
    assert {case.field for case in WRONG} == {case.field for case in RIGHT}
    assert min(Counter(case.field for case in WRONG).values()) >= 3
    assert min(Counter(case.field for case in RIGHT).values()) >= 5


def test_about_half_of_the_mistakes_do_not_always_show():
    subtle = sum(case.where != "always" for case in WRONG)
    assert 0.45 <= subtle / len(WRONG) <= 0.65


@pytest.mark.parametrize("case", WRONG, ids=lambda case: case.name)
def test_words_for_a_mistake_fit_its_own_description(case):
    assert case.said
    assert case.where
    assert any(re.search(word, case.wrong, re.IGNORECASE) for word in case.said)


@pytest.mark.parametrize("case", WRONG, ids=lambda case: case.name)
def test_words_for_a_mistake_do_not_fit_the_names_that_every_report_on_it_has(case):
    op = case.op()
    names = [f"{case.name}: argument `{name}`" for name in inspect.signature(op).parameters]
    assert [
        n for n in [*names, repr(op)] for w in case.said if re.search(w, n, re.IGNORECASE)
    ] == []


@pytest.mark.parametrize("case", RIGHT, ids=lambda case: case.name)
def test_a_right_entry_describes_no_mistake(case):
    assert (case.wrong, case.said, case.where, case.shows) == ("", (), "", None)


@pytest.mark.parametrize(("case", "given"), list(inputs()))
def test_forward_runs_and_backward_gives_gradients_of_the_inputs_shapes(case, given):
    outputs, leaves = called(case, given)
    assert outputs
    assert leaves
    seeds = [pb.ones_like(out) for out in outputs]
    grads = pb.autograd.grad(outputs, list(leaves.values()), seeds, allow_unused=True)
    for (key, leaf), grad in zip(leaves.items(), grads, strict=True):
        if grad is None:
            assert NO_GRADIENT.get(case.name) == key
        else:
            assert grad.shape == leaf.shape
            assert grad.dtype == leaf.dtype


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_same_seed_gives_the_same_inputs(case):
    first, second = ([*map(plain, flat(case.given))] for _ in range(2))
    assert first == second


def flat(given):
    args, kwargs = given(np.random.default_rng(3))
    return [*args, *kwargs.values()]


def plain(value):
    if isinstance(value, (pb.Tensor, np.ndarray)):
        return np.asarray(value.detach() if isinstance(value, pb.Tensor) else value).tolist()
    return None if callable(value) else value
