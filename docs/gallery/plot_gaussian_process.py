"""
Fit a Gaussian process
======================

A Gaussian process predicts a smooth function from noisy samples of it, and says how far it can be
trusted. How smooth the function is, how large and how noisy, is found by maximising the likelihood
of the samples. It is computed by LAPACK in one operation, with a gradient of its own.
"""

# %%
# The operation
# -------------
#
# The logarithm of the marginal likelihood of samples ``y`` with the covariance matrix ``K`` is
# ``-y @ inv(K) @ y / 2 - log(det(K)) / 2 - n log(2 pi) / 2``. Its gradient with respect to ``K`` is
# ``(outer(a, a) - inv(K)) / 2`` with ``a = inv(K) @ y``, and ``-a`` with respect to ``y`` (C. E.
# Rasmussen and C. K. I. Williams, *Gaussian Processes for Machine Learning*, 2006, on the
# marginal likelihood). One Cholesky factor serves both passes.

import matplotlib.pyplot as plt
import numpy as np
from scipy.linalg import cho_factor, cho_solve

import pullback as pb


@pb.autograd_function
def log_likelihood(ctx, covariance, y):
    covariance, y = np.asarray(covariance), np.asarray(y)  # arrays arrive as they were given
    factor = cho_factor(covariance, lower=True)
    a = cho_solve(factor, y)
    ctx.save_for_backward(factor=factor, a=pb.asarray(a))
    log_det = 2 * np.log(np.diag(factor[0])).sum()
    return pb.asarray(-0.5 * (y @ a + log_det + len(a) * np.log(2 * np.pi)))


@log_likelihood.backward
@pb.once_differentiable
def _(ctx, grad_output):
    factor, a = ctx.saved_variables.factor, ctx.saved_variables.a
    inverse = pb.asarray(cho_solve(factor, np.eye(len(a))))
    return {
        "covariance": grad_output * 0.5 * (a[:, None] * a - inverse),
        "y": -grad_output * a,
    }


# %%
# The factor reads one triangle of ``covariance`` only. The checker sees that the matrix is
# symmetric and keeps it so when it moves it.

example = np.array([[2.0, 0.5, 0.1], [0.5, 1.5, 0.3], [0.1, 0.3, 1.0]])
report = pb.check.check_op(log_likelihood, example, np.array([0.3, -1.0, 0.7]))
print(report)

# %%
# The model
# ---------
#
# The covariance of two values is ``size² exp(-(distance / length)² / 2)``, and each sample has
# noise of its own. All three hyperparameters are positive, so their logarithms are searched for.
# The function is written in NumPy: ``minimize`` calls it with tensors that have NumPy's methods.

rng = np.random.default_rng(1)
x = np.sort(rng.uniform(0.0, 10.0, 40))
y = np.sin(1.3 * x) + 0.5 * np.cos(0.4 * x) + 0.15 * rng.standard_normal(40)


def covariance(p, x1, x2):
    distance = (x1[:, None] - x2) / np.exp(p["length"])
    return np.exp(2 * p["size"]) * np.exp(-0.5 * distance**2)


def loss(p):
    return -log_likelihood(covariance(p, x, x) + np.exp(2 * p["noise"]) * np.eye(len(x)), y)


start = {"length": 1.5, "size": -1.0, "noise": 0.0}
result = pb.optimize.minimize(loss, start)
for name, value in result.x.items():
    print(f"{name}: {np.exp(start[name]):.3f} at the start, {np.exp(value):.3f} fitted")
print(f"log likelihood: {-loss(start):.2f} at the start, {-result.fun:.2f} fitted")

# %%
# The noise of the samples was drawn with a standard deviation of 0.15. At the maximum the gradient
# vanishes:

print(f"largest gradient: {max(abs(g) for g in result.jac.values()):.1e}")

# %%
# The prediction
# --------------
#
# The mean at new points is ``K* inv(K) y`` (the same book, on prediction); the band is two
# standard deviations of the function wide on each side.


def predict(p, at):
    cross = covariance(p, at, x)
    factor = cho_factor(covariance(p, x, x) + np.exp(2 * p["noise"]) * np.eye(len(x)))
    variance = np.exp(2 * p["size"]) - (cross * cho_solve(factor, cross.T).T).sum(axis=1)
    return cross @ cho_solve(factor, y), np.sqrt(variance)


at = np.linspace(-0.5, 11.5, 200)
figure, axes = plt.subplots(1, 2, figsize=(8, 3.2), sharey=True, layout="constrained")
for ax, p, title in [(axes[0], start, "at the start"), (axes[1], result.x, "fitted")]:
    mean, deviation = predict(p, at)
    ax.fill_between(at, mean - 2 * deviation, mean + 2 * deviation, alpha=0.25)
    ax.plot(at, mean)
    ax.plot(x, y, "k.", markersize=4)
    ax.set(title=title, xlabel="x")
    ax.grid(alpha=0.3)
