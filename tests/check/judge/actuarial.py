"""Actuarial work: assurances, mortality, reserves, layers, aggregate claims, credibility, tails."""

from __future__ import annotations

import math

import numpy as np

import pullback as pb

from .entries import CHANGED, FACTOR, MISSING, ZERO, Book, at, mends, t

BOOK = Book("actuarial")


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(0.01, 0.2, 6)), t(rng.uniform(0.03, 0.09))), {"benefit": 10.0}),
    "the slope of the discount factor in the rate has an exponent that is one too small",
    r"\bexponent|discount\w*.{0,40}\b(?:wrong|power|once|again|derivative)|off.by.one",
    r"\bfactor\b.{0,40}(?:missing|left out|1 ?\+ ?.?rate)|1 \+ .?rate.? times|missing.{0,12}\bv\b",
    r"(?:missing|lacks?|multipl\w+ by|divided? by|times).{0,25}1 ?\+ ?.?rate|\bv\b.{0,9} missing",
    mends(
        "v ** (k + 2)",
        "s.v ** (k + 1) * s.v",
    ),
)
def term_assurance():
    @pb.autograd_function
    def term_assurance(ctx, q, rate, benefit=1.0):
        """Value of a benefit at the end of the year of death; q: (years,) chances of dying."""
        k, qn = np.arange(len(q)), q.numpy()
        alive = np.concatenate([[1.0], np.cumprod(1 - qn)[:-1]])
        v = 1 / (1 + rate.item())
        dying = alive * qn
        ctx.save_for_backward(q=q, alive=alive, dying=dying, v=v, benefit=benefit)
        return pb.asarray(np.array(benefit * (v ** (k + 1) * dying).sum()))

    @term_assurance.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        k, qn = np.arange(len(s.q)), s.q.numpy()
        present = s.v ** (k + 1) * s.dying
        later = present[::-1].cumsum()[::-1] - present
        scale = g.item() * s.benefit
        by_q = s.v ** (k + 1) * s.alive - later / (1 - qn)
        by_rate = -((k + 1) * s.v ** (k + 1) * s.dying).sum()
        return {"q": pb.asarray(scale * by_q), "rate": pb.asarray(np.array(scale * by_rate))}

    return term_assurance


DEATHS = np.array([[12, 15, 9, 11], [30, 22, 25, 19], [70, 64, 75, 58]])
EXPOSURE = np.array([[1000, 1100, 1050, 990], [900, 880, 910, 870], [700, 720, 690, 640]])


@BOOK.wrong(
    lambda rng: (
        (t(rng.normal(-4, 0.3, 3)), t(rng.normal(0.5, 0.2, 3)), t(rng.normal(size=4))),
        {"deaths": DEATHS, "exposure": EXPOSURE},
    ),
    "the gradient of the trend is not centred, though forward subtracts the trend's mean",
    r"\bcent(?:re|er)|\bmean\b.{0,50}(?:missing|subtract|left out|not|forgot)|sums? to (?:zero|0)",
    r"(?:missing|subtract\w*|without|lacks?|left out|forgot\w*).{0,40}\bmean\b|same amount",
    r"constant (?:offset|shift|error)",
    mends(
        "grad_trend - grad_trend.mean()",
        "grad_trend -= grad_trend.mean()",
    ),
)
def lee_carter_nll():
    class LeeCarter(pb.Function):
        """Poisson loss of deaths with log rates level[x] + slope[x] * (trend[t] - mean)."""

        @staticmethod
        def forward(ctx, level, slope, trend, deaths, exposure):
            k = trend.numpy() - trend.numpy().mean()
            log_rate = level.numpy()[:, None] + slope.numpy()[:, None] * k
            expected = exposure * np.exp(log_rate)
            ctx.slope, ctx.k, ctx.residual = slope.numpy(), k, expected - deaths
            return pb.asarray(np.array((expected - deaths * log_rate).sum()))

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g):
            residual = g.numpy() * ctx.residual
            by_level, by_slope = residual.sum(axis=1), residual @ ctx.k
            grad_trend = ctx.slope @ residual
            return (*map(pb.asarray, (by_level, by_slope, grad_trend)), None, None)

    return LeeCarter.apply


