"""Gradients inside of functions that are minimised by gradients: saddle and particle.

The two programs by which nested differentiation is measured, of Siskind and Pearlmutter, "Using
polyvariant union-free flow analysis to compile a higher-order functional-programming
language with a first-class derivative operator to efficient Fortran-like code" (2008).
"""

import numpy as np

import pullback as pb


def number(x):
    return x.item() if isinstance(x, pb.Tensor) else x


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
