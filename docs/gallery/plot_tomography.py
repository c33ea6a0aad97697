"""
Tomography: an image from its projections
=========================================

A scanner measures how much a body absorbs along many rays. The image has to be found whose
projections are these. Projecting is linear, and its gradient rule has a name of its own: back
projection.
"""

# %%
# The operation
# -------------
#
# Each pixel of the image lies under one angle at some offset from the middle of the detector, and
# is shared between the two nearest detector cells. That is a sparse matrix P, and the projections
# are ``P x``. The gradient of a linear map is its transpose: ``P.T g`` spreads each value back
# along its ray (A. C. Kak and M. Slaney, *Principles of Computerized Tomographic Imaging*, 1988,
# on algebraic reconstruction). The rule is not itself written with tensors, but it is linear:
# ``once_differentiable`` says that it is not differentiated again.

import matplotlib.pyplot as plt
import numpy as np
from scipy.sparse import csr_array, vstack

import pullback as pb


def scanner(n, angles):
    """Return the matrix of the projections of an image of n by n pixels."""
    y, x = np.mgrid[:n, :n].reshape(2, -1) - (n - 1) / 2
    parts, pixels = [], np.arange(n * n)
    for angle in angles:
        offset = x * np.cos(angle) + y * np.sin(angle) + n / 2 * 1.5
        cell = np.floor(offset).astype(int)
        weights = np.r_[1 - (offset - cell), offset - cell]
        indices = np.r_[cell, cell + 1], np.r_[pixels, pixels]
        parts.append(csr_array((weights, indices), shape=(int(1.5 * n) + 1, n * n)))
    return vstack(parts).tocsr()


def projection(matrix):
    """Return the operation that projects an image."""

    @pb.autograd_function
    def project(ctx, image):
        ctx.shape = image.shape
        return pb.asarray(matrix @ image.numpy().ravel())

    @project.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        return {"image": pb.asarray((matrix.T @ grad_output.numpy()).reshape(ctx.shape))}

    return project


small = scanner(4, np.linspace(0, np.pi, 3, endpoint=False))
report = pb.check.check_op(projection(small), np.arange(16.0).reshape(4, 4) / 7)
print(report)

# %%
# The measurement
# ---------------
#
# A phantom of ellipses, after Shepp and Logan, under 20 angles and with noise of 2 %. There are
# about as many rays that hit the body as pixels, but neighbouring rays say nearly the same.

n = 40
angles = np.linspace(0, np.pi, 20, endpoint=False)
y, x = (np.mgrid[:n, :n] - (n - 1) / 2) / (n / 2)
phantom = np.zeros((n, n))
for value, cx, cy, a, b in [
    (1.0, 0, 0, 0.72, 0.92),
    (-0.7, 0, 0, 0.63, 0.84),
    (-0.2, 0.25, 0, 0.13, 0.31),
    (-0.2, -0.25, 0, 0.17, 0.38),
    (0.4, 0, -0.4, 0.22, 0.2),
    (0.5, 0.05, 0.55, 0.1, 0.08),
]:
    phantom += value * (((x - cx) / a) ** 2 + ((y - cy) / b) ** 2 <= 1)

matrix = scanner(n, angles)
project = projection(matrix)
rng = np.random.default_rng(0)
exact = matrix @ phantom.ravel()
measured = exact + 0.02 * exact.max() * rng.standard_normal(exact.size)

# %%
# The reconstruction
# ------------------
#
# Least squares alone would fit the noise. The total variation, a sum of the lengths of the image's
# gradient, favours images with few edges; it is smoothed a little, so that it has a derivative
# where the image is flat (L. Rudin, S. Osher and E. Fatemi, *Nonlinear total variation based noise
# removal algorithms*, 1992). Absorption is not negative: L-BFGS-B takes that as a bound.


def variation(image):
    down, right = image[1:, :-1] - image[:-1, :-1], image[:-1, 1:] - image[:-1, :-1]
    return np.sum(np.sqrt(down**2 + right**2 + 1e-4))


def loss(image, weight):
    return np.sum((project(image) - measured) ** 2) / 2 + weight * variation(image)


results = {}
for title, weight in [("least squares", 0.0), ("with total variation", 0.5)]:
    result = pb.optimize.minimize(
        loss,
        np.zeros((n, n)),
        args=(weight,),
        bounds=[(0, None)] * n**2,
        method="L-BFGS-B",
        options={"maxiter": 80},
    )
    results[title] = result.x
    error = np.linalg.norm(result.x - phantom) / np.linalg.norm(phantom)
    print(f"{title}: relative error {error:.3f} after {result.nit} steps")

# %%
# Each step cost one projection and one back projection, whatever the number of pixels.

figure, axes = plt.subplots(1, 4, figsize=(9, 2.7), layout="constrained")
axes[0].imshow(measured.reshape(len(angles), -1), cmap="gray", aspect="auto")
axes[0].set(title="projections", xlabel="detector", ylabel="angle", xticks=[], yticks=[])
for ax, (title, image) in zip(axes[1:], {"phantom": phantom, **results}.items(), strict=True):
    ax.imshow(image, cmap="gray", vmin=0, vmax=1)
    ax.set(title=title)
    ax.set_axis_off()
