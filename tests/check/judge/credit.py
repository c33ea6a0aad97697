"""Credit: default probabilities, losses, capital, ratings, scorecards, loans, tranches."""

from __future__ import annotations

import numpy as np
from scipy import optimize, special

import pullback as pb

from .entries import FACTOR, REVERSED, ZERO, Book, mends, t

BOOK = Book("credit")


def density(x):
    return np.exp(-0.5 * x**2) / np.sqrt(2 * np.pi)


@BOOK.wrong(
    lambda rng: (
        (
            t(rng.uniform(0.01, 0.1, 5)),
            t(rng.uniform(0.3, 0.6, 5)),
            t(rng.uniform(10, 60, 5)),
            t(rng.uniform(80, 120, 5)),
        ),
        {"conversion": 0.45},
    ),
    "drawing more leaves less undrawn: the factor 1 - conversion is missing",
    FACTOR + r"|multipl",
    r"\bundrawn|chain rule|\bterm\b.{0,30}\bmissing|missing .{0,30}\bterm\b",
    mends("1 - ctx.conversion", "1.0 - ctx.conversion", "-ctx.conversion", "by_exposure -"),
)
def loss_expected():
    @pb.autograd_function
    def loss_expected(ctx, pd, lgd, drawn, limit, conversion=0.75):
        """Expected loss of credit lines, of which a part of what is undrawn will be drawn."""
        p, loss = pd.numpy(), lgd.numpy()
        exposure = drawn.numpy() + conversion * (limit.numpy() - drawn.numpy())
        ctx.save_for_backward(p=p, loss=loss, exposure=exposure)
        ctx.conversion = conversion
        return pb.asarray(p * loss * exposure)

    @loss_expected.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        by_exposure = gn * s.p * s.loss
        return {
            "pd": pb.asarray(gn * s.loss * s.exposure),
            "lgd": pb.asarray(gn * s.p * s.exposure),
            "drawn": pb.asarray(by_exposure),
            "limit": pb.asarray(ctx.conversion * by_exposure),
        }

    return loss_expected


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(0.01, 0.2, 6)),), {"tenor": np.array([0.5, 1, 2, 3, 5, 7.0])}),
    "a hazard acts on the later dates, but the cumulative sum runs from the first: not reversed",
    REVERSED,
    r"cumsum|cumulative|\blater\b|\bfollowing\b|\bearlier\b|\bpreceding\b|triang|transpos",
    mends("[::-1]", "np.flip("),
)
def survival_curve():
    class SurvivalCurve(pb.Function):
        """Probabilities to survive until each tenor in years.

        hazard: (n,), not negative, constant between the tenors; tenor: (n,), increasing.
        """

        @staticmethod
        def forward(ctx, hazard, tenor):
            ctx.dt = np.diff(tenor, prepend=0.0)
            ctx.alive = np.exp(-np.cumsum(hazard.numpy() * ctx.dt))
            return pb.asarray(ctx.alive.copy())

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            by_log = grad_output.numpy() * ctx.alive
            return {"hazard": pb.asarray(-ctx.dt * np.cumsum(by_log))}

    return SurvivalCurve.apply


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(5, 40, 4)), t(rng.uniform(0.002, 0.012, 4)), 48), {}),
    "where the rate is zero, the gradient of the rate is zero, too, though it is not",
    ZERO,
    r"\bspecial case|\bbranch|\blimit\b|\bsmall\b|interest.free|no interest",
    mends("(n + 1) / (2 * n)", "(n + 1) / 2", "(1 + n)", "0.5 * (n + 1)"),
    where="the rate is zero",
    shows=lambda rng: ((t(rng.uniform(5, 40, 4)), t(np.array([0.004, 0.0, 0.01, 0.0])), 48), {}),
)
def loan_payment():
    @pb.autograd_function
    def loan_payment(ctx, principal, rate, months):
        P, r, n = principal.numpy(), rate.numpy(), months
        free = np.abs(r) < 1e-12
        safe = np.where(free, 1.0, r)
        decay = (1 + safe) ** -float(n)
        share = np.where(free, 1 / n, safe / (1 - decay))
        slope = (1 - decay - safe * n * decay / (1 + safe)) / (1 - decay) ** 2
        ctx.save_for_backward(P=P, share=share, slope=np.where(free, 0.0, slope))
        return pb.asarray(P * share)

    @loan_payment.backward
    @pb.once_differentiable
    def _(ctx, g):
        P, share, slope = ctx.saved_variables
        return pb.asarray(g.numpy() * share), pb.asarray(g.numpy() * P * slope), None

    return loan_payment


