"""Every function of NumPy's with a counterpart: its values are NumPy's, its gradients are right.

The same program runs on arrays and on tensors; gradients are compared with central differences of
NumPy's own function.
"""

import numpy as np
import pytest
from tests.numpy_protocol._calls import CALLS, INTEGERS, METHODS, UFUNCS

import pullback as pb

CASES = [
    pytest.param(call, id=f"{name}-{i}")
    for every in (CALLS, UFUNCS, INTEGERS, METHODS)
    for name, calls in every.items()
    for i, call in enumerate(calls)
]
STEP = 1e-6


def samples(call):
    """Return the arrays of a call: distinct numbers, the same ones in every run."""
    rng = np.random.default_rng(7)
    arrays = [rng.uniform(call.low, call.high, shape) for shape in call.shapes]
    if call.kind == "c":
        arrays = [x + 1j * rng.uniform(call.low, call.high, x.shape) for x in arrays]
    return arrays


def parts(result):
    """Return the results of a call one after the other."""
    return list(result) if isinstance(result, (tuple, list)) else [result]


def host(value):
    return np.asarray(value.detach().numpy() if isinstance(value, pb.Tensor) else value)


def seeds(results):
    """Return weights that make a number of several results."""
    rng = np.random.default_rng(8)
    return [rng.uniform(1, 2, np.shape(r)) for r in results]


def loss(call, arrays):
    """Return the weighted sum of NumPy's results, real and imaginary parts apart."""
    results = [np.asarray(r) for r in parts(call.run(*arrays))]
    return sum(
        np.sum(w * (np.real(r) + 0.5 * np.imag(r)))
        for w, r in zip(seeds(results), results, strict=True)
        if r.dtype.kind in "fc"
    )


def slopes(call, arrays, i):
    """Return the derivatives of the loss in array `i`, d/dx + i d/dy for complex ones."""
    found = np.zeros_like(arrays[i])
    steps = (STEP, 1j * STEP) if call.kind == "c" else (STEP,)
    for place in np.ndindex(found.shape):
        for step in steps:
            sides = []
            for h in (step, -step):
                moved = [x.copy() for x in arrays]
                moved[i][place] += h
                sides.append(loss(call, moved))
            found[place] += (sides[0] - sides[1]) / (2 * STEP) * (step / STEP)
    return found


@pytest.mark.parametrize("call", CASES)
def test_the_value_is_numpys(call):
    arrays = samples(call)
    expected = parts(call.run(*arrays))
    results = parts(call.run(*map(pb.asarray, arrays)))
    for ours, theirs in zip(results, expected, strict=True):
        if isinstance(theirs, np.ndarray):
            assert isinstance(ours, pb.Tensor)
        assert host(ours).dtype == np.asarray(theirs).dtype
        np.testing.assert_allclose(host(ours), theirs, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("call", CASES)
def test_the_gradient_is_that_of_differences(call):
    arrays = samples(call)
    leaves = [pb.tensor(x, requires_grad=True) for x in arrays]
    results = [r for r in parts(call.run(*leaves)) if isinstance(r, pb.Tensor)]
    smooth = [r for r in results if r.dtype.is_inexact]
    total = pb.tensor(0.0, dtype=pb.float64)
    for weight, r in zip(seeds(smooth), smooth, strict=True):
        imaginary = 0.5 * pb.imag(r) if r.is_complex() else 0.0
        total = (
            total + (pb.asarray(weight) * ((pb.real(r) if r.is_complex() else r) + imaginary)).sum()
        )
    expected = [slopes(call, arrays, i) for i in range(len(arrays))]
    if not total.requires_grad:
        assert not any(np.any(e) for e in expected)
        return
    found = pb.autograd.grad(total, leaves, allow_unused=True)
    for ours, theirs in zip(found, expected, strict=True):
        if ours is None:
            assert not np.any(theirs)
        else:
            np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("call", CASES)
def test_the_tangent_is_that_of_differences(call):
    arrays = samples(call)
    rng = np.random.default_rng(9)
    directions = [rng.uniform(-1, 1, x.shape).astype(x.dtype) for x in arrays]
    if call.kind == "c":
        directions = [v + 1j * rng.uniform(-1, 1, v.shape) for v in directions]

    def smooth(*xs):
        found = [pb.asarray(r) for r in parts(call.run(*xs)) if not isinstance(r, (int, tuple))]
        return [r for r in found if r.dtype.is_inexact]

    if not smooth(*arrays):
        return
    _, tangents = pb.jvp(smooth, tuple(arrays), tuple(directions))
    for k, tangent in enumerate(tangents):
        ends = [
            host(smooth(*[x + h * v for x, v in zip(arrays, directions, strict=True)])[k])
            for h in (STEP, -STEP)
        ]
        expected = (ends[0] - ends[1]) / (2 * STEP)
        np.testing.assert_allclose(tangent, expected, rtol=1e-5, atol=1e-7)
