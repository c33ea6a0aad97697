"""Reinsurance: layers, shares, reinstatements, commissions, indexing, curves, simulations."""

from __future__ import annotations

import numpy as np
from scipy import special

import pullback as pb

from .entries import AXIS, MISSING, SIGN, Book, at, mends, t

BOOK = Book("reinsurance")


def claims(rng, scale):
    sizes = np.array([[2100.0, 6400.0, 3300.0], [400.0, 2700.0, 1200.0], [4900.0, 1100.0, 300.0]])
    return t(scale * sizes * rng.uniform(0.97, 1.03, (3, 3)))


@BOOK.wrong(
    lambda rng: (
        (claims(rng, 1.0), t(np.array(1000.0)), t(np.array(5000.0))),
        {"aggregate": 20e3},
    ),
    "in a year that uses up the aggregate limit, the gradient goes on as if nothing capped it",
    at("aggregate"),
    r"exhaust|uses? up|used up|\bcapped\b|\bcap\b|\bclip|\bclamp|saturat|\bplateau|annual limit",
    r"(should|must|ought to)( be)? (0|zero)\b|\bbranch\b|\bconstant\b|\bkink",
    mends("< ctx.aggregate", "<= ctx.aggregate", "s.open", "< aggregate", "<= aggregate"),
    where="the aggregate limit is used up",
    shows=lambda rng: (
        (claims(rng, 1.3), t(np.array(1000.0)), t(np.array(5000.0))),
        {"aggregate": 6e3},
    ),
)
def excess_recoveries():
    @pb.autograd_function
    def excess_recoveries(ctx, losses, retention, limit, aggregate=np.inf):
        """What an excess of loss cover pays by year.

        losses: (years, events); retention and limit: numbers, for each event;
        aggregate: the most that is paid in a year; all in thousands.
        """
        x, low, width = losses.numpy(), retention.item(), limit.item()
        excess = x - low
        paid = np.clip(excess, 0.0, width)
        ctx.save_for_backward(inside=(excess > 0) & (excess < width), above=excess >= width)
        return pb.asarray(np.minimum(paid.sum(axis=1), aggregate))

    @excess_recoveries.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s = ctx.saved_variables
        by_loss = grad_output.numpy()[:, None] * s.inside
        by_limit = grad_output.numpy() @ s.above.sum(axis=1)
        return {
            "losses": pb.asarray(by_loss),
            "retention": -by_loss.sum(),
            "limit": float(by_limit),
        }

    return excess_recoveries


@BOOK.wrong(
    lambda rng: (
        (t(rng.uniform(1.2, 9, 5)), t(rng.uniform(0.01, 0.05, 5)), t(np.array(1.0))),
        {"lines": 4.0},
    ),
    "a larger line cedes less: the retained line's gradient has the wrong sign",
    SIGN,
    r"(should|must|ought to) (?:fall|decrease|be negative)|\bcedes? less",
    mends(
        '"line": -',
        "- s.r @ s.inside",
        "(s.r @ ctx.full) -",
        "-flow @",
        "-(flow",
        "-ctx.flow",
        "-s.by_line",
        "-(by_share",
    ),
)
def surplus_premium():
    @pb.autograd_function
    def surplus_premium(ctx, insured, rate, line, lines=9.0):
        """Premium that a surplus treaty cedes; insured in millions, rate per risk."""
        v, r, own = insured.numpy(), rate.numpy(), line.item()
        share = np.clip(v - own, 0.0, lines * own)
        ctx.save_for_backward(r=r, share=share, inside=(v > own) & (v < (lines + 1) * own))
        ctx.lines, ctx.full = lines, v >= (lines + 1) * own
        return pb.asarray(np.asarray(r @ share))

    @surplus_premium.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, scale = ctx.saved_variables, g.item()
        return {
            "insured": pb.asarray(scale * s.r * s.inside),
            "rate": pb.asarray(scale * s.share),
            "line": scale * (s.r @ s.inside + ctx.lines * (s.r @ ctx.full)),
        }

    return surplus_premium


