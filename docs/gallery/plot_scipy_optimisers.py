"""
SciPy's optimisers on a cluster of atoms
========================================

Seven atoms attract and repel each other by the potential of Lennard-Jones, and settle where their
energy is lowest. ``pb.optimize.minimize`` is SciPy's, and fills in the derivatives that a method
wants: gradient, Hessian, or products of the Hessian and a vector. Which method takes how many
steps?
"""

# %%
# The operation
# -------------
#
# With ``s = 1 / distance²``, a pair of atoms has the energy ``4 (s⁶ - s³)`` (J. E. Jones, *On the
# determination of molecular fields, II*, 1924; the powers are those that he took in 1931, as
# J. E. Lennard-Jones). Its force is along the line between the two, so the gradient of a position
# is a sum over the other atoms of ``-8 (6 s⁷ - 3 s⁴)`` times the difference of the positions. The
# identity that is added sets s = 1 for an atom and itself, where the energy is zero and so is the
# difference.

import matplotlib.pyplot as plt
import numpy as np

import pullback as pb


def differences(x):
    """Return the differences of all pairs, and s."""
    d = x[:, None] - x[None]
    return d, 1 / ((d * d).sum(dim=-1) + pb.eye(len(x), dtype=x.dtype))


@pb.autograd_function
def energy(ctx, positions):
    ctx.save_for_backward(positions=positions)
    _, s = differences(positions)
    return 2 * (s**6 - s**3).sum()  # each pair is counted twice


@energy.backward
def _(ctx, grad_output):
    d, s = differences(ctx.saved_variables.positions)
    force = -8 * (6 * s**7 - 3 * s**4)
    return {"positions": grad_output * (force.unsqueeze(-1) * d).sum(dim=1)}


triangle = np.array([[0.0, 0.0, 0.1], [1.2, 0.1, 0.0], [0.5, 1.1, -0.2]])
report = pb.check.check_op(energy, triangle)
print(report)

# %%
# The methods
# -----------
#
# The rule is written with operations on tensors, so it has derivatives itself: products of the
# Hessian and a vector, and the whole Hessian, are computed from it. All methods begin at the same
# disturbed arrangement, two atoms above and below a ring of five. The global minimum of seven atoms
# is known: -16.505384 (D. J. Wales and J. P. K. Doye, *Global optimization by basin-hopping and the
# lowest energy structures of Lennard-Jones clusters containing up to 110 atoms*, 1997).

rng = np.random.default_rng(2)
ring = 2 * np.pi * np.arange(5) / 5
start = np.vstack([np.c_[np.cos(ring), np.sin(ring), 0 * ring], [[0, 0, 0.6], [0, 0, -0.6]]])
start += 0.12 * rng.standard_normal(start.shape)
lowest = -16.505384

energies, results = {}, {}
print(f"{'method':12} steps  calls  energy")
for method in ("CG", "BFGS", "L-BFGS-B", "Newton-CG", "trust-krylov", "trust-exact"):
    path = [energy(pb.asarray(start)).item()]
    result = pb.optimize.minimize(
        energy,
        pb.asarray(start),
        method=method,
        tol=1e-8,
        callback=lambda x, path=path: path.append(energy(x).item()),
    )
    energies[method], results[method] = np.array(path), result
    print(f"{method:12} {result.nit:5}  {result.nfev:5}  {result.fun:.6f}")

# %%
# Near the minimum the gap to the lowest energy shrinks by a factor with each step of the methods
# that use the gradient alone, and is squared by those that know the Hessian. The Hessian of a
# cluster has six eigenvalues of zero: shifts and rotations of the whole change nothing.

hessian = pb.hessian(energy)(results["trust-exact"].x).numpy().reshape(21, 21)
eigenvalues = np.linalg.eigvalsh(hessian)
print(f"six of {len(eigenvalues)} eigenvalues are below {abs(eigenvalues[:6]).max():.0e}")
print(f"the next one is {eigenvalues[6]:.1f}")

figure = plt.figure(figsize=(8, 3.4), layout="constrained")
ax = figure.add_subplot(1, 2, 1)
for method, path in energies.items():
    ax.semilogy(np.maximum(path - energies["trust-exact"][-1], 1e-14), ".-", label=method)
ax.set(xlabel="step", ylabel="energy above the minimum")
ax.legend(fontsize="small")
ax.grid(alpha=0.3)

atoms = results["trust-exact"].x.numpy()
space = figure.add_subplot(1, 2, 2, projection="3d")
for i, j in zip(*np.triu_indices(7, 1), strict=True):
    if np.linalg.norm(atoms[i] - atoms[j]) < 1.3:
        space.plot(*atoms[[i, j]].T, "0.6")
space.scatter(*atoms.T, s=160, depthshade=False)
space.set_axis_off()
