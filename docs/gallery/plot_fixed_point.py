"""
A fixed point: the magnetisation of a ferromagnet
=================================================

In Weiss's theory each magnetic moment feels a field in proportion to the mean of all. So the mean
appears on both sides of its equation: it is a fixed point. How strongly it answers to a weak field
is its derivative, and needs no record of the iterations.
"""

# %%
# The operation
# -------------
#
# The mean moment in a field, over the temperature, is Langevin's function ``coth(x) - 1 / x``
# (P. Langevin, *Magnétisme et théorie des électrons*, 1905). As it stands it is 0 / 0 at x = 0, and
# loses all digits near it. There the series ``x / 3 - x³ / 45 + ...`` takes its place. Its
# derivative ``1 / x² - 1 / sinh(x)²`` needs one as well. ``where`` selects the *input* of the
# closed form: to select the result alone would leave NaN in the gradient.

import matplotlib.pyplot as plt
import numpy as np

import pullback as pb


@pb.autograd_function
def langevin(ctx, x):
    ctx.save_for_backward(x=x)
    small = pb.abs(x) < 0.1
    safe = pb.where(small, 1.0, x)
    square = x * x
    series = x / 3 - x * square / 45 + 2 * x * square**2 / 945 - x * square**3 / 4725
    return pb.where(small, series, 1 / pb.tanh(safe) - 1 / safe)


@langevin.backward
def _(ctx, grad_output):
    x = ctx.saved_variables.x
    small = pb.abs(x) < 0.1
    safe = pb.where(small, 1.0, pb.abs(x))
    decay = pb.exp(-2 * safe)  # sinh(x) would overflow
    square = x * x
    series = 1 / 3 - square / 15 + 2 * square**2 / 189 - square**3 / 675
    slope = pb.where(small, series, 1 / safe**2 - 4 * decay / (1 - decay) ** 2)
    return {"x": grad_output * slope}


report = pb.check.check_op(langevin, np.array([-3.0, -0.5, -0.01, 0.02, 0.7, 4.0]))
print(report)

# %%
# The fixed point
# ---------------
#
# With the temperature T in units of the Curie temperature, the mean m solves ``m = langevin((h + 3
# m) / T)``. At all temperatures it is found at once. Let F be the right-hand side. By the implicit
# function theorem the derivative of m with respect to h is ``(dF/dh) / (1 - dF/dm)``.
# ``fixed_point`` has it as its gradient rule, whatever the iteration did.

temperatures = np.linspace(0.3, 2.0, 69)


def magnetisation(h, temperature):
    def mean_field(m, h, temperature):
        return langevin((h + 3 * m) / temperature)

    return pb.implicit.fixed_point(
        mean_field, np.ones_like(np.asarray(temperature)), h, temperature, max_iter=5000
    )


m = magnetisation(0.01, temperatures)

# %%
# The susceptibility
# ------------------
#
# It is ``dm/dh``, at each temperature. Here it is the derivative along one direction, h, so forward
# mode gives all of them in one pass:

_, susceptibility = pb.jvp(lambda h: magnetisation(h, temperatures), (0.01,), (1.0,))

# %%
# Above the Curie temperature the law of Curie and Weiss says ``1 / (3 (T - 1))`` for a weak field:

far = temperatures > 1.5
weiss = 1 / (3 * (temperatures[far] - 1))
print(f"largest relative difference: {abs(susceptibility[far] / weiss - 1).max():.1e}")

# %%
# The same derivative from differences of two solutions:

e = 1e-5
differences = (magnetisation(0.01 + e, temperatures) - magnetisation(0.01 - e, temperatures)) / (
    2 * e
)
print(f"largest difference: {abs(susceptibility - differences).max():.1e}")

figure, axes = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
axes[0].plot(temperatures, m)
axes[0].set(xlabel="temperature", ylabel="magnetisation", ylim=(0, 1))
axes[1].semilogy(temperatures, susceptibility, label="derivative of the fixed point")
axes[1].semilogy(temperatures[far], weiss, "k:", linewidth=3, label="Curie and Weiss")
axes[1].set(xlabel="temperature", ylabel="susceptibility")
axes[1].legend()
axes[0].grid(alpha=0.3)
axes[1].grid(alpha=0.3)
