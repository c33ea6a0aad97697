"""The gradient of a field's intensity by the permittivity, through sparse solves (ceviche)."""

import autograd.numpy as np
from autograd import value_and_grad
from ceviche import fdfd_ez, jacobian

N = 40
SOURCE = np.zeros((N, N), dtype=complex)
SOURCE[N // 2, 12] = 1.0
PROBE = np.zeros((N, N))
PROBE[10:15, 28] = 1.0


def intensity(eps):
    field = fdfd_ez(2 * np.pi * 200e12, 5e-8, eps.reshape((N, N)), [8, 8]).solve(SOURCE)[2]
    return np.sum(np.abs(field * PROBE) ** 2) * 1e-3


def run():
    eps = 1.0 + np.linspace(0.0, 3.0, N * N)
    small = jacobian(lambda s: intensity(eps * s), mode="reverse")(np.array([1.0]))
    return *value_and_grad(intensity)(eps), small
