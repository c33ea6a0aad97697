"""
Halve the memory of a deep network
==================================

Backward needs values that forward computed, so the graph keeps them. For a deep network they are
most of its memory. Two ways to keep less: an operation that saves only what its rule needs, and
``pb.checkpoint``, which computes values again. ``pb.inspect.graph`` counts the bytes.
"""

# %%
# The operation
# -------------
#
# Swish is ``x sigmoid(x)`` (P. Ramachandran, B. Zoph and Q. V. Le, *Searching for activation
# functions*, 2017). Written as a product of two recorded operations, it keeps x and the sigmoid.
# Its derivative is ``s + x s (1 - s)`` with the sigmoid s, which x alone is enough for: one more
# sigmoid in backward saves one array per layer.

import matplotlib.pyplot as plt
import numpy as np

import pullback as pb


def composed(x):
    return x * x.sigmoid()


@pb.autograd_function
def swish(ctx, x):
    ctx.save_for_backward(x=x)
    return x * x.sigmoid()


@swish.backward
def _(ctx, grad_output):
    x = ctx.saved_variables.x
    s = x.sigmoid()
    return {"x": grad_output * (s + x * s * (1 - s))}


report = pb.check.check_op(swish, np.linspace(-3.0, 3.0, 8))
print(report)

# %%
# The network
# -----------
#
# 24 layers of 64 units, on 512 samples. ``bytes_alone`` is what only the graph holds: the weights
# are not counted, since they live without it.

pb.manual_seed(0)
depth, width = 24, 64
weights = [pb.randn(width, width) * (1.5 / width**0.5) for _ in range(depth)]
for weight in weights:
    weight.requires_grad_()
x = pb.randn(512, width)


def segment(x, first, last, activation):
    for weight in weights[first:last]:
        x = activation(x @ weight)
    return x


def network_loss(activation):
    return segment(x, 0, depth, activation).square().mean()


def bytes_held(loss):
    return pb.inspect.graph(loss).bytes_alone


before = bytes_held(network_loss(composed))
own = bytes_held(network_loss(swish))
print(f"composed: {before / 2**20:.2f} MiB")
print(f"swish of our own: {own / 2**20:.2f} MiB, {before / own:.2f} times less")

# %%
# Checkpoints
# -----------
#
# A segment in ``pb.checkpoint`` keeps its input only. In backward it runs once more, recorded, so
# the whole costs one more forward. Meanwhile the values of that one segment are there as well. With
# n layers and k segments the peak is about k inputs and n / k layers: least near the square root of
# n (T. Chen, B. Xu, C. Zhang and C. Guestrin, *Training deep nets with sublinear memory cost*,
# 2016).


def checkpoint_loss(segments):
    result, layers = x, depth // segments
    for first in range(0, depth, layers):
        result = pb.checkpoint(segment)(result, first, first + layers, swish)
    return result.square().mean()


counts = [1, 2, 3, 4, 6, 8, 12, 24]
graph_bytes = np.array([bytes_held(checkpoint_loss(k)) for k in counts])
segment_bytes = np.array([bytes_held(segment(x, 0, depth // k, swish).sum()) for k in counts])
for k, graph, part in zip(counts, graph_bytes, segment_bytes, strict=True):
    peak = (graph + part) / 2**20
    print(f"{k:2} segments: {graph / 2**20:.2f} MiB kept, {peak:.2f} MiB in backward")
in_backward = graph_bytes + segment_bytes
best = counts[int(np.argmin(in_backward))]
print(f"least with {best} segments: {before / in_backward.min():.1f} times less than composed")

# %%
# The gradients are the same numbers:

expected = pb.autograd.grad(network_loss(swish), weights)
gradients = pb.autograd.grad(checkpoint_loss(best), weights)
print("equal:", all((a == b).all().item() for a, b in zip(expected, gradients, strict=True)))

figure, ax = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
labels = [str(k) for k in counts]
ax.bar(labels, graph_bytes / 2**20, label="kept by the graph")
ax.bar(labels, segment_bytes / 2**20, bottom=graph_bytes / 2**20, label="the segment in backward")
ax.axhline(before / 2**20, color="C3", linestyle="--", label="composed, no checkpoints")
ax.axhline(own / 2**20, color="C2", linestyle="--", label="swish of our own, no checkpoints")
ax.set(xlabel="segments", ylabel="MiB")
ax.set_ylim(0, before / 2**20 * 1.45)
ax.legend(ncols=2, fontsize="small")
ax.grid(alpha=0.3, axis="y")