@BOOK.right(
    lambda rng: (
        (
            t(np.array([0.0001, 0.004, 0.02, 0.09]) + 1e-4 * rng.random(4)),
            t(rng.uniform(0.2, 0.6, 4)),
            t(np.array([0.5, 1.7, 4.2, 6.5])),
        ),
        {},
    )
)
def irb_capital():
    @pb.autograd_function
    def irb_capital(ctx, pd, lgd, maturity, confidence=0.999, floor=3e-4):
        """Capital for each loan to a company, as a part of the exposure.

        pd: (n,), in (0, 1), raised to the floor; lgd: (n,); maturity: (n,) years, held in 1 to 5.
        """
        p, M = np.maximum(pd.numpy(), floor), np.clip(maturity.numpy(), 1, 5)
        fade = np.exp(-50 * p) / (1 - np.exp(-50.0))
        rho = 0.24 - 0.12 * (1 - np.exp(-50 * p)) / (1 - np.exp(-50.0))
        low, high = special.ndtri(p), special.ndtri(confidence)
        x = (low + np.sqrt(rho) * high) / np.sqrt(1 - rho)
        root = 0.11852 - 0.05478 * np.log(p)
        b, by_b = root**2, -2 * root * 0.05478 / p
        below = 1 - 1.5 * b
        adjust = (1 + (M - 2.5) * b) / below
        bare = special.ndtr(x) - p
        by_rho = high / (2 * np.sqrt(rho * (1 - rho))) + x / (2 * (1 - rho))
        by_x = 1 / (density(low) * np.sqrt(1 - rho)) - 6 * fade * by_rho
        by_p = (density(x) * by_x - 1) * adjust + bare * (M - 1) / below**2 * by_b
        ctx.save_for_backward(lgd.numpy(), bare * adjust, by_p * (pd.numpy() > floor))
        ctx.by_M = bare * b / below * ((maturity.numpy() > 1) & (maturity.numpy() < 5))
        return pb.asarray(lgd.numpy() * bare * adjust)

    @irb_capital.backward
    @pb.once_differentiable
    def _(ctx, g):
        lgd, per_lgd, by_p = ctx.saved_variables
        flow = g.numpy() * lgd
        return {
            "pd": pb.asarray(flow * by_p),
            "lgd": pb.asarray(g.numpy() * per_lgd),
            "maturity": pb.asarray(flow * ctx.by_M),
        }

    return irb_capital


