"""
A kernel in C: spikes from a calcium trace
==========================================

A microscope sees a neuron glow after each of its spikes: the signal rises at once and decays
slowly. The model is a recursion, each value needs the one before, so NumPy has no function for it
and a loop in Python is slow. The loop is written in C, and so is its gradient. (SciPy's ``lfilter``
has this recursion, but not the next one that a model needs.)
"""

# %%
# The kernel
# ----------
#
# Forward is ``y[t] = decay y[t - 1] + x[t]``. In backward the gradient h of y flows the other way
# through time: ``h[t] = g[t] + decay h[t + 1]``, where g arrives from outside. It is the gradient
# of x, and that of ``decay`` is the sum of ``h[t] y[t - 1]``. That is the adjoint of a recursive
# filter, the same filter run backwards (for instance J. T. Vogelstein et al., *Fast nonnegative
# deconvolution for spike train inference from population calcium imaging*, 2010,
# doi:10.1152/jn.01073.2009, for the model).

import ctypes
import shutil
import subprocess
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import pullback as pb

SOURCE = """
void leaky(long n, double decay, const double *x, double *y) {
    double state = 0.0;
    for (long t = 0; t < n; t++) y[t] = state = decay * state + x[t];
}
double leaky_back(long n, double decay, const double *y, const double *g, double *h) {
    double state = 0.0, sum = 0.0;
    for (long t = n - 1; t >= 0; t--) {
        h[t] = state = g[t] + decay * state;
        if (t > 0) sum += state * y[t - 1];
    }
    return sum;
}
"""


# %%
# The compiler is looked for when the program runs. Where there is none, the same loops in Python
# take its place.


def load_kernel(source):
    """Return the library of a program in C, None where it cannot be compiled."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        return None
    command = [compiler, "-O2", "-shared", "-fPIC", "-o", "kernel.so", "kernel.c"]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        Path(folder, "kernel.c").write_text(source)
        if subprocess.run(command, cwd=folder, capture_output=True, check=False).returncode:
            return None
        library = ctypes.CDLL(str(Path(folder, "kernel.so")))
    array = np.ctypeslib.ndpointer(np.float64, flags="C_CONTIGUOUS")
    library.leaky.argtypes = [ctypes.c_long, ctypes.c_double, array, array]
    library.leaky.restype = None
    library.leaky_back.argtypes = [ctypes.c_long, ctypes.c_double, array, array, array]
    library.leaky_back.restype = ctypes.c_double
    return library


library = load_kernel(SOURCE)


def filter_forward(decay, x):
    y = np.empty_like(x)
    if library is not None:
        library.leaky(len(x), decay, x, y)
        return y
    state = 0.0
    for t, value in enumerate(x):
        y[t] = state = decay * state + value
    return y


def filter_backward(decay, y, g):
    h = np.empty_like(y)
    if library is not None:
        return h, library.leaky_back(len(y), decay, y, g, h)
    h = filter_forward(decay, g[::-1])[::-1]
    return h, h[1:] @ y[:-1]


# %%
# The operation
# -------------
#
# C reads memory as it lies: one double after the other. With ``order="C"``, ``np.asarray`` copies
# an array that is strided or has another dtype, and leaves others alone. The checker tries such
# arrays.


@pb.autograd_function
def leaky(ctx, x, decay):
    double = np.asarray(x, dtype=np.float64, order="C")
    y = filter_forward(float(decay), double)
    ctx.save_for_backward(y=y, decay=float(decay), dtype=x.dtype)
    return pb.asarray(y).to(x.dtype)


@leaky.backward
@pb.once_differentiable
def _(ctx, grad_output):
    y, decay, dtype = ctx.saved_variables
    g = np.asarray(grad_output.numpy(), dtype=np.float64, order="C")
    h, grad_decay = filter_backward(decay, y, g)
    return {"x": pb.asarray(h).to(dtype), "decay": grad_decay}


report = pb.check.check_op(leaky, np.array([0.5, -1.0, 2.0, 0.3, 0.0, 1.0]), np.array(0.8))
print(report)

# %%
# Spikes
# ------
#
# 600 frames with about twenty spikes, a decay of 0.95 and noise. Spikes are not negative, and most
# frames have none: the sum of all is the penalty. Spikes and decay are fitted together, by L-BFGS-B
# with bounds.

rng = np.random.default_rng(0)
frames = 600
spikes = (rng.random(frames) < 0.04) * rng.uniform(0.7, 1.3, frames)
observed = filter_forward(0.95, spikes) + 0.12 * rng.standard_normal(frames)


def loss(p):
    fit = leaky(p["x"], p["decay"])
    return np.sum((fit - observed) ** 2) / 2 + 0.15 * np.sum(p["x"])


start = {"x": np.zeros(frames), "decay": np.array(0.8)}
result = pb.optimize.minimize(
    loss,
    start,
    method="L-BFGS-B",
    bounds={"x": (0.0, None), "decay": (0.5, 0.999)},
    options={"maxiter": 300},
)
print(f"decay: {float(result.x['decay']):.3f}, at the start {float(start['decay'])}")
estimate = result.x["x"]
print(f"sum of the spikes: {estimate.sum():.1f}, drawn {spikes.sum():.1f}")

figure, axes = plt.subplots(2, 1, figsize=(7, 4), sharex=True, layout="constrained")
axes[0].plot(observed, "0.7", label="observed")
axes[0].plot(filter_forward(float(result.x["decay"]), estimate), "C0", label="fitted")
axes[0].legend(loc="upper right")
axes[1].vlines(np.flatnonzero(spikes), 0, spikes[spikes > 0], "k", alpha=0.4, linewidth=4)
axes[1].vlines(np.arange(frames), 0, estimate, "C1")
axes[1].set(xlabel="frame", ylabel="spikes")
axes[0].grid(alpha=0.3)
axes[1].grid(alpha=0.3)
