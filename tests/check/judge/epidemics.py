"""Epidemics: renewal, delays, serology, counts, travel, contacts, wastewater, extinction."""

from __future__ import annotations

import numpy as np
from scipy import special

import pullback as pb

from .entries import FACTOR, MISSING, SHIFT, Book, at, mends, t

BOOK = Book("epidemics")


def renewal(rng):
    interval = rng.dirichlet(np.ones(4))
    return (t(rng.uniform(0.8, 1.6, 9)), t(interval), t(rng.uniform(5, 9, 4))), {}


@BOOK.wrong(
    renewal,
    "an earlier day's infections get back what they caused without the factor R of that day",
    FACTOR + r"|multipl|divided by",
    r"(?:missing|without|lacks?|left out|forgot\w*).{0,40}\bR\b|\bR\b.{0,40}(?:missing|left out)",
    r"\bright (?:if|when|where|for) .{0,12}\bR\b.{0,4} ?={1,2} ?1|\bR\[.{0,4}\] (?:is|was) missing",
    mends(
        "adjoint[d : d + n] += adjoint[n + d] * R[d] * w[::-1]",
        "w[::-1] * R[d]",
        "R[d] * adjoint[n + d] * w[::-1]",
        "adjoint[n + d] * w[::-1] * R[d]",
    ),
)
def renewal_incidence():
    @pb.autograd_function
    def renewal_incidence(ctx, R: pb.Tensor, interval: pb.Tensor, seed: pb.Tensor) -> pb.Tensor:
        """Daily infections I[d] = R[d] * sum_k interval[k] * I[d - 1 - k].

        R: (days,), interval: (n,), seed: (n,) infections of the n days before.
        """
        n, r, w = len(interval), R.numpy(), interval.numpy()
        infections = np.concatenate([seed.numpy(), np.zeros(len(r))])
        for d in range(len(r)):
            infections[n + d] = r[d] * (w[::-1] @ infections[d : d + n])
        ctx.save_for_backward(R=R, interval=interval, infections=infections)
        return pb.asarray(infections[n:].copy())

    @renewal_incidence.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        R, w = ctx.saved_variables.R.numpy(), ctx.saved_variables.interval.numpy()
        past, n = ctx.saved_variables.infections, len(w)
        adjoint = np.concatenate([np.zeros(n), grad_output.numpy()])
        grad_R, grad_w = np.zeros_like(R), np.zeros_like(w)
        for d in reversed(range(len(R))):
            window = past[d : d + n]
            grad_R[d] = adjoint[n + d] * (w[::-1] @ window)
            grad_w += adjoint[n + d] * R[d] * window[::-1]
            adjoint[d : d + n] += adjoint[n + d] * w[::-1]
        return {
            "R": pb.asarray(grad_R),
            "interval": pb.asarray(grad_w),
            "seed": pb.asarray(adjoint[:n].copy()),
        }

    return renewal_incidence


def reported(rng):
    return (t(rng.uniform(10, 30, 11)), t(rng.dirichlet(np.ones(3))), t(rng.uniform(0.5, 1, 7))), {}


@BOOK.wrong(
    reported,
    "the gradient starts the week at the first day, whatever weekday it is",
    at("first_day"),
    SHIFT,
    r"\bweek(?:day)?s?\b.{0,40}\b(?:wrong|other|whatever)|first_day.{0,30}(?:missing|ignored|unused)",
    mends(
        "(np.arange(len(gn)) + ctx.first_day) % 7",
        "(ctx.first_day + np.arange(len(gn))) % 7",
    ),
    where="first_day is not 0",
    shows=lambda rng: (reported(rng)[0], {"first_day": 3}),
)
def reported_cases():
    @pb.autograd_function
    def reported_cases(ctx, infections, delay, weekday, first_day=0):
        """Expected reports: infections delayed, times the share reported on that weekday."""
        days = (np.arange(len(infections)) + first_day) % 7
        onset = np.convolve(infections.numpy(), delay.numpy())[: len(days)]
        ctx.save_for_backward(infections=infections, delay=delay, weekday=weekday, onset=onset)
        ctx.first_day = first_day
        return pb.asarray(onset * weekday.numpy()[days])

    @reported_cases.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        days = np.arange(len(gn)) % 7
        g_onset = gn * s.weekday.numpy()[days]
        x, lags = s.infections.numpy(), len(s.delay)
        g_delay = [g_onset[k:] @ x[: len(x) - k] for k in range(lags)]
        return {
            "infections": pb.asarray(np.correlate(g_onset, s.delay.numpy(), "full")[lags - 1 :]),
            "delay": pb.asarray(np.array(g_delay)),
            "weekday": pb.asarray(np.bincount(days, weights=gn * s.onset, minlength=7)),
        }

    return reported_cases