@BOOK.right(
    lambda rng: (
        (t(rng.normal(size=(3, 4)) + 3 * np.eye(3, 4) - [0, 0, 0, 2.0]),),
        {"years": 5},
    )
)
def rating_defaults():
    @pb.autograd_function
    def rating_defaults(ctx, scores, years=10):
        """Cumulative default probabilities by year and rating; the last rating is default.

        scores: (ratings - 1, ratings), whose softmax by row moves ratings from year to year.
        """
        P = np.exp(scores.numpy() - scores.numpy().max(axis=1, keepdims=True))
        P /= P.sum(axis=1, keepdims=True)
        v = np.zeros((years + 1, P.shape[1]))
        v[:, -1] = 1
        for k in range(years):
            v[k + 1, :-1] = P @ v[k]
        ctx.P, ctx.v = P, v
        return pb.asarray(v[1:, :-1].copy())

    @rating_defaults.backward
    @pb.once_differentiable
    def _(ctx, g):
        P, v = ctx.P, ctx.v
        by_P, adjoint = np.zeros_like(P), np.zeros(len(P))
        for k in reversed(range(len(v) - 1)):
            adjoint = adjoint + g.numpy()[k]
            by_P += np.outer(adjoint, v[k])
            adjoint = P[:, :-1].T @ adjoint
        centred = by_P - (by_P * P).sum(axis=1, keepdims=True)
        return {"scores": pb.asarray(P * centred)}

    return rating_defaults


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(30, 60, 3)), t(rng.uniform(0.25, 0.5, 3)), t(rng.uniform(60, 120, 3))),
        {"rate": 0.02, "horizon": 1.5},
    )
)
def merton_assets():
    def price(V, s, F, r, T):
        root = s * np.sqrt(T)
        d1 = (np.log(V / F) + r * T) / root + root / 2
        up, phi = special.ndtr(d1), density(d1)
        call = V * up - F * np.exp(-r * T) * special.ndtr(d1 - root)
        by_V, by_s = s * (up + phi / root), V * up - V * phi * (d1 - root)
        jacobian = [[up, V * phi * np.sqrt(T)], [by_V, by_s]]
        return np.array([call, V * up * s]), np.moveaxis(np.array(jacobian), 2, 0), d1, phi

    def forward(ctx, equity, volatility, debt, rate=0.0, horizon=1.0):
        """Value and volatility of a firm's assets from those of its shares, by Newton's method."""
        E, q, F = equity.numpy(), volatility.numpy(), debt.numpy()
        V, s = E + F, q * E / (E + F)
        for _ in range(100):
            value, J, d1, phi = price(V, s, F, rate, horizon)
            step = np.linalg.solve(J, (np.array([E, q * E]) - value).T[..., None])[..., 0]
            V, s = np.maximum(V + step[:, 0], 0.5 * V), np.maximum(s + step[:, 1], 0.5 * s)
            if (np.abs(step) <= 1e-12 * np.stack([V, s], axis=1)).all():
                break
        else:
            raise ArithmeticError("the assets do not converge")
        _, J, d1, phi = price(V, s, F, rate, horizon)
        late = np.exp(-rate * horizon) * special.ndtr(d1 - s * np.sqrt(horizon))
        ctx.save_for_backward(E=E, q=q, J=J, late=late, by_F=V * phi / (F * np.sqrt(horizon)))
        return pb.asarray(V), pb.asarray(s)

    @pb.once_differentiable
    def backward(ctx, g_value, g_volatility):
        s = ctx.saved_variables
        g = np.stack([g_value.numpy(), g_volatility.numpy()], axis=1)
        first, second = np.linalg.solve(s.J.swapaxes(1, 2), g[..., None])[..., 0].T
        return {
            "equity": pb.asarray(first + s.q * second),
            "volatility": pb.asarray(s.E * second),
            "debt": pb.asarray(first * s.late + second * s.by_F),
        }

    return pb.autograd_function(forward, backward, name="merton_assets")


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(0.01, 0.06, 5)), t(0.4), 0.97 ** np.arange(1, 6)),
        {"dt": 1.0},
    )
)
def par_spreads():
    @pb.autograd_function
    def par_spreads(ctx, hazard, recovery, discount, dt=1.0):
        """Fair spreads in basis points of swaps on default that end after each period."""
        S = np.exp(-np.cumsum(np.append(0.0, hazard.numpy() * dt)))
        due = np.cumsum(discount * (S[:-1] - S[1:]))
        annuity = np.cumsum(discount * (S[:-1] + S[1:]) * dt / 2)
        ctx.save_for_backward(S=S, due=due, annuity=annuity, discount=discount)
        ctx.scale, ctx.dt = 1e4 * (1 - recovery.item()), dt
        return pb.asarray(ctx.scale * due / annuity)

    @par_spreads.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        flow = g.numpy() / s.annuity
        by_due, by_annuity = (
            np.cumsum(a[::-1])[::-1] * s.discount for a in (flow, -flow * s.due / s.annuity)
        )
        both = by_annuity * ctx.dt / 2
        by_S = np.append(by_due + both, 0.0)
        by_S[1:] += both - by_due
        by_log = np.cumsum((by_S * s.S)[::-1])[::-1]
        return {
            "hazard": pb.asarray(-ctx.scale * ctx.dt * by_log[1:]),
            "recovery": -1e4 * (flow @ s.due),
        }

    return par_spreads


