"""
A network with an operation of your own
=======================================

Every operation of an autograd library is two functions. *Forward* computes the result from the
inputs. *Backward* receives the gradient of some number, the loss, with respect to that result, and
computes the gradient of the same number with respect to each input. Here we write such a pair, the
rectifier ``max(x, 0)``, and train a network of two layers with it.
"""

# %%
# The operation
# -------------
#
# ``ctx`` is the context: forward saves in it, by name, what backward will need. Backward returns
# the gradients by the names of forward's arguments.

import matplotlib.pyplot as plt

import pullback as pb


@pb.autograd_function
def my_relu(ctx, input):
    ctx.save_for_backward(input=input)
    return input.clamp(min=0)


@my_relu.backward
def _(ctx, grad_output):
    grad_input = grad_output.clone()
    grad_input[ctx.saved_variables.input < 0] = 0
    return {"input": grad_input}


# %%
# A formula that is wrong would train all the same, only worse. So we let the checker compare it
# with differences of forward before we use it:

print(pb.check.check_op(my_relu))

# %%
# Data and weights
# ----------------
#
# 64 samples with 1000 inputs and 10 outputs, at random, and 100 hidden units. Gradients are
# computed for what is created with ``requires_grad=True``: the weights.

pb.manual_seed(0)
x, y = pb.randn(64, 1000), pb.randn(64, 10)
w1 = pb.randn(1000, 100, requires_grad=True)
w2 = pb.randn(100, 10, requires_grad=True)

# %%
# Training
# --------
#
# ``backward`` leaves the gradients in ``w1.grad`` and ``w2.grad``, and would add to what is there:
# they are set to ``None`` after each step. The step itself is not part of what is differentiated,
# hence ``no_grad``. Methods that end in ``_`` work in place.

learning_rate = 1e-6
losses = []
for step in range(1, 501):
    loss = (my_relu(x.mm(w1)).mm(w2) - y).pow(2).sum()
    losses.append(loss.item())
    if step == 1 or step % 100 == 0:
        print(f"step {step}: {losses[-1]:.6g}")
    loss.backward()
    with pb.no_grad():
        for w in (w1, w2):
            w.sub_(learning_rate * w.grad)
            w.grad = None

# %%
# The loss falls by eleven orders of magnitude: 64 samples are few for 101,000 weights.

figure, axes = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
axes.semilogy(losses)
axes.set(xlabel="step", ylabel="sum of squared errors")
axes.grid(alpha=0.3)

# %%
# What was recorded
# -----------------
#
# A loss knows the operations that it was computed with: ``grad_fn`` is the node of the last one,
# and ``next_functions`` are those of its inputs, with ``None`` for an input without a gradient.
# Backward visits them in this order. Our operation is one of them.

loss = (my_relu(x.mm(w1)).mm(w2) - y).pow(2).sum()


def show(node, depth=0):
    print("  " * depth + node.name())
    for following, _ in node.next_functions:
        if following is not None:
            show(following, depth + 1)


show(loss.grad_fn)

# %%
# In this program the weights and the step are written out. With ``pb.nn`` and ``pb.optim`` they
# need not be: see :doc:`/examples/two_layer_net_nn`.
