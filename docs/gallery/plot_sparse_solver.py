"""
A sparse solver and its adjoint
===============================

Wind carries a pollutant over a square field, and it spreads on the way. The concentration ``c``
solves a sparse linear system ``A c = s`` with the sources ``s``, and a sensor reads ``c`` in one
cell. Which cells does the sensor hear of? One backward pass says so for all of them.
"""

# %%
# The operation
# -------------
#
# SuperLU, through SciPy, factors the matrix and solves. The matrix is passed as the vector of its
# values that are not zero; where they stand is fixed. For a loss with the gradient ``g`` with
# respect to ``c``, let ``w`` solve the system with the transposed matrix, ``A.T w = g``. Then the
# gradient of ``s`` is ``w``, and that of the value in row i and column j is ``-w[i] c[j]`` (M. B.
# Giles, *Collected matrix derivative results for forward and reverse mode algorithmic
# differentiation*, 2008). ``w`` is the adjoint state. It costs one more
# solve with the factors that forward has computed.

import matplotlib.pyplot as plt
import numpy as np
from scipy.sparse import csc_array
from scipy.sparse.linalg import splu

import pullback as pb


def sparse_solver(rows, columns, size):
    """Return the operation that solves with a matrix of this pattern."""

    @pb.autograd_function
    def solve(ctx, values, s):
        matrix = csc_array((values.numpy(), (rows, columns)), shape=(size, size))
        factors = splu(matrix)
        c = pb.asarray(factors.solve(s.numpy()))
        ctx.save_for_backward(factors=factors, c=c)
        return c

    @solve.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        saved = ctx.saved_variables
        w = pb.asarray(saved.factors.solve(grad_output.numpy(), trans="T"))
        return {"values": -w[rows] * saved.c[columns], "s": w}

    return solve


# %%
# A solve without ``trans="T"`` would pass for symmetric matrices only. The checker compares the
# rule with finite differences for a matrix that is not symmetric:

ring = np.arange(5)
small = sparse_solver(np.r_[ring, ring], np.r_[ring, (ring + 1) % 5], 5)
report = pb.check.check_op(small, np.r_[3.0:8.0, -1.0:4.0] / 4, np.array([1.0, -2, 0.5, 3, 1]))
print(report)

# %%
# Wind and diffusion
# ------------------
#
# On a grid of n by n cells, each cell exchanges with its four neighbours at the rate ``spread``.
# The wind adds an exchange from the cell upwind (first order, so the matrix stays an M-matrix).
# What leaves the field is lost. The values are written with tensors, so that the wind can be
# differentiated, too.

n = 40
cells = np.arange(n * n).reshape(n, n)
pairs = [
    (cells[:, 1:], cells[:, :-1], (1, 0)),  # a cell, its neighbour, the wind between them
    (cells[:, :-1], cells[:, 1:], (-1, 0)),
    (cells[1:], cells[:-1], (0, 1)),
    (cells[:-1], cells[1:], (0, -1)),
]
rows = np.concatenate([cells.ravel(), *(cell.ravel() for cell, _, _ in pairs)])
columns = np.concatenate([cells.ravel(), *(neighbour.ravel() for _, neighbour, _ in pairs)])
solve = sparse_solver(rows, columns, n * n)


def transport(wind, spread=1.0):
    """Return the values of the matrix: the loss of each cell, then what its neighbours give."""
    rates = [spread + pb.relu(wind[0] * x + wind[1] * y) for _, _, (x, y) in pairs]
    decay = 0.002
    loss = (sum(rates) + decay) * pb.ones(n * n, dtype=pb.float64)
    gains = [
        -rate * pb.ones(cell.size, dtype=pb.float64)
        for rate, (cell, _, _) in zip(rates, pairs, strict=True)
    ]
    return pb.cat([loss, *gains])


# %%
# One source, one sensor, one backward
# ------------------------------------
#
# The reading is one number, so one backward pass gives its gradient with respect to the sources in
# all 1600 cells, and to both components of the wind.

wind = pb.tensor([0.9, 0.35], dtype=pb.float64, requires_grad=True)
sources = pb.zeros(n * n, dtype=pb.float64)
sources[cells[12, 6]] = 1.0
sources.requires_grad_()
sensor = cells[24, 32]

c = solve(transport(wind), sources)
c[sensor].backward()
print(f"reading: {c[sensor].item():.5f}")
print(f"its gradient by the wind: {wind.grad.numpy().round(5)}")

# %%
# The system is linear in the sources. So the reading is the sum of all sources, each times its
# gradient: the gradient is the map of what the sensor hears of.

total = (sources.grad * sources.detach()).sum().item()
print(f"sum of sources times gradient: {total:.5f}")

figure, axes = plt.subplots(1, 2, figsize=(7.2, 3.4), layout="constrained")
maps = {"concentration of one source": c.detach(), "sensitivity of one sensor": sources.grad}
for ax, (title, field) in zip(axes, maps.items(), strict=True):
    picture = ax.contourf(field.numpy().reshape(n, n) ** 0.3, 14, cmap="viridis")
    ax.plot(6, 12, "r^", label="source")
    ax.plot(32, 24, "ws", label="sensor")
    ax.set(title=title, aspect="equal", xticks=[], yticks=[])
    ax.legend(loc="upper left", fontsize="small")
