"""The likelihood of censored gamma and beta variables, and its derivatives (autograd-gamma)."""

import autograd.numpy as np
from autograd import hessian, value_and_grad
from autograd_gamma import betainc, gammaincc, gammainccln, gammaincln, gammaln

TIMES = np.linspace(0.2, 4.0, 60)
ENDS = TIMES[::7]


def cost(x):
    a, rate = np.exp(x[0]), np.exp(x[1])
    density = a * np.log(rate) + (a - 1) * np.log(TIMES) - rate * TIMES - gammaln(a)
    censored = gammainccln(a, rate * ENDS) + np.log(gammaincc(a, rate * ENDS))
    share = np.log(betainc(a, rate, ENDS / 5)) + gammaincln(a, rate * ENDS)
    return -np.sum(density) - np.sum(censored) - np.sum(share)


def run():
    x = np.array([0.3, -0.2])
    return *value_and_grad(cost)(x), hessian(cost)(x)
