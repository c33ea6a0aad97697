"""Survival: partial likelihoods, hazards, censored and truncated lifetimes."""

from __future__ import annotations

import math

import numpy as np

import pullback as pb

from .entries import FACTOR, MAGNITUDE, MISSING, SHIFT, TIES, Book, t

BOOK = Book("survival")


def cox_inputs(times):
    times, event = np.array(times), np.array([1, 0, 1, 1, 0, 1], bool)
    return lambda rng: ((t(rng.normal(size=6)), times, event), {})


@BOOK.wrong(
    cox_inputs([2.0, 3.5, 1.0, 4.0, 2.5, 0.5]),
    "with tied times the gradient takes those before in the order out of the risk set",
    TIES,
    r"risk set",
    where="tied times",
    shows=cox_inputs([2.0, 2.0, 1.0, 1.0, 2.5, 1.0]),
)
def cox_loss():
    @pb.autograd_function
    def cox_loss(ctx, log_hazard, time, event):
        """Breslow's negative log partial likelihood; log_hazard, time, event: (n,)."""
        order = np.argsort(-time, kind="stable")
        eta, e = log_hazard.numpy()[order], event[order]
        risk = np.cumsum(np.exp(eta))
        last = np.searchsorted(-time[order], -time[order], side="right") - 1
        ctx.save_for_backward(eta=eta, e=e, risk=risk, order=order)
        return pb.asarray(np.asarray((e * (np.log(risk[last]) - eta)).sum()))

    @cox_loss.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        share = np.cumsum((s.e / s.risk)[::-1])[::-1]
        grad = np.zeros(len(s.eta))
        grad[s.order] = g.item() * (np.exp(s.eta) * share - s.e)
        return {"log_hazard": pb.asarray(grad)}

    return cox_loss


@BOOK.right(
    lambda rng: (
        (
            t(rng.normal(size=3)),
            rng.normal(size=(8, 3)),
            np.array([2.0, 2.0, 1.0, 1.0, 2.5, 1.0, 2.0, 3.0]),
            np.array([1, 1, 1, 0, 0, 1, 0, 1], bool),
        ),
        {"strata": np.array([0, 0, 0, 0, 1, 1, 0, 1])},
    )
)
def cox_efron():
    def parts(eta, X, time, event):
        """Log-likelihood of one stratum with Efron's treatment of ties, and its gradient."""
        w, loglik, grad = np.exp(eta), 0.0, np.zeros(X.shape[1])
        for moment in np.unique(time[event]):
            risk, dead = time >= moment, event & (time == moment)
            loglik, grad = loglik + eta[dead].sum(), grad + X[dead].sum(axis=0)
            for k in range(dead.sum()):
                weight = w * (risk - k / dead.sum() * dead)
                loglik -= np.log(weight.sum())
                grad = grad - weight @ X / weight.sum()
        return loglik, grad

    @pb.autograd_function
    def cox_efron(ctx, beta, X, time, event, strata=None):
        """Log partial likelihood of beta: (p,) for covariates X: (n, p)."""
        strata = np.zeros(len(X), int) if strata is None else strata
        eta, loglik, score = X @ beta.numpy(), 0.0, np.zeros(X.shape[1])
        for stratum in np.unique(strata):
            of = strata == stratum
            one, grad = parts(eta[of], X[of], time[of], event[of])
            loglik, score = loglik + one, score + grad
        ctx.save_for_backward(score=score)
        return pb.asarray(np.asarray(loglik))

    @cox_efron.backward
    @pb.once_differentiable
    def _(ctx, g):
        return {"beta": pb.asarray(g.item() * ctx.saved_variables.score)}

    return cox_efron


def lifetimes(*observed):
    def given(rng):
        times = 0.5 + 2 * rng.random(len(observed))
        return (t(0.3), t(rng.normal(size=len(observed))), times, np.array(observed, float)), {}

    return given