def triangle(rng):
    return (t(rng.uniform(50, 90, (4, 4)).cumsum(axis=1)),), {}


@BOOK.wrong(
    triangle,
    "the tail factor is left out of the gradient",
    at("tail"),
    r"(?:missing|left out|forgot\w*|ignor\w+|lacks?|without).{0,40}\btail\b",
    r"\btail\b.{0,40}(?:missing|left out|forgot|ignor)|(?:times|by|factor)[ `(]{1,6}tail\b",
    mends(
        "to_ultimate(s.f) * s.tail",
        "s.tail * to_ultimate(s.f)",
        "cdf * s.tail",
        "s.tail * cdf",
    ),
    where="tail is not 1",
    shows=lambda rng: (triangle(rng)[0], {"tail": 1.15}),
)
def chain_ladder_reserve():
    def to_ultimate(f):
        """From the latest diagonal on, by year of origin."""
        n = len(f) + 1
        return np.array([np.prod(f[n - 1 - i :]) for i in range(n)])

    @pb.autograd_function
    def chain_ladder_reserve(ctx, claims, tail=1.0):
        """Total reserve; claims: (n, n) cumulative, of which the upper left triangle counts."""
        C, n = claims.numpy(), len(claims)
        f = np.array([C[: n - 1 - j, j + 1].sum() / C[: n - 1 - j, j].sum() for j in range(n - 1)])
        cdf = to_ultimate(f) * tail
        ctx.save_for_backward(claims=claims, f=f, tail=tail)
        return pb.asarray(np.array((np.diag(C[:, ::-1]) * (cdf - 1)).sum()))

    @chain_ladder_reserve.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        C, n = s.claims.numpy(), len(s.claims)
        cdf, latest = to_ultimate(s.f), np.diag(C[:, ::-1])
        grad = np.diag(cdf - 1)[:, ::-1].copy()
        for j in range(n - 1):
            rows = slice(0, n - 1 - j)
            by_factor = (latest * cdf)[n - 1 - j :].sum() / s.f[j]
            grad[rows, j + 1] += by_factor / C[rows, j].sum()
            grad[rows, j] -= by_factor * s.f[j] / C[rows, j].sum()
        return {"claims": pb.asarray(g.item() * grad)}

    return chain_ladder_reserve


def layer(rng):
    return (t(rng.uniform(1, 20, 8)), t(np.array(6.0))), {"limit": 30.0}


@BOOK.wrong(
    layer,
    "claims that exhaust the layer still count in the gradient of the retention, where it is zero",
    at("limit"),
    ZERO,
    r"exhaust|\bcapped\b|\babove the layer|(?:exceed\w*|beyond|over|above) .{0,20}\blimit",
    r"clipped|saturat|upper (?:end|bound|edge)",
    mends(
        "-(gn * inside).sum()",
        "-gn[inside].sum()",
        "(x > d) & (x < d + s.limit)).sum()",
    ),
    where="a claim beyond the layer",
    shows=lambda rng: (layer(rng)[0], {"limit": 5.0}),
)
def excess_of_loss():
    @pb.autograd_function
    def excess_of_loss(ctx, claims: pb.Tensor, retention: pb.Tensor, limit: float = math.inf):
        """What the reinsurer pays of each claim: above the retention, at most the limit."""
        paid = np.clip(claims.numpy() - retention.numpy(), 0.0, limit)
        ctx.save_for_backward(claims=claims, retention=retention, limit=limit)
        return pb.asarray(paid)

    @excess_of_loss.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        x, d = s.claims.numpy(), s.retention.numpy()
        inside = (x > d) & (x - d < s.limit)
        return {
            "claims": pb.asarray(gn * inside),
            "retention": pb.asarray(np.array(-(gn * (x > d)).sum())),
        }

    return excess_of_loss