CUTS = [[25, 40, 60], [1200.0, 3000.0], [0.3, 0.5, 0.8]]


def applicants(rng):
    rows = np.column_stack([rng.uniform(18, 75, 7), rng.uniform(500, 5000, 7), rng.random(7)])
    rows[[1, 4], [1, 2]] = -1
    return (t(rng.normal(15, 20, 14)), t(np.array(480.0)), rows, CUTS), {}


@BOOK.right(applicants)
def scorecard():
    class Scorecard(pb.Function):
        @staticmethod
        def forward(ctx, points, base, features, cuts):
            """Scores from points by bin; each feature has one for a gap (negative) first."""
            offset, columns = 0, []
            for values, edges in zip(features.T, cuts, strict=True):
                bins = np.where(values < 0, 0, 1 + np.digitize(values, edges))
                columns.append(offset + bins)
                offset += len(edges) + 2
            if len(points) != offset:
                raise ValueError(f"{offset} points are needed, not {len(points)}")
            ctx.index, ctx.size = np.stack(columns, axis=1), offset
            return pb.asarray(base.item() + points.numpy()[ctx.index].sum(axis=1))

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g):
            each = np.repeat(g.numpy(), ctx.index.shape[1])
            by_points = np.bincount(ctx.index.ravel(), each, minlength=ctx.size)
            return pb.asarray(by_points), g.numpy().sum(), None, None

    return Scorecard.apply


@BOOK.right(
    lambda rng: (
        (t(rng.normal(550, 60, 9)), np.array([0, 1, 0, 0, 1, 0, 0, 1, 0])),
        {"width": 20.0},
    )
)
def smooth_gini():
    @pb.autograd_function
    def smooth_gini(ctx, score, bad, width=15.0):
        s = score.numpy()
        bads, goods = np.flatnonzero(bad == 1), np.flatnonzero(bad == 0)
        if not len(bads) or not len(goods):
            raise ValueError("both good and bad loans are needed")
        lead = np.tanh((s[goods] - s[bads][:, None]) / (2 * width))
        ctx.slope = (1 - lead**2) / (2 * width * lead.size)
        ctx.bads, ctx.goods, ctx.n = bads, goods, len(s)
        return pb.asarray(np.array(lead.mean()))

    @smooth_gini.backward
    @pb.once_differentiable
    def _(ctx, g):
        grad = np.empty(ctx.n)
        grad[ctx.goods] = g.item() * ctx.slope.sum(axis=0)
        grad[ctx.bads] = -g.item() * ctx.slope.sum(axis=1)
        return {"score": pb.asarray(grad)}

    return smooth_gini


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(40, 300, 5)), t(np.array([12.0, 9.0, 0.0, 4.0, 2.0]) + rng.random(5))),
        {"adjust": 0.5},
    )
)
def weights_of_evidence():
    @pb.autograd_function
    def weights_of_evidence(ctx, good, bad, adjust=0.5):
        """Weight of evidence of each bin, and the information value of all."""
        a, b = good.numpy() + adjust, bad.numpy() + adjust
        if (a <= 0).any() or (b <= 0).any():
            raise ValueError("a bin without good or bad loans needs a positive adjust")
        pg, pb_ = a / a.sum(), b / b.sum()
        woe = np.log(pg / pb_)
        ctx.save_for_backward(pg, pb_, woe, a.sum(), b.sum())
        return pb.asarray(woe.copy()), pb.asarray(np.array((pg - pb_) @ woe))

    @weights_of_evidence.backward
    @pb.once_differentiable
    def _(ctx, g_woe, g_value):
        good, bad, woe, goods, bads = ctx.saved_variables
        by_woe = g_woe.numpy() + g_value.item() * (good - bad)
        by_good, by_bad = by_woe / good + g_value.item() * woe, -by_woe / bad - g_value.item() * woe
        return {
            "good": pb.asarray((by_good - by_good @ good) / goods),
            "bad": pb.asarray((by_bad - by_bad @ bad) / bads),
        }

    return weights_of_evidence