@BOOK.wrong(
    lifetimes(1, 1, 1, 1, 1),
    "a censored lifetime counts like an event in the gradient of the log-shape",
    r"\bcensor",
    where="censored lifetimes",
    shows=lifetimes(1, 0, 1, 0, 0),
)
def weibull_nll():
    @pb.autograd_function
    def weibull_nll(ctx, log_shape, log_scale, times, event):
        """-log likelihood of Weibull lifetimes; log_shape: (), the others: (n,)."""
        k = np.exp(log_shape.item())
        z = np.log(times) - log_scale.numpy()
        cumulative = np.exp(k * z)
        ctx.save_for_backward(k=k, z=z, cumulative=cumulative, event=event)
        log_hazard = np.log(k) + k * z - np.log(times)
        return pb.asarray(np.asarray((cumulative - event * log_hazard).sum()))

    @weibull_nll.backward
    @pb.once_differentiable
    def _(ctx, g):
        k, z, cumulative, event = ctx.saved_variables
        by_shape = k * z * (cumulative - 1) - 1
        by_scale = k * (event - cumulative)
        return {
            "log_shape": g.item() * by_shape.sum(),
            "log_scale": pb.asarray(g.item() * by_scale),
        }

    return weibull_nll


@BOOK.right(
    lambda rng: (
        (t(-1.0 + 0.1 * rng.normal()), t(0.4)),
        {
            "entry": np.array([0.0, 0.5, 0.2, 0.0, 1.0]),
            "exit": np.array([1.5, 2.0, 0.9, 3.0, 1.2]),
            "event": np.array([1, 0, 1, 1, 0], bool),
        },
    )
)
def gompertz_loglik():
    class Gompertz(pb.Function):
        """Hazard exp(level + slope t), seen from `entry` to `exit`; slope may be 0."""

        @staticmethod
        def cumulated(slope, time):
            """Integral of exp(slope t) from 0 to time, and its derivative by slope."""
            if abs(slope) < 1e-4:
                return (
                    time + slope * time**2 / 2 + slope**2 * time**3 / 6,
                    time**2 / 2 + slope * time**3 / 3 + slope**2 * time**4 / 8,
                )
            value = np.expm1(slope * time) / slope
            return value, (time * np.exp(slope * time) - value) / slope

        @staticmethod
        def forward(ctx, level, slope, entry, exit, event):
            (late, d_late), (early, d_early) = (
                Gompertz.cumulated(slope.item(), moment) for moment in (exit, entry)
            )
            hazard = np.exp(level.item()) * (late - early).sum()
            ctx.by_level = event.sum() - hazard
            ctx.by_slope = exit[event].sum() - np.exp(level.item()) * (d_late - d_early).sum()
            log_rates = level.item() + slope.item() * exit[event]
            return pb.asarray(np.asarray(log_rates.sum() - hazard))

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g):
            return {"level": g * ctx.by_level, "slope": g * ctx.by_slope}

    return Gompertz.apply


def exposures(times, edges):
    """Time that each life spends in each interval: (n, k); the last interval has no end."""
    ends = np.r_[edges[1:], np.inf]
    return np.clip(np.minimum(times[:, None], ends) - edges, 0.0, None)


@BOOK.wrong(
    lambda rng: (
        (t(0.5 * rng.normal(size=3)), 4 * rng.random(6), rng.random(6) < 0.7),
        {"edges": np.array([0.0, 1.0, 2.5])},
    ),
    "the exposure lacks the factor exp(log_rates), the hazard itself",
    FACTOR,
    r"\bexp\b|\bhazard itself",
)
def exponential_pieces():
    @pb.autograd_function
    def exponential_pieces(ctx, log_rates, times, event, edges):
        """Log-likelihood with the hazard exp(log_rates[j]) from edges[j] on."""
        spent = exposures(times, edges)
        died = np.searchsorted(edges, times[event], side="right") - 1
        deaths = np.bincount(died, minlength=len(edges))
        rates = np.exp(log_rates.numpy())
        ctx.save_for_backward(spent=spent, deaths=deaths)
        return pb.asarray(np.asarray(deaths @ log_rates.numpy() - spent.sum(axis=0) @ rates))

    @exponential_pieces.backward
    @pb.once_differentiable
    def _(ctx, g):
        spent, deaths = ctx.saved_variables
        return {"log_rates": pb.asarray(g.item() * (deaths - spent.sum(axis=0)))}

    return exponential_pieces