def severity(rng, first):
    rest = rng.uniform(0.1, 1, 4)
    return np.concatenate([[first], (1 - first) * rest / rest.sum()])


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(0.8, 2)), t(severity(rng, 0.0))), {"n": 7}),
    "the start of the recursion is differentiated as if no claim could be zero: the slope of its "
    "exponent in the rate is -1 and not f[0] - 1",
    MISSING,
    r"\bf\[0\]|severity\[0\]|(?:claim|mass|probability|severity|atom|element).{0,30}(?:zero|\b0\b)",
    r"(?:zero|nil|empty) claims?|\bstart\b.{0,40}(?:recursion|wrong)|first (?:term|value|element)",
    FACTOR + r"|multipl|divided by",
    mends(
        "(f[0] - 1) * p[0]",
        "(1 - f[0]) * p[0]",
        "p[0] * (f[0] - 1)",
        "adjoint[0] * (1 - f[0])",
    ),
    where="severity with a chance of zero",
    shows=lambda rng: ((t(rng.uniform(0.8, 2)), t(severity(rng, 0.3))), {"n": 7}),
)
def compound_poisson():
    def forward(ctx, rate, severity, n):
        """Probabilities of aggregate claims 0 .. n by Panjer's recursion.

        rate: expected number of claims, severity: probabilities of a claim of 0, 1, 2, ...
        """
        lam, f = rate.item(), severity.numpy()
        p = np.zeros(n + 1)
        p[0] = np.exp(lam * (f[0] - 1))
        for x in range(1, n + 1):
            j = np.arange(1, min(x, len(f) - 1) + 1)
            p[x] = lam / x * (j * f[j] * p[x - j]).sum()
        ctx.save_for_backward(rate=rate, severity=severity, p=p)
        return pb.asarray(p)

    @pb.once_differentiable
    def backward(ctx, grad_output):
        s = ctx.saved_variables
        lam, f, p = s.rate.item(), s.severity.numpy(), s.p
        adjoint, grad_rate, grad_f = grad_output.numpy().copy(), 0.0, np.zeros(len(f))
        for x in range(len(p) - 1, 0, -1):
            j = np.arange(1, min(x, len(f) - 1) + 1)
            grad_rate += adjoint[x] * p[x] / lam
            grad_f[j] += adjoint[x] * lam / x * j * p[x - j]
            adjoint[x - j] += adjoint[x] * lam / x * j * f[j]
        grad_rate -= adjoint[0] * p[0]
        grad_f[0] += adjoint[0] * lam * p[0]
        return {"rate": pb.asarray(np.array(grad_rate)), "severity": pb.asarray(grad_f)}

    return pb.autograd_function(forward, backward, name="compound_poisson")


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=(4, 1)) * 3 + rng.normal(10, 1, (4, 5))),), {}),
    "backward centres the caller's claims in place",
    CHANGED,
    r"\bcopy\b|writes? (?:in)?to\b.{0,30}(?:input|argument|saved|caller)",
    mends(
        "x = s.claims.numpy().copy()",
        "s.claims.numpy() - means",
        "np.array(s.claims.numpy())",
        "x = x - means",
    ),
    where="input changed by backward",
)
def credibility_premium():
    @pb.autograd_function
    def credibility_premium(ctx, claims):
        """Buhlmann's premium of each policy; claims: (policies, years)."""
        x = claims.numpy()
        means = x.mean(axis=1)
        noise, between = x.var(axis=1, ddof=1).mean() / x.shape[1], means.var(ddof=1)
        z = max(0.0, 1 - noise / between)
        ctx.save_for_backward(claims=claims, z=z, noise=noise, between=between)
        return pb.asarray(z * means + (1 - z) * means.mean())

    @credibility_premium.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, g = ctx.saved_variables, grad_output.numpy()
        x = s.claims.numpy()
        policies, years = x.shape
        means = x.mean(axis=1)
        x -= means[:, None]
        away = means - means.mean()
        by_mean, by_x = s.z * g + (1 - s.z) * g.mean(), np.zeros_like(x)
        if s.z > 0:
            grad_z = g @ away
            by_mean += grad_z * s.noise / s.between**2 * 2 * away / (policies - 1)
            by_x -= grad_z / s.between * 2 * x / (years * (years - 1) * policies)
        return {"claims": pb.asarray(by_x + by_mean[:, None] / years)}

    return credibility_premium


