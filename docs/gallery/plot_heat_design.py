"""
Inverse design: where to put the metal
======================================

A chip heats a square plate evenly, and a cold spot in the middle of its left side takes the heat
away. There is metal for a third of the plate. Where does it have to be, so that the plate stays as
cool as it can? The answer looks like a tree.
"""

# %%
# The operation
# -------------
#
# The temperature T of n by n cells solves ``K T = q``. Between two neighbours flows ``k (T1 -
# T2)``, with the harmonic mean k of their conductivities. With the incidence matrix B, that has a
# row for each pair of neighbours, ``K = B.T diag(k) B`` and the cold spot on the diagonal. For a
# gradient g of the temperatures, backward solves ``K w = g`` with the factors of forward: K is
# symmetric. The gradient of k is ``-(B w) (B T)``, one number for each pair (M. P. Bendsøe and O.
# Sigmund, *Topology Optimization: Theory, Methods and Applications*, Springer, 2003, on minimum
# compliance, for forces instead of heat).

import matplotlib.pyplot as plt
import numpy as np
from scipy.sparse import csr_array, diags_array
from scipy.sparse.linalg import splu

import pullback as pb


def incidence(n):
    """Return B: the neighbours in each row, then those in each column."""
    cells = np.arange(n * n).reshape(n, n)
    first = np.r_[cells[:, :-1].ravel(), cells[:-1].ravel()]
    second = np.r_[cells[:, 1:].ravel(), cells[1:].ravel()]
    pairs = np.arange(len(first))
    values = np.r_[np.ones(len(first)), -np.ones(len(first))]
    rows, columns = np.r_[pairs, pairs], np.r_[first, second]
    return csr_array((values, (rows, columns)), shape=(len(first), n * n))


def plate(n):
    """Return the operation that computes the temperatures, and the pairs of neighbours."""
    b = incidence(n)
    sink = np.zeros((n, n))
    sink[n // 2 - 1 : n // 2 + 1, 0] = 10.0
    heat = np.ones(n * n) / n**2

    @pb.autograd_function
    def temperature(ctx, k):
        factors = splu((b.T @ diags_array(k.numpy()) @ b + diags_array(sink.ravel())).tocsc())
        result = factors.solve(heat)
        ctx.save_for_backward(factors=factors, drops=b @ result)
        return pb.asarray(result)

    @temperature.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        w = ctx.saved_variables.factors.solve(grad_output.numpy())
        return {"k": pb.asarray(-(b @ w) * ctx.saved_variables.drops)}

    return temperature


report = pb.check.check_op(plate(3), np.linspace(0.5, 2.0, 12))
print(report)

# %%
# The design
# ----------
#
# Each cell has a density of metal between 0 and 1. Its conductivity is ``0.01 + density³``: between
# 0 and 1 a cell costs more than it conducts, so the design becomes black and white. The objective
# is the mean temperature. All but the solve is written with NumPy, and differentiated by the
# library.

n, share = 32, 0.33
temperature = plate(n)


def conductances(density):
    k = 0.01 + 0.99 * density**3
    right = 2 * k[:, 1:] * k[:, :-1] / (k[:, 1:] + k[:, :-1])
    down = 2 * k[1:] * k[:-1] / (k[1:] + k[:-1])
    return np.concatenate([right.ravel(), down.ravel()])


def mean_temperature(density):
    return np.mean(temperature(conductances(density)))


# %%
# The optimality criterion of the same book moves each density by the square root of its gain, and a
# bisection finds the price of metal at which the share is kept. The gain is averaged over
# neighbours first, or the metal would form a chequerboard.


def smoothed_gain(gain, density):
    weighted = np.pad(gain * density, 1)
    around = weighted[:-2, 1:-1] + weighted[2:, 1:-1] + weighted[1:-1, :-2] + weighted[1:-1, 2:]
    inner = np.pad(np.ones_like(gain), 1)
    count = inner[:-2, 1:-1] + inner[2:, 1:-1] + inner[1:-1, :-2] + inner[1:-1, 2:]
    return (2 * gain * density + around) / ((2 + count) * np.maximum(density, 1e-3))


def updated_density(density, gain):
    low, high = 1e-9, 1e9
    while high / low > 1 + 1e-6:
        price = np.sqrt(low * high)
        step = np.clip(density * np.sqrt(gain / price), density - 0.1, density + 0.1)
        result = np.clip(step, 0.0, 1.0)
        low, high = (price, high) if result.mean() > share else (low, price)
    return result


density = np.full((n, n), share)
history = []
for _ in range(60):
    value, gradient = pb.value_and_grad(mean_temperature)(density)
    history.append(value)
    density = updated_density(density, smoothed_gain(np.maximum(-gradient, 0.0), density))
print(f"mean temperature: {history[0]:.3f} for an even plate, {history[-1]:.3f} for the design")
print(f"share of metal: {density.mean():.3f}")

figure, axes = plt.subplots(1, 3, figsize=(9, 2.9), layout="constrained")
axes[0].imshow(density, cmap="gray_r", vmin=0, vmax=1)
axes[0].set(title="metal", xticks=[], yticks=[])
heat_map = np.asarray(temperature(pb.asarray(conductances(density)))).reshape(n, n)
axes[1].imshow(heat_map, cmap="inferno")
axes[1].set(title="temperature", xticks=[], yticks=[])
axes[2].semilogy(history)
axes[2].set(xlabel="step", ylabel="mean temperature")
axes[2].grid(alpha=0.3, which="both")
