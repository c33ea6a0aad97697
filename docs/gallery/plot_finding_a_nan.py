"""
Find where a NaN comes from
===========================

A layout of points is fitted to a table of distances. The loss is a plain number, its gradient is
NaN. Two tools find out why: ``pb.inspect.record`` shows which steps it passed, and
``pb.detect_anomaly`` stops where it was made.
"""

# %%
# The operation
# -------------
#
# The distance of two points has the gradient ``(x - y) / |x - y|``, the unit vector between them.
# It says nothing for a point and itself: there the quotient is 0 / 0. NumPy would warn of it; as in
# much real code the warning is off.

import warnings

import matplotlib.pyplot as plt
import numpy as np

import pullback as pb


@pb.autograd_function
def distance(ctx, x, y):
    d = ((x - y) ** 2).sum(dim=-1).sqrt()
    ctx.save_for_backward(x=x, y=y, d=d)
    return d


@distance.backward
def _(ctx, grad_output):
    x, y, d = ctx.saved_variables
    with np.errstate(invalid="ignore"):
        unit = (x - y) / d.unsqueeze(-1)
    grad = grad_output.unsqueeze(-1) * unit
    return {"x": pb.sum_to_size(grad, x.shape), "y": pb.sum_to_size(-grad, y.shape)}


# %%
# For points that differ the rule is right, so this check passes:

apart = (
    np.array([[0.0, 0.0], [1.0, 2.0], [-1.5, 0.5]]),
    np.array([[1.0, 0.2], [0.3, 0.4], [2.0, 1.0]]),
)
print(pb.check.check_op(distance, *apart).outcome)

# %%
# The program
# -----------
#
# The table has the distances of eight places. All pairs of points are compared with it, each point
# with itself among them.

rng = np.random.default_rng(0)
places = rng.uniform(-1.0, 1.0, (8, 2))
table = pb.asarray(np.linalg.norm(places[:, None] - places, axis=-1))


def stress(points):
    computed = distance(points[:, None], points[None])
    return ((computed - table) ** 2).mean()


points = pb.tensor(rng.standard_normal((8, 2)), requires_grad=True)
loss = stress(points)
loss.backward()
print(f"loss {loss.item():.3f}, gradient with {np.isnan(points.grad.numpy()).sum()} NaN of 16")

# %%
# What was recorded
# -----------------
#
# Within ``record`` each node of the graph notes the norm of the gradient that arrived, and how many
# of its results are NaN. No result is. The gradient is a number down to ``distance`` and NaN below:
# its rule has made it. ``pb.inspect.graph(loss).show()`` opens the same as a page, with a lens for
# faults.

with pb.inspect.record():
    loss = stress(points)
    loss.backward()
nodes = pb.inspect.graph(loss).nodes
for node in reversed(nodes):
    print(f"{node.name:18} gradient {node.grad_norm:<8.4f} NaN in the result: {node.nan_count}")

# %%
# Where it is made
# ----------------
#
# ``detect_anomaly`` checks every result and every gradient, and raises at the first NaN that was
# made from finite numbers. The error says which operation, which argument, and where in its array.
# The mode warns that it is slow, which is not news here.

try:
    with warnings.catch_warnings(action="ignore"), pb.detect_anomaly():
        stress(points).backward()
except pb.errors.AnomalyError as error:
    anomaly = error
print("phase:    ", anomaly.phase)
print("operation:", anomaly.operation)
print("argument: ", anomaly.argument)
print("index:    ", anomaly.index)
print("line:     ", anomaly.line.splitlines()[1].strip())

# %%
# The rule, mended
# ----------------
#
# Any vector no longer than one is a subgradient of the distance where it is zero: its product with
# a difference is at most the length of that (for subgradients see S. Boyd, J. Duchi, M. Pilanci and
# L. Vandenberghe, *Subgradients*, lecture notes, 2022). Zero is the one that leaves both points
# where they are. ``where`` has to choose the divisor: chosen after the division, NaN times zero
# stays NaN.


@distance.backward
def _(ctx, grad_output):
    x, y, d = ctx.saved_variables
    safe = pb.where(d > 0, d, 1.0)
    grad = (grad_output / safe).unsqueeze(-1) * (x - y)
    return {"x": pb.sum_to_size(grad, x.shape), "y": pb.sum_to_size(-grad, y.shape)}


report = pb.check.check_op(distance, *apart)
print(report.outcome)

# %%
# Now the fit works, and the layout is that of the places, up to a rotation and a reflection.

result = pb.optimize.minimize(stress, points.detach())
print(f"loss after {result.nit} steps: {result.fun:.1e}")

layout = result.x.numpy() - result.x.numpy().mean(axis=0)
centred = places - places.mean(axis=0)
u, _, v = np.linalg.svd(layout.T @ centred)
aligned = layout @ u @ v
print(f"largest error of a place: {abs(aligned - centred).max():.1e}")

figure, axes = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
names = [node.name.removesuffix("Backward") for node in reversed(nodes)]
norms = np.array([node.grad_norm for node in reversed(nodes)])
colors = np.where(np.isnan(norms), "C3", "C0")
axes[0].barh(names, np.nan_to_num(norms, nan=np.nanmax(norms)), color=colors)
axes[0].set(xlabel="norm of the gradient that arrived (red: NaN)")
axes[0].invert_yaxis()
axes[1].plot(*centred.T, "ko", fillstyle="none", markersize=10, label="places")
axes[1].plot(*aligned.T, "C0.", label="layout")
axes[1].legend()
axes[1].grid(alpha=0.3)
