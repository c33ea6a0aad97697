"""What the entries say of themselves, against central differences of forward.

This is no checker: it knows of each entry where to look.
"""

import numpy as np
import pytest

import pullback as pb

from . import RIGHT, WRONG
from .test_cases import needs_grad, tensors

pytestmark = pytest.mark.stress  # of what judges the checker, not of the package

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


def elsewhere(kind):
    cases = [case for case in WRONG if case.where.startswith(kind)]
    assert cases
    return pytest.mark.parametrize("case", cases, ids=lambda case: case.name)


def gradients(outputs, leaves, **options):
    seeds = [pb.asarray(np.linspace(1, 2, array(o).size).reshape(o.shape)) for o in outputs]
    seeds = [seed.to(out.dtype) for seed, out in zip(seeds, outputs, strict=True)]
    return pb.autograd.grad(outputs, list(leaves.values()), seeds, allow_unused=True, **options)


@elsewhere("second use")
def test_a_stale_value_shows_when_the_operation_is_used_twice_before_backward(case):
    op = case.op()
    inputs = [case.given(np.random.default_rng(seed))[0] for seed in (0, 1)]
    outputs = [op(*args) for args in inputs]
    worst = 0.0
    for args, output in zip(inputs, outputs, strict=True):
        leaves = dict(enumerate(args))
        got = gradients([output], leaves)
        expected = gradients([case.op()(*args)], leaves)
        worst = max(
            worst, *(np.abs(array(a - b)).max() for a, b in zip(got, expected, strict=True))
        )
    assert worst > 1e-3


@elsewhere("input changed")
def test_a_change_of_the_callers_arrays_shows_after_backward(case):
    args, _ = case.given(np.random.default_rng(0))
    before = [array(value) for value in args]
    gradients([case.op()(*args)], dict(enumerate(args)))
    assert any(
        np.abs(array(value) - old).max() > 1e-3 for value, old in zip(args, before, strict=True)
    )


@elsewhere("float32")
def test_a_loss_of_precision_shows_beside_the_gradient_in_float64(case):
    args, _ = (case.shows or case.given)(np.random.default_rng(0))
    both = []
    for dtype in (np.float32, np.float64):
        leaves = {
            i: pb.tensor(array(v).astype(dtype), requires_grad=True) for i, v in enumerate(args)
        }
        both.append(gradients([case.op()(*leaves.values())], leaves))
    pairs = [(array(a), array(b)) for a, b in zip(*both, strict=True)]
    assert max(np.abs(a - b).max() / np.abs(b).max() for a, b in pairs) > 1e-3


@elsewhere("second derivative")
def test_a_wrong_second_derivative_shows_beside_differences_of_the_first(case):
    def total(args, create_graph=False):
        leaves = dict(enumerate(args))
        grads = gradients([case.op()(*args)], leaves, create_graph=create_graph)
        # a gradient may have lost its graph altogether, hence the inputs
        kept = zip(grads, leaves.values(), strict=True)
        return sum((grad * grad + 0 * leaf).sum() for grad, leaf in kept)

    args, _ = case.given(np.random.default_rng(0))
    second = pb.autograd.grad(total(args, create_graph=True), list(args), allow_unused=True)
    rng, worst = np.random.default_rng(1), 0.0
    for i, value in enumerate(args):
        direction = rng.normal(size=value.shape)
        ends = []
        for h in (1e-5, -1e-5):
            moved = pb.tensor(array(value) + h * direction, requires_grad=True)
            ends.append(total([*args[:i], moved, *args[i + 1 :]]).item())
        expected = (ends[0] - ends[1]) / 2e-5
        got = 0.0 if second[i] is None else float((array(second[i]) * direction).sum())
        worst = max(worst, abs(got - expected) / max(abs(expected), 1e-4))
    assert worst > 1e-3