@BOOK.right(lambda rng: ((t(rng.normal(-3, 1.2, 8)), t(0.06)), {"weights": rng.uniform(1, 9, 8)}))
def recalibrated():
    @pb.autograd_function
    def recalibrated(ctx, logit, central, weights=None):
        """Default probabilities, all logits moved alike so that their mean is `central`."""
        s, target = logit.numpy(), central.item()
        if not 0 < target < 1:
            raise ValueError("the mean must lie between 0 and 1")
        w = np.ones(len(s)) if weights is None else weights
        w = w / w.sum()

        def excess(shift):
            return w @ special.expit(s + shift) - target

        middle = special.logit(target)
        ends = middle - s.max() - 1, middle - s.min() + 1
        p = special.expit(s + optimize.brentq(excess, *ends, xtol=1e-14, rtol=1e-14))
        ctx.slope, ctx.share = p * (1 - p), w * p * (1 - p)
        return pb.asarray(p)

    @recalibrated.backward
    @pb.once_differentiable
    def _(ctx, g):
        flow = g.numpy() * ctx.slope
        by_shift = flow.sum() / ctx.share.sum()
        return {"logit": pb.asarray(flow - by_shift * ctx.share), "central": by_shift}

    return recalibrated


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(1, 9, 6)), t(rng.uniform(0.3, 0.7, 6)), rng.random((8, 6)) < 0.25),
        {"points": [0.0, 0.04, 0.12, 1.0]},
    )
)
def tranche_losses():
    @pb.autograd_function
    def tranche_losses(ctx, exposure, lgd, defaults, points=(0.0, 0.03, 0.07, 1.0)):
        """Mean losses of the tranches between points, as parts of each; by scenarios of defaults.

        exposure, lgd: (loans,); defaults: (scenarios, loans), bool; points: increasing parts of
        the pool.
        """
        e, loss, p = exposure.numpy(), lgd.numpy(), np.asarray(points)
        pool = (defaults * loss) @ e / e.sum()
        width, into = np.diff(p), pool[:, None] - p[:-1]
        ctx.hit = ((into > 0) & (into < width)) / width / len(pool)
        ctx.save_for_backward(e=e, loss=loss, pool=pool)
        ctx.defaults = defaults
        return pb.asarray(np.clip(into / width, 0, 1).mean(axis=0))

    @tranche_losses.backward
    @pb.once_differentiable
    def _(ctx, g):
        e, loss, pool = ctx.saved_variables
        by_pool = ctx.hit @ g.numpy() / e.sum()
        per_loan = by_pool @ ctx.defaults
        return {
            "exposure": pb.asarray(per_loan * loss - by_pool @ pool),
            "lgd": pb.asarray(per_loan * e),
        }

    return tranche_losses


@BOOK.right(
    lambda rng: (
        (t(np.array([900.0, 40, 0, 310, 5, 12]) * rng.uniform(0.9, 1, 6)), t(0.19), t(0.21)),
        {"floor": 35.0, "balance": 60.0},
    )
)
def card_payments():
    @pb.autograd_function
    def card_payments(ctx, purchases, rate, share, floor=25.0, balance=0.0):
        owed, pays, ctx.steps = balance, [], []
        for bought in purchases.numpy():
            before = owed
            due = owed * (1 + rate.item() / 12) + bought
            wanted = max(floor, share.item() * due)
            how = "all" if wanted >= due else ("floor" if wanted == floor else "share")
            pays.append(min(wanted, due))
            owed = due - pays[-1]
            ctx.steps.append((before, due, how))
        ctx.rate, ctx.share = rate.item(), share.item()
        return pb.asarray(np.array(pays)), pb.asarray(np.array(owed))

    @card_payments.backward
    @pb.once_differentiable
    def _(ctx, g_pays, g_owed):
        by_owed, by_rate, by_share = g_owed.item(), 0.0, 0.0
        by_bought = np.zeros(len(ctx.steps))
        for k in reversed(range(len(ctx.steps))):
            before, due, how = ctx.steps[k]
            by_pay = g_pays.numpy()[k] - by_owed
            by_due = by_owed + by_pay * {"all": 1.0, "floor": 0.0, "share": ctx.share}[how]
            by_share += by_pay * due * (how == "share")
            by_bought[k] = by_due
            by_rate += by_due * before / 12
            by_owed = by_due * (1 + ctx.rate / 12)
        return pb.asarray(by_bought), by_rate, by_share, None, None

    return card_payments


