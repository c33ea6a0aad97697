"""
Wave inversion: velocities from a trace
=======================================

A source sends a pulse into the ground, and a receiver records what comes. Where the velocity of the
waves changes, a part is reflected. Full waveform inversion changes a model of the velocities until
the computed trace is the recorded one. Its gradient is a second wave, which runs backwards in time.
"""

# %%
# The operation
# -------------
#
# The pressure u in one dimension obeys ``u'' = v² (d²u/dx² + source)``. With the squared number of
# cells that a wave passes in a time step, ``m = (v dt / dx)²``, one step is
#
# ``u[t + 1] = 2 u[t] - u[t - 1] + m (D u[t] + s[t])``
#
# where D is the second difference. Backward goes through the steps in reverse order. It carries the
# gradients of two successive fields, and adds ``gradient * (D u[t] + s[t])`` to that of m: this is
# the correlation of the wave with the adjoint wave (R.-E. Plessix, *A review of the adjoint-state
# method for computing the gradient of a functional with geophysical applications*, 2006,
# doi:10.1111/j.1365-246X.2006.02978.x). It is the exact gradient of the numbers that forward
# computes, since each step is transposed.

import matplotlib.pyplot as plt
import numpy as np

import pullback as pb


def second_difference(u):
    """Return D u, with u = 0 beyond both ends; D is symmetric."""
    result = -2 * u
    result[1:] += u[:-1]
    result[:-1] += u[1:]
    return result


@pb.autograd_function
def wave(ctx, m, pulse, source, receiver):
    m, pulse = np.asarray(m), np.asarray(pulse)
    last, now = np.zeros_like(m), np.zeros_like(m)
    forces, trace = np.empty((len(pulse), len(m)), m.dtype), np.empty(len(pulse), m.dtype)
    for t, value in enumerate(pulse):
        forces[t] = second_difference(now)
        forces[t, source] += value
        last, now = now, 2 * now - last + m * forces[t]
        trace[t] = now[receiver]
    ctx.save_for_backward(m=m, forces=forces, source=source, receiver=receiver)
    return pb.asarray(trace)


@wave.backward
@pb.once_differentiable
def _(ctx, grad_output):
    m, forces, source, receiver = ctx.saved_variables
    g = grad_output.numpy()
    grad_m, grad_pulse = np.zeros_like(m), np.zeros_like(g)
    grad_last, grad_now = np.zeros_like(m), np.zeros_like(m)
    for t in reversed(range(len(g))):
        grad_now[receiver] += g[t]
        grad_m += grad_now * forces[t]
        force = m * grad_now
        grad_pulse[t] = force[source]
        grad_last, grad_now = -grad_now, grad_last + 2 * grad_now + second_difference(force)
    return {"m": pb.asarray(grad_m), "pulse": pb.asarray(grad_pulse)}


m = np.array([0.2, 0.3, 0.25, 0.4, 0.5])
report = pb.check.check_op(wave, m, np.array([1.0, 0.5, -0.3, 0.2, 0.1, 0.4]), 1, 3)
print(report)

# %%
# The experiment
# --------------
#
# A ground of 80 cells: velocity 1 above, a fast layer of 1.3, then 1.1. Source and receiver stand
# near the top; the ends reflect. The recorded trace is computed here, with a little noise.

cells, steps, dt = 80, 300, 0.55
depth = np.arange(cells)
velocity = np.where(depth < 30, 1.0, np.where(depth < 50, 1.3, 1.1))
time = np.arange(steps)
arg = (np.pi * (time - 25) / 20) ** 2
pulse = (1 - 2 * arg) * np.exp(-arg)  # the wavelet of Ricker
source, receiver = 4, 8


def trace(velocity):
    return wave((dt * velocity) ** 2, pulse, source, receiver)


rng = np.random.default_rng(0)
recorded = np.asarray(trace(velocity))
recorded = recorded + 0.01 * recorded.std() * rng.standard_normal(steps)

# %%
# The inversion
# -------------
#
# The search begins with the velocity 1.1 everywhere. A small penalty on jumps chooses among the
# models that explain the trace equally well. Bounds keep the steps stable: a wave may not pass more
# than one cell in a step (the condition of Courant, Friedrichs and Lewy).


def loss(v):
    jumps = np.sum(np.sqrt((v[1:] - v[:-1]) ** 2 + 1e-4))
    return np.sum((trace(v) - recorded) ** 2) + 0.3 * jumps


start = np.full(cells, 1.1)
values = []
result = pb.optimize.minimize(
    loss,
    start,
    bounds=[(0.7, 1.7)] * cells,
    method="L-BFGS-B",
    callback=lambda intermediate_result: values.append(intermediate_result.fun),
    options={"maxiter": 150},
)
print(f"loss: {loss(start):.2f} at the start, {result.fun:.2f} after {result.nit} steps")
errors = [np.median(abs(v - velocity)) for v in (start, result.x)]
print(f"median error of the velocity: {errors[0]:.3f} at the start, {errors[1]:.3f} found")

# %%
# Each gradient took two waves, for all 80 velocities. Differences would take 81.

figure, axes = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
axes[0].plot(recorded, "k", linewidth=2.5, alpha=0.4, label="recorded")
axes[0].plot(np.asarray(trace(start)), "C1--", linewidth=1, label="start")
axes[0].plot(np.asarray(trace(result.x)), "C0", linewidth=1, label="found")
axes[0].set(xlabel="time step", ylabel="pressure")
axes[1].step(depth, velocity, "k", linewidth=2.5, alpha=0.4)
axes[1].step(depth, start, "C1--")
axes[1].step(depth, result.x, "C0")
axes[1].set(xlabel="depth in cells", ylabel="velocity")
axes[0].legend()
axes[0].grid(alpha=0.3)
axes[1].grid(alpha=0.3)