def settlements(rng, **settings):
    payments = rng.uniform(0.1, 1.4, (4, 6))
    return (t(payments), t(np.array(0.045)), t(np.array(2.0))), settings


@BOOK.wrong(
    lambda rng: settlements(rng),
    "full indexing moves the retention by what was paid: that part of the payments' is missing",
    MISSING,
    at("clause"),
    r"retention.{0,60}(?:depend|move|index|rise|grow|constant|through|adjust)|\bdeflat|real terms",
    mends("s.priority", "- s.shift", "share *", "s.nominal /", "/ s.real", "s.retention * s.ratio"),
    where="clause is full",
    shows=lambda rng: settlements(rng, clause="full"),
)
def indexed_excess():
    @pb.autograd_function
    def indexed_excess(ctx, payments, inflation, retention, clause=None):
        """Excess over a retention of claims paid over years: (claims, years), in millions.

        clause: None, or "full": the retention is indexed by the ratio of paid to deflated sums.
        """
        p, i, low = payments.numpy(), inflation.item(), retention.item()
        year = np.arange(p.shape[1])
        deflator = (1 + i) ** -year
        nominal, real = p.sum(axis=1), p @ deflator
        ratio = nominal / real if clause == "full" else np.ones(len(p))
        hit = nominal > low * ratio
        ctx.save_for_backward(hit=hit, ratio=ratio, real=real, year=year, deflator=deflator, p=p)
        ctx.i, ctx.low, ctx.clause = i, low, clause
        return pb.asarray(np.maximum(nominal - low * ratio, 0.0))

    @indexed_excess.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        flow = g.numpy() * s.hit
        by_inflation = 0.0
        if ctx.clause == "full":
            by_real = flow * ctx.low * s.ratio / s.real
            by_inflation = -by_real @ (s.p @ (s.year * s.deflator)) / (1 + ctx.i)
        return {
            "payments": pb.asarray(np.repeat(flow[:, None], s.p.shape[1], axis=1)),
            "inflation": by_inflation,
            "retention": -flow @ s.ratio,
        }

    return indexed_excess


@BOOK.wrong(
    lambda rng: (
        (t(rng.uniform(0.2, 14, (4, 5))), t(np.array([0.31, 0.12, 0.05]))),
        {"attach": np.array([2.0, 5.0, 10.0]), "limit": np.array([3.0, 5.0, 10.0])},
    ),
    "a layer's use is summed over the years and averaged over the events, not the reverse",
    AXIS,
    r"\bmean\b|\baverag|\baxis\b|\bax[ei]s\b|\byears\b|\bevents\b|\bfactor\b|\bratio\b",
    mends("s.used.sum(axis=1)", "used.sum(axis=(0, 1)) / years", "/ years)", "s.mean", "ctx.mean"),
)
def reinstatement_premiums():
    class Reinstatement(pb.Function):
        @staticmethod
        def forward(ctx, losses, premium, attach, limit, percent=100.0):
            # losses (years, events), layers one above the other; returns the expected premium
            x = losses.numpy()[..., None] - attach
            used = np.clip(x, 0, limit) / limit
            mean = used.sum(axis=1).mean(axis=0)
            ctx.save_for_backward(inside=(x > 0) & (x < limit), used=used, P=premium.numpy())
            ctx.limit, ctx.part = limit, percent / 100
            return pb.asarray(premium.numpy() * (1 + ctx.part * mean))

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g):
            s = ctx.saved_variables
            years = len(s.used)
            flow = ctx.part * g.numpy() * s.P / ctx.limit / years
            by_premium = g.numpy() * (1 + ctx.part * s.used.sum(axis=0).mean(axis=0))
            return {
                "losses": pb.asarray((s.inside * flow).sum(axis=-1)),
                "premium": pb.asarray(by_premium),
            }

    return Reinstatement.apply