TESTED = np.array([40, 55, 38, 60, 25])
POSITIVE = np.array([4, 13, 14, 29, 15])


def sera(rng):
    return (t(rng.uniform(0.05, 0.3, 5)), POSITIVE, TESTED), {"sensitivity": 0.95}


@BOOK.wrong(
    sera,
    "false positives are forgotten: the slope in the prevalence is the sensitivity alone",
    MISSING,
    FACTOR + r"|multipl|divided by",
    at("specificity"),
    r"specificity.{0,50}(?:missing|left out|ignored|forgot)|false.positives?",
    r"(?:missing|left out|ignor\w+|forgot\w*).{0,40}specificity",
    mends(
        "(ctx.sensitivity + ctx.specificity - 1)",
        "(ctx.sensitivity - (1 - ctx.specificity))",
        "(ctx.sensitivity - 1 + ctx.specificity)",
        "(ctx.specificity + ctx.sensitivity - 1)",
    ),
    where="specificity below 1",
    shows=lambda rng: (sera(rng)[0], {"sensitivity": 0.9, "specificity": 0.85}),
)
def seroprevalence_nll():
    class Seroprevalence(pb.Function):
        """Catalytic model: share ever infected by age group, seen through an imperfect test."""

        @staticmethod
        def forward(ctx, hazard, positive, tested, sensitivity=1.0, specificity=1.0):
            escaped = np.exp(-np.cumsum(hazard.numpy()))
            p = sensitivity * (1 - escaped) + (1 - specificity) * escaped
            ctx.sensitivity, ctx.specificity = sensitivity, specificity
            ctx.escaped, ctx.p, ctx.positive, ctx.tested = escaped, p, positive, tested
            nll = -(positive * np.log(p) + (tested - positive) * np.log1p(-p)).sum()
            return pb.asarray(np.array(nll))

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g):
            grad_p = -(ctx.positive / ctx.p - (ctx.tested - ctx.positive) / (1 - ctx.p))
            grad_total = grad_p * ctx.sensitivity * ctx.escaped
            return pb.asarray(g.item() * np.cumsum(grad_total[::-1])[::-1].copy())

    return Seroprevalence.apply


COUNTS = np.array([3, 7, 0, 12, 5, 9, 4])


