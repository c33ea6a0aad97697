"""What the entries say of themselves, against central differences of forward.

This is no checker: it knows of each entry where to look.
"""

import numpy as np
import pytest

import pullback as pb

from . import RIGHT, WRONG
from .test_cases import needs_grad, tensors

# What shows these is not an input in double precision.
ELSEWHERE = ("second derivative", "second use", "input changed", "float32")
# Right, but not to be seen at the inputs given: at kinks or ties, on a set without straight
# directions, or with a forward that is too coarse or too steep for a difference quotient.
NOT_HERE = {
    "compose_poses",
    "deep_equilibrium",
    "float32_scan",
    "log1mexp",
    "max_first",
    "relu_energy",
    "stiff_solve",
}


def array(tensor):
    return tensor.detach().numpy().copy(order="K")


def run(case, given, changes, track):
    """Call a fresh operation on copies; `changes` holds other values for some arguments."""
    args, kwargs = given
    leaves = {}

    def copied(key, value):
        if isinstance(value, np.ndarray):
            return value.copy()
        if not isinstance(value, pb.Tensor):
            return value
        copy = pb.asarray(changes.get(key, array(value)))
        if track and value.requires_grad:
            leaves[key] = copy.requires_grad_(True)
            return copy.clone() if case.name.endswith("_") else copy
        return copy

    args = [copied(i, value) for i, value in enumerate(args)]
    result = case.op()(*args, **{key: copied(key, value) for key, value in kwargs.items()})
    return [out for out in tensors(result) if array(out).dtype.kind in "fc"], leaves


def dot(left, right):
    return sum(float(np.sum(np.conj(a) * b).real) for a, b in zip(left, right, strict=True))


def normal(rng, like):
    imaginary = 1j * rng.normal(size=like.shape) if like.dtype.kind == "c" else 0
    return np.asarray(rng.normal(size=like.shape) + imaginary, like.dtype)


def slope(case, given, key, seeds, direction, h=1e-5):
    """Difference quotient; where forward takes symmetric matrices only, along a symmetric one."""
    args, kwargs = given
    x = array(args[key] if isinstance(key, int) else kwargs[key])
    try:
        ends = [run(case, given, {key: x + s * h * direction}, False)[0] for s in (1, -1)]
    except ValueError:
        direction = direction + direction.T
        ends = [run(case, given, {key: x + s * h * direction}, False)[0] for s in (1, -1)]
    change = [(array(a) - array(b)) / (2 * h) for a, b in zip(*ends, strict=True)]
    return dot(seeds, change), direction


def worst_error(case, given, seed=0):
    """Return the largest relative error along two random directions for each argument."""
    rng = np.random.default_rng(seed)
    given = given(rng)
    outputs, leaves = run(case, given, {}, True)
    seeds = [normal(rng, array(out)) for out in outputs]
    tracked = [
        (out, pb.tensor(s)) for out, s in zip(outputs, seeds, strict=True) if needs_grad(out)
    ]
    tops, weights = zip(*tracked, strict=True)
    grads = pb.autograd.grad(tops, list(leaves.values()), weights, allow_unused=True)
    worst = 0.0
    for (key, leaf), grad in zip(leaves.items(), grads, strict=True):
        for _ in range(2):
            expected, direction = slope(case, given, key, seeds, normal(rng, array(leaf)))
            got = 0.0 if grad is None else dot([array(grad)], [direction])
            scale = max(abs(got), abs(expected), 1e-4)
            error = abs(got - expected) / scale
            worst = max(worst, error if np.isfinite(error) else np.inf)
    return worst


@pytest.mark.parametrize(
    "case",
    [case for case in WRONG if not case.where.startswith(ELSEWHERE)],
    ids=lambda case: case.name,
)
def test_a_mistake_shows_where_the_entry_says_so(case):
    assert worst_error(case, case.shows or case.given) > 1e-3


@pytest.mark.parametrize(
    "case",
    [case for case in WRONG if case.shows and not case.where.startswith(ELSEWHERE)],
    ids=lambda case: case.name,
)
def test_a_subtle_mistake_does_not_show_at_the_inputs_given(case):
    assert worst_error(case, case.given) < 1e-4


@pytest.mark.parametrize(
    "case", [case for case in RIGHT if case.name not in NOT_HERE], ids=lambda case: case.name
)
def test_a_right_entry_is_right(case):
    assert max(worst_error(case, case.given, seed) for seed in range(3)) < 1e-4