@BOOK.right(
    lambda rng: (
        (t(np.array([22.0, 31.0, 40.0, 27.0, 45.0]) + rng.random(5)), t(rng.uniform(48, 55, 5))),
        {},
    )
)
def sliding_commission():
    SCALE = np.array([[0.45, 0.34], [0.55, 0.29], [0.70, 0.215]])

    @pb.autograd_function
    def sliding_commission(ctx, losses, premium, scale=SCALE):
        """Commission of a quota share in each year, by the loss ratio.

        losses and premium: (n,) in the same currency, premium positive.
        scale: (k, 2) loss ratios, rising, and commissions; flat outside, straight lines between.
        """
        L, P = losses.numpy(), premium.numpy()
        if (P <= 0).any():
            raise ValueError("premiums must be positive")
        x, y = scale.T
        ratio = L / P
        k = np.searchsorted(x, ratio, side="right")
        slopes = np.concatenate([[0.0], np.diff(y) / np.diff(x), [0.0]])
        rate = np.interp(ratio, x, y)
        ctx.save_for_backward(rate=rate, slope=slopes[k], ratio=ratio)
        return pb.asarray(rate * P)

    @sliding_commission.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        return {
            "losses": pb.asarray(gn * s.slope),
            "premium": pb.asarray(gn * (s.rate - s.slope * s.ratio)),
        }

    return sliding_commission


@BOOK.right(
    lambda rng: (
        (t(np.array([1.0, 1.6, 2.3, 0.8])), t(np.array([0.4, 1.1, 0.2, 2.0]))),
        {"attach": np.array([2.0, 2.0, 5.0, 1.5]), "limit": np.array([3.0, np.inf, 5.0, 8.5])},
    )
)
def pareto_layer():
    @pb.autograd_function
    def pareto_layer(ctx, alpha, frequency, attach, limit, threshold=1.0):
        """Expected loss of layers in millions; frequency: claims above the threshold a year.

        alpha, frequency, attach and limit: (n,); a layer without limit (inf) needs alpha > 1.
        """
        a, low, top = alpha.numpy(), attach, attach + limit
        if (low < threshold).any() or (a <= 0).any() or (np.isinf(top) & (a <= 1)).any():
            raise ValueError("layers attach above the threshold, and their loss must be finite")
        # exceedance at x is (threshold / x)^a; s = (1 - a) log(top / low), expm1(s) / s is smooth
        start = low * (threshold / low) ** a
        wide = np.log(np.where(np.isinf(top), 1.0, top) / low)
        s = (1 - a) * wide
        small = np.abs(s) < 1e-4
        safe = np.where(small, 1.0, s)
        mean = np.where(small, 1 + s / 2 + s**2 / 6, np.expm1(safe) / safe)
        exact = (np.exp(safe) - np.expm1(safe) / safe) / safe
        steep = np.where(small, 0.5 + s / 3 + s**2 / 8, exact)
        open_ = np.isinf(top)
        rest = np.where(open_, a - 1, 1.0)
        factor = np.where(open_, 1 / rest, wide * mean)
        by_a = np.where(open_, -1 / rest**2, -(wide**2) * steep)
        ctx.frequency, ctx.layer = frequency.numpy(), start * factor
        ctx.by_alpha = start * (by_a + factor * np.log(threshold / low))
        return pb.asarray(ctx.frequency * ctx.layer)

    @pareto_layer.backward
    @pb.once_differentiable
    def _(ctx, g):
        gn = g.numpy()
        return {
            "alpha": pb.asarray(gn * ctx.frequency * ctx.by_alpha),
            "frequency": pb.asarray(gn * ctx.layer),
        }

    return pareto_layer


def triangle(rng, n=5):
    growth = np.cumsum([1.0, 0.6, 0.3, 0.12, 0.04])[:n]
    paid = rng.uniform(8, 14, (n, 1)) * growth * rng.uniform(0.97, 1.03, (n, n))
    return np.where(np.add.outer(np.arange(n), np.arange(n)) < n, paid, 0.0)