@BOOK.wrong(
    lambda rng: ((t(rng.normal(1.5, 0.3, 7)), t(np.array(2.5)), COUNTS), {}),
    "the mean is taken over all weeks: divided by their number, not by that of the weeks observed",
    FACTOR + r"|multipl|divided by",
    r"\bobserved\b|\bunobserved\b|(?:number|sum|divid\w+).{0,30}\b(?:seen|valid)\b",
    r"missing (?:weeks?|counts?|values?|observations?)|count(?:s|ed)? .{0,25}(?:negative|< ?0|-1)",
    r"(?:where|when|if|with|elements) .{0,25}(?:\bcounts?\b|seen).{0,15}(?:<|>=|=|-1|negative)",
    mends(
        "g.numpy() / s.seen.sum()",
        "g.numpy() / np.count_nonzero(s.seen)",
        "g.item() / s.seen.sum()",
        "scale = g.numpy() / max(s.seen.sum(), 1)",
    ),
    where="a missing week",
    shows=lambda rng: (
        (t(rng.normal(1.5, 0.3, 7)), t(np.array(2.5)), np.where(COUNTS == 5, -1, COUNTS)),
        {},
    ),
)
def weekly_counts_nll():
    def forward(ctx, log_mean, dispersion, counts):
        """Mean negative binomial loss of weekly counts; a negative count is a missing week."""
        seen = counts >= 0
        mu, k = np.exp(log_mean.numpy()), dispersion.numpy()
        y = np.where(seen, counts, 0)
        loss = special.gammaln(k) + special.gammaln(y + 1) - special.gammaln(y + k)
        loss += (y + k) * np.log(k + mu) - k * np.log(k) - y * np.log(mu)
        ctx.save_for_backward(log_mean=log_mean, dispersion=dispersion, y=y, seen=seen)
        return pb.asarray(np.array(loss[seen].mean()))

    @pb.once_differentiable
    def backward(ctx, g):
        s = ctx.saved_variables
        mu, k = np.exp(s.log_mean.numpy()), s.dispersion.numpy()
        scale = g.numpy() / len(s.y)
        by_mean = k * (mu - s.y) / (k + mu)
        by_k = special.digamma(k) - special.digamma(s.y + k) + np.log1p(mu / k)
        by_k += (s.y - mu) / (k + mu)
        return {
            "log_mean": pb.asarray(scale * np.where(s.seen, by_mean, 0.0)),
            "dispersion": pb.asarray(np.array(scale * by_k[s.seen].sum())),
        }

    return pb.autograd_function(forward, backward, name="weekly_counts_nll")


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(1.3, 3.0, 4)), t(rng.uniform(0.2, 0.9, 4))), {}),
    "the chain rule through the power is forgotten: the gradient is that of one introduction",
    at("introductions"),
    FACTOR + r"|multipl|divided by",
    r"chain rule|\bpower\b|(?:times|by) introductions|introductions.{0,40}missing",
    mends(
        "chain = g.numpy() * s.n * q ** (s.n - 1) / (1 - slope)",
        "g.numpy() * s.n * q ** (s.n - 1)",
        "s.n * q ** (s.n - 1)",
        "q ** (s.n - 1) * s.n",
    ),
    where="introductions is not 1",
    shows=lambda rng: (
        (t(rng.uniform(1.3, 3.0, 4)), t(rng.uniform(0.2, 0.9, 4))),
        {"introductions": 3},
    ),
)
def fade_out_probability():
    def generating(q, R, k):
        return (1 + R / k * (1 - q)) ** -k

    @pb.autograd_function
    def fade_out_probability(ctx, R, k, introductions=1):
        """Probability that an outbreak dies out; negative binomial offspring (R, k), R above 1."""
        Rn, kn = R.numpy(), k.numpy()
        if (Rn <= 1).any():
            raise ValueError("R must be above 1, every outbreak dies out otherwise")
        q = np.zeros_like(Rn)
        for _ in range(2000):
            q = generating(q, Rn, kn)
        ctx.save_for_backward(R=R, k=k, q=q, n=introductions)
        return pb.asarray(q**introductions)

    @fade_out_probability.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        R, k, q = s.R.numpy(), s.k.numpy(), s.q
        base = 1 + R / k * (1 - q)
        slope = R * base ** (-k - 1)
        chain = g.numpy() / (1 - slope)
        by_k = q * (R * (1 - q) / (k * base) - np.log(base))
        return {
            "R": pb.asarray(-chain * (1 - q) * base ** (-k - 1)),
            "k": pb.asarray(chain * by_k),
        }

    return fade_out_probability


def patches(rng):
    mobility = rng.uniform(0.1, 1, (4, 4)) + 2 * np.eye(4)
    return (
        t(rng.uniform(50, 90, 4)),
        t(rng.uniform(5, 20, 4)),
        np.array([100, 250, 130, 400]),
        t(mobility / mobility.sum(axis=1, keepdims=True)),
    ), {"beta": 0.8}


