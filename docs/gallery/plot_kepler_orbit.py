"""
Aim a spacecraft: an orbit by Runge and Kutta, with checkpoints
===============================================================

A spacecraft leaves the Earth's orbit and has to be at a point of Mars's orbit 0.7 years later. With
which velocity does it have to leave? This is Lambert's problem. Here it is solved by shooting: the
orbit is integrated, and the miss is differentiated with respect to the velocity at the start.
"""

# %%
# The operation
# -------------
#
# The acceleration of gravity at the position r is ``-m r / |r|³`` (C. D. Murray and S. F. Dermott,
# *Solar System Dynamics*, 1999, chapter 2 on the two-body problem). Its Jacobian,
# ``-m (I / |r|³ - 3 r r.T / |r|⁵)``, is symmetric, so backward applies it to the gradient. In
# astronomical units and years the Sun has m = 4 pi².

import math

import matplotlib.pyplot as plt
import numpy as np

import pullback as pb

SUN = 4 * math.pi**2


@pb.autograd_function
def gravity(ctx, position):
    ctx.save_for_backward(position=position)
    distance = (position * position).sum(dim=-1, keepdim=True).sqrt()
    return -SUN * position / distance**3


@gravity.backward
def _(ctx, grad_output):
    r = ctx.saved_variables.position
    distance = (r * r).sum(dim=-1, keepdim=True).sqrt()
    radial = (r * grad_output).sum(dim=-1, keepdim=True)
    return {"position": -SUN * (grad_output / distance**3 - 3 * r * radial / distance**5)}


report = pb.check.check_op(gravity, np.array([[1.0, 0.3], [-0.4, 1.2]]))
print(report)

# %%
# The orbit
# ---------
#
# The state is position and velocity. The classical method of Runge and Kutta takes steps of fourth
# order. A recorded step keeps what its rule needs; 240 of them keep 240 times as much. With
# ``pb.checkpoint`` each leg of 20 steps keeps only its first state, and runs once more in backward.

YEARS, LEGS, STEPS = 0.7, 12, 20
h = YEARS / (LEGS * STEPS)


def derivative(state):
    return pb.cat([state[2:], gravity(state[:2])])


def leg(state):
    for _ in range(STEPS):
        k1 = derivative(state)
        k2 = derivative(state + h / 2 * k1)
        k3 = derivative(state + h / 2 * k2)
        k4 = derivative(state + h * k3)
        state = state + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return state


def orbit(velocity, leg=leg):
    """Return the states after each leg."""
    states = [pb.cat([pb.tensor([1.0, 0.0], dtype=pb.float64), velocity])]
    for _ in range(LEGS):
        states.append(leg(states[-1]))
    return pb.stack(states)


# %%
# The graph with checkpoints holds a fraction of the memory, and the gradient is the same:

velocity = pb.tensor([0.0, 2 * math.pi], dtype=pb.float64, requires_grad=True)
sizes, gradients = [], []
for form in (leg, pb.checkpoint(leg)):
    end = orbit(velocity, form)[-1, :2].sum()
    sizes.append(pb.inspect.graph(end).bytes_alone)
    gradients.append(pb.autograd.grad(end, velocity)[0].numpy())
print(f"held by the graph: {sizes[0]} bytes, with checkpoints {sizes[1]} bytes")
print("difference of the gradients:", abs(gradients[0] - gradients[1]).max())

# %%
# Aiming
# ------
#
# ``root`` solves for the velocity at which the miss is zero. It is given the Jacobian of the miss,
# by one backward pass through the orbit for each coordinate.

target = 1.524 * np.array([math.cos(2.6), math.sin(2.6)])


def miss(velocity):
    return orbit(velocity, pb.checkpoint(leg))[-1, :2] - pb.asarray(target)


start = pb.tensor([0.0, 2 * math.pi], dtype=pb.float64)
result = pb.optimize.root(miss, start)
print(f"velocity: {result.x.numpy().round(4)} in units per year, after {result.nfev} orbits")
print(f"miss: {np.linalg.norm(result.fun.numpy()):.1e}")

# %%
# Energy is conserved along the orbit, to the accuracy of the steps. That tests the forward.

with pb.no_grad():
    states = orbit(result.x).numpy()
energy = (states[:, 2:] ** 2).sum(axis=1) / 2 - SUN / np.linalg.norm(states[:, :2], axis=1)
print(f"relative change of the energy: {abs(energy / energy[0] - 1).max():.1e}")

figure, ax = plt.subplots(figsize=(4.6, 4.4), layout="constrained")
angle = np.linspace(0, 2 * math.pi, 200)
for radius, name in [(1.0, "Earth"), (1.524, "Mars")]:
    ax.plot(radius * np.cos(angle), radius * np.sin(angle), "0.7", linewidth=1)
    ax.annotate(name, (0, -radius), ha="center", va="bottom", color="0.4")
with pb.no_grad():
    first = orbit(start).numpy()
ax.plot(*first[:, :2].T, "C1--", label="first guess")
ax.plot(*states[:, :2].T, "C0.-", label="found")
ax.plot(*target, "kx", label="target")
ax.plot(0, 0, "o", color="gold", markersize=10)
ax.set(aspect="equal", xlabel="astronomical units")
figure.legend(loc="outside upper center", ncols=3)
ax.grid(alpha=0.3)