@BOOK.right(
    lambda rng: ((t(0.5 * rng.normal(size=(2, 4))),), {"edges": np.array([0, 1, 2, 3.5, 5])})
)
def restricted_mean():
    @pb.autograd_function
    def restricted_mean(ctx, log_rates, edges):
        """Mean lifetime up to edges[-1]; log_rates: (b, k), edges: (k + 1,) from 0."""
        rate, width = np.exp(log_rates.numpy()), np.diff(edges)
        passed = np.cumsum(rate * width, axis=1)
        alive = np.exp(-np.c_[np.zeros(len(rate)), passed])
        lived = (alive[:, :-1] - alive[:, 1:]) / rate
        ctx.save_for_backward(rate=rate, width=width, alive=alive, lived=lived)
        return pb.asarray(lived.sum(axis=1))

    @restricted_mean.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        after = s.lived.sum(axis=1, keepdims=True) - np.cumsum(s.lived, axis=1)
        inside = s.alive[:, 1:] * s.width - s.lived
        by_log = inside - after * s.rate * s.width
        return {"log_rates": pb.asarray(g.numpy()[:, None] * by_log)}

    return restricted_mean


def discrete(rng):
    interval, event = np.array([0, 2, 3, 1, 3]), np.array([1, 0, 1, 1, 0])
    return (t(rng.normal(size=(5, 4))), interval, event), {}


@BOOK.wrong(
    discrete,
    "off by one: the last interval that was lived through does not count as exposed",
    SHIFT,
    r"last interval|interval of the event",
)
def interval_hazard_nll():
    @pb.autograd_function
    def interval_hazard_nll(ctx, logits, interval, event):
        """Mean of -log likelihood, one logit of the hazard for each interval: (n, k)."""
        x, steps = logits.numpy(), np.arange(logits.shape[1])
        died = (steps == interval[:, None]) & (event[:, None] == 1)
        exposed = steps <= interval[:, None]
        ctx.save_for_backward(logits=logits, died=died, interval=interval)
        return pb.asarray(np.asarray((exposed * np.logaddexp(0, x) - died * x).sum() / len(x)))

    @interval_hazard_nll.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        x = s.logits.numpy()
        exposed = np.arange(x.shape[1]) < s.interval[:, None]
        return {"logits": pb.asarray(g.item() * (exposed / (1 + np.exp(-x)) - s.died) / len(x))}

    return interval_hazard_nll


@BOOK.right(
    lambda rng: ((t(rng.normal(size=(5, 5))), *discrete(rng)[0][1:]), {"reduction": "mean"})
)
def survival_softmax():
    def forward(ctx, scores, interval, event, reduction="none"):
        """-log likelihood where softmax(scores): (n, k + 1) gives each interval's share.

        The last column stands for those who outlive every interval; a life that is censored in
        interval j counts with all columns after j.
        """
        x = scores.numpy()
        steps = np.arange(x.shape[1])
        here = np.where(event[:, None] == 1, steps == interval[:, None], steps > interval[:, None])
        if not here.any(axis=1).all():
            raise ValueError("survival_softmax: a life is censored in the last column")
        e = np.exp(x - x.max(axis=1, keepdims=True))
        part = np.where(here, e, 0.0)
        losses = np.log(e.sum(axis=1)) - np.log(part.sum(axis=1))
        grad = e / e.sum(axis=1, keepdims=True) - part / part.sum(axis=1, keepdims=True)
        ctx.save_for_backward(grad=grad)
        if reduction == "mean":
            return pb.asarray(np.asarray(losses.mean()))
        return pb.asarray(losses)

    @pb.once_differentiable
    def backward(ctx, g):
        grad = ctx.saved_variables.grad
        weight = g.numpy()[:, None] if g.ndim else g.item() / len(grad)
        return {"scores": pb.asarray(weight * grad)}

    return pb.autograd_function(forward, backward, name="survival_softmax")


