"""Reference values of the distribution functions: https://dlmf.nist.gov/8.17, by a power series."""

import math

import numpy as np


def _betainc(a, b, x):
    """Return the incomplete beta function by the hypergeometric series of DLMF 8.17.8."""
    if x > 0.5:  # where the series is slow
        return 1 - _betainc(b, a, 1 - x)
    terms, term = [], 1.0
    for n in range(600):
        terms.append(term)
        term *= (a + b + n) / (a + 1 + n) * x
    complete = math.gamma(a) * math.gamma(b) / math.gamma(a + b)
    return x**a * (1 - x) ** b / (a * complete) * math.fsum(terms)


def _stdtr(df, t):
    tail = _betainc(df / 2, 0.5, df / (df + t * t)) / 2
    return tail if t < 0 else 1 - tail


def _fdtrc(dfn, dfd, x):
    return 1 - _betainc(dfn / 2, dfd / 2, dfn * x / (dfn * x + dfd))


REFERENCES = {
    "betainc": np.vectorize(_betainc, otypes=["float64"]),
    "fdtrc": np.vectorize(_fdtrc, otypes=["float64"]),
    "stdtr": np.vectorize(_stdtr, otypes=["float64"]),
}