@BOOK.right(lambda rng: ((t(triangle(rng)),), {"tail": 1.02}))
def triangle_ultimates():
    @pb.autograd_function
    def triangle_ultimates(ctx, paid, tail=1.0):
        """Chain ladder ultimates of a triangle, (n, n); what is below the diagonal is unused."""
        C = paid.numpy()
        n = len(C)
        tops = np.array([C[: n - j, j].sum() for j in range(1, n)])
        bottoms = np.array([C[: n - j, j - 1].sum() for j in range(1, n)])
        last = C[np.arange(n), n - 1 - np.arange(n)]
        # to ultimate, by the development that a row has reached
        grown = np.append(np.cumprod((tops / bottoms)[::-1])[::-1], 1.0) * tail
        ctx.save_for_backward(tops=tops, bottoms=bottoms, last=last, grown=grown)
        return pb.asarray(last * grown[::-1])

    @triangle_ultimates.backward
    @pb.once_differentiable
    def _(ctx, g):
        tops, bottoms, last, grown = ctx.saved_variables
        n, gn = len(last), g.numpy()
        out = np.zeros((n, n))
        out[np.arange(n), n - 1 - np.arange(n)] = gn * grown[::-1]
        # the factor from j - 1 to j is in every row that has reached j - 1 at most
        flow = np.cumsum((gn * last * grown[::-1])[::-1])
        for j in range(1, n):
            out[: n - j, j] += flow[j - 1] / tops[j - 1]
            out[: n - j, j - 1] -= flow[j - 1] / bottoms[j - 1]
        return {"paid": pb.asarray(out)}

    return triangle_ultimates


@BOOK.right(
    lambda rng: (
        (t(np.array(2.4)), t(rng.dirichlet(np.ones(5)))),
        {"steps": 14, "retained": 4},
    )
)
def panjer_stop_loss():
    @pb.autograd_function
    def panjer_stop_loss(ctx, claims, severity, steps=64, retained=0):
        """Probabilities of the total of Poisson claims, and the mean excess over what is retained.

        severity: (m,) probabilities of claims of 1, 2, ... units.
        steps: totals 0, 1, ..., steps - 1 are worked out, the mean excess is over those.
        """
        lam, f = claims.item(), severity.numpy()
        weighted = np.arange(1, len(f) + 1) * f
        p = np.zeros(steps)
        p[0] = np.exp(-lam * f.sum())
        for s in range(1, steps):
            m = min(s, len(f))
            p[s] = lam / s * (weighted[:m] @ p[s - m : s][::-1])
        excess = np.maximum(np.arange(steps) - retained, 0.0)
        ctx.save_for_backward(lam=lam, f=f, p=p, excess=excess)
        return pb.asarray(p.copy()), pb.asarray(np.asarray(excess @ p))

    @panjer_stop_loss.backward
    @pb.once_differentiable
    def _(ctx, g_p, g_excess):
        lam, f, p, excess = ctx.saved_variables
        to_p = g_p.numpy() + g_excess.item() * excess
        j = np.arange(1, len(f) + 1)
        by_lam, by_f = 0.0, np.zeros_like(f)
        for s in range(len(p) - 1, 0, -1):
            m = min(s, len(f))
            before = p[s - m : s][::-1]
            by_lam += to_p[s] * (j[:m] * f[:m] @ before) / s
            by_f[:m] += to_p[s] * lam / s * j[:m] * before
            to_p[s - m : s] += to_p[s] * lam / s * (j[:m] * f[:m])[::-1]
        by_lam -= to_p[0] * p[0] * f.sum()
        by_f -= to_p[0] * p[0] * lam
        return {"claims": by_lam, "severity": pb.asarray(by_f)}

    return panjer_stop_loss


