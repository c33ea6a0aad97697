"""Reference values of the special functions, by plain formulas; SciPy's where there is none."""

import functools
import math
import statistics

import numpy as np

NORMAL = statistics.NormalDist()


def of_numbers(function):
    """Return a function of numbers as one of arrays."""
    return np.vectorize(function, otypes=["float64"])


def _gammainc(a, x):
    """Return the incomplete gamma function by its power series."""
    terms = [x**k / math.gamma(a + k + 1) for k in range(60)]
    return x**a * math.exp(-x) * math.fsum(terms)


def _zeta(s, q):
    """Return Hurwitz's zeta function by the sum of Euler and Maclaurin."""
    end = q + 20
    head = math.fsum((q + k) ** -s for k in range(20))
    tail = end ** (1 - s) / (s - 1) + end**-s / 2 + s * end ** (-s - 1) / 12
    tail -= s * (s + 1) * (s + 2) * end ** (-s - 3) / 720
    return head + tail + s * (s + 1) * (s + 2) * (s + 3) * (s + 4) * end ** (-s - 5) / 30240


def _bessel(order, x, sign=1):
    """Return a Bessel function of the first kind by its power series, modified with sign 1."""
    terms = (
        sign**k * (x / 2) ** (2 * k + order) / (math.factorial(k) * math.gamma(k + order + 1))
        for k in range(30)
    )
    return math.fsum(terms)


def _logit(x, eps=0.0):
    limited = np.clip(x, eps, 1 - eps)
    return np.log(limited / (1 - limited))


REFERENCES = {
    "erfinv": of_numbers(lambda x: NORMAL.inv_cdf((x + 1) / 2) / math.sqrt(2)),
    "ndtri": of_numbers(NORMAL.inv_cdf),
    "gammainc": of_numbers(_gammainc),
    "gammaincc": of_numbers(lambda a, x: 1 - _gammainc(a, x)),
    "zeta": of_numbers(_zeta),
    "i0": of_numbers(functools.partial(_bessel, 0)),
    "i0e": of_numbers(lambda x: math.exp(-abs(x)) * _bessel(0, x)),
    "i1": of_numbers(functools.partial(_bessel, 1)),
    "i1e": of_numbers(lambda x: math.exp(-abs(x)) * _bessel(1, x)),
    "j0": of_numbers(lambda x: _bessel(0, x, -1)),
    "j1": of_numbers(lambda x: _bessel(1, x, -1)),
    "jv": of_numbers(lambda v, x: _bessel(v, x, -1)),
    "iv": of_numbers(_bessel),
    "ive": of_numbers(lambda v, x: math.exp(-abs(x)) * _bessel(v, x)),
    "logit": _logit,
}
