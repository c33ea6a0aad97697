"""
Survival times, some of them censored
=====================================

A study ends before all its patients have relapsed, or a test bench stops before all bearings have
failed. Of those one knows only that their time is longer than the observation: they are censored.
Leaving them out would make life look too short. The likelihood of a Weibull model counts both.
"""

# %%
# The operation
# -------------
#
# The hazard of a Weibull distribution is ``k / s (t / s)^(k - 1)`` with the shape k and the scale
# s, and the probability to survive t is ``exp(-(t / s)^k)``. An event contributes the logarithms of
# both, a censored time the second alone (J. P. Klein and M. L. Moeschberger, *Survival Analysis*,
# 2003, on censored samples). With ``z = log(t / s)``, ``r = exp(k z)`` and d = 1 for an event,
# the log likelihood of one time is ``d (log(k) - log(s) + (k - 1) z) - r``. Its derivative by k is
# ``d / k + (d - r) z``, and that by s is ``-k (d - r) / s``.

import matplotlib.pyplot as plt
import numpy as np

import pullback as pb


@pb.autograd_function
def weibull(ctx, shape, scale, time, event):
    ctx.save_for_backward(shape=shape, scale=scale, time=time, event=event)
    z = pb.log(time / scale)
    return event * (pb.log(shape / scale) + (shape - 1) * z) - pb.exp(shape * z)


@weibull.backward
def _(ctx, grad_output):
    k, s, time, event = ctx.saved_variables
    z = pb.log(time / s)
    excess = event - pb.exp(k * z)
    return {
        "shape": pb.sum_to_size(grad_output * (event / k + excess * z), k.shape),
        "scale": pb.sum_to_size(-grad_output * k * excess / s, s.shape),
        "time": grad_output * (k * excess - event) / time,
    }


# %%
# ``shape`` and ``scale`` are one number for all times, or one for each: their gradients are summed
# to the shape of the argument. ``event`` is given and has no gradient.

event = np.array([True, False, True, True])
times = np.array([0.8, 1.7, 2.4, 0.5])
report = pb.check.check_op(weibull, np.array(1.4), np.array(2.2), times, event)
print(report)

# %%
# The data
# --------
#
# 120 times of a Weibull distribution with the shape 1.6 and the scale 10 in each of two groups, the
# second of which lives 1.5 times as long. All are observed from some date until the end of the
# study, so about half of the times are censored.

rng = np.random.default_rng(3)
group = np.repeat([0, 1], 120)
life = 10.0 * 1.5**group * rng.weibull(1.6, 240)
observed = rng.uniform(4.0, 20.0, 240)
time, event = np.minimum(life, observed), life <= observed
print(f"{event.sum()} events, {(~event).sum()} censored times")

# %%
# The fit
# -------
#
# The scale of a patient is ``exp(b0 + b1 group)``, which is the accelerated failure time model. The
# rule is written with operations on tensors, so it can be differentiated again, and trust-exact is
# given the Hessian.


def loss(p):
    return -np.sum(weibull(np.exp(p[0]), np.exp(p[1] + p[2] * group), time, event))


result = pb.optimize.minimize(loss, np.array([0.0, 2.0, 0.0]), method="trust-exact")
print(f"shape {np.exp(result.x[0]):.2f}, scale {np.exp(result.x[1]):.2f}")

# %%
# The inverse of the Hessian at the maximum is the covariance of the estimates:

errors = np.sqrt(np.diag(np.linalg.inv(pb.hessian(loss)(result.x))))
low, factor, high = np.exp(result.x[2] + np.array([-1.96, 0.0, 1.96]) * errors[2])
print(f"the second group lives {factor:.2f} times as long (95 %: {low:.2f} to {high:.2f})")

# %%
# Without the censored times, both groups would seem to live shorter than they do:

alone = np.mean(time[event & (group == 0)])
mean = np.exp(result.x[1]) * pb.exp(pb.special.gammaln(pb.tensor(1 + np.exp(-result.x[0])))).item()
print(f"mean of the first group: {alone:.1f} from the events alone, {mean:.1f} from the model")

# %%
# The steps are the estimate of Kaplan and Meier, which assumes no distribution.

figure, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
t = np.linspace(0.0, 20.0, 100)
for member, color in [(0, "C0"), (1, "C1")]:
    order = np.argsort(time[group == member])
    events = event[group == member][order]
    left = np.arange(len(order), 0, -1)
    survival = np.cumprod(1 - events / left)
    ax.step(time[group == member][order], survival, color, where="post", alpha=0.5)
    scale = np.exp(result.x[1] + result.x[2] * member)
    ax.plot(t, np.exp(-((t / scale) ** np.exp(result.x[0]))), color, label=f"group {member + 1}")
ax.set(xlabel="time", ylabel="part that survives", ylim=(0, 1))
ax.legend()
ax.grid(alpha=0.3)