@BOOK.wrong(
    lambda rng: (
        (t(rng.normal(size=6)), np.array([3.0, 1.0, 2.0, 5.0, 4.0, 0.5])),
        {"event": np.array([1, 1, 0, 1, 1, 1], bool), "width": 0.5},
    ),
    "the member of a pair that lives longer is left out of the gradient",
    MISSING,
    r"\bpairs?\b|lives longer|\bother (life|member)",
)
def smooth_concordance():
    @pb.autograd_function
    def smooth_concordance(ctx, risk, time, event, width=1.0):
        """Share of comparable pairs in the right order, with a sigmoid in place of a step."""
        pair = event[:, None] & (time[:, None] < time[None])
        right = 1 / (1 + np.exp((risk.numpy()[None] - risk.numpy()[:, None]) / width))
        ctx.slope = pair * right * (1 - right) / (width * pair.sum())
        return pb.asarray(np.asarray((pair * right).sum() / pair.sum()))

    @smooth_concordance.backward
    @pb.once_differentiable
    def _(ctx, g):
        return {"risk": pb.asarray(g.item() * ctx.slope.sum(axis=1))}

    return smooth_concordance


def intervals(*upper):
    def given(rng):
        return (t(rng.normal(size=4)), t(0.2)), {
            "lower": np.array([0.5, 1.0, 2.0, 0.8]),
            "upper": np.array(upper),
        }

    return given


@BOOK.wrong(
    intervals(1.0, 2.5, 3.0, 4.0),
    "at an infinite upper end the density is taken at 0 where it vanishes",
    MAGNITUDE,
    r"infinite|right.censored|open interval",
    where="upper end infinite",
    shows=intervals(1.0, np.inf, 3.0, np.inf),
)
def lognormal_interval_nll():
    def cdf(z):
        return np.array([0.5 * math.erfc(-v / math.sqrt(2)) for v in z])

    def pdf(z):
        return np.exp(-z * z / 2) / math.sqrt(2 * math.pi)

    @pb.autograd_function
    def lognormal_interval_nll(ctx, mu: pb.Tensor, log_sigma: pb.Tensor, lower, upper):
        """-log probability that a log-normal time lies in each interval; mu, lower, upper: (n,)."""
        sigma = np.exp(log_sigma.item())
        z0, z1 = (np.log(lower) - mu.numpy()) / sigma, (np.log(upper) - mu.numpy()) / sigma
        p = cdf(z1) - cdf(z0)
        ctx.save_for_backward(z0=z0, z1=np.where(np.isinf(z1), 0.0, z1), p=p, sigma=sigma)
        return pb.asarray(-np.log(p))

    @lognormal_interval_nll.backward
    @pb.once_differentiable
    def _(ctx, g):
        z0, z1, p, sigma = ctx.saved_variables
        weight = g.numpy() / p
        by_sigma = weight * (pdf(z1) * z1 - pdf(z0) * z0)
        return {
            "mu": pb.asarray(weight * (pdf(z1) - pdf(z0)) / sigma),
            "log_sigma": by_sigma.sum(),
        }

    return lognormal_interval_nll


@BOOK.right(
    lambda rng: (
        (t(0.5 + rng.random(7)),),
        {
            "time": np.array([2.0, 1.0, 2.0, 3.0, 5.0, 1.0, 4.0]),
            "event": np.array([1, 1, 0, 1, 0, 1, 1], bool),
        },
    )
)
def weighted_kaplan_meier():
    @pb.autograd_function
    def weighted_kaplan_meier(ctx, weights, time, event):
        """Survival curve after each time of an event for cases of some weight, and the times."""
        w = weights.numpy()
        moments = np.unique(time[event])
        dead = (time == moments[:, None]) & event
        risk = time >= moments[:, None]
        d, n = dead @ w, risk @ w
        curve = np.cumprod(1 - d / n)
        if curve[-1] <= 0:
            raise ValueError("weighted_kaplan_meier: the last case must be censored")
        out = pb.asarray(curve)
        moments = pb.asarray(moments)
        ctx.mark_non_differentiable(moments)
        ctx.save_for_backward(curve=out, dead=dead, risk=risk, d=d, n=n)
        return out, moments

    @weighted_kaplan_meier.backward
    @pb.once_differentiable
    def _(ctx, g_curve, g_moments):
        s = ctx.saved_variables
        # log S_j is the sum over i <= j of log(n_i - d_i) - log n_i
        by_step = np.cumsum((g_curve.numpy() * s.curve.numpy())[::-1])[::-1]
        left = (by_step / (s.n - s.d)) @ (s.risk ^ s.dead)
        return {"weights": pb.asarray(left - (by_step / s.n) @ s.risk)}

    return weighted_kaplan_meier