@BOOK.right(
    lambda rng: ((t(rng.normal(-4, 0.4, 9)), t(rng.uniform(1, 9, 9)), t(np.array(25.0))), {})
)
def whittaker_graduation():
    def penalty(n, order):
        D = np.diff(np.eye(n), order, axis=0)
        return D.T @ D

    @pb.autograd_function
    def whittaker_graduation(ctx, observed, weights, smoothing, order=2):
        """Graduated rates: fit to the observed ones, roughness by differences; weights >= 0."""
        w, n = weights.numpy(), len(observed)
        if n <= order or w.shape != observed.shape:
            raise ValueError(f"needs more than {order} ages, each with a weight")
        A = np.diag(w) + smoothing.item() * penalty(n, order)
        fit = np.linalg.solve(A, w * observed.numpy())
        ctx.save_for_backward(observed=observed, weights=weights, A=A, fit=fit, order=order)
        return pb.asarray(fit)

    @whittaker_graduation.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        adjoint = np.linalg.solve(s.A, g.numpy())
        roughness = -adjoint @ penalty(len(adjoint), s.order) @ s.fit
        by_weights = pb.asarray(adjoint * (s.observed.numpy() - s.fit))
        by_observed = pb.asarray(adjoint * s.weights.numpy())
        return by_observed, by_weights, pb.asarray(np.array(roughness)), None

    return whittaker_graduation


@BOOK.right(lambda rng: ((t(rng.uniform(0.1, 0.4)), t(rng.uniform(0.5, 2, 5))), {"penalty": 2}))
def bonus_malus_premium():
    def transitions(frequency, n, penalty):
        """Moves between n levels in a year, and how they change with the frequency."""
        P, dP = np.zeros((n, n)), np.zeros((n, n))
        for claims in range(30):
            chance = math.exp(-frequency) * frequency**claims / math.factorial(claims)
            for i in range(n):
                to = max(i - 1, 0) if claims == 0 else min(i + penalty * claims, n - 1)
                P[i, to] += chance
                dP[i, to] += chance * (claims / frequency - 1)
        return P, dP

    @pb.autograd_function
    def bonus_malus_premium(ctx, frequency, relativities, penalty=1):
        """Mean relativity in the long run: a level down without claims, else penalty up each."""
        n = len(relativities)
        if not 0 < frequency.item() < 5:
            raise ValueError("frequency must lie between 0 and 5")
        P, dP = transitions(frequency.item(), n, penalty)
        system = np.eye(n) - P + 1 / n
        share = np.linalg.solve(system.T, np.full(n, 1 / n))
        ctx.save_for_backward(relativities=relativities, share=share, system=system, dP=dP)
        return pb.asarray(np.array(share @ relativities.numpy()))

    @bonus_malus_premium.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        value = np.linalg.solve(s.system, s.relativities.numpy())
        by_frequency = g.item() * (s.share @ s.dP @ value)
        return pb.asarray(np.array(by_frequency)), pb.asarray(g.item() * s.share), None

    return bonus_malus_premium


@BOOK.right(lambda rng: ((t(rng.uniform(0.5, 4, 6)), np.array([0, 2, 1, 0, 5, 3])), {"power": 1.0}))
def tweedie_deviance():
    def unit(y, mu, p):
        if p == 1:
            return np.where(y > 0, y * np.log(np.maximum(y, 1e-300) / mu), 0.0) - (y - mu)
        if p == 2:
            return np.log(mu / y) + y / mu - 1
        end = y ** (2 - p) / ((1 - p) * (2 - p))
        return end - y * mu ** (1 - p) / (1 - p) + mu ** (2 - p) / (2 - p)

    def forward(ctx, mean, claims, exposure=None, power=1.5):
        """Deviance, a mean over policies by exposure; claims are above 0 for a power from 2 on."""
        mu = mean.numpy()
        if mu.shape != claims.shape or (mu <= 0).any() or (claims < 0).any():
            raise ValueError("each claim needs a positive mean")
        if power >= 2 and (claims == 0).any():
            raise ValueError("claims of zero do not fit the power")
        w = np.ones(len(mu)) if exposure is None else np.asarray(exposure)
        ctx.save_for_backward(mean=mean, claims=claims, w=w / w.sum(), power=power)
        return pb.asarray(np.array(2 * (w * unit(claims, mu, power)).sum() / w.sum()))

    @pb.once_differentiable
    def backward(ctx, g):
        s = ctx.saved_variables
        mu = s.mean.numpy()
        return {"mean": pb.asarray(g.item() * 2 * s.w * (mu - s.claims) / mu**s.power)}

    return pb.autograd_function(forward, backward, name="tweedie_deviance")