@BOOK.right(
    lambda rng: (
        (t(np.array([0.02, 0.15, 0.4, 0.85]) + 0.01 * rng.random(4)), t(np.array(3.0))),
        {"top": np.array([0.1, 0.5, 1.3, 1.0])},
    )
)
def exposure_share():
    def curve(d, c):
        """Swiss Re's curve (Bernegger) and its slopes by d and c; g > 1 and b g != 1 for c > 0."""
        log_b, log_g = 3.1 - 0.15 * (1 + c) * c, (0.78 + 0.12 * c) * c
        b, g = np.exp(log_b), np.exp(log_g)
        inner = ((g - 1) * b + (1 - g * b) * b**d) / (1 - b)
        G = np.log(inner) / (log_g + log_b)
        by_d = (1 - g * b) * b**d * log_b / (1 - b) / inner / (log_g + log_b)
        top_b = (g - 1) * b - g * b * b**d + (1 - g * b) * d * b**d
        inner_by_b = (top_b + inner * b) / (1 - b)
        inner_by_g = (b - b * b**d) / (1 - b) * g
        b_by_c, g_by_c = -0.15 * (1 + 2 * c), 0.78 + 0.24 * c
        by_c = (inner_by_b * b_by_c + inner_by_g * g_by_c) / inner - G * (b_by_c + g_by_c)
        return G, by_d, by_c / (log_g + log_b)

    @pb.autograd_function
    def exposure_share(ctx, retention, c, top):
        """Share of the risk premium between retention and top, as parts of the sum insured.

        c is 1.5 for homes, 2 to 3 for trade and 4 for industry; it lies between 0.5 and 4.
        What is above the sum insured is free.
        """
        low = retention.numpy()
        if not 0.5 <= c.item() <= 4.0 or (low < 0).any() or (top < low).any():
            raise ValueError("exposure_share: out of range")
        upper, _, upper_by_c = curve(np.minimum(top, 1.0), c.item())
        lower, by_d, lower_by_c = curve(np.minimum(low, 1.0), c.item())
        ctx.by_retention, ctx.by_c = np.where(low < 1, -by_d, 0.0), upper_by_c - lower_by_c
        return pb.asarray(upper - lower)

    @exposure_share.backward
    @pb.once_differentiable
    def _(ctx, g):
        return pb.asarray(g.numpy() * ctx.by_retention), g.numpy() @ ctx.by_c, None

    return exposure_share


@BOOK.right(
    lambda rng: (
        (
            t(np.array([52.0, 71.0, 30.0, 66.0, 41.0]) + rng.random(5)),
            t(rng.uniform(58, 62, 5)),
            t(np.array(0.2)),
        ),
        {"carry": 2, "expenses": 0.1},
    )
)
def profit_commission():
    @pb.autograd_function
    def profit_commission(ctx, losses, premium, share, carry=3, expenses=0.05):
        losses, premium = losses.numpy(), premium.numpy()
        deficits, trail, out = [], [], np.zeros(len(losses))
        for k, profit in enumerate(premium * (1 - expenses) - losses):
            # the oldest deficits are made good first, and lapse after `carry` years
            deficits = [pair for pair in deficits if pair[0] >= k - carry]
            rest, sources = profit, [k]
            while deficits and rest > 0:
                year, amount, parts = deficits.pop(0)
                if amount > rest:
                    deficits.insert(0, (year, amount - rest, parts + sources))
                    rest, sources = 0.0, []
                else:
                    rest, sources = rest - amount, sources + parts
            if rest < 0:
                deficits.append((k, -rest, [k]))
            trail.append(sources if rest > 0 else [])
            out[k] = max(rest, 0.0)
        ctx.save_for_backward(trail=trail, profit=out, share=share.item(), expenses=expenses)
        return pb.asarray(share.item() * out)

    @profit_commission.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        to_profit = np.zeros_like(gn)
        for k, sources in enumerate(s.trail):
            for year in sources:
                to_profit[year] += s.share * gn[k]
        return {
            "losses": pb.asarray(-to_profit),
            "premium": pb.asarray((1 - s.expenses) * to_profit),
            "share": gn @ s.profit,
        }

    return profit_commission


@BOOK.right(
    lambda rng: (
        (t(rng.gamma(0.7, 30, (3, 24))),),
        {"level": 0.93, "shares": (0.5, 1.0, 0.25)},
    )
)
def tail_values():
    @pb.autograd_function
    def tail_values(ctx, losses, level=0.99, shares=None):
        """Mean of the worst years of the portfolio's total, and each contract's part in it.

        losses: (contracts, years), simulated; a year counts in part where the level cuts it.
        """
        X = losses.numpy()
        w = np.ones(len(X)) if shares is None else np.asarray(shares, float)
        n = X.shape[1]
        order = np.argsort(-(w @ X), kind="stable")
        mass = np.clip(n * (1 - level) - np.arange(n), 0.0, 1.0) / (n * (1 - level))
        weight = np.zeros(n)
        weight[order] = mass
        parts = w * (X @ weight)
        ctx.both = w, weight
        return pb.asarray(np.asarray(parts.sum())), pb.asarray(parts)

    @tail_values.backward
    @pb.once_differentiable
    def _(ctx, g_total, g_parts):
        w, weight = ctx.both
        return {"losses": pb.asarray(np.outer(w * (g_total.item() + g_parts.numpy()), weight))}

    return tail_values