@BOOK.wrong(
    patches,
    "what a patch's infected do is divided by the population of the patch that they visit, not "
    "of their own",
    r"populations? .{0,60}(?:own|visit|other|home|wrong|index|before|inside)",
    r"divi\w+.{0,40}(?:after|before|outside|inside)|(?:wrong|other) (?:patch|population|index)",
    FACTOR + r"|multipl|divided by",
    mends(
        "s.mobility.numpy().T @ g_force / n",
        "s.mobility.numpy().T @ (g_force) / n",
        "(s.mobility.numpy().T @ g_force) / n",
        "g_force @ s.mobility.numpy() / n",
        "s.mobility.numpy().T / n[:, None] @ g_force",
    ),
)
def travel_step():
    @pb.autograd_function
    def travel_step(ctx, susceptible, infected, population, mobility, beta=0.3, dt=1.0):
        """New infections of one step in each patch; residents of i spend mobility[i, j] in j."""
        prevalence = infected.numpy() / population
        force = beta * (mobility.numpy() @ prevalence)
        ctx.save_for_backward(susceptible=susceptible, mobility=mobility, force=force)
        ctx.prevalence, ctx.population, ctx.beta, ctx.dt = prevalence, population, beta, dt
        return pb.asarray(susceptible.numpy() * -np.expm1(-force * dt))

    @travel_step.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        n, escape = ctx.population, np.exp(-s.force * ctx.dt)
        g_force = ctx.beta * ctx.dt * gn * s.susceptible.numpy() * escape
        return {
            "susceptible": pb.asarray(gn * (1 - escape)),
            "infected": pb.asarray(s.mobility.numpy().T @ (g_force / n)),
            "mobility": pb.asarray(np.outer(g_force, ctx.prevalence)),
        }

    return travel_step


@BOOK.right(lambda rng: ((t(np.exp(0.2 * np.arange(8)) * rng.uniform(20, 30, 8)),), {"window": 6}))
def doubling_time():
    @pb.autograd_function
    def doubling_time(ctx, cases, window=None):
        """Days in which cases double, by a straight line through the last logarithms."""
        y = cases.numpy()[-window:] if window else cases.numpy()
        if len(y) < 2 or (y <= 0).any():
            raise ValueError("doubling_time needs two or more positive case numbers")
        days = np.arange(len(y)) - (len(y) - 1) / 2
        growth = days @ np.log(y) / (days @ days)
        if growth == 0:
            raise ValueError("cases do not grow")
        ctx.save_for_backward(cases=cases, days=days, growth=growth)
        return pb.asarray(np.array(np.log(2) / growth))

    @doubling_time.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        grad = np.zeros(len(s.cases))
        last = grad[-len(s.days) :]
        last += s.days / (s.days @ s.days) / s.cases.numpy()[-len(s.days) :]
        return {"cases": pb.asarray(-g.item() * np.log(2) / s.growth**2 * grad)}

    return doubling_time


@BOOK.right(lambda rng: ((t(rng.uniform(0.4, 1.5, (4, 4))), t(rng.uniform(0.4, 0.9, 4))), {}))
def endemic_level():
    def forward(ctx, beta: pb.Tensor, recovery: pb.Tensor, tol: float = 1e-14) -> pb.Tensor:
        """Share infected in each group of an SIS model at rest; beta: (n, n), recovery: (n,)."""
        B, r = beta.numpy(), recovery.numpy()
        if (B < 0).any() or (r <= 0).any():
            raise ValueError("rates must be positive")
        y = np.full(len(r), 0.5)
        for _ in range(100_000):
            force = B @ y
            y, before = force / (r + force), y
            if np.abs(y - before).max() < tol:
                break
        ctx.save_for_backward(beta=beta, recovery=recovery, y=y)
        return pb.asarray(y)

    @pb.once_differentiable
    def backward(ctx, g):
        s = ctx.saved_variables
        B, r, y = s.beta.numpy(), s.recovery.numpy(), s.y
        # (1 - y) * (B @ y) - r * y = 0
        jacobian = (1 - y)[:, None] * B - np.diag(B @ y + r)
        adjoint = np.linalg.solve(jacobian.T, -g.numpy())
        return {
            "beta": pb.asarray(np.outer(adjoint * (1 - y), y)),
            "recovery": pb.asarray(-adjoint * y),
        }

    return pb.autograd_function(forward, backward, name="endemic_level")


