"""Reference values of the element-wise functions, by NumPy or by plain formulas."""

import math

import numpy as np

# Under NumPy's own name.
REFERENCES = {
    name: getattr(np, name)
    for name in (
        *("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "copysign", "cosh"),
        *("deg2rad", "exp2", "fmod", "heaviside", "hypot", "log10", "log2", "logaddexp"),
        *("nan_to_num", "nextafter", "rad2deg", "signbit", "sinh"),
    )
}

REFERENCES |= {
    "frac": lambda x: np.modf(x)[0],
    "rsqrt": lambda x: x**-0.5,
    "xlogy": lambda x, y: np.log(y**x),
    "xlog1py": lambda x, y: np.log((1 + y) ** x),
    "lerp": lambda start, end, weight: (1 - weight) * start + weight * end,
}


# -- activations ----------------------------------------------------------------------------------
def _gelu(x, approximate="none"):
    if approximate == "none":
        return x * np.vectorize(math.erfc, otypes=["float64"])(-x / np.sqrt(2)) / 2
    return x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def _softplus(x, beta=1.0, threshold=20.0):
    return np.where(beta * x > threshold, x, np.log(1 + np.exp(beta * x)) / beta)


REFERENCES |= {
    "logsigmoid": lambda x: -np.log(1 + np.exp(-x)),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "softplus": _softplus,
    "gelu": _gelu,
    "elu": lambda x, alpha=1.0: np.where(x > 0, x, alpha * (np.exp(x) - 1)),
    "leaky_relu": lambda x, negative_slope=0.01: np.where(x > 0, x, negative_slope * x),
    "hardtanh": lambda x, min_val=-1.0, max_val=1.0: np.clip(x, min_val, max_val),
    "relu6": lambda x: np.clip(x, 0, 6),
}

RESULTS = {"signbit": "bool"}