@BOOK.right(
    lambda rng: (
        (t(rng.gamma(0.8, 9, (5, 3))), t(np.array(0.35))),
        {
            "attach": np.array([0.0, 5.0, 10.0, 25.0]),
            "order": "share first",
            "placed": np.array([1.0, 0.9, 0.8, 1.0]),
        },
    )
)
def tower_recoveries():
    @pb.autograd_function
    def tower_recoveries(ctx, losses, ceded, attach, order="excess first", placed=1.0):
        """Recoveries from a tower of layers beside a quota share; the top layer has no limit.

        order: "share first" (the layers protect what the quota share leaves) or "excess first".
        """
        x, q = losses.numpy(), ceded.item()
        if order not in ("share first", "excess first"):
            raise ValueError(f"unknown order {order!r}")
        keep = 1 - q if order == "share first" else 1.0
        net = keep * x
        top = np.append(attach[1:], np.inf)
        layers = np.clip(net[..., None] - attach, 0.0, top - attach)
        inside = (net[..., None] > attach) & (net[..., None] < top)
        ctx.save_for_backward(x=x, inside=inside * placed, keep=keep, order=order)
        return pb.asarray(layers * placed)

    @tower_recoveries.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        to_net = (g.numpy() * s.inside).sum(axis=-1)
        by_ceded = -(to_net * s.x).sum() if s.order == "share first" else 0.0
        return {"losses": pb.asarray(to_net * s.keep), "ceded": by_ceded}

    return tower_recoveries


@BOOK.right(
    lambda rng: (
        (t(np.array([0.5, 2.0, 11.0, 60.0]) + 0.1 * rng.random(4)), t(np.array([0.4, 1.7]))),
        {"basic": 1.0},
    )
)
def increased_limits():
    @pb.autograd_function
    def increased_limits(ctx, limit, lognormal, basic=1.0):
        """Factors of limits over the basic one; lognormal: (2,), mean and spread of the logs."""
        mu, sigma = lognormal.numpy()
        x = np.append(limit.numpy(), basic)
        z = (np.log(x) - mu) / sigma
        mean = np.exp(mu + sigma**2 / 2)
        below, above = mean * special.ndtr(z - sigma), special.ndtr(-z)
        value = below + x * above
        ctx.save_for_backward(value=value, below=below, above=above)
        # the density's terms cancel in the slope by mu, but not in that by sigma
        density = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
        ctx.by_sigma = sigma * below - x * density
        return pb.asarray(value[:-1] / value[-1])

    @increased_limits.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        to_value = np.append(gn, -gn @ s.value[:-1] / s.value[-1]) / s.value[-1]
        by = np.array([to_value @ s.below, to_value @ ctx.by_sigma])
        return {"limit": pb.asarray(gn * s.above[:-1] / s.value[-1]), "lognormal": pb.asarray(by)}

    return increased_limits


