"""What the tests of anomaly mode share: entering it quietly, and programs that fail under it."""

import threading
import warnings

import numpy as np
import pytest

import pullback as pb
from pullback.errors import GradientError

NAN, INF = float("nan"), float("inf")


def tensor(data, dtype="float64"):
    return pb.tensor(data, dtype=dtype)


def leaf(data, dtype="float64"):
    return pb.tensor(data, dtype=dtype, requires_grad=True)


def detecting(**options):
    """Return the mode without the warning of entering it."""
    with warnings.catch_warnings(action="ignore"):
        return pb.detect_anomaly(**options)


def error_of(program, *args, **options):
    """Return the error that a program raises under the mode."""
    with (
        warnings.catch_warnings(action="ignore"),
        pytest.raises(GradientError) as caught,
        detecting(**options),
    ):
        program(*args)
    return caught.value


def passes(program, *args, **options):
    """Return what a program gives under the mode: every warning would be an error."""
    with detecting(**options):
        return program(*args)


def elsewhere(program):
    """Return what a program gives in a thread of its own, which has the default mode."""
    found = []

    def run():
        with np.errstate(all="ignore"):
            found.append(program())

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return found[0]


def is_detecting():
    """Return whether an operation that makes a NaN is refused here and now."""
    try:
        pb.tensor(-1.0).log()
    except GradientError:
        return True
    return False


class Divides(pb.Function):
    """x, with a backward that divides by zero; `masked` takes the result away again."""

    @staticmethod
    def forward(ctx, x, masked):
        ctx.masked = masked
        ctx.save_for_backward(x=x)
        return x * 1.0

    @staticmethod
    def backward(ctx, grad_output):
        nothing = grad_output - grad_output
        scaled = nothing / nothing
        if ctx.masked:
            scaled = pb.where(scaled.isnan(), grad_output, scaled)
        return scaled, None


def to_nan(grad):
    return grad * NAN


def hook_on_a_result(x):
    y = x * 2.0
    y.register_hook(to_nan)
    y.sum().backward()