@BOOK.right(lambda rng: ((t(rng.exponential(2, 8)), t(np.array(1.8)), t(np.array(0.0))), {}))
def pareto_tail_nll():
    def stretched(z, xi):
        """log(1 + xi z) / xi and its slope in xi."""
        if abs(xi) < 1e-4:
            value = z - xi * z**2 / 2 + xi**2 * z**3 / 3 - xi**3 * z**4 / 4
            return value, -(z**2) / 2 + 2 * xi * z**3 / 3 - 3 * xi**2 * z**4 / 4
        value = np.log1p(xi * z) / xi
        return value, (z / (1 + xi * z) - value) / xi

    @pb.autograd_function
    def pareto_tail_nll(ctx, excess, scale, shape):
        """Generalised Pareto loss of losses above a threshold."""
        z, xi = excess.numpy() / scale.item(), shape.item()
        if scale.item() <= 0 or (1 + xi * z <= 0).any():
            raise ValueError("a loss lies outside the distribution")
        ctx.z, ctx.xi, ctx.sigma = z, xi, scale.item()
        loss = np.log(ctx.sigma) + (1 + xi) * stretched(z, xi)[0]
        return pb.asarray(np.array(loss.sum()))

    @pareto_tail_nll.backward
    @pb.once_differentiable
    def _(ctx, g):
        value, slope = stretched(ctx.z, ctx.xi)
        by_z = (1 + ctx.xi) / (1 + ctx.xi * ctx.z)
        by_scale = (1 - by_z * ctx.z).sum() / ctx.sigma
        by_shape = (value + (1 + ctx.xi) * slope).sum()
        grads = (by_z / ctx.sigma, by_scale, by_shape)
        return tuple(pb.asarray(np.array(g.item() * x)) for x in grads)

    return pareto_tail_nll


@BOOK.right(lambda rng: ((t(rng.uniform(0.02, 0.3, 7)),), {"within_year": "balducci"}))
def life_expectancy():
    def year(q, within):
        """Time lived in a year by those alive at its start, and its slope in q."""
        if within == "udd":
            return 1 - q / 2, -pb.ones_like(q) / 2
        p, log_p = 1 - q, (1 - q).log()
        if within == "constant":
            return -q / log_p, -1 / log_p - q / (p * log_p * log_p)
        return -p * log_p / q, (q + log_p) / (q * q)

    @pb.autograd_function
    def life_expectancy(ctx, q, within_year="udd"):
        """Expected years lived; deaths within a year are "udd", "constant" or "balducci"."""
        if not bool(((q > 0) & (q < 1)).all()):
            raise ValueError("q must lie between 0 and 1")
        ctx.save_for_backward(q=q)
        ctx.within = within_year
        lived, total = year(q, within_year)[0], 0.0
        for k in reversed(range(len(q))):
            total = lived[k] + (1 - q[k]) * total
        return total

    @life_expectancy.backward
    def _(ctx, g):
        q = ctx.saved_variables.q
        lived, slope = year(q, ctx.within)
        later = [pb.zeros_like(q[0])]
        for k in reversed(range(1, len(q))):
            later.append(lived[k] + (1 - q[k]) * later[-1])
        alive = [pb.ones_like(q[0])]
        for k in range(len(q) - 1):
            alive.append(alive[-1] * (1 - q[k]))
        return {"q": g * pb.stack(alive) * (slope - pb.stack(later[::-1]))}

    return life_expectancy