@BOOK.right(
    lambda rng: (
        (t(rng.permutation(np.array([3.0, 8.5, 14.0, 40.0, 95.0, 22.0])) + rng.random(6)),),
        {"rate": rng.uniform(0.01, 0.2, 6), "periods": (2, 10, 50, 500)},
    )
)
def occurrence_losses():
    @pb.autograd_function
    def occurrence_losses(ctx, losses, rate, periods=(10, 50, 100, 250)):
        x = losses.numpy()
        if len(x) < 2 or (rate <= 0).any():
            raise ValueError("occurrence_losses takes two events at least, of positive rates")
        order = np.argsort(x)[::-1]
        exceeded = -np.expm1(-np.cumsum(rate[order]))
        wanted = np.clip(1 / np.asarray(periods, float), exceeded[0], exceeded[-1])
        hi = np.clip(np.searchsorted(exceeded, wanted), 1, len(x) - 1)
        # a straight line in the logarithm of the probability
        logs = np.log(exceeded)
        part = (np.log(wanted) - logs[hi - 1]) / (logs[hi] - logs[hi - 1])
        ctx.save_for_backward(rare=order[hi - 1], often=order[hi], part=part, shape=x.shape)
        return pb.asarray(x[order[hi - 1]] * (1 - part) + x[order[hi]] * part)

    @occurrence_losses.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, out = ctx.saved_variables, np.zeros(ctx.saved_variables.shape)
        np.add.at(out, s.rare, g.numpy() * (1 - s.part))
        np.add.at(out, s.often, g.numpy() * s.part)
        return {"losses": pb.asarray(out)}

    return occurrence_losses


@BOOK.right(
    lambda rng: (
        (t(rng.gamma(0.5, 12, 12)), t(np.array(15.0)), t(np.array(25.0))),
        {"hours": np.array([2, 9, 30, 31, 70, 75, 110, 150, 151, 190, 230, 300])},
    )
)
def hours_clause():
    @pb.autograd_function
    def hours_clause(ctx, losses, retention, limit, hours, window=72):
        """Recovery for the worst window of hours; hours: rising, when each loss happened."""
        x, low, width = losses.numpy(), retention.item(), limit.item()
        total = np.concatenate([[0.0], np.cumsum(x)])
        end = np.searchsorted(hours, np.asarray(hours) + window)
        sums = total[end] - total[:-1]
        start = int(sums.argmax())
        event = slice(start, int(end[start]))
        over = x[event].sum() - low
        ctx.event, ctx.n, ctx.over, ctx.width = event, len(x), over, width
        return pb.asarray(np.asarray(min(max(over, 0.0), width)))

    @hours_clause.backward
    @pb.once_differentiable
    def _(ctx, g):
        hit, full = 0 < ctx.over < ctx.width, ctx.over >= ctx.width
        out = np.zeros(ctx.n)
        out[ctx.event] = g.item() * hit
        return {"losses": pb.asarray(out), "retention": -g.item() * hit, "limit": g.item() * full}

    return hours_clause


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(5, 40, 5)), t(np.array([0.021, 0.024, 0.027, 0.031]))),
        {"pattern": [0.35, 0.3, 0.15, 0.1, 0.06, 0.04]},
    )
)
def discounted_reserve():
    @pb.autograd_function
    def discounted_reserve(ctx, ultimate, rates, pattern):
        """Discounted outstanding losses; the last underwriting year has just ended its first year.

        ultimate: (n,) by underwriting year; rates: (m,) zero rates for 1, ..., m years, the last
        of which holds for all later payments, too.
        """
        n, m = len(ultimate), len(rates)
        age = np.arange(n)[::-1] + 1
        flow = np.zeros((n, max(len(pattern) - 1, 1)))
        for row, reached in zip(flow, age, strict=True):
            rest = pattern[reached:]
            row[: len(rest)] = rest
        time = np.arange(flow.shape[1]) + 0.5
        which = np.minimum(np.arange(flow.shape[1]), m - 1)
        growth = 1 + rates[pb.asarray(which)]
        ctx.save_for_backward(ultimate=ultimate, growth=growth, flow=pb.asarray(flow))
        ctx.time, ctx.to_rates = pb.asarray(time), pb.asarray(np.eye(m)[which])
        return ultimate @ (ctx.saved_variables.flow @ growth**-ctx.time)

    @discounted_reserve.backward
    def _(ctx, grad_output):
        s = ctx.saved_variables
        paid = s.ultimate @ s.flow
        by_growth = grad_output * paid * -ctx.time * s.growth ** (-ctx.time - 1)
        return {
            "ultimate": grad_output * (s.flow @ s.growth**-ctx.time),
            "rates": by_growth @ ctx.to_rates,
        }

    return discounted_reserve
