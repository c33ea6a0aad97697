"""Gradients inside of functions that are minimised by gradients: saddle and particle.

The two programs by which nested differentiation is measured, of Siskind and Pearlmutter, "Using
polyvariant union-free flow analysis to compile a higher-order functional-programming
language with a first-class derivative operator to efficient Fortran-like code" (2008).
"""

import numpy as np
import pytest

import pullback as pb


def number(x):
    return x.detach().item() if isinstance(x, pb.Tensor) else x


# -- saddle: the minimum over one pair of numbers of the maximum over another ----------------------
def descend(f, x, steps=60, eta=0.3):
    for _ in range(steps):
        x = x - eta * pb.grad(f)(x)
    return x


def height(a, b):
    return np.sum(a**2) - np.sum(b**2)


def highest(a):
    return height(a, descend(lambda b: -height(a, b), np.array([1.0, 1.0])))


def test_the_saddle_point_of_a_difference_of_squares():
    np.testing.assert_allclose(pb.grad(highest)(np.array([1.0, -2.0])), [2.0, -4.0])
    np.testing.assert_allclose(descend(highest, np.array([1.0, 1.0]), 20), np.zeros(2), atol=1e-6)


# -- particle: where it has to start, so that two charges steer it to the origin -------------------
def missed(w):
    """Return how far from x = 0 a particle hits the ground, squared, by Euler's method."""
    charges, step = [(10.0, 10.0 - w), (10.0, 0.0)], 0.1

    def potential(at):
        return sum(((at[0] - c[0]) ** 2 + (at[1] - c[1]) ** 2) ** -0.5 for c in charges)

    at, velocity = (0.0, 8.0), (0.75, 0.0)
    while True:
        force = [-g for g in pb.grad(potential)(at)]
        following = [a + step * v for a, v in zip(at, velocity, strict=True)]
        if number(following[1]) <= 0.0:
            return (at[0] - at[1] / velocity[1] * velocity[0]) ** 2
        at = tuple(following)
        velocity = [v + step * f for v, f in zip(velocity, force, strict=True)]


def test_the_derivative_through_the_path_of_a_particle():
    step = 1e-5
    wanted = (number(missed(0.1 + step)) - number(missed(0.1 - step))) / (2 * step)
    np.testing.assert_allclose(pb.grad(missed)(0.1), wanted, rtol=1e-6)


def test_the_particle_hits_the_origin_from_where_the_paper_says():
    w = 0.0
    for _ in range(6):
        distance, slope = pb.value_and_grad(missed)(w)
        w = w - 2 * distance / slope
    assert abs(w - 0.20719187464861197) < 2e-5


def test_where_the_particle_has_to_start():
    start = 0.2071918746486116  # what the published program finds
    assert number(missed(start)) < 1e-8
    assert abs(pb.grad(missed)(start)) < 1e-2 < abs(pb.grad(missed)(start + 0.01))


# -- the programs as published, with their minimiser; in all modes, inside and outside -------------
def reverse(f):
    return pb.grad(f)


def forward(f):
    def gradient(x):
        units = [[float(i == j) for j in range(len(x))] for i in range(len(x))]
        return [pb.jvp(f, (x,), (unit,))[1] for unit in units]

    return gradient


def length(v):
    return number(sum(a * a for a in v) ** 0.5)


def argmin(f, x, mode):
    """Descend with steps that grow after ten successes and shrink after a failure."""
    gradient, eta, successes = mode(f), 1e-5, 0
    value, slope = f(x), gradient(x)
    while length(slope) > 1e-5:
        if successes == 10:
            eta, successes = 2 * eta, 0
            continue
        moved = [a - eta * b for a, b in zip(x, slope, strict=True)]
        if length([a - b for a, b in zip(x, moved, strict=True)]) <= 1e-5:
            break
        found = f(moved)
        if number(found) < number(value):
            x, value, slope, successes = moved, found, gradient(moved), successes + 1
        else:
            eta, successes = eta / 2, 0
    return x


def saddle(outer, inner):
    def f(a, b, c, d):
        return (a * a + b * b) - (c * c + d * d)

    def largest(p):
        return argmin(lambda q: -f(*p, *q), [1.0, 1.0], inner)

    p = argmin(lambda p: f(*p, *largest(p)), [1.0, 1.0], outer)
    return [*p, *largest(p)]


@pytest.mark.stress
@pytest.mark.parametrize("inner", [reverse, forward])
@pytest.mark.parametrize("outer", [reverse, forward])
def test_the_published_saddle(outer, inner):
    np.testing.assert_allclose(saddle(outer, inner), [8.246324826140356e-06] * 4, rtol=1e-14)


@pytest.mark.stress
def test_the_published_particle():
    (found,) = argmin(lambda w: missed(w[0]), [0.0], reverse)
    np.testing.assert_allclose(found, 0.2071918746486116, rtol=1e-13)