@BOOK.right(lambda rng: ((t(rng.uniform(0.01, 0.3, 5)),), {"units": [1, 3, 1, 2, 2]}))
def loss_distribution():
    @pb.autograd_function
    def loss_distribution(ctx, pd, units=None):
        p = pd.numpy()
        units = [1] * len(p) if units is None else units
        now, ctx.before = np.ones(1), []
        for each, u in zip(p, units, strict=True):
            ctx.before.append(now)
            now = np.append((1 - each) * now, np.zeros(u))
            now[u:] += each * ctx.before[-1]
        ctx.p, ctx.units = p, units
        return pb.asarray(now.copy())

    @loss_distribution.backward
    @pb.once_differentiable
    def _(ctx, g):
        carried, grad = g.numpy(), np.zeros(len(ctx.p))
        for k in range(len(grad) - 1, -1, -1):
            u, n = ctx.units[k], len(ctx.before[k])
            lost, kept = carried[u:], carried[:n]
            grad[k] = ctx.before[k] @ (lost - kept)
            carried = (1 - ctx.p[k]) * kept + ctx.p[k] * lost
        return {"pd": pb.asarray(grad)}

    return loss_distribution


@BOOK.right(
    lambda rng: (
        (
            t(rng.uniform(0.002, 0.03, (4, 18))),
            t(rng.uniform(0.2, 0.6, 4)),
            t(np.linspace(90, 20, 18) * rng.uniform(0.8, 1.2, (4, 1))),
            np.array([1, 2, 3, 1]),
        ),
        {"rate": 0.06},
    )
)
def staged_losses():
    def forward(ctx, hazard, lgd, exposure, stage, rate=0.0):
        """Provisions of loans: a year's loss in stage 1, all later losses in 2, all of it in 3.

        hazard, exposure: (loans, months); lgd: (loans,); stage: (loans,) integers.
        """
        h, due = hazard.numpy(), exposure.numpy()
        months = np.arange(h.shape[1])
        discount = (1 + rate) ** (-(months + 1) / 12)
        counts = (stage[:, None] == 2) | ((stage[:, None] == 1) & (months < 12))
        cost = np.where(counts, discount * lgd.numpy()[:, None] * due, 0.0)
        later, value = np.zeros_like(h), np.zeros(len(h))
        for k in months[::-1]:
            later[:, k] = value
            value = h[:, k] * cost[:, k] + (1 - h[:, k]) * value
        gone = stage == 3
        alive = np.cumprod(np.column_stack([np.ones(len(h)), 1 - h[:, :-1]]), axis=1)
        ctx.save_for_backward(h=h, lgd=lgd, due=due, cost=cost, later=later, alive=alive)
        ctx.gone, ctx.worth = gone, counts * discount
        return pb.asarray(np.where(gone, lgd.numpy() * due[:, 0], value))

    @pb.once_differentiable
    def backward(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()[:, None]
        lgd = s.lgd.numpy()[:, None]
        per_loss = gn * s.alive * s.h * ctx.worth
        per_loss[:, 0] += g.numpy() * ctx.gone
        return {
            "hazard": pb.asarray(gn * s.alive * (s.cost - s.later)),
            "lgd": pb.asarray((per_loss * s.due).sum(axis=1)),
            "exposure": pb.asarray(per_loss * lgd),
        }

    return pb.autograd_function(forward, backward, name="staged_losses")