@BOOK.right(lambda rng: ((t(rng.uniform(0.5, 0.7)), t(rng.uniform(0.1, 0.2))), {"days": 40}))
def outbreak_peak():
    @pb.autograd_function
    def outbreak_peak(ctx, beta, gamma, days=60, start=1e-3):
        """Largest share infected in a closed population, and the day on which it comes."""
        b, c = beta.item(), gamma.item()
        path = [(1 - start, start)]
        for _ in range(days):
            s, i = path[-1]
            path.append((s - b * s * i, i + b * s * i - c * i))
        day = int(np.argmax([i for _, i in path]))
        ctx.save_for_backward(beta=beta, gamma=gamma, path=path, day=day)
        return pb.asarray(np.array(path[day][1])), pb.asarray(np.array(day))

    @outbreak_peak.backward
    @pb.once_differentiable
    def _(ctx, g_peak, g_day):
        v = ctx.saved_variables
        b, c = v.beta.item(), v.gamma.item()
        to_s, to_i, grad_b, grad_c = 0.0, g_peak.item(), 0.0, 0.0
        for s, i in reversed(v.path[: v.day]):
            flow = to_i - to_s
            grad_b += flow * s * i
            grad_c -= to_i * i
            to_s, to_i = to_s + flow * b * i, to_i + flow * b * s - to_i * c
        return {"beta": pb.asarray(np.array(grad_b)), "gamma": pb.asarray(np.array(grad_c))}

    return outbreak_peak


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(0, 9, 8)), t(np.array([0.2, 0.5, 0.3])), rng.uniform(1, 2, 8)),
        {"detection_limit": 2.5},
    )
)
def wastewater_signal():
    @pb.autograd_function
    def wastewater_signal(ctx, infections, shedding, flow, detection_limit=0.0):
        """Log concentration; half the limit of detection where that is not reached."""
        load = shed(infections, shedding) / pb.asarray(flow)
        ctx.save_for_backward(infections=infections, shedding=shedding)
        ctx.flow, ctx.limit = flow, detection_limit
        low = pb.full_like(load, max(detection_limit, 1e-12) / 2)
        return pb.where(load > detection_limit, load, low).log()

    def shed(infections, shedding):
        n, zeros = len(infections), pb.zeros_like(infections)
        if len(shedding) > n:
            raise ValueError("shedding lasts longer than the record")
        return sum(w * pb.cat([zeros[:k], infections[: n - k]]) for k, w in enumerate(shedding))

    @wastewater_signal.backward
    def _(ctx, g):
        s, n = ctx.saved_variables, len(ctx.flow)
        load = shed(s.infections, s.shedding) / pb.asarray(ctx.flow)
        seen = load > ctx.limit
        g_load = pb.where(seen, g / pb.where(seen, load, pb.ones_like(load)), pb.zeros_like(g))
        h = g_load / pb.asarray(ctx.flow)
        lags, zeros = range(len(s.shedding)), pb.zeros_like(h)
        return {
            "infections": sum(s.shedding[k] * pb.cat([h[k:], zeros[:k]]) for k in lags),
            "shedding": pb.stack([(h[k:] * s.infections[: n - k]).sum() for k in lags]),
        }

    return wastewater_signal


@BOOK.right(lambda rng: ((t(rng.uniform(1, 9, (2, 3, 3))), np.array([900, 2500, 1400])), {}))
def reciprocal_contacts():
    @pb.autograd_function
    def reciprocal_contacts(ctx, contacts, population):
        """Make contacts of i with j as many as of j with i; contacts: (..., n, n) per person."""
        ctx.n = population
        return (contacts + contacts.transpose(-1, -2) * pb.asarray(ctx.n / ctx.n[:, None])) / 2

    @reciprocal_contacts.backward
    def _(ctx, g):
        return {"contacts": (g + (g * pb.asarray(ctx.n / ctx.n[:, None])).transpose(-1, -2)) / 2}

    return reciprocal_contacts
